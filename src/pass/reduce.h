/* Between reduce.c (what is a reduction) and reduce_emit.c (writing it) only.
 *
 * A parallel loop whose iterations all update one place (`s[None] += x[i]`, a minimum, a
 * bitwise or) would spend its time on contended atomics and give another float sum each
 * time. Such updates go to lanes instead (R23): the loop runs over chunks of a fixed number
 * of iterations counted from its start, a chunk over blocks of `lanes` iterations, and
 * iteration k of a block updates lane k:
 *
 *   loop parallel i = begin, end       if task.chunk < 0 { for each chunk c: t = t + partial[c]
 *     atomic s, f(i), add                                  atomic s, t, add;  return }
 *                                =>    loop c = 0, (end - begin + C - 1) / C
 *                                        lane[0..L) = rest[0..L) = neutral
 *                                        loop blk = 0, (e - b) / L
 *                                          loop parallel k = 0, L
 *                                            i = b + blk * L + k
 *                                            lane[k] = lane[k] + f(i)
 *                                        loop k = 0, (e - b) % L:  rest[k] = rest[k] + f(i)
 *                                        rest[k] += lane[k]
 *                                        rest[k] += rest[k + w] for w = L/2, L/4, ... 1
 *                                        partial[task.chunk + c] = rest[0]
 *
 * The order of all additions is thus fixed by the trip count alone: not by threads, grain or
 * ISA level. Lanes are independent, so LLVM vectorises the loop without reordering sums; there are
 * as many as registers hold (REDUCE6), and since whole blocks alone touch `lane`, at places that
 * are known, LLVM keeps it in them: three sums of 4 M f32 take 0.9 ms, with 256 lanes in memory 1.6.
 * Rules
 *  REDUCE1 an ATOMIC qualifies when it is of a scalar type but u1, not XCHG, its old value is not
 *     used, and its address does not depend on the iteration.
 *  REDUCE2 nothing else in the loop may touch the array (or launch-buffer slot) it points into:
 *     no load, store, other atomic, nor a call that is given it. Two updates of one array
 *     must be of one kind (sums and differences are).
 *  REDUCE3 partial results of floats are f64, f16 is summed in f32; neutral elements leave any
 *     target as it is (-0.0 for sums, NaN for minimum and maximum).
 *  REDUCE4 a loop that draws random numbers keeps its index, from which their stream is made;
 *     its lane is the index modulo L.
 *  REDUCE5 another array that the loop touches is assumed to share no memory with the target
 *     (apart.c): through it, an iteration would see the target without its own update.
 *  REDUCE6 a loop that is short and has nothing in it but branches is written twice, for whole
 *     blocks and for the rest, with 16 to 64 lanes, by the size of what it sums up. Others, which
 *     LLVM would not vectorise or which hold updates for tally.c, have 256 lanes in memory.
 *  REDUCE7 an update in a branch is made in each iteration, of a neutral element where the branch
 *     is not taken: LLVM vectorises that. Not where an iteration can end early.
 *  REDUCE8 loops over lanes in registers are written as vectors (ING_IR_WIDE), and what is left of the
 *     blocks and the combining of chunks stay loops as they are (ING_IR_RARE). LLVM would unroll and
 *     vectorise each: of 60 ms for a minimum with a condition, 26 remain. */
#ifndef ING_PASS_REDUCE_H
#define ING_PASS_REDUCE_H

#include "pass/pass_int.h"

typedef struct ing_reduce_sum { /* one ATOMIC that goes to lanes */
    uint32_t id;                /* of the old function */
    uint32_t ref;               /* what it updates, id of the old function */
    uint8_t kind;               /* ing_ir_atomic of the lanes: SUB sums up */
    uint8_t final;              /* and of the target */
    ing_dtype lane, part;       /* types of a lane and of a partial result */
    bool branch;                /* REDUCE7 */
} ing_reduce_sum;

typedef struct ing_reduce {
    ing_ir_mod *m;
    ing_ir_task *task;
    ing_ir_func *f;
    uint32_t loop; /* the parallel loop */
    bool random;   /* REDUCE4 */
    bool twice;    /* REDUCE6 */
    uint32_t lanes;
    uint32_t n;
    ing_reduce_sum sums[ING_IR_MAX_PARTIALS];
} ing_reduce;

/* Rewrites the task's function. False: no memory. */
bool ing_reduce_emit(ing_reduce *r);

#endif
