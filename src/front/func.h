/* What the files of funcs share with each other: func.c calls them, result.c is about what
 * they give back. The rest of src/front uses what front_int.h lists. */
#ifndef ING_FRONT_FUNC_H
#define ING_FRONT_FUNC_H

#include "front/front_int.h"

struct func_info { /* of one func object: what its annotations say */
    const ing_front_tree *t;
    param_list list;
    ing_gate_param *params;
    bool early;    /* returns from within a branch or loop, as far as its text tells */
    bool can_open; /* worth it and possible */
    bool *gradients; /* per parameter: its gradient may be asked for */
};

struct spec {
    uint32_t func; /* IR function */
    uint32_t subtrace;
    bool done;
    bool has_ret; /* a return statement was met; `ret` is valid */
    value ret; /* its shape: V_RT leaves give the types, V_REF ones are large tensors */
    bool closed;     /* a real func of annotated parameters: so is what it returns */
    uint32_t n_args; /* IR parameters of the arguments; those of large results follow */
    /* binds arrays or numbers that it found through its function's scopes */
    bool captures;
};

/* ---- leaves: between values and IR parameters or results -------------------------------- */

typedef struct leaves {
    ing_vec(uint32_t) insts;
    ing_vec(ing_type) types;
} leaves;

void ing_front_leaves_fini(leaves *l);
/* Those of an argument: numbers, places and arrays. */
bool ing_front_leaves_add(frame *fr, leaves *l, const value *v);

/* The same value for another frame, with its leaves taken from `next` on: parameters of the
 * open function, or members of a result. Without a source they stay: an opened func. */
typedef struct source {
    ing_op op; /* PARAM, EXTRACT, or NONE: `inst` is the one leaf */
    uint32_t inst, next;
    const uint32_t *places;    /* of a result: the caller's memory for large tensors */
    const ing_ir_func *callee; /* of a result: where its arrays come from ... */
    const uint32_t *args;      /* ... and what was passed there */
} source;
ing_status ing_front_rebuild(frame *fr, value *v, source *src);

#endif
