/* Elements of a field from Python: f[i, j], f[None] of a 0-d field. Slots of the field types.
 * Every access is checked against the bounds; an index counts from the field's offset on, so
 * a negative one has no other meaning. */
#include "py/array/array.h"
#include "py/array/field.h"
#include "py/array/tensor.h"

static bool fail_index(ing_py_state *st, PyObject *item) {
    ing_py_fail(
        st, ING_PY_EXC_RUNTIME_TYPE,
        "Detected illegal element of type: %.100s. Please be aware that slicing a "
        "qd.field is not supported so far. Indices are integers; to_numpy() can be "
        "sliced",
        Py_TYPE(item)->tp_name);
    return false;
}

static bool parse_index(ing_py_state *st, PyObject *item, Py_ssize_t *out) {
    if (!PyIndex_Check(item)) return fail_index(st, item);
    *out = PyNumber_AsSsize_t(item, NULL); /* clips: out of bounds either way */
    if (*out != -1 || !PyErr_Occurred()) return true;
    return ing_py_took(PyExc_TypeError) && fail_index(st, item);
}

static bool fail_bounds(ing_py_state *st, const ing_py_field *f, Py_ssize_t i, int axis,
                        int64_t first, int64_t extent) {
    ing_py_fail(st, ING_PY_EXC_INDEX,
                "index %zd is out of bounds for axis %d of the field%s%V: it has the "
                "indices %lld to %lld",
                i, axis, f->name ? " " : "", f->name, "", (long long)first,
                (long long)(first + extent - 1));
    return false;
}

/* Bytes from the place of the field to an element. */
static int64_t step_to(const ing_py_layout *l, int64_t *index) {
    int64_t at = 0;
    for (uint32_t k = l->n_levels; k-- > 0;) {
        const ing_py_level *v = &l->levels[k];
        at += index[v->axis] % v->extent * v->stride;
        index[v->axis] /= v->extent;
    }
    return at;
}

/* Bytes from the place of the field to the element, or the scalar in it, that n indices
 * name; -1 = raised. *whole: it is a vector or matrix, not a number. */
static int64_t locate(ing_py_state *st, const ing_py_field *f, PyObject *const *items,
                      Py_ssize_t n, bool *whole) {
    const ing_py_layout *l = f->layout;
    int64_t index[ING_MAX_NDIM], scalar = 0;
    if (n != l->ndim && n != l->ndim + l->elem_rank) {
        ing_py_fail(st, ING_PY_EXC_INDEX,
                    "%dd field indexed with %zdd indices: one per axis. Slicing is not "
                    "supported on qd.field",
                    l->ndim, n);
        return -1;
    }
    *whole = n == l->ndim && l->elem_rank;
    for (int k = 0; k < n; k++) {
        bool own = k < l->ndim;
        int64_t first = own ? l->offset[k] : 0;
        int64_t extent = own ? l->shape[k] : l->elem_shape[k - l->ndim];
        Py_ssize_t i = 0;
        if (!parse_index(st, items[k], &i)) return -1;
        if (i < first || i - first >= extent)
            return fail_bounds(st, f, i, k, first, extent), -1;
        if (own)
            index[k] = i - first;
        else
            scalar = scalar * extent + i;
    }
    return step_to(l, index) + scalar * (int64_t)ing_dtype_bytes((ing_dtype)l->dtype);
}

/* Under arch=qd.python, as in the reference, f[0] of a 0-d field is its element. */
static bool is_zero_for_none(const ing_py_state *st, const ing_py_field *f,
                             PyObject *key) {
    return f->layout->ndim == 0 && st->settings.at[ING_SET_python] &&
           PyLong_CheckExact(key) && PyLong_AsLong(key) == 0;
}

/* The same for any key; -1 = raised. */
static int64_t find(ing_py_state *st, const ing_py_field *f, PyObject *key,
                    bool *whole) {
    PyObject *copy = NULL;
    int64_t at;
    if (is_zero_for_none(st, f, key)) key = Py_None;
    if (PyList_Check(key)) { /* copied: an index may run code that changes the list */
        key = copy = PyList_AsTuple(key);
        if (!copy) return -1;
    }
    if (PyTuple_Check(key))
        at = locate(st, f, &PyTuple_GET_ITEM(key, 0), PyTuple_GET_SIZE(key), whole);
    else if (key == Py_None)
        at = locate(st, f, NULL, 0, whole);
    else
        at = locate(st, f, &key, 1, whole);
    Py_XDECREF(copy);
    return at;
}

/* An element, or a scalar in it, open for the host. */
typedef struct opened {
    ing_mem *mem; /* held: conversions may run code that destroys the field */
    ing_mem_span s;
    bool whole;
} opened;

static int open_at(ing_py_state *st, const ing_py_field *f, PyObject *key,
                   ing_mem_use use, opened *o) {
    int64_t at = find(st, f, key, &o->whole);
    if (at < 0) return -1;
    if (!f->block->mem) return ing_py_field_gone(st, f); /* an index did that */
    size_t bytes = o->whole ? ing_py_layout_element(f->layout)
                            : ing_dtype_bytes((ing_dtype)f->dtype);
    o->mem = ing_mem_ref(f->block->mem);
    ing_status s =
        ing_mem_host(o->mem, (size_t)(f->layout->place + at), bytes, use, &o->s);
    if (s == ING_OK) return 0;
    ing_mem_unref(o->mem);
    return ing_py_mem_fail(s);
}

static int done(opened *o) {
    ing_status s = ing_mem_done(&o->s);
    ing_mem_unref(o->mem);
    return s == ING_OK ? 0 : ing_py_mem_fail(s);
}

static ing_gate_tensor element_shape(const ing_py_field *f) {
    return (ing_gate_tensor){f->elem_rank, {f->elem_shape[0], f->elem_shape[1]}};
}

/* ---- parts: each scalar of an element is in a field of its own ------------------------------ */

/* The part that further indices name, and the indices before them; 1, 0 = the key names a
 * whole element, -1 = raised. */
static int find_part(ing_py_state *st, const ing_py_field *f, PyObject *key,
                     PyObject **part, PyObject **rest) {
    const ing_py_field *first = (ing_py_field *)PyTuple_GET_ITEM(f->parts, 0);
    int ndim = first->layout->ndim;
    if (!PyTuple_Check(key) || PyTuple_GET_SIZE(key) != ndim + f->elem_rank) return 0;
    int64_t at = 0;
    for (int k = 0; k < f->elem_rank; k++) {
        Py_ssize_t i = 0, extent = f->elem_shape[k];
        if (!parse_index(st, PyTuple_GET_ITEM(key, ndim + k), &i)) return -1;
        if (i < 0 || i >= extent) return fail_bounds(st, f, i, ndim + k, 0, extent), -1;
        at = at * extent + i;
    }
    *part = PyTuple_GET_ITEM(f->parts, at);
    *rest = PyTuple_GetSlice(key, 0, ndim);
    return *rest ? 1 : -1;
}

static PyObject *get_parts(ing_py_state *st, ing_py_field *f, PyObject *key) {
    PyObject *part = NULL, *rest = NULL, *v = NULL;
    int rc = find_part(st, f, key, &part, &rest);
    if (rc > 0) v = ing_py_field_item(part, rest);
    Py_XDECREF(rest);
    if (rc) return v;
    Py_ssize_t n = PyTuple_GET_SIZE(f->parts);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *o = ing_py_field_item(PyTuple_GET_ITEM(f->parts, i), key);
        if (o)
            PyList_SET_ITEM(list, i, o);
        else
            Py_CLEAR(list);
    }
    ing_gate_tensor t = element_shape(f);
    PyObject *dtype = ing_py_dtype_get(st, (ing_dtype)f->dtype);
    if (list) v = ing_py_element_wrap(&t, dtype, list, (PyObject *)f, key);
    Py_XDECREF(list);
    return v;
}

static int set_parts(ing_py_state *st, ing_py_field *f, PyObject *key,
                     PyObject *value) {
    PyObject *part = NULL, *rest = NULL, *list = NULL;
    int rc = find_part(st, f, key, &part, &rest);
    if (rc > 0) rc = ing_py_field_assign(part, rest, value) < 0 ? -1 : 1;
    Py_XDECREF(rest);
    if (rc) return rc < 0 ? -1 : 0;
    ing_gate_tensor t = element_shape(f);
    rc = ing_py_element_list(st, &t, value, "field", &list);
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(f->parts); i++) {
        PyObject *item = PyList_GetItem(list, i);
        Py_XINCREF(item);
        rc = item ? ing_py_field_assign(PyTuple_GET_ITEM(f->parts, i), key, item) : -1;
        Py_XDECREF(item);
    }
    Py_XDECREF(list);
    return rc;
}

/* ---- slots ------------------------------------------------------------------------------------ */

PyObject *ing_py_field_item(PyObject *self, PyObject *key) {
    ing_py_field *f = (ing_py_field *)self;
    ing_py_state *st = ing_py_state_of(self);
    ing_gate_tensor t = element_shape(f);
    opened o = {0};
    if (ing_py_field_ready(st, f) < 0) return NULL;
    if (f->parts) return get_parts(st, f, key);
    if (open_at(st, f, key, ING_MEM_READ, &o) < 0) return NULL;
    PyObject *v =
        o.whole ? ing_py_element_load(st, &t, (ing_dtype)f->dtype, o.s.at, self, key)
                : ing_py_scalar_load((ing_dtype)f->dtype, o.s.at);
    if (done(&o) < 0) Py_CLEAR(v);
    if (o.whole || !st->settings.at[ING_SET_python]) return v;
    return ing_py_python_cell(v, self, key);
}

static int store(ing_py_state *st, ing_py_field *f, PyObject *key, PyObject *value) {
    ing_gate_tensor t = element_shape(f);
    ing_dtype dtype = (ing_dtype)f->dtype;
    opened o = {0};
    if (open_at(st, f, key, ING_MEM_BOTH, &o) < 0) return -1;
    int rc = o.whole ? ing_py_element_store(st, &t, dtype, o.s.at, value, "field")
                     : ing_py_scalar_store(st, dtype, o.s.at, value, "field");
    if (rc < 0) o.s.use = ING_MEM_READ; /* what is raised already stays */
    if (done(&o) < 0) rc = -1;
    ing_py_field_touch(st, f); /* a part of a vector may have been stored */
    return rc;
}

int ing_py_field_assign(PyObject *self, PyObject *key, PyObject *value) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_field *f = (ing_py_field *)self;
    if (!value) {
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                    "elements of a field cannot be deleted");
        return -1;
    }
    if (ing_py_field_ready(st, f) < 0) return -1;
    if (f->parts) return set_parts(st, f, key, value);
    return store(st, f, key, value);
}
