/* Turned loops as LLVM IR (src/pass/turn.c): a tile is copied so that its rows become columns. Called
 * by llvm_flow.c for a LOOP with ING_IR_TURNED, whose body is a loop, whose body is pure but for one
 * LOAD, of neighbours along the inner index, and one STORE, to neighbours along the outer one.
 *
 * Vectors of 16 bytes are loaded from W rows, W scalars being 32 bytes; two of them make a register,
 * and what is left happens within its halves, which every processor does at once:
 *
 *   a0 a1 a2 a3 | e0 e1 e2 e3       a0 c0 a1 c1 | e0 g0 e1 g1       a0 b0 c0 d0 | e0 f0 g0 h0
 *   b0 b1 b2 b3 | f0 f1 f2 f3   =>  b0 d0 b1 d1 | f0 h0 f1 h1   =>  a1 b1 c1 d1 | e1 f1 g1 h1
 *   c0 ...      | g0 ...            a2 c2 a3 c3 | ...               a2 ...
 *   d0 ...      | h0 ...            b2 d2 b3 d3 | ...               a3 ...                     */
#include "gen/gen_int.h"
#include "ir/access.h"

#include <stdio.h>

typedef ing_gen_txt txt;

enum { MOST = 8 }; /* scalars in a register */

typedef struct turn {
    uint32_t first, second; /* the loops */
    uint64_t n, m;          /* their trips */
    uint32_t width, half;   /* scalars of 32 bytes, of 16 */
    uint32_t size;
    txt type; /* of the scalars */
    const ing_ir_inst *load, *store;
} turn;

static bool find(const ing_gen *g, uint32_t id, turn *t) {
    const ing_ir_inst *l = ing_gen_inst(g, id);
    t->first = id;
    for (uint32_t k = 0; k < ing_ir_block_len(g->f, l->c); k++) {
        uint32_t at = ing_ir_block_ids(g->f, l->c)[k];
        if (ing_gen_inst(g, at)->op == ING_OP_LOOP) t->second = at;
    }
    if (!t->second || !ing_ir_trips(g->f, l->a, l->b, &t->n)) return false;
    l = ing_gen_inst(g, t->second);
    if (!ing_ir_trips(g->f, l->a, l->b, &t->m)) return false;
    for (uint32_t k = 0; k < ing_ir_block_len(g->f, l->c); k++) {
        const ing_ir_inst *i = ing_gen_inst(g, ing_ir_block_ids(g->f, l->c)[k]);
        if (i->op == ING_OP_LOAD) t->load = i;
        if (i->op == ING_OP_STORE) t->store = i;
    }
    if (!t->load || !t->store || t->load->type >= ING_DTYPE_N) return false;
    t->size = ing_ir_type_size(g->m, t->load->type);
    if (t->size != 4 && t->size != 8) return false;
    t->width = 32 / t->size;
    t->half = 16 / t->size;
    return t->n % t->width == 0 && t->m % t->half == 0;
}

/* The values of a block, for these indices; loads, stores and loops are not among them. */
static void put_values(ing_gen *g, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(g->f, block); k++) {
        uint32_t id = ing_ir_block_ids(g->f, block)[k];
        g->homes[id] = g->loop;
        if (ing_op_is_pure(ing_gen_inst(g, id)->op) && !ing_gen_value_op(g, id) &&
            !ing_gen_memory_op(g, id))
            ing_gen_fail(g, "operation without code");
    }
}

static txt address(ing_gen *g, const turn *t, uint32_t ref, uint64_t i, uint64_t j) {
    g->vals[t->first] = ing_gen_text("%llu", (unsigned long long)i);
    g->vals[t->second] = ing_gen_text("%llu", (unsigned long long)j);
    put_values(g, ing_gen_inst(g, t->first)->c);
    put_values(g, ing_gen_inst(g, t->second)->c);
    return g->vals[ref];
}

/* Items k, k + 1, ... of each half of a and b, by turns. */
static txt interleave(ing_gen *g, const turn *t, txt a, txt b, bool high) {
    char mask[16 * MOST];
    size_t n = 0;
    for (uint32_t k = 0; k < t->width; k++) {
        uint32_t part = k / t->half, within = k % t->half;
        uint32_t item = part * t->half + (high ? t->half / 2 : 0) + within / 2;
        n += (size_t)snprintf(mask + n, sizeof mask - n, "%si32 %u", k ? ", " : "",
                              item + (within % 2 ? t->width : 0));
    }
    return ing_gen_def(g, "shufflevector <%u x %s> %s, <%u x %s> %s, <%u x i32> <%s>",
                       t->width, t->type.s, a.s, t->width, t->type.s, b.s, t->width,
                       mask);
}

/* Scalars j .. j + half of rows p and q, side by side. */
static txt load_pair(ing_gen *g, const turn *t, txt p, txt q, uint64_t j) {
    txt v[2], at[2] = {p, q};
    char mask[16 * MOST];
    size_t n = 0;
    for (uint32_t k = 0; k < 2; k++) {
        txt a = ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %llu", at[k].s,
                            (unsigned long long)(j * t->size));
        v[k] = ing_gen_def(g, "load <%u x %s>, ptr %s, align %u", t->half, t->type.s,
                           a.s, t->size);
    }
    for (uint32_t k = 0; k < t->width; k++)
        n += (size_t)snprintf(mask + n, sizeof mask - n, "%si32 %u", k ? ", " : "", k);
    return ing_gen_def(g, "shufflevector <%u x %s> %s, <%u x %s> %s, <%u x i32> <%s>",
                       t->half, t->type.s, v[0].s, t->half, t->type.s, v[1].s, t->width,
                       mask);
}

/* Rows i .. i + width at columns j .. j + half: rows[] and columns[] are addresses. */
static void put_square(ing_gen *g, const turn *t, const txt *rows, const txt *columns,
                       uint64_t i, uint64_t j) {
    txt v[MOST / 2], w[MOST / 2];
    uint32_t h = t->half;
    for (uint32_t k = 0; k < h; k++)
        v[k] = load_pair(g, t, rows[i + k], rows[i + k + h], j);
    for (uint32_t step = h / 2; step; step /= 2) { /* distance of what is joined */
        for (uint32_t k = 0; k < h / 2; k++) {
            w[2 * k] = interleave(g, t, v[k], v[k + h / 2], false);
            w[2 * k + 1] = interleave(g, t, v[k], v[k + h / 2], true);
        }
        for (uint32_t k = 0; k < h; k++) v[k] = w[k];
    }
    for (uint32_t k = 0; k < h; k++) {
        txt a = ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %llu",
                            columns[j + k].s, (unsigned long long)(i * t->size));
        ing_gen_put(g, "  store <%u x %s> %s, ptr %s, align %u\n", t->width, t->type.s,
                    v[k].s, a.s, t->size);
    }
}

void ing_gen_turned(ing_gen *g, uint32_t id) {
    turn t = {0};
    if (!find(g, id, &t)) {
        ing_gen_fail(g, "a turned loop of another form");
        return;
    }
    t.type = ing_gen_type(g, t.load->type);
    txt *rows = ING_NEW_ARRAY(&g->arena, t.n + t.m, txt), *columns = rows + t.n;
    if (!rows) return;
    for (uint64_t i = 0; i < t.n; i++) rows[i] = address(g, &t, t.load->a, i, 0);
    for (uint64_t j = 0; j < t.m; j++) columns[j] = address(g, &t, t.store->a, 0, j);
    for (uint64_t i = 0; i < t.n; i += t.width)
        for (uint64_t j = 0; j < t.m; j += t.half)
            put_square(g, &t, rows, columns, i, j);
}
