/* Classes. As the class of an instance, an importable one counts by its name and a local
 * one by its content. As a value, a class counts by its verified name and, when it is the
 * user's own, by what it declares: fields, constants, methods (by their text) and bases. */
#include "py/fingerprint_int.h"

static bool is_enum(fp_walk *w, PyTypeObject *type) {
    PyObject *base = ing_fp_loaded_attr(w->fp, "enum", "Enum");
    bool yes =
        base && PyType_Check(base) && PyType_IsSubtype(type, (PyTypeObject *)base);
    Py_XDECREF(base);
    return yes;
}

static int append_pair(PyObject *list, PyObject *name, PyObject *value) {
    return PyList_Append(list, name) < 0 || PyList_Append(list, value) < 0 ? -1 : 0;
}

/* ---- methods ---------------------------------------------------------------------------------- */

/* Was the function written in the user's own code? attrs gives the methods that it makes
 * a text, under a name of its own. */
static int is_users(fp_walk *w, PyObject *fn) {
    PyObject *file = ((PyCodeObject *)PyFunction_GET_CODE(fn))->co_filename;
    const char *path = PyUnicode_AsUTF8(file);
    if (!path) ing_fp_forgive(w->fp);
    if (path && strncmp(path, "<attrs generated", 16) == 0) return 0;
    PyObject *name =
        PyDict_GetItemWithError(PyFunction_GET_GLOBALS(fn), w->fp->n.__name__);
    if (!name || !PyUnicode_Check(name)) return PyErr_Occurred() ? -1 : 1;
    PyObject *origin = ing_fp_origin(w, name);
    int users = !origin ? -1 : origin == Py_None;
    Py_XDECREF(origin);
    return users;
}

/* Methods that dataclasses and the like generate have no text, or text in the standard
 * library: the fields say it all. */
static int append_function(fp_walk *w, PyObject *list, PyObject *name, PyObject *fn) {
    int users = is_users(w, fn);
    if (users <= 0) return users;
    if (!w->lenient) {
        PyObject *source = ing_fp_source(w, fn, NULL);
        bool none = source == Py_None;
        Py_XDECREF(source);
        if (!source) return -1;
        if (none) return 0;
    }
    PyObject *marker = ing_fp_as_new(w, fn, FP_AS_CODE);
    int rc = marker ? append_pair(list, name, marker) : -1;
    Py_XDECREF(marker);
    return rc;
}

static bool is_method_of_class(PyObject *v) {
    return Py_IS_TYPE(v, &PyClassMethod_Type) || Py_IS_TYPE(v, &PyStaticMethod_Type);
}

/* The functions inside property, staticmethod, classmethod, cached_property. 1: it was one
 * of those, 0: a descriptor of another kind, which is a value. */
static int append_wrapped(fp_walk *w, PyObject *list, PyObject *name, PyObject *v) {
    PyObject *const attrs[] = {w->fp->n.func_of, w->fp->n.func_, w->fp->n.fget_,
                               w->fp->n.fset_, w->fp->n.fdel_};
    int found = 0;
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        PyObject *fn = ing_fp_attr(w->fp, v, attrs[i]);
        int rc = 0;
        if (fn && PyFunction_Check(fn)) {
            PyObject *label = PyUnicode_FromFormat("%U.%U", name, attrs[i]);
            rc = label ? append_function(w, list, label, fn) : -1;
            Py_XDECREF(label);
            found = 1;
        } else if (fn && i == 0 && is_method_of_class(v)) {
            rc = append_pair(list, name, fn); /* another decorator's object */
            found = 1;
        }
        Py_XDECREF(fn);
        if (rc < 0) return -1;
    }
    return found;
}

/* What C code and __slots__ put there to reach the instance: the bases and fields say it. */
static bool is_storage(PyObject *v) {
    PyTypeObject *t = Py_TYPE(v);
    return t == &PyMemberDescr_Type || t == &PyGetSetDescr_Type ||
           t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type ||
           t == &PyClassMethodDescr_Type;
}

static bool is_descriptor(PyObject *v) {
    PyTypeObject *t = Py_TYPE(v);
    return t->tp_descr_get || t->tp_descr_set;
}

static bool is_dunder(PyObject *name) {
    Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    return n > 4 && PyUnicode_READ_CHAR(name, 0) == '_' &&
           PyUnicode_READ_CHAR(name, 1) == '_' &&
           PyUnicode_READ_CHAR(name, n - 1) == '_' &&
           PyUnicode_READ_CHAR(name, n - 2) == '_';
}

/* One entry of the class's namespace. Python's own bookkeeping is left out. */
static int append_entry(fp_walk *w, PyObject *list, PyObject *name, PyObject *v,
                        bool as_value) {
    if (!PyUnicode_Check(name)) return 0;
    if (PyFunction_Check(v)) return append_function(w, list, name, v);
    if (is_dunder(name) || PyUnicode_CompareWithASCIIString(name, "_abc_impl") == 0)
        return 0;
    if (PyType_Check(v)) {
        PyObject *marker = ing_fp_as_new(w, v, as_value ? FP_AS_CLASS : FP_AS_TYPE);
        int rc = marker ? append_pair(list, name, marker) : -1;
        Py_XDECREF(marker);
        return rc;
    }
    if (is_storage(v)) return 0;
    int rc = is_descriptor(v) ? append_wrapped(w, list, name, v) : 0;
    return rc ? (rc < 0 ? -1 : 0) : append_pair(list, name, v);
}

/* ---- content ------------------------------------------------------------------------------------- */

static PyObject *namespace_of(fp_walk *w, PyTypeObject *type) {
    PyObject *proxy = PyObject_GetAttr((PyObject *)type, w->fp->n.__dict__);
    PyObject *dict = proxy ? PyObject_CallMethodNoArgs(proxy, w->fp->n.copy_) : NULL;
    Py_XDECREF(proxy);
    if (dict && !PyDict_Check(dict)) Py_CLEAR(dict);
    return dict;
}

/* As a value, a base counts as a value too; as a class of instances, by name. */
static int append_bases(fp_walk *w, PyObject *list, PyTypeObject *type, bool as_value) {
    PyObject *bases = Py_XNewRef(type->tp_bases); /* user code may set others */
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && bases && i < PyTuple_GET_SIZE(bases); i++) {
        PyObject *base = PyTuple_GET_ITEM(bases, i), *kid = NULL;
        kid = ing_fp_as_new(w, base, as_value ? FP_AS_CLASS : FP_AS_TYPE);
        rc = kid ? PyList_Append(list, kid) : -1;
        Py_XDECREF(kid);
    }
    Py_XDECREF(bases);
    return rc;
}

static int append_members(fp_walk *w, PyObject *list, PyTypeObject *type) {
    PyObject *map = PyObject_GetAttr((PyObject *)type, w->fp->n._member_map_);
    PyObject *name, *member;
    Py_ssize_t pos = 0;
    int rc = map && PyDict_Check(map) ? 0 : -1;
    while (rc == 0 && PyDict_Next(map, &pos, &name, &member)) {
        Py_INCREF(name); /* a member's __getattribute__ may change the map */
        PyObject *value = PyObject_GetAttr(member, w->fp->n._value_);
        rc = value ? append_pair(list, name, value) : -1;
        Py_XDECREF(value);
        Py_DECREF(name);
    }
    Py_XDECREF(map);
    return rc;
}

/* Of an enum's namespace the user's own functions. What makes the members is left out: the
 * members are what it made, and each Python keeps it elsewhere. */
static int append_behaviour(fp_walk *w, PyObject *list, PyObject *name, PyObject *v) {
    static const char *const makers[] = {"__new__", "__new_member__", "_new_member_",
                                         "_generate_next_value_"};
    if (!PyUnicode_Check(name)) return 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (PyUnicode_CompareWithASCIIString(name, makers[i]) == 0) return 0;
    if (PyFunction_Check(v)) return append_function(w, list, name, v);
    return is_descriptor(v) && append_wrapped(w, list, name, v) < 0 ? -1 : 0;
}

/* Keys that are no str: no attribute can imitate them. The standard library's metaclasses
 * go without saying (and have other names in other versions). */
static int append_metaclass(fp_walk *w, PyObject *list, PyTypeObject *type) {
    PyTypeObject *meta = Py_TYPE(type);
    if (meta == &PyType_Type) return 0;
    PyObject *module = ing_fp_attr(w->fp, (PyObject *)meta, w->fp->n.__module__);
    PyObject *origin = module && PyUnicode_Check(module) ? ing_fp_origin(w, module)
                                                         : Py_NewRef(Py_None);
    Py_XDECREF(module);
    if (!origin) return -1;
    bool stdlib = origin != Py_None && PyUnicode_GET_LENGTH(origin) == 0;
    Py_DECREF(origin);
    if (stdlib) return 0;
    PyObject *key = Py_BuildValue("(s)", "metaclass");
    PyObject *marker = key ? ing_fp_as_new(w, (PyObject *)meta, FP_AS_CLASS) : NULL;
    int rc = marker ? append_pair(list, key, marker) : -1;
    Py_XDECREF(key);
    Py_XDECREF(marker);
    return rc;
}

/* What the decorators of dataclasses and the like were told: flags, defaults, factories,
 * as pairs of a tuple and a value. */
static int append_declared(fp_walk *w, PyObject *list, PyTypeObject *type) {
    PyObject *helpers = ing_fp_helpers(w);
    PyObject *pairs =
        helpers ? PyObject_CallMethod(helpers, "_declared", "O", type) : NULL;
    int rc = pairs && PyList_Check(pairs) ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i), *v = PyTuple_GET_ITEM(pair, 1);
        PyObject *kid = PyFunction_Check(v) ? ing_fp_as_new(w, v, FP_AS_CODE)
                        : PyType_Check(v)   ? ing_fp_as_new(w, v, FP_AS_CLASS)
                                            : Py_NewRef(v);
        rc = kid ? append_pair(list, PyTuple_GET_ITEM(pair, 0), kid) : -1;
        Py_XDECREF(kid);
    }
    Py_XDECREF(pairs);
    return rc;
}

/* name, declared fields, bases; then pairs of name and value. */
static PyObject *content_kids(fp_walk *w, PyTypeObject *type, bool as_value,
                              uint32_t *ordered) {
    PyObject *kids = PyList_New(0), *name, *value;
    PyObject *label =
        kids ? PyObject_GetAttr((PyObject *)type, w->fp->n.__name__) : NULL;
    fp_plan *p = label ? ing_fp_plan_get(w, type) : NULL;
    int rc = p ? PyList_Append(kids, label) : -1;
    if (rc == 0) rc = PyList_Append(kids, p->fields);
    if (rc == 0) rc = append_bases(w, kids, type, as_value);
    *ordered = kids ? (uint32_t)PyList_GET_SIZE(kids) : 0;
    bool members = rc == 0 && is_enum(w, type);
    if (members) rc = append_members(w, kids, type);
    if (rc == 0 && (as_value || !members)) {
        PyObject *dict = namespace_of(w, type);
        Py_ssize_t pos = 0;
        rc = dict ? 0 : -1;
        while (rc == 0 && PyDict_Next(dict, &pos, &name, &value))
            rc = members ? append_behaviour(w, kids, name, value)
                         : append_entry(w, kids, name, value, as_value);
        Py_XDECREF(dict);
    }
    if (rc == 0 && as_value) rc = append_metaclass(w, kids, type);
    if (rc == 0 && as_value) rc = append_declared(w, kids, type);
    Py_XDECREF(label);
    if (rc < 0) Py_CLEAR(kids);
    return kids;
}

static int push_content(fp_walk *w, PyTypeObject *type, fp_how how, bool as_value,
                        Py_ssize_t own) {
    uint32_t ordered;
    PyObject *kids = content_kids(w, type, as_value, &ordered);
    if (!kids)
        return ing_fp_refuse(w, (PyObject *)type, "the class cannot be read", NULL);
    uint32_t groups = ((uint32_t)PyList_GET_SIZE(kids) - ordered) / 2;
    if (ing_fp_push(w, (PyObject *)type, how, FP_CONTENT_KIND, kids, ordered, groups,
                    own) < 0)
        return -1;
    ing_fp_top(w)->pairs = 1;
    ing_fp_top(w)->live |= as_value;
    return 0;
}

int ing_fp_class_content(fp_walk *w, PyTypeObject *type, fp_how how) {
    return push_content(w, type, how, how == FP_AS_CLASS, 0);
}

/* ---- a class as a value ------------------------------------------------------------------------------ */

/* NumPy's scalar classes stand for dtypes, which mean the same in every version. */
static bool is_numpy_scalar(fp_walk *w, PyTypeObject *type) {
    PyObject *base = ing_fp_loaded_attr(w->fp, "numpy", "generic");
    bool yes = base && PyType_Check(base) &&
               PyType_IsSubtype(type, (PyTypeObject *)base) &&
               strncmp(type->tp_name, "numpy.", 6) == 0;
    Py_XDECREF(base);
    return yes;
}

int ing_fp_class_value(fp_walk *w, PyTypeObject *type, Py_ssize_t own) {
    fp_plan *p = ing_fp_plan_get(w, type);
    if (!p || ing_fp_plan_verify(w, p) < 0) return -1;
    bool named = p->named;
    ing_hash128 name = p->name;
    if (!named && !w->lenient && !is_enum(w, type))
        return ing_fp_refuse(w, (PyObject *)type, "the class has no importable name",
                             "define it at the top level of a module, or use "
                             "variant=\"lenient\"");
    if (!named) return push_content(w, type, FP_AS_ITSELF, true, own);
    PyObject *module = ing_fp_attr(w->fp, (PyObject *)type, w->fp->n.__module__);
    PyObject *origin = module ? ing_fp_origin(w, module) : NULL;
    Py_XDECREF(module);
    if (!origin) return -1;
    int rc;
    if (origin == Py_None) {
        rc = push_content(w, type, FP_AS_ITSELF, true, own);
    } else if (!PyUnicode_GET_LENGTH(origin) || is_numpy_scalar(w, type)) {
        Py_DECREF(origin);
        return ing_fp_put_digest(w, FP_CLASS, name);
    } else {
        PyObject *kids = PyTuple_Pack(1, origin);
        rc = kids ? ing_fp_push(w, (PyObject *)type, FP_AS_ITSELF, FP_CLASS_KIND, kids,
                                1, 0, own)
                  : -1;
    }
    Py_DECREF(origin);
    return rc < 0 || ing_fp_top(w)->obj != (PyObject *)type
               ? rc
               : ing_fp_put_digest(w, FP_CLASS, name);
}
