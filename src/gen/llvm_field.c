/* Elements of dense fields as LLVM IR: the address of the block, which is the field's only
 * word, plus constants and strides (src/gate/place.h). Called by llvm_mem.c for ELEM.
 *
 * An axis of one level is its index times a stride. One of several is divided: by constants,
 * so LLVM shifts and masks for powers of two. What a loop over the field put together from its
 * levels, add axis (mul outer, n), inner, is taken apart again here without any division. */
#include "gen/gen_int.h"
#include "ir/access.h"

typedef ing_gen_txt txt;

typedef struct part { /* what is left of the index along one axis */
    uint32_t id;      /* the instruction, 0 = it is `x` */
    txt x;            /* as i64 */
    uint32_t levels;  /* of this axis still to come */
} part;

static txt wide(ing_gen *g, uint32_t id) {
    ing_type t = ing_gen_type_of(g, id);
    return ing_gen_cast(g, t < ING_DTYPE_N ? (ing_dtype)t : ING_I64, ING_I64,
                        g->vals[id]);
}

/* Takes off the part of the innermost level left, of extent n. */
static txt take(ing_gen *g, part *p, int64_t n) {
    bool last = --p->levels == 0;
    if (p->id && !last && ing_ir_is_joined(g->f, p->id, n)) {
        const ing_ir_inst *sum = ing_gen_inst(g, p->id);
        p->id = ing_gen_inst(g, sum->a)->a;
        return wide(g, sum->b);
    }
    if (p->id) p->x = wide(g, p->id);
    p->id = 0;
    txt x = p->x;
    if (last) return x;
    p->x = ing_gen_def(g, "udiv i64 %s, %lld", x.s, (long long)n);
    return ing_gen_def(g, "urem i64 %s, %lld", x.s, (long long)n);
}

txt ing_gen_field_element(ing_gen *g, const ing_ir_inst *i, const ing_place *place) {
    const uint32_t *idx = &g->f->extra.at[i->b];
    part parts[ING_MAX_NDIM] = {0};
    txt sum = {0};
    bool any = false;
    for (uint32_t a = 0; a < place->ndim; a++) parts[a].id = idx[a];
    for (uint32_t k = 0; k < place->n_levels; k++) parts[place->level[k].axis].levels++;
    for (uint32_t k = place->n_levels; k-- > 0;) {
        const ing_level *l = &place->level[k];
        txt x = take(g, &parts[l->axis], l->extent);
        x = ing_gen_def(g, "mul nsw i64 %s, %lld", x.s, (long long)l->stride);
        sum = any ? ing_gen_def(g, "add nsw i64 %s, %s", x.s, sum.s) : x;
        any = true;
    }
    txt p = ing_gen_array_data(g, i->a);
    if (place->at)
        p = ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %lld", p.s,
                        (long long)place->at);
    return any ? ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %s", p.s, sum.s)
               : p;
}
