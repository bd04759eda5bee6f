/* Brief: which while loops surely end after few iterations, by what they do to the number that they wait
 * for. Called by the planner of polls (src/gen/llvm_plan.c). Answers err towards "no".
 * Rules
 *  BRIEF1 the loop leaves where a local integer x is 0 (or not above 0), in each iteration; x is
 *     written once in an iteration, in each, and nothing but loads and this store know its address.
 *  BRIEF2 what is written has fewer ones than x, or fewer digits: x & (x - 1), x shifted to the right, x
 *     divided by a constant from 2 on. A signed x that is shifted, or divided towards minus infinity, ends at
 *     -1: then the loop must leave where x is below 0.
 *  BRIEF3 nothing in the loop skips the rest of an iteration (CONTINUE), loops, or calls. */
#include "ir/access.h"

typedef struct wait {
    const ing_ir_func *f;
    uint32_t body;   /* block of the loop */
    uint32_t local;  /* x */
    uint32_t stores; /* to it, anywhere in the loop */
    bool above;      /* it leaves where x is not above 0 */
    bool refused;
} wait;

static bool in_body(const wait *w, uint32_t id) {
    for (uint32_t k = 0; k < ing_ir_block_len(w->f, w->body); k++)
        if (ing_ir_block_ids(w->f, w->body)[k] == id) return true;
    return false;
}

/* x, as this iteration found it. */
static bool is_local(const wait *w, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(w->f, id);
    return i->op == ING_OP_LOAD && i->a == w->local && in_body(w, id);
}

static bool is_const(const wait *w, uint32_t id, uint64_t least, uint64_t most) {
    const ing_ir_inst *i = ing_ir_at(w->f, id);
    if (i->op != ING_OP_CONST) return false;
    return ing_ir_const_bits(i) >= least && ing_ir_const_bits(i) <= most;
}

/* x - 1 */
static bool is_less(const wait *w, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(w->f, id);
    return i->op == ING_OP_SUB && is_local(w, i->a) && is_const(w, i->b, 1, 1);
}

/* BRIEF2 */
static bool shrinks(const wait *w, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(w->f, id);
    bool positive = w->above || !ing_dtype_is_signed((ing_dtype)i->type);
    uint64_t bits = ing_dtype_bits((ing_dtype)i->type);
    switch (i->op) {
    case ING_OP_AND:
        return (is_local(w, i->a) && is_less(w, i->b)) ||
               (is_local(w, i->b) && is_less(w, i->a));
    case ING_OP_SHR: return is_local(w, i->a) && is_const(w, i->b, 1, bits - 1);
    case ING_OP_SAR:
        return positive && is_local(w, i->a) && is_const(w, i->b, 1, bits - 1);
    case ING_OP_FLOORDIV:
        return positive && is_local(w, i->a) && is_const(w, i->b, 2, 1u << 16) &&
               bits > 16;
    default: return false;
    }
}

static void look(wait *w, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(w->f, block); k++) {
        uint32_t id = ing_ir_block_ids(w->f, block)[k], blocks[2];
        const ing_ir_inst *i = ing_ir_at(w->f, id);
        bool plain = ing_op_class_of(i->op) < ING_OPC_SERVICE;
        w->refused |= !plain && i->op != ING_OP_IF && i->op != ING_OP_BREAK;
        w->stores += i->op == ING_OP_STORE && i->a == w->local;
        uint32_t n = ing_ir_inst_blocks(i, blocks);
        for (uint32_t j = 0; j < n && !w->refused; j++) look(w, blocks[j]);
    }
}

/* BRIEF1: nobody has the address of x. */
static bool is_known(const wait *w) {
    for (uint32_t id = 1; id < w->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(w->f, id);
        ing_ir_uses u;
        ing_ir_inst_uses(w->f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
            uint32_t used = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
            bool whole = k == 0 && (i->op == ING_OP_LOAD || i->op == ING_OP_STORE);
            if (used == w->local && !whole) return false;
        }
    }
    return true;
}

/* The local for which `if not x != 0: break` waits; 0: it is something else. */
static uint32_t waits_for(wait *w, const ing_ir_inst *i) {
    if (i->op != ING_OP_IF || i->c || ing_ir_block_len(w->f, i->b) != 1) return 0;
    if (ing_ir_at(w->f, ing_ir_block_ids(w->f, i->b)[0])->op != ING_OP_BREAK) return 0;
    const ing_ir_inst *not= ing_ir_at(w->f, i->a);
    if (not->op != ING_OP_NOT) return 0;
    const ing_ir_inst *c = ing_ir_at(w->f, not->a);
    const ing_ir_inst *x = ing_ir_at(w->f, c->a);
    if ((c->op != ING_OP_NE && c->op != ING_OP_GT) || x->op != ING_OP_LOAD) return 0;
    if (!in_body(w, c->a) || !is_const(w, c->b, 0, 0)) return 0;
    const ing_ir_inst *local = ing_ir_at(w->f, x->a);
    bool whole = x->type < ING_DTYPE_N && !ing_dtype_is_float((ing_dtype)x->type);
    w->above = c->op == ING_OP_GT;
    return local->op == ING_OP_ALLOCA && whole && x->type != ING_U1 ? x->a : 0;
}

static bool ends(wait *w) {
    w->stores = 0;
    look(w, w->body);
    if (w->refused || w->stores != 1 || !is_known(w)) return false;
    for (uint32_t k = 0; k < ing_ir_block_len(w->f, w->body); k++) {
        const ing_ir_inst *i = ing_ir_at(w->f, ing_ir_block_ids(w->f, w->body)[k]);
        if (i->op == ING_OP_STORE && i->a == w->local) return shrinks(w, i->b);
    }
    return false;
}

bool ing_ir_is_brief(const ing_ir_func *f, uint32_t loop) {
    wait w = {.f = f, .body = ing_ir_at(f, loop)->a};
    for (uint32_t k = 0; k < ing_ir_block_len(f, w.body) && !w.refused; k++) {
        const ing_ir_inst *i = ing_ir_at(f, ing_ir_block_ids(f, w.body)[k]);
        w.local = waits_for(&w, i);
        if (w.local && ends(&w)) return true;
    }
    return false;
}
