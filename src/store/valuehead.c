/* The head of a value's payload: codec and label, with a checksum of their own, so that a
 * listing reads the first bytes of each entry and believes them. Called by
 * src/py/value/filecache.c. Works on memory alone and must never read outside of it.
 *
 *   0  4  "INGV"     4  1  version     5  1  codec     6  1  kind of label    7  1  zero
 *   8  4  n          12  n  label      12+n  8  low half of XXH3-128 of all before and the key */
#include "store/store_int.h"

enum { FIXED = 12, SUM = 8 };

static uint64_t sum_of(const uint8_t *p, size_t n, ing_hash128 key) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_raw(&h, p, n);
    ing_hasher_digest(&h, 'K', key);
    return ing_hasher_done(&h).lo;
}

size_t ing_value_head_write(uint8_t out[ING_VALUE_HEAD], ing_hash128 key,
                            const ing_value_head *head) {
    uint32_t n =
        head->label_size < ING_VALUE_LABEL ? head->label_size : ING_VALUE_LABEL;
    memset(out, 0, FIXED);
    memcpy(out, "INGV", 4);
    out[4] = head->version;
    out[5] = head->codec;
    out[6] = head->label_kind;
    for (int i = 0; i < 4; i++) out[8 + i] = (uint8_t)(n >> 8 * i);
    if (n) memcpy(out + FIXED, head->label, n);
    ing_store_put64(out + FIXED + n, sum_of(out, FIXED + n, key));
    return FIXED + n + SUM;
}

bool ing_value_head_read(const uint8_t *p, size_t n, ing_hash128 key,
                         ing_value_head *out) {
    uint32_t label = 0;
    if (n < FIXED + SUM || memcmp(p, "INGV", 4) != 0 || p[7] != 0) return false;
    for (int i = 0; i < 4; i++) label |= (uint32_t)p[8 + i] << 8 * i;
    if (label > ING_VALUE_LABEL || n < (size_t)FIXED + label + SUM) return false;
    if (ing_store_get64(p + FIXED + label) != sum_of(p, FIXED + label, key))
        return false;
    *out = (ing_value_head){.version = p[4],
                            .codec = p[5],
                            .label_kind = p[6],
                            .label = p + FIXED,
                            .label_size = label,
                            .size = (size_t)FIXED + label + SUM};
    return true;
}
