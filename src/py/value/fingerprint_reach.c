/* What code reaches: where modules and files come from, and what the names in a function
 * lead to: globals, closures, builtins that were replaced, imports inside the function,
 * annotations, attributes. Each becomes a pair of name and value among the function's
 * children. What cannot be followed is an error under the strict rules, and a pair that says
 * so under the lenient ones. Called by fingerprint_code.c and fingerprint_class.c. Imports
 * modules of the user's own that a function imports, and no others. */
#include "py/value/fingerprint_int.h"
#include "py/see/see.h"

/* ---- where code comes from --------------------------------------------------------------- */

PyObject *ing_fp_helpers(fp_walk *w) {
    if (!w->fp->helpers) w->fp->helpers = PyImport_ImportModule("ingot.fingerprint");
    return w->fp->helpers;
}

PyObject *ing_fp_reach(ing_py_fp *fp) {
    if (!fp->reach) fp->reach = PyImport_ImportModule("ingot._reach");
    return fp->reach;
}

/* Kept by file: a module of the same name may be another one later. */
PyObject *ing_fp_file_origin(fp_walk *w, PyObject *file) {
    if (!PyUnicode_Check(file)) Py_RETURN_NONE;
    PyObject *known = PyDict_GetItemWithError(w->fp->origins, file);
    if (known || PyErr_Occurred()) return Py_XNewRef(known);
    PyObject *reach = ing_fp_reach(w->fp);
    PyObject *origin = reach ? PyObject_CallMethod(reach, "origin", "O", file) : NULL;
    if (origin && PyDict_SetItem(w->fp->origins, file, origin) < 0) Py_CLEAR(origin);
    return origin;
}

PyObject *ing_fp_code_origin(fp_walk *w, PyObject *fn) {
    PyObject *file = ((PyCodeObject *)PyFunction_GET_CODE(fn))->co_filename;
    return ing_fp_file_origin(w, file);
}

PyObject *ing_fp_origin(fp_walk *w, PyObject *module) {
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *mod = modules ? PyDict_GetItemWithError(modules, module) : NULL;
    if (!mod) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *file = ing_fp_attr(w->fp, mod, w->fp->n.__file__);
    if (!file || !PyUnicode_Check(file)) {
        PyObject *reach = ing_fp_reach(w->fp);
        Py_XSETREF(file,
                   reach ? PyObject_CallMethod(reach, "module_file", "O", mod) : NULL);
    }
    PyObject *origin = file ? ing_fp_file_origin(w, file) : NULL;
    Py_XDECREF(file);
    return origin;
}

/* ---- one name ------------------------------------------------------------------------------ */

typedef struct reach {
    fp_walk *w;
    PyObject *fn;      /* borrowed */
    PyObject *list;    /* borrowed: names and values are appended */
    PyObject *imports; /* borrowed tuple of (alias, module, name, level) */
    bool note;         /* the name is read by annotations alone */
} reach;

bool ing_fp_ends(PyObject *name, const char *tail) {
    const char *text = PyUnicode_IS_ASCII(name) ? PyUnicode_DATA(name) : "";
    size_t n = strlen(text), m = strlen(tail);
    return n > m && strcmp(text + n - m, tail) == 0;
}

static bool is_named(PyObject *name, const char *text) {
    return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

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
        if (!PyModule_Check(value) || is_named(PyList_GET_ITEM(parts, i), "__dict__"))
            break;
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

static bool is_heap_type(PyObject *v) {
    return (((PyTypeObject *)v)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
}

/* Data in the namespace of builtins that Python did not put there. */
static bool is_added_data(PyObject *name, PyObject *v) {
    bool data = PyLong_CheckExact(v) || PyFloat_CheckExact(v) ||
                PyTuple_CheckExact(v) || PyList_CheckExact(v) || PyDict_CheckExact(v) ||
                PyUnicode_CheckExact(v);
    return data && PyUnicode_READ_CHAR(name, 0) != '_';
}

/* What functions and closures hold is part of them: by content, where its name does not
 * lead to it. Steals v; NULL passes. */
static PyObject *as_part(fp_walk *w, PyObject *v) {
    PyObject *mark = v;
    if (v && PyFunction_Check(v))
        mark = ing_fp_as_new(w, v, FP_AS_CODE);
    else if (v && PyType_Check(v) && !is_named_class(w, v))
        mark = ing_fp_as_new(w, v, FP_AS_CLASS);
    if (mark != v) Py_DECREF(v);
    return PyErr_Occurred() ? (Py_XDECREF(mark), NULL) : mark;
}

/* A tuple of what an annotation's value leads to: classes and functions. Steals v. */
static PyObject *as_note(fp_walk *w, PyObject *v, PyObject *scope) {
    PyObject *module = ing_fp_reach(w->fp);
    PyObject *parts =
        module ? PyObject_CallMethod(module, "annotated", "OO", v, scope) : NULL;
    PyObject *out =
        parts && PyList_Check(parts) ? PyTuple_New(PyList_GET_SIZE(parts)) : NULL;
    for (Py_ssize_t i = 0; out && i < PyTuple_GET_SIZE(out); i++) {
        PyObject *part = PyList_GET_ITEM(parts, i);
        PyObject *mark = PyType_Check(part)       ? ing_fp_as_new(w, part, FP_AS_CLASS)
                         : PyFunction_Check(part) ? ing_fp_as_new(w, part, FP_AS_CODE)
                                                  : Py_NewRef(part);
        if (mark)
            PyTuple_SET_ITEM(out, i, mark);
        else
            Py_CLEAR(out);
    }
    Py_XDECREF(parts);
    Py_DECREF(v);
    return out;
}

static int append(const reach *r, PyObject *name, PyObject *value) {
    int rc =
        value && PyList_Append(r->list, name) == 0 && PyList_Append(r->list, value) == 0
            ? 0
            : -1;
    Py_XDECREF(value);
    return rc;
}

/* What an import gives, as that function of _reach.py says it; under the lenient rules None
 * where it fails. */
static PyObject *do_import(const reach *r, PyObject *import, const char *function) {
    PyObject *module = ing_fp_reach(r->w->fp), *all = PyImport_GetModuleDict();
    Py_ssize_t before = all ? PyDict_Size(all) : 0;
    PyObject *found = module ? PyObject_CallMethod(module, function, "OOOO",
                                                   PyTuple_GET_ITEM(import, 1),
                                                   PyTuple_GET_ITEM(import, 2),
                                                   PyTuple_GET_ITEM(import, 3),
                                                   PyFunction_GET_GLOBALS(r->fn))
                             : NULL;
    if (all && PyDict_Size(all) != before) r->w->imported = true;
    if (found || !r->w->lenient || !PyErr_ExceptionMatches(PyExc_Exception))
        return found;
    ing_fp_forgive(r->w->fp);
    Py_RETURN_NONE;
}

static int append_blind(const reach *r, PyObject *blind) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blind); i++) {
        PyObject *what = PyTuple_GET_ITEM(blind, i);
        if (!r->w->lenient) {
            PyErr_Format(PyExc_ValueError, "it uses %U", what);
            return -1;
        }
        if (ing_fp_not_followed(r->w, r->list, what) < 0) return -1;
    }
    return 0;
}

/* What a name leads to where `follow` ends: of the user's own, put into a library's module;
 * a docstring; or something that nobody can follow (`eval` under whatever name). */
static int append_beyond(const reach *r, PyObject *dotted, PyObject *root,
                         PyObject *found, bool data) {
    bool code = found && (PyModule_Check(found) || PyCFunction_Check(found) ||
                          PyFunction_Check(found) || PyType_Check(found) ||
                          PyDict_CheckExact(found));
    if (!code && !ing_fp_ends(dotted, ".__doc__")) return 0;
    PyObject *module = ing_fp_reach(r->w->fp);
    PyObject *more = module ? PyObject_CallMethod(module, "beyond", "OOO", root, dotted,
                                                  data ? Py_True : Py_False)
                            : NULL;
    if (!more || more == Py_None) {
        Py_XDECREF(more);
        return more ? 0 : -1;
    }
    PyObject *value = Py_NewRef(PyTuple_GET_ITEM(more, 1));
    bool blind = is_named(PyTuple_GET_ITEM(more, 0), "blind");
    Py_DECREF(more);
    if (!blind) return append(r, dotted, as_part(r->w, value));
    PyObject *all = PyTuple_Pack(1, value);
    int rc = all ? append_blind(r, all) : -1;
    Py_XDECREF(all);
    Py_DECREF(value);
    return rc;
}

/* What is not imported by looking at it (the standard library, installed packages) is a
 * text with its version; of the user's own, `parts` are followed. Steals found. */
static int append_imported(const reach *r, PyObject *dotted, PyObject *parts,
                           PyObject *found) {
    if (!found) return -1;
    PyObject *value = NULL;
    if (found == Py_None) {
        Py_DECREF(found);
        return ing_fp_not_followed(r->w, r->list, dotted);
    }
    if (is_named(PyTuple_GET_ITEM(found, 0), "own")) {
        value = follow(r->w, PyTuple_GET_ITEM(found, 1), parts);
        if (value && r->note)
            value = as_note(r->w, value, PyFunction_GET_GLOBALS(r->fn));
        else
            value = as_part(r->w, value ? value : Py_NewRef(r->w->fp->unset));
    } else if (is_named(PyTuple_GET_ITEM(found, 0), "text")) {
        value = ing_fp_text_digest(r->w, PyTuple_GET_ITEM(found, 1));
    } else {
        value = PyTuple_GetSlice(found, 0, 2);
    }
    /* What is in a library's module depends on who loaded it: data does not count. */
    PyObject *root = PyTuple_GET_SIZE(found) > 2 ? PyTuple_GET_ITEM(found, 2) : Py_None;
    int rc =
        root == Py_None || r->note ? 0 : append_beyond(r, dotted, root, root, false);
    Py_DECREF(found);
    if (rc < 0) Py_CLEAR(value);
    return append(r, dotted, value);
}

/* One name may be imported in several ways: each counts, and all are done before any is
 * looked at. 1: there was one; 0: none; -1 raised. */
static int append_imports(const reach *r, PyObject *dotted, PyObject *parts) {
    PyObject *root = PyList_GET_ITEM(parts, 0);
    int rc = 0;
    for (int turn = 0; rc >= 0 && turn < 2; turn++)
        for (Py_ssize_t i = 0;
             rc >= 0 && r->imports && i < PyTuple_GET_SIZE(r->imports); i++) {
            PyObject *x = PyTuple_GET_ITEM(r->imports, i);
            if (PyUnicode_Compare(PyTuple_GET_ITEM(x, 0), root) != 0) continue;
            PyObject *found = do_import(r, x, "imported");
            rc = !found ? -1
                 : turn ? append_imported(r, dotted, parts, Py_NewRef(found))
                        : 0;
            Py_XDECREF(found);
            if (rc == 0) rc = 1;
        }
    return rc;
}

/* A builtin is part of the language, unless somebody put it there: then *out is it. */
static int replaced_builtin(fp_walk *w, PyObject *fn, PyObject *name, bool *known,
                            PyObject **out) {
    PyObject *builtins = PyObject_GetAttrString(fn, "__builtins__");
    PyObject *v = builtins && PyDict_Check(builtins)
                      ? PyDict_GetItemWithError(builtins, name)
                      : NULL;
    *known = v != NULL;
    *out = NULL;
    PyObject *origin = NULL;
    if (v && PyFunction_Check(v)) {
        origin = ing_fp_code_origin(w, v);
    } else if (v && PyType_Check(v) && is_heap_type(v)) {
        PyObject *module = ing_fp_attr(w->fp, v, w->fp->n.__module__);
        origin = module ? ing_fp_origin(w, module) : NULL;
        Py_XDECREF(module);
    } else if (v && is_added_data(name, v)) {
        origin = Py_NewRef(Py_None);
    }
    if (origin == Py_None) *out = Py_NewRef(v);
    Py_XDECREF(origin);
    Py_XDECREF(builtins);
    return PyErr_Occurred() ? -1 : 0;
}

/* A name that leads nowhere. What the function sets itself is no matter; its own name is
 * not bound while it is being decorated. */
static int append_undefined(const reach *r, PyObject *dotted, PyObject *root) {
    PyObject *module = ing_fp_reach(r->w->fp);
    PyObject *needed = module ? PyObject_CallMethod(module, "needs_global", "OO",
                                                    PyFunction_GET_CODE(r->fn), root)
                              : NULL;
    bool yes = needed == Py_True;
    Py_XDECREF(needed);
    if (!needed) return -1;
    if (!yes) return 0;
    PyObject *own = ((PyFunctionObject *)r->fn)->func_name;
    if (PyUnicode_Compare(own, root) == 0)
        return append(r, dotted, ing_fp_as_new(r->w, r->fn, FP_AS_SELF));
    if (r->w->lenient) return ing_fp_not_followed(r->w, r->list, root);
    PyErr_Format(PyExc_NameError, "name %R is not defined", root);
    return -1;
}

/* A name that annotations say and nobody defines: type checkers may know it. */
static int append_checked(const reach *r, PyObject *dotted, PyObject *parts) {
    PyObject *module = ing_fp_reach(r->w->fp);
    PyObject *found = module ? PyObject_CallMethod(module, "checked_import", "OO",
                                                   PyFunction_GET_GLOBALS(r->fn),
                                                   PyList_GET_ITEM(parts, 0))
                             : NULL;
    if (found != Py_None) return append_imported(r, dotted, parts, found);
    Py_DECREF(found);
    return 0;
}

/* Was the function made inside another one, or without a name? */
static bool is_local(PyObject *v) {
    if (!PyFunction_Check(v)) return false;
    PyObject *name = ((PyFunctionObject *)v)->func_qualname;
    return PyUnicode_FindChar(name, '<', 0, PyUnicode_GET_LENGTH(name), 1) >= 0;
}

static int append_found(const reach *r, PyObject *dotted, PyObject *found,
                        bool is_cell) {
    if (found == r->fn)
        Py_SETREF(found, ing_fp_as_new(r->w, r->fn, FP_AS_SELF));
    else if (r->note &&
             !PyModule_Check(found)) /* a library's counts with its version */
        found = as_note(r->w, found, PyFunction_GET_GLOBALS(r->fn));
    else if (is_cell || is_local(found))
        found = as_part(r->w, found);
    return PyErr_Occurred() ? (Py_XDECREF(found), -1) : append(r, dotted, found);
}

static int append_subclasses(const reach *r, PyObject *dotted, PyObject *cls) {
    PyObject *module = ing_fp_reach(r->w->fp);
    PyObject *all = module ? PyObject_CallMethod(module, "subclasses", "O", cls) : NULL;
    int rc = all && PyList_Check(all) ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(all); i++)
        rc = append(r, dotted,
                    ing_fp_as_new(r->w, PyList_GET_ITEM(all, i), FP_AS_CLASS));
    Py_XDECREF(all);
    return rc;
}

static int append_parts(const reach *r, PyObject *dotted, PyObject *parts) {
    PyObject *root = PyList_GET_ITEM(parts, 0), *value, *found = NULL;
    int imports = append_imports(r, dotted, parts);
    if (imports) return imports < 0 ? -1 : 0;
    bool is_cell, known = true;
    value = cell_value(r->fn, root, &is_cell);
    if (PyErr_Occurred()) return -1;
    if (is_cell && !value) /* nothing in it yet */
        return r->note ? 0 : append(r, dotted, Py_NewRef(r->w->fp->unset));
    if (!is_cell) {
        value = PyDict_GetItemWithError(PyFunction_GET_GLOBALS(r->fn), root);
        Py_XINCREF(value);
        if (!value && PyErr_Occurred()) return -1;
        if (!value && replaced_builtin(r->w, r->fn, root, &known, &value) < 0)
            return -1;
        if (!value && known) return 0;
        if (!value)
            return r->note ? append_checked(r, dotted, parts)
                           : append_undefined(r, dotted, root);
    }
    found = is_cell ? Py_NewRef(value) : follow(r->w, value, parts);
    int beyond = r->note ? 0 : append_beyond(r, dotted, value, found, true);
    Py_DECREF(value);
    if (beyond < 0) {
        Py_XDECREF(found);
        return -1;
    }
    if (!found) return r->note ? 0 : append(r, dotted, Py_NewRef(r->w->fp->unset));
    if (PyType_Check(found) &&
        is_named(PyList_GET_ITEM(parts, PyList_GET_SIZE(parts) - 1),
                 "__subclasses__") &&
        append_subclasses(r, dotted, found) < 0) {
        Py_DECREF(found);
        return -1;
    }
    return append_found(r, dotted, found, is_cell);
}

static int append_all(reach *r, PyObject *names) {
    PyObject *dot = PyUnicode_FromString(".");
    int rc = dot ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *parts = PyUnicode_Split(PyTuple_GET_ITEM(names, i), dot, -1);
        rc = parts ? append_parts(r, PyTuple_GET_ITEM(names, i), parts) : -1;
        Py_XDECREF(parts);
    }
    Py_XDECREF(dot);
    return rc;
}

/* ---- all that a function reaches ------------------------------------------------------------ */

int ing_fp_not_followed(fp_walk *w, PyObject *list, PyObject *what) {
    PyObject *name = PyUnicode_FromFormat("<not followed: %U>", what);
    int rc =
        name && PyList_Append(list, name) == 0 && PyList_Append(list, w->fp->unset) == 0
            ? 0
            : -1;
    Py_XDECREF(name);
    return rc;
}

/* Does one of the dotted names begin with this one? */
static bool is_read(PyObject *names, PyObject *alias) {
    Py_ssize_t n = PyUnicode_GET_LENGTH(alias);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (PyUnicode_Tailmatch(name, alias, 0, PY_SSIZE_T_MAX, -1) == 1 &&
            (PyUnicode_GET_LENGTH(name) == n || PyUnicode_READ_CHAR(name, n) == '.'))
            return true;
    }
    return false;
}

/* The modules that are imported under no name of their own, __import__("m"), and those whose
 * name nothing reads: they are imported for what that does, and count by their text. */
static int append_unbound(const reach *r, PyObject *names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(r->imports); i++) {
        PyObject *import = PyTuple_GET_ITEM(r->imports, i);
        PyObject *alias = PyTuple_GET_ITEM(import, 0);
        bool named = PyUnicode_IsIdentifier(alias);
        int rc = named && is_read(names, alias) ? 0 : 1;
        PyObject *parts = rc == 1 ? PyList_New(1) : NULL;
        if (parts) PyList_SET_ITEM(parts, 0, Py_NewRef(alias));
        if (rc == 1)
            rc = parts ? append_imported(
                             r, alias, parts,
                             do_import(r, import, named ? "loaded" : "imported"))
                       : -1;
        Py_XDECREF(parts);
        if (rc < 0) return -1;
    }
    return 0;
}

/* super() reads the class through a cell that no text names. */
static int append_class_cell(const reach *r) {
    bool is_cell;
    PyObject *name = PyUnicode_FromString("__class__");
    PyObject *cls = name ? cell_value(r->fn, name, &is_cell) : NULL;
    int rc = PyErr_Occurred() ? -1 : 0;
    if (cls) rc = append(r, name, as_part(r->w, cls));
    Py_XDECREF(name);
    return rc;
}

int ing_fp_reached(fp_walk *w, PyObject *fn, PyObject *source, PyObject *list) {
    reach r = {w, fn, list, PyTuple_GET_ITEM(source, 3), false};
    int rc = append_blind(&r, PyTuple_GET_ITEM(source, 4));
    if (rc == 0) rc = append_all(&r, PyTuple_GET_ITEM(source, 1));
    if (rc == 0) rc = append_unbound(&r, PyTuple_GET_ITEM(source, 1));
    if (rc == 0) rc = append_class_cell(&r);
    r.note = true;
    if (rc == 0) rc = append_all(&r, PyTuple_GET_ITEM(source, 2));
    return rc;
}

/* All cells of a function that a library made. */
int ing_fp_cells(fp_walk *w, PyObject *fn, PyObject *list) {
    reach r = {w, fn, list, NULL, false};
    PyObject *code = PyFunction_GET_CODE(fn), *closure = PyFunction_GET_CLOSURE(fn);
    PyObject *names = PyObject_GetAttrString(code, "co_freevars");
    int rc = names ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && closure && i < PyTuple_GET_SIZE(names) &&
                           i < PyTuple_GET_SIZE(closure);
         i++) {
        PyObject *v = PyCell_Get(PyTuple_GET_ITEM(closure, i));
        if (v == fn) Py_SETREF(v, ing_fp_as_new(w, fn, FP_AS_SELF));
        v = v ? as_part(w, v) : Py_NewRef(w->fp->unset);
        rc = append(&r, PyTuple_GET_ITEM(names, i), v);
    }
    Py_XDECREF(names);
    return rc;
}

static bool is_dispatch_part(PyObject *name) {
    static const char *const all[] = {"registry", "dispatch", "register",
                                      "_clear_cache"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (PyUnicode_CompareWithASCIIString(name, all[i]) == 0) return true;
    return false;
}

/* A name that the function was given later (functools.wraps does it). */
static int append_name(const reach *r) {
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(r->fn);
    PyObject *name = ((PyFunctionObject *)r->fn)->func_name;
    if (PyUnicode_Compare(name, code->co_name) == 0) return 0;
    PyObject *key = PyUnicode_FromString(".__name__");
    int rc = key ? append(r, key, Py_NewRef(name)) : -1;
    Py_XDECREF(key);
    return rc;
}

/* Attributes of the function, under names that begin with a dot: no other name does. */
int ing_fp_attributes(fp_walk *w, PyObject *fn, bool dispatch, PyObject *list) {
    reach r = {w, fn, list, NULL, false};
    PyObject *dict = ((PyFunctionObject *)fn)->func_dict;
    PyObject *copy = dict ? PyDict_Copy(dict) : NULL, *name, *v;
    Py_ssize_t pos = 0;
    int rc = dict && !copy ? -1 : append_name(&r);
    while (rc == 0 && copy && PyDict_Next(copy, &pos, &name, &v)) {
        if (!PyUnicode_Check(name) || (dispatch && is_dispatch_part(name))) continue;
        if (is_named(name, "__ingot_func__"))
            continue; /* made of its text, by kernels */
        PyObject *key = PyUnicode_FromFormat(".%U", name);
        PyObject *part =
            v == fn ? ing_fp_as_new(w, fn, FP_AS_SELF) : as_part(w, Py_NewRef(v));
        rc = key ? append(&r, key, part) : (Py_XDECREF(part), -1);
        Py_XDECREF(key);
    }
    Py_XDECREF(copy);
    return rc;
}

/* Defaults, a tuple or a dict or NULL, with functions as parts: new reference. */
PyObject *ing_fp_defaults(fp_walk *w, PyObject *defaults) {
    if (!defaults) Py_RETURN_NONE;
    bool tuple = PyTuple_Check(defaults);
    PyObject *keys = tuple ? NULL : PyDict_Keys(defaults);
    PyObject *all = tuple ? PySequence_List(defaults) : PyDict_Values(defaults);
    for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all); i++) {
        PyObject *part = as_part(w, Py_NewRef(PyList_GET_ITEM(all, i)));
        if (!part || PyList_SetItem(all, i, part) < 0) Py_CLEAR(all);
    }
    PyObject *out = NULL;
    if (all && tuple) out = PyList_AsTuple(all);
    if (all && keys && (out = PyDict_New()) != NULL)
        for (Py_ssize_t i = 0; out && i < PyList_GET_SIZE(keys); i++)
            if (PyDict_SetItem(out, PyList_GET_ITEM(keys, i), PyList_GET_ITEM(all, i)) <
                0)
                Py_CLEAR(out);
    Py_XDECREF(keys);
    Py_XDECREF(all);
    return out;
}
