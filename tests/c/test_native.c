/* Native code against the interpreter: every operation on every dtype over all pairs of
 * edge values, in loops that LLVM vectorises; conversions, constant operands, atomics. */
#include "native.h"

/* ---- edge values ------------------------------------------------------------------------------- */

static uint64_t rng_state = 88172645463325252u;
static uint64_t rng(void) {
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    return rng_state ^= rng_state << 17;
}

static void put_value(ing_bytes *out, ing_dtype t, uint64_t bits) {
    ing_bytes_put(out, &bits, ing_dtype_bytes(t)); /* little-endian */
}

static uint64_t float_bits(ing_dtype t, double d) {
    uint64_t v;
    memcpy(&v, &d, sizeof v);
    return ing_ir_eval_cast(ING_F64, t, v);
}

/* Values at which implementations differ; returns how many. */
static uint32_t edges(ing_dtype t, uint64_t *out) {
    static const double f[] = {
        0.0,  -0.0,  1.0,   -1.0,    0.5,      -0.5,      1.5,   2.5,
        -2.5, 3.0,   -7.3,  0.1,     1e-3,     100.0,     255.5, -128.5,
        2e4,  1e-7,  -6e-8, 70000.0, 3e9,      -2.2e9,    1e19,  -1e19,
        3e38, 1e-39, 1e300, 1e-310,  HUGE_VAL, -HUGE_VAL, NAN,   0.999999};
    static const int64_t i[] = {0,         1,
                                -1,        2,
                                -2,        3,
                                -3,        5,
                                7,         -7,
                                8,         10,
                                15,        16,
                                31,        32,
                                33,        63,
                                64,        100,
                                -100,      1000,
                                123456789, 127,
                                128,       255,
                                32767,     -32768,
                                65535,     INT32_MAX,
                                INT32_MIN, INT64_MAX,
                                INT64_MIN, INT64_MIN + 1};
    uint32_t n = 0;
    if (ing_dtype_is_float(t)) {
        for (uint32_t k = 0; k < sizeof f / sizeof *f; k++)
            out[n++] = float_bits(t, f[k]);
        return n;
    }
    for (uint32_t k = 0; k < sizeof i / sizeof *i; k++) {
        uint64_t v = ing_ir_norm(t, (uint64_t)i[k]);
        bool seen = false;
        for (uint32_t j = 0; j < n; j++) seen = seen || out[j] == v;
        if (!seen) out[n++] = v;
    }
    uint32_t top = ing_dtype_bits(t) - 1; /* smallest and largest, if signed */
    out[n++] = ing_ir_norm(t, (uint64_t)1 << top);
    out[n++] = ing_ir_norm(t, ((uint64_t)1 << top) - 1);
    return n;
}

/* All pairs of edge values, then random ones: two arrays of *n elements. */
static void pairs(ing_dtype t, ing_bytes *a, ing_bytes *b, uint32_t *n) {
    uint64_t e[80];
    uint32_t ne = edges(t, e);
    for (uint32_t i = 0; i < ne; i++)
        for (uint32_t j = 0; j < ne; j++) put_value(a, t, e[i]), put_value(b, t, e[j]);
    for (uint32_t k = 0; k < 61; k++) {
        uint64_t x = ing_ir_norm(t, rng()), y = ing_ir_norm(t, rng());
        put_value(a, t, x);
        put_value(b, t, y);
    }
    *n = ne * ne + 61;
}

/* ---- every operation ------------------------------------------------------------------------------ */

typedef struct grid { /* a module with one loop per operation, being written */
    ing_bytes head, body;
    ing_bytes a, b;
    void *blank;
    uint32_t n, n_args;
    targ args[MAX_ARGS];
    ing_dtype t;
} grid;

static void grid_arg(grid *g, ing_dtype t, const void *data) {
    ing_bytes_printf(&g->head, "arg %u array<%s, 1>\n", g->n_args, ing_dtype_name(t));
    g->args[g->n_args++] = (targ){
        .data = data, .bytes = (size_t)g->n * ing_dtype_bytes(t), .extent = {g->n}};
}

static void grid_init(grid *g, ing_dtype t, bool tame) {
    memset(g, 0, sizeof *g);
    g->t = t;
    if (!tame) {
        pairs(t, &g->a, &g->b, &g->n);
    } else {
        g->n = 333;
        for (uint32_t k = 0; k < g->n; k++) {
            double x = (double)(rng() % 20001) / 1000.0 - 10.0;
            double y = (double)(rng() % 9501) / 1000.0 + 0.5;
            put_value(&g->a, t, float_bits(t, x));
            put_value(&g->b, t, float_bits(t, y));
        }
    }
    g->blank = calloc(g->n, 8);
    grid_arg(g, t, g->a.at);
    grid_arg(g, t, g->b.at);
    const char *d = ing_dtype_name(t);
    ing_bytes_printf(&g->body,
                     "task @0 {\n%%z = const i32 0\n%%n = const i32 %u\n"
                     "%%a = array array<%s, 1> 0\n%%b = array array<%s, 1> 1\n",
                     g->n, d, d);
}

/* One more loop: r = <expr> of %x<k> and %y<k>, where # in expr stands for k. */
static void grid_loop(grid *g, ing_dtype result, const char *expr) {
    uint32_t k = g->n_args;
    const char *d = ing_dtype_name(g->t), *r = ing_dtype_name(result);
    grid_arg(g, result, g->blank);
    ing_bytes_printf(
        &g->body,
        "%%o%u = array array<%s, 1> %u\n%%i%u = loop i32 %%z, %%n {\n"
        "%%pa%u = elem ref<%s> %%a, [%%i%u]\n%%pb%u = elem ref<%s> %%b, [%%i%u]\n"
        "%%x%u = load %s %%pa%u\n%%y%u = load %s %%pb%u\n",
        k, r, k, k, k, d, k, k, d, k, k, d, k, k, d, k);
    for (const char *p = expr; *p; p++) {
        if (*p == '#')
            ing_bytes_printf(&g->body, "%u", k);
        else
            ing_bytes_u8(&g->body, (uint8_t)*p);
    }
    ing_bytes_printf(&g->body,
                     "\n%%po%u = elem ref<%s> %%o%u, [%%i%u]\nstore %%po%u, %%r%u\n}\n",
                     k, r, k, k, k, k);
}

static void grid_run(grid *g, const char *what, const char *level, bool fast,
                     double tolerance) {
    char name[96];
    snprintf(name, sizeof name, "%s %s %s%s", what, ing_dtype_name(g->t),
             level ? level : "best", fast ? " fast" : "");
    ing_bytes_puts(&g->body, "}\nrun @0 serial cost 1\n");
    ing_bytes_put(&g->head, g->body.at, g->body.len);
    setup s = {.name = name,
               .ir = (const char *)g->head.at,
               .level = level,
               .fast = fast,
               .tolerance = tolerance,
               .args = g->args,
               .n_args = g->n_args};
    both(&s, NULL);
    ing_bytes_fini(&g->head);
    ing_bytes_fini(&g->body);
    ing_bytes_fini(&g->a);
    ing_bytes_fini(&g->b);
    free(g->blank);
}

static void test_ops(ing_dtype t, const char *level, bool fast) {
    grid g;
    char expr[128];
    uint64_t unused;
    bool tame = fast && ing_dtype_is_float(t);
    grid_init(&g, t, tame);
    for (uint32_t op = ING_OP_ADD; op <= ING_OP_CLZ; op++) {
        const ing_op_info *i = ing_op_get((ing_op)op);
        if (!ing_ir_eval((ing_op)op, t, 0, 0, &unused)) continue;
        snprintf(expr, sizeof expr, "%%r# = %s %%x#%s", i->text,
                 i->operands[1] == 'v' ? ", %y#" : "");
        grid_loop(&g, i->result == '1' ? ING_U1 : t, expr);
    }
    snprintf(expr, sizeof expr,
             "%%c# = lt %%x#, %%y#\n%%r# = select %s %%c#, %%x#, %%y#",
             ing_dtype_name(t));
    grid_loop(&g, t, expr);
    double tolerance = !tame ? 0 : t == ING_F16 ? 1e-2 : t == ING_F32 ? 1e-5 : 1e-12;
    grid_run(&g, "ops", level, fast, tolerance);
}

static void test_casts(ing_dtype t, const char *level) {
    grid g;
    char expr[64];
    grid_init(&g, t, false);
    for (uint32_t to = ING_U1; to < ING_DTYPE_N; to++) {
        snprintf(expr, sizeof expr, "%%r# = cast %s %%x#",
                 ing_dtype_name((ing_dtype)to));
        grid_loop(&g, (ing_dtype)to, expr);
        bool bits = t != ING_U1 && to != ING_U1 &&
                    ing_dtype_bits(t) == ing_dtype_bits((ing_dtype)to);
        if (!bits) continue;
        snprintf(expr, sizeof expr, "%%r# = bitcast %s %%x#",
                 ing_dtype_name((ing_dtype)to));
        grid_loop(&g, (ing_dtype)to, expr);
    }
    grid_run(&g, "casts", level, false, 0);
}

/* Divisors that are constants take other paths, here and in LLVM. */
static void test_const_divisors(ing_dtype t) {
    static const int64_t by[] = {0,  1, -1, 2,  -2,        3,        7,
                                 -7, 8, 10, 64, INT64_MIN, INT64_MAX};
    static const char *const ops[] = {"div", "rem", "floordiv", "mod"};
    grid g;
    char expr[128];
    grid_init(&g, t, false);
    for (uint32_t k = 0; k < sizeof by / sizeof *by; k++) {
        int64_t c = by[k];
        if (c == INT64_MIN)
            c = (int64_t)ing_ir_norm(t, (uint64_t)1 << (ing_dtype_bits(t) - 1));
        if (c == INT64_MAX)
            c = (int64_t)ing_ir_norm(t, ~((uint64_t)1 << (ing_dtype_bits(t) - 1)));
        c = (int64_t)ing_ir_norm(t, (uint64_t)c);
        for (int o = 0; o < 4; o++) {
            if (ing_dtype_is_signed(t))
                snprintf(expr, sizeof expr,
                         "%%c# = const %s %lld\n%%r# = %s %%x#, %%c#",
                         ing_dtype_name(t), (long long)c, ops[o]);
            else
                snprintf(expr, sizeof expr,
                         "%%c# = const %s %llu\n%%r# = %s %%x#, %%c#",
                         ing_dtype_name(t), (unsigned long long)c, ops[o]);
            grid_loop(&g, t, expr);
        }
    }
    grid_run(&g, "constant divisors", NULL, false, 0);
}

static void test_float_constants(ing_dtype t) {
    static const char *const values[] = {"0.0",  "-0.0",   "1.0",
                                         "-3.0", "0x1p-3", "0x1999999999999ap-56",
                                         "inf",  "-inf",   "65504.0"};
    grid g;
    char expr[128];
    grid_init(&g, t, false);
    for (uint32_t k = 0; k < sizeof values / sizeof *values; k++) {
        const char *c = values[k];
        if (t != ING_F64 && strlen(c) > 10) c = "0x333p-13"; /* fits each type */
        snprintf(expr, sizeof expr, "%%c# = const %s %s\n%%r# = add %%x#, %%c#",
                 ing_dtype_name(t), c);
        grid_loop(&g, t, expr);
        snprintf(expr, sizeof expr, "%%c# = const %s %s\n%%r# = div %%x#, %%c#",
                 ing_dtype_name(t), c);
        grid_loop(&g, t, expr);
    }
    grid_run(&g, "constants", NULL, false, 0);
}

/* `//` and `%` of floats are the interpreter's to the bit in every mode and on every machine,
 * by a value and by a constant. */
static void test_floor_division(ing_dtype t, const char *level, bool fast) {
    static const char *const ops[] = {"floordiv", "mod"};
    static const char *const values[] = {"0.0", "1.0", "-3.0", "41.0", "inf"};
    grid g;
    char expr[128];
    grid_init(&g, t, false);
    for (int o = 0; o < 2; o++) {
        snprintf(expr, sizeof expr, "%%r# = %s %%x#, %%y#", ops[o]);
        grid_loop(&g, t, expr);
        for (uint32_t k = 0; k < sizeof values / sizeof *values; k++) {
            snprintf(expr, sizeof expr, "%%c# = const %s %s\n%%r# = %s %%x#, %%c#",
                     ing_dtype_name(t), values[k], ops[o]);
            grid_loop(&g, t, expr);
        }
    }
    grid_run(&g, "floor division", level, fast, 0);
}

/* The old value goes to an array of its own; element 0 collects, the others get one each. */
static void test_atomics(ing_dtype t) {
    static const char *const names[] = {"add", "sub", "mul", "min", "max",
                                        "and", "or",  "xor", "xchg"};
    grid g;
    char expr[512];
    const char *d = ing_dtype_name(t);
    grid_init(&g, t, false);
    for (uint32_t k = 0; k < 9; k++) {
        if (ing_dtype_is_float(t) && k >= 5 && k <= 7) continue;
        for (int private = 0; private < 2; private ++) {
            /* on the array itself, then on a local */
            snprintf(expr, sizeof expr,
                     "%%pq# = elem ref<%s> %%o#, [%%i#]\nstore %%pq#, %%x#\n"
                     "%%q# = atomic%s %s %%pq#, %%y#, %s\n%%r# = load %s %%pq#",
                     d, private ? " private" : "", d, names[k], d);
            grid_loop(&g, t, expr);
            snprintf(expr, sizeof expr,
                     "%%pq# = elem ref<%s> %%o#, [%%i#]\nstore %%pq#, %%x#\n"
                     "%%r# = atomic%s %s %%pq#, %%y#, %s",
                     d, private ? " private" : "", d, names[k]);
            grid_loop(&g, t, expr);
        }
    }
    grid_run(&g, "atomics", NULL, false, 0);
}

int main(void) {
    if (!native_open()) return CHECK_DONE();
    for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++) {
        test_ops((ing_dtype)t, NULL, false);
        test_ops((ing_dtype)t, NULL, true);
        test_casts((ing_dtype)t, NULL);
        test_atomics((ing_dtype)t);
        if (ing_dtype_is_float((ing_dtype)t)) {
            test_float_constants((ing_dtype)t);
            test_floor_division((ing_dtype)t, NULL, true);
            test_floor_division((ing_dtype)t, "x86-64-v2", false);
        } else if (t != ING_U1) {
            test_const_divisors((ing_dtype)t);
        }
    }
    test_ops(ING_F16, "x86-64-v2", false); /* conversions are calls there */
    test_casts(ING_F16, "x86-64-v2");
    test_casts(ING_F64, "x86-64-v2");
    ing_helpers_free(helpers);
    return CHECK_DONE();
}
