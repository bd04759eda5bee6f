/* Random numbers as arithmetic: a RANDOM becomes the definition of src/ir/random.c spelled out, over
 * a local that counts. So backward code draws the numbers of any iteration and call again, in
 * whatever order it makes them: the counter is a local like others. Called first by both modes.
 *  DRAWS1 a piece of the kernel that draws (a parallel loop, or what stands between two of them)
 *     has the place that the forward kernel's task has: its number among those that draw.
 *  DRAWS2 funcs that draw get two more parameters: the counter, and what is mixed in. */
#include "ad/ad_int.h"

typedef struct draws {
    ing_ir_mod *m;
    ing_ir_builder b;
    ing_ir_copy copy;
    const uint8_t *draws; /* per func */
    uint32_t state, mask; /* of the piece or func: a ref<u64>, a u64 */
    uint32_t place;       /* of the next piece */
} draws;

static uint32_t word(draws *x, uint64_t v) {
    return ing_ir_const_int(&x->b, ING_U64, (int64_t)v);
}

static uint32_t op(draws *x, ing_op o, uint32_t a, uint32_t b) {
    return ing_ir_emit(&x->b, o, ING_U64, a, b, 0);
}

/* ing_ir_mix */
static uint32_t mix(draws *x, uint32_t v, uint32_t mask) {
    v = op(x, ING_OP_XOR, v, op(x, ING_OP_SHR, v, word(x, 30)));
    v = op(x, ING_OP_MUL, v, word(x, ING_MIX_A));
    if (mask) v = op(x, ING_OP_XOR, v, mask);
    v = op(x, ING_OP_XOR, v, op(x, ING_OP_SHR, v, word(x, 27)));
    v = op(x, ING_OP_MUL, v, word(x, ING_MIX_B));
    return op(x, ING_OP_XOR, v, op(x, ING_OP_SHR, v, word(x, 31)));
}

/* RAND2: what an iteration starts from. */
static void begin(draws *x, uint32_t index) {
    uint32_t first = ing_ir_emit(&x->b, ING_OP_SEED, ING_U64, 0, x->place, 0);
    uint32_t second = ing_ir_emit(&x->b, ING_OP_SEED, ING_U64, 1, x->place, 0);
    if (index) {
        bool wide = x->b.func->insts.at[index].type == ING_I64;
        uint32_t at =
            wide ? index : ing_ir_emit(&x->b, ING_OP_CAST, ING_I64, index, 0, 0);
        at = ing_ir_emit(&x->b, ING_OP_CAST, ING_U64, at, 0, 0);
        first = op(x, ING_OP_ADD, first, op(x, ING_OP_MUL, at, word(x, ING_MIX_STEP)));
    }
    uint32_t s = mix(x, first, 0);
    x->state =
        ing_ir_emit(&x->b, ING_OP_ALLOCA, ing_ir_type_ref(x->m, ING_U64), 0, 0, 0);
    ing_ir_emit(&x->b, ING_OP_STORE, 0, x->state, s, 0);
    x->mask = op(x, ING_OP_XOR, s, second);
    x->place++;
}

/* RAND3, and the number of type t that its bits are. */
static uint32_t number(draws *x, ing_dtype t) {
    uint32_t old = ing_ir_emit(&x->b, ING_OP_LOAD, ING_U64, x->state, 0, 0);
    uint32_t now = op(x, ING_OP_ADD, old, word(x, ING_MIX_STEP));
    ing_ir_emit(&x->b, ING_OP_STORE, 0, x->state, now, 0);
    uint32_t bits = mix(x, now, x->mask);
    if (!ing_dtype_is_float(t)) {
        bits = op(x, ING_OP_SHR, bits, word(x, 64 - ing_dtype_bits(t)));
        return t == ING_U64 ? bits : ing_ir_emit(&x->b, ING_OP_CAST, t, bits, 0, 0);
    }
    uint32_t keep = t == ING_F64 ? 53 : t == ING_F32 ? 24 : 11;
    bits = op(x, ING_OP_SHR, bits, word(x, 64 - keep));
    uint32_t f = ing_ir_emit(&x->b, ING_OP_CAST, ING_F64, bits, 0, 0);
    double scale = 1.0 / (double)(UINT64_C(1) << keep);
    uint32_t by = ing_ir_const_float(&x->b, ING_F64, scale);
    f = ing_ir_emit(&x->b, ING_OP_MUL, ING_F64, f, by, 0);
    return t == ING_F64 ? f : ing_ir_emit(&x->b, ING_OP_CAST, t, f, 0, 0);
}

static void put_call(draws *x, const ing_ir_inst *i, uint32_t id) {
    uint32_t *args = ing_calloc((size_t)i->c + 2, sizeof *args);
    if (!args) {
        x->m->arena.failed = true;
        return;
    }
    for (uint32_t k = 0; k < i->c; k++)
        args[k] = x->copy.map[x->copy.from->extra.at[i->b + k]];
    args[i->c] = x->state;
    args[i->c + 1] = x->mask;
    x->copy.map[id] = ing_ir_call(&x->b, i->a, args, i->c + 2);
    ing_free(args);
}

static void put_parallel(draws *x, const ing_ir_inst *i, uint32_t id) {
    uint32_t at = ing_ir_loop_reserve(&x->b, i->type);
    uint32_t state = x->state, mask = x->mask;
    x->copy.map[id] = at;
    ing_ir_block_begin(&x->b);
    begin(x, at);
    ing_ir_copy_block(&x->copy, i->c);
    ing_ir_loop_finish(&x->b, at, x->copy.map[i->a], x->copy.map[i->b],
                       ing_ir_block_end(&x->b), i->flags);
    x->state = state;
    x->mask = mask;
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    draws *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    bool call = i->op == ING_OP_CALL && x->draws[i->a];
    bool loop = i->op == ING_OP_LOOP && i->flags & ING_IR_PARALLEL &&
                ing_ir_inst_draws(c->from, i, x->draws);
    if (i->op != ING_OP_RANDOM && !call && !loop) return false;
    x->b.loc = i->loc;
    if (loop)
        put_parallel(x, i, id);
    else if (call)
        put_call(x, i, id);
    else
        c->map[id] = number(x, (ing_dtype)i->type);
    return true;
}

static bool is_parallel(const ing_ir_inst *i) {
    return i->op == ING_OP_LOOP && i->flags & ING_IR_PARALLEL;
}

/* Does the piece that begins there draw? It ends with the next parallel loop. */
static bool piece_draws(const draws *x, uint32_t from, uint32_t n,
                        const uint32_t *ids) {
    for (uint32_t k = from; k < n; k++) {
        const ing_ir_inst *i = ing_ir_at(x->copy.from, ids[k]);
        if (is_parallel(i)) return false;
        if (ing_ir_inst_draws(x->copy.from, i, x->draws)) return true;
    }
    return false;
}

static void write_kernel(draws *x) {
    const ing_ir_func *f = x->copy.from;
    uint32_t n = ing_ir_block_len(f, f->body);
    const uint32_t *ids = ing_ir_block_ids(f, f->body);
    for (uint32_t k = 0; k < n && ing_ir_ok(x->m); k++) {
        bool parallel = is_parallel(ing_ir_at(f, ids[k]));
        bool first = k == 0 || is_parallel(ing_ir_at(f, ids[k - 1]));
        if (!parallel && first && piece_draws(x, k, n, ids)) begin(x, 0);
        ing_ir_copy_inst(&x->copy, ids[k]);
    }
}

/* A func's two more parameters. */
static bool extend(draws *x, uint32_t func) {
    ing_ir_func *f = x->m->funcs.at[func];
    ing_type *params = ING_NEW_ARRAY(&x->m->arena, f->n_params + 2, ing_type);
    if (!params) return false;
    for (uint32_t k = 0; k < f->n_params; k++) params[k] = f->params[k];
    params[f->n_params] = ing_ir_type_ref(x->m, ING_U64);
    params[f->n_params + 1] = ING_U64;
    f->params = params;
    f->n_params += 2;
    return true;
}

static ing_status run_func(ing_ir_mod *m, uint32_t func, const uint8_t *draw,
                           ing_err *e) {
    draws x = {.m = m, .draws = draw};
    x.copy.map = ing_calloc(m->funcs.at[func]->insts.len, sizeof *x.copy.map);
    if (!x.copy.map) return ing_ad_no_memory(e);
    ing_ir_func old;
    ing_ir_rebuild_begin(&x.b, m, func, &old);
    x.copy = (ing_ir_copy){
        .b = &x.b, .from = &old, .map = x.copy.map, .hook = hook, .self = &x};
    if (old.kind == ING_IR_KERNEL) {
        write_kernel(&x);
    } else {
        ing_type ref = ing_ir_type_ref(m, ING_U64);
        uint32_t n = old.n_params - 2;
        x.state = ing_ir_emit(&x.b, ING_OP_PARAM, ref, n, 0, 0);
        x.mask = ing_ir_emit(&x.b, ING_OP_PARAM, ING_U64, n + 1, 0, 0);
        ing_ir_copy_block(&x.copy, old.body);
    }
    ing_ir_rebuild_end(&x.b, &old);
    ing_free(x.copy.map);
    return ing_ir_ok(m) ? ING_OK : ing_ad_no_memory(e);
}

ing_status ing_ad_draws(ing_ir_mod *m, ing_err *e) {
    uint8_t *draw = ing_calloc((size_t)m->funcs.len + 1, 1);
    if (!draw) return ing_ad_no_memory(e);
    draws x = {.m = m};
    ing_status s = ing_ir_draws(m, draw, e);
    for (uint32_t k = 1; k < m->funcs.len && s == ING_OK; k++)
        if (draw[k] && !extend(&x, k)) s = ing_ad_no_memory(e);
    for (uint32_t k = 0; k < m->funcs.len && s == ING_OK; k++)
        if (draw[k]) s = run_func(m, k, draw, e);
    ing_free(draw);
    return s;
}
