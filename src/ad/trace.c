/* A kernel that tells what it does to arrays: the kernel itself, which also hands the address of
 * each element that its gradient would read again (need.c), and of each that it writes, to the
 * host by way of PRINT; where there are minima and maxima, also of reads in between (RULE6). Called by Tape(validation=True) in place of the launch; src/py/call/watch.c
 * gathers what it tells. Changes nothing else: same tasks, same random numbers. */
#include "ad/ad_int.h"

#include "gen/abi.h"

typedef struct tracer {
    ing_ir_mod *m;
    const uint32_t
        *code; /* per instruction: what is told of its element, 0 = nothing */
    const uint8_t *found; /* per instruction: an ATOMIC whose result has an adjoint */
} tracer;

static void tell(tracer *x, ing_ir_copy *c, uint32_t ref, uint32_t code) {
    ing_type t = ing_ir_type(x->m, c->b->func->insts.at[ref].type)->elem;
    ing_type_info i = *ing_ir_type(x->m, t); /* the table may grow */
    if (!ing_ir_ok(x->m)) return;
    if (i.kind == ING_TYPE_SCALAR) {
        uint32_t said[2] = {ing_ir_emit(c->b, ING_OP_ADDRESS, ING_U64, ref, 0, 0), 0};
        said[1] = ing_ir_const_int(c->b, ING_U32, (int64_t)ing_ir_type_size(x->m, t));
        ing_ir_emit_list(c->b, ING_OP_PRINT, code, said, 2);
        return;
    }
    uint32_t n = i.kind == ING_TYPE_STRUCT ? i.n_members : i.rows * i.cols;
    for (uint32_t k = 0; k < n; k++) { /* the depth of types is bounded */
        ing_type part = i.kind == ING_TYPE_STRUCT ? i.members[k] : i.dtype;
        tell(x, c,
             ing_ir_emit(c->b, ING_OP_MEMBER, ing_ir_type_ref(x->m, part), ref, k, 0),
             code);
    }
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    tracer *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    uint32_t elem = 0;
    if (x->code[id]) ing_ir_root(c->from, i->a, &elem);
    if (!elem) return false;
    c->b->loc = i->loc;
    if (x->found[id]) tell(x, c, c->map[i->a], ING_ABI_LOOKS);
    c->hook = NULL;
    ing_ir_copy_inst(c, id);
    c->hook = hook;
    c->b->loc = i->loc;
    tell(x, c, c->map[i->a], x->code[id]);
    return true;
}

/* What one context of the function says of an instruction; the most counts. */
static uint32_t code_of(const ing_ad_fn *n, uint32_t id, bool winners) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    bool again = n->mark[id] & (ING_AD_AGAIN | ING_AD_FIRST);
    switch (i->op) {
    case ING_OP_LOAD:
        if (again) return ING_ABI_READS;
        return winners && n->mark[id] & ING_AD_LIVE ? ING_ABI_LOOKS : 0;
    case ING_OP_ATOMIC:
        if (!ing_ad_is_winner(n, id)) return 0;
        return i->c == ING_IR_ATOMIC_MIN ? ING_ABI_MINIMUM : ING_ABI_MAXIMUM;
    default: return 0;
    }
}

static bool has_winners(const ing_ad *ad) {
    for (uint32_t k = 0; k < ad->fns.len; k++)
        for (uint32_t id = 1; id < ad->fns.at[k]->f->insts.len; id++)
            if (ing_ad_is_winner(ad->fns.at[k], id)) return true;
    return false;
}

static void find_codes(const ing_ad *ad, uint32_t func, bool winners, uint32_t *code,
                       uint8_t *found) {
    const ing_ir_func *f = ad->m->funcs.at[func];
    for (uint32_t id = 1; id < f->insts.len; id++) {
        ing_op op = (ing_op)ing_ir_at(f, id)->op;
        if (op == ING_OP_STORE || op == ING_OP_ATOMIC || op == ING_OP_CAS)
            code[id] = ING_ABI_WRITES;
    }
    for (uint32_t k = 0; k < ad->fns.len; k++) {
        const ing_ad_fn *n = ad->fns.at[k];
        for (uint32_t id = 1; n->func == func && id < f->insts.len; id++) {
            uint32_t now = code_of(n, id, winners);
            if (now && code[id] != ING_ABI_READS) code[id] = now;
            found[id] |= winners && ing_ir_at(f, id)->op == ING_OP_ATOMIC &&
                         ing_ad_active(n, id);
        }
    }
}

static ing_status write_func(ing_ad *ad, uint32_t func, bool winners, ing_err *e) {
    ing_ir_mod *m = ad->m;
    uint32_t len = m->funcs.at[func]->insts.len;
    uint8_t *found = ing_calloc(len, 1);
    uint32_t *map = ing_calloc((size_t)2 * len, sizeof *map);
    if (found && map) {
        find_codes(ad, func, winners, map + len, found);
        tracer x = {m, map + len, found};
        ing_ir_builder b;
        ing_ir_func old;
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = &x};
        ing_ir_rebuild_begin(&b, m, func, &old);
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    bool ok = found && map && ing_ir_ok(m);
    ing_free(found);
    ing_free(map);
    return ok ? ING_OK : ing_ad_no_memory(e);
}

ing_status ing_ad_write_trace(ing_ad *ad, ing_err *e) {
    bool winners = has_winners(ad);
    for (uint32_t k = 0; k < ad->n_funcs; k++) ING_TRY(write_func(ad, k, winners, e));
    return ING_OK;
}
