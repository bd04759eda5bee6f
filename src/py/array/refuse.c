/* What arrays and fields are asked for outside of kernels and do not have: operators and
 * NumPy's other methods. Slots of their types; each says what to write instead. A number is
 * made of an array without axes. Never answers for the type on the other side of an operator. */
#include "py/array/refuse.h"

#include <string.h>

/* Would the other side not know either? NumPy's arrays and torch's tensors do, and get their turn. */
static bool is_ours_to_refuse(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o) ||
           PyBool_Check(o) || PyUnicode_Check(o) || PyList_Check(o) ||
           PyTuple_Check(o) || o == Py_None || strncmp(t->tp_name, "ingot.", 6) == 0;
}

static PyObject *refuse(PyObject *a, PyObject *b, const char *op) {
    if (!is_ours_to_refuse(a) || !is_ours_to_refuse(b)) Py_RETURN_NOTIMPLEMENTED;
    PyErr_Format(
        PyExc_TypeError,
        "unsupported operand type(s) for %s: '%.100s' and '%.100s': outside of "
        "kernels NumPy does it, np.asarray(a) %s b; in a kernel, loop over the "
        "elements",
        op, Py_TYPE(a)->tp_name, Py_TYPE(b)->tp_name, op);
    return NULL;
}

#define OPERATOR(name, op)                                       \
    PyObject *ing_py_array_no_##name(PyObject *a, PyObject *b) { \
        return refuse(a, b, op);                                 \
    }
OPERATOR(add, "+")
OPERATOR(subtract, "-")
OPERATOR(multiply, "*")
OPERATOR(divide, "/")
OPERATOR(floor_divide, "//")
OPERATOR(remainder, "%")
OPERATOR(matmul, "@")
OPERATOR(and, "&")
OPERATOR(or, "|")
OPERATOR(xor, "^")

PyObject *ing_py_array_no_power(PyObject *a, PyObject *b, PyObject *modulus) {
    (void)modulus;
    return refuse(a, b, "**");
}

PyObject *ing_py_array_no_negative(PyObject *a) {
    PyErr_Format(
        PyExc_TypeError,
        "bad operand type for unary -: '%.100s': outside of kernels NumPy does "
        "it, -np.asarray(a); in a kernel, loop over the elements",
        Py_TYPE(a)->tp_name);
    return NULL;
}

static PyObject *only_element(PyObject *self, const char *what) {
    PyObject *shape = PyObject_GetAttrString(self, "shape");
    if (!shape) return NULL;
    bool none = PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == 0;
    if (!none)
        ing_py_fail(ing_py_state_of(self), ING_PY_EXC_RUNTIME_TYPE,
                    "%s() takes one number: an element, a[i], or an array without "
                    "axes; this one has %zd",
                    what, PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : 1);
    Py_DECREF(shape);
    return none ? PyObject_GetItem(self, Py_None) : NULL;
}

static PyObject *number_of(PyObject *self, PyTypeObject *type) {
    PyObject *x = only_element(self, type->tp_name);
    PyObject *number = x ? PyObject_CallOneArg((PyObject *)type, x) : NULL;
    Py_XDECREF(x);
    return number;
}

PyObject *ing_py_array_float(PyObject *self) {
    return number_of(self, &PyFloat_Type);
}

PyObject *ing_py_array_int(PyObject *self) {
    return number_of(self, &PyLong_Type);
}

PyObject *ing_py_array_no_attribute(PyObject *self, PyObject *name) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_Check(name) ||
        !PyUnicode_GET_LENGTH(name) || PyUnicode_READ_CHAR(name, 0) == '_')
        return NULL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *ask = ing_py_import("ingot._absent", "of_array");
    PyObject *text = ask ? PyObject_CallFunctionObjArgs(ask, self, name, NULL) : NULL;
    Py_XDECREF(ask);
    if (text && PyUnicode_Check(text)) {
        PyErr_SetObject(PyExc_AttributeError, text);
        Py_CLEAR(type);
        Py_CLEAR(value);
        Py_CLEAR(trace);
    } else if (text) {
        PyErr_Restore(type, value, trace);
        type = value = trace = NULL;
    }
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return NULL;
}
