/* ad: derivatives of kernels, as kernels. A transformation of the IR as lowered, before any
 * pass: the kernel of the module is replaced by one that computes gradients (reverse mode) or
 * duals (forward mode), and from there on it is compiled, cached and run like any other.
 *
 * Derivatives live in arrays beside the arrays: argument k of the module has a companion, an
 * argument of its own, with the same indices and elements (`x.grad`, `x.dual` on the host). */
#ifndef ING_AD_H
#define ING_AD_H

#include "base/base.h"
#include "ir/ir.h"

typedef enum ing_ad_mode {
    ING_AD_NONE,
    ING_AD_REVERSE,
    ING_AD_FORWARD,
    ING_AD_SIZE,  /* how much room the stacks of the reverse kernel need */
    ING_AD_TRACE, /* the kernel itself, which tells what it reads and writes */
    ING_AD_BOUNDS /* as SIZE, of all inner loops */
} ing_ad_mode;

#define ING_AD_STOPPED 0x80000000u

/* companion[k]: number + 1 of the argument that holds the gradients (duals) of argument k, 0:
 * it has none. With ING_AD_STOPPED, what is read there counts as constant (qd.stop_grad), and what
 * is written has its gradient (dual). What cannot be differentiated is refused: ING_COMPILE, with m->bad_loc. */
ing_status ing_ad_reverse(ing_ir_mod *m, const uint32_t *companion, ing_err *e);
/* After the places of fields are known: which arguments must share no memory so that the gradient
 * is right; they are the first of m->apart. Refuses those that always do. */
ing_status ing_ad_settle(ing_ir_mod *m, ing_err *e);
/* Of code for launches in which arrays share memory: those that may be one are not apart. */
void ing_ad_forget_views(ing_ir_mod *m);
/* The kernel that returns, as an i64, how many bytes of scratch each slot of the reverse kernel
 * needs. Of modules with m->sized after ing_ad_reverse. */
ing_status ing_ad_size(ing_ir_mod *m, const uint32_t *companion, ing_err *e);
/* The kernel itself, which tells by PRINT (ING_ABI_READS and on) of elements that the
 * reverse kernel reads again, and of those that it writes: address and bytes of each number. */
ing_status ing_ad_trace(ing_ir_mod *m, const uint32_t *companion, ing_err *e);
/* As ing_ad_size, of any kernel and all inner loops of it, for those who count how often bounds
 * are looked at; 0 where bounds are not known beforehand. */
ing_status ing_ad_bounds(ing_ir_mod *m, const uint32_t *companion, ing_err *e);
ing_status ing_ad_forward(ing_ir_mod *m, const uint32_t *companion, ing_err *e);

/* ---- the derivative of one operation (partial.c) ---------------------------------------- */

/* What the transformations have to do with an operation, by its column in op.def. */
typedef enum ing_ad_class {
    ING_AD_NOTHING, /* nothing of it has a derivative, or it is 0 everywhere */
    ING_AD_ARITH,   /* ing_ad_partial */
    ING_AD_CARRY,   /* it moves values or steers: known to each transformation */
    ING_AD_REFUSE,  /* refused of a value that has a derivative */
    ING_AD_LATE     /* never in a module as lowered */
} ing_ad_class;
ing_ad_class ing_ad_class_of(uint32_t op);
/* Do the bits that this BITCAST makes become a float again at once, and nothing else? So functions that know
 * their derivative take a value as constant (ingot/_linalg.py). */
bool ing_ad_only_returns(const ing_ir_func *f, uint32_t id);

typedef enum ing_ad_factor_kind {
    ING_AD_ZERO,
    ING_AD_ONE,
    ING_AD_MINUS, /* -1 */
    ING_AD_VALUE,
    ING_AD_IF,    /* 1 if a u1 holds, else 0: the operation took the other operand */
    ING_AD_UNLESS /* the opposite */
} ing_ad_factor_kind;

typedef struct ing_ad_factor {
    ing_ad_factor_kind kind;
    /* of ING_AD_VALUE: an instruction, of the operation's float type; of ING_AD_IF and ING_AD_UNLESS: a u1 */
    uint32_t value;
} ing_ad_factor;

/* The derivative of the arithmetic operation `op` (ing_op_is_arith) by operand 0 or 1, at
 * operands x and y (0: it has one) with result r: instructions of the builder's function, of a
 * float type. Emits what it needs there. */
ing_ad_factor ing_ad_partial(ing_ir_builder *b, uint32_t op, uint32_t operand,
                             uint32_t x, uint32_t y, uint32_t r);
/* Which of them it reads: bit 1 = x, 2 = y, 4 = r. The others may be 0. */
uint32_t ing_ad_partial_reads(uint32_t op, uint32_t operand);
/* May the operation's result or a derivative be infinite or NaN at finite operands? Sums and
 * products that grow too large do not count. `id`: an instruction of f. */
bool ing_ad_is_wild(const ing_ir_func *f, uint32_t id);

#endif
