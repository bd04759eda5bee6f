/* Calls while compiling (R2): what goes into a call is recorded as a whole (whole.c), and the
 * call is part of the path of its result. Which functions can be called is staticcall.c's to
 * say; guard_make.c decides which calls a launch repeats. */
#include "py/array/foreign.h"
#include "py/see/gate_int.h"

#include <string.h>

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory while compiling a kernel");
}

/* The path of a call in one of the two ways of naming things; 0 when it has none. */
static ing_path call_path(ing_py_gate *g, const thing *fn, const ing_gate_call *c,
                          bool root) {
    ing_paths *paths = &g->kernel->paths;
    ing_path at = root ? fn->root : fn->path;
    uint32_t by_place = c->n - c->n_named;
    for (uint32_t i = 0; at && i < c->n; i++) {
        thing a = *ing_py_thing(g, c->args[i]);
        if (i >= by_place)
            at = ing_path_add(paths, at, ING_STEP_CALL_NAME, c->names[i - by_place], 0);
        if (at)
            at = ing_py_call_arg_step(paths, at, root ? a.root : a.path, a.obj, a.made);
    }
    return at ? ing_path_add(paths, at, ING_STEP_CALL, NULL, 0) : 0;
}

static ing_status call_now(ing_py_gate *g, PyObject *fn, const ing_gate_call *c,
                           PyObject **out) {
    uint32_t by_place = c->n - c->n_named;
    PyObject *tuple = PyTuple_New(by_place), *named = c->n_named ? PyDict_New() : NULL;
    bool ok = tuple && (named || !c->n_named);
    for (uint32_t i = 0; ok && i < by_place; i++)
        PyTuple_SET_ITEM(tuple, i, Py_XNewRef(ing_py_thing(g, c->args[i])->obj));
    for (uint32_t i = by_place; ok && i < c->n; i++)
        ok = PyDict_SetItemString(named, c->names[i - by_place],
                                  ing_py_thing(g, c->args[i])->obj) == 0;
    *out = ok ? PyObject_Call(fn, tuple, named) : NULL;
    Py_XDECREF(tuple);
    Py_XDECREF(named);
    return *out ? ING_OK : ING_PYTHON;
}

/* A call that no other process can make again, for want of a name for this argument: its
 * code stays in memory, where function and arguments are known. */
static void only_here(ing_py_gate *g, const thing *fn, const ing_gate_call *c) {
    if (g->only_here.type) return;
    g->only_here.fn = fn->root;
    for (uint32_t i = 0; i < c->n && !g->only_here.type; i++) {
        thing a = *ing_py_thing(g, c->args[i]);
        if (!a.obj || (a.root && a.path)) continue;
        if (!ing_py_call_arg_step(&g->kernel->paths, fn->root, 0, a.obj, a.made))
            g->only_here.type = (PyTypeObject *)Py_NewRef(Py_TYPE(a.obj));
    }
}

static ing_status refuse_call(ing_py_gate *g, ing_gref fn, ing_err *e) {
    char what[128];
    ing_py_gate_describe(g, fn, what, sizeof what);
    const char *name = strrchr(what, ' ');
    char remedy[160];
    PyObject *o = ing_py_thing(g, fn)->obj;
    int library = o ? ing_py_is_library(o) : 0;
    if (library < 0) return ING_PYTHON;
    ing_front_outside f = {
        .name = name ? name + 1 : what, .what = what, .library = library == 1};
    ing_front_function_remedy(&f, remedy, sizeof remedy);
    return ing_fail(e, ING_TYPE, "%s%s cannot be called in kernels\nhelp: %s",
                    name ? "" : "an object of type ", f.name, remedy);
}

/* Of Python's own classes: repr runs nobody's code. Long ones are not told. */
static ing_status whole_words(ing_py_gate *g, PyObject *obj, ing_hash128 answer) {
    bool is_long =
        PyTuple_Check(obj) && PyTuple_GET_SIZE(obj) > ING_NOTES_MAX_WORDS / 3;
    if (is_long ||
        !(PyTuple_Check(obj) || PyFrozenSet_Check(obj) || PyRange_Check(obj)))
        return ING_OK;
    PyObject *text = PyObject_Repr(obj);
    ing_bytes words;
    ing_bytes_init(&words);
    int rc = text ? ing_py_put_shown(text, &words) : -1;
    if (rc == 0) ing_answers_add(&g->answers, answer, 0, &words);
    ing_bytes_fini(&words);
    Py_XDECREF(text);
    return rc == 0 || ing_py_took_any() ? ING_OK : ING_PYTHON;
}

/* Records all of what a call is given; *all: the loosest of its kinds. */
static ing_status record_whole(ing_py_gate *g, const thing *t, ing_py_whole_kind *all,
                               ing_err *e) {
    ing_py_whole w;
    if (!t->obj) return ING_OK;
    ING_TRY(ing_py_whole_of(g->kernel->st, t->obj, &w));
    if (w.kind < *all) *all = w.kind;
    if (t->path && w.kind == ING_WHOLE_PLAIN) ING_TRY(whole_words(g, t->obj, w.answer));
    return ing_py_gate_record(g, t->path, ING_ASK_WHOLE, w.answer, e);
}

/* Where the result of a call is found again. *root 0: nowhere, it stays in this process. */
static ing_status name_call(ing_py_gate *g, const thing *fn, const ing_gate_call *c,
                            ing_path *path, ing_path *root, ing_err *e) {
    *path = call_path(g, fn, c, false);
    *root = PyErr_Occurred() ? 0 : call_path(g, fn, c, true);
    if (!PyErr_Occurred() && fn->path && (!*path || !*root)) {
        only_here(g, fn, c);
        *path = *root = 0;
    }
    if (PyErr_Occurred()) return ING_PYTHON;
    return ing_py_gate_depth(g, *root, e);
}

/* A call of the same function with the same arguments was made before: its result, which is
 * asked for once per compile (R6). */
static ing_status call_unless_known(ing_py_gate *g, PyObject *fn, ing_path root,
                                    const ing_gate_call *c, PyObject **out) {
    uint32_t known = root ? ing_map_get(&g->calls, (ing_hash128){root, 0}) : 0;
    if (!known) return call_now(g, fn, c, out);
    *out = Py_NewRef(ing_py_thing(g, known)->obj);
    return ING_OK;
}

/* Numbers, text, None: nothing that could be another one with the same content. */
static bool is_plain_result(ing_py_gate *g, PyObject *o) {
    return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) ||
           PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) ||
           ing_py_is_dtype(g->kernel->st, o) ||
           ing_py_foreign_kind_of(g->kernel->st, o) == ING_FOREIGN_NUMBER;
}

ing_status ing_py_gate_may_call(void *self, ing_gref fn, ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, fn);
    ing_py_callable kind = t.obj ? ing_py_callable_kind(t.obj) : ING_PY_CALL_NEVER;
    if (kind == ING_PY_CALL_RAISED) return ING_PYTHON;
    return kind == ING_PY_CALL_NEVER ? refuse_call(g, fn, e) : ING_OK;
}

/* NumPy's `out=` would write at each launch, and at each compile. */
static ing_status check_reads(const ing_gate_call *c, ing_err *e) {
    for (uint32_t i = 0; i < c->n_named; i++)
        if (strcmp(c->names[i], "out") == 0)
            return ing_fail(e, ING_SYNTAX,
                            "a call while compiling cannot write: `out` is given\n"
                            "help: leave it out and use the result, or call it outside "
                            "of the kernel");
    return ING_OK;
}

/* Function and arguments, as a whole; what the kernel's text makes is known. */
static ing_status record_given(ing_py_gate *g, const thing *fn, const ing_gate_call *c,
                               ing_py_whole_kind *all, ing_err *e) {
    ING_TRY(record_whole(g, fn, all, e));
    for (uint32_t i = 0; i < c->n; i++) {
        thing a = *ing_py_thing(g, c->args[i]);
        if (!a.made) ING_TRY(record_whole(g, &a, all, e));
    }
    return ING_OK;
}

/* A result that nothing leads to must follow from what was recorded of the call: no launch
 * can make it again. */
static ing_status check_unnamed(ing_py_gate *g, const thing *fn, ing_py_callable kind,
                                ing_py_whole_kind all, PyObject *result, ing_err *e) {
    ing_py_whole w;
    ING_TRY(ing_py_whole_of(g->kernel->st, result, &w));
    bool fixed = kind == ING_PY_CALL_PURE || w.kind != ING_WHOLE_CHANGES;
    if (kind != ING_PY_CALL_LIVE && all != ING_WHOLE_CHANGES && fixed) return ING_OK;
    return ing_fail(
        e, ING_COMPILE,
        "the result of this call of %s can change, and an argument has no name by "
        "which "
        "a launch could make the call again\nhelp: keep that argument in a variable "
        "outside of the kernel",
        fn->obj ? Py_TYPE(fn->obj)->tp_name : "nothing");
}

/* The result of a call that is found again by making it. */
static ing_status take_named(ing_py_gate *g, const ing_gate_call *c,
                             ing_py_callable kind, ing_py_whole_kind all,
                             PyObject *result, ing_gref *out, ing_err *e) {
    thing t = *ing_py_thing(g, c->fn);
    ing_path path = 0, root = 0;
    ing_status s = name_call(g, &t, c, &path, &root, e);
    if (s == ING_OK && !result) s = call_unless_known(g, t.obj, root, c, &result);
    if (s == ING_OK && !path) s = check_unnamed(g, &t, kind, all, result, e);
    if (s == ING_OK && kind == ING_PY_CALL_LIVE && !c->in_static &&
        ing_py_is_ndarray(result)) /* a loop over it would count its elements */
        s = refuse_call(g, c->fn, e);
    if (s != ING_OK) {
        Py_XDECREF(result);
        return s;
    }
    ING_TRY(ing_py_thing_take(g, result, path, root, out, e));
    thing made = *ing_py_thing(g, *out);
    if (root && !ing_map_put(&g->calls, (ing_hash128){root, 0}, *out))
        return no_memory(e);
    if (kind != ING_PY_CALL_RECORDED || !path) return ING_OK;
    return record_whole(g, &made, &all, e);
}

/* Python's own values, whose text is always the same. */
static bool has_fixed_text(PyObject *o, uint32_t depth) {
    bool fixed = o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) ||
                 PyFloat_CheckExact(o) || PyComplex_CheckExact(o) ||
                 PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
    if (fixed || depth == ING_PATH_MAX_NESTING || !PyTuple_CheckExact(o)) return fixed;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
        if (!has_fixed_text(PyTuple_GET_ITEM(o, i), depth + 1)) return false;
    return true;
}

/* Does this call make such a text? A second argument of `format` may ask for the locale's. */
static bool makes_fixed_text(ing_py_gate *g, PyObject *fn, const ing_gate_call *c) {
    bool is_method = PyCFunction_Check(fn) && PyCFunction_GET_SELF(fn) &&
                     PyUnicode_Check(PyCFunction_GET_SELF(fn));
    PyObject *arg = c->n == 1 ? ing_py_thing(g, c->args[0])->obj : NULL;
    return !is_method && arg && has_fixed_text(arg, 0);
}

/* Calls while compiling (R2). What goes into a call is recorded as a whole: where all of it
 * is immutable, equal answers mean an equal result, else guards make the call again. The
 * plain result of a listed function of plain values follows from these; any other result is
 * itself found by making the call. */
ing_status ing_py_gate_call(void *self, const ing_gate_call *c, ing_gref *out,
                            ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, c->fn);
    *out = 0;
    ing_py_callable kind = t.obj ? ing_py_callable_kind(t.obj) : ING_PY_CALL_NEVER;
    ing_hash128 digest;
    if (kind == ING_PY_CALL_RAISED) return ING_PYTHON;
    int known = kind == ING_PY_CALL_NEVER
                    ? 0
                    : ing_py_callable_digest(g->kernel->st, t.obj, &digest);
    if (known != 1) return known < 0 ? ING_PYTHON : refuse_call(g, c->fn, e);
    if (kind == ING_PY_CALL_LIVE && ing_py_makes_text(t.obj) &&
        makes_fixed_text(g, t.obj, c))
        kind = ING_PY_CALL_PURE;
    if (kind != ING_PY_CALL_RECORDED) ING_TRY(check_reads(c, e));
    ING_TRY(ing_py_gate_record_source(g, &t, digest, e));
    ing_py_whole_kind all = ING_WHOLE_PLAIN;
    PyObject *result = NULL;
    if (kind != ING_PY_CALL_LIVE) ING_TRY(record_given(g, &t, c, &all, e));
    if (kind == ING_PY_CALL_PURE && all == ING_WHOLE_PLAIN) {
        ING_TRY(call_now(g, t.obj, c, &result));
        if (is_plain_result(g, result))
            return ing_py_thing_take(g, result, 0, 0, out, e);
    }
    return take_named(g, c, kind, all, result, out, e);
}
