/* The rule of AD3: what backward code reads again, the launch must not have overwritten. Refuses
 * where the text alone shows that it did, and where iterations of a parallel loop wait for each
 * other; the rest is for Tape(validation=True). Called after
 * need.c, which says what is read again. */
#include "ad/ad_int.h"

#include "ir/access.h"

enum { MAX_PAIRS = 1 << 20 }; /* then it is left to the launch */

static uint32_t elem_of(const ing_ir_func *f, uint32_t ref) {
    while (ing_ir_at(f, ref)->op == ING_OP_MEMBER ||
           ing_ir_at(f, ref)->op == ING_OP_MEMBER_DYN)
        ref = ing_ir_at(f, ref)->a;
    return ing_ir_at(f, ref)->op == ING_OP_ELEM ? ref : 0;
}

static bool same_array(const ing_ad_fn *n, uint32_t a, uint32_t b) {
    const ing_ir_inst *x = ing_ir_at(n->f, ing_ad_root(n, a));
    const ing_ir_inst *y = ing_ir_at(n->f, ing_ad_root(n, b));
    return x->op == y->op && x->a == y->a;
}

/* Members that both name, and that differ, are different places. */
static bool other_member(const ing_ir_func *f, uint32_t a, uint32_t b) {
    const ing_ir_inst *x = ing_ir_at(f, a), *y = ing_ir_at(f, b);
    return x->op == ING_OP_MEMBER && y->op == ING_OP_MEMBER && x->b != y->b;
}

/* The innermost loop around both that is run in order; 0 = none. */
static uint32_t common_loop(const ing_ad_fn *n, uint32_t a, uint32_t b) {
    for (uint32_t r = n->region[a]; r; r = n->region[r]) {
        uint32_t s = n->region[b];
        while (s && s != r) s = n->region[s];
        if (s == r) return ing_ir_at(n->f, r)->flags & ING_IR_PARALLEL ? 0 : r;
    }
    return 0;
}

/* Is an index of the element made in the loop? Then each iteration may have its own. */
static bool varies(const ing_ad_fn *n, uint32_t elem, uint32_t loop) {
    const ing_ir_inst *i = ing_ir_at(n->f, elem);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t idx = n->f->extra.at[i->b + k];
        if (ing_ir_at(n->f, idx)->op == ING_OP_CONST) continue;
        for (uint32_t r = n->region[idx]; r || idx == loop; r = n->region[r])
            if (r == loop || idx == loop) return true;
    }
    return false;
}

static bool overwrites(const ing_ad_fn *n, uint32_t load, uint32_t store) {
    uint32_t a = ing_ir_at(n->f, load)->a, b = ing_ir_at(n->f, store)->a;
    uint32_t from = elem_of(n->f, a), to = elem_of(n->f, b);
    if (!to || !same_array(n, a, b) || other_member(n->f, a, b)) return false;
    if (!ing_ir_same_place(n->f, from, to)) return false;
    uint32_t loop = common_loop(n, load, store);
    return store > load || (loop && !varies(n, from, loop));
}

/* Are the indices the same but for a number that makes them meet in another iteration? */
static bool shifted(const ing_ir_func *f, uint32_t a, uint32_t b, bool *apart) {
    ing_ir_form x, y;
    ing_ir_form_of(f, a, &x);
    ing_ir_form_of(f, b, &y);
    bool same = x.known && y.known && x.n == y.n;
    for (uint32_t k = 0; same && k < x.n; k++)
        same = x.of[k] == y.of[k] && x.times[k] == y.times[k];
    int64_t by = (int64_t)(x.constant - y.constant);
    if (!same || by == 0) return same;
    *apart = true;
    bool meets = false;
    for (uint32_t k = 0; k < x.n; k++) {
        const ing_ir_inst *i = ing_ir_at(f, x.of[k]);
        if (i->op == ING_OP_LOOP && !(i->flags & ING_IR_PARALLEL))
            return false; /* in order */
        meets |= x.times[k] && by % (int64_t)x.times[k] == 0;
    }
    return meets;
}

static uint32_t parallel_around(const ing_ad_fn *n, uint32_t id) {
    uint32_t r = n->region[id];
    while (r && !(ing_ir_at(n->f, r)->flags & ING_IR_PARALLEL)) r = n->region[r];
    return r;
}

/* In a parallel loop one iteration reads what another one stores: adjoints would have to go from
 * iteration to iteration in one order, and there is none. */
static bool crosses(const ing_ad_fn *n, uint32_t load, uint32_t store) {
    uint32_t a = ing_ir_at(n->f, load)->a, b = ing_ir_at(n->f, store)->a;
    uint32_t from = elem_of(n->f, a), to = elem_of(n->f, b);
    uint32_t loop = parallel_around(n, load);
    if (!from || !to || !loop || loop != parallel_around(n, store)) return false;
    if (!same_array(n, a, b) || other_member(n->f, a, b)) return false;
    const ing_ir_inst *x = ing_ir_at(n->f, from), *y = ing_ir_at(n->f, to);
    bool apart = false, meet = x->c == y->c;
    for (uint32_t k = 0; meet && k < x->c; k++)
        meet =
            shifted(n->f, n->f->extra.at[x->b + k], n->f->extra.at[y->b + k], &apart);
    return meet && apart;
}

static ing_status check_pair(ing_ad *ad, const ing_ad_fn *n, uint32_t load,
                             uint32_t write, ing_err *e) {
    uint8_t again = ING_AD_AGAIN | ING_AD_FIRST;
    uint32_t loc = ing_ir_at(n->f, write)->loc;
    if (n->mark[load] & again && overwrites(n, load, write))
        return ing_ad_refuse(
            ad->m, loc, e,
            "an element that was read, and whose value the backward pass "
            "needs, is overwritten here");
    bool store = ing_ir_at(n->f, write)->op == ING_OP_STORE;
    if (store && n->mark[load] & ING_AD_LIVE && crosses(n, load, write))
        return ing_ad_refuse(
            ad->m, loc, e,
            "Cross-iteration read-after-write: iterations of a parallel "
            "loop read what others store here");
    return ING_OK;
}

ing_status ing_ad_check_rule(ing_ad *ad, const ing_ad_fn *n, ing_err *e) {
    uint32_t pairs = 0, len = n->f->insts.len;
    uint8_t looked = ING_AD_AGAIN | ING_AD_FIRST | ING_AD_LIVE;
    for (uint32_t id = 1; id < len; id++) {
        const ing_ir_inst *i = ing_ir_at(n->f, id);
        if (!n->block[id] || i->op != ING_OP_LOAD || !(n->mark[id] & looked)) continue;
        if (!elem_of(n->f, i->a)) continue;
        for (uint32_t w = 1; w < len && pairs < MAX_PAIRS; w++) {
            const ing_ir_inst *o = ing_ir_at(n->f, w);
            bool write = o->op == ING_OP_STORE || o->op == ING_OP_ATOMIC;
            if (!n->block[w] || !write) continue;
            pairs++;
            ING_TRY(check_pair(ad, n, id, w, e));
        }
    }
    return ING_OK;
}
