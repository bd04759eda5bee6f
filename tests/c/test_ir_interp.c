/* The interpreter: what scalar operations give, control flow, memory, atomics, errors,
 * polling, and random programs that passes must not change (seed fixed; argv[1] is the
 * number of programs, INGOT_STRESS multiplies it by 20). */
#include "check.h"
#include "gen/abi.h"
#include "ir/ir.h"
#include "pass/pass.h"

#include <math.h>
#include <pthread.h>

/* ---- harness ------------------------------------------------------------------------------ */

static ing_ir_mod *parse(const char *text) {
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s = ing_ir_parse(text, strlen(text), &m, &e);
    if (s == ING_OK) s = ing_ir_verify(m, &e);
    CHECK(s == ING_OK);
    if (s != ING_OK) {
        fprintf(stderr, "%s\n%s\n", e.text ? e.text : "?", text);
        ing_ir_mod_free(m);
        m = NULL;
    }
    ing_err_fini(&e);
    return m;
}

typedef struct launch {
    uint64_t args[16], rets[4];
    uint8_t buffer[4096];
    ing_error_slot error;
    ing_ctx ctx;
} launch;

static void launch_init(launch *l) {
    memset(l, 0, sizeof *l);
    l->ctx = (ing_ctx){.args = l->args, .buffer = l->buffer, .rets = l->rets};
    l->ctx.error = &l->error;
    l->ctx.fuel = ING_ABI_FUEL;
}

static int64_t bound(const launch *l, const ing_ir_bound *b) {
    int64_t v = b->value;
    if (b->at == ING_IR_BOUND_WORD) return (int64_t)l->args[b->offset];
    if (b->at == ING_IR_BOUND_BUFFER) memcpy(&v, l->buffer + b->offset, 8);
    return v;
}

/* All tasks in order, as the runtime would on one thread. */
static int32_t run_tasks(const ing_ir_mod *m, launch *l) {
    CHECK(m->buffer_bytes <= sizeof l->buffer);
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        int64_t begin = 0, end = 1;
        if (t->kind == ING_IR_TASK_RANGE) {
            begin = bound(l, &t->begin);
            end = bound(l, &t->end);
        }
        /* in two pieces, so that nothing may depend on getting the whole range */
        int64_t mid =
            t->kind == ING_IR_TASK_RANGE && end > begin ? (begin + end) / 2 : end;
        uint64_t partials[64];
        int64_t size = t->row ? (int64_t)t->row : (int64_t)1 << t->chunk_shift;
        int64_t chunk = 0, last = 0;
        if (size > 1) { /* whole chunks or rows */
            mid = end - begin > size ? begin + size : end;
            chunk = 1;
        }
        if (t->partials) {
            last = ((end - begin - 1) >> t->chunk_shift) + 1;
            CHECK(last * t->partials <= 64);
            l->ctx.partials = partials;
        }
        int32_t s = ing_ir_interp(m, k, &l->ctx, begin, mid, 0);
        if (!s && mid < end) s = ing_ir_interp(m, k, &l->ctx, mid, end, chunk);
        if (!s && last > 0) s = ing_ir_interp(m, k, &l->ctx, 0, last, -1);
        if (s) return s;
    }
    return 0;
}

static uint64_t f32_bits(float f) {
    uint32_t b;
    memcpy(&b, &f, 4);
    return b;
}

static uint64_t f64_bits(double d) {
    uint64_t b;
    memcpy(&b, &d, 8);
    return b;
}

/* ---- scalar operations ----------------------------------------------------------------------- */

static uint64_t ev(ing_op op, ing_dtype t, uint64_t a, uint64_t b) {
    uint64_t r = 0xdead;
    CHECK(ing_ir_eval(op, t, a, b, &r));
    return r;
}

#define I(x) ((uint64_t)(int64_t)(x))

static void test_integers(void) {
    CHECK(ev(ING_OP_ADD, ING_I32, I(INT32_MAX), 1) == I(INT32_MIN));
    CHECK(ev(ING_OP_SUB, ING_U8, 0, 1) == 255);
    CHECK(ev(ING_OP_MUL, ING_I16, I(300), I(300)) == I((int16_t)90000));
    CHECK(ev(ING_OP_ADD, ING_U1, 1, 1) == 0);
    CHECK(ev(ING_OP_DIV, ING_I32, I(-7), 2) == I(-3));
    CHECK(ev(ING_OP_REM, ING_I32, I(-7), 2) == I(-1));
    CHECK(ev(ING_OP_FLOORDIV, ING_I32, I(-7), 2) == I(-4));
    CHECK(ev(ING_OP_FLOORDIV, ING_I32, 7, I(-2)) == I(-4));
    CHECK(ev(ING_OP_MOD, ING_I32, I(-7), 2) == 1);
    CHECK(ev(ING_OP_MOD, ING_I32, 7, I(-2)) == I(-1));
    CHECK(ev(ING_OP_MOD, ING_U64, UINT64_MAX, 10) == 5);
    for (int op = ING_OP_DIV; op <= ING_OP_MOD; op++) {
        CHECK(ev(op, ING_I64, 5, 0) == 0);
        CHECK(ev(op, ING_U8, 5, 0) == 0);
        bool q = op == ING_OP_DIV || op == ING_OP_FLOORDIV;
        CHECK(ev(op, ING_I64, I(INT64_MIN), I(-1)) == (q ? I(INT64_MIN) : 0));
        CHECK(ev(op, ING_I8, I(-128), I(-1)) == (q ? I(-128) : 0));
    }
    CHECK(ev(ING_OP_POW, ING_I32, 3, 4) == 81);
    CHECK(ev(ING_OP_POW, ING_I32, I(-1), I(-3)) == I(-1));
    CHECK(ev(ING_OP_POW, ING_I32, 2, I(-1)) == 0);
    CHECK(ev(ING_OP_POW, ING_I32, 0, 0) == 1);
    CHECK(ev(ING_OP_SHL, ING_I32, 1, 33) == 2);
    CHECK(ev(ING_OP_SHL, ING_I32, 1, 31) == I(INT32_MIN));
    CHECK(ev(ING_OP_SHR, ING_I32, I(-1), 28) == 15);
    CHECK(ev(ING_OP_SAR, ING_I32, I(-16), 2) == I(-4));
    CHECK(ev(ING_OP_SAR, ING_I64, I(-16), 64) == I(-16));
    CHECK(ev(ING_OP_SAR, ING_U8, 0x80, 7) == 1);
    CHECK(ev(ING_OP_SHL, ING_I32, 4, I(-31)) == 8);
    CHECK(ev(ING_OP_LT, ING_I8, I(-1), 0) == 1 && ev(ING_OP_LT, ING_U8, 255, 0) == 0);
    CHECK(ev(ING_OP_MAX, ING_U64, UINT64_MAX, 1) == UINT64_MAX);
    CHECK(ev(ING_OP_NOT, ING_U1, 1, 0) == 0 && ev(ING_OP_NOT, ING_U8, 1, 0) == 254);
    CHECK(ev(ING_OP_ABS, ING_I8, I(-128), 0) == I(-128));
    CHECK(ev(ING_OP_SGN, ING_I64, I(-5), 0) == I(-1) &&
          ev(ING_OP_SGN, ING_U8, 9, 0) == 1);
    CHECK(ev(ING_OP_POPCNT, ING_I8, I(-1), 0) == 8);
    CHECK(ev(ING_OP_CLZ, ING_I16, 1, 0) == 15 && ev(ING_OP_CLZ, ING_U32, 0, 0) == 32);
}

static void test_floats(void) {
    uint64_t nan = f32_bits(NAN), one = f32_bits(1), minus0 = f32_bits(-0.0f);
    CHECK(ev(ING_OP_MIN, ING_F32, nan, one) == one &&
          ev(ING_OP_MIN, ING_F32, one, nan) == one);
    CHECK(ev(ING_OP_MAX, ING_F32, minus0, 0) == minus0);
    CHECK(ev(ING_OP_NE, ING_F32, nan, nan) == 1 &&
          ev(ING_OP_EQ, ING_F32, nan, nan) == 0);
    CHECK(ev(ING_OP_LT, ING_F32, nan, one) == 0);
    CHECK(ev(ING_OP_FLOORDIV, ING_F64, f64_bits(-7.5), f64_bits(2)) == f64_bits(-4));
    CHECK(ev(ING_OP_MOD, ING_F64, f64_bits(-7.5), f64_bits(2)) == f64_bits(0.5));
    CHECK(ev(ING_OP_REM, ING_F64, f64_bits(-7.5), f64_bits(2)) == f64_bits(-1.5));
    CHECK(ev(ING_OP_ROUND, ING_F32, f32_bits(2.5f), 0) == f32_bits(3));
    CHECK(ev(ING_OP_SGN, ING_F32, nan, 0) == 0 &&
          ev(ING_OP_SGN, ING_F32, minus0, 0) == 0);
    CHECK(ev(ING_OP_NEG, ING_F32, 0, 0) == minus0);
    CHECK(ev(ING_OP_RSQRT, ING_F64, f64_bits(4), 0) == f64_bits(0.5));
    /* f16: 2048 + 1 is not representable and rounds to even */
    CHECK(ev(ING_OP_ADD, ING_F16, 0x6800, 0x3c00) == 0x6800);
    CHECK(ev(ING_OP_MUL, ING_F16, 0x7bff, 0x4000) == 0x7c00);
}

static uint64_t cast(ing_dtype from, ing_dtype to, uint64_t v) {
    return ing_ir_eval_cast(from, to, v);
}

static void test_casts(void) {
    CHECK(cast(ING_F32, ING_I32, f32_bits(-1.9f)) == I(-1));
    CHECK(cast(ING_F32, ING_I32, f32_bits(3e9f)) == I(INT32_MAX));
    CHECK(cast(ING_F32, ING_I8, f32_bits(-1e9f)) == I(-128));
    CHECK(cast(ING_F64, ING_I64, f64_bits(INFINITY)) == I(INT64_MAX));
    CHECK(cast(ING_F64, ING_I64, f64_bits(-INFINITY)) == I(INT64_MIN));
    CHECK(cast(ING_F64, ING_U64, f64_bits(1e30)) == UINT64_MAX);
    CHECK(cast(ING_F64, ING_U8, f64_bits(-5)) == 0 &&
          cast(ING_F64, ING_U8, f64_bits(255.9)) == 255);
    CHECK(cast(ING_F64, ING_I32, f64_bits(NAN)) == 0);
    CHECK(cast(ING_F64, ING_U1, f64_bits(0.5)) == 1 && cast(ING_I32, ING_U1, 2) == 1);
    CHECK(cast(ING_I32, ING_U8, I(-1)) == 255 &&
          cast(ING_I32, ING_U64, I(-1)) == UINT64_MAX);
    CHECK(cast(ING_U8, ING_I8, 255) == I(-1));
    CHECK(cast(ING_U64, ING_F32, UINT64_MAX) == f32_bits(18446744073709551616.0f));
    CHECK(cast(ING_I64, ING_F64, I(-3)) == f64_bits(-3));
    CHECK(cast(ING_F64, ING_F32, f64_bits(0.1)) == f32_bits(0.1f));
    CHECK(cast(ING_I32, ING_F16, 2049) == 0x6800);
    CHECK(cast(ING_F16, ING_F64, 0x3c00) == f64_bits(1));
}

/* ---- programs --------------------------------------------------------------------------------- */

/* Layout: axis 1 outermost in memory, so element (i, j) lies at j * n0 + i. */
static void test_arrays(void) {
    ing_ir_mod *m = parse("arg 0 array<i32, 2, layout 1 0>\n"
                          "arg 1 array<i32, 0>\n"
                          "task @0 {\n"
                          "%b = task.begin i32\n%e = task.end i32\n"
                          "%a = array array<i32, 2, layout 1 0> 0\n"
                          "%s = array array<i32, 0> 1\n%zero = const i32 0\n"
                          "%n1 = dim i32 %a, 1\n%hundred = const i32 100\n"
                          "%i = loop parallel i32 %b, %e {\n"
                          "  %j = loop i32 %zero, %n1 {\n"
                          "    %x = mul %i, %hundred\n    %y = add %x, %j\n"
                          "    %j64 = cast i64 %j\n"
                          "    %p = elem ref<i32> %a, [%i, %j64]\n    store %p, %y\n"
                          "    %q = elem ref<i32> %s, []\n"
                          "    %old = atomic i32 %q, %y, max\n"
                          "  }\n}\n}\n"
                          "run @0 range begin 0 end 3\n");
    if (!m) return;
    int32_t data[6], top = -1;
    launch l;
    launch_init(&l);
    l.args[0] = (uintptr_t)data;
    l.args[1] = 3;
    l.args[2] = 2;
    l.args[3] = (uintptr_t)&top;
    CHECK(run_tasks(m, &l) == 0);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) CHECK(data[j * 3 + i] == i * 100 + j);
    }
    CHECK(top == 201);
    ing_ir_mod_free(m);
}

static void test_aggregates(void) {
    ing_ir_mod *m = parse(
        "arg 0 array<struct<u1, tensor<f64, 2>, i16>, 1>\nret 0 f64\nret 1 i16\nret 2 "
        "u1\n"
        "func @0 (f64, ref<tensor<f64, 2>>, i16) struct<f64, i16> {\n"
        "%x = param f64 0\n%r = param ref<tensor<f64, 2>> 1\n%k = param i16 2\n"
        "%one = const i32 1\n%p = member_dyn ref<f64> %r, %one\n%y = load f64 %p\n"
        "%z = add %x, %y\nstore %p, %z\n"
        "%s = make struct<f64, i16> [%z, %k]\nreturn %s\n}\n"
        "task @1 {\n"
        "%a = array array<struct<u1, tensor<f64, 2>, i16>, 1> 0\n%i = const i64 1\n"
        "%p = elem ref<struct<u1, tensor<f64, 2>, i16>> %a, [%i]\n"
        "%t = member ref<tensor<f64, 2>> %p, 1\n%x = const f64 0x1p-1\n%k = const i16 "
        "-7\n"
        "%s = call struct<f64, i16> @0, [%x, %t, %k]\n"
        "%r0 = extract f64 %s, 0\nset_ret 0, %r0\n"
        "%r1 = extract i16 %s, 1\nset_ret 1, %r1\n"
        "%whole = load struct<u1, tensor<f64, 2>, i16> %p\n"
        "%f = extract u1 %whole, 0\nset_ret 2, %f\n"
        "%v = extract tensor<f64, 2> %whole, 1\n%w = insert %v, %x, 0\n"
        "%new = insert %whole, %w, 1\n"
        "%c = const u1 0\n%sel = select struct<u1, tensor<f64, 2>, i16> %c, %whole, "
        "%new\n"
        "%new2 = insert %sel, %k, 2\nstore %p, %new2\n"
        "}\nrun @1 serial\n");
    if (!m) return;
    struct {
        uint8_t flag;
        double v[2];
        int16_t k;
    } data[2] = {{0, {1, 2}, 3}, {1, {4, 5}, 6}};
    launch l;
    launch_init(&l);
    l.args[0] = (uintptr_t)data;
    l.args[1] = 2;
    CHECK(run_tasks(m, &l) == 0);
    CHECK(l.rets[0] == f64_bits(5.5) && (int16_t)l.rets[1] == -7 && l.rets[2] == 1);
    CHECK(data[1].v[0] == 0.5 && data[1].v[1] == 5.5 && data[1].k == -7 &&
          data[1].flag);
    CHECK(data[0].v[0] == 1 && data[0].k == 3);
    ing_ir_mod_free(m);
}

static void test_control(void) {
    /* sum of odd numbers below 10 but 7, by while, continue and break; then a func that
     * falls off its end, and one that returns from inside a loop */
    ing_ir_mod *m = parse(
        "arg 0 i32\nret 0 i32\nret 1 i32\nret 2 i32\n"
        "func @0 (i32) i32 {\n%x = param i32 0\n%z = const i32 0\n%c = lt %x, %z\n"
        "if %c {\n%m = const i32 -1\nreturn %m\n}\n}\n"
        "func @1 (i32) i32 {\n%x = param i32 0\n%z = const i32 0\n%n = const i32 100\n"
        "%i = loop i32 %z, %n {\n%q = mul %i, %i\n%c = ge %q, %x\nif %c {\nreturn "
        "%i\n}\n}\n}\n"
        "task @2 {\n%i = alloca ref<i32>\n%s = alloca ref<i32>\n%one = const i32 1\n"
        "%two = const i32 2\n%seven = const i32 7\n%n = arg i32 0\n%zero = const i32 "
        "0\n"
        "while {\n"
        "  %a = load i32 %i\n  %b = add %a, %one\n  store %i, %b\n"
        "  %done = gt %b, %n\n  if %done {\n    break\n  }\n"
        "  %m = mod %b, %two\n  %even = eq %m, %zero\n"
        "  if %even {\n    continue\n  } else {\n    %is7 = eq %b, %seven\n"
        "    if %is7 {\n      continue\n    }\n  }\n"
        "  %old = atomic private i32 %s, %b, add\n"
        "}\n"
        "%r = load i32 %s\nset_ret 0, %r\n"
        "%f = call i32 @0, [%one]\n%g = call i32 @1, [%r]\n"
        "set_ret 1, %f\nset_ret 2, %g\nreturn\n}\nrun @2 serial\n");
    if (!m) return;
    launch l;
    launch_init(&l);
    l.args[0] = 10;
    l.rets[1] = 77;
    CHECK(run_tasks(m, &l) == 0);
    CHECK(l.rets[0] == 18 && l.rets[1] == 0 && l.rets[2] == 5);
    ing_ir_mod_free(m);
}

/* An ALLOCA in a loop is zero each time; break leaves the innermost loop only. */
static void test_alloca_in_loop(void) {
    ing_ir_mod *m = parse(
        "ret 0 i32\ntask @0 {\n%z = const i32 0\n%n = const i32 4\n%one = const i32 1\n"
        "%sum = alloca ref<i32>\n"
        "%i = loop i32 %z, %n {\n  %v = alloca ref<i32>\n"
        "  %j = loop i32 %z, %n {\n    %c = eq %j, %i\n    if %c {\n      break\n    "
        "}\n"
        "    %o = atomic private i32 %v, %one, add\n  }\n"
        "  %x = load i32 %v\n  %o2 = atomic private i32 %sum, %x, add\n}\n"
        "%r = load i32 %sum\nset_ret 0, %r\n}\nrun @0 serial\n");
    if (!m) return;
    launch l;
    launch_init(&l);
    CHECK(run_tasks(m, &l) == 0 && l.rets[0] == 0 + 1 + 2 + 3);
    ing_ir_mod_free(m);
}

static void test_errors(void) {
    ing_ir_mod *m = parse("arg 0 i32\narg 1 array<i32, 1>\n"
                          "func @0 () void {\n}\n"
                          "func @1 (i32) void {\n%x = param i32 0\n%n = arg i32 0\n"
                          "%c = lt %x, %n\ncheck %c, 9 !41\n}\n"
                          "task @2 {\n%b = task.begin i32\n%e = task.end i32\n"
                          "%a = array array<i32, 1> 1\n"
                          "%i = loop parallel i32 %b, %e {\n  call void @0, []\n"
                          "  call void @1, [%i]\n  %p = elem ref<i32> %a, [%i]\n"
                          "  store %p, %i\n}\n}\n"
                          "run @2 range begin 0 end 10\n");
    if (!m) return;
    int32_t data[10] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    launch l;
    launch_init(&l);
    l.args[0] = 7;
    l.args[1] = (uintptr_t)data;
    l.args[2] = 10;
    CHECK(run_tasks(m, &l) == 9);
    CHECK(l.error.code == 9 && l.error.func == 2 && l.error.node == 41);
    CHECK(data[6] == 6 && data[7] == -1);
    l.args[0] = 3; /* the first error stays */
    l.error.node = 5;
    CHECK(run_tasks(m, &l) == 9 && l.error.node == 5);
    ing_ir_mod_free(m);
}

static int polls;

static int32_t stop_at_third(ing_ctx *ctx) {
    ctx->fuel = 10;
    return ++polls == 3;
}

static void test_poll(void) {
    ing_ir_mod *m = parse("task @0 {\nwhile {\n}\n}\nrun @0 serial\n");
    if (!m) return;
    launch l;
    launch_init(&l);
    l.ctx.fuel = 10;
    l.ctx.poll = stop_at_third;
    polls = 0;
    CHECK(ing_ir_interp(m, 0, &l.ctx, 0, 1, 0) == ING_ABI_CANCELLED && polls == 3);
    CHECK(l.error.code == 0);
    ing_ir_mod_free(m);
}

/* A chain of 5,000 funcs, each calling the next one: no recursion in C. */
static void test_deep_calls(void) {
    ing_bytes b;
    ing_bytes_init(&b);
    enum { N = 5000 };
    ing_bytes_puts(&b,
                   "ret 0 i32\ntask @0 {\n%1 = const i32 0\n%2 = call i32 @1, [%1]\n"
                   "set_ret 0, %2\n}\n");
    for (int k = 1; k <= N; k++) {
        ing_bytes_printf(
            &b, "func @%d (i32) i32 {\n%%x = param i32 0\n%%o = const i32 1\n", k);
        ing_bytes_puts(&b, "%y = add %x, %o\n%big = alloca ref<tensor<f64, 100>>\n");
        if (k < N)
            ing_bytes_printf(&b, "%%z = call i32 @%d, [%%y]\nreturn %%z\n}\n", k + 1);
        if (k == N) ing_bytes_puts(&b, "return %y\n}\n");
    }
    ing_bytes_puts(&b, "run @0 serial\n");
    ing_ir_mod *m = parse((char *)b.at);
    launch l;
    launch_init(&l);
    CHECK(m && run_tasks(m, &l) == 0 && l.rets[0] == N);
    ing_ir_mod *x = NULL;
    CHECK(m && ing_ir_extract_task(m, 0, &x, NULL) == ING_OK && x->funcs.len == N + 1);
    ing_ir_mod_free(x);
    ing_ir_mod_free(m);
    ing_bytes_fini(&b);
}

/* ---- several threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 2000 };
static ing_ir_mod *shared;

static void *hammer(void *arg) {
    ing_ctx ctx = *(ing_ctx *)arg; /* each thread has its own */
    ing_ir_interp(shared, 0, &ctx, 0, ROUNDS, 0);
    return NULL;
}

static void test_threads(void) {
    shared = parse(
        "arg 0 array<i64, 1>\narg 1 array<f32, 1>\narg 2 array<u8, 1>\n"
        "task @0 {\n%b = task.begin i64\n%e = task.end i64\n"
        "%a = array array<i64, 1> 0\n%f = array array<f32, 1> 1\n"
        "%u = array array<u8, 1> 2\n%z = const i32 0\n%pa = elem ref<i64> %a, [%z]\n"
        "%pf = elem ref<f32> %f, [%z]\n%pu = elem ref<u8> %u, [%z]\n"
        "%one = const f32 1.0\n%u1 = const u8 3\n"
        "%i = loop parallel i64 %b, %e {\n%x = atomic i64 %pa, %i, add\n"
        "%y = atomic f32 %pf, %one, add\n%w = atomic u8 %pu, %u1, add\n}\n}\n"
        "run @0 range begin 0 end 1\n");
    if (!shared) return;
    int64_t sum = 0;
    float count = 0;
    uint8_t bytes = 0;
    launch l;
    launch_init(&l);
    l.args[0] = (uintptr_t)&sum;
    l.args[2] = (uintptr_t)&count;
    l.args[4] = (uintptr_t)&bytes;
    l.args[1] = l.args[3] = l.args[5] = 1;
    pthread_t t[THREADS];
    for (int k = 0; k < THREADS; k++) pthread_create(&t[k], NULL, hammer, &l.ctx);
    for (int k = 0; k < THREADS; k++) pthread_join(t[k], NULL);
    CHECK(sum == (int64_t)THREADS * ROUNDS * (ROUNDS - 1) / 2);
    CHECK(count == THREADS * ROUNDS);
    CHECK(bytes == (uint8_t)(3 * THREADS * ROUNDS));
    ing_ir_mod_free(shared);
}

/* ---- random programs ---------------------------------------------------------------------------
 * A kernel of one or more parallel loops and serial statements between them over an i32 and
 * an f32 array and some locals. Values are picked from those in scope. */

static uint64_t rng_state;

static uint32_t rng(uint32_t n) {
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng_state >> 33) % n;
}

enum { ELEMS = 16, MAX_VALUES = 4000 };

typedef struct maker {
    ing_ir_builder b;
    uint32_t values[MAX_VALUES], n; /* scalars in scope */
    uint32_t refs[64], n_refs;      /* locals in scope: i32 and f32 refs */
    uint32_t ints, floats;          /* the arrays */
    uint32_t depth, loops, func;
    bool parallel; /* inside the parallel loop, where only its own element is written */
    uint32_t index;
} maker;

static ing_dtype random_dtype(void) {
    static const uint8_t all[] = {ING_U1,  ING_I8,  ING_I16, ING_I32, ING_I32,
                                  ING_I64, ING_U8,  ING_U16, ING_U32, ING_U64,
                                  ING_F16, ING_F32, ING_F64};
    return all[rng(sizeof all)];
}

static ing_type type_at(const maker *k, uint32_t id) {
    return k->b.func->insts.at[id].type;
}

static void keep(maker *k, uint32_t id) {
    if (k->n < MAX_VALUES) k->values[k->n++] = id;
}

static uint32_t random_const(maker *k, ing_dtype t) {
    static const int64_t ints[] = {0,  1,   -1,        2,         3,   7,
                                   31, 100, INT32_MIN, INT64_MIN, -128};
    static const double floats[] = {0.0,  -0.0, 1.0,      -1.0, 0.5,
                                    3.25, 1e30, INFINITY, NAN,  65504};
    uint32_t id = ing_dtype_is_float(t) ? ing_ir_const_float(&k->b, t, floats[rng(10)])
                                        : ing_ir_const_int(&k->b, t, ints[rng(11)]);
    keep(k, id);
    return id;
}

static uint32_t pick(maker *k, ing_dtype t) {
    for (int tries = 0; tries < 8 && k->n; tries++) {
        uint32_t id = k->values[k->n - 1 - rng(k->n < 30 || rng(3) == 0 ? k->n : 30)];
        if (type_at(k, id) == t) return id;
        if (tries == 6 && type_at(k, id) != ING_F16) {
            id = ing_ir_emit(&k->b, ING_OP_CAST, t, id, 0, 0);
            keep(k, id);
            return id;
        }
    }
    return random_const(k, t);
}

static bool order_free(
    ing_op op) { /* libm may differ between builds; not our business */
    return op < ING_OP_SIN || op > ING_OP_LOG;
}

static void random_arith(maker *k) {
    for (int tries = 0; tries < 20; tries++) {
        ing_op op = ING_OP_ADD + rng(ING_OP_CLZ - ING_OP_ADD + 1);
        ing_dtype t = random_dtype();
        uint64_t out;
        if (!order_free(op) || !ing_ir_eval(op, t, 0, 0, &out)) continue;
        uint32_t a = pick(k, t),
                 b = ing_op_get(op)->operands[1] == 'v' ? pick(k, t) : 0;
        keep(k, ing_ir_emit(&k->b, op, 0, a, b, 0));
        return;
    }
}

/* An index that is in range whatever it is made of; in a parallel loop the loop's own. */
static uint32_t element(maker *k, bool floats, bool write) {
    uint32_t i = k->index;
    if (!k->parallel || (!write && rng(2) && false)) {
        uint32_t m = ing_ir_const_int(&k->b, ING_I32, ELEMS);
        i = ing_ir_emit(&k->b, ING_OP_MOD, 0, pick(k, ING_I32), m, 0);
    }
    return ing_ir_elem(&k->b, floats ? k->floats : k->ints, &i, 1);
}

static void random_memory(maker *k) {
    bool floats = rng(2);
    ing_dtype t = floats ? ING_F32 : ING_I32;
    switch (rng(6)) {
    case 0:
        keep(k, ing_ir_emit(&k->b, ING_OP_LOAD, t, element(k, floats, false), 0, 0));
        break;
    case 1:
    case 2: {
        uint32_t v = pick(k, t), p = element(k, floats, true);
        if (rng(3)) {
            ing_ir_emit(&k->b, ING_OP_STORE, 0, p, v, 0);
        } else {
            uint32_t how = rng(floats ? ING_IR_ATOMIC_AND : ING_IR_ATOMIC_N);
            keep(k, ing_ir_emit(&k->b, ING_OP_ATOMIC, t, p, v, how));
        }
        break;
    }
    case 3:
        if (k->n_refs < 60 && !(k->parallel && k->depth == 1)) {
            ing_type ref = ing_ir_type_ref(k->b.mod, random_dtype());
            k->refs[k->n_refs++] = ing_ir_emit(&k->b, ING_OP_ALLOCA, ref, 0, 0, 0);
        }
        break;
    default:
        if (k->n_refs) {
            uint32_t r = k->refs[rng(k->n_refs)];
            ing_type e = ing_ir_type(k->b.mod, type_at(k, r))->elem;
            /* outer locals are shared by the iterations of a parallel loop: read only */
            if (rng(2) && (!k->parallel || r > k->index)) {
                ing_ir_emit(&k->b, ING_OP_STORE, 0, r, pick(k, e), 0);
            } else if (rng(4) == 0) {
                uint32_t v = pick(k, e), how = rng(ING_IR_ATOMIC_AND);
                keep(k, ing_ir_emit(&k->b, ING_OP_ATOMIC, e, r, v, how));
            } else {
                keep(k, ing_ir_emit(&k->b, ING_OP_LOAD, e, r, 0, 0));
            }
        }
    }
}

static void random_misc(maker *k) {
    ing_dtype t = random_dtype();
    switch (rng(4)) {
    case 0: random_const(k, t); break;
    case 1: {
        uint32_t a = pick(k, random_dtype());
        keep(k, ing_ir_emit(&k->b, ING_OP_CAST, t, a, 0, 0));
        break;
    }
    case 2: {
        uint32_t c = pick(k, ING_U1), a = pick(k, t), b = pick(k, t);
        keep(k, ing_ir_emit(&k->b, ING_OP_SELECT, t, c, a, b));
        break;
    }
    default: {
        ing_type both[2] = {t, random_dtype()};
        uint32_t items[2] = {pick(k, both[0]), pick(k, both[1])}, at = rng(2);
        ing_type s = ing_ir_type_struct(k->b.mod, both, NULL, 2);
        uint32_t v = ing_ir_make(&k->b, s, items, 2);
        if (rng(2)) v = ing_ir_emit(&k->b, ING_OP_INSERT, 0, v, pick(k, both[0]), 0);
        keep(k, ing_ir_emit(&k->b, ING_OP_EXTRACT, both[at], v, at, 0));
    }
    }
}

static void random_block(maker *k, uint32_t budget);

/* A block of its own: what it defines goes out of scope. */
static uint32_t scoped(maker *k, uint32_t budget) {
    uint32_t n = k->n, refs = k->n_refs;
    ing_ir_block_begin(&k->b);
    k->depth++;
    random_block(k, budget);
    if (k->loops && !ing_ir_block_ended(&k->b) && rng(6) == 0) {
        ing_ir_emit(&k->b, rng(2) ? ING_OP_BREAK : ING_OP_CONTINUE, 0, 0, 0, 0);
    }
    k->depth--;
    k->n = n;
    k->n_refs = refs;
    return ing_ir_block_end(&k->b);
}

static void random_if(maker *k, uint32_t budget) {
    uint32_t c = pick(k, ING_U1);
    uint32_t loops = k->loops;
    uint32_t yes = scoped(k, budget / 2), no = rng(2) ? scoped(k, budget / 2) : 0;
    k->loops = loops;
    ing_ir_emit(&k->b, ING_OP_IF, 0, c, yes, no);
}

static void random_loop(maker *k, uint32_t budget) {
    ing_dtype t = rng(4) ? ING_I32 : ING_I64;
    uint32_t a = ing_ir_const_int(&k->b, t, rng(3)),
             seven = ing_ir_const_int(&k->b, t, 7);
    uint32_t b = rng(2) ? ing_ir_const_int(&k->b, t, rng(6))
                        : ing_ir_emit(&k->b, ING_OP_MOD, 0, pick(k, t), seven, 0);
    uint32_t loop = ing_ir_loop_reserve(&k->b, t), n = k->n;
    keep(k, loop);
    k->loops++;
    uint32_t body = scoped(k, budget / 2);
    k->loops--;
    k->n = n;
    ing_ir_loop_finish(&k->b, loop, a, b, body, 0);
}

/* while: at most five rounds, counted by a local. */
static void random_while(maker *k, uint32_t budget) {
    ing_type ref = ing_ir_type_ref(k->b.mod, ING_I32);
    uint32_t count = ing_ir_emit(&k->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    uint32_t one = ing_ir_const_int(&k->b, ING_I32, 1), n = k->n;
    uint32_t five = ing_ir_const_int(&k->b, ING_I32, 5);
    ing_ir_block_begin(&k->b);
    uint32_t old =
        ing_ir_emit(&k->b, ING_OP_ATOMIC, ING_I32, count, one, ING_IR_ATOMIC_ADD);
    uint32_t done = ing_ir_emit(&k->b, ING_OP_GE, 0, old, five, 0);
    ing_ir_block_begin(&k->b);
    ing_ir_emit(&k->b, ING_OP_BREAK, 0, 0, 0, 0);
    ing_ir_emit(&k->b, ING_OP_IF, 0, done, ing_ir_block_end(&k->b), 0);
    keep(k, old);
    k->loops++;
    k->depth++;
    random_block(k, budget / 2);
    k->depth--;
    k->loops--;
    k->n = n;
    ing_ir_emit(&k->b, ING_OP_WHILE, 0, ing_ir_block_end(&k->b), 0, 0);
}

static void random_block(maker *k, uint32_t budget) {
    uint32_t refs = k->n_refs;
    for (uint32_t i = rng(budget + 1); i-- > 0;) {
        k->b.loc = rng(3) ? rng(100) : 0;
        uint32_t what = rng(20);
        bool nest = k->depth < 5 && budget > 4;
        if (what < 10) random_arith(k);
        if (what >= 10 && what < 13) random_memory(k);
        if (what >= 13 && what < 16) random_misc(k);
        if (what == 16 && nest) random_if(k, budget);
        if (what == 17 && nest) random_loop(k, budget);
        if (what == 18 && nest && rng(3) == 0) random_while(k, budget);
        if (what == 19 && !k->parallel && rng(4) == 0) {
            ing_ir_block_begin(&k->b);
            ing_ir_emit(&k->b, ING_OP_RETURN, 0, 0, 0, 0);
            uint32_t block = ing_ir_block_end(&k->b);
            ing_ir_emit(&k->b, ING_OP_IF, 0, pick(k, ING_U1), block, 0);
        }
    }
    if (k->depth) k->n_refs = refs;
}

static uint32_t random_bound(maker *k, int64_t value) {
    if (rng(3) == 0) return ing_ir_const_int(&k->b, ING_I32, value);
    if (rng(2)) return ing_ir_emit(&k->b, ING_OP_DIM, ING_I32, k->ints, 0, 0);
    uint32_t m = ing_ir_const_int(&k->b, ING_I32, ELEMS);
    return ing_ir_emit(&k->b, ING_OP_MOD, 0, pick(k, ING_I32), m, 0);
}

static void random_parallel(maker *k) {
    uint32_t a = ing_ir_const_int(&k->b, ING_I32, rng(2)), b = random_bound(k, ELEMS);
    uint32_t n = k->n, refs = k->n_refs;
    uint32_t loop = ing_ir_loop_reserve(&k->b, ING_I32);
    k->parallel = true;
    k->index = loop;
    keep(k, loop);
    ing_ir_block_begin(&k->b);
    k->depth = 1;
    random_block(k, 12);
    k->depth = 0;
    ing_ir_loop_finish(&k->b, loop, a, b, ing_ir_block_end(&k->b), ING_IR_PARALLEL);
    k->parallel = false;
    k->n = n;
    k->n_refs = refs;
}

static ing_ir_mod *random_kernel(void) {
    static maker k;
    ing_ir_mod *m = ing_ir_mod_new();
    memset(&k, 0, sizeof k);
    ing_type ai = ing_ir_type_array(m, ING_I32, 1, false, NULL);
    ing_type af = ing_ir_type_array(m, ING_F32, 1, false, NULL);
    ing_ir_add_arg(m, ai);
    ing_ir_add_arg(m, af);
    ing_ir_add_arg(m, ING_I32);
    ing_ir_add_arg(m, ING_F64);
    CHECK(ing_vec_push(&m->rets, (ing_type)ING_I32));
    ing_ir_builder_init(&k.b, m, ing_ir_add_func(m, ING_IR_KERNEL, "k", NULL, 0, 0));
    k.ints = ing_ir_emit(&k.b, ING_OP_ARRAY, ai, 0, 0, 0);
    k.floats = ing_ir_emit(&k.b, ING_OP_ARRAY, af, 1, 0, 0);
    keep(&k, ing_ir_emit(&k.b, ING_OP_ARG, ING_I32, 2, 0, 0));
    keep(&k, ing_ir_emit(&k.b, ING_OP_ARG, ING_F64, 3, 0, 0));
    for (uint32_t parts = rng(4) + 1; parts-- > 0;) {
        if (rng(3)) random_block(&k, 14);
        if (rng(4)) random_parallel(&k);
    }
    uint32_t r = pick(&k, ING_I32);
    ing_ir_emit(&k.b, ING_OP_SET_RET, 0, 0, r, 0);
    ing_ir_builder_done(&k.b);
    return m;
}

static char *text_of(const ing_ir_mod *m, uint32_t flags) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_ir_print(m, flags, &b);
    return ing_bytes_take(&b);
}

typedef struct outcome {
    int32_t ints[ELEMS], status;
    uint32_t floats[ELEMS];
    uint64_t ret;
} outcome;

static void execute(const ing_ir_mod *m, outcome *o, bool lowered) {
    launch l;
    launch_init(&l);
    memset(o, 0, sizeof *o);
    for (int k = 0; k < ELEMS; k++) {
        o->ints[k] = k * k - 20;
        o->floats[k] = (uint32_t)f32_bits((float)k * 0.75f - 3);
    }
    l.args[0] = (uintptr_t)o->ints;
    l.args[2] = (uintptr_t)o->floats;
    l.args[1] = l.args[3] = ELEMS;
    l.args[4] = I(-3) & UINT32_MAX;
    l.args[5] = f64_bits(2.5);
    o->status = lowered ? ing_ir_interp_lowered(m, &l.ctx) : run_tasks(m, &l);
    o->ret = l.rets[0];
}

/* The kernel as one serial task, in place: what it means before any pass. */
static void as_task(ing_ir_mod *m) {
    ing_ir_task t = {.func = 0};
    ing_ir_func *f = m->funcs.at[0];
    f->kind = ING_IR_TASK;
    for (uint32_t k = 1; k < f->insts.len; k++) {
        f->insts.at[k].flags &= (uint16_t)~ING_IR_PARALLEL;
    }
    CHECK(ing_vec_push(&m->tasks, t));
}

static bool step(ing_ir_mod *m, const char *pass) {
    ing_pass_options o = {0};
    ing_err e;
    ing_err_init(&e);
    ing_status s = pass ? ing_pass_run_one(m, pass, &o, &e) : ing_pass_run(m, &o, &e);
    if (s != ING_OK)
        fprintf(stderr, "%s: %s\n", pass ? pass : "all", e.text ? e.text : "?");
    ing_err_fini(&e);
    CHECK(s == ING_OK);
    return s == ING_OK;
}

/* NaNs are equal whatever their bits: which operand's payload survives is the CPU's. */
static bool same(const outcome *a, const outcome *b) {
    bool ok = a->status == b->status && a->ret == b->ret;
    ok = ok && memcmp(a->ints, b->ints, sizeof a->ints) == 0;
    for (int k = 0; k < ELEMS && ok; k++) {
        float x, y;
        memcpy(&x, &a->floats[k], 4);
        memcpy(&y, &b->floats[k], 4);
        ok = a->floats[k] == b->floats[k] || (x != x && y != y);
    }
    return ok;
}

static const char *const variants[][4] = {
    {"simplify", "TASK"},
    {"promote", "TASK"},
    {"split"},
    {"simplify", "split"},
    {"promote", "simplify", "split"},
    {NULL},
};
enum { N_VARIANTS = sizeof variants / sizeof variants[0] };

static bool check_variant(const char *text, int v, const outcome *want,
                          uint32_t *tasks) {
    ing_ir_mod *m = parse(text);
    outcome got;
    bool ok = m != NULL;
    if (ok && !variants[v][0]) ok = step(m, NULL);
    for (int k = 0; ok && k < 4 && variants[v][k]; k++) {
        bool task = strcmp(variants[v][k], "TASK") == 0;
        if (task) as_task(m);
        if (!task) ok = step(m, variants[v][k]);
    }
    if (ok) {
        execute(m, &got, false);
        ok = same(&got, want);
        CHECK(ok);
        if (m->tasks.len > *tasks) *tasks = m->tasks.len;
    }
    if (!ok && m) {
        char *after = text_of(m, 0);
        fprintf(stderr, "variant %d differs\n%s\n---- after\n%s\n", v, text, after);
        ing_free(after);
    }
    ing_ir_mod_free(m);
    return ok;
}

static bool check_program(uint32_t *tasks) {
    ing_ir_mod *m = random_kernel();
    char *text = text_of(m, ING_IR_PRINT_LOCS | ING_IR_PRINT_NAMES);
    ing_ir_mod *again = parse(text);
    bool ok = again != NULL;
    if (ok) {
        char *two = text_of(again, ING_IR_PRINT_LOCS | ING_IR_PRINT_NAMES);
        ok = strcmp(text, two) == 0;
        CHECK(ok);
        ing_free(two);
        outcome want, serial;
        execute(again, &want, true);
        as_task(again);
        execute(again, &serial, false);
        ok = same(&serial, &want);
        CHECK(ok);
        for (int v = 0; v < N_VARIANTS && ok; v++)
            ok = check_variant(text, v, &want, tasks);
    }
    ing_free(text);
    ing_ir_mod_free(again);
    ing_ir_mod_free(m);
    return ok;
}

static void test_random(uint32_t count) {
    uint32_t tasks = 0;
    for (uint32_t k = 0; k < count; k++) {
        rng_state = 12345 + (uint64_t)k * 7919;
        rng(2);
        if (check_program(&tasks)) continue;
        fprintf(stderr, "program %u\n", k);
        return;
    }
    CHECK(tasks >= 5);
}

int main(int argc, char **argv) {
    const char *stress = getenv("INGOT_STRESS");
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 500;
    if (stress && strcmp(stress, "0") != 0 && *stress) count *= 20;
    test_integers();
    test_floats();
    test_casts();
    test_arrays();
    test_aggregates();
    test_control();
    test_alloca_in_loop();
    test_errors();
    test_poll();
    test_deep_calls();
    test_threads();
    test_random(count);
    return CHECK_DONE();
}
