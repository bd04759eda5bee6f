/* The call of a kernel: bind, run, return. The warm path walks one variant's guards and
 * binds, then hands the words to the runtime: for numbers and our arrays no Python frame, no
 * allocation (ARCHITECTURE.md). What the last variant cannot serve goes through the decision tree, and what
 * the tree has not seen is compiled. */
#include "py/array/field.h"
#include "py/call/guard.h"
#include "rt/stage.h"
#include "py/array/struct.h"
#include "py/array/tensor.h"
#include "py/tool/tool.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STACK_WORDS = 1024, STACK_BUFFER = 1024, STACK_HELD = 512, MAX_TRIES = 16 };

/* ---- arguments --------------------------------------------------------------------------- */

/* "it takes (a, n)", for a remedy. */
static const char *signature(const ing_py_def *d, char *buf, size_t size) {
    size_t used = 0;
    if (!d->n_params) return "it takes none";
    for (uint32_t i = 0; i <= d->n_params && used < size; i++) {
        bool end = i == d->n_params;
        const char *name = end ? ")" : ing_py_utf8(PyTuple_GET_ITEM(d->names, i));
        const char *before = i == 0 ? "it takes (" : end ? "" : ", ";
        used += (size_t)snprintf(buf + used, size - used, "%s%s", before, name);
    }
    return buf;
}

static bool call_error(ing_py_kernel *k, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A call that does not match the parameters, said as for funcs (front/func.c). remedy, or NULL:
 * the parameters. */
static bool call_error(ing_py_kernel *k, const char *remedy, const char *fmt, ...) {
    char params[400], text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ing_err e;
    ing_err_init(&e);
    ing_py_def_fail(k->st, &k->def, UINT32_MAX, ING_CALL,
                    remedy ? remedy : signature(&k->def, params, sizeof params), &e,
                    "%s", text);
    ing_py_raise(k->st, &e);
    return false;
}

static bool name_error(ing_py_kernel *k, const char *what, PyObject *name) {
    char text[128];
    if (ing_py_show(name, text, sizeof text) < 0) return false;
    return call_error(k, NULL, "%s '%s' of %s", what, text, ing_py_def_name(&k->def));
}

/* `guess`: where it is if keywords come in the order of parameters. */
static Py_ssize_t param_index(const ing_py_def *d, PyObject *name, Py_ssize_t guess) {
    if (guess >= d->n_posonly && guess < d->n_params &&
        PyTuple_GET_ITEM(d->names, guess) == name)
        return guess;
    for (uint32_t i = d->n_posonly; i < d->n_params; i++)
        if (PyTuple_GET_ITEM(d->names, i) == name) return i;
    for (uint32_t i = d->n_posonly; i < d->n_params; i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(d->names, i), name) == 0) return i;
    return -1;
}

/* The argument that every kernel takes: launches of the CPU have one order (ingot/_streams.py). */
static bool take_stream(ing_py_kernel *k, PyObject *stream) {
    const ing_py_host *h = k->host;
    if (stream == Py_None) return true;
    bool tape = h->listener && h->listening == PyThread_get_thread_ident();
    const char *what = k->graph  ? "graph=True kernels"
                       : k->mode ? "autodiff kernels"
                       : tape    ? "autograd Tape"
                                 : NULL;
    PyObject *check = ing_py_import("ingot._streams", "check_launch");
    PyObject *done = check ? PyObject_CallFunction(check, "Oz", stream, what) : NULL;
    Py_XDECREF(check);
    Py_XDECREF(done);
    return done != NULL;
}

/* Behind the `first` arguments by position. */
static bool place_keywords(ing_py_kernel *k, PyObject *const *args, Py_ssize_t first,
                           PyObject *kwnames, PyObject **out) {
    Py_ssize_t n = kwnames ? PyTuple_GET_SIZE(kwnames) : 0, i = first - 1;
    for (Py_ssize_t j = 0; j < n; j++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, j);
        i = param_index(&k->def, name, i + 1);
        if (i < 0 && PyUnicode_CompareWithASCIIString(name, "qd_stream") == 0) {
            if (!take_stream(k, args[j])) return false;
            continue;
        }
        if (i < 0) return name_error(k, "Unexpected argument", name);
        if (out[i]) return name_error(k, "Multiple values for argument", name);
        out[i] = args[j];
    }
    return true;
}

/* Defaults where no argument is. They are the function's, which may get others while the
 * kernel runs: *held (a list, or NULL) keeps those that are used. */
static bool place_defaults(ing_py_kernel *k, PyObject **out, PyObject **held) {
    const ing_py_def *d = &k->def;
    for (uint32_t i = 0; i < d->n_params; i++) {
        if (out[i]) continue;
        PyObject *v;
        int rc = ing_py_def_default(d, i, &v);
        if (rc == 0)
            return name_error(k, "Missing argument", PyTuple_GET_ITEM(d->names, i));
        if (rc == 1 && !*held) *held = PyList_New(0);
        if (rc == 1 && (!*held || PyList_Append(*held, v) < 0)) rc = -1;
        out[i] = v; /* the list has it */
        Py_XDECREF(v);
        if (rc < 0) return false;
    }
    return true;
}

/* *args and **kwargs: told when they are used, which cannot be meant. True = raised. */
static bool any_number(ing_py_kernel *k) {
    int flags = ((PyCodeObject *)PyFunction_GET_CODE(k->def.fn))->co_flags;
    const char *what = flags & CO_VARARGS       ? "*args"
                       : flags & CO_VARKEYWORDS ? "**kwargs"
                                                : NULL;
    if (what)
        call_error(k, "name every parameter; a tuple can be one of them",
                   "%s has %s, which kernels cannot have: name each parameter",
                   ing_py_def_name(&k->def), what);
    return what != NULL;
}

/* A method without `self`: the object, of the class that the method is written in, came first. */
static bool lacks_self(const ing_py_def *d, PyObject *const *args, Py_ssize_t n) {
    const char *name = ing_py_def_name(d), *dot = strrchr(name, '.');
    const char *cls = n ? Py_TYPE(args[0])->tp_name : "", *last = strrchr(cls, '.');
    if (last) cls = last + 1;
    size_t len = strlen(cls);
    return dot && (size_t)(dot - name) >= len && strncmp(dot - len, cls, len) == 0;
}

bool ing_py_arrange(ing_py_kernel *k, PyObject *const *args, Py_ssize_t n,
                    PyObject *kwnames, PyObject **out, PyObject **held) {
    const ing_py_def *d = &k->def;
    Py_ssize_t positional = (Py_ssize_t)(d->n_params - d->n_kwonly);
    if (d->n_params > ING_PY_MAX_PARAMS)
        return call_error(k, NULL, "%s has %u parameters; at most %d are supported",
                          ing_py_def_name(d), d->n_params, ING_PY_MAX_PARAMS);
    if ((n > positional || kwnames) && any_number(k)) return false;
    if (n > positional)
        return call_error(k,
                          n == positional + 1 && lacks_self(d, args, n)
                              ? "a method takes its object first: write `self` before "
                                "the other parameters"
                              : NULL,
                          "Too many arguments: %s takes %zd%s, found %zd",
                          ing_py_def_name(d), positional,
                          d->n_kwonly ? " positional" : "", n);
    for (uint32_t i = 0; i < d->n_params; i++)
        out[i] = (Py_ssize_t)i < n ? args[i] : NULL;
    return place_keywords(k, args + n, n, kwnames, out) && place_defaults(k, out, held);
}

/* ---- finding the variant -------------------------------------------------------------------- */

/* A thread that waits for a kernel that another one compiles; on that thread's stack, in a
 * list that is changed with the GIL held. */
struct ing_py_waiter {
    unsigned long thread;
    const ing_py_kernel *kernel;
    struct ing_py_waiter *next;
};

static const struct ing_py_waiter *waiter_of(const ing_py_host *h, unsigned long t) {
    const struct ing_py_waiter *w = h->waiters;
    while (w && w->thread != t) w = w->next;
    return w;
}

/* Whether the thread that compiles k waits, by way of others, for this one. The list has no
 * cycle yet: whoever would close one does not wait. */
static bool waits_for_me(const ing_py_kernel *k, unsigned long me) {
    const struct ing_py_waiter *w;
    unsigned long t = k->busy;
    while (t != me && (w = waiter_of(k->host, t))) t = w->kernel->busy;
    return t == me;
}

/* Sleeps until k is compiled, at most 50 ms. Called without the GIL. */
static void wait_a_while(ing_py_kernel *k) {
    ing_py_host *h = k->host;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&h->compile_lock);
    if (__atomic_load_n(&k->busy, __ATOMIC_ACQUIRE))
        pthread_cond_timedwait(&h->compile_done, &h->compile_lock, &until);
    pthread_mutex_unlock(&h->compile_lock);
}

/* Waits, without the GIL, until no other thread compiles this kernel; Ctrl-C ends it.
 * ING_OK: somebody did and the tree is worth another look. ING_DECLINED: nobody does. */
static ing_status wait_for_other(ing_py_kernel *k, ing_err *e) {
    ing_py_host *h = k->host;
    if (k->busy && k->busy_fork != h->forks) k->busy = 0; /* that thread is not here */
    if (!k->busy) return ING_DECLINED;
    struct ing_py_waiter me = {PyThread_get_thread_ident(), k, h->waiters};
    if (waits_for_me(k, me.thread))
        return ing_fail(
            e, ING_COMPILE,
            "compiling %s needs %s itself: a property or function that the kernel "
            "reads launches it",
            ing_py_def_name(&k->def), ing_py_def_name(&k->def));
    ing_status s = ING_OK;
    uint64_t forks = h->forks;
    h->waiters = &me;
    while (s == ING_OK && __atomic_load_n(&k->busy, __ATOMIC_ACQUIRE) &&
           h->forks == forks) {
        Py_BEGIN_ALLOW_THREADS wait_a_while(k);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals() < 0) s = ING_PYTHON;
    }
    struct ing_py_waiter **at =
        &h->waiters; /* others may have come and gone meanwhile */
    while (*at && *at != &me) at = &(*at)->next;
    if (*at) *at = me.next;
    return s;
}

static void set_busy(ing_py_kernel *k, unsigned long thread) {
    pthread_mutex_lock(&k->host->compile_lock);
    k->busy_fork = k->host->forks;
    __atomic_store_n(&k->busy, thread, __ATOMIC_RELEASE);
    if (!thread) pthread_cond_broadcast(&k->host->compile_done);
    pthread_mutex_unlock(&k->host->compile_lock);
}

static ing_status compile_new(const ing_py_asker *a, ing_py_variant **out, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ing_py_variant *v = NULL;
    set_busy(k, PyThread_get_thread_ident());
    ing_status s = ing_py_compile(a, &v, e);
    set_busy(k, 0);
    if (s == ING_OK) s = ing_py_variant_added(k, v);
    if (s == ING_OK && !a->apart) s = ing_py_give_warnings(k, v, a->args);
    if (s != ING_OK)
        ing_py_variant_unref(v);
    else
        *out = v;
    return s;
}

/* A variant that is not in memory. *out stays NULL when Python ran meanwhile and changed the
 * kernel: look again. */
static ing_status load_leaf(const ing_py_asker *a, uint32_t leaf, ing_questions *asked,
                            ing_py_variant **out, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ing_py_variant *v = NULL;
    uint64_t epoch = k->epoch;
    ing_hash128 key = k->cache.leaves.at[leaf].key;
    ING_TRY(ing_py_cache_load(a, leaf, asked, &v, e));
    if (k->epoch != epoch || !ing_cache_loaded(&k->cache, leaf, key, v)) {
        ing_py_variant_unref(v);
        return ING_OK;
    }
    v->refs++;
    ing_status s = ing_py_variant_added(k, v);
    if (s == ING_OK && !a->apart) s = ing_py_give_warnings(k, v, a->args);
    if (s == ING_OK)
        *out = v;
    else
        ing_py_variant_unref(v);
    return s;
}

/* The variant at a leaf, if the rest of its trace holds. ING_DECLINED: it does not, or the
 * leaf has lost its entry. */
static ing_status take_leaf(const ing_py_asker *a, uint32_t leaf, ing_questions *asked,
                            ing_py_variant **out, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ing_py_variant *v = ing_py_variant_at(k, leaf);
    if (!v) return load_leaf(a, leaf, asked, out, e);
    v->refs++; /* asking runs Python */
    ing_status s =
        ing_trace_holds(&v->record.trace, ing_py_ask_again, (void *)a, asked, e);
    if (s != ING_OK) {
        ing_py_variant_unref(v);
        return s;
    }
    ing_count(&k->st->counters, ING_COUNT_VARIANT_HITS);
    ing_py_variant_used(k, v);
    *out = v;
    return ING_OK;
}

/* Down the tree, then the rest of the trace. ING_OK without *out: look again. */
static ing_status find_variant(const ing_py_asker *a, ing_py_variant **out,
                               ing_err *e) {
    ing_questions asked = {0};
    uint32_t leaf;
    *out = NULL;
    ing_status s = ing_cache_find(&a->kernel->cache, ing_py_ask_again, (void *)a, &leaf,
                                  &asked, e);
    if (s == ING_OK) s = take_leaf(a, leaf, &asked, out, e);
    ing_vec_fini(&asked);
    return s;
}

/* The variant for this launch, compiled if need be; new reference. */
static ing_status get_variant(const ing_py_asker *a, ing_py_variant **out, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ING_TRY(ing_py_pure_tell(k));
    if (k->st->unsettled && ing_py_fields_settle(k->st) < 0) return ING_PYTHON;
    ing_span span = {.what = "lookup",
                     .label = ing_py_def_name(&k->def),
                     .from = ing_events_now(k->host->events)};
    if (k->host->events && k->vectorcall == ing_py_kernel_call)
        k->vectorcall = ing_py_kernel_call_told; /* a trace was begun since */
    ING_TRY(ing_py_check_args(k, a->args, e));
    ING_TRY(ing_cache_open(&k->cache, &k->def.alias, e));
    for (;;) {
        uint64_t epoch = k->epoch;
        ing_status s = find_variant(a, out, e);
        span.args = s == ING_OK ? "\"found\":true" : "\"found\":false";
        ing_events_span(k->host->events, &span);
        span.from = ing_events_now(k->host->events);
        /* Asking runs Python, and qd.init may have emptied the tree under the walk. */
        if (k->epoch != epoch && (s == ING_OK || s == ING_DECLINED)) {
            ing_py_variant_unref(*out);
            continue;
        }
        if (s == ING_OK && !*out) continue;
        if (s != ING_DECLINED) return s;
        s = ing_cache_more(&k->cache, e);
        if (s == ING_OK) continue;
        if (s != ING_DECLINED) return s;
        s = wait_for_other(k, e);
        if (s == ING_DECLINED) return compile_new(a, out, e);
        if (s != ING_OK) return s;
    }
}

/* ---- what a launch reads -------------------------------------------------------------------- */

/* The answers of the variant's questions: what it found outside is what these say. Whether arrays
 * overlap is asked of the launch. */
static uint64_t answers_of(const ing_py_variant *v) {
    const ing_trace *t = &v->record.trace;
    uint32_t n = t->list.len - (v->record.apart.len && t->list.len);
    ing_hasher h;
    ing_hasher_init(&h);
    for (uint32_t i = 0; i < n; i++) {
        ing_hasher_u64(&h, t->list.at[i].ask, t->list.at[i].path);
        ing_hasher_digest(&h, 0, t->list.at[i].answer);
    }
    return ing_hasher_done(&h).lo;
}

/* (key, answers, captured arrays and numbers ...); NULL = raised. */
static PyObject *reading_of(const ing_py_variant *v, const ing_py_checks *c,
                            PyObject *const *held, uint64_t key) {
    Py_ssize_t n = 2;
    for (uint32_t i = 0; i < c->binds.len; i++) n += c->binds.at[i].fetch != 0;
    PyObject *t = PyTuple_New(n);
    const uint64_t numbers[2] = {key, answers_of(v)};
    for (n = 0; t && n < 2; n++) {
        PyObject *item = PyLong_FromUnsignedLongLong(numbers[n]);
        if (item)
            PyTuple_SET_ITEM(t, n, item);
        else
            Py_CLEAR(t);
    }
    if (!t) return NULL;
    for (uint32_t i = 0; i < c->binds.len; i++) {
        uint32_t fetch = c->binds.at[i].fetch;
        PyObject *o = fetch ? held[fetch - 1] : NULL;
        if (fetch) PyTuple_SET_ITEM(t, n++, Py_NewRef(o ? o : Py_None));
    }
    return t;
}

/* As of one variant. ING_DECLINED: it does not fit: binding says so of arrays. */
static ing_status read_by(const ing_py_asker *a, ing_py_variant *v, PyObject **out,
                          ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ing_py_checks *c = v->checks;
    uint32_t n = 0;
    PyObject **held = ing_calloc((size_t)c->fetches.len + 1, sizeof *held);
    uint64_t *words = ing_calloc((size_t)v->record.n_words + 1, sizeof *words);
    ing_py_views views;
    views.n = 0;
    views.stage = NULL;
    v->refs++;
    c->refs++;
    ing_status s = ING_OK;
    if (!held || !words) s = ing_fail(e, ING_MEMORY, "no memory for arguments");
    if (s == ING_OK) s = ing_py_guards_hold(k, v, c, a->args, held, &n, e);
    if (s == ING_OK) s = ing_py_bind_all(k, v, c, a->args, held, words, &views, e);
    if (s == ING_OK && !(*out = reading_of(v, c, held, k->key))) s = ING_PYTHON;
    if (views.stage) ing_stage_free(views.stage);
    for (uint32_t i = 0; i < views.n; i++) PyBuffer_Release(&views.at[i]);
    for (uint32_t i = 0; i < n; i++) Py_XDECREF(held[i]);
    ing_free(held);
    ing_free(words);
    ing_py_checks_unref(c);
    ing_py_variant_unref(v);
    return s;
}

ing_status ing_py_reading(ing_py_kernel *k, PyObject *const *args, bool compile,
                          PyObject **out, ing_err *e) {
    ing_py_asker a = {k, args, NULL};
    ing_py_variant *v = NULL;
    if (k->epoch != k->host->epoch) ing_py_kernel_reset(k);
    ing_status s = k->last ? read_by(&a, k->last, out, e) : ING_DECLINED;
    if (s != ING_DECLINED) return s;
    ING_TRY(ing_cache_open(&k->cache, &k->def.alias, e));
    s = compile ? get_variant(&a, &v, e) : find_variant(&a, &v, e);
    if (s == ING_OK) s = v ? read_by(&a, v, out, e) : ING_DECLINED;
    ing_py_variant_unref(v);
    return s;
}

/* ---- running ------------------------------------------------------------------------------------ */

/* Result i: a number, or a vector, matrix or struct of the next numbers. */
static PyObject *one_result(ing_py_kernel *k, uint32_t i, const uint64_t **at) {
    const ing_gate_tensor *t = &k->def.returns.tensors[i];
    ing_dtype dtype = k->def.returns.dtypes[i];
    if (k->def.returns.layouts[i])
        return ing_py_struct_result(PyTuple_GET_ITEM(k->def.result_types, i), at);
    if (t->rank == 0) return ing_py_scalar_load(dtype, (*at)++);
    Py_ssize_t n = (Py_ssize_t)t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t j = 0; list && j < n; j++) {
        PyObject *o = ing_py_scalar_load(dtype, (*at)++);
        if (o)
            PyList_SET_ITEM(list, j, o);
        else
            Py_CLEAR(list);
    }
    PyObject *v =
        list ? ing_py_tensor_result(t, ing_py_dtype_get(k->st, dtype), list) : NULL;
    Py_XDECREF(list);
    return v;
}

/* The annotation says how the numbers that code returns belong together. */
static PyObject *result_of(ing_py_kernel *k, const ing_py_variant *v,
                           const uint64_t *rets) {
    const ing_gate_returns *r = &k->def.returns;
    if (v->record.n_rets == 0 || r->n == 0) Py_RETURN_NONE;
    if (!v->record.returns_tuple) return one_result(k, 0, &rets);
    PyObject *t = PyTuple_New((Py_ssize_t)r->n);
    for (uint32_t i = 0; t && i < r->n; i++) {
        PyObject *o = one_result(k, i, &rets);
        if (o)
            PyTuple_SET_ITEM(t, i, o);
        else
            Py_CLEAR(t);
    }
    return t;
}

static PyObject *launch_failed(ing_py_kernel *k, const ing_py_variant *v,
                               PyObject *const *args, const ing_error_slot *slot) {
    k->failed = k->mode == ING_AD_REVERSE && slot->code != ING_ABI_RULE;
    if (k->failed && slot->code == ING_ABI_SCRATCH &&
        k->primal->companions[ING_AD_SIZE - 1])
        ing_py_sizes_drop(k->primal->companions[ING_AD_SIZE - 1]);
    /* Ctrl-C: the signal handler has set its exception already. */
    if (PyErr_Occurred()) return NULL;
    ing_err e;
    ing_err_init(&e);
    ing_py_launch_error(k, v, args, slot, &e);
    return ing_py_raise(k->st, &e);
}

static inline bool is_sizing(const ing_py_kernel *k) {
    return k->mode == ING_AD_SIZE || k->mode == ING_AD_BOUNDS;
}

/* Of several threads, any of the pool's may take part, each with the slot of its number. */
static uint32_t slots_of(const ing_py_kernel *k, const ing_rt_launch *l) {
    return l->max_threads == 1 ? 1 : ing_rt_slots(k->host->rt);
}

static __attribute__((noinline)) bool scratch_for(const ing_py_kernel *k,
                                                  ing_rt_launch *l, uint64_t bytes) {
    size_t all = 0;
    bool fits = ing_mul_size(bytes, slots_of(k, l), &all);
    l->scratch = fits ? ing_malloc(all) : NULL;
    l->scratch_bytes = bytes;
    return l->scratch != NULL;
}

static __attribute__((noinline)) void end_scratch(const ing_py_kernel *k,
                                                  ing_rt_launch *l) {
    uint64_t bytes = l->scratch ? l->scratch_bytes * slots_of(k, l) : 0;
    ing_count_by(&k->st->counters, ING_COUNT_STACK_BYTES, bytes + l->grown);
    ing_free(l->scratch);
}

/* A graph kernel's tasks run in an order of its own; one launch at a time measures them. */
static __attribute__((noinline)) void set_order(ing_py_variant *v,
                                                const uint64_t *words, uint32_t resume,
                                                ing_rt_launch *l, ing_rt_order *order,
                                                ing_graph_run *graph) {
    *graph = ing_graph_start(&v->graph, words, resume);
    *order = (ing_rt_order){ing_graph_next, graph, NULL};
    l->order = order;
    if (v->times_taken) return;
    v->times_taken = true;
    order->times = v->times;
    memset(v->times, 0, v->tasks.n * sizeof *v->times);
}

/* `scratch`: bytes of each slot, 0 = the kernel needs none, or asks for them. Inline: of two callers
 * one is hot, and a call of its own costs it 50 instructions. */
static inline __attribute__((always_inline)) PyObject *run(
    ing_py_kernel *k, ing_py_variant *v, PyObject *const *args, uint64_t *words,
    uint32_t resume, uint64_t scratch) {
    uint64_t rets[ING_RECORD_MAX_RETS];
    for (uint32_t i = 0; i < v->record.n_rets; i++) rets[i] = 0;
    uint64_t on_stack[STACK_BUFFER / 8];
    uint8_t *buffer = (uint8_t *)on_stack;
    uint32_t bytes = v->record.buffer_bytes;
    if (bytes > STACK_BUFFER)
        buffer = ing_calloc(bytes, 1);
    else if (bytes)
        memset(buffer, 0, bytes);
    if (!buffer) return PyErr_NoMemory();
    ing_py_sink sink = {k, v, args};
    ing_rt_sink output = {ing_py_print, &sink};
    ing_rt_launch l; /* member by member: gcc would clear all of it, slowly */
    l.tasks = v->tasks.at;
    l.n_tasks = v->tasks.n;
    l.order = NULL;
    l.args = words;
    l.rets = rets;
    l.buffer = buffer;
    l.flush_denormals = v->record.flush_denormals;
    l.max_threads = (uint32_t)k->st->settings.at[ING_SET_cpu_max_num_threads];
    if (__builtin_expect(k->mode == ING_AD_TRACE, 0)) l.max_threads = 1;
    l.host = &k->host->callbacks;
    l.sink = &output;
    l.key = k->key = (*k->keys)++;
    l.scratch = NULL;
    l.grown = 0;
    if (__builtin_expect(scratch != 0, 0) && !scratch_for(k, &l, scratch)) {
        if (bytes > STACK_BUFFER) ing_free(buffer);
        return PyErr_NoMemory();
    }
    ing_graph_run graph;
    ing_rt_order order;
    graph.yielded = ING_GRAPH_NO_STAGE;
    if (v->graph.n) set_order(v, words, resume, &l, &order, &graph);
    int32_t failed = v->target->run(k->host->rt, &l);
    if (l.order && order.times) v->times_taken = false;
    k->host->last =
        (ing_py_last_launch){v->tasks.n, v->record.stages.len, graph.yielded};
    ing_count(&k->st->counters, ING_COUNT_LAUNCHES);
    if (l.ran_inline) ing_count(&k->st->counters, ING_COUNT_LAUNCH_INLINE);
    if (bytes > STACK_BUFFER) ing_free(buffer);
    if (__builtin_expect(((uintptr_t)l.scratch | l.grown) != 0, 0)) end_scratch(k, &l);
    if (failed) return launch_failed(k, v, args, &l.error);
    if (k->checkpoints) return ing_py_graph_status(k, v, args, graph.yielded);
    if (v->record.n_rets == 0) Py_RETURN_NONE;
    if (__builtin_expect(is_sizing(k), 0)) k->size = rets[0];
    return result_of(k, v, rets);
}

/* Arrays share memory that v's code takes to lie apart, or v is for such launches and they do
 * not: another variant is wanted. */
static ing_status want_other(ing_py_asker *a, ing_py_variant *v, bool overlaps) {
    ing_py_variant *old = a->apart;
    if (overlaps) v->refs++;
    a->apart = overlaps ? v : NULL;
    ing_py_variant_unref(old);
    return ING_DECLINED;
}

/* A gradient whose launch gives one array as two, one of which is read and the other written: what
 * it reads again is not there any more. */
static __attribute__((noinline)) ing_status note_overlap(const ing_py_kernel *k,
                                                         const ing_py_variant *v,
                                                         const uint64_t *words,
                                                         ing_err *e) {
    ing_count(&k->st->counters, ING_COUNT_LAUNCH_OVERLAP);
    if (ing_launch_has_parts(&v->record, words))
        return ing_fail(e, ING_COMPILE,
                        "%s cannot be differentiated: two arguments share memory and "
                        "are not the same array with the same gradient\nhelp: pass one "
                        "of them, or a copy",
                        ing_py_def_name(&k->def));
    if (!ing_launch_shares(&v->record, words, v->record.n_rule)) return ING_OK;
    return ing_fail(e, ING_COMPILE,
                    "%s cannot be differentiated: an element that was read, and whose "
                    "value the backward pass needs, is overwritten by way of another "
                    "argument that is the same array, or iterations of a parallel loop "
                    "meet there\nhelp: pass two arrays",
                    ing_py_def_name(&k->def));
}

/* What few launches need before they run: the place to resume from, the launch that this one is
 * the reverse of, the comparison of paranoid mode, copies for the device. */
static __attribute__((noinline)) ing_status
begin_stage(const ing_py_asker *a, ing_py_variant *v, PyObject *label, ing_stage *stage,
            uint64_t *words, uint32_t *resume, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    if (label && k->mode == ING_AD_REVERSE)
        ING_TRY(ing_py_forward_unknown(k, v, e));
    else if (label)
        ING_TRY(ing_py_graph_stage(k, v, label, resume, e));
    if (k->st->settings.at[ING_SET_paranoid])
        ING_TRY(ing_py_paranoid(k, v, a->args, e));
    return stage ? ing_stage_in(stage, words, &k->st->counters, e) : ING_OK;
}

/* What the kernel wrote goes back, also when it failed: arrays hold partial results. */
static void end_stage(ing_py_state *st, ing_py_views *views, bool ran,
                      PyObject **result) {
    bool lost = ran && !ing_stage_out(views->stage, &st->counters);
    ing_stage_free(views->stage);
    if (!lost || !*result) return;
    Py_CLEAR(*result);
    ing_py_fail(st, ING_PY_EXC_RUNTIME,
                "the results of a launch could not be copied from the device");
}

/* A launch that finds the room of stacks: not made where the answer is known. */
static __attribute__((noinline)) PyObject *run_size(ing_py_kernel *k, ing_py_variant *v,
                                                    const ing_py_checks *c,
                                                    PyObject *const *args,
                                                    PyObject *const *held,
                                                    uint64_t *words) {
    ing_py_size now;
    if (ing_py_size_known(k, v, c, args, held, words, &now)) Py_RETURN_NONE;
    PyObject *r = run(k, v, args, words, ING_GRAPH_NO_STAGE, 0);
    if (r)
        ing_py_size_note(k, v, &now, k->size);
    else
        ing_free(now.key);
    return r;
}

/* Whole cache lines, and some even where no stack needs any: code compares with it. Asked only
 * for launches that the variant fits: code for others may have no stacks that can be sized. Asking
 * runs Python, so the guards are looked at again after it. */
static __attribute__((noinline)) ing_status
find_scratch(ing_py_kernel *k, ing_py_variant *v, ing_py_checks *c,
             PyObject *const *args, PyObject **held, uint64_t *bytes, ing_err *e) {
    uint32_t n = 0;
    ing_status s = ing_py_guards_hold(k, v, c, args, held, &n, e);
    for (uint32_t i = 0; i < n; i++) Py_XDECREF(held[i]);
    ING_TRY(s);
    ING_TRY(ing_py_size_find(k, args, bytes, e));
    *bytes = (*bytes ? (*bytes + 63) / 64 : 1) * 64 * v->record.sized;
    return ING_OK;
}

/* One try with one variant. ING_DECLINED: it does not fit (any more). */
static ing_status try_variant(ing_py_asker *a, ing_py_variant *v, PyObject *label,
                              PyObject **result, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    PyObject *const *args = a->args;
    uint64_t on_stack[STACK_WORDS];
    uint64_t *words = on_stack;
    PyObject *held_stack[STACK_HELD];
    PyObject **held = held_stack;
    uint32_t n_held = 0;
    ing_py_views views;
    views.n = 0;
    views.stage = NULL;
    if (v->record.n_words > STACK_WORDS)
        words = ing_calloc(v->record.n_words, sizeof *words);
    ing_py_checks *checks = v->checks;
    if (checks->fetches.len > STACK_HELD)
        held = ing_calloc(checks->fetches.len, sizeof *held);
    v->refs++; /* qd.init in another thread may drop it from the kernel */
    checks->refs++;
    if (k->st->launching++ == 0) k->st->settled = k->st->generations;
    ing_status s = ING_OK;
    uint64_t scratch = 0;
    if (!words || !held) s = ing_fail(e, ING_MEMORY, "no memory for arguments");
    if (s == ING_OK && __builtin_expect(v->record.sized, 0))
        s = find_scratch(k, v, checks, args, held, &scratch, e);
    if (s == ING_OK) s = ing_py_guards_hold(k, v, checks, args, held, &n_held, e);
    if (__builtin_expect(k->mode, 0) && s == ING_OK && k->st->partials.len)
        s = ing_py_partials_check(k, checks, args, held, e);
    if (s == ING_OK) s = ing_py_bind_all(k, v, checks, args, held, words, &views, e);
    uint32_t resume = ING_GRAPH_NO_STAGE;
    if (s == ING_OK && (label || views.stage || k->st->settings.at[ING_SET_paranoid]))
        s = begin_stage(a, v, label, views.stage, words, &resume, e);
    bool overlaps = s == ING_OK && ing_launch_overlaps(&v->record, &v->apart, words);
    bool fits = s == ING_OK && overlaps == (v->record.overlap != 0);
    if (__builtin_expect(fits && overlaps, 0)) s = note_overlap(k, v, words, e);
    if (fits && s == ING_OK)
        *result = __builtin_expect(is_sizing(k), 0)
                      ? run_size(k, v, checks, args, held, words)
                      : run(k, v, args, words, resume, scratch);
    if (__builtin_expect(k->mode, 0) && fits) {
        if (k->failed) ing_py_partials_note(k, checks, args, held);
        if (k->mode == ING_AD_TRACE) ing_py_reads_hold(k, v, held, n_held);
        k->failed = false;
    }
    if (views.stage) end_stage(k->st, &views, fits && s == ING_OK, result);
    if (s == ING_OK && !fits) s = want_other(a, v, overlaps);
    for (uint32_t i = 0; i < views.n; i++) PyBuffer_Release(&views.at[i]);
    for (uint32_t i = 0; held && i < n_held; i++) Py_XDECREF(held[i]);
    if (held != held_stack) ing_free(held);
    if (words != on_stack) ing_free(words);
    ing_py_checks_unref(checks);
    if (--k->st->launching == 0 && k->st->doomed.len) ing_py_block_release(k->st);
    ing_py_variant_unref(v);
    return s;
}

PyObject *ing_py_launch(ing_py_kernel *k, PyObject *const *args, PyObject *label) {
    if (__builtin_expect(k->st->fresh, 0) && ing_py_fields_announce(k->st) < 0)
        return NULL;
    if (k->epoch != k->host->epoch) ing_py_kernel_reset(k);
    ing_py_asker a = {k, args, NULL};
    PyObject *result = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s =
        k->last ? try_variant(&a, k->last, label, &result, &e) : ING_DECLINED;
    /* A property may answer differently each time it is asked, and other threads change
     * things while this one compiles; give up after a while. */
    for (int tries = 0; s == ING_DECLINED && tries < MAX_TRIES; tries++) {
        ing_py_variant *v = NULL;
        s = get_variant(&a, &v, &e);
        if (s != ING_OK) break;
        s = try_variant(&a, v, label, &result, &e);
        /* `last` is borrowed: qd.init may have dropped the variant meanwhile. */
        if (s == ING_OK && ing_cache_holds(&k->cache, v)) k->last = v;
        ing_py_variant_unref(v);
    }
    ing_py_variant_unref(a.apart);
    if (s == ING_OK) return result;
    if (s == ING_DECLINED)
        ing_fail(&e, ING_RUNTIME,
                 "%s: what the kernel reads changes each time it is read",
                 ing_py_def_name(&k->def));
    return ing_py_raise(k->st, &e);
}

PyObject *ing_py_kernel_call(PyObject *self, PyObject *const *args, size_t nargsf,
                             PyObject *kwnames) {
    return ing_py_kernel_launch((ing_py_kernel *)self, args, nargsf, kwnames, NULL);
}

/* Keywords, defaults. Apart from the hot way, whose frame stays small. */
static __attribute__((noinline)) PyObject *launch_arranged(ing_py_kernel *k,
                                                           PyObject *const *args,
                                                           Py_ssize_t n,
                                                           PyObject *kwnames,
                                                           PyObject *label) {
    PyObject *full[ING_PY_MAX_PARAMS], *held = NULL, *result = NULL;
    full[0] = NULL; /* of a kernel without parameters gcc thinks that it is read */
    if (ing_py_arrange(k, args, n, kwnames, full, &held))
        result = ing_py_launch(k, full, label);
    Py_XDECREF(held);
    return result;
}

PyObject *ing_py_kernel_launch(ing_py_kernel *k, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames, PyObject *label) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (k->host->aside || k->mode)
        return ing_py_launch_aside(k, args, n, kwnames, label);
    if (!kwnames && n == k->def.n_as_given) return ing_py_launch(k, args, label);
    return launch_arranged(k, args, n, kwnames, label);
}
