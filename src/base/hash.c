/* XXH3-128 with seed 0 and the default secret, written from the published description
 * (xxHash, doc/xxhash_spec.md, version 0.2.0), and the one hash writer on top of it.
 * Called by everything that makes a key or a checksum. Must never change: digests are
 * file names and file contents. Not cryptographic: equal digests of text that a user
 * controls are not proof of equal text.
 *
 * Streaming: buf holds the last 1 to 1,024 bytes given, the block in progress. It is
 * consumed only when more bytes follow, because the last block is treated differently,
 * and its tail stays in place, because the last 64 bytes may begin in the block before.
 */
#include "base/base.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { STRIPE = 64, BLOCK = 1024, STRIPES = BLOCK / STRIPE, SECRET = 192, SHORT = 240 };
_Static_assert(sizeof((ing_hasher *)0)->buf == BLOCK, "buf is one block");

#define P32_1 0x9E3779B1u
#define P32_2 0x85EBCA77u
#define P32_3 0xC2B2AE3Du
#define P64_1 0x9E3779B185EBCA87u
#define P64_2 0xC2B2AE3D27D4EB4Fu
#define P64_3 0x165667B19E3779F9u
#define P64_4 0x85EBCA77C2B2AE63u
#define P64_5 0x27D4EB2F165667C5u
#define MX1   0x165667919E3779F9u
#define MX2   0x9FB21C651E98DF25u

/* clang-format off */
static const uint8_t secret[SECRET] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21,
    0xad, 0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4,
    0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a,
    0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e,
    0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3,
    0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97,
    0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa,
    0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff,
    0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16,
    0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc,
    0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16,
    0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};
/* clang-format on */

static uint64_t read64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static uint32_t read32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void write64(uint8_t *p, uint64_t v) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, sizeof v);
}

static uint64_t mul128(uint64_t a, uint64_t b, uint64_t *high) {
    unsigned __int128 r = (unsigned __int128)a * b;
    *high = (uint64_t)(r >> 64);
    return (uint64_t)r;
}

static uint64_t mul_fold(uint64_t a, uint64_t b) {
    uint64_t high, low = mul128(a, b, &high);
    return low ^ high;
}

static uint64_t avalanche(uint64_t x) {
    x = (x ^ x >> 37) * MX1;
    return x ^ x >> 32;
}

static uint64_t avalanche_xxh64(uint64_t x) {
    x = (x ^ x >> 33) * P64_2;
    x = (x ^ x >> 29) * P64_3;
    return x ^ x >> 32;
}

/* ---- up to 16 bytes ------------------------------------------------------------- */

static ing_hash128 hash_empty(void) {
    return (ing_hash128){avalanche_xxh64(read64(secret + 64) ^ read64(secret + 72)),
                         avalanche_xxh64(read64(secret + 80) ^ read64(secret + 88))};
}

static ing_hash128 hash_1_3(const uint8_t *p, size_t n) {
    uint32_t x =
        p[n - 1] | (uint32_t)n << 8 | (uint32_t)p[0] << 16 | (uint32_t)p[n >> 1] << 24;
    uint32_t swapped = __builtin_bswap32(x);
    uint64_t low = (read32(secret) ^ read32(secret + 4)) ^ x;
    uint64_t high =
        (read32(secret + 8) ^ read32(secret + 12)) ^ (swapped << 13 | swapped >> 19);
    return (ing_hash128){avalanche_xxh64(low), avalanche_xxh64(high)};
}

static ing_hash128 hash_4_8(const uint8_t *p, size_t n) {
    uint64_t both = read32(p) | (uint64_t)read32(p + n - 4) << 32;
    uint64_t x = read64(secret + 16) ^ read64(secret + 24) ^ both;
    uint64_t high, low = mul128(x, P64_1 + ((uint64_t)n << 2), &high);
    high += low << 1;
    low ^= high >> 3;
    low = (low ^ low >> 35) * MX2;
    return (ing_hash128){low ^ low >> 28, avalanche(high)};
}

static ing_hash128 hash_9_16(const uint8_t *p, size_t n) {
    uint64_t first = read64(p), last = read64(p + n - 8);
    uint64_t a = read64(secret + 32) ^ read64(secret + 40) ^ first ^ last;
    uint64_t b = read64(secret + 48) ^ read64(secret + 56) ^ last;
    uint64_t high, low = mul128(a, P64_1, &high);
    low += (uint64_t)(n - 1) << 54;
    high += b + (uint64_t)(uint32_t)b * (P32_2 - 1);
    low ^= __builtin_bswap64(high);
    uint64_t high2, low2 = mul128(low, P64_2, &high2);
    high2 += high * P64_2;
    return (ing_hash128){avalanche(low2), avalanche(high2)};
}

/* ---- 17 to 240 bytes -------------------------------------------------------- */

static uint64_t mix_step(const uint8_t *p, const uint8_t *key) {
    return mul_fold(read64(p) ^ read64(key), read64(p + 8) ^ read64(key + 8));
}

static void mix_two(uint64_t acc[2], const uint8_t *a, const uint8_t *b,
                    const uint8_t *key) {
    acc[0] += mix_step(a, key);
    acc[1] += mix_step(b, key + 16);
    acc[0] ^= read64(b) + read64(b + 8);
    acc[1] ^= read64(a) + read64(a + 8);
}

static ing_hash128 finish_medium(const uint64_t acc[2], size_t n) {
    uint64_t high = acc[0] * P64_1 + acc[1] * P64_4 + (uint64_t)n * P64_2;
    return (ing_hash128){avalanche(acc[0] + acc[1]), 0 - avalanche(high)};
}

static ing_hash128 hash_17_128(const uint8_t *p, size_t n) {
    uint64_t acc[2] = {(uint64_t)n * P64_1, 0};
    for (size_t i = (n - 1) / 32 + 1; i-- > 0;) {
        mix_two(acc, p + i * 16, p + n - i * 16 - 16, secret + i * 32);
    }
    return finish_medium(acc, n);
}

static ing_hash128 hash_129_240(const uint8_t *p, size_t n) {
    uint64_t acc[2] = {(uint64_t)n * P64_1, 0};
    for (size_t i = 0; i < 4; i++) {
        mix_two(acc, p + i * 32, p + i * 32 + 16, secret + i * 32);
    }
    acc[0] = avalanche(acc[0]);
    acc[1] = avalanche(acc[1]);
    for (size_t i = 4; i < n / 32; i++) {
        mix_two(acc, p + i * 32, p + i * 32 + 16, secret + (i - 4) * 32 + 3);
    }
    mix_two(acc, p + n - 16, p + n - 32, secret + 103);
    return finish_medium(acc, n);
}

static ing_hash128 hash_short(const uint8_t *p, size_t n) {
    if (n > 128) return hash_129_240(p, n);
    if (n > 16) return hash_17_128(p, n);
    if (n > 8) return hash_9_16(p, n);
    if (n >= 4) return hash_4_8(p, n);
    return n ? hash_1_3(p, n) : hash_empty();
}

/* ---- more than 240 bytes -------------------------------------------------------- */

/* Which forms of the inner loop are compiled: 0 plain C, 1 SSE2, 2 AVX2 too, 3 AVX-512 too;
 * what the CPU has decides. The tests build this file once for each. 256 KiB, AMD EPYC, -O2:
 * 5, 14, 71 and 80 GB/s (gcc 12 finds the multiply of the plain loop only at -O3). */
#ifndef ING_HASH_SIMD
#if defined(__x86_64__)
#define ING_HASH_SIMD 3
#else
#define ING_HASH_SIMD 0
#endif
#endif

#if ING_HASH_SIMD
static inline void accumulate(uint64_t acc[8], const uint8_t *p, const uint8_t *key) {
    for (int i = 0; i < 4; i++) {
        __m128i *lane = (__m128i *)acc + i;
        __m128i data = _mm_loadu_si128((const __m128i *)p + i);
        __m128i x = _mm_xor_si128(data, _mm_loadu_si128((const __m128i *)key + i));
        __m128i product = _mm_mul_epu32(x, _mm_srli_epi64(x, 32));
        __m128i sum =
            _mm_add_epi64(_mm_loadu_si128(lane), _mm_shuffle_epi32(data, 0x4E));
        _mm_storeu_si128(lane, _mm_add_epi64(sum, product));
    }
}
#else
static inline void accumulate(uint64_t acc[8], const uint8_t *p, const uint8_t *key) {
    for (int i = 0; i < 8; i++) {
        uint64_t data = read64(p + 8 * i), x = data ^ read64(key + 8 * i);
        acc[i ^ 1] += data;
        acc[i] += (uint64_t)(uint32_t)x * (x >> 32);
    }
}
#endif

static void accumulate_n(uint64_t acc[8], const uint8_t *p, size_t stripes) {
    for (size_t i = 0; i < stripes; i++)
        accumulate(acc, p + i * STRIPE, secret + i * 8);
}

static void consume_block(uint64_t acc[8], const uint8_t *p) {
    accumulate_n(acc, p, STRIPES);
    for (int i = 0; i < 8; i++) {
        uint64_t x = acc[i] ^ acc[i] >> 47 ^ read64(secret + SECRET - STRIPE + 8 * i);
        acc[i] = x * P32_1;
    }
}

#if ING_HASH_SIMD >= 2
#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i load_avx2(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

/* Lanes that change places do so once per block: *sum is the sum of what was read. */
AVX2 static inline __m256i accumulate_avx2(__m256i acc, __m256i *sum, const uint8_t *p,
                                           const uint8_t *key) {
    __m256i data = load_avx2(p), x = _mm256_xor_si256(data, load_avx2(key));
    *sum = _mm256_add_epi64(*sum, data);
    return _mm256_add_epi64(acc, _mm256_mul_epu32(x, _mm256_srli_epi64(x, 32)));
}

AVX2 static inline __m256i scramble_avx2(__m256i acc, const uint8_t *key) {
    __m256i prime = _mm256_set1_epi32((int)P32_1);
    __m256i x = _mm256_xor_si256(acc, _mm256_srli_epi64(acc, 47));
    x = _mm256_xor_si256(x, load_avx2(key));
    __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), prime);
    return _mm256_add_epi64(_mm256_mul_epu32(x, prime), _mm256_slli_epi64(high, 32));
}

/* As consume_block for each, with the accumulators in two registers throughout. */
AVX2 static void consume_blocks_avx2(uint64_t acc[8], const uint8_t *p, size_t blocks) {
    __m256i *lane = (__m256i *)acc;
    __m256i a = _mm256_loadu_si256(lane), b = _mm256_loadu_si256(lane + 1);
    for (; blocks; blocks--, p += BLOCK) {
        __m256i sa = _mm256_setzero_si256(), sb = sa;
#pragma GCC unroll 4 /* 1.2x; 16 is slower than none */
        for (size_t i = 0; i < STRIPES; i++) {
            const uint8_t *at = p + i * STRIPE, *key = secret + i * 8;
            a = accumulate_avx2(a, &sa, at, key);
            b = accumulate_avx2(b, &sb, at + 32, key + 32);
        }
        a = _mm256_add_epi64(a, _mm256_shuffle_epi32(sa, 0x4E));
        b = _mm256_add_epi64(b, _mm256_shuffle_epi32(sb, 0x4E));
        a = scramble_avx2(a, secret + SECRET - STRIPE);
        b = scramble_avx2(b, secret + SECRET - STRIPE + 32);
    }
    _mm256_storeu_si256(lane, a);
    _mm256_storeu_si256(lane + 1, b);
}
#endif

#if ING_HASH_SIMD >= 3
#define AVX512 __attribute__((target("avx512f")))

AVX512 static inline __m512i scramble_avx512(__m512i acc) {
    __m512i prime = _mm512_set1_epi32((int)P32_1);
    __m512i x = _mm512_xor_si512(acc, _mm512_srli_epi64(acc, 47));
    x = _mm512_xor_si512(x, _mm512_loadu_si512(secret + SECRET - STRIPE));
    __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), prime);
    return _mm512_add_epi64(_mm512_mul_epu32(x, prime), _mm512_slli_epi64(high, 32));
}

/* As consume_blocks_avx2, a stripe in one register, and all keys in others: with keys from
 * memory it is no faster than AVX2. */
AVX512 static void consume_blocks_avx512(uint64_t acc[8], const uint8_t *p,
                                         size_t blocks) {
    __m512i a = _mm512_loadu_si512(acc), key[STRIPES];
#pragma GCC unroll 16
    for (int i = 0; i < STRIPES; i++) {
        key[i] = _mm512_loadu_si512(secret + i * 8);
        __asm__("" : "+v"(key[i])); /* it is not to be loaded again */
    }
    for (; blocks; blocks--, p += BLOCK) {
        __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 16
        for (int i = 0; i < STRIPES; i++) {
            __m512i data = _mm512_loadu_si512(p + i * STRIPE);
            __m512i x = _mm512_xor_si512(data, key[i]);
            sum = _mm512_add_epi64(sum, data);
            a = _mm512_add_epi64(a, _mm512_mul_epu32(x, _mm512_srli_epi64(x, 32)));
        }
        a = _mm512_add_epi64(a, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
        a = scramble_avx512(a);
    }
    _mm512_storeu_si512(acc, a);
}
#endif

static void consume_blocks(uint64_t acc[8], const uint8_t *p, size_t blocks) {
#if ING_HASH_SIMD >= 3
    if (ing_cpu_rung() >= 3) {
        consume_blocks_avx512(acc, p, blocks);
        return;
    }
#endif
#if ING_HASH_SIMD >= 2
    if (ing_cpu_rung() >= 2) {
        consume_blocks_avx2(acc, p, blocks);
        return;
    }
#endif
    for (; blocks; blocks--, p += BLOCK) consume_block(acc, p);
}

static uint64_t merge(const uint64_t acc[8], uint64_t x, const uint8_t *key) {
    for (int i = 0; i < 8; i += 2) {
        x += mul_fold(acc[i] ^ read64(key + 8 * i),
                      acc[i + 1] ^ read64(key + 8 * i + 8));
    }
    return avalanche(x);
}

/* p, n: the last block, of 1 to 1,024 bytes; last: the last 64 bytes of all. */
static ing_hash128 finish_long(uint64_t acc[8], const uint8_t *p, size_t n,
                               const uint8_t *last, uint64_t total) {
    accumulate_n(acc, p, (n - 1) / STRIPE);
    accumulate(acc, last, secret + SECRET - 71);
    return (ing_hash128){merge(acc, total * P64_1, secret + 11),
                         merge(acc, ~(total * P64_2), secret + SECRET - 75)};
}

static void init_acc(uint64_t acc[8]) {
    static const uint64_t init[8] = {P32_3, P64_1, P64_2, P64_3,
                                     P64_4, P32_2, P64_5, P32_1};
    memcpy(acc, init, sizeof init);
}

ing_hash128 ing_hash(const void *data, size_t n) {
    const uint8_t *p = data;
    if (n <= SHORT) return hash_short(p, n);
    uint64_t acc[8];
    init_acc(acc);
    size_t at = (n - 1) / BLOCK * BLOCK; /* the last block is never consumed here */
    consume_blocks(acc, p, at / BLOCK);
    return finish_long(acc, p + at, n - at, p + n - STRIPE, n);
}

/* ---- streaming -------------------------------------------------------------- */

/* What buf holds is known by `fill` and `total`: it need not be cleared. */
void ing_hasher_init(ing_hasher *h) {
    init_acc(h->acc);
    h->total = 0;
    h->fill = 0;
}

void ing_hasher_raw(ing_hasher *h, const void *data, size_t n) {
    const uint8_t *p = data;
    h->total += n;
    while (n) {
        if (h->fill == BLOCK) {
            consume_blocks(h->acc, h->buf, 1);
            h->fill = 0;
        }
        if (h->fill == 0 && n > BLOCK) { /* whole blocks go past the buffer */
            size_t whole = (n - 1) / BLOCK * BLOCK;
            consume_blocks(h->acc, p, whole / BLOCK);
            n -= whole;
            p += whole;
            memcpy(h->buf + BLOCK - STRIPE, p - STRIPE, STRIPE);
        }
        size_t take = n < BLOCK - h->fill ? n : BLOCK - h->fill;
        memcpy(h->buf + h->fill, p, take);
        h->fill += (uint32_t)take;
        p += take;
        n -= take;
    }
}

/* More bytes follow for certain, before ing_hasher_done: whole blocks need not wait for
 * them in buf. */
void ing_hasher_blocks(ing_hasher *h, const void *data, size_t n) {
    if (h->fill || n % BLOCK || !n) {
        ing_hasher_raw(h, data, n);
        return;
    }
    const uint8_t *p = data;
    h->total += n;
    consume_blocks(h->acc, p, n / BLOCK);
    memcpy(h->buf + BLOCK - STRIPE, p + n - STRIPE, STRIPE);
}

ing_hash128 ing_hasher_done(const ing_hasher *h) {
    if (h->total <= SHORT) return hash_short(h->buf, h->fill);
    uint64_t acc[8];
    memcpy(acc, h->acc, sizeof acc);
    uint8_t last[STRIPE];
    if (h->fill >= STRIPE) {
        memcpy(last, h->buf + h->fill - STRIPE, STRIPE);
    } else { /* the rest of the last 64 bytes is the tail of the block before */
        size_t before = STRIPE - h->fill;
        memcpy(last, h->buf + BLOCK - before, before);
        memcpy(last + before, h->buf, h->fill);
    }
    return finish_long(acc, h->buf, h->fill, last, h->total);
}

/* ---- the hash writer -------------------------------------------------------- */

/* Keys are made of many small items: where one fits the block in progress, it is put there
 * at once. */
void ing_hasher_item(ing_hasher *h, uint8_t tag, const void *p, size_t n) {
    uint8_t head[9] = {tag};
    write64(head + 1, n);
    if (n <= BLOCK - sizeof head && h->fill <= BLOCK - sizeof head - n) {
        uint8_t *to = h->buf + h->fill;
        memcpy(to, head, sizeof head);
        if (n) memcpy(to + sizeof head, p, n);
        h->fill += (uint32_t)(sizeof head + n);
        h->total += sizeof head + n;
        return;
    }
    ing_hasher_raw(h, head, sizeof head);
    ing_hasher_raw(h, p, n);
}

void ing_hasher_u64(ing_hasher *h, uint8_t tag, uint64_t v) {
    uint8_t le[8];
    write64(le, v);
    ing_hasher_item(h, tag, le, sizeof le);
}

void ing_hasher_str(ing_hasher *h, uint8_t tag, const char *s) {
    ing_hasher_item(h, tag, s, strlen(s));
}

void ing_hasher_digest(ing_hasher *h, uint8_t tag, ing_hash128 d) {
    uint8_t le[16];
    write64(le, d.lo);
    write64(le + 8, d.hi);
    ing_hasher_item(h, tag, le, sizeof le);
}

/* ---- text form -------------------------------------------------------------- */

void ing_hash_hex(ing_hash128 h, char out[33]) {
    static const char digit[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        out[i] = digit[h.hi >> (60 - 4 * i) & 15];
        out[16 + i] = digit[h.lo >> (60 - 4 * i) & 15];
    }
    out[32] = 0;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly the 32 digits that ing_hash_hex writes: a digest has one spelling. */
bool ing_hash_unhex(const char *s, ing_hash128 *out) {
    uint64_t half[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
        int v = hex_value(s[i]);
        if (v < 0) return false;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)v;
    }
    if (s[32]) return false;
    *out = (ing_hash128){half[1], half[0]};
    return true;
}
