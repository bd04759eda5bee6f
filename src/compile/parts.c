/* Compiles the texts of a task, each on a helper of its own as far as there are any. Called by
 * the engine with no lock held. Which text is compiled when and where has no effect on the
 * objects. The first failure, in the order of the texts, is the task's; after one no other text is
 * begun. Must never return before its threads have ended. */
#include "compile/compile_int.h"

#include <pthread.h>

enum { MAX_THREADS = 16 };

typedef struct part {
    ing_bytes object;
    ing_status status;
    ing_err error;
} part;

typedef struct work {
    ing_helpers *helpers;
    const char *options;
    const ing_gen_texts *texts;
    part *parts;
    uint32_t next; /* atomic: the text to take */
    bool failed;   /* atomic */
} work;

static void *compile_some(void *arg) {
    work *w = arg;
    while (!__atomic_load_n(&w->failed, __ATOMIC_RELAXED)) {
        uint32_t i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);
        if (i >= w->texts->len) break;
        part *p = &w->parts[i];
        const ing_bytes *text = &w->texts->at[i];
        p->status = ing_helpers_compile(w->helpers, w->options, text->at, text->len,
                                        &p->object, &p->error);
        if (p->status != ING_OK) __atomic_store_n(&w->failed, true, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void compile_all(work *w, uint32_t threads) {
    pthread_t ids[MAX_THREADS];
    uint32_t started = 0;
    if (threads > w->texts->len) threads = w->texts->len;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    while (started + 1 < threads &&
           pthread_create(&ids[started], NULL, compile_some, w) == 0)
        started++;
    compile_some(w);
    for (uint32_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
}

ing_status ing_parts_compile(ing_helpers *h, const char *options,
                             const ing_gen_texts *texts, uint32_t threads,
                             ing_gen_texts *objects, ing_err *e) {
    uint32_t n = texts->len;
    part *parts = ing_calloc((size_t)n + 1, sizeof *parts);
    if (!parts || !ing_vec_reserve(objects, n)) {
        ing_free(parts);
        return ing_fail(e, ING_MEMORY, "no memory");
    }
    for (uint32_t i = 0; i < n; i++) {
        ing_bytes_init(&parts[i].object);
        ing_err_init(&parts[i].error);
    }
    work w = {.helpers = h, .options = options, .texts = texts, .parts = parts};
    compile_all(&w, threads);
    ing_status s = ING_OK;
    for (uint32_t i = 0; i < n; i++) {
        objects->at[objects->len++] = parts[i].object;
        if (s == ING_OK && parts[i].status != ING_OK && e) {
            ing_err_fini(e);
            *e = parts[i].error;
        } else {
            ing_err_fini(&parts[i].error);
        }
        if (s == ING_OK) s = parts[i].status;
    }
    ing_free(parts);
    return s;
}
