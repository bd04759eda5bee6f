/* A kernel that tells what it does to arrays: the kernel itself, which also hands the address of
 * each element that its gradient would read again (need.c), and of each that it writes, to the
 * host by way of PRINT. Called by Tape(validation=True) in place of the launch; src/py/call/watch.c
 * gathers what it tells. Changes nothing else: same tasks, same random numbers. */
#include "ad/ad_int.h"

#include "gen/abi.h"

typedef struct tracer {
    ing_ir_mod *m;
    const uint8_t *again; /* per instruction: a LOAD whose value backward code needs */
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
    bool writes =
        i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
    uint32_t elem = 0;
    if (writes || x->again[id]) ing_ir_root(c->from, i->a, &elem);
    if (!elem) return false;
    c->hook = NULL;
    ing_ir_copy_inst(c, id);
    c->hook = hook;
    c->b->loc = i->loc;
    tell(x, c, c->map[i->a], writes ? ING_ABI_WRITES : ING_ABI_READS);
    return true;
}

static ing_status write_func(ing_ad *ad, uint32_t func, ing_err *e) {
    ing_ir_mod *m = ad->m;
    uint32_t len = m->funcs.at[func]->insts.len;
    uint8_t *again = ing_calloc(len, 1);
    uint32_t *map = ing_calloc(len, sizeof *map);
    if (again && map) {
        for (uint32_t k = 0; k < ad->fns.len; k++) {
            const ing_ad_fn *n = ad->fns.at[k];
            for (uint32_t id = 1; n->func == func && id < len; id++)
                again[id] |= ing_ir_at(n->f, id)->op == ING_OP_LOAD &&
                             n->mark[id] & (ING_AD_AGAIN | ING_AD_FIRST);
        }
        tracer x = {m, again};
        ing_ir_builder b;
        ing_ir_func old;
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = &x};
        ing_ir_rebuild_begin(&b, m, func, &old);
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    bool ok = again && map && ing_ir_ok(m);
    ing_free(again);
    ing_free(map);
    return ok ? ING_OK : ing_ad_no_memory(e);
}

ing_status ing_ad_write_trace(ing_ad *ad, ing_err *e) {
    for (uint32_t k = 0; k < ad->n_funcs; k++) ING_TRY(write_func(ad, k, e));
    return ING_OK;
}
