/* Elements of an array from Python: a[i, j], a[None] of a 0-d array, len and iteration.
 * Slots of the array type. Every access is checked against the bounds; negative indices
 * count from the end. */
#include "py/array.h"
#include "py/tensor.h"

static bool fail_index(ing_py_state *st, PyObject *item) {
    const char *name = Py_TYPE(item)->tp_name;
    if (PySlice_Check(item))
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "an ndarray takes no slices: use to_numpy(copy=False) for a view");
    else
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "indices of an ndarray are integers, got '%.100s'", name);
    return false;
}

/* The index `item` for an axis, checked. */
static bool parse_index(ing_py_state *st, PyObject *item, int axis, Py_ssize_t extent,
                        Py_ssize_t *out) {
    if (!PyIndex_Check(item)) return fail_index(st, item);
    Py_ssize_t i = PyNumber_AsSsize_t(item, NULL); /* clips: out of bounds either way */
    if (i == -1 && PyErr_Occurred()) {
        /* An array of floats has __index__ and raises from it. */
        return ing_py_took(PyExc_TypeError) && fail_index(st, item);
    }
    *out = i < 0 ? i + extent : i;
    if (*out >= 0 && *out < extent) return true;
    ing_py_fail(st, ING_PY_EXC_INDEX,
                "index %zd is out of bounds for axis %d with extent %zd", i, axis,
                extent);
    return false;
}

/* The address of an element; NULL = raised. `items` are n indices. *whole: it is a vector
 * or matrix, not a number. */
static char *locate(ing_py_state *st, const ing_py_array *a, PyObject *const *items,
                    Py_ssize_t n, bool *whole) {
    ing_py_dims d;
    char *at = a->data;
    ing_py_array_dims(a, &d);
    if (n != d.n && n != a->spec->ndim) {
        ing_py_fail(st, ING_PY_EXC_INDEX,
                    "%dd ndarray indexed with %zdd indices: one per axis",
                    a->spec->ndim, n);
        return NULL;
    }
    *whole = n != d.n;
    for (int k = 0; k < n; k++) {
        Py_ssize_t i = 0;
        if (!parse_index(st, items[k], k, d.shape[k], &i)) return NULL;
        at += i * d.strides[k];
    }
    return at;
}

/* Under arch=qd.python, as in the reference, a[0] of a 0-d array is its element. */
static bool is_zero_for_none(const ing_py_state *st, const ing_py_array *a,
                             PyObject *key) {
    return a->spec->ndim == 0 && st->settings.at[ING_SET_python] &&
           PyLong_CheckExact(key) && PyLong_AsLong(key) == 0;
}

static char *find(ing_py_state *st, const ing_py_array *a, PyObject *key, bool *whole) {
    if (is_zero_for_none(st, a, key)) key = Py_None;
    if (PyTuple_Check(key))
        return locate(st, a, &PyTuple_GET_ITEM(key, 0), PyTuple_GET_SIZE(key), whole);
    if (PyList_Check(key)) { /* copied: an index may run code that changes the list */
        PyObject *copy = PyList_AsTuple(key);
        char *at = copy ? find(st, a, copy, whole) : NULL;
        Py_XDECREF(copy);
        return at;
    }
    return key == Py_None ? locate(st, a, NULL, 0, whole)
                          : locate(st, a, &key, 1, whole);
}

/* ---- vectors and matrices ------------------------------------------------------------------ */

static ing_gate_tensor element_shape(const ing_py_array *a) {
    return (ing_gate_tensor){a->spec->elem_rank,
                             {a->spec->elem_shape[0], a->spec->elem_shape[1]}};
}

static Py_ssize_t element_count(const ing_gate_tensor *t) {
    return (Py_ssize_t)t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
}

/* The element as a vector or matrix that writes through: a[i][0] = 1. */
static PyObject *load_element(ing_py_state *st, const ing_py_array *a, const char *at,
                              PyObject *key) {
    ing_gate_tensor t = element_shape(a);
    ing_dtype dtype = (ing_dtype)a->spec->dtype;
    Py_ssize_t n = element_count(&t);
    PyObject *list = PyList_New(n), *v = NULL;
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *o = ing_py_scalar_load(dtype, at + i * ing_dtype_bytes(dtype));
        if (o)
            PyList_SET_ITEM(list, i, o);
        else
            Py_CLEAR(list);
    }
    if (list) v = ing_py_tensor_result(&t, ing_py_dtype_get(st, dtype), list);
    Py_XDECREF(list);
    if (!v) return NULL;
    PyObject *source = PyTuple_Pack(2, (PyObject *)a, key);
    int rc = source ? PyObject_SetAttrString(v, "_source", source) : -1;
    Py_XDECREF(source);
    if (rc < 0) Py_CLEAR(v);
    return v;
}

static int store_element(ing_py_state *st, ing_py_array *a, char *at, PyObject *value) {
    ing_gate_tensor t = element_shape(a);
    ing_dtype dtype = (ing_dtype)a->spec->dtype;
    Py_ssize_t n = element_count(&t);
    PyObject *list = NULL;
    bool one = PyNumber_Check(value) && !PySequence_Check(value);
    ing_status s = one ? ING_OK : ing_py_tensor_flatten(st, value, &t, &list);
    if (s == ING_DECLINED)
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "an element of this ndarray is a %s; %.100s does not fit",
                    t.rank == 1 ? "vector" : "matrix", Py_TYPE(value)->tp_name);
    int rc = s == ING_OK ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *item = one ? value : PyList_GetItem(list, i);
        Py_XINCREF(item);
        rc = item ? ing_py_scalar_store(st, dtype, at + i * ing_dtype_bytes(dtype),
                                        item, "ndarray")
                  : -1;
        Py_XDECREF(item);
    }
    Py_XDECREF(list);
    if (rc == 0) ing_py_array_touch(st, a);
    return rc;
}

/* a[2:5] of a 1-d array is a qd.BufferView. */
static PyObject *slice_of(PyObject *self, PyObject *key) {
    PyObject *function = ing_py_import("ingot._view", "slice_of");
    PyObject *v =
        function ? PyObject_CallFunctionObjArgs(function, self, key, NULL) : NULL;
    Py_XDECREF(function);
    return v;
}

PyObject *ing_py_array_get(PyObject *self, PyObject *key) {
    const ing_py_array *a = (ing_py_array *)self;
    ing_py_state *st = ing_py_state_of(self);
    bool whole = false;
    if (PySlice_Check(key)) return slice_of(self, key);
    const char *at = find(st, a, key, &whole);
    if (at && whole) return load_element(st, a, at, key);
    PyObject *v = at ? ing_py_scalar_load((ing_dtype)a->spec->dtype, at) : NULL;
    return st->settings.at[ING_SET_python] ? ing_py_python_cell(v, self, key) : v;
}

int ing_py_array_set(PyObject *self, PyObject *key, PyObject *value) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_array *a = (ing_py_array *)self;
    ing_dtype t = (ing_dtype)a->spec->dtype;
    char what[32];
    if (!value) {
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "elements of an ndarray cannot be deleted");
        return -1;
    }
    bool whole = false;
    char *at = find(st, a, key, &whole);
    if (!at) return -1;
    if (whole) return store_element(st, a, at, value);
    PyOS_snprintf(what, sizeof what, "ndarray of %s", ing_dtype_name(t));
    if (ing_py_scalar_store(st, t, at, value, what) < 0) return -1;
    ing_py_array_touch(st, a);
    return 0;
}

Py_ssize_t ing_py_array_len(PyObject *self) {
    const ing_py_array *a = (ing_py_array *)self;
    ing_py_dims d;
    ing_py_array_dims(a, &d);
    if (d.n > 0) return d.shape[0];
    PyErr_SetString(PyExc_TypeError, "a 0-d ndarray has no len()");
    return -1;
}

/* What iteration asks for: the i-th element of a 1-d array. */
PyObject *ing_py_array_at(PyObject *self, Py_ssize_t i) {
    const ing_py_array *a = (ing_py_array *)self;
    ing_py_dims d;
    ing_py_array_dims(a, &d);
    if (d.n != 1)
        return PyErr_Format(PyExc_TypeError, "a %d-d ndarray is not a sequence", d.n);
    if (i < 0 || i >= d.shape[0]) {
        PyErr_SetString(PyExc_IndexError, "index out of range");
        return NULL;
    }
    const char *at = (const char *)a->data + i * d.strides[0];
    return ing_py_scalar_load((ing_dtype)a->spec->dtype, at);
}

PyObject *ing_py_array_iter(PyObject *self) {
    ing_py_dims d;
    if (ing_py_state_of(self)->settings.at[ING_SET_python])
        return ing_py_python_indices(self);
    ing_py_array_dims((ing_py_array *)self, &d);
    if (d.n != 1)
        return PyErr_Format(
            PyExc_TypeError,
            "only 1-d ndarrays can be iterated over, this one is %d-d: use "
            "to_numpy()",
            d.n);
    return PySeqIter_New(self);
}
