/* graph: the program of a graph kernel at run time. Made once per variant from its steps;
 * a launch walks it between tasks (ing_rt_order), with no Python and no allocation. */
#ifndef ING_GRAPH_H
#define ING_GRAPH_H

#include "ir/ir.h"
#include "rt/rt.h"

#define ING_GRAPH_NO_STAGE UINT32_MAX

typedef struct ing_graph {
    ing_ir_step *steps;
    uint32_t n;
    ing_rt_fork *forks; /* FORK: step.word is its number here */
    uint32_t *tasks;    /* of the sections of all forks */
    uint32_t *starts;
} ing_graph;

/* Steps that ing_ir_steps_ok accepts; copied. */
ing_status ing_graph_init(ing_graph *g, const ing_ir_step *steps, uint32_t n,
                          ing_err *e);
void ing_graph_fini(ing_graph *g);

typedef struct ing_graph_run { /* one launch */
    const ing_graph *graph;
    const uint64_t *args;
    uint32_t at;      /* the next step */
    uint32_t resume;  /* stage to go on from: all before it is skipped */
    uint32_t yielded; /* out: the stage whose flag ended the launch */
} ing_graph_run;

static inline ing_graph_run ing_graph_start(const ing_graph *g, const uint64_t *args,
                                            uint32_t resume) {
    return (ing_graph_run){g, args, 0, resume, ING_GRAPH_NO_STAGE};
}
uint32_t ing_graph_next(void *run, ing_rt_fork *fork); /* ing_rt_order.next */

#endif
