/* py: the face towards CPython, and the only folder that includes Python.h. This header
 * is internal to src/py: the module state, and what its files offer each other.
 *
 * A part of the module is one row of the table in module.c: `add` fills the module and
 * the state, `traverse` and `clear` are the garbage collector's, `fini` frees what is no
 * Python object. All state is per module object: no mutable globals. */
#ifndef ING_PY_H
#define ING_PY_H

#include "py/compat.h"

#include "base/base.h"
#include "gate/gate.h"
#include "ir/ir.h"
#include "record/record.h"
#include "rt/mem.h"

/* ---- exceptions (raise.c) ----------------------------------------------------------
 * name, its base among ours (or NONE), the built-in class it also is (or NULL). An out-of-bounds
 * access counts as a failed assertion because programs written for the reference catch
 * it as one. */
#define ING_PY_EXC_LIST(X)                                                   \
    X(ERROR, "IngotError", ERROR, NULL)                                      \
    X(COMPILATION, "IngotCompilationError", ERROR, NULL)                     \
    X(SYNTAX, "IngotSyntaxError", COMPILATION, PyExc_SyntaxError)            \
    X(CALL, "IngotCallError", SYNTAX, PyExc_TypeError)                       \
    X(TYPE, "IngotTypeError", COMPILATION, PyExc_TypeError)                  \
    X(NAME, "IngotNameError", COMPILATION, PyExc_NameError)                  \
    X(ATTRIBUTE, "IngotAttributeError", COMPILATION, PyExc_AttributeError)   \
    X(VALUE, "IngotValueError", COMPILATION, PyExc_ValueError)               \
    X(RUNTIME, "IngotRuntimeError", ERROR, PyExc_RuntimeError)               \
    X(RUNTIME_TYPE, "IngotRuntimeTypeError", RUNTIME, PyExc_TypeError)       \
    X(ARGUMENT, "IngotArgumentError", RUNTIME_TYPE, PyExc_ValueError)        \
    X(ASSERTION, "IngotAssertionError", RUNTIME, PyExc_AssertionError)       \
    X(INDEX, "IngotIndexError", ASSERTION, PyExc_IndexError)                 \
    X(ZERO, "IngotZeroDivisionError", ASSERTION, PyExc_ZeroDivisionError)    \
    X(WARNING, "IngotWarning", NONE, PyExc_UserWarning)                      \
    X(RUNTIME_WARNING, "IngotRuntimeWarning", WARNING, PyExc_RuntimeWarning) \
    X(STATIC_CALL, "IngotStaticCallWarning", WARNING, NULL)

typedef enum ing_py_exc {
#define X(name, text, base, also) ING_PY_EXC_##name,
    ING_PY_EXC_LIST(X)
#undef X
        ING_PY_EXC_N,
    ING_PY_EXC_NONE
} ing_py_exc;

/* ---- array specs (array_spec.c) ------------------------------------------------------
 * What code depends on of an array. Interned per module: equal specs, equal pointer, so
 * that a launch compares one pointer. Lives as long as the module. */
typedef struct ing_py_spec {
    ING_MEMBERS(ING_SPEC_MEMBERS)
    const ing_home *home; /* where its memory is; says nothing of the code */
    ing_hash128 digest;   /* of the above */
    uint32_t id;          /* from 1, in order of first use */
} ing_py_spec;

/* ---- names (module.c) -----------------------------------------------------------------
 * Attributes that are read of every kernel, made once: to intern a name costs more than to
 * look it up. */
#define ING_PY_NAME_LIST(X)       \
    X(__and__)                    \
    X(__annotations__)            \
    X(__contains__)               \
    X(__missing__)                \
    X(__dataclass_fields__)       \
    X(__dataclass_params__)       \
    X(__file__)                   \
    X(__getattribute__)           \
    X(__getitem__)                \
    X(__invert__)                 \
    X(__name__)                   \
    X(__or__)                     \
    X(__reversed__)               \
    X(__xor__)                    \
    X(_data_oriented)             \
    X(_ingot_passing)             \
    X(_ingot_template_primitives) \
    X(_name_)                     \
    X(boundary)                   \
    X(dtype)                      \
    X(frozen)                     \
    X(get)                        \
    X(items)                      \
    X(keys)                       \
    X(ndim)                       \
    X(needs_grad)                 \
    X(return)                     \
    X(type)                       \
    X(values)

typedef enum ing_py_name {
#define X(name) ING_PY_NAME_##name,
    ING_PY_NAME_LIST(X)
#undef X
        ING_PY_NAME_N
} ing_py_name;

typedef struct ing_py_link { /* of a ring */
    struct ing_py_link *prev, *next;
} ing_py_link;

/* ---- module state -------------------------------------------------------------------- */

typedef struct ing_py_partial { /* partial.c */
    PyObject *array;
    uint64_t stamp; /* its generation when it was left so */
} ing_py_partial;

typedef struct ing_py_state {
    /* module.c */
    ing_settings settings;
    ing_counters counters;
    PyObject *names[ING_PY_NAME_N];
    PyObject *cache_dir; /* str, or NULL: the default place */
    /* Called by _core.configure after the settings changed, with the GIL; -1 = raised.
     * Set by the engine's part. */
    int (*configured)(struct ing_py_state *st);

    /* raise.c */
    PyObject *exc[ING_PY_EXC_N];

    /* dtype.c */
    PyTypeObject *dtype_type;
    PyObject *dtypes[ING_DTYPE_N]; /* [0] (void) is NULL */

    /* intrinsic.c */
    ing_map intrinsic_map;          /* address of a callable -> ing_intrinsic */
    ing_vec(PyObject *) intrinsics; /* what keeps those addresses valid */

    /* tensor.c */
    PyTypeObject *tensor_type;  /* base of vector and matrix types */
    PyTypeObject *tensor_value; /* base of host vectors and matrices */
    PyObject *following; /* tuple: those of qd.math, of default_fp and default_ip */

    /* struct.c */
    PyTypeObject *struct_type;                    /* base of struct types */
    PyTypeObject *struct_value;                   /* base of host structs */
    struct ing_py_struct_type *following_structs, /* with such members: the oldest, */
        **following_end;                          /* and where the next one goes */
    PyTypeObject *structs_type;                   /* base of ndarrays of structs */

    /* array.c */
    PyTypeObject *array_type;
    ing_map spec_map;
    ing_vec(ing_py_spec *) specs;
    uint64_t generations;             /* the last one given out */
    ing_vec(ing_py_partial) partials; /* gradients that hold partial sums */
    bool observed;                    /* somebody counts bounds of loops (compat) */
    uint64_t settled;     /* the same when the first of the launches under way began */
    uint64_t bindings;    /* of launches with several fields, so far */
    const ing_home *home; /* of new arrays */

    /* field.c, field_layout.c */
    PyTypeObject *field_type; /* base of all fields, has no instances */
    PyTypeObject *scalar_field, *matrix_field, *block_type;
    uint32_t launching;        /* launches under way, their addresses bound */
    ing_vec(ing_mem *) doomed; /* memory that goes with the last of them */
    ing_map layout_map;
    ing_vec(struct ing_py_layout *) layouts;
    ing_py_link blocks; /* those that are not destroyed */
    bool unsettled;     /* there may be fields that have no place yet */
    PyObject
        *on_fields; /* to be called before fields that were made are used, or NULL */
    bool fresh;     /* there are such fields, and it was not called since */
    /* the last generation when qd.root.lazy_grad, lazy_dual were called: fields that are older have
     * gradients, duals */
    uint64_t lazy[2];

    /* foreign.c: what is known of the types of other libraries */
    struct ing_py_foreign_state *foreign;

    /* fingerprint_show.c: plans and names of fingerprints; see fingerprint_int.h */
    struct ing_py_fp *fp;

    /* host.c: engine, runtime and what kernels share; see host.h */
    struct ing_py_host *host;
} ing_py_state;

/* The state behind an instance of one of the module's own types (none of which can be
 * subclassed) or behind the module. */
static inline ing_py_state *ing_py_state_of(PyObject *instance) {
    return (ing_py_state *)PyType_GetModuleState(Py_TYPE(instance));
}
static inline ing_py_state *ing_py_state_in(PyObject *module) {
    return (ing_py_state *)PyModule_GetState(module);
}

/* ---- module.c -------------------------------------------------------------------------- */

typedef struct ing_py_part {
    int (*add)(PyObject *module, ing_py_state *st); /* -1 = raised */
    int (*traverse)(ing_py_state *st, visitproc visit, void *arg);
    void (*clear)(ing_py_state *st);
    void (*fini)(ing_py_state *st);
} ing_py_part;

/* Makes a heap type from `spec` and adds it to the module; a new reference or NULL. */
PyTypeObject *ing_py_add_type(PyObject *module, const PyType_Spec *spec);
/* Parts of such specs: a type whose objects the garbage collector sees and nobody makes by calling
 * it, its three slots for that, its members `dict` and `weakrefs` (structmember.h). */
#define ING_PY_COLLECTED_TYPE(text, type, more, rows)     \
    {.name = (text),                                      \
     .basicsize = sizeof(type),                           \
     .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |   \
              Py_TPFLAGS_DISALLOW_INSTANTIATION | (more), \
     .slots = (PyType_Slot *)(rows)}
#define ING_PY_COLLECTED(of)                                          \
    {Py_tp_dealloc, of##_dealloc}, {Py_tp_traverse, of##_traverse}, { \
        Py_tp_clear, of##_clear                                       \
    }
#define ING_PY_DICT_AND_WEAKREFS(type)                                             \
    {"__dictoffset__", T_PYSSIZET, offsetof(type, dict), READONLY, NULL}, {        \
        "__weaklistoffset__", T_PYSSIZET, offsetof(type, weakrefs), READONLY, NULL \
    }
/* Adds what was made to a list and a map, by its digest, with its number from 1 on; false: no memory,
 * and nothing was added. */
#define ING_PY_INTERN(list, map, item) \
    ((item)->id = (list)->len + 1,     \
     ing_vec_push(list, item) &&       \
         (ing_map_put(map, (item)->digest, (item)->id) || ((list)->len--, false)))
/* An attribute by a name that is interned, so that CPython's cache of attributes, which
 * keeps the names it has seen, does not fill with copies of it. NULL = raised. */
PyObject *ing_py_attr(PyObject *of, const char *name);
/* 1 = *out, 0 = there is none, -1 = raised (compat.h). */
int ing_py_attr_maybe(PyObject *of, const char *name, PyObject **out);
/* The same for a name of the table above. */
PyObject *ing_py_attr_of(const ing_py_state *st, PyObject *of, ing_py_name name);
int ing_py_attr_of_maybe(const ing_py_state *st, PyObject *of, ing_py_name name,
                         PyObject **out);
/* What a class or one of its bases has under a name, borrowed or NULL: no metaclass and no
 * descriptor is asked, so no code runs and nothing is raised. */
static inline PyObject *ing_py_class_has(const ing_py_state *st, PyTypeObject *cls,
                                         ing_py_name name) {
    return _PyType_Lookup(cls, st->names[name]);
}
/* For `O&` of PyArg_ParseTuple, whose own K, k and I take what does not fit modulo 2^64. */
int ing_py_as_u64(PyObject *value, void *out); /* uint64_t */
int ing_py_as_u32(PyObject *value, void *out); /* uint32_t */
/* A module that somebody has imported; 1, 0 or -1 as above. */
int ing_py_loaded(const char *module, PyObject **out);
/* `name` of the module `from`, which is imported if need be; a new reference or NULL. */
PyObject *ing_py_import(const char *from, const char *name);
/* Calls that with `self` before the other arguments: methods that are written in Python. */
PyObject *ing_py_call_in(const char *from, const char *name, PyObject *self,
                         PyObject *args, PyObject *kwargs);

/* ---- raise.c ------------------------------------------------------------------------------ */

int ing_py_raise_add(PyObject *module, ing_py_state *st);
int ing_py_raise_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_raise_clear(ing_py_state *st);
/* Raises what `e` says, empties it, returns NULL. The one way from ing_err to Python. */
PyObject *ing_py_raise(ing_py_state *st, ing_err *e);
/* Raises one of our classes with a formatted message (PyErr_Format); returns NULL. */
PyObject *ing_py_fail(ing_py_state *st, ing_py_exc exc, const char *fmt, ...);

/* ---- text.c -------------------------------------------------------------------------------- */

/* UTF-8 as bytes, new references; NULL = no memory. From to_utf8 the same str can be had back
 * by from_utf8; shown is for messages, and path for the operating system. */
PyObject *ing_py_to_utf8(PyObject *str);
PyObject *ing_py_from_utf8(const char *text, size_t n);
PyObject *ing_py_shown(PyObject *str);
/* A str from text for people that is mostly UTF-8; what is not is escaped. */
PyObject *ing_py_lenient(const char *text);
PyObject *ing_py_path(PyObject *str);
/* A str for a message, cut to `size`; -1 = raised, and the buffer is a "?". */
int ing_py_show(PyObject *str, char *buf, size_t size);
/* The same of str(obj); "?" where that raises an ordinary error, or obj is NULL. */
int ing_py_show_str(PyObject *obj, char *buf, size_t size);
/* The same of the exception on its way, which is cleared. */
int ing_py_show_exception(char *buf, size_t size);
int ing_py_put_shown(PyObject *str, ing_bytes *out);

/* ---- dtype.c ------------------------------------------------------------------------------- */

typedef struct ing_py_dtype {
    PyObject_HEAD ing_dtype id;
} ing_py_dtype;

/* A number on its way between Python and memory, or between two dtypes. */
typedef struct ing_py_num {
    char kind; /* 'I' int64_t in i, 'U' uint64_t in i, 'F' double in f */
    int64_t i;
    double f;
} ing_py_num;

int ing_py_dtype_add(PyObject *module, ing_py_state *st);
int ing_py_dtype_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_dtype_clear(ing_py_state *st);
static inline bool ing_py_is_dtype(const ing_py_state *st, PyObject *o) {
    return Py_TYPE(o) == st->dtype_type;
}
/* The dtype that `o` means: one of ours, or int, float, bool by the settings. ING_VOID
 * when it is none (nothing is raised). */
ing_dtype ing_py_dtype_from(const ing_py_state *st, PyObject *o);
/* The singleton, borrowed; NULL for void. */
static inline PyObject *ing_py_dtype_get(const ing_py_state *st, ing_dtype t) {
    return t < ING_DTYPE_N ? st->dtypes[t] : NULL;
}
/* One element in memory to a Python int or float and back. Store wraps integers and
 * rounds floats; it refuses a float where an integer is wanted. `what` starts messages. */
PyObject *ing_py_scalar_load(ing_dtype t, const void *at);
int ing_py_scalar_store(ing_py_state *st, ing_dtype t, void *at, PyObject *value,
                        const char *what);
/* The same without Python, converting as CAST does (src/ir/op.def). */
ing_py_num ing_py_num_load(ing_dtype t, const void *at);
void ing_py_num_store(ing_dtype t, void *at, ing_py_num v);

/* ---- sparse.c ------------------------------------------------------------------------------- */

int ing_py_sparse_add(PyObject *module, ing_py_state *st);

/* ---- intrinsic.c ---------------------------------------------------------------------------- */

int ing_py_intrinsic_add(PyObject *module, ing_py_state *st);
int ing_py_intrinsic_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_intrinsic_clear(ing_py_state *st);
void ing_py_intrinsic_fini(ing_py_state *st);
/* By identity, never by __eq__ or __hash__ (R5). ING_IN_NONE: not one. */
ing_intrinsic ing_py_intrinsic_of(const ing_py_state *st, PyObject *callable);
/* An instance of qd.BufferView itself: the class is an intrinsic. */
static inline bool ing_py_is_view(const ing_py_state *st, PyObject *o) {
    return ing_py_intrinsic_of(st, (PyObject *)Py_TYPE(o)) == ING_IN_BUFFER_VIEW;
}

/* ---- tensor.c (tensor.h) --------------------------------------------------------------------- */

int ing_py_tensor_add(PyObject *module, ing_py_state *st);
int ing_py_tensor_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_tensor_clear(ing_py_state *st);

/* ---- struct.c (struct.h) --------------------------------------------------------------------- */

int ing_py_struct_add(PyObject *module, ing_py_state *st);
int ing_py_struct_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_struct_clear(ing_py_state *st);

/* ---- arrays (array*.c, dlpack.c) --------------------------------------------------------------- */

typedef struct ing_py_array {
    PyObject_HEAD ing_mem *mem; /* 64-byte aligned unless foreign */
    size_t offset;              /* of the elements in it */
    uint64_t address;           /* of the elements for kernels: memory never moves */
    const ing_py_spec *spec;
    int64_t shape[ING_MAX_NDIM]; /* logical extents, each below 2^31 */
    size_t nbytes;
    uint64_t generation; /* read it with ing_py_array_generation */
    uint32_t exports;    /* live buffers and DLPack tensors: others may write (R25) */
    bool looking; /* a buffer is being asked for to read alone (array_buffer.c) */
    PyObject *dict, *weakrefs;
    PyObject *grad; /* an array of the same shape, or NULL */
} ing_py_array;

void ing_py_partials_drop(ing_py_state *st); /* partial.c */
int ing_py_array_add(PyObject *module, ing_py_state *st);
int ing_py_array_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_array_clear(ing_py_state *st);
void ing_py_array_fini(ing_py_state *st);

static inline bool ing_py_is_array(const ing_py_state *st, PyObject *o) {
    return Py_TYPE(o) == st->array_type;
}
/* The interned spec equal to `s` (digest and id of `s` are ignored; layout past ndim and
 * elem_shape past elem_rank must be 0; no home: that of new arrays). NULL with MemoryError
 * set. */
const ing_py_spec *ing_py_spec_intern(ing_py_state *st, const ing_py_spec *s);
/* The same of a record's spec, for arrays of that home. */
const ing_py_spec *ing_py_spec_get(ing_py_state *st, const ing_spec *s,
                                   const ing_home *home);

/* May a launch that is under way be writing what has this generation? It gives out numbers before
 * it runs; those that were given before any such launch began are of contents that stay. */
static inline bool ing_py_unsettled(const ing_py_state *st, uint64_t generation) {
    return st->launching && generation > st->settled;
}
/* 0 = unknown, which never matches (R25). Numbers are unique in the process, so an equal
 * one means the same array with the same contents. */
static inline uint64_t ing_py_array_generation(const ing_py_state *st,
                                               const ing_py_array *a) {
    bool unknown = a->exports || a->mem->drop || ing_py_unsettled(st, a->generation);
    return unknown ? 0 : a->generation;
}
/* To be called after every write that Ingot makes. */
static inline void ing_py_array_touch(ing_py_state *st, ing_py_array *a) {
    a->generation = ++st->generations;
}

/* ---- fields (field.h) ------------------------------------------------------------------------ */

int ing_py_field_add(PyObject *module, ing_py_state *st);
int ing_py_field_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_field_clear(ing_py_state *st);
void ing_py_field_fini(ing_py_state *st);

/* arch=qd.python (pyarch.c): an element as a number that knows its place (takes value), the
 * indices of an array, the call of a kernel. */
PyObject *ing_py_python_cell(PyObject *value, PyObject *array, PyObject *key);
PyObject *ing_py_python_indices(PyObject *array);
PyObject *ing_py_python_run(PyObject *fn, PyObject *const *args, Py_ssize_t n,
                            PyObject *kwnames);

#endif
