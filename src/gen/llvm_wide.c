/* Wide loops as LLVM IR (src/pass/reduce_emit.c): the lanes of a reduction are set, joined and halved by
 * vectors. Called by llvm_flow.c for a LOOP with ING_IR_WIDE: of constant length, each iteration at
 * places of its own, its body made of addresses in local tensors at the index or a constant beyond it,
 * LOADs, STOREs of constants, and plain updates by what was loaded. No loop is left: as loops
 * LLVM unrolls and vectorises each, which is most of what it does for a short reduction.
 *
 * A vector has 32 bytes or, at the end of a tree, less: as long as those that LLVM makes of the loop
 * over whole blocks, so that the lanes become registers. Floats are added in the order of the lanes,
 * without flags that would let LLVM choose another (R23). */
#include "gen/gen_int.h"
#include "ir/access.h"

typedef ing_gen_txt txt;

enum { VECTOR_BYTES = 32 };

typedef struct piece { /* lanes [first, first + n) of a loop */
    uint32_t first, n;
    ing_dtype type;
} piece;

/* As in LLVM IR: <8 x float>, float. */
static txt type_of(const ing_gen *g, const piece *p) {
    txt t = ing_gen_type_mem(g, p->type);
    return p->n == 1 ? t : ing_gen_text("<%u x %s>", p->n, t.s);
}

/* And as the end of an intrinsic's name: v8f32, f32. */
static txt name_of(const piece *p) {
    char c = ing_dtype_is_float(p->type) ? 'f' : 'i';
    unsigned bits = ing_dtype_bits(p->type);
    return p->n == 1 ? ing_gen_text("%c%u", c, bits)
                     : ing_gen_text("v%u%c%u", p->n, c, bits);
}

static txt address(ing_gen *g, const piece *p, uint32_t ref) {
    return ing_gen_def(g, "getelementptr inbounds %s, ptr %s, i64 %u",
                       ing_gen_type_mem(g, p->type).s, g->vals[ref].s, p->first);
}

static txt load(ing_gen *g, const piece *p, txt at) {
    return ing_gen_def(g, "load %s, ptr %s, align %u", type_of(g, p).s, at.s,
                       ing_dtype_bytes(p->type));
}

static void store(ing_gen *g, const piece *p, txt v, txt at) {
    ing_gen_put(g, "  store %s %s, ptr %s, align %u\n", type_of(g, p).s, v.s, at.s,
                ing_dtype_bytes(p->type));
}

static txt intrinsic(ing_gen *g, const piece *p, const char *name, txt a, txt b) {
    txt ty = type_of(g, p), end = name_of(p);
    ing_gen_declare(g, "%s @llvm.%s.%s(%s, %s)", ty.s, name, end.s, ty.s, ty.s);
    return ing_gen_def(g, "call %s @llvm.%s.%s(%s %s, %s %s)", ty.s, name, end.s, ty.s,
                       a.s, ty.s, b.s);
}

/* As ing_gen_arith does for one. */
static txt extreme(ing_gen *g, const piece *p, bool least, txt a, txt b) {
    if (!ing_dtype_is_float(p->type)) {
        bool s = ing_dtype_is_signed(p->type);
        const char *name = least ? (s ? "smin" : "umin") : s ? "smax" : "umax";
        return intrinsic(g, p, name, a, b);
    }
    if (g->o->fast_math) return intrinsic(g, p, least ? "minnum" : "maxnum", a, b);
    txt ty = type_of(g, p);
    txt bits = p->n == 1 ? ing_gen_text("i1") : ing_gen_text("<%u x i1>", p->n);
    txt beyond =
        ing_gen_def(g, "fcmp %s %s %s, %s", least ? "olt" : "ogt", ty.s, b.s, a.s);
    txt nan = ing_gen_def(g, "fcmp uno %s %s, %s", ty.s, a.s, a.s);
    txt take = ing_gen_def(g, "or %s %s, %s", bits.s, beyond.s, nan.s);
    return ing_gen_def(g, "select %s %s, %s %s, %s %s", bits.s, take.s, ty.s, b.s, ty.s,
                       a.s);
}

static txt combine(ing_gen *g, const piece *p, uint32_t kind, txt a, txt b) {
    static const char *const names[2][ING_IR_ATOMIC_N] = {
        {"add", "sub", "mul", NULL, NULL, "and", "or", "xor", NULL},
        {"fadd", "fsub", "fmul", NULL, NULL, NULL, NULL, NULL, NULL},
    };
    if (kind == ING_IR_ATOMIC_MIN || kind == ING_IR_ATOMIC_MAX)
        return extreme(g, p, kind == ING_IR_ATOMIC_MIN, a, b);
    const char *name = names[ing_dtype_is_float(p->type)][kind];
    if (!name) ing_gen_fail(g, "an update that wide loops do not have");
    return ing_gen_def(g, "%s %s %s, %s", name ? name : "", type_of(g, p).s, a.s, b.s);
}

static void put_piece(ing_gen *g, const ing_ir_inst *i, const piece *p) {
    txt to = address(g, p, i->a);
    if (i->op == ING_OP_STORE) { /* of a constant */
        txt v = g->vals[i->b], one = ing_gen_type_mem(g, p->type);
        store(g, p, p->n == 1 ? v : ing_gen_text("splat (%s %s)", one.s, v.s), to);
        return;
    }
    txt more = load(g, p, address(g, p, ing_gen_inst(g, i->b)->a));
    txt have = load(g, p, to);
    store(g, p, combine(g, p, i->c, have, more), to);
}

/* A STORE or ATOMIC, for all lanes. */
static void put_access(ing_gen *g, const ing_ir_inst *i, uint32_t lanes) {
    bool stores = i->op == ING_OP_STORE;
    if (!stores && ing_gen_inst(g, i->b)->op != ING_OP_LOAD)
        ing_gen_fail(g, "a wide loop of another form");
    ing_dtype t = (ing_dtype)(stores ? ing_gen_type_of(g, i->b) : i->type);
    uint32_t most = VECTOR_BYTES / ing_dtype_bytes(t);
    for (piece p = {.type = t}; p.first < lanes; p.first += p.n) {
        p.n = most;
        while (p.n > lanes - p.first) p.n /= 2;
        put_piece(g, i, &p);
    }
}

void ing_gen_wide(ing_gen *g, uint32_t id) {
    const ing_ir_inst *l = ing_gen_inst(g, id);
    uint64_t lanes;
    if (!ing_ir_trips(g->f, l->a, l->b, &lanes) || lanes > UINT16_MAX) {
        ing_gen_fail(g, "a wide loop of another form");
        return;
    }
    g->vals[id] = ing_gen_text("0");
    for (uint32_t k = 0; k < ing_ir_block_len(g->f, l->c); k++) {
        uint32_t at = ing_ir_block_ids(g->f, l->c)[k];
        const ing_ir_inst *i = ing_gen_inst(g, at);
        g->homes[at] = g->loop;
        if (i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC)
            put_access(g, i, (uint32_t)lanes);
        else if (i->op != ING_OP_LOAD && !ing_gen_value_op(g, at) &&
                 !ing_gen_memory_op(g, at))
            ing_gen_fail(g, "operation without code");
    }
}
