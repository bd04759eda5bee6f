/* gen: target code from IR. Today one target: LLVM IR text for the CPU, compiled by a
 * helper process (src/compile/helper.c). */
#ifndef ING_GEN_H
#define ING_GEN_H

#include "base/base.h"
#include "ir/ir.h"

typedef struct ing_gen_options {
    bool fast_math;
    /* Vector functions that images may import (ing_image_vector_math): 0 = none, 1 = sin,
     * cos, exp, log, pow, 2 = the rest too. */
    uint8_t vector_math;
    uint32_t opt_level;
    const char *isa_level; /* "x86-64-v3" ... */
} ing_gen_options;

/* LLVM IR text of a module with exactly one task (ing_ir_extract_task); defines
 * ING_ABI_ENTRY with the task ABI. */
ing_status ing_gen_llvm(const ing_ir_mod *m, const ing_gen_options *o, ing_bytes *out,
                        ing_err *e);
/* The option line for the helper. */
void ing_gen_helper_options(const ing_gen_options *o, ing_bytes *out);
/* What of the options belongs in an image key, tagged into the hasher (R18). */
void ing_gen_key(const ing_gen_options *o, ing_hasher *h);

#endif
