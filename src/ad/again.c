/* What a func does where it is run again only forwards, for what it gives (the versions without effects of
 * sweep.c). Called by rule.c: what is read there again must not have been overwritten. Never looks at
 * contexts before the last section: who calls knows what of it is needed. */
#include "ad/ad_int.h"

typedef struct finder {
    const ing_ad *ad;
    const ing_ir_func *f;
    uint8_t *marks;
    uint32_t *parent; /* IF, LOOP or WHILE around it, 0 = none */
    uint8_t *stands;  /* it stands in a block */
    bool changed;
} finder;

static void walk(finder *x, uint32_t block, uint32_t parent) {
    for (uint32_t k = 0; k < ing_ir_block_len(x->f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k], blocks[2];
        uint32_t n = ing_ir_inst_blocks(ing_ir_at(x->f, id), blocks);
        x->parent[id] = parent;
        x->stands[id] = 1;
        for (uint32_t j = 0; j < n; j++) walk(x, blocks[j], id);
    }
}

static void set(finder *x, uint32_t id, uint8_t bits) {
    x->changed |= (bits & ~x->marks[id]) != 0;
    x->marks[id] |= bits;
}

/* A place that callers see, or a local that matters. */
static bool matters(const finder *x, uint32_t ref) {
    uint32_t elem = 0;
    const ing_ir_inst *root = ing_ir_root(x->f, ref, &elem);
    if (root->op == ING_OP_ALLOCA) return x->marks[ing_ir_id_of(x->f, root)] != 0;
    return root->op == ING_OP_PARAM && !elem;
}

static bool begins(const finder *x, const ing_ir_inst *i) {
    switch (i->op) {
    case ING_OP_RETURN: return true;
    case ING_OP_STORE:
    case ING_OP_ATOMIC:
    case ING_OP_CAS: return matters(x, i->a);
    case ING_OP_CALL:
        for (uint32_t k = 0; k < i->c; k++) {
            uint32_t arg = x->f->extra.at[i->b + k];
            if (ing_ad_is_ref(x->ad->m, ing_ir_at(x->f, arg)->type) && matters(x, arg))
                return true;
        }
        return false;
    default: return false;
    }
}

static void look_at(finder *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    if (begins(x, i)) set(x, id, ING_AD_RUN);
    if (!x->marks[id]) return;
    ing_ir_uses u;
    ing_ir_inst_uses(x->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++)
        set(x, u.fixed[k], ING_AD_RUN | ING_AD_ASKED);
    for (uint32_t k = 0; k < u.n_list; k++)
        set(x, u.list[k], ING_AD_RUN | ING_AD_ASKED);
    if (x->parent[id]) set(x, x->parent[id], ING_AD_RUN);
    if (i->op == ING_OP_LOAD || i->op == ING_OP_ATOMIC) {
        const ing_ir_inst *root = ing_ir_root(x->f, i->a, NULL);
        if (root->op == ING_OP_ALLOCA) set(x, ing_ir_id_of(x->f, root), ING_AD_RUN);
    }
    if (i->op == ING_OP_WHILE) { /* how it ends */
        uint32_t n = ing_ir_block_len(x->f, i->a);
        if (n) set(x, ing_ir_block_ids(x->f, i->a)[n - 1], ING_AD_RUN);
    }
}

bool ing_ad_find_rerun(const ing_ad *ad, const ing_ir_func *f, uint8_t *marks) {
    size_t len = f->insts.len;
    uint32_t *parent = ing_calloc(len, sizeof *parent);
    uint8_t *stands = ing_calloc(len, 1);
    finder x = {.ad = ad, .f = f, .marks = marks, .parent = parent, .stands = stands};
    if (parent && stands) {
        walk(&x, f->body, 0);
        do {
            x.changed = false;
            for (uint32_t id = f->insts.len; id-- > 1;)
                if (stands[id]) look_at(&x, id);
        } while (x.changed);
    }
    bool ok = parent && stands;
    ing_free(parent);
    ing_free(stands);
    return ok;
}

/* ---- what is found in a place that the func is given ------------------------------------------ */

static bool goes_to(const ing_ir_func *f, const ing_ir_inst *i, uint32_t param) {
    bool touches = i->op == ING_OP_LOAD || i->op == ING_OP_STORE ||
                   i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
    for (uint32_t k = 0; k < (i->op == ING_OP_CALL ? i->c : touches ? 1 : 0); k++) {
        uint32_t ref = touches ? i->a : f->extra.at[i->b + k];
        const ing_ir_inst *root = ing_ir_root(f, ref, NULL);
        if (root->op == ING_OP_PARAM && root->a == param) return true;
    }
    return false;
}

bool ing_ad_stored_first(const ing_ir_func *f, uint32_t param) {
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        if (!goes_to(f, i, param)) continue;
        bool whole = i->op == ING_OP_STORE && ing_ir_at(f, i->a)->op == ING_OP_PARAM;
        for (uint32_t k = 0; whole && k < ing_ir_block_len(f, f->body); k++)
            if (ing_ir_block_ids(f, f->body)[k] == id) return true;
        return false;
    }
    return false;
}

/* ---- two places that are one ------------------------------------------------------------------- */

static uint32_t depth_of(const ing_ir_func *f, uint32_t ref) {
    uint32_t n = 0;
    for (; ing_ir_is_within(ing_ir_at(f, ref)); n++) ref = ing_ir_at(f, ref)->a;
    return n;
}

/* Two indices that are the same but for a number. */
static bool differ(const ing_ir_func *f, uint32_t a, uint32_t b) {
    ing_ir_form x, y;
    ing_ir_form_of(f, a, &x);
    ing_ir_form_of(f, b, &y);
    bool same = x.known && y.known && x.n == y.n;
    for (uint32_t k = 0; same && k < x.n; k++)
        same = x.of[k] == y.of[k] && x.times[k] == y.times[k];
    return same && x.constant != y.constant;
}

/* Of two refs into one local: do they go to different members? */
static bool are_apart(const ing_ir_func *f, uint32_t a, uint32_t b) {
    uint32_t n = depth_of(f, a), m = depth_of(f, b), least = n < m ? n : m;
    for (; n > least; n--) a = ing_ir_at(f, a)->a;
    for (; m > least; m--) b = ing_ir_at(f, b)->a;
    for (; n; n--) {
        const ing_ir_inst *x = ing_ir_at(f, a), *y = ing_ir_at(f, b);
        if (x->op == y->op &&
            (x->op == ING_OP_MEMBER ? x->b != y->b : differ(f, x->b, y->b)))
            return true;
        a = x->a;
        b = y->a;
    }
    return false;
}

static bool writes_to(const ing_ad *ad, uint32_t func, uint32_t param) {
    const ing_ad_touches *w = &ad->writes[func];
    for (uint32_t k = 0; k < w->len; k++)
        if (w->at[k].param && w->at[k].ref && w->at[k].of == param) return true;
    return false;
}

static bool is_needed(const ing_ad_fn *to, uint32_t param) {
    uint32_t at = to->param_at[param];
    return at && to->mark[at] & ING_AD_AGAIN;
}

/* Backward code of a func keeps what each place that it is given held, as if they were different ones. */
static bool is_one(const ing_ad *ad, const ing_ad_fn *n, const ing_ir_inst *call,
                   const ing_ad_fn *to, uint32_t j, uint32_t k) {
    uint32_t a = n->f->extra.at[call->b + j], b = n->f->extra.at[call->b + k];
    const ing_ir_mod *m = ad->m;
    return ing_ad_is_ref(m, ing_ir_at(n->f, a)->type) &&
           ing_ad_is_ref(m, ing_ir_at(n->f, b)->type) &&
           ing_ad_root(n, a) == ing_ad_root(n, b) &&
           !ing_ad_is_array(m, ing_ir_at(n->f, ing_ad_root(n, a))->type) &&
           (is_needed(to, j) || is_needed(to, k)) &&
           (writes_to(ad, call->a, j) || writes_to(ad, call->a, k)) &&
           !are_apart(n->f, a, b);
}

ing_status ing_ad_check_refs(const ing_ad *ad, const ing_ad_fn *n, ing_err *e) {
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(n->f, id);
        if (!n->block[id] || i->op != ING_OP_CALL || !n->callee[id]) continue;
        for (uint32_t k = 0; k < i->c; k++)
            for (uint32_t j = 0; j < k; j++) {
                if (!is_one(ad, n, i, ad->fns.at[n->callee[id] - 1], j, k)) continue;
                ad->m->remedy = "give one of them as a copy";
                return ing_ad_refuse(ad->m, n->func, i->loc, e,
                                     "two parameters of a func that are one variable, "
                                     "or may be, and that it changes");
            }
    }
    return ING_OK;
}
