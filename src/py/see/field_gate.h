/* Fields as the gate and launches see them (field_gate.c): their layout, and the block that a launch
 * binds. */
#ifndef ING_PY_FIELD_GATE_H
#define ING_PY_FIELD_GATE_H

#include "py/array/field.h"
#include "py/call/kernel.h"

/* Lives as long as the layout. NULL: no memory, or too many axes or levels for kernels. */
const ing_place *ing_py_layout_place(const ing_py_layout *l, ing_err *e);
const ing_py_layout *ing_py_layout_of_place(ing_py_state *st,
                                            const ing_place *p); /* NULL = raised */
/* ING_DECLINED: it is no field. It is made ready. */
ing_status ing_py_see_field(ing_py_state *st, PyObject *obj, ing_gate_fact *out,
                            ing_err *e);
/* block[k]: the number of the first of these n objects that lies in the block of object k; of
 * what is no field, its own. The answer to ING_ASK_BLOCKS. */
ing_hash128 ing_py_blocks_of(const ing_py_state *st, PyObject *const *objects,
                             uint32_t n, uint32_t *block);
/* The same of the fields that the steps of a path name, today. */
ing_status ing_py_answer_blocks(ing_py_kernel *k, PyObject *const *args, ing_path path,
                                ing_hash128 *out, ing_err *e);
/* Asks which fields among the arguments of a kernel that was lowered share a block, and gives
 * those one word (D4). */
ing_status ing_py_share_blocks(ing_py_kernel *k, ing_py_gate *g, ing_front_result *r,
                               ing_err *e);
/* Why it was not bound. ING_DECLINED: it is no field of that layout, or lies in another block
 * than it should. */
ing_status ing_py_bind_field_failed(ing_py_kernel *k, const ing_py_bind *b,
                                    PyObject *obj);
/* False: see ing_py_bind_field_failed. On the hot path of launches. A launch made while the
 * fields of another are bound (an array of another library may run Python) can hide that two
 * share a block; comparing their addresses still shows it (R22). */
static inline bool ing_py_bind_field(ing_py_state *st, const ing_py_bind *b,
                                     PyObject *obj, uint64_t *words) {
    ing_py_field *f = (ing_py_field *)obj;
    if (!ing_py_is_field(st, obj) || f->layout != b->field || !f->block->mem)
        return false;
    uint64_t address = f->block->mem->address;
    if (b->beside == ING_BESIDE_SAME) {
        if (words[b->word] != address) return false;
    } else if (b->beside) {
        if (b->beside == ING_BESIDE_FIRST)
            st->bindings++;
        else if (f->block->bound == st->bindings)
            return false;
        f->block->bound = st->bindings;
    }
    words[b->word] = address;
    if (b->written) {
        if (f->whole)
            ing_py_field_touch(st, f);
        else
            f->generation = ++st->generations;
    }
    return true;
}

#endif
