/* Reductions: which updates of a parallel loop go to lanes. The rules stand in reduce.h;
 * reduce_emit.c writes the loop. Must never take an update whose old value is used or whose
 * target anything else in the loop touches. */
#include "pass/reduce.h"

#include <string.h>

enum {
    CHUNK_UNITS = 1
        << 18,      /* rough instructions per chunk, at most: 65 us of scalar code */
    LONG_SHIFT = 6, /* of loops whose cost nobody knows */
    MIN_SHIFT = 4,
};

typedef struct target { /* what an address points into */
    uint16_t op;        /* ARRAY, BUFFER; else 0 */
    uint32_t a;
} target;

typedef struct fate { /* of one target in the loop */
    target of;
    uint8_t kind; /* of its first update, as lanes have it, + 1 */
    bool spoiled; /* R2: something else touches it */
    bool judged;  /* R5 was asked ... */
    bool granted; /* ... and what it said */
} fate;

typedef struct finder {
    ing_reduce r;
    const ing_pass_options *o;
    const ing_pass_funcs *funcs;
    uint8_t *inside; /* per instruction: in the parallel loop */
    uint8_t *used;   /* per instruction: its value is an operand of another */
    ing_map numbers; /* target -> its number in fates + 1 */
    ing_vec(fate) fates;
    bool calls, failed;
} finder;

static const ing_ir_inst *at(const finder *x, uint32_t id) {
    return ing_ir_at(x->r.f, id);
}

static target target_of(const finder *x, uint32_t ref) {
    const ing_ir_inst *i = at(x, ref);
    while (i->op == ING_OP_ELEM || i->op == ING_OP_MEMBER || i->op == ING_OP_MEMBER_DYN)
        i = at(x, i->a);
    bool known = i->op == ING_OP_ARRAY || i->op == ING_OP_BUFFER;
    return known ? (target){i->op, i->a} : (target){0, 0};
}

/* ---- the loop ----------------------------------------------------------------------------- */

static bool uses_are_invariant(const finder *x, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->r.f, i, &u);
    bool all = true;
    for (uint32_t k = 0; k < u.n_fixed; k++) all &= x->r.invariant[u.fixed[k]];
    for (uint32_t k = 0; k < u.n_list; k++) all &= x->r.invariant[u.list[k]];
    return all;
}

static void note_uses(finder *x, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->r.f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) x->used[u.fixed[k]] = 1;
    for (uint32_t k = 0; k < u.n_list; k++) x->used[u.list[k]] = 1;
}

/* What is defined outside the parallel loop is the same in each iteration, but for the index
 * of a loop over rows; inside it, what is computed from such values alone. */
static void walk(finder *x, uint32_t block, bool inside) {
    const ing_ir_func *f = x->r.f;
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++) {
        uint32_t id = ing_ir_block_ids(f, block)[k], blocks[2];
        const ing_ir_inst *i = at(x, id);
        bool parallel = i->op == ING_OP_LOOP && (i->flags & ING_IR_PARALLEL);
        bool pure = ing_op_get((ing_op)i->op)->flags & ING_OPF_P;
        bool piece = i->op >= ING_OP_TASK_BEGIN && i->op <= ING_OP_TASK_CHUNK;
        bool once = !inside && block == f->body && i->op != ING_OP_LOOP;
        x->inside[id] = inside;
        x->r.invariant[id] = !piece && (once || (pure && uses_are_invariant(x, i)));
        note_uses(x, i);
        if (parallel) x->r.loop = id;
        x->r.random |= i->op == ING_OP_RANDOM;
        x->calls |= inside && i->op == ING_OP_CALL;
        uint32_t n = ing_ir_inst_blocks(i, blocks);
        for (uint32_t j = 0; j < n; j++) walk(x, blocks[j], inside || parallel);
    }
}

/* ---- R1, R2 ---------------------------------------------------------------------------------- */

static bool qualifies(const finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (i->op != ING_OP_ATOMIC || !x->inside[id] || x->used[id]) return false;
    if (i->c == ING_IR_ATOMIC_XCHG || i->type == ING_U1) return false;
    return x->r.invariant[i->a] && target_of(x, i->a).op;
}

static uint8_t lane_kind(uint32_t kind) {
    return kind == ING_IR_ATOMIC_SUB ? ING_IR_ATOMIC_ADD : (uint8_t)kind;
}

static fate *fate_of(finder *x, target t) {
    ing_hash128 key = {t.op, t.a};
    uint32_t number = ing_map_get(&x->numbers, key);
    if (!number) {
        fate fresh = {.of = t};
        number = x->fates.len + 1;
        bool ok = ing_vec_push(&x->fates, fresh);
        x->failed |= !ok || !ing_map_put(&x->numbers, key, number);
        if (!ok) return NULL;
    }
    return &x->fates.at[number - 1];
}

static void spoil(finder *x, uint32_t ref) {
    target t = target_of(x, ref);
    fate *f = t.op ? fate_of(x, t) : NULL;
    if (f) f->spoiled = true;
}

static void note_update(finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    uint8_t kind = lane_kind(i->c);
    fate *f = qualifies(x, id) ? fate_of(x, target_of(x, i->a)) : NULL;
    if (!f) {
        spoil(x, i->a);
        return;
    }
    f->spoiled |= f->kind && f->kind != kind + 1;
    f->kind = (uint8_t)(kind + 1);
}

/* What instruction `id` of the loop does to targets. */
static void note_inst(finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    switch (i->op) {
    case ING_OP_LOAD:
    case ING_OP_STORE:
    case ING_OP_CAS: spoil(x, i->a); break;
    case ING_OP_ATOMIC: note_update(x, id); break;
    case ING_OP_CALL:
        for (uint32_t k = 0; k < i->c; k++) spoil(x, x->r.f->extra.at[i->b + k]);
        break;
    default: break;
    }
}

/* Calls may reach arrays that the loop does not name. */
static void note_named(finder *x) {
    for (uint32_t k = 0; k < x->r.m->args.len && x->calls; k++) {
        target t = {ING_OP_ARRAY, k};
        fate *f = x->funcs->named[k] ? fate_of(x, t) : NULL;
        if (f) f->spoiled = true;
    }
}

/* R5: all other arrays of the loop lie apart from this one. */
static bool apart(finder *x, fate *f) {
    ing_ir_mod *m = x->r.m;
    uint32_t n = 0, array = f->of.a;
    if (f->of.op != ING_OP_ARRAY) return true;
    for (uint32_t k = 0; k < x->fates.len; k++)
        n += x->fates.at[k].of.op == ING_OP_ARRAY && x->fates.at[k].of.a != array;
    if (!ing_pass_may_assume(m, x->o, n)) return false;
    for (uint32_t k = 0; k < x->fates.len; k++) {
        target t = x->fates.at[k].of;
        if (t.op == ING_OP_ARRAY && t.a != array) ing_pass_assume_apart(m, array, t.a);
    }
    return true;
}

static bool alone(finder *x, uint32_t id) {
    fate *f = fate_of(x, target_of(x, at(x, id)->a));
    if (!f || f->spoiled) return false;
    if (!f->judged) f->granted = apart(x, f);
    f->judged = true;
    return f->granted;
}

static void take(finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    ing_dtype t = (ing_dtype)i->type;
    bool is_float = ing_dtype_is_float(t);
    x->r.sums[x->r.n++] = (ing_reduce_sum){.id = id,
                                           .ref = i->a,
                                           .kind = lane_kind(i->c),
                                           .final = (uint8_t)i->c,
                                           .lane = t == ING_F16 ? ING_F32 : t,
                                           .part = is_float ? ING_F64 : t};
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* Iterations per chunk: decided by the code alone. */
static uint8_t chunk_shift(const ing_ir_task *t) {
    uint8_t shift = t->may_run_long ? LONG_SHIFT : ING_IR_MAX_CHUNK_SHIFT;
    while (shift > MIN_SHIFT && ((uint64_t)t->cost << shift) > CHUNK_UNITS) shift--;
    return shift;
}

static bool find(finder *x) {
    uint32_t n = x->r.f->insts.len;
    walk(x, x->r.f->body, false);
    for (uint32_t id = 1; id < n; id++)
        if (x->inside[id]) note_inst(x, id);
    note_named(x);
    for (uint32_t id = 1; id < n && x->r.n < ING_IR_MAX_PARTIALS; id++)
        if (qualifies(x, id) && alone(x, id)) take(x, id);
    return !x->failed;
}

static bool run_task(ing_ir_mod *m, uint32_t k, const ing_pass_options *o,
                     const ing_pass_funcs *funcs) {
    ing_ir_task *t = &m->tasks.at[k];
    ing_ir_func *f = m->funcs.at[t->func];
    size_t n = f->insts.len;
    finder x = {.r = {.m = m, .task = t, .f = f}, .o = o, .funcs = funcs};
    x.r.invariant = ing_calloc(n, 1);
    x.inside = ing_calloc(n, 1);
    x.used = ing_calloc(n, 1);
    ing_map_init(&x.numbers);
    bool ok = x.r.invariant && x.inside && x.used && find(&x);
    if (ok && x.r.n) {
        x.r.random |= x.calls && funcs->random;
        t->chunk_shift = chunk_shift(t);
        t->partials = x.r.n;
        ok = ing_reduce_emit(&x.r);
    }
    ing_map_fini(&x.numbers);
    ing_vec_fini(&x.fates);
    ing_free(x.r.invariant);
    ing_free(x.inside);
    ing_free(x.used);
    return ok;
}

ing_status ing_pass_reduce(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs;
    bool ok = ing_pass_funcs_init(&funcs, m);
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++) {
        if (m->tasks.at[k].kind == ING_IR_TASK_RANGE) ok = run_task(m, k, o, &funcs);
    }
    ing_pass_funcs_fini(&funcs);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
