/* What the funcs of a module do, seen once for all tasks. Called by passes that must know
 * what a call inside of a loop can touch. Looks at every func that some task reaches, also at
 * those that a given task never calls: answers err towards "touches". */
#include "pass/pass_int.h"

static uint64_t param_bit(uint32_t k) {
    return (uint64_t)1 << (k < 63 ? k : 63);
}

/* Something in func `f` writes through an address. */
static void note_write(ing_pass_funcs *s, const ing_ir_mod *m, uint32_t f,
                       uint32_t ref) {
    const ing_ir_inst *root = ing_ir_root(m->funcs.at[f], ref, NULL);
    if (root->op == ING_OP_ARRAY) s->named[root->a] |= ING_PASS_WRITTEN;
    if (root->op == ING_OP_PARAM) s->writes[f] |= param_bit(root->a);
}

static void look(ing_pass_funcs *s, const ing_ir_mod *m, uint32_t f) {
    const ing_ir_func *func = m->funcs.at[f];
    for (uint32_t j = 1; j < func->insts.len; j++) {
        const ing_ir_inst *i = ing_ir_at(func, j);
        bool update = i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
        if (i->op == ING_OP_ARRAY) s->named[i->a] |= ING_PASS_NAMED;
        if (update || i->op == ING_OP_STORE || i->op == ING_OP_ADDRESS)
            note_write(s, m, f, i->a);
        for (uint32_t k = 0; i->op == ING_OP_CALL && k < i->c; k++)
            if (ing_pass_func_writes(s, i->a, k))
                note_write(s, m, f, func->extra.at[i->b + k]);
        s->atomic |= update && ing_ir_root(func, i->a, NULL)->op != ING_OP_ALLOCA;
        s->random |= i->op == ING_OP_RANDOM;
        s->stops |= i->op == ING_OP_CHECK || i->op == ING_OP_ROOM;
    }
}

bool ing_pass_func_writes(const ing_pass_funcs *s, uint32_t func, uint32_t param) {
    return s->writes[func] & param_bit(param);
}

/* Which functions tasks reach: callers come last in `order`. */
static void reach(const ing_ir_mod *m, const uint32_t *order, uint8_t *reached) {
    for (uint32_t k = m->funcs.len; k-- > 0;) {
        const ing_ir_func *f = m->funcs.at[order[k]];
        if (f->kind != ING_IR_FUNC) reached[order[k]] = 1;
        for (uint32_t j = 1; j < f->insts.len && reached[order[k]]; j++) {
            const ing_ir_inst *i = ing_ir_at(f, j);
            if (i->op == ING_OP_CALL) reached[i->a] = 1;
        }
    }
}

bool ing_pass_funcs_init(ing_pass_funcs *s, const ing_ir_mod *m) {
    size_t n = (size_t)m->funcs.len + 1;
    uint32_t *order = NULL;
    uint8_t *reached = ing_calloc(n, 1);
    ing_err e;
    *s = (ing_pass_funcs){.named = ing_calloc((size_t)m->args.len + 1, 1),
                          .writes = ing_calloc(n, sizeof *s->writes)};
    ing_err_init(&e);
    bool ok =
        reached && s->named && s->writes && ing_ir_call_order(m, &order, &e) == ING_OK;
    if (ok) reach(m, order, reached);
    for (uint32_t k = 0; ok && k < m->funcs.len; k++)
        if (m->funcs.at[order[k]]->kind == ING_IR_FUNC && reached[order[k]])
            look(s, m, order[k]);
    ing_err_fini(&e);
    ing_free(order);
    ing_free(reached);
    return ok;
}

void ing_pass_funcs_fini(ing_pass_funcs *s) {
    ing_free(s->named);
    ing_free(s->writes);
}
