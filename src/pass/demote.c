/* Atomics that need not be: they become plain updates (ING_IR_PRIVATE), which LLVM can keep in
 * registers and vectorise. Runs after the split, while the flat index is still whole.
 * Rules
 *  D1 a serial task runs alone: all its atomics are plain.
 *  D2 in a parallel loop an update is plain when its subscript tells the iteration: the loop's
 *     index, or all the parts into which quotients and remainders cut it, each plus or minus
 *     what is the same in every iteration; and every other write to that array in the loop has
 *     the very same subscript.
 *  D3 no other array is updated atomically there: it might overlap this one at an offset.
 *  D4 no call is given the array, and no func names it. */
#include "pass/pass_int.h"

typedef struct demoter {
    ing_ir_mod *m;
    ing_ir_func *f;
    uint32_t loop;
    uint8_t *inside; /* per instruction: in the parallel loop, at any depth */
    bool calls;
} demoter;

static ing_ir_inst *at(const demoter *d, uint32_t id) {
    return &d->f->insts.at[id];
}

static void note_inside(demoter *d, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(d->f, block); k++) {
        uint32_t id = ing_ir_block_ids(d->f, block)[k], blocks[2];
        uint32_t n = ing_ir_inst_blocks(at(d, id), blocks);
        d->inside[id] = 1;
        d->calls |= at(d, id)->op == ING_OP_CALL;
        for (uint32_t j = 0; j < n; j++) note_inside(d, blocks[j]);
    }
}

/* ---- subscripts --------------------------------------------------------------------------- */

static bool same_everywhere(const demoter *d, uint32_t id) {
    return !d->inside[id] || at(d, id)->op == ING_OP_CONST;
}

/* The index without what is added to it. Indices are cast between widths that hold them. */
static uint32_t bare(const demoter *d, uint32_t id) {
    for (uint32_t steps = 0; steps < 8; steps++) {
        const ing_ir_inst *i = at(d, id);
        bool sum = i->op == ING_OP_ADD || i->op == ING_OP_SUB;
        if (i->op == ING_OP_CAST && ing_dtype_is_int((ing_dtype)at(d, i->a)->type))
            id = i->a;
        else if (sum && same_everywhere(d, i->b))
            id = i->a;
        else if (i->op == ING_OP_ADD && same_everywhere(d, i->a))
            id = i->b;
        else
            break;
    }
    return id;
}

static bool among(const demoter *d, const ing_ir_inst *elem, uint32_t id) {
    for (uint32_t k = 0; k < elem->c; k++)
        if (bare(d, d->f->extra.at[elem->b + k]) == id) return true;
    return false;
}

/* The part of `whole` that the operation makes of it with some width, 0 = none. */
static uint32_t part_of(const demoter *d, uint32_t whole, ing_op op, uint32_t width) {
    uint32_t body = at(d, d->loop)->c;
    for (uint32_t k = 0; k < ing_ir_block_len(d->f, body); k++) {
        uint32_t id = ing_ir_block_ids(d->f, body)[k];
        const ing_ir_inst *i = at(d, id);
        if (i->op == op && i->a == whole && (!width || i->b == width)) return id;
    }
    return 0;
}

static bool tells_iteration(const demoter *d, const ing_ir_inst *elem) {
    uint32_t whole = d->loop;
    for (uint32_t axes = 0; axes < ING_MAX_NDIM; axes++) {
        if (among(d, elem, whole)) return true;
        uint32_t rem = part_of(d, whole, ING_OP_REM, 0);
        if (!rem || !among(d, elem, rem) || !same_everywhere(d, at(d, rem)->b))
            return false;
        whole = part_of(d, whole, ING_OP_DIV, at(d, rem)->b);
        if (!whole) return false;
    }
    return false;
}

static bool same_subscript(const demoter *d, const ing_ir_inst *a,
                           const ing_ir_inst *b) {
    for (uint32_t k = 0; k < a->c; k++) {
        uint32_t x = d->f->extra.at[a->b + k], y = d->f->extra.at[b->b + k];
        const ing_ir_inst *i = at(d, x), *j = at(d, y);
        bool equal = i->op == ING_OP_CONST && j->op == ING_OP_CONST && i->a == j->a &&
                     i->b == j->b;
        if (x != y && !equal) return false;
    }
    return true;
}

/* ---- targets -------------------------------------------------------------------------------- */

/* The ELEM that an address comes from, or NULL. */
static const ing_ir_inst *elem_of(const demoter *d, uint32_t ref) {
    const ing_ir_inst *i = at(d, ref);
    while (i->op == ING_OP_MEMBER || i->op == ING_OP_MEMBER_DYN) i = at(d, i->a);
    return i->op == ING_OP_ELEM && at(d, i->a)->op == ING_OP_ARRAY ? i : NULL;
}

static bool is_local(const demoter *d, uint32_t ref) {
    const ing_ir_inst *i = at(d, ref);
    while (i->op == ING_OP_MEMBER || i->op == ING_OP_MEMBER_DYN) i = at(d, i->a);
    return i->op == ING_OP_ALLOCA;
}

/* Whether instruction `id` of the loop lets the updates at `elem` be plain (D2 to D4). */
static bool allows(const demoter *d, uint32_t id, const ing_ir_inst *elem) {
    const ing_ir_inst *i = at(d, id);
    uint32_t array = at(d, elem->a)->a;
    if (i->op == ING_OP_CALL) {
        for (uint32_t k = 0; k < i->c; k++) {
            uint32_t arg = d->f->extra.at[i->b + k];
            const ing_ir_inst *from = elem_of(d, arg);
            uint32_t root = from ? from->a : arg;
            if (at(d, root)->op == ING_OP_ARRAY && at(d, root)->a == array)
                return false;
        }
        return true;
    }
    bool atomic = i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
    if (!atomic && i->op != ING_OP_STORE) return true;
    const ing_ir_inst *to = elem_of(d, i->a);
    if (to && at(d, to->a)->a == array) return same_subscript(d, to, elem);
    return !atomic || is_local(d, i->a);
}

static bool named_by_func(const demoter *d, uint32_t array) {
    for (uint32_t k = 0; k < d->m->funcs.len && d->calls; k++) {
        const ing_ir_func *f = d->m->funcs.at[k];
        for (uint32_t j = 1; j < f->insts.len && f->kind == ING_IR_FUNC; j++) {
            const ing_ir_inst *i = ing_ir_at(f, j);
            if (i->op == ING_OP_ARRAY && i->a == array) return true;
            if (i->op == ING_OP_ATOMIC) return true; /* D3, by way of a parameter */
        }
    }
    return false;
}

static bool is_private(const demoter *d, uint32_t id) {
    const ing_ir_inst *elem = elem_of(d, at(d, id)->a);
    if (!elem || !d->inside[id] || !tells_iteration(d, elem)) return false;
    for (uint32_t j = 1; j < d->f->insts.len; j++)
        if (d->inside[j] && !allows(d, j, elem)) return false;
    return !named_by_func(d, at(d, elem->a)->a);
}

/* ---- the pass --------------------------------------------------------------------------------- */

static bool is_atomic(const ing_ir_inst *i) {
    return i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
}

static void run_serial(ing_ir_func *f) { /* D1 */
    for (uint32_t id = 1; id < f->insts.len; id++)
        if (is_atomic(&f->insts.at[id])) f->insts.at[id].flags |= ING_IR_PRIVATE;
}

static bool run_range(ing_ir_mod *m, ing_ir_func *f) {
    demoter d = {.m = m, .f = f, .inside = ing_calloc(f->insts.len, 1)};
    if (!d.inside) return false;
    for (uint32_t k = 0; k < ing_ir_block_len(f, f->body); k++) {
        uint32_t id = ing_ir_block_ids(f, f->body)[k];
        if (at(&d, id)->op == ING_OP_LOOP && (at(&d, id)->flags & ING_IR_PARALLEL))
            d.loop = id;
    }
    if (d.loop) note_inside(&d, at(&d, d.loop)->c);
    for (uint32_t id = 1; d.loop && id < f->insts.len; id++)
        if (is_atomic(at(&d, id)) && is_private(&d, id))
            at(&d, id)->flags |= ING_IR_PRIVATE;
    ing_free(d.inside);
    return true;
}

ing_status ing_pass_demote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        ing_ir_func *f = m->funcs.at[m->tasks.at[k].func];
        if (m->tasks.at[k].kind == ING_IR_TASK_SERIAL)
            run_serial(f);
        else if (!run_range(m, f))
            return ing_fail(e, ING_MEMORY, "no memory for a pass");
    }
    return ing_pass_done(m, e);
}
