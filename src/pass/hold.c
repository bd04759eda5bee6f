/* Hold: an element that a serial loop updates again and again is held in a local meanwhile.
 * LLVM does not see it: any other array that the loop reads may, for all it knows, lie where
 * the element does, so it writes and reads it each time, and cannot vectorise the loop.
 *
 *   loop j = a, b                      if a < b { load the members into h }
 *     x = load x[j]              =>    loop j = a, b
 *     atomic f[i], x, add                x = load x[j];  atomic h, x, add
 *                                      if a < b { store the members that the loop writes }
 *
 * Runs after rows, before lanes, on the loops of tasks that contain no other. Rules
 *  H1 the element is of an array argument, a scalar or a small tensor; its subscript is the
 *     same in all iterations, and every access of the loop to that array has that subscript
 *     and makes its address in the loop: loads, stores and plain updates (ING_IR_PRIVATE) of
 *     members known at compile time.
 *  H2 memory that the loop would not write is not written, because another iteration of the
 *     parallel loop may do so: every member is written in each iteration, or by nothing but
 *     plain updates, which are nobody else's (D1, D2 in demote.c).
 *  H3 memory that the loop would not touch is not touched, because it may not be there: the
 *     loop runs at least once; and if no access is certain, the subscript is within bounds.
 *  H4 nothing leaves the task from inside of the loop.
 *  H5 every other array that the loop touches is assumed to share no memory with this one
 *     (apart.c); if there is none, LLVM sees it all. */
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
    bool spoiled;                    /* H1 */
    bool stores;                     /* some write is no plain update */
} place;

typedef struct holder {
    ing_ir_mod *m;
    const ing_ir_func *f;
    const ing_pass_options *o;
    const ing_pass_funcs *funcs;
    place *places;            /* per argument */
    ing_vec(uint32_t) named;  /* arguments that funcs name */
    ing_vec(uint32_t) arrays; /* arguments that the loop touches */
    ing_vec(place) held;      /* of all loops, in order of the text */
    uint32_t *inside;         /* per instruction: the loop that it was seen in */
    uint32_t stamp, loop;     /* at which we are */
    uint32_t next;            /* emission: number of the next one in `held` */
    bool exits;               /* the loop may have been left or continued before here */
    bool calls, refused, failed;
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

static bool same_subscript(const holder *x, uint32_t one, uint32_t other) {
    const ing_ir_inst *a = at(x, one), *b = at(x, other);
    for (uint32_t k = 0; k < a->c; k++) {
        uint32_t p = x->f->extra.at[a->b + k], q = x->f->extra.at[b->b + k];
        const ing_ir_inst *i = at(x, p), *j = at(x, q);
        bool equal = i->op == ING_OP_CONST && j->op == ING_OP_CONST && i->a == j->a &&
                     i->b == j->b && i->type == j->type;
        if (p != q && !equal) return false;
    }
    return true;
}

static bool is_fixed(const holder *x, uint32_t elem) {
    const ing_ir_inst *e = at(x, elem);
    for (uint32_t k = 0; k < e->c; k++) {
        uint32_t index = x->f->extra.at[e->b + k];
        if (x->inside[index] == x->loop && at(x, index)->op != ING_OP_CONST)
            return false;
    }
    return true;
}

/* The array argument behind an address, or an ARRAY itself; NULL: memory of the launch. */
static place *root(holder *x, uint32_t ref, uint32_t *elem) {
    const ing_ir_inst *i = at(x, ref);
    *elem = 0;
    for (; i->op == ING_OP_MEMBER || i->op == ING_OP_MEMBER_DYN; i = at(x, ref))
        ref = i->a;
    if (i->op == ING_OP_ELEM) {
        *elem = ref;
        i = at(x, i->a);
    }
    if (i->op == ING_OP_ARRAY) return place_of(x, i->a);
    x->refused |= i->op == ING_OP_ELEM || i->op == ING_OP_PARAM;
    return NULL;
}

static void spoil(holder *x, uint32_t ref) {
    uint32_t elem;
    place *p = root(x, ref, &elem);
    if (p) p->spoiled = true;
}

typedef struct access {
    uint32_t ref;
    bool writes, stores, certain;
} access;

static void note(holder *x, const access *a) {
    uint32_t elem, members = ALL_MEMBERS;
    place *p = root(x, a->ref, &elem);
    if (!p) return;
    if (a->ref != elem) { /* one member of a tensor, known at compile time */
        const ing_ir_inst *i = at(x, a->ref);
        bool known = i->op == ING_OP_MEMBER && i->a == elem && i->b < MAX_MEMBERS;
        p->spoiled |= !known;
        members = known ? 1u << i->b : 0;
    }
    if (!p->elem) p->elem = elem;
    p->spoiled |= !elem || x->inside[elem] != x->loop || !is_fixed(x, elem) ||
                  !same_subscript(x, p->elem, elem);
    p->used |= (uint16_t)members;
    if (a->writes) p->written |= (uint16_t)members;
    if (a->writes && a->certain) p->certain |= (uint16_t)members;
    p->stores |= a->stores;
}

static void note_inst(holder *x, const ing_ir_inst *i, bool top) {
    bool certain = top && !x->exits;
    switch (i->op) {
    case ING_OP_LOAD:
        x->refused |= (i->flags & ING_IR_VOLATILE) != 0;
        note(x, &(access){.ref = i->a});
        break;
    case ING_OP_STORE:
        note(x, &(access){
                    .ref = i->a, .writes = true, .stores = true, .certain = certain});
        break;
    case ING_OP_ATOMIC:
        if (i->flags & ING_IR_PRIVATE)
            note(x, &(access){.ref = i->a, .writes = true, .certain = certain});
        else
            spoil(x, i->a);
        break;
    case ING_OP_CAS: spoil(x, i->a); break;
    case ING_OP_CALL:
        x->calls = true;
        for (uint32_t k = 0; k < i->c; k++) {
            uint32_t arg = x->f->extra.at[i->b + k], kind = at(x, arg)->op;
            bool address = kind == ING_OP_ARRAY || kind == ING_OP_ELEM ||
                           kind == ING_OP_MEMBER || kind == ING_OP_MEMBER_DYN;
            if (address) spoil(x, arg);
        }
        break;
    case ING_OP_BREAK:
    case ING_OP_CONTINUE: x->exits = true; break;
    case ING_OP_CHECK:
    case ING_OP_RETURN: x->refused = true; break;
    default: break;
    }
}

static void walk(holder *x, uint32_t block, bool top) {
    for (uint32_t k = 0; k < ing_ir_block_len(x->f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k], blocks[2];
        uint32_t n = ing_ir_inst_blocks(at(x, id), blocks);
        x->inside[id] = x->loop;
        note_inst(x, at(x, id), top);
        for (uint32_t j = 0; j < n; j++) walk(x, blocks[j], false);
    }
}

/* ---- which are held ---------------------------------------------------------------------------- */

static bool holds(holder *x, const place *p) {
    uint32_t n = members_of(x, p->array), others = x->arrays.len - 1;
    uint32_t all = n ? (1u << n) - 1 : 0;
    if (p->spoiled || !n || !(p->written & all) || !others) return false;
    if (p->stores && (p->written & all) != (p->certain & all)) return false; /* H2 */
    if (!ing_pass_may_assume(x->m, x->o, others)) return false;
    for (uint32_t k = 0; k < x->arrays.len; k++)
        if (x->arrays.at[k] != p->array)
            ing_pass_assume_apart(x->m, p->array, x->arrays.at[k]);
    return true;
}

static void judge(holder *x, uint32_t loop) {
    x->loop = loop;
    x->stamp++;
    x->arrays.len = 0;
    x->exits = x->calls = x->refused = false;
    x->inside[loop] = loop;
    walk(x, at(x, loop)->c, true);
    if (x->calls && x->funcs->stops) return;
    for (uint32_t k = 0; k < x->named.len && x->calls; k++)
        place_of(x, x->named.at[k])->spoiled = true;
    for (uint32_t k = 0; k < x->arrays.len && !x->refused && !x->failed; k++) {
        const place *p = &x->places[x->arrays.at[k]];
        if (holds(x, p)) x->failed |= !ing_vec_push(&x->held, *p);
    }
}

/* Judges the loops that contain no other; tells whether there are any. */
static bool find(holder *x, uint32_t block) {
    bool any = false;
    for (uint32_t k = 0; k < ing_ir_block_len(x->f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k], blocks[2];
        const ing_ir_inst *i = at(x, id);
        uint32_t n = ing_ir_inst_blocks(i, blocks);
        bool inner = false;
        for (uint32_t j = 0; j < n; j++) inner |= find(x, blocks[j]);
        bool serial = i->op == ING_OP_LOOP && !(i->flags & ING_IR_PARALLEL);
        if (serial && !inner) judge(x, id);
        any |= inner || i->op == ING_OP_LOOP;
    }
    return any;
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

/* H3: whether the place may be touched; 0 = surely. */
static uint32_t guard(const holder *x, ing_ir_copy *c, const place *p) {
    const ing_ir_inst *l = at(x, p->loop), *from = at(x, l->a), *to = at(x, l->b);
    const ing_ir_inst *e = at(x, p->elem);
    bool runs = from->op == ING_OP_CONST && to->op == ING_OP_CONST &&
                (int64_t)ing_ir_const_bits(from) < (int64_t)ing_ir_const_bits(to);
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

static bool hook(ing_ir_copy *c, uint32_t id) {
    holder *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    uint32_t first = x->next, n = x->held.len;
    if (i->op == ING_OP_ELEM && x->loop && at(x, i->a)->op == ING_OP_ARRAY) {
        for (uint32_t k = first; k-- > 0 && x->held.at[k].loop == x->loop;) {
            if (x->held.at[k].array != at(x, i->a)->a) continue;
            c->map[id] = x->held.at[k].local;
            return true;
        }
    }
    if (first == n || x->held.at[first].loop != id) return false;
    for (; x->next < n && x->held.at[x->next].loop == id; x->next++) {
        place *p = &x->held.at[x->next];
        ing_type elem = ing_ir_type(x->m, x->m->args.at[p->array].type)->elem;
        ing_type ref = ing_ir_type_ref(x->m, elem);
        p->local = ing_ir_emit(c->b, ING_OP_ALLOCA, ref, 0, 0, 0);
        move_guarded(x, c, p, p->used, false);
    }
    x->loop = id;
    ing_ir_copy_inst(c, id);
    x->loop = 0;
    for (uint32_t k = first; k < x->next; k++)
        move_guarded(x, c, &x->held.at[k], x->held.at[k].written, true);
    return true;
}

static bool run_task(holder *x, uint32_t func) {
    ing_ir_func old;
    ing_ir_builder b;
    x->f = x->m->funcs.at[func];
    x->held.len = x->next = 0;
    x->inside = ing_calloc(x->f->insts.len, sizeof *x->inside);
    uint32_t *map = ing_calloc(x->f->insts.len, sizeof *map);
    bool ok = x->inside && map;
    if (ok) find(x, x->f->body);
    ok = ok && !x->failed;
    if (ok && x->held.len) {
        ing_ir_rebuild_begin(&b, x->m, func, &old);
        x->f = &old;
        x->loop = 0;
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = x};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ing_free(x->inside);
    ing_free(map);
    return ok;
}

ing_status ing_pass_hold(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs;
    holder x = {.m = m, .o = o, .funcs = &funcs};
    x.places = ing_calloc((size_t)m->args.len + 1, sizeof *x.places);
    bool ok = ing_pass_funcs_init(&funcs, m) && x.places;
    for (uint32_t k = 0; k < m->args.len && ok; k++)
        ok = !funcs.named[k] || ing_vec_push(&x.named, k);
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++)
        ok = run_task(&x, m->tasks.at[k].func);
    ing_pass_funcs_fini(&funcs);
    ing_free(x.places);
    ing_vec_fini(&x.named);
    ing_vec_fini(&x.arrays);
    ing_vec_fini(&x.held);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
