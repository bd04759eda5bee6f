/* The services that all kernels of a process share (host.c), and how they tell of what they do
 * (log.c). Internal to src/py. */
#ifndef ING_PY_HOST_H
#define ING_PY_HOST_H

#include "py/py.h"

#include "cache/cache.h"
#include "compile/compile.h"
#include "launch/target.h"
#include "rt/rt.h"

#include <pthread.h>

/* ---- host: the services of the process (host.c) ------------------------------------------ */

/* About the last launch, for those who watch (compat). */
typedef struct ing_py_last_launch {
    uint32_t tasks, stages, yielded;
} ing_py_last_launch;

typedef struct ing_py_host {
    ing_py_state *st;
    ing_engine *engine;
    const ing_target *target; /* that the settings choose */
    ing_rt *rt;
    ing_remote *remote; /* NULL: none */
    ing_events *events; /* of INGOT_TRACE; NULL: nobody listens */
    bool remote_made;   /* or refused: once per process */
    uint64_t epoch;     /* grows with every qd.init / qd.reset (R14) */
    uint64_t forks;     /* grows in every forked child */
    uint64_t next_key;  /* of random numbers: begins with the seed, grows per launch */
    uint64_t store_epoch, helpers_epoch; /* for which they were made */
    ing_py_last_launch last;
    PyObject *graph_status; /* a class of ingot.graph, once imported */
    bool aside;             /* launches do not go straight ahead (companion.c) */
    PyObject *listener;     /* of the launches of thread `listening`; NULL: nobody */
    unsigned long listening;
    PyObject *sources;     /* dict: file name -> bytes, each file read once */
    PyObject *cursor_text; /* bytes: where the last def was found (source.c) */
    uint32_t cursor_line;
    size_t cursor_at;
    PyObject *codes_text, *codes; /* the text compiled last, and its code (source.c) */
    PyTypeObject *kernel_type;
    PyTypeObject *bound_type; /* of obj.kernel */
    PyTypeObject *func_type;
    PyObject *enum_class; /* enum.Enum once enum is imported */
    PyObject *odd_texts;  /* dict: str with lone surrogates -> its bytes (see.c) */
    /* version of a class -> 1 it holds what can change, 2 not (whole.c) */
    ing_map class_verdicts;
    uint32_t n_class_verdicts;
    int watcher; /* of dictionaries: its id + 1; 0: none yet, -1: none was free */
    PyObject *told_types;         /* set: names that [UNKNOWN_TYPE] was given for */
    pthread_mutex_t compile_lock; /* with compile_done: waiting for another's compile */
    pthread_cond_t compile_done;
    struct ing_py_waiter *waiters; /* threads that wait for it (call.c) */
    ing_rt_host callbacks;
    ing_cache_host cache;
    struct ing_py_profile *profile; /* of qd.profiler; NULL: never asked for */
    struct ing_py_host *next;       /* registry of hosts, for fork */
} ing_py_host;

int ing_py_host_add(PyObject *module, ing_py_state *st); /* creates st->host */
int ing_py_host_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_host_clear(ing_py_state *st);
void ing_py_host_fini(ing_py_state *st);
/* Opens the store / makes the helpers as configured, once per qd.init. */
ing_status ing_py_host_store(ing_py_host *h, ing_err *e);
ing_status ing_py_host_helpers(ing_py_host *h, ing_err *e);
/* The one warning about a remote layer that was turned off. */
int ing_py_host_warn(ing_py_host *h);

/* ---- telling (log.c) ------------------------------------------------------------------------ */

typedef enum ing_py_log_topic { ING_PY_LOG_CACHE, ING_PY_LOG_COMPILE } ing_py_log_topic;

bool ing_py_log_wants(const ing_py_state *st, ing_py_log_topic t);
ing_status ing_py_log(const ing_py_state *st, ing_py_log_topic t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
