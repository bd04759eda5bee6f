/* Functions, modules and other things that count by an importable name. A name is always
 * verified to lead to the very object. A user's function adds its text without positions
 * and, through its children, what it reaches (fingerprint_reach.c); a function of an installed
 * distribution adds that distribution's version; one of the standard library its name
 * only. A function that a library made for the user (a decorator's wrapper) counts by what it
 * holds. Under the lenient rules functions count by their code objects instead. */
#include "py/value/fingerprint_int.h"
#include "py/call/kernel.h"

static bool is_stdlib(PyObject *origin) {
    return PyUnicode_Check(origin) && PyUnicode_GET_LENGTH(origin) == 0;
}

static int put_name(fp_walk *w, PyObject *module, PyObject *qualname) {
    bool ok;
    ing_hash128 d = ing_fp_hash_pair(FP_NAME, module, qualname, &ok);
    return ok ? ing_fp_put_digest(w, FP_NAME, d) : -1;
}

/* A frame that begins with a name; `kids` is stolen. */
static int push_named(fp_walk *w, PyObject *obj, fp_kind kind, PyObject *module,
                      PyObject *qualname, PyObject *kids, Py_ssize_t own) {
    if (!kids) return -1;
    uint32_t n = (uint32_t)PyTuple_GET_SIZE(kids);
    if (ing_fp_push(w, obj, FP_AS_ITSELF, kind, kids, n, 0, own) < 0) return -1;
    return put_name(w, module, qualname);
}

/* ---- anything with a name ------------------------------------------------------------------------ */

static bool is_ufunc(fp_walk *w, PyObject *obj) {
    fp_plan *p = ing_fp_plan_get(w, Py_TYPE(obj));
    if (!p) ing_fp_forgive(w->fp);
    return p && p->rule == FP_RULE_UFUNC;
}

/* The attributes of an object of the user's own class; of others nothing. */
static PyObject *own_state(fp_walk *w, PyObject *obj) {
    PyObject *module =
        ing_fp_attr(w->fp, (PyObject *)Py_TYPE(obj), w->fp->n.__module__);
    PyObject *origin = module ? ing_fp_origin(w, module) : Py_NewRef(Py_None);
    bool users = origin == Py_None;
    Py_XDECREF(module);
    Py_XDECREF(origin);
    if (!origin) return NULL;
    return users ? ing_fp_as_new(w, obj, FP_AS_STATE) : Py_NewRef(Py_None);
}

/* What a decorator such as lru_cache wraps is part of what it is; so are class and state of
 * what code works on. */
static PyObject *wrapped_kids(fp_walk *w, PyObject *obj, PyObject *origin) {
    PyObject *inner =
        origin == Py_None ? ing_fp_attr(w->fp, obj, w->fp->n.__wrapped__) : NULL;
    PyObject *first = !inner                    ? Py_NewRef(origin)
                      : PyFunction_Check(inner) ? ing_fp_as_new(w, inner, FP_AS_CODE)
                                                : Py_NewRef(inner);
    PyObject *cls = NULL, *state = NULL, *kids = NULL;
    fp_plan *p = ing_fp_plan_get(w, Py_TYPE(obj));
    bool live = ing_fp_live(w) || (p && p->calls);
    if (p && live) cls = ing_fp_as_new(w, (PyObject *)Py_TYPE(obj), FP_AS_CLASS);
    if (cls) state = own_state(w, obj);
    if (first && p && !live) kids = PyTuple_Pack(1, first);
    if (first && state) kids = PyTuple_Pack(3, first, cls, state);
    Py_XDECREF(state);
    Py_XDECREF(inner);
    Py_XDECREF(first);
    Py_XDECREF(cls);
    return kids;
}

/* An lru_cache that code holds under another name: what it wraps. 1: done, 0: it is none. */
static int by_wrapped(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    if (!ing_fp_live(w) ||
        !ing_fp_is_a(w->fp, Py_TYPE(obj), "functools", "_lru_cache_wrapper"))
        return 0;
    PyObject *inner = ing_fp_attr(w->fp, obj, w->fp->n.__wrapped__);
    if (inner && PyFunction_Check(inner))
        Py_SETREF(inner, ing_fp_as_new(w, inner, FP_AS_CODE));
    PyObject *kids = inner ? PyTuple_Pack(1, inner) : NULL;
    Py_XDECREF(inner);
    if (!kids) return PyErr_Occurred() ? -1 : 0;
    if (ing_fp_push(w, obj, FP_AS_ITSELF, FP_NAMED_KIND, kids, 1, 0, own) < 0)
        return -1;
    return 1;
}

int ing_fp_named(fp_walk *w, PyObject *obj, PyObject *module, PyObject *qualname,
                 Py_ssize_t own) {
    PyObject *found = ing_fp_resolve(w->fp, module, qualname);
    bool same = found == obj;
    Py_XDECREF(found);
    int wrapped = same ? 0 : by_wrapped(w, obj, own);
    if (wrapped) return wrapped < 0 ? -1 : 0;
    if (!same)
        return ing_fp_refuse(w, obj, "it has no importable name",
                             "define it at the top level of a module");
    if (is_ufunc(w, obj)) return put_name(w, module, qualname);
    PyObject *origin = ing_fp_origin(w, module);
    if (!origin) return -1;
    int rc = is_stdlib(origin) ? put_name(w, module, qualname)
                               : push_named(w, obj, FP_NAMED_KIND, module, qualname,
                                            wrapped_kids(w, obj, origin), own);
    Py_DECREF(origin);
    return rc;
}

/* ---- modules ----------------------------------------------------------------------------------------- */

/* A module of the user's own that is used as a value: all that it holds, as code. */
static int push_whole_module(fp_walk *w, PyObject *mod, PyObject *name,
                             Py_ssize_t own) {
    PyObject *reach = ing_fp_reach(w->fp), *kids = PyList_New(0);
    PyObject *all = reach ? PyObject_CallMethod(reach, "whole_module", "O", mod) : NULL;
    int rc = all && kids && PyList_Check(all) ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(all); i++) {
        PyObject *pair = PyList_GET_ITEM(all, i), *v = PyTuple_GET_ITEM(pair, 1);
        PyObject *kid = PyFunction_Check(v) ? ing_fp_as_new(w, v, FP_AS_CODE)
                        : PyType_Check(v)   ? ing_fp_as_new(w, v, FP_AS_CLASS)
                                            : Py_NewRef(v);
        rc = kid && PyList_Append(kids, PyTuple_GET_ITEM(pair, 0)) == 0 &&
                     PyList_Append(kids, kid) == 0
                 ? 0
                 : -1;
        Py_XDECREF(kid);
    }
    Py_XDECREF(all);
    if (rc < 0) {
        Py_XDECREF(kids);
        return -1;
    }
    uint32_t groups = (uint32_t)PyList_GET_SIZE(kids) / 2;
    if (ing_fp_push(w, mod, FP_AS_ITSELF, FP_MODULE_KIND, kids, 0, groups, own) < 0)
        return -1;
    ing_fp_top(w)->pairs = ing_fp_top(w)->live = 1;
    PyObject *empty = PyUnicode_FromString("");
    rc = empty ? put_name(w, name, empty) : -1;
    Py_XDECREF(empty);
    return rc;
}

int ing_fp_module(fp_walk *w, PyObject *mod, Py_ssize_t own) {
    PyObject *name = PyModule_GetNameObject(mod);
    if (!name) return ing_fp_refuse(w, mod, "a module without a name", NULL);
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *known = modules ? PyDict_GetItemWithError(modules, name) : NULL;
    PyObject *origin = known == mod ? ing_fp_origin(w, name) : NULL;
    PyObject *empty = origin ? PyUnicode_FromString("") : NULL;
    int rc = -1;
    if (known != mod) /* also after an error */
        rc = ing_fp_refuse(w, mod, "the module is not the one that its name imports",
                           NULL);
    else if (empty && origin == Py_None)
        rc = push_whole_module(w, mod, name, own);
    else if (empty && is_stdlib(origin))
        rc = put_name(w, name, empty);
    else if (empty)
        rc = push_named(w, mod, FP_MODULE_KIND, name, empty, PyTuple_Pack(1, origin),
                        own);
    Py_XDECREF(empty);
    Py_XDECREF(origin);
    Py_DECREF(name);
    return rc;
}

/* ---- functions ---------------------------------------------------------------------------------------------- */

/* module and name (None when the function counts by content alone), the given item, then
 * what the signature evaluated to. */
static PyObject *function_kids(fp_walk *w, PyObject *fn, PyObject *module,
                               PyObject *qualname, PyObject *item) {
    PyObject *defaults = ing_fp_defaults(w, PyFunction_GetDefaults(fn));
    PyObject *keywords =
        defaults ? ing_fp_defaults(w, PyFunction_GetKwDefaults(fn)) : NULL;
    PyObject *kids = keywords ? PyList_New(0) : NULL;
    PyObject *const all[] = {module, qualname, item, defaults, keywords};
    for (size_t i = 0; kids && i < sizeof all / sizeof *all; i++)
        if (PyList_Append(kids, all[i] ? all[i] : Py_None) < 0) Py_CLEAR(kids);
    Py_XDECREF(defaults);
    Py_XDECREF(keywords);
    return kids;
}

/* `kids` is stolen; NULL, with an exception, is a refusal. */
static int push_function(fp_walk *w, PyObject *fn, fp_how how, PyObject *kids,
                         Py_ssize_t own) {
    if (!kids)
        return ing_fp_refuse(w, fn, "what it reaches cannot be followed",
                             "make it reachable by names that are defined before it is "
                             "hashed, or use variant=\"lenient\" with a salt");
    uint32_t groups = (uint32_t)(PyList_GET_SIZE(kids) - 5) / 2;
    if (ing_fp_push(w, fn, how, FP_FUNC_KIND, kids, 5, groups, own) < 0) return -1;
    ing_fp_top(w)->pairs = 1;
    return 0;
}

/* Is there text for the function? Else refuses it: -1, or the fallback's answer in *rc. */
static bool has_text(fp_walk *w, PyObject *obj, PyObject *source, int *rc) {
    if (source && PyTuple_Check(source)) return true;
    if (!source)
        *rc = ing_fp_refuse(w, obj, "its source cannot be read", NULL);
    else if (source == Py_False)
        *rc = ing_fp_refuse(w, obj, "its file changed since it was imported",
                            "restart the program, or reload the module");
    else
        *rc = ing_fp_refuse(w, obj, "there is no source text for this function",
                            "ship the .py file, or register the text in linecache");
    return false;
}

static int by_source(fp_walk *w, PyObject *fn, fp_how how, PyObject *module,
                     PyObject *qualname, Py_ssize_t own) {
    PyObject *source = ing_fp_source(w, fn, NULL);
    int rc;
    if (!has_text(w, fn, source, &rc)) {
        Py_XDECREF(source);
        return rc;
    }
    PyObject *kids =
        function_kids(w, fn, module, qualname, PyTuple_GET_ITEM(source, 0));
    if (kids && (ing_fp_reached(w, fn, source, kids) < 0 ||
                 ing_fp_attributes(w, fn, false, kids) < 0))
        Py_CLEAR(kids);
    Py_DECREF(source);
    return push_function(w, fn, how, kids, own);
}

/* ---- functions that libraries make --------------------------------------------------------------------------- */

/* The classes and implementations of a singledispatch: 1 appended, 0 it is none, -1. */
static int append_dispatched(fp_walk *w, PyObject *fn, PyObject *list) {
    PyObject *reach = ing_fp_reach(w->fp);
    PyObject *all = reach ? PyObject_CallMethod(reach, "dispatched", "O", fn) : NULL;
    if (!all) return -1;
    int rc = PyList_Check(all);
    for (Py_ssize_t i = 0; rc == 1 && i < PyList_GET_SIZE(all); i++) {
        PyObject *cls = PyTuple_GET_ITEM(PyList_GET_ITEM(all, i), 0);
        PyObject *f = PyTuple_GET_ITEM(PyList_GET_ITEM(all, i), 1);
        PyObject *key = ing_fp_as_new(w, cls, FP_AS_CLASS);
        PyObject *mark =
            PyFunction_Check(f) ? ing_fp_as_new(w, f, FP_AS_CODE) : Py_NewRef(f);
        if (!key || !mark || PyList_Append(list, key) < 0 ||
            PyList_Append(list, mark) < 0)
            rc = -1;
        Py_XDECREF(key);
        Py_XDECREF(mark);
    }
    Py_DECREF(all);
    return rc;
}

/* A wrapper that a library made: which it is, by name and version, and what it holds. */
static int by_library(fp_walk *w, PyObject *fn, fp_how how, PyObject *module,
                      PyObject *qualname, PyObject *origin, Py_ssize_t own) {
    PyObject *name = PyFunction_GET_GLOBALS(fn);
    PyObject *home = PyDict_GetItemWithError(name, w->fp->n.__name__);
    PyObject *code = ((PyCodeObject *)PyFunction_GET_CODE(fn))->co_name;
    PyObject *which =
        PyErr_Occurred() ? NULL : PyTuple_Pack(3, home ? home : Py_None, code, origin);
    PyObject *kids = which ? function_kids(w, fn, module, qualname, which) : NULL;
    Py_XDECREF(which);
    int dispatch = kids ? append_dispatched(w, fn, kids) : -1;
    int rc = dispatch < 0 ? -1 : 0;
    if (dispatch == 0) rc = ing_fp_cells(w, fn, kids);
    if (rc == 0) rc = ing_fp_attributes(w, fn, dispatch == 1, kids);
    if (rc < 0) Py_CLEAR(kids);
    return push_function(w, fn, how, kids, own);
}

/* All names that a code object and those inside it read from outside. */
int ing_fp_code_names(PyObject *code, PyObject *set) {
    PyObject *stack = PyList_New(0);
    int rc = stack ? PyList_Append(stack, code) : -1;
    bool first = true;
    while (rc == 0 && PyList_GET_SIZE(stack)) {
        PyObject *c = Py_NewRef(PyList_GET_ITEM(stack, PyList_GET_SIZE(stack) - 1));
        rc = PyList_SetSlice(stack, PyList_GET_SIZE(stack) - 1, PyList_GET_SIZE(stack),
                             NULL);
        PyObject *names = PyObject_GetAttrString(c, "co_names");
        PyObject *free_names = first ? PyObject_GetAttrString(c, "co_freevars") : NULL;
        PyObject *consts = PyObject_GetAttrString(c, "co_consts");
        if (!names || !consts || (first && !free_names)) rc = -1;
        for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(names); i++)
            rc = PySet_Add(set, PyTuple_GET_ITEM(names, i));
        for (Py_ssize_t i = 0; rc == 0 && first && i < PyTuple_GET_SIZE(free_names);
             i++)
            rc = PySet_Add(set, PyTuple_GET_ITEM(free_names, i));
        for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(consts); i++)
            if (PyCode_Check(PyTuple_GET_ITEM(consts, i)))
                rc = PyList_Append(stack, PyTuple_GET_ITEM(consts, i));
        Py_XDECREF(names);
        Py_XDECREF(free_names);
        Py_XDECREF(consts);
        Py_DECREF(c);
        first = false;
    }
    Py_XDECREF(stack);
    return rc;
}

/* What code without text says of itself, in the form of ing_fp_source. */
static PyObject *code_source(fp_walk *w, PyObject *fn) {
    PyObject *code = PyFunction_GET_CODE(fn), *reach = ing_fp_reach(w->fp);
    PyObject *set = PySet_New(NULL), *out = NULL;
    PyObject *names =
        set && ing_fp_code_names(code, set) == 0 ? PySequence_Tuple(set) : NULL;
    PyObject *imports =
        names && reach ? PyObject_CallMethod(reach, "code_imports", "O", code) : NULL;
    if (imports) out = Py_BuildValue("(OO()O())", Py_None, names, imports);
    Py_XDECREF(set);
    Py_XDECREF(names);
    Py_XDECREF(imports);
    return out;
}

static int by_code(fp_walk *w, PyObject *fn, fp_how how, Py_ssize_t own) {
    PyObject *source = ing_fp_source(w, fn, NULL);
    if (source && !PyTuple_Check(source)) Py_SETREF(source, code_source(w, fn));
    PyObject *kids =
        source ? function_kids(w, fn, NULL, NULL, PyFunction_GET_CODE(fn)) : NULL;
    if (kids && (ing_fp_reached(w, fn, source, kids) < 0 ||
                 ing_fp_attributes(w, fn, false, kids) < 0))
        Py_CLEAR(kids);
    Py_XDECREF(source);
    return push_function(w, fn, how, kids, own);
}

static bool contains(fp_walk *w, PyObject *text, const char *part) {
    PyObject *p = PyUnicode_FromString(part);
    bool yes = p && PyUnicode_Check(text) && PyUnicode_Contains(text, p) == 1;
    Py_XDECREF(p);
    ing_fp_forgive(w->fp);
    return yes;
}

static int refuse_function(fp_walk *w, PyObject *fn, PyObject *qualname) {
    const char *why = contains(w, qualname, "<lambda>")
                          ? "lambda has no importable name"
                      : contains(w, qualname, "<locals>")
                          ? "local function has no importable name"
                          : "the function is not the one that its name imports";
    return ing_fp_refuse(w, fn, why,
                         "define it with def at the top level of a module, or use "
                         "variant=\"lenient\"");
}

/* The name may lead to what a decorator made of the function: each knows by __wrapped__ what
 * it was made of. */
static bool leads_to(fp_walk *w, PyObject *module, PyObject *qualname, PyObject *fn) {
    enum { DECORATORS = 100 };
    PyObject *found =
        module && qualname ? ing_fp_resolve(w->fp, module, qualname) : NULL;
    bool same = false;
    for (int i = 0; found && !same && i < DECORATORS; i++) {
        same = found == fn ||
               (PyMethod_Check(found) && PyMethod_GET_FUNCTION(found) == fn);
        if (!same) Py_SETREF(found, ing_fp_attr(w->fp, found, w->fp->n.__wrapped__));
    }
    Py_XDECREF(found);
    return same;
}

/* A function of the standard library by its name, one of an installed distribution with its
 * version and text. */
static int by_name(fp_walk *w, PyObject *fn, PyObject *module, PyObject *qualname,
                   PyObject *origin, Py_ssize_t own) {
    if (is_stdlib(origin)) return put_name(w, module, qualname);
    PyObject *source = ing_fp_source(w, fn, NULL);
    PyObject *digest = !source                 ? NULL
                       : PyTuple_Check(source) ? PyTuple_GET_ITEM(source, 0)
                                               : Py_None;
    PyObject *kids = digest ? PyTuple_Pack(2, origin, digest) : NULL;
    Py_XDECREF(source);
    return push_named(w, fn, FP_NAMED_KIND, module, qualname, kids, own);
}

static int by_rule(fp_walk *w, PyObject *fn, fp_how how, PyObject *module,
                   PyObject *qualname, PyObject *origin, Py_ssize_t own) {
    bool named = leads_to(w, module, qualname, fn);
    bool library = origin != Py_None;
    if (named && library) {
        PyObject *home = ing_fp_origin(w, module);
        bool theirs = home && home != Py_None;
        Py_XDECREF(home);
        if (!home) return -1;
        if (theirs) return by_name(w, fn, module, qualname, origin, own);
    }
    /* What code holds under no name (a lambda in a table) or under another one (a
     * decorated function) counts by content. */
    bool held = ing_fp_in_code(w) ||
                (ing_fp_live(w) && qualname && !contains(w, qualname, "<"));
    if (!named && how != FP_AS_CODE && !held && !w->lenient)
        return refuse_function(w, fn, qualname);
    if (!named || how == FP_AS_CODE) module = qualname = NULL;
    if (library) return by_library(w, fn, how, module, qualname, origin, own);
    if (w->lenient) return by_code(w, fn, how, own);
    return by_source(w, fn, how, module, qualname, own);
}

int ing_fp_function(fp_walk *w, PyObject *fn, fp_how how, Py_ssize_t own) {
    PyObject *module = ing_fp_attr(w->fp, fn, w->fp->n.__module__);
    PyObject *qualname = ing_fp_attr(w->fp, fn, w->fp->n.__qualname__);
    PyObject *origin = ing_fp_code_origin(w, fn);
    int rc = origin ? by_rule(w, fn, how, module, qualname, origin, own) : -1;
    Py_XDECREF(origin);
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    return rc;
}

/* A kernel or func is its text and what it captures; never what was compiled from it. */
/* A derivative is told by its kernel. */
static int fp_companion(fp_walk *w, const ing_py_kernel *k, PyObject *obj,
                        Py_ssize_t own) {
    PyObject *kids = Py_BuildValue("(Os)", k->primal, ing_py_companion_name(k->mode));
    return kids ? ing_fp_push(w, obj, FP_AS_ITSELF, FP_METHOD_KIND, kids, 2, 0, own)
                : -1;
}

/* The options of qd.init that a kernel's result depends on, where they are not as without it. */
static int append_settings(fp_walk *w, PyObject *kids) {
    static const ing_setting all[] = {ING_SET_default_ip, ING_SET_default_fp,
                                      ING_SET_fast_math, ING_SET_random_seed};
    ing_settings plain;
    ing_settings_init(&plain);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        long long now = w->st->settings.at[all[i]];
        if (now == plain.at[all[i]]) continue;
        PyObject *name = PyUnicode_FromFormat("<%s>", ing_setting_name(all[i]));
        PyObject *value = name ? PyLong_FromLongLong(now) : NULL;
        int rc =
            value && PyList_Append(kids, name) == 0 ? PyList_Append(kids, value) : -1;
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (rc < 0) return -1;
    }
    return 0;
}

int ing_fp_kernel(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    const ing_py_kernel *k = (const ing_py_kernel *)obj;
    if (Py_TYPE(obj) == w->st->host->kernel_type && k->primal)
        return fp_companion(w, k, obj, own);
    ing_py_def *d = ing_py_def_of(w->st, obj);
    PyObject *source = d ? ing_fp_source(w, d->fn, d->text) : NULL;
    if (!source || !PyTuple_Check(source)) {
        Py_XDECREF(source);
        return ing_fp_refuse(w, obj, "there is no source text for this kernel", NULL);
    }
    PyObject *kids = function_kids(w, d->fn, NULL, NULL, PyTuple_GET_ITEM(source, 0));
    if (kids &&
        (ing_fp_reached(w, d->fn, source, kids) < 0 || append_settings(w, kids) < 0))
        Py_CLEAR(kids);
    Py_DECREF(source);
    int rc = push_function(w, obj, FP_AS_ITSELF, kids, own);
    if (rc == 0 && ing_fp_top(w)->obj == obj) {
        w->out[ing_fp_top(w)->start] = (uint8_t)(FP_FRAME + FP_KERNEL_KIND);
        ing_fp_top(w)->kind = FP_KERNEL_KIND;
    }
    return rc;
}

/* ---- code objects (lenient) -------------------------------------------------------------------------------------- */

int ing_fp_code(fp_walk *w, PyObject *code, Py_ssize_t own) {
    static const char *const parts[] =
        {
            "co_code",     "co_consts",          "co_names",
            "co_varnames", "co_freevars",        "co_cellvars",
            "co_argcount", "co_posonlyargcount", "co_kwonlyargcount",
            "co_flags",    "co_exceptiontable", /* 3.11: two functions may differ in nothing else */
    };
    enum { N = sizeof parts / sizeof *parts };
    if (!w->lenient)
        return ing_fp_refuse(w, code,
                             "a code object differs from one Python to the next",
                             "use variant=\"lenient\"");
    PyObject *kids = PyTuple_New(N);
    for (int i = 0; kids && i < N; i++) {
        PyObject *v = PyObject_GetAttrString(code, parts[i]);
        if (!v) {
            ing_fp_forgive(w->fp);
            v = Py_NewRef(Py_None);
        }
        PyTuple_SET_ITEM(kids, i, v);
    }
    if (!kids) return -1;
    return ing_fp_push(w, code, FP_AS_ITSELF, FP_CODE_KIND, kids, N, 0, own);
}
