/* Splits the kernel function into tasks: what goes where. The rules stand in split.h;
 * split_emit.c writes the functions. One walk over the kernel from its end to its start
 * decides everything: when a segment is reached, all that later ones need is known. */
#include "pass/split.h"

#include <stdlib.h>

enum { MAX_REMADE = 16 }; /* instructions to make a value again rather than load it */

static const ing_ir_inst *at(const ing_split *s, uint32_t id) {
    return ing_ir_at(s->f, id);
}

bool ing_split_is_remade(const ing_split *s, uint32_t id) {
    uint8_t kind = ing_ir_type(s->m, at(s, id)->type)->kind;
    bool address = kind == ING_TYPE_REF || kind == ING_TYPE_ARRAY;
    return address || at(s, id)->op == ING_OP_AXES;
}

/* ---- segments -------------------------------------------------------------------------- */

static bool is_parallel(const ing_ir_inst *i) {
    return i->op == ING_OP_LOOP && (i->flags & ING_IR_PARALLEL);
}

static bool has_return(const ing_ir_func *f, const ing_ir_inst *i) {
    uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t *ids = ing_ir_block_ids(f, blocks[k]);
        for (uint32_t j = 0; j < ing_ir_block_len(f, blocks[k]); j++) {
            const ing_ir_inst *in = ing_ir_at(f, ids[j]);
            if (in->op == ING_OP_RETURN || has_return(f, in)) return true;
        }
    }
    return false;
}

/* What runs even if nobody uses a value of it. */
static bool has_effect(const ing_ir_inst *i) {
    uint8_t flags = ing_op_get(i->op)->flags;
    return i->op != ING_OP_RETURN &&
           (flags & (ING_OPF_W | ING_OPF_K | ING_OPF_C | ING_OPF_T));
}

/* How many instructions make the value again from arguments, extents and constants;
 * 0 = it cannot or should not be made again (SPLIT1). */
static uint32_t remake_cost(const ing_split *s, const ing_ir_inst *i) {
    ing_ir_uses u;
    uint32_t cost = 1;
    ing_op_class class = ing_op_class_of(i->op);
    bool slow = class == ING_OPC_ROOT || class == ING_OPC_MATH;
    if (!ing_op_is_pure(i->op) || slow) return 0;
    ing_ir_inst_uses(s->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t id = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        if (!s->val[id].cost) return 0;
        cost += s->val[id].cost;
        if (cost > MAX_REMADE) return 0;
    }
    return cost;
}

static void open_segment(ing_split *s, bool parallel, bool at_edge) {
    ing_split_seg g = {.first = s->ids.len,
                       .parallel = parallel,
                       .looped = s->loops != 0,
                       .stages = s->stages};
    uint32_t n = s->segs.len;
    const ing_split_seg *last = n ? &s->segs.at[n - 1] : NULL;
    if (at_edge)
        g.before = n;
    else if (last)
        g.before = !last->parallel && last->effect ? n - 1 : last->before;
    s->ok = s->ok && ing_vec_push(&s->segs, g);
}

static bool is_region(const ing_ir_inst *i) {
    return ing_op_class_of(i->op) == ING_OPC_REGION;
}

static void edge(ing_split *s, uint32_t id, bool end) {
    const ing_ir_inst *i = at(s, id);
    ing_split_edge x = {.seg = s->segs.len, .id = id, .end = end};
    if (i->op == ING_OP_DO_WHILE) s->loops += end ? -1u : 1u;
    if (i->op == ING_OP_CHECKPOINT && !end) s->stages++;
    s->ok = s->ok && ing_vec_push(&s->edges, x);
    open_segment(s, false, true);
}

static void cut_inst(ing_split *s, uint32_t id) {
    const ing_ir_inst *i = at(s, id);
    bool parallel = is_parallel(i);
    if (parallel) open_segment(s, true, false);
    if (!s->ok) return;
    uint32_t seg = s->segs.len - 1;
    ing_split_seg *g = &s->segs.at[seg];
    g->count++;
    g->effect |= has_effect(i);
    if (!parallel && has_return(s->f, i)) {
        g->returns = true;
        if (s->first_return == ING_SPLIT_NOWHERE) s->first_return = seg;
    }
    s->val[id].seg = seg + 1;
    s->val[id].pos = s->ids.len;
    s->val[id].cost = remake_cost(s, i);
    s->ok = ing_vec_push(&s->ids, id);
    if (parallel) open_segment(s, false, false);
}

/* Recurses over regions only (I7). */
static void cut(ing_split *s, uint32_t block) {
    const uint32_t *ids = ing_ir_block_ids(s->f, block);
    for (uint32_t k = 0; k < ing_ir_block_len(s->f, block) && s->ok; k++) {
        const ing_ir_inst *i = at(s, ids[k]);
        uint32_t inner[2];
        if (!is_region(i)) {
            cut_inst(s, ids[k]);
            continue;
        }
        ing_ir_inst_blocks(i, inner);
        edge(s, ids[k], false);
        cut(s, inner[0]);
        edge(s, ids[k], true);
    }
}

/* ---- uses across segments ---------------------------------------------------------------- */

static void need(ing_split *s, uint32_t id, uint32_t seg);

/* For a ref: what it is made of. A local whose address is taken is not hoisted. */
static void need_operands(ing_split *s, uint32_t id, uint32_t seg) {
    ing_ir_uses u;
    ing_ir_inst_uses(s->f, at(s, id), &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t part = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        need(s, part, seg);
        bool outside = s->ok && s->val[part].user == seg + 1;
        if (outside) s->uses.at[s->val[part].entry].hoist = false;
    }
}

/* Segment `seg` uses `id` of the outermost block. Refs need their operands in turn; that
 * recursion follows nested types only (ELEM, then MEMBERs), so it is short. */
static void need(ing_split *s, uint32_t id, uint32_t seg) {
    ing_split_value *v = &s->val[id];
    if (v->seg == seg + 1) {
        v->live = 1;
        return;
    }
    if (v->user == seg + 1) return;
    ing_split_use use = {.seg = seg, .id = id, .pos = v->pos};
    use.hoist = at(s, id)->op == ING_OP_ALLOCA &&
                ing_ir_type(s->m, at(s, id)->type)->elem < ING_DTYPE_N;
    bool kept = false;
    if (at(s, id)->op == ING_OP_ALLOCA) {
        v->crosses = 1;
        kept = true;
    } else if (!v->cost && ing_split_is_remade(s, id)) {
        need_operands(s, id, seg);
    } else if (!v->cost) {
        v->stored = v->live = 1;
        kept = true;
    }
    if (kept && s->segs.at[v->seg - 1].stages != s->segs.at[seg].stages) s->lost = id;
    v->user = seg + 1;
    v->entry = s->uses.len;
    s->ok = s->ok && ing_vec_push(&s->uses, use);
}

/* One use, by instruction `by`; a use other than a LOAD spoils SPLIT5. */
static void use_value(ing_split *s, uint32_t id, uint32_t by, uint32_t seg) {
    ing_split_value *v = &s->val[id];
    if (!v->seg || at(s, id)->op == ING_OP_LOOP) return; /* nested, or an index */
    need(s, id, seg);
    if (!s->ok || v->seg == seg + 1 || at(s, id)->op != ING_OP_ALLOCA) return;
    if (s->segs.at[seg].parallel && at(s, by)->op == ING_OP_LOAD) {
        ing_split_load l = {.seg = seg, .load = by, .local = id};
        s->ok = ing_vec_push(&s->loads, l);
    } else {
        s->uses.at[v->entry].hoist = false;
    }
}

static void use_all(ing_split *s, uint32_t id, uint32_t seg, bool own_operands) {
    const ing_ir_inst *i = at(s, id);
    ing_ir_uses u;
    uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
    ing_ir_inst_uses(s->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed && own_operands; k++) {
        use_value(s, u.fixed[k], id, seg);
    }
    for (uint32_t k = 0; k < u.n_list; k++) use_value(s, u.list[k], id, seg);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t *ids = ing_ir_block_ids(s->f, blocks[k]);
        for (uint32_t j = 0; j < ing_ir_block_len(s->f, blocks[k]); j++) {
            use_all(s, ids[j], seg, true);
        }
    }
}

/* ---- bounds ------------------------------------------------------------------------------ */

/* The segment that must compute value `id` for others, 0 when any can. */
static uint32_t definer(const ing_split *s, uint32_t id) {
    return s->val[id].cost ? 0 : s->val[id].seg - 1;
}

/* The serial segment that stores the bounds of loop segment `seg` (SPLIT3): it becomes a task
 * anyway, and comes no earlier than what defines the bounds. */
static uint32_t bound_home(const ing_split *s, uint32_t seg, const ing_ir_inst *loop) {
    uint32_t home = s->segs.at[seg].before;
    uint32_t a = definer(s, loop->a), b = definer(s, loop->b);
    if (a > home) home = a;
    return b > home ? b : home;
}

/* A bound that a launch can read by itself: a constant, the extent of an array, or an
 * integer argument. False: some task must compute it. */
static bool plain_bound(const ing_split *s, uint32_t id, ing_ir_bound *b) {
    const ing_ir_inst *i = at(s, id);
    uint64_t n;
    *b = (ing_ir_bound){0};
    if (i->op == ING_OP_AXES && ing_ir_places(s->f, i, &n)) {
        b->value = (int64_t)n;
        return true;
    }
    if (i->op == ING_OP_CONST) {
        b->value = (int64_t)ing_ir_const_bits(i);
        return true;
    }
    const ing_ir_inst *a = i->op == ING_OP_DIM ? at(s, i->a) : i;
    b->at = ING_IR_BOUND_WORD;
    const ing_place *field =
        i->op == ING_OP_DIM ? ing_ir_type(s->m, a->type)->place : NULL;
    if (field) {
        *b = (ing_ir_bound){.value = ing_place_extent(field, i->b)};
        return true;
    }
    if (i->op == ING_OP_DIM && a->op == ING_OP_ARRAY) {
        b->offset = s->m->args.at[a->a].word + 1 + i->b;
        return true;
    }
    /* A word holds an integer argument extended to 64 bits; u64 could read as negative. */
    if (i->op != ING_OP_ARG || !ing_dtype_is_int((ing_dtype)i->type) ||
        i->type == ING_U64)
        return false;
    b->offset = s->m->args.at[i->a].word;
    return true;
}

static void plan_bound(ing_split *s, uint32_t id, uint32_t home, bool in_buffer,
                       ing_ir_bound *b) {
    ing_split_value *v = &s->val[id];
    if (!in_buffer) return;
    *b = (ing_ir_bound){.at = ING_IR_BOUND_BUFFER};
    if (v->bound_seg != home + 1) {
        ing_split_bound store = {.seg = home, .id = id, .slot = (uint32_t)s->buffer};
        v->bound_seg = home + 1;
        v->bound_slot = store.slot;
        s->buffer += 8; /* bounds come first in the buffer, so they are aligned */
        need(s, id, home);
        s->ok = s->ok && ing_vec_push(&s->bounds, store);
    }
    b->offset = v->bound_slot;
    s->segs.at[home].needed = true;
}

static void plan_loop(ing_split *s, uint32_t seg, uint32_t id) {
    const ing_ir_inst *i = at(s, id);
    bool late = s->first_return < seg; /* SPLIT4 */
    bool a = !plain_bound(s, i->a, &s->segs.at[seg].begin) || late;
    bool b = !plain_bound(s, i->b, &s->segs.at[seg].end) || late;
    uint32_t home = a || b ? bound_home(s, seg, i) : 0;
    s->segs.at[seg].needed = true;
    plan_bound(s, i->a, home, a, &s->segs.at[seg].begin);
    plan_bound(s, i->b, home, b, &s->segs.at[seg].end);
    use_all(s, id, seg, false);
}

/* ---- the plan ------------------------------------------------------------------------------ */

static void plan(ing_split *s) {
    const uint32_t *ids = s->ids.at;
    for (uint32_t seg = s->segs.len; seg-- > 0 && s->ok;) {
        ing_split_seg *g = &s->segs.at[seg];
        for (uint32_t k = g->first + g->count; k-- > g->first && s->ok;) {
            ing_split_value *v = &s->val[ids[k]];
            if (g->parallel) {
                plan_loop(s, seg, ids[k]);
                continue;
            }
            v->live |= has_effect(at(s, ids[k]));
            bool zeroed = v->crosses && g->looped; /* SPLIT6 */
            g->needed |= has_effect(at(s, ids[k])) || v->stored || zeroed;
            if (v->live) use_all(s, ids[k], seg, true);
        }
    }
}

static uint32_t take(ing_split *s, uint32_t size, uint32_t align) {
    s->buffer = (s->buffer + align - 1) & ~(uint64_t)(align - 1);
    uint64_t slot = s->buffer;
    s->buffer += size;
    return slot > ING_IR_MAX_BUFFER ? ING_SPLIT_NOWHERE - 1 : (uint32_t)slot;
}

/* Slots in the order of the text, so that equal kernels get equal buffers. */
static void assign_slots(ing_split *s) {
    const uint32_t *ids = s->ids.at;
    uint32_t n = s->ids.len;
    if (s->first_return != ING_SPLIT_NOWHERE) s->done_slot = take(s, 4, 4);
    for (uint32_t k = 0; k < n; k++) {
        ing_split_value *v = &s->val[ids[k]];
        ing_type t = at(s, ids[k])->type;
        if (v->crosses) t = ing_ir_type(s->m, t)->elem;
        if (!v->crosses && !v->stored) continue;
        v->slot = take(s, ing_ir_type_size(s->m, t), ing_ir_type_align(s->m, t));
    }
}

/* The lists were made segment by segment from the last one on, bounds apart: group them. */
#define GROUP(list, first, n)                                    \
    do {                                                         \
        for (uint32_t k_ = 0; k_ < s->list.len; k_++) {          \
            ing_split_seg *g_ = &s->segs.at[s->list.at[k_].seg]; \
            if (!g_->n++) g_->first = k_;                        \
        }                                                        \
    } while (0)

static int by_seg_use(const void *a, const void *b) {
    const ing_split_use *x = a, *y = b;
    if (x->seg != y->seg) return x->seg < y->seg ? -1 : 1;
    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

static int by_seg_bound(const void *a, const void *b) {
    const ing_split_bound *x = a, *y = b;
    if (x->seg != y->seg) return x->seg < y->seg ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* In the order of the text, which makes the output depend on nothing else. */
static void group(ing_split *s) {
    if (s->uses.len) qsort(s->uses.at, s->uses.len, sizeof *s->uses.at, by_seg_use);
    if (s->bounds.len) {
        qsort(s->bounds.at, s->bounds.len, sizeof *s->bounds.at, by_seg_bound);
    }
    GROUP(uses, uses, n_uses);
    GROUP(loads, loads, n_loads);
    GROUP(bounds, bounds, n_bounds);
}

ing_status ing_pass_split(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    if (!m->funcs.len || m->funcs.at[0]->kind != ING_IR_KERNEL) return ING_OK;
    ing_split s = {.m = m, .f = m->funcs.at[0], .ok = true};
    s.first_return = ING_SPLIT_NOWHERE;
    s.val = ing_calloc(s.f->insts.len, sizeof *s.val);
    s.ok = s.val != NULL;
    for (uint32_t k = 0; s.ok && k < s.f->insts.len; k++) {
        s.val[k].slot = ING_SPLIT_NOWHERE;
    }
    if (s.ok) {
        open_segment(&s, false, true);
        cut(&s, s.f->body);
    }
    if (s.ok) plan(&s);
    if (s.ok) {
        assign_slots(&s);
        group(&s);
    }
    const ing_ir_inst *lost = s.ok && s.lost ? at(&s, s.lost) : NULL;
    if (lost) m->bad_loc = lost->loc;
    bool fits = s.buffer <= ING_IR_MAX_BUFFER;
    if (s.ok && fits && !lost) {
        m->buffer_bytes = (uint32_t)s.buffer;
        s.ok = ing_split_emit(&s);
    }
    ing_free(s.val);
    ing_vec_fini(&s.ids);
    ing_vec_fini(&s.edges);
    ing_vec_fini(&s.segs);
    ing_vec_fini(&s.uses);
    ing_vec_fini(&s.loads);
    ing_vec_fini(&s.bounds);
    if (lost)
        return ing_fail(e, ING_SYNTAX,
                        "this value is used after a checkpoint that follows it, and a "
                        "resume from there would skip its computation");
    if (!fits) {
        return ing_fail(e, ING_VALUE,
                        "the locals of this kernel take more than %d bytes",
                        ING_IR_MAX_BUFFER);
    }
    return s.ok ? ing_pass_done(m, e) : ing_fail(e, ING_MEMORY, "no memory for a pass");
}
