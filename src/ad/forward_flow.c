/* Which values of a kernel and of its funcs may have a dual: those that an array with a
 * companion reaches, through locals and calls too. A local has a shadow if a dual is ever
 * stored there, whenever that is: loops bring it to what stands before. Versions of funcs are
 * made as calls ask for them; sweeps over all of them end when nothing changes, and all that
 * ever changes is that something gets a dual. Called by forward.c. */
#include "ad/forward.h"

#include <string.h>

bool ing_fwd_floats(const ing_ir_mod *m, ing_type t) { /* types are not deep */
    const ing_type_info *i = ing_ir_type(m, t);
    if (i->kind == ING_TYPE_SCALAR || i->kind == ING_TYPE_TENSOR)
        return ing_dtype_is_float((ing_dtype)i->dtype);
    if (i->kind != ING_TYPE_STRUCT) return false;
    for (uint32_t k = 0; k < i->n_members; k++)
        if (ing_fwd_floats(m, i->members[k])) return true;
    return false;
}

typedef struct flow { /* the walk over one version */
    ing_fwd *w;
    ing_fwd_version *v;
    const ing_ir_func *f;
    uint32_t parallel; /* the parallel loop around, 0 = none */
    bool changed;
} flow;

static const ing_ir_inst *at(const flow *w, uint32_t id) {
    return ing_ir_at(w->f, id);
}

static bool has(const flow *w, uint32_t id) {
    return w->v->state[id] & ING_FWD_DUAL;
}

static void set(flow *w, uint32_t id, bool dual) {
    if (!dual || has(w, id)) return;
    w->v->state[id] |= ING_FWD_DUAL;
    w->v->touched = w->changed = true;
}

static bool stopped(const flow *w, uint32_t id) {
    return w->v->state[id] & ING_FWD_STOP;
}

static void stop(flow *w, uint32_t id, bool is) { /* comes before all that use it */
    if (is) w->v->state[id] |= ING_FWD_STOP;
}

static uint32_t root_of(const flow *w, uint32_t ref) {
    while (at(w, ref)->op == ING_OP_MEMBER || at(w, ref)->op == ING_OP_MEMBER_DYN)
        ref = at(w, ref)->a;
    return ref;
}

/* A dual is stored there. An array without a companion is a constant: it drops them. */
static void mark(flow *w, uint32_t ref) {
    uint32_t root = root_of(w, ref);
    const ing_ir_inst *i = at(w, root);
    if (i->op == ING_OP_ALLOCA) set(w, root, true);
    if (i->op == ING_OP_PARAM && !w->v->shadow[i->a]) {
        w->v->shadow[i->a] = i->type;
        w->v->touched = w->changed = true;
    }
}

/* ---- versions -------------------------------------------------------------------------- */

static ing_type shadow_type(const ing_fwd *w, const ing_fwd_version *v, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(v->f, id);
    if (!(v->state[id] & ING_FWD_DUAL)) return 0;
    uint32_t stop = v->state[id] & ING_FWD_STOP ? ING_AD_STOPPED : 0;
    if (i->op == ING_OP_ARRAY)
        return w->m->args.at[ING_FWD_COMPANION(w, i->a) - 1].type | stop;
    return i->op == ING_OP_PARAM ? v->shadow[i->a] : i->type | stop;
}

static ing_fwd_version *version_new(ing_fwd *w, uint32_t func, const ing_type *key) {
    const ing_ir_func *f = w->m->funcs.at[func];
    ing_fwd_version *v = ING_NEW(&w->arena, ing_fwd_version);
    ing_type *shadow = ING_NEW_ARRAY(&w->arena, f->n_params + 1, ing_type);
    uint8_t *state = ING_NEW_ARRAY(&w->arena, f->insts.len, uint8_t);
    if (!v || !shadow || !state) return NULL;
    if (f->n_params) memcpy(shadow, key, f->n_params * sizeof *key);
    *v = (ing_fwd_version){
        .func = func, .f = f, .key = key, .shadow = shadow, .state = state};
    v->next = w->first[func];
    if (!ing_vec_push(&w->versions, v)) return NULL;
    w->first[func] = v;
    return v;
}

ing_fwd_version *ing_fwd_callee(ing_fwd *w, const ing_fwd_version *from, uint32_t id,
                                bool make) {
    const ing_ir_func *f = from->f;
    const ing_ir_inst *i = ing_ir_at(f, id);
    ing_type *key = ING_NEW_ARRAY(&w->arena, i->c + 1, ing_type);
    if (!key) return NULL;
    for (uint32_t k = 0; k < i->c; k++)
        key[k] = shadow_type(w, from, f->extra.at[i->b + k]);
    for (ing_fwd_version *v = w->first[i->a]; v; v = v->next)
        if (memcmp(v->key, key, i->c * sizeof *key) == 0) return v;
    ing_fwd_version *v = make ? version_new(w, i->a, key) : NULL;
    if (v) {
        v->caller = from;
        v->loc = i->loc;
    }
    return v;
}

/* ---- one instruction --------------------------------------------------------------------- */

static void pair(flow *w) {
    w->changed |= !w->v->pairs;
    w->v->pairs = true;
    if (w->parallel) set(w, w->parallel, true);
}

static void call(flow *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    const ing_fwd_version *to = ing_fwd_callee(w->w, w->v, id, true);
    if (!to) return;
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = w->f->extra.at[i->b + k];
        if (to->shadow[k] && !has(w, arg)) mark(w, arg);
    }
    set(w, id, to->result);
    if (to->touched && !w->v->touched) w->v->touched = w->changed = true;
    if (to->pairs) pair(w);
}

/* Do value and dual of the place change one after the other? Sums may: each is right in any
 * order of the updates, as long as nobody looks at what was there before. */
static bool is_pair(const flow *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    if (w->v->state[root_of(w, i->a)] & ING_FWD_OWN) return false;
    if (w->v->state[id] & ING_FWD_USED) return true;
    if (i->c == ING_IR_ATOMIC_MUL) return has(w, i->b);
    return i->c != ING_IR_ATOMIC_ADD && i->c != ING_IR_ATOMIC_SUB;
}

/* Asked only as long as the loop is parallel yet. */
static bool is_own(flow *w, uint32_t id) {
    if (!w->parallel) return false;
    return has(w, w->parallel) || ing_fwd_own(w->w, w->parallel, id);
}

static void memory(flow *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    const ing_ir_mod *m = w->w->m;
    switch (i->op) {
    case ING_OP_ARRAY:
        set(w, id, w->w->companion[i->a]);
        stop(w, id, w->w->companion[i->a] & ING_AD_STOPPED);
        break;
    case ING_OP_PARAM:
        set(w, id, w->v->shadow[i->a]);
        stop(w, id, w->v->shadow[i->a] & ING_AD_STOPPED);
        break;
    case ING_OP_ALLOCA:
        if (w->parallel || w->f->kind == ING_IR_FUNC) w->v->state[id] |= ING_FWD_OWN;
        break;
    case ING_OP_ELEM:
        set(w, id, has(w, i->a));
        stop(w, id, stopped(w, i->a));
        break;
    case ING_OP_MEMBER:
    case ING_OP_MEMBER_DYN:
        stop(w, id, stopped(w, i->a));
        set(w, id, has(w, i->a) && ing_fwd_floats(m, ing_ir_type(m, i->type)->elem));
        break;
    case ING_OP_STORE:
        if (has(w, i->b)) mark(w, i->a);
        break;
    case ING_OP_ATOMIC:
        if (has(w, i->b)) mark(w, i->a);
        if (!has(w, i->a) || !ing_fwd_floats(m, i->type)) break;
        set(w, id, !stopped(w, i->a));
        if (is_pair(w, id) && !is_own(w, id)) pair(w);
        break;
    default: /* LOAD */
        set(w, id, has(w, i->a) && !stopped(w, i->a) && ing_fwd_floats(m, i->type));
    }
}

static void value(flow *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    ing_ir_uses u;
    bool any = false;
    ing_ir_inst_uses(w->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) any |= has(w, u.fixed[k]);
    for (uint32_t k = 0; k < u.n_list; k++) any |= has(w, u.list[k]);
    set(w, id, any && ing_fwd_floats(w->w->m, i->type));
}

static void visit(flow *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    ing_ad_class class = ing_ad_class_of(i->op);
    if (class == ING_AD_ARITH) {
        value(w, id);
        return;
    }
    if (class != ING_AD_CARRY) return; /* what is refused is found by emit.c */
    switch (i->op) {
    case ING_OP_CAST:
    case ING_OP_SELECT:
    case ING_OP_MAKE:
    case ING_OP_EXTRACT:
    case ING_OP_INSERT: value(w, id); break;
    case ING_OP_CALL: call(w, id); break;
    case ING_OP_RETURN:
        if (!i->a || !has(w, i->a) || w->v->result) break;
        w->v->result = w->changed = true;
        break;
    case ING_OP_ARRAY:
    case ING_OP_PARAM:
    case ING_OP_ALLOCA:
    case ING_OP_ELEM:
    case ING_OP_MEMBER:
    case ING_OP_MEMBER_DYN:
    case ING_OP_LOAD:
    case ING_OP_STORE:
    case ING_OP_ATOMIC: memory(w, id); break;
    default: break; /* control */
    }
}

/* ---- walks --------------------------------------------------------------------------------- */

static void walk(flow *w, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(w->f, block); k++) {
        uint32_t id = ing_ir_block_ids(w->f, block)[k], blocks[2];
        const ing_ir_inst *i = at(w, id);
        visit(w, id);
        uint32_t n = ing_ir_inst_blocks(i, blocks);
        bool parallel = i->op == ING_OP_LOOP && i->flags & ING_IR_PARALLEL;
        if (parallel) w->parallel = id;
        for (uint32_t j = 0; j < n; j++) walk(w, blocks[j]);
        if (parallel) w->parallel = 0;
    }
}

static void find_used(ing_fwd_version *v) {
    const ing_ir_func *f = v->f;
    for (uint32_t id = 1; id < f->insts.len; id++) {
        ing_ir_uses u;
        ing_ir_inst_uses(f, ing_ir_at(f, id), &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) v->state[u.fixed[k]] |= ING_FWD_USED;
        for (uint32_t k = 0; k < u.n_list; k++) v->state[u.list[k]] |= ING_FWD_USED;
    }
}

/* Until nothing changes in the version itself; true: something did. */
static bool settle(ing_fwd *w, uint32_t number) {
    ing_fwd_version *v = w->versions.at[number];
    flow at_it = {.w = w, .v = v, .f = v->f};
    bool any = false;
    do {
        at_it.changed = false;
        walk(&at_it, at_it.f->body);
        any |= at_it.changed;
    } while (at_it.changed && !w->arena.failed);
    return any;
}

/* Callers come before the versions that they asked for: on the way down versions are made, on
 * the way up what they found reaches their callers. */
ing_status ing_fwd_flow(ing_fwd *w) {
    bool changed = version_new(w, 0, NULL) != NULL;
    uint32_t seen = 0;
    while (changed && !w->arena.failed) {
        changed = false;
        for (; seen < w->versions.len; seen++) {
            find_used(w->versions.at[seen]);
            settle(w, seen);
        }
        for (uint32_t k = w->versions.len; k-- > 0;) changed |= settle(w, k);
        changed |= seen < w->versions.len;
    }
    bool ok = w->versions.len && !w->arena.failed;
    return ok ? ING_OK : ing_fail(w->e, ING_MEMORY, "no memory to follow derivatives");
}
