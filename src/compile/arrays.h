/* arrays: what a record says about the arrays of its code (arrays.c). */
#ifndef ING_COMPILE_ARRAYS_H
#define ING_COMPILE_ARRAYS_H

#include "ir/ir.h"
#include "record/record.h"

/* Pairs that the passes took to lie apart. False: no memory. */
bool ing_arrays_apart(ing_record *r, const ing_ir_mod *m);
/* What each task reads and writes. */
ing_status ing_arrays_touched(ing_record *r, const ing_ir_mod *m, ing_err *e);

#endif
