/* Reading little-endian bytes with every step checked: for entries of the store. Called by
 * whoever reads foreign bytes; reads nothing behind their end, and a failure stays. */
#include "base/base.h"

#include <string.h>

const uint8_t *ing_reader_take(ing_reader *r, size_t n) {
    if (r->failed || (size_t)(r->end - r->at) < n) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *p = r->at;
    r->at += n;
    return p;
}

uint8_t ing_reader_u8(ing_reader *r) {
    const uint8_t *p = ing_reader_take(r, 1);
    return p ? *p : 0;
}

uint32_t ing_reader_u32(ing_reader *r) {
    const uint8_t *p = ing_reader_take(r, 4);
    return p ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                   (uint32_t)p[3] << 24
             : 0;
}

uint64_t ing_reader_u64(ing_reader *r) {
    uint64_t lo = ing_reader_u32(r);
    return lo | (uint64_t)ing_reader_u32(r) << 32;
}

uint32_t ing_reader_count(ing_reader *r, size_t size) {
    uint32_t n = ing_reader_u32(r);
    if ((uint64_t)n * size > (uint64_t)(r->end - r->at)) r->failed = true;
    return r->failed ? 0 : n;
}
