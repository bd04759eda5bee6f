/* The kernel level of the cache without Python: a kernel here is a list of answers that its
 * compile asks for. What was published is found by the next process and by no other answers;
 * entries damaged at every byte, with their checksum put right, are misses or what was
 * published; no allocation that fails leaves anything behind; a reset under a walk is safe. */
#include "cache/cache.h"
#include "check.h"
#include "folder.h"

#include <unistd.h>

static char root[] = "/tmp/ingot_test_cache_XXXXXX";

static ing_hash128 digest_of(uint64_t n) {
    return (ing_hash128){n * 0x9E3779B97F4A7C15u, n + 7};
}

/* ---- a world: one cache directory, any number of processes ------------------------------------- */

typedef struct world {
    char dir[128];
    ing_counters n;
    ing_engine *engine;
    ing_cache_host host;
    bool off;
} world;

static bool is_on(void *self) {
    return !((world *)self)->off;
}

static ing_status open_store(void *self) {
    (void)self;
    return ING_OK;
}

static void begin(world *w, const char *name) {
    ing_store *store = NULL;
    memset(w, 0, sizeof *w);
    snprintf(w->dir, sizeof w->dir, "%s/%s", root, name);
    CHECK(ing_store_open(w->dir, &w->n, &store, NULL) == ING_OK);
    w->engine = ing_engine_new("test", &w->n);
    if (!store || !w->engine) abort();
    ing_engine_set_store(w->engine, store);
    w->host = (ing_cache_host){.engine = w->engine,
                               .counters = &w->n,
                               .is_on = is_on,
                               .open = open_store,
                               .self = w};
}

static void end(world *w) {
    ing_engine_free(w->engine);
}

/* ---- a kernel of one process --------------------------------------------------------------------- */

static const ing_target target = {.name = "test", .gen = &ing_gen_cpu};

enum { MAX_ASKS = 4 };

typedef struct kernel {
    world *w;
    ing_paths paths;
    ing_cache cache;
    ing_cache_alias alias;
    uint64_t text;              /* what its text is */
    uint64_t answers[MAX_ASKS]; /* the first tells how many are asked */
    uint32_t asks, kept, dropped, reset_at;
} kernel;

typedef struct variant {
    ing_record record;
} variant;

static ing_status address_of(void *self, ing_hash128 *out, ing_err *e) {
    (void)e;
    const kernel *k = self;
    ing_cache_source s = {.source =
                              k->alias.known ? k->alias.tree : digest_of(k->text)};
    *out = ing_cache_address(&s);
    return ING_OK;
}

static const ing_record *record_of(const void *v) {
    return &((const variant *)v)->record;
}

static void free_variant(variant *v) {
    if (v) ing_record_fini(&v->record);
    ing_free(v);
}

static void drop(void *self, void *v) {
    ((kernel *)self)->dropped++;
    free_variant(v);
}

/* A new process that decorates a kernel of this text. */
static void start(kernel *k, world *w, uint64_t text) {
    ing_cache_kernel calls = {address_of, record_of, drop, k};
    *k = (kernel){.w = w, .text = text};
    ing_paths_init(&k->paths);
    ing_bytes_init(&k->alias.hint);
    if (!ing_cache_init(&k->cache, &w->host, &calls, &k->paths)) abort();
    ing_cache_alias_key(&k->alias, 311, digest_of(text), digest_of(text + 1));
    (void)ing_cache_alias_get(&w->host, &k->alias);
}

static void stop(kernel *k) {
    ing_cache_fini(&k->cache);
    ing_cache_alias_fini(&k->alias);
    ing_paths_fini(&k->paths);
    CHECK(k->kept == k->dropped);
}

/* What stands for the outside: argument i has answer i, as long as it is asked for. */
static ing_status ask(void *self, ing_path path, ing_ask how, ing_hash128 *out,
                      ing_err *e) {
    (void)e, (void)how;
    kernel *k = self;
    CHECK(path && path < k->paths.nodes.len);
    int64_t i = k->paths.nodes.at[path].i;
    *out = digest_of(i >= 0 && i < MAX_ASKS ? k->answers[i] : 999);
    if (++k->asks == k->reset_at) ing_cache_reset(&k->cache);
    return ING_OK;
}

static uint32_t n_asked(const kernel *k) {
    return 1 + (uint32_t)(k->answers[0] % (MAX_ASKS - 1));
}

static ing_hash128 meaning(const kernel *k) {
    uint64_t n = k->text;
    for (uint32_t i = 0; i < n_asked(k); i++) n = n * 31 + k->answers[i];
    return digest_of(n);
}

static variant *compile(kernel *k, int64_t first) {
    variant *v = ing_calloc(1, sizeof *v);
    if (!v) return NULL;
    ing_record_init(&v->record);
    v->record.lowered = meaning(k);
    bool ok = true;
    for (int64_t i = 0; i < n_asked(k); i++) {
        int64_t of = (first + i) % MAX_ASKS;
        ing_path p = ing_path_add(&k->paths, 0, ING_STEP_ARG, "a", of);
        ok =
            ok && p &&
            ing_trace_add(&v->record.trace, p, ING_ASK_LOOK, digest_of(k->answers[of]));
    }
    ing_path tree = ing_path_add(&k->paths, 0, ING_STEP_KERNEL, NULL, 0);
    ok = ok && tree && ing_vec_push(&v->record.trees, tree);
    if (ok) return v;
    free_variant(v);
    return NULL;
}

typedef enum found { NOTHING, MEMORY, DISK } found;

/* The way of a call up to where it would compile. */
static found look(kernel *k, bool damaged) {
    found how = NOTHING;
    if (ing_cache_open(&k->cache, &k->alias, NULL) != ING_OK) return NOTHING;
    do {
        ing_questions asked = {0};
        uint32_t leaf = 0;
        variant *v = NULL;
        ing_code code = {0};
        ing_status s = ing_cache_find(&k->cache, ask, k, &leaf, &asked, NULL);
        if (s == ING_OK && k->cache.leaves.at[leaf].variant) {
            const variant *have = k->cache.leaves.at[leaf].variant;
            s = ing_trace_holds(&have->record.trace, ask, k, &asked, NULL);
            if (s == ING_OK && !damaged)
                CHECK(ing_hash_eq(have->record.lowered, meaning(k)));
            if (s == ING_OK) how = MEMORY;
        } else if (s == ING_OK && (v = ing_calloc(1, sizeof *v))) {
            ing_settings now;
            ing_settings_init(&now);
            ing_record_init(&v->record);
            ing_hash128 key = k->cache.leaves.at[leaf].key;
            s = ing_cache_record(&k->cache, leaf, ask, k, &asked, &v->record, NULL);
            if (s == ING_OK)
                s = ing_cache_code(&k->cache, &target, &v->record, &now, &code, NULL);
            if (s == ING_OK && !damaged)
                CHECK(ing_hash_eq(v->record.lowered, meaning(k)));
            if (s == ING_OK && ing_cache_loaded(&k->cache, leaf, key, v)) {
                how = DISK;
                k->kept++;
                v = NULL;
            }
        }
        ing_code_fini(&code);
        free_variant(v);
        ing_vec_fini(&asked);
    } while (how == NOTHING && ing_cache_more(&k->cache, NULL) == ING_OK);
    return how;
}

static ing_status build(kernel *k, int64_t first) {
    ing_hash128 key = {0, 0};
    variant *v = compile(k, first);
    if (!v) return ING_MEMORY;
    ing_status s = ing_cache_publish(&k->cache, &v->record, &k->alias, &key, NULL);
    if (s == ING_OK) s = ing_cache_keep(&k->cache, key, v, NULL);
    if (s == ING_OK)
        k->kept++;
    else
        free_variant(v);
    return s;
}

/* How a call with these answers is served; NOTHING: it was compiled. */
static found call(kernel *k, uint64_t a, uint64_t b) {
    memcpy(k->answers, (uint64_t[]){a, b, 3, 4}, sizeof k->answers);
    found how = look(k, false);
    if (how == NOTHING && !k->alias.known)
        CHECK(ing_cache_alias_put(&k->w->host, &k->alias, digest_of(k->text)) ==
              ING_OK);
    if (how == NOTHING) CHECK(build(k, 0) == ING_OK);
    return how;
}

/* ---- the way ------------------------------------------------------------------------------------- */

static void test_way(void) {
    world w;
    kernel k;
    begin(&w, "way");
    start(&k, &w, 5);
    CHECK(!k.alias.known && call(&k, 1, 2) == NOTHING && call(&k, 1, 2) == MEMORY);
    CHECK(k.cache.seen.stored && k.cache.seen.key_generated && !k.cache.seen.loaded);
    stop(&k);
    start(&k, &w, 5); /* most kernels: the alias has it all */
    CHECK(k.alias.known && k.alias.hint.len > 32);
    CHECK(call(&k, 1, 2) == DISK && k.cache.hinted && k.cache.seen.validated);
    CHECK(call(&k, 1, 3) == NOTHING && !k.cache.hinted); /* then the index was asked */
    CHECK(call(&k, 1, 2) == MEMORY && call(&k, 1, 3) == MEMORY);
    CHECK(call(&k, 2, 2) == NOTHING && w.n.at[ING_COUNT_KERNEL_STORED] == 3);
    stop(&k);
    start(&k, &w, 5); /* the hint does not hold, the index does */
    CHECK(call(&k, 1, 3) == DISK && call(&k, 1, 2) == DISK && call(&k, 2, 2) == DISK);
    CHECK(call(&k, 1, 3) == MEMORY && call(&k, 9, 9) == NOTHING);
    stop(&k);
    start(&k, &w, 6); /* another text is another kernel */
    CHECK(!k.alias.known && call(&k, 1, 2) == NOTHING);
    stop(&k);
    CHECK(w.n.at[ING_COUNT_TRACE_CONFLICTS] == 0);
    end(&w);
}

static void test_reset_and_off(void) {
    world w;
    kernel k;
    begin(&w, "reset");
    start(&k, &w, 5);
    CHECK(call(&k, 1, 2) == NOTHING && call(&k, 4, 2) == NOTHING);
    ing_cache_reset(&k.cache);
    CHECK(k.dropped == 2 && !k.cache.seen.stored);
    CHECK(call(&k, 4, 2) == DISK && call(&k, 1, 2) == DISK);
    ing_cache_reset(&k.cache);
    w.off = true;
    CHECK(call(&k, 1, 2) == NOTHING && call(&k, 1, 2) == MEMORY);
    CHECK(!k.cache.seen.stored && !k.cache.seen.key_generated);
    stop(&k);
    end(&w);
}

/* Python runs while it is asked, and resets the cache. */
static void test_reset_under_a_walk(void) {
    world w;
    kernel k;
    begin(&w, "under");
    start(&k, &w, 5);
    for (uint64_t a = 0; a < 6; a++)
        for (uint64_t b = 0; b < 3; b++) (void)call(&k, a, b);
    stop(&k);
    for (uint32_t at = 1; at < 12; at++) {
        start(&k, &w, 5);
        (void)call(&k, 3, 1);
        k.asks = 0;
        k.reset_at = at;
        (void)look(&k, false);
        k.reset_at = 0;
        CHECK(call(&k, 4, 2) != NOTHING);
        stop(&k);
    }
    end(&w);
}

/* The tree came from elsewhere and asks what lowering does not: it is begun again. */
static void test_conflict(void) {
    world w;
    kernel k;
    begin(&w, "conflict");
    start(&k, &w, 5);
    CHECK(call(&k, 1, 2) == NOTHING && call(&k, 1, 3) == NOTHING);
    memcpy(k.answers, (uint64_t[]){1, 2, 3, 8}, sizeof k.answers);
    CHECK(build(&k, 1) == ING_OK); /* begins with another question */
    CHECK(w.n.at[ING_COUNT_TRACE_CONFLICTS] == 2 && k.dropped == 2);
    stop(&k);
    start(&k, &w, 5);
    CHECK(call(&k, 1, 3) == NOTHING); /* compiled again: a conflict once more */
    stop(&k);
    end(&w);
}

/* ---- damage ------------------------------------------------------------------------------------- */

/* Puts the payload of an entry, changed at `at`, with a checksum that is right. */
static void look_at_all(world *w, bool variants) {
    kernel k;
    for (uint64_t b = 1; b < 4; b++) {
        start(&k, w, 5);
        memcpy(k.answers, (uint64_t[]){b == 3 ? 4 : 1, b, 3, 4}, sizeof k.answers);
        (void)look(&k, variants);
        (void)look(&k, variants);
        stop(&k);
    }
}

static void test_damage(ing_entry_kind kind) {
    world w;
    kernel k;
    begin(&w, kind == ING_ENTRY_ALIAS   ? "alias"
              : kind == ING_ENTRY_INDEX ? "index"
                                        : "v");
    start(&k, &w, 5);
    ing_hash128 key = k.alias.key, address;
    for (uint64_t b = 1; b < 4; b++) CHECK(call(&k, b == 3 ? 4 : 1, b) == NOTHING);
    CHECK(address_of(&k, &address, NULL) == ING_OK);
    if (kind == ING_ENTRY_INDEX) key = address;
    if (kind == ING_ENTRY_VARIANT) key = k.cache.leaves.at[0].key;
    stop(&k);
    ing_bytes b, bad;
    ing_bytes_init(&b);
    ing_store *store = ing_engine_begin(w.engine);
    CHECK(ing_store_read(store, kind, key, &b) == ING_OK && b.len > 40);
    for (size_t i = 0; i < 3 * b.len; i++) {
        size_t at = i % b.len;
        ing_bytes_init(&bad);
        ing_bytes_put(&bad, b.at, i < b.len ? at : b.len); /* cut; a bit; a byte */
        if (i >= b.len) bad.at[at] ^= i < 2 * b.len ? (uint8_t)(1u << at % 8) : 0xFF;
        CHECK(ing_store_put(store, kind, key, bad.at, bad.len) == ING_OK || !bad.len);
        look_at_all(&w, kind != ING_ENTRY_INDEX); /* an alias has the first variant */
        ing_bytes_fini(&bad);
    }
    CHECK(ing_store_put(store, kind, key, b.at, b.len) == ING_OK);
    ing_engine_end(w.engine);
    start(&k, &w, 5);
    CHECK(call(&k, 1, 1) == DISK && call(&k, 4, 3) == DISK);
    stop(&k);
    ing_bytes_fini(&b);
    end(&w);
}

/* An alias whose index is of another kernel is no hint; tools see what is one. */
static void test_lying_alias(void) {
    world w;
    kernel k, other;
    begin(&w, "lies");
    start(&k, &w, 5);
    start(&other, &w, 6);
    CHECK(call(&k, 1, 2) == NOTHING && call(&other, 1, 2) == NOTHING);
    ing_bytes b;
    ing_bytes_init(&b);
    ing_index_keys keys = {0};
    ing_store *store = ing_engine_begin(w.engine);
    CHECK(ing_store_read(store, ING_ENTRY_ALIAS, k.alias.key, &b) == ING_OK);
    CHECK(ing_cache_alias_keys(b.at, b.len, &keys) == ING_OK && keys.len == 1);
    keys.len = 0;
    CHECK(ing_cache_alias_keys(b.at, 16, &keys) == ING_OK && keys.len == 0);
    CHECK(ing_cache_alias_keys(b.at, 32, &keys) == ING_DECLINED);
    CHECK(ing_cache_alias_keys(b.at, 31, &keys) == ING_DECLINED);
    ing_hash128 tree = digest_of(6); /* the tree of the other, the index of this one */
    memcpy(b.at, &tree.lo, 8);
    memcpy(b.at + 8, &tree.hi, 8);
    CHECK(ing_store_put(store, ING_ENTRY_ALIAS, other.alias.key, b.at, b.len) ==
          ING_OK);
    ing_engine_end(w.engine);
    stop(&k);
    stop(&other);
    start(&other, &w, 6);
    CHECK(call(&other, 1, 2) == DISK && !other.cache.hinted);
    stop(&other);
    ing_vec_fini(&keys);
    ing_bytes_fini(&b);
    end(&w);
}

/* What another directory has of a kernel is added to what is here. */
static void test_merge(void) {
    world w, from;
    kernel k;
    ing_hash128 address;
    begin(&w, "merge");
    begin(&from, "merge_from");
    start(&k, &w, 5);
    CHECK(call(&k, 1, 2) == NOTHING);
    stop(&k);
    start(&k, &from, 5);
    CHECK(call(&k, 1, 3) == NOTHING && address_of(&k, &address, NULL) == ING_OK);
    ing_bytes index, entry;
    ing_bytes_init(&index);
    ing_bytes_init(&entry);
    ing_store *there = ing_engine_begin(from.engine),
              *here = ing_engine_begin(w.engine);
    ing_hash128 key = k.cache.leaves.at[0].key;
    CHECK(ing_store_read(there, ING_ENTRY_INDEX, address, &index) == ING_OK);
    CHECK(ing_store_read(there, ING_ENTRY_VARIANT, key, &entry) == ING_OK);
    CHECK(ing_store_put(here, ING_ENTRY_VARIANT, key, entry.at, entry.len) == ING_OK);
    CHECK(ing_cache_index_merge(here, address, index.at, index.len) == ING_OK);
    CHECK(ing_cache_index_merge(here, address, index.at, 7) == ING_DECLINED);
    ing_engine_end(from.engine);
    ing_engine_end(w.engine);
    stop(&k);
    start(&k, &w, 5);
    CHECK(call(&k, 1, 3) == DISK && call(&k, 1, 2) == DISK);
    stop(&k);
    ing_bytes_fini(&index);
    ing_bytes_fini(&entry);
    end(&w);
    end(&from);
}

/* ---- no memory ---------------------------------------------------------------------------------- */

/* A look that runs out of memory is a miss; then a compile that does is an error or nothing. */
static void test_no_memory(bool compiling) {
    world w;
    kernel k;
    begin(&w, compiling ? "memory" : "memory_look");
    start(&k, &w, 5);
    for (uint64_t b = 0; b < 4; b++) (void)call(&k, 1, b);
    stop(&k);
    for (uint64_t n = 1, over = 0; !over; n++) {
        start(&k, &w, 5);
        memcpy(k.answers, (uint64_t[]){1, compiling ? 100 + n : n % 4, 3, 4},
               sizeof k.answers);
        if (compiling) (void)look(&k, false);
        ing_alloc_fail_at(n);
        if (compiling)
            (void)build(&k, 0);
        else
            (void)look(&k, false);
        over = ing_alloc_fail_left() != 0;
        ing_alloc_fail_at(0);
        if (compiling) CHECK(call(&k, 1, 100 + n) != NOTHING || !over);
        (void)call(&k, 1, 2); /* what could not be looked at is compiled */
        stop(&k);
        start(&k, &w, 5);
        /* An index that could not be read is begun again: it is derived. */
        CHECK(call(&k, 1, 2) == DISK || compiling);
        stop(&k);
    }
    end(&w);
}

int main(void) {
    folder_make(root);
    test_way();
    test_reset_and_off();
    test_reset_under_a_walk();
    test_conflict();
    test_damage(ING_ENTRY_ALIAS);
    test_damage(ING_ENTRY_INDEX);
    test_damage(ING_ENTRY_VARIANT);
    test_lying_alias();
    test_merge();
    test_no_memory(false);
    test_no_memory(true);
    folder_remove(root);
    return CHECK_DONE();
}
