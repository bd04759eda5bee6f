/* From the structured form to steps with jumps, for the interpreter: done once per call of
 * a task, linear in its size. Works on verified functions only; recursion is over blocks,
 * which I7 bounds. */
#include "ir/interp.h"

#include <string.h>

/* Steps that must jump to the end (BREAK) or to the next round (CONTINUE) of the loop that
 * is being written form chains through their field c, as 1 + index of the next. */
typedef struct loop_ctx {
    uint32_t breaks, continues;
} loop_ctx;

typedef struct flattener {
    const ing_ir_mod *m;
    const ing_ir_func *f;
    ing_flat *out;
    const uint32_t *ordinal;
    loop_ctx *loop;
    const uint8_t *draws; /* of a kernel: which functions draw random numbers */
    uint32_t place;       /* how many stretches drew some before the present one */
    bool drew;            /* and whether this one does */
    bool ok;
} flattener;

static uint32_t place_size(const ing_ir_mod *m, ing_type t) {
    return ing_ir_is_scalar(t) ? 8
                               : (uint32_t)ing_ir_round_up(ing_ir_type_size(m, t), 8);
}

/* Gives every value its place; PARAMs are where the caller put them. */
static bool lay_out(flattener *s) {
    ing_flat *o = s->out;
    uint64_t at = 0;
    o->params = ing_calloc((size_t)s->f->n_params + 1, sizeof *o->params);
    o->off = ing_calloc(s->f->insts.len, sizeof *o->off);
    if (!o->params || !o->off) return false;
    for (uint32_t k = 0; k < s->f->n_params; k++) {
        o->params[k] = (uint32_t)at;
        at += place_size(s->m, s->f->params[k]);
    }
    for (uint32_t k = 1; k < s->f->insts.len; k++) {
        const ing_ir_inst *i = ing_ir_at(s->f, k);
        if (!i->type) continue;
        if (i->op == ING_OP_PARAM) {
            o->off[k] = o->params[i->a];
            continue;
        }
        o->off[k] = (uint32_t)at;
        at += place_size(s->m, i->type);
        if (i->op == ING_OP_ALLOCA) {
            at += place_size(s->m, ing_ir_type(s->m, i->type)->elem);
        }
        if (at > UINT32_MAX / 2) return false;
    }
    o->frame = at;
    return true;
}

static uint32_t put(flattener *s, ing_step step) {
    uint32_t n = s->out->steps.len;
    s->ok = s->ok && ing_vec_push(&s->out->steps, step);
    return n;
}

static uint32_t here(const flattener *s) {
    return s->out->steps.len;
}

static void patch(flattener *s, uint32_t step, uint32_t target) {
    if (s->ok) s->out->steps.at[step].c = target;
}

static void patch_chain(flattener *s, uint32_t chain, uint32_t target) {
    while (chain && s->ok) {
        uint32_t next = s->out->steps.at[chain - 1].c;
        patch(s, chain - 1, target);
        chain = next;
    }
}

static uint32_t off(const flattener *s, uint32_t id) {
    return s->out->off[id];
}

static ing_type type_of(const flattener *s, uint32_t id) {
    return ing_ir_at(s->f, id)->type;
}

/* The dtype that words of type t have; 0 for aggregates. Refs and arrays are words. */
static uint8_t word_type(const ing_ir_mod *m, ing_type t) {
    const ing_type_info *i = ing_ir_type(m, t);
    if (i->kind == ING_TYPE_SCALAR) return (uint8_t)t;
    return i->kind == ING_TYPE_REF || i->kind == ING_TYPE_ARRAY ? ING_U64 : 0;
}

/* ---- instructions --------------------------------------------------------------------- */

/* What the interpreter needs to know of operand types, besides the offsets. */
static void describe(flattener *s, const ing_ir_inst *i, ing_step *t) {
    const ing_ir_mod *m = s->m;
    ing_type data = i->type;
    switch (i->op) {
    case ING_OP_STORE:
    case ING_OP_SET_RET: data = type_of(s, i->b); break;
    case ING_OP_RETURN: data = i->a ? type_of(s, i->a) : 0; break;
    case ING_OP_ALLOCA:
    case ING_OP_ELEM:
    case ING_OP_MEMBER_DYN: data = ing_ir_type(m, i->type)->elem; break;
    case ING_OP_INSERT: data = type_of(s, i->b); break;
    case ING_OP_CAST:
    case ING_OP_BITCAST: t->from = (uint8_t)type_of(s, i->a); break;
    default: break;
    }
    t->dtype = word_type(m, data);
    t->size = ing_ir_type_size(m, data);
    if (i->op == ING_OP_MEMBER) {
        t->b = ing_ir_member_offset(m, ing_ir_type(m, type_of(s, i->a))->elem, i->b);
    } else if (i->op == ING_OP_EXTRACT) {
        t->b = ing_ir_member_offset(m, type_of(s, i->a), i->b);
    } else if (i->op == ING_OP_INSERT) {
        t->c = ing_ir_member_offset(m, i->type, i->c);
    } else if (i->op == ING_OP_ARG || i->op == ING_OP_ARRAY) {
        t->a = m->args.at[i->a].word;
    } else if (i->op == ING_OP_CALL) {
        t->a = s->ordinal[i->a];
    } else if (ing_op_is_arith(i->op)) {
        t->dtype = (uint8_t)type_of(s, i->a);
    }
}

static void put_plain(flattener *s, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    const char *o = ing_op_get(i->op)->operands;
    ing_step t = {.op = i->op, .a = i->a, .b = i->b, .c = i->c, .id = id};
    t.d = off(s, id);
    if (o[0] == 'v') t.a = i->a ? off(s, i->a) : 0;
    if (o[1] == 'v') t.b = off(s, i->b);
    if (o[1] && o[2] == 'v') t.c = off(s, i->c);
    describe(s, i, &t);
    put(s, t);
}

static void put_block(flattener *s, uint32_t block);

static void put_if(flattener *s, const ing_ir_inst *i) {
    uint32_t test = put(s, (ing_step){.op = ING_STEP_IF_NOT, .a = off(s, i->a)});
    put_block(s, i->b);
    if (!i->c) {
        patch(s, test, here(s));
        return;
    }
    uint32_t jump = put(s, (ing_step){.op = ING_STEP_JUMP});
    patch(s, test, here(s));
    put_block(s, i->c);
    patch(s, jump, here(s));
}

static void put_loop(flattener *s, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    loop_ctx ctx = {0}, *outer = s->loop;
    ing_step t = {.op = ING_STEP_LOOP, .dtype = (uint8_t)i->type, .id = id};
    t.d = off(s, id);
    t.a = off(s, i->a);
    t.b = off(s, i->b);
    t.from = (i->flags & ING_IR_PARALLEL) != 0;
    uint32_t start = put(s, t);
    s->loop = &ctx;
    put_block(s, i->c);
    s->loop = outer;
    patch_chain(s, ctx.continues, here(s));
    t.op = ING_STEP_NEXT;
    t.c = start + 1;
    put(s, t);
    patch(s, start, here(s));
    patch_chain(s, ctx.breaks, here(s));
}

static void put_while(flattener *s, const ing_ir_inst *i) {
    loop_ctx ctx = {0}, *outer = s->loop;
    uint32_t start = here(s);
    s->loop = &ctx;
    put_block(s, i->a);
    s->loop = outer;
    patch_chain(s, ctx.continues, here(s));
    put(s, (ing_step){.op = ING_STEP_BACK, .c = start});
    patch_chain(s, ctx.breaks, here(s));
}

/* ---- a kernel as lowered ----------------------------------------------------------------- */

/* A stretch of the kernel ends here, where the split would begin another task: random numbers
 * depend on how many before it draw some (ing_ir_task.place). */
static void put_place(flattener *s) {
    s->place += s->drew;
    s->drew = false;
    put(s, (ing_step){.op = ING_STEP_PLACE, .a = s->place});
}

static void put_top(flattener *s, uint32_t block);

static void put_region(flattener *s, const ing_ir_inst *i) {
    uint32_t inner[2], start;
    ing_ir_inst_blocks(i, inner);
    put_place(s);
    start = here(s);
    put_top(s, inner[0]);
    if (i->op == ING_OP_DO_WHILE)
        put(s, (ing_step){.op = ING_STEP_AGAIN, .a = off(s, i->a), .c = start});
    put_place(s);
}

static void put_inst(flattener *s, uint32_t id);

static void put_top_inst(flattener *s, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    bool parallel = i->op == ING_OP_LOOP && (i->flags & ING_IR_PARALLEL);
    if (ing_op_class_of(i->op) == ING_OPC_REGION) {
        put_region(s, i);
        return;
    }
    if (parallel) put_place(s);
    s->drew |= ing_ir_inst_draws(s->f, i, s->draws);
    put_inst(s, id);
    if (parallel) put_place(s);
}

/* The outermost block of a kernel, or of a region in it (I8). */
static void put_top(flattener *s, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(s->f, block) && s->ok; k++)
        put_top_inst(s, ing_ir_block_ids(s->f, block)[k]);
}

/* ---- all instructions -------------------------------------------------------------------- */

static void put_jump(flattener *s, uint32_t *chain) {
    uint32_t n = put(s, (ing_step){.op = ING_STEP_JUMP, .c = *chain});
    *chain = n + 1;
}

/* Items are copied one by one, so that the interpreter needs no lists of offsets. */
static void put_make(flattener *s, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    /* padding must not keep what an earlier round left there */
    put(s, (ing_step){.op = ING_OP_MAKE,
                      .d = off(s, id),
                      .size = ing_ir_type_size(s->m, i->type)});
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t item = s->f->extra.at[i->b + k];
        ing_step t = {.op = ING_STEP_COPY, .a = off(s, item), .id = id};
        t.d = off(s, id) + ing_ir_member_offset(s->m, i->type, k);
        t.size = ing_ir_type_size(s->m, type_of(s, item));
        put(s, t);
    }
}

static void put_inst(flattener *s, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    switch (i->op) {
    case ING_OP_PARAM: break;
    case ING_OP_IF: put_if(s, i); break;
    case ING_OP_LOOP: put_loop(s, id); break;
    case ING_OP_WHILE: put_while(s, i); break;
    case ING_OP_BREAK: put_jump(s, &s->loop->breaks); break;
    case ING_OP_CONTINUE: put_jump(s, &s->loop->continues); break;
    case ING_OP_MAKE: put_make(s, id); break;
    default: put_plain(s, id); break;
    }
}

static void put_block(flattener *s, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(s->f, block) && s->ok; k++) {
        put_inst(s, ing_ir_block_ids(s->f, block)[k]);
    }
}

bool ing_ir_flatten(ing_flat *out, const ing_ir_mod *m, uint32_t func,
                    const uint32_t *ordinal, const uint8_t *draws) {
    const ing_ir_func *f = m->funcs.at[func];
    flattener s = {
        .m = m, .f = f, .out = out, .ordinal = ordinal, .draws = draws, .ok = true};
    *out = (ing_flat){.func = f};
    out->ret_size = ing_ir_is_scalar(f->ret) ? 0 : ing_ir_type_size(m, f->ret);
    if (!lay_out(&s)) return false;
    if (f->kind == ING_IR_KERNEL)
        put_top(&s, f->body);
    else
        put_block(&s, f->body);
    put(&s, (ing_step){.op = ING_OP_RETURN});
    return s.ok;
}

void ing_ir_flat_fini(ing_flat *f) {
    ing_vec_fini(&f->steps);
    ing_free(f->off);
    ing_free(f->params);
}
