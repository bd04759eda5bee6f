/* Stride: a parallel loop that does something for every m-th index alone, as one colour of a
 * checkerboard, runs over those:
 *
 *   loop parallel c = a, b                  first = a + (r - e(a)) mod m
 *     if (e + c) mod m == r { body(c) }  =>  loop parallel k = 0, (b - first + m - 1) / m
 *                                             body(first + k * m)
 *
 * LLVM would take each index and branch; masked stores and scattered ones are slower still (red cells
 * of 512 x 512: 0.80 ms, masked 4.7, scattered 0.96, one by one 0.50; PLAN8 in src/gen/llvm_plan.c makes
 * vectors of such loops, and FLOW7 their index). Runs after shape.
 * Rules
 *  STRIDE1 the loop holds nothing but values and one branch without an else; the remainder is by a
 *     constant power of two, in which wrapping changes nothing, and e is the same in all iterations.
 *  STRIDE2 the branch writes to arrays, at places of the iteration: what it only sums up is in vectors
 *     without this (reduce.h).
 *  STRIDE3 no random numbers: their stream is made of the index of the loop. */
#include "pass/pass_int.h"

enum { MAX_STEP = 16 };

typedef struct strider {
    ing_ir_mod *m;
    ing_ir_scan scan;
    ing_ir_builder b;
    ing_ir_func old;
    uint32_t loop, branch; /* the parallel loop, and the IF in it */
    uint32_t value;        /* e + c */
    uint32_t step, rest;
    bool minus; /* e - c */
} strider;

/* ---- finding ----------------------------------------------------------------------------------- */

static bool const_of(const ing_ir_func *f, uint32_t id, uint64_t *v) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    *v = ing_ir_const_bits(i);
    return i->op == ING_OP_CONST;
}

/* value mod step == rest? */
static bool is_remainder(strider *x, const ing_ir_func *f, uint32_t cond) {
    const ing_ir_inst *eq = ing_ir_at(f, cond), *mod = ing_ir_at(f, eq->a);
    uint64_t rest, step;
    if (eq->op != ING_OP_EQ || !const_of(f, eq->b, &rest)) return false;
    bool mask = mod->op == ING_OP_AND;
    if ((!mask && mod->op != ING_OP_MOD) || !const_of(f, mod->b, &step)) return false;
    if (mask) step++;
    bool power = step >= 2 && step <= MAX_STEP && (step & (step - 1)) == 0;
    x->value = mod->a;
    x->step = (uint32_t)step;
    x->rest = (uint32_t)rest;
    return power && rest < step && ing_ir_at(f, mod->a)->type == ING_I32;
}

static bool counts_up(strider *x, const ing_ir_func *f) {
    ing_ir_form form;
    uint64_t times = 0;
    ing_ir_form_of(f, x->value, &form);
    for (uint32_t k = 0; k < form.n; k++) {
        if (form.of[k] == x->loop)
            times = form.times[k];
        else if (ing_ir_varies(&x->scan, form.of[k], x->loop))
            return false;
    }
    x->minus = times == UINT64_MAX;
    return form.known && form.bits >= 32 && (times == 1 || x->minus);
}

static bool writes_own(const strider *x, const ing_ir_func *f) { /* STRIDE2 */
    const ing_ir_scan *s = &x->scan;
    bool any = false;
    for (uint32_t k = s->first[x->loop]; k < s->end[x->loop]; k++) {
        const ing_ir_access *a = &s->accesses.at[k];
        const ing_ir_inst *i = ing_ir_at(f, a->id);
        bool update = i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
        if (update && !(i->flags & ING_IR_PRIVATE) && a->root != ING_OP_ALLOCA)
            return false;
        any |= (update || i->op == ING_OP_STORE) && a->root == ING_OP_ARRAY &&
               ing_ir_varies(s, a->ref, x->loop);
    }
    return any;
}

static bool loop_suits(strider *x, const ing_ir_func *f, const ing_pass_funcs *funcs) {
    const ing_ir_inst *l = ing_ir_at(f, x->loop);
    uint32_t n = ing_ir_block_len(f, l->c), has = x->scan.has[x->loop];
    bool random = has & ING_IR_HAS_RANDOM || (has & ING_IR_HAS_CALL && funcs->random);
    if (random || !n || l->type != ING_I32 || has & ING_IR_HAS_EXIT) return false;
    if (!writes_own(x, f)) return false;
    x->branch = ing_ir_block_ids(f, l->c)[n - 1];
    for (uint32_t k = 0; k + 1 < n; k++)
        if (!ing_op_is_pure(ing_ir_at(f, ing_ir_block_ids(f, l->c)[k])->op))
            return false;
    const ing_ir_inst *i = ing_ir_at(f, x->branch);
    return i->op == ING_OP_IF && !i->c && is_remainder(x, f, i->a) && counts_up(x, f);
}

/* ---- writing ----------------------------------------------------------------------------------- */

static uint32_t op2(strider *x, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(&x->b, op, ING_I32, a, b, 0);
}

static uint32_t counted(strider *x, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit_count(&x->b, op, ING_I32, a, b);
}

static uint32_t number(strider *x, int64_t v) {
    return ing_ir_const_int(&x->b, ING_I32, v);
}

/* The values of the body, with the index that the map has for the loop. */
static void put_values(ing_ir_copy *c, const strider *x) {
    const ing_ir_inst *l = ing_ir_at(c->from, x->loop);
    for (uint32_t k = 0; k + 1 < ing_ir_block_len(c->from, l->c); k++)
        ing_ir_copy_inst(c, ing_ir_block_ids(c->from, l->c)[k]);
}

static void put_loop(strider *x, ing_ir_copy *c) {
    const ing_ir_inst *l = ing_ir_at(c->from, x->loop);
    uint32_t from = c->map[l->a], to = c->map[l->b], mask = number(x, x->step - 1);
    c->map[x->loop] = from;
    put_values(c, x);
    uint32_t rest = number(x, x->rest), at = c->map[x->value];
    uint32_t off =
        x->minus ? op2(x, ING_OP_SUB, at, rest) : op2(x, ING_OP_SUB, rest, at);
    uint32_t skip = op2(x, ING_OP_AND, off, mask);
    /* the trips, without what could wrap: those of the whole loop, less what is skipped */
    uint32_t none = number(x, 0);
    uint32_t trips = op2(x, ING_OP_MAX, counted(x, ING_OP_SUB, to, from), none);
    uint32_t left = counted(x, ING_OP_ADD, counted(x, ING_OP_SUB, trips, skip), mask);
    uint32_t shift = number(x, __builtin_ctz(x->step));
    uint32_t n = op2(x, ING_OP_SAR, left, shift);
    uint32_t zero = number(x, 0), first = counted(x, ING_OP_ADD, from, skip);
    uint32_t loop = ing_ir_loop_reserve(&x->b, ING_I32);
    ing_ir_block_begin(&x->b);
    uint32_t steps = counted(x, ING_OP_MUL, loop, number(x, x->step));
    c->map[x->loop] = counted(x, ING_OP_ADD, first, steps);
    put_values(c, x);
    ing_ir_copy_block(c, ing_ir_at(c->from, x->branch)->b);
    ing_ir_loop_finish(&x->b, loop, zero, n, ing_ir_block_end(&x->b),
                       l->flags | ING_IR_STRIDED);
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    strider *x = c->self;
    if (id != x->loop) return false;
    put_loop(x, c);
    return true;
}

static bool run_task(ing_ir_mod *m, uint32_t func, const ing_pass_funcs *funcs) {
    ing_ir_func *f = m->funcs.at[func];
    strider x = {.m = m};
    bool ok = ing_ir_scan_init(&x.scan, f);
    x.loop = ok ? x.scan.parallel : 0;
    if (x.loop && loop_suits(&x, f, funcs)) {
        uint32_t *map = ing_calloc(f->insts.len, sizeof *map);
        ok = map != NULL;
        if (ok) {
            ing_ir_rebuild_begin(&x.b, m, func, &x.old);
            ing_ir_copy c = {
                .b = &x.b, .from = &x.old, .map = map, .hook = hook, .self = &x};
            ing_ir_copy_block(&c, x.old.body);
            ing_ir_rebuild_end(&x.b, &x.old);
        }
        ing_free(map);
    }
    ing_ir_scan_fini(&x.scan);
    return ok;
}

/* At the cost of a look: most loops have no such branch. */
static bool may_suit(const ing_ir_func *f) {
    bool branch = false, rest = false;
    for (uint32_t k = 1; k < f->insts.len; k++) {
        uint16_t op = ing_ir_at(f, k)->op;
        branch |= op == ING_OP_IF;
        rest |= op == ING_OP_AND || op == ING_OP_MOD;
    }
    return branch && rest;
}

ing_status ing_pass_stride(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs;
    (void)o;
    bool ok = ing_pass_funcs_init(&funcs, m);
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        if (t->kind == ING_IR_TASK_RANGE && may_suit(m->funcs.at[t->func]))
            ok = run_task(m, t->func, &funcs);
    }
    ing_pass_funcs_fini(&funcs);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
