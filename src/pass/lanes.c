/* Lanes: finds parallel loops whose iterations should go through a serial loop side by side.
 * The rules stand in lanes.h; lanes_emit.c writes the loops. Must never take a loop with a
 * branch, a call or an atomic in it. */
#include "pass/lanes.h"

enum {
    FEW_TRIPS = 32, /* of the serial loop: LLVM unrolls it and vectorises the other */
    MAX_KEPT = 16,  /* arrays of lanes; more would not stay in the first cache */
};

typedef struct finder {
    ing_lanes l;
    uint8_t *unit;  /* per instruction: one more in the next iteration */
    uint8_t *steps; /* per instruction: another one for each k */
    uint32_t kept;  /* locals and values that lanes keep */
} finder;

static const ing_ir_inst *at(const finder *x, uint32_t id) {
    return ing_ir_at(x->l.f, id);
}

/* Is any operand marked? */
static bool any_use(const finder *x, const ing_ir_inst *i, const uint8_t *mark) {
    ing_ir_uses u;
    bool any = false;
    ing_ir_inst_uses(x->l.f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) any |= mark[u.fixed[k]];
    for (uint32_t k = 0; k < u.n_list; k++) any |= mark[u.list[k]];
    return any;
}

/* ---- L1 --------------------------------------------------------------------------------- */

static bool is_lane_type(ing_type t) {
    return t < ING_DTYPE_N && t != ING_U1;
}

static bool is_local(const finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    return i->op == ING_OP_ALLOCA && is_lane_type(ing_ir_type(x->l.m, i->type)->elem);
}

/* A local is read and written, nothing else. */
static bool locals_stay(const finder *x, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->l.f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t id = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        if (at(x, id)->op != ING_OP_ALLOCA) continue;
        bool address = (i->op == ING_OP_LOAD || i->op == ING_OP_STORE) && k == 0;
        if (!address || !is_local(x, id)) return false;
    }
    return true;
}

static bool is_plain(const finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (!locals_stay(x, i)) return false;
    switch (i->op) {
    case ING_OP_ALLOCA: return is_local(x, id);
    case ING_OP_LOAD: return !(i->flags & ING_IR_VOLATILE);
    case ING_OP_STORE: return true;
    default: return ing_lanes_pure(i);
    }
}

static bool is_neighbour(const finder *x, const ing_ir_inst *i) {
    const uint8_t *varies = x->l.varies, *unit = x->unit;
    switch (i->op) {
    case ING_OP_CAST: return unit[i->a] && ing_dtype_is_int((ing_dtype)i->type);
    case ING_OP_ADD:
        return (unit[i->a] && !varies[i->b]) || (unit[i->b] && !varies[i->a]);
    case ING_OP_SUB: return unit[i->a] && !varies[i->b];
    default: return false;
    }
}

/* What is known of an instruction once all before it are. */
static void mark(finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    bool pure = ing_lanes_pure(i);
    x->kept += i->op == ING_OP_ALLOCA;
    x->l.varies[id] = !pure || any_use(x, i, x->l.varies);
    x->steps[id] = x->l.inner && (!pure || any_use(x, i, x->steps));
    x->unit[id] = is_neighbour(x, i);
}

/* ---- L2 ---------------------------------------------------------------------------------- */

static bool few_trips(const finder *x, const ing_ir_inst *k) {
    const ing_ir_inst *a = at(x, k->a), *b = at(x, k->b);
    if (a->op != ING_OP_CONST || b->op != ING_OP_CONST) return false;
    return (int64_t)ing_ir_const_bits(b) - (int64_t)ing_ir_const_bits(a) <= FEW_TRIPS;
}

/* Of a field: has each axis one level, and do neighbours of the innermost touch? */
static bool columns_lie_together(const ing_type_info *field) {
    const ing_place *p = field->place;
    uint32_t seen = 0;
    for (uint32_t k = 0; k < p->n_levels; k++) {
        if (seen >> p->level[k].axis & 1) return false;
        seen |= 1u << p->level[k].axis;
    }
    return p->n_levels &&
           p->level[p->n_levels - 1].stride == (int64_t)ing_place_elem_bytes(p);
}

/* Whether lanes suit an access of the serial loop; `gain` when they are why it gets fast. */
static bool suits(const finder *x, uint32_t ref, bool *gain) {
    const ing_ir_inst *i = at(x, ref);
    if (i->op == ING_OP_ALLOCA || !x->l.varies[ref]) return true;
    if (i->op != ING_OP_ELEM) return false;
    const ing_type_info *t = ing_ir_type(x->l.m, at(x, i->a)->type);
    if (!is_lane_type(t->elem) || t->rank == 0 || x->l.varies[i->a]) return false;
    if (t->place && !columns_lie_together(t)) return false;
    bool rows = false;
    for (uint32_t k = 0; k + 1 < t->rank; k++) {
        uint32_t index = x->l.f->extra.at[i->b + t->layout[k]];
        if (x->l.varies[index]) return false;
        rows |= x->steps[index];
    }
    *gain |= rows;
    return x->unit[x->l.f->extra.at[i->b + t->layout[t->rank - 1]]];
}

/* ---- the loops ------------------------------------------------------------------------------ */

/* The body of the serial loop: L1 and L2. */
static bool inner_suits(finder *x, const ing_ir_inst *k) {
    bool gain = false;
    x->steps[x->l.inner] = 1;
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, k->c); j++) {
        uint32_t id = ing_ir_block_ids(x->l.f, k->c)[j];
        const ing_ir_inst *i = at(x, id);
        if (!is_plain(x, id)) return false;
        mark(x, id);
        bool access = i->op == ING_OP_LOAD || i->op == ING_OP_STORE;
        if (access && !suits(x, i->a, &gain)) return false;
    }
    return gain;
}

static void need_uses(finder *x, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->l.f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) x->l.needed[u.fixed[k]] = 1;
    for (uint32_t k = 0; k < u.n_list; k++) x->l.needed[u.list[k]] = 1;
}

/* What of pre the others use; false when that cannot be kept in lanes. */
static bool find_needed(finder *x, uint32_t body, uint32_t inner_body) {
    const uint32_t *ids = ing_ir_block_ids(x->l.f, body);
    uint32_t n = ing_ir_block_len(x->l.f, body);
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, inner_body); j++)
        need_uses(x, at(x, ing_ir_block_ids(x->l.f, inner_body)[j]));
    for (; ids[n - 1] != x->l.inner; n--) {
        need_uses(x, at(x, ids[n - 1]));
        x->l.needed[ids[n - 1]] = 0;
    }
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, inner_body); j++)
        x->l.needed[ing_ir_block_ids(x->l.f, inner_body)[j]] = 0;
    for (n--; n-- > 0;) {
        const ing_ir_inst *i = at(x, ids[n]);
        if (!x->l.needed[ids[n]]) continue;
        if (ing_lanes_pure(i)) need_uses(x, i);
        if (i->op != ING_OP_LOAD) continue;
        if (!is_lane_type(i->type)) return false;
        x->kept++;
    }
    return x->kept <= MAX_KEPT;
}

/* Is the parallel loop of this form? */
static bool loop_suits(finder *x) {
    const ing_ir_inst *c = at(x, x->l.loop);
    x->l.varies[x->l.loop] = x->unit[x->l.loop] = 1;
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, c->c); j++) {
        uint32_t id = ing_ir_block_ids(x->l.f, c->c)[j];
        const ing_ir_inst *i = at(x, id);
        if (i->op == ING_OP_LOOP) {
            if (x->l.inner || x->l.varies[i->a] || x->l.varies[i->b]) return false;
            x->l.inner = id;
            if (few_trips(x, i) || !inner_suits(x, i)) return false;
            continue;
        }
        if (!is_plain(x, id)) return false;
        mark(x, id);
    }
    return x->l.inner && find_needed(x, c->c, at(x, x->l.inner)->c);
}

/* The parallel loop of a task; loops over rows may be around it. */
static uint32_t find_loop(const ing_ir_func *f, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++) {
        uint32_t id = ing_ir_block_ids(f, block)[k];
        const ing_ir_inst *i = ing_ir_at(f, id);
        if (i->op != ING_OP_LOOP) continue;
        if (i->flags & ING_IR_PARALLEL) return id;
        uint32_t inner = find_loop(f, i->c);
        if (inner) return inner;
    }
    return 0;
}

static bool run_task(ing_ir_mod *m, uint32_t func) {
    const ing_ir_func *f = m->funcs.at[func];
    finder x = {.l = {.m = m, .func = func, .f = f, .loop = find_loop(f, f->body)}};
    size_t n = f->insts.len;
    if (!x.l.loop) return true;
    uint8_t *room = ing_calloc(n, 4);
    if (!room) return false;
    x.l.varies = room;
    x.l.needed = room + n;
    x.unit = room + 2 * n;
    x.steps = room + 3 * n;
    bool ok = !loop_suits(&x) || ing_lanes_emit(&x.l);
    ing_free(room);
    return ok;
}

ing_status ing_pass_lanes(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    for (uint32_t k = 0; k < m->tasks.len && ing_ir_ok(m); k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        if (t->kind == ING_IR_TASK_RANGE && !run_task(m, t->func))
            return ing_fail(e, ING_MEMORY, "no memory for a pass");
    }
    return ing_pass_done(m, e);
}
