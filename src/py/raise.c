/* The exception classes, and the one way from an ing_err to a raised exception. Called by
 * every file of src/py that fails or passes a failure on. Must never lose a message, nor
 * raise over an exception that is already on its way (ING_PYTHON). */
#include "py/py.h"

#include <string.h>

static const struct {
    const char *name;
    ing_py_exc base;
} classes[] = {
#define X(name, text, base, also) {text, ING_PY_EXC_##base},
    ING_PY_EXC_LIST(X)
#undef X
};

static const char *const docs[ING_PY_EXC_N] = {
    [ING_PY_EXC_ERROR] = "The base of all errors of Ingot.",
    [ING_PY_EXC_COMPILATION] =
        "A kernel cannot be compiled. The message has file, line, "
        "column, the source line and a remedy.",
    [ING_PY_EXC_SYNTAX] = "Something that is not in the language of kernels.",
    [ING_PY_EXC_CALL] =
        "Arguments that do not match the parameters of a kernel or func.",
    [ING_PY_EXC_TYPE] = "An operation on types that do not go together.",
    [ING_PY_EXC_NAME] = "A name that is not defined where a kernel reads it.",
    [ING_PY_EXC_ATTRIBUTE] = "An attribute that is not there when a kernel reads it.",
    [ING_PY_EXC_VALUE] = "A value that a kernel cannot work with, such as a loop that "
                         "no index counts.",
    [ING_PY_EXC_RUNTIME] = "A launch failed, or an object was used after its end.",
    [ING_PY_EXC_RUNTIME_TYPE] =
        "A method of an array or field was given the wrong type.",
    [ING_PY_EXC_ARGUMENT] =
        "An argument that its parameter cannot take: another dtype, "
        "shape or kind, or a number that does not fit.",
    [ING_PY_EXC_ASSERTION] = "An `assert` of a kernel failed, in debug mode.",
    [ING_PY_EXC_INDEX] = "An index beyond an array, field, view or tuple.",
    [ING_PY_EXC_ZERO] = "An integer was divided by zero, in debug mode.",
    [ING_PY_EXC_WARNING] = "The base of all warnings of Ingot.",
    [ING_PY_EXC_RUNTIME_WARNING] =
        "Something outside of kernels is not as asked for: an "
        "option without effect, a cache that is not used.",
    [ING_PY_EXC_STATIC_CALL] = "A Python function is called at every launch, because "
                               "what it returned cannot be known to stay the same.",
};

/* The built-in class that a class of ours is as well; borrowed, or NULL. The PyExc_x are
 * variables, so this cannot be part of the table. */
static PyObject *also_is(ing_py_exc which) {
    switch (which) {
#define X(name, text, base, also) \
    case ING_PY_EXC_##name: return also;
        ING_PY_EXC_LIST(X)
#undef X
    default: return NULL;
    }
}

static PyObject *make_bases(const ing_py_state *st, ing_py_exc which) {
    PyObject *also = also_is(which);
    if (which == ING_PY_EXC_ERROR) return PyTuple_Pack(1, PyExc_Exception);
    if (classes[which].base == ING_PY_EXC_NONE) return PyTuple_Pack(1, also);
    PyObject *base = st->exc[classes[which].base];
    return also ? PyTuple_Pack(2, base, also) : PyTuple_Pack(1, base);
}

int ing_py_raise_add(PyObject *module, ing_py_state *st) {
    for (unsigned i = 0; i < ING_PY_EXC_N; i++) {
        char full[64];
        snprintf(full, sizeof full, "ingot.%s", classes[i].name);
        PyObject *bases = make_bases(st, (ing_py_exc)i);
        if (!bases) return -1;
        st->exc[i] = PyErr_NewExceptionWithDoc(full, docs[i], bases, NULL);
        Py_DECREF(bases);
        if (!st->exc[i] ||
            PyModule_AddObjectRef(module, classes[i].name, st->exc[i]) < 0)
            return -1;
    }
    return 0;
}

int ing_py_raise_traverse(ing_py_state *st, visitproc visit, void *arg) {
    for (unsigned i = 0; i < ING_PY_EXC_N; i++) Py_VISIT(st->exc[i]);
    return 0;
}

void ing_py_raise_clear(ing_py_state *st) {
    for (unsigned i = 0; i < ING_PY_EXC_N; i++) Py_CLEAR(st->exc[i]);
}

/* The class for a status: ours by the name that base.h gives, else a built-in. */
static PyObject *class_of(const ing_py_state *st, ing_status s) {
    const char *name = ing_status_exception(s);
    for (unsigned i = 0; i < ING_PY_EXC_N; i++)
        if (strcmp(name, classes[i].name) == 0 && st->exc[i]) return st->exc[i];
    switch (s) {
    case ING_OS: return PyExc_OSError;
    case ING_MEMORY: return PyExc_MemoryError;
    case ING_CANCELLED: return PyExc_KeyboardInterrupt;
    default: return PyExc_SystemError;
    }
}

static void raise_text(PyObject *cls, const char *text) {
    PyObject *message = ing_py_lenient(text);
    if (!message) return;
    PyErr_SetObject(cls, message);
    Py_DECREF(message);
}

PyObject *ing_py_raise(ing_py_state *st, ing_err *e) {
    if (PyErr_Occurred()) {
        /* already raised: ING_PYTHON is passed up as a bare status, too; and what happened
         * while the message was written (an interrupt) is more than the message */
    } else if (e->status == ING_CANCELLED && !e->text) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    } else if (!e->text) {
        /* No text: memory ran out while the message was written, or before. */
        if (e->status != ING_OK)
            PyErr_NoMemory();
        else
            raise_text(class_of(st, e->status), ing_status_name(e->status));
    } else {
        raise_text(class_of(st, e->status), e->text);
    }
    ing_err_fini(e);
    ing_err_init(e);
    return NULL;
}

PyObject *ing_py_fail(ing_py_state *st, ing_py_exc exc, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    PyErr_FormatV(st->exc[exc] ? st->exc[exc] : PyExc_SystemError, fmt, ap);
    va_end(ap);
    return NULL;
}
