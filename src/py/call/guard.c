/* Checking guards: every question of a variant's trace, asked again at every launch (R11),
 * as cheaply as each allows:
 *  - settings: covered by the epoch that the launch compares first;
 *  - what is watched (watch.c), such as names in modules: not looked at while unchanged;
 *  - everything else (closures, arguments, members): followed and compared.
 * Comparison is by identity where the guard may own the object (R13), or its func if it is a
 * method; by the class of an object of no kind that the language knows; else by digest.
 * guard.h has the rules; guard_make.c makes what is checked here. */
#include "py/call/guard.h"
#include "py/array/struct.h"

#include <string.h>

/* ---- shared with the making --------------------------------------------------------------- */

/* Module attributes that are not in its dictionary come from its __getattr__ or its class,
 * which may answer anew each time. */
static int module_dict(ing_py_kernel *k, PyObject *module, uint32_t atom,
                       PyObject **out) {
    PyObject *dict = PyModule_GetDict(module), *found = NULL;
    PyObject *name = ing_py_atom_name(k, atom);
    int rc = name ? PyDict_GetItemRef(dict, name, &found) : -1;
    Py_XDECREF(found);
    *out = rc == 1 ? dict : NULL;
    return rc;
}

/* The type of a field that is no text: the field owns it. 1, 0 or -1 = raised. */
static int has_type_as_such(ing_py_kernel *k, PyObject *cls, uint32_t atom) {
    PyObject *field = NULL, *type = NULL, *name = ing_py_atom_name(k, atom);
    int rc = name ? ing_py_field_get(k->st, cls, name, &field) : -1;
    if (rc == 1) rc = ing_py_attr_of_maybe(k->st, field, ING_PY_NAME_type, &type);
    if (rc == 1) rc = !PyUnicode_Check(type);
    Py_XDECREF(field);
    Py_XDECREF(type);
    return rc;
}

/* Which of a class's bases, itself first, has the name: the dictionary, borrowed. */
static int providing_dict(PyTypeObject *cls, PyObject *name, PyObject **out) {
    PyObject *mro = cls->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) return 0;
        int has = PyDict_Contains(base->tp_dict, name);
        if (has == 1) *out = base->tp_dict;
        if (has != 0) return has;
    }
    return 0;
}

/* An attribute that a class has as it is: its metaclass asks nobody and has no such name, and it
 * is a member of this enum or a function. Other values of classes are often changed, such as
 * counters, and so they are read at each launch. */
static int class_dict(ing_py_kernel *k, PyTypeObject *cls, uint32_t atom,
                      PyObject **out) {
    const ing_py_state *st = k->st;
    PyTypeObject *meta = Py_TYPE(cls);
    PyObject *name = ing_py_atom_name(k, atom);
    if (!name) return -1;
    if (_PyType_Lookup(meta, name)) return 0;
    if (ing_py_class_has(st, meta, ING_PY_NAME___getattribute__) !=
        ing_py_class_has(st, &PyType_Type, ING_PY_NAME___getattribute__))
        return 0;
    PyObject *value = _PyType_Lookup(cls, name);
    if (!value || (Py_TYPE(value) != cls && !PyFunction_Check(value))) return 0;
    if (Py_TYPE(value) == cls && cls->tp_descr_get) return 0;
    return providing_dict(cls, name, out);
}

int ing_py_step_is_watched(ing_py_kernel *k, PyObject *from, const ing_path_node *node,
                           PyObject **dict) {
    ing_py_def *d = ing_py_def_of(k->st, from);
    *dict = NULL;
    switch ((ing_step)node->step) {
    case ING_STEP_GLOBAL: *dict = d ? PyFunction_GET_GLOBALS(d->fn) : NULL; break;
    case ING_STEP_BUILTIN: *dict = d ? ing_py_def_builtins(d) : NULL; break;
    case ING_STEP_ATTR:
        if (from && PyType_Check(from))
            return class_dict(k, (PyTypeObject *)from, node->atom, dict);
        if (!from || !PyModule_CheckExact(from)) return 0;
        return module_dict(k, from, node->atom, dict);
    /* A struct type never changes; what belongs to the function itself stays with it. */
    case ING_STEP_ITEM_STR: return from && ing_py_is_struct_type(k->st, from);
    case ING_STEP_PARAM: return d != NULL;
    case ING_STEP_KERNEL: return true;
    /* Its guard watches more (watch_field). */
    case ING_STEP_FIELD_TYPE: return from ? has_type_as_such(k, from, node->atom) : 0;
    default: return false;
    }
    return *dict != NULL;
}

bool ing_py_fetch_at_launch(const ing_py_state *st, const ing_py_checks *c,
                            PyObject *const *held, uint32_t fetch) {
    while (fetch && !ing_step_is_derived(c->fetches.at[fetch - 1].step)) {
        fetch = c->fetches.at[fetch - 1].parent;
        if (fetch && held[fetch - 1] && ing_py_members_at_launch(st, held[fetch - 1]))
            return true;
    }
    return false;
}

bool ing_py_is_number(PyObject *obj) {
    return obj &&
           (PyLong_CheckExact(obj) || PyFloat_CheckExact(obj) || PyBool_Check(obj));
}

void ing_py_guard_note_function(ing_py_guard *g, PyObject *fn) {
    const PyFunctionObject *f = (const PyFunctionObject *)fn;
    Py_XSETREF(g->code, Py_XNewRef(f->func_code));
    Py_XSETREF(g->defaults, Py_XNewRef(f->func_defaults));
    Py_XSETREF(g->kwdefaults, Py_XNewRef(f->func_kwdefaults));
    Py_XSETREF(g->expect, Py_NewRef(fn));
}

PyObject *ing_py_unbound(const ing_py_state *st, PyObject *obj) {
    if (!obj || !PyMethod_Check(obj)) return obj;
    PyObject *fn = PyMethod_GET_FUNCTION(obj);
    return Py_TYPE(fn) == st->host->func_type ? fn : obj;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* One check of one launch. */
typedef struct checking {
    ing_py_kernel *kernel;
    const ing_py_variant *variant;
    ing_py_checks *checks;
    PyObject *const *args;
    PyObject **held;
    bool known; /* all is of classes that the guards held for before */
    bool moved; /* something watched is read no more, or something else */
} checking;

/* Reads it what it read before? While it does not, and what is there is only borrowed. */
static __attribute__((noinline)) ing_status follow(checking *c, ing_py_fetch *f,
                                                   PyObject *from,
                                                   const ing_path_node *node,
                                                   PyObject *value) {
    PyObject *dict = NULL;
    int watched = ing_py_step_is_watched(c->kernel, from, node, &dict);
    if (watched != 1 || dict != f->dict) c->moved = true;
    if (node->step == ING_STEP_ATTR && from && PyType_Check(from) &&
        !ing_py_watch_has_class(&c->checks->watch, (PyTypeObject *)from))
        c->moved = true;
    f->cached = value;
    return watched < 0 ? ING_PYTHON : ING_OK;
}

/* One step, or a whole path. */
static __attribute__((noinline)) ing_status fetch_step(checking *c, ing_py_fetch *f,
                                                       PyObject *from, PyObject **out,
                                                       ing_err *e) {
    ing_py_kernel *k = c->kernel;
    if (f->whole) return ing_py_resolve(k, c->args, f->path, out, e);
    if (f->parent && !from) {
        c->moved |= f->module_only;
        return ING_OK;
    }
    ing_path_node node = k->paths.nodes.at[f->path];
    ING_TRY(ing_py_step(k, c->args, from, &node, out, e));
    return f->module_only ? follow(c, f, from, &node, *out) : ING_OK;
}

static inline ing_status fetch_one(checking *c, ing_py_fetch *f, PyObject *from,
                                   PyObject **out, ing_err *e) {
    if (f->step != ING_STEP_ARG || f->whole || f->at >= c->kernel->def.n_params)
        return fetch_step(c, f, from, out, e);
    *out = Py_XNewRef(c->args[f->at]);
    return ING_OK;
}

/* Follows every place once. While what is watched is unchanged, what stands in it is known,
 * and only what is live is wanted. That is taken first, before any of the user's code runs
 * and changes it. */
static ING_PY_HOT ing_status fetch_all(checking *c, bool clean, ing_err *e) {
    ing_py_checks *v = c->checks;
    uint32_t j = 0, n = clean ? v->n_live_members : v->members.len;
    if (clean) {
        for (uint32_t i = 0; i < v->n_cached; i++)
            c->held[i] = Py_XNewRef(v->fetches.at[i].cached);
        j = v->n_cached_members;
    }
    for (; j < n; j++) {
        ing_py_members *m = &v->members.at[j];
        ing_py_fetch *f = &v->fetches.at[m->first];
        PyObject *from = m->parent ? c->held[m->parent - 1] : NULL;
        PyObject **out = &c->held[m->first];
        if (m->plain) {
            if (!from) continue;
            ING_TRY(ing_py_members_get(m, f, from, out));
            c->known &= m->checked;
            continue;
        }
        for (uint32_t i = 0; i < m->n; i++)
            ING_TRY(fetch_one(c, &f[i], from, &out[i], e));
    }
    return ING_OK;
}

/* ---- comparing -------------------------------------------------------------------------------- */

/* Of a function that was called while compiling, or handed to a call: what it is made of,
 * apart from what it reads. */
static bool same_function(const ing_py_guard *g, PyObject *fn) {
    const PyFunctionObject *f = (const PyFunctionObject *)fn;
    if (g->ask == ING_ASK_WHOLE && ing_py_has_attributes(fn)) return false;
    return fn == g->expect && f->func_code == g->code &&
           f->func_defaults == g->defaults && f->func_kwdefaults == g->kwdefaults;
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

/* The field of the class that the guard is about, as a new reference; 1, 0 or -1 = raised. */
static int field_of(ing_py_kernel *k, const ing_py_guard *g, PyObject *cls,
                    PyObject **out) {
    PyObject *name = ing_py_atom_name(k, k->paths.nodes.at[g->path].atom);
    *out = NULL;
    return name ? ing_py_field_get(k->st, cls, name, out) : -1;
}

/* A field with the type that it had; one that is text may mean something else by now. Its
 * class's version and the type's place were watched, so only the table is looked at. */
static bool same_field(ing_py_kernel *k, const ing_py_guard *g, PyObject *cls) {
    if (cls != g->expect || !g->declared || PyUnicode_Check(g->declared)) return false;
    PyObject *field, *type = NULL;
    int rc = field_of(k, g, cls, &field);
    if (rc == 1 && field == g->field)
        rc = ing_py_attr_of_maybe(k->st, field, ING_PY_NAME_type, &type);
    bool same = rc == 1 && type == g->declared;
    Py_XDECREF(field);
    Py_XDECREF(type);
    return same; /* guard_holds sees what was raised */
}

/* The comparisons that prove an answer without making it again. */
static bool holds_at_a_look(ing_py_kernel *k, const ing_py_guard *g, PyObject *obj) {
    if (!obj) return false;
    if (g->code) return PyFunction_Check(obj) && same_function(g, obj);
    if (g->field) return same_field(k, g, obj);
    return obj == g->expect && (!g->is_member || same_class(g, obj));
}

/* The commonest of them, in few steps. `expect` of a bound one is a func. Whether a number is
 * compiled in or read at launch is its owner's class's to say: `known`, that class held before. */
static inline bool holds_at_a_glance(ing_py_kernel *k, const ing_py_guard *g,
                                     PyObject *obj, bool known) {
    if (g->plain) return obj && obj == g->expect && (known || !ing_py_is_number(obj));
    if (g->is_object) return obj && same_class(g, obj);
    if (g->number && obj && Py_TYPE(obj) == g->number) return known;
    if (g->bound && g->expect)
        return obj && PyMethod_Check(obj) && PyMethod_GET_FUNCTION(obj) == g->expect;
    return holds_at_a_look(k, g, obj);
}

/* What follows from guards as long as they hold for the very same things, asked again. */
static ing_status relations_hold(const checking *c, ing_err *e) {
    const ing_trace *t = &c->variant->record.trace;
    for (uint32_t i = 0; i < c->checks->relations.len; i++) {
        ing_question q = t->list.at[c->checks->relations.at[i]];
        ing_hash128 answer;
        ING_TRY(ing_py_answer(c->kernel, c->args, q.path, (ing_ask)q.ask, &answer, e));
        if (!ing_hash_eq(answer, q.answer)) return ING_DECLINED;
    }
    return ING_OK;
}

/* Equal by its answer, but another one than before? What is known by being itself may stand
 * in another relation to others, and functions may read other things. */
static ing_status is_another(const checking *c, ing_py_guard *g, PyObject *obj,
                             bool *yes) {
    ing_py_state *st = c->kernel->st;
    int member = ing_py_is_enum_member(st, obj);
    if (member < 0) return ING_PYTHON;
    *yes = g->ask == ING_ASK_SOURCE || PyType_Check(obj) || member;
    if (g->ask != ING_ASK_WHOLE) return ING_OK;
    ing_py_whole w;
    ING_TRY(ing_py_whole_of(st, obj, &w));
    *yes = g->code || w.classes != g->classes;
    g->classes = w.classes;
    return ING_OK;
}

/* Is what was watched for a field another one's: its class, the field with its type, or where the
 * names of that type are looked up? */
static int field_is_elsewhere(const checking *c, const ing_py_guard *g, PyObject *cls) {
    if (g->always) return 0; /* looked at each time */
    if (cls != g->expect || !g->declared) return 1;
    PyObject *field;
    int rc = field_of(c->kernel, g, cls, &field);
    Py_XDECREF(field);
    if (rc < 0 || field != g->field) return rc < 0 ? -1 : 1;
    if (!PyUnicode_Check(g->declared)) return 0;
    int same = ing_py_field_is_watched(&c->checks->watch, cls, g->declared);
    return same < 0 ? -1 : !same;
}

/* Equal by its answer, but is what was watched for it another one's? */
static int is_elsewhere(const checking *c, const ing_py_guard *g, PyObject *obj) {
    if (g->field) return field_is_elsewhere(c, g, obj);
    return g->expect && !g->code && ing_py_def_of(c->kernel->st, obj) &&
           ing_py_unbound(c->kernel->st, obj) != g->expect;
}

/* The next launch compares with this one. */
static ing_status note(checking *c, ing_py_guard *g, PyObject *obj) {
    PyObject *atom = ing_py_unbound(c->kernel->st, obj);
    int elsewhere = is_elsewhere(c, g, obj);
    if (elsewhere < 0) return ING_PYTHON;
    c->moved |= elsewhere;
    if (g->is_object || g->is_member) note_class(g, obj);
    if (g->is_object) {
        return ING_OK;
    } else if (g->code && PyFunction_Check(obj)) {
        ing_py_guard_note_function(g, obj);
    } else if (g->expect && (atom != obj) == g->bound) {
        int own = g->ask == ING_ASK_WHOLE ? 1 : ing_py_is_atom(c->kernel->st, atom);
        if (own == 1) Py_SETREF(g->expect, Py_NewRef(atom));
        if (own < 0) return ING_PYTHON;
    }
    return ING_OK;
}

/* Nothing is there because its owner is gone: nobody asked that. Whether a thing is there is
 * asked one step behind it. */
static bool is_gone(const checking *c, uint32_t fetch) {
    const ing_py_fetch *f = &c->checks->fetches.at[fetch - 1];
    if (c->held[fetch - 1]) return false;
    uint32_t parent = f->parent;
    if (f->step == ING_STEP_SAME && !f->whole && parent)
        parent = c->checks->fetches.at[parent - 1].parent;
    return parent && !c->held[parent - 1];
}

/* By making the answer again. */
static ing_status guard_holds(checking *c, uint32_t at, ing_err *e) {
    ing_py_guard *g = &c->checks->guards.at[at];
    ing_py_kernel *k = c->kernel;
    PyObject *obj = c->held[g->fetch - 1];
    if (PyErr_Occurred()) return ING_PYTHON;
    if (is_gone(c, g->fetch)) return ING_DECLINED;
    ing_hash128 answer;
    bool number = ing_py_is_number(obj) &&
                  ing_py_fetch_at_launch(k->st, c->checks, c->held, g->fetch);
    ING_TRY(ing_py_answer_of(k, obj, number, g->path, (ing_ask)g->ask, &answer, e));
    if (!ing_hash_eq(answer, g->answer)) return ING_DECLINED;
    if (!obj) return ING_OK;
    if (c->checks->relations.len) {
        bool another;
        ING_TRY(is_another(c, g, obj, &another));
        if (another) ING_TRY(relations_hold(c, e));
    }
    return note(c, g, obj);
}

static ING_PY_HOT ing_status all_hold(checking *c, bool clean, ing_err *e) {
    ing_py_checks *v = c->checks;
    ing_status s = fetch_all(c, clean, e);
    if (s != ING_OK) return ing_py_declined(s);
    uint32_t n_guards = clean ? v->n_always : v->guards.len;
    for (uint32_t i = 0; i < n_guards; i++) {
        const ing_py_guard *g = &v->guards.at[i];
        if (holds_at_a_glance(c->kernel, g, c->held[g->fetch - 1], c->known)) continue;
        ING_TRY(guard_holds(c, i, e));
    }
    uint32_t n = clean ? v->n_live_members : v->members.len;
    for (uint32_t j = 0; !c->known && j < n; j++) {
        ing_py_members *m = &v->members.at[j];
        if (m->plain && c->held[m->parent - 1])
            ing_py_members_held(m, c->held[m->parent - 1]);
    }
    return ING_OK;
}

static bool are_twins(const checking *c) {
    for (uint32_t i = 0; i < c->checks->twins.len; i++) {
        ing_py_twins t = c->checks->twins.at[i];
        if (c->held[t.first - 1] != c->held[t.second - 1]) return false;
    }
    return true;
}

/* Everything is compared; what it is compared with is noted before, so that a change made
 * meanwhile (by a property) shows. */
static __attribute__((noinline)) ing_status look_again(checking *c, ing_py_variant *v,
                                                       ing_err *e) {
    ing_py_checks *checks = c->checks;
    ING_TRY(ing_py_def_check(&c->kernel->def, e));
    checks->marked = false;
    ing_py_watch_note(c->kernel->st, &checks->watch);
    ING_TRY(all_hold(c, false, e));
    checks->marked = !c->moved && ing_py_watch_pinned(&checks->watch) && are_twins(c);
    if (checks->marked || v->checks != checks) return ING_OK;
    return ing_py_guards_make(c->kernel, v, c->args, e);
}

ing_status ing_py_guards_hold(ing_py_kernel *k, ing_py_variant *v, ing_py_checks *c,
                              PyObject *const *args, PyObject **held, uint32_t *n_held,
                              ing_err *e) {
    bool clean = c->marked && PyFunction_GET_CODE(k->def.fn) == k->def.code &&
                 ing_py_watch_unchanged(&c->watch);
    uint32_t n = clean ? c->n_live : c->fetches.len;
    *n_held = n;
    if (clean && n + c->n_always == 0) return ING_OK; /* nothing has to be fetched */
    for (uint32_t i = 0; i < n; i++) held[i] = NULL;
    checking now = {k, v, c, args, held, true, false};
    return clean ? all_hold(&now, true, e) : look_again(&now, v, e);
}
