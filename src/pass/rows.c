/* Rows: a loop over several axes runs over one flat index, so that any piece of it can be
 * handed to a thread, and takes the indices out by division. No compiler turns that back
 * into a loop it can vectorise. This pass does: the flat piece [begin, end) becomes rows,
 * and within each row the innermost index runs by itself:
 *
 *   loop parallel i = begin, end            loop row = begin / W, (end - 1) / W + 1
 *     r = div i, W                   =>       loop parallel c = max(begin, row * W) - row * W,
 *     c = rem i, W                                              min(end, row * W + W) - row * W
 *     body(r, c)                                body(row, c)
 *
 * and the same again for r as long as it is itself only taken apart: one loop per axis, and
 * no division in any of them.
 *
 * Last in the list, because costs are counted per iteration of the flat loop. Applies to
 * range tasks from 0 over an i64, which only the front end makes; random numbers are drawn
 * per flat iteration, so tasks that draw any are left alone.
 *
 * An index that is used as i32 only, of an extent that was one, runs in i32: there its
 * neighbours are neighbours in memory without any proof that nothing wrapped. So does one that
 * begins elsewhere, cast axis (add rem, begin): the loop then runs over the index itself. */
#include "pass/pass_int.h"

typedef struct level { /* from the inside out */
    uint32_t width;    /* W: a value of the outermost block */
    uint32_t div, rem; /* the pair, one of them may be absent */
    bool narrow;
    uint32_t sum, from;   /* narrow by way of rem + from, 0 = directly */
    uint32_t first, last; /* the range of what the pair takes apart */
    uint32_t loop;        /* over the remainder */
} level;

typedef struct rows {
    ing_ir_mod *m;
    ing_ir_func *f;
    uint32_t loop;      /* the parallel loop */
    uint32_t body;      /* its block */
    uint32_t *uses;     /* of each value, how many */
    uint32_t *instead;  /* what is used in the place of each, 0 = itself */
    uint8_t *outermost; /* stands in the outermost block */
    uint32_t n;
    level at[ING_MAX_NDIM];
} rows;

static ing_ir_inst *at(const rows *r, uint32_t id) {
    return &r->f->insts.at[id];
}

/* ---- what there is ----------------------------------------------------------------------- */

static void count_uses(const rows *r) {
    for (uint32_t id = 1; id < r->f->insts.len; id++) {
        ing_ir_uses u;
        ing_ir_inst_uses(r->f, at(r, id), &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) r->uses[u.fixed[k]]++;
        for (uint32_t k = 0; k < u.n_list; k++) r->uses[u.list[k]]++;
    }
}

static bool find_loop(rows *r) {
    const uint32_t *ids = ing_ir_block_ids(r->f, r->f->body);
    for (uint32_t k = 0; k < ing_ir_block_len(r->f, r->f->body); k++) {
        const ing_ir_inst *i = at(r, ids[k]);
        r->outermost[ids[k]] = 1;
        if (i->op == ING_OP_LOOP && (i->flags & ING_IR_PARALLEL)) r->loop = ids[k];
    }
    if (!r->loop || at(r, r->loop)->type != ING_I64) return false;
    r->body = at(r, r->loop)->c;
    return true;
}

static bool is_narrowing(const rows *r, uint32_t id, uint32_t of) {
    const ing_ir_inst *i = at(r, id);
    return i->op == ING_OP_CAST && i->type == ING_I32 && i->a == of &&
           i->flags & ING_IR_AXIS;
}

static bool fits_i32(const rows *r, uint32_t width) {
    const ing_ir_inst *i = at(r, width);
    if (i->op == ING_OP_CONST) return ing_ir_const_bits(i) <= INT32_MAX;
    return i->op == ING_OP_CAST && at(r, i->a)->type == ING_I32;
}

static bool all_narrow(const rows *r, uint32_t value) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < ing_ir_block_len(r->f, r->body); k++)
        n += is_narrowing(r, ing_ir_block_ids(r->f, r->body)[k], value);
    return n == r->uses[value];
}

/* The sum of the remainder and where the axis begins, if all that uses it is an i32. */
static void find_sum(const rows *r, level *l) {
    for (uint32_t k = 0; k < ing_ir_block_len(r->f, r->body); k++) {
        uint32_t id = ing_ir_block_ids(r->f, r->body)[k];
        const ing_ir_inst *i = at(r, id);
        if (i->op != ING_OP_ADD || i->a != l->rem || !r->outermost[i->b]) continue;
        if (r->uses[l->rem] != 1 || !all_narrow(r, id)) return;
        l->sum = id;
        l->from = i->b;
    }
}

/* The pair that takes value v apart, if nothing else uses v. */
static bool find_level(rows *r, uint32_t v) {
    level l = {0};
    for (uint32_t k = 0; k < ing_ir_block_len(r->f, r->body); k++) {
        uint32_t id = ing_ir_block_ids(r->f, r->body)[k];
        const ing_ir_inst *i = at(r, id);
        if ((i->op != ING_OP_DIV && i->op != ING_OP_REM) || i->a != v ||
            !(i->flags & ING_IR_AXIS))
            continue;
        if (l.width && l.width != i->b) return false;
        l.width = i->b;
        *(i->op == ING_OP_DIV ? &l.div : &l.rem) = id;
    }
    uint32_t users = (l.div != 0) + (l.rem != 0);
    if (!l.width || !r->outermost[l.width] || r->uses[v] != users) return false;
    l.narrow = l.rem && all_narrow(r, l.rem) && fits_i32(r, l.width);
    if (l.rem && !l.narrow) find_sum(r, &l);
    l.narrow |= l.sum != 0;
    r->at[r->n++] = l;
    return true;
}

static bool find(rows *r) {
    if (!find_loop(r)) return false;
    count_uses(r);
    uint32_t v = r->loop;
    while (r->n < ING_MAX_NDIM && v && find_level(r, v)) v = r->at[r->n - 1].div;
    return r->n > 0;
}

static bool draws_random(const ing_ir_mod *m) {
    for (uint32_t k = 0; k < m->funcs.len; k++)
        for (uint32_t i = 1; i < m->funcs.at[k]->insts.len; i++)
            if (m->funcs.at[k]->insts.at[i].op == ING_OP_RANDOM) return true;
    return false;
}

/* ---- rewriting -------------------------------------------------------------------------- */

static uint32_t add(ing_ir_builder *b, ing_op op, uint32_t x, uint32_t y) {
    uint32_t id = ing_ir_emit(b, op, ING_I64, x, y, 0);
    if (id && (op == ING_OP_ADD || op == ING_OP_SUB || op == ING_OP_MUL))
        b->func->insts.at[id].flags |= ING_IR_NSW;
    return id;
}

/* Appends an existing instruction to the open block. */
static void keep(ing_ir_builder *b, uint32_t id) {
    if (!ing_vec_push(&b->open, id)) b->mod->arena.failed = true;
}

/* The ranges of all levels, and the loops by which the pairs are replaced. Returns the loop
 * over the outermost index. */
static uint32_t plan_loops(rows *r, ing_ir_builder *b) {
    uint32_t one = ing_ir_const_int(b, ING_I64, 1);
    uint32_t first = at(r, r->loop)->a, last = at(r, r->loop)->b;
    for (uint32_t k = 0; k < r->n; k++) {
        level *l = &r->at[k];
        l->first = first;
        l->last = last;
        l->loop =
            k == 0 ? r->loop : ing_ir_loop_reserve(b, l->narrow ? ING_I32 : ING_I64);
        first = add(b, ING_OP_DIV, first, l->width);
        uint32_t before = add(b, ING_OP_SUB, last, one);
        last = add(b, ING_OP_ADD, add(b, ING_OP_DIV, before, l->width), one);
    }
    if (r->at[0].narrow) at(r, r->loop)->type = ING_I32;
    uint32_t outer = ing_ir_loop_reserve(b, ING_I64);
    at(r, outer)->a = first;
    at(r, outer)->b = last;
    return outer;
}

/* What leaves the body, and what its users get. */
static void plan_uses(const rows *r, uint32_t outer) {
    for (uint32_t k = 0; k < r->n; k++) {
        const level *l = &r->at[k];
        if (l->div) r->instead[l->div] = outer; /* of inner levels: nobody's */
        if (l->rem) r->instead[l->rem] = l->loop;
        if (l->sum) r->instead[l->sum] = l->loop;
        uint32_t index = l->sum ? l->sum : l->rem;
        for (uint32_t j = 0; j < ing_ir_block_len(r->f, r->body) && l->narrow; j++) {
            uint32_t id = ing_ir_block_ids(r->f, r->body)[j];
            if (is_narrowing(r, id, index)) r->instead[id] = l->loop;
        }
    }
}

static void replace_uses(const rows *r) {
    for (uint32_t id = 1; id < r->f->insts.len; id++) {
        ing_ir_inst *i = at(r, id);
        if (i->op == ING_OP_NONE) continue;
        const char *kinds = ing_op_get((ing_op)i->op)->operands;
        uint32_t *fields[3] = {&i->a, &i->b, &i->c};
        for (int k = 0; k < 3 && kinds[k]; k++) {
            if (kinds[k] == 'v' && r->instead[*fields[k]])
                *fields[k] = r->instead[*fields[k]];
            if (kinds[k] != 'x') continue;
            for (uint32_t j = 0; j < i->c; j++) {
                uint32_t *use = &r->f->extra.at[i->b + j];
                if (r->instead[*use]) *use = r->instead[*use];
            }
            break;
        }
    }
}

/* The body without the pairs, as a new block. */
static uint32_t rest_of_body(const rows *r, ing_ir_builder *b) {
    ing_ir_block_begin(b);
    for (uint32_t k = 0; k < ing_ir_block_len(r->f, r->body); k++) {
        uint32_t id = ing_ir_block_ids(r->f, r->body)[k];
        if (!r->instead[id]) keep(b, id);
    }
    return ing_ir_block_end(b);
}

/* Range of level l within row `row`, into the loop's bounds; returns where the row begins. */
static uint32_t put_range(const rows *r, ing_ir_builder *b, const level *l,
                          uint32_t row) {
    uint32_t base = add(b, ING_OP_MUL, row, l->width);
    uint32_t low = add(b, ING_OP_SUB, add(b, ING_OP_MAX, l->first, base), base);
    uint32_t top = add(b, ING_OP_ADD, base, l->width);
    uint32_t high = add(b, ING_OP_SUB, add(b, ING_OP_MIN, l->last, top), base);
    if (l->sum) {
        low = add(b, ING_OP_ADD, low, l->from);
        high = add(b, ING_OP_ADD, high, l->from);
    }
    if (l->narrow) {
        low = ing_ir_emit(b, ING_OP_CAST, ING_I32, low, 0, 0);
        high = ing_ir_emit(b, ING_OP_CAST, ING_I32, high, 0, 0);
    }
    at(r, l->loop)->a = low;
    at(r, l->loop)->b = high;
    return base;
}

/* The nest, in place of the flat loop. */
static void wrap(rows *r, ing_ir_builder *b) {
    uint32_t outer = plan_loops(r, b), row = outer;
    plan_uses(r, outer);
    uint32_t body = rest_of_body(r, b);
    replace_uses(r);
    ing_ir_block_begin(b);
    for (uint32_t k = r->n; k-- > 0;) {
        const level *l = &r->at[k];
        uint32_t base = put_range(r, b, l, row);
        if (k == 0) break;
        ing_ir_block_begin(b);
        row = l->loop;
        if (l->narrow) row = ing_ir_emit(b, ING_OP_CAST, ING_I64, row, 0, 0);
        if (l->sum) row = add(b, ING_OP_SUB, row, l->from);
        row = add(b, ING_OP_ADD, base, row);
    }
    at(r, r->loop)->c = body;
    keep(b, r->loop);
    for (uint32_t k = 1; k <= r->n; k++) {
        uint32_t loop = k < r->n ? r->at[k].loop : outer;
        const ing_ir_inst *i = at(r, loop);
        ing_ir_loop_finish(b, loop, i->a, i->b, ing_ir_block_end(b), 0);
    }
}

static void rewrite(rows *r, uint32_t func) {
    ing_ir_func *f = r->f;
    uint32_t old = f->body, n = f->extra.at[old];
    ing_ir_builder b;
    ing_ir_builder_init(&b, r->m, func);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t id = f->extra.at[old + 1 + k];
        if (id == r->loop)
            wrap(r, &b);
        else
            keep(&b, id);
    }
    ing_ir_builder_done(&b);
}

static bool run_task(ing_ir_mod *m, uint32_t func) {
    rows r = {.m = m, .f = m->funcs.at[func]};
    /* The nest takes some instructions per level; their uses are as they should be. */
    size_t n = r.f->insts.len + 24u * (ING_MAX_NDIM + 1);
    r.uses = ing_calloc(n, sizeof *r.uses);
    r.instead = ing_calloc(n, sizeof *r.instead);
    r.outermost = ing_calloc(n, sizeof *r.outermost);
    bool ok = r.uses && r.instead && r.outermost;
    if (ok && find(&r)) rewrite(&r, func);
    ing_free(r.uses);
    ing_free(r.instead);
    ing_free(r.outermost);
    return ok;
}

ing_status ing_pass_rows(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    if (draws_random(m)) return ING_OK;
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        bool from_zero = t->begin.at == ING_IR_BOUND_CONST && t->begin.value == 0;
        if (t->kind != ING_IR_TASK_RANGE || !from_zero) continue;
        if (!run_task(m, t->func))
            return ing_fail(e, ING_MEMORY, "no memory for a pass");
    }
    return ing_pass_done(m, e);
}
