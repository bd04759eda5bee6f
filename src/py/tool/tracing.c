/* INGOT_TRACE=file.json: opens the trace when the module is imported, tells it of launches,
 * and writes the rest when the interpreter ends. Without the variable kernels are called
 * directly: a launch does not know that there are traces. */
#include "py/call/kernel.h"
#include "py/tool/tool.h"

#include <stdlib.h>

/* Of one process: some 600,000 launches. */
static const uint64_t MAX_BYTES = 64u << 20;

PyObject *ing_py_kernel_call_told(PyObject *self, PyObject *const *args, size_t nargsf,
                                  PyObject *kwnames) {
    ing_py_kernel *k = (ing_py_kernel *)self;
    ing_span span = {
        .what = "launch", .label = ing_py_def_name(&k->def), .from = ing_os_now_ns()};
    PyObject *result = ing_py_kernel_call(self, args, nargsf, kwnames);
    ing_events_span(k->host->events, &span);
    return result;
}

/* Writes what is held; how many events were left out because there were too many. */
static PyObject *flush(PyObject *module, PyObject *unused) {
    (void)unused;
    const ing_py_state *st = ing_py_state_in(module);
    uint64_t dropped;
    Py_BEGIN_ALLOW_THREADS dropped = ing_events_flush(st->host->events);
    Py_END_ALLOW_THREADS return PyLong_FromUnsignedLongLong(dropped);
}

static int flush_at_exit(PyObject *module) {
    PyObject *call = PyObject_GetAttrString(module, "_trace_flush");
    PyObject *registry = call ? ing_py_import("atexit", "register") : NULL;
    PyObject *done = registry ? PyObject_CallOneArg(registry, call) : NULL;
    Py_XDECREF(call);
    Py_XDECREF(registry);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int begin(PyObject *module, ing_py_state *st, const char *path) {
    st->host->events = ing_events_new(path, MAX_BYTES);
    if (!st->host->events) {
        PyErr_NoMemory();
        return -1;
    }
    ing_engine_set_events(st->host->engine, st->host->events);
    ing_events_process(st->host->events, 0, program_invocation_short_name);
    return flush_at_exit(module);
}

/* Kernels that were made before are told of from their next lookup on (call.c). */
static PyObject *start(PyObject *module, PyObject *path) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *bytes = st->host->events ? NULL : ing_py_path(path);
    int rc = bytes ? begin(module, st, PyBytes_AS_STRING(bytes)) : 0;
    bool begun = bytes != NULL;
    Py_XDECREF(bytes);
    if (rc < 0 || PyErr_Occurred()) return NULL;
    return PyBool_FromLong(begun);
}

static const PyMethodDef functions[] = {
    {"_trace_flush", flush, METH_NOARGS,
     "_trace_flush() -> events of INGOT_TRACE that were left out; writes the others"},
    {"_trace_start", start, METH_O,
     "_trace_start(path) -> whether a trace was begun; false: there is one already"},
    {NULL, NULL, 0, NULL},
};

int ing_py_tracing_add(PyObject *module, ing_py_state *st) {
    if (PyModule_AddFunctions(module, (PyMethodDef *)functions) < 0) return -1;
    const char *path = secure_getenv("INGOT_TRACE");
    return path && *path ? begin(module, st, path) : 0;
}
