/* Packs, for the command line: writing one from a cache directory, verifying one, and
 * exchanging two directories. Called by ingot/_seal.py and the tools. The disk is used with
 * the GIL released. */
#include "py/call/kernel.h"
#include "py/tool/tool.h"

#include "image/image.h"
#include "store/pack.h"

#include "ing_revision.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the store or the disk said, as an OSError: these are tools for files. */
static PyObject *raise_os(ing_py_state *st, ing_status s, ing_err *e) {
    if (s != ING_DECLINED && s != ING_FORMAT && s != ING_OS) return ing_py_raise(st, e);
    PyErr_Format(PyExc_OSError, "%s", e->text ? e->text : "cannot be used");
    ing_err_fini(e);
    return NULL;
}

static PyObject *kinds_of(const ing_pack_report *r) {
    PyObject *d = PyDict_New();
    static const struct {
        ing_entry_kind kind;
        const char *name;
    } names[] = {{ING_ENTRY_IMAGE, "images"},
                 {ING_ENTRY_VARIANT, "variants"},
                 {ING_ENTRY_INDEX, "indexes"},
                 {ING_ENTRY_ALIAS, "aliases"}};
    for (size_t i = 0; d && i < sizeof names / sizeof *names; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(r->entries[names[i].kind]);
        if (!n || PyDict_SetItemString(d, names[i].name, n) < 0) Py_CLEAR(d);
        Py_XDECREF(n);
    }
    return d;
}

static PyObject *makers_of(const ing_pack_report *r) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < r->n_makers; i++) {
        PyObject *one = Py_BuildValue("(sK)", r->makers[i].text,
                                      (unsigned long long)r->makers[i].images);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *report_of(const ing_pack_report *r) {
    char hex[33];
    ing_hash_hex(r->sum, hex);
    return Py_BuildValue(
        "{s:N,s:N,s:K,s:K,s:K,s:s,s:s,s:s}", "entries", kinds_of(r), "makers",
        makers_of(r), "left_out", (unsigned long long)r->left_out, "bytes",
        (unsigned long long)r->bytes, "symbols", (unsigned long long)r->symbols,
        "checksum", hex, "front", ING_FRONT_REVISION, "back", ING_BACK_REVISION);
}

static ing_status write_pack(const char *from, const char *to, ing_pack_report *report,
                             ing_err *e) {
    ing_store *store = NULL;
    ING_TRY(ing_store_open_to_read(from, NULL, &store, e));
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ing_status s = fd < 0 ? ing_fail(e, ING_OS, "cannot make %s: %m", to)
                          : ing_pack_write(store, fd, NULL, report, e);
    if (s == ING_OK && fsync(fd) != 0)
        s = ing_fail(e, ING_OS, "cannot write %s: %m", to);
    if (fd >= 0 && close(fd) != 0 && s == ING_OK)
        s = ing_fail(e, ING_OS, "cannot write %s: %m", to);
    ing_store_close(store);
    return s;
}

static PyObject *pack_write(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *from = NULL, *to = NULL, *out = NULL;
    ing_pack_report report;
    ing_status s;
    ing_err e;
    ing_err_init(&e);
    if (!PyArg_ParseTuple(args, "O&O&", PyUnicode_FSConverter, &from,
                          PyUnicode_FSConverter, &to)) {
        Py_XDECREF(from);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS s =
        write_pack(PyBytes_AS_STRING(from), PyBytes_AS_STRING(to), &report, &e);
    Py_END_ALLOW_THREADS out = s == ING_OK ? report_of(&report) : raise_os(st, s, &e);
    Py_DECREF(from);
    Py_DECREF(to);
    return out;
}

static ing_status verify_pack(const char *path, ing_pack_head *head, ing_err *e) {
    struct stat st;
    ing_pack *pack = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return ing_fail(e, ING_OS, "%s: %m", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return ing_fail(e, ING_OS, "%s: not a regular file", path);
    }
    ING_TRY(ing_pack_open_file(fd, (size_t)st.st_size, &pack, e));
    *head = *ing_pack_head_of(pack);
    ing_status s = ing_pack_verify(pack, e);
    ing_pack_unref(pack);
    return s;
}

static PyObject *pack_verify(PyObject *module, PyObject *arg) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *path = NULL;
    ing_pack_head head = {0};
    ing_status s;
    char hex[33];
    ing_err e;
    ing_err_init(&e);
    if (!PyUnicode_FSConverter(arg, &path)) return NULL;
    Py_BEGIN_ALLOW_THREADS s = verify_pack(PyBytes_AS_STRING(path), &head, &e);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (s != ING_OK) return raise_os(st, s, &e);
    ing_hash_hex(head.whole_sum, hex);
    return Py_BuildValue("{s:I,s:K,s:s}", "entries", head.n, "bytes",
                         (unsigned long long)head.size, "checksum", hex);
}

static PyObject *exchange(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *a = NULL, *b = NULL;
    if (!PyArg_ParseTuple(args, "O&O&", PyUnicode_FSConverter, &a,
                          PyUnicode_FSConverter, &b)) {
        Py_XDECREF(a);
        return NULL;
    }
    int rc = renameat2(AT_FDCWD, PyBytes_AS_STRING(a), AT_FDCWD, PyBytes_AS_STRING(b),
                       RENAME_EXCHANGE);
    Py_DECREF(a);
    Py_DECREF(b);
    if (rc != 0) return PyErr_SetFromErrno(PyExc_OSError);
    return Py_NewRef(Py_None);
}

static const PyMethodDef functions[] = {
    {"_pack_write", pack_write, METH_VARARGS,
     "_pack_write(directory, path) -> what was written: the entries of a cache "
     "directory "
     "in one new file"},
    {"_pack_verify", pack_verify, METH_O,
     "_pack_verify(path) -> entries, bytes, checksum; OSError says what is wrong"},
    {"_exchange", exchange, METH_VARARGS,
     "_exchange(a, b): the two names change places, at once"},
    {NULL, NULL, 0, NULL},
};

int ing_py_packs_add(PyObject *module, ing_py_state *st) {
    (void)st;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
