/* Conditional expressions: `a if c else b` of values of any shape. Numbers, vectors and
 * matrices are selected; tuples, lists, dicts and structs are taken apart, selected item by
 * item (each item with a type of its own, as in Python), and put together again. What does
 * not exist at run time (None, strings, funcs) must be the same on both sides. Reached from
 * the table of expr.c. Each side is evaluated only when it is chosen. */
#include "front/front_int.h"

#include <string.h>

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

static bool is_sequence(const value *v) {
    return v->kind == V_TUPLE || v->kind == V_LIST;
}

/* Things from outside and shapes as the containers that they are. */
static ing_status open_up(frame *fr, ing_node at, value *v) {
    bool ok = false;
    ING_TRY(ing_front_force(fr, at, v));
    if (v->kind == V_SEEN && v->seen == ING_GATE_STRUCT)
        return ing_front_struct_from(fr, at, v, v, &ok);
    return ing_front_box_open(fr, at, v);
}

/* ---- sides ------------------------------------------------------------------------------- */

/* Puts a number, vector or matrix where it outlives the open block. */
static ing_status keep_number(frame *fr, ing_node at, value *v) {
    ING_TRY(ing_front_load(fr, at, v, v));
    ing_type ref = ing_ir_type_ref(fr->lo->mod, v->type);
    value place = {.kind = V_REF, .type = v->type, .temp = true};
    place.inst = ing_ir_emit_above(&fr->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    if (v->kind == V_REF) /* a large matrix */
        ING_TRY(ing_front_tensor_store(fr, at, &place, v));
    else
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.inst, v->inst, 0);
    if (v->alt) { /* NUMBER2 */
        ref = ing_ir_type_ref(fr->lo->mod, ING_F64);
        place.alt = ing_ir_emit_above(&fr->b, ING_OP_ALLOCA, ref, 0, 0, 0);
        place.alt_place = true;
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.alt, v->alt, 0);
    }
    *v = place;
    return ING_OK;
}

/* The same for all that a value holds. The depth of the text bounds the recursion. */
static ing_status keep(frame *fr, ing_node at, value *v) {
    ING_TRY(open_up(fr, at, v));
    bool tensor = ing_front_is_tensor(fr, v) && !ing_front_is_static(v);
    if (tensor || ing_front_is_runtime(v)) return keep_number(fr, at, v);
    if (ing_front_is_tensor(fr, v)) return ING_OK;
    if (v->kind == V_STRUCT) ING_TRY(ing_front_struct_load(fr, at, v, v));
    if (!v_holds(v) || v->kind == V_VIEW || v->kind == V_BUNDLE || v->kind == V_ITER)
        return ING_OK;
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v_children(v) + 1, value);
    if (!items) return no_memory(fr);
    for (uint32_t i = 0; i < v_children(v); i++) {
        items[i] = v->items[i];
        if (v->kind != V_DICT || i % 2) ING_TRY(keep(fr, at, &items[i]));
    }
    v->items = items;
    return ING_OK;
}

static ing_status lower_side(frame *fr, ing_node n, value *v, uint32_t *block) {
    ing_ir_block_begin(&fr->b);
    uint32_t mark = ing_front_scope_open(fr);
    ing_status s = ing_front_nest(fr, n);
    if (s == ING_OK) s = ing_front_expr_forced(fr, n, v);
    if (s == ING_OK) s = keep(fr, n, v);
    fr->control--;
    ing_front_scope_close(fr, mark);
    *block = ing_ir_block_end(&fr->b);
    return s;
}

/* ---- choosing ------------------------------------------------------------------------------ */

typedef struct choice {
    frame *fr;
    ing_node at;
    uint32_t cond;
} choice;

static ing_status choose(const choice *c, const value *left, const value *right,
                         value *out);

static ing_status fail_kinds(const choice *c, const value *a, const value *b) {
    const char *remedy =
        "write an `if` around what is done with it, or decide it while "
        "compiling: x if qd.static(c) else y";
    if (a->kind == V_ARRAY || b->kind == V_ARRAY || a->kind == V_VIEW ||
        b->kind == V_VIEW || a->kind == V_BUNDLE || b->kind == V_BUNDLE)
        remedy = "choose between elements: a[i] if c else b[i]";
    return ing_front_fail_at(c->fr, c->at, ING_TYPE, remedy,
                             "a run-time condition cannot choose between %s and %s",
                             ing_front_describe(c->fr, a),
                             ing_front_describe(c->fr, b));
}

static ing_status choose_items(const choice *c, const value *a, const value *b,
                               value *out) {
    frame *fr = c->fr;
    uint32_t n = v_children(a);
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n + 1, value);
    if (!items) return no_memory(fr);
    for (uint32_t i = 0; i < n; i++) {
        if (a->kind == V_DICT && i % 2 == 0)
            items[i] = a->items[i];
        else
            ING_TRY(choose(c, &a->items[i], &b->items[i], &items[i]));
    }
    *out =
        ing_front_seq(b->kind == V_TUPLE ? V_TUPLE : (value_kind)a->kind, items, a->n);
    return ING_OK;
}

static ing_status same_keys(const choice *c, const value *a, const value *b,
                            bool *out) {
    *out = a->n == b->n;
    for (uint32_t i = 0; i < a->n && *out; i++) {
        const value *k = &a->items[2 * i], *l = &b->items[2 * i];
        bool done = false;
        *out = ing_front_is_static(k) && ing_front_is_static(l);
        if (*out)
            ING_TRY(ing_front_fold_compare(c->fr, c->at, ING_AST_Eq, k, l, out, &done));
    }
    return ING_OK;
}

static ing_status choose_struct(const choice *c, const value *left, const value *right,
                                value *out) {
    frame *fr = c->fr;
    value a, b;
    bool same = left->n == right->n;
    for (uint32_t i = 0; i < left->n && same; i++)
        same = strcmp(left->info->names[i], right->info->names[i]) == 0;
    if (!same) return fail_kinds(c, left, right);
    ING_TRY(ing_front_struct_load(fr, c->at, left, &a));
    ING_TRY(ing_front_struct_load(fr, c->at, right, &b));
    ING_TRY(choose_items(c, &a, &b, out));
    struct_info *info = ING_NEW(&fr->lo->arena, struct_info);
    if (!info) return no_memory(fr);
    *info = *a.info;
    if (info->layout != b.info->layout) info->layout = NULL;
    out->info = info;
    /* Methods are known when both types are found at one place. */
    if (a.gref && b.gref && ing_front_place(fr, a.gref) == ing_front_place(fr, b.gref))
        out->gref = a.gref;
    return ING_OK;
}

/* Values without a run time: the same ones on both sides stay what they are. */
static ing_status choose_static(const choice *c, const value *a, const value *b,
                                value *out) {
    frame *fr = c->fr;
    bool same = false, done = false, outside = a->kind == V_SEEN || a->kind == V_FUNC;
    if (a->kind != b->kind || !ing_front_is_static(a) || !ing_front_is_static(b) ||
        a->kind == V_ARRAY)
        return fail_kinds(c, a, b);
    if (outside)
        same = a->gref == b->gref ||
               (a->gref && b->gref && ing_front_place(fr, a->gref) &&
                ing_front_place(fr, a->gref) == ing_front_place(fr, b->gref));
    else
        ING_TRY(ing_front_fold_compare(fr, c->at, ING_AST_Is, a, b, &same, &done));
    if (!same) return fail_kinds(c, a, b);
    *out = *a;
    return ING_OK;
}

/* The depth of the text bounds the recursion. */
static ing_status choose(const choice *c, const value *left, const value *right,
                         value *out) {
    frame *fr = c->fr;
    value a = *left, b = *right;
    bool same = false;
    ING_TRY(open_up(fr, c->at, &a));
    ING_TRY(open_up(fr, c->at, &b));
    bool numbers = ing_front_is_scalar(&a) && ing_front_is_scalar(&b);
    if (numbers || ing_front_is_tensor(fr, &a) || ing_front_is_tensor(fr, &b))
        return ing_front_select_values(fr, c->at, c->cond, &a, &b, out);
    if (is_sequence(&a) && is_sequence(&b)) {
        if (a.n == b.n) return choose_items(c, &a, &b, out);
        return fail_kinds(c, &a, &b);
    }
    if (a.kind == V_DICT && b.kind == V_DICT) {
        ING_TRY(same_keys(c, &a, &b, &same));
        return same ? choose_items(c, &a, &b, out) : fail_kinds(c, &a, &b);
    }
    if (a.kind == V_STRUCT && b.kind == V_STRUCT) return choose_struct(c, &a, &b, out);
    return choose_static(c, &a, &b, out);
}

/* True when evaluating the node can neither stop, nor change, nor cost anything much: then
 * no branch is needed. */
static bool is_plain(const frame *fr, ing_node n) {
    uint8_t kind = fr->t->nodes.at[n].kind;
    return kind == ING_NODE_NAME || kind == ING_NODE_CONSTANT;
}

ing_status ing_front_expr_ifexp(frame *fr, ing_node n, value *out) {
    const struct nf_IFEXP *f = NF(fr->t, n, IFEXP);
    value test, a, b;
    ING_TRY(ing_front_expr_forced(fr, f->test, &test));
    if (ing_front_is_static(&test)) {
        bool truth = false;
        ING_TRY(ing_front_truth(fr, f->test, &test, &truth));
        return ing_front_expr(fr, truth ? f->body : f->orelse, out);
    }
    choice c = {.fr = fr, .at = n};
    if (ing_front_is_tensor(fr, &test))
        return ing_front_fail_at(
            fr, f->test, ING_SYNTAX, "qd.select(condition, a, b), or .any() or .all()",
            "the condition of `a if c else b` is %s, and each of its elements would "
            "choose. Please use \"qd.select\" instead.",
            ing_front_describe(fr, &test));
    ING_TRY(ing_front_condition(fr, f->test, &test, "if", &c.cond));
    if (is_plain(fr, f->body) && is_plain(fr, f->orelse)) {
        ING_TRY(ing_front_expr_forced(fr, f->body, &a));
        ING_TRY(ing_front_expr_forced(fr, f->orelse, &b));
    } else {
        uint32_t yes = 0, no = 0;
        ING_TRY(lower_side(fr, f->body, &a, &yes));
        ING_TRY(lower_side(fr, f->orelse, &b, &no));
        fr->b.loc = n;
        ing_ir_emit(&fr->b, ING_OP_IF, 0, c.cond, yes, no);
    }
    return choose(&c, &a, &b, out);
}
