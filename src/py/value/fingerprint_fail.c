/* What happens outside the rules: overrides, skips, the fallback, and refusal. A refusal
 * names the path from the root to the object; the path is read off the open frames and
 * made into text only here. Runs no user code for it: keys are shown when they are plain,
 * else by their type. */
#include "py/value/fingerprint_int.h"

/* ---- the path -------------------------------------------------------------------------------- */

static int append(PyObject **text, PyObject *more) {
    if (!more) return -1;
    PyObject *both = PyUnicode_Concat(*text, more);
    Py_DECREF(more);
    if (!both) return -1;
    Py_SETREF(*text, both);
    return 0;
}

static PyObject *show(PyObject *key) {
    bool plain = PyUnicode_CheckExact(key) || PyLong_CheckExact(key) ||
                 PyFloat_CheckExact(key) || PyBytes_CheckExact(key) ||
                 PyBool_Check(key) || key == Py_None;
    if (!plain) return PyUnicode_FromFormat("<%.100s>", Py_TYPE(key)->tp_name);
    PyObject *text = PyObject_Repr(key);
    if (text && PyUnicode_GET_LENGTH(text) > 80) {
        PyObject *head = PyUnicode_Substring(text, 0, 77);
        Py_SETREF(text, head ? PyUnicode_FromFormat("%U...", head) : NULL);
        Py_XDECREF(head);
    }
    return text;
}

static PyObject *in_brackets(PyObject *key) {
    PyObject *text = show(key);
    PyObject *out = text ? PyUnicode_FromFormat("[%U]", text) : NULL;
    Py_XDECREF(text);
    return out;
}

static PyObject *dict_label(const fp_frame *f) {
    PyObject *dict = f->src ? f->src : f->obj, *key = NULL, *value;
    Py_ssize_t pos = 0;
    for (uint32_t i = 0; i <= f->groups; i++)
        if (!PyDict_Next(dict, &pos, &key, &value)) return PyUnicode_FromString("[?]");
    if (!f->half) return in_brackets(key);
    PyObject *text = show(key);
    PyObject *out = text ? PyUnicode_FromFormat(".keys()[%U]", text) : NULL;
    Py_XDECREF(text);
    return out;
}

static PyObject *kid(fp_walk *w, const fp_frame *f, Py_ssize_t i) {
    return i >= 0 && i < ing_fp_children(w, f) ? ing_fp_child(w, f, i) : NULL;
}

/* Attributes: declared fields by the plan, the rest as pairs of name and value. */
static PyObject *attribute_label(fp_walk *w, const fp_frame *f, Py_ssize_t i) {
    uint32_t ordered = ing_fp_ordered(w, f);
    PyObject *name = NULL;
    if (i >= (Py_ssize_t)ordered) {
        name = kid(w, f, (i - ordered) % 2 ? i - 1 : i);
    } else if (f->kind != FP_CONTENT_KIND && f->kind != FP_FUNC_KIND &&
               f->kind != FP_KERNEL_KIND) {
        fp_plan *p = ing_fp_plan_get(w, Py_TYPE(f->obj));
        if (!p) return NULL;
        Py_ssize_t at = i - ((Py_ssize_t)ordered - PyTuple_GET_SIZE(p->fields));
        if (at < 0) return PyUnicode_FromString(".__class__");
        name = PyTuple_GET_ITEM(p->fields, at);
    }
    if (name && PyUnicode_Check(name))
        return PyUnicode_FromFormat(
            PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '.' ? "%U"
                                                                              : ".%U",
            name);
    return PyUnicode_FromFormat("<%s>", f->kind == FP_FUNC_KIND ? "defaults" : "part");
}

PyObject *ing_fp_label(fp_walk *w, uint32_t frame) {
    const fp_frame *f = &w->frames.at[frame];
    if (f->dict) return dict_label(f);
    Py_ssize_t i = (Py_ssize_t)f->pos - 1;
    uint8_t above = frame ? w->frames.at[frame - 1].kind : FP_KIND_N;
    PyObject *k;
    switch ((fp_kind)f->kind) {
    case FP_TUPLE_KIND:
        if (above == FP_ODICT_KIND || above == FP_ORDERED_KIND ||
            above == FP_TABLE_KIND)
            return PyUnicode_FromString("");
        return PyUnicode_FromFormat("[%zd]", i);
    case FP_LIST_KIND: return PyUnicode_FromFormat("[%zd]", i);
    case FP_DEQUE_KIND: return PyUnicode_FromFormat("[%zd]", i - 2);
    case FP_SET_KIND:
    case FP_FROZENSET_KIND:
    case FP_KEYS_KIND:
    case FP_VALUES_KIND: return PyUnicode_FromString("{...}");
    case FP_ODICT_KIND:
    case FP_TABLE_KIND:
    case FP_ORDERED_KIND:
        k = kid(w, f, i);
        return k && PyTuple_Check(k) ? in_brackets(PyTuple_GET_ITEM(k, 0))
                                     : PyUnicode_FromString("[?]");
    case FP_SUB_KIND: return PyUnicode_FromString("");
    case FP_INSTANCE_KIND:
    case FP_STATE_KIND:
    case FP_FUNC_KIND:
    case FP_KERNEL_KIND:
    case FP_MODULE_KIND:
    case FP_CONTENT_KIND: return attribute_label(w, f, i);
    case FP_ENUM_KIND: return PyUnicode_FromString(".value");
    case FP_METHOD_KIND: return PyUnicode_FromString(i ? ".__self__" : ".__func__");
    case FP_REDUCE_KIND:
        if (f->live && i == 0) return PyUnicode_FromString(".__class__");
        return PyUnicode_FromFormat(".__reduce_ex__(4)[%zd]", f->live ? i - 1 : i);
    case FP_PROXY_KIND: return PyUnicode_FromString("");
    default: return PyUnicode_FromFormat("<%zd>", i);
    }
}

static PyObject *path_of(fp_walk *w) {
    PyObject *path = w->root_name && PyUnicode_Check(w->root_name)
                         ? Py_NewRef(w->root_name)
                         : PyUnicode_FromString("obj");
    for (uint32_t i = 0; path && i < w->frames.len; i++) {
        if (w->frames.len > 64 && i == 24) { /* deep: the ends tell enough */
            uint32_t cut = w->frames.len - 48;
            if (append(&path, PyUnicode_FromFormat(" ...%u more... ", cut)) < 0)
                Py_CLEAR(path);
            i += cut;
            if (!path) break;
        }
        if (append(&path, ing_fp_label(w, i)) < 0) Py_CLEAR(path);
    }
    return path;
}

/* ---- refusal ------------------------------------------------------------------------------------- */

PyObject *ing_fp_take_exception(void) {
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

static void raise_at(fp_walk *w, const char *why, const char *remedy, PyObject *cause) {
    PyObject *path = path_of(w);
    PyObject *detail =
        cause ? PyUnicode_FromFormat(" (%s: %S)", Py_TYPE(cause)->tp_name, cause)
              : PyUnicode_FromString("");
    if (!remedy)
        remedy = "leave it out (field metadata {\"fingerprint\": False}), or give "
                 "Fingerprinter an override for its type";
    if (path && detail) {
        PyErr_Format(w->fp->error, "%U: %s%U\n  help: %s", path, why, detail, remedy);
        PyObject *now = cause ? ing_fp_take_exception() : NULL;
        if (now) {
            PyException_SetCause(now, Py_NewRef(cause));
            PyException_SetContext(now, Py_NewRef(cause));
            PyErr_SetObject((PyObject *)Py_TYPE(now), now);
            Py_DECREF(now);
        }
    }
    Py_XDECREF(path);
    Py_XDECREF(detail);
}

int ing_fp_refuse(fp_walk *w, PyObject *obj, const char *why, const char *remedy) {
    if (w->interrupted || ing_fp_lost(w->fp, w->losses) < 0) return -1;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    if (PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_MemoryError) ||
                             PyErr_ExceptionMatches(w->fp->error)))
        return -1;
    PyObject *cause = ing_fp_take_exception();
    if (w->fallback && obj) {
        PyObject *r = PyObject_CallOneArg(w->fallback, obj);
        if (r && r != Py_NotImplemented) {
            int rc = ing_fp_pieces(w, obj, r);
            Py_DECREF(r);
            Py_XDECREF(cause);
            return rc;
        }
        Py_XDECREF(r);
        if (!r) {
            Py_XDECREF(cause);
            return -1;
        }
    }
    raise_at(w, why, remedy, cause);
    Py_XDECREF(cause);
    return -1;
}

/* ---- overrides ------------------------------------------------------------------------------------- */

int ing_fp_pieces(fp_walk *w, PyObject *obj, PyObject *pieces) {
    if (!w->fp->pieces || Py_TYPE(pieces) != w->fp->pieces) {
        PyErr_Format(PyExc_TypeError,
                     "an override must return Pieces or NotImplemented, not %.100s",
                     Py_TYPE(pieces)->tp_name);
        return -1;
    }
    PyObject *tag = PyObject_GetAttr(pieces, w->fp->n.tag_);
    PyObject *kids = tag ? PyObject_GetAttr(pieces, w->fp->n.children_) : NULL;
    PyObject *order = kids ? PyObject_GetAttr(pieces, w->fp->n.ordered_) : NULL;
    int rc = order && PyTuple_CheckExact(kids) && PyUnicode_CheckExact(tag) ? 0 : -1;
    if (rc == 0) {
        uint32_t n = (uint32_t)PyTuple_GET_SIZE(kids);
        bool yes = order == Py_True;
        rc = ing_fp_push(w, obj, FP_AS_ITSELF, FP_PIECES_KIND, Py_NewRef(kids),
                         yes ? n : 0, yes ? 0 : n, 1);
    }
    if (rc == 0) rc = ing_fp_put_str(w, tag);
    Py_XDECREF(tag);
    Py_XDECREF(kids);
    Py_XDECREF(order);
    return rc;
}

bool ing_fp_skipped_name(fp_walk *w, PyTypeObject *type, PyObject *name) {
    bool skipped = false;
    for (Py_ssize_t i = 0; w->skips && i < PyTuple_GET_SIZE(w->skips); i++) {
        PyObject *s = PyTuple_GET_ITEM(w->skips, i);
        if (!PyTuple_Check(s) || PyTuple_GET_SIZE(s) != 2) continue;
        if (!PyType_IsSubtype(type, (PyTypeObject *)PyTuple_GET_ITEM(s, 0))) continue;
        uint64_t bit = (uint64_t)1 << (i & 63);
        w->skip_met |= bit;
        if (PyUnicode_Check(name) &&
            PyUnicode_Compare(PyTuple_GET_ITEM(s, 1), name) == 0) {
            w->skip_hit |= bit;
            skipped = true;
        }
    }
    return skipped;
}

int ing_fp_skips_unused(fp_walk *w) {
    uint64_t unused = w->skip_met & ~w->skip_hit;
    for (Py_ssize_t i = 0; unused && w->skips && i < PyTuple_GET_SIZE(w->skips); i++) {
        PyObject *s = PyTuple_GET_ITEM(w->skips, i);
        if (!PyTuple_Check(s) || !(unused >> (i & 63) & 1)) continue;
        PyObject *cls = PyTuple_GET_ITEM(s, 0);
        if (PyErr_WarnFormat(PyExc_UserWarning, 3,
                             "skip: no %.200s that was hashed has an attribute %R, so "
                             "(%.200s, %R) left nothing out",
                             ((PyTypeObject *)cls)->tp_name, PyTuple_GET_ITEM(s, 1),
                             ((PyTypeObject *)cls)->tp_name,
                             PyTuple_GET_ITEM(s, 1)) < 0)
            return -1;
    }
    return 0;
}

static bool skipped_type(fp_walk *w, PyTypeObject *type) {
    for (Py_ssize_t i = 0; w->skips && i < PyTuple_GET_SIZE(w->skips); i++) {
        PyObject *s = PyTuple_GET_ITEM(w->skips, i);
        if (PyType_Check(s) && PyType_IsSubtype(type, (PyTypeObject *)s)) return true;
    }
    return false;
}

static PyObject *override_for(fp_walk *w, PyObject *cls) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(w->overrides); i++) {
        PyObject *pair = PyTuple_GET_ITEM(w->overrides, i);
        if (PyTuple_GET_ITEM(pair, 0) == cls) return PyTuple_GET_ITEM(pair, 1);
    }
    return NULL;
}

int ing_fp_custom(fp_walk *w, PyObject *obj) {
    if (skipped_type(w, Py_TYPE(obj)))
        return ing_fp_put_tag(w, FP_SKIPPED) < 0 ? -1 : 1;
    PyObject *mro = Py_NewRef(Py_TYPE(obj)->tp_mro); /* an override may set another */
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && w->overrides && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *f = override_for(w, PyTuple_GET_ITEM(mro, i));
        if (!f || (rc = ing_fp_known(w, obj, FP_AS_ITSELF)) != 0) continue;
        PyObject *r = PyObject_CallOneArg(f, obj);
        if (!r)
            rc = -1;
        else if (r != Py_NotImplemented)
            rc = ing_fp_pieces(w, obj, r) < 0 ? -1 : 1;
        Py_XDECREF(r);
    }
    Py_DECREF(mro);
    return rc;
}
