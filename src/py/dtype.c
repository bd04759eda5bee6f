/* The scalar types as Python objects (qd.f32 and so on), and numbers on their way between
 * Python and memory. Called by array files, by the gate and by the launch. The objects are
 * singletons of their module; nothing here may compare them by value or make a second one.
 */
#include "py/array/foreign.h"
#include "py/py.h"

#include <math.h>
#include <string.h>

/* ---- numbers without Python ----------------------------------------------------------- */

static ing_py_num num_int(int64_t v) {
    return (ing_py_num){.kind = 'I', .i = v};
}
static ing_py_num num_uint(uint64_t v) {
    return (ing_py_num){.kind = 'U', .i = (int64_t)v};
}
static ing_py_num num_float(double v) {
    return (ing_py_num){.kind = 'F', .f = v};
}

/* Reads through memcpy: memory that others own may be unaligned. */
ing_py_num ing_py_num_load(ing_dtype t, const void *at) {
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } v;
    memcpy(&v, at, ing_dtype_bytes(t));
    switch (t) {
    case ING_U1: return num_uint(v.u8 != 0);
    case ING_I8: return num_int(v.i8);
    case ING_I16: return num_int(v.i16);
    case ING_I32: return num_int(v.i32);
    case ING_I64: return num_int(v.i64);
    case ING_U8: return num_uint(v.u8);
    case ING_U16: return num_uint(v.u16);
    case ING_U32: return num_uint(v.u32);
    case ING_U64: return num_uint(v.u64);
    case ING_F16: return num_float((double)ing_f16_to_f32(v.u16));
    case ING_F32: return num_float((double)v.f32);
    case ING_F64: return num_float(v.f64);
    default: return num_int(0);
    }
}

/* Truncates and saturates, NaN is 0: what CAST does. The bounds are powers of two and so
 * exact as doubles; the value is below the upper one after the check. */
static uint64_t float_to_int(ing_dtype t, double f) {
    uint32_t bits = ing_dtype_bits(t);
    bool is_signed = ing_dtype_is_signed(t);
    double top = ldexp(1.0, (int)(is_signed ? bits - 1 : bits));
    double low = is_signed ? -top : 0.0;
    if (isnan(f)) return 0;
    f = trunc(f);
    if (f >= top) return is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX;
    if (f <= low) return is_signed ? (uint64_t)INT64_MIN >> (64 - bits) : 0;
    return is_signed ? (uint64_t)(int64_t)f : (uint64_t)f;
}

static bool num_is_zero(ing_py_num v) {
    return v.kind == 'F' ? v.f == 0.0 : v.i == 0;
}
static double num_as_f64(ing_py_num v) {
    return v.kind == 'F' ? v.f : v.kind == 'U' ? (double)(uint64_t)v.i : (double)v.i;
}
/* Straight from the integer: by way of double it would round twice. */
static float num_as_f32(ing_py_num v) {
    return v.kind == 'F'   ? (float)v.f
           : v.kind == 'U' ? (float)(uint64_t)v.i
                           : (float)v.i;
}

void ing_py_num_store(ing_dtype t, void *at, ing_py_num v) {
    if (t == ING_U1) {
        *(uint8_t *)at = !num_is_zero(v);
    } else if (t == ING_F64) {
        double f = num_as_f64(v);
        memcpy(at, &f, sizeof f);
    } else if (t == ING_F32) {
        float f = num_as_f32(v);
        memcpy(at, &f, sizeof f);
    } else if (t == ING_F16) { /* exact or infinite as a double: rounds once */
        uint16_t h = ing_f64_to_f16(num_as_f64(v));
        memcpy(at, &h, sizeof h);
    } else { /* little-endian: the low bytes are the wrapped value */
        uint64_t u = v.kind == 'F' ? float_to_int(t, v.f) : (uint64_t)v.i;
        memcpy(at, &u, ing_dtype_bytes(t));
    }
}

/* ---- numbers from Python ---------------------------------------------------------------- */

static const char *article(const char *word) {
    return strchr("aeiouAEIOU", *word) ? "an" : "a";
}

static int refuse(ing_py_state *st, const char *what, const char *wanted,
                  PyObject *got) {
    const char *name = Py_TYPE(got)->tp_name;
    ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE, "%s: expected %s, got %s '%.100s'", what,
                wanted, article(name), name);
    return -1;
}

/* An exact int; any value of 64 bits, signed or not. */
static int num_from_long(PyObject *value, const char *what, ing_py_num *out) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow > 0) {
        unsigned long long u = PyLong_AsUnsignedLongLong(value);
        *out = num_uint(u);
        if (u != (unsigned long long)-1 || !PyErr_Occurred()) return 0;
        if (!ing_py_took(PyExc_OverflowError)) return -1;
    } else if (!overflow) {
        *out = num_int(v);
        return v == -1 && PyErr_Occurred() ? -1 : 0;
    }
    PyErr_Format(PyExc_OverflowError, "%s: the integer does not fit in 64 bits", what);
    return -1;
}

/* Steals `number`, the result of __index__ or __int__ (NULL: it raised). */
static int num_take_long(PyObject *number, const char *what, ing_py_num *out) {
    if (!number) return -1;
    int rc = num_from_long(number, what, out);
    Py_DECREF(number);
    return rc;
}

static bool has_float(PyObject *o) {
    PyNumberMethods *m = Py_TYPE(o)->tp_as_number;
    return PyFloat_Check(o) || (m && (m->nb_float || m->nb_index));
}
static bool has_int(PyObject *o) {
    PyNumberMethods *m = Py_TYPE(o)->tp_as_number;
    return m && m->nb_int;
}

static int num_as_float(ing_py_state *st, PyObject *value, const char *what,
                        ing_py_num *out) {
    if (!has_float(value)) return refuse(st, what, "a number", value);
    if (!PyFloat_Check(value) && ing_py_is_masked(st, value))
        return refuse(st, what, "a number that is not masked", value);
    *out = num_float(PyFloat_AsDouble(value));
    return out->f == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* An integer, by __index__ or (what NumPy and torch scalars offer) by __int__. A Python
 * float is refused: what it should become is for its author to say. */
static int num_as_int(ing_py_state *st, PyObject *value, const char *what,
                      ing_py_num *out) {
    if (PyLong_Check(value)) return num_from_long(value, what, out);
    if (PyFloat_Check(value))
        return refuse(st, what, "an integer (convert with int() first)", value);
    if (PyIndex_Check(value)) {
        PyObject *number = PyNumber_Index(value);
        /* Arrays have __index__ and raise if they hold a float. */
        if (number || !has_int(value) || !ing_py_took(PyExc_TypeError))
            return num_take_long(number, what, out);
    }
    if (!has_int(value)) return refuse(st, what, "an integer", value);
    return num_take_long(PyNumber_Long(value), what, out);
}

int ing_py_scalar_store(ing_py_state *st, ing_dtype t, void *at, PyObject *value,
                        const char *what) {
    ing_py_num v;
    int rc = ing_dtype_is_float(t) ? num_as_float(st, value, what, &v)
                                   : num_as_int(st, value, what, &v);
    if (rc == 0) ing_py_num_store(t, at, v);
    return rc;
}

PyObject *ing_py_scalar_load(ing_dtype t, const void *at) {
    ing_py_num v = ing_py_num_load(t, at);
    if (v.kind == 'F') return PyFloat_FromDouble(v.f);
    if (v.kind == 'U') return PyLong_FromUnsignedLongLong((uint64_t)v.i);
    return PyLong_FromLongLong(v.i);
}

/* Any number, as it is: what a cast starts from. */
static int num_from_any(ing_py_state *st, PyObject *value, ing_py_num *out) {
    const char *what = "cast";
    if (PyLong_Check(value)) return num_from_long(value, what, out);
    if (PyFloat_Check(value) || !PyIndex_Check(value))
        return num_as_float(st, value, what, out);
    PyObject *number = PyNumber_Index(value);
    if (number || !ing_py_took(PyExc_TypeError))
        return num_take_long(number, what, out);
    return num_as_float(st, value, what, out);
}

/* ---- the type ------------------------------------------------------------------------------ */

static ing_dtype id_of(PyObject *self) {
    return ((ing_py_dtype *)self)->id;
}

static int dtype_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void dtype_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *dtype_str(PyObject *self) {
    return PyUnicode_InternFromString(ing_dtype_name(id_of(self)));
}

/* A name in the package: pickle stores just that, copy gives the object itself. */
static PyObject *dtype_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return dtype_str(self);
}

static PyObject *dtype_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    ing_py_state *st = ing_py_state_of(self);
    ing_dtype t = id_of(self);
    uint64_t word = 0;
    ing_py_num v;
    if ((kwargs && PyDict_GET_SIZE(kwargs)) || PyTuple_GET_SIZE(args) != 1)
        return PyErr_Format(PyExc_TypeError, "%s() takes exactly one number",
                            ing_dtype_name(t));
    if (num_from_any(st, PyTuple_GET_ITEM(args, 0), &v) < 0) return NULL;
    ing_py_num_store(t, &word, v);
    return ing_py_scalar_load(t, &word);
}

static PyObject *dtype_name(PyObject *self, void *unused) {
    (void)unused;
    return dtype_str(self);
}
static PyObject *dtype_bits(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(ing_dtype_bits(id_of(self)));
}
static PyObject *dtype_id(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong((unsigned long)id_of(self));
}

static const PyGetSetDef dtype_getset[] = {
    {"name", dtype_name, NULL, "The short name, such as 'f32'.", NULL},
    {"bits", dtype_bits, NULL, "Bits of the value; 1 for u1.", NULL},
    {"id", dtype_id, NULL, "Its number in file formats.", NULL},
    {0},
};
static const PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {"to_string", dtype_reduce, METH_NOARGS, "to_string($self)\n--\n\nThe short name."},
    {0},
};
static const PyType_Slot dtype_slots[] = {
    {Py_tp_doc, "A scalar type. Calling it converts a number, as in a kernel."},
    {Py_tp_dealloc, dtype_dealloc},
    {Py_tp_traverse, dtype_traverse},
    {Py_tp_repr, dtype_str},
    {Py_tp_call, dtype_call},
    {Py_tp_getset, (void *)dtype_getset},
    {Py_tp_methods, (void *)dtype_methods},
    {0, NULL},
};
static const PyType_Spec dtype_spec = ING_PY_COLLECTED_TYPE(
    "ingot.DType", ing_py_dtype, Py_TPFLAGS_IMMUTABLETYPE, dtype_slots);

/* ---- in the module --------------------------------------------------------------------------- */

/* The name that NumPy would use: i32 is int32, u1 is uint1, f64 is float64. */
static void long_name(ing_dtype t, char *buf, size_t size) {
    char c = ing_dtype_class(t);
    const char *stem = c == 'F' ? "float" : c == 'I' ? "int" : "uint";
    snprintf(buf, size, "%s%u", stem, ing_dtype_bits(t));
}

int ing_py_dtype_add(PyObject *module, ing_py_state *st) {
    st->dtype_type = ing_py_add_type(module, &dtype_spec);
    if (!st->dtype_type) return -1;
    for (unsigned t = ING_VOID + 1; t < ING_DTYPE_N; t++) {
        char alias[16];
        ing_py_dtype *d = PyObject_GC_New(ing_py_dtype, st->dtype_type);
        if (!d) return -1;
        d->id = (ing_dtype)t;
        PyObject_GC_Track(d);
        st->dtypes[t] = (PyObject *)d;
        long_name(d->id, alias, sizeof alias);
        if (PyModule_AddObjectRef(module, ing_dtype_name(d->id), st->dtypes[t]) < 0 ||
            PyModule_AddObjectRef(module, alias, st->dtypes[t]) < 0)
            return -1;
    }
    return 0;
}

int ing_py_dtype_traverse(ing_py_state *st, visitproc visit, void *arg) {
    Py_VISIT(st->dtype_type);
    for (unsigned t = 0; t < ING_DTYPE_N; t++) Py_VISIT(st->dtypes[t]);
    return 0;
}

void ing_py_dtype_clear(ing_py_state *st) {
    for (unsigned t = 0; t < ING_DTYPE_N; t++) Py_CLEAR(st->dtypes[t]);
    Py_CLEAR(st->dtype_type);
}

/* A class such as numpy.float32, by its name: NumPy itself may not be loaded. */
static ing_dtype of_numpy(PyObject *o) {
    static const struct {
        const char *name;
        ing_dtype type;
    } rows[] = {
        {"bool", ING_U1},     {"bool_", ING_U1},    {"int8", ING_I8},
        {"int16", ING_I16},   {"int32", ING_I32},   {"int64", ING_I64},
        {"uint8", ING_U8},    {"uint16", ING_U16},  {"uint32", ING_U32},
        {"uint64", ING_U64},  {"float16", ING_F16}, {"float32", ING_F32},
        {"float64", ING_F64},
    };
    const char *name = ((PyTypeObject *)o)->tp_name;
    if (strncmp(name, "numpy.", 6) != 0) return ING_VOID;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (strcmp(name + 6, rows[k].name) == 0) return rows[k].type;
    return ING_VOID;
}

/* numpy.dtype("f4"): its class says it. What raises is no dtype. */
static ing_dtype of_instance(PyObject *o) {
    PyObject *type = ing_py_attr(o, "type");
    ing_dtype t = type && PyType_Check(type) ? of_numpy(type) : ING_VOID;
    if (!type) (void)ing_py_took_any();
    Py_XDECREF(type);
    return t;
}

ing_dtype ing_py_dtype_from(const ing_py_state *st, PyObject *o) {
    if (ing_py_is_dtype(st, o)) return id_of(o);
    if (PyType_Check(o) && ((PyTypeObject *)o)->tp_name[0] == 'n') return of_numpy(o);
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.dtype", 11) == 0) return of_instance(o);
    if (o == (PyObject *)&PyFloat_Type)
        return (ing_dtype)st->settings.at[ING_SET_default_fp];
    if (o == (PyObject *)&PyLong_Type)
        return (ing_dtype)st->settings.at[ING_SET_default_ip];
    if (o == (PyObject *)&PyBool_Type) return ING_U1;
    return ING_VOID;
}
