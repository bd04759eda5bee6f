/* Calls: arguments are collected (f(*seq) spread out), then the callee decides: a func
 * (func.c), an intrinsic (intrin.c), a dtype as a conversion, or a Python function that
 * is called while compiling (R2). Reached from the expression table. */
#include "front/front_int.h"

#include <string.h>

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

static ing_status keep_arg(frame *fr, ing_node at, const value *v, value *now) {
    bool holds = v->kind == V_TUPLE || v->kind == V_LIST;
    if (now->kind != V_VOID || (v->kind != V_REF && !holds)) return ING_OK;
    *now = *v;
    return ing_front_keep(fr, at, now);
}

/* Arguments are evaluated in order: what a later one may change is read before it. */
static ing_status keep_args(frame *fr, ing_node later, call_args *a) {
    if (fr->in_static || !ing_front_may_change(fr->t, later, 0)) return ING_OK;
    for (uint32_t i = 0; i < a->n; i++)
        ING_TRY(keep_arg(fr, a->node[i], &a->at[i], &a->now[i]));
    for (uint32_t i = 0; i < a->n_kw; i++)
        ING_TRY(keep_arg(fr, a->kw_node[i], &a->kw[i], &a->kw_now[i]));
    return ING_OK;
}

/* What is not passed by reference: everything but to funcs, and the first of an atomic. */
static void use_kept(const value *fn, call_args *a) {
    bool atomic = fn->kind == V_INTRINSIC && fn->tag >= ING_IN_ATOMIC_ADD &&
                  fn->tag <= ING_IN_ATOMIC_CAS;
    for (uint32_t i = atomic ? 1 : 0; i < a->n; i++)
        if (a->now[i].kind != V_VOID) a->at[i] = a->now[i];
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (a->kw_now[i].kind != V_VOID) a->kw[i] = a->kw_now[i];
}

static ing_status make_room(frame *fr, uint32_t cap, call_args *a) {
    value *at = ING_NEW_ARRAY(&fr->lo->arena, cap, value);
    value *now = ING_NEW_ARRAY(&fr->lo->arena, cap, value);
    ing_node *node = ING_NEW_ARRAY(&fr->lo->arena, cap, ing_node);
    if (!at || !now || !node) return no_memory(fr);
    for (uint32_t i = 0; i < cap; i++) now[i].kind = V_VOID;
    if (a->n) {
        memcpy(at, a->at, a->n * sizeof *at);
        memcpy(now, a->now, a->n * sizeof *now);
        memcpy(node, a->node, a->n * sizeof *node);
    }
    a->at = at;
    a->now = now;
    a->node = node;
    return ING_OK;
}

/* The positional arguments, stars spread. */
static ing_status collect_args(frame *fr, uint32_t list, call_args *a) {
    uint32_t n = list_len(fr->t, list), cap = n + 1;
    ING_TRY(make_room(fr, cap, a));
    for (uint32_t i = 0; i < n; i++) {
        ing_node e = list_at(fr->t, list, i);
        if (a->n) ING_TRY(keep_args(fr, e, a));
        if (fr->t->nodes.at[e].kind != ING_NODE_STARRED) {
            a->node[a->n] = e;
            ING_TRY(ing_front_expr(fr, e, &a->at[a->n++]));
            continue;
        }
        value v, *items;
        uint32_t m = 0;
        bool ok = false;
        ING_TRY(ing_front_expr_forced(fr, NF(fr->t, e, STARRED)->value, &v));
        ING_TRY(ing_front_items(fr, e, &v, &items, &m, &ok));
        if (!ok)
            return ing_front_fail_at(
                fr, e, v.kind == V_SEEN ? ING_VALUE : ING_TYPE, "use a tuple or a list",
                "only compile-time sequences can be unpacked; this is %s",
                ing_front_describe(fr, &v));
        if (m > UINT32_MAX / 2 - cap) return no_memory(fr);
        cap += m;
        ING_TRY(make_room(fr, cap, a));
        for (uint32_t k = 0; k < m; k++) {
            a->node[a->n] = e;
            a->at[a->n++] = items[k];
        }
    }
    return ING_OK;
}

static ing_status collect_keywords(frame *fr, uint32_t list, call_args *a) {
    uint32_t n = list_len(fr->t, list);
    a->kw = ING_NEW_ARRAY(&fr->lo->arena, n + 1, value);
    a->kw_node = ING_NEW_ARRAY(&fr->lo->arena, n + 1, ing_node);
    a->kw_name = ING_NEW_ARRAY(&fr->lo->arena, n + 1, uint32_t);
    a->kw_now = ING_NEW_ARRAY(&fr->lo->arena, n + 1, value);
    if (!a->kw || !a->kw_node || !a->kw_name || !a->kw_now) return no_memory(fr);
    for (uint32_t i = 0; i < n; i++) {
        ing_node k = list_at(fr->t, list, i);
        const struct nf_KEYWORD *f = NF(fr->t, k, KEYWORD);
        if (!f->arg)
            return ing_front_fail_at(fr, f->value, ING_SYNTAX,
                                     "name every keyword argument",
                                     "`**` arguments are not supported in kernels");
        ING_TRY(keep_args(fr, f->value, a));
        a->kw_node[i] = f->value;
        a->kw_name[i] = f->arg;
        a->kw_now[i].kind = V_VOID;
        ING_TRY(ing_front_expr(fr, f->value, &a->kw[i]));
        a->n_kw++;
    }
    return ING_OK;
}

/* qd.f32(x): a literal takes the dtype, a run-time value is converted. */
static ing_status call_dtype(frame *fr, ing_node n, ing_dtype t, const call_args *a,
                             value *out) {
    if (a->n != 1 || a->n_kw)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "convert one number: qd.f32(x)",
            "A primitive type can only decorate a single expression.");
    value v = a->at[0];
    ING_TRY(ing_front_force(fr, a->node[0], &v));
    bool literal = (v.kind == V_INT || v.kind == V_FLOAT) && !v.dtype;
    if (ing_front_is_tensor(fr, &v))
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "use qd.cast(v, dtype) or v.cast(dtype)",
            "A primitive type cannot decorate an expression with a compound type.");
    if (literal && (v.kind == V_FLOAT) != ing_dtype_is_float(t))
        return ing_front_fail_at(
            fr, n, ING_TYPE,
            v.kind == V_FLOAT ? "write a whole number, or qd.cast(x, dtype)"
                              : "write it with a point, as in qd.f64(0.0), or "
                                "qd.cast(x, dtype)",
            v.kind == V_FLOAT
                ? "Floating-point literals must be annotated with a floating-point "
                  "type. For type casting, use `qd.cast`."
                : "Integer literals must be annotated with a integer type. For type "
                  "casting, use `qd.cast`.");
    if (literal) {
        value typed = v;
        typed.dtype = (uint8_t)t;
        uint32_t bits = ing_dtype_bits(t);
        bool fits =
            v.kind == V_FLOAT ||
            (ing_dtype_is_signed(t)
                 ? !v.wide && v.i >= -((int64_t)1 << (bits - 1)) - 0 &&
                       v.i <= (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                 : (v.wide || v.i >= 0) && (bits == 64 || (uint64_t)v.i >> bits == 0));
        if (!fits)
            return ing_front_fail_at(
                fr, n, ING_TYPE, "use a wider type",
                "Integer literal %lld exceeded the range of specified dtype: %s",
                (long long)v.i, ing_dtype_name(t));
        *out = typed;
        return ING_OK;
    }
    uint32_t inst = 0;
    ING_TRY(ing_front_convert(fr, a->node[0], &v, t, &inst));
    *out = ing_front_rt(inst, t);
    return ING_OK;
}

/* A tuple, list or dict that the kernel made, of values that stay what they are. The depth of
 * the text bounds the recursion. */
static ing_status make_box(frame *fr, ing_node at, const value *v, ing_gref *out) {
    uint32_t n = v_children(v);
    ing_gref *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n + 1, ing_gref);
    if (!items) return no_memory(fr);
    for (uint32_t i = 0; i < n; i++) {
        value item = v->items[i];
        ING_TRY(ing_front_force(fr, at, &item));
        bool enumerated = item.kind == V_SEEN && item.seen == ING_GATE_ENUM;
        if (item.kind > V_DICT && !enumerated)
            return ing_front_fail_at(
                fr, at, ING_COMPILE,
                "call it outside of the kernel and pass the result; an array of the "
                "module can be an argument of its own",
                "%s inside %s cannot be passed to a Python function",
                ing_front_describe(fr, &item), ing_front_describe(fr, v));
        ING_TRY(ing_front_as_thing(fr, at, &item, &items[i]));
    }
    ing_gate_fact f = {.kind = v->kind == V_DICT   ? ING_GATE_DICT
                               : v->kind == V_LIST ? ING_GATE_LIST
                                                   : ING_GATE_TUPLE,
                       .len = v->n,
                       .items = items};
    GATE(fr, at, make, &f, out, fr->lo->e);
    return ING_OK;
}

ing_status ing_front_as_thing(frame *fr, ing_node at, const value *v, ing_gref *out) {
    if (v->gref) {
        *out = v->gref;
        return ING_OK;
    }
    if (ing_front_is_box(v)) return make_box(fr, at, v, out);
    if (v->kind == V_BOOL ? v->bound : v->kind != V_DTYPE && v->dtype)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "make it a number of Python first: int(x), float(x)",
            "a number that has a type of its own cannot be passed to a Python function "
            "from here");
    ing_gate_fact f = {.dtype = v->dtype, .wide = v->wide};
    switch ((value_kind)v->kind) {
    case V_NONE: f.kind = ING_GATE_NONE; break;
    case V_BOOL:
        f.kind = ING_GATE_BOOL;
        f.i = v->i;
        break;
    case V_INT:
        f.kind = ING_GATE_INT;
        f.i = v->i;
        break;
    case V_FLOAT:
        f.kind = ING_GATE_FLOAT;
        f.f = v->f;
        break;
    case V_STR:
        f.kind = ING_GATE_STR;
        f.s = v->s;
        f.n = v->n;
        break;
    case V_DTYPE: f.kind = ING_GATE_DTYPE; break;
    default:
        return ing_front_fail_at(
            fr, at, ING_COMPILE,
            "only compile-time numbers, strings, None and things from outside can "
            "be passed to Python functions; make it a @qd.func",
            "%s cannot be passed to a Python function", ing_front_describe(fr, v));
    }
    GATE(fr, at, make, &f, out, fr->lo->e);
    return ING_OK;
}

/* What was meant by calling something that is no function. */
static const char *callee_remedy(frame *fr, ing_node n, const value *fn) {
    ing_node f = NF(fr->t, n, CALL)->func;
    if (fn->kind == V_ARRAY) return "index it with brackets: a[i]";
    if (fn->kind == V_SHAPE) return "index it with brackets: a.shape[0]";
    if (fr->t->nodes.at[f].kind == ING_NODE_NAME)
        return ing_arena_printf(&fr->lo->arena,
                                "rename the variable if '%s' should be a function",
                                ing_front_atom_text(fr, NF(fr->t, f, NAME)->id));
    return "leave out the parentheses";
}

/* A lambda with arguments of the run time is a func, made of its text: the attribute is there
 * when it is asked for (src/py/see/replay.c). *done false: it is none. */
static ing_status call_lambda(frame *fr, ing_node n, const value *fn,
                              const call_args *a, value *out, bool *done) {
    value func = {0};
    bool runtime = false;
    *done = false;
    for (uint32_t i = 0; i < a->n && !runtime; i++) {
        value v = a->at[i];
        if (!v.gref) ING_TRY(ing_front_force(fr, a->node[i], &v));
        runtime = !ing_front_is_static(&v);
    }
    if (!runtime || fn->kind != V_SEEN || fn->seen != ING_GATE_OBJECT) return ING_OK;
    ING_TRY(ing_front_thing_attr(fr, n, fn->gref, "__ingot_func__", &func));
    if (func.kind == V_VOID) return ING_OK;
    ING_TRY(ing_front_force(fr, n, &func));
    *done = func.kind == V_FUNC;
    return *done ? ing_front_call_func(fr, n, &func, NULL, a, out) : ING_OK;
}

static bool is_text(const value *v, const char *s) {
    return v->kind == V_STR && v->n == strlen(s) && memcmp(v->s, s, v->n) == 0;
}

/* operator.add(x, y) with an argument of the run time is x + y. *done false: it is none. */
static ing_status call_operator(frame *fr, ing_node n, const value *fn,
                                const call_args *a, value *out, bool *done) {
    static const struct {
        const char *name;
        ing_front_op op;
    } known[] = {
        {"add", ING_AST_Add},           {"sub", ING_AST_Sub},
        {"mul", ING_AST_Mult},          {"truediv", ING_AST_Div},
        {"floordiv", ING_AST_FloorDiv}, {"mod", ING_AST_Mod},
        {"pow", ING_AST_Pow},           {"lshift", ING_AST_LShift},
        {"rshift", ING_AST_RShift},     {"or_", ING_AST_BitOr},
        {"xor", ING_AST_BitXor},        {"and_", ING_AST_BitAnd},
        {"matmul", ING_AST_MatMult},
    };
    *done = false;
    if (a->n != 2 || a->n_kw || fn->kind != V_SEEN || fn->seen != ING_GATE_OBJECT ||
        (ing_front_is_static(&a->at[0]) && ing_front_is_static(&a->at[1])))
        return ING_OK;
    value module = {0}, name = {0};
    ING_TRY(ing_front_thing_attr(fr, n, fn->gref, "__module__", &module));
    ING_TRY(ing_front_thing_attr(fr, n, fn->gref, "__name__", &name));
    if (module.kind == V_VOID || name.kind == V_VOID) return ING_OK;
    ING_TRY(ing_front_force(fr, n, &module));
    ING_TRY(ing_front_force(fr, n, &name));
    for (size_t i = 0;
         is_text(&module, "_operator") && i < sizeof known / sizeof *known; i++) {
        if (!is_text(&name, known[i].name)) continue;
        *done = true;
        return ing_front_binary(fr, n, known[i].op, &a->at[0], &a->at[1], out);
    }
    return ING_OK;
}

static ing_front_given kind_given(frame *fr, const value *v) {
    if (v->kind == V_ARRAY || v->kind == V_BUNDLE || v->kind == V_VIEW)
        return ING_FRONT_ARRAY;
    if (ing_front_is_tensor(fr, v)) return ING_FRONT_TENSOR;
    return ing_front_is_runtime(v) ? ING_FRONT_NUMBER : ING_FRONT_OTHER;
}

/* What to do about a Python function that cannot take this value. */
static const char *outside_remedy(frame *fr, ing_node n, const value *fn,
                                  const value *v) {
    const ing_front_tree *t = fr->t;
    ing_node f = t->nodes.at[n].kind == ING_NODE_CALL ? NF(t, n, CALL)->func : 0;
    uint8_t kind = f ? t->nodes.at[f].kind : 0;
    uint32_t slot = kind == ING_NODE_ATTRIBUTE ? NF(t, f, ATTRIBUTE)->attr
                    : kind == ING_NODE_NAME    ? NF(t, f, NAME)->id
                                               : 0;
    char what[128] = "";
    const ing_gate *g = fr->lo->gate;
    if (fn->gref) g->ops->describe(g->self, fn->gref, what, sizeof what);
    char text[160];
    ing_front_outside o = {.name = ing_front_atom_text(fr, slot),
                           .what = what,
                           .runtime = true,
                           .given = kind_given(fr, v)};
    o.library = fn->gref && g->ops->is_library && g->ops->is_library(g->self, fn->gref);
    ing_front_function_remedy(&o, text, sizeof text);
    return ing_arena_printf(&fr->lo->arena, "%s", text);
}

/* dict(zip(names, numbers)): classes of Python that take the items of anything are given those of
 * a range, a zip and the like as a list, by its parts. */
static ing_status take_items(frame *fr, ing_node at, const value *fn, value *v) {
    value name = {0}, module = {0}, *items;
    uint32_t n = 0;
    bool ok = false;
    if (v->kind != V_ITER || fn->kind != V_SEEN || fn->seen != ING_GATE_CLASS)
        return ING_OK;
    ING_TRY(ing_front_thing_attr(fr, at, fn->gref, "__module__", &module));
    ING_TRY(ing_front_thing_attr(fr, at, fn->gref, "__name__", &name));
    ING_TRY(ing_front_force(fr, at, &module));
    ING_TRY(ing_front_force(fr, at, &name));
    if (!is_text(&module, "builtins") ||
        !(is_text(&name, "dict") || is_text(&name, "set") ||
          is_text(&name, "frozenset")))
        return ING_OK;
    ING_TRY(ing_front_items(fr, at, v, &items, &n, &ok));
    if (ok) *v = ing_front_seq(V_LIST, items, n);
    return ING_OK;
}

static ing_status outside_arg(frame *fr, ing_node n, const value *fn, ing_node at,
                              value *v, ing_gref *out) {
    if (!v->gref) ING_TRY(ing_front_force(fr, at, v));
    ING_TRY(take_items(fr, at, fn, v));
    bool array = v->kind == V_ARRAY && !ing_front_is_constant(fr, v);
    bool literal = ing_front_is_tensor(fr, v) && !v->gref; /* qd.Vector([1.0, 2.0]) */
    if (array || literal || v->kind == V_ITER ||
        (v->kind != V_ARRAY && !ing_front_is_static(v)))
        return ing_front_fail_at(
            fr, at, ING_COMPILE, outside_remedy(fr, n, fn, v),
            "%s is plain Python and runs while compiling; it cannot take %s",
            ing_front_describe(fr, fn), ing_front_describe(fr, v));
    return ing_front_as_thing(fr, at, v, out);
}

ing_status ing_front_call_outside(frame *fr, ing_node n, const value *fn,
                                  const call_args *a, value *out) {
    bool done = false;
    ING_TRY(call_lambda(fr, n, fn, a, out, &done));
    if (done) return ING_OK;
    if (a->n_kw && fr->lo->gate->ops->may_call)
        GATE(fr, n, may_call, fn->gref, fr->lo->e);
    uint32_t all = a->n + a->n_kw;
    ing_gref *refs = ING_NEW_ARRAY(&fr->lo->arena, all + 1, ing_gref), got = 0;
    const char **names = ING_NEW_ARRAY(&fr->lo->arena, a->n_kw + 1, const char *);
    if (!refs || !names) return no_memory(fr);
    for (uint32_t i = 0; i < all; i++) {
        bool named = i >= a->n;
        value v = named ? a->kw[i - a->n] : a->at[i];
        ing_node at = named ? a->kw_node[i - a->n] : a->node[i];
        if (named) names[i - a->n] = ing_front_atom_text(fr, a->kw_name[i - a->n]);
        ING_TRY(outside_arg(fr, n, fn, at, &v, &refs[i]));
    }
    ing_gate_call call = {.fn = fn->gref,
                          .args = refs,
                          .n = all,
                          .names = names,
                          .n_named = a->n_kw,
                          .in_static = fr->in_static != 0};
    GATE(fr, n, call, &call, &got, fr->lo->e);
    *out = (value){.kind = got ? V_THING : V_VOID, .gref = got};
    return ING_OK;
}

static ing_status call_python(frame *fr, ing_node n, const value *fn,
                              const call_args *a, value *out) {
    if (fn->kind == V_SEEN && fn->seen == ING_GATE_KERNEL)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "make it a @qd.func",
                                 "a kernel cannot be called from a kernel");
    if (!fn->gref || fn->kind != V_SEEN)
        return ing_front_fail_at(fr, n, ING_TYPE, callee_remedy(fr, n, fn),
                                 "%s cannot be called", ing_front_describe(fr, fn));
    for (uint32_t i = 0; i < a->n; i++)
        ING_TRY(ing_front_force(fr, a->node[i], &a->at[i]));
    bool done = false;
    ING_TRY(call_operator(fr, n, fn, a, out, &done));
    return done ? ING_OK : ing_front_call_outside(fr, n, fn, a, out);
}

/* The callee; of a method of a container the container, and its name; of a method of a
 * struct the struct in *self, of a method of qd.Vector that intrinsic, else V_VOID. */
static ing_status find_callee(frame *fr, ing_node n, value *fn, const char **method,
                              value *self) {
    *method = NULL;
    *self = (value){.kind = V_VOID};
    if (fr->t->nodes.at[n].kind != ING_NODE_ATTRIBUTE)
        return ing_front_expr_forced(fr, n, fn);
    const struct nf_ATTRIBUTE *f = NF(fr->t, n, ATTRIBUTE);
    const char *name = ing_front_atom_text(fr, f->attr);
    value base;
    ING_TRY(ing_front_expr(fr, f->value, &base));
    if (ing_front_is_tensor_method(name)) {
        ING_TRY(ing_front_force(fr, f->value, &base));
        if (ing_front_is_tensor(fr, &base)) {
            *method = name;
            *fn = base;
            return ING_OK;
        }
        if (base.kind == V_INTRINSIC &&
            (base.tag == ING_IN_VECTOR || base.tag == ING_IN_MATRIX))
            *self = base;
    }
    if (ing_front_is_field_method(name)) {
        ING_TRY(ing_front_force(fr, f->value, &base));
        if (base.kind == V_BUNDLE || ing_front_field_place(fr, &base)) {
            *method = name;
            *fn = base;
            return ING_OK;
        }
    }
    if (strcmp(name, "subview") == 0) {
        ING_TRY(ing_front_force(fr, f->value, &base));
        if (base.kind == V_VIEW) {
            *method = name;
            *fn = base;
            return ING_OK;
        }
    }
    if (ing_front_is_array_method(name)) ING_TRY(ing_front_force(fr, f->value, &base));
    if (ing_front_is_method(name)) {
        ING_TRY(ing_front_force(fr, f->value, &base));
        if (ing_front_has_methods(&base)) {
            *method = name;
            *fn = base;
            return ING_OK;
        }
    }
    if (base.kind == V_STRUCT) {
        bool ok = false;
        ING_TRY(ing_front_struct_method(fr, n, &base, name, fn, &ok));
        if (ok) *self = base;
        if (ok) return ING_OK;
    }
    ING_TRY(ing_front_attr_value(fr, n, &base, fn));
    return ing_front_force(fr, n, fn);
}

/* qd.Vector.normalized(v, eps): the method of the first argument. */
static ing_status call_unbound(frame *fr, ing_node n, ing_node callee, call_args *a,
                               value *out) {
    const char *name = ing_front_atom_text(fr, NF(fr->t, callee, ATTRIBUTE)->attr);
    if (a->n) ING_TRY(ing_front_force(fr, a->node[0], &a->at[0]));
    if (!a->n || !ing_front_is_tensor(fr, &a->at[0]))
        return ing_front_fail_at(fr, n, ING_TYPE, "pass the vector or matrix first",
                                 "%s is a method, found %s", name,
                                 a->n ? ing_front_describe(fr, &a->at[0])
                                      : "no argument");
    call_args rest = *a;
    rest.at++, rest.node++, rest.n--;
    if (rest.now) rest.now++;
    return ing_front_tensor_method(fr, n, &a->at[0], name, &rest, out);
}

ing_status ing_front_expr_call(frame *fr, ing_node n, value *out) {
    const struct nf_CALL *f = NF(fr->t, n, CALL);
    value fn = {.kind = V_VOID}, self = {.kind = V_VOID};
    call_args a = {0};
    const char *method = NULL;
    bool format = ing_front_is_format_call(fr, f->func);
    if (!format) ING_TRY(find_callee(fr, f->func, &fn, &method, &self));
    bool is_static = !format && fn.kind == V_INTRINSIC &&
                     (fn.tag == ING_IN_STATIC || fn.tag == ING_IN_STATIC_ASSERT);
    fr->in_static += is_static;
    ing_status s = collect_args(fr, f->args, &a);
    if (s == ING_OK) s = collect_keywords(fr, f->keywords, &a);
    for (uint32_t i = 0; is_static && s == ING_OK && i < a.n; i++)
        s = ing_front_force(fr, a.node[i], &a.at[i]);
    fr->in_static -= is_static;
    ING_TRY(s);
    fr->b.loc = n;
    if (format || fn.kind != V_FUNC) use_kept(&fn, &a);
    if (format) return ing_front_call_format(fr, n, &a, out);
    if (method && ing_front_is_tensor(fr, &fn))
        return ing_front_tensor_method(fr, n, &fn, method, &a, out);
    if (method && (fn.kind == V_BUNDLE || fn.kind == V_ARRAY))
        return ing_front_field_method(fr, n, &fn, method, &a, out);
    if (method && fn.kind == V_VIEW) return ing_front_view_method(fr, n, &fn, &a, out);
    if (fn.kind == V_TYPE) return ing_front_tensor_call_type(fr, n, &fn, &a, out);
    if (fn.kind == V_STRUCT_TYPE) return ing_front_struct_call(fr, n, &fn, &a, out);
    if (method) return ing_front_call_method(fr, n, &fn, method, &a, out);
    if (fn.kind == V_INTRINSIC && fn.tag == ING_IN_PY_ISINSTANCE)
        return ing_front_isinstance(fr, n, &fn, &a, out);
    if (fn.kind == V_FUNC)
        return ing_front_call_func(fr, n, &fn, self.kind == V_STRUCT ? &self : NULL, &a,
                                   out);
    if (fn.kind == V_INTRINSIC) {
        bool done = false;
        ING_TRY(ing_front_builtin(fr, n, &fn, &a, out, &done));
        if (done) return ING_OK;
        ING_TRY(ing_front_call_intrinsic(fr, n, (ing_intrinsic)fn.tag, &a, out));
        if (fn.tag != ING_IN_STATIC) out->from_static = false;
        return ING_OK;
    }
    if (fn.kind == V_DTYPE) return call_dtype(fr, n, fn.dtype, &a, out);
    if (self.kind == V_INTRINSIC && !fr->in_static)
        return call_unbound(fr, n, f->func, &a, out);
    return call_python(fr, n, &fn, &a, out);
}
