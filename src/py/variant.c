/* Compiling one variant: lower with the GIL, build without it (R15), and turn the result
 * into what a launch needs: binds, guards, tasks. Called on a miss only. */
#include "py/field.h"
#include "py/report.h"
#include "py/guard.h"

#include <string.h>

/* ---- life ----------------------------------------------------------------------------- */

ing_py_variant *ing_py_variant_new(const ing_py_host *h) {
    ing_py_variant *v = ing_calloc(1, sizeof *v);
    if (!v) return NULL;
    v->refs = 1;
    v->target = h->target;
    ing_record_init(&v->record);
    return v;
}

void ing_py_variant_unref(ing_py_variant *v) {
    if (!v || --v->refs) return;
    ing_launch_tasks_fini(&v->tasks);
    ing_graph_fini(&v->graph);
    ing_free(v->times);
    ing_code_fini(&v->code);
    ing_record_fini(&v->record);
    ing_py_checks_unref(v->checks);
    ing_py_variant_unref(v->overlap); /* that one has none */
    ing_free(v);
}

/* ---- from lowering to a plan -------------------------------------------------------------- */

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory for a compiled kernel");
}

static ing_spec spec_of_fact(const ing_gate_fact *f) {
    ing_spec s = {.dtype = (uint8_t)f->dtype,
                  .ndim = f->ndim,
                  .grad = f->grad,
                  .elem_rank = f->elem_rank};
    memcpy(s.elem_shape, f->elem_shape, sizeof s.elem_shape);
    memcpy(s.layout, f->layout, f->ndim);
    return s;
}

/* Is it an argument itself? */
static bool is_direct(const ing_py_kernel *k, ing_path path) {
    const ing_path_node *n = &k->paths.nodes.at[path];
    return n->step == ING_STEP_ARG && n->parent == 0;
}

static ing_status bind_array(ing_py_kernel *k, ing_py_gate *g, ing_gref ref,
                             ing_record_bind *b, ing_err *e) {
    PyObject *obj = ing_py_gate_object(g, ref);
    ing_gate_fact f;
    ING_TRY(ing_py_see_arg(k->st, ing_py_param_at(k, b->path), obj, &f, e));
    if (f.kind == ING_GATE_FIELD) {
        if (!ing_vec_reserve(&b->place, ING_PLACE_MAX_NUMBERS)) return no_memory(e);
        b->place.len = ing_place_put(f.place, b->place.at);
    } else {
        b->array = spec_of_fact(&f);
    }
    b->kind = is_direct(k, b->path) ? ING_BIND_ARRAY : ING_BIND_CAPTURED;
    return ING_OK;
}

static ing_status make_binds(ing_py_kernel *k, ing_py_gate *g,
                             const ing_front_result *r, ing_py_variant *v, ing_err *e) {
    uint8_t *written = ing_calloc(r->args.len + 1, 1);
    if (!written) return no_memory(e);
    ing_ir_written_args(r->mod, written);
    ing_status s = ING_OK;
    for (uint32_t i = 0; s == ING_OK && i < r->args.len; i++) {
        const ing_front_arg *a = &r->args.at[i];
        if (a->lane) continue; /* bound with the first element of its vector */
        ing_record_bind b = {.word = r->mod->args.at[i].word,
                             .written = written[i],
                             .path = ing_py_gate_path(g, a->ref),
                             .dtype = (uint8_t)a->dtype};
        ing_path_node n = k->paths.nodes.at[b.path];
        while (n.parent) n = k->paths.nodes.at[n.parent];
        b.arg = n.step == ING_STEP_ARG ? (uint32_t)n.i : 0;
        if (a->dtype == ING_VOID)
            s = bind_array(k, g, a->ref, &b, e);
        else
            b.kind = is_direct(k, b.path) ? ING_BIND_SCALAR : ING_BIND_NUMBER;
        if (s == ING_OK && !ing_vec_push(&v->record.binds, b)) s = no_memory(e);
        if (s != ING_OK) ing_vec_fini(&b.place);
    }
    ing_free(written);
    return s;
}

static ing_status take_results(const ing_front_result *r, ing_py_variant *v,
                               ing_err *e) {
    if (r->mod->rets.len > ING_RECORD_MAX_RETS)
        return ing_fail(e, ING_SYNTAX, "a kernel can return at most %d numbers",
                        ING_RECORD_MAX_RETS);
    v->record.n_rets = r->mod->rets.len;
    for (uint32_t i = 0; i < v->record.n_rets; i++)
        v->record.rets[i] = (uint8_t)r->mod->rets.at[i];
    v->record.returns_tuple = r->returns_tuple;
    return ING_OK;
}

static ing_status take_stages(const ing_py_gate *g, const ing_front_result *r,
                              ing_py_variant *v, ing_err *e) {
    for (uint32_t i = 0; i < r->stages.len; i++) {
        const ing_front_stage *from = &r->stages.at[i];
        ing_record_stage s = {.label = from->label};
        if (from->ref) s.path = ing_py_gate_path(g, from->ref);
        if (!ing_vec_push(&v->record.stages, s)) return no_memory(e);
    }
    return ING_OK;
}

static ing_status take_trees(const ing_py_gate *g, ing_front_result *r,
                             ing_py_variant *v, ing_err *e) {
    for (uint32_t i = 0; i < r->mod->funcs.len; i++) r->mod->funcs.at[i]->tree = i;
    for (uint32_t i = 0; i < r->trees.len; i++)
        if (!ing_vec_push(&v->record.trees, ing_py_gate_tree_path(g, r->trees.at[i])))
            return no_memory(e);
    for (uint32_t i = 0; i < r->messages.len; i++) {
        if (!ing_vec_push(&v->record.messages, r->messages.at[i])) return no_memory(e);
        r->messages.at[i] = NULL;
    }
    return ING_OK;
}

/* The number of a definition among the record's trees + 1, 0 = it is none of them. */
static uint32_t tree_number(const ing_record *r, ing_path path) {
    for (uint32_t i = 0; i < r->trees.len && path; i++)
        if (r->trees.at[i] == path) return i + 1;
    return 0;
}

static ing_status take_warnings(ing_py_warnings *from, ing_record *r, ing_err *e) {
    if (!ing_vec_reserve(&r->warnings, from->len)) return no_memory(e);
    for (uint32_t i = 0; i < from->len; i++) {
        r->warnings.at[i] = from->at[i];
        r->warnings.at[i].tree = tree_number(r, from->at[i].tree);
    }
    r->warnings.len = from->len;
    from->len = 0;
    return ING_OK;
}

/* Everything of a variant but its code. */
static ing_status fill(ing_py_kernel *k, ing_py_gate *g, ing_front_result *r,
                       ing_py_variant *v, PyObject *const *args, ing_err *e) {
    ING_TRY(take_results(r, v, e));
    ING_TRY(take_stages(g, r, v, e));
    ING_TRY(take_trees(g, r, v, e));
    ING_TRY(make_binds(k, g, r, v, e));
    ING_TRY(take_warnings(ing_py_gate_warnings(g), &v->record, e));
    ing_trace_fini(&v->record.trace);
    v->record.trace = *ing_py_gate_trace(g);
    ing_trace_init(ing_py_gate_trace(g));
    v->record.flush_denormals = k->st->settings.at[ING_SET_fast_math] != 0;
    return ing_py_guards_make(k, v, args, e);
}

/* ---- compiling ------------------------------------------------------------------------------- */

static ing_status build(ing_py_kernel *k, ing_ir_mod *mod, bool overlap,
                        ing_py_variant *v, ing_engine_report *report, uint32_t *bad_loc,
                        ing_err *e) {
    ing_settings settings = k->st->settings;
    ing_engine_job job = {v->target, mod,     &settings, ing_py_def_name(&k->def),
                          report,    bad_loc, overlap};
    ing_status s;
    Py_BEGIN_ALLOW_THREADS s =
        ing_engine_build(k->host->engine, &job, &v->record, &v->code, e);
    Py_END_ALLOW_THREADS return s;
}

/* What a pass refuses is told with its place. */
static void place_error(const ing_front_result *r, uint32_t loc, ing_err *e) {
    uint32_t tree = loc >> ING_FRONT_TREE_SHIFT;
    ing_node node = loc & ((1u << ING_FRONT_TREE_SHIFT) - 1);
    if (!loc || tree > r->trees.len || !e->text) return;
    const ing_front_tree *t = r->trees.at[tree ? r->trees.len - tree : 0];
    ing_err old = *e;
    ing_err_init(e);
    ing_front_diag(t, node, old.status, "compute it where it is used", e, "%s",
                   old.text);
    ing_err_fini(&old);
}

ing_status ing_py_lower(ing_py_kernel *k, PyObject *const *args, bool quiet,
                        ing_py_gate **gate, ing_front_result *r, ing_err *e) {
    const ing_front_tree *tree;
    ING_TRY(ing_py_def_tree(k->st, &k->def, &tree, e));
    ING_TRY(ing_py_gate_new(k, args, quiet, gate, e));
    ing_count(&k->st->counters, ING_COUNT_LOWERINGS);
    const ing_gate *face = ing_py_gate_face(*gate);
    ing_status s = ing_front_lower(tree, face, r, e);
    if (PyErr_Occurred()) return ING_PYTHON; /* also what a message ran into */
    ING_TRY(s);
    /* What the passes and the launch read after it. */
    int64_t unused;
    ING_TRY(face->ops->config(face->self, ING_SET_fast_math, &unused, e));
    ING_TRY(face->ops->config(face->self, ING_SET_target, &unused, e));
    if (!k->host->target->gen)
        ING_TRY(face->ops->config(face->self, ING_SET_interp_passes, &unused, e));
    return face->ops->config(face->self, ING_SET_debug, &unused, e);
}

ing_status ing_py_compile(ing_py_kernel *k, PyObject *const *args, bool overlap,
                          ing_py_variant **out, ing_err *e) {
    ING_TRY(
        ing_py_host_store(k->host, e)); /* images are kept without src_ll_cache too */
    ING_TRY(ing_py_host_helpers(k->host, e));
    ing_front_result r;
    ing_front_result_init(&r);
    ing_py_gate *gate = NULL;
    ing_py_story *story = NULL;
    ing_py_variant *v = ing_py_variant_new(k->host);
    if (!v) return no_memory(e);
    ing_py_report report = {0};
    ing_span span = {
        .what = "lower", .label = ing_py_def_name(&k->def), .from = ing_os_now_ns()};
    report.began = span.from;
    ing_status s = ing_py_lower(k, args, false, &gate, &r, e);
    span.end = ing_os_now_ns();
    report.front_ns = span.end - span.from;
    ing_events_span(k->host->events, &span);
    if (s == ING_OK) ing_py_report_front(&report, k->host->events, &r);
    if (s == ING_OK) s = ing_py_pure_check(k, gate, args, e);
    if (s == ING_OK) s = fill(k, gate, &r, v, args, e);
    if (s == ING_OK) s = ing_ir_content(r.mod, &v->record.lowered, e);
    const ing_py_unreplayable *what = gate ? ing_py_gate_unreplayable(gate) : NULL;
    v->only_here = what != NULL;
    if (s == ING_OK && what) s = ing_py_pure_only_here(k, what);
    if (s == ING_OK && !overlap) s = ing_py_story_begin(k, gate, v, &story, e);
    if (s == ING_OK) {
        ing_ir_mod *mod = r.mod;
        r.mod = NULL;
        uint32_t loc = 0;
        s = build(k, mod, overlap, v, &report.engine, &loc, e);
        if (s != ING_OK) place_error(&r, loc, e);
        if (s == ING_OK)
            ing_py_report_show(&report, k->host->events, ing_py_def_name(&k->def));
    }
    if (s == ING_OK) s = ing_launch_tasks_init(&v->tasks, &v->code, e);
    if (s == ING_OK) s = ing_py_graph_make(v, e);
    if (s == ING_OK && !overlap) s = ing_py_story_end(k, gate, v, story);
    ing_py_story_free(story);
    ing_py_gate_free(gate);
    ing_front_result_fini(&r);
    if (s != ING_OK) {
        ing_py_variant_unref(v);
        return s;
    }
    ing_count(&k->st->counters, ING_COUNT_VARIANTS);
    if (ing_py_tell_gdb(k, v, args) < 0) {
        ing_py_variant_unref(v);
        return ING_PYTHON;
    }
    *out = v;
    return ING_OK;
}

PyObject *ing_py_lower_text(ing_py_kernel *k, PyObject *const *args) {
    ing_err e;
    ing_err_init(&e);
    ing_front_result r;
    ing_front_result_init(&r);
    ing_py_gate *gate = NULL;
    PyObject *out = NULL;
    ing_status s = ing_py_lower(k, args, false, &gate, &r, &e);
    if (s == ING_OK) {
        ing_bytes trace, ir;
        ing_bytes_init(&trace);
        ing_bytes_init(&ir);
        ing_trace_print(ing_py_gate_trace(gate), &k->paths, &trace);
        ing_ir_print(r.mod, ING_IR_PRINT_NAMES | ING_IR_PRINT_LOCS, &ir);
        if (trace.failed || ir.failed)
            PyErr_NoMemory();
        else
            out = Py_BuildValue("(s#s#)", trace.at ? (char *)trace.at : "",
                                (Py_ssize_t)trace.len, ir.at ? (char *)ir.at : "",
                                (Py_ssize_t)ir.len);
        ing_bytes_fini(&trace);
        ing_bytes_fini(&ir);
    }
    ing_py_gate_free(gate);
    ing_front_result_fini(&r);
    if (s != ING_OK) ing_py_raise(k->st, &e);
    ing_err_fini(&e);
    return out;
}
