/* Lowering a kernel: sets up the module and frame 0, binds the parameters so that only
 * those that are read become arguments, lowers the body, checks the result. Called by the
 * compiler's conductor with a gate that has frame 0 open. */
#include "front/front_int.h"

void ing_front_result_init(ing_front_result *r) {
    *r = (ing_front_result){0};
}

void ing_front_result_fini(ing_front_result *r) {
    ing_ir_mod_free(r->mod);
    ing_vec_fini(&r->args);
    ing_vec_fini(&r->trees);
    for (uint32_t i = 0; i < r->messages.len; i++) ing_free(r->messages.at[i]);
    ing_vec_fini(&r->messages);
    ing_vec_fini(&r->stages);
    ing_vec_fini(&r->companions);
    *r = (ing_front_result){0};
}

/* A struct whose members the kernel assigns is a variable: the kernel has a copy. */
static ing_status copy_struct(frame *fr, ing_node at, uint32_t i, value *v) {
    GATE(fr, at, param_info, i, &fr->params[i], fr->lo->e);
    fr->params_known[i] = true;
    return fr->params[i].layout ? ing_front_param(fr, at, i, v) : ING_OK;
}

static ing_status bind_params(frame *fr) {
    param_list list;
    ING_TRY(ing_front_params_read(fr, &list));
    fr->params = ING_NEW_ARRAY(&fr->lo->arena, list.n + 1, ing_gate_param);
    fr->params_known = ING_NEW_ARRAY(&fr->lo->arena, list.n + 1, bool);
    if (!fr->params || !fr->params_known)
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    for (uint32_t i = 0; i < list.n; i++) {
        uint32_t slot = NF(fr->t, list.node[i], ARGUMENT)->arg;
        value v = {.kind = V_PARAM, .i = i};
        if (fr->uses[slot - 1] & NAME_PART)
            ING_TRY(copy_struct(fr, list.node[i], i, &v));
        if (v.kind == V_STRUCT)
            ING_TRY(ing_front_struct_declare(fr, list.node[i], slot - 1, &v));
        else
            ING_TRY(ing_front_scope_add(fr, slot - 1, &v));
    }
    return ING_OK;
}

/* The numbers of a struct, in order; its nesting bounds the recursion. */
static bool add_numbers(ing_ir_mod *mod, const ing_gate_struct *layout) {
    for (uint32_t k = 0; k < layout->n; k++) {
        const ing_gate_member *m = &layout->members[k];
        if (m->inner && !add_numbers(mod, m->inner)) return false;
        for (uint32_t i = 0; !m->inner && i < ing_gate_count(&m->tensor); i++)
            if (!ing_vec_push(&mod->rets, (ing_type)m->dtype)) return false;
    }
    return true;
}

static bool add_results(ing_ir_mod *mod, const ing_gate_returns *r, uint32_t i) {
    if (r->layouts[i]) return add_numbers(mod, r->layouts[i]);
    for (uint32_t k = 0; k < ing_gate_count(&r->tensors[i]); k++)
        if (!ing_vec_push(&mod->rets, (ing_type)r->dtypes[i])) return false;
    return true;
}

static ing_status bind_returns(frame *fr) {
    ing_front_result *out = fr->lo->out;
    GATE(fr, fr->t->root, returns, &fr->returns, fr->lo->e);
    for (uint32_t i = 0; i < fr->returns.n; i++)
        if (!add_results(out->mod, &fr->returns, i))
            return ing_fail(fr->lo->e, ING_MEMORY,
                            "no memory while compiling a kernel");
    out->returns_tuple = fr->returns.n > 1 || fr->returns.tuple;
    return ING_OK;
}

static ing_status lower_body(frame *fr) {
    const struct nf_FUNCTION *f = NF(fr->t, fr->t->root, FUNCTION);
    ING_TRY(bind_params(fr));
    ING_TRY(bind_returns(fr));
    if (fr->lo->gate->graph && fr->returns.n)
        return ing_front_fail_at(
            fr, f->returns ? f->returns : fr->t->root, ING_SYNTAX,
            "write the result to an array, or leave out graph=True",
            "@qd.kernel(graph=True) cannot return a value");
    flow end = FLOW_NEXT;
    ING_TRY(ing_front_block(fr, f->body, &end));
    if (fr->returns.n && !fr->returned)
        return ing_front_fail_at(
            fr, f->returns ? f->returns : fr->t->root, ING_SYNTAX,
            "add a return statement at the end, or leave out the annotation",
            "Kernel has a return type but does not have a return statement");
    return ING_OK;
}

static ing_status lower_kernel(lowering *lo, const ing_front_tree *tree) {
    frame fr;
    uint32_t func = ing_ir_add_func(
        lo->mod, ING_IR_KERNEL, tree->name ? tree->name : "kernel", NULL, 0, ING_VOID);
    if (!ing_vec_push(&lo->out->trees, tree))
        return ing_fail(lo->e, ING_MEMORY, "no memory while compiling a kernel");
    ING_TRY(ing_front_frame_init(&fr, lo, NULL, tree));
    fr.kernel = fr.top = true;
    fr.func = func;
    ing_ir_builder_init(&fr.b, lo->mod, func);
    ing_status s = lower_body(&fr);
    if (s == ING_OK && lo->gate->companion) s = ing_front_companions(&fr);
    ing_ir_builder_done(&fr.b);
    ing_front_frame_fini(&fr);
    for (uint32_t i = 0; i < lo->mod->funcs.len; i++) lo->mod->funcs.at[i]->tree = i;
    for (uint32_t k = lo->opened.len; k-- > 0;)
        if (!ing_vec_push(&lo->out->trees, lo->opened.at[k]))
            return ing_fail(lo->e, ING_MEMORY, "no memory while compiling a kernel");
    return s;
}

ing_status ing_front_lower(const ing_front_tree *tree, const ing_gate *gate,
                           ing_front_result *out, ing_err *e) {
    lowering lo = {.gate = gate, .out = out, .e = e};
    ing_arena_init(&lo.arena);
    ing_map_init(&lo.args);
    ing_map_init(&lo.steps);
    ing_map_init(&lo.specs);
    ing_map_init(&lo.func_map);
    lo.mod = out->mod = ing_ir_mod_new();
    ing_status s = lo.mod ? lower_kernel(&lo, tree) : ING_MEMORY;
    /* A lost instruction or value may have led to some other complaint. */
    if (s != ING_PYTHON && lo.mod && (!ing_ir_ok(lo.mod) || lo.arena.failed))
        s = ING_MEMORY;
    if (s == ING_MEMORY && lo.mod && lo.mod->bad_type)
        s = ing_fail(e, ING_COMPILE, "%s: a tuple in this kernel is too large",
                     tree->name ? tree->name : "kernel");
    if (s == ING_MEMORY) ing_fail(e, s, "no memory while compiling a kernel");
    ing_map_fini(&lo.args);
    ing_map_fini(&lo.steps);
    ing_map_fini(&lo.specs);
    ing_map_fini(&lo.func_map);
    ing_vec_fini(&lo.spec_list);
    ing_vec_fini(&lo.func_list);
    ing_vec_fini(&lo.opened);
    ing_vec_fini(&lo.compared);
    ing_arena_fini(&lo.arena);
    return s;
}
