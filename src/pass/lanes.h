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
 *  LANES1 the loops hold nothing but arithmetic, loads, stores, scalar locals, plain updates of
 *     these and branches with no more than that; where the parallel loop is over columns, updates by
 *     whichever thread too, outside of serial loops. Branches that columns may take apart stand
 *     outside of serial loops.
 *  LANES2 it pays: what the serial loop touches is either the same for all columns or a
 *     neighbour in the next one, and for some of it the next k is another row, or an iteration
 *     of the serial loop waits for the one before.
 *  LANES3 each column does what it did, in that order (ING_IR_ORDERED), so neither L nor where a
 *     piece begins changes a result (R23).
 *  LANES4 entries of the columns' stacks (SCRATCH) lie side by side, a whole block of them for
 *     each: there is room for ING_LANES times as much. Where to is the same for all columns.
 *  LANES5 columns of a serial loop are independent: it writes to arrays alone, at places where no other
 *     column reads or writes (ACCESS5), and other arrays lie apart from these (apart.c). A local
 *     from outside is read.
 *  LANES6 a serial loop adds to one and the same place in all columns: their terms are added up by
 *     halves, and the place is updated once. Nothing else in the task touches that array
 *     (pointee.h), so that nobody sees that the update comes after those of other columns.
 *  LANES7 columns have serial loops of different lengths: it runs as often as the longest wants, and a column
 *     that is done, or has not begun, leaves its locals as they are. Such a loop writes to locals and
 *     stacks alone (LANES6 apart), and reads of arrays what is the same for all columns. If its
 *     subscripts count from its end, as those of backward loops do (n - 1 - k), columns end
 *     together, else they begin together: that subscript is the same for all then.
 *  LANES8 the end of a stack (ROOM) is the farthest of the columns', and stands for it in the places
 *     of stacks, which are the only use of it.
 *  LANES9 a loop over rows around the columns goes inside of the one over blocks where a serial loop reads, of
 *     some array, the same for each row: that much of it stays in the cache while all rows pass.
 *     Nothing else stands in the loop over rows; a row may have more columns than others.
 *  LANES10 a serial loop of columns with stacks may hold serial loops, as those do that go through long ones in
 *     segments: none in these in turn, all as long in each column. What is the same for all columns is made
 *     once; everything else that one stretch hands to another is in locals. */
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
    uint8_t *role;   /* per instruction: ING_LANES_ */
    uint8_t *other;  /* per instruction: has uses other than places of stacks */
    uint32_t lanes;  /* ING_LANES, a half or a quarter of them */
    /* LANES9: the loop over rows; 0: it stays outside, or there is none */
    uint32_t rows;
} ing_lanes;

enum {                        /* roles */
       ING_LANES_EVEN = 1,    /* the same for all columns by LANES7 or LANES8 */
       ING_LANES_SUM = 2,     /* an update by LANES6 */
       ING_LANES_LEVEL = 4,   /* a ROOM, or the end of a stack, by LANES8 */
       ING_LANES_BEGIN = 8,   /* a serial loop by LANES7: columns begin together */
       ING_LANES_END = 16,    /* they end together */
       ING_LANES_MIRROR = 32, /* n - 1 - k of such a loop */
       ING_LANES_RAGGED = ING_LANES_BEGIN | ING_LANES_END,
};

/* Not the same in all columns. */
static inline bool ing_lanes_varies(const ing_lanes *l, uint32_t id) {
    return ing_ir_varies(&l->scan, id, l->loop) && !(l->role[id] & ING_LANES_EVEN);
}

static inline bool ing_lanes_pure(const ing_ir_inst *i) {
    return ing_op_is_pure(i->op);
}

/* Does it end a stretch of the loop over columns? */
static inline bool ing_lanes_cuts(const ing_lanes *l, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(l->f, id);
    return i->op == ING_OP_LOOP ||
           (i->op == ING_OP_ROOM && l->role[id] & ING_LANES_LEVEL) ||
           (i->op == ING_OP_IF && !ing_lanes_varies(l, i->a));
}

/* lanes_ragged.c, LANES7 and LANES8. */
void ing_lanes_find_stacks(ing_lanes *l);
/* Finds what is the same for all columns in a serial loop, or gives up. */
bool ing_lanes_level_loop(ing_lanes *l, uint32_t loop);
/* The ROOM stands for all columns from here on; false: its end has other uses. */
bool ing_lanes_level_room(ing_lanes *l, uint32_t room);
/* A pure instruction of things that are the same for all columns is. */
void ing_lanes_find_even(ing_lanes *l, uint32_t id);
/* May it stand in a ragged loop? */
bool ing_lanes_ragged_ok(const ing_lanes *l, uint32_t id);

/* Rewrites the function. False: no memory. */
bool ing_lanes_emit(ing_lanes *l);

#endif
