/* The cache of one kernel: opening it, finding and loading variants, publishing new ones.
 * Called by src/py with the GIL; every callback and ing_cache_fetch may run Python, so what
 * was read of the struct before is read again after (`resets`). */
#include "cache/cache_int.h"

#include <string.h>
#include <time.h>

/* ---- life ------------------------------------------------------------------------------------- */

bool ing_cache_init(ing_cache *c, const ing_cache_host *host,
                    const ing_cache_kernel *kernel, ing_paths *paths) {
    *c = (ing_cache){.host = host, .kernel = *kernel, .paths = paths};
    ing_bytes_init(&c->only);
    c->tree = ing_tree_new();
    return c->tree != NULL;
}

/* Who drops a variant may run Python, which finds a cache without leaves. */
static void drop_leaves(ing_cache *c) {
    ing_cache_leaf *at = c->leaves.at;
    uint32_t n = c->leaves.len;
    memset(&c->leaves, 0, sizeof c->leaves);
    ing_bytes_fini(&c->only);
    c->hinted = false;
    for (uint32_t i = 0; i < n; i++)
        if (at[i].variant) c->kernel.drop(c->kernel.self, at[i].variant);
    ing_free(at);
}

void ing_cache_clear(ing_cache *c) {
    if (c->tree) ing_tree_clear(c->tree); /* never freed here: it may be walked */
    drop_leaves(c);
}

void ing_cache_reset(ing_cache *c) {
    c->resets++;
    c->opened = false;
    c->seen = (ing_cache_seen){0};
    ing_cache_clear(c);
}

void ing_cache_fini(ing_cache *c) {
    drop_leaves(c);
    ing_tree_free(c->tree);
    c->tree = NULL;
}

bool ing_cache_holds(const ing_cache *c, const void *variant) {
    for (uint32_t i = c->leaves.len; i-- > 0;)
        if (c->leaves.at[i].variant == variant) return true;
    return false;
}

/* ---- what the disk has -------------------------------------------------------------------------- */

/* The kernel gets these leaves; the variant that the hint of its alias brought, and that may
 * be loaded, finds its place among them by its key or is dropped. */
static void adopt(ing_cache *c, ing_cache_index *x) {
    ing_cache_leaf had = c->leaves.len ? c->leaves.at[0] : (ing_cache_leaf){0};
    if (!ing_vec_reserve(&c->leaves, x->keys.len)) return;
    c->leaves.len = 0;
    for (uint32_t i = 0; i < x->keys.len; i++) {
        bool same = had.variant && ing_hash_eq(x->keys.at[i], had.key);
        c->leaves.at[c->leaves.len++] =
            (ing_cache_leaf){x->keys.at[i], same ? had.variant : NULL};
        if (same) had.variant = NULL;
    }
    ing_tree_swap(c->tree, x->tree);
    ing_bytes_fini(&c->only);
    c->only = x->only;
    ing_bytes_init(&x->only);
    if (had.variant) c->kernel.drop(c->kernel.self, had.variant);
}

static ing_status adopt_index(ing_cache *c, ing_store *store, ing_hash128 address,
                              ing_err *e) {
    ing_cache_index x;
    if (!ing_cache_index_init(&x, store, c->paths))
        return ing_fail(e, ING_MEMORY, "no memory for the kernel's decision tree");
    if (ing_cache_index_read(&x, address) == ING_OK) adopt(c, &x);
    ing_cache_index_fini(&x);
    return ING_OK;
}

/* The index that the alias brought along, if it is of this address and has its variant. */
static bool adopt_hint(ing_cache *c, ing_cache_alias *alias, ing_hash128 address) {
    ing_hash128 of;
    ing_reader r;
    ing_cache_index x;
    bool fits = ing_cache_alias_hint(&alias->hint, &of, &r) == ING_OK &&
                ing_hash_eq(of, address) && ing_cache_index_init(&x, NULL, c->paths);
    if (fits) {
        size_t n = (size_t)(r.end - r.at);
        fits = ing_index_read(r.at, n, c->paths, x.tree, &x.keys, &x.only) == ING_OK &&
               x.only.len;
        if (fits) adopt(c, &x);
        ing_cache_index_fini(&x);
    }
    ing_bytes_fini(&alias->hint);
    return c->hinted = fits && c->leaves.len == 1;
}

static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static ing_status open_once(ing_cache *c, ing_cache_alias *alias, ing_err *e) {
    uint64_t resets = c->resets;
    bool on = c->host->is_on(c->host->self);
    ing_hash128 address;
    ing_store *store = NULL;
    if (on) ING_TRY(c->kernel.address(c->kernel.self, &address, e));
    if (on && ing_cache_begin(c->host, &store) == ING_PYTHON) return ING_PYTHON;
    if (store) ing_cache_fetch(c->host, store, ING_ENTRY_INDEX, address);
    /* Python ran: another thread may have been here, or the cache was reset. */
    bool first = c->resets == resets && !c->opened;
    if (first) {
        c->opened = true;
        c->looked = wall_ns();
    }
    ing_status s = ING_OK;
    /* Leaves number the index from 0. */
    if (first && store && c->leaves.len == 0) {
        c->seen.key_generated = true;
        if (!adopt_hint(c, alias, address)) s = adopt_index(c, store, address, e);
    }
    if (store) ing_cache_end(c->host);
    return s;
}

/* Nobody goes on, to compile what the index may have, before it was read. */
ing_status ing_cache_open(ing_cache *c, ing_cache_alias *alias, ing_err *e) {
    while (!c->opened) ING_TRY(open_once(c, alias, e));
    return ING_OK;
}

ing_status ing_cache_more(ing_cache *c, ing_err *e) {
    ing_hash128 address;
    ing_store *store;
    if (!c->hinted) return ING_DECLINED;
    ING_TRY(c->kernel.address(c->kernel.self, &address, e));
    ing_status s = ing_cache_begin(c->host, &store);
    if (s == ING_PYTHON) return s;
    bool held = s == ING_OK, first = c->hinted; /* Python ran */
    c->hinted = false;
    if (held) s = first ? adopt_index(c, store, address, e) : ING_DECLINED;
    if (held) ing_cache_end(c->host);
    return s;
}

/* ---- a variant of it ---------------------------------------------------------------------------- */

ing_status ing_cache_find(ing_cache *c, ing_tree_ask ask, void *self, uint32_t *leaf,
                          ing_questions *asked, ing_err *e) {
    ING_TRY(ing_tree_walk(c->tree, ask, self, leaf, asked, e));
    return *leaf < c->leaves.len ? ING_OK : ING_DECLINED;
}

/* The entry of a leaf: what the index brought along, which is of the first and is used once,
 * or else what the store has. */
static ing_status read_entry(ing_cache *c, uint32_t leaf, ing_record *out) {
    ing_hash128 key = c->leaves.at[leaf].key;
    if (leaf == 0 && c->only.len) {
        ing_status s = ing_record_read(c->only.at, c->only.len, c->paths, out);
        ing_bytes_fini(&c->only);
        if (s == ING_OK) return ING_OK;
    }
    ing_store *store;
    ING_TRY(ing_cache_begin(c->host, &store));
    ing_cache_fetch(c->host, store, ING_ENTRY_VARIANT, key);
    ing_status s = ing_cache_entry(store, key, c->paths, out);
    ing_cache_end(c->host);
    return s;
}

ing_status ing_cache_record(ing_cache *c, uint32_t leaf, ing_tree_ask ask, void *self,
                            ing_questions *asked, ing_record *out, ing_err *e) {
    if (leaf >= c->leaves.len) return ING_DECLINED;
    ING_TRY(read_entry(c, leaf, out));
    return ing_trace_holds(&out->trace, ask, self, asked, e);
}

ing_status ing_cache_code(ing_cache *c, const ing_target *t, const ing_record *r,
                          const ing_settings *now, ing_code *out, ing_err *e) {
    const ing_cache_host *h = c->host;
    ing_store *store;
    c->seen.validated = true;
    ING_TRY(ing_cache_begin(h, &store));
    ing_settings settings; /* a copy: they may change meanwhile */
    ing_settings_answered(now, &settings);
    /* Without a server it takes less than giving the GIL away may cost. */
    bool release = h->release && ing_store_has_remote(store);
    void *token = release ? h->release(h->self) : NULL;
    ing_status s = ing_engine_load(h->engine, t, r, &settings, out, e);
    if (release) h->acquire(h->self, token);
    ing_cache_end(h);
    return s;
}

bool ing_cache_loaded(ing_cache *c, uint32_t leaf, ing_hash128 key, void *variant) {
    if (leaf >= c->leaves.len || c->leaves.at[leaf].variant ||
        !ing_hash_eq(c->leaves.at[leaf].key, key))
        return false;
    c->leaves.at[leaf].variant = variant;
    return true;
}

/* ---- a new variant -------------------------------------------------------------------------------- */

/* The trace of a leaf, for the tree; of one that is not in memory from its entry. */
static ing_status leaf_trace(void *self, uint32_t leaf, ing_trace *out) {
    ing_cache *c = self;
    ing_store *store;
    if (leaf >= c->leaves.len) return ING_DECLINED;
    const ing_cache_leaf *l = &c->leaves.at[leaf];
    if (l->variant)
        return ing_trace_copy(&c->kernel.record(l->variant)->trace, c->paths, c->paths,
                              out, NULL);
    ing_hash128 key = l->key;
    ING_TRY(ing_cache_begin(c->host, &store));
    ing_status s = ing_cache_entry_trace(store, key, c->paths, out);
    ing_cache_end(c->host);
    return s;
}

static ing_status add_leaf(ing_cache *c, ing_cache_leaf leaf, ing_err *e) {
    if (!ing_vec_push(&c->leaves, leaf))
        return ing_fail(e, ING_MEMORY, "no memory for a compiled kernel");
    const ing_trace *t = &c->kernel.record(leaf.variant)->trace;
    ing_status s = ing_tree_insert(c->tree, t, c->leaves.len - 1, leaf_trace, c, e);
    if (s != ING_OK) c->leaves.len--;
    return s;
}

ing_status ing_cache_keep(ing_cache *c, ing_hash128 key, void *variant, ing_err *e) {
    ing_cache_leaf leaf = {key, variant};
    ing_status s = add_leaf(c, leaf, e);
    if (s != ING_INTERNAL) return s;
    /* The tree came from disk and says what lowering does not: start it again. */
    ing_count(c->host->counters, ING_COUNT_TRACE_CONFLICTS);
    if (e) {
        ing_err_fini(e);
        ing_err_init(e);
    }
    ing_cache_clear(c);
    return add_leaf(c, leaf, e);
}

/* A new index, with what this process has loaded: by a hint, or before the index was lost. */
static bool index_begin(ing_cache_index *x, const ing_cache *c, const ing_record *r,
                        ing_hash128 key) {
    if (ing_cache_index_add(x, &r->trace, c->paths, key) != ING_OK) return false;
    for (uint32_t i = 0; i < c->leaves.len; i++) {
        const ing_cache_leaf *l = &c->leaves.at[i];
        if (l->variant && (l->key.lo | l->key.hi))
            (void)ing_cache_index_add(x, &c->kernel.record(l->variant)->trace, c->paths,
                                      l->key);
    }
    return true;
}

/* Reads what is there now and adds this trace. What cannot be read or contradicts it is
 * replaced: an index is derived. */
static bool index_extend(ing_cache_index *x, const ing_cache *c, ing_hash128 address,
                         const ing_record *r, ing_hash128 key) {
    ing_status s = ing_cache_index_read(x, address);
    if (s == ING_OK) {
        s = ing_cache_index_add(x, &r->trace, c->paths, key);
        if (s == ING_INTERNAL) ing_count(c->host->counters, ING_COUNT_TRACE_CONFLICTS);
    }
    if (s == ING_OK) return true;
    ing_store *store = x->store;
    ing_paths *paths = x->paths;
    ing_cache_index_fini(x);
    return ing_cache_index_init(x, store, paths) && index_begin(x, c, r, key);
}

/* Puts the extended index in its place, and the first one into the alias. False: it could not
 * be written. */
static bool index_publish(const ing_cache *c, ing_store *store, ing_hash128 address,
                          const ing_record *r, ing_hash128 key, const ing_bytes *entry,
                          const ing_cache_alias *alias) {
    ing_paths paths;
    ing_cache_index x;
    ing_bytes out;
    ing_paths_init(&paths);
    ing_bytes_init(&out);
    bool ok =
        ing_cache_index_init(&x, store, &paths) && index_extend(&x, c, address, r, key);
    if (ok) ing_index_write(x.tree, &paths, &x.keys, entry, &out);
    ok = ok && !out.failed &&
         ing_store_put(store, ING_ENTRY_INDEX, address, out.at, out.len) == ING_OK;
    if (ok && x.keys.len == 1 && alias)
        ing_cache_alias_write(store, alias, &address, &out);
    ing_bytes_fini(&out);
    ing_cache_index_fini(&x);
    ing_paths_fini(&paths);
    return ok;
}

static ing_hash128 variant_key(ing_hash128 address, const ing_bytes *trace) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, TAG_ADDRESS, address);
    ing_hasher_item(&h, TAG_TRACE, trace->at, trace->len);
    return ing_hasher_done(&h);
}

static ing_status publish(ing_cache *c, ing_store *store, ing_hash128 address,
                          const ing_record *r, const ing_cache_alias *alias,
                          ing_hash128 *key, ing_err *e) {
    ing_bytes entry, trace;
    ing_bytes_init(&entry);
    ing_bytes_init(&trace);
    ing_trace_print(&r->trace, c->paths, &trace);
    ing_status s =
        trace.failed ? ing_fail(e, ING_MEMORY, "no memory for a trace") : ING_OK;
    if (s == ING_OK) s = ing_record_write(r, c->paths, &entry, e);
    if (s == ING_OK) {
        *key = variant_key(address, &trace);
        c->seen.stored = ing_store_put(store, ING_ENTRY_VARIANT, *key, entry.at,
                                       entry.len) == ING_OK &&
                         index_publish(c, store, address, r, *key, &entry, alias);
        if (c->seen.stored) ing_count(c->host->counters, ING_COUNT_KERNEL_STORED);
    }
    ing_bytes_fini(&entry);
    ing_bytes_fini(&trace);
    return s;
}

ing_status ing_cache_publish(ing_cache *c, const ing_record *r, ing_cache_alias *alias,
                             ing_hash128 *key, ing_err *e) {
    const ing_cache_host *h = c->host;
    ing_hash128 address;
    ing_store *store;
    ING_TRY(c->kernel.address(c->kernel.self, &address, e));
    ing_status s = ing_cache_begin(h, &store);
    if (s != ING_OK) return s == ING_PYTHON ? s : ING_OK;
    s = publish(c, store, address, r, alias && alias->known ? alias : NULL, key, e);
    if (ing_store_wants_pack(store)) {
        void *token = h->release ? h->release(h->self) : NULL;
        ing_engine_pack(h->engine);
        if (h->release) h->acquire(h->self, token);
    }
    ing_cache_end(h);
    return s;
}
