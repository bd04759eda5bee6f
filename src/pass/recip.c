/* Recip: several divisions by one value, as of a vector by its length, become multiplications by its
 * reciprocal, with fast math only. A division takes as long as five multiplications, in vectors too.
 * LLVM would do it (arcp), but then with an estimate of 12 bits. Runs after simplify.
 * Rules
 *  RECIP1 with fast math: the result may be one unit in the last place beside the quotient, and is 0
 *     where the divisor is so large that its reciprocal is no normal number.
 *  RECIP2 at least MIN_DIVISIONS of f32 or f64 in one block, by one value that is no constant. */
#include "pass/pass_int.h"

enum { MIN_DIVISIONS = 3 }; /* as gcc; two by one value are often indices of a grid */

typedef struct divider {
    ing_ir_mod *m;
    /* per DIV: the block it stands in, if it is one of several; else 0 */
    uint32_t *block;
    uint32_t *made;  /* per divisor: its reciprocal, of the new function ... */
    uint32_t *where; /* ... in this block */
    uint32_t *count;
    bool any;
} divider;

static bool divides(const ing_ir_func *f, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    return i->op == ING_OP_DIV && (i->type == ING_F32 || i->type == ING_F64) &&
           ing_ir_at(f, i->b)->op != ING_OP_CONST;
}

static void find(divider *x, const ing_ir_func *f, uint32_t block) {
    const uint32_t *ids = ing_ir_block_ids(f, block);
    uint32_t n = ing_ir_block_len(f, block), blocks[2];
    for (uint32_t k = 0; k < n; k++)
        if (divides(f, ids[k])) x->count[ing_ir_at(f, ids[k])->b]++;
    for (uint32_t k = 0; k < n; k++) {
        if (!divides(f, ids[k]) || x->count[ing_ir_at(f, ids[k])->b] < MIN_DIVISIONS)
            continue;
        x->block[ids[k]] = block;
        x->any = true;
    }
    for (uint32_t k = 0; k < n; k++)
        if (divides(f, ids[k])) x->count[ing_ir_at(f, ids[k])->b] = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t m = ing_ir_inst_blocks(ing_ir_at(f, ids[k]), blocks);
        for (uint32_t j = 0; j < m; j++) find(x, f, blocks[j]);
    }
}

static bool is_one(const ing_ir_inst *i) {
    return i->op == ING_OP_CONST &&
           ing_ir_const_bits(i) == ing_ir_eval_cast(ING_I32, (ing_dtype)i->type, 1);
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    divider *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (i->op != ING_OP_DIV || !x->block[id]) return false;
    c->b->loc = i->loc;
    if (x->where[i->b] != x->block[id]) {
        uint32_t one = ing_ir_const_float(c->b, (ing_dtype)i->type, 1.0);
        x->where[i->b] = x->block[id];
        x->made[i->b] = ing_ir_emit(c->b, ING_OP_DIV, i->type, one, c->map[i->b], 0);
    }
    c->map[id] = x->made[i->b];
    if (!is_one(ing_ir_at(c->from, i->a)))
        c->map[id] =
            ing_ir_emit(c->b, ING_OP_MUL, i->type, c->map[i->a], x->made[i->b], 0);
    return true;
}

static bool run_func(ing_ir_mod *m, uint32_t func) {
    ing_ir_func old, *f = m->funcs.at[func];
    size_t n = f->insts.len;
    uint32_t *all = ing_calloc(n, 5 * sizeof *all);
    if (!all) return false;
    divider x = {.m = m,
                 .block = all,
                 .made = all + n,
                 .where = all + 2 * n,
                 .count = all + 3 * n};
    find(&x, f, f->body);
    if (x.any) {
        ing_ir_builder b;
        ing_ir_rebuild_begin(&b, m, func, &old);
        ing_ir_copy c = {
            .b = &b, .from = &old, .map = all + 4 * n, .hook = hook, .self = &x};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ing_free(all);
    return true;
}

ing_status ing_pass_recip(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    for (uint32_t k = 0; k < m->funcs.len && o->fast_math && ing_ir_ok(m); k++)
        if (!run_func(m, k)) return ing_fail(e, ING_MEMORY, "no memory for a pass");
    return ing_pass_done(m, e);
}
