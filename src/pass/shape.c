/* Shape: loops over several axes, as processors run them. Such a loop counts the places of AXES,
 * so that any piece of it can be handed to a thread, and AXIS would take each index out of the
 * number by division. No compiler makes a loop of that which it can vectorise. So the piece
 * [begin, end) of a task becomes one loop per axis, each over its own index:
 *
 *   loop parallel n = begin, end           loop row = begin / W, (end - 1) / W + 1
 *     r = axis n, 0                  =>       loop parallel c = max(begin, row * W) - row * W,
 *     c = axis n, 1                                             min(end, row * W + W) - row * W
 *     body(r, c)                                body(row, c)
 *
 * and the same again for r if it is not the outermost. The innermost loops run in the type of
 * their index: in an i32 one neighbours are neighbours in memory without any proof that nothing
 * wrapped. Axes that nobody asks for, outside of those that are, stay one loop. A short innermost
 * axis of constant length is never divided between pieces (row of the task), and its loop has
 * constant bounds: a transpose of tiles of 16 x 16 took 43 us, 18 with them (2**16 f32), a stencil on
 * rows of 46 f32 takes 26 instead of 34. Nor are the two innermost ones, where that lets turn.c turn tiles.
 *
 * Numbers of places stay what they are for whoever uses them: a loop that draws random numbers
 * (their stream is made of it) or whose number is used, and loops inside of others, divide.
 * After this pass there are no AXES. */
#include "pass/pass_int.h"

typedef struct level { /* a loop of the nest, from the inside out */
    uint32_t axis;
    ing_dtype type;
    uint32_t first, last; /* of the rows that it and those inside of it take apart */
    uint32_t loop;
} level;

typedef struct shaper {
    ing_ir_mod *m;
    ing_ir_builder b;
    ing_ir_func old;
    ing_ir_copy copy;
    uint32_t *widths; /* per AXES: where in `extents` */
    uint8_t *counted; /* per instruction: used by others than AXIS */
    ing_vec(uint32_t) extents;
    uint32_t loop, axes; /* what becomes a nest; 0 = none does */
    bool inside;         /* we are in its body */
    uint32_t outer;      /* index of its outermost loop */
    uint32_t n;
    level at[ING_MAX_NDIM];
    uint32_t
        whole; /* pieces consist of whole innermost rows of so many places; 0: of any */
    bool tiles; /* and those of whole tiles: the two innermost levels */
    /* The last quotient, where it stands in the open block: the number of `number` over the axes
     * from `axis` on. */
    uint32_t quotient, position, of, number, axis;
} shaper;

static const ing_ir_inst *at(const shaper *x, uint32_t id) {
    return ing_ir_at(&x->old, id);
}

/* ---- what becomes a nest ------------------------------------------------------------------ */

static uint32_t outermost_loop(const ing_ir_func *f, const uint8_t *counted) {
    for (uint32_t k = 0; k < ing_ir_block_len(f, f->body); k++) {
        uint32_t id = ing_ir_block_ids(f, f->body)[k];
        const ing_ir_inst *i = ing_ir_at(f, id);
        bool parallel = i->op == ING_OP_LOOP && (i->flags & ING_IR_PARALLEL);
        if (parallel) return counted[id] ? 0 : id;
    }
    return 0;
}

static bool is_outermost(const ing_ir_func *f, uint32_t id) {
    for (uint32_t k = 0; k < ing_ir_block_len(f, f->body); k++)
        if (ing_ir_block_ids(f, f->body)[k] == id) return true;
    return false;
}

/* Which axes are asked for, and in which types; the outermost of them. */
static bool find_axes(shaper *x, const ing_ir_func *f, bool *wide, bool *asked) {
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        if (i->op != ING_OP_AXIS || i->b != x->loop) continue;
        if (x->axes && x->axes != i->a) return false;
        x->axes = i->a;
        asked[i->c] = true;
        wide[i->c] |= i->type != ING_I32;
    }
    return x->axes && is_outermost(f, x->axes);
}

/* Rows that are not divided: those of tiles, and those whose work no two threads would share
 * anyhow (PIECE_MIN_UNITS of rt_int.h). In longer ones what is left after the vectors matters little:
 * 256 places are 32 of them. */
enum { MAX_TILE_ROW = 64, MAX_WHOLE = 256, MAX_WHOLE_COST = 8000 };

static bool is_power(uint64_t n) {
    return !(n & (n - 1));
}

/* The extent of a level; 0: it is unknown, 1, or above `most`. */
static uint32_t extent_of(const shaper *x, const ing_ir_func *f, const level *l,
                          uint64_t most) {
    int64_t begin, end;
    if (!ing_ir_axis_bounds(f, ing_ir_at(f, x->axes), l->axis, &begin, &end)) return 0;
    uint64_t n = end > begin ? (uint64_t)end - (uint64_t)begin : 0;
    return n > 1 && n <= most ? (uint32_t)n : 0;
}

/* Does the task go through a field across the rows of its tiles, which are to be turned (turn.c)? */
static bool goes_across(const shaper *x, const ing_ir_func *f) {
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *e = ing_ir_at(f, id);
        if (e->op != ING_OP_ELEM) continue;
        const ing_place *p = ing_ir_type(x->m, ing_ir_at(f, e->a)->type)->place;
        for (uint32_t k = 0; p && !p->elem_rank && k < p->n_levels; k++) {
            bool whole;
            uint32_t at = ing_pass_level_index(x->m, f, id, k, &whole);
            const ing_ir_inst *i = ing_ir_at(f, at);
            if (whole && p->level[k].stride == (int64_t)ing_place_elem_bytes(p) &&
                i->op == ING_OP_AXIS && i->b == x->loop && i->c == x->at[1].axis)
                return true;
        }
    }
    return false;
}

/* Updates may become partial results, which have chunks of their own (reduce.c). */
static void find_whole(shaper *x, const ing_ir_func *f, const ing_ir_task *t) {
    if (ing_ir_has_updates(f)) return;
    uint32_t n = extent_of(x, f, &x->at[0], MAX_WHOLE);
    bool light = !t->may_run_long && (uint64_t)n * t->cost <= MAX_WHOLE_COST;
    bool tile = n <= MAX_TILE_ROW && is_power(n);
    if (n && (light || tile)) x->whole = n;
    if (!x->whole || !tile || x->n < 2) return;
    uint32_t more = extent_of(x, f, &x->at[1], ING_PASS_MAX_TILE / n);
    if (!more || !is_power(more) || !goes_across(x, f)) return;
    x->tiles = true;
    x->whole = n * more;
}

static void find_nest(shaper *x, const ing_ir_func *f, const ing_ir_task *t) {
    bool wide[ING_MAX_NDIM] = {0}, asked[ING_MAX_NDIM] = {0};
    uint32_t top = 0;
    x->loop = outermost_loop(f, x->counted);
    if (x->loop && find_axes(x, f, wide, asked)) {
        const ing_ir_inst *axes = ing_ir_at(f, x->axes);
        while (!asked[top]) top++;
        for (uint32_t p = axes->c / 2; p-- > (top ? top : 1);) {
            bool narrow = asked[p] && !wide[p];
            if (!ing_ir_axis_is_one(f, axes, p))
                x->at[x->n++] = (level){.axis = p, .type = narrow ? ING_I32 : ING_I64};
        }
    }
    if (!x->n) x->loop = x->axes = 0;
    if (x->n) find_whole(x, f, t);
}

/* ---- small pieces --------------------------------------------------------------------------- */

static uint32_t op2(shaper *x, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit_count(&x->b, op, ING_I64, a, b);
}

static uint32_t cast(shaper *x, ing_type to, uint32_t id, ing_type from) {
    return from == to ? id : ing_ir_emit(&x->b, ING_OP_CAST, to, id, 0, 0);
}

static uint32_t begin_of(const shaper *x, uint32_t axes, uint32_t axis) {
    return x->copy.map[x->old.extra.at[at(x, axes)->b + 2 * axis]];
}

static uint32_t width_of(const shaper *x, uint32_t axes, uint32_t axis) {
    return x->extents.at[x->widths[axes] + axis];
}

static bool is_zero(const shaper *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->b.func, id);
    return i->op == ING_OP_CONST && ing_ir_const_bits(i) == 0;
}

/* The index, an i64, at an offset from where the axis begins. */
static uint32_t index_at(shaper *x, uint32_t axes, uint32_t axis, uint32_t offset) {
    uint32_t begin = begin_of(x, axes, axis);
    return is_zero(x, begin) ? offset : op2(x, ING_OP_ADD, offset, begin);
}

/* ---- AXES and AXIS ------------------------------------------------------------------------ */

/* Never negative, and LLVM sees that: it divides faster by such numbers. */
static uint32_t put_extent(shaper *x, uint32_t begin, uint32_t end) {
    uint64_t n;
    if (ing_ir_trips(x->b.func, begin, end, &n))
        return ing_ir_const_int(&x->b, ING_I64, (int64_t)n);
    uint32_t top = op2(x, ING_OP_MAX, end, begin);
    return is_zero(x, begin) ? top : op2(x, ING_OP_SUB, top, begin);
}

static void put_axes(shaper *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    uint32_t count = 0;
    x->widths[id] = x->extents.len;
    for (uint32_t k = 0; k < i->c / 2 && ing_ir_ok(x->m); k++) {
        uint32_t begin = begin_of(x, id, k);
        uint32_t end = x->copy.map[x->old.extra.at[i->b + 2 * k + 1]];
        bool needed = k || x->counted[id]; /* nobody divides by the outermost */
        uint32_t n = needed ? put_extent(x, begin, end) : 0;
        if (!ing_vec_push(&x->extents, n)) x->m->arena.failed = true;
        if (x->counted[id])
            count = count ? ing_ir_emit(&x->b, ING_OP_MUL, ING_I64, count, n, 0) : n;
    }
    x->copy.map[id] = count;
}

/* Is the last quotient one of these, and still to be used? */
static bool goes_on(const shaper *x, const ing_ir_inst *i) {
    const ing_ir_builder *b = &x->b;
    return x->quotient && x->of == i->a && x->number == i->b && x->axis > i->c &&
           x->position >= b->starts.at[b->starts.len - 1] &&
           x->position < b->open.len && b->open.at[x->position] == x->quotient;
}

static void divide(shaper *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    bool on = goes_on(x, i);
    uint32_t rest = on ? x->quotient : x->copy.map[i->b];
    for (uint32_t p = on ? x->axis : at(x, i->a)->c / 2; p-- > i->c + 1;) {
        if (ing_ir_axis_is_one(&x->old, at(x, i->a), p)) continue;
        rest = op2(x, ING_OP_DIV, rest, width_of(x, i->a, p));
        x->quotient = rest;
        x->position = x->b.open.len - 1;
        x->of = i->a;
        x->number = i->b;
        x->axis = p;
    }
    if (i->c) rest = op2(x, ING_OP_REM, rest, width_of(x, i->a, i->c));
    x->copy.map[id] = cast(x, i->type, index_at(x, i->a, i->c, rest), ING_I64);
}

static void put_axis(shaper *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (!x->inside || i->b != x->loop) {
        divide(x, id);
        return;
    }
    for (uint32_t k = 0; k < x->n; k++)
        if (x->at[k].axis == i->c)
            x->copy.map[id] = cast(x, i->type, x->at[k].loop, x->at[k].type);
    if (i->c == 0)
        x->copy.map[id] = cast(x, i->type, index_at(x, i->a, 0, x->outer), ING_I64);
    if (ing_ir_axis_is_one(&x->old, at(x, i->a), i->c))
        x->copy.map[id] = cast(x, i->type, begin_of(x, i->a, i->c), ING_I64);
}

/* ---- the nest ------------------------------------------------------------------------------- */

/* The rows of each level, from the inside out, then the range of the outermost loop. */
static void put_rows(shaper *x, uint32_t *first, uint32_t *last) {
    uint32_t one = ing_ir_const_int(&x->b, ING_I64, 1);
    for (uint32_t k = 0; k < x->n; k++) {
        level *l = &x->at[k];
        uint32_t width = width_of(x, x->axes, l->axis);
        l->first = *first;
        l->last = *last;
        *first = op2(x, ING_OP_DIV, *first, width);
        uint32_t before = op2(x, ING_OP_SUB, *last, one);
        *last = op2(x, ING_OP_ADD, op2(x, ING_OP_DIV, before, width), one);
    }
}

/* Level k and those inside of it, in row `row` of what is around. */
static void put_level(shaper *x, uint32_t k, uint32_t row) {
    level *l = &x->at[k];
    const ing_ir_inst *i = at(x, x->loop);
    uint32_t width = width_of(x, x->axes, l->axis),
             base = op2(x, ING_OP_MUL, row, width);
    uint32_t low = op2(x, ING_OP_SUB, op2(x, ING_OP_MAX, l->first, base), base);
    uint32_t top = op2(x, ING_OP_ADD, base, width);
    uint32_t high = op2(x, ING_OP_SUB, op2(x, ING_OP_MIN, l->last, top), base);
    if ((!k && x->whole) || (k == 1 && x->tiles)) {
        low = ing_ir_const_int(&x->b, ING_I64, 0);
        high = width;
    }
    low = cast(x, l->type, index_at(x, x->axes, l->axis, low), ING_I64);
    high = cast(x, l->type, index_at(x, x->axes, l->axis, high), ING_I64);
    l->loop = ing_ir_loop_reserve(&x->b, l->type);
    ing_ir_block_begin(&x->b);
    if (k) {
        uint32_t begin = begin_of(x, x->axes, l->axis);
        row = cast(x, ING_I64, l->loop, l->type);
        if (!is_zero(x, begin)) row = op2(x, ING_OP_SUB, row, begin);
        put_level(x, k - 1, op2(x, ING_OP_ADD, base, row));
    } else {
        ing_ir_copy_block(&x->copy, i->c);
    }
    ing_ir_loop_finish(&x->b, l->loop, low, high, ing_ir_block_end(&x->b),
                       k ? 0 : i->flags);
}

static void put_nest(shaper *x) {
    const ing_ir_inst *i = at(x, x->loop);
    uint32_t first = x->copy.map[i->a], last = x->copy.map[i->b];
    x->b.loc = i->loc;
    put_rows(x, &first, &last);
    x->outer = ing_ir_loop_reserve(&x->b, ING_I64);
    x->inside = true;
    ing_ir_block_begin(&x->b);
    put_level(x, x->n - 1, x->outer);
    ing_ir_loop_finish(&x->b, x->outer, first, last, ing_ir_block_end(&x->b), 0);
    x->inside = false;
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    shaper *x = c->self;
    switch (at(x, id)->op) {
    case ING_OP_AXES: put_axes(x, id); return true;
    case ING_OP_AXIS: put_axis(x, id); return true;
    case ING_OP_LOOP:
        if (id == x->loop) put_nest(x);
        return id == x->loop;
    default: return false;
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Marks what others than AXIS use; tells whether there are AXES. */
static bool count_uses(const ing_ir_func *f, uint8_t *counted) {
    bool any = false;
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        ing_ir_uses u;
        any |= i->op == ING_OP_AXES;
        if (i->op == ING_OP_AXIS) continue;
        ing_ir_inst_uses(f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) counted[u.fixed[k]] = 1;
        for (uint32_t k = 0; k < u.n_list; k++) counted[u.list[k]] = 1;
    }
    return any;
}

static ing_ir_task *task_of(ing_ir_mod *m, uint32_t func) {
    for (uint32_t k = 0; k < m->tasks.len; k++)
        if (m->tasks.at[k].func == func) return &m->tasks.at[k];
    return NULL;
}

/* task: whose loop may become a nest; NULL: none does. */
static bool run_func(ing_ir_mod *m, uint32_t func, ing_ir_task *task) {
    const ing_ir_func *f = m->funcs.at[func];
    shaper x = {.m = m};
    uint32_t n = f->insts.len;
    uint32_t *map = ing_calloc(n, sizeof *map);
    x.widths = ing_calloc(n, sizeof *x.widths);
    x.counted = ing_calloc(n, 1);
    bool ok = map && x.widths && x.counted;
    if (ok && count_uses(f, x.counted)) {
        if (task) find_nest(&x, f, task);
        ing_ir_rebuild_begin(&x.b, m, func, &x.old);
        x.copy = (ing_ir_copy){
            .b = &x.b, .from = &x.old, .map = map, .hook = hook, .self = &x};
        ing_ir_copy_block(&x.copy, x.old.body);
        ing_ir_rebuild_end(&x.b, &x.old);
        if (x.whole) task->row = x.whole;
    }
    ing_vec_fini(&x.extents);
    ing_free(map);
    ing_free(x.widths);
    ing_free(x.counted);
    return ok;
}

static bool draws_random(const ing_ir_mod *m) {
    for (uint32_t k = 0; k < m->funcs.len; k++)
        for (uint32_t i = 1; i < m->funcs.at[k]->insts.len; i++)
            if (m->funcs.at[k]->insts.at[i].op == ING_OP_RANDOM) return true;
    return false;
}

ing_status ing_pass_shape(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    bool random = draws_random(m);
    for (uint32_t k = 0; k < m->funcs.len && ing_ir_ok(m); k++) {
        bool nests = !random && m->funcs.at[k]->kind == ING_IR_TASK;
        if (!run_func(m, k, nests ? task_of(m, k) : NULL))
            return ing_fail(e, ING_MEMORY, "no memory for a pass");
    }
    return ing_pass_done(m, e);
}
