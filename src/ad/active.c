/* Which values have derivatives: those that depend on an array with a companion and that such
 * an array depends on. Of funcs, one answer for each context in which they are called. Called
 * by reverse mode after exits.c; changes no code. Locals count as a whole, wherever they are
 * read or written, so that answers err towards "active". */
#include "ad/ad_int.h"

#include <string.h>

bool ing_ad_is_real(const ing_ir_mod *m, ing_type t) {
    const ing_type_info *i = ing_ir_type(m, t);
    switch (i->kind) {
    case ING_TYPE_REF:
    case ING_TYPE_ARRAY: return ing_ad_is_real(m, i->elem);
    case ING_TYPE_STRUCT:
        for (uint32_t k = 0; k < i->n_members; k++)
            if (ing_ad_is_real(m, i->members[k])) return true;
        return false;
    default: return ing_dtype_is_float((ing_dtype)i->dtype);
    }
}

bool ing_ad_is_ref(const ing_ir_mod *m, ing_type t) {
    return t >= ING_DTYPE_N && ing_ir_type(m, t)->kind == ING_TYPE_REF;
}

bool ing_ad_is_array(const ing_ir_mod *m, ing_type t) {
    return t >= ING_DTYPE_N && ing_ir_type(m, t)->kind == ING_TYPE_ARRAY;
}

uint32_t ing_ad_root(const ing_ad_fn *n, uint32_t ref) {
    const ing_ir_inst *i = ing_ir_root(n->f, ref, NULL);
    return i->op == ING_OP_PARAM ? n->param_at[i->a] : ing_ir_id_of(n->f, i);
}

ing_type ing_ad_companion(const ing_ad *ad, const ing_ad_fn *n, uint32_t array) {
    const ing_ir_inst *i = ing_ir_at(n->f, array);
    if (i->op == ING_OP_PARAM) return n->params[i->a].companion;
    uint32_t k = i->op == ING_OP_ARRAY ? ing_ad_companion_arg(ad, i->a) : 0;
    return k ? ad->m->args.at[k - 1].type : 0;
}

/* Is what is read there a constant (qd.stop_grad)? */
static bool is_stopped(const ing_ad *ad, const ing_ad_fn *n, uint32_t root) {
    const ing_ir_inst *i = ing_ir_at(n->f, root);
    if (i->op == ING_OP_PARAM) return n->params[i->a].stopped;
    return i->op == ING_OP_ARRAY && ad->companion[i->a] & ING_AD_STOPPED;
}

/* What an address points into has an adjoint; VARIED alone: which a read brings. */
static bool root_has(const ing_ad *ad, const ing_ad_fn *n, uint32_t root,
                     uint8_t bits) {
    if (bits == ING_AD_VARIED && is_stopped(ad, n, root)) return false;
    if (ing_ad_is_array(ad->m, ing_ir_at(n->f, root)->type))
        return ing_ad_companion(ad, n, root) != 0;
    return (n->mark[root] & bits) == bits;
}

bool ing_ad_has_shadow(const ing_ad *ad, const ing_ad_fn *n, uint32_t ref) {
    return root_has(ad, n, ing_ad_root(n, ref), ING_AD_VARIED | ING_AD_USEFUL);
}

/* ---- life ------------------------------------------------------------------------------------- */

static void walk(ing_ad_fn *n, uint32_t block, uint32_t parent, uint32_t region) {
    for (uint32_t k = 0; k < ing_ir_block_len(n->f, block); k++) {
        uint32_t id = ing_ir_block_ids(n->f, block)[k], blocks[2];
        const ing_ir_inst *i = ing_ir_at(n->f, id);
        uint32_t count = ing_ir_inst_blocks(i, blocks);
        bool loop = i->op == ING_OP_LOOP || i->op == ING_OP_WHILE;
        n->block[id] = block;
        n->parent[id] = parent;
        n->region[id] = region;
        if (i->op == ING_OP_PARAM && !n->param_at[i->a]) n->param_at[i->a] = id;
        for (uint32_t j = 0; j < count; j++) walk(n, blocks[j], id, loop ? id : region);
    }
}

/* In the module's arena. NULL: no memory. */
static ing_ad_fn *fn_new(ing_ad *ad, uint32_t func, const ing_ad_param *params) {
    const ing_ir_func *f = ad->m->funcs.at[func];
    ing_arena *a = &ad->m->arena;
    uint32_t len = f->insts.len;
    ing_ad_fn *n = ING_NEW(a, ing_ad_fn);
    uint32_t *words = ING_NEW_ARRAY(a, (size_t)4 * len + f->n_params, uint32_t);
    uint8_t *mark = ING_NEW_ARRAY(a, len, uint8_t);
    ing_ad_param *p = ING_NEW_ARRAY(a, f->n_params + 1, ing_ad_param);
    if (!n || !words || !mark || !p || !ing_vec_push(&ad->fns, n)) return NULL;
    memset(words, 0, ((size_t)4 * len + f->n_params) * sizeof *words);
    memset(mark, 0, len);
    if (f->n_params) memcpy(p, params, f->n_params * sizeof *p);
    *n = (ing_ad_fn){.func = func,
                     .f = f,
                     .params = p,
                     .mark = mark,
                     .parent = words,
                     .region = words + len,
                     .block = words + 2 * (size_t)len,
                     .callee = words + 3 * (size_t)len,
                     .param_at = words + 4 * (size_t)len};
    walk(n, f->body, 0, 0);
    return n;
}

static bool same_params(const ing_ad_fn *n, const ing_ad_param *p) {
    for (uint32_t k = 0; k < n->f->n_params; k++)
        if (n->params[k].active != p[k].active || n->params[k].shared != p[k].shared ||
            n->params[k].stopped != p[k].stopped ||
            n->params[k].companion != p[k].companion)
            return false;
    return true;
}

/* The context of a func with these parameters, plus 1; 0: no memory. */
static uint32_t fn_find(ing_ad *ad, uint32_t func, const ing_ad_param *p) {
    for (uint32_t k = 0; k < ad->fns.len; k++)
        if (ad->fns.at[k]->func == func && same_params(ad->fns.at[k], p)) return k + 1;
    return fn_new(ad, func, p) ? ad->fns.len : 0;
}

/* ---- forwards: what varies --------------------------------------------------------------------- */

static bool set(ing_ad_fn *n, uint32_t id, uint8_t bit) {
    if (n->mark[id] & bit) return false;
    n->mark[id] |= bit;
    return true;
}

/* Do the arguments of a call bring derivatives, or does the func find some by itself? */
static bool call_has(const ing_ad *ad, const ing_ad_fn *n, const ing_ir_inst *i,
                     uint8_t bit) {
    if (ad->touches[i->a]) return true;
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = n->f->extra.at[i->b + k];
        ing_type t = ing_ir_at(n->f, arg)->type;
        bool place = ing_ad_is_ref(ad->m, t) || ing_ad_is_array(ad->m, t);
        if (place ? root_has(ad, n, ing_ad_root(n, arg), bit) : n->mark[arg] & bit)
            return true;
    }
    return false;
}

/* Marks what a call may write, and (going back) what it is given. */
static bool call_marks(const ing_ad *ad, ing_ad_fn *n, uint32_t id, uint8_t bit) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    bool changed = false, back = bit == ING_AD_USEFUL;
    if (!back && i->type && ing_ad_is_real(ad->m, i->type)) changed = set(n, id, bit);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = n->f->extra.at[i->b + k];
        ing_type t = ing_ir_at(n->f, arg)->type;
        if (!ing_ad_is_real(ad->m, t) || ing_ad_is_array(ad->m, t)) continue;
        if (ing_ad_is_ref(ad->m, t)) {
            uint32_t root = ing_ad_root(n, arg);
            if (!ing_ad_is_array(ad->m, ing_ir_at(n->f, root)->type))
                changed |= set(n, root, bit);
        } else if (back) {
            changed |= set(n, arg, bit);
        }
    }
    return changed;
}

static bool any_operand(const ing_ad_fn *n, const ing_ir_inst *i, uint8_t bit) {
    ing_ir_uses u;
    ing_ir_inst_uses(n->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++)
        if (n->mark[u.fixed[k]] & bit) return true;
    for (uint32_t k = 0; k < u.n_list; k++)
        if (n->mark[u.list[k]] & bit) return true;
    return false;
}

/* Operations through which derivatives go, other than those that touch memory. */
static bool passes_on(const ing_ir_inst *i) {
    switch (ing_op_class_of(i->op)) {
    case ING_OPC_CHEAP:
    case ING_OPC_DIVIDE:
    case ING_OPC_ROOT:
    case ING_OPC_MATH: return true;
    case ING_OPC_CONVERT: return i->op != ING_OP_BITCAST;
    case ING_OPC_AGGREGATE: return i->op != ING_OP_MEMBER && i->op != ING_OP_MEMBER_DYN;
    default: return false;
    }
}

static bool varies_now(const ing_ad *ad, ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    if (i->op == ING_OP_CALL)
        return call_has(ad, n, i, ING_AD_VARIED) &&
               call_marks(ad, n, id, ING_AD_VARIED);
    if (i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC) {
        uint32_t root = ing_ad_root(n, i->a);
        bool array = ing_ad_is_array(ad->m, ing_ir_at(n->f, root)->type);
        bool changed =
            !array && n->mark[i->b] & ING_AD_VARIED && set(n, root, ING_AD_VARIED);
        bool old = i->op == ING_OP_ATOMIC && ing_ad_is_real(ad->m, i->type) &&
                   root_has(ad, n, root, ING_AD_VARIED);
        return (old && set(n, id, ING_AD_VARIED)) | changed;
    }
    if (!i->type || !ing_ad_is_real(ad->m, i->type)) return false;
    bool yes = false;
    if (i->op == ING_OP_LOAD)
        yes = !(i->flags & ING_IR_CONSTANT) &&
              root_has(ad, n, ing_ad_root(n, i->a), ING_AD_VARIED);
    else if (i->op == ING_OP_PARAM)
        yes = n->params[i->a].active;
    else if (passes_on(i))
        yes = any_operand(n, i, ING_AD_VARIED);
    return yes && set(n, id, ING_AD_VARIED);
}

/* ---- backwards: what is useful -------------------------------------------------------------------- */

static bool useful_operands(const ing_ad *ad, ing_ad_fn *n, const ing_ir_inst *i) {
    ing_ir_uses u;
    bool changed = false;
    ing_ir_inst_uses(n->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t id = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        if (ing_ad_is_real(ad->m, ing_ir_at(n->f, id)->type))
            changed |= set(n, id, ING_AD_USEFUL);
    }
    return changed;
}

static bool useful_now(const ing_ad *ad, ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    bool useful = n->mark[id] & ING_AD_USEFUL;
    uint32_t root;
    switch (i->op) {
    case ING_OP_CALL:
        return (useful || call_has(ad, n, i, ING_AD_USEFUL)) &&
               call_marks(ad, n, id, ING_AD_USEFUL);
    case ING_OP_RETURN: return i->a && set(n, i->a, ING_AD_USEFUL);
    case ING_OP_ATOMIC:
    case ING_OP_STORE:
    case ING_OP_LOAD:
        root = ing_ad_root(n, i->a);
        bool found = useful && !ing_ad_is_array(ad->m, ing_ir_at(n->f, root)->type) &&
                     set(n, root, ING_AD_USEFUL);
        return found | (i->op != ING_OP_LOAD && root_has(ad, n, root, ING_AD_USEFUL) &&
                        set(n, i->b, ING_AD_USEFUL));
    default: return useful && passes_on(i) && useful_operands(ad, n, i);
    }
}

static void find_marks(const ing_ad *ad, ing_ad_fn *n) {
    bool changed = true;
    uint32_t len = n->f->insts.len;
    for (uint32_t k = 0; k < n->f->n_params; k++)
        if (n->params[k].active && n->param_at[k])
            n->mark[n->param_at[k]] |= ING_AD_VARIED;
    while (changed) {
        changed = false;
        for (uint32_t id = 1; id < len; id++)
            if (n->block[id]) changed |= varies_now(ad, n, id);
    }
    for (uint32_t k = 0; k < n->f->n_params; k++)
        if (n->params[k].active && n->param_at[k])
            n->mark[n->param_at[k]] |= ING_AD_USEFUL; /* the caller may read it */
    for (changed = true; changed;) {
        changed = false;
        for (uint32_t id = len; id-- > 1;)
            if (n->block[id]) changed |= useful_now(ad, n, id);
    }
}

/* ---- what has backward code ----------------------------------------------------------------------- */

/* Is the local one of the kernel's that iterations share, seen from here? */
static bool shared_here(const ing_ad_fn *n, uint32_t local, uint32_t at) {
    if (n->func != 0) return false;
    for (uint32_t r = n->region[at]; r; r = n->region[r])
        if (ing_ir_at(n->f, r)->flags & ING_IR_PARALLEL) {
            uint32_t own = n->region[local];
            while (own && own != r) own = n->region[own];
            return own != r;
        }
    return false;
}

static ing_status find_callee(ing_ad *ad, ing_ad_fn *n, uint32_t id, ing_err *e) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    ing_ad_param *p = ing_calloc(i->c + 1, sizeof *p);
    if (!p) return ing_ad_no_memory(e);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = n->f->extra.at[i->b + k], root;
        ing_type t = ing_ir_at(n->f, arg)->type;
        if (ing_ad_is_array(ad->m, t)) {
            root = ing_ad_root(n, arg);
            p[k].companion = ing_ad_companion(ad, n, root);
            p[k].stopped = is_stopped(ad, n, root);
        } else if (ing_ad_is_ref(ad->m, t)) {
            root = ing_ad_root(n, arg);
            p[k].stopped = is_stopped(ad, n, root);
            p[k].active = ing_ad_has_shadow(ad, n, arg);
            const ing_ir_inst *r = ing_ir_at(n->f, root);
            bool outer = r->op == ING_OP_PARAM && n->params[r->a].shared;
            p[k].shared = p[k].active && (ing_ad_is_array(ad->m, r->type) || outer ||
                                          shared_here(n, root, id));
        } else {
            p[k].active = ing_ad_active(n, arg);
        }
    }
    n->callee[id] = fn_find(ad, i->a, p);
    ing_free(p);
    return n->callee[id] ? ING_OK : ing_ad_no_memory(e);
}

static bool call_is_live(const ing_ad *ad, const ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    uint8_t both = ING_AD_VARIED | ING_AD_USEFUL;
    return ing_ad_active(n, id) || call_has(ad, n, i, both);
}

static bool is_live(const ing_ad *ad, const ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    switch (i->op) {
    case ING_OP_CALL: return call_is_live(ad, n, id);
    case ING_OP_STORE:
    case ING_OP_ATOMIC:
        return ing_ad_is_real(ad->m, ing_ir_at(n->f, i->b)->type) &&
               ing_ad_has_shadow(ad, n, i->a);
    case ING_OP_LOAD:
    case ING_OP_RETURN: return i->op == ING_OP_LOAD && ing_ad_active(n, id);
    default: return ing_ad_active(n, id) && passes_on(i);
    }
}

static ing_status find_live(ing_ad *ad, ing_ad_fn *n, ing_err *e) {
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        if (!n->block[id] || !is_live(ad, n, id)) continue;
        n->mark[id] |= ING_AD_LIVE;
        for (uint32_t p = n->parent[id]; p; p = n->parent[p]) n->mark[p] |= ING_AD_LIVE;
        if (ing_ir_at(n->f, id)->op == ING_OP_CALL) ING_TRY(find_callee(ad, n, id, e));
    }
    return ING_OK;
}

/* ---- the module ------------------------------------------------------------------------------------ */

/* What funcs do by themselves; callees come first. */
static void find_effects(ing_ad *ad) {
    for (uint32_t k = 0; k < ad->n_funcs; k++) {
        uint32_t func = ad->order[k];
        const ing_ir_func *f = ad->m->funcs.at[func];
        for (uint32_t id = 1; id < f->insts.len; id++) {
            const ing_ir_inst *i = ing_ir_at(f, id);
            if (i->op == ING_OP_ARRAY && ad->companion[i->a]) ad->touches[func] = 1;
            if (i->op == ING_OP_CALL) {
                ad->touches[func] |= ad->touches[i->a];
                ad->acts[func] |= ad->acts[i->a];
            }
            bool writes =
                i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
            uint32_t elem = 0;
            if (writes) ing_ir_root(f, i->a, &elem);
            if (i->op == ING_OP_PRINT || elem) ad->acts[func] = 1;
        }
    }
}

ing_status ing_ad_find_active(ing_ad *ad, ing_err *e) {
    find_effects(ad);
    if (!fn_new(ad, 0, NULL)) return ing_ad_no_memory(e);
    for (uint32_t k = ad->n_funcs; k-- > 0;) {
        uint32_t func = ad->order[k];
        for (uint32_t j = 0; j < ad->fns.len; j++) {
            if (ad->fns.at[j]->func != func) continue;
            find_marks(ad, ad->fns.at[j]);
            ING_TRY(find_live(ad, ad->fns.at[j], e));
        }
    }
    return ING_OK;
}
