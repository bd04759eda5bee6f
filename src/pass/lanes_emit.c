/* Writes the loops over blocks, serial iterations and lanes. Called by lanes.c, decides
 * nothing; lanes.h draws the result. */
#include "pass/lanes.h"

typedef struct emitter {
    ing_lanes *l;
    ing_ir_builder b;
    ing_ir_func old;
    ing_ir_copy copy;
    uint32_t *arrays; /* by instruction: of the lanes of a local or of a kept value */
    uint32_t lane;    /* index, in a loop over lanes; 0 = elsewhere */
} emitter;

static uint32_t op2(emitter *x, ing_op op, ing_type t, uint32_t a, uint32_t b) {
    uint32_t id = ing_ir_emit(&x->b, op, t, a, b, 0);
    bool counts = op == ING_OP_ADD || op == ING_OP_SUB || op == ING_OP_MUL;
    if (id && counts) x->b.func->insts.at[id].flags |= ING_IR_NSW;
    return id;
}

static uint32_t number(emitter *x, ing_type t, int64_t v) {
    return ing_ir_const_int(&x->b, (ing_dtype)t, v);
}

static const ing_ir_inst *at(const emitter *x, uint32_t id) {
    return ing_ir_at(&x->old, id);
}

/* ---- lanes of locals and values ------------------------------------------------------------- */

static uint32_t lane_ref(emitter *x, uint32_t id, ing_type t) {
    return ing_ir_emit(&x->b, ING_OP_MEMBER_DYN, ing_ir_type_ref(x->l->m, t),
                       x->arrays[id], x->lane, 0);
}

/* The scalar that instruction `id` of the loop keeps in lanes, or void. */
static ing_type kept_type(const emitter *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (i->op == ING_OP_ALLOCA) return ing_ir_type(x->l->m, i->type)->elem;
    return i->op == ING_OP_LOAD && x->l->needed[id] ? i->type : ING_VOID;
}

static void put_arrays(emitter *x, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(&x->old, block); k++) {
        uint32_t id = ing_ir_block_ids(&x->old, block)[k];
        ing_type t = kept_type(x, id);
        if (id == x->l->inner) put_arrays(x, at(x, id)->c);
        if (t == ING_VOID) continue;
        ing_type tensor = ing_ir_type_tensor(x->l->m, (ing_dtype)t, ING_LANES, 1, 1);
        ing_type ref = ing_ir_type_ref(x->l->m, tensor);
        x->arrays[id] = ing_ir_emit(&x->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    }
}

/* Locals are in their lanes. */
static bool local_op(emitter *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    if (i->op == ING_OP_ALLOCA) {
        ing_type t = kept_type(x, id);
        uint32_t zero = ing_ir_emit(&x->b, ING_OP_CONST, t, 0, 0, 0);
        ing_ir_emit(&x->b, ING_OP_STORE, 0, lane_ref(x, id, t), zero, 0);
        return true;
    }
    bool access = i->op == ING_OP_LOAD || i->op == ING_OP_STORE;
    if (!access || !x->arrays[i->a] || at(x, i->a)->op != ING_OP_ALLOCA) return false;
    uint32_t ref = lane_ref(x, i->a, kept_type(x, i->a));
    if (i->op == ING_OP_STORE)
        ing_ir_emit(&x->b, ING_OP_STORE, 0, ref, x->copy.map[i->b], 0);
    else
        x->copy.map[id] = ing_ir_emit(&x->b, ING_OP_LOAD, i->type, ref, 0, 0);
    return true;
}

/* ---- the parts of the loop ------------------------------------------------------------------ */

typedef struct part { /* instructions [first, end) of a block, for all lanes */
    uint32_t block, first, end;
    bool pre;
} part;

/* What the part before the serial loop made and this part uses. */
static void put_needed(emitter *x) {
    uint32_t body = at(x, x->l->loop)->c;
    for (uint32_t k = 0; ing_ir_block_ids(&x->old, body)[k] != x->l->inner; k++) {
        uint32_t id = ing_ir_block_ids(&x->old, body)[k];
        const ing_ir_inst *i = at(x, id);
        if (!x->l->needed[id] || !x->l->varies[id]) continue;
        if (ing_lanes_pure(i))
            ing_ir_copy_inst(&x->copy, id);
        else if (i->op == ING_OP_LOAD)
            x->copy.map[id] = ing_ir_emit(&x->b, ING_OP_LOAD, i->type,
                                          lane_ref(x, id, i->type), 0, 0);
    }
}

static void put_inst(emitter *x, const part *p, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    bool once = p->block == at(x, x->l->loop)->c && !x->l->varies[id];
    if (once) return; /* is before the loops */
    ing_ir_copy_inst(&x->copy, id);
    if (p->pre && i->op == ING_OP_LOAD && x->l->needed[id])
        ing_ir_emit(&x->b, ING_OP_STORE, 0, lane_ref(x, id, i->type), x->copy.map[id],
                    0);
}

static void put_part(emitter *x, const part *p, uint32_t base, uint32_t lanes) {
    ing_type t = at(x, x->l->loop)->type;
    uint32_t zero = number(x, t, 0);
    if (p->first == p->end) return;
    x->lane = ing_ir_loop_reserve(&x->b, t);
    ing_ir_block_begin(&x->b);
    x->copy.map[x->l->loop] = op2(x, ING_OP_ADD, t, base, x->lane);
    if (!p->pre) put_needed(x);
    for (uint32_t k = p->first; k < p->end; k++)
        put_inst(x, p, ing_ir_block_ids(&x->old, p->block)[k]);
    ing_ir_loop_finish(&x->b, x->lane, zero, lanes, ing_ir_block_end(&x->b),
                       ING_IR_ORDERED);
    x->lane = 0;
}

/* Columns base .. base + lanes. */
static void put_columns(emitter *x, uint32_t base, uint32_t lanes) {
    const ing_ir_inst *k = at(x, x->l->inner);
    uint32_t body = at(x, x->l->loop)->c, n = ing_ir_block_len(&x->old, body), mid = 0;
    while (ing_ir_block_ids(&x->old, body)[mid] != x->l->inner) mid++;
    part pre = {.block = body, .end = mid, .pre = true};
    part inner = {.block = k->c, .end = ing_ir_block_len(&x->old, k->c)};
    part post = {.block = body, .first = mid + 1, .end = n};
    put_part(x, &pre, base, lanes);
    uint32_t loop = ing_ir_loop_reserve(&x->b, k->type);
    x->copy.map[x->l->inner] = loop;
    ing_ir_block_begin(&x->b);
    put_part(x, &inner, base, lanes);
    ing_ir_loop_finish(&x->b, loop, x->copy.map[k->a], x->copy.map[k->b],
                       ing_ir_block_end(&x->b), 0);
    put_part(x, &post, base, lanes);
}

/* What is the same for all columns, once. */
static void put_common(emitter *x) {
    uint32_t body = at(x, x->l->loop)->c;
    for (uint32_t k = 0; k < ing_ir_block_len(&x->old, body); k++) {
        uint32_t id = ing_ir_block_ids(&x->old, body)[k];
        if (id != x->l->inner && !x->l->varies[id]) ing_ir_copy_inst(&x->copy, id);
    }
}

static void put_lanes(emitter *x) {
    const ing_ir_inst *c = at(x, x->l->loop);
    ing_type t = c->type;
    uint32_t from = x->copy.map[c->a], to = x->copy.map[c->b], zero = number(x, t, 0);
    uint32_t lanes = number(x, t, ING_LANES);
    uint32_t shift = number(x, t, __builtin_ctz(ING_LANES));
    uint32_t trips = op2(x, ING_OP_SUB, t, to, from);
    uint32_t blocks = op2(x, ING_OP_MAX, t, op2(x, ING_OP_SAR, t, trips, shift), zero);
    put_common(x);
    uint32_t block = ing_ir_loop_reserve(&x->b, t);
    ing_ir_block_begin(&x->b);
    put_arrays(x, c->c); /* of whole blocks: LLVM makes registers of them */
    put_columns(x, op2(x, ING_OP_ADD, t, from, op2(x, ING_OP_MUL, t, block, lanes)),
                lanes);
    ing_ir_loop_finish(&x->b, block, zero, blocks, ing_ir_block_end(&x->b),
                       ING_IR_PARALLEL);
    put_arrays(x, c->c);
    uint32_t rest = op2(x, ING_OP_ADD, t, from, op2(x, ING_OP_MUL, t, blocks, lanes));
    put_columns(x, rest, op2(x, ING_OP_SUB, t, to, rest));
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    emitter *x = c->self;
    if (x->lane) return local_op(x, id);
    if (id != x->l->loop) return false;
    put_lanes(x);
    return true;
}

bool ing_lanes_emit(ing_lanes *l) {
    emitter x = {.l = l};
    uint32_t n = l->f->insts.len;
    uint32_t *map = ing_calloc(n, sizeof *map);
    x.arrays = ing_calloc(n, sizeof *x.arrays);
    if (map && x.arrays) {
        ing_ir_rebuild_begin(&x.b, l->m, l->func, &x.old);
        x.copy = (ing_ir_copy){
            .b = &x.b, .from = &x.old, .map = map, .hook = hook, .self = &x};
        ing_ir_copy_block(&x.copy, x.old.body);
        ing_ir_rebuild_end(&x.b, &x.old);
    }
    bool ok = map && x.arrays && ing_ir_ok(l->m);
    ing_free(map);
    ing_free(x.arrays);
    return ok;
}
