/* The derivatives of a kernel: kernels of their own, made of the same function (src/ad), with
 * a cache of their own. And launches that do not go straight ahead: arch=qd.python, those of
 * derivatives, and those that somebody listens to (ingot/ad.py). Called by kernel.c, bound.c
 * and call.c; ordinary launches ask one flag. */
#include "py/kernel.h"

const char *ing_py_companion_name(ing_ad_mode mode) {
    static const char *const names[] = {NULL, "grad", "dual", "grad", "grad", "grad"};
    return names[mode];
}

void ing_py_companions_drop(ing_py_kernel *k) {
    for (uint32_t i = 0; i < ING_PY_COMPANIONS; i++) Py_CLEAR(k->companions[i]);
}

static ing_py_kernel *companion_new(ing_py_kernel *k, ing_ad_mode mode) {
    ing_py_kernel *c = ing_py_kernel_new(k->st);
    if (!c) return NULL;
    c->mode = mode;
    c->primal = (ing_py_kernel *)Py_NewRef((PyObject *)k);
    c->options = Py_XNewRef(k->options);
    c->graph = k->graph;
    c->checkpoints = k->checkpoints;
    c->pure = k->pure;
    if (mode == ING_AD_REVERSE || mode == ING_AD_SIZE || mode == ING_AD_BOUNDS)
        c->keys = &c->forward_key;
    static const char *const names[] = {"",           ".grad",       ".dual",
                                        ".grad.room", ".grad.check", ".grad.bounds"};
    if (ing_py_def_copy(k->st, &c->def, &k->def, names[mode]) == 0) return c;
    Py_DECREF(c);
    return NULL;
}

PyObject *ing_py_companion(ing_py_kernel *k, ing_ad_mode mode) {
    if (k->mode)
        return PyErr_Format(PyExc_AttributeError,
                            "%s is a derivative itself: it has no .%s, kernels are "
                            "differentiated once",
                            ing_py_def_name(&k->def), ing_py_companion_name(mode));
    ing_py_kernel **at = &k->companions[mode - 1];
    ing_py_kernel *made = *at ? NULL : companion_new(k, mode);
    if (!*at)
        *at = made; /* Python ran */
    else
        Py_XDECREF(made);
    return Py_XNewRef((PyObject *)*at);
}

/* ---- launches ------------------------------------------------------------------------------- */

static PyObject *python_launch(ing_py_kernel *k, PyObject *const *args, Py_ssize_t n,
                               PyObject *kwnames) {
    if (k->checkpoints || k->mode)
        return PyErr_Format(PyExc_RuntimeError,
                            "%s: %s a compiled kernel; qd.interp can be stepped "
                            "through too",
                            ing_py_def_name(&k->def),
                            k->mode ? "derivatives need" : "checkpoints need");
    return ing_py_python_run(k->def.fn, args, n, kwnames);
}

ing_status ing_py_forward_unknown(ing_py_kernel *k, const ing_py_variant *v,
                                  ing_err *e) {
    if (!v->record.draws) return ING_OK;
    return ing_fail(e, ING_RUNTIME,
                    "%s needs the random numbers of the launch that it is the reverse "
                    "of, and there was none\nhelp: launch %s first",
                    ing_py_def_name(&k->def), ing_py_def_name(&k->primal->def));
}

/* The reverse of the launch with this key, 0 = it is unknown. */
static PyObject *reverse(ing_py_kernel *k, PyObject *const *full, uint64_t key) {
    k->forward_key = key;
    PyObject *result = ing_py_launch(k, full, key ? NULL : Py_None);
    if (result && k->st->observed && ing_py_bounds_count(k, full) < 0) Py_CLEAR(result);
    return result;
}

static PyObject *tuple_of(PyObject *const *items, uint32_t n) {
    PyObject *t = PyTuple_New((Py_ssize_t)n);
    for (uint32_t i = 0; t && i < n; i++)
        PyTuple_SET_ITEM(t, (Py_ssize_t)i, Py_NewRef(items[i]));
    return t;
}

/* A list is told of launches that are done: (kernel, arguments, key). Anything else is called
 * in place of the launch, with kernel and arguments. */
static PyObject *listened(ing_py_kernel *k, PyObject *const *full, PyObject *label) {
    PyObject *listener = Py_NewRef(k->host->listener), *result = NULL;
    PyObject *args = tuple_of(full, k->def.n_params);
    if (args && PyList_Check(listener)) {
        result = ing_py_launch(k, full, label);
        PyObject *one =
            result ? Py_BuildValue("(OOK)", k, args, (unsigned long long)k->key) : NULL;
        if (!one || PyList_Append(listener, one) < 0) Py_CLEAR(result);
        Py_XDECREF(one);
    } else if (args && label) {
        PyErr_Format(PyExc_RuntimeError, "%s is resumed, which has no derivative",
                     ing_py_def_name(&k->def));
    } else if (args) {
        result = PyObject_CallFunctionObjArgs(listener, (PyObject *)k, args, NULL);
    }
    Py_XDECREF(args);
    Py_DECREF(listener);
    return result;
}

PyObject *ing_py_launch_aside(ing_py_kernel *k, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames, PyObject *label) {
    const ing_py_host *h = k->host;
    if (k->st->settings.at[ING_SET_python]) return python_launch(k, args, n, kwnames);
    PyObject *full[ING_PY_MAX_PARAMS], *held = NULL, *result = NULL;
    if (!ing_py_arrange(k, args, n, kwnames, full, &held))
        result = NULL;
    else if (k->mode == ING_AD_REVERSE)
        result = reverse(k, full, k->primal->key);
    else if (!k->mode && h->listener && h->listening == PyThread_get_thread_ident())
        result = listened(k, full, label);
    else
        result = ing_py_launch(k, full, label);
    Py_XDECREF(held);
    return result;
}

/* ---- for ingot/ad.py ------------------------------------------------------------------------ */

static PyObject *listen(PyObject *module, PyObject *listener) {
    ing_py_host *h = ing_py_state_in(module)->host;
    PyObject *before = h->listener ? h->listener : Py_NewRef(Py_None);
    h->listener = listener == Py_None ? NULL : Py_NewRef(listener);
    h->listening = PyThread_get_thread_ident();
    h->aside = h->st->settings.at[ING_SET_python] || h->listener;
    return before;
}

/* A forward launch once more, with the random numbers that it had. */
static PyObject *once_more(ing_py_kernel *k, PyObject *const *full, uint64_t key) {
    uint64_t *keys = k->keys;
    k->keys = &key;
    PyObject *result = ing_py_launch(k, full, NULL);
    k->keys = keys;
    return result;
}

static PyObject *launch_with(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    const ing_py_state *st = ing_py_state_in(module);
    if (n < 2 || n > 3 || Py_TYPE(args[0]) != st->host->kernel_type ||
        !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "launch(kernel, arguments, key=None)");
    ing_py_kernel *k = (ing_py_kernel *)args[0];
    uint64_t key =
        n == 3 && args[2] != Py_None ? PyLong_AsUnsignedLongLong(args[2]) : 0;
    if (PyErr_Occurred()) return NULL;
    if (PyTuple_GET_SIZE(args[1]) != (Py_ssize_t)k->def.n_params)
        return PyErr_Format(PyExc_TypeError, "launch: %s takes %u arguments",
                            ing_py_def_name(&k->def), k->def.n_params);
    PyObject *const *full = ((PyTupleObject *)args[1])->ob_item;
    if (k->mode == ING_AD_REVERSE) return reverse(k, full, key);
    return key ? once_more(k, full, key) : ing_py_launch(k, full, NULL);
}

static PyObject *last_key(PyObject *module, PyObject *kernel) {
    if (Py_TYPE(kernel) != ing_py_state_in(module)->host->kernel_type)
        return PyErr_Format(PyExc_TypeError, "last_key(kernel)");
    return PyLong_FromUnsignedLongLong(((ing_py_kernel *)kernel)->key);
}

static PyObject *observe_bounds(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state_in(module)->observed = true;
    Py_RETURN_NONE;
}

static const PyMethodDef functions[] = {
    {"observe_bounds", observe_bounds, METH_NOARGS,
     "observe_bounds()\n\nFrom now on the counter launch_sized counts the bounds of "
     "all "
     "inner loops of gradients that depend on data, also where no stack needs them."},
    {"listen", listen, METH_O,
     "listen(listener) -> the one before\n\nA list gets (kernel, arguments, key) of "
     "each "
     "launch of this thread; a function is called in place of it; None: nobody."},
    {"launch", (PyCFunction)(void (*)(void))launch_with, METH_FASTCALL,
     "launch(kernel, arguments, key=None)\n\nA launch that nobody listens to, with an "
     "argument per parameter; key: the random numbers of an earlier one."},
    {"last_key", last_key, METH_O, "last_key(kernel) -> of its last launch"},
    {NULL, NULL, 0, NULL},
};

int ing_py_companion_add(PyObject *module) {
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
