/* Operators and functions on tensors: each is the one for scalars, applied to every
 * element (TENSOR2). Called by arith.c, intrin.c and assign.c when an operand is a vector or a
 * matrix. */
#include "front/tensor.h"

/* ---- operators ------------------------------------------------------------------------------ */

static ing_status binary_elem(frame *fr, ing_node at, void *self, const value *in,
                              value *out) {
    return ing_front_binary(fr, at, *(ing_front_op *)self, &in[0], &in[1], out);
}

ing_status ing_front_tensor_binary(frame *fr, ing_node at, ing_front_op op,
                                   const value *l, const value *r, value *out) {
    if (op == ING_AST_MatMult) return ing_front_matmul(fr, at, l, r, out);
    value in[2] = {*l, *r};
    return ing_front_tensor_map(fr, at, in, 2, binary_elem, &op, out);
}

static ing_status unary_elem(frame *fr, ing_node at, void *self, const value *in,
                             value *out) {
    return ing_front_unary(fr, at, *(ing_front_op *)self, &in[0], out);
}

ing_status ing_front_tensor_unary(frame *fr, ing_node at, ing_front_op op,
                                  const value *v, value *out) {
    return ing_front_tensor_map(fr, at, v, 1, unary_elem, &op, out);
}

static ing_status compare_elem(frame *fr, ing_node at, void *self, const value *in,
                               value *out) {
    return ing_front_compare(fr, at, *(ing_front_op *)self, &in[0], &in[1], out);
}

ing_status ing_front_tensor_compare(frame *fr, ing_node at, ing_front_op op,
                                    const value *l, const value *r, value *out) {
    value in[2] = {*l, *r};
    return ing_front_tensor_map(fr, at, in, 2, compare_elem, &op, out);
}

static ing_status select_elem(frame *fr, ing_node at, void *self, const value *in,
                              value *out) {
    return ing_front_select_values(fr, at, *(uint32_t *)self, &in[0], &in[1], out);
}

ing_status ing_front_tensor_select(frame *fr, ing_node at, uint32_t cond,
                                   const value *a, const value *b, value *out) {
    value in[2] = {*a, *b};
    return ing_front_tensor_map(fr, at, in, 2, select_elem, &cond, out);
}

/* ---- functions -------------------------------------------------------------------------------- */

/* Which intrinsics take their arguments element by element. */
static bool is_elementwise(ing_intrinsic id, uint32_t n_args) {
    switch (id) {
    case ING_IN_PY_MIN:
    case ING_IN_PY_MAX:
    case ING_IN_MIN:
    case ING_IN_MAX: return n_args > 1;
    case ING_IN_PY_ABS:
    case ING_IN_PY_INT:
    case ING_IN_PY_FLOAT:
    case ING_IN_PY_BOOL:
    case ING_IN_PY_POW:
    case ING_IN_PY_ROUND:
    case ING_IN_CAST:
    case ING_IN_BIT_CAST:
    case ING_IN_SELECT:
    case ING_IN_ATAN2:
    case ING_IN_ABS:
    case ING_IN_POW:
    case ING_IN_RAW_DIV:
    case ING_IN_RAW_MOD:
    case ING_IN_POPCNT:
    case ING_IN_CLZ:
    case ING_IN_FFS:
    case ING_IN_BIT_SHR:
    case ING_IN_ZERO:
    case ING_IN_ONE: return true;
    default: return id >= ING_IN_SIN && id <= ING_IN_TRUNC;
    }
}

/* sum(v), all(v == w): the method of that name. */
static const char *reduction_of(ing_intrinsic id) {
    switch (id) {
    case ING_IN_PY_SUM: return "sum";
    case ING_IN_PY_ANY: return "any";
    case ING_IN_PY_ALL: return "all";
    case ING_IN_PY_MIN:
    case ING_IN_MIN: return "min";
    case ING_IN_PY_MAX:
    case ING_IN_MAX: return "max";
    default: return NULL;
    }
}

/* `and`, `or` of vectors: truth by element; both sides are evaluated. */
ing_status ing_front_tensor_logical(frame *fr, ing_node at, bool is_and, const value *l,
                                    const value *r, value *out) {
    value zero = ing_front_int(0), x, y;
    ING_TRY(ing_front_compare(fr, at, ING_AST_NotEq, l, &zero, &x));
    ING_TRY(ing_front_compare(fr, at, ING_AST_NotEq, r, &zero, &y));
    return ing_front_binary(fr, at, is_and ? ING_AST_BitAnd : ING_AST_BitOr, &x, &y,
                            out);
}

typedef struct lifted {
    ing_node node;
    ing_intrinsic id;
    const call_args *a;
} lifted;

static ing_status lifted_elem(frame *fr, ing_node at, void *self, const value *in,
                              value *out) {
    (void)at;
    const lifted *l = self;
    value args[TENSOR_MAX_IN];
    call_args a = *l->a;
    for (uint32_t i = 0; i < a.n; i++) args[i] = in[i];
    a.at = args;
    return ing_front_call_intrinsic(fr, l->node, l->id, &a, out);
}

static bool is_atomic(ing_intrinsic id) {
    return id >= ING_IN_ATOMIC_ADD && id <= ING_IN_ATOMIC_EXCHANGE;
}

/* The first operand is a place: every element is updated on its own. */
static ing_status atomic_call(frame *fr, ing_node n, ing_intrinsic id,
                              const call_args *a, value *out) {
    static const ing_ir_atomic ops[] = {
        ING_IR_ATOMIC_ADD, ING_IR_ATOMIC_SUB, ING_IR_ATOMIC_MUL,
        ING_IR_ATOMIC_MIN, ING_IR_ATOMIC_MAX, ING_IR_ATOMIC_AND,
        ING_IR_ATOMIC_OR,  ING_IR_ATOMIC_XOR, ING_IR_ATOMIC_XCHG};
    value ref = a->at[0], v = a->at[1];
    ING_TRY(ing_front_force(fr, a->node[0], &ref));
    ING_TRY(ing_front_force(fr, a->node[1], &v));
    return ing_front_tensor_atomic(fr, n, &ref, &v, ops[id - ING_IN_ATOMIC_ADD], out);
}

ing_status ing_front_tensor_lift(frame *fr, ing_node n, ing_intrinsic id,
                                 const call_args *a, value *out, bool *done) {
    *done = false;
    bool any = false;
    const char *method = a->n == 1 && !a->n_kw ? reduction_of(id) : NULL;
    if (method) {
        value v = a->at[0];
        call_args none = {0};
        ING_TRY(ing_front_force(fr, a->node[0], &v));
        *done = ing_front_is_tensor(fr, &v);
        return *done ? ing_front_tensor_method(fr, n, &v, method, &none, out) : ING_OK;
    }
    if (!is_atomic(id) && !is_elementwise(id, a->n)) return ING_OK;
    for (uint32_t i = 0; i < a->n && !any; i++) {
        value v = a->at[i];
        ING_TRY(ing_front_force(fr, a->node[i], &v));
        any = ing_front_is_tensor(fr, &v);
        if (any && i && is_atomic(id) && !ing_front_is_tensor(fr, &a->at[0]))
            any = false;
    }
    if (!any) return ING_OK;
    *done = true;
    if (is_atomic(id)) return a->n == 2 ? atomic_call(fr, n, id, a, out) : ING_OK;
    lifted l = {n, id, a};
    value in[TENSOR_MAX_IN];
    if (a->n > TENSOR_MAX_IN)
        return ing_front_fail_at(fr, n, ING_TYPE, "nest the calls",
                                 "more than %d vectors at once", TENSOR_MAX_IN);
    for (uint32_t i = 0; i < a->n; i++) {
        in[i] = a->at[i];
        ING_TRY(ing_front_force(fr, a->node[i], &in[i]));
    }
    return ing_front_tensor_map(fr, n, in, a->n, lifted_elem, &l, out);
}

/* ---- updates ------------------------------------------------------------------------------------ */

static ing_status atomic_places(frame *fr, ing_node at, const value *ref,
                                const tensor_shape *s, const value *v, ing_ir_atomic op,
                                value *old) {
    tensor_shape have = {0};
    bool tensor = ing_front_tensor_shape(fr, v, &have);
    value *was = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s->n + 1, value);
    if (!was) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    for (uint32_t k = 0; k < s->n; k++) {
        value place = ing_front_tensor_place(fr, ref, s, k), x = *v;
        if (place.kind != V_REF || place.fixed)
            return ing_front_fail_at(fr, at, ING_SYNTAX,
                                     "copy it into a new variable first",
                                     "elements of this vector cannot be assigned");
        if (tensor) ING_TRY(ing_front_tensor_elem(fr, at, v, &have, k, &x));
        ING_TRY(ing_front_atomic_op(fr, at, &place, &x, op, &was[k]));
    }
    return ing_front_tensor_make(fr, at, *s, was, old);
}

static ing_status atomic_loop(frame *fr, ing_node at, const value *ref,
                              const tensor_shape *s, const value *given,
                              ing_ir_atomic op, value *old) {
    tensor_shape have = {0};
    value v = *given, was = {0};
    bool tensor = ing_front_tensor_shape(fr, &v, &have);
    if (tensor) {
        ING_TRY(ing_front_tensor_spill(fr, at, &v, ING_VOID, &v));
        ing_front_tensor_shape(fr, &v, &have);
    }
    *old = ing_front_tensor_temp(fr, s);
    tensor_loop l;
    ing_status st = ing_front_tensor_loop(fr, at, s->n, &l);
    value place = ing_front_tensor_place_dyn(fr, ref, s, l.id), x = v;
    if (tensor) x = ing_front_tensor_place_dyn(fr, &v, &have, l.id);
    if (st == ING_OK) st = ing_front_atomic_op(fr, at, &place, &x, op, &was);
    value keep = ing_front_tensor_place_dyn(fr, old, s, l.id);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, keep.inst, was.inst, 0);
    ing_front_tensor_loop_end(fr, &l);
    return st;
}

ing_status ing_front_tensor_atomic(frame *fr, ing_node at, const value *ref,
                                   const value *given, ing_ir_atomic op, value *old) {
    tensor_shape s, have;
    value v = *given;
    bool ok = true;
    if (!ing_front_tensor_shape(fr, ref, &s))
        return ing_front_fail_at(fr, at, ING_TYPE,
                                 "add its sum() or one of its elements",
                                 "a vector cannot be added to a number in place");
    if (!ing_front_is_scalar(&v))
        ING_TRY(ing_front_tensor_from(
            fr, at, &v,
            ing_front_is_runtime(&v) ? ING_VOID : ing_front_tensor_meets(fr, ref), &v,
            &ok));
    else if (v.kind == V_REF) /* v -= v[0]: read once, before an element changes */
        ING_TRY(ing_front_load(fr, at, &v, &v));
    bool tensor = ing_front_tensor_shape(fr, &v, &have);
    if (!ok ||
        (tensor && (have.rank != s.rank || have.rows != s.rows || have.cols != s.cols)))
        return ing_front_fail_at(fr, at, ING_TYPE, "the shapes must be equal",
                                 "Dimension mismatch between %s and %s",
                                 ing_front_describe(fr, ref),
                                 ing_front_describe(fr, given));
    if (s.n > TENSOR_UNROLL && ref->kind == V_REF)
        return atomic_loop(fr, at, ref, &s, &v, op, old);
    /* v.yzx += v: all of it, before an element changes */
    if (tensor) ING_TRY(ing_front_tensor_load(fr, at, &v, &v));
    return atomic_places(fr, at, ref, &s, &v, op, old);
}
