/* Types of fields that are text: which dictionaries say what the text means now. A text is told
 * apart from all others by names that lead through modules, with nothing between them that could
 * read something else; what a text of any other form means is asked at each launch. Called by
 * the making and the checking of guards with the GIL; runs none of the user's code. */
#include "py/call/guard.h"

#include <string.h>

#define LETTERS                  \
    "abcdefghijklmnopqrstuvwxyz" \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
static const char letters[] = LETTERS, letters_and_dots[] = LETTERS ".";

typedef struct scan {
    PyObject *scope;  /* where names are looked up: a dictionary */
    PyObject *places; /* list: dictionaries, and modules that names lead through */
    bool alone;       /* the text is one name, or names with dots between them */
    bool simple;      /* nothing but the places is read */
} scan;

/* The module that a class says it is of; "" if it says nothing. Borrowed; NULL = raised. */
static const char *home_of(PyTypeObject *type) {
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return type->tp_name;
    PyObject *name, *key = PyUnicode_InternFromString("__module__");
    int rc = key ? PyDict_GetItemRef(type->tp_dict, key, &name) : -1;
    Py_XDECREF(key);
    if (rc < 0) return NULL;
    const char *text = rc && PyUnicode_Check(name) ? ing_py_utf8(name) : "";
    if (rc) Py_DECREF(name); /* the class has it */
    return text;
}

static int is_of_ours_or_typing(PyTypeObject *type) {
    const char *home = home_of(type);
    if (!home) return -1;
    return ing_py_is_our_module(home) || ing_py_is_in_module(home, "typing") ||
           strncmp(home, "types.", strlen("types.")) == 0;
}

/* Is nothing of the user's read where this is an operand; `used`: called or subscribed? Python's
 * own classes, those of typing, and the package's. 1, 0 or -1 = raised. */
static int is_inert(PyObject *v, bool used) {
    if (v == Py_None || PyBool_Check(v) || PyLong_CheckExact(v)) return !used;
    if (PyFunction_Check(v)) {
        PyObject *home = ((PyFunctionObject *)v)->func_module;
        return home && PyUnicode_Check(home) && ing_py_is_our_module(ing_py_utf8(home));
    }
    if (!PyType_Check(v)) return is_of_ours_or_typing(Py_TYPE(v));
    PyTypeObject *type = (PyTypeObject *)v;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return 1;
    if (Py_TYPE(v) == &PyType_Type && !used) return 1;
    return is_of_ours_or_typing(type);
}

/* The builtins of a scope, as a new reference. */
static PyObject *builtins_of(PyObject *scope) {
    PyObject *found, *key = PyUnicode_InternFromString("__builtins__");
    int rc = key ? PyDict_GetItemRef(scope, key, &found) : -1;
    Py_XDECREF(key);
    if (rc < 0) return NULL;
    if (rc == 0) return Py_NewRef(PyEval_GetBuiltins());
    if (PyModule_Check(found)) Py_SETREF(found, Py_NewRef(PyModule_GetDict(found)));
    return found;
}

/* A name of the scope, or of its builtins, as a new reference in *out; NULL: there is none. */
static int first_name(const scan *c, PyObject *name, PyObject **out) {
    int rc = PyDict_GetItemRef(c->scope, name, out);
    if (rc != 0) return rc;
    PyObject *builtins = builtins_of(c->scope);
    rc = builtins ? PyList_Append(c->places, builtins) : -1;
    if (rc == 0 && PyDict_Check(builtins)) rc = PyDict_GetItemRef(builtins, name, out);
    Py_XDECREF(builtins);
    return rc;
}

/* Names with dots between them, from *s on; *out: what they stand for, as a new reference, NULL:
 * nothing. -1 = raised. */
static int add_names(scan *c, const char **s, PyObject **out) {
    PyObject *dict = NULL; /* of the module that the names have led to: *out holds it */
    for (;;) {
        size_t n = strspn(*s, letters);
        PyObject *v = NULL, *name = PyUnicode_FromStringAndSize(*s, (Py_ssize_t)n);
        int rc = !name  ? -1
                 : dict ? PyDict_GetItemRef(dict, name, &v)
                        : first_name(c, name, &v);
        Py_XDECREF(name);
        Py_XSETREF(*out, v);
        if (rc < 0) return -1;
        if (dict && !v) c->simple = false; /* its __getattr__ may have it */
        *s += n;
        if (!v) *s += strspn(*s, letters_and_dots); /* NameError */
        if (**s != '.' || !v) return 0;
        if (!PyModule_CheckExact(v) || strspn(*s + 1, letters) == 0) {
            c->simple = false;
            return 0;
        }
        if (PyList_Append(c->places, v) < 0) return -1;
        dict = PyModule_GetDict(v);
        ++*s;
    }
}

/* They make names of their own, which hide those of the scope. */
static bool binds_names(const char *s, size_t n) {
    return (n == 3 && strncmp(s, "for", n) == 0) ||
           (n == 6 && strncmp(s, "lambda", n) == 0);
}

static int add_operand(scan *c, const char **s) {
    PyObject *v = NULL;
    const char *from = *s;
    int rc = add_names(c, s, &v);
    if (binds_names(from, (size_t)(*s - from))) c->simple = false;
    char next = (*s)[strspn(*s, " ")];
    int inert = rc == 0 && v && !c->alone ? is_inert(v, next == '(' || next == '[') : 1;
    Py_XDECREF(v);
    if (inert == 0) c->simple = false;
    return rc < 0 || inert < 0 ? -1 : 0;
}

static int scan_text(scan *c, const char *s) {
    c->alone = s[strspn(s, letters_and_dots)] == 0;
    while (*s && c->simple) {
        if (*s >= '0' && *s <= '9') {
            s += strspn(s, letters);
        } else if (strchr(letters, *s)) {
            if (add_operand(c, &s) < 0) return -1;
        } else {
            c->simple = strchr(" ,|=()[]", *s) != NULL;
            s++;
        }
    }
    return 0;
}

/* Where what a text means is read: 1 and a new list, 0 if it cannot be said, -1 = raised. */
static int places_of(PyObject *cls, PyObject *declared, PyObject **out) {
    scan c = {.simple = true};
    *out = NULL;
    int rc = ing_py_field_scope(cls, &c.scope);
    if (rc != 1) return rc;
    PyObject *text = ing_py_to_utf8(declared);
    c.places = text ? PyList_New(0) : NULL;
    bool ok = c.places && PyList_Append(c.places, c.scope) == 0 &&
              scan_text(&c, PyBytes_AS_STRING(text)) == 0;
    /* where the class's module is found */
    ok = ok && PyList_Append(c.places, PyImport_GetModuleDict()) == 0;
    Py_XDECREF(c.scope);
    Py_XDECREF(text);
    if (!ok || !c.simple) Py_CLEAR(c.places);
    *out = c.places;
    return ok ? c.simple : -1;
}

static PyObject *dict_at(PyObject *places, Py_ssize_t i) {
    PyObject *place = PyList_GET_ITEM(places, i);
    return PyModule_Check(place) ? PyModule_GetDict(place) : place;
}

int ing_py_field_is_watched(const ing_py_watch *w, PyObject *cls, PyObject *declared) {
    PyObject *places;
    int watched = places_of(cls, declared, &places);
    for (Py_ssize_t i = 0; watched == 1 && i < PyList_GET_SIZE(places); i++)
        watched = ing_py_watch_has(w, dict_at(places, i));
    Py_XDECREF(places);
    return watched;
}

ing_status ing_py_watch_field(ing_py_host *h, ing_py_watch *w, PyObject *cls,
                              PyObject *declared, bool *watched, ing_err *e) {
    PyObject *places;
    int known = places_of(cls, declared, &places);
    ing_status s = known < 0 ? ING_PYTHON : ING_OK;
    for (Py_ssize_t i = 0; s == ING_OK && known && i < PyList_GET_SIZE(places); i++) {
        PyObject *place = PyList_GET_ITEM(places, i);
        s = ing_py_watch_dict(h, w, dict_at(places, i), e);
        /* Another class may have the name in its own way. */
        if (s == ING_OK && PyModule_Check(place))
            s = ing_py_watch_pin(w, place, (PyObject *const *)&place->ob_type, e);
    }
    *watched = known == 1;
    Py_XDECREF(places);
    return s;
}
