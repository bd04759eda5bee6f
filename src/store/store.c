/* Get and put: the only readers and writers of entries. Called by the compiler and the
 * trace. Readers take no lock and write nothing; a writer makes a temporary file beside
 * the entry and renames it, so a reader sees the old entry, the new one or none. There is
 * no fsync: what a crash leaves incomplete fails its checksum. Must never raise an error:
 * whatever goes wrong is a miss plus a counter (R21). */
#include "store/pack.h"
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

char ing_store_letter(ing_entry_kind kind) {
    switch (kind) {
    case ING_ENTRY_IMAGE: return 'i';
    case ING_ENTRY_VARIANT: return 'v';
    case ING_ENTRY_INDEX: return 'x';
    case ING_ENTRY_VALUE: return 'd';
    case ING_ENTRY_ALIAS: return 'a';
    case ING_ENTRY_NOTES: return 'n';
    case ING_ENTRY_KINDS: break;
    }
    return 0;
}

ing_status ing_store_declined(const ing_store *s, ing_reach r) {
    if (r == ING_REACH_FOREIGN) ing_store_count(s, ING_COUNT_STORE_FOREIGN);
    if (r == ING_REACH_FAILED) ing_store_count(s, ING_COUNT_STORE_IO_ERRORS);
    return ING_DECLINED;
}

static ing_status bad_entry(const ing_store *s) {
    ing_store_count(s, ING_COUNT_STORE_BAD_ENTRY);
    return ING_DECLINED;
}

/* ---- beyond the directory --------------------------------------------------------- */

void ing_store_set_remote(ing_store *s, ing_store_remote remote) {
    s->remote = remote;
}

bool ing_store_has_remote(const ing_store *s) {
    return s->remote.self && !s->read_only;
}

/* Values are the user's own data and stay here. Without a layer that is written there is
 * no place for what is fetched, and so nothing is shared. */
static bool is_shared(const ing_store *s, ing_entry_kind kind) {
    return ing_store_has_remote(s) &&
           (kind == ING_ENTRY_IMAGE || kind == ING_ENTRY_VARIANT ||
            kind == ING_ENTRY_INDEX || kind == ING_ENTRY_ALIAS);
}

/* After a miss: true when the remote had it and it is now an entry of the directory. */
static bool pull(ing_store *s, ing_entry_kind kind, ing_hash128 key) {
    if (!is_shared(s, kind)) return false;
    ing_bytes b;
    ing_bytes_init(&b);
    bool ok =
        s->remote.fetch(s->remote.self, ing_store_letter(kind), key, &b) && !b.failed;
    ok = ok && ing_store_put_within(s, kind, key, b.at, b.len, s->bounds) == ING_OK;
    ing_bytes_fini(&b);
    return ok;
}

/* ---- get ------------------------------------------------------------------------- */

/* O_NONBLOCK: a FIFO in place of an entry must not stop the program. */
ing_reach ing_store_open_file(const ing_store *s, int dir, const char *name, int *fd,
                              size_t *size) {
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    *fd = openat(dir, name, s->quiet ? flags | O_NOATIME : flags);
    if (*fd < 0 && s->quiet && errno == EPERM) *fd = openat(dir, name, flags);
    if (*fd < 0 && errno == ENOENT) return ING_REACH_MISSING;
    if (*fd < 0) return errno == ELOOP ? ING_REACH_FOREIGN : ING_REACH_FAILED;
    return ing_store_trusts(s, *fd, false, size) ? ING_REACH_OK : ING_REACH_FOREIGN;
}

/* This and copy_entry take over fd when the entry is good. */
static ing_status map_entry(const ing_store *s, int fd, size_t size,
                            ing_entry_kind kind, ing_hash128 key, ing_entry *out) {
    if (size < ING_STORE_TRAILER || size - ING_STORE_TRAILER > ING_STORE_MAX_ENTRY)
        return bad_entry(s);
    /* The checksum reads every page, so all are brought in at once. */
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED) return ing_store_declined(s, ING_REACH_FAILED);
    if (!ing_store_check(map, size, kind, key)) {
        munmap(map, size);
        return bad_entry(s);
    }
    *out = (ing_entry){.data = map,
                       .len = size - ING_STORE_TRAILER,
                       .map = map,
                       .map_len = size,
                       .fd = fd};
    return ING_OK;
}

/* `size` bytes, or as many as there are; false: the disk failed. */
static bool read_up_to(int fd, size_t size, ing_bytes *out) {
    while (out->len < size) {
        ssize_t n = read(fd, out->at + out->len, size - out->len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        out->len += (size_t)n;
    }
    return true;
}

static ing_status read_entry(const ing_store *s, int fd, size_t size,
                             ing_entry_kind kind, ing_hash128 key, ing_bytes *out) {
    if (size < ING_STORE_TRAILER || size - ING_STORE_TRAILER > ING_STORE_MAX_ENTRY)
        return bad_entry(s);
    if (!ing_bytes_reserve(out, size) || !read_up_to(fd, size, out))
        return ing_store_declined(s, ING_REACH_FAILED);
    if (!ing_store_check(out->at, out->len, kind, key)) return bad_entry(s);
    out->len -= ING_STORE_TRAILER;
    out->at[out->len] = 0;
    return ING_OK;
}

/* As that, for an image that must not lie in a file of the network (R21). */
static ing_status copy_entry(const ing_store *s, int fd, size_t size,
                             ing_entry_kind kind, ing_hash128 key, ing_entry *out) {
    ing_bytes_init(&out->copy);
    ing_status status = read_entry(s, fd, size, kind, key, &out->copy);
    if (status == ING_OK) {
        out->data = out->copy.at;
        out->len = out->copy.len;
        close(fd);
    } else {
        ing_bytes_fini(&out->copy);
    }
    return status;
}

static ing_reach open_key(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                          int *fd, size_t *size) {
    char hex[33];
    if (!ing_store_letter(kind)) return ING_REACH_MISSING;
    ing_hash_hex(key, hex);
    return ing_store_open_entry(s, kind, hex, fd, size);
}

/* A layer's own file; a sealed layer has none. */
static ing_status open_file(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                            int *fd, size_t *size) {
    if (s->sealed) return ING_DECLINED;
    ing_reach r = open_key(s, kind, key, fd, size);
    return r == ING_REACH_OK ? ING_OK : ing_store_declined(s, r);
}

static ing_status get_file(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                           ing_entry *out) {
    int fd = -1;
    size_t size = 0;
    *out = (ing_entry){.fd = -1};
    ing_status status = open_file(s, kind, key, &fd, &size);
    if (status == ING_OK)
        status = s->copies ? copy_entry(s, fd, size, kind, key, out)
                           : map_entry(s, fd, size, kind, key, out);
    if (fd >= 0 && status != ING_OK) close(fd);
    return status;
}

static ing_status read_file(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                            ing_bytes *out) {
    int fd = -1;
    size_t size = 0;
    ing_bytes_clear(out);
    ing_status status = open_file(s, kind, key, &fd, &size);
    if (status == ING_OK) status = read_entry(s, fd, size, kind, key, out);
    if (fd >= 0) close(fd);
    if (status != ING_OK) ing_bytes_clear(out);
    return status;
}

typedef struct wanted {
    ing_entry_kind kind;
    ing_hash128 key;
    ing_entry *entry; /* mapped; NULL: read into `bytes` */
    ing_bytes *bytes;
} wanted;

static ing_status from_pack(const ing_store *s, const wanted *w) {
    return w->entry ? ing_packed_get(s, w->kind, w->key, w->entry)
                    : ing_packed_read(s, w->kind, w->key, w->bytes);
}

static ing_status from_file(const ing_store *s, const wanted *w) {
    return w->entry ? get_file(s, w->kind, w->key, w->entry)
                    : read_file(s, w->kind, w->key, w->bytes);
}

/* It does not matter which layer answers, so packs are asked first: they cost nothing. */
static ing_status from_layers(ing_store *s, const wanted *w) {
    ing_status status = ING_DECLINED;
    for (const ing_store *l = s; l && status != ING_OK; l = l->below)
        status = from_pack(l, w);
    for (const ing_store *l = s; l && status != ING_OK; l = l->below)
        status = from_file(l, w);
    if (status == ING_DECLINED && pull(s, w->kind, w->key)) status = from_file(s, w);
    return status;
}

ing_status ing_store_get(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                         ing_entry *out) {
    return from_layers(s, &(wanted){kind, key, out, NULL});
}

ing_status ing_store_read(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                          ing_bytes *out) {
    return from_layers(s, &(wanted){kind, key, NULL, out});
}

ing_status ing_store_read_layer(ing_store *s, uint32_t n, ing_entry_kind kind,
                                ing_hash128 key, ing_bytes *out) {
    const ing_store *l = s;
    for (uint32_t i = 0; l && i < n; i++) l = l->below;
    ing_status status = l ? ing_packed_read(l, kind, key, out) : ING_DECLINED;
    if (l && status != ING_OK) status = read_file(l, kind, key, out);
    if (status == ING_DECLINED && n == 0 && pull(s, kind, key))
        status = read_file(s, kind, key, out);
    return status;
}

void ing_entry_fini(ing_entry *e) {
    if (e->map) munmap(e->map, e->map_len);
    if (e->fd >= 0) close(e->fd);
    ing_pack_unref(e->pack);
    ing_bytes_fini(&e->copy);
    *e = (ing_entry){.fd = -1};
}

/* ---- put ------------------------------------------------------------------------- */

enum { TEMP_TRIES = 8 };

/* Random, because processes on several hosts may share the directory. */
static uint64_t random_u64(void) {
    uint64_t v;
    if (getrandom(&v, sizeof v, GRND_NONBLOCK) == (ssize_t)sizeof v) return v;
    return ing_os_now_ns() * 0x9E3779B97F4A7C15u ^ (uint64_t)getpid() << 32;
}

static int open_temp(int dir, const char *hex, const char *tail,
                     char name[ING_STORE_TEMP]) {
    int fd = -1;
    for (int i = 0; i < TEMP_TRIES && fd < 0; i++) {
        snprintf(name, ING_STORE_TEMP, "%s.%016llx%s", hex,
                 (unsigned long long)random_u64(), tail);
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

int ing_store_open_temp(int dir, const char *hex, char name[ING_STORE_TEMP]) {
    return open_temp(dir, hex, ".tmp", name);
}

int ing_store_open_claim(int dir, const char *hex, char name[ING_STORE_TEMP]) {
    return open_temp(dir, hex, ING_STORE_CLAIM, name);
}

/* close is asked too: that is where some file systems report a full disk. */
static bool publish(int dir, const char *hex, const void *p, size_t n,
                    const uint8_t trailer[ING_STORE_TRAILER]) {
    char temp[ING_STORE_TEMP];
    int fd = ing_store_open_temp(dir, hex, temp);
    if (fd < 0) return false;
    bool ok =
        ing_os_write_all(fd, p, n) && ing_os_write_all(fd, trailer, ING_STORE_TRAILER);
    ok = close(fd) == 0 && ok;
    ok = ok && renameat(dir, temp, dir, hex) == 0;
    if (!ok) unlinkat(dir, temp, 0);
    return ok;
}

ing_status ing_store_publish(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                             const void *p, size_t n) {
    char hex[33], letter = ing_store_letter(kind);
    uint8_t trailer[ING_STORE_TRAILER];
    int dir = -1;
    if (!letter || s->read_only) return ING_DECLINED;
    if (n > ING_STORE_MAX_ENTRY) return ing_store_declined(s, ING_REACH_FAILED);
    ing_hash_hex(key, hex);
    ing_reach r = ing_store_open_fan(s, letter, hex, true, &dir);
    if (r == ING_REACH_MISSING) r = ING_REACH_FAILED; /* deleted as we made it */
    if (r != ING_REACH_OK) return ing_store_declined(s, r);
    ing_store_trailer(trailer, kind, key, p, n);
    bool ok = publish(dir, hex, p, n, trailer);
    close(dir);
    if (!ok) return ing_store_declined(s, ING_REACH_FAILED);
    ing_store_count(s, ING_COUNT_STORE_PUBLISHED);
    return ING_OK;
}

ing_status ing_store_put(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                         const void *p, size_t n) {
    ing_status status = ing_store_put_within(s, kind, key, p, n, s->bounds);
    if (is_shared(s, kind))
        s->remote.push(s->remote.self, ing_store_letter(kind), key, p, n);
    return status;
}
