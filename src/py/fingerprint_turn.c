/* Items that change places, for fingerprint_memory.c: runs of items at a stride put side by
 * side, and two axes turned, where the source is contiguous along one and the copy along
 * the other. Nothing but loads, shuffles and stores: no CPython, no allocation, and no byte
 * is read that is not an item's.
 *
 * 1,000 x 1,000 items of four bytes in Fortran's order: 0.10 ms in blocks of 8 by 8 (AVX2),
 * 0.12 by 4 by 4, 0.45 one by one; a copy takes 0.08 (AMD EPYC, gcc 12). */
#include "py/fingerprint_turn.h"

#include <string.h>

/* ---- runs ----------------------------------------------------------------------------------- */

/* `each` items are put together in a register before they are stored. */
#define GATHER(type, each)                                            \
    for (; i + (each) <= n; i += (each), to += 8) {                   \
        uint64_t all = 0;                                             \
        _Pragma("GCC unroll 8") for (size_t j = 0; j < (each); j++) { \
            type x;                                                   \
            memcpy(&x, from, sizeof x);                               \
            all |= (uint64_t)x << (64 / (each) * j);                  \
            from += stride;                                           \
        }                                                             \
        memcpy(to, &all, 8);                                          \
    }                                                                 \
    for (; i < n; i++, to += sizeof(type), from += stride)            \
        memcpy(to, from, sizeof(type));

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

static inline __m128i load(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

static inline void store(uint8_t *p, __m128i v) {
    _mm_storeu_si128((__m128i *)p, v);
}

/* Every second item of four bytes. The last is left: its neighbour may be nobody's. */
static size_t every_second(uint8_t *to, const uint8_t *from, size_t n) {
    size_t i = 0;
    for (; i + 5 <= n; i += 4, to += 16, from += 32) {
        __m128 a = _mm_castsi128_ps(load(from)), b = _mm_castsi128_ps(load(from + 16));
        store(to, _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)));
    }
    return i;
}

static size_t backwards(uint8_t *to, const uint8_t *from, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4, to += 16, from -= 16)
        store(to, _mm_shuffle_epi32(load(from - 12), 0x1B));
    return i;
}

static size_t some4(uint8_t *to, const uint8_t *from, ptrdiff_t stride, size_t n) {
    return stride == 8    ? every_second(to, from, n)
           : stride == -4 ? backwards(to, from, n)
                          : 0;
}

void ing_fp_gather_padded(uint8_t *to, const uint8_t *from, ptrdiff_t stride,
                          size_t n) {
    __m128i value = _mm_set_epi32(0, 0xffff, -1, -1);
    for (size_t i = 0; i < n; i++, to += 16, from += stride)
        store(to, _mm_and_si128(load(from), value));
}
#else
static size_t some4(uint8_t *to, const uint8_t *from, ptrdiff_t stride, size_t n) {
    (void)to, (void)from, (void)stride, (void)n;
    return 0;
}

void ing_fp_gather_padded(uint8_t *to, const uint8_t *from, ptrdiff_t stride,
                          size_t n) {
    for (size_t i = 0; i < n; i++, to += 16, from += stride) {
        memcpy(to, from, 10);
        memset(to + 10, 0, 6);
    }
}
#endif

void ing_fp_gather(size_t item, uint8_t *to, const uint8_t *from, ptrdiff_t stride,
                   size_t n) {
    size_t i = item == 4 ? some4(to, from, stride, n) : 0;
    to += i * item;
    from += (ptrdiff_t)i * stride;
    switch (item) {
    case 1: GATHER(uint8_t, 8) break;
    case 2: GATHER(uint16_t, 4) break;
    case 4: GATHER(uint32_t, 2) break;
    case 8:
        for (; i < n; i++, to += 8, from += stride) memcpy(to, from, 8);
        break;
    case 16:
        for (; i < n; i++, to += 16, from += stride) memcpy(to, from, 16);
        break;
    default:
        for (; i < n; i++, to += item, from += stride) memcpy(to, from, item);
    }
}

/* ---- two axes at once: row j of the source becomes column j ------------------------------- */

#if defined(__x86_64__)
static inline void store_half(uint8_t *p, __m128i v) {
    int64_t x = _mm_cvtsi128_si64(v);
    memcpy(p, &x, 8);
}

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

AVX2 static inline __m256i load_two(const uint8_t *p, const uint8_t *q) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load(p)), load(q), 1);
}

AVX2 static inline void store_wide(uint8_t *p, __m256i v) {
    _mm256_storeu_si256((__m256i *)p, v);
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

/* All blocks: as many items of `a` at a time as are worth a look at a page. The last ones along an
 * axis are put back to end with it: they do again what others did. */
#define BLOCKS(block, side)                                                            \
    for (size_t i0 = 0; i0 < a->n; i0 += ING_FP_TURN_RUN)                              \
        for (size_t j1 = 0; j1 < b->n; j1 += (side)) {                                 \
            size_t j = j1 + (side) <= b->n ? j1 : b->n - (side);                       \
            size_t end = a->n < i0 + ING_FP_TURN_RUN ? a->n : i0 + ING_FP_TURN_RUN;    \
            for (size_t i1 = i0; i1 < end; i1 += (side)) {                             \
                size_t i = i1 + (side) <= a->n ? i1 : a->n - (side);                   \
                block(to + (ptrdiff_t)i * a->to + (ptrdiff_t)(j * item), a->to,        \
                      from + (ptrdiff_t)j * b->from + (ptrdiff_t)(i * item), b->from); \
            }                                                                          \
        }

AVX2 static void turn_wide(size_t item, const ing_fp_axis *a, const ing_fp_axis *b,
                           uint8_t *to, const uint8_t *from) {
    if (item == 4)
        BLOCKS(turn4_wide, 8)
    else
        BLOCKS(turn8_wide, 4)
}

static void turn_narrow(size_t item, const ing_fp_axis *a, const ing_fp_axis *b,
                        uint8_t *to, const uint8_t *from) {
    switch (item) {
    case 1: BLOCKS(turn1, 8) break;
    case 2: BLOCKS(turn2, 8) break;
    case 4: BLOCKS(turn4, 4) break;
    default: BLOCKS(turn8, 2)
    }
}

bool ing_fp_can_turn(size_t item, const ing_fp_axis *a, const ing_fp_axis *b) {
    if (item != 1 && item != 2 && item != 4 && item != 8) return false;
    ptrdiff_t size = (ptrdiff_t)item;
    size_t side = item <= 2 ? 8 : 32 / item; /* of the widest block */
    return a->from == size && b->to == size && a->n >= side && b->n >= side;
}

void ing_fp_turn(size_t item, const ing_fp_axis *a, const ing_fp_axis *b, uint8_t *to,
                 const uint8_t *from) {
    if (item >= 4 && __builtin_cpu_supports("avx2"))
        turn_wide(item, a, b, to, from);
    else
        turn_narrow(item, a, b, to, from);
}
#else
bool ing_fp_can_turn(size_t item, const ing_fp_axis *a, const ing_fp_axis *b) {
    (void)item, (void)a, (void)b;
    return false;
}

void ing_fp_turn(size_t item, const ing_fp_axis *a, const ing_fp_axis *b, uint8_t *to,
                 const uint8_t *from) {
    (void)item, (void)a, (void)b, (void)to, (void)from;
}
#endif
