/* Arrays that lie apart, as LLVM is told: each array of such a pair (ing_ir_mod.apart, which launches compare) is an
 * alias scope, and an access to it is none to the scopes of its partners. Then what a loop reads at one
 * place stays in a register although it writes elsewhere. Called by llvm_mem.c and llvm.c; of tasks alone:
 * a func may be given any array. Must never name a pair that the module does not. */
#include "gen/gen_int.h"
#include "ir/access.h"

#include <stdio.h>

enum { FIRST = 100000 }; /* of the metadata: the domain, then three for each argument */

static bool is_pair(const ing_ir_apart *p, uint32_t a, uint32_t *other) {
    if (p->a != a && p->b != a) return false;
    *other = p->a == a ? p->b : p->a;
    return true;
}

uint32_t ing_gen_array_of(const ing_gen *g, uint32_t ref) {
    const ing_ir_inst *root = ing_ir_root(g->f, ref, NULL);
    uint32_t other;
    if (root->op != ING_OP_ARRAY || g->f->kind != ING_IR_TASK) return 0;
    for (uint32_t k = 0; k < g->m->apart.len; k++)
        if (is_pair(&g->m->apart.at[k], root->a, &other)) return root->a + 1;
    return 0;
}

const char *ing_gen_with_scope(ing_gen *g, const char *access) {
    uint32_t k = FIRST + 3 * g->array;
    if (!g->array) return access;
    snprintf(g->scoped, sizeof g->scoped, "%s, !alias.scope !%u, !noalias !%u", access,
             k + 1, k + 2);
    return g->scoped;
}

void ing_gen_scopes(ing_gen *g) {
    ing_bytes *out = g->out;
    uint32_t other;
    if (g->m->apart.len) ing_bytes_printf(out, "!%d = distinct !{!%d}\n", FIRST, FIRST);
    for (uint32_t a = 0; g->m->apart.len && a < g->m->args.len; a++) {
        uint32_t k = FIRST + 3 * (a + 1), n = 0;
        for (uint32_t p = 0; p < g->m->apart.len; p++) {
            if (!is_pair(&g->m->apart.at[p], a, &other)) continue;
            if (!n)
                ing_bytes_printf(out,
                                 "!%u = distinct !{!%u, !%d}\n!%u = !{!%u}\n!%u = !{",
                                 k, k, FIRST, k + 1, k, k + 2);
            ing_bytes_printf(out, "%s!%u", n++ ? ", " : "", FIRST + 3 * (other + 1));
        }
        if (n) ing_bytes_puts(out, "}\n");
    }
}
