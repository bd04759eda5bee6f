/* Writes the loops over blocks, serial iterations and lanes. Called by lanes.c, decides
 * nothing; lanes.h draws the result. */
#include "pass/lanes.h"

typedef struct emitter {
    ing_lanes *l;
    ing_ir_builder b;
    ing_ir_func old;
    ing_ir_copy copy;
    uint32_t *arrays; /* by instruction: of the lanes of a local or of a kept value */
    uint32_t lane;    /* index, in a loop over lanes; 0 = elsewhere */
    uint32_t active;  /* in a ragged loop: the column is in its turn; 0 = elsewhere */
    bool rest;        /* there are fewer columns than lanes */
    bool levelled;    /* a ROOM was put for these columns */
} emitter;

static uint32_t op2(emitter *x, ing_op op, ing_type t, uint32_t a, uint32_t b) {
    return ing_ir_emit_count(&x->b, op, t, a, b);
}

static uint32_t number(emitter *x, ing_type t, int64_t v) {
    return ing_ir_const_int(&x->b, (ing_dtype)t, v);
}

static const ing_ir_inst *at(const emitter *x, uint32_t id) {
    return ing_ir_at(&x->old, id);
}

/* ---- lanes of locals and values ------------------------------------------------------------- */

static uint32_t lane_ref(emitter *x, uint32_t id, ing_type t) {
    return ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, ing_ir_type_ref(x->l->m, t),
                       x->arrays[id], x->lane, 0);
}

/* The scalar that instruction `id` of the loop keeps in lanes, or void: terms of a sum, ends of stacks and
 * of ragged loops too. */
static ing_type kept_type(const emitter *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    uint8_t role = x->l->role[id];
    if (i->op == ING_OP_ALLOCA) return ing_ir_type(x->l->m, i->type)->elem;
    if (i->op == ING_OP_ROOM && role & ING_LANES_LEVEL) return ING_I64;
    bool kept = i->op == ING_OP_LOAD ? x->l->needed[id]
                                     : role & (ING_LANES_SUM | ING_LANES_RAGGED);
    return kept ? i->type : ING_VOID;
}

static void put_arrays(emitter *x, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(&x->old, block); k++) {
        uint32_t id = ing_ir_block_ids(&x->old, block)[k];
        ing_type t = kept_type(x, id);
        if (at(x, id)->op == ING_OP_LOOP) put_arrays(x, at(x, id)->c);
        if (t == ING_VOID) continue;
        ing_type tensor = ing_ir_type_tensor(x->l->m, (ing_dtype)t, x->l->lanes, 1, 1);
        ing_type ref = ing_ir_type_ref(x->l->m, tensor);
        x->arrays[id] = ing_ir_emit(&x->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    }
}

static uint32_t load(emitter *x, uint32_t ref, ing_type t) {
    return ing_ir_emit(&x->b, ING_OP_LOAD, t, ref, 0, 0);
}

static void store(emitter *x, uint32_t ref, uint32_t v) {
    ing_ir_emit(&x->b, ING_OP_STORE, 0, ref, v, 0);
}

/* LANES7: what a column that is not in its turn leaves as it is. */
static uint32_t masked(emitter *x, uint32_t v, uint32_t else_, ing_type t) {
    if (!x->active) return v;
    return ing_ir_emit(&x->b, ING_OP_SELECT, t, x->active, v, else_);
}

/* A local of a ragged loop is written or updated. */
static void masked_write(emitter *x, const ing_ir_inst *i, uint32_t ref, ing_type t) {
    static const ing_op ops[] = {ING_OP_ADD, ING_OP_SUB, ING_OP_MUL, ING_OP_MIN,
                                 ING_OP_MAX};
    uint32_t old = load(x, ref, t), v = x->copy.map[i->b];
    if (i->op == ING_OP_ATOMIC) v = ing_ir_emit(&x->b, ops[i->c], t, old, v, 0);
    store(x, ref, masked(x, v, old, t));
}

/* LANES6: the column's term. */
static void put_term(emitter *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    uint32_t zero = ing_ir_emit(&x->b, ING_OP_CONST, i->type, 0, 0, 0);
    uint32_t term = masked(x, x->copy.map[i->b], zero, i->type);
    store(x, lane_ref(x, id, i->type), term);
}

/* Locals are in their lanes. */
static bool local_op(emitter *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (x->l->role[id] & ING_LANES_MIRROR) return true; /* is before the lanes */
    if (x->l->role[id] & ING_LANES_SUM) {
        put_term(x, id);
        return true;
    }
    if (i->op == ING_OP_ALLOCA) {
        ing_type t = kept_type(x, id);
        uint32_t zero = ing_ir_emit(&x->b, ING_OP_CONST, t, 0, 0, 0);
        ing_ir_emit(&x->b, ING_OP_STORE, 0, lane_ref(x, id, t), zero, 0);
        return true;
    }
    if (i->op == ING_OP_SCRATCH) { /* LANES4 */
        ing_type elem = ing_ir_type(x->l->m, i->type)->elem;
        uint32_t from = op2(x, ING_OP_MUL, ING_I64, x->copy.map[i->a],
                            number(x, ING_I64, x->l->lanes));
        uint32_t lane = ing_ir_emit(&x->b, ING_OP_CAST, ING_I64, x->lane, 0, 0);
        uint32_t size = number(x, ING_I64, ing_ir_type_size(x->l->m, elem));
        uint32_t to =
            op2(x, ING_OP_ADD, ING_I64, from, op2(x, ING_OP_MUL, ING_I64, lane, size));
        x->copy.map[id] = ing_ir_emit(&x->b, ING_OP_SCRATCH, i->type, to, 0, 0);
        return true;
    }
    bool access =
        i->op == ING_OP_LOAD || i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC;
    if (!access || !x->arrays[i->a] || at(x, i->a)->op != ING_OP_ALLOCA) return false;
    uint32_t ref = lane_ref(x, i->a, kept_type(x, i->a));
    if (x->active && i->op != ING_OP_LOAD) {
        masked_write(x, i, ref, kept_type(x, i->a));
        return true;
    }
    uint32_t v = i->op == ING_OP_LOAD ? 0 : x->copy.map[i->b];
    uint32_t made = ing_ir_emit(&x->b, (ing_op)i->op, i->type, ref, v, i->c);
    if (made) x->b.func->insts.at[made].flags = i->flags;
    x->copy.map[id] = made;
    return true;
}

/* ---- the parts of the loop ------------------------------------------------------------------ */

typedef struct part { /* instructions [first, end) of a block, for all lanes */
    uint32_t block, first, end;
    uint32_t before; /* where in the body it stands */
    uint16_t flags;  /* of the loop over lanes */
    uint32_t ragged; /* the serial loop, if it is one ... */
    uint32_t most;   /* ... and how far it goes; */
    uint32_t mirror; /* n - 1 - k, if columns end together */
    bool beside;     /* it stands beside serial loops in one (LANES10) */
} part;

static bool raw_varies(const emitter *x, uint32_t id) {
    return ing_ir_varies(&x->l->scan, id, x->l->loop);
}

/* What stretches before it made and this part uses. */
static void put_needed(emitter *x, uint32_t before) {
    const uint32_t *ids = ing_ir_block_ids(&x->old, at(x, x->l->loop)->c);
    for (uint32_t k = 0; k < before; k++) {
        const ing_ir_inst *i = at(x, ids[k]);
        if (!x->l->needed[ids[k]] || !ing_lanes_varies(x->l, ids[k])) continue;
        if (ing_lanes_pure(i))
            ing_ir_copy_inst(&x->copy, ids[k]);
        else if (i->op == ING_OP_LOAD)
            x->copy.map[ids[k]] = ing_ir_emit(&x->b, ING_OP_LOAD, i->type,
                                              lane_ref(x, ids[k], i->type), 0, 0);
    }
}

static bool is_own(const emitter *x, const part *p) {
    return p->block == at(x, x->l->loop)->c;
}

/* What is before the loops, and locals whose lanes are zero there. */
static bool is_before(const emitter *x, const part *p, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (p->beside) return ing_lanes_pure(i) && !ing_lanes_varies(x->l, id);
    bool first =
        i->op == ING_OP_ALLOCA || (i->op != ING_OP_IF && !ing_lanes_varies(x->l, id));
    return i->op == ING_OP_ROOM || (is_own(x, p) && first);
}

/* Whether anything is left of it: values are made again where they are used. */
static bool has_effects(const emitter *x, const part *p) {
    for (uint32_t k = p->first; k < p->end; k++) {
        uint32_t id = ing_ir_block_ids(&x->old, p->block)[k];
        const ing_ir_inst *i = at(x, id);
        bool value = ing_lanes_pure(i) || (i->op == ING_OP_LOAD && !x->l->needed[id]);
        if (!value && !is_before(x, p, id)) return true;
    }
    return false;
}

static bool is_narrow_leaf(const emitter *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    ing_dtype t = (ing_dtype)(i->op == ING_OP_CAST ? at(x, i->a)->type : i->type);
    if (i->op == ING_OP_CONST) return ing_ir_const_bits(i) < (uint64_t)1 << 31;
    return ing_dtype_is_int(t) &&
           ing_dtype_bits(t) <= (ing_dtype_is_signed(t) ? 32 : 31);
}

/* Does a value fit 32 bits? Masks as wide as the floats that they are for need no packing. */
static bool is_narrow(const emitter *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (i->op == ING_OP_SELECT)
        return is_narrow_leaf(x, i->b) && is_narrow_leaf(x, i->c);
    return is_narrow_leaf(x, id);
}

/* LANES7: whether the column is in its turn, and its own index where columns end together. */
static void put_turn(emitter *x, const part *p) {
    const ing_ir_inst *i = at(x, p->ragged);
    uint32_t n = x->copy.map[i->b], at_ = x->copy.map[p->ragged];
    if (x->l->role[p->ragged] & ING_LANES_END) {
        uint32_t late = op2(x, ING_OP_SUB, i->type, p->most, n), k = at_;
        at_ = p->mirror;
        x->copy.map[p->ragged] = op2(x, ING_OP_SUB, i->type, k, late);
    }
    if (i->type == ING_I64 && is_narrow(x, i->b)) {
        n = ing_ir_emit(&x->b, ING_OP_CAST, ING_I32, n, 0, 0);
        at_ = ing_ir_emit(&x->b, ING_OP_CAST, ING_I32, at_, 0, 0);
    }
    x->active = ing_ir_emit(&x->b, ING_OP_LT, ING_U1, at_, n, 0);
}

static void put_inst(emitter *x, const part *p, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    bool own = is_own(x, p);
    if (is_before(x, p, id)) return;
    ing_ir_copy_inst(&x->copy, id);
    if (own && i->op == ING_OP_LOAD && x->l->needed[id])
        ing_ir_emit(&x->b, ING_OP_STORE, 0, lane_ref(x, id, i->type), x->copy.map[id],
                    0);
}

/* The index of column `base` + lane, and what it needs. */
static void open_lanes(emitter *x, uint32_t before, uint32_t base) {
    ing_type t = at(x, x->l->loop)->type;
    x->lane = ing_ir_loop_reserve(&x->b, t);
    ing_ir_block_begin(&x->b);
    x->copy.map[x->l->loop] = op2(x, ING_OP_ADD, t, base, x->lane);
    put_needed(x, before);
}

static void close_lanes(emitter *x, uint32_t zero, uint32_t lanes, uint16_t flags) {
    ing_ir_loop_finish(&x->b, x->lane, zero, lanes, ing_ir_block_end(&x->b),
                       ING_IR_ORDERED | flags);
    x->lane = 0;
}

/* Stands in the loop over columns, and is made of ends of stacks (LANES8), or beside serial loops. */
static void put_even(emitter *x, const part *p) {
    for (uint32_t k = p->first; k < p->end; k++) {
        uint32_t id = ing_ir_block_ids(&x->old, p->block)[k];
        bool even = ing_lanes_pure(at(x, id)) && (p->beside || raw_varies(x, id)) &&
                    !ing_lanes_varies(x->l, id);
        if (even && !(x->l->role[id] & ING_LANES_LEVEL)) ing_ir_copy_inst(&x->copy, id);
    }
}

static void put_part(emitter *x, const part *p, uint32_t base, uint32_t lanes) {
    if (is_own(x, p) || p->beside) put_even(x, p);
    if (!has_effects(x, p)) return;
    uint32_t zero = number(x, at(x, x->l->loop)->type, 0);
    open_lanes(x, p->before, base);
    if (p->ragged) put_turn(x, p);
    for (uint32_t k = p->first; k < p->end; k++)
        put_inst(x, p, ing_ir_block_ids(&x->old, p->block)[k]);
    close_lanes(x, zero, lanes, p->flags);
    x->active = 0;
}

/* ---- all lanes together ----------------------------------------------------------------------- */

/* What the lanes of `id` come to, by halves. */
static uint32_t fold(emitter *x, uint32_t id, ing_op op, ing_type t) {
    ing_type ref = ing_ir_type_ref(x->l->m, t);
    uint32_t zero = number(x, ING_I32, 0);
    for (uint32_t half = x->l->lanes / 2; half; half /= 2) {
        uint32_t n = number(x, ING_I32, half);
        uint32_t lane = ing_ir_loop_reserve(&x->b, ING_I32);
        ing_ir_block_begin(&x->b);
        uint32_t other = op2(x, ING_OP_ADD, ING_I32, lane, n), of = x->arrays[id];
        uint32_t to = ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, ref, of, lane, 0);
        uint32_t from = ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, ref, of, other, 0);
        uint32_t a = load(x, to, t), b = load(x, from, t);
        store(x, to, ing_ir_emit(&x->b, op, t, a, b, 0));
        ing_ir_loop_finish(&x->b, lane, zero, n, ing_ir_block_end(&x->b),
                           ING_IR_ORDERED);
    }
    return load(x, ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, ref, x->arrays[id], zero, 0),
                t);
}

/* LANES6, after the lanes of a serial iteration. */
static void put_sums(emitter *x, uint32_t block) {
    bool any = false;
    for (uint32_t k = 0; k < ing_ir_block_len(&x->old, block); k++)
        any |= x->l->role[ing_ir_block_ids(&x->old, block)[k]] & ING_LANES_SUM;
    for (uint32_t k = 0; any && k < ing_ir_block_len(&x->old, block); k++) {
        uint32_t id = ing_ir_block_ids(&x->old, block)[k];
        const ing_ir_inst *i = at(x, id);
        uint8_t role = x->l->role[id];
        if (ing_lanes_pure(i) && !ing_lanes_varies(x->l, id) &&
            !(role & ING_LANES_MIRROR))
            ing_ir_copy_inst(&x->copy, id);
        if (!(role & ING_LANES_SUM)) continue;
        uint32_t sum = fold(x, id, ING_OP_ADD, i->type);
        uint32_t made =
            ing_ir_emit(&x->b, ING_OP_ATOMIC, i->type, x->copy.map[i->a], sum, i->c);
        if (made) x->b.func->insts.at[made].flags = i->flags;
    }
}

/* The greatest of what columns have of value `of`, kept by `id`; `least` where there are none. */
static uint32_t put_most(emitter *x, uint32_t id, uint32_t of, const part *p,
                         uint32_t base, uint32_t lanes, uint32_t least) {
    ing_type t = kept_type(x, id), ref = ing_ir_type_ref(x->l->m, t);
    uint32_t zero = number(x, at(x, x->l->loop)->type, 0);
    if (x->rest) {
        uint32_t all = number(x, ING_I32, x->l->lanes), none = number(x, ING_I32, 0);
        uint32_t lane = ing_ir_loop_reserve(&x->b, ING_I32);
        ing_ir_block_begin(&x->b);
        store(x, ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, ref, x->arrays[id], lane, 0),
              least);
        ing_ir_loop_finish(&x->b, lane, none, all, ing_ir_block_end(&x->b),
                           ING_IR_ORDERED);
    }
    open_lanes(x, p->before, base);
    if (x->l->role[of] & ING_LANES_LEVEL) ing_ir_copy_inst(&x->copy, of);
    store(x, lane_ref(x, id, t), x->copy.map[of]);
    close_lanes(x, zero, lanes, x->rest ? ING_IR_RARE : 0);
    return fold(x, id, ING_OP_MAX, t);
}

/* LANES8: room for the farthest, for every lane. The first column may go far in one loop and the second in another,
 * and each makes the stack of its loop longer for both: more than any of them needs, which is what was measured
 * before the launch. So those after the first ask for room. */
static void put_room(emitter *x, uint32_t id, const part *p, uint32_t base,
                     uint32_t lanes) {
    const ing_ir_inst *i = at(x, id);
    uint32_t zero = number(x, ING_I64, 0);
    uint32_t most = put_most(x, id, i->a, p, base, lanes, zero);
    uint32_t all = op2(x, ING_OP_MUL, ING_I64, most, number(x, ING_I64, x->l->lanes));
    x->b.loc = i->loc;
    ing_ir_emit(&x->b, ING_OP_ROOM, 0, all, i->b | x->levelled, 0);
    x->levelled = true;
    x->copy.map[i->a] = most;
}

/* LANES7: the serial loop's own values, before the lanes of an iteration. */
static void open_ragged(emitter *x, uint32_t id, part *p) {
    const ing_ir_inst *i = at(x, id);
    p->ragged = id;
    if (!(x->l->role[id] & ING_LANES_END)) return;
    uint32_t last = op2(x, ING_OP_SUB, i->type, p->most, number(x, i->type, 1));
    p->mirror = op2(x, ING_OP_SUB, i->type, last, x->copy.map[id]);
    for (uint32_t k = 0; k < p->end; k++) {
        uint32_t inner = ing_ir_block_ids(&x->old, p->block)[k];
        if (x->l->role[inner] & ING_LANES_MIRROR) x->copy.map[inner] = p->mirror;
    }
}

/* The serial loop, or a branch, around the lanes. */
static void put_around(emitter *x, uint32_t id, const part *body, uint32_t base,
                       uint32_t lanes) {
    const ing_ir_inst *i = at(x, id);
    part p = {.block = i->op == ING_OP_IF ? i->b : i->c, .before = body->end};
    if (i->op == ING_OP_IF) p.flags = body->flags;
    bool ragged = x->l->role[id] & ING_LANES_RAGGED;
    uint32_t a = x->copy.map[i->a], to = 0;
    if (ragged) to = p.most = put_most(x, id, i->b, &p, base, lanes, a);
    p.end = ing_ir_block_len(&x->old, p.block);
    uint32_t loop = i->op == ING_OP_LOOP ? ing_ir_loop_reserve(&x->b, i->type) : 0;
    x->copy.map[id] = loop;
    ing_ir_block_begin(&x->b);
    if (ragged) open_ragged(x, id, &p);
    put_part(x, &p, base, lanes);
    put_sums(x, p.block);
    uint32_t block = ing_ir_block_end(&x->b);
    if (loop)
        ing_ir_loop_finish(&x->b, loop, a, ragged ? to : x->copy.map[i->b], block, 0);
    else
        ing_ir_emit(&x->b, ING_OP_IF, 0, a, block, 0);
}

/* A serial loop with serial loops in it (LANES10). */
static void put_nest(emitter *x, uint32_t id, const part *body, uint32_t base,
                     uint32_t lanes) {
    const ing_ir_inst *i = at(x, id);
    part p = {.block = i->c, .before = body->end, .beside = true};
    uint32_t n = ing_ir_block_len(&x->old, p.block);
    uint32_t loop = ing_ir_loop_reserve(&x->b, i->type);
    x->copy.map[id] = loop;
    ing_ir_block_begin(&x->b);
    for (uint32_t k = 0; k <= n; k++) {
        uint32_t inner = k < n ? ing_ir_block_ids(&x->old, p.block)[k] : 0;
        if (inner && at(x, inner)->op != ING_OP_LOOP) continue;
        p.end = k;
        put_part(x, &p, base, lanes);
        if (inner) put_around(x, inner, body, base, lanes);
        p.first = k + 1;
    }
    ing_ir_loop_finish(&x->b, loop, x->copy.map[i->a], x->copy.map[i->b],
                       ing_ir_block_end(&x->b), 0);
}

static bool cuts(const emitter *x, uint32_t id) {
    ing_lanes old = *x->l;
    old.f = &x->old;
    return ing_lanes_cuts(&old, id);
}

/* Columns base .. base + lanes, stretch by stretch; `flags` of loops outside of the serial one. */
static void put_columns(emitter *x, uint32_t base, uint32_t lanes, uint16_t flags) {
    part p = {.block = at(x, x->l->loop)->c, .flags = flags};
    uint32_t n = ing_ir_block_len(&x->old, p.block);
    x->levelled = false;
    for (uint32_t k = 0; k <= n; k++) {
        uint32_t id = k < n ? ing_ir_block_ids(&x->old, p.block)[k] : 0;
        if (id && !cuts(x, id)) continue;
        p.end = k;
        put_part(x, &p, base, lanes);
        if (id && at(x, id)->op == ING_OP_ROOM)
            put_room(x, id, &(part){.before = k}, base, lanes);
        else if (id && x->l->scan.has[id] & ING_IR_HAS_LOOP)
            put_nest(x, id, &p, base, lanes);
        else if (id)
            put_around(x, id, &p, base, lanes);
        p.first = p.before = k + 1;
    }
}

/* What is the same for all columns, once. */
static void put_common(emitter *x) {
    uint32_t body = at(x, x->l->loop)->c;
    for (uint32_t k = 0; k < ing_ir_block_len(&x->old, body); k++) {
        uint32_t id = ing_ir_block_ids(&x->old, body)[k];
        const ing_ir_inst *i = at(x, id);
        if (x->l->role[id] & ING_LANES_LEVEL) continue;
        if (i->op == ING_OP_ROOM) {
            uint32_t all = op2(x, ING_OP_MUL, ING_I64, x->copy.map[i->a],
                               number(x, ING_I64, x->l->lanes));
            x->b.loc = i->loc;
            ing_ir_emit(&x->b, ING_OP_ROOM, 0, all, i->b, 0);
        } else if (i->op != ING_OP_LOOP && !raw_varies(x, id)) {
            ing_ir_copy_inst(&x->copy, id);
        }
    }
}

/* The first column of a block: a column, or the end of them, however far the first one is. */
static uint32_t put_base(emitter *x, uint32_t from, uint32_t block, uint32_t lanes) {
    ing_type t = at(x, x->l->loop)->type;
    uint32_t done = ing_ir_emit(&x->b, ING_OP_MUL, t, block, lanes, 0);
    return ing_ir_emit(&x->b, ING_OP_ADD, t, from, done, 0);
}

/* Of the columns of a row: the first, the end, those of a block, how many whole blocks there are. */
typedef struct columns {
    uint32_t from, to, lanes, blocks;
} columns;

static columns count_columns(emitter *x) {
    const ing_ir_inst *c = at(x, x->l->loop);
    ing_type t = c->type;
    columns n = {.from = x->copy.map[c->a]};
    n.to = op2(x, ING_OP_MAX, t, x->copy.map[c->b], n.from);
    n.lanes = number(x, t, x->l->lanes);
    uint32_t shift = number(x, t, __builtin_ctz(x->l->lanes));
    /* Columns may be as many as an unsigned number counts: this wraps. */
    uint32_t trips = ing_ir_emit(&x->b, ING_OP_SUB, t, n.to, n.from, 0);
    n.blocks = op2(x, ING_OP_SHR, t, trips, shift);
    return n;
}

static void put_block(emitter *x, const columns *n, uint32_t block) {
    put_arrays(
        x, at(x, x->l->loop)->c); /* of whole blocks: LLVM makes registers of them */
    put_columns(x, put_base(x, n->from, block, n->lanes), n->lanes, 0);
}

static void put_rest(emitter *x, const columns *n) {
    ing_type t = at(x, x->l->loop)->type;
    put_arrays(x, at(x, x->l->loop)->c);
    x->rest = true;
    uint32_t rest = put_base(x, n->from, n->blocks, n->lanes);
    put_columns(x, rest, op2(x, ING_OP_SUB, t, n->to, rest), ING_IR_RARE);
}

static void put_lanes(emitter *x) {
    const ing_ir_inst *c = at(x, x->l->loop);
    uint32_t zero = number(x, c->type, 0);
    columns n = count_columns(x);
    put_common(x);
    uint32_t block = ing_ir_loop_reserve(&x->b, c->type);
    ing_ir_block_begin(&x->b);
    put_block(x, &n, block);
    ing_ir_loop_finish(&x->b, block, zero, n.blocks, ing_ir_block_end(&x->b),
                       c->flags & ING_IR_PARALLEL);
    put_rest(x, &n);
}

/* ---- LANES9 ------------------------------------------------------------------------------------ */

/* A loop over the rows: what it says of its columns. */
static uint32_t open_row(emitter *x, columns *n) {
    const ing_ir_inst *r = at(x, x->l->rows);
    uint32_t row = ing_ir_loop_reserve(&x->b, r->type);
    ing_ir_block_begin(&x->b);
    x->copy.map[x->l->rows] = row;
    for (uint32_t k = 0; k < ing_ir_block_len(&x->old, r->c); k++) {
        uint32_t id = ing_ir_block_ids(&x->old, r->c)[k];
        if (id != x->l->loop) ing_ir_copy_inst(&x->copy, id);
    }
    *n = count_columns(x);
    return row;
}

static void close_row(emitter *x, uint32_t row, uint16_t flags) {
    const ing_ir_inst *r = at(x, x->l->rows);
    uint32_t block = ing_ir_block_end(&x->b);
    ing_ir_loop_finish(&x->b, row, x->copy.map[r->a], x->copy.map[r->b], block, flags);
}

/* The blocks of the longest row. */
static uint32_t put_most_blocks(emitter *x, ing_type t) {
    columns n;
    uint32_t most =
        ing_ir_emit(&x->b, ING_OP_ALLOCA, ing_ir_type_ref(x->l->m, t), 0, 0, 0);
    uint32_t row = open_row(x, &n);
    uint32_t before = load(x, most, t);
    store(x, most, op2(x, ING_OP_MAX, t, before, n.blocks));
    close_row(x, row, ING_IR_RARE);
    return load(x, most, t);
}

static void put_rows(emitter *x) {
    const ing_ir_inst *c = at(x, x->l->loop);
    uint32_t zero = number(x, c->type, 0);
    uint32_t most = put_most_blocks(x, c->type);
    columns n;
    uint32_t block = ing_ir_loop_reserve(&x->b, c->type);
    ing_ir_block_begin(&x->b);
    uint32_t row = open_row(x, &n);
    put_common(x);
    uint32_t whole = ing_ir_emit(&x->b, ING_OP_LT, ING_U1, block, n.blocks, 0);
    ing_ir_block_begin(&x->b);
    put_block(x, &n, block);
    uint32_t then = ing_ir_block_end(&x->b);
    ing_ir_emit(&x->b, ING_OP_IF, 0, whole, then, 0);
    close_row(x, row, c->flags & ING_IR_PARALLEL);
    ing_ir_loop_finish(&x->b, block, zero, most, ing_ir_block_end(&x->b), 0);
    row = open_row(x, &n);
    put_common(x);
    put_rest(x, &n);
    close_row(x, row, 0);
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    emitter *x = c->self;
    if (x->lane) return local_op(x, id);
    if (id != x->l->loop && (!x->l->rows || id != x->l->rows)) return false;
    if (id == x->l->rows)
        put_rows(x);
    else
        put_lanes(x);
    return true;
}

bool ing_lanes_emit(ing_lanes *l) {
    emitter x = {.l = l};
    uint32_t n = l->f->insts.len;
    uint32_t *map = ing_calloc(n, sizeof *map);
    x.arrays = ing_calloc(n, sizeof *x.arrays);
    if (map && x.arrays) {
        ing_ir_rebuild_begin(&x.b, l->m, l->func, &x.old);
        x.copy = (ing_ir_copy){
            .b = &x.b, .from = &x.old, .map = map, .hook = hook, .self = &x};
        ing_ir_copy_block(&x.copy, x.old.body);
        ing_ir_rebuild_end(&x.b, &x.old);
    }
    bool ok = map && x.arrays && ing_ir_ok(l->m);
    ing_free(map);
    ing_free(x.arrays);
    return ok;
}
