/* The scalar types as Python objects (qd.f32 and so on), and numbers on their way between
 * Python and memory. Called by array files, by the gate and by the launch. The objects are
 * singletons of their module; nothing here may compare them by value or make a second one.
 */
#include "py/array/foreign.h"
#include "py/py.h"

#include <inttypes.h>
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

static int refuse(ing_py_state *st, ing_dtype t, const char *what, const char *wanted,
                  PyObject *got) {
    const char *name = Py_TYPE(got)->tp_name;
    ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE, "%s: expected %s (%s), got %s '%.100s'",
                what, wanted, ing_dtype_name(t), article(name), name);
    return -1;
}

/* The value as text, short: integers of Python have no end, and past some thousand digits no
 * repr either. */
static PyObject *shown(PyObject *value) {
    PyObject *text = PyObject_Repr(value);
    if (!text) return ing_py_took_any() ? PyUnicode_FromString("this number") : NULL;
    if (PyUnicode_GET_LENGTH(text) > 50)
        Py_SETREF(text, PyUnicode_FromFormat("%.30U...", text));
    return text;
}

static void bounds_of(ing_dtype t, char *buf, size_t size) {
    uint32_t off = 64 - ing_dtype_bits(t);
    if (ing_dtype_is_signed(t))
        snprintf(buf, size, "%" PRId64 " to %" PRId64, INT64_MIN >> off,
                 INT64_MAX >> off);
    else
        snprintf(buf, size, "0 to %" PRIu64, UINT64_MAX >> off);
}

/* `value` is not in the type; `wraps`: it is an integer of 64 bits, a cast keeps the low ones. */
static int out_of_bounds(ing_dtype t, const char *what, PyObject *value, bool wraps) {
    const char *name = ing_dtype_name(t);
    char bounds[64];
    PyObject *text = shown(value);
    if (!text) return -1;
    bounds_of(t, bounds, sizeof bounds);
    if (t == ING_U1)
        PyErr_Format(PyExc_OverflowError,
                     "%s: %U does not fit in u1, which is 0 or 1: write x != 0", what,
                     text);
    else if (wraps)
        PyErr_Format(
            PyExc_OverflowError,
            "%s: %U does not fit in %s, which holds %s: declare another type, or "
            "keep its low bits by qd.%s(x)",
            what, text, name, bounds, name);
    else
        PyErr_Format(PyExc_OverflowError,
                     "%s: %U does not fit in %s, which holds %s: declare another type",
                     what, text, name, bounds);
    Py_DECREF(text);
    return -1;
}

static bool has_float(PyObject *o) {
    PyNumberMethods *m = Py_TYPE(o)->tp_as_number;
    return PyFloat_Check(o) || (m && (m->nb_float || m->nb_index));
}

/* NumPy's complex numbers have __float__, which drops the imaginary part with a warning. */
static int is_complex(ing_py_state *st, PyObject *o) {
    PyObject *dtype = NULL, *kind = NULL;
    if (PyFloat_Check(o) || PyLong_Check(o)) return 0;
    if (PyComplex_Check(o)) return 1;
    int rc = ing_py_attr_of_maybe(st, o, ING_PY_NAME_dtype, &dtype);
    if (dtype) rc = ing_py_attr_maybe(dtype, "kind", &kind);
    if (rc >= 0)
        rc = kind && PyUnicode_Check(kind) &&
             !PyUnicode_CompareWithASCIIString(kind, "c");
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    return rc;
}

static int num_as_float(ing_py_state *st, ing_dtype t, PyObject *value,
                        const char *what, ing_py_num *out) {
    int odd = has_float(value) ? is_complex(st, value) : 1;
    if (odd < 0) return -1;
    if (odd) return refuse(st, t, what, "a real number", value);
    if (!PyFloat_Check(value) && ing_py_is_masked(st, value))
        return refuse(st, t, what, "a number that is not masked", value);
    *out = num_float(PyFloat_AsDouble(value));
    if (out->f != -1.0 || !PyErr_Occurred()) return 0;
    if (!PyLong_Check(value) || !ing_py_took(PyExc_OverflowError)) return -1;
    PyErr_Format(PyExc_OverflowError, "%s: this integer is past the range of %s", what,
                 ing_dtype_name(t));
    return -1;
}

/* An exact int: any value of 64 bits, signed or not, and for a float type any that is finite. */
static int num_from_long(ing_py_state *st, ing_dtype t, PyObject *value,
                         const char *what, ing_py_num *out) {
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
    return ing_dtype_is_float(t) ? num_as_float(st, t, value, what, out)
                                 : out_of_bounds(t, what, value, false);
}

/* Steals `number`, the result of __index__ (NULL: it raised). */
static int num_take_long(ing_py_state *st, ing_dtype t, PyObject *number,
                         const char *what, ing_py_num *out) {
    if (!number) return -1;
    int rc = num_from_long(st, t, number, what, out);
    Py_DECREF(number);
    return rc;
}

/* An integer by __index__, else any real number, as a double. */
static int num_from_any(ing_py_state *st, ing_dtype t, PyObject *value,
                        const char *what, ing_py_num *out) {
    if (PyLong_Check(value)) return num_from_long(st, t, value, what, out);
    if (PyIndex_Check(
            value)) { /* arrays have __index__ and raise if they hold a float */
        PyObject *number = PyNumber_Index(value);
        if (number || !ing_py_took(PyExc_TypeError))
            return num_take_long(st, t, number, what, out);
    }
    return num_as_float(st, t, value, what, out);
}

static bool in_bounds(ing_dtype t, ing_py_num v) {
    uint32_t bits = ing_dtype_bits(t);
    if (v.kind == 'F') { /* powers of two: exact */
        double top = ldexp(1.0, (int)(ing_dtype_is_signed(t) ? bits - 1 : bits));
        return v.f < top && v.f >= (ing_dtype_is_signed(t) ? -top : 0.0);
    }
    if (v.kind == 'U' || v.i >= 0)
        return (uint64_t)v.i <= UINT64_MAX >> (64 - bits + ing_dtype_is_signed(t));
    return ing_dtype_is_signed(t) && v.i >= INT64_MIN >> (64 - bits);
}

static int no_integer(ing_py_state *st, ing_dtype t, const char *what, PyObject *value,
                      bool finite) {
    char text[64];
    if (ing_py_show_str(value, text, sizeof text) < 0) return -1;
    ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE, "%s: expected an integer (%s), got %s%s",
                what, ing_dtype_name(t), text,
                finite ? ": convert it with int(x) or round(x)" : "");
    return -1;
}

/* A number that the integer type holds, or an error: nothing wraps and nothing saturates. `cut`: the
 * fraction goes, as in a conversion; else there must be none. Programs of the reference rely on
 * integers that wrap, and on fractions of NumPy's scalars that go: with ingot.compat they do. */
static int num_that_fits(ing_py_state *st, ing_dtype t, PyObject *value,
                         const char *what, bool cut, ing_py_num *out) {
    bool as_there = st->settings.at[ING_SET_reference];
    if (num_from_any(st, t, value, what, out) < 0) return -1;
    if (as_there && out->kind != 'F') return 0;
    if (as_there && !PyFloat_Check(value)) cut = true;
    if (out->kind == 'F') {
        double whole = trunc(out->f);
        if (!isfinite(whole) || (whole != out->f && !cut))
            return no_integer(st, t, what, value, isfinite(whole));
        out->f = whole;
    }
    return in_bounds(t, *out) ? 0 : out_of_bounds(t, what, value, out->kind != 'F');
}

int ing_py_scalar_store(ing_py_state *st, ing_dtype t, void *at, PyObject *value,
                        const char *what) {
    ing_py_num v;
    int rc = ing_dtype_is_float(t) ? num_as_float(st, t, value, what, &v)
                                   : num_that_fits(st, t, value, what, false, &v);
    if (rc == 0) ing_py_num_store(t, at, v);
    return rc;
}

PyObject *ing_py_scalar_load(ing_dtype t, const void *at) {
    ing_py_num v = ing_py_num_load(t, at);
    if (v.kind == 'F') return PyFloat_FromDouble(v.f);
    if (v.kind == 'U') return PyLong_FromUnsignedLongLong((uint64_t)v.i);
    return PyLong_FromLongLong(v.i);
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
    if (num_from_any(st, t, PyTuple_GET_ITEM(args, 0), "cast", &v) < 0) return NULL;
    ing_py_num_store(t, &word, v);
    return ing_py_scalar_load(t, &word);
}

/* _entry(value, what, cut): the number as an entry of a vector, matrix or struct on the host. */
static PyObject *dtype_entry(PyObject *self, PyObject *args) {
    ing_py_state *st = ing_py_state_of(self);
    ing_dtype t = id_of(self);
    uint64_t word = 0;
    ing_py_num v;
    PyObject *value;
    const char *what;
    int cut;
    if (!PyArg_ParseTuple(args, "Osp", &value, &what, &cut)) return NULL;
    int rc = ing_dtype_is_float(t) ? num_as_float(st, t, value, what, &v)
                                   : num_that_fits(st, t, value, what, cut != 0, &v);
    if (rc < 0) return NULL;
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
    {"_entry", dtype_entry, METH_VARARGS, NULL},
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
