/* qd.profiler: how often each task of each kernel ran, how long it took, on how many threads, and how
 * many bytes it moved at least. With kernel_profiler=True the host's target is one whose `run` is
 * here; without, a launch knows nothing of this file. Rows and records change with the GIL only:
 * before the tasks run and after them. Bytes are an estimate from the record (record/record.h: touches):
 * each array that a task reads counts once, each that it writes once, no more than its iterations touch. */
#include "py/call/kernel.h"
#include "py/tool/tool.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TARGETS = 8, MAX_RECORDS = 1 << 18, WHOLE = -1 };

typedef struct row { /* a task of a variant, or (task WHOLE) its launches */
    char *kernel;
    PyObject *place; /* str: "file:line" */
    int task;
    bool range;
    uint32_t threads; /* at most */
    uint64_t count, total, min, max, bytes;
} row;

typedef struct record { /* one run of a task, in the order of their ends */
    uint32_t row;
    uint64_t from, ns;
} record;

typedef struct ing_py_profile {
    ing_target targets[MAX_TARGETS]; /* those of launch/targets.c, but for `run` */
    uint32_t n_targets;
    ing_vec(row) rows;
    ing_vec(record) records;
    uint64_t dropped; /* records for which there was no room */
    uint64_t compiles, front_ns, pass_ns, gen_ns, llvm_ns, link_ns;
} ing_py_profile;

static ing_py_profile *profile_of(ing_py_host *h) {
    if (!h->profile) h->profile = ing_calloc(1, sizeof *h->profile);
    return h->profile;
}

static void row_fini(row *r) {
    ing_free(r->kernel);
    Py_XDECREF(r->place);
}

void ing_py_profile_free(ing_py_profile *p) {
    if (!p) return;
    for (uint32_t i = 0; i < p->rows.len; i++) row_fini(&p->rows.at[i]);
    ing_vec_fini(&p->rows);
    ing_vec_fini(&p->records);
    ing_free(p);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The function's own name, as the reference has it; "kernel.grad" of a derivative. */
static char *name_of(const ing_py_kernel *k) {
    PyObject *text = ing_py_attr(k->def.fn, "__name__");
    const char *name = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    const char *what = ing_py_companion_name(k->mode);
    if (!name && PyErr_Occurred() && !ing_py_took_any()) return NULL;
    if (!name) name = ing_py_def_name(&k->def);
    size_t n = strlen(name) + (what ? strlen(what) : 0) + 2;
    char *out = ing_malloc(n);
    if (out) snprintf(out, n, "%s%s%s", name, what ? "." : "", what ? what : "");
    Py_XDECREF(text);
    return out;
}

static bool add_row(ing_py_profile *p, ing_py_kernel *k, const ing_py_variant *v,
                    int task) {
    const ing_record_task *tasks = v->record.tasks.at;
    uint32_t loc = v->record.tasks.len ? tasks[task == WHOLE ? 0 : task].info.loc : 0;
    row r = {.kernel = name_of(k),
             .task = task,
             .range = task != WHOLE && tasks[task].info.kind == ING_IR_TASK_RANGE};
    if (r.kernel) r.place = ing_py_task_place(k, v, loc);
    if (r.kernel && r.place && ing_vec_push(&p->rows, r)) return true;
    row_fini(&r);
    return false;
}

/* Makes the variant's rows: its launches, then its tasks. False: there are none, maybe because
 * something was raised. */
static bool has_rows(ing_py_kernel *k, ing_py_variant *v) {
    ing_py_profile *p = k->host->profile;
    if (v->profile) return true;
    ing_py_profile mine = {0}; /* places run Python: others may add rows meanwhile */
    bool ok = true;
    for (int i = WHOLE; ok && i < (int)v->tasks.n; i++) ok = add_row(&mine, k, v, i);
    ok = ok && ing_vec_reserve(&p->rows, p->rows.len + mine.rows.len);
    uint32_t first = p->rows.len;
    for (uint32_t i = 0; ok && i < mine.rows.len; i++)
        p->rows.at[p->rows.len++] = mine.rows.at[i];
    for (uint32_t i = 0; !ok && i < mine.rows.len; i++) row_fini(&mine.rows.at[i]);
    ing_vec_fini(&mine.rows);
    if (ok) v->profile = first + 1;
    return ok;
}

static void note(ing_py_profile *p, uint32_t at, uint64_t from, uint64_t ns,
                 uint64_t runs, uint64_t bytes, uint32_t threads) {
    row *r = &p->rows.at[at];
    uint64_t each = ns / runs;
    r->min = r->count && r->min < each ? r->min : each;
    r->max = r->max > each ? r->max : each;
    r->count += runs;
    r->total += ns;
    r->bytes += bytes;
    if (r->threads < threads) r->threads = threads;
    if (r->task == WHOLE) return;
    record now = {at, from, ns};
    if (p->records.len >= MAX_RECORDS || !ing_vec_push(&p->records, now)) p->dropped++;
}

/* ---- bytes ------------------------------------------------------------------------------------- */

static int64_t bound(const ing_rt_launch *l, const ing_ir_bound *b) {
    int64_t v = b->value;
    if (b->at == ING_IR_BOUND_BUFFER) memcpy(&v, l->buffer + b->offset, sizeof v);
    if (b->at == ING_IR_BOUND_WORD) v = (int64_t)l->args[b->offset];
    return v;
}

/* Of one run. As double: what a launch is given may be too large for anything else. */
static uint64_t bytes_of(const ing_rt_launch *l, const ing_record_task *t) {
    int64_t begin = bound(l, &t->info.begin), end = bound(l, &t->info.end);
    bool range = t->info.kind == ING_IR_TASK_RANGE;
    double sum = 0, trips = !range ? 1 : begin < end ? (double)end - (double)begin : 0;
    for (uint32_t i = 0; trips > 0 && i < t->touches.len; i++) {
        const ing_record_touch *a = &t->touches.at[i];
        double all = (double)ing_launch_bytes(&a->array, l->args);
        double some = trips * a->each * a->array.size;
        sum += (a->reads + a->writes) * (a->each && some < all ? some : all);
    }
    return sum < 1e18 ? (uint64_t)sum : 0;
}

/* ---- launches ----------------------------------------------------------------------------------- */

typedef struct watch { /* of one launch: its order, with the clock read at each step */
    const ing_rt_order *inner;
    uint32_t next, n, now; /* now: the task that runs, or n */
    uint64_t *from;        /* of each task: when it began last */
} watch;

static uint32_t watch_next(void *self, ing_rt_fork *fork) {
    watch *w = self;
    uint32_t i = w->inner         ? w->inner->next(w->inner->self, fork)
                 : w->next < w->n ? w->next++
                                  : ING_RT_DONE;
    if (i < w->n) w->from[i] = ing_os_now_ns();
    return i;
}

static void tell(const ing_py_host *h, const row *r, uint64_t from, uint64_t ns,
                 uint64_t bytes) {
    if (!h->events) return;
    char args[160];
    snprintf(args, sizeof args,
             "\"task\":%d,\"bytes\":%llu,\"GB/s\":%.2f,\"threads\":%u", r->task,
             (unsigned long long)bytes, ns ? (double)bytes / (double)ns : 0.0,
             r->threads);
    ing_span span = {.what = "task",
                     .label = r->kernel,
                     .from = from,
                     .end = from + ns,
                     .args = args};
    ing_events_span(h->events, &span);
}

/* After the launch; `times` of its tasks. */
static void note_all(const ing_py_sink *s, const ing_rt_launch *l, const watch *w,
                     const ing_rt_time *times, uint64_t began) {
    ing_py_host *h = s->kernel->host;
    uint64_t now = ing_os_now_ns(), all = 0;
    uint32_t at = s->variant->profile - 1, most = 1;
    for (uint32_t i = 0; i < w->n; i++) {
        const ing_rt_time *t = &times[i];
        uint32_t threads = t->threads ? t->threads : 1;
        if (!t->runs) continue;
        uint64_t bytes = t->runs * bytes_of(l, &s->variant->record.tasks.at[i]);
        note(h->profile, at + 1 + i, w->from[i], t->ns, t->runs, bytes, threads);
        tell(h, &h->profile->rows.at[at + 1 + i], w->from[i], t->ns, bytes);
        all += bytes;
        if (most < threads) most = threads;
    }
    note(h->profile, at, began, now - began, 1, all, most);
}

static int32_t run_measured(ing_rt *rt, ing_rt_launch *l) {
    const ing_py_sink *s = l->sink->self;
    const ing_rt_order *inner = l->order;
    uint32_t n = l->n_tasks;
    if (!has_rows(s->kernel, s->variant)) {
        if (!PyErr_Occurred() || ing_py_took_any()) return ing_rt_run(rt, l);
        return l->error.code = ING_ABI_CANCELLED; /* told by what was raised */
    }
    ing_rt_time *times = ing_calloc((size_t)n + 1, sizeof *times);
    uint64_t *from = ing_calloc((size_t)n + 1, sizeof *from), began = ing_os_now_ns();
    watch w = {.inner = inner, .n = n, .from = from};
    ing_rt_order order = {watch_next, &w, times};
    if (times && from) l->order = &order;
    int32_t failed = ing_rt_run(rt, l);
    l->order = inner;
    if (times && from) note_all(s, l, &w, times, began);
    for (uint32_t i = 0; times && inner && inner->times && i < n; i++) {
        inner->times[i].runs += times[i].runs;
        inner->times[i].ns += times[i].ns;
    }
    ing_free(times);
    ing_free(from);
    return failed;
}

const ing_target *ing_py_profiled(ing_py_host *h, const ing_target *t) {
    ing_py_profile *p = profile_of(h);
    if (!p || t->run != ing_rt_run) return t;
    for (uint32_t i = 0; i < p->n_targets; i++)
        if (p->targets[i].name == t->name && p->targets[i].shape == t->shape)
            return &p->targets[i];
    if (p->n_targets == MAX_TARGETS) return t;
    ing_target *mine = &p->targets[p->n_targets++];
    *mine = *t;
    mine->run = run_measured;
    return mine;
}

void ing_py_profile_compile(ing_py_host *h, const ing_engine_report *g,
                            uint64_t front_ns) {
    ing_py_profile *p = profile_of(h);
    if (!p) return;
    p->compiles++;
    p->front_ns += front_ns;
    p->pass_ns += g->pass_ns;
    p->gen_ns += g->gen_ns;
    p->llvm_ns += g->llvm_ns;
    p->link_ns += g->link_ns;
}

/* ---- for ingot/profiler.py ------------------------------------------------------------------------- */

static PyObject *rows(PyObject *module, PyObject *unused) {
    (void)unused;
    const ing_py_profile *p = ing_py_state_in(module)->host->profile;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && p && i < p->rows.len; i++) {
        const row *r = &p->rows.at[i];
        PyObject *t =
            Py_BuildValue("(NOiOKKKKKI)", ing_py_lenient(r->kernel), r->place, r->task,
                          r->range ? Py_True : Py_False, (unsigned long long)r->count,
                          (unsigned long long)r->total, (unsigned long long)r->min,
                          (unsigned long long)r->max, (unsigned long long)r->bytes,
                          (unsigned)r->threads);
        if (!t || PyList_Append(list, t) < 0) Py_CLEAR(list);
        Py_XDECREF(t);
    }
    return list;
}

static PyObject *records(PyObject *module, PyObject *unused) {
    (void)unused;
    const ing_py_profile *p = ing_py_state_in(module)->host->profile;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && p && i < p->records.len; i++) {
        const record *r = &p->records.at[i];
        PyObject *t =
            Py_BuildValue("(IKK)", (unsigned)r->row, (unsigned long long)r->from,
                          (unsigned long long)r->ns);
        if (!t || PyList_Append(list, t) < 0) Py_CLEAR(list);
        Py_XDECREF(t);
    }
    return list ? Py_BuildValue("(NK)", list, p ? (unsigned long long)p->dropped : 0ull)
                : NULL;
}

/* Variants keep the numbers of their rows, so rows stay. */
static PyObject *clear(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_profile *p = ing_py_state_in(module)->host->profile;
    if (!p) Py_RETURN_NONE;
    for (uint32_t i = 0; i < p->rows.len; i++) {
        row *r = &p->rows.at[i];
        r->count = r->total = r->min = r->max = r->bytes = r->threads = 0;
    }
    p->records.len = 0;
    p->dropped = 0;
    Py_RETURN_NONE;
}

static PyObject *scopes(PyObject *module, PyObject *wipe) {
    ing_py_profile *p = profile_of(ing_py_state_in(module)->host);
    if (!p) return PyErr_NoMemory();
    PyObject *t = Py_BuildValue(
        "(KKKKKK)", (unsigned long long)p->compiles, (unsigned long long)p->front_ns,
        (unsigned long long)p->pass_ns, (unsigned long long)p->gen_ns,
        (unsigned long long)p->llvm_ns, (unsigned long long)p->link_ns);
    if (wipe == Py_True)
        p->compiles = p->front_ns = p->pass_ns = p->gen_ns = p->llvm_ns = p->link_ns =
            0;
    return t;
}

/* ---- the peak: how fast threads copy what no cache holds -------------------------------------------- */

enum { PEAK_BYTES = 64 << 20, PEAK_ROUNDS = 10, PEAK_THREADS = 64 };

typedef struct copier {
    uint8_t *to, *from;
    size_t n;
} copier;

static void *copy_part(void *arg) {
    const copier *c = arg;
    memcpy(c->to, c->from, c->n);
    return NULL;
}

/* Seconds of one copy of n bytes by so many threads. */
static double copy_once(uint8_t *to, uint8_t *from, size_t n, uint32_t threads) {
    pthread_t ids[PEAK_THREADS];
    copier parts[PEAK_THREADS];
    size_t each = n / threads;
    uint32_t started = 0;
    uint64_t began = ing_os_now_ns();
    for (uint32_t k = 0; k < threads; k++)
        parts[k] = (copier){to + k * each, from + k * each, each};
    while (started + 1 < threads &&
           pthread_create(&ids[started], NULL, copy_part, &parts[started + 1]) == 0)
        started++;
    copy_part(&parts[0]);
    for (uint32_t k = started + 1; k < threads; k++) copy_part(&parts[k]);
    for (uint32_t k = 0; k < started; k++) pthread_join(ids[k], NULL);
    return (double)(ing_os_now_ns() - began) / 1e9;
}

static PyObject *peak(PyObject *module, PyObject *unused) {
    (void)unused;
    const ing_py_state *st = ing_py_state_in(module);
    uint32_t most = (uint32_t)st->settings.at[ING_SET_cpu_max_num_threads];
    uint32_t threads = ing_rt_threads(st->host->rt);
    if (most && most < threads) threads = most;
    if (threads > PEAK_THREADS) threads = PEAK_THREADS;
    uint8_t *from = ing_calloc(PEAK_BYTES, 1), *to = ing_calloc(PEAK_BYTES, 1);
    double best = HUGE_VAL;
    if (from && to) {
        Py_BEGIN_ALLOW_THREADS for (int k = 0; k < PEAK_ROUNDS; k++) {
            double took = copy_once(to, from, PEAK_BYTES, threads);
            if (took < best) best = took;
        }
        Py_END_ALLOW_THREADS
    }
    bool ok = from && to;
    ing_free(from);
    ing_free(to);
    return ok ? PyFloat_FromDouble(2.0 * PEAK_BYTES / (best > 0 ? best : 1e-9))
              : PyErr_NoMemory();
}

static const PyMethodDef functions[] = {
    {"_profile_rows", rows, METH_NOARGS,
     "_profile_rows() -> [(kernel, place, task or -1, parallel, count, total, min, max "
     "(ns), bytes, threads)]"},
    {"_profile_records", records, METH_NOARGS,
     "_profile_records() -> ([(row, from, ns)], how many were left out)"},
    {"_profile_clear", clear, METH_NOARGS, "_profile_clear()"},
    {"_profile_scopes", scopes, METH_O,
     "_profile_scopes(wipe) -> (compiles, front, passes, text, llvm, link (ns))"},
    {"_profile_peak", peak, METH_NOARGS,
     "_profile_peak() -> bytes per second that the threads of a launch copy"},
    {NULL, NULL, 0, NULL},
};

int ing_py_profile_add(PyObject *module, ing_py_state *st) {
    (void)st;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
