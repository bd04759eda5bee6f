/* Guards: every question of a variant's trace, asked again at every launch (R11), as
 * cheaply as each allows:
 *  - settings: covered by the epoch that the launch compares first;
 *  - names in modules (`N`, `qd`, `math.pi`): not looked at while the module dictionaries
 *    are unchanged. Before Python 3.12 a dictionary's version tag says so, from 3.12 on a
 *    dictionary watcher that moves one counter for all watched dictionaries;
 *  - everything else (closures, arguments, members): followed and compared.
 * All places that a variant reads form one program of fetches, parents first and the
 * members of one object together, so that `self.grid` is read once for all of its members
 * and they in one go (member.c).
 * Comparison is by identity where the guard may own the object (R13), or its func if it is a
 * method; by the class of an object that is nothing in particular; else by digest. */
#include "py/kernel.h"
#include "py/struct.h"

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

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory for guards");
}

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

static bool behind_call(const ing_py_kernel *k, ing_path path) {
    for (ing_path at = path; at; at = k->paths.nodes.at[at].parent)
        if (k->paths.nodes.at[at].step == ING_STEP_CALL) return true;
    return false;
}

/* Does this step from `from` read nothing but module dictionaries? Notes them. */
static ing_status survey(ing_py_kernel *k, ing_py_variant *v, PyObject *from,
                         const ing_path_node *node, bool *module_only, ing_err *e) {
    ing_py_def *d = ing_py_def_of(k->st, from);
    if (node->step == ING_STEP_GLOBAL && d)
        return mark_dict(v, PyFunction_GET_GLOBALS(d->fn), e);
    if (node->step == ING_STEP_BUILTIN && d)
        return mark_dict(v, ing_py_def_builtins(d), e);
    if (node->step == ING_STEP_ATTR && from && PyModule_CheckExact(from))
        return mark_module(k, v, from, node->atom, module_only, e);
    /* A struct type never changes. */
    if (node->step == ING_STEP_ITEM_STR && from && ing_py_is_struct_type(k->st, from))
        return ING_OK;
    /* What belongs to the function itself stays with it, but for its defaults. */
    if (node->step != ING_STEP_KERNEL && node->step != ING_STEP_PARAM &&
        node->step != ING_STEP_FIELD_TYPE)
        *module_only = false;
    return ING_OK;
}

/* The program under construction: what each fetch gave, owned here. */
typedef struct making {
    ing_py_kernel *kernel;
    ing_py_variant *variant;
    PyObject *const *args;
    ing_vec(PyObject *) values; /* parallel to variant->fetches */
    ing_vec(uint32_t) known;    /* path -> fetch + 1 */
} making;

static ing_status add_fetch(making *m, ing_path path, uint32_t parent, bool whole,
                            uint32_t *out, ing_err *e) {
    ing_py_kernel *k = m->kernel;
    ing_py_variant *v = m->variant;
    ing_path_node node = k->paths.nodes.at[path];
    PyObject *from = parent ? m->values.at[parent - 1] : NULL, *value = NULL;
    ing_py_fetch f = {.path = path,
                      .parent = parent,
                      .atom = node.atom,
                      .step = node.step,
                      .whole = whole};
    f.module_only = !whole && (!parent || v->fetches.at[parent - 1].module_only);
    f.at = node.step == ING_STEP_ARG && node.i >= 0 ? (uint32_t)node.i : UINT32_MAX;
    if (node.step == ING_STEP_ATTR && !(f.name = ing_py_atom_name(k, node.atom)))
        return ING_PYTHON;
    if (whole) {
        ING_TRY(ing_py_resolve(k, m->args, path, &value, e));
    } else {
        ING_TRY(survey(k, v, from, &node, &f.module_only, e));
        ING_TRY(ing_py_step(k, m->args, from, &node, &value, e));
    }
    if (!ing_vec_reserve(&m->values, m->values.len + 1) ||
        !ing_vec_push(&v->fetches, f)) {
        Py_XDECREF(value);
        return no_memory(e);
    }
    m->values.at[m->values.len++] = value;
    m->known.at[path] = *out = v->fetches.len;
    return ING_OK;
}

/* The fetch of a path, made with those of its parents if it is new; *out from 1. */
static ing_status want(making *m, ing_path path, uint32_t *out, ing_err *e) {
    ing_path chain[ING_PATH_MAX_STEPS];
    uint32_t n = 0, at = 0;
    bool whole = behind_call(m->kernel, path);
    while (m->known.len <= path)
        if (!ing_vec_push(&m->known, 0)) return no_memory(e);
    for (ing_path p = path; p && !m->known.at[p];
         p = m->kernel->paths.nodes.at[p].parent) {
        if (n == ING_PATH_MAX_STEPS)
            return ing_fail(e, ING_INTERNAL, "a path is too long");
        chain[n++] = p;
        if (whole) break;
    }
    if (n == 0) {
        *out = m->known.at[path];
        return ING_OK;
    }
    ing_path above = m->kernel->paths.nodes.at[chain[n - 1]].parent;
    at = above && !whole ? m->known.at[above] : 0;
    while (n-- > 0) ING_TRY(add_fetch(m, chain[n], at, whole, &at, e));
    *out = at;
    return ING_OK;
}

/* Questions that need no guard: settings, what is fixed with the kernel, and results of
 * calls, whose function is guarded instead (R11). Annotations of a func are not fixed:
 * another func of the same text may stand in its place. Defaults can be assigned. */
static bool is_fixed(const ing_py_kernel *k, const ing_question *q) {
    ing_path_node n = k->paths.nodes.at[q->path];
    if (q->ask == ING_ASK_CONFIG || n.step == ING_STEP_KERNEL) return true;
    if (behind_call(k, q->path)) return true;
    return q->ask == ING_ASK_MEANING && n.parent &&
           k->paths.nodes.at[n.parent].step == ING_STEP_KERNEL;
}

/* An array whose spec the binding itself compares. */
static bool is_bound(const ing_py_kernel *k, const ing_py_variant *v,
                     const ing_question *q) {
    ing_path_node n = k->paths.nodes.at[q->path];
    if (q->ask != ING_ASK_LOOK) return false;
    for (uint32_t i = 0; i < v->binds.len; i++) {
        const ing_py_bind *b = &v->binds.at[i];
        if (b->kind == ING_BIND_CAPTURED && b->path == q->path) return true;
        if (b->kind == ING_BIND_ARRAY && n.step == ING_STEP_ARG && b->arg == n.i)
            return true;
    }
    return false;
}

/* Does it belong to an object whose numbers are read at launch? */
static bool at_launch(const ing_py_variant *v, PyObject *const *held, uint32_t fetch) {
    for (uint32_t f = v->fetches.at[fetch - 1].parent; f;
         f = v->fetches.at[f - 1].parent)
        if (held[f - 1] && ing_py_members_at_launch(held[f - 1])) return true;
    return false;
}

static bool is_number(PyObject *obj) {
    return obj &&
           (PyLong_CheckExact(obj) || PyFloat_CheckExact(obj) || PyBool_Check(obj));
}

/* Of a function that was called while compiling: what it is made of, apart from what it
 * reads. Borrowed from the function. */
static bool same_function(const ing_py_guard *g, PyObject *fn) {
    const PyFunctionObject *f = (const PyFunctionObject *)fn;
    return fn == g->expect && f->func_code == g->code &&
           f->func_defaults == g->defaults && f->func_kwdefaults == g->kwdefaults;
}

static void note_function(ing_py_guard *g, PyObject *fn) {
    const PyFunctionObject *f = (const PyFunctionObject *)fn;
    Py_XSETREF(g->code, Py_XNewRef(f->func_code));
    Py_XSETREF(g->defaults, Py_XNewRef(f->func_defaults));
    Py_XSETREF(g->kwdefaults, Py_XNewRef(f->func_kwdefaults));
    Py_XSETREF(g->expect, Py_NewRef(fn));
}

/* The func of a bound method, which is made anew each time it is asked for; else itself. */
static PyObject *unbound(const ing_py_state *st, PyObject *obj) {
    if (!obj || !PyMethod_Check(obj)) return obj;
    PyObject *fn = PyMethod_GET_FUNCTION(obj);
    return Py_TYPE(fn) == st->host->func_type ? fn : obj;
}

static bool is_object_answer(const ing_question *q) {
    ing_gate_fact f = {.kind = ING_GATE_OBJECT, .s = ""};
    return q->ask == ING_ASK_LOOK && ing_hash_eq(q->answer, ing_py_fact_digest(&f));
}

/* What kind of thing an object is follows from its class. */
static void note_class(ing_py_guard *g, PyObject *obj) {
    g->type = Py_TYPE(obj);
    g->version = g->type->tp_version_tag;
}

static bool same_class(const ing_py_guard *g, PyObject *obj) {
    return g->version && Py_TYPE(obj) == g->type &&
           Py_TYPE(obj)->tp_version_tag == g->version;
}

static ing_status add_guard(making *m, const ing_question *q, ing_err *e) {
    ing_py_kernel *k = m->kernel;
    ing_py_variant *v = m->variant;
    ing_py_guard g = {.path = q->path, .ask = q->ask, .answer = q->answer};
    ING_TRY(want(m, place_of(k, q->path, (ing_ask)q->ask), &g.fetch, e));
    PyObject *obj = m->values.at[g.fetch - 1];
    /* What can change in place is looked at each time, wherever its name is. */
    g.always = !v->fetches.at[g.fetch - 1].module_only ||
               (obj && (PyList_Check(obj) || PyDict_Check(obj) ||
                        (q->ask == ING_ASK_SOURCE && PyFunction_Check(obj))));
    if (g.always) v->fetches.at[g.fetch - 1].live = true;
    /* The object may be another one by now than the one that was asked about. */
    ing_hash128 answer;
    bool number = is_number(obj) && at_launch(v, m->values.at, g.fetch);
    ING_TRY(ing_py_answer_of(k, obj, number, q->path, (ing_ask)q->ask, &answer, e));
    bool same = obj && ing_hash_eq(answer, q->answer);
    if (same && number) g.number = Py_TYPE(obj);
    g.is_object = is_object_answer(q);
    PyObject *atom = unbound(k->st, obj);
    g.bound = atom != obj;
    if (!ing_vec_push(&v->guards, g)) return no_memory(e);
    ing_py_guard *made = &v->guards.at[v->guards.len - 1];
    if (same && q->ask == ING_ASK_SOURCE && PyFunction_Check(obj))
        note_function(made, obj);
    else if (same && !number && ing_py_is_atom(k->st, atom))
        made->expect = Py_NewRef(atom);
    return ING_OK;
}

/* Is it read together with its siblings? */
static bool is_plain(const ing_py_fetch *f) {
    return f->step == ING_STEP_ATTR && f->parent && !f->whole && !f->module_only;
}

static bool add_members(ing_py_variant *v, const ing_py_fetch *f) {
    uint32_t at = v->fetches.len - 1;
    ing_py_members *last = v->members.len ? &v->members.at[v->members.len - 1] : NULL;
    if (last && last->parent == f->parent && last->plain == is_plain(f) &&
        v->members.len > v->n_live_members) {
        last->n++;
        return true;
    }
    ing_py_members m = {.parent = f->parent, .first = at, .n = 1, .plain = is_plain(f)};
    return ing_vec_push(&v->members, m);
}

/* Fetches in a new order: parents still first, children of one parent together, and those
 * that every launch makes before the others. */
typedef struct reordering {
    const ing_py_fetch *old;
    uint32_t *first, *next; /* lists of children by old numbers, first[0] the roots */
    uint32_t *moved;        /* old number -> new number, both from 1 */
    uint32_t *turns;        /* new number -> old number */
} reordering;

static bool order(ing_py_variant *v, const reordering *r, bool live) {
    for (uint32_t turn = 0; turn <= v->fetches.len; turn++) {
        for (uint32_t i = r->first[r->turns[turn]]; i; i = r->next[i]) {
            ing_py_fetch f = r->old[i - 1];
            if (f.live != live) continue;
            f.parent = turn;
            if (!ing_vec_push(&v->fetches, f) || !add_members(v, &f)) return false;
            r->moved[i] = v->fetches.len;
            r->turns[v->fetches.len] = i;
        }
    }
    return true;
}

static void mark_live(ing_py_variant *v) {
    /* What a live fetch starts from is live. Parents come first. */
    for (uint32_t i = v->fetches.len; i-- > 0;) {
        const ing_py_fetch *f = &v->fetches.at[i];
        if (f->live && f->parent) v->fetches.at[f->parent - 1].live = true;
    }
}

static ing_status arrange(ing_py_variant *v, ing_err *e) {
    uint32_t n = v->fetches.len;
    if (n == 0) return ING_OK;
    mark_live(v);
    ing_py_fetch *old = ing_calloc(n, sizeof *old);
    uint32_t *lists = ing_calloc(((size_t)n + 1) * 4, sizeof *lists);
    bool ok = old && lists;
    if (ok) {
        reordering r = {old, lists, lists + n + 1, lists + 2 * (n + 1),
                        lists + 3 * (n + 1)};
        memcpy(old, v->fetches.at, n * sizeof *old);
        for (uint32_t i = n; i > 0; i--) {
            r.next[i] = r.first[old[i - 1].parent];
            r.first[old[i - 1].parent] = i;
        }
        v->fetches.len = 0;
        ok = order(v, &r, true);
        v->n_live = v->fetches.len;
        v->n_live_members = v->members.len;
        ok = ok && order(v, &r, false);
        for (uint32_t i = 0; ok && i < v->binds.len; i++)
            v->binds.at[i].fetch = r.moved[v->binds.at[i].fetch]; /* 0 stays 0 */
        for (uint32_t i = 0; ok && i < v->guards.len; i++)
            v->guards.at[i].fetch = r.moved[v->guards.at[i].fetch];
    }
    ing_free(old);
    ing_free(lists);
    return ok ? ING_OK : no_memory(e);
}

static ing_status make_all(making *m, ing_err *e) {
    ing_py_variant *v = m->variant;
    for (uint32_t i = 0; i < v->binds.len; i++) {
        ing_py_bind *b = &v->binds.at[i];
        if (b->kind != ING_BIND_CAPTURED && b->kind != ING_BIND_NUMBER) continue;
        ING_TRY(want(m, b->path, &b->fetch, e));
        v->fetches.at[b->fetch - 1].live = true;
    }
    for (uint32_t i = 0; i < v->trace.list.len; i++) {
        ing_question q = v->trace.list.at[i];
        if (is_fixed(m->kernel, &q) || is_bound(m->kernel, v, &q)) continue;
        ING_TRY(add_guard(m, &q, e));
    }
    for (uint32_t i = 0; i < v->guards.len; i++) {
        ing_py_guard g = v->guards.at[i];
        if (!g.always) continue;
        v->guards.at[i] = v->guards.at[v->n_always];
        v->guards.at[v->n_always++] = g;
    }
    return arrange(v, e);
}

ing_status ing_py_guards_make(ing_py_kernel *k, ing_py_variant *v,
                              PyObject *const *args, ing_err *e) {
    making m = {.kernel = k, .variant = v, .args = args};
    ing_status s = make_all(&m, e);
    for (uint32_t i = 0; i < m.values.len; i++) Py_XDECREF(m.values.at[i]);
    ing_vec_fini(&m.values);
    ing_vec_fini(&m.known);
    v->marked = false; /* the first launch compares everything, then marks */
    return s;
}

/* ---- checking ------------------------------------------------------------------------------------ */

/* One step, or a whole path. */
static ing_status fetch_one(ing_py_kernel *k, ing_py_fetch *f, PyObject *const *args,
                            PyObject *from, PyObject **out, ing_err *e) {
    if (f->whole) return ing_py_resolve(k, args, f->path, out, e);
    if (f->step == ING_STEP_ARG && f->at < k->def.n_params) {
        *out = Py_XNewRef(args[f->at]);
        return ING_OK;
    }
    if (!f->parent || from) {
        ing_path_node node = k->paths.nodes.at[f->path];
        ING_TRY(ing_py_step(k, args, from, &node, out, e));
    }
    if (f->module_only) f->cached = *out; /* borrowed: the dictionary holds it */
    return ING_OK;
}

/* Follows every place once. While the dictionaries are unchanged, what stands in them is
 * known, and only what is live is wanted. *known: all is of classes that the guards held
 * for before. */
static ing_status fetch_all(ing_py_kernel *k, ing_py_variant *v, PyObject *const *args,
                            bool clean, PyObject **held, bool *known, ing_err *e) {
    uint32_t n = clean ? v->n_live_members : v->members.len;
    for (uint32_t j = 0; j < n; j++) {
        ing_py_members *m = &v->members.at[j];
        ing_py_fetch *f = &v->fetches.at[m->first];
        PyObject *from = m->parent ? held[m->parent - 1] : NULL;
        PyObject **out = &held[m->first];
        if (m->plain) {
            if (!from) continue;
            ING_TRY(ing_py_members_get(m, f, from, out));
            *known &= m->checked;
            continue;
        }
        for (uint32_t i = 0; i < m->n; i++) {
            if (clean && f[i].module_only)
                out[i] = Py_XNewRef(f[i].cached);
            else
                ING_TRY(fetch_one(k, &f[i], args, from, &out[i], e));
        }
    }
    return ING_OK;
}

/* Calls whose function is another one by now, of the same text: they are made again. */
static ing_status calls_hold(ing_py_kernel *k, const ing_py_variant *v,
                             PyObject *const *args, ing_err *e) {
    for (uint32_t i = 0; i < v->trace.list.len; i++) {
        ing_question q = v->trace.list.at[i];
        if (!behind_call(k, q.path)) continue;
        ing_hash128 answer;
        ING_TRY(ing_py_answer(k, args, q.path, (ing_ask)q.ask, &answer, e));
        if (!ing_hash_eq(answer, q.answer)) return ING_DECLINED;
    }
    return ING_OK;
}

/* The comparisons that prove an answer without making it again. Whether a number is compiled
 * in or read at launch is its owner's class's to say: `known`, that class held before. */
static inline bool holds_at_a_glance(const ing_py_kernel *k, const ing_py_guard *g,
                                     PyObject *obj, bool known) {
    if (!obj) return false;
    if (Py_TYPE(obj) == g->number) return known;
    if (g->code) return PyFunction_Check(obj) && same_function(g, obj);
    if (g->is_object) return same_class(g, obj);
    if (g->bound) return PyMethod_Check(obj) && unbound(k->st, obj) == g->expect;
    return obj == g->expect && (known || !is_number(obj));
}

static ing_status guard_holds(ing_py_kernel *k, ing_py_variant *v, uint32_t at,
                              PyObject *const *args, PyObject *const *held, bool known,
                              ing_err *e) {
    ing_py_guard *g = &v->guards.at[at];
    PyObject *obj = held[g->fetch - 1];
    if (holds_at_a_glance(k, g, obj, known)) return ING_OK;
    ing_hash128 answer;
    bool number = is_number(obj) && at_launch(v, held, g->fetch);
    ING_TRY(ing_py_answer_of(k, obj, number, g->path, (ing_ask)g->ask, &answer, e));
    if (!ing_hash_eq(answer, g->answer)) return ING_DECLINED;
    if (g->is_object && obj) note_class(g, obj);
    if (!g->code || !obj || !PyFunction_Check(obj)) return ING_OK;
    ING_TRY(calls_hold(k, v, args, e));
    note_function(&v->guards.at[at], obj);
    return ING_OK;
}

static ing_status all_hold(ing_py_kernel *k, ing_py_variant *v, PyObject *const *args,
                           bool clean, PyObject **held, ing_err *e) {
    bool known = true;
    ING_TRY(fetch_all(k, v, args, clean, held, &known, e));
    uint32_t n_guards = clean ? v->n_always : v->guards.len;
    for (uint32_t i = 0; i < n_guards; i++)
        ING_TRY(guard_holds(k, v, i, args, held, known, e));
    for (uint32_t j = 0; !known && j < (clean ? v->n_live_members : v->members.len);
         j++) {
        ing_py_members *m = &v->members.at[j];
        if (m->plain && held[m->parent - 1])
            ing_py_members_held(m, held[m->parent - 1]);
    }
    return ING_OK;
}

ing_status ing_py_guards_hold(ing_py_kernel *k, ing_py_variant *v,
                              PyObject *const *args, PyObject **held, uint32_t *n_held,
                              ing_err *e) {
    bool clean = v->marked && dicts_unchanged(v);
    *n_held = clean ? v->n_live : v->fetches.len;
    for (uint32_t i = 0; i < *n_held; i++) held[i] = NULL;
    /* Marked before the check, so that a change made during it (by a property) shows. */
    if (!clean) dicts_mark(v);
    ing_status s = all_hold(k, v, args, clean, held, e);
    if (s == ING_OK)
        v->marked = true;
    else if (!clean)
        v->marked = false;
    return s;
}
