/* Whole arrays: fill, copy_from, copy, deepcopy and pickle. Methods of the array type.
 * Long copies run without the GIL; the arrays cannot go meanwhile, since their callers
 * hold them. A copy has zero gradients: they are state of a computation, not contents. */
#include "py/array.h"

#include <string.h>

/* ---- fill ------------------------------------------------------------------------------ */

static void fill_pattern(char *to, size_t nbytes, const void *item, size_t size) {
    switch (size) {
    case 1: memset(to, *(const uint8_t *)item, nbytes); break;
    case 2: {
        uint16_t v;
        memcpy(&v, item, sizeof v);
        for (size_t i = 0; i < nbytes / sizeof v; i++)
            memcpy(to + i * sizeof v, &v, sizeof v);
        break;
    }
    case 4: {
        uint32_t v;
        memcpy(&v, item, sizeof v);
        for (size_t i = 0; i < nbytes / sizeof v; i++)
            memcpy(to + i * sizeof v, &v, sizeof v);
        break;
    }
    default: {
        uint64_t v;
        memcpy(&v, item, sizeof v);
        for (size_t i = 0; i < nbytes / sizeof v; i++)
            memcpy(to + i * sizeof v, &v, sizeof v);
    }
    }
}

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
    if (ing_py_scalar_store(st, t, &item, value, "fill") < 0) return NULL;
    if (a->nbytes < ING_PY_BIG) {
        fill_pattern(a->data, a->nbytes, &item, ing_dtype_bytes(t));
    } else {
        Py_BEGIN_ALLOW_THREADS;
        fill_pattern(a->data, a->nbytes, &item, ing_dtype_bytes(t));
        Py_END_ALLOW_THREADS;
    }
    ing_py_array_touch(st, a);
    Py_RETURN_NONE;
}

/* ---- copies ------------------------------------------------------------------------------ */

/* One side of an element-wise copy. */
typedef struct side {
    char *data;
    ing_dtype t;
    ing_py_dims d;
} side;

static side side_of(const ing_py_array *a) {
    side s = {.data = a->data, .t = (ing_dtype)a->spec->dtype};
    ing_py_array_dims(a, &s.d);
    return s;
}

static void copy_row(const side *to, char *dst, const side *from, const char *src,
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
    char *dst = to->data;
    const char *src = from->data;
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

void ing_py_array_load(ing_py_array *to, const char *from, const Py_ssize_t *strides) {
    side dst = side_of(to), src = dst;
    src.data = (char *)from;
    memcpy(src.d.strides, strides, (size_t)dst.d.n * sizeof *strides);
    copy_elements(&dst, &src);
}

static bool same_form(const ing_py_array *a, const ing_py_array *b) {
    return a->spec->dtype == b->spec->dtype &&
           memcmp(a->spec->layout, b->spec->layout, sizeof a->spec->layout) == 0;
}

static bool overlap(const ing_py_array *a, const ing_py_array *b) {
    uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return x < y + b->nbytes && y < x + a->nbytes;
}

/* Foreign memory can overlap in any way, so a conversion goes by way of a copy then.
 * False: no memory for it. Needs no GIL. */
static bool copy_data(const ing_py_array *to, const ing_py_array *from) {
    if (to->nbytes == 0) return true;
    if (same_form(to, from)) {
        memmove(to->data, from->data, to->nbytes);
        return true;
    }
    side dst = side_of(to), src = side_of(from);
    char *spare = NULL;
    if (overlap(to, from)) {
        spare = ing_malloc(from->nbytes);
        if (!spare) return false;
        src.data = memcpy(spare, from->data, from->nbytes);
    }
    copy_elements(&dst, &src);
    ing_free(spare);
    return true;
}

static int copy_into(ing_py_state *st, ing_py_array *to, const ing_py_array *from) {
    bool ok;
    if (to->nbytes < ING_PY_BIG) {
        ok = copy_data(to, from);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        ok = copy_data(to, from);
        Py_END_ALLOW_THREADS;
    }
    ing_py_array_touch(st, to);
    if (!ok) PyErr_NoMemory();
    return ok ? 0 : -1;
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

PyObject *ing_py_array_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_py_array *a = (ing_py_array *)self;
    ing_py_state *st = ing_py_state_of(self);
    PyObject *restore = ing_py_import("ingot._core", "_restore_array");
    PyObject *shape = ing_py_shape_tuple(a), *layout = ing_py_layout_tuple(a);
    PyObject *bytes = PyBytes_FromStringAndSize(a->data, (Py_ssize_t)a->nbytes);
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
