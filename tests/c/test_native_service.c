/* Native code against the interpreter, for what code asks of its context: random numbers,
 * prints, details of errors, compare-and-swap; and the generator's known answers. */
#include "native.h"

/* ---- the generator ------------------------------------------------------------------------- */

/* The answers that the authors of Philox publish for philox4x32-10. */
static void test_known_answers(void) {
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t out[4];
        ing_ir_philox(cases[k].counter, cases[k].key, out);
        CHECK(memcmp(out, cases[k].out, sizeof out) == 0);
    }
}

/* SplitMix64 from 1234567, as published with other implementations of it; what a mask changes. */
static void test_mix(void) {
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};
    uint64_t state = 1234567;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        CHECK(ing_ir_mix(state += ING_MIX_STEP, 0) == known[k]);
    CHECK(ing_ir_mix(state, 1) != known[4]);
}

/* A number depends on key, place, index and draw, and on nothing else of the context. */
static void test_streams(void) {
    struct ing_ctx a = {.key = 7, .place = 2}, b = a;
    uint64_t seen[6];
    b.slot = 3;
    b.fuel = 9;
    ing_ir_random_begin(&a, 5);
    ing_ir_random_begin(&b, 5);
    seen[0] = ing_ir_random(&a, ING_U64);
    seen[1] = ing_ir_random(&a, ING_U64);
    CHECK(ing_ir_random(&b, ING_U64) == seen[0]);
    ing_ir_random_begin(&a, 6);
    seen[2] = ing_ir_random(&a, ING_U64);
    a.place = 3;
    ing_ir_random_begin(&a, 5);
    seen[3] = ing_ir_random(&a, ING_U64);
    b.key = 8;
    ing_ir_random_begin(&b, 5);
    seen[4] = ing_ir_random(&b, ING_U64);
    b.key = 7 + (UINT64_C(1) << 32);
    ing_ir_random_begin(&b, 5);
    seen[5] = ing_ir_random(&b, ING_U64);
    for (int j = 0; j < 6; j++)
        for (int k = 0; k < j; k++) CHECK(seen[j] != seen[k]);
}

/* Two draws per iteration, in a func and in the loop itself, and what was drawn before. */
static void test_random(ing_dtype t) {
    char ir[1600];
    const char *d = ing_dtype_name(t);
    int64_t n = 100;
    void *blank = calloc((size_t)n, 8);
    snprintf(
        ir, sizeof ir,
        "arg 0 array<%s, 1>\narg 1 array<%s, 1>\nret 0 %s\n"
        "task @0 {\n%%b = task.begin i32\n%%e = task.end i32\n"
        "%%a = array array<%s, 1> 0\n%%c = array array<%s, 1> 1\n"
        "%%i = loop parallel i32 %%b, %%e {\n%%x = random %s\n%%y = call %s @1, []\n"
        "%%p = elem ref<%s> %%a, [%%i]\nstore %%p, %%x\n"
        "%%q = elem ref<%s> %%c, [%%i]\nstore %%q, %%y\n}\n}\n"
        "func @1 () %s {\n%%r = random %s\nreturn %%r\n}\n"
        "task @2 {\n%%u = random %s\n%%v = random %s\nset_ret 0, %%v\n}\n"
        "run @0 range begin 0 end 100 cost 1\nrun @2 serial cost 1\n",
        d, d, d, d, d, d, d, d, d, d, d, d, d);
    targ args[2] = {{.data = blank, .bytes = 100 * ing_dtype_bytes(t), .extent = {n}},
                    {.data = blank, .bytes = 100 * ing_dtype_bytes(t), .extent = {n}}};
    char name[32];
    snprintf(name, sizeof name, "random %s", d);
    setup s = {.name = name, .ir = ir, .args = args, .n_args = 2};
    both(&s, NULL);
    s.fast = true;
    both(&s, NULL);
    free(blank);
}

/* ---- compare and swap ----------------------------------------------------------------------- */

static void test_cas(ing_dtype t) {
    char ir[1600];
    const char *d = ing_dtype_name(t);
    static const uint64_t data[64];
    snprintf(
        ir, sizeof ir,
        "arg 0 array<%s, 1>\narg 1 array<%s, 1>\n"
        "task @0 {\n%%z = const i32 0\n%%n = const i32 64\n%%a = array array<%s, 1> 0\n"
        "%%o = array array<%s, 1> 1\n%%one = const %s 1\n%%two = const %s 0\n"
        "%%l = alloca ref<%s>\n"
        "%%i = loop i32 %%z, %%n {\n%%p = elem ref<%s> %%a, [%%i]\n"
        "%%x = cas %s %%p, %%one, %%two\n%%y = cas private %s %%p, %%two, %%one\n"
        "%%w = cas %s %%l, %%x, %%one\n%%s = xor %%x, %%y\n%%t = xor %%s, %%w\n"
        "%%q = elem ref<%s> %%o, [%%i]\nstore %%q, %%t\n}\n}\nrun @0 serial cost 1\n",
        d, d, d, d, d, d, d, d, d, d, d, d);
    size_t bytes = 64 * ing_dtype_bytes(t);
    uint8_t *cells = calloc(64, 8);
    for (size_t k = 0; k < 64; k++) {
        uint64_t v = t == ING_U1 ? k % 2 : k % 3;
        memcpy(cells + k * ing_dtype_bytes(t), &v, ing_dtype_bytes(t));
    }
    targ args[2] = {{.data = cells, .bytes = bytes, .extent = {64}},
                    {.data = data, .bytes = bytes, .extent = {64}}};
    char name[32];
    snprintf(name, sizeof name, "cas %s", d);
    setup s = {.name = name, .ir = ir, .args = args, .n_args = 2};
    both(&s, NULL);
    free(cells);
}

/* ---- records -------------------------------------------------------------------------------- */

static void test_print(void) {
    static const char ir[] =
        "arg 0 f32\narg 1 i8\n"
        "task @0 {\n%b = task.begin i64\n%e = task.end i64\n%f = arg f32 0\n"
        "%c = arg i8 1\n%i = loop parallel i64 %b, %e {\n"
        "print 7, [%i, %f, %c]\n%h = cast f16 %f\n%t = cast u1 %c\n%d = cast f64 %i\n"
        "call void @1, [%d]\nprint 8, []\nprint 9, [%h, %t]\nprint 3, [%c] !12\n}\n}\n"
        "func @1 (f64) void {\n%p = param f64 0\nprint 7, [%p]\n}\n"
        "run @0 range begin -3 end 5 cost 1\n";
    targ args[2] = {{.scalar = 0x40200000}, {.scalar = (uint64_t)-5}};
    setup s = {.name = "print", .ir = ir, .args = args, .n_args = 2};
    side got;
    both(&s, &got);
    ing_printed first;
    memcpy(&first, got.printed, sizeof first);
    /* per iteration: five records with 3, 1, 0, 2 and 1 values */
    CHECK(got.n_printed == 8 * (5 * sizeof first + 7 * 8));
    CHECK(first.code == 7 && first.func == 0 && first.n == 3);
    int64_t words[3];
    memcpy(words, got.printed + sizeof first, sizeof words);
    CHECK(words[0] == -3 && words[1] == 0x40200000 && words[2] == -5);
}

static void test_detail(void) {
    static const char ir[] =
        "arg 0 i32\ntask @0 {\n%n = arg i32 0\n%z = const i32 0\n%b = task.begin i32\n"
        "%e = task.end i32\n%i = loop parallel i32 %b, %e {\n%ok = lt %i, %n\n"
        "%bad = not %ok\nif %bad {\n%no = const u1 0\n%h = const f64 2.5\n"
        "detail [%i, %n, %h, %bad]\ncheck %no, 2 !17\n}\n}\n}\n"
        "run @0 range begin 0 end 9 cost 1\n";
    targ args[1] = {{.scalar = 6}};
    setup s = {.name = "detail", .ir = ir, .args = args, .n_args = 1};
    side got;
    both(&s, &got);
    CHECK(got.error.code == 2 && got.error.node == 17);
    CHECK(got.error.detail[0] == 6 && got.error.detail[1] == 6 &&
          got.error.detail[2] == 0x4004000000000000u && got.error.detail[3] == 1);
}

/* ---- text and rules ---------------------------------------------------------------------- */

static ing_status check_text(const char *body, bool round_trip) {
    char ir[512];
    ing_ir_mod *m = NULL, *again = NULL;
    ing_bytes a, b;
    ing_bytes_init(&a);
    ing_bytes_init(&b);
    snprintf(ir, sizeof ir,
             "arg 0 array<i32, 1>\narg 1 array<f32, 1>\ntask @0 {\n%s}\n%s", body,
             "run @0 serial cost 0\n");
    ing_status s = ing_ir_parse(ir, strlen(ir), &m, NULL);
    CHECK(s == ING_OK);
    if (s == ING_OK) s = ing_ir_verify(m, NULL);
    if (s == ING_OK && round_trip) {
        ing_ir_print(m, 0, &a);
        CHECK(ing_ir_parse((char *)a.at, a.len, &again, NULL) == ING_OK);
        ing_ir_print(again, 0, &b);
        CHECK_STR((char *)b.at, (char *)a.at);
        CHECK(strstr((char *)a.at, "print 3, [%1] !12") != NULL);
        char told[32]; /* no location there */
        snprintf(told, sizeof told, "print %d, []\n", ING_ABI_USER);
        CHECK(strstr((char *)a.at, told) != NULL);
    }
    ing_bytes_fini(&a);
    ing_bytes_fini(&b);
    ing_ir_mod_free(m);
    ing_ir_mod_free(again);
    return s;
}

static void test_text(void) {
    static const char head[] = "%z = const i32 0\n%a = array array<i32, 1> 0\n"
                               "%p = elem ref<i32> %a, [%z]\n";
    char body[400];
    snprintf(body, sizeof body,
             "%s%%r = random f16\n%%o = cas i32 %%p, %%z, %%z\nprint 3, [%%z] !12\n"
             "print %d, [] !13\ndetail [%%r, %%o]\n%%f = ffs %%o\n",
             head, ING_ABI_USER);
    CHECK(check_text(body, true) == ING_OK);
    static const char *const wrong[] = {
        "print 7, [%p]\n",
        "print 0, [%z]\n",
        "detail [%a]\n",
        "%u = const u8 0\n%o = cas i32 %p, %z, %u\n",
        "%b = array array<f32, 1> 1\n%q = elem ref<f32> %b, [%z]\n%f = const f32 0.0\n"
        "%o = cas f32 %q, %f, %f\n",
        "detail [%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z]\n",
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        snprintf(body, sizeof body, "%s%s", head, wrong[k]);
        CHECK(check_text(body, false) == ING_INTERNAL);
    }
}

int main(void) {
    test_known_answers();
    test_mix();
    test_streams();
    test_text();
    if (!native_open()) return CHECK_DONE();
    for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++) {
        test_random((ing_dtype)t);
        if (ing_dtype_is_int((ing_dtype)t)) test_cas((ing_dtype)t);
    }
    test_print();
    test_detail();
    ing_helpers_free(helpers);
    return CHECK_DONE();
}
