/* Locals that are assigned once become plain values, so that loop bounds and values that
 * cross tasks are seen for what they are. A local qualifies when
 *  PROMOTE1 its only uses are LOADs and exactly one STORE to it,
 *  PROMOTE2 the STORE stands in the block of the ALLOCA, hence runs before all that follows,
 *  PROMOTE3 every LOAD follows the STORE in the text.
 * The rest is LLVM's to promote. */
#include "pass/pass_int.h"

typedef struct local { /* per instruction; used for ALLOCAs */
    uint32_t home;     /* block + 1 */
    uint32_t value;    /* what the STORE stores */
    bool bad;
} local;

typedef struct promoter {
    const ing_ir_func *f;
    local *at;
    uint32_t count;
} promoter;

static bool is_alloca(const promoter *p, uint32_t id) {
    return ing_ir_at(p->f, id)->op == ING_OP_ALLOCA;
}

static void scan_use(promoter *p, const ing_ir_inst *i, uint32_t used, uint32_t block) {
    local *l = &p->at[used];
    if (!is_alloca(p, used)) return;
    if (i->op == ING_OP_LOAD) {
        if (!l->value) l->bad = true; /* PROMOTE3 */
    } else if (i->op == ING_OP_STORE) {
        if (l->value || l->home != block + 1) l->bad = true; /* PROMOTE1, PROMOTE2 */
        l->value = i->b;
    } else {
        l->bad = true;
    }
}

static void scan_block(promoter *p, uint32_t block) {
    const uint32_t *ids = ing_ir_block_ids(p->f, block);
    for (uint32_t k = 0; k < ing_ir_block_len(p->f, block); k++) {
        const ing_ir_inst *i = ing_ir_at(p->f, ids[k]);
        ing_ir_uses u;
        uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
        if (i->op == ING_OP_ALLOCA) {
            p->at[ids[k]].home = block + 1;
            p->count++;
        }
        ing_ir_inst_uses(p->f, i, &u);
        for (uint32_t j = 0; j < u.n_fixed; j++) scan_use(p, i, u.fixed[j], block);
        for (uint32_t j = 0; j < u.n_list; j++) scan_use(p, i, u.list[j], block);
        for (uint32_t j = 0; j < n; j++) scan_block(p, blocks[j]);
    }
}

static bool promoted(const promoter *p, uint32_t id) {
    return is_alloca(p, id) && !p->at[id].bad && p->at[id].value;
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    const promoter *p = c->self;
    const ing_ir_inst *i = ing_ir_at(p->f, id);
    if (i->op == ING_OP_LOAD && promoted(p, i->a)) {
        c->map[id] = c->map[p->at[i->a].value];
        return true;
    }
    if (i->op == ING_OP_STORE && promoted(p, i->a)) return true;
    return i->op == ING_OP_ALLOCA && promoted(p, id);
}

static bool run_func(ing_ir_mod *m, uint32_t func) {
    ing_ir_func old;
    ing_ir_builder b;
    uint32_t n = m->funcs.at[func]->insts.len;
    promoter p = {.f = m->funcs.at[func], .at = ing_calloc(n, sizeof *p.at)};
    uint32_t *map = ing_calloc(n, sizeof *map);
    bool ok = p.at && map;
    if (ok) scan_block(&p, p.f->body);
    if (ok && p.count) {
        ing_ir_rebuild_begin(&b, m, func, &old);
        p.f = &old;
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = &p};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ing_free(p.at);
    ing_free(map);
    return ok;
}

ing_status ing_pass_promote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    for (uint32_t k = 0; k < m->funcs.len && ing_ir_ok(m); k++) {
        if (!run_func(m, k)) return ing_fail(e, ING_MEMORY, "no memory for a pass");
    }
    return ing_pass_done(m, e);
}
