/* Writes the tasks that split.c planned: one function per needed segment, in order, and
 * the kernel's place goes to the first of them, so that numbers of other functions stay.
 * Copies only; decides nothing. */
#include "pass/split.h"

typedef struct emitter {
    ing_split *s;
    ing_ir_builder b;
    ing_ir_copy copy;
    uint32_t seg;
    ing_vec(uint32_t) made; /* values from other segments that this task has */
    uint32_t *local_of; /* per LOAD that is replaced by SPLIT5: its ALLOCA, else 0 */
} emitter;

static ing_split_value *value(emitter *x, uint32_t id) {
    return &x->s->val[id];
}

static uint32_t put_buffer(emitter *x, ing_type elem, uint32_t slot) {
    ing_type t = ing_ir_type_ref(x->s->m, elem);
    return ing_ir_emit(&x->b, ING_OP_BUFFER, t, slot, 0, 0);
}

static uint32_t put_load(emitter *x, ing_type t, uint32_t slot) {
    return ing_ir_emit(&x->b, ING_OP_LOAD, t, put_buffer(x, t, slot), 0, 0);
}

static void put_store(emitter *x, ing_type t, uint32_t slot, uint32_t id) {
    ing_ir_emit(&x->b, ING_OP_STORE, 0, put_buffer(x, t, slot), id, 0);
}

/* ---- values from other segments ---------------------------------------------------------- */

/* Depth: at most 16 instructions are made again (SPLIT1), and refs nest as types do. */
static void make(emitter *x, uint32_t id, bool hoist) {
    const ing_ir_inst *i = ing_ir_at(x->s->f, id);
    const ing_split_value *v = value(x, id);
    ing_ir_uses u;
    if (x->copy.map[id] || !ing_ir_ok(x->s->m)) return;
    if (!ing_vec_push(&x->made, id)) {
        x->s->m->arena.failed = true;
        return;
    }
    if (i->op == ING_OP_ALLOCA) {
        ing_type elem = ing_ir_type(x->s->m, i->type)->elem;
        x->copy.map[id] =
            hoist ? put_load(x, elem, v->slot) : put_buffer(x, elem, v->slot);
    } else if (!v->cost && !ing_split_is_remade(x->s, id)) {
        x->copy.map[id] = put_load(x, i->type, v->slot);
    } else {
        ing_ir_inst_uses(x->s->f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) make(x, u.fixed[k], false);
        for (uint32_t k = 0; k < u.n_list; k++) make(x, u.list[k], false);
        ing_ir_copy_inst(&x->copy, id);
    }
}

static void make_all(emitter *x) {
    const ing_split_seg *g = &x->s->segs.at[x->seg];
    for (uint32_t k = 0; k < g->n_uses; k++) {
        const ing_split_use *u = &x->s->uses.at[g->uses + k];
        make(x, u->id, u->hoist && g->parallel);
    }
}

/* Forgets what this task has, as the next one needs its own. Nested values are met once. */
static void unmake_all(emitter *x) {
    const ing_split_seg *g = &x->s->segs.at[x->seg];
    const uint32_t *ids = x->s->ids.at;
    for (uint32_t k = 0; k < g->count; k++) x->copy.map[ids[g->first + k]] = 0;
    for (uint32_t k = 0; k < x->made.len; k++) x->copy.map[x->made.at[k]] = 0;
    x->made.len = 0;
}

/* ---- serial segments ----------------------------------------------------------------------- */

/* An early RETURN leaves its mark (SPLIT4); LOADs of hoisted locals are the value (SPLIT5). */
static bool hook(ing_ir_copy *c, uint32_t id) {
    emitter *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (i->op == ING_OP_RETURN && x->s->first_return != ING_SPLIT_NOWHERE) {
        put_store(x, ING_I32, x->s->done_slot, ing_ir_const_int(&x->b, ING_I32, 1));
        return false;
    }
    if (i->op != ING_OP_LOAD || !x->local_of[id]) return false;
    c->map[id] = c->map[x->local_of[id]];
    return true;
}

static void put_guard(emitter *x) {
    uint32_t done = put_load(x, ING_I32, x->s->done_slot);
    uint32_t zero = ing_ir_const_int(&x->b, ING_I32, 0);
    uint32_t cond = ing_ir_emit(&x->b, ING_OP_NE, 0, done, zero, 0);
    ing_ir_block_begin(&x->b);
    ing_ir_emit(&x->b, ING_OP_RETURN, 0, 0, 0, 0);
    uint32_t block = ing_ir_block_end(&x->b);
    ing_ir_emit(&x->b, ING_OP_IF, 0, cond, block, 0);
}

/* The zero of a type; recursion follows nested types. */
static uint32_t put_zero(emitter *x, ing_type t) {
    ing_ir_mod *m = x->s->m;
    if (t < ING_DTYPE_N) {
        return ing_dtype_is_float((ing_dtype)t)
                   ? ing_ir_const_float(&x->b, (ing_dtype)t, 0)
                   : ing_ir_const_int(&x->b, (ing_dtype)t, 0);
    }
    const ing_type_info *i = ing_ir_type(m, t);
    bool tensor = i->kind == ING_TYPE_TENSOR;
    uint32_t n = tensor ? i->rows * (i->rank == 2 ? i->cols : 1) : i->n_members;
    uint32_t *zeros = ing_calloc(n + 1, sizeof *zeros);
    if (!zeros) {
        m->arena.failed = true;
        return 0;
    }
    for (uint32_t k = 0; k < n; k++)
        zeros[k] =
            tensor && k ? zeros[0] : put_zero(x, tensor ? i->dtype : i->members[k]);
    uint32_t id = ing_ir_make(&x->b, t, zeros, n);
    ing_free(zeros);
    return id;
}

static void emit_own(emitter *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->s->f, id);
    const ing_split_value *v = value(x, id);
    if (v->crosses && x->s->segs.at[x->seg].looped) { /* SPLIT6 */
        ing_type elem = ing_ir_type(x->s->m, i->type)->elem;
        put_store(x, elem, v->slot, put_zero(x, elem));
    }
    if (!v->live || i->op == ING_OP_RETURN) return;
    if (v->crosses) {
        make(x, id, false);
        return;
    }
    ing_ir_copy_inst(&x->copy, id);
    if (v->stored) put_store(x, i->type, v->slot, x->copy.map[id]);
}

static void emit_bounds(emitter *x) {
    const ing_split_seg *g = &x->s->segs.at[x->seg];
    for (uint32_t k = 0; k < g->n_bounds; k++) {
        const ing_split_bound *b = &x->s->bounds.at[g->bounds + k];
        uint32_t id = x->copy.map[b->id];
        if (ing_ir_at(x->s->f, b->id)->type != ING_I64) {
            id = ing_ir_emit(&x->b, ING_OP_CAST, ING_I64, id, 0, 0);
        }
        put_store(x, ING_I64, b->slot, id);
    }
}

static void emit_serial(emitter *x) {
    const ing_split_seg *g = &x->s->segs.at[x->seg];
    const uint32_t *ids = x->s->ids.at;
    if (x->s->first_return < x->seg) put_guard(x);
    make_all(x);
    for (uint32_t k = 0; k < g->count; k++) emit_own(x, ids[g->first + k]);
    emit_bounds(x);
}

/* ---- parallel loops -------------------------------------------------------------------------- */

static void emit_range(emitter *x) {
    const ing_split_seg *g = &x->s->segs.at[x->seg];
    uint32_t id = x->s->ids.at[g->first];
    const ing_ir_inst *i = ing_ir_at(x->s->f, id);
    for (uint32_t k = 0; k < g->n_uses; k++) {
        const ing_split_use *u = &x->s->uses.at[g->uses + k];
        if (u->hoist) value(x, u->id)->hoisted = x->seg + 1;
    }
    for (uint32_t k = 0; k < g->n_loads; k++) {
        const ing_split_load *l = &x->s->loads.at[g->loads + k];
        bool hoist = value(x, l->local)->hoisted == x->seg + 1;
        x->local_of[l->load] = hoist ? l->local : 0;
    }
    make_all(x);
    uint32_t begin = ing_ir_emit(&x->b, ING_OP_TASK_BEGIN, i->type, 0, 0, 0);
    uint32_t end = ing_ir_emit(&x->b, ING_OP_TASK_END, i->type, 0, 0, 0);
    x->b.loc = i->loc;
    uint32_t loop = ing_ir_loop_reserve(&x->b, i->type);
    x->copy.map[id] = loop;
    ing_ir_block_begin(&x->b);
    ing_ir_copy_block(&x->copy, i->c);
    uint32_t body = ing_ir_block_end(&x->b);
    ing_ir_loop_finish(&x->b, loop, begin, end, body, i->flags);
    x->b.loc = 0;
}

/* ---- all ----------------------------------------------------------------------------------- */

static uint32_t task_loc(const emitter *x) {
    const ing_split_seg *g = &x->s->segs.at[x->seg];
    uint32_t loc = 0;
    for (uint32_t k = 0; k < g->count && !loc; k++)
        loc = ing_ir_at(x->s->f, x->s->ids.at[g->first + k])->loc;
    return loc;
}

static bool emit_task(emitter *x, const char *name) {
    ing_ir_mod *m = x->s->m;
    const ing_split_seg *g = &x->s->segs.at[x->seg];
    ing_ir_task t = {.kind = g->parallel ? ING_IR_TASK_RANGE : ING_IR_TASK_SERIAL};
    t.func = ing_ir_add_func(m, ING_IR_TASK, name, NULL, 0, 0);
    t.begin = g->begin;
    t.end = g->end;
    t.loc = task_loc(x);
    if (!ing_ir_ok(m)) return false;
    m->funcs.at[t.func]->tree = x->s->f->tree;
    ing_ir_builder_init(&x->b, m, t.func);
    if (g->parallel) {
        emit_range(x);
    } else {
        emit_serial(x);
    }
    ing_ir_builder_done(&x->b);
    unmake_all(x);
    return ing_ir_ok(m) && ing_vec_push(&m->tasks, t);
}

/* The first task takes the kernel's number, the others move up. A kernel that does nothing
 * leaves an empty function that no task runs. */
static void replace_kernel(ing_ir_mod *m, uint32_t first_new) {
    ing_ir_func *kernel = m->funcs.at[0];
    ing_vec_fini(&kernel->insts);
    ing_vec_fini(&kernel->extra);
    m->funcs.at[0] = m->funcs.at[first_new];
    for (uint32_t k = first_new; k + 1 < m->funcs.len; k++) {
        m->funcs.at[k] = m->funcs.at[k + 1];
    }
    m->funcs.len--;
    for (uint32_t k = 0; k < m->tasks.len; k++) {
        m->tasks.at[k].func = k == 0 ? 0 : m->tasks.at[k].func - 1;
    }
}

/* ---- steps of a graph kernel --------------------------------------------------------------- */

static uint32_t flag_word(const ing_split *s, uint32_t array) {
    return s->m->args.at[ing_ir_at(s->f, array)->a].word;
}

static bool put_step(ing_split *s, ing_ir_step_kind kind, uint32_t at, uint32_t word) {
    ing_ir_step step = {.kind = (uint8_t)kind, .at = at, .word = word};
    return ing_vec_push(&s->m->steps, step);
}

/* `open`: the steps of the regions around, innermost last. */
typedef ing_vec(uint32_t) step_list;

static bool begin_region(ing_split *s, const ing_ir_inst *i, step_list *open) {
    uint32_t n = s->m->steps.len;
    switch (i->op) {
    case ING_OP_DO_WHILE:
        return ing_vec_push(open, n) && put_step(s, ING_IR_STEP_LOOP, 0, 0);
    case ING_OP_CHECKPOINT: return put_step(s, ING_IR_STEP_STAGE, i->b, 0);
    case ING_OP_FORK:
        return ing_vec_push(open, n) && put_step(s, ING_IR_STEP_FORK, 0, 0);
    default: return ing_vec_push(open, n) && put_step(s, ING_IR_STEP_SECTION, 0, 0);
    }
}

/* A section goes on to the next step, whatever that will be. */
static bool end_region(ing_split *s, const ing_ir_inst *i, step_list *open) {
    uint32_t n = s->m->steps.len;
    if (i->op == ING_OP_CHECKPOINT)
        return put_step(s, ING_IR_STEP_STAGE_END, i->b, flag_word(s, i->a));
    uint32_t first = open->at[--open->len];
    s->m->steps.at[first].at = n;
    if (i->op == ING_OP_DO_WHILE)
        return put_step(s, ING_IR_STEP_LOOP_END, first, flag_word(s, i->a));
    return i->op != ING_OP_FORK || put_step(s, ING_IR_STEP_JOIN, first, 0);
}

/* The edges before segment `seg`, from edge *next on. */
static bool emit_edges(ing_split *s, uint32_t seg, uint32_t *next, step_list *open) {
    for (; *next < s->edges.len && s->edges.at[*next].seg == seg; ++*next) {
        const ing_split_edge *x = &s->edges.at[*next];
        const ing_ir_inst *i = ing_ir_at(s->f, x->id);
        if (!(x->end ? end_region(s, i, open) : begin_region(s, i, open))) return false;
    }
    return true;
}

bool ing_split_emit(ing_split *s) {
    emitter x = {.s = s};
    uint32_t first_new = s->m->funcs.len;
    const char *name = ing_atoms_text(&s->m->atoms, s->f->name);
    uint32_t *map = ing_calloc(s->f->insts.len, sizeof *map);
    x.local_of = ing_calloc(s->f->insts.len, sizeof *x.local_of);
    bool ok = map && x.local_of;
    x.copy =
        (ing_ir_copy){.b = &x.b, .from = s->f, .map = map, .hook = hook, .self = &x};
    step_list open = {0};
    uint32_t edge = 0;
    for (x.seg = 0; x.seg < s->segs.len && ok; x.seg++) {
        ok = emit_edges(s, x.seg, &edge, &open);
        if (!ok || !s->segs.at[x.seg].needed) continue;
        ok = emit_task(&x, name);
        if (ok && s->edges.len)
            ok = put_step(s, ING_IR_STEP_TASK, s->m->tasks.len - 1, 0);
    }
    ing_vec_fini(&open);
    if (ok && !s->m->tasks.len) {
        ing_ir_add_func(s->m, ING_IR_TASK, name, NULL, 0, 0);
        ok = ing_ir_ok(s->m);
    }
    if (ok) replace_kernel(s->m, first_new);
    ing_vec_fini(&x.made);
    ing_free(map);
    ing_free(x.local_of);
    return ok;
}
