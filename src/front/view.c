/* Views: a stretch of a 1-d array, `data[8:16]` outside of kernels or inside of them. A
 * view is an array, an offset and a size; all three are values of their own, so funcs take
 * it as they take a tuple. Reached from the tables of expr.c, call.c and intrin.c. */
#include "front/front_int.h"

#include "gen/abi.h"

#include <string.h>

enum { VIEW_ARRAY, VIEW_OFFSET, VIEW_SIZE, VIEW_PARTS };

/* Attributes of the Python class, and parameters of its constructor. */
static const char *const part_names[VIEW_PARTS] = {"arr", "offset", "size"};

static ing_status view_new(frame *fr, const value *array, const value *offset,
                           const value *size, value *out) {
    value *items = ING_NEW_ARRAY(&fr->lo->arena, VIEW_PARTS, value);
    if (!items)
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    items[VIEW_ARRAY] = *array;
    items[VIEW_OFFSET] = *offset;
    items[VIEW_SIZE] = *size;
    *out = ing_front_seq(V_VIEW, items, VIEW_PARTS);
    return ING_OK;
}

ing_status ing_front_view_thing(frame *fr, ing_node at, value *v) {
    value part[VIEW_PARTS];
    for (int i = 0; i < VIEW_PARTS; i++) {
        ING_TRY(ing_front_thing_attr(fr, at, v->gref, part_names[i], &part[i]));
        ING_TRY(ing_front_force(fr, at, &part[i]));
    }
    return view_new(fr, &part[VIEW_ARRAY], &part[VIEW_OFFSET], &part[VIEW_SIZE], v);
}

ing_status ing_front_check_view(frame *fr, ing_node at, const ing_gate_param *p,
                                const value *v) {
    if (v->kind == V_VIEW)
        return ing_front_check_array(fr, at, p, &v->items[VIEW_ARRAY]);
    return ing_front_fail_at(fr, at, ING_TYPE, "pass a slice of an array: data[:n]",
                             "the parameter is annotated as a BufferView; the argument "
                             "is %s",
                             ing_front_describe(fr, v));
}

/* ---- checks of debug mode ---------------------------------------------------------------- */

static ing_status wants_checks(frame *fr, ing_node at, bool *out) {
    int64_t debug = 0, check = 0;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_debug, &debug));
    if (!debug)
        ING_TRY(ing_front_config_get(fr, at, ING_SET_check_out_of_bound, &check));
    *out = debug || check;
    return ING_OK;
}

/* Stops when `bad`: a number was not within offset and size. */
static void stop_if(frame *fr, ing_node at, uint32_t bad, uint32_t what,
                    const uint32_t *numbers) {
    ing_ir_builder *b = &fr->b;
    b->loc = at;
    ing_ir_block_begin(b);
    uint32_t ids[4] = {ing_ir_const_int(b, ING_I32, what), numbers[0], numbers[1],
                       numbers[2]};
    ing_ir_emit_list(b, ING_OP_DETAIL, 0, ids, 4);
    uint32_t no = ing_ir_const_int(b, ING_U1, 0);
    ing_ir_emit(b, ING_OP_CHECK, 0, no, ING_ABI_VIEW, 0);
    uint32_t block = ing_ir_block_end(b);
    ing_ir_emit(b, ING_OP_IF, 0, bad, block, 0);
}

static uint32_t either(frame *fr, uint32_t a, uint32_t b) {
    return ing_ir_emit(&fr->b, ING_OP_OR, ING_U1, a, b, 0);
}

/* A part of a view as an i64. */
static ing_status wide(frame *fr, ing_node at, const value *v, uint32_t *inst) {
    return ing_front_convert(fr, at, v, ING_I64, inst);
}

/* The stretch [offset, offset + size) must lie within `extent` elements. */
static ing_status check_stretch(frame *fr, ing_node at, uint32_t what,
                                const value *offset, const value *size,
                                uint32_t extent) {
    ing_ir_builder *b = &fr->b;
    uint32_t from = 0, n = 0;
    ING_TRY(wide(fr, at, offset, &from));
    ING_TRY(wide(fr, at, size, &n));
    uint32_t zero = ing_ir_const_int(b, ING_I64, 0);
    uint32_t end = ing_ir_emit(b, ING_OP_ADD, ING_I64, from, n, 0);
    uint32_t no_size = ing_ir_emit(b, ING_OP_LT, ING_U1, n, zero, 0);
    uint32_t before = ing_ir_emit(b, ING_OP_LT, ING_U1, from, zero, 0);
    uint32_t bad = either(fr, before, no_size);
    bad = either(fr, bad, ing_ir_emit(b, ING_OP_GT, ING_U1, end, extent, 0));
    uint32_t numbers[3] = {extent, from, n};
    stop_if(fr, at, bad, what, numbers);
    return ING_OK;
}

/* ---- making ------------------------------------------------------------------------------ */

/* An integer that says where a view begins or how long it is. */
static ing_status part_of(frame *fr, ing_node at, const char *what, value *v) {
    ING_TRY(ing_front_force(fr, at, v));
    bool ok = v->kind == V_INT || (ing_front_is_runtime(v) && v->type < ING_DTYPE_N &&
                                   !ing_dtype_is_float(v_type(v)));
    if (!ok)
        return ing_front_fail_at(fr, at, ING_TYPE, "use an integer",
                                 "the %s of a view must be an integer; this is %s",
                                 what, ing_front_describe(fr, v));
    return ing_front_load(fr, at, v, v);
}

static ing_status add(frame *fr, ing_node at, const value *a, const value *b,
                      value *out) {
    return ing_front_binary(fr, at, ING_AST_Add, a, b, out);
}

static ing_status make_within(frame *fr, ing_node at, const value *view, value offset,
                              value size, value *out) {
    bool check = false;
    ING_TRY(wants_checks(fr, at, &check));
    if (check) {
        uint32_t extent = 0;
        ING_TRY(wide(fr, at, &view->items[VIEW_SIZE], &extent));
        ING_TRY(check_stretch(fr, at, ING_ABI_VIEW_SUBVIEW, &offset, &size, extent));
    }
    value sum;
    ING_TRY(add(fr, at, &view->items[VIEW_OFFSET], &offset, &sum));
    return view_new(fr, &view->items[VIEW_ARRAY], &sum, &size, out);
}

/* All of a 1-d array. */
static ing_status whole(frame *fr, ing_node at, const value *array, value *out) {
    const ing_type_info *t = ing_ir_type(fr->lo->mod, array->type);
    if (t->rank != 1)
        return ing_front_fail_at(fr, at, ING_TYPE, "use an array with one axis",
                                 "a BufferView requires a 1D ndarray; this has %u axes",
                                 t->rank);
    value zero = ing_front_rt(ing_ir_const_int(&fr->b, ING_I32, 0), ING_I32);
    value size = ing_front_rt(
        ing_ir_emit(&fr->b, ING_OP_DIM, ING_I32, array->inst, 0, 0), ING_I32);
    return view_new(fr, array, &zero, &size, out);
}

/* Arguments by position or by name, all of them given. */
static ing_status named_args(frame *fr, ing_node n, const char *what,
                             const char *const *names, uint32_t count,
                             const call_args *a, value *part, ing_node *at) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->n && i < count; i++, found++) {
        part[i] = a->at[i];
        at[i] = a->node[i];
    }
    for (uint32_t k = 0; k < a->n_kw; k++)
        for (uint32_t i = a->n; i < count; i++) {
            if (strcmp(names[i], ing_front_atom_text(fr, a->kw_name[k])) != 0) continue;
            part[i] = a->kw[k];
            at[i] = a->kw_node[k];
            found++;
        }
    if (found == count && a->n + a->n_kw == count) return ING_OK;
    return ing_front_fail_at(
        fr, n, ING_TYPE,
        count == VIEW_PARTS ? "it is called with (arr, offset, size)"
                            : "it is called with (offset, size)",
        "%s takes %u arguments, found %u", what, count, a->n + a->n_kw);
}

ing_status ing_front_view_call(frame *fr, ing_node n, const call_args *a, value *out) {
    value part[VIEW_PARTS], all;
    ing_node at[VIEW_PARTS];
    ING_TRY(named_args(fr, n, "BufferView", part_names, VIEW_PARTS, a, part, at));
    ING_TRY(ing_front_force(fr, at[0], &part[0]));
    if (part[0].kind != V_ARRAY)
        return ing_front_fail_at(fr, at[0], ING_TYPE, "pass an array with one axis",
                                 "a BufferView requires a 1D ndarray; this is %s",
                                 ing_front_describe(fr, &part[0]));
    ING_TRY(part_of(fr, at[1], "offset", &part[1]));
    ING_TRY(part_of(fr, at[2], "size", &part[2]));
    ING_TRY(whole(fr, at[0], &part[0], &all));
    bool check = false;
    ING_TRY(wants_checks(fr, n, &check));
    if (check) {
        uint32_t extent = 0;
        ING_TRY(wide(fr, n, &all.items[VIEW_SIZE], &extent));
        ING_TRY(check_stretch(fr, n, ING_ABI_VIEW_MAKE, &part[1], &part[2], extent));
    }
    return view_new(fr, &part[0], &part[1], &part[2], out);
}

ing_status ing_front_view_method(frame *fr, ing_node n, const value *view,
                                 const call_args *a, value *out) {
    value part[2];
    ing_node at[2];
    ING_TRY(named_args(fr, n, "subview", &part_names[VIEW_OFFSET], 2, a, part, at));
    ING_TRY(part_of(fr, at[0], "offset", &part[0]));
    ING_TRY(part_of(fr, at[1], "size", &part[1]));
    return make_within(fr, n, view, part[0], part[1], out);
}

/* ---- reading ----------------------------------------------------------------------------- */

bool ing_front_is_view_attr(const char *name) {
    return strcmp(name, "size") == 0 || strcmp(name, "offset") == 0 ||
           strcmp(name, "subview") == 0;
}

ing_status ing_front_view_attr(frame *fr, ing_node n, const value *v, const char *name,
                               value *out) {
    if (strcmp(name, "size") == 0 || strcmp(name, "offset") == 0) {
        *out = v->items[strcmp(name, "size") == 0 ? VIEW_SIZE : VIEW_OFFSET];
        return ING_OK;
    }
    if (strcmp(name, "shape") == 0) {
        *out = ing_front_seq(V_TUPLE, &v->items[VIEW_SIZE], 1);
        return ING_OK;
    }
    if (strcmp(name, "dtype") == 0 || strcmp(name, "ndim") == 0) {
        value array = v->items[VIEW_ARRAY];
        return ing_front_attr_value(fr, n, &array, out);
    }
    return ing_front_fail_at(fr, n, ING_ATTRIBUTE,
                             "views have size, offset, shape, dtype, ndim and subview",
                             "a view has no attribute '%s' in kernels", name);
}

static ing_status slice_bound(frame *fr, ing_node at, const value *v, const value *none,
                              value *out) {
    *out = *v;
    if (v->kind == V_NONE) {
        *out = *none;
        return ING_OK;
    }
    if (v->kind == V_INT && v->i < 0 && !v->wide)
        return ing_front_fail_at(fr, at, ING_SYNTAX, "count from the end with v.size",
                                 "Negative indices are not supported in %s.",
                                 ing_front_kernels(fr));
    return part_of(fr, at, "bound", out);
}

static ing_status view_slice(frame *fr, ing_node at, const value *view, const value *sl,
                             value *out) {
    value zero = ing_front_int(0), begin, end, size;
    if (sl->items[2].kind != V_NONE)
        return ing_front_fail_at(fr, at, ING_SYNTAX, "leave the step out",
                                 "slices with an explicit step are not supported for "
                                 "views");
    ING_TRY(slice_bound(fr, at, &sl->items[0], &zero, &begin));
    ING_TRY(slice_bound(fr, at, &sl->items[1], &view->items[VIEW_SIZE], &end));
    ING_TRY(ing_front_binary(fr, at, ING_AST_Sub, &end, &begin, &size));
    return make_within(fr, at, view, begin, size, out);
}

ing_status ing_front_array_slice(frame *fr, ing_node at, const value *array,
                                 const value *slice, value *out) {
    value all;
    ING_TRY(whole(fr, at, array, &all));
    return view_slice(fr, at, &all, slice, out);
}

ing_status ing_front_view_subscript(frame *fr, ing_node at, const value *view,
                                    const value *given, value *out) {
    if (given->kind == V_SLICE) return view_slice(fr, at, view, given, out);
    value index = *given;
    if ((index.kind == V_TUPLE || index.kind == V_LIST) && index.n == 1)
        index = index.items[0];
    if (index.kind == V_INT && index.i < 0 && !index.wide)
        return ing_front_fail_at(fr, at, ING_SYNTAX, "count from the end with v.size",
                                 "Negative indices are not supported in %s.",
                                 ing_front_kernels(fr));
    ING_TRY(part_of(fr, at, "index", &index));
    bool check = false;
    ING_TRY(wants_checks(fr, at, &check));
    ing_ir_builder *b = &fr->b;
    uint32_t i = 0, offset = 0;
    ING_TRY(wide(fr, at, &index, &i));
    ING_TRY(wide(fr, at, &view->items[VIEW_OFFSET], &offset));
    if (check) {
        uint32_t size = 0;
        ING_TRY(wide(fr, at, &view->items[VIEW_SIZE], &size));
        uint32_t zero = ing_ir_const_int(b, ING_I64, 0);
        uint32_t behind = ing_ir_emit(b, ING_OP_GE, ING_U1, i, size, 0);
        uint32_t before = ing_ir_emit(b, ING_OP_LT, ING_U1, i, zero, 0);
        uint32_t bad = either(fr, before, behind);
        uint32_t numbers[3] = {i, offset, size};
        stop_if(fr, at, bad, ING_ABI_VIEW_INDEX, numbers);
    }
    b->loc = at;
    uint32_t sum = ing_ir_emit(b, ING_OP_ADD, ING_I64, offset, i, 0);
    if (sum) b->func->insts.at[sum].flags |= ING_IR_NSW; /* R22: a subscript only */
    const value *array = &view->items[VIEW_ARRAY];
    *out = (value){.kind = V_REF, .shared = true};
    out->type = ing_ir_type(fr->lo->mod, array->type)->elem;
    out->inst = ing_ir_elem(b, array->inst, &sum, 1);
    return ING_OK;
}
