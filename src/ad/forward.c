/* Forward mode: the kernel computes what it did, and carries duals, the derivatives of its
 * values in one direction, along with them. Companions hold those of the arrays: reads find
 * them there, writes leave them there, zeros where what is written depends on nothing. What an
 * array without a companion holds is a constant; one that is no field may not be given a dual. In three steps: what has a dual
 * (forward_flow.c), the functions anew (forward_emit.c), and the old ones that nobody calls any
 * more emptied, since passes look at every func of a module. */
#include "ad/forward.h"

#include "ad/ad_int.h"

static ing_status check_companions(const ing_fwd *w) {
    const ing_ir_mod *m = w->m;
    for (uint32_t k = 0; k < m->args.len; k++) {
        uint32_t c = ING_FWD_COMPANION(w, k);
        if (!c) continue;
        const ing_type_info *a = ing_ir_type(m, m->args.at[k].type), *d = NULL;
        if (c <= m->args.len) d = ing_ir_type(m, m->args.at[c - 1].type);
        bool fits = d && a->kind == ING_TYPE_ARRAY && d->kind == ING_TYPE_ARRAY &&
                    a->elem == d->elem && a->rank == d->rank;
        if (!fits)
            return ing_fail(w->e, ING_INTERNAL, "argument %u is no companion of %u",
                            c - 1, k);
    }
    return ING_OK;
}

static ing_status bury(ing_fwd *w) {
    uint32_t *reached = NULL, n = 0;
    uint8_t *alive = ING_NEW_ARRAY(&w->arena, w->m->funcs.len, uint8_t);
    if (!alive) return ing_fail(w->e, ING_MEMORY, "no memory for derivatives");
    ING_TRY(ing_ir_func_reaches(w->m, 0, &reached, &n, w->e));
    for (uint32_t k = 0; k < n; k++) alive[reached[k]] = 1;
    ing_free(reached);
    for (uint32_t k = 1; k < w->m->funcs.len; k++) {
        ing_ir_func *f = w->m->funcs.at[k];
        if (alive[k]) continue;
        f->insts.len = f->extra.len = 1;
        f->body = 0; /* extra[0]: an empty block */
    }
    return ING_OK;
}

static ing_status run(ing_fwd *w) {
    w->first = ING_NEW_ARRAY(&w->arena, w->m->funcs.len + 1, ing_fwd_version *);
    if (!w->first) return ing_fail(w->e, ING_MEMORY, "no memory for derivatives");
    ING_TRY(check_companions(w));
    ING_TRY(ing_fwd_flow(w));
    ING_TRY(ing_fwd_emit(w));
    return bury(w);
}

ing_status ing_ad_forward(ing_ir_mod *m, const uint32_t *companion, ing_err *e) {
    ing_fwd w = {.m = m, .companion = companion, .e = e};
    ing_arena_init(&w.arena);
    ing_status s =
        ing_ad_draws(m, e); /* loops that become serial draw what they drew */
    if (s == ING_OK) s = run(&w);
    ing_arena_fini(&w.arena);
    ing_vec_fini(&w.versions);
    ing_vec_fini(&w.made);
    return s;
}
