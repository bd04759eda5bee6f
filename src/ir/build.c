/* Building functions: instructions, blocks, and the copying of both. Called by the front
 * end, the parser and the passes. It checks nothing but its own bounds: the verifier does;
 * lost memory is sticky in the module (I1). */
#include "ir/ir_int.h"

#include <string.h>

uint32_t ing_ir_add_arg(ing_ir_mod *m, ing_type t) {
    ing_ir_arg a = {.type = t, .word = m->n_words};
    if (!ing_vec_push(&m->args, a)) {
        m->arena.failed = true;
        return 0;
    }
    m->n_words += ing_ir_type_words(m, t);
    return m->args.len - 1;
}

uint32_t ing_ir_add_arg_with(ing_ir_mod *m, ing_type t, uint32_t with) {
    if (with >= m->args.len) return ing_ir_add_arg(m, t);
    ing_ir_arg a = {.type = t, .word = m->args.at[with].word};
    if (!ing_vec_push(&m->args, a)) m->arena.failed = true;
    return m->args.len ? m->args.len - 1 : 0;
}

/* Words rise from argument to argument but where one is shared. */
uint32_t ing_ir_arg_first(const ing_ir_mod *m, uint32_t k) {
    uint32_t low = 0, word = m->args.at[k].word;
    if (!ing_ir_type(m, m->args.at[k].type)->place) return k;
    while (m->args.at[low].word != word) low++;
    return low;
}

/* The field that argument k names, by the first of its names. */
static uint32_t same_field(const ing_ir_mod *m, const uint32_t *block, uint32_t k) {
    for (uint32_t j = block[k]; j < k; j++)
        if (block[j] == block[k] && m->args.at[j].type == m->args.at[k].type) return j;
    return k;
}

void ing_ir_share_words(ing_ir_mod *m, const uint32_t *block) {
    uint32_t *name = ing_calloc((size_t)m->args.len + 1, sizeof *name);
    if (!name) m->arena.failed = true;
    m->n_words = 0;
    for (uint32_t k = 0; name && k < m->args.len; k++) {
        ing_ir_arg *a = &m->args.at[k];
        name[k] = same_field(m, block, k);
        a->word = block[k] < k ? m->args.at[block[k]].word : m->n_words;
        if (block[k] == k) m->n_words += ing_ir_type_words(m, a->type);
    }
    for (uint32_t f = 0; name && f < m->funcs.len; f++)
        for (uint32_t i = 1; i < m->funcs.at[f]->insts.len; i++) {
            ing_ir_inst *s = &m->funcs.at[f]->insts.at[i];
            if (s->op == ING_OP_ARRAY && s->a < m->args.len) s->a = name[s->a];
        }
    ing_free(name);
}

uint32_t ing_ir_add_func(ing_ir_mod *m, ing_ir_func_kind kind, const char *name,
                         const ing_type *params, uint32_t n_params, ing_type ret) {
    ing_ir_func *f = ING_NEW(&m->arena, ing_ir_func);
    ing_type *copy = ING_NEW_ARRAY(&m->arena, n_params ? n_params : 1, ing_type);
    if (!f || !copy) return 0;
    if (n_params) memcpy(copy, params, n_params * sizeof *copy);
    f->name = ing_ir_atom(m, name ? name : "", name ? strlen(name) : 0);
    f->kind = (uint8_t)kind;
    f->ret = ret;
    f->n_params = n_params;
    f->params = copy;
    bool ok = ing_vec_push(&f->insts, (ing_ir_inst){0});
    /* extra[0] is unused and also an empty block, so that an unbuilt function has one */
    ok = ok && ing_vec_push(&f->extra, 0u);
    if (!ok || !ing_vec_push(&m->funcs, f)) {
        ing_vec_fini(&f->insts);
        ing_vec_fini(&f->extra);
        m->arena.failed = true;
        return 0;
    }
    return m->funcs.len - 1;
}

/* ---- instructions ---------------------------------------------------------------- */

static uint32_t fail(ing_ir_builder *b) {
    b->mod->arena.failed = true;
    return 0;
}

static bool usable(const ing_ir_builder *b) {
    return b->func && !b->mod->arena.failed;
}

static ing_type result_type(const ing_ir_builder *b, ing_op op, ing_type t,
                            uint32_t a) {
    switch (ing_op_get(op)->result) {
    case 'a': return a < b->func->insts.len ? b->func->insts.at[a].type : 0;
    case '1': return ING_U1;
    case '0': return 0;
    default: return t;
    }
}

static bool ends(const ing_ir_builder *b, uint32_t id) {
    return ing_op_get(b->func->insts.at[id].op)->flags & ING_OPF_T;
}

static void append(ing_ir_builder *b, uint32_t id) {
    if (ing_ir_block_ended(b)) return;
    if (!ing_vec_push(&b->open, id)) fail(b);
}

uint32_t ing_ir_emit(ing_ir_builder *b, ing_op op, ing_type t, uint32_t a, uint32_t b_,
                     uint32_t c) {
    if (!usable(b)) return 0;
    ing_ir_inst i = {.op = (uint16_t)op, .a = a, .b = b_, .c = c, .loc = b->loc};
    i.type = result_type(b, op, t, a);
    uint32_t id = b->func->insts.len;
    if (!ing_vec_push(&b->func->insts, i)) return fail(b);
    append(b, id);
    return id;
}

uint32_t ing_ir_emit_count(ing_ir_builder *b, ing_op op, ing_type t, uint32_t a,
                           uint32_t b_) {
    uint32_t id = ing_ir_emit(b, op, t, a, b_, 0);
    bool counts = op == ING_OP_ADD || op == ING_OP_SUB || op == ING_OP_MUL;
    if (id && counts) b->func->insts.at[id].flags |= ING_IR_NSW;
    return id;
}

uint32_t ing_ir_emit_above(ing_ir_builder *b, ing_op op, ing_type t, uint32_t a,
                           uint32_t b_, uint32_t c) {
    if (!usable(b)) return 0;
    if (b->starts.len < 2) return fail(b);
    uint32_t *start = &b->starts.at[b->starts.len - 1], outer = start[-1];
    uint32_t inner = b->open.len - *start, id = b->func->insts.len;
    ing_ir_inst i = {.op = (uint16_t)op, .a = a, .b = b_, .c = c, .loc = b->loc};
    i.type = result_type(b, op, t, a);
    if (!ing_vec_push(&b->func->insts, i)) return fail(b);
    if (*start > outer && ends(b, b->open.at[*start - 1])) return id; /* unreachable */
    if (!ing_vec_push(&b->open, id)) return fail(b);
    memmove(b->open.at + *start + 1, b->open.at + *start, inner * sizeof *b->open.at);
    b->open.at[(*start)++] = id;
    return id;
}

static uint32_t emit_const(ing_ir_builder *b, ing_dtype t, uint64_t bits) {
    bits = ing_ir_norm(t, bits);
    return ing_ir_emit(b, ING_OP_CONST, t, (uint32_t)bits, (uint32_t)(bits >> 32), 0);
}

uint32_t ing_ir_const_int(ing_ir_builder *b, ing_dtype t, int64_t v) {
    if (ing_dtype_is_float(t)) {
        return emit_const(b, t, ing_ir_eval_cast(ING_I64, t, (uint64_t)v));
    }
    return emit_const(b, t, (uint64_t)v);
}

uint32_t ing_ir_const_float(ing_ir_builder *b, ing_dtype t, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return emit_const(b, t, ing_ir_eval_cast(ING_F64, t, bits));
}

uint32_t ing_ir_put_list(ing_ir_builder *b, const uint32_t *ids, uint32_t n) {
    if (!n || !usable(b)) return 0;
    uint32_t at = b->func->extra.len;
    if (at > UINT32_MAX - 1 - n || !ing_vec_reserve(&b->func->extra, at + n)) {
        return fail(b);
    }
    memcpy(b->func->extra.at + at, ids, n * sizeof *ids);
    b->func->extra.len += n;
    return at;
}

uint32_t ing_ir_elem(ing_ir_builder *b, uint32_t array, const uint32_t *idx,
                     uint32_t n) {
    if (!usable(b) || array >= b->func->insts.len) return fail(b);
    const ing_type_info *i = ing_ir_type(b->mod, b->func->insts.at[array].type);
    ing_type t = ing_ir_type_ref(b->mod, i->elem);
    return ing_ir_emit(b, ING_OP_ELEM, t, array, ing_ir_put_list(b, idx, n), n);
}

uint32_t ing_ir_call(ing_ir_builder *b, uint32_t func, const uint32_t *args,
                     uint32_t n) {
    if (!usable(b) || func >= b->mod->funcs.len) return fail(b);
    ing_type t = b->mod->funcs.at[func]->ret;
    return ing_ir_emit(b, ING_OP_CALL, t, func, ing_ir_put_list(b, args, n), n);
}

void ing_ir_emit_list(ing_ir_builder *b, ing_op op, uint32_t a, const uint32_t *ids,
                      uint32_t n) {
    ing_ir_emit(b, op, 0, a, ing_ir_put_list(b, ids, n), n);
}

uint32_t ing_ir_make(ing_ir_builder *b, ing_type t, const uint32_t *items, uint32_t n) {
    return ing_ir_emit(b, ING_OP_MAKE, t, 0, ing_ir_put_list(b, items, n), n);
}

uint32_t ing_ir_axes(ing_ir_builder *b, const uint32_t *bounds, uint32_t n) {
    return ing_ir_emit(b, ING_OP_AXES, ING_I64, 0, ing_ir_put_list(b, bounds, 2 * n),
                       2 * n);
}

/* ---- blocks ---------------------------------------------------------------------- */

void ing_ir_builder_init(ing_ir_builder *b, ing_ir_mod *m, uint32_t func) {
    *b = (ing_ir_builder){.mod = m};
    if (func >= m->funcs.len) {
        m->arena.failed = true;
        return;
    }
    b->func = m->funcs.at[func];
    ing_ir_block_begin(b);
}

void ing_ir_builder_done(ing_ir_builder *b) {
    if (b->func) b->func->body = ing_ir_block_end(b);
    ing_vec_fini(&b->open);
    ing_vec_fini(&b->starts);
}

void ing_ir_block_begin(ing_ir_builder *b) {
    if (!ing_vec_push(&b->starts, b->open.len)) fail(b);
}

uint32_t ing_ir_block_end(ing_ir_builder *b) {
    if (!b->starts.len) return fail(b);
    uint32_t start = b->starts.at[--b->starts.len];
    uint32_t n = b->open.len - start;
    b->open.len = start;
    if (!usable(b)) return 0;
    uint32_t at = b->func->extra.len;
    if (!ing_vec_push(&b->func->extra, n)) return fail(b);
    /* the ids of the closed block still stand in `open`, behind its length */
    ing_ir_put_list(b, b->open.at + start, n);
    return usable(b) ? at : 0;
}

void ing_ir_rebuild_begin(ing_ir_builder *b, ing_ir_mod *m, uint32_t func,
                          ing_ir_func *old) {
    ing_ir_func *f = m->funcs.at[func];
    *old = *f;
    memset(&f->insts, 0, sizeof f->insts);
    memset(&f->extra, 0, sizeof f->extra);
    f->body = 0;
    bool ok = ing_vec_push(&f->insts, (ing_ir_inst){0});
    if (!ok || !ing_vec_push(&f->extra, 0u)) m->arena.failed = true;
    ing_ir_builder_init(b, m, func);
}

void ing_ir_rebuild_end(ing_ir_builder *b, ing_ir_func *old) {
    ing_ir_builder_done(b);
    ing_vec_fini(&old->insts);
    ing_vec_fini(&old->extra);
}

bool ing_ir_block_ended(const ing_ir_builder *b) {
    if (!usable(b) || !b->starts.len) return false;
    uint32_t n = b->open.len;
    return n > b->starts.at[b->starts.len - 1] && ends(b, b->open.at[n - 1]);
}

uint32_t ing_ir_loop_reserve(ing_ir_builder *b, ing_type index) {
    if (!usable(b)) return 0;
    ing_ir_inst i = {.op = ING_OP_LOOP, .type = index, .loc = b->loc};
    uint32_t id = b->func->insts.len;
    return ing_vec_push(&b->func->insts, i) ? id : fail(b);
}

void ing_ir_loop_finish(ing_ir_builder *b, uint32_t loop, uint32_t begin, uint32_t end,
                        uint32_t body, uint16_t flags) {
    if (!usable(b) || !loop || loop >= b->func->insts.len) return;
    ing_ir_inst *i = &b->func->insts.at[loop];
    i->a = begin;
    i->b = end;
    i->c = body;
    i->flags = flags;
    append(b, loop);
}

/* ---- reading --------------------------------------------------------------------- */

void ing_ir_inst_uses(const ing_ir_func *f, const ing_ir_inst *i, ing_ir_uses *u) {
    const char *o = ing_op_get(i->op)->operands;
    const uint32_t field[3] = {i->a, i->b, i->c};
    *u = (ing_ir_uses){0};
    for (uint32_t k = 0; k < 3 && o[k]; k++) {
        if (o[k] == 'v' && field[k]) u->fixed[u->n_fixed++] = field[k];
        if (o[k] == 'x') {
            u->list = f->extra.at + i->b;
            u->n_list = i->c;
        }
    }
}

uint32_t ing_ir_inst_blocks(const ing_ir_inst *i, uint32_t out[2]) {
    switch (i->op) {
    case ING_OP_IF:
        out[0] = i->b;
        out[1] = i->c;
        return i->c ? 2 : 1;
    case ING_OP_LOOP: out[0] = i->c; return 1;
    case ING_OP_WHILE:
    case ING_OP_FORK:
    case ING_OP_SECTION: out[0] = i->a; return 1;
    case ING_OP_DO_WHILE: out[0] = i->b; return 1;
    case ING_OP_CHECKPOINT: out[0] = i->c; return 1;
    default: return 0;
    }
}

/* ---- copying --------------------------------------------------------------------- */

static uint32_t copy_region(ing_ir_copy *c, uint32_t block) {
    ing_ir_block_begin(c->b);
    ing_ir_copy_block(c, block);
    return ing_ir_block_end(c->b);
}

static void copy_loop(ing_ir_copy *c, uint32_t id, ing_type t) {
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    uint32_t loop = ing_ir_loop_reserve(c->b, t);
    c->map[id] = loop;
    uint32_t body = copy_region(c, i->c);
    ing_ir_loop_finish(c->b, loop, c->map[i->a], c->map[i->b], body, i->flags);
}

/* Operands by their letters; lists are mapped in place after they were copied. */
static void copy_plain(ing_ir_copy *c, uint32_t id, ing_type t) {
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    const char *o = ing_op_get(i->op)->operands;
    uint32_t field[3] = {i->a, i->b, i->c};
    for (uint32_t k = 0; k < 3 && o[k]; k++) {
        if (o[k] == 'v') field[k] = c->map[field[k]];
        if (o[k] == 'b' && field[k]) field[k] = copy_region(c, field[k]);
        if (o[k] == 'x') {
            field[1] = ing_ir_put_list(c->b, c->from->extra.at + i->b, i->c);
            if (!usable(c->b)) return;
            for (uint32_t j = 0; j < i->c; j++) {
                uint32_t *item = &c->b->func->extra.at[field[1] + j];
                *item = c->map[*item];
            }
        }
    }
    if (i->op == ING_OP_CALL && c->func_map) field[0] = c->func_map[i->a];
    uint32_t n = ing_ir_emit(c->b, i->op, t, field[0], field[1], field[2]);
    if (n) c->b->func->insts.at[n].flags = i->flags;
    c->map[id] = n;
}

void ing_ir_copy_inst(ing_ir_copy *c, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (!usable(c->b) || (c->live && !c->live[id])) return;
    if (c->hook && c->hook(c, id)) return;
    ing_type t = c->type_map ? c->type_map[i->type] : i->type;
    uint32_t loc = c->b->loc;
    c->b->loc = i->loc;
    if (i->op == ING_OP_LOOP) {
        copy_loop(c, id, t);
    } else {
        copy_plain(c, id, t);
    }
    c->b->loc = loc;
}

void ing_ir_copy_block(ing_ir_copy *c, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(c->from, block); k++) {
        ing_ir_copy_inst(c, ing_ir_block_ids(c->from, block)[k]);
    }
}
