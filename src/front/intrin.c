/* Intrinsics: what the functions of the language itself mean. One table from ids to a
 * function, the count of arguments and an operation; static arguments are computed as
 * Python would. Called by call.c. */
#include "front/tensor.h"
#include "base/libm.h"

#include <string.h>

typedef struct intrin intrin;
typedef ing_status (*intrin_fn)(frame *fr, ing_node n, const intrin *in,
                                const call_args *a, value *out);

struct intrin {
    intrin_fn fn;
    uint8_t min, max; /* positional arguments; max 255 = any */
    uint16_t op;      /* ing_op or ing_ir_atomic */
    double (*math)(double);
    bool keywords; /* takes some */
};

/* ---- helpers -------------------------------------------------------------------------------- */

static ing_status arg_forced(frame *fr, const call_args *a, uint32_t i, value *out) {
    *out = a->at[i];
    return ing_front_force(fr, a->node[i], out);
}

static const value *keyword(const frame *fr, const call_args *a, const char *name) {
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (strcmp(ing_front_atom_text(fr, a->kw_name[i]), name) == 0) return &a->kw[i];
    return NULL;
}

static bool is_literal(const value *v) {
    return v->kind == V_INT || v->kind == V_FLOAT || v->kind == V_BOOL;
}

static double literal_float(const value *v) {
    return v->kind == V_FLOAT ? v->f : v->wide ? (double)(uint64_t)v->i : (double)v->i;
}

/* ---- math -------------------------------------------------------------------------------------- */

static double rsqrt_of(double x) {
    return 1 / sqrt(x);
}

/* x rounded, and converted when a dtype is given: qd.floor(x, qd.i32). */
static ing_status convert_to_second(frame *fr, const call_args *a, value *v) {
    const value *kw = keyword(fr, a, "dtype");
    if (a->n < 2 && !kw) return ING_OK;
    value given = kw ? *kw : a->at[1];
    ing_node at = kw ? a->kw_node[0] : a->node[1];
    ING_TRY(ing_front_force(fr, at, &given));
    if (given.kind == V_NONE) return ING_OK;
    ing_dtype t = ING_VOID;
    uint32_t inst = 0;
    ING_TRY(ing_front_dtype(fr, at, &given, &t));
    ING_TRY(ing_front_convert(fr, a->node[0], v, t, &inst));
    *v = ing_front_rt(inst, t);
    return ING_OK;
}

static bool needs_float(ing_op op) {
    return op != ING_OP_SQRT && op != ING_OP_EXP && op != ING_OP_LOG;
}

static ing_status in_math(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    value v;
    ING_TRY(arg_forced(fr, a, 0, &v));
    if (is_literal(&v) && !v.dtype) {
        *out = ing_front_float(in->math(literal_float(&v)));
        return convert_to_second(fr, a, out);
    }
    value given = v;
    ING_TRY(ing_front_load(fr, a->node[0], &v, &v));
    value loaded = v;
    ing_dtype t = v_type(&v);
    if (!ing_dtype_is_float(t)) {
        if (needs_float((ing_op)in->op))
            return ing_front_fail_at(
                fr, a->node[0], ING_TYPE, "convert it: qd.cast(x, qd.f32)",
                "'%s' takes real inputs only, however '%s' is provided",
                ing_op_get(in->op)->text, ing_dtype_name(t));
        int64_t fp = 0;
        ING_TRY(ing_front_config_get(fr, n, ING_SET_default_fp, &fp));
        v.inst = ing_front_emit_cast(fr, v.inst, t, (ing_dtype)fp);
        t = (ing_dtype)fp;
    }
    *out = ing_front_rt(ing_ir_emit(&fr->b, in->op, t, v.inst, 0, 0), t);
    ing_front_put_wide(fr, (ing_op)in->op, &given, &loaded, NULL, NULL, out);
    return convert_to_second(fr, a, out);
}

static ing_status in_math2(frame *fr, ing_node n, const intrin *in, const call_args *a,
                           value *out) {
    (void)n;
    value y, x;
    ING_TRY(arg_forced(fr, a, 0, &y));
    ING_TRY(arg_forced(fr, a, 1, &x));
    if (is_literal(&y) && is_literal(&x)) {
        double p = literal_float(&y), q = literal_float(&x);
        *out = ing_front_float(in->op == ING_OP_HYPOT ? hypot(p, q) : atan2(p, q));
        return ING_OK;
    }
    value given[2] = {y, x};
    ING_TRY(
        ing_front_load_both(fr, a->node[0], &given[0], a->node[1], &given[1], &y, &x));
    bool wide = v_type(&y) == ING_F64 || v_type(&x) == ING_F64;
    ing_dtype t = wide ? ING_F64 : ING_F32;
    uint32_t l = ing_front_emit_cast(fr, y.inst, v_type(&y), t);
    uint32_t r = ing_front_emit_cast(fr, x.inst, v_type(&x), t);
    *out = ing_front_rt(ing_ir_emit(&fr->b, in->op, t, l, r, 0), t);
    ing_front_put_wide(fr, (ing_op)in->op, &given[0], &y, &given[1], &x, out);
    return ING_OK;
}

static ing_status in_abs(frame *fr, ing_node n, const intrin *in, const call_args *a,
                         value *out) {
    value v;
    ING_TRY(arg_forced(fr, a, 0, &v));
    if (is_literal(&v) && !v.dtype) {
        if (v.kind == V_FLOAT)
            *out = ing_front_float(fabs(v.f));
        else {
            bool done = false;
            *out = v.kind == V_BOOL ? ing_front_int(v.i) : v;
            if (v.i < 0 && !v.wide)
                return ing_front_fold_unary(fr, n, ING_AST_USub, &v, out, &done);
        }
        return ING_OK;
    }
    value given = v;
    ING_TRY(ing_front_load(fr, a->node[0], &v, &v));
    ing_dtype t = v_type(&v);
    ING_TRY(ing_front_arith_type(fr, n, &t));
    v.inst = ing_front_emit_cast(fr, v.inst, v_type(&v), t);
    *out = ing_front_rt(ing_ir_emit(&fr->b, in->op, t, v.inst, 0, 0), t);
    ing_front_put_wide(fr, (ing_op)in->op, &given, &v, NULL, NULL, out);
    return ING_OK;
}

/* Counts of bits are i32, whatever they are counted in. */
static ing_status in_bits(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    (void)n;
    value v;
    ING_TRY(arg_forced(fr, a, 0, &v));
    ING_TRY(ing_front_load(fr, a->node[0], &v, &v));
    if (ing_dtype_is_float(v_type(&v)))
        return ing_front_fail_at(
            fr, a->node[0], ING_TYPE, "use an integer, or qd.bit_cast",
            "'%s' takes integral inputs only, however '%s' is provided",
            ing_op_get(in->op)->text, ing_dtype_name(v_type(&v)));
    uint32_t r = ing_ir_emit(&fr->b, in->op, v.type, v.inst, 0, 0);
    *out = ing_front_rt(ing_front_emit_cast(fr, r, v_type(&v), ING_I32), ING_I32);
    return ING_OK;
}

/* Zero or one, of the type of the argument. */
static ing_status in_number_like(frame *fr, ing_node n, const intrin *in,
                                 const call_args *a, value *out) {
    (void)n;
    value v;
    ING_TRY(arg_forced(fr, a, 0, &v));
    if (!is_literal(&v)) ING_TRY(ing_front_load(fr, a->node[0], &v, &v));
    ing_dtype t = is_literal(&v) ? (ing_dtype)v.dtype : v_type(&v);
    bool one = in->op == ING_IN_ONE;
    bool is_float = t ? ing_dtype_is_float(t) : v.kind == V_FLOAT;
    *out = is_float ? ing_front_float(one) : ing_front_int(one);
    out->dtype = (uint8_t)t;
    return ING_OK;
}

/* Python's round() of a constant is an int, halves to even; at run time it is qd.round. */
static ing_status in_py_round(frame *fr, ing_node n, const intrin *in,
                              const call_args *a, value *out) {
    value v;
    ING_TRY(arg_forced(fr, a, 0, &v));
    if (v.kind != V_FLOAT || v.dtype) {
        if (!is_literal(&v) || v.dtype) return in_math(fr, n, in, a, out);
        *out = v.kind == V_BOOL ? ing_front_int(v.i) : v;
        return ING_OK;
    }
    if (!(fabs(v.f) < 9e18))
        return ing_front_fail_at(fr, n, ING_VALUE, "keep it a float",
                                 "this number does not fit in an integer");
    *out = ing_front_int((int64_t)nearbyint(v.f));
    return ING_OK;
}

static ing_status in_min_max(frame *fr, ing_node n, const intrin *in,
                             const call_args *a, value *out) {
    value *items = a->at;
    uint32_t count = a->n;
    bool ok = true;
    ING_TRY(arg_forced(fr, a, 0, out));
    if (a->n == 1 && !ing_front_is_scalar(out)) {
        ING_TRY(ing_front_items(fr, n, out, &items, &count, &ok));
        if (!ok || !count)
            return ing_front_fail_at(fr, a->node[0], ING_TYPE, "give it two numbers",
                                     "numbers are needed here; this is %s",
                                     ing_front_describe(fr, out));
        *out = items[0];
        ING_TRY(ing_front_force(fr, n, out));
    }
    if (!ing_front_is_scalar(out))
        return ing_front_load(fr, a->node[0], out, out); /* says why */
    for (uint32_t i = 1; i < count; i++) {
        value v = items[i];
        ing_node at = items == a->at ? a->node[i] : n;
        ING_TRY(ing_front_force(fr, at, &v));
        ING_TRY(ing_front_min_max(fr, at, in->op == ING_OP_MAX, out, &v, out));
    }
    if (ing_front_is_runtime(out)) ING_TRY(ing_front_load(fr, n, out, out));
    return ING_OK;
}

static ing_status in_pow(frame *fr, ing_node n, const intrin *in, const call_args *a,
                         value *out) {
    (void)in;
    value x, y;
    ING_TRY(arg_forced(fr, a, 0, &x));
    ING_TRY(arg_forced(fr, a, 1, &y));
    return ing_front_binary(fr, n, ING_AST_Pow, &x, &y, out);
}

/* Division as the machine does it: towards zero. */
static ing_status in_raw(frame *fr, ing_node n, const intrin *in, const call_args *a,
                         value *out) {
    value x, y;
    ING_TRY(arg_forced(fr, a, 0, &x));
    ING_TRY(arg_forced(fr, a, 1, &y));
    value given[2] = {x, y};
    ING_TRY(
        ing_front_load_both(fr, a->node[0], &given[0], a->node[1], &given[1], &x, &y));
    ing_dtype t = ing_front_promote(v_type(&x), v_type(&y));
    ING_TRY(ing_front_arith_type(fr, n, &t));
    uint32_t l = ing_front_emit_cast(fr, x.inst, v_type(&x), t);
    uint32_t r = ing_front_emit_cast(fr, y.inst, v_type(&y), t);
    ING_TRY(ing_front_check_divisor(fr, n, (ing_op)in->op, t, r));
    *out = ing_front_rt(ing_ir_emit(&fr->b, in->op, t, l, r, 0), t);
    ing_front_put_wide(fr, (ing_op)in->op, &given[0], &x, &given[1], &y, out);
    return ING_OK;
}

/* x >> y without the sign: zeros come in from the left. */
static ing_status in_bit_shr(frame *fr, ing_node n, const intrin *in,
                             const call_args *a, value *out) {
    value x, y;
    ING_TRY(arg_forced(fr, a, 0, &x));
    ING_TRY(arg_forced(fr, a, 1, &y));
    value given[2] = {x, y};
    ING_TRY(
        ing_front_load_both(fr, a->node[0], &given[0], a->node[1], &given[1], &x, &y));
    ing_dtype t = v_type(&x);
    ING_TRY(ing_front_arith_type(fr, n, &t));
    if (ing_dtype_is_float(t) || ing_dtype_is_float(v_type(&y)))
        return ing_front_fail_at(
            fr, n, ING_TYPE, "use integers",
            "unsupported operand type(s) for 'bit_shr': '%s' and '%s'",
            ing_dtype_name(t), ing_dtype_name(v_type(&y)));
    x.inst = ing_front_emit_cast(fr, x.inst, v_type(&x), t);
    uint32_t count = ing_front_emit_cast(fr, y.inst, v_type(&y), t);
    *out = ing_front_rt(ing_ir_emit(&fr->b, in->op, t, x.inst, count, 0), t);
    return ING_OK;
}

/* ---- conversions ----------------------------------------------------------------------------------- */

static ing_status static_number(frame *fr, ing_node at, ing_intrinsic id,
                                const value *v, value *out) {
    if (id == ING_IN_PY_BOOL) {
        *out = ing_front_bool(v->kind == V_FLOAT ? v->f != 0 : v->i != 0);
    } else if (id == ING_IN_PY_FLOAT) {
        *out = ing_front_float(literal_float(v));
    } else if (v->kind == V_FLOAT) {
        if (!(v->f > -9.3e18 && v->f < 9.2e18))
            return ing_front_fail_at(fr, at, ING_VALUE, "keep it a float",
                                     "this number does not fit in an integer");
        *out = ing_front_int((int64_t)v->f);
    } else {
        *out = *v;
        out->kind = V_INT;
        out->dtype = 0;
    }
    return ING_OK;
}

static ing_status in_number(frame *fr, ing_node n, const intrin *in, const call_args *a,
                            value *out) {
    ing_intrinsic id = (ing_intrinsic)in->op;
    value v;
    ING_TRY(arg_forced(fr, a, 0, &v));
    if (is_literal(&v) && !v.dtype) return static_number(fr, n, id, &v, out);
    value fn = {.kind = V_INTRINSIC, .tag = (uint16_t)id};
    ing_dtype t = ING_VOID;
    uint32_t inst = 0;
    ING_TRY(ing_front_dtype(fr, n, &fn, &t));
    ING_TRY(ing_front_convert(fr, a->node[0], &v, t, &inst));
    *out = ing_front_rt(inst, t);
    return ING_OK;
}

static ing_status in_cast(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    value v, type;
    ing_dtype t = ING_VOID;
    uint32_t inst = 0;
    ING_TRY(arg_forced(fr, a, 0, &v));
    ING_TRY(arg_forced(fr, a, 1, &type));
    if (v.kind == V_DTYPE && type.kind != V_DTYPE)
        return ing_front_fail_at(fr, n, ING_TYPE, "the dtype comes last: (x, dtype)",
                                 "%s is to be converted to %s",
                                 ing_front_describe(fr, &v),
                                 ing_front_describe(fr, &type));
    ING_TRY(ing_front_dtype(fr, a->node[1], &type, &t));
    if (in->op == ING_OP_CAST) {
        ING_TRY(ing_front_convert(fr, a->node[0], &v, t, &inst));
        *out = ing_front_rt(inst, t);
        return ING_OK;
    }
    ING_TRY(ing_front_load(fr, a->node[0], &v, &v));
    if (ing_dtype_bytes(t) != ing_dtype_bytes(v_type(&v)))
        return ing_front_fail_at(fr, n, ING_TYPE, "use a dtype of the same size",
                                 "qd.bit_cast from %s to %s: the sizes differ",
                                 ing_dtype_name(v_type(&v)), ing_dtype_name(t));
    *out = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_BITCAST, t, v.inst, 0, 0), t);
    return ING_OK;
}

static ing_status in_select(frame *fr, ing_node n, const intrin *in, const call_args *a,
                            value *out) {
    (void)in;
    value c, x, y;
    uint32_t cond = 0;
    bool ok = false; /* what is no vector says so itself */
    ING_TRY(arg_forced(fr, a, 0, &c));
    ING_TRY(arg_forced(fr, a, 1, &x));
    ING_TRY(arg_forced(fr, a, 2, &y));
    ING_TRY(ing_front_condition(fr, a->node[0], &c, "qd.select", &cond));
    /* Tuples and lists stand for vectors here. */
    if (x.kind == V_TUPLE || x.kind == V_LIST)
        ING_TRY(ing_front_tensor_from(fr, a->node[1], &x, ING_VOID, &x, &ok));
    if (y.kind == V_TUPLE || y.kind == V_LIST)
        ING_TRY(ing_front_tensor_from(fr, a->node[2], &y, ING_VOID, &y, &ok));
    return ing_front_select_values(fr, n, cond, &x, &y, out);
}

/* ---- compile time ------------------------------------------------------------------------------------- */

static ing_status in_static(frame *fr, ing_node n, const intrin *in, const call_args *a,
                            value *out) {
    (void)n, (void)in;
    for (uint32_t i = 0; i < a->n; i++) {
        ING_TRY(ing_front_force(fr, a->node[i], &a->at[i]));
        if (!ing_front_is_static(&a->at[i]) &&
            !(a->at[i].kind == V_TUPLE || a->at[i].kind == V_LIST))
            return ing_front_fail_at(
                fr, a->node[i], ING_COMPILE,
                ing_front_is_tensor(fr, &a->at[i])
                    ? "its size is known, its elements are not: for i in "
                      "qd.static(range(v.n)), with v[i]"
                    : "it must not depend on run-time values: make the parameter "
                      "qd.template(), or leave out qd.static",
                "the arguments of qd.static must be compile-time constants; this is %s",
                ing_front_describe(fr, &a->at[i]));
    }
    *out = a->n == 1 ? a->at[0] : ing_front_seq(V_TUPLE, a->at, a->n);
    out->from_static = true;
    return ING_OK;
}

static ing_status in_static_assert(frame *fr, ing_node n, const intrin *in,
                                   const call_args *a, value *out) {
    (void)in;
    value c, msg = {0};
    bool truth = false;
    ING_TRY(arg_forced(fr, a, 0, &c));
    if (ing_front_is_runtime(&c))
        return ing_front_fail_at(fr, a->node[0], ING_TYPE,
                                 "use assert for values of the run time",
                                 "Static assert with non-static condition");
    ING_TRY(ing_front_truth(fr, a->node[0], &c, &truth));
    if (a->n > 1) ING_TRY(arg_forced(fr, a, 1, &msg));
    *out = (value){.kind = V_NONE};
    if (truth) return ING_OK;
    return ing_front_fail_at(
        fr, n, ING_COMPILE, "change what it is about, or the assertion",
        "Static assertion failed%s%s", msg.kind == V_STR ? ": " : "",
        msg.kind == V_STR ? msg.s : "");
}

static ing_status in_never(frame *fr, ing_node n, const intrin *in, const call_args *a,
                           value *out) {
    (void)in;
    value why;
    ING_TRY(arg_forced(fr, a, 0, &why));
    *out = (value){.kind = V_NONE};
    if (why.kind == V_STR) return ing_front_never(fr, n, &why);
    return ing_front_fail_at(fr, a->node[0], ING_TYPE, "give it as a string",
                             "the reason must be a string; this is %s",
                             ing_front_describe(fr, &why));
}

static ing_status in_iter(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    for (uint32_t i = 0; i < a->n; i++)
        ING_TRY(ing_front_force(fr, a->node[i], &a->at[i]));
    *out = ing_front_seq(V_ITER, a->at, a->n);
    (void)n, (void)in;
    return ING_OK;
}

/* Of the first axis, as in Python; *ok: it has one. */
static ing_status len_of_array(frame *fr, ing_node n, const value *v, value *out,
                               bool *ok) {
    bool field = v->kind == V_BUNDLE || ing_front_field_place(fr, v);
    *ok = false;
    if (v->kind == V_VIEW) {
        *ok = true;
        return ing_front_view_attr(fr, n, v, "size", out);
    }
    value first = *v;
    if (v->kind == V_BUNDLE) ING_TRY(ing_front_bundle_first(fr, n, v, &first, &field));
    if (field) {
        value shape;
        ING_TRY(ing_front_field_attr(fr, n, v, "shape", &shape, ok));
        *ok = *ok && shape.kind == V_TUPLE && shape.n;
        if (*ok) *out = shape.items[0];
        return ING_OK;
    }
    *ok = first.n > 0;
    if (*ok)
        *out = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_DIM, ING_I32, first.inst, 0, 0),
                            ING_I32);
    return ING_OK;
}

static ing_status in_len(frame *fr, ing_node n, const intrin *in, const call_args *a,
                         value *out) {
    (void)in;
    value v, *items;
    uint32_t count = 0;
    bool ok = false;
    ING_TRY(arg_forced(fr, a, 0, &v));
    if (v.kind == V_STR) {
        *out = ing_front_int((int64_t)ing_front_str_len(v.s, v.n));
        return ING_OK;
    }
    if (v.kind == V_SHAPE || v.kind == V_STRUCT) {
        *out = ing_front_int(v.n);
        return ING_OK;
    }
    if (v.kind == V_SEEN || ing_front_is_constant(fr, &v)) {
        ING_TRY(ing_front_derive(fr, n, v.gref, ING_DERIVE_LEN, 0, out));
        if (out->kind == V_INT) {
            out->gref = 0;
            return ING_OK;
        }
    }
    bool array = v.kind == V_ARRAY || v.kind == V_BUNDLE || v.kind == V_VIEW;
    if (array) ING_TRY(len_of_array(fr, n, &v, out, &ok));
    if (ok) return ING_OK;
    if (!array && (v.kind != V_ITER || v.tag == ING_IN_PY_RANGE))
        ING_TRY(ing_front_items(fr, n, &v, &items, &count, &ok));
    if (!ok)
        return ing_front_fail_at(fr, a->node[0], ING_TYPE,
                                 array ? "it has no axes: read it with a[()]"
                                 : ing_front_is_scalar(&v)
                                     ? "a number has none: range(n) counts to it"
                                     : "tuples, lists, dicts and arrays have one",
                                 "%s has no length", ing_front_describe(fr, &v));
    *out = ing_front_int(count);
    return ING_OK;
}

static ing_status in_sequence(frame *fr, ing_node n, const intrin *in,
                              const call_args *a, value *out) {
    value v, *items = NULL;
    uint32_t count = 0;
    bool ok = true;
    if (a->n) {
        ING_TRY(arg_forced(fr, a, 0, &v));
        ING_TRY(ing_front_sequence(fr, n, &v, &items, &count, &ok));
        if (!ok)
            return ing_front_fail_at(
                fr, a->node[0], ING_TYPE, ing_front_sequence_remedy(&v),
                "%s cannot be unpacked", ing_front_describe(fr, &v));
    }
    *out = ing_front_seq(in->op == V_LIST ? V_LIST : V_TUPLE, items, count);
    return ING_OK;
}

static ing_status in_fold(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    ing_intrinsic id = (ing_intrinsic)in->op;
    value v, *items;
    uint32_t count = 0;
    bool ok = false;
    ING_TRY(arg_forced(fr, a, 0, &v));
    ING_TRY(ing_front_items(fr, n, &v, &items, &count, &ok));
    if (!ok)
        return ing_front_fail_at(fr, a->node[0], ING_TYPE, "add up in a loop",
                                 "a compile-time sequence is needed here; this is %s",
                                 ing_front_describe(fr, &v));
    *out = id == ING_IN_PY_SUM ? ing_front_int(0) : ing_front_bool(id == ING_IN_PY_ALL);
    for (uint32_t i = 0; i < count; i++) {
        value item = items[i];
        bool truth = false;
        ING_TRY(ing_front_force(fr, n, &item));
        if (id == ING_IN_PY_SUM) {
            ING_TRY(ing_front_binary(fr, n, ING_AST_Add, out, &item, out));
            continue;
        }
        ING_TRY(ing_front_truth(fr, n, &item, &truth));
        if (truth != (id == ING_IN_PY_ALL)) *out = ing_front_bool(truth);
    }
    return ING_OK;
}

static ing_status in_attr(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    value of = a->at[0], name;
    ING_TRY(arg_forced(fr, a, 1, &name));
    bool number = ing_front_is_runtime(&of) && !ing_front_is_tensor(fr, &of);
    if (in->op == ING_IN_PY_HASATTR && name.kind == V_STR &&
        (number || of.kind == V_ARRAY) && ing_front_is_array_attr(name.s)) {
        *out = ing_front_bool(!number); /* is it a number or an array? */
        return ING_OK;
    }
    if (in->op == ING_IN_PY_HASATTR && name.kind == V_STR && of.kind == V_ARRAY &&
        strcmp(name.s, "offset") == 0) {
        *out = ing_front_bool(ing_front_field_place(fr, &of) != NULL);
        return ING_OK;
    }
    if (name.kind != V_STR || !of.gref || of.kind == V_STRUCT)
        return ing_front_fail_at(fr, n, ING_TYPE, "write x.name",
                                 "%s needs a thing from outside and a constant name",
                                 in->op == ING_IN_PY_HASATTR ? "hasattr" : "getattr");
    bool there = true;
    if (in->op == ING_IN_PY_HASATTR || a->n > 2)
        GATE(fr, n, has, of.gref, name.s, NULL, &there, fr->lo->e);
    *out = in->op == ING_IN_PY_HASATTR ? ing_front_bool(there) : a->at[2];
    if (in->op == ING_IN_PY_HASATTR || !there) return ING_OK;
    ING_TRY(ing_front_thing_attr(fr, n, of.gref, name.s, out));
    if (out->kind != V_VOID) return ING_OK;
    return ing_front_fail_at(fr, n, ING_ATTRIBUTE,
                             "give a third argument for that case",
                             "there is no attribute '%s'", name.s);
}

/* ---- loops ----------------------------------------------------------------------------------------------- */

static bool is_loop_option(const char *name) {
    static const char *const names[] = {"serialize",          "name",
                                        "block_dim",          "parallelize",
                                        "block_dim_adaptive", "bit_vectorize"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static ing_status in_loop_config(frame *fr, ing_node n, const intrin *in,
                                 const call_args *a, value *out) {
    (void)n, (void)in;
    for (uint32_t i = 0; i < a->n_kw; i++) {
        value v = a->kw[i];
        bool truth = false;
        ING_TRY(ing_front_force(fr, a->kw_node[i], &v));
        const char *name = ing_front_atom_text(fr, a->kw_name[i]);
        if (!is_loop_option(name))
            return ing_front_fail_at(
                fr, a->kw_node[i], ING_TYPE,
                "it has serialize, name, block_dim, parallelize, block_dim_adaptive "
                "and bit_vectorize",
                "qd.loop_config has no parameter '%s'", name);
        if (strcmp(name, "serialize") != 0) continue;
        ING_TRY(ing_front_truth(fr, a->kw_node[i], &v, &truth));
        fr->serialize_next = truth;
    }
    *out = ing_front_none();
    return ING_OK;
}

static ing_status check_axes(frame *fr, ing_node at, value *axes, uint32_t n) {
    value *items;
    uint32_t m = 0, seen = 0;
    bool ok = false;
    ING_TRY(ing_front_items(fr, at, axes, &items, &m, &ok));
    if (!ok || m != n)
        return ing_front_fail_at(
            fr, at, ING_SYNTAX, "list every axis once, outermost first",
            "qd.ndrange(axes=...) has %u entries but ndrange was called with %u "
            "dimension argument(s); they must match",
            m, n);
    for (uint32_t i = 0; i < m; i++) {
        ING_TRY(ing_front_force(fr, at, &items[i]));
        if (items[i].kind != V_INT)
            return ing_front_fail_at(
                fr, at, ING_TYPE, "list every axis once, outermost first",
                "qd.ndrange(axes=...) entries must be Python ints; got %s",
                ing_front_describe(fr, &items[i]));
        if (items[i].i >= 0 && items[i].i < n) seen |= 1u << items[i].i;
    }
    if (seen != (1u << n) - 1)
        return ing_front_fail_at(
            fr, at, ING_SYNTAX, "list every axis once, outermost first",
            "qd.ndrange(axes=...) is not a permutation of range(%u)", n);
    *axes = ing_front_seq(V_TUPLE, items, m);
    return ING_OK;
}

/* The arguments, then the order of the axes or None. */
static ing_status in_ndrange(frame *fr, ing_node n, const intrin *in,
                             const call_args *a, value *out) {
    (void)in;
    if (a->n > ING_MAX_NDIM)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "give it one extent for each axis",
                                 "qd.ndrange takes up to %d arguments", ING_MAX_NDIM);
    value *items = ING_NEW_ARRAY(&fr->lo->arena, a->n + 1, value);
    if (!items)
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    for (uint32_t i = 0; i < a->n; i++) ING_TRY(arg_forced(fr, a, i, &items[i]));
    items[a->n] = ing_front_none();
    for (uint32_t i = 0; i < a->n_kw; i++) {
        if (strcmp(ing_front_atom_text(fr, a->kw_name[i]), "axes") != 0)
            return ing_front_fail_at(fr, a->kw_node[i], ING_SYNTAX, "it has `axes`",
                                     "qd.ndrange has no parameter '%s'",
                                     ing_front_atom_text(fr, a->kw_name[i]));
        value axes = a->kw[i];
        ING_TRY(ing_front_force(fr, a->kw_node[i], &axes));
        if (axes.kind == V_NONE) continue;
        ING_TRY(check_axes(fr, a->kw_node[i], &axes, a->n));
        items[a->n] = axes;
    }
    *out = ing_front_seq(V_ITER, items, a->n + 1);
    return ING_OK;
}

static ing_status in_atomic(frame *fr, ing_node n, const intrin *in, const call_args *a,
                            value *out) {
    value ref, v;
    ING_TRY(arg_forced(fr, a, 0, &ref));
    ING_TRY(arg_forced(fr, a, 1, &v));
    if (ref.kind != V_REF || ref.fixed)
        return ing_front_fail_at(
            fr, a->node[0], ING_SYNTAX, "pass an array element or a variable",
            "cannot use a non-writable target as the first operand of '%s'",
            "atomic_*");
    return ing_front_atomic_op(fr, n, &ref, &v, (ing_ir_atomic)in->op, out);
}

/* Writes the third argument where the second one stands; the old value either way. */
static ing_status in_cas(frame *fr, ing_node n, const intrin *in, const call_args *a,
                         value *out) {
    value ref, want, put;
    uint32_t x = 0, y = 0;
    ING_TRY(arg_forced(fr, a, 0, &ref));
    ING_TRY(arg_forced(fr, a, 1, &want));
    ING_TRY(arg_forced(fr, a, 2, &put));
    if (ref.kind != V_REF || ref.fixed)
        return ing_front_fail_at(
            fr, a->node[0], ING_SYNTAX, "pass an array element or a variable",
            "cannot use a non-writable target as the first operand of 'atomic_cas'");
    ing_dtype t = v_type(&ref);
    if (!ing_dtype_is_int(t))
        return ing_front_fail_at(fr, a->node[0], ING_TYPE,
                                 "keep the bits of the float in an integer array",
                                 "atomic_cas takes integers only, however '%s' is "
                                 "provided",
                                 ing_dtype_name(t));
    ING_TRY(ing_front_convert(fr, a->node[1], &want, t, &x));
    ING_TRY(ing_front_convert(fr, a->node[2], &put, t, &y));
    fr->b.loc = n;
    uint32_t inst = ing_ir_emit(&fr->b, in->op, t, ref.inst, x, y);
    if (inst && !ref.shared) fr->b.func->insts.at[inst].flags |= ING_IR_PRIVATE;
    *out = ing_front_rt(inst, t);
    return ING_OK;
}

static ing_status in_later(frame *fr, ing_node n, const intrin *in, const call_args *a,
                           value *out) {
    (void)in, (void)a, (void)out;
    return ing_front_fail_at(fr, n, ING_SYNTAX,
                             "store what you want to see in an array",
                             "this function is not supported yet");
}

static ing_status in_print(frame *fr, ing_node n, const intrin *in, const call_args *a,
                           value *out) {
    *out = ing_front_none();
    if (in->op == ING_IN_STATIC_PRINT) return ing_front_static_print(fr, n, a);
    return ing_front_print(fr, n, a);
}

static ing_status in_random(frame *fr, ing_node n, const intrin *in, const call_args *a,
                            value *out) {
    if (in->op == ING_IN_RANDN) return ing_front_randn(fr, n, a, out);
    return ing_front_random(fr, n, a, out);
}

/* Kernels are done when their call returns: there is nothing to wait for. Nor is there memory of
 * blocks of threads that fields could be held in (block_local, cache_read_only). */
static ing_status in_sync(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    (void)fr, (void)n, (void)in, (void)a;
    *out = ing_front_none();
    return ING_OK;
}

/* The value itself: where it lies decides nothing here. */
static ing_status in_assume(frame *fr, ing_node n, const intrin *in, const call_args *a,
                            value *out) {
    (void)n, (void)in;
    value other;
    for (uint32_t i = 1; i < a->n; i++) ING_TRY(arg_forced(fr, a, i, &other));
    return arg_forced(fr, a, 0, out);
}

/* An element as it is in memory now. */
static ing_status in_volatile(frame *fr, ing_node n, const intrin *in,
                              const call_args *a, value *out) {
    value ref;
    ING_TRY(arg_forced(fr, a, 0, &ref));
    bool place = ref.kind == V_REF && ref.type < ING_DTYPE_N;
    if (ref.kind == V_REF && !ref.shared)
        return ing_front_fail_at(
            fr, a->node[0], ING_TYPE, "pass an element of an array: a[i]",
            "%s reads memory that others write; a variable or local "
            "array is seen by one thread only",
            "volatile_load");
    if (ref.kind == V_BUNDLE || ing_front_field_place(fr, &ref))
        return ing_front_fail_at(fr, a->node[0], ING_SYNTAX,
                                 "pass an element of it: f[i]",
                                 "volatile_load cannot take a Field directly");
    if (!place || !ref.shared)
        return ing_front_fail_at(
            fr, a->node[0], ing_front_is_tensor(fr, &ref) ? ING_TYPE : ING_SYNTAX,
            "pass an element of an array: a[i]",
            "volatile_load needs an lvalue in memory, no local array "
            "and no expression; this is %s",
            ing_front_describe(fr, &ref));
    fr->b.loc = n;
    uint32_t inst = ing_ir_emit(&fr->b, in->op, ref.type, ref.inst, 0, 0);
    if (inst) fr->b.func->insts.at[inst].flags |= ING_IR_VOLATILE;
    *out = ing_front_rt(inst, ref.type);
    return ING_OK;
}

/* Where an element of a field or array is, as a u64; of one that lies apart, its first number. */
static ing_status in_address(frame *fr, ing_node n, const intrin *in,
                             const call_args *a, value *out) {
    value of, index, ref, *items = &index;
    uint32_t count = 1;
    bool ok = true;
    ING_TRY(arg_forced(fr, a, 0, &of));
    ING_TRY(arg_forced(fr, a, 1, &index));
    if (of.kind != V_ARRAY && of.kind != V_BUNDLE)
        return ing_front_fail_at(fr, a->node[0], ING_TYPE, "pass a field and indices",
                                 "an address is asked of a field; this is %s",
                                 ing_front_describe(fr, &of));
    if (index.kind == V_NONE) count = 0;
    if (count && !ing_front_is_scalar(&index))
        ING_TRY(ing_front_items(fr, a->node[1], &index, &items, &count, &ok));
    for (uint32_t i = 0; ok && i < count; i++)
        ING_TRY(ing_front_force(fr, a->node[1], &items[i]));
    ING_TRY(ing_front_bundle_first(fr, n, &of, &of, &ok));
    ING_TRY(ing_front_array_element(fr, n, &of, items, count, a->node[1], &ref));
    fr->b.loc = n;
    *out = ing_front_rt(ing_ir_emit(&fr->b, (ing_op)in->op, ING_U64, ref.inst, 0, 0),
                        ING_U64);
    return ING_OK;
}

static ing_status in_view(frame *fr, ing_node n, const intrin *in, const call_args *a,
                          value *out) {
    (void)in;
    return ing_front_view_call(fr, n, a, out);
}

/* From here on to the end of the block the array is a constant for derivatives. */
static ing_status in_stop_grad(frame *fr, ing_node n, const intrin *in,
                               const call_args *a, value *out) {
    (void)in;
    value v;
    ING_TRY(arg_forced(fr, a, 0, &v));
    if (v.kind != V_ARRAY && v.kind != V_BUNDLE)
        return ing_front_fail_at(fr, a->node[0], ING_TYPE,
                                 "pass the field, not one of its elements",
                                 "stop_grad takes a field or an array; this is %s",
                                 ing_front_describe(fr, &v));
    *out = ing_front_none();
    return fr->lo->gate->companion ? ing_front_stop_grad(fr, n, &v) : ING_OK;
}

/* Is this the lowering of a derivative? */
static ing_status in_derives(frame *fr, ing_node n, const intrin *in,
                             const call_args *a, value *out) {
    (void)n, (void)in, (void)a;
    *out = ing_front_bool(fr->lo->gate->companion != NULL);
    return ING_OK;
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

#define MATH(op, f)  {in_math, 1, 1, ING_OP_##op, f, false}
#define ROUND(op, f) {in_math, 1, 2, ING_OP_##op, f, true}
#define ATOMIC(op)   {in_atomic, 2, 2, ING_IR_ATOMIC_##op, NULL, false}
static const intrin table[ING_IN_N] = {
    [ING_IN_PY_RANGE] = {in_iter, 1, 3, 0, NULL, false},
    [ING_IN_PY_LEN] = {in_len, 1, 1, 0, NULL, false},
    [ING_IN_PY_MIN] = {in_min_max, 1, 255, ING_OP_MIN, NULL, false},
    [ING_IN_PY_MAX] = {in_min_max, 1, 255, ING_OP_MAX, NULL, false},
    [ING_IN_PY_ABS] = {in_abs, 1, 1, ING_OP_ABS, NULL, false},
    [ING_IN_PY_INT] = {in_number, 1, 2, ING_IN_PY_INT, NULL, false},
    [ING_IN_PY_FLOAT] = {in_number, 1, 1, ING_IN_PY_FLOAT, NULL, false},
    [ING_IN_PY_BOOL] = {in_number, 1, 1, ING_IN_PY_BOOL, NULL, false},
    [ING_IN_PY_PRINT] = {in_print, 0, 255, ING_IN_PY_PRINT, NULL, true},
    [ING_IN_STATIC_PRINT] = {in_print, 0, 255, ING_IN_STATIC_PRINT, NULL, true},
    [ING_IN_SYNC] = {in_sync, 0, 0, 0, NULL, false},
    [ING_IN_RANDOM] = {in_random, 0, 1, ING_IN_RANDOM, NULL, true},
    [ING_IN_RANDN] = {in_random, 0, 1, ING_IN_RANDN, NULL, true},
    [ING_IN_PY_ENUMERATE] = {in_iter, 1, 2, 0, NULL, false},
    [ING_IN_PY_ZIP] = {in_iter, 0, 255, 0, NULL, false},
    [ING_IN_PY_ISINSTANCE] = {in_later, 0, 255, 0, NULL, true},
    [ING_IN_PY_HASATTR] = {in_attr, 2, 2, ING_IN_PY_HASATTR, NULL, false},
    [ING_IN_PY_GETATTR] = {in_attr, 2, 3, ING_IN_PY_GETATTR, NULL, false},
    [ING_IN_PY_POW] = {in_pow, 2, 3, 0, NULL, false},
    [ING_IN_PY_ROUND] = {in_py_round, 1, 2, ING_OP_ROUND, round, false},
    [ING_IN_PY_SUM] = {in_fold, 1, 2, ING_IN_PY_SUM, NULL, false},
    [ING_IN_PY_ANY] = {in_fold, 1, 1, ING_IN_PY_ANY, NULL, false},
    [ING_IN_PY_ALL] = {in_fold, 1, 1, ING_IN_PY_ALL, NULL, false},
    /* what builtin.c left: the wrong number of arguments */
    [ING_IN_PY_SORTED] = {in_later, 1, 1, 0, NULL, true},
    [ING_IN_PY_REVERSED] = {in_later, 1, 1, 0, NULL, false},
    [ING_IN_PY_DIVMOD] = {in_later, 2, 2, 0, NULL, false},
    [ING_IN_PY_TYPE] = {in_later, 1, 1, 0, NULL, false},
    [ING_IN_PY_TUPLE] = {in_sequence, 0, 1, V_TUPLE, NULL, false},
    [ING_IN_PY_LIST] = {in_sequence, 0, 1, V_LIST, NULL, false},
    [ING_IN_STATIC] = {in_static, 1, 255, 0, NULL, false},
    [ING_IN_CAST] = {in_cast, 2, 2, ING_OP_CAST, NULL, false},
    [ING_IN_BIT_CAST] = {in_cast, 2, 2, ING_OP_BITCAST, NULL, false},
    [ING_IN_SELECT] = {in_select, 3, 3, 0, NULL, false},
    [ING_IN_NDRANGE] = {in_ndrange, 0, 255, 0, NULL, true},
    [ING_IN_GROUPED] = {in_iter, 1, 1, 0, NULL, false},
    [ING_IN_LOOP_CONFIG] = {in_loop_config, 0, 0, 0, NULL, true},
    [ING_IN_STATIC_ASSERT] = {in_static_assert, 1, 2, 0, NULL, false},
    [ING_IN_NEVER] = {in_never, 1, 1, 0, NULL, false},
    [ING_IN_SIN] = MATH(SIN, sin),
    [ING_IN_COS] = MATH(COS, cos),
    [ING_IN_TAN] = MATH(TAN, tan),
    [ING_IN_ASIN] = MATH(ASIN, asin),
    [ING_IN_ACOS] = MATH(ACOS, acos),
    [ING_IN_TANH] = MATH(TANH, tanh),
    [ING_IN_EXP] = MATH(EXP, exp),
    [ING_IN_LOG] = MATH(LOG, log),
    [ING_IN_SINH] = MATH(SINH, sinh),
    [ING_IN_COSH] = MATH(COSH, cosh),
    [ING_IN_ASINH] = MATH(ASINH, asinh),
    [ING_IN_ACOSH] = MATH(ACOSH, acosh),
    [ING_IN_ATANH] = MATH(ATANH, atanh),
    [ING_IN_ATAN] = MATH(ATAN, atan),
    [ING_IN_ERF] = MATH(ERF, erf),
    [ING_IN_ERFC] = MATH(ERFC, erfc),
    [ING_IN_EXP2] = MATH(EXP2, exp2),
    [ING_IN_EXPM1] = MATH(EXPM1, expm1),
    [ING_IN_LOG2] = MATH(LOG2, log2),
    [ING_IN_LOG10] = MATH(LOG10, log10),
    [ING_IN_LOG1P] = MATH(LOG1P, log1p),
    [ING_IN_CBRT] = MATH(CBRT, cbrt),
    [ING_IN_SQRT] = MATH(SQRT, sqrt),
    [ING_IN_RSQRT] = MATH(RSQRT, rsqrt_of),
    [ING_IN_FLOOR] = ROUND(FLOOR, floor),
    [ING_IN_CEIL] = ROUND(CEIL, ceil),
    [ING_IN_ROUND] = ROUND(ROUND, round),
    [ING_IN_TRUNC] = ROUND(TRUNC, trunc),
    [ING_IN_ATAN2] = {in_math2, 2, 2, ING_OP_ATAN2, NULL, false},
    [ING_IN_HYPOT] = {in_math2, 2, 2, ING_OP_HYPOT, NULL, false},
    [ING_IN_ABS] = {in_abs, 1, 1, ING_OP_ABS, NULL, false},
    [ING_IN_MIN] = {in_min_max, 1, 255, ING_OP_MIN, NULL, false},
    [ING_IN_MAX] = {in_min_max, 1, 255, ING_OP_MAX, NULL, false},
    [ING_IN_POW] = {in_pow, 2, 2, 0, NULL, false},
    [ING_IN_RAW_DIV] = {in_raw, 2, 2, ING_OP_DIV, NULL, false},
    [ING_IN_RAW_MOD] = {in_raw, 2, 2, ING_OP_REM, NULL, false},
    [ING_IN_POPCNT] = {in_bits, 1, 1, ING_OP_POPCNT, NULL, false},
    [ING_IN_CLZ] = {in_bits, 1, 1, ING_OP_CLZ, NULL, false},
    [ING_IN_FFS] = {in_bits, 1, 1, ING_OP_FFS, NULL, false},
    [ING_IN_GET_ADDR] = {in_address, 2, 2, ING_OP_ADDRESS, NULL, false},
    [ING_IN_BLOCK_LOCAL] = {in_sync, 0, 255, 0, NULL, false},
    [ING_IN_CACHE_READ_ONLY] = {in_sync, 0, 255, 0, NULL, false},
    [ING_IN_ASSUME_IN_RANGE] = {in_assume, 4, 4, 0, NULL, false},
    [ING_IN_STOP_GRAD] = {in_stop_grad, 1, 1, 0, NULL, false},
    [ING_IN_DERIVES] = {in_derives, 0, 0, 0, NULL, false},
    [ING_IN_VOLATILE_LOAD] = {in_volatile, 1, 1, ING_OP_LOAD, NULL, false},
    [ING_IN_BUFFER_VIEW] = {in_view, 0, 3, 0, NULL, true},
    [ING_IN_BIT_SHR] = {in_bit_shr, 2, 2, ING_OP_SHR, NULL, false},
    [ING_IN_ZERO] = {in_number_like, 1, 1, ING_IN_ZERO, NULL, false},
    [ING_IN_ONE] = {in_number_like, 1, 1, ING_IN_ONE, NULL, false},
    [ING_IN_ATOMIC_ADD] = ATOMIC(ADD),
    [ING_IN_ATOMIC_SUB] = ATOMIC(SUB),
    [ING_IN_ATOMIC_MUL] = ATOMIC(MUL),
    [ING_IN_ATOMIC_MIN] = ATOMIC(MIN),
    [ING_IN_ATOMIC_MAX] = ATOMIC(MAX),
    [ING_IN_ATOMIC_AND] = ATOMIC(AND),
    [ING_IN_ATOMIC_OR] = ATOMIC(OR),
    [ING_IN_ATOMIC_XOR] = ATOMIC(XOR),
    [ING_IN_ATOMIC_EXCHANGE] = ATOMIC(XCHG),
    [ING_IN_ATOMIC_CAS] = {in_cas, 3, 3, ING_OP_CAS, NULL, false},
};
#undef MATH
#undef ROUND
#undef ATOMIC

/* How it is called, for a remedy. */
static const char *usage(frame *fr, const intrin *in, const char *name) {
    static const char *const args[] = {"", "x", "x, y", "x, y, z"};
    if (strcmp(name, "random") == 0)
        return "it is called with (dtype) and gives numbers in [0, 1): low + (high - "
               "low) * qd.random(qd.f32)";
    if (strncmp(name, "atomic_", 7) == 0 && in->max == 2)
        return "it is called with (x, y); x is an element: qd.atomic_add(a[i], y)";
    if (in->fn == in_cast) return "it is called with (x, dtype)";
    if (in->fn == in_select) return "it is called with (condition, x, y)";
    if (in->fn == in_cas) return "it is called with (place, expected, new)";
    if (strcmp(name, "range") == 0)
        return "it is called with (n), (begin, end) or (begin, end, step)";
    return ing_arena_printf(&fr->lo->arena, "it is called with (%s)",
                            args[in->min < 4 ? in->min : 0]);
}

static ing_status fail_count(frame *fr, ing_node n, const intrin *in, const char *name,
                             uint32_t found) {
    bool few = found < in->min;
    uint32_t limit = few ? in->min : in->max;
    return ing_front_fail_at(fr, n, ING_TYPE, usage(fr, in, name),
                             "%s takes %s%u argument%s, found %u", name,
                             in->max == in->min ? ""
                             : few              ? "at least "
                                                : "at most ",
                             limit, limit == 1 ? "" : "s", found);
}

ing_status ing_front_call_intrinsic(frame *fr, ing_node n, ing_intrinsic id,
                                    const call_args *a, value *out) {
    const intrin *in = &table[id < ING_IN_N ? id : ING_IN_NONE];
    const char *name = ing_intrinsic_name(id);
    bool done = false;
    if (id >= ING_IN_VECTOR && id <= ING_IN_MATRIX_COLS)
        return ing_front_tensor_construct(fr, n, id, a, out);
    if (id == ING_IN_STRUCT) return ing_front_struct_make(fr, n, a, out);
    ING_TRY(ing_front_tensor_lift(fr, n, id, a, out, &done));
    if (done) return ING_OK;
    if (strncmp(name, "builtins.", 9) == 0) name += 9;
    if (!in->fn)
        return ing_front_fail_at(fr, n, ING_SYNTAX,
                                 "compute it outside and pass the result",
                                 "%s is not supported yet in kernels", name);
    if (a->n_kw && !in->keywords)
        return ing_front_fail_at(fr, a->kw_node[0], ING_TYPE, "pass it by position",
                                 "%s has no parameter '%s'", name,
                                 ing_front_atom_text(fr, a->kw_name[0]));
    if (a->n < in->min || (a->n > in->max && in->max != 255))
        return fail_count(fr, n, in, name, a->n);
    ING_TRY(in->fn(fr, n, in, a, out));
    if (out->kind == V_ITER && !out->tag) out->tag = (uint16_t)id;
    return ING_OK;
}
