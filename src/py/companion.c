/* The derivatives of a kernel: kernels of their own, made of the same function (src/ad), with
 * a cache of their own. And launches that do not go straight ahead: arch=qd.python, those of
 * derivatives, and those that somebody listens to (ingot/ad.py). Called by kernel.c, bound.c
 * and call.c; ordinary launches ask one flag. */
#include "py/kernel.h"

const char *ing_py_companion_name(ing_ad_mode mode) {
    static const char *const names[] = {NULL, "grad", "dual", "grad"};
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
    if (mode == ING_AD_REVERSE) c->keys = &c->forward_key;
    static const char *const names[] = {"", ".grad", ".dual", ".grad.room"};
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

PyObject *ing_py_launch_aside(ing_py_kernel *k, PyObject *const *args, size_t nargsf,
                              PyObject *kwnames, PyObject *label) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (k->st->settings.at[ING_SET_python]) return python_launch(k, args, n, kwnames);
    if (k->mode == ING_AD_REVERSE) k->forward_key = k->primal->key;
    return ing_py_launch_now(k, args, n, kwnames, label);
}
