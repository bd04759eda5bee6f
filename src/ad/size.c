/* How much room the stacks of a backward kernel need: a kernel of its own that computes, of all
 * iterations of the parallel loops, the largest need, and returns it. It is the part of the
 * kernel that decides how often loops with a stack run, and nothing else. Called by reverse.c.
 *  SIZE1 need is known beforehand when every loop with a stack is a LOOP of the kernel whose
 *     bounds are made of arguments, extents, indices of loops and elements of arrays by way of
 *     values and locals that no loop carries. Else stacks ask for room as they grow.
 *  SIZE2 of a region: the stacks of its loops stand one upon the other, in the order of the
 *     text; what the iterations of a loop need for themselves is on top of its own.
 *  SIZE3 for those who count how often bounds are looked at (compat), the same kernel over all inner
 *     loops with backward code, whether or not they have stacks: ing_ad_bounds. */
#include "ad/ad_int.h"

#include <string.h>

typedef struct sizes {
    ing_ad *ad;
    ing_ad_fn *n;
    ing_ad_code *c;     /* NULL while nothing is written */
    uint8_t *want;      /* per instruction: the kernel computes it */
    uint8_t *holds;     /* per control instruction: a loop with a stack is in it */
    uint32_t acc, most; /* i64 locals of the region: stacks so far, need */
    bool all;           /* SIZE3 */
    bool changed, unknown;
} sizes;

static void want(sizes *x, uint32_t id) {
    if (!id || x->want[id]) return;
    x->want[id] = 1;
    x->changed = true;
}

static bool has_stack(const ing_ad_fn *n, uint32_t loop) {
    for (uint32_t k = 0; k < n->states.len; k++)
        if (n->states.at[k].loop == loop && n->states.at[k].carried) return true;
    return false;
}

/* A loop that counts: one with a stack, or every inner one (SIZE3). */
static bool counts(const sizes *x, uint32_t id) {
    bool inner = ing_ir_at(x->n->f, id)->op == ING_OP_LOOP && x->n->region[id] &&
                 x->n->mark[id] & ING_AD_LIVE;
    return has_stack(x->n, id) || (x->all && inner);
}

bool ing_ad_has_stacks(const ing_ad *ad, const ing_ad_fn *n) {
    for (uint32_t k = 0; k < n->states.len; k++)
        if (n->states.at[k].carried) return true;
    for (uint32_t id = 1; id < n->f->insts.len; id++)
        if (n->callee[id] && ad->fns.at[n->callee[id] - 1]->stacks) return true;
    return false;
}

/* ---- which loops have stacks ---------------------------------------------------------------------- */

static void find_stacks(sizes *x) {
    const ing_ad_fn *n = x->n;
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(n->f, id);
        if (n->callee[id] && x->ad->fns.at[n->callee[id] - 1]->stacks)
            x->unknown = true;
        if (!counts(x, id)) continue;
        if (i->op != ING_OP_LOOP || n->region[id] == 0) x->unknown = true;
        want(x, i->a);
        want(x, i->b);
        x->holds[id] = 1;
        for (uint32_t p = n->parent[id]; p; p = n->parent[p]) {
            const ing_ir_inst *around = ing_ir_at(n->f, p);
            x->holds[p] = 1;
            want(x, around->a);
            if (around->op == ING_OP_LOOP) want(x, around->b);
            if (around->op == ING_OP_WHILE) x->unknown = true;
        }
    }
}

/* ---- what makes their bounds ------------------------------------------------------------------------ */

/* A local whose writes all stand in its own region, so that running that in order makes it. */
static void want_local(sizes *x, uint32_t root) {
    const ing_ad_fn *n = x->n;
    if (ing_ir_at(n->f, root)->op != ING_OP_ALLOCA) {
        x->unknown |= !ing_ad_is_array(x->ad->m, ing_ir_at(n->f, root)->type);
        return;
    }
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(n->f, id);
        bool store = i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC;
        if (i->op == ING_OP_CALL)
            for (uint32_t k = 0; k < i->c; k++)
                x->unknown |= ing_ad_root(n, n->f->extra.at[i->b + k]) == root;
        if (!n->block[id] || !store || ing_ad_root(n, i->a) != root) continue;
        if (i->op == ING_OP_ATOMIC || n->region[id] != n->region[root])
            x->unknown = true;
        want(x, id);
    }
}

static void want_operands(sizes *x, uint32_t id) {
    const ing_ad_fn *n = x->n;
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    ing_ir_uses u;
    ing_ir_inst_uses(n->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) want(x, u.fixed[k]);
    for (uint32_t k = 0; k < u.n_list; k++) want(x, u.list[k]);
    for (uint32_t p = n->parent[id]; p; p = n->parent[p]) want(x, p);
    switch (i->op) {
    case ING_OP_LOAD: want_local(x, ing_ad_root(n, i->a)); break;
    case ING_OP_CALL:
    case ING_OP_ATOMIC:
    case ING_OP_CAS:
    case ING_OP_WHILE: x->unknown = true; break;
    default: break;
    }
}

static bool find_wanted(sizes *x) {
    uint32_t len = x->n->f->insts.len;
    find_stacks(x);
    do {
        x->changed = false;
        for (uint32_t id = len; id-- > 1 && !x->unknown;)
            if (x->want[id] && x->n->block[id]) want_operands(x, id);
    } while (x->changed && !x->unknown);
    return !x->unknown;
}

/* ---- the kernel --------------------------------------------------------------------------------------- */

static void put_block(sizes *x, uint32_t block);

static uint32_t emit(sizes *x, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(&x->c->b, op, ING_I64, a, b, 0);
}

/* The region needs `more` on top of its stacks. */
static void put_need(sizes *x, uint32_t more) {
    uint32_t sum = emit(x, ING_OP_ADD, ing_ad_load(x->c, x->acc), more);
    uint32_t most = emit(x, ING_OP_MAX, ing_ad_load(x->c, x->most), sum);
    ing_ad_store(x->c, x->most, most);
}

static void put_if(sizes *x, const ing_ir_inst *i) {
    ing_ir_builder *b = &x->c->b;
    uint32_t other = 0;
    ing_ir_block_begin(b);
    put_block(x, i->b);
    uint32_t then = ing_ir_block_end(b);
    if (i->c) {
        ing_ir_block_begin(b);
        put_block(x, i->c);
        other = ing_ir_block_end(b);
    }
    ing_ir_emit(b, ING_OP_IF, 0, x->c->copy.map[i->a], then, other);
}

/* The body of a loop; the local `most` gathers what its iterations need. */
static uint32_t put_body(sizes *x, uint32_t block, uint32_t most, bool parallel) {
    uint32_t acc = x->acc, outer = x->most;
    ing_ir_block_begin(&x->c->b);
    x->acc = ing_ad_local(x->c, ING_I64);
    x->most = ing_ad_local(x->c, ING_I64);
    put_block(x, block);
    uint32_t need = ing_ad_load(x->c, x->most);
    if (parallel)
        ing_ir_emit(&x->c->b, ING_OP_ATOMIC, ING_I64, most, need, ING_IR_ATOMIC_MAX);
    else
        ing_ad_store(x->c, most, emit(x, ING_OP_MAX, ing_ad_load(x->c, most), need));
    x->acc = acc;
    x->most = outer;
    return ing_ir_block_end(&x->c->b);
}

static bool holds_more(const sizes *x, uint32_t loop) {
    for (uint32_t id = loop + 1; id < x->n->f->insts.len; id++) {
        uint32_t r = x->holds[id] && counts(x, id) ? x->n->region[id] : 0;
        while (r && r != loop) r = x->n->region[r];
        if (r) return true;
    }
    return false;
}

static void put_loop(sizes *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    ing_ad_code *c = x->c;
    bool parallel = i->flags & ING_IR_PARALLEL;
    uint32_t stride = ing_ad_stride(c, id) + x->all;
    if (stride) {
        uint32_t entries = ing_ad_trips(c, i);
        if (!x->all) entries = ing_ad_entries(c, id, entries);
        uint32_t own = ing_ad_stack_bytes(c, entries, stride);
        ing_ad_store(c, x->acc, emit(x, ING_OP_ADD, ing_ad_load(c, x->acc), own));
    }
    if (!holds_more(x, id)) {
        put_need(x, ing_ir_const_int(&c->b, ING_I64, 0));
        return;
    }
    uint32_t most = ing_ad_local(c, ING_I64);
    uint32_t loop = ing_ir_loop_reserve(&c->b, i->type);
    c->copy.map[id] = loop;
    uint32_t body = put_body(x, i->c, most, parallel);
    ing_ir_loop_finish(&c->b, loop, c->copy.map[i->a], c->copy.map[i->b], body,
                       i->flags);
    put_need(x, ing_ad_load(c, most));
}

static void put_block(sizes *x, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(x->n->f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->n->f, block)[k];
        const ing_ir_inst *i = ing_ir_at(x->n->f, id);
        x->c->b.loc = i->loc;
        if (i->op == ING_OP_LOOP) {
            if (x->holds[id]) put_loop(x, id);
        } else if (i->op == ING_OP_IF) {
            if (x->holds[id] || x->want[id]) put_if(x, i);
        } else if (x->want[id]) {
            ing_ir_copy_inst(&x->c->copy, id);
        }
    }
}

static void write_kernel(sizes *x) {
    x->acc = ing_ad_local(x->c, ING_I64);
    x->most = ing_ad_local(x->c, ING_I64);
    put_block(x, x->n->f->body);
    uint32_t need = ing_ad_load(x->c, x->most);
    ing_ir_emit(&x->c->b, ING_OP_SET_RET, 0, 0, need, 0);
}

/* ---- both steps --------------------------------------------------------------------------------------- */

static bool open(sizes *x, ing_ad *ad) {
    x->ad = ad;
    x->all = ad->all_bounds;
    x->n = ad->fns.at[0];
    x->want = ing_calloc(x->n->f->insts.len, 2);
    x->holds = x->want ? x->want + x->n->f->insts.len : NULL;
    return x->want != NULL;
}

ing_status ing_ad_can_size(ing_ad *ad, bool *yes, ing_err *e) {
    sizes x = {0};
    if (!open(&x, ad)) return ing_ad_no_memory(e);
    *yes = find_wanted(&x);
    ing_free(x.want);
    return ING_OK;
}

ing_status ing_ad_write_size(ing_ad_code *c, ing_err *e) {
    sizes x = {.c = c};
    if (!open(&x, c->ad)) return ing_ad_no_memory(e);
    if (!find_wanted(&x))
        memset(x.want, 0, (size_t)2 * x.n->f->insts.len); /* SIZE3: none */
    write_kernel(&x);
    ing_free(x.want);
    return ING_OK;
}
