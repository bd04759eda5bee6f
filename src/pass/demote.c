/* Atomics that need not be: they become plain updates (ING_IR_PRIVATE), which LLVM can keep in
 * registers and vectorise. Runs after the split, while the loop still counts places.
 * Rules
 *  DEMOTE1 a serial task runs alone, and so does a loop of one iteration: all its atomics are plain.
 *  DEMOTE2 in a parallel loop an update is plain when the subscripts of all writes to its array
 *     there tell the iteration (ACCESS4 in src/ir/access.h): on some axes of the array they are one
 *     and the same form, but for a spread that is too small to reach the place of another
 *     iteration. Or no two of the writes can meet in different iterations (ACCESS5). Subscripts lie
 *     within the array: out of it, nothing is promised.
 *  DEMOTE3 other arrays that are updated atomically there are assumed to share no memory with it
 *     (apart.c): they might overlap it at an offset.
 *  DEMOTE4 no call is given the array to write to it, and no func writes to it by name. */
#include "pass/pass_int.h"

typedef struct writes { /* to one array argument, in the parallel loop of one task */
    ing_ir_family at[ING_MAX_NDIM]; /* their subscripts on each axis */
    uint32_t axes;
    bool atomic;  /* some are */
    bool spoiled; /* some are made where nobody knows (DEMOTE4) */
    bool judged;  /* DEMOTE2 and DEMOTE3 were asked, and what they said */
    ing_remark said;
} writes;

enum {
    MAX_ATOMIC = 16, /* arrays that a loop updates atomically, for DEMOTE3 */
    MAX_PAIRS = 12,  /* writes to one array that are compared with each other */
};

typedef struct demoter {
    ing_ir_mod *m;
    ing_ir_func *f;
    const ing_pass_options *o;
    const ing_pass_funcs *funcs;
    ing_ir_scan scan;
    ing_ir_told none;  /* no index is told apart yet */
    writes *arrays;    /* per argument */
    uint32_t n_atomic; /* of them are updated atomically, for DEMOTE3 */
    bool unknown;      /* so is something that is none of them */
} demoter;

static bool is_atomic(const ing_ir_inst *i) {
    return i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
}

/* ---- DEMOTE2 ------------------------------------------------------------------------------------- */

static void note_subscript(demoter *d, writes *w, uint32_t elem) {
    const ing_ir_inst *e = ing_ir_at(d->f, elem);
    w->axes = e->c;
    for (uint32_t k = 0; k < e->c; k++)
        ing_ir_family_add(&w->at[k], &d->none, &d->scan, d->f->extra.at[e->b + k]);
}

static bool tells_iteration(const demoter *d, const writes *w) {
    ing_ir_told told = d->none;
    for (uint32_t k = 0; k < w->axes; k++) ing_ir_told_add(&told, &d->scan, &w->at[k]);
    return ing_ir_told_all(&told);
}

static bool writes_to(const demoter *d, const ing_ir_access *a, uint32_t array) {
    return a->root == ING_OP_ARRAY && a->of == array && a->elem &&
           ing_ir_at(d->f, a->id)->op != ING_OP_LOAD;
}

static bool never_meet(const demoter *d, uint32_t array) {
    const ing_ir_scan *s = &d->scan;
    uint32_t elems[MAX_PAIRS], n = 0;
    for (uint32_t k = s->first[s->parallel]; k < s->end[s->parallel]; k++) {
        if (!writes_to(d, &s->accesses.at[k], array)) continue;
        if (n == MAX_PAIRS) return false;
        elems[n++] = s->accesses.at[k].elem;
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j <= k; j++)
            if (ing_ir_may_meet(s, s->parallel, elems[k], elems[j])) return false;
    return true;
}

/* ---- what the loop writes --------------------------------------------------------------------- */

/* A call that is given the array, but writes nothing there. */
static bool only_reads(const demoter *d, const ing_ir_access *a) {
    const ing_ir_inst *i = ing_ir_at(d->f, a->id);
    if (i->op != ING_OP_CALL) return false;
    for (uint32_t k = 0; k < i->c; k++)
        if (d->f->extra.at[i->b + k] == a->ref &&
            ing_pass_func_writes(d->funcs, i->a, k))
            return false;
    return true;
}

static void note_access(demoter *d, const ing_ir_access *a) {
    const ing_ir_inst *i = ing_ir_at(d->f, a->id);
    if (i->op == ING_OP_LOAD || only_reads(d, a)) return;
    if (a->root == ING_OP_ARRAY) {
        writes *w = &d->arrays[a->of];
        if (i->op == ING_OP_CALL || !a->elem)
            w->spoiled = true;
        else
            note_subscript(d, w, a->elem);
        d->n_atomic += is_atomic(i) && !w->atomic;
        w->atomic |= is_atomic(i);
    } else if (is_atomic(i)) {
        bool own = a->root == ING_OP_ALLOCA || a->root == ING_OP_BUFFER;
        d->unknown |= !own; /* memory of the launch, which no array shares */
    }
}

static bool apart(const demoter *d, uint32_t array) { /* DEMOTE3 */
    bool many = d->unknown || d->n_atomic > MAX_ATOMIC;
    if (many || !ing_pass_may_assume(d->m, d->o, d->n_atomic - 1)) return false;
    for (uint32_t k = 0; k < d->m->args.len; k++)
        if (d->arrays[k].atomic && k != array) ing_pass_assume_apart(d->m, array, k);
    return true;
}

/* PLAIN, or why not. */
static ing_remark judge(const demoter *d, uint32_t array) {
    writes *w = &d->arrays[array];
    bool called = (d->scan.has[d->scan.parallel] & ING_IR_HAS_CALL) &&
                  (d->funcs->atomic || d->funcs->named[array] & ING_PASS_WRITTEN);
    if (w->spoiled || called) return ING_REMARK_ATOMIC_FUNC;
    if (!w->judged)
        w->said = !tells_iteration(d, w) && !never_meet(d, array)
                      ? ING_REMARK_ATOMIC_PLACE
                  : apart(d, array) ? ING_REMARK_PLAIN
                                    : ING_REMARK_ATOMIC_APART;
    w->judged = true;
    return w->said;
}

/* ---- the pass --------------------------------------------------------------------------------- */

static void run_serial(ing_ir_func *f) { /* DEMOTE1 */
    for (uint32_t id = 1; id < f->insts.len; id++)
        if (is_atomic(&f->insts.at[id])) f->insts.at[id].flags |= ING_IR_PRIVATE;
}

static bool runs_once(const ing_ir_task *t) {
    const ing_ir_bound *a = &t->begin, *b = &t->end;
    return a->at == ING_IR_BOUND_CONST && b->at == ING_IR_BOUND_CONST &&
           (uint64_t)b->value - (uint64_t)a->value == 1;
}

static bool run_range(demoter *d) {
    ing_ir_scan *s = &d->scan;
    if (!ing_ir_has_updates(d->f)) return true;
    bool ok = ing_ir_scan_init(s, d->f);
    d->arrays = ing_calloc((size_t)d->m->args.len + 1, sizeof *d->arrays);
    ok = ok && d->arrays;
    if (ok) ing_ir_told_init(&d->none, s);
    uint32_t first = ok ? s->first[s->parallel] : 0, end = ok ? s->end[s->parallel] : 0;
    for (uint32_t k = first; k < end; k++) note_access(d, &s->accesses.at[k]);
    for (uint32_t k = first; k < end; k++) {
        const ing_ir_access *a = &s->accesses.at[k];
        ing_ir_inst *i = &d->f->insts.at[a->id];
        if (!is_atomic(i) || a->root != ING_OP_ARRAY) continue;
        ing_remark said = judge(d, a->of);
        if (said == ING_REMARK_PLAIN) i->flags |= ING_IR_PRIVATE;
        ing_pass_remark(d->m, d->f, i->loc, said, a->of);
    }
    ing_free(d->arrays);
    ing_ir_scan_fini(s);
    return ok;
}

ing_status ing_pass_demote(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs;
    bool ok = ing_pass_funcs_init(&funcs, m);
    for (uint32_t k = 0; k < m->tasks.len && ok; k++) {
        demoter d = {.m = m, .o = o, .funcs = &funcs};
        d.f = m->funcs.at[m->tasks.at[k].func];
        if (m->tasks.at[k].kind == ING_IR_TASK_SERIAL || runs_once(&m->tasks.at[k]))
            run_serial(d.f);
        else
            ok = run_range(&d);
    }
    ing_pass_funcs_fini(&funcs);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
