/* Atomics that need not be: they become plain updates (ING_IR_PRIVATE), which LLVM can keep in
 * registers and vectorise. Runs after the split, while the flat index is still whole.
 * Rules
 *  D1 a serial task runs alone: all its atomics are plain.
 *  D2 in a parallel loop an update is plain when its subscript tells the iteration: the loop's
 *     index, or all the axes (AXIS) into which quotients and remainders cut it, each plus or
 *     minus what is the same in every iteration; and every other write to that array in the loop has
 *     the very same subscript.
 *  D3 other arrays that are updated atomically there are assumed to share no memory with it
 *     (apart.c): they might overlap it at an offset.
 *  D4 no call is given the array, and no func names it. */
#include "pass/pass_int.h"

typedef struct writes { /* to one array argument, in the parallel loop of one task */
    uint32_t task;      /* its number + 1; others: nothing known yet */
    uint32_t elem;      /* the subscript of the first one */
    bool differ;  /* some other subscript is written, or a call is given the array */
    bool judged;  /* D3 was asked ... */
    bool granted; /* ... and what it said */
} writes;

enum { MAX_ATOMIC = 16 }; /* arrays that a loop updates atomically, for D3 */

typedef struct demoter {
    ing_ir_mod *m;
    ing_ir_func *f;
    uint32_t task;         /* number + 1 */
    const uint8_t *inside; /* per instruction: in the parallel loop, at any depth */
    const ing_pass_options *o;
    const ing_pass_funcs *funcs;
    writes *arrays;                        /* per argument */
    uint32_t n_atomic, atomic[MAX_ATOMIC]; /* arguments that are updated atomically */
    bool many;                             /* too many for D3 */
    bool calls;
    /* whole[0] is the loop's index, whole[k + 1] the quotient and rem[k] the remainder
     * into which the body cuts whole[k]. */
    uint32_t n_parts, whole[ING_MAX_NDIM + 1], rem[ING_MAX_NDIM];
} demoter;

static ing_ir_inst *at(const demoter *d, uint32_t id) {
    return &d->f->insts.at[id];
}

/* ---- subscripts --------------------------------------------------------------------------- */

static bool same_everywhere(const demoter *d, uint32_t id) {
    return !d->inside[id] || at(d, id)->op == ING_OP_CONST;
}

/* Does the cast keep different integers different? Where it narrows, only that of the index
 * of an axis does: a loop may be longer. */
static bool keeps_apart(const demoter *d, const ing_ir_inst *cast) {
    const ing_ir_inst *of = at(d, cast->a);
    ing_dtype from = (ing_dtype)of->type, to = (ing_dtype)cast->type;
    if (!ing_dtype_is_int(from) || !ing_dtype_is_int(to)) return false;
    return ing_dtype_bits(to) >= ing_dtype_bits(from) || cast->flags & ING_IR_AXIS;
}

/* The index without what is added to it. */
static uint32_t bare(const demoter *d, uint32_t id) {
    for (uint32_t steps = 0; steps < 8; steps++) {
        const ing_ir_inst *i = at(d, id);
        bool sum = i->op == ING_OP_ADD || i->op == ING_OP_SUB;
        if (i->op == ING_OP_CAST && keeps_apart(d, i))
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
    uint32_t body = at(d, d->whole[0])->c;
    for (uint32_t k = 0; k < ing_ir_block_len(d->f, body); k++) {
        uint32_t id = ing_ir_block_ids(d->f, body)[k];
        const ing_ir_inst *i = at(d, id);
        bool axis = i->flags & ING_IR_AXIS;
        if (axis && i->op == op && i->a == whole && (!width || i->b == width))
            return id;
    }
    return 0;
}

static void find_parts(demoter *d) {
    for (d->n_parts = 0; d->n_parts < ING_MAX_NDIM; d->n_parts++) {
        uint32_t k = d->n_parts, rem = part_of(d, d->whole[k], ING_OP_REM, 0);
        if (!rem || !same_everywhere(d, at(d, rem)->b)) return;
        d->rem[k] = rem;
        d->whole[k + 1] = part_of(d, d->whole[k], ING_OP_DIV, at(d, rem)->b);
        if (!d->whole[k + 1]) return;
    }
}

static bool tells_iteration(const demoter *d, const ing_ir_inst *elem) {
    for (uint32_t k = 0; k <= d->n_parts; k++) {
        if (among(d, elem, d->whole[k])) return true;
        if (k == d->n_parts || !among(d, elem, d->rem[k])) return false;
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

/* The ELEM that an address comes from, or 0. */
static uint32_t elem_of(const demoter *d, uint32_t ref) {
    while (at(d, ref)->op == ING_OP_MEMBER || at(d, ref)->op == ING_OP_MEMBER_DYN)
        ref = at(d, ref)->a;
    const ing_ir_inst *i = at(d, ref);
    return i->op == ING_OP_ELEM && at(d, i->a)->op == ING_OP_ARRAY ? ref : 0;
}

/* Memory of the launch itself, which no array shares. */
static bool is_own(const demoter *d, uint32_t ref) {
    const ing_ir_inst *i = at(d, ref);
    while (i->op == ING_OP_MEMBER || i->op == ING_OP_MEMBER_DYN) i = at(d, i->a);
    return i->op == ING_OP_ALLOCA || i->op == ING_OP_BUFFER;
}

static bool is_atomic(const ing_ir_inst *i) {
    return i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
}

static writes *writes_to(const demoter *d, uint32_t array) {
    writes *w = &d->arrays[at(d, array)->a];
    if (w->task != d->task) *w = (writes){.task = d->task};
    return w;
}

static void note_atomic(demoter *d, uint32_t array) {
    for (uint32_t k = 0; k < d->n_atomic; k++)
        if (d->atomic[k] == array) return;
    if (d->n_atomic == MAX_ATOMIC)
        d->many = true;
    else
        d->atomic[d->n_atomic++] = array;
}

static void note_write(demoter *d, const ing_ir_inst *i) {
    uint32_t elem = elem_of(d, i->a);
    if (elem) {
        uint32_t array = at(d, at(d, elem)->a)->a;
        writes *w = writes_to(d, at(d, elem)->a);
        if (!w->elem) w->elem = elem;
        w->differ |= !same_subscript(d, at(d, w->elem), at(d, elem));
        if (is_atomic(i)) note_atomic(d, array);
    } else if (is_atomic(i) && !is_own(d, i->a)) {
        d->many = true;
    }
}

static void note_call(demoter *d, const ing_ir_inst *i) {
    d->calls = true;
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = d->f->extra.at[i->b + k], elem = elem_of(d, arg);
        uint32_t root = elem ? at(d, elem)->a : arg;
        if (at(d, root)->op == ING_OP_ARRAY) writes_to(d, root)->differ = true;
    }
}

/* One walk over the loop tells what every array meets in it. */
static void note_block(demoter *d, uint8_t *inside, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(d->f, block); k++) {
        uint32_t id = ing_ir_block_ids(d->f, block)[k], blocks[2];
        const ing_ir_inst *i = at(d, id);
        uint32_t n = ing_ir_inst_blocks(i, blocks);
        inside[id] = 1;
        if (i->op == ING_OP_CALL) note_call(d, i);
        if (i->op == ING_OP_STORE || is_atomic(i)) note_write(d, i);
        for (uint32_t j = 0; j < n; j++) note_block(d, inside, blocks[j]);
    }
}

static bool apart(const demoter *d, uint32_t array) { /* D3 */
    if (d->many || !ing_pass_may_assume(d->m, d->o, d->n_atomic - 1)) return false;
    for (uint32_t k = 0; k < d->n_atomic; k++)
        if (d->atomic[k] != array) ing_pass_assume_apart(d->m, array, d->atomic[k]);
    return true;
}

static bool is_private(const demoter *d, uint32_t id) { /* D2 to D4 */
    uint32_t elem = elem_of(d, at(d, id)->a);
    if (!elem || !d->inside[id]) return false;
    uint32_t array = at(d, at(d, elem)->a)->a;
    writes *w = writes_to(d, at(d, elem)->a);
    if (w->differ || (d->calls && (d->funcs->atomic || d->funcs->named[array])))
        return false;
    if (!tells_iteration(d, at(d, elem))) return false;
    if (!w->judged) w->granted = apart(d, array);
    w->judged = true;
    return w->granted;
}

/* ---- the pass --------------------------------------------------------------------------------- */

static void run_serial(ing_ir_func *f) { /* D1 */
    for (uint32_t id = 1; id < f->insts.len; id++)
        if (is_atomic(&f->insts.at[id])) f->insts.at[id].flags |= ING_IR_PRIVATE;
}

static bool run_range(demoter *d) {
    uint32_t n = d->f->insts.len;
    uint8_t *inside = ing_calloc(n, 1);
    if (!inside) return false;
    d->inside = inside;
    for (uint32_t k = 0; k < ing_ir_block_len(d->f, d->f->body); k++) {
        uint32_t id = ing_ir_block_ids(d->f, d->f->body)[k];
        if (at(d, id)->op == ING_OP_LOOP && (at(d, id)->flags & ING_IR_PARALLEL))
            d->whole[0] = id;
    }
    if (d->whole[0]) {
        note_block(d, inside, at(d, d->whole[0])->c);
        find_parts(d);
    }
    for (uint32_t id = 1; d->n_atomic && id < n; id++)
        if (is_atomic(at(d, id)) && is_private(d, id))
            at(d, id)->flags |= ING_IR_PRIVATE;
    ing_free(inside);
    return true;
}

ing_status ing_pass_demote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs;
    writes *arrays = ing_calloc((size_t)m->args.len + 1, sizeof *arrays);
    bool ok = ing_pass_funcs_init(&funcs, m) && arrays;
    for (uint32_t k = 0; k < m->tasks.len && ok; k++) {
        demoter d = {.m = m, .task = k + 1, .o = o, .funcs = &funcs};
        d.arrays = arrays;
        d.f = m->funcs.at[m->tasks.at[k].func];
        if (m->tasks.at[k].kind == ING_IR_TASK_SERIAL)
            run_serial(d.f);
        else
            ok = run_range(&d);
    }
    ing_pass_funcs_fini(&funcs);
    ing_free(arrays);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
