/* Paranoid mode (qd.init(paranoid=True)): before each launch the kernel is lowered afresh, and
 * trace and IR are compared with the variant that the guards chose. A difference is an error
 * that names the first question with another answer: a guard that should have failed. What a
 * Python function that was called while compiling reads by itself is not guarded; a result
 * that differs for that reason is a warning. Called by call.c for tests and bug reports. */
#include "py/call/guard.h"
#include "trace/notes.h"

/* Does the question follow from a call that no launch repeats? */
static bool is_behind_call(const ing_py_kernel *k, const ing_py_variant *v,
                           uint32_t question) {
    const ing_py_checks *c = v->checks;
    bool relation = false;
    for (uint32_t i = 0; i < c->relations.len; i++)
        relation = relation || c->relations.at[i] == question;
    ing_path at = v->record.trace.list.at[question].path;
    for (; relation && at; at = k->paths.nodes.at[at].parent)
        if (k->paths.nodes.at[at].step == ING_STEP_CALL) return true;
    return false;
}

/* No qd.init by Python that ran meanwhile, here or in another thread? It drops all variants,
 * and a launch that began before it goes on with the settings that it began with. */
static bool is_current(const ing_py_kernel *k, const ing_py_variant *v) {
    return ing_cache_holds(&k->cache, v) && k->epoch == k->host->epoch;
}

static bool same_question(const ing_question *a, const ing_question *b) {
    return a->path == b->path && a->ask == b->ask;
}

/* "N is 4 now". */
static ing_status other_answer(ing_py_kernel *k, const ing_py_gate *g,
                               const ing_question *q, const ing_question *old,
                               ing_err *e) {
    ing_bytes where, before;
    ing_bytes_init(&where);
    ing_bytes_init(&before);
    ing_words_path(&k->paths, q->path, &where);
    ing_words_path(&k->paths, old->path, &before);
    const char *now = ing_answers_get(ing_py_gate_answers(g), &k->paths, q);
    const char *at = where.at ? (const char *)where.at : "?";
    if (same_question(q, old))
        ing_fail(e, ING_RUNTIME,
                 "paranoid: the guards of %s chose code that was compiled for another "
                 "answer to '%s'; the answer now: %s",
                 ing_py_def_name(&k->def), at, *now ? now : "another one");
    else
        ing_fail(e, ING_RUNTIME,
                 "paranoid: the guards of %s chose code that asked about '%s' where "
                 "compiling it now asks about '%s'",
                 ing_py_def_name(&k->def), before.at ? (const char *)before.at : "?",
                 at);
    ing_bytes_fini(&where);
    ing_bytes_fini(&before);
    return ING_RUNTIME;
}

/* One of the traces goes on with `q` where the other has ended. */
static ing_status other_length(ing_py_kernel *k, const ing_question *q, bool now,
                               ing_err *e) {
    ing_bytes where;
    ing_bytes_init(&where);
    ing_words_path(&k->paths, q->path, &where);
    const char *at = where.at ? (const char *)where.at : "?";
    ing_fail(e, ING_RUNTIME,
             now ? "paranoid: the guards of %s chose code that never asked about '%s', "
                   "as compiling it now does"
                 : "paranoid: the guards of %s chose code that asked about '%s', as "
                   "compiling it now does not",
             ing_py_def_name(&k->def), at);
    ing_bytes_fini(&where);
    return ING_RUNTIME;
}

static ing_status warn_of_call(ing_py_kernel *k, ing_path path) {
    ing_bytes where;
    ing_bytes_init(&where);
    ing_words_path(&k->paths, path, &where);
    int bad = PyErr_WarnFormat(
        k->st->exc[ING_PY_EXC_STATIC_CALL], 1,
        "paranoid: %s, called while compiling %s, gives another result than it did: "
        "what it reads by itself is not watched. Pass that as an argument",
        where.at ? (const char *)where.at : "a function", ing_py_def_name(&k->def));
    ing_bytes_fini(&where);
    return bad < 0 ? ING_PYTHON : ING_OK;
}

/* *same: trace and IR may be compared further. */
static ing_status compare_traces(ing_py_kernel *k, ing_py_gate *g,
                                 const ing_py_variant *v, bool *same, ing_err *e) {
    const ing_trace *now = ing_py_gate_trace(g);
    uint32_t n = now->list.len, old = v->record.trace.list.len;
    if (v->record.apart.len) old--; /* asked of the launch, not of lowering */
    for (uint32_t i = 0; i < n && i < old; i++) {
        const ing_question *a = &now->list.at[i], *b = &v->record.trace.list.at[i];
        if (same_question(a, b) && ing_hash_eq(a->answer, b->answer)) continue;
        *same = false;
        if (same_question(a, b) && is_behind_call(k, v, i))
            return warn_of_call(k, a->path);
        return other_answer(k, g, a, b, e);
    }
    if (n == old) return ING_OK;
    if (n > old) return other_length(k, &now->list.at[old], true, e);
    return other_length(k, &v->record.trace.list.at[n], false, e);
}

static ing_status compare(ing_py_kernel *k, ing_py_gate *g, const ing_front_result *r,
                          const ing_py_variant *v, ing_err *e) {
    bool same = true;
    ing_hash128 lowered;
    ING_TRY(compare_traces(k, g, v, &same, e));
    if (!same) return ING_OK;
    ING_TRY(ing_ir_content(r->mod, &lowered, e));
    if (ing_hash_eq(lowered, v->record.lowered)) return ING_OK;
    return ing_fail(e, ING_RUNTIME,
                    "paranoid: the guards of %s chose code that differs from what it "
                    "compiles to now, though all questions have the same answers",
                    ing_py_def_name(&k->def));
}

ing_status ing_py_paranoid(ing_py_kernel *k, const ing_py_variant *v,
                           PyObject *const *args, ing_err *e) {
    ing_front_result r;
    ing_front_result_init(&r);
    ing_settings unread;
    ing_py_gate *g = NULL;
    ing_status s = ing_py_lower(k, args, true, &g, &r, &unread, e);
    if (s == ING_OK && is_current(k, v)) s = compare(k, g, &r, v, e);
    ing_py_gate_free(g);
    ing_front_result_fini(&r);
    return s;
}
