/* A layer's pack: found when the layer is opened, asked before the layer's files. Called by
 * dir.c, get and read. Entries are immutable, so a pack that has one is right about it.
 * Indexes are not: in a sealed layer the pack's are the only ones; elsewhere one is believed
 * only while its directory is as it was when the pack was made, so that what was published,
 * evicted or removed since counts. Whatever is wrong with a pack is a miss and a counter. */
#include "store/pack.h"
#include "store/store_int.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void ing_packed_open(ing_store *s) {
    int fd = -1;
    size_t size = 0;
    ing_err why;
    ing_reach r = ing_store_open_file(s, s->fds->top, ING_PACK_NAME, &fd, &size);
    if (r != ING_REACH_OK) {
        ing_store_declined(s, r);
        if (fd >= 0) close(fd);
        return;
    }
    ing_err_init(&why);
    if (ing_pack_open_file(fd, size, &s->pack, &why) != ING_OK)
        ing_store_count(s, ING_COUNT_STORE_BAD_ENTRY);
    else
        s->seen = ing_pack_head_of(s->pack)->seen;
    ing_err_fini(&why);
}

/* A time of 0 stands for a directory that was still changing. */
static bool is_unchanged(const ing_store *s, ing_hash128 key) {
    const uint8_t *fans = ing_pack_fans(s->pack);
    const char *digits = "0123456789abcdef";
    unsigned fan = (unsigned)(key.hi >> 56);
    const char name[5] = {ing_store_letter(ING_ENTRY_INDEX), '/', digits[fan >> 4],
                          digits[fan & 15], 0};
    struct stat st;
    uint64_t then = fans ? ing_store_get64(fans + 8 * fan) : 0;
    return then && fstatat(s->fds->top, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           ing_store_item_of(&st, key).published == then;
}

static bool find(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                 ing_pack_item *item) {
    return s->pack && ing_pack_find(s->pack, kind, key, item) &&
           (kind != ING_ENTRY_INDEX || s->sealed || is_unchanged(s, key));
}

/* Counts how it ended: ING_OK, or a miss. */
static ing_status ended(const ing_store *s, ing_status status) {
    if (status == ING_OK) ing_store_count(s, ING_COUNT_PACK_HITS);
    if (status == ING_FORMAT) ing_store_count(s, ING_COUNT_STORE_BAD_ENTRY);
    if (status == ING_OS || status == ING_MEMORY)
        ing_store_count(s, ING_COUNT_STORE_IO_ERRORS);
    return status == ING_OK ? ING_OK : ING_DECLINED;
}

ing_status ing_packed_read(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                           ing_bytes *out) {
    ing_pack_item item;
    ing_bytes_clear(out);
    if (!find(s, kind, key, &item)) return ING_DECLINED;
    ing_status status = ended(s, ing_pack_read(s->pack, &item, out));
    if (status != ING_OK) ing_bytes_clear(out);
    return status;
}

ing_status ing_packed_get(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                          ing_entry *out) {
    ing_pack_item item;
    *out = (ing_entry){.fd = -1};
    if (!find(s, kind, key, &item)) return ING_DECLINED;
    ing_status status =
        s->copies ? ING_DECLINED : ing_pack_image(s->pack, &item, &out->data);
    if (status == ING_OK) {
        out->pack = ing_pack_ref(s->pack);
    } else if (status == ING_DECLINED) {
        ing_bytes_init(&out->copy);
        status = ing_pack_read(s->pack, &item, &out->copy);
        out->data = out->copy.at;
    }
    out->len = (size_t)item.len;
    status = ended(s, status);
    if (status != ING_OK) {
        out->data = NULL;
        out->len = 0;
        ing_entry_fini(out);
    }
    return status;
}

void ing_store_each_packed(const ing_store *s,
                           bool (*see)(void *ctx, const ing_pack_item *item),
                           void *ctx) {
    uint32_t n = s->pack ? ing_pack_head_of(s->pack)->n : 0;
    for (uint32_t i = 0; i < n; i++) {
        ing_pack_item item = ing_pack_item_at(s->pack, i);
        if (find(s, item.kind, item.key, &item) && !see(ctx, &item)) return;
    }
}
