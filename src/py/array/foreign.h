/* Arrays and numbers of other libraries, as the gate and a launch see them. Internal to
 * src/py. */
#ifndef ING_PY_FOREIGN_H
#define ING_PY_FOREIGN_H

#include "py/py.h"

/* How objects of a type are read. */
typedef enum ing_py_foreign_kind {
    ING_FOREIGN_NONE,
    ING_FOREIGN_NUMBER, /* a NumPy scalar */
    ING_FOREIGN_BUFFER, /* an array by the buffer protocol: NumPy, array.array, ... */
    ING_FOREIGN_TENSOR, /* an array by DLPack's table of C functions: torch */
    ING_FOREIGN_DLPACK, /* an array by __dlpack__ alone */
} ing_py_foreign_kind;

/* An array where it lies. */
typedef struct ing_py_foreign {
    void *data; /* may be NULL when there are no elements */
    void *grad; /* NULL: none, or not asked for */
    bool read_only;
    ing_py_spec spec; /* without digest and id: not an interned one */
    int64_t shape[ING_MAX_NDIM];
} ing_py_foreign;

int ing_py_foreign_add(PyObject *module, ing_py_state *st);
int ing_py_foreign_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_foreign_clear(ing_py_state *st);
void ing_py_foreign_fini(ing_py_state *st);

/* Never fails, runs no code of the user's. */
ing_py_foreign_kind ing_py_foreign_kind_of(ing_py_state *st, PyObject *obj);
static inline bool ing_py_is_foreign_array(ing_py_state *st, PyObject *obj) {
    return ing_py_foreign_kind_of(st, obj) >= ING_FOREIGN_BUFFER;
}

/* Does the type know which of its elements count (numpy.ma)? Kernels do not. */
bool ing_py_is_masked(ing_py_state *st, PyObject *obj);
#define ING_PY_MASKED                                                             \
    "a masked array: kernels would not see its mask; pass arr.filled(value), or " \
    "arr.data, and np.ma.getmaskarray(arr) beside it where the mask matters"

/* Reads an array of another library. What must stay alive while the memory is used is in
 * `hold`: PyBuffer_Release ends it, also after a failure. With `gradient`, a tensor that
 * requires one gets it first (zeros), as in the reference. ING_ARGUMENT: an array, but not
 * one that kernels can work on; ING_DECLINED: no array at all. */
ing_status ing_py_foreign_read(ing_py_state *st, PyObject *obj, bool gradient,
                               ing_py_foreign *out, Py_buffer *hold, ing_err *e);

/* Takes the last `rank` axes for those of the elements, vectors or matrices. False: there are
 * none, or an element does not lie in memory as one of Ingot's does. */
bool ing_py_foreign_elements(ing_py_foreign *a, uint32_t rank);

/* The value of a NumPy scalar. ING_DECLINED: it is no number of a type known here. */
ing_status ing_py_foreign_number(PyObject *obj, ing_dtype *type, ing_py_num *value);

#endif
