/* The list of passes, nothing else; the verifier runs between them. Called by the
 * conductor (ing_pass_run) and by tests (ing_pass_run_one). Up to the costs they hold for any
 * target: tasks, and loops that carry their axes. The others shape the tasks for processors: rows,
 * lanes, chunks, copies per thread. */
#include "pass/pass_int.h"

#include <string.h>

typedef ing_status (*pass_fn)(ing_ir_mod *, const ing_pass_options *, ing_err *);

static const struct {
    const char *name;
    pass_fn run;
    bool shapes;
} passes[] = {
    {"promote", ing_pass_promote, false},   /* locals assigned once become values */
    {"simplify", ing_pass_simplify, false}, /* fold constants, drop what is dead */
    {"recip", ing_pass_recip, false},       /* divisions by one value become products */
    {"subscript", ing_pass_subscript, false}, /* what only subscripts use cannot wrap */
    {"split", ing_pass_split, false},         /* the kernel becomes tasks */
    {"inline", ing_pass_inline, false},       /* funcs that update memory of others */
    {"demote", ing_pass_demote, false},       /* atomics that need not be */
    {"cost", ing_pass_cost, false},           /* how heavy each task is */
    {"shape", ing_pass_shape, true},   /* loops over several axes: a loop for each */
    {"stride", ing_pass_stride, true}, /* every m-th index of a checkerboard */
    {"unroll", ing_pass_unroll, true}, /* short loops in serial ones */
    {"swap", ing_pass_swap, true},     /* the loop that goes along rows goes inside */
    {"hold", ing_pass_hold, true}, /* what a serial loop updates is held in a local */
    {"reduce", ing_pass_reduce, true}, /* sums into one place get lanes of their own */
    {"tally", ing_pass_tally,
     true}, /* integers at many places: a copy for each thread */
    {"lanes", ing_pass_lanes, true}, /* columns go through a serial loop side by side */
    {"extreme", ing_pass_extreme, true}, /* the least of floats, without a branch */
    {"weave", ing_pass_weave, true}, /* loops whose iterations have an order inside */
    {"turn", ing_pass_turn, true},   /* tiles whose columns are rows of others */
    {"apart", ing_pass_apart,
     true}, /* what loops read at one place and write elsewhere */
    {"early", ing_pass_early, true},     /* loops that have nothing left to do end */
    {"remarks", ing_pass_remarks, true}, /* what was decided, for people */
};

enum { N_PASSES = sizeof passes / sizeof passes[0] };

static ing_status run(ing_ir_mod *m, const ing_pass_options *o, bool shapes,
                      ing_err *e) {
    for (uint32_t k = 0; k < N_PASSES; k++) {
        if (passes[k].shapes != shapes) continue;
        ING_TRY(passes[k].run(m, o, e));
        ING_TRY(ing_ir_verify(m, e));
    }
    return ING_OK;
}

ing_status ing_pass_tasks(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ING_TRY(ing_ir_verify(m, e));
    return run(m, o, false, e);
}

ing_status ing_pass_for_cpu(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    return run(m, o, true, e);
}

ing_status ing_pass_run(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ING_TRY(ing_pass_tasks(m, o, e));
    return ing_pass_for_cpu(m, o, e);
}

ing_status ing_pass_run_one(ing_ir_mod *m, const char *name, const ing_pass_options *o,
                            ing_err *e) {
    ING_TRY(ing_ir_verify(m, e));
    for (uint32_t k = 0; k < N_PASSES; k++) {
        if (strcmp(passes[k].name, name) != 0) continue;
        ING_TRY(passes[k].run(m, o, e));
        return ing_ir_verify(m, e);
    }
    return ing_fail(e, ING_VALUE, "there is no pass named %s", name);
}
