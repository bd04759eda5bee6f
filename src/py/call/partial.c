/* Gradients that hold partial sums, since a launch that adds to them ended with an error: until
 * something else is written to such an array, gradients that would add to it are refused, and
 * Tape clears it (ingot/ad.py). A launch looks at one counter. Called by call.c. */
#include "py/array/field.h"
#include "py/call/guard.h"
#include "trace/notes.h"

/* The number that torch counts up when one of its operations writes to a tensor, plus 1; 0: it is none. */
static uint64_t version_of(PyObject *obj) {
    PyObject *type, *value, *trace; /* of the launch that failed */
    PyErr_Fetch(&type, &value, &trace);
    PyObject *version = PyObject_GetAttrString(obj, "_version");
    uint64_t v = version ? PyLong_AsUnsignedLongLong(version) : 0;
    bool known = version && !PyErr_Occurred();
    Py_XDECREF(version);
    PyErr_Restore(type, value, trace); /* in place of one raised here */
    return known ? v + 1 : 0;
}

/* Its memory was given back, as by qd.reset: it holds nothing any more. */
static bool is_gone(const ing_py_field *f) {
    return f->block && !f->block->mem;
}

/* The number that changes with what an array holds; 0: nobody knows (other libraries), or it is gone. */
static uint64_t stamp_of(const ing_py_state *st, PyObject *obj) {
    if (ing_py_is_array(st, obj)) return ((const ing_py_array *)obj)->generation;
    if (!ing_py_is_field(st, obj)) return version_of(obj);
    const ing_py_field *f = (const ing_py_field *)obj;
    if (f->whole) f = (const ing_py_field *)f->whole;
    uint64_t most = is_gone(f) ? 0 : f->generation;
    for (Py_ssize_t i = 0; f->parts && i < PyTuple_GET_SIZE(f->parts); i++) {
        const ing_py_field *part = (const ing_py_field *)PyTuple_GET_ITEM(f->parts, i);
        if (is_gone(part)) return 0;
        if (part->generation > most) most = part->generation;
    }
    return most;
}

static PyObject *written(const ing_py_bind *b, PyObject *const *args,
                         PyObject *const *held) {
    if (!b->written) return NULL;
    if (b->kind == ING_BIND_ARRAY) return args[b->arg];
    return b->kind == ING_BIND_CAPTURED ? held[b->fetch - 1] : NULL;
}

static void drop(ing_py_state *st, uint32_t i) {
    PyObject *array = st->partials.at[i].array;
    st->partials.at[i] = st->partials.at[--st->partials.len];
    Py_DECREF(array);
}

void ing_py_partials_drop(ing_py_state *st) {
    while (st->partials.len) drop(st, st->partials.len - 1);
    ing_vec_fini(&st->partials);
}

void ing_py_partials_note(ing_py_kernel *k, const ing_py_checks *c,
                          PyObject *const *args, PyObject *const *held) {
    for (uint32_t i = 0; i < c->binds.len; i++) {
        PyObject *array = written(&c->binds.at[i], args, held);
        uint64_t stamp = array ? stamp_of(k->st, array) : 0;
        if (!stamp) continue;
        ing_py_partial one = {Py_NewRef(array), stamp};
        if (!ing_vec_push(&k->st->partials, one)) Py_DECREF(array);
    }
}

/* Those that were written since are forgotten. */
static void forget(ing_py_state *st) {
    for (uint32_t i = st->partials.len; i-- > 0;)
        if (stamp_of(st, st->partials.at[i].array) != st->partials.at[i].stamp)
            drop(st, i);
}

ing_status ing_py_partials_check(ing_py_kernel *k, const ing_py_checks *c,
                                 PyObject *const *args, PyObject *const *held,
                                 ing_err *e) {
    forget(k->st);
    for (uint32_t i = 0; i < c->binds.len; i++) {
        const ing_py_bind *b = &c->binds.at[i];
        PyObject *array = written(b, args, held);
        bool partial = false;
        for (uint32_t j = 0; array && j < k->st->partials.len; j++)
            partial |= k->st->partials.at[j].array == array;
        if (!partial) continue;
        PyObject *version;
        int counts = ing_py_attr_maybe(array, "_version", &version);
        if (counts < 0) return ING_PYTHON;
        Py_XDECREF(version);
        ing_bytes path;
        ing_bytes_init(&path);
        ing_words_path(&k->paths, b->path, &path);
        ing_status s = ing_fail(
            e, ING_RUNTIME,
            "%s: %s holds partial sums, since a gradient that adds to it ended with an "
            "error\nhelp: clear it, as with %s.%s, and launch all gradients again",
            ing_py_def_name(&k->def), path.at ? (const char *)path.at : "a gradient",
            path.at ? (const char *)path.at : "x.grad", counts ? "zero_()" : "fill(0)");
        ing_bytes_fini(&path);
        return s;
    }
    return ING_OK;
}

/* The arrays that hold partial sums now: for Tape. */
static PyObject *partials(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state *st = ing_py_state_in(module);
    forget(st);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < st->partials.len; i++)
        if (PyList_Append(list, st->partials.at[i].array) < 0) Py_CLEAR(list);
    return list;
}

static const PyMethodDef functions[] = {
    {"partials", partials, METH_NOARGS,
     "partials() -> list\n\nGradients that hold partial sums of a launch that failed."},
    {NULL, NULL, 0, NULL},
};

int ing_py_partials_add(PyObject *module) {
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
