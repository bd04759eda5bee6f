/* Columns whose serial loops have different lengths, and their stacks (LANES7, LANES8 in lanes.h). Called by
 * lanes.c; must never take a loop in which a column that is not in its turn could be seen. */
#include "pass/lanes.h"

static const ing_ir_inst *at(const ing_lanes *l, uint32_t id) {
    return ing_ir_at(l->f, id);
}

void ing_lanes_find_even(ing_lanes *l, uint32_t id) {
    ing_ir_uses u;
    if (!ing_lanes_pure(at(l, id))) return;
    ing_ir_inst_uses(l->f, at(l, id), &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++)
        if (ing_lanes_varies(l, k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed]))
            return;
    l->role[id] |= ING_LANES_EVEN;
}

/* ---- LANES7 ---------------------------------------------------------------------------------- */

static bool is_number(const ing_lanes *l, uint32_t id, uint64_t v) {
    return at(l, id)->op == ING_OP_CONST && ing_ir_const_bits(at(l, id)) == v;
}

/* (end - 1) - index, of a loop from 0 on? */
static bool is_mirror(const ing_lanes *l, uint32_t loop, uint32_t id) {
    const ing_ir_inst *k = at(l, loop), *i = at(l, id);
    if (i->op != ING_OP_SUB || i->b != loop) return false;
    const ing_ir_inst *last = at(l, i->a);
    return last->op == ING_OP_SUB && last->a == k->b && is_number(l, last->b, 1) &&
           is_number(l, k->a, 0);
}

bool ing_lanes_level_loop(ing_lanes *l, uint32_t loop) {
    const ing_ir_inst *k = at(l, loop);
    uint32_t n = ing_ir_block_len(l->f, k->c);
    const uint32_t *ids = ing_ir_block_ids(l->f, k->c);
    if (ing_lanes_varies(l, k->a)) return false;
    bool ragged = ing_lanes_varies(l, k->b), mirrors = false;
    for (uint32_t j = 0; ragged && j < n; j++) mirrors |= is_mirror(l, loop, ids[j]);
    if (ragged) l->role[loop] |= mirrors ? ING_LANES_END : ING_LANES_BEGIN;
    if (!mirrors) l->role[loop] |= ING_LANES_EVEN; /* its index */
    for (uint32_t j = 0; j < n; j++) {
        if (mirrors && is_mirror(l, loop, ids[j]))
            l->role[ids[j]] |= ING_LANES_MIRROR | ING_LANES_EVEN;
        ing_lanes_find_even(l, ids[j]);
    }
    return true;
}

/* Locals are written as masks tell; columns that are not in their turn have their own places in stacks. */
bool ing_lanes_ragged_ok(const ing_lanes *l, uint32_t id) {
    const ing_ir_inst *i = at(l, id);
    bool access =
        i->op == ING_OP_LOAD || i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC;
    uint32_t to = access ? at(l, i->a)->op : 0;
    bool own = to == ING_OP_ALLOCA && ing_ir_inside(&l->scan, i->a, l->loop);
    switch (i->op) {
    case ING_OP_LOAD: return own || to == ING_OP_SCRATCH || !ing_lanes_varies(l, i->a);
    case ING_OP_STORE: return own || to == ING_OP_SCRATCH;
    case ING_OP_ATOMIC:
        return l->role[id] & ING_LANES_SUM ||
               (own && !l->scan.used[id] && i->c <= ING_IR_ATOMIC_MAX);
    default: return true;
    }
}

/* ---- LANES8 ---------------------------------------------------------------------------------- */

/* Uses stand after what they use: from the last instruction on. */
void ing_lanes_find_stacks(ing_lanes *l) {
    for (uint32_t id = l->f->insts.len; id-- > 1;) {
        const ing_ir_inst *i = at(l, id);
        bool serves = i->op == ING_OP_ROOM || i->op == ING_OP_SCRATCH ||
                      (i->op == ING_OP_ADD && !l->other[id]);
        ing_ir_uses u;
        ing_ir_inst_uses(l->f, i, &u);
        for (uint32_t k = 0; !serves && k < u.n_fixed + u.n_list; k++)
            l->other[k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed]] = 1;
    }
}

bool ing_lanes_level_room(ing_lanes *l, uint32_t room) {
    uint32_t end = at(l, room)->a;
    if (!ing_lanes_varies(l, end)) return true;
    if (!ing_lanes_pure(at(l, end)) || l->other[end]) return false;
    l->role[room] |= ING_LANES_LEVEL;
    l->role[end] |= ING_LANES_LEVEL | ING_LANES_EVEN;
    l->needed[end] = 1; /* what makes it is */
    return true;
}
