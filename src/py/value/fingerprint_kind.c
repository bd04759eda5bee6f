/* One level of each kind of data: instances with attributes, subclasses of builtins, enum
 * members, views, wrappers and whatever has a reducer. Each function opens one frame whose
 * children the walk visits. Code (functions, classes, modules) is in fingerprint_code.c,
 * arrays are in fingerprint_array.c. */
#include "py/value/fingerprint_int.h"
#include "py/call/kernel.h"

/* ---- classes of instances ------------------------------------------------------------------ */

PyObject *ing_fp_as_new(fp_walk *w, PyObject *obj, fp_how how) {
    fp_as *as = PyObject_GC_New(fp_as, w->fp->as_type);
    if (!as) return NULL;
    as->obj = Py_NewRef(obj);
    as->how = how;
    PyObject_GC_Track(as);
    return (PyObject *)as;
}

typedef struct head { /* the class as it was when the children were begun */
    bool named, live;
    ing_hash128 name;
} head;

/* NumPy's arrays and scalars mean the same in every version. */
static bool is_numpy_data(const fp_plan *p) {
    return (p->rule == FP_RULE_ARRAY || p->rule == FP_RULE_SCALAR) &&
           strncmp(p->type->tp_name, "numpy.", 6) == 0;
}

/* Begins the children of an instance: a class that does not count by its name alone is the
 * first of them. */
static int begin_class(fp_walk *w, fp_plan *p, head *h) {
    if (ing_fp_plan_verify(w, p) < 0) return -1;
    bool live = (ing_fp_live(w) || p->calls) && !is_numpy_data(p);
    *h = (head){p->named && !live, live, p->name};
    if (h->named) return 0;
    fp_how how = live ? FP_AS_CLASS : FP_AS_TYPE;
    return ing_fp_kid(w, ing_fp_as_new(w, (PyObject *)p->type, how));
}

/* Opens the frame for the children from `from` on, `ordered` of them beside the class. */
static int end_class(fp_walk *w, PyObject *obj, const head *h, fp_kind kind,
                     uint32_t from, uint32_t ordered, bool pairs, Py_ssize_t own) {
    if (!h->named) ordered++;
    if (ing_fp_push_kids(w, obj, FP_AS_ITSELF, kind, from, ordered, pairs, own) < 0)
        return -1;
    ing_fp_top(w)->live |= h->live;
    return h->named ? ing_fp_put_digest(w, FP_CLASS, h->name) : 0;
}

/* An importable class counts by its name, written before the children; a local one by its
 * content, which is the first child. */
int ing_fp_push_instance(fp_walk *w, PyObject *obj, fp_plan *p, fp_kind kind,
                         PyObject *kids, uint32_t ordered, bool pairs, Py_ssize_t own) {
    if (!kids) return -1;
    uint32_t from = w->kids.len;
    head h;
    int rc = begin_class(w, p, &h);
    Py_ssize_t n = PyTuple_Check(kids) ? PyTuple_GET_SIZE(kids) : PyList_GET_SIZE(kids);
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++)
        rc = ing_fp_kid(w, Py_NewRef(PyTuple_Check(kids) ? PyTuple_GET_ITEM(kids, i)
                                                         : PyList_GET_ITEM(kids, i)));
    Py_DECREF(kids);
    if (rc < 0) return ing_fp_drop_kids(w, from);
    return end_class(w, obj, &h, kind, from, ordered, pairs, own);
}

/* ---- instances -------------------------------------------------------------------------------
 * State is the declared fields in order, then all other attributes as unordered pairs.
 *
 * Since 3.11 an object keeps its attributes without a dict until somebody asks for one,
 * and asking costs each object a dict for good. So a plan learns the attribute names of
 * the last instance in order; the next one is read by name, and the garbage collector's
 * view of it (tp_traverse) proves that it holds exactly those values and nothing else.
 * Where a value may as well be the class's own, it proves nothing: an instance without `a`
 * may hold that very object under another name. If in doubt, the dict is made and read. */

#if PY_VERSION_HEX >= 0x030B0000
typedef struct seen {
    PyObject *at[FP_LEARNED_MAX + 2];
    Py_ssize_t n;
} seen;

static int collect(PyObject *o, void *arg) {
    seen *s = arg;
    if (s->n >= FP_LEARNED_MAX + 2) return 1;
    s->at[s->n++] = o;
    return 0;
}

/* Slots come first, then the attributes, then the class. */
static bool holds_exactly(PyObject *obj, Py_ssize_t slots, PyObject *const *got,
                          Py_ssize_t n) {
    seen s = {.n = 0};
    PyTypeObject *t = Py_TYPE(obj);
    if (!t->tp_traverse || t->tp_traverse(obj, collect, &s) != 0) return false;
    if (s.n && s.at[s.n - 1] == (PyObject *)t) s.n--; /* instances own their class */
    if (s.n != slots + n || (n == 1 && PyDict_Check(s.at[slots]))) return false;
    return n == 0 || memcmp(s.at + slots, got, (size_t)n * sizeof *got) == 0;
}

/* Was any of the values found in the class instead? */
static bool is_shadowed(ing_py_fp *fp, const fp_plan *p, PyTypeObject *t,
                        PyObject *const *got) {
    if (p->version && p->version != t->tp_version_tag) return true;
    for (uint64_t left = p->shadows; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        if (ing_fp_type_attr(fp, t, PyTuple_GET_ITEM(p->learned, i)) == got[i])
            return true;
    }
    return false;
}

/* Puts the learned attributes on the stack of children, each in its place. 1: done; 0: the
 * object has others. */
static int learned_kids(fp_walk *w, PyObject *obj, const fp_plan *p) {
    if (!p->learned) return 0;
    PyObject *names = Py_NewRef(p->learned); /* a property may make the plan learn */
    Py_ssize_t n = PyTuple_GET_SIZE(names), have = 0, slots = 0;
    uint32_t fields = (uint32_t)PyTuple_GET_SIZE(p->fields), from = w->kids.len;
    PyObject *got[FP_LEARNED_MAX];
    for (; have < n; have++) {
        got[have] = PyObject_GenericGetAttr(obj, PyTuple_GET_ITEM(names, have));
        if (!got[have]) break;
    }
    uint32_t total = fields + 2 * p->extras;
    for (uint32_t i = 0; i < p->n_slots; i++)
        slots += *(PyObject **)((char *)obj + p->offsets[i]) != NULL;
    bool fits =
        have == n && p->learned == names && !is_shadowed(w->fp, p, Py_TYPE(obj), got) &&
        holds_exactly(obj, slots, got, n) && ing_vec_reserve(&w->kids, from + total);
    ing_fp_forgive(w->fp);
    if (fits) w->kids.len = from + total;
    for (Py_ssize_t i = 0; i < have; i++) {
        uint8_t to = p->place[i];
        if (!fits || to == FP_NOWHERE) {
            Py_DECREF(got[i]);
            continue;
        }
        w->kids.at[from + to] = got[i];
        if (to >= fields)
            w->kids.at[from + to - 1] = Py_NewRef(PyTuple_GET_ITEM(names, i));
    }
    Py_DECREF(names);
    return fits;
}
#endif

static Py_ssize_t find_name(PyObject *tuple, PyObject *name) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *have = PyTuple_GET_ITEM(tuple, i);
        if (have == name ||
            (PyUnicode_CheckExact(name) && PyUnicode_Compare(have, name) == 0))
            return i;
    }
    return -1;
}

/* Remembers how this instance's dict is laid out, if the next one can be read by it. */
static int learn(fp_walk *w, fp_plan *p, PyObject *dict) {
    Py_ssize_t pos = 0, n = PyDict_GET_SIZE(dict), i = 0;
    Py_ssize_t fields = PyTuple_GET_SIZE(p->fields), found = 0;
    PyObject *name, *value;
    if (n > FP_LEARNED_MAX || fields + 2 * n > FP_NOWHERE) return 0;
    PyObject *names = PyTuple_New(n);
    if (!names) return -1;
    uint8_t place[FP_LEARNED_MAX];
    uint32_t extras = 0;
    uint64_t shadows = 0;
    for (; i < n && PyDict_Next(dict, &pos, &name, &value); i++) {
        if (!PyUnicode_CheckExact(name)) break;
        PyObject *of_class = ing_fp_type_attr(w->fp, p->type, name);
        if (of_class && Py_TYPE(of_class)->tp_descr_get) break; /* would be called */
        if (of_class) shadows |= (uint64_t)1 << i;
        PyTuple_SET_ITEM(names, i, Py_NewRef(name));
        Py_ssize_t f = find_name(p->fields, name);
        int skip = f < 0 && p->skip ? PySet_Contains(p->skip, name) : 0;
        if (skip < 0) {
            Py_DECREF(names);
            return -1;
        }
        if (f >= 0) {
            place[i] = (uint8_t)f;
            found++;
        } else if (skip) {
            place[i] = FP_NOWHERE;
        } else {
            place[i] = (uint8_t)(fields + 2 * extras++ + 1);
        }
    }
    if (i == n && found == fields) {
        memcpy(p->place, place, sizeof place);
        p->extras = extras;
        p->shadows = shadows;
        Py_XSETREF(p->learned, names);
        return 0;
    }
    Py_DECREF(names);
    return 0;
}

static int extra_kid(fp_walk *w, fp_plan *p, PyObject *name, PyObject *value) {
    if (find_name(p->fields, name) >= 0) return 0;
    if (p->skip && PyUnicode_CheckExact(name)) {
        int skip = PySet_Contains(p->skip, name);
        if (skip) return skip < 0 ? -1 : 0;
    }
    if (w->skip_names && ing_fp_skipped_name(w, p->type, name)) return 0;
    if (ing_fp_kid(w, Py_NewRef(name)) < 0) return -1;
    return ing_fp_kid(w, Py_NewRef(value));
}

/* A declared field: from the dict, or from a slot; a missing one is UNSET. */
static int field_kid(fp_walk *w, fp_plan *p, PyObject *obj, PyObject *dict,
                     PyObject *name) {
    PyObject *value = NULL;
    if (w->skip_names && ing_fp_skipped_name(w, p->type, name))
        return ing_fp_kid(w, Py_NewRef(w->fp->unset));
    if (dict) value = Py_XNewRef(PyDict_GetItemWithError(dict, name));
    if (!value && PyErr_Occurred()) return -1;
    if (!value) {
        PyObject *d = ing_fp_type_attr(w->fp, p->type, name);
        if (d && Py_TYPE(d)->tp_descr_set) { /* a slot, or a property */
            value = PyObject_GenericGetAttr(obj, name);
            if (!value && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
            ing_fp_forgive(w->fp);
        }
    }
    return ing_fp_kid(w, value ? value : Py_NewRef(w->fp->unset));
}

static int slot_kids(fp_walk *w, fp_plan *p, PyObject *obj) {
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(p->slots); i++) {
        PyObject *name = PyTuple_GET_ITEM(p->slots, i);
        PyObject *value = *(PyObject **)((char *)obj + p->offsets[i]);
        if (value && name != Py_None) rc = extra_kid(w, p, name, value);
    }
    return rc;
}

static int dict_kids(fp_walk *w, PyObject *obj, fp_plan *p) {
    PyObject *dict = p->has_dict ? PyObject_GenericGetDict(obj, NULL) : NULL;
    PyObject *name, *value;
    int rc = dict || !p->has_dict ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(p->fields); i++)
        rc = field_kid(w, p, obj, dict, PyTuple_GET_ITEM(p->fields, i));
    Py_ssize_t pos = 0;
    while (rc == 0 && dict && PyDict_Next(dict, &pos, &name, &value))
        rc = extra_kid(w, p, name, value);
    if (rc == 0) rc = slot_kids(w, p, obj);
    if (rc == 0 && dict) rc = learn(w, p, dict);
    Py_XDECREF(dict);
    return rc;
}

static int instance_kids(fp_walk *w, PyObject *obj, fp_plan *p) {
#if PY_VERSION_HEX >= 0x030B0000
    if (p->has_dict && !w->skip_names &&
        Py_TYPE(obj)->tp_flags & Py_TPFLAGS_MANAGED_DICT && learned_kids(w, obj, p))
        return slot_kids(w, p, obj);
#endif
    return dict_kids(w, obj, p);
}

static int visit_instance(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    uint32_t from = w->kids.len, fields = (uint32_t)PyTuple_GET_SIZE(p->fields);
    bool stored = p->stored;
    head h;
    if (begin_class(w, p, &h) < 0 || instance_kids(w, obj, p) < 0)
        return ing_fp_drop_kids(w, from);
    if (end_class(w, obj, &h, FP_INSTANCE_KIND, from, fields, true, own) < 0) return -1;
    ing_fp_top(w)->stored = stored;
    return 0;
}

/* ---- subclasses of builtins ------------------------------------------------------------------ */

/* Has the dict an attribute that counts? 1, 0 or -1. */
static int has_state(const fp_plan *p, PyObject *dict) {
    PyObject *name, *value;
    Py_ssize_t pos = 0;
    int skip = p->skip != NULL;
    while (skip == 1 && PyDict_Next(dict, &pos, &name, &value))
        skip = PyUnicode_CheckExact(name) ? PySet_Contains(p->skip, name) : 0;
    return skip < 0 ? -1 : !skip && PyDict_GET_SIZE(dict) != 0;
}

/* What stands for the instance's own attributes: UNSET when it has none. */
static PyObject *state_marker(fp_walk *w, PyObject *obj, fp_plan *p) {
    int any = p->has_slots || PyTuple_GET_SIZE(p->fields);
    if (p->has_dict && !any) {
        PyObject *dict = PyObject_GenericGetDict(obj, NULL);
        if (!dict) return NULL;
        any = has_state(p, dict);
        Py_DECREF(dict);
        if (any < 0) return NULL;
    }
    return any ? ing_fp_as_new(w, obj, FP_AS_STATE) : Py_NewRef(w->fp->unset);
}

/* defaultdict has its factory beside its items. */
static int factory_kid(fp_walk *w, PyObject *obj) {
    PyObject *cls = ing_fp_loaded_attr(w->fp, "collections", "defaultdict");
    int rc = 0;
    if (cls && PyType_Check(cls) && PyObject_TypeCheck(obj, (PyTypeObject *)cls))
        rc = ing_fp_kid(w, PyObject_GenericGetAttr(obj, w->fp->n.default_factory_));
    Py_XDECREF(cls);
    return rc;
}

/* An OrderedDict's own order is not that of its table, so its own iterator is used. */
static int visit_odict(fp_walk *w, PyObject *obj, fp_how how) {
    PyObject *items = PyObject_CallMethod((PyObject *)&PyODict_Type, "items", "O", obj);
    PyObject *list = items ? PySequence_List(items) : NULL;
    Py_XDECREF(items);
    if (!list) return -1;
    uint32_t n = (uint32_t)PyList_GET_SIZE(list);
    return ing_fp_push(w, obj, how, FP_ODICT_KIND, list, n, 0, 0);
}

static int visit_as_base(fp_walk *w, PyObject *obj) {
    if (PyUnicode_Check(obj)) return ing_fp_put_str(w, obj);
    if (PyLong_Check(obj)) return ing_fp_put_int(w, obj);
    if (PyFloat_Check(obj)) return ing_fp_put_double(w, PyFloat_AS_DOUBLE(obj));
    if (PyComplex_Check(obj)) return ing_fp_put_complex(w, obj);
    if (PyBytes_Check(obj))
        return ing_fp_put_text(w, FP_BYTES, FP_BYTES_LONG, PyBytes_AS_STRING(obj),
                               (size_t)PyBytes_GET_SIZE(obj));
    if (PyByteArray_Check(obj)) return ing_fp_put_bytearray(w, obj);
    if (PyODict_Check(obj)) return visit_odict(w, obj, FP_AS_BASE);
    PyTypeObject *base = PyTuple_Check(obj)       ? &PyTuple_Type
                         : PyList_Check(obj)      ? &PyList_Type
                         : PyDict_Check(obj)      ? &PyDict_Type
                         : PyFrozenSet_Check(obj) ? &PyFrozenSet_Type
                                                  : &PySet_Type;
    return ing_fp_visit_base(w, obj, base, FP_AS_BASE, 0);
}

/* A str, number or bytes of a named class without attributes, the common case, is written
 * at once: the same bytes as the frame below would have. 1: done. */
static int plain_sub(fp_walk *w, PyObject *obj, fp_plan *p) {
#if PY_VERSION_HEX >= 0x030B0000
    if (PyTuple_Check(obj) || PyList_Check(obj) || PyDict_Check(obj) ||
        PyAnySet_Check(obj))
        return 0;
    if (p->n_slots || PyTuple_GET_SIZE(p->fields) || w->graph) return 0;
    if (p->calls || ing_fp_live(w)) return 0;
    if (p->has_dict && !holds_exactly(obj, 0, NULL, 0)) return 0;
    if (ing_fp_plan_verify(w, p) < 0) return -1;
    if (!p->named) return 0;
    size_t start = w->len;
    if (ing_fp_room(w, FP_HEAD) < 0) return -1;
    w->out[start] = FP_FRAME + FP_SUB_KIND;
    ing_fp_put32(w->out + start + 1, 2);
    ing_fp_put32(w->out + start + 5, 0);
    w->len += FP_HEAD;
    if (ing_fp_put_digest(w, FP_CLASS, p->name) < 0 ||
        ing_fp_put_tag(w, FP_UNSET) < 0 || visit_as_base(w, obj) < 0)
        return -1;
    ing_hash128 d = ing_hash(w->out + start, w->len - start);
    w->len = start;
    return ing_fp_put_digest(w, FP_REF, d) < 0 ? -1 : 1;
#else
    (void)w, (void)obj, (void)p;
    return 0;
#endif
}

/* A named tuple without the items that are to be skipped; NULL without exception: as it is. */
static PyObject *skipped_items(fp_walk *w, PyObject *obj, fp_plan *p) {
    if (!w->skip_names || !PyTuple_Check(obj)) return NULL;
    PyObject *names = ing_fp_attr(w->fp, (PyObject *)p->type, w->fp->n._fields_);
    PyObject *out = NULL;
    Py_ssize_t n = names && PyTuple_Check(names) ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < n && i < PyTuple_GET_SIZE(obj); i++) {
        if (!ing_fp_skipped_name(w, p->type, PyTuple_GET_ITEM(names, i))) continue;
        if (!out && !(out = PySequence_List(obj))) break;
        if (PyList_SetItem(out, i, Py_NewRef(w->fp->unset)) < 0) Py_CLEAR(out);
    }
    Py_XDECREF(names);
    return out;
}

static int visit_sub(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    int rc = plain_sub(w, obj, p);
    if (rc) return rc < 0 ? -1 : 0;
    uint32_t from = w->kids.len;
    head h;
    rc = begin_class(w, p, &h);
    if (rc == 0) rc = ing_fp_kid(w, state_marker(w, obj, p));
    if (rc == 0) {
        PyObject *items = skipped_items(w, obj, p);
        if (!items && PyErr_Occurred()) return ing_fp_drop_kids(w, from);
        rc = ing_fp_kid(w, items ? items : ing_fp_as_new(w, obj, FP_AS_BASE));
    }
    if (rc == 0 && p->base_type == &PyDict_Type) rc = factory_kid(w, obj);
    if (rc < 0) return ing_fp_drop_kids(w, from);
    uint32_t n = w->kids.len - from - (h.named ? 0 : 1);
    return end_class(w, obj, &h, FP_SUB_KIND, from, n, false, own);
}

static int visit_as_state(fp_walk *w, PyObject *obj) {
    fp_plan *p = ing_fp_plan_get(w, Py_TYPE(obj));
    if (!p) return -1;
    uint32_t from = w->kids.len, fields = (uint32_t)PyTuple_GET_SIZE(p->fields);
    if (dict_kids(w, obj, p) < 0) return ing_fp_drop_kids(w, from);
    return ing_fp_push_kids(w, obj, FP_AS_STATE, FP_STATE_KIND, from, fields, true, 0);
}

int ing_fp_visit_as(fp_walk *w, fp_as *as) {
    if (as->how == FP_AS_UNSET) return ing_fp_put_tag(w, FP_UNSET);
    if (as->how == FP_AS_SELF) return ing_fp_put_tag(w, FP_SELF);
    if (as->how == FP_AS_TYPE || as->how == FP_AS_CLASS) {
        fp_plan *p = ing_fp_plan_get(w, (PyTypeObject *)as->obj);
        if (!p || ing_fp_plan_verify(w, p) < 0) return -1;
        if (p->named && as->how == FP_AS_CLASS) return ing_fp_visit(w, as->obj, 0);
        if (p->named) return ing_fp_put_digest(w, FP_CLASS, p->name);
    }
    int rc = ing_fp_known(w, as->obj, as->how);
    if (rc) return rc < 0 ? -1 : 0;
    switch (as->how) {
    case FP_AS_TYPE:
    case FP_AS_CLASS: return ing_fp_class_content(w, (PyTypeObject *)as->obj, as->how);
    case FP_AS_STATE: return visit_as_state(w, as->obj);
    case FP_AS_BASE: return visit_as_base(w, as->obj);
    default: return ing_fp_function(w, as->obj, FP_AS_CODE, 0);
    }
}

/* ---- containers that are not builtins ------------------------------------------------------------ */

static int visit_deque(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    PyObject *cls = ing_fp_loaded_attr(w->fp, "collections", "deque");
    PyObject *it = cls ? ((PyTypeObject *)cls)->tp_iter(obj) : NULL;
    PyObject *kids = it ? PySequence_List(it) : NULL;
    PyObject *maxlen = kids ? PyObject_GetAttr(obj, w->fp->n.maxlen_) : NULL;
    PyObject *state = maxlen ? state_marker(w, obj, p) : NULL;
    int rc = state ? PyList_Insert(kids, 0, state) : -1;
    if (rc == 0) rc = PyList_Insert(kids, 1, maxlen);
    Py_XDECREF(cls);
    Py_XDECREF(it);
    Py_XDECREF(maxlen);
    Py_XDECREF(state);
    if (rc < 0) Py_CLEAR(kids);
    uint32_t n = kids ? (uint32_t)PyList_GET_SIZE(kids) : 0;
    return ing_fp_push_instance(w, obj, p, FP_DEQUE_KIND, kids, n, false, own);
}

static int visit_proxy(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyObject *copy = PyObject_CallMethodNoArgs(obj, w->fp->n.copy_);
    PyObject *kids = copy ? PyTuple_Pack(1, copy) : NULL;
    Py_XDECREF(copy);
    if (!kids) return ing_fp_refuse(w, obj, "its mapping cannot be copied", NULL);
    return ing_fp_push(w, obj, FP_AS_ITSELF, FP_PROXY_KIND, kids, 1, 0, own);
}

static int visit_view(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyObject *proxy = PyObject_GetAttr(obj, w->fp->n.mapping_);
    PyObject *copy = proxy ? PyObject_CallMethodNoArgs(proxy, w->fp->n.copy_) : NULL;
    Py_XDECREF(proxy);
    if (!copy || !PyDict_Check(copy)) {
        Py_XDECREF(copy);
        return ing_fp_refuse(w, obj, "its mapping cannot be copied", NULL);
    }
    uint32_t n = (uint32_t)PyDict_GET_SIZE(copy);
    bool pairs = PyType_IsSubtype(Py_TYPE(obj), &PyDictItems_Type);
    bool live = ing_fp_live(w); /* what code works on has an order */
    if (pairs && !live) {
        if (ing_fp_push(w, obj, FP_AS_ITSELF, FP_ITEMS_KIND, copy, 0, n, own) < 0)
            return -1;
        ing_fp_top(w)->dict = ing_fp_top(w)->pairs = 1;
        return 0;
    }
    bool keys = PyType_IsSubtype(Py_TYPE(obj), &PyDictKeys_Type);
    PyObject *kids = pairs  ? PyDict_Items(copy)
                     : keys ? PyDict_Keys(copy)
                            : PyDict_Values(copy);
    fp_kind kind = pairs ? FP_ITEMS_KIND : keys ? FP_KEYS_KIND : FP_VALUES_KIND;
    Py_DECREF(copy);
    if (!kids) return -1;
    return ing_fp_push(w, obj, FP_AS_ITSELF, kind, kids, live ? n : 0, live ? 0 : n,
                       own);
}

/* ---- our wrappers ------------------------------------------------------------------------------------ */

static int visit_ordered(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyObject *mapping = PyObject_GetAttr(obj, w->fp->n.obj_);
    PyObject *items = mapping ? PyMapping_Items(mapping) : NULL;
    Py_XDECREF(mapping);
    if (!items) return ing_fp_refuse(w, obj, "its items cannot be listed", NULL);
    uint32_t n = (uint32_t)PyList_GET_SIZE(items);
    return ing_fp_push(w, obj, FP_AS_ITSELF, FP_ORDERED_KIND, items, n, 0, own);
}

static int visit_content(fp_walk *w, PyObject *obj) {
    PyObject *inner = PyObject_GetAttr(obj, w->fp->n.obj_);
    if (inner && PyObject_TypeCheck(inner, w->st->structs_type)) /* its members' */
        Py_SETREF(inner, PyObject_GetAttrString(inner, "_content"));
    if (!inner) return -1;
    fp_plan *p = ing_fp_plan_get(w, Py_TYPE(inner));
    int rc = !p                                    ? -1
             : Py_TYPE(inner) == w->st->array_type ? ing_fp_buffer(w, inner, p, 0)
                                                   : ing_fp_visit(w, inner, 1);
    Py_DECREF(inner);
    return rc;
}

/* The token keeps the object alive and goes into the key: see ingot.Identity. */
static int visit_identity(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyObject *token = PyObject_GetAttr(obj, w->fp->n.token_);
    PyObject *nonce = token ? PyObject_GetAttr(token, w->fp->n.nonce_) : NULL;
    PyObject *serial = nonce ? PyObject_GetAttr(token, w->fp->n.serial_) : NULL;
    PyObject *kids = serial ? PyTuple_Pack(2, nonce, serial) : NULL;
    if (kids && !w->held) w->held = PyList_New(0);
    if (kids && (!w->held || PyList_Append(w->held, token) < 0)) Py_CLEAR(kids);
    Py_XDECREF(token);
    Py_XDECREF(nonce);
    Py_XDECREF(serial);
    if (!kids) return -1;
    return ing_fp_push(w, obj, FP_AS_ITSELF, FP_IDENTITY_KIND, kids, 2, 0, own);
}

/* ---- enum members -------------------------------------------------------------------------------------- */

/* A composite flag has a made-up name, another one in each Python: only a name that its
 * class lists counts. */
static PyObject *member_name(fp_walk *w, PyObject *obj) {
    PyObject *name = ing_fp_attr(w->fp, obj, w->fp->n._name_);
    PyObject *map = ing_fp_attr(w->fp, (PyObject *)Py_TYPE(obj), w->fp->n._member_map_);
    PyObject *found = NULL;
    if (name && PyUnicode_CheckExact(name) && map && PyDict_Check(map))
        found = PyDict_GetItemWithError(map, name);
    if (found != obj) Py_XSETREF(name, Py_NewRef(Py_None));
    Py_XDECREF(map);
    ing_fp_forgive(w->fp);
    return name ? name : Py_NewRef(Py_None);
}

static int visit_enum(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    PyObject *name = member_name(w, obj);
    PyObject *value = PyObject_GetAttr(obj, w->fp->n._value_);
    PyObject *kids = value ? PyTuple_Pack(2, name, value) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(value);
    if (!kids) return ing_fp_refuse(w, obj, "an enum member without a value", NULL);
    return ing_fp_push_instance(w, obj, p, FP_ENUM_KIND, kids, 2, false, own);
}

/* ---- reducers -------------------------------------------------------------------------------------------- */

/* The class itself, among what a reducer gives, counts as the class of an instance. */
static int append_reduced(fp_walk *w, PyObject *list, PyObject *v, bool is_class,
                          bool live) {
    if (!is_class) return PyList_Append(list, v);
    PyObject *marker = ing_fp_as_new(w, v, live ? FP_AS_CLASS : FP_AS_TYPE);
    int rc = marker ? PyList_Append(list, marker) : -1;
    Py_XDECREF(marker);
    return rc;
}

/* A dict of attributes without those that opted out or are kept lazily; new reference. */
static PyObject *plain_state(fp_walk *w, fp_plan *p, PyObject *state) {
    PyObject *name, *v, *out = PyDict_New();
    Py_ssize_t pos = 0;
    int rc = out ? 0 : -1;
    while (rc == 0 && PyDict_Next(state, &pos, &name, &v)) {
        bool text = PyUnicode_CheckExact(name);
        int skip = text && p->skip ? PySet_Contains(p->skip, name) : 0;
        if (skip == 0 && text && w->skip_names)
            skip = ing_fp_skipped_name(w, p->type, name);
        rc = skip < 0 ? -1 : skip || !text ? 0 : PyDict_SetItem(out, name, v);
        if (rc == 0 && !text) { /* no attributes: a dict of the reducer's own */
            Py_DECREF(out);
            return Py_NewRef(state);
        }
    }
    if (rc < 0) Py_CLEAR(out);
    return out;
}

/* The state that a reducer gave: a dict, or a pair of dicts, of attributes; or anything. */
static PyObject *reduced_state(fp_walk *w, fp_plan *p, PyObject *state) {
    if (!p->skip && !w->skip_names) return Py_NewRef(state);
    if (PyDict_CheckExact(state)) return plain_state(w, p, state);
    if (!PyTuple_CheckExact(state) || PyTuple_GET_SIZE(state) != 2 ||
        !PyDict_CheckExact(PyTuple_GET_ITEM(state, 1)))
        return Py_NewRef(state);
    PyObject *first = PyTuple_GET_ITEM(state, 0);
    PyObject *one =
        PyDict_CheckExact(first) ? plain_state(w, p, first) : Py_NewRef(first);
    PyObject *two = one ? plain_state(w, p, PyTuple_GET_ITEM(state, 1)) : NULL;
    PyObject *out = two ? PyTuple_Pack(2, one, two) : NULL;
    Py_XDECREF(one);
    Py_XDECREF(two);
    return out;
}

/* (callable, args, state, list items, dict items, state setter) as one flat list; of what
 * code works on, the class goes first. */
static PyObject *reduced_kids(fp_walk *w, PyObject *obj, fp_plan *p, PyObject *r,
                              bool live) {
    PyObject *kids = PyList_New(0);
    PyObject *callable = PyTuple_GET_ITEM(r, 0), *cls = (PyObject *)Py_TYPE(obj);
    if (!PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "a reducer gave nothing that can be called");
        Py_CLEAR(kids);
    }
    int rc = kids && live ? append_reduced(w, kids, cls, true, true) : 0;
    if (rc == 0)
        rc =
            kids ? append_reduced(w, kids, callable, PyType_Check(callable), live) : -1;
    PyObject *args = PyTuple_GET_ITEM(r, 1);
    if (rc == 0 && !PyTuple_Check(args)) {
        PyErr_SetString(PyExc_TypeError, "a reducer gave no tuple of arguments");
        rc = -1;
    }
    PyObject *n = rc == 0 ? PyLong_FromSsize_t(PyTuple_GET_SIZE(args)) : NULL;
    if (rc == 0) rc = n ? PyList_Append(kids, n) : -1;
    Py_XDECREF(n);
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(args); i++)
        rc = append_reduced(w, kids, PyTuple_GET_ITEM(args, i),
                            PyTuple_GET_ITEM(args, i) == cls, live);
    for (Py_ssize_t i = 2; rc == 0 && i < 6; i++) {
        PyObject *v = i < PyTuple_GET_SIZE(r) ? PyTuple_GET_ITEM(r, i) : Py_None;
        PyObject *flat = NULL;
        if (i == 2 && !(flat = reduced_state(w, p, v))) rc = -1;
        if (rc < 0) break;
        if ((i == 3 || i == 4) && v != Py_None) flat = PySequence_List(v);
        if ((i == 3 || i == 4) && v != Py_None && !flat)
            rc = -1;
        else
            rc = PyList_Append(kids, flat ? flat : v);
        Py_XDECREF(flat);
    }
    if (rc < 0) Py_CLEAR(kids);
    return kids;
}

/* Protocol 4: in older ones a datetime leaves out its fold. */
static PyObject *call_reducer(fp_walk *w, PyObject *obj) {
    PyObject *table = ing_fp_loaded_attr(w->fp, "copyreg", "dispatch_table");
    PyObject *f = table && PyDict_Check(table)
                      ? PyDict_GetItemWithError(table, (PyObject *)Py_TYPE(obj))
                      : NULL;
    Py_XINCREF(f);
    Py_XDECREF(table);
    ing_fp_forgive(w->fp);
    PyObject *r = f ? PyObject_CallOneArg(f, obj)
                    : PyObject_CallMethod(obj, "__reduce_ex__", "i", 4);
    Py_XDECREF(f);
    return r;
}

int ing_fp_reduce(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    fp_plan *p = ing_fp_plan_get(w, Py_TYPE(obj));
    if (!p) return -1;
    bool live = ing_fp_live(w) || p->calls;
    PyObject *r = call_reducer(w, obj);
    if (!r) return ing_fp_refuse(w, obj, "it cannot be taken apart", NULL);
    int rc;
    if (PyUnicode_Check(r)) {
        PyObject *module = ing_fp_attr(w->fp, obj, w->fp->n.__module__);
        rc = ing_fp_named(w, obj, module ? module : Py_None, r, own);
        Py_XDECREF(module);
    } else if (!PyTuple_Check(r) || PyTuple_GET_SIZE(r) < 2 ||
               PyTuple_GET_SIZE(r) > 6) {
        rc = ing_fp_refuse(w, obj, "its reducer gave neither a name nor a tuple", NULL);
    } else {
        PyObject *kids = reduced_kids(w, obj, p, r, live);
        uint32_t n = kids ? (uint32_t)PyList_GET_SIZE(kids) : 0;
        rc = kids ? ing_fp_push(w, obj, FP_AS_ITSELF, FP_REDUCE_KIND, kids, n, 0, own)
                  : ing_fp_refuse(w, obj, "its reducer gave something unusable", NULL);
        if (kids && rc == 0) ing_fp_top(w)->live = live;
    }
    Py_DECREF(r);
    return rc;
}

/* ---- values of libraries ----------------------------------------------------------------------------- */

/* As an override, but of ours: the class counts. */
static int visit_pieces(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    PyObject *f = Py_NewRef(p->reducer);
    PyObject *r = PyObject_CallOneArg(f, obj);
    Py_DECREF(f);
    PyObject *tag = r ? PyObject_GetAttr(r, w->fp->n.tag_) : NULL;
    PyObject *kids = tag ? PyObject_GetAttr(r, w->fp->n.children_) : NULL;
    PyObject *list = kids ? PySequence_List(kids) : NULL;
    int rc = list && PyList_Insert(list, 0, tag) == 0 ? 0 : -1;
    Py_XDECREF(r);
    Py_XDECREF(tag);
    Py_XDECREF(kids);
    if (rc < 0) {
        Py_XDECREF(list);
        return ing_fp_refuse(w, obj, "it cannot be taken apart", NULL);
    }
    uint32_t n = (uint32_t)PyList_GET_SIZE(list);
    return ing_fp_push_instance(w, obj, p, FP_PIECES_KIND, list, n, false, own);
}

/* ---- by plan ------------------------------------------------------------------------------------------------ */

/* A method of an object that a library keeps for the process, under a name of its module
 * (`from random import random`): the name counts, as in `random.random()`. 1: it is one. */
static int by_module_name(fp_walk *w, PyObject *obj, PyObject *self, Py_ssize_t own) {
    PyObject *cls = (PyObject *)Py_TYPE(self);
    PyObject *module = ing_fp_attr(w->fp, cls, w->fp->n.__module__);
    PyObject *name = module ? ing_fp_attr(w->fp, obj, w->fp->n.__name__) : NULL;
    PyObject *found = NULL, *origin = NULL;
    if (name && PyUnicode_Check(module) && PyUnicode_Check(name))
        found = ing_fp_resolve(w->fp, module, name);
    if (found == obj) origin = ing_fp_origin(w, module);
    int rc = origin && origin != Py_None ? 1 : PyErr_Occurred() ? -1 : 0;
    if (rc == 1 && ing_fp_named(w, obj, module, name, own) < 0) rc = -1;
    Py_XDECREF(found);
    Py_XDECREF(origin);
    Py_XDECREF(name);
    Py_XDECREF(module);
    return rc;
}

/* The name of the library's module that has the object under its own name: NumPy's ufuncs and
 * torch's functions do not say it. */
static PyObject *home_of(fp_walk *w, PyObject *obj) {
    PyObject *reach = ing_fp_reach(w->fp);
    return reach ? PyObject_CallMethod(reach, "home_of", "O", obj) : NULL;
}

static int visit_method(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyObject *self, *fn = ing_py_unbind(w->st, obj, &self);
    int known = PyType_Check(self) ? 0 : by_module_name(w, obj, self, own);
    if (known) return known < 0 ? -1 : 0;
    PyObject *kids = PyTuple_Pack(2, fn, self);
    if (!kids) return -1;
    return ing_fp_push(w, obj, FP_AS_ITSELF, FP_METHOD_KIND, kids, 2, 0, own);
}

/* Under its full name in its module, or under its short one there or elsewhere. */
static int named_builtin(fp_walk *w, PyObject *obj, PyObject *module, PyObject *name,
                         Py_ssize_t own) {
    PyObject *found = ing_fp_resolve(w->fp, module, name);
    PyObject *brief = found == obj ? NULL : ing_fp_attr(w->fp, obj, w->fp->n.__name__);
    Py_XDECREF(found);
    if (!brief) return ing_fp_named(w, obj, module, name, own);
    PyObject *home = home_of(w, obj);
    int rc = home ? ing_fp_named(w, obj, home, brief, own) : -1;
    Py_XDECREF(home);
    Py_DECREF(brief);
    return rc;
}

static int visit_builtin(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyObject *self = PyCFunction_GET_SELF(obj);
    PyObject *name = PyObject_GetAttr(obj, w->fp->n.__qualname__);
    PyObject *module = name ? ing_fp_attr(w->fp, obj, w->fp->n.__module__) : NULL;
    int rc = -1;
    if (name && (!self || self == Py_None || PyModule_Check(self))) {
        rc = named_builtin(w, obj, module ? module : Py_None, name, own);
    } else if (name) {
        int known = PyType_Check(self) ? 0 : by_module_name(w, obj, self, own);
        PyObject *kids = known ? NULL : PyTuple_Pack(2, name, self);
        rc = known == 1 ? 0 : -1;
        if (kids)
            rc = ing_fp_push(w, obj, FP_AS_ITSELF, FP_METHOD_KIND, kids, 2, 0, own);
    }
    Py_XDECREF(name);
    Py_XDECREF(module);
    return rc;
}

static int visit_ufunc(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyObject *name = ing_fp_attr(w->fp, obj, w->fp->n.__name__);
    PyObject *module = PyUnicode_FromString("numpy");
    PyObject *known = module && name ? ing_fp_resolve(w->fp, module, name) : NULL;
    if (module && known != obj) Py_SETREF(module, home_of(w, obj));
    Py_XDECREF(known);
    int rc = module && name ? ing_fp_named(w, obj, module, name, own) : -1;
    Py_XDECREF(name);
    Py_XDECREF(module);
    return rc;
}

static int by_plan(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    fp_plan *p = ing_fp_plan_get(w, Py_TYPE(obj));
    if (!p) return -1;
    switch ((fp_rule)p->rule) {
    case FP_RULE_INSTANCE: return visit_instance(w, obj, p, own);
    case FP_RULE_SUB: return visit_sub(w, obj, p, own);
    case FP_RULE_REDUCE: return ing_fp_reduce(w, obj, own);
    case FP_RULE_ENUM: return visit_enum(w, obj, p, own);
    case FP_RULE_CLASS: return ing_fp_class_value(w, (PyTypeObject *)obj, own);
    case FP_RULE_FUNCTION: return ing_fp_function(w, obj, FP_AS_ITSELF, own);
    case FP_RULE_METHOD: return visit_method(w, obj, own);
    case FP_RULE_BUILTIN: return visit_builtin(w, obj, own);
    case FP_RULE_MODULE: return ing_fp_module(w, obj, own);
    case FP_RULE_CODE: return ing_fp_code(w, obj, own);
    case FP_RULE_PROXY: return visit_proxy(w, obj, own);
    case FP_RULE_VIEW: return visit_view(w, obj, own);
    case FP_RULE_DEQUE: return visit_deque(w, obj, p, own);
    case FP_RULE_ARRAY: return ing_fp_array(w, obj, p, own);
    case FP_RULE_SCALAR: return ing_fp_scalar(w, obj, p, own);
    case FP_RULE_DTYPE: return ing_fp_dtype(w, obj, own);
    case FP_RULE_UFUNC: return visit_ufunc(w, obj, own);
    case FP_RULE_BUFFER: return ing_fp_buffer(w, obj, p, own);
    case FP_RULE_IDENTITY: return visit_identity(w, obj, own);
    case FP_RULE_ORDERED: return visit_ordered(w, obj, own);
    case FP_RULE_CONTENT: return visit_content(w, obj);
    case FP_RULE_KERNEL: return ing_fp_kernel(w, obj, own);
    case FP_RULE_PIECES: return visit_pieces(w, obj, p, own);
    case FP_RULE_ING_DTYPE:
        return ing_fp_put_text(w, FP_DATA, FP_DATA_LONG,
                               ing_dtype_name(((ing_py_dtype *)obj)->id),
                               strlen(ing_dtype_name(((ing_py_dtype *)obj)->id)));
    case FP_RULE_REFUSE: return ing_fp_refuse(w, obj, p->why, p->remedy);
    }
    return -1;
}

/* Whatever user code raises while an object is read becomes a refusal of that object. */
int ing_fp_visit_planned(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    uint32_t depth = w->frames.len;
    int rc = by_plan(w, obj, own);
    if (rc == 0 || w->cyclic || w->frames.len != depth) return rc;
    return ing_fp_refuse(w, obj, "it cannot be read", NULL);
}
