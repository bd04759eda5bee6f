/* The text of generated code as the plan of its loops wants it (PLAN1 to PLAN10 in src/gen/llvm_plan.c): which
 * poll, stay scalar, are unrolled, and how wide vectors are. */
#include "gen_text.h"

/* PLAN10: `loops` loops of `trips` iterations around `body` in a parallel or serial one, in a row of
 * such or not, are to be unrolled. */
static void expect_full_in(bool row, bool parallel, const char *trips, const char *body,
                           int loops) {
    char ir[1024];
    snprintf(ir, sizeof ir,
             "arg 0 array<f32, 1>\narg 1 i32\narg 2 array<i32, 1>\n"
             "task @0 {\n  %%b = %s\n  %%e = %s\n"
             "  %%a = array array<f32, 1> 0\n  %%g = arg i32 1\n"
             "  %%c = array array<i32, 1> 2\n  %%z = const i32 0\n"
             "  %%one = const i32 1\n  %%is = const u1 1\n%s"
             "  %%i = loop %s %%b, %%e {\n    %%p = elem ref<f32> %%a, [%%i]\n"
             "    %%q = elem ref<i32> %%c, [%%z]\n    %%x = load f32 %%p\n"
             "    %%n = %s\n    %%j = loop i32 %%z, %%n {\n"
             "      store %%p, %%x\n      %s\n    }\n  }\n%s"
             "}\nrun @0 %s cost 6\n",
             parallel ? "task.begin i32" : "const i32 0",
             parallel ? "task.end i32" : "const i32 99",
             row ? "  %r = loop i32 %z, %g {\n" : "", parallel ? "parallel i32" : "i32",
             trips, body, row ? "  }\n" : "",
             parallel ? "range begin 0 end 8" : "serial");
    expect(ir, true, ", !llvm.loop !20", loops, NULL);
}

static void expect_full(bool parallel, const char *trips, const char *body, int loops) {
    expect_full_in(false, parallel, trips, body, loops);
}

static void test_full(void) {
    const char *power = "%y = exp %x";
    expect_full_in(true, true, "const i32 4", power, 1);
    expect_full_in(true, true, "const i32 9", power, 0);
    expect_full_in(true, true, "add %g, %one", power, 0);
    expect_full_in(true, false, "const i32 4", power, 0);
    expect_full(true, "const i32 4", power, 1);
    expect_full(true, "const i32 3", power, 1);
    expect_full(true, "const i32 8", power, 1);
    expect_full(true, "const i32 9", power, 0);
    expect_full(true, "add %g, %one", power, 0);
    expect_full(false, "const i32 4", power, 0);
    expect_full(true, "const i32 4", "%y = sqrt %x", 1);
    expect_full(true, "const i32 4", "%y = exp %x\n      break", 0);
    expect_full(true, "const i32 4", "%y = exp %x\n      %t = atomic i32 %q, %one, add",
                0);
    expect_full(true, "const i32 4", "%y = exp %x\n      check %is, 1 !3", 0);
    expect_full(true, "const i32 4",
                "%y = exp %x\n      %k = loop i32 %z, %g {\n      }", 0);
    expect_full(true, "const i32 4",
                "%y = exp %x\n      while {\n        break\n      }", 0);
    expect_full(
        "parallel i32", "const i32 4",
        "%y = exp %x\n      %k = loop i32 %z, %n {\n        %w = exp %y\n      }", 2);
}

/* A func of `length` additions, called `calls` times by a parallel loop, beside a short loop
 * that is to stay as it is. */
static void expect_scalar(int length, int calls, int scalar_loops) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_puts(&b,
                   "task @0 {\n  %b = task.begin i32\n  %e = task.end i32\n"
                   "  %i = loop parallel i32 %b, %e {\n"
                   "    %j = loop i32 %b, %e {\n      %p = alloca ref<i32>\n    }\n");
    for (int k = 0; k < calls; k++)
        ing_bytes_printf(&b, "    %%c%d = call i32 @1, [%%i]\n", k);
    ing_bytes_puts(&b, "  }\n}\nfunc @1 (i32) i32 {\n  %x0 = param i32 0\n");
    for (int k = 0; k < length; k++)
        ing_bytes_printf(&b, "  %%x%d = add %%x%d, %%x%d\n", k + 1, k, k);
    ing_bytes_printf(&b, "  return %%x%d\n}\nrun @0 range begin 0 end 8 cost 6\n",
                     length);
    expect((char *)b.at, true, "!llvm.loop !12", scalar_loops, "!llvm.loop !8",
           1 - scalar_loops, NULL);
    ing_bytes_fini(&b);
}

/* PLAN4: what stands in the callees counts at each call; loops inside are short and go on
 * being vectorised. */
static void test_long_loops(void) {
    expect_scalar(90, 10, 0);
    expect_scalar(6100, 1, 1);
    expect_scalar(90, 70, 1);
}

/* PLAN5: loops in loops that run `trips` times, with `bound` made of their index %i. */
static void expect_short(const char *trips, const char *bound, int scalar_loops,
                         int polls) {
    char ir[640];
    snprintf(ir, sizeof ir,
             "arg 0 i32\ntask @0 {\n  %%b = task.begin i32\n  %%e = task.end i32\n"
             "  %%g = arg i32 0\n  %%z = const i32 0\n  %%o = const i32 1\n"
             "  %%n = const i32 %s\n"
             "  %%p = loop parallel i32 %%b, %%e {\n"
             "    %%i = loop i32 %%z, %%n {\n%s"
             "      %%j = loop i32 %%z, %%t {\n        %%k = loop i32 %%z, %%j {\n"
             "          %%x = alloca ref<i32>\n        }\n      }\n    }\n  }\n"
             "}\nrun @0 range begin 0 end 8 cost 6\n",
             trips, bound);
    expect(ir, true, "!llvm.loop !12", scalar_loops, "!llvm.loop !8", 1, "\npoll",
           polls, NULL);
}

static void test_short_loops(void) {
    expect_short("6", "%t = add %i, %o\n", 3, 0);
    expect_short("8", "%t = add %i, %o\n", 2, 0);  /* eight need no mask */
    expect_short("16", "%t = add %i, %o\n", 1, 1); /* j up to 16, k up to 15 */
    expect_short("17", "%t = add %i, %o\n", 0, 1);
    expect_short("17", "%t = min %g, %o\n", 2, 0);
    expect_short("8", "%t = max %g, %o\n", 0, 3); /* no bound above */
    expect_short("8", "%t = add %i, %g\n", 0, 3);
}

/* PLAN8 and FLOW7: every m-th place in vectors, by a counter of its own, with sums in order; not of long
 * steps, not with branches, and no such counter of what begins in the loop. */
static void test_spread(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\narg 1 i32\ntask @0 {\n  %%b = task.begin i32\n  %%e = "
        "task.end i32\n"
        "  %%x = array array<f32, 1> 0\n  %%f = arg i32 1\n  %%m = const i32 %d\n"
        "  %%k = loop parallel %s i32 %%b, %%e {\n    %%t = mul nsw %%k, %%m\n%s"
        "    %%i = add nsw %s, %%t\n    %%p = elem ref<f32> %%x, [%%i]\n    %%v = load "
        "f32 %%p\n"
        "    %%w = add %%v, %%v\n%s    store %%p, %%w\n%s  }\n}\nrun @0 range begin 0 "
        "end 8 cost 6\n";
    static const struct {
        int step;
        const char *flag, *before, *first, *open, *close;
        int counters, single, scalar;
    } cases[] = {
        {2, "strided", "", "%f", "", "", 1, 2, 0},
        {4, "strided", "", "%f", "", "", 1, 2, 0},
        {8, "strided", "", "%f", "", "", 0, 0, 1},
        {2, "", "", "%f", "", "", 0, 0, 0},
        {2, "strided", "    %g = add nsw %f, %k\n", "%g", "", "", 0, 2, 0},
        {2, "strided", "    %c = lt %f, %k\n", "%f", "    if %c {\n", "    }\n", 0, 0,
         1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1200];
        snprintf(text, sizeof text, ir, cases[k].step, cases[k].flag, cases[k].before,
                 cases[k].first, cases[k].open, cases[k].close);
        expect(text, true, " = phi i32", 1 + cases[k].counters, "\"ingot-stores\"",
               cases[k].single, "!llvm.loop !12", cases[k].scalar, "fadd reassoc",
               cases[k].single ? 0 : 1, NULL);
    }
}

/* PLAN9: 512 bits for divisions, roots and places that are computed, in loops that become vectors; not with the
 * vector library. And the least of numbers has the flags that make vectors of it. */
static void test_widths(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\narg 1 array<i32, 1>\ntask @0 {\n  %%b = task.begin i32\n "
        " %%e = task.end i32\n"
        "  %%x = array array<f32, 1> 0\n  %%y = array array<i32, 1> 1\n  %%h = const "
        "f32 3.0\n%s"
        "  %%i = loop parallel i32 %%b, %%e {\n    %%p = elem ref<f32> %%x, [%%i]\n"
        "    %%v = load f32 %%p\n%s    store %%p, %%w\n  }\n}\nrun @0 range begin 0 "
        "end 8 cost 6\n";
    static const struct {
        const char *before, *code;
        int wide;
    } cases[] = {
        {"", "    %w = add %v, %h\n", 0},
        {"", "    %a = add %v, %h\n    %w = mul %a, %v\n", 0},
        /* dense */
        {"", "    %a = add %v, %h\n    %c = mul %a, %v\n    %w = add %c, %h\n", 2},
        {"",
         "    %s = load f32 %p\n    %a = add %s, %h\n    %c = mul %a, %v\n    %w = add "
         "%c, %h\n",
         2},
        {"",
         "    %g = elem ref<i32> %y, [%i]\n    %s = load i32 %g\n    %r = cast f32 "
         "%s\n "
         "   %a = add %v, %h\n    %c = mul %a, %v\n    %w = add %c, %r\n",
         0},
        {"",
         "    %r = random f32\n    %a = add %v, %h\n    %c = mul %a, %v\n    %w = add "
         "%c, %r\n",
         0},
        {"", "    %w = div %v, %h\n", 0},
        {"", "    %w = div %h, %v\n", 2},
        {"", "    %w = sqrt %v\n", 2},
        {"  %s = sqrt %h\n", "    %w = add %v, %s\n", 0}, /* once */
        {"",
         "    %c = cast i32 %v\n    %q = elem ref<f32> %x, [%c]\n    %w = load f32 "
         "%q\n",
         2},
        {"",
         "    %g = elem ref<i32> %y, [%i]\n    %c = load i32 %g\n    %q = elem "
         "ref<f32> %x, [%c]\n"
         "    %w = load f32 %q\n",
         2},
        {"", "    %r = sqrt %v\n    %w = exp %r\n", 0},
        {"", "    %r = sqrt %v\n    %w = pow %r, %h\n", 2}, /* x * x * x */
        {"  %k = const f32 3.3\n", "    %r = sqrt %v\n    %w = pow %r, %k\n", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1200];
        snprintf(text, sizeof text, ir, cases[k].before, cases[k].code);
        expect(text, true, "\"prefer-vector-width\"=\"512\"", cases[k].wide,
               "\"prefer-vector-width\"=\"256\"", 2 - cases[k].wide, NULL);
    }
    char text[1200];
    snprintf(text, sizeof text, ir, "", "    %w = min numbers %v, %h\n");
    expect(text, true, "call nnan nsz float @llvm.minnum.f32", 1, NULL);
    snprintf(text, sizeof text, ir, "", "    %w = max %v, %h\n");
    expect(text, true, "nnan", 0, NULL);
    static const char vectors[] =
        "arg 0 array<tensor<f32, %d>, 1>\ntask @0 {\n  %%b = task.begin i32\n  %%e = "
        "task.end i32\n"
        "  %%x = array array<tensor<f32, %d>, 1> 0\n"
        "  %%i = loop parallel i32 %%b, %%e {\n    %%p = elem ref<tensor<f32, %d>> "
        "%%x, [%%i]\n"
        "    %%q = member ref<f32> %%p, 1\n    %%v = load f32 %%q\n    %%w = sqrt %%v\n"
        "    store %%q, %%w\n  }\n}\nrun @0 range begin 0 end 8 cost 6\n";
    for (int n = 3; n <= 9; n += 6) {
        snprintf(text, sizeof text, vectors, n, n, n);
        expect(text, true, "\"prefer-vector-width\"=\"512\"", n > 8 ? 2 : 0, NULL);
    }
}

/* PLAN9: nor in lanes. */
static void test_width_of_lanes(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\ntask @0 {\n  %%b = task.begin i32\n  %%e = task.end i32\n"
        "  %%x = array array<f32, 1> 0\n  %%h = const f32 3.0\n  %%n = const i32 64\n"
        "  %%i = loop parallel i32 %%b, %%e {\n    %%j = loop %si32 %%b, %%n {\n"
        "      %%p = elem ref<f32> %%x, [%%j]\n      %%v = load f32 %%p\n"
        "      %%w = div %%h, %%v\n      store %%p, %%w\n    }\n  }\n}\n"
        "run @0 range begin 0 end 8 cost 6\n";
    for (int ordered = 0; ordered < 2; ordered++) {
        char text[1200];
        snprintf(text, sizeof text, ir, ordered ? "ordered " : "");
        expect(text, true, "\"prefer-vector-width\"=\"512\"", ordered ? 0 : 2, NULL);
    }
}

/* PLAN7: what a loop stores in a branch it may read in other rows, not beside it. */
static void test_stalls(void) {
    static const char ir[] =
        "arg 0 array<f32, 2>\narg 1 i32\ntask @0 {\n  %%z = const i32 0\n  %%g = arg "
        "i32 "
        "1\n  %%one = const i32 1\n  %%x = array array<f32, 2> 0\n"
        "  %%i = loop i32 %%one, %%g {\n    %%up = sub %%i, %%one\n"
        "    %%j = loop i32 %%one, %%g {\n      %%p = elem ref<f32> %%x, [%%i, %%j]\n"
        "      %%left = sub %%j, %%one\n      %%q = elem ref<f32> %%x, [%s]\n"
        "      %%v = load f32 %%q\n      %%f = const f32 0.5\n      %%c = lt %%v, %%f\n"
        "      if %%c {\n        store %%p, %%v\n      }\n    }\n  }\n}\n"
        "run @0 serial cost 6\n";
    static const struct {
        const char *at;
        int scalar;
    } cases[] = {{"%up, %j", 0}, {"%up, %left", 0}, {"%i, %left", 1},
                 {"%z, %j", 1},  {"%j, %up", 1},    {"%left, %j", 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1200];
        snprintf(text, sizeof text, ir, cases[k].at);
        expect(text, true, "!llvm.loop !12", cases[k].scalar, NULL);
    }
}

/* Only what can run long polls, and only what can stop returns a status. */
static void test_polls(void) {
#define LOOPS(n, inner)                                                              \
    "task @0 {\n  %z = const i32 0\n  %n = const i32 " n "\n  %k = const i32 " inner \
    "\n"                                                                             \
    "  %i = loop i32 %z, %n {\n    %j = loop i32 %z, %k {\n      %p = alloca "       \
    "ref<i32>\n    }\n  }\n"                                                         \
    "}\nrun @0 serial cost 6\n"
    expect(saxpy, true, "poll", 0, "%fuel", 0, "stop:", 0, NULL);
    expect(LOOPS("1000000", "8"), true, "\npoll", 0, NULL);
    expect(LOOPS("10", "1024"), true, "\npoll", 0, NULL);
    expect(
        LOOPS("10", "1025"), true, "\npoll", 1, "stop:", 1,
        "call i32 @ing_poll(ptr %ctx)", 1, "\ndefine internal i32 @ing_poll(", 1,
        "%fn(ptr %ctx) nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)",
        1, NULL);
    expect("task @0 {\n  while {\n    break\n  }\n}\nrun @0 serial cost 1\n", true,
           "\npoll", 1, NULL);
    expect("func @0 (i32) i32 {\n  %x = param i32 0\n  return %x\n}\n"
           "func @1 (i32) i32 {\n  %x = param i32 0\n  while {\n    return %x\n  }\n}\n"
           "func @2 (i32) void {\n  %x = param i32 0\n  %z = const i32 0\n  %c = eq "
           "%x, %z\n"
           "  check %c, 1 !3\n}\n"
           "task @3 {\n  %k = const i32 1\n  %a = call i32 @0, [%k]\n  %b = call i32 "
           "@1, [%a]\n"
           "  call void @2, [%b]\n}\nrun @3 serial cost 1\n",
           true, "define internal i32 @f0(", 1, "define internal { i32, i32 } @f1(", 1,
           "define internal i32 @f2(", 1,
           "call i32 @ing_stop(ptr %ctx, i32 1, i32 2, i32 3)", 1,
           "define internal i32 @ing_stop", 1, NULL);
#undef LOOPS
}

/* BRIEF1 to BRIEF3: loops that take a number's ones or digits away do not poll, others do. */
static void test_brief(void) {
    static const char ir[] =
        "arg 0 i32\ntask @0 {\n  %%a = arg i32 0\n  %%z = const i32 0\n  %%one = const "
        "i32 1\n  %%two = const i32 2\n  %%all = const i32 32\n"
        "  %%l = alloca ref<i32>\n  store %%l, %%a\n  %%m = alloca ref<i32>\n"
        "  store %%m, %%a\n  %%old = load i32 %%l\n  while {\n    %%v = load i32 %%l\n"
        "    %%c = %s %%v, %%z\n    %%n = not %%c\n    if %%n {\n      break\n    }\n"
        "    %%d = sub %%v, %%one\n    %s\n  }\n}\nrun @0 serial cost 1\n";
    static const struct {
        const char *compare, *body;
        bool polls;
    } cases[] = {
        {"ne", "%w = and %v, %d\n    store %l, %w", false},
        {"ne", "%w = and %d, %v\n    store %l, %w", false},
        {"gt", "%w = and %v, %d\n    store %l, %w", false},
        {"ne", "%w = shr %v, %one\n    store %l, %w", false},
        {"gt", "%w = sar %v, %one\n    store %l, %w", false},
        {"gt", "%w = floordiv %v, %two\n    store %l, %w", false},
        {"gt", "%w = sar %v, %one\n    store %l, %w\n    store %m, %w", false},
        {"ne", "%w = sar %v, %one\n    store %l, %w", true}, /* -1 stays */
        {"ne", "%w = floordiv %v, %two\n    store %l, %w", true},
        {"ne", "%w = shr %v, %z\n    store %l, %w", true},
        {"ne", "%w = shr %v, %all\n    store %l, %w", true}, /* by 0 */
        {"gt", "%w = floordiv %v, %one\n    store %l, %w", true},
        {"gt", "%w = floordiv %v, %a\n    store %l, %w", true},
        {"ge", "%w = sar %v, %one\n    store %l, %w", true},
        {"lt", "%w = sar %v, %one\n    store %l, %w", true},
        {"ne", "store %l, %d", true},
        {"ne", "%w = and %v, %one\n    store %l, %w", true},
        {"ne", "%w = or %v, %d\n    store %l, %w", true},
        {"ne", "%w = and %old, %d\n    store %l, %w", true},
        {"ne", "%x = sub %v, %two\n    %w = and %v, %x\n    store %l, %w", true},
        {"ne", "%u = load i32 %m\n    %w = shr %u, %one\n    store %l, %w", true},
        {"ne", "%w = shr %v, %one\n    store %m, %w", true},
        {"ne", "%w = shr %v, %one\n    if %c {\n      store %l, %w\n    }", true},
        {"ne", "%w = shr %v, %one\n    store %l, %w\n    store %l, %a", true},
        {"ne",
         "%w = shr %v, %one\n    store %l, %w\n    if %c {\n      store %l, %a\n    }",
         true},
        {"ne",
         "%w = shr %v, %one\n    store %l, %w\n    %t = atomic private i32 %l, %one, "
         "add",
         true},
        {"ne",
         "%w = shr %v, %one\n    if %c {\n      continue\n    }\n    store %l, %w",
         true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1200];
        snprintf(text, sizeof text, ir, cases[k].compare, cases[k].body);
        expect(text, true, "\npoll", cases[k].polls ? 1 : 0, NULL);
    }
}

int main(void) {
    test_full();
    test_long_loops();
    test_short_loops();
    test_spread();
    test_stalls();
    test_widths();
    test_width_of_lanes();
    test_polls();
    test_brief();
    return CHECK_DONE();
}
