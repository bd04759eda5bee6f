/* The kernel level of the cache: finished variants in the store, found again by replaying
 * what their compile read (DESIGN sections 1 and 2). Three kinds of entries:
 *   alias    (revision, Python, lines, code) -> digest of the syntax tree (R9): u64 lo, hi.
 *            Of a kernel compiled for the first time also its address (u64 lo, hi) and the
 *            index of then, so that a hit need not read that: a hint like the index itself
 *   index    address of a kernel -> its decision tree, leaves naming variants (R17), and
 *            a copy of the variant's entry while there is but one
 *   variant  everything a launch needs but the images, which have entries of their own
 * Nothing here fails a launch: what is missing, damaged or cannot be written is a miss.
 *
 * The index is derived: it is read, extended and replaced by rename. Two processes that
 * extend it at once may lose one leaf; its variant is then lowered once more (the images
 * are there) and added again. */
#include "py/guard.h"

#include "ing_revision.h"

#include <string.h>

enum {
    TAG_REVISION = 1,
    TAG_PYTHON,
    TAG_LINES,
    TAG_CODE,
    TAG_TREE,
    TAG_ADDRESS,
    TAG_TRACE,
    TAG_PURE,
    TAG_PARAM,
    TAG_GRAPH
};

static bool disk_is_on(const ing_py_state *st) {
    return st->settings.at[ING_SET_src_ll_cache] && st->host->target->gen;
}

/* The store while the kernel level is on; ING_DECLINED with nothing held when it is not, or
 * cannot be opened; ING_PYTHON: a warning that is an error, an interrupt. Between begin and
 * end nothing here begins again, and no Python runs but where the GIL is given away for
 * a server: whoever changes the store waits for the end, without the GIL. */
static ing_status disk_begin(ing_py_state *st, ing_store **out) {
    ing_py_host *h = st->host;
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = disk_is_on(st) ? ing_py_host_store(h, &ignored) : ING_DECLINED;
    ing_err_fini(&ignored);
    if (s != ING_OK) return s == ING_PYTHON ? s : ING_DECLINED;
    *out = ing_engine_begin(h->engine);
    if (*out) return ING_OK;
    ing_engine_end(h->engine);
    return ING_DECLINED;
}

static void disk_end(ing_py_state *st) {
    ing_engine_end(st->host->engine);
}

/* A server may take its time: what no layer has is brought here first, without the GIL, so
 * that the reader who needs the GIL finds it. Between begin and end. Python runs. */
static void fetch_first(ing_store *store, ing_entry_kind kind, ing_hash128 key) {
    if (!ing_store_has_remote(store)) return;
    ing_bytes ignored;
    ing_bytes_init(&ignored);
    PyThreadState *gil = PyEval_SaveThread();
    if (kind == ING_ENTRY_INDEX)
        (void)ing_store_read_layer(store, 0, kind, key, &ignored);
    else
        (void)ing_store_read(store, kind, key, &ignored);
    PyEval_RestoreThread(gil);
    ing_bytes_fini(&ignored);
}

/* ---- aliases -------------------------------------------------------------------------------- */

static ing_hash128 read_digest(ing_reader *r) {
    ing_hash128 d = {ing_reader_u64(r), 0};
    d.hi = ing_reader_u64(r);
    return d;
}

static void write_digest(ing_bytes *out, ing_hash128 d) {
    ing_bytes_u64(out, d.lo);
    ing_bytes_u64(out, d.hi);
}

/* 1, 0: it has none, -1 = raised. */
static int alias_key(ing_py_def *d, ing_hash128 *out) {
    ing_hash128 code;
    int known = d->text ? ing_py_code_digest(PyFunction_GET_CODE(d->fn), &code) : 0;
    if (known != 1) return known;
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_str(&h, TAG_REVISION, ING_FRONT_REVISION);
    ing_hasher_u64(&h, TAG_PYTHON, (PY_MAJOR_VERSION << 8) | PY_MINOR_VERSION);
    ing_hasher_digest(&h, TAG_LINES,
                      ing_py_source_digest(PyBytes_AS_STRING(d->text),
                                           (size_t)PyBytes_GET_SIZE(d->text)));
    ing_hasher_digest(&h, TAG_CODE, code);
    *out = ing_hasher_done(&h);
    return 1;
}

ing_status ing_py_disk_alias_get(ing_py_state *st, ing_py_def *d, ing_hash128 *tree) {
    ing_hash128 key;
    ing_store *store;
    if (ing_py_def_text(st, d) < 0) return ING_PYTHON;
    int known = alias_key(d, &key);
    if (known != 1) return known < 0 ? ING_PYTHON : ING_DECLINED;
    ING_TRY(disk_begin(st, &store));
    ing_bytes b;
    ing_bytes_init(&b);
    fetch_first(store, ING_ENTRY_ALIAS, key);
    ing_status s = ing_store_read(store, ING_ENTRY_ALIAS, key, &b);
    disk_end(st);
    ing_reader r = ing_reader_of(b.at, b.len);
    *tree = read_digest(&r);
    if (s == ING_OK && r.failed) s = ING_DECLINED;
    if (s == ING_OK) ing_count(&st->counters, ING_COUNT_SOURCE_ALIAS_HITS);
    if (s == ING_OK && r.at != r.end) {
        ing_bytes_fini(&d->hint);
        d->hint = b; /* all of it: adopt_hint knows where it begins */
    } else {
        ing_bytes_fini(&b);
    }
    return s;
}

static int alias_put(ing_store *store, ing_py_def *d, ing_hash128 tree,
                     const ing_hash128 *address, const ing_bytes *index) {
    ing_hash128 key;
    int known = alias_key(d, &key);
    if (known != 1) return known;
    ing_bytes b;
    ing_bytes_init(&b);
    write_digest(&b, tree);
    if (address) {
        write_digest(&b, *address);
        ing_bytes_put(&b, index->at, index->len);
    }
    if (!b.failed) (void)ing_store_put(store, ING_ENTRY_ALIAS, key, b.at, b.len);
    ing_bytes_fini(&b);
    return 0;
}

int ing_py_disk_alias_put(ing_py_state *st, ing_py_def *d, ing_hash128 tree) {
    ing_store *store;
    if (ing_py_def_text(st, d) < 0) return -1;
    ing_status s = disk_begin(st, &store);
    if (s != ING_OK) return s == ING_PYTHON ? -1 : 0;
    int rc = alias_put(store, d, tree, NULL, NULL);
    disk_end(st);
    return rc < 0 ? -1 : 0;
}

/* ---- the index --------------------------------------------------------------------------------- */

static ing_status address_of(ing_py_kernel *k, ing_hash128 *out, ing_err *e) {
    ing_hash128 source;
    ING_TRY(ing_py_def_digest(k->st, &k->def, &source, e));
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_str(&h, TAG_REVISION, ING_FRONT_REVISION);
    ing_hasher_digest(&h, TAG_TREE, source);
    /* Part of the tree as well; said again, an alias that lies leads nowhere. */
    for (uint32_t i = 0; i < k->def.n_params; i++) {
        ing_hasher_str(&h, TAG_PARAM, ing_py_utf8(PyTuple_GET_ITEM(k->def.names, i)));
    }
    /* Its check is part of compiling: code that did not pass it is not its code. */
    if (k->pure) ing_hasher_u64(&h, TAG_PURE, 1);
    if (k->graph) ing_hasher_u64(&h, TAG_GRAPH, k->checkpoints ? 2 : 1);
    *out = ing_hasher_done(&h);
    return ING_OK;
}

/* Reads a layer's index into a new tree; ING_DECLINED when it has none of use. */
static ing_status index_of_layer(ing_store *store, uint32_t layer, ing_hash128 address,
                                 ing_paths *paths, ing_tree *tree, ing_index_keys *keys,
                                 ing_bytes *only) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_status s = ing_store_read_layer(store, layer, ING_ENTRY_INDEX, address, &b);
    if (s == ING_OK) s = ing_index_read(b.at, b.len, paths, tree, keys, only);
    ing_bytes_fini(&b);
    return s;
}

/* A variant's entry. */
static ing_status record_get(ing_store *store, ing_hash128 key, ing_paths *paths,
                             ing_record *out) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_status s = ing_store_read(store, ING_ENTRY_VARIANT, key, &b);
    if (s == ING_OK) s = ing_record_read(b.at, b.len, paths, out);
    ing_bytes_fini(&b);
    return s;
}

/* The trace alone, where the tree needs it to tell a new variant from this one. */
static ing_status trace_get(ing_store *store, ing_hash128 key, ing_paths *paths,
                            ing_trace *out) {
    ing_record r;
    ING_TRY(record_get(store, key, paths, &r));
    ing_trace_fini(out);
    *out = r.trace;
    ing_trace_init(&r.trace);
    ing_record_fini(&r);
    return ING_OK;
}

static uint32_t key_place(const ing_index_keys *keys, ing_hash128 key) {
    uint32_t i = 0;
    while (i < keys->len && !ing_hash_eq(keys->at[i], key)) i++;
    return i;
}

/* The trees of an address as it is put together from all layers. */
typedef struct index_parts {
    ing_store *store;
    ing_paths *paths;
    ing_tree *tree;
    ing_index_keys *keys;
} index_parts;

static ing_status parts_trace(void *self, uint32_t variant, ing_trace *out) {
    index_parts *x = self;
    if (variant >= x->keys->len) return ING_DECLINED;
    return trace_get(x->store, x->keys->at[variant], x->paths, out);
}

/* A variant that only a lower layer's index has. One that cannot be read or contradicts
 * what is there is left out. */
static void parts_add(index_parts *x, ing_hash128 key) {
    ing_trace trace;
    ing_trace_init(&trace);
    uint32_t at = x->keys->len;
    if (trace_get(x->store, key, x->paths, &trace) == ING_OK &&
        ing_vec_push(x->keys, key) &&
        ing_tree_insert(x->tree, &trace, at, parts_trace, x, NULL) != ING_OK)
        x->keys->len = at;
    ing_trace_fini(&trace);
}

/* What the layers know of an address, in one new tree; ING_DECLINED: nothing. Whoever
 * extends it publishes the whole, so variants are moved over once. `only`: the
 * copy in the first layer that has an index, so of the first variant. */
static ing_status index_read(ing_store *store, ing_hash128 address, ing_paths *paths,
                             ing_tree *tree, ing_index_keys *keys, ing_bytes *only) {
    index_parts all = {store, paths, tree, keys};
    ing_status found = ING_DECLINED;
    for (uint32_t i = 0; i < ing_store_layers(store); i++) {
        ing_index_keys more = {0};
        ing_bytes one;
        ing_bytes_init(&one);
        ing_tree *part = ing_tree_new();
        ing_status s = part
                           ? index_of_layer(store, i, address, paths, part, &more, &one)
                           : ING_DECLINED;
        if (s == ING_OK && found != ING_OK) {
            ing_tree_swap(tree, part);
            *keys = more;
            memset(&more, 0, sizeof more);
            *only = one;
            ing_bytes_init(&one);
            found = ING_OK;
        }
        for (uint32_t k = 0; s == ING_OK && k < more.len; k++)
            if (key_place(keys, more.at[k]) == keys->len) parts_add(&all, more.at[k]);
        ing_tree_free(part);
        ing_vec_fini(&more);
        ing_bytes_fini(&one);
    }
    return found;
}

ing_status ing_py_disk_trace(ing_py_kernel *k, ing_hash128 key, ing_trace *out) {
    ing_store *store;
    ING_TRY(disk_begin(k->st, &store));
    ing_status s = trace_get(store, key, &k->paths, out);
    disk_end(k->st);
    return s;
}

/* The kernel gets these leaves; a variant that the hint of its alias brought, and that may
 * be loaded, finds its place among them by its key or is dropped. */
static void adopt(ing_py_kernel *k, const ing_index_keys *keys, ing_tree *tree,
                  ing_bytes *only) {
    ing_py_slot had = k->slots.len ? k->slots.at[0] : (ing_py_slot){0};
    if (!ing_vec_reserve(&k->slots, keys->len)) return;
    k->slots.len = 0;
    for (uint32_t i = 0; i < keys->len; i++) {
        bool same = had.variant && ing_hash_eq(keys->at[i], had.key);
        k->slots.at[k->slots.len++] =
            (ing_py_slot){keys->at[i], same ? had.variant : NULL};
        if (same) had.variant = NULL;
    }
    if (had.variant && k->last == had.variant) k->last = NULL;
    ing_py_variant_unref(had.variant);
    ing_tree_swap(k->tree, tree); /* the object stays: it may be walked right now */
    ing_bytes_fini(&k->only);
    k->only = *only;
    ing_bytes_init(only);
}

/* The kernel's tree becomes the one on disk, its leaves not loaded yet. */
static ing_status adopt_index(ing_py_kernel *k, ing_store *store, ing_hash128 address,
                              ing_err *e) {
    ing_index_keys keys = {0};
    ing_bytes only;
    ing_bytes_init(&only);
    ing_tree *tree = ing_tree_new();
    if (!tree)
        return ing_fail(e, ING_MEMORY, "no memory for the kernel's decision tree");
    ing_status s = index_read(store, address, &k->paths, tree, &keys, &only);
    if (s == ING_OK) adopt(k, &keys, tree, &only);
    ing_tree_free(tree);
    ing_vec_fini(&keys);
    ing_bytes_fini(&only);
    return ING_OK;
}

/* The index that the alias brought along, if it is of this address. */
static bool adopt_hint(ing_py_kernel *k, ing_hash128 address) {
    ing_reader r = ing_reader_of(k->def.hint.at, k->def.hint.len);
    (void)read_digest(&r); /* the tree */
    bool fits = ing_hash_eq(read_digest(&r), address) && !r.failed;
    ing_index_keys keys = {0};
    ing_bytes only;
    ing_bytes_init(&only);
    ing_tree *tree = fits ? ing_tree_new() : NULL;
    size_t n = (size_t)(r.end - r.at);
    fits = tree && ing_index_read(r.at, n, &k->paths, tree, &keys, &only) == ING_OK &&
           only.len;
    if (fits) adopt(k, &keys, tree, &only);
    ing_tree_free(tree);
    ing_vec_fini(&keys);
    ing_bytes_fini(&only);
    ing_bytes_fini(&k->def.hint);
    return k->hinted = fits && k->slots.len == 1;
}

ing_status ing_py_disk_more(ing_py_kernel *k, ing_err *e) {
    ing_hash128 address;
    ing_store *store;
    if (!k->hinted) return ING_DECLINED;
    ING_TRY(address_of(k, &address, e));
    ing_status s = disk_begin(k->st, &store);
    if (s == ING_PYTHON) return s;
    bool held = s == ING_OK, first = k->hinted; /* Python ran */
    k->hinted = false;
    if (held) s = first ? adopt_index(k, store, address, e) : ING_DECLINED;
    if (held) disk_end(k->st);
    return s;
}

/* Nobody goes on, to compile what the index may have, before it was read. */
ing_status ing_py_disk_open(ing_py_kernel *k, ing_err *e) {
    while (k->disk_epoch != k->epoch) {
        uint64_t epoch = k->epoch;
        bool on = disk_is_on(k->st);
        ing_hash128 address;
        if (on) ING_TRY(address_of(k, &address, e));
        ing_store *store = NULL;
        if (on && disk_begin(k->st, &store) == ING_PYTHON) return ING_PYTHON;
        if (store) fetch_first(store, ING_ENTRY_INDEX, address);
        /* Python ran: another thread may have been here, or qd.init ended the epoch. */
        bool first = k->epoch == epoch && k->disk_epoch != epoch;
        if (first) {
            k->disk_epoch = epoch;
            k->looked = ing_py_wall_ns();
        }
        ing_status s = ING_OK;
        /* Leaves number the slots from 0. */
        if (first && store && k->slots.len == 0) {
            k->observed.key_generated = true;
            if (!k->def.hint.len || !adopt_hint(k, address))
                s = adopt_index(k, store, address, e);
        }
        if (store) disk_end(k->st);
        ING_TRY(s);
    }
    return ING_OK;
}

/* ---- variants ------------------------------------------------------------------------------------ */

typedef struct index_file {
    ing_store *store;
    ing_paths paths;
    ing_tree *tree;
    ing_index_keys keys;
} index_file;

static bool index_init(index_file *x, ing_store *store) {
    x->store = store;
    memset(&x->keys, 0, sizeof x->keys);
    ing_paths_init(&x->paths);
    x->tree = ing_tree_new();
    return x->tree != NULL;
}

static void index_fini(index_file *x) {
    ing_paths_fini(&x->paths);
    ing_tree_free(x->tree);
    ing_vec_fini(&x->keys);
}

/* ING_INTERNAL: the tree asks something else after equal answers. */
static ing_status index_add(index_file *x, const ing_py_kernel *k,
                            const ing_py_variant *v, ing_hash128 key) {
    ing_trace trace;
    ing_trace_init(&trace);
    uint32_t at = key_place(&x->keys, key); /* there already: its entry was lost */
    ing_status s = ing_trace_copy(&v->record.trace, &k->paths, &x->paths, &trace, NULL);
    if (s == ING_OK && at == x->keys.len && !ing_vec_push(&x->keys, key))
        s = ING_MEMORY;
    index_parts parts = {x->store, &x->paths, x->tree, &x->keys};
    if (s == ING_OK)
        s = ing_tree_insert(x->tree, &trace, at, parts_trace, &parts, NULL);
    ing_trace_fini(&trace);
    return s;
}

/* A new index, with what this process has loaded: by a hint, or before the index was lost. */
static bool index_begin(index_file *x, ing_store *store, const ing_py_kernel *k,
                        const ing_py_variant *v, ing_hash128 key) {
    bool ok = index_init(x, store) && index_add(x, k, v, key) == ING_OK;
    for (uint32_t i = 0; ok && i < k->slots.len; i++) {
        const ing_py_slot *s = &k->slots.at[i];
        uint32_t n = x->keys.len;
        if (!s->variant || s->variant->only_here || !(s->key.lo | s->key.hi)) continue;
        if (index_add(x, k, s->variant, s->key) != ING_OK) x->keys.len = n;
    }
    return ok;
}

/* Reads what is there now, adds this trace, and puts the result in its place. What cannot
 * be read or contradicts this trace is replaced: an index is derived. 1, 0: it could not be
 * written, -1 = raised. */
static int index_extend(ing_py_kernel *k, ing_store *store, ing_hash128 address,
                        const ing_py_variant *v, ing_hash128 key,
                        const ing_bytes *entry) {
    index_file x;
    ing_bytes out, only;
    ing_bytes_init(&out);
    ing_bytes_init(&only);
    bool ok = index_init(&x, store);
    ing_status s =
        ok ? index_read(store, address, &x.paths, x.tree, &x.keys, &only) : ING_OK;
    ing_bytes_fini(&only);
    if (ok && s == ING_OK) {
        s = index_add(&x, k, v, key);
        if (s == ING_INTERNAL) ing_count(&k->st->counters, ING_COUNT_TRACE_CONFLICTS);
    }
    if (ok && s != ING_OK) {
        index_fini(&x);
        ok = index_begin(&x, store, k, v, key);
    }
    if (ok) ing_index_write(x.tree, &x.paths, &x.keys, entry, &out);
    ok = ok && !out.failed &&
         ing_store_put(store, ING_ENTRY_INDEX, address, out.at, out.len) == ING_OK;
    int rc = ok;
    if (ok && x.keys.len == 1 && k->def.digest_known && !k->def.ours &&
        alias_put(store, &k->def, k->def.digest, &address, &out) < 0)
        rc = -1;
    ing_bytes_fini(&out);
    index_fini(&x);
    return rc;
}

static ing_hash128 variant_key(ing_hash128 address, const ing_bytes *trace) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, TAG_ADDRESS, address);
    ing_hasher_item(&h, TAG_TRACE, trace->at, trace->len);
    return ing_hasher_done(&h);
}

static ing_status publish(ing_py_kernel *k, ing_store *store, const ing_py_variant *v,
                          ing_hash128 address, ing_hash128 *key, ing_err *e) {
    ing_bytes b, trace;
    ing_bytes_init(&b);
    ing_bytes_init(&trace);
    ing_trace_print(&v->record.trace, &k->paths, &trace);
    ing_status s =
        trace.failed ? ing_fail(e, ING_MEMORY, "no memory for a trace") : ING_OK;
    if (s == ING_OK) s = ing_record_write(&v->record, &k->paths, &b, e);
    if (s == ING_OK) {
        *key = variant_key(address, &trace);
        if (ing_store_put(store, ING_ENTRY_VARIANT, *key, b.at, b.len) == ING_OK) {
            int stored = index_extend(k, store, address, v, *key, &b);
            k->observed.stored = stored == 1;
            if (stored == 1) ing_count(&k->st->counters, ING_COUNT_KERNEL_STORED);
            if (stored < 0) s = ING_PYTHON;
        }
    }
    ing_bytes_fini(&b);
    ing_bytes_fini(&trace);
    return s;
}

ing_status ing_py_disk_publish(ing_py_kernel *k, const ing_py_variant *v,
                               ing_hash128 *key, ing_err *e) {
    ing_hash128 address;
    ING_TRY(address_of(k, &address, e));
    ing_store *store;
    ing_status s = disk_begin(k->st, &store);
    if (s != ING_OK) return s == ING_PYTHON ? s : ING_OK;
    s = publish(k, store, v, address, key, e);
    if (ing_store_wants_pack(store)) {
        Py_BEGIN_ALLOW_THREADS ing_engine_pack(k->st->host->engine);
        Py_END_ALLOW_THREADS
    }
    disk_end(k->st);
    return s;
}

/* ---- loading --------------------------------------------------------------------------------------- */

/* Binds name parameters of this kernel. */
static bool binds_fit(const ing_py_kernel *k, const ing_record *r) {
    for (uint32_t i = 0; i < r->binds.len; i++) {
        const ing_record_bind *b = &r->binds.at[i];
        bool direct = b->kind == ING_BIND_SCALAR || b->kind == ING_BIND_ARRAY;
        if (direct && b->arg >= k->def.n_params) return false;
    }
    return true;
}

/* Results are read as the annotation says (call.c), so a record must say the same. */
static bool returns_fit(const ing_gate_returns *a, const ing_record *r) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        n += a->layouts[i] ? a->layouts[i]->n_numbers : ing_gate_count(&a->tensors[i]);
    return n == r->n_rets && r->returns_tuple == (a->n > 1 || a->tuple);
}

/* The code of a variant whose trace holds. */
static ing_status load_code(ing_py_kernel *k, ing_py_variant *v, ing_err *e) {
    ing_store *store;
    ING_TRY(disk_begin(k->st, &store));
    ing_settings now = k->st->settings; /* qd.init may change them meanwhile */
    /* Without a server it takes less than giving the GIL away may cost. */
    PyThreadState *gil = ing_store_has_remote(store) ? PyEval_SaveThread() : NULL;
    ing_status s =
        ing_engine_load(k->host->engine, v->target, &v->record, &now, &v->code, e);
    if (gil) PyEval_RestoreThread(gil);
    disk_end(k->st);
    return s;
}

static ing_status load(const ing_py_asker *a, ing_questions *asked, ing_py_variant *v,
                       ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ING_TRY(ing_trace_holds(&v->record.trace, ing_py_ask_again, (void *)a, asked, e));
    if (!returns_fit(&k->def.returns, &v->record) || !binds_fit(k, &v->record))
        return ING_DECLINED;
    k->observed.validated = true;
    ING_TRY(load_code(k, v, e));
    ING_TRY(ing_launch_tasks_init(&v->tasks, &v->code, e));
    ING_TRY(ing_py_graph_make(v, e));
    return ing_py_guards_make(k, v, a->args, e);
}

/* The entry of a slot's variant: what the index brought along, which is of the first and
 * is used once, or else what the store has. */
static ing_status slot_record(ing_py_kernel *k, uint32_t slot, ing_record *out) {
    ing_hash128 key = k->slots.at[slot].key;
    if (slot == 0 && k->only.len) {
        ing_status s = ing_record_read(k->only.at, k->only.len, &k->paths, out);
        ing_bytes_fini(&k->only);
        if (s == ING_OK) return ING_OK;
    }
    ing_store *store;
    ING_TRY(disk_begin(k->st, &store));
    fetch_first(store, ING_ENTRY_VARIANT, key);
    ing_status s = record_get(store, key, &k->paths, out);
    disk_end(k->st);
    return s;
}

ing_status ing_py_disk_load(const ing_py_asker *a, uint32_t slot, ing_questions *asked,
                            ing_py_variant **out, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ing_py_variant *v = ing_py_variant_new(k->host);
    ing_status s = v ? slot_record(k, slot, &v->record) : ING_DECLINED;
    if (s == ING_OK) s = load(a, asked, v, e);
    if (s != ING_OK) {
        ing_py_variant_unref(v);
        return s;
    }
    k->observed.loaded = true;
    ing_count(&k->st->counters, ING_COUNT_KERNEL_DISK_HITS);
    if (ing_py_tell_gdb(k, v, a->args) < 0) {
        ing_py_variant_unref(v);
        return ING_PYTHON;
    }
    *out = v;
    return ING_OK;
}

/* ---- for tools (cachetool.c) --------------------------------------------------------------------- */

int ing_py_disk_address(ing_py_kernel *k, ing_hash128 *out) {
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = address_of(k, out, &ignored);
    if (s != ING_OK) *out = (ing_hash128){0, 0};
    ing_err_fini(&ignored);
    return s == ING_PYTHON ? -1 : 0;
}

ing_status ing_py_index_keys(const uint8_t *p, size_t n, ing_index_keys *out) {
    ing_paths paths;
    ing_bytes only;
    ing_tree *tree = ing_tree_new();
    ing_paths_init(&paths);
    ing_bytes_init(&only);
    ing_status s = tree ? ing_index_read(p, n, &paths, tree, out, &only) : ING_MEMORY;
    ing_bytes_fini(&only);
    ing_tree_free(tree);
    ing_paths_fini(&paths);
    return s;
}

/* What another index of the same kernel names is added to the one that is here. */
ing_status ing_py_index_merge(ing_store *store, ing_hash128 address, const uint8_t *p,
                              size_t n) {
    index_file x;
    ing_index_keys more = {0};
    ing_bytes out, only;
    ing_bytes_init(&out);
    ing_bytes_init(&only);
    ing_status s = index_init(&x, store) ? ing_py_index_keys(p, n, &more) : ING_MEMORY;
    if (s == ING_OK &&
        index_read(store, address, &x.paths, x.tree, &x.keys, &only) != ING_OK) {
        s = ing_store_put(store, ING_ENTRY_INDEX, address, p, n);
    } else if (s == ING_OK) {
        index_parts here = {store, &x.paths, x.tree, &x.keys};
        for (uint32_t i = 0; i < more.len; i++)
            if (key_place(&x.keys, more.at[i]) == x.keys.len)
                parts_add(&here, more.at[i]);
        ing_index_write(x.tree, &x.paths, &x.keys, &only, &out);
        s = out.failed
                ? ING_MEMORY
                : ing_store_put(store, ING_ENTRY_INDEX, address, out.at, out.len);
    }
    ing_bytes_fini(&out);
    ing_bytes_fini(&only);
    ing_vec_fini(&more);
    index_fini(&x);
    return s;
}
