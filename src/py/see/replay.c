/* Asking again: follows a recorded path through today's objects and answers the question
 * at its end. Used by the decision tree and by guards; the gate takes the same steps
 * while compiling. Attribute access is Python's own, so properties run; so do __bool__,
 * __len__ and __iter__ of what is tested or looped over, and calls (staticcall.c). */
#include "py/see/field_gate.h"
#include "trace/notes.h"

#include <string.h>

PyObject *ing_py_atom_name(ing_py_kernel *k, uint32_t atom) {
    while (k->names.len <= atom)
        if (!ing_vec_push(&k->names, NULL)) return PyErr_NoMemory();
    if (!k->names.at[atom]) {
        const char *text = ing_atoms_text(&k->paths.atoms, atom);
        PyObject *name = ing_py_from_utf8(text, strlen(text));
        if (name) PyUnicode_InternInPlace(&name);
        k->names.at[atom] = name;
    }
    return k->names.at[atom];
}

/* The item of a dict as a new reference; NULL = absent. */
static ing_status dict_item(PyObject *dict, PyObject *key, PyObject **out) {
    return PyDict_GetItemRef(dict, key, out) < 0 ? ING_PYTHON : ING_OK;
}

static void closure_item(const ing_py_def *d, PyObject *name, PyObject **out) {
    PyObject *cells = PyFunction_GetClosure(d->fn);
    for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); i++) {
        PyObject *have = PyTuple_GET_ITEM(d->free_names, i);
        if (have != name && PyUnicode_Compare(have, name) != 0) continue;
        *out = Py_XNewRef(PyCell_GET(PyTuple_GET_ITEM(cells, i)));
        return;
    }
}

/* The func of a lambda is made when it is asked for (ingot/_lambdas.py). */
static ing_status lambda_func(PyObject *from, PyObject **out) {
    PyObject *adopt = ing_py_import("ingot._lambdas", "adopt");
    PyObject *made = adopt ? PyObject_CallOneArg(adopt, from) : NULL;
    Py_XDECREF(adopt);
    if (!made) return ING_PYTHON;
    if (made == Py_None) Py_CLEAR(made);
    *out = made;
    return ING_OK;
}

static ing_status attr_item(PyObject *from, PyObject *name, PyObject **out) {
    if (PyObject_GetOptionalAttr(from, name, out) < 0) return ING_PYTHON;
    if (!*out && PyFunction_Check(from) &&
        PyUnicode_CompareWithASCIIString(name, "__ingot_func__") == 0)
        return lambda_func(from, out);
    return ING_OK;
}

/* What a dict lacks is absent, whatever __missing__ would make of it. */
static ing_status key_item(PyObject *from, PyObject *key, PyObject **out) {
    if (PyDict_Check(from) && Py_TYPE(from)->tp_as_mapping->mp_subscript ==
                                  PyDict_Type.tp_as_mapping->mp_subscript)
        return dict_item(from, key, out);
    *out = PyObject_GetItem(from, key);
    return *out || ing_py_took(PyExc_LookupError) || ing_py_took(PyExc_TypeError)
               ? ING_OK
               : ING_PYTHON;
}

static ing_status named_step(ing_py_state *st, PyObject *from, ing_step step,
                             PyObject *name, PyObject **out) {
    if (step == ING_STEP_ATTR) return attr_item(from, name, out);
    if (step == ING_STEP_FIELD_TYPE)
        return ing_py_field_type(st, from, name, out) < 0 ? ING_PYTHON : ING_OK;
    if (step == ING_STEP_ITEM_STR) return key_item(from, name, out);
    ing_py_def *d = ing_py_def_of(st, from);
    if (!d) return ING_OK; /* not a function any more: absent */
    if (step == ING_STEP_GLOBAL)
        return dict_item(PyFunction_GET_GLOBALS(d->fn), name, out);
    if (step == ING_STEP_CLOSURE) {
        closure_item(d, name, out);
        return ING_OK;
    }
    return dict_item(ing_py_def_builtins(d), name, out);
}

static ing_status numbered_step(ing_py_state *st, PyObject *from, ing_step step,
                                int64_t i, PyObject **out) {
    if (step == ING_STEP_ITEM_INT) {
        PyObject *key = PyLong_FromLongLong(i);
        if (!key) return ING_PYTHON;
        ing_status s = key_item(from, key, out);
        Py_DECREF(key);
        return s;
    }
    ing_py_def *d = ing_py_def_of(st, from);
    int64_t result = i - ING_GATE_RESULT;
    if (step == ING_STEP_PARAM && d && result >= 0 && d->result_types &&
        result < PyTuple_GET_SIZE(d->result_types))
        *out = Py_NewRef(PyTuple_GET_ITEM(d->result_types, result));
    if (!d || i < 0 || i >= (int64_t)d->n_params) return ING_OK;
    if (step == ING_STEP_DEFAULT && ing_py_def_default(d, (uint32_t)i, out) < 0)
        return ING_PYTHON;
    if (step == ING_STEP_PARAM && d->types)
        *out = Py_NewRef(PyTuple_GET_ITEM(d->types, i));
    return ING_OK;
}

/* All items of an iterable, in order; NULL: it is none that can be asked twice. Past the
 * limit the front end refuses what it sees. */
static ing_status items_of(PyObject *from, PyObject **out) {
    enum { LIMIT = (1 << 16) + 1 };
    if (PyAnySet_Check(from) || PyIter_Check(from) || !Py_TYPE(from)->tp_iter)
        return ING_OK;
    if (PyDict_CheckExact(from) || PyTuple_CheckExact(from) ||
        PyList_CheckExact(from)) {
        *out = PySequence_Tuple(from);
        return *out ? ING_OK : ING_PYTHON;
    }
    PyObject *it = PyObject_GetIter(from), *list = it ? PyList_New(0) : NULL, *item;
    while (list && PyList_GET_SIZE(list) < LIMIT && (item = PyIter_Next(it))) {
        if (PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_DECREF(item);
    }
    if (list && !PyErr_Occurred()) *out = PyList_AsTuple(list);
    Py_XDECREF(it);
    Py_XDECREF(list);
    return *out ? ING_OK : ING_PYTHON;
}

/* What Python says of an object as a whole: its own __len__, __bool__ and __iter__ run. */
static ing_status derived_step(PyObject *from, ing_step step, PyObject **out) {
    if (step == ING_STEP_SAME) {
        *out = PyBool_FromLong(from == Py_None);
        return ING_OK;
    }
    if (step == ING_STEP_ITEMS) return items_of(from, out);
    if (step == ING_STEP_TRUTH) {
        int truth = PyObject_IsTrue(from);
        if (truth >= 0) *out = PyBool_FromLong(truth);
        return truth >= 0 ? ING_OK : ING_PYTHON;
    }
    Py_ssize_t n = PyObject_Size(from);
    if (n >= 0) *out = PyLong_FromSsize_t(n);
    return *out || ing_py_took(PyExc_TypeError) ? ING_OK : ING_PYTHON;
}

ing_status ing_py_step(ing_py_kernel *k, PyObject *const *args, PyObject *from,
                       const ing_path_node *node, PyObject **out, ing_err *e) {
    *out = NULL;
    switch ((ing_step)node->step) {
    case ING_STEP_KERNEL: *out = Py_NewRef((PyObject *)k); return ING_OK;
    case ING_STEP_ARG: /* an index on disk may say anything */
        if (node->i >= 0 && node->i < (int64_t)k->def.n_params)
            *out = Py_XNewRef(args[node->i]);
        return ING_OK;
    case ING_STEP_GLOBAL:
    case ING_STEP_CLOSURE:
    case ING_STEP_BUILTIN:
    case ING_STEP_ATTR:
    case ING_STEP_FIELD_TYPE:
    case ING_STEP_ITEM_STR: {
        if (!from) return ING_OK;
        PyObject *name = ing_py_atom_name(k, node->atom);
        if (!name) return ING_PYTHON;
        return named_step(k->st, from, (ing_step)node->step, name, out);
    }
    case ING_STEP_PARAM: { /* the annotation itself */
        ing_py_def *d = ing_py_def_of(k->st, from);
        if (!d) return ING_OK;
        ING_TRY(ing_py_def_meanings(k->st, d, from == (PyObject *)k, e));
        return numbered_step(k->st, from, ING_STEP_PARAM, node->i, out);
    }
    case ING_STEP_LEN:
    case ING_STEP_TRUTH:
    case ING_STEP_ITEMS:
    case ING_STEP_SAME:
        return from ? derived_step(from, (ing_step)node->step, out) : ING_OK;
    case ING_STEP_SMALL:
        return from ? ing_py_small_step(k->st, from, node->i, out) : ING_OK;
    case ING_STEP_ITEM_INT:
    case ING_STEP_DEFAULT:
        return from ? numbered_step(k->st, from, (ing_step)node->step, node->i, out)
                    : ING_OK;
    default: return ING_OK; /* nothing that a name leads to: absent */
    }
}

typedef struct place {
    bool at_launch; /* its numbers are read at each launch */
    bool gone;      /* what it would stand in is not there */
} place;

/* Is there something (None, something else, nothing)? One step behind what it is about. */
static bool asks_presence(const ing_path_node *node) {
    return node->step == ING_STEP_SAME && !node->i;
}

static ing_status resolve(ing_py_kernel *k, PyObject *const *args, ing_path path,
                          uint32_t depth, PyObject **out, place *at, ing_err *e);

/* Adds one argument of a call. *there: there is such an argument; without it there is no
 * result. */
static ing_status add_call_arg(ing_py_kernel *k, PyObject *const *args,
                               const ing_path_node *node, uint32_t depth,
                               ing_py_call_args *to, bool *there, ing_err *e) {
    if (node->step != ING_STEP_CALL_PATH)
        return ing_py_call_args_step(to, &k->paths, node, there);
    PyObject *v = NULL;
    place ignored;
    ING_TRY(resolve(k, args, (ing_path)node->i, depth + 1, &v, &ignored, e));
    *there = v != NULL;
    return v ? ing_py_call_args_take(to, v) : ING_OK;
}

/* Is `obj` the thing at the path that the node names? Nothing is neither. */
static ing_status same_step(ing_py_kernel *k, PyObject *const *args, PyObject *obj,
                            const ing_path_node *node, uint32_t depth, PyObject **out,
                            ing_err *e) {
    PyObject *other = NULL;
    place ignored;
    ING_TRY(resolve(k, args, (ing_path)node->i, depth + 1, &other, &ignored, e));
    if (other) *out = PyBool_FromLong(obj == other);
    Py_XDECREF(other);
    return ING_OK;
}

static ing_status resolve(ing_py_kernel *k, PyObject *const *args, ing_path path,
                          uint32_t depth, PyObject **out, place *at, ing_err *e) {
    bool at_launch = false, there = true, gone = false;
    ing_path chain[ING_PATH_MAX_STEPS];
    uint32_t n = 0;
    for (ing_path p = path; p; p = k->paths.nodes.at[p].parent) {
        if (n == ING_PATH_MAX_STEPS || depth > ING_PATH_MAX_NESTING)
            return ing_fail(e, ING_INTERNAL, "a path of too many steps");
        chain[n++] = p;
    }
    PyObject *obj = NULL;
    ing_py_call_args call = {.n = 0};
    ing_status s = ING_OK;
    while (s == ING_OK && n-- > 0) {
        ing_path_node node = k->paths.nodes.at[chain[n]];
        PyObject *next = NULL;
        at_launch = node.step != ING_STEP_CALL && !ing_step_is_derived(node.step) &&
                    (at_launch || (obj && ing_py_members_at_launch(k->st, obj)));
        if (ing_step_is_call_arg(node.step)) {
            s = add_call_arg(k, args, &node, depth, &call, &there, e);
            next = there ? Py_XNewRef(obj) : NULL;
        } else if (node.step == ING_STEP_CALL) {
            s = ing_py_call_args_call(&call, obj, &next);
        } else if (node.step == ING_STEP_SAME && node.i) {
            s = same_step(k, args, obj, &node, depth, &next, e);
        } else {
            s = ing_py_step(k, args, obj, &node, &next, e);
        }
        Py_XSETREF(obj, next);
        gone = !obj && n > (asks_presence(&k->paths.nodes.at[path]) ? 1U : 0U);
        if (!obj) break;
    }
    ing_py_call_args_clear(&call);
    if (s != ING_OK) Py_CLEAR(obj);
    at->at_launch = at_launch;
    at->gone = gone;
    *out = obj;
    return s;
}

ing_status ing_py_resolve(ing_py_kernel *k, PyObject *const *args, ing_path path,
                          PyObject **out, ing_err *e) {
    place ignored;
    return resolve(k, args, path, 0, out, &ignored, e);
}

static ing_status answer_source(ing_py_state *st, PyObject *obj, ing_hash128 *out,
                                ing_err *e) {
    ing_py_def *d = ing_py_def_of(st, obj);
    *out = (ing_hash128){0, 0}; /* no function there: matches no tree */
    if (d) return ing_py_def_digest(st, d, out, e);
    int known = obj ? ing_py_callable_digest(st, obj, out) : 0;
    if (known == 0) *out = (ing_hash128){0, 0};
    return known < 0 ? ING_PYTHON : ING_OK;
}

/* Not whether there is a default: where it is taken, it is asked for. */
ing_hash128 ing_py_param_digest(const ing_gate_param *p) {
    ing_hash128 layout = p->layout ? p->layout->digest : (ing_hash128){0, 0};
    uint64_t key[14] = {
        p->passing,         p->dtype,           (uint64_t)(int64_t)p->ndim,
        p->needs_grad,      p->optional,        p->tensor.rank,
        p->tensor.shape[0], p->tensor.shape[1], layout.lo,
        layout.hi,          p->clamp,           p->by_ref,
        p->fields,          p->no_grad};
    return ing_hash(key, sizeof key);
}

ing_hash128 ing_py_returns_digest(const ing_gate_returns *r) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 1, (uint64_t)r->given | (uint64_t)r->tuple << 1);
    for (uint32_t i = 0; i < r->n; i++) {
        const ing_gate_tensor *t = &r->tensors[i];
        ing_hasher_u64(&h, 2,
                       (uint64_t)r->dtypes[i] | (uint64_t)t->rank << 8 |
                           (uint64_t)r->items[i] << 16);
        ing_hasher_u64(&h, 3, t->shape[0] | (uint64_t)t->shape[1] << 32);
        if (r->layouts[i]) ing_hasher_digest(&h, 4, r->layouts[i]->digest);
    }
    return ing_hasher_done(&h);
}

/* What the class `obj` says of the field that the node names. */
static ing_status answer_field(ing_py_kernel *k, PyObject *obj,
                               const ing_path_node *node, ing_hash128 *out) {
    ing_py_declared f = {0};
    PyObject *name = ing_py_atom_name(k, node->atom);
    if (!name) return ING_PYTHON;
    if (obj && ing_py_field_meaning(k->st, obj, name, &f) < 0) return ING_PYTHON;
    *out = ing_py_field_digest(&f);
    return ING_OK;
}

static ing_status answer_meaning(ing_py_kernel *k, PyObject *obj,
                                 const ing_path_node *node, ing_hash128 *out,
                                 ing_err *e) {
    if (node->step == ING_STEP_FIELD_TYPE) return answer_field(k, obj, node, out);
    ing_py_def *d = ing_py_def_of(k->st, obj);
    *out = (ing_hash128){0, 0};
    if (!d) return ING_OK;
    ING_TRY(ing_py_def_meanings(k->st, d, obj == (PyObject *)k, e));
    if (node->step == ING_STEP_RETURNS)
        *out = ing_py_returns_digest(&d->returns);
    else if (node->i >= 0 && node->i < (int64_t)d->n_params)
        *out = ing_py_param_digest(&d->params[node->i]);
    return ING_OK;
}

const ing_gate_param *ing_py_param_at(const ing_py_kernel *k, ing_path path) {
    const ing_path_node *n = &k->paths.nodes.at[path];
    /* The gradient of an array is made of the same elements. */
    if (path && n->step == ING_STEP_ATTR && n->parent &&
        strcmp(ing_atoms_text(&k->paths.atoms, n->atom), "grad") == 0)
        n = &k->paths.nodes.at[path = n->parent];
    bool is_arg = path && n->step == ING_STEP_ARG && n->parent == 0 && n->i >= 0 &&
                  n->i < (int64_t)k->def.n_params;
    return is_arg && k->def.params ? &k->def.params[n->i] : NULL;
}

ing_status ing_py_at_path(ing_py_kernel *k, ing_path path, ing_status s, ing_err *e) {
    if (s == ING_OK || s == ING_PYTHON || s == ING_MEMORY || !e->text || !path)
        return s;
    ing_bytes text;
    ing_bytes_init(&text);
    ing_words_path(&k->paths, path, &text);
    ing_bytes_printf(&text, ": %s", e->text);
    if (!text.failed) s = ing_fail(e, s, "%s", (const char *)text.at);
    ing_bytes_fini(&text);
    return s;
}

static ing_status answer_look(ing_py_kernel *k, PyObject *obj, bool number,
                              ing_path path, ing_hash128 *out, ing_err *e) {
    ing_gate_fact f;
    ing_status s = ing_py_see_arg(k->st, ing_py_param_at(k, path), obj, &f, e);
    if (s != ING_OK) return ing_py_at_path(k, path, s, e);
    if (number) ing_py_as_number(k->st, obj, &f);
    *out = ing_py_fact_digest(&f);
    return ING_OK;
}

ing_status ing_py_answer_of(ing_py_kernel *k, PyObject *obj, bool at_launch,
                            ing_path path, ing_ask ask, ing_hash128 *out, ing_err *e) {
    ing_path_node node = k->paths.nodes.at[path];
    if (ask == ING_ASK_MEANING) return answer_meaning(k, obj, &node, out, e);
    if (ask == ING_ASK_SOURCE) return answer_source(k->st, obj, out, e);
    if (ask == ING_ASK_WHOLE) {
        ing_py_whole w;
        ING_TRY(ing_py_whole_of(k->st, obj, &w));
        *out = w.answer;
        return ING_OK;
    }
    return answer_look(k, obj, at_launch, path, out, e);
}

ing_status ing_py_declined(ing_status s) {
    /* Interrupted, or exhausted: compiling could not go on either. */
    return s == ING_PYTHON && ing_py_took_any() ? ING_DECLINED : s;
}

ing_status ing_py_answer(ing_py_kernel *k, PyObject *const *args, ing_path path,
                         ing_ask ask, ing_hash128 *out, ing_err *e) {
    ing_path_node node = k->paths.nodes.at[path];
    if (ask == ING_ASK_CONFIG) {
        if (node.step != ING_STEP_CONFIG || node.i < 0 || node.i >= ING_SETTING_N)
            return ing_fail(e, ING_DECLINED, "no such setting");
        int64_t v = k->st->settings.at[node.i];
        *out = ing_hash(&v, sizeof v);
        return ING_OK;
    }
    PyObject *obj = NULL;
    place at;
    if (ask == ING_ASK_BLOCKS) {
        ing_status s = ing_py_declined(ing_py_answer_blocks(k, args, path, out, e));
        if (s == ING_DECLINED) *out = (ing_hash128){0, 0};
        return s == ING_DECLINED ? ING_OK : s;
    }
    ing_status s = ing_py_declined(
        resolve(k, args, ask == ING_ASK_MEANING ? node.parent : path, 0, &obj, &at, e));
    if (s == ING_DECLINED || (s == ING_OK && at.gone)) {
        *out =
            (ing_hash128){0, 0}; /* nobody asked what is in nothing: matches no tree */
        return ING_OK;
    }
    if (s != ING_OK) return s;
    s = ing_py_answer_of(k, obj, at.at_launch, path, ask, out, e);
    Py_XDECREF(obj);
    return s;
}

ing_status ing_py_ask_again(void *self, ing_path path, ing_ask ask, ing_hash128 *answer,
                            ing_err *e) {
    const ing_py_asker *a = self;
    if (ask == ING_ASK_CONFIG &&
        a->kernel->paths.nodes.at[path].i == ING_ASKED_OVERLAP) {
        *answer = ing_record_overlap_answer(a->apart != NULL);
        return ING_OK;
    }
    return ing_py_answer(a->kernel, a->args, path, ask, answer, e);
}
