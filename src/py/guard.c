/* Guards: every question of a variant's trace, asked again at every launch (R11), as
 * cheaply as each allows:
 *  - settings: covered by the epoch that the launch compares first;
 *  - names in modules (`N`, `qd`, `math.pi`): not looked at while the module dictionaries
 *    are unchanged. Before Python 3.12 a dictionary's version tag says so, from 3.12 on a
 *    dictionary watcher that moves one counter for all watched dictionaries;
 *  - everything else (closures, arguments, members): followed and compared.
 * Comparison is by identity where the guard may own the object (R13), else by digest. */
#include "py/foreign.h"
#include "py/kernel.h"

#include <string.h>

/* ---- have module dictionaries changed? -------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000
static struct { /* registry: what the watcher callback can reach */
    uint64_t changes;
    int id; /* watcher id + 1; 0 = none yet, -1 = none free */
} watch;

static int on_change(PyDict_WatchEvent event, PyObject *dict, PyObject *key,
                     PyObject *value) {
    (void)event, (void)dict, (void)key, (void)value;
    watch.changes++;
    return 0;
}

static bool watch_dict(PyObject *dict) {
    if (watch.id == 0) {
        int id = PyDict_AddWatcher(on_change);
        if (id < 0) PyErr_Clear();
        watch.id = id < 0 ? -1 : id + 1;
    }
    if (watch.id < 0) return false;
    if (PyDict_Watch(watch.id - 1, dict) == 0) return true;
    PyErr_Clear();
    return false;
}

static uint64_t dict_version(PyObject *dict) {
    (void)dict;
    return 0;
}
#else
static bool watch_dict(PyObject *dict) {
    (void)dict;
    return true;
}

static uint64_t dict_version(PyObject *dict) {
    return ((PyDictObject *)dict)->ma_version_tag;
}
#endif

static bool dicts_unchanged(const ing_py_variant *v) {
#if PY_VERSION_HEX >= 0x030C0000
    return watch.id > 0 && v->watch_epoch == watch.changes;
#else
    for (uint32_t i = 0; i < v->marks.len; i++)
        if (dict_version(v->marks.at[i].dict) != v->marks.at[i].version) return false;
    return true;
#endif
}

static void dicts_mark(ing_py_variant *v) {
#if PY_VERSION_HEX >= 0x030C0000
    v->watch_epoch = watch.changes;
#else
    for (uint32_t i = 0; i < v->marks.len; i++)
        v->marks.at[i].version = dict_version(v->marks.at[i].dict);
#endif
}

/* Remembers a dictionary that a path read. */
static ing_status mark_dict(ing_py_variant *v, PyObject *dict, ing_err *e) {
    for (uint32_t i = 0; i < v->marks.len; i++)
        if (v->marks.at[i].dict == dict) return ING_OK;
    ing_py_dict_mark m = {dict, dict_version(dict)};
    if (!watch_dict(dict))
        m.version = UINT64_MAX; /* never equal: always compared by name */
    if (!ing_vec_push(&v->marks, m))
        return ing_fail(e, ING_MEMORY, "no memory for guards");
    Py_INCREF(dict);
    return ING_OK;
}

/* ---- making ----------------------------------------------------------------------------------- */

/* Follows the path once more; notes the dictionaries, and says whether it reads nothing
 * but functions' modules and modules. */
static ing_status survey(ing_py_kernel *k, ing_py_variant *v, PyObject *const *args,
                         ing_path path, bool *module_only, ing_err *e) {
    ing_path chain[256];
    uint32_t n = 0;
    for (ing_path at = path; at && n < 256; at = k->paths.nodes.at[at].parent)
        chain[n++] = at;
    PyObject *obj = NULL;
    ing_status s = ING_OK;
    *module_only = true;
    while (s == ING_OK && n-- > 0) {
        ing_path_node node = k->paths.nodes.at[chain[n]];
        ing_py_def *d = ing_py_def_of(k->st, obj);
        if (node.step == ING_STEP_GLOBAL && d)
            s = mark_dict(v, PyFunction_GET_GLOBALS(d->fn), e);
        else if (node.step == ING_STEP_BUILTIN)
            s = mark_dict(v, PyEval_GetBuiltins(), e);
        else if (node.step == ING_STEP_ATTR && obj && PyModule_CheckExact(obj))
            s = mark_dict(v, PyModule_GetDict(obj), e);
        else if (node.step != ING_STEP_KERNEL)
            *module_only = false;
        PyObject *next = NULL;
        if (s == ING_OK) s = ing_py_step(k, args, obj, &node, &next, e);
        Py_XDECREF(obj);
        obj = next;
        if (!obj) break;
    }
    Py_XDECREF(obj);
    return s;
}

/* Questions that need no guard: fixed with the kernel, or with a func whose identity is
 * guarded by its own source question. */
static bool is_fixed(const ing_py_kernel *k, const ing_question *q) {
    ing_path_node n = k->paths.nodes.at[q->path];
    return q->ask == ING_ASK_CONFIG || q->ask == ING_ASK_MEANING ||
           n.step == ING_STEP_KERNEL || n.step == ING_STEP_DEFAULT;
}

/* A direct argument whose spec the binding itself compares. */
static bool is_bound(const ing_py_kernel *k, const ing_py_variant *v,
                     const ing_question *q) {
    ing_path_node n = k->paths.nodes.at[q->path];
    if (q->ask != ING_ASK_SPEC) return false;
    for (uint32_t i = 0; i < v->binds.len; i++) {
        const ing_py_bind *b = &v->binds.at[i];
        if (b->kind == ING_BIND_CAPTURED ? b->path == q->path
                                         : n.step == ING_STEP_ARG && b->arg == n.i)
            return true;
    }
    return false;
}

static ing_status add_guard(ing_py_kernel *k, ing_py_variant *v, PyObject *const *args,
                            const ing_question *q, ing_err *e) {
    ing_py_guard g = {.path = q->path, .ask = q->ask, .answer = q->answer};
    ING_TRY(survey(k, v, args, q->path, &g.module_only, e));
    PyObject *obj = NULL;
    ING_TRY(ing_py_resolve(k, args, q->path, &obj, e));
    if (obj && ing_py_is_atom(k->st, obj)) g.expect = Py_NewRef(obj);
    Py_XDECREF(obj);
    v->n_guards_other += !g.module_only;
    if (ing_vec_push(&v->guards, g)) return ING_OK;
    Py_XDECREF(g.expect);
    return ing_fail(e, ING_MEMORY, "no memory for guards");
}

ing_status ing_py_guards_make(ing_py_kernel *k, ing_py_variant *v,
                              PyObject *const *args, ing_err *e) {
    for (uint32_t i = 0; i < v->binds.len; i++) {
        ing_py_bind *b = &v->binds.at[i];
        if (b->kind != ING_BIND_CAPTURED) continue;
        bool module_only;
        ING_TRY(survey(k, v, args, b->path, &module_only, e));
        b->module_only = module_only;
    }
    for (uint32_t i = 0; i < v->trace.list.len; i++) {
        ing_question q = v->trace.list.at[i];
        if (is_fixed(k, &q) || is_bound(k, v, &q)) continue;
        ING_TRY(add_guard(k, v, args, &q, e));
    }
    v->marked = false; /* the first launch compares everything, then marks */
    return ING_OK;
}

/* ---- checking ------------------------------------------------------------------------------------ */

static ing_status guard_holds(ing_py_kernel *k, const ing_py_guard *g,
                              PyObject *const *args, ing_err *e) {
    PyObject *obj = NULL;
    ING_TRY(ing_py_resolve(k, args, g->path, &obj, e));
    bool same = obj && obj == g->expect;
    Py_XDECREF(obj);
    if (same) return ING_OK;
    ing_hash128 answer;
    ING_TRY(ing_py_answer(k, args, g->path, (ing_ask)g->ask, &answer, e));
    return ing_hash_eq(answer, g->answer) ? ING_OK : ING_DECLINED;
}

ing_status ing_py_captured_foreign(ing_py_kernel *k, ing_err *e) {
    return ing_fail(
        e, ING_TYPE,
        "%s uses an array of another library that is not an argument\n  help: pass "
        "it as an argument, or copy it into a qd.ndarray",
        ing_py_def_name(&k->def));
}

/* The array behind a captured path, as a new reference for the length of the launch: while
 * it runs without the GIL, another thread may drop or replace what holds the array. */
static ing_status captured(ing_py_kernel *k, ing_py_bind *b, PyObject *const *args,
                           bool clean, PyObject **out, ing_err *e) {
    if (clean && b->module_only) {
        *out = Py_NewRef(b->borrowed);
        return ING_OK;
    }
    ING_TRY(ing_py_resolve(k, args, b->path, out, e));
    bool fits =
        *out && ing_py_is_array(k->st, *out) && ((ing_py_array *)*out)->spec == b->spec;
    if (!fits) {
        bool foreign =
            *out && !ing_py_is_array(k->st, *out) && ing_py_is_foreign_array(k->st, *out);
        Py_CLEAR(*out);
        return foreign ? ing_py_captured_foreign(k, e) : ING_DECLINED;
    }
    if (b->module_only) b->borrowed = *out;
    return ING_OK;
}

static ing_status all_hold(ing_py_kernel *k, ing_py_variant *v, PyObject *const *args,
                           bool clean, PyObject **held, ing_err *e) {
    for (uint32_t i = 0; i < v->guards.len; i++)
        if (!(clean && v->guards.at[i].module_only))
            ING_TRY(guard_holds(k, &v->guards.at[i], args, e));
    for (uint32_t i = 0; i < v->n_captured; i++)
        ING_TRY(captured(k, &v->binds.at[v->captured[i]], args, clean, &held[i], e));
    return ING_OK;
}

ing_status ing_py_guards_hold(ing_py_kernel *k, ing_py_variant *v,
                              PyObject *const *args, PyObject **held, ing_err *e) {
    bool clean = v->marked && dicts_unchanged(v);
    if (clean && v->n_guards_other == 0 && v->n_captured == 0) return ING_OK;
    /* Marked before the check, so that a change made during it (by a property) shows. */
    if (!clean) dicts_mark(v);
    ing_status s = all_hold(k, v, args, clean, held, e);
    if (s == ING_OK) {
        v->marked = true;
        return ING_OK;
    }
    if (!clean) v->marked = false;
    for (uint32_t i = 0; i < v->n_captured; i++) Py_CLEAR(held[i]);
    return s;
}
