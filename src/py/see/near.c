/* Which name was probably meant: for "did you mean" in messages. Called by the gate after a
 * look-up has failed. Names that cannot be had are no help; asks no questions that are
 * recorded. */
#include "py/call/kernel.h"

#include <stdio.h>

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

int ing_py_near_attr(PyObject *of, const char *name, char *buf, size_t size) {
    uint32_t best = UINT32_MAX;
    *buf = 0;
    PyObject *names = PyObject_Dir(of);
    int rc = look_in(names, name, &best, buf, size);
    Py_XDECREF(names);
    return rc;
}
