/* pass: transformations of the IR. pipeline.c is the list, nothing else; the verifier runs
 * between passes. */
#ifndef ING_PASS_H
#define ING_PASS_H

#include "base/base.h"
#include "ir/ir.h"

typedef struct ing_pass_options {
    bool fast_math, debug;
    bool overlap; /* arrays may share memory: assume nothing (R22) */
} ing_pass_options;

typedef enum ing_remark {
#define REMARK(name, array, words) ING_REMARK_##name,
#include "pass/remark.def"
#undef REMARK
    ING_REMARK_N
} ing_remark;
const char *ing_remark_words(uint32_t what);

/* What any target starts from: tasks, whose parallel loops carry their axes. */
ing_status ing_pass_tasks(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
/* Then what processors make of them: rows, lanes, chunks, copies per thread. */
ing_status ing_pass_for_cpu(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
/* Both. */
ing_status ing_pass_run(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
/* Runs one pass by name, for tests of IR text in, text out. */
ing_status ing_pass_run_one(ing_ir_mod *m, const char *name, const ing_pass_options *o,
                            ing_err *e);

#endif
