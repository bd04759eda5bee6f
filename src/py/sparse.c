/* Factors of sparse matrices for ingot/linalg.py: two functions over buffers. Indices are
 * checked here, once, so that src/rt/sparse.c can trust them. Releases the GIL while it works;
 * the caller must not change the arrays meanwhile. */
#include "py/py.h"
#include "rt/sparse.h"

static const char *const NAME = "ingot.sparse_factor";

static void drop(PyObject *capsule) {
    ing_sparse_free(PyCapsule_GetPointer(capsule, NAME));
}

/* A contiguous one-dimensional buffer of items of this size. */
static int get_array(PyObject *o, Py_buffer *view, Py_ssize_t size) {
    if (PyObject_GetBuffer(o, view, PyBUF_ND | PyBUF_C_CONTIGUOUS) < 0) return -1;
    if (view->ndim == 1 && view->itemsize == size) return 0;
    PyErr_SetString(PyExc_ValueError,
                    "a one-dimensional array of another type is needed");
    PyBuffer_Release(view);
    return -1;
}

static PyObject *factorize_buffers(ing_py_state *st, const Py_buffer *v, int kind) {
    ing_sparse a = {(int32_t)(v[0].shape[0] - 1), v[0].buf, v[1].buf, v[2].buf};
    if (v[0].shape[0] < 1 || v[0].shape[0] > INT32_MAX ||
        v[1].shape[0] != v[2].shape[0] || kind < ING_SPARSE_LLT ||
        kind > ING_SPARSE_LU || !ing_sparse_valid(&a, v[1].shape[0])) {
        PyErr_SetString(PyExc_ValueError, "these are no compressed rows of a matrix");
        return NULL;
    }
    ing_sparse_factor *f = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s;
    Py_BEGIN_ALLOW_THREADS;
    s = ing_sparse_factorize(&a, (ing_sparse_kind)kind, &f, &e);
    Py_END_ALLOW_THREADS;
    PyObject *out = NULL;
    if (s == ING_DECLINED)
        out = PyUnicode_FromString(e.text ? e.text : "the sparse matrix is singular");
    else if (s != ING_OK)
        return ing_py_raise(st, &e);
    else if (!(out = PyCapsule_New(f, NAME, drop)))
        ing_sparse_free(f);
    ing_err_fini(&e);
    return out;
}

/* sparse_factorize(start, col, value, kind): the factors; a text says why there are none. */
static PyObject *factorize(PyObject *module, PyObject *args) {
    PyObject *in[3];
    Py_buffer v[3];
    static const Py_ssize_t sizes[] = {8, 4, 8};
    int kind, n = 0;
    if (!PyArg_ParseTuple(args, "OOOi:sparse_factorize", &in[0], &in[1], &in[2], &kind))
        return NULL;
    while (n < 3 && get_array(in[n], &v[n], sizes[n]) == 0) n++;
    PyObject *out = n == 3 ? factorize_buffers(ing_py_state_in(module), v, kind) : NULL;
    while (n > 0) PyBuffer_Release(&v[--n]);
    return out;
}

/* sparse_solve(factors, b): the solution, f64 as bytes. */
static PyObject *solve(PyObject *module, PyObject *args) {
    PyObject *capsule, *in, *out = NULL;
    Py_buffer b;
    if (!PyArg_ParseTuple(args, "OO:sparse_solve", &capsule, &in)) return NULL;
    const ing_sparse_factor *f = PyCapsule_GetPointer(capsule, NAME);
    if (!f || get_array(in, &b, 8) < 0) return NULL;
    if (b.shape[0] != ing_sparse_size(f))
        PyErr_SetString(PyExc_ValueError,
                        "the vector has another length than the matrix");
    else
        out = PyBytes_FromStringAndSize(NULL, b.len);
    if (out) {
        ing_err e;
        ing_err_init(&e);
        double *x = (double *)(void *)PyBytes_AS_STRING(out);
        ing_status s;
        Py_BEGIN_ALLOW_THREADS;
        s = ing_sparse_solve(f, b.buf, x, &e);
        Py_END_ALLOW_THREADS;
        if (s != ING_OK) {
            Py_CLEAR(out);
            ing_py_raise(ing_py_state_in(module), &e);
        } else {
            ing_err_fini(&e);
        }
    }
    PyBuffer_Release(&b);
    return out;
}

static const PyMethodDef functions[] = {
    {"sparse_factorize", factorize, METH_VARARGS,
     "sparse_factorize(start, col, value, kind): factors, or why there are none."},
    {"sparse_solve", solve, METH_VARARGS, "sparse_solve(factors, b): f64 as bytes."},
    {0},
};

int ing_py_sparse_add(PyObject *module, ing_py_state *st) {
    (void)st;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
