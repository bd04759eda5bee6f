/* Links objects from LLVM and from the C compiler, loads the images and runs them; checks
 * what other tools and ld.so make of the files; refusals and their messages. */
#include "image/image_int.h"
#include "image_make.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>

/* ---- helpers ------------------------------------------------------------------------------ */

static ing_bytes link_object(const char *name, const char *label) {
    ing_bytes obj = make_read(name), image;
    ing_err e;
    ing_err_init(&e);
    ing_bytes_init(&image);
    if (ing_image_link(&(ing_object){obj.at, obj.len}, 1, label, &image, &e) != ING_OK)
        fprintf(stderr, "%s: %s\n", name, e.text ? e.text : "?");
    CHECK(e.status == ING_OK && image.len > 0);
    ing_err_fini(&e);
    ing_bytes_fini(&obj);
    return image;
}

static ing_image *load_fd(int fd, const uint8_t *p, size_t n) {
    ing_err e;
    ing_image *i = NULL;
    ing_err_init(&e);
    if (ing_image_load(fd, p, n, &i, &e) != ING_OK) {
        fprintf(stderr, "load: %s\n", e.text ? e.text : "?");
        CHECK(!"loads");
    }
    ing_err_fini(&e);
    return i;
}

static int32_t run(const ing_image *i, void *io, int64_t begin, int64_t end,
                   int64_t chunk) {
    return ing_image_entry(i)(io, begin, end, chunk);
}

/* Protections of the page at `p` as the kernel sees them: "r-xp". */
static void protection(const void *p, char out[5]) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024];
    strcpy(out, "none");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long lo, hi;
        char prot[8];
        if (sscanf(line, "%llx-%llx %7s", &lo, &hi, prot) == 3 && lo <= (uintptr_t)p &&
            (uintptr_t)p < hi)
            memcpy(out, prot, 5);
    }
    if (f) fclose(f);
}

static const void *code_of(const ing_image *i) {
    ing_task_fn f = ing_image_entry(i);
    const void *p;
    memcpy(&p, &f, sizeof p);
    return p;
}

/* ---- a C object: every kind of section ------------------------------------------------------ */

typedef struct io {
    double x, y;
    int64_t pick, count, visible;
    const char *name;
    char buf[32];
} io;

static const char c_source[] =
    "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
    "typedef struct io { double x, y; int64_t pick, count, visible; const char *name;\n"
    "    char buf[32]; } io;\n"
    "static double twice(double x) { return 2 * x + 0.125; }\n"
    "static double wave(double x) { return sin(x) + cosf((float)x); }\n"
    "static double (*const fns[])(double) = {twice, wave};\n"
    "static const char *const names[] = {\"zero\", \"one\", \"two\"};\n"
    "static int64_t count;\n"
    "static char big[100000];\n"
    "int64_t visible = 5;\n"
    "static int64_t *const volatile where = &count;\n"
    "__attribute__((noinline)) static int64_t choose(int64_t k, double x) {\n"
    "    switch (k) {\n"
    "    case 0: return (int64_t)pow(x, 2);\n"
    "    case 1: return (int64_t)exp(x);\n"
    "    case 2: return visible++;\n"
    "    case 3: return (int64_t)fmod(x, 3);\n"
    "    case 4: return (int64_t)floor(x * 10);\n"
    "    case 5: return (int64_t)tan(x);\n"
    "    default: return -1;\n"
    "    }\n"
    "}\n"
    "int32_t ing_task(io *p, int64_t begin, int64_t end, int64_t chunk) {\n"
    "    memset(p->buf, (int)chunk, (size_t)end);\n"
    "    big[begin * 1000] += 3;\n"
    "    p->count = ++*where + big[begin * 1000];\n"
    "    p->y = fns[begin & 1](p->x);\n"
    "    p->name = names[begin % 3];\n"
    "    p->pick = choose(p->pick, p->x);\n"
    "    p->visible = visible;\n"
    "    return (int32_t)(begin + end);\n"
    "}\n";

static void check_c_results(ing_task_fn f, int64_t before) {
    io p = {.x = 0.75, .pick = 4};
    CHECK(f((ing_ctx *)&p, 1, 5, 'z') == 6);
    CHECK(p.y == sin(0.75) + cosf(0.75f));
    CHECK_STR(p.name, "one");
    CHECK_STR(p.buf, "zzzzz");
    CHECK(p.pick == 7 && p.count == before + 1 + 3 && p.visible == 5);
    p = (io){.x = 7.5, .pick = 2};
    CHECK(f((ing_ctx *)&p, 2, 0, 0) == 2);
    CHECK(p.y == 15.125 && p.pick == 5 && p.visible == 6);
    CHECK(p.count == before + 2 + 3);
    CHECK_STR(p.name, "two");
}

static void test_c_object(const char *flags) {
    if (!make_c_object("sections", c_source, flags)) return;
    ing_bytes image = link_object("sections.o", "a_label");
    make_write("sections.so", image.at, image.len);
    char path[512];
    make_path(path, sizeof path, "sections.so");
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    ing_image *copy = load_fd(-1, image.at, image.len);
    ing_image *file = load_fd(fd, NULL, image.len);
    ing_image *both = load_fd(fd, image.at, image.len);
    close(fd);
    ing_image *all[] = {copy, file, both}; /* data is private to each */
    for (int k = 0; k < 3; k++) {
        if (!all[k]) continue;
        check_c_results(ing_image_entry(all[k]), 0);
        char prot[5];
        protection(code_of(all[k]), prot);
        CHECK_STR(prot, "r-xp");
    }

    /* ld.so is the second opinion on the same file. */
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) fprintf(stderr, "%s\n", dlerror());
    CHECK(h != NULL);
    if (h) {
        ing_task_fn f;
        void *by_name = dlsym(h, ING_ABI_ENTRY);
        CHECK(by_name && by_name == dlsym(h, "a_label"));
        memcpy(&f, &by_name, sizeof f);
        if (by_name) check_c_results(f, 0);
        dlclose(h);
    }
    for (int k = 0; k < 3; k++) ing_image_unref(all[k]);
    ing_bytes_fini(&image);
}

/* ---- LLVM objects --------------------------------------------------------------------------- */

static void test_kernel(void) {
    ing_bytes image = link_object("kernel.o", "saxpy.task0");
    ing_image *i = load_fd(-1, image.at, image.len);
    if (i) {
        double out[8] = {0};
        CHECK(run(i, out, 0, 3, 64) == 12);
        CHECK(out[0] == 3 * 3.2500000001);
        int64_t words[8];
        memcpy(words, out, sizeof words);
        CHECK(words[1] == 1 && words[3] == 11 && words[7] == 0x0707070707070707);
        double (*sine)(double);
        memcpy(&sine, &words[2], sizeof sine);
        CHECK(sine(0.5) == sin(0.5));
        CHECK(run(i, out, 1, 2, 16) == 10);
        CHECK(out[0] == sin(2.0) && out[3] == sin(1.0));
        CHECK(run(i, out, 2, 2, 0) == 18);
        CHECK(run(i, out, 3, 2, 0) == 77);
        memcpy(words, out, sizeof words);
        CHECK(words[1] == 4);
        ing_image_unref(i);
    }
    ing_bytes_fini(&image);
}

/* Text and data stay what they are allowed to be. */
static void test_protections(void) {
    ing_bytes image = link_object("kernel.o", NULL);
    ing_image_plan plan;
    CHECK(ing_image_check(image.at, image.len, EM_X86_64, ing_os_page(), &plan, NULL) ==
          ING_OK);
    ing_image *i = load_fd(-1, image.at, image.len);
    if (i) {
        const uint8_t *base = (const uint8_t *)code_of(i) - plan.entry;
        char prot[5];
        protection(base, prot);
        CHECK_STR(prot, "r--p");
        protection(base + plan.entry, prot);
        CHECK_STR(prot, "r-xp");
        protection(base + plan.got, prot);
        CHECK_STR(prot, "r--p");
        CHECK(plan.n_imports == 2 && plan.n_relative == 4 && plan.eh_size > 4);
        ing_image_unref(i);
    }
    ing_bytes_fini(&image);
}

typedef struct half_row {
    float f;
    double d;
    uint16_t h, h2;
    float back, sum;
} half_row;

static void test_half(void) {
    static const double v[] = {0,         -0.0,   1,        1.0009765625, 65504,
                               65519.99,  65520,  1e9,      -3.14159,     6e-8,
                               2.9e-8,    5.9e-5, 2049,     2051,         0.1,
                               -0.333333, 1e-20,  INFINITY, 1.000488,     0.99975586};
    enum { N = sizeof v / sizeof *v };
    half_row row[N + 1];
    memset(row, 0, sizeof row);
    for (int k = 0; k < N; k++) {
        row[k].f = (float)v[k];
        row[k].d = v[k] * 0.75;
    }
    row[0].d = 0x1.002000001p0; /* above a tie, lost when rounded to float first */
    row[N].f = NAN;
    row[N].d = NAN;
    ing_bytes image = link_object("half.o", NULL);
    ing_image *i = load_fd(-1, image.at, image.len);
    CHECK(i && run(i, row, 0, N + 1, 0) == 0);
    for (int k = 0; i && k < N; k++) {
        CHECK(row[k].h == ing_f32_to_f16(row[k].f));
        CHECK(row[k].h2 == ing_f64_to_f16(row[k].d));
        CHECK(row[k].back == ing_f16_to_f32(row[k].h));
        float sum = ing_f16_to_f32(row[k].h) + ing_f16_to_f32(row[k].h2);
        CHECK(row[k].sum == ing_f16_to_f32(ing_f32_to_f16(sum)));
    }
    CHECK(row[0].h2 == 0x3c01);
    CHECK(row[0].h == 0 && row[2].h == 0x3c00 && row[4].h == 0x7bff &&
          row[6].h == 0x7c00);
    CHECK((row[N].h & 0x7c00) == 0x7c00 && (row[N].h & 0x3ff) && isnan(row[N].back));
    ing_image_unref(i);
    ing_bytes_fini(&image);
}

static uint16_t bf16_run(const ing_image *i, float f, double d, uint16_t *from_double) {
    struct {
        float f;
        uint16_t h, h2;
        double d;
    } b = {.f = f, .d = d};
    CHECK(run(i, &b, 0, 1, 0) == 0);
    *from_double = b.h2;
    return b.h;
}

static void test_bf16(void) {
    ing_bytes image = link_object("bf16.o", NULL);
    ing_image *i = load_fd(-1, image.at, image.len);
    uint16_t h2 = 0;
    if (i) {
        CHECK(bf16_run(i, 1.0f, 1.0, &h2) == 0x3f80 && h2 == 0x3f80);
        /* ties go to even, and a hair above a tie must not be lost in between */
        CHECK(bf16_run(i, 0x1.01p0f, 0x1.01p0, &h2) == 0x3f80 && h2 == 0x3f80);
        CHECK(bf16_run(i, 0x1.03p0f, 0x1.0100000001p0, &h2) == 0x3f82 && h2 == 0x3f81);
        CHECK(bf16_run(i, 3.4e38f, -1e300, &h2) == 0x7f80 && h2 == 0xff80);
        uint16_t h = bf16_run(i, NAN, NAN, &h2);
        CHECK((h & 0x7fff) > 0x7f80 && (h2 & 0x7fff) > 0x7f80);
    }
    ing_image_unref(i);
    ing_bytes_fini(&image);
}

static void test_runtime(void) {
    struct {
        _Alignas(16) __int128 a, b;
        double x;
    } v = {.a = -((__int128)1 << 100), .b = 1234567, .x = 10.5};
    __int128 q = v.a / v.b;
    unsigned __int128 r = (unsigned __int128)v.a % (unsigned __int128)v.b;
    ing_bytes image = link_object("runtime.o", NULL);
    ing_image *i = load_fd(-1, image.at, image.len);
    CHECK(i && run(i, &v, 0, 1, 0) == 0);
    CHECK(v.a == q && (unsigned __int128)v.b == r && v.x == 1.5 * 1.5 + 10.5);
    ing_image_unref(i);
    ing_bytes_fini(&image);
}

static void test_own_got(void) {
    ing_bytes image = link_object("own_got.o", NULL);
    ing_image *i = load_fd(-1, image.at, image.len);
    if (i) {
        int64_t (*adds)(int64_t) = NULL;
        CHECK(run(i, &adds, 100, 0, 0) == 142);
        CHECK(adds(1) == 43);
    }
    ing_image_unref(i);
    ing_bytes_fini(&image);
}

static void test_vector(void) {
    if (!ing_image_isa_runs("x86-64-v3") || !ing_image_import("_ZGVdN4v_sin")) {
        make_not_run("libmvec from images: no AVX2 or no libmvec here");
        return;
    }
    double v[4] = {0.1, 1.2, -2.3, 30.0}, want[4];
    for (int k = 0; k < 4; k++) want[k] = sin(v[k]);
    ing_bytes image = link_object("vector.o", NULL);
    ing_image *i = load_fd(-1, image.at, image.len);
    CHECK(i && run(i, v, 0, 1, 0) == 0);
    for (int k = 0; k < 4; k++) CHECK(fabs(v[k] - want[k]) < 1e-14);
    ing_image_unref(i);
    ing_bytes_fini(&image);
}

static void test_same_bytes(void) {
    ing_bytes a = link_object("kernel.o", "x"), b = link_object("kernel.o", "x");
    ing_bytes obj = make_read("kernel.o"), moved;
    CHECK(a.len == b.len && memcmp(a.at, b.at, a.len) == 0);
    ing_bytes_init(&moved); /* another alignment of the input, text before the output */
    ing_bytes_puts(&moved, "y");
    ing_bytes_put(&moved, obj.at, obj.len);
    ing_bytes_clear(&b);
    ing_bytes_puts(&b, "before");
    CHECK(ing_image_link(&(ing_object){moved.at + 1, obj.len}, 1, "x", &b, NULL) ==
          ING_OK);
    CHECK(b.len == 6 + a.len && memcmp(b.at + 6, a.at, a.len) == 0);
    ing_bytes_fini(&a);
    ing_bytes_fini(&b);
    ing_bytes_fini(&obj);
    ing_bytes_fini(&moved);
}

/* ---- what other tools see --------------------------------------------------------------------- */

static bool tool_says(const char *command, const char *file, const char *pattern) {
    char line[1024];
    snprintf(line, sizeof line, "%s '%s/%s' 2>&1 | grep -q -- '%s'", command, make_dir,
             file, pattern);
    return make_run(line) == 0;
}

static void test_tools(void) {
    if (make_run("command -v objdump readelf nm >/dev/null 2>&1") != 0) {
        make_not_run("images under binutils: objdump, readelf or nm is missing");
        return;
    }
    static const char *const names[] = {"kernel", "plain", "own_got", "arm_kernel"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char file[64];
        snprintf(file, sizeof file, "%s.o", names[k]);
        ing_bytes image = link_object(file, "saxpy.task0");
        make_write("tools.so", image.at, image.len);
        ing_bytes_fini(&image);
        CHECK(tool_says("nm -D", "tools.so", " W ing_task"));
        CHECK(tool_says("nm -D", "tools.so", " T saxpy.task0"));
        CHECK(tool_says("nm", "tools.so", " T saxpy.task0"));
        CHECK(!tool_says("readelf -aW", "tools.so", "[Ww]arning\\|[Ee]rror:"));
        CHECK(tool_says("readelf -SW", "tools.so", "\\.ingot\\.imports"));
        CHECK(tool_says("readelf --debug-dump=frames", "tools.so", "FDE"));
        if (strncmp(names[k], "arm", 3) != 0)
            CHECK(tool_says("objdump -d", "tools.so", "<saxpy.task0>:"));
    }
    ing_bytes image = link_object("kernel.o", NULL);
    make_write("tools.so", image.at, image.len);
    ing_bytes_fini(&image);
    CHECK(tool_says("objdump -d", "tools.so", "<ing_task>:"));
    CHECK(tool_says("objdump -d", "tools.so", "<f2>:"));
    CHECK(tool_says("objdump -d", "tools.so", "call.*<sin@plt>"));
}

/* ---- refusals --------------------------------------------------------------------------------- */

static void refuses(const char *name, ing_status want, const char *text) {
    ing_bytes obj = make_read(name), image;
    ing_err e;
    ing_err_init(&e);
    ing_bytes_init(&image);
    CHECK(ing_image_link(&(ing_object){obj.at, obj.len}, 1, NULL, &image, &e) == want);
    if (!e.text || !strstr(e.text, text)) {
        fprintf(stderr, "%s: got '%s', wanted '%s'\n", name, e.text ? e.text : "",
                text);
        CHECK(!"message");
    }
    CHECK(image.len == 0);
    ing_err_fini(&e);
    ing_bytes_fini(&obj);
    ing_bytes_fini(&image);
}

/* ---- parts ------------------------------------------------------------------------------------ */

static const char part_task[] =
    "double sin(double); int middle(int); int ing_third(int);\n"
    "static const int table[4] = {1, 10, 100, 1000};\n"
    "int ing_third(int x) { return table[x & 3] + (sin(0) != 0); }\n"
    "int ing_task(void *c, long begin, long end, long chunk) {\n"
    "  return middle((int)begin) + ing_third(0); }\n";
static const char part_middle[] =
    "double sin(double); int ing_third(int);\n"
    "static const int table[4] = {2, 20, 200, 2000};\n"
    "int middle(int x) { return table[x & 3] + ing_third(x) + (sin(1) == 0); }\n";

static ing_status link_parts(const char *a, const char *b, ing_bytes *image,
                             ing_err *e) {
    ing_bytes one = make_read(a), two = make_read(b);
    ing_object both[] = {{one.at, one.len}, {two.at, two.len}};
    ing_status s = ing_image_link(both, 2, "parts", image, e);
    ing_bytes_fini(&one);
    ing_bytes_fini(&two);
    return s;
}

static void refuses_parts(const char *a, const char *b, ing_status want,
                          const char *text) {
    ing_bytes image;
    ing_err e;
    ing_err_init(&e);
    ing_bytes_init(&image);
    CHECK(link_parts(a, b, &image, &e) == want && image.len == 0);
    CHECK(e.text && strstr(e.text, text));
    ing_err_fini(&e);
    ing_bytes_fini(&image);
}

/* Calls in both directions, statics of one name, one import of both. */
static void test_parts(void) {
    const char *flags = "-fPIC -fvisibility=hidden -fno-builtin";
    if (!make_c_object("part0", part_task, flags) ||
        !make_c_object("part1", part_middle, flags))
        return;
    for (int k = 0; k < 2; k++) {
        ing_bytes image;
        ing_err e;
        ing_err_init(&e);
        ing_bytes_init(&image);
        CHECK(link_parts(k ? "part0.o" : "part1.o", k ? "part1.o" : "part0.o", &image,
                         &e) == ING_OK);
        if (e.text) fprintf(stderr, "%s\n", e.text);
        ing_image *i = load_fd(-1, image.at, image.len);
        if (i) {
            CHECK(run(i, NULL, 2, 0, 0) == 200 + 100 + 1);
            CHECK(run(i, NULL, 3, 0, 0) == 2000 + 1000 + 1);
            CHECK(ing_image_register_debug(i, &(ing_image_origin){"parts", "x.py", 1}));
        }
        ing_image_unref(i);
        ing_err_fini(&e);
        ing_bytes_fini(&image);
    }
    refuses_parts("part0.o", "part0.o", ING_FORMAT, "is defined twice");
    refuses_parts("part1.o", "part1.o", ING_FORMAT, "is defined twice");
    refuses("part0.o", ING_COMPILE, "'middle'");
    refuses("part1.o", ING_FORMAT, "does not define 'ing_task'");
}

static void test_refusals(void) {
    refuses("unknown.o", ING_COMPILE, "'no_such_function'");
    refuses("static.o", ING_FORMAT, "X86_64_32S needs a 32-bit address");
    refuses("common.o", ING_FORMAT, "'c' is a common symbol");
    refuses("tls.o", ING_FORMAT, "thread-local");
    refuses("ctors.o", ING_FORMAT, ".ctors: nothing would run it");
    refuses("no_entry.o", ING_FORMAT, "does not define 'ing_task'");
    make_write("text.o", "not an object at all, but long enough to be looked at anyway",
               60);
    refuses("text.o", ING_FORMAT, "too short");

    ing_err e;
    ing_image *i;
    ing_bytes arm = link_object("arm_kernel.o", NULL);
    ing_err_init(&e);
    CHECK(ing_image_load(-1, arm.at, arm.len, &i, &e) == ING_FORMAT && !i);
    CHECK(e.text && strstr(e.text, "another machine"));
    ing_err_fini(&e);
    CHECK(ing_image_load(-1, NULL, 0, &i, NULL) == ING_FORMAT);
    CHECK(ing_image_load(-1, (const uint8_t *)"", 1, &i, NULL) == ING_FORMAT);
    ing_bytes_fini(&arm);
}

/* ---- loading ---------------------------------------------------------------------------------- */

/* A descriptor that may not be mapped, a file that ends early, a file with more after. */
static void test_files(void) {
    ing_bytes image = link_object("kernel.o", NULL);
    ing_bytes longer;
    ing_bytes_init(&longer);
    ing_bytes_put(&longer, image.at, image.len);
    for (int k = 0; k < 64; k++) ing_bytes_u8(&longer, 0xee);
    make_write("image.so", longer.at, longer.len);
    char path[512];
    make_path(path, sizeof path, "image.so");

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ing_image *i = load_fd(fd, image.at, image.len);
    double out[8];
    CHECK(i && run(i, out, 1, 2, 0) == 10 && out[0] == sin(2.0));
    CHECK(ftruncate(fd, 10) != 0); /* read-only: the store's files cannot shrink */
    ing_image *none = NULL;
    CHECK(ing_image_load(fd, NULL, longer.len + 1, &none, NULL) == ING_FORMAT && !none);
    close(fd);
    CHECK(i && run(i, out, 1, 2, 0) == 10); /* lives on without the descriptor */
    ing_image_unref(i);

    fd = open(path, O_WRONLY | O_CLOEXEC); /* mmap says EACCES, as under a policy */
    i = load_fd(fd, image.at, image.len);
    CHECK(i && run(i, out, 1, 2, 0) == 10 && out[0] == sin(2.0));
    ing_image_unref(i);
    close(fd);
    CHECK(ing_image_load(0x7ffffff, image.at, image.len, &none, NULL) == ING_OS);
    ing_bytes_fini(&longer);
    ing_bytes_fini(&image);
}

static void *ref_many(void *arg) {
    for (int k = 0; k < 20000; k++) ing_image_unref(ing_image_ref(arg));
    ing_image_unref(arg);
    return NULL;
}

static void test_refs(void) {
    ing_bytes image = link_object("plain.o", NULL);
    ing_image *i = load_fd(-1, image.at, image.len);
    ing_bytes_fini(&image);
    if (!i) return;
    const void *code = code_of(i);
    pthread_t t[4];
    for (int k = 0; k < 4; k++) pthread_create(&t[k], NULL, ref_many, ing_image_ref(i));
    for (int k = 0; k < 4; k++) pthread_join(t[k], NULL);
    CHECK(run(i, NULL, 0, 1, 0) == 41);
    ing_image_unref(i);
    char prot[5];
    protection(code, prot);
    CHECK_STR(prot, "none"); /* unmapped */
    ing_image_unref(NULL);
}

static void test_debug_frames(void) {
    ing_bytes image = link_object("kernel.o", NULL);
    ing_image *i = load_fd(-1, image.at, image.len);
    ing_image_origin from = {"kernel", "/there/kernel.py", 300};
    CHECK(i && ing_image_register_debug(i, &from) &&
          ing_image_register_debug(i, &from));
    ing_image_unref(i); /* takes it back: nothing to see but no crash and no leak */
    ing_bytes_fini(&image);
}

/* Unwind tables are trusted by libgcc, but not by what makes names for gdb: cut anywhere,
 * with any bit changed, the answer is an object or none. */
static void test_gdb_reads_any_table(void) {
    ing_bytes image = link_object("kernel.o", "kernel");
    ing_image_plan plan;
    ing_image_origin from = {"kernel", "/there/kernel.py", 300};
    CHECK(ing_image_check(image.at, image.len, ING_IMAGE_HOST, 4096, &plan, NULL) ==
          ING_OK);
    ing_gdb_code c = {.from = &from, .entry = image.at + plan.entry};
    for (uint32_t k = 0; k < plan.n_segs; k++) {
        if (!plan.seg[k].exec) continue;
        c.code = image.at + plan.seg[k].vaddr;
        c.code_size = plan.seg[k].memsz;
    }
    c.eh = image.at + plan.eh, c.eh_size = plan.eh_size;
    ing_gdb_object *o = ing_gdb_add(&c);
    CHECK(o);
    ing_gdb_remove(o);
    for (uint64_t n = 0; n <= plan.eh_size; n++) {
        for (uint64_t bit = 0; bit < (n == plan.eh_size ? 8 * n : 1); bit++) {
            uint8_t *eh = ing_malloc(n ? n : 1); /* so that a byte too far is noticed */
            if (!eh) break;
            memcpy(eh, image.at + plan.eh, n);
            if (n) eh[bit / 8] ^= (uint8_t)(1u << bit % 8);
            c.eh = eh, c.eh_size = n;
            ing_gdb_remove(ing_gdb_add(&c));
            ing_free(eh);
        }
    }
    ing_bytes_fini(&image);
}

/* The n-th allocation fails until none does. */
static void test_no_memory(void) {
    ing_bytes obj = make_read("kernel.o");
    for (uint64_t n = 1; n < 100; n++) {
        ing_bytes image;
        ing_image *i = NULL;
        ing_bytes_init(&image);
        ing_alloc_fail_at(n);
        ing_status s =
            ing_image_link(&(ing_object){obj.at, obj.len}, 1, "x", &image, NULL);
        if (s == ING_OK) s = ing_image_load(-1, image.at, image.len, &i, NULL);
        ing_alloc_fail_at(0);
        ing_bytes_fini(&image);
        ing_image_unref(i);
        CHECK(s == ING_OK || s == ING_MEMORY);
        if (s == ING_OK) break;
        CHECK(n < 99);
    }
    ing_bytes_fini(&obj);
}

/* ---- imports and levels ------------------------------------------------------------------------ */

static void test_imports(void) {
    static const char *const names[] = {
        "memset",        "memcpy",       "memmove",      "memcmp",
        "bcmp",          "sin",          "sinf",         "sincos",
        "sincosf",       "cos",          "tan",          "asin",
        "acos",          "atan",         "atan2f",       "sinh",
        "tanhf",         "exp",          "exp2",         "exp10",
        "expm1",         "log",          "log2f",        "log10",
        "log1p",         "pow",          "powf",         "fmod",
        "fmodf",         "floor",        "ceilf",        "trunc",
        "round",         "roundeven",    "rint",         "nearbyintf",
        "fmin",          "fmaxf",        "sqrt",         "cbrt",
        "hypot",         "ldexp",        "frexpf",       "modf",
        "fma",           "fmaf",         "__divti3",     "__udivti3",
        "__modti3",      "__umodti3",    "__truncdfhf2", "__truncsfhf2",
        "__extendhfsf2", "__truncsfbf2", "__powidf2",    "__gnu_h2f_ieee",
        "__gnu_f2h_ieee"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (!ing_image_import(names[k])) fprintf(stderr, "no import %s\n", names[k]);
        CHECK(ing_image_import(names[k]) != NULL);
    }
    size_t n = 0; /* one out of order is one that the search misses */
    for (const char *name; (name = ing_image_import_name(n)); n++)
        CHECK(ing_image_import(name) != NULL);
    CHECK(n > 100);
    CHECK(!ing_image_import("system") && !ing_image_import("") &&
          !ing_image_import("z"));
    CHECK(!ing_image_import("_ZGVdN4v_nothing"));
    double (*f)(double);
    void *p = ing_image_import("log1p");
    memcpy(&f, &p, sizeof f);
    CHECK(f(0.5) == log1p(0.5));
}

static void test_levels(void) {
    unsetenv("INGOT_CPU_LEVEL");
    const char *best = ing_image_isa_level();
    CHECK(ing_image_isa_runs(best));
    CHECK(!ing_image_isa_runs("x86-64-v9") && !ing_image_isa_runs(""));
#if defined(__x86_64__)
    CHECK(ing_image_isa_runs("x86-64"));
    CHECK(!ing_image_isa_runs("x86-64-v3") || __builtin_cpu_supports("avx2"));
    CHECK(!ing_image_isa_runs("x86-64-v4") || __builtin_cpu_supports("avx512bw"));
    setenv("INGOT_CPU_LEVEL", "x86-64-v2", 1);
    CHECK(!ing_image_isa_runs("x86-64-v2") ||
          strcmp(ing_image_isa_level(), "x86-64-v2") == 0);
    setenv("INGOT_CPU_LEVEL", "x86-64-v4", 1); /* never raises */
    CHECK_STR(ing_image_isa_level(), best);
    setenv("INGOT_CPU_LEVEL", "potato", 1);
    CHECK_STR(ing_image_isa_level(), best);
    unsetenv("INGOT_CPU_LEVEL");
#endif
}

static void test_llvm(void) {
    test_kernel();
    test_protections();
    test_half();
    test_bf16();
    test_runtime();
    test_own_got();
    test_vector();
    test_same_bytes();
    test_tools();
    test_refusals();
    test_files();
    test_refs();
    test_debug_frames();
    test_gdb_reads_any_table();
    test_no_memory();
}

int main(void) {
    make_begin();
    test_imports();
    test_levels();
#if defined(__x86_64__)
    test_c_object("-fPIC");
    test_c_object("-fPIC -ffunction-sections -fdata-sections -fcf-protection");
    test_c_object("-fPIE -fvisibility=hidden");
    test_parts();
    if (make_llvm_objects()) test_llvm();
#else
    make_not_run("images that are run: the test's objects are for x86-64");
#endif
    make_end();
    return CHECK_DONE();
}
