/* Results of funcs: what a `return` gives, converted as the annotation says, and how it gets
 * to the caller. Numbers and small tensors travel by value, large tensors through memory of
 * the caller. An array does not travel: a func that returns one of its parameters, or an
 * array from outside, names it, and the caller has it already. Called by stmt.c and func.c. */
#include "front/func.h"

#include <string.h>

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* ---- leaves ------------------------------------------------------------------------------ */

void ing_front_leaves_fini(leaves *l) {
    ing_vec_fini(&l->insts);
    ing_vec_fini(&l->types);
}

static bool leaves_add(frame *fr, leaves *l, const value *v, bool result) {
    if (v_holds(v)) {
        for (uint32_t i = 0; i < v_children(v); i++)
            if (!leaves_add(fr, l, &v->items[i], result)) return false;
        return true;
    }
    bool passed = !result && (v->kind == V_REF || v->kind == V_ARRAY);
    if (v->kind != V_RT && !passed) return true;
    ing_type t = v->kind == V_REF ? ing_ir_type_ref(fr->lo->mod, v->type) : v->type;
    bool wide = v->kind == V_RT && v->alt; /* the other one follows (NUMBER2) */
    return ing_vec_push(&l->insts, wide ? v->alt : v->inst) &&
           ing_vec_push(&l->types, wide ? ING_F64 : t);
}

bool ing_front_leaves_add(frame *fr, leaves *l, const value *v) {
    return leaves_add(fr, l, v, false);
}

/* Which array a result of the callee is: a parameter, or an argument of the kernel. */
static void rebuild_array(frame *fr, value *v, const source *src) {
    if (!v->inst || v->inst >= src->callee->insts.len) return;
    const ing_ir_inst *i = &src->callee->insts.at[v->inst];
    v->inst = i->op == ING_OP_PARAM
                  ? src->args[i->a]
                  : ing_ir_emit(&fr->b, ING_OP_ARRAY, v->type, i->a, 0, 0);
}

ing_status ing_front_rebuild(frame *fr, value *v, source *src) {
    v->gref = 0;
    if (v_holds(v)) {
        value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v_children(v) + 1, value);
        if (!items) return no_memory(fr);
        for (uint32_t i = 0; i < v_children(v); i++) {
            items[i] = v->items[i];
            ING_TRY(ing_front_rebuild(fr, &items[i], src));
        }
        v->items = items;
        return ING_OK;
    }
    if (!src || (v->kind != V_RT && v->kind != V_REF && v->kind != V_ARRAY))
        return ING_OK;
    if (v->kind == V_REF && src->places) {
        v->inst = *src->places++;
        return ING_OK;
    }
    if (v->kind == V_ARRAY && src->callee) {
        rebuild_array(fr, v, src);
        return ING_OK;
    }
    ing_type t = v->kind == V_REF ? ing_ir_type_ref(fr->lo->mod, v->type) : v->type;
    uint32_t k = src->next++;
    if (v->alt) t = ING_F64;
    if (src->op == ING_OP_PARAM)
        v->inst = ing_ir_emit(&fr->b, ING_OP_PARAM, t, k, 0, 0);
    else if (src->op == ING_OP_EXTRACT)
        v->inst = ing_ir_emit(&fr->b, ING_OP_EXTRACT, t, src->inst, k, 0);
    else
        v->inst = src->inst;
    if (!v->alt) return ING_OK;
    v->alt = v->inst;
    v->inst = ing_front_emit_cast(fr, v->alt, ING_F64, v_type(v));
    return ING_OK;
}

/* ---- results -------------------------------------------------------------------------------------------- */

static ing_status plain_result(frame *fr, ing_node n, value *v);

static ing_status struct_result(frame *fr, ing_node at, uint32_t i, const value *v,
                                value *out) {
    const ing_gate *g = fr->lo->gate;
    ING_TRY(ing_front_struct_result(fr, at, v, fr->returns.layouts[i], out));
    if (g->ops->annotation)
        GATE(fr, at, annotation, ING_GATE_RESULT + i, &out->gref, fr->lo->e);
    return plain_result(fr, at, out);
}

static ing_status tuple_result(frame *fr, ing_node n, uint32_t first, uint32_t count,
                               const value *v, value *out);

/* Entry i of the annotation. */
static ing_status entry_result(frame *fr, ing_node at, uint32_t i, const value *v,
                               value *out) {
    const ing_gate_returns *r = &fr->returns;
    uint32_t inst = 0;
    *out = *v;
    if (r->layouts[i]) return struct_result(fr, at, i, v, out);
    if (r->items[i]) return tuple_result(fr, at, i + 1, r->items[i] - 1u, v, out);
    if (r->tensors[i].rank) {
        ING_TRY(ing_front_tensor_convert(fr, at, v, &r->tensors[i], r->dtypes[i], out));
        return ing_front_tensor_result(fr, at, out);
    }
    if (r->dtypes[i] == ING_VOID) return plain_result(fr, at, out);
    ING_TRY(ing_front_convert(fr, at, v, r->dtypes[i], &inst));
    *out = ing_front_rt(inst, r->dtypes[i]);
    return ING_OK;
}

/* A tuple as `count` entries from `first` on say. The annotation's nesting bounds the
 * recursion. */
static ing_status tuple_result(frame *fr, ing_node n, uint32_t first, uint32_t count,
                               const value *v, value *out) {
    value one = *v, *items = &one;
    uint32_t found = 1;
    bool ok = true, whole = fr->t->nodes.at[n].kind == ING_NODE_RETURN;
    ING_TRY(ing_front_force(fr, n, &one));
    if (!ing_front_is_scalar(&one))
        ING_TRY(ing_front_items(fr, n, &one, &items, &found, &ok));
    if (!ok) items = &one, found = 1;
    if (found != count)
        return ing_front_fail_at(
            fr, n, ING_TYPE, "return as many values as the annotation names",
            "%s is annotated to return %u values%s, this returns %u", fr->name, count,
            whole ? "" : " here", found);
    value *made = ING_NEW_ARRAY(&fr->lo->arena, (size_t)count + 1, value);
    if (!made) return no_memory(fr);
    for (uint32_t k = 0, i = first; k < count;
         k++, i = ing_gate_after(&fr->returns, i)) {
        ing_node at = whole ? ing_front_result_node(fr, n, k, count) : n;
        ING_TRY(entry_result(fr, at, i, &items[k], &made[k]));
    }
    *out = ing_front_seq(V_TUPLE, made, count);
    return ING_OK;
}

static ing_status annotated_result(frame *fr, ing_node n, const value *v, value *out) {
    const ing_gate_returns *r = &fr->returns;
    uint32_t count = 0;
    if (!r->tuple && r->n == 1 &&
        (r->tensors[0].rank || r->layouts[0] || !r->dtypes[0]))
        return entry_result(fr, ing_front_result_node(fr, n, 0, 1), 0, v, out);
    for (uint32_t i = 0; i < r->n; i = ing_gate_after(r, i)) count++;
    ING_TRY(tuple_result(fr, n, 0, count, v, out));
    if (!r->tuple) *out = out->items[0];
    return ING_OK;
}

static ing_status plain_result(frame *fr, ing_node n, value *v) {
    ING_TRY(ing_front_force(fr, n, v));
    if (v->kind == V_SHAPE) {
        value *items;
        uint32_t m = 0;
        bool ok = false;
        ING_TRY(ing_front_items(fr, n, v, &items, &m, &ok));
        *v = ing_front_seq(V_TUPLE, items, m);
    }
    if (ing_front_is_tensor(fr, v)) {
        if (v->kind == V_TUPLE && fr->one_return && ing_front_is_static(v))
            return ING_OK;
        if (v->kind == V_TUPLE && fr->one_return)
            ING_TRY(ing_front_tensor_pass(fr, n, v));
        if (v->kind == V_TUPLE && fr->one_return) return ING_OK;
        ING_TRY(ing_front_tensor_load(fr, n, v, v)); /* as other returns have it */
        return ing_front_tensor_result(fr, n, v);
    }
    if (v->kind == V_SEEN && v->seen == ING_GATE_STRUCT) {
        bool ok = false;
        ING_TRY(ing_front_struct_from(fr, n, v, v, &ok));
    }
    if (v->kind == V_STRUCT) ING_TRY(ing_front_struct_load(fr, n, v, v));
    bool iter = v->kind == V_ITER; /* its shape is known while compiling */
    if (v_holds(v) && (!iter || fr->one_return)) {
        value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v_children(v) + 1, value);
        if (!items) return no_memory(fr);
        for (uint32_t i = 0; i < v_children(v); i++) {
            items[i] = v->items[i];
            if (v->kind == V_DICT && i % 2 == 0 && ing_front_is_static(&items[i]))
                continue; /* a key */
            ING_TRY(plain_result(fr, n, &items[i]));
        }
        v->items = items;
        return ING_OK;
    }
    /* With one way out a compile-time number stays one. */
    bool literal = v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT;
    if (literal && fr->one_return) return ING_OK;
    if (ing_front_is_scalar(v)) {
        ING_TRY(ing_front_load(fr, n, v, v));
        if (!fr->one_return) v->alt = 0; /* other returns may have none */
        return ING_OK;
    }
    if (v->kind == V_NONE || v->kind == V_STR || v->kind == V_DTYPE ||
        v->kind == V_INTRINSIC || v->kind == V_ARRAY)
        return ING_OK;
    if (v->gref && (v->kind == V_SEEN || v->kind == V_FUNC)) return ING_OK;
    return ing_front_fail_at(fr, n, ING_TYPE, "return numbers or tuples of them",
                             "%s cannot be returned from a func",
                             ing_front_describe(fr, v));
}

/* Of the same members; when the types are not found at one place, methods are lost. */
static ing_status match_struct(frame *fr, ing_node n, value *first, const value *v) {
    for (uint32_t k = 0; k < v->n; k++)
        if (strcmp(v->info->names[k], first->info->names[k]) != 0)
            return ing_front_fail_at(
                fr, n, ING_TYPE, "return the same kind of struct everywhere",
                "this return does not match an earlier one: member '%s' and '%s'",
                v->info->names[k], first->info->names[k]);
    if (first->gref != v->gref &&
        (!v->gref || !first->gref ||
         ing_front_place(fr, v->gref) != ing_front_place(fr, first->gref)))
        first->gref = 0;
    return ING_OK;
}

/* Which array, or thing from outside, it is must be known while compiling. */
static ing_status match_thing(frame *fr, ing_node n, const value *first,
                              const value *v) {
    bool same = false;
    if (v->kind == V_ARRAY && v->inst && first->inst) {
        const ing_ir_inst *a = &fr->b.func->insts.at[first->inst];
        const ing_ir_inst *b = &fr->b.func->insts.at[v->inst];
        same = a->op == b->op && a->a == b->a && v->type == first->type &&
               v->clamp == first->clamp;
    } else if (v->gref && first->gref) {
        uint32_t place = ing_front_place(fr, v->gref);
        same = v->gref == first->gref ||
               (place && place == ing_front_place(fr, first->gref));
    }
    if (same) return ING_OK;
    return ing_front_fail_at(
        fr, n, ING_TYPE, "decide it while compiling: if qd.static(c)",
        "this return gives %s, an earlier one another: which one it is would be known "
        "at run time only",
        ing_front_describe(fr, v));
}

/* A later return takes the types of the first one. */
static ing_status match_result(frame *fr, ing_node n, value *first, value *v) {
    bool seq = v_holds(first);
    if (first->kind != v->kind || (seq && first->n != v->n))
        return ing_front_fail_at(
            fr, n, ING_TYPE, "return the same kind of value everywhere",
            "this return does not match an earlier one: %s and %s",
            ing_front_describe(fr, v), ing_front_describe(fr, first));
    if (v->kind == V_STRUCT) ING_TRY(match_struct(fr, n, first, v));
    if (v->kind == V_ARRAY || v->kind == V_SEEN || v->kind == V_FUNC)
        return match_thing(fr, n, first, v);
    for (uint32_t i = 0; seq && i < v_children(v); i++)
        ING_TRY(match_result(fr, n, &first->items[i], &v->items[i]));
    bool typed = v->kind == V_RT || v->kind == V_REF;
    if (!typed || v->type == first->type) return ING_OK;
    if (v->type >= ING_DTYPE_N || first->type >= ING_DTYPE_N)
        return ing_front_fail_at(fr, n, ING_TYPE, "annotate the return type",
                                 "this return is %s, an earlier one %s",
                                 ing_front_describe(fr, v),
                                 ing_front_describe(fr, first));
    if (ing_front_promote(v_type(first), v_type(v)) != v_type(first))
        return ing_front_fail_at(
            fr, n, ING_TYPE, "annotate the return type: def f() -> qd.f32",
            "this return is %s, an earlier one %s", ing_dtype_name(v_type(v)),
            ing_dtype_name(v_type(first)));
    *v = ing_front_rt(ing_front_emit_cast(fr, v->inst, v_type(v), v_type(first)),
                      first->type);
    return ING_OK;
}

/* The parameter for the `k`-th large tensor of a result; the first return adds it. */
static ing_status result_place(frame *fr, ing_type ref, uint32_t k, uint32_t *inst) {
    ing_ir_func *f = fr->b.func;
    uint32_t at = fr->sp->n_args + k;
    if (at == f->n_params) {
        ing_type *all = ING_NEW_ARRAY(&fr->lo->mod->arena, at + 1, ing_type);
        if (!all) return no_memory(fr);
        if (at) memcpy(all, f->params, at * sizeof *all);
        all[at] = ref;
        f->params = all;
        f->n_params = at + 1;
    }
    *inst = ing_ir_emit(&fr->b, ING_OP_PARAM, ref, at, 0, 0);
    return ING_OK;
}

static ing_status store_large(frame *fr, ing_node n, const value *v, uint32_t *k) {
    for (uint32_t i = 0; v_holds(v) && i < v_children(v); i++)
        ING_TRY(store_large(fr, n, &v->items[i], k));
    if (v->kind != V_REF) return ING_OK;
    value place = {.kind = V_REF, .type = v->type};
    ing_type ref = ing_ir_type_ref(fr->lo->mod, v->type);
    ING_TRY(result_place(fr, ref, (*k)++, &place.inst));
    return ing_front_tensor_store(fr, n, &place, v);
}

static ing_status emit_return(frame *fr, ing_node n, const value *v) {
    leaves l = {0};
    uint32_t large = 0;
    ING_TRY(store_large(fr, n, v, &large));
    fr->b.loc = n;
    ing_status s = leaves_add(fr, &l, v, true) ? ING_OK : no_memory(fr);
    if (s == ING_OK) {
        ing_type t = l.types.len == 0   ? ING_VOID
                     : l.types.len == 1 ? l.types.at[0]
                                        : ing_ir_type_struct(fr->lo->mod, l.types.at,
                                                             NULL, l.types.len);
        uint32_t inst = l.types.len == 0 ? 0 : l.insts.at[0];
        if (l.types.len > 1) inst = ing_ir_make(&fr->b, t, l.insts.at, l.insts.len);
        fr->b.func->ret = t;
        ing_ir_emit(&fr->b, ING_OP_RETURN, 0, inst, 0, 0);
    }
    ing_front_leaves_fini(&l);
    return s;
}

ing_status ing_front_func_return(frame *fr, ing_node n, const value *given) {
    value v = *given;
    spec *sp = fr->sp;
    if (sp->closed && !fr->returns.given && v.kind != V_NONE)
        return ing_front_fail_at(fr, n, ING_COMPILE,
                                 "write `-> qd.f32` after the parameters",
                                 "Function %s: a return value must be annotated",
                                 fr->t->name ? fr->t->name : "");
    if (fr->returns.given && fr->returns.n && v.kind != V_NONE)
        ING_TRY(annotated_result(fr, n, given, &v));
    else
        ING_TRY(plain_result(fr, n, &v));
    if (sp->has_ret)
        ING_TRY(match_result(fr, n, &sp->ret, &v));
    else
        sp->ret = v;
    sp->has_ret = true;
    fr->b.loc = n;
    return fr->top ? ING_OK : emit_return(fr, n, &v);
}
