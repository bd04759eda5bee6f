/* Classes. As the class of an instance, an importable one counts by its name and a local
 * one by its content. As a value, a class counts by its verified name and, when it is the
 * user's own, by what it declares: fields, constants, methods (by their text) and bases. */
#include "py/value/fingerprint_int.h"

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

static bool is_dunder(PyObject *name) {
    Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    return n > 4 && PyUnicode_READ_CHAR(name, 0) == '_' &&
           PyUnicode_READ_CHAR(name, 1) == '_' &&
           PyUnicode_READ_CHAR(name, n - 1) == '_' &&
           PyUnicode_READ_CHAR(name, n - 2) == '_';
}

/* Methods that dataclasses, attrs and named tuples generate: the fields say it all. */
static int is_generated(fp_walk *w, PyObject *dict, PyObject *name, PyObject *fn) {
    const char *path =
        PyUnicode_AsUTF8(((PyCodeObject *)PyFunction_GET_CODE(fn))->co_filename);
    if (!path) ing_fp_forgive(w->fp);
    if (path && strncmp(path, "<attrs generated", 16) == 0) return 1;
    if (!path || strcmp(path, "<string>") != 0) return 0;
    PyObject *home =
        PyDict_GetItemWithError(PyFunction_GET_GLOBALS(fn), w->fp->n.__name__);
    const char *text = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    if (!text) ing_fp_forgive(w->fp);
    if (text && strncmp(text, "namedtuple_", 11) == 0) return 1;
    int has = PyDict_Contains(dict, w->fp->n.__dataclass_fields__);
    return has < 0 ? -1 : has && is_dunder(name);
}

/* What a wrapper wraps: new reference, or NULL. */
static PyObject *wrapped_by(fp_walk *w, PyObject *fn) {
    PyObject *wrapped = ing_fp_attr(w->fp, fn, w->fp->n.__wrapped__);
    PyObject *closure = PyFunction_GET_CLOSURE(fn);
    for (Py_ssize_t i = 0; !wrapped && closure && i < PyTuple_GET_SIZE(closure); i++) {
        PyObject *v = PyCell_GET(PyTuple_GET_ITEM(closure, i));
        if (v && (PyFunction_Check(v) || PyMethod_Check(v))) wrapped = Py_NewRef(v);
    }
    return wrapped;
}

/* Does the class's namespace name this function of a library by the user's choice? What
 * libraries put there themselves goes without saying: it differs among versions. */
static int is_chosen(fp_walk *w, PyObject *dict, PyObject *name, PyObject *fn) {
    PyObject *fields = PyUnicode_FromString("_fields"); /* of a named tuple */
    int tuple = fields ? PyDict_Contains(dict, fields) : -1;
    Py_XDECREF(fields);
    if (tuple) return tuple < 0 ? -1 : 0;
    int attrs = is_dunder(name) ? PyDict_Contains(dict, w->fp->n.__attrs_attrs__) : 0;
    if (attrs) return attrs < 0 ? -1 : 0;
    PyObject *wrapped = wrapped_by(w, fn);
    int generated =
        wrapped && PyFunction_Check(wrapped) ? is_generated(w, dict, name, wrapped) : 0;
    Py_XDECREF(wrapped);
    if (wrapped) return generated < 0 ? -1 : !generated;
    PyObject *module = ing_fp_attr(w->fp, fn, w->fp->n.__module__);
    PyObject *qualname = ing_fp_attr(w->fp, fn, w->fp->n.__qualname__);
    PyObject *found =
        module && qualname ? ing_fp_resolve(w->fp, module, qualname) : NULL;
    bool named = found == fn;
    Py_XDECREF(found);
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    return named && !is_dunder(name);
}

/* `dict` is the namespace of the class. */
static int append_function(fp_walk *w, PyObject *list, PyObject *dict, PyObject *name,
                           PyObject *fn) {
    PyObject *origin = ing_fp_code_origin(w, fn);
    if (!origin) return -1;
    bool users = origin == Py_None;
    Py_DECREF(origin);
    int counts = users ? is_generated(w, dict, name, fn) : is_chosen(w, dict, name, fn);
    if (counts < 0) return -1;
    if (users == (counts == 1)) return 0;
    PyObject *marker = ing_fp_as_new(w, fn, FP_AS_CODE);
    int rc = marker ? append_pair(list, name, marker) : -1;
    Py_XDECREF(marker);
    return rc;
}

/* One function inside a descriptor, or whatever is there in its place. */
static int append_inner(fp_walk *w, PyObject *list, PyObject *dict, PyObject *name,
                        PyObject *v, PyObject *attr) {
    PyObject *inner = ing_fp_attr(w->fp, v, attr);
    if (!inner || inner == Py_None) {
        Py_XDECREF(inner);
        return 0;
    }
    PyObject *label = PyUnicode_FromFormat("%U.%U", name, attr);
    int rc = !label                    ? -1
             : PyFunction_Check(inner) ? append_function(w, list, dict, label, inner)
                                       : append_pair(list, label, inner);
    Py_XDECREF(label);
    Py_DECREF(inner);
    return rc;
}

/* A descriptor of a class of the user's own has a class and attributes beside. */
static int append_kind(fp_walk *w, PyObject *list, PyObject *name, PyObject *v) {
    PyObject *module = ing_fp_attr(w->fp, (PyObject *)Py_TYPE(v), w->fp->n.__module__);
    PyObject *origin = module ? ing_fp_origin(w, module) : Py_NewRef(Py_None);
    Py_XDECREF(module);
    if (!origin) return -1;
    bool users = origin == Py_None;
    Py_DECREF(origin);
    if (!users) return 0;
    PyObject *label = PyUnicode_FromFormat("%U.__class__", name);
    PyObject *mark = ing_fp_as_new(w, (PyObject *)Py_TYPE(v), FP_AS_CLASS);
    int rc = label && mark ? append_pair(list, label, mark) : -1;
    Py_XDECREF(label);
    Py_XDECREF(mark);
    PyObject *dict = rc == 0 ? ing_fp_attr(w->fp, v, w->fp->n.__dict__) : NULL;
    if (dict && PyDict_Check(dict) && PyDict_GET_SIZE(dict)) {
        label = PyUnicode_FromFormat("%U.__dict__", name);
        rc = label ? append_pair(list, label, dict) : -1;
        Py_XDECREF(label);
    }
    Py_XDECREF(dict);
    return rc;
}

/* The functions inside Python's own descriptors. 1: it was one of those, 0: it is a value. */
static int append_wrapped(fp_walk *w, PyObject *list, PyObject *dict, PyObject *name,
                          PyObject *v) {
    const fp_names *n = &w->fp->n;
    PyObject *attrs[3] = {NULL};
    bool kept = ing_fp_is_a(w->fp, Py_TYPE(v), "functools", "cached_property");
    if (PyType_IsSubtype(Py_TYPE(v), &PyProperty_Type))
        attrs[0] = n->fget_, attrs[1] = n->fset_, attrs[2] = n->fdel_;
    else if (PyType_IsSubtype(Py_TYPE(v), &PyStaticMethod_Type) ||
             PyType_IsSubtype(Py_TYPE(v), &PyClassMethod_Type))
        attrs[0] = n->func_of;
    else if (kept)
        attrs[0] = n->func_;
    else if (ing_fp_is_a(w->fp, Py_TYPE(v), "types", "DynamicClassAttribute"))
        attrs[0] = n->fget_, attrs[1] = n->fset_, attrs[2] = n->fdel_;
    else if (ing_fp_is_a(w->fp, Py_TYPE(v), "functools", "singledispatchmethod"))
        attrs[0] = n->func_, attrs[1] = n->dispatcher_;
    else
        return 0;
    for (int i = 0; i < 3 && attrs[i]; i++)
        if (append_inner(w, list, dict, name, v, attrs[i]) < 0) return -1;
    return !kept && append_kind(w, list, name, v) < 0 ? -1 : 1;
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

/* What Python and the libraries of dataclasses keep in a class for themselves. */
static bool is_bookkeeping(PyObject *name) {
    static const char *const all[] = {
        "__module__",
        "__qualname__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__annotations__",
        "__annotations_cache__",
        "__firstlineno__",
        "__static_attributes__",
        "__slots__",
        "__orig_bases__",
        "__parameters__",
        "__abstractmethods__",
        "__signature__",
        "__classcell__",
        "__classdictcell__",
        "__hash__",
        "__protocol_attrs__",
        "__type_params__",
        "__non_callable_proto_members__",
        "__callable_proto_members_only__",
        "__class_vars__",
        "__private_attributes__",
        "__final__",
        "__conditional_annotations__",
    };
    if (!PyUnicode_IS_ASCII(name)) return false;
    const char *text = PyUnicode_DATA(name);
    if (strcmp(text, "_abc_impl") == 0 || strncmp(text, "__dataclass_", 12) == 0 ||
        strncmp(text, "__attrs_", 8) == 0 || strncmp(text, "__pydantic_", 11) == 0)
        return true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(text, all[i]) == 0) return true;
    return false;
}

/* The function that makes a class's annotations, from Python 3.14 on: what it makes counts
 * (class_notes of ingot/_reach.py), and it has no text of its own. */
static bool makes_annotations(PyObject *name) {
    return PyUnicode_CompareWithASCIIString(name, "__annotate_func__") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "__annotate__") == 0;
}

/* One entry of the class's namespace `dict`. */
static int append_entry(fp_walk *w, PyObject *list, PyObject *dict, PyObject *name,
                        PyObject *v, bool as_value) {
    if (!PyUnicode_Check(name) || makes_annotations(name)) return 0;
    if (PyFunction_Check(v)) return append_function(w, list, dict, name, v);
    if (is_bookkeeping(name)) return 0;
    if (PyType_Check(v)) {
        PyObject *marker = ing_fp_as_new(w, v, as_value ? FP_AS_CLASS : FP_AS_TYPE);
        int rc = marker ? append_pair(list, name, marker) : -1;
        Py_XDECREF(marker);
        return rc;
    }
    if (is_storage(v)) return 0;
    int rc = is_descriptor(v) ? append_wrapped(w, list, dict, name, v) : 0;
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

/* Attributes of a member that its class's __new__ or __init__ gave it. */
static int append_member_state(fp_walk *w, PyObject *list, PyObject *name,
                               PyObject *member) {
    PyObject *dict = ing_fp_attr(w->fp, member, w->fp->n.__dict__), *key, *v;
    Py_ssize_t pos = 0;
    int rc = 0;
    while (rc == 0 && dict && PyDict_Check(dict) && PyDict_Next(dict, &pos, &key, &v)) {
        if (!PyUnicode_Check(key) || !PyUnicode_GET_LENGTH(key) ||
            PyUnicode_READ_CHAR(key, 0) == '_')
            continue;
        PyObject *pair = PyTuple_Pack(2, name, key);
        rc = pair ? append_pair(list, pair, v) : -1;
        Py_XDECREF(pair);
    }
    Py_XDECREF(dict);
    return rc;
}

static int append_members(fp_walk *w, PyObject *list, PyTypeObject *type,
                          bool as_value) {
    PyObject *map = PyObject_GetAttr((PyObject *)type, w->fp->n._member_map_);
    PyObject *name, *member;
    Py_ssize_t pos = 0;
    int rc = map && PyDict_Check(map) ? 0 : -1;
    while (rc == 0 && PyDict_Next(map, &pos, &name, &member)) {
        Py_INCREF(name); /* a member's __getattribute__ may change the map */
        PyObject *value = PyObject_GetAttr(member, w->fp->n._value_);
        rc = value ? append_pair(list, name, value) : -1;
        if (rc == 0 && as_value) rc = append_member_state(w, list, name, member);
        Py_XDECREF(value);
        Py_DECREF(name);
    }
    Py_XDECREF(map);
    return rc;
}

/* `_order_`, `__doc__`: names that enum and Python use for themselves. */
static bool is_sunder(PyObject *name) {
    Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    return n > 2 && PyUnicode_READ_CHAR(name, 0) == '_' &&
           PyUnicode_READ_CHAR(name, n - 1) == '_';
}

/* How a flag takes bits that it has no member for, where that is not as in its base. */
static int append_boundary(fp_walk *w, PyObject *list, PyTypeObject *type) {
    PyObject *name = PyUnicode_InternFromString("_boundary_");
    PyObject *base = (PyObject *)type->tp_base, *mine = NULL, *theirs = NULL;
    if (name) mine = ing_fp_attr(w->fp, (PyObject *)type, name);
    if (name && base) theirs = ing_fp_attr(w->fp, base, name);
    int rc = !name ? -1 : mine && mine != theirs ? append_pair(list, name, mine) : 0;
    Py_XDECREF(name);
    Py_XDECREF(mine);
    Py_XDECREF(theirs);
    return rc;
}

/* Of an enum's namespace the user's own functions and what is no member. What makes the
 * members is left out: the members are what it made, and each Python keeps it elsewhere. */
static int append_behaviour(fp_walk *w, PyObject *list, PyObject *dict, PyObject *name,
                            PyObject *v) {
    static const char *const makers[] = {"__new__", "__new_member__", "_new_member_",
                                         "_generate_next_value_"};
    if (!PyUnicode_Check(name) || makes_annotations(name)) return 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (PyUnicode_CompareWithASCIIString(name, makers[i]) == 0) return 0;
    if (PyFunction_Check(v)) return append_function(w, list, dict, name, v);
    if (is_descriptor(v)) return append_wrapped(w, list, dict, name, v) < 0 ? -1 : 0;
    PyObject *map = PyDict_GetItemWithError(dict, w->fp->n._member_map_);
    int member = map && PyDict_Check(map) ? PyDict_Contains(map, name) : 1;
    if (member || PyErr_Occurred()) return member < 0 || PyErr_Occurred() ? -1 : 0;
    if (is_sunder(name)) return 0;
    PyObject *kid = PyType_Check(v) ? ing_fp_as_new(w, v, FP_AS_CLASS) : Py_NewRef(v);
    int rc = kid ? append_pair(list, name, kid) : -1;
    Py_XDECREF(kid);
    return rc;
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

/* Pairs of a tuple and a value, as a function of a module gives them for the class. */
static int append_pairs(fp_walk *w, PyObject *list, PyTypeObject *type,
                        PyObject *module, const char *function) {
    PyObject *pairs = module ? PyObject_CallMethod(module, function, "O", type) : NULL;
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

/* The user's own classes that an abstract class was told are its subclasses. */
static int append_registered(fp_walk *w, PyObject *list, PyTypeObject *type) {
    if (!ing_fp_is_a(w->fp, Py_TYPE(type), "abc", "ABCMeta")) return 0;
    PyObject *reach = ing_fp_reach(w->fp);
    PyObject *all = reach ? PyObject_CallMethod(reach, "registered", "O", type) : NULL;
    PyObject *key = Py_BuildValue("(s)", "registered");
    int rc = all && key && PyList_Check(all) ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(all); i++) {
        PyObject *mark = ing_fp_as_new(w, PyList_GET_ITEM(all, i), FP_AS_CLASS);
        rc = mark ? append_pair(list, key, mark) : -1;
        Py_XDECREF(mark);
    }
    Py_XDECREF(all);
    Py_XDECREF(key);
    return rc;
}

/* Room for an attribute: a slot, `__dict__` or `__weakref__`. */
static bool is_slot(PyObject *name, PyObject *v) {
    bool room = PyUnicode_CompareWithASCIIString(name, "__dict__") == 0 ||
                PyUnicode_CompareWithASCIIString(name, "__weakref__") == 0;
    return Py_TYPE(v) == (room ? &PyGetSetDescr_Type : &PyMemberDescr_Type);
}

/* Slots that are no declared fields, in the order of their names. */
static PyObject *slot_names(fp_walk *w, PyTypeObject *type, PyObject *dict) {
    fp_plan *p = ing_fp_plan_get(w, type);
    PyObject *names = p ? PyList_New(0) : NULL, *name, *v;
    Py_ssize_t pos = 0;
    int rc = names ? 0 : -1;
    while (rc == 0 && PyDict_Next(dict, &pos, &name, &v)) {
        if (!PyUnicode_Check(name) || !is_slot(name, v)) continue;
        int field = PySequence_Contains(p->fields, name);
        rc = field < 0 ? -1 : field ? 0 : PyList_Append(names, name);
    }
    if (rc == 0) rc = PyList_Sort(names);
    PyObject *out = rc == 0 ? PyList_AsTuple(names) : NULL;
    Py_XDECREF(names);
    return out;
}

/* What Python makes of a class's body that its entries do not say: which attributes its
 * objects can have, and whether they can be hashed where it says so itself. */
static int append_layout(fp_walk *w, PyObject *list, PyTypeObject *type,
                         PyObject *dict) {
    int slots = PyDict_Contains(dict, w->fp->n.__slots__);
    int equal = slots < 0 ? -1 : PyDict_Contains(dict, w->fp->n.__eq__);
    PyObject *hash =
        equal < 0 ? NULL : PyDict_GetItemWithError(dict, w->fp->n.__hash__);
    if (PyErr_Occurred()) return -1;
    int rc = 0;
    if (slots) {
        PyObject *names = slot_names(w, type, dict);
        rc = names ? append_pair(list, w->fp->n.__slots__, names) : -1;
        Py_XDECREF(names);
    }
    bool said = hash && !PyFunction_Check(hash) && (hash == Py_None) != (equal == 1);
    if (rc == 0 && said)
        rc = append_pair(list, w->fp->n.__hash__, hash == Py_None ? Py_False : Py_True);
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
    if (members) rc = append_members(w, kids, type, as_value);
    if (rc == 0 && (as_value || !members)) {
        PyObject *dict = namespace_of(w, type);
        Py_ssize_t pos = 0;
        rc = dict ? 0 : -1;
        while (rc == 0 && PyDict_Next(dict, &pos, &name, &value))
            rc = members ? append_behaviour(w, kids, dict, name, value)
                         : append_entry(w, kids, dict, name, value, as_value);
        if (rc == 0 && as_value)
            rc = members ? append_boundary(w, kids, type)
                         : append_layout(w, kids, type, dict);
        Py_XDECREF(dict);
    }
    if (rc == 0 && as_value) rc = append_metaclass(w, kids, type);
    /* What the decorators of dataclasses and the like were told: flags, defaults. */
    if (rc == 0 && as_value)
        rc = append_pairs(w, kids, type, ing_fp_helpers(w), "_declared");
    if (rc == 0 && as_value)
        rc = append_pairs(w, kids, type, ing_fp_reach(w->fp), "class_notes");
    if (rc == 0 && as_value) rc = append_registered(w, kids, type);
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
    ing_fp_top(w)->code |= as_value;
    return 0;
}

int ing_fp_class_content(fp_walk *w, PyTypeObject *type, fp_how how) {
    return push_content(w, type, how, how == FP_AS_CLASS, 0);
}

static bool is_builtin_type(const PyTypeObject *type) {
    return strchr(type->tp_name, '.') == NULL; /* int, dict, NoneType */
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

/* What the user has put into a library's class and its bases: functions and what holds them. */
static PyObject *patched_kids(fp_walk *w, PyTypeObject *type, PyObject *origin) {
    PyObject *kids = PyList_New(0);
    int rc = kids ? PyList_Append(kids, origin) : -1;
    if (rc == 0) rc = append_pairs(w, kids, type, ing_fp_reach(w->fp), "patched");
    if (rc == 0) rc = append_registered(w, kids, type);
    if (rc < 0) Py_CLEAR(kids);
    return kids;
}

/* A library's class: its name, its version, what was patched into it. */
static int push_foreign(fp_walk *w, PyTypeObject *type, ing_hash128 name,
                        PyObject *origin, Py_ssize_t own) {
    PyObject *kids = patched_kids(w, type, origin);
    if (!kids) return -1;
    uint32_t groups = (uint32_t)(PyList_GET_SIZE(kids) - 1) / 2;
    if (!groups && (!PyUnicode_GET_LENGTH(origin) || is_numpy_scalar(w, type))) {
        Py_DECREF(kids);
        return ing_fp_put_digest(w, FP_CLASS, name);
    }
    if (ing_fp_push(w, (PyObject *)type, FP_AS_ITSELF, FP_CLASS_KIND, kids, 1, groups,
                    own) < 0)
        return -1;
    ing_fp_top(w)->pairs = ing_fp_top(w)->live = 1;
    return ing_fp_put_digest(w, FP_CLASS, name);
}

int ing_fp_class_value(fp_walk *w, PyTypeObject *type, Py_ssize_t own) {
    fp_plan *p = ing_fp_plan_get(w, type);
    if (!p || ing_fp_plan_verify(w, p) < 0) return -1;
    bool named = p->named;
    ing_hash128 name = p->name;
    bool held = ing_fp_live(w) && ing_fp_in_code(w);
    if (!named && !held && !w->lenient && !is_enum(w, type))
        return ing_fp_refuse(w, (PyObject *)type, "the class has no importable name",
                             "define it at the top level of a module, or use "
                             "variant=\"lenient\"");
    if (!named) return push_content(w, type, FP_AS_ITSELF, true, own);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && is_builtin_type(type))
        return ing_fp_put_digest(w, FP_CLASS, name);
    PyObject *module = ing_fp_attr(w->fp, (PyObject *)type, w->fp->n.__module__);
    PyObject *origin = module ? ing_fp_origin(w, module) : NULL;
    Py_XDECREF(module);
    if (!origin) return -1;
    if (origin != Py_None) {
        int rc = push_foreign(w, type, name, origin, own);
        Py_DECREF(origin);
        return rc;
    }
    Py_DECREF(origin);
    if (push_content(w, type, FP_AS_ITSELF, true, own) < 0) return -1;
    return ing_fp_top(w)->obj != (PyObject *)type
               ? 0
               : ing_fp_put_digest(w, FP_CLASS, name);
}
