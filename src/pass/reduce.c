/* Reductions: which updates of a parallel loop go to lanes. The rules stand in reduce.h;
 * pointee.c knows what else touches a target, reduce_emit.c writes the loop. Must never take
 * an update whose old value is used or whose target anything else in the loop touches. */
#include "pass/reduce.h"
#include "pass/pointee.h"

enum {
    CHUNK_UNITS = 1
        << 18,      /* rough instructions per chunk, at most: 65 us of scalar code */
    LONG_SHIFT = 6, /* of loops whose cost nobody knows */
    MIN_SHIFT = 4,
    MAX_TWICE = 200,    /* instructions of a loop that is written twice (REDUCE6) */
    MEMORY_LANES = 256, /* of one that is not */
};

static bool qualifies(const ing_pointees *x, uint32_t id) { /* REDUCE1 */
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    bool fits = i->c != ING_IR_ATOMIC_XCHG && i->type != ING_U1;
    return fits && x->scan.varies[i->a] == 0;
}

static void take(ing_reduce *r, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(r->f, id);
    ing_dtype t = (ing_dtype)i->type;
    bool is_float = ing_dtype_is_float(t);
    r->sums[r->n++] = (ing_reduce_sum){.id = id,
                                       .ref = i->a,
                                       .kind = ing_pass_sum_kind(i->c),
                                       .final = (uint8_t)i->c,
                                       .lane = t == ING_F16 ? ING_F32 : t,
                                       .part = is_float ? ING_F64 : t};
}

/* Iterations per chunk: decided by the code alone. */
static uint8_t chunk_shift(const ing_ir_task *t) {
    uint8_t shift = t->may_run_long ? LONG_SHIFT : ING_IR_MAX_CHUNK_SHIFT;
    while (shift > MIN_SHIFT && ((uint64_t)t->cost << shift) > CHUNK_UNITS) shift--;
    return shift;
}

/* ---- REDUCE6 and REDUCE7 ------------------------------------------------------------------------- */

static bool is_taken(const ing_reduce *r, uint32_t id) {
    for (uint32_t k = 0; k < r->n; k++)
        if (r->sums[k].id == id) return true;
    return false;
}

static bool is_short(const ing_reduce *r, const ing_ir_scan *s) {
    uint32_t n = 0;
    if (r->random || s->has[r->loop] & (ING_IR_HAS_LOOP | ING_IR_HAS_CALL))
        return false;
    for (uint32_t id = 1; id < r->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(r->f, id);
        bool update = i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
        if (!ing_ir_inside(s, id, r->loop)) continue;
        if (i->op == ING_OP_WHILE || ++n > MAX_TWICE) return false;
        if (update && !(i->flags & ING_IR_PRIVATE) && !is_taken(r, id)) return false;
    }
    return true;
}

/* As many as fit in 8 to 12 registers of 32 bytes together. */
static uint32_t register_lanes(const ing_reduce *r) {
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < r->n; k++) bytes += ing_dtype_bytes(r->sums[k].lane);
    return bytes <= 4 ? 64 : bytes <= 12 ? 32 : 16;
}

static void choose_lanes(ing_reduce *r, const ing_ir_scan *s) {
    uint32_t chunk = 1u << r->task->chunk_shift;
    r->twice = is_short(r, s);
    r->lanes = r->twice ? register_lanes(r) : MEMORY_LANES;
    if (chunk < r->lanes) r->lanes = chunk;
    for (uint32_t k = s->first[r->loop]; k < s->end[r->loop]; k++) {
        const ing_ir_access *a = &s->accesses.at[k];
        bool once = s->home[a->id] == r->loop && !(s->has[r->loop] & ING_IR_HAS_EXIT);
        for (uint32_t j = 0; j < r->n; j++)
            if (r->sums[j].id == a->id) r->sums[j].branch = once && !a->sure;
    }
}

static bool run_task(ing_ir_mod *m, uint32_t k, const ing_pass_options *o,
                     const ing_pass_funcs *funcs) {
    ing_ir_task *t = &m->tasks.at[k];
    ing_ir_func *f = m->funcs.at[t->func];
    ing_pointees x = {.m = m, .f = f, .o = o, .funcs = funcs, .qualifies = qualifies};
    ing_reduce r = {.m = m, .task = t, .f = f};
    bool ok = ing_pointees_init(&x, false);
    for (uint32_t id = 1; ok && id < f->insts.len && r.n < ING_IR_MAX_PARTIALS; id++)
        if (ing_pointee_alone(&x, id)) {
            ing_pointee of = ing_pointee_of(&x, ing_ir_at(f, id)->a);
            take(&r, id);
            if (of.op == ING_OP_ARRAY)
                ing_pass_remark(m, f, ing_ir_at(f, id)->loc, ING_REMARK_REDUCED, of.a);
        }
    if (ok && r.n) {
        const ing_ir_scan *s = &x.scan;
        bool calls = s->has[s->parallel] & ING_IR_HAS_CALL;
        r.loop = s->parallel;
        r.random = (s->has[0] & ING_IR_HAS_RANDOM) || (calls && funcs->random);
        t->chunk_shift = chunk_shift(t);
        t->partials = r.n;
        choose_lanes(&r, s);
        ok = ing_reduce_emit(&r);
    }
    ing_pointees_fini(&x);
    return ok;
}

ing_status ing_pass_reduce(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs;
    bool ok = ing_pass_funcs_init(&funcs, m);
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        if (t->kind == ING_IR_TASK_RANGE && ing_ir_has_updates(m->funcs.at[t->func]))
            ok = run_task(m, k, o, &funcs);
    }
    ing_pass_funcs_fini(&funcs);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
