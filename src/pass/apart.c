/* Pairs of arrays that code assumes to share no memory (R22). A pass asks before it makes
 * use of that, and says so here; a launch compares the pairs, and where two overlap it runs
 * code for which ing_pass_options.overlap was set. */
#include "pass/pass_int.h"

bool ing_pass_may_assume(const ing_ir_mod *m, const ing_pass_options *o, uint32_t n) {
    return n == 0 || (!o->overlap && n <= ING_IR_MAX_APART - m->apart.len);
}

void ing_pass_assume_apart(ing_ir_mod *m, uint32_t a, uint32_t b) {
    ing_ir_apart pair = {a < b ? a : b, a < b ? b : a};
    for (uint32_t k = 0; k < m->apart.len; k++)
        if (m->apart.at[k].a == pair.a && m->apart.at[k].b == pair.b) return;
    if (!ing_vec_push(&m->apart, pair)) m->arena.failed = true;
}
