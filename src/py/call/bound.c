/* A kernel as a method, obj.kernel: calling it, its derivatives and resume() pass obj first.
 * Calls obj.kernel(...) make none of these, since kernels are method descriptors; what is here
 * is for obj.kernel as a value. Made by kernel.c. */
#include "py/call/kernel.h"

#include <stddef.h>
#include <structmember.h>

typedef struct bound {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *func, *self; /* a kernel, and the object */
    PyObject *weakrefs;
} bound;

static bound *as_bound(PyObject *o) {
    return (bound *)(void *)o;
}

PyObject *ing_py_unbind(const ing_py_state *st, PyObject *obj, PyObject **self) {
    bool method = obj && PyMethod_Check(obj);
    bool kernel = obj && st->host && Py_TYPE(obj) == st->host->bound_type;
    if (self)
        *self = method ? PyMethod_GET_SELF(obj) : kernel ? as_bound(obj)->self : NULL;
    return method ? PyMethod_GET_FUNCTION(obj) : kernel ? as_bound(obj)->func : obj;
}

/* Calls `func` with self in front; the caller's array has room for it, or is copied. */
static PyObject *call_with(PyObject *func, PyObject *self, PyObject *const *args,
                           size_t nargsf, PyObject *kwnames) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {
        PyObject **at = (PyObject **)args - 1, *old = at[0];
        at[0] = self;
        PyObject *result = PyObject_Vectorcall(func, at, (size_t)n + 1, kwnames);
        at[0] = old;
        return result;
    }
    PyObject **copy = PyMem_New(PyObject *, (size_t)all + 1);
    if (!copy) return PyErr_NoMemory();
    copy[0] = self;
    for (Py_ssize_t i = 0; i < all; i++) copy[i + 1] = args[i];
    PyObject *result = PyObject_Vectorcall(func, copy, (size_t)n + 1, kwnames);
    PyMem_Free(copy);
    return result;
}

static PyObject *bound_call(PyObject *self, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames) {
    return call_with(as_bound(self)->func, as_bound(self)->self, args, nargsf, kwnames);
}

PyObject *ing_py_bound_new(ing_py_kernel *k, PyObject *obj) {
    PyTypeObject *type = k->host->bound_type;
    bound *b = (bound *)(void *)type->tp_alloc(type, 0);
    if (!b) return NULL;
    b->vectorcall = bound_call;
    b->func = Py_NewRef((PyObject *)k);
    b->self = Py_NewRef(obj);
    return (PyObject *)b;
}

static int bound_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_bound(self)->func);
    Py_VISIT(as_bound(self)->self);
    return 0;
}

static int bound_clear(PyObject *self) {
    Py_CLEAR(as_bound(self)->func);
    Py_CLEAR(as_bound(self)->self);
    return 0;
}

static void bound_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (as_bound(self)->weakrefs) PyObject_ClearWeakRefs(self);
    bound_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- what it shows ------------------------------------------------------------------------- */

static PyObject *bound_companion(PyObject *self, void *closure) {
    const bound *b = as_bound(self);
    PyObject *k =
        ing_py_companion((ing_py_kernel *)b->func, (ing_ad_mode)(size_t)closure);
    PyObject *out = k ? ing_py_bound_new((ing_py_kernel *)k, b->self) : NULL;
    Py_XDECREF(k);
    return out;
}

static PyObject *bound_resume(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames) {
    const bound *b = as_bound(self);
    PyObject *resume = PyObject_GetAttrString(b->func, "resume");
    PyObject *out =
        resume ? call_with(resume, b->self, args, (size_t)n, kwnames) : NULL;
    Py_XDECREF(resume);
    return out;
}

/* What it has not is the kernel's, as with Python's methods. */
static PyObject *bound_getattro(PyObject *self, PyObject *name) {
    bool own = !ing_py_asks_module(name) && _PyType_Lookup(Py_TYPE(self), name);
    return own ? PyObject_GenericGetAttr(self, name)
               : PyObject_GetAttr(as_bound(self)->func, name);
}

static PyObject *bound_doc(PyObject *self, void *unused) {
    (void)unused;
    return PyObject_GetAttrString(as_bound(self)->func, "__doc__");
}

/* That of the function without its first parameter, for inspect. */
static PyObject *bound_signature(PyObject *self, void *unused) {
    (void)unused;
    PyObject *ask = ing_py_import("inspect", "signature");
    PyObject *fn =
        ask ? PyObject_GetAttrString(as_bound(self)->func, "__wrapped__") : NULL;
    PyObject *method = fn ? PyMethod_New(fn, as_bound(self)->self) : NULL;
    PyObject *out = method ? PyObject_CallOneArg(ask, method) : NULL;
    Py_XDECREF(ask);
    Py_XDECREF(fn);
    Py_XDECREF(method);
    return out;
}

/* It is bound already, as Python's methods say it; help() then takes it for one. */
static PyObject *bound_get(PyObject *self, PyObject *obj, PyObject *type) {
    (void)obj, (void)type;
    return Py_NewRef(self);
}

static PyObject *bound_repr(PyObject *self) {
    return PyUnicode_FromFormat("<bound %R of %R>", as_bound(self)->func,
                                as_bound(self)->self);
}

static Py_hash_t bound_hash(PyObject *self) {
    uint64_t key[2] = {(uint64_t)(uintptr_t)as_bound(self)->func,
                       (uint64_t)(uintptr_t)as_bound(self)->self};
    Py_hash_t h = (Py_hash_t)ing_hash(key, sizeof key).lo;
    return h == -1 ? -2 : h;
}

static PyObject *bound_compare(PyObject *a, PyObject *b, int op) {
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    bool same = as_bound(a)->func == as_bound(b)->func &&
                as_bound(a)->self == as_bound(b)->self;
    return PyBool_FromLong(same == (op == Py_EQ));
}

/* obj.kernel, or (obj.kernel).grad, by their names. */
static PyObject *bound_reduce(PyObject *self, PyObject *protocol) {
    (void)protocol;
    const bound *b = as_bound(self);
    ing_py_kernel *k = (ing_py_kernel *)b->func;
    PyObject *get = ing_py_import("builtins", "getattr"), *of, *name;
    if (!get) return NULL;
    if (k->primal) {
        of = ing_py_bound_new(k->primal, b->self);
        name = PyUnicode_FromString(ing_py_companion_name(k->mode));
    } else {
        of = Py_NewRef(b->self);
        name = PyObject_GetAttrString(b->func, "__name__");
    }
    if (of && name) return Py_BuildValue("(N(NN))", get, of, name);
    Py_XDECREF(of);
    Py_XDECREF(name);
    Py_DECREF(get);
    return NULL;
}

static PyObject *bound_copy(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

/* The same kernel of a copy of the object, as with Python's methods. */
static PyObject *bound_deepcopy(PyObject *self, PyObject *memo) {
    const bound *b = as_bound(self);
    PyObject *deep = ing_py_import("copy", "deepcopy");
    PyObject *of =
        deep ? PyObject_CallFunctionObjArgs(deep, b->self, memo, NULL) : NULL;
    PyObject *out = of ? ing_py_bound_new((ing_py_kernel *)b->func, of) : NULL;
    Py_XDECREF(deep);
    Py_XDECREF(of);
    return out;
}

static const PyGetSetDef bound_getset[] = {
    {"__doc__", bound_doc, NULL, NULL, NULL},
    {"__signature__", bound_signature, NULL, NULL, NULL},
    {"grad", bound_companion, NULL, "The gradient of the kernel, of the same object.",
     (void *)ING_AD_REVERSE},
    {"dual", bound_companion, NULL,
     "The kernel with its derivative in forward mode, of the same object.",
     (void *)ING_AD_FORWARD},
    {NULL, NULL, NULL, NULL, NULL},
};

static const PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(bound, vectorcall), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(bound, weakrefs), READONLY, NULL},
    {"__func__", T_OBJECT, offsetof(bound, func), READONLY, "The kernel."},
    {"__self__", T_OBJECT, offsetof(bound, self), READONLY, "The object."},
    {NULL, 0, 0, 0, NULL},
};

static const PyMethodDef bound_methods[] = {
    {"__copy__", bound_copy, METH_NOARGS, NULL},
    {"__deepcopy__", bound_deepcopy, METH_O, NULL},
    {"__reduce_ex__", bound_reduce, METH_O, NULL},
    {"resume", (PyCFunction)(void (*)(void))bound_resume, METH_FASTCALL | METH_KEYWORDS,
     "resume($self, *args, from_checkpoint)\n--\n\nLaunches from that checkpoint on; "
     "what stands before it is skipped."},
    {NULL, NULL, 0, NULL},
};

static const PyType_Slot bound_slots[] = {
    ING_PY_COLLECTED(bound),
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, bound_getattro},
    {Py_tp_repr, bound_repr},
    {Py_tp_hash, bound_hash},
    {Py_tp_richcompare, bound_compare},
    {Py_tp_getset, (void *)bound_getset},
    {Py_tp_members, (void *)bound_members},
    {Py_tp_methods, (void *)bound_methods},
    {Py_tp_descr_get, bound_get},
    {0, NULL},
};

static const PyType_Spec bound_spec = ING_PY_COLLECTED_TYPE(
    "ingot.BoundKernel", bound, Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    bound_slots);

int ing_py_bound_add(PyObject *module, ing_py_state *st) {
    st->host->bound_type = ing_py_add_type(module, &bound_spec);
    return st->host->bound_type ? 0 : -1;
}
