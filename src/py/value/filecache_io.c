/* Entries as streams: for the codec of values, and as a file object that pickle writes to or
 * reads from. Called by filecache.c. An EntryFile is good during the call that it was made
 * for, and says so afterwards. */
#include "py/value/filecache_int.h"

#include <string.h>

/* A signal is seen within 200 ms on a disk that writes 5 MB a second. */
enum { PIECE = 1 << 20 };

static bool run_handlers(void *self) {
    ing_py_pause *p = self;
    PyEval_RestoreThread(p->state);
    int rc = PyErr_CheckSignals();
    p->state = PyEval_SaveThread();
    return rc == 0;
}

ing_pulse ing_py_pulse(ing_py_pause *p) {
    return (ing_pulse){run_handlers, p};
}

static int not_stored(ing_status status) {
    if (status == ING_MEMORY) PyErr_NoMemory();
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_OSError, "the value cannot be stored");
    return -1;
}

int ing_py_entry_put(void *self, const void *p, size_t n) {
    ing_py_entry_out *out = self;
    ing_py_pause_begin(&out->pause);
    ing_status status = ing_value_announce(out->w, n);
    ing_py_pause_end(&out->pause);
    for (size_t at = 0; status == ING_OK && at < n; at += PIECE) {
        size_t piece = n - at < PIECE ? n - at : PIECE;
        ing_py_pause_begin(&out->pause);
        status = ing_value_write(out->w, (const uint8_t *)p + at, piece);
        ing_py_pause_end(&out->pause);
        if (status == ING_OK && PyErr_CheckSignals() < 0) return -1;
    }
    return status == ING_OK ? 0 : not_stored(status);
}

int ing_py_entry_get(void *self, void *p, size_t n) {
    ing_py_entry_in *in = self;
    if (n > in->end - in->at) {
        PyErr_SetString(PyExc_ValueError, "stored value: it ends too early");
        return -1;
    }
    for (size_t at = 0; at < n; at += PIECE) {
        size_t piece = n - at < PIECE ? n - at : PIECE;
        PyThreadState *gil = PyEval_SaveThread();
        bool ok = ing_value_read(&in->r, in->at, (uint8_t *)p + at, piece);
        PyEval_RestoreThread(gil);
        if (!ok) PyErr_SetString(PyExc_OSError, "stored value: it cannot be read");
        if (!ok) return -1;
        in->stopped = PyErr_CheckSignals() < 0;
        if (in->stopped) return -1;
        in->at += piece;
    }
    return 0;
}

/* ---- the file object ------------------------------------------------------------------------- */

typedef struct entry_file {
    PyObject_HEAD ing_py_entry_out *out; /* NULL: not of this kind, or over */
    ing_py_entry_in *in;
    uint64_t start; /* where the payload's own part starts */
} entry_file;

static entry_file *as_file(PyObject *self) {
    return (entry_file *)self;
}

static int check_open(const void *side) {
    if (side) return 0;
    PyErr_SetString(PyExc_ValueError, "the entry is closed, or open for the other way");
    return -1;
}

static PyObject *file_write(PyObject *self, PyObject *data) {
    entry_file *f = as_file(self);
    Py_buffer view;
    if (check_open(f->out) < 0 || PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    int rc = ing_py_entry_put(f->out, view.buf, (size_t)view.len);
    Py_ssize_t n = view.len;
    PyBuffer_Release(&view);
    return rc < 0 ? NULL : PyLong_FromSsize_t(n);
}

static PyObject *read_some(ing_py_entry_in *in, uint64_t n) {
    uint64_t left = in->end - in->at;
    if (n > left) n = left;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (bytes && ing_py_entry_get(in, PyBytes_AS_STRING(bytes), (size_t)n) < 0)
        Py_CLEAR(bytes);
    return bytes;
}

/* read(n): at most n bytes. */
static PyObject *file_read(PyObject *self, PyObject *size) {
    Py_ssize_t n = PyLong_AsSsize_t(size);
    if (n < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "read(n), n >= 0");
    if (n < 0 || check_open(as_file(self)->in) < 0) return NULL;
    return read_some(as_file(self)->in, (uint64_t)n);
}

static PyObject *file_readinto(PyObject *self, PyObject *into) {
    ing_py_entry_in *in = as_file(self)->in;
    Py_buffer view;
    if (check_open(in) < 0 || PyObject_GetBuffer(into, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    uint64_t left = in->end - in->at;
    size_t n = (uint64_t)view.len < left ? (size_t)view.len : (size_t)left;
    int rc = ing_py_entry_get(in, view.buf, n);
    PyBuffer_Release(&view);
    return rc < 0 ? NULL : PyLong_FromSize_t(n);
}

static PyObject *file_readline(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_py_entry_in *in = as_file(self)->in;
    if (check_open(in) < 0) return NULL;
    uint64_t begin = in->at, found = in->end;
    while (found == in->end && in->at < in->end) {
        uint64_t at = in->at;
        PyObject *some = read_some(in, ING_CODEC_TAKE);
        if (!some) return NULL;
        const char *p = PyBytes_AS_STRING(some);
        const char *line = memchr(p, '\n', (size_t)PyBytes_GET_SIZE(some));
        if (line) found = at + (uint64_t)(line - p) + 1;
        Py_DECREF(some);
        if (line) break;
    }
    in->at = begin;
    return read_some(in, found - begin);
}

/* seek(n): from the start. */
static PyObject *file_seek(PyObject *self, PyObject *where) {
    entry_file *f = as_file(self);
    unsigned long long n = PyLong_AsUnsignedLongLong(where);
    if (PyErr_Occurred() || check_open(f->in) < 0) return NULL;
    if (n > f->in->end - f->start) {
        PyErr_SetString(PyExc_ValueError, "past the end of the entry");
        return NULL;
    }
    f->in->at = f->start + n;
    Py_RETURN_NONE;
}

static PyObject *file_tell(PyObject *self, PyObject *unused) {
    (void)unused;
    entry_file *f = as_file(self);
    if (check_open(f->in) < 0) return NULL;
    return PyLong_FromUnsignedLongLong(f->in->at - f->start);
}

static PyObject *file_size(PyObject *self, void *unused) {
    (void)unused;
    entry_file *f = as_file(self);
    if (check_open(f->in) < 0) return NULL;
    return PyLong_FromUnsignedLongLong(f->in->end - f->start);
}

static void file_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static const PyMethodDef methods[] = {
    {"write", file_write, METH_O, "write(bytes-like)"},
    {"read", file_read, METH_O, "read(n)"},
    {"readinto", file_readinto, METH_O, "readinto(buffer)"},
    {"readline", file_readline, METH_NOARGS, "readline()"},
    {"tell", file_tell, METH_NOARGS, "tell()"},
    {"seek", file_seek, METH_O, "seek(position)"},
    {0},
};

static const PyGetSetDef getset[] = {
    {"size", file_size, NULL, "Bytes of the value.", NULL},
    {0},
};

static const PyType_Slot slots[] = {
    {Py_tp_dealloc, file_dealloc},
    {Py_tp_methods, (void *)methods},
    {Py_tp_getset, (void *)getset},
    {0, NULL},
};

static const PyType_Spec spec = {
    .name = "ingot._core.EntryFile",
    .basicsize = sizeof(entry_file),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = (PyType_Slot *)slots,
};

static entry_file *new_file(void) {
    PyObject *type = ing_py_import("ingot._core", "EntryFile");
    entry_file *f = type && PyType_Check(type)
                        ? (entry_file *)PyType_GenericAlloc((PyTypeObject *)type, 0)
                        : NULL;
    Py_XDECREF(type);
    return f;
}

int ing_py_entry_dump(ing_py_entry_out *out, PyObject *dump, PyObject *value) {
    entry_file *f = new_file();
    if (!f) return -1;
    f->out = out;
    PyObject *done = PyObject_CallFunctionObjArgs(dump, value, f, NULL);
    f->out = NULL;
    Py_DECREF(f);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

PyObject *ing_py_entry_load(ing_py_entry_in *in, PyObject *load) {
    entry_file *f = new_file();
    if (!f) return NULL;
    f->in = in;
    f->start = in->at;
    PyObject *value = PyObject_CallOneArg(load, (PyObject *)f);
    f->in = NULL;
    Py_DECREF(f);
    return value;
}

int ing_py_entry_file_add(PyObject *module, ing_py_state *st) {
    (void)st;
    PyTypeObject *type = ing_py_add_type(module, &spec);
    if (!type) return -1;
    Py_DECREF(type); /* the module keeps it */
    return 0;
}
