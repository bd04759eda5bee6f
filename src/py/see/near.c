/* Words for messages: which name was probably meant, what is known of a name that Ingot lacks,
 * whose a function is. Called by the gate when something was refused. Names that cannot be had
 * are no help; asks no questions that are recorded. */
#include "py/call/kernel.h"

#include <stdio.h>
#include <string.h>

/* The nearest of the names in an iterable, if nearer than *best. Private names are nobody's
 * spelling mistake. */
static int look_in(PyObject *names, const char *name, uint32_t *best, char *buf,
                   size_t size) {
    PyObject *it = names ? PyObject_GetIter(names) : NULL, *item;
    while (it && (item = PyIter_Next(it)) != NULL) {
        const char *other = PyUnicode_Check(item) ? PyUnicode_AsUTF8(item) : NULL;
        if (other && (other[0] != '_' || name[0] == '_') &&
            ing_front_is_near(name, other, best))
            snprintf(buf, size, "%s", other);
        Py_DECREF(item);
        if (!other && PyErr_Occurred() && !ing_py_took(PyExc_UnicodeEncodeError)) break;
    }
    Py_XDECREF(it);
    return PyErr_Occurred() && !ing_py_took_any() ? -1 : 0;
}

int ing_py_near_name(const ing_py_def *d, const char *name, char *buf, size_t size) {
    uint32_t best = UINT32_MAX;
    *buf = 0;
    if (look_in(d->free_names, name, &best, buf, size) < 0 ||
        look_in(PyFunction_GET_GLOBALS(d->fn), name, &best, buf, size) < 0)
        return -1;
    return look_in(ing_py_def_builtins(d), name, &best, buf, size);
}

/* What ingot/_absent.py knows of a name that the package lacks: 1, or 0. */
static int absent_name(const char *name, char *buf, size_t size) {
    PyObject *ask = ing_py_import("ingot._absent", "remedy");
    PyObject *text = ask ? PyObject_CallFunction(ask, "s", name) : NULL;
    bool found = text && PyUnicode_Check(text);
    int rc = text ? found : -1;
    if (found && ing_py_show(text, buf, size) < 0) rc = -1;
    Py_XDECREF(ask);
    Py_XDECREF(text);
    return rc < 0 && ing_py_took_any() ? 0 : rc;
}

int ing_py_near_attr(PyObject *of, const char *name, char *buf, size_t size) {
    uint32_t best = UINT32_MAX;
    *buf = 0;
    const char *module = PyModule_Check(of) ? PyModule_GetName(of) : "";
    if (!module && !ing_py_took_any()) return -1;
    int rc = module && strcmp(module, "ingot") == 0 ? absent_name(name, buf, size) : 0;
    if (rc) return rc;
    PyObject *names = PyObject_Dir(of);
    rc = look_in(names, name, &best, buf, size);
    Py_XDECREF(names);
    return rc;
}

int ing_py_is_library(PyObject *fn) {
    PyObject *ask = ing_py_import("ingot._absent", "is_library");
    PyObject *yes = ask ? PyObject_CallOneArg(ask, fn) : NULL;
    int rc = yes ? yes == Py_True : -1;
    Py_XDECREF(ask);
    Py_XDECREF(yes);
    return rc < 0 && ing_py_took_any() ? 0 : rc;
}
