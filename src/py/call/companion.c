/* The derivatives of a kernel: kernels of their own, made of the same function (src/ad), with
 * a cache of their own. And launches that do not go straight ahead: arch=qd.python, those of
 * derivatives, and those that somebody listens to (ingot/ad.py). Called by kernel.c, bound.c
 * and call.c; ordinary launches ask one flag. */
#include "py/call/kernel.h"

#include <string.h>

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

/* (key, reading ...) of the launch that was just made; a reference, NULL = raised. */
static PyObject *launch_of(ing_py_kernel *k, PyObject *const *full) {
    PyObject *out = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s = ing_py_reading(k, full, true, &out, &e);
    if (s == ING_OK) return out;
    if (s == ING_DECLINED) /* what it reads changes each time it is read */
        ing_fail(&e, ING_RUNTIME, "%s: what the kernel reads changed while it ran",
                 ing_py_def_name(&k->def));
    return ing_py_raise(k->st, &e);
}

static bool same_item(PyObject *a, PyObject *b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyFloat_CheckExact(a)) {
        double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    return PyLong_CheckExact(a) && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

/* Does the kernel read from outside what it read in that launch? False = raised. */
static bool reads_the_same(ing_py_kernel *k, PyObject *const *full, PyObject *launch) {
    PyObject *now = NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(launch);
    ing_err e;
    ing_err_init(&e);
    ing_status s = n > 1 ? ing_py_reading(k, full, false, &now, &e) : ING_OK;
    bool same = n == 1 || (now && PyTuple_GET_SIZE(now) == n);
    for (Py_ssize_t i = 1; same && i < n; i++)
        same = same_item(PyTuple_GET_ITEM(now, i), PyTuple_GET_ITEM(launch, i));
    Py_XDECREF(now);
    if (same) return true;
    if (s == ING_OK || s == ING_DECLINED)
        ing_fail(
            &e, ING_RUNTIME,
            "%s: something that the kernel reads from outside (a global, a member, a "
            "captured array) was assigned between the launch and its gradient, which "
            "needs what the launch found\nhelp: pass it as an argument, or assign it "
            "after the gradient",
            ing_py_def_name(&k->def));
    ing_py_raise(k->st, &e);
    return false;
}

static PyObject *tuple_of(PyObject *const *items, uint32_t n) {
    PyObject *t = PyTuple_New((Py_ssize_t)n);
    for (uint32_t i = 0; t && i < n; i++)
        PyTuple_SET_ITEM(t, (Py_ssize_t)i, Py_NewRef(items[i]));
    return t;
}

/* A list is told of launches that are done: (kernel, arguments, launch). Anything else is called
 * in place of the launch, with kernel and arguments. */
static PyObject *listened(ing_py_kernel *k, PyObject *const *full, PyObject *label) {
    PyObject *listener = Py_NewRef(k->host->listener), *result = NULL;
    PyObject *args = tuple_of(full, k->def.n_params);
    if (args && PyList_Check(listener)) {
        result = ing_py_launch(k, full, label);
        PyObject *launch = result ? launch_of(k, full) : NULL;
        PyObject *one = launch ? PyTuple_Pack(3, (PyObject *)k, args, launch) : NULL;
        if (!one || PyList_Append(listener, one) < 0) Py_CLEAR(result);
        Py_XDECREF(launch);
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

/* A gradient in a block of FwdMode would be a plain one, its dual untouched: a second derivative that is
 * silently 0. */
static bool may_reverse(ing_py_kernel *k) {
    const ing_py_host *h = k->host;
    PyObject *mark = NULL;
    if (!h->listener || h->listening != PyThread_get_thread_ident()) return true;
    int rc = ing_py_attr_maybe(h->listener, "_no_gradients", &mark);
    Py_XDECREF(mark);
    if (rc == 1)
        ing_py_fail(k->st, ING_PY_EXC_RUNTIME,
                    "%s in a block of FwdMode: derivatives of gradients are not "
                    "computed\nhelp: take differences of two gradients, or write the "
                    "gradient as a kernel of its own",
                    ing_py_def_name(&k->def));
    return rc == 0;
}

PyObject *ing_py_launch_aside(ing_py_kernel *k, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames, PyObject *label) {
    const ing_py_host *h = k->host;
    if (k->st->settings.at[ING_SET_python]) return python_launch(k, args, n, kwnames);
    PyObject *full[ING_PY_MAX_PARAMS], *held = NULL, *result = NULL;
    if (!ing_py_arrange(k, args, n, kwnames, full, &held))
        result = NULL;
    else if (k->mode == ING_AD_REVERSE)
        result = may_reverse(k) ? reverse(k, full, k->primal->key) : NULL;
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

/* Kernel and arguments of a call of the functions below; NULL = raised. */
static PyObject *const *full_of(PyObject *module, PyObject *const *args, Py_ssize_t n,
                                const char *usage) {
    const ing_py_state *st = ing_py_state_in(module);
    if (n < 2 || n > 3 || Py_TYPE(args[0]) != st->host->kernel_type ||
        !PyTuple_Check(args[1]) ||
        (n == 3 && args[2] != Py_None &&
         (!PyTuple_Check(args[2]) || PyTuple_GET_SIZE(args[2]) < 1))) {
        PyErr_SetString(PyExc_TypeError, usage);
        return NULL;
    }
    const ing_py_kernel *k = (ing_py_kernel *)args[0];
    if (PyTuple_GET_SIZE(args[1]) == (Py_ssize_t)k->def.n_params)
        return ((PyTupleObject *)args[1])->ob_item;
    PyErr_Format(PyExc_TypeError, "launch: %s takes %u arguments",
                 ing_py_def_name(&k->def), k->def.n_params);
    return NULL;
}

static PyObject *launch_with(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    PyObject *const *full =
        full_of(module, args, n, "launch(kernel, arguments, launch=None)");
    if (!full) return NULL;
    ing_py_kernel *k = (ing_py_kernel *)args[0];
    PyObject *launch = n == 3 && args[2] != Py_None ? args[2] : NULL;
    uint64_t key = launch ? PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(launch, 0)) : 0;
    if (PyErr_Occurred()) return NULL;
    bool backward = k->mode == ING_AD_REVERSE;
    if (launch && !reads_the_same(backward ? k->primal : k, full, launch)) return NULL;
    if (backward) return reverse(k, full, key);
    return launch ? once_more(k, full, key) : ing_py_launch(k, full, NULL);
}

static PyObject *last_launch(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    PyObject *const *full = full_of(module, args, n, "last_launch(kernel, arguments)");
    return full ? launch_of((ing_py_kernel *)args[0], full) : NULL;
}

static PyObject *observe_bounds(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state_in(module)->observed = true;
    Py_RETURN_NONE;
}

static PyObject *check_launch(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    PyObject *const *full =
        full_of(module, args, n, "check_launch(kernel, arguments, launch)");
    if (!full || n != 3 || args[2] == Py_None) return full ? Py_NewRef(Py_None) : NULL;
    if (!reads_the_same((ing_py_kernel *)args[0], full, args[2])) return NULL;
    Py_RETURN_NONE;
}

#define FAST(f) (PyCFunction)(void (*)(void)) f, METH_FASTCALL
static const PyMethodDef functions[] = {
    {"observe_bounds", observe_bounds, METH_NOARGS,
     "observe_bounds()\n\nFrom now on the counter launch_sized counts the bounds of "
     "all "
     "inner loops of gradients that depend on data, also where no stack needs them."},
    {"listen", listen, METH_O,
     "listen(listener) -> the one before\n\nA list gets (kernel, arguments, launch) of "
     "each launch of this thread; a function is called in place of it; None: nobody."},
    {"launch", FAST(launch_with),
     "launch(kernel, arguments, launch=None)\n\nA launch that nobody listens to, with "
     "an "
     "argument per parameter; launch: an earlier one, whose random numbers it takes "
     "and "
     "whose values from outside it must find."},
    {"last_launch", FAST(last_launch),
     "last_launch(kernel, arguments) -> its last one: the key of its random numbers, "
     "what "
     "it read from outside"},
    {"check_launch", FAST(check_launch),
     "check_launch(kernel, arguments, launch)\n\nRaises unless the kernel would read "
     "from outside what it read then."},
    {NULL, NULL, 0, NULL},
};
#undef FAST

int ing_py_companion_add(PyObject *module) {
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
