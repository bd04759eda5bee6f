/* Graph kernels as Python sees them: the status of a launch, resuming, and the program as a
 * list for qd.graph.visualize. The program itself is src/graph; call.c launches it. */
#include "py/call/kernel.h"

ing_status ing_py_graph_make(ing_py_variant *v, ing_err *e) {
    if (!v->record.steps.len) return ING_OK;
    v->times = ing_calloc((size_t)v->record.tasks.len + 1, sizeof *v->times);
    if (!v->times)
        return ing_fail(e, ING_MEMORY, "no memory for the program of a graph kernel");
    return ing_graph_init(&v->graph, v->record.steps.at, v->record.steps.len, e);
}

/* ---- checkpoints -------------------------------------------------------------------------- */

/* The user's own object: the one that the label's path leads to now. */
static PyObject *label_of(ing_py_kernel *k, const ing_py_variant *v,
                          PyObject *const *args, uint32_t stage) {
    const ing_record_stage *s = &v->record.stages.at[stage];
    PyObject *label = NULL;
    ing_err e;
    if (!s->path) return PyLong_FromLongLong(s->label);
    ing_err_init(&e);
    if (ing_py_resolve(k, args, s->path, &label, &e) != ING_OK)
        return ing_py_raise(k->st, &e);
    return label ? label : PyLong_FromLongLong(s->label);
}

PyObject *ing_py_graph_status(ing_py_kernel *k, const ing_py_variant *v,
                              PyObject *const *args, uint32_t yielded) {
    bool yes = yielded < v->record.stages.len;
    PyObject *cls = k->host->graph_status;
    if (!cls) return PyErr_Format(PyExc_RuntimeError, "ingot is not imported");
    PyObject *label = yes ? label_of(k, v, args, yielded) : Py_NewRef(Py_None);
    if (!label) return NULL;
    PyObject *status =
        PyObject_CallFunctionObjArgs(cls, yes ? Py_True : Py_False, label, NULL);
    Py_DECREF(label);
    return status;
}

static ing_status unknown_label(ing_py_kernel *k, const ing_py_variant *v,
                                long long label, ing_err *e) {
    ing_bytes known;
    ing_bytes_init(&known);
    for (uint32_t i = 0; i < v->record.stages.len; i++)
        ing_bytes_printf(&known, "%s%lld", i ? ", " : "it has ",
                         (long long)v->record.stages.at[i].label);
    ing_bytes_u8(&known, 0);
    ing_status s = ing_py_def_fail(
        k->st, &k->def, UINT32_MAX, ING_RUNTIME,
        known.failed || !v->record.stages.len ? "it has no checkpoints"
                                              : (char *)known.at,
        e,
        "from_checkpoint=%lld does not match any qd.checkpoint(cp_id=...) in kernel %s",
        label, ing_py_def_name(&k->def));
    ing_bytes_fini(&known);
    return s;
}

ing_status ing_py_graph_stage(ing_py_kernel *k, const ing_py_variant *v,
                              PyObject *label, uint32_t *stage, ing_err *e) {
    int overflow = 0;
    if (!PyLong_Check(label) || PyBool_Check(label))
        return ing_fail(e, ING_RUNTIME,
                        "from_checkpoint= must be an int or IntEnum value, not %s",
                        Py_TYPE(label)->tp_name);
    long long n = PyLong_AsLongLongAndOverflow(label, &overflow);
    if (n == -1 && PyErr_Occurred()) return ING_PYTHON;
    for (uint32_t i = 0; i < v->record.stages.len && !overflow; i++) {
        if (v->record.stages.at[i].label != n) continue;
        *stage = i;
        return ING_OK;
    }
    return unknown_label(k, v, n, e);
}

/* ---- kernel.resume -------------------------------------------------------------------------- */

/* The keyword names without `from_checkpoint`, which must be the only one of its name. */
static PyObject *names_without(PyObject *kwnames, Py_ssize_t skip) {
    Py_ssize_t n = PyTuple_GET_SIZE(kwnames);
    PyObject *rest = PyTuple_New(n - 1);
    for (Py_ssize_t i = 0, to = 0; rest && i < n; i++)
        if (i != skip)
            PyTuple_SET_ITEM(rest, to++, Py_NewRef(PyTuple_GET_ITEM(kwnames, i)));
    return rest;
}

PyObject *ing_py_kernel_resume(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames) {
    ing_py_kernel *k = (ing_py_kernel *)self;
    Py_ssize_t n_kw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0, skip = -1;
    for (Py_ssize_t i = 0; i < n_kw; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i),
                                             "from_checkpoint") == 0)
            skip = i;
    if (!k->checkpoints)
        return PyErr_Format(PyExc_RuntimeError,
                            "%s has no checkpoints to resume from: decorate it with "
                            "@qd.kernel(graph=True, checkpoints=True)",
                            ing_py_def_name(&k->def));
    if (skip < 0)
        return PyErr_Format(PyExc_TypeError,
                            "resume() needs from_checkpoint=, the label to go on from");
    PyObject *rest = names_without(kwnames, skip);
    PyObject **all = PyMem_New(PyObject *, (size_t)(nargs + n_kw));
    PyObject *result = NULL;
    if (rest && all) {
        for (Py_ssize_t i = 0, to = 0; i < nargs + n_kw; i++)
            if (i != nargs + skip) all[to++] = args[i];
        result = ing_py_kernel_launch(k, all, (size_t)nargs, n_kw > 1 ? rest : NULL,
                                      args[nargs + skip]);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    PyMem_Free(all);
    Py_XDECREF(rest);
    return result;
}

/* ---- the program, for people ------------------------------------------------------------------- */

static bool from_argument(const ing_paths *p, ing_path path) {
    while (path && p->nodes.at[path].parent) path = p->nodes.at[path].parent;
    return path && p->nodes.at[path].step == ING_STEP_ARG;
}

PyObject *ing_py_task_place(ing_py_kernel *k, const ing_py_variant *v, uint32_t loc) {
    uint32_t opened = loc >> ING_FRONT_TREE_SHIFT;
    ing_node node = loc & ((1u << ING_FRONT_TREE_SHIFT) - 1);
    const ing_front_tree *t = NULL;
    ing_py_def *d = opened ? NULL : &k->def;
    PyObject *owner = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_path path = opened && opened <= v->record.trees.len
                        ? v->record.trees.at[v->record.trees.len - opened]
                        : 0;
    if (path && !from_argument(&k->paths, path) &&
        ing_py_resolve(k, NULL, path, &owner, &e) == ING_OK && owner)
        d = ing_py_def_of(k->st, owner);
    if (d && !PyErr_Occurred() && ing_py_def_tree(k->st, d, &t, &e) != ING_OK) t = NULL;
    ing_err_fini(&e);
    PyObject *text = NULL;
    if (!PyErr_Occurred() || ing_py_took_any())
        text = t && node < t->nodes.len && node
                   ? PyUnicode_FromFormat("%s:%u", t->file ? t->file : "?",
                                          t->first_line + t->nodes.at[node].line)
                   : PyUnicode_FromString("");
    Py_XDECREF(owner);
    return text;
}

/* The path that a flag's word is bound from. */
static PyObject *flag_text(ing_py_kernel *k, const ing_py_variant *v, uint32_t word) {
    for (uint32_t i = 0; i < v->record.binds.len; i++) {
        if (v->record.binds.at[i].word != word) continue;
        ing_bytes b;
        ing_bytes_init(&b);
        ing_path_print(&k->paths, v->record.binds.at[i].path, &b);
        PyObject *text = ing_py_lenient(b.at && !b.failed ? (const char *)b.at : "");
        ing_bytes_fini(&b);
        return text;
    }
    return PyUnicode_FromString("");
}

static const char *const step_names[ING_IR_STEP_N] = {
#define X(name, text) #name,
    ING_IR_STEP_LIST(X)
#undef X
};

static PyObject *step_tuple(ing_py_kernel *k, const ing_py_variant *v,
                            const ing_ir_step *s) {
    bool task = s->kind == ING_IR_STEP_TASK;
    bool stage = s->kind == ING_IR_STEP_STAGE || s->kind == ING_IR_STEP_STAGE_END;
    bool flagged = s->kind == ING_IR_STEP_LOOP_END || s->kind == ING_IR_STEP_STAGE_END;
    ing_rt_time time = task && v->times ? v->times[s->at] : (ing_rt_time){0};
    long long number = stage ? v->record.stages.at[s->at].label : (long long)s->at;
    PyObject *text = task ? ing_py_task_place(k, v, v->record.tasks.at[s->at].info.loc)
                     : flagged ? flag_text(k, v, s->word)
                               : PyUnicode_FromString("");
    if (!text) return NULL;
    bool range = task && v->record.tasks.at[s->at].info.kind == ING_IR_TASK_RANGE;
    return Py_BuildValue("(sLNOKK)", step_names[s->kind], number, text,
                         range ? Py_True : Py_False, (unsigned long long)time.runs,
                         (unsigned long long)time.ns);
}

PyObject *ing_py_graph_text(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_py_kernel *k = (ing_py_kernel *)self;
    ing_py_variant *v = k->epoch == k->host->epoch ? k->last : NULL;
    PyObject *list = PyList_New(0);
    if (!v || !list) return list;
    v->refs++;
    uint32_t n = v->record.steps.len ? v->record.steps.len : v->record.tasks.len;
    for (uint32_t i = 0; list && i < n; i++) {
        ing_ir_step plain = {.kind = ING_IR_STEP_TASK, .at = i};
        PyObject *t =
            step_tuple(k, v, v->record.steps.len ? &v->record.steps.at[i] : &plain);
        if (!t || PyList_Append(list, t) < 0) Py_CLEAR(list);
        Py_XDECREF(t);
    }
    ing_py_variant_unref(v);
    return list;
}

/* ---- the module's part ---------------------------------------------------------------------------- */

static PyObject *register_graph(PyObject *module, PyObject *status) {
    ing_py_host *h = ing_py_state_in(module)->host;
    Py_XSETREF(h->graph_status, Py_NewRef(status));
    Py_RETURN_NONE;
}

static PyObject *last_launch(PyObject *module, PyObject *unused) {
    (void)unused;
    const ing_py_last_launch *l = &ing_py_state_in(module)->host->last;
    return Py_BuildValue("(IIi)", l->tasks, l->stages,
                         l->yielded < l->stages ? (int)l->yielded : -1);
}

static const PyMethodDef functions[] = {
    {"register_graph", register_graph, METH_O,
     "register_graph(status)\n\nThe class that launches of kernels with checkpoints "
     "return."},
    {"last_launch", last_launch, METH_NOARGS,
     "last_launch() -> (tasks, checkpoints, yielded or -1)"},
    {NULL, NULL, 0, NULL},
};

int ing_py_graph_add(PyObject *module) {
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
