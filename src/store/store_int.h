/* What the files of src/store share: reaching a directory with its checks (dir.c) and
 * the trailer of an entry (entry.c). */
#ifndef ING_STORE_INT_H
#define ING_STORE_INT_H

#include "store/store.h"

#include <endian.h>
#include <string.h>

/* The directory and those of its kinds as readers reached them last, so that a hit need not
 * open them again. Set once; what a number stands for is exchanged atomically (dup3). */
typedef struct ing_store_fds {
    int top;
    int kind[ING_ENTRY_KINDS]; /* -1: not opened yet */
    bool stuck; /* atomic: the lock of values was not to be had the last time */
} ing_store_fds;

struct ing_store {
    char *dir; /* absolute unless the working directory was unreadable */
    ing_counters *counters;
    ing_store_fds *fds;
    bool read_only;   /* root's or ours, and never written (R20) */
    bool sealed;      /* has a manifest: the pack is all there is, and read-only */
    bool quiet;       /* a look of a tool is no use: times of last use stay */
    bool copies;      /* on a network mount: nothing is mapped (R21) */
    ing_pack *pack;   /* NULL: none of use */
    uint64_t entries; /* atomic: in all, as the last put saw it */
    uint64_t seen;    /* atomic: of those, when the pack was made */
    ing_store *below; /* the next layer, owned; only readers go there */
    ing_store_remote remote; /* of the first layer; all NULL: none */
    ing_store_totals bounds; /* of what is put; 0 = no bound */
};

typedef struct ing_layer_want {
    const char *dir;
    bool read_only; /* else of the effective user */
    bool create;    /* when it is missing */
} ing_layer_want;
/* Without its pack. */
ing_status ing_store_open_layer(const ing_layer_want *want, ing_counters *counters,
                                ing_store **out, ing_err *e);

/* How a look at the disk ended. The last two are counted; MISSING is an ordinary miss. */
typedef enum ing_reach {
    ING_REACH_OK,
    ING_REACH_MISSING,
    ING_REACH_FOREIGN, /* wrong owner, mode or type: not to be trusted */
    ING_REACH_FAILED,  /* errno says why */
} ing_reach;

/* The fan-out directory of a key: every level opened without following links and checked
 * on its descriptor. `create` makes what is missing, mode 0700. */
ing_reach ing_store_open_fan(const ing_store *s, char letter, const char hex[33],
                             bool create, int *fd);
/* The entry's file, open and checked (R20), and its size. */
ing_reach ing_store_open_entry(const ing_store *s, ing_entry_kind kind,
                               const char hex[33], int *fd, size_t *size);
/* Owner and mode of an open file or directory of this layer (R20). */
bool ing_store_trusts(const ing_store *s, int fd, bool directory, size_t *size);

/* Whether the size bytes at p are an entry of this kind and key, whole and undamaged. */
bool ing_store_check(const uint8_t *p, size_t size, ing_entry_kind kind,
                     ing_hash128 key);

/* The trailer after a payload that went through a hasher. */
/* Is all of the trailer as it must be, as far as that needs no look at the payload? */
bool ing_store_begins_trailer(const uint8_t trailer[ING_STORE_TRAILER],
                              ing_entry_kind kind, ing_hash128 key, size_t n);
void ing_store_trailer_of(uint8_t out[ING_STORE_TRAILER], ing_entry_kind kind,
                          ing_hash128 key, const ing_hasher *payload, size_t n);

/* Opens `name` for reading, without following links, and checks it (R20). */
ing_reach ing_store_open_file(const ing_store *s, int dir, const char *name, int *fd,
                              size_t *size);
/* The top directory of a kind, made if asked for; of letter 0 the one above all kinds. */
ing_reach ing_store_open_kind(const ing_store *s, char letter, bool create, int *fd);
/* A directory below one that is open, checked in the same way. */
ing_reach ing_store_open_below(const ing_store *s, int at, const char *name, int *fd);
/* The one way out that is neither a hit nor a publication: counts, ING_DECLINED. */
ing_status ing_store_declined(const ing_store *s, ing_reach r);
static inline void ing_store_count(const ing_store *s, ing_counter which) {
    if (s->counters) ing_count(s->counters, which);
}

/* Little-endian numbers of our small files. */
static inline void ing_store_put64(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8 * i);
}
static inline uint64_t ing_store_get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}
uint64_t ing_store_wall_ns(void); /* as file times are: since 1970 */

/* A new file beside the one that it is going to be, which a sweep removes if nobody else
 * does. */
enum { ING_STORE_TEMP = 33 + 1 + 16 + 10 };
int ing_store_open_temp(int dir, const char *hex, char name[ING_STORE_TEMP]);
/* The same for a lease: no part of an entry, and gone in a moment. */
#define ING_STORE_CLAIM ".lease.tmp"
int ing_store_open_claim(int dir, const char *hex, char name[ING_STORE_TEMP]);
bool ing_store_ends_with(const char *name, const char *tail);

/* Writes the entry into this layer and nothing else: no totals, no remote. */
ing_status ing_store_publish(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                             const void *p, size_t n);

/* Kinds that are counted and bounded together, by the first of them: what kernels keep, or
 * values. */
static inline ing_entry_kind ing_store_group(ing_entry_kind kind) {
    return kind == ING_ENTRY_VALUE ? ING_ENTRY_VALUE : ING_ENTRY_IMAGE;
}

/* ---- scan.c -------------------------------------------------------------------------- */

/* What lies in a fan-out directory beside entries. */
typedef enum ing_found { ING_FOUND_ENTRY, ING_FOUND_TEMP, ING_FOUND_LEASE } ing_found;
struct stat;
typedef bool ing_scan_see(void *ctx, int dir, const char *name, ing_found what,
                          const struct stat *st, ing_hash128 key);
ing_status ing_store_scan(const ing_store *s, ing_entry_kind kind, ing_scan_see *see,
                          void *ctx);
ing_store_item ing_store_item_of(const struct stat *st, ing_hash128 key);
bool ing_store_size(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                    uint64_t *bytes);

/* ---- packed.c: what a layer's pack has ----------------------------------------------------- */

/* Opens the pack of a layer that is going to be used; without one of use it is as before. */
void ing_packed_open(ing_store *s);
/* This layer's alone. ING_DECLINED: the pack does not have it, or not as it is now. */
ing_status ing_packed_get(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                          ing_entry *out);
ing_status ing_packed_read(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                           ing_bytes *out);

/* ---- repack.c -------------------------------------------------------------------------------- */

/* What the pack takes of the bounds; 0: there is none. */
uint64_t ing_packed_bytes(const ing_store *s);
/* Under the lock of the sweep: removes what a packer that died left. */
void ing_packed_tidy(const ing_store *s);

/* ---- total.c: the counters file of a group of kinds and its two locks ----------------------- */

typedef struct ing_total {
    ing_store_totals now;
    uint64_t swept;   /* when a sweep ended last, nanoseconds since 1970 */
    uint64_t pending; /* bytes of temporary files; of values only (values.c) */
} ing_total;

typedef enum ing_total_lock { ING_TOTAL_NUMBERS, ING_TOTAL_SWEEP } ing_total_lock;
/* Open, or -1. */
int ing_total_open(const ing_store *s, ing_entry_kind kind, bool create);
/* With the locks that were taken through it. */
void ing_total_close(int fd);
/* Tries for `ms` milliseconds: a stopped process must not stop the others. */
bool ing_total_take(int fd, ing_total_lock which, int ms);
bool ing_total_read(int fd, ing_entry_kind kind, ing_total *out);
bool ing_total_write(int fd, ing_entry_kind kind, const ing_total *t);
/* Around every change. `begin` makes sure that the numbers are there before anything is
 * published, so that nobody counts what another is about to add: -1, or a descriptor for
 * `end`, which adds what changed and closes it. *now are the totals after; false: they are
 * not known. */
int ing_total_begin(const ing_store *s, ing_entry_kind kind);
bool ing_total_end(const ing_store *s, ing_entry_kind kind, int fd, int64_t entries,
                   int64_t bytes, ing_total *now);
bool ing_total_count(const ing_store *s, ing_entry_kind kind, ing_total *out);

/* ---- lease.c --------------------------------------------------------------------------- */

/* Removes a lease that nobody alive holds. False: it is held, or cannot be removed. */
bool ing_lease_heal(const ing_store *s, int dir, const char *name);

#endif
