/* The trailer of an entry: written and checked here and nowhere else; its bytes are laid
 * out in store.h. Called by get and put. Works on memory alone, and must never read
 * outside the size it was given, whatever the bytes say. */
#include "store/store_int.h"

#include <string.h>

enum { SUMMED = 40, CHECKSUM = 40, ZERO = 56 };

static void put32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static void put64(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static void put128(uint8_t *p, ing_hash128 v) {
    put64(p, v.lo);
    put64(p + 8, v.hi);
}

/* The part before the checksum follows from kind, key and length. */
static void put_head(uint8_t *p, ing_entry_kind kind, ing_hash128 key, size_t n) {
    memcpy(p, "INGOTENT", 8);
    put32(p + 8, (uint32_t)kind);
    put32(p + 12, ING_STORE_VERSION);
    put128(p + 16, key);
    put64(p + 32, n);
}

void ing_store_trailer_of(uint8_t out[ING_STORE_TRAILER], ing_entry_kind kind,
                          ing_hash128 key, const ing_hasher *payload, size_t n) {
    ing_hasher h = *payload;
    memset(out, 0, ING_STORE_TRAILER);
    put_head(out, kind, key, n);
    ing_hasher_raw(&h, out, SUMMED);
    put128(out + CHECKSUM, ing_hasher_done(&h));
}

void ing_store_trailer(uint8_t out[ING_STORE_TRAILER], ing_entry_kind kind,
                       ing_hash128 key, const void *p, size_t n) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_raw(&h, p, n);
    ing_store_trailer_of(out, kind, key, &h, n);
}

bool ing_store_begins_trailer(const uint8_t trailer[ING_STORE_TRAILER],
                              ing_entry_kind kind, ing_hash128 key, size_t n) {
    static const uint8_t zero[ING_STORE_TRAILER - ZERO];
    uint8_t head[SUMMED];
    put_head(head, kind, key, n);
    return memcmp(trailer, head, SUMMED) == 0 &&
           memcmp(trailer + ZERO, zero, sizeof zero) == 0;
}

bool ing_store_check(const uint8_t *p, size_t size, ing_entry_kind kind,
                     ing_hash128 key) {
    if (size < ING_STORE_TRAILER) return false;
    size_t n = size - ING_STORE_TRAILER;
    const uint8_t *trailer = p + n;
    uint8_t sum[16];
    if (!ing_store_begins_trailer(trailer, kind, key, n)) return false;
    /* Payload and trailer lie side by side, so the checksum is over one run of bytes. */
    put128(sum, ing_hash(p, n + SUMMED));
    return memcmp(trailer + CHECKSUM, sum, sizeof sum) == 0;
}
