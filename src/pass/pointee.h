/* pointee: what the updates of a task's parallel loop point into, and whether anything else
 * touches that. Shared by the passes that take updates out of the loop: reduce.c (one place)
 * and tally.c (many places). */
#ifndef ING_PASS_POINTEE_H
#define ING_PASS_POINTEE_H

#include "pass/pass_int.h"

typedef struct ing_pointee { /* what an address points into */
    uint16_t op;             /* ARRAY, BUFFER; else 0 */
    uint32_t a;
} ing_pointee;

typedef struct ing_fate { /* of one pointee */
    ing_pointee of;
    uint8_t kind; /* of its first update (ing_pass_sum_kind), + 1 */
    bool spoiled; /* something else touches it, or one place is updated in two ways */
    bool mixed;   /* there are updates of another kind */
    bool loose;   /* some update is at a place that is not known while compiling */
    bool judged;  /* whether it lies apart was asked ... */
    bool granted; /* ... and what was said */
} ing_fate;

typedef struct ing_pointees {
    ing_ir_mod *m;
    ing_ir_func *f;
    const ing_pass_options *o;
    const ing_pass_funcs *funcs;
    /* May this ATOMIC of the loop be taken out, as far as it alone can tell? */
    bool (*qualifies)(const struct ing_pointees *x, uint32_t id);
    bool one_kind; /* none may be updated in two ways, wherever */
    bool floats;   /* the caller's */
    ing_ir_scan scan;
    bool failed;     /* no memory */
    ing_map numbers; /* pointee -> its number in fates + 1 */
    ing_map places;  /* known place in one -> kind of its updates + 1 */
    ing_vec(ing_fate) fates;
} ing_pointees;

/* Walks over the task's function. `whole`: what stands around the loop counts too. Members up
 * to one_kind are the caller's; false: no memory. Free it in any case. */
bool ing_pointees_init(ing_pointees *x, bool whole);
void ing_pointees_fini(ing_pointees *x);

ing_pointee ing_pointee_of(const ing_pointees *x, uint32_t ref);
/* Nothing but updates that qualify touches what this ATOMIC updates, and those of one place are
 * of one kind: all of them, unless the subscripts of all are constants. Other arrays of the loop are assumed to lie apart from it (apart.c). */
bool ing_pointee_alone(ing_pointees *x, uint32_t id);

/* Differences are sums. */
static inline uint8_t ing_pass_sum_kind(uint32_t kind) {
    return kind == ING_IR_ATOMIC_SUB ? ING_IR_ATOMIC_ADD : (uint8_t)kind;
}

#endif
