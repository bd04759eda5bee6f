/* Definitions: what a kernel and a func have in common. The text of a def, its tree
 * (parsed at first use), its parameters and what their annotations mean. Decorating must
 * stay cheap: nothing is parsed or resolved here before the first call. */
#include "py/call/kernel.h"
#include "py/see/read_ast.h"
#include "py/array/struct.h"
#include "py/array/tensor.h"

#include <stdio.h>
#include <string.h>

const char *ing_py_def_name(const ing_py_def *d) {
    return d->name ? PyBytes_AS_STRING(d->name) : "?";
}

/* ---- making ------------------------------------------------------------------------------ */

static PyCodeObject *code_of(PyObject *fn) {
    return (PyCodeObject *)PyFunction_GET_CODE(fn);
}

static int take_text(ing_py_state *st, ing_py_def *d, PyObject *source) {
    PyCodeObject *code = code_of(d->fn);
    d->first_line = (uint32_t)code->co_firstlineno;
    Py_CLEAR(d->why);
    Py_CLEAR(d->held);
    PyObject *whole = NULL;
    if (source) {
        whole = PyUnicode_Check(source) ? PyUnicode_AsUTF8String(source) : NULL;
        if (!whole) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError,
                                "source= must be the text of the function");
            return -1;
        }
        d->first_line = 1;
    } else {
        if (ing_py_source_file(st, d->fn, code->co_filename, &whole, &d->why) < 0)
            return -1;
        if (ing_py_source_unknown(st, code->co_filename, &d->held) < 0) {
            Py_XDECREF(whole);
            return -1;
        }
    }
    if (!whole) return 0;
    size_t start, len;
    const char *text = PyBytes_AS_STRING(whole);
    if (ing_py_source_def(st->host, whole, d->first_line, &start, &len))
        d->text = PyBytes_FromStringAndSize(text + start, (Py_ssize_t)len);
    else
        d->why =
            PyUnicode_FromFormat("%U changed since it was imported: it has no line %u",
                                 code->co_filename, d->first_line);
    Py_DECREF(whole);
    return d->text || d->why ? 0 : -1;
}

/* A function of this package, whose files do not change while it runs: its text is read when
 * it is compiled, so that neither importing the package nor a hit reads its files. 1, 0 or
 * -1 = raised. */
static int is_ours(ing_py_state *st, PyObject *fn) {
    PyObject *name;
    int rc = PyDict_GetItemRef(PyFunction_GET_GLOBALS(fn),
                               st->names[ING_PY_NAME___name__], &name);
    if (rc == 1) {
        PyObject *bytes = PyUnicode_Check(name) ? ing_py_shown(name) : NULL;
        rc = bytes ? strncmp(PyBytes_AS_STRING(bytes), "ingot.", 6) == 0
                   : -(PyErr_Occurred() != NULL);
        Py_XDECREF(bytes);
    }
    Py_XDECREF(name);
    return rc;
}

int ing_py_def_text(ing_py_state *st, ing_py_def *d) {
    if (!d->text_later) return 0;
    if (take_text(st, d, NULL) < 0) return -1;
    d->text_later = false;
    return 0;
}

/* The name for messages, as it is now. */
static int take_name(ing_py_def *d) {
    PyObject *name = ((PyFunctionObject *)d->fn)->func_qualname;
    d->name = name ? ing_py_shown(name) : PyBytes_FromString("?");
    return d->name ? 0 : -1;
}

/* Makes the UTF-8 of each name, which its str keeps: asking for it again cannot fail. */
static int check_names(const ing_py_def *d, PyObject *names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (PyUnicode_AsUTF8(name)) continue;
        if (ing_py_took(PyExc_UnicodeEncodeError))
            PyErr_Format(PyExc_TypeError, "%s: %R is no name that a program can hold",
                         ing_py_def_name(d), name);
        return -1;
    }
    return 0;
}

/* Parameter names: co_varnames begins with them. */
static int take_names(ing_py_def *d) {
    PyCodeObject *code = code_of(d->fn);
    d->n_posonly = (uint32_t)code->co_posonlyargcount;
    d->n_kwonly = (uint32_t)code->co_kwonlyargcount;
    d->n_params = (uint32_t)(code->co_argcount + code->co_kwonlyargcount);
    d->n_as_given =
        d->n_kwonly || d->n_params > ING_PY_MAX_PARAMS ? -1 : (Py_ssize_t)d->n_params;
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *all = PyCode_GetVarnames(code);
    d->free_names = PyCode_GetFreevars(code);
#else
    PyObject *all = Py_NewRef(code->co_varnames);
    d->free_names = Py_NewRef(code->co_freevars);
#endif
    d->names = all ? PyTuple_GetSlice(all, 0, (Py_ssize_t)d->n_params) : NULL;
    Py_XDECREF(all);
    if (!d->names || !d->free_names) return -1;
    return check_names(d, d->names) < 0 ? -1 : check_names(d, d->free_names);
}

/* Read each time: a program may assign __defaults__ and __kwdefaults__. */
int ing_py_def_default(const ing_py_def *d, uint32_t i, PyObject **out) {
    PyObject *at_end = PyFunction_GetDefaults(d->fn);
    PyObject *kw = PyFunction_GetKwDefaults(d->fn);
    *out = NULL;
    Py_ssize_t have = at_end && PyTuple_Check(at_end) ? PyTuple_GET_SIZE(at_end) : 0;
    Py_ssize_t n_pos = (Py_ssize_t)(d->n_params - d->n_kwonly);
    Py_ssize_t at = (Py_ssize_t)i - (n_pos - have);
    if ((Py_ssize_t)i < n_pos) {
        *out = at >= 0 ? Py_NewRef(PyTuple_GET_ITEM(at_end, at)) : NULL;
        return *out != NULL;
    }
    if (!kw || !PyDict_Check(kw) || i >= d->n_params) return 0;
    return PyDict_GetItemRef(kw, PyTuple_GET_ITEM(d->names, i), out);
}

static int has_default(const ing_py_def *d, uint32_t i, ing_gate_param *p) {
    PyObject *v;
    int rc = ing_py_def_default(d, i, &v);
    Py_XDECREF(v);
    p->has_default = rc == 1;
    return rc;
}

int ing_py_def_init(ing_py_state *st, ing_py_def *d, PyObject *fn, PyObject *source) {
    memset(d, 0, sizeof *d);
    if (!PyFunction_Check(fn)) {
        PyObject *below = NULL;
        int wrapped = Py_IS_TYPE(fn, &PyStaticMethod_Type) ||
                      Py_IS_TYPE(fn, &PyClassMethod_Type) ||
                      Py_IS_TYPE(fn, &PyProperty_Type);
        if (!wrapped) wrapped = ing_py_attr_maybe(fn, "__wrapped__", &below);
        Py_XDECREF(below);
        if (wrapped < 0) return -1;
        PyErr_Format(PyExc_TypeError, "expected a Python function, got %.100s%s",
                     Py_TYPE(fn)->tp_name,
                     wrapped ? ": put its decorator above @qd.kernel or @qd.func"
                             : ": kernels and funcs are written as a `def`");
        return -1;
    }
    d->fn = Py_NewRef(fn);
    d->code = Py_NewRef(PyFunction_GET_CODE(fn));
    int ours = source ? 0 : is_ours(st, fn);
    d->ours = d->text_later = ours == 1;
    d->first_line = (uint32_t)code_of(d->fn)->co_firstlineno;
    if (ours < 0 || take_name(d) < 0 || take_names(d) < 0 ||
        (!d->text_later && take_text(st, d, source) < 0)) {
        ing_py_def_fini(d);
        return -1;
    }
    return 0;
}

int ing_py_def_copy(ing_py_state *st, ing_py_def *d, ing_py_def *from,
                    const char *suffix) {
    memset(d, 0, sizeof *d);
    if (ing_py_def_text(st, from) < 0) return -1;
    d->fn = Py_NewRef(from->fn);
    d->code = Py_NewRef(from->code);
    d->text = Py_XNewRef(from->text);
    d->why = Py_XNewRef(from->why);
    d->held = Py_XNewRef(from->held);
    d->names = Py_NewRef(from->names);
    d->free_names = Py_NewRef(from->free_names);
    d->ours = from->ours;
    d->first_line = from->first_line;
    d->n_params = from->n_params;
    d->n_posonly = from->n_posonly;
    d->n_kwonly = from->n_kwonly;
    d->n_as_given = from->n_as_given;
    d->suffix = (uint32_t)strlen(suffix);
    d->name = PyBytes_FromFormat("%s%s", ing_py_def_name(from), suffix);
    if (d->name) return 0;
    ing_py_def_fini(d);
    return -1;
}

void ing_py_def_fini(ing_py_def *d) {
    Py_CLEAR(d->fn);
    Py_CLEAR(d->code);
    Py_CLEAR(d->name);
    Py_CLEAR(d->text);
    Py_CLEAR(d->why);
    Py_CLEAR(d->held);
    Py_CLEAR(d->names);
    Py_CLEAR(d->free_names);
    Py_CLEAR(d->types);
    Py_CLEAR(d->result_types);
    Py_CLEAR(d->before);
    ing_cache_alias_fini(&d->alias);
    ing_front_tree_free(d->tree);
    d->tree = NULL;
    ing_free(d->params);
    d->params = NULL;
}

int ing_py_def_traverse(ing_py_def *d, visitproc visit, void *arg) {
    Py_VISIT(d->fn);
    Py_VISIT(d->names);
    Py_VISIT(d->types);
    Py_VISIT(d->result_types);
    Py_VISIT(d->before);
    return 0;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* The parsed function must be the running one: same name, same parameters. */
static ing_status check_same(const ing_py_def *d, const ing_front_tree *t, ing_err *e) {
    PyObject *name = ing_py_to_utf8(code_of(d->fn)->co_name);
    if (!name) return ING_PYTHON;
    uint32_t slot = t->slots.at[t->nodes.at[t->root].slots];
    const char *got = slot ? ing_atoms_text(&t->atoms, slot - 1) : "";
    bool same = strcmp(got, PyBytes_AS_STRING(name)) == 0;
    Py_DECREF(name);
    char want[200];
    if (same) return ING_OK;
    if (ing_py_show(code_of(d->fn)->co_name, want, sizeof want) < 0) return ING_PYTHON;
    return ing_fail(
        e, ING_SYNTAX,
        "%s:%u: the file changed since it was imported: expected the definition "
        "of %s here, found %s\nhelp: restart the program, or reload the module",
        t->file ? t->file : "?", t->first_line, want, *got ? got : "something else");
}

/* The wrapper of another decorator (functools.wraps) takes whatever comes: what was meant is
 * the function inside, and that one is not ours to call. */
static ing_status check_wrapped(const ing_py_def *d, const ing_front_tree *t,
                                ing_err *e) {
    ing_node args = t->slots.at[t->nodes.at[t->root].slots + 1];
    const uint32_t *f = &t->slots.at[t->nodes.at[args].slots];
    if (!args || (!f[2] && !f[5])) return ING_OK; /* vararg, kwarg */
    PyObject *dict = ((PyFunctionObject *)d->fn)->func_dict, *inner = NULL;
    int wrapped = dict ? PyDict_GetItemStringRef(dict, "__wrapped__", &inner) : 0;
    Py_XDECREF(inner);
    if (wrapped != 1) return wrapped < 0 ? ING_PYTHON : ING_OK;
    return ing_front_diag(
        t, f[2] ? f[2] : f[5], ING_SYNTAX,
        "put @qd.kernel or @qd.func next to the `def`, below the other "
        "decorators",
        e, "%s is wrapped by another decorator", ing_py_def_name(d));
}

static ing_status no_text(const ing_py_def *d, ing_err *e) {
    char why[400] = "it has no source text";
    if (d->why && ing_py_show(d->why, why, sizeof why) < 0) return ING_PYTHON;
    if (strstr(why, "changed since"))
        return ing_fail(
            e, ING_SYNTAX,
            "%s cannot be compiled: %s\nhelp: restart the program, or reload "
            "the module",
            ing_py_def_name(d), why);
    bool no_file = strchr(why, '<') != NULL; /* '<stdin>', '<string>' */
    return ing_fail(e, ING_SYNTAX,
                    "%s cannot be compiled: %s\nhelp: %s, register the text in "
                    "linecache.cache, or give it with qd.kernel(source=...)",
                    ing_py_def_name(d), why,
                    no_file ? "put it into a .py file" : "ship the .py file");
}

/* Nothing told at decoration whether the file is what was imported: what its text compiles to
 * must be the running code. */
static ing_status check_held(ing_py_def *d, ing_err *e) {
    PyObject *held = d->held, *file = code_of(d->fn)->co_filename;
    d->held = NULL;
    int same = held ? ing_py_source_belongs(held, d->fn, file) : 1;
    if (same < 0) d->held = held; /* to be asked again */
    if (same < 0) return ING_PYTHON;
    Py_XDECREF(held);
    if (same) return ING_OK;
    Py_CLEAR(d->text);
    d->why =
        PyUnicode_FromFormat("the text at %U:%u is not what runs: the file changed "
                             "since it was imported, or a decorator changed the code",
                             file, d->first_line);
    return d->why ? no_text(d, e) : ING_PYTHON;
}

static bool is_lambda(const ing_py_def *d) {
    return PyUnicode_CompareWithASCIIString(code_of(d->fn)->co_name, "<lambda>") == 0;
}

static ing_status lambda_error(const ing_py_def *d, ing_err *e) {
    char file[400];
    if (ing_py_show(code_of(d->fn)->co_filename, file, sizeof file) < 0)
        return ING_PYTHON;
    return ing_fail(e, ING_SYNTAX,
                    "%s:%u: a lambda cannot be a kernel or a func\nhelp: write it as a "
                    "`def` with annotated parameters",
                    file, d->first_line);
}

ing_status ing_py_def_check(const ing_py_def *d, ing_err *e) {
    if (PyFunction_GET_CODE(d->fn) == d->code) return ING_OK;
    return ing_fail(e, ING_SYNTAX,
                    "the code of %s was replaced after it was decorated\nhelp: "
                    "decorate the other function, and use that in its place",
                    ing_py_def_name(d));
}

/* Names are read from the dictionary itself, as Python reads them where nobody else answers
 * for it. */
static ing_status check_globals(const ing_py_state *st, const ing_py_def *d,
                                ing_err *e) {
    PyObject *globals = PyFunction_GET_GLOBALS(d->fn);
    PyTypeObject *type = Py_TYPE(globals);
    bool plain = PyDict_CheckExact(globals) ||
                 (!ing_py_class_has(st, type, ING_PY_NAME___missing__) &&
                  ing_py_class_has(st, type, ING_PY_NAME___getitem__) ==
                      ing_py_class_has(st, &PyDict_Type, ING_PY_NAME___getitem__));
    if (plain) return ing_py_def_check(d, e);
    return ing_fail(e, ING_TYPE,
                    "the globals of %s are a %s, which says by itself what is in it"
                    "\nhelp: run its text with a plain dict as globals",
                    ing_py_def_name(d), type->tp_name);
}

/* The key of its alias (R9), where it has one. */
static ing_status find_alias(ing_py_state *st, ing_py_def *d) {
    ing_hash128 code;
    if (d->alias.has_key) return ING_OK;
    if (ing_py_def_text(st, d) < 0) return ING_PYTHON;
    int known = d->text ? ing_py_code_digest(PyFunction_GET_CODE(d->fn), &code) : 0;
    if (known == 1)
        ing_cache_alias_key(&d->alias, (PY_MAJOR_VERSION << 8) | PY_MINOR_VERSION,
                            ing_py_source_digest(PyBytes_AS_STRING(d->text),
                                                 (size_t)PyBytes_GET_SIZE(d->text)),
                            code);
    return known < 0 ? ING_PYTHON : ING_OK;
}

ing_status ing_py_def_tree(ing_py_state *st, ing_py_def *d, const ing_front_tree **out,
                           ing_err *e) {
    ING_TRY(check_globals(st, d, e));
    if (!d->tree) {
        if (is_lambda(d)) return lambda_error(d, e);
        if (ing_py_def_text(st, d) < 0) return ING_PYTHON;
        if (!d->text) return no_text(d, e);
        ING_TRY(check_held(d, e));
        PyObject *file = ing_py_shown(code_of(d->fn)->co_filename);
        if (!file) return ING_PYTHON;
        ing_front_tree *t = NULL;
        ing_span span = {.what = "parse",
                         .label = ing_py_def_name(d),
                         .from = ing_events_now(st->host->events)};
        ing_status read = ing_py_read_tree(
            PyBytes_AS_STRING(d->text), (size_t)PyBytes_GET_SIZE(d->text),
            PyBytes_AS_STRING(file), d->first_line, ing_py_def_name(d), &t, e);
        Py_DECREF(file);
        ING_TRY(read);
        ing_count(&st->counters, ING_COUNT_PARSES);
        ing_events_span(st->host->events, &span);
        ing_status s = check_same(d, t, e);
        if (s == ING_OK) s = check_wrapped(d, t, e);
        if (s != ING_OK) {
            ing_front_tree_free(t);
            return s;
        }
        /* Parsing is Python: another thread may have done the same meanwhile. */
        if (d->tree) {
            ing_front_tree_free(t);
            *out = d->tree;
            return ING_OK;
        }
        d->tree = t;
        if (!d->ours) {
            if (!d->alias.known) {
                ING_TRY(find_alias(st, d));
                ING_TRY(ing_cache_alias_put(&st->host->cache, &d->alias, t->digest));
            }
            d->alias.tree = t->digest;
        }
    }
    *out = d->tree;
    return ING_OK;
}

/* Where a name is looked for depends on whether it is free, so kernels of one text, one in
 * a closure and one in a module, are two. */
static ing_hash128 source_of(const ing_py_def *d, ing_hash128 tree) {
    Py_ssize_t n = PyTuple_GET_SIZE(d->free_names);
    if (n == 0) return tree;
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, 1, tree);
    for (Py_ssize_t i = 0; i < n; i++) {
        ing_hasher_str(&h, 2, ing_py_utf8(PyTuple_GET_ITEM(d->free_names, i)));
    }
    return ing_hasher_done(&h);
}

/* The front-end revision, part of every address, answers for the text of the package's own
 * functions (R10); here it is which one. The code is for those who edit the package without
 * building it anew. */
static int own_digest(const ing_py_def *d, ing_hash128 *out) {
    ing_hash128 code;
    PyObject *module = ((PyFunctionObject *)d->fn)->func_module;
    PyObject *name = module && PyUnicode_Check(module) ? ing_py_to_utf8(module)
                                                       : PyBytes_FromString("");
    int rc = name ? ing_py_code_digest(PyFunction_GET_CODE(d->fn), &code) : -1;
    if (rc == 1) {
        ing_hasher h;
        ing_hasher_init(&h);
        ing_hasher_str(&h, 1, PyBytes_AS_STRING(name));
        ing_hasher_str(&h, 2, ing_py_def_name(d));
        ing_hasher_digest(&h, 3, code);
        *out = ing_hasher_done(&h);
    }
    Py_XDECREF(name);
    return rc;
}

ing_status ing_py_def_digest(ing_py_state *st, ing_py_def *d, ing_hash128 *out,
                             ing_err *e) {
    const ing_front_tree *t;
    ING_TRY(check_globals(st, d, e));
    if (!d->alias.known && d->ours) {
        int known = own_digest(d, &d->alias.tree);
        if (known < 0) return ING_PYTHON;
        d->ours = d->alias.known = known;
    }
    if (!d->alias.known) {
        ING_TRY(find_alias(st, d));
        if (ing_cache_alias_get(&st->host->cache, &d->alias) == ING_PYTHON)
            return ING_PYTHON;
    }
    if (!d->alias.known) {
        ING_TRY(ing_py_def_tree(st, d, &t, e));
        d->alias.tree = t->digest;
        d->alias.known = true;
    }
    *out = source_of(d, d->alias.tree);
    return ING_OK;
}

/* Its own, not those of whoever happens to call. */
PyObject *ing_py_def_builtins(const ing_py_def *d) {
    return ((PyFunctionObject *)d->fn)->func_builtins;
}

bool ing_py_def_is_free(const ing_py_def *d, const char *name) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(d->free_names); i++) {
        if (strcmp(ing_py_utf8(PyTuple_GET_ITEM(d->free_names, i)), name) == 0)
            return true;
    }
    return false;
}

/* The ARGUMENT node of parameter i, 0 when there is none. */
static ing_node param_node(const ing_front_tree *t, uint32_t i) {
    const uint32_t *slots = t->slots.at;
    ing_node args = slots[t->nodes.at[t->root].slots + 1];
    if (!args) return 0;
    const uint32_t *f = &slots[t->nodes.at[args].slots];
    const uint32_t lists[3] = {f[0], f[1], f[3]}; /* posonlyargs, args, kwonlyargs */
    for (int k = 0; k < 3; k++) {
        uint32_t n = lists[k] ? slots[lists[k]] : 0;
        if (i < n) return slots[lists[k] + 1 + i];
        i -= n;
    }
    return 0;
}

/* The annotation behind `->`, 0 when there is none. */
static ing_node returns_node(const ing_front_tree *t) {
    return t->slots.at[t->nodes.at[t->root].slots + 4];
}

ing_status ing_py_def_fail(ing_py_state *st, ing_py_def *d, uint32_t i, ing_status s,
                           const char *remedy, ing_err *e, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const ing_front_tree *t = NULL;
    ing_status parsed = ing_py_def_tree(st, d, &t, e);
    if (parsed == ING_SYNTAX && (d->text || is_lambda(d)))
        return parsed; /* says more */
    if (parsed == ING_PYTHON && !ing_py_took_any()) return parsed;
    if (parsed != ING_OK) {
        ing_err_fini(e);
        ing_err_init(e);
        return ing_fail(e, s, "%s: %s%s%s", ing_py_def_name(d), text,
                        remedy ? "\nhelp: " : "", remedy ? remedy : "");
    }
    ing_node at = i == ING_PY_AT_RETURNS ? returns_node(t) : param_node(t, i);
    return ing_front_diag(t, at ? at : t->root, s, remedy, e, "%s", text);
}

/* ---- annotations ------------------------------------------------------------------------------- */

/* A string annotation means what it evaluates to in the function's scopes (R3). */
static PyObject *resolve_string(const ing_py_def *d, PyObject *text) {
    const char *s = PyUnicode_AsUTF8(text);
    PyObject *locals = s ? PyDict_New() : NULL;
    if (!locals) return NULL;
    PyObject *cells = PyFunction_GetClosure(d->fn);
    for (Py_ssize_t i = 0; cells && i < PyTuple_GET_SIZE(cells); i++) {
        PyObject *v = PyCell_GET(PyTuple_GET_ITEM(cells, i));
        if (v && PyDict_SetItem(locals, PyTuple_GET_ITEM(d->free_names, i), v) < 0) {
            Py_DECREF(locals);
            return NULL;
        }
    }
    PyObject *v = PyRun_String(s, Py_eval_input, PyFunction_GET_GLOBALS(d->fn), locals);
    if (!v && !PyErr_Occurred()) PyErr_NoMemory(); /* which CPython may forget */
    Py_DECREF(locals);
    return v;
}

/* Annotation of `name`, resolved: new reference; NULL without exception = none. */
static PyObject *annotation_of(const ing_py_def *d, PyObject *annotations,
                               PyObject *name) {
    PyObject *a = NULL;
    if (annotations && PyDict_GetItemRef(annotations, name, &a) < 0) return NULL;
    if (a && PyUnicode_Check(a)) Py_SETREF(a, resolve_string(d, a));
    return a;
}

static bool says(PyObject *text, const char *what) {
    return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, what) == 0;
}

/* The type that an annotation names in its attribute `dtype`, if it has one. */
static ing_status read_dtype(ing_py_state *st, PyObject *a, ing_gate_param *out) {
    PyObject *t;
    if (ing_py_attr_of_maybe(st, a, ING_PY_NAME_dtype, &t) < 0) return ING_PYTHON;
    if (t && ing_py_is_tensor_type(st, t)) {
        out->dtype = (ing_dtype)((ing_py_tensor_type *)t)->id;
        out->tensor = ((ing_py_tensor_type *)t)->shape;
    } else if (t && ing_py_is_struct_type(st, t)) {
        out->layout = ing_py_layout_of(t); /* ingot/_annotations.py keeps it */
    } else if (t && t != Py_None) {
        out->dtype = ing_py_dtype_from(st, t);
    }
    Py_XDECREF(t);
    return ING_OK;
}

/* ndim, needs_grad and boundary of an array annotation. */
static ing_status read_array(ing_py_state *st, PyObject *a, ing_gate_param *out) {
    PyObject *n, *g = NULL, *b = NULL;
    int rc = ing_py_attr_of_maybe(st, a, ING_PY_NAME_ndim, &n);
    if (rc >= 0) rc = ing_py_attr_of_maybe(st, a, ING_PY_NAME_needs_grad, &g);
    if (rc >= 0) rc = ing_py_attr_of_maybe(st, a, ING_PY_NAME_boundary, &b);
    if (rc >= 0 && n && PyLong_Check(n)) {
        long ndim = PyLong_AsLong(n);
        out->ndim = (int32_t)ndim;
        if (ndim == -1 && PyErr_Occurred()) rc = -1;
    }
    out->needs_grad = g == Py_True;
    out->no_grad = g == Py_False;
    out->clamp = b && says(b, "clamp"); /* boundary="clamp" */
    Py_XDECREF(n);
    Py_XDECREF(g);
    Py_XDECREF(b);
    return rc < 0 ? ING_PYTHON : ING_OK;
}

/* Annotations other than dtypes say what they are in the attribute `_ingot_passing`. */
ing_status ing_py_passing_of(ing_py_state *st, PyObject *a, ing_gate_param *out) {
    PyObject *p;
    ing_status s = ING_OK;
    int rc = ing_py_attr_of_maybe(st, a, ING_PY_NAME__ingot_passing, &p);
    if (rc != 1) return rc < 0 ? ING_PYTHON : ING_DECLINED;
    if (says(p, "template")) {
        out->passing = ING_PASS_TEMPLATE;
    } else if (says(p, "ref")) {
        out->passing = ING_PASS_TEMPLATE;
        out->by_ref = true;
        s = read_dtype(st, a, out);
    } else if (says(p, "tensor")) {
        out->passing = ING_PASS_ARRAY;
        out->optional = out->fields = true;
        out->ndim = -1;
    } else if (says(p, "view")) {
        out->passing = ING_PASS_VIEW;
        out->ndim = 1;
        s = read_dtype(st, a, out);
    } else if (says(p, "ndarray")) {
        out->passing = ING_PASS_ARRAY;
        out->ndim = -1;
        s = read_dtype(st, a, out);
        if (s == ING_OK) s = read_array(st, a, out);
    } else {
        s = ING_DECLINED;
    }
    Py_DECREF(p);
    return s;
}

/* typing.Any, which type checkers want where a func takes anything. 1, 0 or -1 = raised. */
static int is_any(PyObject *annotation) {
    PyObject *typing, *any = NULL;
    int rc = ing_py_loaded("typing", &typing);
    if (rc == 1) rc = ing_py_attr_maybe(typing, "Any", &any);
    if (rc == 1) rc = any == annotation;
    Py_XDECREF(typing);
    Py_XDECREF(any);
    return rc;
}

/* Was it defined in the body of a class? Then its first parameter is self or cls. */
static bool is_method(const ing_py_def *d) {
    const char *text = ing_py_def_name(d), *dot = text + strlen(text) - d->suffix;
    while (dot > text && *--dot != '.') {}
    return dot > text && dot[-1] != '>'; /* f.<locals>.g is no method of f */
}

/* Of list[int], NDArray[...] and their like the class before the brackets, else `a` itself.
 * New reference; NULL: raised. */
static PyObject *without_brackets(PyObject *a) {
    PyObject *origin = NULL;
    int rc = PyType_Check(a) ? 0 : ing_py_attr_maybe(a, "__origin__", &origin);
    if (rc < 0) return NULL;
    if (rc == 1 && PyType_Check(origin)) return origin;
    Py_XDECREF(origin);
    return Py_NewRef(a);
}

static const char *type_remedy(PyObject *a) {
    const char *what = PyType_Check(a) ? ((PyTypeObject *)a)->tp_name : "";
    const char *name =
        PyFunction_Check(a) ? ing_py_utf8(((PyFunctionObject *)a)->func_name) : "";
    if (a == (PyObject *)&PyUnicode_Type)
        return "strings are compile-time values: annotate it with qd.template()";
    if (a == (PyObject *)&PyList_Type || a == (PyObject *)&PyTuple_Type ||
        a == (PyObject *)&PyDict_Type)
        return "annotate it with qd.template(), which makes it a compile-time value, "
               "or pass an array: qd.types.ndarray()";
    if (strcmp(what, "numpy.ndarray") == 0 || strcmp(what, "Tensor") == 0)
        return "annotate arrays with qd.types.ndarray()";
    if (strcmp(what, "Vector") == 0 || strcmp(name, "vector") == 0)
        return "say its size and dtype: qd.types.vector(3, qd.f32)";
    if (strcmp(what, "Matrix") == 0 || strcmp(name, "matrix") == 0)
        return "say its size and dtype: qd.types.matrix(3, 3, qd.f32)";
    if (PyFunction_Check(a) || PyCFunction_Check(a))
        return "that is a function: annotate arrays with qd.types.ndarray(), fields "
               "with qd.template()";
    return "use a dtype such as qd.f32, qd.types.ndarray() or qd.template()";
}

/* An annotation that says nothing to kernels. */
static ing_status no_parameter_type(ing_py_state *st, ing_py_def *d, uint32_t i,
                                    PyObject *a, ing_err *e) {
    const char *what = PyType_Check(a) ? ((PyTypeObject *)a)->tp_name : "";
    PyObject *cls = without_brackets(a);
    if (!cls) return ING_PYTHON;
    const char *remedy = type_remedy(cls);
    Py_DECREF(cls);
    return ing_py_def_fail(
        st, d, i, ING_SYNTAX, remedy, e,
        "the annotation of parameter '%s' (%s%.80s) is no parameter type",
        ing_py_utf8(PyTuple_GET_ITEM(d->names, i)), *what ? "" : "of type ",
        *what ? what : Py_TYPE(a)->tp_name);
}

static ing_status one_meaning(ing_py_state *st, ing_py_def *d, uint32_t i, PyObject *a,
                              bool optional, bool kernel, ing_gate_param *out,
                              ing_err *e) {
    const char *text = ing_py_utf8(PyTuple_GET_ITEM(d->names, i));
    *out = (ing_gate_param){.passing = ING_PASS_ANY, .ndim = -1};
    if (has_default(d, i, out) < 0) return ING_PYTHON;
    int any = kernel || !a ? 0 : is_any(a);
    if (any) return any < 0 ? ING_PYTHON : ING_OK;
    if (!a) {
        /* `self` of a method has no annotation and is a template. */
        if (kernel && i == 0 && (strcmp(text, "self") == 0 || is_method(d)))
            out->passing = ING_PASS_TEMPLATE;
        else if (kernel)
            return ing_py_def_fail(st, d, i, ING_SYNTAX,
                                   "annotate it, for example with qd.i32, qd.f32, "
                                   "qd.types.ndarray() or qd.template()",
                                   e, "kernel parameter '%s' has no type annotation",
                                   text);
        return ING_OK;
    }
    out->dtype = ing_py_dtype_from(st, a);
    if (optional && (out->dtype != ING_VOID || ing_py_is_tensor_type(st, a)))
        return ing_py_def_fail(st, d, i, ING_SYNTAX,
                               "use qd.template() for a value that may be None", e,
                               "parameter '%s' is a number or None: only arrays and "
                               "objects can be left out",
                               text);
    if (out->dtype != ING_VOID) {
        out->passing = ING_PASS_VALUE;
        return ING_OK;
    }
    if (ing_py_is_tensor_type(st, a)) {
        out->passing = ING_PASS_VALUE;
        out->dtype = (ing_dtype)((ing_py_tensor_type *)a)->id;
        out->tensor = ((ing_py_tensor_type *)a)->shape;
        return ING_OK;
    }
    if (ing_py_is_struct_type(st, a)) {
        out->passing = ING_PASS_VALUE;
        out->layout = ing_py_layout_of(a);
        return ING_OK;
    }
    ing_status s = ing_py_passing_of(st, a, out);
    out->optional |= optional && out->passing == ING_PASS_ARRAY;
    if (s != ING_DECLINED) return s;
    if (ing_py_is_dataclass(st, a)) { /* its fields are as members of a template */
        out->passing = ING_PASS_TEMPLATE;
        return ING_OK;
    }
    return no_parameter_type(st, d, i, a, e);
}

/* An annotation in quotes (or under `from __future__ import annotations`) that raises an
 * ordinary error when it is evaluated: told at its place. */
static ing_status bad_annotation(ing_py_state *st, ing_py_def *d, uint32_t i,
                                 ing_err *e) {
    if (!PyErr_ExceptionMatches(PyExc_Exception) ||
        PyErr_ExceptionMatches(PyExc_MemoryError))
        return ING_PYTHON;
    ing_status s = PyErr_ExceptionMatches(PyExc_NameError) ? ING_NAME : ING_SYNTAX;
    char buf[300];
    PyObject *cls = Py_NewRef(PyErr_Occurred());
    if (ing_py_show_exception(buf, sizeof buf) < 0)
        s = ING_PYTHON;
    else
        s = ing_py_def_fail(st, d, i, s,
                            "define what it names before the first call; dtypes are "
                            "written qd.f32, also in quotes",
                            e, "the annotation cannot be evaluated: %.80s: %s",
                            ((PyTypeObject *)cls)->tp_name, buf);
    Py_DECREF(cls);
    return s;
}

static ing_status bad_return(ing_py_state *st, ing_py_def *d, PyObject *a, ing_err *e) {
    if (ing_py_is_tensor_type(st, a))
        return ing_py_def_fail(st, d, ING_PY_AT_RETURNS, ING_SYNTAX,
                               "say both: qd.types.vector(3, qd.f32)", e,
                               "the result of a kernel needs a size and a dtype");
    ing_gate_param p = {0};
    ing_status array = ing_py_passing_of(st, a, &p);
    if (array == ING_PYTHON) return ING_PYTHON;
    return ing_py_def_fail(
        st, d, ING_PY_AT_RETURNS, ING_SYNTAX,
        array == ING_OK && p.passing == ING_PASS_ARRAY
            ? "annotate with the dtype of a number, or pass the array "
              "that the results go into as an argument"
            : "annotate with a dtype, a tuple of dtypes, or None",
        e, "the return annotation (%.80s) is no return type", Py_TYPE(a)->tp_name);
}

/* Is it tuple[...] or typing.Tuple[...]? *out: new reference to what stands in the brackets,
 * or NULL; of `tuple[X, ...]`, of which nobody knows how many, NULL as well. -1 = raised. */
static int tuple_items(PyObject *a, PyObject **out) {
    PyObject *origin, *args = NULL;
    *out = NULL;
    if (PyTuple_Check(a) || PyList_Check(a))
        return (*out = PySequence_Tuple(a)) != NULL ? 1 : -1;
    if (PyType_Check(a)) return 0;
    int rc = ing_py_attr_maybe(a, "__origin__", &origin);
    if (rc == 1 && origin == (PyObject *)&PyTuple_Type)
        rc = ing_py_attr_maybe(a, "__args__", &args);
    bool ok = args && PyTuple_Check(args);
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(args); i++)
        ok = PyTuple_GET_ITEM(args, i) != Py_Ellipsis;
    Py_XDECREF(origin);
    if (!ok) Py_CLEAR(args);
    *out = args;
    return rc < 0 ? -1 : ok;
}

/* What says nothing about numbers: a class, an array, a generic type. 1, 0 or -1 = raised. */
static int is_open(ing_py_state *st, PyObject *a) {
    ing_gate_param ignored = {0};
    PyObject *origin;
    if (PyType_Check(a)) return 1;
    int rc = ing_py_attr_maybe(a, "__origin__", &origin);
    Py_XDECREF(origin);
    if (rc == 0) rc = is_any(a);
    if (rc != 0) return rc;
    ing_status s = ing_py_passing_of(st, a, &ignored);
    return s == ING_PYTHON ? -1 : s == ING_OK;
}

typedef struct results {
    ing_py_state *st;
    ing_py_def *d;
    bool kernel;
    ing_gate_returns *out;
    PyObject *types; /* list: what each entry is written as */
    ing_err *e;
} results;

static ing_status add_tuple(const results *r, PyObject *items, uint32_t at);

/* The nesting of the annotation, which the number of entries bounds, bounds the recursion. */
static ing_status add_return(const results *r, PyObject *a) {
    ing_gate_returns *out = r->out;
    uint32_t i = out->n;
    if (i == ING_GATE_MAX_RETURNS)
        return ing_py_def_fail(r->st, r->d, ING_PY_AT_RETURNS, ING_SYNTAX,
                               "write the results to an array", r->e,
                               "a %s can return at most %d values",
                               r->kernel ? "kernel" : "func", ING_GATE_MAX_RETURNS);
    if (PyList_Append(r->types, a) < 0) return ING_PYTHON;
    out->n++;
    out->dtypes[i] = ing_py_dtype_from(r->st, a);
    if (out->dtypes[i] != ING_VOID) return ING_OK;
    if (ing_py_is_struct_type(r->st, a)) {
        out->layouts[i] = ing_py_layout_of(a);
        return ING_OK;
    }
    if (ing_py_is_tensor_type(r->st, a)) {
        out->dtypes[i] = (ing_dtype)((ing_py_tensor_type *)a)->id;
        out->tensors[i] = ((ing_py_tensor_type *)a)->shape;
        bool known = out->dtypes[i] && ing_gate_count(&out->tensors[i]);
        return known || !r->kernel ? ING_OK : bad_return(r->st, r->d, a, r->e);
    }
    if (r->kernel) return bad_return(r->st, r->d, a, r->e);
    PyObject *items;
    if (tuple_items(a, &items) < 0) return ING_PYTHON;
    if (items) return add_tuple(r, items, i);
    int open = is_open(r->st, a);
    if (open < 0) return ING_PYTHON;
    return open ? ING_OK : bad_return(r->st, r->d, a, r->e);
}

/* Entry `at` is a tuple of these; takes items. */
static ing_status add_tuple(const results *r, PyObject *items, uint32_t at) {
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    ing_status s = ING_OK;
    for (Py_ssize_t i = 0; s == ING_OK && i < n; i++)
        s = add_return(r, PyTuple_GET_ITEM(items, i));
    if (s == ING_OK) r->out->items[at] = (uint8_t)(n + 1);
    Py_DECREF(items);
    return s;
}

/* `-> qd.f32`, `-> (qd.i32, qd.f32)`, `-> tuple[int, float]`, `-> None`. *types: a tuple of
 * what it names, new reference. Funcs may leave open what their results are. */
static ing_status return_meaning(ing_py_state *st, ing_py_def *d, PyObject *a,
                                 bool kernel, ing_gate_returns *out, PyObject **types,
                                 ing_err *e) {
    int any = a ? is_any(a) : 0;
    if (any < 0) return ING_PYTHON;
    if (any) a = NULL; /* says as much as no annotation */
    out->given = a != NULL;
    if (!a || a == Py_None) {
        *types = PyTuple_New(0);
        return *types ? ING_OK : ING_PYTHON;
    }
    results r = {st, d, kernel, out, PyList_New(0), e};
    if (!r.types) return ING_PYTHON;
    PyObject *items;
    ing_status s = tuple_items(a, &items) < 0 ? ING_PYTHON : ING_OK;
    out->tuple = items != NULL;
    for (Py_ssize_t i = 0; s == ING_OK && items && i < PyTuple_GET_SIZE(items); i++)
        s = add_return(&r, PyTuple_GET_ITEM(items, i));
    if (s == ING_OK && !items) s = add_return(&r, a);
    *types = s == ING_OK ? PyList_AsTuple(r.types) : NULL;
    if (s == ING_OK && !*types) s = ING_PYTHON;
    Py_XDECREF(items);
    Py_DECREF(r.types);
    return s;
}

/* What `float` and `int` mean in annotations. */
static uint32_t defaults_of(const ing_py_state *st) {
    return (uint32_t)st->settings.at[ING_SET_default_fp] << 8 |
           (uint32_t)st->settings.at[ING_SET_default_ip];
}

/* Takes what it is given. Annotations are Python: another thread may have resolved them meanwhile,
 * or they were under other settings. Whoever points to the parameters, or to layouts of struct types
 * that annotations named before, goes on to do so. */
static ing_status keep_meanings(ing_py_def *d, ing_gate_param *p, PyObject *types,
                                const ing_gate_returns *returns, PyObject *written) {
    if (d->params) {
        PyObject *before =
            PyTuple_Pack(3, d->types, d->result_types, d->before ? d->before : Py_None);
        if (!before) {
            Py_DECREF(types);
            Py_DECREF(written);
            ing_free(p);
            return ING_PYTHON;
        }
        Py_XSETREF(d->before, before);
        memcpy(d->params, p, (d->n_params + 1) * sizeof *p);
        ing_free(p);
    } else {
        d->params = p;
    }
    d->returns = *returns;
    Py_XSETREF(d->types, types);
    Py_XSETREF(d->result_types, written);
    return ING_OK;
}

ing_status ing_py_def_meanings(ing_py_state *st, ing_py_def *d, bool kernel,
                               ing_err *e) {
    for (uint32_t i = 0; d->params && i < d->n_params; i++)
        if (has_default(d, i, &d->params[i]) < 0) return ING_PYTHON;
    if (d->params && d->defaults == defaults_of(st)) return ING_OK;
    if (d->n_params > ING_PY_MAX_PARAMS)
        return ing_fail(e, ING_SYNTAX, "%s has %u parameters; at most %d are supported",
                        ing_py_def_name(d), d->n_params, ING_PY_MAX_PARAMS);
    ing_gate_param *p = ing_calloc(d->n_params + 1, sizeof *p);
    ing_gate_returns returns = {0};
    uint32_t defaults = defaults_of(st);
    PyObject *annotations = ing_py_attr_of(st, d->fn, ING_PY_NAME___annotations__);
    PyObject *ret_name = st->names[ING_PY_NAME_return];
    PyObject *types = PyTuple_New((Py_ssize_t)d->n_params), *written = NULL;
    ing_status s = p && annotations && types ? ING_OK : ING_PYTHON;
    if (s != ING_OK && !PyErr_Occurred()) PyErr_NoMemory();
    for (uint32_t i = 0; s == ING_OK && i <= d->n_params; i++) {
        bool is_ret = i == d->n_params;
        PyObject *a = annotation_of(d, annotations,
                                    is_ret ? ret_name : PyTuple_GET_ITEM(d->names, i));
        bool optional = false;
        if (a && !is_ret) Py_SETREF(a, ing_py_strip_optional(a, &optional));
        if (!a && PyErr_Occurred())
            s = bad_annotation(st, d, is_ret ? ING_PY_AT_RETURNS : i, e);
        else if (is_ret)
            s = return_meaning(st, d, a, kernel, &returns, &written, e);
        else
            s = one_meaning(st, d, i, a, optional, kernel, &p[i], e);
        if (s == ING_OK && !is_ret)
            PyTuple_SET_ITEM(types, i, Py_NewRef(a ? a : Py_None));
        Py_XDECREF(a);
    }
    Py_XDECREF(annotations);
    if (s == ING_OK) {
        d->defaults = defaults;
        return keep_meanings(d, p, types, &returns, written);
    }
    Py_XDECREF(written);
    Py_XDECREF(types);
    ing_free(p);
    return s;
}
