/* The fingerprint part of the module: its state, its functions, and one level of a value
 * as Python objects, which ingot.trace and ingot.explain are made of. */
#include "py/value/fingerprint_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- one level ---------------------------------------------------------------------------------- */

static const char *kind_text(uint8_t kind) {
    static const char *const text[] = {
#define X(name, t) t,
        FP_KIND_LIST(X)
#undef X
    };
    return kind < FP_KIND_N ? text[kind] : "?";
}

static PyObject *label_of(fp_walk *w, uint32_t pos, bool half, uint32_t groups) {
    fp_frame *f = ing_fp_top(w);
    f->pos = pos;
    f->half = half;
    f->groups = groups;
    return ing_fp_label(w, w->frames.len - 1);
}

static int append_child(PyObject *list, PyObject *label, PyObject *v) {
    PyObject *pair = label ? PyTuple_Pack(2, label, v) : NULL;
    int rc = pair ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(label);
    return rc;
}

static int dict_children(fp_walk *w, PyObject *list) {
    fp_frame *f = ing_fp_top(w);
    PyObject *dict = f->src ? f->src : f->obj, *key, *value;
    Py_ssize_t pos = 0;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && PyDict_Next(dict, &pos, &key, &value); i++) {
        rc = append_child(list, label_of(w, 0, true, i), key);
        if (rc == 0) rc = append_child(list, label_of(w, 0, false, i), value);
    }
    return rc;
}

static int item_children(fp_walk *w, PyObject *list) {
    fp_frame *f = ing_fp_top(w);
    Py_ssize_t n = ing_fp_children(w, f);
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++)
        rc = append_child(list, label_of(w, (uint32_t)i + 1, false, 0),
                          ing_fp_child(w, f, i));
    return rc;
}

/* (kind, head: bytes, ordered, group size, [(label, child), ...], live) of what opens a
 * frame, or (None, bytes) of what is written at once. Children may be marks of the engine, which
 * this function takes again. */
PyObject *ing_fp_level(fp_walk *w, PyObject *obj) {
    if (ing_fp_visit(w, obj, 0) < 0) return NULL;
    if (!w->frames.len)
        return Py_BuildValue("(Oy#)", Py_None, (const char *)w->out,
                             (Py_ssize_t)w->len);
    fp_frame *f = ing_fp_top(w);
    const uint8_t *p = w->out + f->start;
    uint32_t ordered =
        p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 24;
    bool dict = f->dict, pairs = f->pairs, live = f->live;
    uint8_t kind = f->kind;
    PyObject *list = PyList_New(0);
    PyObject *head = PyBytes_FromStringAndSize(
        (const char *)p + FP_HEAD, (Py_ssize_t)(w->len - f->start - FP_HEAD));
    if (list && (dict ? dict_children(w, list) : item_children(w, list)) < 0)
        Py_CLEAR(list);
    PyObject *out = list && head
                        ? Py_BuildValue("(sOIiOO)", kind_text(kind), head, ordered,
                                        pairs ? 2 : 1, list, live ? Py_True : Py_False)
                        : NULL;
    Py_XDECREF(list);
    Py_XDECREF(head);
    return out;
}

/* ---- functions of the module ---------------------------------------------------------------------- */

static int take_args(Py_ssize_t n) {
    if (n == 2) return 0;
    PyErr_SetString(PyExc_TypeError, "expected (object, configuration)");
    return -1;
}

/* fingerprint(obj, config) -> str, or (str, tokens) when it holds an Identity */
static PyObject *py_fingerprint(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    if (take_args(n) < 0) return NULL;
    fp_walk w;
    ing_hash128 d;
    PyObject *out = NULL;
    ing_fp_walk_init(&w, ing_py_state_in(module));
    if (ing_fp_configure(&w, args[1]) == 0 && ing_fp_run(&w, args[0], &d) == 0) {
        char hex[33];
        ing_hash_hex(d, hex);
        out = w.held ? Py_BuildValue("(sO)", hex, w.held) : PyUnicode_FromString(hex);
    }
    ing_fp_walk_fini(&w);
    return out;
}

static PyObject *py_level(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    if (take_args(n) < 0) return NULL;
    fp_walk w;
    ing_fp_walk_init(&w, ing_py_state_in(module));
    PyObject *out =
        ing_fp_configure(&w, args[1]) == 0 ? ing_fp_level(&w, args[0]) : NULL;
    ing_fp_walk_fini(&w);
    return out;
}

static int hash_descriptor(fp_walk *w, int fd, ing_hasher *h, uint64_t *size) {
    enum { CHUNK = 1 << 20 };
    uint8_t *buf = ing_malloc(CHUNK);
    if (!buf) return ing_fp_no_memory();
    ssize_t n = 0;
    int rc = 0;
    do {
        Py_BEGIN_ALLOW_THREADS n = read(fd, buf, CHUNK);
        Py_END_ALLOW_THREADS if (n < 0 && errno != EINTR) rc =
            (PyErr_SetFromErrno(PyExc_OSError), -1);
        if (n > 0) {
            ing_hasher_raw(h, buf, (size_t)n);
            *size += (uint64_t)n;
        }
        if (rc == 0) rc = ing_fp_signals(w);
    } while (rc == 0 && n != 0);
    ing_free(buf);
    return rc;
}

/* _file_digest(path) -> (size, digest of the content) */
static PyObject *py_file_digest(PyObject *module, PyObject *path) {
    (void)module;
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    int fd = open(PyBytes_AS_STRING(bytes), O_RDONLY | O_CLOEXEC);
    Py_DECREF(bytes);
    if (fd < 0) return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    fp_walk w = {0};
    ing_hasher h;
    uint64_t size = 0;
    ing_hasher_init(&h);
    int rc = hash_descriptor(&w, fd, &h, &size);
    close(fd);
    if (rc < 0) return NULL;
    char hex[33];
    ing_hash_hex(ing_hasher_done(&h), hex);
    return Py_BuildValue("(Ks)", (unsigned long long)size, hex);
}

/* register(Pieces, Identity, Ordered, Content): ingot.fingerprint tells its classes. */
static PyObject *py_register(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    ing_py_fp *fp = ing_py_state_in(module)->fp;
    PyTypeObject **to[] = {&fp->pieces, &fp->identity, &fp->ordered, &fp->content};
    for (Py_ssize_t i = 0; i < n && i < 4; i++) {
        if (!PyType_Check(args[i])) return PyErr_Format(PyExc_TypeError, "not a class");
        Py_XSETREF(*to[i], (PyTypeObject *)Py_NewRef(args[i]));
    }
    Py_RETURN_NONE;
}

static const PyMethodDef functions[] = {
    {"_fingerprint", (PyCFunction)(void (*)(void))py_fingerprint, METH_FASTCALL,
     "_fingerprint(obj, config) -> digest, or (digest, tokens)"},
    {"_fingerprint_level", (PyCFunction)(void (*)(void))py_level, METH_FASTCALL,
     "_fingerprint_level(obj, config) -> one level of what is hashed"},
    {"_file_digest", py_file_digest, METH_O, "_file_digest(path) -> (size, digest)"},
    {"_fingerprint_register", (PyCFunction)(void (*)(void))py_register, METH_FASTCALL,
     "_fingerprint_register(Pieces, Identity, Ordered, Content)"},
    {0},
};

/* ---- marks -------------------------------------------------------------------------------------------- */

static int as_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((fp_as *)self)->obj);
    return 0;
}

static int as_clear(PyObject *self) {
    Py_CLEAR(((fp_as *)self)->obj);
    return 0;
}

static void as_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    as_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *as_repr(PyObject *self) {
    static const char *const how[] = {"itself", "class", "state", "base value",
                                      "code",   "self",  "unset", "class as value"};
    fp_as *as = (fp_as *)self;
    return PyUnicode_FromFormat("<%s>", how[as->how]);
}

static PyObject *as_obj(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((fp_as *)self)->obj);
}

static const PyGetSetDef as_getset[] = {
    {"obj", as_obj, NULL, "what is seen", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const PyType_Slot as_slots[] = {
    {Py_tp_traverse, as_traverse},     {Py_tp_clear, as_clear},
    {Py_tp_dealloc, as_dealloc},       {Py_tp_repr, as_repr},
    {Py_tp_getset, (void *)as_getset}, {0, NULL},
};

static const PyType_Spec as_spec = {
    .name = "ingot._core.FingerprintMark",
    .basicsize = sizeof(fp_as),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = (PyType_Slot *)as_slots,
};

/* ---- state ----------------------------------------------------------------------------------------------- */

static int intern_names(fp_names *n) {
#define X(name, text) \
    if (!(n->name = PyUnicode_InternFromString(text))) return -1;
    FP_NAME_LIST(X)
#undef X
    return 0;
}

int ing_py_fingerprint_add(PyObject *module, ing_py_state *st) {
    ing_py_fp *fp = st->fp = ing_calloc(1, sizeof *fp);
    if (!fp) return ing_fp_no_memory();
    if (intern_names(&fp->n) < 0) return -1;
    fp->texts = PyDict_New();
    fp->origins = PyDict_New();
    fp->as_type = ing_py_add_type(module, &as_spec);
    fp->error = PyErr_NewExceptionWithDoc("ingot.FingerprintError",
                                          "A value cannot be hashed under the rules in "
                                          "force; says where it is and what to "
                                          "do.",
                                          PyExc_TypeError, NULL);
    if (!fp->texts || !fp->origins || !fp->as_type || !fp->error) return -1;
    fp_as *unset = PyObject_GC_New(fp_as, fp->as_type);
    if (!unset) return -1;
    unset->obj = Py_NewRef(Py_None);
    unset->how = FP_AS_UNSET;
    fp->unset = (PyObject *)unset;
    fp->object_reduce_ex =
        Py_XNewRef(ing_fp_type_attr(fp, &PyBaseObject_Type, fp->n.__reduce_ex__));
    fp->object_reduce =
        Py_XNewRef(ing_fp_type_attr(fp, &PyBaseObject_Type, fp->n.__reduce__));
    fp->object_getstate =
        Py_XNewRef(ing_fp_type_attr(fp, &PyBaseObject_Type, fp->n.__getstate__));
    if (PyModule_AddObjectRef(module, "FingerprintError", fp->error) < 0) return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}

int ing_py_fingerprint_traverse(ing_py_state *st, visitproc visit, void *arg) {
    ing_py_fp *fp = st->fp;
    if (!fp) return 0;
    Py_VISIT(fp->error);
    Py_VISIT(fp->as_type);
    Py_VISIT(fp->unset);
    Py_VISIT(fp->texts);
    Py_VISIT(fp->origins);
    Py_VISIT(fp->helpers);
    Py_VISIT(fp->reach);
    Py_VISIT(fp->pieces);
    Py_VISIT(fp->identity);
    Py_VISIT(fp->ordered);
    Py_VISIT(fp->content);
    return 0;
}

void ing_py_fingerprint_clear(ing_py_state *st) {
    ing_py_fp *fp = st->fp;
    if (!fp) return;
    Py_CLEAR(fp->error);
    Py_CLEAR(fp->unset);
    Py_CLEAR(fp->as_type);
    Py_CLEAR(fp->texts);
    Py_CLEAR(fp->origins);
    Py_CLEAR(fp->helpers);
    Py_CLEAR(fp->reach);
    Py_CLEAR(fp->pieces);
    Py_CLEAR(fp->identity);
    Py_CLEAR(fp->ordered);
    Py_CLEAR(fp->content);
    Py_CLEAR(fp->object_reduce_ex);
    Py_CLEAR(fp->object_reduce);
    Py_CLEAR(fp->object_getstate);
    Py_CLEAR(fp->lost);
#define X(name, text) Py_CLEAR(fp->n.name);
    FP_NAME_LIST(X)
#undef X
    ing_fp_plans_fini(&fp->plans);
    ing_free(fp->slab);
}

void ing_py_fingerprint_fini(ing_py_state *st) {
    ing_free(st->fp);
    st->fp = NULL;
}
