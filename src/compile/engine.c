/* The conductor: passes, then one image per task, from memory, from the store, or from a
 * helper, linker and store (ARCHITECTURE.md: a cold call). Called by src/py without the GIL. One
 * compile per image key at a time in a process: whoever finds the key taken waits for the
 * other's result. No lock is held while a helper works.
 *
 * An image key (R18) is the digest of: task IR, code-generation options with ISA level and
 * triple, back-end revision. */
#include "compile/arrays.h"
#include "compile/compile_int.h"

#include <pthread.h>
#include <string.h>

enum { KEY_IR = 1, KEY_REVISION };

/* One image by key. `image` is set once and kept for the life of the engine; a failed
 * build leaves `building` false and image NULL, and the next asker tries again. */
typedef struct image_slot {
    ing_image *image;
    bool building;
} image_slot;

struct ing_engine {
    pthread_mutex_t lock; /* guards all below; innermost, held briefly */
    pthread_cond_t built; /* an image was built, or a build ended */
    uint32_t active;      /* users of helpers and store: these may not change */
    ing_map map;          /* key -> slot + 1 */
    ing_vec(image_slot) slots;
    ing_helpers *helpers;
    ing_store *store;
    ing_counters *counters;
    char *revision;
    ing_machine machine;        /* asked once: CPUID traps in virtual machines, 30 us */
    ing_machine (*asked)(void); /* the target's, that told it */
    ing_events *events;         /* NULL: nobody listens */
    bool follows; /* atomic: another process compiled what we missed last */
};

ing_engine *ing_engine_new(const char *revision, ing_counters *counters) {
    ing_engine *g = ing_calloc(1, sizeof *g);
    if (!g) return NULL;
    size_t n = strlen(revision) + 1;
    g->revision = ing_malloc(n);
    if (!g->revision) {
        ing_free(g);
        return NULL;
    }
    memcpy(g->revision, revision, n);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->built, NULL);
    ing_map_init(&g->map);
    g->counters = counters;
    return g;
}

void ing_engine_set_events(ing_engine *g, ing_events *events) {
    g->events = events;
}

static ing_machine machine_of(ing_engine *g, const ing_target *t) {
    pthread_mutex_lock(&g->lock);
    if (g->asked != t->machine)
        g->machine = t->machine ? t->machine() : (ing_machine){NULL, 0};
    g->asked = t->machine;
    ing_machine machine = g->machine;
    pthread_mutex_unlock(&g->lock);
    return machine;
}

const char *ing_engine_isa_level(ing_engine *g, const ing_target *t) {
    return machine_of(g, t).level;
}

void ing_engine_free(ing_engine *g) {
    if (!g) return;
    ing_helpers_free(g->helpers);
    ing_store_close(g->store);
    for (uint32_t i = 0; i < g->slots.len; i++) ing_image_unref(g->slots.at[i].image);
    ing_vec_fini(&g->slots);
    ing_map_fini(&g->map);
    pthread_cond_destroy(&g->built);
    pthread_mutex_destroy(&g->lock);
    ing_free(g->revision);
    ing_free(g);
}

void ing_engine_set_helpers(ing_engine *g, ing_helpers *helpers) {
    pthread_mutex_lock(&g->lock);
    while (g->active) pthread_cond_wait(&g->built, &g->lock);
    ing_helpers *old = g->helpers;
    g->helpers = helpers;
    pthread_mutex_unlock(&g->lock);
    ing_helpers_free(old);
}

void ing_engine_set_store(ing_engine *g, ing_store *store) {
    pthread_mutex_lock(&g->lock);
    while (g->active) pthread_cond_wait(&g->built, &g->lock);
    ing_store *old = g->store;
    g->store = store;
    pthread_mutex_unlock(&g->lock);
    ing_store_close(old);
}

/* Around fork: the lock is taken before and released in the parent, so that the child
 * inherits consistent slots; builds under way belong to threads the child lacks. */
void ing_engine_before_fork(ing_engine *g) {
    pthread_mutex_lock(&g->lock);
}

void ing_engine_parent_after_fork(ing_engine *g) {
    pthread_mutex_unlock(&g->lock);
}

void ing_engine_after_fork(ing_engine *g) {
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->built, NULL);
    g->active = 0;
    for (uint32_t i = 0; i < g->slots.len; i++) g->slots.at[i].building = false;
    if (g->helpers) ing_helpers_after_fork(g->helpers);
}

/* ---- one image ------------------------------------------------------------------------ */

typedef struct image_job {
    const ing_target *target;
    const ing_ir_mod *mod; /* the whole kernel */
    uint32_t task;
    const ing_gen_options *gen;
    const char *label;
    ing_engine_report *report; /* several threads add to it */
    uint32_t threads;          /* that compile at once */
} image_job;

/* Adds the time since span->from to a sum of the report, tells it who listens, and takes the
 * time anew. */
static void note_time(const ing_engine *g, ing_span *span, const char *what,
                      uint64_t *sum) {
    uint64_t now = ing_os_now_ns();
    __atomic_fetch_add(sum, now - span->from, __ATOMIC_RELAXED);
    span->what = what;
    span->end = now;
    ing_events_span(g->events, span);
    span->from = now;
}

static void note_texts(const image_job *job, const ing_gen_texts *texts) {
    uint64_t lines = 0;
    for (uint32_t k = 0; k < texts->len; k++)
        for (size_t i = 0; i < texts->at[k].len; i++)
            lines += texts->at[k].at[i] == '\n';
    __atomic_fetch_add(&job->report->llvm_lines, lines, __ATOMIC_RELAXED);
    __atomic_fetch_add(&job->report->compiled, 1, __ATOMIC_RELAXED);
}

static ing_gen_options gen_options(ing_engine *g, const ing_target *t,
                                   const ing_settings *s) {
    ing_machine machine = machine_of(g, t);
    return (ing_gen_options){.target = t->gen,
                             .fast_math = s->at[ING_SET_fast_math] != 0,
                             .vector_math = machine.vector_math,
                             .opt_level = (uint32_t)s->at[ING_SET_opt_level],
                             .isa_level = machine.level};
}

static ing_hash128 image_key(const ing_engine *g, const ing_target *t, ing_hash128 ir,
                             const ing_gen_options *gen) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, KEY_IR, ir);
    t->key(gen, &h);
    ing_hasher_str(&h, KEY_REVISION, g->revision);
    return ing_hasher_done(&h);
}

bool ing_engine_image_name(const ing_engine *g, const ing_target *t, ing_hash128 ir,
                           uint32_t n, ing_image_name *out) {
    enum { MATHS = 3, LEVELS = 4 }; /* of vector_math, of opt_level */
    ing_gen_options gen = {.target = t->gen,
                           .vector_math = (uint8_t)(n % MATHS),
                           .fast_math = n / MATHS % 2 != 0,
                           .opt_level = n / MATHS / 2 % LEVELS,
                           .isa_level = t->level(n / MATHS / 2 / LEVELS)};
    if (!gen.isa_level) return false;
    *out = (ing_image_name){.key = image_key(g, t, ir, &gen),
                            .isa_level = gen.isa_level,
                            .opt_level = gen.opt_level,
                            .fast_math = gen.fast_math};
    return true;
}

/* ING_DECLINED: not on disk, or what is there cannot be used. */
static ing_status image_from_store(ing_engine *g, const ing_target *t, ing_hash128 key,
                                   ing_image **out) {
    if (!g->store) return ING_DECLINED;
    ing_span span = {.what = "load", .from = ing_events_now(g->events)};
    ing_entry entry;
    if (ing_store_get(g->store, ING_ENTRY_IMAGE, key, &entry) != ING_OK)
        return ING_DECLINED;
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = t->load_entry(&entry, out, &ignored);
    ing_err_fini(&ignored);
    if (s != ING_OK) {
        ing_count(g->counters, ING_COUNT_STORE_BAD_ENTRY);
        return ING_DECLINED;
    }
    ing_count(g->counters, ING_COUNT_IMAGE_DISK_HITS);
    ing_events_span(g->events, &span);
    return ING_OK;
}

static ing_status objects_link(const image_job *job, const ing_gen_texts *objects,
                               ing_bytes *image, ing_err *e) {
    ing_object *list = ing_calloc((size_t)objects->len + 1, sizeof *list);
    if (!list) return ing_fail(e, ING_MEMORY, "no memory");
    for (uint32_t i = 0; i < objects->len; i++)
        list[i] = (ing_object){objects->at[i].at, objects->at[i].len};
    ing_status s = job->target->link(list, objects->len, job->label, image, e);
    ing_free(list);
    return s;
}

static ing_status image_compile(ing_engine *g, const ing_ir_mod *task,
                                const image_job *job, ing_bytes *image, ing_err *e) {
    if (!g->helpers)
        return ing_fail(e, ING_COMPILE,
                        "compiling needs a Python interpreter to run LLVM in; "
                        "none is configured");
    ing_bytes options;
    ing_gen_texts texts = {0}, objects = {0};
    ing_bytes_init(&options);
    ing_gen_options gen = *job->gen;
    if (gen.vector_math && !job->target->has_library()) gen.vector_math = 0;
    ing_span clock = {.label = job->label, .from = ing_os_now_ns()};
    ing_status s = job->target->text(task, &gen, &texts, e);
    if (s == ING_OK) {
        ing_gen_helper_options(job->gen, &options);
        if (options.failed || !options.at) s = ing_fail(e, ING_MEMORY, "no memory");
    }
    note_time(g, &clock, "text", &job->report->gen_ns);
    note_texts(job, &texts);
    if (s == ING_OK)
        s = ing_parts_compile(g->helpers, (const char *)options.at, &texts,
                              job->threads, &objects, e);
    note_time(g, &clock, "wait for llvm", &job->report->llvm_ns);
    if (s == ING_OK) {
        ing_count(g->counters, ING_COUNT_IMAGE_COMPILES);
        for (uint32_t i = 0; i < texts.len; i++)
            ing_count(g->counters, ING_COUNT_IMAGE_PARTS);
        s = objects_link(job, &objects, image, e);
        note_time(g, &clock, "link", &job->report->link_ns);
    }
    ing_gen_texts_fini(&texts);
    ing_bytes_fini(&options);
    ing_gen_texts_fini(&objects);
    return s;
}

/* Publishes a fresh image and loads it: from the store where that works (so that perf sees
 * a file), else from memory. */
static ing_status image_publish(ing_engine *g, const ing_target *t, ing_hash128 key,
                                const ing_bytes *image, ing_image **out, ing_err *e) {
    if (g->store && ing_store_put(g->store, ING_ENTRY_IMAGE, key, image->at,
                                  image->len) == ING_OK) {
        ing_entry entry;
        if (ing_store_get(g->store, ING_ENTRY_IMAGE, key, &entry) == ING_OK &&
            t->load_entry(&entry, out, NULL) == ING_OK)
            return ING_OK;
    }
    return t->load(image->at, image->len, out, e);
}

/* Of several processes that miss one image, one compiles and the others wait for it: a
 * bounded time, then they compile too. */
#define COMPILE_NS (60ull * 1000000000)

/* To start a helper takes more than 0.1 s of CPU. Programs that run side by side miss the
 * same images in the same order, so who has no helper, and got the last image from a process
 * that has one, lets it go first with the next. Of 8 cold processes with 20 kernels on two
 * cores 6 started a helper and all waited for each; now one does. */
#define HEAD_START_NS (50ull * 1000000)

void ing_engine_prepare(ing_engine *g, const ing_target *t) {
    if (!t->gen || __atomic_load_n(&g->follows, __ATOMIC_RELAXED)) return;
    ing_engine_begin(g);
    if (g->helpers) ing_helpers_prepare(g->helpers);
    ing_engine_end(g);
}

static void let_others_begin(ing_engine *g, ing_hash128 key) {
    if (!__atomic_load_n(&g->follows, __ATOMIC_RELAXED) || !g->helpers ||
        ing_helpers_any(g->helpers))
        return;
    bool begun = ing_lease_expect(g->store, ING_ENTRY_IMAGE, key, HEAD_START_NS);
    __atomic_store_n(&g->follows, begun, __ATOMIC_RELAXED);
}

/* ING_OK: another one published it. ING_DECLINED: compile; *lease is held if *held. */
static ing_status image_await(ing_engine *g, const ing_target *t, ing_hash128 key,
                              ing_lease *lease, bool *held, ing_image **out) {
    uint64_t end = ing_os_now_ns() + COMPILE_NS;
    *held = false;
    if (!g->store) return ING_DECLINED;
    let_others_begin(g, key);
    for (;;) {
        ing_lease_state state =
            ing_lease_take(g->store, ING_ENTRY_IMAGE, key, COMPILE_NS, lease);
        *held = state == ING_LEASE_HELD;
        uint64_t now = ing_os_now_ns();
        if (state == ING_LEASE_IMPOSSIBLE || now >= end) return ING_DECLINED;
        if (state == ING_LEASE_BUSY) {
            ing_count(g->counters, ING_COUNT_IMAGE_WAITS);
            ing_lease_wait(g->store, ING_ENTRY_IMAGE, key, end - now);
        }
        /* Whoever held it before has published, or failed. */
        if (image_from_store(g, t, key, out) == ING_OK) {
            if (*held) ing_lease_release(lease);
            *held = false;
            __atomic_store_n(&g->follows, true, __ATOMIC_RELAXED);
            return ING_OK;
        }
        if (*held) return ING_DECLINED;
    }
}

static ing_status image_build(ing_engine *g, ing_hash128 key, const ing_ir_mod *task,
                              const image_job *job, ing_image **out, ing_err *e) {
    ing_lease lease;
    bool held = false;
    const ing_target *t = job->target;
    ing_status s = image_from_store(g, t, key, out);
    if (s == ING_DECLINED) s = image_await(g, t, key, &lease, &held, out);
    if (s != ING_DECLINED) return s;
    ing_bytes image;
    ing_bytes_init(&image);
    s = image_compile(g, task, job, &image, e);
    ing_span clock = {.label = job->label, .from = ing_os_now_ns()};
    if (s == ING_OK) s = image_publish(g, t, key, &image, out, e);
    note_time(g, &clock, "publish and load", &job->report->link_ns);
    if (held) ing_lease_release(&lease);
    ing_bytes_fini(&image);
    return s;
}

/* Finds the slot of a key, waiting while another thread builds it. ING_OK: *out is a new
 * reference. ING_DECLINED: the caller builds, and ends with slot_finish. */
static ing_status slot_claim(ing_engine *g, ing_hash128 key, uint32_t *slot,
                             ing_image **out, ing_err *e) {
    ing_status s = ING_DECLINED;
    pthread_mutex_lock(&g->lock);
    uint32_t at = ing_map_get(&g->map, key);
    if (!at) {
        if (!ing_vec_push(&g->slots, (image_slot){0}) ||
            !ing_map_put(&g->map, key, g->slots.len))
            s = ing_fail(e, ING_MEMORY, "no memory for the image table");
        at = g->slots.len;
    }
    while (s == ING_DECLINED && g->slots.at[at - 1].building)
        pthread_cond_wait(&g->built, &g->lock);
    if (s == ING_DECLINED && g->slots.at[at - 1].image) {
        *out = ing_image_ref(g->slots.at[at - 1].image);
        ing_count(g->counters, ING_COUNT_IMAGE_MEMORY_HITS);
        s = ING_OK;
    } else if (s == ING_DECLINED) {
        g->slots.at[at - 1].building = true;
    }
    pthread_mutex_unlock(&g->lock);
    *slot = at;
    return s;
}

static void slot_finish(ing_engine *g, uint32_t slot, ing_image *image) {
    pthread_mutex_lock(&g->lock);
    g->slots.at[slot - 1].building = false;
    if (image) g->slots.at[slot - 1].image = ing_image_ref(image);
    pthread_cond_broadcast(&g->built);
    pthread_mutex_unlock(&g->lock);
}

/* Which syntax tree each function that `root` reaches came from, for run-time errors. */
static ing_status note_trees(const ing_ir_mod *m, uint32_t root, ing_record_task *t,
                             ing_err *e) {
    uint32_t *funcs = NULL, n = 0;
    ING_TRY(ing_ir_func_reaches(m, root, &funcs, &n, e));
    bool ok = ing_vec_reserve(&t->trees, n);
    for (uint32_t i = 0; ok && i < n; i++)
        t->trees.at[t->trees.len++] = m->funcs.at[funcs[i]]->tree;
    ing_free(funcs);
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for the task table");
}

static ing_status image_get(ing_engine *g, const image_job *job, ing_record_task *out,
                            ing_image **image, ing_err *e) {
    ing_ir_mod *task = NULL;
    ING_TRY(ing_ir_extract_task(job->mod, job->task, &task, e));
    uint32_t slot = 0;
    ing_status s = note_trees(task, 0, out, e);
    if (s == ING_OK) s = ing_ir_digest(task, &out->ir, e);
    ing_hash128 key = image_key(g, job->target, out->ir, job->gen);
    if (s == ING_OK) s = slot_claim(g, key, &slot, image, e);
    if (s == ING_DECLINED) {
        s = image_build(g, key, task, job, image, e);
        slot_finish(g, slot, s == ING_OK ? *image : NULL);
    }
    ing_ir_mod_free(task);
    return s;
}

/* ING_DECLINED: neither in memory nor in the store. */
static ing_status image_known(ing_engine *g, const ing_target *t, ing_hash128 ir,
                              const ing_gen_options *gen, ing_image **out, ing_err *e) {
    uint32_t slot = 0;
    ing_hash128 key = image_key(g, t, ir, gen);
    ing_status s = slot_claim(g, key, &slot, out, e);
    if (s != ING_DECLINED) return s;
    s = image_from_store(g, t, key, out);
    slot_finish(g, slot, s == ING_OK ? *out : NULL);
    return s;
}

/* ---- all tasks of a kernel --------------------------------------------------------------- */

typedef struct batch {
    ing_engine *engine;
    const image_job *common;
    ing_record *record;
    ing_image **images;
    uint32_t next;     /* atomic: the task to take */
    ing_status status; /* atomic: the first failure */
    ing_err *error;    /* written by whoever set status */
    ing_progress *progress;
} batch;

static void *batch_work(void *arg) {
    batch *b = arg;
    for (;;) {
        uint32_t i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
        if (i >= b->record->tasks.len) return NULL;
        if (__atomic_load_n(&b->status, __ATOMIC_ACQUIRE) != ING_OK) return NULL;
        image_job job = *b->common;
        job.task = i;
        ing_err err;
        ing_err_init(&err);
        ing_status s =
            image_get(b->engine, &job, &b->record->tasks.at[i], &b->images[i], &err);
        ing_status ok = ING_OK;
        ing_progress_add(b->progress, 1, 0);
        if (s != ING_OK &&
            __atomic_compare_exchange_n(&b->status, &ok, s, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            *b->error = err;
        } else {
            ing_err_fini(&err);
        }
    }
}

static ing_status code_init(ing_code *c, const ing_record *r, ing_err *e) {
    *c = (ing_code){.record = r};
    c->images = ing_calloc((size_t)r->tasks.len + 1, sizeof *c->images);
    return c->images ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for the task table");
}

ing_status ing_engine_load(ing_engine *g, const ing_target *t, const ing_record *record,
                           const ing_settings *settings, ing_code *out, ing_err *e) {
    ing_gen_options gen = gen_options(g, t, settings);
    ing_status s = code_init(out, record, e);
    for (uint32_t i = 0; s == ING_OK && i < record->tasks.len; i++)
        s = image_known(g, t, record->tasks.at[i].ir, &gen, &out->images[i], e);
    if (s != ING_OK) ing_code_fini(out);
    return s;
}

enum { MAX_COMPILE_THREADS = 16 };

static ing_status batch_run(ing_engine *g, const image_job *common, uint32_t threads,
                            ing_record *record, ing_image **images,
                            ing_progress *progress, ing_err *e) {
    ing_err first;
    ing_err_init(&first);
    batch b = {g, common, record, images, 0, ING_OK, &first, progress};
    ing_progress_add(progress, 0, record->tasks.len);
    pthread_t ids[MAX_COMPILE_THREADS];
    uint32_t started = 0;
    if (threads > record->tasks.len) threads = record->tasks.len;
    if (threads > MAX_COMPILE_THREADS) threads = MAX_COMPILE_THREADS;
    while (started + 1 < threads &&
           pthread_create(&ids[started], NULL, batch_work, &b) == 0)
        started++;
    batch_work(&b);
    for (uint32_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
    if (b.status == ING_OK) return ING_OK;
    if (e) {
        ing_err_fini(e);
        *e = first;
    } else {
        ing_err_fini(&first);
    }
    return b.status;
}

/* Random numbers depend on where they are drawn, not on what other tasks there are. */
static ing_status number_places(ing_record *r, const ing_ir_mod *m, ing_err *e) {
    uint8_t *draws = ing_calloc((size_t)m->funcs.len + 1, 1);
    if (!draws) return ing_fail(e, ING_MEMORY, "no memory for the task table");
    ing_status s = ing_ir_draws(m, draws, e);
    for (uint32_t i = 0, n = 0; i < r->tasks.len && s == ING_OK; i++)
        if (draws[m->tasks.at[i].func]) r->tasks.at[i].info.place = n++;
    ing_free(draws);
    return s;
}

/* What the passes made of the kernel. */
static ing_status take_tasks(ing_record *r, const ing_ir_mod *m, ing_err *e) {
    r->buffer_bytes = m->buffer_bytes;
    r->sized = m->sized;
    r->n_rule = m->n_rule;
    r->n_views = m->n_views;
    r->n_words = m->n_words;
    bool ok = true;
    for (uint32_t i = 0; ok && i < m->tasks.len; i++)
        ok = ing_vec_push(&r->tasks, (ing_record_task){.info = m->tasks.at[i]});
    for (uint32_t i = 0; ok && i < m->steps.len; i++)
        ok = ing_vec_push(&r->steps, m->steps.at[i]);
    if (!ok || !ing_arrays_apart(r, m))
        return ing_fail(e, ING_MEMORY, "no memory for the task table");
    ING_TRY(ing_arrays_touched(r, m, e));
    return number_places(r, m, e);
}

static ing_status interpreted(ing_ir_mod *m, ing_record *r, ing_code *out, ing_err *e) {
    for (uint32_t i = 0; i < r->tasks.len; i++)
        ING_TRY(note_trees(m, r->tasks.at[i].info.func, &r->tasks.at[i], e));
    out->mod = m;
    return ING_OK;
}

/* No pass at all: the interpreter runs the kernel as lowered, as one serial task. */
static ing_status build_lowered(ing_ir_mod *m, ing_record *r, ing_code *out,
                                ing_err *e) {
    ING_TRY(ing_ir_verify(m, e));
    if (m->n_stages)
        return ing_fail(e, ING_RUNTIME,
                        "a kernel with checkpoints is made of tasks and cannot run as "
                        "lowered: use interp_passes=True");
    ING_TRY(take_tasks(r, m, e));
    ing_record_task whole = {.info = {.kind = ING_IR_TASK_SERIAL, .may_run_long = 1}};
    if (!ing_vec_push(&r->tasks, whole))
        return ing_fail(e, ING_MEMORY, "no memory for the task table");
    return interpreted(m, r, out, e);
}

static ing_status dump(ing_engine *g, const ing_engine_job *job, ing_err *e) {
    ing_dump d = {.what = job->dump,
                  .label = job->label,
                  .task = UINT32_MAX,
                  .tasks = job->mod->tasks.len,
                  .out = job->dumped};
    if (d.what & ING_DUMP_IR) ing_dump_ir(&d, job->mod, "IR after passes");
    uint32_t code = ING_DUMP_LLVM | ING_DUMP_OPTIMISED | ING_DUMP_ASM;
    if (!job->target->gen || !(d.what & code)) return ING_OK;
    ing_gen_options go = gen_options(g, job->target, job->settings);
    for (d.task = 0; d.task < d.tasks; d.task++) {
        ing_ir_mod *task = NULL;
        ING_TRY(ing_ir_extract_task(job->mod, d.task, &task, e));
        ing_gen_texts texts = {0};
        ing_status s = job->target->text(task, &go, &texts, e);
        if (s == ING_OK) s = ing_dump_task(g->helpers, &d, &texts, &go, e);
        ing_gen_texts_fini(&texts);
        ing_ir_mod_free(task);
        ING_TRY(s);
    }
    return ING_OK;
}

static ing_status build(ing_engine *g, const ing_engine_job *job, ing_record *r,
                        ing_code *out, ing_progress *progress, ing_err *e) {
    const int64_t *set = job->settings->at;
    const ing_target *t = job->target;
    if (!t->shape) return build_lowered(job->mod, r, out, e);
    ing_pass_options po = {.fast_math = set[ING_SET_fast_math] != 0,
                           .debug = set[ING_SET_debug] != 0,
                           .overlap = job->overlap};
    ing_engine_report unread = {0}, *report = job->report ? job->report : &unread;
    ing_span clock = {.label = job->label, .from = ing_os_now_ns()};
    ING_TRY(t->shape(job->mod, &po, e));
    note_time(g, &clock, "passes", &report->pass_ns);
    report->tasks = job->mod->tasks.len;
    if (job->dump) ING_TRY(dump(g, job, e));
    ING_TRY(take_tasks(r, job->mod, e));
    if (!t->gen) return interpreted(job->mod, r, out, e);
    ING_TRY(code_init(out, r, e));
    ing_gen_options go = gen_options(g, t, job->settings);
    uint32_t threads = job->threads ? job->threads : ing_os_cpus();
    image_job common = {t, job->mod, 0, &go, job->label, report, threads};
    return batch_run(g, &common, threads, r, out->images, progress, e);
}

ing_store *ing_engine_begin(ing_engine *g) {
    pthread_mutex_lock(&g->lock);
    g->active++;
    ing_store *store = g->store;
    pthread_mutex_unlock(&g->lock);
    return store;
}

void ing_engine_end(ing_engine *g) {
    pthread_mutex_lock(&g->lock);
    g->active--;
    pthread_cond_broadcast(&g->built);
    pthread_mutex_unlock(&g->lock);
}

static ing_status write_pack(ing_store *from, int fd, const ing_pack_order *order,
                             ing_err *e) {
    ing_pack_report unread;
    return ing_pack_write(from, fd, order, &unread, e);
}

void ing_engine_pack(ing_engine *g) {
    if (g->store) (void)ing_store_repack(g->store, write_pack);
}

ing_status ing_engine_build(ing_engine *g, const ing_engine_job *job,
                            ing_record *record, ing_code *out, ing_err *e) {
    *out = (ing_code){.record = record};
    ing_progress progress = {0};
    if (job->progress) ing_progress_begin(&progress, job->label);
    ing_engine_begin(g);
    ing_status s = build(g, job, record, out, &progress, e);
    ing_engine_end(g);
    ing_progress_end(&progress, s != ING_OK);
    if (job->bad_loc) *job->bad_loc = s == ING_OK ? 0 : job->mod->bad_loc;
    if (job->remarks) {
        *job->remarks = job->mod->remarks;
        job->mod->remarks = (ing_ir_remarks){0};
    }
    if (out->mod != job->mod) ing_ir_mod_free(job->mod);
    if (s != ING_OK) ing_code_fini(out);
    return s;
}

void ing_code_fini(ing_code *c) {
    for (uint32_t i = 0; c->images && i < c->record->tasks.len; i++)
        ing_image_unref(c->images[i]);
    ing_free(c->images);
    ing_ir_mod_free(c->mod);
    *c = (ing_code){0};
}
