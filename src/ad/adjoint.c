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

typedef struct adjoint {
    uint32_t value;  /* 0 = nothing was added */
    uint32_t counts; /* the u1 of AD7, 0 = always */
    bool picked;     /* it depends on what an operation took */
} adjoint;

/* Read from memory. */
static adjoint found(ing_ad_code *c, uint32_t value) {
    ing_type t = c->b.func->insts.at[value].type;
    bool asked = c->any_wild;
    uint32_t counts = asked ? emit(c, ING_OP_NE, ING_U1, value, zero_of(c, t)) : 0;
    return (adjoint){value, counts, false};
}

static void add_to_slot(ing_ad_code *c, uint32_t id, adjoint a) {
    ing_type t = ing_ir_at(c->f, id)->type;
    uint32_t ref = c->counts[id], when = a.counts;
    add_to(c, c->adj[id], a.value, t, ing_ad_is_shared(c, id));
    if (!ref) return;
    if (when) when = emit(c, ING_OP_OR, ING_U1, ing_ad_load(c, ref), when);
    ing_ad_store(c, ref, when ? when : ing_ir_const_int(&c->b, ING_U1, 1));
}

static void add(ing_ad_code *c, uint32_t id, adjoint a) {
    if (!a.value || !ing_ad_active(c->n, id)) return;
    if (ing_ad_has_slot(c, id)) {
        add_to_slot(c, id, a);
        return;
    }
    ing_type t = ing_ir_at(c->f, id)->type;
    uint32_t old = c->adj[id], counts = c->counts[id];
    c->adj[id] = old ? emit(c, ING_OP_ADD, t, old, a.value) : a.value;
    c->counts[id] = a.counts;
    if (old && counts != a.counts)
        c->counts[id] =
            counts && a.counts ? emit(c, ING_OP_OR, ING_U1, counts, a.counts) : 0;
    c->picked[id] = a.picked && (!old || c->picked[id]);
}

void ing_ad_add_from(ing_ad_code *c, uint32_t id, uint32_t ref) {
    if (!ing_ad_active(c->n, id)) return;
    if (is_scalar(c, ing_ir_at(c->f, id)->type))
        add(c, id, found(c, ing_ad_load(c, ref)));
    else
        ing_ad_add_leaves(c, c->adj[id], ref, ing_ad_is_shared(c, id));
}

/* The adjoint of a scalar. */
static adjoint adjoint_of(ing_ad_code *c, uint32_t id) {
    uint32_t a = c->adj[id], counts = c->counts[id];
    if (!a || !ing_ad_has_slot(c, id)) return (adjoint){a, counts, c->picked[id]};
    a = ing_ad_load(c, a);
    return counts ? (adjoint){a, ing_ad_load(c, counts), false} : found(c, a);
}

/* What is left of it if the operand was taken. */
static adjoint taken(ing_ad_code *c, adjoint a, uint32_t cond, bool yes) {
    uint32_t zero = zero_of(c, c->b.func->insts.at[a.value].type);
    uint32_t x = yes ? a.value : zero, y = yes ? zero : a.value;
    ing_type t = c->b.func->insts.at[a.value].type;
    uint32_t when = yes ? cond : emit(c, ING_OP_NOT, ING_U1, cond, 0);
    a.value = ing_ir_emit(&c->b, ING_OP_SELECT, t, cond, x, y);
    a.counts = a.counts ? emit(c, ING_OP_AND, ING_U1, when, a.counts) : when;
    a.picked = true;
    return a;
}

/* An adjoint times a factor, which may be infinite or NaN if it is wild. */
static adjoint times(ing_ad_code *c, adjoint a, uint32_t factor, bool wild) {
    ing_type t = c->b.func->insts.at[a.value].type;
    a.value = emit(c, ING_OP_MUL, t, a.value, factor);
    if (a.counts && (wild || a.picked))
        a.value =
            ing_ir_emit(&c->b, ING_OP_SELECT, t, a.counts, a.value, zero_of(c, t));
    return a;
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
        ing_ad_store(c, to, adjoint_of(c, id).value);
    else if (is_scalar(c, i->type))
        add_to(c, to, adjoint_of(c, id).value, i->type, shared);
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
    add(c, i->b, found(c, ing_ad_load(c, got)));
}

static void back_atomic(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t from = ing_ad_shadow(c, i->a);
    adjoint g;
    if (!from) return;
    switch (i->c) {
    case ING_IR_ATOMIC_ADD: add(c, i->b, found(c, ing_ad_load(c, from))); break;
    case ING_IR_ATOMIC_SUB:
        g = found(c, ing_ad_load(c, from));
        g.value = emit(c, ING_OP_NEG, i->type, g.value, 0);
        add(c, i->b, g);
        break;
    default: back_winner(c, i, from); break;
    }
    if (c->adj[id])
        add_to(c, from, adjoint_of(c, id).value, i->type, shared_place(c, i->a));
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* Of operand k of an operation: is the factor made of something wild, or wild by itself? */
static bool factor_is_wild(const ing_ad_code *c, uint32_t id, uint32_t k) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t reads = ing_ad_partial_reads(i->op, k);
    return ing_ad_is_wild(c->f, id) || (reads & 1 && c->wild[i->a]) ||
           (reads & 2 && i->b && c->wild[i->b]) || (reads & 4 && c->wild[id]);
}

static void back_arith(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t operand[2] = {i->a, i->b};
    adjoint a = adjoint_of(c, id);
    const uint32_t *map = c->copy.map;
    for (uint32_t k = 0; a.value && k < 2; k++) {
        if (!operand[k] || !ing_ad_active(c->n, operand[k])) continue;
        ing_ad_factor f =
            ing_ad_partial(&c->b, i->op, k, map[i->a], i->b ? map[i->b] : 0, map[id]);
        adjoint part = a;
        switch (f.kind) {
        case ING_AD_ZERO: continue;
        case ING_AD_ONE: break;
        case ING_AD_MINUS: part.value = emit(c, ING_OP_NEG, i->type, a.value, 0); break;
        case ING_AD_VALUE: part = times(c, a, f.value, factor_is_wild(c, id, k)); break;
        case ING_AD_IF: part = taken(c, a, f.value, true); break;
        case ING_AD_UNLESS: part = taken(c, a, f.value, false); break;
        }
        add(c, operand[k], part);
    }
}

static void back_cast(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    adjoint a = adjoint_of(c, id);
    ing_type t = ing_ir_at(c->f, i->a)->type;
    if (!a.value || !ing_ad_active(c->n, i->a)) return;
    a.value = emit(c, ING_OP_CAST, t, a.value, 0);
    add(c, i->a, a);
}

/* In branches, so that aggregates are added whole. */
static void back_select(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t cond = c->copy.map[i->a];
    if (!c->adj[id]) return;
    if (is_scalar(c, i->type)) {
        adjoint a = adjoint_of(c, id);
        if (ing_ad_active(c->n, i->b)) add(c, i->b, taken(c, a, cond, true));
        if (ing_ad_active(c->n, i->c)) add(c, i->c, taken(c, a, cond, false));
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
        add_to(c, to, adjoint_of(c, id).value, i->type, shared);
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
