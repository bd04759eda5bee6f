/* launch: from compiled code to what the runtime runs, on plain C descriptors. The loop
 * that reads Python arguments is src/py/call.c. */
#ifndef ING_LAUNCH_H
#define ING_LAUNCH_H

#include "compile/compile.h"
#include "rt/rt.h"

typedef struct ing_launch_interp { /* what an interpreted task needs */
    const ing_ir_mod *mod;
    uint32_t task;
} ing_launch_interp;

typedef struct ing_launch_tasks {
    ing_rt_task *at;
    uint32_t n;
    ing_launch_interp *interp; /* NULL when native */
} ing_launch_tasks;

/* The runtime's task table for compiled code, which must outlive it. */
ing_status ing_launch_tasks_init(ing_launch_tasks *t, const ing_code *code, ing_err *e);
void ing_launch_tasks_fini(ing_launch_tasks *t);

#endif
