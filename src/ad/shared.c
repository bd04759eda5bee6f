/* Locals of the kernel that iterations of a parallel loop share. Called by reverse.c: after exits.c to give
 * such loops locals of their own, and before need.c to refuse the others. Rules
 *  SHARED1 who won a minimum or maximum is told by what the loop left. So a loop that does nothing else
 *     to a local works on one of its own, which takes what the local holds before the loop and is put
 *     back after it: nobody changes that one later.
 *  SHARED2 `m = m + v` is an update like `m += v`, as for the reductions of src/pass.
 *  SHARED3 all iterations of a loop read it, add to it, look for its least or for its greatest value, or one
 *     iteration, in a branch, stores to it. Anything else depends on the order of iterations.
 *  SHARED4 so does an element to which each iteration stores a number of its own. */
#include "ad/ad_int.h"

#include <string.h>

enum { /* what is done to a local */
       LOADED = 1,
       SUMMED = 2,
       LEAST = 4,
       GREATEST = 8,
       STORED = 16,
       OTHER = 32
};

enum { GONE = 3 };

/* What an update does; those whose result is used depend on the order. */
static uint8_t update_of(const ing_ir_inst *i, bool used) {
    switch (used ? ING_IR_ATOMIC_N : i->c) {
    case ING_IR_ATOMIC_ADD:
    case ING_IR_ATOMIC_SUB: return SUMMED;
    case ING_IR_ATOMIC_MIN: return LEAST;
    case ING_IR_ATOMIC_MAX: return GREATEST;
    default: return OTHER;
    }
}

/* How often each value is used: 0, 1 or more. */
static void find_used(const ing_ir_func *f, uint8_t *used) {
    for (uint32_t id = 1; id < f->insts.len; id++) {
        ing_ir_uses u;
        ing_ir_inst_uses(f, ing_ir_at(f, id), &u);
        for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
            uint8_t *of = &used[k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed]];
            *of = *of ? 2 : 1;
        }
    }
}

/* ---- SHARED1, SHARED2 -------------------------------------------------------------------------- */

typedef struct own { /* a local that a loop gets its own of */
    uint32_t local, outer;
} own;

typedef struct sharer {
    ing_ir_mod *m;
    const ing_ir_func *f;
    ing_ir_builder b;
    ing_ir_copy copy;
    uint8_t *inside; /* per instruction: it stands in the loop that is looked at */
    uint32_t *block; /* per instruction there: that it stands in */
    uint8_t *used;
    uint8_t *does; /* per ALLOCA: what that loop does to it */
    /* of a STORE: which operand of the sum is the old value, plus 1; of the sum and what loads that value:
     * GONE */
    uint8_t *sums;
    ing_vec(own) own;
} sharer;

static void enter(sharer *x, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(x->f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k], blocks[2];
        uint32_t n = ing_ir_inst_blocks(ing_ir_at(x->f, id), blocks);
        x->inside[id] = 1;
        x->block[id] = block;
        for (uint32_t j = 0; j < n; j++) enter(x, blocks[j]);
    }
}

/* Something is done through an address, which must be made in the loop to be made anew. */
static void note(sharer *x, uint32_t ref, uint8_t does) {
    const ing_ir_inst *i = ing_ir_at(x->f, ref);
    for (; ing_ir_is_within(i); i = ing_ir_at(x->f, i->a))
        if (!x->inside[ing_ir_id_of(x->f, i)]) does = OTHER;
    if (i->op == ING_OP_ALLOCA && !x->inside[ing_ir_id_of(x->f, i)])
        x->does[ing_ir_id_of(x->f, i)] |= does;
}

static bool goes_to(const sharer *x, const ing_ir_inst *i, uint32_t local) {
    bool one = i->op == ING_OP_LOAD || i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC;
    uint32_t n = i->op == ING_OP_CALL ? i->c : one;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t ref = one ? i->a : x->f->extra.at[i->b + k];
        if (ing_ir_id_of(x->f, ing_ir_root(x->f, ref, NULL)) == local) return true;
    }
    return false;
}

/* Is value `old` what the local held before the STORE, and is nothing done to it in between? */
static bool is_old(const sharer *x, uint32_t old, uint32_t store) {
    const ing_ir_inst *i = ing_ir_at(x->f, old);
    uint32_t local = ing_ir_at(x->f, store)->a;
    if (i->op != ING_OP_LOAD || i->a != local || x->used[old] != 1 || !x->inside[old] ||
        x->block[old] != x->block[store])
        return false;
    for (uint32_t id = old + 1; id < store; id++)
        if (goes_to(x, ing_ir_at(x->f, id), local)) return false;
    return true;
}

static void find_sum(sharer *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    if (i->op != ING_OP_STORE || ing_ir_at(x->f, i->a)->op != ING_OP_ALLOCA ||
        x->inside[i->a] || !x->inside[i->b] || x->used[i->b] != 1)
        return;
    const ing_ir_inst *sum = ing_ir_at(x->f, i->b);
    for (uint32_t k = 0; k < 2; k++) {
        bool fits = sum->op == ING_OP_ADD || (sum->op == ING_OP_SUB && k == 0);
        uint32_t old = k ? sum->b : sum->a;
        if (!fits || !is_old(x, old, id)) continue;
        x->sums[id] = (uint8_t)(k + 1);
        x->sums[i->b] = x->sums[old] = GONE;
        return;
    }
}

static void look_at(sharer *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    if (x->sums[id]) {
        if (i->op == ING_OP_STORE) note(x, i->a, SUMMED);
        return;
    }
    if (i->op == ING_OP_ATOMIC) note(x, i->a, update_of(i, x->used[id]));
    if (i->op == ING_OP_LOAD || i->op == ING_OP_STORE) note(x, i->a, OTHER);
    for (uint32_t k = 0; i->op == ING_OP_CALL && k < i->c; k++) {
        uint32_t arg = x->f->extra.at[i->b + k];
        if (ing_ad_is_ref(x->m, ing_ir_at(x->f, arg)->type)) note(x, arg, OTHER);
    }
}

static void find_own(sharer *x, const ing_ir_inst *loop) {
    uint32_t len = x->f->insts.len;
    memset(x->inside, 0, len);
    memset(x->does, 0, len);
    x->own.len = 0;
    enter(x, loop->c);
    for (uint32_t id = 1; id < len; id++)
        if (x->inside[id]) find_sum(x, id);
    for (uint32_t id = 1; id < len; id++)
        if (x->inside[id]) look_at(x, id);
    for (uint32_t id = 1; id < len; id++) {
        if (x->does[id] != LEAST && x->does[id] != GREATEST) continue;
        if (!ing_ad_is_real(x->m, ing_ir_at(x->f, id)->type)) continue;
        if (!ing_vec_push(&x->own, ((own){.local = id}))) x->m->arena.failed = true;
    }
}

static void move(sharer *x, uint32_t to, uint32_t from) {
    ing_type elem = ing_ir_type(x->m, ing_ir_at(x->b.func, from)->type)->elem;
    uint32_t v = ing_ir_emit(&x->b, ING_OP_LOAD, elem, from, 0, 0);
    ing_ir_emit(&x->b, ING_OP_STORE, 0, to, v, 0);
}

/* The loop between what takes the locals and what puts them back. */
static void put_loop(sharer *x, const ing_ir_inst *i, uint32_t id) {
    uint32_t *map = x->copy.map;
    uint32_t at = ing_ir_loop_reserve(&x->b, i->type);
    map[id] = at;
    ing_ir_block_begin(&x->b);
    ing_ir_copy_block(&x->copy, i->c);
    ing_ir_loop_finish(&x->b, at, map[i->a], map[i->b], ing_ir_block_end(&x->b),
                       i->flags);
}

static void put_sum(sharer *x, const ing_ir_inst *i, uint8_t old) {
    const ing_ir_inst *sum = ing_ir_at(x->f, i->b);
    uint32_t v = x->copy.map[old == 1 ? sum->b : sum->a];
    ing_ir_atomic how = sum->op == ING_OP_ADD ? ING_IR_ATOMIC_ADD : ING_IR_ATOMIC_SUB;
    ing_ir_emit(&x->b, ING_OP_ATOMIC, sum->type, x->copy.map[i->a], v, how);
}

static void put_parallel(sharer *x, const ing_ir_inst *i, uint32_t id) {
    uint32_t *map = x->copy.map;
    find_own(x, i);
    for (uint32_t k = 0; k < x->own.len; k++) {
        uint32_t local = x->own.at[k].local;
        x->own.at[k].outer = map[local];
        map[local] =
            ing_ir_emit(&x->b, ING_OP_ALLOCA, ing_ir_at(x->f, local)->type, 0, 0, 0);
        move(x, map[local], x->own.at[k].outer);
    }
    put_loop(x, i, id);
    x->b.loc = i->loc;
    for (uint32_t k = 0; k < x->own.len; k++) {
        own o = x->own.at[k];
        move(x, o.outer, map[o.local]);
        map[o.local] = o.outer;
    }
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    sharer *x = c->self;
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    bool parallel = i->op == ING_OP_LOOP && i->flags & ING_IR_PARALLEL;
    x->b.loc = i->loc;
    if (parallel)
        put_parallel(x, i, id);
    else if (x->sums[id] && x->sums[id] != GONE)
        put_sum(x, i, x->sums[id]);
    return parallel || x->sums[id];
}

ing_status ing_ad_own_locals(ing_ir_mod *m, ing_err *e) {
    uint32_t len = m->funcs.at[0]->insts.len;
    sharer x = {.m = m};
    uint8_t *bytes = ing_calloc(len, 4);
    uint32_t *map = ing_calloc((size_t)2 * len, sizeof *map);
    if (bytes && map) {
        ing_ir_func old;
        x.block = map + len;
        x.inside = bytes;
        x.used = bytes + len;
        x.does = bytes + 2 * (size_t)len;
        x.sums = bytes + 3 * (size_t)len;
        find_used(m->funcs.at[0], x.used);
        ing_ir_rebuild_begin(&x.b, m, 0, &old);
        x.f = &old;
        x.copy = (ing_ir_copy){
            .b = &x.b, .from = &old, .map = map, .hook = hook, .self = &x};
        ing_ir_copy_block(&x.copy, old.body);
        ing_ir_rebuild_end(&x.b, &old);
    }
    bool ok = bytes && map && ing_ir_ok(m);
    ing_free(bytes);
    ing_free(map);
    ing_vec_fini(&x.own);
    return ok ? ING_OK : ing_ad_no_memory(e);
}

/* ---- SHARED3 ---------------------------------------------------------------------------------- */

typedef struct share { /* of a local by a loop */
    uint32_t loop, local;
    uint32_t stores; /* instructions that store, or call what does */
    uint8_t does;
} share;

typedef struct seer {
    ing_ad *ad;
    const ing_ad_fn *n;
    uint8_t **does; /* per func and parameter */
    uint8_t *used;
    uint8_t *varies; /* the value may be another one in each iteration */
    ing_vec(share) shares;
    uint32_t bad; /* the instruction that is refused, 0 = none */
} seer;

/* What funcs do through each of their parameters; callees come first. */
static bool find_params(seer *x, uint32_t func) {
    const ing_ir_mod *m = x->ad->m;
    const ing_ir_func *f = m->funcs.at[func];
    uint8_t *used = ing_calloc(f->insts.len, 1);
    uint8_t *does = ING_NEW_ARRAY(&x->ad->m->arena, f->n_params + 1, uint8_t);
    if (used && does) {
        memset(does, 0, f->n_params + 1);
        find_used(f, used);
    }
    for (uint32_t id = 1; used && does && id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id), *root;
        for (uint32_t k = 0; i->op == ING_OP_CALL && k < i->c; k++) {
            root = ing_ir_root(f, f->extra.at[i->b + k], NULL);
            if (root->op == ING_OP_PARAM) does[root->a] |= x->does[i->a][k];
        }
        if (i->op != ING_OP_LOAD && i->op != ING_OP_STORE && i->op != ING_OP_ATOMIC)
            continue;
        root = ing_ir_root(f, i->a, NULL);
        if (root->op != ING_OP_PARAM) continue;
        does[root->a] |= i->op == ING_OP_LOAD    ? LOADED
                         : i->op == ING_OP_STORE ? STORED
                                                 : update_of(i, used[id]);
    }
    ing_free(used);
    x->does[func] = does;
    return used && does;
}

static bool is_allowed(const seer *x, const share *s, bool in_branch) {
    switch (s->does) {
    case LOADED:
    case SUMMED: return true;
    case LEAST:
    case GREATEST: return x->n->region[s->local] == 0 && !s->stores;
    case STORED: return s->stores == 1 && in_branch;
    default: return false;
    }
}

/* Instruction `id` in a parallel loop does something to what `ref` points into. */
static bool see(seer *x, uint32_t loop, uint32_t id, uint32_t ref, uint8_t does) {
    const ing_ad_fn *n = x->n;
    uint32_t local = ing_ad_root(n, ref), around = local, k = 0;
    if (!does || ing_ir_at(n->f, local)->op != ING_OP_ALLOCA ||
        !ing_ad_has_shadow(x->ad, n, ref))
        return true;
    while (around && around != loop) around = n->parent[around];
    if (around) return true; /* one of each iteration */
    while (k < x->shares.len &&
           (x->shares.at[k].loop != loop || x->shares.at[k].local != local))
        k++;
    share new = {.loop = loop, .local = local};
    if (k == x->shares.len && !ing_vec_push(&x->shares, new)) return false;
    share *s = &x->shares.at[k];
    s->does |= does;
    s->stores += (does & STORED) != 0;
    if (!x->bad && !is_allowed(x, s, n->parent[id] != loop)) x->bad = id;
    return true;
}

/* Made of the index, of locals of the iteration, or of what those lead to? */
static void find_varies(seer *x, uint32_t loop, uint32_t id) {
    const ing_ir_func *f = x->n->f;
    const ing_ir_inst *i = ing_ir_at(f, id);
    ing_ir_uses u;
    ing_ir_inst_uses(f, i, &u);
    bool any = i->op == ING_OP_LOOP || i->op == ING_OP_ALLOCA || i->op == ING_OP_RANDOM;
    for (uint32_t k = 0; k < u.n_fixed; k++)
        any |= u.fixed[k] == loop || x->varies[u.fixed[k]];
    for (uint32_t k = 0; k < u.n_list; k++)
        any |= u.list[k] == loop || x->varies[u.list[k]];
    x->varies[id] = any;
}

/* SHARED4 */
static bool is_last(const seer *x, uint32_t loop, uint32_t id) {
    const ing_ad_fn *n = x->n;
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    return i->op == ING_OP_STORE && n->parent[id] == loop &&
           n->mark[id] & ING_AD_LIVE &&
           ing_ad_is_array(x->ad->m, ing_ir_at(n->f, ing_ad_root(n, i->a))->type) &&
           x->varies[i->b] && !x->varies[i->a];
}

static bool see_inst(seer *x, uint32_t loop, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    bool ok = true;
    find_varies(x, loop, id);
    if (!x->bad && is_last(x, loop, id)) x->bad = id;
    if (i->op == ING_OP_LOAD) ok = see(x, loop, id, i->a, LOADED);
    if (i->op == ING_OP_STORE) ok = see(x, loop, id, i->a, STORED);
    if (i->op == ING_OP_ATOMIC) ok = see(x, loop, id, i->a, update_of(i, x->used[id]));
    for (uint32_t k = 0; ok && i->op == ING_OP_CALL && k < i->c; k++) {
        uint32_t arg = x->n->f->extra.at[i->b + k];
        if (ing_ad_is_ref(x->ad->m, ing_ir_at(x->n->f, arg)->type))
            ok = see(x, loop, id, arg, x->does[i->a][k]);
    }
    return ok;
}

static bool see_all(seer *x) {
    const ing_ad_fn *n = x->n;
    for (uint32_t k = 0; k < x->ad->n_funcs; k++)
        if (!find_params(x, x->ad->order[k])) return false;
    find_used(n->f, x->used);
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        uint32_t loop = n->region[id];
        while (loop && !(ing_ir_at(n->f, loop)->flags & ING_IR_PARALLEL))
            loop = n->region[loop];
        if (n->block[id] && loop && !see_inst(x, loop, id)) return false;
    }
    return true;
}

ing_status ing_ad_check_shared(ing_ad *ad, const ing_ad_fn *n, ing_err *e) {
    ing_ir_mod *m = ad->m;
    seer x = {.ad = ad, .n = n};
    x.does = ING_NEW_ARRAY(&m->arena, ad->n_funcs, uint8_t *);
    x.used = ing_calloc(n->f->insts.len, 2);
    x.varies = x.used ? x.used + n->f->insts.len : NULL;
    bool ok = x.does && x.used && see_all(&x);
    ing_free(x.used);
    ing_vec_fini(&x.shares);
    if (!ok) return ing_ad_no_memory(e);
    if (!x.bad) return ING_OK;
    m->remedy = "an inner loop runs in order: `for _ in range(1):` around it";
    return ing_ad_refuse(m, 0, ing_ir_at(n->f, x.bad)->loc, e,
                         "a local that iterations of a parallel loop change and read, "
                         "or what they store to in an order that nobody knows");
}
