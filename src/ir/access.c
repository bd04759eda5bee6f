/* One walk over a function: roots, accesses, variance (ACCESS1, ACCESS2 in access.h). Called by the passes;
 * changes nothing. Linear in the size of the function, recursion is over blocks (I7). */
#include "ir/access.h"

#include <string.h>

const ing_ir_inst *ing_ir_root(const ing_ir_func *f, uint32_t ref, uint32_t *elem) {
    const ing_ir_inst *i = ing_ir_at(f, ref);
    if (elem) *elem = 0;
    while (ing_ir_is_within(i)) {
        if (elem && i->op == ING_OP_ELEM) *elem = ref;
        ref = i->a;
        i = ing_ir_at(f, ref);
    }
    return i;
}

bool ing_ir_has_updates(const ing_ir_func *f) {
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(f, id);
        bool update = i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
        if (update && !(i->flags & ING_IR_PRIVATE)) return true;
    }
    return false;
}

/* Loops around the parallel one, and itself; 0: there is none in the block. */
static uint32_t loops_to_parallel(const ing_ir_func *f, uint32_t block) {
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++) {
        const ing_ir_inst *i = ing_ir_at(f, ing_ir_block_ids(f, block)[k]);
        if (i->op != ING_OP_LOOP) continue;
        if (i->flags & ING_IR_PARALLEL) return 1;
        uint32_t inner = loops_to_parallel(f, i->c);
        if (inner) return inner + 1;
    }
    return 0;
}

bool ing_ir_has_serial_loops(const ing_ir_func *f) {
    uint32_t n = 0;
    for (uint32_t id = 1; id < f->insts.len; id++)
        n += ing_ir_at(f, id)->op == ING_OP_LOOP;
    return n > loops_to_parallel(f, f->body);
}

/* ---- the walk ----------------------------------------------------------------------------- */

typedef struct place { /* where the walk is */
    uint32_t loop;     /* innermost around */
    uint8_t depth;
    bool direct;     /* in its own block */
    uint64_t around; /* bits of the loops around */
} place;

static void note_access(ing_ir_scan *s, uint32_t id, uint32_t ref, const place *p) {
    bool left = s->has[p->loop] & ING_IR_HAS_EXIT;
    ing_ir_access a = {.id = id, .ref = ref, .sure = p->direct && !left};
    const ing_ir_inst *root = ing_ir_root(s->f, ref, &a.elem);
    bool own = root->op == ING_OP_ALLOCA || root->op == ING_OP_PARTIAL ||
               root->op == ING_OP_SCRATCH;
    a.root = root->op;
    a.of = own ? ing_ir_id_of(s->f, root) : root->a;
    s->failed |= !ing_vec_push(&s->accesses, a);
}

static bool is_address(const ing_ir_func *f, uint32_t id) {
    const ing_ir_inst *root = ing_ir_root(f, id, NULL);
    return root != ing_ir_at(f, id) || root->op == ING_OP_ARRAY ||
           root->op == ING_OP_ALLOCA || root->op == ING_OP_BUFFER ||
           root->op == ING_OP_PARTIAL || root->op == ING_OP_SCRATCH ||
           root->op == ING_OP_PARAM;
}

static void note_call(ing_ir_scan *s, uint32_t id, const place *p) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = s->f->extra.at[i->b + k];
        if (is_address(s->f, arg)) note_access(s, id, arg, p);
    }
}

/* What the instruction does, to memory and to the loop around it. */
static void note_effect(ing_ir_scan *s, uint32_t id, const place *p) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    uint8_t *has = &s->has[p->loop];
    switch (i->op) {
    case ING_OP_LOAD:
        if (i->flags & ING_IR_VOLATILE) *has |= ING_IR_HAS_VOLATILE;
        note_access(s, id, i->a, p);
        break;
    case ING_OP_STORE:
    case ING_OP_ATOMIC:
    case ING_OP_ADDRESS: /* and whatever is done with it */
    case ING_OP_CAS: note_access(s, id, i->a, p); break;
    case ING_OP_CALL:
        *has |= ING_IR_HAS_CALL;
        note_call(s, id, p);
        break;
    case ING_OP_RANDOM: *has |= ING_IR_HAS_RANDOM; break;
    case ING_OP_CHECK:
    case ING_OP_ROOM:
    case ING_OP_RETURN: *has |= ING_IR_HAS_STOP; break;
    case ING_OP_BREAK:
    case ING_OP_CONTINUE: *has |= ING_IR_HAS_EXIT; break;
    default: break;
    }
}

/* Marks the operands as used; the loops that any of them varies with. */
static uint64_t operands(ing_ir_scan *s, const ing_ir_inst *i) {
    ing_ir_uses u;
    uint64_t all = 0;
    ing_ir_inst_uses(s->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t id = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        s->used[id] = 1;
        all |= s->varies[id];
    }
    return all;
}

static uint64_t variance(ing_ir_scan *s, const ing_ir_inst *i, const place *p) {
    uint64_t all = operands(s, i);
    if (ing_op_class_of(i->op) == ING_OPC_PIECE) all |= (uint64_t)1 << ING_IR_PIECE_BIT;
    return ing_op_is_pure(i->op) || i->op == ING_OP_LOOP ? all : all | p->around;
}

static void walk(ing_ir_scan *s, uint32_t block, place p);

/* A loop; p is where it stands. */
static void walk_loop(ing_ir_scan *s, uint32_t id, place p) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    uint64_t bit = ing_ir_loop_bit(s, id);
    place inner = {.loop = id, .direct = true, .around = p.around | bit};
    inner.depth = p.depth < UINT8_MAX ? p.depth + 1 : UINT8_MAX;
    s->varies[id] |= bit;
    if (i->flags & ING_IR_PARALLEL) s->parallel = id;
    walk(s, i->op == ING_OP_LOOP ? i->c : i->a, inner);
    s->has[p.loop] |= s->has[id] & ~ING_IR_HAS_EXIT;
    if (i->op != ING_OP_LOOP) return;
    s->has[p.loop] |= ING_IR_HAS_LOOP;
    s->failed |= !ing_vec_push(&s->loops, id);
}

static void walk_inst(ing_ir_scan *s, uint32_t id, place p) {
    const ing_ir_inst *i = ing_ir_at(s->f, id);
    uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
    s->home[id] = p.loop;
    s->depth[id] = p.depth;
    s->varies[id] = variance(s, i, &p);
    s->first[id] = s->accesses.len;
    note_effect(s, id, &p);
    p.direct = false;
    if (i->op == ING_OP_LOOP || i->op == ING_OP_WHILE)
        walk_loop(s, id, p);
    else
        for (uint32_t k = 0; k < n; k++) walk(s, blocks[k], p);
    s->end[id] = s->accesses.len;
}

static void walk(ing_ir_scan *s, uint32_t block, place p) {
    for (uint32_t k = 0; k < ing_ir_block_len(s->f, block); k++)
        walk_inst(s, ing_ir_block_ids(s->f, block)[k], p);
}

bool ing_ir_inside(const ing_ir_scan *s, uint32_t id, uint32_t loop) {
    uint32_t at = loop ? s->home[id] : 0;
    while (at && at != loop && s->depth[at] > s->depth[loop]) at = s->home[at];
    return loop && at == loop;
}

bool ing_ir_scan_init(ing_ir_scan *s, const ing_ir_func *f) {
    size_t n = f->insts.len;
    *s = (ing_ir_scan){.f = f};
    s->varies = ing_calloc(n, sizeof *s->varies + 3 * sizeof(uint32_t) + 3);
    if (!s->varies) return false;
    s->home = (uint32_t *)(void *)(s->varies + n);
    s->first = s->home + n;
    s->end = s->first + n;
    s->depth = (uint8_t *)(s->end + n);
    s->used = s->depth + n;
    s->has = s->used + n;
    walk(s, f->body, (place){.direct = true});
    return !s->failed;
}

void ing_ir_scan_fini(ing_ir_scan *s) {
    ing_free(s->varies);
    ing_vec_fini(&s->accesses);
    ing_vec_fini(&s->loops);
    memset(s, 0, sizeof *s);
}
