/* store: immutable, checksummed entries on disk (R17, R20, R21), in layers: one directory
 * that is written, and others that are only read. docs/internals/store.md tells the whole.
 *
 * An entry is its payload, then a 64-byte trailer (little-endian):
 *   0  8  magic "INGOTENT"      8  4  kind      12  4  format version
 *  16 16  key (lo, hi)         32  8  payload length    40 16  XXH3-128 of bytes
 *  [0, length) and of trailer [0, 40)          56  8  zero
 * File name: <dir>/<kind letter: i, v, x, d, a, n>/<first 2 hex of key>/<key hex>. Published by
 * writing a temporary file (.tmp) in the same directory and renaming it; readers take no
 * lock; a hit writes nothing. Anything wrong is a miss plus a counter, never an error. */
#ifndef ING_STORE_H
#define ING_STORE_H

#include "base/base.h"

typedef enum ing_entry_kind {
    ING_ENTRY_IMAGE = 1,
    ING_ENTRY_VARIANT = 2,
    ING_ENTRY_INDEX = 3,
    ING_ENTRY_VALUE = 4, /* any value that src/py/value/codec.c writes */
    ING_ENTRY_ALIAS = 5, /* text of a function -> digest of its tree (R9) */
    ING_ENTRY_NOTES = 6, /* why a kernel was compiled: never exported or sent (R20) */
    ING_ENTRY_KINDS
} ing_entry_kind;
enum {
    ING_STORE_TRAILER = 64,
    ING_STORE_MAX_ENTRY = 256 << 20,
    ING_STORE_VERSION = 1, /* of the format of entries */
};

typedef struct ing_store ing_store;
typedef struct ing_pack ing_pack; /* pack.h */

/* Opens (creates with mode 0700 when missing) the directory. ING_DECLINED with the reason
 * in e when it cannot be used (owner, mode, not a directory, no permission): run on memory. */
ing_status ing_store_open(const char *dir, ing_counters *counters, ing_store **out,
                          ing_err *e);
/* The layers of INGOT_CACHE_PATH (layers.c): directories separated by ':', an empty one
 * standing for `dir`. The first is made when it is missing; the first that belongs to the
 * user, can be written and is not sealed is written, and is asked first; all others are
 * only read, and may be root's. What cannot be used is left out and counted; `skipped` says why, "" for
 * none (a missing one is no fault). ING_DECLINED: there is none at all. */
ing_status ing_store_open_path(const char *path, const char *dir,
                               ing_counters *counters, ing_store **out,
                               ing_bytes *skipped, ing_err *e);
/* One directory that is there, root's or ours, to look at. */
ing_status ing_store_open_to_read(const char *dir, ing_counters *counters,
                                  ing_store **out, ing_err *e);
/* One directory that is there, for tools: written if it is ours, else only read. Reading
 * leaves the times of last use alone. */
ing_status ing_store_open_there(const char *dir, ing_counters *counters,
                                ing_store **out, ing_err *e);
void ing_store_close(ing_store *s);
const char *ing_store_dir(const ing_store *s); /* of the first layer */
bool ing_store_writable(const ing_store *s);
uint32_t ing_store_layers(const ing_store *s);

/* Default directory into out: INGOT_CACHE_DIR, else $XDG_CACHE_HOME/ingot, else
 * $HOME/.cache/ingot (home of the effective user when HOME is unset). ING_DECLINED: none. */
ing_status ing_store_default_dir(ing_bytes *out, ing_err *e);

typedef struct ing_entry { /* a checked entry: mapped alone, in a pack, or copied */
    const uint8_t *data;
    size_t len; /* payload */
    void *map;  /* of this entry alone */
    size_t map_len;
    int fd;         /* of `map`: open, read-only; -1 once taken */
    ing_pack *pack; /* referenced; data lies in its mapping of images */
    ing_bytes copy; /* of an entry that cannot or must not be mapped */
} ing_entry;

/* ING_OK: checked (owner, mode, magic, kind, version, key, length, checksum). For images,
 * which are run where they lie. ING_DECLINED: a miss of any kind. */
ing_status ing_store_get(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                         ing_entry *out);
void ing_entry_fini(ing_entry *e);
/* Publishes within the bounds of the store; ING_DECLINED (and a counter) when the disk or a
 * bound says no. */
ing_status ing_store_put(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                         const void *p, size_t n);

/* As get, but read instead of mapped: a failing disk or a file cut short by somebody is a
 * miss, where a mapping would end the process. `out` is cleared first and is the payload
 * alone after ING_OK. For values, which are copied out anyway. */
ing_status ing_store_read(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                          ing_bytes *out);
/* As that, from the n-th layer alone: for indexes, which layers have each for themselves.
 * What the first layer lacks is asked of the remote. */
ing_status ing_store_read_layer(ing_store *s, uint32_t n, ing_entry_kind kind,
                                ing_hash128 key, ing_bytes *out);

/* The trailer of an entry, for who writes entries elsewhere than in a directory. */
void ing_store_trailer(uint8_t out[ING_STORE_TRAILER], ing_entry_kind kind,
                       ing_hash128 key, const void *p, size_t n);

/* ---- what lies beyond the directory -------------------------------------------------- */

/* A layer that is asked after a miss and told of what is published; images, variants,
 * indexes and aliases only. `letter` is the kind's. What `fetch` brings becomes an ordinary
 * entry of the directory before it is used. Both must be quick or give up. */
typedef struct ing_store_remote {
    void *self;
    bool (*fetch)(void *self, char letter, ing_hash128 key, ing_bytes *out);
    void (*push)(void *self, char letter, ing_hash128 key, const void *p, size_t n);
} ing_store_remote;
/* Before the store is shared; `remote` outlives it. Of no effect when no layer is written. */
void ing_store_set_remote(ing_store *s, ing_store_remote remote);
/* Whether a miss may wait for a server. */
bool ing_store_has_remote(const ing_store *s);

/* The directory of a kind, and its name for people; 0 for a kind that there is not. */
char ing_store_letter(ing_entry_kind kind);

/* ---- all entries of a kind (scan.c) ----------------------------------------------- */

typedef struct ing_store_item {
    ing_hash128 key;
    uint64_t bytes;     /* of the file */
    uint64_t published; /* mtime, nanoseconds since 1970 */
    uint64_t used;      /* the later of atime and mtime: what eviction goes by */
} ing_store_item;

/* Calls `see` for each entry, in no order, until it returns false. Entries that come or
 * go meanwhile may or may not be seen. */
ing_status ing_store_each(const ing_store *s, ing_entry_kind kind,
                          bool (*see)(void *ctx, const ing_store_item *item),
                          void *ctx);

typedef enum ing_store_health {
    ING_STORE_GOOD,
    ING_STORE_MISSING,
    ING_STORE_DAMAGED,    /* read whole, and not what was written */
    ING_STORE_UNREADABLE, /* the disk or the rights: says nothing about the entry */
} ing_store_health;
/* Reads the entry whole. `heal` removes it when it is damaged, and only then. */
ing_store_health ing_store_verify(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                                  bool heal);
/* Whether there was one and it is gone. */
bool ing_store_remove(ing_store *s, ing_entry_kind kind, ing_hash128 key);

/* ---- bounds (total.c, evict.c) ------------------------------------------------------ */

typedef struct ing_store_totals {
    uint64_t entries, bytes;
} ing_store_totals;

/* Kinds are counted in two groups: all that kernels keep, and values. Where a function below
 * takes a kind, its group is meant. */

/* Of what ing_store_put publishes (0 = no bound); before the store is shared. */
void ing_store_set_bounds(ing_store *s, ing_store_totals bounds);
/* From the counters file, O(1); counted anew when that is lost. */
ing_status ing_store_totals_get(ing_store *s, ing_entry_kind kind,
                                ing_store_totals *out);
/* Publishes and keeps the totals; what is above `bounds` (0 = no bound) is then evicted,
 * the least recently used first. An entry that is above them alone is declined. */
ing_status ing_store_put_within(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                                const void *p, size_t n, ing_store_totals bounds);
/* Evicts to nine tenths of the bounds where they are exceeded, removes what crashed
 * writers left, and counts anew. ING_DECLINED: another process is at it. */
ing_status ing_store_sweep(ing_store *s, ing_entry_kind kind, ing_store_totals bounds,
                           ing_store_totals *removed);

/* Removes all entries, temporary files and leases of the kind's group, the total, and the
 * directories that are empty then; nothing that this folder did not make. */
ing_status ing_store_clear(ing_store *s, ing_entry_kind kind,
                           ing_store_totals *removed);

/* ---- values (values.c): of any size, streamed, the bound held at all times ----------------- */

/* Asked now and then by what may take long; false: stop. NULL: nobody asks. */
typedef struct ing_pulse {
    bool (*go_on)(void *self);
    void *self;
} ing_pulse;

typedef struct ing_value_writer ing_value_writer;
/* A status of these is ING_OK, ING_VALUE: above the bounds, alone or with what others are
 * writing; ING_DECLINED: the disk says no; ING_CANCELLED: by the pulse; ING_MEMORY. The first
 * that is not ING_OK stays. */
ing_status ing_value_begin(ing_store *s, ing_hash128 key, ing_store_totals bounds,
                           ing_pulse pulse, ing_value_writer **out);
/* So many bytes are going to come: room is made for all of them at once. */
ing_status ing_value_announce(ing_value_writer *w, uint64_t n);
ing_status ing_value_write(ing_value_writer *w, const void *p, size_t n);
ing_status ing_value_publish(ing_value_writer *w);
ing_status ing_value_status(const ing_value_writer *w);
void ing_value_end(ing_value_writer *w); /* also after publishing; NULL: nothing */
ing_status ing_value_put(ing_store *s, ing_hash128 key, const void *p, size_t n,
                         ing_store_totals bounds);

typedef struct ing_value_reader { /* an entry that is open */
    int fd;
    uint64_t length; /* of the payload */
    uint64_t device, inode;
    uint8_t *whole; /* of a small one */
} ing_value_reader;
/* ING_OK: open, and owner and mode are right; `find` has read it and its checksum is, too. */
ing_status ing_value_open(ing_store *s, ing_hash128 key, ing_value_reader *r);
ing_status ing_value_find(ing_store *s, ing_hash128 key, ing_pulse pulse,
                          ing_value_reader *r);
/* Exactly n bytes of the payload, or false. */
bool ing_value_read(const ing_value_reader *r, uint64_t at, void *p, size_t n);
void ing_value_close(ing_value_reader *r);

/* Whether there was one and it is gone; `seen`: only if it still is that one. */
bool ing_value_remove(ing_store *s, ing_hash128 key, const ing_value_reader *seen,
                      ing_pulse pulse);
ing_status ing_value_totals(ing_store *s, ing_pulse pulse, ing_store_totals *out);
ing_status ing_value_sweep(ing_store *s, ing_store_totals bounds, ing_pulse pulse,
                           ing_store_totals *removed);
ing_status ing_value_clear(ing_store *s, ing_pulse pulse, ing_store_totals *removed);
ing_store_health ing_value_verify(ing_store *s, ing_hash128 key, bool heal,
                                  ing_pulse pulse);

/* What a payload starts with (valuehead.c): by which codec the rest was written, and what the
 * value is called. */
enum { ING_VALUE_LABEL = 4096, ING_VALUE_HEAD = 12 + ING_VALUE_LABEL + 8 };
typedef struct ing_value_head {
    uint8_t version, codec, label_kind;
    const uint8_t *label; /* borrowed */
    uint32_t label_size;
    size_t size; /* of the head */
} ing_value_head;
/* The label is cut at ING_VALUE_LABEL. */
size_t ing_value_head_write(uint8_t out[ING_VALUE_HEAD], ing_hash128 key,
                            const ing_value_head *head);
/* From the first n bytes of a payload, of which ING_VALUE_HEAD are enough. */
bool ing_value_head_read(const uint8_t *p, size_t n, ing_hash128 key,
                         ing_value_head *out);

/* ---- a cache in one file (archive.c) ---------------------------------------------------- */

typedef struct ing_archive_report {
    uint64_t entries, bytes; /* payloads */
    uint64_t left_out;       /* could not be read, or not be put */
} ing_archive_report;

/* What an import asks its caller about each entry, which is checked by then: `look` whether
 * the payload means anything to this version, else it is left out; `take` to publish it. */
typedef struct ing_archive_taker {
    void *self;
    ing_status (*look)(void *self, ing_entry_kind kind, const uint8_t *p, size_t n);
    ing_status (*take)(void *self, ing_store *s, ing_entry_kind kind, ing_hash128 key,
                       const uint8_t *p, size_t n);
} ing_archive_taker;

/* Images, variants, indexes and aliases of the first layer to an empty file. */
ing_status ing_store_export(ing_store *s, int fd, ing_archive_report *report,
                            ing_err *e);
/* ING_FORMAT with nothing published: the archive is not whole. It is read twice. */
ing_status ing_store_import(ing_store *s, int fd, const ing_archive_taker *t,
                            ing_archive_report *report, ing_err *e);

/* ---- leases (lease.c): one of many computes, the others wait -------------------------- */

typedef struct ing_lease {
    int dir, fd;
    int64_t owner; /* pid: a forked child must not give it back */
    char name[40];
} ing_lease;

typedef enum ing_lease_state {
    ING_LEASE_HELD,       /* ours; release it */
    ING_LEASE_BUSY,       /* somebody who lives holds it */
    ING_LEASE_IMPOSSIBLE, /* the disk says no: work without */
} ing_lease_state;

/* A lease whose holder is gone, whose time is over or which is from another boot is taken
 * away first. Held at most `ns` nanoseconds: then others may take it. */
ing_lease_state ing_lease_take(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                               uint64_t ns, ing_lease *out);
void ing_lease_release(ing_lease *l);
/* Sleeps until the lease is gone or dead (true), at most `ns` nanoseconds (false). */
bool ing_lease_wait(ing_store *s, ing_entry_kind kind, ing_hash128 key, uint64_t ns);
/* Sleeps until somebody has the lease (true), at most `ns` nanoseconds (false). */
bool ing_lease_expect(ing_store *s, ing_entry_kind kind, ing_hash128 key, uint64_t ns);

#endif
