/* Looking things up so that "there is none" and an error are told apart. CPython's older
 * functions (PyDict_GetItemString, PyObject_HasAttr and others; tools/check_swallow.py has the
 * list) take no memory, an interrupt or a failing __eq__ for "no". From 3.13 on it has siblings
 * that do not; here they are for older Pythons, under the same names. All of them: 1 = *out is
 * a new reference, 0 = there is none, -1 = raised; *out is NULL unless 1. */
#ifndef ING_PY_COMPAT_H
#define ING_PY_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#if PY_VERSION_HEX < 0x030D0000
static inline int PyDict_GetItemRef(PyObject *dict, PyObject *key, PyObject **out) {
    *out = Py_XNewRef(PyDict_GetItemWithError(dict, key));
    return *out ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int PyDict_GetItemStringRef(PyObject *dict, const char *key,
                                          PyObject **out) {
    PyObject *name = PyUnicode_FromString(key);
    *out = NULL;
    int rc = name ? PyDict_GetItemRef(dict, name, out) : -1;
    Py_XDECREF(name);
    return rc;
}

/* Makes no AttributeError where PyObject_GenericGetAttr would be asked. */
static inline int PyObject_GetOptionalAttr(PyObject *of, PyObject *name,
                                           PyObject **out) {
    return _PyObject_LookupAttr(of, name, out);
}

static inline int PyMapping_GetOptionalItemString(PyObject *of, const char *key,
                                                  PyObject **out) {
    *out = PyMapping_GetItemString(of, key);
    if (*out) return 1;
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) return -1;
    PyErr_Clear();
    return 0;
}

static inline int PyWeakref_GetRef(PyObject *ref, PyObject **out) {
    PyObject *o = PyWeakref_GetObject(ref);
    *out = o && o != Py_None ? Py_NewRef(o) : NULL;
    return !o ? -1 : *out != NULL;
}
#endif

/* The thread state that holds the GIL if this thread does; before 3.12 else that of another
 * thread, or NULL. */
static inline PyThreadState *ing_py_current(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* Takes the exception for an answer if it is of this class, or of one in this tuple: true, and
 * it is cleared. False: none is set, or another one, which is the caller's to hand on. */
static inline bool ing_py_took(PyObject *kind) {
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(kind)) return false;
    PyErr_Clear();
    return true;
}

/* Is the exception one that a program or a library may raise to say no? What says nothing
 * about the question (no memory, no stack, an interrupt, an exit) is none of these. */
static inline bool ing_py_is_refusal(void) {
    return PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception) &&
           !PyErr_ExceptionMatches(PyExc_MemoryError) &&
           !PyErr_ExceptionMatches(PyExc_RecursionError);
}

static inline bool ing_py_took_any(void) {
    return ing_py_is_refusal() && ing_py_took(PyExc_Exception);
}

/* Is this what a weak reference of our own refers to? Asking one cannot fail. */
static inline bool ing_py_refers(PyObject *ref, const void *to) {
    PyObject *o = NULL;
    if (PyWeakref_GetRef(ref, &o) < 0) PyErr_Clear();
    Py_XDECREF(o);
    return o == to;
}

#endif
