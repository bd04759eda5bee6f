/* Copies of arrays for a target that cannot address their memory (stage.c). Internal to
 * src/py. */
#ifndef ING_PY_STAGE_H
#define ING_PY_STAGE_H

#include "py/py.h"

typedef struct ing_py_stage ing_py_stage; /* of one launch */

typedef struct ing_py_staged { /* memory that a launch needs at the target */
    ing_mem *mem;
    size_t offset, bytes;
    uint32_t word; /* of the arguments, that names it */
    bool written;
} ing_py_staged;

/* Makes *stage if it is NULL. `home` is the target's. The second is for memory of the host,
 * which stays until the launch is over; s->mem is not looked at. */
ing_status ing_py_stage_add(ing_py_stage **stage, const ing_home *home,
                            const ing_py_staged *s, ing_err *e);
ing_status ing_py_stage_add_host(ing_py_stage **stage, const ing_home *home, void *data,
                                 const ing_py_staged *s, ing_err *e);
/* Copies, and puts the copies' addresses into the words. */
ing_status ing_py_stage_in(ing_py_state *st, ing_py_stage *s, uint64_t *words,
                           ing_err *e);
/* Copies back what was written; false: some of it is lost. Raises nothing. */
bool ing_py_stage_out(ing_py_state *st, ing_py_stage *s);
void ing_py_stage_free(ing_py_stage *s); /* NULL is fine */

#endif
