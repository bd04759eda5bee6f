/* `for`: over range, ndrange, arrays and grouped ones at run time, over anything static
 * unrolled. Called by the statement table. A loop in the outermost block of a kernel, or of a
 * func that was opened there, is parallel; all others are serial.
 *
 * A loop over several axes counts the places of AXES, and AXIS tells where on each it is;
 * how that becomes loops is for the passes that shape tasks (src/pass/shape.c). */
#include "front/front_int.h"
#include "gen/abi.h"

#include <string.h>

typedef struct edge { /* where a loop begins or ends */
    uint32_t inst;
    ing_dtype type; /* I32 or I64 */
    bool known;     /* while compiling: `at` */
    int64_t at;
} edge;

/* One axis of a loop, in order of nesting. A loop over one axis runs in `type`; of several, the
 * bounds are i64. */
typedef struct axis {
    uint32_t begin, end;
    uint32_t target; /* which of the targets it is */
    ing_dtype type;  /* of the index: I32 or I64 */
    bool wide;       /* 31 bits may not hold how many there are */
    bool known;      /* how many, while compiling: `count` */
    int64_t count;
} axis;

typedef struct run {
    ing_node node;
    uint32_t body;
    bool grouped;           /* one target: all indices as a tuple */
    bool array;             /* over the elements of an array */
    const ing_place *field; /* over those of a field, by levels */
    uint32_t from, step;    /* of a range with steps; the loop counts them in i64 */
    value *fill; /* in place of a body: a field, and what each element becomes */
    uint32_t n;
    axis at[ING_MAX_NDIM];
    flow *out; /* of a loop that runs at least once; NULL: it may not run */
} run;

/* ---- targets -------------------------------------------------------------------------------- */

static ing_status loop_name(frame *fr, ing_node target, const value *v) {
    if (fr->t->nodes.at[target].kind != ING_NODE_NAME)
        return ing_front_fail_at(fr, target, ING_SYNTAX, "use plain names",
                                 "a loop variable must be a name");
    uint32_t slot = NF(fr->t, target, NAME)->id;
    const char *name = ing_front_atom_text(fr, slot);
    if (ing_front_scope_find(fr, slot - 1) && !(name[0] == '_' && !name[1]))
        return ing_front_fail_at(
            fr, target, ING_SYNTAX, "use another name for the loop variable",
            "Variable '%s' is already declared in the outer scope and cannot be used "
            "as loop variable",
            name);
    value x = *v;
    x.fixed = true;
    return ing_front_scope_add(fr, slot - 1, &x);
}

static ing_status bind_indices(frame *fr, const run *r, const value *index) {
    ing_node target = NF(fr->t, r->node, FOR)->target;
    uint8_t kind = fr->t->nodes.at[target].kind;
    bool several = kind == ING_NODE_TUPLE || kind == ING_NODE_LIST;
    uint32_t elts = several ? NF(fr->t, target, TUPLE)->elts : 0;
    uint32_t n = several ? list_len(fr->t, elts) : 1;
    uint32_t n_index = r->field ? r->field->ndim : r->n;
    if (r->grouped) {
        if (n != 1)
            return ing_front_fail_at(
                fr, target, ING_SYNTAX, "use one name, I, and I[0], I[1], ...",
                "Group for should have 1 loop target, found %u", n);
        value *items = ING_NEW_ARRAY(&fr->lo->arena, n_index + 1, value);
        for (uint32_t i = 0; items && i < n_index; i++) items[i] = index[i];
        value tuple = ing_front_seq(V_TUPLE, items, items ? n_index : 0);
        tuple.tensor = true;
        return loop_name(fr, several ? list_at(fr->t, elts, 0) : target, &tuple);
    }
    bool plain = r->n == 1 && !r->array && !r->field;
    if (n != n_index)
        return ing_front_fail_at(
            fr, target, ING_SYNTAX,
            plain ? "this has one axis; two are qd.ndrange(n, m)"
                  : "write one name per axis, or use qd.grouped()",
            r->array
                ? "Number of struct-for indices does not match loop variable "
                  "dimensionality (%u names, %u axes)"
                : "Ndrange for loop with number of the loop variables not equal to "
                  "the dimension of the ndrange is not supported (%u names, %u "
                  "axes)",
            n, n_index);
    for (uint32_t i = 0; i < n; i++)
        ING_TRY(loop_name(fr, several ? list_at(fr->t, elts, i) : target, &index[i]));
    return ING_OK;
}

/* ---- run-time loops ---------------------------------------------------------------------------- */

/* The index of each axis; the loop counts the places of `axes`, 0 = it is over one axis. */
static void axis_indices(frame *fr, const run *r, uint32_t axes, uint32_t number,
                         value *index) {
    for (uint32_t p = r->n; p-- > 0;) {
        const axis *a = &r->at[p];
        uint32_t id = number;
        if (axes) id = ing_ir_emit(&fr->b, ING_OP_AXIS, a->type, axes, number, p);
        if (r->step) {
            id = ing_front_emit_cast(fr, id, ING_I64, a->type);
            id = ing_ir_emit(&fr->b, ING_OP_MUL, a->type, id, r->step, 0);
            id = ing_ir_emit(&fr->b, ING_OP_ADD, a->type, r->from, id, 0);
        }
        index[a->target] = ing_front_rt(id, a->type);
    }
}

/* One element of x.fill(v). */
static ing_status fill_element(frame *fr, const run *r, const value *index) {
    uint32_t n = r->field ? r->field->ndim : r->n;
    value ref;
    ING_TRY(
        ing_front_bundle_element(fr, r->node, &r->fill[0], index, n, r->node, &ref));
    return ing_front_store(fr, r->node, r->node, &ref, &r->fill[1]);
}

static ing_status loop_body(frame *fr, const run *r, uint32_t axes, uint32_t index,
                            bool parallel) {
    loop l = {.outer = fr->loops, .parallel = parallel};
    bool outer = fr->in_parallel;
    uint32_t mark = ing_front_scope_open(fr);
    value parts[ING_MAX_NDIM];
    fr->in_parallel |= parallel;
    ing_status s = ing_front_nest(fr, r->node);
    l.control = fr->control;
    fr->loops = &l;
    axis_indices(fr, r, axes, index, parts);
    if (r->field) {
        value levels[ING_MAX_NDIM];
        memcpy(levels, parts, sizeof levels);
        ing_front_field_join(fr, r->field, levels, parts);
    }
    flow inner = FLOW_NEXT;
    if (s == ING_OK && r->fill) s = fill_element(fr, r, parts);
    if (s == ING_OK && !r->fill) s = bind_indices(fr, r, parts);
    if (s == ING_OK && !r->fill) s = ing_front_block(fr, r->body, &inner);
    if (r->out && inner == FLOW_ENDED && !l.broke && !l.continued)
        *r->out = FLOW_ENDED; /* its first iteration returns */
    fr->loops = l.outer;
    fr->control--;
    fr->in_parallel = outer;
    ing_front_scope_close(fr, mark);
    return s;
}

/* Stops the kernel where `bad` holds: src/py/call/error.c says why, by `what` and the number. */
static void stop_if(frame *fr, ing_node at, uint32_t bad, uint32_t what,
                    uint32_t number) {
    ing_ir_builder *b = &fr->b;
    b->loc = at;
    ing_ir_block_begin(b);
    uint32_t ids[2] = {ing_ir_const_int(b, ING_I32, what), number};
    ing_ir_emit_list(b, ING_OP_DETAIL, 0, ids, number ? 2 : 1);
    ing_ir_emit(b, ING_OP_CHECK, 0, ing_ir_const_int(b, ING_U1, 0), ING_ABI_LOOP, 0);
    ing_ir_emit(b, ING_OP_IF, 0, bad, ing_ir_block_end(b), 0);
}

static ing_status fail_length(frame *fr, ing_node at) {
    return ing_front_fail_at(fr, at, ING_VALUE, "loop over fewer",
                             "a loop of 2**63 iterations or more");
}

static uint32_t extent_of(frame *fr, const axis *a) {
    uint32_t top = ing_ir_emit(&fr->b, ING_OP_MAX, ING_I64, a->end, a->begin, 0);
    return ing_ir_emit(&fr->b, ING_OP_SUB, ING_I64, top, a->begin, 0);
}

/* 2**63 places and more are refused, never cut: known extents here, others at run time. In
 * floats, which are wrong in the 53rd bit: so the last 2**23 before that limit are refused too.
 * Arrays have no more elements than memory, and two narrow axes no more than 2**62. */
static ing_status refuse_endless(frame *fr, const run *r) {
    ing_ir_builder *b = &fr->b;
    __int128 most = 1;
    bool known = true, safe = r->array || r->n == 2, zero = false;
    uint32_t product = 0;
    for (uint32_t p = r->n; p-- > 0;) {
        const axis *a = &r->at[p];
        known &= a->known;
        safe &= !a->wide;
        zero |= a->known && a->count == 0;
        if (a->known && most <= INT64_MAX) most *= a->count;
    }
    if (zero || safe) return ING_OK;
    if (known) return most > INT64_MAX ? fail_length(fr, r->node) : ING_OK;
    for (uint32_t p = r->n; p-- > 0;) {
        uint32_t x =
            ing_front_emit_cast(fr, extent_of(fr, &r->at[p]), ING_I64, ING_F64);
        product = product ? ing_ir_emit(b, ING_OP_MUL, ING_F64, product, x, 0) : x;
    }
    uint32_t limit = ing_ir_const_float(b, ING_F64, 0x1p63 - 0x1p23);
    uint32_t bad = ing_ir_emit(b, ING_OP_GE, ING_U1, product, limit, 0);
    stop_if(fr, r->node, bad, ING_ABI_LOOP_LENGTH, 0);
    return ING_OK;
}

/* The places of a loop over several axes. */
static ing_status emit_axes(frame *fr, const run *r, uint32_t *axes) {
    uint32_t bounds[2 * ING_MAX_NDIM];
    ING_TRY(refuse_endless(fr, r));
    for (uint32_t p = 0; p < r->n; p++) {
        bounds[2 * p] = r->at[p].begin;
        bounds[2 * p + 1] = r->at[p].end;
    }
    *axes = ing_ir_axes(&fr->b, bounds, r->n);
    return ING_OK;
}

static ing_status run_loop(frame *fr, const run *r) {
    ing_ir_builder *b = &fr->b;
    bool top = fr->top && fr->control == 0;
    bool parallel = top && !fr->serialize_next;
    uint16_t flags = parallel ? ING_IR_PARALLEL : top ? ING_IR_SERIAL : 0;
    fr->serialize_next = false;
    uint32_t axes = 0, begin = r->at[0].begin, end = r->at[0].end;
    ing_dtype t = r->n == 1 && !r->step ? r->at[0].type : ING_I64;
    if (r->n > 1) {
        ING_TRY(emit_axes(fr, r, &axes));
        begin = ing_ir_const_int(b, t, 0);
        end = axes;
    }
    uint32_t id = ing_ir_loop_reserve(b, t);
    ing_ir_block_begin(b);
    ing_status s = loop_body(fr, r, axes, id, parallel);
    uint32_t body = ing_ir_block_end(b);
    ING_TRY(s);
    b->loc = r->node;
    ing_ir_loop_finish(b, id, begin, end, body, flags);
    return ING_OK;
}

/* ---- bounds ------------------------------------------------------------------------------------ */

/* A number that is known counts by its value, one of the run time by its type: an i32 index
 * where that holds both bounds, else an i64 one. */
static ing_status known_edge(frame *fr, ing_node at, const value *v, edge *out) {
    if (v->wide)
        return ing_front_fail_at(
            fr, at, ING_VALUE, "loop from a smaller number and add in the loop",
            "the bound %llu of a loop: an index counts up to 2**63 - 1",
            (unsigned long long)v->i);
    bool narrow = v->i >= INT32_MIN && v->i <= INT32_MAX;
    *out = (edge){.type = narrow ? ING_I32 : ING_I64, .known = true, .at = v->i};
    out->inst = ing_ir_const_int(&fr->b, out->type, v->i);
    return ING_OK;
}

/* A float is cut to an i32, as in the reference; what that does not hold is refused. */
static ing_status float_edge(frame *fr, ing_node at, const value *x, edge *out) {
    ing_ir_builder *b = &fr->b;
    ing_dtype t = v_type(x);
    ING_TRY(ing_front_warn_at(fr, at, "UserWarning",
                              "Casting range_for boundary values from %s to i32, which "
                              "may cause numerical issues (write n // 2 for n / 2, "
                              "or int(x))",
                              ing_dtype_name(t)));
    uint32_t wide = ing_front_emit_cast(fr, x->inst, t, ING_F64);
    uint32_t top = ing_ir_const_float(b, ING_F64, 0x1p31);
    uint32_t low = ing_ir_const_float(b, ING_F64, -0x1p31 - 1);
    uint32_t below = ing_ir_emit(b, ING_OP_LT, ING_U1, wide, top, 0);
    uint32_t above = ing_ir_emit(b, ING_OP_GT, ING_U1, wide, low, 0);
    uint32_t fits = ing_ir_emit(b, ING_OP_AND, ING_U1, below, above, 0);
    uint32_t bad = ing_ir_emit(b, ING_OP_NOT, ING_U1, fits, 0, 0); /* NaN too */
    stop_if(fr, at, bad, ING_ABI_LOOP_FLOAT, wide);
    *out = (edge){.type = ING_I32};
    out->inst = ing_front_emit_cast(fr, x->inst, t, ING_I32);
    return ING_OK;
}

static ing_status read_edge(frame *fr, ing_node at, const value *given, edge *out) {
    value v = *given, x;
    ING_TRY(ing_front_force(fr, at, &v));
    if (v.kind == V_SEEN && v.seen == ING_GATE_ENUM) {
        ING_TRY(ing_front_thing_attr(fr, at, v.gref, "value", &v));
        ING_TRY(ing_front_force(fr, at, &v));
    }
    if (v.kind == V_ARRAY && v.n)
        return ing_front_fail_at(fr, at, ING_TYPE,
                                 "loop over its indices: range(a.shape[0]), or "
                                 "`for i in a`",
                                 "a number is needed here; this is an array");
    if (v.kind == V_INT || v.kind == V_BOOL) return known_edge(fr, at, &v, out);
    ING_TRY(ing_front_load_number(fr, at, &v, &x));
    ing_dtype t = v_type(&x);
    if (ing_dtype_is_float(t)) return float_edge(fr, at, &x, out);
    bool wide = t == ING_I64 || t == ING_U64 || t == ING_U32;
    *out = (edge){.type = wide ? ING_I64 : ING_I32};
    if (t == ING_U64) {
        uint32_t top = ing_ir_const_int(&fr->b, ING_U64, INT64_MAX);
        uint32_t bad = ing_ir_emit(&fr->b, ING_OP_GT, ING_U1, x.inst, top, 0);
        stop_if(fr, at, bad, ING_ABI_LOOP_BOUND, x.inst);
    }
    out->inst = ing_front_emit_cast(fr, x.inst, t, out->type);
    return ING_OK;
}

static edge known_zero(frame *fr) {
    return (edge){
        .type = ING_I32, .known = true, .inst = ing_ir_const_int(&fr->b, ING_I32, 0)};
}

static void widen(frame *fr, edge *e, ing_dtype t) {
    if (e->known && e->type != t)
        e->inst = ing_ir_const_int(&fr->b, t, e->at);
    else
        e->inst = ing_front_emit_cast(fr, e->inst, e->type, t);
    e->type = t;
}

static ing_dtype index_type(const edge *begin, const edge *end) {
    return begin->type == ING_I64 || end->type == ING_I64 ? ING_I64 : ING_I32;
}

/* A loop over one axis: the bounds as they are, in one type. */
static void axis_alone(frame *fr, edge *begin, edge *end, axis *a) {
    a->type = index_type(begin, end);
    widen(fr, begin, a->type);
    widen(fr, end, a->type);
    a->begin = begin->inst;
    a->end = end->inst;
}

/* One of several. */
static ing_status axis_among(frame *fr, ing_node at, edge *begin, edge *end, axis *a) {
    a->type = index_type(begin, end);
    a->known = begin->known && end->known;
    __int128 count = (__int128)end->at - begin->at;
    if (a->known && count > INT64_MAX) return fail_length(fr, at);
    a->count = count > 0 ? (int64_t)count : 0;
    /* end - begin, both i32, has 31 bits if begin is not negative. */
    a->wide = a->type == ING_I64 || !begin->known || begin->at < 0;
    if (a->known && a->type == ING_I32) a->wide = a->count > INT32_MAX;
    bool fits = a->known || a->type == ING_I32 || (begin->known && begin->at >= 0);
    widen(fr, begin, ING_I64);
    widen(fr, end, ING_I64);
    a->begin = begin->inst;
    a->end = end->inst;
    if (fits) return ING_OK;
    uint32_t zero = ing_ir_const_int(&fr->b, ING_I64, 0);
    uint32_t bad = ing_ir_emit(&fr->b, ING_OP_LT, ING_U1, extent_of(fr, a), zero, 0);
    stop_if(fr, at, bad, ING_ABI_LOOP_LENGTH, 0);
    return ING_OK;
}

/* Where argument i of n stands, if the iterator is written as a call with as many. */
static ing_node arg_node(const frame *fr, ing_node at, uint32_t i, uint32_t n) {
    while (fr->t->nodes.at[at].kind == ING_NODE_CALL) {
        uint32_t args = NF(fr->t, at, CALL)->args;
        ing_node arg = list_len(fr->t, args) ? list_at(fr->t, args, 0) : 0;
        if (!arg || fr->t->nodes.at[arg].kind == ING_NODE_STARRED) break;
        if (list_len(fr->t, args) == n) return list_at(fr->t, args, i);
        if (list_len(fr->t, args) != 1) break;
        at = arg; /* qd.grouped(...), qd.static(...) */
    }
    return at;
}

/* How many steps lead from begin to end (i64), for a step of that sign. */
static uint32_t count_steps(frame *fr, uint32_t begin, uint32_t end, uint32_t step) {
    ing_ir_builder *b = &fr->b;
    uint32_t far = ing_ir_emit(b, ING_OP_SUB, ING_I64, end, begin, 0);
    uint32_t less = ing_ir_emit(b, ING_OP_SUB, ING_I64, begin, end, 0);
    uint32_t back = ing_ir_emit(b, ING_OP_FLOORDIV, ING_I64, less, step, 0);
    uint32_t count = ing_ir_emit(b, ING_OP_NEG, ING_I64, back, 0, 0); /* rounded up */
    uint32_t zero = ing_ir_const_int(b, ING_I64, 0);
    uint32_t up = ing_ir_emit(b, ING_OP_GT, ING_U1, step, zero, 0);
    uint32_t ahead = ing_ir_emit(b, ING_OP_GT, ING_U1, far, zero, 0);
    uint32_t behind = ing_ir_emit(b, ING_OP_LT, ING_U1, far, zero, 0);
    uint32_t any = ing_ir_emit(b, ING_OP_SELECT, ING_U1, up, ahead, behind);
    return ing_ir_emit(b, ING_OP_SELECT, ING_I64, any, count, zero);
}

/* range(begin, end, step) runs over the numbers of its steps; the index is made of them. */
static ing_status stepped_for(frame *fr, ing_node n, const value *it) {
    ing_ir_builder *b = &fr->b;
    ing_node iter = NF(fr->t, n, FOR)->iter;
    run r = {.node = n, .body = NF(fr->t, n, FOR)->body, .n = 1};
    edge e[3];
    for (uint32_t k = 0; k < 3; k++)
        ING_TRY(read_edge(fr, arg_node(fr, iter, k, 3), &it->items[k], &e[k]));
    ing_node at = arg_node(fr, iter, 2, 3);
    if (e[2].known && e[2].at == 0)
        return ing_front_fail_at(fr, at, ING_VALUE, "pass a step that is not 0",
                                 "the step of a range is 0");
    ing_dtype t = index_type(&e[0], &e[1]);
    uint32_t from = ing_front_emit_cast(fr, e[0].inst, e[0].type, t);
    for (uint32_t k = 0; k < 3; k++) widen(fr, &e[k], ING_I64);
    if (!e[2].known) {
        uint32_t zero = ing_ir_const_int(b, ING_I64, 0);
        uint32_t bad = ing_ir_emit(b, ING_OP_EQ, ING_U1, e[2].inst, zero, 0);
        stop_if(fr, at, bad, ING_ABI_LOOP_STEP, 0);
    }
    if (t == ING_I64) { /* i32 bounds are less than 2**32 apart */
        uint32_t apart = ing_ir_emit(b, ING_OP_SUB, ING_I64, e[1].inst, e[0].inst, 0);
        uint32_t x = ing_ir_emit(b, ING_OP_XOR, ING_I64, e[1].inst, e[0].inst, 0);
        uint32_t y = ing_ir_emit(b, ING_OP_XOR, ING_I64, e[1].inst, apart, 0);
        uint32_t both = ing_ir_emit(b, ING_OP_AND, ING_I64, x, y, 0);
        uint32_t zero = ing_ir_const_int(b, ING_I64, 0);
        stop_if(fr, n, ing_ir_emit(b, ING_OP_LT, ING_U1, both, zero, 0),
                ING_ABI_LOOP_LENGTH, 0);
    }
    uint32_t zero = ing_ir_const_int(b, ING_I64, 0);
    uint32_t count = count_steps(fr, e[0].inst, e[1].inst, e[2].inst);
    r.at[0] = (axis){.type = t, .begin = zero, .end = count};
    r.from = from;
    r.step = e[2].known ? ing_ir_const_int(b, t, e[2].at)
                        : ing_front_emit_cast(fr, e[2].inst, ING_I64, t);
    return run_loop(fr, &r);
}

static ing_status range_for(frame *fr, ing_node n, const value *it, flow *out) {
    ING_TRY(ing_front_check_reverse(fr, n));
    const struct nf_FOR *f = NF(fr->t, n, FOR);
    int64_t reference = 0;
    if (it->n == 3) ING_TRY(ing_front_config_get(fr, n, ING_SET_reference, &reference));
    if (reference || it->n < 1 || it->n > 3)
        return ing_front_fail_at(
            fr, f->iter, ING_SYNTAX,
            "loop over the count and compute the value: i = start + k * step",
            "Range should have 1 or 2 arguments, found %u", it->n);
    if (it->n == 3) return stepped_for(fr, n, it);
    run r = {.node = n, .body = f->body, .n = 1};
    uint32_t last = it->n - 1;
    edge begin = known_zero(fr), end;
    if (last)
        ING_TRY(read_edge(fr, arg_node(fr, f->iter, 0, it->n), &it->items[0], &begin));
    ING_TRY(read_edge(fr, arg_node(fr, f->iter, last, it->n), &it->items[last], &end));
    if (begin.known && end.known && begin.at < end.at) r.out = out; /* it runs */
    axis_alone(fr, &begin, &end, &r.at[0]);
    return run_loop(fr, &r);
}

/* One argument of ndrange: n or (begin, end). */
static ing_status ndrange_edges(frame *fr, ing_node at, value *v, edge *begin,
                                edge *end) {
    value *items = v;
    uint32_t n = 1;
    bool ok = true;
    ING_TRY(ing_front_force(fr, at, v));
    if (!ing_front_is_scalar(v)) ING_TRY(ing_front_items(fr, at, v, &items, &n, &ok));
    if (!ok || (items != v && n != 2))
        return ing_front_fail_at(
            fr, at, ING_SYNTAX, "there are no steps: compute the value in the loop",
            "Every argument of ndrange should be a scalar or a tuple/list like (begin, "
            "end)");
    *begin = known_zero(fr);
    for (uint32_t i = 0; i < n; i++) {
        value *x = &items[i];
        ING_TRY(ing_front_force(fr, at, x));
        if (x->kind == V_FLOAT || (ing_front_is_runtime(x) && x->type < ING_DTYPE_N &&
                                   ing_dtype_is_float(v_type(x))))
            return ing_front_fail_at(
                fr, at, ING_TYPE, "convert it: int(x)",
                "Every argument of ndrange should be an integer scalar or a tuple/list "
                "of (int, int)");
        ING_TRY(read_edge(fr, at, x, i + 1 == n ? end : begin));
    }
    return ING_OK;
}

/* One of n; its bounds are i64 if there are several. */
static void field_axis(frame *fr, run *r, uint32_t target, int64_t extent, uint32_t n) {
    ing_dtype t = n > 1 ? ING_I64 : ING_I32;
    uint32_t begin = ing_ir_const_int(&fr->b, t, 0);
    uint32_t end = ing_ir_const_int(&fr->b, t, extent);
    r->at[r->n++] = (axis){.target = target,
                           .type = ING_I32,
                           .known = true,
                           .count = extent,
                           .begin = begin,
                           .end = end};
}

/* Over the levels of a field (field.c FIELD2); over its axes if there are too many for a loop. */
static ing_status run_field(frame *fr, run r, const ing_place *p) {
    r.array = true;
    ing_place flat = *p;
    if (p->n_levels > ING_MAX_NDIM) {
        flat.n_levels = 0;
        for (uint32_t a = 0; a < p->ndim; a++)
            flat.level[flat.n_levels++] =
                (ing_level){.axis = a, .extent = ing_place_extent(p, a)};
    }
    r.field = &flat;
    for (uint32_t k = 0; k < flat.n_levels; k++)
        field_axis(fr, &r, k, flat.level[k].extent, flat.n_levels);
    if (r.n == 0) field_axis(fr, &r, 0, 1, 1); /* one element */
    return run_loop(fr, &r);
}

/* items: the arguments, then the order of the axes as a tuple (or None). */
static ing_status ndrange_for(frame *fr, ing_node n, const value *it, bool grouped) {
    const struct nf_FOR *f = NF(fr->t, n, FOR);
    run r = {.node = n, .body = f->body, .grouped = grouped, .n = it->n - 1};
    if (r.n == 0) return run_field(fr, r, &(ing_place){0}); /* once, without indices */
    if (r.n > ING_MAX_NDIM)
        return ing_front_fail_at(fr, f->iter, ING_SYNTAX,
                                 "give it one extent for each axis",
                                 "qd.ndrange takes up to %d arguments", ING_MAX_NDIM);
    const value *axes = &it->items[r.n];
    for (uint32_t p = 0; p < r.n; p++) {
        uint32_t target = axes->kind == V_TUPLE ? (uint32_t)axes->items[p].i : p;
        r.at[p].target = target;
    }
    axis made[ING_MAX_NDIM] = {0}; /* arguments are read in source order */
    for (uint32_t i = 0; i < r.n; i++) {
        ing_node at = arg_node(fr, f->iter, i, r.n);
        edge begin, end;
        ING_TRY(ndrange_edges(fr, at, &it->items[i], &begin, &end));
        if (r.n > 1)
            ING_TRY(axis_among(fr, at, &begin, &end, &made[i]));
        else
            axis_alone(fr, &begin, &end, &made[i]);
    }
    for (uint32_t p = 0; p < r.n; p++) {
        uint32_t target = r.at[p].target;
        r.at[p] = made[target];
        r.at[p].target = target;
    }
    return run_loop(fr, &r);
}

static ing_status field_for(frame *fr, ing_node n, const ing_place *p, bool grouped) {
    run r = {.node = n, .body = NF(fr->t, n, FOR)->body, .grouped = grouped};
    return run_field(fr, r, p);
}

/* Over all indices of an ndarray, in the order of memory. */
static ing_status run_array(frame *fr, run r, ing_node at, const value *array) {
    const ing_type_info *t = ing_ir_type(fr->lo->mod, array->type);
    r.array = true;
    r.n = t->rank;
    if (r.n == 0)
        return ing_front_fail_at(fr, at, ING_TYPE, "read its value with a[()]",
                                 "an array without axes cannot be looped over");
    for (uint32_t p = 0; p < r.n; p++) {
        uint32_t target = t->layout[p];
        edge begin = known_zero(fr), end = {.type = ING_I32};
        end.inst = ing_ir_emit(&fr->b, ING_OP_DIM, ING_I32, array->inst, target, 0);
        if (r.n > 1)
            ING_TRY(axis_among(fr, at, &begin, &end, &r.at[p]));
        else
            axis_alone(fr, &begin, &end, &r.at[p]);
        r.at[p].target = target;
    }
    return run_loop(fr, &r);
}

ing_status ing_front_fill(frame *fr, ing_node n, const value *field, const value *v) {
    value both[2] = {*field}, first;
    bool ok = false;
    ING_TRY(ing_front_freeze(fr, n, v, &both[1])); /* read before the loop */
    ING_TRY(ing_front_bundle_first(fr, n, field, &first, &ok));
    run r = {.node = n, .fill = both};
    return ok ? run_field(fr, r, ing_front_field_place(fr, &first))
              : run_array(fr, r, n, &first);
}

/* A node of the tree of fields is looped over by way of a field of its cells. */
static ing_status cells_of(frame *fr, ing_node at, value *v) {
    bool has = false;
    if (v->kind != V_SEEN || v->seen != ING_GATE_OBJECT) return ING_OK;
    GATE(fr, at, has, v->gref, "_cells", NULL, &has, fr->lo->e);
    if (!has) return ING_OK;
    ING_TRY(ing_front_thing_attr(fr, at, v->gref, "_cells", v));
    return ing_front_force(fr, at, v);
}

static ing_status array_for(frame *fr, ing_node n, const value *over, bool grouped) {
    const struct nf_FOR *f = NF(fr->t, n, FOR);
    value of = *over, *array = &of;
    bool field = false;
    ING_TRY(ing_front_bundle_first(fr, f->iter, over, array, &field));
    if (field) return field_for(fr, n, ing_front_field_place(fr, array), grouped);
    run r = {.node = n, .body = f->body, .grouped = grouped};
    return run_array(fr, r, f->iter, array);
}

/* ---- unrolled loops -------------------------------------------------------------------------------- */

enum { MAX_UNROLL = 1 << 16, WARN_UNROLL = 32 };

/* All index tuples of a static ndrange, last axis fastest (or as `axes` says). */
static ing_status ndrange_items(frame *fr, ing_node at, const value *it, value **items,
                                uint32_t *count) {
    uint32_t n = it->n - 1;
    __int128 begin[ING_MAX_NDIM], extent[ING_MAX_NDIM], total = 1;
    if (n > ING_MAX_NDIM)
        return ing_front_fail_at(fr, at, ING_SYNTAX, "give it one extent for each axis",
                                 "qd.ndrange takes up to %d arguments", ING_MAX_NDIM);
    for (uint32_t i = 0; i < n; i++) {
        value *v = &it->items[i], *part = v;
        uint32_t m = 1;
        bool ok = true;
        ING_TRY(ing_front_force(fr, at, v));
        if (v->kind != V_INT) ING_TRY(ing_front_items(fr, at, v, &part, &m, &ok));
        for (uint32_t k = 0; ok && k < m; k++) {
            ING_TRY(ing_front_force(fr, at, &part[k]));
            ok = part[k].kind == V_INT;
        }
        if (!ok && ing_front_is_static(v))
            return ing_front_fail_at(
                fr, at, ING_TYPE, "convert it: int(x)",
                "Every argument of ndrange should be an integer scalar or a tuple/list "
                "of (int, int)");
        if (!ok || m == 0 || m > 2)
            return ing_front_fail_at(
                fr, at, ING_COMPILE, "leave out qd.static for a run-time loop",
                "qd.static(qd.ndrange(...)) needs compile-time integers");
        __int128 end = ing_front_int_of(&part[m - 1]);
        begin[i] = m == 2 ? ing_front_int_of(&part[0]) : 0;
        extent[i] = end > begin[i] ? end - begin[i] : 0;
        if (extent[i] > MAX_UNROLL) extent[i] = MAX_UNROLL + 1;
        total = extent[i] && total > MAX_UNROLL ? total : total * extent[i];
    }
    if (total > MAX_UNROLL)
        return ing_front_fail_at(fr, at, ING_VALUE, "leave out qd.static",
                                 "unrolling more than %d iterations", MAX_UNROLL);
    const value *axes = &it->items[n];
    *count = (uint32_t)total;
    *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)*count + 1, value);
    for (uint32_t k = 0; *items && k < *count; k++) {
        value *row = ING_NEW_ARRAY(&fr->lo->arena, n + 1, value);
        uint32_t rest = k;
        for (uint32_t p = n; row && p-- > 0;) {
            uint32_t a = axes->kind == V_TUPLE ? (uint32_t)axes->items[p].i : p;
            row[a] = ing_front_int_from(begin[a] + rest % extent[a]);
            rest /= (uint32_t)extent[a];
        }
        (*items)[k] = row && n != 1 ? ing_front_seq(V_TUPLE, row, n)
                      : row         ? row[0]
                                    : ing_front_none();
    }
    return ING_OK;
}

/* qd.grouped: tuples of indices, or indices, become vectors. */
static ing_status vectors_of(frame *fr, ing_node at, value *items, uint32_t n) {
    for (uint32_t k = 0; items && k < n; k++) {
        value *row = &items[k], *parts = ING_NEW(&fr->lo->arena, value);
        uint32_t count = 1;
        bool ok = false;
        ING_TRY(ing_front_force(fr, at, row));
        if (row->kind != V_TUPLE)
            ING_TRY(ing_front_items(fr, at, row, &parts, &count, &ok));
        if (row->kind != V_TUPLE && !ok && parts) *parts = *row;
        if (row->kind != V_TUPLE)
            *row = ing_front_seq(V_TUPLE, parts, parts ? count : 0);
        row->tensor = true;
    }
    return ING_OK;
}

static ing_status static_items(frame *fr, ing_node at, const value *it, value **items,
                               uint32_t *n) {
    bool ok = false;
    const value *inner = it;
    if (it->kind == V_ITER && it->tag == ING_IN_GROUPED) inner = &it->items[0];
    if (inner->kind == V_ITER && inner->tag == ING_IN_NDRANGE) {
        ING_TRY(ndrange_items(fr, at, inner, items, n));
        return inner == it ? ING_OK : vectors_of(fr, at, *items, *n);
    }
    value whole = *inner;
    whole.from_static = true; /* as what it is in */
    ING_TRY(ing_front_sequence(fr, at, &whole, items, n, &ok));
    if (ok && inner != it) return vectors_of(fr, at, *items, *n);
    if (ok) return ING_OK;
    return ing_front_fail_at(
        fr, at, ING_COMPILE,
        "loop over a range, tuple, list, zip or enumerate known while compiling; "
        "leave out qd.static for a run-time loop",
        "qd.static cannot iterate over %s", ing_front_describe(fr, it));
}

static ing_status unroll_one(frame *fr, const struct nf_FOR *f, value *item,
                             flow *out) {
    ING_TRY(ing_front_force(fr, f->iter, item));
    /* A number of a list is what it is now: the body may assign it. */
    ING_TRY(ing_front_numbers_read(fr, f->iter, item));
    /* Targets are new names in a scope of their own, whatever is outside. */
    item->from_static = false;
    ING_TRY(ing_front_assign_to(fr, f->target, f->iter, item, true));
    return ing_front_block(fr, f->body, out);
}

/* A name that is one outside of the loop as well has the last value after it. Where run time
 * decides that, it has none that could be read. */
static ing_status leave_target(frame *fr, ing_node target, ing_node from) {
    if (fr->t->nodes.at[target].kind == ING_NODE_TUPLE) {
        uint32_t elts = NF(fr->t, target, TUPLE)->elts;
        for (uint32_t i = 0; i < list_len(fr->t, elts); i++)
            ING_TRY(leave_target(fr, list_at(fr->t, elts, i), from));
        return ING_OK;
    }
    if (fr->t->nodes.at[target].kind != ING_NODE_NAME) return ING_OK;
    const binding *b = ing_front_binding(fr, NF(fr->t, target, NAME)->id - 1);
    if (!b || !b->shadows) return ING_OK;
    binding *outer = &fr->names.at[b->shadows - 1];
    if (outer->v.kind == V_REF && ing_front_is_scalar(&outer->v) &&
        ing_front_is_scalar(&b->v) && outer->in_parallel == fr->in_parallel)
        return ing_front_store(fr, target, from, &outer->v, &b->v);
    if (outer->depth == fr->b.starts.len && outer->v.kind != V_REF)
        outer->v = b->v;
    else
        outer->v = (value){.kind = V_VOID};
    return ING_OK;
}

static ing_status static_for(frame *fr, ing_node n, const value *it, flow *out) {
    const struct nf_FOR *f = NF(fr->t, n, FOR);
    value *items;
    uint32_t count = 0;
    ING_TRY(static_items(fr, f->iter, it, &items, &count));
    if (count > WARN_UNROLL)
        ING_TRY(ing_front_warn_at(fr, n, "SyntaxWarning",
                                  "You are unrolling more than %d iterations, so the "
                                  "compile time may be extremely long. You can use a "
                                  "non-static for loop if you want to decrease the "
                                  "compile time.",
                                  WARN_UNROLL));
    loop l = {.outer = fr->loops, .unrolled = true, .control = fr->control};
    fr->loops = &l;
    ing_status s = ING_OK;
    flow inner = FLOW_NEXT;
    for (uint32_t i = 0; items && i < count && s == ING_OK; i++) {
        uint32_t mark = ing_front_scope_open(fr);
        s = unroll_one(fr, f, &items[i], &inner);
        bool last = i + 1 == count || inner == FLOW_BREAK;
        if (s == ING_OK && last && inner != FLOW_ENDED)
            s = leave_target(fr, f->target, f->iter);
        ing_front_scope_close(fr, mark);
        if (inner == FLOW_BREAK || inner == FLOW_ENDED) break;
    }
    fr->loops = l.outer;
    *out = inner == FLOW_ENDED ? FLOW_ENDED : FLOW_NEXT;
    return s;
}

static const char *loop_remedy(const value *it) {
    if (it->kind == V_ITER && it->tag == ING_IN_GROUPED)
        return "qd.grouped takes an array, a field or qd.ndrange(n, m)";
    if (it->kind == V_LIST || (it->kind == V_TUPLE && !it->tensor))
        return "wrap it in qd.static(...) to unroll the loop";
    for (uint32_t k = 0; it->kind == V_ITER && k < it->n; k++)
        if (!ing_front_is_static(&it->items[k]) || it->items[k].kind == V_ARRAY ||
            it->items[k].kind == V_BUNDLE)
            return "loop over the index, `for i in range(a.shape[0])`, and read a[i]";
    return ing_front_is_scalar(it)   ? "loop over range(n)"
           : ing_front_is_static(it) ? "wrap it in qd.static(...) to unroll the loop"
                                     : "loop over range(n) and index inside";
}

/* ---- the statement ------------------------------------------------------------------------------------ */

ing_status ing_front_stmt_for(frame *fr, ing_node n, flow *out) {
    const struct nf_FOR *f = NF(fr->t, n, FOR);
    if (list_len(fr->t, f->orelse))
        return ing_front_fail_at(fr, n, ING_SYNTAX, "use a flag variable",
                                 "'else' clause for 'for' not supported in %s",
                                 ing_front_kernels(fr));
    value it;
    ING_TRY(ing_front_expr_forced(fr, f->iter, &it));
    if (it.from_static) return static_for(fr, n, &it, out);
    if (fr->lo->region == ING_OP_FORK) return ing_front_fork_only(fr, n);
    ING_TRY(cells_of(fr, f->iter, &it));
    if (it.kind == V_ARRAY || it.kind == V_BUNDLE) return array_for(fr, n, &it, false);
    if (it.kind == V_ITER && it.tag == ING_IN_PY_RANGE)
        return range_for(fr, n, &it, out);
    if (it.kind == V_ITER && it.tag == ING_IN_NDRANGE)
        return ndrange_for(fr, n, &it, false);
    if (it.kind == V_ITER && it.tag == ING_IN_GROUPED) {
        value *inner = &it.items[0];
        ING_TRY(cells_of(fr, f->iter, inner));
        if (inner->kind == V_ARRAY || inner->kind == V_BUNDLE)
            return array_for(fr, n, inner, true);
        if (inner->kind == V_ITER && inner->tag == ING_IN_NDRANGE)
            return ndrange_for(fr, n, inner, true);
    }
    return ing_front_fail_at(fr, f->iter, ING_SYNTAX, loop_remedy(&it),
                             "a loop cannot run over %s", ing_front_describe(fr, &it));
}
