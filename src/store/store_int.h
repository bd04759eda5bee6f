/* What the files of src/store share: reaching a directory with its checks (dir.c) and
 * the trailer of an entry (entry.c). */
#ifndef ING_STORE_INT_H
#define ING_STORE_INT_H

#include "store/store.h"

enum { ING_STORE_VERSION = 1 };

struct ing_store {
    char *dir; /* absolute unless the working directory was unreadable */
    ing_counters *counters;
};

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
/* Owner and mode of an open file or directory (R20). */
bool ing_store_is_ours(int fd, bool directory, size_t *size);

void ing_store_trailer(uint8_t out[ING_STORE_TRAILER], ing_entry_kind kind,
                       ing_hash128 key, const void *p, size_t n);
/* Whether the size bytes at p are an entry of this kind and key, whole and undamaged. */
bool ing_store_check(const uint8_t *p, size_t size, ing_entry_kind kind,
                     ing_hash128 key);

#endif
