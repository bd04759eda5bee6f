/* The runtime's view of compiled tasks. Made once per variant by src/py. */
#include "launch/launch.h"

#include <string.h>

static int32_t run_interp(void *self, ing_ctx *ctx, int64_t begin, int64_t end,
                          int64_t chunk) {
    const ing_launch_interp *t = self;
    if (!t->mod->tasks.len) return ing_ir_interp_lowered(t->mod, ctx);
    return ing_ir_interp(t->mod, t->task, ctx, begin, end, chunk);
}

static const uint8_t bound_at[] = {
    [ING_IR_BOUND_CONST] = ING_RT_CONST,
    [ING_IR_BOUND_BUFFER] = ING_RT_BUFFER,
    [ING_IR_BOUND_WORD] = ING_RT_WORD,
};

static int64_t bound_of(const ing_ir_bound *b) {
    return b->at == ING_IR_BOUND_CONST ? b->value : (int64_t)b->offset;
}

static void task_init(ing_rt_task *to, const ing_code_task *from, uint32_t n_words) {
    const ing_ir_task *i = &from->info;
    to->fn = from->image ? ing_image_entry(from->image) : NULL;
    to->range = i->kind == ING_IR_TASK_RANGE;
    to->may_run_long = i->may_run_long;
    to->chunk_shift = i->chunk_shift;
    to->partials = i->partials;
    to->cost = i->cost;
    to->place = i->place;
    to->begin_at = bound_at[i->begin.at];
    to->end_at = bound_at[i->end.at];
    to->begin = bound_of(&i->begin);
    to->end = bound_of(&i->end);
    to->tallies = i->tallies;
    to->n_tallies = i->n_tallies;
    to->n_words = n_words;
}

ing_status ing_launch_tasks_init(ing_launch_tasks *t, const ing_code *code,
                                 ing_err *e) {
    memset(t, 0, sizeof *t);
    t->n = code->n_tasks;
    t->at = ing_calloc(t->n ? t->n : 1, sizeof *t->at);
    if (code->mod) t->interp = ing_calloc(t->n ? t->n : 1, sizeof *t->interp);
    if (!t->at || (code->mod && !t->interp)) {
        ing_launch_tasks_fini(t);
        return ing_fail(e, ING_MEMORY, "no memory for the task table");
    }
    for (uint32_t i = 0; i < t->n; i++) {
        task_init(&t->at[i], &code->tasks[i], code->n_words);
        if (!code->mod) continue;
        t->interp[i] = (ing_launch_interp){code->mod, i};
        t->at[i].interp = run_interp;
        t->at[i].interp_self = &t->interp[i];
    }
    return ING_OK;
}

void ing_launch_tasks_fini(ing_launch_tasks *t) {
    ing_free(t->at);
    ing_free(t->interp);
    memset(t, 0, sizeof *t);
}
