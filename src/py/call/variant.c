/* Compiling one variant: lower with the GIL, build without it (R15), and turn the result
 * into what a launch needs: binds, guards, tasks. Called on a miss only. */
#include "py/see/field_gate.h"
#include "py/call/report.h"
#include "py/call/guard.h"
#include "py/tool/tool.h"

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

void ing_py_variant_free(ing_py_variant *v) {
    ing_launch_tasks_fini(&v->tasks);
    ing_free(v->apart.words);
    ing_graph_fini(&v->graph);
    ing_free(v->times);
    ing_code_fini(&v->code);
    ing_record_fini(&v->record);
    ing_py_checks_unref(v->checks);
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
    uint8_t *written = ing_calloc(r->args.len + 1, 2);
    if (!written) return no_memory(e);
    uint8_t *reads = written + r->args.len + 1;
    ing_ir_written_args(r->mod, written);
    ing_ir_read_args(r->mod, reads);
    ing_status s = ING_OK;
    for (uint32_t i = 0; s == ING_OK && i < r->args.len; i++) {
        const ing_front_arg *a = &r->args.at[i];
        if (a->lane) continue; /* bound with the first element of its vector */
        ing_record_bind b = {
            .word = r->mod->args.at[i].word,
            .written = written[i],
            .reads = r->mod->lost && r->mod->lost[i] ? ING_IR_READS_LOST : reads[i],
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

/* ---- lowering ------------------------------------------------------------------------------- */

/* The settings that passes and launches read are questions of every trace; the table says
 * which these are. Nobody after this sees any other. */
static ing_status ask_settings(ing_py_kernel *k, const ing_gate *face,
                               ing_settings *answered, ing_err *e) {
    ing_settings_answered(&k->st->settings, answered);
    for (uint32_t i = 0; i < ING_SETTING_N; i++) {
        /* Nothing but the interpreter can do without passes. */
        bool idle = i == ING_SET_interp_passes && k->host->target->gen;
        if (ing_setting_used((ing_setting)i) == ING_USE_ALWAYS && !idle)
            ING_TRY(face->ops->config(face->self, (ing_setting)i, &answered->at[i], e));
    }
    return ING_OK;
}

/* What a pass or a derivative refuses is told with its place. */
static void place_error(const ing_front_result *r, uint32_t tree, uint32_t loc,
                        const char *remedy, ing_err *e) {
    uint32_t opened = loc >> ING_FRONT_TREE_SHIFT;
    ing_node node = loc & ((1u << ING_FRONT_TREE_SHIFT) - 1);
    if (opened) tree = (uint32_t)r->trees.len - opened; /* one of an opened func */
    if (!loc || tree >= r->trees.len || !e->text) return;
    const ing_front_tree *t = r->trees.at[tree];
    ing_err old = *e;
    ing_err_init(e);
    ing_front_diag(t, node, old.status, remedy, e, "%s", old.text);
    ing_err_fini(&old);
}

/* Of arrays behind qd.stop_grad: what is read there is constant, what is written is not. */
static void mark_stopped(ing_front_result *r) {
    for (uint32_t i = 0; i < r->companions.len; i++)
        if (r->args.at[i].constant && r->companions.at[i])
            r->companions.at[i] |= ING_AD_STOPPED;
}

/* The module of a derivative in place of the kernel's, before any pass. Its function is in no
 * text: it is told by the place in the kernel's. */
static ing_status derive(const ing_py_kernel *k, ing_front_result *r, ing_err *e) {
    if (k->mode == ING_AD_NONE) return ING_OK;
    if (k->graph)
        return ing_fail(e, ING_COMPILE, "%s: graph kernels are not differentiated",
                        ing_py_def_name(&k->def));
    mark_stopped(r);
    ing_pass_options o = {0};
    ING_TRY(ing_pass_run_one(r->mod, "promote", &o, e)); /* fewer locals to keep */
    ING_TRY(ing_pass_run_one(r->mod, "simplify", &o, e));
    ing_status s =
        k->mode == ING_AD_REVERSE  ? ing_ad_reverse(r->mod, r->companions.at, e)
        : k->mode == ING_AD_SIZE   ? ing_ad_size(r->mod, r->companions.at, e)
        : k->mode == ING_AD_BOUNDS ? ing_ad_bounds(r->mod, r->companions.at, e)
        : k->mode == ING_AD_TRACE  ? ing_ad_trace(r->mod, r->companions.at, e)
                                   : ing_ad_forward(r->mod, r->companions.at, e);
    if (s == ING_OK) s = ing_ir_verify(r->mod, e);
    if (s != ING_OK)
        place_error(r, r->mod->bad_tree, r->mod->bad_loc, r->mod->remedy, e);
    return s;
}

ing_status ing_py_lower(ing_py_kernel *k, PyObject *const *args, bool quiet,
                        ing_py_gate **gate, ing_front_result *r, ing_settings *answered,
                        ing_err *e) {
    const ing_front_tree *tree;
    ING_TRY(ing_py_def_tree(k->st, &k->def, &tree, e));
    ING_TRY(ing_py_gate_new(k, args, quiet, gate, e));
    ing_count(&k->st->counters, ING_COUNT_LOWERINGS);
    const ing_gate *face = ing_py_gate_face(*gate);
    ing_status s = ing_front_lower(tree, face, r, e);
    if (ing_py_gate_raised(*gate)) return ING_PYTHON; /* also what a message ran into */
    ING_TRY(s);
    /* Derivatives first: an array that is a constant there (qd.stop_grad) is another argument
     * for the same memory, and is not to be taken for the first one. */
    ING_TRY(derive(k, r, e));
    ING_TRY(ing_py_share_blocks(k, *gate, r, e));
    s = ing_ad_settle(r->mod, e);
    if (s != ING_OK)
        place_error(r, r->mod->bad_tree, r->mod->bad_loc, r->mod->remedy, e);
    ING_TRY(s);
    ING_TRY(ing_py_ask_extents(*gate, r, e));
    return ask_settings(k, face, answered, e);
}

/* ---- compiling ------------------------------------------------------------------------------- */

typedef struct compile { /* of one variant: what its steps leave to those after them */
    ing_py_kernel *k;
    PyObject *const *args;
    const ing_py_variant *apart; /* as ing_py_asker */
    uint64_t epoch;              /* when it began */
    ing_py_gate *gate;
    ing_front_result front;
    ing_settings answered;
    ing_py_story *story;
    ing_py_report report;
    ing_py_variant *v;
} compile;

/* Nodes to IR, asking the gate. With the GIL, as all but `build`. */
static ing_status lower(compile *c, ing_err *e) {
    ing_py_kernel *k = c->k;
    ing_span span = {
        .what = "lower", .label = ing_py_def_name(&k->def), .from = ing_os_now_ns()};
    c->report.began = span.from;
    ing_status s =
        ing_py_lower(k, c->args, false, &c->gate, &c->front, &c->answered, e);
    span.end = ing_os_now_ns();
    c->report.front_ns = span.end - span.from;
    ing_events_span(k->host->events, &span);
    ING_TRY(s);
    ing_py_report_front(&c->report, k, &c->front);
    return ing_py_pure_check(k, c->gate, c->args, e);
}

static bool draws(const ing_ir_mod *m) {
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        const ing_ir_func *f = m->funcs.at[i];
        for (uint32_t k = 1; k < f->insts.len; k++)
            if (f->insts.at[k].op == ING_OP_RANDOM || f->insts.at[k].op == ING_OP_SEED)
                return true;
    }
    return false;
}

/* The record but for its tasks, and the guards. */
static ing_status describe(compile *c, ing_err *e) {
    ing_py_variant *v = c->v;
    ING_TRY(take_results(&c->front, v, e));
    ING_TRY(take_stages(c->gate, &c->front, v, e));
    ING_TRY(take_trees(c->gate, &c->front, v, e));
    ING_TRY(make_binds(c->k, c->gate, &c->front, v, e));
    ING_TRY(take_warnings(ing_py_gate_warnings(c->gate), &v->record, e));
    ing_trace_fini(&v->record.trace);
    v->record.trace = *ing_py_gate_trace(c->gate);
    ing_trace_init(ing_py_gate_trace(c->gate));
    v->record.overlap = c->apart != NULL;
    v->record.draws = draws(c->front.mod);
    v->record.flush_denormals = c->answered.at[ING_SET_fast_math] != 0;
    ING_TRY(ing_py_guards_make(c->k, v, c->args, e));
    ING_TRY(ing_ir_content(c->front.mod, &v->record.lowered, e));
    const ing_py_unreplayable *what = ing_py_gate_unreplayable(c->gate);
    v->only_here = what != NULL;
    return what ? ing_py_pure_only_here(c->k, what) : ING_OK;
}

/* Passes, then an image per task (src/compile/engine.c); what a launch runs from them. */
static ing_status build(compile *c, ing_err *e) {
    ing_py_kernel *k = c->k;
    uint32_t loc = 0;
    ing_ir_remarks remarks = {0};
    ing_engine_job job = {.target = c->v->target,
                          .mod = c->front.mod,
                          .settings = &c->answered,
                          .label = ing_py_def_name(&k->def),
                          .threads =
                              (uint32_t)k->st->settings.at[ING_SET_num_compile_threads],
                          .report = &c->report.engine,
                          .bad_loc = &loc,
                          .remarks = &remarks,
                          .overlap = c->apart != NULL,
                          .progress = k->st->settings.at[ING_SET_progress] != 0,
                          .dump = (uint32_t)k->st->settings.at[ING_SET_dumps]};
    ing_bytes dumped;
    ing_bytes_init(&dumped);
    job.dumped = &dumped;
    if (job.dump & ING_DUMP_LOWERED) {
        ing_bytes_printf(&dumped, "; ==== %s: IR as lowered\n", job.label);
        ing_ir_print(job.mod, 0, &dumped);
    }
    ing_status s;
    if (c->apart) ing_ad_forget_views(c->front.mod);
    c->front.mod = NULL; /* taken */
    Py_BEGIN_ALLOW_THREADS s =
        ing_engine_build(k->host->engine, &job, &c->v->record, &c->v->code, e);
    Py_END_ALLOW_THREADS if (s != ING_OK)
        place_error(&c->front, 0, loc, "compute it where it is used", e);
    if (s == ING_OK)
        ing_py_remarks(k, &c->front, &c->v->record, &remarks,
                       ing_py_story_code(c->story));
    ing_vec_fini(&remarks);
    int said = dumped.len && !dumped.failed
                   ? ing_py_say("stdout", (const char *)dumped.at, dumped.len)
                   : 0;
    ing_bytes_fini(&dumped);
    ING_TRY(s);
    if (said < 0) return ING_PYTHON;
    ING_TRY(ing_py_report_show(&c->report, k));
    ing_py_profile_compile(k->host, &c->report.engine, c->report.front_ns);
    ING_TRY(ing_launch_tasks_init(&c->v->tasks, &c->v->code, e));
    return ing_py_graph_make(c->v, e);
}

/* Whether arrays share memory is the last question: the passes tell of which arrays, those
 * that assume nothing do not. The pairs of a gradient's rule (n_rule) come first in both. */
static ing_status ask_overlap(compile *c, ing_err *e) {
    ing_record *r = &c->v->record;
    const ing_record *of = c->apart ? &c->apart->record : NULL;
    bool ok = true;
    if (of) {
        r->arrays.len = r->apart.len = 0;
        r->n_views = of->n_views;
    }
    for (uint32_t i = 0; ok && of && i < of->arrays.len; i++)
        ok = ing_vec_push(&r->arrays, of->arrays.at[i]);
    for (uint32_t i = 0; ok && of && i < of->apart.len; i++)
        ok = ing_vec_push(&r->apart, of->apart.at[i]);
    return ok && ing_record_ask_overlap(r, &c->k->paths) ? ING_OK : no_memory(e);
}

/* To the disk, and a leaf of the kernel's tree, which takes a reference. If qd.init ran
 * meanwhile, this launch uses what it asked for, and nobody keeps it. */
static ing_status publish(compile *c, ing_err *e) {
    ing_py_kernel *k = c->k;
    /* What comes along with the alias is of the kernel itself. */
    ing_cache_alias *alias = k->def.ours || k->mode ? NULL : &k->def.alias;
    ing_hash128 key = {0, 0};
    if (k->epoch != c->epoch || k->host->epoch != c->epoch) return ING_OK;
    if (!c->v->only_here)
        ING_TRY(ing_cache_publish(&k->cache, &c->v->record, alias, &key, e));
    if (k->epoch != c->epoch || k->host->epoch != c->epoch) return ING_OK;
    ING_TRY(ing_cache_keep(&k->cache, key, c->v, e));
    c->v->refs++;
    return ING_OK;
}

/* The steps of a compile in their order. */
static ing_status conduct(compile *c, ing_err *e) {
    ING_TRY(ing_py_host_store(c->k->host,
                              e)); /* images are kept without src_ll_cache too */
    ING_TRY(ing_py_host_helpers(c->k->host, e));
    Py_BEGIN_ALLOW_THREADS ing_engine_prepare(c->k->host->engine, c->v->target);
    Py_END_ALLOW_THREADS ING_TRY(lower(c, e));
    ING_TRY(describe(c, e));
    ING_TRY(ing_py_story_begin(c->k, c->gate, c->v, &c->story, e));
    ING_TRY(build(c, e));
    ING_TRY(ing_py_story_end(c->k, c->gate, c->v, c->story));
    ING_TRY(ask_overlap(c, e));
    ing_count(&c->k->st->counters, ING_COUNT_VARIANTS);
    if (ing_py_tell_gdb(c->k, c->v, c->args) < 0) return ING_PYTHON;
    return publish(c, e);
}

ing_status ing_py_compile(const ing_py_asker *a, ing_py_variant **out, ing_err *e) {
    compile c = {.k = a->kernel,
                 .args = a->args,
                 .apart = a->apart,
                 .epoch = a->kernel->epoch,
                 .v = ing_py_variant_new(a->kernel->host)};
    if (!c.v) return no_memory(e);
    ing_front_result_init(&c.front);
    ing_status s = conduct(&c, e);
    ing_py_story_free(c.story);
    ing_py_gate_free(c.gate);
    ing_front_result_fini(&c.front);
    if (s == ING_OK)
        *out = c.v;
    else
        ing_py_variant_unref(c.v);
    return s;
}

PyObject *ing_py_lower_text(ing_py_kernel *k, PyObject *const *args) {
    ing_err e;
    ing_err_init(&e);
    ing_front_result r;
    ing_front_result_init(&r);
    ing_settings unread;
    ing_py_gate *gate = NULL;
    PyObject *out = NULL;
    ing_status s = ing_py_lower(k, args, false, &gate, &r, &unread, &e);
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
