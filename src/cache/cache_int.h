/* What the files of src/cache share. */
#ifndef ING_CACHE_INT_H
#define ING_CACHE_INT_H

#include "cache/cache.h"

/* The store while the kernel level is on. ING_DECLINED with nothing held: it is off, or
 * cannot be opened; ING_PYTHON: raised. Between begin and end nothing here begins again, and
 * no Python runs but in ing_cache_fetch: whoever changes the store waits for the end. */
ing_status ing_cache_begin(const ing_cache_host *h, ing_store **out);
void ing_cache_end(const ing_cache_host *h);
/* A server may take its time: what no layer has is brought here first, with the GIL given
 * away, so that the reader finds it. Python runs. */
void ing_cache_fetch(const ing_cache_host *h, ing_store *store, ing_entry_kind kind,
                     ing_hash128 key);

/* Numbers in keys and addresses: part of the format. */
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
    TAG_GRAPH,
    TAG_DERIVATIVE
};

/* The entry of an alias; with `index`: that of `address`, as it was written. */
void ing_cache_alias_write(ing_store *store, const ing_cache_alias *a,
                           const ing_hash128 *address, const ing_bytes *index);
/* The index in an alias; *address is what it is of. ING_DECLINED: it has none. */
ing_status ing_cache_alias_hint(const ing_bytes *hint, ing_hash128 *address,
                                ing_reader *index);

/* What the layers know of an address, in one tree. */
typedef struct ing_cache_index {
    ing_store *store;
    ing_paths *paths;
    ing_tree *tree;
    ing_index_keys keys;
    ing_bytes
        only; /* the copy in the first layer that has an index: of the first variant */
} ing_cache_index;

bool ing_cache_index_init(ing_cache_index *x, ing_store *store, ing_paths *paths);
void ing_cache_index_fini(ing_cache_index *x);
/* Into a new one; ING_DECLINED: no layer knows the address. */
ing_status ing_cache_index_read(ing_cache_index *x, ing_hash128 address);
/* ING_INTERNAL: the tree asks something else after equal answers. */
ing_status ing_cache_index_add(ing_cache_index *x, const ing_trace *trace,
                               const ing_paths *from, ing_hash128 key);
/* A variant's entry, and its trace alone. */
ing_status ing_cache_entry(ing_store *store, ing_hash128 key, ing_paths *paths,
                           ing_record *out);
ing_status ing_cache_entry_trace(ing_store *store, ing_hash128 key, ing_paths *paths,
                                 ing_trace *out);

#endif
