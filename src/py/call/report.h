/* What a compile was made of and where its time went: one line per kernel for the topic `compile`
 * of log.c, and a span in the trace that INGOT_TRACE asks for. Called by variant.c. */
#ifndef ING_PY_REPORT_H
#define ING_PY_REPORT_H

#include "py/call/kernel.h"

typedef struct ing_py_report {
    uint32_t nodes; /* of the syntax trees, each counted once */
    uint32_t funcs,
        calls;      /* func instances that were lowered, and calls that share them */
    uint32_t insts; /* of the IR as lowered */
    uint64_t began, front_ns;
    bool wanted; /* somebody listens */
    ing_engine_report engine;
} ing_py_report;

void ing_py_report_front(ing_py_report *p, const ing_py_kernel *k,
                         const ing_front_result *r);
ing_status ing_py_report_show(const ing_py_report *p, const ing_py_kernel *k);

#endif
