/* Entries of the store: the trailer of any bytes, asked for under any kind and key. */
#include "fuzz.h"
#include "store/store_int.h"

#include <string.h>

/* As the trailer says of itself: then length and checksum decide. */
static void as_it_says(const uint8_t *p, size_t n) {
    const uint8_t *t = p + n - ING_STORE_TRAILER;
    ing_hash128 key = {ing_store_get64(t + 16), ing_store_get64(t + 24)};
    if (ing_store_check(p, n, (ing_entry_kind)t[8], key)) {
        uint8_t again[ING_STORE_TRAILER];
        ing_store_trailer(again, (ing_entry_kind)t[8], key, p, n - ING_STORE_TRAILER);
        FUZZ_CHECK(memcmp(again, t, sizeof again) == 0);
        ing_hash128 other = {key.lo ^ 1, key.hi};
        FUZZ_CHECK(!ing_store_check(p, n, (ing_entry_kind)t[8], other));
        FUZZ_CHECK(!ing_store_check(p, n, (ing_entry_kind)(t[8] ^ 1), key));
    }
}

void fuzz_entry(const uint8_t *p, size_t n) {
    ing_hash128 key = {7, 9};
    if (n >= ING_STORE_TRAILER) as_it_says(p, n);
    /* What was written is believed, and nothing else of that length is. */
    size_t size = n + ING_STORE_TRAILER;
    uint8_t *whole = malloc(size);
    FUZZ_CHECK(whole);
    if (n) memcpy(whole, p, n);
    ing_store_trailer(whole + n, ING_ENTRY_VARIANT, key, p, n);
    FUZZ_CHECK(ing_store_check(whole, size, ING_ENTRY_VARIANT, key));
    FUZZ_CHECK(!ing_store_check(whole, size - 1, ING_ENTRY_VARIANT, key));
    whole[n ? p[0] % size : 0] ^= n ? (uint8_t)(1u << p[n - 1] % 8) : 1;
    FUZZ_CHECK(!ing_store_check(whole, size, ING_ENTRY_VARIANT, key));
    free(whole);
}
