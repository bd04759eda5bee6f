/* What derivatives (src/ad) need of lowering: the arrays of gradients or duals beside the
 * arguments, and qd.stop_grad. All of it only where the gate has a `companion`: ordinary
 * kernels ask nothing of this. Called by lower.c, value.c and intrin.c. */
#include "front/front_int.h"

#include <stdio.h>
#include <string.h>

/* ---- qd.stop_grad --------------------------------------------------------------------------- */

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* Uses of argument k are of another one from here on, which has no companion. */
static ing_status stop_arg(frame *fr, uint32_t k, uint32_t control, frame *of) {
    lowering *lo = fr->lo;
    stopped s = {k, ing_ir_add_arg(lo->mod, lo->mod->args.at[k].type), control};
    ing_front_arg a = {
        .ref = lo->out->args.at[k].ref, .dtype = ING_VOID, .constant = true};
    return ing_vec_push(&lo->out->args, a) && ing_vec_push(&of->stopped, s)
               ? ING_OK
               : no_memory(fr);
}

/* Is argument k the array of a stopped one, found at another place? */
static ing_status same_array(frame *fr, uint32_t k, const stopped *s, bool *out) {
    lowering *lo = fr->lo;
    *out = false;
    if (lo->mod->args.at[k].type != lo->mod->args.at[s->arg].type) return ING_OK;
    same_pair pair = {s->arg, k};
    if (!ing_vec_push(&lo->compared, pair)) return no_memory(fr);
    ing_status st =
        lo->gate->ops->same_of_root(lo->gate->self, lo->out->args.at[s->arg].ref,
                                    lo->out->args.at[k].ref, false, out, lo->e);
    return st;
}

void ing_front_stops_end(frame *fr) {
    while (fr->stopped.len && fr->stopped.at[fr->stopped.len - 1].control > fr->control)
        fr->stopped.len--;
}

ing_status ing_front_arg_here(frame *fr, uint32_t *k) {
    if (fr->lo->out->args.at[*k].constant) return ING_OK;
    for (frame *f = fr; f; f = f->caller) ing_front_stops_end(f);
    for (frame *f = fr; f; f = f->caller)
        for (uint32_t i = f->stopped.len; i-- > 0;) {
            bool same = f->stopped.at[i].arg == *k;
            if (same) {
                *k = f->stopped.at[i].instead;
                return ING_OK;
            }
        }
    for (frame *f = fr; f; f = f->caller)
        for (uint32_t i = f->stopped.len; i-- > 0;) {
            bool same;
            stopped s = f->stopped.at[i];
            ING_TRY(same_array(fr, *k, &s, &same));
            if (!same) continue;
            ING_TRY(stop_arg(fr, *k, s.control, f));
            *k = f->stopped.at[f->stopped.len - 1].instead;
            return ING_OK;
        }
    return ING_OK;
}

void ing_front_stopped_key(const frame *fr, ing_hasher *h) {
    for (const frame *f = fr; f; f = f->caller)
        for (uint32_t i = 0; i < f->stopped.len; i++)
            if (f->stopped.at[i].control <= f->control)
                ing_hasher_u64(h, 4, f->stopped.at[i].arg);
}

static ing_status stop_array(frame *fr, ing_node at, const value *v) {
    const ing_ir_inst *i = ing_ir_at(fr->b.func, v->inst);
    if (i->op != ING_OP_ARRAY)
        return ing_front_fail_at(
            fr, at, ING_COMPILE, "stop it in the kernel",
            "stop_grad of an array that the func got as an argument");
    if (fr->lo->out->args.at[i->a].constant) return ING_OK;
    ing_front_stops_end(fr);
    return stop_arg(fr, i->a, fr->control, fr);
}

/* A bundle's nesting, that of its type, bounds the recursion. */
ing_status ing_front_stop_grad(frame *fr, ing_node at, value *v) {
    if (v->kind == V_ARRAY) return stop_array(fr, at, v);
    for (uint32_t k = 0; v->kind == V_BUNDLE && k < v->n; k++) {
        value member = v->items[k];
        ING_TRY(ing_front_force(fr, at, &member));
        ING_TRY(ing_front_stop_grad(fr, at, &member));
    }
    return ING_OK;
}

/* ---- companions ----------------------------------------------------------------------------- */

/* Does the array have numbers that derivatives are of? */
static bool has_floats(const frame *fr, ing_type array) {
    const ing_ir_mod *m = fr->lo->mod;
    const ing_type_info *elem = ing_ir_type(m, ing_ir_type(m, array)->elem);
    return ing_dtype_is_float((ing_dtype)elem->dtype);
}

/* Of an array its fact tells. A field always has companions, mostly without memory: whether
 * they have some is a question of its own, so that a variant is for one answer only. */
static ing_status has_companion(frame *fr, uint32_t arg, bool *out) {
    const char *name = fr->lo->gate->companion;
    const ing_type_info *t = ing_ir_type(fr->lo->mod, fr->lo->mod->args.at[arg].type);
    ing_node at = fr->t->root;
    ing_gate_fact f = {0};
    ing_gref ref = 0;
    char has[32];
    *out = !t->place && t->grad && strcmp(name, "grad") == 0;
    if (!t->place) return ING_OK;
    snprintf(has, sizeof has, "_has_%s", name);
    GATE(fr, at, attr_of_root, fr->lo->out->args.at[arg].ref, has, &ref, fr->lo->e);
    if (!ref) return ING_OK;
    GATE(fr, at, look, ref, &f, fr->lo->e);
    *out = f.kind == ING_GATE_BOOL && f.i;
    return ING_OK;
}

/* `own`: how many arguments the text of the kernel has. */
static ing_status companion_of(frame *fr, uint32_t arg, uint32_t own, uint32_t *out) {
    const ing_gate *g = fr->lo->gate;
    ing_gref of = fr->lo->out->args.at[arg].ref, ref = 0;
    ing_node at = fr->t->root;
    ing_gate_fact f = {0};
    bool has = false;
    ING_TRY(has_companion(fr, arg, &has));
    if (!has) return ING_OK;
    GATE(fr, at, attr_of_root, of, g->companion, &ref, fr->lo->e);
    if (!ref) return ING_OK;
    GATE(fr, at, look, ref, &f, fr->lo->e);
    if (f.kind != ING_GATE_ARRAY && f.kind != ING_GATE_FIELD) return ING_OK;
    ing_type t = ING_VOID;
    uint32_t k = 0;
    ING_TRY(ing_front_array_arg(fr, at, &f, ref, &t, &k));
    if (k < own)
        return ing_front_fail_at(
            fr, at, ING_RUNTIME, "compute it in a kernel of its own",
            "Cannot automatically differentiate through a grad tensor: the kernel uses "
            "the .%s of an array itself",
            g->companion);
    *out = k + 1;
    return ING_OK;
}

ing_status ing_front_companions(frame *fr) {
    lowering *lo = fr->lo;
    uint32_t n = lo->out->args.len;
    int64_t reference;
    ING_TRY(ing_front_config_get(fr, fr->t->root, ING_SET_reference, &reference));
    lo->mod->promised = reference != 0;
    for (uint32_t i = 0; i < lo->compared.len; i++) {
        const same_pair *p = &lo->compared.at[i];
        bool same;
        GATE(fr, fr->t->root, same_of_root, lo->out->args.at[p->a].ref,
             lo->out->args.at[p->b].ref, true, &same, lo->e);
    }
    for (uint32_t i = 0; i < n; i++) {
        ing_type t = lo->mod->args.at[i].type;
        uint32_t other = 0;
        const ing_front_arg *a = &lo->out->args.at[i];
        if (a->dtype == ING_VOID && has_floats(fr, t))
            ING_TRY(companion_of(fr, i, n, &other));
        if (!ing_vec_push(&lo->out->companions, other))
            return ing_fail(lo->e, ING_MEMORY, "no memory while compiling a kernel");
    }
    for (uint32_t i = n; i < lo->out->args.len; i++)
        if (!ing_vec_push(&lo->out->companions, 0))
            return ing_fail(lo->e, ING_MEMORY, "no memory while compiling a kernel");
    return ING_OK;
}

ing_status ing_front_ask_entries(frame *fr, ing_node n) {
    const char *of = fr->lo->gate->companion;
    if (!of || strcmp(of, "grad") != 0) return ING_OK;
    return ing_front_config_get(fr, n, ING_SET_ad_stack_size,
                                &fr->lo->mod->stack_entries);
}

ing_status ing_front_check_reverse(frame *fr, ing_node n) {
    const char *of = fr->lo->gate->companion;
    int64_t on = 1;
    bool inner = false;
    if (!of || strcmp(of, "grad") != 0) return ING_OK;
    for (const frame *f = fr; f; f = f->caller) inner |= f->loops != NULL;
    if (inner)
        ING_TRY(
            ing_front_config_get(fr, n, ING_SET_ad_stack_experimental_enabled, &on));
    if (inner) ING_TRY(ing_front_ask_entries(fr, n));
    return on ? ING_OK
              : ing_front_fail_at(fr, n, ING_COMPILE,
                                  "leave out ad_stack_experimental_enabled=False, or "
                                  "unroll the loop: qd.static(range(n))",
                                  "Cannot use non static range in Backwards mode");
}
