/* The remote layer: what the store lacks is asked of a process that talks to a server
 * (ingot/_remote.py), over the wire of helper.c. Called by the store after a miss and
 * after a publication, from any thread, with or without the GIL. It never decides whether
 * an entry is good: the process has checked who wrote it, and the store what it is. The
 * first trouble, and a server that is slower than compiling, turn it off for good; the
 * reason is kept for one warning. */
#include "compile/compile.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MISSES = 1024, START_SECONDS = 10, MAX_PAYLOAD = (64 << 20) - 128 };
/* On average a request must be quicker than what it saves. */
#define SLOW_NS (50ull * 1000000)

struct ing_remote {
    pthread_mutex_t lock; /* guards all but pool */
    ing_helpers *pool;
    ing_counters *counters;
    uint64_t patience_ns, spent_ns, asked;
    bool writes, off, told;
    char why[400];
    ing_hash128
        missing[MISSES]; /* what the server said it has not, by the key's low bits */
};

ing_remote *ing_remote_new(const ing_remote_config *c, ing_counters *counters) {
    ing_remote *r = ing_calloc(1, sizeof *r);
    /* The process keeps to the patience itself; ours covers its start and its death. */
    ing_helpers_config pool = {.argv = c->argv,
                               .max = 1,
                               .seconds = c->patience_ms / 1000 + START_SECONDS,
                               .lingers = true};
    if (r) r->pool = ing_helpers_new(&pool, NULL);
    if (!r || !r->pool) {
        ing_free(r);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->counters = counters;
    r->patience_ns = (uint64_t)c->patience_ms * 1000000;
    r->writes = c->writes;
    return r;
}

void ing_remote_free(ing_remote *r) {
    if (!r) return;
    ing_helpers_free(r->pool);
    pthread_mutex_destroy(&r->lock);
    ing_free(r);
}

void ing_remote_after_fork(ing_remote *r) {
    pthread_mutex_init(&r->lock, NULL);
    ing_helpers_after_fork(r->pool);
}

bool ing_remote_trouble(ing_remote *r, char out[ING_REMOTE_TROUBLE]) {
    pthread_mutex_lock(&r->lock);
    bool news = r->off && !r->told;
    r->told |= news;
    snprintf(out, ING_REMOTE_TROUBLE, "%s", r->why);
    pthread_mutex_unlock(&r->lock);
    return news;
}

static ing_hash128 *miss_slot(ing_remote *r, ing_hash128 key) {
    return &r->missing[key.lo % MISSES];
}

/* Whether the server is to be asked. */
static bool is_worth_asking(ing_remote *r, ing_hash128 key) {
    pthread_mutex_lock(&r->lock);
    bool ask = !r->off && !ing_hash_eq(*miss_slot(r, key), key);
    pthread_mutex_unlock(&r->lock);
    return ask;
}

static void note_answer(ing_remote *r, ing_hash128 key, bool found, uint64_t ns) {
    pthread_mutex_lock(&r->lock);
    if (!found) *miss_slot(r, key) = key;
    r->spent_ns += r->asked++ ? ns : 0; /* the first one starts the process */
    if (!r->off && r->spent_ns > r->patience_ns && r->spent_ns / r->asked > SLOW_NS) {
        r->off = true;
        snprintf(r->why, sizeof r->why, "it takes %llu ms per request",
                 (unsigned long long)(r->spent_ns / r->asked / 1000000));
    }
    pthread_mutex_unlock(&r->lock);
}

static void turn_off(ing_remote *r, const char *why) {
    pthread_mutex_lock(&r->lock);
    if (!r->off) snprintf(r->why, sizeof r->why, "%s", why ? why : "no memory");
    r->off = true;
    pthread_mutex_unlock(&r->lock);
}

/* False: the remote is off from now on. */
static bool request(ing_remote *r, const char *verb, char letter, ing_hash128 key,
                    const void *p, size_t n, ing_bytes *out) {
    char hex[33], line[80];
    ing_err e;
    ing_err_init(&e);
    ing_hash_hex(key, hex);
    snprintf(line, sizeof line, "%s %d %c %s", verb, ING_STORE_VERSION, letter, hex);
    bool ok = ing_helpers_compile(r->pool, line, p, n, out, &e) == ING_OK;
    if (!ok) turn_off(r, e.text);
    ing_err_fini(&e);
    return ok;
}

static bool fetch(void *self, char letter, ing_hash128 key, ing_bytes *out) {
    ing_remote *r = self;
    if (!is_worth_asking(r, key)) return false;
    uint64_t before = ing_os_now_ns();
    if (!request(r, "get", letter, key, "", 0, out)) return false;
    bool found = out->len > 0;
    note_answer(r, key, found, ing_os_now_ns() - before);
    ing_count(r->counters, found ? ING_COUNT_REMOTE_HITS : ING_COUNT_REMOTE_MISSES);
    return found;
}

static void push(void *self, char letter, ing_hash128 key, const void *p, size_t n) {
    ing_remote *r = self;
    pthread_mutex_lock(&r->lock);
    bool go = r->writes && !r->off && n > 0 && n <= MAX_PAYLOAD;
    pthread_mutex_unlock(&r->lock);
    if (!go) return;
    ing_bytes nothing;
    ing_bytes_init(&nothing);
    if (request(r, "put", letter, key, p, n, &nothing))
        ing_count(r->counters, ING_COUNT_REMOTE_PUSHES);
    ing_bytes_fini(&nothing);
}

ing_store_remote ing_remote_face(ing_remote *r) {
    return (ing_store_remote){r, fetch, push};
}
