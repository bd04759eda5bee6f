/* Whole arrays: fill, copy_from, copy, deepcopy and pickle. Methods of the array type.
 * Long copies run without the GIL; the arrays cannot go meanwhile, since their callers
 * hold them. A copy has zero gradients: they are state of a computation, not contents. */
#include "py/array/array.h"

#include <string.h>

/* ---- fill ------------------------------------------------------------------------------ */

PyObject *ing_py_array_fill(PyObject *self, PyObject *value) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_array *a = (ing_py_array *)self;
    ing_dtype t = (ing_dtype)a->spec->dtype;
    uint64_t item = 0;
    if (a->spec->elem_rank && PySequence_Check(value)) {
        PyObject *function = ing_py_import("ingot._matrix", "_fill_array");
        PyObject *r =
            function ? PyObject_CallFunctionObjArgs(function, self, value, NULL) : NULL;
        Py_XDECREF(function);
        if (r) ing_py_array_touch(st, a);
        return r;
    }
    if (PySequence_Check(value) && PySequence_Size(value) >= 0) {
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "fill takes one number, got '%.100s': many are loaded by "
                    "from_numpy(x)",
                    Py_TYPE(value)->tp_name);
        return NULL;
    }
    if (PyErr_Occurred() && !ing_py_took_any()) return NULL;
    if (ing_py_scalar_store(st, t, &item, value, "fill") < 0) return NULL;
    ing_status s;
    if (a->nbytes < ING_PY_BIG) {
        s = ing_mem_fill(a->mem, a->offset, a->nbytes, &item, ing_dtype_bytes(t));
    } else {
        Py_BEGIN_ALLOW_THREADS;
        s = ing_mem_fill(a->mem, a->offset, a->nbytes, &item, ing_dtype_bytes(t));
        Py_END_ALLOW_THREADS;
    }
    ing_py_array_touch(st, a);
    if (s == ING_OK) Py_RETURN_NONE;
    ing_py_mem_fail(s);
    return NULL;
}

/* ---- copies ------------------------------------------------------------------------------ */

/* One side of an element-wise copy. */
typedef struct side {
    uint8_t *data;
    ing_dtype t;
    ing_py_dims d;
} side;

static side side_of(const ing_py_array *a, const ing_mem_span *span) {
    side s = {.data = span->at, .t = (ing_dtype)a->spec->dtype};
    ing_py_array_dims(a, &s.d);
    return s;
}

static void copy_row(const side *to, uint8_t *dst, const side *from, const uint8_t *src,
                     int axis) {
    Py_ssize_t n = axis < 0 ? 1 : to->d.shape[axis];
    Py_ssize_t dst_step = axis < 0 ? 0 : to->d.strides[axis];
    Py_ssize_t src_step = axis < 0 ? 0 : from->d.strides[axis];
    for (Py_ssize_t i = 0; i < n; i++, dst += dst_step, src += src_step) {
        if (to->t == from->t)
            memcpy(dst, src, to->d.itemsize);
        else
            ing_py_num_store(to->t, dst, ing_py_num_load(from->t, src));
    }
}

/* Equal shapes, not empty, any dtypes and layouts, no overlap: an odometer over all axes
 * but the last. */
static void copy_elements(const side *to, const side *from) {
    Py_ssize_t at[ING_PY_MAX_DIMS] = {0};
    int last = to->d.n - 1;
    uint8_t *dst = to->data;
    const uint8_t *src = from->data;
    for (;;) {
        int k = last - 1;
        copy_row(to, dst, from, src, last);
        for (; k >= 0; k--) {
            dst += to->d.strides[k];
            src += from->d.strides[k];
            if (++at[k] < to->d.shape[k]) break;
            dst -= at[k] * to->d.strides[k];
            src -= at[k] * from->d.strides[k];
            at[k] = 0;
        }
        if (k < 0) return;
    }
}

int ing_py_array_load(ing_py_array *to, const char *from, const Py_ssize_t *strides) {
    ing_mem_span s;
    if (ing_py_array_open(to, 0, to->nbytes, ING_MEM_WRITE, &s) < 0) return -1;
    side dst = side_of(to, &s), src = dst;
    src.data = (uint8_t *)from;
    memcpy(src.d.strides, strides, (size_t)dst.d.n * sizeof *strides);
    copy_elements(&dst, &src);
    return ing_py_array_done(&s);
}

static bool same_form(const ing_py_array *a, const ing_py_array *b) {
    return a->spec->dtype == b->spec->dtype &&
           memcmp(a->spec->layout, b->spec->layout, sizeof a->spec->layout) == 0;
}

static bool overlap(const ing_mem_span *a, const ing_mem_span *b) {
    uintptr_t x = (uintptr_t)a->at, y = (uintptr_t)b->at;
    return x < y + b->bytes && y < x + a->bytes;
}

/* Foreign memory can overlap in any way, so a conversion goes by way of a copy then. */
static ing_status convert(const ing_py_array *to, const ing_mem_span *dst_span,
                          const ing_py_array *from, const ing_mem_span *src_span) {
    side dst = side_of(to, dst_span), src = side_of(from, src_span);
    uint8_t *spare = NULL;
    if (overlap(dst_span, src_span)) {
        spare = ing_malloc(from->nbytes);
        if (!spare) return ING_MEMORY;
        src.data = memcpy(spare, src_span->at, from->nbytes);
    }
    copy_elements(&dst, &src);
    ing_free(spare);
    return ING_OK;
}

/* Needs no GIL. */
static ing_status copy_data(const ing_py_array *to, const ing_py_array *from) {
    ing_mem_span dst, src;
    if (to->nbytes == 0) return ING_OK;
    ING_TRY(ing_mem_host(from->mem, from->offset, from->nbytes, ING_MEM_READ, &src));
    ing_status s = ing_mem_host(to->mem, to->offset, to->nbytes, ING_MEM_WRITE, &dst);
    if (s == ING_OK) {
        if (same_form(to, from))
            memmove(dst.at, src.at, to->nbytes);
        else
            s = convert(to, &dst, from, &src);
        if (s != ING_OK) dst.use = ING_MEM_READ; /* nothing to be put back */
        ing_status done = ing_mem_done(&dst);
        if (s == ING_OK) s = done;
    }
    ing_status done = ing_mem_done(&src);
    return s == ING_OK ? done : s;
}

static int copy_into(ing_py_state *st, ing_py_array *to, const ing_py_array *from) {
    ing_status s;
    if (to->nbytes < ING_PY_BIG) {
        s = copy_data(to, from);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        s = copy_data(to, from);
        Py_END_ALLOW_THREADS;
    }
    ing_py_array_touch(st, to);
    return s == ING_OK ? 0 : ing_py_mem_fail(s);
}

static bool same_shape(const ing_py_array *a, const ing_py_array *b) {
    const ing_py_spec *s = a->spec, *o = b->spec;
    return s->ndim == o->ndim && s->elem_rank == o->elem_rank &&
           memcmp(s->elem_shape, o->elem_shape, sizeof s->elem_shape) == 0 &&
           memcmp(a->shape, b->shape, s->ndim * sizeof *a->shape) == 0;
}

static PyObject *fail_shapes(ing_py_state *st, const ing_py_array *a,
                             const ing_py_array *b) {
    PyObject *mine = ing_py_shape_tuple(a), *theirs = ing_py_shape_tuple(b);
    if (mine && theirs)
        ing_py_fail(st, ING_PY_EXC_ASSERTION,
                    "copy_from: the shapes differ, %R here and %R in the source", mine,
                    theirs);
    Py_XDECREF(mine);
    Py_XDECREF(theirs);
    return NULL;
}

PyObject *ing_py_array_copy_from(PyObject *self, PyObject *other) {
    ing_py_state *st = ing_py_state_of(self);
    if (!ing_py_is_array(st, other))
        return ing_py_fail(
            st, ING_PY_EXC_RUNTIME_TYPE,
            "copy_from: expected an ndarray, got '%.100s'; for NumPy arrays "
            "there is from_numpy",
            Py_TYPE(other)->tp_name);
    ing_py_array *to = (ing_py_array *)self, *from = (ing_py_array *)other;
    if (!same_shape(to, from)) return fail_shapes(st, to, from);
    if (copy_into(st, to, from) < 0) return NULL;
    Py_RETURN_NONE;
}

ing_py_array *ing_py_array_clone(ing_py_state *st, ing_py_array *a, bool plain) {
    ing_py_spec spec = *a->spec;
    if (plain) {
        spec.grad = 0;
        for (unsigned k = 0; k < spec.ndim; k++) spec.layout[k] = (uint8_t)k;
    }
    const ing_py_spec *s = ing_py_spec_intern(st, &spec);
    ing_py_array *copy = s ? ing_py_array_new(st, s, a->shape) : NULL;
    if (copy && copy_into(st, copy, a) < 0) Py_CLEAR(copy);
    return copy;
}

PyObject *ing_py_array_on_host(PyObject *self, PyObject *unused) {
    (void)unused;
    const ing_py_array *a = (ing_py_array *)self;
    ing_py_state *st = ing_py_state_of(self);
    if (a->mem->host) return Py_NewRef(self);
    ing_py_spec spec = *a->spec;
    spec.grad = 0;
    spec.home = &ing_home_cpu;
    const ing_py_spec *s = ing_py_spec_intern(st, &spec);
    ing_py_array *copy = s ? ing_py_array_new(st, s, a->shape) : NULL;
    if (copy && copy_into(st, copy, a) < 0) Py_CLEAR(copy);
    return (PyObject *)copy;
}

/* ---- copy, deepcopy, pickle ---------------------------------------------------------------- */

PyObject *ing_py_array_copy(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_py_array *a = (ing_py_array *)self;
    ing_py_array *copy = ing_py_array_clone(ing_py_state_of(self), a, false);
    if (copy && a->dict) {
        copy->dict = PyDict_Copy(a->dict);
        if (!copy->dict) Py_CLEAR(copy);
    }
    return (PyObject *)copy;
}

/* The attributes of a deep copy; the copy is in `memo` first, for cycles through it. */
static int deepcopy_dict(ing_py_array *copy, const ing_py_array *a, PyObject *memo) {
    PyObject *key = PyLong_FromVoidPtr((void *)a), *deepcopy = NULL, *dict = NULL;
    int rc = -1;
    if (!key || (memo != Py_None && PyObject_SetItem(memo, key, (PyObject *)copy) < 0))
        goto done;
    if (a->dict) {
        deepcopy = ing_py_import("copy", "deepcopy");
        if (!deepcopy) goto done;
        dict = PyObject_CallFunctionObjArgs(deepcopy, a->dict, memo, NULL);
        if (!dict) goto done;
        if (!PyDict_Check(dict)) {
            PyErr_SetString(PyExc_TypeError, "copy.deepcopy of a dict gave no dict");
            goto done;
        }
        Py_XSETREF(copy->dict, Py_NewRef(dict));
    }
    rc = 0;
done:
    Py_XDECREF(key);
    Py_XDECREF(deepcopy);
    Py_XDECREF(dict);
    return rc;
}

PyObject *ing_py_array_deepcopy(PyObject *self, PyObject *memo) {
    ing_py_array *a = (ing_py_array *)self;
    ing_py_array *copy = ing_py_array_clone(ing_py_state_of(self), a, false);
    if (copy && deepcopy_dict(copy, a, memo) < 0) Py_CLEAR(copy);
    return (PyObject *)copy;
}

static PyObject *bytes_of(const ing_py_array *a) {
    ing_mem_span s;
    if (ing_py_array_open(a, 0, a->nbytes, ING_MEM_READ, &s) < 0) return NULL;
    PyObject *bytes =
        PyBytes_FromStringAndSize((const char *)s.at, (Py_ssize_t)a->nbytes);
    if (ing_py_array_done(&s) < 0) Py_CLEAR(bytes);
    return bytes;
}

PyObject *ing_py_array_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_py_array *a = (ing_py_array *)self;
    ing_py_state *st = ing_py_state_of(self);
    PyObject *restore = ing_py_import("ingot._core", "_restore_array");
    PyObject *shape = ing_py_shape_tuple(a), *layout = ing_py_layout_tuple(a);
    PyObject *bytes = bytes_of(a);
    PyObject *result = NULL, *type = ing_py_array_element_type(st, a);
    if (restore && shape && layout && bytes && type)
        result = Py_BuildValue("O(OOOOO)O", restore, type, shape, layout,
                               a->spec->grad ? Py_True : Py_False, bytes,
                               a->dict && PyDict_GET_SIZE(a->dict) ? a->dict : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(restore);
    Py_XDECREF(shape);
    Py_XDECREF(layout);
    Py_XDECREF(bytes);
    return result;
}
