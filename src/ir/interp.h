/* Between flatten.c and interp.c only: a function as a list of steps.
 *
 * A frame is bytes: parameters first, then one place per value. Scalars, refs and array
 * values take 8 bytes (scalars as in CONST, an array value is the address of its argument
 * words); aggregates are byte blocks in C layout; an ALLOCA has its ref and, behind it, the
 * memory. Offsets are multiples of 8. */
#ifndef ING_IR_INTERP_H
#define ING_IR_INTERP_H

#include "ir/ir_int.h"

enum {                           /* steps that are not operations of op.def */
       ING_STEP_JUMP = ING_OP_N, /* to c */
       ING_STEP_IF_NOT,          /* a = u1; to c when false */
       ING_STEP_LOOP,            /* d = index, a, b = bounds; to c when empty */
       ING_STEP_NEXT,  /* d = index, b = end; to c (the body) while below it */
       ING_STEP_BACK,  /* back edge of a WHILE; to c */
       ING_STEP_COPY,  /* d := a, `size` bytes */
       ING_STEP_PLACE, /* as lowered: random numbers are drawn at place a from here on */
       ING_STEP_AGAIN, /* end of a DO_WHILE, a = array of its flag; to c while not 0 */
};

typedef struct ing_step {
    uint16_t op;
    uint8_t dtype;       /* of operands (arithmetic) or of the result; 0 = aggregate */
    uint8_t from;        /* CAST: source dtype; LOOP, NEXT: 1 = the parallel loop */
    uint32_t d, a, b, c; /* frame offsets, jump targets, immediates */
    uint32_t size;       /* of aggregates in bytes; ELEM, MEMBER_DYN: of an element */
    uint32_t id;         /* the instruction */
} ing_step;

typedef struct ing_flat { /* one function */
    const ing_ir_func *func;
    ing_vec(ing_step) steps;
    uint32_t *off;     /* frame offset of each value */
    uint32_t *params;  /* frame offset of each parameter */
    uint64_t frame;    /* bytes */
    uint32_t ret_size; /* bytes of an aggregate result, 0 for a scalar or none */
} ing_flat;

/* False: no memory. `ordinal` gives the number of a callee in the task; `draws`, of which
 * functions draw random numbers, is for a kernel as lowered only. */
bool ing_ir_flatten(ing_flat *out, const ing_ir_mod *m, uint32_t func,
                    const uint32_t *ordinal, const uint8_t *draws);
void ing_ir_flat_fini(ing_flat *f);

#endif
