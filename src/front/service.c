/* What kernels ask of the runtime: print, assert, random numbers, and the checks of debug
 * mode. Called by intrin.c, stmt.c, expr.c and arith.c. Whatever is only for the failing
 * case is lowered inside the branch that fails, so that a kernel pays one test. */
#include "front/front_int.h"

#include "gen/abi.h"

#include <string.h>

/* ---- print ------------------------------------------------------------------------------ */

/* sep= and end=: a string known while compiling, or None for the default. */
static ing_status text_keyword(frame *fr, ing_node at, value v, const char *name,
                               value *out) {
    ING_TRY(ing_front_force(fr, at, &v));
    if (v.kind == V_NONE) return ING_OK;
    if (v.kind != V_STR)
        return ing_front_fail_at(fr, at, ING_TYPE, "write a plain string",
                                 "%s= must be a string, not %s", name,
                                 ing_front_describe(fr, &v));
    *out = v;
    return ING_OK;
}

static ing_status print_options(frame *fr, const call_args *a, value *sep, value *end) {
    *sep = (value){.kind = V_STR, .s = " ", .n = 1};
    *end = (value){.kind = V_STR, .s = "\n", .n = 1};
    for (uint32_t i = 0; i < a->n_kw; i++) {
        const char *name = ing_front_atom_text(fr, a->kw_name[i]);
        if (strcmp(name, "flush") == 0) continue; /* it is, when the kernel returns */
        bool is_sep = strcmp(name, "sep") == 0;
        if (!is_sep && strcmp(name, "end") != 0)
            return ing_front_fail_at(
                fr, a->kw_node[i], ING_SYNTAX,
                "output goes to sys.stdout; redirect that around the kernel call",
                "print has no parameter '%s' in kernels", name);
        ING_TRY(text_keyword(fr, a->kw_node[i], a->kw[i], name, is_sep ? sep : end));
    }
    return ING_OK;
}

static ing_status print_pieces(frame *fr, const call_args *a, ing_front_pieces *p) {
    value sep, end;
    ING_TRY(print_options(fr, a, &sep, &end));
    for (uint32_t i = 0; i < a->n; i++) {
        value v = a->at[i];
        ING_TRY(ing_front_force(fr, a->node[i], &v));
        if (i) ING_TRY(ing_front_format_text(fr, p, sep.s, sep.n));
        ING_TRY(ing_front_format_value(fr, a->node[i], p, &v, "", false));
    }
    return ing_front_format_text(fr, p, end.s, end.n);
}

/* A message that was put together, as its number and the numbers in it; `p` is done with. */
static ing_status finish(frame *fr, ing_status s, ing_front_pieces *p, bool repr,
                         uint32_t *code, uint32_t *ids, uint32_t most, uint32_t *n) {
    if (s == ING_OK) s = ing_front_message(fr, p, repr, code, ids, most, n);
    ing_vec_fini(p);
    return s;
}

ing_status ing_front_print(frame *fr, ing_node n, const call_args *a) {
    ing_front_pieces p = {0};
    uint32_t ids[ING_ABI_MAX_PRINT], count = 0, code = 0;
    ing_status s = print_pieces(fr, a, &p);
    ING_TRY(finish(fr, s, &p, false, &code, ids, ING_ABI_MAX_PRINT, &count));
    if (count > ING_ABI_MAX_PRINT)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "print it in several parts",
                                 "one print shows at most %d numbers, this has %u",
                                 ING_ABI_MAX_PRINT, count);
    fr->b.loc = n;
    ing_ir_emit_list(&fr->b, ING_OP_PRINT, code, ids, count);
    return ING_OK;
}

ing_status ing_front_static_print(frame *fr, ing_node n, const call_args *a) {
    value sep, end;
    ing_front_pieces p = {0};
    ing_status s = print_options(fr, a, &sep, &end);
    for (uint32_t i = 0; s == ING_OK && i < a->n; i++) {
        value v = a->at[i];
        s = ing_front_force(fr, a->node[i], &v);
        if (s == ING_OK && i) s = ing_front_format_text(fr, &p, sep.s, sep.n);
        if (s == ING_OK) s = ing_front_format_static(fr, &p, &v);
    }
    if (s == ING_OK) s = ing_front_format_text(fr, &p, end.s, end.n);
    ing_bytes text;
    ing_bytes_init(&text);
    for (uint32_t i = 0; i < p.len; i++) ing_bytes_put(&text, p.at[i].s, p.at[i].n);
    ing_vec_fini(&p);
    if (s == ING_OK && text.failed)
        s = ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    const ing_gate *g = fr->lo->gate;
    if (s == ING_OK && text.at && g->ops->say) {
        s = g->ops->say(g->self, (const char *)text.at, text.len, fr->lo->e);
        if (s != ING_OK) s = ing_front_fail_gate(fr, n, s);
    }
    ing_bytes_fini(&text);
    return s;
}

/* ---- assert ------------------------------------------------------------------------------ */

static ing_status assert_message(frame *fr, ing_node msg, ing_front_pieces *p) {
    value v;
    if (ing_front_is_percent(fr, msg))
        ING_TRY(ing_front_percent(fr, msg, &v));
    else
        ING_TRY(ing_front_expr_forced(fr, msg, &v));
    if (ing_front_is_runtime(&v) || !(v.kind == V_FORMAT || ing_front_is_static(&v)))
        return ing_front_fail_at(
            fr, msg, ING_SYNTAX, "write an f-string: f\"x is {x}\"",
            "assert info must be constant or formatted string, not %s",
            ing_front_describe(fr, &v));
    return ing_front_format_value(fr, msg, p, &v, "", true);
}

/* Inside the branch that fails: the message with its numbers, then the stop. */
static ing_status assert_failed(frame *fr, ing_node n, ing_node msg) {
    ing_front_pieces p = {0};
    uint32_t ids[ING_ABI_MAX_DETAIL], count = 0, code = 0;
    ing_status s = assert_message(fr, msg, &p);
    ING_TRY(finish(fr, s, &p, true, &code, ids, ING_ABI_MAX_DETAIL, &count));
    if (count > ING_ABI_MAX_DETAIL)
        return ing_front_fail_at(fr, msg, ING_SYNTAX, "show fewer",
                                 "a message of assert shows at most %d numbers",
                                 ING_ABI_MAX_DETAIL);
    fr->b.loc = n;
    if (count) ing_ir_emit_list(&fr->b, ING_OP_DETAIL, 0, ids, count);
    ing_ir_emit(&fr->b, ING_OP_CHECK, 0, ing_ir_const_int(&fr->b, ING_U1, 0), code, 0);
    return ING_OK;
}

/* never("why"): a place that this machine cannot run fails when it is reached, debug mode or not. Most
 * are not: a branch for another machine, whose condition is known only when the code is made. */
ing_status ing_front_never(frame *fr, ing_node n, const value *why) {
    ing_front_pieces p = {0};
    uint32_t none, count = 0, code = 0;
    ing_status s = ing_front_format_text(fr, &p, why->s, why->n);
    if (s == ING_OK) s = ing_front_message(fr, &p, true, &code, &none, 0, &count);
    ing_vec_fini(&p);
    ING_TRY(s);
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_CHECK, 0, ing_ir_const_int(&fr->b, ING_U1, 0), code, 0);
    return ING_OK;
}

/* Does an expression call something? Nodes are in tree order: its own follow it, as long as
 * they stand before its end. */
static bool has_call(const ing_front_tree *t, ing_node n) {
    const ing_front_node *of = &t->nodes.at[n];
    for (ing_node i = n; i < t->nodes.len; i++) {
        const ing_front_node *x = &t->nodes.at[i];
        if (x->line > of->end_line ||
            (x->line == of->end_line && x->col >= of->end_col))
            return false;
        if (x->kind == ING_NODE_CALL) return true;
    }
    return false;
}

/* Outside of debug mode nothing is checked, but what the condition calls is called. */
ing_status ing_front_stmt_assert(frame *fr, ing_node n, flow *out) {
    (void)out;
    const struct nf_ASSERT *f = NF(fr->t, n, ASSERT);
    int64_t debug = 0;
    ING_TRY(ing_front_config_get(fr, n, ING_SET_debug, &debug));
    if (!debug && !has_call(fr->t, f->test)) return ING_OK;
    value v;
    uint32_t cond = 0;
    ING_TRY(ing_front_expr_forced(fr, f->test, &v));
    ING_TRY(ing_front_condition(fr, f->test, &v, "assert", &cond));
    if (!debug) return ING_OK;
    fr->b.loc = n;
    if (!f->msg) {
        ing_ir_emit(&fr->b, ING_OP_CHECK, 0, cond, ING_ABI_ASSERT, 0);
        return ING_OK;
    }
    uint32_t bad = ing_ir_emit(&fr->b, ING_OP_NOT, ING_U1, cond, 0, 0);
    ing_ir_block_begin(&fr->b);
    uint32_t mark = ing_front_scope_open(fr);
    ing_status s = ing_front_nest(fr, n);
    if (s == ING_OK) s = assert_failed(fr, n, f->msg);
    fr->control--;
    ing_front_scope_close(fr, mark);
    uint32_t block = ing_ir_block_end(&fr->b);
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_IF, 0, bad, block, 0);
    return s;
}

/* ---- checks of debug mode -------------------------------------------------------------------- */

ing_status ing_front_check_bounds(frame *fr, ing_node at, uint32_t array, uint32_t axis,
                                  uint32_t index, ing_dtype t) {
    return ing_front_check_extent(fr, at, array, axis, 0, index, t);
}

ing_status ing_front_check_extent(frame *fr, ing_node at, uint32_t array, uint32_t axis,
                                  uint32_t extent, uint32_t index, ing_dtype t) {
    int64_t debug = 0, check = 0;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_debug, &debug));
    if (!debug)
        ING_TRY(ing_front_config_get(fr, at, ING_SET_check_out_of_bound, &check));
    if (!debug && !check) return ING_OK;
    ing_ir_builder *b = &fr->b;
    b->loc = at;
    uint32_t wide = ing_front_emit_cast(fr, index, t, ING_I64);
    uint32_t dim = array ? ing_ir_emit(b, ING_OP_DIM, ING_I64, array, axis, 0)
                         : ing_ir_const_int(b, ING_I64, extent);
    uint32_t zero = ing_ir_const_int(b, ING_I64, 0);
    uint32_t low = ing_ir_emit(b, ING_OP_LT, ING_U1, wide, zero, 0);
    uint32_t high = ing_ir_emit(b, ING_OP_GE, ING_U1, wide, dim, 0);
    uint32_t bad = ing_ir_emit(b, ING_OP_OR, ING_U1, low, high, 0);
    ing_ir_block_begin(b);
    uint32_t ids[3] = {ing_ir_const_int(b, ING_I32, axis), wide, dim};
    ing_ir_emit_list(&fr->b, ING_OP_DETAIL, 0, ids, 3);
    uint32_t no = ing_ir_const_int(b, ING_U1, 0);
    ing_ir_emit(b, ING_OP_CHECK, 0, no, ING_ABI_BOUNDS, 0);
    uint32_t block = ing_ir_block_end(b);
    ing_ir_emit(b, ING_OP_IF, 0, bad, block, 0);
    return ING_OK;
}

/* u1: `op` on a and b left the range of t; r is what it yielded. Signed sums overflow when
 * the sign of the result is not that of both operands (a minus b: of a and not b). */
static uint32_t sum_overflowed(frame *fr, ing_op op, ing_dtype t, uint32_t a,
                               uint32_t b, uint32_t r) {
    ing_ir_builder *x = &fr->b;
    bool minus = op == ING_OP_SUB;
    if (!ing_dtype_is_signed(t))
        return ing_ir_emit(x, minus ? ING_OP_LT : ING_OP_GT, ING_U1, a, minus ? b : r,
                           0);
    uint32_t ar = ing_ir_emit(x, ING_OP_XOR, t, a, r, 0);
    uint32_t br = ing_ir_emit(x, ING_OP_XOR, t, minus ? a : b, minus ? b : r, 0);
    uint32_t both = ing_ir_emit(x, ING_OP_AND, t, ar, br, 0);
    return ing_ir_emit(x, ING_OP_LT, ING_U1, both, ing_ir_const_int(x, t, 0), 0);
}

/* The product divided by one factor gives the other; a factor of 0 never overflows, and
 * MIN * -1 is told apart, because that division wraps too. */
static uint32_t product_overflowed(frame *fr, ing_dtype t, uint32_t a, uint32_t b,
                                   uint32_t r) {
    ing_ir_builder *x = &fr->b;
    uint32_t zero = ing_ir_const_int(x, t, 0);
    uint32_t some = ing_ir_emit(x, ING_OP_NE, ING_U1, a, zero, 0);
    uint32_t back = ing_ir_emit(x, ING_OP_DIV, t, r, a, 0);
    uint32_t differs = ing_ir_emit(x, ING_OP_NE, ING_U1, back, b, 0);
    uint32_t bad = ing_ir_emit(x, ING_OP_AND, ING_U1, some, differs, 0);
    if (!ing_dtype_is_signed(t)) return bad;
    int64_t lowest = INT64_MIN >> (64 - ing_dtype_bits(t));
    uint32_t minus = ing_ir_const_int(x, t, -1), min = ing_ir_const_int(x, t, lowest);
    uint32_t m = ing_ir_emit(x, ING_OP_EQ, ING_U1, a, minus, 0);
    uint32_t l = ing_ir_emit(x, ING_OP_EQ, ING_U1, b, min, 0);
    uint32_t edge = ing_ir_emit(x, ING_OP_AND, ING_U1, m, l, 0);
    return ing_ir_emit(x, ING_OP_OR, ING_U1, bad, edge, 0);
}

/* Shifting back gives something else; counts beyond the width lose everything. */
static uint32_t shift_overflowed(frame *fr, ing_dtype t, uint32_t a, uint32_t b,
                                 uint32_t r) {
    ing_ir_builder *x = &fr->b;
    uint32_t back = ing_ir_emit(x, ING_OP_SAR, t, r, b, 0);
    return ing_ir_emit(x, ING_OP_NE, ING_U1, back, a, 0);
}

/* An integer has no power that is less than one. */
ing_status ing_front_check_power(frame *fr, ing_node at, ing_dtype t, uint32_t y) {
    int64_t debug = 0;
    if (!ing_dtype_is_int(t) || !ing_dtype_is_signed(t)) return ING_OK;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_debug, &debug));
    if (!debug) return ING_OK;
    static const char text[] = "Negative exponent in pow(int, int) is not allowed.";
    ing_front_pieces p = {0};
    uint32_t code = 0, none, n = 0;
    ing_status s = ing_front_format_text(fr, &p, text, sizeof text - 1);
    if (s == ING_OK) s = ing_front_message(fr, &p, true, &code, &none, 0, &n);
    ing_vec_fini(&p);
    fr->b.loc = at;
    uint32_t zero = ing_ir_const_int(&fr->b, t, 0);
    uint32_t fine = ing_ir_emit(&fr->b, ING_OP_GE, ING_U1, y, zero, 0);
    ing_ir_emit(&fr->b, ING_OP_CHECK, 0, fine, code, 0);
    return s;
}

/* An integer divided by 0 is 0; debug mode stops there. */
ing_status ing_front_check_divisor(frame *fr, ing_node at, ing_op op, ing_dtype t,
                                   uint32_t y) {
    int64_t debug = 0;
    bool divides = op == ING_OP_DIV || op == ING_OP_REM || op == ING_OP_FLOORDIV ||
                   op == ING_OP_MOD;
    if (!divides || !ing_dtype_is_int(t)) return ING_OK;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_debug, &debug));
    if (!debug) return ING_OK;
    fr->b.loc = at;
    uint32_t zero = ing_ir_const_int(&fr->b, t, 0);
    uint32_t fine = ing_ir_emit(&fr->b, ING_OP_NE, ING_U1, y, zero, 0);
    ing_ir_emit(&fr->b, ING_OP_CHECK, 0, fine, ING_ABI_ZERO, 0);
    return ING_OK;
}

ing_status ing_front_check_overflow(frame *fr, ing_node at, ing_op op, ing_dtype t,
                                    uint32_t a, uint32_t b, uint32_t r) {
    bool checked =
        op == ING_OP_ADD || op == ING_OP_SUB || op == ING_OP_MUL || op == ING_OP_SHL;
    if (!checked || !ing_dtype_is_int(t) || t == ING_U1) return ING_OK;
    int64_t debug = 0;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_debug, &debug));
    if (!debug) return ING_OK;
    uint32_t bad = 0, what = 0;
    fr->b.loc = at;
    if (op == ING_OP_MUL) {
        bad = product_overflowed(fr, t, a, b, r);
        what = ING_ABI_OVERFLOW_MUL;
    } else if (op == ING_OP_SHL) {
        bad = shift_overflowed(fr, t, a, b, r);
        what = ING_ABI_OVERFLOW_SHL;
    } else {
        bad = sum_overflowed(fr, op, t, a, b, r);
        what = op == ING_OP_ADD ? ING_ABI_OVERFLOW_ADD : ING_ABI_OVERFLOW_SUB;
    }
    ing_ir_block_begin(&fr->b);
    uint32_t id = ing_ir_const_int(&fr->b, ING_I32, what);
    ing_ir_emit_list(&fr->b, ING_OP_PRINT, ING_ABI_OVERFLOW, &id, 1);
    uint32_t block = ing_ir_block_end(&fr->b);
    ing_ir_emit(&fr->b, ING_OP_IF, 0, bad, block, 0);
    return ING_OK;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* The dtype that is asked for, by position or as dtype= / dt=; default_fp if none is. */
static ing_status random_dtype(frame *fr, ing_node n, const call_args *a,
                               ing_dtype *out) {
    value v = ing_front_none();
    ing_node at = n;
    int64_t fp = 0;
    if (a->n) {
        v = a->at[0];
        at = a->node[0];
    }
    for (uint32_t i = 0; i < a->n_kw; i++) {
        const char *name = ing_front_atom_text(fr, a->kw_name[i]);
        if (strcmp(name, "dtype") != 0 && strcmp(name, "dt") != 0)
            return ing_front_fail_at(fr, a->kw_node[i], ING_SYNTAX,
                                     "use dtype=", "random has no parameter '%s'",
                                     name);
        v = a->kw[i];
        at = a->kw_node[i];
    }
    ING_TRY(ing_front_force(fr, at, &v));
    if (v.kind != V_NONE) return ing_front_dtype(fr, at, &v, out);
    ING_TRY(ing_front_config_get(fr, n, ING_SET_default_fp, &fp));
    *out = (ing_dtype)fp;
    return ING_OK;
}

static uint32_t draw(frame *fr, ing_dtype t) {
    return ing_ir_emit(&fr->b, ING_OP_RANDOM, t, 0, 0, 0);
}

ing_status ing_front_random(frame *fr, ing_node n, const call_args *a, value *out) {
    ing_dtype t = ING_VOID;
    ING_TRY(random_dtype(fr, n, a, &t));
    *out = ing_front_rt(draw(fr, t), t);
    return ING_OK;
}

/* Box and Muller: sqrt(-2 ln u) cos(2 pi v), with u in (0, 1]. */
ing_status ing_front_randn(frame *fr, ing_node n, const call_args *a, value *out) {
    ing_ir_builder *b = &fr->b;
    ing_dtype asked = ING_VOID, t;
    ING_TRY(random_dtype(fr, n, a, &asked));
    if (!ing_dtype_is_float(asked))
        return ing_front_fail_at(fr, n, ING_TYPE, "use qd.f32 or qd.f64",
                                 "randn gives floats, not '%s'", ing_dtype_name(asked));
    t = asked == ING_F64 ? ING_F64 : ING_F32;
    uint32_t one = ing_ir_const_float(b, t, 1), minus2 = ing_ir_const_float(b, t, -2);
    uint32_t turn = ing_ir_const_float(b, t, 6.283185307179586);
    uint32_t u = ing_ir_emit(b, ING_OP_SUB, t, one, draw(fr, t), 0);
    uint32_t ln = ing_ir_emit(b, ING_OP_LOG, t, u, 0, 0);
    uint32_t r = ing_ir_emit(b, ING_OP_MUL, t, ln, minus2, 0);
    r = ing_ir_emit(b, ING_OP_SQRT, t, r, 0, 0);
    uint32_t angle = ing_ir_emit(b, ING_OP_MUL, t, draw(fr, t), turn, 0);
    uint32_t c = ing_ir_emit(b, ING_OP_COS, t, angle, 0, 0);
    uint32_t v = ing_ir_emit(b, ING_OP_MUL, t, r, c, 0);
    *out = ing_front_rt(ing_front_emit_cast(fr, v, t, asked), asked);
    return ING_OK;
}
