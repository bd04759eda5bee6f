/* Backward code of blocks, loops, branches and calls: from the last instruction to the first.
 * Called by reverse.c for the body of a function, after its forward code. */
#include "ad/ad_int.h"

static uint32_t emit(ing_ad_code *c, ing_op op, ing_type t, uint32_t x, uint32_t y) {
    return ing_ir_emit(&c->b, op, t, x, y, 0);
}

static uint32_t number(ing_ad_code *c, int64_t v) {
    return ing_ir_const_int(&c->b, ING_I64, v);
}

/* ---- loops -------------------------------------------------------------------------------------- */

/* Locals that the loop reads and does not write, as it found them. */
static void restore_state(ing_ad_code *c, uint32_t loop) {
    for (uint32_t k = 0; k < c->n->states.len; k++) {
        const ing_ad_state *s = &c->n->states.at[k];
        if (s->loop == loop && !s->carried)
            ing_ad_store(c, c->copy.map[s->local], ing_ad_load(c, s->slot));
    }
}

static void restore_entry(ing_ad_code *c, uint32_t loop, uint32_t base,
                          uint32_t entry) {
    for (uint32_t k = 0; k < c->n->states.len; k++) {
        const ing_ad_state *s = &c->n->states.at[k];
        if (s->loop == loop && s->carried)
            ing_ad_store(c, c->copy.map[s->local],
                         ing_ad_load(c, ing_ad_entry(c, s, base, entry)));
    }
}

/* One iteration: forwards again, then backwards. */
static void put_region(ing_ad_code *c, uint32_t loop, uint32_t block) {
    ing_ad_top outer = ing_ad_open_top(c, loop);
    ing_ad_open_region(c, block);
    ing_ad_put_forward(c, block, true);
    ing_ad_put_backward(c, block);
    ing_ad_close_top(c, outer);
}

/* A LOAD that each iteration makes of one and the same element of an array with a companion, and that
 * none writes. */
static bool is_held(const ing_ad_code *c, uint32_t id, uint32_t loop) {
    const ing_ad_fn *n = c->n;
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t ref = i->a;
    if (i->op != ING_OP_LOAD || n->region[id] != loop || ing_ad_in_branch(n, id) ||
        !(n->mark[id] & ING_AD_LIVE) || !(n->mark[id] & ING_AD_STILL))
        return false;
    for (; ing_ir_at(c->f, ref)->op == ING_OP_MEMBER; ref = ing_ir_at(c->f, ref)->a) {}
    const ing_ir_inst *e = ing_ir_at(c->f, ref);
    for (uint32_t k = 0; e->op == ING_OP_ELEM && k < e->c; k++) {
        uint32_t idx = c->f->extra.at[e->b + k],
                 r = idx == loop ? loop : n->region[idx];
        bool number = ing_ir_at(c->f, idx)->op == ING_OP_CONST;
        while (r && r != loop) r = n->region[r];
        if (r && !number) return false;
    }
    return e->op == ING_OP_ELEM;
}

static void open_held(ing_ad_code *c, uint32_t loop) {
    const uint32_t *ids = ing_ir_block_ids(c->f, ing_ir_at(c->f, loop)->c);
    for (uint32_t k = 0; k < ing_ir_block_len(c->f, ing_ir_at(c->f, loop)->c); k++)
        if (is_held(c, ids[k], loop))
            c->held[ids[k]] = ing_ad_local(c, ing_ir_at(c->f, ids[k])->type);
}

/* Numbers that stand in the loop are made again. */
static void remake_indices(ing_ad_code *c, uint32_t loop, uint32_t ref) {
    const ing_ir_inst *e = ing_ir_at(c->f, ref);
    for (; e->op == ING_OP_MEMBER; e = ing_ir_at(c->f, e->a)) {}
    for (uint32_t k = 0; k < e->c; k++) {
        uint32_t idx = c->f->extra.at[e->b + k];
        bool inner = c->n->region[idx] == loop;
        if (inner && ing_ir_at(c->f, idx)->op == ING_OP_CONST)
            ing_ir_copy_inst(&c->copy, idx);
    }
}

/* `n` iterations were made; if none was, the element may not be there. */
static void close_held(ing_ad_code *c, uint32_t loop, uint32_t n) {
    const uint32_t *ids = ing_ir_block_ids(c->f, ing_ir_at(c->f, loop)->c);
    uint32_t some = emit(c, ING_OP_LT, ING_U1, number(c, 0), n);
    ing_ir_block_begin(&c->b);
    for (uint32_t k = 0; k < ing_ir_block_len(c->f, ing_ir_at(c->f, loop)->c); k++) {
        uint32_t held = c->held[ids[k]], ref = ing_ir_at(c->f, ids[k])->a;
        if (!held) continue;
        remake_indices(c, loop, ref);
        ing_ad_add_leaves(c, ing_ad_shadow(c, ref), held, true);
        c->held[ids[k]] = 0;
    }
    uint32_t then = ing_ir_block_end(&c->b);
    ing_ir_emit(&c->b, ING_OP_IF, 0, some, then, 0);
}

/* Iterations of a loop from the last to the first: `n` of them, the first being number `from` (0: none were before). */
static void put_backwards(ing_ad_code *c, uint32_t id, uint32_t from, uint32_t n,
                          uint32_t base) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    bool counted = i->op == ING_OP_LOOP;
    ing_ir_builder *b = &c->b;
    uint32_t zero = number(c, 0);
    uint32_t loop = ing_ir_loop_reserve(b, ING_I64);
    ing_ir_block_begin(b);
    uint32_t last = emit(c, ING_OP_SUB, ING_I64, n, number(c, 1));
    uint32_t entry = emit(c, ING_OP_SUB, ING_I64, last, loop);
    uint32_t at = from ? emit(c, ING_OP_ADD, ING_I64, from, entry) : entry;
    if (counted) c->copy.map[id] = ing_ad_index(c, i, at);
    if (base) restore_entry(c, id, base, entry);
    put_region(c, id, counted ? i->c : i->a);
    bool outermost = c->n->func == 0 && c->n->region[id] == 0 && c->n->parent[id] == 0;
    ing_ir_loop_finish(b, loop, zero, n, ing_ir_block_end(b),
                       outermost ? ING_IR_SERIAL : 0);
}

/* The last segment finds its entries on the stack (SEGMENT1). */
static void put_segments(ing_ad_code *c, uint32_t id, uint32_t n, uint32_t base) {
    uint32_t all = ing_ad_segments(c, n), zero = number(c, 0);
    uint32_t loop = ing_ir_loop_reserve(&c->b, ING_I64);
    ing_ir_block_begin(&c->b);
    uint32_t last = emit(c, ING_OP_SUB, ING_I64, all, number(c, 1));
    ing_ad_segment s =
        ing_ad_segment_at(c, id, n, emit(c, ING_OP_SUB, ING_I64, last, loop));
    uint32_t is_last = emit(c, ING_OP_EQ, ING_U1, loop, zero);
    uint32_t again = ing_ir_emit(&c->b, ING_OP_SELECT, ING_I64, is_last, zero, s.trips);
    restore_entry(c, id, base, s.entry);
    ing_ad_put_segment(c, id, base, &s, again, ING_IR_FEW);
    put_backwards(c, id, s.first, s.trips, base);
    ing_ir_loop_finish(&c->b, loop, zero, all, ing_ir_block_end(&c->b), ING_IR_FEW);
}

/* All iterations of a loop; `n` of them. */
static void put_iterations(ing_ad_code *c, uint32_t id, uint32_t n) {
    bool counted = ing_ir_at(c->f, id)->op == ING_OP_LOOP;
    bool stack = ing_ad_stride(c, id) != 0;
    uint32_t base = stack ? c->base[id] : 0;
    if (stack && ing_ad_in_branch(c->n, id)) base = ing_ad_load(c, base);
    if (counted) open_held(c, id);
    if (base && ing_ad_is_cut(c->ad, c->n, id))
        put_segments(c, id, n, base);
    else
        put_backwards(c, id, 0, n, base);
    if (base) ing_ad_set_top(c, base);
    if (counted) close_held(c, id, n);
}

/* Iterations of a parallel loop need no order; each has stacks of its own. */
static void put_parallel(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    ing_ir_builder *b = &c->b;
    uint32_t loop = ing_ir_loop_reserve(b, i->type);
    c->copy.map[id] = loop;
    ing_ir_block_begin(b);
    c->parallel = id;
    put_region(c, id, i->c);
    c->parallel = 0;
    ing_ir_loop_finish(b, loop, c->copy.map[i->a], c->copy.map[i->b],
                       ing_ir_block_end(b), i->flags);
}

static void back_loop(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    restore_state(c, id);
    if (i->op == ING_OP_WHILE)
        put_iterations(c, id, ing_ad_load(c, c->count[id]));
    else if (i->flags & ING_IR_PARALLEL)
        put_parallel(c, id);
    else
        put_iterations(c, id, ing_ad_trips(c, i));
}

/* ---- branches --------------------------------------------------------------------------------------- */

static uint32_t put_branch(ing_ad_code *c, uint32_t block) {
    ing_ir_block_begin(&c->b);
    for (uint32_t k = 0; k < ing_ir_block_len(c->f, block); k++) {
        uint32_t id = ing_ir_block_ids(c->f, block)[k];
        const ing_ir_inst *i = ing_ir_at(c->f, id);
        if (!(c->n->mark[id] & ING_AD_KEPT) || i->op == ING_OP_LOOP) continue;
        if (ing_ad_is_remade(i))
            ing_ir_copy_inst(&c->copy, id);
        else
            c->copy.map[id] = ing_ad_load(c, c->slot[id]);
    }
    ing_ad_put_backward(c, block);
    return ing_ir_block_end(&c->b);
}

static void back_if(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t cond = c->copy.map[i->a];
    uint32_t then = put_branch(c, i->b), other = i->c ? put_branch(c, i->c) : 0;
    ing_ir_emit(&c->b, ING_OP_IF, 0, cond, then, other);
}

/* ---- calls -------------------------------------------------------------------------------------------- */

typedef struct call {
    const ing_ad_fn *to;
    uint32_t *args,
        *given; /* given: the local that gathers an argument's adjoint, 0 = none */
    uint32_t n;
} call;

/* The func's own parameters. */
static void put_values(ing_ad_code *c, uint32_t id, call *x) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = c->f->extra.at[i->b + k], at = x->to->param_at[k];
        ing_type t = ing_ir_at(c->f, arg)->type;
        bool needed = at && x->to->mark[at] & ING_AD_AGAIN;
        const ing_ir_inst *of = ing_ir_at(c->f, arg);
        uint32_t v;
        if (ing_ad_is_array(c->m, t)) /* ARRAY or PARAM */
            v = emit(c, (ing_op)of->op, of->type, of->a, 0);
        else if (ing_ad_is_ref(c->m, t))
            v = needed ? *ing_ad_snap_slot(c, id, k)
                       : ing_ad_local(c, ing_ir_type(c->m, t)->elem);
        else
            v = needed ? c->copy.map[arg] : ing_ad_load(c, ing_ad_local(c, t));
        x->args[x->n++] = v;
    }
}

/* Then their adjoints, the result's, and the top of the stacks. */
static void put_adjoints(ing_ad_code *c, uint32_t id, call *x) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = c->f->extra.at[i->b + k];
        const ing_ad_param *p = &x->to->params[k];
        ing_type t = ing_ir_at(c->f, arg)->type;
        if (p->companion) {
            const ing_ir_inst *of = ing_ir_at(c->f, arg);
            x->args[x->n++] = of->op == ING_OP_PARAM
                                  ? c->shadow[c->n->param_at[of->a]]
                                  : emit(c, ING_OP_ARRAY, p->companion,
                                         ing_ad_companion_arg(c->ad, of->a) - 1, 0);
        } else if (p->active && ing_ad_is_ref(c->m, t)) {
            x->args[x->n++] = ing_ad_shadow(c, arg);
        } else if (p->active) {
            x->args[x->n++] = x->given[k] = ing_ad_local(c, t);
        }
    }
    if (i->type && ing_ad_is_real(c->m, i->type)) {
        bool has = c->adj[id] != 0, slot = ing_ad_has_slot(c, id);
        uint32_t from = has ? c->adj[id] : ing_ad_local(c, i->type);
        x->args[x->n++] = has && !slot ? from : ing_ad_load(c, from);
    }
    x->args[x->n++] = ing_ad_get_top(c);
}

static void back_call(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    call x = {.to = c->ad->fns.at[c->n->callee[id] - 1]};
    x.args = ing_calloc((size_t)3 * i->c + 2, sizeof *x.args);
    if (!x.args) {
        c->m->arena.failed = true;
        return;
    }
    x.given = x.args + (size_t)2 * i->c + 2;
    put_values(c, id, &x);
    put_adjoints(c, id, &x);
    ing_ir_call(&c->b, x.to->made, x.args, x.n);
    for (uint32_t k = 0; k < i->c; k++)
        if (x.given[k]) ing_ad_add_from(c, c->f->extra.at[i->b + k], x.given[k]);
    ing_free(x.args);
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

/* Adjoints that need a local have it from here on, zero. */
static void open_adjoints(ing_ad_code *c, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(c->f, block); k++) {
        uint32_t id = ing_ir_block_ids(c->f, block)[k];
        const ing_ir_inst *i = ing_ir_at(c->f, id);
        if (i->op == ING_OP_PARAM) continue; /* the caller's */
        c->adj[id] = 0;
        if (!i->type || !ing_ad_active(c->n, id)) continue;
        if (i->op == ING_OP_ALLOCA)
            c->shadow[id] = ing_ad_local(c, ing_ir_type(c->m, i->type)->elem);
        else if (ing_ad_is_ref(c->m, i->type) || ing_ad_is_array(c->m, i->type))
            continue;
        else if (ing_ad_has_slot(c, id)) {
            bool shared = !c->n->func && !c->n->region[id]; /* between iterations */
            c->adj[id] = ing_ad_local(c, i->type);
            c->counts[id] = i->type < ING_DTYPE_N && c->any_wild && !shared
                                ? ing_ad_local(c, ING_U1)
                                : 0;
        }
    }
}

void ing_ad_put_backward(ing_ad_code *c, uint32_t block) {
    open_adjoints(c, block);
    c->stretch++;
    for (uint32_t k = ing_ir_block_len(c->f, block); k-- > 0 && ing_ir_ok(c->m);) {
        uint32_t id = ing_ir_block_ids(c->f, block)[k], inner[2];
        const ing_ir_inst *i = ing_ir_at(c->f, id);
        c->b.loc = i->loc;
        if (i->op == ING_OP_RETURN && i->a && c->result)
            ing_ad_add_from(c, i->a, c->result);
        if (!(c->n->mark[id] & ING_AD_LIVE)) continue;
        switch (i->op) {
        case ING_OP_IF: back_if(c, id); break;
        case ING_OP_LOOP:
        case ING_OP_WHILE: back_loop(c, id); break;
        case ING_OP_CALL: back_call(c, id); break;
        default: ing_ad_put_adjoint(c, id); break;
        }
        if (i->op == ING_OP_CALL || i->op == ING_OP_ATOMIC ||
            ing_ir_inst_blocks(i, inner))
            c->stretch++;
    }
}
