/* Extents that are compiled in: which arrays gain by it, asked by the lowering of a kernel before it
 * asks the gate for them, and what is known of one, asked by passes and code generation. An array of
 * shape (n, 3) whose elements are named as x[i, 0], x[i, 1], x[i, 2] is a row of triples to LLVM once
 * the 3 is a constant; with a stride that is known at run time alone it gathers them one by one. */
#include "ir/ir.h"

typedef struct finder {
    const ing_ir_mod *m;
    uint8_t *wanted;  /* per argument */
    uint64_t *params; /* per function: its parameters, a bit each */
} finder;

static uint64_t param_bit(uint32_t k) {
    return k < 64 ? (uint64_t)1 << k : 0;
}

/* The innermost axis in memory; UINT32_MAX: of a field, of vectors, or the only one. */
static uint32_t last_axis(const ing_ir_mod *m, ing_type t) {
    const ing_type_info *i = ing_ir_type(m, t);
    bool plain = i->kind == ING_TYPE_ARRAY && !i->place && i->rank > 1;
    return plain && i->elem < ING_DTYPE_N ? i->layout[i->rank - 1] : UINT32_MAX;
}

static bool is_small(const ing_ir_func *f, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    return i->op == ING_OP_CONST && ing_ir_const_bits(i) <= ING_IR_MAX_LAST;
}

static void want(finder *x, uint32_t func, uint32_t array) {
    const ing_ir_inst *i = ing_ir_at(x->m->funcs.at[func], array);
    if (last_axis(x->m, i->type) == UINT32_MAX) return;
    if (i->op == ING_OP_ARRAY) x->wanted[i->a] = 1;
    if (i->op == ING_OP_PARAM) x->params[func] |= param_bit(i->a);
}

static void look_at(finder *x, uint32_t func, const ing_ir_inst *i) {
    const ing_ir_func *f = x->m->funcs.at[func];
    for (uint32_t k = 0; i->op == ING_OP_CALL && k < i->c; k++)
        if (x->params[i->a] & param_bit(k)) want(x, func, f->extra.at[i->b + k]);
    if (i->op != ING_OP_ELEM) return;
    uint32_t axis = last_axis(x->m, ing_ir_at(f, i->a)->type);
    if (axis >= i->c) return;
    uint32_t index = f->extra.at[i->b + axis];
    const ing_ir_inst *l = ing_ir_at(f, index);
    bool loop = l->op == ING_OP_LOOP && is_small(f, l->a) && is_small(f, l->b);
    if (loop || is_small(f, index)) want(x, func, i->a);
}

bool ing_ir_last_wanted(const ing_ir_mod *m, uint8_t *wanted) {
    finder x = {.m = m, .wanted = wanted};
    uint32_t *order = NULL;
    ing_err e;
    ing_err_init(&e);
    x.params = ing_calloc((size_t)m->funcs.len + 1, sizeof *x.params);
    bool ok = x.params && ing_ir_call_order(m, &order, &e) == ING_OK;
    for (uint32_t k = 0; ok && k < m->funcs.len; k++) {
        const ing_ir_func *f = m->funcs.at[order[k]];
        for (uint32_t j = 1; j < f->insts.len; j++)
            look_at(&x, order[k], ing_ir_at(f, j));
    }
    ing_err_fini(&e);
    ing_free(order);
    ing_free(x.params);
    return ok;
}

uint32_t ing_ir_known_extent(const ing_ir_mod *m, const ing_ir_func *f, uint32_t array,
                             uint32_t axis) {
    const ing_ir_inst *i = ing_ir_at(f, array);
    if (i->op != ING_OP_ARRAY) return 0;
    const ing_type_info *t = ing_ir_type(m, i->type);
    bool last = t->rank && t->layout[t->rank - 1] == axis;
    return last ? m->args.at[i->a].last : 0;
}
