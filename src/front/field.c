/* Dense fields in kernels. A field is a V_ARRAY whose type has a place (src/gate/place.h): its
 * extents are known, its first index may be another than 0. Several fields that make up one of
 * vectors, matrices or structs are a V_BUNDLE: its items are fields, or bundles of them, as the
 * items of a vector are numbers. An ndarray of structs is one too, of ndarrays. Reached from the tables of expr.c, loop.c and value.c.
 *
 *  FIELD1 ELEM counts from 0: here the first index is subtracted, and added to the indices of loops.
 *  FIELD2 a loop runs in the order of memory: over the levels, outermost first. The index of an
 *     axis is put together from those of its levels by adds that say so (ING_IR_AXIS), so that
 *     the address is made from them directly. */
#include "front/front_int.h"

#include "gen/abi.h"

#include <string.h>

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

const ing_place *ing_front_field_place(const frame *fr, const value *v) {
    return v->kind == V_ARRAY ? ing_ir_type(fr->lo->mod, v->type)->place : NULL;
}

/* Members are looked at when they are needed: what is not read is not keyed (LOWER1). The bundle
 * itself stays as it is, here and below: it may have a name, and what a block looked at is no
 * value of the next one. */
ing_status ing_front_bundle_first(frame *fr, ing_node at, const value *v, value *out,
                                  bool *ok) {
    *out = *v;
    while (out->kind == V_BUNDLE && out->n) {
        *out = out->items[0];
        ING_TRY(ing_front_force(fr, at, out));
    }
    *ok = ing_front_field_place(fr, out) != NULL;
    return ING_OK;
}

value *ing_front_bundle_member(const value *v, const char *name) {
    for (uint32_t k = 0; v->kind == V_BUNDLE && v->info && k < v->n; k++)
        if (strcmp(v->info->names[k], name) == 0) return &v->items[k];
    return NULL;
}

/* ---- indices ----------------------------------------------------------------------------- */

static uint32_t no_wrap(frame *fr, uint32_t inst, uint16_t flags) {
    if (inst) fr->b.func->insts.at[inst].flags |= flags;
    return inst;
}

uint32_t ing_front_field_index(frame *fr, const ing_place *p, uint32_t axis,
                               uint32_t index, ing_dtype t) {
    int64_t from = p->from[axis];
    if (from == 0 || !index) return index;
    ing_ir_builder *b = &fr->b;
    const ing_ir_inst *i = ing_ir_at(b->func, index);
    if (i->op == ING_OP_CONST)
        return ing_ir_const_int(b, t, (int64_t)ing_ir_const_bits(i) - from);
    if (i->op == ING_OP_ADD &&
        i->flags & ING_IR_NSW) { /* of a loop over such a field */
        const ing_ir_inst *by = ing_ir_at(b->func, i->b);
        if (by->op == ING_OP_CONST && (int64_t)ing_ir_const_bits(by) == from)
            return i->a;
    }
    uint32_t by = ing_ir_const_int(b, t, from);
    return no_wrap(fr, ing_ir_emit(b, ING_OP_SUB, t, index, by, 0), ING_IR_NSW);
}

void ing_front_field_join(frame *fr, const ing_place *p, const value *levels,
                          value *index) {
    ing_ir_builder *b = &fr->b;
    uint32_t inst[ING_MAX_NDIM] = {0};
    for (uint32_t k = 0; k < p->n_levels; k++) {
        uint32_t *x = &inst[p->level[k].axis], part = levels[k].inst;
        if (*x) {
            uint32_t n = ing_ir_const_int(b, ING_I32, p->level[k].extent);
            *x = no_wrap(fr, ing_ir_emit(b, ING_OP_MUL, ING_I32, *x, n, 0), ING_IR_NSW);
            part = no_wrap(fr, ing_ir_emit(b, ING_OP_ADD, ING_I32, *x, part, 0),
                           ING_IR_NSW | ING_IR_AXIS);
        }
        *x = part;
    }
    for (uint32_t a = 0; a < p->ndim; a++) {
        if (!inst[a]) inst[a] = ing_ir_const_int(b, ING_I32, 0);
        if (p->from[a]) {
            uint32_t from = ing_ir_const_int(b, ING_I32, p->from[a]);
            inst[a] = no_wrap(fr, ing_ir_emit(b, ING_OP_ADD, ING_I32, inst[a], from, 0),
                              ING_IR_NSW);
        }
        index[a] = ing_front_rt(inst[a], ING_I32);
    }
}

/* ---- debug mode --------------------------------------------------------------------------- */

/* "the field x of shape (8, 6)", as a message; 0: the gate does not know where it is found. */
static ing_status name_of(frame *fr, const value *v, const ing_place *p,
                          uint32_t *code) {
    char where[200] = "";
    const ing_gate *g = fr->lo->gate;
    ing_front_pieces pieces = {0};
    ing_bytes text;
    uint32_t none, n = 0;
    if (v->gref && g->ops->where) g->ops->where(g->self, v->gref, where, sizeof where);
    ing_bytes_init(&text);
    ing_bytes_printf(&text, "the field%s%s of shape (", where[0] ? " " : "", where);
    for (uint32_t a = 0; a < p->ndim; a++)
        ing_bytes_printf(&text, a ? ", %lld" : "%lld",
                         (long long)ing_place_extent(p, a));
    ing_bytes_puts(&text, p->ndim == 1 ? ",)" : ")");
    ing_status s = text.failed
                       ? no_memory(fr)
                       : ing_front_format_text(fr, &pieces, (char *)text.at, text.len);
    if (s == ING_OK) s = ing_front_message(fr, &pieces, true, code, &none, 0, &n);
    ing_vec_fini(&pieces);
    ing_bytes_fini(&text);
    return s;
}

/* A constant that is no index of the field: certain to be wrong where it is reached. */
static bool is_outside(const frame *fr, const ing_place *p, uint32_t axis,
                       uint32_t index, ing_dtype t) {
    const ing_ir_inst *i = ing_ir_at(fr->b.func, index);
    if (i->op != ING_OP_CONST) return false;
    int64_t v = (int64_t)ing_ir_const_bits(i), from = p->from[axis];
    if (t == ING_I32) v = (int32_t)v;
    return v < from || v - from >= ing_place_extent(p, axis);
}

/* Checked when debugging, or asked to; and where an index is known to be outside, always. */
ing_status ing_front_field_bounds(frame *fr, ing_node at, const value *field,
                                  uint32_t axis, uint32_t index, ing_dtype t) {
    const ing_place *p = ing_front_field_place(fr, field);
    int64_t debug = 0, check = 0;
    ING_TRY(ing_front_config_get(fr, at, ING_SET_debug, &debug));
    if (!debug)
        ING_TRY(ing_front_config_get(fr, at, ING_SET_check_out_of_bound, &check));
    if (!debug && !check && !is_outside(fr, p, axis, index, t)) return ING_OK;
    uint32_t code = 0;
    ING_TRY(name_of(fr, field, p, &code));
    ing_ir_builder *b = &fr->b;
    b->loc = at;
    uint32_t wide = ing_front_emit_cast(fr, index, t, ING_I64);
    uint32_t from = ing_ir_const_int(b, ING_I64, p->from[axis]);
    uint32_t end =
        ing_ir_const_int(b, ING_I64, p->from[axis] + ing_place_extent(p, axis));
    uint32_t low = ing_ir_emit(b, ING_OP_LT, ING_U1, wide, from, 0);
    uint32_t high = ing_ir_emit(b, ING_OP_GE, ING_U1, wide, end, 0);
    uint32_t bad = ing_ir_emit(b, ING_OP_OR, ING_U1, low, high, 0);
    ing_ir_block_begin(b);
    uint32_t which = ing_ir_const_int(b, ING_I32, axis);
    uint32_t name = ing_ir_const_int(b, ING_I32, code);
    uint32_t ids[5] = {which, wide, end, from, name};
    ing_ir_emit_list(b, ING_OP_DETAIL, 0, ids, 5);
    ing_ir_emit(b, ING_OP_CHECK, 0, ing_ir_const_int(b, ING_U1, 0), ING_ABI_FIELD, 0);
    ing_ir_emit(b, ING_OP_IF, 0, bad, ing_ir_block_end(b), 0);
    return ING_OK;
}

/* ---- things -------------------------------------------------------------------------------- */

/* The parts of a field of vectors or matrices that lie apart, in rows. */
static ing_status parts_of(frame *fr, ing_node at, const ing_gate_fact *f, value *v) {
    uint32_t rows = f->elem_shape[0], cols = f->elem_rank == 2 ? f->elem_shape[1] : 1;
    value parts, *items = ING_NEW_ARRAY(&fr->lo->arena, rows, value);
    ING_TRY(ing_front_thing_attr(fr, at, v->gref, "_parts", &parts));
    if (!items) return no_memory(fr);
    for (uint32_t r = 0; r < rows; r++) {
        value *row = ING_NEW_ARRAY(&fr->lo->arena, cols, value);
        if (!row) return no_memory(fr);
        for (uint32_t c = 0; c < cols; c++) {
            ing_gate_key key = {.i = (int64_t)r * cols + c};
            ING_TRY(ing_front_thing_item(fr, at, parts.gref, &key, &row[c]));
            ING_TRY(ing_front_force(fr, at, &row[c]));
        }
        items[r] = f->elem_rank == 2 ? ing_front_seq(V_BUNDLE, row, cols) : row[0];
        items[r].tensor = f->elem_rank == 2;
    }
    ing_gref ref = v->gref;
    *v = ing_front_seq(V_BUNDLE, items, rows);
    v->tensor = true;
    v->gref = ref;
    return ING_OK;
}

/* A field, or an ndarray, for each member of a struct, by name. */
static ing_status members_of(frame *fr, ing_node at, const ing_gate_fact *f, value *v) {
    value dict, methods, *keys = NULL;
    struct_info *info = ING_NEW(&fr->lo->arena, struct_info);
    ING_TRY(ing_front_thing_attr(fr, at, v->gref, "field_dict", &dict));
    ING_TRY(ing_front_thing_attr(fr, at, v->gref, "struct_methods", &methods));
    ING_TRY(ing_front_force(fr, at, &dict));
    ING_TRY(ing_front_count(fr, at, &dict));
    ING_TRY(ing_front_dict_part(fr, at, &dict, DICT_KEYS, &keys));
    value *items = ING_NEW_ARRAY(&fr->lo->arena, dict.n + 1, value);
    const char **names = ING_NEW_ARRAY(&fr->lo->arena, dict.n + 1, const char *);
    if (!items || !names || !info) return no_memory(fr);
    for (uint32_t k = 0; k < dict.n; k++) {
        ING_TRY(ing_front_force(fr, at, &keys[k]));
        names[k] = keys[k].kind == V_STR ? keys[k].s : "?";
        ing_gate_key key = {.is_str = true, .s = names[k]};
        ING_TRY(ing_front_thing_item(fr, at, dict.gref, &key, &items[k]));
    }
    *info = (struct_info){.n = dict.n, .names = names, .array = f->structure};
    ing_gref ref = v->gref;
    *v = ing_front_seq(V_BUNDLE, items, dict.n);
    v->info = info;
    v->gref = ref;
    v->origin = methods.kind == V_VOID ? 0 : methods.gref;
    return ING_OK;
}

ing_status ing_front_bundle_thing(frame *fr, ing_node at, const ing_gate_fact *f,
                                  value *v) {
    return f->elem_rank ? parts_of(fr, at, f, v) : members_of(fr, at, f, v);
}

/* ---- attributes ----------------------------------------------------------------------------- */

/* A tuple with a number per axis: how many places there are, or the first index. */
static ing_status axes_of(frame *fr, const ing_place *p, bool shape, value *out) {
    value *items = ING_NEW_ARRAY(&fr->lo->arena, p->ndim + 1u, value);
    if (!items) return no_memory(fr);
    for (uint32_t a = 0; a < p->ndim; a++)
        items[a] = ing_front_int(shape ? ing_place_extent(p, a) : p->from[a]);
    *out = ing_front_seq(V_TUPLE, items, p->ndim);
    return ING_OK;
}

ing_status ing_front_field_attr(frame *fr, ing_node n, const value *v, const char *name,
                                value *out, bool *done) {
    const value *member = ing_front_bundle_member(v, name);
    value first;
    *done = true;
    if (member) {
        *out = *member;
        return ING_OK;
    }
    ING_TRY(ing_front_bundle_first(fr, n, v, &first, done));
    if (!*done && first.kind == V_ARRAY && v->gref) { /* an ndarray of structs */
        bool axes = strcmp(name, "shape") == 0 || strcmp(name, "ndim") == 0;
        *done = true;
        return axes ? ing_front_array_attr(fr, n, &first, name, out)
                    : ing_front_thing_attr(fr, n, v->gref, name, out);
    }
    if (!*done) return ING_OK;
    const ing_place *p = ing_front_field_place(fr, &first);
    bool tensor = v->tensor || p->elem_rank;
    bool n_rows = strcmp(name, "n") == 0, n_cols = strcmp(name, "m") == 0;
    bool shape = strcmp(name, "shape") == 0;
    if (shape || strcmp(name, "offset") == 0) return axes_of(fr, p, shape, out);
    if (strcmp(name, "ndim") == 0) {
        *out = ing_front_int(p->ndim);
    } else if (strcmp(name, "dtype") == 0 && !v->info) {
        *out = (value){.kind = V_DTYPE, .dtype = p->dtype};
    } else if (tensor && (n_rows || n_cols) && v->kind == V_ARRAY) {
        *out = ing_front_int(n_rows              ? p->elem_shape[0]
                             : p->elem_rank == 2 ? p->elem_shape[1]
                                                 : 1);
    } else if (tensor && (n_rows || n_cols)) {
        const value *row = &v->items[0];
        *out = ing_front_int(n_rows ? v->n : row->kind == V_BUNDLE ? row->n : 1);
    } else if (v->gref) {
        return ing_front_thing_attr(fr, n, v->gref, name, out);
    } else {
        *done = false;
    }
    return ING_OK;
}

/* ---- methods -------------------------------------------------------------------------------- */

bool ing_front_is_field_method(const char *name) {
    return strcmp(name, "parent") == 0 || strcmp(name, "fill") == 0;
}

/* x.parent(n): a node of the tree of fields. */
static ing_status parent_of(frame *fr, ing_node n, const value *v, const call_args *a,
                            value *out) {
    ing_gate_key up = {.i = 0};
    value node = *v;
    if (!v->gref || a->n > 1 || a->n_kw || (a->n == 1 && a->at[0].kind != V_INT))
        return ing_front_fail_at(
            fr, n, ING_TYPE, "call it as x.parent() or x.parent(2)",
            "parent() takes a number that is known while compiling");
    if (a->n == 1) up.i = a->at[0].i - 1;
    ING_TRY(ing_front_thing_attr(fr, n, v->gref, "snode", &node));
    if (node.kind != V_VOID)
        ING_TRY(ing_front_thing_attr(fr, n, node.gref, "_ancestors", &node));
    if (node.kind != V_VOID) ING_TRY(ing_front_thing_item(fr, n, node.gref, &up, out));
    if (node.kind != V_VOID && out->kind != V_VOID) return ING_OK;
    return ing_front_fail_at(fr, n, ING_VALUE, "give a smaller number",
                             "the field has no such parent");
}

ing_status ing_front_field_method(frame *fr, ing_node n, const value *v,
                                  const char *name, const call_args *a, value *out) {
    for (uint32_t i = 0; i < a->n; i++)
        ING_TRY(ing_front_force(fr, a->node[i], &a->at[i]));
    if (strcmp(name, "parent") == 0) return parent_of(fr, n, v, a, out);
    if (a->n != 1 || a->n_kw)
        return ing_front_fail_at(fr, n, ING_TYPE, "call it as x.fill(value)",
                                 "fill() takes one argument, found %u", a->n + a->n_kw);
    *out = (value){.kind = V_VOID};
    return ing_front_fill(fr, n, v, &a->at[0]);
}

/* ---- elements ------------------------------------------------------------------------------- */

ing_status ing_front_bundle_element(frame *fr, ing_node at, const value *bundle,
                                    const value *index, uint32_t n, ing_node slice,
                                    value *out) {
    value of = *bundle;
    ING_TRY(ing_front_force(fr, at, &of));
    if (of.kind == V_ARRAY)
        return ing_front_array_element(fr, at, &of, index, n, slice, out);
    value *items = ING_NEW_ARRAY(&fr->lo->arena, of.n, value);
    if (!items) return no_memory(fr);
    for (uint32_t k = 0; k < of.n; k++)
        ING_TRY(
            ing_front_bundle_element(fr, at, &of.items[k], index, n, slice, &items[k]));
    *out = ing_front_seq(of.info ? V_STRUCT : V_TUPLE, items, of.n);
    out->info = of.info;
    out->tensor = of.tensor;
    out->shared = true;
    if (of.info) out->gref = of.origin; /* where methods are found */
    return ING_OK;
}
