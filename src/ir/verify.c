/* The verifier: every rule of ir.h, every operand and result type of op.def. Runs between
 * passes and before code is made, so that nothing behind it needs to check again. Reports
 * the first thing wrong as ING_INTERNAL: IR is made by us, a bad one is our bug. Must
 * survive any contents of the arrays. Recursion is over blocks only and bounded (I7). */
#include "gen/abi.h"
#include "ir/ir_int.h"

#include <string.h>

enum { UNSEEN, VISIBLE, GONE }; /* states of a value */

typedef struct verifier {
    const ing_ir_mod *m;
    const ing_ir_func *f;
    uint32_t func;     /* its number */
    uint8_t *state;    /* of each instruction of f */
    uint32_t depth;    /* of the current block, 1 = outermost */
    uint32_t loops;    /* around the current instruction, WHILEs included */
    uint32_t parallel; /* depth of the PARALLEL loop around it, 0 = none */
    bool direct;       /* the innermost loop is the PARALLEL one */
    bool rows;         /* directly in a plain LOOP of the outermost block */
    uint32_t n_parallel;
    uint32_t regions; /* of a graph, around the current block (I8) */
    ing_op region;    /* the innermost */
    uint32_t id;      /* current instruction */
    ing_err *e;
} verifier;

static ing_status bad(verifier *v, const char *what) {
    const char *op = "-";
    if (v->id && v->id < v->f->insts.len)
        op = ing_op_get(v->f->insts.at[v->id].op)->text;
    return ing_fail(v->e, ING_INTERNAL, "bad IR: function @%u, instruction %u (%s): %s",
                    v->func, v->id, op, what);
}

#define RULE(cond, what)                  \
    do {                                  \
        if (!(cond)) return bad(v, what); \
    } while (0)

/* ---- operands ------------------------------------------------------------------------- */

static ing_type type_of(const verifier *v, uint32_t id) {
    return v->f->insts.at[id].type;
}

static const ing_type_info *info_of(const verifier *v, uint32_t id) {
    return ing_ir_type(v->m, type_of(v, id));
}

static bool is_index(ing_type t) {
    return t == ING_I32 || t == ING_I64;
}

static ing_status check_use(verifier *v, uint32_t id) {
    RULE(id != 0, "an operand is missing");
    RULE(id < v->f->insts.len, "an operand does not exist");
    RULE(v->state[id] != UNSEEN, "an operand is used before it is defined (I3)");
    RULE(v->state[id] == VISIBLE, "an operand is used outside its block (I3)");
    RULE(type_of(v, id) != 0, "an operand has no value");
    return ING_OK;
}

/* Value operands exist and are visible; lists lie inside extra. */
static ing_status check_uses(verifier *v, const ing_ir_inst *i) {
    const char *o = ing_op_get(i->op)->operands;
    const uint32_t field[3] = {i->a, i->b, i->c};
    for (uint32_t k = 0; k < 3 && o[k]; k++) {
        if (o[k] == 'v' && !(i->op == ING_OP_RETURN && !i->a)) {
            ING_TRY(check_use(v, field[k]));
        }
        if (o[k] != 'x') continue;
        uint64_t end = (uint64_t)i->b + i->c;
        RULE(i->c == 0 || (i->b > 0 && end <= v->f->extra.len), "its list is outside");
        for (uint32_t j = 0; j < i->c; j++) {
            ING_TRY(check_use(v, v->f->extra.at[i->b + j]));
        }
    }
    return ING_OK;
}

/* ---- types of results and operands ------------------------------------------------------ */

static ing_status check_axes(verifier *v, const ing_ir_inst *i) {
    RULE(i->type == ING_I64, "yields i64");
    RULE(i->c && i->c % 2 == 0 && i->c <= 2 * ING_MAX_NDIM,
         "needs a begin and an end for each axis");
    for (uint32_t k = 0; k < i->c; k++)
        RULE(type_of(v, v->f->extra.at[i->b + k]) == ING_I64, "the bounds are i64");
    return ING_OK;
}

static ing_status check_inputs(verifier *v, const ing_ir_inst *i) {
    const ing_ir_mod *m = v->m;
    uint64_t bits = ing_ir_const_bits(i);
    switch (i->op) {
    case ING_OP_CONST:
        RULE(ing_ir_is_scalar(i->type), "a constant is a scalar");
        RULE(ing_ir_norm(i->type, bits) == bits, "the constant is not extended right");
        break;
    case ING_OP_ARG:
        RULE(i->a < m->args.len, "no such argument");
        RULE(ing_ir_is_scalar(i->type) && m->args.at[i->a].type == i->type,
             "the argument is of another type");
        break;
    case ING_OP_ARRAY:
        RULE(i->a < m->args.len, "no such argument");
        RULE(ing_ir_type(m, i->type)->kind == ING_TYPE_ARRAY &&
                 m->args.at[i->a].type == i->type,
             "the argument is of another type");
        break;
    case ING_OP_PARAM:
        RULE(v->f->kind == ING_IR_FUNC && i->a < v->f->n_params, "no such parameter");
        RULE(i->type == v->f->params[i->a], "the parameter is of another type");
        break;
    case ING_OP_SEED:
        RULE(i->a <= 1 && i->type == ING_U64, "is word 0 or 1, an u64");
        break;
    case ING_OP_DIM:
        RULE(info_of(v, i->a)->kind == ING_TYPE_ARRAY, "needs an array");
        RULE(i->b < info_of(v, i->a)->rank, "no such axis");
        RULE(is_index(i->type), "yields i32 or i64");
        break;
    case ING_OP_AXES: return check_axes(v, i);
    case ING_OP_AXIS:
        RULE(ing_ir_at(v->f, i->a)->op == ING_OP_AXES, "needs the AXES themselves");
        RULE(type_of(v, i->b) == ING_I64, "the number is i64");
        RULE(i->c < ing_ir_at(v->f, i->a)->c / 2, "no such axis");
        RULE(is_index(i->type), "yields i32 or i64");
        break;
    default: /* TASK_BEGIN, TASK_END, TASK_CHUNK */
        RULE(v->f->kind == ING_IR_TASK, "stands only in tasks");
        RULE(is_index(i->type), "yields i32 or i64");
        RULE(i->op != ING_OP_TASK_CHUNK || i->type == ING_I64, "yields i64");
    }
    return ING_OK;
}

static ing_status check_elem(verifier *v, const ing_ir_inst *i) {
    const ing_type_info *a = info_of(v, i->a), *r = ing_ir_type(v->m, i->type);
    RULE(a->kind == ING_TYPE_ARRAY, "needs an array");
    RULE(i->c == a->rank, "needs one index for each axis");
    RULE(r->kind == ING_TYPE_REF && r->elem == a->elem, "yields a ref to the element");
    for (uint32_t k = 0; k < i->c; k++) {
        RULE(is_index(type_of(v, v->f->extra.at[i->b + k])), "indices are i32 or i64");
    }
    return ING_OK;
}

static ing_status check_atomic(verifier *v, const ing_ir_inst *i) {
    ing_type t = type_of(v, i->b);
    RULE(i->c < ING_IR_ATOMIC_N, "no such update");
    RULE(ing_ir_is_scalar(t), "updates a scalar");
    RULE(info_of(v, i->a)->kind == ING_TYPE_REF && info_of(v, i->a)->elem == t,
         "the ref is of another type");
    RULE(i->type == t, "yields the old value");
    RULE(!(i->flags & ING_IR_TALLY) ||
             (v->f->kind == ING_IR_TASK && t != ING_U1 && t != ING_F16),
         "only some numbers, and in tasks, are tallied");
    bool bitwise = i->c == ING_IR_ATOMIC_AND || i->c == ING_IR_ATOMIC_OR ||
                   i->c == ING_IR_ATOMIC_XOR;
    RULE(!bitwise || !ing_dtype_is_float(t), "bits of floats are not combined");
    return ING_OK;
}

static ing_status check_memory(verifier *v, const ing_ir_inst *i) {
    const ing_type_info *r = ing_ir_type(v->m, i->type);
    switch (i->op) {
    case ING_OP_ALLOCA: RULE(r->kind == ING_TYPE_REF, "yields a ref"); break;
    case ING_OP_ELEM: return check_elem(v, i);
    case ING_OP_BUFFER:
        RULE(v->f->kind == ING_IR_TASK, "stands only in tasks");
        RULE(r->kind == ING_TYPE_REF, "yields a ref");
        RULE((uint64_t)i->a + ing_ir_type_size(v->m, r->elem) <= v->m->buffer_bytes,
             "lies outside the launch buffer");
        RULE(i->a % ing_ir_type_align(v->m, r->elem) == 0, "is not aligned");
        break;
    case ING_OP_ADDRESS:
        RULE(info_of(v, i->a)->kind == ING_TYPE_REF && i->type == ING_U64,
             "takes a ref and yields u64");
        break;
    case ING_OP_PARTIAL:
        RULE(v->f->kind == ING_IR_TASK, "stands only in tasks");
        RULE(r->kind == ING_TYPE_REF && ing_ir_is_scalar(r->elem),
             "yields a ref to a scalar");
        RULE(type_of(v, i->a) == ING_I64, "the index is i64");
        break;
    case ING_OP_SCRATCH:
        RULE(r->kind == ING_TYPE_REF, "yields a ref");
        RULE(type_of(v, i->a) == ING_I64, "the offset is i64");
        break;
    case ING_OP_LOAD:
        RULE(info_of(v, i->a)->kind == ING_TYPE_REF, "needs a ref");
        RULE(info_of(v, i->a)->elem == i->type, "the ref is of another type");
        break;
    case ING_OP_STORE:
        RULE(info_of(v, i->a)->kind == ING_TYPE_REF, "needs a ref");
        RULE(info_of(v, i->a)->elem == type_of(v, i->b), "the ref is of another type");
        break;
    case ING_OP_ATOMIC: return check_atomic(v, i);
    case ING_OP_CAS:
        RULE(ing_dtype_is_int(i->type), "compares integers");
        RULE(info_of(v, i->a)->kind == ING_TYPE_REF &&
                 info_of(v, i->a)->elem == i->type,
             "the ref is of another type");
        RULE(type_of(v, i->b) == i->type && type_of(v, i->c) == i->type,
             "operands are of another type");
        break;
    default: /* SET_RET */
        RULE(v->f->kind != ING_IR_FUNC, "stands only in kernels");
        RULE(i->a < v->m->rets.len, "no such result");
        RULE(v->m->rets.at[i->a] == type_of(v, i->b), "the result is of another type");
    }
    return ING_OK;
}

static ing_status check_convert(verifier *v, const ing_ir_inst *i) {
    ing_type t = type_of(v, i->a);
    if (i->op == ING_OP_SELECT) {
        RULE(t == ING_U1, "the condition is u1");
        RULE(ing_ir_is_data(v->m, i->type), "selects data");
        RULE(type_of(v, i->b) == i->type && type_of(v, i->c) == i->type,
             "operands are of another type");
        return ING_OK;
    }
    RULE(ing_ir_is_scalar(t) && ing_ir_is_scalar(i->type), "converts scalars");
    if (i->op == ING_OP_CAST) return ING_OK;
    RULE(t != ING_U1 && i->type != ING_U1, "u1 has no bits to reinterpret");
    RULE(ing_dtype_bits(t) == ing_dtype_bits(i->type), "sizes differ");
    return ING_OK;
}

/* Arithmetic: one common scalar type that the operation is defined for. */
static ing_status check_arith(verifier *v, const ing_ir_inst *i) {
    const ing_op_info *op = ing_op_get(i->op);
    ing_type t = type_of(v, i->a);
    uint64_t out;
    RULE(ing_ir_is_scalar(t), "operands are scalars");
    if (op->operands[1] == 'v') RULE(type_of(v, i->b) == t, "operand types differ");
    RULE(ing_ir_eval(i->op, t, 0, 0, &out), "is not defined for this type");
    RULE(i->type == (op->result == '1' ? ING_U1 : t), "yields another type");
    return ING_OK;
}

static ing_status check_member(verifier *v, const ing_ir_inst *i) {
    const ing_type_info *a = info_of(v, i->a), *r = ing_ir_type(v->m, i->type);
    RULE(a->kind == ING_TYPE_REF, "needs a ref");
    ing_type want = ing_ir_member_type(v->m, a->elem, i->b);
    if (i->op == ING_OP_MEMBER_DYN) {
        RULE(is_index(type_of(v, i->b)), "the index is i32 or i64");
        RULE(ing_ir_type(v->m, a->elem)->kind == ING_TYPE_TENSOR, "needs a tensor");
        want = ing_ir_member_type(v->m, a->elem, 0);
    }
    RULE(want, "no such member");
    RULE(r->kind == ING_TYPE_REF && r->elem == want, "yields a ref to the member");
    return ING_OK;
}

static ing_status check_aggregate(verifier *v, const ing_ir_inst *i) {
    const ing_ir_mod *m = v->m;
    switch (i->op) {
    case ING_OP_MAKE:
        RULE(ing_ir_member_count(m, i->type), "makes an aggregate");
        RULE(ing_ir_member_count(m, i->type) == i->c, "needs every member");
        for (uint32_t k = 0; k < i->c; k++) {
            RULE(type_of(v, v->f->extra.at[i->b + k]) ==
                     ing_ir_member_type(m, i->type, k),
                 "a member is of another type");
        }
        return ING_OK;
    case ING_OP_EXTRACT:
        RULE(i->b < ing_ir_member_count(m, type_of(v, i->a)), "no such member");
        RULE(ing_ir_member_type(m, type_of(v, i->a), i->b) == i->type,
             "the member is of another type");
        return ING_OK;
    case ING_OP_INSERT:
        RULE(i->c < ing_ir_member_count(m, i->type), "no such member");
        RULE(i->type == type_of(v, i->a), "yields the same aggregate");
        RULE(ing_ir_member_type(m, i->type, i->c) == type_of(v, i->b),
             "the member is of another type");
        return ING_OK;
    default: return check_member(v, i);
    }
}

static ing_status check_call(verifier *v, const ing_ir_inst *i) {
    RULE(i->a < v->m->funcs.len, "no such function");
    const ing_ir_func *f = v->m->funcs.at[i->a];
    RULE(f->kind == ING_IR_FUNC, "calls a func");
    RULE(i->c == f->n_params, "wrong number of arguments");
    RULE(i->type == f->ret, "the result is of another type");
    for (uint32_t k = 0; k < i->c; k++) {
        RULE(type_of(v, v->f->extra.at[i->b + k]) == f->params[k],
             "an argument is of another type");
    }
    return ING_OK;
}

static ing_status check_service(verifier *v, const ing_ir_inst *i) {
    if (i->op == ING_OP_RANDOM) {
        RULE(ing_ir_is_scalar(i->type), "yields a scalar");
        return ING_OK;
    }
    if (i->op == ING_OP_ROOM) {
        RULE(type_of(v, i->a) == ING_I64 && i->b <= 1, "takes a size and 0 or 1");
        return ING_OK;
    }
    RULE(i->op != ING_OP_PRINT || (i->a && i->a <= INT32_MAX), "the code is 1 or more");
    RULE(i->c <= (i->op == ING_OP_PRINT ? ING_ABI_MAX_PRINT : ING_ABI_MAX_DETAIL),
         "has too many values");
    for (uint32_t k = 0; k < i->c; k++)
        RULE(ing_ir_is_scalar(type_of(v, v->f->extra.at[i->b + k])), "takes scalars");
    return ING_OK;
}

/* ---- control ------------------------------------------------------------------------------ */

static ing_status check_block(verifier *v, uint32_t block);

static ing_status check_loop(verifier *v, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(v->f, id);
    bool parallel = i->flags & ING_IR_PARALLEL, direct = v->direct, rows = v->rows;
    RULE(is_index(i->type), "the index is i32 or i64");
    RULE(type_of(v, i->a) == i->type && type_of(v, i->b) == i->type,
         "the bounds are of another type");
    if (parallel) {
        bool in_rows = v->f->kind == ING_IR_TASK && v->rows;
        bool outermost = v->depth == 1 + v->regions;
        RULE(v->f->kind != ING_IR_FUNC && (outermost || in_rows),
             "a parallel loop stands in the outermost block (I5)");
        v->n_parallel++;
        v->parallel = v->depth;
    }
    v->direct = parallel;
    v->rows = !parallel && (v->depth == 1 || v->rows);
    v->loops++;
    v->state[id] = VISIBLE;
    ING_TRY(check_block(v, i->c));
    v->rows = rows;
    v->state[id] = GONE;
    v->loops--;
    v->direct = direct;
    if (parallel) v->parallel = 0;
    return ING_OK;
}

static ing_status check_while(verifier *v, const ing_ir_inst *i) {
    bool direct = v->direct, rows = v->rows;
    v->direct = v->rows = false;
    v->loops++;
    ING_TRY(check_block(v, i->a));
    v->rows = rows;
    v->loops--;
    v->direct = direct;
    return ING_OK;
}

/* What may stand directly in what (I8). */
static bool region_fits(ing_op op, ing_op around) {
    switch (op) {
    case ING_OP_SECTION: return around == ING_OP_FORK;
    case ING_OP_FORK:
    case ING_OP_CHECKPOINT:
    case ING_OP_DO_WHILE: return !around || around == ING_OP_DO_WHILE;
    default: return false;
    }
}

static ing_status check_region(verifier *v, const ing_ir_inst *i) {
    uint32_t blocks[2];
    ing_op around = v->region;
    ing_ir_inst_blocks(i, blocks);
    RULE(v->f->kind == ING_IR_KERNEL && v->depth == 1 + v->regions &&
             region_fits(i->op, around),
         "stands where a graph has no place for it (I8)");
    if (i->op == ING_OP_DO_WHILE || i->op == ING_OP_CHECKPOINT) {
        const ing_type_info *t = info_of(v, i->a);
        RULE(ing_ir_at(v->f, i->a)->op == ING_OP_ARRAY && t->rank == 0 &&
                 t->elem == ING_I32,
             "the flag is an i32 array without axes (I8)");
    }
    if (i->op == ING_OP_CHECKPOINT) RULE(i->b < v->m->n_stages, "no such checkpoint");
    v->region = i->op;
    v->regions++;
    ING_TRY(check_block(v, blocks[0]));
    v->regions--;
    v->region = around;
    return ING_OK;
}

static ing_status check_control(verifier *v, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(v->f, id);
    switch (i->op) {
    case ING_OP_IF:
        RULE(type_of(v, i->a) == ING_U1, "the condition is u1");
        ING_TRY(check_block(v, i->b));
        return i->c ? check_block(v, i->c) : ING_OK;
    case ING_OP_LOOP: return check_loop(v, id);
    case ING_OP_WHILE: return check_while(v, i);
    case ING_OP_BREAK:
        RULE(v->loops, "there is no loop around it");
        RULE(!v->direct, "a parallel loop cannot be left");
        return ING_OK;
    case ING_OP_CONTINUE: RULE(v->loops, "there is no loop around it"); return ING_OK;
    case ING_OP_RETURN:
        RULE(!v->parallel, "a parallel loop cannot be left");
        if (v->f->kind == ING_IR_FUNC && v->f->ret) {
            RULE(i->a && type_of(v, i->a) == v->f->ret, "returns another type");
        } else {
            RULE(!i->a, "returns a value where there is none");
        }
        return ING_OK;
    case ING_OP_CALL: return check_call(v, i);
    case ING_OP_DO_WHILE:
    case ING_OP_CHECKPOINT:
    case ING_OP_FORK:
    case ING_OP_SECTION: return check_region(v, i);
    default: /* CHECK */
        RULE(type_of(v, i->a) == ING_U1, "the condition is u1");
        RULE(i->b && i->b <= INT32_MAX, "the error code is 1 or more");
        return ING_OK;
    }
}

static ing_status check_inst(verifier *v, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(v->f, id);
    v->id = id;
    RULE(i->op > ING_OP_NONE && i->op < ING_OP_N, "no such operation");
    RULE(i->type < v->m->types.len, "no such type");
    bool yields = i->type != 0;
    char result = ing_op_get(i->op)->result;
    RULE(result != '0' || !yields, "yields no value");
    RULE(result == '0' || yields || i->op == ING_OP_CALL, "yields a value");
    ING_TRY(check_uses(v, i));
    switch (ing_op_class_of(i->op)) {
    case ING_OPC_INPUT:
    case ING_OPC_PIECE: return check_inputs(v, i);
    case ING_OPC_MEMORY: return check_memory(v, i);
    case ING_OPC_CONVERT: return check_convert(v, i);
    case ING_OPC_AGGREGATE: return check_aggregate(v, i);
    case ING_OPC_SERVICE: return check_service(v, i);
    case ING_OPC_CONTROL:
    case ING_OPC_REGION: return check_control(v, id);
    default: return check_arith(v, i);
    }
}

static ing_status check_block(verifier *v, uint32_t block) {
    const ing_ir_func *f = v->f;
    RULE(block < f->extra.len, "its block is outside (I2)");
    uint32_t n = ing_ir_block_len(f, block);
    RULE(n < f->extra.len - block, "its block is outside (I2)");
    RULE(v->depth < ING_IR_MAX_NESTING, "blocks nest too deep (I7)");
    v->depth++;
    const uint32_t *ids = ing_ir_block_ids(f, block);
    for (uint32_t k = 0; k < n; k++) {
        RULE(ids[k] && ids[k] < f->insts.len, "a block names no instruction (I2)");
        v->id = ids[k];
        RULE(v->state[ids[k]] == UNSEEN, "it stands in two places (I3)");
        bool ends = ing_op_get(f->insts.at[ids[k]].op)->flags & ING_OPF_T;
        RULE(!ends || k + 1 == n, "it ends a block that goes on (I4)");
        v->state[ids[k]] = GONE; /* not an operand of itself */
        ING_TRY(check_inst(v, ids[k]));
        if (f->insts.at[ids[k]].op != ING_OP_LOOP) v->state[ids[k]] = VISIBLE;
    }
    for (uint32_t k = 0; k < n; k++) v->state[ids[k]] = GONE;
    v->depth--;
    return ING_OK;
}

/* ---- module ------------------------------------------------------------------------------- */

static ing_status check_func(verifier *v) {
    const ing_ir_func *f = v->f;
    v->id = 0;
    RULE(f->kind <= ING_IR_TASK, "no such kind of function");
    RULE(f->kind == ING_IR_FUNC || (!f->n_params && !f->ret), "takes no parameters");
    RULE(f->ret < v->m->types.len, "no such type");
    RULE(!f->ret || ing_ir_is_data(v->m, f->ret), "returns data");
    for (uint32_t k = 0; k < f->n_params; k++) {
        RULE(ing_ir_is_value_type(v->m, f->params[k]), "a parameter has no type");
    }
    RULE(f->insts.len && f->extra.len, "was never built");
    v->state = ing_calloc(f->insts.len, 1);
    if (!v->state) return ing_fail(v->e, ING_MEMORY, "no memory to verify");
    v->depth = v->loops = v->parallel = v->n_parallel = 0;
    v->direct = false;
    ing_status s = check_block(v, f->body);
    ing_free(v->state);
    v->state = NULL;
    return s;
}

/* Parallel loops of a task: in its outermost block, or in loops around it alone. */
static uint32_t count_parallel(const ing_ir_func *f, uint32_t block) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++) {
        const ing_ir_inst *i = ing_ir_at(f, ing_ir_block_ids(f, block)[k]);
        if (i->op != ING_OP_LOOP) continue;
        bool parallel = i->flags & ING_IR_PARALLEL;
        count += parallel;
        if (!parallel) count += count_parallel(f, i->c);
    }
    return count;
}

static ing_status check_bound(verifier *v, const ing_ir_bound *b) {
    if (b->at == ING_IR_BOUND_CONST) return ING_OK;
    if (b->at == ING_IR_BOUND_WORD) {
        RULE(b->offset < v->m->n_words, "a bound is outside the arguments");
        return ING_OK;
    }
    RULE((uint64_t)b->offset + 8 <= v->m->buffer_bytes,
         "a bound is outside the buffer");
    RULE(b->offset % 8 == 0, "a bound is not aligned");
    return ING_OK;
}

static ing_status check_tallies(verifier *v, const ing_ir_task *t) {
    const ing_ir_mod *m = v->m;
    for (uint32_t k = 0; k < t->n_tallies; k++) {
        const ing_ir_tally *y = &t->tallies[k];
        bool found = false;
        for (uint32_t a = 0; a < m->args.len && !found; a++) {
            ing_ir_tally want = {0};
            found = m->args.at[a].word == y->word &&
                    ing_ir_tally_of(m, m->args.at[a].type, &want) &&
                    want.ndim == y->ndim && want.width == y->width &&
                    want.dtype == y->dtype && want.at == y->at;
        }
        RULE(found, "a tally is of no argument");
        RULE(ing_ir_tally_ok((ing_ir_atomic)y->kind, (ing_dtype)y->dtype),
             "a tally is of other elements");
        RULE(ing_ir_tally_over_ok(y->over, m->n_words) &&
                 ing_ir_tally_over_ok(y->over2, m->n_words),
             "updates are counted by no argument");
    }
    return ING_OK;
}

static ing_status check_tasks(verifier *v) {
    const ing_ir_mod *m = v->m;
    v->id = 0;
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        const ing_ir_task *t = &m->tasks.at[k];
        v->func = t->func;
        RULE(t->func < m->funcs.len, "a task has no function");
        v->f = m->funcs.at[t->func];
        RULE(v->f->kind == ING_IR_TASK, "a task's function is of another kind");
        bool range = t->kind == ING_IR_TASK_RANGE;
        RULE(count_parallel(v->f, v->f->body) == range,
             "a range task has one parallel loop (I5)");
        if (!range) continue;
        ING_TRY(check_bound(v, &t->begin));
        ING_TRY(check_bound(v, &t->end));
        ING_TRY(check_tallies(v, t));
    }
    return ING_OK;
}

static ing_status check_args(const ing_ir_mod *m, ing_err *e) {
    uint32_t word = 0;
    for (uint32_t k = 0; k < m->args.len; k++) {
        const ing_type_info *i = ing_ir_type(m, m->args.at[k].type);
        bool array = i->kind == ING_TYPE_ARRAY;
        if (!array && !ing_ir_is_scalar(m->args.at[k].type)) {
            return ing_fail(e, ING_INTERNAL, "bad IR: argument %u has no type", k);
        }
        if (m->args.at[k].last &&
            (!array || i->place || !i->rank || m->args.at[k].last > ING_IR_MAX_LAST)) {
            return ing_fail(e, ING_INTERNAL, "bad IR: argument %u has no last extent",
                            k);
        }
        if (i->place && m->args.at[k].word < word) { /* of a block that came before */
            uint32_t first = ing_ir_arg_first(m, k);
            if (ing_ir_type(m, m->args.at[first].type)->place) continue;
        }
        if (m->args.at[k].word != word) {
            return ing_fail(e, ING_INTERNAL, "bad IR: argument %u lies elsewhere", k);
        }
        word += ing_ir_type_words(m, m->args.at[k].type);
    }
    for (uint32_t k = 0; k < m->rets.len; k++) {
        if (ing_ir_is_scalar(m->rets.at[k])) continue;
        return ing_fail(e, ING_INTERNAL, "bad IR: result %u is not a scalar", k);
    }
    if (m->n_words != word || m->buffer_bytes > ING_IR_MAX_BUFFER) {
        return ing_fail(e, ING_INTERNAL, "bad IR: the sizes of the module are wrong");
    }
    return ING_OK;
}

static ing_status check_apart(const ing_ir_mod *m, ing_err *e) {
    bool ok = m->apart.len <= ING_IR_MAX_APART + ING_IR_MAX_RULE;
    for (uint32_t k = 0; ok && k < m->apart.len; k++) {
        const ing_ir_apart *p = &m->apart.at[k];
        ok = p->a < p->b && p->b < m->args.len;
        ok = ok && ing_ir_type(m, m->args.at[p->a].type)->kind == ING_TYPE_ARRAY &&
             ing_ir_type(m, m->args.at[p->b].type)->kind == ING_TYPE_ARRAY;
    }
    return ok ? ING_OK : ing_fail(e, ING_INTERNAL, "bad IR: not a pair of arrays");
}

ing_status ing_ir_verify(const ing_ir_mod *m, ing_err *e) {
    verifier v = {.m = m, .e = e};
    uint32_t *order = NULL;
    if (!ing_ir_ok(m)) return ing_fail(e, ING_MEMORY, "no memory to build the IR");
    ING_TRY(check_args(m, e));
    ING_TRY(check_apart(m, e));
    for (uint32_t k = 0; k < m->funcs.len; k++) {
        v.func = k;
        v.f = m->funcs.at[k];
        ING_TRY(check_func(&v));
    }
    ING_TRY(check_tasks(&v));
    if (!ing_ir_steps_ok(m->steps.at, m->steps.len, m->tasks.len, m->n_words,
                         m->n_stages))
        return ing_fail(e, ING_INTERNAL, "bad IR: the steps are no program");
    ing_status s = ing_ir_call_order(m, &order, e);
    ing_free(order);
    return s;
}
