/* Pairs of arrays that code assumes to share no memory (R22). A pass asks before it makes
 * use of that, and says so here; a launch compares the pairs, and where two overlap it runs
 * code for which ing_pass_options.overlap was set. */
#include "pass/pass_int.h"

bool ing_pass_may_assume(const ing_ir_mod *m, const ing_pass_options *o, uint32_t n) {
    return n == 0 || (!o->overlap && n <= ING_IR_MAX_APART - m->apart.len);
}

void ing_pass_assume_apart(ing_ir_mod *m, uint32_t a, uint32_t b) {
    ing_ir_apart pair = {a < b ? a : b, a < b ? b : a};
    const ing_ir_arg *x = &m->args.at[a], *y = &m->args.at[b];
    /* of one block: their layouts tell; those that overlap do so in every launch */
    if (x->word == y->word &&
        ing_place_apart(ing_ir_type(m, x->type)->place, ing_ir_type(m, y->type)->place))
        return;
    for (uint32_t k = 0; k < m->apart.len; k++)
        if (m->apart.at[k].a == pair.a && m->apart.at[k].b == pair.b) return;
    if (!ing_vec_push(&m->apart, pair)) m->arena.failed = true;
}

/* ---- all arrays of a loop ------------------------------------------------------------------------ */

static bool is_array(const ing_ir_scan *s, uint32_t k) {
    return s->accesses.at[k].root == ING_OP_ARRAY;
}

static bool is_write(const ing_ir_scan *s, uint32_t k) {
    return is_array(s, k) && ing_ir_at(s->f, s->accesses.at[k].id)->op != ING_OP_LOAD;
}

/* Is this the first access of two arrays of the loop, one of them written? */
static bool is_first_of(const ing_ir_scan *s, uint32_t loop, uint32_t p, uint32_t q) {
    uint32_t a = s->accesses.at[p].of, b = s->accesses.at[q].of;
    bool written = false;
    if (!is_array(s, p) || !is_array(s, q) || a >= b) return false;
    for (uint32_t k = s->first[loop]; k < s->end[loop]; k++) {
        uint32_t of = s->accesses.at[k].of;
        if (is_array(s, k) && ((of == a && k < p) || (of == b && k < q))) return false;
        written = written || (is_write(s, k) && (of == a || of == b));
    }
    return written;
}

static uint32_t each_pair(ing_ir_mod *m, const ing_ir_scan *s, uint32_t loop,
                          bool assume) {
    uint32_t n = 0;
    for (uint32_t p = s->first[loop]; p < s->end[loop]; p++)
        for (uint32_t q = s->first[loop]; q < s->end[loop]; q++) {
            if (!is_first_of(s, loop, p, q)) continue;
            n++;
            if (assume)
                ing_pass_assume_apart(m, s->accesses.at[p].of, s->accesses.at[q].of);
        }
    return n;
}

bool ing_pass_assume_all_apart(ing_ir_mod *m, const ing_pass_options *o,
                               const ing_ir_scan *s, uint32_t loop) {
    if (!ing_pass_may_assume(m, o, each_pair(m, s, loop, false))) return false;
    each_pair(m, s, loop, true);
    return true;
}

/* ---- what a loop reads at one place ------------------------------------------------------------ */

enum {
    FEW_TRIPS = 16, /* of a loop that LLVM unrolls */
    MOST_COUNTED =
        64, /* such reads and writes in a task: a launch compares their arrays */
};

/* The loop in which a load is repeated: loops of few trips are none. */
static uint32_t loop_of(const ing_ir_scan *s, uint32_t id) {
    uint32_t loop = s->home[id];
    uint64_t trips;
    while (loop && loop != s->parallel) {
        const ing_ir_inst *l = ing_ir_at(s->f, loop);
        bool few = l->op == ING_OP_LOOP && ing_ir_trips(s->f, l->a, l->b, &trips) &&
                   trips <= FEW_TRIPS;
        if (!few) break;
        loop = s->home[loop];
    }
    return loop;
}

/* Pairs of what is read there and what the loop writes, which keeps LLVM from reading it once. */
static uint32_t pairs_of(const ing_ir_scan *s, const ing_ir_access *r, ing_ir_mod *m,
                         bool say) {
    uint32_t loop = loop_of(s, r->id), n = 0;
    if (!loop || ing_ir_varies(s, r->ref, loop)) return 0;
    for (uint32_t k = s->first[loop]; k < s->end[loop]; k++) {
        const ing_ir_access *w = &s->accesses.at[k];
        bool writes = ing_ir_at(s->f, w->id)->op != ING_OP_LOAD;
        if (!writes || w->root != ING_OP_ARRAY || w->of == r->of) continue;
        n++;
        if (say) ing_pass_assume_apart(m, r->of, w->of);
    }
    return n;
}

/* Arrays of which a loop reads one place are assumed to lie apart from those that it writes, as
 * `for i: for j: y[i, j] = x[i, j] * w[0]`. LLVM then reads it before the loop (llvm_alias.c). */
ing_status ing_pass_apart(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    for (uint32_t k = 0; k < m->tasks.len && ing_ir_ok(m) && !o->overlap; k++) {
        const ing_ir_func *f = m->funcs.at[m->tasks.at[k].func];
        ing_ir_scan s;
        bool ok = ing_ir_scan_init(&s, f);
        uint32_t n = 0;
        for (uint32_t say = 0; ok && say < 2; say++)
            for (uint32_t j = 0; j < s.accesses.len; j++) {
                const ing_ir_access *a = &s.accesses.at[j];
                bool reads = ing_ir_at(f, a->id)->op == ING_OP_LOAD;
                if (!reads || a->root != ING_OP_ARRAY) continue;
                if (!say) n += pairs_of(&s, a, m, false);
                if (say && n <= MOST_COUNTED && ing_pass_may_assume(m, o, 1))
                    pairs_of(&s, a, m, true);
            }
        ing_ir_scan_fini(&s);
        if (!ok) return ing_fail(e, ING_MEMORY, "no memory for a pass");
    }
    return ing_pass_done(m, e);
}
