/* DLPack both ways, CPU only. Out: __dlpack__ and to_dlpack of the array type; in:
 * from_dlpack. A consumer may drop what it got from any thread, without the GIL and late,
 * so the deleter takes the GIL itself and gives up (leaks) once Python is going down. */
#include "py/array/array.h"
#include "py/array/dlpack.h"

#include <string.h>

/* ---- out ------------------------------------------------------------------------------------ */

typedef struct outgoing {
    ing_py_array *array; /* referenced */
    int64_t shape[ING_PY_MAX_DIMS], strides[ING_PY_MAX_DIMS];
    union {
        ing_dl_v0 v0;
        ing_dl_v1 v1;
    } as;
} outgoing;

static bool finalizing(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* Does this thread hold the GIL? PyGILState_Check says yes as soon as there were several
 * interpreters, before 3.12. */
static bool has_gil(void) {
    const PyThreadState *t = ing_py_current();
    return t && t->thread_id == PyThread_get_thread_ident();
}

static void export_free(outgoing *x) {
    PyObject *type, *value, *traceback;
    bool held = has_gil();
    if (!Py_IsInitialized() || (finalizing() && !held)) return;
    PyGILState_STATE gil = held ? PyGILState_LOCKED : PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &traceback); /* the array's attributes may run code */
    ing_py_array_end_export(x->array);
    Py_DECREF(x->array);
    PyErr_Restore(type, value, traceback);
    if (!held) PyGILState_Release(gil);
    ing_free(x);
}

static void delete_v0(ing_dl_v0 *m) {
    export_free(m->owner);
}
static void delete_v1(ing_dl_v1 *m) {
    export_free(m->owner);
}

/* A capsule that nobody took still owns its tensor. */
static void drop_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, ING_DL_NAME_V0)) {
        ing_dl_v0 *m = PyCapsule_GetPointer(capsule, ING_DL_NAME_V0);
        if (m->deleter) m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, ING_DL_NAME_V1)) {
        ing_dl_v1 *m = PyCapsule_GetPointer(capsule, ING_DL_NAME_V1);
        if (m->deleter) m->deleter(m);
    }
}

static void describe(outgoing *x, ing_dl_tensor *t) {
    ing_dtype dtype = (ing_dtype)x->array->spec->dtype;
    ing_py_dims d;
    ing_py_array_dims(x->array, &d);
    for (int k = 0; k < d.n; k++) {
        x->shape[k] = d.shape[k];
        x->strides[k] = d.strides[k] / (Py_ssize_t)d.itemsize;
    }
    char cls = ing_dtype_class(dtype);
    t->data = ing_py_array_host(x->array);
    t->device.type = ING_DL_CPU;
    t->ndim = d.n;
    t->dtype.code = cls == 'I'   ? ING_DL_INT
                    : cls == 'F' ? ING_DL_FLOAT
                    : cls == 'B' ? ING_DL_BOOL
                                 : ING_DL_UINT;
    t->dtype.bits = (uint8_t)(d.itemsize * 8);
    t->dtype.lanes = 1;
    t->shape = x->shape;
    t->strides = x->strides;
}

static PyObject *export_array(ing_py_array *a, bool versioned, uint64_t flags) {
    if (!ing_py_array_host(a))
        return PyErr_Format(PyExc_BufferError,
                            "the ndarray lives in memory of %s, which the CPU cannot "
                            "address: use to_numpy() or to_torch()",
                            a->mem->home->name);
    outgoing *x = ing_calloc(1, sizeof *x);
    if (!x) return PyErr_NoMemory();
    x->array = a;
    describe(x, versioned ? &x->as.v1.tensor : &x->as.v0.tensor);
    if (versioned) {
        x->as.v1.version.major = 1;
        x->as.v1.owner = x;
        x->as.v1.deleter = delete_v1;
        x->as.v1.flags = flags;
    } else {
        x->as.v0.owner = x;
        x->as.v0.deleter = delete_v0;
    }
    PyObject *capsule = PyCapsule_New(
        &x->as, versioned ? ING_DL_NAME_V1 : ING_DL_NAME_V0, drop_capsule);
    if (!capsule) {
        ing_free(x);
        return NULL;
    }
    Py_INCREF(a);
    a->exports++;
    return capsule;
}

PyObject *ing_py_array_to_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
    static const char *const names[] = {"versioned", NULL};
    int versioned = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:to_dlpack", (char **)names,
                                     &versioned))
        return NULL;
    return export_array((ing_py_array *)self, versioned, 0);
}

/* None, or (kind, id) of the CPU. */
static int check_device(PyObject *device) {
    int kind, id;
    if (device == Py_None) return 0;
    if (PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0)
        return 0;
    if (!PyTuple_Check(device)) {
        PyErr_SetString(PyExc_TypeError, "a DLPack device is a tuple of two integers");
        return -1;
    }
    if (!PyArg_ParseTuple(device, "ii", &kind, &id)) return -1;
    if (kind == ING_DL_CPU) return 0;
    PyErr_Format(PyExc_BufferError, "DLPack device (%d, %d) is not the CPU", kind, id);
    return -1;
}

PyObject *ing_py_array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy",
                                        NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    int major = 0, minor = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", (char **)names,
                                     &stream, &version, &device, &copy))
        return NULL;
    if (stream != Py_None)
        return PyErr_Format(PyExc_ValueError, "__dlpack__: the CPU has no streams");
    if (check_device(device) < 0) return NULL;
    if (version != Py_None) {
        if (!PyTuple_Check(version))
            return PyErr_Format(PyExc_TypeError,
                                "max_version is a tuple of two integers");
        if (!PyArg_ParseTuple(version, "ii", &major, &minor)) return NULL;
    }
    ing_py_array *a = (ing_py_array *)self;
    int want_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (want_copy < 0) return NULL;
    if (!want_copy) return export_array(a, major >= 1, 0);
    a = ing_py_array_clone(ing_py_state_of(self), a, false);
    if (!a) return NULL;
    PyObject *capsule = export_array(a, major >= 1, ING_DL_IS_COPIED);
    Py_DECREF(a);
    return capsule;
}

PyObject *ing_py_array_dlpack_device(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", ING_DL_CPU, 0);
}

/* ---- in ------------------------------------------------------------------------------------- */

/* What a capsule holds, checked. */
typedef struct incoming {
    bool versioned;
    void *managed;
    char *data;
    bool read_only, row_major;
    ing_py_spec spec;
    int64_t shape[ING_MAX_NDIM];
    Py_ssize_t strides[ING_MAX_NDIM]; /* bytes */
} incoming;

#define HOLDER_V0 "ingot.dlpack"
#define HOLDER_V1 "ingot.dlpack_versioned"

static void delete_managed(void *managed, bool versioned) {
    if (versioned) {
        ing_dl_v1 *m = managed;
        if (m->deleter) m->deleter(m);
    } else {
        ing_dl_v0 *m = managed;
        if (m->deleter) m->deleter(m);
    }
}

/* The array's `base`: a capsule of ours around the tensor that we took. */
static void holder_free(PyObject *holder) {
    bool versioned = PyCapsule_IsValid(holder, HOLDER_V1);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    delete_managed(PyCapsule_GetPointer(holder, versioned ? HOLDER_V1 : HOLDER_V0),
                   versioned);
    PyErr_Restore(type, value, traceback);
}

ing_dtype ing_py_dlpack_dtype(const ing_dl_tensor *t) {
    if (t->dtype.lanes != 1) return ING_VOID;
    switch (t->dtype.code << 8 | t->dtype.bits) {
    case ING_DL_INT << 8 | 8: return ING_I8;
    case ING_DL_INT << 8 | 16: return ING_I16;
    case ING_DL_INT << 8 | 32: return ING_I32;
    case ING_DL_INT << 8 | 64: return ING_I64;
    case ING_DL_UINT << 8 | 8: return ING_U8;
    case ING_DL_UINT << 8 | 16: return ING_U16;
    case ING_DL_UINT << 8 | 32: return ING_U32;
    case ING_DL_UINT << 8 | 64: return ING_U64;
    case ING_DL_FLOAT << 8 | 16: return ING_F16;
    case ING_DL_FLOAT << 8 | 32: return ING_F32;
    case ING_DL_FLOAT << 8 | 64: return ING_F64;
    case ING_DL_BOOL << 8 | 8: return ING_U1;
    default: return ING_VOID;
    }
}

static int bad_tensor(const char *why) {
    PyErr_Format(PyExc_BufferError, "from_dlpack: %s", why);
    return -1;
}

static int read_shape(incoming *in, const ing_dl_tensor *t) {
    int64_t item = ing_dtype_bytes((ing_dtype)in->spec.dtype), expected = item;
    bool empty = false;
    in->row_major = true;
    for (int k = t->ndim - 1; k >= 0; k--) {
        int64_t extent = t->shape[k], stride = expected;
        if (extent < 0 || extent > INT32_MAX)
            return bad_tensor("an extent is out of range");
        if (t->strides && __builtin_mul_overflow(t->strides[k], item, &stride))
            return bad_tensor("a stride is out of range");
        in->shape[k] = extent;
        in->strides[k] = (Py_ssize_t)stride;
        in->spec.layout[k] = (uint8_t)k;
        empty |= extent == 0;
        in->row_major &= extent == 1 || stride == expected;
        if (extent && __builtin_mul_overflow(expected, extent, &expected))
            return bad_tensor("it is larger than memory");
    }
    if (empty || !in->data)
        in->row_major = false; /* a fresh array needs no memory of theirs */
    return empty || in->data ? 0 : bad_tensor("its data pointer is null");
}

static int read_tensor(incoming *in, const ing_dl_tensor *t) {
    if (t->device.type != ING_DL_CPU) return bad_tensor("the tensor is not on the CPU");
    if (t->ndim < 0 || t->ndim > ING_MAX_NDIM || (t->ndim && !t->shape))
        return bad_tensor("the number of axes must be from 0 to 12");
    in->spec.dtype = (uint8_t)ing_py_dlpack_dtype(t);
    if (in->spec.dtype == ING_VOID)
        return bad_tensor("its dtype has no counterpart here");
    in->spec.ndim = (uint8_t)t->ndim;
    in->data = t->data ? (char *)t->data + t->byte_offset : NULL;
    return read_shape(in, t);
}

static int read_capsule(incoming *in, PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, ING_DL_NAME_V1)) {
        ing_dl_v1 *m = in->managed = PyCapsule_GetPointer(capsule, ING_DL_NAME_V1);
        in->versioned = true;
        if (m->version.major != 1)
            return bad_tensor("only DLPack versions 0 and 1 are known");
        in->read_only = m->flags & ING_DL_READ_ONLY;
        return read_tensor(in, &m->tensor);
    }
    if (PyCapsule_IsValid(capsule, ING_DL_NAME_V0)) {
        ing_dl_v0 *m = in->managed = PyCapsule_GetPointer(capsule, ING_DL_NAME_V0);
        return read_tensor(in, &m->tensor);
    }
    return bad_tensor("the capsule holds no tensor, or was used before");
}

const ing_dl_tensor *ing_py_dlpack_peek(PyObject *capsule, bool *read_only) {
    *read_only = false;
    if (PyCapsule_IsValid(capsule, ING_DL_NAME_V1)) {
        ing_dl_v1 *m = PyCapsule_GetPointer(capsule, ING_DL_NAME_V1);
        if (m->version.major != 1) {
            bad_tensor("only DLPack versions 0 and 1 are known");
            return NULL;
        }
        *read_only = m->flags & ING_DL_READ_ONLY;
        return &m->tensor;
    }
    if (PyCapsule_IsValid(capsule, ING_DL_NAME_V0))
        return &((ing_dl_v0 *)PyCapsule_GetPointer(capsule, ING_DL_NAME_V0))->tensor;
    bad_tensor("the capsule holds no tensor, or was used before");
    return NULL;
}

/* From here on the tensor is ours. */
static PyObject *take(const incoming *in, PyObject *capsule) {
    if (PyCapsule_SetName(capsule, in->versioned ? ING_DL_USED_V1 : ING_DL_USED_V0) < 0)
        return NULL;
    PyObject *holder =
        PyCapsule_New(in->managed, in->versioned ? HOLDER_V1 : HOLDER_V0, holder_free);
    if (!holder) delete_managed(in->managed, in->versioned);
    return holder;
}

/* copy: -1 as needed, 0 never, 1 always. */
static PyObject *import_capsule(ing_py_state *st, PyObject *capsule, int copy) {
    incoming in = {0};
    if (read_capsule(&in, capsule) < 0) return NULL;
    size_t item = ing_dtype_bytes((ing_dtype)in.spec.dtype);
    bool share = in.row_major && !in.read_only && (uintptr_t)in.data % item == 0;
    if (copy == 0 && st->home->read)
        return PyErr_Format(PyExc_BufferError,
                            "from_dlpack: copy=False, but kernels run on %s, which "
                            "cannot address the CPU's memory: use copy=None",
                            st->home->name);
    share &= !st->home->read;
    if (copy == 0 && !share) {
        bad_tensor(
            "copy=False, but only row-major, aligned, writable memory can be shared");
        return NULL;
    }
    const ing_py_spec *spec = ing_py_spec_intern(st, &in.spec);
    PyObject *holder = spec ? take(&in, capsule) : NULL;
    if (!holder) return NULL;
    ing_py_array *a;
    if (share && copy != 1) {
        a = ing_py_array_wrap(st, spec, in.shape, in.data, holder);
    } else {
        a = ing_py_array_new(st, spec, in.shape);
        if (a && a->nbytes && ing_py_array_load(a, in.data, in.strides) < 0)
            Py_CLEAR(a);
    }
    Py_DECREF(holder);
    return (PyObject *)a;
}

/* Asks for version 1 first; producers from before it do not know the keyword. */
PyObject *ing_py_dlpack_request(PyObject *x) {
    PyObject *ask = ing_py_attr(x, "__dlpack_device__");
    PyObject *device = ask ? PyObject_CallNoArgs(ask) : NULL;
    Py_XDECREF(ask);
    if (!device) return NULL;
    int rc = check_device(device);
    Py_DECREF(device);
    if (rc < 0) return NULL;
    PyObject *method = ing_py_attr(x, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *kwargs = none ? Py_BuildValue("{s(ii)}", "max_version", 1, 0) : NULL;
    PyObject *capsule = kwargs ? PyObject_Call(method, none, kwargs) : NULL;
    if (kwargs && !capsule && ing_py_took(PyExc_TypeError))
        capsule = PyObject_Call(method, none, NULL);
    Py_XDECREF(kwargs);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

PyObject *ing_py_from_dlpack(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const names[] = {"", "device", "copy", NULL};
    PyObject *x, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", (char **)names,
                                     &x, &device, &copy))
        return NULL;
    int how = copy == Py_None ? -1 : PyObject_IsTrue(copy);
    if ((how < 0 && copy != Py_None) || check_device(device) < 0) return NULL;
    PyObject *capsule =
        PyCapsule_CheckExact(x) ? Py_NewRef(x) : ing_py_dlpack_request(x);
    if (!capsule) return NULL;
    PyObject *array = NULL;
    if (PyCapsule_CheckExact(capsule))
        array = import_capsule(ing_py_state_in(module), capsule, how);
    else
        PyErr_SetString(PyExc_TypeError, "__dlpack__ gave no capsule");
    Py_DECREF(capsule);
    return array;
}
