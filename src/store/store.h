/* store: immutable, checksummed entries on disk (R17, R20, R21). One layer for now: the
 * user's own directory, read-write.
 *
 * An entry is its payload, then a 64-byte trailer (little-endian):
 *   0  8  magic "INGOTENT"      8  4  kind      12  4  format version
 *  16 16  key (lo, hi)         32  8  payload length    40 16  XXH3-128 of bytes
 *  [0, length) and of trailer [0, 40)          56  8  zero
 * File name: <dir>/<kind letter: i, v, x>/<first 2 hex of key>/<key hex>. Published by
 * writing a temporary file (.tmp) in the same directory and renaming it; readers take no
 * lock; a hit writes nothing. Anything wrong is a miss plus a counter, never an error. */
#ifndef ING_STORE_H
#define ING_STORE_H

#include "base/base.h"

typedef enum ing_entry_kind { ING_ENTRY_IMAGE = 1, ING_ENTRY_VARIANT = 2, ING_ENTRY_INDEX = 3 } ing_entry_kind;
enum { ING_STORE_TRAILER = 64, ING_STORE_MAX_ENTRY = 256 << 20 };

typedef struct ing_store ing_store;

/* Opens (creates with mode 0700 when missing) the directory. ING_DECLINED with the reason
 * in e when it cannot be used (owner, mode, not a directory, no permission): run on memory. */
ing_status ing_store_open(const char *dir, ing_counters *counters, ing_store **out, ing_err *e);
void ing_store_close(ing_store *s);
const char *ing_store_dir(const ing_store *s);

/* Default directory into out: INGOT_CACHE_DIR, else $XDG_CACHE_HOME/ingot, else
 * $HOME/.cache/ingot (home of the effective user when HOME is unset). ING_DECLINED: none. */
ing_status ing_store_default_dir(ing_bytes *out, ing_err *e);

typedef struct ing_entry { /* a mapped, checked entry */
    const uint8_t *data;
    size_t len;      /* payload */
    void *map;
    size_t map_len;
    int fd;          /* open, read-only; -1 once taken */
} ing_entry;

/* ING_OK: checked (owner, mode, magic, kind, version, key, length, checksum) and mapped
 * read-only. ING_DECLINED: a miss of any kind. */
ing_status ing_store_get(ing_store *s, ing_entry_kind kind, ing_hash128 key, ing_entry *out);
void ing_entry_fini(ing_entry *e);
/* Publishes; ING_DECLINED (and a counter) when the disk says no. */
ing_status ing_store_put(ing_store *s, ing_entry_kind kind, ing_hash128 key, const void *p, size_t n);

#endif
