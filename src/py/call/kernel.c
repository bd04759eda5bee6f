/* The types Kernel and Func: what @qd.kernel and @qd.func make. A kernel is callable
 * through vectorcall and is a method descriptor, so calling it as a method builds no bound
 * object. Decorating stores the function and its text, nothing more. */
#include "py/call/guard.h"
#include "py/tool/tool.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* ---- kernels: life ---------------------------------------------------------------------- */

void ing_py_kernel_reset(ing_py_kernel *k) {
    k->epoch = k->host->epoch;
    k->non_pure_told = false;
    ing_cache_reset(&k->cache);
}

static int kernel_traverse(ing_py_kernel *k, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(k));
    Py_VISIT(k->options);
    Py_VISIT(k->dict);
    Py_VISIT(k->primal);
    for (uint32_t i = 0; i < ING_PY_COMPANIONS; i++) Py_VISIT(k->companions[i]);
    for (uint32_t i = 0; i < k->cache.leaves.len; i++) {
        ing_py_variant *v = ing_py_variant_at(k, i);
        if (!v || v->refs != 1) continue; /* a launch is using it */
        int stop = v->checks ? ing_py_checks_traverse(v->checks, visit, arg) : 0;
        if (stop) return stop;
    }
    return ing_py_def_traverse(&k->def, visit, arg);
}

static int kernel_clear(ing_py_kernel *k) {
    ing_cache_clear(&k->cache);
    Py_CLEAR(k->options);
    Py_CLEAR(k->dict);
    Py_CLEAR(k->primal);
    ing_py_companions_drop(k);
    ing_py_sizes_drop(k);
    ing_py_def_fini(&k->def);
    return 0;
}

static void kernel_dealloc(ing_py_kernel *k) {
    PyTypeObject *type = Py_TYPE(k);
    PyObject_GC_UnTrack(k);
    if (k->weakrefs) PyObject_ClearWeakRefs((PyObject *)k);
    kernel_clear(k);
    ing_cache_fini(&k->cache);
    for (uint32_t i = 0; i < k->names.len; i++) Py_XDECREF(k->names.at[i]);
    ing_vec_fini(&k->names);
    ing_paths_fini(&k->paths);
    ing_bytes_fini(&k->notes);
    type->tp_free((PyObject *)k);
    Py_DECREF(type);
}

/* The arguments of kernel() and func(): one function, then options as keywords. *options is
 * a new dict or NULL, *source a new reference or NULL. */
static int parse_make(const char *who, PyObject *args, PyObject *kwargs, PyObject **fn,
                      PyObject **options, PyObject **source) {
    *options = *source = NULL;
    if (PyTuple_GET_SIZE(args) != 1) {
        PyErr_Format(PyExc_TypeError, "%s() takes one function, got %zd arguments", who,
                     PyTuple_GET_SIZE(args));
        return -1;
    }
    *fn = PyTuple_GET_ITEM(args, 0);
    if (!kwargs) return 0;
    if (PyDict_GetItemStringRef(kwargs, "source", source) < 0) return -1;
    if (*source == Py_None) Py_CLEAR(*source);
    if (PyDict_GET_SIZE(kwargs) > (*source != NULL)) {
        *options = PyDict_Copy(kwargs);
        if (!*options) Py_CLEAR(*source);
        if (!*options) return -1;
    }
    return 0;
}

static int is_set(PyObject *options, const char *name, bool *out) {
    PyObject *v = NULL;
    int rc = options ? PyDict_GetItemStringRef(options, name, &v) : 0;
    *out = v && v != Py_False && v != Py_None;
    Py_XDECREF(v);
    return rc;
}

/* The same by its truth. */
static int is_true(PyObject *options, const char *name, bool *out) {
    PyObject *v = NULL;
    int rc = options ? PyDict_GetItemStringRef(options, name, &v) : 0;
    if (rc == 1) rc = PyObject_IsTrue(v);
    *out = rc == 1;
    Py_XDECREF(v);
    return rc;
}

ing_py_kernel *ing_py_kernel_new(ing_py_state *st) {
    PyTypeObject *type = st->host->kernel_type;
    ing_py_kernel *k = (ing_py_kernel *)type->tp_alloc(type, 0);
    if (!k) return NULL;
    ing_paths_init(&k->paths);
    k->vectorcall = st->host->events ? ing_py_kernel_call_told : ing_py_kernel_call;
    k->st = st;
    k->host = st->host;
    k->epoch = st->host->epoch;
    k->keys = &st->host->next_key;
    if (ing_py_cache_init(k)) return k;
    PyErr_NoMemory();
    Py_DECREF(k);
    return NULL;
}

static PyObject *kernel_make(PyObject *module, PyObject *args, PyObject *kwargs) {
    PyObject *fn, *options, *source;
    if (parse_make("kernel", args, kwargs, &fn, &options, &source) < 0) return NULL;
    ing_py_state *st = ing_py_state_in(module);
    ing_py_kernel *k = ing_py_kernel_new(st);
    if (!k) {
        Py_XDECREF(options);
        Py_XDECREF(source);
        return NULL;
    }
    k->options = options;
    bool ok = is_set(options, "graph", &k->graph) >= 0 &&
              is_set(options, "checkpoints", &k->checkpoints) >= 0 &&
              is_true(options, "fastcache", &k->pure) >= 0 &&
              ing_py_def_init(st, &k->def, fn, source) == 0;
    Py_XDECREF(source);
    if (ok) return (PyObject *)k;
    Py_DECREF(k);
    return NULL;
}

/* ---- what both types show ------------------------------------------------------------------ */

static ing_py_def *own_def(PyObject *self) {
    return ing_py_def_of(ing_py_state_of(self), self);
}

static PyObject *def_attr(ing_py_def *d, const char *name) {
    return ing_py_attr(d->fn, name);
}

static PyObject *kernel_bind(PyObject *self, PyObject *obj, PyObject *type) {
    (void)type;
    if (!obj || obj == Py_None) return Py_NewRef(self);
    return ing_py_bound_new((ing_py_kernel *)self, obj);
}

static PyObject *bind_method(PyObject *self, PyObject *obj, PyObject *type) {
    (void)type;
    if (!obj || obj == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, obj);
}

#define DEF_GETTER(kind, name, attr)                               \
    static PyObject *kind##_##name(PyObject *self, void *unused) { \
        (void)unused;                                              \
        return def_attr(&((ing_py_##kind *)self)->def, attr);      \
    }
DEF_GETTER(kernel, name, "__name__")
DEF_GETTER(kernel, qualname, "__qualname__")
DEF_GETTER(kernel, doc, "__doc__")
DEF_GETTER(func, name, "__name__")
DEF_GETTER(func, qualname, "__qualname__")
DEF_GETTER(func, doc, "__doc__")

/* The module is the function's. A descriptor of that name would hide the type's own, which
 * help() reads. */
bool ing_py_asks_module(PyObject *name) {
    return PyUnicode_CompareWithASCIIString(name, "__module__") == 0;
}

static PyObject *def_getattro(PyObject *self, PyObject *name) {
    return ing_py_asks_module(name) ? PyObject_GetAttr(own_def(self)->fn, name)
                                    : PyObject_GenericGetAttr(self, name);
}

static int def_setattro(PyObject *self, PyObject *name, PyObject *value) {
    return ing_py_asks_module(name) ? PyObject_SetAttr(own_def(self)->fn, name, value)
                                    : PyObject_GenericSetAttr(self, name, value);
}

static PyObject *kernel_wrapped(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((ing_py_kernel *)self)->def.fn);
}

static PyObject *func_wrapped(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((ing_py_func *)self)->def.fn);
}

/* What is the function's own, to be read and assigned: __defaults__, __kwdefaults__. */
static PyObject *get_own(PyObject *self, void *name) {
    return ing_py_attr(own_def(self)->fn, name);
}

static int set_own(PyObject *self, PyObject *value, void *name) {
    return PyObject_SetAttrString(own_def(self)->fn, name, value);
}

static PyObject *kernel_variants(PyObject *self, void *unused) {
    (void)unused;
    ing_py_kernel *k = (ing_py_kernel *)self;
    if (k->epoch != k->host->epoch) ing_py_kernel_reset(k);
    unsigned long n = 0;
    for (uint32_t i = 0; i < k->cache.leaves.len; i++)
        n += ing_py_variant_at(k, i) != NULL;
    return PyLong_FromUnsignedLong(n);
}

static PyObject *kernel_fastcache(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(((ing_py_kernel *)self)->pure);
}

/* For @qd.pure, which stands above @qd.kernel. It is part of the address, so the kernel
 * starts afresh. */
static int kernel_set_fastcache(PyObject *self, PyObject *value, void *unused) {
    (void)unused;
    ing_py_kernel *k = (ing_py_kernel *)self;
    int pure = value ? PyObject_IsTrue(value) : 0;
    if (pure >= 0 && !k->options) k->options = PyDict_New();
    if (pure < 0 || !k->options ||
        PyDict_SetItemString(k->options, "fastcache", value ? value : Py_False) < 0)
        return -1;
    k->pure = pure;
    ing_py_companions_drop(k);
    ing_py_kernel_reset(k);
    return 0;
}

/* What the reference calls src_ll_cache_observations; R14: since the last qd.init. */
static PyObject *kernel_observed(PyObject *self, void *unused) {
    (void)unused;
    ing_py_kernel *k = (ing_py_kernel *)self;
    if (k->epoch != k->host->epoch) ing_py_kernel_reset(k);
    const ing_cache_seen *o = &k->cache.seen;
    return Py_BuildValue("{s:O,s:O,s:O,s:O}", "cache_key_generated",
                         o->key_generated ? Py_True : Py_False, "cache_validated",
                         o->validated ? Py_True : Py_False, "cache_loaded",
                         o->loaded ? Py_True : Py_False, "cache_stored",
                         o->stored ? Py_True : Py_False);
}

static PyObject *kernel_repr(PyObject *self) {
    return PyUnicode_FromFormat("<ingot kernel %s>",
                                ing_py_def_name(&((ing_py_kernel *)self)->def));
}

static PyObject *func_repr(PyObject *self) {
    return PyUnicode_FromFormat("<ingot func %s>",
                                ing_py_def_name(&((ing_py_func *)self)->def));
}

/* lower(*args) -> (trace, ir): what a compile for these arguments would ask and make. */
static PyObject *kernel_lower(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    ing_py_kernel *k = (ing_py_kernel *)self;
    if (n != (Py_ssize_t)k->def.n_params)
        return PyErr_Format(PyExc_TypeError,
                            "lower() takes the kernel's %u arguments, got %zd",
                            k->def.n_params, n);
    ing_err e;
    ing_err_init(&e);
    if (ing_py_check_args(k, args, &e) != ING_OK) return ing_py_raise(k->st, &e);
    return ing_py_lower_text(k, args);
}

/* `closure` says which one. */
static PyObject *kernel_companion(PyObject *self, void *closure) {
    return ing_py_companion((ing_py_kernel *)self, (ing_ad_mode)(size_t)closure);
}

/* ---- funcs ------------------------------------------------------------------------------------ */

static int func_traverse(ing_py_func *f, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(f));
    Py_VISIT(f->options);
    Py_VISIT(f->dict);
    return ing_py_def_traverse(&f->def, visit, arg);
}

static int func_clear(ing_py_func *f) {
    Py_CLEAR(f->options);
    Py_CLEAR(f->dict);
    ing_py_def_fini(&f->def);
    return 0;
}

static void func_dealloc(ing_py_func *f) {
    PyTypeObject *type = Py_TYPE(f);
    PyObject_GC_UnTrack(f);
    if (f->weakrefs) PyObject_ClearWeakRefs((PyObject *)f);
    func_clear(f);
    type->tp_free((PyObject *)f);
    Py_DECREF(type);
}

static PyObject *func_make(PyObject *module, PyObject *args, PyObject *kwargs) {
    PyObject *fn, *options, *source;
    if (parse_make("func", args, kwargs, &fn, &options, &source) < 0) return NULL;
    ing_py_state *st = ing_py_state_in(module);
    PyTypeObject *type = st->host->func_type;
    ing_py_func *f = (ing_py_func *)type->tp_alloc(type, 0);
    if (f)
        f->options = options;
    else
        Py_XDECREF(options);
    if (f && (is_set(options, "requires_top_level", &f->requires_top_level) < 0 ||
              is_set(options, "is_real_function", &f->is_real_function) < 0 ||
              ing_py_def_init(st, &f->def, fn, source) < 0))
        Py_CLEAR(f);
    Py_XDECREF(source);
    return (PyObject *)f;
}

/* A func called from Python runs as the Python function it is. */
static PyObject *func_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    return PyObject_Call(((ing_py_func *)self)->def.fn, args, kwargs);
}

/* ---- the types ---------------------------------------------------------------------------------- */

static const PyGetSetDef kernel_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"__name__", kernel_name, NULL, NULL, NULL},
    {"__qualname__", kernel_qualname, NULL, NULL, NULL},
    {"__doc__", kernel_doc, NULL, NULL, NULL},
    {"__wrapped__", kernel_wrapped, NULL, "the Python function", NULL},
    {"__defaults__", get_own, set_own, NULL, "__defaults__"},
    {"__kwdefaults__", get_own, set_own, NULL, "__kwdefaults__"},
    {"grad", kernel_companion, NULL,
     "The gradient of this kernel, a kernel with the same parameters.",
     (void *)ING_AD_REVERSE},
    {"dual", kernel_companion, NULL,
     "This kernel with its derivative in forward mode, a kernel with the same "
     "parameters.",
     (void *)ING_AD_FORWARD},
    {"_variants", kernel_variants, NULL, "how many variants are in memory", NULL},
    {"_fastcache", kernel_fastcache, kernel_set_fastcache, "marked fastcache=True",
     NULL},
    {"_cache_observed", kernel_observed, NULL, "what the cache did, since qd.init",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ing_py_kernel, vectorcall), READONLY,
     NULL},
    ING_PY_DICT_AND_WEAKREFS(ing_py_kernel),
    {NULL, 0, 0, 0, NULL},
};

/* Copies of functions are the functions themselves, as Python's own do it. */
static PyObject *same_object(PyObject *self, PyObject *memo) {
    (void)memo;
    return Py_NewRef(self);
}

/* ingot/_pickling.py decides: by name, or by text. */
static PyObject *reduce(PyObject *self, const char *kind, PyObject *options) {
    ing_py_def *d = own_def(self);
    if (ing_py_def_text(ing_py_state_of(self), d) < 0) return NULL;
    PyObject *text = d->text ? PyUnicode_FromEncodedObject(d->text, "utf-8", "strict")
                             : Py_NewRef(Py_None);
    PyObject *mod = text ? PyImport_ImportModule("ingot._pickling") : NULL;
    PyObject *out = mod ? PyObject_CallMethod(mod, "reduce", "OsOO", self, kind,
                                              options ? options : Py_None, text)
                        : NULL;
    Py_XDECREF(text);
    Py_XDECREF(mod);
    return out;
}

static PyObject *kernel_reduce(PyObject *self, PyObject *protocol) {
    (void)protocol;
    ing_py_kernel *k = (ing_py_kernel *)self;
    if (!k->primal) return reduce(self, "kernel", k->options);
    PyObject *get = ing_py_import("builtins", "getattr");
    return get ? Py_BuildValue("(N(Os))", get, k->primal,
                               ing_py_companion_name(k->mode))
               : NULL;
}

static PyObject *func_reduce(PyObject *self, PyObject *protocol) {
    (void)protocol;
    return reduce(self, "func", ((ing_py_func *)self)->options);
}

static const PyMethodDef kernel_methods[] = {
    {"__copy__", same_object, METH_NOARGS, NULL},
    {"__reduce_ex__", kernel_reduce, METH_O, NULL},
    {"__deepcopy__", same_object, METH_O, NULL},
    {"lower", (PyCFunction)(void (*)(void))kernel_lower, METH_FASTCALL,
     "lower($self, *args)\n--\n\nWhat a compile for these arguments would ask and "
     "make."},
    {"resume", (PyCFunction)(void (*)(void))ing_py_kernel_resume,
     METH_FASTCALL | METH_KEYWORDS,
     "resume($self, *args, from_checkpoint)\n--\n\nLaunches a kernel with checkpoints "
     "from that one on; what stands before it is skipped."},
    {"_graph_text", (PyCFunction)(void (*)(void))ing_py_graph_text, METH_NOARGS,
     "_graph_text() -> list of (kind, number, place, runs, ns) of the last variant"},
    {NULL, NULL, 0, NULL},
};

static const PyType_Slot kernel_slots[] = {
    ING_PY_COLLECTED(kernel),
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, kernel_bind},
    {Py_tp_repr, kernel_repr},
    {Py_tp_getset, (void *)kernel_getset},
    {Py_tp_members, (void *)kernel_members},
    {Py_tp_methods, (void *)kernel_methods},
    {Py_tp_getattro, def_getattro},
    {Py_tp_setattro, def_setattro},
    {0, NULL},
};

static const PyType_Spec kernel_spec =
    ING_PY_COLLECTED_TYPE("ingot.Kernel", ing_py_kernel,
                          Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                              Py_TPFLAGS_IMMUTABLETYPE,
                          kernel_slots);

static const PyGetSetDef func_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"__name__", func_name, NULL, NULL, NULL},
    {"__qualname__", func_qualname, NULL, NULL, NULL},
    {"__doc__", func_doc, NULL, NULL, NULL},
    {"__wrapped__", func_wrapped, NULL, "the Python function", NULL},
    {"__defaults__", get_own, set_own, NULL, "__defaults__"},
    {"__kwdefaults__", get_own, set_own, NULL, "__kwdefaults__"},
    {NULL, NULL, NULL, NULL, NULL},
};

static const PyMemberDef func_members[] = {
    ING_PY_DICT_AND_WEAKREFS(ing_py_func),
    {NULL, 0, 0, 0, NULL},
};

static const PyMethodDef func_methods[] = {
    {"__copy__", same_object, METH_NOARGS, NULL},
    {"__reduce_ex__", func_reduce, METH_O, NULL},
    {"__deepcopy__", same_object, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static const PyType_Slot func_slots[] = {
    ING_PY_COLLECTED(func),
    {Py_tp_call, func_call},
    {Py_tp_descr_get, bind_method},
    {Py_tp_repr, func_repr},
    {Py_tp_getset, (void *)func_getset},
    {Py_tp_members, (void *)func_members},
    {Py_tp_methods, (void *)func_methods},
    {Py_tp_getattro, def_getattro},
    {Py_tp_setattro, def_setattro},
    {0, NULL},
};

static const PyType_Spec func_spec = ING_PY_COLLECTED_TYPE(
    "ingot.Func", ing_py_func, Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE,
    func_slots);

static const PyMethodDef functions[] = {
    {"kernel", (PyCFunction)(void (*)(void))kernel_make, METH_VARARGS | METH_KEYWORDS,
     "kernel(fn, *, source=None, **options) -> Kernel"},
    {"func", (PyCFunction)(void (*)(void))func_make, METH_VARARGS | METH_KEYWORDS,
     "func(fn, *, source=None, **options) -> Func"},
    {NULL, NULL, 0, NULL},
};

int ing_py_kernel_add(PyObject *module, ing_py_state *st) {
    st->host->kernel_type = ing_py_add_type(module, &kernel_spec);
    st->host->func_type = ing_py_add_type(module, &func_spec);
    if (!st->host->kernel_type || !st->host->func_type) return -1;
    if (ing_py_graph_add(module) < 0 || ing_py_bound_add(module, st) < 0 ||
        ing_py_companion_add(module) < 0 || ing_py_reads_add(module) < 0 ||
        ing_py_partials_add(module) < 0)
        return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
