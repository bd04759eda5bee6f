/* cache: the kernel level of the cache. Finished variants in the store, found again by asking
 * what their compile asked. The way of a call, with the file of each step:
 *
 *   alias     text of a def -> digest of its syntax tree (R9)          alias.c
 *   address   that digest, names and the front-end revision (R10)      alias.c
 *   index     address -> decision tree, keys of its leaves (R17)       index.c
 *   tree      asked down to one leaf                                   src/trace/tree.c
 *   record    the leaf's entry, and the rest of its trace              cache.c
 *   images    of the record's tasks                                    src/compile/engine.c
 *
 * Plain C: what only the embedding program knows it is asked through callbacks, any of which
 * may run Python and with it anything, this cache included; where that matters, it is said.
 * Nothing here fails a launch: what is missing, damaged or cannot be written is a miss. */
#ifndef ING_CACHE_H
#define ING_CACHE_H

#include "compile/compile.h"
#include "record/record.h"
#include "trace/trace.h"

/* The process around the caches. */
typedef struct ing_cache_host {
    ing_engine *engine; /* has the store */
    ing_counters *counters;
    bool (*is_on)(void *self);
    /* Opens the store as configured. ING_PYTHON: raised; else no error ends a launch. */
    ing_status (*open)(void *self);
    /* Around waiting for a server (the GIL); NULL: nothing to give away. */
    void *(*release)(void *self);
    void (*acquire)(void *self, void *token);
    void *self;
} ing_cache_host;

/* ---- alias and address (alias.c) ------------------------------------------------------------ */

/* What is known of a definition's text. */
typedef struct ing_cache_alias {
    ing_hash128 key; /* of the entry; has_key: it is known */
    ing_hash128
        tree; /* digest of the syntax tree; known: parsed, or told by the entry */
    bool has_key, known;
    ing_bytes
        hint; /* the rest of the entry: an address, and the index of its first compile */
} ing_cache_alias;

void ing_cache_alias_fini(ing_cache_alias *a);
/* Digests of the def's lines and of its code object; the version of Python. */
void ing_cache_alias_key(ing_cache_alias *a, uint32_t python, ing_hash128 lines,
                         ing_hash128 code);
/* The tree that the store knows for the text. ING_DECLINED: it must be parsed. */
ing_status ing_cache_alias_get(const ing_cache_host *h, ing_cache_alias *a);
/* It was parsed: tells the next process. ING_PYTHON or ING_OK. */
ing_status ing_cache_alias_put(const ing_cache_host *h, ing_cache_alias *a,
                               ing_hash128 tree);

/* What makes two kernels one, as far as the disk cares. */
typedef struct ing_cache_source {
    ing_hash128 source; /* the tree, and which of its names are free */
    uint32_t n_params;
    const char *(*param)(const void *self, uint32_t i); /* its name */
    const void *self;
    bool pure; /* its check is part of compiling: what did not pass is not its code */
    uint32_t graph;      /* 0: none, 1: a graph, 2: with checkpoints */
    uint32_t derivative; /* 0: none, else which one of it */
} ing_cache_source;
ing_hash128 ing_cache_address(const ing_cache_source *s);

/* ---- the cache of one kernel (cache.c) -------------------------------------------------------- */

typedef struct ing_cache_leaf {
    ing_hash128 key; /* of its entry on disk; 0: it has none */
    void *variant;   /* what the kernel made of it; NULL: not loaded */
} ing_cache_leaf;

typedef struct ing_cache_kernel { /* whose cache it is */
    ing_status (*address)(void *self, ing_hash128 *out, ing_err *e); /* may parse */
    const ing_record *(*record)(const void *variant);
    void (*drop)(void *self, void *variant); /* a leaf lets go of it */
    void *self;
} ing_cache_kernel;

typedef struct
    ing_cache_seen { /* what the reference reports of its cache, since reset */
    bool key_generated, validated, loaded, stored;
} ing_cache_seen;

typedef struct ing_cache {
    const ing_cache_host *host;
    ing_cache_kernel kernel;
    ing_paths *paths;               /* the kernel's, in which traces are told */
    ing_tree *tree;                 /* the object stays: it may be walked right now */
    ing_vec(ing_cache_leaf) leaves; /* as the tree numbers them */
    bool opened; /* what the disk has is in the tree, or only the hint of the alias: */
    bool hinted;
    ing_bytes only;  /* entry of leaf 0, as the index brought it */
    uint64_t resets; /* grows: whoever let Python run compares */
    uint64_t looked; /* when it was opened, nanoseconds since 1970 */
    ing_cache_seen seen;
} ing_cache;

/* False: no memory. */
bool ing_cache_init(ing_cache *c, const ing_cache_host *host,
                    const ing_cache_kernel *kernel, ing_paths *paths);
void ing_cache_fini(ing_cache *c);
void ing_cache_clear(
    ing_cache *c); /* leaves and tree: the disk is not looked at again */
void ing_cache_reset(ing_cache *c); /* as new */
bool ing_cache_holds(const ing_cache *c, const void *variant);

/* Reads what the disk has of the kernel, once; `alias` may bring it along. */
ing_status ing_cache_open(ing_cache *c, ing_cache_alias *alias, ing_err *e);
/* After a miss: the index itself, where only the hint of an alias was looked at. ING_OK: look
 * again; ING_DECLINED: there is no more. */
ing_status ing_cache_more(ing_cache *c, ing_err *e);
/* Down the tree to the leaf that may fit. ING_DECLINED: a miss. */
ing_status ing_cache_find(ing_cache *c, ing_tree_ask ask, void *self, uint32_t *leaf,
                          ing_questions *asked, ing_err *e);
/* The record of a leaf that was found so, if the rest of its trace holds. `out` is the
 * caller's to end, also on failure. ING_DECLINED: a miss. */
ing_status ing_cache_record(ing_cache *c, uint32_t leaf, ing_tree_ask ask, void *self,
                            ing_questions *asked, ing_record *out, ing_err *e);
/* The images of its tasks on a target. ING_DECLINED: one is missing. */
ing_status ing_cache_code(ing_cache *c, const ing_target *t, const ing_record *r,
                          const ing_settings *now, ing_code *out, ing_err *e);
/* What the kernel made of a leaf's record stays there. False: the leaf is another one now. */
bool ing_cache_loaded(ing_cache *c, uint32_t leaf, ing_hash128 key, void *variant);
/* A compiled variant becomes an entry, and the index is extended; *key stays as it is where
 * there is no disk. */
ing_status ing_cache_publish(ing_cache *c, const ing_record *r, ing_cache_alias *alias,
                             ing_hash128 *key, ing_err *e);
/* And a leaf of the tree. The caller has counted the reference. */
ing_status ing_cache_keep(ing_cache *c, ing_hash128 key, void *variant, ing_err *e);

/* ---- for tools (index.c, alias.c) --------------------------------------------------------------- */

/* The variants that an index names; those that the index in an alias names. */
ing_status ing_cache_index_keys(const uint8_t *p, size_t n, ing_index_keys *out);
ing_status ing_cache_alias_keys(const uint8_t *p, size_t n, ing_index_keys *out);
/* What another index of the same kernel names is added to the one that is here. */
ing_status ing_cache_index_merge(ing_store *store, ing_hash128 address,
                                 const uint8_t *p, size_t n);

#endif
