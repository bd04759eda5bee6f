/* Between lanes.c (where lanes pay) and lanes_emit.c (writing them) only.
 *
 * In a parallel loop, or one whose iterations are independent, around a serial one, or several, as in a
 * product of matrices,
 *
 *   loop parallel c = from, to
 *     pre(c)
 *     loop k = a, b
 *       body(k, c)          reads b[k, c]: another line of memory for each k
 *     post(c)
 *
 * the serial loop walks down a column, and no compiler vectorises the other one. So a number
 * of columns go down side by side, each in a lane of its own:
 *
 *   loop parallel block = 0, (to - from) / L
 *     loop lane = 0, L:  pre(from + block * L + lane)
 *     loop k = a, b
 *       loop lane = 0, L:  body(k, from + block * L + lane)
 *     loop lane = 0, L:  post(from + block * L + lane)
 *
 * and the rest, fewer than L, likewise with a trip count that is not known. The serial loop cuts
 * the body into stretches, and so does a branch that all columns take or none (hold.c makes
 * such); each has a loop over lanes of its own. A local becomes an array with an element for each
 * lane; so does what one stretch loads and another uses. What it computes is computed again.
 *
 * Rules
 *  LANES1 the loops hold nothing but arithmetic, loads, stores, scalar locals and plain updates of
 *     these; the bounds of the serial loop and the conditions of branches, which hold no more
 *     than that either, are the same for all columns.
 *  LANES2 it pays: what the serial loop touches is either the same for all columns or a
 *     neighbour in the next one, and for some of it the next k is another row, or an iteration
 *     of the serial loop waits for the one before.
 *  LANES3 each column does what it did, in that order (ING_IR_ORDERED), so neither L nor where a
 *     piece begins changes a result (R23).
 *  LANES4 entries of the columns' stacks (SCRATCH) lie side by side, a whole block of them for
 *     each: there is room for ING_LANES times as much. Where to is the same for all columns.
 *  LANES5 columns of a serial loop are independent: it writes to arrays alone, at places where no other
 *     column reads or writes (ACCESS5), and other arrays lie apart from these (apart.c). A local
 *     from outside is read. */
#ifndef ING_PASS_LANES_H
#define ING_PASS_LANES_H

#include "pass/pass_int.h"

/* 8 registers of 8 floats: enough sums under way to hide that each takes 4 cycles. A half or a
 * quarter where a serial loop changes so many locals that no more stays in registers. */
enum { ING_LANES = 64 };

typedef struct ing_lanes {
    ing_ir_mod *m;
    uint32_t func;
    const ing_ir_func *f;
    uint32_t loop,
        inner; /* the loop over columns, and a serial one in it that is looked at */
    ing_ir_scan scan;
    uint8_t *needed; /* per instruction of the body: used by another stretch */
    uint32_t lanes;  /* ING_LANES, a half or a quarter of them */
} ing_lanes;

/* Not the same in all columns. */
static inline bool ing_lanes_varies(const ing_lanes *l, uint32_t id) {
    return ing_ir_varies(&l->scan, id, l->loop);
}

static inline bool ing_lanes_pure(const ing_ir_inst *i) {
    return ing_op_is_pure(i->op);
}

/* Rewrites the function. False: no memory. */
bool ing_lanes_emit(ing_lanes *l);

#endif
