/* Hold: an element that a serial loop updates again and again is held in a local meanwhile.
 * LLVM does not see it: any other array that the loop reads may, for all it knows, lie where
 * the element does, so it writes and reads it each time, and cannot vectorise the loop.
 *
 *   loop j = a, b                      if a < b { load the members into h }
 *     x = load x[j]              =>    loop j = a, b
 *     atomic f[i], x, add                x = load x[j];  atomic h, x, add
 *                                      if a < b { store the members that the loop writes }
 *
 * Runs after shape, before lanes, on the loops of tasks that contain no other. The same for an
 * iteration of the parallel loop, which updates its element in branches or loops:
 *
 *     x[i] += d                          h = load x[i]
 *     if x[i] > 1: x[i] = 1       =>     h += d;  if h > 1: h = 1
 *                                        store x[i], h
 *
 * LLVM must not write where the program does not, and masks each of the stores. Rules
 *  HOLD1 the element is of an array argument, a scalar or a small tensor; its subscript is the
 *     same in all iterations, and every access of the loop to that array has that subscript
 *     and makes its address in the loop: loads, stores and plain updates (ING_IR_PRIVATE) of
 *     members known at compile time. Or it is a load of a serial loop that is never of that
 *     place (ACCESS6), as of L[i, k] with k below j where L[i, j] is held.
 *  HOLD2 memory that the loop would not write is not written, because another iteration of the
 *     parallel loop may do so: every member is written in each iteration, or by nothing but
 *     plain updates, which are nobody else's (D1, D2 in demote.c).
 *  HOLD3 memory that the loop would not touch is not touched, because it may not be there: the
 *     loop runs at least once; and if no access is certain, the subscript is within bounds.
 *  HOLD4 nothing leaves the task from inside of the loop.
 *  HOLD5 every other array that the loop touches is assumed to share no memory with this one
 *     (apart.c); if there is none, LLVM sees it all.
 *  HOLD6 of an iteration: its subscript is made in the body itself before the first use, every
 *     member that is written is so in each iteration, some also in a branch or loop, and no
 *     iteration ends early. */
#include "pass/pass_int.h"

enum {
    MAX_MEMBERS = 16,
    ALL_MEMBERS = (1 << MAX_MEMBERS) - 1,
};

typedef struct place { /* what one loop does to one array argument */
    uint32_t stamp;    /* number of the loop, from 1; others: nothing known yet */
    uint32_t loop;     /* the loop */
    uint32_t array;    /* the argument */
    uint32_t elem;     /* the subscript of the first access; 0 = none that is known */
    uint32_t local;    /* h, of the new function */
    uint16_t used, written, certain; /* members; certain: written in each iteration */
    uint32_t first; /* HOLD6: instruction of the body before which it is loaded */
    bool spoiled;   /* HOLD1 */
    bool again;     /* some write is not made in each iteration */
    bool stores;    /* some write is no plain update */
    bool beside;    /* other places of the array are read */
} place;

typedef struct holder {
    ing_ir_mod *m;
    const ing_ir_func *f;
    const ing_pass_options *o;
    const ing_pass_funcs *funcs;
    ing_ir_scan scan;
    place *places;            /* per argument */
    ing_vec(uint32_t) arrays; /* arguments that the loop touches */
    ing_vec(place) held;      /* of all loops, in order of the text */
    uint32_t stamp, loop;     /* at which we are */
    uint32_t next;            /* emission: number of the next one in `held` */
    ing_vec(place) own;       /* of the iterations of the parallel loop (HOLD6) */
    /* per instruction of that loop: the one of its body that it is in */
    uint32_t *owner;
    bool inside; /* emission: we are in it */
    bool failed;
} holder;

static const ing_ir_inst *at(const holder *x, uint32_t id) {
    return ing_ir_at(x->f, id);
}

/* ---- what a loop touches -------------------------------------------------------------------- */

static place *place_of(holder *x, uint32_t array) {
    place *p = &x->places[array];
    if (p->stamp == x->stamp) return p;
    *p = (place){.stamp = x->stamp, .loop = x->loop, .array = array};
    x->failed |= !ing_vec_push(&x->arrays, array);
    return p;
}

/* Members of the elements of an array that can be held, 0 = it cannot. */
static uint32_t members_of(const holder *x, uint32_t array) {
    ing_type t = ing_ir_type(x->m, x->m->args.at[array].type)->elem;
    const ing_type_info *e = ing_ir_type(x->m, t);
    bool known = e->kind == ING_TYPE_SCALAR || e->kind == ING_TYPE_TENSOR;
    uint32_t n = e->kind == ING_TYPE_TENSOR ? e->rows * e->cols : 1;
    return known && e->dtype != ING_U1 && n <= MAX_MEMBERS ? n : 0;
}

/* Is the subscript there before the loop? */
static bool is_fixed(const holder *x, uint32_t elem) {
    const ing_ir_inst *e = at(x, elem);
    for (uint32_t k = 0; k < e->c; k++) {
        uint32_t index = x->f->extra.at[e->b + k];
        bool made = ing_ir_inside(&x->scan, index, x->loop);
        if (index == x->loop || (made && at(x, index)->op != ING_OP_CONST))
            return false;
    }
    return true;
}

/* The members that an access touches; 0: not known. */
static uint32_t members_at(const holder *x, const ing_ir_access *a) {
    const ing_ir_inst *i = at(x, a->ref);
    if (a->ref == a->elem) return ALL_MEMBERS;
    bool known = i->op == ING_OP_MEMBER && i->a == a->elem && i->b < MAX_MEMBERS;
    return known ? 1u << i->b : 0;
}

/* The place that a serial loop writes is the one that counts. */
static void note_write(holder *x, const ing_ir_access *a) {
    place *p = place_of(x, a->of);
    if (at(x, a->id)->op != ING_OP_LOAD && !p->elem) p->elem = a->elem;
}

/* Is it read from the array, and never at the place? */
static bool is_beside(const holder *x, const place *p, const ing_ir_access *a) {
    return at(x, a->id)->op == ING_OP_LOAD && x->loop != x->scan.parallel && p->elem &&
           a->elem && ing_ir_never_there(&x->scan, x->loop, a->elem, p->elem);
}

/* An access of the loop to an array. */
static void note(holder *x, const ing_ir_access *a) {
    const ing_ir_inst *i = at(x, a->id);
    place *p = place_of(x, a->of);
    if (is_beside(x, p, a)) {
        p->beside = true;
        return;
    }
    bool update = i->op == ING_OP_ATOMIC && i->flags & ING_IR_PRIVATE;
    bool known = i->op == ING_OP_LOAD || i->op == ING_OP_STORE || update;
    uint16_t members = a->elem ? (uint16_t)members_at(x, a) : 0;
    if (!p->elem) p->elem = a->elem;
    bool fixed = x->loop == x->scan.parallel || is_fixed(x, a->elem);
    if (!known || !members || !ing_ir_inside(&x->scan, a->elem, x->loop) || !fixed ||
        !ing_ir_same_place(x->f, p->elem, a->elem))
        p->spoiled = true;
    p->used |= members;
    if (i->op == ING_OP_LOAD) return;
    p->written |= members;
    if (a->sure && x->scan.home[a->id] == x->loop)
        p->certain |= members;
    else
        p->again = true;
    p->stores |= i->op == ING_OP_STORE;
}

/* ---- which are held ---------------------------------------------------------------------------- */

static void assume(const holder *x, const place *p) { /* HOLD5 */
    for (uint32_t k = 0; k < x->arrays.len; k++)
        if (x->arrays.at[k] != p->array)
            ing_pass_assume_apart(x->m, p->array, x->arrays.at[k]);
}

static bool holds(holder *x, const place *p) {
    uint32_t n = members_of(x, p->array), others = x->arrays.len - 1;
    uint32_t all = n ? (1u << n) - 1 : 0;
    if (p->spoiled || !n || !(p->written & all) || (!others && !p->beside))
        return false;
    if (p->stores && (p->written & all) != (p->certain & all)) return false; /* HOLD2 */
    if (!ing_pass_may_assume(x->m, x->o, others)) return false;
    assume(x, p);
    return true;
}

/* What the loop touches; false: it is none whose elements are held. */
static bool look(holder *x, uint32_t loop, uint32_t refuse) {
    const ing_ir_scan *s = &x->scan;
    bool calls = s->has[loop] & ING_IR_HAS_CALL, refused = calls && x->funcs->stops;
    refused |= s->has[loop] & (ING_IR_HAS_STOP | ING_IR_HAS_VOLATILE | refuse);
    if (refused) return false;
    x->loop = loop;
    x->stamp++;
    x->arrays.len = 0;
    for (uint32_t k = s->first[loop]; k < s->end[loop] && loop != s->parallel; k++)
        if (s->accesses.at[k].root == ING_OP_ARRAY) note_write(x, &s->accesses.at[k]);
    for (uint32_t k = s->first[loop]; k < s->end[loop]; k++)
        if (s->accesses.at[k].root == ING_OP_ARRAY) note(x, &s->accesses.at[k]);
    for (uint32_t k = 0; k < x->m->args.len && calls; k++)
        if (x->funcs->named[k]) place_of(x, k)->spoiled = true;
    return !x->failed;
}

static void judge(holder *x, uint32_t loop) {
    if (at(x, loop)->flags & ING_IR_PARALLEL || !look(x, loop, ING_IR_HAS_LOOP)) return;
    for (uint32_t k = 0; k < x->arrays.len && !x->failed; k++) {
        const place *p = &x->places[x->arrays.at[k]];
        bool own = false; /* the iterations of the parallel loop hold it already */
        for (uint32_t j = 0; j < x->own.len; j++) own |= x->own.at[j].array == p->array;
        if (own || !holds(x, p)) continue;
        x->failed |= !ing_vec_push(&x->held, *p);
        ing_pass_remark(x->m, x->f, at(x, loop)->loc, ING_REMARK_HELD, p->array);
    }
}

/* ---- HOLD6 -------------------------------------------------------------------------------------- */

static void mark_owners(holder *x, uint32_t block, uint32_t owner) {
    for (uint32_t k = 0; k < ing_ir_block_len(x->f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k], blocks[2];
        uint32_t n = ing_ir_inst_blocks(at(x, id), blocks);
        x->owner[id] = owner ? owner : id;
        for (uint32_t j = 0; j < n; j++) mark_owners(x, blocks[j], x->owner[id]);
    }
}

/* Is the subscript there before that instruction of the body? */
static bool is_made_before(const holder *x, uint32_t index, uint32_t first) {
    uint32_t body = at(x, x->loop)->c, n = ing_ir_block_len(x->f, body);
    if (at(x, index)->op == ING_OP_CONST || index == x->loop || !x->owner[index])
        return true;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t id = ing_ir_block_ids(x->f, body)[k];
        if (id == first) return false;
        if (id == index) return true;
    }
    return false;
}

/* Where an iteration first names the array. */
static uint32_t first_use(const holder *x, uint32_t array) {
    uint32_t body = at(x, x->loop)->c, n = ing_ir_block_len(x->f, body), first = n;
    for (uint32_t id = 1; id < x->f->insts.len; id++) {
        const ing_ir_inst *i = at(x, id);
        if (i->op != ING_OP_ELEM || !x->owner[id]) continue;
        if (at(x, i->a)->op != ING_OP_ARRAY || at(x, i->a)->a != array) continue;
        for (uint32_t k = 0; k < first; k++)
            if (ing_ir_block_ids(x->f, body)[k] == x->owner[id]) first = k;
    }
    return first < n ? ing_ir_block_ids(x->f, body)[first] : 0;
}

static void judge_iterations(holder *x) {
    const ing_ir_scan *s = &x->scan;
    if (!s->parallel || !look(x, s->parallel, ING_IR_HAS_EXIT)) return;
    mark_owners(x, at(x, s->parallel)->c, 0);
    for (uint32_t k = 0; k < x->arrays.len && !x->failed; k++) {
        place *p = &x->places[x->arrays.at[k]];
        uint32_t n = members_of(x, p->array), all = n ? (1u << n) - 1 : 0;
        bool ok = p->again && !p->spoiled && p->written & all &&
                  (p->written & all) == (p->certain & all);
        p->first = ok ? first_use(x, p->array) : 0;
        ok = ok && p->first;
        for (uint32_t j = 0; ok && j < at(x, p->elem)->c; j++)
            ok = is_made_before(x, x->f->extra.at[at(x, p->elem)->b + j], p->first);
        uint32_t others = x->arrays.len - 1;
        if (!ok || !ing_pass_may_assume(x->m, x->o, others)) continue;
        assume(x, p);
        x->failed |= !ing_vec_push(&x->own, *p);
        ing_pass_remark(x->m, x->f, at(x, s->parallel)->loc, ING_REMARK_OWN, p->array);
    }
}

/* ---- rewriting ---------------------------------------------------------------------------------- */

static uint32_t op2(ing_ir_copy *c, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(c->b, op, ING_VOID, a, b, 0);
}

/* A subscript of the old function, before or after the loop. */
static uint32_t index_of(ing_ir_copy *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (i->op != ING_OP_CONST) return c->map[id];
    return ing_ir_emit(c->b, ING_OP_CONST, i->type, i->a, i->b, 0);
}

static uint32_t array_of(const holder *x, ing_ir_copy *c, const place *p) {
    return ing_ir_emit(c->b, ING_OP_ARRAY, x->m->args.at[p->array].type, p->array, 0,
                       0);
}

/* HOLD3: whether the place may be touched; 0 = surely. */
static uint32_t guard(const holder *x, ing_ir_copy *c, const place *p) {
    const ing_ir_inst *l = at(x, p->loop), *e = at(x, p->elem);
    uint64_t trips = 0;
    bool runs = ing_ir_trips(x->f, l->a, l->b, &trips) && trips;
    uint32_t all = runs ? 0 : op2(c, ING_OP_LT, c->map[l->a], c->map[l->b]);
    if (p->certain) return all;
    uint32_t array = array_of(x, c, p);
    for (uint32_t k = 0; k < e->c; k++) {
        uint32_t old = x->f->extra.at[e->b + k], index = index_of(c, old);
        ing_type t = at(x, old)->type;
        uint32_t zero = ing_ir_const_int(c->b, (ing_dtype)t, 0);
        uint32_t low = op2(c, ING_OP_GE, index, zero);
        uint32_t dim = ing_ir_emit(c->b, ING_OP_DIM, t, array, k, 0);
        uint32_t both = op2(c, ING_OP_AND, low, op2(c, ING_OP_LT, index, dim));
        all = all ? op2(c, ING_OP_AND, all, both) : both;
    }
    return all;
}

static uint32_t elem_again(const holder *x, ing_ir_copy *c, const place *p) {
    const ing_ir_inst *e = at(x, p->elem);
    uint32_t index[ING_MAX_NDIM], array = array_of(x, c, p);
    for (uint32_t k = 0; k < e->c; k++)
        index[k] = index_of(c, x->f->extra.at[e->b + k]);
    return ing_ir_elem(c->b, array, index, e->c);
}

/* Copies members from one place to another. */
static void move(const holder *x, ing_ir_copy *c, const place *p, uint32_t members,
                 bool out) {
    uint32_t elem = elem_again(x, c, p);
    uint32_t from = out ? p->local : elem, to = out ? elem : p->local;
    const ing_type_info *t =
        ing_ir_type(x->m, ing_ir_type(x->m, x->m->args.at[p->array].type)->elem);
    ing_dtype scalar = (ing_dtype)t->dtype;
    ing_type ref = ing_ir_type_ref(x->m, scalar);
    bool tensor = t->kind == ING_TYPE_TENSOR;
    for (uint32_t k = 0; k < members_of(x, p->array); k++) {
        if (!(members >> k & 1)) continue;
        uint32_t a = tensor ? ing_ir_emit(c->b, ING_OP_MEMBER, ref, from, k, 0) : from;
        uint32_t b = tensor ? ing_ir_emit(c->b, ING_OP_MEMBER, ref, to, k, 0) : to;
        uint32_t v = ing_ir_emit(c->b, ING_OP_LOAD, scalar, a, 0, 0);
        ing_ir_emit(c->b, ING_OP_STORE, 0, b, v, 0);
    }
}

static void move_guarded(const holder *x, ing_ir_copy *c, const place *p,
                         uint32_t members, bool out) {
    uint32_t may = guard(x, c, p);
    if (may) ing_ir_block_begin(c->b);
    move(x, c, p, members, out);
    if (may) ing_ir_emit(c->b, ING_OP_IF, 0, may, ing_ir_block_end(c->b), 0);
}

static uint32_t put_local(const holder *x, ing_ir_copy *c, const place *p) {
    ing_type elem = ing_ir_type(x->m, x->m->args.at[p->array].type)->elem;
    return ing_ir_emit(c->b, ING_OP_ALLOCA, ing_ir_type_ref(x->m, elem), 0, 0, 0);
}

/* The parallel loop; what its iterations hold is stored at their end. */
static void put_parallel(holder *x, ing_ir_copy *c, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    uint32_t loop = c->map[id] = ing_ir_loop_reserve(c->b, i->type);
    ing_ir_block_begin(c->b);
    x->inside = true;
    ing_ir_copy_block(c, i->c);
    x->inside = false;
    for (uint32_t k = 0; k < x->own.len; k++)
        move(x, c, &x->own.at[k], x->own.at[k].written, true);
    uint32_t body = ing_ir_block_end(c->b);
    ing_ir_loop_finish(c->b, loop, c->map[i->a], c->map[i->b], body, i->flags);
}

/* In an iteration: loads before the first use; subscripts are the local. */
static bool own_hook(holder *x, ing_ir_copy *c, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    for (uint32_t k = 0; k < x->own.len; k++) {
        place *p = &x->own.at[k];
        if (p->first == id && !p->local) {
            p->local = put_local(x, c, p);
            move(x, c, p, p->used, false);
        }
        bool there = i->op == ING_OP_ELEM && at(x, i->a)->op == ING_OP_ARRAY &&
                     at(x, i->a)->a == p->array;
        if (there) c->map[id] = p->local;
        if (there) return true;
    }
    return false;
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    holder *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    uint32_t first = x->next, n = x->held.len;
    if (id == x->scan.parallel && x->own.len && !x->inside) {
        put_parallel(x, c, id);
        return true;
    }
    if (x->inside && own_hook(x, c, id)) return true;
    if (i->op == ING_OP_ELEM && x->loop && at(x, i->a)->op == ING_OP_ARRAY) {
        for (uint32_t k = first; k-- > 0 && x->held.at[k].loop == x->loop;) {
            if (x->held.at[k].array != at(x, i->a)->a ||
                !ing_ir_same_place(x->f, x->held.at[k].elem, id))
                continue;
            c->map[id] = x->held.at[k].local;
            return true;
        }
    }
    if (first == n || x->held.at[first].loop != id) return false;
    for (; x->next < n && x->held.at[x->next].loop == id; x->next++) {
        place *p = &x->held.at[x->next];
        p->local = put_local(x, c, p);
        move_guarded(x, c, p, p->used, false);
    }
    x->loop = id;
    ing_ir_copy_inst(c, id);
    x->loop = 0;
    for (uint32_t k = first; k < x->next; k++)
        move_guarded(x, c, &x->held.at[k], x->held.at[k].written, true);
    return true;
}

/* At the cost of a look: are there serial loops, or branches with writes? */
static bool may_hold(const ing_ir_func *f) {
    bool branches = false;
    for (uint32_t id = 1; id < f->insts.len; id++)
        branches |= ing_ir_at(f, id)->op == ING_OP_IF;
    return branches || ing_ir_has_serial_loops(f);
}

static bool run_task(holder *x, uint32_t func) {
    ing_ir_func old;
    ing_ir_builder b;
    x->f = x->m->funcs.at[func];
    x->held.len = x->own.len = x->next = 0;
    if (!may_hold(x->f)) return true;
    uint32_t *map = ing_calloc(x->f->insts.len, sizeof *map);
    x->owner = ing_calloc(x->f->insts.len, sizeof *x->owner);
    bool ok = ing_ir_scan_init(&x->scan, x->f) && map && x->owner;
    if (ok) judge_iterations(x);
    for (uint32_t k = 0; ok && k < x->scan.loops.len; k++)
        judge(x, x->scan.loops.at[k]);
    ok = ok && !x->failed;
    if (ok && x->held.len + x->own.len) {
        ing_ir_rebuild_begin(&b, x->m, func, &old);
        x->f = &old;
        x->loop = 0;
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = x};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ing_ir_scan_fini(&x->scan);
    ing_free(map);
    ing_free(x->owner);
    return ok;
}

ing_status ing_pass_hold(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs;
    holder x = {.m = m, .o = o, .funcs = &funcs};
    x.places = ing_calloc((size_t)m->args.len + 1, sizeof *x.places);
    bool ok = ing_pass_funcs_init(&funcs, m) && x.places;
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++)
        ok = run_task(&x, m->tasks.at[k].func);
    ing_pass_funcs_fini(&funcs);
    ing_free(x.places);
    ing_vec_fini(&x.arrays);
    ing_vec_fini(&x.held);
    ing_vec_fini(&x.own);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
