/* A cache in one file, to be carried to another machine: `ingot cache export` and `import`.
 * An archive is code: who imports one trusts whoever made it, and the checks here are
 * against damage, not against malice. All the same nothing in it names a path (a file is
 * named by its key), sizes are checked before memory is taken, and nothing is published
 * before the archive was read to its end and found whole. Little-endian:
 *
 *   0   8  magic "INGOTARC"    8  4  version    12  4  zero
 *   per entry: u64 size, then the entry's file as it is: payload and trailer (store.h)
 *   u64 0, u64 entries, XXH3-128 of all before it (lo, hi)
 *
 * Images, variants, aliases and indexes, in that order: an index comes after what it names.
 * Notes are never exported (R20), values are no part of a kernel cache. */
#include "store/store_int.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1, HEAD = 16, TAIL = 32, MAX_ENTRIES = 1 << 22 };

static const ing_entry_kind ORDER[] = {ING_ENTRY_IMAGE, ING_ENTRY_VARIANT,
                                       ING_ENTRY_ALIAS, ING_ENTRY_INDEX};
enum { N_ORDER = sizeof ORDER / sizeof *ORDER };

/* ---- writing ------------------------------------------------------------------------------ */

typedef struct writing {
    ing_store *s;
    int fd;
    ing_entry_kind kind;
    ing_hasher sum;
    ing_archive_report *report;
    bool failed;
} writing;

static void write_out(writing *w, const void *p, size_t n) {
    if (w->failed) return;
    ing_hasher_raw(&w->sum, p, n);
    w->failed = !ing_os_write_all(w->fd, p, n);
}

static bool write_entry(void *ctx, const ing_store_item *item) {
    writing *w = ctx;
    ing_bytes b;
    uint8_t size[8], trailer[ING_STORE_TRAILER];
    ing_bytes_init(&b);
    if (ing_store_read_layer(w->s, 0, w->kind, item->key, &b) == ING_OK) {
        ing_store_trailer(trailer, w->kind, item->key, b.at, b.len);
        ing_store_put64(size, (uint64_t)b.len + ING_STORE_TRAILER);
        write_out(w, size, 8);
        write_out(w, b.at, b.len);
        write_out(w, trailer, sizeof trailer);
        w->report->entries++;
        w->report->bytes += b.len;
    } else {
        w->report->left_out++;
    }
    ing_bytes_fini(&b);
    return !w->failed && w->report->entries < MAX_ENTRIES;
}

ing_status ing_store_export(ing_store *s, int fd, ing_archive_report *report,
                            ing_err *e) {
    uint8_t head[HEAD] = "INGOTARC", tail[TAIL] = {0};
    writing w = {.s = s, .fd = fd, .report = report};
    *report = (ing_archive_report){0};
    ing_hasher_init(&w.sum);
    head[8] = VERSION;
    write_out(&w, head, HEAD);
    for (int i = 0; i < N_ORDER; i++) {
        w.kind = ORDER[i];
        (void)ing_store_each(s, w.kind, write_entry, &w);
    }
    ing_store_put64(tail + 8, report->entries);
    write_out(&w, tail, 16);
    ing_hash128 sum = ing_hasher_done(&w.sum);
    ing_store_put64(tail + 16, sum.lo);
    ing_store_put64(tail + 24, sum.hi);
    write_out(&w, tail + 16, 16);
    if (w.failed) return ing_fail(e, ING_OS, "the archive cannot be written: %m");
    return ING_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reading {
    int fd;
    ing_hasher sum;
    ing_bytes b; /* the entry at hand, with its trailer */
    uint64_t at; /* offset in the file */
    ing_err *e;
} reading;

static ing_status damaged(reading *r, const char *what) {
    return ing_fail(r->e, ING_FORMAT,
                    "the archive is damaged or none of ours: %s at byte %llu", what,
                    (unsigned long long)r->at);
}

/* Exactly n bytes from where reading stands. */
static ing_status read_in(reading *r, void *p, size_t n) {
    size_t got = 0;
    while (got < n) {
        ssize_t k = pread(r->fd, (uint8_t *)p + got, n - got, (off_t)(r->at + got));
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return ing_fail(r->e, ING_OS, "the archive cannot be read: %m");
        if (k == 0) return damaged(r, "it ends early");
        got += (size_t)k;
    }
    ing_hasher_raw(&r->sum, p, n);
    r->at += n;
    return ING_OK;
}

static ing_status read_head(reading *r) {
    uint8_t head[HEAD];
    ing_hasher_init(&r->sum);
    r->at = 0;
    ING_TRY(read_in(r, head, HEAD));
    if (memcmp(head, "INGOTARC", 8) != 0) return damaged(r, "no archive");
    if (head[8] != VERSION || head[9] || head[10] || head[11])
        return ing_fail(r->e, ING_FORMAT,
                        "the archive was made by another version of Ingot");
    return ING_OK;
}

/* Grows as bytes come, so that a size that lies costs no memory. */
static ing_status read_body(reading *r, uint64_t size) {
    enum { STEP = 1 << 20 };
    ing_bytes_clear(&r->b);
    for (uint64_t left = size; left;) {
        size_t n = left < STEP ? (size_t)left : STEP;
        if (!ing_bytes_reserve(&r->b, n))
            return ing_fail(r->e, ING_MEMORY, "no memory to read the archive");
        ING_TRY(read_in(r, r->b.at + r->b.len, n));
        r->b.len += n;
        left -= n;
    }
    return ING_OK;
}

static bool is_carried(uint32_t kind) {
    for (int i = 0; i < N_ORDER; i++)
        if ((uint32_t)ORDER[i] == kind) return true;
    return false;
}

/* The next entry, whole and undamaged, in r->b; ING_DECLINED: there are no more. */
static ing_status read_entry(reading *r, ing_entry_kind *kind, ing_hash128 *key) {
    uint8_t size[8];
    ING_TRY(read_in(r, size, 8));
    uint64_t n = ing_store_get64(size);
    if (n == 0) return ING_DECLINED;
    if (n < ING_STORE_TRAILER || n - ING_STORE_TRAILER > ING_STORE_MAX_ENTRY)
        return damaged(r, "a size that no entry has");
    ING_TRY(read_body(r, n));
    const uint8_t *t = r->b.at + n - ING_STORE_TRAILER;
    uint32_t k = (uint32_t)ing_store_get64(t + 8);
    *key = (ing_hash128){ing_store_get64(t + 16), ing_store_get64(t + 24)};
    *kind = (ing_entry_kind)k;
    if (!is_carried(k) || !ing_store_check(r->b.at, (size_t)n, *kind, *key))
        return damaged(r, "an entry that is not as it was written");
    r->b.len -= ING_STORE_TRAILER;
    return ING_OK;
}

static ing_status read_tail(reading *r, uint64_t entries) {
    uint8_t tail[16];
    ING_TRY(read_in(r, tail, 8));
    if (ing_store_get64(tail) != entries) return damaged(r, "entries are missing");
    ing_hash128 sum = ing_hasher_done(&r->sum);
    ING_TRY(read_in(r, tail, 16));
    if (ing_store_get64(tail) != sum.lo || ing_store_get64(tail + 8) != sum.hi)
        return damaged(r, "a checksum that does not fit");
    uint8_t more;
    if (pread(r->fd, &more, 1, (off_t)r->at) != 0)
        return damaged(r, "more after its end");
    return ING_OK;
}

/* The whole archive, entry by entry; without a taker it is only checked. */
static ing_status read_all(reading *r, ing_store *s, const ing_archive_taker *t,
                           ing_archive_report *report) {
    ing_status status;
    ing_entry_kind kind = ING_ENTRY_INDEX; /* set by each entry */
    ing_hash128 key = {0};
    *report = (ing_archive_report){0};
    ING_TRY(read_head(r));
    while ((status = read_entry(r, &kind, &key)) == ING_OK) {
        if (report->entries == MAX_ENTRIES) return damaged(r, "too many entries");
        report->entries++;
        report->bytes += r->b.len;
        bool taken = t->look(t->self, kind, r->b.at, r->b.len) == ING_OK;
        if (taken && s)
            taken = t->take(t->self, s, kind, key, r->b.at, r->b.len) == ING_OK;
        report->left_out += !taken;
    }
    return status == ING_DECLINED ? read_tail(r, report->entries) : status;
}

ing_status ing_store_import(ing_store *s, int fd, const ing_archive_taker *t,
                            ing_archive_report *report, ing_err *e) {
    reading r = {.fd = fd, .e = e};
    ing_bytes_init(&r.b);
    ing_status status = read_all(&r, NULL, t, report);
    if (status == ING_OK) status = read_all(&r, s, t, report);
    ing_bytes_fini(&r.b);
    return status;
}
