/* Turn: tiles that a loop goes through across their rows.
 *
 *   for i, j in y: y[i, j] = x[j, i]            both in tiles of 16 x 16
 *
 * Shape makes loops of constant length over a tile; for the inner one, neighbours in x lie a row apart,
 * and LLVM takes them one by one. Such a tile is turned first, in a local, by loops that gen writes as
 * shuffles of vectors (gen/llvm_turn.c); what is written across rows is turned afterwards:
 *
 *   loop i = 0, 16                              loop turned j = 0, 16
 *     loop parallel j = 0, 16             =>      loop i = 0, 16
 *       y[i, j] = x[j, i]                           t[i * 16 + j] = x[j, i]
 *                                               loop i = 0, 16
 *                                                 loop parallel j = 0, 16
 *                                                   y[i, j] = t[i * 16 + j]
 *
 * 2**16 f32 in tiles of 16 x 16: 30 us, 8 with it. Runs last.
 * Rules
 *  TURN1 the parallel loop is all that the loop around it does, both have constant bounds from 0, and
 *     nothing leaves them or calls anything.
 *  TURN2 the access is made in each iteration, to a scalar of a field, at a place that moves by one scalar
 *     with the outer index and by more with the inner one; another access moves by one with the inner.
 *  TURN3 nothing in the task writes to what is read so; nothing else touches what is written so. All other
 *     arrays of the nest are assumed to share no memory with it (apart.c). */
#include "pass/pass_int.h"

#include <string.h>

enum { MAX_TURNED = 4 };

typedef struct turned {
    uint32_t access; /* LOAD or STORE */
    uint32_t elem, array;
    bool store;
    uint32_t tile; /* the local, once it is there */
} turned;

typedef struct turner {
    ing_ir_mod *m;
    const ing_pass_options *o;
    ing_ir_scan scan;
    ing_ir_builder b;
    ing_ir_func old;
    ing_ir_copy copy;
    uint8_t *needed;       /* per instruction: for the address at hand */
    uint32_t outer, inner; /* the loops */
    uint32_t rows, columns;
    turned at[MAX_TURNED];
    uint32_t n;
    bool along; /* something moves by one with the inner index */
    bool inside;
} turner;

/* ---- levels of a field --------------------------------------------------------------------------- */

uint32_t ing_pass_level_index(const ing_ir_mod *m, const ing_ir_func *f, uint32_t elem,
                              uint32_t level, bool *whole) {
    const ing_ir_inst *e = ing_ir_at(f, elem);
    const ing_place *place = ing_ir_type(m, ing_ir_at(f, e->a)->type)->place;
    uint32_t axis = place->level[level].axis, id = f->extra.at[e->b + axis], left = 0;
    for (uint32_t k = 0; k < place->n_levels; k++) left += place->level[k].axis == axis;
    *whole = true;
    for (uint32_t k = place->n_levels; k-- > level;) {
        if (place->level[k].axis != axis) continue;
        bool last = --left == 0;
        if (last) return id;
        if (!ing_ir_is_joined(f, id, place->level[k].extent)) break;
        if (k == level) return ing_ir_at(f, id)->b;
        id = ing_ir_at(f, ing_ir_at(f, id)->a)->a;
    }
    *whole = false;
    return id;
}

/* ---- finding ------------------------------------------------------------------------------------ */

static bool from_zero(const ing_ir_func *f, uint32_t loop, uint32_t *trips) {
    const ing_ir_inst *l = ing_ir_at(f, loop);
    int64_t first, same, last, end;
    if (l->op != ING_OP_LOOP || l->type != ING_I32 ||
        !ing_ir_range(f, l->a, &first, &same) || !ing_ir_range(f, l->b, &last, &end))
        return false;
    *trips = (uint32_t)end;
    return !first && !same && last == end && end > 1 && end <= ING_PASS_MAX_TILE;
}

static bool find_nest(turner *x, const ing_ir_func *f) { /* TURN1 */
    const ing_ir_scan *s = &x->scan;
    x->inner = s->parallel;
    x->outer = x->inner ? s->home[x->inner] : 0;
    if (!x->outer || !from_zero(f, x->inner, &x->columns) ||
        !from_zero(f, x->outer, &x->rows))
        return false;
    uint8_t bad = ING_IR_HAS_CALL | ING_IR_HAS_RANDOM | ING_IR_HAS_STOP |
                  ING_IR_HAS_EXIT | ING_IR_HAS_VOLATILE;
    const ing_ir_inst *l = ing_ir_at(f, x->outer);
    for (uint32_t k = 0; k < ing_ir_block_len(f, l->c); k++) {
        uint32_t id = ing_ir_block_ids(f, l->c)[k];
        if (id != x->inner && !ing_op_is_pure(ing_ir_at(f, id)->op)) return false;
    }
    return !((s->has[x->outer] | s->has[x->inner]) & bad) &&
           !(ing_ir_at(f, x->inner)->flags & ING_IR_WOVEN);
}

typedef struct steps { /* bytes by which an address moves with each index */
    int64_t outer, inner;
} steps;

/* What the index on one level of a field adds; false: it is made of the two in another way. */
static bool add_level(const turner *x, uint32_t id, int64_t stride, steps *out) {
    int64_t *by = id == x->outer ? &out->outer : id == x->inner ? &out->inner : NULL;
    if (!by || *by) return false;
    *by = stride;
    return true;
}

static bool steps_of(const turner *x, const ing_ir_func *f, uint32_t elem, steps *out) {
    const ing_ir_inst *e = ing_ir_at(f, elem);
    const ing_place *place = ing_ir_type(x->m, ing_ir_at(f, e->a)->type)->place;
    if (!place || place->elem_rank) return false;
    for (uint32_t k = 0; k < place->n_levels; k++) {
        bool whole;
        uint32_t id = ing_pass_level_index(x->m, f, elem, k, &whole);
        bool fixed = !ing_ir_varies(&x->scan, id, x->outer) &&
                     !ing_ir_varies(&x->scan, id, x->inner);
        if (!fixed && (!whole || !add_level(x, id, place->level[k].stride, out)))
            return false;
    }
    return true;
}

/* Vectors of 32 bytes take that many along the first index of a turned loop, and half of it along the
 * other (gen/llvm_turn.c). */
static bool divides(uint32_t size, uint32_t first, uint32_t second) {
    return (size == 4 || size == 8) && first % (32 / size) == 0 &&
           second % (16 / size) == 0;
}

static bool in_body(const ing_ir_func *f, uint32_t loop, uint32_t id) {
    uint32_t block = ing_ir_at(f, loop)->c;
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++)
        if (ing_ir_block_ids(f, block)[k] == id) return true;
    return false;
}

static void look_at(turner *x, const ing_ir_func *f, const ing_ir_access *a) {
    const ing_ir_inst *i = ing_ir_at(f, a->id);
    bool store = i->op == ING_OP_STORE;
    if (a->root != ING_OP_ARRAY || !a->elem || a->ref != a->elem ||
        (i->op != ING_OP_LOAD && !store))
        return;
    steps by = {0};
    uint32_t size =
        ing_ir_type_size(x->m, ing_ir_type(x->m, ing_ir_at(f, a->elem)->type)->elem);
    if (!steps_of(x, f, a->elem, &by)) return;
    x->along |= by.inner == size;
    bool across = by.outer == size && by.inner && by.inner != size;
    uint32_t first = store ? x->rows : x->columns,
             second = store ? x->columns : x->rows;
    if (across && divides(size, first, second) && x->n < MAX_TURNED &&
        in_body(f, x->inner, a->id))
        x->at[x->n++] =
            (turned){.access = a->id, .elem = a->elem, .array = a->of, .store = store};
}

static bool writes(const ing_ir_func *f, const ing_ir_access *a) {
    uint16_t op = ing_ir_at(f, a->id)->op;
    return op != ING_OP_LOAD;
}

/* TURN3 within the array; how many others must lie apart. */
static bool is_alone(const turner *x, const ing_ir_func *f, const turned *t,
                     uint32_t *others) {
    const ing_ir_scan *s = &x->scan;
    for (uint32_t k = 0; k < s->accesses.len; k++) {
        const ing_ir_access *a = &s->accesses.at[k];
        bool matters = t->store || writes(f, a);
        if (a->root == ING_OP_PARAM) return false;
        if (a->root != ING_OP_ARRAY || a->id == t->access || !matters) continue;
        if (a->of == t->array) return false;
        ++*others;
    }
    return true;
}

static bool find_turned(turner *x, const ing_ir_func *f) {
    const ing_ir_scan *s = &x->scan;
    for (uint32_t k = s->first[x->outer]; k < s->end[x->outer]; k++)
        look_at(x, f, &s->accesses.at[k]);
    uint32_t n = 0, others = 0;
    for (uint32_t k = 0; k < x->n; k++)
        if (is_alone(x, f, &x->at[k], &others)) x->at[n++] = x->at[k];
    x->n = n;
    return n && x->along && ing_pass_may_assume(x->m, x->o, others);
}

static void assume(const turner *x, const ing_ir_func *f) {
    const ing_ir_scan *s = &x->scan;
    for (uint32_t n = 0; n < x->n; n++)
        for (uint32_t k = 0; k < s->accesses.len; k++) {
            const ing_ir_access *a = &s->accesses.at[k];
            if (a->root == ING_OP_ARRAY && a->of != x->at[n].array &&
                (x->at[n].store || writes(f, a)))
                ing_pass_assume_apart(x->m, a->of, x->at[n].array);
        }
}

/* ---- writing ------------------------------------------------------------------------------------ */

static uint32_t number(turner *x, int64_t v) {
    return ing_ir_const_int(&x->b, ING_I32, v);
}

static uint32_t counted(turner *x, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit_count(&x->b, op, ING_I32, a, b);
}

/* Where the tile has the scalar of these indices: rows of what the inner loop goes along. */
static uint32_t put_ref(turner *x, const turned *t, uint32_t outer, uint32_t inner) {
    uint32_t row = counted(x, ING_OP_MUL, outer, number(x, x->columns));
    uint32_t k = counted(x, ING_OP_ADD, row, inner);
    return ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, ing_ir_at(&x->old, t->elem)->type,
                       t->tile, k, 0);
}

static void copy_needed(turner *x, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(&x->old, block); k++) {
        uint32_t id = ing_ir_block_ids(&x->old, block)[k];
        if (x->needed[id]) ing_ir_copy_inst(&x->copy, id);
    }
}

/* Marks what the value is made of: all of it is pure, for it varies with the indices alone. */
static void mark(turner *x, uint32_t value) {
    x->needed[value] = 1;
    for (uint32_t id = value; id > 0; id--) {
        ing_ir_uses u;
        if (!x->needed[id]) continue;
        ing_ir_inst_uses(&x->old, ing_ir_at(&x->old, id), &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) x->needed[u.fixed[k]] = 1;
        for (uint32_t k = 0; k < u.n_list; k++) x->needed[u.list[k]] = 1;
    }
}

static void put_turned(turner *x, const turned *t) {
    const ing_ir_inst *outer = ing_ir_at(&x->old, x->outer),
                      *inner = ing_ir_at(&x->old, x->inner);
    uint32_t zero = number(x, 0);
    uint32_t n = number(x, t->store ? x->rows : x->columns),
             m = number(x, t->store ? x->columns : x->rows);
    uint32_t first = ing_ir_loop_reserve(&x->b, ING_I32);
    ing_ir_block_begin(&x->b);
    uint32_t second = ing_ir_loop_reserve(&x->b, ING_I32);
    ing_ir_block_begin(&x->b);
    uint32_t i = t->store ? first : second, j = t->store ? second : first;
    x->copy.map[x->outer] = i;
    x->copy.map[x->inner] = j;
    memset(x->needed, 0, x->old.insts.len);
    mark(x, t->elem);
    x->needed[x->outer] = x->needed[x->inner] = 0;
    copy_needed(x, outer->c);
    copy_needed(x, inner->c);
    uint32_t tile = put_ref(x, t, i, j), there = x->copy.map[t->elem];
    ing_type type = ing_ir_type(x->m, ing_ir_at(&x->old, t->elem)->type)->elem;
    uint32_t v = ing_ir_emit(&x->b, ING_OP_LOAD, type, t->store ? tile : there, 0, 0);
    ing_ir_emit(&x->b, ING_OP_STORE, 0, t->store ? there : tile, v, 0);
    ing_ir_loop_finish(&x->b, second, zero, m, ing_ir_block_end(&x->b), 0);
    ing_ir_loop_finish(&x->b, first, zero, n, ing_ir_block_end(&x->b), ING_IR_TURNED);
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    turner *x = c->self;
    const ing_ir_inst *i = ing_ir_at(&x->old, id);
    if (id == x->outer && !x->inside) {
        for (uint32_t k = 0; k < x->n; k++)
            if (!x->at[k].store) put_turned(x, &x->at[k]);
        x->inside = true;
        ing_ir_copy_inst(c, id);
        x->inside = false;
        for (uint32_t k = 0; k < x->n; k++)
            if (x->at[k].store) put_turned(x, &x->at[k]);
        return true;
    }
    for (uint32_t k = 0; x->inside && k < x->n; k++) {
        const turned *t = &x->at[k];
        if (t->access != id) continue;
        uint32_t ref = put_ref(x, t, c->map[x->outer], c->map[x->inner]);
        uint32_t v = t->store ? c->map[i->b] : 0;
        c->map[id] = ing_ir_emit(&x->b, (ing_op)i->op, i->type, ref, v, 0);
        return true;
    }
    return false;
}

static void rewrite(turner *x, uint32_t func, uint32_t *map) {
    ing_ir_rebuild_begin(&x->b, x->m, func, &x->old);
    x->copy =
        (ing_ir_copy){.b = &x->b, .from = &x->old, .map = map, .hook = hook, .self = x};
    for (uint32_t k = 0; k < x->n; k++) {
        ing_type t = ing_ir_type(x->m, ing_ir_at(&x->old, x->at[k].elem)->type)->elem;
        ing_type tile =
            ing_ir_type_tensor(x->m, (ing_dtype)t, x->rows * x->columns, 1, 1);
        x->at[k].tile =
            ing_ir_emit(&x->b, ING_OP_ALLOCA, ing_ir_type_ref(x->m, tile), 0, 0, 0);
    }
    ing_ir_copy_block(&x->copy, x->old.body);
    ing_ir_rebuild_end(&x->b, &x->old);
}

static bool run_task(turner *x, uint32_t func) {
    const ing_ir_func *f = x->m->funcs.at[func];
    bool ok = ing_ir_scan_init(&x->scan, f);
    if (ok && find_nest(x, f) && find_turned(x, f)) {
        uint32_t *map = ing_calloc(f->insts.len, sizeof *map);
        x->needed = ing_calloc(f->insts.len, 1);
        ok = map && x->needed;
        if (ok) {
            assume(x, f);
            rewrite(x, func, map);
        }
        ing_free(map);
        ing_free(x->needed);
    }
    ing_ir_scan_fini(&x->scan);
    return ok;
}

ing_status ing_pass_turn(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    bool ok = true;
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        turner x = {.m = m, .o = o};
        if (t->kind == ING_IR_TASK_RANGE && t->row) ok = run_task(&x, t->func);
    }
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
