/* What the files of the array type (array*.c, dlpack.c) offer each other. Others use
 * py.h. */
#ifndef ING_PY_ARRAY_H
#define ING_PY_ARRAY_H

#include "py/py.h"

enum {
    ING_PY_MAX_DIMS = ING_MAX_NDIM + 2, /* the elements' own axes come last */
    ING_PY_BIG = 1 << 16, /* bytes from which work is done without the GIL */
};

/* An array as others see it: all axes in logical order, strides in bytes. */
typedef struct ing_py_dims {
    int n;
    size_t itemsize; /* of one scalar */
    Py_ssize_t shape[ING_PY_MAX_DIMS], strides[ING_PY_MAX_DIMS];
} ing_py_dims;

void ing_py_array_dims(const ing_py_array *a, ing_py_dims *out);

/* array.c: `bytes` of the elements from `at` on for host code, and its end (mem.h). -1 =
 * raised, and there is nothing to end. */
int ing_py_array_open(const ing_py_array *a, size_t at, size_t bytes, ing_mem_use use,
                      ing_mem_span *s);
int ing_py_array_done(ing_mem_span *s);
int ing_py_mem_fail(ing_status s); /* raises what mem.h says; -1 */
/* The elements as memory that others may keep; NULL where the host cannot address it. */
static inline void *ing_py_array_host(const ing_py_array *a) {
    return a->mem->host ? a->mem->host + a->offset : NULL;
}

/* array_new.c: a zeroed array (with a gradient if the spec says so), or one around memory
 * that `base` (referenced) keeps alive. NULL = raised. */
ing_py_array *ing_py_array_new(ing_py_state *st, const ing_py_spec *spec,
                               const int64_t *shape);
ing_py_array *ing_py_array_wrap(ing_py_state *st, const ing_py_spec *spec,
                                const int64_t *shape, void *data, PyObject *base);
/* Fills in ndim, layout and the extents from Python objects; layout may be None. */
int ing_py_shape_parse(ing_py_state *st, PyObject *shape, PyObject *layout,
                       ing_py_spec *spec, int64_t *extents);
PyObject *ing_py_shape_tuple(const ing_py_array *a);
/* Its dtype, or the vector or matrix type of its elements; new reference. */
PyObject *ing_py_array_element_type(ing_py_state *st, const ing_py_array *a);
PyObject *ing_py_layout_tuple(const ing_py_array *a); /* None when row major */
PyObject *ing_py_ndarray(PyObject *module, PyObject *args, PyObject *kwargs);
/* For unpickling: (dtype, shape, layout, needs_grad, bytes). */
PyObject *ing_py_array_restore(PyObject *module, PyObject *args);
PyObject *ing_py_array_relabel(PyObject *self, PyObject *layout);

/* array_item.c */
PyObject *ing_py_array_get(PyObject *self, PyObject *key);
int ing_py_array_set(PyObject *self, PyObject *key, PyObject *value);
PyObject *ing_py_array_at(PyObject *self, Py_ssize_t i);
Py_ssize_t ing_py_array_len(PyObject *self);
PyObject *ing_py_array_iter(PyObject *self);

/* Elements that are vectors or matrices, for fields too. `what` names the owner in messages.
 * A loaded one writes through: a[i][0] = 1. */
PyObject *ing_py_element_load(ing_py_state *st, const ing_gate_tensor *t,
                              ing_dtype dtype, const uint8_t *at, PyObject *owner,
                              PyObject *key);
PyObject *ing_py_element_wrap(const ing_gate_tensor *t, PyObject *dtype, PyObject *list,
                              PyObject *owner, PyObject *key);
int ing_py_element_store(ing_py_state *st, const ing_gate_tensor *t, ing_dtype dtype,
                         uint8_t *at, PyObject *value, const char *what);
/* The scalars of a value for such an element, a new list; -1 = raised. */
int ing_py_element_list(ing_py_state *st, const ing_gate_tensor *t, PyObject *value,
                        const char *what, PyObject **out);

/* array_copy.c */
PyObject *ing_py_array_fill(PyObject *self, PyObject *value);
PyObject *ing_py_array_copy_from(PyObject *self, PyObject *other);
/* The array itself where the host can address it, else a copy without gradient. */
PyObject *ing_py_array_on_host(PyObject *self, PyObject *unused);
PyObject *ing_py_array_copy(PyObject *self, PyObject *unused);
PyObject *ing_py_array_deepcopy(PyObject *self, PyObject *memo);
PyObject *ing_py_array_reduce(PyObject *self, PyObject *unused);
/* A new array with the contents of `a`, row major if `plain`; attributes are not copied. */
ing_py_array *ing_py_array_clone(ing_py_state *st, ing_py_array *a, bool plain);
/* Copies elements of the same dtype from foreign memory with strides of its own (bytes).
 * -1 = raised. */
int ing_py_array_load(ing_py_array *to, const char *from, const Py_ssize_t *strides);

/* array_buffer.c */
const char *ing_py_buffer_format(ing_dtype t);
/* Why the order in memory is not what the consumer asked for, or NULL. */
const char *ing_py_buffer_refusal(const Py_buffer *view, int flags);
int ing_py_array_getbuffer(PyObject *self, Py_buffer *view, int flags);
void ing_py_array_releasebuffer(PyObject *self, Py_buffer *view);
/* A memoryview that only reads: the generation stays as it is. */
PyObject *ing_py_array_look(PyObject *self, PyObject *unused);
int ing_py_view_buffer_add(PyObject *module);
/* One that could write is gone: what the array holds now is new (R25). */
void ing_py_array_end_export(ing_py_array *a);

/* dlpack.c */
PyObject *ing_py_array_to_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *ing_py_array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *ing_py_array_dlpack_device(PyObject *self, PyObject *unused);
struct ing_dl_tensor;
/* A capsule from an object with __dlpack__, of the CPU. NULL = raised. */
PyObject *ing_py_dlpack_request(PyObject *x);
/* What a capsule holds; it stays the capsule's. NULL = raised. */
const struct ing_dl_tensor *ing_py_dlpack_peek(PyObject *capsule, bool *read_only);
/* ING_VOID: no counterpart. */
ing_dtype ing_py_dlpack_dtype(const struct ing_dl_tensor *t);
PyObject *ing_py_from_dlpack(PyObject *module, PyObject *args, PyObject *kwargs);

#endif
