/* What a compile took, told as topic `compile` (log.c) and to who traces. Called by variant.c
 * when a compile ends; looks at counters and clocks alone. */
#include "py/call/report.h"

#include <stdio.h>

/* A func that was specialised twice has its tree in the list twice, next to each other or
 * not: looked for among those before it, as long as that is cheap. */
static bool seen(const ing_front_result *r, uint32_t k) {
    uint32_t first = k > 256 ? k - 256 : 0;
    for (uint32_t j = first; j < k; j++)
        if (r->trees.at[j] == r->trees.at[k]) return true;
    return false;
}

void ing_py_report_front(ing_py_report *p, const ing_py_kernel *kernel,
                         const ing_front_result *r) {
    p->wanted = ing_py_log_wants(kernel->st, ING_PY_LOG_COMPILE);
    if (!kernel->host->events && !p->wanted) return;
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

static double ms(uint64_t ns) {
    return (double)ns / 1e6;
}

static void tell(const ing_py_report *p, ing_events *events, const char *kernel) {
    const ing_engine_report *g = &p->engine;
    char args[512];
    snprintf(args, sizeof args,
             "\"syntax nodes\":%u,\"funcs lowered\":%u,\"calls sharing them\":%u,"
             "\"IR instructions\":%u,\"LLVM lines\":%llu,\"tasks\":%u,\"compiled\":%u,"
             "\"front ms\":%.3f,\"passes ms\":%.3f,\"text ms\":%.3f,\"llvm ms\":%.3f,"
             "\"link ms\":%.3f",
             p->nodes, p->funcs, p->calls, p->insts, (unsigned long long)g->llvm_lines,
             g->tasks, g->compiled, ms(p->front_ns), ms(g->pass_ns), ms(g->gen_ns),
             ms(g->llvm_ns), ms(g->link_ns));
    ing_span span = {
        .what = "compile", .label = kernel, .from = p->began, .args = args};
    ing_events_span(events, &span);
    (void)ing_events_flush(
        events); /* a compile is rare, and worth more than a launch */
}

ing_status ing_py_report_show(const ing_py_report *p, const ing_py_kernel *k) {
    const ing_engine_report *g = &p->engine;
    const char *kernel = ing_py_def_name(&k->def);
    if (k->host->events) tell(p, k->host->events, kernel);
    if (!p->wanted) return ING_OK;
    return ing_py_log(
        k->st, ING_PY_LOG_COMPILE,
        "compile %s: %u nodes, %u funcs for %u calls, %u IR instructions, %llu LLVM "
        "lines in %u of %u tasks; ms: front %.2f passes %.2f text %.2f llvm %.2f link "
        "%.2f",
        kernel ? kernel : "?", p->nodes, p->funcs, p->calls, p->insts,
        (unsigned long long)g->llvm_lines, g->compiled, g->tasks, ms(p->front_ns),
        ms(g->pass_ns), ms(g->gen_ns), ms(g->llvm_ns), ms(g->link_ns));
}
