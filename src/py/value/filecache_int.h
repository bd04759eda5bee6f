/* What filecache.c and filecache_io.c share: entries written and read by Python code, a piece
 * at a time, the GIL released for each and signals seen between them. */
#ifndef ING_PY_FILECACHE_INT_H
#define ING_PY_FILECACHE_INT_H

#include "py/value/codec.h"
#include "store/store.h"

/* A pulse for calls that are made without the GIL: it is taken to run handlers of signals.
 * What they raise is set when it returns false. */
typedef struct ing_py_pause {
    PyThreadState *state;
} ing_py_pause;
ing_pulse ing_py_pulse(ing_py_pause *p);
static inline void ing_py_pause_begin(ing_py_pause *p) {
    p->state = PyEval_SaveThread();
}
static inline void ing_py_pause_end(ing_py_pause *p) {
    PyEval_RestoreThread(p->state);
}

typedef struct ing_py_entry_out {
    ing_value_writer *w;
    ing_py_pause pause;
} ing_py_entry_out;
/* An ing_py_entry_out as `self`; -1 = raised: an OSError where the store says no. */
int ing_py_entry_put(void *self, const void *p, size_t n);

typedef struct ing_py_entry_in {
    ing_value_reader r;
    uint64_t at, end;
    bool stopped; /* a signal's handler raised: no fault of the entry */
} ing_py_entry_in;
int ing_py_entry_get(void *self, void *p, size_t n);

/* The value by a function of the caller's: dump(value, file), load(file). */
int ing_py_entry_dump(ing_py_entry_out *out, PyObject *dump, PyObject *value);
PyObject *ing_py_entry_load(ing_py_entry_in *in, PyObject *load);

int ing_py_entry_file_add(PyObject *module, ing_py_state *st);

#endif
