/* Functions, modules and other things that count by an importable name. A name is always
 * verified to lead to the very object. A user's function adds its text without positions
 * and, through its children, what it names outside itself; a function of an installed
 * distribution adds that distribution's version; one of the standard library its name
 * only. Under the lenient rules functions count by their code objects instead. */
#include "py/fingerprint_int.h"
#include "py/kernel.h"

/* ---- where modules come from ------------------------------------------------------------------- */

PyObject *ing_fp_helpers(fp_walk *w) {
    if (!w->fp->helpers) w->fp->helpers = PyImport_ImportModule("ingot.fingerprint");
    return w->fp->helpers;
}

PyObject *ing_fp_origin(fp_walk *w, PyObject *module) {
    PyObject *known = PyDict_GetItemWithError(w->fp->origins, module);
    if (known || PyErr_Occurred()) return Py_XNewRef(known);
    PyObject *helpers = ing_fp_helpers(w);
    PyObject *origin =
        helpers ? PyObject_CallMethod(helpers, "_origin", "O", module) : NULL;
    if (origin && PyDict_SetItem(w->fp->origins, module, origin) < 0) Py_CLEAR(origin);
    return origin;
}

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

/* What a decorator such as lru_cache wraps is part of what it is; so is the class of what
 * code works on. */
static PyObject *wrapped_kids(fp_walk *w, PyObject *obj, PyObject *origin) {
    PyObject *inner =
        origin == Py_None ? ing_fp_attr(w->fp, obj, w->fp->n.__wrapped__) : NULL;
    PyObject *first = inner && PyFunction_Check(inner)
                          ? ing_fp_as_new(w, inner, FP_AS_CODE)
                          : Py_NewRef(origin);
    PyObject *cls = NULL, *kids = NULL;
    fp_plan *p = ing_fp_plan_get(w, Py_TYPE(obj));
    bool live = ing_fp_live(w) || (p && p->calls);
    if (p && live) cls = ing_fp_as_new(w, (PyObject *)Py_TYPE(obj), FP_AS_CLASS);
    if (first && p && !live) kids = PyTuple_Pack(1, first);
    if (first && cls) kids = PyTuple_Pack(2, first, cls);
    Py_XDECREF(inner);
    Py_XDECREF(first);
    Py_XDECREF(cls);
    return kids;
}

int ing_fp_named(fp_walk *w, PyObject *obj, PyObject *module, PyObject *qualname,
                 Py_ssize_t own) {
    PyObject *found = ing_fp_resolve(w->fp, module, qualname);
    bool same = found == obj;
    Py_XDECREF(found);
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

int ing_fp_module(fp_walk *w, PyObject *mod, Py_ssize_t own) {
    PyObject *name = PyModule_GetNameObject(mod);
    if (!name) return ing_fp_refuse(w, mod, "a module without a name", NULL);
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *origin = NULL, *kids = NULL;
    int rc = -1;
    PyObject *known = modules ? PyDict_GetItemWithError(modules, name) : NULL;
    if (known != mod) { /* also after an error */
        rc = ing_fp_refuse(w, mod, "the module is not the one that its name imports",
                           NULL);
    } else if ((origin = ing_fp_origin(w, name)) != NULL) {
        PyObject *empty = PyUnicode_FromString("");
        if (empty && is_stdlib(origin)) {
            rc = put_name(w, name, empty);
        } else if (empty) {
            PyObject *file = origin == Py_None ? PyModule_GetFilenameObject(mod) : NULL;
            ing_fp_forgive(w->fp);
            PyObject *text = file ? ing_fp_module_source(w, file) : Py_NewRef(Py_None);
            kids = text ? PyTuple_Pack(2, origin, text) : NULL;
            Py_XDECREF(text);
            Py_XDECREF(file);
            rc = push_named(w, mod, FP_MODULE_KIND, name, empty, kids, own);
        }
        Py_XDECREF(empty);
    }
    Py_XDECREF(origin);
    Py_DECREF(name);
    return rc;
}

/* ---- what a function names outside itself ------------------------------------------------------------- */

static PyObject *cell_value(PyObject *fn, PyObject *name, bool *is_cell) {
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(fn);
    PyObject *closure = PyFunction_GET_CLOSURE(fn);
    PyObject *free_names = PyObject_GetAttrString((PyObject *)code, "co_freevars");
    PyObject *value = NULL;
    *is_cell = false;
    for (Py_ssize_t i = 0; free_names && closure && i < PyTuple_GET_SIZE(free_names) &&
                           i < PyTuple_GET_SIZE(closure);
         i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(free_names, i), name) != 0) continue;
        *is_cell = true;
        value = PyCell_Get(PyTuple_GET_ITEM(closure, i));
        break;
    }
    Py_XDECREF(free_names);
    return value;
}

/* Steps from a user's own module to what is named in it: new reference or NULL (absent).
 * Other modules are values: they count by name and version. */
static PyObject *follow(fp_walk *w, PyObject *value, PyObject *parts) {
    Py_INCREF(value);
    for (Py_ssize_t i = 1; value && i < PyList_GET_SIZE(parts); i++) {
        if (!PyModule_Check(value)) break;
        PyObject *name = PyModule_GetNameObject(value);
        PyObject *origin = name ? ing_fp_origin(w, name) : NULL;
        Py_XDECREF(name);
        if (!origin) ing_fp_forgive(w->fp);
        bool own = origin == Py_None;
        Py_XDECREF(origin);
        if (!own) break;
        PyObject *next = ing_fp_attr(w->fp, value, PyList_GET_ITEM(parts, i));
        Py_SETREF(value, next);
    }
    return value;
}

static bool is_named_class(fp_walk *w, PyObject *cls) {
    fp_plan *p = ing_fp_plan_get(w, (PyTypeObject *)cls);
    return p && ing_fp_plan_verify(w, p) == 0 && p->named;
}

/* Appends (dotted name, what it leads to). What a closure holds is part of the function,
 * so functions and classes in it count by content. Builtins are part of the language: skipped. */
static int append_name(fp_walk *w, PyObject *fn, PyObject *dotted, PyObject *list) {
    PyObject *dot = PyUnicode_FromString(".");
    PyObject *parts = dot ? PyUnicode_Split(dotted, dot, -1) : NULL;
    Py_XDECREF(dot);
    if (!parts) return -1;
    PyObject *root = PyList_GET_ITEM(parts, 0), *value, *found = NULL;
    bool is_cell;
    int rc = 0;
    if (PyUnicode_CompareWithASCIIString(root, "__class__") == 0) goto done;
    value = cell_value(fn, root, &is_cell);
    if (!is_cell) {
        value = PyDict_GetItemWithError(PyFunction_GET_GLOBALS(fn), root);
        Py_XINCREF(value);
        if (!value) { /* a builtin, or undefined: the text says which */
            rc = PyErr_Occurred() ? -1 : 0;
            goto done;
        }
    }
    if (value && !is_cell)
        found = follow(w, value, parts);
    else
        found = Py_XNewRef(value);
    Py_XDECREF(value);
    if (found == fn)
        Py_SETREF(found, ing_fp_as_new(w, fn, FP_AS_SELF));
    else if (found && is_cell && PyFunction_Check(found))
        Py_SETREF(found, ing_fp_as_new(w, found, FP_AS_CODE));
    else if (found && is_cell && PyType_Check(found) && !is_named_class(w, found))
        Py_SETREF(found, ing_fp_as_new(w, found, FP_AS_CLASS));
    if (PyErr_Occurred() || PyList_Append(list, dotted) < 0 ||
        PyList_Append(list, found ? found : w->fp->unset) < 0)
        rc = -1;
    Py_XDECREF(found);
done:
    Py_DECREF(parts);
    return rc;
}

static int append_names(fp_walk *w, PyObject *fn, PyObject *names, PyObject *list) {
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(names); i++)
        rc = append_name(w, fn, PyTuple_GET_ITEM(names, i), list);
    return rc;
}

/* ---- functions ---------------------------------------------------------------------------------------------- */

static int add(PyObject *list, PyObject *v) {
    return PyList_Append(list, v ? v : Py_None);
}

/* module and name (None when the function counts by content alone), the given item, then
 * what the signature evaluated to. */
static PyObject *function_kids(PyObject *fn, PyObject *module, PyObject *qualname,
                               PyObject *item) {
    PyObject *kids = PyList_New(0);
    if (kids && (add(kids, module) < 0 || add(kids, qualname) < 0 ||
                 add(kids, item) < 0 || add(kids, PyFunction_GetDefaults(fn)) < 0 ||
                 add(kids, PyFunction_GetKwDefaults(fn)) < 0))
        Py_CLEAR(kids);
    return kids;
}

static int push_function(fp_walk *w, PyObject *fn, fp_how how, PyObject *kids,
                         Py_ssize_t own) {
    if (!kids) return -1;
    uint32_t groups = (uint32_t)(PyList_GET_SIZE(kids) - 5) / 2;
    if (ing_fp_push(w, fn, how, FP_FUNC_KIND, kids, 5, groups, own) < 0) return -1;
    ing_fp_top(w)->pairs = 1;
    return 0;
}

static int by_source(fp_walk *w, PyObject *fn, fp_how how, PyObject *module,
                     PyObject *qualname, PyObject *text, Py_ssize_t own) {
    PyObject *source = ing_fp_source(w, fn, text);
    if (!source) return ing_fp_refuse(w, fn, "its source cannot be read", NULL);
    if (source == Py_None) {
        Py_DECREF(source);
        return ing_fp_refuse(w, fn, "there is no source text for this function",
                             "ship the .py file, or register the text in linecache");
    }
    bool content = how == FP_AS_CODE;
    PyObject *kids =
        function_kids(fn, content ? NULL : module, content ? NULL : qualname,
                      PyTuple_GET_ITEM(source, 0));
    if (kids && append_names(w, fn, PyTuple_GET_ITEM(source, 1), kids) < 0)
        Py_CLEAR(kids);
    Py_DECREF(source);
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

static int by_code(fp_walk *w, PyObject *fn, fp_how how, Py_ssize_t own) {
    PyObject *code = PyFunction_GET_CODE(fn);
    PyObject *set = PySet_New(NULL);
    PyObject *names =
        set && ing_fp_code_names(code, set) == 0 ? PySequence_Tuple(set) : NULL;
    PyObject *kids = names ? function_kids(fn, NULL, NULL, code) : NULL;
    if (kids && append_names(w, fn, names, kids) < 0) Py_CLEAR(kids);
    Py_XDECREF(set);
    Py_XDECREF(names);
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

int ing_fp_function(fp_walk *w, PyObject *fn, fp_how how, Py_ssize_t own) {
    PyObject *module = ing_fp_attr(w->fp, fn, w->fp->n.__module__);
    PyObject *qualname = ing_fp_attr(w->fp, fn, w->fp->n.__qualname__);
    bool named = leads_to(w, module, qualname, fn);
    PyObject *origin = module && PyUnicode_Check(module) ? ing_fp_origin(w, module)
                                                         : Py_NewRef(Py_None);
    int rc = -1;
    if (!origin) {
    } else if (named && is_stdlib(origin)) {
        rc = put_name(w, module, qualname);
    } else if (named && origin != Py_None) { /* installed: its version, and its text */
        PyObject *source = ing_fp_source(w, fn, NULL);
        PyObject *digest = !source             ? NULL
                           : source == Py_None ? Py_None
                                               : PyTuple_GET_ITEM(source, 0);
        PyObject *kids = digest ? PyTuple_Pack(2, origin, digest) : NULL;
        Py_XDECREF(source);
        rc = push_named(w, fn, FP_NAMED_KIND, module, qualname, kids, own);
    } else if (w->lenient) {
        rc = by_code(w, fn, how, own);
    } else if (named || how == FP_AS_CODE) {
        rc = by_source(w, fn, how, module, qualname, NULL, own);
    } else {
        rc = refuse_function(w, fn, qualname);
    }
    Py_XDECREF(origin);
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    return rc;
}

/* A kernel or func is its text and what it captures; never what was compiled from it. */
int ing_fp_kernel(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    ing_py_def *d = ing_py_def_of(w->st, obj);
    PyObject *source = d ? ing_fp_source(w, d->fn, d->text) : NULL;
    if (!source || source == Py_None) {
        Py_XDECREF(source);
        return ing_fp_refuse(w, obj, "there is no source text for this kernel", NULL);
    }
    PyObject *kids = function_kids(d->fn, NULL, NULL, PyTuple_GET_ITEM(source, 0));
    if (kids && append_names(w, d->fn, PyTuple_GET_ITEM(source, 1), kids) < 0)
        Py_CLEAR(kids);
    Py_DECREF(source);
    if (!kids) return -1;
    uint32_t groups = (uint32_t)(PyList_GET_SIZE(kids) - 5) / 2;
    if (ing_fp_push(w, obj, FP_AS_ITSELF, FP_KERNEL_KIND, kids, 5, groups, own) < 0)
        return -1;
    ing_fp_top(w)->pairs = 1;
    return 0;
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
