/* Parts of tensors: elements by static and dynamic index, slices, swizzles (v.xy), and
 * what they say of themselves (v.n). Called by expr.c for reading and by assign.c for
 * places; a part of something in memory is made of places, so both are one path. */
#include "front/tensor.h"

#include <stdio.h>
#include <string.h>

/* ---- one axis -------------------------------------------------------------------------------- */

typedef struct axis {
    bool slice; /* `list` of `n` static positions */
    uint32_t list[256], n;
    uint32_t dyn; /* instruction; 0 = static position `at` */
    uint32_t at;
} axis;

static ing_status fail_bound(frame *fr, ing_node at, int64_t i, uint32_t extent) {
    return ing_front_fail_at(
        fr, at, ING_COMPILE, "indices count from 0; negative ones count from the end",
        "index %lld is out of bounds for an axis of %u elements", (long long)i, extent);
}

static ing_status slice_axis(frame *fr, ing_node at, const value *v, uint32_t extent,
                             axis *out) {
    int64_t part[3] = {0, extent, 1};
    for (int k = 0; k < 3; k++) {
        if (v->items[k].kind == V_NONE) continue;
        if (v->items[k].kind != V_INT)
            return ing_front_fail_at(
                fr, at, ING_TYPE, "use constants in the slice",
                "%s not support variables in slice now; this is %s", ing_front_does(fr),
                ing_front_describe(fr, &v->items[k]));
        part[k] = v->items[k].i;
    }
    int64_t step = part[2];
    if (step == 0)
        return ing_front_fail_at(fr, at, ING_VALUE, "leave the step out",
                                 "a slice with a step of zero");
    if (step < 0) {
        if (v->items[0].kind == V_NONE) part[0] = extent;
        if (v->items[1].kind == V_NONE) part[1] = -1 - (int64_t)extent;
    }
    for (int k = 0; k < 2; k++) {
        if (part[k] < 0) part[k] += extent;
        int64_t low = step < 0 ? -1 : 0, high = step < 0 ? (int64_t)extent - 1 : extent;
        part[k] = part[k] < low ? low : part[k] > high ? high : part[k];
    }
    out->slice = true;
    for (int64_t i = part[0]; step > 0 ? i < part[1] : i > part[1]; i += step) {
        if (out->n == 256)
            return ing_front_fail_at(fr, at, ING_TYPE,
                                     "use an array for as many numbers",
                                     "a slice of more than 256 elements");
        out->list[out->n++] = (uint32_t)i;
    }
    if (out->n) return ING_OK;
    return ing_front_fail_at(fr, at, ING_INDEX,
                             "begin before the end: the end is not part of a slice",
                             "an empty slice");
}

static ing_status read_axis(frame *fr, ing_node at, uint32_t axis_no, const value *v,
                            uint32_t extent, bool clamp, axis *out) {
    *out = (axis){0};
    if (v->kind == V_SLICE) return slice_axis(fr, at, v, extent, out);
    if (v->kind == V_INT || v->kind == V_BOOL) {
        int64_t i = v->i < 0 ? v->i + extent : v->i;
        if (i < 0 || i >= extent) return fail_bound(fr, at, v->i, extent);
        out->at = (uint32_t)i;
        return ING_OK;
    }
    value x;
    if (!ing_front_is_scalar(v))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "use an integer, or qd.cast(.., qd.i32)",
            "an index must be an integer; this is %s", ing_front_describe(fr, v));
    ING_TRY(ing_front_load(fr, at, v, &x));
    if (ing_dtype_is_float(v_type(&x)))
        return ing_front_fail_at(fr, at, ING_TYPE, "convert it: int(x)",
                                 "indices must be integers, however '%s' is provided",
                                 ing_dtype_name(v_type(&x)));
    out->dyn = ing_front_emit_cast(fr, x.inst, v_type(&x), ING_I32);
    if (clamp) return ING_OK;
    return ing_front_check_extent(fr, at, 0, axis_no, extent, out->dyn, ING_I32);
}

/* ---- elements ----------------------------------------------------------------------------------- */

static uint32_t flat_index(frame *fr, const axis *a, const tensor_shape *s) {
    ing_ir_builder *b = &fr->b;
    uint32_t part[2];
    for (uint32_t i = 0; i < s->rank; i++)
        part[i] = a[i].dyn ? a[i].dyn : ing_ir_const_int(b, ING_I32, a[i].at);
    if (s->rank == 1) return part[0];
    uint32_t width = ing_ir_const_int(b, ING_I32, s->cols);
    uint32_t row = ing_ir_emit(b, ING_OP_MUL, ING_I32, part[0], width, 0);
    return ing_ir_emit(b, ING_OP_ADD, ING_I32, row, part[1], 0);
}

/* A tuple of numbers without a type, a float among them. */
static bool is_untyped(const value *v) {
    bool some = false;
    for (uint32_t i = 0; i < v->n; i++) {
        const value *x = &v->items[i];
        bool whole = (x->kind == V_INT || x->kind == V_BOOL) && !x->dtype;
        bool one = x->kind == V_TUPLE ? is_untyped(x) : ing_front_is_untyped(x);
        some |= one;
        if (!one && !whole) return false;
    }
    return some;
}

static ing_status dynamic_element(frame *fr, ing_node at, const value *base,
                                  const axis *a, value *out) {
    tensor_shape s;
    value mem;
    ING_TRY(ing_front_tensor_spill(fr, at, base, ING_VOID, &mem));
    ing_front_tensor_shape(fr, &mem, &s);
    uint32_t i = flat_index(fr, a, &s);
    if (base->clamp) { /* the reference clamps the place in the element, not the axes */
        uint32_t last = ing_ir_const_int(&fr->b, ING_I32, s.n - 1);
        i = ing_ir_emit(&fr->b, ING_OP_MIN, ING_I32, i, last, 0);
        i = ing_ir_emit(&fr->b, ING_OP_MAX, ING_I32, i,
                        ing_ir_const_int(&fr->b, ING_I32, 0), 0);
    }
    *out = ing_front_tensor_place_dyn(fr, &mem, &s, i);
    if (base->kind == V_REF) return ING_OK;
    ING_TRY(ing_front_load(fr, at, out, out));
    if (base->kind != V_TUPLE || !is_untyped(base) || s.dtype == ING_F64) return ING_OK;
    ING_TRY(ing_front_tensor_spill(fr, at, base, ING_F64, &mem)); /* NUMBER2 */
    ing_front_tensor_shape(fr, &mem, &s);
    value wide = ing_front_tensor_place_dyn(fr, &mem, &s, i);
    ING_TRY(ing_front_load(fr, at, &wide, &wide));
    out->alt = wide.inst;
    return ING_OK;
}

/* A part with at least one slice; other axes may be dynamic when it is in memory. */
static ing_status sliced(frame *fr, ing_node at, const value *base, axis *a,
                         const tensor_shape *s, value *out) {
    uint32_t rows = a[0].slice ? a[0].n : 1;
    uint32_t cols = s->rank == 2 && a[1].slice ? a[1].n : 1;
    bool matrix = s->rank == 2 && a[0].slice && a[1].slice;
    tensor_shape part = matrix ? ing_front_shape_of(2, rows, cols, ING_VOID)
                               : ing_front_shape_of(1, rows * cols, 1, ING_VOID);
    value *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)part.n + 1, value);
    if (!elems) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < cols; j++) {
            axis one[2] = {a[0], a[1]};
            if (a[0].slice) one[0] = (axis){.at = a[0].list[i]};
            if (a[1].slice) one[1] = (axis){.at = a[1].list[j]};
            value *e = &elems[i * cols + j];
            if (one[0].dyn || (s->rank == 2 && one[1].dyn))
                ING_TRY(dynamic_element(fr, at, base, one, e));
            else
                *e = ing_front_tensor_place(
                    fr, base, s,
                    s->rank == 2 ? one[0].at * s->cols + one[1].at : one[0].at);
        }
    *out = ing_front_tensor_tuple(fr, &part, elems);
    return ING_OK;
}

ing_status ing_front_tensor_subscript(frame *fr, ing_node at, const value *base,
                                      const value *index, value *out) {
    tensor_shape s;
    ing_front_tensor_shape(fr, base, &s);
    value one = *index, *items = &one;
    uint32_t n = 1;
    bool ok = true;
    if (!ing_front_is_scalar(index) && index->kind != V_SLICE)
        ING_TRY(ing_front_items(fr, at, index, &items, &n, &ok));
    if (!ok)
        return ing_front_fail_at(fr, at, ING_TYPE,
                                 "use an integer, or one integer per axis",
                                 "a vector or matrix cannot be indexed with %s",
                                 ing_front_describe(fr, index));
    if (n != s.rank)
        return ing_front_fail_at(fr, at, ING_TYPE,
                                 s.rank == 2
                                     ? "give one index per axis: m[i, j]; a row "
                                       "is m[i, :]"
                                     : "give one index per axis",
                                 "Expected %u indices, got %u", s.rank, n);
    axis a[2] = {{0}, {0}};
    for (uint32_t i = 0; i < n; i++) {
        ING_TRY(ing_front_force(fr, at, &items[i]));
        ING_TRY(
            read_axis(fr, at, i, &items[i], i ? s.cols : s.rows, base->clamp, &a[i]));
    }
    fr->b.loc = at;
    if (a[0].slice || a[1].slice) return sliced(fr, at, base, a, &s, out);
    if (a[0].dyn || a[1].dyn) return dynamic_element(fr, at, base, a, out);
    *out = ing_front_tensor_place(fr, base, &s,
                                  s.rank == 2 ? a[0].at * s.cols + a[1].at : a[0].at);
    return ing_front_force(fr, at, out);
}

/* ---- attributes ----------------------------------------------------------------------------------- */

/* Positions named by `text`, all from one group of letters; false: it is no swizzle. */
static bool swizzle(const char *text, uint32_t *at, uint32_t *n) {
    static const char *const groups[] = {"xyzw", "rgba", "stpq"};
    for (int g = 0; g < 3; g++) {
        for (*n = 0; text[*n] && *n < 5; ++*n) {
            const char *p = strchr(groups[g], text[*n]);
            if (!p) break;
            at[*n] = (uint32_t)(p - groups[g]);
        }
        if (*n && *n <= 4 && !text[*n]) return true;
    }
    return false;
}

static ing_status fail_swizzle(frame *fr, ing_node at, const char *name, uint32_t n) {
    static const char *const have[] = {"", "'x',", "'x', 'y'", "'x', 'y', 'z'",
                                       "'w', 'x', 'y', 'z'"};
    char got[40] = "";
    for (size_t i = 0; name[i] && i < 4; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s'%c'", i ? ", " : "",
                 name[i]);
    return ing_front_fail_at(fr, at, ING_SYNTAX, "use those, or v[i]",
                             "vec%u only has attributes=(%s), got=(%s%s)", n,
                             have[n > 4 ? 4 : n], got, name[1] ? "" : ",");
}

bool ing_front_is_tensor_attr(const char *name) {
    uint32_t at[5], n;
    return strcmp(name, "n") == 0 || strcmp(name, "m") == 0 ||
           strcmp(name, "ndim") == 0 || strcmp(name, "shape") == 0 ||
           strcmp(name, "dtype") == 0 || swizzle(name, at, &n);
}

static ing_status fail_attr(frame *fr, ing_node at, const value *v, const char *name) {
    const char *instead = ing_front_vector_remedy(name);
    const char *remedy =
        ing_front_is_tensor_method(name)
            ? ing_arena_printf(&fr->lo->arena, "call it: v.%s(...)", name)
        : instead ? ing_arena_printf(&fr->lo->arena, "use %s", instead)
                  : "vectors have x, y, z, w; all have n, m, shape and methods such as "
                    "norm() and sum()";
    return ing_front_fail_at(fr, at, ING_ATTRIBUTE, remedy, "%s has no attribute '%s'",
                             ing_front_describe(fr, v), name);
}

ing_status ing_front_tensor_attr(frame *fr, ing_node at, const value *v,
                                 const char *name, value *out) {
    tensor_shape s;
    uint32_t pos[5] = {0}, n = 0;
    ing_front_tensor_shape(fr, v, &s);
    if (strcmp(name, "n") == 0 || strcmp(name, "m") == 0) {
        *out = ing_front_int(name[0] == 'n' ? s.rows : s.cols);
        return ING_OK;
    }
    if (strcmp(name, "ndim") == 0) {
        *out = ing_front_int(s.rank);
        return ING_OK;
    }
    if (strcmp(name, "shape") == 0) return ing_front_tensor_extents(fr, v, out);
    if (strcmp(name, "dtype") == 0 && s.dtype == ING_VOID) {
        value x;
        ING_TRY(ing_front_tensor_load(fr, at, v, &x));
        ing_front_tensor_shape(fr, &x, &s);
    }
    if (strcmp(name, "dtype") == 0 && s.dtype != ING_VOID) {
        *out = (value){.kind = V_DTYPE, .dtype = (uint8_t)s.dtype};
        return ING_OK;
    }
    if (s.rank != 1 || !swizzle(name, pos, &n)) return fail_attr(fr, at, v, name);
    value parts[4] = {{0}};
    for (uint32_t k = 0; k < n; k++) {
        if (pos[k] >= s.rows) return fail_swizzle(fr, at, name, s.rows);
        parts[k] = ing_front_tensor_place(fr, v, &s, pos[k]);
    }
    *out = parts[0];
    if (n == 1) return ing_front_force(fr, at, out);
    tensor_shape part = ing_front_shape_of(1, n, 1, ING_VOID);
    value *kept = ING_NEW_ARRAY(&fr->lo->arena, 4, value);
    if (!kept) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    memcpy(kept, parts, n * sizeof *kept);
    *out = ing_front_tensor_tuple(fr, &part, kept);
    return ING_OK;
}

/* The shape as a tuple known while compiling. */
ing_status ing_front_tensor_extents(frame *fr, const value *v, value *out) {
    tensor_shape s;
    ing_front_tensor_shape(fr, v, &s);
    value *items = ING_NEW_ARRAY(&fr->lo->arena, 2, value);
    if (!items) return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling");
    items[0] = ing_front_int(s.rows);
    items[1] = ing_front_int(s.cols);
    *out = ing_front_seq(V_TUPLE, items, s.rank);
    return ING_OK;
}
