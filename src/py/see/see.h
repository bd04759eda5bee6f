/* Seeing Python while compiling and asking again at launches: what an object is for the
 * language, values as a whole, declared types, the gate, calls. Facts go into traces by the gate
 * alone (R1). */
#ifndef ING_PY_SEE_H
#define ING_PY_SEE_H

#include "py/see/def.h"

#include "record/record.h"
#include "trace/trace.h"

typedef struct ing_py_kernel ing_py_kernel;

/* ---- seeing Python (see.c), the gate (gate.c), replay (replay.c) ------------------------------- */

/* Classifies an object; obj NULL = absent. Text in the fact is borrowed from obj. */
ing_status ing_py_see(ing_py_state *st, PyObject *obj, ing_gate_fact *out, ing_err *e);
/* The same for the argument of a kernel's parameter p (NULL: of none): the last axes of an
 * array of another library are those of its elements where the annotation says so. */
ing_status ing_py_see_arg(ing_py_state *st, const ing_gate_param *p, PyObject *obj,
                          ing_gate_fact *out, ing_err *e);
/* The parameter whose argument is at the path; NULL: none is. */
const ing_gate_param *ing_py_param_at(const ing_py_kernel *k, ing_path path);
ing_hash128 ing_py_fact_digest(const ing_gate_fact *f);
bool ing_py_fact_is_value(const ing_gate_fact *f); /* compiled in, equal by digest */
/* The func or kernel definition behind an object (bound methods included), or NULL. */
ing_py_def *ing_py_def_of(ing_py_state *st, PyObject *obj);
/* Both: 1, 0 or -1 = raised. */
int ing_py_is_atom(ing_py_state *st, PyObject *obj); /* a guard may own it (R13) */
int ing_py_is_enum_member(ing_py_state *st, PyObject *obj);

/* Values as a whole (whole.c): how an equal answer is to be understood. */
typedef enum ing_py_whole_kind {
    ING_WHOLE_CHANGES, /* it can change: one answer for all of these */
    ING_WHOLE_CLASSED, /* holds members of enums or frozen dataclasses, which can be changed
                        * by force, and whose class is known by name alone */
    ING_WHOLE_PLAIN, /* of Python's own classes: equal answer, equal value */
} ing_py_whole_kind;
typedef struct ing_py_whole {
    ing_py_whole_kind kind;
    ing_hash128 answer;
    uint64_t classes; /* in this process: which classes it holds; 0: none, or unknown */
} ing_py_whole;
/* Of a function that can be called while compiling: what a call is given besides. */
ing_status ing_py_whole_of(ing_py_state *st, PyObject *obj, ing_py_whole *out);
ing_hash128 ing_py_whole_changes(void); /* the answer of what can change */
static inline bool ing_py_has_attributes(PyObject *fn) { /* of a Python function */
    PyObject *dict = ((PyFunctionObject *)fn)->func_dict;
    return dict && PyDict_GET_SIZE(dict) > 0;
}

/* One step along a path from `from` (borrowed; NULL only for roots). *out: new reference,
 * or NULL = absent. */
ing_status ing_py_step(ing_py_kernel *k, PyObject *const *args, PyObject *from,
                       const ing_path_node *node, PyObject **out, ing_err *e);
/* An atom of the kernel's paths as an interned str; the kernel owns it. NULL: raised. */
PyObject *ing_py_atom_name(ing_py_kernel *k, uint32_t atom);
ing_status ing_py_resolve(ing_py_kernel *k, PyObject *const *args, ing_path path,
                          PyObject **out, ing_err *e);
/* The answer about the thing at a path's end (at the end of its parent for MEANING). */
/* `at_launch`: it belongs to an object whose numbers are read at launch. */
ing_status ing_py_answer_of(ing_py_kernel *k, PyObject *obj, bool at_launch,
                            ing_path path, ing_ask ask, ing_hash128 *out, ing_err *e);
/* Who asks the questions of trees and traces again, with which arguments. */
typedef struct ing_py_asker {
    ing_py_kernel *kernel;
    PyObject *const *args;
    /* A variant of which two arrays share memory in this launch that its code takes to lie
     * apart (R22): a new reference. NULL: none was found. */
    struct ing_py_variant *apart;
} ing_py_asker;
ing_status ing_py_ask_again(void *self, ing_path path, ing_ask ask, ing_hash128 *answer,
                            ing_err *e); /* ing_tree_ask */
/* What the user's code raises while it is asked again is no answer: then nothing that was
 * compiled fits, and if that code is still to run, compiling anew raises it. */
ing_status ing_py_declined(ing_status s);
/* Answers one question again. */
ing_status ing_py_answer(ing_py_kernel *k, PyObject *const *args, ing_path path,
                         ing_ask ask, ing_hash128 *out, ing_err *e);

/* Calls while compiling (staticcall.c). */
typedef enum ing_py_callable {
    ING_PY_CALL_RAISED = -1,
    ING_PY_CALL_NEVER,
    ING_PY_CALL_PURE,     /* listed: the result follows from all of the arguments */
    ING_PY_CALL_RECORDED, /* a Python function: from the arguments and what it reads */
    ING_PY_CALL_LIVE,     /* isinstance, partial, classes, ...: made at each launch */
} ing_py_callable;
ing_py_callable ing_py_callable_kind(PyObject *fn);
bool ing_py_is_for_host(
    PyObject *fn); /* a Python function that draws or makes things */
bool ing_py_in_names(const char *name,
                     const char *const *list); /* which ends with NULL */
bool ing_py_is_live_builtin(PyObject *fn);     /* isinstance and its kin */
bool ing_py_makes_text(PyObject *fn);          /* repr and its kin */
int ing_py_is_live_callable(PyObject *fn);     /* livecall.c: 1, 0 or -1 = raised */
bool ing_py_is_ndarray(PyObject *obj);
/* What the result of a listed method follows from besides its arguments; NULL: no such. */
PyObject *ing_py_pure_method_self(PyObject *fn);
/* 1, 0: it has none, -1 = raised. */
int ing_py_callable_digest(ing_py_state *st, PyObject *fn, ing_hash128 *out);
/* Arguments of a call in a path (callargs.c). `made`: the kernel's text makes it anew. */
ing_path ing_py_call_arg_step(ing_paths *p, ing_path parent, ing_path arg,
                              PyObject *value, bool made);
/* Those that were read so far, all zero before the first: */
typedef struct ing_py_call_args {
    PyObject *open[ING_PATH_MAX_NESTING]; /* [0] all of them, then containers */
    uint8_t boxes[ING_PATH_MAX_NESTING];  /* ing_step_box */
    uint32_t n;                           /* of the two above */
    PyObject *names;                      /* a list, of the last ones; or NULL */
} ing_py_call_args;
ing_status ing_py_call_args_take(ing_py_call_args *a, PyObject *value);
/* Any step but CALL_PATH. *there false: an index on disk that makes no sense. */
ing_status ing_py_call_args_step(ing_py_call_args *a, const ing_paths *p,
                                 const ing_path_node *n, bool *there);
/* Makes the call and forgets the arguments. *out NULL: there is no such function. */
ing_status ing_py_call_args_call(ing_py_call_args *a, PyObject *fn, PyObject **out);
void ing_py_call_args_clear(ing_py_call_args *a);

/* Declared types (declared.c). */
bool ing_py_is_dataclass(const ing_py_state *st, PyObject *cls);
/* Its table of fields, borrowed; NULL: it is none. */
PyObject *ing_py_fields_of(const ing_py_state *st, PyObject *cls);
/* All of these: 1 = *out is a new reference, 0 = there is none, -1 = raised. The dataclass
 * Field of a name: */
int ing_py_field_get(const ing_py_state *st, PyObject *cls, PyObject *name,
                     PyObject **out);
/* The scope in which the types of a class's fields are meant, where they are text: */
int ing_py_field_scope(PyObject *cls, PyObject **out);
/* The type of a field, evaluated: */
int ing_py_field_type(const ing_py_state *st, PyObject *cls, PyObject *name,
                      PyObject **out);

typedef enum ing_py_field_kind {
    ING_FIELD_OPEN,    /* nothing is known: its object tells */
    ING_FIELD_NUMBER,  /* read at each launch, as dtype */
    ING_FIELD_VALUE,   /* compiled in */
    ING_FIELD_TENSOR,  /* a vector or matrix whose numbers are read at each launch */
    ING_FIELD_STRUCT,  /* a dataclass */
    ING_FIELD_ARRAY,   /* see array */
    ING_FIELD_REFUSED, /* a data_oriented class */
} ing_py_field_kind;

typedef struct ing_py_declared { /* what a dataclass says of one of its fields */
    ing_py_field_kind kind;
    ing_dtype dtype;
    ing_gate_param array;
} ing_py_declared;

/* `T | None` and Optional[T]: T, else the type itself; a new reference, NULL = raised. */
PyObject *ing_py_strip_optional(PyObject *type, bool *optional);
int ing_py_field_meaning(ing_py_state *st, PyObject *cls, PyObject *name,
                         ing_py_declared *out); /* -1 = raised */
ing_hash128 ing_py_field_digest(const ing_py_declared *f);
/* An annotation that is no dtype: template, array. ING_DECLINED: neither. */
ing_status ing_py_passing_of(ing_py_state *st, PyObject *annotation,
                             ing_gate_param *out);
/* The dtype that a Python number has at run time; ING_VOID: it is no number. */
ing_dtype ing_py_number_dtype(const ing_py_state *st, PyObject *value);
/* Turns the fact about a number into that of a run-time scalar. */
void ing_py_as_number(const ing_py_state *st, PyObject *obj, ing_gate_fact *f);
/* An instance of a class whose numbers are read at launch (template_primitives=False). */
bool ing_py_members_at_launch(const ing_py_state *st, PyObject *obj);

ing_hash128 ing_py_param_digest(const ing_gate_param *p);
ing_hash128 ing_py_returns_digest(const ing_gate_returns *r);

typedef struct ing_py_gate ing_py_gate;
ing_status ing_py_gate_new(ing_py_kernel *k, PyObject *const *args, bool quiet,
                           ing_py_gate **out, ing_err *e);
void ing_py_gate_free(ing_py_gate *g);
/* Is something raised, perhaps what a message ran into? It is set then. */
bool ing_py_gate_raised(ing_py_gate *g);
const ing_gate *ing_py_gate_face(const ing_py_gate *g);
ing_trace *ing_py_gate_trace(ing_py_gate *g); /* of frame 0 */
ing_path ing_py_gate_path(const ing_py_gate *g, ing_gref r);
/* A question that is asked when all is lowered, with its answer, also in words. */
/* The extent of an array on that axis if it is small, else 0; recorded for the kernel. */
ing_status ing_py_gate_small(ing_py_gate *g, ing_gref of, uint32_t axis, int64_t *out,
                             ing_err *e);
/* What it is for any object, as an int (extent.c). */
ing_status ing_py_small_step(ing_py_state *st, PyObject *from, int64_t axis,
                             PyObject **out);
/* Asks for the small extents that are worth it (ing_ir_last_wanted) of a lowered kernel. */
ing_status ing_py_ask_extents(ing_py_gate *g, ing_front_result *r, ing_err *e);
ing_status ing_py_gate_asked(ing_py_gate *g, ing_path path, ing_ask ask,
                             ing_hash128 answer, const ing_bytes *words, ing_err *e);
PyObject *ing_py_gate_object(const ing_py_gate *g, ing_gref r); /* borrowed */
ing_path ing_py_gate_tree_path(const ing_py_gate *g, const ing_front_tree *t);
/* Warnings as the record has them, but for `tree`, which is the path of the definition. */
typedef ing_vec(ing_record_warning) ing_py_warnings;
ing_py_warnings *ing_py_gate_warnings(ing_py_gate *g);
/* A call whose result no other process can get: its function, and the type of the argument
 * that has neither a path nor a plain value. NULL: there was none. */
typedef struct ing_py_unreplayable {
    ing_path fn;
    PyTypeObject *type; /* owned by the gate */
} ing_py_unreplayable;
const ing_py_unreplayable *ing_py_gate_unreplayable(const ing_py_gate *g);
struct ing_answers;
const struct ing_answers *ing_py_gate_answers(const ing_py_gate *g);

/* Is it this module, or in it? */
bool ing_py_is_in_module(const char *name, const char *module);
bool ing_py_is_our_module(const char *name);
/* fastcache=True and what it checks (pure.c). */
ing_status ing_py_pure_check(ing_py_kernel *k, ing_py_gate *g, PyObject *const *args,
                             ing_err *e);
/* Tells of a fastcache kernel that this variant cannot be kept on disk. */
ing_status ing_py_pure_only_here(ing_py_kernel *k, const ing_py_unreplayable *what);
/* With print_non_pure: names the kernel, once, if it is not marked. */
ing_status ing_py_pure_tell(ing_py_kernel *k);
int ing_py_source_words(ing_py_state *st, PyObject *fn,
                        ing_bytes *out); /* -1 = raised */
void ing_py_field_words(const ing_py_declared *f, ing_bytes *out);
#endif
