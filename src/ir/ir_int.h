/* What the files of src/ir share with each other and with nobody else. */
#ifndef ING_IR_INT_H
#define ING_IR_INT_H

#include "ir/ir.h"

/* ID of a name in the module, 0 when memory ran out (sticky in the module's arena). */
uint32_t ing_ir_atom(ing_ir_mod *m, const char *s, size_t n);
/* Op, atomic or flag by its text; ING_OP_NONE, ING_IR_ATOMIC_N and 0 when unknown. */
ing_op ing_ir_op_find(const char *s, size_t n);
ing_ir_atomic ing_ir_atomic_find(const char *s, size_t n);
const char *ing_ir_atomic_text(ing_ir_atomic a);

/* Puts the ids in extra; their offset, 0 for an empty list. */
uint32_t ing_ir_put_list(ing_ir_builder *b, const uint32_t *ids, uint32_t n);

typedef struct ing_ir_flag_name {
    uint16_t flag;
    const char *text;
} ing_ir_flag_name;
enum { ING_IR_N_FLAGS = 15 };
extern const ing_ir_flag_name ing_ir_flag_names[ING_IR_N_FLAGS];

extern const char *const ing_ir_func_kind_names[3];
extern const char *const ing_ir_step_names[ING_IR_STEP_N];

static inline bool ing_ir_is_value_type(const ing_ir_mod *m, ing_type t) {
    return t != 0 && t < m->types.len;
}
static inline bool ing_ir_is_scalar(ing_type t) {
    return t != 0 && t < ING_DTYPE_N;
}
/* Scalars, tensors and structs: what memory can hold. */
static inline bool ing_ir_is_data(const ing_ir_mod *m, ing_type t) {
    if (!ing_ir_is_value_type(m, t)) return false;
    uint8_t k = m->types.at[t].kind;
    return k == ING_TYPE_SCALAR || k == ING_TYPE_TENSOR || k == ING_TYPE_STRUCT;
}
/* Tensor elements or struct members; 0 for anything else. */
uint32_t ing_ir_member_count(const ing_ir_mod *m, ing_type t);
ing_type ing_ir_member_type(const ing_ir_mod *m, ing_type t, uint32_t k);
uint32_t ing_ir_member_offset(const ing_ir_mod *m, ing_type t, uint32_t k);

/* `value` rounded up to a multiple of `align`, a power of two. */
static inline uint64_t ing_ir_round_up(uint64_t value, uint64_t align) {
    return (value + align - 1) & ~(align - 1);
}

#endif
