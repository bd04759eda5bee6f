/* The gate over CPython (src/gate/gate.h): the only way by which lowering sees Python.
 * Walking is free; each fact that is asked for goes into the trace of the open frame.
 * Used with the GIL held for the length of one lowering.
 *
 * A thing is an object with the path by which it was reached, relative to the open frame
 * (what is recorded) and from the kernel's root (where a launch finds it). Path 0: the
 * front end made it from values it already knows; nothing to record. */
#include "py/array/foreign.h"
#include "py/see/gate_int.h"
#include "py/array/tensor.h"

#include <string.h>

enum { MAX_STEPS = 200, MAX_FRAMES = 1000 };

static frame *top(ing_py_gate *g) {
    return &g->frames.at[g->frames.len - 1];
}

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory while compiling a kernel");
}

/* A new thing; takes obj. */
ing_status ing_py_thing_take(ing_py_gate *g, PyObject *obj, ing_path path,
                             ing_path root, ing_gref *out, ing_err *e) {
    thing t = {.obj = obj, .path = path, .root = root};
    if (!ing_vec_push(&g->things, t)) {
        Py_XDECREF(obj);
        return no_memory(e);
    }
    *out = g->things.len - 1;
    return ING_OK;
}

ing_status ing_py_gate_record(ing_py_gate *g, ing_path path, ing_ask ask,
                              ing_hash128 answer, ing_err *e) {
    if (path == 0) return ING_OK;
    return ing_trace_add(&top(g)->trace, path, ask, answer) ? ING_OK : no_memory(e);
}

static ing_status record_fact(ing_py_gate *g, ing_path path, const ing_gate_fact *f,
                              ing_err *e) {
    ing_hash128 answer = ing_py_fact_digest(f);
    if (path && !ing_answers_known(&g->answers, answer, 0)) {
        ing_bytes words;
        ing_bytes_init(&words);
        ing_words_fact(f, &words);
        ing_answers_add(&g->answers, answer, 0, &words);
        ing_bytes_fini(&words);
    }
    return ing_py_gate_record(g, path, ING_ASK_LOOK, answer, e);
}

static ing_status record_absent(ing_py_gate *g, ing_path path, ing_err *e) {
    ing_gate_fact absent = {.kind = ING_GATE_ABSENT};
    return record_fact(g, path, &absent, e);
}

/* Says where a function's text is: "helper() in util.py". */
ing_status ing_py_gate_record_source(ing_py_gate *g, const thing *fn,
                                     ing_hash128 answer, ing_err *e) {
    if (fn->path && !ing_answers_known(&g->answers, answer, 0)) {
        ing_bytes words;
        ing_bytes_init(&words);
        int rc = ing_py_source_words(g->kernel->st, fn->obj, &words);
        if (rc == 0) ing_answers_add(&g->answers, answer, 0, &words);
        ing_bytes_fini(&words);
        if (rc < 0) return ING_PYTHON;
    }
    return ing_py_gate_record(g, fn->path, ING_ASK_SOURCE, answer, e);
}

/* The path of an annotation or default of parameter i; 0: no memory. */
static ing_path param_path(ing_py_gate *g, const frame *f, ing_step step, uint32_t i) {
    const char *name = ing_py_utf8(PyTuple_GET_ITEM(f->def->names, i));
    return ing_path_add(&g->kernel->paths, f->func, step, name, i);
}

/* Both names of one step from a thing. False: no memory. */
static bool step_paths(ing_paths *paths, thing from, ing_step step, const char *name,
                       int64_t i, ing_path *path, ing_path *root) {
    *root = ing_path_add(paths, from.root, step, name, i);
    *path = from.path == from.root ? *root
            : from.path            ? ing_path_add(paths, from.path, step, name, i)
                                   : 0;
    return *root && (!from.path || *path);
}

/* Numbers below an object that has them read at launch are too, however deep. */
static bool below_at_launch(const ing_py_gate *g, const thing *from) {
    return from->at_launch ||
           (from->obj && ing_py_members_at_launch(g->kernel->st, from->obj));
}

/* One step from a thing; what is absent is recorded as such and comes out as 0. */
static ing_status step_from(ing_py_gate *g, thing from, ing_step step, const char *name,
                            int64_t i, ing_gref *out, ing_err *e) {
    *out = 0;
    ing_paths *paths = &g->kernel->paths;
    ing_path path, root;
    if (!step_paths(paths, from, step, name, i, &path, &root)) return no_memory(e);
    PyObject *obj = NULL;
    ing_path_node node = paths->nodes.at[root];
    ING_TRY(ing_py_step(g->kernel, g->args, from.obj, &node, &obj, e));
    if (!from.path) path = root = 0;
    if (!obj) return path ? record_absent(g, path, e) : ING_OK;
    ING_TRY(ing_py_thing_take(g, obj, path, root, out, e));
    ing_py_thing(g, *out)->at_launch =
        path && below_at_launch(g, &from) && !ing_step_is_derived((uint8_t)step);
    return ING_OK;
}

static ing_status refuse_field(const thing *from, const char *name, ing_err *e) {
    return ing_fail(e, ING_SYNTAX,
                    "the field '%s' of %.100s is declared as a @qd.data_oriented "
                    "class: annotate the "
                    "kernel's parameter with qd.template() instead of the dataclass",
                    name, ((PyTypeObject *)from->type)->tp_name);
}

/* What the dataclass that `from` is declared as says of the member that was just reached.
 * A number that is declared as one is not compiled in. */
static ing_status declare(ing_py_gate *g, thing from, const char *name, ing_gref of,
                          ing_err *e) {
    if (!of || !from.path || !from.type) return ING_OK;
    thing *t = ing_py_thing(g, of);
    ing_path path =
        ing_path_add(&g->kernel->paths, from.type_path, ING_STEP_FIELD_TYPE, name, 0);
    PyObject *key = ing_py_from_utf8(name, strlen(name));
    if (!path || !key) {
        Py_XDECREF(key);
        return path ? ING_PYTHON : no_memory(e);
    }
    int rc = ing_py_field_meaning(g->kernel->st, from.type, key, &t->field);
    ing_hash128 declared = ing_py_field_digest(&t->field);
    /* What only looks like a vector, a list, is what it is. */
    if (t->field.kind == ING_FIELD_TENSOR && !ing_py_is_tensor(g->kernel->st, t->obj))
        t->field.kind = ING_FIELD_OPEN;
    if (rc >= 0 && t->field.kind == ING_FIELD_STRUCT) {
        rc = ing_py_field_type(g->kernel->st, from.type, key, &t->type);
        t->type_path = path;
    }
    Py_DECREF(key);
    if (rc < 0) return ING_PYTHON;
    if (t->field.kind == ING_FIELD_REFUSED) return refuse_field(&from, name, e);
    ing_bytes words;
    ing_bytes_init(&words);
    ing_py_field_words(&t->field, &words);
    ing_answers_add(&g->answers, declared, ING_OF_MEANING, &words);
    ing_bytes_fini(&words);
    return ing_py_gate_record(g, path, ING_ASK_MEANING, declared, e);
}

/* ---- walking ------------------------------------------------------------------------------ */

static ing_status gate_name(void *self, const char *name, ing_gref *out, ing_err *e) {
    ing_py_gate *g = self;
    frame *f = top(g);
    thing owner = *ing_py_thing(g, f->params[f->n_params]);
    if (ing_py_def_is_free(f->def, name))
        return step_from(g, owner, ING_STEP_CLOSURE, name, 0, out, e);
    ING_TRY(step_from(g, owner, ING_STEP_GLOBAL, name, 0, out, e));
    if (*out) return ING_OK;
    return step_from(g, owner, ING_STEP_BUILTIN, name, 0, out, e);
}

/* Paths stay within what following them again allows. */
ing_status ing_py_gate_depth(ing_py_gate *g, ing_path p, ing_err *e) {
    uint32_t n = 0, calls = 0;
    for (; p; p = g->kernel->paths.nodes.at[p].parent) {
        ing_path_node node = g->kernel->paths.nodes.at[p];
        if (ing_step_names_path(&node)) {
            uint32_t inner = 1;
            for (ing_path a = (ing_path)node.i; a;
                 a = g->kernel->paths.nodes.at[a].parent)
                if (ing_step_names_path(&g->kernel->paths.nodes.at[a])) inner++;
            calls = inner > calls ? inner : calls;
        }
        if (++n > MAX_STEPS || calls >= ING_PATH_MAX_NESTING)
            return ing_fail(e, ING_SYNTAX,
                            "too many steps between the kernel and this value");
    }
    return ING_OK;
}

/* Whether two things are one. Asked again later unless both are known by their paths' values:
 * what the front end made itself is compared once. */
static ing_status gate_same(ing_py_gate *g, thing a, thing b, ing_gref *out,
                            ing_err *e) {
    ing_paths *paths = &g->kernel->paths;
    ing_path path = 0, root = 0;
    if (a.path && b.path) {
        ING_TRY(ing_py_gate_depth(g, b.path, e));
        root = ing_path_add(paths, a.root, ING_STEP_SAME, NULL, (int64_t)b.root);
        path = ing_path_add(paths, a.path, ING_STEP_SAME, NULL, (int64_t)b.path);
        if (!root || !path) return no_memory(e);
    }
    return ing_py_thing_take(g, PyBool_FromLong(a.obj == b.obj), path, root, out, e);
}

static ing_status gate_look(void *self, ing_gref of, ing_gate_fact *out, ing_err *e);

static ing_status gate_attr(void *self, ing_gref of, const char *name, ing_gref *out,
                            ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, of);
    ING_TRY(ing_py_gate_depth(g, t.path, e));
    ING_TRY(step_from(g, t, ING_STEP_ATTR, name, 0, out, e));
    if (*out && t.obj && PyModule_Check(t.obj)) {
        ing_py_thing(g, *out)->of_module = true;
        if (g->kernel->st->settings.at[ING_SET_raise_on_templated_floats]) {
            ing_gate_fact module; /* it matters that it is one (check_float) */
            ING_TRY(gate_look(g, of, &module, e));
        }
    }
    /* The numbers of a declared vector are one step further. */
    if (*out && t.field.kind == ING_FIELD_TENSOR && strcmp(name, "_entries") == 0)
        ing_py_thing(g, *out)->field = t.field;
    return declare(g, t, name, *out, e);
}

static ing_status gate_attr_of_root(void *self, ing_gref of, const char *name,
                                    ing_gref *out, ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, of);
    t.path = t.root;
    ING_TRY(ing_py_gate_depth(g, t.path, e));
    return step_from(g, t, ING_STEP_ATTR, name, 0, out, e);
}

static ing_status gate_same_of_root(void *self, ing_gref a, ing_gref b, bool record,
                                    bool *out, ing_err *e) {
    ing_py_gate *g = self;
    thing x = *ing_py_thing(g, a), y = *ing_py_thing(g, b);
    *out = x.obj == y.obj;
    if (!record || !x.root || !y.root) return ING_OK;
    ing_gate_fact f = {.kind = ING_GATE_BOOL, .i = *out, .s = ""};
    ing_path path =
        ing_path_add(&g->kernel->paths, x.root, ING_STEP_SAME, NULL, (int64_t)y.root);
    return path ? record_fact(g, path, &f, e) : no_memory(e);
}

static ing_status gate_item(void *self, ing_gref of, const ing_gate_key *k,
                            ing_gref *out, ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, of);
    ING_TRY(ing_py_gate_depth(g, t.path, e));
    if (k->is_str) return step_from(g, t, ING_STEP_ITEM_STR, k->s, 0, out, e);
    ING_TRY(step_from(g, t, ING_STEP_ITEM_INT, NULL, k->i, out, e));
    if (*out && t.field.kind == ING_FIELD_TENSOR && PyList_Check(t.obj))
        ing_py_thing(g, *out)->field =
            (ing_py_declared){.kind = ING_FIELD_NUMBER, .dtype = t.field.dtype};
    return ING_OK;
}

static ing_status gate_has(void *self, ing_gref of, const char *attr,
                           const ing_gate_key *k, bool *out, ing_err *e) {
    ing_py_gate *g = self;
    ing_paths *paths = &g->kernel->paths;
    thing t = *ing_py_thing(g, of), step = {0};
    ing_step kind = !k          ? ING_STEP_ATTR
                    : k->is_str ? ING_STEP_ITEM_STR
                                : ING_STEP_ITEM_INT;
    const char *name = !k ? attr : k->is_str ? k->s : NULL;
    ing_path is, root;
    ING_TRY(ing_py_gate_depth(g, t.path, e));
    if (!step_paths(paths, t, kind, name, k && !k->is_str ? k->i : 0, &step.path,
                    &step.root) ||
        !step_paths(paths, step, ING_STEP_SAME, NULL, 0, &is, &root))
        return no_memory(e);
    ing_path_node node = paths->nodes.at[step.root];
    ING_TRY(ing_py_step(g->kernel, g->args, t.obj, &node, &step.obj, e));
    ing_gate_fact f = {.kind = step.obj ? ING_GATE_BOOL : ING_GATE_ABSENT,
                       .i = step.obj == Py_None,
                       .s = ""};
    *out = step.obj != NULL;
    Py_XDECREF(step.obj);
    return record_fact(g, t.path ? is : 0, &f, e);
}

static ing_status gate_derive(void *self, ing_gref of, ing_gate_derived what,
                              ing_gref other, ing_gref *out, ing_err *e) {
    static const ing_step steps[] = {
        [ING_DERIVE_LEN] = ING_STEP_LEN,
        [ING_DERIVE_TRUTH] = ING_STEP_TRUTH,
        [ING_DERIVE_ITEMS] = ING_STEP_ITEMS,
        [ING_DERIVE_SAME] = ING_STEP_SAME,
    };
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, of);
    ING_TRY(ing_py_gate_depth(g, t.path, e));
    if (other) return gate_same(g, t, *ing_py_thing(g, other), out, e);
    return step_from(g, t, steps[what], NULL, 0, out, e);
}

static void put_shape(uint32_t rank, const uint32_t *shape, char *buf, size_t size) {
    if (rank == 2)
        snprintf(buf, size, "a matrix of %u x %u", shape[0], shape[1]);
    else
        snprintf(buf, size, "a vector of %u", shape[0]);
}

static ing_status check_tensor(ing_py_gate *g, const thing *t, const ing_gate_fact *f,
                               ing_err *e) {
    const ing_gate_tensor *want = &t->field.array.tensor;
    bool columns = want->rank < 2 || want->shape[1] == f->elem_shape[1];
    if (f->kind != ING_GATE_TENSOR ||
        (want->rank == f->elem_rank && want->shape[0] == f->elem_shape[0] && columns))
        return ING_OK;
    char declared[64], is[64];
    put_shape(want->rank, want->shape, declared, sizeof declared);
    put_shape(f->elem_rank, f->elem_shape, is, sizeof is);
    ing_fail(e, ING_TYPE, "it is declared as %s, it is %s", declared, is);
    return ing_py_at_path(g->kernel, t->root, ING_TYPE, e);
}

/* A member of a dataclass must be what its class declares. */
static ing_status check_declared(ing_py_gate *g, const thing *t, const ing_gate_fact *f,
                                 ing_err *e) {
    const ing_gate_param *p = &t->field.array;
    bool array = f->kind == ING_GATE_ARRAY;
    if (t->field.kind == ING_FIELD_TENSOR) return check_tensor(g, t, f, e);
    if (t->field.kind != ING_FIELD_ARRAY || f->kind == ING_GATE_NONE) return ING_OK;
    bool field = f->kind == ING_GATE_FIELD || f->kind == ING_GATE_BUNDLE;
    if (p->fields && field) return ING_OK; /* of any kind, as in a parameter */
    if (f->structure && ing_gate_fits_structs(f, p->layout, p->ndim) && !p->dtype)
        return ING_OK;
    if (array && !p->layout && (!p->dtype || p->dtype == f->dtype) &&
        (p->ndim < 0 || p->ndim == (int32_t)f->ndim) && (!p->needs_grad || f->grad))
        return ING_OK;
    ing_bytes path;
    ing_bytes_init(&path);
    ing_words_path(&g->kernel->paths, t->root, &path);
    const char *at = path.at ? (const char *)path.at : "?";
    ing_status s;
    if (!array)
        s = ing_fail(e, ING_TYPE, "%s is declared as an array, it is %.100s", at,
                     t->obj ? Py_TYPE(t->obj)->tp_name : "missing");
    else
        s = ing_fail(e, ING_TYPE,
                     "%s is an array of %s with %u axes%s, its dataclass declares "
                     "another kind: change the declaration or the array",
                     at, ing_dtype_name(f->dtype), f->ndim,
                     f->grad ? "" : ", without gradient");
    ing_bytes_fini(&path);
    return s;
}

static ing_status gate_config(void *self, ing_setting k, int64_t *out, ing_err *e) {
    ing_py_gate *g = self;
    ing_setting_use use = ing_setting_used(k);
    if (use != ING_USE_ASKED && use != ING_USE_ALWAYS)
        return ing_fail(e, ING_INTERNAL, "the setting %s is not one of those asked for",
                        ing_setting_name(k));
    *out = g->kernel->st->settings.at[k];
    ing_path p =
        ing_path_add(&g->kernel->paths, 0, ING_STEP_CONFIG, ing_setting_name(k), k);
    if (!p) return no_memory(e);
    ing_bytes words;
    ing_bytes_init(&words);
    ing_words_setting(k, *out, &words);
    ing_answers_add(&g->answers, ing_hash(out, sizeof *out), (uint32_t)k + 1, &words);
    ing_bytes_fini(&words);
    return ing_py_gate_record(g, p, ING_ASK_CONFIG, ing_hash(out, sizeof *out), e);
}

/* A float that differs from run to run makes a variant each time: programs that want none
 * of that set raise_on_templated_floats. Constants of modules stay what they are. Asked
 * after the float was recorded: the question follows from that answer. */
static ing_status check_float(ing_py_gate *g, const thing *t, const ing_gate_fact *f,
                              ing_err *e) {
    int64_t refused;
    if (f->kind != ING_GATE_FLOAT || !t->path) return ING_OK;
    ING_TRY(gate_config(g, ING_SET_raise_on_templated_floats, &refused, e));
    if (!refused || t->of_module) return ING_OK;
    return ing_fail(e, ING_VALUE,
                    "the float %.17g would be compiled in, and qd.init was told "
                    "raise_on_templated_floats=True\nhelp: pass it as an argument "
                    "annotated with a float type",
                    f->f);
}

static ing_status gate_look(void *self, ing_gref of, ing_gate_fact *out, ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, of);
    ing_py_state *st = g->kernel->st;
    if (t.field.kind == ING_FIELD_NUMBER) { /* its declaration was recorded */
        *out =
            (ing_gate_fact){.kind = ING_GATE_SCALAR, .dtype = t.field.dtype, .s = ""};
        return ING_OK;
    }
    ing_status s =
        ing_py_see_arg(st, ing_py_param_at(g->kernel, t.root), t.obj, out, e);
    if (s != ING_OK) return ing_py_at_path(g->kernel, t.root, s, e);
    if (t.at_launch) ing_py_as_number(st, t.obj, out);
    ING_TRY(check_declared(g, &t, out, e));
    ING_TRY(record_fact(g, t.path, out, e));
    return check_float(g, &t, out, e);
}

/* A NumPy array that was found, not passed or declared as one. Nothing is recorded: what is
 * read of it will be. */
static bool gate_constant(void *self, ing_gref of) {
    ing_py_gate *g = self;
    const thing *t = ing_py_thing(g, of);
    const ing_gate_param *p = ing_py_param_at(g->kernel, t->root);
    if (!t->obj || t->field.kind != ING_FIELD_OPEN) return false;
    if (p && p->passing != ING_PASS_TEMPLATE) return false;
    return !Py_IS_TYPE(t->obj, g->kernel->st->array_type) &&
           ing_py_foreign_kind_of(g->kernel->st, t->obj) == ING_FOREIGN_BUFFER;
}

/* A declared number can be compiled in as well; one of an object whose numbers are read at
 * launch was asked not to be. */
static ing_status gate_bake(void *self, ing_gref of, ing_gate_fact *out, ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, of);
    if (t.field.kind == ING_FIELD_NUMBER) {
        ING_TRY(ing_py_see(g->kernel->st, t.obj, out, e));
        return record_fact(g, t.path, out, e);
    }
    ING_TRY(gate_look(self, of, out, e));
    if (!t.at_launch || out->kind != ING_GATE_SCALAR) return ING_OK;
    return ing_fail(
        e, ING_SYNTAX,
        "a number of a class with template_primitives=False is read at each "
        "launch: qd.static() cannot take it");
}

static uint32_t gate_place(void *self, ing_gref of) {
    return ing_py_thing(self, of)->root;
}

static bool gate_captured(void *self, ing_gref of) {
    ing_py_gate *g = self;
    ing_path p = ing_py_thing(g, of)->path;
    while (p && g->kernel->paths.nodes.at[p].parent)
        p = g->kernel->paths.nodes.at[p].parent;
    return g->kernel->paths.nodes.at[p].step == ING_STEP_FRAME_FUNC;
}

void ing_py_gate_describe(void *self, ing_gref of, char *buf, size_t size) {
    ing_py_gate *g = self;
    PyObject *o = ing_py_thing(g, of)->obj;
    bool named = o && (PyModule_Check(o) || PyCallable_Check(o));
    PyObject *name = NULL;
    char s[51] = "";
    int rc = named ? ing_py_attr_maybe(o, "__name__", &name) : 0;
    if (rc == 1 && PyUnicode_Check(name)) rc = ing_py_show(name, s, sizeof s);
    snprintf(buf, size, "%.60s%s%s", o ? Py_TYPE(o)->tp_name : "nothing", *s ? " " : "",
             s);
    Py_XDECREF(name);
    /* What is grave is raised in place of the message. */
    if (rc < 0 && !ing_py_took_any()) ing_py_gate_keep(g);
}

/* A new tuple, list or dict of things. */
static PyObject *make_container(ing_py_gate *g, const ing_gate_fact *v) {
    bool dict = v->kind == ING_GATE_DICT;
    PyObject *o = dict                       ? PyDict_New()
                  : v->kind == ING_GATE_LIST ? PyList_New((Py_ssize_t)v->len)
                                             : PyTuple_New((Py_ssize_t)v->len);
    for (uint32_t i = 0; o && i < v->len; i++) {
        PyObject *item = ing_py_thing(g, v->items[dict ? 2 * i + 1 : i])->obj;
        if (v->kind == ING_GATE_LIST)
            PyList_SET_ITEM(o, (Py_ssize_t)i, Py_XNewRef(item));
        else if (!dict)
            PyTuple_SET_ITEM(o, (Py_ssize_t)i, Py_XNewRef(item));
        else if (PyDict_SetItem(o, ing_py_thing(g, v->items[2 * i])->obj, item) < 0)
            Py_CLEAR(o);
    }
    return o;
}

static ing_status gate_make(void *self, const ing_gate_fact *v, ing_gref *out,
                            ing_err *e) {
    ing_py_gate *g = self;
    PyObject *o;
    switch (v->kind) {
    case ING_GATE_TUPLE:
    case ING_GATE_LIST:
    case ING_GATE_DICT: o = make_container(g, v); break;
    case ING_GATE_NONE: o = Py_NewRef(Py_None); break;
    case ING_GATE_BOOL: o = PyBool_FromLong(v->i != 0); break;
    case ING_GATE_INT:
        o = v->wide ? PyLong_FromUnsignedLongLong((uint64_t)v->i)
                    : PyLong_FromLongLong(v->i);
        break;
    case ING_GATE_FLOAT: o = PyFloat_FromDouble(v->f); break;
    case ING_GATE_STR: o = ing_py_from_utf8(v->s, v->n); break;
    case ING_GATE_DTYPE:
        o = Py_XNewRef(ing_py_dtype_get(g->kernel->st, v->dtype));
        break;
    default: return ing_fail(e, ING_INTERNAL, "no such static value can be made");
    }
    if (!o) return ING_PYTHON;
    ING_TRY(ing_py_thing_take(g, o, 0, 0, out, e));
    ing_py_thing(g, *out)->made = true;
    return ING_OK;
}

/* ---- the frame's function ------------------------------------------------------------------- */

/* A parameter annotated with a dataclass hands the declared types of its fields on; one
 * that is not, those of its argument. */
static ing_status declare_param(ing_py_gate *g, uint32_t i, ing_err *e) {
    frame *f = top(g);
    ING_TRY(ing_py_def_meanings(g->kernel->st, f->def, f->kernel, e));
    PyObject *type = PyTuple_GET_ITEM(f->def->types, i);
    if (!ing_py_is_dataclass(g->kernel->st, type)) return ING_OK;
    thing *t = ing_py_thing(g, f->params[i]);
    Py_XSETREF(t->type, Py_NewRef(type));
    t->type_path = param_path(g, f, ING_STEP_PARAM, i);
    return t->type_path ? ING_OK : no_memory(e);
}

static ing_status gate_param(void *self, uint32_t i, ing_gref *out, ing_err *e) {
    ing_py_gate *g = self;
    frame *f = top(g);
    if (i >= f->n_params)
        return ing_fail(e, ING_INTERNAL, "parameter %u does not exist", i);
    if (f->kernel && !f->params[i]) {
        const char *name = ing_py_utf8(PyTuple_GET_ITEM(f->def->names, i));
        ing_path p = ing_path_add(&g->kernel->paths, 0, ING_STEP_ARG, name, i);
        if (!p) return no_memory(e);
        ING_TRY(ing_py_thing_take(g, Py_XNewRef(g->args[i]), p, p, &f->params[i], e));
        ING_TRY(declare_param(g, i, e));
    }
    *out = f->params[i];
    return ING_OK;
}

static ing_status gate_param_info(void *self, uint32_t i, ing_gate_param *out,
                                  ing_err *e) {
    ing_py_gate *g = self;
    frame *f = top(g);
    ING_TRY(ing_py_def_meanings(g->kernel->st, f->def, f->kernel, e));
    if (i >= f->n_params)
        return ing_fail(e, ING_INTERNAL, "parameter %u does not exist", i);
    *out = f->def->params[i];
    ing_path p = param_path(g, f, ING_STEP_PARAM, i);
    if (!p) return no_memory(e);
    ing_bytes words;
    ing_bytes_init(&words);
    ing_words_param(out, &words);
    ing_answers_add(&g->answers, ing_py_param_digest(out), ING_OF_MEANING, &words);
    ing_bytes_fini(&words);
    return ing_py_gate_record(g, p, ING_ASK_MEANING, ing_py_param_digest(out), e);
}

static ing_status gate_param_default(void *self, uint32_t i, ing_gref *out,
                                     ing_err *e) {
    ing_py_gate *g = self;
    frame *f = top(g);
    thing owner = *ing_py_thing(g, f->params[f->n_params]);
    const char *name = ing_py_utf8(PyTuple_GET_ITEM(f->def->names, i));
    return step_from(g, owner, ING_STEP_DEFAULT, name, i, out, e);
}

static ing_status gate_annotation(void *self, uint32_t i, ing_gref *out, ing_err *e) {
    ing_py_gate *g = self;
    frame *f = top(g);
    thing owner = *ing_py_thing(g, f->params[f->n_params]);
    return step_from(g, owner, ING_STEP_PARAM, NULL, i, out, e);
}

static ing_status gate_returns(void *self, ing_gate_returns *out, ing_err *e) {
    ing_py_gate *g = self;
    frame *f = top(g);
    ING_TRY(ing_py_def_meanings(g->kernel->st, f->def, f->kernel, e));
    *out = f->def->returns;
    ing_path p = ing_path_add(&g->kernel->paths, f->func, ING_STEP_RETURNS, NULL, 0);
    if (!p) return no_memory(e);
    ing_bytes words;
    ing_bytes_init(&words);
    ing_words_returns(out, &words);
    ing_answers_add(&g->answers, ing_py_returns_digest(out), ING_OF_MEANING, &words);
    ing_bytes_fini(&words);
    return ing_py_gate_record(g, p, ING_ASK_MEANING, ing_py_returns_digest(out), e);
}

static ing_status gate_def(void *self, ing_gref fn, const ing_front_tree **out,
                           ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, fn);
    ing_py_def *d = ing_py_def_of(g->kernel->st, t.obj);
    if (!d) return ing_fail(e, ING_INTERNAL, "not a function of the language");
    ING_TRY(ing_py_def_tree(g->kernel->st, d, out, e));
    tree_place place = {*out, t.root};
    if (!ing_vec_push(&g->trees, place)) return no_memory(e);
    ing_hash128 digest;
    ING_TRY(ing_py_def_digest(g->kernel->st, d, &digest, e));
    return ing_py_gate_record_source(g, &t, digest, e);
}

/* ---- frames ------------------------------------------------------------------------------------ */

/* Opens a frame. params[n] (one past the end) is the function itself. */
static ing_status frame_open(ing_py_gate *g, PyObject *owner, ing_path func,
                             ing_path root, bool kernel, ing_err *e) {
    ing_py_def *d = ing_py_def_of(g->kernel->st, owner);
    if (!d) return ing_fail(e, ING_INTERNAL, "not a function of the language");
    frame f = {.def = d, .kernel = kernel, .func = func, .n_params = d->n_params};
    f.params = ing_calloc((size_t)d->n_params + 1, sizeof *f.params);
    if (!f.params) return no_memory(e);
    ing_trace_init(&f.trace);
    ing_status s =
        ing_py_thing_take(g, Py_NewRef(owner), func, root, &f.params[d->n_params], e);
    if (s == ING_OK && !ing_vec_push(&g->frames, f)) s = no_memory(e);
    if (s != ING_OK) {
        ing_free(f.params);
        ing_trace_fini(&f.trace);
    }
    return s;
}

/* What is declared of an argument goes with it. Its type's place is that of one more
 * parameter. */
static ing_status inherit(ing_py_gate *g, const thing *from, ing_gref to, uint32_t i,
                          ing_err *e) {
    thing *t = ing_py_thing(g, to);
    t->field = from->field;
    t->at_launch = from->at_launch;
    if (!from->type || !t->path) return ING_OK;
    t->type = Py_NewRef(from->type);
    t->type_path = ing_path_add(&g->kernel->paths, 0, ING_STEP_FRAME_PARAM, NULL, i);
    return t->type_path ? ING_OK : no_memory(e);
}

static ing_status gate_enter(void *self, ing_gref fn, const ing_gref *params,
                             uint32_t n, ing_err *e) {
    ing_py_gate *g = self;
    if (g->frames.len >= MAX_FRAMES)
        return ing_fail(e, ING_SYNTAX, "funcs call each other more than %d deep",
                        MAX_FRAMES);
    ing_path root = ing_path_add(&g->kernel->paths, 0, ING_STEP_FRAME_FUNC, NULL, 0);
    if (!root) return no_memory(e);
    thing func = *ing_py_thing(g, fn);
    ING_TRY(frame_open(g, func.obj, root, func.root, false, e));
    frame *f = top(g);
    for (uint32_t i = 0; i < n && i < f->n_params; i++) {
        if (!params[i]) continue;
        thing t = *ing_py_thing(g, params[i]);
        ing_path p =
            t.path ? ing_path_add(&g->kernel->paths, 0, ING_STEP_FRAME_PARAM, NULL, i)
                   : 0;
        if (t.path && !p) return no_memory(e);
        ing_gref r = 0;
        ING_TRY(ing_py_thing_take(g, Py_XNewRef(t.obj), p, t.root, &r, e));
        top(g)->params[i] = r;
        ING_TRY(inherit(g, &t, r, n + i, e));
        ING_TRY(declare_param(g, i, e));
    }
    return ING_OK;
}

static ing_status gate_leave(void *self, uint32_t *out, ing_err *e) {
    ing_py_gate *g = self;
    if (g->frames.len < 2)
        return ing_fail(e, ING_INTERNAL, "the kernel's frame cannot be left");
    frame f = g->frames.at[--g->frames.len];
    ing_free(f.params);
    subtrace sub = {f.trace, false};
    if (!ing_vec_push(&g->subs, sub)) {
        ing_trace_fini(&f.trace);
        return no_memory(e);
    }
    *out = g->subs.len - 1;
    return ING_OK;
}

static ing_status gate_splice(void *self, uint32_t which, ing_gref fn,
                              const ing_gref *params, uint32_t n, ing_err *e) {
    ing_py_gate *g = self;
    if (which >= g->subs.len) return ing_fail(e, ING_INTERNAL, "no such sub-trace");
    subtrace *sub = &g->subs.at[which];
    ing_count(&g->kernel->st->counters,
              sub->used ? ING_COUNT_FUNC_SHARED : ING_COUNT_FUNC_LOWERED);
    sub->used = true;
    ing_path paths[2 * ING_PY_MAX_PARAMS] = {0};
    if (n > ING_PY_MAX_PARAMS) return ing_fail(e, ING_INTERNAL, "too many parameters");
    for (uint32_t i = 0; i < n; i++) {
        paths[i] = ing_py_thing(g, params[i])->path;
        paths[n + i] = ing_py_thing(g, params[i])->type_path;
    }
    ing_path func = ing_py_thing(g, fn)->path;
    return ing_trace_splice(&top(g)->trace, &g->kernel->paths, &sub->trace, func, paths,
                            2 * n)
               ? ING_OK
               : no_memory(e);
}

static ing_status gate_carry(void *self, ing_gref of, ing_gref fn,
                             const ing_gref *params, uint32_t n, ing_gref *out,
                             ing_err *e) {
    ing_py_gate *g = self;
    thing t = *ing_py_thing(g, of);
    ing_path paths[ING_PY_MAX_PARAMS] = {0}, roots[ING_PY_MAX_PARAMS] = {0};
    ing_path path = 0, root = 0;
    if (n > ING_PY_MAX_PARAMS) return ing_fail(e, ING_INTERNAL, "too many parameters");
    for (uint32_t i = 0; i < n; i++) {
        paths[i] = ing_py_thing(g, params[i])->path;
        roots[i] = ing_py_thing(g, params[i])->root;
    }
    *out = 0;
    if (!t.path) return ING_OK;
    thing f = *ing_py_thing(g, fn);
    if (!ing_path_reroot(&g->kernel->paths, t.path, f.path, paths, n, &path) ||
        !ing_path_reroot(&g->kernel->paths, t.path, f.root, roots, n, &root))
        return no_memory(e);
    return path && root ? ing_py_thing_take(g, Py_XNewRef(t.obj), path, root, out, e)
                        : ING_OK;
}

/* ---- the rest ------------------------------------------------------------------------------------ */

/* Values are interchangeable by content, everything else by being the same object: the
 * things of a compile keep their objects alive, so an address names one of them. */
static ing_status gate_memo_key(void *self, ing_gref of, ing_hash128 *out, ing_err *e) {
    ing_py_gate *g = self;
    PyObject *o = ing_py_thing(g, of)->obj;
    ing_gate_fact f;
    ING_TRY(ing_py_see(g->kernel->st, o, &f, e));
    if (ing_py_fact_is_value(&f)) {
        *out = ing_py_fact_digest(&f);
        return ING_OK;
    }
    PyObject *bound, *same = ing_py_unbind(g->kernel->st, o, &bound);
    uint64_t key[2] = {(uint64_t)(uintptr_t)same, (uint64_t)(uintptr_t)bound};
    *out = ing_hash(key, sizeof key);
    return ING_OK;
}

static void gate_where(void *self, ing_gref of, char *buf, size_t size) {
    ing_py_gate *g = self;
    ing_path root = ing_py_thing(g, of)->root;
    ing_bytes words;
    ing_bytes_init(&words);
    if (root) ing_words_path(&g->kernel->paths, root, &words);
    snprintf(buf, size, "%s", words.at && !words.failed ? (const char *)words.at : "");
    ing_bytes_fini(&words);
}

void ing_py_gate_keep(ing_py_gate *g) {
    PyObject *now[3];
    PyErr_Fetch(&now[0], &now[1], &now[2]);
    bool first = !g->raised[0];
    for (int i = 0; i < 3; i++) {
        if (first)
            g->raised[i] = now[i];
        else
            Py_XDECREF(now[i]);
    }
}

bool ing_py_gate_raised(ing_py_gate *g) {
    if (!g->raised[0]) return PyErr_Occurred() != NULL;
    PyErr_Restore(g->raised[0], g->raised[1], g->raised[2]);
    for (int i = 0; i < 3; i++) g->raised[i] = NULL;
    return true;
}

static bool gate_near(void *self, ing_gref of, const char *name, char *buf,
                      size_t size) {
    ing_py_gate *g = self;
    PyObject *o = of ? ing_py_thing(g, of)->obj : NULL;
    int whole = 0;
    *buf = 0;
    if (o)
        whole = ing_py_near_attr(o, name, buf, size);
    else if (!of)
        (void)ing_py_near_name(top(g)->def, name, buf, size);
    ing_py_gate_keep(g);
    return whole == 1;
}

static bool gate_is_library(void *self, ing_gref of) {
    ing_py_gate *g = self;
    PyObject *o = ing_py_thing(g, of)->obj;
    bool yes = o && ing_py_is_library(o) == 1;
    ing_py_gate_keep(g);
    return yes;
}

static ing_status gate_say(void *self, const char *text, size_t n, ing_err *e) {
    (void)e;
    const ing_py_gate *g = self;
    return !g->quiet && ing_py_say("stdout", text, n) < 0 ? ING_PYTHON : ING_OK;
}

static ing_status gate_warn(void *self, const char *category, const char *text,
                            const ing_front_tree *tree, uint32_t node, ing_err *e) {
    ing_py_gate *g = self;
    ing_record_warning w = {
        .category = ing_text_copy(category),
        .text = ing_text_copy(text),
        .tree = tree ? ing_py_gate_tree_path(g, tree) : 0,
        .node = node,
        .line = tree ? tree->nodes.at[node].line : 0,
        .stamp = tree ? ing_hash(tree->text, tree->text_len).lo : 0,
    };
    if (w.category && w.text && ing_vec_push(&g->warnings, w)) return ING_OK;
    ing_free(w.category);
    ing_free(w.text);
    return no_memory(e);
}

static const ing_gate_ops gate_ops = {
    .name = gate_name,
    .attr = gate_attr,
    .item = gate_item,
    .attr_of_root = gate_attr_of_root,
    .same_of_root = gate_same_of_root,
    .has = gate_has,
    .derive = gate_derive,
    .look = gate_look,
    .bake = gate_bake,
    .constant = gate_constant,
    .place = gate_place,
    .captured = gate_captured,
    .call = ing_py_gate_call,
    .make = gate_make,
    .param = gate_param,
    .param_info = gate_param_info,
    .param_default = gate_param_default,
    .annotation = gate_annotation,
    .returns = gate_returns,
    .def = gate_def,
    .config = gate_config,
    .enter = gate_enter,
    .leave = gate_leave,
    .splice = gate_splice,
    .carry = gate_carry,
    .memo_key = gate_memo_key,
    .may_call = ing_py_gate_may_call,
    .describe = ing_py_gate_describe,
    .where = gate_where,
    .near = gate_near,
    .is_library = gate_is_library,
    .warn = gate_warn,
    .say = gate_say,
};

static ing_status gate_open(ing_py_gate *g, ing_err *e) {
    if (!ing_vec_push(&g->things, (thing){0})) return no_memory(e);
    ing_path root = ing_path_add(&g->kernel->paths, 0, ING_STEP_KERNEL, NULL, 0);
    if (!root) return no_memory(e);
    ING_TRY(frame_open(g, (PyObject *)g->kernel, root, root, true, e));
    ing_gref self = top(g)->params[top(g)->n_params];
    const ing_front_tree *t;
    return gate_def(g, self, &t, e);
}

ing_status ing_py_gate_new(ing_py_kernel *k, PyObject *const *args, bool quiet,
                           ing_py_gate **out, ing_err *e) {
    ing_py_gate *g = ing_calloc(1, sizeof *g);
    if (!g) return no_memory(e);
    g->face = (ing_gate){.ops = &gate_ops,
                         .self = g,
                         .graph = k->graph,
                         .checkpoints = k->checkpoints,
                         .companion = ing_py_companion_name(k->mode)};
    g->kernel = k;
    g->args = args;
    g->quiet = quiet;
    ing_answers_init(&g->answers);
    ing_map_init(&g->calls);
    ing_status s = gate_open(g, e);
    if (s != ING_OK) {
        ing_py_gate_free(g);
        return s;
    }
    *out = g;
    return ING_OK;
}

void ing_py_gate_free(ing_py_gate *g) {
    if (!g) return;
    for (int i = 0; i < 3; i++) Py_XDECREF(g->raised[i]);
    for (uint32_t i = 0; i < g->frames.len; i++) {
        ing_free(g->frames.at[i].params);
        ing_trace_fini(&g->frames.at[i].trace);
    }
    for (uint32_t i = 0; i < g->subs.len; i++) ing_trace_fini(&g->subs.at[i].trace);
    for (uint32_t i = 0; i < g->things.len; i++) {
        Py_XDECREF(g->things.at[i].obj);
        Py_XDECREF(g->things.at[i].type);
    }
    ing_vec_fini(&g->frames);
    ing_vec_fini(&g->subs);
    ing_vec_fini(&g->things);
    ing_vec_fini(&g->trees);
    ing_map_fini(&g->calls);
    for (uint32_t i = 0; i < g->warnings.len; i++) {
        ing_free(g->warnings.at[i].category);
        ing_free(g->warnings.at[i].text);
    }
    ing_vec_fini(&g->warnings);
    Py_XDECREF(g->only_here.type);
    ing_answers_fini(&g->answers);
    ing_free(g);
}

const ing_gate *ing_py_gate_face(const ing_py_gate *g) {
    return &g->face;
}

ing_trace *ing_py_gate_trace(ing_py_gate *g) {
    return &g->frames.at[0].trace;
}

ing_path ing_py_gate_path(const ing_py_gate *g, ing_gref r) {
    return r < g->things.len ? g->things.at[r].root : 0;
}

ing_status ing_py_gate_small(ing_py_gate *g, ing_gref of, uint32_t axis, int64_t *out,
                             ing_err *e) {
    thing t = *ing_py_thing(g, of);
    ing_gate_fact f = {0};
    ing_gref n;
    t.path = t.root; /* frame 0 is open */
    ING_TRY(ing_py_gate_depth(g, t.path, e));
    ING_TRY(step_from(g, t, ING_STEP_SMALL, NULL, axis, &n, e));
    if (n) ING_TRY(gate_look(g, n, &f, e));
    *out = f.kind == ING_GATE_INT ? f.i : 0;
    return ING_OK;
}

ing_status ing_py_gate_asked(ing_py_gate *g, ing_path path, ing_ask ask,
                             ing_hash128 answer, const ing_bytes *words, ing_err *e) {
    ing_answers_add(&g->answers, answer, 0, words);
    return ing_py_gate_record(g, path, ask, answer, e);
}

PyObject *ing_py_gate_object(const ing_py_gate *g, ing_gref r) {
    return r < g->things.len ? g->things.at[r].obj : NULL;
}

ing_path ing_py_gate_tree_path(const ing_py_gate *g, const ing_front_tree *t) {
    for (uint32_t i = 0; i < g->trees.len; i++)
        if (g->trees.at[i].tree == t) return g->trees.at[i].root;
    return 0;
}

ing_py_warnings *ing_py_gate_warnings(ing_py_gate *g) {
    return &g->warnings;
}

const struct ing_answers *ing_py_gate_answers(const ing_py_gate *g) {
    return &g->answers;
}

const ing_py_unreplayable *ing_py_gate_unreplayable(const ing_py_gate *g) {
    return g->only_here.type ? &g->only_here : NULL;
}
