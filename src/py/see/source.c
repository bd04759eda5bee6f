/* Where a function's text comes from (R8): taken when the decorator runs, from its file,
 * its loader or linecache, or from where Python was given it (-c, a prompt). A file is read
 * once as long as its size and time of change stay the same. Finding no text is never an
 * error here: the reason is kept, and told at the first call together with the remedies. */
#include "py/call/kernel.h"

#include <string.h>
#include <sys/stat.h>

enum { MAX_SOURCE = 64 << 20 };

/* ---- the lines of one def --------------------------------------------------------------- */

/* A scanner over Python text that knows just enough to find where a block ends: strings,
 * comments, brackets, backslashes. */
typedef struct scan {
    const char *p, *end;
    int depth; /* open brackets */
} scan;

/* Skips a string literal at s->p (at its quote). */
static void skip_string(scan *s) {
    char q = *s->p;
    bool triple = s->end - s->p >= 3 && s->p[1] == q && s->p[2] == q;
    s->p += triple ? 3 : 1;
    while (s->p < s->end) {
        if (*s->p == '\\' && s->p + 1 < s->end) {
            s->p += 2;
        } else if (*s->p == q &&
                   (!triple || (s->end - s->p >= 3 && s->p[1] == q && s->p[2] == q))) {
            s->p += triple ? 3 : 1;
            return;
        } else if (*s->p == '\n' && !triple) {
            return; /* unterminated: the parser will say so */
        } else {
            s->p++;
        }
    }
}

/* What a logical line can end in, or must be looked at before. */
static bool is_plain(char c) {
    static const uint8_t special[256] = {
        ['\n'] = 1, ['"'] = 1, ['\''] = 1, ['#'] = 1, ['\\'] = 1, ['('] = 1,
        [')'] = 1,  ['['] = 1, [']'] = 1,  ['{'] = 1, ['}'] = 1,
    };
    return !special[(uint8_t)c];
}

/* Moves past the end of the current logical line (brackets and strings included). */
static void skip_logical_line(scan *s) {
    while (s->p < s->end) {
        while (s->p < s->end && is_plain(*s->p)) s->p++;
        if (s->p == s->end) return;
        char c = *s->p;
        if (c == '"' || c == '\'') {
            skip_string(s);
            continue;
        }
        if (c == '#') {
            while (s->p < s->end && *s->p != '\n') s->p++;
            continue;
        }
        if (c == '\\' && s->p + 1 < s->end) {
            s->p += s->p[1] == '\r' && s->p + 2 < s->end ? 3 : 2;
            continue;
        }
        if (c == '(' || c == '[' || c == '{') s->depth++;
        if ((c == ')' || c == ']' || c == '}') && s->depth > 0) s->depth--;
        s->p++;
        if (c == '\n' && s->depth == 0) return;
    }
}

static uint32_t indent_of(const char *p, const char *end) {
    uint32_t n = 0;
    for (; p < end && (*p == ' ' || *p == '\t' || *p == '\f'); p++)
        n = *p == '\t' ? (n / 8 + 1) * 8 : n + 1;
    return n;
}

static const char *first_char(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\f')) p++;
    return p;
}

static bool is_blank(const char *p, const char *end) {
    p = first_char(p, end);
    return p == end || *p == '\n' || *p == '\r' || *p == '#';
}

bool ing_py_source_block(const char *text, size_t n, uint32_t first_line, size_t *start,
                         size_t *len) {
    scan s = {text, text + n, 0};
    for (uint32_t line = 1; line < first_line; line++) {
        const char *nl = memchr(s.p, '\n', (size_t)(s.end - s.p));
        if (!nl) return false;
        s.p = nl + 1;
    }
    const char *begin = s.p;
    if (begin == s.end) return false;
    uint32_t indent = indent_of(s.p, s.end);
    while (s.p < s.end && (is_blank(s.p, s.end) || *first_char(s.p, s.end) == '@'))
        skip_logical_line(&s);
    skip_logical_line(&s); /* the def line itself */
    const char *last = s.p;
    while (s.p < s.end) {
        if (is_blank(s.p, s.end)) {
            const char *nl = memchr(s.p, '\n', (size_t)(s.end - s.p));
            s.p = nl ? nl + 1 : s.end;
            continue;
        }
        if (indent_of(s.p, s.end) <= indent) break;
        skip_logical_line(&s);
        last = s.p;
    }
    *start = (size_t)(begin - text);
    *len = (size_t)(last - begin);
    return last > begin;
}

bool ing_py_source_def(ing_py_host *h, PyObject *whole, uint32_t first_line,
                       size_t *start, size_t *len) {
    const char *text = PyBytes_AS_STRING(whole);
    size_t n = (size_t)PyBytes_GET_SIZE(whole);
    if (h->cursor_text != whole || h->cursor_line > first_line) {
        Py_XSETREF(h->cursor_text, Py_NewRef(whole));
        h->cursor_line = 1;
        h->cursor_at = 0;
    }
    for (; h->cursor_line < first_line; h->cursor_line++) {
        const char *nl = memchr(text + h->cursor_at, '\n', n - h->cursor_at);
        if (!nl) return false;
        h->cursor_at = (size_t)(nl + 1 - text);
    }
    size_t at = h->cursor_at;
    if (!ing_py_source_block(text + at, n - at, 1, start, len)) return false;
    *start += at;
    return true;
}

ing_hash128 ing_py_source_digest(const char *text, size_t n) {
    scan s = {text, text + n, 0};
    while (s.p < s.end && (is_blank(s.p, s.end) || *first_char(s.p, s.end) == '@'))
        skip_logical_line(&s);
    const char *def = s.p;
    size_t indent = (size_t)(first_char(def, s.end) - def);
    ing_hasher h;
    ing_hasher_init(&h);
    while (s.p < s.end) {
        const char *nl = memchr(s.p, '\n', (size_t)(s.end - s.p));
        const char *end = nl ? nl : s.end, *from = s.p;
        while (from < end && (size_t)(from - s.p) < indent && *from == def[from - s.p])
            from++;
        ing_hasher_item(&h, 1, from, (size_t)(end - from));
        s.p = nl ? nl + 1 : s.end;
    }
    return ing_hasher_done(&h);
}

/* ---- the text of a file -------------------------------------------------------------------- */

/* All of these: 1 = *out is new bytes, 0 = there is no such text, -1 = raised. */

/* The lines that linecache holds for this name, joined. */
static int from_linecache(PyObject *file, PyObject **out) {
    PyObject *mod = PyImport_ImportModule("linecache");
    PyObject *lines = mod ? PyObject_CallMethod(mod, "getlines", "O", file) : NULL;
    PyObject *empty = lines ? PyUnicode_FromString("") : NULL;
    PyObject *text = empty ? PyUnicode_Join(empty, lines) : NULL;
    *out = text && PyUnicode_GET_LENGTH(text) ? PyUnicode_AsUTF8String(text) : NULL;
    Py_XDECREF(mod);
    Py_XDECREF(lines);
    Py_XDECREF(empty);
    Py_XDECREF(text);
    return *out ? 1 : PyErr_Occurred() && !ing_py_took_any() ? -1 : 0;
}

/* What the module's loader says its source is (zip imports, frozen packages). Code by
 * another name than a file's, in a module that has one, was made by a program (dataclasses,
 * exec): the loader does not know it. */
static int from_loader(ing_py_state *st, PyObject *fn, bool named, PyObject **out) {
    PyObject *globals = PyFunction_GET_GLOBALS(fn), *loader = NULL, *name = NULL;
    PyObject *text = NULL, *file = NULL;
    *out = NULL;
    int rc =
        named ? 0 : PyDict_GetItemRef(globals, st->names[ING_PY_NAME___file__], &file);
    bool other = file && PyUnicode_Check(file);
    Py_XDECREF(file);
    if (rc < 0 || other) return rc < 0 ? -1 : 0;
    rc = PyDict_GetItemStringRef(globals, "__loader__", &loader);
    if (rc == 1) rc = PyDict_GetItemStringRef(globals, "__name__", &name);
    if (rc == 1) {
        text = loader != Py_None ? PyObject_CallMethod(loader, "get_source", "O", name)
                                 : Py_NewRef(Py_None);
        if (text && PyUnicode_Check(text)) *out = PyUnicode_AsUTF8String(text);
        rc = *out ? 1 : PyErr_Occurred() && !ing_py_took_any() ? -1 : 0;
    }
    Py_XDECREF(loader);
    Py_XDECREF(name);
    Py_XDECREF(text);
    return rc;
}

/* Does the text compile to the function's own code? 1, 0 or -1. What the last text compiles to is
 * kept: a cell of a notebook has many functions. */
static int compiles_to(ing_py_host *h, PyObject *text, PyObject *file, PyObject *fn) {
    PyObject *last = h->codes_text;
    Py_ssize_t n = PyBytes_GET_SIZE(text);
    bool same =
        last && PyBytes_GET_SIZE(last) == n &&
        memcmp(PyBytes_AS_STRING(last), PyBytes_AS_STRING(text), (size_t)n) == 0;
    PyObject *codes = same ? Py_NewRef(h->codes) : NULL;
    int rc = same ? ing_py_codes_hold(codes, fn) : 0;
    Py_XDECREF(codes);
    if (rc) return rc;
    codes = ing_py_text_codes(text, file, fn); /* under another __future__, maybe */
    rc = codes ? ing_py_codes_hold(codes, fn) : -1;
    Py_XSETREF(h->codes_text, codes ? Py_NewRef(text) : NULL);
    Py_XSETREF(h->codes, codes);
    return rc;
}

/* The same, if it is the function's: a name such as "<string>" or "<cell>" is that of whatever was
 * registered last, which may be what a program made before or after this function. */
static int from_linecache_surely(ing_py_host *h, PyObject *fn, PyObject *file,
                                 PyObject **out) {
    int rc = from_linecache(file, out);
    if (rc == 1) rc = compiles_to(h, *out, file, fn);
    if (rc != 1) Py_CLEAR(*out);
    return rc;
}

/* May the function have been typed in, or be of a module without a file? Code that programs
 * make (dataclasses, namedtuple) is from "<string>" as that of -c is, but its module has one. */
static int is_typed_in(ing_py_state *st, PyObject *fn, PyObject *file) {
    if (PyUnicode_CompareWithASCIIString(file, "<string>") != 0) return 1;
    PyObject *of = NULL;
    int rc = PyDict_GetItemRef(PyFunction_GET_GLOBALS(fn),
                               st->names[ING_PY_NAME___file__], &of);
    Py_XDECREF(of);
    return rc < 0 ? -1 : rc == 0;
}

/* A text of ingot/_console.py that compiles to the function: -c, a prompt, standard input. */
static int from_console(ing_py_state *st, PyObject *fn, PyObject *file,
                        PyObject **out) {
    *out = NULL;
    int rc = is_typed_in(st, fn, file);
    if (rc != 1) return rc;
    PyObject *code = PyFunction_GET_CODE(fn);
    PyObject *mod = PyImport_ImportModule("ingot._console");
    PyObject *texts = mod ? PyObject_CallMethod(mod, "texts", "OO", file, code) : NULL;
    rc = texts && PyList_Check(texts) ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(texts); i++) {
        PyObject *text = PyUnicode_AsUTF8String(PyList_GET_ITEM(texts, i));
        rc = text ? compiles_to(st->host, text, file, fn) : -1;
        if (rc == 1) *out = Py_NewRef(text);
        Py_XDECREF(text);
    }
    Py_XDECREF(mod);
    Py_XDECREF(texts);
    return rc < 0 && PyErr_Occurred() && ing_py_took_any() ? 0 : rc;
}

/* Does a coding line in the first two lines name something other than UTF-8? */
static bool foreign_coding(const char *p, size_t n) {
    for (int line = 0; line < 2 && p && n; line++) {
        const char *nl = memchr(p, '\n', n);
        size_t len = nl ? (size_t)(nl - p) : n;
        if (len && memchr(p, '#', len)) {
            const char *c = memmem(p, len, "coding", 6);
            if (c && !memmem(p, len, "utf-8", 5) && !memmem(p, len, "utf8", 4) &&
                !memmem(p, len, "UTF-8", 5))
                return true;
        }
        p += nl ? len + 1 : len;
        n -= nl ? len + 1 : len;
    }
    return false;
}

/* Universal newlines, as Python's parser sees them: \r\n and \r become \n in place. */
static size_t unify_newlines(char *p, size_t n) {
    if (!memchr(p, '\r', n)) return n;
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\r') {
            p[to++] = p[i];
        } else if (i + 1 == n || p[i + 1] != '\n') {
            p[to++] = '\n';
        }
    }
    return to;
}

static int from_disk(const char *path, PyObject **out) {
    ing_bytes b;
    int rc = 0;
    ing_bytes_init(&b);
    *out = NULL;
    if (ing_os_read(path, MAX_SOURCE, &b, NULL) == ING_OK && !b.failed && b.at) {
        char *p = (char *)b.at;
        size_t n = b.len;
        if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
            p += 3;
            n -= 3;
        }
        n = unify_newlines(p, n);
        if (!foreign_coding(p, n)) {
            *out = PyBytes_FromStringAndSize(p, (Py_ssize_t)n);
            rc = *out ? 1 : -1;
        }
    }
    ing_bytes_fini(&b);
    return rc;
}

/* ---- files, as they were ----------------------------------------------------------------- */

/* What is held of a file, in host->sources: a list of these. When the file may not be what
 * its module was imported from, each function is compared with what the text compiles to. */
enum { HELD_STATE, HELD_TEXT, HELD_TRUST, HELD_CODES, HELD_BEFORE, HELD_N };
enum { MAX_STATES = 8 }; /* of one file, edited while the program runs */

/* The same size, time of change and inode: the same text. */
typedef struct file_state {
    uint64_t size, seconds, nanoseconds, inode;
} file_state;

static file_state state_of(const struct stat *s) {
    return (file_state){(uint64_t)s->st_size, (uint64_t)s->st_mtim.tv_sec,
                        (uint64_t)s->st_mtim.tv_nsec, (uint64_t)s->st_ino};
}

static bool has_state(PyObject *held, const struct stat *s) {
    file_state now = state_of(s);
    return memcmp(PyBytes_AS_STRING(PyList_GET_ITEM(held, HELD_STATE)), &now,
                  sizeof now) == 0;
}

/* Drops what was held before the last MAX_STATES states. */
static void forget(PyObject *held) {
    for (int i = 1; i < MAX_STATES && held != Py_None; i++)
        held = PyList_GET_ITEM(held, HELD_BEFORE);
    if (held != Py_None) PyList_SetItem(held, HELD_BEFORE, Py_NewRef(Py_None));
}

/* Reads the file; `before` is what was held of an earlier state, or NULL. */
static int hold(PyObject *fn, const char *path, const struct stat *now,
                PyObject *before, PyObject **out) {
    file_state key = state_of(now);
    ing_py_trust trust = ING_PY_SUSPECT;
    PyObject *text, *state, *trusted, *held;
    *out = NULL;
    int rc = from_disk(path, &text);
    if (rc != 1) return rc;
    if (!before && ing_py_source_trust(fn, path, now, &trust) < 0) {
        Py_DECREF(text);
        return -1;
    }
    state = PyBytes_FromStringAndSize((const char *)&key, sizeof key);
    trusted = state ? PyLong_FromLong(trust) : NULL;
    held = trusted ? PyList_New(HELD_N) : NULL;
    if (held) {
        PyList_SET_ITEM(held, HELD_STATE, Py_NewRef(state));
        PyList_SET_ITEM(held, HELD_TEXT, Py_NewRef(text));
        PyList_SET_ITEM(held, HELD_TRUST, Py_NewRef(trusted));
        PyList_SET_ITEM(held, HELD_CODES, Py_NewRef(Py_None));
        PyList_SET_ITEM(held, HELD_BEFORE, Py_NewRef(before ? before : Py_None));
        forget(held);
    }
    Py_XDECREF(state);
    Py_XDECREF(trusted);
    Py_DECREF(text);
    *out = held;
    return held ? 1 : -1;
}

static long trust_of(PyObject *held) {
    return PyLong_AsLong(PyList_GET_ITEM(held, HELD_TRUST));
}

int ing_py_source_belongs(PyObject *held, PyObject *fn, PyObject *file) {
    PyObject *codes = Py_NewRef(PyList_GET_ITEM(held, HELD_CODES));
    if (codes == Py_None) {
        Py_SETREF(codes, ing_py_text_codes(PyList_GET_ITEM(held, HELD_TEXT), file, fn));
        if (!codes || PyList_SetItem(held, HELD_CODES, Py_NewRef(codes)) < 0) {
            Py_XDECREF(codes);
            return -1;
        }
    }
    int rc = ing_py_codes_hold(codes, fn);
    Py_DECREF(codes);
    return rc;
}

/* Is the function of the module that was loaded from this file? Code that a program runs by exec()
 * may bear the file's name and be another text. 1, 0 or -1 = raised. */
static int is_of_module(ing_py_state *st, PyObject *fn, PyObject *file) {
    PyObject *globals = PyFunction_GET_GLOBALS(fn), *of, *loader = NULL;
    int rc = PyDict_GetItemRef(globals, st->names[ING_PY_NAME___file__], &of);
    if (rc == 1 && !(PyUnicode_Check(of) && PyUnicode_Compare(of, file) == 0)) rc = 0;
    if (rc == 1) rc = PyDict_GetItemStringRef(globals, "__loader__", &loader);
    if (rc == 1) rc = loader != Py_None;
    Py_XDECREF(of);
    Py_XDECREF(loader);
    return rc;
}

/* The text that the function was compiled from: today's, or one seen before. */
static int choose(ing_py_state *st, PyObject *held, PyObject *fn, PyObject *file,
                  PyObject **out) {
    int rc = trust_of(held) != ING_PY_SUSPECT ? is_of_module(st, fn, file) : 0;
    *out = NULL;
    for (; rc == 0 && held != Py_None; held = PyList_GET_ITEM(held, HELD_BEFORE)) {
        rc = ing_py_source_belongs(held, fn, file);
        if (rc) break;
    }
    *out = rc == 1 ? Py_NewRef(PyList_GET_ITEM(held, HELD_TEXT)) : NULL;
    return rc;
}

/* The text of a regular file, held by its state; 0: not readable, or *changed. */
static int regular_file(ing_py_state *st, PyObject *fn, PyObject *file,
                        const char *path, bool *changed, PyObject **out) {
    struct stat now;
    PyObject *held;
    *out = NULL;
    if (stat(path, &now) != 0 || !S_ISREG(now.st_mode)) return 0;
    int rc = PyDict_GetItemRef(st->host->sources, file, &held);
    if (rc >= 0 && !(held && has_state(held, &now))) {
        PyObject *before = held;
        rc = hold(fn, path, &now, before, &held);
        Py_XDECREF(before);
        if (rc == 1 && PyDict_SetItem(st->host->sources, file, held) < 0) rc = -1;
    }
    if (rc == 1) {
        rc = choose(st, held, fn, file, out);
        *changed = rc == 0;
    }
    Py_XDECREF(held);
    return rc;
}

int ing_py_source_unknown(ing_py_state *st, PyObject *file, PyObject **out) {
    int rc = PyDict_GetItemRef(st->host->sources, file, out);
    if (rc == 1 && trust_of(*out) != ING_PY_UNKNOWN) {
        Py_CLEAR(*out);
        return 0;
    }
    return rc;
}

/* A relative name is that of the module's file: the directory may have changed since. Takes
 * and returns bytes; NULL = raised. */
static PyObject *real_path(ing_py_state *st, PyObject *fn, PyObject *path) {
    const char *p = PyBytes_AS_STRING(path), *name = strrchr(p, '/');
    if (p[0] == '/') return path;
    PyObject *f, *full = NULL;
    int rc = PyDict_GetItemRef(PyFunction_GET_GLOBALS(fn),
                               st->names[ING_PY_NAME___file__], &f);
    if (rc == 1 && PyUnicode_Check(f) && !(full = ing_py_path(f))) rc = -1;
    const char *of = full ? PyBytes_AS_STRING(full) : "";
    if (of[0] == '/' && strcmp(strrchr(of, '/') + 1, name ? name + 1 : p) == 0)
        Py_SETREF(path, Py_NewRef(full));
    Py_XDECREF(f);
    Py_XDECREF(full);
    if (rc < 0) Py_CLEAR(path);
    return path;
}

int ing_py_source_file(ing_py_state *st, PyObject *fn, PyObject *file, PyObject **out,
                       PyObject **why) {
    bool changed = false;
    int rc = 0;
    *why = *out = NULL;
    PyObject *path = ing_py_path(file);
    if (path && PyBytes_AS_STRING(path)[0] != '<') path = real_path(st, fn, path);
    if (!path) return -1;
    bool named = PyBytes_AS_STRING(path)[0] != '<';
    if (named) rc = regular_file(st, fn, file, PyBytes_AS_STRING(path), &changed, out);
    Py_DECREF(path);
    if (rc == 0 && !changed) rc = from_linecache_surely(st->host, fn, file, out);
    if (rc == 0 && !changed) rc = from_loader(st, fn, named, out);
    if (rc == 0 && !named) rc = from_console(st, fn, file, out);
    if (rc == 0) {
        int imported = changed ? is_of_module(st, fn, file) : 0;
        *why = imported < 0 ? NULL
               : imported
                   ? PyUnicode_FromFormat("%U changed since it was imported", file)
               : changed ? PyUnicode_FromFormat(
                               "%U is not what this function was compiled from", file)
                         : PyUnicode_FromFormat("there is no source text for %R", file);
        if (!*why) rc = -1;
    }
    return rc;
}
