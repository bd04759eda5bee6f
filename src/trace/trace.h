/* trace: what was asked and answered during a compile, and the decision tree that the
 * traces of one kernel form (R1, R6, R7). Paths and digests only: no
 * Python, no pointers to what was seen. */
#ifndef ING_TRACE_H
#define ING_TRACE_H

#include "base/base.h"

typedef uint32_t ing_path; /* 0 = none */

enum { ING_PATH_MAX_STEPS = 1024, ING_PATH_MAX_NESTING = 8 };

typedef enum ing_step {
    ING_STEP_NONE,
    ING_STEP_KERNEL,      /* root: the kernel itself */
    ING_STEP_ARG,         /* root: argument i of the call */
    ING_STEP_FRAME_FUNC,  /* root, only in sub-traces: the frame's function */
    ING_STEP_FRAME_PARAM, /* root, only in sub-traces: template parameter i */
    ING_STEP_GLOBAL,      /* name in the parent function's module */
    ING_STEP_CLOSURE,     /* free variable of the parent function */
    ING_STEP_BUILTIN,     /* name in builtins */
    ING_STEP_PARAM,       /* annotation of parameter i of the parent function */
    ING_STEP_DEFAULT,     /* default of parameter i */
    ING_STEP_RETURNS,     /* return annotation */
    ING_STEP_ATTR,
    ING_STEP_ITEM_INT,
    ING_STEP_ITEM_STR,
    ING_STEP_CALL,      /* result of calling the function above the arguments */
    ING_STEP_CALL_PATH, /* argument of a call: path number i */
    ING_STEP_CALL_INT,  /* arguments by value: i, bits in i, or the name */
    ING_STEP_CALL_BOOL,
    ING_STEP_CALL_FLOAT,
    ING_STEP_CALL_STR,
    ING_STEP_CALL_NAME, /* the name of the argument that follows */
    ING_STEP_CALL_OPEN, /* those up to the CLOSE are items of a container: ing_step_box i */
    ING_STEP_CALL_CLOSE,
    ING_STEP_CALL_NONE,
    ING_STEP_FIELD_TYPE, /* declared type of a dataclass field */
    ING_STEP_CONFIG,     /* root: setting i */
    ING_STEP_LEN,        /* what Python's len, bool and tuple say of a thing */
    ING_STEP_TRUTH,
    ING_STEP_ITEMS,
    ING_STEP_SAME,   /* whether it is the very thing at path number i; 0: None */
    ING_STEP_BESIDE, /* the field at path number i, after those of the steps before */
    ING_STEP_SMALL,  /* the extent of an array on axis i if it is small, else 0 */
    ING_STEP_N,
} ing_step;

/* What an argument that the kernel's text made holds its items in; of a dict keys and values
 * take turns. */
typedef enum ing_step_box {
    ING_STEP_BOX_TUPLE,
    ING_STEP_BOX_LIST,
    ING_STEP_BOX_DICT,
    ING_STEP_BOX_N,
} ing_step_box;

/* What is asked never depends on the answer: equal answers so far, equal question (R6). */
typedef enum ing_ask {
    ING_ASK_LOOK = 1, /* what is there: its kind, and its value or spec; or nothing */
    ING_ASK_SOURCE,   /* tree digest of a func, text and code of a Python function */
    ING_ASK_CONFIG,
    ING_ASK_MEANING, /* of an annotation: passing, dtype, ndim */
    ING_ASK_WHOLE, /* all of a value that is immutable all the way down; or that it is not */
    ING_ASK_BLOCKS, /* which of the fields that its steps name lie in one block of memory */
} ing_ask;

/* Asked as settings are, and numbered after them, but of the launch: whether arrays that code
 * takes to lie apart share memory (R22). The last question of a trace, where it is one. */
#define ING_ASKED_OVERLAP ING_SETTING_N

typedef struct ing_path_node {
    ing_path parent;
    uint8_t step; /* ing_step */
    uint32_t atom;
    int64_t i;
} ing_path_node;

/* Python's word about a thing: a value of its own, whatever it was said of. */
static inline bool ing_step_is_derived(uint8_t step) {
    return (step >= ING_STEP_LEN && step <= ING_STEP_SAME) || step == ING_STEP_SMALL;
}

/* A step between a function and its call. */
static inline bool ing_step_is_call_arg(uint8_t step) {
    return step >= ING_STEP_CALL_PATH && step <= ING_STEP_CALL_NONE;
}

/* Does the step name another path, in its i? */
static inline bool ing_step_names_path(const ing_path_node *n) {
    return n->step == ING_STEP_CALL_PATH || n->step == ING_STEP_BESIDE ||
           (n->step == ING_STEP_SAME && n->i);
}

typedef struct ing_question {
    ing_path path;
    uint8_t ask; /* ing_ask */
    ing_hash128 answer;
} ing_question;

typedef ing_vec(ing_question) ing_questions;

/* Per kernel: paths are interned for its whole life, traces share them. */
typedef struct ing_paths {
    ing_atoms atoms;
    ing_vec(ing_path_node) nodes; /* [0] unused */
    ing_map map;
    uint32_t mapped; /* nodes below are in the map; the others came from an entry */
} ing_paths;

void ing_paths_init(ing_paths *p);
void ing_paths_fini(ing_paths *p);
ing_path ing_path_add(ing_paths *p, ing_path parent, ing_step step, const char *name,
                      int64_t i); /* 0: no memory */
/* The path with root FRAME_FUNC / FRAME_PARAM i replaced by `func` / params[i]; 0 when that
 * parameter has no path. False: no memory. */
bool ing_path_reroot(ing_paths *p, ing_path of, ing_path func, const ing_path *params,
                     uint32_t n, ing_path *out);
void ing_path_print(const ing_paths *p, ing_path of, ing_bytes *out); /* "self.cfg.n" */

/* One trace, or one sub-trace of a frame: questions in order, each at most once. */
typedef struct ing_trace {
    ing_questions list;
    ing_map seen;
} ing_trace;

void ing_trace_init(ing_trace *t);
void ing_trace_fini(ing_trace *t);
/* False: no memory. A question asked before keeps its first answer. */
bool ing_trace_add(ing_trace *t, ing_path path, ing_ask ask, ing_hash128 answer);
bool ing_trace_splice(ing_trace *into, ing_paths *p, const ing_trace *sub,
                      ing_path func, const ing_path *params, uint32_t n);
void ing_trace_print(const ing_trace *t, const ing_paths *p, ing_bytes *out);

/* The decision tree of one kernel. Leaves are variant numbers. It holds only what tells
 * variants apart: where one variant is left, the rest of the questions are in its trace. */
typedef struct ing_tree ing_tree;
ing_tree *ing_tree_new(void);
void ing_tree_free(ing_tree *t);
/* Empties it. A walk under way stays safe; where it ends means nothing. */
void ing_tree_clear(ing_tree *t);
void ing_tree_swap(ing_tree *a, ing_tree *b); /* contents; walks as for clear */
/* The whole trace of a leaf's variant, added to `out`, which is empty. Anything but ING_OK:
 * it is lost, and its leaf with it. */
typedef ing_status (*ing_tree_trace)(void *self, uint32_t variant, ing_trace *out);
/* ING_INTERNAL: the tree asks something else after equal answers. */
ing_status ing_tree_insert(ing_tree *t, const ing_trace *tr, uint32_t variant,
                           ing_tree_trace of, void *self, ing_err *e);
/* Asks down the tree. ING_OK: *variant is the only one that may fit, once ing_trace_holds
 * says so. ING_DECLINED: the answer to the last question is new, which is the explanation
 * of the miss. `asked` takes every question with its answer. */
typedef ing_status (*ing_tree_ask)(void *self, ing_path path, ing_ask ask,
                                   ing_hash128 *answer, ing_err *e);
ing_status ing_tree_walk(const ing_tree *t, ing_tree_ask ask, void *self,
                         uint32_t *variant, ing_questions *asked, ing_err *e);
/* Does the trace begin with what was asked, and do its other questions have the answers
 * that it recorded? ING_DECLINED: no; the last question asked tells why. */
ing_status ing_trace_holds(const ing_trace *t, ing_tree_ask ask, void *self,
                           ing_questions *asked, ing_err *e);

/* ---- as bytes (index.c) -------------------------------------------------------------- */

typedef ing_vec(ing_path) ing_path_map; /* number in an entry -> path here */

void ing_paths_write(const ing_paths *p, ing_bytes *out);
/* All readers: ING_DECLINED for anything that is not as written, or without memory. */
ing_status ing_paths_read(ing_reader *r, ing_paths *p, ing_path_map *map);
ing_path ing_path_copy(const ing_paths *from, ing_path path,
                       ing_paths *to); /* 0: no memory */
void ing_trace_write(const ing_trace *t, ing_bytes *out);
ing_status ing_trace_read(ing_reader *r, const ing_path_map *map, ing_trace *t);
ing_status ing_trace_copy(const ing_trace *t, const ing_paths *from, ing_paths *to,
                          ing_trace *out, ing_err *e);
/* With the paths that its questions name, and no others. */
void ing_tree_write(const ing_tree *t, const ing_paths *paths, ing_bytes *out);
/* Into a new, empty tree, its paths added to `paths`. Leaves name variants below
 * n_variants. */
ing_status ing_tree_read(ing_reader *r, ing_paths *paths, uint32_t n_variants,
                         ing_tree *t);

/* The index of an address: a tree, the keys of the variants that its leaves number, and a
 * copy of the variant's entry while there is but one and it is small: most kernels have
 * one, and need not read another file for it. */
typedef ing_vec(ing_hash128) ing_index_keys;

void ing_index_write(const ing_tree *t, const ing_paths *paths,
                     const ing_index_keys *keys, const ing_bytes *only, ing_bytes *out);
/* As ing_tree_read, and into empty keys; of no use unless ING_OK. */
ing_status ing_index_read(const uint8_t *p, size_t n, ing_paths *paths, ing_tree *t,
                          ing_index_keys *keys, ing_bytes *only);

#endif
