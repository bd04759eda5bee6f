/* What derivatives compute and nobody reads. An iteration is run again before it is run backwards, all of it,
 * and leaves its locals behind for a next one that takes its own from the stack. Called last by reverse mode.
 *  TRIM1 a LOAD of a local after a STORE or LOAD of it in the same block, or in one around it, with no other
 *     STORE between: the value itself. A STORE of that value goes: sums that a loop only adds to have an
 *     adjoint that no iteration changes. Once more after TRIM2, which takes what stood between.
 *  TRIM2 a STORE whose value no LOAD can find, in this iteration, a later one or after the loop, goes.
 * Locals whose address goes anywhere but to LOAD and STORE are left alone. No text of more than MAX_WORK. */
#include "ad/ad_int.h"

#include <string.h>

enum {
    MAX_WORK = 1 << 18
}; /* words of sets: instructions that have blocks times locals */

typedef uint64_t *set;

typedef struct trimmer {
    const ing_ir_func *f;
    ing_arena arena;
    uint32_t *number; /* by instruction: of a local, from 1 */
    uint32_t *value;  /* by instruction: of a LOAD, the value that it finds (TRIM1) */
    uint8_t *dead;    /* by instruction: STOREs that go (TRIM2) */
    set *found;       /* by loop: what its body reads of what it found */
    uint32_t locals, words;
    bool failed;
} trimmer;

static bool has(set s, uint32_t k) {
    return s[k / 64] >> k % 64 & 1;
}

static void put(set s, uint32_t k, bool in) {
    uint64_t bit = UINT64_C(1) << k % 64;
    s[k / 64] = in ? s[k / 64] | bit : s[k / 64] & ~bit;
}

static void join(const trimmer *t, set s, set other) {
    for (uint32_t k = 0; k < t->words; k++) s[k] |= other[k];
}

static set copy(trimmer *t, set from) {
    set s = ING_NEW_ARRAY(&t->arena, t->words, uint64_t);
    if (!s) t->failed = true;
    if (s && from) memcpy(s, from, t->words * sizeof *s);
    return s;
}

/* The number of the local that it reads, writes or makes; 0: none that counts. */
static uint32_t local_of(const trimmer *t, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(t->f, id);
    if (i->op == ING_OP_ALLOCA) return t->number[id];
    return i->op == ING_OP_LOAD || i->op == ING_OP_STORE ? t->number[i->a] : 0;
}

static bool is_loop(const ing_ir_inst *i) {
    return i->op != ING_OP_IF;
}

/* ---- which locals ---------------------------------------------------------------------------- */

static bool find_locals(trimmer *t) {
    uint32_t blocks = 0, n = t->f->insts.len;
    for (uint32_t id = 1; id < n; id++)
        t->number[id] = ing_ir_at(t->f, id)->op == ING_OP_ALLOCA;
    for (uint32_t id = 1; id < n; id++) {
        const ing_ir_inst *i = ing_ir_at(t->f, id);
        ing_ir_uses u;
        uint32_t inner[2];
        blocks += ing_ir_inst_blocks(i, inner);
        ing_ir_inst_uses(t->f, i, &u);
        bool plain = (i->op == ING_OP_LOAD || i->op == ING_OP_STORE) &&
                     !(i->flags & ING_IR_VOLATILE);
        for (uint32_t k = 0; k < u.n_fixed; k++)
            if (!plain || k != 0) t->number[u.fixed[k]] = 0;
        for (uint32_t k = 0; k < u.n_list; k++) t->number[u.list[k]] = 0;
    }
    for (uint32_t id = 1; id < n; id++)
        if (t->number[id]) t->number[id] = ++t->locals;
    t->words = t->locals / 64 + 1;
    return t->locals && (uint64_t)t->words * blocks < MAX_WORK;
}

/* ---- TRIM1 -------------------------------------------------------------------------------------- */

/* Values of locals after STOREs that forget what a block writes. */
static void forget_written(const trimmer *t, uint32_t block, uint32_t *known) {
    const uint32_t *ids = ing_ir_block_ids(t->f, block);
    for (uint32_t k = 0; k < ing_ir_block_len(t->f, block); k++) {
        const ing_ir_inst *i = ing_ir_at(t->f, ids[k]);
        uint32_t inner[2], n = ing_ir_inst_blocks(i, inner);
        if (i->op != ING_OP_LOAD) known[local_of(t, ids[k])] = 0;
        for (uint32_t j = 0; j < n; j++) forget_written(t, inner[j], known);
    }
}

static void find_values(trimmer *t, uint32_t block, uint32_t *known) {
    const uint32_t *ids = ing_ir_block_ids(t->f, block);
    size_t size = (t->locals + 1) * sizeof *known;
    for (uint32_t k = 0; k < ing_ir_block_len(t->f, block) && !t->failed; k++) {
        const ing_ir_inst *i = ing_ir_at(t->f, ids[k]);
        uint32_t inner[2], n = ing_ir_inst_blocks(i, inner), x = local_of(t, ids[k]);
        if (i->op == ING_OP_LOAD && x) {
            t->value[ids[k]] = known[x];
            if (!known[x]) known[x] = ids[k];
        }
        if (i->op == ING_OP_STORE && x) {
            uint32_t same = t->value[i->b] ? t->value[i->b] : i->b;
            t->dead[ids[k]] = known[x] == same;
            known[x] = same;
        }
        if (i->op == ING_OP_ALLOCA) known[x] = 0;
        if (n == 0) continue;
        uint32_t *inside = ING_NEW_ARRAY(&t->arena, t->locals + 1, uint32_t);
        if (!inside) t->failed = true;
        for (uint32_t j = 0; is_loop(i) && j < n; j++)
            forget_written(t, inner[j], known);
        for (uint32_t j = 0; inside && j < n; j++) {
            memcpy(inside, known, size);
            find_values(t, inner[j], inside);
        }
        for (uint32_t j = 0; j < n; j++) forget_written(t, inner[j], known);
    }
}

/* ---- TRIM2 -------------------------------------------------------------------------------------- */

typedef struct ways { /* what is read after a BREAK and after a CONTINUE */
    set out, again;
} ways;

static void walk(trimmer *t, uint32_t block, set live, ways w, bool mark);

/* The body may run again after it ends, or not at all. */
static void walk_loop(trimmer *t, uint32_t id, uint32_t body, set live, bool mark) {
    set out = copy(t, live), again = copy(t, live);
    if (!t->found[id] && !t->failed) {
        set found = copy(t, NULL), none = copy(t, NULL);
        if (!t->failed) walk(t, body, found, (ways){none, none}, false);
        t->found[id] = found;
    }
    if (t->failed) return;
    join(t, again, t->found[id]);
    join(t, live, t->found[id]);
    walk(t, body, live, (ways){out, again}, mark);
    join(t, live, out);
}

static void walk_branch(trimmer *t, const uint32_t *inner, uint32_t n, set live, ways w,
                        bool mark) {
    set after = copy(t, live), other = copy(t, live);
    for (uint32_t j = 0; j < n && !t->failed; j++) {
        memcpy(other, after, t->words * sizeof *other);
        walk(t, inner[j], other, w, mark);
        if (j == 0 && n == 2) memset(live, 0, t->words * sizeof *live);
        join(t, live, other);
    }
}

/* From the end of a block to its start: `live` are the locals whose content is read later. */
static void walk(trimmer *t, uint32_t block, set live, ways w, bool mark) {
    const uint32_t *ids = ing_ir_block_ids(t->f, block);
    for (uint32_t k = ing_ir_block_len(t->f, block); k-- > 0 && !t->failed;) {
        const ing_ir_inst *i = ing_ir_at(t->f, ids[k]);
        uint32_t inner[2], n = ing_ir_inst_blocks(i, inner), x = local_of(t, ids[k]);
        if (i->op == ING_OP_RETURN) memset(live, 0, t->words * sizeof *live);
        if (i->op == ING_OP_BREAK) memcpy(live, w.out, t->words * sizeof *live);
        if (i->op == ING_OP_CONTINUE) memcpy(live, w.again, t->words * sizeof *live);
        if (n && is_loop(i))
            walk_loop(t, ids[k], inner[0], live, mark);
        else if (n)
            walk_branch(t, inner, n, live, w, mark);
        if (!x) continue;
        if (mark && i->op == ING_OP_STORE && !has(live, x)) t->dead[ids[k]] = 1;
        put(live, x, i->op == ING_OP_LOAD);
    }
}

/* ---- anew ------------------------------------------------------------------------------------------ */

static bool hook(ing_ir_copy *c, uint32_t id) {
    const trimmer *t = c->self;
    if (t->value[id]) c->map[id] = c->map[t->value[id]];
    return t->value[id] || t->dead[id];
}

static void rewrite(trimmer *t, ing_ir_mod *m, uint32_t func, uint32_t *map) {
    ing_ir_func old;
    ing_ir_builder b;
    ing_ir_rebuild_begin(&b, m, func, &old);
    t->f = &old;
    ing_ir_copy c = {.b = &b, .from = &old, .map = map, .hook = hook, .self = t};
    ing_ir_copy_block(&c, old.body);
    ing_ir_rebuild_end(&b, &old);
}

/* One rule on one function; false = no memory. */
static bool run(ing_ir_mod *m, uint32_t func, bool values) {
    uint32_t n = m->funcs.at[func]->insts.len;
    trimmer t = {.f = m->funcs.at[func]};
    ing_arena_init(&t.arena);
    t.number = ING_NEW_ARRAY(&t.arena, n, uint32_t);
    t.value = ING_NEW_ARRAY(&t.arena, n, uint32_t);
    t.dead = ING_NEW_ARRAY(&t.arena, n, uint8_t);
    t.found = ING_NEW_ARRAY(&t.arena, n, set);
    uint32_t *map = ING_NEW_ARRAY(&t.arena, n, uint32_t);
    t.failed = !t.number || !t.value || !t.dead || !t.found || !map;
    if (!t.failed && find_locals(&t)) {
        uint32_t *known = ING_NEW_ARRAY(&t.arena, t.locals + 1, uint32_t);
        set live = copy(&t, NULL);
        if (known && live && values)
            find_values(&t, t.f->body, known);
        else if (known && live)
            walk(&t, t.f->body, live, (ways){live, live}, true);
        t.failed |= !known || !live;
        if (!t.failed) rewrite(&t, m, func, map);
    }
    ing_arena_fini(&t.arena);
    return !t.failed;
}

ing_status ing_ad_trim(ing_ir_mod *m, ing_err *e) {
    for (uint32_t k = 0; k < m->funcs.len && ing_ir_ok(m); k++)
        if (!run(m, k, true) || !run(m, k, false) || !run(m, k, true))
            return ing_ad_no_memory(e);
    return ing_ir_ok(m) ? ING_OK : ing_ad_no_memory(e);
}
