/* Calls of funcs. A func is lowered once per signature: the types of its run-time
 * arguments and the content of its static ones; each use splices the sub-trace of that
 * lowering into the caller's (R7) and emits a CALL. Called by call.c.
 *
 * A func with loops or calls that is called in the outermost block of a kernel is opened
 * instead: its body is lowered into the kernel, so that its loops are the kernel's and run in
 * parallel. One that returns from within a branch or loop cannot be opened; then its loops
 * are serial like those of any other func.
 *
 * An argument is a value; its run-time leaves become IR parameters in order, everything
 * else is part of the signature. Things behind the gate go through the gate's frame, so
 * that what the func reads of them is recorded relative to the parameter. */
#include "front/func.h"

#include <string.h>

typedef struct call {
    frame *fr;
    ing_node node;
    const value *fn;
    func_info *info;
    const value *self; /* the struct whose method it is, or NULL */
    value *args;       /* one per parameter */
    ing_node *at;      /* where each was written */
    bool *defaulted;
    ing_gref *refs; /* things for the gate's frame */
} call;

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* ---- annotations ------------------------------------------------------------------------------ */

/* A frame only to speak from: messages about the func's own text. */
static frame voice(const call *c, const ing_front_tree *t) {
    return (frame){.lo = c->fr->lo,
                   .caller = c->fr,
                   .t = t,
                   .name = t->name ? t->name : "?",
                   .call_node = c->node};
}

static ing_status ask_params(frame *fr, func_info *info) {
    for (uint32_t i = 0; i < info->list.n; i++)
        GATE(fr, info->list.node[i], param_info, i, &info->params[i], fr->lo->e);
    return ING_OK;
}

static uint32_t body_of(const ing_front_tree *t) {
    return NF(t, t->root, FUNCTION)->body;
}

static bool has_phases(const ing_front_tree *t, ing_node n);

/* In the first n_fields fields of a node. */
static bool fields_have_phases(const ing_front_tree *t, ing_node n, uint32_t n_fields) {
    const ing_front_node *node = &t->nodes.at[n];
    const ing_front_shape *shape = ing_front_shape_get(node->kind);
    for (uint32_t f = 0; f < n_fields; f++) {
        uint32_t slot = t->slots.at[node->slots + f], one[2] = {1, slot};
        const uint32_t *list = one;
        if (shape->fields[f].kind == ING_FIELD_LIST)
            list = &t->slots.at[slot];
        else if (shape->fields[f].kind != ING_FIELD_NODE)
            continue;
        for (uint32_t i = 1; slot && i <= list[0]; i++)
            if (list[i] && has_phases(t, list[i])) return true;
    }
    return false;
}

/* Loops, or calls of what may have some. The tree's depth, where an `elif` does not count,
 * bounds the recursion. */
static bool has_phases(const ing_front_tree *t, ing_node n) {
    for (ing_node rest = n; rest; n = rest) {
        const ing_front_node *node = &t->nodes.at[n];
        if (node->kind == ING_NODE_FOR || node->kind == ING_NODE_CALL) return true;
        uint32_t n_fields = ing_front_shape_get(node->kind)->n_fields;
        rest = ing_front_elif(t, n); /* stands for the last field */
        if (fields_have_phases(t, n, n_fields - (rest != 0))) return true;
    }
    return false;
}

static bool body_has_phases(const ing_front_tree *t) {
    uint32_t list = body_of(t);
    for (uint32_t i = 0; i < list_len(t, list); i++)
        if (has_phases(t, list_at(t, list, i))) return true;
    return false;
}

/* Written as qd.static(...). */
static bool says_static(const ing_front_tree *t, ing_node n) {
    if (t->nodes.at[n].kind != ING_NODE_CALL) return false;
    ing_node f = NF(t, n, CALL)->func;
    uint8_t kind = t->nodes.at[f].kind;
    uint32_t slot = kind == ING_NODE_ATTRIBUTE ? NF(t, f, ATTRIBUTE)->attr
                    : kind == ING_NODE_NAME    ? NF(t, f, NAME)->id
                                               : 0;
    return slot && strcmp(ing_atoms_text(&t->atoms, slot - 1), "static") == 0;
}

/* Whether a `return` stands below a run-time branch or loop. The tree's depth, where an
 * `elif` does not count, bounds the recursion. */
static bool returns_early(const ing_front_tree *t, uint32_t list, bool inside) {
    for (uint32_t i = 0; i < list_len(t, list); i++) {
        ing_node n = list_at(t, list, i);
        uint32_t part[2] = {0, 0};
        bool below = true;
        switch (t->nodes.at[n].kind) {
        case ING_NODE_RETURN:
            if (inside) return true;
            break;
        case ING_NODE_IF:
            below = inside || !says_static(t, NF(t, n, IF)->test);
            for (ing_node rest; (rest = ing_front_elif(t, n)); n = rest) {
                if (returns_early(t, NF(t, n, IF)->body, below)) return true;
                below = below || !says_static(t, NF(t, rest, IF)->test);
            }
            part[0] = NF(t, n, IF)->body;
            part[1] = NF(t, n, IF)->orelse;
            break;
        case ING_NODE_FOR:
            part[0] = NF(t, n, FOR)->body;
            below = inside || !says_static(t, NF(t, n, FOR)->iter);
            break;
        case ING_NODE_WHILE: part[0] = NF(t, n, WHILE)->body; break;
        default: break;
        }
        for (int k = 0; k < 2; k++)
            if (returns_early(t, part[k], below)) return true;
    }
    return false;
}

/* May the func, or one that it hands the parameter to, ask for the gradient? As far as the
 * text tells: the word grad, or a use of the name that takes neither element nor attribute. */
static bool wants_gradient(const ing_front_tree *t, ing_node param) {
    uint32_t name = NF(t, param, ARGUMENT)->arg, bare = 0;
    for (uint32_t i = 0; i < t->atoms.text.len; i++)
        if (strcmp(t->atoms.text.at[i], "grad") == 0) return true;
    for (ing_node n = 1; n < t->nodes.len; n++) {
        uint8_t kind = t->nodes.at[n].kind;
        if (kind == ING_NODE_NAME && NF(t, n, NAME)->id == name) bare++;
        ing_node base = kind == ING_NODE_SUBSCRIPT   ? NF(t, n, SUBSCRIPT)->value
                        : kind == ING_NODE_ATTRIBUTE ? NF(t, n, ATTRIBUTE)->value
                                                     : 0;
        if (base && t->nodes.at[base].kind == ING_NODE_NAME &&
            NF(t, base, NAME)->id == name)
            bare--;
    }
    return bare > 0;
}

/* The meaning of the annotations is asked inside a frame of the func; this first one is
 * only to know how to pass the arguments, its trace is dropped. */
static ing_status info_make(call *c, const ing_front_tree *t) {
    frame *fr = c->fr;
    func_info *info = ING_NEW(&fr->lo->arena, func_info);
    if (!info) return no_memory(fr);
    frame speak = voice(c, t);
    info->t = t;
    info->early = returns_early(t, body_of(t), false);
    info->can_open = body_has_phases(t) && !info->early;
    ING_TRY(ing_front_params_read(&speak, &info->list));
    uint32_t n = info->list.n, dropped = 0;
    info->params = ING_NEW_ARRAY(&fr->lo->arena, n + 1, ing_gate_param);
    info->gradients = ING_NEW_ARRAY(&fr->lo->arena, n + 1, bool);
    ing_gref *none = ING_NEW_ARRAY(&fr->lo->arena, n + 1, ing_gref);
    if (!info->params || !info->gradients || !none) return no_memory(fr);
    for (uint32_t i = 0; i < n; i++)
        info->gradients[i] = wants_gradient(t, info->list.node[i]);
    GATE(fr, c->node, enter, c->fn->gref, none, n, fr->lo->e);
    ING_TRY(ask_params(&speak, info));
    GATE(fr, c->node, leave, &dropped, fr->lo->e);
    c->info = info;
    return ING_OK;
}

static ing_status info_get(call *c, ing_hash128 key) {
    frame *fr = c->fr;
    lowering *lo = fr->lo;
    const ing_front_tree *t = NULL;
    GATE(fr, c->node, def, c->fn->gref, &t, lo->e);
    uint32_t known = ing_map_get(&lo->func_map, key);
    if (known) {
        c->info = lo->func_list.at[known - 1];
        return ING_OK;
    }
    ING_TRY(info_make(c, t));
    if (!ing_vec_push(&lo->func_list, c->info) ||
        !ing_map_put(&lo->func_map, key, lo->func_list.len))
        return no_memory(fr);
    return ING_OK;
}

/* ---- arguments --------------------------------------------------------------------------------- */

static const char *param_name(const call *c, uint32_t i) {
    const ing_front_tree *t = c->info->t;
    uint32_t slot = NF(t, c->info->list.node[i], ARGUMENT)->arg;
    return slot ? ing_atoms_text(&t->atoms, slot - 1) : "";
}

/* Parameters that the caller does not write: self. */
static uint32_t implied(const call *c) {
    return c->fn->bound || c->self ? 1 : 0;
}

/* Methods of structs may change what they belong to. */
static ing_gate_passing passing_of(const call *c, uint32_t i) {
    return i == 0 && c->self ? ING_PASS_TEMPLATE : c->info->params[i].passing;
}

/* Is the parameter given what its argument was before later ones were evaluated? */
static bool takes_value(const call *c, uint32_t i, const value *now) {
    return now->kind != V_VOID && passing_of(c, i) != ING_PASS_TEMPLATE &&
           !c->info->params[i].by_ref;
}

/* The parameters by name, for a remedy. */
static const char *param_names(const call *c) {
    ing_bytes out;
    ing_bytes_init(&out);
    for (uint32_t i = implied(c); i < c->info->list.n; i++)
        ing_bytes_printf(&out, "%s%s", i > implied(c) ? ", " : "", param_name(c, i));
    const char *text = out.at ? ing_arena_printf(&c->fr->lo->arena, "it takes (%s)",
                                                 (const char *)out.at)
                              : "it takes none";
    ing_bytes_fini(&out);
    return text;
}

static ing_status bind_keywords(call *c, const call_args *a, bool *given) {
    frame *fr = c->fr;
    for (uint32_t k = 0; k < a->n_kw; k++) {
        const char *name = ing_front_atom_text(fr, a->kw_name[k]);
        uint32_t i = 0;
        while (i < c->info->list.n && strcmp(param_name(c, i), name) != 0) i++;
        if (i == c->info->list.n)
            return ing_front_fail_at(fr, a->kw_node[k], ING_CALL, param_names(c),
                                     "Unexpected argument '%s' of %s", name,
                                     c->info->t->name);
        if (given[i])
            return ing_front_fail_at(fr, a->kw_node[k], ING_CALL, "pass it once",
                                     "Multiple values for argument '%s' of %s", name,
                                     c->info->t->name);
        given[i] = true;
        bool kept = a->kw_now && takes_value(c, i, &a->kw_now[k]);
        c->args[i] = kept ? a->kw_now[k] : a->kw[k];
        c->at[i] = a->kw_node[k];
    }
    return ING_OK;
}

static ing_status bind_args(call *c, const call_args *a) {
    frame *fr = c->fr;
    uint32_t n = c->info->list.n, first = implied(c);
    bool *given = ING_NEW_ARRAY(&fr->lo->arena, n + 1, bool);
    if (!given) return no_memory(fr);
    if (a->n + first > c->info->list.n_positional)
        return ing_front_fail_at(
            fr, c->node, ING_CALL, param_names(c),
            "Too many arguments: %s takes %u positional arguments, found %u",
            c->info->t->name, c->info->list.n_positional - first, a->n);
    if (first) {
        if (c->self)
            c->args[0] = *c->self;
        else
            ING_TRY(ing_front_thing_attr(fr, c->node, c->fn->gref, "__self__",
                                         &c->args[0]));
        c->at[0] = c->node;
        given[0] = true;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        bool kept = a->now && takes_value(c, i + first, &a->now[i]);
        c->args[i + first] = kept ? a->now[i] : a->at[i];
        c->at[i + first] = a->node[i];
        given[i + first] = true;
    }
    ING_TRY(bind_keywords(c, a, given));
    for (uint32_t i = 0; i < n; i++) {
        if (given[i]) continue;
        if (!c->info->params[i].has_default)
            return ing_front_fail_at(fr, c->node, ING_CALL, param_names(c),
                                     "Missing argument '%s' of %s", param_name(c, i),
                                     c->info->t->name);
        c->defaulted[i] = true;
    }
    return ING_OK;
}

static bool is_outside(const value *v) {
    return v->kind == V_SEEN || v->kind == V_FUNC;
}

/* Items travel by value, those of a list that a template parameter takes by reference; of
 * things from outside only whole arguments can be passed. */
static ing_status pass_items(call *c, ing_node at, value *v, bool by_ref) {
    frame *fr = c->fr;
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v_children(v) + 1, value);
    if (!items) return no_memory(fr);
    for (uint32_t i = 0; i < v_children(v); i++) {
        items[i] = v->items[i];
        ING_TRY(ing_front_force(fr, at, &items[i]));
        if (items[i].kind == V_STRUCT) {
            ING_TRY(ing_front_struct_load(fr, at, &items[i], &items[i]));
            items[i].gref = 0; /* methods need an argument of its own */
            continue;
        }
        bool inner = by_ref && (items[i].kind != V_TUPLE || items[i].tensor);
        items[i].shared |= v->shared;
        if (ing_front_is_runtime(&items[i]) && !(by_ref && items[i].kind == V_REF))
            ING_TRY(ing_front_load(fr, at, &items[i], &items[i]));
        if (v_holds(&items[i])) ING_TRY(pass_items(c, at, &items[i], inner));
        if (is_outside(&items[i]))
            return ing_front_fail_at(fr, at, ING_TYPE,
                                     "pass it as an argument of its own",
                                     "%s inside a tuple cannot be passed to a func yet",
                                     ing_front_describe(fr, &items[i]));
    }
    v->items = items;
    return ING_OK;
}

/* qd.ref(dtype): a place that can be written, of that very type. */
static ing_status check_ref(frame *fr, ing_node at, const ing_gate_param *p,
                            const value *v) {
    const ing_type_info *t = ing_ir_type(fr->lo->mod, v->type);
    bool tensor = t->kind == ING_TYPE_TENSOR;
    bool same = v->kind == V_REF && p->tensor.rank == (tensor ? t->rank : 0) &&
                (tensor ? t->dtype : v->type) == p->dtype &&
                (!tensor || p->tensor.shape[0] == t->rows) &&
                (p->tensor.rank < 2 || p->tensor.shape[1] == t->cols);
    if (same) return ING_OK;
    return ing_front_fail_at(fr, at, ING_TYPE,
                             "pass a variable or an element of an array of that type",
                             "the parameter is a reference to %s%s; the argument is %s",
                             p->tensor.rank ? "elements of " : "",
                             ing_dtype_name(p->dtype), ing_front_describe(fr, v));
}

/* The gradient of an array is reached by way of the array as a thing: a func that asks for
 * it is specialised for this one. */
static void pass_gradient(call *c, uint32_t i) {
    value *v = &c->args[i];
    const ing_type_info *t = ing_ir_type(c->fr->lo->mod, v->type);
    if (!c->info->gradients[i] || v->kind != V_ARRAY || !v->gref || v->clamp ||
        (!t->grad && !t->place))
        return;
    *v = (value){.kind = V_SEEN, .seen = ING_GATE_ARRAY, .gref = v->gref};
    c->refs[i] = v->gref;
}

/* A field that is made of others, as a thing: what the func reads of it is keyed, no more. */
static ing_status pass_bundle(call *c, uint32_t i) {
    value *v = &c->args[i];
    const ing_gate_param *p = &c->info->params[i];
    if (p->passing == ING_PASS_ARRAY)
        ING_TRY(ing_front_check_array(c->fr, c->at[i], p, v));
    *v = (value){.kind = V_SEEN, .seen = ING_GATE_BUNDLE, .gref = v->gref};
    c->refs[i] = v->gref;
    return ING_OK;
}

/* A struct: by reference as it is, else a copy. Its type goes through the gate's frame. */
static ing_status pass_struct(call *c, uint32_t i) {
    frame *fr = c->fr;
    value *v = &c->args[i];
    c->refs[i] = v->gref;
    if (passing_of(c, i) == ING_PASS_TEMPLATE)
        return ing_front_struct_open(fr, c->at[i], v);
    return ing_front_struct_load(fr, c->at[i], v, v);
}

static ing_status pass_arg(call *c, uint32_t i) {
    frame *fr = c->fr;
    value *v = &c->args[i];
    ing_node at = c->at[i];
    const ing_gate_param *p = &c->info->params[i];
    ING_TRY(ing_front_force(fr, at, v));
    if (v->kind == V_BUNDLE && v->gref && p->passing != ING_PASS_VALUE)
        return pass_bundle(c, i);
    if (p->passing == ING_PASS_VALUE && p->layout && !(i == 0 && c->self))
        return ing_front_struct_convert(fr, at, v, p->layout, v);
    if (v->kind == V_STRUCT && passing_of(c, i) != ING_PASS_VALUE &&
        p->passing != ING_PASS_ARRAY && !p->by_ref)
        return pass_struct(c, i);
    v->fixed = v->arg = v->from_static = false;
    if (p->passing == ING_PASS_VALUE && p->tensor.rank)
        return ing_front_tensor_convert(fr, at, v, &p->tensor, p->dtype, v);
    if (p->passing == ING_PASS_ANY && ing_front_is_tensor(fr, v))
        return ing_front_tensor_pass(fr, at, v);
    if (p->passing == ING_PASS_VALUE) {
        uint32_t inst = 0;
        ING_TRY(ing_front_convert(fr, at, v, p->dtype, &inst));
        *v = ing_front_rt(inst, p->dtype);
        return ING_OK;
    }
    if (p->passing == ING_PASS_ARRAY) {
        v->clamp |= p->clamp && v->kind == V_ARRAY;
        ING_TRY(ing_front_check_array(fr, at, p, v));
        pass_gradient(c, i);
        return ING_OK;
    }
    if (p->passing == ING_PASS_VIEW) ING_TRY(ing_front_check_view(fr, at, p, v));
    if (v->kind == V_REF && v->alt && (p->by_ref || p->passing == ING_PASS_TEMPLATE))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "annotate the parameter that it comes from: x: qd.f32",
            "a number without a type cannot be passed by reference");
    if (p->by_ref) return check_ref(fr, at, p, v);
    pass_gradient(c, i);
    if (p->passing == ING_PASS_ANY && ing_front_is_scalar(v) && v->kind != V_SEEN)
        return ing_front_load_untyped(fr, at, v, v);
    if (v->kind == V_SHAPE) {
        value *items;
        uint32_t n = 0;
        bool ok = false;
        ING_TRY(ing_front_items(fr, at, v, &items, &n, &ok));
        *v = ing_front_seq(V_TUPLE, items, n);
    }
    bool list = v->kind == V_LIST || v->kind == V_DICT;
    if (v_holds(v))
        return pass_items(c, at, v, list && p->passing == ING_PASS_TEMPLATE);
    if (is_outside(v)) c->refs[i] = v->gref;
    if (v->kind == V_VOID || v->kind == V_SLICE)
        return ing_front_fail_at(fr, at, ING_TYPE, ing_front_number_remedy(v),
                                 "%s cannot be passed to a func",
                                 ing_front_describe(fr, v));
    return ING_OK;
}

/* ---- lowering a specialisation -------------------------------------------------------------------------- */

static ing_status bind_default(frame *fr, const call *c, uint32_t i, value *v) {
    ing_node at = c->info->list.node[i];
    const ing_gate_param *p = &c->info->params[i];
    ing_gref ref = 0;
    GATE(fr, at, param_default, i, &ref, fr->lo->e);
    *v = (value){.kind = V_THING, .gref = ref};
    ING_TRY(ing_front_force(fr, at, v));
    if (p->passing == ING_PASS_VALUE && p->layout)
        return ing_front_struct_convert(fr, at, v, p->layout, v);
    if (p->passing == ING_PASS_VALUE && p->tensor.rank)
        return ing_front_tensor_convert(fr, at, v, &p->tensor, p->dtype, v);
    if (p->passing == ING_PASS_VALUE) {
        uint32_t inst = 0;
        ING_TRY(ing_front_convert(fr, at, v, p->dtype, &inst));
        *v = ing_front_rt(inst, p->dtype);
    }
    return ING_OK;
}

/* Are all its members places, or not to be assigned? Then it is passed by reference. */
static bool is_place(const value *v) {
    for (uint32_t k = 0; k < v->n; k++) {
        const value *m = &v->items[k];
        if (m->kind == V_STRUCT ? !is_place(m) : m->kind == V_RT && !m->fixed)
            return false;
    }
    return true;
}

/* A struct parameter: its type is that of the annotation, or came with the argument. */
static ing_status bind_struct(frame *fr, const call *c, uint32_t i, uint32_t atom,
                              value *v) {
    ing_node at = c->info->list.node[i];
    const ing_gate *g = fr->lo->gate;
    if (c->info->params[i].layout && g->ops->annotation)
        GATE(fr, at, annotation, i, &v->gref, fr->lo->e);
    else if (c->refs[i])
        GATE(fr, at, param, i, &v->gref, fr->lo->e);
    bool assigned = fr->uses[atom] & NAME_ADDRESS;
    if (passing_of(c, i) == ING_PASS_TEMPLATE && (is_place(v) || !assigned))
        return ing_front_scope_add(fr, atom, v);
    fr->uses[atom] |= fr->uses[atom] ? NAME_MANY : NAME_ONCE;
    return ing_front_struct_declare(fr, at, atom, v);
}

static ing_status bind_param(frame *fr, const call *c, uint32_t i, source *src) {
    ing_node at = c->info->list.node[i];
    uint32_t atom = NF(fr->t, at, ARGUMENT)->arg - 1;
    ing_gate_param ignored;
    GATE(fr, at, param_info, i, &ignored, fr->lo->e); /* recorded in this frame too */
    value v = c->args[i];
    if (c->defaulted[i])
        ING_TRY(bind_default(fr, c, i, &v));
    else if (is_outside(&v)) {
        ing_gref ref = 0;
        GATE(fr, at, param, i, &ref, fr->lo->e);
        bool is_enum = v.kind == V_SEEN && v.seen == ING_GATE_ENUM, number = false;
        v = (value){.kind = V_THING, .gref = ref};
        if (is_enum && fr->uses[atom] & (NAME_ONCE | NAME_MANY)) { /* a variable */
            ING_TRY(ing_front_force(fr, at, &v));
            ING_TRY(ing_front_enum_number(fr, at, &v, &number));
        }
        if (!number) return ing_front_scope_add(fr, atom, &v);
    } else
        ING_TRY(ing_front_rebuild(fr, &v, src));
    if (v.kind == V_STRUCT) return bind_struct(fr, c, i, atom, &v);
    bool template = c->info->params[i].passing == ING_PASS_TEMPLATE;
    if (ing_front_is_box(&v)) return ing_front_box_param(fr, at, atom, &v, template);
    bool is_value =
        v.kind == V_RT || (!template && ing_front_is_scalar(&v) && v.kind != V_REF);
    bool kept = v.kind == V_TUPLE && v.tensor && fr->uses[atom] && !template;
    if (kept) {
        fr->uses[atom] |= NAME_MANY; /* by the parameter and by the body */
        return ing_front_tensor_declare(fr, at, atom, &v);
    }
    if (!is_value || v.kind == V_SEEN) return ing_front_scope_add(fr, atom, &v);
    bool only = !(fr->uses[atom] & ~NAME_ADDRESS); /* the body computes with it */
    fr->uses[atom] |=
        fr->uses[atom] ? NAME_MANY : NAME_ONCE; /* the parameter assigns it */
    if (ing_front_is_scalar(&v)) ING_TRY(ing_front_load_untyped(fr, at, &v, &v));
    ING_TRY(ing_front_declare(fr, at, atom, &v));
    if (only) ing_front_scope_find(fr, atom)->alt = v.alt;
    return ING_OK;
}

/* After the body: every way out of a func with a value must have returned one. */
static ing_status close_body(frame *fr, flow end) {
    ing_ir_func *f = fr->b.func;
    if (fr->returns.n && !fr->sp->has_ret)
        return ing_front_fail_at(
            fr, fr->t->root, ING_SYNTAX,
            "add a return statement at the end, or leave out the annotation",
            "Function has a return type but does not have a return statement");
    bool gives = f->ret != ING_VOID || f->n_params > fr->sp->n_args;
    if (!gives || ing_ir_block_ended(&fr->b)) return ING_OK;
    if (end != FLOW_ENDED)
        return ing_front_fail_at(
            fr, fr->t->root, ING_TYPE, "end the func with a return statement",
            "%s returns a value on some paths and ends without one on others",
            fr->name);
    if (f->ret == ING_VOID) return ING_OK;
    /* Unreachable, but a block must end. */
    uint32_t slot = ing_ir_emit(&fr->b, ING_OP_ALLOCA,
                                ing_ir_type_ref(fr->lo->mod, f->ret), 0, 0, 0);
    uint32_t zero = ing_ir_emit(&fr->b, ING_OP_LOAD, f->ret, slot, 0, 0);
    ing_ir_emit(&fr->b, ING_OP_RETURN, 0, zero, 0, 0);
    return ING_OK;
}

static ing_status lower_body(frame *fr, const call *c) {
    source src = {.op = ING_OP_PARAM};
    fr->one_return = !c->info->early;
    fr->b.loc = fr->t->root;
    for (uint32_t i = 0; i < c->info->list.n; i++)
        ING_TRY(bind_param(fr, c, i, fr->top ? NULL : &src));
    GATE(fr, fr->t->root, returns, &fr->returns, fr->lo->e);
    flow end = FLOW_NEXT;
    ING_TRY(ing_front_block(fr, body_of(fr->t), &end));
    return fr->top ? ING_OK : close_body(fr, end);
}

static ing_status spec_lower(call *c, spec *sp, const leaves *l) {
    frame *caller = c->fr, fr;
    lowering *lo = caller->lo;
    const ing_front_tree *t = c->info->t;
    GATE(caller, c->node, enter, c->fn->gref, c->refs, c->info->list.n, lo->e);
    sp->func = ing_ir_add_func(lo->mod, ING_IR_FUNC, t->name ? t->name : "func",
                               l->types.at, l->types.len, ING_VOID);
    sp->n_args = l->types.len;
    sp->closed = c->fn->closed;
    for (uint32_t i = 0; i < c->info->list.n; i++) /* generic: its results are, too */
        sp->closed &= c->info->params[i].passing != ING_PASS_ANY;
    if (!ing_vec_push(&lo->out->trees, t)) return no_memory(caller);
    ING_TRY(ing_front_frame_init(&fr, lo, caller, t));
    fr.func = sp->func;
    fr.call_node = c->node;
    fr.sp = sp;
    ing_ir_builder_init(&fr.b, lo->mod, sp->func);
    ing_status s = ing_front_deeper(&fr, t->root);
    if (s == ING_OK) s = lower_body(&fr, c);
    lo->depth--;
    ing_ir_builder_done(&fr.b);
    ing_front_frame_fini(&fr);
    ING_TRY(s);
    GATE(caller, c->node, leave, &sp->subtrace, lo->e);
    sp->done = true;
    return ING_OK;
}

/* ---- the call ----------------------------------------------------------------------------------------------- */

static ing_status spec_key(call *c, ing_hash128 fn, ing_hash128 *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, 1, fn);
    ing_hasher_u64(&h, 3, c->self != NULL);
    for (uint32_t i = 0; i < c->info->list.n; i++) {
        ing_hasher_u64(&h, 2, c->defaulted[i]);
        if (!c->defaulted[i])
            ING_TRY(ing_front_value_key(c->fr, c->node, &c->args[i], &h));
    }
    ing_front_stopped_key(c->fr, &h);
    *out = ing_hasher_done(&h);
    return ING_OK;
}

static ing_status fail_recursion(call *c) {
    return ing_front_fail_at(c->fr, c->node, ING_COMPILE, "write it as a loop",
                             "%s calls itself; recursion is not supported",
                             c->info->t->name);
}

void ing_front_note_capture(frame *fr, ing_gref ref) {
    const ing_gate *g = fr->lo->gate;
    if (!g->ops->captured || !g->ops->captured(g->self, ref)) return;
    for (frame *f = fr; f; f = f->caller)
        if (f->sp) f->sp->captures = true;
}

/* Funcs found at two places are one now and may be two at another launch: those that bind
 * what they capture are shared only where they are found at the same place. */
static ing_hash128 placed_key(const call *c, ing_hash128 key) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, 1, key);
    ing_hasher_u64(&h, 2, ing_front_place(c->fr, c->fn->gref));
    for (uint32_t i = 0; i < c->info->list.n; i++)
        if (!c->defaulted[i] && c->args[i].kind == V_FUNC)
            ing_hasher_u64(&h, 3, ing_front_place(c->fr, c->args[i].gref));
    return ing_hasher_done(&h);
}

static bool spec_put(lowering *lo, ing_hash128 key, spec *sp) {
    return ing_vec_push(&lo->spec_list, sp) &&
           ing_map_put(&lo->specs, key, lo->spec_list.len);
}

static spec *spec_find(const lowering *lo, ing_hash128 key) {
    uint32_t known = ing_map_get(&lo->specs, key);
    return known ? lo->spec_list.at[known - 1] : NULL;
}

static ing_status spec_get(call *c, ing_hash128 key, const leaves *l, spec **out) {
    lowering *lo = c->fr->lo;
    spec *any = spec_find(lo, key);
    *out = any;
    if (any && !any->done) return fail_recursion(c);
    ing_hash128 placed = placed_key(c, key);
    if (any && any->captures) *out = spec_find(lo, placed);
    if (!*out) {
        *out = ING_NEW(&lo->arena, spec);
        if (!*out || (!any && !spec_put(lo, key, *out))) return no_memory(c->fr);
        ING_TRY(spec_lower(c, *out, l));
        if ((*out)->captures && !spec_put(lo, placed, *out)) return no_memory(c->fr);
    }
    for (frame *f = c->fr; (*out)->captures && f; f = f->caller)
        if (f->sp) f->sp->captures = true;
    return ING_OK;
}

/* The array that was passed as this instruction. */
static const value *find_array(const value *v, uint32_t n, uint32_t inst) {
    const value *found = NULL;
    for (uint32_t i = 0; i < n && !found; i++) {
        if (v[i].kind == V_ARRAY && v[i].inst == inst && v[i].gref)
            found = &v[i];
        else if (v_holds(&v[i]) && v[i].items)
            found = find_array(v[i].items, v_children(&v[i]), inst);
    }
    return found;
}

/* Structs bring their types along, arrays and things from outside themselves, named in the
 * caller's terms. */
static ing_status carry(call *c, const value *from, value *to) {
    frame *fr = c->fr;
    bool thing = from->kind == V_SEEN || from->kind == V_FUNC;
    for (uint32_t i = 0; i < v_children(from); i++)
        ING_TRY(carry(c, &from->items[i], &to->items[i]));
    if ((thing || from->kind == V_STRUCT || from->kind == V_ARRAY) && from->gref &&
        fr->lo->gate->ops->carry)
        GATE(fr, c->node, carry, from->gref, c->fn->gref, c->refs, c->info->list.n,
             &to->gref, fr->lo->e);
    if (from->kind == V_ARRAY && !to->gref) {
        const value *passed = find_array(c->args, c->info->list.n, to->inst);
        if (passed) to->gref = passed->gref;
    }
    if (!thing) return ING_OK;
    if (!to->gref)
        return ing_front_fail_at(fr, c->node, ING_TYPE, "read it here",
                                 "%s returns %s, which is known only in there",
                                 c->info->t->name, ing_front_describe(fr, from));
    *to = (value){.kind = V_THING, .gref = to->gref};
    return ING_OK;
}

/* Memory of the caller for the large tensors of a result, in order. */
static ing_status add_places(frame *fr, const spec *sp, leaves *l) {
    const ing_ir_func *f = fr->lo->mod->funcs.at[sp->func];
    for (uint32_t k = sp->n_args; k < f->n_params; k++) {
        uint32_t inst = ing_ir_emit(&fr->b, ING_OP_ALLOCA, f->params[k], 0, 0, 0);
        if (!ing_vec_push(&l->insts, inst)) return no_memory(fr);
    }
    return ING_OK;
}

static ing_status emit_call(call *c, const spec *sp, leaves *l, value *out) {
    frame *fr = c->fr;
    ING_TRY(add_places(fr, sp, l));
    GATE(fr, c->node, splice, sp->subtrace, c->fn->gref, c->refs, c->info->list.n,
         fr->lo->e);
    fr->b.loc = c->node;
    uint32_t inst = ing_ir_call(&fr->b, sp->func, l->insts.at, l->insts.len);
    *out = (value){.kind = V_VOID};
    if (!sp->has_ret) return ING_OK;
    *out = sp->ret;
    ing_type t = fr->lo->mod->funcs.at[sp->func]->ret;
    bool several = ing_ir_type(fr->lo->mod, t)->kind == ING_TYPE_STRUCT;
    source src = {.op = several ? ING_OP_EXTRACT : ING_OP_NONE,
                  .inst = inst,
                  .places = l->insts.at + sp->n_args,
                  .callee = fr->lo->mod->funcs.at[sp->func],
                  .args = l->insts.at};
    ING_TRY(ing_front_rebuild(fr, out, &src));
    return carry(c, &sp->ret, out);
}

/* ---- opened funcs ------------------------------------------------------------------------------------------- */

/* Instructions from `first` on belong to this tree, if to no other yet. */
static void mark_tree(ing_ir_func *f, uint32_t first, uint32_t tree) {
    for (uint32_t i = first; i < f->insts.len; i++)
        if (f->insts.at[i].loc && !(f->insts.at[i].loc >> ING_FRONT_TREE_SHIFT))
            f->insts.at[i].loc |= tree << ING_FRONT_TREE_SHIFT;
}

static bool can_open(const call *c) {
    const frame *fr = c->fr;
    return fr->top && fr->control == 0 && !c->fn->closed &&
           (c->info->can_open || c->fn->top_only) &&
           fr->lo->opened.len < (1u << (31 - ING_FRONT_TREE_SHIFT)) &&
           c->info->t->nodes.len < (1u << ING_FRONT_TREE_SHIFT);
}

/* The body in the caller's place: the builder goes there and comes back. */
static ing_status open_body(call *c, frame *fr, ing_hash128 signature, spec *sp) {
    frame *caller = c->fr;
    lowering *lo = caller->lo;
    ING_TRY(ing_front_frame_init(fr, lo, caller, c->info->t));
    fr->func = caller->func;
    fr->call_node = c->node;
    fr->top = true;
    fr->open = signature;
    fr->sp = sp;
    fr->b = caller->b;
    ing_ir_func *f = fr->b.func;
    uint32_t first = f ? f->insts.len : 0, tree = lo->opened.len;
    ing_status s = ing_front_deeper(fr, c->info->t->root);
    if (s == ING_OK) s = lower_body(fr, c);
    lo->depth--;
    if (f) mark_tree(f, first, tree);
    caller->b = fr->b;
    ing_front_frame_fini(fr);
    return s;
}

static ing_status open_func(call *c, ing_hash128 signature, value *out) {
    frame *caller = c->fr, fr;
    lowering *lo = caller->lo;
    for (const frame *f = caller; f->caller; f = f->caller)
        if (ing_hash_eq(f->open, signature)) return fail_recursion(c);
    spec sp = {0};
    GATE(caller, c->node, enter, c->fn->gref, c->refs, c->info->list.n, lo->e);
    if (!ing_vec_push(&lo->opened, c->info->t)) return no_memory(caller);
    ING_TRY(open_body(c, &fr, signature, &sp));
    GATE(caller, c->node, leave, &sp.subtrace, lo->e);
    GATE(caller, c->node, splice, sp.subtrace, c->fn->gref, c->refs, c->info->list.n,
         lo->e);
    caller->b.loc = c->node;
    *out = (value){.kind = V_VOID};
    if (!sp.has_ret) return ING_OK;
    *out = sp.ret;
    ING_TRY(ing_front_rebuild(caller, out, NULL));
    return carry(c, &sp.ret, out);
}

static ing_status fail_nested(call *c) {
    return ing_front_fail_at(
        c->fr, c->node, ING_SYNTAX,
        "call it in the outermost block of the kernel, or in a qd.static loop there",
        "`%s` is decorated with requires_top_level=True and cannot be called below a "
        "run-time for / if / while: its loops would not be parallel phases there",
        c->info->t->name);
}

ing_status ing_front_call_func(frame *fr, ing_node n, const value *fn,
                               const value *self, const call_args *a, value *out) {
    call c = {.fr = fr, .node = n, .fn = fn, .self = self};
    ing_hash128 fn_key, key;
    GATE(fr, n, memo_key, fn->gref, &fn_key, fr->lo->e);
    if (fn->bound) fn_key.lo ^= ing_front_place(fr, fn->gref);
    ING_TRY(info_get(&c, fn_key));
    uint32_t count = c.info->list.n;
    c.args = ING_NEW_ARRAY(&fr->lo->arena, count + 1, value);
    c.at = ING_NEW_ARRAY(&fr->lo->arena, count + 1, ing_node);
    c.defaulted = ING_NEW_ARRAY(&fr->lo->arena, count + 1, bool);
    c.refs = ING_NEW_ARRAY(&fr->lo->arena, count + 1, ing_gref);
    if (!c.args || !c.at || !c.defaulted || !c.refs) return no_memory(fr);
    ING_TRY(bind_args(&c, a));
    for (uint32_t i = 0; i < count; i++)
        if (!c.defaulted[i]) ING_TRY(pass_arg(&c, i));
    ING_TRY(spec_key(&c, fn_key, &key));
    if (can_open(&c)) return open_func(&c, key, out);
    if (fn->top_only) return fail_nested(&c);
    leaves l = {0};
    spec *sp = NULL;
    ing_status s = ING_OK;
    for (uint32_t i = 0; i < count && s == ING_OK; i++)
        if (!c.defaulted[i] && !ing_front_leaves_add(fr, &l, &c.args[i]))
            s = no_memory(fr);
    if (s == ING_OK) s = spec_get(&c, key, &l, &sp);
    if (s == ING_OK) s = emit_call(&c, sp, &l, out);
    ing_front_leaves_fini(&l);
    return s;
}
