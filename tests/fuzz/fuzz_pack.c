/* Packs: the tail and the index, with the checksums that guard them put right, so that what
 * they say is looked at; then every entry. From memory and as a file. */
#include "fuzz.h"
#include "store/pack.h"
#include "store/store_int.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)ing_store_get64(p);
}

/* The bytes as somebody would write them who wants them believed. */
static void resum(uint8_t *p, size_t n) {
    const uint8_t *t = p + n - ING_PACK_TAIL;
    ing_pack_head h = {.n = get32(t + 12),
                       .n_fans = get32(t + 40),
                       .code = ing_store_get64(t + 16),
                       .code_size = ing_store_get64(t + 24),
                       .index = ing_store_get64(t + 32),
                       .size = n};
    uint64_t size = (uint64_t)h.n * ING_PACK_RECORD + (uint64_t)h.n_fans * 8;
    if (h.index <= n && size <= n - h.index)
        h.index_sum = ing_hash(p + h.index, (size_t)size);
    ing_pack_put_tail(p + n - ING_PACK_TAIL, &h);
}

static void try_items(ing_pack *pack, size_t n) {
    const ing_pack_head *h = ing_pack_head_of(pack);
    ing_bytes b;
    ing_bytes_init(&b);
    for (uint32_t i = 0; i < h->n; i++) {
        ing_pack_item item = ing_pack_item_at(pack, i), again;
        const uint8_t *image = NULL;
        FUZZ_CHECK(ing_pack_find(pack, item.kind, item.key, &again));
        FUZZ_CHECK(again.at == item.at && again.len == item.len);
        ing_status s = ing_pack_read(pack, &item, &b);
        FUZZ_CHECK(s == ING_OK || s == ING_FORMAT);
        FUZZ_CHECK(s != ING_OK || (b.len == item.len && b.len <= n));
        ing_status m = ing_pack_image(pack, &item, &image);
        if (m == ING_OK) FUZZ_CHECK(s == ING_OK && memcmp(image, b.at, b.len) == 0);
    }
    ing_pack_item none;
    ing_hash128 key = {1, 2};
    (void)ing_pack_find(pack, ING_ENTRY_NOTES, key, &none);
    (void)ing_pack_fans(pack);
    (void)ing_pack_verify(pack, NULL);
    ing_bytes_fini(&b);
}

static void try_file(const uint8_t *p, size_t n) {
    ing_pack *pack = NULL;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, p, n) != (ssize_t)n) {
        close(fd);
        return;
    }
    if (ing_pack_open_file(fd, n, &pack, NULL) == ING_OK) try_items(pack, n);
    ing_pack_unref(pack);
}

void fuzz_pack(const uint8_t *p, size_t n) {
    ing_pack *pack = NULL;
    uint8_t *copy = malloc(n + 1);
    FUZZ_CHECK(copy);
    if (n) memcpy(copy, p, n);
    if (n >= ING_PACK_TAIL) resum(copy, n);
    ing_status s = ing_pack_open(copy, n, &pack, NULL);
    FUZZ_CHECK((s == ING_OK) == (pack != NULL));
    if (pack) try_items(pack, n);
    ing_pack_unref(pack);
    try_file(copy, n);
    free(copy);
}
