/* The runtime's view of compiled tasks. Made once per variant by src/py, and read by every
 * launch of it. */
#include "launch/launch.h"

#include <string.h>

static int32_t run_interp(void *self, ing_ctx *ctx, int64_t begin, int64_t end,
                          int64_t chunk) {
    const ing_launch_interp *t = self;
    if (!t->mod->tasks.len) return ing_ir_interp_lowered(t->mod, ctx);
    return ing_ir_interp(t->mod, t->task, ctx, begin, end, chunk);
}

ing_status ing_launch_tasks_init(ing_launch_tasks *t, const ing_code *code,
                                 ing_err *e) {
    const ing_record *r = code->record;
    memset(t, 0, sizeof *t);
    t->n = r->tasks.len;
    t->at = ing_calloc(t->n ? t->n : 1, sizeof *t->at);
    if (code->mod) t->interp = ing_calloc(t->n ? t->n : 1, sizeof *t->interp);
    if (!t->at || (code->mod && !t->interp)) {
        ing_launch_tasks_fini(t);
        return ing_fail(e, ING_MEMORY, "no memory for the task table");
    }
    for (uint32_t i = 0; i < t->n; i++) {
        t->at[i].info = r->tasks.at[i].info;
        t->at[i].n_words = r->n_words;
        if (code->images) t->at[i].fn = ing_image_entry(code->images[i]);
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
