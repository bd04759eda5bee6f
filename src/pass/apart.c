/* Pairs of arrays that code assumes to share no memory (R22). A pass asks before it makes
 * use of that, and says so here; a launch compares the pairs, and where two overlap it runs
 * code for which ing_pass_options.overlap was set. */
#include "pass/pass_int.h"

bool ing_pass_may_assume(const ing_ir_mod *m, const ing_pass_options *o, uint32_t n) {
    uint32_t own = m->apart.len - m->n_rule - 2 * m->n_views;
    return n == 0 || (!o->overlap && n <= ING_IR_MAX_APART - own);
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

typedef struct array_use {
    uint32_t of;
    bool written;
} array_use;
typedef ing_vec(array_use) array_uses;

/* The arrays of the loop, in the order of their first accesses. */
static bool arrays_of(const ing_ir_scan *s, uint32_t loop, array_uses *all) {
    bool ok = true;
    for (uint32_t k = s->first[loop]; ok && k < s->end[loop]; k++) {
        uint32_t i = 0;
        if (!is_array(s, k)) continue;
        while (i < all->len && all->at[i].of != s->accesses.at[k].of) i++;
        if (i == all->len)
            ok = ing_vec_push(all, ((array_use){s->accesses.at[k].of, false}));
        if (ok && is_write(s, k)) all->at[i].written = true;
    }
    return ok;
}

static uint32_t each_pair(ing_ir_mod *m, const array_uses *all, bool assume) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < all->len; p++)
        for (uint32_t q = 0; q < all->len; q++) {
            const array_use *a = &all->at[p], *b = &all->at[q];
            if (a->of >= b->of || !(a->written || b->written)) continue;
            n++;
            if (assume) ing_pass_assume_apart(m, a->of, b->of);
        }
    return n;
}

bool ing_pass_assume_all_apart(ing_ir_mod *m, const ing_pass_options *o,
                               const ing_ir_scan *s, uint32_t loop) {
    array_uses all = {0};
    bool ok = arrays_of(s, loop, &all);
    if (!ok) m->arena.failed = true;
    ok = ok && ing_pass_may_assume(m, o, each_pair(m, &all, false));
    if (ok) each_pair(m, &all, true);
    ing_vec_fini(&all);
    return ok;
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

static uint32_t all_pairs_of(const ing_ir_scan *s, ing_ir_mod *m, bool say) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->accesses.len && n <= MOST_COUNTED; k++) {
        const ing_ir_access *a = &s->accesses.at[k];
        bool reads = ing_ir_at(s->f, a->id)->op == ING_OP_LOAD;
        if (reads && a->root == ING_OP_ARRAY) n += pairs_of(s, a, m, say);
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
        uint32_t n = ok ? all_pairs_of(&s, m, false) : 0;
        if (n && n <= MOST_COUNTED && ing_pass_may_assume(m, o, n))
            all_pairs_of(&s, m, true);
        ing_ir_scan_fini(&s);
        if (!ok) return ing_fail(e, ING_MEMORY, "no memory for a pass");
    }
    return ing_pass_done(m, e);
}
