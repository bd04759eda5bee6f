/* Forward mode: kernels as text, transformed, verified and run by the interpreter as lowered.
 * Each is held against central differences of the kernel itself, in f64 and, with every f64 of
 * its text replaced, in f32; values must not change at all. Arguments: x and y, each with its
 * companion behind it, and c, integers without one. */
#include "ad/ad.h"
#include "check.h"
#include "gen/abi.h"
#include "pass/pass.h"

#include <math.h>

enum { N = 8, ROOM = 4 * N }; /* elements may be tensors */

typedef struct data {
    double x[ROOM], dx[ROOM], y[ROOM], dy[ROOM];
    int32_t c[N];
} data;

static const data start = {
    .x = {0.4, 0.7, -1.3, 0.25, 2.1, -0.6, 1.1, 0.9, 0.3, -0.2, 0.8, 1.7, 0.35},
    .dx = {1, -0.5, 0.75, 2, 0.3, -1.2, 0.1, 0.6, 0.9, 0.2, -0.4, 1.3, -0.7},
    .y = {0.2, 0.5, 0.8, -0.4, 1.6, 0.1, -0.9, 0.33, 0.7, 0.6, 0.15},
    .dy = {0.5, 1.5, -0.25, 0.8, -0.6, 0.2, 0.4, -1, 0.3, 0.1, 0.9},
    .c = {3, 1, 4, 0, 5, 2, 6, 2},
};
static const uint32_t companions[5] = {2, 0, 4, 0, 0};

/* ---- kernels ----------------------------------------------------------------------------- */

#define ARGS(T)                                                                     \
    "arg 0 array<" T ", 1>\narg 1 array<" T ", 1>\n"                                \
    "arg 2 array<" T ", 1>\narg 3 array<" T ", 1>\n"                                \
    "arg 4 array<i32, 1>\n"                                                         \
    "kernel @0 {\n"                                                                 \
    "%x = array array<" T ", 1> 0\n%y = array array<" T ", 1> 2\n"                  \
    "%c = array array<i32, 1> 4\n"                                                  \
    "%k0 = const i32 0\n%k1 = const i32 1\n%k2 = const i32"                         \
    " 2\n%k3 = const i32 3\n%k7 = const i32 7\n"                                    \
    "%k8 = const i32 8\n%f0 = const f64 0.0\n%f1 = const f64 1.0\n%f2 = const f64 " \
    "0.5\n"
#define HEAD ARGS("f64")
/* Of each place: v = x[i], its companion's index, u = x[7 - i], n = c[i], py = where y[i] is */
#define LOOP                                                              \
    "%i = loop parallel i32 %k0, %k8 {\n"                                 \
    "%px = elem ref<f64> %x, [%i]\n%v = load f64 %px\n"                   \
    "%j = sub %k7, %i\n%pu = elem ref<f64> %x, [%j]\n%u = load f64 %pu\n" \
    "%pc = elem ref<i32> %c, [%i]\n%n = load i32 %pc\n"                   \
    "%py = elem ref<f64> %y, [%i]\n%w = load f64 %py\n"
#define DONE(R)         "store %py, " R "\n}\n}\n"
#define KERNEL(body, R) HEAD LOOP body DONE(R)

/* ---- running ------------------------------------------------------------------------------- */

static ing_ir_mod *parse(const char *text) {
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s = ing_ir_parse(text, strlen(text), &m, &e);
    if (s == ING_OK) s = ing_ir_verify(m, &e);
    CHECK(s == ING_OK);
    if (s != ING_OK) fprintf(stderr, "%s\n%s\n", e.text, text);
    ing_err_fini(&e);
    if (s == ING_OK) return m;
    ing_ir_mod_free(m);
    return NULL;
}

static char *printed(const ing_ir_mod *m) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_ir_print(m, 0, &b);
    return ing_bytes_take(&b);
}

/* The same text in f32. */
static char *in_f32(const char *text) {
    char *copy = strdup(text);
    for (char *p = copy; p && (p = strstr(p, "f64")); p += 3) memcpy(p, "f32", 3);
    return copy;
}

static void run_f64(const ing_ir_mod *m, data *d) {
    uint64_t args[10] = {(uintptr_t)d->x,  N, (uintptr_t)d->dx, N, (uintptr_t)d->y, N,
                         (uintptr_t)d->dy, N, (uintptr_t)d->c,  N};
    ing_ctx ctx = {.args = args, .fuel = ING_ABI_FUEL};
    CHECK(ing_ir_interp_lowered(m, &ctx) == 0);
}

static void run_f32(const ing_ir_mod *m, data *d) {
    float x[ROOM], dx[ROOM], y[ROOM], dy[ROOM];
    for (int k = 0; k < ROOM; k++) {
        x[k] = (float)d->x[k], dx[k] = (float)d->dx[k];
        y[k] = (float)d->y[k], dy[k] = (float)d->dy[k];
    }
    uint64_t args[10] = {(uintptr_t)x,  N, (uintptr_t)dx,   N, (uintptr_t)y, N,
                         (uintptr_t)dy, N, (uintptr_t)d->c, N};
    ing_ctx ctx = {.args = args, .fuel = ING_ABI_FUEL};
    CHECK(ing_ir_interp_lowered(m, &ctx) == 0);
    for (int k = 0; k < ROOM; k++) {
        d->x[k] = x[k], d->dx[k] = dx[k];
        d->y[k] = y[k], d->dy[k] = dy[k];
    }
}

/* The kernel at x + s * dx, y + s * dy. */
static data moved(const ing_ir_mod *m, double s) {
    data d = start;
    for (int k = 0; k < ROOM; k++) {
        d.x[k] += s * d.dx[k];
        d.y[k] += s * d.dy[k];
    }
    run_f64(m, &d);
    return d;
}

static void differences(const ing_ir_mod *m, double dx[ROOM], double dy[ROOM]) {
    double h = 1e-4;
    data a = moved(m, -2 * h), b = moved(m, -h), c = moved(m, h), d = moved(m, 2 * h);
    for (int k = 0; k < ROOM; k++) {
        dx[k] = (8 * (c.x[k] - b.x[k]) - (d.x[k] - a.x[k])) / (12 * h);
        dy[k] = (8 * (c.y[k] - b.y[k]) - (d.y[k] - a.y[k])) / (12 * h);
    }
}

static bool near(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

static ing_ir_mod *forward(const char *text) {
    ing_ir_mod *m = parse(text);
    ing_err e;
    if (!m) return NULL;
    ing_err_init(&e);
    ing_status s = ing_ad_forward(m, companions, &e);
    if (s == ING_OK) s = ing_ir_verify(m, &e);
    CHECK(s == ING_OK);
    if (s != ING_OK) {
        char *now = printed(m);
        fprintf(stderr, "%s\n%s\n%s\n", e.text, text, now);
        ing_free(now);
    }
    ing_err_fini(&e);
    if (s == ING_OK) return m;
    ing_ir_mod_free(m);
    return NULL;
}

static void compare(const char *text, const data *got, const data *plain,
                    const double dx[ROOM], const double dy[ROOM], double tolerance) {
    bool same = true, right = true;
    for (int k = 0; k < ROOM; k++) {
        same = same && got->x[k] == plain->x[k] && got->y[k] == plain->y[k];
        bool one =
            near(got->dx[k], dx[k], tolerance) && near(got->dy[k], dy[k], tolerance);
        if (!one) {
            fprintf(stderr, "at %d: dx %.9g wanted %.9g, dy %.9g wanted %.9g\n", k,
                    got->dx[k], dx[k], got->dy[k], dy[k]);
        }
        right = right && one;
    }
    CHECK(same);
    CHECK(right);
    if (!same || !right) fprintf(stderr, "%s\n", text);
}

static void check_width(const char *text, bool narrow, const double dx[ROOM],
                        const double dy[ROOM]) {
    char *own = narrow ? in_f32(text) : strdup(text);
    ing_ir_mod *plain = parse(own), *m = forward(own);
    void (*run)(const ing_ir_mod *, data *) = narrow ? run_f32 : run_f64;
    data a = start, b = start;
    if (plain && m) {
        run(plain, &a);
        run(m, &b);
        compare(own, &b, &a, dx, dy, narrow ? 2e-4 : 1e-7);
        ing_pass_options o = {0};
        CHECK(ing_pass_run(m, &o, NULL) == ING_OK);
    }
    ing_ir_mod_free(plain);
    ing_ir_mod_free(m);
    free(own);
}

/* Against differences, in both widths. */
static void check(const char *text) {
    double dx[ROOM], dy[ROOM];
    ing_ir_mod *m = parse(text);
    if (!m) return;
    differences(m, dx, dy);
    ing_ir_mod_free(m);
    check_width(text, false, dx, dy);
    check_width(text, true, dx, dy);
}

/* ---- operations -------------------------------------------------------------------------------- */

static void test_operations(void) {
    char text[4000];
    for (uint32_t op = 1; op < ING_OP_N; op++) {
        uint64_t bits;
        const ing_op_info *o = ing_op_get((ing_op)op);
        if (!ing_op_is_arith(op) || o->result != 'a') continue;
        if (!ing_ir_eval((ing_op)op, ING_F64, 0, 0, &bits)) continue;
        bool two = o->operands[1] == 'v', from_1 = op == ING_OP_ACOSH;
        snprintf(text, sizeof text, "%s%s %%%s%s\n%s",
                 HEAD LOOP "%q = mul %v, %v\n%z = const f64 0x1p-3\n%p = mul %q, %z\n"
                           "%a = mul %u, %u\n%b = add %a, %f1\n%r = ",
                 o->text, from_1 ? "b" : "p", two ? ", %b" : "", DONE("%r"));
        check(text);
    }
}

static void test_conversions(void) {
    check(
        KERNEL("%a = mul %v, %u\n%h = cast f32 %a\n%b = cast f64 %h\n%t = cast i32 %v\n"
               "%s = cast f64 %t\n%g = lt %v, %u\n%m = mul %u, %u\n"
               "%z = select f64 %g, %v, %m\n%o = select f64 %g, %f1, %z\n"
               "%p = add %v, %s\n%q = mul %p, %z\n%r = sub %q, %o\n",
               "%r"));
}

/* What depends on nothing leaves zeros, and what is there without a dual stays. */
static void test_constants(void) {
    check(KERNEL("%r = cast f64 %n\n", "%r"));
    check(HEAD "%p = elem ref<f64> %y, [%k3]\n%q = elem ref<f64> %x, [%k2]\n"
               "store %p, %f1\n%v = load f64 %p\nstore %q, %v\n}\n");
}

/* ---- control ------------------------------------------------------------------------------------ */

static void test_loops(void) {
    check(KERNEL("%s = alloca ref<f64>\nstore %s, %v\n"
                 "%t = loop i32 %k0, %n {\n%a = load f64 %s\n%b = mul %a, %u\n"
                 "%d = sin %b\n%e = add %d, %a\nstore %s, %e\n}\n%r = load f64 %s\n",
                 "%r"));
    /* what is read first gets its dual at the end of the iteration before */
    check(KERNEL("%s = alloca ref<f64>\n%o = alloca ref<f64>\nstore %s, %f1\n"
                 "%t = loop i32 %k0, %n {\n%a = load f64 %s\n%b = load f64 %o\n"
                 "%d = mul %a, %b\n%q = add %d, %u\nstore %s, %q\nstore %o, %v\n}\n"
                 "%r = load f64 %s\n",
                 "%r"));
    check(
        KERNEL("%s = alloca ref<f64>\n"
               "%t = loop i32 %k0, %n {\n%l = alloca ref<f64>\n%f = load f64 %l\n"
               "%g = add %f, %v\nstore %l, %g\n"
               "%t2 = loop i32 %k0, %t {\n%a = load f64 %l\n%b = mul %a, %u\n"
               "store %l, %b\n}\n%h = load f64 %l\n%m = load f64 %s\n%o = add %m, %h\n"
               "store %s, %o\n}\n%r = load f64 %s\n",
               "%r"));
}

static void test_while(void) {
    check(KERNEL("%s = alloca ref<f64>\n%m = alloca ref<i32>\nstore %s, %v\n"
                 "while {\n%t = load i32 %m\n%p = add %t, %k1\nstore %m, %p\n"
                 "%e = gt %p, %k7\nif %e {\nbreak\n}\n"
                 "%o = eq %p, %k3\nif %o {\ncontinue\n}\n"
                 "%a = load f64 %s\n%b = mul %a, %u\n%d = cos %b\nstore %s, %d\n"
                 "%g = lt %d, %v\nif %g {\nbreak\n} else {\n%h = mul %d, %v\n"
                 "store %s, %h\n}\n}\n%r = load f64 %s\n",
                 "%r"));
    check(
        KERNEL("%s = alloca ref<f64>\nstore %s, %u\n"
               "%t = loop i32 %k0, %k8 {\n%e = ge %t, %n\nif %e {\nbreak\n}\n"
               "%o = eq %t, %k1\nif %o {\ncontinue\n}\n"
               "%a = load f64 %s\n%b = mul %a, %v\nstore %s, %b\n}\n%r = load f64 %s\n",
               "%r"));
}

static void test_ifs(void) {
    check(KERNEL(
        "%s = alloca ref<f64>\n%g = lt %v, %f2\nif %g {\n%a = mul %v, %v\n"
        "store %s, %a\n} else {\n%h = lt %u, %f2\nif %h {\nstore %s, %f1\n} else {\n"
        "%b = exp %u\nstore %s, %b\n}\n}\n%r = load f64 %s\n",
        "%r"));
    /* a dual is overwritten by a constant */
    check(KERNEL("%s = alloca ref<f64>\nstore %s, %v\n%g = lt %u, %f2\nif %g {\n"
                 "store %s, %f2\n}\n%a = load f64 %s\n%r = mul %a, %a\n",
                 "%r"));
    check(HEAD LOOP
          "%g = lt %v, %f2\nif %g {\n%a = mul %v, %u\nstore %py, %a\n}\n}\n}\n");
}

/* ---- aggregates ---------------------------------------------------------------------------------- */

static void test_tensors(void) {
    check(KERNEL(
        "%l = alloca ref<tensor<f64, 3>>\n%m = make tensor<f64, 3> [%v, %f1, %u]\n"
        "store %l, %m\n%t = loop i32 %k0, %n {\n%a = rem %t, %k3\n"
        "%b = add %t, %k1\n%d = rem %b, %k3\n%e = member_dyn ref<f64> %l, %a\n"
        "%f = member_dyn ref<f64> %l, %d\n%g = load f64 %e\n%h = load f64 %f\n"
        "%o = mul %g, %h\n%q = sin %o\nstore %f, %q\n}\n"
        "%z = load tensor<f64, 3> %l\n%s0 = extract f64 %z, 0\n"
        "%s1 = extract f64 %z, 1\n%p = member ref<f64> %l, 2\n%s2 = load f64 %p\n"
        "%s3 = mul %s0, %s1\n%r = add %s3, %s2\n",
        "%r"));
}

/* Integers beside floats, a tensor inside, whole and in parts. */
#define S "struct<i32, f64, tensor<f64, 2>, struct<i64, f64>>"
static void test_structs(void) {
    check(KERNEL(
        "%l = alloca ref<" S ">\n%w0 = load " S " %l\n"
        "%t2 = make tensor<f64, 2> [%u, %f1]\n%kk = cast i64 %n\n"
        "%in = make struct<i64, f64> [%kk, %v]\n"
        "%m = make " S " [%n, %v, %t2, %in]\nstore %l, %m\n"
        "%pi = member ref<i32> %l, 0\n%ni = load i32 %pi\n%n2 = add %ni, %k1\n"
        "store %pi, %n2\n%pf = member ref<f64> %l, 1\n%vf = load f64 %pf\n"
        "%g = mul %vf, %u\nstore %pf, %g\n%w1 = load " S " %l\n"
        "%w2 = insert %w1, %n2, 0\n%e3 = extract struct<i64, f64> %w2, 3\n"
        "%e4 = extract f64 %e3, 1\n%e5 = mul %e4, %e4\n%w3 = insert %w2, %e5, 1\n"
        "store %l, %w3\n%pt = member ref<tensor<f64, 2>> %l, 2\n"
        "%pe = member_dyn ref<f64> %pt, %k1\n%q = load f64 %pe\n%q1 = add %q, %g\n"
        "store %pe, %q1\n%w4 = load " S " %l\n%k = gt %n, %k1\n"
        "%w5 = select " S " %k, %w4, %w0\n"
        "%z1 = extract f64 %w5, 1\n%z2 = extract tensor<f64, 2> %w5, 2\n"
        "%z3 = extract f64 %z2, 1\n%z4 = extract i32 %w5, 0\n%z5 = cast f64 %z4\n"
        "%z6 = mul %z1, %z3\n%r = mul %z6, %z5\n",
        "%r"));
}

/* Elements of arrays that are tensors. */
static void test_arrays_of_tensors(void) {
    check(ARGS("tensor<f64, 2>") "%i = loop parallel i32 %k0, %k8 {\n%p = elem "
                                 "ref<tensor<f64, 2>> %x, [%i]\n"
                                 "%q = elem ref<tensor<f64, 2>> %y, [%i]\n%a = load "
                                 "tensor<f64, 2> %p\n"
                                 "%a0 = extract f64 %a, 0\n%p1 = member ref<f64> %p, "
                                 "1\n%a1 = load f64 %p1\n"
                                 "%b = mul %a0, %a1\n%q0 = member ref<f64> %q, "
                                 "0\nstore %q0, %b\n"
                                 "%l = rem %i, %k2\n%q1 = member_dyn ref<f64> %q, "
                                 "%l\n%d = load f64 %q1\n"
                                 "%e = mul %d, %a0\nstore %q1, %e\n%g = eq %i, %k3\nif "
                                 "%g {\nstore %q, %a\n}\n"
                                 "%h = eq %i, %k7\nif %h {\n%z = make tensor<f64, 2> "
                                 "[%f1, %f2]\nstore %q, %z\n}\n"
                                 "}\n}\n");
}

/* ---- funcs ---------------------------------------------------------------------------------------- */

static uint32_t funcs_alive(const ing_ir_mod *m) {
    uint32_t *funcs = NULL, n = 0;
    CHECK(ing_ir_func_reaches(m, 0, &funcs, &n, NULL) == ING_OK);
    ing_free(funcs);
    return n - 1;
}

static uint32_t funcs_of(const char *text) {
    ing_ir_mod *m = forward(text);
    uint32_t n = m ? funcs_alive(m) : 0;
    ing_ir_mod_free(m);
    return n;
}

static void test_funcs(void) {
    static const char values[] = KERNEL(
        "%a = call f64 @1, [%v, %u]\n%b = call f64 @1, [%u, %f2]\n"
        "%d = call f64 @1, [%a, %v]\n%e = call f64 @1, [%f1, %f2]\n"
        "%g = mul %a, %b\n%h = mul %d, %e\n%r = add %g, %h\n",
        "%r") "func @1 (f64, f64) f64 {\n%x = param f64 0\n%y = param f64 1\n"
              "%c = lt %x, %y\nif %c {\n%m = mul %x, %y\nreturn %m\n}\n"
              "%s = sin %x\n%t = call f64 @2, [%s]\n%q = mul %t, %y\nreturn %q\n}\n"
              "func @2 (f64) f64 {\n%x = param f64 0\n%e = exp %x\nreturn %e\n}\n";
    check(values);
    CHECK(funcs_of(values) == 3 + 2); /* @1 of (v, v), (v, -), (-, -); @2 of (v), (-) */
    /* it runs off its end, or returns nothing */
    check(KERNEL(
        "%l = alloca ref<f64>\ncall void @2, [%l, %v, %n]\n%a = load f64 %l\n"
        "%b = call f64 @1, [%v, %u]\n%r = add %a, %b\n",
        "%r") "func @1 (f64, f64) f64 {\n%x = param f64 0\n%y = param f64 1\n"
              "%c = lt %x, %y\nif %c {\nreturn %x\n}\n}\n"
              "func @2 (ref<f64>, f64, i32) void {\n%p = param ref<f64> 0\n"
              "%x = param f64 1\n%n = param i32 2\n%z = const i32 0\n"
              "%i = loop i32 %z, %n {\n%a = load f64 %p\n%b = add %a, %x\n"
              "store %p, %b\n%two = const i32 2\n%g = eq %i, %two\nif %g {\nreturn\n"
              "}\n}\n}\n");
}

/* Addresses of locals, of members, of elements with and without companion. */
static void test_refs(void) {
    check(KERNEL(
        "%l = alloca ref<tensor<f64, 2>>\n%m = member ref<f64> %l, 1\n"
        "%n0 = member ref<f64> %l, 0\nstore %m, %f2\n"
        "call void @1, [%m, %v]\ncall void @1, [%m, %u]\ncall void @1, [%py, %v]\n"
        "call void @1, [%px, %f1]\n%a = load f64 %m\n%b = load f64 %py\n"
        "%d = load f64 %n0\n%e = add %a, %b\n%r = add %e, %d\n",
        "%r") "func @1 (ref<f64>, f64) void {\n%p = param ref<f64> 0\n"
              "%x = param f64 1\ncall void @2, [%p, %x]\n}\n"
              "func @2 (ref<f64>, f64) void {\n%p = param ref<f64> 0\n"
              "%x = param f64 1\n%a = load f64 %p\n%b = mul %a, %x\n"
              "%c = add %b, %x\nstore %p, %c\n}\n");
}

static void test_arrays_as_params(void) {
    static const char text[] = KERNEL(
        "%a = call f64 @1, [%x, %y, %i]\n%b = call f64 @1, [%x, %x, %j]\n"
        "call void @2, [%i]\n%d = load f64 %py\n%e = mul %d, %a\n%r = add %e, %b\n",
        "%r") "func @1 (array<f64, 1>, array<f64, 1>, i32) f64 {\n"
              "%p = param array<f64, 1> 0\n%q = param array<f64, 1> 1\n"
              "%i = param i32 2\n%e = elem ref<f64> %p, [%i]\n"
              "%g = elem ref<f64> %q, [%i]\n%a = load f64 %e\n%b = load f64 %g\n"
              "%h = mul %a, %b\nstore %g, %h\nreturn %h\n}\n"
              "func @2 (i32) void {\n%i = param i32 0\n%q = array array<f64, 1> 2\n"
              "%p = elem ref<f64> %q, [%i]\n%a = load f64 %p\n%b = sin %a\n"
              "store %p, %b\n}\n";
    check(text);
    CHECK(funcs_of(text) == 2);
}

/* A func that stores a dual to where none can be kept; Y is the type of that array. */
#define LOSES(Y)                                                                     \
    "arg 0 array<f64, 1>\narg 1 array<f64, 1>\narg 2 " Y "\n"                        \
    "arg 3 array<f64, 1>\narg 4 array<i32, 1>\nkernel @0 {\n"                        \
    "%x = array array<f64, 1> 0\n%y = array " Y " 2\n%k0 = const i32 0\n"            \
    "%p = elem ref<f64> %x, [%k0]\n%q = elem ref<f64> %y, [%k0]\n%v = load f64 %p\n" \
    "%l = alloca ref<f64>\n%a = call f64 @1, [%q, %v]\nstore %p, %a\n"               \
    "%b = load f64 %q\n%c = mul %b, %v\nstore %p, %c\n}\n"                           \
    "func @1 (ref<f64>, f64) f64 {\n%p = param ref<f64> 0\n%x = param f64 1\n"       \
    "%a = mul %x, %x\nstore %p, %a\n%b = load f64 %p\n%c = mul %b, %x\nreturn "      \
    "%c\n}\n"

static const uint32_t only_x[5] = {2, 0, 0, 0, 0};

/* A field without duals was made so: a constant. */
static void test_no_companion(void) {
    ing_ir_mod *m = parse(LOSES("field<f64, 1, at 0, level 0 8 8>"));
    data d = start;
    if (!m) return;
    CHECK(ing_ad_forward(m, only_x, NULL) == ING_OK &&
          ing_ir_verify(m, NULL) == ING_OK);
    uint64_t args[9] = {(uintptr_t)d.x,  N, (uintptr_t)d.dx, N, (uintptr_t)d.y,
                        (uintptr_t)d.dy, N, (uintptr_t)d.c,  N};
    ing_ctx ctx = {.args = args, .fuel = ING_ABI_FUEL};
    CHECK(ing_ir_interp_lowered(m, &ctx) == 0);
    double x = start.x[0];
    CHECK(d.y[0] == x * x && d.dy[0] == start.dy[0]);
    CHECK(near(d.x[0], x * x * x, 1e-14) && near(d.dx[0], x * x, 1e-14));
    ing_ir_mod_free(m);
}

/* Other arrays cannot have duals. */
static void test_lost(void) {
    ing_ir_mod *m = parse(LOSES("array<f64, 1>"));
    ing_err e;
    if (!m) return;
    ing_err_init(&e);
    CHECK(ing_ad_forward(m, only_x, &e) == ING_COMPILE);
    CHECK(e.text && strstr(e.text, "array without duals"));
    ing_err_fini(&e);
    ing_ir_mod_free(m);
}

/* What is read of y is constant, here and in funcs; what is written has its dual. */
static void test_stopped(void) {
    static const char text[] =
        KERNEL("%a = mul %v, %w\nstore %py, %a\ncall void @1, [%py, %v]\n"
               "call void @2, [%y, %i, %u]\n%b = load f64 %py\n%r = add %b, %v\n",
               "%r") "func @1 (ref<f64>, f64) void {\n%p = param ref<f64> 0\n"
                     "%x = param f64 1\n%o = atomic f64 %p, %x, add\n}\n"
                     "func @2 (array<f64, 1>, i32, f64) void {\n"
                     "%q = param array<f64, 1> 0\n%i = param i32 1\n%x = param f64 2\n"
                     "%p = elem ref<f64> %q, [%i]\n%a = load f64 %p\n%b = mul %a, %x\n"
                     "store %p, %b\n}\n";
    const uint32_t stop_y[5] = {2, 0, 4 | ING_AD_STOPPED, 0, 0};
    ing_ir_mod *m = parse(text);
    data d = start;
    if (!m) return;
    CHECK(ing_ad_forward(m, stop_y, NULL) == ING_OK &&
          ing_ir_verify(m, NULL) == ING_OK);
    run_f64(m, &d);
    for (int k = 0; k < N; k++) CHECK(d.dy[k] == start.dx[k]); /* y = constant + v */
    ing_ir_mod_free(m);
}

/* ---- atomics ------------------------------------------------------------------------------------------ */

static bool has_parallel(const char *text) {
    ing_ir_mod *m = forward(text);
    if (!m) return false;
    char *t = printed(m);
    bool is = strstr(t, "loop parallel") != NULL;
    ing_free(t);
    ing_ir_mod_free(m);
    return is;
}

#define UPDATE(kind)                                                         \
    HEAD LOOP "%q = elem ref<f64> %y, [%k2]\n%g = mul %v, %u\n%h = sin %g\n" \
              "%o = atomic f64 %q, %h, " kind "\n}\n}\n"
#define UPDATE_BY_CONSTANT(kind)               \
    HEAD LOOP "%q = elem ref<f64> %y, [%k2]\n" \
              "%o = atomic f64 %q, %f2, " kind "\n}\n}\n"

static void test_atomics(void) {
    static const char *const kinds[][2] = {
        {UPDATE("add"), UPDATE_BY_CONSTANT("add")},
        {UPDATE("sub"), UPDATE_BY_CONSTANT("sub")},
        {UPDATE("mul"), UPDATE_BY_CONSTANT("mul")},
        {UPDATE("min"), UPDATE_BY_CONSTANT("min")},
        {UPDATE("max"), UPDATE_BY_CONSTANT("max")},
        {UPDATE("xchg"), UPDATE_BY_CONSTANT("xchg")},
    };
    for (int k = 0; k < 6; k++) {
        check(kinds[k][0]);
        check(kinds[k][1]);
        CHECK(has_parallel(kinds[k][0]) == (k < 2));
        CHECK(has_parallel(kinds[k][1]) == (k < 3));
    }
    /* a local of the kernel, and one of each iteration; the old value is used */
    check(HEAD "%s = alloca ref<f64>\nstore %s, %f1\n" LOOP
               "%o = atomic f64 %s, %v, add\n}\n%q = elem ref<f64> %y, [%k1]\n"
               "%a = load f64 %s\nstore %q, %a\n}\n");
    static const char own[] =
        KERNEL("%l = alloca ref<f64>\nstore %l, %u\n%o = atomic f64 %l, %v, mul\n"
               "%p = atomic f64 %l, %u, max\n%q = load f64 %l\n%a = mul %o, %p\n%r = "
               "add %a, %q\n",
               "%r");
    check(own);
    CHECK(has_parallel(own));
    /* each iteration has its place for itself, or not */
    static const char each[] =
        HEAD LOOP "%o = atomic f64 %py, %v, mul\n%s = atomic f64 %py, %u, min\n}\n}\n";
    check(each);
    CHECK(has_parallel(each));
    static const char mixed[] =
        HEAD LOOP "%o = atomic f64 %py, %v, mul\n%q = elem ref<f64> %y, [%n]\n"
                  "%s = atomic f64 %q, %u, mul\n}\n}\n";
    check(mixed);
    CHECK(!has_parallel(mixed));
    static const char two[] = HEAD LOOP
        "%o = atomic f64 %py, %f1, max\n%s = atomic f64 %px, %f1, max\n}\n}\n";
    CHECK(!has_parallel(two));
    /* in a func, of an array */
    static const char far[] = HEAD LOOP
        "%q = elem ref<f64> %y, [%k2]\ncall void @1, [%q, %v]\n}\n}\n"
        "func @1 (ref<f64>, f64) void {\n%p = param ref<f64> 0\n%x = param f64 1\n"
        "%o = atomic f64 %p, %x, max\n}\n";
    check(far);
    CHECK(!has_parallel(far));
}

/* ---- nothing to do, refused, no memory ------------------------------------------------------------------- */

static void test_nothing(void) {
    static const char text[] =
        KERNEL("%a = call f64 @1, [%v]\n%r = mul %a, %u\n",
               "%r") "func @1 (f64) f64 {\n%x = param f64 0\nreturn %x\n}\n";
    const uint32_t none[5] = {0};
    ing_ir_mod *m = parse(text), *plain = parse(text);
    if (!m || !plain) return;
    CHECK(ing_ad_forward(m, none, NULL) == ING_OK);
    char *a = printed(m), *b = printed(plain);
    CHECK_STR(a, b);
    ing_free(a);
    ing_free(b);
    ing_ir_mod_free(m);
    ing_ir_mod_free(plain);
}

static void refused(const char *text, uint32_t loc, const char *word) {
    ing_ir_mod *m = parse(text);
    ing_err e;
    if (!m) return;
    ing_err_init(&e);
    CHECK(ing_ad_forward(m, companions, &e) == ING_COMPILE);
    CHECK(m->bad_loc == loc && strstr(e.text, word));
    ing_err_fini(&e);
    ing_ir_mod_free(m);
}

static void test_refused(void) {
    refused(KERNEL("%b = bitcast i64 %v !7\n", "%v"), 7, "bits");
    refused(KERNEL("%a = call f64 @1, [%v] !9\n", "%a") "func @1 (f64) f64 {\n"
                                                        "%x = param f64 0\n"
                                                        "%b = bitcast i64 %x !3\n"
                                                        "return %x\n}\n",
            9, "bits");
    const uint32_t wrong[5] = {2, 0, 5, 0, 0};
    ing_ir_mod *m = parse(KERNEL("", "%v"));
    CHECK(m && ing_ad_forward(m, wrong, NULL) == ING_INTERNAL);
    ing_ir_mod_free(m);
}

/* A result that has no room for a dual beside it is no lost memory. */
static void test_deep_result(void) {
    char type[400] = "f64", text[4000], wrap[4000] = "";
    for (int k = 0; k < ING_IR_MAX_TYPE_DEPTH; k++) {
        char inner[400];
        memcpy(inner, type, sizeof inner);
        snprintf(type, sizeof type, "struct<%.380s>", inner);
        size_t n = strlen(wrap);
        snprintf(wrap + n, sizeof wrap - n, "%%x%d = make %s [%%x%d]\n", k + 1, type,
                 k);
    }
    snprintf(text, sizeof text,
             "%s%%s = call %s @1, [%%v]\n%sfunc @1 (f64) %s {\n%%x0 = param f64 0\n",
             HEAD LOOP, type, DONE("%v"), type);
    ing_bytes b;
    ing_err e;
    ing_ir_mod *m = NULL;
    ing_bytes_init(&b);
    ing_err_init(&e);
    ing_bytes_printf(&b, "%s%sreturn %%x%d\n}\n", text, wrap, ING_IR_MAX_TYPE_DEPTH);
    bool fits = ing_ir_parse((const char *)b.at, b.len, &m, NULL) == ING_OK;
    CHECK(fits);
    if (fits)
        CHECK(ing_ad_forward(m, companions, &e) == ING_COMPILE &&
              strstr(e.text, "too large"));
    ing_err_fini(&e);
    ing_ir_mod_free(m);
    ing_bytes_fini(&b);
}

/* A call that calls, thousands deep; and the same func from two places. */
static void test_chain(void) {
    enum { DEEP = 2000 };
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_puts(&b, KERNEL("%r = call f64 @1, [%v, %f1]\n", "%r"));
    for (int k = 1; k < DEEP; k++)
        ing_bytes_printf(
            &b,
            "func @%d (f64, f64) f64 {\n%%x = param f64 0\n%%c = param f64 1\n"
            "%%y = call f64 @%d, [%%x, %%c]\nreturn %%y\n}\n",
            k, k + 1);
    ing_bytes_printf(&b,
                     "func @%d (f64, f64) f64 {\n%%x = param f64 0\n%%c = param f64 1\n"
                     "%%y = mul %%x, %%x\n%%z = mul %%y, %%c\nreturn %%z\n}\n",
                     DEEP);
    ing_ir_mod *m = NULL;
    CHECK(ing_ir_parse((const char *)b.at, b.len, &m, NULL) == ING_OK);
    if (m) {
        CHECK(ing_ad_forward(m, companions, NULL) == ING_OK);
        CHECK(ing_ir_verify(m, NULL) == ING_OK && funcs_alive(m) == DEEP);
    }
    ing_ir_mod_free(m);
    ing_bytes_fini(&b);
}

static void test_memory(void) {
    static const char text[] =
        KERNEL("%l = alloca ref<f64>\ncall void @1, [%l, %v]\n%r = load f64 %l\n",
               "%r") "func @1 (ref<f64>, f64) void {\n%p = param ref<f64> 0\n"
                     "%x = param f64 1\n%a = mul %x, %x\nstore %p, %a\n}\n";
    ing_status s = ING_MEMORY;
    for (uint64_t n = 1; s == ING_MEMORY && n < 1000; n++) {
        ing_ir_mod *m = parse(text);
        if (!m) return;
        ing_alloc_fail_at(n);
        s = ing_ad_forward(m, companions, NULL);
        ing_alloc_fail_at(0);
        if (s == ING_OK) CHECK(ing_ir_verify(m, NULL) == ING_OK);
        ing_ir_mod_free(m);
    }
    CHECK(s == ING_OK);
}

int main(void) {
    test_operations();
    test_conversions();
    test_constants();
    test_loops();
    test_while();
    test_ifs();
    test_tensors();
    test_structs();
    test_arrays_of_tensors();
    test_funcs();
    test_refs();
    test_arrays_as_params();
    test_no_companion();
    test_lost();
    test_stopped();
    test_atomics();
    test_nothing();
    test_refused();
    test_deep_result();
    test_chain();
    test_memory();
    return CHECK_DONE();
}
