/* Tallies: numbers that a parallel loop updates at places which only the data know.
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
 * Floats round, so their sums have copies for stretches of the loop instead, by its length alone, which
 * are added in their order: threads change nothing (R23). As for
 *
 *   for i in range(n): for j in range(m): s[j] += r[i] * a[i, j]
 *
 * Rules
 *  TALLY1 an update qualifies when it is of an integer type but u1, of a kind that is exact in any
 *     order (not XCHG), its old value is not used, and what it updates lies in an array
 *     argument whose elements are such integers or tensors of them. Sums of f32 and f64 qualify in a
 *     task without such integers.
 *  TALLY2 nothing else in the task touches that array: no load, store, update of another kind
 *     (sums and differences are one), nor a call that is given it or a func that names it.
 *  TALLY3 another array of the task is assumed to share no memory with it (apart.c): through it,
 *     an iteration would see the array without its own update.
 *  TALLY4 at most ING_IR_MAX_TALLIES arrays of a task; the others stay atomic.
 *  TALLY5 the copy of a field is one of all that it spans, and takes the place of its block: no
 *     other field of that block is touched. What lies between its elements stays neutral.
 *  TALLY6 how often an iteration updates an array of floats is told to the launch: the loops inside
 *     with which the place varies count, if they run a constant number of times, up to an extent or
 *     an argument, or up to the index of the parallel loop. One of the latter there must be: else copies
 *     would rarely pay, and the code has both ways. */
#include "pass/pointee.h"

enum { MAX_TIMES = 1 << 20 };

static bool qualifies(const ing_pointees *x, uint32_t id) { /* TALLY1 */
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    ing_pointee t = ing_pointee_of(x, i->a);
    ing_ir_atomic kind = (ing_ir_atomic)ing_pass_sum_kind(i->c);
    ing_ir_tally y;
    if (t.op != ING_OP_ARRAY || i->flags & ING_IR_PRIVATE) return false;
    return ing_ir_tally_ok(kind, (ing_dtype)i->type) &&
           (x->floats || !ing_dtype_is_float((ing_dtype)i->type)) &&
           ing_ir_tally_of(x->m, x->m->args.at[t.a].type, &y) && y.dtype == i->type;
}

/* ---- TALLY6 ---------------------------------------------------------------------------------- */

/* The count itself, where 0 stands for less (loops of derivatives) or its type is another. */
static uint32_t plain_count(const ing_pointees *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    for (; i->op == ING_OP_SELECT || i->op == ING_OP_CAST; i = ing_ir_at(x->f, id)) {
        const ing_ir_inst *other = ing_ir_at(x->f, i->c);
        bool zero = other->op == ING_OP_CONST && ing_ir_const_bits(other) == 0;
        bool count = ing_dtype_is_int((ing_dtype)ing_ir_at(x->f, i->a)->type);
        if (i->op == ING_OP_SELECT ? !zero : !count) break;
        id = i->op == ING_OP_SELECT ? i->b : i->a;
    }
    return id;
}

/* The argument word + 1 that the end of a loop is, ING_IR_TALLY_TRIPS, or 0: not known. */
static uint32_t word_of(const ing_pointees *x, uint32_t end) {
    uint32_t id = plain_count(x, end);
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    ing_ir_form form;
    ing_ir_form_of(x->f, id, &form);
    for (uint32_t k = 0; k < form.n; k++)
        if (form.of[k] == x->scan.parallel) return (uint32_t)ING_IR_TALLY_TRIPS;
    if (i->op == ING_OP_DIM && ing_ir_at(x->f, i->a)->op == ING_OP_ARRAY &&
        !ing_ir_type(x->m, ing_ir_at(x->f, i->a)->type)->place)
        return x->m->args.at[ing_ir_at(x->f, i->a)->a].word + 1 + i->b + 1;
    bool fits = i->op == ING_OP_ARG && ing_dtype_is_int((ing_dtype)i->type) &&
                i->type != ING_U64;
    return fits ? x->m->args.at[i->a].word + 1 : 0;
}

static ing_ir_tally count_updates(const ing_pointees *x, uint32_t id) {
    uint32_t loop = x->scan.home[id], over[2] = {0, 0}, n = 0;
    uint64_t times = 1, trips;
    for (; loop && loop != x->scan.parallel; loop = x->scan.home[loop]) {
        const ing_ir_inst *l = ing_ir_at(x->f, loop);
        if (l->op != ING_OP_LOOP ||
            !ing_ir_varies(&x->scan, ing_ir_at(x->f, id)->a, loop))
            continue;
        if (ing_ir_trips(x->f, l->a, l->b, &trips)) {
            times = trips < MAX_TIMES / times ? times * (trips ? trips : 1) : MAX_TIMES;
            continue;
        }
        uint32_t word = word_of(x, l->b);
        if (word && n < 2) over[n++] = word;
    }
    return (ing_ir_tally){.times = (uint32_t)times, .over = over[0], .over2 = over[1]};
}

static ing_ir_tally *add_tally(ing_ir_mod *m, ing_ir_task *t, uint32_t arg,
                               uint32_t kind) {
    ing_ir_tally y = {0};
    (void)ing_ir_tally_of(m, m->args.at[arg].type, &y); /* TALLY1 */
    y.word = m->args.at[arg].word;
    y.kind = ing_pass_sum_kind(kind);
    t->tallies[t->n_tallies++] = y;
    return &t->tallies[t->n_tallies - 1];
}

static ing_ir_tally *find_tally(ing_ir_task *t, uint32_t word) {
    for (uint32_t k = 0; k < t->n_tallies; k++)
        if (t->tallies[k].word == word) return &t->tallies[k];
    return NULL;
}

/* TALLY5: the loop touches no other field of the same block. */
static bool has_its_word(const ing_pointees *x, uint32_t arg) {
    for (uint32_t k = 0; k < x->fates.len; k++) {
        ing_pointee t = x->fates.at[k].of;
        if (t.op == ING_OP_ARRAY && t.a != arg &&
            x->m->args.at[t.a].word == x->m->args.at[arg].word)
            return false;
    }
    return true;
}

/* Marks the update if it may be, with its array. */
static void look(ing_pointees *x, ing_ir_task *t, uint32_t id) {
    ing_ir_inst *i = &x->f->insts.at[id];
    if (i->op != ING_OP_ATOMIC) return;
    ing_pointee of = ing_pointee_of(x, i->a);
    if (of.op != ING_OP_ARRAY) return;
    ing_ir_tally *y = find_tally(t, x->m->args.at[of.a].word);
    if (!y && t->n_tallies == ING_IR_MAX_TALLIES) return; /* TALLY4 */
    ing_ir_tally n = {0};
    if (x->floats) n = count_updates(x, id);
    if (x->floats && !y && !n.over) return; /* TALLY6 */
    if (!has_its_word(x, of.a) || !ing_pointee_alone(x, id)) return;
    if (!y) {
        y = add_tally(x->m, t, of.a, i->c);
        y->times = n.times;
        y->over = n.over;
        y->over2 = n.over2;
    }
    i->flags |= ING_IR_TALLY;
    ing_pass_remark(x->m, x->f, i->loc,
                    x->floats ? ING_REMARK_SUMMED : ING_REMARK_TALLIED, of.a);
}

static bool run_task(ing_ir_mod *m, ing_ir_task *t, const ing_pass_options *o,
                     const ing_pass_funcs *funcs, bool floats) {
    ing_ir_func *f = m->funcs.at[t->func];
    ing_pointees x = {.m = m, .f = f, .o = o, .funcs = funcs, .floats = floats};
    x.qualifies = qualifies;
    x.one_kind = true;
    bool ok = ing_pointees_init(&x, true);
    for (uint32_t id = 1; ok && id < f->insts.len; id++) look(&x, t, id);
    ing_pointees_fini(&x);
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
        if (ok) ok = run_task(m, t, o, &funcs, false);
        if (ok && !t->n_tallies) ok = run_task(m, t, o, &funcs, true);
    }
    ing_pass_funcs_fini(&funcs);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
