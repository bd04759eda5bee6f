/* What the fingerprint files share among themselves. The essay is in
 * docs/internals/fingerprint.md; the short form:
 *
 * Every value has an encoding: atoms (numbers, short text) stand for themselves, anything
 * else is REF + the 128-bit digest of its own encoding. An encoding begins with a tag and
 * is self-delimiting, so no two sequences of values can run together. A frame is a value
 * being encoded: tag, count of ordered children, count of groups, the ordered children's
 * encodings, then (for what has no order) one digest per group of children, sorted.
 *
 * `out` is one stack of bytes: each open frame owns the stretch from its `start`. */
#ifndef ING_PY_FINGERPRINT_INT_H
#define ING_PY_FINGERPRINT_INT_H

#include "py/value/fingerprint.h"

#include <string.h>

/* ---- tags --------------------------------------------------------------------------------
 * Part of the digest: append only, never reuse. FP_SHORT: one byte of length, bytes.
 * FP_LONG: eight bytes of length, the digest of the bytes. */
typedef enum fp_tag {
    FP_NONE = 'N',
    FP_TRUE = 'T',
    FP_FALSE = 'F',
    FP_ELLIPSIS = 'E',
    FP_NOTIMPL = 'M',
    FP_UNSET = 'x',   /* a declared field without value; an absent name */
    FP_SKIPPED = '-', /* opted out: by Fingerprinter(skip=...) */
    FP_SELF = '@',    /* a function that names itself */
    FP_INT = 'i',     /* 8 bytes */
    FP_FLOAT = 'f',   /* 8 bytes: the bits */
    FP_COMPLEX = 'c', /* 16 bytes */
    FP_BIGINT = 'j',
    FP_BIGINT_LONG = 'J', /* hexadecimal text */
    FP_STR1 = 's',
    FP_STR1_LONG = 'S', /* code points of 1, 2 or 4 bytes */
    FP_STR2 = 't',
    FP_STR2_LONG = '2',
    FP_STR4 = 'u',
    FP_STR4_LONG = '4',
    FP_BYTES = 'b',
    FP_BYTES_LONG = 'B',
    FP_BYTEARRAY = 'a',
    FP_BYTEARRAY_LONG = 'A',
    FP_DATA = 'd',
    FP_DATA_LONG = 'D', /* contents and shapes of arrays */
    FP_REF = 'r',       /* 16 bytes: digest of the child's own encoding */
    FP_CLASS = 'k',     /* 16 bytes: digest of an importable class's name */
    FP_NAME = 'n',      /* 16 bytes: digest of any other importable name */
    FP_CHILD = 'C',     /* graph mode only: 16 bytes, a node's number */
    FP_FRAME = 0x80,    /* + fp_kind: head of a frame */
} fp_tag;
enum { FP_TEXT_MAX = 64, FP_HEAD = 9, FP_REF_SIZE = 17 };

/* Kinds of frames: name, text for people. Append only. */
/* clang-format off */
#define FP_KIND_LIST(X) \
    X(TUPLE, "tuple") X(LIST, "list") X(DICT, "dict") X(SET, "set") \
    X(FROZENSET, "frozenset") X(DEQUE, "deque") X(ODICT, "OrderedDict") \
    X(DDICT, "defaultdict") X(PROXY, "mappingproxy") X(KEYS, "dict_keys") \
    X(VALUES, "dict_values") X(ITEMS, "dict_items") X(SUB, "subclass") \
    X(STATE, "state") X(INSTANCE, "instance") X(ENUM, "enum member") \
    X(CLASS, "class") X(CONTENT, "class content") X(FUNC, "function") X(CODE, "code") \
    X(METHOD, "method") X(MODULE, "module") X(NAMED, "named") X(REDUCE, "reduced") \
    X(ARRAY, "array") X(BUFFER, "buffer") X(PIECES, "pieces") \
    X(ORDERED, "ordered mapping") X(IDENTITY, "identity") X(KERNEL, "kernel") \
    X(TABLE, "dict in order")
/* clang-format on */
typedef enum fp_kind {
#define X(name, text) FP_##name##_KIND,
    FP_KIND_LIST(X)
#undef X
        FP_KIND_N
} fp_kind;

/* How a child is to be seen when not as itself: the `how` of an fp_as object and the low
 * bits of its memo key. */
typedef enum fp_how {
    FP_AS_ITSELF,
    FP_AS_TYPE,
    FP_AS_STATE,
    FP_AS_BASE,
    FP_AS_CODE,
    FP_AS_SELF,  /* a function that names itself */
    FP_AS_UNSET, /* no object at all */
    FP_AS_CLASS, /* the class of what code works on: with its text, named or not */
} fp_how;

typedef struct fp_as { /* an object of the engine's own, only ever in frames */
    PyObject_HEAD PyObject *obj;
    fp_how how;
} fp_as;

/* ---- plans: what is known about a type (fingerprint_plan.c) -------------------------------- */

typedef enum fp_rule {
    FP_RULE_INSTANCE, /* declared fields, then the rest of the instance's state */
    FP_RULE_SUB,      /* of a builtin */
    FP_RULE_REDUCE,
    FP_RULE_ENUM,
    FP_RULE_CLASS,
    FP_RULE_FUNCTION,
    FP_RULE_METHOD,
    FP_RULE_BUILTIN,
    FP_RULE_MODULE,
    FP_RULE_CODE,
    FP_RULE_PROXY,
    FP_RULE_VIEW,
    FP_RULE_DEQUE,
    FP_RULE_ARRAY,
    FP_RULE_SCALAR,
    FP_RULE_DTYPE,
    FP_RULE_UFUNC,
    FP_RULE_BUFFER,
    FP_RULE_IDENTITY,
    FP_RULE_ORDERED,
    FP_RULE_CONTENT,
    FP_RULE_KERNEL,
    FP_RULE_ING_DTYPE,
    FP_RULE_PIECES, /* a library's value, taken apart by a function of ingot/_reducers.py */
    FP_RULE_REFUSE,
} fp_rule;

enum { FP_LEARNED_MAX = 48, FP_NOWHERE = 255 };
typedef struct fp_plan {
    struct fp_plan *next; /* of the retired ones */
    PyTypeObject *type;   /* key; borrowed, alive as long as `ref` says */
    PyObject *ref;        /* weak reference to it */
    uint32_t version;     /* tp_version_tag when made; 0 = use once */
    uint8_t rule;         /* fp_rule */
    uint8_t base;         /* SUB: fp_kind of the builtin, or an atom's FP_KIND_N */
    bool named;           /* importable, as far as `epoch` knows */
    bool has_dict, has_slots;
    bool calls; /* its instances are code: see ing_fp_live */
    uint32_t n_slots;
    bool stored;             /* fields are plain storage: see fp_frame.stored */
    uint64_t epoch;          /* call in which the name was last verified */
    ing_hash128 name;        /* digest of the importable name */
    PyTypeObject *base_type; /* SUB: the builtin (static, borrowed) */
    PyObject *fields;        /* tuple of declared names, in order; may be empty */
    Py_ssize_t *offsets;     /* of the slots, n_slots of them */
    PyObject *slots; /* tuple: name of each slot; None: a field, or it does not count */
    PyObject *skip;  /* set of names that opted out or are kept lazily, or NULL */
    PyObject *reducer; /* PIECES */
    PyObject
        *learned; /* tuple: the attributes of the last instance, as its dict had them */
    uint8_t place[FP_LEARNED_MAX]; /* where the value of learned[i] goes; FP_NOWHERE */
    uint32_t extras;               /* learned attributes that are not declared fields */
    uint64_t shadows;         /* bit i: the class has a value under learned[i], too */
    const char *why, *remedy; /* REFUSE */
} fp_plan;

/* Open addressing by address. A plan that is replaced while a walk is under way may be in
 * use further up the C stack (user code ran, or another thread), so it is kept until the
 * last walk ends. */
typedef struct fp_plans {
    fp_plan **at;
    uint32_t cap, len;
    uint32_t walks; /* under way */
    fp_plan *retired;
} fp_plans;

/* ---- the module's part of the state ---------------------------------------------------------- */

/* clang-format off */
#define FP_NAME_LIST(X) \
    X(__attrs_attrs__, "__attrs_attrs__") \
    X(attrs_cached_hash_, "_attrs_cached_hash") \
    X(__file__, "__file__") X(__call__, "__call__") X(__dataclass_fields__, "__dataclass_fields__") X(__dict__, "__dict__") \
    X(__getnewargs__, "__getnewargs__") X(__getnewargs_ex__, "__getnewargs_ex__") \
    X(__getstate__, "__getstate__") X(__module__, "__module__") \
    X(__name__, "__name__") X(__pydantic_extra__, "__pydantic_extra__") \
    X(__pydantic_fields__, "__pydantic_fields__") \
    X(__pydantic_private__, "__pydantic_private__") X(__qualname__, "__qualname__") \
    X(__reduce__, "__reduce__") X(__reduce_ex__, "__reduce_ex__") \
    X(__wrapped__, "__wrapped__") X(_fields_, "_fields") X(_member_map_, "_member_map_") X(_name_, "_name_") \
    X(_value_, "_value_") X(char_, "char") X(children_, "children") X(copy_, "copy") \
    X(default_factory_, "default_factory") X(dispatcher_, "dispatcher") X(dtype_, "dtype") X(fdel_, "fdel") \
    X(fget_, "fget") X(fingerprint_, "fingerprint") X(fset_, "fset") X(func_, "func") \
    X(func_of, "__func__") X(__eq__, "__eq__") X(__hash__, "__hash__") X(__slots__, "__slots__") X(json_schema_extra_, "json_schema_extra") \
    X(kind_, "kind") X(mapping_, "mapping") X(maxlen_, "maxlen") \
    X(metadata_, "metadata") X(name_, "name") X( names_, "names") X(nonce_, "nonce") \
    X(obj_, "obj") X(ordered_, "ordered") X(ravel_, "ravel") X(serial_, "serial") \
    X(shape_, "shape") X(str_, "str") X(subdtype_, "subdtype") X(tag_, "tag") \
    X(tobytes_, "tobytes") X(token_, "token") X(tolist_, "tolist")
/* clang-format on */
typedef struct fp_names {
#define X(n, text) PyObject *n;
    FP_NAME_LIST(X)
#undef X
} fp_names;

typedef struct ing_py_fp {
    PyObject *error;       /* FingerprintError */
    PyTypeObject *as_type; /* fp_as */
    PyObject *unset;       /* an fp_as that stands for no value */
    fp_names n;
    fp_plans plans;
    uint64_t epoch;
    PyObject *origins; /* dict: file -> see ing_fp_file_origin */
    PyObject *texts;   /* dict: id of a code object -> (weakref, digest, names) */
    PyObject *helpers; /* module ingot.fingerprint, once it was needed */
    PyObject *reach;   /* module ingot._reach, likewise */
    /* registered by ingot.fingerprint when it is imported; else NULL */
    PyTypeObject *pieces, *identity, *ordered, *content;
    /* the types of modules that not every program loads; see fp_loaded */
    PyObject *object_reduce_ex, *object_reduce, *object_getstate;
    PyObject *lost;  /* owned: the last error that was no answer (ing_fp_forgive) */
    uint64_t losses; /* how many there were */
    uint8_t *slab;   /* see fingerprint_memory.c; NULL: in use, or none yet */
    size_t slab_size;
} ing_py_fp;

/* ---- one call ---------------------------------------------------------------------------------- */

typedef struct fp_frame {
    PyObject *obj; /* owned: what is being encoded */
    union {
        PyObject
            *src;    /* owned: tuple, list or dict of the children; NULL: obj itself */
        size_t kids; /* stacked: where they begin in walk.kids */
    };
    size_t start;        /* in out */
    uint32_t items_at;   /* from start: where the groups begin */
    uint32_t group_at;   /* from start: where the open group begins */
    uint32_t pos;        /* next child, or position in the dict */
    uint32_t groups;     /* closed so far */
    uint32_t memo;       /* fast mode: memo entry + 1; graph mode: node */
    uint8_t kind;        /* fp_kind */
    uint8_t dict : 1;    /* src is walked with PyDict_Next */
    uint8_t pairs : 1;   /* groups of two children */
    uint8_t half : 1;    /* dict: the key is done, the value is next */
    uint8_t open : 1;    /* a group is open */
    uint8_t stored : 1;  /* children are held by src and by one place in obj */
    uint8_t stacked : 1; /* children are in walk.kids */
    uint8_t live : 1;    /* children are what code works on: see ing_fp_live */
    uint8_t code : 1;    /* there is a function or class of code here or above */
} fp_frame;

#define FP_LIVE ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1)) /* no address has it */
typedef struct fp_memo_entry {
    uintptr_t key; /* address | fp_how | FP_LIVE; owns a reference to the object */
    ing_hash128 digest;
} fp_memo_entry;

typedef struct fp_node { /* graph mode */
    size_t at;           /* template in graph.text */
    uint32_t ordered;    /* bytes of head and ordered children */
    uint32_t size;       /* all bytes; groups follow, each 4 bytes of length + bytes */
    ing_hash128 digest;
} fp_node;

typedef struct fp_walk {
    ing_py_state *st;
    ing_py_fp *fp;
    uint8_t *out;
    size_t len, cap;
    ing_vec(fp_frame) frames;
    ing_vec(fp_memo_entry) memo;
    ing_vec(PyObject *) kids; /* owned: children of the stacked frames */
    uint32_t *index;          /* of the memo: entry + 1, or 0 */
    uint32_t index_cap;
    uint64_t epoch, losses; /* of fp, when the walk began */
    uint32_t ticks;         /* children so far; see ing_fp_tick */
    bool interrupted;       /* a signal handler raised: nothing to do with the value */
    bool lenient, graph, cyclic;
    bool live;           /* the root is code */
    bool imported;       /* a module of the user's own was imported on the way */
    bool custom;         /* there are overrides or skips */
    bool skip_names;     /* some of the skips are (type, name) */
    uint64_t skip_met;   /* bit i: an instance of skip i's type had attributes */
    uint64_t skip_hit;   /* bit i: one of them was skip i's name */
    PyObject *overrides; /* borrowed tuple of (type, function), or NULL */
    PyObject *skips;     /* borrowed tuple of types and (type, name), or NULL */
    PyObject *fallback;  /* borrowed, or NULL */
    PyObject *held;      /* list of tokens of Identity, or NULL */
    PyObject *root_name; /* borrowed str for messages, or NULL */
    /* graph mode */
    ing_vec(fp_node) nodes;
    ing_bytes text;
} fp_walk;

/* ---- fingerprint_enc.c: bytes ------------------------------------------------------------------- */

int ing_fp_no_memory(void);
int ing_fp_grow(fp_walk *w, size_t more);
static inline int ing_fp_room(fp_walk *w, size_t more) {
    return w->cap - w->len >= more ? 0 : ing_fp_grow(w, more);
}
static inline void ing_fp_put64(uint8_t *p, uint64_t v) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, 8);
}
static inline void ing_fp_put32(uint8_t *p, uint32_t v) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, 4);
}
int ing_fp_put_tag(fp_walk *w, fp_tag tag);
int ing_fp_put_digest(fp_walk *w, fp_tag tag, ing_hash128 d);
int ing_fp_put_text(fp_walk *w, fp_tag tag, fp_tag long_tag, const void *p, size_t n);
int ing_fp_put_str(fp_walk *w, PyObject *s); /* the value, subclass or not */
int ing_fp_put_int(fp_walk *w, PyObject *v);
int ing_fp_put_double(fp_walk *w, double v);
int ing_fp_put_bytearray(fp_walk *w, PyObject *v);
int ing_fp_put_complex(fp_walk *w, PyObject *v);
/* Writes an object that is an atom of exact type: 1, or 0: it is none, or -1 = raised. */
int ing_fp_put_atom(fp_walk *w, PyObject *obj);
void ing_fp_sort(uint8_t *at, size_t n); /* n digests of 16 bytes */
/* Size of the encoding at p. */
size_t ing_fp_skip(const uint8_t *p);
ing_hash128 ing_fp_hash_pair(fp_tag tag, PyObject *a, PyObject *b,
                             bool *ok); /* two strs */

/* ---- fingerprint_memory.c: much memory, and Ctrl-C --------------------------------------- */

/* Lets signal handlers run: 0, or -1 = one raised. */
int ing_fp_signals(fp_walk *w);
static inline int ing_fp_tick(fp_walk *w) {
    return ++w->ticks & 4095 ? 0 : ing_fp_signals(w);
}
/* `release`: other threads may run meanwhile. */
int ing_fp_hash_memory(fp_walk *w, const void *p, size_t n, bool release,
                       ing_hash128 *out);
/* The digest that a copy of the view in the order of C would have; `pad`: its items are
 * long doubles. */
int ing_fp_hash_view(fp_walk *w, const Py_buffer *v, bool pad, ing_hash128 *out);

/* ---- fingerprint.c: the walk ----------------------------------------------------------------------- */

/* Encodes obj at the top of out, or opens a frame for it. `own` references are held by
 * the walk itself; what has no more than one other is not shared, so needs no memo. */
int ing_fp_visit(fp_walk *w, PyObject *obj, Py_ssize_t own);
int ing_fp_run(fp_walk *w, PyObject *obj, ing_hash128 *out);
void ing_fp_walk_init(fp_walk *w, ing_py_state *st);
void ing_fp_walk_fini(fp_walk *w);
int ing_fp_configure(fp_walk *w, PyObject *config);
/* Opens a frame. Steals `src` (tuple, list, dict or NULL: obj). `how` is for the memo. */
int ing_fp_push(fp_walk *w, PyObject *obj, fp_how how, fp_kind kind, PyObject *src,
                uint32_t ordered, uint32_t groups, Py_ssize_t own);
/* The same for children that were put on walk.kids from `kids` on; dropped on failure. */
int ing_fp_push_kids(fp_walk *w, PyObject *obj, fp_how how, fp_kind kind, uint32_t kids,
                     uint32_t ordered, bool pairs, Py_ssize_t own);
int ing_fp_kid(fp_walk *w,
               PyObject *kid); /* puts it there; steals; NULL is a failure */
int ing_fp_drop_kids(fp_walk *w, uint32_t from); /* returns -1 */
/* Child i of a frame that is no dict, borrowed, and how many there are. */
static inline PyObject *ing_fp_child(const fp_walk *w, const fp_frame *f,
                                     Py_ssize_t i) {
    if (f->stacked) return w->kids.at[f->kids + (size_t)i];
    PyObject *src = f->src ? f->src : f->obj;
    return PyTuple_Check(src) ? PyTuple_GET_ITEM(src, i) : PyList_GET_ITEM(src, i);
}
static inline fp_frame *ing_fp_top(fp_walk *w) {
    return &w->frames.at[w->frames.len - 1];
}
/* Is the child at hand something that code works on? Data counts by its value, and its
 * class by name: the methods are no part of it. Code calls methods. So below a function, a
 * method, a partial, an instance with a __call__ or a cached step, instances count with
 * their class as a value, which has its text; what is met both ways is two values. */
static inline bool ing_fp_live(fp_walk *w) {
    return w->frames.len ? ing_fp_top(w)->live : w->live;
}
/* Is it a function or a class that holds the child at hand? Then it need not have a name:
 * its content is part of theirs. */
static inline bool ing_fp_in_code(fp_walk *w) {
    return w->frames.len && ing_fp_top(w)->code;
}
static inline uint32_t ing_fp_head32(const fp_walk *w, const fp_frame *f, size_t at) {
    const uint8_t *p = w->out + f->start + at;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint32_t ing_fp_ordered(const fp_walk *w, const fp_frame *f) {
    return ing_fp_head32(w, f, 1);
}
static inline Py_ssize_t ing_fp_children(const fp_walk *w, const fp_frame *f) {
    if (f->stacked)
        return (Py_ssize_t)ing_fp_ordered(w, f) +
               (Py_ssize_t)ing_fp_head32(w, f, 5) * (f->pairs ? 2 : 1);
    PyObject *src = f->src ? f->src : f->obj;
    return PyTuple_Check(src) ? PyTuple_GET_SIZE(src) : PyList_GET_SIZE(src);
}
/* Was obj (seen as how) met before? 1: its reference was written; 0: no; -1 raised. */
int ing_fp_known(fp_walk *w, PyObject *obj, fp_how how);
PyObject *ing_fp_as_new(fp_walk *w, PyObject *obj, fp_how how); /* new reference */

/* ---- fingerprint_fail.c ------------------------------------------------------------------------------ */

/* obj cannot be hashed: asks the fallback, else raises with the path. Chains to an
 * exception that is set. */
PyObject *ing_fp_take_exception(void); /* new reference or NULL */
int ing_fp_refuse(fp_walk *w, PyObject *obj, const char *why, const char *remedy);
int ing_fp_pieces(fp_walk *w, PyObject *obj, PyObject *pieces); /* borrows both */
PyObject *ing_fp_label(fp_walk *w,
                       uint32_t frame); /* of the child at hand; new reference */
bool ing_fp_skipped_name(fp_walk *w, PyTypeObject *type, PyObject *name);
/* The walk ended: warns of names to be skipped that nothing had. */
int ing_fp_skips_unused(fp_walk *w);
/* Overrides and skips: 1 done, 0 none applies, -1 raised. */
int ing_fp_custom(fp_walk *w, PyObject *obj);

/* ---- fingerprint_plan.c -------------------------------------------------------------------------------- */

fp_plan *ing_fp_plan_get(fp_walk *w, PyTypeObject *type); /* borrowed; NULL = raised */
void ing_fp_plans_fini(fp_plans *p);
void ing_fp_plans_release(fp_plans *p); /* a walk ended */
/* Is the class importable? Verified once per call. */
int ing_fp_plan_verify(fp_walk *w, fp_plan *p);
/* What sys.modules holds under `module`, or its attribute; borrowed or NULL (no error). */
void ing_fp_forgive(ing_py_fp *fp);
int ing_fp_lost(const ing_py_fp *fp, uint64_t since); /* 0, or -1: raised */
PyObject *ing_fp_loaded(ing_py_fp *fp, const char *module);
PyObject *ing_fp_loaded_attr(ing_py_fp *fp, const char *module,
                             const char *name); /* new reference */
/* Is t, or a class it derives from, module.name? False when that is not loaded. */
bool ing_fp_is_a(ing_py_fp *fp, PyTypeObject *t, const char *module, const char *name);
/* The object that module.qualname names: new reference, or NULL without exception. */
PyObject *ing_fp_resolve(ing_py_fp *fp, PyObject *module, PyObject *qualname);
/* New reference to an attribute, or NULL without exception when there is none. */
PyObject *ing_fp_attr(ing_py_fp *fp, PyObject *obj, PyObject *name);
PyObject *ing_fp_type_attr(ing_py_fp *fp, PyTypeObject *type,
                           PyObject *name); /* borrowed: MRO, no descriptors */

/* ---- fingerprint_kind.c: one level of each kind ------------------------------------------------------------ */

int ing_fp_visit_planned(fp_walk *w, PyObject *obj, Py_ssize_t own);
int ing_fp_visit_as(fp_walk *w, fp_as *as);
int ing_fp_visit_base(fp_walk *w, PyObject *obj, PyTypeObject *base, fp_how how,
                      Py_ssize_t own);
int ing_fp_instance(fp_walk *w, PyObject *obj, fp_plan *p, fp_how how, Py_ssize_t own);
int ing_fp_reduce(fp_walk *w, PyObject *obj, Py_ssize_t own);
/* Opens a frame for an instance of p's class with these children (a list, stolen; the
 * first `ordered` of them ordered, the rest groups) and writes its class. */
int ing_fp_push_instance(fp_walk *w, PyObject *obj, fp_plan *p, fp_kind kind,
                         PyObject *kids, uint32_t ordered, bool pairs, Py_ssize_t own);

/* ---- fingerprint_array.c -------------------------------------------------------------------------------------- */

int ing_fp_array(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own);
int ing_fp_scalar(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own);
int ing_fp_dtype(fp_walk *w, PyObject *obj, Py_ssize_t own);
int ing_fp_buffer(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own);

/* ---- fingerprint_code.c, fingerprint_class.c, fingerprint_source.c -------------------------------------------------------------------- */

int ing_fp_function(fp_walk *w, PyObject *fn, fp_how how, Py_ssize_t own);
int ing_fp_code(fp_walk *w, PyObject *code, Py_ssize_t own);
int ing_fp_code_names(PyObject *code,
                      PyObject *set); /* all that it reads from outside */
int ing_fp_kernel(fp_walk *w, PyObject *obj, Py_ssize_t own);
int ing_fp_class_value(fp_walk *w, PyTypeObject *type, Py_ssize_t own);
int ing_fp_class_content(fp_walk *w, PyTypeObject *type, fp_how how);
int ing_fp_module(fp_walk *w, PyObject *mod, Py_ssize_t own);
/* By importable name, verified; a string result of __reduce__ comes here too. */
int ing_fp_named(fp_walk *w, PyObject *obj, PyObject *module, PyObject *qualname,
                 Py_ssize_t own);
/* (digest: bytes, names, notes, imports, blind) of a function's text, new reference: tuples
 * of the dotted names that it reads, those that its annotations name, and what _reach.reads
 * gives. None: there is no text; False: the file changed since it was imported; NULL =
 * raised. `text` (bytes) is given when the caller has it. */
PyObject *ing_fp_source(fp_walk *w, PyObject *fn, PyObject *text);
PyObject *ing_fp_text_digest(fp_walk *w, PyObject *text); /* of bytes: new reference */

/* ---- fingerprint_reach.c: where code comes from, and what it leads to ---------------------------------------------- */

/* "" the standard library, "name==version" an installed distribution, None the user's own.
 * New references. */
PyObject *ing_fp_file_origin(fp_walk *w, PyObject *file);
PyObject *ing_fp_code_origin(fp_walk *w, PyObject *fn);
PyObject *ing_fp_origin(fp_walk *w, PyObject *module); /* by its name */
PyObject *ing_fp_helpers(fp_walk *w);  /* borrowed: module ingot.fingerprint */
PyObject *ing_fp_reach(ing_py_fp *fp); /* borrowed: module ingot._reach */
/* These append names and values to a list of children: 0, or -1 = raised. */
int ing_fp_reached(fp_walk *w, PyObject *fn, PyObject *source, PyObject *list);
int ing_fp_cells(fp_walk *w, PyObject *fn, PyObject *list);
int ing_fp_attributes(fp_walk *w, PyObject *fn, bool dispatch, PyObject *list);
int ing_fp_not_followed(fp_walk *w, PyObject *list, PyObject *what);
bool ing_fp_ends(PyObject *name,
                 const char *tail); /* is there more before that tail? */
PyObject *ing_fp_defaults(fp_walk *w, PyObject *defaults); /* new reference */

/* ---- fingerprint_cycle.c -------------------------------------------------------------------------------------------- */

/* The digest of node 0, the root, when all templates are there. */
int ing_fp_resolve_graph(fp_walk *w, ing_hash128 *out);

/* ---- fingerprint_show.c: one level as Python objects, for trace and explain ------------------------------------------- */

PyObject *ing_fp_level(fp_walk *w, PyObject *obj);

#endif
