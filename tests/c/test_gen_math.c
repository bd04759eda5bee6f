/* Math functions in generated code: when they are those of the vector library, when the C library's, and which powers
 * are products and roots. */
#include "check.h"
#include "gen_text.h"

/* The vector library under fast math only; a power is LLVM's where that makes products of it. */
static void test_vector_math(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\n"
        "task @0 {\n  %b = task.begin i32\n  %e = task.end i32\n"
        "  %i = loop parallel i32 %b, %e {\n    %a = array array<f32, 1> 0\n"
        "    %p = elem ref<f32> %a, [%i]\n    %x = load f32 %p\n    %s = sin %x\n"
        "    %two = const f32 2.0\n    %q = pow %s, %two\n    %r = atan2 %q, %x\n"
        "    %d = cast f64 %r\n    %g = exp %d\n    %h = cast f32 %g\n    %k = asin "
        "%h\n"
        "    store %p, %k\n  }\n}\nrun @0 range begin 0 end 8 cost 6\n";
    expect(ir, true, "call reassoc nsz contract float @ing.sinf(float", 1,
           "_ZGVdN8v_ing.sinf(_ZGVdN8v_sinf)", 1, "_ZGVdN4vv_ing.atan2f(ing.atan2f.4)",
           1, "@llvm.pow.f32(float", 2, "@llvm.compiler.used", 1,
           "\"prefer-vector-width\"=\"256\" \"stackrealign\"", 2, NULL);
    expect(saxpy, true, "stackrealign", 0, NULL);
    expect(ir, false, "_ZGV", 0, "call float @sinf(", 1, "stackrealign", 0, NULL);
    level = "x86-64-v4";
    expect(ir, true, "_ZGVeN16v_ing.sinf(_ZGVeN16v_sinf)", 1,
           "_ZGVdN8vv_ing.atan2f(ing.atan2f.8)", 1, "_ZGVdN4v_ing.sinf(ing.sinf.4)", 1,
           "_ZGVdN8v_sinf", 0, "\"prefer-vector-width\"=\"512\" \"stackrealign\"", 2,
           NULL);
    /* Two calls for sixteen: of an f64, and of what is slower in 512 bits. */
    expect(ir, true, "_ZGVeN8v_ing.exp(_ZGVeN8v_exp),_ZGVdN16v_ing.exp(ing.exp.16)", 1,
           "_ZGVdN8v_ing.asinf(_ZGVdN8v_asinf),_ZGVdN16v_ing.asinf(ing.asinf.16)", 1,
           "call <8 x double> @_ZGVeN8v_exp(", 4, "call <8 x float> @_ZGVdN8v_asinf(",
           4, NULL);
    expect(saxpy, true, "\"prefer-vector-width\"=\"256\"", 2, NULL);
    level = "x86-64-v2";
    expect(ir, true, "_ZGV", 0, NULL);
    level = "x86-64-v3";
}

/* PLAN11: of the sines in `body` `alone` are the C library's. */
static void expect_alone(const char *body, int alone, int together) {
    char ir[1536];
    snprintf(ir, sizeof ir,
             "arg 0 array<f32, 1>\narg 1 i32\n"
             "task @0 {\n  %%a = array array<f32, 1> 0\n  %%g = arg i32 1\n"
             "  %%z = const i32 0\n  %%eight = const i32 8\n  %%nine = const i32 9\n"
             "  %%p = elem ref<f32> %%a, [%%z]\n  %%x = load f32 %%p\n%s}\n"
             "func @1 (f32) f32 {\n  %%x = param f32 0\n  %%y = sin %%x\n  return "
             "%%y\n}\n"
             "func @2 (f32) f32 {\n  %%x = param f32 0\n  %%y = call f32 @1, [%%x]\n"
             "  return %%y\n}\nrun @0 serial cost 6\n",
             body);
    expect(ir, true, "float @llvm.sin.f32(float %", alone,
           "contract float @ing.sinf(float %", together, NULL);
}

#define SINE            "%y = sin %x\nstore %p, %y\n"
#define LOOP(n, inside) "%i" n " = loop i32 %z, %" n " {\n" inside "}\n"
static void test_alone(void) {
    expect_alone(SINE, 1, 0);
    expect_alone("%d = cast f64 %x\n%e = sin %d\n", 0, 0);
    expect_alone("%t = tan %x\n" LOOP("g", SINE), 0, 1);
    expect_alone(LOOP("g", SINE LOOP("nine", "store %p, %x\n")), 1, 0);
    expect_alone(LOOP("g", SINE LOOP("eight", "store %p, %x\n")), 0, 1);
    expect_alone(LOOP("g", LOOP("nine", SINE)), 0, 1);
    expect_alone(LOOP("g", "while {\nbreak\n}\n" SINE), 1, 0);
    expect_alone("while {\n" SINE "break\n}\n", 1, 0);
    expect_alone("%f = call f32 @2, [%x]\n", 1, 0);
    expect_alone("while {\n%f = call f32 @2, [%x]\nbreak\n}\n", 1, 0);
    expect_alone("%f = call f32 @2, [%x]\n" LOOP("g", "%h = call f32 @2, [%x]\n"), 0,
                 1);
}
#undef LOOP
#undef SINE

/* Powers that are no normal numbers (VEC6). */
static void test_ends(void) {
    static const char ir[] =
        "arg 0 array<f32, 1>\ntask @0 {\n  %a = array array<f32, 1> 0\n"
        "  %z = const i32 0\n  %n = const i32 9\n  %i = loop i32 %z, %n {\n"
        "  %p = elem ref<f32> %a, [%i]\n  %x = load f32 %p\n"
        "  %y = exp %x\n  %s = sin %y\n  store %p, %s\n  }\n}\nrun @0 serial cost 1\n";
    expect(ir, true, "fcmp", 4, "fadd float", 1, "fmul float", 1, "@ing.expf(float", 2,
           NULL);
    expect(ir, false, "fcmp", 0, NULL);
}

/* Constant exponents and bases. */
static void test_powers(void) {
    static const struct {
        const char *c, *power;
        int llvm, vector, exp2;
    } cases[] = {
        {"2.0", "pow %x, %c", 2, 0, 0},   {"-3.0", "pow %x, %c", 2, 0, 0},
        {"1.5", "pow %x, %c", 2, 0, 0},   {"1.7", "pow %x, %c", 0, 1, 0},
        {"0.3", "pow %x, %c", 0, 1, 0},   {"1.75", "pow %x, %c", 0, 0, 0},
        {"-0.25", "pow %x, %c", 0, 0, 0}, {"4.25", "pow %x, %c", 0, 1, 0},
        {"2.0", "pow %c, %x", 0, 0, 1},   {"3.0", "pow %c, %x", 0, 1, 0},
        {"inf", "pow %x, %c", 0, 1, 0},
    };
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        const char *t = k % 2 ? "f64" : "f32";
        char ir[512];
        snprintf(ir, sizeof ir,
                 "arg 0 array<%s, 1>\ntask @0 {\n  %%a = array array<%s, 1> 0\n"
                 "  %%z = const i32 0\n  %%n = const i32 9\n"
                 "  %%i = loop i32 %%z, %%n {\n  %%p = elem ref<%s> %%a, [%%i]\n"
                 "  %%x = load %s %%p\n  %%c = const %s %s\n  %%r = %s\n"
                 "  store %%p, %%r\n  }\n}\nrun @0 serial cost 1\n",
                 t, t, t, t, t, cases[k / 2].c, cases[k / 2].power);
        expect(ir, true, "@llvm.pow.f", cases[k / 2].llvm,
               k % 2 ? "call reassoc nsz contract double @ing.pow("
                     : "call reassoc nsz contract float @ing.powf(",
               cases[k / 2].vector,
               k % 2 ? "call reassoc nsz contract double @ing.exp2("
                     : "call reassoc nsz contract float @ing.exp2f(",
               cases[k / 2].exp2, NULL);
    }
}

int main(void) {
    test_vector_math();
    test_alone();
    test_ends();
    test_powers();
    return CHECK_DONE();
}
