/* What the files of src/front share. Lowering walks a function's tree once, holding for
 * every expression one `value`: something known while compiling (a static scalar, a
 * tuple, a thing behind the gate) or something that exists at run time (an instruction).
 *
 *   lower.c   the kernel: setting up, arguments, results       stmt.c    statements
 *   frame.c   function bodies: scopes, names, configuration    loop.c    `for`
 *   func.c    calls of funcs: specialising and sharing (R7)    assign.c  targets
 *   result.c  what they give back (func.h)
 *   expr.c    expressions that are no operators and no calls   call.c    calls
 *   arith.c   operators on run-time values, type rules         intrin.c  intrinsics
 *   fold.c    operators on static values                       value.c   conversions
 *   choose.c  `a if c else b`                               graph.c   graph kernels
 *   contain.c dicts, comprehensions, methods of containers     tensor*.c vectors
 *   items.c   tuples, lists and dicts as variables             builtin.c Python's functions
 *   view.c    stretches of arrays                             field.c   dense fields
 *   struct.c  structs: bundles of values with names            meet.c    operands' types
 *
 * Rules
 *  LOWER1 Everything outside the function is asked of the gate, in source order (R6); a thing
 *     is looked at only when its nature matters, so that what is not read is not keyed.
 *  LOWER2 A failing function has written the error; callers pass the status on. The place of
 *     an error is the innermost node that is wrong.
 *  LOWER3 Names live in the block in which they are first assigned, as in the reference. A name
 *     that one statement assigns and that no call can take by reference is the value
 *     itself; any other is an ALLOCA.
 *  LOWER4 No memory is the arena's sticky flag, asked once at the end; instruction ids of a
 *     failed builder are 0 and are passed along like any other. */
#ifndef ING_FRONT_INT_H
#define ING_FRONT_INT_H

#include "front/front.h"

/* ---- reading trees -------------------------------------------------------------------- */

/* struct nf_BINOP { uint32_t left, op, right; } and so on: the slots of a node. */
#define F(field, field_kind) uint32_t field;
#define NODE(kind, class_, fields) \
    struct nf_##kind {             \
        fields                     \
    };
#include "front/node.def"
#undef NODE
#undef F
#define NF(t, n, kind) \
    ((const struct nf_##kind *)&(t)->slots.at[(t)->nodes.at[n].slots])

static inline uint32_t list_len(const ing_front_tree *t, uint32_t list) {
    return list ? t->slots.at[list] : 0;
}
static inline uint32_t list_at(const ing_front_tree *t, uint32_t list, uint32_t i) {
    return t->slots.at[list + 1 + i];
}
/* The `if` that is all of the else part of `if` n, as `elif` makes it; 0 = none, also when
 * n is something else. */
static inline ing_node ing_front_elif(const ing_front_tree *t, ing_node n) {
    if (t->nodes.at[n].kind != ING_NODE_IF) return 0;
    uint32_t list = NF(t, n, IF)->orelse;
    ing_node first = list_len(t, list) == 1 ? list_at(t, list, 0) : 0;
    return first && t->nodes.at[first].kind == ING_NODE_IF ? first : 0;
}

/* ---- messages ---------------------------------------------------------------------------- */

void ing_front_diag_put(const ing_front_tree *t, ing_node at, const char *text,
                        const char *remedy, ing_bytes *out);
void ing_front_diag_chain(const ing_front_tree *t, ing_node at, const char *callee,
                          ing_bytes *out);
/* The parameters of a function in order: positional, then keyword-only. */
typedef struct param_list {
    uint32_t n, n_positional;
    ing_node *node; /* ARGUMENT nodes; arena */
} param_list;

/* Makes the collected text the error at that place; frees the text. */
ing_status ing_front_diag_done(const ing_front_tree *t, ing_node at, ing_status s,
                               ing_bytes *text, ing_err *e);

/* ---- values ------------------------------------------------------------------------------- */

typedef enum value_kind {
    V_VOID, /* no value: a func that returns nothing */
    /* static scalars; dtype VOID = an untyped literal */
    V_NONE,
    V_BOOL /* i */,
    V_INT /* i, wide */,
    V_FLOAT /* f */,
    V_STR /* s, n */,
    /* static things */
    V_DTYPE, /* dtype */
    V_TUPLE,
    V_LIST,      /* items, n: any values, run-time ones included */
    V_DICT,      /* items: n keys, each with its value after it */
    V_VIEW,      /* items[3]: array, offset, size: see view.c */
    V_BUNDLE,    /* items, n: fields that make up one; `tensor`, or info: see field.c */
    V_PARAM,     /* i: a kernel parameter that was not read yet */
    V_THING,     /* gref, not looked at */
    V_SEEN,      /* gref, fact kind in `seen`; n = length of TUPLE, LIST, DICT */
    V_FUNC,      /* gref; `bound` */
    V_INTRINSIC, /* tag = ing_intrinsic */
    V_SLICE,     /* items[3], V_NONE where absent */
    V_ITER, /* range, ndrange, grouped, enumerate, zip, reversed: tag = ing_intrinsic, items, n */
    V_SHAPE, /* inst = array: its shape, one DIM per axis that is read */
    /* run time */
    V_RT,          /* inst of type */
    V_REF,         /* inst: address of a `type`; `shared` */
    V_ARRAY,       /* inst of array type */
    V_TYPE,        /* type: a vector or matrix type; gref */
    V_STRUCT,      /* items, n, info: see struct.c; gref: its type, or 0 */
    V_STRUCT_TYPE, /* info, gref */
    V_FORMAT,      /* items, n: text (V_STR) and numbers to come (V_RT, format in s) */
} value_kind;

typedef struct struct_info { /* the members of a struct, in order */
    uint32_t n;
    const char *const *names;
    const ing_gate_struct *layout; /* NULL: it was made without a type */
    const ing_gate_struct *array; /* of a V_BUNDLE that is an ndarray of such structs */
} struct_info;

typedef struct value {
    uint8_t kind;  /* value_kind */
    uint8_t dtype; /* ing_dtype */
    uint8_t seen;  /* ing_gate_kind */
    /* V_INT, V_FLOAT, computed: NumPy would have it in this type (fold.c) */
    uint8_t numpy;
    uint16_t tag;   /* V_ITER, V_INTRINSIC: ing_intrinsic */
    bool alt_place; /* V_REF: `alt` is an address, too */
    bool wide;      /* V_INT: (uint64_t)i */
    bool bound;     /* V_FUNC; V_SEEN: as ing_gate_fact has it; V_BOOL: NumPy's;
                       V_DTYPE: of an array */
    bool top_only;  /* V_FUNC: may be called at the top level of a kernel only */
    bool closed;    /* V_FUNC: is never opened; V_SEEN: a member of a Flag; in
                       formatted text: as it is shown, not as Python has it */
    bool shared; /* V_REF: other threads may update it: array elements, and locals from
                       outside of the parallel loop */
    /* V_RT, V_REF: may not be assigned (loop variables, kernel arguments) */
    bool fixed;
    bool arg;    /* a kernel argument, for messages */
    bool tensor; /* V_TUPLE: a vector of these values, or a matrix of such rows */
    bool temp;   /* V_REF: a temporary that nobody else knows */
    bool clamp;  /* V_ARRAY, V_REF to its elements: indices beyond it mean its border */
    /* written as qd.static(...): binds and iterates while compiling */
    bool from_static;
    ing_type type;
    uint32_t inst;
    /* V_RT, V_REF: the same number as an f64, while it has no type (meet.c) */
    uint32_t alt;
    uint32_t n;
    ing_gref gref;
    ing_gref origin; /* static scalars: what they were read from, for messages */
    const struct_info *info; /* V_STRUCT, V_STRUCT_TYPE */
    union {
        int64_t i;
        double f;
        const char *s;
        struct value *items;
    };
} value;

/* How many items a container holds: those of a dict are keys and values. */
static inline uint32_t v_children(const value *v) {
    bool list = v->kind == V_TUPLE || v->kind == V_LIST || v->kind == V_VIEW ||
                v->kind == V_STRUCT || v->kind == V_BUNDLE || v->kind == V_ITER;
    return list ? v->n : v->kind == V_DICT ? 2 * v->n : 0;
}
static inline bool v_holds(const value *v) {
    return v->kind == V_TUPLE || v->kind == V_LIST || v->kind == V_DICT ||
           v->kind == V_VIEW || v->kind == V_STRUCT || v->kind == V_BUNDLE ||
           v->kind == V_ITER;
}

/* ---- the compile and its frames ------------------------------------------------------------ */

typedef struct binding { /* a name in scope */
    uint32_t atom;
    uint32_t shadows; /* binding of the same name further out, +1 */
    uint32_t depth;   /* IR blocks around the place where it was made */
    bool in_parallel; /* made inside the parallel loop */
    bool own;         /* a tuple, list or dict that nothing else names (items.c) */
    bool roomy;       /* a list with room for as many items as a power of two */
    value v;
} binding;

typedef struct spec spec; /* a specialised func: func.c */

typedef struct loop { /* innermost last, linked through the C stack */
    struct loop *outer;
    bool unrolled;
    bool parallel;
    bool region;      /* of a graph: cannot be left */
    bool broke;       /* a `break` leaves it */
    bool continued;   /* a `continue` ends an iteration */
    uint32_t control; /* frame->control at its start */
} loop;

typedef struct lowering lowering;
typedef struct func_info func_info;

/* An array that qd.stop_grad was called for: uses of it are of another argument, which is the
 * same array and has no companion. */
typedef struct stopped {
    uint32_t arg, instead;
    /* until the block so deep ends; what qd.static picks is no block */
    uint32_t control;
} stopped;

typedef struct
    same_pair { /* arguments of which it matters whether they are one array */
    uint32_t a, b;
} same_pair;

typedef struct frame {
    lowering *lo;
    struct frame *caller;
    const ing_front_tree *t;
    const char *name;
    ing_node call_node; /* in the caller's tree */
    uint32_t id;        /* no other frame of the compile has it */
    bool kernel;
    bool top;         /* its outermost block is that of the kernel: see func.c */
    ing_hash128 open; /* an opened func: its signature */
    ing_ir_builder b;
    uint32_t func; /* IR function */
    ing_vec(binding) names;
    uint32_t *slot_of;  /* atom -> binding + 1; arena */
    uint8_t *uses;      /* atom -> NAME_* ; arena */
    uint32_t block;     /* names from here on belong to the innermost block */
    uint32_t control;   /* run-time if / for / while around */
    uint32_t regions;   /* of a graph, around (graph.c) */
    uint32_t in_static; /* inside qd.static(...) */
    uint32_t in_index;  /* directly inside a subscript (R22) */
    loop *loops;
    bool in_parallel;
    uint32_t config_known;
    int64_t config[ING_SETTING_N];
    bool serialize_next;    /* loop_config(serialize=True) */
    spec *sp;               /* funcs */
    ing_gate_param *params; /* kernel: what is known of each parameter; arena */
    bool *params_known;
    ing_gate_returns returns;
    ing_vec(stopped) stopped; /* arrays that are constants for derivatives, here */
    bool returned;            /* a return statement was lowered */
    bool one_return;          /* a func: every return ends its outermost block */
} frame;

struct lowering {
    const ing_gate *gate;
    ing_front_result *out;
    ing_ir_mod *mod;
    ing_arena arena;
    ing_err *e;
    uint32_t depth;
    uint32_t n_frames;
    ing_op region;    /* the innermost region of the graph, ING_OP_NONE = none */
    bool stream;      /* in a block of qd.stream_parallel() (graph.c) */
    ing_map args;     /* gref -> argument + 1 */
    ing_map steps;    /* (gref, name or index) -> gref + 1: each step is taken once */
    ing_map specs;    /* signature -> index in spec_list + 1 */
    ing_map func_map; /* func's memo key -> index in func_list + 1 */
    ing_vec(spec *) spec_list;
    ing_vec(func_info *) func_list;
    ing_vec(const ing_front_tree *) opened;
    ing_vec(same_pair) compared; /* arguments: to be recorded at the end */
};

/* How often a name is assigned; whether a call or a part of it needs its address; whether a
 * member, an item of it is assigned; whether a method such as append changes it; whether it
 * is assigned where it exists already; whether a call that may be of a func is given it. */
enum {
    NAME_ONCE = 1,
    NAME_MANY = 2,
    NAME_ADDRESS = 4,
    NAME_PART = 8,
    NAME_ITEM = 16,
    NAME_GROWS = 32,
    NAME_AGAIN = 64,
    NAME_HANDED = 128,
};

/* How a statement ends. */
typedef enum flow {
    FLOW_NEXT,
    FLOW_ENDED,    /* what follows is unreachable */
    FLOW_BREAK,    /* out of the unrolled loop */
    FLOW_CONTINUE, /* of the unrolled loop */
} flow;

/* Run-time blocks around code, in one function; the IR allows a few more (I7). */
enum { MAX_NESTING = 200 };

/* ---- frame.c --------------------------------------------------------------------------------- */

ing_status ing_front_fail_at(frame *fr, ing_node at, ing_status s, const char *remedy,
                             const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* A warning about this place. */
ing_status ing_front_warn_at(frame *fr, ing_node at, const char *category,
                             const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Gives an error from behind the gate its place. */
ing_status ing_front_fail_gate(frame *fr, ing_node at, ing_status s);
#define GATE(fr, at, op, ...)                                                   \
    do {                                                                        \
        const ing_gate *gate_ = (fr)->lo->gate;                                 \
        ing_status gate_s_ = gate_->ops->op(gate_->self, __VA_ARGS__);          \
        if (gate_s_ != ING_OK) return ing_front_fail_gate((fr), (at), gate_s_); \
    } while (0)
/* Enters a run-time block: control++, refused when too deep. */
ing_status ing_front_nest(frame *fr, ing_node at);
/* Reads a variable or an element, also those in a tuple or list: what is evaluated next may
 * change them. */
ing_status ing_front_keep(frame *fr, ing_node at, value *v);
ing_status ing_front_deeper(frame *fr, ing_node at); /* counts; undone by lo->depth-- */
ing_status ing_front_frame_init(frame *fr, lowering *lo, frame *caller,
                                const ing_front_tree *t);
void ing_front_frame_fini(frame *fr);
/* What kernels are called in messages. */
const char *ing_front_kernels(frame *fr);
const char *ing_front_scope(frame *fr);
const char *ing_front_does(frame *fr);
ing_status ing_front_config_get(frame *fr, ing_node at, ing_setting k, int64_t *out);
const char *ing_front_atom_text(const frame *fr,
                                uint32_t slot); /* of an ATOM slot (atom + 1) */
/* Refuses *args and **kwargs. */
ing_status ing_front_params_read(frame *fr, param_list *out);
uint32_t ing_front_scope_open(frame *fr);
void ing_front_scope_close(frame *fr, uint32_t mark);
value *ing_front_scope_find(frame *fr, uint32_t atom);
binding *ing_front_binding(frame *fr, uint32_t atom); /* NULL: it has none */
ing_status ing_front_scope_add(frame *fr, uint32_t atom, const value *v);
ing_status ing_front_name_read(frame *fr, ing_node at, uint32_t atom, value *out);
/* What the name means outside of the function. */
ing_status ing_front_name_outside(frame *fr, ing_node at, uint32_t atom, value *out);
/* "did you mean ...?", from the names in scope or the attributes of a thing; or what is known of
 * the name; or NULL. */
const char *ing_front_suggest(frame *fr, ing_gref of, const char *name);
/* One cached step from a thing; *out is V_THING, or V_VOID when there is no such thing. */
ing_status ing_front_thing_attr(frame *fr, ing_node at, ing_gref of, const char *name,
                                value *out);
ing_status ing_front_thing_item(frame *fr, ing_node at, ing_gref of,
                                const ing_gate_key *k, value *out);
/* What Python says of a thing as a whole, looked at; V_VOID: nothing. */
ing_status ing_front_derive(frame *fr, ing_node at, ing_gref of, ing_gate_derived what,
                            ing_gref other, value *out);
/* Fills v->n of a container from outside, which is asked for only where it matters. */
ing_status ing_front_count(frame *fr, ing_node at, value *v);

/* ---- value.c ------------------------------------------------------------------------------------ */

value ing_front_none(void);
value ing_front_bool(bool b);
value ing_front_int(int64_t i);
value ing_front_float(double f);
value ing_front_rt(uint32_t inst, ing_type t);
value ing_front_seq(value_kind kind, value *items, uint32_t n);
bool ing_front_is_scalar(const value *v); /* a number: static or run-time */
bool ing_front_is_static(
    const value *v); /* known while compiling, all items included */
bool ing_front_is_runtime(const value *v); /* V_RT or V_REF */
const char *ing_front_describe(frame *fr,
                               const value *v); /* for messages; in the arena */
/* See gate.h: which place of the outside it is, 0 = none. */
uint32_t ing_front_place(const frame *fr, ing_gref ref);
/* Looks at a V_THING and makes it what it is. */
ing_status ing_front_force(frame *fr, ing_node at, value *v);
/* The argument that an array is; its type. */
ing_status ing_front_array_arg(frame *fr, ing_node at, const ing_gate_fact *f,
                               ing_gref ref, ing_type *type, uint32_t *k);
/* Kernel parameter i, on first use: a scalar argument, or a thing to look at. */
ing_status ing_front_param(frame *fr, ing_node at, uint32_t i, value *out);
ing_status ing_front_check_array(frame *fr, ing_node at, const ing_gate_param *p,
                                 const value *v);
/* What to do with something that is no number, where one is needed. */
const char *ing_front_number_remedy(const value *v);
/* A member of an enum as its value; anything else stays. */
ing_status ing_front_enum_value(frame *fr, ing_node at, value *v);
/* An instruction for a scalar; V_REF is loaded, literals take the default dtypes. */
ing_status ing_front_load(frame *fr, ing_node at, const value *v, value *out);
/* The same where a vector or matrix will not do. */
ing_status ing_front_load_number(frame *fr, ing_node at, const value *v, value *out);
ing_status ing_front_convert(frame *fr, ing_node at, const value *v, ing_dtype to,
                             uint32_t *inst);
uint32_t ing_front_emit_cast(frame *fr, uint32_t inst, ing_dtype from, ing_dtype to);
/* As a u1 condition; floats are refused as in the reference. */
ing_status ing_front_condition(frame *fr, ing_node at, const value *v, const char *what,
                               uint32_t *inst);
ing_status ing_front_truth(frame *fr, ing_node at, const value *v, bool *out);
uint32_t ing_front_str_len(const char *s, uint32_t n);
/* in characters, as Python's */ /* static */
/* Inside qd.static, an array from outside whose items are constants there. */
bool ing_front_is_constant(const frame *fr, const value *v);
/* In arithmetic a NumPy array from outside with one axis is the vector of its elements. */
ing_status ing_front_sequence_vector(frame *fr, ing_node at, value *v);
/* The items of something that can be unpacked; *ok false: it cannot. */
ing_status ing_front_items(frame *fr, ing_node at, const value *v, value **items,
                           uint32_t *n, bool *ok);
/* The same of what Python takes for a sequence: strings too, by letters. */
ing_status ing_front_sequence(frame *fr, ing_node at, const value *v, value **items,
                              uint32_t *n, bool *ok);
/* What to do about a value that is no sequence known while compiling. */
const char *ing_front_sequence_remedy(const value *v);
/* A dtype given as an argument or annotation: qd.f32, int, float, bool. */
ing_status ing_front_dtype(frame *fr, ing_node at, value *v, ing_dtype *out);
ing_status ing_front_literal_dtype(frame *fr, ing_node at, const value *v,
                                   ing_dtype *out);
/* Does the integer fit? */
bool ing_front_int_fits(const value *v, ing_dtype t);
uint32_t ing_front_const_of(frame *fr, const value *v, ing_dtype t);
/* A V_INT or V_BOOL as a number, and the other way round: from -2**63 below 2**64. */
static inline __int128 ing_front_int_of(const value *v) {
    return v->wide ? (__int128)(uint64_t)v->i : (__int128)v->i;
}
value ing_front_int_from(__int128 x);
ing_status ing_front_value_key(frame *fr, ing_node at, const value *v, ing_hasher *h);
ing_dtype ing_front_promote(ing_dtype a, ing_dtype b);
static inline ing_dtype v_type(const value *v) { /* V_RT, V_REF of a scalar */
    return v->type < ING_DTYPE_N ? (ing_dtype)v->type : ING_VOID;
}

/* ---- meet.c ---------------------------------------------------------------------------------------- */

/* A float without a type: a literal, one from Python, or chosen among such. */
bool ing_front_is_untyped(const value *v);
/* A number known while compiling as such a float; others stay what they are. */
value ing_front_as_float(const value *v);
/* As ing_front_load, where the value meets one of type `other` (VOID: of none). */
ing_status ing_front_load_with(frame *fr, ing_node at, const value *v, ing_dtype other,
                               value *out);
/* Two operands that meet. */
ing_status ing_front_load_both(frame *fr, ing_node at_l, const value *l, ing_node at_r,
                               const value *r, value *a, value *b);
/* What t (VOID: nothing yet) and the type that v brings along promote to. */
ing_dtype ing_front_meet(ing_dtype t, const value *v);
/* As ing_front_load; a float without a type stays one. */
ing_status ing_front_load_untyped(frame *fr, ing_node at, const value *v, value *out);
/* out is op of a and b, which l and r were loaded as (r NULL: of a alone). If no float that
 * has a type took part, it has none either: the same on f64 goes with it. */
void ing_front_put_wide(frame *fr, ing_op op, const value *l, const value *a,
                        const value *r, const value *b, value *out);
/* The type in which numbers of type t are added: booleans are integers. */
ing_status ing_front_arith_type(frame *fr, ing_node at, ing_dtype *t);

/* ---- expr.c, arith.c, fold.c ------------------------------------------------------------------------ */

ing_status ing_front_expr(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_forced(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_static(frame *fr, ing_node n,
                                 value *out); /* as under qd.static */
/* An attribute of what node n says `base` is. */
ing_status ing_front_attr_value(frame *fr, ing_node n, value *base, value *out);
ing_status ing_front_array_element(frame *fr, ing_node at, const value *array,
                                   const value *index, uint32_t n, ing_node slice,
                                   value *out);
ing_status ing_front_subscript_value(frame *fr, ing_node at, const value *base,
                                     ing_node slice, value *out);
ing_status ing_front_expr_binop(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_unary(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_compare(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_boolop(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_ifexp(frame *fr, ing_node n, value *out);
ing_status ing_front_binary(frame *fr, ing_node at, ing_front_op op, const value *l,
                            const value *r, value *out);
ing_status ing_front_select_values(frame *fr, ing_node at, uint32_t cond,
                                   const value *a, const value *b, value *out);
ing_status ing_front_min_max(frame *fr, ing_node at, bool max, const value *l,
                             const value *r, value *out);
/* *done false: the operands are not both static scalars. */
ing_status ing_front_fold_binary(frame *fr, ing_node at, ing_front_op op,
                                 const value *l, const value *r, value *out,
                                 bool *done);
bool ing_front_fold_power(const frame *fr, ing_node n, value *out);
ing_status ing_front_fold_unary(frame *fr, ing_node at, ing_front_op op, const value *v,
                                value *out, bool *done);
ing_status ing_front_fold_compare(frame *fr, ing_node at, ing_front_op op,
                                  const value *l, const value *r, bool *result,
                                  bool *done);
ing_status ing_front_same_item(frame *fr, ing_node at, const value *l, const value *r,
                               bool *result, bool *done);
/* Two numbers of a kind, or texts, that are equal and may be one object or two. */
bool ing_front_may_be_one(const value *l, const value *r);

ing_status ing_front_unary(frame *fr, ing_node at, ing_front_op op, const value *v,
                           value *out);
ing_status ing_front_compare(frame *fr, ing_node at, ing_front_op op, const value *l,
                             const value *r, value *out);

typedef struct call_args {
    value *at; /* positional, *seq spread out */
    ing_node *node;
    uint32_t n;
    value *kw; /* keywords */
    ing_node *kw_node;
    uint32_t *kw_name; /* ATOM slots */
    uint32_t n_kw;
    /* Variables and elements as they were, if a later argument may change them; else of kind
     * V_VOID. For parameters that take values. NULL: none was kept. */
    value *now, *kw_now;
} call_args;

/* ---- tensor*.c: vectors and matrices (tensor.h) ------------------------------------------------- */

bool ing_front_is_tensor(const frame *fr, const value *v);
const char *ing_front_tensor_describe(frame *fr, const value *v); /* NULL: it is none */
ing_status ing_front_tensor_thing(frame *fr, ing_node at, const ing_gate_fact *f,
                                  value *v);
ing_status ing_front_tensor_items(frame *fr, ing_node at, const value *v, value **items,
                                  uint32_t *n, bool *ok);
ing_status ing_front_tensor_result(frame *fr, ing_node at, value *v);
/* An argument of a func: numbers without a type stay so, in a small vector. */
ing_status ing_front_tensor_pass(frame *fr, ing_node at, value *v);
ing_status ing_front_tensor_load(frame *fr, ing_node at, const value *v, value *out);
ing_status ing_front_tensor_cast(frame *fr, ing_node at, const value *v, ing_dtype t,
                                 value *out);
/* As a vector or matrix of that shape and type (VOID: its own). */
ing_status ing_front_tensor_convert(frame *fr, ing_node at, const value *v,
                                    const ing_gate_tensor *want, ing_dtype t,
                                    value *out);
/* Elements of a kernel's result, in order. */
ing_status ing_front_tensor_results(frame *fr, ing_node at, const value *v,
                                    const ing_gate_tensor *want, ing_dtype t,
                                    value **elems, uint32_t *n);
/* A kernel parameter of vector or matrix type. */
ing_status ing_front_tensor_param(frame *fr, ing_node at, ing_gref ref,
                                  const ing_gate_param *p, value *out);
/* `to` is a V_REF, or places in a tuple; numbers go to every element. */
ing_status ing_front_tensor_store(frame *fr, ing_node at, const value *to,
                                  const value *v);
ing_status ing_front_tensor_declare(frame *fr, ing_node at, uint32_t atom,
                                    const value *v);
ing_status ing_front_tensor_binary(frame *fr, ing_node at, ing_front_op op,
                                   const value *l, const value *r, value *out);
ing_status ing_front_tensor_unary(frame *fr, ing_node at, ing_front_op op,
                                  const value *v, value *out);
ing_status ing_front_tensor_compare(frame *fr, ing_node at, ing_front_op op,
                                    const value *l, const value *r, value *out);
ing_status ing_front_tensor_logical(frame *fr, ing_node at, bool is_and, const value *l,
                                    const value *r, value *out);
ing_status ing_front_tensor_select(frame *fr, ing_node at, uint32_t cond,
                                   const value *a, const value *b, value *out);
ing_status ing_front_tensor_atomic(frame *fr, ing_node at, const value *ref,
                                   const value *v, ing_ir_atomic op, value *old);
/* Intrinsics that work element by element; *done false: not one, or no tensors. */
ing_status ing_front_tensor_lift(frame *fr, ing_node n, ing_intrinsic id,
                                 const call_args *a, value *out, bool *done);
ing_status ing_front_tensor_construct(frame *fr, ing_node n, ing_intrinsic id,
                                      const call_args *a, value *out);
ing_status ing_front_tensor_call_type(frame *fr, ing_node n, const value *type,
                                      const call_args *a, value *out);
ing_status ing_front_tensor_subscript(frame *fr, ing_node at, const value *base,
                                      const value *index, value *out);
bool ing_front_is_tensor_attr(const char *name);
ing_status ing_front_tensor_attr(frame *fr, ing_node at, const value *v,
                                 const char *name, value *out);
ing_status ing_front_tensor_extents(frame *fr, const value *v, value *out);
bool ing_front_is_tensor_method(const char *name);
ing_status ing_front_tensor_method(frame *fr, ing_node n, const value *self,
                                   const char *name, const call_args *a, value *out);
ing_status ing_front_transpose(frame *fr, ing_node n, const value *v, value *out);
ing_status ing_front_inverse_large(frame *fr, ing_node n, const value *v, value *out);

/* ---- struct.c -------------------------------------------------------------------------------- */

/* qd.types.struct(...) and @qd.dataclass, looked at. */
ing_status ing_front_struct_type(frame *fr, ing_node at, const ing_gate_struct *layout,
                                 value *v);
/* A struct from a struct from outside or from a dict; *ok false: it is none. */
ing_status ing_front_struct_from(frame *fr, ing_node at, const value *v, value *out,
                                 bool *ok);
/* As a struct of that type, by value; gref is left to the caller. */
ing_status ing_front_struct_convert(frame *fr, ing_node at, const value *v,
                                    const ing_gate_struct *layout, value *out);
/* The same for a result: one of another struct type is refused. */
ing_status ing_front_struct_result(frame *fr, ing_node at, const value *v,
                                   const ing_gate_struct *layout, value *out);
/* A kernel parameter: nothing is read until a member is. */
ing_status ing_front_struct_param(frame *fr, ing_node at, ing_gref ref, uint32_t i,
                                  const ing_gate_param *p, value *out);
/* With items, whatever it came from. */
ing_status ing_front_struct_open(frame *fr, ing_node at, value *v);
/* As a value that nothing changes any more. */
ing_status ing_front_struct_load(frame *fr, ing_node at, const value *v, value *out);
ing_status ing_front_struct_declare(frame *fr, ing_node at, uint32_t atom,
                                    const value *v);
/* Each member of a loaded struct in memory of its own. */
ing_status ing_front_struct_settle(frame *fr, ing_node at, value *v);
ing_status ing_front_struct_store(frame *fr, ing_node at, const value *to,
                                  const value *v);
/* The numbers of a struct of that type, in order, as instructions: a kernel's result. */
ing_status ing_front_struct_numbers(frame *fr, ing_node at, const value *v,
                                    const ing_gate_struct *layout, value *out);
ing_status ing_front_struct_attr(frame *fr, ing_node at, const value *v,
                                 const char *name, value *out);
ing_status ing_front_struct_item(frame *fr, ing_node at, const value *v,
                                 const value *index, value *out);
/* qd.Struct(...) and struct types, called. */
ing_status ing_front_struct_make(frame *fr, ing_node n, const call_args *a, value *out);
ing_status ing_front_struct_call(frame *fr, ing_node n, const value *type,
                                 const call_args *a, value *out);
/* A method of its type as a func; *ok false: it has none of that name. */
ing_status ing_front_struct_method(frame *fr, ing_node at, const value *v,
                                   const char *name, value *out, bool *ok);

/* ---- calls -------------------------------------------------------------------------------------------- */

ing_status ing_front_expr_call(frame *fr, ing_node n, value *out);
/* `self`: the struct whose method it is, or NULL. */
/* A run-time argument was found at `ref`: specialised funcs that capture it are marked. */
void ing_front_note_capture(frame *fr, ing_gref ref);
ing_status ing_front_call_func(frame *fr, ing_node n, const value *fn,
                               const value *self, const call_args *a, value *out);
/* A Python function, now; `fn` and the arguments must be known while compiling. */
ing_status ing_front_call_outside(frame *fr, ing_node n, const value *fn,
                                  const call_args *a, value *out);
/* Python's own functions as Python computes them (builtin.c); *done false: the table of
 * intrinsics has it. */
ing_status ing_front_builtin(frame *fr, ing_node n, const value *fn, call_args *a,
                             value *out, bool *done);
ing_status ing_front_call_intrinsic(frame *fr, ing_node n, ing_intrinsic id,
                                    const call_args *a, value *out);
/* Where result i of `count` stands in a `return`. */
ing_node ing_front_result_node(const frame *fr, ing_node n, uint32_t i, uint32_t count);
ing_status ing_front_func_return(frame *fr, ing_node n,
                                 const value *v); /* `return` in a func */

/* ---- contain.c -------------------------------------------------------------------------------------------- */

typedef enum dict_part { DICT_KEYS, DICT_VALUES, DICT_ITEMS } dict_part;
ing_status ing_front_expr_dict(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_dictcomp(frame *fr, ing_node n, value *out);
ing_status ing_front_expr_listcomp(frame *fr, ing_node n, value *out);
/* A string or integer as a key. */
ing_status ing_front_key(frame *fr, ing_node at, const value *v, ing_gate_key *out);
ing_status ing_front_dict_get(frame *fr, ing_node at, const value *d, const value *key,
                              value *out, bool *found);
/* Keys, values or (key, value) of a dict, d->n of them. */
ing_status ing_front_dict_part(frame *fr, ing_node at, const value *d, dict_part part,
                               value **items);
bool ing_front_is_method(const char *name); /* of some container */
bool ing_front_has_methods(const value *v);
ing_status ing_front_call_method(frame *fr, ing_node n, const value *of,
                                 const char *name, const call_args *a, value *out);
/* Is it a class that equals itself and nothing else? */
ing_status ing_front_plain_class(frame *fr, ing_node at, const value *cls, bool *out);
ing_status ing_front_isinstance(frame *fr, ing_node n, const value *fn,
                                const call_args *a, value *out);

/* ---- items.c: tuples, lists and dicts as variables ----------------------------------------------- */

bool ing_front_is_box(const value *v); /* a tuple, list or dict; no vector */
/* A container from outside, or a shape, as one with items of its own. */
ing_status ing_front_box_open(frame *fr, ing_node at, value *v);
/* As values that nothing changes any more. */
ing_status ing_front_freeze(frame *fr, ing_node at, const value *v, value *out);
/* A number, or the numbers of a tuple, read now; what else it holds stays as it is. */
ing_status ing_front_numbers_read(frame *fr, ing_node at, value *v);
ing_status ing_front_enum_number(frame *fr, ing_node at, value *v, bool *ok);
/* Any other value than a number, vector or struct under a new name. */
ing_status ing_front_box_declare(frame *fr, ing_node at, uint32_t atom, const value *v);
ing_status ing_front_box_param(frame *fr, ing_node at, uint32_t atom, value *v,
                               bool of_caller);
/* To a name that stands for a container. */
ing_status ing_front_box_assign(frame *fr, ing_node at, ing_node from, uint32_t atom,
                                const value *v);
/* l[k] = v; *done false: it is no list or dict with a name. */
ing_status ing_front_box_item_assign(frame *fr, ing_node target, ing_node from,
                                     const value *v, bool *done);
bool ing_front_is_change(const char *name); /* a method that changes a list */
ing_status ing_front_list_change(frame *fr, ing_node n, const char *name,
                                 const call_args *a, value *out);
ing_status ing_front_compare_items(frame *fr, ing_node at, ing_front_op op,
                                   const value *l, const value *r, value *out,
                                   bool *done);

/* ---- derive.c: derivatives ----------------------------------------------------------------------- */

/* The argument that stands for argument *k where the frame is now: qd.stop_grad. */
ing_status ing_front_arg_here(frame *fr, uint32_t *k);
/* The arrays of derivatives of the arguments so far become arguments (gate.companion). */
ing_status ing_front_companions(frame *fr);
/* A loop in a loop, if a gradient is made and the user asked for none of those. */
ing_status ing_front_check_reverse(frame *fr, ing_node n);
/* In a gradient: how many iterations its stacks are for (ad_stack_size). */
ing_status ing_front_ask_entries(frame *fr, ing_node n);
/* Those of the field or array are of no interest from here on to the end of the block. */
ing_status ing_front_stop_grad(frame *fr, ing_node at, value *v);
/* Forgets those of blocks that have ended. */
void ing_front_stops_end(frame *fr);
void ing_front_stopped_key(const frame *fr, ing_hasher *h);

/* ---- field.c: dense fields --------------------------------------------------------------------- */

/* Where a field's elements lie; NULL: it is no field. */
const ing_place *ing_front_field_place(const frame *fr, const value *v);
/* A field of structs, vectors or matrices that is made of others, looked at. */
ing_status ing_front_bundle_thing(frame *fr, ing_node at, const ing_gate_fact *f,
                                  value *v);
/* The field that says what the shape of all is: the first one; NULL: there is none. */
ing_status ing_front_bundle_first(frame *fr, ing_node at, const value *v, value *out,
                                  bool *ok);
ing_status ing_front_array_attr(frame *fr, ing_node n, const value *a, const char *name,
                                value *out);
/* *done false: no field, or it has no such attribute. */
ing_status ing_front_field_attr(frame *fr, ing_node n, const value *v, const char *name,
                                value *out, bool *done);
/* An attribute of a subscript, p[i].x: where p is a field of structs it is p.x[i], so that the
 * other members are not read. *done false: out is p[i]. */
ing_status ing_front_element_member(frame *fr, ing_node n, value *out, bool *done);
/* The member of that name of a bundle of structs; NULL: none. */
value *ing_front_bundle_member(const value *v, const char *name);
ing_status ing_front_bundle_element(frame *fr, ing_node at, const value *bundle,
                                    const value *index, uint32_t n, ing_node slice,
                                    value *out);
bool ing_front_is_field_method(const char *name);
ing_status ing_front_field_method(frame *fr, ing_node n, const value *v,
                                  const char *name, const call_args *a, value *out);
/* Sets every element of a field: a loop of its own (loop.c). */
ing_status ing_front_fill(frame *fr, ing_node n, const value *field, const value *v);
/* An index of type t along an axis, counted from 0 as ELEM does. */
uint32_t ing_front_field_index(frame *fr, const ing_place *p, uint32_t axis,
                               uint32_t index, ing_dtype t);
/* The index along each axis from those of the levels, as a loop over the field has them. */
void ing_front_field_join(frame *fr, const ing_place *p, const value *levels,
                          value *index);
/* As ing_front_check_bounds, of an index as the program has it. */
ing_status ing_front_field_bounds(frame *fr, ing_node at, const value *field,
                                  uint32_t axis, uint32_t index, ing_dtype t);

/* ---- view.c -------------------------------------------------------------------------------------------------- */

/* A view from outside, looked at. */
ing_status ing_front_view_thing(frame *fr, ing_node at, value *v);
ing_status ing_front_check_view(frame *fr, ing_node at, const ing_gate_param *p,
                                const value *v);
ing_status ing_front_view_call(frame *fr, ing_node n, const call_args *a, value *out);
/* v.subview(offset, size) */
ing_status ing_front_view_method(frame *fr, ing_node n, const value *view,
                                 const call_args *a, value *out);
/* Names that mean something on views and not on arrays. */
bool ing_front_is_view_attr(const char *name);
bool ing_front_is_array_attr(const char *name); /* expr.c */
bool ing_front_is_array_method(const char *name);
/* A static value as a thing behind the gate (call.c). */
ing_status ing_front_as_thing(frame *fr, ing_node at, const value *v, ing_gref *out);
ing_status ing_front_view_attr(frame *fr, ing_node n, const value *v, const char *name,
                               value *out);
ing_status ing_front_view_subscript(frame *fr, ing_node at, const value *view,
                                    const value *index, value *out);
ing_status ing_front_array_slice(frame *fr, ing_node at, const value *array,
                                 const value *slice, value *out);

/* ---- format.c, service.c ------------------------------------------------------------------------------- */

typedef ing_vec(value) ing_front_pieces; /* of formatted text: V_STR and V_RT */

ing_status ing_front_expr_joined(frame *fr, ing_node n, value *out); /* f"..." */
/* Is the callee `"...".format`? Then call_format is the call. */
bool ing_front_is_format_call(const frame *fr, ing_node func);
ing_status ing_front_call_format(frame *fr, ing_node n, const call_args *a, value *out);
bool ing_front_is_percent(const frame *fr, ing_node n); /* "..." % ... */
ing_status ing_front_percent(frame *fr, ing_node n, value *out);
/* Refuses values of the run time. */
ing_status ing_front_percent_static(frame *fr, ing_node n, value *out);
ing_status ing_front_format_text(frame *fr, ing_front_pieces *p, const char *s,
                                 size_t n);
ing_status ing_front_format_value(frame *fr, ing_node at, ing_front_pieces *p,
                                  const value *v, const char *how, bool in_text);
ing_status ing_front_format_static(frame *fr, ing_front_pieces *p, const value *v);
/* The pieces as a message: its code, and the numbers to come; `ids` takes up to `most`,
 * *n is how many there are. */
ing_status ing_front_message(frame *fr, const ing_front_pieces *p, bool repr,
                             uint32_t *code, uint32_t *ids, uint32_t most, uint32_t *n);
ing_status ing_front_print(frame *fr, ing_node n, const call_args *a);
ing_status ing_front_static_print(frame *fr, ing_node n, const call_args *a);
ing_status ing_front_random(frame *fr, ing_node n, const call_args *a, value *out);
ing_status ing_front_randn(frame *fr, ing_node n, const call_args *a, value *out);
/* Stops the task where it is reached. */
ing_status ing_front_never(frame *fr, ing_node n, const value *why);
ing_status ing_front_stmt_assert(frame *fr, ing_node n, flow *out);
/* Debug mode: stops unless 0 <= index < extent. */
ing_status ing_front_check_bounds(frame *fr, ing_node at, uint32_t array, uint32_t axis,
                                  uint32_t index, ing_dtype t);
/* The same for an axis of a vector or matrix: array is 0, the extent is known. */
ing_status ing_front_check_extent(frame *fr, ing_node at, uint32_t array, uint32_t axis,
                                  uint32_t extent, uint32_t index, ing_dtype t);
/* Debug mode: reports that r = a op b wrapped. */
ing_status ing_front_check_divisor(frame *fr, ing_node at, ing_op op, ing_dtype t,
                                   uint32_t y);
ing_status ing_front_check_overflow(frame *fr, ing_node at, ing_op op, ing_dtype t,
                                    uint32_t a, uint32_t b, uint32_t r);
/* Debug mode: an integer's exponent is not negative. */
ing_status ing_front_check_power(frame *fr, ing_node at, ing_dtype t, uint32_t y);

/* ---- statements ---------------------------------------------------------------------------------------- */

ing_status ing_front_block(frame *fr, uint32_t list,
                           flow *out); /* in a scope of its own */
ing_status ing_front_statements(frame *fr, uint32_t list, flow *out);
ing_status ing_front_stmt_for(frame *fr, ing_node n, flow *out);
ing_status ing_front_stmt_with(frame *fr, ing_node n, flow *out);
/* `while qd.graph.do_while(flag)`; *done false: it is another `while`. */
ing_status ing_front_do_while(frame *fr, ing_node n, bool *done);
/* Refuses what is not a section in a qd.graph.parallel_context(). */
ing_status ing_front_fork_only(frame *fr, ing_node n);
ing_status ing_front_stmt_assign(frame *fr, ing_node n, flow *out);
ing_status ing_front_stmt_annassign(frame *fr, ing_node n, flow *out);
ing_status ing_front_stmt_augassign(frame *fr, ing_node n, flow *out);
ing_status ing_front_expr_named(frame *fr, ing_node n, value *out);
ing_status ing_front_declare(frame *fr, ing_node at, uint32_t atom, const value *v);
/* v, converted, to where `ref` is; `from` as for assign_to. */
ing_status ing_front_store(frame *fr, ing_node at, ing_node from, const value *ref,
                           const value *v);
/* `from` is the expression that v came from, for messages about it. */
ing_status ing_front_assign_to(frame *fr, ing_node target, ing_node from,
                               const value *v, bool is_static);
ing_status ing_front_atomic_op(frame *fr, ing_node at, const value *ref, const value *v,
                               ing_ir_atomic op, value *old);
/* Says which construct is not in the language and what to write instead. */
ing_status ing_front_unsupported(frame *fr, ing_node n);

#endif
