/* The text of generated code: that it is the same each time, that flags and metadata stand
 * where the rules say and nowhere else, that running out of memory is an error; and that
 * saxpy becomes 256-bit fused multiply-adds. */
#include "compile/compile.h"
#include "gen/abi.h"
#include "gen_text.h"
#include "helper_argv.h"

#define TRIPLE "triple=x86_64-unknown-linux-gnu"

static void test_deterministic(void) {
    char *a = text_of(saxpy, true), *b = text_of(saxpy, true);
    CHECK_STR(a, b);
    ing_free(a);
    ing_free(b);
}

static void test_flags(void) {
    expect(saxpy, true, "fmul reassoc nsz contract float", 1,
           "call reassoc contract float @llvm.fmuladd", 1, "fadd", 0, "nnan", 0, "ninf",
           0, " fast ", 0, NULL);
    expect(saxpy, false, "fmul float", 1, "fadd float", 1, "fmuladd", 0, "reassoc", 0,
           "contract", 0, NULL);
    /* R22: the counter is nsw, plain arithmetic is not, flagged arithmetic is */
    expect("arg 0 array<i32, 1>\n"
           "task @0 {\n  %b = task.begin i32\n  %e = task.end i32\n"
           "  %i = loop parallel i32 %b, %e {\n    %a = array array<i32, 1> 0\n"
           "    %one = const i32 1\n    %j = add nsw %i, %one\n    %k = add %i, %one\n"
           "    %p = elem ref<i32> %a, [%j]\n    store %p, %k\n  }\n"
           "}\nrun @0 range begin 0 end 8 cost 6\n",
           true, "add nsw i32", 2, "add i32", 1, "mul nsw", 0, NULL);
}

/* Products join the sums they stand in (llvm_fuse.c), in their own loop only, and a term from
 * outside of it comes first. */
static void test_fused(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\n"
        "task @0 {\n  %%b = task.begin i32\n  %%e = task.end i32\n"
        "  %%x = array array<f32, 1> 0\n  %%z = const i32 0\n"
        "  %%o = elem ref<f32> %%x, [%%z]\n  %%c = load f32 %%o\n  %%d = mul %%c, %%c\n"
        "  %%i = loop parallel i32 %%b, %%e {\n"
        "    %%p = elem ref<f32> %%x, [%%i]\n    %%v = load f32 %%p\n"
        "    %%m = mul %%v, %%v\n    %%n = mul %%v, %%c\n%s\n    store %%p, %%r\n  }\n"
        "}\nrun @0 range begin 0 end 8 cost 6\n";
    static const struct {
        const char *body;
        int fused, negated, sums;
    } cases[] = {
        {"%r = add %v, %m", 1, 0, 0},
        {"%r = sub %m, %v", 1, 1, 0},
        {"%r = sub %v, %m", 1, 1, 0},
        {"%s = add %m, %v\n%r = add %s, %m", 2, 0, 0},
        {"%s = sub %m, %n\n%r = add %s, %c", 3, 2, 0}, /* the first is left unused */
        {"%s = add %m, %n\n%r = sub %c, %s", 3, 2, 0},
        {"%s = add %m, %n\n%r = add %s, %v", 1, 0, 1},
        {"%s = add %m, %n\n%t = add %s, %c\n%r = add %s, %t", 1, 0, 2},
        {"%r = add %v, %d", 0, 0, 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2048];
        snprintf(text, sizeof text, ir, cases[k].body);
        expect(text, true, "float @llvm.fmuladd.f32(float %", cases[k].fused, "fneg",
               cases[k].negated, "fadd", cases[k].sums, NULL);
        expect(text, false, "fmuladd", 0, NULL);
    }
}

/* Atomic sums of neighbours are one (llvm_pair.c), unless something uses an old value, stands
 * between them, or they straddle multiples of 8 bytes. */
static void test_paired(void) {
    static const char ir[] =
        "arg 0 array<%s, 1>\n"
        "task @0 {\n  %%b = task.begin i32\n  %%e = task.end i32\n"
        "  %%x = array array<%s, 1> 0\n"
        "  %%i = loop parallel i32 %%b, %%e {\n"
        "    %%p = elem ref<%s> %%x, [%%i]\n    %%v = const f32 1.0\n"
        "    %%q = member ref<f32> %%p, %d\n    %%m = atomic f32 %%q, %%v, add\n%s"
        "    %%r = member ref<f32> %%p, %d\n    %%n = atomic f32 %%r, %%v, add\n%s  }\n"
        "}\nrun @0 range begin 0 end 8 cost 6\n";
    static const struct {
        const char *type, *between, *after;
        int at, next, pairs;
    } cases[] = {
        {"tensor<f32, 2>", "", "", 0, 1, 1},
        {"tensor<f32, 4>", "", "", 2, 3, 1},
        {"tensor<f32, 4>", "", "", 1, 2, 0},
        {"tensor<f32, 4>", "", "", 0, 2, 0},
        {"tensor<f32, 3>", "", "", 0, 1, 0},
        {"tensor<f32, 2>", "%l = load f32 %q\n", "", 0, 1, 0},
        {"tensor<f32, 2>", "", "store %q, %n\n", 0, 1, 0},
        {"tensor<f32, 2>", "", "store %q, %m\n", 0, 1, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2048];
        const char *t = cases[k].type;
        snprintf(text, sizeof text, ir, t, t, t, cases[k].at, cases[k].between,
                 cases[k].next, cases[k].after);
        expect(text, true, "cmpxchg weak ptr", cases[k].pairs, "atomicrmw fadd", 2,
               "icmp ne i64", cases[k].pairs, NULL);
    }
}

/* Two updates that are no pair: of other kinds, of two vectors, nobody else's. */
static void test_unpaired(void) {
    static const char ir[] =
        "arg 0 array<tensor<f32, 2>, 1>\narg 1 array<tensor<f32, 2>, 1>\n"
        "task @0 {\n  %%b = task.begin i32\n  %%e = task.end i32\n"
        "  %%x = array array<tensor<f32, 2>, 1> 0\n"
        "  %%y = array array<tensor<f32, 2>, 1> 1\n"
        "  %%i = loop parallel i32 %%b, %%e {\n"
        "    %%p = elem ref<tensor<f32, 2>> %%x, [%%i]\n    %%v = const f32 1.0\n"
        "    %%o = elem ref<tensor<f32, 2>> %%y, [%%i]\n"
        "    %%q = member ref<f32> %%p, 0\n    %%m = atomic %s f32 %%q, %%v, %s\n"
        "    %%r = member ref<f32> %%%s, 1\n    %%n = atomic %s f32 %%r, %%v, %s\n  }\n"
        "}\nrun @0 range begin 0 end 8 cost 6\n";
    static const char *const cases[][4] = {
        {"", "max", "p", "max"},
        {"", "add", "p", "sub"},
        {"", "add", "o", "add"},
        {"private", "add", "p", "add"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2048];
        const char *const *c = cases[k];
        snprintf(text, sizeof text, ir, c[0], c[1], c[2], c[0], c[3]);
        expect(text, true, "cmpxchg weak ptr", 0, NULL);
    }
}

static void test_metadata(void) {
    /* two loads and the store are in the group; a and the pointers are loaded before the loop */
    expect(saxpy, true, "!llvm.access.group !6", 3, "!llvm.loop !8", 1,
           "!invariant.load !5", 4, "!tbaa !3", 3, "inttoptr", 0, "ptrtoint", 0,
           "llvm.loop.parallel_accesses", 1, NULL);
    /* a serial loop has no group, a local never */
    expect("arg 0 array<i32, 1>\n"
           "task @0 {\n  %b = const i32 0\n  %e = const i32 9\n  %a = array array<i32, "
           "1> 0\n"
           "  %i = loop i32 %b, %e {\n    %p = elem ref<i32> %a, [%i]\n    store %p, "
           "%i\n  }\n"
           "}\nrun @0 serial cost 6\n",
           true, "!llvm.access.group", 0, "!llvm.loop !8", 0, NULL);
    expect("task @0 {\n  %b = task.begin i32\n  %e = task.end i32\n"
           "  %i = loop parallel i32 %b, %e {\n    %p = alloca ref<i32>\n    store %p, "
           "%i\n  }\n"
           "}\nrun @0 range begin 0 end 8 cost 6\n",
           true, "!llvm.access.group", 0, "!llvm.loop !8", 1, "= alloca i32", 1, NULL);
}

/* Both ways stand in the loop, on one question that the entry asks; the atomic one is in the
 * loop's group, the plain one is not, since iterations may meet: beside it are the pointers and
 * the load of x. */
static void test_tallies(void) {
    expect("arg 0 array<i32, 1>\narg 1 array<i32, 1>\n"
           "task @0 {\n  %b = task.begin i32\n  %e = task.end i32\n"
           "  %x = array array<i32, 1> 0\n  %a = array array<i32, 1> 1\n"
           "  %i = loop parallel i32 %b, %e {\n    %p = elem ref<i32> %x, [%i]\n"
           "    %k = load i32 %p\n    %q = elem ref<i32> %a, [%k]\n"
           "    %o = atomic tally i32 %q, %k, add\n    %r = elem ref<i32> %a, [%i]\n"
           "    %s = atomic tally i32 %r, %i, sub\n  }\n"
           "}\nrun @0 range begin 0 end 8 tally 2 1 i32 1 add cost 6\n",
           true, "%tallies = load", 1, "br i1 %tallies.no", 2, "atomicrmw add", 1,
           "atomicrmw sub", 1, "align 4, !tbaa !3, !llvm.access.group", 3,
           "align 4, !tbaa !3\n", 4, "store i32", 2, NULL);
}

/* Loops over lanes are vectors of 32 bytes or less, and no loop is left (llvm_wide.c); loops that are
 * not marked stay, and rare ones are neither vectorised nor unrolled. */
static const char lanes[] =
    "task @0 {\n  %%z = const i64 0\n  %%n = const i64 %d\n"
    "  %%w = const i64 24\n  %%v = const %s 1\n"
    "  %%a = alloca ref<tensor<%s, 48>>\n"
    "  %%k = loop %s i64 %%z, %%n {\n    %%o = add nsw %%k, %%w\n"
    "    %%p = member_dyn ref<%s> %%a, %%k\n    store %%p, %%v\n"
    "    %%q = member_dyn ref<%s> %%a, %%o\n    %%x = load %s %%q\n"
    "    %%u = atomic private %s %%p, %%x, %s\n  }\n"
    "}\nrun @0 serial cost 1\n";

static void test_wide(void) {
    static const struct {
        const char *flag, *type, *kind;
        int n;
        const char *what;
        int times;
    } cases[] = {
        {"wide", "f32", "add", 24, "fadd <8 x float>", 3},
        {"wide", "f32", "add", 14, "fadd <4 x float>", 1},
        {"wide", "f32", "add", 14, "fadd <2 x float>", 1},
        {"wide", "f32", "add", 1, "fadd float", 1},
        {"wide", "f32", "add", 24, "store <8 x float> splat (float ", 3},
        {"wide", "f64", "mul", 24, "fmul <4 x double>", 6},
        {"wide", "u8", "xor", 24, "xor <16 x i8>", 1},
        {"wide", "i64", "min", 4, "call <4 x i64> @llvm.smin.v4i64", 1},
        {"wide", "u32", "max", 8, "call <8 x i32> @llvm.umax.v8i32", 1},
        {"rare", "i32", "and", 24, ", !llvm.loop !17\n", 1},
        {"serial", "i32", "and", 24, ", !llvm.loop !", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2048];
        const char *t = cases[k].type;
        snprintf(text, sizeof text, lanes, cases[k].n, t, t, cases[k].flag, t, t, t, t,
                 cases[k].kind);
        expect(text, true, cases[k].what, cases[k].times, NULL);
        expect(text, true, "phi", cases[k].flag[0] != 'w', NULL);
    }
    char text[2048]; /* the sign of zero and NaNs decide without fast math */
    snprintf(text, sizeof text, lanes, 8, "f32", "f32", "wide", "f32", "f32", "f32",
             "f32", "min");
    expect(text, false, "select <8 x i1>", 1, "minnum", 0, NULL);
    expect(text, true, "@llvm.minnum.v8f32", 2, NULL);
}

/* Words of arguments are loaded at the entry, once, also those that only a branch needs; and
 * PLAN7: what is stored there and read `beside` keeps the loop scalar. */
static void test_branches(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\narg 1 array<f32, 1>\narg 2 f32\ntask @0 {\n"
        "  %%b = task.begin i32\n  %%e = task.end i32\n"
        "  %%x = array array<f32, 1> 0\n  %%y = array array<f32, 1> %d\n"
        "  %%i = loop parallel i32 %%b, %%e {\n    %%o = const i32 1\n"
        "    %%n = add %%i, %%o\n    %%p = elem ref<f32> %%x, [%s]\n"
        "    %%v = load f32 %%p\n    %%z = const f32 0.0\n    %%c = lt %%z, %%v\n"
        "    if %%c {\n      %%a = arg f32 2\n      %%q = elem ref<f32> %%y, [%%i]\n"
        "      store %%q, %%a\n    } else {\n      %%k = arg f32 2\n"
        "      %%w = add %%k, %%k\n      %%r = elem ref<f32> %%y, [%%i]\n"
        "      store %%r, %%w\n    }\n  }\n}\nrun @0 range begin 0 end 8 cost 6\n";
    static const struct {
        int array;
        const char *place;
        int scalar;
    } cases[] = {{1, "%n", 0}, {0, "%i", 0}, {0, "%n", 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1200];
        snprintf(text, sizeof text, ir, cases[k].array, cases[k].place);
        expect(text, true, "!llvm.loop !12", cases[k].scalar, " = load ptr, ptr %w",
               2 - (cases[k].array == 0), " = load float, ptr %w", 1, NULL);
    }
}

/* FLOW8: a branch that takes a root is said to be likely; not one that adds. */
static void test_roots(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\ntask @0 {\n  %%b = task.begin i32\n  %%e = task.end i32\n"
        "  %%x = array array<f32, 1> 0\n  %%h = const f32 3.0\n"
        "  %%i = loop parallel i32 %%b, %%e {\n    %%p = elem ref<f32> %%x, [%%i]\n"
        "    %%v = load f32 %%p\n    %%c = lt %%h, %%v\n    if %%c {\n      %%w = %s\n"
        "      store %%p, %%w\n    }\n  }\n}\nrun @0 range begin 0 end 8 cost 6\n";
    static const char *const codes[] = {"sqrt %v", "rsqrt %v", "add %v, %h",
                                        "div %v, %h"};
    for (int k = 0; k < 4; k++) {
        char text[1200];
        snprintf(text, sizeof text, ir, codes[k]);
        expect(text, true, "!prof !13", k < 2 ? 1 : 0, NULL);
    }
}

/* FLOW6: a new extreme of floats is rare; other branches, and integers, say nothing. */
static void test_extremes(void) {
    static const char ir[] =
        "arg 0 array<%s, 1>\ntask @0 {\n  %%x = array array<%s, 1> 0\n"
        "  %%z = const i32 0\n  %%n = dim i32 %%x, 0\n  %%l = alloca ref<%s>\n"
        "  %%i = loop i32 %%z, %%n {\n    %%p = elem ref<%s> %%x, [%%i]\n"
        "    %%v = load %s %%p\n    %%w = load %s %%l\n    %%c = lt %%v, %%w\n"
        "    if %%c {\n      store %%l, %s\n    }\n  }\n}\nrun @0 serial cost 6\n";
    static const struct {
        const char *type, *kept;
        int rare;
    } cases[] = {
        {"f32", "%v", 1}, {"f64", "%v", 1}, {"f32", "%w", 0}, {"i32", "%v", 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[900];
        const char *t = cases[k].type;
        snprintf(text, sizeof text, ir, t, t, t, t, t, t, cases[k].kept);
        expect(text, true, ", !prof !9\nthen", cases[k].rare, NULL);
    }
}

/* PLAN6: funcs that call funcs, of `length` additions, in a loop and outside of one. */
static void expect_inlined(int length, int calls, int inlined) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_puts(&b, "task @0 {\n  %b = task.begin i32\n  %e = task.end i32\n"
                       "  %o = call i32 @3, [%b]\n"
                       "  %i = loop parallel i32 %b, %e {\n");
    for (int k = 0; k < calls; k++)
        ing_bytes_printf(&b, "    %%c%d = call i32 @1, [%%i]\n", k);
    ing_bytes_puts(&b, "  }\n}\nfunc @1 (i32) i32 {\n  %x = param i32 0\n"
                       "  %y = call i32 @2, [%x]\n  return %y\n}\n"
                       "func @2 (i32) i32 {\n  %x0 = param i32 0\n");
    for (int k = 0; k < length; k++)
        ing_bytes_printf(&b, "  %%x%d = add %%x%d, %%x%d\n", k + 1, k, k);
    ing_bytes_printf(&b,
                     "  return %%x%d\n}\nfunc @3 (i32) i32 {\n  %%x = param i32 0\n"
                     "  %%y = call i32 @2, [%%x]\n  return %%y\n}\n"
                     "run @0 range begin 0 end 8 cost 6\n",
                     length);
    expect((char *)b.at, true, ") alwaysinline", inlined, "call i32 @f2(ptr %ctx", 2,
           "call i32 @f3(ptr %ctx, i32 %t0)\n", 1, NULL);
    ing_bytes_fini(&b);
}

static void test_inlined(void) {
    expect_inlined(90, 10, 11);
    expect_inlined(90, 40, 41);
    expect_inlined(90, 45, 0); /* more than 4,000 instructions */
    expect_inlined(4100, 1, 0);
}

static void put_sums(ing_bytes *b, int func, int length) {
    ing_bytes_printf(b, "func @%d (i32) i32 {\n  %%x0 = param i32 0\n", func);
    for (int k = 0; k < length; k++)
        ing_bytes_printf(b, "  %%x%d = add %%x%d, %%x%d\n", k + 1, k, k);
    ing_bytes_printf(b, "  %%y = call i32 @3, [%%x%d]\n  return %%y\n}\n", length);
}

/* Two long funcs and a short one that all call. */
static void expect_parts(uint32_t size, int tasks, int f1, int hidden, int copies) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_puts(&b, "task @0 {\n  %k = const i32 1\n  %a = call i32 @1, [%k]\n"
                       "  %b = call i32 @2, [%a]\n  %c = call i32 @3, [%b]\n}\n");
    put_sums(&b, 1, 300);
    put_sums(&b, 2, 300);
    ing_bytes_puts(&b, "func @3 (i32) i32 {\n  %x = param i32 0\n  %y = add %x, %x\n"
                       "  return %y\n}\nrun @0 serial cost 1\n");
    part_size = size;
    expect((char *)b.at, true, "define i32 @ing_task(", 1, "target triple", tasks,
           "define internal i32 @f1(", f1, "define hidden i32 @f", hidden,
           "declare hidden i32 @f", hidden, "define internal i32 @f3(", copies,
           "ingot-pairs\"=\"few", size && hidden ? 2 * tasks : 0, NULL);
    part_size = 0;
    ing_bytes_fini(&b);
}

/* PART1 to PART5 */
static void test_parts(void) {
    expect_parts(0, 1, 1, 0, 1);
    expect_parts(1000, 1, 1, 0, 1);
    expect_parts(400, 2, 1, 1, 2); /* the task with the first func; the second */
    expect_parts(310, 3, 0, 2, 3); /* each alone */
}

/* saxpy with `n` more sums in its block; to be freed with ing_free. */
static char *long_sum(int n) {
    const char *end = strstr(saxpy, "    store");
    ing_bytes ir;
    ing_bytes_init(&ir);
    ing_bytes_put(&ir, saxpy, (size_t)(end - saxpy));
    ing_bytes_puts(&ir, "%s0 = add %s, %v\n");
    for (int k = 1; k < n; k++)
        ing_bytes_printf(&ir, "%%s%d = add %%s%d, %%v\n", k, k - 1);
    ing_bytes_printf(&ir, "store %%q, %%s%d\n  }\n", n - 1);
    ing_bytes_puts(&ir, strstr(saxpy, "}\nrun"));
    return ing_bytes_take(&ir);
}

/* Sums of long blocks keep their order (FLOW4), those of others need not. */
static void test_long_blocks(void) {
    char *some = long_sum(4000), *many = long_sum(4200);
    expect(some, true, "fadd reassoc nsz contract", 4000, NULL);
    expect(many, true, "fadd nsz contract", 4200, "reassoc", 0, NULL);
    expect(many, false, "fadd float", 4201, NULL);
    ing_free(some);
    ing_free(many);
}

/* Minima and maxima are locked only where they change something. */
static void test_extreme_updates(void) {
#define UPDATE(t, flags, op)                                               \
    "arg 0 array<" t ", 1>\narg 1 " t "\ntask @0 {\n  %a = array array<" t \
    ", 1> 0\n  %v = arg " t " 1\n  %z = const i32 0\n  %p = elem ref<" t   \
    "> %a, [%z]\n  %r = atomic " flags t " %p, %v, " op "\n}\nrun @0 serial cost 1\n"
    expect(UPDATE("i32", "", "min"), true, "load atomic i32", 1, "icmp slt i32", 1,
           "atomicrmw min", 1, "phi i32", 1, NULL);
    expect(UPDATE("u64", "", "max"), true, "load atomic i64", 1, "icmp ugt i64", 1,
           "atomicrmw umax", 1, NULL);
    expect(UPDATE("f32", "", "min"), true, "load atomic float", 1, "fcmp ult float", 1,
           "atomicrmw fmin", 1, NULL);
    expect(UPDATE("i32", "", "add"), true, "load atomic", 0, "atomicrmw add", 1, NULL);
    expect(UPDATE("u1", "", "min"), true, "load atomic", 0, "atomicrmw", 1, NULL);
    expect(UPDATE("i32", "private ", "min"), true, "atomic", 0, NULL);
#undef UPDATE
}

/* Guards only where a divisor can be 0 or -1. */
static void test_division(void) {
#define DIVIDE(op, c)                                                        \
    "arg 0 i32\nret 0 i32\ntask @0 {\n  %a = arg i32 0\n  %c = const i32 " c \
    "\n  %r = " op " %a, %c\n  set_ret 0, %r\n}\nrun @0 serial cost 1\n"
    expect(DIVIDE("floordiv", "7"), true, "select", 0, "sdiv", 1, "srem", 1, NULL);
    expect(DIVIDE("floordiv", "8"), true, "ashr i32", 1, "sdiv", 0, NULL);
    expect(DIVIDE("mod", "8"), true, "and i32", 1, "srem", 0, NULL);
    expect(DIVIDE("div", "8"), true, "sdiv i32", 1, "select", 0, NULL);
    expect(DIVIDE("div", "0"), true, "select", 3, NULL);
    expect(DIVIDE("mod", "-1"), true, "icmp eq i32 -1, 0", 1, NULL);
#undef DIVIDE
}

/* In floats only where vectors are likely: in a parallel loop, of up to 32 bits. */
static void test_wide_division(void) {
    static const char ir[] =
        "arg 0 array<%s, 1>\ntask @0 {\n  %%b = task.begin i32\n  %%e = task.end i32\n"
        "  %%a = array array<%s, 1> 0\n  %%i = loop parallel i32 %%b, %%e {\n"
        "    %%p = elem ref<%s> %%a, [%%i]\n    %%x = load %s %%p\n%s"
        "    %%q = floordiv %%x, %%x\n%s    store %%p, %%q\n  }\n"
        "}\nrun @0 range begin 0 end 8 cost 6\n";
    static const struct {
        const char *type, *before, *after;
        int floats;
    } cases[] = {
        {"i32", "", "", 1},
        {"u16", "", "", 1},
        {"i64", "", "", 0},
        {"i32", "while {\n  break\n  }\n", "", 0},
        {"i32", "", "%k = loop i32 %b, %e {\n%z = alloca ref<i32>\n}\n", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1024];
        const char *t = cases[k].type;
        snprintf(text, sizeof text, ir, t, t, t, t, cases[k].before, cases[k].after);
        expect(text, true, " = fdiv ", cases[k].floats, " = sdiv ", 1 - cases[k].floats,
               NULL);
    }
}

static void test_errors(void) {
    ing_bytes b;
    ing_err e;
    ing_bytes_init(&b);
    ing_err_init(&e);
    CHECK(
        emit("task @0 {\n}\ntask @1 {\n}\nrun @0 serial cost 1\nrun @1 serial cost 1\n",
             true, &b, &e) == ING_INTERNAL);
    CHECK(e.text && strstr(e.text, "2 tasks") != NULL);
    ing_err_fini(&e);
    ing_err_init(&e);
    CHECK(emit("task @0 {\n  %a = alloca ref<tensor<f64, 200000>>\n}\nrun @0 serial "
               "cost 1\n",
               true, &b, &e) == ING_COMPILE);
    CHECK(e.text && strstr(e.text, "1024 KiB") != NULL);
    ing_err_fini(&e);
    ing_err_init(&e);
    CHECK(emit("arg 0 i64\ntask @0 {\n  %z = const i64 0\n  %n = arg i64 0\n"
               "  %i = loop wide i64 %z, %n {\n  }\n}\nrun @0 serial cost 1\n",
               true, &b, &e) == ING_INTERNAL);
    CHECK(e.text && strstr(e.text, "wide loop") != NULL);
    ing_err_fini(&e);
    ing_bytes_fini(&b);
}

/* Every allocation fails once: an error each time, and nothing leaks. */
static void test_no_memory(void) {
    ing_ir_mod *m = NULL;
    ing_gen_options o = {.target = &ing_gen_cpu,
                         .fast_math = true,
                         .opt_level = 2,
                         .isa_level = "x86-64-v3",
                         .vector_math = 2};
    CHECK(ing_ir_parse(saxpy, strlen(saxpy), &m, NULL) == ING_OK);
    ing_status s = ING_MEMORY;
    int n = 0;
    for (; m && s == ING_MEMORY && n < 1000; n++) {
        ing_gen_texts b = {0};
        ing_alloc_fail_at((uint64_t)n + 1);
        s = ing_gen_llvm(m, &o, &b, NULL);
        ing_alloc_fail_at(0);
        ing_gen_texts_fini(&b);
    }
    CHECK(s == ING_OK && n > 3);
    ing_ir_mod_free(m);
}

/* A target that has the services elsewhere: code only calls them. */
static void declare_services(ing_bytes *out, bool poll, bool print, bool room) {
    if (poll) ing_bytes_puts(out, "\ndeclare i32 @" ING_ABI_POLL "(ptr)\n");
    if (print) ing_bytes_puts(out, "\ndeclare void @" ING_ABI_PRINT "(ptr, ptr)\n");
    if (room) ing_bytes_puts(out, "\ndeclare i32 @" ING_ABI_ROOM "(ptr, i64, i32)\n");
}

static void test_other_target(void) {
    static const char endless[] =
        "task @0 {\n  while {\n    print 8, []\n  }\n}\nrun @0 serial cost 1\n";
    static const ing_gen_level none = {NULL, 0, false};
    ing_gen_target other = {"spirv64", "e-i64:64", "", "none", &none, declare_services};
    ing_gen_options o = {.target = &other};
    ing_ir_mod *m = NULL;
    ing_gen_texts b = {0};
    CHECK(ing_ir_parse(endless, strlen(endless), &m, NULL) == ING_OK);
    CHECK(m && ing_gen_llvm(m, &o, &b, NULL) == ING_OK && b.len == 1);
    const char *text = b.len ? (const char *)b.at[0].at : "";
    CHECK(strstr(text, "datalayout = \"e-i64:64\"\ntarget triple = \"spirv64\"\n"));
    CHECK(strstr(text, "declare i32 @ing_poll(ptr)"));
    CHECK(strstr(text, "declare void @ing_print(ptr, ptr)"));
    CHECK(!strstr(text, "x86") && !strstr(text, "define internal"));
    ing_gen_texts_fini(&b);
    ing_ir_mod_free(m);
}

static void test_options(void) {
    ing_gen_options a = {.target = &ing_gen_cpu,
                         .fast_math = true,
                         .opt_level = 2,
                         .isa_level = "x86-64-v3"};
    ing_gen_target other = ing_gen_cpu;
    ing_gen_options b = a, c = a, d = a;
    b.fast_math = false;
    c.vector_math = 2;
    other.triple = "spirv64-unknown-unknown";
    d.target = &other;
    ing_bytes line;
    ing_bytes_init(&line);
    ing_gen_helper_options(&a, &line);
    CHECK_STR((char *)line.at,
              TRIPLE " features=+prefer-no-scatter level=2 cpu=x86-64-v3 fast=1");
    ing_bytes_fini(&line);
    ing_hash128 keys[4];
    const ing_gen_options *all[4] = {&a, &b, &c, &d};
    for (int i = 0; i < 4; i++) {
        ing_hasher h;
        ing_hasher_init(&h);
        ing_gen_key(all[i], &h);
        keys[i] = ing_hasher_done(&h);
        for (int j = 0; j < i; j++) CHECK(!ing_hash_eq(keys[i], keys[j]));
    }
}

/* vfmadd132/213/231ps on ymm registers: three-byte VEX, map 0F38, L = 1, pp = 66. */
static int count_ymm_fma(const uint8_t *p, size_t n) {
    int found = 0;
    for (size_t i = 0; i + 4 < n; i++) {
        bool vex = p[i] == 0xc4 && (p[i + 1] & 0x1f) == 2 && (p[i + 2] & 0x87) == 5;
        found += vex && (p[i + 3] == 0x98 || p[i + 3] == 0xa8 || p[i + 3] == 0xb8);
    }
    return found;
}

static void test_vectorised(void) {
    static helper_command cmd;
    if (!helper_command_get(&cmd)) return;
    ing_counters counters = {{0}};
    ing_helpers_config config = {.argv = cmd.argv, .max = 1};
    ing_helpers *h = ing_helpers_new(&config, &counters);
    ing_bytes object;
    ing_err e;
    ing_bytes_init(&object);
    ing_err_init(&e);
    char *ir =
        long_sum(5000); /* a long text before and after, which other options are for */
    char *text[] = {text_of(ir, true), text_of(saxpy, true), text_of(ir, true)};
    for (int i = 0; i < 3; i++) {
        object.len = 0;
        CHECK(ing_helpers_compile(h, TRIPLE " level=2 cpu=x86-64-v3 fast=1",
                                  (const uint8_t *)text[i], strlen(text[i]), &object,
                                  &e) == ING_OK);
        if (i == 1) CHECK(count_ymm_fma(object.at, object.len) >= 4);
        ing_free(text[i]);
    }
    ing_free(ir);
    ing_err_fini(&e);
    ing_bytes_fini(&object);
    ing_helpers_free(h);
}

int main(void) {
    test_deterministic();
    test_flags();
    test_fused();
    test_paired();
    test_unpaired();
    test_metadata();
    test_tallies();
    test_wide();
    test_inlined();
    test_parts();
    test_branches();
    test_roots();
    test_extremes();
    test_long_blocks();
    test_extreme_updates();
    test_division();
    test_wide_division();
    test_errors();
    test_no_memory();
    test_options();
    test_other_target();
    test_vectorised();
    return CHECK_DONE();
}
