/* Structured exits (EXITS1 to EXITS4 in ad_int.h): what follows a statement that may leave the
 * loop or func stands in a branch of its own, and leaving is setting a flag. Called first by
 * reverse mode, for which each block then either runs whole or not at all. */
#include "ad/ad_int.h"

#include "ir/access.h"

enum { BREAKS = 1, CONTINUES = 2, RETURNS = 4 };

typedef struct loop_exits { /* of the innermost loop around */
    struct loop_exits *outer;
    uint32_t skip; /* u1 local: the rest of the iteration is left out; 0 = not needed */
    uint32_t left; /* u1 local: the loop ends; 0 = it is a LOOP that runs to its end */
} loop_exits;

typedef struct exits {
    ing_ir_mod *m;
    const ing_ir_func *f;
    ing_ir_builder b;
    ing_ir_copy copy;
    uint8_t *leaves; /* per control instruction: how its blocks may be left */
    loop_exits *loop;
    uint32_t gone,
        result; /* of a func: whether it returned, and what; 0 = not needed */
    bool in_parallel;
    uint8_t *outside; /* ALLOCA of the kernel's outermost block */
    uint32_t depth;
    bool deep;
    uint32_t bad; /* loc of what is refused, plus 1 */
} exits;

static uint32_t flag_new(exits *x) {
    return ing_ir_emit(&x->b, ING_OP_ALLOCA, ing_ir_type_ref(x->m, ING_U1), 0, 0, 0);
}

static void flag_set(exits *x, uint32_t flag) {
    uint32_t one = ing_ir_const_int(&x->b, ING_U1, 1);
    if (flag) ing_ir_emit(&x->b, ING_OP_STORE, 0, flag, one, 0);
}

static uint32_t flag_get(exits *x, uint32_t flag) {
    return ing_ir_emit(&x->b, ING_OP_LOAD, ING_U1, flag, 0, 0);
}

/* ---- which blocks are left, and how --------------------------------------------------------- */

static uint8_t find_leaves(exits *x, uint32_t block) {
    uint8_t all = 0;
    for (uint32_t k = 0; k < ing_ir_block_len(x->f, block); k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k];
        const ing_ir_inst *i = ing_ir_at(x->f, id);
        uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
        uint8_t inner = 0;
        for (uint32_t j = 0; j < n; j++) inner |= find_leaves(x, blocks[j]);
        x->leaves[id] = inner;
        if (i->op == ING_OP_LOOP || i->op == ING_OP_WHILE) inner &= RETURNS;
        if (i->op == ING_OP_BREAK) inner = BREAKS;
        if (i->op == ING_OP_CONTINUE) inner = CONTINUES;
        if (i->op == ING_OP_RETURN) inner = RETURNS;
        all |= inner;
    }
    return all;
}

static bool is_loop(const ing_ir_inst *i) {
    return i->op == ING_OP_LOOP || i->op == ING_OP_WHILE;
}

/* May what follows it in its block be left out? */
static bool may_leave(const exits *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    return x->leaves[id] & (is_loop(i) ? RETURNS : BREAKS | CONTINUES | RETURNS);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void put_block(exits *x, uint32_t block, uint32_t from);

static uint32_t put_region(exits *x, uint32_t block) {
    ing_ir_block_begin(&x->b);
    put_block(x, block, 0);
    return ing_ir_block_end(&x->b);
}

static void put_if(exits *x, const ing_ir_inst *i) {
    uint32_t then = put_region(x, i->b), other = i->c ? put_region(x, i->c) : 0;
    ing_ir_emit(&x->b, ING_OP_IF, 0, x->copy.map[i->a], then, other);
}

/* The end of a WHILE (EXITS1). */
static void put_end(exits *x, uint32_t left) {
    uint32_t l = flag_get(x, left);
    ing_ir_block_begin(&x->b);
    ing_ir_emit(&x->b, ING_OP_BREAK, 0, 0, 0, 0);
    ing_ir_emit(&x->b, ING_OP_IF, 0, l, ing_ir_block_end(&x->b), 0);
}

static void put_while(exits *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    loop_exits loop = {.outer = x->loop, .left = flag_new(x)};
    ing_ir_block_begin(&x->b);
    loop.skip = flag_new(x);
    x->loop = &loop;
    put_block(x, i->a, 0);
    x->loop = loop.outer;
    x->b.loc = i->loc;
    put_end(x, loop.left);
    ing_ir_emit(&x->b, ING_OP_WHILE, 0, ing_ir_block_end(&x->b), 0, 0);
}

/* A LOOP that may end early, as a WHILE with a counter. */
static void put_counted(exits *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    ing_ir_builder *b = &x->b;
    loop_exits loop = {.outer = x->loop, .left = flag_new(x)};
    uint32_t at =
        ing_ir_emit(b, ING_OP_ALLOCA, ing_ir_type_ref(x->m, i->type), 0, 0, 0);
    ing_ir_emit(b, ING_OP_STORE, 0, at, x->copy.map[i->a], 0);
    ing_ir_block_begin(b);
    uint32_t now = ing_ir_emit(b, ING_OP_LOAD, i->type, at, 0, 0);
    uint32_t done = ing_ir_emit(b, ING_OP_GE, ING_U1, now, x->copy.map[i->b], 0);
    ing_ir_block_begin(b);
    flag_set(x, loop.left);
    uint32_t ended = ing_ir_block_end(b);
    ing_ir_block_begin(b);
    x->copy.map[id] = now;
    loop.skip = flag_new(x);
    x->loop = &loop;
    put_block(x, i->c, 0);
    x->loop = loop.outer;
    uint32_t one = ing_ir_const_int(b, (ing_dtype)i->type, 1);
    uint32_t next = ing_ir_emit(b, ING_OP_ADD, i->type, now, one, 0);
    ing_ir_emit(b, ING_OP_STORE, 0, at, next, 0);
    ing_ir_emit(b, ING_OP_IF, 0, done, ended, ing_ir_block_end(b));
    b->loc = i->loc;
    put_end(x, loop.left);
    ing_ir_emit(b, ING_OP_WHILE, 0, ing_ir_block_end(b), 0, 0);
}

bool ing_ad_runs_once(const ing_ir_func *f, const ing_ir_inst *loop) {
    uint64_t n;
    return loop->op == ING_OP_LOOP && ing_ir_trips(f, loop->a, loop->b, &n) && n <= 1;
}

static void put_loop(exits *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    uint8_t leaves = x->leaves[id];
    bool parallel = i->flags & ING_IR_PARALLEL && !ing_ad_runs_once(x->f, i);
    uint16_t flags = parallel ? i->flags : i->flags & (uint16_t)~ING_IR_PARALLEL;
    if (leaves & (BREAKS | RETURNS) && parallel) x->bad = i->loc + 1;
    if (leaves & (BREAKS | RETURNS) && !parallel) {
        put_counted(x, id);
        return;
    }
    loop_exits loop = {.outer = x->loop};
    uint32_t at = ing_ir_loop_reserve(&x->b, i->type);
    x->copy.map[id] = at;
    ing_ir_block_begin(&x->b);
    if (leaves) loop.skip = flag_new(x);
    x->loop = &loop;
    x->in_parallel |= parallel;
    put_block(x, i->c, 0);
    x->in_parallel &= !parallel;
    x->loop = loop.outer;
    uint32_t body = ing_ir_block_end(&x->b);
    ing_ir_loop_finish(&x->b, at, x->copy.map[i->a], x->copy.map[i->b], body, flags);
}

/* Leaves the func, and with it every loop around. */
static void put_return(exits *x, const ing_ir_inst *i) {
    if (i->a && x->result)
        ing_ir_emit(&x->b, ING_OP_STORE, 0, x->result, x->copy.map[i->a], 0);
    flag_set(x, x->gone);
    for (loop_exits *l = x->loop; l; l = l->outer) {
        flag_set(x, l->skip);
        flag_set(x, l->left);
    }
}

/* A local of the kernel that iterations of a parallel loop share keeps its ATOMIC. */
static bool is_own(const exits *x, uint32_t ref) {
    const ing_ir_inst *root = ing_ir_root(x->f, ref, NULL);
    return root->op == ING_OP_ALLOCA &&
           !(x->in_parallel && x->outside[root - x->f->insts.at]);
}

static void put_update(exits *x, uint32_t id) {
    static const uint16_t ops[ING_IR_ATOMIC_N] = {ING_OP_ADD, ING_OP_SUB, ING_OP_MUL,
                                                  ING_OP_MIN, ING_OP_MAX, ING_OP_AND,
                                                  ING_OP_OR,  ING_OP_XOR, ING_OP_NONE};
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    uint32_t ref = x->copy.map[i->a], v = x->copy.map[i->b];
    uint32_t old = ing_ir_emit(&x->b, ING_OP_LOAD, i->type, ref, 0, 0);
    if (ops[i->c]) v = ing_ir_emit(&x->b, ops[i->c], i->type, old, v, 0);
    ing_ir_emit(&x->b, ING_OP_STORE, 0, ref, v, 0);
    x->copy.map[id] = old;
}

static void put_inst(exits *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->f, id);
    x->b.loc = i->loc;
    switch (i->op) {
    case ING_OP_IF: put_if(x, i); break;
    case ING_OP_LOOP: put_loop(x, id); break;
    case ING_OP_WHILE: put_while(x, id); break;
    case ING_OP_BREAK: flag_set(x, x->loop->left); /* fall through */
    case ING_OP_CONTINUE: flag_set(x, x->loop->skip); break;
    case ING_OP_RETURN: put_return(x, i); break;
    case ING_OP_ATOMIC:
        if (is_own(x, i->a)) {
            put_update(x, id);
            break;
        } /* fall through */
    default: ing_ir_copy_inst(&x->copy, id); break;
    }
}

static bool has_parallel(const exits *x, uint32_t block, uint32_t from) {
    for (uint32_t k = from; k < ing_ir_block_len(x->f, block); k++)
        if (ing_ir_at(x->f, ing_ir_block_ids(x->f, block)[k])->flags & ING_IR_PARALLEL)
            return true;
    return false;
}

static void put_block(exits *x, uint32_t block, uint32_t from) {
    uint32_t n = ing_ir_block_len(x->f, block);
    if (++x->depth > ING_IR_MAX_NESTING - 2) x->deep = x->m->arena.failed = true;
    for (uint32_t k = from; k < n && ing_ir_ok(x->m); k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k];
        put_inst(x, id);
        if (!may_leave(x, id) || k + 1 == n) continue;
        if (has_parallel(x, block, k + 1)) x->bad = ing_ir_at(x->f, id)->loc + 1;
        uint32_t l = flag_get(x, x->loop ? x->loop->skip : x->gone);
        uint32_t stays = ing_ir_emit(&x->b, ING_OP_NOT, ING_U1, l, 0, 0);
        ing_ir_block_begin(&x->b);
        put_block(x, block, k + 1);
        ing_ir_emit(&x->b, ING_OP_IF, 0, stays, ing_ir_block_end(&x->b), 0);
        break;
    }
    x->depth--;
}

/* ---- functions -------------------------------------------------------------------------------- */

/* Is the function left by nothing but a RETURN at its end? */
static bool returns_last(const exits *x) {
    uint32_t n = ing_ir_block_len(x->f, x->f->body);
    for (uint32_t k = 0; k < n; k++)
        if (may_leave(x, ing_ir_block_ids(x->f, x->f->body)[k])) return false;
    return true;
}

static void write_func(exits *x) {
    bool func = x->f->kind == ING_IR_FUNC, simple = returns_last(x);
    ing_type ret = x->f->ret;
    if (!simple) x->gone = flag_new(x);
    if (func && ret && !simple)
        x->result =
            ing_ir_emit(&x->b, ING_OP_ALLOCA, ing_ir_type_ref(x->m, ret), 0, 0, 0);
    uint32_t n = ing_ir_block_len(x->f, x->f->body);
    const ing_ir_inst *last =
        n ? ing_ir_at(x->f, ing_ir_block_ids(x->f, x->f->body)[n - 1]) : NULL;
    put_block(x, x->f->body, 0);
    if (!func) return;
    x->b.loc = last ? last->loc : 0;
    uint32_t v = 0;
    if (x->result)
        v = ing_ir_emit(&x->b, ING_OP_LOAD, ret, x->result, 0, 0);
    else if (simple && last && last->op == ING_OP_RETURN)
        v = last->a ? x->copy.map[last->a] : 0;
    if (v || !ret) ing_ir_emit(&x->b, ING_OP_RETURN, 0, v, 0, 0);
}

static ing_status run_func(ing_ir_mod *m, uint32_t k, ing_err *e) {
    uint32_t n = m->funcs.at[k]->insts.len;
    exits x = {.m = m, .f = m->funcs.at[k]};
    x.leaves = ing_calloc(n, 2);
    x.copy.map = ing_calloc(n, sizeof *x.copy.map);
    if (!x.leaves || !x.copy.map) {
        ing_free(x.leaves);
        ing_free(x.copy.map);
        return ing_ad_no_memory(e);
    }
    x.outside = x.leaves + n;
    find_leaves(&x, x.f->body);
    bool kernel = x.f->kind == ING_IR_KERNEL;
    for (uint32_t j = 0; kernel && j < ing_ir_block_len(x.f, x.f->body); j++)
        x.outside[ing_ir_block_ids(x.f, x.f->body)[j]] = 1;
    ing_ir_func old;
    ing_ir_rebuild_begin(&x.b, m, k, &old);
    x.f = x.copy.from = &old;
    x.copy.b = &x.b;
    write_func(&x);
    ing_ir_rebuild_end(&x.b, &old);
    ing_free(x.leaves);
    ing_free(x.copy.map);
    if (x.bad)
        return ing_ad_refuse(m, k, x.bad - 1, e,
                             "a kernel that may end before its last parallel loop");
    if (x.deep) return ing_ad_refuse(m, k, 0, e, "a function with too many ways out");
    return ing_ir_ok(m) ? ING_OK : ing_ad_no_memory(e);
}

ing_status ing_ad_exits(ing_ir_mod *m, ing_err *e) {
    for (uint32_t k = 0; k < m->funcs.len; k++) ING_TRY(run_func(m, k, e));
    return ING_OK;
}
