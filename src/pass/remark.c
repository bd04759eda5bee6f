/* Remarks: what the passes decided about loops and updates, for `ingot explain --code`. Passes note
 * their decisions (ing_pass_remark) where they take them; the last pass, here, adds what is seen in
 * the tasks as they are in the end: what runs in parallel, and what keeps iterations from going side
 * by side. It changes nothing. Remarks about updates that a later pass took care of are dropped. */
#include "pass/pass_int.h"

enum { MAX_REMARKS = 2048 }; /* of a kernel; they are compared with each other */

const char *ing_remark_words(uint32_t what) {
    static const char *const words[ING_REMARK_N] = {
#define REMARK(name, array, text) text,
#include "pass/remark.def"
#undef REMARK
    };
    return what < ING_REMARK_N ? words[what] : "";
}

static bool is_of_array(ing_remark what) {
    static const bool of[ING_REMARK_N] = {
#define REMARK(name, array, text) array,
#include "pass/remark.def"
#undef REMARK
    };
    return of[what];
}

void ing_pass_remark(ing_ir_mod *m, const ing_ir_func *f, uint32_t loc, ing_remark what,
                     uint32_t arg) {
    ing_ir_remark r = {.tree = f->tree, .loc = loc, .what = what};
    if (is_of_array(what)) r.word = m->args.at[arg].word + 1;
    const ing_ir_remark *last =
        m->remarks.len ? &m->remarks.at[m->remarks.len - 1] : &r;
    bool again = last != &r && last->tree == r.tree && last->loc == loc &&
                 last->what == r.what && last->word == r.word; /* an unrolled loop */
    uint32_t most = is_of_array(what) ? MAX_REMARKS : 2 * MAX_REMARKS;
    if (loc && !again && m->remarks.len < most) (void)ing_vec_push(&m->remarks, r);
}

/* ---- the tasks as they are in the end -------------------------------------------------------- */

/* Why the iterations of the parallel loop do not go side by side; VECTOR: nothing is seen. */
static ing_remark obstacle(const ing_ir_scan *s) {
    uint8_t has = s->has[s->parallel];
    ing_remark found = ING_REMARK_VECTOR;
    for (uint32_t id = 1; id < s->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(s->f, id);
        if (!ing_ir_inside(s, id, s->parallel)) continue;
        bool update = i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
        if (i->op == ING_OP_WHILE) return ING_REMARK_WHILES;
        if (i->op == ING_OP_PRINT) found = ING_REMARK_PRINTS;
        if (update && !(i->flags & ING_IR_PRIVATE)) found = ING_REMARK_UPDATES;
    }
    if (has & ING_IR_HAS_STOP) return ING_REMARK_CHECKS;
    if (has & ING_IR_HAS_RANDOM) return ING_REMARK_DRAWS;
    if (found == ING_REMARK_VECTOR && has & ING_IR_HAS_LOOP) return ING_REMARK_LOOPS;
    return found;
}

static bool is_noted(const ing_ir_mod *m, uint32_t tree, uint32_t loc,
                     ing_remark what) {
    for (uint32_t k = 0; k < m->remarks.len; k++) {
        const ing_ir_remark *r = &m->remarks.at[k];
        if (r->tree == tree && r->loc == loc && r->what == what) return true;
    }
    return false;
}

static void tell_range(ing_ir_mod *m, const ing_ir_task *t, const ing_ir_scan *s) {
    const ing_ir_func *f = s->f;
    ing_pass_remark(m, f, t->loc, ING_REMARK_PARALLEL, 0);
    if (!s->parallel) return;
    if (ing_ir_at(f, s->parallel)->flags & ING_IR_WOVEN)
        ing_pass_remark(m, f, t->loc, ING_REMARK_WOVEN, 0);
    if (!is_noted(m, f->tree, t->loc, ING_REMARK_LANES))
        ing_pass_remark(m, f, t->loc, obstacle(s), 0);
}

static void tell_serial(ing_ir_mod *m, const ing_ir_scan *s) {
    for (uint32_t k = 0; k < s->loops.len; k++) {
        uint32_t id = s->loops.at[k];
        const ing_ir_inst *i = ing_ir_at(s->f, id);
        bool asked = i->flags & ING_IR_SERIAL;
        if (!s->home[id])
            ing_pass_remark(m, s->f, i->loc,
                            asked ? ING_REMARK_SERIALISED : ING_REMARK_INNER, 0);
    }
}

/* Atomics that a pass after demote made something else of. */
static bool is_settled(const ing_ir_mod *m, const ing_ir_remark *r) {
    bool atomic =
        r->what >= ING_REMARK_ATOMIC_PLACE && r->what <= ING_REMARK_ATOMIC_APART;
    return atomic && (is_noted(m, r->tree, r->loc, ING_REMARK_REDUCED) ||
                      is_noted(m, r->tree, r->loc, ING_REMARK_TALLIED) ||
                      is_noted(m, r->tree, r->loc, ING_REMARK_SUMMED));
}

ing_status ing_pass_remarks(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    bool ok = true;
    (void)o;
    for (uint32_t k = 0; ok && k < m->tasks.len; k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        ing_ir_scan s;
        ok = ing_ir_scan_init(&s, m->funcs.at[t->func]);
        if (ok && t->kind == ING_IR_TASK_RANGE)
            tell_range(m, t, &s);
        else if (ok)
            tell_serial(m, &s);
        ing_ir_scan_fini(&s);
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < m->remarks.len; k++) {
        ing_ir_remark r = m->remarks.at[k];
        if (!is_settled(m, &r)) m->remarks.at[kept++] = r;
    }
    m->remarks.len = kept;
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
