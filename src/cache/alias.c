/* From a definition's text to the address of its kernel (R9, R10). An alias is
 *   u64 lo, hi    digest of the syntax tree
 * and of a kernel compiled for the first time also
 *   u64 lo, hi    its address, then the index of then,
 * so that a hit need not read that: a hint like the index itself. Called by src/py before
 * anything is parsed. */
#include "cache/cache_int.h"

#include "ing_revision.h"

#include <string.h>

ing_status ing_cache_begin(const ing_cache_host *h, ing_store **out) {
    ing_status s = h->is_on(h->self) ? h->open(h->self) : ING_DECLINED;
    if (s != ING_OK) return s == ING_PYTHON ? s : ING_DECLINED;
    *out = ing_engine_begin(h->engine);
    if (*out) return ING_OK;
    ing_engine_end(h->engine);
    return ING_DECLINED;
}

void ing_cache_end(const ing_cache_host *h) {
    ing_engine_end(h->engine);
}

void ing_cache_fetch(const ing_cache_host *h, ing_store *store, ing_entry_kind kind,
                     ing_hash128 key) {
    if (!ing_store_has_remote(store)) return;
    ing_bytes ignored;
    ing_bytes_init(&ignored);
    void *token = h->release ? h->release(h->self) : NULL;
    if (kind == ING_ENTRY_INDEX)
        (void)ing_store_read_layer(store, 0, kind, key, &ignored);
    else
        (void)ing_store_read(store, kind, key, &ignored);
    if (h->release) h->acquire(h->self, token);
    ing_bytes_fini(&ignored);
}

/* ---- aliases ---------------------------------------------------------------------------------- */

static ing_hash128 read_digest(ing_reader *r) {
    ing_hash128 d = {ing_reader_u64(r), 0};
    d.hi = ing_reader_u64(r);
    return d;
}

static void write_digest(ing_bytes *out, ing_hash128 d) {
    ing_bytes_u64(out, d.lo);
    ing_bytes_u64(out, d.hi);
}

void ing_cache_alias_fini(ing_cache_alias *a) {
    ing_bytes_fini(&a->hint);
}

void ing_cache_alias_key(ing_cache_alias *a, uint32_t python, ing_hash128 lines,
                         ing_hash128 code) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_str(&h, TAG_REVISION, ING_FRONT_REVISION);
    ing_hasher_u64(&h, TAG_PYTHON, python);
    ing_hasher_digest(&h, TAG_LINES, lines);
    ing_hasher_digest(&h, TAG_CODE, code);
    a->key = ing_hasher_done(&h);
    a->has_key = true;
}

ing_status ing_cache_alias_get(const ing_cache_host *h, ing_cache_alias *a) {
    ing_store *store;
    if (!a->has_key) return ING_DECLINED;
    ING_TRY(ing_cache_begin(h, &store));
    ing_bytes b;
    ing_bytes_init(&b);
    ing_cache_fetch(h, store, ING_ENTRY_ALIAS, a->key);
    ing_status s = ing_store_read(store, ING_ENTRY_ALIAS, a->key, &b);
    ing_cache_end(h);
    ing_reader r = ing_reader_of(b.at, b.len);
    ing_hash128 tree = read_digest(&r);
    if (s == ING_OK && r.failed) s = ING_DECLINED;
    if (s == ING_OK) {
        ing_count(h->counters, ING_COUNT_SOURCE_ALIAS_HITS);
        a->tree = tree;
        a->known = true;
    }
    if (s == ING_OK && r.at != r.end) {
        ing_bytes_fini(&a->hint);
        a->hint = b;
    } else {
        ing_bytes_fini(&b);
    }
    return s;
}

void ing_cache_alias_write(ing_store *store, const ing_cache_alias *a,
                           const ing_hash128 *address, const ing_bytes *index) {
    ing_bytes b;
    ing_bytes_init(&b);
    if (!a->has_key) return;
    write_digest(&b, a->tree);
    if (address) {
        write_digest(&b, *address);
        ing_bytes_put(&b, index->at, index->len);
    }
    if (!b.failed) (void)ing_store_put(store, ING_ENTRY_ALIAS, a->key, b.at, b.len);
    ing_bytes_fini(&b);
}

ing_status ing_cache_alias_put(const ing_cache_host *h, ing_cache_alias *a,
                               ing_hash128 tree) {
    ing_store *store;
    ing_status s = a->has_key ? ing_cache_begin(h, &store) : ING_DECLINED;
    if (s == ING_PYTHON) return s;
    a->tree = tree;
    a->known = true;
    if (s != ING_OK) return ING_OK;
    ing_cache_alias_write(store, a, NULL, NULL);
    ing_cache_end(h);
    return ING_OK;
}

static ing_status hint_of(ing_reader r, ing_hash128 *address, ing_reader *index) {
    (void)read_digest(&r); /* the tree */
    *address = read_digest(&r);
    *index = r;
    return !r.failed && r.at != r.end ? ING_OK : ING_DECLINED;
}

ing_status ing_cache_alias_hint(const ing_bytes *hint, ing_hash128 *address,
                                ing_reader *index) {
    return hint_of(ing_reader_of(hint->at, hint->len), address, index);
}

ing_status ing_cache_alias_keys(const uint8_t *p, size_t n, ing_index_keys *out) {
    ing_hash128 address;
    ing_reader index;
    if (n == 2 * sizeof(uint64_t)) return ING_OK; /* the tree alone */
    ING_TRY(hint_of(ing_reader_of(p, n), &address, &index));
    return ing_cache_index_keys(index.at, (size_t)(index.end - index.at), out);
}

/* ---- addresses --------------------------------------------------------------------------------- */

ing_hash128 ing_cache_address(const ing_cache_source *s) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_str(&h, TAG_REVISION, ING_FRONT_REVISION);
    ing_hasher_digest(&h, TAG_TREE, s->source);
    /* Part of the tree as well; said again, an alias that lies leads nowhere. */
    for (uint32_t i = 0; i < s->n_params; i++)
        ing_hasher_str(&h, TAG_PARAM, s->param(s->self, i));
    if (s->pure) ing_hasher_u64(&h, TAG_PURE, 1);
    if (s->graph) ing_hasher_u64(&h, TAG_GRAPH, s->graph);
    if (s->derivative) ing_hasher_u64(&h, TAG_DERIVATIVE, s->derivative);
    return ing_hasher_done(&h);
}
