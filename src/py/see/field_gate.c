/* Fields as the gate and launches see them: what code depends on is the layout, as a place
 * (src/gate/place.h). Called by see.c, variant.c, guard_make.c and bind.c, with the GIL. */
#include "py/see/field_gate.h"
#include "py/array/struct.h"

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
    if (ing_py_is_structs(st, obj)) {
        out->kind = ING_GATE_BUNDLE;
        out->structure = ing_py_layout_of(((ing_py_structs *)obj)->type);
        out->ndim = (uint8_t)((ing_py_structs *)obj)->ndim;
        return ING_OK;
    }
    if (!ing_py_is_field(st, obj)) {
        if (!PyObject_TypeCheck(obj, st->field_type)) return ING_DECLINED;
        out->kind = ING_GATE_BUNDLE; /* StructField, in Python */
        return ING_OK;
    }
    ing_py_field *f = (ing_py_field *)obj;
    if (f->companion && !f->parts && !f->layout && !f->node) {
        char name[100] = "of a field";
        if (f->name && ing_py_show(f->name, name, sizeof name) < 0) return ING_PYTHON;
        return ing_fail(e, ING_COMPILE,
                        "Gradient %s has not been placed, check whether "
                        "`needs_grad=True`\nhelp: make the field with it: "
                        "qd.field(qd.f32, shape, needs_grad=True)",
                        *name == '.' ? "of the field" : name);
    }
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

/* ---- blocks -------------------------------------------------------------------------- */

enum { MAX_BESIDE = 500 }; /* fields that are asked about: steps of one path */

ing_hash128 ing_py_blocks_of(const ing_py_state *st, PyObject *const *objects,
                             uint32_t n, uint32_t *block) {
    const ing_py_block *of[MAX_BESIDE];
    for (uint32_t k = 0; k < n; k++) {
        PyObject *o = objects[k];
        of[k] = o && ing_py_is_field(st, o) ? ((ing_py_field *)o)->block : NULL;
        block[k] = k;
        for (uint32_t j = 0; of[k] && j < k; j++) {
            if (of[j] != of[k]) continue;
            block[k] = j;
            break;
        }
    }
    return ing_hash(block, n * sizeof *block);
}

ing_status ing_py_answer_blocks(ing_py_kernel *k, PyObject *const *args, ing_path path,
                                ing_hash128 *out, ing_err *e) {
    PyObject *objects[MAX_BESIDE];
    uint32_t block[MAX_BESIDE], n = 0, first = MAX_BESIDE;
    ing_status s = ING_OK;
    *out = (ing_hash128){0, 0};
    for (ing_path at = path; at && s == ING_OK; at = k->paths.nodes.at[at].parent) {
        ing_path_node node = k->paths.nodes.at[at];
        if (node.step != ING_STEP_BESIDE || first == 0)
            break; /* an index may say anything */
        s = ing_py_resolve(k, args, (ing_path)node.i, &objects[first - 1], e);
        if (s == ING_OK) first--;
    }
    n = MAX_BESIDE - first;
    if (s == ING_OK) *out = ing_py_blocks_of(k->st, &objects[first], n, block);
    for (uint32_t i = first; i < MAX_BESIDE; i++) Py_XDECREF(objects[i]);
    return s;
}

/* Tells the gate; in words: "blocks 1, 1, 3". */
static ing_status asked(ing_py_gate *g, ing_path path, ing_hash128 answer,
                        const uint32_t *block, uint32_t n, ing_err *e) {
    ing_bytes words;
    ing_bytes_init(&words);
    for (uint32_t k = 0; k < n; k++)
        ing_bytes_printf(&words, k ? ", %u" : "blocks %u", block[k] + 1);
    ing_status s = ing_py_gate_asked(g, path, ING_ASK_BLOCKS, answer, &words, e);
    ing_bytes_fini(&words);
    return s;
}

/* The fields among the arguments: how many, and the number of each. */
static uint32_t fields_of(const ing_ir_mod *m, uint32_t *arg) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->args.len; k++) {
        if (!ing_ir_type(m, m->args.at[k].type)->place) continue;
        if (n < MAX_BESIDE) arg[n] = k;
        n++;
    }
    return n;
}

ing_status ing_py_share_blocks(ing_py_kernel *k, ing_py_gate *g, ing_front_result *r,
                               ing_err *e) {
    PyObject *objects[MAX_BESIDE];
    uint32_t arg[MAX_BESIDE], block[MAX_BESIDE], n = fields_of(r->mod, arg);
    ing_path path = 0;
    if (n < 2 || n > MAX_BESIDE) return ING_OK;
    for (uint32_t i = 0; i < n; i++) {
        ing_gref ref = r->args.at[arg[i]].ref;
        objects[i] = ing_py_gate_object(g, ref);
        path = ing_path_add(&k->paths, path, ING_STEP_BESIDE, NULL,
                            (int64_t)ing_py_gate_path(g, ref));
        if (!path) return ing_fail(e, ING_MEMORY, "no memory while compiling a kernel");
    }
    ing_hash128 answer = ing_py_blocks_of(k->st, objects, n, block);
    ING_TRY(asked(g, path, answer, block, n, e));
    uint32_t *all = ing_calloc((size_t)r->mod->args.len + 1, sizeof *all);
    if (!all) return ing_fail(e, ING_MEMORY, "no memory while compiling a kernel");
    for (uint32_t i = 0; i < r->mod->args.len; i++) all[i] = i;
    for (uint32_t i = 0; i < n; i++) all[arg[i]] = arg[block[i]];
    ing_ir_share_words(r->mod, all);
    ing_free(all);
    return ING_OK;
}

/* ---- launches ------------------------------------------------------------------------ */

ing_status ing_py_bind_field_failed(ing_py_kernel *k, const ing_py_bind *b,
                                    PyObject *obj) {
    if (!ing_py_is_field(k->st, obj)) return ING_DECLINED;
    const ing_py_field *f = (ing_py_field *)obj;
    if (f->layout != b->field || f->block->mem) return ING_DECLINED;
    ing_py_field_gone(k->st, f);
    return ING_PYTHON;
}
