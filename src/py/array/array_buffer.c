/* The buffer protocol of arrays, which is also how NumPy sees them without a copy. Slots
 * of the array type. A buffer lets others write, so while one lives the contents count as
 * unknown, and as new when it is gone (R25). */
#include "py/array/array.h"

/* As NumPy names its own types on Linux: 'l' is its int64, 'q' would be another one. */
const char *ing_py_buffer_format(ing_dtype t) {
    switch (t) {
    case ING_U1: return "?";
    case ING_I8: return "b";
    case ING_I16: return "h";
    case ING_I32: return "i";
    case ING_I64: return "l";
    case ING_U8: return "B";
    case ING_U16: return "H";
    case ING_U32: return "I";
    case ING_U64: return "L";
    case ING_F16: return "e";
    case ING_F32: return "f";
    case ING_F64: return "d";
    default: return "B";
    }
}
_Static_assert(sizeof(long) == 8, "the formats above are those of 64-bit Linux");

/* Whether the order in memory is what the consumer asked for. */
const char *ing_py_buffer_refusal(const Py_buffer *view, int flags) {
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)
        return PyBuffer_IsContiguous(view, 'C') ? NULL : "it is not in C order";
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
        return PyBuffer_IsContiguous(view, 'F') ? NULL : "it is not in Fortran order";
    /* Without strides a consumer can only mean C order. */
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        return PyBuffer_IsContiguous(view, 'C') ? NULL : "its layout needs strides";
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS)
        return PyBuffer_IsContiguous(view, 'A') ? NULL : "it is not contiguous";
    return NULL;
}

int ing_py_array_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    ing_py_array *a = (ing_py_array *)self;
    ing_dtype t = (ing_dtype)a->spec->dtype;
    const char *why;
    if (!view) {
        PyErr_SetString(PyExc_BufferError, "no view was given");
        return -1;
    }
    view->obj = NULL;
    if (!ing_py_array_host(a)) {
        PyErr_Format(PyExc_BufferError,
                     "the ndarray lives in memory of %s, which the CPU cannot address: "
                     "use to_numpy()",
                     a->mem->home->name);
        return -1;
    }
    ing_py_dims *d = PyMem_Malloc(sizeof *d);
    if (!d) {
        PyErr_NoMemory();
        return -1;
    }
    ing_py_array_dims(a, d);
    view->buf = ing_py_array_host(a);
    view->len = (Py_ssize_t)a->nbytes;
    view->itemsize = (Py_ssize_t)d->itemsize;
    view->readonly = a->looking;
    view->ndim = d->n;
    view->format = (char *)ing_py_buffer_format(t);
    view->shape = d->shape;
    view->strides = d->strides;
    view->suboffsets = NULL;
    view->internal = d;
    why = ing_py_buffer_refusal(view, flags);
    if (why) {
        PyMem_Free(d);
        PyErr_Format(PyExc_BufferError, "the ndarray cannot be exported: %s", why);
        return -1;
    }
    if (!(flags & PyBUF_FORMAT)) view->format = NULL;
    if (!(flags & PyBUF_ND)) view->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = NULL;
    view->obj = Py_NewRef(self);
    if (!view->readonly) a->exports++;
    return 0;
}

/* While the whole module is being collected, the type may have lost its state already. */
void ing_py_array_end_export(ing_py_array *a) {
    PyObject *type, *value, *trace; /* what is on its way is no business of ours */
    PyErr_Fetch(&type, &value, &trace);
    ing_py_state *st = ing_py_state_of((PyObject *)a);
    PyErr_Restore(type, value, trace);
    a->exports--;
    if (st) ing_py_array_touch(st, a);
}

void ing_py_array_releasebuffer(PyObject *self, Py_buffer *view) {
    PyMem_Free(view->internal);
    if (!view->readonly) ing_py_array_end_export((ing_py_array *)self);
}

/* Nobody else runs between the two lines that set the mark. */
PyObject *ing_py_array_look(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_py_array *a = (ing_py_array *)self;
    a->looking = true;
    PyObject *view = PyMemoryView_FromObject(self);
    a->looking = false;
    return view;
}

/* ---- views ------------------------------------------------------------------------------- */

/* Of ingot/_view.py's class, whose base this is: the stretch of its array's buffer. Consumers
 * hold that of a memoryview, which keeps the array's. */
static int view_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    PyObject *array = PyObject_GetAttrString(self, "arr");
    PyObject *offset = array ? PyObject_GetAttrString(self, "offset") : NULL;
    PyObject *size = offset ? PyObject_GetAttrString(self, "size") : NULL;
    PyObject *end = size ? PyNumber_Add(offset, size) : NULL;
    PyObject *slice = end ? PySlice_New(offset, end, NULL) : NULL;
    PyObject *all = slice ? PyMemoryView_FromObject(array) : NULL;
    PyObject *part = all ? PyObject_GetItem(all, slice) : NULL;
    int rc = part ? PyObject_GetBuffer(part, view, flags) : -1;
    if (rc < 0 && view) view->obj = NULL;
    Py_XDECREF(array);
    Py_XDECREF(offset);
    Py_XDECREF(size);
    Py_XDECREF(end);
    Py_XDECREF(slice);
    Py_XDECREF(all);
    Py_XDECREF(part);
    return rc;
}

static const PyType_Slot view_slots[] = {
    {Py_bf_getbuffer, (void *)view_getbuffer},
    {Py_tp_doc, (void *)"The buffer of a view: see ingot/_view.py."},
    {0, NULL},
};

static const PyType_Spec view_spec = {
    .name = "ingot._core.ViewBuffer",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = (PyType_Slot *)view_slots,
};

int ing_py_view_buffer_add(PyObject *module) {
    PyTypeObject *type = ing_py_add_type(module, &view_spec);
    Py_XDECREF(type);
    return type ? 0 : -1;
}
