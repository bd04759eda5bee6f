/* Two axes turned, for fingerprint_memory.c: the source lies side by side along one, the copy
 * along the other. Blocks of items are turned in registers, AVX2's where the CPU has them.
 * Nothing but loads, shuffles and stores: no CPython, no allocation, and no byte is read that
 * is not between two items.
 *
 * GB/s from the second and third level of the cache into a slab, where memcpy has 50: items
 * of 1, 2, 4, 8, 16 bytes 28, 36, 42, 46, 50; one by one 2 to 9 (AMD EPYC, gcc 12). */
#include "py/value/fingerprint_turn.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum {
    STRIP = 16 << 10, /* bytes of the source at a time, where an axis is short */
    STAGE = 32,       /* source rows that are put side by side first */
};

typedef struct turn {
    const ing_fp_axis *a, *b;
    uint8_t *to;
    const uint8_t *from;
} turn;

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

static inline __m128i load(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

static inline void store(uint8_t *p, __m128i v) {
    _mm_storeu_si128((__m128i *)p, v);
}

static inline void store_half(uint8_t *p, __m128i v) {
    int64_t x = _mm_cvtsi128_si64(v);
    memcpy(p, &x, 8);
}

AVX2 static inline __m256i load_two(const uint8_t *p, const uint8_t *q) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load(p)), load(q), 1);
}

AVX2 static inline __m256i load_wide(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

AVX2 static inline void store_wide(uint8_t *p, __m256i v) {
    _mm256_storeu_si256((__m256i *)p, v);
}

/* ---- blocks: row j of the source becomes column j -------------------------------------------- */

static inline void turn1(uint8_t *to, ptrdiff_t ts, const uint8_t *from, ptrdiff_t fs) {
    __m128i a[4], b[4];
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++)
        a[i] = _mm_unpacklo_epi8(
            _mm_loadl_epi64((const __m128i *)(from + 2 * i * fs)),
            _mm_loadl_epi64((const __m128i *)(from + (2 * i + 1) * fs)));
    b[0] = _mm_unpacklo_epi16(a[0], a[1]);
    b[1] = _mm_unpackhi_epi16(a[0], a[1]);
    b[2] = _mm_unpacklo_epi16(a[2], a[3]);
    b[3] = _mm_unpackhi_epi16(a[2], a[3]);
#pragma GCC unroll 8
    for (int i = 0; i < 2; i++) {
        __m128i low = _mm_unpacklo_epi32(b[i], b[i + 2]);
        __m128i high = _mm_unpackhi_epi32(b[i], b[i + 2]);
        uint8_t *at = to + 4 * i * ts;
        store_half(at, low);
        store_half(at + ts, _mm_unpackhi_epi64(low, low));
        store_half(at + 2 * ts, high);
        store_half(at + 3 * ts, _mm_unpackhi_epi64(high, high));
    }
}

static inline void turn2(uint8_t *to, ptrdiff_t ts, const uint8_t *from, ptrdiff_t fs) {
    __m128i a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        __m128i x = load(from + 2 * i * fs), y = load(from + (2 * i + 1) * fs);
        a[i] = _mm_unpacklo_epi16(x, y);
        a[i + 4] = _mm_unpackhi_epi16(x, y);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm_unpackhi_epi32(a[i], a[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 2; i++) {
        const __m128i *c = b + 4 * i;
        uint8_t *at = to + 4 * i * ts;
        store(at, _mm_unpacklo_epi64(c[0], c[2]));
        store(at + ts, _mm_unpackhi_epi64(c[0], c[2]));
        store(at + 2 * ts, _mm_unpacklo_epi64(c[1], c[3]));
        store(at + 3 * ts, _mm_unpackhi_epi64(c[1], c[3]));
    }
}

static inline void turn4(uint8_t *to, ptrdiff_t ts, const uint8_t *from, ptrdiff_t fs) {
    __m128i a = load(from), b = load(from + fs);
    __m128i c = load(from + 2 * fs), d = load(from + 3 * fs);
    __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d);
    store(to, _mm_unpacklo_epi64(ab, cd));
    store(to + ts, _mm_unpackhi_epi64(ab, cd));
    ab = _mm_unpackhi_epi32(a, b);
    cd = _mm_unpackhi_epi32(c, d);
    store(to + 2 * ts, _mm_unpacklo_epi64(ab, cd));
    store(to + 3 * ts, _mm_unpackhi_epi64(ab, cd));
}

static inline void turn8(uint8_t *to, ptrdiff_t ts, const uint8_t *from, ptrdiff_t fs) {
    __m128i a = load(from), b = load(from + fs);
    store(to, _mm_unpacklo_epi64(a, b));
    store(to + ts, _mm_unpackhi_epi64(a, b));
}

static inline void turn16(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                          ptrdiff_t fs) {
    (void)ts, (void)fs;
    store(to, load(from));
}

static inline void turn_padded(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                               ptrdiff_t fs) {
    (void)ts, (void)fs;
    store(to, _mm_and_si128(load(from), _mm_set_epi32(0, 0xffff, -1, -1)));
}

/* Two long doubles. */
static inline void turn_pair(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                             ptrdiff_t fs) {
    turn_padded(to, ts, from, fs);
    turn_padded(to + 16, ts, from + 16, fs);
}

/* Half of a block of 16 rows: two columns in each register. */
AVX2 static inline void store_columns(uint8_t *to, ptrdiff_t ts, __m256i v) {
    v = _mm256_permute4x64_epi64(v, 0xD8);
    store(to, _mm256_castsi256_si128(v));
    store(to + ts, _mm256_extracti128_si256(v, 1));
}

/* 16 by 16. */
AVX2 static inline void turn1_square(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                     ptrdiff_t fs) {
    __m256i a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        const uint8_t *p = from + 2 * i * fs;
        __m256i x = load_two(p, p + 8 * fs), y = load_two(p + fs, p + 9 * fs);
        a[i] = _mm256_unpacklo_epi8(x, y);
        a[i + 4] = _mm256_unpackhi_epi8(x, y);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_epi16(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        const __m256i *c = b + (i & 2) * 2 + (i & 1);
        store_columns(to + 4 * i * ts, ts, _mm256_unpacklo_epi32(c[0], c[2]));
        store_columns(to + (4 * i + 2) * ts, ts, _mm256_unpackhi_epi32(c[0], c[2]));
    }
}

/* 16 columns of 32 rows. */
AVX2 static inline void turn1_wide(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                   ptrdiff_t fs) {
    __m256i a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 8; i++) {
        const uint8_t *p = from + 2 * i * fs;
        __m256i x = load_two(p, p + 16 * fs), y = load_two(p + fs, p + 17 * fs);
        a[i] = _mm256_unpacklo_epi8(x, y);
        a[i + 8] = _mm256_unpackhi_epi8(x, y);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm256_unpacklo_epi16(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; i++) {
        const __m256i *c = b + (i & 2) * 4 + (i & 1);
        uint8_t *at = to + 4 * i * ts;
        __m256i x = _mm256_unpacklo_epi32(c[0], c[2]);
        __m256i y = _mm256_unpacklo_epi32(c[4], c[6]);
        store_wide(at, _mm256_unpacklo_epi64(x, y));
        store_wide(at + ts, _mm256_unpackhi_epi64(x, y));
        x = _mm256_unpackhi_epi32(c[0], c[2]);
        y = _mm256_unpackhi_epi32(c[4], c[6]);
        store_wide(at + 2 * ts, _mm256_unpacklo_epi64(x, y));
        store_wide(at + 3 * ts, _mm256_unpackhi_epi64(x, y));
    }
}

/* 8 columns of 16 rows. */
AVX2 static inline void turn2_wide(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                   ptrdiff_t fs) {
    __m256i a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        const uint8_t *p = from + 2 * i * fs;
        __m256i x = load_two(p, p + 8 * fs), y = load_two(p + fs, p + 9 * fs);
        a[i] = _mm256_unpacklo_epi16(x, y);
        a[i + 4] = _mm256_unpackhi_epi16(x, y);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_epi32(a[i], a[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 2; i++) {
        const __m256i *c = b + 4 * i;
        uint8_t *at = to + 4 * i * ts;
        store_wide(at, _mm256_unpacklo_epi64(c[0], c[2]));
        store_wide(at + ts, _mm256_unpackhi_epi64(c[0], c[2]));
        store_wide(at + 2 * ts, _mm256_unpacklo_epi64(c[1], c[3]));
        store_wide(at + 3 * ts, _mm256_unpackhi_epi64(c[1], c[3]));
    }
}

AVX2 static inline void turn4_wide(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                   ptrdiff_t fs) {
#pragma GCC unroll 8
    for (int half = 0; half < 2; half++, from += 16, to += 4 * ts) {
        __m256i a = load_two(from, from + 4 * fs);
        __m256i b = load_two(from + fs, from + 5 * fs);
        __m256i c = load_two(from + 2 * fs, from + 6 * fs);
        __m256i d = load_two(from + 3 * fs, from + 7 * fs);
        __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
        store_wide(to, _mm256_unpacklo_epi64(ab, cd));
        store_wide(to + ts, _mm256_unpackhi_epi64(ab, cd));
        ab = _mm256_unpackhi_epi32(a, b);
        cd = _mm256_unpackhi_epi32(c, d);
        store_wide(to + 2 * ts, _mm256_unpacklo_epi64(ab, cd));
        store_wide(to + 3 * ts, _mm256_unpackhi_epi64(ab, cd));
    }
}

AVX2 static inline void turn8_wide(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                   ptrdiff_t fs) {
#pragma GCC unroll 8
    for (int half = 0; half < 2; half++, from += 16, to += 2 * ts) {
        __m256i a = load_two(from, from + 2 * fs);
        __m256i b = load_two(from + fs, from + 3 * fs);
        store_wide(to, _mm256_unpacklo_epi64(a, b));
        store_wide(to + ts, _mm256_unpackhi_epi64(a, b));
    }
}

/* Four points of three numbers: four first ones, from three registers, are in four places. */
AVX2 static inline void turn8_points(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                     ptrdiff_t fs) {
    (void)fs;
    __m256i a = load_wide(from), b = load_wide(from + 32), c = load_wide(from + 64);
    __m256i x = _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x30), c, 0x0C);
    __m256i y = _mm256_blend_epi32(_mm256_blend_epi32(b, a, 0x0C), c, 0x30);
    __m256i z = _mm256_blend_epi32(_mm256_blend_epi32(c, b, 0x0C), a, 0x30);
    store_wide(to, _mm256_permute4x64_epi64(x, 0x6C));
    store_wide(to + ts, _mm256_permute4x64_epi64(y, 0xB1));
    store_wide(to + 2 * ts, _mm256_permute4x64_epi64(z, 0xC6));
}

AVX2 static inline void turn16_wide(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                    ptrdiff_t fs) {
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++, from += 16, to += ts) {
        store_wide(to, load_two(from, from + fs));
        store_wide(to + 32, load_two(from + 2 * fs, from + 3 * fs));
    }
}

AVX2 static inline void turn_padded_wide(uint8_t *to, ptrdiff_t ts, const uint8_t *from,
                                         ptrdiff_t fs) {
    __m256i value = _mm256_set_epi32(0, 0xffff, -1, -1, 0, 0xffff, -1, -1);
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++, from += 16, to += ts) {
        store_wide(to, _mm256_and_si256(load_two(from, from + fs), value));
        store_wide(to + 32,
                   _mm256_and_si256(load_two(from + 2 * fs, from + 3 * fs), value));
    }
}

/* ---- all blocks ------------------------------------------------------------------------------ */

/* A column of blocks. The last ones along an axis are put back to end with it: they do again
 * what others did. */
#define COLUMN(block, high, size, j)                                                 \
    do {                                                                             \
        const uint8_t *p = from + (ptrdiff_t)(j) * fs;                               \
        uint8_t *q = to + (ptrdiff_t)((j) * (size));                                 \
        size_t i = 0;                                                                \
        for (; i + (high) <= n; i += (high), p += (high) * (size), q += (high) * ts) \
            block(q, ts, p, fs);                                                     \
        if (i < n) {                                                                 \
            ptrdiff_t put = (ptrdiff_t)((high) - (n - i));                           \
            block(q - put * ts, ts, p - put * (ptrdiff_t)(size), fs);                \
        }                                                                            \
    } while (0)

#define BLOCKS(block, high, wide, size)                                              \
    do {                                                                             \
        enum { RUN = ING_FP_TURN_ITEMS(size) };                                      \
        ptrdiff_t ts = t->a->to, fs = t->b->from;                                    \
        for (size_t i0 = 0; i0 < t->a->n;) {                                         \
            size_t left = t->a->n - i0, n = left < 2 * RUN ? left : RUN, j = 0;      \
            uint8_t *to = t->to + (ptrdiff_t)i0 * ts;                                \
            const uint8_t *from = t->from + (ptrdiff_t)(i0 * (size));                \
            for (; j + (wide) <= t->b->n; j += (wide)) COLUMN(block, high, size, j); \
            if (j < t->b->n) COLUMN(block, high, size, t->b->n - (wide));            \
            i0 += n;                                                                 \
        }                                                                            \
    } while (0)

static bool fits(const turn *t, size_t high, size_t wide) {
    return t->a->n >= high && t->b->n >= wide;
}

/* Rows at such a stride share few sets of the cache: fewer of them at a time. */
static bool crowded(const turn *t) {
    return t->b->from % 2048 == 0;
}

AVX2 static bool turn_bytes(const turn *t) {
    if (fits(t, 16, 32) && !crowded(t))
        BLOCKS(turn1_wide, 16, 32, 1);
    else if (fits(t, 16, 16))
        BLOCKS(turn1_square, 16, 16, 1);
    else
        return false;
    return true;
}

AVX2 static bool turn_wide(ing_fp_item item, const turn *t) {
    if (item.size == 1) return turn_bytes(t);
    if (item.size == 2 && fits(t, 8, 16) && !crowded(t))
        BLOCKS(turn2_wide, 8, 16, 2);
    else if (item.size == 4 && fits(t, 8, 8))
        BLOCKS(turn4_wide, 8, 8, 4);
    else if (item.size == 8 && fits(t, 4, 4))
        BLOCKS(turn8_wide, 4, 4, 8);
    else if (item.size == 8 && t->a->n == 3 && t->b->from == 24 && t->b->n >= 4)
        BLOCKS(turn8_points, 3, 4, 8);
    else if (item.size == 16 && !item.pad && fits(t, 4, 4))
        BLOCKS(turn16_wide, 4, 4, 16);
    else if (item.size == 16 && item.pad && fits(t, 4, 4))
        BLOCKS(turn_padded_wide, 4, 4, 16);
    else
        return false;
    return true;
}

static bool turn_narrow(ing_fp_item item, const turn *t) {
    if (item.size == 1 && fits(t, 8, 8))
        BLOCKS(turn1, 8, 8, 1);
    else if (item.size == 2 && fits(t, 8, 8))
        BLOCKS(turn2, 8, 8, 2);
    else if (item.size == 4 && fits(t, 4, 4))
        BLOCKS(turn4, 4, 4, 4);
    else if (item.size == 8 && fits(t, 2, 2))
        BLOCKS(turn8, 2, 2, 8);
    else if (item.size == 16 && !item.pad)
        BLOCKS(turn16, 1, 1, 16);
    else if (item.size == 16)
        BLOCKS(turn_padded, 1, 1, 16);
    else if (item.size == 32 && item.pad)
        BLOCKS(turn_pair, 1, 1, 32);
    else
        return false;
    return true;
}

static bool turn_blocks(ing_fp_item item, const turn *t) {
    return (ing_cpu_rung() >= 2 && turn_wide(item, t)) || turn_narrow(item, t);
}
#else
static bool turn_blocks(ing_fp_item item, const turn *t) {
    (void)item, (void)t;
    return false;
}
#endif

/* ---- what no block fits --------------------------------------------------------------------- */

/* One axis is short: run by run along the other, in strips that stay in the cache. */
static void turn_short(ing_fp_item item, const turn *t) {
    const ing_fp_axis *a = t->a, *b = t->b;
    bool few = a->n <= b->n;
    const ing_fp_axis *along = few ? b : a, *other = few ? a : b;
    size_t far = (size_t)labs(along->from), strip = STRIP / (far < 64 ? far + 1 : 64);
    for (size_t at = 0; at < along->n; at += strip) {
        size_t n = along->n - at < strip ? along->n - at : strip;
        for (size_t k = 0; k < other->n; k++) {
            uint8_t *to = t->to + (ptrdiff_t)at * along->to + (ptrdiff_t)k * other->to;
            const uint8_t *from =
                t->from + (ptrdiff_t)at * along->from + (ptrdiff_t)k * other->from;
            if (few)
                ing_fp_gather(item, to, from, along->from, n);
            else
                ing_fp_rows(item, &(ing_fp_axis){n, along->from, along->to}, to, from);
        }
    }
}

/* The source has gaps along its own axis too: STAGE rows are put side by side first. */
static void turn_staged(ing_fp_item item, const turn *t) {
    uint8_t stage[STAGE * (ING_FP_TURN_BYTES + 64)];
    const ing_fp_axis *a = t->a, *b = t->b;
    size_t run = ING_FP_TURN_BYTES / item.size;
    for (size_t i = 0; i < a->n; i += run)
        for (size_t j = 0; j < b->n; j += STAGE) {
            ing_fp_axis x = {a->n - i < run ? a->n - i : run, (ptrdiff_t)item.size,
                             a->to};
            ing_fp_axis y = {b->n - j < STAGE ? b->n - j : STAGE,
                             ING_FP_TURN_BYTES + 64, b->to};
            const uint8_t *from = t->from + (ptrdiff_t)i * a->from;
            for (size_t k = 0; k < y.n; k++)
                ing_fp_gather(item, stage + (ptrdiff_t)k * y.from,
                              from + (ptrdiff_t)(j + k) * b->from, a->from, x.n);
            turn part = {&x, &y, t->to + (ptrdiff_t)i * a->to + (ptrdiff_t)j * b->to,
                         stage};
            if (!turn_blocks(item, &part)) turn_short(item, &part);
        }
}

void ing_fp_turn(ing_fp_item item, const ing_fp_axis *a, const ing_fp_axis *b,
                 uint8_t *to, const uint8_t *from) {
    turn t = {a, b, to, from};
    bool dense = a->from == (ptrdiff_t)item.size;
    if (!dense && item.size <= 8 && a->n >= 8 && b->n >= 8)
        turn_staged(item, &t);
    else if (!dense ||
             (!turn_blocks(item, &t) && !ing_fp_weave(item.size, a, b, to, from)))
        turn_short(item, &t);
}
