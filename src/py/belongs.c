/* Does a text belong to a function that runs (R8)? Called by source.c when the file of a
 * function may have changed since it was imported. Never raises: what cannot be told apart
 * does not belong. */
#include "py/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 100 }; /* of functions in functions; the compiler's own limit */

typedef struct wanted {
    PyCodeObject *code;
    ing_hash128 digest;
} wanted;

static bool is_wanted(const wanted *w, PyObject *o) {
    PyCodeObject *c = (PyCodeObject *)o;
    ing_hash128 digest;
    return c->co_firstlineno == w->code->co_firstlineno &&
           PyUnicode_Compare(c->co_name, w->code->co_name) == 0 &&
           ing_py_code_digest(o, &digest) && ing_hash_eq(digest, w->digest);
}

static bool holds(const wanted *w, PyObject *code, int depth) {
    if (is_wanted(w, code)) return true;
    PyObject *consts = depth < MAX_DEPTH ? ing_py_attr(code, "co_consts") : NULL;
    bool found = false;
    for (Py_ssize_t i = 0; consts && !found && i < PyTuple_GET_SIZE(consts); i++) {
        PyObject *c = PyTuple_GET_ITEM(consts, i);
        if (PyCode_Check(c)) found = holds(w, c, depth + 1);
    }
    Py_XDECREF(consts);
    return found;
}

PyObject *ing_py_text_compile(PyObject *text, PyObject *file) {
    PyCompilerFlags flags = {.cf_flags = PyCF_IGNORE_COOKIE,
                             .cf_feature_version = PY_MINOR_VERSION};
    PyObject *code = Py_CompileStringObject(PyBytes_AS_STRING(text), file,
                                            Py_file_input, &flags, -1);
    if (!code) PyErr_Clear();
    return code;
}

bool ing_py_code_holds(PyObject *module_code, PyObject *fn) {
    wanted w = {.code = (PyCodeObject *)PyFunction_GET_CODE(fn)};
    if (!PyCode_Check(module_code) ||
        !ing_py_code_digest((PyObject *)w.code, &w.digest))
        return false;
    bool found = holds(&w, module_code, 0);
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
