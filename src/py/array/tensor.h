/* Host vectors and matrices, and their types, for the files of src/py that see them, bind
 * them and return them. */
#ifndef ING_PY_TENSOR_H
#define ING_PY_TENSOR_H

#include "py/py.h"

typedef struct ing_py_tensor_type { /* qd.types.vector(...), qd.types.matrix(...) */
    PyObject_HEAD ing_gate_tensor shape;
    uint8_t id;      /* ing_dtype; VOID = any */
    bool follows;    /* default_fp or default_ip, whatever they are set to */
    PyObject *dtype; /* NULL = any */
} ing_py_tensor_type;

typedef struct ing_py_tensor { /* qd.Vector(...), qd.Matrix(...) */
    PyObject_HEAD ing_gate_tensor shape;
    uint8_t id;        /* ing_dtype; VOID: none was given */
    PyObject *dtype;   /* NULL: none was given */
    PyObject *entries; /* list, row major */
} ing_py_tensor;

static inline bool ing_py_is_tensor_type(const ing_py_state *st, PyObject *o) {
    return PyObject_TypeCheck(o, st->tensor_type);
}
static inline bool ing_py_is_tensor(const ing_py_state *st, PyObject *o) {
    return PyObject_TypeCheck(o, st->tensor_value);
}

/* Gives the types that follow default_fp and default_ip what these are now. */
void ing_py_tensor_types_follow(ing_py_state *st);

/* A list of the elements of a vector, matrix or nested sequence; new reference.
 * ING_DECLINED: it is none, or of another shape. */
ing_status ing_py_tensor_flatten(ing_py_state *st, PyObject *obj,
                                 const ing_gate_tensor *t, PyObject **out);
/* A qd.Vector or qd.Matrix around the list; NULL = raised. */
PyObject *ing_py_tensor_result(const ing_gate_tensor *shape, PyObject *dtype,
                               PyObject *entries);
/* The vector or matrix type; NULL = raised. */
PyObject *ing_py_tensor_type_of(const ing_gate_tensor *shape, PyObject *dtype);

#endif
