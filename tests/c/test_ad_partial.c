/* The derivative of each operation: against central differences, by hand where it has a kink,
 * and what it reads against what it says that it reads. The kernels are built here and run by
 * the interpreter: x and y from an array, the result and both derivatives into it. */
#include "ad/ad.h"
#include "check.h"
#include "gen/abi.h"

#include <math.h>

static uint32_t reads_of(const ing_ir_func *f, uint32_t from, ing_ad_factor d,
                         const uint32_t v[3]) {
    uint32_t bits = 0;
    for (uint32_t k = 0; k < 3; k++) {
        if (d.kind == ING_AD_VALUE && d.value == v[k]) bits |= 1u << k;
        for (uint32_t id = from; id < f->insts.len; id++) {
            ing_ir_uses u;
            ing_ir_inst_uses(f, ing_ir_at(f, id), &u);
            for (uint32_t j = 0; j < u.n_fixed; j++) {
                if (u.fixed[j] == v[k]) bits |= 1u << k;
            }
        }
    }
    return bits;
}

static uint32_t factor_value(ing_ir_builder *b, ing_dtype t, ing_ad_factor d) {
    switch (d.kind) {
    case ING_AD_ZERO: return ing_ir_const_float(b, t, 0);
    case ING_AD_ONE: return ing_ir_const_float(b, t, 1);
    case ING_AD_MINUS: return ing_ir_const_float(b, t, -1);
    case ING_AD_IF: return ing_ir_emit(b, ING_OP_CAST, t, d.value, 0, 0);
    case ING_AD_UNLESS:
        return ing_ir_emit(b, ING_OP_CAST, t,
                           ing_ir_emit(b, ING_OP_NOT, 0, d.value, 0, 0), 0, 0);
    default: return d.value;
    }
}

static bool binary(ing_op op) {
    return ing_op_get(op)->operands[1] == 'v';
}

static void put(ing_ir_builder *b, uint32_t array, int64_t at, uint32_t value) {
    uint32_t i = ing_ir_const_int(b, ING_I32, at);
    uint32_t v = ing_ir_emit(b, ING_OP_CAST, ING_F64, value, 0, 0);
    ing_ir_emit(b, ING_OP_STORE, 0, ing_ir_elem(b, array, &i, 1), v, 0);
}

static uint32_t get(ing_ir_builder *b, uint32_t array, int64_t at, ing_dtype t) {
    uint32_t i = ing_ir_const_int(b, ING_I32, at);
    uint32_t ref = ing_ir_elem(b, array, &i, 1);
    uint32_t v = ing_ir_emit(b, ING_OP_LOAD, ING_F64, ref, 0, 0);
    return ing_ir_emit(b, ING_OP_CAST, t, v, 0, 0);
}

/* v = {x, y}; out = {result, by x, by y}; y_known: y is a constant of the code. */
static void run(ing_op op, ing_dtype t, double x, double y, bool y_known,
                double out[3]) {
    ing_ir_mod *m = ing_ir_mod_new();
    ing_ir_builder b;
    ing_type type = ing_ir_type_array(m, ING_F64, 1, false, NULL);
    ing_ir_add_arg(m, type);
    ing_ir_builder_init(&b, m, ing_ir_add_func(m, ING_IR_KERNEL, "k", NULL, 0, 0));
    uint32_t array = ing_ir_emit(&b, ING_OP_ARRAY, type, 0, 0, 0);
    uint32_t v[3] = {get(&b, array, 0, t), 0, 0};
    v[1] = y_known ? ing_ir_const_float(&b, t, y) : get(&b, array, 1, t);
    uint32_t second = binary(op) ? v[1] : 0;
    v[2] = ing_ir_emit(&b, op, 0, v[0], second, 0);
    put(&b, array, 2, v[2]);
    for (uint32_t k = 0; k < (second ? 2 : 1); k++) {
        uint32_t from = b.func->insts.len;
        ing_ad_factor d = ing_ad_partial(&b, op, k, v[0], second, v[2]);
        uint32_t bits = reads_of(b.func, from, d, v),
                 said = ing_ad_partial_reads(op, k);
        CHECK(y_known ? (bits & ~said) == 0 : bits == said);
        put(&b, array, 3 + (int64_t)k, factor_value(&b, t, d));
    }
    ing_ir_builder_done(&b);
    ing_err e = {0};
    ing_status st = ing_ir_verify(m, &e);
    CHECK(st == ING_OK);
    double data[5] = {x, y, 0, 0, 0};
    uint64_t args[2] = {(uintptr_t)data, 5};
    ing_ctx ctx = {.args = args, .fuel = ING_ABI_FUEL};
    if (st == ING_OK) CHECK(ing_ir_interp_lowered(m, &ctx) == 0);
    memcpy(out, data + 2, 3 * sizeof *out);
    ing_ir_mod_free(m);
}

static bool same(double got, double want, double tolerance) {
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= tolerance * fmax(1, fabs(want));
}

static void expect(ing_op op, double x, double y, double by_x, double by_y) {
    double out[3];
    run(op, ING_F64, x, y, false, out);
    bool ok = same(out[1], by_x, 1e-12) && same(out[2], by_y, 1e-12);
    CHECK(ok);
    if (!ok) {
        fprintf(stderr, "%s(%g, %g): %g, %g\n", ing_op_get(op)->text, x, y, out[1],
                out[2]);
    }
    if (binary(op)) {
        run(op, ING_F64, x, y, true, out);
        CHECK(same(out[1], by_x, 1e-12) && same(out[2], by_y, 1e-12));
    }
}

/* ---- smooth places --------------------------------------------------------------------- */

static double central(ing_op op, double x, double y, int by) {
    double h = 1e-6, lo[3], hi[3];
    run(op, ING_F64, by ? x : x - h, by ? y - h : y, false, lo);
    run(op, ING_F64, by ? x : x + h, by ? y + h : y, false, hi);
    return (hi[0] - lo[0]) / (2 * h);
}

static void check_at(ing_op op, double x, double y) {
    static const struct {
        ing_dtype t;
        double tolerance;
    } types[] = {{ING_F64, 1e-7}, {ING_F32, 1e-5}, {ING_F16, 1e-2}};
    double want[2] = {central(op, x, y, 0), binary(op) ? central(op, x, y, 1) : 0};
    for (uint32_t k = 0; k < 3; k++) {
        double out[3];
        run(op, types[k].t, x, y, false, out);
        bool ok = same(out[1], want[0], types[k].tolerance) &&
                  same(out[2], want[1], types[k].tolerance);
        CHECK(ok);
        if (!ok) {
            fprintf(stderr, "%s(%g, %g) in type %d: %g, %g, wanted %g, %g\n",
                    ing_op_get(op)->text, x, y, (int)types[k].t, out[1], out[2],
                    want[0], want[1]);
        }
    }
}

static void test_smooth(void) {
    static const double at[][2] = {
        {0.40625, 0.734375}, {0.8125, 2.3125}, {0.15625, -1.40625}, {0.5625, 0.3125}};
    for (uint32_t op = 1; op < ING_OP_N; op++) {
        uint64_t bits;
        bool floats = ing_op_is_arith(op) && ing_op_get((ing_op)op)->result == 'a' &&
                      ing_ir_eval((ing_op)op, ING_F64, 0, 0, &bits);
        if (!floats) continue;
        CHECK(ing_ad_class_of(op) <= ING_AD_ARITH);
        for (uint32_t k = 0; k < 4; k++) check_at((ing_op)op, at[k][0], at[k][1]);
    }
}

/* What has no derivative has no rule, and what is no arithmetic neither. */
static void test_classes(void) {
    for (uint32_t op = 1; op < ING_OP_N; op++) {
        if (ing_ad_class_of(op) == ING_AD_ARITH) CHECK(ing_op_is_arith(op));
        if (ing_op_is_arith(op)) CHECK(ing_ad_class_of(op) <= ING_AD_ARITH);
        if (!ing_op_is_arith(op)) CHECK(!ing_ad_partial_reads(op, 0));
    }
    CHECK(ing_ad_class_of(ING_OP_LT) == ING_AD_NOTHING);
    CHECK(ing_ad_class_of(ING_OP_FLOOR) == ING_AD_NOTHING);
    CHECK(ing_ad_class_of(ING_OP_ABS) == ING_AD_ARITH);
    CHECK(ing_ad_class_of(ING_OP_BITCAST) == ING_AD_REFUSE);
    CHECK(ing_ad_class_of(ING_OP_BUFFER) == ING_AD_LATE);
    CHECK(ing_ad_class_of(ING_OP_LOAD) == ING_AD_CARRY);
}

/* ---- kinks and other places -------------------------------------------------------------- */

static void test_kinks(void) {
    expect(ING_OP_ABS, 0, 0, 0, 0);
    expect(ING_OP_ABS, -3, 0, -1, 0);
    expect(ING_OP_MIN, 1, 2, 1, 0);
    expect(ING_OP_MIN, 2, 1, 0, 1);
    expect(ING_OP_MIN, 2, 2, 0, 1);
    expect(ING_OP_MAX, 1, 2, 0, 1);
    expect(ING_OP_MAX, 2, 1, 1, 0);
    expect(ING_OP_MAX, 2, 2, 0, 1);
    expect(ING_OP_FLOOR, 2, 0, 0, 0);
    expect(ING_OP_CEIL, 2.5, 0, 0, 0);
    expect(ING_OP_ROUND, 2.5, 0, 0, 0);
    expect(ING_OP_TRUNC, -2.5, 0, 0, 0);
    expect(ING_OP_SGN, 0, 0, 0, 0);
    expect(ING_OP_FLOORDIV, 7, 2, 0, 0);
    expect(ING_OP_SQRT, 0, 0, INFINITY, 0);
    expect(ING_OP_RSQRT, 4, 0, -0.0625, 0);
    expect(ING_OP_ATAN2, 0, 0, NAN, NAN);
}

static void test_pow(void) {
    expect(ING_OP_POW, 0, 2, 0, 0);
    expect(ING_OP_POW, 0, 1, 1, 0);
    expect(ING_OP_POW, 0, 0.5, INFINITY, 0);
    expect(ING_OP_POW, 0, 0, 0, 0);
    expect(ING_OP_POW, 0, -1, -INFINITY, -INFINITY);
    expect(ING_OP_POW, 3, 0, 0, log(3));
    expect(ING_OP_POW, 3, 1, 1, 3 * log(3));
    expect(ING_OP_POW, 3, 2, 6, 9 * log(3));
    expect(ING_OP_POW, 3, 3, 27, 27 * log(3));
    expect(ING_OP_POW, -3, 2, -6, NAN);
    expect(ING_OP_POW, -2, 3, 12, NAN);
}

static void test_remainders(void) {
    expect(ING_OP_MOD, 7.5, 2, 1, -3);
    expect(ING_OP_MOD, -7.5, 2, 1, 4);
    expect(ING_OP_MOD, 7.5, -2, 1, 4);
    expect(ING_OP_MOD, 1, 0.1, 1, -9); /* 1 / 0.1 rounds to 10 */
    expect(ING_OP_REM, 7.5, 2, 1, -3);
    expect(ING_OP_REM, -7.5, 2, 1, 3);
    expect(ING_OP_REM, 7.5, -2, 1, 3);
    expect(ING_OP_REM, 1, 0.1, 1, -9);
    expect(ING_OP_REM, 1, INFINITY, 1, 0);
}

/* An exponent of the text needs no choice at run time, be it an integer. */
static void test_known_exponent(void) {
    static const char text[] = "kernel @0 {\n%x = const f32 3.0\n%k = const i32 2\n"
                               "%y = cast f32 %k\n%r = pow %x, %y\n}\n";
    ing_ir_mod *m = NULL;
    CHECK(ing_ir_parse(text, strlen(text), &m, NULL) == ING_OK);
    if (!m) return;
    ing_ir_builder b;
    ing_ir_func old;
    ing_ir_rebuild_begin(&b, m, 0, &old);
    uint32_t map[8] = {0};
    ing_ir_copy c = {.b = &b, .from = &old, .map = map};
    ing_ir_copy_block(&c, old.body);
    ing_ad_factor f = ing_ad_partial(&b, ING_OP_POW, 0, map[1], map[3], map[4]);
    CHECK(f.kind == ING_AD_VALUE && ing_ir_at(b.func, f.value)->op == ING_OP_ADD);
    ing_ir_rebuild_end(&b, &old);
    ing_ir_mod_free(m);
}

/* Squares beyond the largest f16. */
static void test_f16(void) {
    double out[3];
    run(ING_OP_ATAN2, ING_F16, 300, 400, false, out);
    CHECK(same(out[1], 400 / 250000.0, 1e-5) && same(out[2], -300 / 250000.0, 1e-5));
    run(ING_OP_DIV, ING_F16, 1, 1000, false, out);
    CHECK(same(out[2], -1e-6, 1e-7) && out[2] < 0);
    run(ING_OP_POW, ING_F16, 3, 2, true, out);
    CHECK(out[1] == 6);
}

int main(void) {
    test_smooth();
    test_classes();
    test_kinks();
    test_pow();
    test_remainders();
    test_known_exponent();
    test_f16();
    return CHECK_DONE();
}
