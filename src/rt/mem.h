/* mem: memory with an owner. Arrays, gradients and fields hold an ing_mem and an offset,
 * never a bare pointer. Kernels get `address + offset` as an argument word; host code asks
 * ing_mem_host for what it reads or writes, and ing_mem_done when it has. Where the host
 * can address the memory that is a pointer and costs nothing; elsewhere it is a copy. */
#ifndef ING_MEM_H
#define ING_MEM_H

#include <stdatomic.h>

#include "base/base.h"

typedef struct ing_mem ing_mem;

/* Where memory lives. One home per memory: there are no mirrored copies. */
typedef struct ing_home {
    const char *name; /* for messages */
    /* Gives m->bytes zeroed bytes: sets address, and host where the host may use it.
     * ING_MEMORY when there are none. */
    ing_status (*alloc)(ing_mem *m);
    void (*free)(ing_mem *m); /* waits for m->last if need be */
    /* Between this memory and the host's; both wait for m->last. NULL where every memory
     * of this home has a host pointer. */
    ing_status (*read)(const ing_mem *m, size_t offset, void *to, size_t bytes);
    ing_status (*write)(ing_mem *m, size_t offset, const void *from, size_t bytes);
    /* Repeats an item of 1, 2, 4 or 8 bytes. */
    ing_status (*fill)(ing_mem *m, size_t offset, size_t bytes, const void *item,
                       size_t size);
} ing_home;

struct ing_mem {
    const ing_home *home;
    uint64_t address; /* as kernels see it */
    uint8_t *host;    /* the same memory for host code, NULL: it cannot be addressed */
    size_t bytes;
    uint64_t last; /* the launch that used it last, 0 = none is under way */
    atomic_uint refs;
    /* Foreign memory: called with `owner` instead of home->free. */
    void (*drop)(void *owner);
    void *owner;
};

/* The memory of this process: aligned to 64 bytes, zeroed (above 256 MiB lazily), in huge
 * pages where they help (memory.c). */
extern const ing_home ing_home_cpu;

/* One reference, the caller's. `bytes` may be 0. ING_MEMORY when there is none. */
ing_status ing_mem_new(const ing_home *home, size_t bytes, ing_mem **out);
/* Memory of this process that somebody else owns; `drop(owner)` gives it back, and is called
 * by whoever gives up the last reference. It is not called when this fails. */
ing_status ing_mem_wrap(void *host, size_t bytes, void (*drop)(void *), void *owner,
                        ing_mem **out);
static inline ing_mem *ing_mem_ref(ing_mem *m) {
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}
void ing_mem_unref(ing_mem *m); /* NULL is fine */

/* Between any two memories; the ranges must not overlap. */
ing_status ing_mem_copy(ing_mem *to, size_t at, ing_mem *from, size_t from_at,
                        size_t bytes);
ing_status ing_mem_fill(ing_mem *m, size_t offset, size_t bytes, const void *item,
                        size_t size);
/* The same for bytes of the host. */
void ing_mem_repeat(void *to, size_t bytes, const void *item, size_t size);

/* ---- host access ------------------------------------------------------------------------ */

typedef enum ing_mem_use {
    ING_MEM_READ = 1,
    ING_MEM_WRITE = 2, /* alone: every byte of the span will be written */
    ING_MEM_BOTH = 3,
} ing_mem_use;

/* Bytes that the host may use until ing_mem_done. Two spans of one memory must not be open
 * at once if one of them writes what the other has. */
typedef struct ing_mem_span {
    uint8_t *at;
    ing_mem *mem; /* NULL: `at` is the memory itself */
    size_t offset, bytes;
    ing_mem_use use;
} ing_mem_span;

ing_status ing_mem_fetch(ing_mem_span *s); /* the slow ways of the two below */
ing_status ing_mem_put_back(ing_mem_span *s);

/* ING_MEMORY when there is no room for a copy, ING_OS when the device fails; never where
 * m->host is set. After a failure there is nothing to be done with the span. */
static inline ing_status ing_mem_host(ing_mem *m, size_t offset, size_t bytes,
                                      ing_mem_use use, ing_mem_span *s) {
    *s = (ing_mem_span){m->host + (m->host ? offset : 0), NULL, offset, bytes, use};
    if (m->host) return ING_OK;
    s->mem = m;
    return ing_mem_fetch(s);
}

/* What was written is in the memory when this returns ING_OK. */
static inline ing_status ing_mem_done(ing_mem_span *s) {
    return s->mem ? ing_mem_put_back(s) : ING_OK;
}

#endif
