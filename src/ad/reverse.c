/* Reverse mode: the conductor (ad_int.h has the steps and rules). Called with the module as
 * lowered; leaves the backward kernel in its place, and funcs that only it calls. */
#include "ad/ad_int.h"

#include <string.h>

ing_status ing_ad_no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory for a gradient");
}

ing_status ing_ad_refuse(ing_ir_mod *m, uint32_t func, uint32_t loc, ing_err *e,
                         const char *why) {
    m->bad_loc = loc;
    m->bad_tree = m->funcs.at[func]->tree;
    return ing_fail(e, ING_COMPILE, "cannot be differentiated: %s", why);
}

/* ---- backward funcs ------------------------------------------------------------------------------- */

/* Its own parameters, then their adjoints (refs; companions of arrays), the adjoint of its
 * result, the top of the stacks. */
static bool declare(ing_ad *ad, ing_ad_fn *n) {
    const ing_ir_func *f = n->f;
    ing_type *types = ing_calloc((size_t)2 * f->n_params + 2, sizeof *types);
    if (!types) return false;
    uint32_t count = f->n_params;
    if (count) memcpy(types, f->params, count * sizeof *types);
    for (uint32_t k = 0; k < f->n_params; k++) {
        ing_type t = f->params[k];
        if (n->params[k].companion)
            types[count++] = n->params[k].companion;
        else if (n->params[k].active)
            types[count++] = ing_ad_is_ref(ad->m, t) ? t : ing_ir_type_ref(ad->m, t);
    }
    if (f->ret && ing_ad_is_real(ad->m, f->ret)) types[count++] = f->ret;
    types[count++] = ING_I64;
    n->made = ing_ir_add_func(ad->m, ING_IR_FUNC, NULL, types, count, ING_VOID);
    ing_free(types);
    if (!n->made) return false;
    ad->m->funcs.at[n->made]->name = f->name;
    ad->m->funcs.at[n->made]->tree = f->tree;
    return true;
}

static uint32_t param(ing_ad_code *c, uint32_t k) {
    ing_type t = c->b.func->params[k];
    return ing_ir_emit(&c->b, ING_OP_PARAM, t, k, 0, 0);
}

/* Every instruction that stands for parameter k has its adjoint there. */
static void set_adjoint(ing_ad_code *c, uint32_t k, uint32_t adjoint) {
    for (uint32_t id = 1; id < c->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(c->f, id);
        if (i->op != ING_OP_PARAM || i->a != k) continue;
        c->adj[id] = c->shadow[id] = adjoint;
        c->n->mark[id] |= ING_AD_APART;
    }
}

static void open_func(ing_ad_code *c) {
    uint32_t at = c->f->n_params;
    for (uint32_t k = 0; k < c->f->n_params; k++) {
        const ing_ad_param *p = &c->n->params[k];
        ing_type t = c->f->params[k];
        uint32_t id = c->n->param_at[k];
        if (p->companion || p->active)
            set_adjoint(c, k, param(c, at++));
        else if (id && ing_ad_is_ref(c->m, t) && ing_ad_active(c->n, id))
            set_adjoint(c, k, ing_ad_local(c, ing_ir_type(c->m, t)->elem));
    }
    if (c->f->ret && ing_ad_is_real(c->m, c->f->ret)) {
        uint32_t given = param(c, at++);
        c->result = ing_ad_local(c, c->f->ret);
        ing_ad_store(c, c->result, given);
    }
    c->top = param(c, at);
}

static ing_status write_body(ing_ad_code *c, bool size, ing_err *e) {
    if (size) return ing_ad_write_size(c, e);
    if (c->n->func)
        open_func(c);
    else
        c->top = ing_ir_const_int(&c->b, ING_I64, 0);
    if (!c->n->func) ing_ad_put_told(c);
    ing_ad_open_top(c, 0);
    ing_ad_open_region(c, c->f->body);
    ing_ad_put_forward(c, c->f->body, true);
    ing_ad_put_backward(c, c->f->body);
    if (c->n->func) ing_ir_emit(&c->b, ING_OP_RETURN, 0, 0, 0, 0);
    return ING_OK;
}

static ing_status write_fn(ing_ad *ad, ing_ad_fn *n, bool size, ing_err *e) {
    size_t len = n->f->insts.len;
    ing_ir_func old;
    ing_ad_code c = {.ad = ad, .n = n, .m = ad->m, .f = n->f};
    uint32_t *words = ing_calloc(9 * len, sizeof *words);
    uint8_t *bytes = ing_calloc(2 * len, 1);
    if (!words || !bytes) {
        ing_free(words);
        ing_free(bytes);
        return ing_ad_no_memory(e);
    }
    c.copy = (ing_ir_copy){.b = &c.b, .map = words};
    c.adj = words + len;
    c.shadow = words + 2 * len;
    c.slot = words + 3 * len;
    c.base = words + 4 * len;
    c.count = words + 5 * len;
    c.held = words + 6 * len;
    c.fresh = words + 7 * len;
    c.counts = words + 8 * len;
    c.picked = bytes;
    c.wild = bytes + len;
    ing_ad_find_wild(ad, n, c.wild);
    c.any_wild = memchr(c.wild, 1, len) != NULL;
    if (n->func) {
        ing_ir_builder_init(&c.b, ad->m, n->made);
    } else {
        ing_ir_rebuild_begin(&c.b, ad->m, 0, &old);
        n->f = c.f = &old;
    }
    c.copy.from = c.f;
    ing_status s = write_body(&c, size, e);
    if (n->func)
        ing_ir_builder_done(&c.b);
    else
        ing_ir_rebuild_end(&c.b, &old);
    ing_free(words);
    ing_free(bytes);
    ing_vec_fini(&c.snaps);
    if (ad->bad) return ing_ad_refuse(ad->m, n->func, ad->bad_loc, e, ad->bad);
    ING_TRY(s);
    return ing_ir_ok(ad->m) ? ING_OK : ing_ad_no_memory(e);
}

/* ---- all of it --------------------------------------------------------------------------------------- */

static ing_status analyse(ing_ad *ad, ing_ad_mode mode, ing_err *e) {
    ING_TRY(ing_ad_find_lost(ad, e));
    ING_TRY(ing_ad_find_active(ad, e));
    ING_TRY(ing_ad_check_shared(ad, ad->fns.at[0], e));
    ING_TRY(ing_ad_find_writes(ad, e));
    for (uint32_t k = 0; k < ad->n_funcs; k++) /* callees first */
        for (uint32_t j = 0; j < ad->fns.len; j++) {
            ing_ad_fn *n = ad->fns.at[j];
            if (n->func != ad->order[k]) continue;
            ING_TRY(ing_ad_find_need(ad, n, e));
            ING_TRY(ing_ad_check_refs(ad, n, e));
            if (mode != ING_AD_TRACE) ING_TRY(ing_ad_check_rule(ad, n, e));
            n->stacks = ing_ad_has_stacks(ad, n);
        }
    bool asked = ad->all_bounds || ad->fns.at[0]->stacks;
    if (asked && ad->m->stack_entries <= 0) ING_TRY(ing_ad_can_size(ad, &ad->sized, e));
    return ING_OK;
}

static ing_status write_all(ing_ad *ad, ing_err *e) {
    ING_TRY(ing_ad_find_quiet(ad, e));
    for (uint32_t j = 1; j < ad->fns.len; j++)
        if (!declare(ad, ad->fns.at[j])) return ing_ad_no_memory(e);
    for (uint32_t j = 0; j < ad->fns.len; j++)
        ING_TRY(write_fn(ad, ad->fns.at[j], false, e));
    ad->m->sized = ad->sized;
    return ING_OK;
}

static ing_status write_size(ing_ad *ad, ing_err *e) {
    if (!ad->sized && !ad->all_bounds)
        return ing_fail(e, ING_INTERNAL, "stacks without a size");
    ad->m->rets.len = 0;
    if (!ing_vec_push(&ad->m->rets, (ing_type)ING_I64)) return ing_ad_no_memory(e);
    return write_fn(ad, ad->fns.at[0], true, e);
}

/* Funcs that nobody calls any more lose their bodies: they would count as what the kernel does. */
static ing_status empty_unused(ing_ir_mod *m, ing_err *e) {
    uint32_t *used = NULL, n = 0;
    ING_TRY(ing_ir_func_reaches(m, 0, &used, &n, e));
    for (uint32_t k = 1; k < m->funcs.len; k++) {
        bool found = false;
        for (uint32_t j = 0; j < n; j++) found |= used[j] == k;
        if (found) continue;
        m->funcs.at[k]->insts.len = m->funcs.at[k]->extra.len = 1;
        m->funcs.at[k]->body = 0;
    }
    ing_free(used);
    return ING_OK;
}

static void free_all(ing_ad *ad) {
    for (uint32_t k = 0; k < ad->fns.len; k++) {
        ing_vec_fini(&ad->fns.at[k]->states);
        ing_vec_fini(&ad->fns.at[k]->reads);
        ing_vec_fini(&ad->fns.at[k]->writes);
    }
    for (uint32_t k = 0; ad->writes && k < 2 * ad->n_funcs; k++)
        ing_vec_fini(&ad->writes[k]);
    ing_vec_fini(&ad->fns);
    ing_vec_fini(&ad->told);
    ing_vec_fini(&ad->axes);
    ing_free(ad->writes);
    ing_free(ad->span);
    ing_free(ad->order);
    ing_free(ad->touches);
    ing_free(ad->quiet);
    ing_free(ad->noted);
}

static ing_status run(ing_ir_mod *m, const uint32_t *companion, ing_ad_mode mode,
                      ing_err *e) {
    ING_TRY(ing_ad_draws(m, e));
    ING_TRY(ing_ad_exits(m, e));
    ING_TRY(ing_ad_own_locals(m, e));
    ing_ad ad = {.m = m, .companion = companion, .n_funcs = m->funcs.len};
    ad.all_bounds = mode == ING_AD_BOUNDS;
    ING_TRY(ing_ir_call_order(m, &ad.order, e));
    ad.touches = ing_calloc(ad.n_funcs, 2);
    ad.quiet = ing_calloc(ad.n_funcs, sizeof *ad.quiet);
    ad.acts = ad.touches ? ad.touches + ad.n_funcs : NULL;
    ad.writes = ing_calloc((size_t)2 * ad.n_funcs, sizeof *ad.writes);
    ad.loads = ad.writes ? ad.writes + ad.n_funcs : NULL;
    ad.span = ing_calloc(ad.n_funcs, sizeof *ad.span);
    ad.noted = ing_calloc((size_t)m->args.len + 1, m->args.len + 1);
    bool ok = ad.touches && ad.quiet && ad.writes && ad.span && ad.noted;
    ing_status s = ok ? analyse(&ad, mode, e) : ing_ad_no_memory(e);
    if (s == ING_OK)
        s = mode == ING_AD_SIZE || ad.all_bounds ? write_size(&ad, e)
            : mode == ING_AD_TRACE               ? ing_ad_write_trace(&ad, e)
                                                 : write_all(&ad, e);
    free_all(&ad);
    if (s == ING_OK) s = empty_unused(m, e);
    if (s == ING_OK) s = ing_ad_trim(m, e);
    return s == ING_OK ? ing_ad_order(m, companion, m->args.len, e) : s;
}

ing_status ing_ad_reverse(ing_ir_mod *m, const uint32_t *companion, ing_err *e) {
    return run(m, companion, ING_AD_REVERSE, e);
}

ing_status ing_ad_size(ing_ir_mod *m, const uint32_t *companion, ing_err *e) {
    return run(m, companion, ING_AD_SIZE, e);
}

ing_status ing_ad_bounds(ing_ir_mod *m, const uint32_t *companion, ing_err *e) {
    return run(m, companion, ING_AD_BOUNDS, e);
}

ing_status ing_ad_trace(ing_ir_mod *m, const uint32_t *companion, ing_err *e) {
    return run(m, companion, ING_AD_TRACE, e);
}
