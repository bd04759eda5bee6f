/* record: a compiled variant as bytes and back (R17): the trace it may be reused under,
 * where each argument goes, its tasks with the keys of their images, results, messages,
 * warnings, and where the trees of its functions are found for run-time errors. Plain C;
 * src/py turns it into a variant. Restored whole: what is empty comes back empty. */
#ifndef ING_RECORD_H
#define ING_RECORD_H

#include "compile/compile.h"
#include "trace/trace.h"

/* Numbers that a kernel may return; a matrix counts by its elements. */
enum { ING_RECORD_MAX_RETS = 1024 };

typedef struct ing_record_bind {
    uint8_t kind, dtype, written; /* kind: src/py/kernel.h */
    uint16_t arg;
    uint32_t word;
    ing_path path;
    /* arrays: the spec */
    uint8_t elem_dtype, ndim, grad, elem_rank;
    uint32_t elem_shape[2];
    uint8_t layout[ING_MAX_NDIM];
    /* fields: the place (ing_place_put), owned */
    int64_t *place;
    uint32_t n_place; /* 0: it is no field */
} ing_record_bind;

typedef struct ing_record_task {
    ing_ir_task info;
    ing_hash128 ir;  /* its digest; where the image is follows from it (R18) */
    uint32_t *trees; /* owned */
    uint32_t n_trees;
} ing_record_task;

typedef struct ing_record_stage { /* a checkpoint: its label, and where the object is */
    int64_t label;
    ing_path path; /* 0: the number itself */
} ing_record_stage;

typedef struct ing_record_text {
    char *category, *text; /* owned; category NULL in messages */
    /* Of a warning. tree: its number + 1, 0 = about no place. The node is at that line of the
     * definition while its raw text has this hash: a hit need not parse it. */
    uint32_t tree, node, line;
    uint64_t stamp;
} ing_record_text;

typedef struct ing_record {
    ing_trace trace;
    ing_vec(ing_record_bind) binds;
    ing_vec(ing_record_task) tasks;
    ing_vec(ing_ir_step) steps;
    ing_vec(ing_record_stage) stages;
    ing_vec(ing_code_apart) apart;
    ing_vec(ing_path) trees; /* where the definition of each tree is found */
    ing_vec(ing_record_text) messages, warnings;
    uint32_t buffer_bytes, n_words;
    uint32_t n_rets;
    uint8_t rets[ING_RECORD_MAX_RETS];
    bool returns_tuple, flush_denormals;
    ing_hash128 lowered; /* ing_ir_content of what it was compiled from */
} ing_record;

void ing_record_init(ing_record *r);
void ing_record_fini(ing_record *r);
/* Paths in the record are numbers in `paths`. */
ing_status ing_record_write(const ing_record *r, const ing_paths *paths, ing_bytes *out,
                            ing_err *e);
/* Adds the record's paths to `paths`. ING_DECLINED: not a record as written here. */
ing_status ing_record_read(const uint8_t *p, size_t n, ing_paths *paths,
                           ing_record *out);

#endif
