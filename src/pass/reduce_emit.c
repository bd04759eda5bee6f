/* Writes the loop over chunks, blocks and lanes of a reduction, and the code that combines
 * what the chunks left. Called by reduce.c, decides nothing; reduce.h draws the result. */
#include "pass/reduce.h"

typedef struct emitter {
    ing_reduce *r;
    ing_ir_builder b;
    ing_ir_func old;
    ing_ir_copy copy;
    uint32_t lanes;                      /* per sum */
    uint16_t wide;                       /* flags of loops over all of them (REDUCE8) */
    uint32_t whole[ING_IR_MAX_PARTIALS]; /* lanes of whole blocks */
    uint32_t rest[ING_IR_MAX_PARTIALS];  /* and of others, maybe the same */
    const uint32_t *refs;                /* those that are updated now */
    uint32_t branch[ING_IR_MAX_PARTIALS]; /* what an iteration adds (REDUCE7) */
    uint32_t begin, end;                  /* of the chunk, i64 */
    uint32_t lane;                        /* index, in the parallel loop */
} emitter;

/* ---- small pieces ---------------------------------------------------------------------- */

static uint32_t op2(emitter *x, ing_op op, ing_type t, uint32_t a, uint32_t b) {
    return ing_ir_emit_count(&x->b, op, t, a, b);
}

static uint32_t number(emitter *x, ing_type t, int64_t v) {
    return ing_ir_const_int(&x->b, (ing_dtype)t, v);
}

static uint32_t cast(emitter *x, ing_dtype to, uint32_t id, ing_dtype from) {
    return from == to ? id : ing_ir_emit(&x->b, ING_OP_CAST, to, id, 0, 0);
}

static uint32_t place(emitter *x, ing_type t) {
    return ing_ir_emit(&x->b, ING_OP_ALLOCA, ing_ir_type_ref(x->r->m, t), 0, 0, 0);
}

static void update(emitter *x, uint8_t kind, ing_dtype t, uint32_t ref, uint32_t v) {
    uint32_t id = ing_ir_emit(&x->b, ING_OP_ATOMIC, t, ref, v, kind);
    if (id) x->b.func->insts.at[id].flags |= ING_IR_PRIVATE;
}

static uint32_t lane_ref(emitter *x, uint32_t k, uint32_t index) {
    ing_type t = ing_ir_type_ref(x->r->m, x->r->sums[k].lane);
    return ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, t, x->refs[k], index, 0);
}

/* What leaves every value as it is (REDUCE3). */
static uint32_t neutral(emitter *x, const ing_reduce_sum *s, ing_dtype t) {
    if (!ing_dtype_is_float(t))
        return number(x, t, (int64_t)ing_ir_neutral((ing_ir_atomic)s->kind, t));
    switch (s->kind) {
    case ING_IR_ATOMIC_MUL: return ing_ir_const_float(&x->b, t, 1.0);
    case ING_IR_ATOMIC_MIN:
    case ING_IR_ATOMIC_MAX: return ing_ir_const_float(&x->b, t, __builtin_nan(""));
    default: /* a difference takes the sum away, so there 0.0 is neutral */
        return ing_ir_const_float(&x->b, t, s->final == ING_IR_ATOMIC_SUB ? 0.0 : -0.0);
    }
}

/* Opens a loop over [from, to); close_loop ends it. */
static uint32_t open_loop(emitter *x, ing_type t) {
    uint32_t loop = ing_ir_loop_reserve(&x->b, t);
    ing_ir_block_begin(&x->b);
    return loop;
}

static void close_loop(emitter *x, uint32_t loop, uint32_t from, uint32_t to,
                       uint16_t flags) {
    ing_ir_loop_finish(&x->b, loop, from, to, ing_ir_block_end(&x->b), flags);
}

/* ---- lanes of a chunk -------------------------------------------------------------------- */

static void put_lanes(emitter *x) {
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        ing_type t = ing_ir_type_tensor(x->r->m, s->lane, x->lanes, 1, 1);
        x->rest[k] = place(x, t);
        x->whole[k] = x->r->twice ? place(x, t) : x->rest[k];
    }
    uint32_t zero = number(x, ING_I64, 0), all = number(x, ING_I64, x->lanes);
    uint32_t loop = open_loop(x, ING_I64);
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        uint32_t v = neutral(x, s, s->lane);
        x->refs = x->rest;
        ing_ir_emit(&x->b, ING_OP_STORE, 0, lane_ref(x, k, loop), v, 0);
        x->refs = x->whole;
        if (x->r->twice)
            ing_ir_emit(&x->b, ING_OP_STORE, 0, lane_ref(x, k, loop), v, 0);
    }
    close_loop(x, loop, zero, all, x->wide);
}

/* rest[k] with lane[k]. */
static void put_join(emitter *x) {
    uint32_t zero = number(x, ING_I64, 0), all = number(x, ING_I64, x->lanes);
    uint32_t loop = open_loop(x, ING_I64);
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        x->refs = x->whole;
        uint32_t from = lane_ref(x, k, loop);
        uint32_t v = ing_ir_emit(&x->b, ING_OP_LOAD, s->lane, from, 0, 0);
        x->refs = x->rest;
        update(x, s->kind, s->lane, lane_ref(x, k, loop), v);
    }
    close_loop(x, loop, zero, all, x->wide);
}

/* lane[k] with lane[k + w], for k < w. */
static void put_level(emitter *x, uint32_t w) {
    uint32_t zero = number(x, ING_I64, 0);
    uint32_t lane = open_loop(x, ING_I64);
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        uint32_t other = lane_ref(x, k, op2(x, ING_OP_ADD, ING_I64, lane, w));
        uint32_t v = ing_ir_emit(&x->b, ING_OP_LOAD, s->lane, other, 0, 0);
        update(x, s->kind, s->lane, lane_ref(x, k, lane), v);
    }
    close_loop(x, lane, zero, w, x->wide);
}

/* All levels, w = L/2, L/4, ... 1. */
static void put_levels(emitter *x) {
    if (x->wide) {
        for (uint32_t w = x->lanes / 2; w; w /= 2) put_level(x, number(x, ING_I64, w));
        return;
    }
    uint32_t zero = number(x, ING_I64, 0);
    uint32_t half = number(x, ING_I64, x->lanes / 2);
    uint32_t levels = number(x, ING_I64, __builtin_ctz(x->lanes));
    uint32_t level = open_loop(x, ING_I64);
    put_level(x, op2(x, ING_OP_SHR, ING_I64, half, level));
    close_loop(x, level, zero, levels, 0);
}

/* The lanes become one, which is the partial result. */
static void put_tree(emitter *x, uint32_t chunk) {
    if (x->r->twice) put_join(x);
    x->refs = x->rest;
    uint32_t zero = number(x, ING_I64, 0);
    put_levels(x);
    uint32_t first = op2(x, ING_OP_MUL, ING_I64, chunk, number(x, ING_I64, x->r->n));
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        uint32_t v =
            ing_ir_emit(&x->b, ING_OP_LOAD, s->lane, lane_ref(x, k, zero), 0, 0);
        uint32_t to = op2(x, ING_OP_ADD, ING_I64, first, number(x, ING_I64, k));
        uint32_t ref = ing_ir_emit(&x->b, ING_OP_PARTIAL,
                                   ing_ir_type_ref(x->r->m, s->part), to, 0, 0);
        ing_ir_emit(&x->b, ING_OP_STORE, 0, ref, cast(x, s->part, v, s->lane), 0);
    }
}

/* ---- the loop itself ---------------------------------------------------------------------- */

/* One iteration; what it updates in branches is added at its end. */
static void put_iteration(emitter *x, const ing_ir_inst *i) {
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        if (!s->branch) continue;
        x->branch[k] = place(x, s->lane);
        ing_ir_emit(&x->b, ING_OP_STORE, 0, x->branch[k], neutral(x, s, s->lane), 0);
    }
    ing_ir_copy_block(&x->copy, i->c);
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        if (!s->branch) continue;
        uint32_t v = ing_ir_emit(&x->b, ING_OP_LOAD, s->lane, x->branch[k], 0, 0);
        update(x, s->kind, s->lane, lane_ref(x, k, x->lane), v);
    }
}

/* Iterations base .. base + n, each in its lane. */
static void put_block(emitter *x, uint32_t id, const ing_ir_inst *i, uint32_t base,
                      uint32_t n, uint16_t flags) {
    uint32_t zero = number(x, i->type, 0);
    x->lane = open_loop(x, i->type);
    x->copy.map[id] = op2(x, ING_OP_ADD, i->type, base, x->lane);
    put_iteration(x, i);
    close_loop(x, x->lane, zero, n, flags);
}

static void put_random(emitter *x, uint32_t id, const ing_ir_inst *i) { /* REDUCE4 */
    uint32_t loop = x->copy.map[id] = open_loop(x, i->type);
    x->lane = op2(x, ING_OP_AND, i->type, loop, number(x, i->type, x->lanes - 1));
    put_iteration(x, i);
    close_loop(x, loop, x->copy.map[i->a], x->copy.map[i->b], ING_IR_PARALLEL);
}

/* The parallel loop, cut into blocks of as many iterations as there are lanes. */
static void put_blocks(emitter *x, uint32_t id, const ing_ir_inst *i) {
    ing_type t = i->type;
    uint32_t from = x->copy.map[i->a], to = x->copy.map[i->b];
    uint32_t width = number(x, t, x->lanes), zero = number(x, t, 0);
    uint32_t shift = number(x, t, __builtin_ctz(x->lanes));
    uint32_t trips = op2(x, ING_OP_SUB, t, to, from), over = trips;
    if (!x->r->twice) over = op2(x, ING_OP_ADD, t, trips, number(x, t, x->lanes - 1));
    uint32_t blocks = op2(x, ING_OP_SAR, t, over, shift);
    x->refs = x->whole;
    uint32_t block = open_loop(x, t);
    uint32_t done = op2(x, ING_OP_MUL, t, block, width);
    uint32_t base = op2(x, ING_OP_ADD, t, from, done), n = width;
    if (!x->r->twice)
        n = op2(x, ING_OP_MIN, t, op2(x, ING_OP_SUB, t, trips, done), width);
    put_block(x, id, i, base, n, ING_IR_PARALLEL);
    close_loop(x, block, zero, blocks, 0);
    if (!x->r->twice) return;
    x->refs = x->rest;
    blocks = op2(x, ING_OP_MAX, t, blocks, zero); /* there may be no iteration */
    done = op2(x, ING_OP_MUL, t, blocks, width);
    base = op2(x, ING_OP_ADD, t, from, done);
    put_block(x, id, i, base, op2(x, ING_OP_SUB, t, trips, done), ING_IR_RARE);
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    emitter *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (i->op == ING_OP_TASK_BEGIN || i->op == ING_OP_TASK_END) {
        uint32_t of = i->op == ING_OP_TASK_BEGIN ? x->begin : x->end;
        c->map[id] = cast(x, (ing_dtype)i->type, of, ING_I64);
        return true;
    }
    if (id == x->r->loop) {
        if (x->r->random)
            put_random(x, id, i);
        else
            put_blocks(x, id, i);
        return true;
    }
    for (uint32_t k = 0; k < x->r->n; k++) {
        const ing_reduce_sum *s = &x->r->sums[k];
        if (s->id != id) continue;
        uint32_t v = cast(x, s->lane, c->map[i->b], (ing_dtype)i->type);
        if (s->branch)
            ing_ir_emit(&x->b, ING_OP_STORE, 0, x->branch[k], v, 0);
        else
            update(x, s->kind, s->lane, lane_ref(x, k, x->lane), v);
        return true;
    }
    return false;
}

static void put_chunks(emitter *x, uint32_t tb, uint32_t te, uint32_t tc) {
    uint8_t shift = x->r->task->chunk_shift;
    int64_t size = (int64_t)1 << shift;
    uint32_t zero = number(x, ING_I64, 0), width = number(x, ING_I64, size);
    uint32_t trips = op2(x, ING_OP_SUB, ING_I64, te, tb);
    uint32_t over = op2(x, ING_OP_SUB, ING_I64, trips, number(x, ING_I64, 1));
    uint32_t last = op2(x, ING_OP_SAR, ING_I64, over, number(x, ING_I64, shift));
    uint32_t n = op2(x, ING_OP_ADD, ING_I64, last, number(x, ING_I64, 1));
    uint32_t chunk = open_loop(x, ING_I64);
    uint32_t done = op2(x, ING_OP_MUL, ING_I64, chunk, width);
    uint32_t left = op2(x, ING_OP_SUB, ING_I64, trips, done);
    x->begin = op2(x, ING_OP_ADD, ING_I64, tb, done);
    x->end =
        op2(x, ING_OP_ADD, ING_I64, x->begin, op2(x, ING_OP_MIN, ING_I64, left, width));
    put_lanes(x);
    ing_ir_copy_block(&x->copy, x->old.body);
    put_tree(x, op2(x, ING_OP_ADD, ING_I64, tc, chunk));
    close_loop(x, chunk, zero, n, 0);
}

/* ---- combining ------------------------------------------------------------------------------ */

/* Makes an invariant value again; as deep as an address is. */
static uint32_t again(emitter *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(&x->old, id);
    ing_ir_uses u;
    if (x->copy.map[id]) return x->copy.map[id];
    ing_ir_inst_uses(&x->old, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) again(x, u.fixed[k]);
    for (uint32_t k = 0; k < u.n_list; k++) again(x, u.list[k]);
    ing_ir_copy_inst(&x->copy, id);
    return x->copy.map[id];
}

static void put_total(emitter *x, uint32_t k, uint32_t chunks) {
    const ing_reduce_sum *s = &x->r->sums[k];
    ing_dtype t = (ing_dtype)ing_ir_at(&x->old, s->id)->type;
    uint32_t zero = number(x, ING_I64, 0), step = number(x, ING_I64, x->r->n);
    uint32_t sum = place(x, s->part);
    ing_ir_emit(&x->b, ING_OP_STORE, 0, sum, neutral(x, s, s->part), 0);
    uint32_t loop = open_loop(x, ING_I64);
    uint32_t from = op2(x, ING_OP_MUL, ING_I64, loop, step);
    from = op2(x, ING_OP_ADD, ING_I64, from, number(x, ING_I64, k));
    ing_type ref = ing_ir_type_ref(x->r->m, s->part);
    uint32_t part = ing_ir_emit(&x->b, ING_OP_PARTIAL, ref, from, 0, 0);
    update(x, s->kind, s->part, sum,
           ing_ir_emit(&x->b, ING_OP_LOAD, s->part, part, 0, 0));
    close_loop(x, loop, zero, chunks, ING_IR_RARE);
    uint32_t v = ing_ir_emit(&x->b, ING_OP_LOAD, s->part, sum, 0, 0);
    uint32_t term = cast(x, t, v, s->part);
    ing_ir_emit(&x->b, ING_OP_ATOMIC, t, again(x, s->ref), term, s->final);
}

static void put_combine(emitter *x, uint32_t chunks) {
    ing_ir_block_begin(&x->b);
    for (uint32_t k = 0; k < x->r->n; k++) put_total(x, k, chunks);
    ing_ir_emit(&x->b, ING_OP_RETURN, 0, 0, 0, 0);
}

bool ing_reduce_emit(ing_reduce *r) {
    emitter x = {.r = r};
    uint32_t func = r->task->func, n = r->f->insts.len;
    uint32_t *map = ing_calloc(n, sizeof *map);
    if (!map) return false;
    x.lanes = r->lanes;
    x.wide = r->twice ? ING_IR_WIDE : 0;
    x.refs = x.rest;
    ing_ir_rebuild_begin(&x.b, r->m, func, &x.old);
    x.copy = (ing_ir_copy){.b = &x.b, .from = &x.old, .map = map, .self = &x};
    uint32_t tb = ing_ir_emit(&x.b, ING_OP_TASK_BEGIN, ING_I64, 0, 0, 0);
    uint32_t te = ing_ir_emit(&x.b, ING_OP_TASK_END, ING_I64, 0, 0, 0);
    uint32_t tc = ing_ir_emit(&x.b, ING_OP_TASK_CHUNK, ING_I64, 0, 0, 0);
    uint32_t last = ing_ir_emit(&x.b, ING_OP_LT, 0, tc, number(&x, ING_I64, 0), 0);
    put_combine(&x, te);
    uint32_t block = ing_ir_block_end(&x.b);
    ing_ir_emit(&x.b, ING_OP_IF, 0, last, block, 0);
    for (uint32_t k = 0; k < n; k++) map[k] = 0; /* what the branch made is its own */
    x.copy.hook = hook;
    put_chunks(&x, tb, te, tc);
    ing_ir_rebuild_end(&x.b, &x.old);
    ing_free(map);
    return ing_ir_ok(r->m);
}
