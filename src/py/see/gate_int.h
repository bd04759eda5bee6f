/* What the files of the gate share: things, frames, and how answers are recorded (gate.c), calls
 * while compiling (gate_call.c). Nobody else looks inside. */
#ifndef ING_PY_GATE_INT_H
#define ING_PY_GATE_INT_H

#include "py/call/kernel.h"
#include "trace/notes.h"

typedef struct thing {
    PyObject *obj;  /* owned; NULL = absent */
    ing_path path;  /* in the frame's terms */
    ing_path root;  /* from the kernel's root, by way of the first use of the func */
    PyObject *type; /* owned: the dataclass it is declared as, or NULL */
    ing_path type_path;    /* where that is declared, in the frame's terms */
    ing_py_declared field; /* what its owner's class declares of it */
    bool at_launch;        /* its numbers are read at each launch */
    bool of_module;        /* an attribute of a module, such as math.pi */
    bool made;             /* by the front end, of values that were looked at */
} thing;

typedef struct frame {
    ing_py_def *def;
    bool kernel;
    ing_path func; /* path of the function in this frame's terms */
    ing_trace trace;
    ing_gref *params; /* things for template parameters; 0 for run-time ones */
    uint32_t n_params;
} frame;

typedef struct subtrace {
    ing_trace trace;
    bool used; /* spliced before: a further use of one specialisation */
} subtrace;

typedef struct tree_place {
    const ing_front_tree *tree;
    ing_path root;
} tree_place;

struct ing_py_gate {
    ing_gate face;
    ing_py_kernel *kernel;
    PyObject *const *args; /* borrowed, one per kernel parameter */
    bool quiet;            /* static_print has spoken before */
    ing_vec(thing) things; /* [0] unused */
    ing_vec(frame) frames;
    ing_vec(subtrace) subs;    /* of frames that were left */
    ing_vec(tree_place) trees; /* where each tree that was used is found */
    ing_map calls;             /* root path of a call -> a thing that is its result */
    ing_py_warnings warnings;
    ing_py_unreplayable only_here;
    ing_answers answers; /* in words, for explain */
    PyObject *raised[3]; /* what a message ran into: type, value, traceback */
};

static inline thing *ing_py_thing(ing_py_gate *g, ing_gref r) {
    return &g->things.at[r < g->things.len ? r : 0];
}

/* A new thing; takes obj. */
ing_status ing_py_thing_take(ing_py_gate *g, PyObject *obj, ing_path path,
                             ing_path root, ing_gref *out, ing_err *e);
ing_status ing_py_gate_record(ing_py_gate *g, ing_path path, ing_ask ask,
                              ing_hash128 answer, ing_err *e);
ing_status ing_py_gate_record_source(ing_py_gate *g, const thing *fn,
                                     ing_hash128 answer, ing_err *e);
/* Paths stay within what following them again allows. */
ing_status ing_py_gate_depth(ing_py_gate *g, ing_path p, ing_err *e);
/* Takes what is raised, until ing_py_gate_raised: Python may run in between (a collection of
 * garbage), and must not find it. */
void ing_py_gate_keep(ing_py_gate *g);
void ing_py_gate_describe(void *self, ing_gref of, char *buf, size_t size);
ing_status ing_py_gate_may_call(void *self, ing_gref fn, ing_err *e);
ing_status ing_py_gate_call(void *self, const ing_gate_call *call, ing_gref *out,
                            ing_err *e);

#endif
