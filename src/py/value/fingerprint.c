/* Fingerprints: the walk. Folds a graph of Python objects, bottom up, into one 128-bit
 * digest. Called by Python (ingot.fingerprint) and by the rest of src/py. Must never
 * recurse, never call a user's __eq__ or __hash__, and never give a random digest: what
 * it cannot hash is an error with the path to it (fingerprint_fail.c).
 *
 * Two modes. The fast one computes digests on the way back and remembers only objects
 * that are shared. When it meets an object that is still open, the value is cyclic: the
 * walk starts again in graph mode, which keeps each object's encoding as a template and
 * leaves the digests to fingerprint_cycle.c. */
#include "py/value/fingerprint_int.h"

/* ---- memo ------------------------------------------------------------------------------ */

static uint32_t *memo_slot(fp_walk *w, uintptr_t key) {
    uint64_t h = (uint64_t)key * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(h >> 32) & (w->index_cap - 1);
    while (w->index[at] && w->memo.at[w->index[at] - 1].key != key)
        at = (at + 1) & (w->index_cap - 1);
    return &w->index[at];
}

static int memo_grow(fp_walk *w) {
    uint32_t cap = w->index_cap ? w->index_cap * 2 : 64;
    uint32_t *index = ing_calloc(cap, sizeof *index);
    if (!index) return ing_fp_no_memory();
    ing_free(w->index);
    w->index = index;
    w->index_cap = cap;
    for (uint32_t i = 0; i < w->memo.len; i++) *memo_slot(w, w->memo.at[i].key) = i + 1;
    return 0;
}

static uintptr_t memo_key(fp_walk *w, PyObject *obj, fp_how how) {
    return (uintptr_t)obj | (uintptr_t)how | (ing_fp_live(w) ? FP_LIVE : 0);
}

static int memo_add(fp_walk *w, PyObject *obj, fp_how how, uint32_t *out) {
    if (w->memo.len >= UINT32_MAX / 4 * 3) return ing_fp_no_memory();
    if (w->memo.len + 1 > w->index_cap / 4 * 3 && memo_grow(w) < 0) return -1;
    fp_memo_entry e = {memo_key(w, obj, how), {0, 0}};
    if (!ing_vec_push(&w->memo, e)) return ing_fp_no_memory();
    Py_INCREF(obj); /* an address is a name only while its object lives */
    *memo_slot(w, e.key) = w->memo.len;
    *out = w->memo.len;
    return 0;
}

static PyObject *memo_object(const fp_memo_entry *e) {
    return (PyObject *)(e->key & ~(FP_LIVE | 7));
}

static int put_child(fp_walk *w, uint32_t node) {
    return ing_fp_put_digest(w, FP_CHILD, (ing_hash128){node, 0});
}

int ing_fp_known(fp_walk *w, PyObject *obj, fp_how how) {
    if (!w->index_cap) return 0;
    uint32_t at = *memo_slot(w, memo_key(w, obj, how));
    if (!at) return 0;
    const fp_memo_entry *e = &w->memo.at[at - 1];
    if (w->graph) return put_child(w, (uint32_t)e->digest.lo) < 0 ? -1 : 1;
    if (e->digest.lo | e->digest.hi)
        return ing_fp_put_digest(w, FP_REF, e->digest) < 0 ? -1 : 1;
    w->cyclic = true; /* still open: a cycle; the caller starts again in graph mode */
    return -1;
}

/* ---- frames ------------------------------------------------------------------------------ */

static int graph_node(fp_walk *w, PyObject *obj, fp_how how, uint32_t *node) {
    fp_node n = {0};
    uint32_t at;
    *node = w->nodes.len;
    if (!ing_vec_push(&w->nodes, n)) return ing_fp_no_memory();
    if (memo_add(w, obj, how, &at) < 0) return -1;
    w->memo.at[at - 1].digest.lo = *node;
    return 0;
}

int ing_fp_push(fp_walk *w, PyObject *obj, fp_how how, fp_kind kind, PyObject *src,
                uint32_t ordered, uint32_t groups, Py_ssize_t own) {
    fp_frame f = {.obj = obj, .src = src, .start = w->len, .kind = (uint8_t)kind};
    f.live = ing_fp_live(w) || kind == FP_FUNC_KIND || kind == FP_KERNEL_KIND ||
             kind == FP_METHOD_KIND;
    f.code = ing_fp_in_code(w) || kind == FP_FUNC_KIND || kind == FP_KERNEL_KIND;
    int rc = ing_fp_room(w, FP_HEAD);
    if (rc == 0 && w->graph)
        rc = graph_node(w, obj, how, &f.memo);
    else if (rc == 0 && (Py_REFCNT(obj) > own + 1 || w->frames.len == 0))
        rc = memo_add(w, obj, how, &f.memo);
    if (rc == 0 && !ing_vec_push(&w->frames, f)) rc = ing_fp_no_memory();
    if (rc < 0) {
        Py_XDECREF(src);
        return -1;
    }
    Py_INCREF(obj);
    uint8_t *p = w->out + w->len;
    p[0] = (uint8_t)(FP_FRAME + kind);
    ing_fp_put32(p + 1, ordered);
    ing_fp_put32(p + 5, groups);
    w->len += FP_HEAD;
    return 0;
}

int ing_fp_kid(fp_walk *w, PyObject *kid) {
    if (!kid) return -1;
    if (ing_vec_push(&w->kids, kid)) return 0;
    Py_DECREF(kid);
    return ing_fp_no_memory();
}

int ing_fp_drop_kids(fp_walk *w, uint32_t from) {
    while (w->kids.len > from) {
        PyObject *kid = w->kids.at[--w->kids.len];
        Py_DECREF(kid);
    }
    return -1;
}

int ing_fp_push_kids(fp_walk *w, PyObject *obj, fp_how how, fp_kind kind, uint32_t kids,
                     uint32_t ordered, bool pairs, Py_ssize_t own) {
    uint32_t groups = (w->kids.len - kids - ordered) / (pairs ? 2u : 1u);
    if (ing_fp_push(w, obj, how, kind, NULL, ordered, groups, own) < 0)
        return ing_fp_drop_kids(w, kids);
    fp_frame *f = ing_fp_top(w);
    f->stacked = 1;
    f->pairs = pairs;
    f->kids = kids;
    return 0;
}

static void drop_frame(fp_walk *w) {
    fp_frame f = *ing_fp_top(w);
    w->frames.len--;
    if (f.stacked)
        ing_fp_drop_kids(w, (uint32_t)f.kids);
    else
        Py_XDECREF(f.src);
    Py_DECREF(f.obj);
}

/* ---- groups: the children of what has no order ----------------------------------------- */

static int open_group(fp_walk *w, fp_frame *f) {
    size_t at = w->len - f->start;
    if (at > UINT32_MAX - 4) return ing_fp_no_memory();
    if (!f->groups) f->items_at = (uint32_t)at;
    f->group_at = (uint32_t)at;
    f->open = 1;
    if (!w->graph) return 0;
    if (ing_fp_room(w, 4) < 0) return -1; /* of its length */
    w->len += 4;
    return 0;
}

/* In fast mode a complete group becomes one digest; in graph mode it stays as it is. */
static int close_group(fp_walk *w, fp_frame *f) {
    if (!f->open) return 0;
    f->open = 0;
    f->groups++;
    uint8_t *at = w->out + f->start + f->group_at;
    size_t n = w->len - f->start - f->group_at;
    if (w->graph) {
        ing_fp_put32(at, (uint32_t)(n - 4));
        return 0;
    }
    ing_hash128 d = ing_hash(at, n);
    w->len -= n;
    if (ing_fp_room(w, 16) < 0) return -1;
    ing_fp_put64(w->out + w->len, d.lo);
    ing_fp_put64(w->out + w->len + 8, d.hi);
    w->len += 16;
    return 0;
}

/* ---- the end of a frame ------------------------------------------------------------------ */

static int finish_graph(fp_walk *w, fp_frame *f) {
    fp_node *n = &w->nodes.at[f->memo];
    size_t size = w->len - f->start;
    if (size > UINT32_MAX) return ing_fp_no_memory();
    n->at = w->text.len;
    n->size = (uint32_t)size;
    n->ordered = f->groups ? f->items_at : n->size;
    ing_bytes_put(&w->text, w->out + f->start, size);
    if (!ing_bytes_ok(&w->text)) return ing_fp_no_memory();
    w->len = f->start;
    uint32_t node = f->memo;
    drop_frame(w);
    return put_child(w, node);
}

static int refuse_changed(fp_walk *w) {
    return ing_fp_refuse(w, NULL, "it changed while it was being hashed",
                         "hash a copy, or hold a lock");
}

static int finish(fp_walk *w) {
    fp_frame *f = ing_fp_top(w);
    uint32_t kids = ing_fp_head32(w, f, 1) + f->groups * (f->pairs ? 2u : 1u);
    if (f->groups != ing_fp_head32(w, f, 5) || (!f->dict && f->pos != kids)) {
        drop_frame(w); /* user code ran and changed the container */
        return refuse_changed(w);
    }
    if (w->graph) return finish_graph(w, f);
    if (f->groups) ing_fp_sort(w->out + f->start + f->items_at, f->groups);
    ing_hash128 d = ing_hash(w->out + f->start, w->len - f->start);
    w->len = f->start;
    if (f->memo) w->memo.at[f->memo - 1].digest = d;
    drop_frame(w);
    return ing_fp_put_digest(w, FP_REF, d);
}

/* ---- stepping ------------------------------------------------------------------------------ */

/* One child: 1 when it opened a frame, 0 when it is written, -1 raised. */
static inline int child(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    if (ing_fp_tick(w) < 0) return -1;
    if (!w->custom) {
        if (PyUnicode_CheckExact(obj)) return ing_fp_put_str(w, obj);
        if (PyLong_CheckExact(obj)) return ing_fp_put_int(w, obj);
        int rc = ing_fp_put_atom(w, obj);
        if (rc) return rc < 0 ? -1 : 0;
    }
    uint32_t depth = w->frames.len;
    Py_INCREF(obj); /* reducers and overrides may drop it from its container */
    int rc = ing_fp_visit(w, obj, own + 1);
    Py_DECREF(obj);
    return rc < 0 ? -1 : w->frames.len > depth;
}

/* Walks a dict in its own storage: no look-up, so no __hash__ and no __eq__. */
static int step_dict(fp_walk *w) {
    fp_frame *f = ing_fp_top(w);
    PyObject *dict = f->src ? f->src : f->obj;
    for (;;) {
        Py_ssize_t pos = f->pos;
        PyObject *key, *value;
        if (!f->half) {
            if (close_group(w, f) < 0) return -1;
            if (!PyDict_Next(dict, &pos, &key, &value)) return finish(w);
            if (pos > UINT32_MAX) return ing_fp_no_memory();
            if (open_group(w, f) < 0) return -1;
            f->half = 1;
            int rc = child(w, key, 0);
            if (rc) return rc < 0 ? -1 : 0;
            f = ing_fp_top(w);
        } else if (!PyDict_Next(dict, &pos, &key, &value)) {
            return finish(w);
        }
        f->half = 0;
        f->pos = (uint32_t)pos;
        int rc = child(w, value, 0);
        if (rc) return rc < 0 ? -1 : 0;
        f = ing_fp_top(w);
    }
}

/* src is a set_members(): they lie in no order, and waiting for them is a sixth. */
static inline void prefetch_member(const fp_frame *f) {
    enum { AHEAD = 8 };
    if ((Py_ssize_t)f->pos + AHEAD < PyTuple_GET_SIZE(f->src))
        __builtin_prefetch(PyTuple_GET_ITEM(f->src, f->pos + AHEAD));
}

static int step_items(fp_walk *w) {
    fp_frame *f = ing_fp_top(w);
    uint32_t ordered = ing_fp_ordered(w, f);
    Py_ssize_t own = f->stored ? 1 : 0;
    while ((Py_ssize_t)f->pos < ing_fp_children(w, f)) {
        PyObject *item = ing_fp_child(w, f, f->pos);
        if (f->stored && !f->stacked) prefetch_member(f);
        if (f->pos >= ordered && !(f->pairs && (f->pos - ordered) & 1))
            if (close_group(w, f) < 0 || open_group(w, f) < 0) return -1;
        f->pos++;
        int rc = child(w, item, own);
        if (rc) return rc < 0 ? -1 : 0;
        f = ing_fp_top(w);
    }
    if (close_group(w, f) < 0) return -1;
    return finish(w);
}

/* ---- one object ------------------------------------------------------------------------------- */

static int count32(Py_ssize_t n, uint32_t *out) {
    if (n >= UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a container of more than 2**32 items");
        return -1;
    }
    *out = (uint32_t)n;
    return 0;
}

/* The members as they lie in the set's table (a deleted entry has hash -1, which no
 * member has): through its iterator the whole fingerprint takes a quarter longer. */
static PyObject *set_members(fp_walk *w, PyObject *set) {
    PyObject *items = PyTuple_New(PySet_GET_SIZE(set));
    if (!items) return NULL;
    if (PyTuple_GET_SIZE(items) != PySet_GET_SIZE(set)) { /* a finalizer ran */
        Py_DECREF(items);
        refuse_changed(w);
        return NULL;
    }
    const setentry *table = ((PySetObject *)set)->table;
    Py_ssize_t n = 0, last = ((PySetObject *)set)->mask;
    for (Py_ssize_t i = 0; i <= last; i++)
        if (table[i].key && table[i].hash != -1)
            PyTuple_SET_ITEM(items, n++, Py_NewRef(table[i].key));
    assert(n == PyTuple_GET_SIZE(items));
    return items;
}

/* A dict that code works on, which may iterate over it: in order. */
static int visit_table(fp_walk *w, PyObject *dict, fp_how how, Py_ssize_t own) {
    PyObject *items = PyDict_Items(dict);
    uint32_t n = 0;
    if (!items || count32(PyList_GET_SIZE(items), &n) < 0) {
        Py_XDECREF(items);
        return -1;
    }
    return ing_fp_push(w, dict, how, FP_TABLE_KIND, items, n, 0, own);
}

int ing_fp_visit_base(fp_walk *w, PyObject *obj, PyTypeObject *base, fp_how how,
                      Py_ssize_t own) {
    uint32_t n;
    if (base == &PyTuple_Type || base == &PyList_Type) {
        bool tuple = base == &PyTuple_Type;
        if (count32(tuple ? PyTuple_GET_SIZE(obj) : PyList_GET_SIZE(obj), &n) < 0)
            return -1;
        return ing_fp_push(w, obj, how, tuple ? FP_TUPLE_KIND : FP_LIST_KIND, NULL, n,
                           0, own);
    }
    if (base == &PyDict_Type && ing_fp_live(w)) return visit_table(w, obj, how, own);
    if (base == &PyDict_Type) {
        if (count32(PyDict_GET_SIZE(obj), &n) < 0 ||
            ing_fp_push(w, obj, how, FP_DICT_KIND, NULL, 0, n, own) < 0)
            return -1;
        ing_fp_top(w)->dict = ing_fp_top(w)->pairs = 1;
        return 0;
    }
    if (base == &PySet_Type || base == &PyFrozenSet_Type) {
        PyObject *items = set_members(w, obj);
        if (!items) return -1;
        n = (uint32_t)PyTuple_GET_SIZE(items);
        fp_kind kind = base == &PySet_Type ? FP_SET_KIND : FP_FROZENSET_KIND;
        if (ing_fp_push(w, obj, how, kind, items, 0, n, own) < 0) return -1;
        ing_fp_top(w)->stored = 1;
        return 0;
    }
    PyErr_Format(PyExc_SystemError, "no base %.100s", base->tp_name);
    return -1;
}

int ing_fp_visit(fp_walk *w, PyObject *obj, Py_ssize_t own) {
    PyTypeObject *t = Py_TYPE(obj);
    if (t == w->fp->as_type) return ing_fp_visit_as(w, (fp_as *)obj);
    if (w->custom) {
        int rc = ing_fp_custom(w, obj);
        if (rc) return rc < 0 ? -1 : 0;
    }
    int atom = ing_fp_put_atom(w, obj);
    if (atom) return atom < 0 ? -1 : 0;
    if (w->graph || Py_REFCNT(obj) > own + 1) {
        int rc = ing_fp_known(w, obj, FP_AS_ITSELF);
        if (rc) return rc < 0 ? -1 : 0;
    }
    if (t == &PyTuple_Type || t == &PyList_Type || t == &PyDict_Type ||
        t == &PySet_Type || t == &PyFrozenSet_Type)
        return ing_fp_visit_base(w, obj, t, FP_AS_ITSELF, own);
    return ing_fp_visit_planned(w, obj, own);
}

/* ---- one call ------------------------------------------------------------------------------------ */

static void walk_reset(fp_walk *w) {
    while (w->frames.len) drop_frame(w);
    for (uint32_t i = 0; i < w->memo.len; i++) Py_DECREF(memo_object(&w->memo.at[i]));
    w->memo.len = w->nodes.len = 0;
    if (w->index) memset(w->index, 0, w->index_cap * sizeof *w->index);
    w->len = 0;
    ing_bytes_clear(&w->text);
}

void ing_fp_walk_init(fp_walk *w, ing_py_state *st) {
    memset(w, 0, sizeof *w);
    w->st = st;
    w->fp = st->fp;
    w->epoch = ++st->fp->epoch;
    w->losses = st->fp->losses;
    w->fp->plans.walks++;
    ing_bytes_init(&w->text);
}

void ing_fp_walk_fini(fp_walk *w) {
    walk_reset(w);
    ing_free(w->out);
    ing_free(w->index);
    ing_vec_fini(&w->frames);
    ing_vec_fini(&w->memo);
    ing_vec_fini(&w->kids);
    ing_vec_fini(&w->nodes);
    ing_bytes_fini(&w->text);
    Py_CLEAR(w->held);
    ing_fp_plans_release(&w->fp->plans);
    if (!w->fp->plans.walks) Py_CLEAR(w->fp->lost); /* with the frames it holds */
}

static int walk_all(fp_walk *w, PyObject *obj) {
    if (ing_fp_visit(w, obj, 0) < 0) return -1;
    while (w->frames.len)
        if ((ing_fp_top(w)->dict ? step_dict(w) : step_items(w)) < 0) return -1;
    return 0;
}

enum { FP_FORMAT = 7 }; /* in every digest: bump it when what is hashed changes */

static ing_hash128 final_digest(const fp_walk *w, const uint8_t *p, size_t n) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 'v', FP_FORMAT);
    ing_hasher_item(&h, w->lenient ? 'l' : 's', p, n);
    return ing_hasher_done(&h);
}

static int run_once(fp_walk *w, PyObject *obj) {
    w->imported = w->cyclic = w->graph = false;
    int rc = walk_all(w, obj);
    if (rc < 0 && w->cyclic && (!PyErr_Occurred() || ing_py_took_any())) {
        walk_reset(w);
        w->cyclic = false;
        w->graph = true;
        rc = walk_all(w, obj);
        if (rc == 0 && w->out[0] == FP_CHILD) {
            ing_hash128 d;
            if (ing_fp_resolve_graph(w, &d) < 0) return -1;
            w->len = 0;
            rc = ing_fp_put_digest(w, FP_REF, d);
        }
    }
    return rc;
}

/* What was looked at before an import may have changed by it (a registry): the last walk is
 * one that imported nothing. */
int ing_fp_run(fp_walk *w, PyObject *obj, ing_hash128 *out) {
    enum { TURNS = 16 };
    int rc = run_once(w, obj);
    for (int i = 0; w->imported && i < TURNS; i++) {
        if (rc < 0 && PyErr_Occurred() && !ing_py_took(w->fp->error)) break;
        walk_reset(w);
        rc = run_once(w, obj);
    }
    if (ing_fp_lost(w->fp, w->losses) < 0 || rc < 0) return -1;
    *out = final_digest(w, w->out, w->len);
    return w->skip_names ? ing_fp_skips_unused(w) : 0;
}

/* `config` is None or the tuple that ingot.Fingerprinter keeps:
 * (lenient, overrides, skips, fallback, name of the root, whether the root is code). */
int ing_fp_configure(fp_walk *w, PyObject *config) {
    if (!config || config == Py_None) return 0;
    if (!PyTuple_CheckExact(config) || PyTuple_GET_SIZE(config) != 6) {
        PyErr_SetString(PyExc_TypeError, "not the configuration of a Fingerprinter");
        return -1;
    }
    PyObject *over = PyTuple_GET_ITEM(config, 1), *skip = PyTuple_GET_ITEM(config, 2);
    PyObject *fallback = PyTuple_GET_ITEM(config, 3);
    w->lenient = PyTuple_GET_ITEM(config, 0) == Py_True;
    w->overrides = PyTuple_Check(over) && PyTuple_GET_SIZE(over) ? over : NULL;
    w->skips = PyTuple_Check(skip) && PyTuple_GET_SIZE(skip) ? skip : NULL;
    w->fallback = fallback != Py_None ? fallback : NULL;
    w->root_name = PyTuple_GET_ITEM(config, 4);
    w->live = PyTuple_GET_ITEM(config, 5) == Py_True;
    w->custom = w->overrides || w->skips;
    for (Py_ssize_t i = 0; w->skips && i < PyTuple_GET_SIZE(skip); i++)
        w->skip_names |= PyTuple_Check(PyTuple_GET_ITEM(skip, i)) != 0;
    return 0;
}

int ing_py_fingerprint(ing_py_state *st, PyObject *obj, PyObject *fingerprinter,
                       ing_hash128 *out) {
    fp_walk w;
    PyObject *config =
        fingerprinter ? PyObject_GetAttrString(fingerprinter, "_config") : NULL;
    if (fingerprinter && !config) return -1;
    ing_fp_walk_init(&w, st);
    int rc = ing_fp_configure(&w, config);
    if (rc == 0) rc = ing_fp_run(&w, obj, out);
    ing_fp_walk_fini(&w);
    Py_XDECREF(config);
    return rc;
}
