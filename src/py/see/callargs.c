/* The arguments of a call in a path (R2): the function, the steps of each argument, then CALL.
 * An argument that has a path of its own is named by it; numbers, text and None are one step;
 * a container that the kernel's text makes is OPEN, its items, CLOSE; the name of a keyword
 * stands before its value. The gate writes these steps, replay reads them. */
#include "py/call/kernel.h"

#include <string.h>

/* Larger containers have no name: paths stay short. */
enum { MAX_ITEMS = 64 };

static ing_path add_value(ing_paths *p, ing_path parent, PyObject *value) {
    if (value == Py_None) return ing_path_add(p, parent, ING_STEP_CALL_NONE, NULL, 0);
    if (PyBool_Check(value))
        return ing_path_add(p, parent, ING_STEP_CALL_BOOL, NULL, value == Py_True);
    if (PyLong_CheckExact(value)) {
        int overflow = 0;
        long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow ? 0 : ing_path_add(p, parent, ING_STEP_CALL_INT, NULL, v);
    }
    if (PyFloat_CheckExact(value)) {
        double d = PyFloat_AS_DOUBLE(value);
        int64_t bits;
        memcpy(&bits, &d, sizeof bits);
        return ing_path_add(p, parent, ING_STEP_CALL_FLOAT, NULL, bits);
    }
    PyObject *text = PyUnicode_CheckExact(value) ? ing_py_to_utf8(value) : NULL;
    ing_path path = 0;
    if (text && strlen(PyBytes_AS_STRING(text)) == (size_t)PyBytes_GET_SIZE(text))
        path = ing_path_add(p, parent, ING_STEP_CALL_STR, PyBytes_AS_STRING(text), 0);
    Py_XDECREF(text); /* names end with a null: one that holds any is none */
    return path;
}

static ing_path add_item(ing_paths *p, ing_path at, PyObject *value, uint32_t depth,
                         uint32_t *items);

static ing_path add_box(ing_paths *p, ing_path at, PyObject *box, uint32_t depth,
                        uint32_t *items) {
    ing_step_box kind = PyDict_CheckExact(box)   ? ING_STEP_BOX_DICT
                        : PyList_CheckExact(box) ? ING_STEP_BOX_LIST
                                                 : ING_STEP_BOX_TUPLE;
    PyObject *key, *v;
    Py_ssize_t pos = 0;
    if (depth == ING_PATH_MAX_NESTING - 1) return 0;
    at = ing_path_add(p, at, ING_STEP_CALL_OPEN, NULL, kind);
    if (kind == ING_STEP_BOX_DICT)
        while (at && PyDict_Next(box, &pos, &key, &v)) {
            at = add_item(p, at, key, depth + 1, items);
            if (at) at = add_item(p, at, v, depth + 1, items);
        }
    else
        for (; at && pos < PySequence_Fast_GET_SIZE(box); pos++)
            at = add_item(p, at, PySequence_Fast_GET_ITEM(box, pos), depth + 1, items);
    return at ? ing_path_add(p, at, ING_STEP_CALL_CLOSE, NULL, kind) : 0;
}

static ing_path add_item(ing_paths *p, ing_path at, PyObject *value, uint32_t depth,
                         uint32_t *items) {
    if (++*items > MAX_ITEMS) return 0;
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value) ||
        PyDict_CheckExact(value))
        return add_box(p, at, value, depth, items);
    return add_value(p, at, value);
}

/* The steps that name one argument: by path, or by value. 0: it has neither, or raised. */
ing_path ing_py_call_arg_step(ing_paths *p, ing_path parent, ing_path arg,
                              PyObject *value, bool made) {
    uint32_t items = 0;
    if (arg) return ing_path_add(p, parent, ING_STEP_CALL_PATH, NULL, (int64_t)arg);
    return made ? add_item(p, parent, value, 0, &items) : add_value(p, parent, value);
}

void ing_py_call_args_clear(ing_py_call_args *a) {
    for (; a->n > 0; a->n--) Py_CLEAR(a->open[a->n - 1]);
    Py_CLEAR(a->names);
}

static ing_status begin(ing_py_call_args *a, int64_t box) {
    a->open[a->n] = PyList_New(0);
    if (!a->open[a->n]) return ING_PYTHON;
    a->boxes[a->n++] = (uint8_t)box;
    return ING_OK;
}

/* Adds an argument, or an item of the container that was begun last; takes it. */
ing_status ing_py_call_args_take(ing_py_call_args *a, PyObject *value) {
    ing_status s = !value ? ING_PYTHON : a->n ? ING_OK : begin(a, ING_STEP_BOX_LIST);
    if (s == ING_OK && PyList_Append(a->open[a->n - 1], value) < 0) s = ING_PYTHON;
    Py_XDECREF(value);
    return s;
}

static PyObject *make_dict(PyObject *list, bool *there) {
    PyObject *dict = PyDict_New();
    Py_ssize_t n = PyList_GET_SIZE(list);
    *there = n % 2 == 0;
    for (Py_ssize_t i = 0; dict && i + 1 < n; i += 2)
        if (PyDict_SetItem(dict, PyList_GET_ITEM(list, i),
                           PyList_GET_ITEM(list, i + 1)) < 0)
            Py_CLEAR(dict);
    return dict;
}

/* The container that was begun last becomes an item. */
static ing_status end_box(ing_py_call_args *a, bool *there) {
    *there = a->n > 1;
    if (!*there) return ING_OK;
    PyObject *list = a->open[--a->n], *box = list;
    a->open[a->n] = NULL;
    if (a->boxes[a->n] != ING_STEP_BOX_LIST) {
        box = a->boxes[a->n] == ING_STEP_BOX_TUPLE ? PyList_AsTuple(list)
                                                   : make_dict(list, there);
        Py_DECREF(list);
    }
    return ing_py_call_args_take(a, box);
}

static ing_status begin_box(ing_py_call_args *a, int64_t box, bool *there) {
    if (!a->n) ING_TRY(begin(a, ING_STEP_BOX_LIST));
    *there = a->n < ING_PATH_MAX_NESTING && box >= 0 && box < ING_STEP_BOX_N;
    return *there ? begin(a, box) : ING_OK;
}

static ing_status add_name(ing_py_call_args *a, const char *name) {
    PyObject *text = ing_py_from_utf8(name, strlen(name));
    if (text && !a->names) a->names = PyList_New(0);
    int bad = text && a->names ? PyList_Append(a->names, text) : -1;
    Py_XDECREF(text);
    return bad ? ING_PYTHON : ING_OK;
}

ing_status ing_py_call_args_step(ing_py_call_args *a, const ing_paths *p,
                                 const ing_path_node *n, bool *there) {
    const char *text = ing_atoms_text(&p->atoms, n->atom);
    double d;
    switch ((ing_step)n->step) {
    case ING_STEP_CALL_NONE: return ing_py_call_args_take(a, Py_NewRef(Py_None));
    case ING_STEP_CALL_BOOL:
        return ing_py_call_args_take(a, PyBool_FromLong(n->i != 0));
    case ING_STEP_CALL_INT: return ing_py_call_args_take(a, PyLong_FromLongLong(n->i));
    case ING_STEP_CALL_FLOAT:
        memcpy(&d, &n->i, sizeof d);
        return ing_py_call_args_take(a, PyFloat_FromDouble(d));
    case ING_STEP_CALL_STR:
        return ing_py_call_args_take(a, ing_py_from_utf8(text, strlen(text)));
    case ING_STEP_CALL_NAME: return add_name(a, text);
    case ING_STEP_CALL_OPEN: return begin_box(a, n->i, there);
    case ING_STEP_CALL_CLOSE: return end_box(a, there);
    default:
        PyErr_SetString(PyExc_SystemError, "no argument of a call");
        return ING_PYTHON;
    }
}

ing_status ing_py_call_args_call(ing_py_call_args *a, PyObject *fn, PyObject **out) {
    ing_py_call_args all = *a; /* the call may come back here */
    memset(a, 0, sizeof *a);
    PyObject *tuple = all.n ? PyList_AsTuple(all.open[0]) : PyTuple_New(0);
    PyObject *names = all.names && tuple ? PyList_AsTuple(all.names) : NULL;
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    *out = NULL;
    ing_status s = tuple && (names || !all.names) ? ING_OK : ING_PYTHON;
    /* An index on disk may leave a container open, or names without a value. */
    if (s == ING_OK && fn && all.n <= 1 && named <= PyTuple_GET_SIZE(tuple)) {
        *out = PyObject_Vectorcall(fn, ((PyTupleObject *)tuple)->ob_item,
                                   (size_t)(PyTuple_GET_SIZE(tuple) - named), names);
        if (!*out) s = ING_PYTHON;
    }
    Py_XDECREF(tuple);
    Py_XDECREF(names);
    ing_py_call_args_clear(&all);
    return s;
}
