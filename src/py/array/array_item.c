/* Elements of an array from Python: a[i, j], a[None] of a 0-d array, len and iteration.
 * Slots of the array type. Every access is checked against the bounds; negative indices
 * count from the end. */
#include "py/array/array.h"
#include "py/array/tensor.h"

static bool fail_index(ing_py_state *st, PyObject *item) {
    const char *name = Py_TYPE(item)->tp_name;
    if (PySlice_Check(item))
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "only 1D ndarrays can be sliced: use to_numpy(copy=False) for a "
                    "view");
    else
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "indices of an ndarray are integers, got '%.100s': NumPy takes "
                    "others, np.asarray(a)[...]",
                    name);
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

/* An element: where it is among the bytes of the array, and whether it is a vector or
 * matrix, not a number. */
typedef struct place {
    size_t at;
    bool whole;
} place;

static size_t bytes_of(const ing_py_array *a, const place *p) {
    const ing_py_spec *s = a->spec;
    size_t n = ing_dtype_bytes((ing_dtype)s->dtype);
    for (unsigned k = 0; p->whole && k < s->elem_rank; k++) n *= s->elem_shape[k];
    return n;
}

/* `items` are n indices; false = raised. */
static bool locate(ing_py_state *st, const ing_py_array *a, PyObject *const *items,
                   Py_ssize_t n, place *out) {
    ing_py_dims d;
    size_t at = 0;
    ing_py_array_dims(a, &d);
    if (n != d.n && n != a->spec->ndim) {
        ing_py_fail(st, ING_PY_EXC_INDEX,
                    "%dd ndarray indexed with %zdd indices: one per axis; "
                    "np.asarray(a) can be read by rows",
                    a->spec->ndim, n);
        return false;
    }
    for (int k = 0; k < n; k++) {
        Py_ssize_t i = 0;
        if (!parse_index(st, items[k], k, d.shape[k], &i)) return false;
        at += (size_t)i * (size_t)d.strides[k];
    }
    *out = (place){at, n != d.n};
    return true;
}

/* Under arch=qd.python, as in the reference, a[0] of a 0-d array is its element. */
static bool is_zero_for_none(const ing_py_state *st, const ing_py_array *a,
                             PyObject *key) {
    return a->spec->ndim == 0 && st->settings.at[ING_SET_python] &&
           PyLong_CheckExact(key) && PyLong_AsLong(key) == 0;
}

static bool find(ing_py_state *st, const ing_py_array *a, PyObject *key, place *out) {
    if (is_zero_for_none(st, a, key)) key = Py_None;
    if (PyTuple_Check(key))
        return locate(st, a, &PyTuple_GET_ITEM(key, 0), PyTuple_GET_SIZE(key), out);
    if (PyList_Check(key)) { /* copied: an index may run code that changes the list */
        PyObject *copy = PyList_AsTuple(key);
        bool ok = copy && find(st, a, copy, out);
        Py_XDECREF(copy);
        return ok;
    }
    return key == Py_None ? locate(st, a, NULL, 0, out) : locate(st, a, &key, 1, out);
}

/* ---- vectors and matrices ------------------------------------------------------------------ */

static ing_gate_tensor element_shape(const ing_py_array *a) {
    return (ing_gate_tensor){a->spec->elem_rank,
                             {a->spec->elem_shape[0], a->spec->elem_shape[1]}};
}

static Py_ssize_t element_count(const ing_gate_tensor *t) {
    return (Py_ssize_t)t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
}

PyObject *ing_py_element_wrap(const ing_gate_tensor *t, PyObject *dtype, PyObject *list,
                              PyObject *owner, PyObject *key) {
    PyObject *v = ing_py_tensor_result(t, dtype, list);
    if (!v) return NULL;
    PyObject *source = PyTuple_Pack(2, owner, key);
    int rc = source ? PyObject_SetAttrString(v, "_source", source) : -1;
    Py_XDECREF(source);
    if (rc < 0) Py_CLEAR(v);
    return v;
}

PyObject *ing_py_element_load(ing_py_state *st, const ing_gate_tensor *t,
                              ing_dtype dtype, const uint8_t *at, PyObject *owner,
                              PyObject *key) {
    Py_ssize_t n = element_count(t);
    PyObject *list = PyList_New(n), *v = NULL;
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *o = ing_py_scalar_load(dtype, at + i * ing_dtype_bytes(dtype));
        if (o)
            PyList_SET_ITEM(list, i, o);
        else
            Py_CLEAR(list);
    }
    if (list) v = ing_py_element_wrap(t, ing_py_dtype_get(st, dtype), list, owner, key);
    Py_XDECREF(list);
    return v;
}

/* Tensors of torch are no sequences for CPython, and are numbers if they have no axes. */
static bool is_one_number(PyObject *value) {
    const PyMappingMethods *m = Py_TYPE(value)->tp_as_mapping;
    if (!PyNumber_Check(value) || PySequence_Check(value)) return false;
    if (!m || !m->mp_length) return true;
    bool many = PyMapping_Size(value) >= 0;
    if (!many) (void)ing_py_took_any();
    return !many;
}

int ing_py_element_list(ing_py_state *st, const ing_gate_tensor *t, PyObject *value,
                        const char *what, PyObject **out) {
    bool one = is_one_number(value);
    Py_ssize_t n = element_count(t);
    *out = NULL;
    if (one) {
        *out = PyList_New(n);
        for (Py_ssize_t i = 0; *out && i < n; i++)
            PyList_SET_ITEM(*out, i, Py_NewRef(value));
        return *out ? 0 : -1;
    }
    ing_status s = ing_py_tensor_flatten(st, value, t, out);
    if (s == ING_DECLINED)
        ing_py_fail(
            st, ING_PY_EXC_RUNTIME_TYPE,
            "an element of this %s is a %s of %zd numbers; this %.100s does not "
            "fit: give as many, or one for all",
            what, t->rank == 1 ? "vector" : "matrix", n, Py_TYPE(value)->tp_name);
    return s == ING_OK ? 0 : -1;
}

int ing_py_element_store(ing_py_state *st, const ing_gate_tensor *t, ing_dtype dtype,
                         uint8_t *at, PyObject *value, const char *what) {
    PyObject *list;
    int rc = ing_py_element_list(st, t, value, what, &list);
    for (Py_ssize_t i = 0; rc == 0 && i < element_count(t); i++) {
        PyObject *item = PyList_GetItem(list, i);
        Py_XINCREF(item);
        rc = item ? ing_py_scalar_store(st, dtype, at + i * ing_dtype_bytes(dtype),
                                        item, what)
                  : -1;
        Py_XDECREF(item);
    }
    Py_XDECREF(list);
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

static PyObject *load(ing_py_state *st, const ing_py_array *a, const place *p,
                      PyObject *key) {
    ing_gate_tensor e = element_shape(a);
    ing_dtype t = (ing_dtype)a->spec->dtype;
    ing_mem_span s;
    if (ing_py_array_open(a, p->at, bytes_of(a, p), ING_MEM_READ, &s) < 0) return NULL;
    PyObject *v = p->whole ? ing_py_element_load(st, &e, t, s.at, (PyObject *)a, key)
                           : ing_py_scalar_load(t, s.at);
    if (ing_py_array_done(&s) < 0) Py_CLEAR(v);
    return v;
}

PyObject *ing_py_array_get(PyObject *self, PyObject *key) {
    const ing_py_array *a = (ing_py_array *)self;
    ing_py_state *st = ing_py_state_of(self);
    place p;
    if (PySlice_Check(key)) return slice_of(self, key);
    PyObject *v = find(st, a, key, &p) ? load(st, a, &p, key) : NULL;
    if (v && p.whole) return v;
    return st->settings.at[ING_SET_python] ? ing_py_python_cell(v, self, key) : v;
}

static int store(ing_py_state *st, ing_py_array *a, const place *p, PyObject *value) {
    ing_gate_tensor e = element_shape(a);
    ing_dtype t = (ing_dtype)a->spec->dtype;
    ing_mem_span s;
    char what[32];
    if (ing_py_array_open(a, p->at, bytes_of(a, p), ING_MEM_BOTH, &s) < 0) return -1;
    PyOS_snprintf(what, sizeof what, "ndarray of %s", ing_dtype_name(t));
    int rc = p->whole ? ing_py_element_store(st, &e, t, s.at, value, "ndarray")
                      : ing_py_scalar_store(st, t, s.at, value, what);
    if (rc < 0) s.use = ING_MEM_READ; /* what is raised already stays */
    if (ing_py_array_done(&s) < 0) rc = -1;
    ing_py_array_touch(st, a); /* a part of a vector may have been stored */
    return rc;
}

static bool has_slice(PyObject *key) {
    bool found = PySlice_Check(key) || key == Py_Ellipsis;
    for (Py_ssize_t i = 0; PyTuple_Check(key) && i < PyTuple_GET_SIZE(key); i++)
        found |= PySlice_Check(PyTuple_GET_ITEM(key, i)) ||
                 PyTuple_GET_ITEM(key, i) == Py_Ellipsis;
    return found;
}

/* a[2:5] = x, as NumPy assigns it. */
static int set_part(PyObject *self, PyObject *key, PyObject *value) {
    PyObject *function = ing_py_import("ingot._interop", "set_part");
    PyObject *none =
        function ? PyObject_CallFunctionObjArgs(function, self, key, value, NULL)
                 : NULL;
    Py_XDECREF(function);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

int ing_py_array_set(PyObject *self, PyObject *key, PyObject *value) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_array *a = (ing_py_array *)self;
    place p;
    if (!value) {
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "elements of an ndarray cannot be deleted");
        return -1;
    }
    if (has_slice(key)) return set_part(self, key, value);
    return find(st, a, key, &p) ? store(st, a, &p, value) : -1;
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
    place p = {.at = (size_t)i * (size_t)d.strides[0]};
    return load(ing_py_state_of(self), a, &p, NULL);
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
