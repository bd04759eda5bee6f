/* launch: from compiled code to what the runtime runs, on plain C descriptors. The loop
 * that reads Python arguments is src/py/call/call.c. */
#ifndef ING_LAUNCH_H
#define ING_LAUNCH_H

#include "compile/compile.h"
#include "rt/rt.h"

static inline uint64_t ing_launch_bytes(const ing_record_array *a,
                                        const uint64_t *words) {
    uint64_t n = a->span ? a->span : a->size;
    for (uint32_t k = 1; k <= a->ndim; k++) n *= words[a->word + k];
    return n;
}

/* Do arrays that the code takes to lie apart share memory in this launch (R22)? Of the first n
 * pairs. */
static inline bool ing_launch_shares(const ing_record *r, const uint64_t *words,
                                     uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const ing_record_array *a = &r->arrays.at[r->apart.at[i].a];
        const ing_record_array *b = &r->arrays.at[r->apart.at[i].b];
        uint64_t p = words[a->word] + a->at, q = words[b->word] + b->at;
        if (p < q + ing_launch_bytes(b, words) && q < p + ing_launch_bytes(a, words))
            return true;
    }
    return false;
}

/* Parts of one memory that are no equal arrays, or have two gradients (overlap.c). */
bool ing_launch_has_parts(const ing_record *r, const uint64_t *words);

typedef struct
    ing_launch_apart { /* what the last launch of a variant found (overlap.c) */
    uint64_t *words;   /* addresses and extents of record.arrays then; NULL: none yet */
    bool overlaps;
} ing_launch_apart;

enum { ING_LAUNCH_FEW_PAIRS = 8 }; /* are compared as fast as words are remembered */

bool ing_launch_overlaps_of_many(const ing_record *r, ing_launch_apart *last,
                                 const uint64_t *words);

static inline bool ing_launch_overlaps(const ing_record *r, ing_launch_apart *last,
                                       const uint64_t *words) {
    if (r->apart.len <= ING_LAUNCH_FEW_PAIRS)
        return ing_launch_shares(r, words, r->apart.len);
    return ing_launch_overlaps_of_many(r, last, words);
}

typedef struct ing_launch_interp { /* what an interpreted task needs */
    const ing_ir_mod *mod;
    uint32_t task;
} ing_launch_interp;

typedef struct ing_launch_tasks {
    ing_rt_task *at;
    uint32_t n;
    ing_launch_interp *interp; /* NULL when native */
} ing_launch_tasks;

/* The runtime's task table for compiled code, which must outlive it. */
ing_status ing_launch_tasks_init(ing_launch_tasks *t, const ing_code *code, ing_err *e);
void ing_launch_tasks_fini(ing_launch_tasks *t);

#endif
