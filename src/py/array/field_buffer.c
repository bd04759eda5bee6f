/* The buffer protocol of fields: NumPy, torch and DLPack see a field without a copy where one
 * stride per axis reaches its elements. Slots of the field types. A buffer lets others write,
 * so while one lives the contents count as unknown, and as new when it is gone (R25). It holds
 * the memory itself, which stays if the field is destroyed meanwhile. */
#include "py/array/array.h"
#include "py/array/field.h"

typedef struct view_of {
    ing_py_dims d;
    ing_mem *mem;
} view_of;

/* False: an axis has levels that no single stride covers. */
static bool dims_of(const ing_py_layout *l, ing_py_dims *out) {
    Py_ssize_t stride = (Py_ssize_t)ing_dtype_bytes((ing_dtype)l->dtype);
    Py_ssize_t next[ING_MAX_NDIM] = {0}; /* the stride that a further level must have */
    out->itemsize = (size_t)stride;
    out->n = l->ndim + l->elem_rank;
    for (int k = l->elem_rank - 1; k >= 0; k--) {
        out->shape[l->ndim + k] = l->elem_shape[k];
        out->strides[l->ndim + k] = stride;
        stride *= l->elem_shape[k];
    }
    for (unsigned k = 0; k < l->ndim; k++) {
        out->shape[k] = l->shape[k];
        out->strides[k] = stride; /* of an axis with one element */
    }
    for (uint32_t k = l->n_levels; k-- > 0;) {
        const ing_py_level *v = &l->levels[k];
        if (!next[v->axis])
            out->strides[v->axis] = v->stride;
        else if (next[v->axis] != v->stride)
            return false;
        next[v->axis] = v->stride * v->extent;
    }
    return true;
}

static ing_py_field *owner_of(ing_py_field *f) {
    return f->whole ? (ing_py_field *)f->whole : f;
}

static const char *refusal(const ing_py_field *f, view_of *v) {
    if (!f->layout) return "its scalars are fields of their own";
    if (!f->block->mem->host) return "it is in the memory of a device";
    return dims_of(f->layout, &v->d) ? NULL : "its levels need more than strides";
}

static size_t bytes_of(const ing_py_dims *d) {
    size_t n = d->itemsize;
    for (int k = 0; k < d->n; k++) n *= (size_t)d->shape[k];
    return n;
}

static void describe(const ing_py_field *f, view_of *v, Py_buffer *view) {
    view->buf = f->block->mem->host + f->layout->place;
    view->len = (Py_ssize_t)bytes_of(&v->d);
    view->itemsize = (Py_ssize_t)v->d.itemsize;
    view->readonly = 0;
    view->ndim = v->d.n;
    view->format = (char *)ing_py_buffer_format((ing_dtype)f->dtype);
    view->shape = v->d.shape;
    view->strides = v->d.strides;
    view->suboffsets = NULL;
    view->internal = v;
}

int ing_py_field_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    ing_py_field *f = (ing_py_field *)self;
    if (!view) {
        PyErr_SetString(PyExc_BufferError, "no view was given");
        return -1;
    }
    view->obj = NULL;
    if (ing_py_field_ready(ing_py_state_of(self), f) < 0) return -1;
    view_of *v = PyMem_Calloc(1, sizeof *v);
    if (!v) return PyErr_NoMemory(), -1;
    const char *why = refusal(f, v);
    if (!why) {
        describe(f, v, view);
        why = ing_py_buffer_refusal(view, flags);
    }
    if (why) {
        PyMem_Free(v);
        PyErr_Format(PyExc_BufferError, "the field cannot be exported: %s", why);
        return -1;
    }
    if (!(flags & PyBUF_FORMAT)) view->format = NULL;
    if (!(flags & PyBUF_ND)) view->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = NULL;
    v->mem = ing_mem_ref(f->block->mem);
    view->obj = Py_NewRef(self);
    owner_of(f)->exports++;
    return 0;
}

/* While the whole module is being collected, the type may have lost its state already. */
void ing_py_field_releasebuffer(PyObject *self, Py_buffer *view) {
    ing_py_field *f = owner_of((ing_py_field *)self);
    PyObject *type, *value, *trace; /* what is on its way is no business of ours */
    ing_mem_unref(((view_of *)view->internal)->mem);
    PyMem_Free(view->internal);
    PyErr_Fetch(&type, &value, &trace);
    ing_py_state *st = ing_py_state_of(self);
    PyErr_Restore(type, value, trace);
    f->exports--;
    if (st) ing_py_field_touch(st, f);
}
