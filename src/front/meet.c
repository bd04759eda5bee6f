/* Where numbers meet: the types that operands get. Used by everything that combines two values
 * (arith.c, intrin.c, assign.c, tensor*.c) before it promotes their types.
 *
 *  NUMBER1 A float that is written in a kernel, or read from Python, has no type: it is the f64 that
 *     Python has. Where it meets an f64 it stays that number; anywhere else it is rounded to
 *     default_fp, as when it becomes a variable.
 *  NUMBER2 What is computed at run time from such numbers and integers alone, or chosen among them,
 *     is like them: default_fp in `inst`, and the same operation on f64 in `alt`. Whichever
 *     nobody uses is dropped later.
 *  NUMBER3 An integer that default_ip does not hold takes the type of what it meets, if that does.
 *  NUMBER4 Arithmetic on booleans is arithmetic on default_ip: True + True is 2. */
#include "front/front_int.h"

static bool is_number(const value *v) {
    return v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT;
}

bool ing_front_is_untyped(const value *v) {
    return (v->kind == V_FLOAT && !v->dtype) || (ing_front_is_runtime(v) && v->alt);
}

value ing_front_as_float(const value *v) {
    if (v->kind != V_INT && v->kind != V_BOOL) return *v;
    return ing_front_float(v->wide ? (double)(uint64_t)v->i : (double)v->i);
}

/* The type that a value brings along; VOID: none yet. */
static ing_dtype own_type(const value *v) {
    if (ing_front_is_untyped(v)) return ING_VOID;
    if (ing_front_is_runtime(v)) return v_type(v);
    return v->kind == V_BOOL ? ING_U1 : is_number(v) ? (ing_dtype)v->dtype : ING_VOID;
}

static uint32_t as_f64(frame *fr, const value *v) { /* NUMBER1, NUMBER2 */
    if (!ing_front_is_runtime(v)) return ing_front_const_of(fr, v, ING_F64);
    return v->alt_place ? ing_ir_emit(&fr->b, ING_OP_LOAD, ING_F64, v->alt, 0, 0)
                        : v->alt;
}

ing_status ing_front_load_with(frame *fr, ing_node at, const value *v, ing_dtype other,
                               value *out) {
    if (other == ING_F64 && ing_front_is_untyped(v)) {
        *out = ing_front_rt(as_f64(fr, v), ING_F64);
        return ING_OK;
    }
    if (v->kind == V_INT && !v->dtype && other) { /* NUMBER3 */
        int64_t ip = 0;
        ING_TRY(ing_front_config_get(fr, at, ING_SET_default_ip, &ip));
        bool holds = ing_dtype_is_float(other) ||
                     (other != ING_U1 && ing_front_int_fits(v, other));
        if (holds && !ing_front_int_fits(v, (ing_dtype)ip)) {
            *out = ing_front_rt(ing_front_const_of(fr, v, other), other);
            return ING_OK;
        }
    }
    ING_TRY(ing_front_load(fr, at, v, out));
    out->alt = 0;
    return ING_OK;
}

ing_status ing_front_load_both(frame *fr, ing_node at_l, const value *l, ing_node at_r,
                               const value *r, value *a, value *b) {
    ing_dtype left = own_type(l), right = own_type(r);
    ING_TRY(ing_front_load_with(fr, at_l, l, right, a));
    return ing_front_load_with(fr, at_r, r, left, b);
}

ing_dtype ing_front_meet(ing_dtype t, const value *v) {
    ing_dtype own = own_type(v);
    return !own ? t : !t ? own : ing_front_promote(t, own);
}

ing_status ing_front_load_untyped(frame *fr, ing_node at, const value *v, value *out) {
    value x = *v;
    ING_TRY(ing_front_load(fr, at, &x, out));
    bool narrow = ing_front_is_untyped(&x) && v_type(out) != ING_F64;
    out->alt = narrow ? as_f64(fr, &x) : 0;
    return ING_OK;
}

/* The operand v, loaded as x, as an f64 (NUMBER2); 0: it is a float that has a type. */
static uint32_t wide_operand(frame *fr, const value *v, const value *x) {
    if (ing_front_is_untyped(v)) return as_f64(fr, v);
    if (ing_dtype_is_float(v_type(x))) return 0;
    return ing_front_emit_cast(fr, x->inst, v_type(x), ING_F64);
}

void ing_front_put_wide(frame *fr, ing_op op, const value *l, const value *a,
                        const value *r, const value *b, value *out) {
    ing_dtype t = v_type(out);
    if (!ing_dtype_is_float(t) || t == ING_F64) return;
    uint32_t x = wide_operand(fr, l, a), y = r ? wide_operand(fr, r, b) : 0;
    if (!x || (r && !y)) return;
    if (op == ING_OP_SELECT) {
        uint32_t cond = fr->b.func->insts.at[out->inst].a;
        out->alt = ing_ir_emit(&fr->b, op, ING_F64, cond, x, y);
    } else {
        out->alt = ing_ir_emit(&fr->b, op, ING_F64, x, y, 0);
    }
}

ing_status ing_front_arith_type(frame *fr, ing_node at, ing_dtype *t) { /* NUMBER4 */
    int64_t ip = 0;
    if (*t != ING_U1) return ING_OK;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_default_ip, &ip));
    *t = (ing_dtype)ip;
    return ING_OK;
}
