/* Unroll: short loops of constant length in a serial loop of a parallel one, as the window of a convolution
 *
 *   loop parallel j                       loop parallel j
 *     loop c                                loop c
 *       loop p = 0, 3                  =>     body(c, 0);  body(c, 1);  body(c, 2)
 *         body(c, p)
 *
 * LLVM does that too, but later: lanes.c takes serial loops without loops inside alone. Runs before it.
 * Rules
 *  UNROLL1 the loop runs at most MAX_TRIPS times, known while compiling; nothing leaves it; it holds neither
 *     a call nor a while loop, and no loop that stays one.
 *  UNROLL2 it becomes at most MAX_SIZE instructions, with the loops inside of it. */
#include "pass/pass_int.h"

enum { MAX_TRIPS = 8, MAX_SIZE = 256 };

typedef struct unroller {
    const ing_ir_func *f;
    ing_ir_scan scan;
    uint32_t *size; /* per LOOP: instructions that it becomes; 0 = it stays */
    bool any;
} unroller;

/* Instructions of a block when loops in it are unrolled; 0: one of them stays, or it is too long. */
static uint32_t size_of(const unroller *x, uint32_t block) {
    uint32_t n = 1;
    for (uint32_t k = 0; k < ing_ir_block_len(x->f, block) && n <= MAX_SIZE; k++) {
        uint32_t id = ing_ir_block_ids(x->f, block)[k], blocks[2];
        const ing_ir_inst *i = ing_ir_at(x->f, id);
        uint32_t m = ing_ir_inst_blocks(i, blocks);
        if (i->op == ING_OP_WHILE || (i->op == ING_OP_LOOP && !x->size[id])) return 0;
        n += i->op == ING_OP_LOOP ? x->size[id] : 1;
        for (uint32_t j = 0; i->op == ING_OP_IF && j < m; j++) {
            uint32_t more = size_of(x, blocks[j]);
            if (!more) return 0;
            n += more;
        }
    }
    return n <= MAX_SIZE ? n : 0;
}

static void judge(unroller *x, uint32_t loop) {
    const ing_ir_inst *l = ing_ir_at(x->f, loop);
    uint8_t refuse = ING_IR_HAS_CALL | ING_IR_HAS_EXIT | ING_IR_HAS_RANDOM;
    uint64_t trips;
    if (l->flags & ING_IR_PARALLEL || x->scan.has[loop] & refuse ||
        !ing_ir_inside(&x->scan, loop, x->scan.parallel) ||
        !ing_ir_trips(x->f, l->a, l->b, &trips) || !trips || trips > MAX_TRIPS)
        return;
    uint32_t n = size_of(x, l->c);
    if (n && n * trips <= MAX_SIZE) x->size[loop] = n * (uint32_t)trips;
}

/* Is it in a serial loop that stays one? Those right in the parallel loop LLVM unrolls in time. */
static bool is_wanted(const unroller *x, uint32_t loop) {
    uint32_t home = x->scan.home[loop];
    while (home && home != x->scan.parallel && x->size[home]) home = x->scan.home[home];
    return x->size[loop] && home && home != x->scan.parallel;
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    const unroller *x = c->self;
    const ing_ir_inst *l = ing_ir_at(c->from, id);
    uint64_t trips = 0;
    if (l->op != ING_OP_LOOP || !is_wanted(x, id)) return false;
    int64_t begin = (int64_t)ing_ir_const_bits(ing_ir_at(c->from, l->a));
    if (!ing_ir_trips(c->from, l->a, l->b, &trips)) return false;
    for (uint64_t k = 0; k < trips; k++) {
        c->map[id] = ing_ir_const_int(c->b, (ing_dtype)l->type, begin + (int64_t)k);
        ing_ir_copy_block(c, l->c);
    }
    return true;
}

static bool run_task(ing_ir_mod *m, uint32_t func) {
    unroller x = {.f = m->funcs.at[func]};
    if (!ing_ir_has_serial_loops(x.f)) return true;
    uint32_t n = x.f->insts.len, *map = ing_calloc(n, sizeof *map);
    x.size = ing_calloc(n, sizeof *x.size);
    bool ok = ing_ir_scan_init(&x.scan, x.f) && map && x.size;
    for (uint32_t k = 0; ok && k < x.scan.loops.len; k++) judge(&x, x.scan.loops.at[k]);
    for (uint32_t k = 0; ok && k < x.scan.loops.len; k++)
        x.any |= is_wanted(&x, x.scan.loops.at[k]);
    if (ok && x.any) {
        ing_ir_func old;
        ing_ir_builder b;
        ing_ir_rebuild_begin(&b, m, func, &old);
        x.f = &old;
        x.scan.f = &old;
        ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = &x};
        ing_ir_copy_block(&c, old.body);
        ing_ir_rebuild_end(&b, &old);
    }
    ing_ir_scan_fini(&x.scan);
    ing_free(x.size);
    ing_free(map);
    return ok;
}

ing_status ing_pass_unroll(ing_ir_mod *m, const ing_pass_options *o, ing_err *e) {
    (void)o;
    for (uint32_t k = 0; k < m->tasks.len && ing_ir_ok(m); k++)
        if (m->tasks.at[k].kind == ING_IR_TASK_RANGE &&
            !run_task(m, m->tasks.at[k].func))
            return ing_fail(e, ING_MEMORY, "no memory for a pass");
    return ing_pass_done(m, e);
}
