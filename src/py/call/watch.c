/* What is watched: dictionaries of modules, classes, and single places in objects that hardly
 * ever change, so that a launch knows without a look that everything read through them is as
 * it was. Before Python 3.12 a dictionary has a version tag; from 3.12 on a watcher moves one
 * counter for all watched dictionaries of the process. What cannot be watched is looked at
 * at every launch. Called by guards with the GIL. */
#include "py/call/guard.h"

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory for guards");
}

#if PY_VERSION_HEX >= 0x030C0000
/* registry: watcher callbacks take no argument. All interpreters of a process add to it, so
 * that a change in one is at most a look too many in another. */
static uint64_t changes;

static int on_change(PyDict_WatchEvent event, PyObject *dict, PyObject *key,
                     PyObject *value) {
    (void)event, (void)dict, (void)key, (void)value;
    __atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Ids of watchers belong to one interpreter, as a host does. 1, 0: it cannot be watched (no
 * id is free: names are compared one by one), -1 = raised. */
static int watch_dict(ing_py_host *h, PyObject *dict) {
    if (h->watcher == 0) {
        int id = PyDict_AddWatcher(on_change);
        if (id < 0 && !ing_py_took(PyExc_RuntimeError)) return -1;
        h->watcher = id < 0 ? -1 : id + 1;
    }
    if (h->watcher < 0) return 0;
    if (PyDict_Watch(h->watcher - 1, dict) == 0) return 1;
    return ing_py_took(PyExc_ValueError) ? 0 : -1;
}

static uint64_t version_of(PyObject *dict) {
    (void)dict;
    return 0;
}

uint64_t ing_py_watch_changes(void) {
    return __atomic_load_n(&changes, __ATOMIC_RELAXED);
}
#else
static int watch_dict(ing_py_host *h, PyObject *dict) {
    (void)h, (void)dict;
    return 1;
}

static uint64_t version_of(PyObject *dict) {
    return ((PyDictObject *)dict)->ma_version_tag;
}
#endif

/* A class gets a tag when something is looked up in it. */
static uint32_t tag_of(const ing_py_state *st, PyTypeObject *type) {
    if (!type->tp_version_tag) (void)ing_py_class_has(st, type, ING_PY_NAME___name__);
    return type->tp_version_tag;
}

void ing_py_watch_note(const ing_py_state *st, ing_py_watch *w) {
#if PY_VERSION_HEX >= 0x030C0000
    w->changes = ing_py_watch_changes();
#endif
    for (uint32_t i = 0; i < w->dicts.len; i++)
        w->dicts.at[i].version = version_of(w->dicts.at[i].dict);
    for (uint32_t i = 0; i < w->classes.len; i++)
        w->classes.at[i].version = tag_of(st, w->classes.at[i].type);
}

bool ing_py_watch_has(const ing_py_watch *w, const PyObject *dict) {
    for (uint32_t i = 0; i < w->dicts.len; i++)
        if (w->dicts.at[i].dict == dict) return true;
    return false;
}

ing_status ing_py_watch_dict(ing_py_host *h, ing_py_watch *w, PyObject *dict,
                             ing_err *e) {
    if (ing_py_watch_has(w, dict)) return ING_OK;
    ing_py_dict_mark m = {dict, version_of(dict)};
    int watched = watch_dict(h, dict);
    if (watched < 0) return ING_PYTHON;
    if (!watched) w->never = true;
    if (!ing_vec_push(&w->dicts, m)) return no_memory(e);
    Py_INCREF(dict);
    return ING_OK;
}

ing_status ing_py_watch_pin(ing_py_watch *w, PyObject *owner, PyObject *const *at,
                            ing_err *e) {
    for (uint32_t i = 0; i < w->pins.len; i++)
        if (w->pins.at[i].at == at) return ING_OK;
    ing_py_pin p = {at, *at};
    if (!ing_vec_reserve(&w->owners, w->owners.len + 1) || !ing_vec_push(&w->pins, p))
        return no_memory(e);
    w->owners.at[w->owners.len++] = Py_NewRef(owner);
    Py_XINCREF(p.want);
    return ING_OK;
}

bool ing_py_watch_has_class(const ing_py_watch *w, const PyTypeObject *type) {
    for (uint32_t i = 0; i < w->classes.len; i++)
        if (w->classes.at[i].type == type) return true;
    return false;
}

ing_status ing_py_watch_class(const ing_py_state *st, ing_py_watch *w,
                              PyTypeObject *type, ing_err *e) {
    if (ing_py_watch_has_class(w, type)) return ING_OK;
    ing_py_class_mark m = {type, tag_of(st, type)};
    if (!ing_vec_push(&w->classes, m)) return no_memory(e);
    Py_INCREF(type);
    return ING_OK;
}

int ing_py_watch_traverse(const ing_py_watch *w, visitproc visit, void *arg) {
    for (uint32_t i = 0; i < w->dicts.len; i++) Py_VISIT(w->dicts.at[i].dict);
    for (uint32_t i = 0; i < w->pins.len; i++) {
        Py_VISIT(w->owners.at[i]);
        Py_VISIT(w->pins.at[i].want);
    }
    for (uint32_t i = 0; i < w->classes.len; i++) Py_VISIT(w->classes.at[i].type);
    return 0;
}

void ing_py_watch_fini(ing_py_watch *w) {
    for (uint32_t i = 0; i < w->dicts.len; i++) Py_DECREF(w->dicts.at[i].dict);
    for (uint32_t i = 0; i < w->pins.len; i++) {
        Py_DECREF(w->owners.at[i]);
        Py_XDECREF(w->pins.at[i].want);
    }
    for (uint32_t i = 0; i < w->classes.len; i++) Py_DECREF(w->classes.at[i].type);
    ing_vec_fini(&w->dicts);
    ing_vec_fini(&w->pins);
    ing_vec_fini(&w->owners);
    ing_vec_fini(&w->classes);
}
