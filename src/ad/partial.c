/* The derivative of each operation: the rules that src/ir/op.def names, one row each. Called by
 * the transformations of this folder, which know which factor they need and have x, y and r at
 * hand as far as the row says that the rule reads them. Where a function has a kink, the
 * derivative of one side is taken, always the same; where it is flat it is 0. A rule works in
 * f32 at least: in f16 squares overflow where the derivative does not. */
#include "ad/ad.h"

#include <math.h>
#include <string.h>

typedef struct point { /* where a derivative is asked for */
    ing_ir_builder *b;
    ing_dtype t;      /* of x, y and r: f32 or f64 */
    uint32_t operand; /* by which, 0 or 1 */
    uint32_t x, y, r; /* what the rule does not read may be 0 */
} point;

enum { X = 1, Y = 2, R = 4 };

#define TWO_BY_ROOT_PI 1.1283791670955126
#define LN_2           0.6931471805599453
#define LN_10          2.302585092994046

static const ing_ad_factor zero = {ING_AD_ZERO, 0}, one = {ING_AD_ONE, 0},
                           minus = {ING_AD_MINUS, 0};

static ing_ad_factor value(uint32_t id) {
    return (ing_ad_factor){ING_AD_VALUE, id};
}

static uint32_t op1(const point *p, ing_op op, uint32_t a) {
    return ing_ir_emit(p->b, op, 0, a, 0, 0);
}

static uint32_t op2(const point *p, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(p->b, op, 0, a, b, 0);
}

static uint32_t constant(const point *p, double v) {
    return ing_ir_const_float(p->b, p->t, v);
}

static uint32_t choose(const point *p, uint32_t cond, uint32_t yes, uint32_t no) {
    return ing_ir_emit(p->b, ING_OP_SELECT, p->t, cond, yes, no);
}

/* ---- the rules ----------------------------------------------------------------------- */

static ing_ad_factor d_add(const point *p) {
    (void)p;
    return one;
}

static ing_ad_factor d_sub(const point *p) {
    return p->operand ? minus : one;
}

static ing_ad_factor d_neg(const point *p) {
    (void)p;
    return minus;
}

static ing_ad_factor d_mul(const point *p) {
    return value(p->operand ? p->x : p->y);
}

static ing_ad_factor d_div(const point *p) {
    if (!p->operand) return value(op2(p, ING_OP_DIV, constant(p, 1), p->y));
    return value(op1(p, ING_OP_NEG, op2(p, ING_OP_DIV, p->r, p->y)));
}

/* x - n * y, n an integer: that of Python's division ... */
static ing_ad_factor d_mod(const point *p) {
    if (!p->operand) return one;
    return value(op1(p, ING_OP_NEG, op2(p, ING_OP_FLOORDIV, p->x, p->y)));
}

/* ... and that of C's, from the remainder: trunc(x / y) may be one too many. */
static ing_ad_factor d_rem(const point *p) {
    if (!p->operand) return one;
    uint32_t minus_n = op2(p, ING_OP_DIV, op2(p, ING_OP_SUB, p->r, p->x), p->y);
    return value(op1(p, ING_OP_ROUND, minus_n));
}

/* Is it a constant, and which? An integer exponent is one that is cast. */
static bool known(const ing_ir_func *f, uint32_t id, double *out) {
    ing_type casts[3];
    uint32_t n = 0;
    const ing_ir_inst *i = ing_ir_at(f, id);
    for (; i->op == ING_OP_CAST && n < 3; i = ing_ir_at(f, i->a)) casts[n++] = i->type;
    if (i->op != ING_OP_CONST) return false;
    uint64_t bits = ing_ir_const_bits(i);
    ing_type t = i->type;
    for (; n; t = casts[n])
        bits = ing_ir_eval_cast((ing_dtype)t, (ing_dtype)casts[--n], bits);
    bits = ing_ir_eval_cast((ing_dtype)t, ING_F64, bits);
    memcpy(out, &bits, sizeof bits);
    return true;
}

/* y * x^(y-1); 0 for y = 0, where x = 0 would make it NaN. */
static ing_ad_factor pow_by_x(const point *p) {
    double y;
    bool constant_y = !p->b->mod->arena.failed && known(p->b->func, p->y, &y);
    if (constant_y && y == 0) return zero;
    if (constant_y && y == 1) return one;
    if (constant_y && y == 2) return value(op2(p, ING_OP_ADD, p->x, p->x));
    uint32_t less =
        constant_y ? constant(p, y - 1) : op2(p, ING_OP_SUB, p->y, constant(p, 1));
    uint32_t d = op2(p, ING_OP_MUL, p->y, op2(p, ING_OP_POW, p->x, less));
    if (constant_y) return value(d);
    uint32_t nothing = constant(p, 0);
    return value(choose(p, op2(p, ING_OP_EQ, p->y, nothing), nothing, d));
}

/* log(x) * x^y; 0 for x = 0, whose powers are 0 (but for y < 0: infinite). */
static ing_ad_factor pow_by_y(const point *p) {
    uint32_t nothing = constant(p, 0);
    uint32_t at_0 = op2(p, ING_OP_EQ, p->x, nothing);
    uint32_t flat = op2(p, ING_OP_AND, at_0, op2(p, ING_OP_GE, p->y, nothing));
    uint32_t d = op2(p, ING_OP_MUL, op1(p, ING_OP_LOG, p->x), p->r);
    return value(choose(p, flat, nothing, d));
}

static ing_ad_factor d_pow(const point *p) {
    return p->operand ? pow_by_y(p) : pow_by_x(p);
}

/* All to the one that is the result; of equals to y. */
static ing_ad_factor d_min(const point *p) {
    uint32_t y_wins = op2(p, ING_OP_EQ, p->r, p->y);
    return (ing_ad_factor){p->operand ? ING_AD_IF : ING_AD_UNLESS, y_wins};
}

static ing_ad_factor d_max(const point *p) {
    return d_min(p);
}

static ing_ad_factor d_atan2(const point *p) {
    uint32_t xx = op2(p, ING_OP_MUL, p->x, p->x), yy = op2(p, ING_OP_MUL, p->y, p->y);
    uint32_t sum = op2(p, ING_OP_ADD, xx, yy);
    if (!p->operand) return value(op2(p, ING_OP_DIV, p->y, sum));
    return value(op1(p, ING_OP_NEG, op2(p, ING_OP_DIV, p->x, sum)));
}

static ing_ad_factor d_abs(const point *p) {
    return value(op1(p, ING_OP_SGN, p->x));
}

static ing_ad_factor d_sqrt(const point *p) {
    return value(op2(p, ING_OP_DIV, constant(p, 0.5), p->r));
}

static ing_ad_factor d_rsqrt(const point *p) {
    uint32_t rr = op2(p, ING_OP_MUL, p->r, p->r);
    uint32_t half = op2(p, ING_OP_MUL, constant(p, -0.5), p->r);
    return value(op2(p, ING_OP_MUL, half, rr));
}

static ing_ad_factor d_sin(const point *p) {
    return value(op1(p, ING_OP_COS, p->x));
}

static ing_ad_factor d_cos(const point *p) {
    return value(op1(p, ING_OP_NEG, op1(p, ING_OP_SIN, p->x)));
}

static ing_ad_factor d_tan(const point *p) {
    uint32_t rr = op2(p, ING_OP_MUL, p->r, p->r);
    return value(op2(p, ING_OP_ADD, constant(p, 1), rr));
}

static ing_ad_factor d_tanh(const point *p) {
    uint32_t rr = op2(p, ING_OP_MUL, p->r, p->r);
    return value(op2(p, ING_OP_SUB, constant(p, 1), rr));
}

static uint32_t by_arc(const point *p) { /* 1 / sqrt(1 - x^2) */
    uint32_t below = op2(p, ING_OP_SUB, constant(p, 1), p->x);
    uint32_t above = op2(p, ING_OP_ADD, constant(p, 1), p->x);
    return op1(p, ING_OP_RSQRT, op2(p, ING_OP_MUL, below, above));
}

static ing_ad_factor d_asin(const point *p) {
    return value(by_arc(p));
}

static ing_ad_factor d_acos(const point *p) {
    return value(op1(p, ING_OP_NEG, by_arc(p)));
}

static ing_ad_factor d_exp(const point *p) {
    return value(p->r);
}

static ing_ad_factor d_log(const point *p) {
    return value(op2(p, ING_OP_DIV, constant(p, 1), p->x));
}

static ing_ad_factor d_sinh(const point *p) {
    return value(op1(p, ING_OP_COSH, p->x));
}

static ing_ad_factor d_cosh(const point *p) {
    return value(op1(p, ING_OP_SINH, p->x));
}

static ing_ad_factor d_asinh(const point *p) {
    uint32_t xx = op2(p, ING_OP_MUL, p->x, p->x);
    return value(op1(p, ING_OP_RSQRT, op2(p, ING_OP_ADD, constant(p, 1), xx)));
}

static uint32_t beside_one(const point *p) { /* x^2 - 1 */
    uint32_t below = op2(p, ING_OP_SUB, p->x, constant(p, 1));
    return op2(p, ING_OP_MUL, below, op2(p, ING_OP_ADD, p->x, constant(p, 1)));
}

static ing_ad_factor d_acosh(const point *p) {
    return value(op1(p, ING_OP_RSQRT, beside_one(p)));
}

static ing_ad_factor d_atanh(const point *p) {
    uint32_t beside = beside_one(p);
    return value(op2(p, ING_OP_DIV, constant(p, -1), beside));
}

static ing_ad_factor d_atan(const point *p) {
    uint32_t xx = op2(p, ING_OP_MUL, p->x, p->x);
    uint32_t below = op2(p, ING_OP_ADD, constant(p, 1), xx);
    return value(op2(p, ING_OP_DIV, constant(p, 1), below));
}

static uint32_t bell(const point *p, double height) {
    uint32_t xx = op2(p, ING_OP_MUL, p->x, p->x);
    uint32_t shape = op1(p, ING_OP_EXP, op1(p, ING_OP_NEG, xx));
    return op2(p, ING_OP_MUL, constant(p, height), shape);
}

static ing_ad_factor d_erf(const point *p) {
    return value(bell(p, TWO_BY_ROOT_PI));
}

static ing_ad_factor d_erfc(const point *p) {
    return value(bell(p, -TWO_BY_ROOT_PI));
}

static ing_ad_factor d_exp2(const point *p) {
    return value(op2(p, ING_OP_MUL, constant(p, LN_2), p->r));
}

static ing_ad_factor d_expm1(const point *p) {
    return value(op1(p, ING_OP_EXP, p->x));
}

static ing_ad_factor d_log2(const point *p) {
    return value(op2(p, ING_OP_DIV, constant(p, 1 / LN_2), p->x));
}

static ing_ad_factor d_log10(const point *p) {
    return value(op2(p, ING_OP_DIV, constant(p, 1 / LN_10), p->x));
}

static ing_ad_factor d_log1p(const point *p) {
    uint32_t below = op2(p, ING_OP_ADD, constant(p, 1), p->x);
    return value(op2(p, ING_OP_DIV, constant(p, 1), below));
}

static ing_ad_factor d_cbrt(const point *p) {
    uint32_t rr = op2(p, ING_OP_MUL, p->r, p->r);
    return value(op2(p, ING_OP_DIV, constant(p, 1.0 / 3), rr));
}

/* At the tip of the cone, as for a norm that is 0: 0. */
static ing_ad_factor d_hypot(const point *p) {
    uint32_t nothing = constant(p, 0), z = p->operand ? p->y : p->x;
    uint32_t tip = op2(p, ING_OP_EQ, p->r, nothing);
    return value(choose(p, tip, nothing, op2(p, ING_OP_DIV, z, p->r)));
}

/* ---- the tables ---------------------------------------------------------------------- */

/* RULE(name, what it reads for the derivative by x, by y) */
#define RULES(RULE)             \
    RULE(add, 0, 0)             \
    RULE(sub, 0, 0)             \
    RULE(mul, Y, X)             \
    RULE(div, Y, Y | R)         \
    RULE(rem, 0, X | Y | R)     \
    RULE(mod, 0, X | Y)         \
    RULE(pow, X | Y, X | Y | R) \
    RULE(min, Y | R, Y | R)     \
    RULE(max, Y | R, Y | R)     \
    RULE(atan2, X | Y, X | Y)   \
    RULE(neg, 0, 0)             \
    RULE(abs, X, 0)             \
    RULE(sqrt, R, 0)            \
    RULE(rsqrt, R, 0)           \
    RULE(sin, X, 0)             \
    RULE(cos, X, 0)             \
    RULE(tan, R, 0)             \
    RULE(asin, X, 0)            \
    RULE(acos, X, 0)            \
    RULE(tanh, R, 0)            \
    RULE(exp, R, 0)             \
    RULE(log, X, 0)             \
    RULE(sinh, X, 0)            \
    RULE(cosh, X, 0)            \
    RULE(asinh, X, 0)           \
    RULE(acosh, X, 0)           \
    RULE(atanh, X, 0)           \
    RULE(atan, X, 0)            \
    RULE(erf, X, 0)             \
    RULE(erfc, X, 0)            \
    RULE(exp2, R, 0)            \
    RULE(expm1, X, 0)           \
    RULE(log2, X, 0)            \
    RULE(log10, X, 0)           \
    RULE(log1p, X, 0)           \
    RULE(cbrt, R, 0)            \
    RULE(hypot, X | R, Y | R)

typedef struct rule {
    ing_ad_factor (*of)(const point *p); /* NULL: 0 */
    uint8_t reads[2];
    uint8_t class; /* ing_ad_class */
} rule;

enum {
    RULE_none,
    RULE_flat,
    RULE_carry,
    RULE_refuse,
    RULE_late,
#define RULE(name, by_x, by_y) RULE_##name,
    RULES(RULE)
#undef RULE
};

static const rule rules[] = {[RULE_none] = {NULL, {0, 0}, ING_AD_NOTHING},
                             [RULE_flat] = {NULL, {0, 0}, ING_AD_NOTHING},
                             [RULE_carry] = {NULL, {0, 0}, ING_AD_CARRY},
                             [RULE_refuse] = {NULL, {0, 0}, ING_AD_REFUSE},
                             [RULE_late] = {NULL, {0, 0}, ING_AD_LATE},
#define RULE(name, by_x, by_y) [RULE_##name] = {d_##name, {by_x, by_y}, ING_AD_ARITH},
                             RULES(RULE)
#undef RULE
};

static const uint8_t rule_of[ING_OP_N] = {
#define OP(name, text, operands, result, flags, class, derivative) \
    [ING_OP_##name] = RULE_##derivative,
#include "ir/op.def"
#undef OP
};

static const rule *get(uint32_t op) {
    return &rules[op < ING_OP_N ? rule_of[op] : RULE_none];
}

ing_ad_class ing_ad_class_of(uint32_t op) {
    return (ing_ad_class)get(op)->class;
}

uint32_t ing_ad_partial_reads(uint32_t op, uint32_t operand) {
    return operand < 2 ? get(op)->reads[operand] : 0;
}

bool ing_ad_is_wild(const ing_ir_func *f, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    double y;
    switch (i->op) {
    case ING_OP_SIN:
    case ING_OP_COS:
    case ING_OP_TANH:
    case ING_OP_ASINH:
    case ING_OP_ATAN:
    case ING_OP_ERF:
    case ING_OP_ERFC:
    case ING_OP_HYPOT: return false;
    case ING_OP_DIV:
    case ING_OP_REM:
    case ING_OP_FLOORDIV:
    case ING_OP_MOD: return !known(f, i->b, &y) || y == 0;
    case ING_OP_POW: return !known(f, i->b, &y) || y < 0 || y != floor(y);
    default: break;
    }
    uint32_t class = ing_op_get(i->op)->class;
    return class == ING_OPC_DIVIDE || class == ING_OPC_ROOT || class == ING_OPC_MATH;
}

/* ---- one derivative ------------------------------------------------------------------ */

static uint32_t wider(ing_ir_builder *b, uint32_t id) {
    return ing_ir_emit(b, ING_OP_CAST, ING_F32, id, 0, 0);
}

ing_ad_factor ing_ad_partial(ing_ir_builder *b, uint32_t op, uint32_t operand,
                             uint32_t x, uint32_t y, uint32_t r) {
    const rule *l = get(op);
    uint32_t reads = ing_ad_partial_reads(op, operand);
    if (!l->of || operand > 1 || b->mod->arena.failed) return zero;
    point p = {.b = b, .operand = operand, .x = x, .y = y, .r = r};
    uint32_t any = reads & X ? x : reads & Y ? y : r;
    if (reads) p.t = (ing_dtype)ing_ir_at(b->func, any)->type;
    bool half = p.t == ING_F16;
    if (half) {
        p.t = ING_F32;
        p.x = reads & X ? wider(b, x) : 0;
        p.y = reads & Y ? wider(b, y) : 0;
        p.r = reads & R ? wider(b, r) : 0;
    }
    ing_ad_factor f = l->of(&p);
    if (half && f.kind == ING_AD_VALUE) {
        f.value = ing_ir_emit(b, ING_OP_CAST, ING_F16, f.value, 0, 0);
    }
    return f;
}

/* ---- bits ----------------------------------------------------------------------------------------- */

bool ing_ad_only_returns(const ing_ir_func *f, uint32_t id) {
    bool returns = false;
    for (uint32_t k = 1; k < f->insts.len; k++) {
        const ing_ir_inst *i = ing_ir_at(f, k);
        ing_ir_uses u;
        bool uses = false;
        ing_ir_inst_uses(f, i, &u);
        for (uint32_t j = 0; j < u.n_fixed; j++) uses |= u.fixed[j] == id;
        for (uint32_t j = 0; j < u.n_list; j++) uses |= u.list[j] == id;
        if (uses && i->op != ING_OP_BITCAST) return false;
        returns |= uses;
    }
    return returns;
}
