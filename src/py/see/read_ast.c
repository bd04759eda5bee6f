/* From Python text to plain C nodes: Python's own parser makes its ast objects, one loop
 * over src/front/node.def copies them by attribute name. Called with the GIL held when a
 * function is compiled for the first time. Must never import the `ast` module (it costs
 * milliseconds), never recurse, and must read the same tree on every Python from 3.10 on:
 * classes without a row in node.def become OTHER.
 *
 * Nodes are numbered in tree order: the work stack holds what is still to be read, and
 * the children of a node are pushed last first. */
#include "py/see/read_ast.h"
#include "py/py.h"

#include <string.h>

typedef struct work {
    PyObject *obj; /* owned */
    uint32_t slot; /* where the new node's number goes; 0 = it is the root */
    uint32_t depth;
} work;

typedef struct known {  /* a class of ast objects that was met */
    PyTypeObject *type; /* borrowed: the ast module's types outlive us */
    ing_front_kind kind;
    PyObject *names[7]; /* owned: interned attribute names */
} known;

enum {
    KNOWN_CAP = 128
}; /* Python 3.14 has 113 classes; a full table only costs time */

typedef struct reader {
    ing_front_tree *t;
    ing_vec(work) stack;
    known known[KNOWN_CAP];
    known spare; /* when the table is full */
    PyObject *lineno, *col_offset, *end_lineno, *end_col_offset;
    uint32_t shift; /* lines put before the text */
    ing_err *e;
} reader;

static ing_status no_memory(reader *r) {
    return ing_fail(r->e, ING_MEMORY, "no memory while reading a function");
}

/* ---- classes -------------------------------------------------------------------------- */

static const char *class_name(PyTypeObject *type) {
    const char *dot = strrchr(type->tp_name, '.');
    return dot ? dot + 1 : type->tp_name;
}

static ing_status known_fill(known *k, PyTypeObject *type) {
    const char *name = class_name(type);
    for (int i = 0; i < 7; i++) Py_CLEAR(k->names[i]);
    k->type = type;
    k->kind = ing_front_kind_find(name);
    const ing_front_shape *s = ing_front_shape_get(k->kind);
    for (uint32_t i = 0; i < s->n_fields && k->kind != ING_NODE_OTHER; i++) {
        k->names[i] = PyUnicode_InternFromString(s->fields[i].name);
        if (!k->names[i]) return ING_PYTHON;
    }
    return ING_OK;
}

static ing_status known_get(reader *r, PyTypeObject *type, known **out) {
    size_t at = ((uintptr_t)type >> 4) % KNOWN_CAP;
    for (int probe = 0; probe < 16; probe++, at = (at + 1) % KNOWN_CAP) {
        *out = &r->known[at];
        if ((*out)->type == type) return ING_OK;
        if (!(*out)->type) return known_fill(*out, type);
    }
    *out = &r->spare;
    return known_fill(*out, type);
}

/* ---- leaves ---------------------------------------------------------------------------- */

static ing_status add_atom(reader *r, const char *s, Py_ssize_t n, uint32_t *out) {
    *out = ing_atoms_add(&r->t->atoms, s, (size_t)n);
    return *out == UINT32_MAX ? no_memory(r) : ING_OK;
}

/* Text that cannot be UTF-8 (lone surrogates) is kept byte for byte. */
static ing_status add_str(reader *r, PyObject *v, uint32_t *out) {
    Py_ssize_t n = 0;
    const char *s = PyUnicode_AsUTF8AndSize(v, &n);
    if (s) return add_atom(r, s, n, out);
    PyObject *bytes = ing_py_took(PyExc_UnicodeEncodeError) ? ing_py_to_utf8(v) : NULL;
    if (!bytes) return ING_PYTHON;
    ing_status st = add_atom(r, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), out);
    Py_DECREF(bytes);
    return st;
}

static ing_status read_int(reader *r, PyObject *v, ing_front_const *c) {
    int overflow = 0;
    c->kind = ING_CONST_INT;
    c->i = PyLong_AsLongLongAndOverflow(v, &overflow);
    if (!overflow) return c->i == -1 && PyErr_Occurred() ? ING_PYTHON : ING_OK;
    unsigned long long u = PyLong_AsUnsignedLongLong(v);
    if (u != (unsigned long long)-1 || !PyErr_Occurred()) {
        c->kind = ING_CONST_UINT;
        c->i = (int64_t)u;
        return ING_OK;
    }
    PyObject *hex = ing_py_took(PyExc_OverflowError) ? PyNumber_ToBase(v, 16) : NULL;
    if (!hex) return ING_PYTHON;
    c->kind = ING_CONST_BIGINT;
    ing_status s = add_str(r, hex, &c->atom);
    Py_DECREF(hex);
    return s;
}

static ing_status read_complex(reader *r, PyObject *v, ing_front_const *c) {
    PyObject *text = PyObject_Repr(v);
    if (!text) return ING_PYTHON;
    c->kind = ING_CONST_COMPLEX;
    ing_status s = add_str(r, text, &c->atom);
    Py_DECREF(text);
    return s;
}

static ing_status read_const(reader *r, PyObject *v, uint32_t *out) {
    ing_front_const c = {0};
    if (v == Py_None)
        c.kind = ING_CONST_NONE;
    else if (v == Py_False)
        c.kind = ING_CONST_FALSE;
    else if (v == Py_True)
        c.kind = ING_CONST_TRUE;
    else if (v == Py_Ellipsis)
        c.kind = ING_CONST_ELLIPSIS;
    else if (PyLong_CheckExact(v))
        ING_TRY(read_int(r, v, &c));
    else if (PyComplex_CheckExact(v))
        ING_TRY(read_complex(r, v, &c));
    else if (PyFloat_CheckExact(v)) {
        c.kind = ING_CONST_FLOAT;
        c.f = PyFloat_AS_DOUBLE(v);
    } else if (PyUnicode_CheckExact(v)) {
        c.kind = ING_CONST_STR;
        ING_TRY(add_str(r, v, &c.atom));
    } else if (PyBytes_CheckExact(v)) {
        c.kind = ING_CONST_BYTES;
        ING_TRY(add_atom(r, PyBytes_AS_STRING(v), PyBytes_GET_SIZE(v), &c.atom));
    } else {
        return ing_fail(r->e, ING_SYNTAX, "%s:%u: a constant of type %.100s",
                        r->t->file, r->t->first_line, Py_TYPE(v)->tp_name);
    }
    *out = r->t->consts.len;
    return ing_vec_push(&r->t->consts, c) ? ING_OK : no_memory(r);
}

static ing_status read_op(reader *r, PyObject *v, uint32_t *out) {
    *out = ing_front_op_find(class_name(Py_TYPE(v)));
    if (*out != ING_AST_NONE) return ING_OK;
    return ing_fail(r->e, ING_SYNTAX, "%s:%u: an operator %.100s", r->t->file,
                    r->t->first_line, class_name(Py_TYPE(v)));
}

static ing_status read_uint(PyObject *v, uint32_t *out) {
    long i = PyLong_AsLong(v);
    if (i == -1 && PyErr_Occurred()) return ING_PYTHON;
    *out = (uint32_t)i;
    return ING_OK;
}

/* ---- fields ----------------------------------------------------------------------------- */

static ing_status push(reader *r, PyObject *obj, uint32_t slot, uint32_t depth) {
    work w = {obj, slot, depth};
    if (!ing_vec_push(&r->stack, w)) return no_memory(r);
    Py_INCREF(obj);
    return ING_OK;
}

static ing_status read_list(reader *r, PyObject *v, ing_front_field_kind kind,
                            uint32_t slot, uint32_t depth) {
    if (!PyList_Check(v)) return ING_OK; /* an absent list is empty */
    Py_ssize_t n = PyList_GET_SIZE(v);
    if (n == 0) return ING_OK;
    ing_front_tree *t = r->t;
    if ((uint64_t)n + t->slots.len >= UINT32_MAX / 2) return no_memory(r);
    uint32_t at = t->slots.len;
    for (Py_ssize_t i = 0; i <= n; i++)
        if (!ing_vec_push(&t->slots, i == 0 ? (uint32_t)n : 0)) return no_memory(r);
    t->slots.at[slot] = at;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyList_GET_ITEM(v, i);
        uint32_t where = at + 1 + (uint32_t)i, got = 0;
        if (item == Py_None) continue;
        if (kind == ING_FIELD_LIST) {
            ING_TRY(push(r, item, where, depth));
            continue;
        }
        if (kind == ING_FIELD_OPS)
            ING_TRY(read_op(r, item, &got));
        else {
            ING_TRY(add_str(r, item, &got));
            got++;
        }
        t->slots.at[where] = got;
    }
    return ING_OK;
}

static ing_status read_field(reader *r, PyObject *v, ing_front_field_kind kind,
                             uint32_t slot, uint32_t depth) {
    uint32_t got = 0;
    switch (kind) {
    case ING_FIELD_NODE: return v == Py_None ? ING_OK : push(r, v, slot, depth);
    case ING_FIELD_LIST:
    case ING_FIELD_ATOMS:
    case ING_FIELD_OPS: return read_list(r, v, kind, slot, depth);
    case ING_FIELD_CONST: ING_TRY(read_const(r, v, &got)); break;
    case ING_FIELD_OP: ING_TRY(read_op(r, v, &got)); break;
    case ING_FIELD_INT: ING_TRY(read_uint(v, &got)); break;
    case ING_FIELD_ATOM:
        if (v == Py_None) return ING_OK;
        ING_TRY(add_str(r, v, &got));
        got++;
        break;
    }
    r->t->slots.at[slot] = got;
    return ING_OK;
}

/* Missing attributes read as None: `arguments` has no position, for one. */
static ing_status get_attr(PyObject *obj, PyObject *name, PyObject **out) {
    int rc = PyObject_GetOptionalAttr(obj, name, out);
    if (rc == 0) *out = Py_NewRef(Py_None);
    return rc < 0 ? ING_PYTHON : ING_OK;
}

static ing_status read_number(PyObject *obj, PyObject *name, uint32_t *out) {
    PyObject *v = NULL;
    ING_TRY(get_attr(obj, name, &v));
    ing_status s = v == Py_None ? ING_OK : read_uint(v, out);
    Py_DECREF(v);
    return s;
}

static ing_status read_position(reader *r, PyObject *obj, ing_front_node *n) {
    uint32_t line = 0, end = 0;
    ING_TRY(read_number(obj, r->lineno, &line));
    ING_TRY(read_number(obj, r->end_lineno, &end));
    ING_TRY(read_number(obj, r->col_offset, &n->col));
    ING_TRY(read_number(obj, r->end_col_offset, &n->end_col));
    uint32_t first = r->shift + 1;
    n->line = line > first ? line - first : 0;
    n->end_line = end > first ? end - first : n->line;
    return ING_OK;
}

/* ---- nodes ------------------------------------------------------------------------------- */

static ing_status new_node(reader *r, ing_front_kind kind, ing_front_node *n) {
    ing_front_tree *t = r->t;
    n->kind = (uint8_t)kind;
    n->slots = t->slots.len;
    uint32_t fields = ing_front_shape_get(kind)->n_fields;
    for (uint32_t i = 0; i < fields; i++)
        if (!ing_vec_push(&t->slots, 0)) return no_memory(r);
    return ing_vec_push(&t->nodes, *n) ? ING_OK : no_memory(r);
}

/* What was pushed since `from` is to be read first to last. */
static void reverse_work(reader *r, uint32_t from) {
    for (uint32_t i = from, j = r->stack.len; i + 1 < j; i++) {
        work w = r->stack.at[i];
        r->stack.at[i] = r->stack.at[--j];
        r->stack.at[j] = w;
    }
}

/* The else part of an `if` that is nothing but another one: chains of them are walked by
 * loops (ing_front_elif) and may be as long as they like. */
static bool is_elif(const known *k, uint32_t field, PyObject *obj, PyObject *v) {
    return k->kind == ING_NODE_IF && field == 2 && PyList_Check(v) &&
           PyList_GET_SIZE(v) == 1 && Py_TYPE(PyList_GET_ITEM(v, 0)) == Py_TYPE(obj);
}

static ing_status read_node(reader *r, const work *w) {
    known *k = NULL;
    ING_TRY(known_get(r, Py_TYPE(w->obj), &k));
    ing_front_node n = {0};
    ING_TRY(read_position(r, w->obj, &n));
    ING_TRY(new_node(r, k->kind, &n));
    ing_node id = r->t->nodes.len - 1;
    if (w->depth > ING_FRONT_MAX_DEPTH)
        return ing_front_diag(
            r->t, id, ING_SYNTAX, "split long expressions into several statements",
            r->e, "the syntax is nested more than %d deep here", ING_FRONT_MAX_DEPTH);
    if (w->slot)
        r->t->slots.at[w->slot] = id;
    else
        r->t->root = id;
    if (k->kind == ING_NODE_OTHER) {
        const char *cls = class_name(Py_TYPE(w->obj));
        uint32_t atom = 0;
        ING_TRY(add_atom(r, cls, (Py_ssize_t)strlen(cls), &atom));
        r->t->slots.at[n.slots] = atom + 1;
        return ING_OK;
    }
    uint32_t from = r->stack.len;
    const ing_front_shape *s = ing_front_shape_get(k->kind);
    for (uint32_t i = 0; i < s->n_fields; i++) {
        PyObject *v = NULL;
        ING_TRY(get_attr(w->obj, k->names[i], &v));
        uint32_t depth = w->depth + !is_elif(k, i, w->obj, v);
        ing_status st = read_field(r, v, s->fields[i].kind, n.slots + i, depth);
        Py_DECREF(v);
        ING_TRY(st);
    }
    reverse_work(r, from);
    return ING_OK;
}

static ing_status read_all(reader *r, PyObject *def) {
    ING_TRY(push(r, def, 0, 1));
    while (r->stack.len) {
        work w = r->stack.at[--r->stack.len];
        ing_status s = read_node(r, &w);
        Py_DECREF(w.obj);
        ING_TRY(s);
    }
    return ING_OK;
}

/* ---- the text ------------------------------------------------------------------------------ */

/* An indented def is put under an `if 1:` instead of being dedented, so that columns and
 * the text of strings stay what they are. */
static ing_status parse(reader *r, const char *text, size_t n, PyObject **module) {
    static const char prefix[] = "if 1:\n";
    bool indented = n && (text[0] == ' ' || text[0] == '\t');
    size_t skip = indented ? sizeof prefix - 1 : 0;
    r->shift = indented;
    size_t size = 0;
    if (!ing_add_size(n, skip + 2, &size)) return no_memory(r);
    if (memchr(text, 0, n))
        return ing_fail(r->e, ING_SYNTAX, "%s:%u: the text has a NUL byte", r->t->file,
                        r->t->first_line);
    char *source = ing_malloc(size);
    if (!source) return no_memory(r);
    memcpy(source, prefix, skip);
    memcpy(source + skip, text, n);
    memcpy(source + skip + n, "\n", 2);
    PyObject *file = PyUnicode_DecodeFSDefault(r->t->file);
    PyCompilerFlags flags = {.cf_flags = PyCF_ONLY_AST | PyCF_IGNORE_COOKIE,
                             .cf_feature_version = PY_MINOR_VERSION};
    *module =
        file ? Py_CompileStringObject(source, file, Py_file_input, &flags, -1) : NULL;
    Py_XDECREF(file);
    ing_free(source);
    if (!*module && !PyErr_Occurred()) PyErr_NoMemory(); /* which CPython may forget */
    return *module ? ING_OK : ING_PYTHON;
}

/* New reference to statement 0 of obj.body. */
static ing_status first_of_body(reader *r, PyObject *obj, PyObject **out) {
    PyObject *body = PyObject_GetAttrString(obj, "body");
    if (!body) return ING_PYTHON;
    *out =
        PyList_Check(body) && PyList_GET_SIZE(body) ? PyList_GET_ITEM(body, 0) : NULL;
    Py_XINCREF(*out);
    Py_DECREF(body);
    if (*out) return ING_OK;
    return ing_fail(r->e, ING_SYNTAX, "%s:%u: the text holds no function", r->t->file,
                    r->t->first_line);
}

static ing_status find_def(reader *r, PyObject *module, PyObject **def) {
    ING_TRY(first_of_body(r, module, def));
    if (r->shift) {
        PyObject *under = *def;
        *def = NULL;
        ing_status s = first_of_body(r, under, def);
        Py_DECREF(under);
        ING_TRY(s);
    }
    const char *cls = class_name(Py_TYPE(*def));
    if (strcmp(cls, "FunctionDef") == 0) return ING_OK;
    ing_front_node n = {0};
    ing_status s = read_position(r, *def, &n);
    if (s == ING_OK) s = new_node(r, ING_NODE_OTHER, &n);
    if (s == ING_OK)
        s = ing_front_diag(
            r->t, r->t->nodes.len - 1, ING_SYNTAX, "write it as a plain `def`", r->e,
            "a kernel or func must be written as a plain `def`; this is %s",
            strcmp(cls, "AsyncFunctionDef") == 0 ? "an `async def`" : cls);
    Py_CLEAR(*def);
    return s;
}

static ing_status read_text(reader *r, const char *text, size_t n) {
    PyObject *module = NULL, *def = NULL;
    r->lineno = PyUnicode_InternFromString("lineno");
    r->col_offset = PyUnicode_InternFromString("col_offset");
    r->end_lineno = PyUnicode_InternFromString("end_lineno");
    r->end_col_offset = PyUnicode_InternFromString("end_col_offset");
    if (!r->lineno || !r->col_offset || !r->end_lineno || !r->end_col_offset)
        return ING_PYTHON;
    ing_status s = parse(r, text, n, &module);
    if (s == ING_OK) s = find_def(r, module, &def);
    if (s == ING_OK) s = read_all(r, def);
    Py_XDECREF(def);
    Py_XDECREF(module);
    return s;
}

static char *copy_text(const char *s, size_t n) {
    char *p = ing_malloc(n + 1);
    if (!p) return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

static void reader_fini(reader *r) {
    while (r->stack.len) Py_DECREF(r->stack.at[--r->stack.len].obj);
    ing_vec_fini(&r->stack);
    for (int i = 0; i < KNOWN_CAP; i++)
        for (int k = 0; k < 7; k++) Py_XDECREF(r->known[i].names[k]);
    for (int k = 0; k < 7; k++) Py_XDECREF(r->spare.names[k]);
    Py_XDECREF(r->lineno);
    Py_XDECREF(r->col_offset);
    Py_XDECREF(r->end_lineno);
    Py_XDECREF(r->end_col_offset);
}

ing_status ing_py_read_tree(const char *text, size_t n, const char *file,
                            uint32_t first_line, const char *name, ing_front_tree **out,
                            ing_err *e) {
    *out = NULL;
    reader *r = ing_calloc(1, sizeof *r);
    ing_front_tree *t = ing_front_tree_new();
    if (t) {
        t->file = copy_text(file, strlen(file));
        t->name = copy_text(name, strlen(name));
        t->text = copy_text(text, n);
        t->text_len = n;
        t->first_line = first_line;
    }
    ing_status s;
    if (!r || !t || !t->file || !t->name || !t->text) {
        s = ing_fail(e, ING_MEMORY, "no memory while reading a function");
    } else {
        r->t = t;
        r->e = e;
        s = read_text(r, text, n);
    }
    if (r) reader_fini(r);
    ing_free(r);
    if (s != ING_OK) {
        ing_front_tree_free(t);
        return s;
    }
    ing_front_tree_digest(t);
    *out = t;
    return ING_OK;
}
