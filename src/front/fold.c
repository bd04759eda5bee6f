/* Operators on static values: Python's own meaning, in 64-bit integers and doubles. Used
 * by arith.c before it emits anything. A result that does not fit is an error, never a
 * silent wrap: compile-time integers are unbounded in Python. */
#include "front/front_int.h"

#include <math.h>
#include <string.h>

static bool is_number(const value *v) {
    return v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT;
}

static __int128 wide_of(const value *v) {
    return v->wide ? (__int128)(uint64_t)v->i : (__int128)v->i;
}

static double float_of(const value *v) {
    return v->kind == V_FLOAT ? v->f : (double)wide_of(v);
}

static ing_status int_result(frame *fr, ing_node at, __int128 x, value *out) {
    if (x < (__int128)INT64_MIN || x > (__int128)UINT64_MAX)
        return ing_front_fail_at(fr, at, ING_VALUE,
                                 "compute it as a float, or at run time",
                                 "this compile-time integer does not fit in 64 bits");
    *out = ing_front_int((int64_t)(uint64_t)x);
    out->wide = x > (__int128)INT64_MAX;
    return ING_OK;
}

static ing_status zero_division(frame *fr, ing_node at) {
    return ing_front_fail_at(fr, at, ING_VALUE,
                             "check the divisor with qd.static first",
                             "division by zero in a compile-time expression");
}

static __int128 floor_div(__int128 a, __int128 b) {
    __int128 q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

/* a / b as Python rounds it: once. Both are below 2**65; the quotient has 60 bits or more, and the lowest
 * says whether there is a rest. */
static double int_div(__int128 a, __int128 b) {
    const __int128 exact = (__int128)1 << 53;
    if (a > -exact && a < exact && b > -exact && b < exact)
        return (double)a / (double)b;
    unsigned __int128 x = (unsigned __int128)(a < 0 ? -a : a);
    unsigned __int128 y = (unsigned __int128)(b < 0 ? -b : b);
    int shift = 0;
    for (; x && !(x >> 125); shift++) x <<= 1;
    double q = ldexp((double)(x / y | (x % y != 0)), -shift);
    return (a < 0) == (b < 0) ? q : -q;
}

/* Of numbers that are no NaN, in Python: no infinity out of finite ones, no complex numbers. */
static ing_status float_pow(frame *fr, ing_node at, double a, double b, value *out) {
    double x = pow(a, b);
    if (a == 0 && b < 0) return zero_division(fr, at);
    if (isfinite(a) && isfinite(b) && !isfinite(x))
        return ing_front_fail_at(fr, at, ING_VALUE, "compute it outside",
                                 isnan(x) ? "a root of a negative number"
                                          : "this power is too large for a float");
    *out = ing_front_float(x);
    return ING_OK;
}

static ing_status int_pow(frame *fr, ing_node at, __int128 base, __int128 exp,
                          value *out) {
    if (exp < 0) {
        return float_pow(fr, at, (double)base, (double)exp, out);
    }
    __int128 x = 1;
    if (base == 0 || base == 1 || base == -1) {
        x = exp == 0 ? 1 : base == -1 ? (exp % 2 ? -1 : 1) : base;
        return int_result(fr, at, x, out);
    }
    for (; exp > 0; exp--) {
        x *= base;
        if (x < (__int128)INT64_MIN || x > (__int128)UINT64_MAX) break;
    }
    return int_result(fr, at, x, out);
}

static ing_status int_shift(frame *fr, ing_node at, bool left, __int128 a, __int128 n,
                            value *out) {
    if (n < 0)
        return ing_front_fail_at(fr, at, ING_VALUE, "shift the other way",
                                 "a negative shift count");
    if (!left) return int_result(fr, at, n > 100 ? (a < 0 ? -1 : 0) : a >> n, out);
    if (a == 0) return int_result(fr, at, 0, out);
    if (n > 64) return int_result(fr, at, (__int128)1 << 100, out); /* too large */
    __int128 x = a < 0 ? -(__int128)((unsigned __int128)-a << n) : a << n;
    return int_result(fr, at, n >= 62 && (x >> n) != a ? (__int128)1 << 100 : x, out);
}

static ing_status fold_ints(frame *fr, ing_node at, ing_front_op op, __int128 a,
                            __int128 b, value *out) {
    switch (op) {
    case ING_AST_Add: return int_result(fr, at, a + b, out);
    case ING_AST_Sub: return int_result(fr, at, a - b, out);
    case ING_AST_Mult: {
        __int128 x;
        if (__builtin_mul_overflow(a, b, &x)) x = (__int128)1 << 100;
        return int_result(fr, at, x, out);
    }
    case ING_AST_Div:
        if (b == 0) return zero_division(fr, at);
        *out = ing_front_float(int_div(a, b));
        return ING_OK;
    case ING_AST_FloorDiv:
        if (b == 0) return zero_division(fr, at);
        return int_result(fr, at, floor_div(a, b), out);
    case ING_AST_Mod:
        if (b == 0) return zero_division(fr, at);
        return int_result(fr, at, a - floor_div(a, b) * b, out);
    case ING_AST_Pow: return int_pow(fr, at, a, b, out);
    case ING_AST_LShift: return int_shift(fr, at, true, a, b, out);
    case ING_AST_RShift: return int_shift(fr, at, false, a, b, out);
    case ING_AST_BitAnd: return int_result(fr, at, a & b, out);
    case ING_AST_BitOr: return int_result(fr, at, a | b, out);
    case ING_AST_BitXor: return int_result(fr, at, a ^ b, out);
    default: return ING_DECLINED;
    }
}

/* The operation as it is at run time, in f64. */
static double as_at_run_time(ing_op op, double a, double b) {
    uint64_t x, y, r = 0;
    double out;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    ing_ir_eval(op, ING_F64, x, y, &r);
    memcpy(&out, &r, sizeof out);
    return out;
}

static ing_status fold_floats(frame *fr, ing_node at, ing_front_op op, double a,
                              double b, value *out) {
    bool divides = op == ING_AST_Div || op == ING_AST_FloorDiv || op == ING_AST_Mod;
    if (divides && b == 0) return zero_division(fr, at);
    switch (op) {
    case ING_AST_Add: *out = ing_front_float(a + b); break;
    case ING_AST_Sub: *out = ing_front_float(a - b); break;
    case ING_AST_Mult: *out = ing_front_float(a * b); break;
    case ING_AST_Div: *out = ing_front_float(a / b); break;
    case ING_AST_FloorDiv:
        *out = ing_front_float(as_at_run_time(ING_OP_FLOORDIV, a, b));
        break;
    case ING_AST_Mod: *out = ing_front_float(as_at_run_time(ING_OP_MOD, a, b)); break;
    case ING_AST_Pow: return float_pow(fr, at, a, b, out);
    default: return ING_DECLINED;
    }
    return ING_OK;
}

static bool repeat_text(frame *fr, const value *text, int64_t n, value *out) {
    char *s = ing_arena_alloc(&fr->lo->arena, (size_t)n * text->n + 1);
    if (!s) return false;
    for (int64_t k = 0; k < n; k++) memcpy(s + k * text->n, text->s, text->n);
    s[n * text->n] = 0;
    *out = (value){.kind = V_STR, .s = s, .n = (uint32_t)(n * text->n)};
    return true;
}

/* (1, 2) * 3, and 3 * (1, 2); "ab" * 3. */
static bool repeat_sequence(frame *fr, const value *l, const value *r, value *out) {
    const value *seq = l->kind == V_INT ? r : l, *times = l->kind == V_INT ? l : r;
    int64_t n = times->kind == V_INT && !times->wide && times->i > 0 ? times->i : 0;
    if (times->kind == V_INT && seq->kind == V_STR && n <= 4096 && n * seq->n <= 65536)
        return repeat_text(fr, seq, n, out);
    if (times->kind != V_INT || (seq->kind != V_TUPLE && seq->kind != V_LIST) ||
        seq->tensor || n > 4096 || n * seq->n > 4096)
        return false;
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n * seq->n + 1, value);
    if (!items) return false;
    for (int64_t k = 0; k < n; k++)
        if (seq->n) memcpy(items + k * seq->n, seq->items, seq->n * sizeof *items);
    *out = ing_front_seq(seq->kind, items, (uint32_t)n * seq->n);
    return true;
}

/* `2**64 - 1`, `(1 << 64) - 1`: a power too large for 64 bits that a third number makes
 * small enough. False: not of that form. */
bool ing_front_fold_power(const frame *fr, ing_node n, value *out) {
    const ing_front_tree *t = fr->t;
    const struct nf_BINOP *f = NF(t, n, BINOP);
    if (t->nodes.at[f->left].kind != ING_NODE_BINOP ||
        (f->op != ING_AST_Sub && f->op != ING_AST_Add))
        return false;
    const struct nf_BINOP *g = NF(t, f->left, BINOP);
    const ing_node part[3] = {g->left, g->right, f->right};
    int64_t x[3];
    for (int k = 0; k < 3; k++) {
        if (t->nodes.at[part[k]].kind != ING_NODE_CONSTANT) return false;
        const ing_front_const *c = &t->consts.at[NF(t, part[k], CONSTANT)->value];
        if (c->kind != ING_CONST_INT || c->i < 0) return false;
        x[k] = c->i;
    }
    bool shift = g->op == ING_AST_LShift;
    if ((!shift && g->op != ING_AST_Pow) || x[1] > 100) return false;
    __int128 v = shift ? x[0] : 1;
    const __int128 most = (__int128)1 << 100;
    for (int64_t k = 0; k < x[1]; k++) {
        if (__builtin_mul_overflow(v, shift ? 2 : (__int128)x[0], &v) || v > most)
            return false;
    }
    v = f->op == ING_AST_Sub ? v - x[2] : v + x[2];
    if (v < (__int128)INT64_MIN || v > (__int128)UINT64_MAX) return false;
    *out = ing_front_int((int64_t)(uint64_t)v);
    out->wide = v > (__int128)INT64_MAX;
    return true;
}

/* Tuples and lists add up, strings too. */
static bool fold_sequences(frame *fr, const value *l, const value *r, value *out) {
    bool seq = (l->kind == V_TUPLE || l->kind == V_LIST) && l->kind == r->kind;
    ing_arena *a = &fr->lo->arena;
    if (seq) {
        value *items = ING_NEW_ARRAY(a, (size_t)l->n + r->n + 1, value);
        if (!items) return false;
        if (l->n) memcpy(items, l->items, l->n * sizeof *items);
        if (r->n) memcpy(items + l->n, r->items, r->n * sizeof *items);
        *out = ing_front_seq(l->kind, items, l->n + r->n);
        return true;
    }
    if (l->kind == V_STR && r->kind == V_STR) {
        char *s = ing_arena_alloc(a, (size_t)l->n + r->n + 1);
        if (!s) return false;
        memcpy(s, l->s, l->n);
        memcpy(s + l->n, r->s, r->n);
        s[l->n + r->n] = 0;
        *out = (value){.kind = V_STR, .s = s, .n = l->n + r->n};
        return true;
    }
    return false;
}

/* An integer and a float as Python compares them, without rounding; 2: no order. */
static int compare_mixed(__int128 a, double b) {
    if (b != b) return 2;
    if (fabs(b) >= 0x1p100) return b > 0 ? -1 : 1;
    __int128 whole = (__int128)b;
    if (a != whole) return a < whole ? -1 : 1;
    double rest = b - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

/* ---- NumPy's numbers in qd.static ---------------------------------------------------------- */

/* Can a type hold the very number? */
static bool holds(ing_dtype t, const value *v) {
    if (!ing_dtype_is_float(t)) return v->kind != V_FLOAT && ing_front_int_fits(v, t);
    double d = float_of(v);
    if (v->kind != V_FLOAT && compare_mixed(wide_of(v), d) != 0) return false;
    if (d != d || isinf(d)) return true;
    if (t == ING_F16) return (double)ing_f16_to_f32(ing_f64_to_f16(d)) == d;
    return t == ING_F64 || (double)(float)d == d;
}

/* The type in which NumPy computes with a number of its own; void: in none. Booleans are the
 * integers of Python there. */
static ing_dtype numpy_type(const value *v) {
    return v->kind == V_BOOL ? ING_VOID : (ing_dtype)(v->dtype ? v->dtype : v->numpy);
}

/* The type in which NumPy goes on with what it computed of numbers of these types, void being
 * Python's: the narrowest that any of its versions takes. */
static ing_dtype numpy_result(ing_dtype a, ing_dtype b) {
    if (!a || !b || a == b) return a ? a : b;
    bool fa = ing_dtype_is_float(a), fb = ing_dtype_is_float(b);
    uint32_t na = ing_dtype_bytes(a), nb = ing_dtype_bytes(b);
    if (fa && fb) return na > nb ? a : b;
    if (fa || fb) {
        ing_dtype f = fa ? a : b;
        uint32_t n = fa ? nb : na;
        return n >= 4 || f == ING_F64 ? ING_F64 : n == 2 ? ING_F32 : f;
    }
    static const ing_dtype sums[] = {ING_I16, ING_I32, ING_I64, ING_F64};
    bool sa = ing_dtype_is_signed(a), sb = ing_dtype_is_signed(b);
    if (sa == sb) return na > nb ? a : b;
    ing_dtype u = sa ? b : a, i = sa ? a : b;
    uint32_t nu = sa ? nb : na, ni = sa ? na : nb;
    return nu < ni ? i
                   : sums[u == ING_U8    ? 0
                          : u == ING_U16 ? 1
                          : u == ING_U32 ? 2
                                         : 3];
}

/* NumPy computes in the types of its numbers, where results wrap or are rounded, and which
 * these are its versions do not agree about. So what the types of the operands cannot hold is
 * refused; what they can is the same in all. */
static ing_status check_numpy(frame *fr, ing_node at, const value *l, const value *r,
                              value *out) {
    ing_dtype a = numpy_type(l), b = r ? numpy_type(r) : ING_VOID;
    bool bools = l->kind == V_BOOL && (!r || r->kind == V_BOOL) &&
                 (l->bound || (r && r->bound)) && out->kind != V_BOOL;
    bool floats = (a && ing_dtype_is_float(a)) || (b && ing_dtype_is_float(b));
    if (fr->in_static && bools)
        return ing_front_fail_at(fr, at, ING_TYPE, "make it a bool of Python: bool(x)",
                                 "NumPy's booleans are no integers");
    if (!fr->in_static || (!a && !b) || (!floats && out->kind == V_FLOAT))
        return ING_OK;
    out->numpy = numpy_result(a, b);
    bool ok = (a && holds(a, out)) || (b && holds(b, out));
    if (r && !a) ok = ok && holds(b, l);
    if (r && !b) ok = ok && holds(a, r);
    if (ok) return ING_OK;
    return ing_front_fail_at(
        fr, at, ING_VALUE, "make it a number of Python first: float(x), int(x)",
        "NumPy's %s cannot hold what is computed here, and its versions differ in what "
        "becomes of it",
        ing_dtype_name(a ? a : b));
}

static bool is_flag(const value *v) {
    return v->kind == V_SEEN && v->seen == ING_GATE_ENUM && v->closed &&
           v->n == ING_ENUM_PLAIN;
}

/* `x | y` of members of a Flag is a member again, which their class finds or makes. */
static ing_status combine_flags(frame *fr, ing_node at, ing_front_op op, const value *l,
                                const value *r, value *out, bool *done) {
    const char *name = op == ING_AST_BitAnd   ? "__and__"
                       : op == ING_AST_BitOr  ? "__or__"
                       : op == ING_AST_BitXor ? "__xor__"
                                              : NULL;
    if (!name || !is_flag(l) || !is_flag(r)) return ING_OK;
    value fn;
    ING_TRY(ing_front_thing_attr(fr, at, l->gref, name, &fn));
    ing_gref got = 0;
    ing_gate_call call = {.fn = fn.gref, .args = &r->gref, .n = 1};
    GATE(fr, at, call, &call, &got, fr->lo->e);
    *out = (value){.kind = got ? V_THING : V_VOID, .gref = got};
    ING_TRY(ing_front_force(fr, at, out));
    *done = is_flag(out);
    if (*done) return ING_OK;
    return ing_front_fail_at(fr, at, ING_TYPE, "combine members of one class",
                             "unsupported operand type(s) for '%s': '%s' and another",
                             ing_front_op_text(op), ing_front_describe(fr, l));
}

static bool is_sequence(const value *v) {
    return v->kind == V_TUPLE || v->kind == V_LIST ||
           (v->kind == V_SEEN &&
            (v->seen == ING_GATE_TUPLE || v->seen == ING_GATE_LIST));
}

static bool is_tuple(const value *v) {
    return v->kind == V_TUPLE || (v->kind == V_SEEN && v->seen == ING_GATE_TUPLE);
}

/* A tuple or list from outside, known by its length and items; one of a class that has a `+` or
 * `*` of its own is not. */
static ing_status take_apart(frame *fr, ing_node at, value *v) {
    value *items;
    uint32_t n = 0;
    bool ok = false;
    if (v->kind != V_SEEN) return ING_OK;
    ING_TRY(ing_front_items(fr, at, v, &items, &n, &ok));
    if (ok) *v = ing_front_seq(is_tuple(v) ? V_TUPLE : V_LIST, items, n);
    return ING_OK;
}

/* `L + [4]` and `L * 2` in qd.static make a new one of the parts. Elsewhere nobody made clear
 * that it is known while compiling, and `+=` would change what is outside. */
static ing_status take_sequences(frame *fr, ing_node at, ing_front_op op, value *l,
                                 value *r) {
    bool own = (l->kind == V_SEEN && l->bound) || (r->kind == V_SEEN && r->bound);
    if (!fr->in_static || own) return ING_OK;
    bool add = op == ING_AST_Add && is_sequence(l) && is_sequence(r) &&
               is_tuple(l) == is_tuple(r);
    bool repeat = op == ING_AST_Mult && ((is_sequence(l) && r->kind == V_INT) ||
                                         (is_sequence(r) && l->kind == V_INT));
    if (!add && !repeat) return ING_OK;
    ING_TRY(take_apart(fr, at, l));
    return take_apart(fr, at, r);
}

ing_status ing_front_fold_binary(frame *fr, ing_node at, ing_front_op op,
                                 const value *left, const value *right, value *out,
                                 bool *done) {
    value l = *left, r = *right;
    *done = false;
    ING_TRY(combine_flags(fr, at, op, &l, &r, out, done));
    if (*done) return ING_OK;
    ING_TRY(ing_front_enum_value(fr, at, &l));
    ING_TRY(ing_front_enum_value(fr, at, &r));
    ING_TRY(take_sequences(fr, at, op, &l, &r));
    if ((op == ING_AST_Add && fold_sequences(fr, &l, &r, out)) ||
        (op == ING_AST_Mult && repeat_sequence(fr, &l, &r, out))) {
        *done = true;
        return ING_OK;
    }
    if (!is_number(&l) || !is_number(&r)) return ING_OK;
    if ((l.dtype || r.dtype) && !fr->in_static)
        return ING_OK; /* wraps as at run time */
    ing_status s;
    bool bools = l.kind == V_BOOL && r.kind == V_BOOL &&
                 (op == ING_AST_BitAnd || op == ING_AST_BitOr || op == ING_AST_BitXor);
    if (l.kind == V_FLOAT || r.kind == V_FLOAT)
        s = fold_floats(fr, at, op, float_of(&l), float_of(&r), out);
    else
        s = fold_ints(fr, at, op, wide_of(&l), wide_of(&r), out);
    if (s == ING_DECLINED) return ING_OK;
    ING_TRY(s);
    if (bools) *out = ing_front_bool(out->i != 0);
    *done = true;
    return check_numpy(fr, at, &l, &r, out);
}

ing_status ing_front_fold_unary(frame *fr, ing_node at, ing_front_op op,
                                const value *given, value *out, bool *done) {
    value v = *given;
    *done = false;
    if (op == ING_AST_Not && ing_front_is_static(&v) && v.kind != V_ARRAY) {
        bool truth = false;
        ING_TRY(ing_front_truth(fr, at, &v, &truth));
        *out = ing_front_bool(!truth);
        *done = true;
        return ING_OK;
    }
    if (op == ING_AST_Invert && v.kind == V_SEEN && v.closed)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "qd.static(operator.invert(x)) asks Python",
            "`~` of a member of a Flag is its own: which bits there are is its class's "
            "to say");
    ING_TRY(ing_front_enum_value(fr, at, &v));
    if (!is_number(&v) || (v.dtype && !fr->in_static)) return ING_OK;
    *done = true;
    if (v.kind == V_FLOAT) {
        *done = op != ING_AST_Invert;
        *out = ing_front_float(op == ING_AST_USub ? -v.f : v.f);
        out->numpy = numpy_type(&v);
        return ING_OK; /* exact in any type */
    }
    if (op == ING_AST_Invert && v.kind == V_BOOL && !fr->in_static) {
        *out = ing_front_bool(!v.i); /* as at run time */
        return ING_OK;
    }
    __int128 x = wide_of(&v);
    if (op == ING_AST_USub) x = -x;
    if (op == ING_AST_Invert) x = ~x;
    ING_TRY(int_result(fr, at, x, out));
    return check_numpy(fr, at, &v, NULL, out);
}

/* ---- comparisons ------------------------------------------------------------------------- */

static bool order(ing_front_op op, int cmp) { /* cmp: sign of l - r, 2 = unordered */
    switch (op) {
    case ING_AST_Eq: return cmp == 0;
    case ING_AST_NotEq: return cmp != 0;
    case ING_AST_Lt: return cmp == -1;
    case ING_AST_LtE: return cmp == -1 || cmp == 0;
    case ING_AST_Gt: return cmp == 1;
    case ING_AST_GtE: return cmp == 1 || cmp == 0;
    default: return false;
    }
}

static int compare_numbers(const value *l, const value *r) {
    if (l->kind == V_FLOAT && r->kind != V_FLOAT) {
        int order = compare_mixed(wide_of(r), l->f);
        return order == 2 ? 2 : -order;
    }
    if (r->kind == V_FLOAT && l->kind != V_FLOAT)
        return compare_mixed(wide_of(l), r->f);
    if (l->kind == V_FLOAT) {
        double a = float_of(l), b = float_of(r);
        return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
    }
    __int128 a = wide_of(l), b = wide_of(r);
    return a < b ? -1 : a > b;
}

static int compare_strings(const value *l, const value *r) {
    uint32_t n = l->n < r->n ? l->n : r->n;
    int c = memcmp(l->s, r->s, n);
    if (c == 0) c = l->n < r->n ? -1 : l->n > r->n;
    return c < 0 ? -1 : c > 0;
}

static bool is_enum(const value *v) {
    return v->kind == V_SEEN && v->seen == ING_GATE_ENUM;
}

/* Known by being that very thing, not by content. */
static bool is_thing(const value *v) {
    return v->gref && (v->kind == V_SEEN || v->kind == V_FUNC || v->kind == V_ARRAY ||
                       v->kind == V_TYPE || v->kind == V_STRUCT_TYPE);
}

/* The very same thing: values by kind and content, things by asking. `==` of two things may
 * be theirs to say, and nobody asks them (R5); members of enums are equal to themselves. */
static ing_status same(frame *fr, ing_node at, const value *l, const value *r,
                       bool identity, bool *out) {
    *out = false;
    bool things = is_thing(l) && is_thing(r) && l->kind == r->kind;
    if (things && l->kind == V_SEEN && l->seen != r->seen) return ING_OK;
    if (things && !identity && l->kind == V_SEEN && l->seen == ING_GATE_CLASS) {
        ING_TRY(ing_front_plain_class(fr, at, l, &identity));
        if (identity) ING_TRY(ing_front_plain_class(fr, at, r, &identity));
    }
    if (things && !identity && !is_enum(l) && l->kind != V_TYPE)
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            "ask with `is`, compare a number, a name or an enum member of theirs, or "
            "compare outside and pass the result",
            "two objects from outside cannot be compared in a kernel");
    if (things && l->kind == V_TYPE) {
        *out = l->type == r->type;
        return ING_OK;
    }
    if (things) {
        value v;
        ING_TRY(ing_front_derive(fr, at, l->gref, ING_DERIVE_SAME, r->gref, &v));
        *out = v.i != 0;
        return ING_OK;
    }
    if (l->kind != r->kind) return ING_OK;
    switch ((value_kind)l->kind) {
    case V_NONE: *out = true; break;
    case V_BOOL: *out = l->i == r->i && (!identity || l->bound == r->bound); break;
    case V_INT: *out = l->i == r->i && l->wide == r->wide; break;
    case V_INTRINSIC: *out = l->tag == r->tag; break;
    case V_FLOAT: *out = l->f == r->f; break;
    case V_STR: *out = compare_strings(l, r) == 0; break;
    case V_DTYPE: *out = l->dtype == r->dtype; break;
    default: break;
    }
    return ING_OK;
}

bool ing_front_may_be_one(const value *l, const value *r) {
    if (l->kind == V_STR) return compare_strings(l, r) == 0;
    if (l->kind == V_FLOAT) return l->f == r->f || (isnan(l->f) && isnan(r->f));
    bool python =
        !l->dtype && !r->dtype && !l->wide; /* which has the small ones once */
    if (python && l->i >= -5 && l->i <= 256) return false;
    return l->i == r->i && l->wide == r->wide;
}

/* `==` as containers ask it of their items: a NaN is there if it is that very object. */
ing_status ing_front_same_item(frame *fr, ing_node at, const value *l, const value *r,
                               bool *result, bool *done) {
    if (l->kind == V_FLOAT && r->kind == V_FLOAT && isnan(l->f) && isnan(r->f))
        return ing_front_fail_at(
            fr, at, ING_VALUE, "ask for it with `x != x`",
            "whether two NaN in containers are one object cannot be known here");
    return ing_front_fold_compare(fr, at, ING_AST_Eq, l, r, result, done);
}

/* Equality of sequences, item by item; lists are as deep as the source nests them. Not done
 * when it is up to items that exist only at run time. */
static ing_status equal_items(frame *fr, ing_node at, const value *l, const value *r,
                              bool *result, bool *done) {
    value *a, *b;
    uint32_t n = 0, m = 0;
    bool ok = false;
    ING_TRY(ing_front_items(fr, at, l, &a, &n, &ok));
    ING_TRY(ing_front_items(fr, at, r, &b, &m, &ok));
    *result = n == m;
    *done = true;
    for (uint32_t i = 0; n == m && i < n; i++) {
        bool same = false, known = false;
        ING_TRY(ing_front_force(fr, at, &a[i]));
        ING_TRY(ing_front_force(fr, at, &b[i]));
        ING_TRY(ing_front_same_item(fr, at, &a[i], &b[i], &same, &known));
        if (known && !same) {
            *result = false;
            *done = true;
            return ING_OK;
        }
        *done &= known;
    }
    return ING_OK;
}

/* `<` and its kin: the first items that differ decide. */
static ing_status order_items(frame *fr, ing_node at, ing_front_op op, const value *l,
                              const value *r, bool *result, bool *done) {
    value *a, *b;
    uint32_t n = 0, m = 0;
    bool ok = false;
    ING_TRY(ing_front_items(fr, at, l, &a, &n, &ok));
    ING_TRY(ing_front_items(fr, at, r, &b, &m, &ok));
    for (uint32_t i = 0; i < n && i < m; i++) {
        bool same = false;
        ING_TRY(ing_front_force(fr, at, &a[i]));
        ING_TRY(ing_front_force(fr, at, &b[i]));
        ING_TRY(ing_front_same_item(fr, at, &a[i], &b[i], &same, done));
        if (!*done) return ING_OK;
        if (!same)
            return ing_front_fold_compare(fr, at, op, &a[i], &b[i], result, done);
    }
    *result = order(op, n < m ? -1 : n > m);
    *done = true;
    return ING_OK;
}

static bool is_object(const value *v) {
    return v->kind == V_SEEN && v->seen == ING_GATE_OBJECT;
}

static ing_status contains(frame *fr, ing_node at, const value *l, const value *r,
                           bool *result) {
    *result = false;
    if (l->kind == V_STR && r->kind == V_STR) {
        *result = memmem(r->s, r->n, l->s, l->n) != NULL;
        return ING_OK;
    }
    if (r->kind == V_SEEN && r->seen == ING_GATE_DICT &&
        (l->kind == V_STR || l->kind == V_INT)) {
        ing_gate_key k;
        ING_TRY(ing_front_key(fr, at, l, &k));
        GATE(fr, at, has, r->gref, NULL, &k, result, fr->lo->e);
        return ING_OK;
    }
    if (r->kind == V_DICT && ing_front_is_static(l)) {
        value v;
        return ing_front_dict_get(fr, at, r, l, &v, result);
    }
    value *items;
    uint32_t n = 0;
    bool ok = false;
    if (is_object(r) && r->bound)
        return ing_front_fail_at(fr, at, ING_TYPE,
                                 "use a tuple or a list, or ask Python: "
                                 "qd.static(operator.contains(x, item))",
                                 "%s says by itself what is in it",
                                 ing_front_describe(fr, r));
    ING_TRY(ing_front_items(fr, at, r, &items, &n, &ok));
    if (!ok)
        return ing_front_fail_at(fr, at, ING_TYPE, "use a tuple or a list",
                                 "`in` needs a compile-time sequence; this is %s",
                                 ing_front_describe(fr, r));
    for (uint32_t i = 0; i < n && !*result; i++) {
        bool done = false;
        ING_TRY(ing_front_force(fr, at, &items[i]));
        ING_TRY(ing_front_same_item(fr, at, l, &items[i], result, &done));
        if (!done)
            return ing_front_fail_at(
                fr, at, ING_COMPILE, "compare with `==` and `or`",
                "`in` needs compile-time values; this is %s",
                ing_front_describe(fr, ing_front_is_static(l) ? &items[i] : l));
    }
    return ING_OK;
}

/* A member of a plain enum equals itself and nothing else; one that is a number or a string
 * as well is compared by that. */
static bool equals_itself(const value *l, const value *r) {
    return (is_enum(l) && l->n == ING_ENUM_PLAIN) ||
           (is_enum(r) && r->n == ING_ENUM_PLAIN);
}

static bool is_dict(const value *v) {
    return v->kind == V_DICT || (v->kind == V_SEEN && v->seen == ING_GATE_DICT);
}

/* NumPy says what its own dtypes equal: classes and names, too. */
static bool is_array_dtype(const value *v, const value *other) {
    return v->kind == V_DTYPE && v->bound &&
           (other->kind == V_STR ||
            (other->kind == V_SEEN && other->seen == ING_GATE_CLASS));
}

/* Dicts are compared by nobody here, and arrays of NumPy compare each of their elements. */
static ing_status comparable_whole(frame *fr, ing_node at, const value *l,
                                   const value *r) {
    bool dicts = is_dict(l) && is_dict(r);
    bool array = (l->kind == V_ARRAY) != (r->kind == V_ARRAY) && l->kind != V_NONE &&
                 r->kind != V_NONE;
    if (l->kind == V_FORMAT || r->kind == V_FORMAT)
        return ing_front_fail_at(fr, at, ING_TYPE, "compare the numbers in it",
                                 "text that is made to be printed cannot be compared");
    if (is_array_dtype(l, r) || is_array_dtype(r, l))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "compare with one of Ingot's: x.dtype == qd.f32",
            "the dtype of an array is not compared with those of NumPy in kernels");
    if (!dicts && !array) return ING_OK;
    return ing_front_fail_at(
        fr, at, ING_TYPE,
        dicts ? "compare the items that matter, or compare outside and pass the result"
              : "compare its elements, or ask about it with `is`",
        dicts ? "whether %s and another one are equal cannot be known here"
              : "%s is compared element by element, and not as a whole",
        ing_front_describe(fr, dicts || l->kind == V_ARRAY ? l : r));
}

/* An object may say by itself what it equals (a class derived from str, say), and nobody
 * asks it (R5). None equals nothing else. */
static ing_status comparable(frame *fr, ing_node at, const value *l, const value *r) {
    if ((!is_object(l) || r->kind == V_NONE) && (!is_object(r) || l->kind == V_NONE))
        return ING_OK;
    return ing_front_fail_at(
        fr, at, ING_TYPE,
        "compare a number, a name or an enum member of it, or compare outside and pass "
        "the result",
        "%s cannot be compared in a kernel",
        ing_front_describe(fr, is_object(l) ? l : r));
}

/* A number is compared with one of NumPy's floats in that type; *rounds: which does not hold
 * it. */
static ing_status check_numpy_order(frame *fr, ing_node at, const value *l,
                                    const value *r, bool *rounds) {
    ing_dtype a = numpy_type(l), b = numpy_type(r);
    bool bad = (a && ing_dtype_is_float(a) && !holds(a, r)) ||
               (b && ing_dtype_is_float(b) && !holds(b, l));
    bool both = a && b && ing_dtype_is_float(a) && ing_dtype_is_float(b);
    *rounds = bad && !both;
    if (!fr->in_static || !*rounds) return ING_OK;
    return ing_front_fail_at(
        fr, at, ING_VALUE, "make it a number of Python first: float(x), int(x)",
        "NumPy's %s cannot hold what it is compared with here, and rounds it",
        ing_dtype_name(a && ing_dtype_is_float(a) ? a : b));
}

ing_status ing_front_fold_compare(frame *fr, ing_node at, ing_front_op op,
                                  const value *left, const value *right, bool *result,
                                  bool *done) {
    value l = *left, r = *right;
    *done = false;
    if (op == ING_AST_In || op == ING_AST_NotIn) {
        ING_TRY(contains(fr, at, &l, &r, result));
        *result ^= op == ING_AST_NotIn;
        *done = true;
        return ING_OK;
    }
    if (op == ING_AST_Is || op == ING_AST_IsNot) {
        ING_TRY(same(fr, at, &l, &r, true, result));
        *result ^= op == ING_AST_IsNot;
        *done = true;
        return ING_OK;
    }
    bool equality = op == ING_AST_Eq || op == ING_AST_NotEq;
    if (!equality || !equals_itself(&l, &r)) {
        ING_TRY(ing_front_enum_value(fr, at, &l));
        ING_TRY(ing_front_enum_value(fr, at, &r));
    }
    if (ing_front_is_runtime(&l) || ing_front_is_runtime(&r)) return ING_OK;
    if (is_number(&l) && is_number(&r)) {
        bool rounds = false;
        ING_TRY(check_numpy_order(fr, at, &l, &r, &rounds));
        if (rounds) return ING_OK; /* as at run time */
        *result = order(op, compare_numbers(&l, &r));
        *done = true;
    } else if (l.kind == V_STR && r.kind == V_STR) {
        *result = order(op, compare_strings(&l, &r));
        *done = true;
    } else if (!equality && is_sequence(&l) && is_sequence(&r) &&
               is_tuple(&l) == is_tuple(&r) && !l.tensor && !r.tensor) {
        return order_items(fr, at, op, &l, &r, result, done);
    } else if (op == ING_AST_Eq || op == ING_AST_NotEq) {
        if (l.kind == V_SHAPE || r.kind == V_SHAPE) return ING_OK;
        ING_TRY(comparable(fr, at, &l, &r));
        ING_TRY(comparable_whole(fr, at, &l, &r));
        *done = true;
        if (is_sequence(&l) && is_sequence(&r) && is_tuple(&l) == is_tuple(&r))
            ING_TRY(equal_items(fr, at, &l, &r, result, done));
        else
            ING_TRY(same(fr, at, &l, &r, false, result));
        *result ^= op == ING_AST_NotEq;
    }
    return ING_OK;
}
