/* The index of an address: the decision tree of a kernel and the keys of its leaves (R17),
 * put together from all layers. It is derived: read, extended and replaced by rename. Two
 * processes that extend it at once may lose one leaf; its variant is then lowered once more
 * (the images are there) and added again. Bytes: src/trace/index.c. */
#include "cache/cache_int.h"

#include <string.h>

bool ing_cache_index_init(ing_cache_index *x, ing_store *store, ing_paths *paths) {
    *x = (ing_cache_index){.store = store, .paths = paths, .tree = ing_tree_new()};
    ing_bytes_init(&x->only);
    return x->tree != NULL;
}

void ing_cache_index_fini(ing_cache_index *x) {
    ing_tree_free(x->tree);
    ing_vec_fini(&x->keys);
    ing_bytes_fini(&x->only);
}

ing_status ing_cache_entry(ing_store *store, ing_hash128 key, ing_paths *paths,
                           ing_record *out) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_status s = ing_store_read(store, ING_ENTRY_VARIANT, key, &b);
    if (s == ING_OK) s = ing_record_read(b.at, b.len, paths, out);
    ing_bytes_fini(&b);
    return s;
}

ing_status ing_cache_entry_trace(ing_store *store, ing_hash128 key, ing_paths *paths,
                                 ing_trace *out) {
    ing_record r;
    ING_TRY(ing_cache_entry(store, key, paths, &r));
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

/* The trace of a leaf, where the tree needs it to tell a new variant from that one. */
static ing_status leaf_trace(void *self, uint32_t variant, ing_trace *out) {
    ing_cache_index *x = self;
    if (variant >= x->keys.len) return ING_DECLINED;
    return ing_cache_entry_trace(x->store, x->keys.at[variant], x->paths, out);
}

static ing_status insert(ing_cache_index *x, const ing_trace *trace, ing_hash128 key) {
    uint32_t n = x->keys.len, at = key_place(&x->keys, key);
    if (at == n && !ing_vec_push(&x->keys, key)) return ING_MEMORY;
    ing_status s = ing_tree_insert(x->tree, trace, at, leaf_trace, x, NULL);
    if (s != ING_OK) x->keys.len = n;
    return s;
}

ing_status ing_cache_index_add(ing_cache_index *x, const ing_trace *trace,
                               const ing_paths *from, ing_hash128 key) {
    ing_trace here;
    ing_trace_init(&here);
    ing_status s = ing_trace_copy(trace, from, x->paths, &here, NULL);
    if (s == ING_OK) s = insert(x, &here, key);
    ing_trace_fini(&here);
    return s;
}

/* A variant that only another index has. One that cannot be read or contradicts what is
 * there is left out. */
static void add_other(ing_cache_index *x, ing_hash128 key) {
    ing_trace trace;
    ing_trace_init(&trace);
    if (key_place(&x->keys, key) == x->keys.len &&
        ing_cache_entry_trace(x->store, key, x->paths, &trace) == ING_OK)
        (void)insert(x, &trace, key);
    ing_trace_fini(&trace);
}

/* One layer's index, into a new one. */
static ing_status read_layer(ing_cache_index *x, uint32_t layer, ing_hash128 address) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_status s = ing_store_read_layer(x->store, layer, ING_ENTRY_INDEX, address, &b);
    if (s == ING_OK)
        s = ing_index_read(b.at, b.len, x->paths, x->tree, &x->keys, &x->only);
    ing_bytes_fini(&b);
    return s;
}

/* Whoever extends it publishes the whole, so variants of lower layers are moved over once. */
ing_status ing_cache_index_read(ing_cache_index *x, ing_hash128 address) {
    ing_status found = ING_DECLINED;
    for (uint32_t i = 0; i < ing_store_layers(x->store); i++) {
        ing_cache_index part;
        bool ok = ing_cache_index_init(&part, x->store, x->paths);
        ing_status s = ok ? read_layer(&part, i, address) : ING_DECLINED;
        if (s == ING_OK && found != ING_OK) {
            ing_cache_index empty = *x;
            *x = part;
            part = empty;
            found = ING_OK;
        }
        for (uint32_t k = 0; s == ING_OK && k < part.keys.len; k++)
            add_other(x, part.keys.at[k]);
        ing_cache_index_fini(&part);
    }
    return found;
}

/* ---- for tools ----------------------------------------------------------------------------------- */

ing_status ing_cache_index_keys(const uint8_t *p, size_t n, ing_index_keys *out) {
    ing_paths paths;
    ing_cache_index x;
    ing_paths_init(&paths);
    ing_status s = ing_cache_index_init(&x, NULL, &paths)
                       ? ing_index_read(p, n, &paths, x.tree, out, &x.only)
                       : ING_MEMORY;
    ing_cache_index_fini(&x);
    ing_paths_fini(&paths);
    return s;
}

/* Adds those of `more` to what is there, if anything is. */
static ing_status merge(ing_cache_index *x, ing_hash128 address, ing_index_keys *more,
                        const uint8_t *p, size_t n) {
    if (ing_cache_index_read(x, address) != ING_OK)
        return ing_store_put(x->store, ING_ENTRY_INDEX, address, p, n);
    for (uint32_t i = 0; i < more->len; i++) add_other(x, more->at[i]);
    ing_bytes out;
    ing_bytes_init(&out);
    ing_index_write(x->tree, x->paths, &x->keys, &x->only, &out);
    ing_status s =
        out.failed ? ING_MEMORY
                   : ing_store_put(x->store, ING_ENTRY_INDEX, address, out.at, out.len);
    ing_bytes_fini(&out);
    return s;
}

ing_status ing_cache_index_merge(ing_store *store, ing_hash128 address,
                                 const uint8_t *p, size_t n) {
    ing_paths paths;
    ing_cache_index x;
    ing_index_keys more = {0};
    ing_paths_init(&paths);
    ing_status s = ing_cache_index_init(&x, store, &paths)
                       ? ing_cache_index_keys(p, n, &more)
                       : ING_MEMORY;
    if (s == ING_OK) s = merge(&x, address, &more, p, n);
    ing_vec_fini(&more);
    ing_cache_index_fini(&x);
    ing_paths_fini(&paths);
    return s;
}
