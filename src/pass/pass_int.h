/* What the passes share with the list in pipeline.c. A pass takes a verified module and
 * leaves a verified one; it is linear in the size of the IR and recurses over blocks only. */
#ifndef ING_PASS_INT_H
#define ING_PASS_INT_H

#include "pass/pass.h"

ing_status ing_pass_promote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_simplify(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_split(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_demote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_cost(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_rows(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
ing_status ing_pass_reduce(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);

static inline ing_status ing_pass_done(const ing_ir_mod *m, ing_err *e) {
    return ing_ir_ok(m) ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for a pass");
}

#endif
