/* The text of a function as far as its meaning goes: Python's own parser reads it, one
 * loop walks the syntax tree and hashes class names, fields and constants, without
 * positions, comments, docstrings and the function's own decorators. Empty fields are
 * left out, so a tree is the same in every Python from 3.10 on unless the syntax is newer.
 * Unlike src/py/see/read_ast.c this takes all of Python, not the kernel language.
 *
 * On the way the dotted names are collected that the text reads, those that its annotations
 * name (also inside strings), and whether it imports anything (ingot/_reach.py reads that).
 * Results are kept for the life of the code object. Text that does not belong to the code,
 * because the file was edited after it was imported, is never used. Never recurses. */
#include "py/value/fingerprint_int.h"
#include "py/see/see.h"

typedef struct work {
    PyObject *obj; /* owned; NULL: a mark */
    uint8_t mark;  /* '(' ... : end of a node or list */
    bool inner;    /* part of a dotted name that is already collected */
    bool root;     /* the def itself */
    bool note;     /* inside an annotation */
} work;

typedef struct reader {
    fp_walk bytes; /* only its output: atoms are written as the walk writes them */
    ing_vec(work) stack;
    PyObject *dotted; /* set of str: what is read */
    PyObject *notes;  /* set of str: what annotations name */
    PyObject *fields; /* "_fields" */
    bool imports;     /* something is imported, or read in a way that _reach.py knows */
} reader;

static int push(reader *r, work x) {
    Py_XINCREF(x.obj);
    if (ing_vec_push(&r->stack, x)) return 0;
    Py_XDECREF(x.obj);
    return ing_fp_no_memory();
}

static int put_chars(reader *r, const char *s) {
    return ing_fp_put_text(&r->bytes, FP_STR1, FP_STR1_LONG, s, strlen(s));
}

static const char *class_name(PyObject *node) {
    const char *name = Py_TYPE(node)->tp_name, *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool is_class(PyObject *node, const char *name) {
    return strcmp(class_name(node), name) == 0;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* a.b.c as one str when it is a chain that begins with a name; NULL: it is not. */
static PyObject *dotted_name(PyObject *node) {
    PyObject *text = NULL, *at = Py_NewRef(node);
    while (at && is_class(at, "Attribute")) {
        PyObject *attr = PyObject_GetAttrString(at, "attr");
        PyObject *next = attr ? PyObject_GetAttrString(at, "value") : NULL;
        PyObject *joined = !attr  ? NULL
                           : text ? PyUnicode_FromFormat("%U.%U", attr, text)
                                  : Py_NewRef(attr);
        Py_XDECREF(attr);
        Py_XSETREF(text, joined);
        Py_SETREF(at, next);
    }
    PyObject *id = at && is_class(at, "Name") ? PyObject_GetAttrString(at, "id") : NULL;
    PyObject *out =
        id && text ? PyUnicode_FromFormat("%U.%U", id, text) : Py_XNewRef(id);
    Py_XDECREF(id);
    Py_XDECREF(text);
    Py_XDECREF(at);
    return out;
}

/* Names and attributes that ingot/_reach.py looks into. */
static bool is_special(PyObject *name) {
    static const char *const all[] = {
        "globals",      "eval",       "exec",          "__import__",
        "modules",      "f_globals",  "import_module", "__globals__",
        "f_locals",     "run_path",   "run_module",    "f_back",
        "__doc__",      "getattr",    "attrgetter",    "__builtins__",
        "query",        "evaluate",   "methodcaller",  "__subclasses__",
        "entry_points", "EntryPoint", "getmodule",     "load_module",
        "exec_module"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (PyUnicode_CompareWithASCIIString(name, all[i]) == 0) return true;
    return false;
}

static int look_special(reader *r, PyObject *node, bool attr) {
    PyObject *name = PyObject_GetAttrString(node, attr ? "attr" : "id");
    if (name && is_special(name)) r->imports = true;
    Py_XDECREF(name);
    return name ? 0 : -1;
}

/* A docstring that is set is not read. */
static bool sets_doc(PyObject *node, PyObject *name) {
    PyObject *ctx =
        ing_fp_ends(name, ".__doc__") ? PyObject_GetAttrString(node, "ctx") : NULL;
    bool yes = ctx && is_class(ctx, "Store");
    Py_XDECREF(ctx);
    return yes;
}

static int collect(reader *r, const work *w) {
    PyObject *name = dotted_name(w->obj);
    int rc = name && !sets_doc(w->obj, name)
                 ? PySet_Add(w->note ? r->notes : r->dotted, name)
                 : 0;
    Py_XDECREF(name);
    return PyErr_Occurred() ? -1 : rc;
}

/* A str in an annotation is text of its own. */
static int collect_text(reader *r, PyObject *text) {
    PyObject *reach = ing_fp_reach(r->bytes.fp);
    PyObject *names = reach ? PyObject_CallMethod(reach, "names_in", "O", text) : NULL;
    int rc = names && PyTuple_Check(names) ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(names); i++)
        rc = PySet_Add(r->notes, PyTuple_GET_ITEM(names, i));
    Py_XDECREF(names);
    return rc;
}

/* typing.cast("Name", x): the text is what an annotation would say. */
static int look_cast(reader *r, PyObject *call) {
    PyObject *func = PyObject_GetAttrString(call, "func");
    PyObject *name = func ? dotted_name(func) : NULL;
    bool cast = name && (PyUnicode_CompareWithASCIIString(name, "cast") == 0 ||
                         ing_fp_ends(name, ".cast"));
    PyObject *args = cast ? PyObject_GetAttrString(call, "args") : NULL;
    PyObject *first = args && PyList_Check(args) && PyList_GET_SIZE(args)
                          ? PyList_GET_ITEM(args, 0)
                          : NULL;
    PyObject *text = first && is_class(first, "Constant")
                         ? PyObject_GetAttrString(first, "value")
                         : NULL;
    int rc = text && PyUnicode_Check(text) ? collect_text(r, text) : 0;
    Py_XDECREF(text);
    Py_XDECREF(args);
    Py_XDECREF(name);
    Py_XDECREF(func);
    return PyErr_Occurred() ? -1 : rc;
}

/* ---- one node ----------------------------------------------------------------------------------- */

static bool is_docstring(ing_py_fp *fp, PyObject *body) {
    if (!PyList_Check(body) || !PyList_GET_SIZE(body)) return false;
    PyObject *first = PyList_GET_ITEM(body, 0);
    if (!is_class(first, "Expr")) return false;
    PyObject *value = PyObject_GetAttrString(first, "value");
    PyObject *text = value && is_class(value, "Constant")
                         ? PyObject_GetAttrString(value, "value")
                         : NULL;
    bool yes = text && PyUnicode_Check(text);
    Py_XDECREF(value);
    Py_XDECREF(text);
    ing_fp_forgive(fp);
    return yes;
}

static bool is_def(PyObject *node) {
    return is_class(node, "FunctionDef") || is_class(node, "AsyncFunctionDef") ||
           is_class(node, "ClassDef");
}

static bool is_ignored(PyObject *node, const char *field, bool root) {
    return strcmp(field, "ctx") == 0 || strcmp(field, "type_comment") == 0 ||
           strcmp(field, "type_ignores") == 0 ||
           (strcmp(field, "kind") == 0 && is_class(node, "Constant")) ||
           (root && strcmp(field, "decorator_list") == 0 && is_def(node));
}

/* 3.12.0 and 3.12.1 put an empty constant after the last replacement of a format. */
static bool is_empty_text(ing_py_fp *fp, PyObject *node) {
    if (!is_class(node, "Constant")) return false;
    PyObject *v = PyObject_GetAttrString(node, "value");
    bool yes = v && PyUnicode_Check(v) && PyUnicode_GET_LENGTH(v) == 0;
    Py_XDECREF(v);
    ing_fp_forgive(fp);
    return yes;
}

/* how: 'd' a body that begins with a docstring, 'f' the parts of a format, 0 any other. */
static int read_list(reader *r, const work *w) {
    PyObject *list = w->obj;
    uint8_t how = w->mark;
    Py_ssize_t n = PyList_GET_SIZE(list);
    if (push(r, (work){.mark = ']'}) < 0) return -1;
    for (Py_ssize_t i = n; i-- > (how == 'd' ? 1 : 0);) {
        PyObject *item = PyList_GET_ITEM(list, i);
        if (how == 'f' && is_empty_text(r->bytes.fp, item)) continue;
        if (push(r, (work){.obj = item, .note = w->note}) < 0) return -1;
    }
    return put_chars(r, "[");
}

static uint8_t list_kind(ing_py_fp *fp, PyObject *node, const char *field,
                         PyObject *v) {
    if (!PyList_Check(v)) return 0;
    if (strcmp(field, "body") == 0 && is_def(node) && is_docstring(fp, v)) return 'd';
    return strcmp(field, "values") == 0 && is_class(node, "JoinedStr") ? 'f' : 0;
}

static bool is_note(const char *field) {
    return strcmp(field, "annotation") == 0 || strcmp(field, "returns") == 0 ||
           strcmp(field, "type_params") == 0;
}

/* One field: its name goes first, when it says anything. Fields are pushed in reverse, so
 * the name is pushed as a str after its value. */
static int read_field(reader *r, PyObject *node, PyObject *field, const work *w,
                      bool chain) {
    const char *name = PyUnicode_AsUTF8(field);
    if (!name) return -1;
    if (is_ignored(node, name, w->root)) return 0;
    PyObject *v = PyObject_GetAttr(node, field);
    if (!v) {
        ing_fp_forgive(r->bytes.fp);
        return 0;
    }
    bool constant = is_class(node, "Constant");
    bool empty =
        (v == Py_None && !constant) || (PyList_Check(v) && PyList_GET_SIZE(v) == 0);
    int rc = 0;
    if (!empty) {
        work x = {.obj = v, .mark = list_kind(r->bytes.fp, node, name, v)};
        x.inner = chain && strcmp(name, "value") == 0;
        x.note = w->note || is_note(name);
        if (x.note && constant && PyUnicode_Check(v)) rc = collect_text(r, v);
        if (rc == 0) rc = push(r, x);
        if (rc == 0) rc = push(r, (work){.obj = field});
    }
    Py_DECREF(v);
    return rc;
}

static int read_node(reader *r, const work *w) {
    PyObject *node = w->obj;
    bool name = is_class(node, "Name"), attr = is_class(node, "Attribute");
    if ((name || attr) && look_special(r, node, attr) < 0) return -1;
    if ((name || attr) && !w->inner && collect(r, w) < 0) return -1;
    if (is_class(node, "Call") && look_cast(r, node) < 0) return -1;
    if (is_class(node, "Import") || is_class(node, "ImportFrom")) r->imports = true;
    PyObject *fields = PyObject_GetAttr(node, r->fields);
    if (!fields || !PyTuple_Check(fields)) {
        Py_XDECREF(fields);
        return -1;
    }
    int rc = put_chars(r, "(");
    if (rc == 0) rc = put_chars(r, class_name(node));
    if (rc == 0) rc = push(r, (work){.mark = ')'});
    bool chain =
        attr; /* the value of an attribute is part of its chain, if there is one */
    PyObject *dotted = attr ? dotted_name(node) : NULL;
    chain = dotted != NULL;
    Py_XDECREF(dotted);
    for (Py_ssize_t i = PyTuple_GET_SIZE(fields); rc == 0 && i-- > 0;)
        rc = read_field(r, node, PyTuple_GET_ITEM(fields, i), w, chain);
    Py_DECREF(fields);
    return rc;
}

static int read_work(reader *r, const work *w) {
    if (!w->obj) return put_chars(r, w->mark == ')' ? ")" : "]");
    if (PyList_Check(w->obj)) return read_list(r, w);
    int rc = ing_fp_put_atom(&r->bytes,
                             w->obj); /* names of fields, identifiers, constants */
    if (rc) return rc < 0 ? -1 : 0;
    return read_node(r, w);
}

static int read_tree(reader *r, PyObject *root) {
    int rc = push(r, (work){.obj = root, .root = true});
    while (rc == 0 && r->stack.len) {
        work w = r->stack.at[--r->stack.len];
        rc = read_work(r, &w);
        Py_XDECREF(w.obj);
    }
    return rc;
}

static void reader_fini(reader *r) {
    while (r->stack.len) Py_XDECREF(r->stack.at[--r->stack.len].obj);
    ing_vec_fini(&r->stack);
    ing_free(r->bytes.out);
    Py_XDECREF(r->dotted);
    Py_XDECREF(r->notes);
    Py_XDECREF(r->fields);
}

static int reader_init(reader *r, fp_walk *w) {
    memset(r, 0, sizeof *r);
    r->bytes.fp = w->fp;
    r->dotted = PySet_New(NULL);
    r->notes = PySet_New(NULL);
    r->fields = PyUnicode_InternFromString("_fields");
    return r->dotted && r->notes && r->fields ? 0 : -1;
}

static PyObject *digest_bytes(const reader *r) {
    ing_hash128 d = ing_hash(r->bytes.out, r->bytes.len);
    uint8_t le[16];
    ing_fp_put64(le, d.lo);
    ing_fp_put64(le + 8, d.hi);
    return PyBytes_FromStringAndSize((const char *)le, 16);
}

/* ---- from text to tree ------------------------------------------------------------------------------ */

/* An indented def is put under an `if 1:`, so that the text of strings stays what it is. */
static PyObject *parse(const char *text, size_t n, bool *shifted) {
    *shifted = n && (text[0] == ' ' || text[0] == '\t');
    if (memchr(text, 0, n)) return NULL;
    PyObject *source = PyBytes_FromString(*shifted ? "if 1:\n" : "");
    PyObject *body = source ? PyBytes_FromStringAndSize(text, (Py_ssize_t)n) : NULL;
    if (!body) {
        Py_XDECREF(source);
        return NULL;
    }
    if (*shifted)
        PyBytes_Concat(&source, body);
    else
        Py_SETREF(source, Py_NewRef(body));
    Py_DECREF(body);
    if (!source) return NULL;
    PyObject *file = PyUnicode_FromString("<fingerprint>");
    PyCompilerFlags flags = {.cf_flags = PyCF_ONLY_AST | PyCF_IGNORE_COOKIE,
                             .cf_feature_version = PY_MINOR_VERSION};
    PyObject *tree = file ? Py_CompileStringObject(PyBytes_AS_STRING(source), file,
                                                   Py_file_input, &flags, -1)
                          : NULL;
    Py_XDECREF(file);
    Py_DECREF(source);
    return tree;
}

static PyObject *first_statement(PyObject *node) {
    PyObject *body = node ? PyObject_GetAttrString(node, "body") : NULL;
    PyObject *first = body && PyList_Check(body) && PyList_GET_SIZE(body)
                          ? PyList_GET_ITEM(body, 0)
                          : NULL;
    Py_XINCREF(first);
    Py_XDECREF(body);
    return first;
}

/* The lambda in the text, as far as it can be told: they have no names. */
static PyObject *find_lambda(fp_walk *w, PyObject *tree, bool shifted, PyObject *code) {
    PyObject *helpers = ing_fp_helpers(w);
    int line = ((PyCodeObject *)code)->co_firstlineno - (shifted ? 1 : 0);
    PyObject *node =
        helpers ? PyObject_CallMethod(helpers, "_find_lambda", "OOi", tree, code, line)
                : NULL;
    if (node == Py_None) Py_CLEAR(node);
    ing_fp_forgive(w->fp);
    return node;
}

/* The def in the text, if it is the one that is running: same name. */
static PyObject *find_def(fp_walk *w, PyObject *tree, bool shifted, PyObject *code) {
    PyObject *def = first_statement(tree);
    if (def && shifted) Py_SETREF(def, first_statement(def));
    PyObject *name = def && is_def(def) ? PyObject_GetAttrString(def, "name") : NULL;
    PyObject *want = PyObject_GetAttrString(code, "co_name");
    bool same = name && want && PyUnicode_Compare(name, want) == 0;
    Py_XDECREF(name);
    Py_XDECREF(want);
    if (!same) Py_CLEAR(def);
    ing_fp_forgive(w->fp);
    return def;
}

/* What _reach.reads says of the def: (imports, names, blind); empty when there is nothing
 * to say. */
static PyObject *special_reads(fp_walk *w, const reader *r, PyObject *def) {
    if (!r->imports) return Py_BuildValue("(()()())");
    PyObject *reach = ing_fp_reach(w->fp);
    return reach ? PyObject_CallMethod(reach, "reads", "O", def) : NULL;
}

/* Adds the names under which a def's imports are known in it. */
static int add_aliases(PyObject *imports, PyObject *known) {
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(imports); i++)
        rc = PySet_Add(known, PyTuple_GET_ITEM(PyTuple_GET_ITEM(imports, i), 0));
    return rc;
}

/* Is a part of a dotted name private, as `__x` in a method, where code calls it `_Class__x`? */
static bool is_private(PyObject *name) {
    if (!PyUnicode_IS_ASCII(name)) return true;
    const char *at = PyUnicode_DATA(name);
    while (at) {
        size_t n = strcspn(at, ".");
        if (n > 2 && at[0] == '_' && at[1] == '_' &&
            !(at[n - 1] == '_' && at[n - 2] == '_'))
            return true;
        at = at[n] ? at + n + 1 : NULL;
    }
    return false;
}

/* The names in a list, private ones as the code calls them: a new list. */
static PyObject *unmangled(fp_walk *w, PyObject *names, PyObject *known) {
    PyObject *out = names ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; out && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        if (PyList_Append(out, name) < 0) Py_CLEAR(out);
        PyObject *reach = out && is_private(name) ? ing_fp_reach(w->fp) : NULL;
        PyObject *more =
            reach ? PyObject_CallMethod(reach, "mangled", "OO", name, known) : NULL;
        Py_ssize_t n = out ? PyList_GET_SIZE(out) : 0;
        if (more && PyList_SetSlice(out, n, n, more) < 0) Py_CLEAR(out);
        Py_XDECREF(more);
        if (PyErr_Occurred()) Py_CLEAR(out);
    }
    Py_XDECREF(names);
    return out;
}

/* Names that are read from outside: those that the code object knows as such, those that
 * are imported, and those read through globals(). Appends to `blind` what asks an unknown
 * class for its subclasses. */
static PyObject *outside_names(fp_walk *w, reader *r, PyObject *code, PyObject *special,
                               PyObject *blind) {
    PyObject *known = PySet_New(NULL), *out = PyList_New(0);
    PyObject *all = PySequence_List(r->dotted), *dot = PyUnicode_FromString(".");
    int rc = known && out && all && dot ? ing_fp_code_names(code, known) : -1;
    if (rc == 0) rc = (all = unmangled(w, all, known)) ? 0 : -1;
    if (rc == 0) rc = add_aliases(PyTuple_GET_ITEM(special, 0), known);
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(all); i++) {
        PyObject *name = PyList_GET_ITEM(all, i);
        PyObject *parts = PyUnicode_Split(name, dot, 1);
        int has = parts ? PySet_Contains(known, PyList_GET_ITEM(parts, 0)) : -1;
        Py_XDECREF(parts);
        rc = has < 0 ? -1
             : has   ? PyList_Append(out, name)
             : ing_fp_ends(name, ".__subclasses__") || ing_fp_ends(name, ".__doc__")
                 ? PyList_Append(blind, name)
                 : 0;
    }
    Py_ssize_t n = rc == 0 ? PyList_GET_SIZE(out) : 0;
    if (rc == 0) rc = PyList_SetSlice(out, n, n, PyTuple_GET_ITEM(special, 1));
    PyObject *tuple = rc == 0 ? PyList_AsTuple(out) : NULL;
    Py_XDECREF(known);
    Py_XDECREF(out);
    Py_XDECREF(all);
    Py_XDECREF(dot);
    return tuple;
}

static PyObject *read_def(fp_walk *w, PyObject *def, PyObject *code) {
    reader r;
    PyObject *digest = NULL, *special = NULL, *names = NULL, *notes = NULL, *out = NULL;
    PyObject *blind = NULL, *all = NULL;
    if (reader_init(&r, w) == 0 && read_tree(&r, def) == 0) {
        digest = digest_bytes(&r);
        special = digest ? special_reads(w, &r, def) : NULL;
        blind = special ? PySequence_List(PyTuple_GET_ITEM(special, 2)) : NULL;
        names = blind ? outside_names(w, &r, code, special, blind) : NULL;
        notes = names ? PySequence_Tuple(r.notes) : NULL;
        all = notes ? PyList_AsTuple(blind) : NULL;
        out = all ? PyTuple_Pack(5, digest, names, notes, PyTuple_GET_ITEM(special, 0),
                                 all)
                  : NULL;
    }
    Py_XDECREF(blind);
    Py_XDECREF(all);
    Py_XDECREF(digest);
    Py_XDECREF(special);
    Py_XDECREF(names);
    Py_XDECREF(notes);
    reader_fini(&r);
    return out;
}

/* The digest of a whole text as far as its meaning goes: 16 bytes. */
PyObject *ing_fp_text_digest(fp_walk *w, PyObject *text) {
    bool shifted;
    reader r;
    PyObject *tree =
        parse(PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text), &shifted);
    PyObject *out = NULL;
    if (reader_init(&r, w) == 0 && tree && read_tree(&r, tree) == 0)
        out = digest_bytes(&r);
    else if (!tree && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "source text with a null byte");
    Py_XDECREF(tree);
    reader_fini(&r);
    return out;
}

/* Is the text not what the function was compiled from? 1, 0 or -1 = raised. */
static int is_changed(fp_walk *w, PyObject *fn, PyObject *file, PyObject *why) {
    if (why) {
        const char *text = PyUnicode_AsUTF8(why);
        return text ? strstr(text, "changed since") != NULL : -1;
    }
    PyObject *held = NULL;
    int rc = ing_py_source_unknown(w->st, file, &held);
    if (rc == 1) {
        rc = ing_py_source_belongs(held, fn, file);
        if (rc >= 0) rc = !rc;
    }
    Py_XDECREF(held);
    return rc;
}

/* The lines of the function in its file; NULL without exception: there are none, or
 * *changed. */
static PyObject *def_text(fp_walk *w, PyObject *fn, bool *changed) {
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(fn);
    PyObject *why = NULL, *text = NULL;
    PyObject *whole = NULL;
    int rc = ing_py_source_file(w->st, fn, code->co_filename, &whole, &why);
    if (rc >= 0) *changed = is_changed(w, fn, code->co_filename, why) == 1;
    Py_XDECREF(why);
    size_t start, len;
    if (whole && !*changed && code->co_firstlineno > 0 &&
        ing_py_source_block(PyBytes_AS_STRING(whole), (size_t)PyBytes_GET_SIZE(whole),
                            (uint32_t)code->co_firstlineno, &start, &len))
        text = PyBytes_FromStringAndSize(PyBytes_AS_STRING(whole) + start,
                                         (Py_ssize_t)len);
    Py_XDECREF(whole);
    ing_fp_forgive(w->fp);
    return text;
}

static bool is_lambda(fp_walk *w, PyObject *code) {
    PyObject *name = PyObject_GetAttrString(code, "co_name");
    bool yes = name && PyUnicode_CompareWithASCIIString(name, "<lambda>") == 0;
    Py_XDECREF(name);
    ing_fp_forgive(w->fp);
    return yes;
}

static PyObject *make_source(fp_walk *w, PyObject *fn, PyObject *given) {
    PyObject *code = PyFunction_GET_CODE(fn);
    bool shifted = false, changed = false;
    PyObject *text = given ? Py_NewRef(given) : def_text(w, fn, &changed);
    if (changed) return Py_NewRef(Py_False);
    PyObject *tree =
        text ? parse(PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text), &shifted)
             : NULL;
    ing_fp_forgive(w->fp); /* text that does not parse is no text of this function */
    PyObject *def = !tree                ? NULL
                    : is_lambda(w, code) ? find_lambda(w, tree, shifted, code)
                                         : find_def(w, tree, shifted, code);
    PyObject *out = def ? read_def(w, def, code) : Py_NewRef(Py_None);
    Py_XDECREF(def);
    Py_XDECREF(tree);
    Py_XDECREF(text);
    return out;
}

/* ---- kept results -------------------------------------------------------------------------------------- */

/* The entry for this very code object, new reference; NULL without exception. */
static PyObject *kept(fp_walk *w, PyObject *key, PyObject *code) {
    PyObject *entry = PyDict_GetItemWithError(w->fp->texts, key);
    if (!entry) return NULL;
    bool same = ing_py_refers(PyTuple_GET_ITEM(entry, 0), code);
    return same ? Py_NewRef(PyTuple_GET_ITEM(entry, 1)) : NULL;
}

PyObject *ing_fp_source(fp_walk *w, PyObject *fn, PyObject *text) {
    PyObject *code = PyFunction_GET_CODE(fn);
    PyObject *key = PyLong_FromVoidPtr(code);
    PyObject *out = key ? kept(w, key, code) : NULL;
    if (key && !out && !PyErr_Occurred()) {
        uint64_t losses = w->fp->losses;
        out = make_source(w, fn, text);
        if (ing_fp_lost(w->fp, losses) < 0) Py_CLEAR(out);
        PyObject *ref = out ? PyWeakref_NewRef(code, NULL) : NULL;
        PyObject *entry = ref ? PyTuple_Pack(2, ref, out) : NULL;
        bool keep = out != Py_False; /* a file that changed may be put back */
        if (keep && (!entry || PyDict_SetItem(w->fp->texts, key, entry) < 0))
            Py_CLEAR(out);
        Py_XDECREF(ref);
        Py_XDECREF(entry);
    }
    Py_XDECREF(key);
    return out;
}
