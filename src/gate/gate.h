/* gate: the only way by which lowering sees Python (R1 to R7). This folder is the
 * interface alone; src/py implements it over CPython and records every answer in the
 * trace, tests implement it over plain tables.
 *
 * A thing behind the gate is an ing_gref, an id valid for one compile; 0 = absent. The
 * front end walks from thing to thing (name, attr, item) without recording anything but
 * the path; a question is recorded when a *fact* is asked for: look, len, source, ... .
 *
 * Frames: each function body is lowered in a frame. Paths inside a frame are relative to
 * the frame's function and to its template parameters. `leave` closes the frame and
 * yields its sub-trace; `splice` copies a sub-trace into the current frame with the paths
 * re-rooted. The first use of a func is enter .. leave, splice; later uses splice only
 * (R7). The kernel's own frame is frame 0, open from the start and never left. */
#ifndef ING_GATE_H
#define ING_GATE_H

#include "gate/place.h"

typedef uint32_t ing_gref;

typedef enum ing_gate_kind {
    ING_GATE_ABSENT, /* no such name, attribute or item */
    ING_GATE_NONE,
    ING_GATE_BOOL, /* i */
    ING_GATE_INT,  /* i; `wide` set: the value is (uint64_t)i; dtype if it came typed */
    ING_GATE_FLOAT, /* f; dtype if it came typed (NumPy scalar) */
    ING_GATE_STR,   /* s, n */
    ING_GATE_DTYPE, /* dtype */
    ING_GATE_ENUM, /* a member: its value is attr "value"; IntEnum also fills i, wide */
    ING_GATE_TUPLE, /* items by item(), how many by derive() */
    ING_GATE_LIST,  /* likewise */
    ING_GATE_DICT,  /* likewise; items by item(str or int) */
    ING_GATE_FUNC, /* a @qd.func: def() gives its tree; bound: attr "__self__" is set */
    ING_GATE_KERNEL,    /* a @qd.kernel */
    ING_GATE_INTRINSIC, /* id: ing_intrinsic */
    ING_GATE_ARRAY,     /* array spec: a run-time argument */
    ING_GATE_SCALAR,    /* a run-time scalar argument of dtype */
    ING_GATE_MODULE,
    ING_GATE_CLASS,
    ING_GATE_OBJECT, /* anything else: only attribute access makes sense */
    ING_GATE_TENSOR, /* a host vector or matrix: elem_rank, elem_shape, dtype if it has one;
                           elements by attr "_entries" and item(), row major */
    ING_GATE_TENSOR_TYPE, /* qd.types.vector(..), matrix(..): elem_rank, elem_shape, dtype; what
                             is left open is 0 */
    ING_GATE_VIEW, /* a stretch of an array: attrs "arr", "offset" and "size" */
    ING_GATE_STRUCT, /* a host struct: members by attr, or by attr "_entries" and its items */
    ING_GATE_STRUCT_TYPE, /* qd.dataclass, qd.types.struct(..): layout; its methods and the types
                             of its members by item() */
    ING_GATE_FIELD, /* a dense field whose elements lie together: place */
    ING_GATE_BUNDLE, /* a field made of others: of vectors or matrices (elem_rank, elem_shape,
                        dtype; the fields of its scalars by attr "_parts" and item(), row
                        major) or of structs (elem_rank 0; members by attr "field_dict", funcs
                        by attr "struct_methods") */
} ing_gate_kind;

/* What a member of an enum is besides: that decides what it equals. */
typedef enum ing_gate_enum {
    ING_ENUM_PLAIN,
    ING_ENUM_INT, /* IntEnum */
    ING_ENUM_STR,
} ing_gate_enum;

typedef struct ing_gate_tensor { /* the shape of a vector (rank 1) or matrix (rank 2) */
    uint8_t rank;                /* 0: a scalar */
    uint32_t shape[2];           /* 0 = any, and where unused */
} ing_gate_tensor;

/* A struct type: its members in order. Numbers in it are counted depth first, those of
 * vectors and matrices row major: the order in which kernels take and return them. */
struct ing_gate_struct;
typedef struct ing_gate_member {
    const char *name;
    ing_dtype dtype; /* VOID: a struct */
    ing_gate_tensor tensor;
    const struct ing_gate_struct *inner;
    uint32_t first; /* its first number among those of the struct */
} ing_gate_member;

typedef struct ing_gate_struct {
    uint32_t n, n_numbers;
    const ing_gate_member *members;
    ing_hash128 digest; /* of names and types */
} ing_gate_struct;

static inline uint32_t ing_gate_count(const ing_gate_tensor *t) {
    return t->rank == 0 ? 1 : t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
}

typedef struct ing_gate_fact {
    ing_gate_kind kind;
    ing_dtype dtype;
    bool wide;
    /* FUNC: a bound method; parameter 0 is attr "__self__". ENUM: an IntEnum whose `.value` is i, as it is
     * unless the class made it otherwise. OBJECT: it says by itself what is in it, also in reverse. TUPLE,
     * LIST: its class has a `+` or `*` of its own */
    bool bound;
    bool flag; /* ENUM: of a Flag, which has a `~` of its own */
    /* FUNC: only calls at the top level of a kernel are allowed */
    bool requires_top_level;
    bool is_real_function; /* FUNC: always called, its loops are never the kernel's */
    int64_t i;
    double f;
    const char *s; /* STR: text; else a name for messages; lives as long as the gate */
    uint32_t n;
    const char *of; /* ENUM: name of its class */
    uint32_t id;    /* INTRINSIC */
    uint32_t len; /* ENUM: ing_gate_enum; TUPLE, LIST, DICT of gates without derive() */
    /* ARRAY: */
    uint8_t ndim;
    uint8_t grad;
    uint8_t elem_rank; /* 0 scalar, 1 vector, 2 matrix */
    uint32_t elem_shape[2];
    uint8_t layout[12];
    const ing_gate_struct
        *structure;         /* STRUCT_TYPE; BUNDLE: of an ndarray of structs, with ndim,
                                         else NULL. Lives as long as the gate */
    const ing_place *place; /* FIELD; likewise */
    const ing_gref
        *items; /* make() of TUPLE, LIST, DICT: len of them, a DICT's in pairs */
} ing_gate_fact;

/* Of an ndarray of structs: is it what a declaration of an array asks for? */
static inline bool ing_gate_fits_structs(const ing_gate_fact *f,
                                         const ing_gate_struct *layout, int32_t ndim) {
    return (!layout || ing_hash_eq(f->structure->digest, layout->digest)) &&
           (ndim < 0 || ndim == f->ndim);
}

/* How a parameter is passed, from its annotation. */
typedef enum ing_gate_passing {
    ING_PASS_ANY, /* func parameter without annotation: by value or static, as given */
    ING_PASS_VALUE, /* scalar of dtype (func or kernel) */
    ING_PASS_TEMPLATE, /* compile-time value; in funcs also by reference for run-time values */
    ING_PASS_ARRAY, /* array; dtype VOID / ndim -1 = any */
    ING_PASS_VIEW,  /* a stretch of a 1-d array; dtype VOID = any */
} ing_gate_passing;

typedef struct ing_gate_param {
    ing_gate_passing passing;
    ing_dtype dtype;
    ing_gate_tensor tensor;        /* VALUE: of the parameter; ARRAY: of its elements */
    const ing_gate_struct *layout; /* VALUE, ARRAY: of structs; dtype is VOID */
    int32_t ndim;
    bool has_default;
    bool needs_grad; /* an array must come with a gradient */
    bool no_grad;    /* an array's gradient is left alone */
    bool optional;   /* an array, or None */
    bool clamp;      /* an array: indices beyond it mean its border */
    bool by_ref;     /* TEMPLATE: a variable or element of dtype */
    bool fields;     /* ARRAY: or a field */
} ing_gate_param;

/* What a `->` annotation says: n entries, one per result. A tuple among the results of a func
 * is an entry of its own, before those of its items. n = 0: none or None. */
enum { ING_GATE_MAX_RETURNS = 16 };
typedef struct ing_gate_returns {
    bool given;
    bool tuple; /* written as a tuple, even of one */
    uint32_t n;
    ing_dtype dtypes[ING_GATE_MAX_RETURNS]; /* VOID: left open, in funcs */
    ing_gate_tensor tensors[ING_GATE_MAX_RETURNS];
    const ing_gate_struct *layouts[ING_GATE_MAX_RETURNS]; /* a struct; dtype is VOID */
    uint8_t items[ING_GATE_MAX_RETURNS]; /* a tuple: how many items it has, + 1 */
} ing_gate_returns;

/* The entry after entry i and what belongs to it. */
static inline uint32_t ing_gate_after(const ing_gate_returns *r, uint32_t i) {
    for (uint32_t left = 1; left && i < r->n; i++)
        left += r->items[i] ? (uint32_t)r->items[i] - 2 : UINT32_MAX;
    return i;
}

typedef struct ing_gate_key { /* a constant subscript */
    bool is_str;
    int64_t i;
    const char *s;
} ing_gate_key;

/* What Python says of a thing as a whole, itself a thing that can be asked about. */
typedef enum ing_gate_derived {
    ING_DERIVE_LEN,   /* len(x) */
    ING_DERIVE_TRUTH, /* bool(x) */
    ING_DERIVE_ITEMS, /* tuple(x) */
    ING_DERIVE_SAME,  /* x is y; y absent: x is None */
} ing_gate_derived;

struct ing_front_tree;

enum { ING_GATE_RESULT = 1 << 16 }; /* see annotation() */

typedef struct ing_gate_call {
    ing_gref fn;
    const ing_gref *args;
    uint32_t n;               /* all of them */
    const char *const *names; /* of the last n_named, the keywords */
    uint32_t n_named;
    bool in_static; /* inside of qd.static(...) */
} ing_gate_call;

typedef struct ing_gate_ops {
    /* Name in the scopes of the frame's function: closure, module, builtins. */
    ing_status (*name)(void *self, const char *name, ing_gref *out, ing_err *e);
    ing_status (*attr)(void *self, ing_gref of, const char *name, ing_gref *out,
                       ing_err *e);
    ing_status (*item)(void *self, ing_gref of, const ing_gate_key *k, ing_gref *out,
                       ing_err *e);
    /* As attr, of a thing that was reached in any frame, for the kernel's: with frame 0 open. */
    ing_status (*attr_of_root)(void *self, ing_gref of, const char *name, ing_gref *out,
                               ing_err *e);
    /* Whether two things, reached in any frames, are one. Recorded for the kernel only if
     * asked so, with frame 0 open: questions come in the order of their causes. */
    ing_status (*same_of_root)(void *self, ing_gref a, ing_gref b, bool record,
                               bool *out, ing_err *e);
    /* Whether there is such an item, or (k NULL) attribute: one question, whatever the answer,
     * unlike a step, which is followed by others only if it leads somewhere. */
    ing_status (*has)(void *self, ing_gref of, const char *attr, const ing_gate_key *k,
                      bool *out, ing_err *e);
    /* *out 0: Python has no answer either. NULL: len of the fact, no other answers. */
    ing_status (*derive)(void *self, ing_gref of, ing_gate_derived what, ing_gref other,
                         ing_gref *out, ing_err *e);
    /* The fact about a thing; recorded. Asking again is free and gives the same answer. */
    ing_status (*look)(void *self, ing_gref of, ing_gate_fact *out, ing_err *e);
    /* The same where a constant is needed (qd.static): a number that would be read at each
     * launch is compiled in, or refused. NULL: as look. */
    ing_status (*bake)(void *self, ing_gref of, ing_gate_fact *out, ing_err *e);
    /* May the items of this array be compiled in where constants are needed? NULL: never. */
    bool (*constant)(void *self, ing_gref of);
    /* Equal numbers = found at the same place, in this launch and in every other; 0: it has
     * no place. Objects that are the same now may be two later. NULL: no places. */
    uint32_t (*place)(void *self, ing_gref of);
    /* Was it reached through the scopes of the frame's function, not through a parameter?
     * NULL: nobody knows. */
    bool (*captured)(void *self, ing_gref of);
    /* Calls a Python function with static arguments and yields its result (R2). */
    ing_status (*call)(void *self, const ing_gate_call *call, ing_gref *out,
                       ing_err *e);
    /* Refuses what call would refuse whatever the arguments are. NULL: nothing. */
    ing_status (*may_call)(void *self, ing_gref fn, ing_err *e);
    /* A static value made by the front end, as a thing (to pass it to call or item). */
    ing_status (*make)(void *self, const ing_gate_fact *value, ing_gref *out,
                       ing_err *e);
    /* The frame's function. */
    ing_status (*param)(void *self, uint32_t i, ing_gref *out,
                        ing_err *e); /* template or kernel argument */
    ing_status (*param_info)(void *self, uint32_t i, ing_gate_param *out, ing_err *e);
    ing_status (*param_default)(void *self, uint32_t i, ing_gref *out, ing_err *e);
    /* The annotation of a parameter as a thing; of result i - ING_GATE_RESULT. NULL: none
     * can be asked for. */
    ing_status (*annotation)(void *self, uint32_t i, ing_gref *out, ing_err *e);
    ing_status (*returns)(void *self, ing_gate_returns *out, ing_err *e);
    /* The tree of a FUNC; records its source. Lives as long as the gate. */
    ing_status (*def)(void *self, ing_gref fn, const struct ing_front_tree **out,
                      ing_err *e);
    ing_status (*config)(void *self, ing_setting k, int64_t *out, ing_err *e);
    /* Frames. `params` has one gref per parameter, 0 for run-time ones. */
    ing_status (*enter)(void *self, ing_gref fn, const ing_gref *params, uint32_t n,
                        ing_err *e);
    ing_status (*leave)(void *self, uint32_t *subtrace, ing_err *e);
    ing_status (*splice)(void *self, uint32_t subtrace, ing_gref fn,
                         const ing_gref *params, uint32_t n, ing_err *e);
    /* A thing that was reached in the frame of that sub-trace, for its caller; 0: nothing
     * the caller could ask about. NULL: never. */
    ing_status (*carry)(void *self, ing_gref of, ing_gref fn, const ing_gref *params,
                        uint32_t n, ing_gref *out, ing_err *e);
    /* Equal keys within this compile = interchangeable as a template value. Not recorded. */
    ing_status (*memo_key)(void *self, ing_gref of, ing_hash128 *out, ing_err *e);
    /* Short text of a thing for messages, e.g. "list of 3 items"; into buf, never fails. */
    void (*describe)(void *self, ing_gref of, char *buf, size_t size);
    /* Where a thing is found, for messages: "s.part"; "" if nowhere. NULL: nobody knows. */
    void (*where)(void *self, ing_gref of, char *buf, size_t size);
    /* The name in scope (of == 0) or attribute that was probably meant, for a message; "" if
       none. True: it is a whole remedy, not a name. Not recorded. NULL: nobody knows. */
    bool (*near)(void *self, ing_gref of, const char *name, char *buf, size_t size);
    /* Is this function the standard library's or an installed package's? For a message, not
       recorded. NULL: nobody knows. */
    bool (*is_library)(void *self, ing_gref of);
    /* A warning that belongs to the variant (R16), about a node of a tree that `def` gave;
       NULL: about no place. The text names no file and no line (R19). */
    ing_status (*warn)(void *self, const char *category, const char *text,
                       const struct ing_front_tree *tree, uint32_t node, ing_err *e);
    /* Text for the user's standard output, now (static_print). NULL: nobody listens. */
    ing_status (*say)(void *self, const char *text, size_t n, ing_err *e);
} ing_gate_ops;

typedef struct ing_gate {
    const ing_gate_ops *ops;
    void *self;
    bool graph, checkpoints; /* options of the kernel: part of its address, not asked */
    /* likewise: the attribute under which arrays have the arrays of their derivatives ("grad", "dual");
     * NULL: of no interest */
    const char *companion;
} ing_gate;

/* ---- intrinsics: callables that the language itself knows --------------------------------- */
typedef enum ing_intrinsic {
    ING_IN_NONE,
#define INTRINSIC(name, text) ING_IN_##name,
#include "gate/intrinsic.def"
#undef INTRINSIC
    ING_IN_N
} ing_intrinsic;
const char *ing_intrinsic_name(ing_intrinsic i);
ing_intrinsic ing_intrinsic_find(const char *text); /* ING_IN_NONE when unknown */

#endif
