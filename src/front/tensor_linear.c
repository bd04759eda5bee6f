/* Linear algebra on tensors: products, reductions, determinant and inverse, and the table
 * of methods that vectors and matrices have in kernels. Called by call.c for methods and
 * by tensor_op.c for `@`. Elements are combined with the operators for scalars (TENSOR2). */
#include "front/tensor.h"

#include <string.h>

typedef struct method method;
typedef ing_status (*method_fn)(frame *fr, ing_node n, const method *m,
                                const value *self, const call_args *a, value *out);
struct method {
    const char *name;
    method_fn fn;
    uint32_t min, max;
    int op;
};

/* One binary operation of the language; the macro keeps formulas readable. */
#define OP2(op_, l, r, out_) \
    ING_TRY(ing_front_binary(fr, n, ING_AST_##op_, &(l), &(r), &(out_)))

static ing_status elem2(frame *fr, ing_node n, const value *v, const tensor_shape *s,
                        uint32_t i, uint32_t j, value *out) {
    return ing_front_tensor_elem(fr, n, v, s, i * s->cols + j, out);
}

static ing_status need_vector(frame *fr, ing_node n, const char *what, const value *v,
                              tensor_shape *s) {
    if (ing_front_tensor_shape(fr, v, s) && s->rank == 1) return ING_OK;
    return ing_front_fail_at(fr, n, ING_COMPILE,
                             "vectors are made with qd.Vector([..])",
                             "%s is not a vector", what);
}

static ing_status need_square(frame *fr, ing_node n, const value *v, tensor_shape *s) {
    if (ing_front_tensor_shape(fr, v, s) && s->rank == 2 && s->rows == s->cols)
        return ING_OK;
    return ing_front_fail_at(
        fr, n, ING_COMPILE, "use a matrix with as many rows as columns",
        "expected a square matrix, got shape %s", ing_front_shape_text(fr, s));
}

/* The other operand as a tensor that is not read twice from memory. */
static ing_status other(frame *fr, const value *self, const call_args *a, value *out) {
    ing_dtype met = ing_front_tensor_meets(fr, self);
    *out = a->at[0];
    ING_TRY(ing_front_force(fr, a->node[0], out));
    bool ok = false;
    if (ing_front_is_runtime(out)) met = ING_VOID;
    if (!ing_front_is_scalar(out))
        ING_TRY(ing_front_tensor_from(fr, a->node[0], out, met, out, &ok));
    return ING_OK;
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef enum reduction { SUM, MIN, MAX, ANY, ALL } reduction;

static ing_status combine(frame *fr, ing_node n, reduction r, const value *a,
                          const value *b, value *out) {
    switch (r) {
    case SUM: return ing_front_binary(fr, n, ING_AST_Add, a, b, out);
    case MIN:
    case MAX: return ing_front_min_max(fr, n, r == MAX, a, b, out);
    case ANY: return ing_front_binary(fr, n, ING_AST_BitOr, a, b, out);
    case ALL: return ing_front_binary(fr, n, ING_AST_BitAnd, a, b, out);
    }
    return ING_OK;
}

static ing_status reduce_loop(frame *fr, ing_node n, reduction r, const value *v,
                              value *out) {
    tensor_shape s;
    value mem, first;
    ING_TRY(ing_front_tensor_spill(fr, n, v, ING_VOID, &mem));
    ing_front_tensor_shape(fr, &mem, &s);
    ING_TRY(ing_front_tensor_elem(fr, n, &mem, &s, 0, &first));
    value acc = {.kind = V_REF, .type = first.type};
    acc.inst = ing_ir_emit(&fr->b, ING_OP_ALLOCA,
                           ing_ir_type_ref(fr->lo->mod, first.type), 0, 0, 0);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, acc.inst, first.inst, 0);
    tensor_loop l;
    ing_status st = ing_front_tensor_loop(fr, n, s.n - 1, &l);
    uint32_t one = ing_ir_const_int(&fr->b, ING_I32, 1), inst = 0;
    uint32_t k = ing_ir_emit(&fr->b, ING_OP_ADD, ING_I32, l.id, one, 0);
    value x = ing_front_tensor_place_dyn(fr, &mem, &s, k), y = {0};
    if (st == ING_OK) st = combine(fr, n, r, &acc, &x, &y);
    if (st == ING_OK) st = ing_front_convert(fr, n, &y, v_type(&acc), &inst);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, acc.inst, inst, 0);
    ing_front_tensor_loop_end(fr, &l);
    ING_TRY(st);
    return ing_front_load(fr, n, &acc, out);
}

static ing_status reduce(frame *fr, ing_node n, reduction r, const value *given,
                         value *out) {
    tensor_shape s;
    value v = *given, zero = ing_front_int(0);
    if (r == ANY || r == ALL)
        ING_TRY(ing_front_tensor_compare(fr, n, ING_AST_NotEq, given, &zero, &v));
    if (!ing_front_tensor_shape(fr, &v, &s))
        return ing_front_fail_at(
            fr, n, ING_COMPILE,
            "make a vector or matrix of it with qd.Vector([..]) or qd.Matrix([..])",
            "not tensor type: %s", ing_front_describe(fr, given));
    ing_dtype t = s.dtype;
    if (r == SUM && t == ING_U1) { /* counts them */
        ING_TRY(ing_front_arith_type(fr, n, &t));
        ING_TRY(ing_front_tensor_cast(fr, n, &v, t, &v));
        ing_front_tensor_shape(fr, &v, &s);
    }
    if (s.n > TENSOR_UNROLL) return reduce_loop(fr, n, r, &v, out);
    ING_TRY(ing_front_tensor_elem(fr, n, &v, &s, 0, out));
    for (uint32_t k = 1; k < s.n; k++) {
        value x;
        ING_TRY(ing_front_tensor_elem(fr, n, &v, &s, k, &x));
        ING_TRY(combine(fr, n, r, out, &x, out));
    }
    return ing_front_is_runtime(out) ? ing_front_load(fr, n, out, out) : ING_OK;
}

static ing_status m_reduce(frame *fr, ing_node n, const method *m, const value *self,
                           const call_args *a, value *out) {
    (void)a;
    return reduce(fr, n, (reduction)m->op, self, out);
}

/* Sum of the products of equal elements: dot, norm_sqr, frobenius_inner. */
static ing_status inner(frame *fr, ing_node n, const value *x, const value *y,
                        value *out) {
    value both;
    ING_TRY(ing_front_tensor_binary(fr, n, ING_AST_Mult, x, y, &both));
    return reduce(fr, n, SUM, &both, out);
}

static ing_status m_inner(frame *fr, ing_node n, const method *m, const value *self,
                          const call_args *a, value *out) {
    value y;
    tensor_shape s;
    ING_TRY(other(fr, self, a, &y));
    if (m->op) {
        ING_TRY(need_vector(fr, n, "lhs for dot", self, &s));
        ING_TRY(need_vector(fr, n, "rhs for dot", &y, &s));
    }
    return inner(fr, n, self, &y, out);
}

static ing_status call1(frame *fr, ing_node n, ing_intrinsic id, const value *x,
                        value *out) {
    value v = *x;
    call_args a = {.at = &v, .node = &n, .n = 1};
    return ing_front_call_intrinsic(fr, n, id, &a, out);
}

static ing_status eps_argument(frame *fr, const call_args *a, value *out) {
    *out = ing_front_float(0.0);
    if (a->n) *out = a->at[0];
    if (a->n_kw) *out = a->kw[0];
    return ing_front_force(fr, a->n ? a->node[0] : 0, out);
}

enum { NORM, NORM_SQR, NORM_INV, NORMALIZED };

static ing_status m_norm(frame *fr, ing_node n, const method *m, const value *self,
                         const call_args *a, value *out) {
    value sq, eps, x, one = ing_front_int(1);
    ING_TRY(inner(fr, n, self, self, &sq));
    if (m->op == NORM_SQR) {
        *out = sq;
        return ING_OK;
    }
    ING_TRY(eps_argument(fr, a, &eps));
    bool none = eps.kind == V_FLOAT && eps.f == 0;
    if (m->op == NORMALIZED) {
        tensor_shape s;
        ING_TRY(need_vector(fr, n, "the operand of normalized", self, &s));
        ING_TRY(call1(fr, n, ING_IN_SQRT, &sq, &x));
        if (!none) OP2(Add, x, eps, x);
        OP2(Div, one, x, x);
        return ing_front_tensor_binary(fr, n, ING_AST_Mult, &x, self, out);
    }
    if (!none || !ing_dtype_is_float(v_type(&sq))) OP2(Add, sq, eps, sq);
    return call1(fr, n, m->op == NORM ? ING_IN_SQRT : ING_IN_RSQRT, &sq, out);
}

/* ---- products ---------------------------------------------------------------------------------- */

static ing_status m_cross(frame *fr, ing_node n, const method *m, const value *self,
                          const call_args *a, value *out) {
    (void)m;
    value y, l[3], r[3], made[3];
    tensor_shape s, t;
    ING_TRY(other(fr, self, a, &y));
    ING_TRY(need_vector(fr, n, "lhs for cross", self, &s));
    ING_TRY(need_vector(fr, n, "rhs for cross", &y, &t));
    if (s.n != t.n || s.n < 2 || s.n > 3)
        return ing_front_fail_at(fr, n, ING_COMPILE, "use vectors of 2 or 3 elements",
                                 "Cross product of vectors of shape %s and %s",
                                 ing_front_shape_text(fr, &s),
                                 ing_front_shape_text(fr, &t));
    for (uint32_t k = 0; k < s.n; k++) {
        ING_TRY(ing_front_tensor_elem(fr, n, self, &s, k, &l[k]));
        ING_TRY(ing_front_tensor_elem(fr, n, &y, &t, k, &r[k]));
    }
    for (uint32_t k = s.n == 2 ? 2 : 0; k < 3; k++) {
        value p, q;
        uint32_t i = (k + 1) % 3, j = (k + 2) % 3;
        OP2(Mult, l[i], r[j], p);
        OP2(Mult, l[j], r[i], q);
        OP2(Sub, p, q, made[k]);
    }
    *out = made[2];
    if (s.n == 2) return ING_OK;
    s.dtype = ING_VOID;
    return ing_front_tensor_make(fr, n, s, made, out);
}

static ing_status m_outer(frame *fr, ing_node n, const method *m, const value *self,
                          const call_args *a, value *out) {
    (void)m;
    value y;
    tensor_shape s, t;
    ING_TRY(other(fr, self, a, &y));
    ING_TRY(need_vector(fr, n, "lhs for outer_product", self, &s));
    ING_TRY(need_vector(fr, n, "rhs for outer_product", &y, &t));
    value *made = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n * t.n + 1, value);
    if (!made) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    for (uint32_t i = 0; i < s.n; i++)
        for (uint32_t j = 0; j < t.n; j++) {
            value p, q;
            ING_TRY(ing_front_tensor_elem(fr, n, self, &s, i, &p));
            ING_TRY(ing_front_tensor_elem(fr, n, &y, &t, j, &q));
            OP2(Mult, p, q, made[i * t.n + j]);
        }
    return ing_front_tensor_make(fr, n, ing_front_shape_of(2, s.n, t.n, ING_VOID), made,
                                 out);
}

/* Large products: loops over rows and columns of the result, and over the sum. */
static ing_status matmul_loops(frame *fr, ing_node n, const value *x, const value *y,
                               const tensor_shape *s, const tensor_shape *t,
                               const tensor_shape *r, value *out) {
    ing_ir_builder *b = &fr->b;
    tensor_loop cell, sum;
    *out = ing_front_tensor_temp(fr, r);
    ing_status st = ing_front_tensor_loop(fr, n, r->n, &cell);
    uint32_t cols = ing_ir_const_int(b, ING_I32, r->cols);
    uint32_t i = ing_ir_emit(b, ING_OP_DIV, ING_I32, cell.id, cols, 0);
    uint32_t j = ing_ir_emit(b, ING_OP_REM, ING_I32, cell.id, cols, 0);
    value acc = {.kind = V_REF, .type = r->dtype};
    acc.inst =
        ing_ir_emit(b, ING_OP_ALLOCA, ing_ir_type_ref(fr->lo->mod, r->dtype), 0, 0, 0);
    if (st == ING_OK) st = ing_front_tensor_loop(fr, n, s->cols, &sum);
    if (st != ING_OK) return st;
    uint32_t width = ing_ir_const_int(b, ING_I32, s->cols);
    uint32_t tall = ing_ir_const_int(b, ING_I32, t->cols);
    uint32_t at = ing_ir_emit(b, ING_OP_MUL, ING_I32, i, width, 0);
    at = ing_ir_emit(b, ING_OP_ADD, ING_I32, at, sum.id, 0);
    value p = ing_front_tensor_place_dyn(fr, x, s, at), q, both = {0};
    at = ing_ir_emit(b, ING_OP_MUL, ING_I32, sum.id, tall, 0);
    at = ing_ir_emit(b, ING_OP_ADD, ING_I32, at, j, 0);
    q = ing_front_tensor_place_dyn(fr, y, t, at);
    st = ing_front_binary(fr, n, ING_AST_Mult, &p, &q, &both);
    if (st == ING_OK) st = ing_front_binary(fr, n, ING_AST_Add, &acc, &both, &both);
    ing_ir_emit(b, ING_OP_STORE, 0, acc.inst, both.inst, 0);
    ing_front_tensor_loop_end(fr, &sum);
    value place = ing_front_tensor_place_dyn(fr, out, r, cell.id), total = {0};
    if (st == ING_OK) st = ing_front_load(fr, n, &acc, &total);
    ing_ir_emit(b, ING_OP_STORE, 0, place.inst, total.inst, 0);
    ing_front_tensor_loop_end(fr, &cell);
    return st;
}

static ing_status matmul_unrolled(frame *fr, ing_node n, const value *x, const value *y,
                                  const tensor_shape *s, const tensor_shape *t,
                                  tensor_shape r, value *out) {
    value *made = ING_NEW_ARRAY(&fr->lo->arena, (size_t)r.n + 1, value);
    if (!made) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    for (uint32_t i = 0; i < r.rows; i++)
        for (uint32_t j = 0; j < r.cols; j++) {
            value *acc = &made[i * r.cols + j];
            for (uint32_t k = 0; k < s->cols; k++) {
                value p, q, both;
                ING_TRY(elem2(fr, n, x, s, i, k, &p));
                ING_TRY(elem2(fr, n, y, t, k, j, &q));
                OP2(Mult, p, q, both);
                if (k == 0)
                    *acc = both;
                else
                    OP2(Add, *acc, both, *acc);
            }
        }
    r.dtype = ING_VOID;
    return ing_front_tensor_make(fr, n, r, made, out);
}

ing_status ing_front_matmul(frame *fr, ing_node n, const value *l, const value *r,
                            value *out) {
    value x = *l, y = *r;
    tensor_shape s, t;
    bool ok = false;
    ing_dtype t_l = ing_front_is_runtime(l) ? ING_VOID : ing_front_tensor_meets(fr, r);
    ing_dtype t_r = ing_front_is_runtime(r) ? ING_VOID : ing_front_tensor_meets(fr, l);
    if (!ing_front_is_scalar(l)) ING_TRY(ing_front_tensor_from(fr, n, l, t_l, &x, &ok));
    if (ok && !ing_front_is_scalar(r))
        ING_TRY(ing_front_tensor_from(fr, n, r, t_r, &y, &ok));
    if (!ok || !ing_front_tensor_shape(fr, &x, &s) ||
        !ing_front_tensor_shape(fr, &y, &t))
        return ing_front_fail_at(
            fr, n, ING_TYPE,
            "`@` multiplies matrices and vectors; use `*` with numbers",
            "unsupported operand type(s) for '@': %s and %s", ing_front_describe(fr, l),
            ing_front_describe(fr, r));
    bool vector = t.rank == 1;
    if (s.rank == 1 && vector) return inner(fr, n, &x, &y, out);
    bool left = s.rank == 1; /* v @ M: the row of v */
    if (left) s = ing_front_shape_of(2, 1, s.rows, s.dtype);
    if (s.cols != t.rows)
        return ing_front_fail_at(fr, n, ING_COMPILE, "the inner sizes must be equal",
                                 "dimension mismatch between %s and %s for matrix "
                                 "multiplication",
                                 ing_front_shape_text(fr, &s),
                                 ing_front_shape_text(fr, &t));
    tensor_shape made =
        ing_front_shape_of(2, s.rows, t.cols, ing_front_promote(s.dtype, t.dtype));
    ING_TRY(ing_front_arith_type(fr, n, &made.dtype));
    if (vector || left)
        made = ing_front_shape_of(1, vector ? s.rows : t.cols, 1, made.dtype);
    if ((uint64_t)made.n * s.cols <= 2 * TENSOR_UNROLL) {
        tensor_shape grid = ing_front_shape_of(2, s.rows, t.cols, made.dtype);
        value flat;
        if (!vector && !left) return matmul_unrolled(fr, n, &x, &y, &s, &t, grid, out);
        ING_TRY(matmul_unrolled(fr, n, &x, &y, &s, &t, grid, &flat));
        value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)made.n + 1, value);
        if (!items) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
        tensor_shape have;
        ing_front_tensor_shape(fr, &flat, &have);
        for (uint32_t k = 0; k < made.n; k++)
            ING_TRY(ing_front_tensor_elem(fr, n, &flat, &have, k, &items[k]));
        made.dtype = ING_VOID;
        return ing_front_tensor_make(fr, n, made, items, out);
    }
    ING_TRY(ing_front_tensor_spill(fr, n, &x, ING_VOID, &x));
    ING_TRY(ing_front_tensor_spill(fr, n, &y, ING_VOID, &y));
    tensor_shape grid = ing_front_shape_of(2, s.rows, t.cols, made.dtype);
    grid.rank = made.rank;
    if (made.rank == 1) grid = made;
    if (left) grid.cols = t.cols; /* the index of a column is the index of the result */
    ING_TRY(matmul_loops(fr, n, &x, &y, &s, &t, &grid, out));
    out->type = ing_front_tensor_type(fr, &made);
    if (out->inst)
        fr->b.func->insts.at[out->inst].type = ing_ir_type_ref(fr->lo->mod, out->type);
    return ING_OK;
}

/* ---- matrices ------------------------------------------------------------------------------------ */

ing_status ing_front_transpose(frame *fr, ing_node n, const value *v, value *out) {
    tensor_shape s;
    value x = *v;
    if (!ing_front_tensor_shape(fr, v, &s) || s.rank != 2)
        return ing_front_fail_at(
            fr, n, ING_COMPILE, "use outer_product",
            "`transpose()` cannot apply to a vector. If you want something like `a @ "
            "b.transpose()`, write `a.outer_product(b)` instead.");
    tensor_shape r = ing_front_shape_of(2, s.cols, s.rows, s.dtype);
    if (s.n > TENSOR_UNROLL) {
        ING_TRY(ing_front_tensor_spill(fr, n, v, ING_VOID, &x));
        ing_front_tensor_shape(fr, &x, &s);
        r.dtype = s.dtype;
        *out = ing_front_tensor_temp(fr, &r);
        tensor_loop l;
        ing_status st = ing_front_tensor_loop(fr, n, r.n, &l);
        uint32_t cols = ing_ir_const_int(&fr->b, ING_I32, r.cols);
        uint32_t from = ing_ir_const_int(&fr->b, ING_I32, s.cols);
        uint32_t i = ing_ir_emit(&fr->b, ING_OP_DIV, ING_I32, l.id, cols, 0);
        uint32_t j = ing_ir_emit(&fr->b, ING_OP_REM, ING_I32, l.id, cols, 0);
        uint32_t at = ing_ir_emit(&fr->b, ING_OP_MUL, ING_I32, j, from, 0);
        at = ing_ir_emit(&fr->b, ING_OP_ADD, ING_I32, at, i, 0);
        value e = ing_front_tensor_place_dyn(fr, &x, &s, at);
        if (st == ING_OK) st = ing_front_load(fr, n, &e, &e);
        value place = ing_front_tensor_place_dyn(fr, out, &r, l.id);
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.inst, e.inst, 0);
        ing_front_tensor_loop_end(fr, &l);
        return st;
    }
    value made[TENSOR_UNROLL];
    for (uint32_t k = 0; k < r.n; k++)
        ING_TRY(elem2(fr, n, v, &s, k % r.cols, k / r.cols, &made[k]));
    return ing_front_tensor_gather(fr, n, r, made, out);
}

static ing_status m_transpose(frame *fr, ing_node n, const method *m, const value *self,
                              const call_args *a, value *out) {
    (void)m, (void)a;
    return ing_front_transpose(fr, n, self, out);
}

static ing_status m_trace(frame *fr, ing_node n, const method *m, const value *self,
                          const call_args *a, value *out) {
    (void)m, (void)a;
    tensor_shape s = {0};
    ING_TRY(need_square(fr, n, self, &s));
    ING_TRY(elem2(fr, n, self, &s, 0, 0, out));
    for (uint32_t i = 1; i < s.rows; i++) {
        value x;
        ING_TRY(elem2(fr, n, self, &s, i, i, &x));
        OP2(Add, *out, x, *out);
    }
    return ING_OK;
}

typedef struct grid { /* a small square matrix as values */
    uint32_t n;
    value at[4][4];
    value pair[6][6]; /* determinants of two rows and two columns, as they are wanted */
    bool known[6][6];
} grid;

static ing_status read_grid(frame *fr, ing_node n, const value *v, grid *g) {
    tensor_shape s = {0};
    ING_TRY(need_square(fr, n, v, &s));
    g->n = s.rows;
    if (s.rows > 4) return ING_OK;
    for (uint32_t k = 0; k < s.n; k++)
        ING_TRY(ing_front_tensor_elem(fr, n, v, &s, k, &g->at[k / s.cols][k % s.cols]));
    return ING_OK;
}

/* The determinant of two rows r < s and two columns c < d. */
static ing_status det2(frame *fr, ing_node n, grid *g, const uint32_t *row,
                       const uint32_t *col, value *out) {
    static const uint8_t number[4][4] = {{0, 0, 1, 2}, {0, 0, 3, 4}, {0, 0, 0, 5}};
    uint32_t r = row[0], s = row[1], c = col[0], d = col[1];
    uint8_t i = number[r][s], j = number[c][d];
    if (!g->known[i][j]) {
        value p, q;
        OP2(Mult, g->at[r][c], g->at[s][d], p);
        OP2(Mult, g->at[r][d], g->at[s][c], q);
        OP2(Sub, p, q, g->pair[i][j]);
        g->known[i][j] = true;
    }
    *out = g->pair[i][j];
    return ING_OK;
}

/* The determinant of m rows and columns, along the first row; m bounds the recursion. */
static ing_status det(frame *fr, ing_node n, grid *g, const uint32_t *row,
                      const uint32_t *col, uint32_t m, value *out) {
    if (m == 2) return det2(fr, n, g, row, col, out);
    *out = g->at[row[0]][col[0]];
    for (uint32_t j = 0; m > 1 && j < m; j++) {
        uint32_t others[4];
        value minor, term;
        for (uint32_t k = 0, c = 0; k < m; k++)
            if (k != j) others[c++] = col[k];
        ING_TRY(det(fr, n, g, row + 1, others, m - 1, &minor));
        OP2(Mult, g->at[row[0]][col[j]], minor, term);
        if (j == 0)
            *out = term;
        else if (j % 2)
            OP2(Sub, *out, term, *out);
        else
            OP2(Add, *out, term, *out);
    }
    return ING_OK;
}

/* The determinant without row `r` and column `c` (n: without none). */
static ing_status minor_det(frame *fr, ing_node n, grid *g, uint32_t r, uint32_t c,
                            value *out) {
    uint32_t row[4], col[4], m = 0, k = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (i != r) row[m++] = i;
        if (i != c) col[k++] = i;
    }
    return det(fr, n, g, row, col, m, out);
}

static ing_status m_determinant(frame *fr, ing_node n, const method *m,
                                const value *self, const call_args *a, value *out) {
    (void)m, (void)a;
    grid g = {0};
    ING_TRY(read_grid(fr, n, self, &g));
    if (g.n > 4)
        return ing_front_fail_at(fr, n, ING_COMPILE, "use a matrix of up to 4x4",
                                 "Determinants of matrices with sizes >= 5 are not "
                                 "supported");
    return minor_det(fr, n, &g, g.n, g.n, out);
}

static ing_status m_inverse(frame *fr, ing_node n, const method *m, const value *self,
                            const call_args *a, value *out) {
    (void)m, (void)a;
    grid g = {0};
    value one = ing_front_float(1.0), det, scale, made[16], inv;
    ING_TRY(read_grid(fr, n, self, &g));
    if (g.n > 4) return ing_front_inverse_large(fr, n, self, out);
    ING_TRY(minor_det(fr, n, &g, g.n, g.n, &det));
    OP2(Div, one, det, scale);
    for (uint32_t i = 0; i < g.n; i++)
        for (uint32_t j = 0; j < g.n; j++) {
            value *e = &made[j * g.n + i]; /* the adjugate is transposed */
            if (g.n == 1) {
                *e = ing_front_int(1);
                continue;
            }
            ING_TRY(minor_det(fr, n, &g, i, j, e));
            if ((i + j) % 2) ING_TRY(ing_front_unary(fr, n, ING_AST_USub, e, e));
        }
    ING_TRY(ing_front_tensor_make(fr, n, ing_front_shape_of(2, g.n, g.n, ING_VOID),
                                  made, &inv));
    return ing_front_tensor_binary(fr, n, ING_AST_Mult, &scale, &inv, out);
}

/* ---- the rest -------------------------------------------------------------------------------------- */

static ing_status m_fill(frame *fr, ing_node n, const method *m, const value *self,
                         const call_args *a, value *out) {
    (void)m;
    value v = a->at[0];
    ING_TRY(ing_front_force(fr, a->node[0], &v));
    *out = ing_front_none();
    if ((self->kind != V_REF && self->kind != V_TUPLE) || self->fixed)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "copy it into a new variable first",
                                 "this vector cannot be changed");
    return ing_front_tensor_store(fr, n, self, &v);
}

static ing_status m_cast(frame *fr, ing_node n, const method *m, const value *self,
                         const call_args *a, value *out) {
    (void)m;
    value t = a->at[0];
    ing_dtype to = ING_VOID;
    ING_TRY(ing_front_dtype(fr, a->node[0], &t, &to));
    return ing_front_tensor_cast(fr, n, self, to, out);
}

static ing_status m_shape(frame *fr, ing_node n, const method *m, const value *self,
                          const call_args *a, value *out) {
    (void)n, (void)m, (void)a;
    return ing_front_tensor_extents(fr, self, out);
}

static ing_status m_list(frame *fr, ing_node n, const method *m, const value *self,
                         const call_args *a, value *out) {
    (void)m, (void)a;
    value *items;
    uint32_t count = 0;
    bool ok = false;
    ING_TRY(ing_front_tensor_items(fr, n, self, &items, &count, &ok));
    *out = ing_front_seq(V_LIST, items, count);
    return ING_OK;
}

static const method methods[] = {
    {"sum", m_reduce, 0, 0, SUM},
    {"min", m_reduce, 0, 0, MIN},
    {"max", m_reduce, 0, 0, MAX},
    {"any", m_reduce, 0, 0, ANY},
    {"all", m_reduce, 0, 0, ALL},
    {"norm", m_norm, 0, 1, NORM},
    {"norm_sqr", m_norm, 0, 0, NORM_SQR},
    {"norm_inv", m_norm, 0, 1, NORM_INV},
    {"normalized", m_norm, 0, 1, NORMALIZED},
    {"dot", m_inner, 1, 1, 1},
    {"frobenius_inner", m_inner, 1, 1, 0},
    {"cross", m_cross, 1, 1, 0},
    {"outer_product", m_outer, 1, 1, 0},
    {"transpose", m_transpose, 0, 0, 0},
    {"trace", m_trace, 0, 0, 0},
    {"determinant", m_determinant, 0, 0, 0},
    {"inverse", m_inverse, 0, 0, 0},
    {"fill", m_fill, 1, 1, 0},
    {"cast", m_cast, 1, 1, 0},
    {"get_shape", m_shape, 0, 0, 0},
    {"to_list", m_list, 0, 0, 0},
};

static const method *find(const char *name) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, name) == 0) return &methods[i];
    return NULL;
}

bool ing_front_is_tensor_method(const char *name) {
    return find(name) != NULL;
}

static ing_dtype arguments_meet(const frame *fr, const call_args *a) {
    return a->n ? ing_front_tensor_meets(fr, &a->at[0]) : ING_VOID;
}

ing_status ing_front_tensor_method(frame *fr, ing_node n, const value *given,
                                   const char *name, const call_args *a, value *out) {
    const method *m = find(name);
    value self = *given;
    uint32_t count = a->n + a->n_kw;
    if (count < m->min || count > m->max || (a->n_kw && m->fn != m_norm))
        return ing_front_fail_at(fr, n, ING_TYPE,
                                 "leave out the others, and pass them by position",
                                 "%s takes %u argument%s, found %u", name, m->max,
                                 m->max == 1 ? "" : "s", count);
    bool ok = true; /* read once; fill writes */
    if (m->fn != m_fill && self.kind == V_TUPLE)
        ING_TRY(ing_front_tensor_from(fr, n, &self, arguments_meet(fr, a), &self, &ok));
    tensor_shape s;
    if (m->fn != m_fill && self.kind == V_REF &&
        ing_front_tensor_shape(fr, &self, &s) && s.n <= TENSOR_REG)
        ING_TRY(ing_front_tensor_load(fr, n, &self, &self));
    fr->b.loc = n;
    return m->fn(fr, n, m, &self, a, out);
}
