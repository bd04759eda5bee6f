/* The purity check of `fastcache=True`, as the reference has it: numbers, strings and arrays
 * that a kernel or its funcs take from outside instead of from arguments are refused; names
 * in capitals and names read only inside qd.static warn. Allowed are members of enums,
 * constants of math and NumPy, and Ingot's own. Called after lowering, with the trace that it
 * left, so that branches which were cut away do not count. It never changes what is compiled:
 * the cache is right without it. */
#include "py/call/kernel.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

ing_status ing_py_pure_tell(ing_py_kernel *k) {
    if (!k->st->settings.at[ING_SET_print_non_pure] || k->non_pure_told) return ING_OK;
    k->non_pure_told = true;
    ing_bytes text;
    if (k->pure) return ING_OK;
    ing_bytes_init(&text);
    ing_bytes_printf(&text, "[NOT_PURE] %s is not marked fastcache=True\n",
                     ing_py_def_name(&k->def));
    int rc = text.failed ? 0 : ing_py_say("stdout", (const char *)text.at, text.len);
    ing_bytes_fini(&text);
    return rc < 0 ? ING_PYTHON : ING_OK;
}

/* Has nobody been told of this type yet? -1: raised. */
static int is_news(ing_py_host *h, PyTypeObject *type) {
    PyObject *name = PyUnicode_FromString(type->tp_name);
    if (name && !h->told_types) h->told_types = PySet_New(NULL);
    int seen = name && h->told_types ? PySet_Contains(h->told_types, name) : -1;
    if (seen == 0 && PySet_Add(h->told_types, name) < 0) seen = -1;
    Py_XDECREF(name);
    return seen < 0 ? -1 : !seen;
}

ing_status ing_py_pure_only_here(ing_py_kernel *k, const ing_py_unreplayable *what) {
    if (!k->pure) return ING_OK;
    ing_bytes path;
    ing_bytes_init(&path);
    ing_path_print(&k->paths, what->fn, &path);
    int news = is_news(k->host, what->type);
    if (news > 0)
        news = PyErr_WarnFormat(
            k->st->exc[ING_PY_EXC_WARNING], 1,
            "[FASTCACHE][UNKNOWN_TYPE] a value of type %s goes to a call of %s: "
            "another "
            "process cannot make that call again, so the code stays in memory. Pass it "
            "numbers, strings, None or things from outside the kernel",
            what->type->tp_name, path.at ? (const char *)path.at : "?");
    ing_bytes_fini(&path);
    if (news < 0) return ING_PYTHON;
    int bad = PyErr_WarnFormat(
        k->st->exc[ING_PY_EXC_WARNING], 1,
        "[FASTCACHE][INVALID_FUNC] %s is marked fastcache and was not kept on disk",
        ing_py_def_name(&k->def));
    return bad < 0 ? ING_PYTHON : ING_OK;
}

/* A captured value: which function reads it, by which name, and what follows. */
typedef struct capture {
    ing_path owner;    /* the function */
    ing_path place;    /* the name itself */
    ing_path parent;   /* what the last attribute was read from; 0: the name is all */
    const char *first; /* the name */
    const char *last;  /* the last attribute, or the name */
} capture;

/* Follows a path from its end to the name where it left a function's scope. */
static bool capture_of(const ing_py_kernel *k, ing_path path, capture *out) {
    const ing_paths *p = &k->paths;
    memset(out, 0, sizeof *out);
    for (ing_path at = path; at; at = p->nodes.at[at].parent) {
        const ing_path_node *n = &p->nodes.at[at];
        if (n->step == ING_STEP_GLOBAL || n->step == ING_STEP_CLOSURE) {
            out->first = ing_atoms_text(&p->atoms, n->atom);
            if (!out->last) out->last = out->first;
            out->owner = n->parent;
            out->place = at;
            return true;
        }
        if (n->step != ING_STEP_ATTR)
            return false; /* items of containers are allowed */
        if (!out->last) {
            out->last = ing_atoms_text(&p->atoms, n->atom);
            out->parent = n->parent;
        }
    }
    return false;
}

static bool is_capitals(const char *s) {
    for (; *s; s++)
        if (islower((unsigned char)*s)) return false;
    return true;
}

bool ing_py_is_in_module(const char *name, const char *module) {
    size_t n = strlen(module);
    return strncmp(name, module, n) == 0 && (name[n] == 0 || name[n] == '.');
}

/* Compat shows the package under other names as well. */
bool ing_py_is_our_module(const char *name) {
    static const char *const ours[] = {"ingot", "quadrants", "taichi"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ing_py_is_in_module(name, ours[i])) return true;
    return false;
}

/* math, NumPy, and the package itself. 1, 0 or -1 = raised, as all of these. */
static int is_allowed_home(PyObject *obj) {
    PyObject *name;
    char s[64] = "";
    int rc =
        ing_py_attr_maybe(obj, PyModule_Check(obj) ? "__name__" : "__module__", &name);
    if (rc == 1 && PyUnicode_Check(name)) rc = ing_py_show(name, s, sizeof s);
    Py_XDECREF(name);
    if (rc < 0) return ing_py_took_any() ? 0 : -1;
    bool allowed = PyModule_Check(obj) &&
                   (ing_py_is_in_module(s, "math") || ing_py_is_in_module(s, "numpy"));
    return allowed || ing_py_is_our_module(s);
}

static int kind_of(ing_py_state *st, PyObject *obj, ing_gate_kind *out) {
    ing_gate_fact f;
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = ing_py_declined(ing_py_see(st, obj, &f, &ignored));
    ing_err_fini(&ignored);
    *out = s == ING_OK ? f.kind : ING_GATE_OBJECT;
    return s == ING_PYTHON ? -1 : 1;
}

static int is_allowed_parent(ing_py_state *st, PyObject *parent) {
    ing_gate_kind kind;
    int rc = is_allowed_home(parent);
    if (rc == 0 && (rc = kind_of(st, parent, &kind)) == 1) rc = kind == ING_GATE_ENUM;
    return rc;
}

/* Is this a value that code would have baked in or bound? Members of enums are not. */
static int is_captured_value(ing_py_state *st, PyObject *obj) {
    ing_gate_kind kind;
    if (kind_of(st, obj, &kind) < 0) return -1;
    return kind == ING_GATE_BOOL || kind == ING_GATE_INT || kind == ING_GATE_FLOAT ||
           kind == ING_GATE_STR || kind == ING_GATE_ARRAY || kind == ING_GATE_FIELD ||
           kind == ING_GATE_BUNDLE;
}

/* Is it one that the function may not read? */
static int is_forbidden(ing_py_state *st, PyObject *value, PyObject *parent,
                        const ing_py_def *d) {
    int rc = is_captured_value(st, value);
    int allowed = rc == 1 && parent ? is_allowed_parent(st, parent) : 0;
    if (rc == 1 && allowed == 0) allowed = is_allowed_home(d->fn);
    return allowed < 0 ? -1 : rc == 1 ? !allowed : rc;
}

/* ---- where in the text ------------------------------------------------------------------ */

static const char *atom_at(const ing_front_tree *t, uint32_t slot) {
    uint32_t atom = t->slots.at[slot];
    return atom ? ing_atoms_text(&t->atoms, atom - 1) : "";
}

static bool is_static_call(const ing_front_tree *t, ing_node n) {
    if (t->nodes.at[n].kind != ING_NODE_CALL) return false;
    ing_node func = t->slots.at[t->nodes.at[n].slots];
    if (!func) return false;
    const ing_front_node *f = &t->nodes.at[func];
    if (f->kind == ING_NODE_NAME) return strcmp(atom_at(t, f->slots), "static") == 0;
    return f->kind == ING_NODE_ATTRIBUTE &&
           strcmp(atom_at(t, f->slots + 1), "static") == 0;
}

static bool contains(const ing_front_node *outer, const ing_front_node *inner) {
    bool after = inner->line > outer->line ||
                 (inner->line == outer->line && inner->col >= outer->col);
    bool before =
        inner->end_line < outer->end_line ||
        (inner->end_line == outer->end_line && inner->end_col <= outer->end_col);
    return after && before;
}

static bool is_in_static(const ing_front_tree *t, ing_node name) {
    for (ing_node n = 1; n < name; n++) /* parents come first */
        if (is_static_call(t, n) && contains(&t->nodes.at[n], &t->nodes.at[name]))
            return true;
    return false;
}

/* The first use of the name outside qd.static, else the first one at all (*all_static). */
static ing_node use_of(const ing_front_tree *t, const char *name, bool *all_static) {
    ing_node first = 0;
    *all_static = true;
    for (ing_node n = 1; n < t->nodes.len; n++) {
        const ing_front_node *node = &t->nodes.at[n];
        if (node->kind != ING_NODE_NAME || strcmp(atom_at(t, node->slots), name) != 0)
            continue;
        if (!is_in_static(t, n)) {
            *all_static = false;
            return n;
        }
        if (!first) first = n;
    }
    return first;
}

/* ---- the check --------------------------------------------------------------------------- */

/* A warning is kept with the variant and given again in other processes, so it names no
 * file and no line (R19); the error shows the place. */
static ing_status report(ing_py_kernel *k, ing_py_gate *g, ing_py_def *d,
                         const capture *c, PyObject *value, ing_err *e) {
    const ing_front_tree *t;
    ING_TRY(ing_py_def_tree(k->st, d, &t, e));
    bool all_static;
    ing_node at = use_of(t, c->first, &all_static);
    char text[512];
    snprintf(
        text, sizeof text,
        "[PURE.VIOLATION] %s, of a fastcache kernel, reads '%s' (%.80s) from outside "
        "its arguments",
        ing_py_def_name(d), c->last, Py_TYPE(value)->tp_name);
    const ing_gate *face = ing_py_gate_face(g);
    if (is_capitals(c->last) || all_static)
        return face->ops->warn(face->self, "pure", text, NULL, 0, e);
    return ing_front_diag(
        t, at ? at : t->root, ING_COMPILE,
        "pass it as an argument, or leave out fastcache=True: every kernel is cached",
        e, "%s", text);
}

static ing_status check_one(ing_py_kernel *k, ing_py_gate *g, PyObject *const *args,
                            ing_path path, ing_err *e) {
    capture c;
    if (!capture_of(k, path, &c)) return ING_OK;
    PyObject *value = NULL, *parent = NULL, *owner = NULL;
    ing_status s = ing_py_resolve(k, args, path, &value, e);
    if (s == ING_OK && c.parent) s = ing_py_resolve(k, args, c.parent, &parent, e);
    if (s == ING_OK) s = ing_py_resolve(k, args, c.owner, &owner, e);
    ing_py_def *d = ing_py_def_of(k->st, owner);
    int bad = s == ING_OK && value && d ? is_forbidden(k->st, value, parent, d) : 0;
    if (bad) s = bad < 0 ? ING_PYTHON : report(k, g, d, &c, value, e);
    Py_XDECREF(value);
    Py_XDECREF(parent);
    Py_XDECREF(owner);
    return s;
}

ing_status ing_py_pure_check(ing_py_kernel *k, ing_py_gate *g, PyObject *const *args,
                             ing_err *e) {
    if (!k->pure) return ING_OK;
    const ing_trace *t = ing_py_gate_trace(g);
    for (uint32_t i = 0; i < t->list.len; i++)
        if (t->list.at[i].ask == ING_ASK_LOOK)
            ING_TRY(check_one(k, g, args, t->list.at[i].path, e));
    return ING_OK;
}
