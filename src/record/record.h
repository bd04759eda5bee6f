/* record: a compiled variant, described once (R17). The compiler makes it, the disk keeps it
 * (record.c writes and reads it), tools show it, launches run from it: the trace it may be
 * reused under, where each argument goes, its tasks with the digests that lead to their
 * images, results, messages, warnings, and where the trees of its functions are found for
 * run-time errors.
 *
 * To add a member: one line in a table. It is then part of the struct, of the bytes and of
 * the tests that compare; if a launch relies on it, record_ok in record.c checks it. The
 * bytes of an entry are u32 version, paths, trace (src/trace/index.c), then the members of
 * ING_RECORD_MEMBERS in their order: integers little-endian, a list and what is UP_TO as u32
 * count and elements, a text as u32 length and bytes, a path by its number. */
#ifndef ING_RECORD_H
#define ING_RECORD_H

#include "ir/ir.h"
#include "trace/trace.h"

/* Numbers that a kernel may return; a matrix counts by its elements. */
enum { ING_RECORD_MAX_RETS = 1024 };

typedef char *ing_text; /* owned by the record */

/* What code depends on of an array. */
#define ING_SPEC_MEMBERS(ONE, FIXED, UP_TO, LIST)                              \
    ONE(uint8_t, dtype)                                                        \
    ONE(uint8_t, ndim)                                                         \
    ONE(uint8_t, grad)                                                         \
    ONE(uint8_t, elem_rank)        /* 0 scalar, 1 vector, 2 matrix elements */ \
    FIXED(uint32_t, elem_shape, 2) /* 0 where unused */                        \
    FIXED(uint8_t, layout,                                                     \
          ING_MAX_NDIM) /* logical axis at memory position k; 0 past ndim */
typedef struct ing_spec {
    ING_MEMBERS(ING_SPEC_MEMBERS)
} ing_spec;

typedef enum ing_bind_kind {
    ING_BIND_SCALAR, /* argument -> word, converted to dtype */
    ING_BIND_ARRAY,  /* argument: an array of this spec, ours or foreign (NumPy ...) */
    ING_BIND_CAPTURED, /* the same behind a path */
    ING_BIND_NUMBER,   /* a number behind a path -> word, converted to dtype */
} ing_bind_kind;

/* arg: the parameter; of what is behind a path: where that starts, or 0. */
#define ING_RECORD_BIND_MEMBERS(ONE, FIXED, UP_TO, LIST)         \
    ONE(uint8_t, kind)    /* ing_bind_kind */                    \
    ONE(uint8_t, dtype)   /* SCALAR, NUMBER */                   \
    ONE(uint8_t, written) /* arrays: the kernel may write it */  \
    ONE(uint8_t, reads)   /* ing_ir_reads */                     \
    ONE(uint32_t, arg)                                           \
    ONE(uint32_t, word)                                          \
    ONE(ing_path, path)  /* CAPTURED, NUMBER; else for people */ \
    ONE(ing_spec, array) /* ARRAY, CAPTURED */                   \
    LIST(int64_t, place) /* of a field (ing_place_put); else empty */
typedef struct ing_record_bind {
    ING_MEMBERS(ING_RECORD_BIND_MEMBERS)
} ing_record_bind;

#define ING_RECORD_ARRAY_MEMBERS(ONE, FIXED, UP_TO, LIST)           \
    ONE(uint32_t, word)                                             \
    ONE(uint32_t, ndim)                                             \
    ONE(uint32_t, size) /* of an element */                         \
    ONE(uint64_t, at)   /* a field: from the address in its word */ \
    ONE(uint64_t, span) /* a field: bytes; 0: an array, whose extents follow its word */
typedef struct ing_record_array { /* an array in the words of a launch */
    ING_MEMBERS(ING_RECORD_ARRAY_MEMBERS)
} ing_record_array;

/* An array that a task touches, for qd.profiler. `each`: elements that an iteration of its loop
 * touches at most; 0: not known, such as those of loops inside of it. */
#define ING_RECORD_TOUCH_MEMBERS(ONE, FIXED, UP_TO, LIST) \
    ONE(ing_record_array, array)                          \
    ONE(uint8_t, reads)                                   \
    ONE(uint8_t, writes)                                  \
    ONE(uint32_t, each)
typedef struct ing_record_touch {
    ING_MEMBERS(ING_RECORD_TOUCH_MEMBERS)
} ing_record_touch;

#define ING_RECORD_TASK_MEMBERS(ONE, FIXED, UP_TO, LIST)                            \
    ONE(ing_ir_task, info)                                                          \
    ONE(ing_hash128, ir) /* its digest; where the image is follows from it (R18) */ \
    LIST(uint32_t,                                                                  \
         trees) /* function ordinal in the image -> number of its tree (R19) */     \
    LIST(ing_record_touch, touches)
typedef struct ing_record_task {
    ING_MEMBERS(ING_RECORD_TASK_MEMBERS)
} ing_record_task;

#define ING_RECORD_APART_MEMBERS(ONE, FIXED, UP_TO, LIST) \
    ONE(uint32_t, a)                                      \
    ONE(uint32_t, b)
typedef struct ing_record_apart { /* two of `arrays` that must share no memory (R22) */
    ING_MEMBERS(ING_RECORD_APART_MEMBERS)
} ing_record_apart;

#define ING_RECORD_STAGE_MEMBERS(ONE, FIXED, UP_TO, LIST) \
    ONE(int64_t, label)                                   \
    ONE(ing_path, path)           /* where the object is; 0: the number itself */
typedef struct ing_record_stage { /* a checkpoint */
    ING_MEMBERS(ING_RECORD_STAGE_MEMBERS)
} ing_record_stage;

/* The node is at that line of the definition while its raw text has this stamp: a hit need
 * not parse it. */
#define ING_RECORD_WARNING_MEMBERS(ONE, FIXED, UP_TO, LIST)      \
    ONE(ing_text, category)                                      \
    ONE(ing_text, text)                                          \
    ONE(uint32_t, tree) /* its number + 1, 0 = about no place */ \
    ONE(uint32_t, node)                                          \
    ONE(uint32_t, line)                                          \
    ONE(uint64_t, stamp)
typedef struct ing_record_warning { /* given while lowering (R16) */
    ING_MEMBERS(ING_RECORD_WARNING_MEMBERS)
} ing_record_warning;

#define ING_RECORD_MEMBERS(ONE, FIXED, UP_TO, LIST)                                \
    ONE(uint32_t, n_words)                                                         \
    ONE(uint32_t, buffer_bytes)                                                    \
    ONE(uint8_t, returns_tuple)                                                    \
    ONE(uint8_t, overlap)  /* for launches in which two of `apart` share memory */ \
    ONE(uint8_t, sized)    /* as ing_ir_mod.sized */                               \
    ONE(uint32_t, n_rule)  /* as ing_ir_mod.n_rule */                              \
    ONE(uint32_t, n_views) /* as ing_ir_mod.n_views */                             \
    ONE(uint8_t, flush_denormals)                                                  \
    ONE(uint8_t, draws)       /* random numbers */                                 \
    ONE(ing_hash128, lowered) /* ing_ir_content of what it was compiled from */    \
    UP_TO(uint8_t, rets, ING_RECORD_MAX_RETS) /* ing_dtype */                      \
    LIST(ing_record_bind, binds)                                                   \
    LIST(ing_path, trees) /* where the definition of each function is found */     \
    LIST(ing_record_task, tasks)                                                   \
    LIST(ing_record_array, arrays) /* those of `apart`, each once */               \
    LIST(ing_record_apart, apart)                                                  \
    LIST(ing_record_stage, stages)                                                 \
    LIST(ing_ir_step, steps) /* of a graph kernel */                               \
    LIST(ing_text, messages) /* of prints and assertions */                        \
    LIST(ing_record_warning, warnings)

typedef struct ing_record {
    ing_trace trace;
    ING_MEMBERS(ING_RECORD_MEMBERS)
} ing_record;

void ing_record_init(ing_record *r);
void ing_record_fini(ing_record *r);
/* Paths in the record are numbers in `paths`. */
ing_status ing_record_write(const ing_record *r, const ing_paths *paths, ing_bytes *out,
                            ing_err *e);
/* Adds the record's paths to `paths`. ING_DECLINED: not a record as written here. */
ing_status ing_record_read(const uint8_t *p, size_t n, ing_paths *paths,
                           ing_record *out);
/* Adds the question about `apart`, if there are any, with `overlap` as its answer. False: no
 * memory. */
bool ing_record_ask_overlap(ing_record *r, ing_paths *paths);
ing_hash128 ing_record_overlap_answer(bool overlap);
/* A copy that the record may own; NULL: no memory. */
ing_text ing_text_copy(const char *s);

#endif
