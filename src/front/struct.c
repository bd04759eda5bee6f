/* Structs while lowering. A struct is a bundle of values with names: V_STRUCT, whose items
 * are numbers, vectors, matrices and structs, each in a register or in memory of its own. No
 * instruction knows of structs: what is not read costs nothing, and a large matrix among the
 * members stays in memory as it would alone. Used by calls, assignments and attributes.
 *
 * Rules
 *  STRUCT1 Items are V_RT, V_REF or V_STRUCT. A struct without items (NULL) is a kernel parameter:
 *     its numbers are arguments from `inst` - 1 on, and members are read when they are named.
 *  STRUCT2 What holds for a struct (shared, fixed, arg) holds for its members: `member` hands it
 *     on, and `open` makes items that say so themselves.
 *  STRUCT3 gref is where methods are found: the struct type, or the struct from outside that the
 *     value came from. Members ask their owner by name, so one gref serves all levels. 0: the
 *     struct was made without a type, or came a way on which its type got lost; then methods
 *     are refused. */
#include "front/tensor.h"

#include <string.h>

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool find(const value *v, const char *name, uint32_t *k) {
    for (*k = 0; *k < v->info->n; ++*k)
        if (strcmp(v->info->names[*k], name) == 0) return true;
    return false;
}

static const char *names_of(frame *fr, const struct_info *info) {
    ing_bytes text;
    ing_bytes_init(&text);
    for (uint32_t k = 0; k < info->n && k < 20; k++)
        ing_bytes_printf(&text, "%s'%s'", k ? ", " : "", info->names[k]);
    if (info->n > 20) ing_bytes_puts(&text, ", ...");
    const char *s =
        ing_arena_printf(&fr->lo->arena, "[%s]", text.at ? (const char *)text.at : "");
    ing_bytes_fini(&text);
    return s ? s : "?";
}

static ing_status info_of(frame *fr, const ing_gate_struct *layout,
                          const struct_info **out) {
    struct_info *info = ING_NEW(&fr->lo->arena, struct_info);
    const char **names = ING_NEW_ARRAY(&fr->lo->arena, layout->n + 1, const char *);
    if (!info || !names) return no_memory(fr);
    for (uint32_t k = 0; k < layout->n; k++) names[k] = layout->members[k].name;
    *info = (struct_info){.n = layout->n, .names = names, .layout = layout};
    *out = info;
    return ING_OK;
}

static value struct_of(const struct_info *info, value *items, ing_gref gref) {
    return (value){
        .kind = V_STRUCT, .n = info->n, .info = info, .items = items, .gref = gref};
}

ing_status ing_front_struct_type(frame *fr, ing_node at, const ing_gate_struct *layout,
                                 value *v) {
    (void)at;
    v->kind = V_STRUCT_TYPE;
    return info_of(fr, layout, &v->info);
}

/* ---- members -------------------------------------------------------------------------------- */

/* Where the methods of a struct among the members are found (STRUCT3). */
static ing_status member_owner(frame *fr, ing_node at, const value *v, uint32_t k,
                               value *member) {
    value got;
    ing_gate_key key = {.is_str = true, .s = v->info->names[k]};
    if (member->kind != V_STRUCT || member->gref || !v->gref) return ING_OK;
    ING_TRY(ing_front_thing_item(fr, at, v->gref, &key, &got));
    member->gref = got.kind == V_VOID ? 0 : got.gref;
    return ING_OK;
}

/* Member k of a parameter (STRUCT1). */
static ing_status param_member(frame *fr, ing_node at, const value *v, uint32_t k,
                               value *out) {
    const ing_gate_member *m = &v->info->layout->members[k];
    uint32_t first = v->inst - 1 + m->first;
    if (m->inner) {
        const struct_info *info;
        ING_TRY(info_of(fr, m->inner, &info));
        *out = struct_of(info, NULL, 0);
        out->inst = first + 1;
        return ING_OK;
    }
    uint32_t n = ing_gate_count(&m->tensor);
    value *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n + 1, value);
    if (!elems) return no_memory(fr);
    for (uint32_t i = 0; i < n; i++)
        elems[i] = ing_front_rt(
            ing_ir_emit(&fr->b, ING_OP_ARG, m->dtype, first + i, 0, 0), m->dtype);
    *out = elems[0];
    if (!m->tensor.rank) return ING_OK;
    tensor_shape s =
        ing_front_shape_of(m->tensor.rank, m->tensor.shape[0],
                           m->tensor.rank == 2 ? m->tensor.shape[1] : 1, m->dtype);
    return ing_front_tensor_make(fr, at, s, elems, out);
}

static ing_status member(frame *fr, ing_node at, const value *v, uint32_t k,
                         value *out) {
    if (v->items)
        *out = v->items[k];
    else
        ING_TRY(param_member(fr, at, v, k, out));
    out->shared |= v->shared && out->kind != V_RT;
    out->fixed |= v->fixed;
    out->arg |= v->arg;
    return member_owner(fr, at, v, k, out);
}

ing_status ing_front_struct_open(frame *fr, ing_node at, value *v) {
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v->n + 1, value);
    if (!items) return no_memory(fr);
    for (uint32_t k = 0; k < v->n; k++) {
        ING_TRY(member(fr, at, v, k, &items[k]));
        if (items[k].kind == V_STRUCT)
            ING_TRY(ing_front_struct_open(fr, at, &items[k]));
    }
    v->items = items;
    return ING_OK;
}

static ing_status fail_member(frame *fr, ing_node at, const value *v,
                              const char *name) {
    uint32_t best = UINT32_MAX;
    const char *near = NULL;
    for (uint32_t k = 0; k < v->info->n; k++)
        if (ing_front_is_near(name, v->info->names[k], &best)) near = v->info->names[k];
    const char *remedy = ing_arena_printf(
        &fr->lo->arena, near ? "did you mean '%s'?" : "its members are %s",
        near ? near : names_of(fr, v->info));
    return ing_front_fail_at(fr, at, ING_NAME, remedy, "the struct has no member '%s'",
                             name);
}

ing_status ing_front_struct_attr(frame *fr, ing_node at, const value *v,
                                 const char *name, value *out) {
    uint32_t k = 0;
    if (find(v, name, &k)) return member(fr, at, v, k, out);
    if (strcmp(name, "keys") != 0) return fail_member(fr, at, v, name);
    value *names = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v->n + 1, value);
    if (!names) return no_memory(fr);
    for (k = 0; k < v->n; k++)
        names[k] = (value){.kind = V_STR,
                           .s = v->info->names[k],
                           .n = (uint32_t)strlen(v->info->names[k])};
    *out = ing_front_seq(V_LIST, names, v->n);
    return ING_OK;
}

ing_status ing_front_struct_item(frame *fr, ing_node at, const value *v,
                                 const value *index, value *out) {
    uint32_t k = 0;
    if (index->kind != V_STR)
        return ing_front_fail_at(fr, at, ING_TYPE, "use the name of a member: s.x",
                                 "a struct cannot be indexed with %s",
                                 ing_front_describe(fr, index));
    if (!find(v, index->s, &k)) return fail_member(fr, at, v, index->s);
    return member(fr, at, v, k, out);
}

ing_status ing_front_struct_method(frame *fr, ing_node at, const value *v,
                                   const char *name, value *out, bool *ok) {
    uint32_t k = 0;
    *ok = false;
    if (find(v, name, &k)) return ING_OK; /* a member of that name is no method */
    if (!v->gref)
        return ing_front_fail_at(
            fr, at, ING_NAME,
            "methods belong to the struct's type: make it by calling the type, and "
            "pass "
            "it as an argument of its own",
            "this struct has no method '%s': its type is not known here", name);
    ing_gate_key key = {.is_str = true, .s = name};
    ING_TRY(ing_front_thing_item(fr, at, v->gref, &key, out));
    if (out->kind == V_VOID) return fail_member(fr, at, v, name);
    ING_TRY(ing_front_force(fr, at, out));
    if (out->kind != V_FUNC)
        return ing_front_fail_at(fr, at, ING_TYPE, "decorate the method with @qd.func",
                                 "'%s' is a Python method and cannot run in kernels",
                                 name);
    *ok = true;
    return ING_OK;
}

/* ---- copies ----------------------------------------------------------------------------------- */

ing_status ing_front_struct_load(frame *fr, ing_node at, const value *v, value *out) {
    value x = *v;
    ING_TRY(ing_front_struct_open(fr, at, &x));
    for (uint32_t k = 0; k < x.n; k++) {
        if (x.items[k].kind == V_STRUCT)
            ING_TRY(ing_front_struct_load(fr, at, &x.items[k], &x.items[k]));
        else
            ING_TRY(ing_front_load(fr, at, &x.items[k], &x.items[k]));
        x.items[k].fixed = x.items[k].arg = false;
    }
    *out = struct_of(x.info, x.items, x.gref);
    return ING_OK;
}

/* `v` was loaded: nobody else knows its temporaries. */
ing_status ing_front_struct_settle(frame *fr, ing_node at, value *v) {
    for (uint32_t k = 0; k < v->n; k++) {
        value *m = &v->items[k];
        if (m->kind == V_STRUCT) {
            ING_TRY(ing_front_struct_settle(fr, at, m));
        } else if (ing_front_is_tensor(fr, m)) {
            ING_TRY(ing_front_tensor_spill(fr, at, m, ING_VOID, m));
        } else if (m->kind == V_RT) {
            ing_type ref = ing_ir_type_ref(fr->lo->mod, m->type);
            uint32_t inst = ing_ir_emit(&fr->b, ING_OP_ALLOCA, ref, 0, 0, 0);
            ing_ir_emit(&fr->b, ING_OP_STORE, 0, inst, m->inst, 0);
            *m = (value){.kind = V_REF, .inst = inst, .type = m->type};
        }
        m->temp = false;
    }
    return ING_OK;
}

/* Temporaries of a variable are its own from here on. */
static void keep(value *v) {
    for (uint32_t k = 0; k < v->n; k++) {
        v->items[k].temp = false;
        if (v->items[k].kind == V_STRUCT) keep(&v->items[k]);
    }
}

ing_status ing_front_struct_declare(frame *fr, ing_node at, uint32_t atom,
                                    const value *v) {
    value x;
    ING_TRY(ing_front_struct_load(fr, at, v, &x));
    if (fr->uses[atom] != NAME_ONCE)
        ING_TRY(ing_front_struct_settle(fr, at, &x));
    else
        keep(&x);
    return ing_front_scope_add(fr, atom, &x);
}

static ing_status store_member(frame *fr, ing_node at, const value *to, uint32_t k,
                               const value *v) {
    value place;
    ING_TRY(member(fr, at, to, k, &place));
    if (place.kind != V_STRUCT && (place.kind != V_REF || place.fixed))
        return ing_front_fail_at(fr, at, ING_SYNTAX,
                                 "copy the struct into a new variable first",
                                 "the members of this struct cannot be assigned");
    return ing_front_store(fr, at, at, &place, v);
}

ing_status ing_front_struct_store(frame *fr, ing_node at, const value *to,
                                  const value *given) {
    value v;
    bool ok = false;
    uint32_t other = 0;
    ING_TRY(ing_front_struct_from(fr, at, given, &v, &ok));
    if (!ok)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "assign a struct with the same members",
            "Only dict or Struct can be assigned to a Struct; this is %s",
            ing_front_describe(fr, given));
    for (uint32_t k = 0; ok && k < to->n; k++)
        ok = v.n == to->n && find(&v, to->info->names[k], &other);
    if (!ok || v.n != to->n)
        return ing_front_fail_at(fr, at, ING_TYPE, "both must have the same members",
                                 "Member mismatch between structs %s, %s",
                                 names_of(fr, to->info), names_of(fr, v.info));
    ING_TRY(ing_front_struct_load(fr, at, &v, &v));
    for (uint32_t k = 0; k < to->n; k++) {
        find(&v, to->info->names[k], &other);
        ING_TRY(store_member(fr, at, to, k, &v.items[other]));
    }
    return ING_OK;
}

/* ---- structs of other things ------------------------------------------------------------------ */

/* A member as it is when nothing says its type: lists are vectors, dicts structs. */
static ing_status plain_member(frame *fr, ing_node at, const value *given, value *out) {
    value v = *given;
    bool ok = false;
    ING_TRY(ing_front_force(fr, at, &v));
    ING_TRY(ing_front_struct_from(fr, at, &v, out, &ok));
    if (ok) return ing_front_struct_load(fr, at, out, out);
    if (v.kind == V_LIST || v.kind == V_TUPLE ||
        (v.kind == V_SEEN && (v.seen == ING_GATE_LIST || v.seen == ING_GATE_TUPLE))) {
        ING_TRY(ing_front_tensor_from(fr, at, &v, ING_VOID, &v, &ok));
        return ing_front_tensor_load(fr, at, &v, out);
    }
    if (v.kind == V_ARRAY)
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            "pass the array beside the struct, or use a dataclasses.dataclass",
            "a struct cannot hold an array");
    return ing_front_load(fr, at, &v, out);
}

/* From n names, each with its value after it. */
static ing_status from_pairs(frame *fr, ing_node at, const value *pairs, uint32_t n,
                             value *out) {
    struct_info *info = ING_NEW(&fr->lo->arena, struct_info);
    const char **names = ING_NEW_ARRAY(&fr->lo->arena, n + 1, const char *);
    value *items = ING_NEW_ARRAY(&fr->lo->arena, n + 1, value);
    if (!info || !names || !items) return no_memory(fr);
    for (uint32_t k = 0; k < n; k++) {
        value name = pairs[2 * k];
        ING_TRY(ing_front_force(fr, at, &name));
        if (name.kind != V_STR)
            return ing_front_fail_at(fr, at, ING_TYPE, "use strings as keys",
                                     "the name of a member is %s",
                                     ing_front_describe(fr, &name));
        if (strcmp(name.s, "__struct_methods") == 0)
            return ing_front_fail_at(fr, at, ING_SYNTAX,
                                     "give them to qd.types.struct or a @qd.dataclass",
                                     "methods cannot be given to a struct in a kernel");
        names[k] = name.s;
        ING_TRY(plain_member(fr, at, &pairs[2 * k + 1], &items[k]));
    }
    *info = (struct_info){.n = n, .names = names};
    *out = struct_of(info, items, 0);
    return ING_OK;
}

/* Keys and values of a dict from outside, in turn. */
static ing_status dict_pairs(frame *fr, ing_node at, const value *d, value **out) {
    value *keys = NULL, *values = NULL;
    ING_TRY(ing_front_dict_part(fr, at, d, DICT_KEYS, &keys));
    ING_TRY(ing_front_dict_part(fr, at, d, DICT_VALUES, &values));
    *out = ING_NEW_ARRAY(&fr->lo->arena, 2 * (size_t)d->n + 1, value);
    if (!*out) return no_memory(fr);
    for (uint32_t k = 0; k < d->n; k++) {
        (*out)[2 * k] = keys[k];
        (*out)[2 * k + 1] = values[k];
    }
    return ING_OK;
}

ing_status ing_front_struct_from(frame *fr, ing_node at, const value *given, value *out,
                                 bool *ok) {
    value v = *given, *pairs = NULL;
    ing_gref owner = 0;
    *ok = true;
    if (v.kind == V_STRUCT) {
        *out = v;
        return ING_OK;
    }
    if (v.kind == V_DICT) return from_pairs(fr, at, v.items, v.n, out);
    if (v.kind == V_SEEN && v.seen == ING_GATE_STRUCT) {
        owner = v.gref;
        ING_TRY(ing_front_thing_attr(fr, at, v.gref, "_entries", &v));
        ING_TRY(ing_front_force(fr, at, &v));
    }
    *ok = v.kind == V_SEEN && v.seen == ING_GATE_DICT;
    if (!*ok) return ING_OK;
    ING_TRY(ing_front_count(fr, at, &v));
    ING_TRY(dict_pairs(fr, at, &v, &pairs));
    ING_TRY(from_pairs(fr, at, pairs, v.n, out));
    out->gref = owner;
    return ING_OK;
}

ing_status ing_front_struct_make(frame *fr, ing_node n, const call_args *a,
                                 value *out) {
    bool ok = false;
    if (a->n == 1 && a->n_kw == 0) {
        value v = a->at[0];
        ING_TRY(ing_front_force(fr, a->node[0], &v));
        ING_TRY(ing_front_struct_from(fr, a->node[0], &v, out, &ok));
        if (ok) return ing_front_struct_load(fr, n, out, out);
    }
    if (a->n)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "qd.Struct(x=1, y=2.0), or qd.Struct({'x': 1})",
            "Custom structs need to be initialized using either dictionary or keyword "
            "arguments");
    value *pairs = ING_NEW_ARRAY(&fr->lo->arena, 2 * (size_t)a->n_kw + 1, value);
    if (!pairs) return no_memory(fr);
    for (uint32_t k = 0; k < a->n_kw; k++) {
        const char *name = ing_front_atom_text(fr, a->kw_name[k]);
        pairs[2 * k] = (value){.kind = V_STR, .s = name, .n = (uint32_t)strlen(name)};
        pairs[2 * k + 1] = a->kw[k];
    }
    return from_pairs(fr, n, pairs, a->n_kw, out);
}

/* ---- struct types ----------------------------------------------------------------------------- */

ing_status ing_front_struct_convert(frame *fr, ing_node at, const value *given,
                                    const ing_gate_struct *layout, value *out) {
    value v = *given;
    const struct_info *info;
    bool ok = false;
    ING_TRY(ing_front_force(fr, at, &v));
    ING_TRY(ing_front_struct_from(fr, at, &v, &v, &ok));
    ING_TRY(info_of(fr, layout, &info));
    uint32_t k = 0, other = 0;
    while (ok && k < info->n) ok = v.n == info->n && find(&v, info->names[k++], &other);
    if (!ok || v.n != info->n)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "pass a struct of that type",
            "a struct with the members %s is needed here; this is %s",
            names_of(fr, info), ing_front_describe(fr, given));
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)info->n + 1, value);
    if (!items) return no_memory(fr);
    for (k = 0; k < info->n; k++) {
        const ing_gate_member *m = &layout->members[k];
        value x;
        find(&v, m->name, &other);
        ING_TRY(member(fr, at, &v, other, &x));
        if (m->inner) {
            ING_TRY(ing_front_struct_convert(fr, at, &x, m->inner, &items[k]));
        } else if (m->tensor.rank) {
            ING_TRY(
                ing_front_tensor_convert(fr, at, &x, &m->tensor, m->dtype, &items[k]));
        } else {
            uint32_t inst = 0;
            ING_TRY(ing_front_convert(fr, at, &x, m->dtype, &inst));
            items[k] = ing_front_rt(inst, m->dtype);
        }
        items[k].gref = 0;
        items[k].fixed = items[k].arg = false;
    }
    *out = struct_of(info, items, 0);
    return ING_OK;
}

static bool is_struct(const value *v) {
    return v->kind == V_STRUCT || v->kind == V_DICT ||
           (v->kind == V_SEEN &&
            (v->seen == ING_GATE_STRUCT || v->seen == ING_GATE_DICT));
}

static ing_status zeroed(frame *fr, ing_node at, const tensor_shape *s, value *out) {
    if (s->n > TENSOR_REG) { /* locals are zeroed */
        *out = ing_front_tensor_temp(fr, s);
        return ING_OK;
    }
    value *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s->n + 1, value);
    if (!elems) return no_memory(fr);
    for (uint32_t k = 0; k < s->n; k++) elems[k] = ing_front_int(0);
    return ing_front_tensor_make(fr, at, *s, elems, out);
}

static ing_status construct(frame *fr, ing_node n, const ing_gate_struct *layout,
                            const value *const *given, const ing_node *at, value *out);

/* One member from what was given for it; NULL: zero. */
static ing_status construct_member(frame *fr, ing_node at, const ing_gate_member *m,
                                   const value *given, value *out) {
    value v = given ? *given : ing_front_int(0);
    ING_TRY(ing_front_force(fr, at, &v));
    if (m->inner && is_struct(&v))
        return ing_front_struct_convert(fr, at, &v, m->inner, out);
    if (m->inner && given && !m->inner->n)
        return ing_front_fail_at(fr, at, ING_TYPE, "leave it out",
                                 "member '%s' is a struct without members", m->name);
    if (m->inner) { /* it fills the first member */
        const value **first =
            ING_NEW_ARRAY(&fr->lo->arena, (size_t)m->inner->n + 1, const value *);
        ing_node *nodes =
            ING_NEW_ARRAY(&fr->lo->arena, (size_t)m->inner->n + 1, ing_node);
        if (!first || !nodes) return no_memory(fr);
        first[0] = given ? &v : NULL;
        for (uint32_t k = 0; k < m->inner->n; k++) nodes[k] = at;
        return construct(fr, at, m->inner, first, nodes, out);
    }
    if (m->tensor.rank) {
        tensor_shape s =
            ing_front_shape_of(m->tensor.rank, m->tensor.shape[0],
                               m->tensor.rank == 2 ? m->tensor.shape[1] : 1, m->dtype);
        if (!given) return zeroed(fr, at, &s, out);
        value type = {.kind = V_TYPE, .type = ing_front_tensor_type(fr, &s)};
        call_args one = {.at = &v, .node = &at, .n = 1};
        ING_TRY(ing_front_tensor_call_type(fr, at, &type, &one, out));
        return ing_front_tensor_load(fr, at, out, out);
    }
    if (v.kind == V_ARRAY || is_struct(&v))
        return ing_front_fail_at(fr, at, ING_TYPE, "pass a number",
                                 "member '%s' is a %s; this is %s", m->name,
                                 ing_dtype_name(m->dtype), ing_front_describe(fr, &v));
    uint32_t inst = 0;
    ING_TRY(ing_front_convert(fr, at, &v, m->dtype, &inst));
    *out = ing_front_rt(inst, m->dtype);
    return ING_OK;
}

/* The nesting of the layout bounds the recursion. */
static ing_status construct(frame *fr, ing_node n, const ing_gate_struct *layout,
                            const value *const *given, const ing_node *at, value *out) {
    const struct_info *info;
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)layout->n + 1, value);
    ING_TRY(info_of(fr, layout, &info));
    if (!items) return no_memory(fr);
    for (uint32_t k = 0; k < layout->n; k++)
        ING_TRY(construct_member(fr, given[k] ? at[k] : n, &layout->members[k],
                                 given[k], &items[k]));
    *out = struct_of(info, items, 0);
    return ING_OK;
}

static ing_status place_keywords(frame *fr, const value *type, const call_args *a,
                                 const value **given, ing_node *at) {
    for (uint32_t i = 0; i < a->n_kw; i++) {
        const char *name = ing_front_atom_text(fr, a->kw_name[i]);
        uint32_t k = 0;
        if (!find(type, name, &k)) return fail_member(fr, a->kw_node[i], type, name);
        if (given[k])
            return ing_front_fail_at(fr, a->kw_node[i], ING_SYNTAX, "pass it once",
                                     "member '%s' is given twice", name);
        given[k] = &a->kw[i];
        at[k] = a->kw_node[i];
    }
    return ING_OK;
}

ing_status ing_front_struct_call(frame *fr, ing_node n, const value *type,
                                 const call_args *a, value *out) {
    const ing_gate_struct *layout = type->info->layout;
    value first = a->n ? a->at[0] : ing_front_none();
    if (a->n == 1 && !a->n_kw) ING_TRY(ing_front_force(fr, a->node[0], &first));
    bool cast = a->n == 1 && !a->n_kw && is_struct(&first) &&
                !(layout->n && layout->members[0].inner);
    if (cast) {
        ING_TRY(ing_front_struct_convert(fr, n, &first, layout, out));
        out->gref = type->gref;
        return ING_OK;
    }
    if (a->n > layout->n)
        return ing_front_fail_at(fr, a->node[layout->n], ING_SYNTAX,
                                 ing_arena_printf(&fr->lo->arena, "its members are %s",
                                                  names_of(fr, type->info)),
                                 "a struct of %u members from %u values", layout->n,
                                 a->n);
    const value **given =
        ING_NEW_ARRAY(&fr->lo->arena, (size_t)layout->n + 1, const value *);
    ing_node *at = ING_NEW_ARRAY(&fr->lo->arena, (size_t)layout->n + 1, ing_node);
    if (!given || !at) return no_memory(fr);
    for (uint32_t k = 0; k < a->n; k++) {
        given[k] = &a->at[k];
        at[k] = a->node[k];
    }
    ING_TRY(place_keywords(fr, type, a, given, at));
    ING_TRY(construct(fr, n, layout, given, at, out));
    out->gref = type->gref;
    return ING_OK;
}

/* ---- kernels: parameters and results ------------------------------------------------------------ */

/* The numbers are scalar arguments in a row. The nesting of the layout bounds the recursion. */
static bool add_args(lowering *lo, ing_gref ref, const ing_gate_struct *layout,
                     uint32_t lanes, uint32_t *first) {
    for (uint32_t k = 0; k < layout->n; k++) {
        const ing_gate_member *m = &layout->members[k];
        uint32_t n = m->inner ? 0 : ing_gate_count(&m->tensor);
        if (m->inner && !add_args(lo, ref, m->inner, lanes, first)) return false;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t id = ing_ir_add_arg(lo->mod, m->dtype) + 1;
            ing_front_arg arg = {.ref = ref, .dtype = m->dtype, .lane = *first != 0};
            if (!*first) {
                *first = id;
                arg.lanes = lanes;
            }
            if (!ing_vec_push(&lo->out->args, arg)) return false;
        }
    }
    return true;
}

ing_status ing_front_struct_param(frame *fr, ing_node at, ing_gref ref, uint32_t i,
                                  const ing_gate_param *p, value *out) {
    lowering *lo = fr->lo;
    const struct_info *info;
    ing_hash128 key = {ref, 2};
    uint32_t first = ing_map_get(&lo->args, key);
    ING_TRY(info_of(fr, p->layout, &info));
    if (!first && info->layout->n_numbers) {
        if (!add_args(lo, ref, p->layout, p->layout->n_numbers, &first) ||
            !ing_map_put(&lo->args, key, first))
            return no_memory(fr);
    }
    *out = struct_of(info, NULL, 0);
    out->inst = first;
    out->fixed = out->arg = true;
    if (lo->gate->ops->annotation) GATE(fr, at, annotation, i, &out->gref, fr->lo->e);
    return ING_OK;
}

/* The nesting of the struct bounds the recursion. */
static ing_status flatten(frame *fr, ing_node at, const value *v, value *out,
                          uint32_t *n) {
    for (uint32_t k = 0; k < v->n; k++) {
        const value *m = &v->items[k];
        tensor_shape s;
        if (m->kind == V_STRUCT) {
            ING_TRY(flatten(fr, at, m, out, n));
        } else if (ing_front_tensor_shape(fr, m, &s)) {
            for (uint32_t i = 0; i < s.n; i++)
                ING_TRY(ing_front_tensor_elem(fr, at, m, &s, i, &out[(*n)++]));
        } else {
            ING_TRY(ing_front_load(fr, at, m, &out[(*n)++]));
        }
    }
    return ING_OK;
}

ing_status ing_front_struct_result(frame *fr, ing_node at, const value *v,
                                   const ing_gate_struct *layout, value *out) {
    const ing_gate_struct *have = v->kind == V_STRUCT ? v->info->layout : NULL;
    if (have && !ing_hash_eq(have->digest, layout->digest))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "convert it: call the type with the struct",
            "a struct of one type is returned where the annotation names another");
    return ing_front_struct_convert(fr, at, v, layout, out);
}

ing_status ing_front_struct_numbers(frame *fr, ing_node at, const value *given,
                                    const ing_gate_struct *layout, value *out) {
    value v;
    uint32_t n = 0;
    ING_TRY(ing_front_struct_result(fr, at, given, layout, &v));
    return flatten(fr, at, &v, out, &n);
}
