/* Packs the layer that is written, when it pays: the next start then reads one file. Called
 * after a publication, by a process that has been compiling, so that neither a hit nor a
 * process that only hits ever writes (R21). One process packs at a time, under the lock of the
 * sweep; whatever is in the way (no lock, no space, bounds too near) means no pack.
 *
 *  1. Only files are packed, never what an older pack has: what was evicted stays away.
 *  2. The pack counts as bytes of the cache. It is the first thing that a sweep gives up, and
 *     it goes long before, when the cache is half full: from then on the files are read
 *     themselves, and their times say which of them are used.
 *  3. It is made again when a quarter more entries have come (at least 128), so that all the
 *     packing of a cache costs five times what the last one does.
 *  4. An index of the pack is believed while its directory has the time that it had before
 *     the index was read. A directory that changed in the last two seconds has no such time
 *     (0): within the grain of a file system's clock it could change again unseen. */
#include "store/pack.h"
#include "store/store_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FEWEST = 128, GROWTH = 4 };
static const uint64_t GRAIN = 2u * 1000000000ull;
#define TEMP ING_PACK_NAME ".tmp"

static uint64_t pack_size(const ing_store *s) {
    struct stat st;
    return fstatat(s->fds->top, ING_PACK_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISREG(st.st_mode) && st.st_size > 0
               ? (uint64_t)st.st_size
               : 0;
}

uint64_t ing_packed_bytes(const ing_store *s) {
    return s->sealed ? 0 : pack_size(s);
}

uint64_t ing_packed_drop(const ing_store *s) {
    uint64_t size = ing_packed_bytes(s);
    return size && unlinkat(s->fds->top, ING_PACK_NAME, 0) == 0 ? size : 0;
}

bool ing_packed_since(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                      uint64_t since) {
    struct stat st;
    ing_pack_item item;
    return s->pack && ing_pack_find(s->pack, kind, key, &item) &&
           fstatat(s->fds->top, ING_PACK_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           ing_store_item_of(&st, key).used >= since;
}

void ing_packed_tidy(const ing_store *s) {
    unlinkat(s->fds->top, TEMP, 0);
}

static bool has_grown(uint64_t entries, uint64_t seen) {
    return entries > seen && entries - seen >= FEWEST &&
           entries - seen >= seen / GROWTH;
}

bool ing_store_wants_pack(const ing_store *s) {
    uint64_t entries = __atomic_load_n(&s->entries, __ATOMIC_RELAXED);
    uint64_t seen = __atomic_load_n(&s->seen, __ATOMIC_RELAXED);
    return !s->read_only && has_grown(entries, seen);
}

/* ---- making one ---------------------------------------------------------------------------- */

/* The number of entries when the pack that is there was made; 0: there is none. */
static uint64_t seen_by(const ing_store *s) {
    int fd = -1;
    size_t size = 0;
    ing_pack *p = NULL;
    uint64_t seen = 0;
    if (ing_store_open_file(s, s->fds->top, ING_PACK_NAME, &fd, &size) ==
            ING_REACH_OK &&
        ing_pack_open_file(fd, size, &p, NULL) == ING_OK)
        seen = ing_pack_head_of(p)->seen;
    else if (!p && fd >= 0)
        close(fd);
    ing_pack_unref(p);
    return seen;
}

/* As the pack takes about what the entries take, a cache that is half full has no room. */
static bool has_room(const ing_store *s, const ing_total *t) {
    uint64_t pack = pack_size(s), rest = t->now.bytes > pack ? t->now.bytes - pack : 0;
    return (!s->bounds.bytes || rest < s->bounds.bytes / 8 * 3) &&
           (!s->bounds.entries || t->now.entries < s->bounds.entries / 2);
}

/* Rule 4. `now` is the clock of the file system. */
static void note_fans(const ing_store *s, uint64_t now, uint64_t fans[ING_PACK_FANS]) {
    for (unsigned i = 0; i < ING_PACK_FANS; i++) {
        struct stat st;
        char name[8];
        snprintf(name, sizeof name, "%c/%02x", ing_store_letter(ING_ENTRY_INDEX), i);
        fans[i] = 0;
        if (fstatat(s->fds->top, name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        uint64_t changed = ing_store_item_of(&st, (ing_hash128){0, 0}).published;
        if (changed < now && now - changed >= GRAIN) fans[i] = changed;
    }
}

static bool write_temp(const ing_store *s, int fd, uint64_t seen,
                       ing_pack_writer *write) {
    struct stat st;
    ing_pack_order order = {.fans = {0}, .has_fans = true, .seen = seen};
    ing_store files = {.dir = s->dir, /* rule 1 */
                       .fds = s->fds,
                       .read_only = s->read_only,
                       .quiet = s->quiet,
                       .copies = s->copies};
    if (fstat(fd, &st) != 0) return false;
    note_fans(s, ing_store_item_of(&st, (ing_hash128){0, 0}).published, order.fans);
    return write(&files, fd, &order, NULL) == ING_OK;
}

/* Under the lock of the sweep, so the name is nobody else's. */
static bool make_pack(const ing_store *s, uint64_t seen, ing_pack_writer *write) {
    int top = s->fds->top;
    ing_packed_tidy(s);
    int fd =
        openat(top, TEMP, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    bool ok = write_temp(s, fd, seen, write);
    ok = close(fd) == 0 && ok;
    ok = ok && renameat(top, TEMP, top, ING_PACK_NAME) == 0;
    if (!ok) unlinkat(top, TEMP, 0);
    return ok;
}

ing_status ing_store_repack(ing_store *s, ing_pack_writer *write) {
    ing_total t = {0};
    bool made = false;
    int fd = s->read_only ? -1 : ing_total_open(s, ING_ENTRY_IMAGE, false);
    if (fd < 0) return ING_DECLINED;
    uint64_t before = pack_size(s);
    bool ok = ing_total_take(fd, ING_TOTAL_SWEEP, 0) &&
              ing_total_read(fd, ING_ENTRY_IMAGE, &t);
    if (ok && !has_room(s, &t)) {
        ing_packed_drop(s);
        ok = false;
    }
    uint64_t seen = ok ? seen_by(s) : 0;
    if (ok && has_grown(t.now.entries, seen)) {
        made = make_pack(s, t.now.entries, write);
        seen = t.now.entries;
    }
    /* Made by us, by another, or impossible: not again before it has grown anew. */
    __atomic_store_n(&s->seen, ok ? seen : t.now.entries, __ATOMIC_RELAXED);
    ing_total_close(fd);
    uint64_t after = pack_size(s);
    if (after != before)
        ing_total_end(s, ING_ENTRY_IMAGE, ing_total_begin(s, ING_ENTRY_IMAGE), 0,
                      (int64_t)after - (int64_t)before, NULL);
    if (made) ing_store_count(s, ING_COUNT_PACKS_MADE);
    return made ? ING_OK : ING_DECLINED;
}
