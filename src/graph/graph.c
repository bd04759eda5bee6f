/* The program of a graph kernel: which task comes next. The steps are a tree written flat,
 * so that walking it needs no stack: the end of a loop knows where the loop began, and a
 * resume is a walk that runs nothing until it meets its stage. Called by the runtime on the
 * launching thread; reads the flags and never writes them. */
#include "graph/graph.h"

#include <string.h>

/* ---- life ------------------------------------------------------------------------------- */

static uint32_t count(const ing_ir_step *s, uint32_t n, ing_ir_step_kind kind) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) k += s[i].kind == kind;
    return k;
}

/* Sections become lists of tasks; each fork has one start more than sections. */
static void fill_forks(ing_graph *g) {
    uint32_t fork = 0, task = 0, start = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        ing_ir_step *s = &g->steps[i];
        if (s->kind != ING_IR_STEP_FORK) continue;
        ing_rt_fork *f = &g->forks[s->word = fork++];
        *f = (ing_rt_fork){.tasks = g->tasks, .starts = g->starts + start};
        for (uint32_t k = i + 1; k < s->at; k++) {
            if (g->steps[k].kind == ING_IR_STEP_TASK) {
                g->tasks[task++] = g->steps[k].at;
            } else {
                g->starts[start++] = task;
                f->n++;
            }
        }
        g->starts[start++] = task;
    }
}

ing_status ing_graph_init(ing_graph *g, const ing_ir_step *steps, uint32_t n,
                          ing_err *e) {
    uint32_t forks = count(steps, n, ING_IR_STEP_FORK);
    uint32_t sections = count(steps, n, ING_IR_STEP_SECTION);
    *g = (ing_graph){.n = n};
    g->steps = ing_calloc((size_t)n + 1, sizeof *g->steps);
    g->forks = ing_calloc((size_t)forks + 1, sizeof *g->forks);
    g->tasks = ing_calloc((size_t)n + 1, sizeof *g->tasks);
    g->starts = ing_calloc((size_t)sections + forks + 1, sizeof *g->starts);
    if (!g->steps || !g->forks || !g->tasks || !g->starts) {
        ing_graph_fini(g);
        return ing_fail(e, ING_MEMORY, "no memory for the program of a graph kernel");
    }
    if (n) memcpy(g->steps, steps, n * sizeof *steps);
    fill_forks(g);
    return ING_OK;
}

void ing_graph_fini(ing_graph *g) {
    ing_free(g->steps);
    ing_free(g->forks);
    ing_free(g->tasks);
    ing_free(g->starts);
    *g = (ing_graph){0};
}

/* ---- walking ------------------------------------------------------------------------------ */

static bool flag(const ing_graph_run *r, const ing_ir_step *s) {
    const int32_t *p = (const int32_t *)(uintptr_t)r->args[s->word];
    return __atomic_load_n(p, __ATOMIC_RELAXED) != 0;
}

uint32_t ing_graph_next(void *run, ing_rt_fork *fork) {
    ing_graph_run *r = run;
    const ing_graph *g = r->graph;
    while (r->at < g->n) {
        const ing_ir_step *s = &g->steps[r->at++];
        bool skip = r->resume != ING_GRAPH_NO_STAGE;
        switch (s->kind) {
        case ING_IR_STEP_TASK:
            if (!skip) return s->at;
            break;
        case ING_IR_STEP_LOOP_END:
            if (skip || !flag(r, s)) break;
            r->at = s->at + 1;
            return ING_RT_NOTHING; /* an empty loop can be stopped too */
        case ING_IR_STEP_STAGE:
            if (s->at == r->resume) r->resume = ING_GRAPH_NO_STAGE;
            break;
        case ING_IR_STEP_STAGE_END:
            if (skip || !flag(r, s)) break;
            r->yielded = s->at;
            r->at = g->n;
            return ING_RT_DONE;
        case ING_IR_STEP_FORK:
            r->at = s->at + 1;
            if (skip) break;
            *fork = g->forks[s->word];
            return ING_RT_FORKED;
        default: break; /* where a loop begins; the rest is part of a fork */
        }
    }
    return ING_RT_DONE;
}
