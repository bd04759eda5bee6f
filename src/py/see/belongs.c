/* Does a text belong to a function that runs (R8)? Called by source.c when the file of a
 * function may have changed since it was imported. What cannot be told apart does not
 * belong. */
#include "py/call/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 100 }; /* of functions in functions; the compiler's own limit */

/* Appends the code to those of its first line. False: an exception is set. */
static bool index_one(PyObject *index, PyCodeObject *code) {
    PyObject *line = PyLong_FromLong(code->co_firstlineno), *list = NULL;
    int there = line ? PyDict_GetItemRef(index, line, &list) : -1;
    bool ok = there >= 0;
    if (there == 0) {
        list = PyList_New(0);
        ok = list && PyDict_SetItem(index, line, list) == 0;
    }
    ok = ok && PyList_Append(list, (PyObject *)code) == 0;
    Py_XDECREF(list);
    Py_XDECREF(line);
    return ok;
}

static bool index_all(PyObject *index, PyObject *code, int depth) {
    if (!index_one(index, (PyCodeObject *)code)) return false;
    PyObject *consts = depth < MAX_DEPTH ? ing_py_attr(code, "co_consts") : NULL;
    bool ok = consts || depth == MAX_DEPTH;
    for (Py_ssize_t i = 0; consts && ok && i < PyTuple_GET_SIZE(consts); i++) {
        PyObject *c = PyTuple_GET_ITEM(consts, i);
        if (PyCode_Check(c)) ok = index_all(index, c, depth + 1);
    }
    Py_XDECREF(consts);
    return ok;
}

/* A text that does not compile, any more, has none. */
PyObject *ing_py_text_codes(PyObject *text, PyObject *file, PyObject *fn) {
    int future = ((PyCodeObject *)PyFunction_GET_CODE(fn))->co_flags & PyCF_MASK;
    PyCompilerFlags flags = {.cf_flags = PyCF_IGNORE_COOKIE | future,
                             .cf_feature_version = PY_MINOR_VERSION};
    PyObject *code = Py_CompileStringObject(PyBytes_AS_STRING(text), file,
                                            Py_file_input, &flags, -1);
    if (!code && !PyErr_Occurred()) PyErr_NoMemory(); /* which CPython may forget */
    if (!code && !ing_py_took_any()) return NULL;
    PyObject *index = PyDict_New();
    if (index && code && PyCode_Check(code) && !index_all(index, code, 0))
        Py_CLEAR(index);
    Py_XDECREF(code);
    return index;
}

/* Has the code that name and that digest? 1, 0 or -1. */
static int is_code(PyCodeObject *c, PyObject *name, ing_hash128 wanted) {
    ing_hash128 digest;
    int same = PyUnicode_Compare(c->co_name, name);
    if (same == -1 && PyErr_Occurred()) return -1;
    if (same != 0) return 0;
    int known = ing_py_code_digest((PyObject *)c, &digest);
    return known == 1 ? ing_hash_eq(digest, wanted) : known;
}

int ing_py_codes_hold(PyObject *codes, PyObject *fn) {
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(fn);
    ing_hash128 wanted;
    int found = ing_py_code_digest((PyObject *)code, &wanted);
    if (found != 1) return found;
    PyObject *line = PyLong_FromLong(code->co_firstlineno), *list = NULL;
    found = line && PyDict_GetItemRef(codes, line, &list) >= 0 ? 0 : -1;
    for (Py_ssize_t i = 0; list && found == 0 && i < PyList_GET_SIZE(list); i++)
        found =
            is_code((PyCodeObject *)PyList_GET_ITEM(list, i), code->co_name, wanted);
    Py_XDECREF(list);
    Py_XDECREF(line);
    return found;
}

/* Was the function's module loaded from this file by Python's own loader? Others may change
 * what they load, and keep what they compiled elsewhere. 1, 0 or -1. */
static int plainly_loaded(PyObject *fn, const char *path) {
    PyObject *globals = PyFunction_GET_GLOBALS(fn), *loader, *file = NULL;
    int rc = PyDict_GetItemStringRef(globals, "__loader__", &loader);
    if (rc == 1) rc = PyDict_GetItemStringRef(globals, "__file__", &file);
    if (rc == 1)
        rc = PyUnicode_Check(file) &&
             strcmp(Py_TYPE(loader)->tp_name, "SourceFileLoader") == 0;
    PyObject *bytes = rc == 1 ? ing_py_path(file) : NULL;
    if (rc == 1) rc = bytes ? strcmp(PyBytes_AS_STRING(bytes), path) == 0 : -1;
    Py_XDECREF(bytes);
    Py_XDECREF(loader);
    Py_XDECREF(file);
    return rc;
}

/* Where the module's compiled code was found or put; 1 and new bytes, 0 or -1. */
static int cached_path(PyObject *fn, PyObject **out) {
    PyObject *spec, *path = NULL;
    *out = NULL;
    int rc = PyDict_GetItemStringRef(PyFunction_GET_GLOBALS(fn), "__spec__", &spec);
    if (rc == 1) rc = ing_py_attr_maybe(spec, "cached", &path);
    if (rc < 0 && ing_py_took_any()) rc = 0; /* a spec of somebody's own */
    if (rc == 1) rc = PyUnicode_Check(path);
    if (rc == 1 && !(*out = ing_py_path(path))) rc = -1;
    Py_XDECREF(spec);
    Py_XDECREF(path);
    return rc;
}

static uint32_t little(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static bool is_later(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A .pyc begins with a magic number, flags, and (flags 0) time and size of its source, four
 * bytes each, little endian. */
int ing_py_source_trust(PyObject *fn, const char *file, const struct stat *now,
                        ing_py_trust *out) {
    PyObject *path = NULL;
    int plain = plainly_loaded(fn, file);
    *out = ING_PY_TRUSTED;
    if (plain != 1) return plain;
    if (cached_path(fn, &path) < 0) return -1;
    int fd = path ? open(PyBytes_AS_STRING(path), O_RDONLY | O_CLOEXEC) : -1;
    uint8_t head[16];
    struct stat made;
    bool known = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head &&
                 little(head + 4) == 0 && fstat(fd, &made) == 0 &&
                 !is_later(&now->st_mtim, &made.st_mtim);
    if (fd >= 0) close(fd);
    Py_XDECREF(path);
    bool same = known && little(head + 8) == (uint32_t)now->st_mtim.tv_sec &&
                little(head + 12) == (uint32_t)now->st_size;
    *out = !known ? ING_PY_UNKNOWN : same ? ING_PY_TRUSTED : ING_PY_SUSPECT;
    return 0;
}
