/* What a module may do. Which array arguments a launch can change: used by src/py to bump
 * generations (R25) and to refuse read-only memory; it must never miss a write, and may name
 * an array that is only read. What may draw random numbers: used by whoever numbers the
 * places where they are drawn. */
#include "ir/access.h"

/* Marks what the instruction writes; true: it writes through a parameter. */
static bool mark(const ing_ir_func *f, const ing_ir_inst *i, uint8_t *written) {
    if (i->op != ING_OP_STORE && i->op != ING_OP_ATOMIC && i->op != ING_OP_CAS)
        return false;
    const ing_ir_inst *root = ing_ir_root(f, i->a, NULL);
    if (root->op == ING_OP_ARRAY) written[root->a] = 1;
    return root->op == ING_OP_PARAM;
}

void ing_ir_written_args(const ing_ir_mod *m, uint8_t *written) {
    bool through_param = false;
    for (uint32_t k = 0; k < m->args.len; k++) written[k] = 0;
    for (uint32_t k = 0; k < m->funcs.len; k++) {
        const ing_ir_func *f = m->funcs.at[k];
        for (uint32_t i = 1; i < f->insts.len; i++)
            if (mark(f, &f->insts.at[i], written)) through_param = true;
    }
    /* Funcs that write through a parameter may have been given any array. */
    for (uint32_t k = 0; through_param && k < m->args.len; k++)
        if (ing_ir_type(m, m->args.at[k].type)->kind == ING_TYPE_ARRAY) written[k] = 1;
}

void ing_ir_read_args(const ing_ir_mod *m, uint8_t *reads) {
    for (uint32_t k = 0; k < m->args.len; k++) reads[k] = ING_IR_READS_NOTHING;
    for (uint32_t k = 0; k < m->funcs.len; k++) {
        const ing_ir_func *f = m->funcs.at[k];
        for (uint32_t id = 1; id < f->insts.len; id++) {
            const ing_ir_inst *i = ing_ir_at(f, id);
            bool input = i->op == ING_OP_ARG || i->op == ING_OP_ARRAY;
            if (input && !reads[i->a]) reads[i->a] = ING_IR_READS_WORDS;
            bool call = i->op == ING_OP_CALL; /* a func may read any element */
            for (uint32_t j = 0; (call && j < i->c) || (!j && i->op == ING_OP_ELEM);
                 j++) {
                uint32_t of = call ? f->extra.at[i->b + j] : i->a;
                if (ing_ir_at(f, of)->op == ING_OP_ARRAY)
                    reads[ing_ir_at(f, of)->a] = ING_IR_READS_ELEMENTS;
            }
        }
    }
}

static bool block_draws(const ing_ir_func *f, uint32_t block, const uint8_t *draws) {
    const uint32_t *ids = ing_ir_block_ids(f, block);
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++)
        if (ing_ir_inst_draws(f, ing_ir_at(f, ids[k]), draws)) return true;
    return false;
}

bool ing_ir_inst_draws(const ing_ir_func *f, const ing_ir_inst *i,
                       const uint8_t *draws) {
    uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
    if (i->op == ING_OP_RANDOM || (i->op == ING_OP_CALL && draws[i->a])) return true;
    while (n)
        if (block_draws(f, blocks[--n], draws)) return true;
    return false;
}

ing_status ing_ir_draws(const ing_ir_mod *m, uint8_t *draws, ing_err *e) {
    uint32_t *order = NULL;
    ING_TRY(ing_ir_call_order(m, &order, e));
    for (uint32_t k = 0; k < m->funcs.len; k++) {
        const ing_ir_func *f = m->funcs.at[order[k]];
        draws[order[k]] = block_draws(f, f->body, draws);
    }
    ing_free(order);
    return ING_OK;
}
