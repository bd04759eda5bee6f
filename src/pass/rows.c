/* Rows: a loop over several axes runs over one flat index, so that any piece of it can be
 * handed to a thread, and takes the innermost index by remainder. No compiler turns that
 * back into a loop it can vectorise. This pass does: the flat piece [begin, end) becomes
 * rows, and within each row the innermost index runs by itself:
 *
 *   loop parallel i = begin, end            loop row = begin / W, (end - 1) / W + 1
 *     r = div i, W                   =>       loop parallel c = max(begin, row * W) - row * W,
 *     c = rem i, W                                              min(end, row * W + W) - row * W
 *     body(r, c)                                body(row, c)
 *
 * Last in the list, because costs are counted per iteration of the flat loop. Applies to
 * range tasks from 0 whose index is used by such a pair alone; random numbers are drawn per
 * flat iteration, so tasks that draw any are left alone. */
#include "pass/pass_int.h"

typedef struct rows {
    ing_ir_mod *m;
    ing_ir_func *f;
    uint32_t loop;  /* the parallel loop */
    uint32_t width; /* W: a value of the outermost block */
} rows;

static ing_ir_inst *at(const rows *r, uint32_t id) {
    return &r->f->insts.at[id];
}

static bool is_part(const rows *r, uint32_t id) {
    const ing_ir_inst *i = at(r, id);
    return (i->op == ING_OP_DIV || i->op == ING_OP_REM) && i->a == r->loop &&
           i->b == r->width;
}

static bool in_block(const ing_ir_func *f, uint32_t block, uint32_t id) {
    for (uint32_t k = 0; k < f->extra.at[block]; k++)
        if (f->extra.at[block + 1 + k] == id) return true;
    return false;
}

/* Calls `edit` on each value operand of each instruction. */
static void each_use(const rows *r,
                     bool (*edit)(const rows *, uint32_t user, uint32_t *use),
                     bool *all) {
    for (uint32_t id = 1; id < r->f->insts.len; id++) {
        ing_ir_inst *i = at(r, id);
        if (i->op == ING_OP_NONE) continue;
        const char *kinds = ing_op_get((ing_op)i->op)->operands;
        uint32_t *fields[3] = {&i->a, &i->b, &i->c};
        for (int k = 0; k < 3 && kinds[k]; k++) {
            if (kinds[k] == 'v' && *fields[k]) *all = edit(r, id, fields[k]) && *all;
            if (kinds[k] != 'x') continue;
            for (uint32_t j = 0; j < i->c; j++)
                *all = edit(r, id, &r->f->extra.at[i->b + j]) && *all;
            break;
        }
    }
}

static bool only_in_pair(const rows *r, uint32_t user, uint32_t *use) {
    return *use != r->loop || is_part(r, user);
}

/* Finds the loop and its width. False: the task is not of this form. */
static bool find(rows *r) {
    const ing_ir_func *f = r->f;
    r->loop = r->width = 0;
    for (uint32_t k = 0; k < f->extra.at[f->body]; k++) {
        uint32_t id = f->extra.at[f->body + 1 + k];
        if (at(r, id)->op == ING_OP_LOOP && (at(r, id)->flags & ING_IR_PARALLEL))
            r->loop = id;
    }
    if (!r->loop) return false;
    uint32_t body = at(r, r->loop)->c;
    for (uint32_t k = 0; k < f->extra.at[body]; k++) {
        const ing_ir_inst *i = at(r, f->extra.at[body + 1 + k]);
        if (i->op == ING_OP_REM && i->a == r->loop) r->width = i->b;
    }
    if (!r->width || !in_block(f, f->body, r->width)) return false;
    bool all = true;
    each_use(r, only_in_pair, &all);
    return all;
}

static bool draws_random(const ing_ir_mod *m) {
    for (uint32_t k = 0; k < m->funcs.len; k++)
        for (uint32_t i = 1; i < m->funcs.at[k]->insts.len; i++)
            if (m->funcs.at[k]->insts.at[i].op == ING_OP_RANDOM) return true;
    return false;
}

/* ---- rewriting -------------------------------------------------------------------------- */

/* The innermost index is the loop itself now; the rest of the flat index is the row,
 * which the loop's own `b` holds while uses are replaced. */
static bool replace(const rows *r, uint32_t user, uint32_t *use) {
    (void)user;
    const ing_ir_inst *i = at(r, *use);
    if (is_part(r, *use)) *use = i->op == ING_OP_REM ? r->loop : at(r, r->loop)->b;
    return true;
}

static uint32_t add(ing_ir_builder *b, ing_op op, ing_type t, uint32_t x, uint32_t y) {
    uint32_t id = ing_ir_emit(b, op, t, x, y, 0);
    if (id && (op == ING_OP_ADD || op == ING_OP_SUB || op == ING_OP_MUL))
        b->func->insts.at[id].flags |= ING_IR_NSW;
    return id;
}

/* Appends an existing instruction to the open block. */
static void keep(ing_ir_builder *b, uint32_t id) {
    if (!ing_vec_push(&b->open, id)) b->mod->arena.failed = true;
}

/* The body without the pair, as a new block. */
static uint32_t body_without_pair(const rows *r, ing_ir_builder *b, uint32_t body) {
    uint32_t n = r->f->extra.at[body];
    ing_ir_block_begin(b);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t id = r->f->extra.at[body + 1 + k];
        if (!is_part(r, id)) keep(b, id);
    }
    return ing_ir_block_end(b);
}

/* The loop over rows, in place of the flat one. */
static void wrap(const rows *r, ing_ir_builder *b) {
    ing_ir_inst old = *at(r, r->loop);
    ing_type t = old.type;
    uint32_t begin = old.a, end = old.b, w = r->width, body = old.c;
    uint32_t one = ing_ir_const_int(b, (ing_dtype)t, 1);
    uint32_t first = add(b, ING_OP_DIV, t, begin, w);
    uint32_t before = add(b, ING_OP_SUB, t, end, one);
    uint32_t last = add(b, ING_OP_ADD, t, add(b, ING_OP_DIV, t, before, w), one);
    uint32_t row = ing_ir_loop_reserve(b, t);
    body = body_without_pair(r, b, body);
    at(r, r->loop)->b = row; /* for replace */
    bool all = true;
    each_use(r, replace, &all);
    ing_ir_block_begin(b);
    uint32_t base = add(b, ING_OP_MUL, t, row, w);
    uint32_t low = add(b, ING_OP_SUB, t, add(b, ING_OP_MAX, t, begin, base), base);
    uint32_t top = add(b, ING_OP_ADD, t, base, w);
    uint32_t high = add(b, ING_OP_SUB, t, add(b, ING_OP_MIN, t, end, top), base);
    ing_ir_inst *loop = at(r, r->loop);
    loop->a = low;
    loop->b = high;
    loop->c = body;
    keep(b, r->loop);
    ing_ir_loop_finish(b, row, first, last, ing_ir_block_end(b), 0);
}

static void rewrite(const rows *r) {
    ing_ir_func *f = r->f;
    uint32_t old = f->body, n = f->extra.at[old];
    ing_ir_builder b;
    uint32_t number = 0;
    while (r->m->funcs.at[number] != f) number++;
    ing_ir_builder_init(&b, r->m, number);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t id = f->extra.at[old + 1 + k];
        if (id == r->loop)
            wrap(r, &b);
        else
            keep(&b, id);
    }
    ing_ir_builder_done(&b);
}

ing_status ing_pass_rows(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    if (draws_random(m)) return ING_OK;
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        bool from_zero = t->begin.at == ING_IR_BOUND_CONST && t->begin.value == 0;
        rows r = {.m = m, .f = m->funcs.at[t->func]};
        if (t->kind != ING_IR_TASK_RANGE || !from_zero || !find(&r)) continue;
        rewrite(&r);
    }
    return ing_pass_done(m, e);
}
