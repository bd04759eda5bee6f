/* Tensors while lowering: shapes, elements, moving between registers and memory, and the
 * one driver that applies a function of scalars to every element. Used by all of lowering
 * wherever a value may be a vector or a matrix; the rules are in tensor.h. */
#include "front/tensor.h"

#include <string.h>

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* ---- shapes -------------------------------------------------------------------------------- */

static bool tuple_shape(const value *v, tensor_shape *out) {
    bool matrix = v->n && v->items[0].kind == V_TUPLE;
    *out =
        ing_front_shape_of(matrix ? 2 : 1, v->n, matrix ? v->items[0].n : 1, ING_VOID);
    return true;
}

bool ing_front_tensor_shape(const frame *fr, const value *v, tensor_shape *out) {
    if (v->kind == V_TUPLE && v->tensor) return tuple_shape(v, out);
    if (!ing_front_is_runtime(v) || v->type < ING_DTYPE_N) return false;
    const ing_type_info *t = ing_ir_type(fr->lo->mod, v->type);
    if (t->kind != ING_TYPE_TENSOR) return false;
    *out = ing_front_shape_of(t->rank, t->rows, t->cols, (ing_dtype)t->dtype);
    return true;
}

bool ing_front_is_tensor(const frame *fr, const value *v) {
    tensor_shape s;
    return ing_front_tensor_shape(fr, v, &s);
}

ing_type ing_front_tensor_type(frame *fr, const tensor_shape *s) {
    return ing_ir_type_tensor(fr->lo->mod, s->dtype, s->rows, s->cols, s->rank);
}

const char *ing_front_shape_text(frame *fr, const tensor_shape *s) {
    const char *text =
        s->rank == 1 ? ing_arena_printf(&fr->lo->arena, "(%u,)", s->rows)
                     : ing_arena_printf(&fr->lo->arena, "(%u, %u)", s->rows, s->cols);
    return text ? text : "?";
}

const char *ing_front_tensor_describe(frame *fr, const value *v) {
    tensor_shape s;
    if (!ing_front_tensor_shape(fr, v, &s)) return NULL;
    return ing_arena_printf(&fr->lo->arena, "a %s of shape %s%s%s",
                            s.rank == 1 ? "vector" : "matrix",
                            ing_front_shape_text(fr, &s), s.dtype ? " and type " : "",
                            s.dtype ? ing_dtype_name(s.dtype) : "");
}

/* ---- elements -------------------------------------------------------------------------------- */

static value ref_to(const value *of, uint32_t inst, ing_dtype t) {
    return (value){.kind = V_REF,
                   .inst = inst,
                   .type = t,
                   .shared = of->shared,
                   .fixed = of->fixed,
                   .arg = of->arg};
}

value ing_front_tensor_place(frame *fr, const value *v, const tensor_shape *s,
                             uint32_t k) {
    if (v->kind == V_TUPLE) {
        const value *row = s->rank == 2 ? &v->items[k / s->cols] : v;
        return row->items[s->rank == 2 ? k % s->cols : k];
    }
    if (v->kind == V_RT) {
        uint32_t e = ing_ir_emit(&fr->b, ING_OP_EXTRACT, s->dtype, v->inst, k, 0);
        return ing_front_rt(e, s->dtype);
    }
    ing_type ref = ing_ir_type_ref(fr->lo->mod, s->dtype);
    return ref_to(v, ing_ir_emit(&fr->b, ING_OP_MEMBER, ref, v->inst, k, 0), s->dtype);
}

value ing_front_tensor_place_dyn(frame *fr, const value *v, const tensor_shape *s,
                                 uint32_t inst) {
    ing_type ref = ing_ir_type_ref(fr->lo->mod, s->dtype);
    return ref_to(v, ing_ir_emit(&fr->b, ING_OP_MEMBER_DYN, ref, v->inst, inst, 0),
                  s->dtype);
}

/* Static numbers stay static: what meets them decides their type (TENSOR2). */
ing_status ing_front_tensor_elem(frame *fr, ing_node at, const value *v,
                                 const tensor_shape *s, uint32_t k, value *out) {
    *out = ing_front_tensor_place(fr, v, s, k);
    if (out->kind == V_REF) return ing_front_load(fr, at, out, out);
    return ing_front_force(fr, at, out);
}

/* ---- memory ---------------------------------------------------------------------------------- */

value ing_front_tensor_temp(frame *fr, const tensor_shape *s) {
    ing_type t = ing_front_tensor_type(fr, s);
    uint32_t inst =
        ing_ir_emit(&fr->b, ING_OP_ALLOCA, ing_ir_type_ref(fr->lo->mod, t), 0, 0, 0);
    return (value){.kind = V_REF, .inst = inst, .type = t, .temp = true};
}

ing_status ing_front_tensor_loop(frame *fr, ing_node at, uint32_t n, tensor_loop *l) {
    l->n = n;
    l->id = ing_ir_loop_reserve(&fr->b, ING_I32);
    ing_ir_block_begin(&fr->b);
    return ing_front_nest(fr, at);
}

void ing_front_tensor_loop_end(frame *fr, tensor_loop *l) {
    uint32_t body = ing_ir_block_end(&fr->b);
    fr->control--;
    uint32_t begin = ing_ir_const_int(&fr->b, ING_I32, 0);
    uint32_t end = ing_ir_const_int(&fr->b, ING_I32, l->n);
    uint16_t flags = fr->top && fr->control == 0 ? ING_IR_SERIAL : 0;
    ing_ir_loop_finish(&fr->b, l->id, begin, end, body, flags);
}

/* The elements as instructions of s->dtype; VOID: of their common type, which it becomes. */
static ing_status load_elems(frame *fr, ing_node at, tensor_shape *s,
                             const value *elems, uint32_t *inst) {
    value *x = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s->n + 1, value);
    if (!x) return no_memory(fr);
    ing_dtype common = ING_VOID, met = ING_VOID;
    for (uint32_t k = 0; k < s->n; k++) met = ing_front_meet(met, &elems[k]);
    for (uint32_t k = 0; k < s->n; k++) {
        if (s->dtype) {
            ING_TRY(ing_front_convert(fr, at, &elems[k], s->dtype, &inst[k]));
            continue;
        }
        ING_TRY(ing_front_load_with(fr, at, &elems[k], met, &x[k]));
        if (x[k].type >= ING_DTYPE_N)
            return ing_front_fail_at(fr, at, ING_TYPE, "use numbers as elements",
                                     "an element of a vector or matrix is %s",
                                     ing_front_describe(fr, &x[k]));
        ing_dtype t = v_type(&x[k]);
        common = k ? ing_front_promote(common, t) : t;
    }
    for (uint32_t k = 0; !s->dtype && k < s->n; k++)
        inst[k] = ing_front_emit_cast(fr, x[k].inst, v_type(&x[k]), common);
    if (!s->dtype) s->dtype = common;
    return ING_OK;
}

ing_status ing_front_tensor_make(frame *fr, ing_node at, tensor_shape s,
                                 const value *elems, value *out) {
    uint32_t *inst = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, uint32_t);
    if (!inst) return no_memory(fr);
    ING_TRY(load_elems(fr, at, &s, elems, inst));
    if (s.n <= TENSOR_REG) {
        ing_type t = ing_front_tensor_type(fr, &s);
        *out = ing_front_rt(ing_ir_make(&fr->b, t, inst, s.n), t);
        return ING_OK;
    }
    *out = ing_front_tensor_temp(fr, &s);
    for (uint32_t k = 0; k < s.n; k++) {
        value place = ing_front_tensor_place(fr, out, &s, k);
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.inst, inst[k], 0);
    }
    return ING_OK;
}

value ing_front_tensor_tuple(frame *fr, const tensor_shape *s, const value *elems) {
    value *rows = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s->rows + 1, value);
    if (!rows) return ing_front_none(); /* the arena's flag ends the compile (LOWER4) */
    for (uint32_t i = 0; i < s->rows; i++) {
        if (s->rank == 1) {
            rows[i] = elems[i];
            continue;
        }
        tensor_shape row = ing_front_shape_of(1, s->cols, 1, ING_VOID);
        rows[i] = ing_front_tensor_tuple(fr, &row, elems + (size_t)i * s->cols);
    }
    value v = ing_front_seq(V_TUPLE, rows, s->rows);
    v.tensor = true;
    return v;
}

/* Numbers without a type, a float among them? */
static bool all_untyped(const value *elems, uint32_t n) {
    bool some = false;
    for (uint32_t k = 0; k < n; k++) {
        bool whole =
            (elems[k].kind == V_INT || elems[k].kind == V_BOOL) && !elems[k].dtype;
        if (ing_front_is_untyped(&elems[k]))
            some = true;
        else if (!whole)
            return false;
    }
    return some;
}

ing_status ing_front_tensor_gather(frame *fr, ing_node at, tensor_shape s,
                                   const value *elems, value *out) {
    if (s.dtype || !all_untyped(elems, s.n))
        return ing_front_tensor_make(fr, at, s, elems, out);
    value *floats = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, value);
    if (!floats) return no_memory(fr);
    for (uint32_t k = 0; k < s.n; k++) floats[k] = ing_front_as_float(&elems[k]);
    *out = ing_front_tensor_tuple(fr, &s, floats);
    return ING_OK;
}

ing_dtype ing_front_tensor_meets(const frame *fr, const value *v) {
    tensor_shape s;
    ing_dtype t = ING_VOID;
    if (ing_front_is_scalar(v))
        t = ing_front_meet(ING_VOID, v);
    else if (ing_front_is_runtime(v) && ing_front_tensor_shape(fr, v, &s))
        t = s.dtype;
    for (uint32_t i = 0; v_holds(v) && t != ING_F64 && i < v_children(v); i++)
        t = ing_front_tensor_meets(fr, &v->items[i]);
    return t == ING_F64 ? ING_F64 : ING_VOID;
}

/* ---- from sequences ---------------------------------------------------------------------------- */

/* The elements of a list of numbers, or of a list of equally long lists or vectors. */
static ing_status collect(frame *fr, ing_node at, const value *v, tensor_shape *s,
                          value **out, bool *ok) {
    value *rows;
    uint32_t n = 0;
    ING_TRY(ing_front_items(fr, at, v, &rows, &n, ok));
    if (!*ok) return ING_OK;
    value *elems = NULL;
    *s = ing_front_shape_of(1, n, 1, ING_VOID);
    for (uint32_t i = 0; i < n; i++) {
        value row = rows[i], *items = &row;
        uint32_t m = 1;
        bool nested = false;
        ING_TRY(ing_front_force(fr, at, &row));
        if (!ing_front_is_scalar(&row))
            ING_TRY(ing_front_items(fr, at, &row, &items, &m, &nested));
        if (!nested) { /* what cannot be an element is refused as it is loaded */
            items = &row;
            m = 1;
        }
        if (i == 0 && nested) *s = ing_front_shape_of(2, n, m, ING_VOID);
        if (s->n > TENSOR_MAX || (nested && s->rank == 2 && m != s->cols) ||
            nested != (s->rank == 2))
            return ing_front_fail_at(fr, at, ING_TYPE, "give every row the same length",
                                     "the rows of a matrix differ in length");
        if (!elems) elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s->n + 1, value);
        if (!elems) return no_memory(fr);
        memcpy(elems + (size_t)i * m, items, m * sizeof *items);
    }
    *out = elems;
    return ING_OK;
}

ing_status ing_front_tensor_from(frame *fr, ing_node at, const value *v, ing_dtype t,
                                 value *out, bool *ok) {
    tensor_shape s;
    *ok = true;
    if (ing_front_is_runtime(v)) {
        *ok = ing_front_tensor_shape(fr, v, &s);
        *out = *v;
        if (!*ok || !t || t == s.dtype) return ING_OK;
        return ing_front_tensor_cast(fr, at, v, t, out);
    }
    value *elems = NULL;
    ING_TRY(collect(fr, at, v, &s, &elems, ok));
    if (!*ok) return ING_OK;
    if (s.n == 0)
        return ing_front_fail_at(fr, at, ING_TYPE, "give it elements",
                                 "a vector or matrix without elements");
    s.dtype = t;
    return ing_front_tensor_make(fr, at, s, elems, out);
}

ing_status ing_front_tensor_read(frame *fr, ing_node at, const value *v, value *out,
                                 bool *ok) {
    tensor_shape s;
    value *elems = NULL;
    if (ing_front_is_runtime(v))
        return ing_front_tensor_from(fr, at, v, ING_VOID, out, ok);
    ING_TRY(collect(fr, at, v, &s, &elems, ok));
    for (uint32_t k = 0; *ok && k < s.n; k++)
        ING_TRY(ing_front_force(fr, at, &elems[k]));
    if (!*ok || !all_untyped(elems, s.n))
        return ing_front_tensor_from(fr, at, v, ING_VOID, out, ok);
    return ing_front_tensor_gather(fr, at, s, elems, out);
}

/* A host vector or matrix: its elements are constants, typed if it is. */
ing_status ing_front_tensor_thing(frame *fr, ing_node at, const ing_gate_fact *f,
                                  value *v) {
    tensor_shape s =
        ing_front_shape_of(f->elem_rank, f->elem_shape[0],
                           f->elem_rank == 2 ? f->elem_shape[1] : 1, ING_VOID);
    if (s.n > TENSOR_MAX)
        return ing_front_fail_at(fr, at, ING_TYPE, "pass it as an array",
                                 "a matrix of more than %d elements", TENSOR_MAX);
    value list, *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, value);
    if (!elems) return no_memory(fr);
    ING_TRY(ing_front_thing_attr(fr, at, v->gref, "_entries", &list));
    for (uint32_t k = 0; k < s.n; k++) {
        ing_gate_key key = {.i = k};
        ING_TRY(ing_front_thing_item(fr, at, list.gref, &key, &elems[k]));
        ING_TRY(ing_front_force(fr, at, &elems[k]));
        if (f->dtype && (elems[k].kind == V_INT || elems[k].kind == V_FLOAT))
            elems[k].dtype = (uint8_t)f->dtype;
    }
    ing_gref ref = v->gref;
    *v = ing_front_tensor_tuple(fr, &s, elems);
    v->gref = ref;
    return ING_OK;
}

/* The elements as values of their own: numbers of a vector, rows of a matrix. */
ing_status ing_front_tensor_items(frame *fr, ing_node at, const value *v, value **items,
                                  uint32_t *n, bool *ok) {
    tensor_shape s;
    *ok = ing_front_tensor_shape(fr, v, &s);
    if (!*ok) return ING_OK;
    value *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, value);
    if (!elems) return no_memory(fr);
    for (uint32_t k = 0; k < s.n; k++)
        ING_TRY(ing_front_tensor_elem(fr, at, v, &s, k, &elems[k]));
    value all = ing_front_tensor_tuple(fr, &s, elems);
    *items = all.items;
    *n = s.rows;
    return ING_OK;
}

/* ---- every element ------------------------------------------------------------------------------- */

typedef struct operand {
    value v;
    bool tensor;
    tensor_shape s;
} operand;

static ing_status read_operands(frame *fr, ing_node at, const value *in, uint32_t n_in,
                                operand *o, tensor_shape *s) {
    bool found = false;
    for (uint32_t i = 0; i < n_in; i++) {
        o[i] = (operand){.v = in[i]};
        if (in[i].kind == V_LIST || (in[i].kind == V_TUPLE && !in[i].tensor)) {
            bool ok = false;
            ING_TRY(ing_front_tensor_read(fr, at, &in[i], &o[i].v, &ok));
        }
        o[i].tensor = ing_front_tensor_shape(fr, &o[i].v, &o[i].s);
        if (!o[i].tensor) continue;
        if (found && (o[i].s.rank != s->rank || o[i].s.rows != s->rows ||
                      o[i].s.cols != s->cols))
            return ing_front_fail_at(fr, at, ING_TYPE, "the shapes must be equal",
                                     "Dimension mismatch between shapes %s, %s",
                                     ing_front_shape_text(fr, s),
                                     ing_front_shape_text(fr, &o[i].s));
        *s = o[i].s;
        found = true;
    }
    s->dtype = ING_VOID;
    return ING_OK;
}

static ing_status map_unrolled(frame *fr, ing_node at, operand *o, uint32_t n_in,
                               const tensor_shape *s, tensor_fn fn, void *self,
                               value *out) {
    value *made = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s->n + 1, value);
    if (!made) return no_memory(fr);
    for (uint32_t k = 0; k < s->n; k++) {
        value in[TENSOR_MAX_IN];
        for (uint32_t i = 0; i < n_in; i++) {
            in[i] = o[i].v;
            if (o[i].tensor)
                ING_TRY(ing_front_tensor_elem(fr, at, &o[i].v, &o[i].s, k, &in[i]));
        }
        fr->b.loc = at;
        ING_TRY(fn(fr, at, self, in, &made[k]));
    }
    return ing_front_tensor_gather(fr, at, *s, made, out);
}

/* The type of the result is known after its first element: the local that holds it stands
 * before the loop, and its type is set then. */
static ing_status map_loop(frame *fr, ing_node at, operand *o, uint32_t n_in,
                           tensor_shape s, tensor_fn fn, void *self, value *out) {
    ing_dtype met = ING_VOID;
    for (uint32_t i = 0; i < n_in && !met; i++)
        met = ing_front_tensor_meets(fr, &o[i].v);
    for (uint32_t i = 0; i < n_in; i++)
        if (o[i].tensor) {
            ING_TRY(ing_front_tensor_spill(fr, at, &o[i].v, met, &o[i].v));
            ing_front_tensor_shape(fr, &o[i].v, &o[i].s);
        }
    s.dtype = ING_I32;
    *out = ing_front_tensor_temp(fr, &s);
    tensor_loop l;
    ing_status st = ing_front_tensor_loop(fr, at, s.n, &l);
    value in[TENSOR_MAX_IN], made = {0};
    for (uint32_t i = 0; i < n_in && st == ING_OK; i++) {
        in[i] = o[i].v;
        if (!o[i].tensor) continue;
        in[i] = ing_front_tensor_place_dyn(fr, &o[i].v, &o[i].s, l.id);
        st = ing_front_load(fr, at, &in[i], &in[i]);
    }
    fr->b.loc = at;
    if (st == ING_OK) st = fn(fr, at, self, in, &made);
    if (st == ING_OK) st = ing_front_load(fr, at, &made, &made);
    if (st == ING_OK) {
        s.dtype = v_type(&made);
        out->type = ing_front_tensor_type(fr, &s);
        if (out->inst)
            fr->b.func->insts.at[out->inst].type =
                ing_ir_type_ref(fr->lo->mod, out->type);
        value place = ing_front_tensor_place_dyn(fr, out, &s, l.id);
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.inst, made.inst, 0);
    }
    ing_front_tensor_loop_end(fr, &l);
    return st;
}

ing_status ing_front_tensor_map(frame *fr, ing_node at, const value *in, uint32_t n_in,
                                tensor_fn fn, void *self, value *out) {
    operand o[TENSOR_MAX_IN];
    tensor_shape s = {0};
    if (n_in > TENSOR_MAX_IN)
        return ing_front_fail_at(fr, at, ING_TYPE, "nest the calls",
                                 "more than %d vectors at once", TENSOR_MAX_IN);
    ING_TRY(read_operands(fr, at, in, n_in, o, &s));
    if (s.n <= TENSOR_UNROLL) return map_unrolled(fr, at, o, n_in, &s, fn, self, out);
    return map_loop(fr, at, o, n_in, s, fn, self, out);
}

/* ---- loads and stores --------------------------------------------------------------------------- */

static ing_status cast_elem(frame *fr, ing_node at, void *self, const value *in,
                            value *out) {
    ing_dtype t = *(ing_dtype *)self;
    uint32_t inst = 0;
    ING_TRY(ing_front_convert(fr, at, &in[0], t, &inst));
    *out = ing_front_rt(inst, t);
    return ING_OK;
}

ing_status ing_front_tensor_cast(frame *fr, ing_node at, const value *v, ing_dtype t,
                                 value *out) {
    return ing_front_tensor_map(fr, at, v, 1, cast_elem, &t, out);
}

ing_status ing_front_tensor_spill(frame *fr, ing_node at, const value *v, ing_dtype t,
                                  value *out) {
    tensor_shape s;
    if (v->kind == V_REF) {
        *out = *v;
        return ING_OK;
    }
    value x = *v;
    bool ok = false;
    if (v->kind != V_RT) ING_TRY(ing_front_tensor_from(fr, at, v, t, &x, &ok));
    if (x.kind == V_REF || !ing_front_tensor_shape(fr, &x, &s)) {
        *out = x;
        return ING_OK;
    }
    *out = ing_front_tensor_temp(fr, &s);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, out->inst, x.inst, 0);
    return ING_OK;
}

/* Copies between tensors of one type, both in memory. */
static ing_status copy_elems(frame *fr, ing_node at, const value *to, const value *from,
                             const tensor_shape *s) {
    if (s->n > TENSOR_UNROLL) {
        tensor_loop l;
        ing_status st = ing_front_tensor_loop(fr, at, s->n, &l);
        value x = ing_front_tensor_place_dyn(fr, from, s, l.id);
        if (st == ING_OK) st = ing_front_load(fr, at, &x, &x);
        value place = ing_front_tensor_place_dyn(fr, to, s, l.id);
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.inst, x.inst, 0);
        ing_front_tensor_loop_end(fr, &l);
        return st;
    }
    for (uint32_t k = 0; k < s->n; k++) {
        value x, place;
        ING_TRY(ing_front_tensor_elem(fr, at, from, s, k, &x));
        place = ing_front_tensor_place(fr, to, s, k);
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.inst, x.inst, 0);
    }
    return ING_OK;
}

/* A tensor as a value that nothing changes any more: in registers, or a copy. */
ing_status ing_front_tensor_load(frame *fr, ing_node at, const value *given,
                                 value *out) {
    tensor_shape s;
    bool ok = false;
    value v = *given; /* may be `out` */
    if (!ing_front_is_runtime(&v))
        return ing_front_tensor_from(fr, at, &v, 0, out, &ok);
    ing_front_tensor_shape(fr, &v, &s);
    *out = v;
    if (v.kind == V_RT || v.temp) return ING_OK;
    if (s.n <= TENSOR_REG) {
        uint32_t inst = ing_ir_emit(&fr->b, ING_OP_LOAD, v.type, v.inst, 0, 0);
        *out = ing_front_rt(inst, v.type);
        return ING_OK;
    }
    *out = ing_front_tensor_temp(fr, &s);
    return copy_elems(fr, at, out, &v, &s);
}

/* Results of funcs travel by value; what is beyond straight code stays in memory: LLVM takes
 * a value of many elements apart, which took 11 s for two results of 32x32. */
ing_status ing_front_tensor_result(frame *fr, ing_node at, value *v) {
    tensor_shape s;
    if (ing_front_tensor_shape(fr, v, &s) && s.n > TENSOR_UNROLL)
        return ing_front_tensor_spill(fr, at, v, ING_VOID, v);
    if (v->kind == V_REF)
        *v = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_LOAD, v->type, v->inst, 0, 0),
                          v->type);
    return ING_OK;
}

ing_status ing_front_tensor_pass(frame *fr, ing_node at, value *v) {
    tensor_shape s = {0};
    bool small = ing_front_tensor_shape(fr, v, &s) && s.n <= TENSOR_REG;
    value *elems = ING_NEW_ARRAY(&fr->lo->arena, (size_t)s.n + 1, value);
    if (!elems) return no_memory(fr);
    if (v->kind != V_TUPLE || !small) return ing_front_tensor_load(fr, at, v, v);
    for (uint32_t k = 0; k < s.n; k++)
        ING_TRY(ing_front_tensor_elem(fr, at, v, &s, k, &elems[k]));
    if (!all_untyped(elems, s.n)) return ing_front_tensor_load(fr, at, v, v);
    for (uint32_t k = 0; k < s.n; k++) {
        value x = ing_front_as_float(&elems[k]);
        ING_TRY(ing_front_load_untyped(fr, at, &x, &elems[k]));
    }
    *v = ing_front_tensor_tuple(fr, &s, elems);
    return ING_OK;
}

static ing_status same_elem(frame *fr, ing_node at, void *self, const value *in,
                            value *out) {
    (void)at, (void)self;
    (void)fr;
    *out = in[1];
    return ING_OK;
}

/* As the reference names it: [Tensor (3) i32]. The type of a tuple is that of its first
 * element. */
static const char *type_text(frame *fr, ing_node at, const value *v,
                             const tensor_shape *s) {
    ing_dtype t = s->dtype;
    if (!t) {
        value first = *v, x;
        while (first.kind == V_TUPLE && first.n) first = first.items[0];
        if (ing_front_load(fr, at, &first, &x) == ING_OK) t = v_type(&x);
    }
    const char *name = ing_dtype_name(t),
               *text = s->rank == 1
                           ? ing_arena_printf(&fr->lo->arena, "[Tensor (%u) %s]",
                                              s->rows, name)
                           : ing_arena_printf(&fr->lo->arena, "[Tensor (%u, %u) %s]",
                                              s->rows, s->cols, name);
    return text ? text : "?";
}

/* What is assigned to a tensor of shape s: a tensor of that shape and type, or a number
 * for all its elements. */
static ing_status fit(frame *fr, ing_node at, const value *to, const tensor_shape *s,
                      const value *given, value *out) {
    value v = *given;
    tensor_shape have;
    bool ok = true;
    ing_dtype met = ing_front_tensor_meets(fr, to);
    if (ing_front_is_scalar(&v)) {
        if (met) ING_TRY(ing_front_load_with(fr, at, given, met, &v));
        value both[2] = {*to, v};
        if (to->kind == V_REF && s->n <= TENSOR_REG)
            ING_TRY(ing_front_tensor_load(fr, at, to, &both[0]));
        ING_TRY(ing_front_tensor_map(fr, at, both, 2, same_elem, NULL, &v));
    }
    bool whole = ing_front_is_runtime(&v);
    ING_TRY(ing_front_tensor_from(fr, at, &v, whole ? ING_VOID : met, &v, &ok));
    if (!ok || !ing_front_tensor_shape(fr, &v, &have))
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            "assign a vector or matrix of that shape, or one number for all elements",
            "%s cannot be assigned to a %s of shape %s", ing_front_describe(fr, given),
            s->rank == 1 ? "vector" : "matrix", ing_front_shape_text(fr, s));
    if (have.rank != s->rank || have.rows != s->rows || have.cols != s->cols) {
        const char *from = type_text(fr, at, &v, &have);
        return ing_front_fail_at(fr, at, ING_TYPE, "the shapes must be equal",
                                 "cannot assign '%s' to '%s'", from,
                                 type_text(fr, at, to, s));
    }
    *out = v;
    if (s->dtype && have.dtype != s->dtype)
        return ing_front_tensor_cast(fr, at, &v, s->dtype, out);
    return ING_OK;
}

/* Places of a slice or swizzle, one by one; the right side was read before. */
static ing_status store_places(frame *fr, ing_node at, const value *to,
                               const tensor_shape *s, const value *v) {
    for (uint32_t k = 0; k < s->n; k++) {
        value place = ing_front_tensor_place(fr, to, s, k), x;
        tensor_shape have;
        ing_front_tensor_shape(fr, v, &have);
        if (place.kind != V_REF || place.fixed)
            return ing_front_fail_at(fr, at, ING_SYNTAX,
                                     "copy it into a new variable first",
                                     "elements of this vector cannot be assigned");
        ING_TRY(ing_front_tensor_elem(fr, at, v, &have, k, &x));
        uint32_t inst = 0;
        ING_TRY(ing_front_convert(fr, at, &x, v_type(&place), &inst));
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, place.inst, inst, 0);
    }
    return ING_OK;
}

ing_status ing_front_tensor_store(frame *fr, ing_node at, const value *to,
                                  const value *given) {
    tensor_shape s;
    value v;
    ing_front_tensor_shape(fr, to, &s);
    ING_TRY(fit(fr, at, to, &s, given, &v));
    fr->b.loc = at;
    if (to->kind == V_TUPLE) return store_places(fr, at, to, &s, &v);
    if (v.kind == V_RT) {
        ing_ir_emit(&fr->b, ING_OP_STORE, 0, to->inst, v.inst, 0);
        return ING_OK;
    }
    return copy_elems(fr, at, to, &v, &s);
}

/* A tensor as a variable. */
ing_status ing_front_tensor_declare(frame *fr, ing_node at, uint32_t atom,
                                    const value *v) {
    value x;
    tensor_shape s;
    ING_TRY(ing_front_tensor_load(fr, at, v, &x));
    if (!ing_front_tensor_shape(fr, &x, &s))
        return ing_front_fail_at(fr, at, ING_TYPE,
                                 "make one with qd.Vector([..]) or qd.Matrix([..])",
                                 "this is no vector");
    x.fixed = x.arg = false;
    if (x.kind == V_RT && (fr->uses[atom] != NAME_ONCE || s.n > TENSOR_REG))
        ING_TRY(ing_front_tensor_spill(fr, at, &x, ING_VOID, &x));
    x.temp = false;
    return ing_front_scope_add(fr, atom, &x);
}
