/* What the funcs of a module do, seen once for all tasks. Called by passes that must know
 * what a call inside of a loop can touch. Looks at every func, also at those that a given
 * task never calls: answers err towards "touches". */
#include "pass/pass_int.h"

static void look(ing_pass_funcs *s, const ing_ir_func *f) {
    for (uint32_t j = 1; j < f->insts.len; j++) {
        const ing_ir_inst *i = ing_ir_at(f, j);
        if (i->op == ING_OP_ARRAY) s->named[i->a] = 1;
        s->atomic |= i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
        s->random |= i->op == ING_OP_RANDOM;
        s->stops |= i->op == ING_OP_CHECK || i->op == ING_OP_ROOM;
    }
}

bool ing_pass_funcs_init(ing_pass_funcs *s, const ing_ir_mod *m) {
    *s = (ing_pass_funcs){.named = ing_calloc((size_t)m->args.len + 1, 1)};
    for (uint32_t k = 0; k < m->funcs.len && s->named; k++)
        if (m->funcs.at[k]->kind == ING_IR_FUNC) look(s, m->funcs.at[k]);
    return s->named != NULL;
}

void ing_pass_funcs_fini(ing_pass_funcs *s) {
    ing_free(s->named);
}
