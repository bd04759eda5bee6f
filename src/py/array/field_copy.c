/* Whole fields: fill, and copies between a field and row-major memory. Methods of the field
 * types; ingot/_fields.py makes NumPy and torch conversions of them. All walk the field in
 * the order of its memory. Long work runs without the GIL, and holds the memory meanwhile. */
#include "py/array/array.h"
#include "py/array/field.h"

#include <string.h>

/* ---- walking ------------------------------------------------------------------------- */

typedef struct loop {
    int64_t extent, at;  /* steps in all, steps done */
    int64_t mine, other; /* bytes per step */
} loop;

typedef struct walk {
    loop *loops; /* outermost first */
    uint32_t n;
    size_t run; /* bytes that lie together on both sides */
} walk;

/* The loops over a field, beside row-major memory of its elements; runs as long as possible.
 * False: no memory. */
static bool walk_init(walk *w, const ing_py_layout *l) {
    int64_t strides[ING_MAX_NDIM], stride = (int64_t)ing_py_layout_element(l);
    w->loops = ing_calloc((size_t)l->n_levels + 1, sizeof *w->loops);
    w->n = l->n_levels;
    w->run = (size_t)stride;
    if (!w->loops) return false;
    for (int k = l->ndim - 1; k >= 0; k--) {
        strides[k] = stride;
        stride *= l->shape[k];
    }
    for (uint32_t k = l->n_levels; k-- > 0;) {
        const ing_py_level *v = &l->levels[k];
        w->loops[k] = (loop){v->extent, 0, v->stride, strides[v->axis]};
        strides[v->axis] *= v->extent;
    }
    for (; w->n > 0; w->n--) {
        const loop *last = &w->loops[w->n - 1];
        if (last->mine != (int64_t)w->run || last->other != (int64_t)w->run) break;
        w->run *= (size_t)last->extent;
    }
    return true;
}

/* On to the next run; false: that was the last. */
static bool walk_next(walk *w, size_t *mine, size_t *other) {
    for (uint32_t k = w->n; k-- > 0;) {
        loop *p = &w->loops[k];
        *mine += (size_t)p->mine;
        *other += (size_t)p->other;
        if (++p->at < p->extent) return true;
        *mine -= (size_t)(p->at * p->mine);
        *other -= (size_t)(p->at * p->other);
        p->at = 0;
    }
    return false;
}

/* What is done with a field: from and to are the other side, or the element to fill with. */
typedef struct job {
    enum { FILL, LOAD, STORE } what;
    walk w;
    uint8_t *mine, *other;
    size_t size; /* of an element */
} job;

/* Of what is filled already, copied at once: more would leave the first cache. */
enum { CHUNK = 4096 };

static void fill_run(uint8_t *to, size_t run, const uint8_t *element, size_t size) {
    size_t done = size, most = size < CHUNK ? CHUNK - CHUNK % size : size;
    memcpy(to, element, size);
    while (done < run) {
        size_t n = done < most ? done : most;
        if (n > run - done) n = run - done;
        memcpy(to + done, to, n);
        done += n;
    }
}

static void run(job *j) {
    size_t mine = 0, other = 0;
    do {
        switch (j->what) {
        case FILL: fill_run(j->mine + mine, j->w.run, j->other, j->size); break;
        case LOAD: memcpy(j->mine + mine, j->other + other, j->w.run); break;
        case STORE: memcpy(j->other + other, j->mine + mine, j->w.run); break;
        }
    } while (walk_next(&j->w, &mine, &other));
}

static size_t bytes_of(const ing_py_layout *l) {
    size_t n = ing_py_layout_element(l);
    for (unsigned k = 0; k < l->ndim; k++) n *= (size_t)l->shape[k];
    return n;
}

static void run_freely(job *j, size_t bytes) {
    if (bytes < ING_PY_BIG) {
        run(j);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    run(j);
    Py_END_ALLOW_THREADS;
}

/* The field is ready and has a layout. What lies between its elements is not its own, so all
 * is read before it is written. -1 = raised. */
static int do_job(ing_py_field *f, job *j) {
    const ing_py_layout *l = f->layout;
    ing_mem *mem = ing_mem_ref(f->block->mem);
    ing_mem_span s;
    int rc = -1;
    if (!walk_init(&j->w, l)) {
        PyErr_NoMemory();
        goto done;
    }
    ing_mem_use use = j->what == STORE ? ING_MEM_READ : ING_MEM_BOTH;
    ing_status status =
        ing_mem_host(mem, (size_t)l->place, ing_py_layout_span(l), use, &s);
    if (status == ING_OK) {
        j->mine = s.at;
        j->size = ing_py_layout_element(l);
        run_freely(j, bytes_of(l));
        status = ing_mem_done(&s);
    }
    rc = status == ING_OK ? 0 : ing_py_mem_fail(status);
done:
    ing_free(j->w.loops);
    ing_mem_unref(mem);
    return rc;
}

/* ---- fill ---------------------------------------------------------------------------- */

static int fill_parts(ing_py_state *st, ing_py_field *f, PyObject *value) {
    ing_gate_tensor t = {f->elem_rank, {f->elem_shape[0], f->elem_shape[1]}};
    PyObject *list = NULL;
    int rc = ing_py_element_list(st, &t, value, "field", &list);
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(f->parts); i++) {
        PyObject *item = PyList_GetItem(list, i);
        Py_XINCREF(item);
        PyObject *done =
            item ? ing_py_field_fill(PyTuple_GET_ITEM(f->parts, i), item) : NULL;
        Py_XDECREF(item);
        rc = done ? 0 : -1;
        Py_XDECREF(done);
    }
    Py_XDECREF(list);
    return rc;
}

static int make_element(ing_py_state *st, const ing_py_field *f, PyObject *value,
                        uint8_t *to) {
    ing_gate_tensor t = {f->elem_rank, {f->elem_shape[0], f->elem_shape[1]}};
    ing_dtype dtype = (ing_dtype)f->dtype;
    PyObject *list = NULL;
    if (!t.rank) return ing_py_scalar_store(st, dtype, to, value, "fill");
    int rc = ing_py_element_list(st, &t, value, "field", &list);
    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(list); i++) {
        PyObject *item = PyList_GetItem(list, i);
        Py_XINCREF(item);
        rc = item ? ing_py_scalar_store(st, dtype, to + i * ing_dtype_bytes(dtype),
                                        item, "fill")
                  : -1;
        Py_XDECREF(item);
    }
    Py_XDECREF(list);
    return rc;
}

static int fill_with(ing_py_state *st, ing_py_field *f, PyObject *value) {
    size_t size = ing_py_layout_element(f->layout);
    uint8_t *element = PyMem_Calloc(1, size);
    if (!element) return PyErr_NoMemory(), -1;
    int rc = make_element(st, f, value, element);
    if (rc == 0) rc = ing_py_field_ready(st, f); /* the value may have run code */
    if (rc == 0) rc = do_job(f, &(job){.what = FILL, .other = element});
    PyMem_Free(element);
    if (rc == 0) ing_py_field_touch(st, f);
    return rc;
}

PyObject *ing_py_field_fill(PyObject *self, PyObject *value) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_field *f = (ing_py_field *)self;
    if (ing_py_field_ready(st, f) < 0) return NULL;
    if ((f->parts ? fill_parts(st, f, value) : fill_with(st, f, value)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- row-major memory ------------------------------------------------------------------ */

static PyObject *transfer(PyObject *self, PyObject *buffer, bool load) {
    ing_py_state *st = ing_py_state_of(self);
    ing_py_field *f = (ing_py_field *)self;
    Py_buffer view;
    int flags = load ? PyBUF_SIMPLE : PyBUF_WRITABLE;
    if (PyObject_GetBuffer(buffer, &view, flags) < 0) return NULL;
    int rc = ing_py_field_ready(st, f);
    if (rc == 0 && (!f->layout || (size_t)view.len != bytes_of(f->layout))) {
        PyErr_SetString(PyExc_ValueError, "the memory is not of the field's size");
        rc = -1;
    }
    if (rc == 0) rc = do_job(f, &(job){.what = load ? LOAD : STORE, .other = view.buf});
    if (rc == 0 && load) ing_py_field_touch(st, f);
    PyBuffer_Release(&view);
    if (rc < 0) return NULL;
    Py_RETURN_NONE;
}

PyObject *ing_py_field_load(PyObject *self, PyObject *buffer) {
    return transfer(self, buffer, true);
}

PyObject *ing_py_field_store(PyObject *self, PyObject *buffer) {
    return transfer(self, buffer, false);
}
