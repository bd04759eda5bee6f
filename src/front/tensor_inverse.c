/* The inverse of matrices that are too large for a formula: Gauss-Jordan elimination with
 * partial pivoting, emitted as loops over memory, so that the code does not grow with the
 * size. Called by tensor_linear.c. A singular matrix gives infinities or NaN, as division
 * by zero does. */
#include "front/tensor.h"

typedef struct elim {
    frame *fr;
    ing_node n;
    tensor_shape s;
    value a, b; /* reduced to the identity; becomes the inverse */
} elim;

static uint32_t constant(frame *fr, int64_t v) {
    return ing_ir_const_int(&fr->b, ING_I32, v);
}

static uint32_t load_at(elim *e, const value *m, uint32_t row, uint32_t col,
                        uint32_t *place) {
    ing_ir_builder *b = &e->fr->b;
    uint32_t at =
        ing_ir_emit(b, ING_OP_MUL, ING_I32, row, constant(e->fr, e->s.cols), 0);
    at = ing_ir_emit(b, ING_OP_ADD, ING_I32, at, col, 0);
    *place = ing_front_tensor_place_dyn(e->fr, m, &e->s, at).inst;
    return ing_ir_emit(b, ING_OP_LOAD, e->s.dtype, *place, 0, 0);
}

static uint32_t local(elim *e, ing_dtype t) {
    return ing_ir_emit(&e->fr->b, ING_OP_ALLOCA, ing_ir_type_ref(e->fr->lo->mod, t), 0,
                       0, 0);
}

/* pivot := the row at or below k with the largest entry in column k */
static ing_status find_pivot(elim *e, uint32_t k, uint32_t pivot) {
    ing_ir_builder *b = &e->fr->b;
    ing_dtype t = e->s.dtype;
    uint32_t best = local(e, t), place;
    tensor_loop l;
    ing_ir_emit(b, ING_OP_STORE, 0, best, ing_ir_const_float(b, t, -1), 0);
    ING_TRY(ing_front_tensor_loop(e->fr, e->n, e->s.rows, &l));
    uint32_t x = load_at(e, &e->a, l.id, k, &place);
    x = ing_ir_emit(b, ING_OP_ABS, t, x, 0, 0);
    uint32_t below = ing_ir_emit(b, ING_OP_GE, ING_U1, l.id, k, 0);
    uint32_t old = ing_ir_emit(b, ING_OP_LOAD, t, best, 0, 0);
    uint32_t more = ing_ir_emit(b, ING_OP_GT, ING_U1, x, old, 0);
    uint32_t take = ing_ir_emit(b, ING_OP_AND, ING_U1, below, more, 0);
    ing_ir_block_begin(b);
    ing_ir_emit(b, ING_OP_STORE, 0, best, x, 0);
    ing_ir_emit(b, ING_OP_STORE, 0, pivot, l.id, 0);
    uint32_t yes = ing_ir_block_end(b);
    ing_ir_emit(b, ING_OP_IF, 0, take, yes, 0);
    ing_front_tensor_loop_end(e->fr, &l);
    return ING_OK;
}

/* Swaps rows k and p of both, and divides row k by its pivot. */
static ing_status swap_and_scale(elim *e, uint32_t k, uint32_t p) {
    ing_ir_builder *b = &e->fr->b;
    ing_dtype t = e->s.dtype;
    uint32_t place, pivot = load_at(e, &e->a, p, k, &place);
    tensor_loop l;
    ING_TRY(ing_front_tensor_loop(e->fr, e->n, e->s.cols, &l));
    const value *both[2] = {&e->a, &e->b};
    for (int i = 0; i < 2; i++) {
        uint32_t at_k, at_p;
        uint32_t x = load_at(e, both[i], k, l.id, &at_k);
        uint32_t y = load_at(e, both[i], p, l.id, &at_p);
        uint32_t q = ing_ir_emit(b, ING_OP_DIV, t, y, pivot, 0);
        ing_ir_emit(b, ING_OP_STORE, 0, at_p, x, 0);
        ing_ir_emit(b, ING_OP_STORE, 0, at_k, q, 0);
    }
    ing_front_tensor_loop_end(e->fr, &l);
    return ING_OK;
}

/* Takes row k, times its entry in column k, from every other row. */
static ing_status clear_column(elim *e, uint32_t k) {
    ing_ir_builder *b = &e->fr->b;
    ing_dtype t = e->s.dtype;
    tensor_loop row, col;
    uint32_t place;
    ING_TRY(ing_front_tensor_loop(e->fr, e->n, e->s.rows, &row));
    uint32_t differs = ing_ir_emit(b, ING_OP_NE, ING_U1, row.id, k, 0);
    ing_ir_block_begin(b);
    ing_status s = ing_front_nest(e->fr, e->n);
    uint32_t factor = load_at(e, &e->a, row.id, k, &place);
    if (s == ING_OK) s = ing_front_tensor_loop(e->fr, e->n, e->s.cols, &col);
    if (s != ING_OK) return s;
    const value *both[2] = {&e->a, &e->b};
    for (int i = 0; i < 2; i++) {
        uint32_t at, ignored;
        uint32_t x = load_at(e, both[i], row.id, col.id, &at);
        uint32_t y = load_at(e, both[i], k, col.id, &ignored);
        y = ing_ir_emit(b, ING_OP_MUL, t, factor, y, 0);
        x = ing_ir_emit(b, ING_OP_SUB, t, x, y, 0);
        ing_ir_emit(b, ING_OP_STORE, 0, at, x, 0);
    }
    ing_front_tensor_loop_end(e->fr, &col);
    e->fr->control--;
    uint32_t yes = ing_ir_block_end(b);
    ing_ir_emit(b, ING_OP_IF, 0, differs, yes, 0);
    ing_front_tensor_loop_end(e->fr, &row);
    return ING_OK;
}

ing_status ing_front_inverse_large(frame *fr, ing_node n, const value *v, value *out) {
    elim e = {.fr = fr, .n = n};
    value x, float_of;
    int64_t fp = 0;
    ing_front_tensor_shape(fr, v, &e.s);
    if (!ing_dtype_is_float(e.s.dtype)) {
        ING_TRY(ing_front_config_get(fr, n, ING_SET_default_fp, &fp));
        ING_TRY(ing_front_tensor_cast(fr, n, v, (ing_dtype)fp, &float_of));
        e.s.dtype = (ing_dtype)fp;
    } else {
        float_of = *v;
    }
    ING_TRY(ing_front_tensor_spill(fr, n, &float_of, ING_VOID, &x));
    e.a = ing_front_tensor_temp(fr, &e.s);
    e.b = ing_front_tensor_temp(fr, &e.s);
    ING_TRY(ing_front_tensor_store(fr, n, &e.a, &x));
    tensor_loop l;
    ING_TRY(ing_front_tensor_loop(fr, n, e.s.rows, &l));
    uint32_t place, one = ing_ir_const_float(&fr->b, e.s.dtype, 1);
    load_at(&e, &e.b, l.id, l.id, &place);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, place, one, 0);
    ing_front_tensor_loop_end(fr, &l);
    ING_TRY(ing_front_tensor_loop(fr, n, e.s.rows, &l));
    uint32_t pivot = local(&e, ING_I32);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, pivot, l.id, 0);
    ING_TRY(find_pivot(&e, l.id, pivot));
    uint32_t p = ing_ir_emit(&fr->b, ING_OP_LOAD, ING_I32, pivot, 0, 0);
    ING_TRY(swap_and_scale(&e, l.id, p));
    ING_TRY(clear_column(&e, l.id));
    ing_front_tensor_loop_end(fr, &l);
    *out = e.b;
    return ING_OK;
}
