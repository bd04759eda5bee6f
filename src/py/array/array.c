/* The array type: attributes, the tables of its methods and slots, its life and death.
 * Arrays are made in array_new.c. The type cannot be subclassed, so that `type is` decides
 * in the launch and the state is found without a search. */
#include "py/array/array.h"
#include "py/array/refuse.h"

#include <stddef.h>
#include <structmember.h>

static ing_py_array *as_array(PyObject *o) {
    return (ing_py_array *)o;
}

/* ---- life -------------------------------------------------------------------------------- */

static int array_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_array(self)->dict);
    Py_VISIT(as_array(self)->grad);
    return 0;
}

/* Only attributes can close a cycle. The gradient stays: an array whose spec promises one
 * must have it even while a finalizer uses it. */
static int array_clear(PyObject *self) {
    Py_CLEAR(as_array(self)->dict);
    return 0;
}

static void array_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ing_py_array *a = as_array(self);
    PyObject_GC_UnTrack(self);
    if (a->weakrefs) PyObject_ClearWeakRefs(self);
    Py_CLEAR(a->dict);
    Py_CLEAR(a->grad);
    ing_mem_unref(a->mem);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- host access --------------------------------------------------------------------------- */

int ing_py_mem_fail(ing_status s) {
    if (s == ING_MEMORY)
        PyErr_SetString(PyExc_MemoryError,
                        "no memory for a copy of what is in device memory");
    else
        PyErr_SetString(PyExc_OSError, "device memory could not be accessed");
    return -1;
}

int ing_py_array_open(const ing_py_array *a, size_t at, size_t bytes, ing_mem_use use,
                      ing_mem_span *s) {
    ing_status status = ing_mem_host(a->mem, a->offset + at, bytes, use, s);
    return status == ING_OK ? 0 : ing_py_mem_fail(status);
}

int ing_py_array_done(ing_mem_span *s) {
    ing_status status = ing_mem_done(s);
    return status == ING_OK ? 0 : ing_py_mem_fail(status);
}

/* ---- attributes ---------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    return ing_py_shape_tuple(as_array(self));
}

static PyObject *get_layout(PyObject *self, void *unused) {
    (void)unused;
    return ing_py_layout_tuple(as_array(self));
}

static PyObject *get_dtype(PyObject *self, void *unused) {
    (void)unused;
    return Py_XNewRef(ing_py_dtype_get(ing_py_state_of(self),
                                       (ing_dtype)as_array(self)->spec->dtype));
}

static PyObject *get_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(as_array(self)->spec->ndim);
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(as_array(self)->nbytes);
}

static PyObject *get_element_type(PyObject *self, void *unused) {
    (void)unused;
    return ing_py_array_element_type(ing_py_state_of(self), as_array(self));
}

/* How many elements there are; a product of extents that were checked when it was made. */
static PyObject *get_size(const ing_py_array *a) {
    Py_ssize_t n = 1;
    for (unsigned k = 0; k < a->spec->ndim; k++) n *= (Py_ssize_t)a->shape[k];
    return PyLong_FromSsize_t(n);
}

/* `size`, and `n` and `m`: rows and columns of an element where that is a vector or matrix.
 * They are no descriptors: programs keep attributes of their own under such short names. */
static PyObject *array_getattr(PyObject *self, PyObject *name) {
    PyObject *v = PyObject_GenericGetAttr(self, name);
    const ing_py_spec *s = as_array(self)->spec;
    if (v) return v;
    bool n = PyUnicode_CompareWithASCIIString(name, "n") == 0;
    bool size = PyUnicode_CompareWithASCIIString(name, "size") == 0;
    bool m = PyUnicode_CompareWithASCIIString(name, "m") == 0;
    if (!size && (s->elem_rank == 0 || (!n && !m)))
        return ing_py_array_no_attribute(self, name);
    if (!ing_py_took(PyExc_AttributeError)) return NULL;
    if (size) return get_size(as_array(self));
    return PyLong_FromUnsignedLong(n                   ? s->elem_shape[0]
                                   : s->elem_rank == 2 ? s->elem_shape[1]
                                                       : 1);
}

static PyObject *get_element_shape(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_spec *s = as_array(self)->spec;
    switch (s->elem_rank) {
    case 0: return PyTuple_New(0);
    case 1: return Py_BuildValue("(I)", s->elem_shape[0]);
    default: return Py_BuildValue("(II)", s->elem_shape[0], s->elem_shape[1]);
    }
}

static PyObject *get_grad(PyObject *self, void *unused) {
    (void)unused;
    PyObject *grad = as_array(self)->grad;
    return Py_NewRef(grad ? grad : Py_None);
}

static PyObject *get_generation(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_state *st = ing_py_state_of(self);
    return PyLong_FromUnsignedLongLong(st ? ing_py_array_generation(st, as_array(self))
                                          : 0);
}

static PyObject *array_repr(PyObject *self) {
    PyObject *shown = ing_py_import("ingot._interop", "shown");
    PyObject *text = shown ? PyObject_CallOneArg(shown, self) : NULL;
    Py_XDECREF(shown);
    return text;
}

/* As in the reference, where arrays have no truth value of their own: `if self.x:` asks
 * whether there is one. */
static int array_bool(PyObject *self) {
    (void)self;
    return 1;
}

static PyObject *has_grad(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(as_array(self)->grad != NULL);
}

static PyObject *has_dual(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    Py_RETURN_FALSE;
}

/* A tensor of the ndarray backend is its own implementation. */
static PyObject *unwrap(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

/* ---- NumPy and torch: in Python, loaded on first use ----------------------------------------- */

#define IN_PYTHON(module, name)                                               \
    static PyObject *name(PyObject *self, PyObject *args, PyObject *kwargs) { \
        return ing_py_call_in(module, #name, self, args, kwargs);             \
    }
IN_PYTHON("ingot._interop", to_numpy)
IN_PYTHON("ingot._interop", from_numpy)
IN_PYTHON("ingot._interop", to_torch)
IN_PYTHON("ingot._interop", from_torch)
IN_PYTHON("ingot._interop", as_array_for_numpy)
IN_PYTHON("ingot._interop", tolist)
IN_PYTHON("ingot._ndarrays", get_type)
IN_PYTHON("ingot._html", _repr_html_)
#undef IN_PYTHON

static PyObject *get_interface(PyObject *self, void *unused) {
    (void)unused;
    PyObject *function = ing_py_import("ingot._interop", "array_interface");
    PyObject *v = function ? PyObject_CallOneArg(function, self) : NULL;
    Py_XDECREF(function);
    return v;
}

/* ---- tables ------------------------------------------------------------------------------------ */

#define KEYWORDS    METH_VARARGS | METH_KEYWORDS
#define FUNCTION(f) (PyCFunction)(void (*)(void))(f)

static const PyMethodDef array_methods[] = {
    {"fill", ing_py_array_fill, METH_O,
     "fill($self, value)\n--\n\nSets every element."},
    {"copy_from", ing_py_array_copy_from, METH_O,
     "copy_from($self, other)\n--\n\nCopies, and converts, all elements of an ndarray "
     "of equal shape."},
    {"to_numpy", FUNCTION(to_numpy), KEYWORDS,
     "to_numpy($self, dtype=None, *, copy=True)\n--\n\nThe elements as a NumPy array; "
     "copy=False gives a view."},
    {"from_numpy", FUNCTION(from_numpy), KEYWORDS,
     "from_numpy($self, array)\n--\n\nLoads all elements from a NumPy array of equal "
     "shape."},
    {"to_torch", FUNCTION(to_torch), KEYWORDS,
     "to_torch($self, device=None, *, copy=True)\n--\n\nThe elements as a torch "
     "tensor."},
    {"from_torch", FUNCTION(from_torch), KEYWORDS,
     "from_torch($self, tensor)\n--\n\nLoads all elements from a torch tensor of equal "
     "shape."},
    {"tolist", FUNCTION(tolist), KEYWORDS,
     "tolist($self)\n--\n\nThe elements as nested lists."},
    {"copy", ing_py_array_copy, METH_NOARGS,
     "copy($self)\n--\n\nAn ndarray with equal contents."},
    {"to_dlpack", FUNCTION(ing_py_array_to_dlpack), KEYWORDS,
     "to_dlpack($self, versioned=False)\n--\n\nA DLPack capsule that shares the "
     "memory."},
    {"__dlpack__", FUNCTION(ing_py_array_dlpack), KEYWORDS, NULL},
    {"__dlpack_device__", ing_py_array_dlpack_device, METH_NOARGS, NULL},
    {"__array__", FUNCTION(as_array_for_numpy), KEYWORDS, NULL},
    {"get_type", FUNCTION(get_type), KEYWORDS,
     "get_type($self)\n--\n\nElement type, shape in memory and gradient."},
    {"has_grad", has_grad, METH_NOARGS,
     "has_grad($self)\n--\n\nWhether it was made with needs_grad=True."},
    {"has_dual", has_dual, METH_NOARGS,
     "has_dual($self)\n--\n\nFalse: ndarrays have no dual."},
    {"_on_host", ing_py_array_on_host, METH_NOARGS,
     "The array, or a copy of it in memory that the CPU can address."},
    {"_repr_html_", FUNCTION(_repr_html_), KEYWORDS, NULL},
    {"_unwrap", unwrap, METH_NOARGS, "The array itself."},
    {"_look", ing_py_array_look, METH_NOARGS, "A memoryview that only reads."},
    {"_relabel", ing_py_array_relabel, METH_O,
     "_relabel(layout): the same memory with its axes, outermost first, named anew."},
    {"__copy__", ing_py_array_copy, METH_NOARGS, NULL},
    {"__deepcopy__", ing_py_array_deepcopy, METH_O, NULL},
    {"__reduce__", ing_py_array_reduce, METH_NOARGS, NULL},
    {0},
};

static const PyGetSetDef array_getset[] = {
    {"shape", get_shape, NULL, "The extents, as a tuple.", NULL},
    {"dtype", get_dtype, NULL, "The scalar type of the elements.", NULL},
    {"ndim", get_ndim, NULL, "How many axes there are.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"element_type", get_element_type, NULL, "The type of an element.", NULL},
    {"element_shape", get_element_shape, NULL, "The shape of an element; () = scalar.",
     NULL},
    {"layout", get_layout, NULL, "The order of axes in memory, None = row major.",
     NULL},
    {"grad", get_grad, NULL, "The array of gradients, or None.", NULL},
    {"__array_interface__", get_interface, NULL, NULL, NULL},
    {"_generation", get_generation, NULL, "Changes with the contents; 0 = unknown.",
     NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

static const PyMemberDef array_members[] = {
    ING_PY_DICT_AND_WEAKREFS(ing_py_array),
    {0},
};

static const PyType_Slot array_slots[] = {
    {Py_tp_doc,
     "An array in memory that kernels work on; made by qd.ndarray and "
     "qd.from_numpy.\n\n"
     "`a[i, j]` is an element, `a[2:5]` (of one axis) a view; `a[:, 1] = x` assigns. "
     "`len(a)` is the first extent,\n`a.size` the number of elements. NumPy takes it "
     "without a copy: `np.asarray(a)`."},
    ING_PY_COLLECTED(array),
    {Py_tp_repr, array_repr},
    {Py_tp_getattro, array_getattr},
    {Py_tp_iter, ing_py_array_iter},
    {Py_tp_methods, (void *)array_methods},
    {Py_tp_getset, (void *)array_getset},
    {Py_tp_members, (void *)array_members},
    {Py_nb_bool, array_bool},
    ING_PY_ARRAY_REFUSED,
    {Py_mp_length, ing_py_array_len},
    {Py_mp_subscript, ing_py_array_get},
    {Py_mp_ass_subscript, ing_py_array_set},
    {Py_sq_item, ing_py_array_at},
    {Py_sq_length, ing_py_array_len},
    {Py_bf_getbuffer, ing_py_array_getbuffer},
    {Py_bf_releasebuffer, ing_py_array_releasebuffer},
    {0, NULL},
};

static const PyType_Spec array_spec =
    ING_PY_COLLECTED_TYPE("ingot.Ndarray", ing_py_array, 0, array_slots);

static const PyMethodDef functions[] = {
    {"ndarray", FUNCTION(ing_py_ndarray), KEYWORDS,
     "ndarray($module, dtype, shape, needs_grad=False, layout=None)\n--\n\nA zeroed "
     "array, aligned to 64 bytes.\n\n"
     "dtype       of the elements: qd.f32, int, np.float64, qd.math.vec3, a struct "
     "type\n"
     "shape       an extent, or a tuple of extents; () is one element, a[()]\n"
     "needs_grad  with an array of gradients, `.grad`\n"
     "layout      axes in memory, outermost first: (1, 0) is column major; None is "
     "row major"},
    {"from_dlpack", FUNCTION(ing_py_from_dlpack), KEYWORDS,
     "from_dlpack($module, x, /, *, device=None, copy=None)\n--\n\nAn ndarray of what "
     "x exports "
     "through "
     "DLPack, sharing memory where possible."},
    {"_restore_array", ing_py_array_restore, METH_VARARGS, NULL},
    {0},
};

/* ---- in the module --------------------------------------------------------------------------- */

int ing_py_array_add(PyObject *module, ing_py_state *st) {
    ing_map_init(&st->spec_map);
    st->home = &ing_home_cpu;
    st->array_type = ing_py_add_type(module, &array_spec);
    if (!st->array_type || ing_py_view_buffer_add(module) < 0) return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}

int ing_py_array_traverse(ing_py_state *st, visitproc visit, void *arg) {
    Py_VISIT(st->array_type);
    return 0;
}

void ing_py_array_clear(ing_py_state *st) {
    ing_py_partials_drop(st);
    Py_CLEAR(st->array_type);
}

/* Arrays hold their type, and that the module: none is left here. */
void ing_py_array_fini(ing_py_state *st) {
    for (uint32_t i = 0; i < st->specs.len; i++) ing_free(st->specs.at[i]);
    ing_vec_fini(&st->specs);
    ing_map_fini(&st->spec_map);
}
