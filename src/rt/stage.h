/* stage: copies of arrays for a target that cannot address their memory. */
#ifndef ING_STAGE_H
#define ING_STAGE_H

#include "rt/mem.h"

typedef struct ing_stage ing_stage; /* of one launch */

typedef struct ing_staged { /* memory that a launch needs at the target */
    ing_mem *mem;
    size_t offset, bytes;
    uint32_t word; /* of the arguments, that names it */
    bool written;
} ing_staged;

/* Makes *stage if it is NULL. `home` is the target's. The second is for memory of the host,
 * which stays until the launch is over; s->mem is not looked at. */
ing_status ing_stage_add(ing_stage **stage, const ing_home *home, const ing_staged *s,
                         ing_err *e);
ing_status ing_stage_add_host(ing_stage **stage, const ing_home *home, void *data,
                              const ing_staged *s, ing_err *e);
/* Copies, and puts the copies' addresses into the words. */
ing_status ing_stage_in(ing_stage *s, uint64_t *words, ing_counters *n, ing_err *e);
/* Copies back what was written; false: some of it is lost. */
bool ing_stage_out(const ing_stage *s, ing_counters *n);
void ing_stage_free(ing_stage *s); /* NULL is fine */

#endif
