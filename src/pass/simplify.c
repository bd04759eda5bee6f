/* Folds constants, exact identities and branches on constants, then drops what nothing
 * uses. Every fold computes with ing_ir_eval, so it cannot differ from the interpreter.
 * Rules
 *  FOLD1 only results that are the same on every machine: no libm functions beyond those
 *     that IEEE rounds exactly; computed in the default floating-point environment.
 *  FOLD2 identities on floats keep signed zeros and NaNs.
 *  FOLD3 a dead LOAD or ALLOCA goes; calls, atomics, checks and endless loops stay.
 *  FOLD4 quotients and remainders of an index that is a sum of digits, each within its place, are
 *     digits again; ranges are those of loops with known bounds, in which nothing wrapped. */
#include "pass/pass_int.h"

#include <fenv.h>

typedef struct simplifier {
    ing_ir_builder b;
    ing_ir_copy copy; /* from the old function into b */
} simplifier;

/* ---- what is known of values (ids of the new function) --------------------------------- */

static const ing_ir_inst *at(const simplifier *s, uint32_t id) {
    return &s->b.func->insts.at[id];
}

static bool is_const(const simplifier *s, uint32_t id, uint64_t *bits) {
    const ing_ir_inst *i = at(s, id);
    if (i->op != ING_OP_CONST) return false;
    *bits = ing_ir_const_bits(i);
    return true;
}

static uint32_t put_const(simplifier *s, ing_type t, uint64_t bits) {
    return ing_ir_emit(&s->b, ING_OP_CONST, t, (uint32_t)bits, (uint32_t)(bits >> 32),
                       0);
}

static uint64_t one(ing_dtype t) {
    return ing_ir_eval_cast(ING_I32, t, 1);
}

static bool folds(ing_op op, ing_dtype t) { /* FOLD1 */
    return !ing_dtype_is_float(t) || ing_op_class_of(op) != ING_OPC_MATH;
}

/* ---- identities -------------------------------------------------------------------------- */

/* x op c for a constant c; 0 = nothing known. */
static uint32_t int_right(simplifier *s, ing_op op, ing_dtype t, uint32_t x,
                          uint64_t c) {
    bool wide = ing_dtype_bits(t) > 1;
    switch (op) {
    case ING_OP_ADD:
    case ING_OP_SUB:
    case ING_OP_OR:
    case ING_OP_XOR: return c == 0 ? x : 0;
    case ING_OP_SHL:
    case ING_OP_SHR:
    case ING_OP_SAR: return c == 0 ? x : 0;
    case ING_OP_MUL:
        if (c == 0) return put_const(s, t, 0);
        return c == 1 ? x : 0;
    case ING_OP_DIV:
    case ING_OP_FLOORDIV:
        if (c == 0) return put_const(s, t, 0);
        return c == 1 ? x : 0;
    case ING_OP_REM:
    case ING_OP_MOD: return c == 0 || c == 1 ? put_const(s, t, 0) : 0;
    case ING_OP_AND:
        if (c == 0) return put_const(s, t, 0);
        return c == ing_ir_norm(t, UINT64_MAX) ? x : 0;
    case ING_OP_POW: return c == 1 && wide ? x : 0;
    default: return 0;
    }
}

static bool commutes(ing_op op) {
    return op == ING_OP_ADD || op == ING_OP_MUL || op == ING_OP_AND ||
           op == ING_OP_OR || op == ING_OP_XOR;
}

static uint32_t int_same(simplifier *s, ing_op op, ing_dtype t, uint32_t x) {
    switch (op) {
    case ING_OP_SUB:
    case ING_OP_XOR: return put_const(s, t, 0);
    case ING_OP_AND:
    case ING_OP_OR:
    case ING_OP_MIN:
    case ING_OP_MAX: return x;
    case ING_OP_EQ:
    case ING_OP_LE:
    case ING_OP_GE: return put_const(s, ING_U1, 1);
    case ING_OP_NE:
    case ING_OP_LT:
    case ING_OP_GT: return put_const(s, ING_U1, 0);
    default: return 0;
    }
}

static uint32_t float_right(ing_op op, ing_dtype t, uint32_t x,
                            uint64_t c) { /* FOLD2 */
    uint64_t minus_zero = 0;
    ing_ir_eval(ING_OP_NEG, t, 0, 0, &minus_zero);
    switch (op) {
    case ING_OP_MUL:
    case ING_OP_DIV: return c == one(t) ? x : 0;
    case ING_OP_ADD: return c == minus_zero ? x : 0;
    case ING_OP_SUB: return c == 0 ? x : 0;
    default: return 0;
    }
}

/* ---- digits ------------------------------------------------------------------------------- */

/* The sum of those terms of the form that c divides, divided by it, or of the others (FOLD4). */
static uint32_t put_digits(simplifier *s, ing_dtype t, const ing_ir_form *form,
                           int64_t c, bool quotient) {
    uint64_t rest = ((form->constant % (uint64_t)c) + (uint64_t)c) % (uint64_t)c;
    uint64_t first = quotient ? (form->constant - rest) / (uint64_t)c : rest;
    uint32_t sum = first ? put_const(s, t, ing_ir_norm(t, first)) : 0;
    for (uint32_t k = 0; k < form->n; k++) {
        int64_t times = (int64_t)form->times[k];
        if ((times % c == 0) != quotient) continue;
        uint32_t of = form->of[k];
        if (at(s, of)->type != (ing_type)t)
            of = ing_ir_emit(&s->b, ING_OP_CAST, t, of, 0, 0);
        if (quotient) times /= c;
        uint32_t by = times == 1 ? 0 : put_const(s, t, ing_ir_norm(t, (uint64_t)times));
        if (by) of = ing_ir_emit(&s->b, ING_OP_MUL, t, of, by, 0);
        sum = sum ? ing_ir_emit(&s->b, ING_OP_ADD, t, sum, of, 0) : of;
    }
    return sum ? sum : put_const(s, t, 0);
}

/* Do the terms that c does not divide lie in [0, c) together? */
static bool has_digit(const simplifier *s, const ing_ir_form *form, int64_t c) {
    __int128 low = (int64_t)form->constant % c, high = low;
    for (uint32_t k = 0; k < form->n; k++) {
        int64_t times = (int64_t)form->times[k], from, to;
        if (times % c == 0) continue;
        if (!ing_ir_range(s->b.func, form->of[k], &from, &to)) return false;
        low += (__int128)times * (times > 0 ? from : to);
        high += (__int128)times * (times > 0 ? to : from);
    }
    return (int64_t)form->constant >= 0 && low >= 0 && high < c;
}

/* Division by c, or what it leaves (also as shifts and masks): of an index that was put
 * together of digits, such as i0 * 4 + i1, the digit itself. 0 = it is none. */
static uint32_t fold_digits(simplifier *s, ing_op op, ing_dtype t, uint32_t x,
                            uint64_t by) {
    bool shift = op == ING_OP_SHR || op == ING_OP_SAR, mask = op == ING_OP_AND;
    bool quotient = shift || op == ING_OP_DIV || op == ING_OP_FLOORDIV;
    bool known = quotient || mask || op == ING_OP_REM || op == ING_OP_MOD;
    int64_t c = (int64_t)by, low, high;
    ing_ir_form form;
    if (shift) c = by < 31 ? (int64_t)1 << by : 0;
    if (mask) c = (by & (by + 1)) == 0 && by < INT32_MAX ? (int64_t)by + 1 : 0;
    if (!known || c < 2) return 0;
    if (!ing_ir_range(s->b.func, x, &low, &high) || low < 0) return 0;
    ing_ir_form_of(s->b.func, x, &form);
    if (!form.known || !has_digit(s, &form, c)) return 0;
    return put_digits(s, t, &form, c, quotient);
}

static uint32_t fold_binary(simplifier *s, ing_op op, uint32_t a, uint32_t b) {
    ing_dtype t = at(s, a)->type;
    uint64_t ca = 0, cb = 0, r;
    bool ka = is_const(s, a, &ca), kb = is_const(s, b, &cb);
    ing_type result = ing_op_get(op)->result == '1' ? ING_U1 : (ing_type)t;
    if (ka && kb && folds(op, t) && ing_ir_eval(op, t, ca, cb, &r)) {
        return put_const(s, result, r);
    }
    if (ing_dtype_is_float(t)) {
        uint32_t id = kb ? float_right(op, t, a, cb) : 0;
        if (!id && ka && commutes(op)) id = float_right(op, t, b, ca);
        return id;
    }
    if (a == b) return int_same(s, op, t, a);
    if (kb) {
        uint32_t id = int_right(s, op, t, a, cb);
        return id ? id : fold_digits(s, op, t, a, cb);
    }
    return ka && commutes(op) ? int_right(s, op, t, b, ca) : 0;
}

static uint32_t fold_unary(simplifier *s, ing_op op, uint32_t a) {
    ing_dtype t = at(s, a)->type;
    uint64_t c, r;
    if (is_const(s, a, &c)) {
        bool ok = folds(op, t) && ing_ir_eval(op, t, c, 0, &r);
        return ok ? put_const(s, t, r) : 0;
    }
    bool inverse = op == ING_OP_NEG || op == ING_OP_NOT;
    return inverse && at(s, a)->op == op ? at(s, a)->a : 0;
}

static uint32_t fold_convert(simplifier *s, const ing_ir_inst *i, uint32_t a,
                             uint32_t b, uint32_t c) {
    uint64_t k;
    bool known = is_const(s, a, &k);
    if (i->op == ING_OP_SELECT) {
        if (known) return k ? b : c;
        return b == c ? b : 0;
    }
    ing_dtype from = at(s, a)->type, to = i->type;
    if (from == to) return a;
    if (!known) return 0;
    k = i->op == ING_OP_CAST ? ing_ir_eval_cast(from, to, k) : ing_ir_norm(to, k);
    return put_const(s, to, k);
}

/* A member of a value that was just put together. */
static uint32_t fold_extract(simplifier *s, uint32_t a, uint32_t k) {
    for (uint32_t steps = 0; steps < 8; steps++) {
        const ing_ir_inst *i = at(s, a);
        if (i->op == ING_OP_MAKE) return s->b.func->extra.at[i->b + k];
        if (i->op != ING_OP_INSERT) return 0;
        if (i->c == k) return i->b;
        a = i->a;
    }
    return 0;
}

/* An axis of one place. */
static uint32_t fold_axis(simplifier *s, const ing_ir_inst *i) {
    const ing_ir_inst *axes = at(s, s->copy.map[i->a]);
    int64_t begin, end;
    if (!ing_ir_axis_is_one(s->b.func, axes, i->c)) return 0;
    ing_ir_axis_bounds(s->b.func, axes, i->c, &begin, &end);
    return put_const(s, i->type, ing_ir_norm((ing_dtype)i->type, (uint64_t)begin));
}

static uint32_t fold_dim(simplifier *s, const ing_ir_inst *i) {
    uint32_t n = ing_ir_known_extent(s->b.mod, s->b.func, s->copy.map[i->a], i->b);
    return n ? put_const(s, i->type, n) : 0;
}

/* The value that instruction i (of the old function) equals, or 0. */
static uint32_t fold(simplifier *s, const ing_ir_inst *i) {
    const uint32_t *map = s->copy.map;
    const char *o = ing_op_get(i->op)->operands;
    if (ing_op_is_arith(i->op)) {
        if (o[1] == 'v') return fold_binary(s, i->op, map[i->a], map[i->b]);
        return fold_unary(s, i->op, map[i->a]);
    }
    switch (i->op) {
    case ING_OP_CAST:
    case ING_OP_BITCAST: return fold_convert(s, i, map[i->a], 0, 0);
    case ING_OP_SELECT: return fold_convert(s, i, map[i->a], map[i->b], map[i->c]);
    case ING_OP_EXTRACT: return fold_extract(s, map[i->a], i->b);
    case ING_OP_AXIS: return fold_axis(s, i);
    case ING_OP_DIM: return fold_dim(s, i);
    default: return 0;
    }
}

/* ---- control ------------------------------------------------------------------------------ */

static bool loop_is_empty(const simplifier *s, const ing_ir_inst *i) {
    uint64_t n;
    const uint32_t *map = s->copy.map;
    return ing_ir_trips(s->b.func, map[i->a], map[i->b], &n) && n == 0;
}

/* True when the instruction is dealt with: folded, spliced or gone. */
static bool hook(ing_ir_copy *c, uint32_t id) {
    simplifier *s = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    uint64_t k;
    if (ing_ir_block_ended(&s->b)) return true;
    switch (i->op) {
    case ING_OP_IF:
        if (!is_const(s, c->map[i->a], &k)) return false;
        if (k || i->c) ing_ir_copy_block(c, k ? i->b : i->c);
        return true;
    case ING_OP_LOOP: return loop_is_empty(s, i);
    case ING_OP_CHECK: return is_const(s, c->map[i->a], &k) && k;
    default: break;
    }
    uint32_t loc = s->b.loc;
    s->b.loc = i->loc;
    uint32_t same = fold(s, i);
    s->b.loc = loc;
    if (same) c->map[id] = same;
    return same != 0;
}

/* ---- what is dead ---------------------------------------------------------------------------- */

static bool mark_block(const ing_ir_func *f, uint32_t block, uint8_t *live);

static bool has_effect(const ing_ir_inst *i) {
    uint8_t flags = ing_op_get(i->op)->flags;
    return flags & (ING_OPF_W | ING_OPF_T | ING_OPF_K);
}

static void mark_uses(const ing_ir_func *f, const ing_ir_inst *i, uint8_t *live) {
    ing_ir_uses u;
    ing_ir_inst_uses(f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) live[u.fixed[k]] = 1;
    for (uint32_t k = 0; k < u.n_list; k++) live[u.list[k]] = 1;
}

/* Uses come after definitions, so one walk backwards sees every use first. */
static void mark_inst(const ing_ir_func *f, uint32_t id, uint8_t *live) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
    bool inner = i->op == ING_OP_WHILE;
    while (n) inner |= mark_block(f, blocks[--n], live);
    if (i->op == ING_OP_LOOP) live[id] = 0; /* marked by uses inside its own body */
    live[id] |= inner || has_effect(i);
    if (live[id]) mark_uses(f, i, live);
}

static bool mark_block(const ing_ir_func *f, uint32_t block, uint8_t *live) {
    const uint32_t *ids = ing_ir_block_ids(f, block);
    bool any = false;
    for (uint32_t k = ing_ir_block_len(f, block); k-- > 0;) {
        mark_inst(f, ids[k], live);
        any |= live[ids[k]];
    }
    return any;
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* Rebuilds the function with the hook, or with what is live when `drop`. */
static bool rebuild(ing_ir_mod *m, uint32_t func, bool drop) {
    ing_ir_func old;
    simplifier s;
    uint32_t n = m->funcs.at[func]->insts.len;
    uint32_t *map = ing_calloc(n, sizeof *map);
    uint8_t *live = ing_calloc(n, 1);
    bool ok = map && live && ing_ir_ok(m);
    if (ok) {
        ing_ir_rebuild_begin(&s.b, m, func, &old);
        s.copy = (ing_ir_copy){.b = &s.b, .from = &old, .map = map, .self = &s};
        if (drop) {
            mark_block(&old, old.body, live);
            s.copy.live = live;
        } else {
            s.copy.hook = hook;
        }
        ing_ir_copy_block(&s.copy, old.body);
        ing_ir_rebuild_end(&s.b, &old);
    }
    ing_free(map);
    ing_free(live);
    return ok;
}

/* With fast math processors take denormals for zero (R23): so do constants that are only moved. */
static void flush_constants(ing_ir_func *f) {
    for (uint32_t k = 1; k < f->insts.len; k++) {
        ing_ir_inst *i = &f->insts.at[k];
        bool wide = i->type == ING_F64;
        if (i->op != ING_OP_CONST || (i->type != ING_F32 && !wide)) continue;
        uint64_t bits = ing_ir_const_bits(i);
        uint64_t exponent = wide ? (uint64_t)0x7ff << 52 : (uint64_t)0xff << 23;
        if (bits & exponent) continue;
        bits &= wide ? (uint64_t)1 << 63 : (uint64_t)1 << 31;
        i->a = (uint32_t)bits;
        i->b = (uint32_t)(bits >> 32);
    }
}

ing_status ing_pass_simplify(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    fenv_t env;
    bool ok = true;
    fegetenv(&env); /* the host may flush denormals or round otherwise (FOLD1) */
    fesetenv(FE_DFL_ENV);
    for (uint32_t k = 0; k < m->funcs.len && ok && ing_ir_ok(m); k++) {
        ok = rebuild(m, k, false) && rebuild(m, k, true);
        if (ok && o->fast_math) flush_constants(m->funcs.at[k]);
    }
    fesetenv(&env);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
