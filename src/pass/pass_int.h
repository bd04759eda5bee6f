/* What the passes share with the list in pipeline.c. A pass takes a verified module and
 * leaves a verified one; it is linear in the size of the IR and recurses over blocks only. */
#ifndef ING_PASS_INT_H
#define ING_PASS_INT_H

#include "ir/access.h"
#include "pass/pass.h"

ing_status ing_pass_promote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_simplify(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_recip(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_subscript(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_split(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_inline(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_demote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_cost(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_shape(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_stride(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_unroll(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_swap(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_hold(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_lanes(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_extreme(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_reduce(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_tally(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_apart(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_weave(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_turn(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_early(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);

enum { /* what funcs do to an array that they name by themselves */
       ING_PASS_NAMED = 1,
       ING_PASS_WRITTEN = 2,
};
/* Notes a decision about instruction `loc` of f, and about array argument `arg` where the remark is of
 * one. Words are all that is lost without memory. */
void ing_pass_remark(ing_ir_mod *m, const ing_ir_func *f, uint32_t loc, ing_remark what,
                     uint32_t arg);
/* What can be told of the tasks at the end. */
ing_status ing_pass_remarks(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);

typedef struct ing_pass_funcs { /* funcs.c: what the funcs of a module do, together */
    uint8_t *named;             /* per argument: the above; 0: no func names it */
    uint64_t *writes;           /* per func: parameters that it writes through */
    bool atomic, random;        /* some func updates atomically, draws random numbers */
    bool stops;                 /* some func has a CHECK */
} ing_pass_funcs;
bool ing_pass_funcs_init(ing_pass_funcs *s, const ing_ir_mod *m); /* false: no memory */
void ing_pass_funcs_fini(ing_pass_funcs *s);
/* May the func write to what this parameter points to? */
bool ing_pass_func_writes(const ing_pass_funcs *s, uint32_t func, uint32_t param);

enum { ING_PASS_MAX_TILE = 1024 }; /* places of a tile that is turned (turn.c) */
/* What a level of a field takes from its subscript in an ELEM; *whole: that value itself, not what is
 * left of it after a division. */
uint32_t ing_pass_level_index(const ing_ir_mod *m, const ing_ir_func *f, uint32_t elem,
                              uint32_t level, bool *whole);

/* Whether n more pairs of arrays may be assumed to share no memory; then say which. */
bool ing_pass_may_assume(const ing_ir_mod *m, const ing_pass_options *o, uint32_t n);
void ing_pass_assume_apart(ing_ir_mod *m, uint32_t a, uint32_t b); /* arguments */
/* That arrays which the loop writes lie apart from all others in it; false: that cannot be assumed. */
bool ing_pass_assume_all_apart(ing_ir_mod *m, const ing_pass_options *o,
                               const ing_ir_scan *s, uint32_t loop);

static inline ing_status ing_pass_done(const ing_ir_mod *m, ing_err *e) {
    return ing_ir_ok(m) ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for a pass");
}

#endif
