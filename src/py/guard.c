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

/* An attribute that is not in the module's dictionary comes from its __getattr__, which
 * may answer anew each time. */
static ing_status mark_module(ing_py_kernel *k, ing_py_variant *v, PyObject *module,
                              uint32_t atom, bool *module_only, ing_err *e) {
    PyObject *dict = PyModule_GetDict(module);
    if (PyDict_GetItemString(dict, "__getattr__") &&
        !PyDict_GetItemString(dict, ing_atoms_text(&k->paths.atoms, atom)))
        *module_only = false;
    return mark_dict(v, dict, e);
}

/* Where to go to answer a question: an annotation is read from its function. */
static ing_path place_of(const ing_py_kernel *k, ing_path path, ing_ask ask) {
    return ask == ING_ASK_MEANING ? k->paths.nodes.at[path].parent : path;
}

/* Follows the path once more; notes the dictionaries, and says whether it reads nothing
 * but functions' modules and modules. *end: what it leads to, a new reference or NULL. */
static ing_status survey(ing_py_kernel *k, ing_py_variant *v, PyObject *const *args,
                         ing_path path, bool *module_only, PyObject **end, ing_err *e) {
    ing_path chain[256];
    uint32_t n = 0;
    for (ing_path at = path; at && n < 256; at = k->paths.nodes.at[at].parent)
        chain[n++] = at;
    PyObject *obj = NULL;
    ing_status s = ING_OK;
    *module_only = true;
    *end = NULL;
    while (s == ING_OK && n-- > 0) {
        ing_path_node node = k->paths.nodes.at[chain[n]];
        if (node.step >= ING_STEP_CALL && node.step < ING_STEP_CONFIG) {
            *module_only = false; /* behind a call: nothing to watch */
            break;
        }
        ing_py_def *d = ing_py_def_of(k->st, obj);
        if (node.step == ING_STEP_GLOBAL && d)
            s = mark_dict(v, PyFunction_GET_GLOBALS(d->fn), e);
        else if (node.step == ING_STEP_BUILTIN)
            s = d ? mark_dict(v, ing_py_def_builtins(d), e) : ING_OK;
        else if (node.step == ING_STEP_ATTR && obj && PyModule_CheckExact(obj))
            s = mark_module(k, v, obj, node.atom, module_only, e);
        else if (node.step != ING_STEP_KERNEL && node.step != ING_STEP_DEFAULT)
            *module_only = false;
        PyObject *next = NULL;
        if (s == ING_OK) s = ing_py_step(k, args, obj, &node, &next, e);
        Py_XDECREF(obj);
        obj = next;
        if (!obj) break;
    }
    if (s == ING_OK)
        *end = obj;
    else
        Py_XDECREF(obj);
    return s;
}

/* Questions that need no guard: settings, and what is fixed with the kernel. Annotations
 * and defaults of a func are not: another func of the same text may stand in its place. */
static bool is_fixed(const ing_py_kernel *k, const ing_question *q) {
    ing_path_node n = k->paths.nodes.at[q->path];
    if (q->ask == ING_ASK_CONFIG || n.step == ING_STEP_KERNEL) return true;
    bool of_def = q->ask == ING_ASK_MEANING || n.step == ING_STEP_DEFAULT;
    return of_def && n.parent && k->paths.nodes.at[n.parent].step == ING_STEP_KERNEL;
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
    PyObject *obj = NULL;
    ing_path place = place_of(k, q->path, (ing_ask)q->ask);
    ING_TRY(survey(k, v, args, place, &g.module_only, &obj, e));
    /* The object may be another one by now than the one that was asked about. */
    ing_hash128 answer;
    ing_status s = ing_py_answer_of(k, obj, q->path, (ing_ask)q->ask, &answer, e);
    if (s == ING_OK && obj && ing_hash_eq(answer, q->answer) &&
        ing_py_is_atom(k->st, obj))
        g.expect = Py_NewRef(obj);
    Py_XDECREF(obj);
    ING_TRY(s);
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
        PyObject *array = NULL;
        ING_TRY(survey(k, v, args, b->path, &b->module_only, &array, e));
        Py_XDECREF(array);
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
    ING_TRY(ing_py_resolve(k, args, place_of(k, g->path, (ing_ask)g->ask), &obj, e));
    ing_status s = ING_OK;
    if (!obj || obj != g->expect) {
        ing_hash128 answer;
        s = ing_py_answer_of(k, obj, g->path, (ing_ask)g->ask, &answer, e);
        if (s == ING_OK && !ing_hash_eq(answer, g->answer)) s = ING_DECLINED;
    }
    Py_XDECREF(obj);
    return s;
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
        bool foreign = *out && !ing_py_is_array(k->st, *out) &&
                       ing_py_is_foreign_array(k->st, *out);
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
