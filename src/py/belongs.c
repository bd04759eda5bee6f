/* Does a text belong to a function that runs (R8)? Called by source.c when the file of a
 * function may have changed since it was imported. Never raises: what cannot be told apart
 * does not belong. */
#include "py/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 100 }; /* of functions in functions; the compiler's own limit */

/* Appends the code to those of its first line. False: an exception is set. */
static bool index_one(PyObject *index, PyCodeObject *code) {
    PyObject *line = PyLong_FromLong(code->co_firstlineno), *list = NULL;
    bool ok = line != NULL;
    if (ok) list = Py_XNewRef(PyDict_GetItemWithError(index, line));
    if (ok && !list) {
        list = PyErr_Occurred() ? NULL : PyList_New(0);
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

PyObject *ing_py_text_codes(PyObject *text, PyObject *file) {
    PyCompilerFlags flags = {.cf_flags = PyCF_IGNORE_COOKIE,
                             .cf_feature_version = PY_MINOR_VERSION};
    PyObject *code = Py_CompileStringObject(PyBytes_AS_STRING(text), file,
                                            Py_file_input, &flags, -1);
    PyObject *index = code && PyCode_Check(code) ? PyDict_New() : NULL;
    if (index && !index_all(index, code, 0)) Py_CLEAR(index);
    Py_XDECREF(code);
    PyErr_Clear();
    return index;
}

bool ing_py_codes_hold(PyObject *codes, PyObject *fn) {
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(fn);
    ing_hash128 wanted, digest;
    if (!ing_py_code_digest((PyObject *)code, &wanted)) return false;
    PyObject *line = PyLong_FromLong(code->co_firstlineno);
    PyObject *list = line ? PyDict_GetItemWithError(codes, line) : NULL;
    bool found = false;
    for (Py_ssize_t i = 0; list && !found && i < PyList_GET_SIZE(list); i++) {
        PyCodeObject *c = (PyCodeObject *)PyList_GET_ITEM(list, i);
        found = PyUnicode_Compare(c->co_name, code->co_name) == 0 &&
                ing_py_code_digest((PyObject *)c, &digest) &&
                ing_hash_eq(digest, wanted);
    }
    Py_XDECREF(line);
    PyErr_Clear();
    return found;
}

/* Was the function's module loaded from this file by Python's own loader? Others may change
 * what they load, and keep what they compiled elsewhere. */
static bool plainly_loaded(PyObject *fn, const char *path) {
    PyObject *globals = PyFunction_GET_GLOBALS(fn);
    PyObject *loader = PyDict_GetItemString(globals, "__loader__");
    PyObject *file = PyDict_GetItemString(globals, "__file__");
    const char *s = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL;
    if (!s) PyErr_Clear();
    return loader && strcmp(Py_TYPE(loader)->tp_name, "SourceFileLoader") == 0 && s &&
           strcmp(s, path) == 0;
}

/* Where the module's compiled code was found or put; new reference or NULL. */
static PyObject *cached_path(PyObject *fn) {
    PyObject *spec = PyDict_GetItemString(PyFunction_GET_GLOBALS(fn), "__spec__");
    PyObject *path = spec ? ing_py_attr(spec, "cached") : NULL;
    if (path && PyUnicode_Check(path)) return path;
    Py_XDECREF(path);
    PyErr_Clear();
    return NULL;
}

static uint32_t little(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

/* A .pyc begins with a magic number, flags, and (flags 0) time and size of its source, four
 * bytes each, little endian. */
ing_py_trust ing_py_source_trust(PyObject *fn, const char *file,
                                 const struct stat *now) {
    if (!plainly_loaded(fn, file)) return ING_PY_TRUSTED;
    PyObject *path = cached_path(fn);
    const char *p = path ? PyUnicode_AsUTF8(path) : NULL;
    int fd = p ? open(p, O_RDONLY | O_CLOEXEC) : -1;
    uint8_t head[16];
    bool known = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head &&
                 little(head + 4) == 0;
    if (fd >= 0) close(fd);
    Py_XDECREF(path);
    PyErr_Clear();
    if (!known) return ING_PY_UNKNOWN;
    return little(head + 8) == (uint32_t)now->st_mtim.tv_sec &&
                   little(head + 12) == (uint32_t)now->st_size
               ? ING_PY_TRUSTED
               : ING_PY_SUSPECT;
}
