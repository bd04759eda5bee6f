/* What only the launch can say about places that must be apart (RULE3): noted while rule.c looks at the kernel's
 * reads and writes, and compared by the backward kernel before it does anything. Never in funcs, whose callers
 * look, nor where the program promises. */
#include "ad/meet.h"

#include "gen/abi.h"

/* ---- noting ---------------------------------------------------------------------------------------- */

static bool same_told(const ing_ad_fn *n, const ing_ad_told *a, const ing_ad_told *b) {
    ing_ir_form d;
    return a->loop == b->loop && a->step == b->step && a->local == b->local &&
           a->strict == b->strict && a->by.bits == b->by.bits &&
           ing_ad_difference(n, &a->by, &b->by, &d) && !d.n &&
           !(d.constant << (64 - d.bits));
}

static bool is_noted(const ing_ad *ad, const ing_ad_fn *n, const ing_ad_pair *pair,
                     const ing_ad_told *of) {
    for (uint32_t k = 0; k < ad->told.len; k++) {
        const ing_ad_pair *p = &ad->told.at[k];
        bool same = p->n == pair->n && n->block[p->read] == n->block[pair->read] &&
                    n->block[p->write] == n->block[pair->write];
        uint32_t len = pair->n;
        for (uint32_t j = 0; same && j < len; j++)
            same = same_told(n, &ad->axes.at[p->first + j], &of[j]);
        if (same) return true;
    }
    return false;
}

static bool note(ing_ad *ad, const ing_ad_fn *n, const ing_ad_pair *pair,
                 const ing_ad_told *of) {
    if (is_noted(ad, n, pair, of)) return true;
    bool ok = ing_vec_push(&ad->told, *pair);
    for (uint32_t j = 0; ok && j < pair->n; j++) ok = ing_vec_push(&ad->axes, of[j]);
    return ok;
}

/* In one iteration, or in later ones of a loop (0: in one). */
static ing_status tell(ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                       const ing_ad_touch *w, uint32_t loop, bool *meets, ing_err *e) {
    ing_ad_told axes[ING_MAX_NDIM];
    if (!ing_ad_comes_later(n, r, w, loop) || ing_ad_meet(n, r, w, loop) != ING_AD_SAID)
        return ING_OK;
    ing_ad_pair pair = {.read = r->id, .write = w->id, .loc = w->loc};
    pair.first = ad->axes.len;
    pair.n = ing_ad_tell(n, r, w, loop, axes);
    if (!pair.n) *meets = true;
    return pair.n && !note(ad, n, &pair, axes) ? ing_ad_no_memory(e) : ING_OK;
}

ing_status ing_ad_note_told(ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                            const ing_ad_touch *w, bool *meets, ing_err *e) {
    *meets = false;
    if (n->func || ad->m->promised || ing_ad_ranges_apart(n, r, w)) return ING_OK;
    ING_TRY(tell(ad, n, r, w, 0, meets, e));
    for (uint32_t l = n->region[r->id]; l; l = n->region[l])
        ING_TRY(tell(ad, n, r, w, l, meets, e));
    return ING_OK;
}

/* ---- comparing ------------------------------------------------------------------------------------- */

static uint32_t arith(ing_ad_code *c, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(&c->b, op, ING_I64, a, b, 0);
}

static uint32_t compare(ing_ad_code *c, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(&c->b, op, ING_U1, a, b, 0);
}

static uint32_t number(ing_ad_code *c, int64_t v) {
    return ing_ir_const_int(&c->b, ING_I64, v);
}

/* Numbers of the launch, as deep as ing_ad_is_given goes. */
static uint32_t remake(ing_ad_code *c, uint32_t id) {
    ing_ir_uses u;
    ing_ir_inst_uses(c->f, ing_ir_at(c->f, id), &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) remake(c, u.fixed[k]);
    for (uint32_t k = 0; k < u.n_list; k++) remake(c, u.list[k]);
    ing_ir_copy_inst(&c->copy, id);
    return c->copy.map[id];
}

static uint32_t cast(ing_ad_code *c, uint32_t id, ing_type t) {
    return ing_ir_emit(&c->b, ING_OP_CAST, t, id, 0, 0);
}

static uint32_t wide(ing_ad_code *c, uint32_t id) {
    return c->b.func->insts.at[id].type == ING_I64 ? id : cast(c, id, ING_I64);
}

static uint32_t value_of(ing_ad_code *c, const ing_ir_form *form) {
    uint32_t sum = number(c, (int64_t)form->constant);
    for (uint32_t k = 0; k < form->n; k++) {
        uint32_t v = wide(c, remake(c, form->of[k]));
        uint32_t times = number(c, (int64_t)form->times[k]);
        sum = arith(c, ING_OP_ADD, sum, arith(c, ING_OP_MUL, v, times));
    }
    return form->bits == 32 ? cast(c, cast(c, sum, ING_I32), ING_I64) : sum;
}

/* `by` against the way in which later iterations go: they never come to where this one read. */
static uint32_t put_later(ing_ad_code *c, const ing_ad_told *t, uint32_t by) {
    const ing_ir_inst *loop = ing_ir_at(c->f, t->loop);
    int64_t step = t->local ? t->local : t->step;
    uint32_t zero = number(c, 0);
    uint32_t ahead = step > 0 ? by : arith(c, ING_OP_SUB, zero, by);
    uint32_t apart = compare(c, t->strict ? ING_OP_GT : ING_OP_GE, ahead, zero);
    if (t->local) return apart;
    uint32_t size = number(c, step > 0 ? step : -step);
    uint32_t left = arith(c, ING_OP_REM, ahead, size);
    apart = compare(c, ING_OP_OR, apart, compare(c, ING_OP_NE, left, zero));
    if (loop->op != ING_OP_LOOP || !ing_ad_is_given(c->n, loop->a) ||
        !ing_ad_is_given(c->n, loop->b))
        return apart;
    uint32_t from = wide(c, remake(c, loop->a)), to = wide(c, remake(c, loop->b));
    uint32_t all = arith(c, ING_OP_MUL, arith(c, ING_OP_SUB, to, from), size);
    uint32_t back = arith(c, ING_OP_SUB, zero, ahead);
    return compare(c, ING_OP_OR, apart, compare(c, ING_OP_LE, all, back));
}

static uint32_t put_axis(ing_ad_code *c, const ing_ad_told *t) {
    uint32_t by = value_of(c, &t->by);
    bool stays = !t->loop || (!t->step && !t->local);
    return stays ? compare(c, ING_OP_NE, by, number(c, 0)) : put_later(c, t, by);
}

static bool all_given(const ing_ad_fn *n, const ing_ir_inst *i) {
    ing_ir_uses u;
    ing_ir_inst_uses(n->f, i, &u);
    for (uint32_t k = 0; k < u.n_list; k++)
        if (!ing_ad_is_given(n, u.list[k])) return false;
    return true;
}

/* Does the loop run no iteration; 0: the numbers of the launch do not tell. */
static uint32_t put_empty(ing_ad_code *c, const ing_ir_inst *loop) {
    const ing_ir_inst *end = ing_ir_at(c->f, loop->b);
    bool given =
        end->op == ING_OP_AXES ? all_given(c->n, end) : ing_ad_is_given(c->n, loop->b);
    if (!given || !ing_ad_is_given(c->n, loop->a)) return 0;
    uint32_t from = remake(c, loop->a);
    return compare(c, ING_OP_LE, remake(c, loop->b), from);
}

/* Is the branch not taken in which it stands? */
static uint32_t put_untaken(ing_ad_code *c, const ing_ir_inst *i, uint32_t block) {
    if (!ing_ad_is_given(c->n, i->a)) return 0;
    uint32_t cond = remake(c, i->a);
    return block == i->b ? ing_ir_emit(&c->b, ING_OP_NOT, ING_U1, cond, 0, 0) : cond;
}

/* Or is it not run at all? */
static uint32_t put_idle(ing_ad_code *c, uint32_t id, uint32_t apart) {
    for (uint32_t p = c->n->parent[id]; p; id = p, p = c->n->parent[p]) {
        const ing_ir_inst *i = ing_ir_at(c->f, p);
        uint32_t idle = i->op == ING_OP_LOOP ? put_empty(c, i)
                        : i->op == ING_OP_IF ? put_untaken(c, i, c->n->block[id])
                                             : 0;
        if (idle) apart = compare(c, ING_OP_OR, apart, idle);
    }
    return apart;
}

void ing_ad_put_told(ing_ad_code *c) {
    for (uint32_t k = 0; k < c->ad->told.len; k++) {
        const ing_ad_pair *p = &c->ad->told.at[k];
        uint32_t apart = 0;
        c->b.loc = p->loc;
        for (uint32_t j = 0; j < p->n; j++) {
            uint32_t one = put_axis(c, &c->ad->axes.at[p->first + j]);
            apart = apart ? compare(c, ING_OP_OR, apart, one) : one;
        }
        apart = put_idle(c, p->write, put_idle(c, p->read, apart));
        ing_ir_emit(&c->b, ING_OP_CHECK, 0, apart, ING_ABI_RULE, 0);
    }
}
