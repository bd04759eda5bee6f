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
