/* The field types: attributes, the tables of their methods and slots, their life and death.
 * Fields are made in field_new.c. Field is the base, without instances of its own; ScalarField
 * and MatrixField (vectors too) cannot be subclassed, so that `type is` decides in the launch. */
#include "py/array/field.h"
#include "py/array/refuse.h"
#include "py/array/tensor.h"

#include <stddef.h>
#include <structmember.h>

static ing_py_field *as_field(PyObject *o) {
    return (ing_py_field *)o;
}

/* ---- life ---------------------------------------------------------------------------- */

static int field_traverse(PyObject *self, visitproc visit, void *arg) {
    const ing_py_field *f = as_field(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f->parts);
    Py_VISIT(f->whole);
    Py_VISIT(f->node);
    Py_VISIT(f->grad);
    Py_VISIT(f->dual);
    Py_VISIT(f->dict);
    return 0;
}

/* Cycles go through attributes and nodes. Without its node a field that has no layout is one
 * that was never placed. */
static int field_clear(PyObject *self) {
    Py_CLEAR(as_field(self)->dict);
    Py_CLEAR(as_field(self)->node);
    return 0;
}

static void field_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ing_py_field *f = as_field(self);
    PyObject_GC_UnTrack(self);
    if (f->weakrefs) PyObject_ClearWeakRefs(self);
    field_clear(self);
    Py_CLEAR(f->parts);
    Py_CLEAR(f->whole);
    Py_CLEAR(f->grad);
    Py_CLEAR(f->dual);
    Py_CLEAR(f->name);
    Py_XDECREF((PyObject *)f->block);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- is it there? -------------------------------------------------------------------- */

int ing_py_field_gone(ing_py_state *st, const ing_py_field *f) {
    ing_py_fail(st, ING_PY_EXC_RUNTIME,
                "the field%s%V was destroyed: by qd.init, qd.reset, or with the "
                "FieldsBuilder that it belonged to; make it again after that",
                f->name ? " " : "", f->name, "");
    return -1;
}

/* Asks the tree for the layout of everything in the block. */
static int materialize(ing_py_state *st, ing_py_field *f) {
    if (!f->node) {
        ing_py_fail(
            st, ING_PY_EXC_RUNTIME,
            "the field%s%V has no allocation: it was never placed. Give it a "
            "shape, or place it: qd.root.dense(qd.i, 8).place(x). Gradients come "
            "with needs_grad=True or qd.root.lazy_grad()",
            f->name ? " " : "", f->name, "");
        return -1;
    }
    PyObject *function = ing_py_import("ingot._snode", "_materialize");
    PyObject *done =
        function ? PyObject_CallFunctionObjArgs(function, f->node, NULL) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int ing_py_fields_settle(ing_py_state *st) {
    PyObject *function = ing_py_import("ingot._fields", "_check_all_placed");
    PyObject *done = function ? PyObject_CallNoArgs(function) : NULL;
    Py_XDECREF(function);
    if (!done) return -1;
    Py_DECREF(done);
    st->unsettled = false;
    return 0;
}

int ing_py_fields_announce(ing_py_state *st) {
    st->fresh = false; /* what it does to fields does not come back here */
    PyObject *function = Py_XNewRef(st->on_fields);
    PyObject *done = function ? PyObject_CallNoArgs(function) : Py_NewRef(Py_None);
    Py_XDECREF(function);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *on_fields(PyObject *module, PyObject *function) {
    ing_py_state *st = ing_py_state_in(module);
    bool none = function == Py_None;
    if (!none && !PyCallable_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "_on_fields takes a function, or None");
        return NULL;
    }
    Py_XSETREF(st->on_fields, none ? NULL : Py_NewRef(function));
    st->fresh = false;
    Py_RETURN_NONE;
}

static int parts_ready(ing_py_state *st, ing_py_field *f) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(f->parts); i++)
        if (ing_py_field_ready(st, as_field(PyTuple_GET_ITEM(f->parts, i))) < 0)
            return -1;
    return 0;
}

int ing_py_field_ready(ing_py_state *st, ing_py_field *f) {
    if (st->fresh && ing_py_fields_announce(st) < 0) return -1;
    if (f->parts) return parts_ready(st, f);
    if (!f->layout && materialize(st, f) < 0) return -1;
    if (!f->layout) {
        PyErr_SetString(PyExc_SystemError, "a placed field has no layout");
        return -1;
    }
    return f->block->mem ? 0 : ing_py_field_gone(st, f);
}

/* ---- generations ----------------------------------------------------------------------- */

uint64_t ing_py_field_generation(const ing_py_state *st, const ing_py_field *f) {
    uint64_t most = 0;
    if (f->whole) return ing_py_field_generation(st, as_field(f->whole));
    bool unknown = f->exports || ing_py_unsettled(st, f->generation);
    if (!f->parts) return unknown ? 0 : f->generation;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(f->parts); i++) {
        uint64_t one =
            ing_py_field_generation(st, as_field(PyTuple_GET_ITEM(f->parts, i)));
        if (!one) return 0;
        if (one > most) most = one; /* a new one is larger than all others */
    }
    return most;
}

void ing_py_field_touch(ing_py_state *st, ing_py_field *f) {
    if (f->whole) f = as_field(f->whole);
    f->generation = ++st->generations;
    for (Py_ssize_t i = 0; f->parts && i < PyTuple_GET_SIZE(f->parts); i++)
        as_field(PyTuple_GET_ITEM(f->parts, i))->generation = ++st->generations;
}

/* ---- attributes ------------------------------------------------------------------------ */

/* The field whose layout says the shape; NULL = raised. */
static const ing_py_field *shaped(PyObject *self) {
    ing_py_field *f = as_field(self);
    if (f->parts) f = as_field(PyTuple_GET_ITEM(f->parts, 0));
    if (f->layout) return f; /* also when it is destroyed */
    return ing_py_field_ready(ing_py_state_of(self), f) < 0 ? NULL : f;
}

static PyObject *tuple_of(const int64_t *at, unsigned n) {
    PyObject *all = PyTuple_New(n);
    for (unsigned k = 0; all && k < n; k++) {
        PyObject *v = PyLong_FromLongLong(at[k]);
        if (!v)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, k, v);
    }
    return all;
}

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_field *f = shaped(self);
    return f ? tuple_of(f->layout->shape, f->layout->ndim) : NULL;
}

static PyObject *get_offset(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_field *f = shaped(self);
    return f ? tuple_of(f->layout->offset, f->layout->ndim) : NULL;
}

static PyObject *get_dtype(PyObject *self, void *unused) {
    (void)unused;
    ing_dtype t = (ing_dtype)as_field(self)->dtype;
    return Py_XNewRef(ing_py_dtype_get(ing_py_state_of(self), t));
}

static PyObject *get_element_type(PyObject *self, void *unused) {
    const ing_py_field *f = as_field(self);
    if (f->elem_rank == 0) return get_dtype(self, unused);
    ing_gate_tensor t = {f->elem_rank, {f->elem_shape[0], f->elem_shape[1]}};
    PyObject *dtype = ing_py_dtype_get(ing_py_state_of(self), (ing_dtype)f->dtype);
    return ing_py_tensor_type_of(&t, dtype);
}

static PyObject *get_element_shape(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_field *f = as_field(self);
    int64_t shape[2] = {f->elem_shape[0], f->elem_shape[1]};
    return tuple_of(shape, f->elem_rank);
}

static PyObject *get_n(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(as_field(self)->elem_shape[0]);
}

static PyObject *get_m(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_field *f = as_field(self);
    return PyLong_FromUnsignedLong(f->elem_rank == 2 ? f->elem_shape[1] : 1);
}

/* Of a matrix field the reference says the rank of its elements. */
static PyObject *get_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(as_field(self)->elem_rank);
}

static PyObject *get_name(PyObject *self, void *unused) {
    (void)unused;
    PyObject *name = as_field(self)->name;
    return name ? Py_NewRef(name) : PyUnicode_New(0, 0);
}

static PyObject *get_generation(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_state *st = ing_py_state_of(self);
    return PyLong_FromUnsignedLongLong(st ? ing_py_field_generation(st, as_field(self))
                                          : 0);
}

static PyObject *get_block(PyObject *self, void *unused) {
    (void)unused;
    ing_py_block *b = as_field(self)->block;
    return Py_NewRef(b ? (PyObject *)b : Py_None);
}

/* (place, ((axis, extent, stride), ...)), or None where there is no layout yet. */
static PyObject *get_levels(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_layout *l = as_field(self)->layout;
    if (!l) Py_RETURN_NONE;
    PyObject *all = PyTuple_New(l->n_levels), *both = NULL;
    for (uint32_t k = 0; all && k < l->n_levels; k++) {
        const ing_py_level *v = &l->levels[k];
        PyObject *one =
            Py_BuildValue("(ILL)", v->axis, (long long)v->extent, (long long)v->stride);
        if (!one)
            Py_CLEAR(all);
        else
            PyTuple_SET_ITEM(all, k, one);
    }
    if (all) both = Py_BuildValue("(LO)", (long long)l->place, all);
    Py_XDECREF(all);
    return both;
}

/* Objects of the tree that C only keeps: node, parts, grad, dual. Which, says `closure`: the
 * place in the struct. */
static PyObject *get_kept(PyObject *self, void *closure) {
    PyObject *o = *(PyObject **)(void *)((char *)self + (size_t)closure);
    return Py_NewRef(o ? o : Py_None);
}

static int set_kept(PyObject *self, PyObject *value, void *closure) {
    PyObject **at = (PyObject **)(void *)((char *)self + (size_t)closure);
    Py_XSETREF(*at, value && value != Py_None ? Py_NewRef(value) : NULL);
    return 0;
}

/* Whether qd.root.lazy_grad or lazy_dual gave memory to the companions of a field that is in
 * no tree. */
static bool is_lazy(PyObject *self, bool dual) {
    const ing_py_field *f = as_field(self);
    return f->layout && f->born <= ing_py_state_of(self)->lazy[dual];
}

static bool is_placed(PyObject *o) {
    const ing_py_field *f = as_field(o);
    if (f->parts) return is_placed(PyTuple_GET_ITEM(f->parts, 0));
    return f->layout || f->node;
}

/* Of real fields gradients and duals exist, mostly without memory, when they are asked for.
 * One that was asked for before lazy_grad is made anew. */
static PyObject *get_companion(PyObject *self, void *closure) {
    const ing_py_field *f = as_field(self);
    PyObject *found = get_kept(self, closure);
    bool dual = (size_t)closure == offsetof(ing_py_field, dual);
    if (f->companion || !ing_dtype_is_float((ing_dtype)f->dtype)) return found;
    if (found != Py_None && (is_placed(found) || !is_lazy(self, dual))) return found;
    Py_DECREF(found);
    PyObject *function = ing_py_import("ingot._fields", "_companion");
    found = function
                ? PyObject_CallFunction(function, "OsO", self, dual ? "dual" : "grad",
                                        is_lazy(self, dual) ? Py_True : Py_False)
                : NULL;
    Py_XDECREF(function);
    return found;
}

static PyObject *has(PyObject *self, void *closure) {
    PyObject *other = get_companion(self, closure);
    if (!other) return NULL;
    bool yes = other != Py_None && is_placed(other);
    Py_DECREF(other);
    return PyBool_FromLong(yes);
}

static PyObject *has_grad(PyObject *self, PyObject *unused) {
    (void)unused;
    return has(self, (void *)offsetof(ing_py_field, grad));
}

static PyObject *has_dual(PyObject *self, PyObject *unused) {
    (void)unused;
    return has(self, (void *)offsetof(ing_py_field, dual));
}

/* Whether it can still be used: its memory, if it has some, was not destroyed. */
static PyObject *get_exists(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_field *f = as_field(self);
    return PyBool_FromLong(!f->block || f->block->mem);
}

static PyObject *get_snode(PyObject *self, void *unused) {
    (void)unused;
    PyObject *function = ing_py_import("ingot._snode", "snode_of");
    PyObject *node =
        function ? PyObject_CallFunctionObjArgs(function, self, NULL) : NULL;
    Py_XDECREF(function);
    return node;
}

/* Where each axis has one level: the axes in their order, if that is not the usual one. */
static PyObject *get_layout(PyObject *self, void *unused) {
    (void)unused;
    const ing_py_field *f = shaped(self);
    int64_t order[ING_MAX_NDIM];
    unsigned seen = 0, n = 0;
    if (!f) return NULL;
    for (uint32_t k = 0; k < f->layout->n_levels; k++) {
        unsigned axis = f->layout->levels[k].axis;
        if (seen >> axis & 1) Py_RETURN_NONE;
        seen |= 1u << axis;
        order[n++] = axis;
    }
    bool unusual = false;
    for (unsigned k = 1; k < n; k++) unusual |= order[k] < order[k - 1];
    if (!unusual || n < f->layout->ndim) Py_RETURN_NONE;
    return tuple_of(order, n);
}

static PyObject *unwrap(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

static int set_companion(PyObject *self, PyObject *value, void *closure) {
    if (value && value != Py_None && Py_TYPE(value) != Py_TYPE(self)) {
        PyErr_Format(PyExc_TypeError, "expected a field like this one, got '%.100s'",
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    return set_kept(self, value, closure);
}

static int set_parts(PyObject *self, PyObject *value, void *closure) {
    (void)closure;
    ing_py_field *f = as_field(self);
    const ing_py_state *st = ing_py_state_of(self);
    Py_ssize_t n = f->elem_shape[0] * (f->elem_rank == 2 ? f->elem_shape[1] : 1);
    bool ok = f->elem_rank && !f->layout && value && PyTuple_CheckExact(value) &&
              PyTuple_GET_SIZE(value) == n;
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = Py_TYPE(PyTuple_GET_ITEM(value, i)) == st->scalar_field;
    if (!ok) {
        PyErr_SetString(PyExc_ValueError, "these are not the parts of the field");
        return -1;
    }
    Py_XSETREF(f->parts, Py_NewRef(value));
    return 0;
}

/* Its type, shape and values; under `reference` as there. */
static PyObject *field_shown(PyObject *self) {
    PyObject *function = ing_py_import("ingot._fields", "_shown");
    PyObject *text = function ? PyObject_CallOneArg(function, self) : NULL;
    Py_XDECREF(function);
    return text;
}

static bool as_reference(PyObject *self) {
    return ing_py_state_of(self)->settings.at[ING_SET_reference] != 0;
}

static PyObject *scalar_repr(PyObject *self) {
    if (!as_reference(self)) return field_shown(self);
    return PyUnicode_FromString("<qd.field>");
}

static PyObject *matrix_repr(PyObject *self) {
    const ing_py_field *f = as_field(self);
    if (!as_reference(self)) return field_shown(self);
    return PyUnicode_FromFormat("<%ux%u qd.Matrix.field>", f->elem_shape[0],
                                f->elem_rank == 2 ? f->elem_shape[1] : 1);
}

static PyObject *field_str(PyObject *self) {
    PyObject *function = ing_py_import("ingot._fields", "_text");
    PyObject *text =
        function ? PyObject_CallFunctionObjArgs(function, self, NULL) : NULL;
    Py_XDECREF(function);
    return text;
}

static PyObject *get_shape(PyObject *self, void *unused);

static PyObject *field_getattr(PyObject *self, PyObject *name) {
    PyObject *v = PyObject_GenericGetAttr(self, name);
    if (v) return v;
    if (PyUnicode_CompareWithASCIIString(name, "size") != 0 ||
        !ing_py_took(PyExc_AttributeError))
        return ing_py_array_no_attribute(self, name);
    PyObject *shape = get_shape(self, NULL); /* as of ndarrays, no descriptor */
    size_t n = 1;
    for (Py_ssize_t k = 0; shape && k < PyTuple_GET_SIZE(shape); k++)
        n *= PyLong_AsSize_t(PyTuple_GET_ITEM(shape, k));
    Py_XDECREF(shape);
    return shape ? PyLong_FromSize_t(n) : NULL;
}

static Py_ssize_t field_len(PyObject *self) {
    PyObject *shape = get_shape(self, NULL);
    Py_ssize_t n = -1;
    if (shape && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) > 0)
        n = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, 0));
    else if (shape)
        PyErr_SetString(PyExc_TypeError, "len() of a field without axes");
    Py_XDECREF(shape);
    return n;
}

/* As in the reference, where `if self.x:` asks whether there is one. */
static int field_bool(PyObject *self) {
    (void)self;
    return 1;
}

static PyObject *field_iter(PyObject *self) {
    const ing_settings *set = &ing_py_state_of(self)->settings;
    if (set->at[ING_SET_python]) return ing_py_python_indices(self);
    PyErr_Format(
        PyExc_NotImplementedError,
        "Struct for is only available in %s: loop over a field in a kernel, or "
        "over f.to_numpy()",
        set->at[ING_SET_reference] ? "Quadrants scope" : "kernels");
    return NULL;
}

/* ---- in Python, loaded on first use -------------------------------------------------------- */

#define IN_PYTHON(name)                                                       \
    static PyObject *name(PyObject *self, PyObject *args, PyObject *kwargs) { \
        return ing_py_call_in("ingot._fields", #name, self, args, kwargs);    \
    }
IN_PYTHON(to_numpy)
IN_PYTHON(from_numpy)
IN_PYTHON(to_torch)
IN_PYTHON(from_torch)
IN_PYTHON(to_dlpack)
IN_PYTHON(dlpack)
IN_PYTHON(dlpack_device)
IN_PYTHON(copy_from)
IN_PYTHON(parent)
IN_PYTHON(tolist)
IN_PYTHON(reduce)
IN_PYTHON(get_scalar_field)
IN_PYTHON(as_array_for_numpy)
IN_PYTHON(_repr_html_)
#undef IN_PYTHON

/* ---- tables ---------------------------------------------------------------------------------- */

#define KEYWORDS    METH_VARARGS | METH_KEYWORDS
#define FUNCTION(f) (PyCFunction)(void (*)(void))(f)

static const PyMethodDef dense_methods[] = {
    {"fill", ing_py_field_fill, METH_O,
     "fill($self, value)\n--\n\nSets every element."},
    {"to_numpy", FUNCTION(to_numpy), KEYWORDS,
     "to_numpy($self, dtype=None, *, copy=True)\n--\n\nThe elements as a NumPy array; "
     "of vectors and matrices to_numpy(keep_dims=False, dtype=None, *, copy=True)."},
    {"from_numpy", FUNCTION(from_numpy), KEYWORDS,
     "from_numpy($self, array)\n--\n\nLoads all elements from a NumPy array."},
    {"to_torch", FUNCTION(to_torch), KEYWORDS,
     "to_torch($self, device=None, *, copy=True)\n--\n\nThe elements as a torch "
     "tensor."},
    {"from_torch", FUNCTION(from_torch), KEYWORDS,
     "from_torch($self, tensor)\n--\n\nLoads all elements from a torch tensor."},
    {"to_dlpack", FUNCTION(to_dlpack), KEYWORDS,
     "to_dlpack($self, versioned=False)\n--\n\nA DLPack capsule that shares the "
     "memory."},
    {"copy_from", FUNCTION(copy_from), KEYWORDS,
     "copy_from($self, other)\n--\n\nCopies all elements of a field of equal shape."},
    {"tolist", FUNCTION(tolist), KEYWORDS,
     "tolist($self)\n--\n\nThe elements as numbers of Python, in lists per axis."},
    {"parent", FUNCTION(parent), KEYWORDS,
     "parent($self, n=1)\n--\n\nThe node of the tree n levels above the field."},
    {"has_grad", has_grad, METH_NOARGS,
     "has_grad($self)\n--\n\nWhether gradients are placed."},
    {"has_dual", has_dual, METH_NOARGS,
     "has_dual($self)\n--\n\nWhether duals are placed."},
    {"__dlpack__", FUNCTION(dlpack), KEYWORDS, NULL},
    {"__dlpack_device__", FUNCTION(dlpack_device), KEYWORDS, NULL},
    {"__reduce__", FUNCTION(reduce), KEYWORDS, NULL},
    {"__array__", FUNCTION(as_array_for_numpy), KEYWORDS, NULL},
    {"_repr_html_", FUNCTION(_repr_html_), KEYWORDS, NULL},
    {"_unwrap", unwrap, METH_NOARGS, "The field itself."},
    {"_load", ing_py_field_load, METH_O, NULL},
    {"_store", ing_py_field_store, METH_O, NULL},
    {"_place", ing_py_field_place, METH_VARARGS, NULL},
    {0},
};
static const PyMethodDef matrix_methods[] = {
    {"get_scalar_field", FUNCTION(get_scalar_field), KEYWORDS,
     "get_scalar_field($self, i, j=0)\n--\n\nThe field of one scalar of each element."},
    {"_part", ing_py_field_part, METH_O, NULL},
    {0},
};

#define KEPT(name) (void *)offsetof(ing_py_field, name)
static const PyGetSetDef dense_getset[] = {
    {"shape", get_shape, NULL, "The extents, as a tuple.", NULL},
    {"offset", get_offset, NULL, "The index of the first element.", NULL},
    {"layout", get_layout, NULL,
     "The order of axes in memory; None = row major, or no order can tell.", NULL},
    {"dtype", get_dtype, NULL, "The scalar type of the elements.", NULL},
    {"element_type", get_element_type, NULL, "The type of an element.", NULL},
    {"element_shape", get_element_shape, NULL, "The shape of an element; () = scalar.",
     NULL},
    {"name", get_name, NULL, "The name that it was given, or ''.", NULL},
    {"_name", get_name, NULL, NULL, NULL},
    {"grad", get_companion, set_companion, "The field of gradients, or None.",
     KEPT(grad)},
    {"dual", get_companion, set_companion, "The field of duals, or None.", KEPT(dual)},
    {"_exists", get_exists, NULL, "Whether its memory was not destroyed.", NULL},
    {"_has_grad", has, NULL, "has_grad(), for lowering.", KEPT(grad)},
    {"_has_dual", has, NULL, "has_dual(), for lowering.", KEPT(dual)},
    {"snode", get_snode, NULL, "Its place in the tree of fields.", NULL},
    {"_snode", get_snode, NULL, NULL, NULL},
    {"_node", get_kept, set_kept, "What it was placed by.", KEPT(node)},
    {"_block", get_block, NULL, "The memory that it is in.", NULL},
    {"_levels", get_levels, NULL, "Where its elements are.", NULL},
    {"_generation", get_generation, NULL, "Changes with the contents; 0 = unknown.",
     NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};
static const PyGetSetDef matrix_getset[] = {
    {"n", get_n, NULL, "Rows of an element.", NULL},
    {"m", get_m, NULL, "Columns of an element.", NULL},
    {"ndim", get_ndim, NULL, "1: elements are vectors, 2: matrices.", NULL},
    {"_parts", get_kept, set_parts,
     "A field for each scalar of an element, or None: they lie together.", KEPT(parts)},
    {0},
};

static const PyMemberDef field_members[] = {
    ING_PY_DICT_AND_WEAKREFS(ing_py_field),
    {0},
};

static const PyType_Slot base_slots[] = {
    {Py_tp_doc, "Elements in memory that kernels work on: the base of all fields."},
    {0, NULL},
};
static const PyType_Slot dense_slots[] = {
    {Py_tp_doc, "What fields of numbers, vectors and matrices have in common."},
    ING_PY_COLLECTED(field),
    {Py_tp_iter, field_iter},
    {Py_tp_str, field_str},
    {Py_tp_methods, (void *)dense_methods},
    {Py_tp_getset, (void *)dense_getset},
    {Py_tp_members, (void *)field_members},
    {Py_nb_bool, field_bool},
    ING_PY_ARRAY_REFUSED,
    {Py_tp_getattro, field_getattr},
    {Py_mp_length, field_len},
    {Py_mp_subscript, ing_py_field_item},
    {Py_mp_ass_subscript, ing_py_field_assign},
    {Py_bf_getbuffer, ing_py_field_getbuffer},
    {Py_bf_releasebuffer, ing_py_field_releasebuffer},
    {0, NULL},
};
/* CPython does not inherit how an object is freed. */
static const PyType_Slot scalar_slots[] = {
    {Py_tp_doc, "A field of numbers; made by qd.field.\n\n`f[i, j]` is an element, "
                "`len(f)` the first extent, `f.size` the number of elements."},
    ING_PY_COLLECTED(field),
    {Py_tp_repr, scalar_repr},
    {0, NULL},
};
static const PyType_Slot matrix_slots[] = {
    {Py_tp_doc, "A field of vectors or matrices; made by qd.Vector.field and others."},
    ING_PY_COLLECTED(field),
    {Py_tp_repr, matrix_repr},
    {Py_tp_methods, (void *)matrix_methods},
    {Py_tp_getset, (void *)matrix_getset},
    {0, NULL},
};

/* StructField, in Python, is a subclass. */
static const PyType_Spec base_spec = {
    .name = "ingot.Field",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = (PyType_Slot *)base_slots,
};
static const PyType_Spec dense_spec = ING_PY_COLLECTED_TYPE(
    "ingot._core.DenseField", ing_py_field, Py_TPFLAGS_BASETYPE, dense_slots);
static const PyType_Spec scalar_spec =
    ING_PY_COLLECTED_TYPE("ingot.ScalarField", ing_py_field, 0, scalar_slots);
static const PyType_Spec matrix_spec =
    ING_PY_COLLECTED_TYPE("ingot.MatrixField", ing_py_field, 0, matrix_slots);

static const PyMethodDef functions[] = {
    {"_new_field", ing_py_field_new, METH_VARARGS,
     "_new_field(element type, name=None): a field that is not placed."},
    {"_dense_field", ing_py_field_dense, METH_VARARGS,
     "_dense_field(element type, shape, order=None, offset=None, name=None): a field "
     "in a "
     "block of its own."},
    {"_on_fields", on_fields, METH_O,
     "_on_fields(function or None): to be called when fields were made, before one of "
     "them is used or a kernel runs."},
    {0},
};

/* ---- in the module --------------------------------------------------------------------------- */

static PyTypeObject *add_kind(PyObject *module, const PyType_Spec *spec,
                              PyTypeObject *base) {
    PyObject *type =
        PyType_FromModuleAndSpec(module, (PyType_Spec *)spec, (PyObject *)base);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int ing_py_field_add(PyObject *module, ing_py_state *st) {
    if (ing_py_block_add(module, st) < 0) return -1;
    st->field_type = ing_py_add_type(module, &base_spec);
    if (!st->field_type) return -1;
    PyTypeObject *dense = add_kind(module, &dense_spec, st->field_type);
    if (!dense) return -1;
    st->scalar_field = add_kind(module, &scalar_spec, dense);
    st->matrix_field = add_kind(module, &matrix_spec, dense);
    Py_DECREF(dense);
    if (!st->scalar_field || !st->matrix_field) return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}

int ing_py_field_traverse(ing_py_state *st, visitproc visit, void *arg) {
    Py_VISIT(st->field_type);
    Py_VISIT(st->scalar_field);
    Py_VISIT(st->matrix_field);
    Py_VISIT(st->block_type);
    Py_VISIT(st->on_fields);
    return 0;
}

void ing_py_field_clear(ing_py_state *st) {
    Py_CLEAR(st->field_type);
    Py_CLEAR(st->scalar_field);
    Py_CLEAR(st->matrix_field);
    Py_CLEAR(st->block_type);
    Py_CLEAR(st->on_fields);
}

/* Blocks that live on, while all of the module is collected, form a ring of their own. */
void ing_py_field_fini(ing_py_state *st) {
    if (st->blocks.next) {
        st->blocks.next->prev = st->blocks.prev;
        st->blocks.prev->next = st->blocks.next;
    }
    ing_py_layout_fini(st);
}
