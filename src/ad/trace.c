/* A kernel that tells what it does to arrays: the kernel itself, which also hands the address of
 * each element that its gradient would read again (need.c), and of each that it writes, to the
 * host by way of PRINT; where there are minima and maxima, also of reads in between (RULE6). Called by Tape(validation=True) in place of the launch; src/py/call/watch.c
 * gathers what it tells. Changes nothing else: same tasks, same random numbers. */
#include "ad/ad_int.h"

#include "gen/abi.h"

typedef struct tracer {
    ing_ir_mod *m;
    /* per instruction: what is told of its element, 0 = nothing */
    const uint32_t *code;
    const uint8_t *found; /* per instruction: an ATOMIC whose result has an adjoint */
    const uint8_t *given; /* per argument of a CALL, by its place in the list */
} tracer;

enum { READ = 1, WRITTEN = 2 }; /* by what a call is given as a reference */

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

/* Of elements that a call is given: funcs do not know where they lie. */
static void tell_given(tracer *x, ing_ir_copy *c, const ing_ir_inst *i, uint8_t bit) {
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = c->from->extra.at[i->b + k], elem = 0;
        if (x->given[i->b + k] & bit) ing_ir_root(c->from, arg, &elem);
        if (elem) tell(x, c, c->map[arg], bit == READ ? ING_ABI_READS : ING_ABI_WRITES);
    }
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    tracer *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    uint32_t elem = 0;
    c->b->loc = i->loc;
    if (i->op == ING_OP_CALL) {
        tell_given(x, c, i, READ);
        c->hook = NULL;
        ing_ir_copy_inst(c, id);
        c->hook = hook;
        c->b->loc = i->loc;
        tell_given(x, c, i, WRITTEN);
        return true;
    }
    if (x->code[id]) ing_ir_root(c->from, i->a, &elem);
    if (!elem) return false;
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

/* ---- funcs that are run again forwards (RULE11) ------------------------------------------------ */

static bool has_param(const ing_ad_touches *of, uint32_t param) {
    for (uint32_t k = 0; k < of->len; k++)
        if (of->at[k].param && of->at[k].ref && of->at[k].of == param) return true;
    return false;
}

/* A call in function f: `run` forwards again; `to`: the context of its backward code, or NULL. */
static void find_given(const ing_ad *ad, const ing_ir_func *f, uint32_t id, bool run,
                       const ing_ad_fn *to, uint8_t *given) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    for (uint32_t k = 0; k < i->c; k++) {
        uint8_t *of = &given[i->b + k];
        if (has_param(&ad->writes[i->a], k)) *of |= WRITTEN;
        if (run && has_param(&ad->loads[i->a], k)) *of |= READ;
        uint32_t at = to ? to->param_at[k] : 0;
        if (at && to->mark[at] & ING_AD_AGAIN) *of |= READ;
    }
}

static bool is_run(const ing_ad_fn *n, uint32_t id) {
    return n->mark[id] & (ING_AD_AGAIN | ING_AD_FIRST);
}

/* Of calls in a function, and what of it is read where it is run again forwards itself. */
static bool find_reruns(const ing_ad *ad, uint32_t func, uint8_t *rerun, uint32_t *code,
                        uint8_t *given) {
    const ing_ir_func *f = ad->m->funcs.at[func];
    uint8_t *marks = ing_calloc(f->insts.len, 1);
    bool ok = marks && (!rerun[func] || ing_ad_find_rerun(ad, f, marks));
    for (uint32_t id = 1; ok && id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        if (marks[id] & ING_AD_RUN && i->op == ING_OP_LOAD) code[id] = ING_ABI_READS;
        if (i->op != ING_OP_CALL) continue;
        bool run = marks[id] & ING_AD_RUN;
        find_given(ad, f, id, run, NULL, given);
        for (uint32_t k = 0; k < ad->fns.len; k++) {
            const ing_ad_fn *n = ad->fns.at[k];
            if (n->func != func || !n->block[id]) continue;
            run |= is_run(n, id);
            const ing_ad_fn *to = n->callee[id] ? ad->fns.at[n->callee[id] - 1] : NULL;
            find_given(ad, f, id, is_run(n, id), to, given);
        }
        if (run) rerun[i->a] = 1;
    }
    ing_free(marks);
    return ok;
}

static ing_status write_func(ing_ad *ad, uint32_t func, bool winners, uint8_t *rerun,
                             ing_err *e) {
    ing_ir_mod *m = ad->m;
    uint32_t len = m->funcs.at[func]->insts.len;
    uint8_t *found = ing_calloc((size_t)len + m->funcs.at[func]->extra.len, 1);
    uint32_t *map = ing_calloc((size_t)2 * len, sizeof *map);
    bool ok = found && map;
    if (ok) {
        find_codes(ad, func, winners, map + len, found);
        ok = find_reruns(ad, func, rerun, map + len, found + len);
    }
    if (ok) {
        tracer x = {m, map + len, found, found + len};
        ing_ir_builder b;
        ing_ir_func old;
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = &x};
        ing_ir_rebuild_begin(&b, m, func, &old);
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ok = ok && ing_ir_ok(m);
    ing_free(found);
    ing_free(map);
    return ok ? ING_OK : ing_ad_no_memory(e);
}

ing_status ing_ad_write_trace(ing_ad *ad, ing_err *e) {
    bool winners = has_winners(ad);
    uint8_t *rerun = ing_calloc(ad->n_funcs, 1);
    ing_status s = rerun ? ING_OK : ing_ad_no_memory(e);
    for (uint32_t k = ad->n_funcs; k-- > 0 && s == ING_OK;) /* callers first */
        s = write_func(ad, ad->order[k], winners, rerun, e);
    ing_free(rerun);
    return s;
}
