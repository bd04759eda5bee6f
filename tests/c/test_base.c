/* base: errors, memory with the n-th allocation failing, arena, vectors, buffers, maps,
 * interned strings, binary16, settings, counters and files. */
#include "base/base.h"
#include "check.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static void test_err(void) {
    ing_err e;
    ing_err_init(&e);
    CHECK(e.status == ING_OK && !e.text && !e.file && !e.line && !e.col);
    CHECK(ing_fail(&e, ING_TYPE, "%s is %d", "x", 7) == ING_TYPE);
    CHECK(e.status == ING_TYPE);
    CHECK_STR(e.text, "x is 7");
    CHECK(ing_fail(&e, ING_NAME, "was: %s", e.text) == ING_NAME);
    CHECK_STR(e.text, "was: x is 7");
    CHECK(ing_fail(NULL, ING_OS, "nobody listens") == ING_OS);
    ing_alloc_fail_at(1); /* the status survives when the text does not */
    CHECK(ing_fail(&e, ING_VALUE, "lost") == ING_VALUE);
    CHECK(e.status == ING_VALUE && !e.text);
    ing_err_fini(&e);
    CHECK(e.status == ING_OK);
    CHECK_STR(ing_status_name(ING_OK), "OK");
    CHECK_STR(ing_status_name(ING_PYTHON), "PYTHON");
    CHECK_STR(ing_status_name((ing_status)999), "?");
    CHECK_STR(ing_status_exception(ING_NAME), "IngotNameError");
    CHECK_STR(ing_status_exception(ING_DECLINED), "");
}

static void test_alloc(void) {
    ing_alloc_fail_at(2);
    CHECK(ing_alloc_fail_left() == 2);
    void *a = ing_malloc(8), *b = ing_malloc(8), *c = ing_malloc(8);
    CHECK(a && !b && c && ing_alloc_fail_left() == 0);
    ing_alloc_fail_at(1);
    CHECK(!ing_realloc(a, 100)); /* a is still ours */
    a = ing_realloc(a, 100);
    CHECK(a != NULL);
    CHECK(!ing_calloc(SIZE_MAX / 2, 3));
    void *z = ing_malloc(0);
    CHECK(z != NULL);
    ing_free(a);
    ing_free(c);
    ing_free(z);
    ing_free(NULL);
}

static bool all_zero(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i]) return false;
    }
    return true;
}

static void test_arena(void) {
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 1000, 5000, 100000, 3, 64};
    enum { ROUNDS = 400, KINDS = sizeof sizes / sizeof *sizes };
    uint8_t *at[ROUNDS];
    ing_arena a;
    ing_arena_init(&a);
    for (int i = 0; i < ROUNDS; i++) {
        size_t n = sizes[i % KINDS];
        at[i] = ing_arena_alloc(&a, n);
        CHECK(at[i] && (uintptr_t)at[i] % 16 == 0 && all_zero(at[i], n));
        if (at[i]) memset(at[i], i % 251 + 1, n);
    }
    for (int i = 0; i < ROUNDS; i++) { /* nobody wrote over anybody */
        size_t n = sizes[i % KINDS];
        CHECK(!n || (at[i][0] == i % 251 + 1 && at[i][n - 1] == i % 251 + 1));
    }
    CHECK_STR(ing_arena_strdup(&a, "abcdef", 3), "abc");
    CHECK_STR(ing_arena_strdup(&a, NULL, 0), "");
    CHECK_STR(ing_arena_printf(&a, "%d-%s", 42, "x"), "42-x");
    CHECK(ing_arena_ok(&a));
    CHECK(!ing_arena_alloc(&a, SIZE_MAX) && !ing_arena_ok(&a));
    CHECK(!ing_arena_alloc(&a, SIZE_MAX - 15));
    CHECK(!ing_arena_array(&a, SIZE_MAX / 4, 8));
    CHECK(ing_arena_alloc(&a, 8) != NULL && !ing_arena_ok(&a)); /* sticky */
    ing_arena_fini(&a);
    CHECK(ing_arena_ok(&a) && a.total == 0);
    ing_arena_fini(&a);
}

static void test_vec(void) {
    ing_vec(uint16_t) v = {0};
    for (uint32_t i = 0; i < 1000; i++) CHECK(ing_vec_push(&v, (uint16_t)i));
    CHECK(v.len == 1000 && v.at[0] == 0 && v.at[999] == 999);
    ing_alloc_fail_at(1);
    CHECK(!ing_vec_reserve(&v, 100000));
    CHECK(v.len == 1000 && v.at[999] == 999);
    CHECK(ing_vec_reserve(&v, 100000) && v.cap >= 100000 && v.at[999] == 999);
    ing_vec_fini(&v);
    CHECK(!v.at && !v.len && !v.cap);
}

static void test_bytes(void) {
    ing_bytes b;
    ing_bytes_init(&b);
    char *empty = ing_bytes_take(&b);
    CHECK(empty && !*empty);
    ing_free(empty);
    ing_bytes_puts(&b, "ab");
    ing_bytes_put(&b, NULL, 0);
    ing_bytes_u8(&b, 0xff);
    ing_bytes_u32(&b, 0x04030201);
    ing_bytes_u64(&b, 0x0807060504030201u);
    CHECK(b.len == 15 && b.at[15] == 0);
    CHECK(!memcmp(b.at, "ab\xff\1\2\3\4\1\2\3\4\5\6\7\10", 15));
    ing_bytes_clear(&b);
    CHECK(b.len == 0 && b.at[0] == 0);
    for (int i = 0; i < 500; i++) ing_bytes_printf(&b, "%d,", i);
    CHECK(strlen((char *)b.at) == b.len && !strncmp((char *)b.at, "0,1,2,", 6));
    ing_bytes_clear(&b);
    ing_bytes_printf(&b, "%*d", 5000, 7); /* longer than any room left */
    CHECK(b.len == 5000 && b.at[4999] == '7' && ing_bytes_ok(&b));
    char *text = ing_bytes_take(&b);
    CHECK(text && strlen(text) == 5000 && !b.at && !b.len);
    ing_free(text);
    CHECK(!ing_bytes_reserve(&b, SIZE_MAX) && !ing_bytes_ok(&b));
    ing_bytes_puts(&b, "x"); /* sticky: a buffer with a hole takes nothing more */
    CHECK(b.len == 0);
    CHECK(!ing_bytes_take(&b) && ing_bytes_ok(&b));
    ing_bytes_fini(&b);
}

static ing_hash128 key_of(uint32_t i) {
    return i % 2 ? (ing_hash128){i, 0} : (ing_hash128){0, i};
}

static void test_map(void) {
    ing_map m;
    ing_map_init(&m);
    CHECK(ing_map_get(&m, key_of(1)) == 0);
    CHECK(!ing_map_put(&m, key_of(1), 0));
    for (uint32_t i = 1; i <= 5000; i++) CHECK(ing_map_put(&m, key_of(i), i));
    CHECK(m.len == 5000);
    CHECK(ing_map_put(&m, key_of(77), 9999) && m.len == 5000);
    CHECK(ing_map_get(&m, key_of(77)) == 9999);
    for (uint32_t i = 100; i <= 5000; i++) CHECK(ing_map_get(&m, key_of(i)) == i);
    CHECK(ing_map_get(&m, key_of(6001)) == 0);
    ing_map_fini(&m);
}

static void test_atoms(void) {
    ing_atoms a;
    char name[16];
    ing_atoms_init(&a);
    CHECK_STR(ing_atoms_text(&a, 0), "");
    CHECK(ing_atoms_add(&a, NULL, 0) == 0);
    for (uint32_t i = 1; i <= 2000; i++) {
        int n = snprintf(name, sizeof name, "v%u", i);
        CHECK(ing_atoms_add(&a, name, (size_t)n) == i);
    }
    CHECK(ing_atoms_add(&a, "", 0) == 0);
    CHECK(ing_atoms_add(&a, "v1500 and more", 5) == 1500);
    CHECK_STR(ing_atoms_text(&a, 1500), "v1500");
    CHECK_STR(ing_atoms_text(&a, 0), "");
    CHECK_STR(ing_atoms_text(&a, 9999), "");
    uint32_t nul = ing_atoms_add(&a, "a\0b", 3);
    CHECK(nul == 2001 && ing_atoms_add(&a, "a", 1) == 2002 && a.size.at[nul] == 3);
    ing_atoms_fini(&a);
}

/* What is appended is found like what is added; of two equal ones the first is. */
static void test_atoms_appended(void) {
    static const char *const names[] = {"", "x", "y", "x", "z"};
    ing_atoms a;
    ing_atoms_init(&a);
    for (uint32_t i = 0; i < 5; i++)
        CHECK(ing_atoms_append(&a, names[i], strlen(names[i])) == i);
    CHECK(ing_atoms_add(&a, "z", 1) == 4 && ing_atoms_add(&a, "x", 1) == 1);
    CHECK(ing_atoms_add(&a, "w", 1) == 5 && ing_atoms_append(&a, "v", 1) == 6);
    CHECK(ing_atoms_add(&a, "v", 1) == 6 && ing_atoms_add(&a, "w", 1) == 5);
    CHECK(ing_atoms_add(&a, "", 0) == 0 && a.text.len == 7);
    ing_atoms_fini(&a);
}

/* ---- out of memory at every point ------------------------------------------------- */

static bool use_arena(void) {
    ing_arena a;
    ing_arena_init(&a);
    for (size_t i = 0; i < 300; i++) {
        uint8_t *p = ing_arena_alloc(&a, i * i % 3000);
        if (p) memset(p, 1, i * i % 3000);
        CHECK(p || !ing_arena_ok(&a));
    }
    ing_arena_printf(&a, "%s %d", "text", 1);
    ing_arena_strdup(&a, "text", 4);
    bool ok = ing_arena_ok(&a);
    ing_arena_fini(&a);
    return ok;
}

static bool use_bytes(void) {
    ing_bytes b;
    ing_bytes_init(&b);
    for (int i = 0; i < 300; i++) {
        size_t before = b.len;
        ing_bytes_printf(&b, "%0*d", i, i);
        ing_bytes_u64(&b, 1);
        CHECK(ing_bytes_ok(&b) ? b.len == before + (size_t)(i ? i : 1) + 8
                               : b.len <= before + (size_t)(i ? i : 1));
        CHECK(!b.at || b.at[b.len] == 0);
    }
    bool ok = ing_bytes_ok(&b);
    char *p = ing_bytes_take(&b);
    CHECK(!p || ok); /* never a text with a hole */
    ok = p != NULL;
    ing_free(p);
    return ok;
}

static bool use_map(void) {
    bool ok = true;
    ing_map m;
    ing_map_init(&m);
    for (uint32_t i = 1; i <= 600; i++) {
        bool done = ing_map_put(&m, key_of(i), i);
        CHECK(ing_map_get(&m, key_of(i)) == (done ? i : 0));
        ok &= done;
    }
    ing_map_fini(&m);
    return ok;
}

static bool use_atoms(void) {
    bool ok = true;
    char name[16];
    ing_atoms a;
    ing_atoms_init(&a);
    for (uint32_t i = 1; i <= 600; i++) {
        int n = snprintf(name, sizeof name, "v%u", i);
        uint32_t id = ing_atoms_add(&a, name, (size_t)n);
        if (id == UINT32_MAX) {
            ok = false;
            id = ing_atoms_add(&a, name, (size_t)n); /* a later try works */
        }
        CHECK(id == i && a.text.len == a.size.len);
        CHECK_STR(ing_atoms_text(&a, id), name);
    }
    ing_atoms_fini(&a);
    return ok;
}

static bool use_vec(void) {
    bool ok = true;
    uint32_t pushed = 0;
    ing_vec(uint32_t) v = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        if (ing_vec_push(&v, i)) {
            pushed++;
        } else {
            ok = false;
        }
    }
    CHECK(v.len == pushed);
    ing_vec_fini(&v);
    return ok;
}

static bool use_read(void) {
    ing_err e;
    ing_bytes b;
    ing_err_init(&e);
    ing_bytes_init(&b);
    ing_status s = ing_os_read("/proc/self/status", 1 << 20, &b, &e);
    CHECK(s == ING_OK || (s == ING_MEMORY && b.len == 0));
    ing_bytes_fini(&b);
    ing_err_fini(&e);
    return s == ING_OK;
}

/* Fails the 1st, 2nd, ... allocation until a run needs fewer; leaks are the sanitizer's. */
static void fail_each(bool (*use)(void), uint64_t at_least) {
    uint64_t n = 1;
    for (; n < 10000; n++) {
        ing_alloc_fail_at(n);
        bool ok = use(), hit = ing_alloc_fail_left() == 0;
        CHECK(ok == !hit);
        if (!hit) break;
    }
    ing_alloc_fail_at(0);
    CHECK(n > at_least && n < 10000);
}

static void test_no_memory(void) {
    fail_each(use_arena, 5);
    fail_each(use_bytes, 5);
    fail_each(use_map, 5);
    fail_each(use_atoms, 5);
    fail_each(use_vec, 5);
    fail_each(use_read, 1);
}

/* ---- scalar types -------------------------------------------------------------------- */

static void test_dtype(void) {
    CHECK_STR(ing_dtype_name(ING_VOID), "void");
    CHECK_STR(ing_dtype_name(ING_F64), "f64");
    CHECK_STR(ing_dtype_name((ing_dtype)99), "?");
    CHECK(ing_dtype_bits(ING_U1) == 1 && ing_dtype_bytes(ING_U1) == 1);
    CHECK(ing_dtype_bits(ING_F16) == 16 && ing_dtype_bytes(ING_F16) == 2);
    CHECK(ing_dtype_bytes(ING_VOID) == 0 && ing_dtype_bytes(ING_U64) == 8);
    CHECK(ing_dtype_class(ING_U1) == 'B' && ing_dtype_class(ING_I16) == 'I');
    CHECK(ing_dtype_class(ING_U8) == 'U' && ing_dtype_class(ING_F16) == 'F');
    for (int t = 0; t < ING_DTYPE_N; t++) {
        char c = ing_dtype_class((ing_dtype)t);
        CHECK(ing_dtype_is_float((ing_dtype)t) == (c == 'F'));
        CHECK(ing_dtype_is_signed((ing_dtype)t) == (c == 'I'));
        CHECK(ing_dtype_is_int((ing_dtype)t) == (c == 'I' || c == 'U' || c == 'B'));
    }
    CHECK(ING_I32 == 4 && ING_F32 == 11); /* values are part of file formats */
}

/* The value of a finite binary16 by its definition. */
static double f16_value(uint32_t h) {
    int exp = (int)(h >> 10 & 31);
    double man = h & 0x3FF;
    double v = exp ? ldexp(man + 1024, exp - 25) : ldexp(man, -24);
    return h & 0x8000 ? -v : v;
}

static void test_f16_values(void) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = ing_f16_to_f32((uint16_t)h);
        if ((h & 0x7FFF) > 0x7C00) {
            CHECK(isnan(f) && isnan(ing_f16_to_f32(ing_f32_to_f16(f))));
            CHECK((ing_f32_to_f16(f) | 0x200) == (h | 0x200)); /* payload kept, quiet */
        } else if ((h & 0x7FFF) == 0x7C00) {
            CHECK(isinf(f) && !signbit(f) == !(h & 0x8000));
            CHECK(ing_f32_to_f16(f) == h);
        } else {
            CHECK((double)f == f16_value(h) && !signbit(f) == !(h & 0x8000));
            CHECK(ing_f32_to_f16(f) == h && ing_f64_to_f16((double)f) == h);
        }
    }
}

/* Between each two neighbours: the middle goes to the even one, and the next double on
 * either side of the middle to its own side (through float, it would round twice). */
static void test_f16_rounding(void) {
    for (uint32_t h = 0; h < 0x7C00; h++) {
        double a = f16_value(h), b = h == 0x7BFF ? 65536.0 : f16_value(h + 1);
        double middle = (a + b) / 2;
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        CHECK(ing_f64_to_f16(middle) == even);
        CHECK(ing_f64_to_f16(-middle) == (even | 0x8000));
        CHECK(ing_f64_to_f16(nextafter(middle, a)) == h);
        CHECK(ing_f64_to_f16(nextafter(middle, b)) == h + 1);
        CHECK(ing_f32_to_f16((float)middle) == even);
        CHECK(ing_f32_to_f16(nextafterf((float)middle, (float)a)) == h);
        CHECK(ing_f32_to_f16(nextafterf((float)middle, (float)b)) == h + 1);
    }
    CHECK(ing_f64_to_f16(1e300) == 0x7C00 && ing_f64_to_f16(-1e300) == 0xFC00);
    CHECK(ing_f64_to_f16(5e-324) == 0 && ing_f64_to_f16(-5e-324) == 0x8000);
    CHECK(ing_f64_to_f16(ldexp(1, -26)) == 0 && ing_f32_to_f16(1e-45f) == 0);
    CHECK(ing_f64_to_f16((double)INFINITY) == 0x7C00 &&
          ing_f32_to_f16(-INFINITY) == 0xFC00);
    CHECK((ing_f64_to_f16((double)NAN) & 0x7E00) == 0x7E00);
}

static void test_f16(void) {
    test_f16_values();
    test_f16_rounding();
#if defined(__SSE2__)
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040); /* flush to zero, denormals are zero */
    uint32_t wrong = 0;
    for (uint32_t h = 0; h < 0x7C00; h++) {
        wrong += ing_f32_to_f16(ing_f16_to_f32((uint16_t)h)) != h;
        wrong += ing_f64_to_f16(f16_value(h)) != h;
    }
    _mm_setcsr(saved);
    CHECK(wrong == 0);
#endif
}

static void test_tables(void) {
    ing_settings s;
    memset(&s, 0xff, sizeof s);
    ing_settings_init(&s);
    CHECK(s.at[ING_SET_fast_math] == 1 && s.at[ING_SET_debug] == 0);
    CHECK(s.at[ING_SET_default_ip] == ING_I32 && s.at[ING_SET_default_fp] == ING_F32);
    CHECK_STR(ing_setting_name(ING_SET_opt_level), "opt_level");
    CHECK(ing_setting_type(ING_SET_debug) == 'B');
    CHECK(ing_setting_type(ING_SET_default_ip) == 'S');
    CHECK(ing_setting_type((ing_setting)999) == '?');
    CHECK(ing_setting_used(ING_SET_debug) == ING_USE_ALWAYS);
    CHECK(ing_setting_used(ING_SET_random_seed) == ING_USE_NOT);
    CHECK(ing_setting_used((ing_setting)999) == ING_USE_NOT);
    ing_settings answered; /* what the engine gets to see */
    ing_settings_answered(&s, &answered);
    for (uint32_t k = 0; k < ING_SETTING_N; k++) {
        ing_setting_use use = ing_setting_used((ing_setting)k);
        bool seen = use == ING_USE_ALWAYS || use == ING_USE_CODE;
        CHECK(answered.at[k] == (seen ? s.at[k] : ING_UNANSWERED));
    }
    CHECK(answered.at[ING_SET_fast_math] == 1 && answered.at[ING_SET_opt_level] == 2);
    ing_counters c = {{0}};
    ing_count(&c, ING_COUNT_LAUNCHES);
    ing_count(&c, ING_COUNT_LAUNCHES);
    CHECK(c.at[ING_COUNT_LAUNCHES] == 2 && c.at[ING_COUNT_PARSES] == 0);
    CHECK_STR(ing_counter_name(ING_COUNT_PARSES), "parses");
    CHECK_STR(ing_counter_name((ing_counter)999), "?");
}

/* ---- files ------------------------------------------------------------------------------ */

static void test_read(const char *dir) {
    char path[256];
    ing_err e;
    ing_bytes b;
    ing_err_init(&e);
    ing_bytes_init(&b);
    snprintf(path, sizeof path, "%s/file", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ing_os_write_all(fd, "0123456789", 10));
    close(fd);
    ing_bytes_puts(&b, "<");
    CHECK(ing_os_read(path, 10, &b, &e) == ING_OK);
    CHECK_STR((char *)b.at, "<0123456789");
    CHECK(ing_os_read(path, 9, &b, &e) == ING_FORMAT && b.len == 11);
    CHECK(strstr(e.text, path) && strstr(e.text, "larger than 9"));
    CHECK(ing_os_read(path, SIZE_MAX, &b, &e) == ING_OK && b.len == 21);
    CHECK(ing_os_read(dir, 100, &b, &e) == ING_OS && strstr(e.text, "not a regular"));
    unlink(path);
    CHECK(ing_os_read(path, 10, &b, &e) == ING_OS && strstr(e.text, "No such file"));
    CHECK(mkfifo(path, 0600) == 0); /* would block if it were opened naively */
    CHECK(ing_os_read(path, 10, &b, &e) == ING_OS && strstr(e.text, "not a regular"));
    unlink(path);
    ing_bytes_clear(&b); /* its size is 0 in stat */
    CHECK(ing_os_read("/proc/self/status", 1 << 20, &b, &e) == ING_OK && b.len > 100);
    ing_bytes_clear(&b);
    CHECK(ing_os_read("/proc/self/status", 50, &b, &e) == ING_FORMAT && b.len == 0);
    CHECK(ing_os_read_fd(-1, 50, &b, &e) == ING_OS);
    ing_bytes_fini(&b);
    ing_err_fini(&e);
}

static void test_os(void) {
    char dir[] = "/tmp/ingot_test_base_XXXXXX";
    if (!mkdtemp(dir)) abort();
    test_read(dir);
    rmdir(dir);
    CHECK(!ing_os_write_all(-1, "x", 1));
    CHECK(ing_os_write_all(-1, NULL, 0));
    int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(proc >= 0 && !ing_os_on_network(proc));
    close(proc);
    CHECK(ing_os_on_network(-1)); /* unknown: careful */
    uint64_t t = ing_os_now_ns();
    CHECK(t > 0 && ing_os_now_ns() >= t);
    CHECK(ing_os_cpus() >= 1 && ing_os_cpus() <= 1u << 18);
    CHECK(ing_os_page() >= 4096 && (ing_os_page() & (ing_os_page() - 1)) == 0);
}

int main(void) {
    test_err();
    test_alloc();
    test_arena();
    test_vec();
    test_bytes();
    test_map();
    test_atoms();
    test_atoms_appended();
    test_no_memory();
    test_dtype();
    test_f16();
    test_tables();
    test_os();
    return CHECK_DONE();
}
