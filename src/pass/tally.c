/* Tallies: integers that a parallel loop updates at places which only the data know.
 *
 *   for i in range(n): bins[x[i]] += 1
 *
 * As atomics such updates wait for each other. Sums, products, minima, maxima and bitwise
 * updates of integers come out the same in any order, so each thread may update a copy of the
 * array that starts neutral, and put it together with the array at the end. Whether that pays
 * is known at a launch only (src/rt/tally.c): the array must be small beside the loop. So the
 * updates stay ATOMICs, marked ING_IR_TALLY: plain while ing_ctx.tallies says that the thread's
 * arguments name its copies, atomic else. Runs after reduce.c, which takes updates of one place.
 *
 * Rules
 *  TALLY1 an update qualifies when it is of an integer type but u1, of a kind that is exact in any
 *     order (not XCHG), its old value is not used, and what it updates lies in an array
 *     argument whose elements are such integers or tensors of them. Floats round: never.
 *  TALLY2 nothing else in the task touches that array: no load, store, update of another kind
 *     (sums and differences are one), nor a call that is given it or a func that names it.
 *  TALLY3 another array of the task is assumed to share no memory with it (apart.c): through it,
 *     an iteration would see the array without its own update.
 *  TALLY4 at most ING_IR_MAX_TALLIES arrays of a task; the others stay atomic.
 *  TALLY5 the copy of a field is one of all that it spans, and takes the place of its block: no
 *     other field of that block is touched. What lies between its elements stays neutral. */
#include "pass/targets.h"

static bool qualifies(const ing_targets *x, uint32_t id) { /* TALLY1 */
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    ing_target t = ing_target_of(x, i->a);
    ing_ir_atomic kind = (ing_ir_atomic)ing_pass_sum_kind(i->c);
    ing_ir_tally y;
    if (t.op != ING_OP_ARRAY || i->flags & ING_IR_PRIVATE) return false;
    return ing_ir_tally_ok(kind, (ing_dtype)i->type) &&
           ing_ir_tally_of(x->m, x->m->args.at[t.a].type, &y) && y.dtype == i->type;
}

static bool has_tally(const ing_ir_task *t, uint32_t word) {
    for (uint32_t k = 0; k < t->n_tallies; k++)
        if (t->tallies[k].word == word) return true;
    return false;
}

static void add_tally(ing_ir_mod *m, ing_ir_task *t, uint32_t arg, uint32_t kind) {
    ing_ir_tally y = {0};
    (void)ing_ir_tally_of(m, m->args.at[arg].type, &y); /* TALLY1 */
    y.word = m->args.at[arg].word;
    y.kind = ing_pass_sum_kind(kind);
    t->tallies[t->n_tallies++] = y;
}

/* TALLY5: the loop touches no other field of the same block. */
static bool has_its_word(const ing_targets *x, uint32_t arg) {
    for (uint32_t k = 0; k < x->fates.len; k++) {
        ing_target t = x->fates.at[k].of;
        if (t.op == ING_OP_ARRAY && t.a != arg &&
            x->m->args.at[t.a].word == x->m->args.at[arg].word)
            return false;
    }
    return true;
}

/* Marks the update if it may be, with its array. */
static void look(ing_targets *x, ing_ir_task *t, uint32_t id) {
    ing_ir_inst *i = &x->f->insts.at[id];
    if (i->op != ING_OP_ATOMIC) return;
    ing_target of = ing_target_of(x, i->a);
    if (of.op != ING_OP_ARRAY) return;
    bool known = has_tally(t, x->m->args.at[of.a].word);
    if (!known && t->n_tallies == ING_IR_MAX_TALLIES) return; /* TALLY4 */
    if (!has_its_word(x, of.a) || !ing_target_alone(x, id)) return;
    if (!known) add_tally(x->m, t, of.a, i->c);
    i->flags |= ING_IR_TALLY;
    ing_pass_remark(x->m, x->f, i->loc, ING_REMARK_TALLIED, of.a);
}

static bool run_task(ing_ir_mod *m, ing_ir_task *t, const ing_pass_options *o,
                     const ing_pass_funcs *funcs) {
    ing_ir_func *f = m->funcs.at[t->func];
    ing_targets x = {.m = m, .f = f, .o = o, .funcs = funcs};
    x.qualifies = qualifies;
    x.one_kind = true;
    bool ok = ing_targets_init(&x, true);
    for (uint32_t id = 1; ok && id < f->insts.len; id++) look(&x, t, id);
    ing_targets_fini(&x);
    return ok;
}

/* Most loops update nothing, and cost one look at their instructions here. */
ing_status ing_pass_tally(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs = {0};
    bool ok = true;
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++) {
        ing_ir_task *t = &m->tasks.at[k];
        if (t->kind != ING_IR_TASK_RANGE || !ing_ir_has_updates(m->funcs.at[t->func]))
            continue;
        if (!funcs.named) ok = ing_pass_funcs_init(&funcs, m);
        if (ok) ok = run_task(m, t, o, &funcs);
    }
    ing_pass_funcs_fini(&funcs);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
