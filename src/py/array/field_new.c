/* Making fields: shapes, offsets and levels from Python objects, checked before memory is
 * taken. Called by module functions and methods of the field types (field.c). Whatever a
 * caller passes, the result is a valid field or a clear error. */
#include "py/array/field.h"
#include "py/array/tensor.h"

#include <string.h>

/* ---- an object ----------------------------------------------------------------------- */

static bool parse_element(ing_py_state *st, PyObject *type, ing_py_layout *out) {
    if (ing_py_is_tensor_type(st, type)) {
        const ing_py_tensor_type *t = (ing_py_tensor_type *)type;
        out->dtype = t->id;
        out->elem_rank = t->shape.rank;
        memcpy(out->elem_shape, t->shape.shape, sizeof out->elem_shape);
        if (t->shape.rank == 1) out->elem_shape[1] = 0;
        if (!out->elem_shape[0] || (out->elem_rank == 2 && !out->elem_shape[1])) {
            ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                        "%.200R has no size: elements need one", type);
            return false;
        }
    } else {
        out->dtype = (uint8_t)ing_py_dtype_from(st, type);
    }
    if (out->dtype != ING_VOID) return true;
    ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                "%.200R is not supported as the element type of a field: pass a dtype "
                "such as qd.f32, or int, float or bool%s",
                type,
                PyLong_Check(type) || PyTuple_Check(type)
                    ? "; it comes first: qd.field(qd.f32, 10)"
                    : "");
    return false;
}

static ing_py_field *make(ing_py_state *st, const ing_py_layout *element,
                          PyObject *name, int companion) {
    if (name != Py_None && !PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "the name of a field is text, not '%.100s'",
                     Py_TYPE(name)->tp_name);
        return NULL;
    }
    PyTypeObject *type = element->elem_rank ? st->matrix_field : st->scalar_field;
    ing_py_field *f = PyObject_GC_New(ing_py_field, type);
    if (!f) return NULL;
    memset((char *)f + sizeof(PyObject), 0, sizeof *f - sizeof(PyObject));
    f->dtype = element->dtype;
    f->elem_rank = element->elem_rank;
    memcpy(f->elem_shape, element->elem_shape, sizeof f->elem_shape);
    if (name != Py_None && PyUnicode_GET_LENGTH(name)) f->name = Py_NewRef(name);
    f->companion = companion != 0;
    f->born = f->generation = ++st->generations;
    PyObject_GC_Track(f);
    return f;
}

PyObject *ing_py_field_new(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *type, *name = Py_None;
    ing_py_layout element = {0};
    int companion = 0;
    if (!PyArg_ParseTuple(args, "O|Op:_new_field", &type, &name, &companion))
        return NULL;
    if (!parse_element(st, type, &element)) return NULL;
    st->unsettled |= !companion;
    st->fresh = st->on_fields != NULL;
    return (PyObject *)make(st, &element, name, companion);
}

/* ---- numbers from Python --------------------------------------------------------------- */

static int bad(ing_py_state *st, ing_py_exc exc, const char *what, PyObject *value,
               const char *why) {
    ing_py_fail(st, exc, "%.200R is not a valid %s of a field: %s", value, what, why);
    return -1;
}

static int parse_int(ing_py_state *st, const char *what, PyObject *all, PyObject *item,
                     int64_t *out) {
    int overflow;
    PyObject *number = PyIndex_Check(item) ? PyNumber_Index(item) : NULL;
    if (!number) {
        if (PyErr_Occurred() && !ing_py_took(PyExc_TypeError)) return -1;
        return bad(st, ING_PY_EXC_RUNTIME_TYPE, what, all, "it consists of integers");
    }
    long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (v == -1 && PyErr_Occurred()) return -1;
    *out = overflow ? (overflow < 0 ? INT64_MIN : INT64_MAX) : v;
    return 0;
}

/* One integer, or a sequence of them; how many, or -1 = raised. */
static int parse_ints(ing_py_state *st, const char *what, PyObject *value,
                      int64_t *out) {
    if (!PySequence_Check(value) || PyUnicode_Check(value))
        return parse_int(st, what, value, value, out) < 0 ? -1 : 1;
    PyObject *items = PySequence_Tuple(value);
    if (!items) return -1;
    int rc = 0;
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (n > ING_MAX_NDIM)
        rc = bad(st, ING_PY_EXC_RUNTIME, what, value, "at most 12 axes are possible");
    for (Py_ssize_t k = 0; rc == 0 && k < n; k++)
        rc = parse_int(st, what, value, PyTuple_GET_ITEM(items, k), &out[k]);
    Py_DECREF(items);
    return rc < 0 ? -1 : (int)n;
}

static int parse_shape(ing_py_state *st, PyObject *value, int64_t *out) {
    int n = parse_ints(st, "shape", value, out);
    for (int k = 0; k < n; k++) {
        if (out[k] <= 0)
            return bad(st, ING_PY_EXC_RUNTIME, "shape", value,
                       st->settings.at[ING_SET_reference]
                           ? "Every dimension of a Quadrants field should be positive"
                           : "every dimension of a field should be positive");
        if (out[k] > INT32_MAX)
            return bad(st, ING_PY_EXC_RUNTIME, "shape", value,
                       "an extent is larger than 2147483647");
    }
    return n;
}

/* Zeros for None. */
static int parse_offset(ing_py_state *st, PyObject *value, int ndim, int64_t *out) {
    for (int k = 0; k < ndim; k++) out[k] = 0;
    if (value == Py_None) return 0;
    int n = parse_ints(st, "offset", value, out);
    if (n < 0) return -1;
    if (n != ndim)
        return bad(st, ING_PY_EXC_RUNTIME, "offset", value,
                   "it needs one number per axis");
    for (int k = 0; k < n; k++)
        if (out[k] < INT32_MIN || out[k] > INT32_MAX)
            return bad(st, ING_PY_EXC_RUNTIME, "offset", value,
                       "it does not fit into 32 bits");
    return 0;
}

/* A permutation of the axes, outermost in memory first. */
static int parse_order(ing_py_state *st, PyObject *value, int ndim, int64_t *out) {
    unsigned seen = 0;
    for (int k = 0; k < ndim; k++) out[k] = k;
    if (value == Py_None) return 0;
    int n = parse_ints(st, "order", value, out);
    if (n < 0) return -1;
    bool ok = n == ndim;
    for (int k = 0; ok && k < n; k++) {
        ok = out[k] >= 0 && out[k] < ndim && !(seen >> out[k] & 1);
        if (ok) seen |= 1u << out[k];
    }
    return ok ? 0
              : bad(st, ING_PY_EXC_RUNTIME, "order", value,
                    "it is not a permutation of the axes of the shape");
}

/* ---- a layout ---------------------------------------------------------------------------- */

/* Levels of one step say nothing, and neighbours that one stride covers are one. */
static void simplify(ing_py_layout *l, ing_py_level *levels) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < l->n_levels; k++) {
        ing_py_level v = levels[k];
        if (v.extent == 1) continue;
        ing_py_level *last = n ? &levels[n - 1] : NULL;
        if (last && last->axis == v.axis && last->stride / v.extent == v.stride &&
            last->stride % v.extent == 0)
            *last = (ing_py_level){last->extent * v.extent, v.stride, v.axis};
        else
            levels[n++] = v;
    }
    l->levels = levels;
    l->n_levels = n;
}

/* Whether all elements lie in the block, and the levels make up the shape. */
static bool is_sound(const ing_py_layout *l, size_t bytes) {
    int64_t extents[ING_MAX_NDIM], last = l->place;
    for (unsigned k = 0; k < l->ndim; k++) extents[k] = 1;
    if (l->place < 0 || bytes > PTRDIFF_MAX) return false;
    for (uint32_t k = 0; k < l->n_levels; k++) {
        const ing_py_level *v = &l->levels[k];
        int64_t far;
        if (v->axis >= l->ndim || v->extent < 1 || v->stride < 1) return false;
        if (__builtin_mul_overflow(extents[v->axis], v->extent, &extents[v->axis]) ||
            __builtin_mul_overflow(v->extent - 1, v->stride, &far) ||
            __builtin_add_overflow(last, far, &last))
            return false;
    }
    for (unsigned k = 0; k < l->ndim; k++)
        if (extents[k] != l->shape[k]) return false;
    size_t element = ing_py_layout_element(l);
    return element <= bytes && (size_t)last <= bytes - element;
}

static int attach(ing_py_state *st, ing_py_field *f, const ing_py_layout *l,
                  ing_py_block *block) {
    const ing_py_layout *interned = ing_py_layout_intern(st, l);
    if (!interned) return -1;
    f->layout = interned;
    f->block = (ing_py_block *)Py_NewRef((PyObject *)block);
    return 0;
}

/* ---- a field in a block of its own --------------------------------------------------------- */

/* The levels of a row-major array with its axes in this order; false: too large. */
static bool dense_levels(ing_py_layout *l, const int64_t *order, ing_py_level *levels,
                         size_t *bytes) {
    size_t stride = ing_dtype_bytes((ing_dtype)l->dtype);
    for (unsigned k = 0; k < l->elem_rank; k++)
        if (!ing_mul_size(stride, l->elem_shape[k], &stride)) return false;
    for (int k = l->ndim - 1; k >= 0; k--) {
        int64_t extent = l->shape[order[k]];
        if (stride > PTRDIFF_MAX) return false;
        levels[k] = (ing_py_level){extent, (int64_t)stride, (uint32_t)order[k]};
        if (!ing_mul_size(stride, (size_t)extent, &stride)) return false;
    }
    l->n_levels = l->ndim;
    simplify(l, levels);
    *bytes = stride;
    return stride <= PTRDIFF_MAX;
}

PyObject *ing_py_field_dense(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *type, *shape, *order = Py_None, *offset = Py_None, *name = Py_None;
    int64_t extents[ING_MAX_NDIM], offsets[ING_MAX_NDIM], axes[ING_MAX_NDIM];
    ing_py_level levels[ING_MAX_NDIM];
    ing_py_layout l = {.shape = extents, .offset = offsets};
    size_t bytes;
    int companion = 0;
    if (!PyArg_ParseTuple(args, "OO|OOOp:_dense_field", &type, &shape, &order, &offset,
                          &name, &companion))
        return NULL;
    if (!parse_element(st, type, &l)) return NULL;
    int n = parse_shape(st, shape, extents);
    if (n < 0 || parse_offset(st, offset, n, offsets) < 0 ||
        parse_order(st, order, n, axes) < 0)
        return NULL;
    l.ndim = (uint8_t)n;
    if (!dense_levels(&l, axes, levels, &bytes))
        return ing_py_fail(
            st, ING_PY_EXC_RUNTIME,
            "%.200R is not a valid shape of a field: it needs more bytes "
            "than there are addresses",
            shape);
    ing_py_field *f = make(st, &l, name, companion);
    ing_py_block *block = f ? ing_py_block_new(st, bytes) : NULL;
    if (!block || attach(st, f, &l, block) < 0) Py_CLEAR(f);
    Py_XDECREF((PyObject *)block);
    st->fresh = st->on_fields != NULL;
    return (PyObject *)f;
}

/* ---- a field in a tree --------------------------------------------------------------------- */

static bool parse_level(PyObject *item, ing_py_level *out) {
    long long extent, stride;
    unsigned int axis;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "levels are tuples");
        return false;
    }
    if (!PyArg_ParseTuple(item, "ILL", &axis, &extent, &stride)) return false;
    *out = (ing_py_level){extent, stride, axis};
    return true;
}

static int place(ing_py_state *st, ing_py_field *f, ing_py_layout *l,
                 ing_py_block *block, PyObject *items) {
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    ing_py_level *levels = ing_calloc((size_t)n + 1, sizeof *levels);
    int rc = levels ? 0 : -1;
    if (!levels) PyErr_NoMemory();
    for (Py_ssize_t k = 0; rc == 0 && k < n; k++)
        if (!parse_level(PyTuple_GET_ITEM(items, k), &levels[k])) rc = -1;
    if (rc == 0) {
        l->n_levels = (uint32_t)n;
        l->levels = levels;
        if (!block->mem || !is_sound(l, block->mem->bytes)) {
            PyErr_SetString(PyExc_ValueError, "the field does not fit into its block");
            rc = -1;
        }
    }
    if (rc == 0) {
        simplify(l, levels);
        rc = attach(st, f, l, block);
    }
    ing_free(levels);
    return rc;
}

PyObject *ing_py_field_place(PyObject *self, PyObject *args) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_field *f = (ing_py_field *)self;
    PyObject *block, *shape, *offset, *levels;
    int64_t extents[ING_MAX_NDIM], offsets[ING_MAX_NDIM];
    long long at;
    if (!PyArg_ParseTuple(args, "O!LOOO!:_place", st->block_type, &block, &at, &shape,
                          &offset, &PyTuple_Type, &levels))
        return NULL;
    if (f->layout || f->parts)
        return ing_py_fail(st, ING_PY_EXC_RUNTIME, "the field is placed already");
    ing_py_layout l = {.dtype = f->dtype,
                       .elem_rank = f->elem_rank,
                       .elem_shape = {f->elem_shape[0], f->elem_shape[1]},
                       .place = at,
                       .shape = extents,
                       .offset = offsets};
    int n = parse_shape(st, shape, extents);
    if (n < 0 || parse_offset(st, offset, n, offsets) < 0) return NULL;
    l.ndim = (uint8_t)n;
    if (place(st, f, &l, (ing_py_block *)block, levels) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- parts ----------------------------------------------------------------------------------- */

PyObject *ing_py_field_part(PyObject *self, PyObject *k) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_field *f = (ing_py_field *)self;
    Py_ssize_t i = PyNumber_AsSsize_t(k, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (!f->layout) {
        PyErr_SetString(PyExc_ValueError, "the field has no layout");
        return NULL;
    }
    ing_py_layout l = *f->layout, element = {.dtype = f->dtype};
    size_t size = ing_dtype_bytes((ing_dtype)l.dtype);
    if (i < 0 || (size_t)i >= ing_py_layout_element(&l) / size) {
        PyErr_SetString(PyExc_IndexError, "an element has no such scalar");
        return NULL;
    }
    l.elem_rank = 0;
    l.elem_shape[0] = l.elem_shape[1] = 0;
    l.place += i * (Py_ssize_t)size;
    ing_py_field *part = make(st, &element, f->name ? f->name : Py_None, f->companion);
    if (part && attach(st, part, &l, f->block) < 0) Py_CLEAR(part);
    if (part) part->whole = Py_NewRef(self);
    return (PyObject *)part;
}
