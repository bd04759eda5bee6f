/* Host structs and struct types, for the files of src/py that see them, bind them and return
 * them. */
#ifndef ING_PY_STRUCT_H
#define ING_PY_STRUCT_H

#include "py/py.h"

typedef struct ing_py_struct_type { /* @qd.dataclass, qd.types.struct(...): immutable */
    PyObject_HEAD ing_gate_struct layout;
    ing_gate_member *members; /* owned: layout.members */
    uint32_t depth;           /* of structs in structs */
    PyObject *types;          /* dict: name -> dtype, vector, matrix or struct type */
    PyObject *methods;        /* dict: name -> callable */
    /* Of those with members that follow default_fp or default_ip, NULL else: */
    struct ing_py_struct_type **link, *newer; /* link: what points to this one */
    ing_py_state *st;                         /* whose list it is */
} ing_py_struct_type;

typedef struct ing_py_struct { /* qd.Struct(...) */
    PyObject_HEAD PyObject
        *entries;      /* dict: name -> number, vector, matrix or struct */
    PyObject *methods; /* dict */
    PyObject *type;    /* NULL: it was made without one */
} ing_py_struct;

typedef struct ing_py_structs { /* an ndarray of structs: an ndarray for each member */
    PyObject_HEAD PyObject *type; /* of its elements */
    int32_t ndim;
} ing_py_structs;

static inline bool ing_py_is_struct_type(const ing_py_state *st, PyObject *o) {
    return PyObject_TypeCheck(o, st->struct_type);
}
static inline bool ing_py_is_struct(const ing_py_state *st, PyObject *o) {
    return PyObject_TypeCheck(o, st->struct_value);
}
static inline bool ing_py_is_structs(const ing_py_state *st, PyObject *o) {
    return PyObject_TypeCheck(o, st->structs_type);
}
static inline const ing_gate_struct *ing_py_layout_of(PyObject *struct_type) {
    return &((ing_py_struct_type *)struct_type)->layout;
}

/* Reads the layouts of struct types again whose vectors follow default_fp or default_ip. */
void ing_py_struct_types_follow(ing_py_state *st);

/* The numbers of a host struct in the order of the layout; new list. ING_DECLINED: it is no
 * struct with these members. */
ing_status ing_py_struct_numbers(ing_py_state *st, PyObject *type, PyObject *obj,
                                 PyObject **out);
/* A struct of that type from the numbers that code returned; NULL = raised. */
PyObject *ing_py_struct_result(PyObject *type, const uint64_t **at);

#endif
