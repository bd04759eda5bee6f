/* Long loops on short stacks. Called by sweep.c, backward.c and size.c for each loop with a stack.
 *  SEGMENT1 a loop whose length is known only at run time is gone through in segments of SEGMENT iterations.
 *     Its stack has an entry for each iteration of one segment, and on top of these one for the beginning of
 *     each segment. Backward code takes the segments from the last to the first: each but the last, whose
 *     entries the forward code left behind, is run forwards once more, which writes its entries. So n
 *     iterations take n / SEGMENT + SEGMENT entries, for one more forward run of what is before the last segment.
 *     A WHILE has room for a whole segment from the start, and asks for more segment by segment.
 *  SEGMENT2 a LOOP is cut where all columns of a parallel loop have the same bounds: lanes.h sends columns
 *     whose bounds differ side by side through single loops only (LANES7).
 *  SEGMENT3 qd.init(ad_stack_size=N) says how many iterations a stack may keep: then each is kept. */
#include "ad/ad_int.h"

enum {
    SEGMENT_BITS = 8,
    SEGMENT = 1 << SEGMENT_BITS,
    MAX_DEPTH = 8 /* of what bounds are made of */
};

static uint32_t emit(ing_ad_code *c, ing_op op, uint32_t x, uint32_t y) {
    return ing_ir_emit(&c->b, op, ING_I64, x, y, 0);
}

static uint32_t number(ing_ad_code *c, int64_t v) {
    return ing_ir_const_int(&c->b, ING_I64, v);
}

/* ---- which loops ------------------------------------------------------------------------------ */

static bool is_even(const ing_ad_fn *n, uint32_t id, uint32_t depth);

static bool all_even(const ing_ad_fn *n, const ing_ir_inst *i, uint32_t depth) {
    ing_ir_uses u;
    ing_ir_inst_uses(n->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++)
        if (!is_even(n, u.fixed[k], depth)) return false;
    for (uint32_t k = 0; k < u.n_list; k++)
        if (!is_even(n, u.list[k], depth)) return false;
    return true;
}

/* The same for all columns: made outside of loops, or of such things and of elements of arrays, which backward
 * code finds as they were (AD3). */
static bool is_even(const ing_ad_fn *n, uint32_t id, uint32_t depth) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    bool outside = n->func == 0 && n->region[id] == 0 && n->block[id];
    if (outside && i->op != ING_OP_LOOP) return true; /* whose index it is, inside */
    switch (i->op) {
    case ING_OP_CONST:
    case ING_OP_ARG:
    case ING_OP_ARRAY:
    case ING_OP_DIM: return true;
    case ING_OP_PARAM:
    case ING_OP_SEED: return false;
    case ING_OP_LOAD:
        if (ing_ir_at(n->f, i->a)->op != ING_OP_ELEM) return false;
        break;
    default:
        if (!ing_op_is_pure(i->op)) return false;
    }
    return depth < MAX_DEPTH && all_even(n, i, depth + 1);
}

static bool is_short(const ing_ad_fn *n, const ing_ir_inst *loop) {
    const ing_ir_inst *from = ing_ir_at(n->f, loop->a), *to = ing_ir_at(n->f, loop->b);
    if (from->op != ING_OP_CONST || to->op != ING_OP_CONST) return false;
    int64_t begin = (int64_t)ing_ir_const_bits(from),
            end = (int64_t)ing_ir_const_bits(to);
    return end <= begin || (uint64_t)end - (uint64_t)begin <= SEGMENT;
}

bool ing_ad_is_cut(const ing_ad *ad, const ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    if (ad->m->stack_entries > 0) return false;
    if (i->op == ING_OP_WHILE) return true;
    if (i->flags & ING_IR_PARALLEL || is_short(n, i)) return false;
    if (n->func == 0 && n->region[id] == 0) return false; /* a task of its own */
    return is_even(n, i->a, 0) && is_even(n, i->b, 0);
}

/* ---- what they keep --------------------------------------------------------------------------- */

/* Entries for the iterations of a segment; the first one is the longest. */
static uint32_t longest(ing_ad_code *c, uint32_t loop, uint32_t trips) {
    uint32_t most = number(c, SEGMENT);
    return ing_ir_at(c->f, loop)->op == ING_OP_WHILE ? most
                                                     : emit(c, ING_OP_MIN, trips, most);
}

uint32_t ing_ad_segments(ing_ad_code *c, uint32_t trips) {
    uint32_t up = emit(c, ING_OP_ADD, trips, number(c, SEGMENT - 1));
    return emit(c, ING_OP_SAR, up, number(c, SEGMENT_BITS));
}

uint32_t ing_ad_entries(ing_ad_code *c, uint32_t loop, uint32_t trips) {
    if (!ing_ad_is_cut(c->ad, c->n, loop)) return trips;
    uint32_t all = ing_ad_segments(c, trips);
    return emit(c, ING_OP_ADD, longest(c, loop, trips), all);
}

ing_ad_segment ing_ad_segment_at(ing_ad_code *c, uint32_t loop, uint32_t trips,
                                 uint32_t at) {
    ing_ad_segment s;
    uint32_t most = longest(c, loop, trips);
    s.entry = emit(c, ING_OP_ADD, most, at);
    s.first = emit(c, ING_OP_SHL, at, number(c, SEGMENT_BITS));
    uint32_t left = emit(c, ING_OP_SUB, trips, s.first);
    s.trips = emit(c, ING_OP_MIN, left, number(c, SEGMENT));
    return s;
}

ing_ad_place ing_ad_place_of(ing_ad_code *c, uint32_t iteration) {
    ing_ad_place p;
    p.entry = emit(c, ING_OP_AND, iteration, number(c, SEGMENT - 1));
    p.segment = emit(c, ING_OP_SAR, iteration, number(c, SEGMENT_BITS));
    return p;
}
