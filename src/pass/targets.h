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
    bool spoiled; /* something else touches it */
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
    uint32_t loop;      /* the parallel loop */
    uint8_t *inside;    /* per instruction: in the parallel loop */
    uint8_t *used;      /* per instruction: its value is an operand of another */
    uint8_t *invariant; /* per instruction: the same in every iteration */
    bool random;        /* something draws random numbers */
    bool calls;         /* the loop calls funcs */
    bool failed;        /* no memory */
    ing_map numbers;    /* target -> its number in fates + 1 */
    ing_vec(ing_fate) fates;
} ing_targets;

/* Walks over the task's function. `whole`: what stands around the loop counts too. Members up
 * to qualifies are the caller's; false: no memory. Free it in any case. */
bool ing_targets_init(ing_targets *x, bool whole);
void ing_targets_fini(ing_targets *x);

ing_target ing_target_of(const ing_targets *x, uint32_t ref);
/* Nothing but updates of one kind, all of which qualify, touches what this ATOMIC updates;
 * other arrays of the loop are assumed to lie apart from it (apart.c). */
bool ing_target_alone(ing_targets *x, uint32_t id);

/* Differences are sums. */
static inline uint8_t ing_pass_sum_kind(uint32_t kind) {
    return kind == ING_IR_ATOMIC_SUB ? ING_IR_ATOMIC_ADD : (uint8_t)kind;
}

#endif
