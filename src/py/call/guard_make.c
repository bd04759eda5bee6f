/* Making the checks of a variant: every question of its trace becomes a guard, or follows
 * from others. All places that a variant reads form one program of fetches, parents first
 * and the members of one object together, so that `self.grid` is read once for all of its
 * members and they in one go (member.c). Called when a variant was compiled or loaded, and
 * when its places have moved (GUARD2). */
#include "py/see/field_gate.h"
#include "py/call/guard.h"
#include "py/array/struct.h"

#include <string.h>
#include <structmember.h>

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory for guards");
}

static void guard_fini(const ing_py_guard *g) {
    Py_XDECREF(g->expect);
    Py_XDECREF(g->code);
    Py_XDECREF(g->defaults);
    Py_XDECREF(g->kwdefaults);
    Py_XDECREF(g->field);
    Py_XDECREF(g->declared);
}

void ing_py_checks_free(ing_py_checks *c) {
    for (uint32_t i = 0; i < c->guards.len; i++) guard_fini(&c->guards.at[i]);
    ing_py_watch_fini(&c->watch);
    ing_vec_fini(&c->fetches);
    ing_vec_fini(&c->members);
    ing_vec_fini(&c->guards);
    ing_vec_fini(&c->binds);
    ing_vec_fini(&c->relations);
    ing_vec_fini(&c->twins);
    ing_free(c);
}

int ing_py_checks_traverse(const ing_py_checks *c, visitproc visit, void *arg) {
    if (c->refs != 1) return 0; /* a launch is using it */
    for (uint32_t i = 0; i < c->guards.len; i++) {
        Py_VISIT(c->guards.at[i].expect);
        Py_VISIT(c->guards.at[i].code);
        Py_VISIT(c->guards.at[i].defaults);
        Py_VISIT(c->guards.at[i].kwdefaults);
        Py_VISIT(c->guards.at[i].field);
        Py_VISIT(c->guards.at[i].declared);
    }
    return ing_py_watch_traverse(&c->watch, visit, arg);
}

/* ---- fetches ------------------------------------------------------------------------------ */

/* Where to go to answer a question: an annotation is read from its function. */
static ing_path place_of(const ing_py_kernel *k, ing_path path, ing_ask ask) {
    return ask == ING_ASK_MEANING ? k->paths.nodes.at[path].parent : path;
}

/* A step that takes more than what it starts from: its path is followed as a whole. */
static bool is_whole(const ing_path_node *n) {
    return n->step == ING_STEP_CALL || (n->step == ING_STEP_SAME && n->i);
}

/* The program under construction: what each fetch gave, owned here. */
typedef struct making {
    ing_py_kernel *kernel;
    ing_py_variant *variant;
    ing_py_checks *checks;
    PyObject *const *args;
    ing_vec(PyObject *) values; /* parallel to the fetches */
    ing_vec(uint32_t) known;    /* path -> fetch + 1 */
    ing_map wholes; /* path -> answer to WHOLE: 1 it can change, 2 it cannot */
    ing_map calls;  /* path of a call -> 1 made at each launch, 2 not */
} making;

/* An attribute of a class: the tags of it and of its metaclass say all but what is done behind
 * Python's back, and that its dictionary says. What is there keeps its class. */
static ing_status watch_class_step(making *m, PyTypeObject *cls,
                                   const ing_path_node *node, ing_err *e) {
    const ing_py_state *st = m->kernel->st;
    ing_py_watch *w = &m->checks->watch;
    PyObject *name = ing_py_atom_name(m->kernel, node->atom);
    PyObject *value = name ? _PyType_Lookup(cls, name) : NULL;
    if (!value) return name ? ING_OK : ING_PYTHON;
    Py_INCREF(value);
    ing_status s = ing_py_watch_class(st, w, cls, e);
    if (s == ING_OK) s = ing_py_watch_class(st, w, Py_TYPE(cls), e);
    if (s == ING_OK)
        s = ing_py_watch_pin(w, value, (PyObject *const *)&value->ob_type, e);
    Py_DECREF(value);
    return s;
}

static ing_status watch_step(making *m, PyObject *from, const ing_path_node *node,
                             ing_py_fetch *f, ing_err *e) {
    ing_py_watch *w = &m->checks->watch;
    if (!f->module_only) return ING_OK;
    int watched = ing_py_step_is_watched(m->kernel, from, node, &f->dict);
    if (watched < 0) return ING_PYTHON;
    f->module_only = watched;
    if (!f->module_only || !f->dict) return ING_OK;
    ING_TRY(ing_py_watch_dict(m->kernel->host, w, f->dict, e));
    if (node->step != ING_STEP_ATTR) return ING_OK;
    /* 3.13 leaves a class its tag when it gets another metaclass: that is a place as well. */
    if (PyType_Check(from)) ING_TRY(watch_class_step(m, (PyTypeObject *)from, node, e));
    return ing_py_watch_pin(w, from, (PyObject *const *)&from->ob_type, e);
}

static ing_status add_fetch(making *m, ing_path path, uint32_t parent, uint32_t *out,
                            ing_err *e) {
    ing_py_kernel *k = m->kernel;
    ing_py_checks *c = m->checks;
    ing_path_node node = k->paths.nodes.at[path];
    PyObject *from = parent ? m->values.at[parent - 1] : NULL, *value = NULL;
    ing_py_fetch f = {.path = path,
                      .parent = parent,
                      .atom = node.atom,
                      .step = node.step,
                      .whole = is_whole(&node)};
    f.module_only = !f.whole && (!parent || c->fetches.at[parent - 1].module_only);
    f.at = node.step == ING_STEP_ARG && node.i >= 0 ? (uint32_t)node.i : UINT32_MAX;
    if (f.whole) {
        ING_TRY(ing_py_resolve(k, m->args, path, &value, e));
    } else {
        ING_TRY(watch_step(m, from, &node, &f, e));
        if (node.step == ING_STEP_ATTR && !f.module_only &&
            !(f.name = ing_py_atom_name(k, node.atom)))
            return ING_PYTHON;
        ING_TRY(ing_py_step(k, m->args, from, &node, &value, e));
    }
    if (!ing_vec_reserve(&m->values, m->values.len + 1) ||
        !ing_vec_push(&c->fetches, f)) {
        Py_XDECREF(value);
        return no_memory(e);
    }
    m->values.at[m->values.len++] = value;
    m->known.at[path] = *out = c->fetches.len;
    return ING_OK;
}

/* The fetch of a path, made with those of its parents if it is new; *out from 1. */
static ing_status want(making *m, ing_path path, uint32_t *out, ing_err *e) {
    ing_path chain[ING_PATH_MAX_STEPS], p = path;
    uint32_t n = 0, at = 0;
    while (m->known.len <= path)
        if (!ing_vec_push(&m->known, 0)) return no_memory(e);
    for (; p && !m->known.at[p]; p = m->kernel->paths.nodes.at[p].parent) {
        if (n == ING_PATH_MAX_STEPS)
            return ing_fail(e, ING_INTERNAL, "a path is too long");
        chain[n++] = p;
        if (!is_whole(&m->kernel->paths.nodes.at[p])) continue;
        p = 0;
        break;
    }
    at = p ? m->known.at[p] : 0;
    while (n-- > 0) ING_TRY(add_fetch(m, chain[n], at, &at, e));
    *out = at;
    return ING_OK;
}

/* ---- what follows from other guards --------------------------------------------------------- */

static uint32_t whole_of(const making *m, ing_path path) {
    return ing_map_get(&m->wholes, (ing_hash128){path, 0});
}

static ing_status note_wholes(making *m, ing_err *e) {
    const ing_trace *t = &m->variant->record.trace;
    ing_hash128 changes = ing_py_whole_changes();
    for (uint32_t i = 0; i < t->list.len; i++) {
        const ing_question *q = &t->list.at[i];
        if (q->ask != ING_ASK_WHOLE) continue;
        uint32_t answer = ing_hash_eq(q->answer, changes) ? 1 : 2;
        if (!ing_map_put(&m->wholes, (ing_hash128){q->path, 0}, answer))
            return no_memory(e);
    }
    return ING_OK;
}

/* Is a call made again at each launch? Not if all that went into it is immutable, and so is
 * what came out; a listed function makes its result anew each time. */
static ing_status call_is_live(making *m, ing_path call, bool *live, ing_err *e) {
    const ing_paths *p = &m->kernel->paths;
    uint32_t known = ing_map_get(&m->calls, (ing_hash128){call, 0}), fn = 0;
    ing_path at = p->nodes.at[call].parent;
    *live = known == 1;
    if (known) return ING_OK;
    for (; ing_step_is_call_arg(p->nodes.at[at].step); at = p->nodes.at[at].parent)
        if (p->nodes.at[at].step == ING_STEP_CALL_PATH &&
            whole_of(m, (ing_path)p->nodes.at[at].i) != 2)
            *live = true;
    if (whole_of(m, at) != 2) *live = true;
    if (!*live && whole_of(m, call) != 2) {
        ING_TRY(want(m, at, &fn, e));
        PyObject *obj = m->values.at[fn - 1];
        ing_py_callable kind = obj ? ing_py_callable_kind(obj) : ING_PY_CALL_NEVER;
        if (kind == ING_PY_CALL_RAISED) return ING_PYTHON;
        *live = kind != ING_PY_CALL_PURE;
    }
    if (!ing_map_put(&m->calls, (ing_hash128){call, 0}, *live ? 1 : 2))
        return no_memory(e);
    return ING_OK;
}

/* Are both sides members of enums? Those are guarded by being the very same. */
static ing_status same_is_live(making *m, ing_path same, bool *live, ing_err *e) {
    ing_path sides[2] = {m->kernel->paths.nodes.at[same].parent,
                         (ing_path)m->kernel->paths.nodes.at[same].i};
    *live = false;
    for (int i = 0; i < 2; i++) {
        uint32_t fetch = 0;
        ING_TRY(want(m, sides[i], &fetch, e));
        PyObject *obj = m->values.at[fetch - 1];
        int member = obj ? ing_py_is_enum_member(m->kernel->st, obj) : 0;
        if (member < 0) return ING_PYTHON;
        if (!member) *live = true;
    }
    return ING_OK;
}

/* A relation follows from the guards of what it is between; anything behind one that is not
 * live does too. */
static ing_status is_relation(making *m, ing_path path, bool *yes, ing_err *e) {
    *yes = false;
    for (ing_path at = path; at; at = m->kernel->paths.nodes.at[at].parent) {
        ing_path_node n = m->kernel->paths.nodes.at[at];
        bool live = false;
        if (!is_whole(&n)) continue;
        if (n.step == ING_STEP_CALL)
            ING_TRY(call_is_live(m, at, &live, e));
        else
            ING_TRY(same_is_live(m, at, &live, e));
        *yes = !live;
        if (live) return ING_OK;
    }
    return ING_OK;
}

/* Questions that need no guard: settings, and what is fixed with the kernel. Annotations of
 * a func are not fixed: another func of the same text may stand in its place. Defaults can
 * be assigned. */
static bool is_fixed(const ing_py_kernel *k, const ing_question *q) {
    ing_path_node n = k->paths.nodes.at[q->path];
    if (q->ask == ING_ASK_CONFIG || n.step == ING_STEP_KERNEL) return true;
    return q->ask == ING_ASK_MEANING && n.parent &&
           k->paths.nodes.at[n.parent].step == ING_STEP_KERNEL;
}

/* An array whose spec the binding itself compares, and the blocks that fields share. */
static bool is_bound(const ing_py_kernel *k, const ing_py_variant *v,
                     const ing_question *q) {
    ing_path_node n = k->paths.nodes.at[q->path];
    if (q->ask != ING_ASK_LOOK) return q->ask == ING_ASK_BLOCKS;
    for (uint32_t i = 0; i < v->record.binds.len; i++) {
        const ing_record_bind *b = &v->record.binds.at[i];
        if (b->kind == ING_BIND_CAPTURED && b->path == q->path) return true;
        if (b->kind == ING_BIND_ARRAY && n.step == ING_STEP_ARG && b->arg == n.i)
            return true;
    }
    return false;
}

/* ---- guards ------------------------------------------------------------------------------------ */

/* Where a dataclass's Field has its type: a slot. NULL: somewhere else. */
static PyObject *const *type_slot(const ing_py_state *st, PyObject *field) {
    PyObject *d = ing_py_class_has(st, Py_TYPE(field), ING_PY_NAME_type);
    if (!d || !Py_IS_TYPE(d, &PyMemberDescr_Type)) return NULL;
    const PyMemberDef *member = ((PyMemberDescrObject *)d)->d_member;
    if (member->type != T_OBJECT_EX || member->offset <= 0) return NULL;
    return (PyObject *const *)((char *)field + member->offset);
}

/* The declared type of a field: class, the table of fields and the type's place are watched,
 * and what its text names if it is text. */
static ing_status watch_field(making *m, PyObject *cls, ing_py_guard *g, ing_err *e) {
    ing_py_watch *w = &m->checks->watch;
    PyObject *name =
        ing_py_atom_name(m->kernel, m->kernel->paths.nodes.at[g->path].atom);
    if (!name) return ING_PYTHON;
    const ing_py_state *st = m->kernel->st;
    PyObject *field;
    if (ing_py_field_get(st, cls, name, &field) < 0) return ING_PYTHON;
    PyObject *fields = field ? Py_XNewRef(ing_py_fields_of(st, cls)) : NULL;
    PyObject *const *slot = fields ? type_slot(st, field) : NULL;
    g->always = !slot;
    ing_status s = ING_OK;
    if (!g->always) {
        g->field = Py_NewRef(field);
        g->declared = Py_XNewRef(*slot);
        s = ing_py_watch_class(st, w, (PyTypeObject *)cls, e);
        if (s == ING_OK) s = ing_py_watch_dict(m->kernel->host, w, fields, e);
        if (s == ING_OK) s = ing_py_watch_pin(w, field, slot, e);
    }
    Py_XDECREF(field);
    Py_XDECREF(fields);
    if (s != ING_OK || g->always || !g->declared || !PyUnicode_Check(g->declared))
        return s;
    bool watched = false;
    s = ing_py_watch_field(m->kernel->host, w, cls, g->declared, &watched, e);
    g->always = !watched;
    return s;
}

/* The same pointer is the same value, unless it can be changed by force. The defaults of a
 * function are its own until it gets others, those by name can change in place. */
static ing_status expect_whole(making *m, ing_py_guard *g, PyObject *obj) {
    ing_py_whole w;
    ING_TRY(ing_py_whole_of(m->kernel->st, obj, &w));
    g->classes = w.classes;
    g->always |= PyFunction_Check(obj) || PyMethod_Check(obj);
    if (w.kind == ING_WHOLE_CHANGES) return ING_OK;
    g->always |= w.kind == ING_WHOLE_CLASSED;
    if (PyFunction_Check(obj) && !PyFunction_GET_KW_DEFAULTS(obj))
        ing_py_guard_note_function(g, obj);
    else if (!g->always)
        g->expect = Py_NewRef(obj);
    return ING_OK;
}

/* What a guard may be satisfied with at a glance, seeing that the answer is right now. */
static ing_status expect(making *m, ing_py_guard *g, PyObject *obj, bool number,
                         ing_err *e) {
    ing_py_state *st = m->kernel->st;
    ing_py_def *d = g->ask == ING_ASK_SOURCE ? ing_py_def_of(st, obj) : NULL;
    PyObject *atom = ing_py_unbound(st, obj);
    g->bound = atom != obj;
    if (number) {
        g->number = Py_TYPE(obj);
    } else if (g->ask == ING_ASK_SOURCE && PyFunction_Check(obj)) {
        ing_py_guard_note_function(g, obj);
    } else if (g->ask == ING_ASK_WHOLE) {
        return expect_whole(m, g, obj);
    } else {
        int own = ing_py_is_atom(st, atom), member = ing_py_is_enum_member(st, atom);
        if (own < 0 || member < 0) return ING_PYTHON;
        if (own) g->expect = Py_NewRef(atom);
        g->is_member = own && member;
        if (g->is_member)
            return ing_py_watch_class(st, &m->checks->watch, Py_TYPE(atom), e);
    }
    if (!d) return ING_OK; /* a func keeps its code, or is refused */
    return ing_py_watch_pin(&m->checks->watch, d->fn,
                            &((PyFunctionObject *)d->fn)->func_code, e);
}

static bool is_object_answer(const ing_question *q) {
    ing_gate_fact f = {.kind = ING_GATE_OBJECT, .s = ""};
    bool yes = ing_hash_eq(q->answer, ing_py_fact_digest(&f));
    f.bound = true;
    yes |= ing_hash_eq(q->answer, ing_py_fact_digest(&f));
    return q->ask == ING_ASK_LOOK && yes;
}

/* A function is looked at each time wherever its name is: it may get other code. So is an object,
 * whose class may get other methods, or be assigned. A list or dict is one as long as it is there
 * (one of a derived class is an object): what it holds has questions of its own. */
static bool changes_in_place(const ing_question *q, PyObject *obj) {
    return obj && q->ask == ING_ASK_SOURCE && PyFunction_Check(obj);
}

static ing_status add_guard(making *m, const ing_question *q, ing_err *e) {
    ing_py_kernel *k = m->kernel;
    ing_py_checks *c = m->checks;
    ing_py_guard g = {.path = q->path, .ask = q->ask, .answer = q->answer};
    ING_TRY(want(m, place_of(k, q->path, (ing_ask)q->ask), &g.fetch, e));
    PyObject *obj = m->values.at[g.fetch - 1];
    bool is_field = q->ask == ING_ASK_MEANING &&
                    k->paths.nodes.at[q->path].step == ING_STEP_FIELD_TYPE;
    if (is_field && obj) ING_TRY(watch_field(m, obj, &g, e));
    /* The object may be another one by now than the one that was asked about. */
    ing_hash128 answer;
    bool number = ing_py_is_number(obj) &&
                  ing_py_fetch_at_launch(k->st, c, m->values.at, g.fetch);
    ing_status s =
        ing_py_answer_of(k, obj, number, q->path, (ing_ask)q->ask, &answer, e);
    g.is_object = is_object_answer(q);
    if (s == ING_OK && obj && ing_hash_eq(answer, q->answer))
        s = expect(m, &g, obj, number, e);
    g.always |= !c->fetches.at[g.fetch - 1].module_only || changes_in_place(q, obj) ||
                g.is_object;
    g.plain = !g.number && !g.code && !g.is_object && !g.is_member && !g.field &&
              !g.bound && g.ask != ING_ASK_SOURCE;
    if (ing_vec_push(&c->guards, g)) return s;
    guard_fini(&g);
    return no_memory(e);
}

/* ---- what is asked twice ---------------------------------------------------------------------- */

/* Is it read together with its siblings? */
static bool is_plain(const ing_py_fetch *f) {
    return f->step == ING_STEP_ATTR && f->parent && !f->whole && !f->module_only;
}

enum { KEY_THING = 1, KEY_STEP, KEY_GUARD };

/* What a call is of, by its arguments: 0 if one of them is a path. */
static ing_hash128 call_key(making *m, ing_path call, const uint32_t *same) {
    const ing_paths *p = &m->kernel->paths;
    ing_path at = p->nodes.at[call].parent;
    ing_hasher h;
    ing_hasher_init(&h);
    for (; ing_step_is_call_arg(p->nodes.at[at].step); at = p->nodes.at[at].parent) {
        const ing_path_node *n = &p->nodes.at[at];
        if (n->step == ING_STEP_CALL_PATH) return (ing_hash128){0, 0};
        ing_hasher_u64(&h, n->step, (uint64_t)n->i);
        ing_hasher_u64(&h, n->step, n->atom);
    }
    uint32_t fn = at < m->known.len ? m->known.at[at] : 0;
    if (!fn || !same[fn - 1] || !m->checks->fetches.at[fn - 1].module_only)
        return (ing_hash128){0, 0};
    ing_hasher_u64(&h, KEY_STEP, same[fn - 1]);
    return ing_hasher_done(&h);
}

/* By what a fetch is told from others: the thing that stands in what is watched, or the step
 * and where it starts. 0: from all others. */
static ing_hash128 fetch_key(making *m, uint32_t i, const uint32_t *same) {
    const ing_py_fetch *f = &m->checks->fetches.at[i];
    ing_hasher h;
    if (f->whole && f->step == ING_STEP_CALL) return call_key(m, f->path, same);
    ing_hasher_init(&h);
    if (f->module_only && m->values.at[i])
        ing_hasher_u64(&h, KEY_THING, (uint64_t)(uintptr_t)m->values.at[i]);
    else if (is_plain(f))
        ing_hasher_u64(&h, KEY_STEP, ((uint64_t)same[f->parent - 1] << 32) | f->atom);
    else
        return (ing_hash128){0, 0};
    return ing_hasher_done(&h);
}

/* same[i]: the first fetch, from 1, that gives what fetch i gives while what is watched is
 * unchanged. Parents come first. */
static ing_status find_twins(making *m, ing_map *seen, uint32_t *same, ing_err *e) {
    ing_py_checks *c = m->checks;
    for (uint32_t i = 0; i < c->fetches.len; i++) {
        ing_hash128 key = fetch_key(m, i, same);
        uint32_t first = key.lo || key.hi ? ing_map_get(seen, key) : 0;
        same[i] = first ? first : i + 1;
        if (!first && (key.lo || key.hi) && !ing_map_put(seen, key, i + 1))
            return no_memory(e);
        ing_py_twins t = {first, i + 1};
        if (first && c->fetches.at[i].module_only && !ing_vec_push(&c->twins, t))
            return no_memory(e);
    }
    return ING_OK;
}

/* What is asked about a place, or about an annotation there. */
static ing_hash128 guard_key(const making *m, const ing_py_guard *g, uint32_t same) {
    const ing_path_node *n = &m->kernel->paths.nodes.at[g->path];
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, KEY_GUARD, ((uint64_t)same << 32) | g->ask);
    ing_hasher_digest(&h, KEY_GUARD, g->answer);
    if (g->ask == ING_ASK_MEANING) {
        ing_hasher_u64(&h, n->step, (uint64_t)n->i);
        ing_hasher_u64(&h, n->step, n->atom);
    }
    return ing_hasher_done(&h);
}

/* Of guards that ask the same of twins the first is checked at each launch; the others when
 * something that is watched has changed. */
static ing_status drop_twins(making *m, ing_map *seen, const uint32_t *same,
                             ing_err *e) {
    ing_py_checks *c = m->checks;
    for (uint32_t i = 0; i < c->guards.len; i++) {
        ing_py_guard *g = &c->guards.at[i];
        if (!g->always) continue;
        ing_hash128 key = guard_key(m, g, same[g->fetch - 1]);
        if (!g->field) g->always = !ing_map_get(seen, key);
        if (!g->always) continue;
        c->fetches.at[g->fetch - 1].live = true;
        if (!ing_map_put(seen, key, 1)) return no_memory(e);
    }
    return ING_OK;
}

static ing_status ask_once(making *m, ing_err *e) {
    ing_map seen;
    uint32_t *same = ing_calloc((size_t)m->checks->fetches.len + 1, sizeof *same);
    if (!same) return no_memory(e);
    ing_map_init(&seen);
    ing_status s = find_twins(m, &seen, same, e);
    if (s == ING_OK) s = drop_twins(m, &seen, same, e);
    ing_map_fini(&seen);
    ing_free(same);
    return s;
}

/* ---- the order of fetches ------------------------------------------------------------------- */

/* `from`: groups before that one are complete. */
static bool add_members(ing_py_checks *v, const ing_py_fetch *f, uint32_t from) {
    uint32_t at = v->fetches.len - 1;
    ing_py_members *last = v->members.len ? &v->members.at[v->members.len - 1] : NULL;
    if (last && last->parent == f->parent && last->plain == is_plain(f) &&
        v->members.len > from) {
        last->n++;
        return true;
    }
    ing_py_members m = {.parent = f->parent, .first = at, .n = 1, .plain = is_plain(f)};
    return ing_vec_push(&v->members, m);
}

/* Fetches in a new order: parents still first, children of one parent together, and those
 * that stand in what is watched first, then those that every launch makes. */
typedef struct reordering {
    const ing_py_fetch *old;
    uint32_t *first, *next; /* lists of children by old numbers, first[0] the roots */
    uint32_t *moved;        /* old number -> new number, both from 1 */
    uint32_t *turns;        /* new number -> old number */
} reordering;

typedef enum phase { PHASE_CACHED, PHASE_LIVE, PHASE_REST } phase;

static phase phase_of(const ing_py_fetch *f) {
    return !f->live ? PHASE_REST : f->module_only ? PHASE_CACHED : PHASE_LIVE;
}

static bool order(ing_py_checks *v, const reordering *r, phase which) {
    uint32_t from = v->members.len;
    for (uint32_t turn = 0; turn <= v->fetches.len; turn++) {
        for (uint32_t i = r->first[r->turns[turn]]; i; i = r->next[i]) {
            ing_py_fetch f = r->old[i - 1];
            if (phase_of(&f) != which) continue;
            f.parent = turn;
            if (!ing_vec_push(&v->fetches, f) || !add_members(v, &f, from))
                return false;
            r->moved[i] = v->fetches.len;
            r->turns[v->fetches.len] = i;
        }
    }
    return true;
}

static void mark_live(ing_py_checks *v) {
    /* What a live fetch starts from is live. Parents come first. */
    for (uint32_t i = v->fetches.len; i-- > 0;) {
        const ing_py_fetch *f = &v->fetches.at[i];
        if (f->live && f->parent) v->fetches.at[f->parent - 1].live = true;
    }
}

static ing_status arrange(ing_py_checks *v, ing_err *e) {
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
        ok = order(v, &r, PHASE_CACHED);
        v->n_cached = v->fetches.len;
        v->n_cached_members = v->members.len;
        ok = ok && order(v, &r, PHASE_LIVE);
        v->n_live = v->fetches.len;
        v->n_live_members = v->members.len;
        ok = ok && order(v, &r, PHASE_REST);
        for (uint32_t i = 0; ok && i < v->binds.len; i++)
            v->binds.at[i].fetch = r.moved[v->binds.at[i].fetch]; /* 0 stays 0 */
        for (uint32_t i = 0; ok && i < v->guards.len; i++)
            v->guards.at[i].fetch = r.moved[v->guards.at[i].fetch];
        for (uint32_t i = 0; ok && i < v->twins.len; i++)
            v->twins.at[i] = (ing_py_twins){r.moved[v->twins.at[i].first],
                                            r.moved[v->twins.at[i].second]};
    }
    ing_free(old);
    ing_free(lists);
    return ok ? ING_OK : no_memory(e);
}

/* The bind of a record, which it begins with. False = raised. */
static bool bind_of(ing_py_state *st, const ing_home *home, const ing_record_bind *from,
                    ing_py_bind *out) {
    bool array = from->kind == ING_BIND_ARRAY || from->kind == ING_BIND_CAPTURED;
    ing_place place;
    _Static_assert(offsetof(ing_py_bind, spec) >= sizeof *from, "the same members");
    memset(out, 0, sizeof *out);
    memcpy(out, from, sizeof *from);
    if (array && ing_place_get(from->place.at, from->place.len, &place))
        out->field = ing_py_layout_of_place(st, &place);
    else if (array)
        out->spec = ing_py_spec_get(st, &from->array, home);
    return !array || out->spec || out->field;
}

/* Which fields share a block is compared where they are bound. (How many words there are is
 * not known yet when a variant is compiled.) */
static ing_status note_blocks(ing_py_checks *c, ing_err *e) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < c->binds.len; i++)
        if (c->binds.at[i].word > last) last = c->binds.at[i].word;
    uint8_t *bound = ing_calloc((size_t)last + 1, 1);
    ing_py_bind *first = NULL;
    if (!bound) return no_memory(e);
    for (uint32_t i = 0; i < c->binds.len; i++) {
        ing_py_bind *b = &c->binds.at[i];
        if (!b->field) continue;
        if (first) {
            b->beside = bound[b->word] ? ING_BESIDE_SAME : ING_BESIDE_NEXT;
            first->beside = ING_BESIDE_FIRST;
        } else {
            first = b;
        }
        bound[b->word] = 1;
    }
    ing_free(bound);
    return ING_OK;
}

static ing_status make_all(making *m, ing_err *e) {
    ing_py_variant *v = m->variant;
    ing_py_checks *c = m->checks;
    ING_TRY(note_wholes(m, e));
    for (uint32_t i = 0; i < v->record.binds.len; i++) {
        ing_py_bind b;
        if (!bind_of(m->kernel->st, v->target->home, &v->record.binds.at[i], &b))
            return ING_PYTHON;
        if (b.kind == ING_BIND_CAPTURED || b.kind == ING_BIND_NUMBER) {
            ING_TRY(want(m, b.path, &b.fetch, e));
            c->fetches.at[b.fetch - 1].live = true;
        }
        if (!ing_vec_push(&c->binds, b)) return no_memory(e);
    }
    ING_TRY(note_blocks(c, e));
    for (uint32_t i = 0; i < v->record.trace.list.len; i++) {
        ing_question q = v->record.trace.list.at[i];
        bool relation;
        if (is_fixed(m->kernel, &q) || is_bound(m->kernel, v, &q)) continue;
        ING_TRY(is_relation(m, q.path, &relation, e));
        if (!relation)
            ING_TRY(add_guard(m, &q, e));
        else if (!ing_vec_push(&c->relations, i))
            return no_memory(e);
    }
    ING_TRY(ask_once(m, e));
    for (uint32_t i = 0; i < c->guards.len; i++) {
        ing_py_guard g = c->guards.at[i];
        if (!g.always) continue;
        c->guards.at[i] = c->guards.at[c->n_always];
        c->guards.at[c->n_always++] = g;
    }
    return arrange(c, e);
}

ing_status ing_py_guards_make(ing_py_kernel *k, ing_py_variant *v,
                              PyObject *const *args, ing_err *e) {
    making m = {.kernel = k, .variant = v, .args = args};
    m.checks = ing_calloc(1, sizeof *m.checks);
    if (!m.checks) return no_memory(e);
    m.checks->refs = 1;
    ing_map_init(&m.wholes);
    ing_map_init(&m.calls);
    ing_status s = make_all(&m, e);
    for (uint32_t i = 0; i < m.values.len; i++) Py_XDECREF(m.values.at[i]);
    ing_vec_fini(&m.values);
    ing_vec_fini(&m.known);
    ing_map_fini(&m.wholes);
    ing_map_fini(&m.calls);
    if (s != ING_OK) {
        ing_py_checks_unref(m.checks);
        return s;
    }
    ing_py_checks *old = v->checks;
    v->checks = m.checks; /* the first launch compares everything, then marks */
    ing_py_checks_unref(old);
    return ING_OK;
}
