/* gen: target code from IR: LLVM IR text, compiled by a helper process
 * (src/compile/helper.c). What differs between targets is an ing_gen_target. */
#ifndef ING_GEN_H
#define ING_GEN_H

#include "base/base.h"
#include "ir/ir.h"

typedef struct ing_gen_level { /* of instructions: what code may count on */
    const char *name;
    uint16_t vector_bits; /* of the vector library's functions, 0 = it has none */
    bool fma;             /* a product and a sum, rounded once, as one instruction */
} ing_gen_level;

typedef struct ing_gen_target {
    const char *triple, *layout; /* as LLVM names them */
    const char *features;        /* of every text, likewise */
    const char *level;           /* of instructions, when the options name none */
    const ing_gen_level *levels; /* those with more than others; the last has no name */
    /* Text of the functions ING_ABI_POLL and ING_ABI_PRINT, those that code calls: defined
     * here, or declared where a library or the driver has them. */
    void (*put_services)(ing_bytes *out, bool poll, bool print, bool room);
} ing_gen_target;

extern const ing_gen_target ing_gen_cpu; /* cpu.c */

typedef struct ing_gen_options {
    const ing_gen_target *target;
    bool fast_math;
    /* Vector functions that images may import (ing_image_vector_math): 0 = none, 1 = sin,
     * cos, exp, log, pow, 2 = the rest too. */
    uint8_t vector_math;
    uint32_t opt_level;
    const char *isa_level; /* "x86-64-v3" ... */
    /* Instructions of a part (llvm_parts.c), 0 = as measured. For tests: others than that are
     * not found by tools. */
    uint32_t part_size;
} ing_gen_options;

typedef ing_vec(ing_bytes) ing_gen_texts;

/* LLVM IR text of a module with exactly one task (ing_ir_extract_task); defines
 * ING_ABI_ENTRY with the task ABI. Appends one text, or several that are compiled apart and
 * linked: those of a long module. Also on failure the caller ends `out`. */
ing_status ing_gen_llvm(const ing_ir_mod *m, const ing_gen_options *o,
                        ing_gen_texts *out, ing_err *e);
void ing_gen_texts_fini(ing_gen_texts *t);
/* The option line for the helper. */
void ing_gen_helper_options(const ing_gen_options *o, ing_bytes *out);
/* What of the options belongs in an image key, tagged into the hasher (R18). */
void ing_gen_key(const ing_gen_options *o, ing_hasher *h);

#endif
