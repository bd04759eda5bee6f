/* Assignments: new names, stores into locals and array elements, unpacking, augmented
 * assignment (atomic where other threads may see the place). Called by the statement
 * table and by loops and comprehensions for their targets. */
#include "front/front_int.h"

#include <stdio.h>

/* ---- new names ---------------------------------------------------------------------------- */

/* A scalar as a variable: the value itself where nothing can change it (LOWER3). */
static ing_status declare_scalar(frame *fr, ing_node at, uint32_t atom,
                                 const value *v) {
    value x;
    ING_TRY(ing_front_load(fr, at, v, &x));
    x.fixed = x.arg = false;
    x.alt = 0; /* a variable has a type */
    if (fr->uses[atom] == NAME_ONCE) return ing_front_scope_add(fr, atom, &x);
    ing_type ref = ing_ir_type_ref(fr->lo->mod, x.type);
    value var = {.kind = V_REF, .type = x.type};
    var.inst = ing_ir_emit(&fr->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, var.inst, x.inst, 0);
    return ing_front_scope_add(fr, atom, &var);
}

ing_status ing_front_declare(frame *fr, ing_node at, uint32_t atom,
                             const value *given) {
    value v = *given;
    bool ok = false;
    if (ing_front_is_tensor(fr, &v)) return ing_front_tensor_declare(fr, at, atom, &v);
    if (v.kind == V_STRUCT || (v.kind == V_SEEN && v.seen == ING_GATE_STRUCT)) {
        ING_TRY(ing_front_struct_from(fr, at, &v, &v, &ok));
        return ing_front_struct_declare(fr, at, atom, &v);
    }
    /* A member of an enum stays what it is, unless the name gets another value later. */
    if (fr->uses[atom] & NAME_AGAIN) ING_TRY(ing_front_enum_number(fr, at, &v, &ok));
    if (ing_front_is_scalar(&v) && v.kind != V_SEEN)
        return declare_scalar(fr, at, atom, &v);
    if (v.kind == V_VOID)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "let the func return a value",
            "there is no value to assign: the func returns nothing");
    return ing_front_box_declare(fr, at, atom, &v);
}

/* ---- stores -------------------------------------------------------------------------------- */

static ing_status warn_precision(frame *fr, ing_node at, const char *what, ing_dtype to,
                                 ing_dtype from) {
    if (ing_front_promote(to, from) == to) return ING_OK;
    bool whole = ing_dtype_is_float(from) && !ing_dtype_is_float(to);
    return ing_front_warn_at(fr, at, "UserWarning", "%s may lose precision: %s <- %s%s",
                             what, ing_dtype_name(to), ing_dtype_name(from),
                             whole ? " (fractions are dropped: a variable that begins "
                                     "as 0.0 keeps them, int(x) says that they may go)"
                                   : "");
}

ing_status ing_front_store(frame *fr, ing_node at, ing_node from, const value *ref,
                           const value *v) {
    ing_dtype to = v_type(ref);
    uint32_t inst = 0;
    if (ref->kind == V_STRUCT) return ing_front_struct_store(fr, at, ref, v);
    if (ing_front_is_tensor(fr, ref)) return ing_front_tensor_store(fr, at, ref, v);
    if (ing_front_is_runtime(v) && v->type < ING_DTYPE_N)
        ING_TRY(warn_precision(fr, at, "Assign", to, v_type(v)));
    else if (v->kind == V_FLOAT && !ing_dtype_is_float(to)) {
        ing_dtype t = ING_F32;
        ING_TRY(ing_front_literal_dtype(fr, from, v, &t));
        ING_TRY(warn_precision(fr, at, "Assign", to, t));
    }
    ING_TRY(ing_front_convert(fr, from, v, to, &inst));
    fr->b.loc = at;
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, ref->inst, inst, 0);
    return ING_OK;
}

static ing_status fail_fixed(frame *fr, ing_node at, const char *name, const value *v) {
    value seen = *v; /* a parameter is read, so that the remedy is for what it is */
    bool arg = v->kind == V_PARAM || v->kind == V_ARRAY || v->arg;
    if (v->kind == V_PARAM && fr->t->nodes.at[at].kind == ING_NODE_NAME)
        ING_TRY(ing_front_name_read(fr, at, NF(fr->t, at, NAME)->id - 1, &seen));
    bool array = seen.kind == V_ARRAY;
    if (arg)
        return ing_front_fail_at(
            fr, at, ING_SYNTAX,
            array ? "assign its elements in a loop: `for i in a: a[i] = b[i]`, or "
                    "`a[i] += x`; another value takes a new variable"
                  : "copy it into a new variable first",
            "Kernel argument \"%s\" is immutable in the kernel. If you want to "
            "change its value, please create a new variable.",
            name);
    if (v->fixed)
        return ing_front_fail_at(fr, at, ING_SYNTAX,
                                 "copy it into a new variable first",
                                 "the loop variable '%s' cannot be assigned", name);
    return ing_front_fail_at(
        fr, at, ING_SYNTAX,
        v->kind == V_NONE ? "begin with a number, such as 0 or 0.0; whether it was set "
                            "can be kept in another variable"
                          : "use another name for the new value",
        "Variable '%s' cannot be assigned here: it is %s, which is known when the "
        "kernel is compiled",
        name, ing_front_describe(fr, v));
}

static bool can_be_box(const value *v) {
    return ing_front_is_box(v) || v->kind == V_SHAPE ||
           (v->kind == V_SEEN &&
            (v->seen == ING_GATE_TUPLE || v->seen == ING_GATE_LIST ||
             v->seen == ING_GATE_DICT));
}

/* A compile-time value for a name that has one: known from here on, if it is not run time that
 * decides whether the assignment is made. */
static ing_status assign_again(frame *fr, ing_node at, uint32_t slot, const value *v) {
    binding *b = ing_front_binding(fr, slot - 1);
    if (b->depth != fr->b.starts.len)
        return fail_fixed(fr, at, ing_front_atom_text(fr, slot), &b->v);
    b->v = *v;
    b->v.from_static = false;
    return ING_OK;
}

static ing_status assign_name(frame *fr, ing_node at, ing_node from, const value *v,
                              bool is_static) {
    uint32_t slot = NF(fr->t, at, NAME)->id;
    const value *old = ing_front_scope_find(fr, slot - 1);
    bool is_arg = old && (old->arg || old->kind == V_PARAM);
    bool box = old && ing_front_is_box(old);
    bool place = old && (old->kind == V_REF || old->kind == V_STRUCT || box);
    if (v->from_static && place)
        is_static = false; /* a variable stays one, whatever it is assigned */
    else if (v->from_static && old && !is_arg && !old->fixed && old->kind != V_ARRAY)
        return assign_again(fr, at, slot, v);
    if (is_arg || (old && !is_static && !box && (old->fixed || old->kind == V_ARRAY)))
        return fail_fixed(fr, at, ing_front_atom_text(fr, slot), old);
    if (is_static) return ing_front_scope_add(fr, slot - 1, v);
    if (!old) return ing_front_declare(fr, from, slot - 1, v);
    if (box && can_be_box(v)) return ing_front_box_assign(fr, at, from, slot - 1, v);
    if (old->kind != V_REF && old->kind != V_STRUCT)
        return fail_fixed(fr, at, ing_front_atom_text(fr, slot), old);
    value ref = *old;
    return ing_front_store(fr, at, from, &ref, v);
}

static ing_status assign_unpack(frame *fr, ing_node target, ing_node from,
                                const value *v, bool is_static) {
    uint32_t elts = NF(fr->t, target, TUPLE)->elts, n = 0, m = list_len(fr->t, elts);
    value *items;
    bool ok = false;
    for (uint32_t i = 0; i < m; i++)
        if (fr->t->nodes.at[list_at(fr->t, elts, i)].kind == ING_NODE_STARRED)
            return ing_front_fail_at(fr, list_at(fr->t, elts, i), ING_SYNTAX,
                                     "name every item",
                                     "starred targets are not supported in kernels");
    ING_TRY(ing_front_items(fr, target, v, &items, &n, &ok));
    if (!ok)
        return ing_front_fail_at(fr, target, ING_SYNTAX,
                                 "unpack a tuple, a list or a vector, or use one name",
                                 "Cannot unpack type: %s", ing_front_describe(fr, v));
    if (n != m)
        return ing_front_fail_at(
            fr, target, ING_SYNTAX, "write one name for each value",
            "The number of targets is not equal to value length: %u targets, %u "
            "values",
            m, n);
    for (uint32_t i = 0; i < n; i++) {
        value item = items[i];
        ING_TRY(ing_front_force(fr, target, &item));
        item.from_static = v->from_static;
        ING_TRY(
            ing_front_assign_to(fr, list_at(fr->t, elts, i), from, &item, is_static));
    }
    return ING_OK;
}

static ing_status check_place(frame *fr, ing_node target, const value *out) {
    if (out->arg || (out->fixed && out->kind == V_RT))
        return fail_fixed(fr, target, "argument", out);
    if (out->kind == V_REF || out->kind == V_STRUCT ||
        (out->kind == V_TUPLE && out->tensor))
        return ING_OK;
    return ing_front_fail_at(fr, target, ING_SYNTAX,
                             out->gref ? "keep what kernels change in an array"
                                       : "build a new tuple, or use an array",
                             "items of compile-time values cannot be assigned");
}

/* a[:], a[0, 1:] */
static bool has_slice(const frame *fr, ing_node index) {
    uint8_t kind = fr->t->nodes.at[index].kind;
    if (kind == ING_NODE_SLICE) return true;
    if (kind != ING_NODE_TUPLE) return false;
    uint32_t elts = NF(fr->t, index, TUPLE)->elts;
    for (uint32_t i = 0; i < list_len(fr->t, elts); i++)
        if (fr->t->nodes.at[list_at(fr->t, elts, i)].kind == ING_NODE_SLICE)
            return true;
    return false;
}

/* The place that a subscript names. */
static ing_status target_ref(frame *fr, ing_node target, value *out) {
    const struct nf_SUBSCRIPT *f = NF(fr->t, target, SUBSCRIPT);
    value base;
    if (fr->t->nodes.at[target].kind != ING_NODE_SUBSCRIPT) {
        ING_TRY(ing_front_expr_forced(fr, target, out));
        return check_place(fr, target, out);
    }
    ING_TRY(ing_front_expr_forced(fr, f->value, &base));
    if (base.kind == V_TUPLE && !base.tensor)
        return ing_front_fail_at(fr, target, ING_SYNTAX,
                                 "write a list, [..], or a vector, qd.Vector([..])",
                                 "items of a tuple cannot be assigned");
    bool array = base.kind == V_ARRAY || base.kind == V_BUNDLE || base.kind == V_VIEW;
    if (array && has_slice(fr, f->slice))
        return ing_front_fail_at(
            fr, target, ING_SYNTAX,
            "loop over the elements, `for i in a: a[i] = x`, of a part `for i in "
            "range(start, stop)`; outside of kernels, a.fill(x)",
            "slices of arrays cannot be assigned in kernels");
    ING_TRY(ing_front_subscript_value(fr, target, &base, f->slice, out));
    ING_TRY(ing_front_force(fr, target, out));
    return check_place(fr, target, out);
}

/* Members of structs, and swizzles. */
static ing_status attr_target(frame *fr, ing_node target, value *out) {
    const struct nf_ATTRIBUTE *f = NF(fr->t, target, ATTRIBUTE);
    value base;
    bool done = false;
    if (fr->t->nodes.at[f->value].kind == ING_NODE_SUBSCRIPT)
        ING_TRY(ing_front_element_member(fr, target, &base, &done));
    else
        ING_TRY(ing_front_expr(fr, f->value, &base));
    *out = base;
    if (done) return check_place(fr, target, out);
    bool swizzle = ing_front_is_tensor_attr(ing_front_atom_text(fr, f->attr));
    if (swizzle) ING_TRY(ing_front_force(fr, f->value, &base));
    if (base.kind != V_STRUCT && !(swizzle && ing_front_is_tensor(fr, &base)))
        return ing_front_fail_at(
            fr, target, ING_SYNTAX,
            "keep run-time state in arrays; set Python attributes outside of "
            "kernels",
            "attributes cannot be assigned in kernels");
    ING_TRY(ing_front_attr_value(fr, target, &base, out));
    return check_place(fr, target, out);
}

ing_status ing_front_assign_to(frame *fr, ing_node target, ing_node from,
                               const value *v, bool is_static) {
    value ref;
    bool done = false;
    switch (fr->t->nodes.at[target].kind) {
    case ING_NODE_NAME: return assign_name(fr, target, from, v, is_static);
    case ING_NODE_TUPLE:
    case ING_NODE_LIST: return assign_unpack(fr, target, from, v, is_static);
    case ING_NODE_SUBSCRIPT:
        if (is_static)
            return ing_front_fail_at(
                fr, target, ING_SYNTAX, "leave out qd.static",
                "Static assign cannot be used on elements in arrays");
        ING_TRY(ing_front_box_item_assign(fr, target, from, v, &done));
        if (done) return ING_OK;
        ING_TRY(target_ref(fr, target, &ref));
        return ing_front_store(fr, target, from, &ref, v);
    case ING_NODE_ATTRIBUTE:
        ING_TRY(attr_target(fr, target, &ref));
        return ing_front_store(fr, target, from, &ref, v);
    case ING_NODE_STARRED:
        return ing_front_fail_at(fr, target, ING_SYNTAX, "name every item",
                                 "starred targets are not supported in kernels");
    default:
        return ing_front_fail_at(fr, target, ING_SYNTAX,
                                 "assign to a name or to an element of an array",
                                 "this cannot be assigned");
    }
}

/* ---- statements -------------------------------------------------------------------------------- */

/* Is there a place in the tuple, which may change before it is read? */
static bool holds_places(const value *v) {
    for (uint32_t i = 0; i < v->n; i++)
        if (v->items[i].kind == V_REF ||
            (v->items[i].kind == V_TUPLE && holds_places(&v->items[i])))
            return true;
    return false;
}

/* Everything on the right is read before anything on the left changes (a, b = b, a). The
 * depth of the text bounds the recursion. */
static ing_status read_items(frame *fr, ing_node at, value *v) {
    bool from_static = v->from_static;
    if (from_static && v->kind != V_REF && !ing_front_is_box(v)) return ING_OK;
    if (ing_front_is_tensor(fr, v))
        return v->kind == V_TUPLE && !holds_places(v)
                   ? ING_OK
                   : ing_front_tensor_load(fr, at, v, v);
    if (v->kind == V_STRUCT) return ing_front_struct_load(fr, at, v, v);
    if (v->kind == V_REF) ING_TRY(ing_front_load(fr, at, v, v));
    if (ing_front_is_box(v)) {
        uint32_t n = v_children(v);
        value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n + 1, value);
        if (!items) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
        for (uint32_t i = 0; i < n; i++) {
            items[i] = v->items[i];
            ING_TRY(read_items(fr, at, &items[i]));
        }
        v->items = items;
    }
    v->from_static = from_static;
    return ING_OK;
}

/* A compile-time value gets a name once per block. */
static ing_status check_new(frame *fr, ing_node target) {
    if (fr->t->nodes.at[target].kind != ING_NODE_NAME) return ING_OK;
    uint32_t slot = NF(fr->t, target, NAME)->id;
    if (fr->slot_of[slot - 1] <= fr->block) return ING_OK;
    return ing_front_fail_at(
        fr, target, ING_COMPILE, "use another name, or leave out qd.static",
        "Recreating variables is not allowed: '%s'", ing_front_atom_text(fr, slot));
}

ing_status ing_front_stmt_assign(frame *fr, ing_node n, flow *out) {
    (void)out;
    const struct nf_ASSIGN *f = NF(fr->t, n, ASSIGN);
    value v;
    ING_TRY(ing_front_expr_forced(fr, f->value, &v));
    ING_TRY(read_items(fr, f->value, &v));
    for (uint32_t i = 0; v.from_static && i < list_len(fr->t, f->targets); i++)
        ING_TRY(check_new(fr, list_at(fr->t, f->targets, i)));
    for (uint32_t i = 0; i < list_len(fr->t, f->targets); i++)
        ING_TRY(ing_front_assign_to(fr, list_at(fr->t, f->targets, i), f->value, &v,
                                    v.from_static));
    return ING_OK;
}

ing_status ing_front_stmt_annassign(frame *fr, ing_node n, flow *out) {
    (void)out;
    const struct nf_ANNASSIGN *f = NF(fr->t, n, ANNASSIGN);
    if (!f->value)
        return ing_front_fail_at(fr, n, ING_SYNTAX,
                                 "give it a first value: x: qd.i32 = 0",
                                 "a variable needs a value when it is declared");
    if (fr->t->nodes.at[f->target].kind != ING_NODE_NAME)
        return ing_front_fail_at(fr, f->target, ING_SYNTAX, "leave out the annotation",
                                 "only names can be annotated");
    value v, anno;
    ING_TRY(ing_front_expr_forced(fr, f->value, &v));
    if (v.from_static)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "leave out the annotation or qd.static",
            "Static assign cannot be used on annotated assignment");
    ING_TRY(ing_front_expr(fr, f->annotation, &anno));
    ing_dtype t = ING_VOID;
    ING_TRY(ing_front_force(fr, f->annotation, &anno));
    if (anno.kind == V_TYPE) {
        call_args one = {.at = &v, .node = (ing_node[]){f->value}, .n = 1};
        ING_TRY(ing_front_tensor_call_type(fr, f->value, &anno, &one, &v));
        return assign_name(fr, f->target, f->value, &v, false);
    }
    if (anno.kind == V_STRUCT_TYPE) {
        ing_gref owner = anno.gref;
        ING_TRY(ing_front_struct_convert(fr, f->value, &v, anno.info->layout, &v));
        v.gref = owner;
        return assign_name(fr, f->target, f->value, &v, false);
    }
    ING_TRY(ing_front_dtype(fr, f->annotation, &anno, &t));
    uint32_t slot = NF(fr->t, f->target, NAME)->id, inst = 0;
    const value *old = ing_front_scope_find(fr, slot - 1);
    if (old && old->kind == V_REF && v_type(old) != t)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "use another name",
            "Static assign cannot have type overloading: '%s' is %s",
            ing_front_atom_text(fr, slot), ing_dtype_name(v_type(old)));
    ING_TRY(ing_front_convert(fr, f->value, &v, t, &inst));
    v = ing_front_rt(inst, t);
    return assign_name(fr, f->target, f->value, &v, false);
}

static const struct {
    ing_ir_atomic atomic;
    ing_op op;
    bool integers;
} updates[ING_IR_ATOMIC_N] = {
    [ING_IR_ATOMIC_ADD] = {ING_IR_ATOMIC_ADD, ING_OP_ADD, false},
    [ING_IR_ATOMIC_SUB] = {ING_IR_ATOMIC_SUB, ING_OP_SUB, false},
    [ING_IR_ATOMIC_MUL] = {ING_IR_ATOMIC_MUL, ING_OP_MUL, false},
    [ING_IR_ATOMIC_MIN] = {ING_IR_ATOMIC_MIN, ING_OP_MIN, false},
    [ING_IR_ATOMIC_MAX] = {ING_IR_ATOMIC_MAX, ING_OP_MAX, false},
    [ING_IR_ATOMIC_AND] = {ING_IR_ATOMIC_AND, ING_OP_AND, true},
    [ING_IR_ATOMIC_OR] = {ING_IR_ATOMIC_OR, ING_OP_OR, true},
    [ING_IR_ATOMIC_XOR] = {ING_IR_ATOMIC_XOR, ING_OP_XOR, true},
    [ING_IR_ATOMIC_XCHG] = {ING_IR_ATOMIC_XCHG, ING_OP_NONE, false},
};

/* Debug mode reports an update that wraps, from the value that it found. */
static ing_status check_update(frame *fr, ing_node at, ing_op op, ing_dtype t,
                               uint32_t old, uint32_t by) {
    int64_t debug = 0;
    if (op != ING_OP_ADD && op != ING_OP_SUB && op != ING_OP_MUL) return ING_OK;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_debug, &debug));
    if (!debug) return ING_OK;
    fr->b.loc = at;
    uint32_t now = ing_ir_emit(&fr->b, op, t, old, by, 0);
    return ing_front_check_overflow(fr, at, op, t, old, by, now);
}

/* A sum, difference or product of booleans is an integer (NUMBER4), and true where it
 * is not 0: that is what a place of booleans keeps of it. */
static ing_ir_atomic boolean_update(ing_ir_atomic op) {
    return op == ING_IR_ATOMIC_ADD   ? ING_IR_ATOMIC_OR
           : op == ING_IR_ATOMIC_SUB ? ING_IR_ATOMIC_XOR
           : op == ING_IR_ATOMIC_MUL ? ING_IR_ATOMIC_AND
                                     : op;
}

/* `found`: what was read of a place of this thread before v was computed, or 0. */
static ing_status update(frame *fr, ing_node at, const value *ref, uint32_t found,
                         const value *v, ing_ir_atomic op, value *old) {
    static const char *const names[] = {
#define X(name, text) text,
        ING_IR_ATOMIC_LIST(X)
#undef X
    };
    ing_dtype t = v_type(ref);
    value x = *v;
    ING_TRY(ing_front_force(fr, at, &x));
    ING_TRY(ing_front_load_with(fr, at, &x, t, &x));
    ING_TRY(ing_front_load_number(fr, at, &x, &x));
    if (updates[op].integers &&
        (ing_dtype_is_float(t) || ing_dtype_is_float(v_type(&x))))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "use integers",
            "unsupported operand type(s) for 'atomic_%s': '%s' and '%s'", names[op],
            ing_dtype_name(t), ing_dtype_name(v_type(&x)));
    char what[32];
    snprintf(what, sizeof what, "Atomic %s", names[op]);
    ING_TRY(warn_precision(fr, at, what, t, v_type(&x)));
    uint32_t inst = ing_front_emit_cast(fr, x.inst, v_type(&x), t);
    if (t == ING_U1) op = boolean_update(op);
    fr->b.loc = at;
    if (ref->shared) {
        *old =
            ing_front_rt(ing_ir_emit(&fr->b, ING_OP_ATOMIC, t, ref->inst, inst, op), t);
        return check_update(fr, at, updates[op].op, t, old->inst, inst);
    }
    if (!found) found = ing_ir_emit(&fr->b, ING_OP_LOAD, t, ref->inst, 0, 0);
    *old = ing_front_rt(found, t);
    uint32_t now = inst;
    if (updates[op].op)
        now = ing_ir_emit(&fr->b, updates[op].op, t, old->inst, inst, 0);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, ref->inst, now, 0);
    return check_update(fr, at, updates[op].op, t, old->inst, inst);
}

ing_status ing_front_atomic_op(frame *fr, ing_node at, const value *ref, const value *v,
                               ing_ir_atomic op, value *old) {
    return update(fr, at, ref, 0, v, op, old);
}

/* Which augmented assignments are atomic in the reference. */
static bool atomic_of(ing_front_op op, ing_ir_atomic *out) {
    switch (op) {
    case ING_AST_Add: *out = ING_IR_ATOMIC_ADD; return true;
    case ING_AST_Sub: *out = ING_IR_ATOMIC_SUB; return true;
    case ING_AST_BitAnd: *out = ING_IR_ATOMIC_AND; return true;
    case ING_AST_BitOr: *out = ING_IR_ATOMIC_OR; return true;
    case ING_AST_BitXor: *out = ING_IR_ATOMIC_XOR; return true;
    default: return false;
    }
}

static ing_status aug_target(frame *fr, ing_node target, value *out) {
    uint8_t kind = fr->t->nodes.at[target].kind;
    if (kind == ING_NODE_ATTRIBUTE) return attr_target(fr, target, out);
    if (kind != ING_NODE_NAME) return target_ref(fr, target, out);
    uint32_t slot = NF(fr->t, target, NAME)->id;
    const value *old = ing_front_scope_find(fr, slot - 1);
    if (!old) {
        value outside;
        ING_TRY(ing_front_name_outside(fr, target, slot - 1, &outside));
        ING_TRY(ing_front_force(fr, target, &outside));
        return ing_front_fail_at(
            fr, target, ING_SYNTAX,
            outside.kind == V_ARRAY || outside.kind == V_BUNDLE
                ? "change its elements: x[i] += y, or x[None] += y when it has no axes"
                : "assign it to a local variable first, or keep it in an array",
            "'%s' is a Python value from outside and cannot be changed in a kernel",
            ing_front_atom_text(fr, slot));
    }
    if ((old->kind != V_REF && old->kind != V_STRUCT) || old->fixed)
        return fail_fixed(fr, target, ing_front_atom_text(fr, slot), old);
    return ing_front_name_read(fr, target, slot - 1, out);
}

/* x[i, j] += v of a Python object is a call of its func `_kernel_add(i, j, v)`, if it has
 * one: how a sparse matrix is filled. Names and attributes can be read twice. */
static ing_status add_to_object(frame *fr, ing_node n, bool *done) {
    const struct nf_AUGASSIGN *f = NF(fr->t, n, AUGASSIGN);
    *done = false;
    if (fr->t->nodes.at[f->target].kind != ING_NODE_SUBSCRIPT) return ING_OK;
    const struct nf_SUBSCRIPT *place = NF(fr->t, f->target, SUBSCRIPT);
    uint8_t kind = fr->t->nodes.at[place->value].kind;
    if (kind != ING_NODE_NAME && kind != ING_NODE_ATTRIBUTE) return ING_OK;
    value base, fn, index, v, *items = &index, zero = ing_front_int(0);
    ING_TRY(ing_front_expr_forced(fr, place->value, &base));
    if (base.kind != V_SEEN || base.seen != ING_GATE_OBJECT) return ING_OK;
    ING_TRY(ing_front_thing_attr(fr, f->target, base.gref, "_kernel_add", &fn));
    if (fn.kind == V_VOID) return ING_OK;
    ING_TRY(ing_front_force(fr, f->target, &fn));
    if (fn.kind != V_FUNC) return ING_OK;
    if (f->op != ING_AST_Add && f->op != ING_AST_Sub)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "use += or -=", "only += and -= work on elements of %s",
            ing_front_describe(fr, &base));
    uint32_t count = 1;
    bool ok = true;
    ING_TRY(ing_front_expr_forced(fr, place->slice, &index));
    if (!ing_front_is_scalar(&index))
        ING_TRY(ing_front_items(fr, place->slice, &index, &items, &count, &ok));
    if (!ok) items = &index, count = 1;
    value *args = ING_NEW_ARRAY(&fr->lo->arena, (size_t)count + 1, value);
    ing_node *at = ING_NEW_ARRAY(&fr->lo->arena, (size_t)count + 1, ing_node);
    if (!args || !at)
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    for (uint32_t i = 0; i < count; i++) args[i] = items[i], at[i] = place->slice;
    ING_TRY(ing_front_expr_forced(fr, f->value, &v));
    if (f->op == ING_AST_Sub)
        ING_TRY(ing_front_binary(fr, n, ING_AST_Sub, &zero, &v, &v));
    args[count] = v, at[count] = f->value;
    call_args a = {.at = args, .node = at, .n = count + 1};
    *done = true;
    return ing_front_call_func(fr, n, &fn, NULL, &a, &index);
}

/* t += (x,): another tuple or list under the same name. */
static ing_status add_to_box(frame *fr, ing_node n, bool *done) {
    const struct nf_AUGASSIGN *f = NF(fr->t, n, AUGASSIGN);
    value box, v, *items;
    uint32_t count = 0;
    bool ok = false;
    *done = false;
    if (fr->t->nodes.at[f->target].kind != ING_NODE_NAME) return ING_OK;
    uint32_t slot = NF(fr->t, f->target, NAME)->id;
    const value *old = ing_front_scope_find(fr, slot - 1);
    if (!old || !ing_front_is_box(old) || old->fixed) return ING_OK;
    *done = true;
    ING_TRY(ing_front_name_read(fr, f->target, slot - 1, &box));
    ING_TRY(ing_front_expr_forced(fr, f->value, &v));
    if (box.kind == V_LIST && f->op == ING_AST_Add) { /* takes any sequence */
        ING_TRY(ing_front_items(fr, f->value, &v, &items, &count, &ok));
        if (ok) v = ing_front_seq(V_LIST, items, count);
    }
    ING_TRY(ing_front_binary(fr, n, (ing_front_op)f->op, &box, &v, &v));
    return ing_front_box_assign(fr, f->target, f->value, slot - 1, &v);
}

ing_status ing_front_stmt_augassign(frame *fr, ing_node n, flow *out) {
    (void)out;
    const struct nf_AUGASSIGN *f = NF(fr->t, n, AUGASSIGN);
    value ref, v, old;
    ing_ir_atomic atomic;
    bool done = false;
    ING_TRY(add_to_object(fr, n, &done));
    if (!done) ING_TRY(add_to_box(fr, n, &done));
    if (done) return ING_OK;
    ING_TRY(aug_target(fr, f->target, &ref));
    /* What only this thread sees is read first; an update of other places is one step. */
    bool first = ref.kind == V_REF && !ref.shared && ing_front_is_scalar(&ref) &&
                 ing_front_may_change(fr->t, f->value, 0);
    if (first) ING_TRY(ing_front_load(fr, f->target, &ref, &old));
    ING_TRY(ing_front_expr_forced(fr, f->value, &v));
    if (ref.kind == V_STRUCT)
        return ing_front_fail_at(fr, f->target, ING_TYPE,
                                 "update its members one by one",
                                 "a struct cannot be updated as a whole");
    bool tensor = ing_front_is_tensor(fr, &ref) || ing_front_is_tensor(fr, &v);
    if (tensor && atomic_of((ing_front_op)f->op, &atomic))
        return ing_front_tensor_atomic(fr, n, &ref, &v, atomic, &old);
    if (!ing_front_is_scalar(&v) && !ing_front_is_tensor(fr, &ref)) {
        value x; /* says what is wrong with it */
        ING_TRY(ing_front_load(fr, f->value, &v, &x));
    }
    if (atomic_of((ing_front_op)f->op, &atomic))
        return update(fr, n, &ref, first ? old.inst : 0, &v, atomic, &old);
    if (!first) ING_TRY(ing_front_load(fr, f->target, &ref, &old));
    ING_TRY(ing_front_binary(fr, n, (ing_front_op)f->op, &old, &v, &v));
    return ing_front_store(fr, n, n, &ref, &v);
}

ing_status ing_front_expr_named(frame *fr, ing_node n, value *out) {
    const struct nf_NAMEDEXPR *f = NF(fr->t, n, NAMEDEXPR);
    ING_TRY(ing_front_expr_forced(fr, f->value, out));
    ING_TRY(ing_front_assign_to(fr, f->target, f->value, out, out->from_static));
    return ing_front_expr_forced(fr, f->target, out);
}
