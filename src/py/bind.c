/* Binding: the arguments of one call become the words that code reads (src/gen/abi.h).
 * On the hot path of every launch: no allocation, no Python frames for Ingot's own arrays
 * and for numbers. */
#include "py/kernel.h"

#include <string.h>

static void bind_words(const ing_py_array *a, uint64_t *w) {
    uint32_t n = a->spec->ndim;
    w[0] = (uint64_t)(uintptr_t)a->data;
    for (uint32_t i = 0; i < n; i++) w[1 + i] = (uint64_t)a->shape[i];
    if (a->spec->grad)
        w[1 + n] =
            (uint64_t)(uintptr_t)(a->grad ? ((ing_py_array *)a->grad)->data : NULL);
}

static void bind_ndarray(ing_py_state *st, const ing_py_bind *b, PyObject *obj,
                         uint64_t *words) {
    ing_py_array *a = (ing_py_array *)obj;
    bind_words(a, &words[b->word]);
    if (b->written) ing_py_array_touch(st, a);
}

static ing_status bind_foreign(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                               uint64_t *words, ing_py_views *views, ing_err *e) {
    if (!PyObject_CheckBuffer(obj)) return ING_DECLINED;
    Py_buffer *view = &views->at[views->n];
    if (PyObject_GetBuffer(obj, view, PyBUF_FULL_RO) < 0) return ING_PYTHON;
    views->n++;
    ing_py_spec spec;
    ING_TRY(ing_py_see_buffer(view, &spec, e));
    if (spec.dtype != b->spec->dtype || spec.ndim != b->spec->ndim) return ING_DECLINED;
    if (view->readonly && b->written)
        return ing_py_def_fail(
            k->st, &k->def, b->arg, ING_TYPE, "pass a writable copy (numpy.array(x))",
            e, "the kernel writes this argument, but the array is read-only");
    words[b->word] = (uint64_t)(uintptr_t)view->buf;
    for (int i = 0; i < view->ndim; i++)
        words[b->word + 1 + (uint32_t)i] = (uint64_t)view->shape[i];
    return ING_OK;
}

/* Ours or foreign, the code is the same: only the spec counts. */
static ing_status bind_array(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                             uint64_t *words, ing_py_views *views, ing_err *e) {
    if (!ing_py_is_array(k->st, obj)) return bind_foreign(k, b, obj, words, views, e);
    if (((ing_py_array *)obj)->spec != b->spec) return ING_DECLINED;
    bind_ndarray(k->st, b, obj, words);
    return ING_OK;
}

/* ---- scalars ------------------------------------------------------------------------------ */

static ing_status bad_scalar(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                             ing_err *e) {
    bool real = ing_dtype_is_float((ing_dtype)b->dtype);
    return ing_py_def_fail(
        k->st, &k->def, b->arg, ING_TYPE,
        real ? "pass a number" : "pass an int, or convert with int(...)", e,
        "this argument must be %s (%s), got %.100s", real ? "a number" : "an integer",
        ing_dtype_name((ing_dtype)b->dtype), Py_TYPE(obj)->tp_name);
}

static ing_status out_of_range(ing_py_kernel *k, const ing_py_bind *b, ing_err *e) {
    return ing_py_def_fail(
        k->st, &k->def, b->arg, ING_TYPE, "annotate the parameter with a wider type", e,
        "the value does not fit in %s", ing_dtype_name((ing_dtype)b->dtype));
}

static ing_status bind_int(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                           uint64_t *w, ing_err *e) {
    PyObject *n = PyNumber_Index(obj);
    if (!n) {
        PyErr_Clear();
        return bad_scalar(k, b, obj, e);
    }
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(n, &overflow);
    unsigned long long u = (unsigned long long)v;
    if (overflow > 0) u = PyLong_AsUnsignedLongLong(n);
    Py_DECREF(n);
    bool too_big = overflow > 0 && PyErr_Occurred();
    if (too_big) PyErr_Clear();
    uint32_t bits = ing_dtype_bits((ing_dtype)b->dtype);
    bool fits;
    if (overflow < 0 || too_big)
        fits = false;
    else if (ing_dtype_is_signed((ing_dtype)b->dtype))
        fits = !overflow &&
               (bits == 64 || (v >= -(1LL << (bits - 1)) && v < 1LL << (bits - 1)));
    else
        fits = (overflow > 0 || v >= 0) && (bits == 64 || u < 1ULL << bits);
    if (!fits) return out_of_range(k, b, e);
    *w = u;
    return ING_OK;
}

static ing_status bind_float(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                             uint64_t *w, ing_err *e) {
    double d = PyFloat_CheckExact(obj) ? PyFloat_AS_DOUBLE(obj) : PyFloat_AsDouble(obj);
    if (d == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return bad_scalar(k, b, obj, e);
    }
    if (b->dtype == ING_F64) {
        memcpy(w, &d, sizeof d);
    } else if (b->dtype == ING_F32) {
        float f = (float)d;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        *w = bits;
    } else {
        *w = ing_f64_to_f16(d);
    }
    return ING_OK;
}

static ing_status bind_scalar(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                              uint64_t *w, ing_err *e) {
    if (ing_dtype_is_float((ing_dtype)b->dtype)) return bind_float(k, b, obj, w, e);
    return bind_int(k, b, obj, w, e);
}

ing_status ing_py_bind_all(ing_py_kernel *k, const ing_py_variant *v,
                           PyObject *const *args, PyObject *const *held,
                           uint64_t *words, ing_py_views *views, ing_err *e) {
    uint32_t n_held = 0;
    for (uint32_t i = 0; i < v->binds.len; i++) {
        const ing_py_bind *b = &v->binds.at[i];
        switch ((ing_py_bind_kind)b->kind) {
        case ING_BIND_ARRAY:
            ING_TRY(bind_array(k, b, args[b->arg], words, views, e));
            break;
        case ING_BIND_SCALAR:
            ING_TRY(bind_scalar(k, b, args[b->arg], &words[b->word], e));
            break;
        case ING_BIND_CAPTURED: bind_ndarray(k->st, b, held[n_held++], words); break;
        }
    }
    return ING_OK;
}

/* ---- refusing what the annotations forbid ---------------------------------------------------- */

static ing_status check_array(ing_py_kernel *k, uint32_t i, const ing_gate_param *p,
                              PyObject *obj, ing_err *e) {
    ing_gate_fact f;
    ing_err why;
    ing_err_init(&why);
    ing_status s = ing_py_see(k->st, obj, &f, &why);
    if (s == ING_PYTHON) PyErr_Clear();
    if (s != ING_OK) {
        s = ing_py_def_fail(
            k->st, &k->def, i, ING_TYPE,
            "pass a C-contiguous array (numpy.ascontiguousarray(x)) of a "
            "supported dtype, or a qd.ndarray",
            e, "%s", why.text ? why.text : "this array cannot be used");
        ing_err_fini(&why);
        return s;
    }
    if (f.kind != ING_GATE_ARRAY)
        return ing_py_def_fail(
            k->st, &k->def, i, ING_TYPE, "pass a qd.ndarray or a NumPy array", e,
            "this argument must be an array, got %.100s", Py_TYPE(obj)->tp_name);
    if (p->dtype != ING_VOID && p->dtype != f.dtype)
        return ing_py_def_fail(k->st, &k->def, i, ING_TYPE,
                               "convert it, or change the annotation", e,
                               "expected an array of %s, got one of %s",
                               ing_dtype_name(p->dtype), ing_dtype_name(f.dtype));
    if (p->ndim >= 0 && p->ndim != f.ndim)
        return ing_py_def_fail(k->st, &k->def, i, ING_TYPE,
                               "reshape it, or change the annotation", e,
                               "expected an array of %d dimension%s, got %d", p->ndim,
                               p->ndim == 1 ? "" : "s", f.ndim);
    return ING_OK;
}

ing_status ing_py_check_args(ing_py_kernel *k, PyObject *const *args, ing_err *e) {
    ING_TRY(ing_py_def_meanings(k->st, &k->def, true, e));
    for (uint32_t i = 0; i < k->def.n_params; i++) {
        const ing_gate_param *p = &k->def.params[i];
        uint64_t word;
        ing_py_bind b = {.dtype = (uint8_t)p->dtype, .arg = (uint16_t)i};
        if (p->passing == ING_PASS_ARRAY) ING_TRY(check_array(k, i, p, args[i], e));
        if (p->passing == ING_PASS_VALUE)
            ING_TRY(bind_scalar(k, &b, args[i], &word, e));
    }
    return ING_OK;
}
