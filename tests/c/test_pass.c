/* Passes on IR text: each file of tests/ir names a pass in its first line ("; pass: x", or
 * "all"), then holds the input, a line "; ====" and the expected output. The folder is
 * argv[1], else tests/ir below INGOT_TEST_ROOT or here. INGOT_TEST_UPDATE=1 rewrites the
 * expected part. Also: lost memory in every pass, deep nesting, long chains. */
#include "check.h"
#include "ir/ir.h"
#include "pass/pass.h"

#include <dirent.h>

static const char divider[] = "; ====\n";

static char *text_of(const ing_ir_mod *m) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_ir_print(m, 0, &b);
    return ing_bytes_take(&b);
}

/* `with` is its name, or "all", and maybe " overlap": for arrays that share memory, " fast": math. */
static ing_status run(const char *text, size_t n, const char *with, ing_ir_mod **m,
                      ing_err *e) {
    ing_pass_options o = {.overlap = strstr(with, " overlap") != NULL,
                          .fast_math = strstr(with, " fast") != NULL};
    char pass[32] = "";
    sscanf(with, "%31s", pass);
    ing_status s = ing_ir_parse(text, n, m, e);
    if (s != ING_OK) return s;
    if (strcmp(pass, "all") == 0) return ing_pass_run(*m, &o, e);
    return ing_pass_run_one(*m, pass, &o, e);
}

/* ---- text cases --------------------------------------------------------------------------- */

static void update(const char *path, const char *text, size_t head, const char *out) {
    FILE *f = fopen(path, "w");
    if (!f) return;
    fwrite(text, 1, head, f);
    fputs(divider, f);
    fputs(out, f);
    fclose(f);
}

static void check_file(const char *path) {
    ing_bytes b;
    ing_err e;
    char pass[32] = "";
    ing_ir_mod *m = NULL;
    ing_bytes_init(&b);
    ing_err_init(&e);
    CHECK(ing_os_read(path, 1 << 20, &b, &e) == ING_OK);
    const char *text = b.at ? (const char *)b.at : "";
    const char *mid = strstr(text, divider);
    size_t head = mid ? (size_t)(mid - text) : b.len;
    CHECK(sscanf(text, "; pass: %31[a-z ]", pass) == 1);
    ing_status s = run(text, head, pass, &m, &e);
    CHECK(s == ING_OK);
    if (s == ING_OK) {
        char *out = text_of(m);
        if (getenv("INGOT_TEST_UPDATE")) {
            update(path, text, head, out);
        } else {
            CHECK(mid != NULL);
            CHECK_STR(out, mid ? mid + sizeof divider - 1 : "");
        }
        ing_free(out);
    }
    if (s != ING_OK || check_failed)
        fprintf(stderr, "in %s: %s\n", path, e.text ? e.text : "");
    ing_err_fini(&e);
    ing_bytes_fini(&b);
    ing_ir_mod_free(m);
}

static void test_files(const char *folder) {
    DIR *d = opendir(folder);
    int count = 0;
    CHECK(d != NULL);
    if (!d) fprintf(stderr, "no folder %s\n", folder);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char path[1024];
        size_t n = strlen(entry->d_name);
        if (n < 4 || strcmp(entry->d_name + n - 3, ".ir") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_file(path);
        count++;
    }
    if (d) closedir(d);
    CHECK(count >= 8);
}

/* ---- lost memory ------------------------------------------------------------------------------ */

static const char program[] =
    "arg 0 array<f32, 1>\narg 1 i32\narg 2 array<f32, 1>\n"
    "arg 3 array<i32, 1>\nret 0 i32\n"
    "kernel @0 \"k\" {\n"
    "%a = array array<f32, 1> 0\n%n = dim i32 %a, 0\n%zero = const i32 0\n"
    "%x = alloca ref<i32>\n%m = arg i32 1\nstore %x, %m\n%y = alloca ref<f32>\n"
    "%one = const f32 1.0\n%o = atomic f32 %y, %one, add\n"
    "%i = loop parallel i32 %zero, %n {\n"
    "  %l = load f32 %y\n  %p = elem ref<f32> %a, [%i]\n  %s = add %l, %o\n"
    "  store %p, %s\n}\n"
    "%c = lt %m, %zero\nif %c {\n  return\n}\n"
    "%j = loop parallel i32 %zero, %n {\n"
    "  %p2 = elem ref<f32> %a, [%j]\n  %r = call f32 @1, [%one]\n  store %p2, %r\n"
    "  %t = array array<f32, 1> 2\n  %p3 = elem ref<f32> %t, [%zero]\n"
    "  %o2 = atomic f32 %p3, %r, add\n"
    "  %u = array array<i32, 1> 3\n  %k = cast i32 %r\n  %p4 = elem ref<i32> %u, [%k]\n"
    "  %o3 = atomic i32 %p4, %j, add\n}\n"
    "%v = load i32 %x\nset_ret 0, %v\n}\n"
    "func @1 (f32) f32 {\n%q = param f32 0\n%z = add %q, %q\nreturn %z\n}\n";

static void test_memory(void) {
    uint64_t n = 0, left = 0;
    ing_status s = ING_MEMORY;
    while (!left && n < 100000) {
        ing_ir_mod *m = NULL;
        ing_err e;
        ing_err_init(&e);
        ing_alloc_fail_at(++n);
        s = run(program, sizeof program - 1, "all", &m, &e);
        left = ing_alloc_fail_left();
        ing_alloc_fail_at(0);
        bool fine = s == ING_OK || s == ING_MEMORY;
        CHECK(fine);
        if (!fine)
            fprintf(stderr, "allocation %d: %s\n", (int)n, e.text ? e.text : "?");
        ing_err_fini(&e);
        ing_ir_mod_free(m);
    }
    CHECK(s == ING_OK && n > 100);
}

/* ---- sizes ------------------------------------------------------------------------------------- */

static void check_all(const ing_bytes *b) {
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    CHECK(!b->failed);
    ing_status s = run((const char *)b->at, b->len, "all", &m, &e);
    CHECK(s == ING_OK);
    if (s != ING_OK) fprintf(stderr, "%s\n", e.text ? e.text : "?");
    ing_err_fini(&e);
    ing_ir_mod_free(m);
}

static void test_deep(void) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_puts(
        &b, "arg 0 i32\nret 0 i32\nkernel @0 {\n%n = arg i32 0\n%c = lt %n, %n\n");
    for (int k = 1; k < ING_IR_MAX_NESTING; k++) {
        if (k % 2) ing_bytes_printf(&b, "%%l%d = loop i32 %%n, %%n {\n", k);
        if (k % 2 == 0) ing_bytes_puts(&b, "while {\n");
    }
    ing_bytes_puts(&b, "set_ret 0, %n\nreturn\n");
    for (int k = 0; k < ING_IR_MAX_NESTING; k++) ing_bytes_puts(&b, "}\n");
    check_all(&b);
    ing_bytes_fini(&b);
}

/* A chain of dependent values, none of them cheap to make again, all used by a loop. */
static void test_long_chain(void) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_puts(&b, "arg 0 f32\narg 1 array<f32, 1>\nkernel @0 {\n%0 = arg f32 0\n");
    enum { N = 20000 };
    for (int k = 1; k <= N; k++) ing_bytes_printf(&b, "%%%d = sin %%%d\n", k, k - 1);
    ing_bytes_puts(&b,
                   "%a = array array<f32, 1> 1\n%z = const i32 0\n%n = dim i32 %a, 0\n"
                   "%i = loop parallel i32 %z, %n {\n%p = elem ref<f32> %a, [%i]\n");
    for (int k = 1; k <= N; k++) ing_bytes_printf(&b, "store %%p, %%%d\n", k);
    ing_bytes_puts(&b, "}\n}\n");
    check_all(&b);
    ing_bytes_clear(
        &b); /* many loops, each of which uses a value of the one serial part */
    ing_bytes_puts(&b, "arg 0 i32\narg 1 array<f32, 1>\nkernel @0 {\n%n = arg i32 0\n"
                       "%z = const i32 0\n%a = array array<f32, 1> 1\n"
                       "%p = elem ref<f32> %a, [%z]\n%v = load f32 %p\n");
    for (int k = 0; k < 2000; k++) {
        ing_bytes_printf(&b, "%%l%d = loop parallel i32 %%z, %%n {\n", k);
        ing_bytes_puts(&b, "store %p, %v\n}\n");
    }
    ing_bytes_puts(&b, "}\n");
    check_all(&b);
    ing_bytes_fini(&b);
}

/* Sums beside so many arrays that not all pairs can be compared at a launch: what is left
 * stays atomic. */
static void test_many_arrays(void) {
    enum { ARRAYS = 300, SUMS = 16 };
    ing_bytes b;
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_bytes_init(&b);
    for (int k = 0; k < ARRAYS; k++) ing_bytes_printf(&b, "arg %d array<i32, 1>\n", k);
    ing_bytes_puts(&b, "kernel @0 {\n%z = const i32 0\n%n = const i32 9\n"
                       "%i = loop parallel i32 %z, %n {\n");
    for (int k = 0; k < ARRAYS; k++) {
        ing_bytes_printf(&b, "%%a%d = array array<i32, 1> %d\n", k, k);
        ing_bytes_printf(&b, "%%p%d = elem ref<i32> %%a%d, [%%z]\n", k, k);
        if (k < SUMS)
            ing_bytes_printf(&b, "%%o%d = atomic i32 %%p%d, %%i, add\n", k, k);
        else
            ing_bytes_printf(&b, "store %%p%d, %%i\n", k);
    }
    ing_bytes_puts(&b, "}\n}\n");
    CHECK(run((const char *)b.at, b.len, "all", &m, &e) == ING_OK);
    CHECK(m->tasks.len == 1 && m->tasks.at[0].partials == ING_IR_MAX_APART / ARRAYS);
    CHECK(m->apart.len > ING_IR_MAX_APART - ARRAYS && m->apart.len <= ING_IR_MAX_APART);
    ing_ir_mod_free(m);
    ing_err_fini(&e);
    ing_bytes_fini(&b);
}

/* Every task knows the tree of the kernel it was cut from. */
static void test_trees(void) {
    ing_ir_mod *m = NULL;
    ing_pass_options o = {0};
    CHECK(ing_ir_parse(program, sizeof program - 1, &m, NULL) == ING_OK);
    for (uint32_t k = 0; k < m->funcs.len; k++) m->funcs.at[k]->tree = 5 + k;
    CHECK(ing_pass_run(m, &o, NULL) == ING_OK && m->tasks.len == 5);
    CHECK(m->funcs.at[1]->tree == 6);
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        CHECK(m->funcs.at[m->tasks.at[k].func]->tree == 5);
    }
    ing_ir_mod_free(m);
}

static void test_unknown(void) {
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    CHECK(run(program, sizeof program - 1, "polish", &m, &e) == ING_VALUE);
    CHECK(e.text && strstr(e.text, "polish"));
    ing_err_fini(&e);
    ing_ir_mod_free(m);
}

int main(int argc, char **argv) {
    char folder[512] = "tests/ir";
    const char *root = getenv("INGOT_TEST_ROOT");
    if (root) snprintf(folder, sizeof folder, "%s/tests/ir", root);
    if (argc > 1) snprintf(folder, sizeof folder, "%s", argv[1]);
    test_files(folder);
    test_memory();
    test_deep();
    test_long_chain();
    test_many_arrays();
    test_trees();
    test_unknown();
    return CHECK_DONE();
}
