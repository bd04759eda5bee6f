/* The steps of a graph kernel: their names and what makes them a program. Called by the
 * verifier and by whoever reads steps from disk; the runtime relies on it. */
#include "ir/ir_int.h"

const char *const ing_ir_step_names[ING_IR_STEP_N] = {
#define X(name, text) text,
    ING_IR_STEP_LIST(X)
#undef X
};

typedef struct checker {
    const ing_ir_step *s;
    uint32_t n, n_tasks, n_words, n_stages;
    uint32_t open[ING_IR_MAX_NESTING]; /* steps that began and have not ended */
    uint32_t depth;
} checker;

static int open_kind(const checker *c) {
    return c->depth ? c->s[c->open[c->depth - 1]].kind : -1;
}

static bool enter(checker *c, uint32_t i) {
    if (c->depth == ING_IR_MAX_NESTING) return false;
    c->open[c->depth++] = i;
    return true;
}

/* Ends the innermost open step, which must be of that kind and number `first`. */
static bool leave(checker *c, int kind, uint32_t first) {
    if (open_kind(c) != kind || c->open[c->depth - 1] != first) return false;
    c->depth--;
    return true;
}

/* A stage, a loop or a fork stands at the top or in a loop; see I8. */
static bool at_top(const checker *c) {
    return !c->depth || open_kind(c) == ING_IR_STEP_LOOP;
}

static bool names(const checker *c, uint32_t i, uint32_t to, int kind, int or_kind) {
    return to > i && to < c->n && (c->s[to].kind == kind || c->s[to].kind == or_kind);
}

static bool section_ok(checker *c, uint32_t i) {
    const ing_ir_step *s = &c->s[i];
    if (open_kind(c) == ING_IR_STEP_SECTION) {
        if (c->s[c->open[c->depth - 1]].at != i) return false;
        c->depth--;
    }
    return open_kind(c) == ING_IR_STEP_FORK &&
           names(c, i, s->at, ING_IR_STEP_SECTION, ING_IR_STEP_JOIN) && enter(c, i);
}

static bool join_ok(checker *c, uint32_t i) {
    const ing_ir_step *s = &c->s[i];
    if (open_kind(c) == ING_IR_STEP_SECTION) {
        if (c->s[c->open[c->depth - 1]].at != i) return false;
        c->depth--;
    }
    return s->at < i && c->s[s->at].at == i && leave(c, ING_IR_STEP_FORK, s->at);
}

static bool stage_end_ok(checker *c, const ing_ir_step *s) {
    if (open_kind(c) != ING_IR_STEP_STAGE || s->word >= c->n_words) return false;
    return c->s[c->open[--c->depth]].at == s->at;
}

static bool step_ok(checker *c, uint32_t i) {
    const ing_ir_step *s = &c->s[i];
    switch (s->kind) {
    case ING_IR_STEP_TASK:
        return s->at < c->n_tasks && open_kind(c) != ING_IR_STEP_FORK;
    case ING_IR_STEP_LOOP:
        return at_top(c) && names(c, i, s->at, ING_IR_STEP_LOOP_END, -1) && enter(c, i);
    case ING_IR_STEP_LOOP_END:
        return s->word < c->n_words && s->at < i && c->s[s->at].at == i &&
               leave(c, ING_IR_STEP_LOOP, s->at);
    case ING_IR_STEP_STAGE: return at_top(c) && s->at < c->n_stages && enter(c, i);
    case ING_IR_STEP_STAGE_END: return stage_end_ok(c, s);
    case ING_IR_STEP_FORK:
        return at_top(c) && names(c, i, s->at, ING_IR_STEP_JOIN, -1) && enter(c, i);
    case ING_IR_STEP_SECTION: return section_ok(c, i);
    case ING_IR_STEP_JOIN: return join_ok(c, i);
    default: return false;
    }
}

bool ing_ir_steps_ok(const ing_ir_step *s, uint32_t n, uint32_t n_tasks,
                     uint32_t n_words, uint32_t n_stages) {
    checker c = {s, n, n_tasks, n_words, n_stages, {0}, 0};
    for (uint32_t i = 0; i < n; i++)
        if (!step_ok(&c, i)) return false;
    return c.depth == 0;
}
