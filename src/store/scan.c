/* Walks the directories of a kind: listing, verification, removal. Called by the tools of
 * a cache and by eviction, never on the way of a hit. Only names that this folder makes
 * are looked at, links are not followed, and a file whose state cannot be read is left
 * alone: trouble with the disk must never cost a good entry. */
#include "store/store_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t ing_store_wall_ns(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t to_ns(struct timespec t) {
    return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool ing_store_ends_with(const char *name, const char *tail) {
    size_t n = strlen(name), m = strlen(tail);
    return n > m && memcmp(name + n - m, tail, m) == 0;
}

/* What a file is by its name alone; false: nothing of ours. */
static bool classify(const char *name, ing_found *what, ing_hash128 *key) {
    char hex[33] = {0};
    if (strnlen(name, 33) < 32) return false;
    memcpy(hex, name, 32);
    if (!ing_hash_unhex(hex, key)) return false;
    if (name[32] == 0) {
        *what = ING_FOUND_ENTRY;
    } else if (ing_store_ends_with(name, ".tmp")) {
        *what = ING_FOUND_TEMP;
    } else if (strcmp(name + 32, ".lease") == 0) {
        *what = ING_FOUND_LEASE;
    } else {
        return false;
    }
    return true;
}

static bool scan_fan(const ing_store *s, int fan, ing_scan_see *see, void *ctx) {
    int fd = openat(fan, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *d;
    bool more = true;
    if (!dir) {
        if (fd >= 0) close(fd);
        return true;
    }
    while (more && (d = readdir(dir))) {
        ing_hash128 key;
        ing_found what;
        struct stat st;
        if (!classify(d->d_name, &what, &key)) continue;
        if (fstatat(fan, d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        bool ours = st.st_uid == geteuid() || (s->read_only && st.st_uid == 0);
        if (S_ISREG(st.st_mode) && ours)
            more = see(ctx, fan, d->d_name, what, &st, key);
    }
    closedir(dir);
    return more;
}

/* The fan-out directories are asked for by name: what else lies there is not looked at. */
static void scan_kind(const ing_store *s, int kind, ing_scan_see *see, void *ctx) {
    static const char digit[] = "0123456789abcdef";
    bool more = true;
    for (int i = 0; i < 256 && more; i++) {
        const char name[3] = {digit[i >> 4], digit[i & 15], 0};
        int fan = -1;
        ing_reach r = ing_store_open_below(s, kind, name, &fan);
        if (r == ING_REACH_OK) more = scan_fan(s, fan, see, ctx);
        if (r != ING_REACH_OK) ing_store_declined(s, r);
        if (fan >= 0) close(fan);
    }
}

ing_status ing_store_scan(const ing_store *s, ing_entry_kind kind, ing_scan_see *see,
                          void *ctx) {
    char letter = ing_store_letter(kind);
    int dir = -1;
    if (!letter) return ING_DECLINED;
    ing_store_count(s, ING_COUNT_STORE_WALKS);
    ing_reach r = ing_store_open_kind(s, letter, false, &dir);
    if (r == ING_REACH_MISSING) return ING_OK;
    if (r != ING_REACH_OK) return ing_store_declined(s, r); /* not the same as empty */
    scan_kind(s, dir, see, ctx);
    close(dir);
    return ING_OK;
}

/* ---- listing --------------------------------------------------------------------------- */

typedef struct listing {
    bool (*see)(void *ctx, const ing_store_item *item);
    void *ctx;
} listing;

ing_store_item ing_store_item_of(const struct stat *st, ing_hash128 key) {
    uint64_t published = to_ns(st->st_mtim), used = to_ns(st->st_atim);
    return (ing_store_item){.key = key,
                            .bytes = (uint64_t)st->st_size,
                            .published = published,
                            .used = used > published ? used : published};
}

static bool list_one(void *ctx, int dir, const char *name, ing_found what,
                     const struct stat *st, ing_hash128 key) {
    (void)dir, (void)name;
    const listing *l = ctx;
    if (what != ING_FOUND_ENTRY) return true;
    ing_store_item item = ing_store_item_of(st, key);
    return l->see(l->ctx, &item);
}

ing_status ing_store_each(const ing_store *s, ing_entry_kind kind,
                          bool (*see)(void *ctx, const ing_store_item *item),
                          void *ctx) {
    listing l = {see, ctx};
    return ing_store_scan(s, kind, list_one, &l);
}

/* ---- one entry ------------------------------------------------------------------------- */

static bool stat_entry(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                       struct stat *st, int *dir) {
    char hex[33], letter = ing_store_letter(kind);
    *dir = -1;
    if (!letter) return false;
    ing_hash_hex(key, hex);
    if (ing_store_open_fan(s, letter, hex, false, dir) != ING_REACH_OK) return false;
    return fstatat(*dir, hex, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode);
}

bool ing_store_size(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                    uint64_t *bytes) {
    struct stat st = {0};
    int dir = -1;
    bool found = stat_entry(s, kind, key, &st, &dir);
    if (dir >= 0) close(dir);
    *bytes = found ? (uint64_t)st.st_size : 0;
    return found;
}

/* `seen`: only while it is still the file that was seen. */
static bool remove_entry(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                         const struct stat *seen) {
    char hex[33];
    struct stat st = {0};
    int dir = -1;
    if (s->read_only) return false;
    ing_hash_hex(key, hex);
    bool found = stat_entry(s, kind, key, &st, &dir) &&
                 (!seen || (st.st_ino == seen->st_ino && st.st_dev == seen->st_dev));
    int total = found ? ing_total_begin(s, kind) : -1;
    bool gone = found && unlinkat(dir, hex, 0) == 0;
    if (dir >= 0) close(dir);
    if (found)
        ing_total_end(s, kind, total, gone ? -1 : 0, gone ? -(int64_t)st.st_size : 0,
                      NULL);
    return gone;
}

bool ing_store_remove(ing_store *s, ing_entry_kind kind, ing_hash128 key) {
    static const ing_pulse none;
    if (kind == ING_ENTRY_VALUE) return ing_value_remove(s, key, NULL, none);
    return remove_entry(s, kind, key, NULL);
}

ing_store_health ing_store_verify(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                                  bool heal) {
    static const ing_pulse none;
    if (kind == ING_ENTRY_VALUE) return ing_value_verify(s, key, heal, none);
    ing_counters n = {{0}};
    ing_store probe = {.dir = s->dir, /* why it was a miss */
                       .counters = &n,
                       .fds = s->fds,
                       .read_only = s->read_only,
                       .quiet = s->quiet};
    ing_bytes payload;
    struct stat seen = {0};
    int dir = -1;
    bool there = stat_entry(s, kind, key, &seen, &dir);
    if (dir >= 0) close(dir);
    ing_bytes_init(&payload);
    ing_status got = ing_store_read(&probe, kind, key, &payload);
    ing_bytes_fini(&payload);
    if (got == ING_OK) return ING_STORE_GOOD;
    if (n.at[ING_COUNT_STORE_BAD_ENTRY]) {
        if (heal && there) remove_entry(s, kind, key, &seen);
        return ING_STORE_DAMAGED;
    }
    return n.at[ING_COUNT_STORE_IO_ERRORS] || n.at[ING_COUNT_STORE_FOREIGN]
               ? ING_STORE_UNREADABLE
               : ING_STORE_MISSING;
}
