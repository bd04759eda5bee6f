/* Making tensors: qd.Vector(...), qd.Matrix(...), their constructors (zero, identity, rows,
 * ...) and vector and matrix types called as constructors or casts. Called by intrin.c and
 * call.c. */
#include "front/tensor.h"

#include <string.h>

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* Argument `i`, or the keyword of that name; false: neither. */
static bool argument(const frame *fr, const call_args *a, uint32_t i, const char *name,
                     value *out, ing_node *at) {
    for (uint32_t k = 0; k < a->n_kw; k++)
        if (strcmp(ing_front_atom_text(fr, a->kw_name[k]), name) == 0) {
            *out = a->kw[k];
            *at = a->kw_node[k];
            return true;
        }
    if (i >= a->n) return false;
    *out = a->at[i];
    *at = a->node[i];
    return true;
}

static ing_status dtype_argument(frame *fr, const call_args *a, uint32_t i,
                                 ing_dtype *out) {
    value v;
    ing_node at;
    *out = ING_VOID;
    if (!argument(fr, a, i, "dt", &v, &at)) return ING_OK;
    ING_TRY(ing_front_force(fr, at, &v));
    return v.kind == V_NONE ? ING_OK : ing_front_dtype(fr, at, &v, out);
}

static ing_status count_argument(frame *fr, ing_node n, const call_args *a, uint32_t i,
                                 const char *name, uint32_t *out, bool *given) {
    value v;
    ing_node at;
    *given = argument(fr, a, i, name, &v, &at);
    if (!*given) return ING_OK;
    ING_TRY(ing_front_force(fr, at, &v));
    if (v.kind == V_NONE) {
        *given = false;
        return ING_OK;
    }
    if (v.kind != V_INT || v.i < 0 || v.i > TENSOR_MAX)
        return ing_front_fail_at(fr, at ? at : n, ING_TYPE, "use a constant",
                                 "'%s' must be a compile-time integer; this is %s",
                                 name, ing_front_describe(fr, &v));
    *out = (uint32_t)v.i;
    return ING_OK;
}

/* ---- qd.Vector(...), qd.Matrix(...) ------------------------------------------------------------ */

static ing_status from_list(frame *fr, ing_node n, const call_args *a, value *out) {
    value v;
    ing_node at;
    ing_dtype t;
    bool ok = false;
    if (!argument(fr, a, 0, "arr", &v, &at))
        return ing_front_fail_at(fr, n, ING_TYPE, "pass a list of numbers",
                                 "a vector or matrix needs its elements");
    ING_TRY(ing_front_force(fr, at, &v));
    if (a->n > 1 && ing_front_is_scalar(&v))
        return ing_front_fail_at(fr, n, ING_TYPE,
                                 "put the elements in brackets: qd.Vector([x, y, z])",
                                 "a vector or matrix is made of one list, found %u "
                                 "numbers",
                                 a->n);
    ING_TRY(dtype_argument(fr, a, 1, &t));
    if (t)
        ING_TRY(ing_front_tensor_from(fr, at, &v, t, out, &ok));
    else
        ING_TRY(ing_front_tensor_read(fr, at, &v, out, &ok));
    if (ok && !ing_front_is_runtime(out)) return ING_OK;
    if (ok) return ing_front_tensor_load(fr, at, out, out);
    return ing_front_fail_at(fr, at, ING_TYPE, "pass a list of numbers",
                             "a vector or matrix is made of a list of its elements; "
                             "this is %s",
                             ing_front_describe(fr, &v));
}

static ing_status columns(frame *fr, ing_node n, const call_args *a, value *out) {
    value rows;
    ING_TRY(from_list(fr, n, a, &rows));
    return ing_front_transpose(fr, n, &rows, out);
}

/* ---- filled ones --------------------------------------------------------------------------------- */

typedef enum pattern { ZERO, ONE, IDENTITY, UNIT, DIAG } pattern;

static ing_status filled(frame *fr, ing_node n, tensor_shape s, pattern p, uint32_t at,
                         const value *diagonal, value *out) {
    if (s.n == 0 || s.rows > TENSOR_MAX || s.cols > TENSOR_MAX || s.n > TENSOR_MAX)
        return ing_front_fail_at(fr, n, ING_TYPE, "use an array for more numbers",
                                 "a vector or matrix has 1 to %d elements", TENSOR_MAX);
    if (p == ZERO && s.n > TENSOR_REG) { /* locals are zeroed */
        *out = ing_front_tensor_temp(fr, &s);
        return ING_OK;
    }
    value *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, value);
    if (!elems) return no_memory(fr);
    for (uint32_t k = 0; k < s.n; k++) {
        bool hit = p == ONE || (p == UNIT && k == at) ||
                   ((p == IDENTITY || p == DIAG) && k / s.cols == k % s.cols);
        elems[k] = hit && p == DIAG ? *diagonal : ing_front_int(hit);
    }
    return ing_front_tensor_gather(fr, n, s, elems, out);
}

static ing_status filled_call(frame *fr, ing_node n, pattern p, const call_args *a,
                              value *out) {
    tensor_shape s = {0};
    uint32_t rows = 0, cols = 1, at = 0;
    bool given = false, matrix = false;
    if (p == UNIT) { /* (n, i, dt=None) */
        ING_TRY(count_argument(fr, n, a, 0, "n", &rows, &given));
        ING_TRY(count_argument(fr, n, a, 1, "i", &at, &matrix));
        if (at >= rows)
            return ing_front_fail_at(fr, n, ING_INDEX,
                                     "give it (n, i) with i from 0 to n - 1",
                                     "unit vector %u of %u", at, rows);
        ING_TRY(dtype_argument(fr, a, 2, &s.dtype));
        s = ing_front_shape_of(1, rows, 1, s.dtype);
        return filled(fr, n, s, p, at, NULL, out);
    }
    ING_TRY(dtype_argument(fr, a, 0, &s.dtype)); /* (dt, n, m=None) */
    ING_TRY(count_argument(fr, n, a, 1, "n", &rows, &given));
    if (!given)
        return ing_front_fail_at(fr, n, ING_TYPE,
                                 "give it (dtype, n), for a matrix (dtype, n, m)",
                                 "the size is missing");
    if (p == IDENTITY) {
        matrix = true;
        cols = rows;
    } else {
        ING_TRY(count_argument(fr, n, a, 2, "m", &cols, &matrix));
    }
    s = ing_front_shape_of(matrix ? 2 : 1, rows, matrix ? cols : 1, s.dtype);
    return filled(fr, n, s, p, 0, NULL, out);
}

static ing_status diag_call(frame *fr, ing_node n, const call_args *a, value *out) {
    uint32_t rows = 0;
    bool given = false;
    value v;
    ing_node at;
    ING_TRY(count_argument(fr, n, a, 0, "dim", &rows, &given));
    if (!given || !argument(fr, a, 1, "val", &v, &at))
        return ing_front_fail_at(fr, n, ING_TYPE, "call it as qd.Matrix.diag(dim, val)",
                                 "qd.Matrix.diag takes a size and a value");
    ING_TRY(ing_front_force(fr, at, &v));
    if (ing_front_is_runtime(&v)) ING_TRY(ing_front_load(fr, at, &v, &v));
    return filled(fr, n, ing_front_shape_of(2, rows, rows, ING_VOID), DIAG, 0, &v, out);
}

ing_status ing_front_tensor_construct(frame *fr, ing_node n, ing_intrinsic id,
                                      const call_args *a, value *out) {
    switch (id) {
    case ING_IN_MATRIX_ZERO: return filled_call(fr, n, ZERO, a, out);
    case ING_IN_MATRIX_ONE: return filled_call(fr, n, ONE, a, out);
    case ING_IN_MATRIX_IDENTITY: return filled_call(fr, n, IDENTITY, a, out);
    case ING_IN_MATRIX_UNIT: return filled_call(fr, n, UNIT, a, out);
    case ING_IN_MATRIX_DIAG: return diag_call(fr, n, a, out);
    case ING_IN_MATRIX_COLS: return columns(fr, n, a, out);
    default: return from_list(fr, n, a, out);
    }
}

/* ---- types ----------------------------------------------------------------------------------------- */

typedef ing_vec(value) value_list;

/* Numbers, vectors and lists in a row: vec4(v.xyz, 1). */
static ing_status flatten(frame *fr, ing_node at, const value *given, value_list *l) {
    value v = *given, *items;
    uint32_t n = 0;
    bool ok = false;
    ING_TRY(ing_front_force(fr, at, &v));
    if (ing_front_is_scalar(&v)) return ing_vec_push(l, v) ? ING_OK : no_memory(fr);
    ING_TRY(ing_front_items(fr, at, &v, &items, &n, &ok));
    if (!ok)
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            "elements are numbers; rows of a matrix are lists of numbers",
            "an element of a vector cannot be %s", ing_front_describe(fr, &v));
    ING_TRY(ing_front_deeper(fr, at));
    ing_status s = ING_OK;
    for (uint32_t i = 0; i < n && s == ING_OK; i++) s = flatten(fr, at, &items[i], l);
    fr->lo->depth--;
    return s;
}

ing_status ing_front_tensor_call_type(frame *fr, ing_node n, const value *type,
                                      const call_args *a, value *out) {
    const ing_type_info *t = ing_ir_type(fr->lo->mod, type->type);
    tensor_shape s = ing_front_shape_of(t->rank, t->rows, t->cols, (ing_dtype)t->dtype),
                 have;
    if (a->n == 0 || a->n_kw)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "pass its elements, or one number for all of them",
            "Custom type instances need to be created with an initial value.");
    value v = a->at[0];
    ING_TRY(ing_front_force(fr, a->node[0], &v));
    if (a->n == 1 && ing_front_tensor_shape(fr, &v, &have) && have.n == s.n &&
        have.rank == s.rank && have.cols == s.cols && v.kind != V_TUPLE)
        return ing_front_tensor_cast(fr, a->node[0], &v, s.dtype, out);
    value_list l = {0};
    ing_status st = ING_OK;
    for (uint32_t i = 0; i < a->n && st == ING_OK; i++)
        st = flatten(fr, a->node[i], &a->at[i], &l);
    value *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, value);
    if (st == ING_OK && !elems) st = no_memory(fr);
    if (st == ING_OK && l.len != 1 && l.len != s.n)
        st = ing_front_fail_at(
            fr, n, ING_TYPE, "pass as many numbers as it has elements, or one",
            "a %s of shape %s from %u numbers", s.rank == 1 ? "vector" : "matrix",
            ing_front_shape_text(fr, &s), l.len);
    for (uint32_t k = 0; st == ING_OK && k < s.n; k++)
        elems[k] = l.at[l.len == 1 ? 0 : k];
    ing_vec_fini(&l);
    ING_TRY(st);
    return ing_front_tensor_make(fr, n, s, elems, out);
}

/* A value as a tensor of a given type: parameters, results, annotated variables. */
ing_status ing_front_tensor_convert(frame *fr, ing_node at, const value *v,
                                    const ing_gate_tensor *want, ing_dtype t,
                                    value *out) {
    tensor_shape s;
    bool ok = false;
    value x = *v;
    ING_TRY(ing_front_force(fr, at, &x));
    if (!ing_front_is_scalar(&x))
        ING_TRY(ing_front_tensor_from(fr, at, &x, t, &x, &ok));
    if (ok) ok = ing_front_tensor_shape(fr, &x, &s);
    uint32_t cols = want->rank == 2 ? want->shape[1] : 1;
    if (!ok || s.rank != want->rank || (want->shape[0] && s.rows != want->shape[0]) ||
        (cols && s.cols != cols))
        return ing_front_fail_at(
            fr, at, ING_SYNTAX, "pass one of that shape",
            "this is expected to be a Matrix with n %u, but got %u: it is %s",
            want->shape[0], ok ? s.rows : 0, ing_front_describe(fr, v));
    return ing_front_tensor_load(fr, at, &x, out);
}

/* The elements are scalar arguments in a row. */
ing_status ing_front_tensor_param(frame *fr, ing_node at, ing_gref ref,
                                  const ing_gate_param *p, value *out) {
    lowering *lo = fr->lo;
    tensor_shape s =
        ing_front_shape_of(p->tensor.rank, p->tensor.shape[0],
                           p->tensor.rank == 2 ? p->tensor.shape[1] : 1, p->dtype);
    if (!s.n || !s.dtype || s.n > TENSOR_MAX)
        return ing_front_fail_at(fr, at, ING_TYPE,
                                 "say how many: qd.types.vector(3, qd.f32)",
                                 "the parameter's vector type has no size or no dtype");
    ing_hash128 key = {ref, 2};
    uint32_t first = ing_map_get(&lo->args, key);
    if (!first) {
        for (uint32_t k = 0; k < s.n; k++) {
            uint32_t id = ing_ir_add_arg(lo->mod, s.dtype) + 1;
            ing_front_arg arg = {.ref = ref, .dtype = s.dtype, .lane = k > 0};
            if (k == 0) {
                first = id;
                arg.lanes = s.n;
            }
            if (!ing_vec_push(&lo->out->args, arg)) return no_memory(fr);
        }
        if (!ing_map_put(&lo->args, key, first)) return no_memory(fr);
    }
    value *elems = ING_NEW_ARRAY(&lo->arena, (size_t)s.n + 1, value);
    if (!elems) return no_memory(fr);
    for (uint32_t k = 0; k < s.n; k++)
        elems[k] = ing_front_rt(
            ing_ir_emit(&fr->b, ING_OP_ARG, s.dtype, first - 1 + k, 0, 0), s.dtype);
    ING_TRY(ing_front_tensor_make(fr, at, s, elems, out));
    out->fixed = out->arg = true;
    return ING_OK;
}

ing_status ing_front_tensor_results(frame *fr, ing_node at, const value *v,
                                    const ing_gate_tensor *want, ing_dtype t,
                                    value **elems, uint32_t *n) {
    value x;
    tensor_shape s;
    ING_TRY(ing_front_tensor_convert(fr, at, v, want, t, &x));
    ing_front_tensor_shape(fr, &x, &s);
    *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, value);
    if (!*elems) return no_memory(fr);
    *n = s.n;
    for (uint32_t k = 0; k < s.n; k++)
        ING_TRY(ing_front_tensor_elem(fr, at, &x, &s, k, &(*elems)[k]));
    return ING_OK;
}
