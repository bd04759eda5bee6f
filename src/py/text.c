/* Text on its way out of Python. A str may hold lone surrogates, which have no UTF-8: in
 * messages they are escaped (\udc80), in values they are encoded like any other code point,
 * so that the same str can be had back. Called by whoever needs the bytes of a str that
 * a program made; never raises but for lack of memory. */
#include "py/py.h"

#include <string.h>

PyObject *ing_py_to_utf8(PyObject *str) {
    return PyUnicode_AsEncodedString(str, "utf-8", "surrogatepass");
}

PyObject *ing_py_from_utf8(const char *text, size_t n) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "surrogatepass");
}

PyObject *ing_py_lenient(const char *text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

PyObject *ing_py_shown(PyObject *str) {
    return PyUnicode_AsEncodedString(str, "utf-8", "backslashreplace");
}

PyObject *ing_py_path(PyObject *str) {
    PyObject *bytes = PyUnicode_EncodeFSDefault(str);
    if (!bytes && ing_py_took(PyExc_UnicodeEncodeError)) bytes = ing_py_shown(str);
    return bytes;
}

/* Ends at a whole character. */
static void cut(const char *s, char *buf, size_t size) {
    size_t n = strlen(s);
    if (n >= size)
        for (n = size - 1; n && ((unsigned char)s[n] & 0xC0) == 0x80;) n--;
    memcpy(buf, s, n);
    buf[n] = 0;
}

int ing_py_show(PyObject *str, char *buf, size_t size) {
    PyObject *bytes = ing_py_shown(str);
    cut(bytes ? PyBytes_AS_STRING(bytes) : "?", buf, size);
    Py_XDECREF(bytes);
    return bytes ? 0 : -1;
}

int ing_py_show_str(PyObject *obj, char *buf, size_t size) {
    PyObject *text = obj ? PyObject_Str(obj) : NULL;
    cut("?", buf, size);
    if (!text) return obj && !ing_py_took_any() ? -1 : 0;
    int rc = ing_py_show(text, buf, size);
    Py_DECREF(text);
    return rc;
}

int ing_py_show_exception(char *buf, size_t size) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    int rc = ing_py_show_str(value, buf, size);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return rc;
}

int ing_py_put_shown(PyObject *str, ing_bytes *out) {
    PyObject *bytes = ing_py_shown(str);
    if (!bytes) return -1;
    ing_bytes_puts(out, PyBytes_AS_STRING(bytes));
    Py_DECREF(bytes);
    return 0;
}
