/* XXH3-128 against answers of the reference implementation (xxHash 0.8, seed 0) for every
 * length class, the streaming form against the one-shot form, and the hash writer. Built
 * once for each form of the inner loop (ING_HASH_SIMD in src/base/hash.c). */
#include "base/base.h"
#include "check.h"

enum { N = 100000 };

static void fill_pattern(uint8_t *p) {
    for (uint32_t i = 0; i < N; i++) p[i] = (uint8_t)(i * 2654435761u >> 24);
}

static void check_digest(ing_hash128 got, const char *want) {
    char hex[33];
    ing_hash_hex(got, hex);
    CHECK_STR(hex, want);
}

static const struct {
    size_t len;
    const char *hex;
} answers[] = {
    {0, "99aa06d3014798d86001c324468d497f"},
    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
    {2, "5008d8f8cd45f8ecb0a5d4f167a89d5e"},
    {3, "977fcbc0448b49f6e14090f554a5ea90"},
    {4, "4e82b36688c5328f4ee6926f0426173e"},
    {8, "7b4966a681f18d5779d85adaeefd615e"},
    {9, "200d098a7113e15fee5940d4df4715ae"},
    {16, "78e8ab538d3acaab37286a19cf622308"},
    {17, "1ea709ada2b9c32e33bed349ec1c0ce7"},
    {128, "5ac741c59c95d36ae1f0636051ccd2be"},
    {129, "1240f4d960139642cfb3fed667226458"},
    {240, "640a6149838a7599b2e6947c477a4ab0"},
    {241, "e817e20e53e42a8c2d431e984c441f15"},
    {512, "f67f00b2ac0ea3cddcfed6ee2883acd0"},
    {1024, "df4c8b9ff9715101e99def1145f12936"},
    {1025, "63e845aab7eb695f83cba9b371e4e7f4"},
    {1088, "53fd1378f51e868e8e7e69b3a7124813"},
    {2048, "fb68e3b1bb55b50253275d58cfba68fd"},
    {4096, "3203f3b99ad3538d9bf67f8deff876ae"},
    {100000, "169bf5c50b17f183920056915640359f"},
};

static void test_answers(const uint8_t *p) {
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        check_digest(ing_hash(p, answers[i].len), answers[i].hex);
    }
}

/* Every length in a range: the digest of all their digests, written in hex. */
static void check_range(const uint8_t *p, size_t from, size_t to, const char *want) {
    char hex[33];
    ing_hasher all;
    ing_hasher_init(&all);
    for (size_t n = from; n <= to; n++) {
        ing_hash_hex(ing_hash(p, n), hex);
        ing_hasher_raw(&all, hex, 32);
    }
    check_digest(ing_hasher_done(&all), want);
}

/* The second range: every tail behind several blocks, unaligned. */
static void test_every_length(const uint8_t *p) {
    check_range(p, 0, 1100, "550218ae0ac294ffe810566803e5eefe");
    check_range(p + 1, 5000, 7100, "e1e3e8de608ac703d44bbb374c3d0f7c");
}

static void test_unaligned(const uint8_t *p) {
    static const size_t len[] = {5, 13, 77, 200, 300, 3000};
    char hex[33];
    ing_hasher all;
    ing_hasher_init(&all);
    for (size_t at = 0; at < 8; at++) {
        for (size_t i = 0; i < sizeof len / sizeof *len; i++) {
            ing_hash_hex(ing_hash(p + at, len[i]), hex);
            ing_hasher_raw(&all, hex, 32);
        }
    }
    check_digest(ing_hasher_done(&all), "0bf15a4817ec1bcca30aa1e35a420df6");
}

/* Exact-size copies, so that the sanitizer sees a read past either end. */
static void test_bounds(const uint8_t *p) {
    for (size_t n = 1; n <= 1100; n++) {
        uint8_t *copy = malloc(n);
        if (!copy) abort();
        memcpy(copy, p, n);
        CHECK(ing_hash_eq(ing_hash(copy, n), ing_hash(p, n)));
        free(copy);
    }
}

static ing_hash128 in_steps(const uint8_t *p, size_t n, size_t step) {
    ing_hasher h;
    ing_hasher_init(&h);
    for (size_t at = 0; at < n; at += step) {
        ing_hasher_raw(&h, p + at, step < n - at ? step : n - at);
    }
    return ing_hasher_done(&h);
}

static void test_streaming(const uint8_t *p) {
    static const size_t step[] = {1, 7, 64, 239, 1000, 1023, 1024, 1025, 2048, 5000};
    for (size_t n = 0; n < 2200; n++) {
        size_t s = step[n % (sizeof step / sizeof *step)];
        CHECK(ing_hash_eq(in_steps(p, n, s), ing_hash(p, n)));
    }
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        for (size_t n = 3 * 1024 - 66; n < 3 * 1024 + 66; n++) {
            CHECK(ing_hash_eq(in_steps(p, n, step[i]), ing_hash(p, n)));
        }
        CHECK(ing_hash_eq(in_steps(p, N, step[i]), ing_hash(p, N)));
    }
    uint32_t seed = 12345; /* pieces of random size */
    for (int round = 0; round < 300; round++) {
        ing_hasher h;
        ing_hasher_init(&h);
        size_t at = 0;
        for (int i = 0; i < 12; i++) {
            seed = seed * 1664525u + 1013904223u;
            size_t n = (seed >> 8) % (i % 3 ? 700 : 4000);
            ing_hasher_raw(&h, p + at, n);
            at += n;
            CHECK(ing_hash_eq(ing_hasher_done(&h), ing_hash(p, at)));
        }
    }
}

/* Blocks that are not the last ones, and what follows them. */
static void test_blocks(const uint8_t *p) {
    for (size_t before = 0; before <= 2048; before += 512)
        for (size_t n = 0; n <= 4096; n += 512)
            for (size_t after = 1; after < 1100; after += 61) {
                ing_hasher h;
                ing_hasher_init(&h);
                ing_hasher_blocks(&h, p, before);
                ing_hasher_blocks(&h, p + before, n);
                ing_hasher_raw(&h, p + before + n, after);
                CHECK(
                    ing_hash_eq(ing_hasher_done(&h), ing_hash(p, before + n + after)));
            }
}

static void test_writer(void) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_item(&h, 1, "ab", 2);
    ing_hasher_item(&h, 2, NULL, 0);
    ing_hasher_u64(&h, 3, 7);
    ing_hasher_str(&h, 4, "text");
    ing_hasher_digest(&h, 5, (ing_hash128){1, 2});
    check_digest(ing_hasher_done(&h), "1364aa92921249a40d3df5342e05b71a");

    ing_hasher a, b; /* items do not run together */
    ing_hasher_init(&a);
    ing_hasher_init(&b);
    ing_hasher_str(&a, 1, "ab");
    ing_hasher_str(&a, 1, "c");
    ing_hasher_str(&b, 1, "a");
    ing_hasher_str(&b, 1, "bc");
    CHECK(!ing_hash_eq(ing_hasher_done(&a), ing_hasher_done(&b)));
}

static void test_hex(void) {
    ing_hash128 h = {0x0123456789abcdefu, 0xfedcba9876543210u}, back;
    char hex[33];
    ing_hash_hex(h, hex);
    CHECK_STR(hex, "fedcba98765432100123456789abcdef");
    CHECK(ing_hash_unhex(hex, &back) && ing_hash_eq(h, back));
    CHECK(!ing_hash_unhex("", &back));
    CHECK(!ing_hash_unhex("fedcba98765432100123456789abcde", &back));
    CHECK(!ing_hash_unhex("fedcba98765432100123456789abcdef0", &back));
    CHECK(!ing_hash_unhex("FEDCBA98765432100123456789abcdef", &back));
    CHECK(!ing_hash_unhex("fedcba9876543210 123456789abcdef", &back));
}

int main(void) {
    uint8_t *p = malloc(N);
    if (!p) abort();
    fill_pattern(p);
    test_answers(p);
    test_every_length(p);
    test_unaligned(p);
    test_bounds(p);
    test_streaming(p);
    test_blocks(p);
    test_writer();
    test_hex();
    free(p);
    return CHECK_DONE();
}
