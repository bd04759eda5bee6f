/* targets: what the updates of a task's parallel loop point into, and whether anything else
 * touches that. Shared by the passes that take updates out of the loop: reduce.c (one place)
 * and tally.c (many places). */
#ifndef ING_PASS_TARGETS_H
#define ING_PASS_TARGETS_H

#include "pass/pass_int.h"

typedef struct ing_target { /* what an address points into */
    uint16_t op;            /* ARRAY, BUFFER; else 0 */
    uint32_t a;
} ing_target;

typedef struct ing_fate { /* of one target */
    ing_target of;
    uint8_t kind; /* of its first update (ing_pass_sum_kind), + 1 */
    bool spoiled; /* something else touches it, or one place is updated in two ways */
    bool mixed;   /* there are updates of another kind */
    bool loose;   /* some update is at a place that is not known while compiling */
    bool judged;  /* whether it lies apart was asked ... */
    bool granted; /* ... and what was said */
} ing_fate;

typedef struct ing_targets {
    ing_ir_mod *m;
    ing_ir_func *f;
    const ing_pass_options *o;
    const ing_pass_funcs *funcs;
    /* May this ATOMIC of the loop be taken out, as far as it alone can tell? */
    bool (*qualifies)(const struct ing_targets *x, uint32_t id);
    bool one_kind; /* no target may be updated in two ways, wherever */
    bool floats;   /* the caller's */
    ing_ir_scan scan;
    bool failed;     /* no memory */
    ing_map numbers; /* target -> its number in fates + 1 */
    ing_map places;  /* known place of a target -> kind of its updates + 1 */
    ing_vec(ing_fate) fates;
} ing_targets;

/* Walks over the task's function. `whole`: what stands around the loop counts too. Members up
 * to one_kind are the caller's; false: no memory. Free it in any case. */
bool ing_targets_init(ing_targets *x, bool whole);
void ing_targets_fini(ing_targets *x);

ing_target ing_target_of(const ing_targets *x, uint32_t ref);
/* Nothing but updates that qualify touches what this ATOMIC updates, and those of one place are
 * of one kind: all of them, unless the subscripts of all are constants. Other arrays of the loop are assumed to lie apart from it (apart.c). */
bool ing_target_alone(ing_targets *x, uint32_t id);

/* Differences are sums. */
static inline uint8_t ing_pass_sum_kind(uint32_t kind) {
    return kind == ING_IR_ATOMIC_SUB ? ING_IR_ATOMIC_ADD : (uint8_t)kind;
}

#endif
