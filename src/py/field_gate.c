/* Fields as the gate and launches see them: what code depends on is the layout, as a place
 * (src/gate/place.h). Called by see.c, variant.c, guard_make.c and bind.c, with the GIL. */
#include "py/field.h"

#include <string.h>

static void place_of(const ing_py_layout *l, ing_place *p) {
    *p = (ing_place){.dtype = l->dtype,
                     .elem_rank = l->elem_rank,
                     .ndim = l->ndim,
                     .n_levels = (uint8_t)l->n_levels,
                     .elem_shape = {l->elem_shape[0], l->elem_shape[1]},
                     .at = l->place};
    for (uint32_t a = 0; a < l->ndim; a++) p->from[a] = l->offset[a];
    for (uint32_t k = 0; k < l->n_levels; k++)
        p->level[k] = (ing_level){.axis = l->levels[k].axis,
                                  .extent = l->levels[k].extent,
                                  .stride = l->levels[k].stride};
}

const ing_place *ing_py_layout_place(const ing_py_layout *of, ing_err *e) {
    ing_py_layout *l =
        (ing_py_layout *)(uintptr_t)of; /* what it caches is no part of it */
    if (l->seen) return l->seen;
    if (l->ndim > ING_PLACE_MAX_AXES || l->n_levels > ING_PLACE_MAX_LEVELS) {
        ing_fail(e, ING_TYPE,
                 "a field of %u axes in %u levels; kernels take up to %d and %d",
                 l->ndim, l->n_levels, ING_PLACE_MAX_AXES, ING_PLACE_MAX_LEVELS);
        return NULL;
    }
    ing_place *p = ing_malloc(sizeof *p);
    if (!p) {
        ing_fail(e, ING_MEMORY, "no memory for the layout of a field");
        return NULL;
    }
    place_of(l, p);
    l->seen = p;
    return p;
}

const ing_py_layout *ing_py_layout_of_place(ing_py_state *st, const ing_place *p) {
    int64_t shape[ING_PLACE_MAX_AXES];
    ing_py_level levels[ING_PLACE_MAX_LEVELS];
    for (uint32_t a = 0; a < p->ndim; a++) shape[a] = ing_place_extent(p, a);
    for (uint32_t k = 0; k < p->n_levels; k++)
        levels[k] = (ing_py_level){.axis = p->level[k].axis,
                                   .extent = p->level[k].extent,
                                   .stride = p->level[k].stride};
    ing_py_layout l = {.dtype = p->dtype,
                       .elem_rank = p->elem_rank,
                       .ndim = p->ndim,
                       .elem_shape = {p->elem_shape[0], p->elem_shape[1]},
                       .n_levels = p->n_levels,
                       .place = p->at,
                       .shape = shape,
                       .offset = p->from,
                       .levels = levels};
    return ing_py_layout_intern(st, &l);
}

static void see_elements(const ing_py_field *f, ing_gate_fact *out) {
    out->dtype = (ing_dtype)f->dtype;
    out->elem_rank = f->elem_rank;
    memcpy(out->elem_shape, f->elem_shape, sizeof out->elem_shape);
}

ing_status ing_py_see_field(ing_py_state *st, PyObject *obj, ing_gate_fact *out,
                            ing_err *e) {
    if (!ing_py_is_field(st, obj)) {
        if (!PyObject_TypeCheck(obj, st->field_type)) return ING_DECLINED;
        out->kind = ING_GATE_BUNDLE; /* StructField, in Python */
        return ING_OK;
    }
    ing_py_field *f = (ing_py_field *)obj;
    if (ing_py_field_ready(st, f) < 0) return ING_PYTHON;
    see_elements(f, out);
    if (f->parts) {
        out->kind = ING_GATE_BUNDLE;
        return ING_OK;
    }
    out->place = ing_py_layout_place(f->layout, e);
    if (!out->place) return ING_TYPE;
    out->kind = ING_GATE_FIELD;
    out->ndim = f->layout->ndim;
    return ING_OK;
}

ing_status ing_py_bind_field(ing_py_kernel *k, const ing_py_bind *b, PyObject *obj,
                             uint64_t *words) {
    if (!ing_py_is_field(k->st, obj)) return ING_DECLINED;
    ing_py_field *f = (ing_py_field *)obj;
    if (f->layout != b->field) return ING_DECLINED;
    const ing_mem *mem = f->block->mem;
    if (!mem) {
        ing_py_field_gone(k->st, f);
        return ING_PYTHON;
    }
    words[b->word] = mem->address;
    if (b->written) ing_py_field_touch(k->st, f);
    return ING_OK;
}
