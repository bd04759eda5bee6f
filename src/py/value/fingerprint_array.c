/* Arrays: NumPy's, and whatever else shows its memory through the buffer protocol. Memory
 * is hashed where it lies (fingerprint_memory.c). NumPy is never imported here: an array exists, so it is loaded. */
#include "py/value/fingerprint_int.h"

/* One data item: always in the long form, so that its digest is that of the bytes. */
static int put_data(fp_walk *w, size_t n, ing_hash128 d) {
    if (ing_fp_room(w, 25) < 0) return -1;
    uint8_t *to = w->out + w->len;
    to[0] = FP_DATA_LONG;
    ing_fp_put64(to + 1, n);
    ing_fp_put64(to + 9, d.lo);
    ing_fp_put64(to + 17, d.hi);
    w->len += 25;
    return 0;
}

static int put_shape(fp_walk *w, const Py_buffer *v) {
    uint8_t le[8 * PyBUF_MAX_NDIM];
    for (int i = 0; i < v->ndim; i++) ing_fp_put64(le + 8 * i, (uint64_t)v->shape[i]);
    return ing_fp_put_text(w, FP_DATA, FP_DATA_LONG, le, 8 * (size_t)v->ndim);
}

/* x87 long doubles: 10 bytes of value, 6 of whatever was in memory before. */
static void clear_padding(uint8_t *p, size_t n) {
    for (size_t i = 0; i + 16 <= n; i += 16) memset(p + i + 10, 0, 6);
}

/* The next code of a format that is one of `codes`; names of fields (:x:) are none. */
static const char *find_code(const char *format, const char *codes) {
    for (const char *p = format; p && *p; p++) {
        if (*p == ':') {
            p = strchr(p + 1, ':');
            if (!p) return NULL;
        } else if (strchr(codes, *p)) {
            return p;
        }
    }
    return NULL;
}

static bool padded(const char *format) {
#if defined(__x86_64__)
    return find_code(format, "g") != NULL;
#else
    (void)format;
    return false;
#endif
}

/* Addresses are no values: pointers, Python objects and the texts of ctypes (z, Z; but Zd
 * is a complex number) inside a buffer. */
static bool holds_addresses(const char *format) {
    if (find_code(format, "PO&Xz")) return true;
    for (const char *p = format; (p = find_code(p, "Z")) != NULL; p++)
        if (!p[1] || !strchr("fdg", p[1])) return true;
    return false;
}

/* A struct with long doubles: there is no telling where their unused bytes lie. */
static bool is_unclear(const char *format) {
    return padded(format) && find_code(format, "{") != NULL;
}

/* Memory of another shape than rows and strides (PIL's): copied first. */
static int hash_indirect(fp_walk *w, const Py_buffer *v, ing_hash128 *out) {
    uint8_t *p = ing_malloc(v->len ? (size_t)v->len : 1);
    if (!p) return ing_fp_no_memory();
    int rc = PyBuffer_ToContiguous(p, (Py_buffer *)v, v->len, 'C');
    if (rc == 0 && padded(v->format)) clear_padding(p, (size_t)v->len);
    if (rc == 0) rc = ing_fp_hash_memory(w, p, (size_t)v->len, true, out);
    ing_free(p);
    return rc;
}

static int put_view(fp_walk *w, const Py_buffer *v) {
    ing_hash128 d;
    bool pad = padded(v->format);
    if (put_shape(w, v) < 0) return -1;
    int rc = v->suboffsets ? hash_indirect(w, v, &d)
             : pad || !PyBuffer_IsContiguous(v, 'C')
                 ? ing_fp_hash_view(w, v, pad, &d)
                 : ing_fp_hash_memory(w, v->buf, (size_t)v->len, true, &d);
    return rc < 0 ? -1 : put_data(w, (size_t)v->len, d);
}

/* ---- NumPy ------------------------------------------------------------------------------------ */

typedef struct dtype_info {
    PyObject *text; /* dtype.str */
    char kind;      /* dtype.kind, 0 = has fields, a sub-array or no fixed form */
} dtype_info;

static int dtype_read(fp_walk *w, PyObject *dtype, dtype_info *d) {
    PyObject *names = PyObject_GetAttr(dtype, w->fp->n.names_);
    PyObject *sub = names ? PyObject_GetAttr(dtype, w->fp->n.subdtype_) : NULL;
    PyObject *meta = sub ? PyObject_GetAttr(dtype, w->fp->n.metadata_) : NULL;
    PyObject *kind = meta ? PyObject_GetAttr(dtype, w->fp->n.kind_) : NULL;
    d->text = kind ? PyObject_GetAttr(dtype, w->fp->n.str_) : NULL;
    if (d->text) {
        bool simple = names == Py_None && sub == Py_None && meta == Py_None &&
                      PyUnicode_Check(kind) && PyUnicode_GET_LENGTH(kind) == 1;
        d->kind = simple ? (char)PyUnicode_READ_CHAR(kind, 0) : 0;
    }
    Py_XDECREF(names);
    Py_XDECREF(sub);
    Py_XDECREF(meta);
    Py_XDECREF(kind);
    return d->text ? 0 : -1;
}

int ing_fp_dtype(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    dtype_info d = {0};
    if (dtype_read(w, obj, &d) < 0) return -1;
    int rc;
    if (d.kind && d.kind != 'T' && d.kind != 'V') {
        PyObject *kids = PyTuple_Pack(1, d.text);
        rc = kids ? ing_fp_push(w, obj, FP_AS_ITSELF, FP_NAMED_KIND, kids, 1, 0, own)
                  : -1;
    } else {
        rc = ing_fp_reduce(w, obj, own);
    }
    Py_DECREF(d.text);
    return rc;
}

static bool is_long_double(fp_walk *w, PyObject *dtype) {
    PyObject *c = ing_fp_attr(w->fp, dtype, w->fp->n.char_);
    bool yes = c && PyUnicode_Check(c) &&
               (PyUnicode_CompareWithASCIIString(c, "g") == 0 ||
                PyUnicode_CompareWithASCIIString(c, "G") == 0);
    Py_XDECREF(c);
    return yes;
}

/* One field of a record that begins at byte `at`: its size, when it is of plain numbers or
 * text; 0: it is not; -1 raised. */
static Py_ssize_t plain_field(fp_walk *w, PyObject *entry, Py_ssize_t at) {
    if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) < 2) return 0;
    PyObject *field = PyTuple_GET_ITEM(entry, 0);
    Py_ssize_t offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(entry, 1));
    PyObject *size = PyObject_GetAttrString(field, "itemsize");
    PyObject *base = size ? PyObject_GetAttrString(field, "base") : NULL;
    dtype_info d = {0};
    bool plain = base && dtype_read(w, base, &d) == 0 && offset == at && d.kind &&
                 strchr("biufcSUmM", d.kind) && !is_long_double(w, base);
    Py_ssize_t n = plain ? PyLong_AsSsize_t(size) : 0;
    Py_XDECREF(d.text);
    Py_XDECREF(base);
    Py_XDECREF(size);
    return PyErr_Occurred() ? -1 : n;
}

/* Is a record nothing but such fields, side by side? Then its memory is its value. */
static int is_packed(fp_walk *w, PyObject *dtype, PyObject *names) {
    PyObject *size = PyObject_GetAttrString(dtype, "itemsize");
    PyObject *fields = size ? PyObject_GetAttrString(dtype, "fields") : NULL;
    Py_ssize_t n = fields && PyTuple_Check(names) ? PyTuple_GET_SIZE(names) : 0, at = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *entry = PyObject_GetItem(fields, PyTuple_GET_ITEM(names, i));
        Py_ssize_t step = entry ? plain_field(w, entry, at) : -1;
        Py_XDECREF(entry);
        at = step <= 0 ? -1 : at + step;
        if (at < 0) break;
    }
    bool whole = n && at == (size ? PyLong_AsSsize_t(size) : -2);
    Py_XDECREF(fields);
    Py_XDECREF(size);
    return PyErr_Occurred() ? -1 : whole;
}

/* The fields of a structured array, one by one: what is between them is no value. */
static int add_fields(fp_walk *w, PyObject *obj, PyObject *dtype, PyObject *names,
                      PyObject *kids) {
    Py_ssize_t n = PyTuple_Check(names) ? PyTuple_GET_SIZE(names) : 0;
    PyObject *shape = PyObject_GetAttr(obj, w->fp->n.shape_);
    int rc = shape ? PyList_Append(kids, dtype) : -1;
    if (rc == 0) rc = PyList_Append(kids, shape);
    Py_XDECREF(shape);
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *field = PyObject_GetItem(obj, PyTuple_GET_ITEM(names, i));
        rc = field ? PyList_Append(kids, field) : -1;
        Py_XDECREF(field);
    }
    return rc;
}

/* dtype, shape, then all elements as Python objects. */
static int add_objects(fp_walk *w, PyObject *obj, PyObject *dtype, PyObject *kids) {
    PyObject *flat = PyObject_CallMethodNoArgs(obj, w->fp->n.ravel_);
    PyObject *items = flat ? PyObject_CallMethodNoArgs(flat, w->fp->n.tolist_) : NULL;
    PyObject *shape = items ? PyObject_GetAttr(obj, w->fp->n.shape_) : NULL;
    int rc = shape ? PyList_Append(kids, dtype) : -1;
    if (rc == 0) rc = PyList_Append(kids, shape);
    Py_ssize_t n = PyList_GET_SIZE(kids);
    if (rc == 0) rc = PyList_SetSlice(kids, n, n, items);
    Py_XDECREF(flat);
    Py_XDECREF(items);
    Py_XDECREF(shape);
    return rc;
}

static int push_kids(fp_walk *w, PyObject *obj, fp_plan *p, PyObject *kids,
                     Py_ssize_t own) {
    uint32_t n = kids ? (uint32_t)PyList_GET_SIZE(kids) : 0;
    return ing_fp_push_instance(w, obj, p, FP_ARRAY_KIND, kids, n, false, own);
}

/* A user's subclass has attributes of its own; NumPy's (memmap) have only bookkeeping. */
static PyObject *array_kids(fp_walk *w, PyObject *obj, fp_plan *p) {
    PyObject *kids = PyList_New(0);
    const char *name = p->type->tp_name;
    bool numpys = strncmp(name, "numpy.", 6) == 0 || strcmp(name, "memmap") == 0;
    if (kids && p->has_dict && !numpys) {
        PyObject *marker = ing_fp_as_new(w, obj, FP_AS_STATE);
        if (!marker || PyList_Append(kids, marker) < 0) Py_CLEAR(kids);
        Py_XDECREF(marker);
    }
    return kids;
}

/* The children of an array whose memory is not its value; `names` or NULL: its fields. */
static PyObject *item_kids(fp_walk *w, PyObject *obj, fp_plan *p, PyObject *dtype,
                           PyObject *names) {
    PyObject *kids = array_kids(w, obj, p);
    if (kids && (names ? add_fields(w, obj, dtype, names, kids)
                       : add_objects(w, obj, dtype, kids)) < 0)
        Py_CLEAR(kids);
    return kids;
}

/* dtype text, shape and memory come before the children. */
static int push_memory(fp_walk *w, PyObject *obj, fp_plan *p, PyObject *text,
                       PyObject *memory, Py_ssize_t own) {
    Py_buffer view;
    if (PyObject_GetBuffer(memory, &view, PyBUF_FULL_RO) < 0)
        return ing_fp_refuse(w, obj, "its memory cannot be read", NULL);
    int rc = push_kids(w, obj, p, array_kids(w, obj, p), own);
    if (rc == 0) rc = ing_fp_put_str(w, text);
    if (rc == 0) rc = put_view(w, &view);
    PyBuffer_Release(&view);
    return rc;
}

/* An array of packed records: the dtype, and the memory. */
static int push_records(fp_walk *w, PyObject *obj, fp_plan *p, PyObject *dtype,
                        PyObject *text, Py_ssize_t own) {
    PyObject *memory = PyObject_CallMethod(obj, "view", "O", text);
    PyObject *kids = memory ? array_kids(w, obj, p) : NULL;
    if (kids && PyList_Append(kids, dtype) < 0) Py_CLEAR(kids);
    Py_buffer view;
    int rc = kids ? PyObject_GetBuffer(memory, &view, PyBUF_FULL_RO) : -1;
    Py_XDECREF(memory);
    if (rc < 0) {
        Py_XDECREF(kids);
        return -1;
    }
    rc = push_kids(w, obj, p, kids, own);
    if (rc == 0) rc = ing_fp_put_str(w, text);
    if (rc == 0) rc = put_view(w, &view);
    PyBuffer_Release(&view);
    return rc;
}

int ing_fp_array(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    PyObject *dtype = PyObject_GetAttr(obj, w->fp->n.dtype_);
    dtype_info d = {0};
    if (!dtype || dtype_read(w, dtype, &d) < 0) {
        Py_XDECREF(dtype);
        return -1;
    }
    int rc;
    PyObject *names = d.kind ? NULL : PyObject_GetAttr(dtype, w->fp->n.names_);
    int packed = names && names != Py_None ? is_packed(w, dtype, names) : 0;
    if (packed < 0) {
        rc = -1;
    } else if (packed) {
        rc = push_records(w, obj, p, dtype, d.text, own);
    } else if (names && names != Py_None) {
        rc = push_kids(w, obj, p, item_kids(w, obj, p, dtype, names), own);
    } else if (!d.kind || d.kind == 'O' || d.kind == 'T') {
        rc = push_kids(w, obj, p, item_kids(w, obj, p, dtype, NULL), own);
    } else if (d.kind == 'm' || d.kind == 'M') { /* times have no buffer of their own */
        PyObject *ints = PyObject_CallMethod(obj, "view", "s", "i8");
        rc = ints ? push_memory(w, obj, p, d.text, ints, own) : -1;
        Py_XDECREF(ints);
    } else {
        rc = push_memory(w, obj, p, d.text, obj, own);
    }
    Py_XDECREF(names);
    Py_DECREF(d.text);
    Py_DECREF(dtype);
    return rc;
}

/* A scalar is its class, its dtype and its bytes. */
int ing_fp_scalar(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    PyObject *dtype = PyObject_GetAttr(obj, w->fp->n.dtype_);
    PyObject *bytes = dtype ? PyObject_CallMethodNoArgs(obj, w->fp->n.tobytes_) : NULL;
    dtype_info d = {0};
    int rc = bytes && PyBytes_Check(bytes) ? dtype_read(w, dtype, &d) : -1;
    PyObject *kids = NULL;
    if (rc == 0 && !d.kind) { /* a record: by its dtype and its items */
        PyObject *items = PyObject_CallMethod(obj, "item", NULL);
        kids = items ? PyTuple_Pack(2, dtype, items) : NULL;
        Py_XDECREF(items);
    } else if (rc == 0) {
        if (is_long_double(w, dtype) && padded("g"))
            clear_padding((uint8_t *)PyBytes_AS_STRING(bytes),
                          (size_t)PyBytes_GET_SIZE(bytes));
        kids = PyTuple_Pack(2, d.text, bytes);
    }
    Py_XDECREF(d.text);
    Py_XDECREF(dtype);
    Py_XDECREF(bytes);
    return kids ? ing_fp_push_instance(w, obj, p, FP_ARRAY_KIND, kids, 2, false, own)
                : -1;
}

/* ---- any buffer ----------------------------------------------------------------------------------- */

int ing_fp_buffer(fp_walk *w, PyObject *obj, fp_plan *p, Py_ssize_t own) {
    Py_buffer view;
    if (PyObject_GetBuffer(obj, &view, PyBUF_FULL_RO) < 0)
        return ing_fp_refuse(w, obj, "its memory cannot be read", NULL);
    const char *format = view.format ? view.format : "B";
    int rc;
    if (holds_addresses(format)) {
        rc = ing_fp_refuse(w, obj, "its memory holds addresses", NULL);
    } else if (is_unclear(format)) {
        rc = ing_fp_refuse(w, obj, "its memory holds bytes that mean nothing", NULL);
    } else {
        PyObject *kids = array_kids(w, obj, p);
        uint32_t n = kids ? (uint32_t)PyList_GET_SIZE(kids) : 0;
        rc = ing_fp_push_instance(w, obj, p, FP_BUFFER_KIND, kids, n, false, own);
        if (rc == 0)
            rc = ing_fp_put_text(w, FP_DATA, FP_DATA_LONG, format, strlen(format));
        if (rc == 0) rc = put_view(w, &view);
    }
    PyBuffer_Release(&view);
    return rc;
}
