/* Backward loops whose iterations may come in any order go forwards: along memory, as processors and compilers
 * like it. Called last by reverse mode.
 *  ORDER1 such a loop counts down by n - 1 - k alone. It calls nothing, checks nothing, and changes nothing that
 *     another of its iterations reads: locals from outside are only added to, one way of adding each;
 *     arrays are updated by atomic sums, of which there is one at least; no companion of an array is read.
 *  ORDER2 forward code, which updates no arrays, keeps its order: what it sums up again must have the same
 *     bits (the winner of a maximum is found by them). */
#include "ad/ad_int.h"

typedef struct turner {
    const ing_ir_func *f;
    const uint32_t *companion; /* by argument, as ing_ad_reverse has it */
    uint32_t n_args;
    uint32_t *home;  /* by instruction: the LOOP or WHILE around it, 0 = none */
    uint32_t *uses;  /* by instruction: how many operands it is */
    uint8_t *turned; /* by LOOP */
} turner;

static const ing_ir_inst *at(const turner *t, uint32_t id) {
    return ing_ir_at(t->f, id);
}

static bool inside(const turner *t, uint32_t id, uint32_t loop) {
    uint32_t r = t->home[id];
    while (r && r != loop) r = t->home[r];
    return r != 0;
}

/* (n - 1) - k, of a loop from 0 to n? */
static bool is_mirror(const turner *t, uint32_t id, uint32_t loop) {
    const ing_ir_inst *i = at(t, id), *k = at(t, loop);
    if (i->op != ING_OP_SUB || i->b != loop || k->op != ING_OP_LOOP) return false;
    const ing_ir_inst *last = at(t, i->a), *from = at(t, k->a);
    if (last->op != ING_OP_SUB || last->a != k->b || from->op != ING_OP_CONST)
        return false;
    const ing_ir_inst *one = at(t, last->b);
    return one->op == ING_OP_CONST && ing_ir_const_bits(one) == 1 &&
           ing_ir_const_bits(from) == 0;
}

static bool is_companion(const turner *t, uint32_t arg) {
    for (uint32_t k = 0; k < t->n_args; k++)
        if ((t->companion[k] & ~ING_AD_STOPPED) == arg + 1) return true;
    return false;
}

/* local = local + v, the only LOAD and STORE of it in the loop? */
static bool only_adds(const turner *t, uint32_t id, uint32_t loop) {
    const ing_ir_inst *i = at(t, id), *sum = at(t, i->b);
    uint32_t load = sum->op == ING_OP_ADD ? sum->a : 0, found = 0;
    if (!load || at(t, load)->op != ING_OP_LOAD || at(t, load)->a != i->a ||
        t->uses[load] != 1 || t->uses[i->b] != 1)
        return false;
    for (uint32_t k = 1; k < t->f->insts.len; k++) {
        const ing_ir_inst *o = at(t, k);
        bool access =
            o->op == ING_OP_LOAD || o->op == ING_OP_STORE || o->op == ING_OP_ATOMIC;
        found += access && inside(t, k, loop) &&
                 ing_ir_root(t->f, o->a, NULL) == at(t, i->a);
    }
    return found == 2;
}

/* ORDER1 */
static bool is_free(const turner *t, uint32_t id, uint32_t loop) {
    const ing_ir_inst *i = at(t, id), *root;
    switch (i->op) {
    case ING_OP_LOAD:
        root = ing_ir_root(t->f, i->a, NULL);
        return root->op != ING_OP_PARAM &&
               !(root->op == ING_OP_ARRAY && is_companion(t, root->a));
    case ING_OP_STORE:
        root = ing_ir_root(t->f, i->a, NULL);
        if (root->op == ING_OP_SCRATCH) return true;
        if (root->op != ING_OP_ALLOCA) return false;
        return inside(t, ing_ir_id_of(t->f, root), loop) ||
               (root == at(t, i->a) && only_adds(t, id, loop));
    case ING_OP_ATOMIC:
        root = ing_ir_root(t->f, i->a, NULL);
        return t->uses[id] == 0 && root->op == ING_OP_ARRAY &&
               (i->c == ING_IR_ATOMIC_ADD || i->c == ING_IR_ATOMIC_SUB);
    case ING_OP_IF:
    case ING_OP_LOOP:
    case ING_OP_WHILE:
    case ING_OP_BREAK:
    case ING_OP_CONTINUE:
    case ING_OP_ALLOCA:
    case ING_OP_SCRATCH: return true;
    default: return ing_op_is_pure(i->op);
    }
}

static bool is_any_order(const turner *t, uint32_t loop) {
    uint32_t mirrors = 0, updates = 0;
    if (at(t, loop)->flags & ING_IR_PARALLEL) return false;
    for (uint32_t id = 1; id < t->f->insts.len; id++) {
        if (!inside(t, id, loop)) continue;
        mirrors += is_mirror(t, id, loop);
        updates += at(t, id)->op == ING_OP_ATOMIC;
        if (!is_free(t, id, loop)) return false;
    }
    return updates && mirrors && mirrors == t->uses[loop];
}

static void find_homes(const turner *t, uint32_t block, uint32_t home) {
    for (uint32_t k = 0; k < ing_ir_block_len(t->f, block); k++) {
        uint32_t id = ing_ir_block_ids(t->f, block)[k], inner[2];
        const ing_ir_inst *i = at(t, id);
        uint32_t n = ing_ir_inst_blocks(i, inner);
        ing_ir_uses u;
        ing_ir_inst_uses(t->f, i, &u);
        t->home[id] = home;
        for (uint32_t j = 0; j < u.n_fixed; j++) t->uses[u.fixed[j]]++;
        for (uint32_t j = 0; j < u.n_list; j++) t->uses[u.list[j]]++;
        for (uint32_t j = 0; j < n; j++)
            find_homes(t, inner[j], i->op == ING_OP_IF ? home : id);
    }
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    const turner *t = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (i->op != ING_OP_SUB || !t->turned[i->b]) return false;
    c->map[id] = c->map[i->b];
    return true;
}

static bool run(ing_ir_mod *m, uint32_t func, const uint32_t *companion,
                uint32_t n_args) {
    const ing_ir_func *f = m->funcs.at[func];
    uint32_t n = f->insts.len, found = 0;
    turner t = {.f = f, .companion = companion, .n_args = n_args};
    uint32_t *words = ing_calloc((size_t)4 * n, sizeof *words);
    if (!words) return false;
    t.home = words;
    t.uses = words + n;
    t.turned = (uint8_t *)(words + (size_t)2 * n);
    find_homes(&t, f->body, 0);
    for (uint32_t id = 1; id < n; id++)
        if (at(&t, id)->op == ING_OP_LOOP && t.uses[id] && is_any_order(&t, id))
            found += t.turned[id] = 1;
    if (found) {
        ing_ir_func old;
        ing_ir_builder b;
        ing_ir_rebuild_begin(&b, m, func, &old);
        t.f = &old;
        ing_ir_copy c = {.b = &b,
                         .from = &old,
                         .map = words + (size_t)3 * n,
                         .hook = hook,
                         .self = &t};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ing_free(words);
    return true;
}

ing_status ing_ad_order(ing_ir_mod *m, const uint32_t *companion, uint32_t n_args,
                        ing_err *e) {
    for (uint32_t k = 0; k < m->funcs.len && ing_ir_ok(m); k++)
        if (!run(m, k, companion, n_args)) return ing_ad_no_memory(e);
    return ing_ir_ok(m) ? ING_OK : ing_ad_no_memory(e);
}
