/* Binding: the arguments of one call become the words that code reads (src/gen/abi.h).
 * On the hot path of every launch: no allocation, no Python frames for Ingot's own arrays
 * and for numbers. */
#include "py/array/array.h"
#include "py/see/field_gate.h"
#include "py/array/foreign.h"
#include "py/call/guard.h"
#include "rt/stage.h"
#include "py/array/struct.h"
#include "py/array/tensor.h"
#include "trace/notes.h"

#include <stdio.h>
#include <string.h>

static inline void bind_words(const ing_py_array *a, const ing_py_spec *spec,
                              uint64_t *w) {
    uint32_t n = spec->ndim;
    w[0] = a->address;
    if (n) w[1] = (uint64_t)a->shape[0];
    for (uint32_t i = 1; i < n; i++) w[1 + i] = (uint64_t)a->shape[i];
    if (spec->grad) w[1 + n] = a->grad ? ((ing_py_array *)a->grad)->address : 0;
}

static inline void bind_ndarray(ing_py_state *st, const ing_py_bind *b, PyObject *obj,
                                uint64_t *words) {
    ing_py_array *a = (ing_py_array *)obj;
    bind_words(a, b->spec, &words[b->word]);
    if (b->written) ing_py_array_touch(st, a);
}

/* What code depends on is equal. */
static bool same_spec(const ing_py_spec *a, const ing_py_spec *b) {
    return a->dtype == b->dtype && a->ndim == b->ndim && a->grad == b->grad &&
           a->elem_rank == b->elem_rank &&
           memcmp(a->elem_shape, b->elem_shape, sizeof a->elem_shape) == 0 &&
           memcmp(a->layout, b->layout, sizeof a->layout) == 0;
}

static ing_status unfit(ing_py_kernel *k, const ing_py_bind *b, ing_status s,
                        const char *remedy, ing_err *e, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* An error about what is to be bound. What is no argument itself is named by its path:
 * `s.part.k`. */
static ing_status unfit(ing_py_kernel *k, const ing_py_bind *b, ing_status s,
                        const char *remedy, ing_err *e, const char *fmt, ...) {
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    bool behind = b->kind == ING_BIND_CAPTURED || b->kind == ING_BIND_NUMBER;
    ing_path root = b->path;
    while (behind && k->paths.nodes.at[root].parent)
        root = k->paths.nodes.at[root].parent;
    bool of_arg = !behind || k->paths.nodes.at[root].step == ING_STEP_ARG;
    ing_bytes path;
    ing_bytes_init(&path);
    if (behind) ing_words_path(&k->paths, b->path, &path);
    s = ing_py_def_fail(k->st, &k->def, of_arg ? b->arg : UINT32_MAX, s, remedy, e,
                        "%s%s%s", path.at ? (const char *)path.at : "",
                        path.at ? ": " : "", text);
    ing_bytes_fini(&path);
    return s;
}

/* Arrays of another home than the target's, and all memory of other libraries where the
 * target has a home of its own, are copied for the launch. A gradient may be written by any
 * kernel that has it. */
static size_t bytes_of(const ing_py_spec *s, const int64_t *shape) {
    size_t n = ing_dtype_bytes((ing_dtype)s->dtype);
    for (uint32_t k = 0; k < s->elem_rank; k++) n *= s->elem_shape[k];
    for (uint32_t k = 0; k < s->ndim; k++) n *= (size_t)shape[k];
    return n;
}

static ing_status stage_foreign(const ing_py_bind *b, const ing_py_foreign *a,
                                ing_py_views *views, ing_err *e) {
    const ing_home *home = b->spec->home;
    ing_staged s = {
        .bytes = bytes_of(&a->spec, a->shape), .word = b->word, .written = b->written};
    ING_TRY(ing_stage_add_host(&views->stage, home, a->data, &s, e));
    if (!a->spec.grad || !a->grad) return ING_OK;
    s.word = b->word + 1 + a->spec.ndim;
    s.written = true;
    return ing_stage_add_host(&views->stage, home, a->grad, &s, e);
}

static ing_status stage_ndarray(const ing_py_bind *b, const ing_py_array *a,
                                uint32_t word, bool written, ing_py_views *views,
                                ing_err *e) {
    ing_staged s = {a->mem, a->offset, a->nbytes, word, written};
    return ing_stage_add(&views->stage, b->spec->home, &s, e);
}

/* An array whose spec is not the one that was compiled for. */
static ing_status bind_elsewhere(ing_py_kernel *k, const ing_py_bind *b,
                                 ing_py_array *a, uint64_t *words, ing_py_views *views,
                                 ing_err *e) {
    if (!b->spec || a->spec->home == b->spec->home || !same_spec(a->spec, b->spec))
        return ING_DECLINED;
    bind_ndarray(k->st, b, (PyObject *)a, words);
    ING_TRY(stage_ndarray(b, a, b->word, b->written, views, e));
    const ing_py_array *grad = (const ing_py_array *)a->grad;
    uint32_t word = b->word + 1 + b->spec->ndim;
    return grad ? stage_ndarray(b, grad, word, true, views, e) : ING_OK;
}

/* What cannot be read is declined too: the search for another variant checks the arguments
 * first, and that check knows the parameter's name. */
static ing_status bind_foreign(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                               uint64_t *words, ing_py_views *views, ing_err *e) {
    ing_py_foreign a;
    if (ing_py_is_field(k->st, obj)) return ING_DECLINED;
    if (views->n == ING_PY_MAX_PARAMS)
        return unfit(k, b, ING_ARGUMENT, "use qd.ndarray", e,
                     "a kernel takes at most %d arrays of other libraries",
                     ING_PY_MAX_PARAMS);
    ing_status s = ing_py_foreign_read(k->st, obj, true, &a, &views->at[views->n++], e);
    if (s == ING_PYTHON || s == ING_MEMORY) return s;
    if (s == ING_ARGUMENT) ing_err_fini(e);
    uint32_t rank = b->spec->elem_rank;
    if (s == ING_OK && rank && !ing_py_foreign_elements(&a, rank)) return ING_DECLINED;
    if (s != ING_OK || !same_spec(&a.spec, b->spec)) return ING_DECLINED;
    if (a.read_only && b->written)
        return unfit(k, b, ING_ARGUMENT, "pass a writable copy (numpy.array(x))", e,
                     "the kernel writes this %s, but the array is read-only",
                     b->kind == ING_BIND_ARRAY ? "argument" : "array");
    if (b->reads == ING_IR_READS_LOST)
        return unfit(
            k, b, ING_ARGUMENT, "use qd.ndarray(..., needs_grad=True)", e,
            "the kernel gives this array values that have a derivative, and it has "
            "no gradient");
    uint32_t n = a.spec.ndim;
    words[b->word] = (uint64_t)(uintptr_t)a.data;
    for (uint32_t i = 0; i < n; i++) words[b->word + 1 + i] = (uint64_t)a.shape[i];
    if (a.spec.grad) words[b->word + 1 + n] = (uint64_t)(uintptr_t)a.grad;
    return b->spec->home->read ? stage_foreign(b, &a, views, e) : ING_OK;
}

/* What is no ndarray of the spec that was compiled for. */
__attribute__((noinline)) static ing_status bind_other(ing_py_kernel *k,
                                                       const ing_py_bind *b,
                                                       PyObject *obj, uint64_t *words,
                                                       ing_py_views *views,
                                                       ing_err *e) {
    if (!obj) return ING_DECLINED; /* nothing is captured there */
    if (b->field) return ing_py_bind_field_failed(k, b, obj);
    if (!ing_py_is_array(k->st, obj)) return bind_foreign(k, b, obj, words, views, e);
    return bind_elsewhere(k, b, (ing_py_array *)obj, words, views, e);
}

/* Ours or foreign, the code is the same: only the spec counts. A field's bind has none. */
static ING_PY_HOT ing_status bind_array(ing_py_kernel *k, const ing_py_bind *b,
                                        PyObject *obj, uint64_t *words,
                                        ing_py_views *views, ing_err *e) {
    if (obj && ing_py_is_array(k->st, obj) && ((ing_py_array *)obj)->spec == b->spec) {
        bind_ndarray(k->st, b, obj, words);
        return ING_OK;
    }
    if (obj && b->field && ing_py_bind_field(k->st, b, obj, words)) return ING_OK;
    return bind_other(k, b, obj, words, views, e);
}

static const char *param_name(const ing_py_kernel *k, uint32_t i) {
    return ing_py_utf8(PyTuple_GET_ITEM(k->def.names, i));
}

/* ---- scalars ------------------------------------------------------------------------------ */

/* What to do about an object that is given for a number. */
static const char *scalar_remedy(ing_py_state *st, PyObject *obj, bool real) {
    if (obj == Py_None)
        return "pass a number; a value that may be None takes a qd.template() "
               "parameter";
    if (PyComplex_Check(obj)) return "pass a number: x.real, x.imag or abs(x)";
    if (PyUnicode_Check(obj) || PyBytes_Check(obj))
        return real ? "pass a number, float(x); text that is compiled in takes a "
                      "qd.template() parameter"
                    : "pass a number, int(x); text that is compiled in takes a "
                      "qd.template() parameter";
    bool number = ing_py_foreign_kind_of(st, obj) == ING_FOREIGN_NUMBER;
    if (!number && (PySequence_Check(obj) || PyObject_CheckBuffer(obj)))
        return "pass a number, such as x[0], or annotate the parameter as what it is: "
               "qd.types.ndarray(), qd.types.vector(3, qd.f32) or qd.template()";
    return real ? "pass a number" : "pass an int, or convert with int(...)";
}

static ing_status bad_scalar(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                             ing_err *e) {
    bool real = ing_dtype_is_float((ing_dtype)b->dtype);
    const char *want = ing_dtype_name((ing_dtype)b->dtype);
    const char *must = real ? "a number" : "an integer";
    if (b->kind == ING_BIND_NUMBER)
        return unfit(k, b, ING_TYPE, "convert it, or declare it with another type", e,
                     "it must be %s (%s), it is %.100s", must, want,
                     Py_TYPE(obj)->tp_name);
    if (!k->st->settings.at[ING_SET_reference])
        return unfit(k, b, ING_ARGUMENT, scalar_remedy(k->st, obj, real), e,
                     "argument '%s' must be %s (%s), it is of type %.100s",
                     param_name(k, b->arg), must, want, Py_TYPE(obj)->tp_name);
    return unfit(k, b, ING_ARGUMENT, scalar_remedy(k->st, obj, real), e,
                 "Argument (%u,) (type=<class '%.100s'>) cannot be converted into "
                 "required type %s: it must be %s",
                 b->arg, Py_TYPE(obj)->tp_name, want, must);
}

static ing_status out_of_range(ing_py_kernel *k, const ing_py_bind *b, bool negative,
                               ing_err *e) {
    const char *want = ing_dtype_name((ing_dtype)b->dtype);
    bool no_sign = negative && !ing_dtype_is_signed((ing_dtype)b->dtype);
    if (b->kind == ING_BIND_NUMBER)
        return unfit(k, b, ING_ARGUMENT,
                     "declare it with a wider type, or have it compiled in", e,
                     "the value does not fit in %s", want);
    return unfit(
        k, b, ING_ARGUMENT,
        b->dtype == ING_U1 ? "pass True or False: bool(x)"
        : no_sign ? "annotate the parameter with a type that has negative numbers: "
                    "qd.i32"
        : ing_dtype_bytes((ing_dtype)b->dtype) < 8
            ? "annotate the parameter with a wider type"
            : "no type is wider: pass a number within its bounds",
        e, "argument '%s': the value does not fit in %s", param_name(k, b->arg), want);
}

/* numpy.bool has no __index__. Any integer type can take it. */
static ing_status bind_numpy_bool(ing_py_kernel *k, PyObject *obj, uint64_t *w) {
    ing_dtype t;
    ing_py_num v;
    if (ing_py_foreign_kind_of(k->st, obj) != ING_FOREIGN_NUMBER) return ING_DECLINED;
    ING_TRY(ing_py_foreign_number(obj, &t, &v));
    if (t != ING_U1) return ING_DECLINED;
    *w = (uint64_t)v.i;
    return ING_OK;
}

static ing_status bind_int(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                           uint64_t *w, ing_err *e) {
    PyObject *n = PyNumber_Index(obj);
    if (!n) {
        if (!ing_py_took_any()) return ING_PYTHON;
        ing_status s = bind_numpy_bool(k, obj, w);
        return s == ING_DECLINED ? bad_scalar(k, b, obj, e) : s;
    }
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(n, &overflow);
    unsigned long long u = (unsigned long long)v;
    if (overflow > 0) u = PyLong_AsUnsignedLongLong(n);
    Py_DECREF(n);
    bool too_big = overflow > 0 && ing_py_took(PyExc_OverflowError);
    if (PyErr_Occurred()) return ING_PYTHON;
    uint32_t bits = ing_dtype_bits((ing_dtype)b->dtype);
    bool fits;
    if (overflow < 0 || too_big)
        fits = false;
    else if (ing_dtype_is_signed((ing_dtype)b->dtype))
        fits = !overflow &&
               (bits == 64 || (v >= -(1LL << (bits - 1)) && v < 1LL << (bits - 1)));
    else
        fits = (overflow > 0 || v >= 0) && (bits == 64 || u < 1ULL << bits);
    if (!fits) return out_of_range(k, b, overflow < 0 || (!overflow && v < 0), e);
    *w = u;
    return ING_OK;
}

static ing_status bind_float(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                             uint64_t *w, ing_err *e) {
    bool exact = PyFloat_CheckExact(obj);
    if (!exact && ing_py_is_masked(k->st, obj)) return bad_scalar(k, b, obj, e);
    double d = exact ? PyFloat_AS_DOUBLE(obj) : PyFloat_AsDouble(obj);
    if (d == -1.0 && PyErr_Occurred() && PyLong_Check(obj) &&
        ing_py_took(PyExc_OverflowError))
        return unfit(k, b, ING_ARGUMENT, "pass a number within the bounds of floats", e,
                     "argument '%s': the value does not fit in %s",
                     param_name(k, b->arg), ing_dtype_name((ing_dtype)b->dtype));
    if (d == -1.0 && PyErr_Occurred())
        return ing_py_took_any() ? bad_scalar(k, b, obj, e) : ING_PYTHON;
    if (b->dtype == ING_F64) {
        memcpy(w, &d, sizeof d);
    } else if (b->dtype == ING_F32) {
        float f = (float)d;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        *w = bits;
    } else {
        *w = ing_f64_to_f16(d);
    }
    return ING_OK;
}

static ing_status bind_scalar(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                              uint64_t *w, ing_err *e) {
    if (ing_dtype_is_float((ing_dtype)b->dtype)) return bind_float(k, b, obj, w, e);
    return bind_int(k, b, obj, w, e);
}

static uint32_t elements_of(const ing_gate_tensor *t) {
    return t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
}

static ing_status bad_tensor(ing_py_kernel *k, const ing_py_bind *b,
                             const ing_gate_tensor *t, PyObject *obj, ing_err *e) {
    const char *name = param_name(k, b->arg),
               *dtype = ing_dtype_name((ing_dtype)b->dtype);
    char is[128];
    Py_ssize_t n = PySequence_Check(obj) ? PySequence_Size(obj) : -1;
    if (n < 0 && PyErr_Occurred() && !ing_py_took_any()) return ING_PYTHON;
    if (n < 0)
        snprintf(is, sizeof is, "it is of type %.100s", Py_TYPE(obj)->tp_name);
    else
        snprintf(is, sizeof is, "it is of type %.80s with %zd items",
                 Py_TYPE(obj)->tp_name, n);
    if (t->rank == 1)
        return ing_py_def_fail(
            k->st, &k->def, b->arg, ING_ARGUMENT,
            "pass as many numbers as it has elements, in a qd.Vector or a list", e,
            "argument '%s' must be a vector of %u numbers (%s), %s", name, t->shape[0],
            dtype, is);
    return ing_py_def_fail(k->st, &k->def, b->arg, ING_ARGUMENT,
                           "pass a qd.Matrix of that shape, or a list of its rows", e,
                           "argument '%s' must be a matrix of %u x %u numbers (%s), %s",
                           name, t->shape[0], t->shape[1], dtype, is);
}

/* A vector or matrix parameter: its elements are words in a row. */
static ing_status bind_tensor(ing_py_kernel *k, const ing_py_bind *b,
                              const ing_gate_tensor *t, PyObject *obj, uint64_t *words,
                              ing_err *e) {
    PyObject *flat = NULL;
    ing_status s = ing_py_tensor_flatten(k->st, obj, t, &flat);
    if (s == ING_DECLINED && !k->st->settings.at[ING_SET_reference])
        return bad_tensor(k, b, t, obj, e);
    if (s == ING_DECLINED)
        return ing_py_def_fail(
            k->st, &k->def, b->arg, ING_ARGUMENT,
            "pass a qd.Vector or qd.Matrix of that shape, or a list", e,
            t->rank == 1
                ? "Argument (%u,) (type=<class '%.100s'>) cannot be converted into "
                  "required type vector(%u, %s)"
                : "Argument (%u,) (type=<class '%.100s'>) cannot be converted into "
                  "required type matrix of %u rows of %s",
            b->arg, Py_TYPE(obj)->tp_name, t->shape[0],
            ing_dtype_name((ing_dtype)b->dtype));
    uint32_t n = elements_of(t);
    for (uint32_t i = 0; s == ING_OK && i < n; i++) {
        uint64_t ignored;
        PyObject *item = i < PyList_GET_SIZE(flat) ? PyList_GET_ITEM(flat, i) : Py_None;
        Py_INCREF(item); /* converting it may run code that changes the list */
        s = bind_scalar(k, b, item, words ? &words[i] : &ignored, e);
        Py_DECREF(item);
    }
    Py_XDECREF(flat);
    return s;
}

/* A number of a struct must fit, as an argument must; words hold integers extended. */
static ing_status bind_member(ing_py_state *st, ing_dtype t, PyObject *obj,
                              uint64_t *w) {
    uint32_t bits = ing_dtype_bits(t);
    uint64_t raw = 0;
    if (ing_py_scalar_store(st, t, &raw, obj, "a member of a struct") < 0)
        return ING_PYTHON;
    if (!ing_dtype_is_float(t) && ing_dtype_is_signed(t) && bits < 64)
        raw = (uint64_t)((int64_t)(raw << (64 - bits)) >> (64 - bits));
    *w = raw;
    return ING_OK;
}

static ing_status bad_struct(ing_py_kernel *k, uint32_t i, PyObject *type,
                             PyObject *obj, ing_err *e) {
    char want[600];
    if (ing_py_show_str(type, want, sizeof want) < 0) return ING_PYTHON;
    return ing_py_def_fail(
        k->st, &k->def, i, ING_ARGUMENT, "pass a struct of that type", e,
        "Argument <class '%.100s'> cannot be converted into required type %s",
        Py_TYPE(obj)->tp_name, want);
}

/* The numbers of a layout from position `at` of the list on; its nesting bounds the recursion. */
static ing_status bind_numbers(ing_py_state *st, const ing_gate_struct *layout,
                               PyObject *list, uint32_t *at, uint64_t *words) {
    for (uint32_t k = 0; k < layout->n; k++) {
        const ing_gate_member *m = &layout->members[k];
        uint32_t n = m->inner ? 0 : ing_gate_count(&m->tensor);
        if (m->inner) ING_TRY(bind_numbers(st, m->inner, list, at, words));
        for (uint32_t i = 0; i < n; i++, (*at)++) {
            uint64_t ignored;
            if (*at >= PyList_GET_SIZE(list)) return ING_DECLINED;
            PyObject *o = Py_NewRef(PyList_GET_ITEM(list, *at));
            ing_status s = bind_member(st, m->dtype, o, words ? &words[*at] : &ignored);
            Py_DECREF(o);
            ING_TRY(s);
        }
    }
    return ING_OK;
}

/* A struct parameter: its numbers are words in a row. */
static ing_status bind_struct(ing_py_kernel *k, uint32_t i, PyObject *obj,
                              uint64_t *words, ing_err *e) {
    PyObject *type = PyTuple_GET_ITEM(k->def.types, i), *list = NULL;
    uint32_t at = 0;
    ing_status s = ing_py_struct_numbers(k->st, type, obj, &list);
    if (s == ING_OK) s = bind_numbers(k->st, ing_py_layout_of(type), list, &at, words);
    Py_XDECREF(list);
    if (s == ING_DECLINED) return bad_struct(k, i, type, obj, e);
    if (s == ING_PYTHON && ing_py_took(PyExc_TypeError))
        return bad_struct(k, i, type, obj, e);
    return s;
}

/* A member that is a number: it may have been deleted, or replaced by anything. */
static ing_status bind_number(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                              uint64_t *w, ing_err *e) {
    if (obj && (PyLong_Check(obj) || PyFloat_Check(obj) || PyIndex_Check(obj) ||
                ing_py_foreign_kind_of(k->st, obj) == ING_FOREIGN_NUMBER))
        return bind_scalar(k, b, obj, w, e);
    if (!obj)
        return unfit(k, b, ING_ATTRIBUTE,
                     "set it before the kernel is called, or correct the name", e,
                     "there is no such attribute; it must be a number (%s)",
                     ing_dtype_name((ing_dtype)b->dtype));
    return bad_scalar(k, b, obj, e);
}

ing_status ing_py_bind_all(ing_py_kernel *k, const ing_py_variant *v,
                           const ing_py_checks *c, PyObject *const *args,
                           PyObject *const *held, uint64_t *words, ing_py_views *views,
                           ing_err *e) {
    for (uint32_t i = 0; i < c->binds.len; i++) {
        const ing_py_bind *b = &c->binds.at[i];
        switch ((ing_bind_kind)b->kind) {
        case ING_BIND_ARRAY:
            ING_TRY(bind_array(k, b, args[b->arg], words, views, e));
            break;
        case ING_BIND_CAPTURED:
            ING_TRY(bind_array(k, b, held[b->fetch - 1], words, views, e));
            break;
        case ING_BIND_SCALAR: {
            const ing_gate_tensor *t = &k->def.params[b->arg].tensor;
            const ing_gate_struct *layout = k->def.params[b->arg].layout;
            if (layout && layout->n_numbers <= v->record.n_words - b->word)
                ING_TRY(bind_struct(k, b->arg, args[b->arg], &words[b->word], e));
            else if (layout)
                return ING_DECLINED;
            else if (t->rank == 0)
                ING_TRY(bind_scalar(k, b, args[b->arg], &words[b->word], e));
            else if (elements_of(t) > v->record.n_words - b->word)
                return ING_DECLINED; /* an entry on disk may say anything */
            else
                ING_TRY(bind_tensor(k, b, t, args[b->arg], &words[b->word], e));
            break;
        }
        case ING_BIND_NUMBER:
            ING_TRY(bind_number(k, b, held[b->fetch - 1], &words[b->word], e));
            break;
        }
    }
    return ING_OK;
}

/* ---- refusing what the annotations forbid ---------------------------------------------------- */

static ing_status not_an_array(ing_py_kernel *k, uint32_t i, PyObject *obj,
                               ing_err *e) {
    char text[81];
    if (ing_py_show_str(obj, text, sizeof text) < 0) return ING_PYTHON;
    text[strcspn(text, "\n")] = 0; /* of a table the first line */
    const char *remedy = "pass a qd.ndarray, a NumPy array or a torch tensor";
    PyObject *method = NULL; /* of pandas, polars and their kin */
    if (ing_py_attr_maybe(obj, "to_numpy", &method) < 0) return ING_PYTHON;
    if (method) remedy = "pass an array: x.to_numpy()";
    Py_XDECREF(method);
    if (ing_py_is_field(k->st, obj))
        remedy = "annotate the parameter with qd.template(), which takes fields, or "
                 "pass x.to_numpy()";
    if (PyBytes_Check(obj))
        remedy = "wrap it: memoryview(x), which kernels may only read";
    if (ing_py_is_view(k->st, obj))
        remedy =
            "annotate the parameter with qd.BufferView, or pass x.to_numpy(copy=False)";
    if (PyList_Check(obj) || PyTuple_Check(obj))
        remedy = "make an array of it: numpy.array(x, numpy.float32)";
    return ing_py_def_fail(k->st, &k->def, i, ING_ARGUMENT, remedy, e,
                           "Invalid type for argument %s, got %s: it must be an array, "
                           "not %.100s",
                           param_name(k, i), text, Py_TYPE(obj)->tp_name);
}

/* As the reference names types: i32, VectorType[3, f32], MatrixType[2,2, f32]; those of
 * values [Tensor (3) f32], [Tensor (2, 2) f32]. */
static void type_text(bool value, ing_dtype dtype, uint32_t rank, const uint32_t *shape,
                      char *buf, size_t size) {
    const char *t = dtype ? ing_dtype_name(dtype) : "any";
    if (rank == 0)
        snprintf(buf, size, "%s", t);
    else if (rank == 1)
        snprintf(buf, size, value ? "[Tensor (%u) %s]" : "VectorType[%u, %s]", shape[0],
                 t);
    else
        snprintf(buf, size, value ? "[Tensor (%u, %u) %s]" : "MatrixType[%u,%u, %s]",
                 shape[0], shape[1], t);
}

static bool shape_fits(const ing_gate_tensor *want, const ing_gate_fact *f) {
    for (uint32_t k = 0; k < want->rank; k++)
        if (want->shape[k] && want->shape[k] != f->elem_shape[k]) return false;
    return true;
}

/* The elements must be those of the annotation. */
static ing_status check_elements(ing_py_kernel *k, uint32_t i, const ing_gate_param *p,
                                 const ing_gate_fact *f, PyObject *obj, ing_err *e) {
    const ing_gate_tensor *want = &p->tensor;
    bool any = !p->dtype && !want->rank;
    bool dtype = !p->dtype || p->dtype == f->dtype;
    bool ours = ing_py_is_array(k->st, obj);
    if (any || (dtype && want->rank == f->elem_rank && shape_fits(want, f)))
        return ING_OK;
    char need[80], have[80];
    const char *remedy = "convert it, or change the annotation";
    if (!dtype && !ours)
        return ing_py_def_fail(
            k->st, &k->def, i, ING_ARGUMENT, remedy, e,
            "Invalid value for argument %s - required array has dtype=%s, array with "
            "dtype=%s is provided",
            param_name(k, i), ing_dtype_name(p->dtype), ing_dtype_name(f->dtype));
    if (!ours && f->elem_rank == 2)
        return ing_py_def_fail(k->st, &k->def, i, ING_ARGUMENT, remedy, e,
                               "Invalid value for argument %s - required "
                               "element_shape=(%u, %u), array with element shape of "
                               "(%u, %u) is provided",
                               param_name(k, i), want->shape[0], want->shape[1],
                               f->elem_shape[0], f->elem_shape[1]);
    if (!ours && f->elem_rank)
        return ing_py_def_fail(k->st, &k->def, i, ING_ARGUMENT, remedy, e,
                               "Invalid value for argument %s - required "
                               "element_shape=(%u,), array with element shape of (%u,) "
                               "is provided",
                               param_name(k, i), want->shape[0], f->elem_shape[0]);
    type_text(false, p->dtype, want->rank, want->shape, need, sizeof need);
    type_text(!want->rank, f->dtype, f->elem_rank, f->elem_shape, have, sizeof have);
    if (!want->rank)
        return ing_py_def_fail(k->st, &k->def, i, ING_ARGUMENT, remedy, e,
                               "Expect element type %s for argument %s, but get %s",
                               need, param_name(k, i), have);
    return ing_py_def_fail(
        k->st, &k->def, i, ING_ARGUMENT, remedy, e,
        "Invalid value for argument %s - required element type: %s, but %s is provided",
        param_name(k, i), need, have);
}

static ing_status wrong_ndim(ing_py_kernel *k, uint32_t i, const ing_gate_param *p,
                             int ndim, PyObject *obj, ing_err *e) {
    const char *remedy = "reshape it, or change the annotation";
    if (!ing_py_is_array(k->st, obj)) {
        char element[32] = "";
        if (p->tensor.rank)
            snprintf(element, sizeof element, " element_dim=%u", p->tensor.rank);
        return ing_py_def_fail(k->st, &k->def, i, ING_ARGUMENT, remedy, e,
                               "Invalid value for argument %s - required array has "
                               "ndim=%d%s, array with %d dimensions is provided",
                               param_name(k, i), p->ndim, element, ndim);
    }
    PyObject *shape = ing_py_shape_tuple((ing_py_array *)obj);
    char text[81];
    int rc = shape ? ing_py_show_str(shape, text, sizeof text) : -1;
    Py_XDECREF(shape);
    if (rc < 0) return ING_PYTHON;
    return ing_py_def_fail(k->st, &k->def, i, ING_ARGUMENT, remedy, e,
                           "Invalid value for argument %s - required ndim=%d, but %dd "
                           "ndarray with shape %s is provided",
                           param_name(k, i), p->ndim, ndim, text);
}

/* Seeing an array of another library says nothing about its gradient. */
static ing_status check_gradient(ing_py_kernel *k, PyObject *obj, ing_err *why) {
    if (ing_py_is_array(k->st, obj)) return ING_OK;
    ing_py_foreign a;
    Py_buffer hold;
    ing_status s = ing_py_foreign_read(k->st, obj, true, &a, &hold, why);
    PyBuffer_Release(&hold);
    return s;
}

/* The argument or the parameter is of structs: both must be. */
static ing_status check_structs(ing_py_kernel *k, uint32_t i, const ing_gate_param *p,
                                const ing_gate_fact *f, PyObject *obj, ing_err *e) {
    if (f->structure && !p->dtype && ing_gate_fits_structs(f, p->layout, p->ndim))
        return ING_OK;
    ing_bytes want, have;
    ing_bytes_init(&want);
    ing_bytes_init(&have);
    ing_words_param(p, &want);
    if (f->structure)
        ing_words_fact(f, &have);
    else
        ing_bytes_printf(&have, "%.100s", Py_TYPE(obj)->tp_name);
    ing_status s = ing_py_def_fail(
        k->st, &k->def, i, ING_ARGUMENT,
        f->structure
            ? "pass an array of such elements, or annotate the parameter with "
              "the argument's type: qd.types.ndarray(x.element_type, x.ndim)"
            : "make one of the struct type: qd.ndarray(S, shape), and load it: "
              "x.from_numpy(records)",
        e,
        "Invalid type for argument %s: the parameter is %.300s, the argument is %.300s",
        param_name(k, i), want.failed ? "?" : (const char *)want.at,
        have.failed ? "?" : (const char *)have.at);
    ing_bytes_fini(&want);
    ing_bytes_fini(&have);
    return s;
}

static ing_status check_array(ing_py_kernel *k, uint32_t i, const ing_gate_param *p,
                              PyObject *obj, ing_err *e) {
    ing_gate_fact f;
    ing_err why;
    ing_err_init(&why);
    ing_status s = ing_py_see_arg(k->st, p, obj, &f, &why);
    if (s == ING_OK && f.kind == ING_GATE_ARRAY && f.grad)
        s = check_gradient(k, obj, &why);
    if (s == ING_PYTHON) return s;
    if (s != ING_OK) {
        char *help = why.text ? strstr(why.text, "\nhelp: ") : NULL;
        if (help) *help = 0;
        s = ing_py_def_fail(
            k->st, &k->def, i, s,
            help ? help + strlen("\nhelp: ")
                 : "pass a contiguous array of a supported dtype in CPU memory, "
                   "or a qd.ndarray",
            e, "Invalid value for argument %s - %s", param_name(k, i),
            why.text ? why.text : "this array cannot be used");
        ing_err_fini(&why);
        return s;
    }
    bool field = f.kind == ING_GATE_FIELD || f.kind == ING_GATE_BUNDLE;
    if (p->fields && field) return ING_OK; /* of any kind */
    if (f.structure || p->layout) return check_structs(k, i, p, &f, obj, e);
    if (f.kind != ING_GATE_ARRAY) return not_an_array(k, i, obj, e);
    bool ours = ing_py_is_array(k->st, obj);
    int axes = f.ndim + (ours ? 0 : f.elem_rank);
    bool ndim = p->ndim >= 0 && p->ndim != f.ndim;
    bool short_of_axes = !ours && f.elem_rank < p->tensor.rank;
    if (!ours && (ndim || short_of_axes)) return wrong_ndim(k, i, p, axes, obj, e);
    ING_TRY(check_elements(k, i, p, &f, obj, e));
    if (ndim) return wrong_ndim(k, i, p, axes, obj, e);
    if (p->needs_grad && !f.grad)
        return ing_py_def_fail(
            k->st, &k->def, i, ING_ARGUMENT,
            "make it with needs_grad=True (torch: requires_grad=True)", e,
            "Invalid value for argument %s - required needs_grad=True, but the array "
            "has "
            "no gradient",
            param_name(k, i));
    return ING_OK;
}

ing_status ing_py_check_args(ing_py_kernel *k, PyObject *const *args, ing_err *e) {
    ING_TRY(ing_py_def_meanings(k->st, &k->def, true, e));
    for (uint32_t i = 0; i < k->def.n_params; i++) {
        const ing_gate_param *p = &k->def.params[i];
        uint64_t word;
        ing_py_bind b = {
            .kind = ING_BIND_SCALAR, .dtype = (uint8_t)p->dtype, .arg = (uint16_t)i};
        if (p->optional && args[i] == Py_None) continue;
        if (p->passing == ING_PASS_ARRAY) ING_TRY(check_array(k, i, p, args[i], e));
        if (p->passing == ING_PASS_VIEW && !ing_py_is_view(k->st, args[i]))
            return ing_py_def_fail(k->st, &k->def, i, ING_ARGUMENT,
                                   "pass a slice of an array: data[:n]", e,
                                   "Invalid type for argument %s: it must be a "
                                   "BufferView, not %.100s",
                                   param_name(k, i), Py_TYPE(args[i])->tp_name);
        if (p->passing == ING_PASS_VALUE && p->layout)
            ING_TRY(bind_struct(k, i, args[i], NULL, e));
        else if (p->passing == ING_PASS_VALUE && p->tensor.rank)
            ING_TRY(bind_tensor(k, &b, &p->tensor, args[i], NULL, e));
        else if (p->passing == ING_PASS_VALUE)
            ING_TRY(bind_scalar(k, &b, args[i], &word, e));
    }
    return ING_OK;
}
