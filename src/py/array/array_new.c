/* Making arrays: shapes and layouts from Python objects, sizes checked before memory is
 * taken, qd.ndarray and unpickling. Called by module functions and the other array files.
 * Whatever a caller passes, the result is a valid array or a clear error. */
#include "py/array/array.h"
#include "py/array/struct.h"
#include "py/array/tensor.h"

#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------- */

/* Bytes in all; false when they do not fit. Of an empty array the other extents must fit
 * as well, as NumPy demands: strides are computed from them. */
static bool size_of(const ing_py_spec *spec, const int64_t *shape, size_t *out) {
    size_t n = ing_dtype_bytes((ing_dtype)spec->dtype);
    bool empty = false;
    for (unsigned k = 0; k < spec->elem_rank; k++)
        if (!ing_mul_size(n, spec->elem_shape[k], &n)) return false;
    for (unsigned k = 0; k < spec->ndim; k++) {
        empty |= shape[k] == 0;
        if (shape[k] && !ing_mul_size(n, (size_t)shape[k], &n)) return false;
    }
    *out = empty ? 0 : n;
    return n <= PTRDIFF_MAX;
}

void ing_py_array_dims(const ing_py_array *a, ing_py_dims *out) {
    const ing_py_spec *s = a->spec;
    size_t stride = out->itemsize = ing_dtype_bytes((ing_dtype)s->dtype);
    out->n = s->ndim + s->elem_rank;
    for (int k = s->elem_rank - 1; k >= 0; k--) {
        out->shape[s->ndim + k] = s->elem_shape[k];
        out->strides[s->ndim + k] = (Py_ssize_t)stride;
        stride *= s->elem_shape[k];
    }
    for (int k = s->ndim - 1; k >= 0; k--) {
        unsigned axis = s->layout[k];
        out->shape[axis] = a->shape[axis];
        out->strides[axis] = (Py_ssize_t)stride;
        if (a->shape[axis]) stride *= (size_t)a->shape[axis];
    }
}

/* ---- making ------------------------------------------------------------------------------ */

static ing_py_array *make(ing_py_state *st, const ing_py_spec *spec,
                          const int64_t *shape, size_t nbytes) {
    ing_py_array *a = PyObject_GC_New(ing_py_array, st->array_type);
    if (!a) return NULL;
    memset((char *)a + sizeof(PyObject), 0, sizeof *a - sizeof(PyObject));
    a->spec = spec;
    a->nbytes = nbytes;
    memcpy(a->shape, shape, spec->ndim * sizeof *shape);
    ing_py_array_touch(st, a);
    return a;
}

static ing_py_array *no_memory(const ing_py_spec *spec, size_t nbytes) {
    PyErr_Format(PyExc_MemoryError, "no memory for an ndarray of %s with %zu bytes",
                 ing_dtype_name((ing_dtype)spec->dtype), nbytes);
    return NULL;
}

static PyObject *make_grad(ing_py_state *st, const ing_py_spec *spec,
                           const int64_t *shape) {
    ing_py_spec plain = *spec;
    plain.grad = 0;
    const ing_py_spec *s = ing_py_spec_intern(st, &plain);
    return s ? (PyObject *)ing_py_array_new(st, s, shape) : NULL;
}

ing_py_array *ing_py_array_new(ing_py_state *st, const ing_py_spec *spec,
                               const int64_t *shape) {
    size_t nbytes;
    if (!size_of(spec, shape, &nbytes)) {
        ing_py_fail(
            st, ING_PY_EXC_RUNTIME,
            "the shape of the ndarray needs more bytes than there are addresses");
        return NULL;
    }
    ing_py_array *a = make(st, spec, shape, nbytes);
    if (!a) return NULL;
    if (ing_mem_new(spec->home, nbytes, &a->mem) != ING_OK) {
        Py_DECREF(a);
        return no_memory(spec, nbytes);
    }
    a->address = a->mem->address;
    if (spec->grad) {
        a->grad = make_grad(st, spec, shape);
        if (!a->grad) {
            Py_DECREF(a);
            return NULL;
        }
    }
    PyObject_GC_Track(a);
    return a;
}

/* The last reference is given up with the GIL held: only arrays hold foreign memory. */
static void drop_base(void *base) {
    Py_DECREF((PyObject *)base);
}

ing_py_array *ing_py_array_wrap(ing_py_state *st, const ing_py_spec *spec,
                                const int64_t *shape, void *data, PyObject *base) {
    size_t nbytes;
    if (!size_of(spec, shape, &nbytes)) {
        ing_py_fail(st, ING_PY_EXC_RUNTIME, "the foreign array is larger than memory");
        return NULL;
    }
    ing_py_array *a = make(st, spec, shape, nbytes);
    if (!a) return NULL;
    if (ing_mem_wrap(data, nbytes, drop_base, base, &a->mem) != ING_OK) {
        Py_DECREF(a);
        return no_memory(spec, sizeof *a->mem);
    }
    a->address = a->mem->address;
    Py_INCREF(base);
    PyObject_GC_Track(a);
    return a;
}

/* ---- shapes -------------------------------------------------------------------------------- */

static int bad_shape(ing_py_state *st, ing_py_exc exc, PyObject *shape,
                     const char *why) {
    ing_py_fail(st, exc, "%.200R is not a valid shape for ndarray: %s", shape, why);
    return -1;
}

static int parse_extent(ing_py_state *st, PyObject *shape, PyObject *item,
                        int64_t *out) {
    int overflow;
    PyObject *number = PyIndex_Check(item) ? PyNumber_Index(item) : NULL;
    if (!number) {
        if (PyErr_Occurred() && !ing_py_took(PyExc_TypeError)) return -1;
        return bad_shape(st, ING_PY_EXC_RUNTIME_TYPE, shape, "extents are integers");
    }
    long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (v == -1 && PyErr_Occurred()) return -1;
    if (overflow < 0 || (!overflow && v < 0))
        return bad_shape(st, ING_PY_EXC_RUNTIME, shape, "an extent is negative");
    if (overflow || v > INT32_MAX)
        return bad_shape(st, ING_PY_EXC_RUNTIME, shape,
                         "an extent is larger than 2147483647");
    *out = v;
    return 0;
}

static int parse_extents(ing_py_state *st, PyObject *shape, ing_py_spec *spec,
                         int64_t *extents) {
    /* Text is a sequence too, of text: refused here instead of at depth. */
    if (!PySequence_Check(shape) || PyUnicode_Check(shape)) {
        spec->ndim = 1;
        return parse_extent(st, shape, shape, extents);
    }
    PyObject *items = PySequence_Tuple(shape);
    if (!items) return -1;
    int rc = 0;
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (n > ING_MAX_NDIM)
        rc = bad_shape(st, ING_PY_EXC_RUNTIME, shape, "at most 12 axes are possible");
    for (Py_ssize_t k = 0; rc == 0 && k < n; k++)
        rc = parse_extent(st, shape, PyTuple_GET_ITEM(items, k), &extents[k]);
    spec->ndim = rc == 0 ? (uint8_t)n : 0;
    Py_DECREF(items);
    return rc;
}

/* A permutation of the axes, outermost in memory first. */
static int parse_layout(ing_py_state *st, PyObject *layout, ing_py_spec *spec) {
    unsigned seen = 0;
    PyObject *items = PySequence_Tuple(layout);
    if (!items) return -1;
    bool ok = PyTuple_GET_SIZE(items) == spec->ndim;
    for (unsigned k = 0; ok && k < spec->ndim; k++) {
        PyObject *item = PyTuple_GET_ITEM(items, k);
        Py_ssize_t axis = PyIndex_Check(item) ? PyNumber_AsSsize_t(item, NULL) : -1;
        ok = axis >= 0 && axis < spec->ndim && !(seen >> axis & 1);
        if (ok) {
            seen |= 1u << axis;
            spec->layout[k] = (uint8_t)axis;
        }
    }
    Py_DECREF(items);
    if (PyErr_Occurred()) return -1;
    if (!ok)
        ing_py_fail(st, ING_PY_EXC_RUNTIME,
                    "layout %.200R is not a permutation of the %d axes of the shape",
                    layout, (int)spec->ndim);
    return ok ? 0 : -1;
}

int ing_py_shape_parse(ing_py_state *st, PyObject *shape, PyObject *layout,
                       ing_py_spec *spec, int64_t *extents) {
    if (parse_extents(st, shape, spec, extents) < 0) return -1;
    for (unsigned k = 0; k < spec->ndim; k++) spec->layout[k] = (uint8_t)k;
    return layout == Py_None ? 0 : parse_layout(st, layout, spec);
}

PyObject *ing_py_array_element_type(ing_py_state *st, const ing_py_array *a) {
    const ing_py_spec *s = a->spec;
    PyObject *dtype = ing_py_dtype_get(st, (ing_dtype)s->dtype);
    if (s->elem_rank == 0) return Py_XNewRef(dtype);
    ing_gate_tensor t = {s->elem_rank, {s->elem_shape[0], s->elem_shape[1]}};
    return ing_py_tensor_type_of(&t, dtype);
}

PyObject *ing_py_shape_tuple(const ing_py_array *a) {
    PyObject *shape = PyTuple_New(a->spec->ndim);
    for (unsigned k = 0; shape && k < a->spec->ndim; k++) {
        PyObject *extent = PyLong_FromLongLong(a->shape[k]);
        if (!extent)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, k, extent);
    }
    return shape;
}

PyObject *ing_py_layout_tuple(const ing_py_array *a) {
    bool row_major = true;
    for (unsigned k = 0; k < a->spec->ndim; k++) row_major &= a->spec->layout[k] == k;
    if (row_major) Py_RETURN_NONE;
    PyObject *layout = PyTuple_New(a->spec->ndim);
    for (unsigned k = 0; layout && k < a->spec->ndim; k++) {
        PyObject *axis = PyLong_FromLong(a->spec->layout[k]);
        if (!axis)
            Py_CLEAR(layout);
        else
            PyTuple_SET_ITEM(layout, k, axis);
    }
    return layout;
}

/* The extents in memory stay, their axes get other numbers: shape[layout[k]] is the k-th
 * extent in memory. Readers of `shape` that live across a call hold an export. */
static int relabel(ing_py_state *st, ing_py_array *a, const ing_py_spec *wanted) {
    int64_t shape[ING_MAX_NDIM] = {0};
    ing_py_spec spec = *a->spec;
    memcpy(spec.layout, wanted->layout, sizeof spec.layout);
    const ing_py_spec *interned = ing_py_spec_intern(st, &spec);
    if (!interned) return -1;
    for (unsigned k = 0; k < spec.ndim; k++)
        shape[spec.layout[k]] = a->shape[a->spec->layout[k]];
    memcpy(a->shape, shape, sizeof a->shape);
    a->spec = interned;
    ing_py_array_touch(st, a);
    return a->grad ? relabel(st, (ing_py_array *)a->grad, wanted) : 0;
}

PyObject *ing_py_array_relabel(PyObject *self, PyObject *layout) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_array *a = (ing_py_array *)self;
    ing_py_spec spec = {.ndim = a->spec->ndim};
    bool shared = a->exports || (a->grad && ((ing_py_array *)a->grad)->exports);
    if (shared)
        return PyErr_Format(PyExc_BufferError, "the memory of the ndarray is shared");
    if (parse_layout(st, layout, &spec) < 0 || relabel(st, a, &spec) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- from Python ------------------------------------------------------------------------------ */

/* Of structs: ingot/_ndarrays.py makes an ndarray for each member. */
static PyObject *make_structs(PyObject *type, PyObject *shape, PyObject *layout,
                              int needs_grad) {
    PyObject *make = ing_py_import("ingot._ndarrays", "struct_ndarray");
    PyObject *grad = needs_grad ? Py_True : Py_False;
    PyObject *out =
        make ? PyObject_CallFunctionObjArgs(make, type, shape, grad, layout, NULL)
             : NULL;
    Py_XDECREF(make);
    return out;
}

static PyObject *make_from(ing_py_state *st, PyObject *dtype, PyObject *shape,
                           PyObject *layout, int needs_grad) {
    int64_t extents[ING_MAX_NDIM] = {0};
    ing_py_spec spec = {.grad = needs_grad != 0};
    if (ing_py_is_struct_type(st, dtype))
        return make_structs(dtype, shape, layout, needs_grad);
    if (ing_py_is_tensor_type(st, dtype)) {
        const ing_py_tensor_type *t = (ing_py_tensor_type *)dtype;
        spec.dtype = t->id;
        spec.elem_rank = t->shape.rank;
        memcpy(spec.elem_shape, t->shape.shape, sizeof spec.elem_shape);
        if (!spec.elem_shape[0] || (spec.elem_rank == 2 && !spec.elem_shape[1]))
            return ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                               "%.200R has no size: elements need one", dtype);
    } else {
        spec.dtype = (uint8_t)ing_py_dtype_from(st, dtype);
    }
    if (spec.dtype == ING_VOID)
        return ing_py_fail(
            st, ING_PY_EXC_RUNTIME_TYPE,
            "%.200R is not supported as ndarray element type: pass a dtype such as "
            "qd.f32, or int, float or bool%s",
            dtype,
            PyLong_Check(dtype) || PyTuple_Check(dtype)
                ? "; it comes first: qd.ndarray(qd.f32, 10)"
                : "");
    if (spec.grad && !ing_dtype_is_float((ing_dtype)spec.dtype))
        return ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE,
                           "%s is not supported for ndarray with `needs_grad=True`: "
                           "gradients are floats",
                           ing_dtype_name((ing_dtype)spec.dtype));
    if (ing_py_shape_parse(st, shape, layout, &spec, extents) < 0) return NULL;
    const ing_py_spec *interned = ing_py_spec_intern(st, &spec);
    return interned ? (PyObject *)ing_py_array_new(st, interned, extents) : NULL;
}

/* A keyword that there is not is told with the one that was probably meant. */
static PyObject *refuse_keywords(PyObject *kwargs) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *ask = ing_py_import("ingot._absent", "no_option");
    PyObject *done =
        ask ? PyObject_CallFunction(ask, "sO(ssss)", "qd.ndarray", kwargs, "dtype",
                                    "shape", "needs_grad", "layout")
            : NULL;
    Py_XDECREF(ask);
    if (done == Py_None) { /* all of them are known: something else is wrong */
        Py_DECREF(done);
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    if (done) PyErr_SetObject((PyObject *)Py_TYPE(done), done);
    Py_XDECREF(done);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return NULL;
}

/* qd.ndarray([1, 2]): what is given for the type tells what was meant. */
static PyObject *refuse_count(PyObject *args) {
    if (PyTuple_GET_SIZE(args) != 1 || !ing_py_took(PyExc_TypeError)) return NULL;
    PyObject *only = PyTuple_GET_ITEM(args, 0);
    bool values = PySequence_Check(only) && !PyType_Check(only);
    PyErr_SetString(PyExc_TypeError,
                    values
                        ? "qd.ndarray takes dtype and shape; an array with these "
                          "values is qd.from_numpy(np.array(x))"
                        : "qd.ndarray takes dtype and shape: qd.ndarray(qd.f32, 10), "
                          "qd.ndarray(qd.f32, (3, 4))");
    return NULL;
}

PyObject *ing_py_ndarray(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const names[] = {"dtype", "shape", "needs_grad", "layout", NULL};
    PyObject *dtype, *shape, *layout = Py_None;
    int needs_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|pO:ndarray", (char **)names,
                                     &dtype, &shape, &needs_grad, &layout))
        return kwargs ? refuse_keywords(kwargs) : refuse_count(args);
    return make_from(ing_py_state_in(module), dtype, shape, layout, needs_grad);
}

static int load_bytes(ing_py_array *a, const void *from) {
    ing_mem_span s;
    if (ing_py_array_open(a, 0, a->nbytes, ING_MEM_WRITE, &s) < 0) return -1;
    memcpy(s.at, from, a->nbytes);
    return ing_py_array_done(&s);
}

PyObject *ing_py_array_restore(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *dtype, *shape, *layout;
    int needs_grad;
    Py_buffer bytes;
    if (!PyArg_ParseTuple(args, "OOOpy*:_restore_array", &dtype, &shape, &layout,
                          &needs_grad, &bytes))
        return NULL;
    ing_py_array *a = (ing_py_array *)make_from(st, dtype, shape, layout, needs_grad);
    if (a && (size_t)bytes.len != a->nbytes) {
        PyErr_Format(PyExc_ValueError,
                     "a pickled ndarray of %zu bytes came with %zd bytes", a->nbytes,
                     bytes.len);
        Py_CLEAR(a);
    }
    if (a && load_bytes(a, bytes.buf) < 0) Py_CLEAR(a);
    PyBuffer_Release(&bytes);
    return (PyObject *)a;
}
