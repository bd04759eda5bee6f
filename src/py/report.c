/* The line that INGOT_LOG=compile asks for. Reads the environment at each compile, which is
 * rare; writes to stderr and nowhere else. */
#include "py/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wanted(void) {
    const char *log = getenv("INGOT_LOG");
    return log && strstr(log, "compile");
}

/* A func that was specialised twice has its tree in the list twice, next to each other or
 * not: looked for among those before it, as long as that is cheap. */
static bool seen(const ing_front_result *r, uint32_t k) {
    uint32_t first = k > 256 ? k - 256 : 0;
    for (uint32_t j = first; j < k; j++)
        if (r->trees.at[j] == r->trees.at[k]) return true;
    return false;
}

void ing_py_report_front(ing_py_report *p, const ing_front_result *r) {
    if (!wanted()) return;
    for (uint32_t k = 0; k < r->trees.len; k++)
        if (!seen(r, k)) p->nodes += r->trees.at[k]->nodes.len;
    p->funcs = r->mod->funcs.len - 1;
    for (uint32_t k = 0; k < r->mod->funcs.len; k++) {
        const ing_ir_func *f = r->mod->funcs.at[k];
        p->insts += f->insts.len - 1;
        for (uint32_t i = 1; i < f->insts.len; i++)
            p->calls += f->insts.at[i].op == ING_OP_CALL;
    }
}

void ing_py_report_show(const ing_py_report *p, const char *kernel) {
    const ing_engine_report *g = &p->engine;
    if (!wanted()) return;
    fprintf(stderr,
            "ingot: compile %s: %u nodes, %u funcs for %u calls, %u IR instructions, "
            "%llu LLVM lines in %u of %u tasks; ms: front %.2f passes %.2f text %.2f "
            "llvm %.2f link %.2f\n",
            kernel ? kernel : "?", p->nodes, p->funcs, p->calls, p->insts,
            (unsigned long long)g->llvm_lines, g->compiled, g->tasks,
            (double)p->front_ns / 1e6, (double)g->pass_ns / 1e6,
            (double)g->gen_ns / 1e6, (double)g->llvm_ns / 1e6,
            (double)g->link_ns / 1e6);
}
