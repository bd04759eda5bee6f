/* Swap: of two serial loops around each other, the one that steps from number to number in memory goes inside.
 *
 *   loop k = a, b                          loop j = c, d
 *     loop j = c, d                   =>     loop k = a, b
 *       atomic x[i, j], y[j, k], add           atomic x[i, j], y[j, k], add
 *
 * LLVM would gather y, a row apart each time; now it reads y in order, and x[i, j] is held in a register (hold.c):
 * the lower triangle of a product of 240 x 200 f64 took 2.8 ms, now 0.5. Runs before hold, on the two
 * innermost of loops.
 * Rules
 *  SWAP1 the outer loop holds values and loads before the inner one, and nothing after it; the inner one holds
 *     values, loads, stores and plain updates, and its bounds are the same in each iteration of the outer one.
 *  SWAP2 no two places that different j write, or write and read, are the same, in whatever k (ACCESS5);
 *     so each place sees the k in their order. What is written is in arrays, and other arrays of the
 *     loops lie apart from these (apart.c).
 *  SWAP3 it pays: fewer accesses step over rows than before. Sums of floats are then chains, which LLVM may
 *     cut under fast math alone. */
#include "pass/pass_int.h"

enum { MAX_TOUCHED = 24 }; /* accesses that are compared with each other */

typedef struct swapper {
    ing_ir_mod *m;
    const ing_ir_func *f;
    const ing_pass_options *o;
    ing_ir_scan scan;
    uint8_t *swapped; /* per instruction: a LOOP that goes inside */
    bool any;
} swapper;

static const ing_ir_inst *at(const swapper *x, uint32_t id) {
    return ing_ir_at(x->f, id);
}

static uint32_t inner_of(const ing_ir_func *f, const ing_ir_inst *outer) {
    uint32_t n = ing_ir_block_len(f, outer->c);
    return n ? ing_ir_block_ids(f, outer->c)[n - 1] : 0;
}

/* ---- SWAP1 ---------------------------------------------------------------------------------- */

static bool is_value(const ing_ir_inst *i) {
    return ing_op_is_pure(i->op) ||
           (i->op == ING_OP_LOAD && !(i->flags & ING_IR_VOLATILE));
}

static bool is_plain(const swapper *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (i->op == ING_OP_ATOMIC) return i->flags & ING_IR_PRIVATE && !x->scan.used[id];
    return is_value(i) || i->op == ING_OP_STORE;
}

/* Values that the bounds of the inner loop may be made of. */
static bool is_there_before(const swapper *x, uint32_t id, uint32_t outer) {
    return !ing_ir_inside(&x->scan, id, outer) ||
           (ing_op_is_pure(at(x, id)->op) && !ing_ir_varies(&x->scan, id, outer));
}

static bool has_form(const swapper *x, uint32_t outer, uint32_t inner) {
    const ing_ir_inst *k = at(x, outer), *j = at(x, inner);
    uint32_t n = ing_ir_block_len(x->f, k->c);
    bool ok = j->op == ING_OP_LOOP && !(k->flags & ING_IR_PARALLEL) &&
              !(j->flags & ING_IR_PARALLEL) &&
              !(x->scan.has[inner] & ING_IR_HAS_LOOP) &&
              is_there_before(x, j->a, outer) && is_there_before(x, j->b, outer);
    for (uint32_t p = 0; ok && p + 1 < n; p++)
        ok = is_value(at(x, ing_ir_block_ids(x->f, k->c)[p]));
    for (uint32_t p = 0; ok && p < ing_ir_block_len(x->f, j->c); p++)
        ok = is_plain(x, ing_ir_block_ids(x->f, j->c)[p]);
    return ok;
}

/* ---- SWAP2 ---------------------------------------------------------------------------------- */

static bool writes(const swapper *x, const ing_ir_access *a) {
    return at(x, a->id)->op != ING_OP_LOAD;
}

static bool keep_apart(const swapper *x, uint32_t outer, uint32_t inner,
                       const ing_ir_access *a, const ing_ir_access *b) {
    if (!writes(x, a) && !writes(x, b)) return true;
    if (a->root != ING_OP_ARRAY || b->root != ING_OP_ARRAY) /* a local, only read */
        return writes(x, a) ? a->root == ING_OP_ARRAY : b->root == ING_OP_ARRAY;
    return a->of != b->of ||
           (a->elem && b->elem &&
            !ing_ir_may_meet_within(&x->scan, inner, outer, a->elem, b->elem));
}

static bool is_allowed(const swapper *x, uint32_t outer, uint32_t inner) {
    const ing_ir_scan *s = &x->scan;
    uint32_t first = s->first[outer], end = s->end[outer];
    if (end - first > MAX_TOUCHED) return false;
    for (uint32_t p = first; p < end; p++)
        for (uint32_t q = first; q <= p; q++)
            if (!keep_apart(x, outer, inner, &s->accesses.at[p], &s->accesses.at[q]))
                return false;
    return true;
}

/* ---- SWAP3 ---------------------------------------------------------------------------------- */

/* The axis along which elements are neighbours; ING_MAX_NDIM: there is none. */
static uint32_t last_axis(const swapper *x, uint32_t array) {
    const ing_type_info *t = ing_ir_type(x->m, x->m->args.at[array].type);
    const ing_place *p = t->place;
    if (!t->rank) return ING_MAX_NDIM;
    if (!p) return t->layout[t->rank - 1];
    bool dense = p->n_levels &&
                 p->level[p->n_levels - 1].stride == (int64_t)ing_place_elem_bytes(p);
    return dense ? p->level[p->n_levels - 1].axis : ING_MAX_NDIM;
}

/* Does an access step over more than a number from one iteration of the loop to the next? */
static bool strides(const swapper *x, const ing_ir_access *a, uint32_t loop) {
    uint32_t last = last_axis(x, a->of);
    const ing_ir_inst *e = at(x, a->elem);
    for (uint32_t k = 0; k < e->c; k++) {
        uint32_t index = x->f->extra.at[e->b + k];
        ing_ir_form form;
        if (!ing_ir_varies(&x->scan, index, loop)) continue;
        if (k != last) return true;
        ing_ir_form_of(x->f, index, &form);
        for (uint32_t j = 0; j < form.n; j++)
            if (ing_ir_varies(&x->scan, form.of[j], loop) &&
                (form.of[j] != loop || form.times[j] != 1))
                return true;
    }
    return false;
}

static bool pays(const swapper *x, uint32_t outer, uint32_t inner) {
    const ing_ir_scan *s = &x->scan;
    uint32_t now = 0, then = 0;
    for (uint32_t p = s->first[inner]; p < s->end[inner]; p++) {
        const ing_ir_access *a = &s->accesses.at[p];
        const ing_ir_inst *i = at(x, a->id);
        if (a->root != ING_OP_ARRAY || !a->elem) continue;
        bool exact = !ing_dtype_is_float((ing_dtype)i->type) || x->o->fast_math;
        if (i->op == ING_OP_ATOMIC && !exact) return false;
        now += strides(x, a, inner);
        then += strides(x, a, outer);
    }
    return then < now;
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* What stands in the outer loop before the inner one: all of it, or what the outer index does not change. */
static void put_before(const swapper *x, ing_ir_copy *c, uint32_t outer, bool all) {
    uint32_t block = ing_ir_at(c->from, outer)->c;
    for (uint32_t p = 0; p + 1 < ing_ir_block_len(c->from, block); p++) {
        uint32_t id = ing_ir_block_ids(c->from, block)[p];
        bool fixed = ing_op_is_pure(ing_ir_at(c->from, id)->op) &&
                     !ing_ir_varies(&x->scan, id, outer);
        if (fixed != all) ing_ir_copy_inst(c, id);
    }
}

static void put_swapped(const swapper *x, ing_ir_copy *c, uint32_t outer) {
    const ing_ir_inst *k = ing_ir_at(c->from, outer);
    uint32_t inner = inner_of(c->from, k);
    const ing_ir_inst *j = ing_ir_at(c->from, inner);
    c->b->loc = j->loc;
    put_before(x, c, outer, false);
    uint32_t top = c->map[inner] = ing_ir_loop_reserve(c->b, j->type);
    ing_ir_block_begin(c->b);
    uint32_t in = c->map[outer] = ing_ir_loop_reserve(c->b, k->type);
    ing_ir_block_begin(c->b);
    put_before(x, c, outer, true);
    ing_ir_copy_block(c, j->c);
    ing_ir_loop_finish(c->b, in, c->map[k->a], c->map[k->b], ing_ir_block_end(c->b),
                       k->flags);
    ing_ir_loop_finish(c->b, top, c->map[j->a], c->map[j->b], ing_ir_block_end(c->b),
                       j->flags);
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    const swapper *x = c->self;
    if (!x->swapped[id]) return false;
    put_swapped(x, c, id);
    return true;
}

/* ---- the pass ---------------------------------------------------------------------------------- */

static void judge(swapper *x, uint32_t outer) {
    uint32_t inner = inner_of(x->f, at(x, outer));
    if (!inner || !has_form(x, outer, inner) || !pays(x, outer, inner) ||
        !is_allowed(x, outer, inner) ||
        !ing_pass_assume_all_apart(x->m, x->o, &x->scan, outer))
        return;
    x->swapped[outer] = 1;
    x->any = true;
    ing_pass_remark(x->m, x->f, at(x, outer)->loc, ING_REMARK_SWAPPED, 0);
}

static bool run_task(ing_ir_mod *m, uint32_t func, const ing_pass_options *o) {
    swapper x = {.m = m, .f = m->funcs.at[func], .o = o};
    if (!ing_ir_has_serial_loops(x.f)) return true;
    uint32_t n = x.f->insts.len, *map = ing_calloc(n, sizeof *map);
    x.swapped = ing_calloc(n, 1);
    bool ok = ing_ir_scan_init(&x.scan, x.f) && map && x.swapped;
    for (uint32_t k = 0; ok && k < x.scan.loops.len; k++) judge(&x, x.scan.loops.at[k]);
    if (ok && x.any) {
        ing_ir_func old;
        ing_ir_builder b;
        ing_ir_rebuild_begin(&b, m, func, &old);
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = &x};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ing_ir_scan_fini(&x.scan);
    ing_free(x.swapped);
    ing_free(map);
    return ok;
}

ing_status ing_pass_swap(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    for (uint32_t k = 0; k < m->tasks.len && ing_ir_ok(m); k++)
        if (!run_task(m, m->tasks.at[k].func, o))
            return ing_fail(e, ING_MEMORY, "no memory for a pass");
    return ing_pass_done(m, e);
}
