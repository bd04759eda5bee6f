/* Python's own functions where they mean what they mean in Python: int, float, bool, round,
 * pow, divmod, min, max, sum, any, all, sorted, reversed and type of compile-time values and
 * of containers. What the run time can do with them is in intrin.c; what it cannot is refused
 * here with the reason. Called by call.c before the table of intrinsics. */
#include "front/front_int.h"

#include <math.h>
#include <string.h>

typedef struct builtin {
    frame *fr;
    ing_node n;
    ing_intrinsic id;
    const value *fn;
    const call_args *a;
    value *args; /* looked at; arena */
    value *out;
} builtin;

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

static bool is_number(const value *v) {
    return v->kind == V_INT || v->kind == V_FLOAT || v->kind == V_BOOL;
}

static ing_status look_at_args(builtin *b) {
    b->args = ING_NEW_ARRAY(&b->fr->lo->arena, (size_t)b->a->n + 1, value);
    if (!b->args) return no_memory(b->fr);
    for (uint32_t i = 0; i < b->a->n; i++) {
        b->args[i] = b->a->at[i];
        ING_TRY(ing_front_force(b->fr, b->a->node[i], &b->args[i]));
    }
    return ING_OK;
}

static bool all_static(const builtin *b) {
    bool yes = true;
    for (uint32_t i = 0; i < b->a->n && yes; i++)
        yes = ing_front_is_static(&b->args[i]) && b->args[i].kind != V_ARRAY;
    return yes;
}

static ing_status fail_static(const builtin *b, const char *remedy, const char *what) {
    uint32_t i = 0;
    while (i + 1 < b->a->n && ing_front_is_static(&b->args[i])) i++;
    return ing_front_fail_at(b->fr, b->a->node[i], ING_COMPILE, remedy,
                             "%s needs compile-time values; this is %s", what,
                             ing_front_describe(b->fr, &b->args[i]));
}

/* As Python computes it. */
static ing_status ask_python(const builtin *b) {
    call_args a = *b->a;
    a.at = b->args;
    ING_TRY(ing_front_call_outside(b->fr, b->n, b->fn, &a, b->out));
    return ing_front_force(b->fr, b->n, b->out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A NumPy scalar, or a number inside qd.static, as the Python number that it equals. */
static void untype(const builtin *b, value *v) {
    if (!is_number(v) || !(v->gref || v->origin || b->fr->in_static)) return;
    v->dtype = ING_VOID;
    v->gref = 0;
}

/* int(x), float(x), bool(x) */
static ing_status number(builtin *b, bool *done) {
    static const char *const what[] = {"int", "float", "bool"};
    const char *name = what[b->id == ING_IN_PY_INT     ? 0
                            : b->id == ING_IN_PY_FLOAT ? 1
                                                       : 2];
    bool truth = false;
    *done = true;
    if (b->a->n == 0) {
        *b->out = b->id == ING_IN_PY_INT     ? ing_front_int(0)
                  : b->id == ING_IN_PY_FLOAT ? ing_front_float(0)
                                             : ing_front_bool(false);
        return ING_OK;
    }
    value *v = &b->args[0];
    if (b->id == ING_IN_PY_BOOL && b->a->n == 1 && ing_front_is_static(v) &&
        !is_number(v) && v->kind != V_ARRAY && !ing_front_is_tensor(b->fr, v)) {
        ING_TRY(ing_front_truth(b->fr, b->a->node[0], v, &truth));
        *b->out = ing_front_bool(truth);
        return ING_OK;
    }
    if (v->kind == V_STR || (b->a->n == 2 && b->id == ING_IN_PY_INT)) {
        if (all_static(b)) return ask_python(b);
        return fail_static(b, "convert it outside and pass the number", name);
    }
    untype(b, v);
    *done = false;
    return ING_OK;
}

/* pow(a, b, m), round(x, n): of numbers known while compiling. */
static ing_status third(builtin *b, bool *done) {
    bool round = b->id == ING_IN_PY_ROUND;
    *done = b->a->n == (round ? 2 : 3);
    if (!*done) return ING_OK;
    for (uint32_t i = 0; i < b->a->n; i++) untype(b, &b->args[i]);
    if (all_static(b)) return ask_python(b);
    return fail_static(b,
                       round ? "scale it: round(x * 100) / 100"
                             : "multiply and take the remainder in a loop",
                       round ? "round with a number of digits" : "pow with a modulus");
}

static ing_status in_divmod(builtin *b) {
    value *items = ING_NEW_ARRAY(&b->fr->lo->arena, 2, value);
    if (!items) return no_memory(b->fr);
    for (int k = 0; k < 2; k++)
        ING_TRY(ing_front_binary(b->fr, b->n, k ? ING_AST_Mod : ING_AST_FloorDiv,
                                 &b->args[0], &b->args[1], &items[k]));
    *b->out = ing_front_seq(V_TUPLE, items, 2);
    return ING_OK;
}

/* ---- sequences -------------------------------------------------------------------------------- */

static ing_status sequence(const builtin *b, value **items, uint32_t *n) {
    frame *fr = b->fr;
    bool ok = false;
    ING_TRY(ing_front_sequence(fr, b->a->node[0], &b->args[0], items, n, &ok));
    if (!ok)
        return ing_front_fail_at(
            fr, b->a->node[0], ING_TYPE,
            b->args[0].kind == V_ARRAY ? "loop over the array"
                                       : ing_front_sequence_remedy(&b->args[0]),
            "%s needs a sequence known while compiling; this is %s",
            ing_intrinsic_name(b->id) + strlen("builtins."),
            ing_front_describe(fr, &b->args[0]));
    value *own = ING_NEW_ARRAY(&fr->lo->arena, (size_t)*n + 1, value);
    if (!own) return no_memory(fr);
    for (uint32_t i = 0; i < *n; i++) {
        own[i] = (*items)[i];
        ING_TRY(ing_front_force(fr, b->a->node[0], &own[i]));
    }
    *items = own;
    return ING_OK;
}

static void turn_around(value *items, uint32_t n) {
    for (uint32_t i = 0; i < n / 2; i++) {
        value v = items[i];
        items[i] = items[n - 1 - i];
        items[n - 1 - i] = v;
    }
}

/* a < b of items that are sorted. */
static ing_status less(const builtin *b, const value *x, const value *y, bool *out) {
    frame *fr = b->fr;
    ing_node at = b->a->node[0];
    bool done = false;
    const value *odd = ing_front_is_static(x) ? y : x;
    if (!ing_front_is_static(odd))
        return ing_front_fail_at(fr, at, ING_COMPILE,
                                 "sort them with min() and max(), or in an array",
                                 "sorted needs items known while compiling; one is %s",
                                 ing_front_describe(fr, odd));
    bool nan =
        (x->kind == V_FLOAT && isnan(x->f)) || (y->kind == V_FLOAT && isnan(y->f));
    if (!nan) ING_TRY(ing_front_fold_compare(fr, at, ING_AST_Lt, x, y, out, &done));
    if (done) return ING_OK;
    return ing_front_fail_at(fr, at, ING_TYPE,
                             "sort numbers, strings, or tuples of them",
                             "%s and %s cannot be put in order",
                             ing_front_describe(fr, x), ing_front_describe(fr, y));
}

/* Merges runs of doubling length from one array to the other: stable, n log n. */
static ing_status sort_items(const builtin *b, value *items, uint32_t n) {
    value *from = items, *to = ING_NEW_ARRAY(&b->fr->lo->arena, (size_t)n + 1, value);
    if (!to) return no_memory(b->fr);
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t low = 0, k = 0; low < n; low += 2 * width) {
            uint32_t mid = low + width < n ? low + width : n;
            uint32_t high = low + 2 * width < n ? low + 2 * width : n;
            uint32_t i = low, j = mid;
            while (i < mid || j < high) {
                bool right = i == mid;
                if (i < mid && j < high) ING_TRY(less(b, &from[j], &from[i], &right));
                to[k++] = right ? from[j++] : from[i++];
            }
        }
        value *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, n * sizeof *items);
    return ING_OK;
}

static ing_status in_sorted(builtin *b) {
    frame *fr = b->fr;
    const call_args *a = b->a;
    bool reverse = false;
    value *items;
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_kw; i++) {
        const char *name = ing_front_atom_text(fr, a->kw_name[i]);
        value v = a->kw[i];
        ING_TRY(ing_front_force(fr, a->kw_node[i], &v));
        if (strcmp(name, "reverse") == 0 && is_number(&v) && v.kind != V_FLOAT)
            ING_TRY(ing_front_truth(fr, a->kw_node[i], &v, &reverse));
        else if (strcmp(name, "reverse") == 0)
            return ing_front_fail_at(
                fr, a->kw_node[i], ING_TYPE, "use True or False known while compiling",
                "sorted(reverse=...) is %s", ing_front_describe(fr, &v));
        else if (strcmp(name, "key") != 0 || v.kind != V_NONE)
            return ing_front_fail_at(
                fr, a->kw_node[i], ING_TYPE,
                "sort tuples that start with what counts: sorted([(k, x), ...])",
                "sorted has no parameter '%s' in kernels", name);
    }
    ING_TRY(sequence(b, &items, &n));
    if (reverse) turn_around(items, n); /* twice: equal ones keep their order */
    ING_TRY(sort_items(b, items, n));
    if (reverse) turn_around(items, n);
    *b->out = ing_front_seq(V_LIST, items, n);
    return ING_OK;
}

static ing_status in_reversed(builtin *b) {
    value *items;
    uint32_t n = 0;
    if (b->args[0].kind == V_ITER && b->args[0].tag == ING_IN_PY_RANGE &&
        !all_static(b))
        return ing_front_fail_at(b->fr, b->n, ING_COMPILE,
                                 "loop over range(n) and use n - 1 - i",
                                 "reversed needs a range known while compiling");
    if (b->args[0].kind == V_SEEN && b->args[0].seen == ING_GATE_OBJECT &&
        b->args[0].bound)
        return ing_front_fail_at(b->fr, b->n, ING_TYPE, "use a tuple or a list",
                                 "%s says by itself what it is in reverse",
                                 ing_front_describe(b->fr, &b->args[0]));
    ING_TRY(sequence(b, &items, &n));
    turn_around(items, n);
    *b->out = ing_front_seq(V_ITER, items, n);
    b->out->tag = ING_IN_PY_REVERSED;
    return ING_OK;
}

/* sum(items, start) */
static ing_status in_sum(builtin *b, bool *done) {
    value *items;
    uint32_t n = 0;
    *done = b->a->n == 2;
    if (!*done) return ING_OK;
    ING_TRY(sequence(b, &items, &n));
    *b->out = b->args[1];
    if (b->out->kind == V_STR)
        return ing_front_fail_at(b->fr, b->a->node[1], ING_TYPE, "use an f-string",
                                 "sum cannot add up strings");
    for (uint32_t i = 0; i < n; i++)
        ING_TRY(ing_front_binary(b->fr, b->n, ING_AST_Add, b->out, &items[i], b->out));
    return ING_OK;
}

/* any and all: compile-time items decide now, the rest is tested at run time. */
static ing_status in_any(builtin *b, bool *done) {
    frame *fr = b->fr;
    bool all = b->id == ING_IN_PY_ALL;
    value *items;
    uint32_t n = 0, test = 0;
    *done = !ing_front_is_tensor(fr, &b->args[0]);
    if (!*done) return ING_OK;
    ING_TRY(sequence(b, &items, &n));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t one = 0;
        bool truth = false;
        if (ing_front_is_static(&items[i])) {
            ING_TRY(ing_front_truth(fr, b->a->node[0], &items[i], &truth));
            if (truth == all) continue;
            *b->out = ing_front_bool(truth);
            return ING_OK;
        }
        ING_TRY(ing_front_condition(fr, b->a->node[0], &items[i], all ? "all" : "any",
                                    &one));
        test = test ? ing_ir_emit(&fr->b, all ? ING_OP_AND : ING_OP_OR, ING_U1, test,
                                  one, 0)
                    : one;
    }
    *b->out = test ? ing_front_rt(test, ING_U1) : ing_front_bool(all);
    return ING_OK;
}

/* min and max of what is known while compiling and is no number: strings, tuples. */
static ing_status in_min_max(builtin *b, bool *done) {
    bool max = b->id == ING_IN_PY_MAX, all = true, number = true, less_ = false;
    value *items = b->args;
    uint32_t n = b->a->n;
    *done = false;
    if (n == 1 && ing_front_is_tensor(b->fr, items)) return ING_OK;
    if (n == 1) ING_TRY(sequence(b, &items, &n)); /* of one number Python has none */
    for (uint32_t i = 0; i < n; i++) {
        all &= ing_front_is_static(&items[i]) && !ing_front_is_tensor(b->fr, &items[i]);
        number &= ing_front_is_scalar(&items[i]);
    }
    if (!all || number || n == 0) return ING_OK;
    *b->out = items[0];
    for (uint32_t i = 1; i < n; i++) {
        ING_TRY(ing_front_fold_compare(b->fr, b->n, ING_AST_Lt,
                                       max ? b->out : &items[i],
                                       max ? &items[i] : b->out, &less_, done));
        if (!*done) return ING_OK;
        if (less_) *b->out = items[i];
    }
    *done = n > 1;
    return ING_OK;
}

/* ---- type ------------------------------------------------------------------------------------------- */

/* The class of a thing is asked of Python, now and at each launch; that of a container that
 * the kernel made is known. */
static ing_status in_type(builtin *b) {
    value v = b->a->at[0];
    if (!v.gref) ING_TRY(ing_front_force(b->fr, b->a->node[0], &v));
    if (ing_front_is_box(&v) && v.kind != V_DICT && !v.gref) {
        *b->out = (value){.kind = V_INTRINSIC,
                          .tag = v.kind == V_LIST ? ING_IN_PY_LIST : ING_IN_PY_TUPLE};
        return ING_OK;
    }
    if (v.gref) /* whatever it is, its value does not matter */
        v = (value){.kind = V_THING, .gref = v.gref};
    else if (!ing_front_is_static(&v) || v_holds(&v) || v.kind == V_ARRAY)
        return ing_front_fail_at(b->fr, b->a->node[0], ING_COMPILE,
                                 "ask about a qd.template() argument, or about a.dtype",
                                 "type needs a compile-time value; this is %s",
                                 ing_front_describe(b->fr, &v));
    b->args[0] = v;
    return ask_python(b);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const struct {
    uint8_t min, max;
} counts[ING_IN_N] = {
    [ING_IN_PY_INT] = {0, 2},      [ING_IN_PY_FLOAT] = {0, 1},
    [ING_IN_PY_BOOL] = {0, 1},     [ING_IN_PY_POW] = {2, 3},
    [ING_IN_PY_ROUND] = {1, 2},    [ING_IN_PY_DIVMOD] = {2, 2},
    [ING_IN_PY_MIN] = {1, 255},    [ING_IN_PY_MAX] = {1, 255},
    [ING_IN_PY_SUM] = {1, 2},      [ING_IN_PY_ANY] = {1, 1},
    [ING_IN_PY_ALL] = {1, 1},      [ING_IN_PY_SORTED] = {1, 1},
    [ING_IN_PY_REVERSED] = {1, 1}, [ING_IN_PY_TYPE] = {1, 1},
};

ing_status ing_front_builtin(frame *fr, ing_node n, const value *fn, call_args *a,
                             value *out, bool *done) {
    ing_intrinsic id = (ing_intrinsic)fn->tag;
    builtin b = {.fr = fr, .n = n, .id = id, .fn = fn, .a = a, .out = out};
    *done = false;
    bool known = id < ING_IN_N && counts[id].max && a->n >= counts[id].min &&
                 a->n <= counts[id].max;
    if (!known || (a->n_kw && id != ING_IN_PY_SORTED)) return ING_OK;
    b.args = a->at;
    if (id != ING_IN_PY_TYPE) ING_TRY(look_at_args(&b));
    switch (id) {
    case ING_IN_PY_INT:
    case ING_IN_PY_FLOAT:
    case ING_IN_PY_BOOL: ING_TRY(number(&b, done)); break;
    case ING_IN_PY_POW:
    case ING_IN_PY_ROUND: ING_TRY(third(&b, done)); break;
    case ING_IN_PY_MIN:
    case ING_IN_PY_MAX: ING_TRY(in_min_max(&b, done)); break;
    case ING_IN_PY_SUM: ING_TRY(in_sum(&b, done)); break;
    case ING_IN_PY_ANY:
    case ING_IN_PY_ALL: ING_TRY(in_any(&b, done)); break;
    case ING_IN_PY_DIVMOD: *done = true; return in_divmod(&b);
    case ING_IN_PY_SORTED: *done = true; return in_sorted(&b);
    case ING_IN_PY_REVERSED: *done = true; return in_reversed(&b);
    default: *done = true; return in_type(&b);
    }
    a->at = b.args; /* looked at, and NumPy scalars as numbers */
    return ING_OK;
}
