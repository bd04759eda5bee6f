/* What is told of compiles, by topic: to the standard error stream where INGOT_LOG or the option log_level
 * asks for it, and to the logger "ingot" of Python's logging where a program uses that. Called by
 * explain.c and report.c beside a compile. That nobody can be told is no error of the kernel's. */
#include "py/call/kernel.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t verbosity;  /* from which on it is told */
    const char *method; /* of the logger */
    long level;
} topics[] = {
    [ING_PY_LOG_CACHE] = {"cache", 1, "info", 20},
    [ING_PY_LOG_COMPILE] = {"compile", 2, "debug", 10},
};

/* INGOT_LOG is a list of topics. */
static bool named(const char *topic) {
    const char *at = getenv("INGOT_LOG");
    size_t n = strlen(topic);
    while (at && *at) {
        size_t len = strcspn(at, ", ");
        if (len == n && strncmp(at, topic, n) == 0) return true;
        at += len;
        at += strspn(at, ", ");
    }
    return false;
}

static bool to_stderr(const ing_py_state *st, ing_py_log_topic t) {
    return st->settings.at[ING_SET_verbosity] >= topics[t].verbosity ||
           named(topics[t].name);
}

/* The logger, if somebody has loaded logging and listens to this level; else NULL. */
static PyObject *logger_for(ing_py_log_topic t) {
    PyObject *logging = NULL, *logger = NULL, *on = NULL;
    if (ing_py_loaded("logging", &logging) == 1)
        logger = PyObject_CallMethod(logging, "getLogger", "s", "ingot");
    if (logger) on = PyObject_CallMethod(logger, "isEnabledFor", "l", topics[t].level);
    if (!on || PyObject_IsTrue(on) != 1) Py_CLEAR(logger);
    if (PyErr_Occurred()) (void)ing_py_took_any();
    Py_XDECREF(logging);
    Py_XDECREF(on);
    return logger;
}

bool ing_py_log_wants(const ing_py_state *st, ing_py_log_topic t) {
    if (to_stderr(st, t)) return true;
    PyObject *logger = logger_for(t);
    Py_XDECREF(logger);
    return logger != NULL;
}

ing_status ing_py_log(const ing_py_state *st, ing_py_log_topic t, const char *fmt,
                      ...) {
    char text[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    int rc = 0;
    if (to_stderr(st, t)) {
        ing_bytes line;
        ing_bytes_init(&line);
        ing_bytes_printf(&line, "ingot: %s\n", text);
        if (!line.failed) rc = ing_py_say("stderr", (const char *)line.at, line.len);
        ing_bytes_fini(&line);
    }
    PyObject *logger = rc == 0 ? logger_for(t) : NULL;
    PyObject *words = logger ? ing_py_lenient(text) : NULL;
    PyObject *done =
        words ? PyObject_CallMethod(logger, topics[t].method, "sO", "%s", words) : NULL;
    if (logger && !done) rc = -1;
    Py_XDECREF(logger);
    Py_XDECREF(words);
    Py_XDECREF(done);
    return rc == 0 || ing_py_took_any() ? ING_OK : ING_PYTHON;
}
