/* What a record says about the arrays of its code: which pairs must lie apart (launches compare
 * them), and which arrays each task reads and writes (qd.profiler estimates bytes from that).
 * Called by the engine once the passes are done. An array counts as touched when an instruction of
 * the task, or of a func that it reaches, may touch it. */
#include "compile/arrays.h"

#include "ir/access.h"

static ing_record_array array_of(const ing_ir_mod *m, uint32_t arg) {
    const ing_type_info *t = ing_ir_type(m, m->args.at[arg].type);
    ing_record_array a = {.word = m->args.at[arg].word,
                          .ndim = t->rank,
                          .size = ing_ir_type_size(m, t->elem)};
    if (t->place) {
        a.ndim = 0;
        a.at = (uint64_t)t->place->at;
        a.span = ing_place_span(t->place);
    }
    return a;
}

/* The number of the argument among the record's arrays, plus 1, which `numbers` has by argument. */
static bool number(ing_record *r, const ing_ir_mod *m, uint32_t arg,
                   uint32_t *numbers) {
    if (numbers[arg]) return true;
    numbers[arg] = r->arrays.len + 1;
    return ing_vec_push(&r->arrays, array_of(m, arg));
}

bool ing_arrays_apart(ing_record *r, const ing_ir_mod *m) {
    uint32_t *numbers = ing_calloc((size_t)m->args.len + 1, sizeof *numbers);
    bool ok = numbers && ing_vec_reserve(&r->apart, m->apart.len);
    for (uint32_t i = 0; ok && i < m->apart.len; i++) {
        const ing_ir_apart *p = &m->apart.at[i];
        ok = number(r, m, p->a, numbers) && number(r, m, p->b, numbers);
        r->apart.at[r->apart.len++] =
            (ing_record_apart){numbers[p->a] - 1, numbers[p->b] - 1};
    }
    ing_free(numbers);
    return ok;
}

/* ---- what tasks touch ------------------------------------------------------------------------ */

typedef struct touch {
    bool reads, writes;
    bool loops;    /* also in loops inside, or in a func: nobody knows how often */
    uint32_t each; /* accesses in an iteration of the task's loop */
} touch;

static void note(const ing_ir_scan *s, const ing_ir_access *a, bool task, touch *all) {
    const ing_ir_inst *i = ing_ir_at(s->f, a->id);
    touch *t = &all[a->of];
    if (a->root != ING_OP_ARRAY || i->op == ING_OP_ADDRESS) return;
    t->reads |= i->op != ING_OP_STORE;
    t->writes |= i->op != ING_OP_LOAD;
    uint32_t home = s->home[a->id];
    bool once = task && (home == s->parallel || !home);
    t->loops |= !once || i->op == ING_OP_CALL;
    t->each++;
}

static bool note_func(const ing_ir_mod *m, uint32_t func, bool task, touch *all) {
    ing_ir_scan s;
    bool ok = ing_ir_scan_init(&s, m->funcs.at[func]);
    for (uint32_t i = 0; ok && i < s.accesses.len; i++)
        note(&s, &s.accesses.at[i], task, all);
    ing_ir_scan_fini(&s);
    return ok;
}

static bool take(const ing_ir_mod *m, touch *all, ing_record_task *out) {
    bool ok = true;
    for (uint32_t k = 0; ok && k < m->args.len; k++) {
        touch *t = &all[k];
        if (!t->reads && !t->writes) continue;
        ing_record_touch now = {.array = array_of(m, k),
                                .reads = t->reads,
                                .writes = t->writes,
                                .each = t->loops ? 0 : t->each};
        ok = ing_vec_push(&out->touches, now);
        *t = (touch){0};
    }
    return ok;
}

ing_status ing_arrays_touched(ing_record *r, const ing_ir_mod *m, ing_err *e) {
    touch *all = ing_calloc((size_t)m->args.len + 1, sizeof *all);
    bool ok = all != NULL;
    for (uint32_t k = 0; ok && k < m->tasks.len; k++) {
        uint32_t *funcs = NULL, n = 0;
        ok = ing_ir_task_funcs(m, k, &funcs, &n, e) == ING_OK;
        for (uint32_t i = 0; ok && i < n; i++) ok = note_func(m, funcs[i], i == 0, all);
        ok = ok && take(m, all, &r->tasks.at[k]);
        ing_free(funcs);
    }
    ing_free(all);
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for the task table");
}
