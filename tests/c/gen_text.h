/* What the tests of generated text share: the text of a program, and how often strings stand in it.
 * For test_gen.c, test_gen_math.c and test_gen_plan.c. */
#ifndef GEN_TEXT_H
#define GEN_TEXT_H

#include "check.h"
#include "gen/gen.h"

static const char saxpy[] =
    "arg 0 array<f32, 1>\narg 1 array<f32, 1>\narg 2 f32\n"
    "task @0 {\n"
    "  %b = task.begin i32\n  %e = task.end i32\n"
    "  %i = loop parallel i32 %b, %e {\n"
    "    %x = array array<f32, 1> 0\n    %y = array array<f32, 1> 1\n"
    "    %a = arg f32 2\n"
    "    %p = elem ref<f32> %x, [%i]\n    %q = elem ref<f32> %y, [%i]\n"
    "    %v = load f32 %p\n    %w = load f32 %q\n"
    "    %m = mul %a, %v\n    %s = add %m, %w\n    store %q, %s\n"
    "  }\n"
    "}\nrun @0 range begin 0 end 1000 cost 6\n";

static const char *level = "x86-64-v3"; /* that the texts are for */

static uint32_t part_size; /* of the texts, 0 = as measured */

/* All parts, one after the other. */
static ing_status emit(const char *ir, bool fast, ing_bytes *out, ing_err *e) {
    ing_ir_mod *m = NULL;
    ing_gen_texts texts = {0};
    ing_gen_options o = {.target = &ing_gen_cpu,
                         .fast_math = fast,
                         .opt_level = 2,
                         .isa_level = level,
                         .part_size = part_size,
                         .vector_math = 2};
    ing_status s = ing_ir_parse(ir, strlen(ir), &m, e);
    if (s == ING_OK) s = ing_ir_verify(m, e);
    if (s == ING_OK) s = ing_gen_llvm(m, &o, &texts, e);
    for (uint32_t i = 0; i < texts.len; i++)
        ing_bytes_put(out, texts.at[i].at, texts.at[i].len);
    ing_gen_texts_fini(&texts);
    ing_ir_mod_free(m);
    return s;
}

/* The text of a program, to be freed with ing_free. */
static char *text_of(const char *ir, bool fast) {
    ing_bytes b;
    ing_err e;
    ing_bytes_init(&b);
    ing_err_init(&e);
    CHECK(emit(ir, fast, &b, &e) == ING_OK);
    if (e.text) fprintf(stderr, "%s\n", e.text);
    ing_err_fini(&e);
    ing_bytes_puts(&b, "");
    return ing_bytes_take(&b);
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p += strlen(what)) n++;
    return n;
}

/* Checks how often each string stands in the text: "string", number, ..., NULL. */
static void expect(const char *ir, bool fast, const char *first, ...) {
    char *text = text_of(ir, fast);
    va_list ap;
    va_start(ap, first);
    for (const char *s = first; s; s = va_arg(ap, const char *)) {
        int want = va_arg(ap, int), got = count(text, s);
        if (got != want) fprintf(stderr, "%d times, not %d: %s\n", got, want, s);
        CHECK(got == want);
    }
    va_end(ap);
    ing_free(text);
}

#endif
