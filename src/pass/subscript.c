/* Subscript: arithmetic whose results nothing but subscripts use does not wrap (R22). The front end
 * says so of what stands between the brackets; here it is said of `j = 3 * i` too, where only
 * `x[j]` and `x[j + 1]` use j. Then places are told apart (ACCESS4), and LLVM knows neighbours.
 * Runs after simplify, on every function. Rules
 *  SUBSCRIPT1 ADD, SUB and MUL of i32 and i64 that are used, and only by ELEM as subscripts, by such
 *     arithmetic, or by CASTs to wider signed integers that are so used themselves. */
#include "pass/pass_int.h"

enum { SUBSCRIPT = 1, OTHER = 2 }; /* how a value is used */

static bool counts(ing_type t) { /* is of one of the types of indices */
    return t < ING_DTYPE_N && ing_dtype_is_int((ing_dtype)t) &&
           ing_dtype_is_signed((ing_dtype)t) && ing_dtype_bits((ing_dtype)t) >= 32;
}

static bool is_widening(const ing_ir_func *f, const ing_ir_inst *i) {
    ing_type from = i->op == ING_OP_CAST ? ing_ir_at(f, i->a)->type : ING_VOID;
    return i->op == ING_OP_CAST && counts(from) && counts(i->type) &&
           ing_dtype_bits((ing_dtype)i->type) >= ing_dtype_bits((ing_dtype)from);
}

static void mark_uses(const ing_ir_func *f, const ing_ir_inst *i, uint8_t how,
                      uint8_t *uses) {
    ing_ir_uses u;
    ing_ir_inst_uses(f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++)
        uses[u.fixed[k]] |= i->op == ING_OP_ELEM ? OTHER : how;
    for (uint32_t k = 0; k < u.n_list; k++) uses[u.list[k]] |= how;
}

/* A value's uses stand behind it: backwards, all of them are known when it is met. */
static void run_func(ing_ir_func *f, uint8_t *uses) {
    for (uint32_t id = f->insts.len; id-- > 1;) {
        ing_ir_inst *i = &f->insts.at[id];
        bool sum = i->op == ING_OP_ADD || i->op == ING_OP_SUB || i->op == ING_OP_MUL;
        bool only = uses[id] == SUBSCRIPT && counts(i->type);
        if (sum && only) i->flags |= ING_IR_NSW;
        bool passes = only && (sum || is_widening(f, i));
        mark_uses(f, i, passes || i->op == ING_OP_ELEM ? SUBSCRIPT : OTHER, uses);
    }
}

ing_status ing_pass_subscript(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    for (uint32_t k = 0; k < m->funcs.len; k++) {
        ing_ir_func *f = m->funcs.at[k];
        uint8_t *uses = ing_calloc((size_t)f->insts.len + 1, 1);
        if (!uses) return ing_fail(e, ING_MEMORY, "no memory for a pass");
        run_func(f, uses);
        ing_free(uses);
    }
    return ING_OK;
}
