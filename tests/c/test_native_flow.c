/* Native code against the interpreter: programs with loops, branches, calls, aggregates,
 * the launch buffer, checks and cancellation. Each is a text of IR; see native.h. */
#include "native.h"

#include <pthread.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

enum { N = 103 }; /* not a multiple of any vector length */

static int32_t ints[N * N], counts[N];
static float floats[N * N];
static double doubles[N];
static uint8_t bytes[4096];

static void fill(void) {
    for (int i = 0; i < N * N; i++) {
        ints[i] = (i * 7919) % 2003 - 1001;
        floats[i] = (float)ints[i] / 16.0f;
    }
    for (int i = 0; i < N; i++) doubles[i] = i * 0.25 - 9;
    for (int i = 0; i < (int)sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 % 251);
}

#define ARRAY1(p) \
    { .data = (p), .bytes = N * sizeof *(p), .extent = {N} }
#define ARRAY2(p, n, m) \
    { .data = (p), .bytes = (size_t)(n) * (m) * sizeof *(p), .extent = {n, m} }

static void run(const char *name, const char *ir, const targ *args, uint32_t n) {
    setup s = {.name = name, .ir = ir, .args = args, .n_args = n};
    both(&s, NULL);
    s.fast = true;
    s.tolerance = 1e-5;
    both(&s, NULL);
    s.level = "x86-64-v2";
    both(&s, NULL);
}

/* ---- control -------------------------------------------------------------------------------- */

/* Collatz: while, break, continue, if/else, locals. */
static const char collatz[] =
    "arg 0 array<i32, 1>\narg 1 array<i32, 1>\n"
    "task @0 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<i32, 1> 0\n    %o = array array<i32, 1> 1\n"
    "    %pa = elem ref<i32> %a, [%i]\n    %v = load i32 %pa\n    %w = abs %v\n"
    "    %x = alloca ref<i32>\n    store %x, %w\n"
    "    %n = alloca ref<i32>\n"
    "    %one = const i32 1\n    %two = const i32 2\n    %three = const i32 3\n"
    "    while {\n"
    "      %c = load i32 %x\n      %done = le %c, %one\n"
    "      if %done {\n        break\n      }\n"
    "      %k = load i32 %n\n      %k1 = add %k, %one\n      store %n, %k1\n"
    "      %r = mod %c, %two\n      %odd = eq %r, %one\n"
    "      if %odd {\n"
    "        %t = mul %c, %three\n        %u = add %t, %one\n        store %x, %u\n"
    "        continue\n"
    "      } else {\n        %h = floordiv %c, %two\n        store %x, %h\n      }\n"
    "    }\n"
    "    %po = elem ref<i32> %o, [%i]\n    %res = load i32 %n\n    store %po, %res\n"
    "  }\n"
    "}\nrun @0 range begin 0 end 103 cost 50 long\n";

/* Matrix times transposed one, column-major result, inner loops, break and continue. */
static const char nested[] =
    "arg 0 array<f32, 2>\narg 1 array<f32, 2, layout 1 0>\narg 2 array<i32, 1>\n"
    "task @0 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<f32, 2> 0\n    %o = array array<f32, 2, layout 1 0> 1\n"
    "    %cnt = array array<i32, 1> 2\n"
    "    %z = const i32 0\n    %m = dim i32 %a, 1\n    %n = dim i32 %o, 0\n"
    "    %j = loop i32 %z, %n {\n"
    "      %s = alloca ref<f32>\n"
    "      %k = loop i32 %z, %m {\n"
    "        %p = elem ref<f32> %a, [%i, %k]\n        %q = elem ref<f32> %a, [%j, %k]\n"
    "        %pv = load f32 %p\n        %qv = load f32 %q\n"
    "        %neg = lt %pv, %qv\n"
    "        if %neg {\n          continue\n        }\n"
    "        %lim = const i32 90\n        %far = gt %k, %lim\n"
    "        if %far {\n          break\n        }\n"
    "        %d = sub %pv, %qv\n        %old = load f32 %s\n        %new = add %old, "
    "%d\n"
    "        store %s, %new\n"
    "      }\n"
    "      %r = elem ref<f32> %o, [%i, %j]\n      %v = load f32 %s\n      store %r, "
    "%v\n"
    "      %one = const i32 1\n      %pc = elem ref<i32> %cnt, [%i]\n"
    "      %was = atomic i32 %pc, %one, add\n"
    "    }\n"
    "  }\n"
    "}\nrun @0 range begin 0 end 20 cost 500\n";

/* Bounds at the ends of the type, empty and reversed ranges, i64 counters. */
static const char bounds[] =
    "arg 0 array<i64, 1>\n"
    "task @0 {\n"
    "  %o = array array<i64, 1> 0\n"
    "  %i0 = const i32 2147483643\n  %i1 = const i32 2147483647\n  %i2 = const i32 "
    "-2147483648\n"
    "  %l0 = const i64 9223372036854775800\n  %l1 = const i64 9223372036854775807\n"
    "  %k0 = const i32 0\n  %k1 = const i32 1\n  %k2 = const i32 2\n  %one = const i64 "
    "1\n"
    "  %p0 = elem ref<i64> %o, [%k0]\n  %p1 = elem ref<i64> %o, [%k1]\n"
    "  %p2 = elem ref<i64> %o, [%k2]\n"
    "  %a = loop i32 %i0, %i1 {\n    %w = cast i64 %a\n    %x = atomic private i64 "
    "%p0, %w, add\n  }\n"
    "  %b = loop i32 %i1, %i2 {\n    %y = atomic private i64 %p0, %one, add\n  }\n"
    "  %c = loop i64 %l0, %l1 {\n    %z = atomic private i64 %p1, %c, xor\n  }\n"
    "  %d = loop i64 %l1, %l1 {\n    %u = atomic private i64 %p1, %one, add\n  }\n"
    "  %f0 = const i32 -3\n  %f1 = const i32 4\n"
    "  %g = loop i32 %f0, %f1 {\n    %v = cast i64 %g\n    %t = atomic private i64 "
    "%p2, %v, mul\n  }\n"
    "}\nrun @0 serial cost 10\n";

/* An indexed local in a parallel loop: iterations share its space in native code. */
static const char local_array[] =
    "arg 0 array<i32, 1>\narg 1 array<i32, 1>\n"
    "task @0 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<i32, 1> 0\n    %o = array array<i32, 1> 1\n"
    "    %h = alloca ref<tensor<i32, 8>>\n"
    "    %z = const i32 0\n    %five = const i32 5\n    %seven = const i32 7\n"
    "    %k = loop i32 %z, %five {\n"
    "      %s = add %i, %k\n      %n = dim i32 %a, 0\n      %at = mod %s, %n\n"
    "      %p = elem ref<i32> %a, [%at]\n      %v = load i32 %p\n      %bin = and %v, "
    "%seven\n"
    "      %q = member_dyn ref<i32> %h, %bin\n      %old = load i32 %q\n"
    "      %one = const i32 1\n      %new = add %old, %one\n      store %q, %new\n"
    "    }\n"
    "    %own = and %i, %seven\n    %r = member_dyn ref<i32> %h, %own\n    %c = load "
    "i32 %r\n"
    "    %po = elem ref<i32> %o, [%i]\n    store %po, %c\n"
    "  }\n"
    "}\nrun @0 range begin 0 end 103 cost 60\n";

/* Returns in both branches, dead code behind them, deep nesting. */
static const char returns[] =
    "arg 0 array<i32, 1>\narg 1 array<i32, 1>\n"
    "func @0 (i32) i32 {\n"
    "  %x = param i32 0\n  %z = const i32 0\n  %neg = lt %x, %z\n"
    "  if %neg {\n    %m = neg %x\n    return %m\n  } else {\n"
    "    %hundred = const i32 100\n    %big = gt %x, %hundred\n"
    "    if %big {\n"
    "      while {\n        return %hundred\n      }\n"
    "    }\n    return %x\n  }\n"
    "}\n"
    "func @1 (i32) i32 {\n"
    "  %n = param i32 0\n  %z = const i32 0\n"
    "  %i = loop i32 %z, %n {\n"
    "    %k = mul %i, %i\n    %c = gt %k, %n\n    if %c {\n      return %i\n    }\n"
    "  }\n  return %z\n"
    "}\n"
    "task @2 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<i32, 1> 0\n    %o = array array<i32, 1> 1\n"
    "    %p = elem ref<i32> %a, [%i]\n    %v = load i32 %p\n"
    "    %r = call i32 @0, [%v]\n    %s = call i32 @1, [%r]\n    %t = add %r, %s\n"
    "    %q = elem ref<i32> %o, [%i]\n    store %q, %t\n"
    "  }\n"
    "}\nrun @2 range begin 0 end 103 cost 60\n";

static void test_control(void) {
    targ two[] = {ARRAY1(ints), ARRAY1(counts)};
    int64_t three[3] = {5, 6, 7};
    targ longs[] = {{.data = three, .bytes = sizeof three, .extent = {3}}};
    targ matrix[] = {ARRAY2(floats, 20, N), ARRAY2(floats + 5000, 20, 20),
                     ARRAY1(counts)};
    run("collatz", collatz, two, 2);
    run("nested", nested, matrix, 3);
    run("bounds", bounds, longs, 1);
    run("local array", local_array, two, 2);
    run("returns", returns, two, 2);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Values, refs, arrays, u1 and aggregates in and out; a func that loops and stops. */
static const char calls[] =
    "arg 0 array<f32, 1>\narg 1 array<f32, 1>\narg 2 i32\n"
    "func @0 (f32, u1) struct<f32, u1, tensor<f32, 3>> {\n"
    "  %x = param f32 0\n  %f = param u1 1\n  %y = mul %x, %x\n  %n = neg %x\n"
    "  %v = make tensor<f32, 3> [%x, %y, %n]\n  %g = not %f\n"
    "  %s = make struct<f32, u1, tensor<f32, 3>> [%y, %g, %v]\n  return %s\n"
    "}\n"
    "func @1 (ref<f32>, f32) void {\n"
    "  %r = param ref<f32> 0\n  %x = param f32 1\n  %o = load f32 %r\n  %s = add %o, "
    "%x\n"
    "  %z = const f32 0.0\n  %c = lt %s, %z\n  if %c {\n    return\n  }\n  store %r, "
    "%s\n"
    "}\n"
    "func @2 (array<f32, 1>, i32) f32 {\n"
    "  %a = param array<f32, 1> 0\n  %n = param i32 1\n  %i = alloca ref<i32>\n"
    "  %acc = alloca ref<f32>\n  %one = const i32 1\n"
    "  while {\n"
    "    %k = load i32 %i\n    %done = ge %k, %n\n    if %done {\n      break\n    }\n"
    "    %p = elem ref<f32> %a, [%k]\n    %v = load f32 %p\n    call void @1, [%acc, "
    "%v]\n"
    "    %k1 = add %k, %one\n    store %i, %k1\n"
    "  }\n"
    "  %r = load f32 %acc\n  return %r\n"
    "}\n"
    "func @3 (u1, u1) u1 {\n"
    "  %a = param u1 0\n  %b = param u1 1\n  %c = xor %a, %b\n  return %c\n"
    "}\n"
    "task @4 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n  %n = arg i32 2\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<f32, 1> 0\n    %o = array array<f32, 1> 1\n"
    "    %p = elem ref<f32> %a, [%i]\n    %v = load f32 %p\n    %z = const f32 0.0\n"
    "    %f = lt %v, %z\n    %s = call struct<f32, u1, tensor<f32, 3>> @0, [%v, %f]\n"
    "    %s0 = extract f32 %s, 0\n    %s1 = extract u1 %s, 1\n"
    "    %s2 = extract tensor<f32, 3> %s, 2\n    %t = extract f32 %s2, 2\n"
    "    %x = call u1 @3, [%s1, %f]\n    %sum = call f32 @2, [%a, %n]\n"
    "    %m = select f32 %x, %s0, %t\n    %w = add %m, %sum\n"
    "    %q = elem ref<f32> %o, [%i]\n    store %q, %w\n"
    "  }\n"
    "}\nrun @4 range begin 0 end 103 cost 60 long\n";

static void test_calls(void) {
    targ args[] = {ARRAY1(floats), ARRAY1(floats + 1000), {.scalar = 57}};
    run("calls", calls, args, 3);
}

/* ---- aggregates ------------------------------------------------------------------------------- */

/* Array of structs in C layout: {u1, f64, tensor<i16, 3>, struct<i8, u1>} is 32 bytes. */
#define S "struct<u1, f64, tensor<i16, 3>, struct<i8, u1>>"
static const char structs[] =
    "arg 0 array<" S ", 1>\narg 1 array<tensor<f32, 2 2>, 1>\n"
    "task @0 {\n"
    "  %b = task.begin i64\n  %e = task.end i64\n"
    "  %i = loop parallel i64 %b, %e {\n"
    "    %a = array array<" S ", 1> 0\n    %m = array array<tensor<f32, 2 2>, 1> 1\n"
    "    %p = elem ref<" S "> %a, [%i]\n    %v = load " S " %p\n"
    "    %f = extract u1 %v, 0\n    %d = extract f64 %v, 1\n    %t = extract "
    "tensor<i16, 3> %v, 2\n"
    "    %n = extract struct<i8, u1> %v, 3\n    %n0 = extract i8 %n, 0\n    %n1 = "
    "extract u1 %n, 1\n"
    "    %g = xor %f, %n1\n    %one = const i8 1\n    %n2 = add %n0, %one\n"
    "    %nn = insert %n, %n2, 0\n    %nm = insert %nn, %g, 1\n"
    "    %t1 = extract i16 %t, 1\n    %t2 = mul %t1, %t1\n    %tt = insert %t, %t2, 2\n"
    "    %w0 = insert %v, %g, 0\n    %w1 = insert %w0, %tt, 2\n    %w2 = insert %w1, "
    "%nm, 3\n"
    "    %l = alloca ref<" S ">\n    store %l, %w2\n"
    "    %ld = member ref<f64> %l, 1\n    %h = const f64 0x1p-1\n    %sum = const f64 "
    "3.0\n"
    "    store %ld, %sum\n"
    "    %lt = member ref<tensor<i16, 3>> %l, 2\n    %le = member ref<i16> %lt, 0\n"
    "    store %le, %t2\n"
    "    %out = load " S " %l\n    store %p, %out\n"
    "    %q = elem ref<tensor<f32, 2 2>> %m, [%i]\n    %mv = load tensor<f32, 2 2> %q\n"
    "    %m1 = extract f32 %mv, 1\n    %m2 = extract f32 %mv, 2\n"
    "    %x = insert %mv, %m2, 1\n    %y = insert %x, %m1, 2\n"
    "    %c = lt %m1, %m2\n    %r = select tensor<f32, 2 2> %c, %mv, %y\n    store %q, "
    "%r\n"
    "    %q3 = member ref<f32> %q, 3\n    %was = atomic f32 %q3, %m1, max\n"
    "  }\n"
    "}\nrun @0 range begin 0 end 25 cost 60\n";

static void test_aggregates(void) {
    static uint8_t records[25 * 32];
    for (int i = 0; i < 25; i++) { /* padding stays 0: native code does not copy it */
        uint8_t *p = records + 32 * i;
        double d = i * 0.5;
        int16_t t[3] = {(int16_t)i, (int16_t)(-i * 11), (int16_t)(i * 3)};
        p[0] = (uint8_t)(i % 3 ? 1 : 0);
        memcpy(p + 8, &d, 8);
        memcpy(p + 16, t, 6);
        p[22] = (uint8_t)(i * 50);
        p[23] = (uint8_t)(i & 1);
    }
    targ args[] = {{.data = records, .bytes = sizeof records, .extent = {25}},
                   {.data = floats, .bytes = 25 * 16, .extent = {25}}};
    run("structs", structs, args, 2);
}

/* ---- arguments, results, buffer -------------------------------------------------------------------- */

static void test_scalars(void) {
    ing_bytes ir;
    ing_bytes_init(&ir);
    targ args[ING_DTYPE_N];
    for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++)
        ing_bytes_printf(&ir, "arg %u %s\n", t - 1, ing_dtype_name((ing_dtype)t));
    for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++)
        ing_bytes_printf(&ir, "ret %u %s\n", t - 1, ing_dtype_name((ing_dtype)t));
    ing_bytes_puts(&ir, "buffer 256\ntask @0 {\n");
    for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++) {
        const char *d = ing_dtype_name((ing_dtype)t);
        ing_bytes_printf(
            &ir, "%%a%u = arg %s %u\n%%p%u = buffer ref<%s> %u\nstore %%p%u, %%a%u\n",
            t, d, t - 1, t, d, 16 * t, t, t);
    }
    ing_bytes_puts(&ir, "}\ntask @1 {\n");
    for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++) {
        const char *d = ing_dtype_name((ing_dtype)t);
        ing_bytes_printf(
            &ir,
            "%%p%u = buffer ref<%s> %u\n%%v%u = load %s %%p%u\nset_ret %u, %%v%u\n", t,
            d, 16 * t, t, d, t, t - 1, t);
    }
    ing_bytes_puts(&ir, "}\nrun @0 serial cost 1\nrun @1 serial cost 1\n");
    for (int round = 0; round < 3; round++) {
        for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++) {
            uint64_t v = round == 0   ? 1
                         : round == 1 ? 0xfedcba9876543210u
                                      : 0x7766554433221101u;
            args[t - 1] = (targ){.scalar = ing_ir_norm((ing_dtype)t, v)};
        }
        setup s = {.name = "scalars",
                   .ir = (char *)ir.at,
                   .args = args,
                   .n_args = ING_DTYPE_N - 1};
        side out;
        both(&s, &out);
        for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++)
            CHECK(out.rets[t - 1] == args[t - 1].scalar); /* whole words */
    }
    ing_bytes_fini(&ir);
}

/* A bound computed by a serial task; a value that crosses tasks. */
static const char two_tasks[] =
    "arg 0 array<f64, 1>\narg 1 i32\nret 0 f64\nbuffer 24\n"
    "task @0 {\n"
    "  %n = arg i32 1\n  %two = const i32 2\n  %h = floordiv %n, %two\n  %w = cast i64 "
    "%h\n"
    "  %p = buffer ref<i64> 0\n  store %p, %w\n"
    "  %q = buffer ref<f64> 8\n  %c = const f64 0x3p-1\n  store %q, %c\n"
    "}\n"
    "task @1 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n  %q = buffer ref<f64> 8\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<f64, 1> 0\n    %s = load f64 %q\n"
    "    %one = const i32 1\n    %j = add nsw %i, %one\n    %n = dim i32 %a, 0\n"
    "    %p = elem ref<f64> %a, [%j]\n    %v = load f64 %p\n    %w = mul %v, %s\n    "
    "store %p, %w\n"
    "  }\n"
    "}\n"
    "task @2 {\n"
    "  %a = array array<f64, 1> 0\n  %k = const i64 3\n  %p = elem ref<f64> %a, [%k]\n"
    "  %v = load f64 %p\n  set_ret 0, %v\n"
    "}\n"
    "run @0 serial cost 1\nrun @1 range begin 0 end buffer 0 cost 5\nrun @2 serial "
    "cost 1\n";

static void test_tasks(void) {
    targ args[] = {ARRAY1(doubles), {.scalar = 2 * (N - 1)}};
    run("two tasks", two_tasks, args, 2);
    args[1].scalar = 0;
    run("no iterations", two_tasks, args, 2);
}

/* ---- stopping ------------------------------------------------------------------------------------------ */

static const char checks[] =
    "arg 0 array<i32, 1>\narg 1 i32\narg 2 i32\n"
    "func @0 (i32, i32) i32 {\n"
    "  %x = param i32 0\n  %lim = param i32 1\n  %ok = lt %x, %lim\n  check %ok, 2 "
    "!17\n"
    "  %r = add %x, %lim\n  return %r\n"
    "}\n"
    "func @1 (i32, i32) void {\n"
    "  %x = param i32 0\n  %lim = param i32 1\n  %u = call i32 @0, [%x, %lim]\n"
    "  %ok = ne %x, %lim\n  check %ok, 9 !4\n"
    "}\n"
    "task @2 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n  %l0 = arg i32 1\n  %l1 = arg i32 2\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<i32, 1> 0\n    call void @1, [%i, %l0]\n"
    "    %ok = lt %i, %l1\n    check %ok, 1 !33\n"
    "    %p = elem ref<i32> %a, [%i]\n    store %p, %i\n"
    "  }\n"
    "}\nrun @2 range begin 0 end 103 cost 9\n";

static void test_checks(void) {
    const uint64_t limits[][2] = {{1000, 1000}, {1000, 50}, {50, 1000}, {0, 0}};
    const int32_t codes[] = {0, 1, 2, 2};
    const uint32_t nodes[] = {0, 33, 17, 17};
    for (uint32_t k = 0; k < COUNT(limits); k++) {
        targ args[] = {
            ARRAY1(ints), {.scalar = limits[k][0]}, {.scalar = limits[k][1]}};
        setup s = {.name = "checks", .ir = checks, .args = args, .n_args = 3};
        side out;
        both(&s, &out);
        CHECK(out.status == codes[k] && out.error.code == codes[k]);
        CHECK(out.error.node == nodes[k]);
    }
}

/* Endless in four ways: only a poll ends them. */
static const char *const endless[] = {
    "task @0 {\n  while {\n    %x = const i32 1\n  }\n}\nrun @0 serial cost 1 long\n",
    "task @0 {\n  %z = const i64 0\n  %n = const i64 4611686018427387904\n"
    "  %i = loop i64 %z, %n {\n    %j = loop i64 %z, %i {\n      %p = alloca ref<i64>\n"
    "      store %p, %j\n    }\n  }\n}\nrun @0 serial cost 1 long\n",
    "func @0 () i32 {\n  while {\n    %x = const i32 1\n    %c = const u1 0\n"
    "    if %c {\n      return %x\n    }\n  }\n}\n"
    "task @1 {\n  %x = call i32 @0, []\n}\nrun @1 serial cost 1 long\n",
    "func @0 (i32) i32 {\n  %n = param i32 0\n  %s = alloca ref<i32>\n  %one = const "
    "i32 1\n"
    "  while {\n    %v = load i32 %s\n    %w = add %v, %one\n    store %s, %w\n"
    "    %c = gt %w, %n\n    if %c {\n      return %w\n    }\n  }\n}\n"
    "task @1 {\n  %z = const i64 0\n  %n = const i64 4611686018427387904\n  %t = const "
    "i32 30\n"
    "  %i = loop i64 %z, %n {\n    %x = call i32 @0, [%t]\n  }\n}\nrun @1 serial cost "
    "1 long\n",
};

static void test_cancel(void) {
    for (uint32_t k = 0; k < COUNT(endless); k++) {
        setup s = {.name = "endless", .ir = endless[k], .polls = 3};
        side out;
        both(&s, &out);
        CHECK(out.status == ING_ABI_CANCELLED && out.polled == 3 &&
              out.error.code == 0);
    }
    /* fuel carries over from call to call and through funcs: it is burnt once per edge */
    targ two[] = {ARRAY1(ints), ARRAY1(counts)};
    setup s = {.name = "fuel", .ir = collatz, .args = two, .n_args = 2};
    side out;
    both(&s, &out);
    CHECK(out.polled > 0 && out.ctx.fuel > 0 && out.ctx.fuel <= 1000);
}

/* ---- tallies ----------------------------------------------------------------------------------------------- */

/* Every kind on every integer type, at places that meet: as plain updates and as atomic ones. */
static void test_tallies(void) {
    static const char *const kinds[] = {"add", "sub", "mul", "min",
                                        "max", "and", "or",  "xor"};
    enum { PLACES = 8, TRIPS = 1000 };
    int32_t where[TRIPS];
    uint64_t values[PLACES];
    for (uint32_t k = 0; k < TRIPS; k++) where[k] = (int32_t)(k * 2654435761u >> 29);
    for (uint32_t k = 0; k < PLACES; k++) values[k] = 0x9E3779B97F4A7C15u * (k + 1);
    for (ing_dtype t = ING_I8; t <= ING_U64; t++) {
        const char *n = ing_dtype_name(t);
        ing_bytes b;
        targ args[9] = {{where, sizeof where, {TRIPS}, 0}};
        ing_bytes_init(&b);
        for (int k = 0; k < 9; k++)
            ing_bytes_printf(&b, "arg %d array<%s, 1>\n", k, k ? n : "i32");
        ing_bytes_puts(&b, "task @0 {\n%b = task.begin i32\n%e = task.end i32\n"
                           "%x = array array<i32, 1> 0\n"
                           "%i = loop parallel i32 %b, %e {\n"
                           "%q = elem ref<i32> %x, [%i]\n%k = load i32 %q\n");
        ing_bytes_printf(&b, "%%v = cast %s %%i\n", n);
        for (int k = 1; k < 9; k++) {
            args[k] = (targ){values, PLACES * (size_t)ing_dtype_bytes(t), {PLACES}, 0};
            ing_bytes_printf(&b, "%%a%d = array array<%s, 1> %d\n", k, n, k);
            ing_bytes_printf(&b, "%%p%d = elem ref<%s> %%a%d, [%%k]\n", k, n, k);
            ing_bytes_printf(&b, "%%o%d = atomic tally %s %%p%d, %%v, %s\n", k, n, k,
                             kinds[k - 1]);
        }
        ing_bytes_puts(&b, "}\n}\nrun @0 range begin 0 end word 1 cost 9\n");
        setup s = {.name = n, .ir = (char *)b.at, .args = args, .n_args = 9};
        for (int k = 0; k < 2; k++) {
            s.tallies = k;
            both(&s, NULL);
        }
        ing_bytes_fini(&b);
    }
}

/* ---- several threads -------------------------------------------------------------------------------------- */

static const char contended[] =
    "arg 0 array<i32, 1>\narg 1 array<f32, 1>\narg 2 array<i64, 1>\n"
    "task @0 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %a = array array<i32, 1> 0\n    %f = array array<f32, 1> 1\n    %l = array "
    "array<i64, 1> 2\n"
    "    %k0 = const i32 0\n    %k1 = const i32 1\n    %k2 = const i32 2\n"
    "    %one = const i32 1\n    %fone = const f32 1.0\n    %m = const i64 3\n"
    "    %w = cast i64 %i\n    %x = cast f32 %i\n"
    "    %p0 = elem ref<i32> %a, [%k0]\n    %q0 = atomic i32 %p0, %one, add\n"
    "    %p1 = elem ref<i32> %a, [%k1]\n    %q1 = atomic i32 %p1, %i, max\n"
    "    %p2 = elem ref<f32> %f, [%k0]\n    %q2 = atomic f32 %p2, %fone, add\n"
    "    %p3 = elem ref<f32> %f, [%k1]\n    %q3 = atomic f32 %p3, %x, min\n"
    "    %p4 = elem ref<i64> %l, [%k0]\n    %q4 = atomic i64 %p4, %m, mul\n"
    "    %p5 = elem ref<i64> %l, [%k1]\n    %q5 = atomic i64 %p5, %w, xor\n"
    "    %p6 = elem ref<i32> %a, [%k2]\n    %q6 = atomic i32 %p6, %one, sub\n"
    "  }\n"
    "}\nrun @0 range begin 0 end 1 cost 9\n";

enum { THREADS = 4, PER_THREAD = 20000 };

typedef struct worker {
    pthread_t thread;
    ing_task_fn fn;
    ing_ctx ctx;
    int64_t begin;
    int32_t status;
} worker;

static void *work(void *p) {
    worker *w = p;
    w->status = w->fn(&w->ctx, w->begin, w->begin + PER_THREAD, 0);
    return NULL;
}

static void test_threads(void) {
    ing_ir_mod *m = NULL;
    CHECK(ing_ir_parse(contended, strlen(contended), &m, NULL) == ING_OK);
    setup s = {.name = "contended"};
    ing_image *image = m ? build(m, 0, &s) : NULL;
    CHECK(image != NULL);
    int32_t a[3] = {0, -5, 0};
    float f[2] = {0, 1e9f};
    int64_t l[2] = {1, 0};
    uint64_t words[] = {(uintptr_t)a, 3, (uintptr_t)f, 2, (uintptr_t)l, 2};
    worker w[THREADS] = {0};
    for (int k = 0; image && k < THREADS; k++) {
        w[k] = (worker){.fn = ing_image_entry(image), .begin = 10 + k * PER_THREAD};
        w[k].ctx = (ing_ctx){.args = words, .fuel = 1000};
        CHECK(pthread_create(&w[k].thread, NULL, work, &w[k]) == 0);
    }
    uint64_t power = 1, bits = 0;
    int n = THREADS * PER_THREAD;
    for (int k = 0; k < n; k++) power *= 3, bits ^= (uint64_t)(k + 10);
    for (int k = 0; image && k < THREADS; k++) {
        pthread_join(w[k].thread, NULL);
        CHECK(w[k].status == 0);
    }
    CHECK(a[0] == n && a[1] == n + 9 && a[2] == -n);
    CHECK(f[0] == (float)n && f[1] == 10.0f);
    CHECK((uint64_t)l[0] == power && (uint64_t)l[1] == bits);
    ing_image_unref(image);
    ing_ir_mod_free(m);
}

int main(void) {
    if (!native_open()) return CHECK_DONE();
    fill();
    test_control();
    test_calls();
    test_aggregates();
    test_scalars();
    test_tasks();
    test_checks();
    test_cancel();
    test_tallies();
    test_threads();
    ing_helpers_free(helpers);
    return CHECK_DONE();
}
