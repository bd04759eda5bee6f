/* What the kernel half of src/py shares: definitions (text, tree, signature), kernels,
 * funcs, variants, guards, and the services of the process. The array half is in py.h.
 *
 * Ownership: a kernel owns its variants; a variant is reference-counted because a launch
 * may outlive it (qd.init in another thread). Counts and tables are changed with the GIL
 * held, except where a comment says otherwise. */
#ifndef ING_PY_KERNEL_H
#define ING_PY_KERNEL_H

#include "py/py.h"

#include "ad/ad.h"
#include "cache/cache.h"
#include "compile/compile.h"
#include "front/front.h"
#include "gate/gate.h"
#include "graph/graph.h"
#include "launch/launch.h"
#include "launch/target.h"
#include "record/record.h"
#include "rt/rt.h"
#include "trace/trace.h"

#include <pthread.h>

/* ---- host: the services of the process (host.c) ------------------------------------------ */

/* About the last launch, for those who watch (compat). */
typedef struct ing_py_last_launch {
    uint32_t tasks, stages, yielded;
} ing_py_last_launch;

typedef struct ing_py_host {
    ing_py_state *st;
    ing_engine *engine;
    const ing_target *target; /* that the settings choose */
    ing_rt *rt;
    ing_remote *remote; /* NULL: none */
    ing_events *events; /* of INGOT_TRACE; NULL: nobody listens */
    bool remote_made;   /* or refused: once per process */
    uint64_t epoch;     /* grows with every qd.init / qd.reset (R14) */
    uint64_t forks;     /* grows in every forked child */
    uint64_t next_key;  /* of random numbers: begins with the seed, grows per launch */
    uint64_t store_epoch, helpers_epoch; /* for which they were made */
    ing_py_last_launch last;
    PyObject *graph_status; /* a class of ingot.graph, once imported */
    bool aside;             /* launches do not go straight ahead (companion.c) */
    PyObject *listener;     /* of the launches of thread `listening`; NULL: nobody */
    unsigned long listening;
    PyObject *sources;     /* dict: file name -> bytes, each file read once */
    PyObject *cursor_text; /* bytes: where the last def was found (source.c) */
    uint32_t cursor_line;
    size_t cursor_at;
    PyTypeObject *kernel_type;
    PyTypeObject *bound_type; /* of obj.kernel */
    PyTypeObject *func_type;
    PyObject *enum_class; /* enum.Enum once enum is imported */
    PyObject *odd_texts;  /* dict: str with lone surrogates -> its bytes (see.c) */
    int watcher; /* of dictionaries: its id + 1; 0: none yet, -1: none was free */
    PyObject *told_types;         /* set: names that [UNKNOWN_TYPE] was given for */
    pthread_mutex_t compile_lock; /* with compile_done: waiting for another's compile */
    pthread_cond_t compile_done;
    struct ing_py_waiter *waiters; /* threads that wait for it (call.c) */
    ing_rt_host callbacks;
    ing_cache_host cache;
    struct ing_py_profile *profile; /* of qd.profiler; NULL: never asked for */
    struct ing_py_host *next;       /* registry of hosts, for fork */
} ing_py_host;

int ing_py_host_add(PyObject *module, ing_py_state *st); /* creates st->host */
int ing_py_host_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_host_clear(ing_py_state *st);
void ing_py_host_fini(ing_py_state *st);
/* Opens the store / makes the helpers as configured, once per qd.init. */
ing_status ing_py_host_store(ing_py_host *h, ing_err *e);
ing_status ing_py_host_helpers(ing_py_host *h, ing_err *e);
/* The one warning about a remote layer that was turned off. */
int ing_py_host_warn(ing_py_host *h);

/* ---- definitions: what Kernel and Func share (def.c, source.c) ------------------------------- */

enum { ING_PY_MAX_PARAMS = 512 };

typedef struct ing_py_def {
    PyObject *fn;   /* the Python function */
    PyObject *code; /* its code when it was decorated: the text is of that */
    PyObject *name; /* bytes: how messages call it */
    PyObject
        *text; /* bytes: raw lines of the def; NULL: `why` says why there are none */
    PyObject *why;
    PyObject *held;  /* set until parsed: what to compare with (source.c) */
    bool text_later; /* not taken yet: ing_py_def_text */
    uint32_t suffix; /* bytes at the end of `name` that are not the function's */
    bool ours;       /* of this package: the revision answers for its text (R10) */
    uint32_t first_line;
    ing_front_tree *tree;  /* NULL until parsed */
    ing_cache_alias alias; /* digest of the tree, once known: parsed, or told (R9) */
    uint32_t n_params;     /* positional ones and keyword-only ones */
    uint32_t n_posonly, n_kwonly;
    PyObject *names;        /* tuple of parameter names */
    PyObject *free_names;   /* tuple parallel to the cells of the closure */
    ing_gate_param *params; /* meanings of the annotations; NULL until asked */
    PyObject *types; /* with params: tuple of annotations, None where there is none */
    ing_gate_returns returns; /* valid when params is set */
    PyObject *result_types;   /* with params: tuple of the types that `returns` names */
} ing_py_def;

int ing_py_def_init(ing_py_state *st, ing_py_def *d, PyObject *fn, PyObject *source);
/* The same function and text again, called by its name and the suffix. */
int ing_py_def_copy(ing_py_state *st, ing_py_def *d, ing_py_def *from,
                    const char *suffix);
void ing_py_def_fini(ing_py_def *d);
int ing_py_def_traverse(ing_py_def *d, visitproc visit, void *arg);
/* The default of parameter i as it is now: 1 = *out is a new reference, 0 = none, -1. */
int ing_py_def_default(const ing_py_def *d, uint32_t i, PyObject **out);
/* Takes the text if that was put off; without one, `why` says why. -1 = raised. */
int ing_py_def_text(ing_py_state *st, ing_py_def *d);
/* Is its code still what was decorated? Else an error. */
ing_status ing_py_def_check(const ing_py_def *d, ing_err *e);
/* Parses on first use. */
ing_status ing_py_def_tree(ing_py_state *st, ing_py_def *d, const ing_front_tree **out,
                           ing_err *e);
/* What the function's text means (R9): the digest of its tree and which of its names are
 * free, which the text alone does not tell. No parsing when the store knows this text. */
ing_status ing_py_def_digest(ing_py_state *st, ing_py_def *d, ing_hash128 *out,
                             ing_err *e);
/* Where the function finds builtins; borrowed. */
PyObject *ing_py_def_builtins(const ing_py_def *d);
/* What was probably meant, for messages; "" when nothing is near (near.c). -1 = raised. */
int ing_py_near_name(const ing_py_def *d, const char *name, char *buf, size_t size);
int ing_py_near_attr(PyObject *of, const char *name, char *buf, size_t size);
/* Is the name a free variable of the function? */
bool ing_py_def_is_free(const ing_py_def *d, const char *name);
/* Resolves the annotations on first use; errors carry the place of the parameter. */
ing_status ing_py_def_meanings(ing_py_state *st, ing_py_def *d, bool kernel,
                               ing_err *e);
const char *ing_py_def_name(const ing_py_def *d); /* for messages */
/* A name of a parameter or a free variable, whose UTF-8 was made when it was decorated. */
static inline const char *ing_py_utf8(PyObject *name) {
    return PyUnicode_AsUTF8(name);
}
/* An error at parameter i of the definition, at its return annotation, or (UINT32_MAX) at the
 * whole; with a caret when there is text. */
#define ING_PY_AT_RETURNS (UINT32_MAX - 1)
ing_status ing_py_def_fail(ing_py_state *st, ing_py_def *d, uint32_t i, ing_status s,
                           const char *remedy, ing_err *e, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

/* Takes the def's raw lines out of a file's text: *start, *len. False: not found. */
bool ing_py_source_block(const char *text, size_t n, uint32_t first_line, size_t *start,
                         size_t *len);
/* The same in the text of a file. Decorators run from top to bottom, so the search goes on
 * where the last one ended: from the top each time was a fifth of a warm start's time. */
bool ing_py_source_def(ing_py_host *h, PyObject *whole, uint32_t first_line,
                       size_t *start, size_t *len);
/* Whether a text belongs to a running function (belongs.c). */
struct stat;
/* All code that a text compiles to: a dict from first line to a list. NULL = raised. */
PyObject *ing_py_text_codes(PyObject *text, PyObject *file);
int ing_py_codes_hold(PyObject *codes, PyObject *fn); /* 1, 0, -1 = raised */
typedef enum ing_py_trust {
    ING_PY_TRUSTED, /* the file is what was imported; or a hook gave the code, and who knows */
    ING_PY_UNKNOWN, /* nothing tells: compare when the text is parsed */
    ING_PY_SUSPECT, /* the file changed: compare now */
} ing_py_trust;
int ing_py_source_trust(PyObject *fn, const char *file, const struct stat *now,
                        ing_py_trust *out); /* -1 = raised */
/* What is held of a file whose text is to be compared when it is parsed: 1 and a new
 * reference, 0, or -1 = raised. */
int ing_py_source_unknown(ing_py_state *st, PyObject *file, PyObject **out);
int ing_py_source_belongs(PyObject *held, PyObject *fn, PyObject *file); /* 1, 0, -1 */
/* The whole text of a file: 1 = *out is new bytes, 0 = *why is a new str, -1 = raised. */
int ing_py_source_file(ing_py_state *st, PyObject *fn, PyObject *file, PyObject **out,
                       PyObject **why);

/* ---- objects ---------------------------------------------------------------------------------- */

typedef struct ing_py_func {
    PyObject_HEAD ing_py_def def;
    PyObject *options; /* dict or NULL */
    bool requires_top_level, is_real_function;
    PyObject *dict, *weakrefs;
} ing_py_func;

typedef struct ing_py_bind { /* of the record, with what this process knows of it */
    ING_MEMBERS(ING_RECORD_BIND_MEMBERS)
    const ing_py_spec *spec;           /* `array`, interned */
    const struct ing_py_layout *field; /* `place`, interned: bound as arrays are */
    uint32_t fetch;                    /* CAPTURED, NUMBER: of `path`, from 1 */
    uint8_t beside;                    /* a field: ing_py_beside */
} ing_py_bind;

/* What binding compares of the blocks that the fields of a launch lie in (ING_ASK_BLOCKS). */
typedef enum ing_py_beside {
    ING_BESIDE_NONE,  /* nothing: there is but one field */
    ING_BESIDE_FIRST, /* it is the first field */
    ING_BESIDE_NEXT,  /* it lies in no block that was bound before */
    ING_BESIDE_SAME,  /* it lies in the block that its word was bound to before */
} ing_py_beside;

typedef struct ing_py_variant {
    uint32_t refs;
    uint64_t used;                /* when the tree led to it last: storm.c */
    const ing_target *target;     /* that it was compiled for */
    ing_record record;            /* what the disk keeps of it, and launches run from */
    ing_code code;                /* of record.tasks */
    ing_launch_tasks tasks;       /* parallel to record.tasks */
    ing_graph graph;              /* of a graph kernel with structure: steps != NULL */
    ing_rt_time *times;           /* per task, of the last launch of a graph kernel */
    bool times_taken;             /* by a launch under way */
    struct ing_py_checks *checks; /* what a launch asks again: guard.h */
    bool only_here;   /* never on disk: no other process could ask what it asked */
    uint32_t profile; /* its first row in the host's profile + 1; 0: none yet */
} ing_py_variant;

enum { ING_PY_COMPANIONS = 5 }; /* mode - 1 of a companion is its number */

/* What a kernel of mode ING_AD_SIZE found, and for what (sizing.c). */
enum { ING_PY_SIZES = 4 };
typedef struct ing_py_size {
    const struct ing_py_variant *variant; /* never followed */
    uint64_t *key; /* words of arguments, generations of arrays; NULL: none */
    uint32_t n;
    uint64_t bytes;
} ing_py_size;

typedef struct ing_py_kernel {
    PyObject_HEAD vectorcallfunc vectorcall;
    ing_py_state *st;
    ing_py_host *host;
    ing_py_def def;
    PyObject *options;             /* dict or NULL */
    bool graph, checkpoints, pure; /* pure: fastcache=True */
    ing_ad_mode mode;              /* NONE, or which derivative of `primal` it is */
    struct ing_py_kernel *primal;  /* NULL: it is no derivative */
    struct ing_py_kernel
        *companions[ING_PY_COMPANIONS]; /* its derivatives, once asked for */
    uint64_t key,
        *keys; /* of random numbers: of the last launch, and where the next one is */
    ing_py_size sizes[ING_PY_SIZES]; /* of mode ING_AD_SIZE, the last one first */
    uint64_t size;                   /* of its last launch */
    uint64_t
        forward_key; /* of a gradient: that of the launch that it is the reverse of */
    bool failed;     /* a gradient whose launch ended with an error (partial.c) */
    struct ing_py_reads *reads; /* of mode ING_AD_TRACE, while it runs: reads.c */
    PyObject *dict, *weakrefs;
    uint64_t epoch;
    ing_paths paths;
    ing_vec(PyObject *) names; /* atoms of the paths as str, made when needed */
    ing_cache cache;           /* its variants, in memory and on disk */
    ing_bytes notes;           /* of its compiles, where there is no disk: explain.c */
    bool non_pure_told;        /* print_non_pure has named the kernel */
    uint64_t uses;             /* of variants by way of the tree */
    bool storm_told;           /* the warning of R12 was given */
    ing_py_variant *last;      /* the one that served the previous launch; borrowed */
    unsigned long busy;        /* thread that compiles, 0 = none */
    uint64_t busy_fork;        /* host->forks when busy was set */
} ing_py_kernel;

int ing_py_kernel_add(PyObject *module, ing_py_state *st);
/* A kernel without def and options. NULL = raised. */
ing_py_kernel *ing_py_kernel_new(ing_py_state *st);

/* companion.c: the derivatives of a kernel. */
const char *ing_py_companion_name(ing_ad_mode mode); /* "grad", "dual"; NULL: none */
/* The derivative of a kernel, made when first asked for; a new reference. */
PyObject *ing_py_companion(ing_py_kernel *k, ing_ad_mode mode);
void ing_py_companions_drop(ing_py_kernel *k);
/* A launch that does not go straight ahead (host.aside). */
PyObject *ing_py_launch_aside(ing_py_kernel *k, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames, PyObject *label);
/* Refuses a gradient that needs the random numbers of a launch that nobody knows. */
ing_status ing_py_forward_unknown(ing_py_kernel *k, const ing_py_variant *v,
                                  ing_err *e);
int ing_py_companion_add(PyObject *module);

/* sizing.c: the room of a gradient's stacks, remembered as long as what decided it is the same. */
/* The scratch of each slot that a launch of the gradient `k` needs. */
ing_status ing_py_size_find(ing_py_kernel *k, PyObject *const *args, uint64_t *bytes,
                            ing_err *e);
/* Around a launch of mode ING_AD_SIZE: true = the answer is known, k->size; else *key, to be
 * given to ing_py_size_note with the answer. */
bool ing_py_size_known(ing_py_kernel *k, const ing_py_variant *v,
                       const struct ing_py_checks *c, PyObject *const *args,
                       PyObject *const *held, const uint64_t *words, ing_py_size *now);
void ing_py_size_note(ing_py_kernel *k, const ing_py_variant *v, ing_py_size *now,
                      uint64_t bytes);
void ing_py_sizes_drop(ing_py_kernel *k);
/* For those who count: the bounds of the loops of a gradient without stacks. -1 = raised. */
int ing_py_bounds_count(ing_py_kernel *k, PyObject *const *args);

/* partial.c: gradients that hold partial sums. */
struct ing_py_checks;
void ing_py_partials_note(ing_py_kernel *k, const struct ing_py_checks *c,
                          PyObject *const *args, PyObject *const *held);
/* Refuses a gradient that would add to one. */
ing_status ing_py_partials_check(ing_py_kernel *k, const struct ing_py_checks *c,
                                 PyObject *const *args, PyObject *const *held,
                                 ing_err *e);
int ing_py_partials_add(PyObject *module);

/* reads.c: what a launch of mode ING_AD_TRACE tells. */
typedef struct ing_py_reads ing_py_reads;
void ing_py_reads_note(ing_py_reads *w, const ing_rt_printed *r, const uint64_t *words);
/* The launch was made with this variant and these captured objects. */
void ing_py_reads_hold(ing_py_kernel *k, ing_py_variant *v, PyObject *const *held,
                       uint32_t n);
int ing_py_reads_add(PyObject *module);

/* bound.c: a kernel as a method. */
PyObject *ing_py_bound_new(ing_py_kernel *k, PyObject *obj);
/* The function of a method or of a bound kernel, else the object itself; all borrowed. */
PyObject *ing_py_unbind(const ing_py_state *st, PyObject *obj, PyObject **self);
int ing_py_bound_add(PyObject *module, ing_py_state *st);
/* Drops variants, plans and the tree: the next launch starts afresh (R14). */
void ing_py_kernel_reset(ing_py_kernel *k);
void ing_py_variant_free(ing_py_variant *v); /* when nobody refers to it any more */
static inline void ing_py_variant_unref(ing_py_variant *v) {
    if (v && --v->refs == 0) ing_py_variant_free(v);
}

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
    ING_PY_CALL_LIVE, /* isinstance: from a little of the arguments; made at each launch */
} ing_py_callable;
ing_py_callable ing_py_callable_kind(PyObject *fn);
/* 1, 0: it has none, -1 = raised. */
int ing_py_callable_digest(ing_py_state *st, PyObject *fn, ing_hash128 *out);
ing_path ing_py_call_arg_step(ing_paths *p, ing_path parent, ing_path arg,
                              PyObject *value);
PyObject *ing_py_call_arg_value(const ing_paths *p, const ing_path_node *n);

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

/* ---- why a kernel is compiled (explain.c) -------------------------------------------------------- */

typedef struct ing_py_story ing_py_story; /* of one compile */
/* The story up to here; with the setting `frozen` it is the error. *out NULL: nobody cares
 * (interpreted), or there was no memory. */
ing_status ing_py_story_begin(ing_py_kernel *k, const ing_py_gate *g,
                              const ing_py_variant *v, ing_py_story **out, ing_err *e);
/* The variant was built: told to who listens (INGOT_LOG=cache) and noted. */
ing_status ing_py_story_end(ing_py_kernel *k, const ing_py_gate *g,
                            const ing_py_variant *v, ing_py_story *story);
void ing_py_story_free(ing_py_story *story);
ing_bytes *ing_py_story_code(ing_py_story *story); /* what it will say about the code */
/* What the passes decided, a line each: "file:line: words" (remarks.c). */
void ing_py_remarks(const ing_py_kernel *k, const ing_front_result *front,
                    const ing_record *r, const ing_ir_remarks *remarks, ing_bytes *out);
uint64_t ing_py_wall_ns(void); /* since 1970 */
int ing_py_source_words(ing_py_state *st, PyObject *fn,
                        ing_bytes *out); /* -1 = raised */
void ing_py_field_words(const ing_py_declared *f, ing_bytes *out);
int ing_py_explain_add(PyObject *module, ing_py_state *st);
/* "file:line" of a task, "" when it cannot be told without a launch's arguments (graph.c). */
PyObject *ing_py_task_place(ing_py_kernel *k, const ing_py_variant *v, uint32_t loc);
/* qd.profiler (profile.c). The target whose launches are measured in place of `t`, which it is but
 * for that; `t` itself where it cannot be measured or there is no memory. */
const ing_target *ing_py_profiled(ing_py_host *h, const ing_target *t);
void ing_py_profile_free(struct ing_py_profile *p);
int ing_py_profile_add(PyObject *module, ing_py_state *st);
/* Sums of what compiles took. */
void ing_py_profile_compile(ing_py_host *h, const ing_engine_report *g,
                            uint64_t front_ns);
/* INGOT_TRACE (tracing.c). A launch that is told: in place of ing_py_kernel_call. */
int ing_py_tracing_add(PyObject *module, ing_py_state *st);
PyObject *ing_py_kernel_call_told(PyObject *self, PyObject *const *args, size_t nargsf,
                                  PyObject *kwnames);
int ing_py_packs_add(PyObject *module, ing_py_state *st);     /* packs.c */
int ing_py_cachetool_add(PyObject *module, ing_py_state *st); /* cachetool.c */
int ing_py_cachework_add(PyObject *module);                   /* cachework.c */

/* ---- launch (call.c, bind.c, guard.c, compile.c) ------------------------------------------------- */

/* Puts the path of what an error is about before its text; returns s. */
ing_status ing_py_at_path(ing_py_kernel *k, ing_path path, ing_status s, ing_err *e);
/* A new variant for this launch, published and kept (variant.c has the steps). New
 * reference. */
ing_status ing_py_compile(const ing_py_asker *a, ing_py_variant **out, ing_err *e);
/* An empty variant with one reference; NULL: no memory. */
ing_py_variant *ing_py_variant_new(const ing_py_host *h); /* for its target */
/* The cache of a kernel (cache.c). */
void ing_py_cache_host(ing_py_host *h);   /* fills h->cache */
bool ing_py_cache_init(ing_py_kernel *k); /* false: no memory */
/* The variant of a leaf that was reached with these answers. ING_DECLINED: a miss. */
ing_status ing_py_cache_load(const ing_py_asker *a, uint32_t leaf, ing_questions *asked,
                             ing_py_variant **out, ing_err *e);
/* Where the kernel's index is; 0: unknown. -1 = raised. */
int ing_py_cache_address(ing_py_kernel *k, ing_hash128 *out);
/* Loaded variant i of the kernel, or NULL; borrowed. */
static inline ing_py_variant *ing_py_variant_at(const ing_py_kernel *k, uint32_t i) {
    return k->cache.leaves.at[i].variant;
}
/* Digest of a code object without positions (codehash.c); 0: it holds a constant that has
 * no stable digest, -1 = raised. */
int ing_py_code_digest(PyObject *code, ing_hash128 *out);
/* Digest of a def's raw lines, decorators cut, dedented (source.c). */
ing_hash128 ing_py_source_digest(const char *text, size_t n);

/* graph.c: what a graph kernel adds to a launch. */
ing_status ing_py_graph_make(ing_py_variant *v, ing_err *e); /* from code.steps */
/* kernel.resume(*args, from_checkpoint=label, **kwargs) */
PyObject *ing_py_kernel_resume(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames);
/* One launch; `label` NULL: from the start. New reference. */
PyObject *ing_py_kernel_launch(ing_py_kernel *k, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames, PyObject *label);
/* The stage that a resume goes on from. */
ing_status ing_py_graph_stage(ing_py_kernel *k, const ing_py_variant *v,
                              PyObject *label, uint32_t *stage, ing_err *e);
PyObject *ing_py_graph_status(ing_py_kernel *k, const ing_py_variant *v,
                              PyObject *const *args, uint32_t yielded);
PyObject *ing_py_graph_text(PyObject *self, PyObject *unused);
int ing_py_graph_add(PyObject *module);

PyObject *ing_py_kernel_call(PyObject *self, PyObject *const *args, size_t nargsf,
                             PyObject *kwnames);
/* Positional, keyword and default arguments into one slot per parameter (borrowed; *held
 * keeps defaults). False = raised. */
bool ing_py_arrange(ing_py_kernel *k, PyObject *const *args, Py_ssize_t n,
                    PyObject *kwnames, PyObject **out, PyObject **held);
/* One launch with an argument per parameter, whoever listens. `label` of a gradient: the
 * launch that it is the reverse of is unknown. */
PyObject *ing_py_launch(ing_py_kernel *k, PyObject *const *args, PyObject *label);
/* What a launch with these arguments reads from outside, as it is now, after the key of the last
 * launch: a tuple whose items are the same objects, or equal numbers, as long as the launch finds
 * the same. `compile`: code for it, if need be; else ING_DECLINED: none is known. */
ing_status ing_py_reading(ing_py_kernel *k, PyObject *const *args, bool compile,
                          PyObject **out, ing_err *e);
/* Refuses arguments that the annotations forbid, naming the parameter. */
ing_status ing_py_check_args(ing_py_kernel *k, PyObject *const *args, ing_err *e);

typedef struct ing_py_views { /* what one launch holds of foreign arrays */
    Py_buffer at[ING_PY_MAX_PARAMS];
    uint32_t n;
    struct ing_py_stage *stage; /* copies for the target (stage.h); NULL: none */
} ing_py_views;
/* Fills the argument words. ING_DECLINED: an array of another spec (or a scalar where the
 * plan wants an array): not this variant. */
struct ing_py_checks;
ing_status ing_py_bind_all(ing_py_kernel *k, const ing_py_variant *v,
                           const struct ing_py_checks *c, PyObject *const *args,
                           PyObject *const *held, uint64_t *words, ing_py_views *views,
                           ing_err *e);
/* Warnings belong to the variant and are given when it is made or loaded (R16). */
ing_status ing_py_give_warnings(ing_py_kernel *k, const ing_py_variant *v,
                                PyObject *const *args);
/* Tells gdb which kernel and line the code of a new variant is, if the setting `gdb` says so. */
int ing_py_tell_gdb(ing_py_kernel *k, const ing_py_variant *v,
                    PyObject *const *args); /* -1 = raised */
/* The launch failed: the error in the user's terms. */
ing_status ing_py_launch_error(ing_py_kernel *k, const ing_py_variant *v,
                               PyObject *const *args, const ing_error_slot *slot,
                               ing_err *e);
/* A text about a place in the code of a variant (code and detail of the slot do not count). */
ing_status ing_py_error_at(ing_py_kernel *k, const ing_py_variant *v,
                           PyObject *const *args, const ing_error_slot *slot,
                           ing_status s, const char *remedy, ing_err *e,
                           const char *text);
/* What a launch prints goes here: ing_rt_sink.self. */
typedef struct ing_py_sink {
    ing_py_kernel *kernel;
    ing_py_variant *variant;
    PyObject *const *args;
} ing_py_sink;
int ing_py_print(void *self, const uint8_t *records, size_t n); /* ing_rt_sink.write */
/* To sys.stdout or sys.stderr, by its name, if there is one; -1 = raised. */
int ing_py_say(const char *file, const char *text, size_t n);
/* fastcache=True and what it checks (pure.c). */
ing_status ing_py_pure_check(ing_py_kernel *k, ing_py_gate *g, PyObject *const *args,
                             ing_err *e);
/* Tells of a fastcache kernel that this variant cannot be kept on disk. */
ing_status ing_py_pure_only_here(ing_py_kernel *k, const ing_py_unreplayable *what);
/* With print_non_pure: names the kernel, once, if it is not marked. */
ing_status ing_py_pure_tell(ing_py_kernel *k);
/* A variant was added to the kernel, or chosen by the tree (storm.c). */
ing_status ing_py_variant_added(ing_py_kernel *k, ing_py_variant *v);
void ing_py_variant_used(ing_py_kernel *k, ing_py_variant *v);
/* With the setting `paranoid`: is the variant what the kernel lowers to now (paranoid.c)? */
ing_status ing_py_paranoid(ing_py_kernel *k, const ing_py_variant *v,
                           PyObject *const *args, ing_err *e);
/* The gate is the caller's to free, also on failure. Quiet: without the output of
   static_print. */
ing_status ing_py_lower(ing_py_kernel *k, PyObject *const *args, bool quiet,
                        ing_py_gate **gate, ing_front_result *r, ing_settings *answered,
                        ing_err *e);
/* Trace and IR of a lowering with these arguments, as text (str, str); compiles nothing. */
PyObject *ing_py_lower_text(ing_py_kernel *k, PyObject *const *args);

/* ---- telling (log.c) ------------------------------------------------------------------------ */

typedef enum ing_py_log_topic { ING_PY_LOG_CACHE, ING_PY_LOG_COMPILE } ing_py_log_topic;

bool ing_py_log_wants(const ing_py_state *st, ing_py_log_topic t);
ing_status ing_py_log(const ing_py_state *st, ing_py_log_topic t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
