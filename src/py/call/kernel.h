/* Kernels and their launches: variants, derivatives, binding, compiling, what is said of them.
 *
 * Ownership: a kernel owns its variants; a variant is reference-counted because a launch
 * may outlive it (qd.init in another thread). Counts and tables are changed with the GIL
 * held, except where a comment says otherwise. */
#ifndef ING_PY_KERNEL_H
#define ING_PY_KERNEL_H

#include "py/see/see.h"

#include "ad/ad.h"
#include "graph/graph.h"
#include "launch/launch.h"

/* ---- objects ---------------------------------------------------------------------------------- */

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
    ing_launch_apart apart;       /* of record.apart, at its last launch */
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
    /* of a gradient: that of the launch that it is the reverse of */
    uint64_t forward_key;
    bool failed; /* a gradient whose launch ended with an error (partial.c) */
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
bool ing_py_asks_module(PyObject *name);
/* The function of a method or of a bound kernel, else the object itself; all borrowed. */
PyObject *ing_py_unbind(const ing_py_state *st, PyObject *obj, PyObject **self);
int ing_py_bound_add(PyObject *module, ing_py_state *st);
/* Drops variants, plans and the tree: the next launch starts afresh (R14). */
void ing_py_kernel_reset(ing_py_kernel *k);
void ing_py_variant_free(ing_py_variant *v); /* when nobody refers to it any more */
static inline void ing_py_variant_unref(ing_py_variant *v) {
    if (v && --v->refs == 0) ing_py_variant_free(v);
}

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
int ing_py_explain_add(PyObject *module, ing_py_state *st);
/* "file:line" of a task, "" when it cannot be told without a launch's arguments (graph.c). */
PyObject *ing_py_task_place(ing_py_kernel *k, const ing_py_variant *v, uint32_t loc);
/* ---- launch (call.c, bind.c, guard.c, variant.c) ------------------------------------------------- */

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
    struct ing_stage *stage; /* copies for the target (rt/stage.h); NULL: none */
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

#endif
