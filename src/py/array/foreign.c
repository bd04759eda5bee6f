/* Arrays and numbers of other libraries: which kind of thing a type is, where the elements
 * lie, and in what order. Called by the gate (see.c) and by every launch that is given such
 * an array (bind.c). Nothing is copied: memory that code cannot walk (gaps, another
 * device, unaligned, foreign byte order) is refused with the reason.
 *
 * NumPy comes by the buffer protocol. torch comes by the table of C functions that DLPack
 * 1.3 puts on the type: one call of some 20 ns, where the attributes would cost 100 ns
 * each. Whatever else has __dlpack__ is asked for a capsule, which costs microseconds. */
#include "py/array/foreign.h"
#include "py/array/array.h"
#include "py/array/dlpack.h"

#include <string.h>

/* ---- state ------------------------------------------------------------------------------ */

/* What is known of one type. The version tag stands for the type and all that it inherits,
 * and is never given out twice, so the entry needs no reference and cannot be stale. */
typedef struct known {
    PyTypeObject *type;
    unsigned tag;
    uint8_t kind;
    bool autograd; /* has requires_grad, grad and is_leaf */
    bool masked;   /* has a mask, which tells what of the memory counts */
    ing_dl_view_fn view;
} known;

enum {
    N_KNOWN = 32,
    EXCHANGE = 0,
    DLPACK,
    REQUIRES_GRAD,
    GRAD,
    IS_LEAF,
    IS_NEG,
    MASK,
    FILLED,
    N_NAMES
};

static const char *const name_text[N_NAMES] = {
    "__dlpack_c_exchange_api__",
    "__dlpack__",
    "requires_grad",
    "grad",
    "is_leaf",
    "is_neg",
    "mask",
    "filled",
};

struct ing_py_foreign_state {
    known at[N_KNOWN];
    PyObject *names[N_NAMES]; /* interned */
};

int ing_py_foreign_add(PyObject *module, ing_py_state *st) {
    (void)module;
    st->foreign = ing_calloc(1, sizeof *st->foreign);
    if (!st->foreign) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < N_NAMES; i++) {
        st->foreign->names[i] = PyUnicode_InternFromString(name_text[i]);
        if (!st->foreign->names[i]) return -1;
    }
    return 0;
}

int ing_py_foreign_traverse(ing_py_state *st, visitproc visit, void *arg) {
    (void)st, (void)visit, (void)arg;
    return 0;
}

void ing_py_foreign_clear(ing_py_state *st) {
    if (!st->foreign) return;
    memset(st->foreign->at, 0, sizeof st->foreign->at);
    for (int i = 0; i < N_NAMES; i++) Py_CLEAR(st->foreign->names[i]);
}

void ing_py_foreign_fini(ing_py_state *st) {
    ing_free(st->foreign);
    st->foreign = NULL;
}

/* ---- kinds ------------------------------------------------------------------------------ */

/* An attribute of the type itself, borrowed; no descriptor and no metaclass is asked, so no
 * code runs. Gives the type a version tag if it has none. */
static PyObject *find_in_type(PyTypeObject *type, PyObject *name) {
    return name ? _PyType_Lookup(type, name) : NULL;
}

/* The function that describes a tensor, out of the newest table that we can read. */
static ing_dl_view_fn view_function(PyObject *capsule) {
    if (!capsule || !PyCapsule_IsValid(capsule, ING_DL_NAME_EXCHANGE)) return NULL;
    const ing_dl_exchange *api = PyCapsule_GetPointer(capsule, ING_DL_NAME_EXCHANGE);
    while (api && api->version.major != 1) api = api->older;
    return api ? api->view : NULL;
}

/* By the name of a base: no class statement makes a type that is not on the heap, and asking
 * NumPy could fail. */
static bool is_numpy_scalar(const PyTypeObject *type) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        const PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
            strcmp(base->tp_name, "numpy.generic") == 0)
            return true;
    }
    return false;
}

static void classify(ing_py_state *st, PyTypeObject *type, known *k) {
    PyObject *const *names = st->foreign->names;
    *k = (known){.type = type, .kind = ING_FOREIGN_NONE};
    PyObject *exchange = find_in_type(type, names[EXCHANGE]);
    k->masked = find_in_type(type, names[MASK]) && find_in_type(type, names[FILLED]);
    if (type->tp_as_buffer && type->tp_as_buffer->bf_getbuffer) {
        /* Bytes are a constant, not an array. */
        if (!PyType_IsSubtype(type, &PyBytes_Type))
            k->kind = is_numpy_scalar(type) ? ING_FOREIGN_NUMBER : ING_FOREIGN_BUFFER;
        return;
    }
    k->view = view_function(exchange);
    if (k->view)
        k->kind = ING_FOREIGN_TENSOR;
    else if (find_in_type(type, names[DLPACK]))
        k->kind = ING_FOREIGN_DLPACK;
    if (k->kind != ING_FOREIGN_NONE)
        k->autograd = find_in_type(type, names[REQUIRES_GRAD]) != NULL;
}

static unsigned version_of(const PyTypeObject *type) {
#if PY_VERSION_HEX < 0x030B0000
    if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
    return type->tp_version_tag;
}

/* By value: reading an array may run code, and that may replace the entry. */
static __attribute__((noinline)) known learn(ing_py_state *st, PyTypeObject *type,
                                             known *k) {
    known fresh;
    classify(st, type, &fresh);
    fresh.tag = version_of(type);
    *k = fresh;
    return fresh;
}

static inline known known_of(ing_py_state *st, PyTypeObject *type) {
    known *k = &st->foreign->at[((uintptr_t)type >> 6) % N_KNOWN];
    unsigned tag = version_of(type);
    return k->type == type && tag && k->tag == tag ? *k : learn(st, type, k);
}

ing_py_foreign_kind ing_py_foreign_kind_of(ing_py_state *st, PyObject *obj) {
    return (ing_py_foreign_kind)known_of(st, Py_TYPE(obj)).kind;
}

bool ing_py_is_masked(ing_py_state *st, PyObject *obj) {
    return known_of(st, Py_TYPE(obj)).masked;
}

/* All but the extents, of which only the first ndim count. */
static void clear(ing_py_foreign *a) {
    a->data = a->grad = NULL;
    a->read_only = false;
    memset(&a->spec, 0, sizeof a->spec);
}

/* ---- failures ---------------------------------------------------------------------------- */

/* What the library said, as the reason for a refusal. */
static ing_status refused(ing_err *e) {
    char why[400] = "its library gave no reason";
    if (PyErr_Occurred() &&
        (!ing_py_is_refusal() || ing_py_show_exception(why, sizeof why) < 0))
        return ING_PYTHON;
    bool times = strstr(why, "dtype 'M'") || strstr(why, "dtype 'm'");
    return ing_fail(e, ING_ARGUMENT, "the array cannot be shared: %s%s", why,
                    times ? "\nhelp: pass its numbers: x.view(np.int64)" : "");
}

static ing_status too_many_axes(int n, ing_err *e) {
    return ing_fail(e, ING_ARGUMENT,
                    "an array of %d dimensions; at most %d are supported", n,
                    ING_MAX_NDIM);
}

/* ---- order in memory ----------------------------------------------------------------------- */

/* Row major, the common case: one pass. Axes of one element may have any stride. */
static bool is_row_major(const ing_py_foreign *a, const int64_t *strides,
                         int64_t item) {
    int64_t expected = item;
    for (int k = a->spec.ndim - 1; k >= 0; k--) {
        if (a->shape[k] != 1 && strides[k] != expected) return false;
        if (__builtin_mul_overflow(expected, a->shape[k], &expected)) return false;
    }
    return true;
}

/* Any other order of the axes without gaps (Fortran order, transposed views): the axes by
 * falling stride are the layout. Axes of one element go outermost. */
static bool find_layout(ing_py_foreign *a, const int64_t *strides, int64_t item) {
    uint8_t order[ING_MAX_NDIM];
    int n = 0, ones = 0;
    for (uint8_t k = 0; k < a->spec.ndim; k++)
        if (a->shape[k] == 1) a->spec.layout[ones++] = k;
    for (uint8_t k = 0; k < a->spec.ndim; k++) {
        if (a->shape[k] == 1) continue;
        int at = n++;
        for (; at > 0 && strides[order[at - 1]] < strides[k]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    int64_t expected = item;
    for (int k = n - 1; k >= 0; k--) {
        if (strides[order[k]] != expected) return false;
        if (__builtin_mul_overflow(expected, a->shape[order[k]], &expected))
            return false;
    }
    memcpy(&a->spec.layout[ones], order, (size_t)n);
    return true;
}

/* The layout, from the strides in bytes; NULL = row major. */
static ing_status order_axes(ing_py_foreign *a, const int64_t *strides, bool any_order,
                             const char *what, const char *remedy, ing_err *e) {
    int64_t item = (int64_t)ing_dtype_bytes((ing_dtype)a->spec.dtype);
    bool empty = false;
    for (uint8_t k = 0; k < a->spec.ndim; k++) {
        if ((uint64_t)a->shape[k] > INT32_MAX) /* or negative */
            return ing_fail(
                e, ING_ARGUMENT,
                "axis %d has %lld elements; at most 2147483647 are supported", k,
                (long long)a->shape[k]);
        empty |= a->shape[k] == 0;
        a->spec.layout[k] = k;
    }
    if (((uintptr_t)a->data & (uintptr_t)(item - 1)) != 0)
        return ing_fail(e, ING_ARGUMENT, "its elements are not aligned to %d bytes",
                        (int)item);
    if (!strides || empty || is_row_major(a, strides, item)) return ING_OK;
    if (any_order && find_layout(a, strides, item)) return ING_OK;
    return ing_fail(e, ING_ARGUMENT,
                    "Non contiguous %s are not supported, please call %s", what,
                    remedy);
}

/* ---- the buffer protocol ---------------------------------------------------------------------- */

/* What its elements are, in words. */
static ing_status bad_format(const char *format, ing_err *e) {
    char c = format[strspn(format, "@=<>!")];
    const char *what, *remedy;
    if (c == 'Z')
        what = "complex numbers",
        remedy = "pass its parts: x.real.copy(), x.imag.copy()";
    else if (*format == '>' || *format == '!')
        what = "numbers in big-endian order",
        remedy = "convert it: x.astype(x.dtype.newbyteorder('='))";
    else if (c == 'T')
        what = "records", remedy = "pass each member as an array: x['name'].copy()";
    else if (c == 'O')
        what = "Python objects", remedy = "convert it: x.astype(np.float64)";
    else if (c == 'g')
        what = "long doubles", remedy = "convert it: x.astype(np.float64)";
    else if (c && strchr("cspwu", c) == NULL && strpbrk(format, "wu") == NULL)
        what = "elements",
        remedy = "convert it to a supported dtype: x.astype(np.float32)";
    else
        what = "text", remedy = "pass numbers: x.view(np.uint8) of bytes";
    return ing_fail(e, ING_ARGUMENT,
                    "arrays of %s (element format '%.40s') are not supported\nhelp: %s",
                    what, format, remedy);
}

/* One-letter struct codes of the buffer protocol, native sizes. */
static ing_dtype dtype_of_format(const char *fmt, Py_ssize_t itemsize) {
    if (*fmt == '@' || *fmt == '=' || *fmt == '<') fmt++;
    if (fmt[0] == 0 || fmt[1] != 0) return ING_VOID;
    switch (fmt[0]) {
    case '?': return ING_U1;
    case 'e': return ING_F16;
    case 'f': return ING_F32;
    case 'd': return ING_F64;
    default: break;
    }
    bool is_signed = strchr("bhilqn", fmt[0]) != NULL;
    if (!is_signed && !strchr("BHILQN", fmt[0])) return ING_VOID;
    switch (itemsize) {
    case 1: return is_signed ? ING_I8 : ING_U8;
    case 2: return is_signed ? ING_I16 : ING_U16;
    case 4: return is_signed ? ING_I32 : ING_U32;
    case 8: return is_signed ? ING_I64 : ING_U64;
    default: return ING_VOID;
    }
}

static ing_status read_buffer(PyObject *obj, ing_py_foreign *out, Py_buffer *view,
                              ing_err *e) {
    if (PyObject_GetBuffer(obj, view, PyBUF_RECORDS_RO) < 0) {
        view->obj = NULL;
        return refused(e);
    }
    ing_dtype t = view->format ? dtype_of_format(view->format, view->itemsize) : ING_U8;
    if (t == ING_VOID) return bad_format(view->format, e);
    if (view->ndim > ING_MAX_NDIM) return too_many_axes(view->ndim, e);
    for (int k = 0; k < view->ndim; k++) out->shape[k] = view->shape[k];
    out->data = view->buf;
    out->read_only = view->readonly;
    out->spec.dtype = (uint8_t)t;
    out->spec.ndim = (uint8_t)view->ndim;
    return order_axes(out, view->strides, true, "numpy arrays",
                      "copy = np.ascontiguousarray(arr) before; a kernel that writes "
                      "then writes the copy, so bring it back after: arr[...] = copy",
                      e);
}

ing_status ing_py_foreign_number(PyObject *obj, ing_dtype *type, ing_py_num *value) {
    Py_buffer view;
    if (PyObject_GetBuffer(obj, &view, PyBUF_RECORDS_RO) < 0)
        return ing_py_took_any() ? ING_DECLINED : ING_PYTHON;
    *type = view.format ? dtype_of_format(view.format, view.itemsize) : ING_VOID;
    bool ok = *type != ING_VOID && view.ndim == 0;
    if (ok) *value = ing_py_num_load(*type, view.buf);
    PyBuffer_Release(&view);
    return ok ? ING_OK : ING_DECLINED;
}

/* ---- tensors ------------------------------------------------------------------------------------ */

static ing_status read_tensor(const ing_dl_tensor *t, ing_py_foreign *out, ing_err *e) {
    if (t->device.type != ING_DL_CPU)
        return ing_fail(e, ING_ARGUMENT,
                        "the tensor is on another device, kernels run on the CPU; pass "
                        "copy = tensor.cpu(), and bring back what a kernel writes: "
                        "tensor.copy_(copy)");
    if (t->ndim < 0 || t->ndim > ING_MAX_NDIM) return too_many_axes(t->ndim, e);
    ing_dtype type = ing_py_dlpack_dtype(t);
    if (type == ING_VOID)
        return ing_fail(
            e, ING_ARGUMENT,
            "tensors of this dtype (DLPack code %d, %d bits) are not supported",
            t->dtype.code, t->dtype.bits);
    int64_t item = (int64_t)ing_dtype_bytes(type), strides[ING_MAX_NDIM];
    for (int32_t k = 0; k < t->ndim; k++) {
        out->shape[k] = t->shape[k];
        strides[k] = 0;
        if (t->strides && __builtin_mul_overflow(t->strides[k], item, &strides[k]))
            strides[k] = 0; /* fits no shape */
    }
    out->data = t->data ? (char *)t->data + t->byte_offset : NULL;
    out->spec.dtype = (uint8_t)type;
    out->spec.ndim = (uint8_t)t->ndim;
    return order_axes(out, t->strides ? strides : NULL, false, "tensors",
                      "copy = tensor.contiguous() before; a kernel that writes then "
                      "writes the copy, so bring it back after: tensor.copy_(copy)",
                      e);
}

static ing_status read_capsule(PyObject *obj, ing_py_foreign *out, Py_buffer *hold,
                               ing_err *e) {
    PyObject *capsule = ing_py_dlpack_request(obj);
    const ing_dl_tensor *t =
        capsule ? ing_py_dlpack_peek(capsule, &out->read_only) : NULL;
    hold->obj = capsule;
    return t ? read_tensor(t, out, e) : refused(e);
}

static ing_status read_view(const known *k, PyObject *obj, ing_py_foreign *out,
                            Py_buffer *hold, ing_err *e) {
    if (k->kind == ING_FOREIGN_DLPACK) return read_capsule(obj, out, hold, e);
    ing_dl_tensor t;
    memset(&t, 0, sizeof t);
    if (k->view(obj, &t) != 0) return refused(e);
    return read_tensor(&t, out, e);
}

/* torch's imaginary part of a conjugate is a view that negates when it is read. Its stride
 * is 2, so only one of a single element gets this far. */
static ing_status check_negative(ing_py_state *st, PyObject *obj,
                                 const ing_py_foreign *a, ing_err *e) {
    PyObject *name = st->foreign->names[IS_NEG];
    for (uint8_t k = 0; k < a->spec.ndim; k++)
        if (a->shape[k] != 1) return ING_OK;
    if (!ing_dtype_is_float((ing_dtype)a->spec.dtype)) return ING_OK;
    PyObject *v = find_in_type(Py_TYPE(obj), name)
                      ? PyObject_CallMethodNoArgs(obj, name)
                      : Py_NewRef(Py_False);
    int negative = v ? PyObject_IsTrue(v) : -1;
    Py_XDECREF(v);
    if (negative < 0) return refused(e);
    if (!negative) return ING_OK;
    return ing_fail(e, ING_ARGUMENT,
                    "the tensor is negated when it is read; pass "
                    "copy = tensor.resolve_neg(), and bring back what a kernel writes: "
                    "tensor.copy_(copy)");
}

/* ---- gradients ------------------------------------------------------------------------------------ */

static ing_status is_true(PyObject *obj, PyObject *name, bool *out, ing_err *e) {
    PyObject *v = PyObject_GetAttr(obj, name);
    int truth = v ? PyObject_IsTrue(v) : -1;
    Py_XDECREF(v);
    *out = truth > 0;
    return truth < 0 ? refused(e) : ING_OK;
}

/* The gradient of a tensor that requires one, made if there is none; new reference. torch
 * warns when it is read from a tensor that is no leaf: that is left to Python code, which
 * can silence it. */
static ing_status gradient_of(ing_py_state *st, PyObject *obj, PyObject **out,
                              ing_err *e) {
    bool leaf;
    *out = NULL;
    ING_TRY(is_true(obj, st->foreign->names[IS_LEAF], &leaf, e));
    if (leaf) {
        *out = PyObject_GetAttr(obj, st->foreign->names[GRAD]);
        if (!*out) return refused(e);
        if (*out != Py_None) return ING_OK;
        Py_CLEAR(*out);
    }
    PyObject *make = ing_py_import("ingot._interop", "gradient");
    if (make) *out = PyObject_CallOneArg(make, obj);
    Py_XDECREF(make);
    return *out ? ING_OK : refused(e);
}

static ing_status read_gradient(ing_py_state *st, PyObject *grad, ing_py_foreign *of,
                                Py_buffer *hold, ing_err *e) {
    known k = known_of(st, Py_TYPE(grad));
    ing_py_foreign g;
    clear(&g);
    if (k.kind < ING_FOREIGN_TENSOR)
        return ing_fail(e, ING_ARGUMENT, "its gradient is no tensor but a %.100s",
                        Py_TYPE(grad)->tp_name);
    ING_TRY(read_view(&k, grad, &g, hold, e));
    if (g.spec.dtype != of->spec.dtype || g.spec.ndim != of->spec.ndim ||
        memcmp(g.shape, of->shape, g.spec.ndim * sizeof *g.shape) != 0)
        return ing_fail(e, ING_ARGUMENT,
                        "its gradient has another shape or dtype than the tensor");
    of->grad = g.data;
    return ING_OK;
}

/* Keeps a second object alive along with what `hold` has. */
static ing_status hold_too(Py_buffer *hold, PyObject *other) {
    PyObject *both = hold->obj ? PyTuple_Pack(2, hold->obj, other) : Py_NewRef(other);
    if (!both) return ING_PYTHON;
    Py_XSETREF(hold->obj, both);
    return ING_OK;
}

static ing_status add_gradient(ing_py_state *st, PyObject *obj, ing_py_foreign *out,
                               Py_buffer *hold, ing_err *e) {
    PyObject *grad;
    Py_buffer temporary = {0};
    ING_TRY(gradient_of(st, obj, &grad, e));
    ing_status s = read_gradient(st, grad, out, &temporary, e);
    if (s == ING_OK) s = hold_too(hold, grad);
    if (s == ING_OK && temporary.obj) s = hold_too(hold, temporary.obj);
    Py_CLEAR(temporary.obj);
    Py_DECREF(grad);
    return s;
}

static ing_status read_any_tensor(ing_py_state *st, const known *k, PyObject *obj,
                                  bool gradient, ing_py_foreign *out, Py_buffer *hold,
                                  ing_err *e) {
    bool needs = false;
    if (k->autograd)
        ING_TRY(is_true(obj, st->foreign->names[REQUIRES_GRAD], &needs, e));
    if (needs && k->kind == ING_FOREIGN_DLPACK) {
        /* A capsule is refused for tensors that require a gradient. */
        PyObject *method = ing_py_attr(obj, "detach");
        PyObject *plain = method ? PyObject_CallNoArgs(method) : NULL;
        Py_XDECREF(method);
        ing_status s = plain ? read_capsule(plain, out, hold, e) : refused(e);
        Py_XDECREF(plain);
        ING_TRY(s);
    } else {
        ING_TRY(read_view(k, obj, out, hold, e));
    }
    if (k->autograd) ING_TRY(check_negative(st, obj, out, e));
    out->spec.grad = needs;
    return needs && gradient ? add_gradient(st, obj, out, hold, e) : ING_OK;
}

ing_status ing_py_foreign_read(ing_py_state *st, PyObject *obj, bool gradient,
                               ing_py_foreign *out, Py_buffer *hold, ing_err *e) {
    known k = known_of(st, Py_TYPE(obj));
    clear(out);
    hold->obj = NULL;
    if (k.masked && k.kind >= ING_FOREIGN_BUFFER)
        return ing_fail(e, ING_ARGUMENT, ING_PY_MASKED);
    switch ((ing_py_foreign_kind)k.kind) {
    case ING_FOREIGN_BUFFER: return read_buffer(obj, out, hold, e);
    case ING_FOREIGN_TENSOR:
    case ING_FOREIGN_DLPACK:
        return read_any_tensor(st, &k, obj, gradient, out, hold, e);
    default: return ING_DECLINED;
    }
}

/* An element is one run of memory in order when its axes are the last ones there too. */
bool ing_py_foreign_elements(ing_py_foreign *a, uint32_t rank) {
    ing_py_spec *s = &a->spec;
    uint32_t n = s->ndim - rank;
    if (rank > 2 || s->ndim < rank || s->elem_rank) return false;
    for (uint32_t k = 0; k < rank; k++) {
        int64_t extent = a->shape[n + k];
        if (s->layout[n + k] != n + k || extent < 1 || extent > UINT16_MAX)
            return false;
        s->elem_shape[k] = (uint32_t)extent;
        s->layout[n + k] = 0;
    }
    s->elem_rank = (uint8_t)rank;
    s->ndim = (uint8_t)n;
    return true;
}
