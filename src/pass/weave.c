/* Weave: loops in whose iterations the order of accesses matters beyond what code may forget.
 *
 *   for i in v: v[i].x = 1; t = v[i][k]; v[i].y = t
 *
 * Accesses of a parallel loop are told to LLVM as independent (llvm.loop.parallel_accesses), which
 * holds from one iteration to another. Its vectoriser takes that for a promise about one iteration
 * as well where it joins strided accesses: loads move up to the first of their row, stores down to
 * the last. What stands between and may touch the same place sees the wrong value. Such loops are
 * marked ING_IR_WOVEN: they carry no promise, and LLVM looks for itself. Runs last.
 *
 * Rules
 *  WEAVE1 a row is of loads, or of stores, of one array, or of the fields of one block, whose steps
 *     from iteration to iteration are more than one scalar: elements that are tensors or lie in cells, subscripts as 2 * i.
 *  WEAVE2 between two stores of a row nothing may touch what the first one writes, between two
 *     loads nothing may write what the second one reads, unless it is the very same place: those
 *     LLVM joins before. In a loop inside, everything stands between everything.
 *  WEAVE3 other arrays are assumed to lie apart (apart.c), fields of other blocks do.
 *  WEAVE4 more accesses than MAX_TOUCHES are not compared: the loop is marked. */
#include "pass/pass_int.h"

enum { MAX_TOUCHES = 300 };

typedef enum relation { APART, SAME, MAYBE, ELSEWHERE } relation;

typedef struct touch {
    const ing_ir_access *a;
    bool reads, writes, in_row;
    bool dynamic; /* a member that is chosen at run time */
    /* a key of the members that it goes through; 0: the whole element */
    uint64_t member;
} touch;

typedef struct weaver {
    ing_ir_mod *m;
    ing_ir_func *f;
    const ing_pass_options *o;
    ing_ir_scan scan;
    touch at[MAX_TOUCHES];
    uint32_t n;
    bool woven;
} weaver;

static const ing_type_info *array_of(const weaver *x, const touch *t) {
    return ing_ir_type(x->m, x->m->args.at[t->a->of].type);
}

static uint32_t subscript(const weaver *x, const touch *t, uint32_t axis) {
    return x->f->extra.at[ing_ir_at(x->f, t->a->elem)->b + axis];
}

/* How often the index of the loop counts in a subscript; false: nobody knows. */
static bool steps(const weaver *x, uint32_t id, uint64_t *times) {
    ing_ir_form form;
    *times = 0;
    ing_ir_form_of(x->f, id, &form);
    for (uint32_t k = 0; k < form.n; k++) {
        if (form.of[k] == x->scan.parallel)
            *times = form.times[k];
        else if (ing_ir_varies(&x->scan, form.of[k], x->scan.parallel))
            return false;
    }
    return form.known;
}

static bool is_in_row(const weaver *x, const touch *t) { /* WEAVE1 */
    const ing_type_info *array = array_of(x, t);
    bool scalar = ing_ir_type(x->m, array->elem)->kind == ING_TYPE_SCALAR,
         steps_any = false;
    const ing_place *p = array->place;
    bool dense = !p || (p->n_levels && p->level[p->n_levels - 1].stride ==
                                           (int64_t)ing_place_elem_bytes(p));
    uint32_t last = p ? (p->n_levels ? p->level[p->n_levels - 1].axis : 0)
                      : array->layout[array->rank ? array->rank - 1 : 0];
    for (uint32_t k = 0; k < array->rank; k++) {
        uint64_t times;
        if (!steps(x, subscript(x, t, k), &times)) return !scalar;
        steps_any |= times != 0;
        if (times &&
            !(scalar && dense && k == last && (times == 1 || times == UINT64_MAX)))
            return true;
    }
    return steps_any && !scalar;
}

static void add_touch(weaver *x, const ing_ir_access *a) {
    const ing_ir_inst *i = ing_ir_at(x->f, a->id);
    if (a->root != ING_OP_ARRAY || i->op == ING_OP_ADDRESS) return;
    if (x->n == MAX_TOUCHES) {
        x->woven = true;
        return;
    }
    touch t = {.a = a, .reads = i->op != ING_OP_STORE, .writes = i->op != ING_OP_LOAD};
    for (const ing_ir_inst *r = ing_ir_at(x->f, a->ref);
         r->op == ING_OP_MEMBER || r->op == ING_OP_MEMBER_DYN;
         r = ing_ir_at(x->f, r->a)) {
        t.dynamic |= r->op == ING_OP_MEMBER_DYN;
        t.member = (t.member + r->b + 1) * 1099511628211u;
    }
    t.in_row = a->elem && i->op != ING_OP_CALL && is_in_row(x, &t);
    x->at[x->n++] = t;
}

/* ---- where two accesses of an iteration meet ------------------------------------------------ */

static bool shifted(const ing_ir_form *a, const ing_ir_form *b) {
    bool same = a->known && b->known && a->n == b->n && a->bits == b->bits &&
                a->constant != b->constant;
    for (uint32_t k = 0; same && k < a->n; k++)
        same = a->of[k] == b->of[k] && a->times[k] == b->times[k];
    return same;
}

static relation in_one_array(const weaver *x, const touch *a, const touch *b) {
    bool same = true;
    if (!a->a->elem || !b->a->elem) return MAYBE;
    for (uint32_t k = 0; k < array_of(x, a)->rank; k++) {
        ing_ir_form p, q;
        ing_ir_form_of(x->f, subscript(x, a, k), &p);
        ing_ir_form_of(x->f, subscript(x, b, k), &q);
        if (shifted(&p, &q)) return APART;
        same &= ing_ir_form_same(&p, &q);
    }
    if (!same || a->dynamic || b->dynamic) return MAYBE;
    return a->member && b->member && a->member != b->member ? APART : SAME;
}

static relation relate(const weaver *x, const touch *a, const touch *b) {
    const ing_ir_arg *p = &x->m->args.at[a->a->of], *q = &x->m->args.at[b->a->of];
    if (a->a->of == b->a->of) return in_one_array(x, a, b);
    const ing_place *s = array_of(x, a)->place, *t = array_of(x, b)->place;
    if (!s || !t) return ELSEWHERE;
    return p->word != q->word || ing_place_apart(s, t) ? APART : MAYBE;
}

/* `between` stands between accesses of the row of `of`, and moves past it (WEAVE2). */
static void meet(weaver *x, const touch *between, const touch *of) {
    switch (relate(x, between, of)) {
    case MAYBE: x->woven = true; break;
    case ELSEWHERE: /* WEAVE3 */
        if (ing_pass_may_assume(x->m, x->o, 1))
            ing_pass_assume_apart(x->m, between->a->of, of->a->of);
        else
            x->woven = true;
        break;
    default: break;
    }
}

/* The outermost loop inside of the parallel one that an access stands in; 0: none. */
static uint32_t loop_of(const weaver *x, const touch *t) {
    uint32_t loop = 0, home = x->scan.home[t->a->id];
    for (; home && home != x->scan.parallel; home = x->scan.home[home]) loop = home;
    return loop;
}

static bool in_one_loop(const weaver *x, const touch *a, const touch *b) {
    uint32_t loop = loop_of(x, a);
    return loop && loop == loop_of(x, b);
}

static uint32_t word_of(const weaver *x, const touch *t) {
    return x->m->args.at[t->a->of].word;
}

/* Is access `at` between g and another of its row? */
static bool stands_between(const weaver *x, uint32_t at, uint32_t g) {
    const touch *of = &x->at[g];
    bool stores = g < at; /* which move down; loads move up */
    if (in_one_loop(x, &x->at[at], of)) return true;
    for (uint32_t k = stores ? at + 1 : 0; k < (stores ? x->n : at); k++) {
        const touch *t = &x->at[k];
        if (t->in_row && word_of(x, t) == word_of(x, of) &&
            (stores ? t->writes : t->reads))
            return true;
    }
    return false;
}

static void compare(weaver *x) {
    for (uint32_t i = 0; i < x->n && !x->woven; i++)
        for (uint32_t g = 0; g < x->n && !x->woven; g++) {
            const touch *of = &x->at[g], *at = &x->at[i];
            bool again = in_one_loop(x, at, of); /* before and after */
            bool moves = (of->writes && (again || g < i)) ||
                         (of->reads && at->writes && (again || g > i));
            if (g != i && of->in_row && moves && stands_between(x, i, g))
                meet(x, at, of);
        }
}

/* ---- the pass ---------------------------------------------------------------------------------- */

static bool run_task(weaver *x, const ing_pass_funcs *funcs) {
    ing_ir_scan *s = &x->scan;
    bool ok = ing_ir_scan_init(s, x->f), rows = false, named = false;
    uint32_t first = ok ? s->first[s->parallel] : 0, end = ok ? s->end[s->parallel] : 0;
    for (uint32_t k = first; k < end && !x->woven; k++)
        add_touch(x, &s->accesses.at[k]);
    for (uint32_t k = 0; k < x->n; k++) rows |= x->at[k].in_row;
    for (uint32_t k = 0; k < x->m->args.len; k++) named |= funcs->named[k];
    if (ok && rows && named && s->has[s->parallel] & ING_IR_HAS_CALL) x->woven = true;
    if (ok && rows) compare(x);
    if (ok && x->woven) x->f->insts.at[s->parallel].flags |= ING_IR_WOVEN;
    ing_ir_scan_fini(s);
    return ok;
}

/* Two accesses of one array at least, one of them a write: else there is no order. */
static bool has_order(const ing_ir_func *f) {
    uint32_t elems = 0, writes = 0;
    for (uint32_t k = 1; k < f->insts.len; k++) {
        uint16_t op = ing_ir_at(f, k)->op;
        elems += op == ING_OP_ELEM;
        writes += op == ING_OP_STORE || op == ING_OP_ATOMIC || op == ING_OP_CAS ||
                  op == ING_OP_CALL;
    }
    return elems > 1 && writes;
}

ing_status ing_pass_weave(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    ing_pass_funcs funcs = {0};
    weaver *x = ing_calloc(1, sizeof *x);
    bool ok = x && ing_pass_funcs_init(&funcs, m);
    for (uint32_t k = 0; k < m->tasks.len && ok && ing_ir_ok(m); k++) {
        ing_ir_func *f = m->funcs.at[m->tasks.at[k].func];
        if (m->tasks.at[k].kind != ING_IR_TASK_RANGE || !has_order(f)) continue;
        *x = (weaver){.m = m, .f = f, .o = o};
        ok = run_task(x, &funcs);
    }
    ing_pass_funcs_fini(&funcs);
    ing_free(x);
    return ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
