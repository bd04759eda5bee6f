/* The head of a stored value: any bytes, under any key. What is believed is written again as
 * the same bytes, and under another key it is not believed. */
#include "fuzz.h"
#include "store/store_int.h"

#include <string.h>

void fuzz_head(const uint8_t *p, size_t n) {
    static const ing_hash128 key = {7, 9}, other = {7, 8};
    uint8_t again[ING_VALUE_HEAD];
    ing_value_head head;
    if (ing_value_head_read(p, n, key, &head)) {
        FUZZ_CHECK(head.size <= n && head.label >= p);
        FUZZ_CHECK(head.label + head.label_size <= p + head.size);
        FUZZ_CHECK(ing_value_head_write(again, key, &head) == head.size);
        FUZZ_CHECK(memcmp(again, p, head.size) == 0);
        FUZZ_CHECK(!ing_value_head_read(p, n, other, &head));
    }
    /* What is written is believed, whatever the label is. */
    head = (ing_value_head){.version = 2, .codec = n ? p[0] : 'V', .label = p};
    head.label_size = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    size_t size = ing_value_head_write(again, key, &head);
    FUZZ_CHECK(ing_value_head_read(again, size, key, &head) && head.size == size);
    FUZZ_CHECK(!ing_value_head_read(again, size - 1, key, &head));
    again[n ? p[n - 1] % size : 0] ^= 1;
    FUZZ_CHECK(!ing_value_head_read(again, size, key, &head));
}
