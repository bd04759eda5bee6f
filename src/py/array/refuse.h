/* What arrays and fields do not have outside of kernels: slots for their types (refuse.c). */
#ifndef ING_PY_ARRAY_REFUSE_H
#define ING_PY_ARRAY_REFUSE_H

#include "py/py.h"

PyObject *ing_py_array_no_add(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_subtract(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_multiply(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_divide(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_floor_divide(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_remainder(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_matmul(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_and(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_or(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_xor(PyObject *a, PyObject *b);
PyObject *ing_py_array_no_power(PyObject *a, PyObject *b, PyObject *modulus);
PyObject *ing_py_array_no_negative(PyObject *a);
/* float(a) and int(a) of an array without axes. */
PyObject *ing_py_array_float(PyObject *self);
PyObject *ing_py_array_int(PyObject *self);
/* The AttributeError that is set says what to write instead, where that is known. NULL. */
PyObject *ing_py_array_no_attribute(PyObject *self, PyObject *name);

#define ING_PY_ARRAY_REFUSED                                                           \
    {Py_nb_add, ing_py_array_no_add}, {Py_nb_subtract, ing_py_array_no_subtract},      \
        {Py_nb_multiply, ing_py_array_no_multiply},                                    \
        {Py_nb_true_divide, ing_py_array_no_divide},                                   \
        {Py_nb_floor_divide, ing_py_array_no_floor_divide},                            \
        {Py_nb_remainder, ing_py_array_no_remainder},                                  \
        {Py_nb_matrix_multiply, ing_py_array_no_matmul},                               \
        {Py_nb_and, ing_py_array_no_and}, {Py_nb_or, ing_py_array_no_or},              \
        {Py_nb_xor, ing_py_array_no_xor}, {Py_nb_power, ing_py_array_no_power},        \
        {Py_nb_negative, ing_py_array_no_negative}, {Py_nb_float, ing_py_array_float}, \
    {                                                                                  \
        Py_nb_int, ing_py_array_int                                                    \
    }

#endif
