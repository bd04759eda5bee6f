/* Small extents of arrays, compiled in: an array whose innermost axis is indexed by constants, as
 * x[i, 0] and x[i, 2] are, is asked for the extent of that axis once its kernel is lowered. The
 * answer is one of few, 1 to ING_IR_MAX_LAST or 0 for all others, so that shapes that vary have few
 * variants; it is guarded at each launch as any other. Called by variant.c and replay.c. */
#include "py/array/foreign.h"
#include "py/call/kernel.h"

static int64_t extent_of(ing_py_state *st, PyObject *obj, int64_t axis) {
    if (ing_py_is_array(st, obj)) {
        const ing_py_array *a = (ing_py_array *)obj;
        return axis < a->spec->ndim ? a->shape[axis] : 0;
    }
    if (!ing_py_is_foreign_array(st, obj)) return 0;
    ing_py_foreign a;
    Py_buffer hold = {0};
    ing_err e;
    ing_err_init(&e);
    bool ok = ing_py_foreign_read(st, obj, false, &a, &hold, &e) == ING_OK;
    int64_t n = ok && axis < a.spec.ndim ? a.shape[axis] : 0;
    if (hold.obj) PyBuffer_Release(&hold);
    ing_err_fini(&e);
    return n;
}

ing_status ing_py_small_step(ing_py_state *st, PyObject *from, int64_t axis,
                             PyObject **out) {
    int64_t n = axis >= 0 && axis < ING_MAX_NDIM ? extent_of(st, from, axis) : 0;
    if (PyErr_Occurred() && !ing_py_took_any()) return ING_PYTHON;
    *out = PyLong_FromLongLong(n >= 1 && n <= ING_IR_MAX_LAST ? n : 0);
    return *out ? ING_OK : ING_PYTHON;
}

ing_status ing_py_ask_extents(ing_py_gate *g, ing_front_result *r, ing_err *e) {
    ing_ir_mod *m = r->mod;
    uint8_t *wanted = ing_calloc((size_t)m->args.len + 1, 1);
    bool ok = wanted && ing_ir_last_wanted(m, wanted);
    ing_status s = ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for a kernel");
    for (uint32_t k = 0; s == ING_OK && k < m->args.len; k++) {
        const ing_type_info *t = ing_ir_type(m, m->args.at[k].type);
        int64_t n = 0;
        if (!wanted[k] || k >= r->args.len || !r->args.at[k].ref) continue;
        s = ing_py_gate_small(g, r->args.at[k].ref, t->layout[t->rank - 1], &n, e);
        if (s == ING_OK) m->args.at[k].last = (uint8_t)n;
    }
    ing_free(wanted);
    return s;
}
