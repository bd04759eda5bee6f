/* Inline: funcs that update memory of others become part of the tasks that call them, so that the
 * passes after this one see whose memory it is: `add(p, i, x)` in a loop over i updates a place of
 * that iteration alone (demote.c), a sum into one place goes to lanes (reduce.c). So do small funcs that
 * compute, in tasks with serial loops: lanes.c takes no loop with a call. All other inlining is
 * LLVM's. Runs after the split.
 * Rules
 *  INLINE1 the func has an ATOMIC or CAS of something else than its own locals, itself or in what
 *     was put into it; or it has neither loops, nor calls, nor random numbers, and the task that calls it
 *     has serial loops. It returns at its end alone, and nothing in it is reported by its place in
 *     the func (CHECK, ROOM, PRINT, DETAIL: R19).
 *  INLINE2 it is small, and what it is put into stays so: MAX_FUNC and MAX_TASK, of funcs that compute
 *     MAX_LEAF and MAX_NEST. */
#include "ir/access.h"
#include "pass/pass_int.h"

/* A product of matrices whose elements go through the gelu of a func: 2.0 ms as calls, 0.13 inlined. */
enum {
    MAX_FUNC = 300,  /* instructions of a func that is put into others */
    MAX_TASK = 3000, /* and of what it is put into */
    MAX_LEAF = 100,
    MAX_NEST = 600
};

enum { STAYS, UPDATES, COMPUTES };

typedef struct inliner {
    ing_ir_mod *m;
    uint8_t *suits; /* per func: which part of INLINE1 holds, and INLINE2 */
    bool nests;     /* some task has serial loops */
    bool nest;      /* funcs that compute go into the function at hand */
    uint32_t most;  /* and it gets no longer than that by them */
    bool failed;
} inliner;

static bool is_update(const ing_ir_inst *i) {
    return i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
}

/* INLINE1 and INLINE2, of the func alone. */
static uint8_t func_suits(const ing_ir_func *f) {
    uint32_t returns = 0, n = ing_ir_block_len(f, f->body);
    bool updates = false, leaf = f->insts.len <= MAX_LEAF;
    for (uint32_t k = 1; k < f->insts.len; k++) {
        const ing_ir_inst *i = ing_ir_at(f, k);
        if (i->op == ING_OP_CHECK || i->op == ING_OP_ROOM || i->op == ING_OP_PRINT ||
            i->op == ING_OP_DETAIL)
            return STAYS;
        leaf &= i->op != ING_OP_LOOP && i->op != ING_OP_WHILE && i->op != ING_OP_CALL &&
                ing_op_class_of(i->op) != ING_OPC_SERVICE;
        returns += i->op == ING_OP_RETURN;
        updates |= is_update(i) && ing_ir_root(f, i->a, NULL)->op != ING_OP_ALLOCA;
    }
    const ing_ir_inst *last =
        n ? ing_ir_at(f, ing_ir_block_ids(f, f->body)[n - 1]) : NULL;
    bool at_end = last && last->op == ING_OP_RETURN;
    bool ok = f->kind == ING_IR_FUNC && f->insts.len <= MAX_FUNC && returns == at_end &&
              (at_end || f->ret == ING_VOID);
    return !ok ? STAYS : updates ? UPDATES : leaf ? COMPUTES : STAYS;
}

/* ---- putting one into another ----------------------------------------------------------------- */

typedef struct body {     /* of a func, at one call */
    const uint32_t *args; /* of the function that calls */
    uint32_t result;
} body;

static bool body_hook(ing_ir_copy *c, uint32_t id) {
    body *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (i->op == ING_OP_PARAM)
        c->map[id] = x->args[i->a];
    else if (i->op == ING_OP_RETURN)
        x->result = i->a ? c->map[i->a] : 0;
    return i->op == ING_OP_PARAM || i->op == ING_OP_RETURN;
}

static void put_body(inliner *x, ing_ir_copy *c, uint32_t call) {
    const ing_ir_inst *i = ing_ir_at(c->from, call);
    const ing_ir_func *f = x->m->funcs.at[i->a];
    uint32_t *args = ing_calloc((size_t)i->c + 1, sizeof *args);
    uint32_t *map = ing_calloc(f->insts.len, sizeof *map);
    x->failed |= !args || !map;
    if (!x->failed) {
        for (uint32_t k = 0; k < i->c; k++)
            args[k] = c->map[c->from->extra.at[i->b + k]];
        body b = {.args = args};
        ing_ir_copy inner = {
            .b = c->b, .from = f, .map = map, .hook = body_hook, .self = &b};
        uint32_t first = c->b->func->insts.len;
        ing_ir_copy_block(&inner, f->body);
        for (uint32_t k = first; k < c->b->func->insts.len; k++)
            c->b->func->insts.at[k].loc = i->loc;
        c->map[call] = b.result;
    }
    ing_free(args);
    ing_free(map);
}

static bool goes_in(const inliner *x, uint32_t func) {
    return x->suits[func] == UPDATES || (x->nest && x->suits[func] == COMPUTES);
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    inliner *x = c->self;
    const ing_ir_inst *i = ing_ir_at(c->from, id);
    if (i->op != ING_OP_CALL || !goes_in(x, i->a)) return false;
    uint32_t most = x->suits[i->a] == UPDATES ? MAX_TASK : x->most;
    if (c->b->func->insts.len + x->m->funcs.at[i->a]->insts.len > most) return false;
    put_body(x, c, id);
    return true;
}

static bool calls_any(const inliner *x, const ing_ir_func *f) {
    for (uint32_t k = 1; k < f->insts.len; k++) {
        const ing_ir_inst *i = ing_ir_at(f, k);
        if (i->op == ING_OP_CALL && goes_in(x, i->a)) return true;
    }
    return false;
}

static void run_func(inliner *x, uint32_t func) {
    ing_ir_func *f = x->m->funcs.at[func];
    bool task = f->kind == ING_IR_TASK;
    x->nest = task ? ing_ir_has_serial_loops(f) : x->nests;
    x->most = task ? MAX_NEST : MAX_LEAF;
    if (calls_any(x, f)) {
        ing_ir_func old;
        ing_ir_builder b;
        uint32_t *map = ing_calloc(f->insts.len, sizeof *map);
        x->failed |= !map;
        if (x->failed) return;
        ing_ir_rebuild_begin(&b, x->m, func, &old);
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = x};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
        ing_free(map);
    }
    x->suits[func] = ing_ir_ok(x->m) ? func_suits(f) : STAYS;
}

ing_status ing_pass_inline(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    inliner x = {.m = m};
    uint32_t *order = NULL;
    (void)o;
    ING_TRY(ing_ir_call_order(m, &order, e));
    x.suits = ing_calloc((size_t)m->funcs.len + 1, 1);
    x.failed = !x.suits;
    for (uint32_t k = 0; k < m->tasks.len; k++)
        x.nests |= ing_ir_has_serial_loops(m->funcs.at[m->tasks.at[k].func]);
    for (uint32_t k = 0; k < m->funcs.len && !x.failed && ing_ir_ok(m); k++)
        run_func(&x, order[k]);
    ing_free(x.suits);
    ing_free(order);
    return x.failed ? ing_fail(e, ING_MEMORY, "no memory for a pass")
                    : ing_pass_done(m, e);
}
