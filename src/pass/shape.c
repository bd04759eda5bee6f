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
 * A serial loop over all places of AXES becomes loops too, one for each axis, in the same order. If an
 * axis inside of the outermost has no places, that runs over none: nobody counts to 10**9 for nothing.
 * A loop that looks at 512 x 150 places and finds something in few of them took 2.2 ms, two fifths of it
 * division; now 1.0.
 *
 * Numbers of places stay what they are for whoever uses them: a parallel loop that draws random numbers
 * (their stream is made of it), one whose number is used, and a serial one that is left by `break`, divide.
 * After this pass there are no AXES. */
#include "pass/pass_int.h"

enum {              /* a value that ... */
       COUNTED = 1, /* others than AXIS and loops that nest use */
       DIVIDED = 2, /* AXES: its extents are asked for */
};

typedef struct level { /* a loop of the nest, from the inside out */
    uint32_t axis;
    ing_dtype type;
    uint32_t first, last; /* of the rows that it and those inside of it take apart */
    uint32_t loop;
} level;

typedef struct serial {   /* a LOOP over AXES that is not the task's */
    uint16_t asked, wide; /* axes, a bit each: asked for, and as an i64 */
    bool nests;           /* it becomes a loop for each axis ... */
    uint32_t indices;     /* ... whose indices stand there in `extents`, 0: one place */
} serial;
_Static_assert(ING_MAX_NDIM <= 16, "a bit for each axis");

typedef struct shaper {
    ing_ir_mod *m;
    ing_ir_builder b;
    ing_ir_func old;
    ing_ir_copy copy;
    uint32_t *widths; /* per AXES: where in `extents` */
    uint8_t *counted; /* per instruction: COUNTED, DIVIDED */
    serial *serials;  /* per instruction */
    ing_vec(uint32_t) extents;
    uint32_t loop, axes; /* what becomes a nest; 0 = none does */
    bool inside;         /* we are in its body */
    uint32_t outer;      /* index of its outermost loop */
    uint32_t n;
    level at[ING_MAX_NDIM];
    /* pieces consist of whole innermost rows of so many places; 0: of any */
    uint32_t whole;
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
        if (parallel) return counted[id] & COUNTED ? 0 : id;
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
        /* nobody divides by the outermost */
        bool needed = x->counted[id] & (k ? COUNTED | DIVIDED : COUNTED);
        uint32_t n = needed ? put_extent(x, begin, end) : 0;
        if (!ing_vec_push(&x->extents, n)) x->m->arena.failed = true;
        if (x->counted[id] & COUNTED)
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

static void put_serial_axis(shaper *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    uint32_t index = x->extents.at[x->serials[i->b].indices + i->c];
    if (!index) index = begin_of(x, i->a, i->c);
    ing_type type = ing_ir_at(x->b.func, index)->type;
    x->copy.map[id] = cast(x, i->type, index, type);
}

static void put_axis(shaper *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (x->serials[i->b].nests) {
        put_serial_axis(x, id);
        return;
    }
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

/* ---- serial loops --------------------------------------------------------------------------- */

/* Does `break` leave the loop whose block this is? */
static bool is_left(const ing_ir_func *f, uint32_t block) {
    bool left = false;
    for (uint32_t k = 0; k < ing_ir_block_len(f, block) && !left; k++) {
        const ing_ir_inst *i = ing_ir_at(f, ing_ir_block_ids(f, block)[k]);
        uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
        left = i->op == ING_OP_BREAK;
        if (i->op == ING_OP_LOOP || i->op == ING_OP_WHILE) n = 0;
        for (uint32_t j = 0; j < n && !left; j++) left = is_left(f, blocks[j]);
    }
    return left;
}

static bool may_nest(const ing_ir_func *f, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    if (i->op != ING_OP_LOOP || i->flags & ING_IR_PARALLEL) return false;
    const ing_ir_inst *begin = ing_ir_at(f, i->a), *axes = ing_ir_at(f, i->b);
    if (axes->op != ING_OP_AXES || begin->op != ING_OP_CONST ||
        ing_ir_const_bits(begin) != 0)
        return false;
    bool one = true;
    for (uint32_t k = 0; k < axes->c / 2; k++) one &= ing_ir_axis_is_one(f, axes, k);
    return !one && !is_left(f, i->c);
}

/* Which serial loops become nests: those whose number only AXIS of their own AXES asks for. */
static void find_serials(const ing_ir_func *f, serial *all) {
    for (uint32_t id = 1; id < f->insts.len; id++) all[id].nests = may_nest(f, id);
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        ing_ir_uses u;
        if (i->op == ING_OP_AXIS && ing_ir_at(f, i->b)->op == ING_OP_LOOP &&
            ing_ir_at(f, i->b)->b == i->a) {
            all[i->b].asked |= (uint16_t)(1u << i->c);
            if (i->type != ING_I32) all[i->b].wide |= (uint16_t)(1u << i->c);
            continue;
        }
        ing_ir_inst_uses(f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) all[u.fixed[k]].nests = false;
        for (uint32_t k = 0; k < u.n_list; k++) all[u.list[k]].nests = false;
    }
}

/* An index that is asked for as an i32 alone is one, and its bounds are i32 that were cast. */
static ing_dtype serial_type(const shaper *x, uint32_t id, uint32_t axis) {
    const serial *s = &x->serials[id];
    int64_t begin, end;
    bool narrow = (s->asked & ~s->wide) >> axis & 1;
    if (ing_ir_axis_bounds(&x->old, at(x, at(x, id)->b), axis, &begin, &end))
        narrow &= begin >= INT32_MIN && end <= INT32_MAX;
    return narrow ? ING_I32 : ING_I64;
}

/* The end of the outermost loop: its beginning if an axis inside of it has no places. */
static uint32_t end_of_all(shaper *x, uint32_t axes, uint32_t first) {
    const ing_ir_inst *i = at(x, axes);
    uint32_t end = x->copy.map[x->old.extra.at[i->b + 2 * first + 1]];
    for (uint32_t k = first + 1; k < i->c / 2; k++) {
        uint32_t from = begin_of(x, axes, k), n = 0;
        uint32_t to = x->copy.map[x->old.extra.at[i->b + 2 * k + 1]];
        uint64_t trips;
        if (ing_ir_trips(x->b.func, from, to, &trips) && trips) continue;
        n = ing_ir_emit(&x->b, ING_OP_LT, ING_U1, from, to, 0);
        end = ing_ir_emit(&x->b, ING_OP_SELECT, ING_I64, n, end,
                          begin_of(x, axes, first));
    }
    return end;
}

/* The outermost axis of more places than one: there is one. */
static uint32_t first_axis(const shaper *x, uint32_t axes) {
    uint32_t k = 0;
    while (ing_ir_axis_is_one(&x->old, at(x, axes), k)) k++;
    return k;
}

/* The loop over axis k, with those inside of it. */
static void put_serial_level(shaper *x, uint32_t id, uint32_t k, uint32_t end) {
    const ing_ir_inst *i = at(x, id);
    uint32_t axes = i->b, n = at(x, axes)->c / 2;
    while (k < n && ing_ir_axis_is_one(&x->old, at(x, axes), k)) k++;
    if (k == n) {
        ing_ir_copy_block(&x->copy, i->c);
        return;
    }
    ing_dtype type = serial_type(x, id, k);
    uint32_t low = cast(x, type, begin_of(x, axes, k), ING_I64);
    if (!end) end = x->copy.map[x->old.extra.at[at(x, axes)->b + 2 * k + 1]];
    uint32_t high = cast(x, type, end, ING_I64);
    uint32_t loop = ing_ir_loop_reserve(&x->b, type);
    x->extents.at[x->serials[id].indices + k] = loop;
    ing_ir_block_begin(&x->b);
    put_serial_level(x, id, k + 1, 0);
    uint16_t flags = i->flags;
    if (k != first_axis(x, axes)) flags &= (uint16_t)~ING_IR_SERIAL;
    ing_ir_loop_finish(&x->b, loop, low, high, ing_ir_block_end(&x->b), flags);
}

static void put_serial(shaper *x, uint32_t id) {
    uint32_t axes = at(x, id)->b, n = at(x, axes)->c / 2, first = first_axis(x, axes);
    x->serials[id].indices = x->extents.len;
    for (uint32_t k = 0; k < n; k++)
        if (!ing_vec_push(&x->extents, 0)) x->m->arena.failed = true;
    if (x->m->arena.failed) return;
    x->b.loc = at(x, id)->loc;
    put_serial_level(x, id, first, end_of_all(x, axes, first));
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    shaper *x = c->self;
    switch (at(x, id)->op) {
    case ING_OP_AXES: put_axes(x, id); return true;
    case ING_OP_AXIS: put_axis(x, id); return true;
    case ING_OP_LOOP:
        if (id == x->loop) put_nest(x);
        if (x->serials[id].nests) put_serial(x, id);
        return id == x->loop || x->serials[id].nests;
    default: return false;
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Marks what others than AXIS and nests use, and AXES by which somebody divides; tells whether there
 * are any. */
static bool count_uses(const ing_ir_func *f, const serial *serials, uint8_t *counted) {
    bool any = false;
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        ing_ir_uses u;
        any |= i->op == ING_OP_AXES;
        if (i->op == ING_OP_AXIS && !serials[i->b].nests) counted[i->a] |= DIVIDED;
        if (i->op == ING_OP_AXIS || serials[id].nests) continue;
        ing_ir_inst_uses(f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) counted[u.fixed[k]] |= COUNTED;
        for (uint32_t k = 0; k < u.n_list; k++) counted[u.list[k]] |= COUNTED;
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
    x.serials = ing_calloc(n, sizeof *x.serials);
    bool ok = map && x.widths && x.counted && x.serials;
    if (ok) find_serials(f, x.serials);
    if (ok && count_uses(f, x.serials, x.counted)) {
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
    ing_free(x.serials);
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
