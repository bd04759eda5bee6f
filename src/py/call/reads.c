/* What a launch read and wrote, for Tape(validation=True): elements whose values the gradient reads
 * again must hold them until it does. A kernel of mode ING_AD_TRACE (src/ad/trace.c) tells of them
 * one by one, on one thread, so that "later" is the order of a serial run; what it read is looked
 * at again before the gradient runs. Memory counts in cells of 4 bytes, by address: through
 * whatever names it is reached. Called by ingot/ad.py and print.c. */
#include "py/call/kernel.h"

#include <string.h>

enum { CELL = 4 };
#define NAME "ingot.reads"

typedef struct place { /* as an ing_error_slot has it */
    uint32_t task, func, node;
} place;

typedef struct cell {
    uint64_t address;
    uint8_t mask; /* bytes that were read */
    /* bytes that a minimum or maximum left: others of its kind may follow */
    uint8_t left;
    uint32_t by; /* which of the two, as codes are */
    uint8_t value[CELL];
    place read;
} cell;

struct ing_py_reads {
    ing_py_kernel *k;
    ing_py_variant *v; /* of the launch, once it ran */
    PyObject *args, *held;
    uint64_t epoch;
    ing_map map; /* of cells */
    ing_vec(cell) cells;
    bool failed, broken;
    place read, written; /* of the first one that is overwritten, if broken */
};

static void reads_free(ing_py_reads *w) {
    if (!w) return;
    if (w->v) ing_py_variant_unref(w->v);
    Py_XDECREF(w->k);
    Py_XDECREF(w->args);
    Py_XDECREF(w->held);
    ing_map_fini(&w->map);
    ing_vec_fini(&w->cells);
    ing_free(w);
}

static void drop(PyObject *capsule) {
    reads_free(PyCapsule_GetPointer(capsule, NAME));
}

/* ---- while the launch runs ----------------------------------------------------------------- */

/* Writes disturb what was read, and what a minimum or maximum left, but for the next of its kind
 * if nobody looked since. */
static void note_write(ing_py_reads *w, const cell *c, uint8_t mask, uint32_t code,
                       place at) {
    uint8_t needed = c->mask | (c->by == code ? 0 : c->left);
    if (!(needed & mask) || w->broken) return;
    w->broken = true;
    w->read = c->read;
    w->written = at;
}

static void note_cell(ing_py_reads *w, uint64_t address, uint8_t mask, uint32_t code,
                      place at) {
    ing_hash128 key = ing_hash(&address, sizeof address);
    uint32_t k = ing_map_get(&w->map, key);
    bool wins = code == ING_ABI_MINIMUM || code == ING_ABI_MAXIMUM;
    if (k && (wins || code == ING_ABI_WRITES))
        note_write(w, &w->cells.at[k - 1], mask, code, at);
    if (code == ING_ABI_WRITES || (code == ING_ABI_LOOKS && !k)) return;
    if (!k && (!ing_vec_push(&w->cells, ((cell){.address = address, .read = at})) ||
               !ing_map_put(&w->map, key, w->cells.len))) {
        w->failed = true;
        return;
    }
    cell *c = &w->cells.at[k ? k - 1 : w->cells.len - 1];
    if (wins) {
        c->left |= mask;
        c->by = code;
    } else {
        c->mask |= code == ING_ABI_READS ? mask : c->left & mask;
    }
}

void ing_py_reads_note(ing_py_reads *w, const ing_rt_printed *r,
                       const uint64_t *words) {
    if (!w || w->failed || r->p.n != 2) return;
    place at = {(uint32_t)r->task, r->p.func, r->p.node};
    uint64_t from = words[0], end = from + words[1];
    for (uint64_t address = from / CELL * CELL; address < end; address += CELL) {
        uint8_t mask = 0;
        for (uint32_t b = 0; b < CELL; b++)
            if (address + b >= from && address + b < end) mask |= (uint8_t)(1u << b);
        note_cell(w, address, mask, r->p.code, at);
    }
}

void ing_py_reads_hold(ing_py_kernel *k, ing_py_variant *v, PyObject *const *held,
                       uint32_t n) {
    ing_py_reads *w = k->reads;
    if (!w) return;
    if (w->v) ing_py_variant_unref(w->v);
    w->v = v;
    v->refs++;
    for (uint32_t i = 0; i < n; i++)
        if (held[i] && PyList_Append(w->held, held[i]) < 0) w->failed = true;
}

/* ---- afterwards --------------------------------------------------------------------------------- */

static void look(ing_py_reads *w) {
    for (uint32_t i = 0; i < w->cells.len; i++) {
        cell *c = &w->cells.at[i];
        c->mask |= c->left;
        for (uint32_t b = 0; b < CELL; b++)
            if (c->mask & 1u << b)
                c->value[b] = *((const uint8_t *)(uintptr_t)c->address + b);
    }
}

/* The first cell that does not hold what it held; NULL: all do. */
static const cell *changed(const ing_py_reads *w) {
    for (uint32_t i = 0; i < w->cells.len; i++) {
        const cell *c = &w->cells.at[i];
        for (uint32_t b = 0; b < CELL; b++)
            if (c->mask & 1u << b &&
                c->value[b] != *((const uint8_t *)(uintptr_t)c->address + b))
                return c;
    }
    return NULL;
}

/* The text at one place, and what is said of another below it (or NULL). Raises. */
static PyObject *raise_at(const ing_py_reads *w, const place *at, const char *text,
                          const place *other, const char *more) {
    PyObject *const *args = ((PyTupleObject *)w->args)->ob_item;
    ing_err e, note;
    ing_err_init(&e);
    ing_err_init(&note);
    ing_error_slot slot = {.func = at->func, .node = at->node, .task = at->task};
    ing_py_error_at(w->k, w->v, args, &slot, ING_ASSERT, NULL, &e, text);
    if (other && !PyErr_Occurred()) {
        slot = (ing_error_slot){
            .func = other->func, .node = other->node, .task = other->task};
        ing_py_error_at(w->k, w->v, args, &slot, ING_ASSERT, NULL, &note, more);
        ing_err whole;
        ing_err_init(&whole);
        ing_fail(&whole, ING_ASSERT, "%s\n%s", e.text ? e.text : text,
                 note.text ? note.text : more);
        ing_err_fini(&e);
        e = whole;
    }
    ing_err_fini(&note);
    if (!PyErr_Occurred()) return ing_py_raise(w->k->st, &e);
    ing_err_fini(&e);
    return NULL;
}

static ing_py_reads *reads_new(ing_py_kernel *k, PyObject *args) {
    ing_py_reads *w = ing_calloc(1, sizeof *w);
    PyObject *held = PyList_New(0);
    if (!w || !held) {
        Py_XDECREF(held);
        ing_free(w);
        PyErr_NoMemory();
        return NULL;
    }
    *w = (ing_py_reads){.args = Py_NewRef(args), .held = held, .epoch = k->host->epoch};
    w->k = (ing_py_kernel *)Py_NewRef((PyObject *)k);
    ing_map_init(&w->map);
    return w;
}

/* Is what stopped it that it cannot be differentiated? Then its gradient will say so. */
static bool refused(const ing_py_state *st) {
    return ing_py_took(st->exc[ING_PY_EXC_COMPILATION]);
}

static PyObject *watched(ing_py_kernel *k, PyObject *args) {
    PyObject *const *full = ((PyTupleObject *)args)->ob_item;
    PyObject *of = ing_py_companion(k, ING_AD_TRACE);
    if (!of) return NULL;
    ing_py_kernel *t = (ing_py_kernel *)of;
    ing_py_reads *w = t->reads ? NULL : reads_new(t, args);
    PyObject *result = NULL, *capsule = NULL;
    if (w) {
        t->reads = w;
        result = ing_py_launch(t, full, NULL);
        t->reads = NULL;
        k->key = t->key;
    }
    bool plain = !result && (!PyErr_Occurred() || (w && refused(k->st)));
    if (plain) result = ing_py_launch(k, full, NULL);
    if (result && w && !plain && w->failed) {
        PyErr_NoMemory();
        Py_CLEAR(result);
    } else if (result && w && !plain && w->broken) {
        raise_at(
            w, &w->written,
            "an element that was read, and whose value the backward pass needs, is "
            "overwritten here",
            &w->read, "this is where it was read");
        Py_CLEAR(result);
    } else if (result && w && !plain) {
        look(w);
        capsule = PyCapsule_New(w, NAME, drop);
    }
    if (!capsule) reads_free(w);
    Py_DECREF(of);
    if (!result || PyErr_Occurred()) {
        Py_XDECREF(result);
        Py_XDECREF(capsule);
        return NULL;
    }
    return Py_BuildValue("(NN)", result, capsule ? capsule : Py_NewRef(Py_None));
}

static PyObject *launch_watched(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    const ing_py_state *st = ing_py_state_in(module);
    if (n != 2 || Py_TYPE(args[0]) != st->host->kernel_type ||
        !PyTuple_Check(args[1]) || ((ing_py_kernel *)args[0])->mode ||
        PyTuple_GET_SIZE(args[1]) !=
            (Py_ssize_t)((ing_py_kernel *)args[0])->def.n_params)
        return PyErr_Format(PyExc_TypeError, "launch_watched(kernel, arguments)");
    return watched((ing_py_kernel *)args[0], args[1]);
}

static PyObject *unchanged(PyObject *module, PyObject *capsule) {
    (void)module;
    ing_py_reads *w = PyCapsule_GetPointer(capsule, NAME);
    if (!w) return NULL;
    const cell *c = w->epoch == w->k->host->epoch ? changed(w) : NULL;
    if (!c) Py_RETURN_NONE;
    return raise_at(
        w, &c->read,
        "what was read here, and the backward pass reads again, was changed "
        "between the launch and its gradient",
        NULL, NULL);
}

static const PyMethodDef functions[] = {
    {"launch_watched", (PyCFunction)(void (*)(void))launch_watched, METH_FASTCALL,
     "launch_watched(kernel, arguments) -> (result, reads)\n\nA launch on one thread "
     "that "
     "fails if it overwrites what its gradient reads again; reads: None if it has "
     "none."},
    {"unchanged", unchanged, METH_O,
     "unchanged(reads)\n\nRaises if what the launch read has other values now."},
    {NULL, NULL, 0, NULL},
};

int ing_py_reads_add(PyObject *module) {
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
