/* qd.init(arch=qd.python): kernels run as the Python functions they are, for a debugger.
 * Called by the kernel's call and by the array's subscript and iteration in that mode only;
 * what they mean then is Python's business (ingot/_pyarch.py). */
#include "py/py.h"

static PyObject *call_module(const char *name, PyObject *args) {
    PyObject *module = PyImport_ImportModule("ingot._pyarch"), *fn = NULL, *r = NULL;
    if (module) fn = PyObject_GetAttrString(module, name);
    if (fn && args) r = PyObject_CallObject(fn, args);
    Py_XDECREF(fn);
    Py_XDECREF(module);
    Py_XDECREF(args);
    return r;
}

PyObject *ing_py_python_cell(PyObject *value, PyObject *array, PyObject *key) {
    return value ? call_module("cell", Py_BuildValue("(NOO)", value, array, key))
                 : NULL;
}

PyObject *ing_py_python_indices(PyObject *array) {
    return call_module("indices", Py_BuildValue("(O)", array));
}

PyObject *ing_py_python_run(PyObject *fn, PyObject *const *args, Py_ssize_t n,
                            PyObject *kwnames) {
    PyObject *positional = PyTuple_New(n), *named = PyDict_New(), *r = NULL;
    for (Py_ssize_t i = 0; positional && i < n; i++)
        PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; named && kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0)
            Py_CLEAR(named);
    if (positional && named)
        r = call_module("run", Py_BuildValue("(OOO)", fn, positional, named));
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return r;
}
