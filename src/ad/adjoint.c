/* Backward code of values (AD5): the adjoint of an instruction goes to those of its operands.
 * Called by backward.c, which walks blocks from their end. */
#include "ad/ad_int.h"

static bool is_scalar(const ing_ad_code *c, ing_type t) {
    return ing_ir_type(c->m, t)->kind == ING_TYPE_SCALAR;
}

/* Aggregates, and values that other blocks add to, have a local for it. */
bool ing_ad_has_slot(const ing_ad_code *c, uint32_t id) {
    return c->n->mark[id] & ING_AD_APART || !is_scalar(c, ing_ir_at(c->f, id)->type);
}

static uint32_t emit(ing_ad_code *c, ing_op op, ing_type t, uint32_t x, uint32_t y) {
    return ing_ir_emit(&c->b, op, t, x, y, 0);
}

static uint32_t zero_of(ing_ad_code *c, ing_type t) {
    return ing_ir_const_float(&c->b, (ing_dtype)t, 0);
}

/* ---- sums --------------------------------------------------------------------------------------- */

/* Made outside of the parallel loop whose iterations add to it now? */
bool ing_ad_is_shared(const ing_ad_code *c, uint32_t id) {
    if (!c->parallel) return false;
    uint32_t r = c->n->region[id];
    while (r && r != c->parallel) r = c->n->region[r];
    return r != c->parallel;
}

static void add_to(ing_ad_code *c, uint32_t ref, uint32_t value, ing_type t,
                   bool shared) {
    if (shared) {
        ing_ir_emit(&c->b, ING_OP_ATOMIC, t, ref, value, ING_IR_ATOMIC_ADD);
        return;
    }
    uint32_t old = ing_ad_load(c, ref);
    ing_ad_store(c, ref, emit(c, ING_OP_ADD, t, old, value));
}

static uint32_t member(ing_ad_code *c, uint32_t ref, uint32_t k, ing_type t) {
    return ing_ir_emit(&c->b, ING_OP_MEMBER, ing_ir_type_ref(c->m, t), ref, k, 0);
}

static ing_type behind(const ing_ad_code *c, uint32_t ref) {
    if (!ref || ref >= c->b.func->insts.len) return 0;
    return ing_ir_type(c->m, c->b.func->insts.at[ref].type)->elem;
}

typedef enum leaf_work { LEAF_ADD, LEAF_ADD_SHARED, LEAF_ZERO } leaf_work;

/* Every float behind a ref; the depth of types is bounded. */
static void each_leaf(ing_ad_code *c, uint32_t to, uint32_t from, leaf_work work) {
    ing_type t = behind(c, to);
    ing_type_info i = *ing_ir_type(c->m, t); /* the table may grow */
    if (!ing_ad_is_real(c->m, t) || !ing_ir_ok(c->m)) return;
    uint32_t n = i.kind == ING_TYPE_STRUCT ? i.n_members : i.rows * i.cols;
    if (i.kind == ING_TYPE_SCALAR) {
        if (work == LEAF_ZERO)
            ing_ad_store(c, to, zero_of(c, t));
        else
            add_to(c, to, ing_ad_load(c, from), t, work == LEAF_ADD_SHARED);
        return;
    }
    for (uint32_t k = 0; k < n; k++) {
        ing_type part = i.kind == ING_TYPE_STRUCT ? i.members[k] : i.dtype;
        if (!ing_ad_is_real(c->m, part)) continue;
        uint32_t source = work == LEAF_ZERO ? 0 : member(c, from, k, part);
        each_leaf(c, member(c, to, k, part), source, work);
    }
}

void ing_ad_add_leaves(ing_ad_code *c, uint32_t to, uint32_t from, bool shared) {
    each_leaf(c, to, from, shared ? LEAF_ADD_SHARED : LEAF_ADD);
}

void ing_ad_add(ing_ad_code *c, uint32_t id, uint32_t value) {
    if (!value || !ing_ad_active(c->n, id)) return;
    ing_type t = ing_ir_at(c->f, id)->type;
    if (ing_ad_has_slot(c, id))
        add_to(c, c->adj[id], value, t, ing_ad_is_shared(c, id));
    else
        c->adj[id] = c->adj[id] ? emit(c, ING_OP_ADD, t, c->adj[id], value) : value;
}

void ing_ad_add_from(ing_ad_code *c, uint32_t id, uint32_t ref) {
    if (!ing_ad_active(c->n, id)) return;
    if (ing_ad_has_slot(c, id))
        ing_ad_add_leaves(c, c->adj[id], ref, ing_ad_is_shared(c, id));
    else
        ing_ad_add(c, id, ing_ad_load(c, ref));
}

/* The adjoint of a scalar; 0 = nothing was added. */
static uint32_t adjoint_of(ing_ad_code *c, uint32_t id) {
    uint32_t a = c->adj[id];
    return a && ing_ad_has_slot(c, id) ? ing_ad_load(c, a) : a;
}

/* ---- memory --------------------------------------------------------------------------------------- */

static uint32_t companion_of(ing_ad_code *c, uint32_t array) {
    const ing_ir_inst *i = ing_ir_at(c->f, array);
    ing_type t = ing_ad_companion(c->ad, c->n, array);
    if (!t) return 0;
    if (i->op == ING_OP_PARAM) return c->shadow[c->n->param_at[i->a]];
    return emit(c, ING_OP_ARRAY, t, ing_ad_companion_arg(c->ad, i->a) - 1, 0);
}

uint32_t ing_ad_shadow(ing_ad_code *c, uint32_t ref) {
    const ing_ir_inst *i = ing_ir_at(c->f, ref);
    uint32_t idx[ING_MAX_NDIM], of;
    switch (i->op) {
    case ING_OP_MEMBER:
        of = ing_ad_shadow(c, i->a);
        return of ? ing_ir_emit(&c->b, ING_OP_MEMBER, i->type, of, i->b, 0) : 0;
    case ING_OP_MEMBER_DYN:
        of = ing_ad_shadow(c, i->a);
        return of ? emit(c, ING_OP_MEMBER_DYN, i->type, of, c->copy.map[i->b]) : 0;
    case ING_OP_ELEM:
        of = companion_of(c, i->a);
        for (uint32_t k = 0; k < i->c && k < ING_MAX_NDIM; k++)
            idx[k] = c->copy.map[c->f->extra.at[i->b + k]];
        return of ? ing_ir_elem(&c->b, of, idx, i->c) : 0;
    case ING_OP_PARAM: return c->shadow[c->n->param_at[i->a]];
    default: return c->shadow[ref];
    }
}

/* Do other threads add to it? Companions of arrays, locals of the kernel, refs of a func to
 * either. */
static bool shared_place(const ing_ad_code *c, uint32_t ref) {
    uint32_t root = ing_ad_root(c->n, ref);
    const ing_ir_inst *i = ing_ir_at(c->f, root);
    if (ing_ad_is_array(c->m, i->type)) return true;
    if (i->op == ING_OP_PARAM) return c->n->params[i->a].shared;
    return ing_ad_is_shared(c, root);
}

static void back_load(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    if (!c->adj[id]) return;
    uint32_t held = c->held[id], to = held ? held : ing_ad_shadow(c, i->a);
    if (!to) return;
    bool shared = !held && shared_place(c, i->a);
    bool fresh = !held && !shared && c->fresh[i->a] == c->stretch;
    c->fresh[i->a] = 0;
    if (fresh) /* 0 and what is added: that */
        ing_ad_store(c, to, adjoint_of(c, id));
    else if (is_scalar(c, i->type))
        add_to(c, to, adjoint_of(c, id), i->type, shared);
    else
        ing_ad_add_leaves(c, to, c->adj[id], shared);
}

/* What was there before has no part in what is there now. */
static void back_store(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t from = ing_ad_shadow(c, i->a);
    if (!from) return;
    ing_ad_add_from(c, i->b, from);
    each_leaf(c, from, 0, LEAF_ZERO);
    bool whole = ing_ir_at(c->f, i->a)->op == ING_OP_ALLOCA; /* has no other name */
    c->fresh[i->a] = whole && is_scalar(c, behind(c, from)) ? c->stretch : 0;
}

/* The one that left its value there takes the whole adjoint; of equal ones, the first to come. */
static void back_winner(ing_ad_code *c, const ing_ir_inst *i, uint32_t from) {
    uint32_t last = ing_ad_load(c, c->copy.map[i->a]);
    uint32_t won = emit(c, ING_OP_EQ, ING_U1, last, c->copy.map[i->b]);
    uint32_t got = ing_ad_local(c, i->type);
    ing_ir_block_begin(&c->b);
    uint32_t zero = zero_of(c, i->type);
    uint32_t all =
        ing_ir_emit(&c->b, ING_OP_ATOMIC, i->type, from, zero, ING_IR_ATOMIC_XCHG);
    ing_ad_store(c, got, all);
    ing_ir_emit(&c->b, ING_OP_IF, 0, won, ing_ir_block_end(&c->b), 0);
    ing_ad_add(c, i->b, ing_ad_load(c, got));
}

static void back_atomic(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t from = ing_ad_shadow(c, i->a), g;
    if (!from) return;
    switch (i->c) {
    case ING_IR_ATOMIC_ADD: ing_ad_add(c, i->b, ing_ad_load(c, from)); break;
    case ING_IR_ATOMIC_SUB:
        g = ing_ad_load(c, from);
        ing_ad_add(c, i->b, emit(c, ING_OP_NEG, i->type, g, 0));
        break;
    default: back_winner(c, i, from); break;
    }
    if (c->adj[id]) add_to(c, from, adjoint_of(c, id), i->type, shared_place(c, i->a));
}

/* ---- values -------------------------------------------------------------------------------------------- */

static void back_arith(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t operand[2] = {i->a, i->b}, a = adjoint_of(c, id);
    const uint32_t *map = c->copy.map;
    for (uint32_t k = 0; a && k < 2; k++) {
        if (!operand[k] || !ing_ad_active(c->n, operand[k])) continue;
        ing_ad_factor f =
            ing_ad_partial(&c->b, i->op, k, map[i->a], i->b ? map[i->b] : 0, map[id]);
        if (f.kind == ING_AD_ZERO) continue;
        uint32_t part = a;
        if (f.kind == ING_AD_MINUS) part = emit(c, ING_OP_NEG, i->type, a, 0);
        if (f.kind == ING_AD_VALUE) part = emit(c, ING_OP_MUL, i->type, a, f.value);
        ing_ad_add(c, operand[k], part);
    }
}

static void back_cast(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t a = adjoint_of(c, id);
    ing_type t = ing_ir_at(c->f, i->a)->type;
    if (a && ing_ad_active(c->n, i->a))
        ing_ad_add(c, i->a, emit(c, ING_OP_CAST, t, a, 0));
}

/* In branches, so that aggregates are added whole. */
static void back_select(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t cond = c->copy.map[i->a], a;
    if (!c->adj[id]) return;
    if (is_scalar(c, i->type)) {
        uint32_t zero = zero_of(c, i->type);
        a = adjoint_of(c, id);
        if (ing_ad_active(c->n, i->b))
            ing_ad_add(c, i->b,
                       ing_ir_emit(&c->b, ING_OP_SELECT, i->type, cond, a, zero));
        if (ing_ad_active(c->n, i->c))
            ing_ad_add(c, i->c,
                       ing_ir_emit(&c->b, ING_OP_SELECT, i->type, cond, zero, a));
        return;
    }
    ing_ir_block_begin(&c->b);
    ing_ad_add_from(c, i->b, c->adj[id]);
    uint32_t then = ing_ir_block_end(&c->b);
    ing_ir_block_begin(&c->b);
    ing_ad_add_from(c, i->c, c->adj[id]);
    ing_ir_emit(&c->b, ING_OP_IF, 0, cond, then, ing_ir_block_end(&c->b));
}

static ing_type part_type(const ing_ad_code *c, ing_type t, uint32_t k) {
    const ing_type_info *i = ing_ir_type(c->m, t);
    return i->kind == ING_TYPE_STRUCT ? i->members[k] : i->dtype;
}

static void back_make(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    for (uint32_t k = 0; c->adj[id] && k < i->c; k++) {
        uint32_t item = c->f->extra.at[i->b + k];
        if (ing_ad_active(c->n, item))
            ing_ad_add_from(c, item,
                            member(c, c->adj[id], k, part_type(c, i->type, k)));
    }
}

static void back_extract(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    if (!c->adj[id] || !ing_ad_active(c->n, i->a)) return;
    uint32_t to = member(c, c->adj[i->a], i->b, i->type);
    bool shared = ing_ad_is_shared(c, i->a);
    if (is_scalar(c, i->type))
        add_to(c, to, adjoint_of(c, id), i->type, shared);
    else
        ing_ad_add_leaves(c, to, c->adj[id], shared);
}

static void back_insert(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    if (!c->adj[id]) return;
    uint32_t part = member(c, c->adj[id], i->c, part_type(c, i->type, i->c));
    ing_ad_add_from(c, i->b, part);
    each_leaf(c, part, 0, LEAF_ZERO);
    ing_ad_add_from(c, i->a, c->adj[id]);
}

void ing_ad_put_adjoint(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    switch (i->op) {
    case ING_OP_LOAD: back_load(c, id); break;
    case ING_OP_STORE: back_store(c, id); break;
    case ING_OP_ATOMIC: back_atomic(c, id); break;
    case ING_OP_CAST: back_cast(c, id); break;
    case ING_OP_SELECT: back_select(c, id); break;
    case ING_OP_MAKE: back_make(c, id); break;
    case ING_OP_EXTRACT: back_extract(c, id); break;
    case ING_OP_INSERT: back_insert(c, id); break;
    default:
        if (ing_op_is_arith(i->op)) back_arith(c, id);
        break;
    }
}
