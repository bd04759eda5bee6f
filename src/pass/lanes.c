/* Lanes: finds loops whose iterations should go through a serial loop side by side: the parallel one of
 * a task, else serial ones. The rules stand in lanes.h; lanes_emit.c writes the loops. Must never take a
 * loop with a call, nor a serial one with a branch that columns take apart. */
#include "pass/lanes.h"
#include "pass/pointee.h"

#include <string.h>

enum {
    FEW_TRIPS = 32,   /* of the serial loop: LLVM unrolls it and vectorises the other */
    MAX_KEPT = 24,    /* arrays of lanes; more would not stay in the first cache */
    MAX_CARRIED = 12, /* bytes of a column in a serial loop: 24 registers of 8 floats */
    MAX_TOUCHED = 48, /* accesses of a serial loop that are compared (LANES5) */
    /* Columns of different lengths: where one of 16 is long and the others are empty, the recurrence of
     * bench/grad.py takes 0.58 ms against 0.41 one by one, its gradient 1.35 against 1.22; where
     * lengths are spread, 0.55 against 2.8 and 1.28 against 8.7. */
    RAGGED_LANES = 16,
    MAX_SERIAL = 8, /* serial loops of a task that are taken: each is written twice */
};

typedef struct finder {
    ing_lanes l;
    uint32_t *stretch; /* per instruction of the body: its stretch, from 1 */
    uint32_t kept;     /* locals and values that lanes keep */
    bool scratch;      /* columns have stacks */
    bool gain;         /* some serial loop is why lanes pay */
    bool summed;       /* there are updates by LANES6 */
} finder;

static const ing_ir_inst *at(const finder *x, uint32_t id) {
    return ing_ir_at(x->l.f, id);
}

/* ---- LANES1 --------------------------------------------------------------------------------- */

static bool is_lane_type(ing_type t) {
    return t < ING_DTYPE_N && t != ING_U1;
}

static bool is_local(const finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    return i->op == ING_OP_ALLOCA && is_lane_type(ing_ir_type(x->l.m, i->type)->elem);
}

static bool is_access(const ing_ir_inst *i) {
    return i->op == ING_OP_LOAD || i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC;
}

/* Made before the loop: the lanes of a reduction (reduce.h), of which each column has its own. */
static bool is_outer(const finder *x, uint32_t local) {
    return !ing_ir_inside(&x->l.scan, local, x->l.loop);
}

/* A local is read, written and updated, nothing else. */
static bool locals_stay(const finder *x, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->l.f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t id = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        if (at(x, id)->op != ING_OP_ALLOCA) continue;
        if (is_outer(x, id) && i->op == ING_OP_MEMBER_DYN && k == 0) continue;
        if (!is_access(i) || k != 0 || !is_local(x, id)) return false;
    }
    return true;
}

/* An update by whichever thread, in the parallel loop, whose iterations have no order. */
static bool is_update(const finder *x, uint32_t id) {
    return x->l.loop == x->l.scan.parallel && !x->l.scan.used[id];
}

static bool is_plain(finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (!locals_stay(x, i)) return false;
    switch (i->op) {
    case ING_OP_ALLOCA: x->kept++; return is_local(x, id);
    case ING_OP_LOAD: return !(i->flags & ING_IR_VOLATILE);
    case ING_OP_STORE: return true;
    case ING_OP_ATOMIC: return i->flags & ING_IR_PRIVATE || is_update(x, id);
    case ING_OP_SCRATCH: /* what the columns keep there lies side by side */
        x->scratch = true;
        return !ing_lanes_varies(&x->l, i->a) &&
               is_lane_type(ing_ir_type(x->l.m, i->type)->elem);
    case ING_OP_ROOM: return ing_lanes_level_room(&x->l, id);
    default: ing_lanes_find_even(&x->l, id); return ing_lanes_pure(i);
    }
}

static bool branch_suits(finder *x, const ing_ir_inst *i) {
    bool ok = !i->c;
    for (uint32_t j = 0; ok && j < ing_ir_block_len(x->l.f, i->b); j++) {
        uint32_t id = ing_ir_block_ids(x->l.f, i->b)[j];
        ok = at(x, id)->op != ING_OP_ALLOCA && is_plain(x, id);
    }
    return ok;
}

/* ---- LANES2 ---------------------------------------------------------------------------------- */

/* One more in the next column. */
static bool is_neighbour(const finder *x, uint32_t index) {
    ing_ir_form form;
    uint64_t times = 0;
    ing_ir_form_of(x->l.f, index, &form);
    for (uint32_t k = 0; k < form.n; k++) {
        if (form.of[k] == x->l.loop)
            times = form.times[k];
        else if (ing_lanes_varies(&x->l, form.of[k]))
            return false;
    }
    return form.known && times == 1;
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
    if (i->op == ING_OP_ALLOCA || i->op == ING_OP_SCRATCH ||
        !ing_lanes_varies(&x->l, ref))
        return true;
    if (i->op != ING_OP_ELEM) return false;
    const ing_type_info *t = ing_ir_type(x->l.m, at(x, i->a)->type);
    if (!is_lane_type(t->elem) || t->rank == 0 || ing_lanes_varies(&x->l, i->a))
        return false;
    if (t->place && !columns_lie_together(t)) return false;
    bool rows = false;
    for (uint32_t k = 0; k + 1 < t->rank; k++) {
        uint32_t index = x->l.f->extra.at[i->b + t->layout[k]];
        if (ing_lanes_varies(&x->l, index)) return false;
        rows |= ing_ir_varies(&x->l.scan, index, x->l.inner);
    }
    *gain |= rows;
    return is_neighbour(x, x->l.f->extra.at[i->b + t->layout[t->rank - 1]]);
}

/* Is it added to a local that nothing else in the serial loop reads or writes? LLVM has ways to
 * vectorise that. */
static bool is_sum(const finder *x, const ing_ir_inst *k, uint32_t local) {
    uint32_t load = 0, stored = 0;
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, k->c); j++) {
        uint32_t id = ing_ir_block_ids(x->l.f, k->c)[j];
        const ing_ir_inst *i = at(x, id);
        if (!is_access(i) || i->a != local) continue;
        if (i->op == ING_OP_ATOMIC) return !x->l.scan.used[id];
        if (i->op == ING_OP_LOAD ? load != 0 : stored != 0) return false;
        if (i->op == ING_OP_LOAD) load = id;
        if (i->op == ING_OP_STORE) stored = i->b;
    }
    const ing_ir_inst *v = at(x, stored);
    bool sum = v->op == ING_OP_ADD || v->op == ING_OP_SUB || v->op == ING_OP_MUL ||
               v->op == ING_OP_MIN || v->op == ING_OP_MAX;
    uint32_t uses = 0;
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, k->c); j++) {
        ing_ir_uses u;
        ing_ir_inst_uses(x->l.f, at(x, ing_ir_block_ids(x->l.f, k->c)[j]), &u);
        for (uint32_t n = 0; n < u.n_fixed; n++) uses += u.fixed[n] == load;
    }
    return sum && uses == 1 && (v->a == load || (v->b == load && v->op != ING_OP_SUB));
}

/* A local that each iteration of the serial loop makes of what the one before left: one column
 * waits for itself, several side by side do not. */
static bool has_chain(const finder *x, const ing_ir_inst *k) {
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, k->c); j++) {
        const ing_ir_inst *i = at(x, ing_ir_block_ids(x->l.f, k->c)[j]);
        bool writes = i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC;
        bool outside = writes && at(x, i->a)->op == ING_OP_ALLOCA &&
                       !ing_ir_inside(&x->l.scan, i->a, x->l.inner);
        bool read = false;
        for (uint32_t n = 0; outside && n < ing_ir_block_len(x->l.f, k->c); n++) {
            const ing_ir_inst *o = at(x, ing_ir_block_ids(x->l.f, k->c)[n]);
            read |= o->op != ING_OP_STORE && is_access(o) && o->a == i->a;
        }
        if (read && !is_sum(x, k, i->a)) return true;
    }
    return false;
}

/* Bytes of a column that the iterations of the serial loop hand on. */
static uint32_t carried(const finder *x, const ing_ir_inst *k) {
    uint32_t bytes = 0, n = ing_ir_block_len(x->l.f, k->c);
    const uint32_t *ids = ing_ir_block_ids(x->l.f, k->c);
    for (uint32_t j = 0; j < n; j++) {
        const ing_ir_inst *i = at(x, ids[j]);
        if ((i->op != ING_OP_STORE && i->op != ING_OP_ATOMIC) || !is_local(x, i->a))
            continue;
        bool seen = ing_ir_inside(&x->l.scan, i->a, x->l.inner);
        for (uint32_t h = 0; h < j; h++) {
            const ing_ir_inst *o = at(x, ids[h]);
            seen |= (o->op == ING_OP_STORE || o->op == ING_OP_ATOMIC) && o->a == i->a;
        }
        if (!seen)
            bytes +=
                ing_ir_type_size(x->l.m, ing_ir_type(x->l.m, at(x, i->a)->type)->elem);
    }
    return bytes;
}

/* LANES6: an update of one place, by all columns. */
static bool is_common_sum(const finder *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    return i->op == ING_OP_ATOMIC && !(i->flags & ING_IR_PRIVATE) && is_update(x, id) &&
           ing_pass_sum_kind(i->c) == ING_IR_ATOMIC_ADD && is_lane_type(i->type) &&
           ing_ir_root(x->l.f, i->a, NULL)->op == ING_OP_ARRAY &&
           !ing_lanes_varies(&x->l, i->a);
}

static bool inner_inst_suits(finder *x, uint32_t id, bool ragged, bool *gain) {
    const ing_ir_inst *i = at(x, id);
    bool sum = is_common_sum(x, id);
    if (sum) x->l.role[id] |= ING_LANES_SUM;
    x->summed |= sum;
    *gain |= sum;
    if (!is_plain(x, id) || i->op == ING_OP_ROOM) return false;
    if (i->op == ING_OP_ATOMIC && !sum && !(i->flags & (ING_IR_PRIVATE | ING_IR_TALLY)))
        return false;
    if (ragged && !ing_lanes_ragged_ok(&x->l, id)) return false;
    return !is_access(i) || suits(x, i->a, gain);
}

/* A serial loop: LANES1 and LANES2. */
static bool inner_suits(finder *x, const ing_ir_inst *k) {
    uint64_t trips;
    bool gain = false,
         few = ing_ir_trips(x->l.f, k->a, k->b, &trips) && trips <= FEW_TRIPS;
    if (few || !ing_lanes_level_loop(&x->l, x->l.inner)) return false;
    bool ragged = x->l.role[x->l.inner] & ING_LANES_RAGGED;
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, k->c); j++)
        if (!inner_inst_suits(x, ing_ir_block_ids(x->l.f, k->c)[j], ragged, &gain))
            return false;
    x->gain |= gain || has_chain(x, k);
    if (ragged && RAGGED_LANES < x->l.lanes) x->l.lanes = RAGGED_LANES;
    uint32_t most = ING_LANES, bytes = carried(x, k);
    for (uint32_t room = MAX_CARRIED; bytes > room && most > 8; room *= 2) most /= 2;
    if (most > 8 && most < x->l.lanes) x->l.lanes = most;
    return true;
}

/* ---- LANES10 -------------------------------------------------------------------------------- */

/* Does it use what the outer loop makes anew for each column before loop `last`? */
static bool reaches_back(const finder *x, uint32_t id, uint32_t outer, uint32_t last) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->l.f, at(x, id), &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t of = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        if (x->l.scan.home[of] == outer && of < last &&
            at(x, of)->op != ING_OP_ALLOCA && ing_lanes_varies(&x->l, of))
            return true;
    }
    return false;
}

static bool block_reaches_back(const finder *x, uint32_t loop, uint32_t outer) {
    uint32_t block = at(x, loop)->c;
    for (uint32_t k = 0; k < ing_ir_block_len(x->l.f, block); k++)
        if (reaches_back(x, ing_ir_block_ids(x->l.f, block)[k], outer, loop))
            return true;
    return false;
}

/* Beside the loops of a serial loop: what is the same for all columns is made once, so it may not be read
 * from memory. */
static bool beside_suits(finder *x, uint32_t id, uint32_t outer, uint32_t last) {
    bool gain = false;
    x->l.inner = outer;
    if (!inner_inst_suits(x, id, false, &gain) || x->l.role[id] & ING_LANES_SUM)
        return false;
    bool even = at(x, id)->op == ING_OP_LOAD && !ing_lanes_varies(&x->l, id);
    return !even && !reaches_back(x, id, outer, last);
}

static bool nest_suits(finder *x, uint32_t outer) {
    uint32_t block = at(x, outer)->c, last = 0;
    bool ok =
        ing_lanes_level_loop(&x->l, outer) && !(x->l.role[outer] & ING_LANES_RAGGED);
    for (uint32_t k = 0; ok && k < ing_ir_block_len(x->l.f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->l.f, block)[k];
        if (at(x, id)->op != ING_OP_LOOP) {
            ok = beside_suits(x, id, outer, last);
            continue;
        }
        x->l.inner = last = id;
        ok = !(x->l.scan.has[id] & ING_IR_HAS_LOOP) && inner_suits(x, at(x, id)) &&
             !(x->l.role[id] & ING_LANES_RAGGED) && !block_reaches_back(x, id, outer);
    }
    return ok && x->scratch;
}

/* ---- stretches ------------------------------------------------------------------------------ */

/* What instruction i, of that stretch, uses of others; all it uses, if it is made again. */
static void need_uses(finder *x, const ing_ir_inst *i, uint32_t stretch, bool all) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->l.f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t id = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        if (x->stretch[id] && (all || x->stretch[id] != stretch)) x->l.needed[id] = 1;
    }
}

/* Blocks in blocks are two deep at most (LANES10). */
static void need_block(finder *x, uint32_t block, uint32_t stretch) {
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, block); j++) {
        const ing_ir_inst *i = at(x, ing_ir_block_ids(x->l.f, block)[j]);
        need_uses(x, i, stretch, false);
        if (i->op == ING_OP_LOOP) need_block(x, i->c, stretch);
    }
}

/* What each stretch uses of others; false when that cannot be kept in lanes. Backwards, so that
 * all uses of a value are known when it is met. */
static bool find_needed(finder *x, uint32_t body) {
    const uint32_t *ids = ing_ir_block_ids(x->l.f, body);
    for (uint32_t n = ing_ir_block_len(x->l.f, body); n-- > 0;) {
        const ing_ir_inst *i = at(x, ids[n]);
        uint32_t blocks[2], m = ing_ir_inst_blocks(i, blocks);
        bool again = x->l.needed[ids[n]] && ing_lanes_pure(i);
        need_uses(x, i, x->stretch[ids[n]], again);
        if (m) need_block(x, blocks[0], x->stretch[ids[n]]);
        if (!x->l.needed[ids[n]] || i->op != ING_OP_LOAD) continue;
        if (!is_lane_type(i->type)) return false;
        x->kept++;
    }
    return x->kept <= MAX_KEPT;
}

/* Is the parallel loop of this form? */
static bool loop_suits(finder *x) {
    const ing_ir_inst *c = at(x, x->l.loop);
    uint32_t stretch = 1;
    for (uint32_t j = 0; j < ing_ir_block_len(x->l.f, c->c); j++) {
        uint32_t id = ing_ir_block_ids(x->l.f, c->c)[j];
        const ing_ir_inst *i = at(x, id);
        bool ok;
        if (i->op == ING_OP_LOOP) {
            bool nest = x->l.scan.has[id] & ING_IR_HAS_LOOP;
            x->l.inner = id;
            ok = nest ? nest_suits(x, id) : inner_suits(x, i);
        } else {
            ok = i->op == ING_OP_IF ? branch_suits(x, i) : is_plain(x, id);
        }
        if (!ok) return false;
        bool cuts = ing_lanes_cuts(&x->l, id);
        stretch += cuts;
        x->stretch[id] = stretch;
        stretch += cuts;
    }
    return x->gain && find_needed(x, c->c);
}

/* ---- LANES5 ---------------------------------------------------------------------------------- */

static bool writes(const finder *x, const ing_ir_access *a) {
    return at(x, a->id)->op != ING_OP_LOAD;
}

/* May the column of a serial loop do this, as far as its place tells? */
static bool is_columns_own(const finder *x, const ing_ir_access *a) {
    bool own = a->root == ING_OP_ALLOCA && !is_outer(x, a->of);
    if (own || !writes(x, a)) return own || a->root != ING_OP_SCRATCH;
    return a->root == ING_OP_ARRAY && a->elem;
}

/* Whether accesses of two columns keep apart: places of one array tell, arrays are assumed to. */
static bool keep_apart(const finder *x, const ing_ir_access *a,
                       const ing_ir_access *b) {
    bool arrays = a->root == ING_OP_ARRAY && b->root == ING_OP_ARRAY;
    if (!arrays || (!writes(x, a) && !writes(x, b))) return true;
    return a->of != b->of ||
           (a->elem && b->elem &&
            !ing_ir_may_meet(&x->l.scan, x->l.loop, a->elem, b->elem));
}

static bool columns_independent(const finder *x) {
    const ing_ir_scan *s = &x->l.scan;
    uint32_t first = s->first[x->l.loop], end = s->end[x->l.loop];
    if (x->scratch || end - first > MAX_TOUCHED) return false;
    for (uint32_t k = first; k < end; k++) {
        if (!is_columns_own(x, &s->accesses.at[k])) return false;
        for (uint32_t j = first; j <= k; j++)
            if (!keep_apart(x, &s->accesses.at[k], &s->accesses.at[j])) return false;
    }
    return true;
}

/* ---- LANES6 ---------------------------------------------------------------------------------- */

static bool is_sum_of_arrays(const ing_pointees *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    return ing_pass_sum_kind(i->c) == ING_IR_ATOMIC_ADD &&
           !(i->flags & ING_IR_PRIVATE) && ing_pointee_of(x, i->a).op == ING_OP_ARRAY;
}

/* Nothing else touches the arrays whose updates come late. */
static bool sums_stand_alone(finder *x, const ing_pass_options *o) {
    ing_pointees t = {.m = x->l.m, .f = x->l.m->funcs.at[x->l.func], .o = o};
    t.qualifies = is_sum_of_arrays;
    bool ok = ing_pointees_init(&t, true);
    for (uint32_t id = 1; ok && id < x->l.f->insts.len; id++)
        ok = !(x->l.role[id] & ING_LANES_SUM) || ing_pointee_alone(&t, id);
    ing_pointees_fini(&t);
    return ok;
}

/* ---- LANES9 ---------------------------------------------------------------------------------- */

/* Whether an index is the same for each row; `down`: it moves on with the serial loop. */
static bool is_same_for_rows(const finder *x, uint32_t index, uint32_t serial,
                             bool *down) {
    ing_ir_form form;
    ing_ir_form_of(x->l.f, index, &form);
    for (uint32_t k = 0; k < form.n; k++) {
        if (form.of[k] == x->l.loop) continue;
        if (ing_ir_varies(&x->l.scan, form.of[k], x->l.rows)) return false;
        *down |= ing_ir_varies(&x->l.scan, form.of[k], serial);
    }
    return form.known;
}

/* Does a serial loop read a block of columns here, row by row of the array? */
static bool reads_block(const finder *x, const ing_ir_access *a) {
    uint32_t serial = x->l.scan.home[a->id];
    if (a->root != ING_OP_ARRAY || !a->elem || writes(x, a) || serial == x->l.loop ||
        !ing_ir_varies(&x->l.scan, a->ref, x->l.loop))
        return false;
    const ing_ir_inst *e = at(x, a->elem);
    uint32_t rank = ing_ir_type(x->l.m, at(x, e->a)->type)->rank;
    bool down = false;
    for (uint32_t k = 0; k < rank; k++)
        if (!is_same_for_rows(x, x->l.f->extra.at[e->b + k], serial, &down))
            return false;
    return down;
}

static void find_rows(finder *x) {
    const ing_ir_scan *s = &x->l.scan;
    uint32_t rows = s->home[x->l.loop];
    bool any = false,
         ok = rows && at(x, rows)->op == ING_OP_LOOP && !x->scratch && !x->summed;
    x->l.rows = rows;
    for (uint32_t k = 0; ok && k < ing_ir_block_len(x->l.f, at(x, rows)->c); k++) {
        uint32_t id = ing_ir_block_ids(x->l.f, at(x, rows)->c)[k];
        ok = id == x->l.loop || ing_lanes_pure(at(x, id));
    }
    for (uint32_t id = 1; ok && id < x->l.f->insts.len; id++)
        ok = !(x->l.role[id] & ING_LANES_RAGGED);
    for (uint32_t k = s->first[x->l.loop]; ok && k < s->end[x->l.loop]; k++)
        any |= reads_block(x, &s->accesses.at[k]);
    if (!any) x->l.rows = 0;
}

/* ---- the pass ---------------------------------------------------------------------------------- */

/* Is this the loop over columns? */
static bool try_loop(finder *x, uint32_t loop, const ing_pass_options *o) {
    const ing_ir_scan *s = &x->l.scan;
    bool serial = loop != s->parallel;
    if (!loop || !(s->has[loop] & ING_IR_HAS_LOOP)) return false;
    x->l.loop = loop;
    x->kept = 0;
    x->l.lanes = ING_LANES;
    x->scratch = x->gain = false;
    x->summed = false;
    memset(x->l.needed, 0, x->l.f->insts.len);
    memset(x->l.role, 0, x->l.f->insts.len);
    memset(x->stretch, 0, x->l.f->insts.len * sizeof *x->stretch);
    return loop_suits(x) && (!x->summed || sums_stand_alone(x, o)) &&
           (!serial ||
            (columns_independent(x) && ing_pass_assume_all_apart(x->l.m, o, s, loop)));
}

/* The parallel loop if it suits, else the first serial one that does. */
static bool find_loop(finder *x, const ing_pass_options *o, bool *serial) {
    const ing_ir_scan *s = &x->l.scan;
    if (!*serial && try_loop(x, s->parallel, o)) return true;
    *serial = true;
    for (uint32_t k = 0; k < s->loops.len; k++)
        if (s->loops.at[k] != s->parallel && try_loop(x, s->loops.at[k], o))
            return true;
    return false;
}

/* The task's own loop goes in blocks. */
static void set_block(const finder *x, ing_ir_task *t) {
    bool own = at(x, at(x, x->l.loop)->a)->op == ING_OP_TASK_BEGIN;
    if (own && !x->l.rows && !t->row && !t->chunk_shift) t->block = x->l.lanes;
}

/* One loop of the task becomes lanes; false: there is none, or no memory. */
static bool run_once(ing_ir_mod *m, ing_ir_task *task, const ing_pass_options *o,
                     bool *serial, bool *ok) {
    const ing_ir_func *f = m->funcs.at[task->func];
    finder x = {.l = {.m = m, .func = task->func, .f = f}};
    bool suits = false;
    *ok = ing_ir_scan_init(&x.l.scan, f);
    x.l.needed = ing_calloc(f->insts.len, 3);
    x.l.role = x.l.needed ? x.l.needed + f->insts.len : NULL;
    x.l.other = x.l.needed ? x.l.role + f->insts.len : NULL;
    x.stretch = ing_calloc(f->insts.len, sizeof *x.stretch);
    *ok = *ok && x.l.needed && x.stretch;
    if (*ok) ing_lanes_find_stacks(&x.l);
    if (*ok) suits = find_loop(&x, o, serial);
    if (suits && !*serial) find_rows(&x);
    if (suits && !*serial) set_block(&x, task);
    if (suits && x.scratch && m->sized && m->sized < x.l.lanes) m->sized = x.l.lanes;
    if (suits) ing_pass_remark(m, f, at(&x, x.l.loop)->loc, ING_REMARK_LANES, 0);
    if (suits) *ok = ing_lanes_emit(&x.l);
    ing_free(x.l.needed);
    ing_free(x.stretch);
    ing_ir_scan_fini(&x.l.scan);
    return suits && *ok;
}

static bool run_task(ing_ir_mod *m, ing_ir_task *t, const ing_pass_options *o) {
    bool serial = false, ok = true,
         again = ing_ir_has_serial_loops(m->funcs.at[t->func]);
    for (uint32_t k = 0; again && k < MAX_SERIAL; k++)
        again = run_once(m, t, o, &serial, &ok) && serial;
    return ok;
}

ing_status ing_pass_lanes(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    for (uint32_t k = 0; k < m->tasks.len && ing_ir_ok(m); k++)
        if (!run_task(m, &m->tasks.at[k], o))
            return ing_fail(e, ING_MEMORY, "no memory for a pass");
    return ing_pass_done(m, e);
}
