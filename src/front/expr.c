/* Expressions: the table from node kinds to functions, and those that are neither
 * operators (arith.c) nor calls (call.c): constants, names, attributes, subscripts,
 * tuples. What has no row in the table is refused with a remedy. */
#include "front/tensor.h"

#include "gen/abi.h"

#include <string.h>

typedef ing_status (*expr_fn)(frame *fr, ing_node n, value *out);

/* ---- constants and names ----------------------------------------------------------------- */

static ing_status expr_constant(frame *fr, ing_node n, value *out) {
    const ing_front_const *c = &fr->t->consts.at[NF(fr->t, n, CONSTANT)->value];
    switch (c->kind) {
    case ING_CONST_NONE: *out = ing_front_none(); return ING_OK;
    case ING_CONST_FALSE:
    case ING_CONST_TRUE:
        *out = ing_front_bool(c->kind == ING_CONST_TRUE);
        return ING_OK;
    case ING_CONST_INT:
    case ING_CONST_UINT:
        *out = ing_front_int(c->i);
        out->wide = c->kind == ING_CONST_UINT;
        return ING_OK;
    case ING_CONST_FLOAT: *out = ing_front_float(c->f); return ING_OK;
    case ING_CONST_STR:
        *out = (value){.kind = V_STR,
                       .s = ing_atoms_text(&fr->t->atoms, c->atom),
                       .n = fr->t->atoms.size.at[c->atom]};
        return ING_OK;
    case ING_CONST_BIGINT:
        return ing_front_fail_at(fr, n, ING_TYPE, "use a float literal",
                                 "this integer does not fit in 64 bits");
    case ING_CONST_BYTES:
        return ing_front_fail_at(fr, n, ING_SYNTAX,
                                 "pass the bytes as an array of qd.u8",
                                 "bytes literals are not supported in kernels");
    case ING_CONST_ELLIPSIS:
        return ing_front_fail_at(
            fr, n, ING_SYNTAX,
            "write `pass` for an empty body, `for i in a: a[i] = x` for all elements, "
            "a[()] for the one of an array without axes",
            "`...` is not supported in kernels");
    case ING_CONST_COMPLEX: break;
    }
    return ing_front_fail_at(fr, n, ING_SYNTAX,
                             "keep real and imaginary parts in two variables",
                             "complex numbers are not supported in kernels");
}

static ing_status expr_name(frame *fr, ing_node n, value *out) {
    return ing_front_name_read(fr, n, NF(fr->t, n, NAME)->id - 1, out);
}

static bool holds_items(const value *v) {
    return ((v->kind == V_TUPLE && !v->tensor) || v->kind == V_LIST) && v->n;
}

ing_status ing_front_keep(frame *fr, ing_node at, value *v) {
    if (v->kind == V_REF) return ing_front_load(fr, at, v, v);
    if (!holds_items(v)) return ING_OK;
    value *copy = ING_NEW_ARRAY(&fr->lo->arena, v->n, value);
    if (!copy) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    memcpy(copy, v->items, v->n * sizeof *copy); /* those of a variable stay its own */
    v->items = copy;
    for (uint32_t i = 0; i < v->n; i++) ING_TRY(ing_front_keep(fr, at, &copy[i]));
    return ING_OK;
}

static ing_status expr_sequence(frame *fr, ing_node n, value *out) {
    uint32_t elts = NF(fr->t, n, TUPLE)->elts, count = list_len(fr->t, elts);
    uint8_t kind = fr->t->nodes.at[n].kind == ING_NODE_TUPLE ? V_TUPLE : V_LIST;
    ing_vec(value) items = {0};
    ing_status s = ING_OK;
    for (uint32_t i = 0; i < count && s == ING_OK; i++) {
        ing_node e = list_at(fr->t, elts, i);
        bool star = fr->t->nodes.at[e].kind == ING_NODE_STARRED;
        value v, *spread = &v;
        uint32_t m = 1;
        if (items.len && !fr->in_static && ing_front_may_change(fr->t, e, 0))
            for (uint32_t k = 0; k < items.len && s == ING_OK; k++)
                s = ing_front_keep(fr, e, &items.at[k]);
        if (s == ING_OK)
            s = ing_front_expr_forced(fr, star ? NF(fr->t, e, STARRED)->value : e, &v);
        if (s == ING_OK && star) {
            bool ok = false;
            s = ing_front_items(fr, e, &v, &spread, &m, &ok);
            if (s == ING_OK && !ok)
                s = ing_front_fail_at(fr, e, ING_TYPE, "use a tuple or a list",
                                      "this cannot be unpacked: %s",
                                      ing_front_describe(fr, &v));
        }
        for (uint32_t k = 0; k < m && s == ING_OK; k++)
            if (!ing_vec_push(&items, spread[k]))
                s = ing_fail(fr->lo->e, ING_MEMORY,
                             "no memory while compiling a kernel");
    }
    if (s == ING_OK) {
        value *at = ING_NEW_ARRAY(&fr->lo->arena, (size_t)items.len + 1, value);
        if (at && items.len) memcpy(at, items.at, items.len * sizeof *at);
        *out = ing_front_seq(kind, at, at ? items.len : 0);
    }
    ing_vec_fini(&items);
    return s;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Names that mean something on arrays: only for them is a thing looked at first. */
bool ing_front_is_array_attr(const char *name) {
    return strcmp(name, "shape") == 0 || strcmp(name, "grad") == 0 ||
           strcmp(name, "dtype") == 0 || strcmp(name, "ndim") == 0;
}

/* What to write for an attribute that arrays have in NumPy. */
static const char *array_remedy(const char *name) {
    static const char sums[] =
        "compute it in a loop over the elements: s += a[i], or qd.max(s, a[i])";
    static const char copies[] =
        "pass an array b of that shape too, and copy in a loop: `for i in a: b[i] = "
        "a[i]`";
    static const char parts[] = "exchange the indices where it is read: a[j, i]";
    static const char reshaped[] =
        "reshape it outside of the kernel, or compute the index: a[i * m + j]";
    static const struct {
        const char *name, *remedy;
    } known[] = {
        {"sum", sums},
        {"min", sums},
        {"max", sums},
        {"mean", sums},
        {"prod", sums},
        {"dot", sums},
        {"std", sums},
        {"var", sums},
        {"argmin", sums},
        {"argmax", sums},
        {"any", sums},
        {"all", sums},
        {"copy", copies},
        {"copy_from", copies},
        {"T", parts},
        {"transpose", parts},
        {"reshape", reshaped},
        {"flatten", reshaped},
        {"ravel", reshaped},
        {"flat", reshaped},
        {"fill", "assign the elements in a loop: `for i in a: a[i] = x`"},
        {"size", "multiply the extents: a.shape[0] * a.shape[1]"},
        {"astype", "convert its elements: qd.cast(a[i], qd.i32)"},
        {"item", "read an element: a[i]"},
        {"tolist", "call it outside of the kernel"},
        {"tobytes", "call it outside of the kernel"},
        {"to_numpy", "call it outside of the kernel"},
        {"sort", "qd.algorithms.parallel_sort(a) sorts it outside of the kernel, "
                 "qd.algorithms.sort in it"},
        {"cumsum", "qd.algorithms.exclusive_scan_add adds up in a kernel"},
        {"append", "arrays keep their length: make it long enough, and count what is "
                   "used: `k = qd.atomic_add(n[0], 1); a[k] = x`"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) return known[i].remedy;
    return NULL;
}

static ing_status attr_of_field(frame *fr, ing_node n, const value *v, const char *name,
                                value *out) {
    bool done = false;
    ING_TRY(ing_front_field_attr(fr, n, v, name, out, &done));
    if (done && out->kind != V_VOID) return ING_OK;
    const char *remedy = array_remedy(name);
    return ing_front_fail_at(fr, n, ING_ATTRIBUTE,
                             remedy ? remedy : "fields have shape, dtype and grad",
                             "a field has no attribute '%s' in kernels", name);
}

/* Names of NumPy's methods that tell something of all elements: an array is looked at before
 * one is called, because only one that was found outside, and in qd.static, has them. */
bool ing_front_is_array_method(const char *name) {
    static const char *const names[] = {
        "all",       "any",     "argmax",   "argmin",   "argsort",      "astype",
        "clip",      "cumprod", "cumsum",   "diagonal", "dot",          "flatten",
        "item",      "max",     "mean",     "min",      "nonzero",      "prod",
        "ravel",     "repeat",  "reshape",  "round",    "searchsorted", "squeeze",
        "std",       "sum",     "swapaxes", "take",     "tolist",       "trace",
        "transpose", "var",     NULL};
    for (const char *const *n = names; *n; n++)
        if (strcmp(name, *n) == 0) return true;
    return false;
}

ing_status ing_front_array_attr(frame *fr, ing_node n, const value *a, const char *name,
                                value *out) {
    const ing_type_info *t = ing_ir_type(fr->lo->mod, a->type);
    if (t->place) return attr_of_field(fr, n, a, name, out);
    if (strcmp(name, "shape") == 0) {
        if (ing_front_is_constant(fr, a))
            return ing_front_thing_attr(fr, n, a->gref, name, out);
        *out = (value){.kind = V_SHAPE, .inst = a->inst, .n = t->rank};
        return ING_OK;
    }
    if (strcmp(name, "ndim") == 0) {
        *out = ing_front_int(t->rank);
        return ING_OK;
    }
    if (strcmp(name, "dtype") == 0) {
        const ing_type_info *elem = ing_ir_type(fr->lo->mod, t->elem);
        *out = (value){.kind = V_DTYPE, .dtype = elem->dtype, .bound = true};
        return ING_OK;
    }
    /* The array of gradients is an argument of its own, reached by way of the array; one
     * without has None there, as in Python. */
    if (strcmp(name, "grad") == 0 && !t->grad) {
        *out = ing_front_none();
        return ING_OK;
    }
    bool whole = ing_front_is_array_method(name) || strcmp(name, "size") == 0;
    if (a->gref &&
        (strcmp(name, "grad") == 0 || (whole && ing_front_is_constant(fr, a))))
        return ing_front_thing_attr(fr, n, a->gref, name, out);
    const char *remedy = array_remedy(name);
    return ing_front_fail_at(fr, n, ING_ATTRIBUTE,
                             remedy ? remedy
                                    : "arrays have shape, dtype and ndim in "
                                      "kernels",
                             "arrays have no attribute '%s' in kernels", name);
}

static const char *value_remedy(const value *v) {
    if (v->kind == V_LIST || v->kind == V_TUPLE)
        return "vectors have norm(), dot(), x, y, ...: make it one with "
               "qd.Vector([...])";
    return "use the value itself";
}

/* A number of Python's own that the kernel's text holds or made. */
static bool is_plain_number(const value *v) {
    return (v->kind == V_BOOL && !v->bound) ||
           ((v->kind == V_INT || v->kind == V_FLOAT) && !v->dtype);
}

ing_status ing_front_attr_value(frame *fr, ing_node n, value *v, value *out) {
    const struct nf_ATTRIBUTE *f = NF(fr->t, n, ATTRIBUTE);
    const char *name = ing_front_atom_text(fr, f->attr);
    bool of_enum = strcmp(name, "value") == 0;
    if (v->kind == V_THING &&
        (ing_front_is_array_attr(name) || ing_front_is_view_attr(name) || of_enum))
        ING_TRY(ing_front_force(fr, f->value, v));
    if (of_enum && v->kind == V_SEEN && v->seen == ING_GATE_ENUM && v->bound) {
        *out = *v;
        return ing_front_enum_value(fr, n, out);
    }
    if (v->kind == V_VIEW) return ing_front_view_attr(fr, n, v, name, out);
    if (v->kind == V_ARRAY) return ing_front_array_attr(fr, n, v, name, out);
    if (v->kind == V_BUNDLE) return attr_of_field(fr, n, v, name, out);
    if (v->kind == V_STRUCT) return ing_front_struct_attr(fr, n, v, name, out);
    if (ing_front_is_tensor(fr, v) && (!v->gref || ing_front_is_tensor_attr(name)))
        return ing_front_tensor_attr(fr, n, v, name, out);
    if (ing_front_is_runtime(v))
        return ing_front_fail_at(
            fr, n, ING_ATTRIBUTE,
            strcmp(name, "astype") == 0 ? "convert it with qd.cast(x, qd.i32)"
                                        : "use the number itself",
            "%s has no attribute '%s'", ing_front_describe(fr, v), name);
    if (!v->gref && (v->kind == V_STR || is_plain_number(v)))
        ING_TRY(ing_front_as_thing(fr, f->value, v, &v->gref));
    if (!v->gref)
        return ing_front_fail_at(fr, n, ING_ATTRIBUTE, value_remedy(v),
                                 "%s has no attribute '%s' in kernels",
                                 ing_front_describe(fr, v), name);
    ING_TRY(ing_front_thing_attr(fr, n, v->gref, name, out));
    if (out->kind != V_VOID) return ING_OK;
    const char *remedy = ing_front_suggest(fr, v->gref, name);
    ING_TRY(ing_front_force(fr, f->value, v));
    if (v->kind == V_ARRAY) return ing_front_array_attr(fr, n, v, name, out);
    if (v->kind == V_SEEN && v->seen == ING_GATE_DICT && !remedy)
        remedy = ing_arena_printf(&fr->lo->arena, "read an item of it: d['%s']", name);
    if (!remedy) remedy = "set it before the kernel is called, or correct the name";
    return ing_front_fail_at(fr, n, ING_ATTRIBUTE, remedy, "%s has no attribute '%s'",
                             ing_front_describe(fr, v), name);
}

ing_status ing_front_element_member(frame *fr, ing_node n, value *out, bool *done) {
    const struct nf_ATTRIBUTE *f = NF(fr->t, n, ATTRIBUTE);
    const struct nf_SUBSCRIPT *of = NF(fr->t, f->value, SUBSCRIPT);
    uint32_t outer = fr->in_index;
    value base;
    fr->in_index = 0;
    ing_status s = ing_front_expr_forced(fr, of->value, &base);
    const value *member =
        s == ING_OK ? ing_front_bundle_member(&base, ing_front_atom_text(fr, f->attr))
                    : NULL;
    if (member) base = *member;
    if (member) s = ing_front_force(fr, f->value, &base);
    if (s == ING_OK) s = ing_front_subscript_value(fr, f->value, &base, of->slice, out);
    fr->in_index = outer;
    *done = member != NULL;
    return s;
}

static ing_status expr_attribute(frame *fr, ing_node n, value *out) {
    value v;
    ing_node of = NF(fr->t, n, ATTRIBUTE)->value;
    bool done = false;
    if (fr->t->nodes.at[of].kind == ING_NODE_SUBSCRIPT) {
        ING_TRY(ing_front_element_member(fr, n, &v, &done));
        *out = v;
        if (done) return ING_OK;
    } else {
        ING_TRY(ing_front_expr(fr, of, &v));
    }
    return ing_front_attr_value(fr, n, &v, out);
}

/* ---- subscripts -------------------------------------------------------------------------------- */

/* Index as the IR takes it: i32 or i64. `negative`: there may be such. */
static ing_status index_inst(frame *fr, ing_node at, uint32_t axis, const value *v,
                             bool negative, uint32_t *inst, ing_dtype *type) {
    if (v->kind == V_SLICE)
        return ing_front_fail_at(fr, at, ING_SYNTAX, "loop over the indices",
                                 "slices of arrays are not supported in kernels");
    if (v->kind == V_INT && v->i < 0 && !v->wide && !negative)
        return ing_front_fail_at(
            fr, at, ING_SYNTAX, "count from the end with a.shape[k] - 1",
            "Negative indices are not supported in %s.", ing_front_kernels(fr));
    if (v->kind == V_INT && !v->dtype && !v->wide) { /* whatever default_ip is */
        *type = v->i <= INT32_MAX && v->i >= INT32_MIN ? ING_I32 : ING_I64;
        *inst = ing_ir_const_int(&fr->b, *type, v->i);
        return ING_OK;
    }
    value x;
    if (!ing_front_is_scalar(v))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "give one integer for each axis of the array",
            "index %u must be an integer; this is %s", axis, ing_front_describe(fr, v));
    ING_TRY(ing_front_load(fr, at, v, &x));
    ing_dtype t = v_type(&x);
    if (ing_dtype_is_float(t))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "convert it: int(x), or use // for the division",
            "indices must be integers, however '%s' is provided as index %u",
            ing_dtype_name(t), axis);
    *type = t == ING_U32 || ing_dtype_bits(t) == 64 ? ING_I64 : ING_I32;
    *inst = ing_front_emit_cast(fr, x.inst, t, *type);
    return ING_OK;
}

/* boundary="clamp": at least 0, at most the last one. */
static uint32_t clamped(frame *fr, uint32_t array, uint32_t axis, uint32_t index,
                        ing_dtype t) {
    ing_ir_builder *b = &fr->b;
    uint32_t dim = ing_ir_emit(b, ING_OP_DIM, t, array, axis, 0);
    uint32_t one = ing_ir_const_int(b, t, 1), zero = ing_ir_const_int(b, t, 0);
    uint32_t last = ing_ir_emit(b, ING_OP_SUB, t, dim, one, 0);
    uint32_t low = ing_ir_emit(b, ING_OP_MIN, t, index, last, 0);
    return ing_ir_emit(b, ING_OP_MAX, t, low, zero, 0);
}

/* Is there a None among the indices? */
static bool adds_axis(const value *index, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (index[i].kind == V_NONE) return true;
    return false;
}

ing_status ing_front_array_element(frame *fr, ing_node at, const value *array,
                                   const value *index, uint32_t n, ing_node slice,
                                   value *out) {
    const ing_type_info *info = ing_ir_type(fr->lo->mod, array->type);
    uint32_t rank = info->rank, inst[ING_MAX_NDIM];
    ing_type elem = info->elem;
    const ing_place *field = info->place;
    if (n != rank)
        return ing_front_fail_at(fr, at, ING_INDEX,
                                 rank ? adds_axis(index, n)
                                            ? "leave out None (np.newaxis): one index "
                                              "per axis"
                                        : n > rank && elem >= ING_DTYPE_N
                                            ? "give one index per axis, and those of "
                                              "the element after them: a[i][k]"
                                            : "give one index per axis"
                                      : "read a single value with a[()]",
                                 "%s with dim %u accessed with indices of dim %u",
                                 field ? "Field" : "Array", rank, n);
    uint32_t elts = fr->t->nodes.at[slice].kind == ING_NODE_TUPLE
                        ? NF(fr->t, slice, TUPLE)->elts
                        : 0;
    for (uint32_t i = 0; i < n; i++) {
        ing_node where =
            elts && list_len(fr->t, elts) == n ? list_at(fr->t, elts, i) : slice;
        ing_dtype t = ING_VOID;
        bool from = field && field->from[i] < 0;
        ING_TRY(index_inst(fr, where, i, &index[i], from, &inst[i], &t));
        if (field) {
            ING_TRY(ing_front_field_bounds(fr, where, array, i, inst[i], t));
            inst[i] = ing_front_field_index(fr, field, i, inst[i], t);
            continue;
        }
        if (array->clamp) {
            inst[i] = clamped(fr, array->inst, i, inst[i], t);
            continue;
        }
        ING_TRY(ing_front_check_bounds(fr, where, array->inst, i, inst[i], t));
    }
    fr->b.loc = at;
    *out = (value){.kind = V_REF, .shared = true, .type = elem, .clamp = array->clamp};
    out->inst = ing_ir_elem(&fr->b, array->inst, inst, n);
    return ING_OK;
}

static ing_status fail_index(frame *fr, ing_node at, const value *base,
                             const value *index) {
    if (ing_front_is_runtime(index))
        return ing_front_fail_at(
            fr, at, ING_COMPILE,
            base->kind == V_DICT
                ? "keep numbers that the run time chooses from in an array"
                : "make the index a compile-time value (for i in qd.static(range(n))), "
                  "or use an array",
            "%s can only be indexed with a compile-time %s",
            ing_front_describe(fr, base), base->kind == V_DICT ? "key" : "integer");
    return ing_front_fail_at(
        fr, at, ING_TYPE, "use a compile-time integer", "%s cannot be indexed with %s",
        ing_front_describe(fr, base), ing_front_describe(fr, index));
}

/* Letters as one string. */
static ing_status join(frame *fr, const value *items, uint32_t n, value *out) {
    size_t size = 0;
    for (uint32_t i = 0; items && i < n; i++) size += items[i].n;
    char *s = ing_arena_alloc(&fr->lo->arena, size + 1);
    if (!s) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    *out = (value){.kind = V_STR, .s = s, .n = (uint32_t)size};
    for (uint32_t i = 0; items && i < n; i++) {
        memcpy(s, items[i].s, items[i].n);
        s += items[i].n;
    }
    *s = 0;
    return ING_OK;
}

static ing_status slice_items(frame *fr, ing_node at, const value *base,
                              const value *sl, value *items, uint32_t n, value *out) {
    int64_t step = sl->items[2].kind == V_INT ? sl->items[2].i : 1;
    for (int k = 0; k < 3; k++)
        if (sl->items[k].kind != V_INT && sl->items[k].kind != V_NONE)
            return fail_index(fr, at, base, &sl->items[k]);
    if (step == 0)
        return ing_front_fail_at(fr, at, ING_VALUE, "leave the step out",
                                 "a slice with a step of zero");
    int64_t part[2] = {step > 0 ? 0 : (int64_t)n - 1, step > 0 ? (int64_t)n : -1};
    for (int k = 0; k < 2; k++) {
        if (sl->items[k].kind != V_INT) continue;
        int64_t i = sl->items[k].i, low = step > 0 ? 0 : -1;
        int64_t high = step > 0 ? (int64_t)n : (int64_t)n - 1;
        if (i < 0) i += n;
        part[k] = i < low ? low : i > high ? high : i;
    }
    value *at_ = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n + 1, value);
    uint32_t count = 0;
    for (int64_t i = part[0]; at_ && (step > 0 ? i < part[1] : i > part[1]); i += step)
        at_[count++] = items[i];
    if (base->kind == V_STR) return join(fr, at_, count, out);
    bool list =
        base->kind == V_LIST || (base->kind == V_SEEN && base->seen == ING_GATE_LIST);
    *out = ing_front_seq(list ? V_LIST : V_TUPLE, at_, count);
    return ING_OK;
}

static ing_status fail_range(frame *fr, ing_node at, const value *base,
                             const value *index) {
    return ing_front_fail_at(fr, at, ING_INDEX, "items are counted from 0",
                             "index %lld of %s", (long long)index->i,
                             ing_front_describe(fr, base));
}

static ing_status sequence_item(frame *fr, ing_node at, const value *base,
                                const value *index, value *out) {
    value *items;
    uint32_t n = 0;
    bool ok = false;
    if (base->kind == V_SHAPE &&
        index->kind == V_INT) { /* only the axis that is asked */
        int64_t k = index->i < 0 ? index->i + base->n : index->i;
        if (k < 0 || k >= base->n)
            return ing_front_fail_at(fr, at, ING_INDEX,
                                     "axes are counted from 0; a.ndim is their number",
                                     "the array has %u ax%s; no axis %lld", base->n,
                                     base->n == 1 ? "is" : "es", (long long)index->i);
        *out = ing_front_rt(
            ing_ir_emit(&fr->b, ING_OP_DIM, ING_I32, base->inst, (uint32_t)k, 0),
            ING_I32);
        return ING_OK;
    }
    bool number = index->kind == V_INT || index->kind == V_BOOL;
    if (number && base->kind == V_SEEN) { /* how many there are does not matter */
        ing_gate_key key = {.i = index->i};
        ING_TRY(ing_front_thing_item(fr, at, base->gref, &key, out));
        return out->kind == V_VOID ? fail_range(fr, at, base, index) : ING_OK;
    }
    ING_TRY(ing_front_sequence(fr, at, base, &items, &n, &ok));
    if (index->kind == V_SLICE) return slice_items(fr, at, base, index, items, n, out);
    if (!number) return fail_index(fr, at, base, index);
    int64_t k = index->i < 0 ? index->i + n : index->i;
    if (k < 0 || k >= n) return fail_range(fr, at, base, index);
    *out = items[k];
    out->shared |= base->shared;
    return ING_OK;
}

/* range(n)[k] of a range whose bounds are known. A part of it would be a range again. */
static ing_status range_item(frame *fr, ing_node at, const value *base,
                             const value *index, value *out, bool *done) {
    value *items;
    uint32_t n = 0;
    *done = false;
    if (base->kind != V_ITER || base->tag != ING_IN_PY_RANGE || index->kind != V_INT)
        return ING_OK;
    ING_TRY(ing_front_items(fr, at, base, &items, &n, done));
    if (!*done) return ING_OK;
    int64_t k = index->i < 0 ? index->i + n : index->i;
    if (k < 0 || k >= n) return fail_range(fr, at, base, index);
    *out = items[k];
    return ING_OK;
}

static ing_status fail_key(frame *fr, ing_node at, const value *base,
                           const value *index) {
    return ing_front_fail_at(fr, at, ING_COMPILE,
                             "put the item in before the kernel runs, or ask with "
                             "qd.static(key in d)",
                             "%s has no item for %s", ing_front_describe(fr, base),
                             ing_front_describe(fr, index));
}

static ing_status dict_item(frame *fr, ing_node at, const value *base,
                            const value *index, value *out) {
    ing_gate_key k;
    if (index->kind != V_STR && index->kind != V_INT)
        return fail_index(fr, at, base, index);
    ING_TRY(ing_front_key(fr, at, index, &k));
    ING_TRY(ing_front_thing_item(fr, at, base->gref, &k, out));
    if (out->kind != V_VOID) return ING_OK;
    return fail_key(fr, at, base, index);
}

static ing_status own_dict_item(frame *fr, ing_node at, const value *base,
                                const value *index, value *out) {
    bool found = false;
    if (!ing_front_is_static(index)) return fail_index(fr, at, base, index);
    ING_TRY(ing_front_dict_get(fr, at, base, index, out, &found));
    if (found) out->shared |= base->shared;
    return found ? ING_OK : fail_key(fr, at, base, index);
}

/* Vectors and tuples among indices stand for their parts: how many there are, or (`to` given)
 * which. The depth of the text bounds the recursion. */
static ing_status index_parts(frame *fr, ing_node slice, value *items, uint32_t n,
                              value *to, uint32_t *count) {
    for (uint32_t i = 0; i < n; i++) {
        value *parts = NULL;
        uint32_t m = 0;
        bool ok = false;
        tensor_shape s;
        ING_TRY(ing_front_force(fr, slice, &items[i]));
        bool vector = ing_front_tensor_shape(fr, &items[i], &s) && s.rank == 1;
        if (vector || (ing_front_is_box(&items[i]) && items[i].kind != V_DICT))
            ING_TRY(ing_front_items(fr, slice, &items[i], &parts, &m, &ok));
        if (ok)
            ING_TRY(index_parts(fr, slice, parts, m, to, count));
        else if (to)
            to[(*count)++] = items[i];
        else
            (*count)++;
    }
    return ING_OK;
}

/* The indices of an array: `a[None]` has none. */
static ing_status index_items(frame *fr, ing_node slice, value *index, value **out,
                              uint32_t *n) {
    bool ok = true, plain = true;
    value *items = index;
    uint32_t count = 0, given = index->kind != V_NONE;
    if (given && !ing_front_is_scalar(index)) {
        ING_TRY(ing_front_items(fr, slice, index, &items, &given, &ok));
        if (!ok) items = index, given = 1;
    }
    *out = items;
    *n = given;
    ING_TRY(index_parts(fr, slice, items, given, NULL, &count));
    for (uint32_t i = 0; i < given; i++) plain &= ing_front_is_scalar(&items[i]);
    if (plain) return ING_OK;
    *out = ING_NEW_ARRAY(&fr->lo->arena, (size_t)count + 1, value);
    if (!*out) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    *n = 0;
    return index_parts(fr, slice, items, given, *out, n);
}

static bool is_known(const value *index, uint32_t n) {
    bool known = n > 0;
    for (uint32_t i = 0; i < n; i++) known &= index[i].kind == V_INT;
    return known;
}

/* a[1, 2] of an array of constants, as a[1][2]. */
static ing_status constant_item(frame *fr, ing_node at, const value *base,
                                const value *index, uint32_t n, value *out) {
    *out = *base;
    for (uint32_t i = 0; i < n; i++) {
        ing_gate_key k;
        ING_TRY(ing_front_key(fr, at, &index[i], &k));
        ING_TRY(ing_front_thing_item(fr, at, out->gref, &k, out));
        if (out->kind == V_VOID) return fail_key(fr, at, base, &index[i]);
    }
    return ING_OK;
}

ing_status ing_front_subscript_value(frame *fr, ing_node at, const value *base,
                                     ing_node slice, value *out) {
    value index;
    bool address =
        base->kind == V_ARRAY || base->kind == V_VIEW || base->kind == V_BUNDLE;
    fr->in_index += address;
    ing_status s = ing_front_expr_forced(fr, slice, &index);
    fr->in_index -= address;
    ING_TRY(s);
    fr->b.loc = at;
    if (base->kind == V_VIEW)
        return ing_front_view_subscript(fr, at, base, &index, out);
    if (base->kind == V_ARRAY && index.kind == V_SLICE &&
        !ing_front_field_place(fr, base))
        return ing_front_array_slice(fr, at, base, &index, out);
    if (base->kind == V_ARRAY || base->kind == V_BUNDLE) {
        value *items;
        uint32_t n;
        ING_TRY(index_items(fr, slice, &index, &items, &n));
        if (ing_front_is_constant(fr, base) && is_known(items, n))
            return constant_item(fr, at, base, items, n, out);
        return ing_front_bundle_element(fr, at, base, items, n, slice, out);
    }
    if (ing_front_is_tensor(fr, base))
        return ing_front_tensor_subscript(fr, at, base, &index, out);
    if (base->kind == V_STRUCT) return ing_front_struct_item(fr, at, base, &index, out);
    if (base->kind == V_TUPLE || base->kind == V_LIST || base->kind == V_SHAPE ||
        base->kind == V_STR ||
        (base->kind == V_SEEN &&
         (base->seen == ING_GATE_TUPLE || base->seen == ING_GATE_LIST)))
        return sequence_item(fr, at, base, &index, out);
    if (base->kind == V_SEEN &&
        (base->seen == ING_GATE_DICT ||
         (base->seen == ING_GATE_OBJECT && ing_front_is_static(&index))))
        return dict_item(fr, at, base, &index, out);
    if (base->kind == V_DICT) return own_dict_item(fr, at, base, &index, out);
    bool done = false;
    ING_TRY(range_item(fr, at, base, &index, out, &done));
    if (done) return ING_OK;
    return ing_front_fail_at(
        fr, at, ING_TYPE,
        base->kind == V_NONE   ? "arrays have a gradient if they are made with "
                                 "needs_grad=True; qd.static(x is not None) asks "
                                 "whether something is there"
        : base->kind == V_TYPE ? "call the type to make one: v = vec3(0.0); or write "
                                 "v = qd.Vector([0.0, 0.0, 0.0])"
                               : "arrays, vectors, tuples, lists and dicts can be "
                                 "indexed",
        "%s cannot be indexed", ing_front_describe(fr, base));
}

static ing_status expr_subscript(frame *fr, ing_node n, value *out) {
    const struct nf_SUBSCRIPT *f = NF(fr->t, n, SUBSCRIPT);
    value base;
    uint32_t outer = fr->in_index;
    fr->in_index = 0;
    ing_status s = ing_front_expr_forced(fr, f->value, &base);
    if (s == ING_OK) s = ing_front_subscript_value(fr, n, &base, f->slice, out);
    fr->in_index = outer;
    return s;
}

static ing_status expr_slice(frame *fr, ing_node n, value *out) {
    const struct nf_SLICE *f = NF(fr->t, n, SLICE);
    ing_node part[3] = {f->lower, f->upper, f->step};
    value *items = ING_NEW_ARRAY(&fr->lo->arena, 3, value);
    if (!items)
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    for (int k = 0; k < 3; k++) {
        items[k] = ing_front_none();
        if (part[k]) ING_TRY(ing_front_expr_forced(fr, part[k], &items[k]));
    }
    *out = ing_front_seq(V_SLICE, items, 3);
    return ING_OK;
}

/* ---- the table -------------------------------------------------------------------------------------- */

static const expr_fn table[ING_NODE_N] = {
    [ING_NODE_BOOLOP] = ing_front_expr_boolop,
    [ING_NODE_NAMEDEXPR] = ing_front_expr_named,
    [ING_NODE_BINOP] = ing_front_expr_binop,
    [ING_NODE_UNARYOP] = ing_front_expr_unary,
    [ING_NODE_IFEXP] = ing_front_expr_ifexp,
    [ING_NODE_COMPARE] = ing_front_expr_compare,
    [ING_NODE_CALL] = ing_front_expr_call,
    [ING_NODE_CONSTANT] = expr_constant,
    [ING_NODE_ATTRIBUTE] = expr_attribute,
    [ING_NODE_SUBSCRIPT] = expr_subscript,
    [ING_NODE_NAME] = expr_name,
    [ING_NODE_LIST] = expr_sequence,
    [ING_NODE_TUPLE] = expr_sequence,
    [ING_NODE_SLICE] = expr_slice,
    [ING_NODE_LISTCOMP] = ing_front_expr_listcomp,
    [ING_NODE_GENERATOR] = ing_front_expr_listcomp,
    [ING_NODE_DICT] = ing_front_expr_dict,
    [ING_NODE_DICTCOMP] = ing_front_expr_dictcomp,
    [ING_NODE_JOINEDSTR] = ing_front_expr_joined,
};

/* Arithmetic stays arithmetic of a subscript (R22) under what hands an overflow on to the
 * subscript: sums, products, tuples. A remainder or a mask makes an index of what wrapped. */
static bool keeps_index(const frame *fr, ing_node n) {
    uint32_t op;
    switch ((ing_front_kind)fr->t->nodes.at[n].kind) {
    case ING_NODE_TUPLE: return true;
    case ING_NODE_UNARYOP:
        op = NF(fr->t, n, UNARYOP)->op;
        return op == ING_AST_USub || op == ING_AST_UAdd;
    case ING_NODE_BINOP:
        op = NF(fr->t, n, BINOP)->op;
        return op == ING_AST_Add || op == ING_AST_Sub || op == ING_AST_Mult;
    default: return false;
    }
}

ing_status ing_front_expr(frame *fr, ing_node n, value *out) {
    uint8_t kind = fr->t->nodes.at[n].kind;
    *out = (value){0};
    if (!table[kind]) return ing_front_unsupported(fr, n);
    uint32_t index = fr->in_index;
    if (index && !keeps_index(fr, n)) fr->in_index = 0;
    ing_status s = ing_front_deeper(fr, n);
    fr->b.loc = n;
    if (s == ING_OK) s = table[kind](fr, n, out);
    fr->lo->depth--;
    fr->in_index = index;
    return s;
}

ing_status ing_front_expr_forced(frame *fr, ing_node n, value *out) {
    ING_TRY(ing_front_expr(fr, n, out));
    return ing_front_force(fr, n, out);
}

ing_status ing_front_expr_static(frame *fr, ing_node n, value *out) {
    fr->in_static++;
    ing_status s = ing_front_expr_forced(fr, n, out);
    fr->in_static--;
    return s;
}
