/* Atomic sums of neighbouring floats as one: `grid[i] += v` of a vector of two is two ATOMICs
 * on 8 bytes, and a locked instruction costs more than all that is around it. Called by
 * llvm_mem.c for each ATOMIC; answers whether it wrote this one and the next.
 *
 *  PAIR1 The pair is a sum or a difference of f32 whose old values nobody uses, on members k and
 *     k + 1 of one vector or matrix, k even, of a type whose size is a multiple of 8.
 *  PAIR2 Nothing stands between them but the address of the second, so no order is lost; each
 *     member is still updated as one.
 *  PAIR3 Memory of others may begin anywhere: an address that is no multiple of 8 takes the two
 *     one by one. */
#include "gen/gen_int.h"

typedef ing_gen_txt txt;

static bool sums_floats(const ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    return i->op == ING_OP_ATOMIC && i->type == ING_F32 && g->uses[id] == 0 &&
           (i->c == ING_IR_ATOMIC_ADD || i->c == ING_IR_ATOMIC_SUB) &&
           !(i->flags & ING_IR_PRIVATE) && g->roots[i->a] == ING_GEN_ARRAY;
}

/* The ATOMIC that makes a pair with `id`, which was just reached; 0 = none. */
static uint32_t partner(const ing_gen *g, uint32_t id) {
    const ing_gen_frame *f = &g->frames.at[g->frames.len - 1];
    const ing_ir_inst *i = ing_gen_inst(g, id), *at = ing_gen_inst(g, i->a);
    if (at->op != ING_OP_MEMBER || at->b % 2 || f->pos + 2 > g->f->extra.at[f->block])
        return 0;
    ing_type tensor = ing_ir_type(g->m, ing_gen_type_of(g, at->a))->elem;
    if (ing_ir_type(g->m, tensor)->kind != ING_TYPE_TENSOR) return 0;
    if (ing_ir_type_size(g->m, tensor) % 8) return 0;
    const uint32_t *next = &g->f->extra.at[f->block + 1 + f->pos];
    const ing_ir_inst *m = ing_gen_inst(g, next[0]), *j = ing_gen_inst(g, next[1]);
    bool beside = m->op == ING_OP_MEMBER && m->a == at->a && m->b == at->b + 1;
    bool same = j->op == ING_OP_ATOMIC && j->a == next[0] && j->c == i->c;
    return beside && same && g->uses[next[1]] == 0 ? next[1] : 0;
}

static txt both(ing_gen *g, txt a, txt b) {
    txt v = ing_gen_def(g, "insertelement <2 x float> poison, float %s, i32 0", a.s);
    return ing_gen_def(g, "insertelement <2 x float> %s, float %s, i32 1", v.s, b.s);
}

static void put_whole(ing_gen *g, uint32_t n, const char *op, txt p, txt v,
                      const char *md) {
    txt first = ing_gen_def(g, "load atomic i64, ptr %s monotonic, align 8%s", p.s, md);
    ing_gen_put(g, "  br label %%pair%u\npair%u:\n", n, n);
    ing_gen_put(g,
                "  %%pair%u.old = phi i64 [ %s, %%pair%u.whole ], "
                "[ %%pair%u.seen, %%pair%u ]\n",
                n, first.s, n, n, n);
    txt old = ing_gen_def(g, "bitcast i64 %%pair%u.old to <2 x float>", n);
    txt sum = ing_gen_def(g, "%s <2 x float> %s, %s", op, old.s, v.s);
    txt raw = ing_gen_def(g, "bitcast <2 x float> %s to i64", sum.s);
    txt x = ing_gen_def(g,
                        "cmpxchg weak ptr %s, i64 %%pair%u.old, i64 %s monotonic "
                        "monotonic, align 8%s",
                        p.s, n, raw.s, md);
    ing_gen_put(g, "  %%pair%u.seen = extractvalue { i64, i1 } %s, 0\n", n, x.s);
    txt ok = ing_gen_def(g, "extractvalue { i64, i1 } %s, 1", x.s);
    ing_gen_put(g, "  br i1 %s, label %%pair%u.done, label %%pair%u\n", ok.s, n, n);
}

bool ing_gen_pair(ing_gen *g, uint32_t id) {
    uint32_t second = sums_floats(g, id) ? partner(g, id) : 0;
    const ing_ir_inst *i = ing_gen_inst(g, id), *j = ing_gen_inst(g, second);
    /* A value that is made between the two has no text yet. */
    if (!second || !g->vals[j->b].s[0]) return false;
    txt p = g->vals[i->a], a = g->vals[i->b], b = g->vals[j->b];
    const char *op = i->c == ING_IR_ATOMIC_ADD ? "fadd" : "fsub";
    const char *md = ing_gen_access(g, ING_GEN_ARRAY);
    uint32_t n = g->n_label++;
    txt v = both(g, a, b);
    txt q = ing_gen_def(g, "getelementptr inbounds float, ptr %s, i64 1", p.s);
    txt address = ing_gen_def(g, "ptrtoint ptr %s to i64", p.s);
    txt low = ing_gen_def(g, "and i64 %s, 7", address.s);
    txt odd = ing_gen_def(g, "icmp ne i64 %s, 0", low.s);
    ing_gen_put(g, "  br i1 %s, label %%pair%u.each, label %%pair%u.whole, !prof !%d\n",
                odd.s, n, n, ING_GEN_MD_UNLIKELY);
    ing_gen_put(g, "pair%u.whole:\n", n);
    put_whole(g, n, op, p, v, md);
    ing_gen_put(g, "pair%u.each:\n", n);
    ing_gen_def(g, "atomicrmw %s ptr %s, float %s monotonic, align 4%s", op, p.s, a.s,
                md);
    ing_gen_def(g, "atomicrmw %s ptr %s, float %s monotonic, align 4%s", op, q.s, b.s,
                md);
    ing_gen_put(g, "  br label %%pair%u.done\npair%u.done:\n", n, n);
    g->paired = second;
    return true;
}
