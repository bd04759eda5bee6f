/* The services that all kernels of a process share: engine, runtime, callbacks for the
 * GIL and for signals, and what must happen around fork. Made when the module is
 * imported, cheap then: the store is opened and helpers are configured at the first
 * compile. */
#include "py/call/kernel.h"
#include "py/tool/tool.h"

#include "rt/mock.h"

#include "ing_revision.h"

#include <stdlib.h>
#include <string.h>

/* The one mutable global of src/py: pthread_atfork and watcher callbacks take no user
 * data. Changed with the GIL held. */
static struct { /* registry: hosts for fork handlers */
    ing_py_host *hosts;
    bool installed;
} registry;

/* ---- callbacks of the runtime --------------------------------------------------------- */

static void *release_gil(void *self) {
    (void)self;
    return PyEval_SaveThread();
}

static void acquire_gil(void *self, void *token) {
    (void)self;
    PyEval_RestoreThread(token);
}

/* A pending exception (KeyboardInterrupt) stays set for the launch to return. */
static int check_signals(void *self) {
    (void)self;
    return PyErr_CheckSignals();
}

/* ---- fork ------------------------------------------------------------------------------ */

static void before_fork(void) {
    for (ing_py_host *h = registry.hosts; h; h = h->next)
        ing_engine_before_fork(h->engine);
}

static void parent_after_fork(void) {
    for (ing_py_host *h = registry.hosts; h; h = h->next)
        ing_engine_parent_after_fork(h->engine);
}

static void child_after_fork(void) {
    for (ing_py_host *h = registry.hosts; h; h = h->next) {
        h->forks++;
        pthread_mutex_init(&h->compile_lock, NULL);
        pthread_cond_init(&h->compile_done, NULL);
        h->waiters = NULL; /* those threads are not here */
        ing_engine_after_fork(h->engine);
        if (h->remote) ing_remote_after_fork(h->remote);
        ing_events_after_fork(h->events);
        ing_rt_after_fork(h->rt);
    }
    ing_mock_after_fork();
}

static int install_fork_handlers(void) {
    if (registry.installed) return 0;
    int r = pthread_atfork(before_fork, parent_after_fork, child_after_fork);
    if (r != 0) {
        PyErr_SetString(PyExc_MemoryError, "no room for a fork handler");
        return -1;
    }
    registry.installed = true;
    return 0;
}

/* ---- life ------------------------------------------------------------------------------- */

/* The same program draws the same numbers: the count of launches starts over with the
 * seed. Seeds are spread over the keys, so that neighbours never meet. */
static void seed(ing_py_host *h) {
    uint64_t x = (uint64_t)h->st->settings.at[ING_SET_random_seed];
    x = (x + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    h->next_key = x ^ (x >> 31);
}

static int configured(ing_py_state *st) {
    ing_py_host *h = st->host;
    h->epoch++;
    seed(h);
    h->target = ing_target_chosen(&st->settings);
    if (st->settings.at[ING_SET_kernel_profiler])
        h->target = ing_py_profiled(h, h->target);
    h->aside = st->settings.at[ING_SET_python] || h->listener;
    st->home = h->target->home;
    return 0;
}

static PyObject *wait_for_launches(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state *st = ing_py_state_in(module);
    const ing_target *t = st->host->target;
    if (t->wait && t->wait(st->host->rt))
        return ing_py_fail(st, ING_PY_EXC_RUNTIME, "a launch failed on %s", t->name);
    Py_RETURN_NONE;
}

static const PyMethodDef functions[] = {
    {"wait", wait_for_launches, METH_NOARGS, "Waits until all launches are done."},
    {0},
};

int ing_py_host_add(PyObject *module, ing_py_state *st) {
    if (PyModule_AddFunctions(module, (PyMethodDef *)functions) < 0) return -1;
    ing_py_host *h = ing_calloc(1, sizeof *h);
    if (!h) {
        PyErr_NoMemory();
        return -1;
    }
    st->host = h;
    h->st = st;
    h->target = ing_target_chosen(&st->settings);
    pthread_mutex_init(&h->compile_lock, NULL);
    pthread_cond_init(&h->compile_done, NULL);
    h->engine = ing_engine_new(ING_BACK_REVISION, &st->counters);
    h->rt = ing_rt_new(0);
    h->sources = PyDict_New();
    if (!h->engine || !h->rt || !h->sources) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    h->epoch = 1;
    seed(h);
    h->callbacks = (ing_rt_host){release_gil, acquire_gil, check_signals, h};
    ing_py_cache_host(h);
    st->configured = configured;
    h->next = registry.hosts;
    registry.hosts = h;
    return install_fork_handlers();
}

int ing_py_host_traverse(ing_py_state *st, visitproc visit, void *arg) {
    if (!st->host) return 0;
    Py_VISIT(st->host->sources);
    Py_VISIT(st->host->codes);
    Py_VISIT(st->host->kernel_type);
    Py_VISIT(st->host->func_type);
    Py_VISIT(st->host->enum_class);
    Py_VISIT(st->host->odd_texts);
    Py_VISIT(st->host->told_types);
    Py_VISIT(st->host->graph_status);
    Py_VISIT(st->host->bound_type);
    Py_VISIT(st->host->listener);
    return 0;
}

void ing_py_host_clear(ing_py_state *st) {
    if (!st->host) return;
    Py_CLEAR(st->host->sources);
    Py_CLEAR(st->host->kernel_type);
    Py_CLEAR(st->host->func_type);
    Py_CLEAR(st->host->enum_class);
    Py_CLEAR(st->host->odd_texts);
    Py_CLEAR(st->host->told_types);
    Py_CLEAR(st->host->cursor_text);
    Py_CLEAR(st->host->codes_text);
    Py_CLEAR(st->host->codes);
    Py_CLEAR(st->host->graph_status);
    Py_CLEAR(st->host->bound_type);
    Py_CLEAR(st->host->listener);
}

void ing_py_host_fini(ing_py_state *st) {
    ing_py_host *h = st->host;
    if (!h) return;
    for (ing_py_host **at = &registry.hosts; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    if (h->rt) ing_rt_free(h->rt);
    ing_engine_free(h->engine);
    ing_remote_free(h->remote);
    ing_events_free(h->events);
    ing_py_profile_free(h->profile);
    ing_map_fini(&h->class_verdicts);
    ing_free(h);
    st->host = NULL;
}

/* ---- store and helpers, when first needed -------------------------------------------------- */

/* The helper's command line: this interpreter, isolated, with a bootstrap that finds
 * llvmlite and ingot where the parent would. Built by ingot/_helper.py, because it is
 * Python's business; a list of str. */
static ing_status helper_argv(PyObject **out, ing_err *e) {
    PyObject *mod = PyImport_ImportModule("ingot._helper");
    if (!mod) return ING_PYTHON;
    PyObject *argv = PyObject_CallMethod(mod, "argv", NULL);
    Py_DECREF(mod);
    if (!argv) return ING_PYTHON;
    if (!PyList_Check(argv) || PyList_GET_SIZE(argv) == 0 ||
        PyList_GET_SIZE(argv) > 62) {
        Py_DECREF(argv);
        return ing_fail(e, ING_INTERNAL,
                        "ingot._helper.argv must return a list of str");
    }
    *out = argv;
    return ING_OK;
}

/* The list's strings for the operating system; a new list that owns them, or NULL = raised. */
static PyObject *argv_of(PyObject *list, const char *argv[64]) {
    Py_ssize_t n = PyList_GET_SIZE(list);
    PyObject *own = PyList_New(n);
    for (Py_ssize_t i = 0; own && i < n; i++) {
        PyObject *one = PyUnicode_EncodeFSDefault(PyList_GET_ITEM(list, i));
        if (!one) {
            Py_CLEAR(own);
            break;
        }
        argv[i] = PyBytes_AS_STRING(one);
        PyList_SET_ITEM(own, i, one);
    }
    return own;
}

/* The server to ask first (ingot/_server.py): its name is this build's, and helpers are told it,
 * by one more argument, for them to leave one behind. */
typedef struct server {
    PyObject *folder; /* bytes, NULL: no server */
    char name[33];
} server;

static ing_status find_server(PyObject *argv, server *out) {
    const char *folder, *text;
    long seconds;
    PyObject *mod = PyImport_ImportModule("ingot._server");
    PyObject *at = mod ? PyObject_CallMethod(mod, "address", "O", argv) : NULL;
    Py_XDECREF(mod);
    if (!at) return ING_PYTHON;
    if (at == Py_None) {
        Py_DECREF(at);
        return ING_OK;
    }
    bool ok =
        PyTuple_Check(at) && PyArg_ParseTuple(at, "sls", &folder, &seconds, &text);
    if (ok) {
        ing_hasher h;
        ing_hasher_init(&h);
        ing_hasher_str(&h, 'a', text);
        ing_hasher_str(&h, 'r', ING_BACK_REVISION);
        ing_hash_hex(ing_hasher_done(&h), out->name);
        PyObject *spec =
            PyUnicode_FromFormat("server %ld %s %s", seconds, out->name, folder);
        out->folder = PyUnicode_EncodeFSDefault(PyTuple_GET_ITEM(at, 0));
        ok = spec && out->folder && PyList_Append(argv, spec) == 0;
        Py_XDECREF(spec);
    }
    Py_DECREF(at);
    return ok ? ING_OK : ING_PYTHON;
}

static ing_status make_helpers(ing_py_host *h, ing_helpers **out, ing_err *e) {
    PyObject *list = NULL;
    ING_TRY(helper_argv(&list, e));
    const char *argv[64] = {0};
    server at = {0};
    ing_status s = find_server(list, &at);
    if (s == ING_OK) Py_SETREF(list, argv_of(list, argv));
    if (s != ING_OK || !list) {
        Py_XDECREF(list);
        Py_XDECREF(at.folder);
        return ING_PYTHON;
    }
    int64_t max = h->st->settings.at[ING_SET_num_compile_threads];
    if (max <= 0) max = ing_os_cpus();
    int64_t limit = h->st->settings.at[ING_SET_compile_timeout];
    ing_helpers_config c = {.argv = argv,
                            .max = max > 64 ? 64 : (uint32_t)max,
                            .seconds = limit < 0            ? 0
                                       : limit > UINT32_MAX ? UINT32_MAX
                                                            : (uint32_t)limit,
                            .events = h->events,
                            .server_folder =
                                at.folder ? PyBytes_AS_STRING(at.folder) : NULL,
                            .server_name = at.name};
    *out = ing_helpers_new(&c, &h->st->counters);
    Py_DECREF(list);
    Py_XDECREF(at.folder);
    return *out ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for helper processes");
}

/* ---- the remote layer ----------------------------------------------------------------------- */

/* What INGOT_CACHE_REMOTE asks for, as ingot/_remote.py reads it; it has warned when that
 * is refused. The process is started by the first miss. */
static ing_status make_remote(ing_py_host *h, ing_err *e) {
    const char *url = getenv("INGOT_CACHE_REMOTE");
    if (h->remote_made || !url || !*url) return ING_OK;
    h->remote_made = true;
    PyObject *mod = PyImport_ImportModule("ingot._remote");
    PyObject *plan = mod ? PyObject_CallMethod(mod, "setup", NULL) : NULL;
    Py_XDECREF(mod);
    if (!plan) {
        h->remote_made = ing_py_is_refusal(); /* else it is asked for again */
        return ING_PYTHON;
    }
    const char *argv[64] = {0};
    PyObject *list = NULL, *own = NULL;
    uint32_t patience = 0;
    int writes = 0;
    ing_status s = ING_OK;
    if (plan != Py_None) {
        if (PyArg_ParseTuple(plan, "O!O&p", &PyList_Type, &list, ing_py_as_u32,
                             &patience, &writes) &&
            PyList_GET_SIZE(list) < 64)
            own = argv_of(list, argv);
        ing_remote_config c = {argv, patience, writes != 0};
        if (own) h->remote = ing_remote_new(&c, &h->st->counters);
        if (!h->remote)
            s = PyErr_Occurred() ? ING_PYTHON : ing_fail(e, ING_MEMORY, "no memory");
        Py_XDECREF(own);
    }
    Py_DECREF(plan);
    return s;
}

int ing_py_host_warn(ing_py_host *h) {
    char why[ING_REMOTE_TROUBLE];
    if (!h->remote || !ing_remote_trouble(h->remote, why)) return 0;
    return PyErr_WarnFormat(h->st->exc[ING_PY_EXC_RUNTIME_WARNING], 1,
                            "the remote cache is off for the rest of this process: %s",
                            why);
}

/* ---- the layers on disk ----------------------------------------------------------------------- */

/* The layers to open: INGOT_CACHE_PATH, with what qd.init was told in front of it; without
 * that, one directory. An empty name in it stands for `dir`. */
static ing_status store_path(const ing_py_host *h, ing_bytes *path, ing_bytes *dir,
                             ing_err *why) {
    const char *list = secure_getenv("INGOT_CACHE_PATH");
    PyObject *own = h->st->cache_dir ? ing_py_path(h->st->cache_dir) : NULL;
    if (h->st->cache_dir && !own) return ING_PYTHON;
    bool listed = list && list[0];
    if (own) ing_bytes_puts(path, PyBytes_AS_STRING(own));
    if (own && listed) ing_bytes_puts(path, ":");
    if (listed) ing_bytes_puts(path, list);
    ing_bytes_puts(dir, "");
    ing_status s = own ? ING_OK : ing_store_default_dir(dir, why);
    Py_XDECREF(own);
    if (s == ING_DECLINED && listed) s = ING_OK; /* layers need no home */
    if (s == ING_OK && (path->failed || dir->failed))
        s = ing_fail(why, ING_MEMORY, "no memory");
    return s;
}

static ing_status warn_of_store(const ing_py_host *h, const char *why) {
    int w = PyErr_WarnFormat(h->st->exc[ING_PY_EXC_RUNTIME_WARNING], 1,
                             "Ingot keeps compiled code in memory only: %s; name a "
                             "directory that you can write to in INGOT_CACHE_DIR, or "
                             "use qd.init(offline_cache=False)",
                             why);
    return w < 0 ? ING_PYTHON : ING_OK;
}

/* Opens the store; what stands in the way costs one warning, never the kernel (R20). */
static ing_status open_store(ing_py_host *h, ing_store **out, ing_err *e) {
    *out = NULL;
    if (!h->st->settings.at[ING_SET_offline_cache]) return ING_OK;
    ing_bytes path, dir, skipped;
    ing_bytes_init(&path);
    ing_bytes_init(&dir);
    ing_bytes_init(&skipped);
    ing_err why;
    ing_err_init(&why);
    ing_status s = store_path(h, &path, &dir, &why);
    if (s == ING_OK)
        s = ing_store_open_path(path.at ? (const char *)path.at : "",
                                (const char *)dir.at, &h->st->counters, out, &skipped,
                                &why);
    if (s == ING_DECLINED)
        s = warn_of_store(h, why.text ? why.text : "no cache directory");
    else if (s == ING_OK && skipped.len && !skipped.failed &&
             PyErr_WarnFormat(h->st->exc[ING_PY_EXC_RUNTIME_WARNING], 1,
                              "Ingot leaves out a layer of its cache: %s; correct "
                              "INGOT_CACHE_PATH",
                              (const char *)skipped.at) < 0)
        s = ING_PYTHON;
    if (s == ING_MEMORY) s = ing_fail(e, ING_MEMORY, "no memory for the cache");
    if (s == ING_PYTHON) {
        ing_store_close(*out);
        *out = NULL;
    }
    ing_bytes_fini(&path);
    ing_bytes_fini(&dir);
    ing_bytes_fini(&skipped);
    ing_err_fini(&why);
    return s;
}

/* Both release the GIL: users of the previous store or helpers may need it to finish. */
ing_status ing_py_host_store(ing_py_host *h, ing_err *e) {
    if (h->store_epoch == h->epoch) return ING_OK;
    ing_store *store = NULL;
    uint64_t epoch = h->epoch;
    ING_TRY(make_remote(h, e));
    ING_TRY(open_store(h, &store, e));
    if (store && h->remote) ing_store_set_remote(store, ing_remote_face(h->remote));
    const int64_t *set = h->st->settings.at;
    if (store)
        ing_store_set_bounds(
            store,
            (ing_store_totals){
                .entries = (uint64_t)set[ING_SET_offline_cache_max_entries],
                .bytes = (uint64_t)set[ING_SET_offline_cache_max_size_of_files]});
    Py_BEGIN_ALLOW_THREADS ing_engine_set_store(h->engine, store);
    Py_END_ALLOW_THREADS h->store_epoch = epoch;
    return ING_OK;
}

ing_status ing_py_host_helpers(ing_py_host *h, ing_err *e) {
    if (h->helpers_epoch == h->epoch) return ING_OK;
    ing_helpers *helpers = NULL;
    uint64_t epoch = h->epoch;
    ING_TRY(make_helpers(h, &helpers, e));
    Py_BEGIN_ALLOW_THREADS ing_engine_set_helpers(h->engine, helpers);
    Py_END_ALLOW_THREADS h->helpers_epoch = epoch;
    return ING_OK;
}
