/* Runs of items for fingerprint_memory.c and fingerprint_turn.c: items at a stride put side
 * by side, short rows copied, and a few runs woven into one. Nothing but loads, shuffles and
 * stores: no CPython, no allocation, and no byte is read that is not between two items.
 *
 * With AVX2 items of 1, 2 and 4 bytes at a small stride go through byte shuffles: what is
 * stored at once comes from as many registers as the stride is items long. */
#include "py/value/fingerprint_turn.h"

#include "base/base.h"

#include <string.h>

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

enum {
    WIDTH = 16,  /* bytes that a shuffle moves among */
    FEWEST = 96, /* items that are worth making masks for: 60 ns */
    WEAVE = 8,   /* runs that are woven: more are turned */
};

typedef struct masks {
    uint8_t at[WIDTH][2 * WIDTH]; /* both halves are the same */
} masks;

AVX2 static inline __m256i load_two(const uint8_t *p, const uint8_t *q) {
    __m128i low = _mm_loadu_si128((const __m128i *)p);
    __m128i high = _mm_loadu_si128((const __m128i *)q);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

AVX2 static inline __m256i shuffle(__m256i v, const uint8_t *mask) {
    return _mm256_shuffle_epi8(v, _mm256_loadu_si256((const __m256i *)mask));
}

/* Byte k of what is stored is byte `from` of the registers one after the other. */
static void set_mask(uint8_t (*m)[2 * WIDTH], size_t from, size_t k) {
    m[from / WIDTH][k] = m[from / WIDTH][WIDTH + k] = (uint8_t)(from % WIDTH);
}

/* Inlined for each number of steps and runs, so that the masks stay in registers. */
#define INLINE __attribute__((always_inline)) static inline

/* Items that are `step` items apart, forwards or backwards, 32 bytes at a time. What is
 * behind the last one may be nobody's: one item is left. */
AVX2 INLINE size_t pick_some(const masks *m, size_t each, uint8_t *to,
                             const uint8_t *from, size_t step, ptrdiff_t next,
                             size_t n) {
    size_t i = 0;
    for (; i + 2 * each < n; i += 2 * each, from += 2 * next, to += 2 * WIDTH) {
        __m256i all = shuffle(load_two(from, from + next), m->at[0]);
#pragma GCC unroll 4
        for (size_t c = 1; c < step; c++) {
            const uint8_t *p = from + c * WIDTH;
            all = _mm256_or_si256(all, shuffle(load_two(p, p + next), m->at[c]));
        }
        _mm256_storeu_si256((__m256i *)to, all);
    }
    return i;
}

AVX2 static size_t pick(size_t size, uint8_t *to, const uint8_t *from, size_t step,
                        bool back, size_t n) {
    masks m;
    size_t each = WIDTH / size, group = step * WIDTH;
    memset(m.at, 0x80, step * sizeof m.at[0]);
    for (size_t k = 0; k < WIDTH; k++) {
        size_t at = k / size * step * size;
        set_mask(m.at, (back ? group - size - at : at) + k % size, k);
    }
    ptrdiff_t next = back ? -(ptrdiff_t)group : (ptrdiff_t)group;
    if (back) from -= group - size;
    switch (step) {
    case 1: return pick_some(&m, each, to, from, 1, next, n);
    case 2: return pick_some(&m, each, to, from, 2, next, n);
    case 3: return pick_some(&m, each, to, from, 3, next, n);
    case 4: return pick_some(&m, each, to, from, 4, next, n);
    default: return pick_some(&m, each, to, from, step, next, n);
    }
}

static size_t gather_some(size_t size, uint8_t *to, const uint8_t *from,
                          ptrdiff_t stride, size_t n) {
    if ((size != 1 && size != 2 && size != 4) || n < FEWEST) return 0;
    size_t far = stride < 0 ? 0 - (size_t)stride : (size_t)stride, step = far / size;
    if (far % size || step == 0 || step > WIDTH / size) return 0;
    if (ing_cpu_rung() < 2) return 0;
    return pick(size, to, from, step, stride < 0, n);
}

AVX2 INLINE size_t weave_some(const masks *m, size_t each, size_t n, uint8_t *to,
                              const uint8_t *from, ptrdiff_t apart, size_t items) {
    size_t i = 0;
    for (; i + each <= items; i += each, from += 2 * WIDTH, to += 2 * WIDTH * n)
#pragma GCC unroll 4
        for (size_t k = 0; k < n; k++) {
            __m256i all = _mm256_setzero_si256();
#pragma GCC unroll 4
            for (size_t r = 0; r < n; r++) {
                const uint8_t *p = from + (ptrdiff_t)r * apart;
                __m256i x = _mm256_loadu_si256((const __m256i *)p);
                all = _mm256_or_si256(all, shuffle(x, m[k].at[r]));
            }
            uint8_t *out = to + k * WIDTH;
            _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(all));
            _mm_storeu_si128((__m128i *)(out + WIDTH * n),
                             _mm256_extracti128_si256(all, 1));
        }
    return i;
}

/* 32 bytes of each run at a time: run r's item i becomes item i * n + r. */
AVX2 static size_t weave(size_t size, size_t n, uint8_t *to, const uint8_t *from,
                         ptrdiff_t apart, size_t items) {
    masks m[WEAVE];
    size_t each = 2 * WIDTH / size;
    for (size_t k = 0; k < n; k++) memset(m[k].at, 0x80, n * sizeof m[k].at[0]);
    for (size_t b = 0; b < n * WIDTH; b++) {
        size_t item = b / size;
        uint8_t *at = m[b / WIDTH].at[item % n];
        at[b % WIDTH] = at[WIDTH + b % WIDTH] = (uint8_t)(item / n * size + b % size);
    }
    switch (n) {
    case 2: return weave_some(m, each, 2, to, from, apart, items);
    case 3: return weave_some(m, each, 3, to, from, apart, items);
    case 4: return weave_some(m, each, 4, to, from, apart, items);
    default: return weave_some(m, each, n, to, from, apart, items);
    }
}

bool ing_fp_weave(size_t size, const ing_fp_axis *a, const ing_fp_axis *b, uint8_t *to,
                  const uint8_t *from) {
    size_t n = b->n;
    if ((size != 1 && size != 2 && size != 4) || n > WEAVE || a->n < FEWEST ||
        a->from != (ptrdiff_t)size || a->to != (ptrdiff_t)(n * size) ||
        ing_cpu_rung() < 2)
        return false;
    size_t i = weave(size, n, to, from, b->from, a->n);
    for (; i < a->n; i++)
        for (size_t r = 0; r < n; r++)
            memcpy(to + (i * n + r) * size,
                   from + (ptrdiff_t)r * b->from + (ptrdiff_t)(i * size), size);
    return true;
}

static inline void copy_padded(uint8_t *to, const uint8_t *from) {
    __m128i x = _mm_loadu_si128((const __m128i *)from);
    _mm_storeu_si128((__m128i *)to, _mm_and_si128(x, _mm_set_epi32(0, 0xffff, -1, -1)));
}
#else
static size_t gather_some(size_t size, uint8_t *to, const uint8_t *from,
                          ptrdiff_t stride, size_t n) {
    (void)size, (void)to, (void)from, (void)stride, (void)n;
    return 0;
}

bool ing_fp_weave(size_t size, const ing_fp_axis *a, const ing_fp_axis *b, uint8_t *to,
                  const uint8_t *from) {
    (void)size, (void)a, (void)b, (void)to, (void)from;
    return false;
}

static inline void copy_padded(uint8_t *to, const uint8_t *from) {
    memcpy(to, from, 10);
    memset(to + 10, 0, 6);
}
#endif

void ing_fp_gather(ing_fp_item item, uint8_t *to, const uint8_t *from, ptrdiff_t stride,
                   size_t n) {
    size_t size = item.size;
    if (item.pad || (size & (size - 1)) || size > 16) {
        ing_fp_rows(item, &(ing_fp_axis){n, stride, (ptrdiff_t)size}, to, from);
        return;
    }
    size_t i = gather_some(size, to, from, stride, n);
    to += i * size;
    from += (ptrdiff_t)i * stride;
    switch (size) {
    case 1: GATHER(uint8_t, 8) break;
    case 2: GATHER(uint16_t, 4) break;
    case 4: GATHER(uint32_t, 2) break;
    case 8:
        for (; i < n; i++, to += 8, from += stride) memcpy(to, from, 8);
        break;
    default:
        for (; i < n; i++, to += 16, from += stride) memcpy(to, from, 16);
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Rows of `part` to 2 * part bytes: the first ones and the last ones, which may overlap. */
#define ROWS(part)                                                       \
    for (size_t i = 0; i < n; i++, to += rows->to, from += rows->from) { \
        memcpy(to, from, (part));                                        \
        memcpy(to + bytes - (part), from + bytes - (part), (part));      \
    }

/* The same for more: `part` bytes at a time. */
#define LONG_ROWS(part)                                                  \
    for (size_t i = 0; i < n; i++, to += rows->to, from += rows->from) { \
        for (size_t k = 0; k + (part) < bytes; k += (part))              \
            memcpy(to + k, from + k, (part));                            \
        memcpy(to + bytes - (part), from + bytes - (part), (part));      \
    }

/* Long doubles, one (size 16) or two in a row. */
static void rows_padded(size_t size, const ing_fp_axis *rows, uint8_t *to,
                        const uint8_t *from) {
    for (size_t i = 0; i < rows->n; i++, to += rows->to, from += rows->from)
        for (size_t k = 0; k < size; k += 16) copy_padded(to + k, from + k);
}

void ing_fp_rows(ing_fp_item item, const ing_fp_axis *rows, uint8_t *to,
                 const uint8_t *from) {
    size_t n = rows->n, bytes = item.size;
    if (item.pad)
        rows_padded(bytes, rows, to, from);
    else if (bytes > 128)
        for (size_t i = 0; i < n; i++, to += rows->to, from += rows->from)
            memcpy(to, from, bytes);
    else if (bytes > 32)
        LONG_ROWS(16)
    else if (bytes >= 16)
        ROWS(16)
    else if (bytes >= 8)
        ROWS(8)
    else if (bytes >= 4)
        ROWS(4)
    else if (bytes >= 2)
        ROWS(2)
    else
        ROWS(1)
}
