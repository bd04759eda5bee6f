/* What the updates of a parallel loop meet: see targets.h. One walk over the function and one
 * look at each instruction, so linear. Errs towards "touched": a place whose root is unknown is
 * no target, and a call touches whatever it is given and whatever funcs name. */
#include "pass/targets.h"

static const ing_ir_inst *at(const ing_targets *x, uint32_t id) {
    return ing_ir_at(x->f, id);
}

ing_target ing_target_of(const ing_targets *x, uint32_t ref) {
    const ing_ir_inst *i = at(x, ref);
    while (i->op == ING_OP_ELEM || i->op == ING_OP_MEMBER || i->op == ING_OP_MEMBER_DYN)
        i = at(x, i->a);
    bool known = i->op == ING_OP_ARRAY || i->op == ING_OP_BUFFER;
    return known ? (ing_target){i->op, i->a} : (ing_target){0, 0};
}

/* ---- the loop ----------------------------------------------------------------------------- */

static bool uses_are_invariant(const ing_targets *x, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->f, i, &u);
    bool all = true;
    for (uint32_t k = 0; k < u.n_fixed; k++) all &= x->invariant[u.fixed[k]];
    for (uint32_t k = 0; k < u.n_list; k++) all &= x->invariant[u.list[k]];
    return all;
}

static void note_uses(ing_targets *x, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(x->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) x->used[u.fixed[k]] = 1;
    for (uint32_t k = 0; k < u.n_list; k++) x->used[u.list[k]] = 1;
}

/* What is defined outside the parallel loop is the same in each iteration, but for the index
 * of a loop over rows; inside it, what is computed from such values alone. */
static void walk(ing_targets *x, uint32_t block, bool inside) {
    const ing_ir_func *f = x->f;
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++) {
        uint32_t id = ing_ir_block_ids(f, block)[k], blocks[2];
        const ing_ir_inst *i = at(x, id);
        bool parallel = i->op == ING_OP_LOOP && (i->flags & ING_IR_PARALLEL);
        bool pure = ing_op_get((ing_op)i->op)->flags & ING_OPF_P;
        bool piece = i->op >= ING_OP_TASK_BEGIN && i->op <= ING_OP_TASK_CHUNK;
        bool once = !inside && block == f->body && i->op != ING_OP_LOOP;
        x->inside[id] = inside;
        x->invariant[id] = !piece && (once || (pure && uses_are_invariant(x, i)));
        note_uses(x, i);
        if (parallel) x->loop = id;
        x->random |= i->op == ING_OP_RANDOM;
        x->calls |= inside && i->op == ING_OP_CALL;
        uint32_t n = ing_ir_inst_blocks(i, blocks);
        for (uint32_t j = 0; j < n; j++) walk(x, blocks[j], inside || parallel);
    }
}

/* ---- fates ---------------------------------------------------------------------------------- */

static ing_fate *fate_of(ing_targets *x, ing_target t) {
    ing_hash128 key = {t.op, t.a};
    uint32_t number = ing_map_get(&x->numbers, key);
    if (!number) {
        ing_fate fresh = {.of = t};
        number = x->fates.len + 1;
        bool ok = ing_vec_push(&x->fates, fresh);
        x->failed |= !ok || !ing_map_put(&x->numbers, key, number);
        if (!ok) return NULL;
    }
    return &x->fates.at[number - 1];
}

static void spoil(ing_targets *x, uint32_t ref) {
    ing_target t = ing_target_of(x, ref);
    ing_fate *f = t.op ? fate_of(x, t) : NULL;
    if (f) f->spoiled = true;
}

static void note_update(ing_targets *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    uint8_t kind = ing_pass_sum_kind(i->c);
    ing_target t = ing_target_of(x, i->a);
    bool fine = x->inside[id] && !x->used[id] && t.op && x->qualifies(x, id);
    ing_fate *f = fine ? fate_of(x, t) : NULL;
    if (!f) {
        spoil(x, i->a);
        return;
    }
    f->spoiled |= f->kind && f->kind != kind + 1;
    f->kind = (uint8_t)(kind + 1);
}

/* What instruction `id` does to targets. */
static void note_inst(ing_targets *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    switch (i->op) {
    case ING_OP_LOAD:
    case ING_OP_STORE:
    case ING_OP_CAS: spoil(x, i->a); break;
    case ING_OP_ATOMIC: note_update(x, id); break;
    case ING_OP_CALL:
        for (uint32_t k = 0; k < i->c; k++) spoil(x, x->f->extra.at[i->b + k]);
        break;
    default: break;
    }
}

/* Calls may reach arrays that the loop does not name. */
static void note_named(ing_targets *x) {
    for (uint32_t k = 0; k < x->m->args.len && x->calls; k++) {
        ing_target t = {ING_OP_ARRAY, k};
        ing_fate *f = x->funcs->named[k] ? fate_of(x, t) : NULL;
        if (f) f->spoiled = true;
    }
}

/* All other arrays of the loop lie apart from this one. */
static bool apart(ing_targets *x, const ing_fate *f) {
    uint32_t n = 0, array = f->of.a;
    if (f->of.op != ING_OP_ARRAY) return true;
    for (uint32_t k = 0; k < x->fates.len; k++)
        n += x->fates.at[k].of.op == ING_OP_ARRAY && x->fates.at[k].of.a != array;
    if (!ing_pass_may_assume(x->m, x->o, n)) return false;
    for (uint32_t k = 0; k < x->fates.len; k++) {
        ing_target t = x->fates.at[k].of;
        if (t.op == ING_OP_ARRAY && t.a != array)
            ing_pass_assume_apart(x->m, array, t.a);
    }
    return true;
}

bool ing_target_alone(ing_targets *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (i->op != ING_OP_ATOMIC || !x->inside[id] || x->used[id]) return false;
    ing_target t = ing_target_of(x, i->a);
    ing_fate *f = t.op ? fate_of(x, t) : NULL;
    if (!f || f->spoiled) return false;
    if (!f->judged) f->granted = apart(x, f);
    f->judged = true;
    return f->granted;
}

/* ---- all ------------------------------------------------------------------------------------ */

bool ing_targets_init(ing_targets *x, bool whole) {
    uint32_t n = x->f->insts.len;
    x->inside = ing_calloc(n, 1);
    x->used = ing_calloc(n, 1);
    x->invariant = ing_calloc(n, 1);
    ing_map_init(&x->numbers);
    if (!x->inside || !x->used || !x->invariant) return false;
    walk(x, x->f->body, false);
    for (uint32_t id = 1; id < n; id++)
        if (whole || x->inside[id]) note_inst(x, id);
    note_named(x);
    return !x->failed;
}

void ing_targets_fini(ing_targets *x) {
    ing_map_fini(&x->numbers);
    ing_vec_fini(&x->fates);
    ing_free(x->inside);
    ing_free(x->used);
    ing_free(x->invariant);
}
