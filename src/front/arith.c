/* Operators: binary, unary, comparisons, `and`/`or`. Static operands are
 * folded (fold.c); for the rest, casts are inserted by the reference's type rules and one
 * instruction is emitted per operator. Called by expr.c through its table. */
#include "front/front_int.h"

#include <string.h>

/* True when evaluating the node can neither stop, nor change, nor cost anything much: then
 * a select serves. */
static bool is_plain(const frame *fr, ing_node n) {
    uint8_t kind = fr->t->nodes.at[n].kind;
    return kind == ING_NODE_NAME || kind == ING_NODE_CONSTANT;
}

/* ---- arithmetic -------------------------------------------------------------------------- */

typedef enum rule {
    RULE_COMMON, /* promoted type of both */
    RULE_DIV,    /* integers become default_fp first */
    RULE_LEFT,   /* shifts: the left operand's type; integers only */
    RULE_POW,    /* an integer exponent keeps the left type */
    RULE_BITS,   /* promoted type; integers only */
} rule;

static const struct {
    ing_op op;
    rule rule;
} binaries[ING_AST_N] = {
    [ING_AST_Add] = {ING_OP_ADD, RULE_COMMON},
    [ING_AST_Sub] = {ING_OP_SUB, RULE_COMMON},
    [ING_AST_Mult] = {ING_OP_MUL, RULE_COMMON},
    [ING_AST_Div] = {ING_OP_DIV, RULE_DIV},
    [ING_AST_FloorDiv] = {ING_OP_FLOORDIV, RULE_COMMON},
    [ING_AST_Mod] = {ING_OP_MOD, RULE_COMMON},
    [ING_AST_Pow] = {ING_OP_POW, RULE_POW},
    [ING_AST_LShift] = {ING_OP_SHL, RULE_LEFT},
    [ING_AST_RShift] = {ING_OP_SAR, RULE_LEFT},
    [ING_AST_BitOr] = {ING_OP_OR, RULE_BITS},
    [ING_AST_BitXor] = {ING_OP_XOR, RULE_BITS},
    [ING_AST_BitAnd] = {ING_OP_AND, RULE_BITS},
};

static ing_status fail_operands(frame *fr, ing_node at, const char *op, const value *l,
                                const value *r) {
    const char *a =
        ing_front_is_runtime(l) ? ing_dtype_name(v_type(l)) : ing_front_describe(fr, l);
    const char *b =
        ing_front_is_runtime(r) ? ing_dtype_name(v_type(r)) : ing_front_describe(fr, r);
    const value *odd = ing_front_is_scalar(l) ? r : l;
    const char *remedy = ing_front_number_remedy(odd);
    bool repeats = !strcmp(op, "*") && (odd->kind == V_LIST || odd->kind == V_TUPLE);
    if (repeats) {
        const value *count = odd == l ? r : l;
        bool whole = ing_front_is_runtime(count) && !ing_dtype_is_float(v_type(count));
        remedy = whole ? "the length of a list is known while compiling: make the "
                         "count a qd.template() parameter, or pass an array"
                       : "multiply a vector: qd.Vector([...]) * x";
    }
    if (ing_front_is_scalar(odd)) remedy = "cast the float: qd.cast(x, qd.i32)";
    return ing_front_fail_at(fr, at, ING_TYPE, remedy,
                             "unsupported operand type(s) for '%s': '%s' and '%s'", op,
                             a, b);
}

static ing_status common_type(frame *fr, ing_node at, ing_front_op op, const value *l,
                              const value *r, ing_dtype *out) {
    ing_dtype a = v_type(l), b = v_type(r);
    bool floats = ing_dtype_is_float(a) || ing_dtype_is_float(b);
    int64_t fp = 0;
    switch (binaries[op].rule) {
    case RULE_COMMON:
        *out = ing_front_promote(a, b);
        ING_TRY(ing_front_arith_type(fr, at, out));
        break;
    case RULE_DIV:
        if (!ing_dtype_is_float(a) || !ing_dtype_is_float(b))
            ING_TRY(ing_front_config_get(fr, at, ING_SET_default_fp, &fp));
        *out = ing_front_promote(ing_dtype_is_float(a) ? a : (ing_dtype)fp,
                                 ing_dtype_is_float(b) ? b : (ing_dtype)fp);
        break;
    case RULE_LEFT:
        if (floats) return fail_operands(fr, at, ing_front_op_text(op), l, r);
        *out = a;
        ING_TRY(ing_front_arith_type(fr, at, out));
        break;
    case RULE_POW:
        *out = ing_dtype_is_float(b) ? ing_front_promote(a, b) : a;
        ING_TRY(ing_front_arith_type(fr, at, out));
        break;
    case RULE_BITS:
        if (floats) return fail_operands(fr, at, ing_front_op_text(op), l, r);
        *out = ing_front_promote(a, b);
        break;
    }
    return ING_OK;
}

ing_status ing_front_binary(frame *fr, ing_node at, ing_front_op op, const value *left,
                            const value *right, value *out) {
    bool done = false;
    value held[2] = {*left, *right}, *l = &held[0], *r = &held[1];
    ING_TRY(ing_front_sequence_vector(fr, at, l));
    ING_TRY(ing_front_sequence_vector(fr, at, r));
    if (ing_front_is_tensor(fr, l) || ing_front_is_tensor(fr, r))
        return ing_front_tensor_binary(fr, at, op, l, r, out);
    ING_TRY(ing_front_fold_binary(fr, at, op, l, r, out, &done));
    if (done) return ING_OK;
    if (!binaries[op].op)
        return ing_front_fail_at(
            fr, at, ING_SYNTAX,
            ing_front_is_scalar(l) || ing_front_is_scalar(r)
                ? "multiply numbers with '*'"
                : "loop over the elements: c[i, j] += a[i, k] * b[k, j]",
            "the operator '%s' takes vectors and matrices, not %s and %s",
            ing_front_op_text(op), ing_front_describe(fr, l),
            ing_front_describe(fr, r));
    if (!ing_front_is_scalar(l) || !ing_front_is_scalar(r))
        return fail_operands(fr, at, ing_front_op_text(op), l, r);
    value a, b;
    ING_TRY(ing_front_load_both(fr, at, l, at, r, &a, &b));
    ing_dtype t = ING_VOID;
    ING_TRY(common_type(fr, at, op, &a, &b, &t));
    uint32_t x = ing_front_emit_cast(fr, a.inst, v_type(&a), t);
    uint32_t y = ing_front_emit_cast(fr, b.inst, v_type(&b), t);
    if (op == ING_AST_Pow) ING_TRY(ing_front_check_power(fr, at, t, y));
    ING_TRY(ing_front_check_divisor(fr, at, binaries[op].op, t, y));
    uint32_t inst = ing_ir_emit(&fr->b, binaries[op].op, t, x, y, 0);
    bool wraps = op == ING_AST_Add || op == ING_AST_Sub || op == ING_AST_Mult;
    if (fr->in_index && wraps && inst && ing_dtype_is_signed(t) &&
        ing_dtype_bits(t) >= 32)
        fr->b.func->insts.at[inst].flags |= ING_IR_NSW;
    value made = ing_front_rt(inst, t);
    ing_front_put_wide(fr, binaries[op].op, l, &a, r, &b, &made);
    *out = made;
    return ing_front_check_overflow(fr, at, binaries[op].op, t, x, y, inst);
}

ing_status ing_front_expr_binop(frame *fr, ing_node n, value *out) {
    const struct nf_BINOP *f = NF(fr->t, n, BINOP);
    value l, r;
    if (ing_front_is_percent(fr, n)) return ing_front_percent_static(fr, n, out);
    if (ing_front_fold_power(fr, n, out)) return ING_OK;
    ING_TRY(ing_front_expr_forced(fr, f->left, &l));
    /* The right side may change what the left one refers to. */
    if (l.kind == V_REF ? !is_plain(fr, f->right)
                        : ing_front_may_change(fr->t, f->right, 0))
        ING_TRY(ing_front_keep(fr, f->left, &l));
    ING_TRY(ing_front_expr_forced(fr, f->right, &r));
    fr->b.loc = n;
    return ing_front_binary(fr, n, (ing_front_op)f->op, &l, &r, out);
}

ing_status ing_front_expr_unary(frame *fr, ing_node n, value *out) {
    const struct nf_UNARYOP *f = NF(fr->t, n, UNARYOP);
    value v;
    ING_TRY(ing_front_expr_forced(fr, f->operand, &v));
    fr->b.loc = n;
    return ing_front_unary(fr, n, (ing_front_op)f->op, &v, out);
}

ing_status ing_front_unary(frame *fr, ing_node n, ing_front_op op, const value *given,
                           value *out) {
    bool done = false;
    value v;
    if (ing_front_is_tensor(fr, given))
        return ing_front_tensor_unary(fr, n, op, given, out);
    ING_TRY(ing_front_fold_unary(fr, n, op, given, out, &done));
    if (done) return ING_OK;
    ING_TRY(ing_front_load_untyped(fr, n, given, &v));
    ing_dtype t = v_type(&v);
    if (op == ING_AST_UAdd || op == ING_AST_USub) {
        ING_TRY(ing_front_arith_type(fr, n, &t));
        *out = ing_front_rt(ing_front_emit_cast(fr, v.inst, v_type(&v), t), t);
        out->alt = v.alt;
        if (op == ING_AST_UAdd) return ING_OK;
        out->inst = ing_ir_emit(&fr->b, ING_OP_NEG, t, out->inst, 0, 0);
        if (v.alt) out->alt = ing_ir_emit(&fr->b, ING_OP_NEG, ING_F64, v.alt, 0, 0);
        return ING_OK;
    }
    if (ing_dtype_is_float(t))
        return ing_front_fail_at(
            fr, n, ING_TYPE,
            op == ING_AST_Not ? "write `x == 0`" : "cast it to an integer first",
            "'%s' takes integral inputs only, however '%s' is provided",
            op == ING_AST_Not ? "not" : "~", ing_dtype_name(t));
    if (op == ING_AST_Not) {
        v.inst = ing_front_emit_cast(fr, v.inst, t, ING_U1);
        t = ING_U1;
    }
    *out = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_NOT, t, v.inst, 0, 0), t);
    return ING_OK;
}

ing_status ing_front_min_max(frame *fr, ing_node at, bool max, const value *l,
                             const value *r, value *out) {
    bool less = false, done = false;
    if (ing_front_is_static(l) && ing_front_is_static(r) && !l->dtype && !r->dtype)
        ING_TRY(ing_front_fold_compare(fr, at, ING_AST_Lt, max ? l : r, max ? r : l,
                                       &less, &done));
    if (done) {
        *out = less ? *r : *l;
        return ING_OK;
    }
    value a, b;
    ING_TRY(ing_front_load_both(fr, at, l, at, r, &a, &b));
    ing_dtype t = ing_front_promote(v_type(&a), v_type(&b));
    uint32_t x = ing_front_emit_cast(fr, a.inst, v_type(&a), t);
    uint32_t y = ing_front_emit_cast(fr, b.inst, v_type(&b), t);
    ing_op op = max ? ING_OP_MAX : ING_OP_MIN;
    value made = ing_front_rt(ing_ir_emit(&fr->b, op, t, x, y, 0), t);
    ing_front_put_wide(fr, op, l, &a, r, &b, &made);
    *out = made;
    return ING_OK;
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static const ing_op compare_ops[ING_AST_N] = {
    [ING_AST_Eq] = ING_OP_EQ,  [ING_AST_NotEq] = ING_OP_NE, [ING_AST_Lt] = ING_OP_LT,
    [ING_AST_LtE] = ING_OP_LE, [ING_AST_Gt] = ING_OP_GT,    [ING_AST_GtE] = ING_OP_GE,
};

/* Of equal numbers and texts Python may have one or several. */
static bool is_copied(const value *v) {
    return v->kind == V_INT || v->kind == V_FLOAT || v->kind == V_STR;
}

/* Two of a kind of which it is not known whether they are one, or equal: what a func was given
 * it knows by its type alone, and what a kernel makes by its content. */
static bool cannot_tell(const value *l, const value *r, bool identity) {
    if (l->kind != r->kind) return false;
    if (identity && is_copied(l)) return ing_front_may_be_one(l, r);
    if (l->kind == V_ARRAY) return !l->gref || !r->gref;
    return l->kind == V_DICT || (identity && (l->kind == V_TUPLE || l->kind == V_LIST));
}

/* What to write for `x in items`. */
static const char *member_remedy(const value *l, const value *r) {
    if (r->kind == V_ARRAY)
        return "compare its elements in a loop: `for i in range(a.shape[0]): found |= "
               "a[i] == x`";
    if (ing_front_is_runtime(l)) return "compare with each: x == 1 or x == 2";
    return "write qd.static(x in items), or compare with `==`";
}

ing_status ing_front_compare(frame *fr, ing_node at, ing_front_op op, const value *l,
                             const value *r, value *out) {
    bool result = false, done = false;
    bool identity = op == ING_AST_Is || op == ING_AST_IsNot;
    bool member = op == ING_AST_In || op == ING_AST_NotIn;
    if (member && !fr->in_static)
        return ing_front_fail_at(fr, at, ING_COMPILE, member_remedy(l, r),
                                 "\"%s\" is only supported inside `qd.static`.",
                                 op == ING_AST_In ? "In" : "NotIn");
    if (identity &&
        (!fr->in_static || ing_front_is_runtime(l) || ing_front_is_runtime(r)))
        return ing_front_fail_at(fr, at, ING_SYNTAX,
                                 "compare values with `==`; qd.static(x is None) asks "
                                 "about a compile-time value",
                                 "Operator \"%s\" in %s is not supported.",
                                 ing_front_op_text(op), ing_front_scope(fr));
    if (!identity && !member &&
        (ing_front_is_tensor(fr, l) || ing_front_is_tensor(fr, r)))
        return ing_front_tensor_compare(fr, at, op, l, r, out);
    if (!member && cannot_tell(l, r, identity))
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            is_copied(l) ? "compare numbers and strings with `==`"
                         : "compare in the kernel, or outside, and pass the result",
            "whether %s and another one are %s cannot be known here",
            ing_front_describe(fr, l), identity ? "the same" : "equal");
    ING_TRY(ing_front_fold_compare(fr, at, op, l, r, &result, &done));
    if (done) {
        *out = ing_front_bool(result);
        return ING_OK;
    }
    ING_TRY(ing_front_compare_items(fr, at, op, l, r, out, &done));
    if (done) return ING_OK;
    if (!ing_front_is_scalar(l) || !ing_front_is_scalar(r))
        return fail_operands(fr, at, ing_front_op_text(op), l, r);
    value a, b;
    ING_TRY(ing_front_load_both(fr, at, l, at, r, &a, &b));
    ing_dtype t = ing_front_promote(v_type(&a), v_type(&b));
    uint32_t x = ing_front_emit_cast(fr, a.inst, v_type(&a), t);
    uint32_t y = ing_front_emit_cast(fr, b.inst, v_type(&b), t);
    *out = ing_front_rt(ing_ir_emit(&fr->b, compare_ops[op], ING_U1, x, y, 0), ING_U1);
    return ING_OK;
}

/* `x is None` asks for no more of what is outside. *done: it was asked. */
static ing_status compare_none(frame *fr, ing_node n, const struct nf_COMPARE *f,
                               value *out, bool *done) {
    const ing_front_tree *t = fr->t;
    ing_front_op op = (ing_front_op)list_at(t, f->ops, 0);
    ing_node right = list_at(t, f->comparators, 0);
    *done = fr->in_static && list_len(t, f->ops) == 1 &&
            (op == ING_AST_Is || op == ING_AST_IsNot) &&
            t->nodes.at[right].kind == ING_NODE_CONSTANT &&
            t->consts.at[NF(t, right, CONSTANT)->value].kind == ING_CONST_NONE;
    if (!*done) return ING_OK;
    value left, none = ing_front_none();
    ING_TRY(ing_front_expr(fr, f->left, &left));
    if (left.kind != V_THING) return ing_front_compare(fr, n, op, &left, &none, out);
    ING_TRY(ing_front_derive(fr, n, left.gref, ING_DERIVE_SAME, 0, out));
    *out = ing_front_bool((out->i != 0) == (op == ING_AST_Is));
    return ING_OK;
}

/* Names, constants, extents and arithmetic of these: nothing that could stop, change anything
 * or read beyond an array. Deep ones count as others. */
static bool has_no_effects(const frame *fr, ing_node n, uint32_t depth) {
    const ing_front_tree *t = fr->t;
    if (depth == 16) return false;
    switch (t->nodes.at[n].kind) {
    case ING_NODE_NAME:
    case ING_NODE_CONSTANT: return true;
    case ING_NODE_ATTRIBUTE:
        return has_no_effects(fr, NF(t, n, ATTRIBUTE)->value, depth + 1);
    case ING_NODE_UNARYOP:
        return has_no_effects(fr, NF(t, n, UNARYOP)->operand, depth + 1);
    case ING_NODE_BINOP:
        return has_no_effects(fr, NF(t, n, BINOP)->left, depth + 1) &&
               has_no_effects(fr, NF(t, n, BINOP)->right, depth + 1);
    case ING_NODE_SUBSCRIPT: { /* x.shape[0] */
        const struct nf_SUBSCRIPT *f = NF(t, n, SUBSCRIPT);
        return t->nodes.at[f->value].kind == ING_NODE_ATTRIBUTE &&
               strcmp(ing_front_atom_text(fr, NF(t, f->value, ATTRIBUTE)->attr),
                      "shape") == 0 &&
               t->nodes.at[f->slice].kind == ING_NODE_CONSTANT;
    }
    default: return false;
    }
}

/* The next comparison of a chain; `left` becomes its right side. */
static ing_status chain_link(frame *fr, ing_node n, const struct nf_COMPARE *f,
                             uint32_t i, value *left, value *one) {
    value right;
    ing_node next = list_at(fr->t, f->comparators, i);
    if (left->kind == V_REF ? !is_plain(fr, next)
                            : ing_front_may_change(fr->t, next, 0))
        ING_TRY(ing_front_keep(fr, n, left));
    ING_TRY(ing_front_expr_forced(fr, next, &right));
    fr->b.loc = n;
    ING_TRY(ing_front_compare(fr, n, (ing_front_op)list_at(fr->t, f->ops, i), left,
                              &right, one));
    *left = right;
    return ING_OK;
}

static ing_status chain(frame *fr, ing_node n, const struct nf_COMPARE *f, uint32_t i,
                        value *left, value *out);

/* What is left of a chain, in a block that runs if `all` so far is true, stored in a slot. */
static ing_status chain_rest(frame *fr, ing_node n, const struct nf_COMPARE *f,
                             uint32_t i, value *left, value *all) {
    ing_type ref = ing_ir_type_ref(fr->lo->mod, ING_U1);
    uint32_t slot = ing_ir_emit(&fr->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, slot, all->inst, 0);
    ing_ir_block_begin(&fr->b);
    uint32_t mark = ing_front_scope_open(fr);
    value rest = {0};
    ing_status s = ing_front_nest(fr, n);
    if (s == ING_OK) s = chain(fr, n, f, i, left, &rest);
    if (s == ING_OK) s = ing_front_load(fr, n, &rest, &rest);
    if (s == ING_OK && rest.type != ING_U1) s = fail_operands(fr, n, "and", all, &rest);
    if (s == ING_OK) ing_ir_emit(&fr->b, ING_OP_STORE, 0, slot, rest.inst, 0);
    fr->control--;
    ing_front_scope_close(fr, mark);
    uint32_t block = ing_ir_block_end(&fr->b);
    ING_TRY(s);
    ing_ir_emit(&fr->b, ING_OP_IF, 0, all->inst, block, 0);
    *all = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_LOAD, ING_U1, slot, 0, 0), ING_U1);
    return ING_OK;
}

/* Each operand is evaluated once, and none after a comparison that does not hold. */
static ing_status chain(frame *fr, ing_node n, const struct nf_COMPARE *f, uint32_t i,
                        value *left, value *out) {
    value all = ing_front_bool(true);
    for (; i < list_len(fr->t, f->ops); i++) {
        value one;
        if (all.kind == V_BOOL && !all.i) break;
        if (all.kind == V_RT && all.type == ING_U1 &&
            !has_no_effects(fr, list_at(fr->t, f->comparators, i), 0)) {
            ING_TRY(chain_rest(fr, n, f, i, left, &all));
            break;
        }
        ING_TRY(chain_link(fr, n, f, i, left, &one));
        if (all.kind == V_BOOL)
            all = one;
        else if (one.kind == V_BOOL)
            all = one.i ? all : one;
        else
            ING_TRY(ing_front_binary(fr, n, ING_AST_BitAnd, &all, &one, &all));
    }
    *out = all;
    return ING_OK;
}

ing_status ing_front_expr_compare(frame *fr, ing_node n, value *out) {
    const struct nf_COMPARE *f = NF(fr->t, n, COMPARE);
    value left;
    bool done = false;
    ING_TRY(compare_none(fr, n, f, out, &done));
    if (done) return ING_OK;
    ING_TRY(ing_front_expr_forced(fr, f->left, &left));
    return chain(fr, n, f, 0, &left, out);
}

/* ---- and, or ----------------------------------------------------------------------- */

/* A side that is evaluated only sometimes: a block that stores its value in a slot. The
 * slot stands before the block, but its type is known only after it, and is set then. */
typedef struct side {
    uint32_t block, slot;
    ing_type type;
} side;

static ing_status lower_side(frame *fr, ing_node n, side *s) {
    ing_type guess = ing_ir_type_ref(fr->lo->mod, ING_I32);
    s->slot = ing_ir_emit(&fr->b, ING_OP_ALLOCA, guess, 0, 0, 0);
    ing_ir_block_begin(&fr->b);
    uint32_t mark = ing_front_scope_open(fr);
    value v = {0};
    ing_status st = ing_front_nest(fr, n);
    if (st == ING_OK) st = ing_front_expr_forced(fr, n, &v);
    if (st == ING_OK) st = ing_front_load(fr, n, &v, &v);
    if (st == ING_OK && v.kind == V_REF) { /* a large matrix */
        value slot = {.kind = V_REF, .inst = s->slot, .type = v.type};
        st = ing_front_tensor_store(fr, n, &slot, &v);
    } else if (st == ING_OK) {
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, s->slot, v.inst, 0);
    }
    fr->control--;
    ing_front_scope_close(fr, mark);
    s->block = ing_ir_block_end(&fr->b);
    s->type = v.type;
    if (st == ING_OK && s->slot)
        fr->b.func->insts.at[s->slot].type = ing_ir_type_ref(fr->lo->mod, v.type);
    return st;
}

static value side_value(frame *fr, const side *s) {
    if (s->type >= ING_DTYPE_N)
        return (value){.kind = V_REF, .inst = s->slot, .type = s->type, .temp = true};
    return ing_front_rt(ing_ir_emit(&fr->b, ING_OP_LOAD, s->type, s->slot, 0, 0),
                        s->type);
}

static ing_status to_int_operand(frame *fr, ing_node n, const char *op, const value *v,
                                 value *out) {
    ING_TRY(ing_front_load(fr, n, v, out));
    if (out->type >= ING_DTYPE_N)
        return ing_front_fail_at(fr, n, ING_TYPE, "use & and | for vectors",
                                 "unsupported operand type(s) for '%s': %s", op,
                                 ing_front_describe(fr, out));
    if (!ing_dtype_is_float(v_type(out))) return ING_OK;
    return ing_front_fail_at(fr, n, ING_TYPE, "compare it: `x != 0`",
                             "unsupported operand type(s) for '%s': '%s'", op,
                             ing_dtype_name(v_type(out)));
}

/* The value of `l and r`, or of `l or r`, in the type that the two promote to. */
static ing_status either(frame *fr, bool is_and, uint32_t cond, const value *l,
                         const value *r, value *out) {
    ing_dtype t = ing_front_promote(v_type(l), v_type(r));
    uint32_t a = ing_front_emit_cast(fr, l->inst, v_type(l), t);
    uint32_t b = ing_front_emit_cast(fr, r->inst, v_type(r), t);
    uint32_t inst =
        ing_ir_emit(&fr->b, ING_OP_SELECT, t, cond, is_and ? b : a, is_and ? a : b);
    *out = ing_front_rt(inst, t);
    return ING_OK;
}

/* l and r: r if l is true else l; the right side is evaluated only when needed. */
static ing_status short_circuit(frame *fr, ing_node n, bool is_and, const value *left,
                                ing_node right, value *out) {
    const char *op = is_and ? "and" : "or";
    value l, r;
    if (ing_front_is_tensor(fr, left)) {
        ING_TRY(ing_front_expr_forced(fr, right, &r));
        return ing_front_tensor_logical(fr, n, is_and, left, &r, out);
    }
    ING_TRY(to_int_operand(fr, n, op, left, &l));
    ing_dtype t = v_type(&l);
    if (is_plain(fr, right)) {
        ING_TRY(ing_front_expr_forced(fr, right, &r));
        ING_TRY(to_int_operand(fr, right, op, &r, &r));
        uint32_t now = ing_front_emit_cast(fr, l.inst, t, ING_U1);
        return either(fr, is_and, now, &l, &r, out);
    }
    uint32_t cond = ing_front_emit_cast(fr, l.inst, t, ING_U1);
    side s = {0};
    ING_TRY(lower_side(fr, right, &s));
    fr->b.loc = n;
    uint32_t test = is_and ? cond : ing_ir_emit(&fr->b, ING_OP_NOT, ING_U1, cond, 0, 0);
    ing_ir_emit(&fr->b, ING_OP_IF, 0, test, s.block, 0);
    r = side_value(fr, &s);
    ING_TRY(to_int_operand(fr, right, op, &r, &r));
    return either(fr, is_and, cond, &l, &r, out);
}

static ing_status bool_chain(frame *fr, ing_node n, const struct nf_BOOLOP *f,
                             uint32_t i, value *acc) {
    bool is_and = f->op == ING_AST_And;
    for (; i < list_len(fr->t, f->values); i++) {
        ing_node right = list_at(fr->t, f->values, i);
        fr->b.loc = n;
        if (ing_front_is_static(
                acc)) { /* decides now whether the rest is looked at (R3) */
            bool truth = false;
            ING_TRY(ing_front_truth(fr, n, acc, &truth));
            if (truth != is_and) return ING_OK;
            ING_TRY(ing_front_expr_forced(fr, right, acc));
            continue;
        }
        ING_TRY(short_circuit(fr, n, is_and, acc, right, acc));
    }
    return ING_OK;
}

ing_status ing_front_expr_boolop(frame *fr, ing_node n, value *out) {
    const struct nf_BOOLOP *f = NF(fr->t, n, BOOLOP);
    ING_TRY(ing_front_expr_forced(fr, list_at(fr->t, f->values, 0), out));
    return bool_chain(fr, n, f, 1, out);
}

ing_status ing_front_select_values(frame *fr, ing_node at, uint32_t cond,
                                   const value *a, const value *b, value *out) {
    value x, y;
    if (ing_front_is_tensor(fr, a) || ing_front_is_tensor(fr, b))
        return ing_front_tensor_select(fr, at, cond, a, b, out);
    ING_TRY(ing_front_load_both(fr, at, a, at, b, &x, &y));
    ing_dtype t = ing_front_promote(v_type(&x), v_type(&y));
    uint32_t l = ing_front_emit_cast(fr, x.inst, v_type(&x), t);
    uint32_t r = ing_front_emit_cast(fr, y.inst, v_type(&y), t);
    value made = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_SELECT, t, cond, l, r), t);
    ing_front_put_wide(fr, ING_OP_SELECT, a, &x, b, &y, &made);
    *out = made;
    return ING_OK;
}
