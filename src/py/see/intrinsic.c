/* Which Python callables have a meaning of their own in kernels. Filled while the package
 * is imported (builtins here, the rest by _core.register_intrinsic); asked by the gate
 * about every callable it meets. Must never run a user's __hash__ or __eq__ (R5), so the
 * key is the address, and the callables are kept alive for as long as they are listed. */
#include "py/py.h"

#include <string.h>

static ing_hash128 key_of(PyObject *callable) {
    return (ing_hash128){(uint64_t)(uintptr_t)callable, 0};
}

static int put(ing_py_state *st, PyObject *callable, ing_intrinsic id) {
    ing_hash128 key = key_of(callable);
    if (!ing_map_get(&st->intrinsic_map, key)) {
        if (!ing_vec_push(&st->intrinsics, callable)) goto no_memory;
        Py_INCREF(callable);
    }
    if (!ing_map_put(&st->intrinsic_map, key, (uint32_t)id)) goto no_memory;
    return 0;
no_memory:
    PyErr_NoMemory();
    return -1;
}

ing_intrinsic ing_py_intrinsic_of(const ing_py_state *st, PyObject *callable) {
    return (ing_intrinsic)ing_map_get(&st->intrinsic_map, key_of(callable));
}

static PyObject *register_intrinsic(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *callable;
    const char *name;
    if (!PyArg_ParseTuple(args, "Os:register_intrinsic", &callable, &name)) return NULL;
    ing_intrinsic id = ing_intrinsic_find(name);
    if (id == ING_IN_NONE)
        return PyErr_Format(PyExc_ValueError, "no intrinsic is called '%s'", name);
    if (put(st, callable, id) < 0) return NULL;
    Py_INCREF(callable);
    return callable;
}

static PyObject *intrinsic_name(PyObject *module, PyObject *callable) {
    ing_intrinsic id = ing_py_intrinsic_of(ing_py_state_in(module), callable);
    if (id == ING_IN_NONE) Py_RETURN_NONE;
    return PyUnicode_FromString(ing_intrinsic_name(id));
}

static const PyMethodDef methods[] = {
    {"register_intrinsic", register_intrinsic, METH_VARARGS,
     "register_intrinsic(callable, name): inside kernels, callable means the "
     "intrinsic; "
     "returns callable."},
    {"intrinsic_name", intrinsic_name, METH_O,
     "The name under which a callable was registered, or None."},
    {0},
};

/* A builtin that this Python does not have is no error: nothing can name it then. */
static int add_builtins(ing_py_state *st) {
    static const char prefix[] = "builtins.";
    PyObject *builtins = PyImport_ImportModule("builtins");
    int rc = builtins ? 0 : -1;
    for (unsigned i = 1; rc == 0 && i < ING_IN_N; i++) {
        const char *name = ing_intrinsic_name((ing_intrinsic)i);
        if (strncmp(name, prefix, sizeof prefix - 1) != 0) continue;
        PyObject *o;
        rc = ing_py_attr_maybe(builtins, name + sizeof prefix - 1, &o);
        if (rc == 1) rc = put(st, o, (ing_intrinsic)i);
        Py_XDECREF(o);
    }
    Py_XDECREF(builtins);
    return rc;
}

int ing_py_intrinsic_add(PyObject *module, ing_py_state *st) {
    ing_map_init(&st->intrinsic_map);
    if (PyModule_AddFunctions(module, (PyMethodDef *)methods) < 0) return -1;
    return add_builtins(st);
}

int ing_py_intrinsic_traverse(ing_py_state *st, visitproc visit, void *arg) {
    for (uint32_t i = 0; i < st->intrinsics.len; i++) Py_VISIT(st->intrinsics.at[i]);
    return 0;
}

void ing_py_intrinsic_clear(ing_py_state *st) {
    /* The addresses stop being valid here, so the map must go first. */
    ing_map_fini(&st->intrinsic_map);
    while (st->intrinsics.len) Py_DECREF(st->intrinsics.at[--st->intrinsics.len]);
}

void ing_py_intrinsic_fini(ing_py_state *st) {
    ing_py_intrinsic_clear(st);
    ing_vec_fini(&st->intrinsics);
}
