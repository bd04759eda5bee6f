/* How heavy each task is: a rough count of instructions, by which the runtime chooses
 * between inline and pool, and whether the task may run long, by which it releases the GIL.
 * Never exact, never wrong about "may run long": a loop that nobody can bound counts. */
#include "pass/pass_int.h"

enum {
    UNKNOWN_TRIPS = 32, /* a guess for loops whose bounds are not constants */
    SMALL_TRIPS =
        1024, /* constant loops up to this never count as long by themselves */
    LONG_COST = 100000, /* some 50 us of scalar code */
};

typedef struct weight {
    uint32_t cost;
    bool long_;
} weight;

static uint32_t saturate(uint64_t v) {
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static uint32_t inst_cost(const ing_ir_inst *i) {
    switch (ing_op_class_of(i->op)) {
    case ING_OPC_PIECE: return 0;
    case ING_OPC_DIVIDE:
    case ING_OPC_ROOT: return 6;
    case ING_OPC_MATH: return 25;
    default: break;
    }
    switch (i->op) {
    case ING_OP_CONST:
    case ING_OP_ARG:
    case ING_OP_ARRAY:
    case ING_OP_PARAM:
    case ING_OP_ALLOCA:
    case ING_OP_BUFFER: return 0;
    case ING_OP_RANDOM: return 10;
    case ING_OP_PRINT: return 1000;
    case ING_OP_CAS: return 10;
    case ING_OP_ATOMIC: return i->flags & ING_IR_PRIVATE ? 2 : 10;
    default: return 1;
    }
}

/* To take the index on an axis out of the number of a place, beside the quotients. */
static uint32_t axis_cost(const ing_ir_func *f, const ing_ir_inst *i) {
    const ing_ir_inst *begin =
        ing_ir_at(f, f->extra.at[ing_ir_at(f, i->a)->b + 2 * i->c]);
    bool zero = begin->op == ING_OP_CONST && ing_ir_const_bits(begin) == 0;
    return (i->c ? 6 : 0) + (i->type == ING_I32) + !zero;
}

/* The quotients, from the innermost axis to one before this. */
static uint32_t quotients_cost(const ing_ir_func *f, const ing_ir_inst *i) {
    const ing_ir_inst *axes = ing_ir_at(f, i->a);
    uint32_t cost = 0;
    for (uint32_t k = i->c + 1; k < axes->c / 2; k++)
        cost += ing_ir_axis_is_one(f, axes, k) ? 0 : 6;
    return cost;
}

static weight block_weight(const ing_ir_func *f, uint32_t block, const weight *funcs);

static weight inst_weight(const ing_ir_func *f, uint32_t id, const weight *funcs) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
    weight w = {.cost = i->op == ING_OP_AXIS ? axis_cost(f, i) : inst_cost(i)};
    weight inner = {0};
    for (uint32_t k = 0; k < n; k++) { /* IF: the heavier branch */
        weight x = block_weight(f, blocks[k], funcs);
        if (x.cost > inner.cost) inner.cost = x.cost;
        inner.long_ |= x.long_;
    }
    w.long_ = inner.long_ || i->op == ING_OP_WHILE;
    if (i->op == ING_OP_CALL) {
        w.cost = saturate((uint64_t)w.cost + funcs[i->a].cost);
        w.long_ |= funcs[i->a].long_;
    }
    uint64_t trips = 1;
    if (i->op == ING_OP_LOOP && !ing_ir_trips(f, i->a, i->b, &trips))
        trips = UINT64_MAX;
    bool few = i->op == ING_OP_LOOP && i->flags & ING_IR_FEW;
    if (trips > SMALL_TRIPS) w.long_ = true;
    if (trips == UINT64_MAX || i->op == ING_OP_WHILE) trips = few ? 1 : UNKNOWN_TRIPS;
    if (trips > UINT32_MAX) trips = UINT32_MAX;
    w.cost = saturate(w.cost + trips * ((uint64_t)inner.cost + (n && trips > 1)));
    return w;
}

static weight block_weight(const ing_ir_func *f, uint32_t block, const weight *funcs) {
    weight sum = {0};
    const ing_ir_inst *axis = NULL; /* the outermost one */
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++) {
        uint32_t id = ing_ir_block_ids(f, block)[k];
        const ing_ir_inst *i = ing_ir_at(f, id);
        weight w = inst_weight(f, id, funcs);
        sum.cost = saturate((uint64_t)sum.cost + w.cost);
        sum.long_ |= w.long_;
        if (i->op == ING_OP_AXIS && (!axis || i->c < axis->c)) axis = i;
    }
    if (axis) sum.cost = saturate((uint64_t)sum.cost + quotients_cost(f, axis));
    return sum;
}

/* Of one iteration for a range task: its loop's body; what stands before it runs once. */
static weight task_weight(const ing_ir_func *f, bool range, const weight *funcs) {
    for (uint32_t k = 0; range && k < ing_ir_block_len(f, f->body); k++) {
        const ing_ir_inst *i = ing_ir_at(f, ing_ir_block_ids(f, f->body)[k]);
        if (i->op == ING_OP_LOOP) return block_weight(f, i->c, funcs);
    }
    weight w = block_weight(f, f->body, funcs);
    w.long_ |= w.cost >= LONG_COST;
    return w;
}

ing_status ing_pass_cost(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    uint32_t *order = NULL;
    (void)o;
    ING_TRY(ing_ir_call_order(m, &order, e));
    weight *funcs = ing_calloc((size_t)m->funcs.len + 1, sizeof *funcs);
    for (uint32_t k = 0; k < m->funcs.len && funcs; k++) {
        const ing_ir_func *f = m->funcs.at[order[k]];
        funcs[order[k]] = block_weight(f, f->body, funcs);
    }
    for (uint32_t k = 0; k < m->tasks.len && funcs; k++) {
        ing_ir_task *t = &m->tasks.at[k];
        bool range = t->kind == ING_IR_TASK_RANGE;
        weight w = task_weight(m->funcs.at[t->func], range, funcs);
        t->cost = w.cost;
        t->may_run_long = w.long_;
    }
    bool ok = funcs != NULL;
    ing_free(funcs);
    ing_free(order);
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
