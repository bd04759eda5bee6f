/* Forward code inside a backward function: what backward code needs (need.c), without effects
 * on arrays. Where backward code of the region follows (`record`), loops keep what their
 * iterations found (AD2), branches their values (AD1). */
#include "ad/ad_int.h"
#include "gen/abi.h"

#include <string.h>

uint32_t ing_ad_local(ing_ad_code *c, ing_type elem) {
    return ing_ir_emit(&c->b, ING_OP_ALLOCA, ing_ir_type_ref(c->m, elem), 0, 0, 0);
}

static ing_type elem_of(const ing_ad_code *c, uint32_t ref) {
    if (!ref || ref >= c->b.func->insts.len) return 0;
    return ing_ir_type(c->m, c->b.func->insts.at[ref].type)->elem;
}

uint32_t ing_ad_load(ing_ad_code *c, uint32_t ref) {
    return ing_ir_emit(&c->b, ING_OP_LOAD, elem_of(c, ref), ref, 0, 0);
}

void ing_ad_store(ing_ad_code *c, uint32_t ref, uint32_t value) {
    ing_ir_emit(&c->b, ING_OP_STORE, 0, ref, value, 0);
}

static uint32_t arith(ing_ad_code *c, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(&c->b, op, ING_I64, a, b, 0);
}

static uint32_t wide(ing_ad_code *c, uint32_t id) {
    if (!id || c->b.func->insts.at[id].type == ING_I64) return id;
    return ing_ir_emit(&c->b, ING_OP_CAST, ING_I64, id, 0, 0);
}

static uint32_t number(ing_ad_code *c, int64_t v) {
    return ing_ir_const_int(&c->b, ING_I64, v);
}

/* ---- stacks -------------------------------------------------------------------------------------- */

uint32_t ing_ad_trips(ing_ad_code *c, const ing_ir_inst *loop) {
    uint32_t begin = wide(c, c->copy.map[loop->a]), end = wide(c, c->copy.map[loop->b]);
    uint32_t n = arith(c, ING_OP_SUB, end, begin), zero = number(c, 0);
    uint32_t some = ing_ir_emit(&c->b, ING_OP_LT, ING_U1, begin, end, 0);
    return ing_ir_emit(&c->b, ING_OP_SELECT, ING_I64, some, n, zero);
}

/* Lays out the entries of a loop's stack as C would. */
uint32_t ing_ad_stride(const ing_ad_code *c, uint32_t loop) {
    uint64_t at = 0, most = 1;
    for (uint32_t k = 0; k < c->n->states.len; k++) {
        ing_ad_state *s = &c->n->states.at[k];
        if (s->loop != loop || !s->carried) continue;
        ing_type t = ing_ir_type(c->m, ing_ir_at(c->f, s->local)->type)->elem;
        uint64_t align = ing_ir_type_align(c->m, t);
        at = (at + align - 1) / align * align;
        s->offset = (uint32_t)at;
        at += ing_ir_type_size(c->m, t);
        if (align > most) most = align;
    }
    return (uint32_t)((at + most - 1) / most * most);
}

/* Whole words, so that the next stack may hold anything. */
uint32_t ing_ad_stack_bytes(ing_ad_code *c, uint32_t entries, uint32_t stride) {
    uint32_t all = arith(c, ING_OP_MUL, entries, number(c, stride));
    if (stride % 8 == 0) return all;
    uint32_t words = number(c, -8);
    return arith(c, ING_OP_AND, arith(c, ING_OP_ADD, all, number(c, 7)), words);
}

uint32_t ing_ad_entry(ing_ad_code *c, const ing_ad_state *s, uint32_t base,
                      uint32_t entry) {
    uint32_t stride = number(c, ing_ad_stride(c, s->loop));
    uint32_t at = arith(c, ING_OP_ADD, base, arith(c, ING_OP_MUL, entry, stride));
    at = arith(c, ING_OP_ADD, at, number(c, s->offset));
    return ing_ir_emit(&c->b, ING_OP_SCRATCH, ing_ir_at(c->f, s->local)->type, at, 0,
                       0);
}

/* What the locals hold goes into that entry of the loop's stack. */
static void push_all(ing_ad_code *c, uint32_t loop, uint32_t base, uint32_t entry) {
    for (uint32_t k = 0; k < c->n->states.len; k++) {
        const ing_ad_state *s = &c->n->states.at[k];
        if (s->loop != loop || !s->carried) continue;
        uint32_t v = ing_ad_load(c, c->copy.map[s->local]);
        ing_ad_store(c, ing_ad_entry(c, s, base, entry), v);
    }
}

/* ---- the end of all stacks --------------------------------------------------------------------------- */

bool ing_ad_in_branch(const ing_ad_fn *n, uint32_t id) {
    return n->parent[id] != n->region[id];
}

void ing_ad_set_top(ing_ad_code *c, uint32_t top) {
    if (c->in_local)
        ing_ad_store(c, c->top, top);
    else
        c->top = top;
}

uint32_t ing_ad_get_top(ing_ad_code *c) {
    return c->in_local ? ing_ad_load(c, c->top) : c->top;
}

/* Has a branch of the region a loop with a stack? */
static bool branches_have_stacks(const ing_ad_code *c, uint32_t region) {
    for (uint32_t k = 0; k < c->n->states.len; k++) {
        const ing_ad_state *s = &c->n->states.at[k];
        if (s->carried && c->n->region[s->loop] == region &&
            ing_ad_in_branch(c->n, s->loop))
            return true;
    }
    return false;
}

ing_ad_top ing_ad_open_top(ing_ad_code *c, uint32_t region) {
    ing_ad_top outer = {c->top, c->in_local};
    uint32_t top = ing_ad_get_top(c);
    c->in_local = branches_have_stacks(c, region);
    c->top = c->in_local ? ing_ad_local(c, ING_I64) : 0;
    ing_ad_set_top(c, top);
    return outer;
}

void ing_ad_close_top(ing_ad_code *c, ing_ad_top outer) {
    c->top = outer.top;
    c->in_local = outer.in_local;
}

/* ---- what a region keeps (AD1) ------------------------------------------------------------------------ */

uint32_t *ing_ad_snap_slot(ing_ad_code *c, uint32_t call, uint32_t param) {
    for (uint32_t k = 0; k < c->snaps.len; k++)
        if (c->snaps.at[k].call == call && c->snaps.at[k].param == param)
            return &c->snaps.at[k].slot;
    if (!ing_vec_push(&c->snaps, ((ing_ad_snap){call, param, 0}))) {
        c->m->arena.failed = true;
        return &c->lost;
    }
    return &c->snaps.at[c->snaps.len - 1].slot;
}

static void open_call(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    for (uint32_t k = 0; k < i->c; k++) {
        ing_type t = ing_ir_at(c->f, c->f->extra.at[i->b + k])->type;
        if (!ing_ad_is_ref(c->m, t)) continue;
        uint32_t local = ing_ad_local(c, ing_ir_type(c->m, t)->elem);
        *ing_ad_snap_slot(c, id, k) = local;
    }
}

static void open_loop(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    for (uint32_t k = 0; k < c->n->states.len; k++) {
        ing_ad_state *s = &c->n->states.at[k];
        if (s->loop == id && !s->carried)
            s->slot = ing_ad_local(
                c, ing_ir_type(c->m, ing_ir_at(c->f, s->local)->type)->elem);
    }
    if (ing_ad_stride(c, id) && ing_ad_in_branch(c->n, id))
        c->base[id] = ing_ad_local(c, ING_I64);
    if (i->op == ING_OP_WHILE) c->count[id] = ing_ad_local(c, ING_I64);
}

static void open_block(ing_ad_code *c, uint32_t block, bool branch) {
    for (uint32_t k = 0; k < ing_ir_block_len(c->f, block); k++) {
        uint32_t id = ing_ir_block_ids(c->f, block)[k];
        const ing_ir_inst *i = ing_ir_at(c->f, id);
        uint8_t mark = c->n->mark[id];
        if (branch && mark & ING_AD_KEPT && !ing_ad_is_remade(i) &&
            i->op != ING_OP_LOOP) /* whose index is known inside of it only */
            c->slot[id] = ing_ad_local(c, i->type);
        if (i->op == ING_OP_CALL && mark & ING_AD_SNAP) open_call(c, id);
        if (!(mark & ING_AD_LIVE)) {
            /* a branch without backward code may still make what others read */
            if (i->op != ING_OP_IF) continue;
        }
        if (i->op == ING_OP_LOOP || i->op == ING_OP_WHILE) open_loop(c, id);
        if (i->op != ING_OP_IF) continue;
        open_block(c, i->b, true);
        if (i->c) open_block(c, i->c, true);
    }
}

void ing_ad_open_region(ing_ad_code *c, uint32_t block) {
    open_block(c, block, false);
}

/* ---- loops ----------------------------------------------------------------------------------------------- */

static void put_block(ing_ad_code *c, uint32_t block, bool record, bool counted);

static void keep_state(ing_ad_code *c, uint32_t loop) {
    for (uint32_t k = 0; k < c->n->states.len; k++) {
        const ing_ad_state *s = &c->n->states.at[k];
        if (s->loop == loop && !s->carried)
            ing_ad_store(c, s->slot, ing_ad_load(c, c->copy.map[s->local]));
    }
}

/* qd.init(ad_stack_size=N): more entries are an error. */
static void limit_entries(ing_ad_code *c, uint32_t entries) {
    if (c->m->stack_entries <= 0) return;
    uint32_t most = number(c, c->m->stack_entries);
    uint32_t fits = ing_ir_emit(&c->b, ING_OP_LE, ING_U1, entries, most, 0);
    ing_ir_emit(&c->b, ING_OP_CHECK, 0, fits, ING_ABI_SCRATCH, 0);
}

/* Room for that many entries on top of the stacks; where they begin. */
static uint32_t open_stack(ing_ad_code *c, uint32_t id, uint32_t entries) {
    limit_entries(c, entries);
    uint32_t base = ing_ad_get_top(c);
    uint32_t bytes = ing_ad_stack_bytes(c, entries, ing_ad_stride(c, id));
    uint32_t end = arith(c, ING_OP_ADD, base, bytes);
    if (ing_ad_in_branch(c->n, id))
        ing_ad_store(c, c->base[id], base);
    else
        c->base[id] = base;
    ing_ir_emit(&c->b, ING_OP_ROOM, 0, end, !c->ad->sized, 0);
    ing_ad_set_top(c, end);
    return base;
}

uint32_t ing_ad_index(ing_ad_code *c, const ing_ir_inst *loop, uint32_t at) {
    if (loop->type != ING_I64)
        at = ing_ir_emit(&c->b, ING_OP_CAST, loop->type, at, 0, 0);
    return ing_ir_emit(&c->b, ING_OP_ADD, loop->type, c->copy.map[loop->a], at, 0);
}

void ing_ad_put_segment(ing_ad_code *c, uint32_t id, uint32_t base,
                        const ing_ad_segment *s, uint32_t trips, uint16_t flags) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t zero = number(c, 0);
    uint32_t loop = ing_ir_loop_reserve(&c->b, ING_I64);
    ing_ir_block_begin(&c->b);
    bool counted = i->op == ING_OP_LOOP;
    if (counted)
        c->copy.map[id] = ing_ad_index(c, i, arith(c, ING_OP_ADD, s->first, loop));
    push_all(c, id, base, loop);
    put_block(c, counted ? i->c : i->a, false, !counted);
    ing_ir_loop_finish(&c->b, loop, zero, trips, ing_ir_block_end(&c->b), flags);
}

/* A loop in segments (SEGMENT1). */
static void put_segments(ing_ad_code *c, uint32_t id) {
    uint32_t trips = ing_ad_trips(c, ing_ir_at(c->f, id));
    uint32_t base = open_stack(c, id, ing_ad_entries(c, id, trips));
    uint32_t all = ing_ad_segments(c, trips), zero = number(c, 0);
    uint32_t loop = ing_ir_loop_reserve(&c->b, ING_I64);
    ing_ir_block_begin(&c->b);
    ing_ad_segment s = ing_ad_segment_at(c, id, trips, loop);
    push_all(c, id, base, s.entry);
    ing_ad_put_segment(c, id, base, &s, s.trips, 0);
    ing_ir_loop_finish(&c->b, loop, zero, all, ing_ir_block_end(&c->b), ING_IR_FEW);
}

static void put_loop(ing_ad_code *c, uint32_t id, bool record) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    ing_ir_builder *b = &c->b;
    bool run = c->n->mark[id] & (record ? ING_AD_AGAIN : ING_AD_FIRST);
    record = record && c->n->mark[id] & ING_AD_LIVE;
    uint32_t stride = record ? ing_ad_stride(c, id) : 0, base = 0;
    if (record) keep_state(c, id);
    if (!run) return;
    if (stride && ing_ad_is_cut(c->ad, c->n, id)) {
        put_segments(c, id);
        return;
    }
    if (stride) base = open_stack(c, id, ing_ad_trips(c, i));
    uint32_t loop = ing_ir_loop_reserve(b, i->type);
    c->copy.map[id] = loop;
    ing_ir_block_begin(b);
    if (stride) {
        uint32_t begin = wide(c, c->copy.map[i->a]);
        push_all(c, id, base, arith(c, ING_OP_SUB, wide(c, loop), begin));
    }
    ing_ad_put_forward(c, i->c, false);
    ing_ir_loop_finish(b, loop, c->copy.map[i->a], c->copy.map[i->b],
                       ing_ir_block_end(b), i->flags);
}

/* Iteration `n` of a WHILE keeps what it found; `base`: where the stack begins. */
static void keep_iteration(ing_ad_code *c, uint32_t id, uint32_t base, uint32_t n) {
    uint32_t stride = ing_ad_stride(c, id);
    bool cut = ing_ad_is_cut(c->ad, c->n, id);
    ing_ad_place p = cut ? ing_ad_place_of(c, n) : (ing_ad_place){.entry = n};
    uint32_t on_top = n, zero = cut ? number(c, 0) : 0;
    uint32_t first = cut ? ing_ir_emit(&c->b, ING_OP_EQ, ING_U1, p.entry, zero, 0) : 0;
    if (cut) {
        ing_ir_block_begin(&c->b);
        on_top = ing_ad_segment_at(c, id, n, p.segment).entry;
    }
    uint32_t entries = arith(c, ING_OP_ADD, on_top, number(c, 1));
    limit_entries(c, entries);
    uint32_t bytes = arith(c, ING_OP_MUL, entries, number(c, stride));
    uint32_t end = arith(c, ING_OP_ADD, base, bytes);
    ing_ir_emit(&c->b, ING_OP_ROOM, 0, end, 1, 0);
    push_all(c, id, base, on_top);
    if (!cut) return;
    uint32_t then = ing_ir_block_end(&c->b);
    ing_ir_emit(&c->b, ING_OP_IF, 0, first, then, 0);
    push_all(c, id, base, p.entry);
}

static void put_while(ing_ad_code *c, uint32_t id, bool record) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    ing_ir_builder *b = &c->b;
    record = record && c->n->mark[id] & ING_AD_LIVE;
    uint32_t stride = record ? ing_ad_stride(c, id) : 0, base = 0;
    if (record) {
        keep_state(c, id);
        ing_ad_store(c, c->count[id], number(c, 0));
    }
    if (stride) base = open_stack(c, id, ing_ad_entries(c, id, number(c, 0)));
    ing_ir_block_begin(b);
    if (record) {
        uint32_t n = ing_ad_load(c, c->count[id]);
        uint32_t next = arith(c, ING_OP_ADD, n, number(c, 1));
        ing_ad_store(c, c->count[id], next);
        c->b.loc = i->loc;
        if (stride) keep_iteration(c, id, base, n);
    }
    ing_ad_put_forward(c, i->a, false);
    ing_ir_emit(b, ING_OP_WHILE, 0, ing_ir_block_end(b), 0, 0);
    if (!stride) return;
    uint32_t entries = ing_ad_entries(c, id, ing_ad_load(c, c->count[id]));
    uint32_t all = ing_ad_stack_bytes(c, entries, stride);
    ing_ad_set_top(c, arith(c, ING_OP_ADD, base, all));
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

static void keep_refs(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    const ing_ad_fn *to = c->ad->fns.at[c->n->callee[id] - 1];
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = c->f->extra.at[i->b + k], at = to->param_at[k];
        if (!ing_ad_is_ref(c->m, ing_ir_at(c->f, arg)->type)) continue;
        if (at && to->mark[at] & ING_AD_AGAIN)
            ing_ad_store(c, *ing_ad_snap_slot(c, id, k),
                         ing_ad_load(c, c->copy.map[arg]));
    }
}

/* An element of an array is given as a copy: forward code changes no arrays. */
static void put_call(ing_ad_code *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    uint32_t *args = ing_calloc(i->c + 1, sizeof *args);
    if (!args) {
        c->m->arena.failed = true;
        return;
    }
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = c->f->extra.at[i->b + k], v = c->copy.map[arg];
        ing_type t = ing_ir_at(c->f, arg)->type;
        uint32_t root = ing_ad_root(c->n, arg);
        args[k] = v;
        if (!ing_ad_is_ref(c->m, t) ||
            !ing_ad_is_array(c->m, ing_ir_at(c->f, root)->type))
            continue;
        args[k] = ing_ad_local(c, ing_ir_type(c->m, t)->elem);
        ing_ad_store(c, args[k], ing_ad_load(c, v));
    }
    uint32_t quiet = c->ad->quiet[i->a];
    if (quiet == UINT32_MAX) {
        c->ad->bad = "a func that reads what an atomic update found";
        c->ad->bad_loc = i->loc;
        c->m->arena.failed = true;
    } else {
        c->copy.map[id] = ing_ir_call(&c->b, quiet, args, i->c);
    }
    ing_free(args);
}

/* ---- blocks ----------------------------------------------------------------------------------------------- */

static uint32_t put_branch(ing_ad_code *c, uint32_t block, bool record) {
    ing_ir_block_begin(&c->b);
    ing_ad_put_forward(c, block, record);
    return ing_ir_block_end(&c->b);
}

static void put_inst(ing_ad_code *c, uint32_t id, bool record) {
    const ing_ir_inst *i = ing_ir_at(c->f, id);
    bool needed = c->n->mark[id] & (record ? ING_AD_AGAIN : ING_AD_FIRST);
    uint32_t then, other;
    c->b.loc = i->loc;
    if (record && i->op == ING_OP_CALL && c->n->mark[id] & ING_AD_SNAP)
        keep_refs(c, id);
    if (i->op == ING_OP_LOOP) {
        put_loop(c, id, record);
        return;
    }
    if (!needed && i->op != ING_OP_BREAK) return;
    switch (i->op) {
    case ING_OP_IF:
        then = put_branch(c, i->b, record);
        other = i->c ? put_branch(c, i->c, record) : 0;
        ing_ir_emit(&c->b, ING_OP_IF, 0, c->copy.map[i->a], then, other);
        break;
    case ING_OP_WHILE: put_while(c, id, record); break;
    case ING_OP_CALL: put_call(c, id); break;
    default: ing_ir_copy_inst(&c->copy, id); break;
    }
}

/* `counted`: the body of a WHILE, without its exit. */
static void put_block(ing_ad_code *c, uint32_t block, bool record, bool counted) {
    uint32_t n = ing_ir_block_len(c->f, block) - (counted ? 2 : 0);
    const uint32_t *ids = ing_ir_block_ids(c->f, block);
    for (uint32_t k = 0; k < n && ing_ir_ok(c->m); k++) {
        uint32_t id = ids[k];
        put_inst(c, id, record);
        if (record && c->slot[id] && c->n->mark[id] & ING_AD_KEPT)
            ing_ad_store(c, c->slot[id], c->copy.map[id]);
    }
}

void ing_ad_put_forward(ing_ad_code *c, uint32_t block, bool record) {
    uint32_t n = ing_ir_block_len(c->f, block);
    uint32_t loop = n ? c->n->parent[ing_ir_block_ids(c->f, block)[0]] : 0;
    bool exit = loop && ing_ir_at(c->f, loop)->op == ING_OP_WHILE;
    put_block(c, block, record, record && exit);
}

/* ---- funcs without effects ------------------------------------------------------------------------------------ */

static bool is_effect(const ing_ir_func *f, const ing_ir_inst *i) {
    bool writes =
        i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
    uint32_t elem = 0;
    if (writes) ing_ir_root(f, i->a, &elem);
    return i->op == ING_OP_PRINT || elem;
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    return is_effect(c->from, ing_ir_at(c->from, id));
}

/* The value that an update of an array found is not known to backward code: where a func reads
 * one, or calls a func that does. */
static bool find_unknown(const ing_ad *ad, const ing_ir_func *f, uint32_t *loc) {
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        ing_ir_uses u;
        *loc = i->loc;
        if (i->op == ING_OP_CALL && ad->quiet[i->a] == UINT32_MAX) return true;
        ing_ir_inst_uses(f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
            const ing_ir_inst *of =
                ing_ir_at(f, k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed]);
            *loc = of->loc;
            if (of->type && is_effect(f, of)) return true;
        }
    }
    return false;
}

static bool make_quiet(ing_ad *ad, uint32_t func) {
    ing_ir_mod *m = ad->m;
    const ing_ir_func *f = m->funcs.at[func];
    uint32_t made =
        ing_ir_add_func(m, ING_IR_FUNC, NULL, f->params, f->n_params, f->ret);
    uint32_t *map = ing_calloc(f->insts.len, sizeof *map);
    if (made && map) {
        m->funcs.at[made]->name = f->name;
        m->funcs.at[made]->tree = f->tree;
        ing_ir_builder b;
        ing_ir_builder_init(&b, m, made);
        ing_ir_copy c = {
            .b = &b, .from = f, .map = map, .func_map = ad->quiet, .hook = hook};
        ing_ir_copy_block(&c, f->body);
        ing_ir_builder_done(&b);
        ad->quiet[func] = made;
    }
    ing_free(map);
    return made && map;
}

ing_status ing_ad_find_quiet(ing_ad *ad, ing_err *e) {
    for (uint32_t k = 0; k < ad->n_funcs; k++) {
        uint32_t func = ad->order[k], loc;
        const ing_ir_func *f = ad->m->funcs.at[func];
        ad->quiet[func] = func;
        if (f->kind != ING_IR_FUNC || !ad->acts[func]) continue;
        if (find_unknown(ad, f, &loc))
            ad->quiet[func] = UINT32_MAX;
        else if (!make_quiet(ad, func))
            return ing_ad_no_memory(e);
    }
    return ING_OK;
}
