/* What must be known before the first line of a function is written: which functions the
 * task reaches, which back edges poll for cancellation, which functions can stop and so
 * return a status, which loops are too long to be vectorised. Called once per module by llvm.c; changes nothing in the IR.
 *
 *  PLAN1 A loop polls when its body may execute many back edges: it holds a WHILE, a loop
 *     whose span (product of constant trip counts) is unknown or above SHORT_SPAN, or a
 *     call of a function that does. A WHILE polls, unless it is brief: it ends when a number has lost its
 *     ones or digits (src/ir/brief.c). So an innermost loop never pays, and loops that LLVM would unroll
 *     away do not stop their parent from being vectorised.
 *  PLAN2 A function stops when it has a CHECK, polls, or calls one that stops; the others
 *     return their plain value.
 *  PLAN3 A function's accesses may join the access group of the parallel loop that calls it
 *     only when no access can be to memory shared by iterations by accident: locals that
 *     LLVM turns into registers are fine, indexed locals and ref parameters are not (all
 *     iterations share the alloca once it is inlined), nor is the context (RANDOM).
 *  PLAN4 A loop of more than VECTOR_SIZE instructions, callees included, stays scalar below
 *     opt_level 3: the time of LLVM's loop vectoriser grows with the square of the body.
 *  PLAN5 A loop that runs fewer than FEW_TRIPS times, or less than MASKED_TRIPS and no multiple of four,
 *     stays scalar: LLVM would vectorise it with masks. It counts as a short span.
 *  PLAN6 Calls in a loop of up to INLINE_SIZE instructions, callees included, are inlined, with what
 *     the callees call, up to INLINE_ALL instructions in all loops of a task: a call that is
 *     left keeps a loop from being vectorised. Elsewhere LLVM chooses, and funcs are shared.
 *  PLAN7 A loop that stores to an array in a branch and reads it at another place stays scalar: a
 *     read that overlaps what was just written under a mask waits until that is in the cache. Rows
 *     other than the one that is written to do not count.
 *  PLAN8 A loop that writes every m-th place, m up to MOST_STEPS, and has no branches is vectorised with
 *     stores of single elements. Other loops that write every m-th place stay scalar.
 *  PLAN9 A task has vectors of 512 bits where an innermost loop divides, takes roots or reads at places that
 *     it computes from floats or reads itself, or does DENSE halves as much arithmetic, that of subscripts
 *     apart, as it reads and writes elements of arrays, and draws no random numbers; and stores no vectors of few members; else, and in
 *     lanes (src/pass/lanes.h), of 256, of which more begin and end with lines of memory. Where the vector library is
 *     called, its functions decide (VEC5 in llvm_math.c).
 *  PLAN10 Where a parallel loop could be vectorised but for loops of up to FULL_TRIPS iterations in it, a
 *     constant number, they are unrolled, when all is FULL_SIZE instructions at most: else LLVM leaves those
 *     of more than some 150 instructions, or makes vectors of their few iterations. Loops that are longer,
 *     WHILE, exits, atomics, checks and services keep the parallel loop, and so these, as they are. Loops
 *     around the parallel one do not matter.
 *  PLAN11 A math function stands alone outside of all loops and where the innermost loop around it is never
 *     vectorised (a WHILE; it has what PLAN10 names in it); in a func when that is so at every call (VEC7). */
#include "gen/gen_int.h"
#include "ir/access.h"

/* Loops up to this many iterations in all count as straight code; those of a brief WHILE. */
enum { SHORT_SPAN = 1024, BRIEF_SPAN = 64 };

/* PLAN4. Seconds in the loop vectoriser and in all of LLVM, of a chain of dependent float
 * operations in branches: 0.9 of 1.5 at 7,500 instructions, 12.5 of 15.5 at 22,500. */
enum { VECTOR_SIZE = 6000 };

/* PLAN5. LLVM covers fewer than 16 iterations with masks. A 6 x 6 Cholesky factorisation of each of
 * 32,768 items: 7.5 ms with masks, 2.0 without. */
enum { FEW_TRIPS = 16, MASKED_TRIPS = 8 };

/* PLAN7. 768 x 768 cells, red ones and then black ones: 1.6 ms with masks, 0.77 without. */
enum { MOST_TOUCHED = 64 };

/* PLAN8. 768 x 768 cells, red ones and then black ones: 0.50 ms without vectors, 0.95 scattered, 0.35 under
 * masks, 0.26 with single stores. Of every 8th cell, vectors of f32 take an eighth more time. */
enum { MOST_STEPS = 4 };

/* PLAN9. Time with 256 bits by time with 512, Zen 4: advection 1.2, gravity 1.1, rays and triangles 1.2, lattice
 * Boltzmann 1.1, and without this rule quaternions 0.9, particles 0.8, triangular loops 0.7, life 0.8. */
enum { MOST_PACKED = 8 };

/* PLAN9, in halves. Time with 256 bits by time with 512, Zen 5, where there is that much arithmetic: medians of
 * 3 x 3 1.75, a level set 1.5, densities of particles 1.7, distances 1.2, bits 2.0; where there is less: a
 * filter of 60 numbers 0.8, stencils 0.8 to 1.1, products of matrices and vectors 0.9 to 1.2. */
enum { DENSE = 3 };

/* Iterations that LLVM surely unrolls. */
enum { UNROLLED = 8 };

/* PLAN10. 200,000 points moved by 4 vortices in three stages, 12 powers for each: 12.0 ms with vectors of the 4
 * vortices, 1.5 of points. 5 steps of Newton towards the rotation of each of 50,000 matrices: 2.6 ms, 0.47. */
enum { FULL_TRIPS = 8, FULL_SIZE = 2000 };

/* PLAN6. 30 funcs in a loop over 2**20 elements: 97 ms with two calls that LLVM leaves, 33 without.
 * Milliseconds of processor time for 100 calls of 24 instructions: 80 as LLVM chooses, 100. */
enum { INLINE_SIZE = 4000, INLINE_ALL = 8000 };

typedef ing_gen_edge edge;

typedef struct touch { /* an access to an array */
    uint32_t array, elem, loop;
    bool stores, in_branch;
} touch;

typedef struct level { /* an open block of the walk */
    uint32_t inst, block, pos;
    uint64_t inner; /* back edges that one pass through it may execute, saturating */
    uint64_t size;  /* instructions so far, saturating; callees once they are known */
    uint64_t called, inlined; /* those of callees alone; those that PLAN6 counted */
    uint64_t grown;           /* PLAN10: of loops written out */
    bool knotty;              /* PLAN11: what keeps a loop from being vectorised */
    uint32_t loop;            /* the innermost one that is open, itself included */
    uint32_t touched;         /* accesses before it */
    bool in_else;
    /* it stores to vectors that lie in an array, of up to MOST_PACKED members */
    bool packed;
    bool heavy;  /* what PLAN9 looks for stands in it, in branches too */
    bool around; /* the parallel loop stands in it */
    /* PLAN9: arithmetic, accesses to arrays; loops in it apart */
    uint64_t ops, touches;
} level;

typedef struct walk {
    ing_gen *g;
    uint32_t fi;
    bool final;       /* callees are known: decide about loops */
    uint64_t inlined; /* instructions that were given to PLAN6 so far */
    ing_vec(level) levels;
    ing_vec(touch) touched; /* in open loops */
    bool wide, math; /* PLAN9: some loop wants it; the vector library is called */
} walk;

static uint64_t sat_mul(uint64_t a, uint64_t b) {
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t sat_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Iterations of a LOOP at most. */
static uint64_t trip_count(const ing_ir_func *f, const ing_ir_inst *loop) {
    uint64_t n;
    return ing_ir_most_trips(f, loop, &n) ? n : UINT64_MAX;
}

/* PLAN5 */
static bool is_short(const ing_ir_func *f, uint32_t loop) {
    const ing_ir_inst *i = &f->insts.at[loop];
    uint64_t n;
    if (ing_ir_trips(f, i->a, i->b, &n)) return n < MASKED_TRIPS && n % 4;
    return trip_count(f, i) < FEW_TRIPS;
}

static bool open_level(walk *w, uint32_t inst, uint32_t block) {
    const ing_ir_inst *i = &w->g->m->funcs.at[w->fi]->insts.at[inst];
    uint32_t around = w->levels.len ? w->levels.at[w->levels.len - 1].loop : 0;
    level l = {.inst = inst, .block = block, .loop = around, .touched = w->touched.len};
    if (i->op == ING_OP_LOOP || i->op == ING_OP_WHILE) l.loop = inst;
    return ing_vec_push(&w->levels, l);
}

/* Are they places of different rows: is some subscript, which no iteration of the loop changes, more of one than of
 * the other by a constant? */
static bool is_other_row(const ing_ir_func *f, uint32_t loop, uint32_t elem,
                         uint32_t other) {
    const ing_ir_inst *a = &f->insts.at[elem], *b = &f->insts.at[other];
    bool differs = false;
    for (uint32_t k = 0; !differs && k < a->c && k < b->c; k++) {
        ing_ir_form x, y;
        ing_ir_form_of(f, f->extra.at[a->b + k], &x);
        ing_ir_form_of(f, f->extra.at[b->b + k], &y);
        bool same = x.known && y.known && x.n == y.n && x.bits >= 32 && y.bits >= 32;
        for (uint32_t n = 0; same && n < x.n; n++)
            same = x.of[n] == y.of[n] && x.times[n] == y.times[n] && x.of[n] < loop;
        differs = same && (uint32_t)x.constant != (uint32_t)y.constant;
    }
    return differs;
}

/* PLAN7, of a LOOP whose body has been walked. */
static bool stalls(const walk *w, const level *l) {
    const ing_ir_func *f = w->g->m->funcs.at[w->fi];
    if (w->touched.len - l->touched > MOST_TOUCHED) return false;
    for (uint32_t i = l->touched; i < w->touched.len; i++)
        for (uint32_t j = l->touched; j < w->touched.len; j++) {
            const touch *s = &w->touched.at[i], *r = &w->touched.at[j];
            if (s->stores && s->in_branch && !r->stores && r->array == s->array &&
                !ing_ir_same_place(f, s->elem, r->elem) &&
                !is_other_row(f, l->inst, s->elem, r->elem))
                return true;
        }
    return false;
}

/* PLAN6, of a LOOP or WHILE whose body has been walked. */
static void decide_calls(walk *w, level *l) {
    uint64_t more = l->called - l->inlined;
    if (!more || l->size > INLINE_SIZE || more > INLINE_ALL - w->inlined) return;
    w->g->plans[w->fi].loops[l->inst] |= ING_GEN_INLINE;
    w->inlined += more;
    l->inlined = l->called;
}

/* PLAN9: a place that is computed from floats or read from an array. */
static bool is_gathered(const ing_ir_func *f, uint32_t elem) {
    const ing_ir_inst *i = &f->insts.at[elem];
    for (uint32_t k = 0; i->op == ING_OP_ELEM && k < i->c; k++) {
        ing_ir_form form;
        ing_ir_form_of(f, f->extra.at[i->b + k], &form);
        for (uint32_t n = 0; n < form.n; n++) {
            const ing_ir_inst *v = &f->insts.at[form.of[n]];
            if (v->op == ING_OP_CAST &&
                ing_dtype_is_float((ing_dtype)f->insts.at[v->a].type))
                return true;
            if (v->op == ING_OP_LOAD && ing_ir_root(f, v->a, NULL)->op == ING_OP_ARRAY)
                return true;
        }
    }
    return false;
}

/* PLAN9: LLVM puts members of vectors into order before it stores them. */
static bool is_packed(const walk *w, const ing_ir_inst *i) {
    uint32_t elem = 0;
    const ing_ir_func *f = w->g->m->funcs.at[w->fi];
    if (i->op != ING_OP_STORE && i->op != ING_OP_ATOMIC) return false;
    if (ing_ir_root(f, i->a, &elem)->op != ING_OP_ARRAY || !elem) return false;
    const ing_type_info *t = ing_ir_type(w->g->m, f->insts.at[elem].type);
    const ing_type_info *v = ing_ir_type(w->g->m, t->elem);
    return v->kind == ING_TYPE_TENSOR &&
           v->size <= MOST_PACKED * ing_dtype_bytes(v->dtype);
}

static bool is_heavy(const ing_ir_func *f, const ing_ir_inst *i) {
    uint32_t elem;
    bool real = i->type == ING_F32 || i->type == ING_F64;
    if (i->op == ING_OP_SQRT || i->op == ING_OP_RSQRT) return real;
    if (i->op == ING_OP_DIV) return real && f->insts.at[i->b].op != ING_OP_CONST;
    if (i->op != ING_OP_LOAD) return false;
    const ing_ir_inst *root = ing_ir_root(f, i->a, &elem);
    return root->op == ING_OP_ARRAY && elem && is_gathered(f, elem);
}

/* PLAN8: no calls, no branches, and steps that vectors pay for. */
static bool spreads(const ing_ir_func *f, uint32_t loop) {
    const uint32_t *ids = &f->extra.at[f->insts.at[loop].c + 1];
    for (uint32_t k = 0; k < ids[-1]; k++) {
        const ing_ir_inst *i = &f->insts.at[ids[k]];
        if (ing_op_class_of(i->op) >= ING_OPC_SERVICE) return false;
        if (i->op == ING_OP_MUL && i->a == loop &&
            f->insts.at[i->b].op == ING_OP_CONST &&
            ing_ir_const_bits(&f->insts.at[i->b]) > MOST_STEPS)
            return false;
    }
    return true;
}

/* PLAN10, of a LOOP whose body has been walked; keep_full has the last word. Gives how often its
 * instructions are written. */
static uint64_t decide_full(walk *w, const level *l) {
    ing_gen_fplan *p = &w->g->plans[w->fi];
    const ing_ir_func *f = w->g->m->funcs.at[w->fi];
    const ing_ir_inst *i = &f->insts.at[l->inst];
    uint64_t n;
    if (i->flags & ING_IR_PARALLEL || l->around) return 1;
    if (i->flags & ING_IR_RARE || !ing_ir_trips(f, i->a, i->b, &n) || n > FULL_TRIPS) {
        p->knotty = true;
        return 1;
    }
    p->loops[l->inst] |= ING_GEN_FULL;
    return n;
}

/* PLAN10: what LLVM's loop vectoriser refuses. */
static bool is_knotty(const ing_ir_func *f, const ing_ir_inst *i, bool in_loop) {
    switch (i->op) {
    case ING_OP_ATOMIC:
        return !(i->flags & ING_IR_PRIVATE) &&
               ing_ir_root(f, i->a, NULL)->op != ING_OP_ALLOCA;
    case ING_OP_LOAD: return i->flags & ING_IR_VOLATILE;
    case ING_OP_RETURN: return in_loop;
    case ING_OP_CAS:
    case ING_OP_WHILE:
    case ING_OP_BREAK:
    case ING_OP_CHECK: return true;
    default: return ing_op_class_of(i->op) == ING_OPC_SERVICE;
    }
}

/* PLAN11, of a LOOP or WHILE whose body has been walked; what it is to those around it. */
static void decide_math(walk *w, level *l) {
    const ing_ir_func *f = w->g->m->funcs.at[w->fi];
    const ing_ir_inst *i = &f->insts.at[l->inst];
    uint64_t n;
    if (l->knotty || i->op == ING_OP_WHILE)
        w->g->plans[w->fi].loops[l->inst] |= ING_GEN_KNOTTY;
    l->knotty |= i->op == ING_OP_WHILE || i->flags & ING_IR_RARE ||
                 !ing_ir_trips(f, i->a, i->b, &n) || n > FULL_TRIPS;
}

/* PLAN1, PLAN4, PLAN5, PLAN7 and PLAN8, of a LOOP whose body has been walked. */
static void decide_loop(walk *w, const level *l) {
    ing_gen_fplan *p = &w->g->plans[w->fi];
    if (l->inner > SHORT_SPAN) {
        p->loops[l->inst] |= ING_GEN_POLLS;
        p->polls = true;
    }
    if (l->size > VECTOR_SIZE && w->g->o->opt_level < 3)
        p->loops[l->inst] |= ING_GEN_SCALAR;
    const ing_ir_func *f = w->g->m->funcs.at[w->fi];
    const ing_ir_inst *i = &f->insts.at[l->inst];
    bool strided = i->flags & ING_IR_STRIDED;
    if (stalls(w, l) || is_short(f, l->inst) || (strided && !spreads(f, l->inst)))
        p->loops[l->inst] |= ING_GEN_SCALAR;
    if (i->flags & ING_IR_RARE) p->loops[l->inst] |= ING_GEN_SCALAR | ING_GEN_RARE;
    if (strided && !(p->loops[l->inst] & ING_GEN_SCALAR)) {
        p->loops[l->inst] |= ING_GEN_SPREAD;
        w->g->spreads = true;
    }
    bool lanes = i->flags & ING_IR_ORDERED;
    bool dense = l->ops && 2 * l->ops >= DENSE * l->touches;
    w->wide |= (l->heavy || dense) && !l->packed && !lanes && l->inner <= UNROLLED &&
               !(p->loops[l->inst] & ING_GEN_SCALAR);
    if (i->flags & ING_IR_PARALLEL && l->inner <= UNROLLED &&
        !(p->loops[l->inst] & ING_GEN_SCALAR))
        p->loops[l->inst] |= ING_GEN_WIDE;
}

/* The block at the top of the walk is done: account for it in its parent. Returns false
 * when memory ran out. */
static bool close_level(walk *w) {
    level l = w->levels.at[w->levels.len - 1];
    ing_gen_fplan *p = &w->g->plans[w->fi];
    const ing_ir_func *f = w->g->m->funcs.at[w->fi];
    const ing_ir_inst *i = &f->insts.at[l.inst];
    uint64_t span = l.inner;
    w->levels.len--;
    bool loop = i->op == ING_OP_LOOP || i->op == ING_OP_WHILE;
    if (w->final && loop) decide_math(w, &l);
    if (l.inst == 0) {
        p->runs_long |= l.inner > SHORT_SPAN;
        p->size = l.size;
        p->grown = l.grown;
        p->heavy |= l.heavy;
        p->ops = l.ops;
        p->touches = l.touches;
        return true;
    }
    if (w->final && loop) decide_calls(w, &l);
    if (i->op == ING_OP_LOOP) {
        if (w->final) decide_loop(w, &l);
        if (w->final) l.grown = sat_mul(l.grown, decide_full(w, &l));
        span = sat_mul(trip_count(f, i), l.inner ? l.inner : 1);
    } else if (i->op == ING_OP_WHILE && ing_ir_is_brief(f, l.inst)) {
        span = BRIEF_SPAN;
    } else if (i->op == ING_OP_WHILE) {
        if (w->final) {
            p->loops[l.inst] |= ING_GEN_POLLS;
            p->polls = true;
        }
        span = UINT64_MAX;
    }
    if (loop) w->touched.len = l.touched;
    level *up = &w->levels.at[w->levels.len - 1];
    up->inner = sat_add(up->inner, span);
    up->size = sat_add(up->size, l.size);
    up->grown = sat_add(up->grown, l.grown);
    up->called = sat_add(up->called, l.called);
    up->inlined = sat_add(up->inlined, l.inlined);
    up->heavy |= l.heavy;
    up->packed |= l.packed;
    if (i->op == ING_OP_IF || (w->final && p->loops[l.inst] & ING_GEN_FULL)) {
        up->ops = sat_add(up->ops, l.ops);
        up->touches = sat_add(up->touches, l.touches);
    }
    up->around |= l.around || (i->op == ING_OP_LOOP && i->flags & ING_IR_PARALLEL);
    up->knotty |= l.knotty;
    if (i->op != ING_OP_IF || l.in_else || !i->c) return true;
    if (!open_level(w, l.inst, i->c)) return false;
    w->levels.at[w->levels.len - 1].in_else = true;
    return true;
}

static bool visit_call(walk *w, const ing_ir_inst *i) {
    if (w->final) {
        level *l = &w->levels.at[w->levels.len - 1];
        if (w->g->plans[i->a].runs_long) l->inner = UINT64_MAX;
        l->size = sat_add(l->size, w->g->plans[i->a].size);
        l->called = sat_add(l->called, w->g->plans[i->a].size);
        l->heavy |= w->g->plans[i->a].heavy;
        l->ops = sat_add(l->ops, w->g->plans[i->a].ops);
        l->touches = sat_add(l->touches, w->g->plans[i->a].touches);
        l->grown = sat_add(l->grown, w->g->plans[i->a].grown);
        w->g->plans[w->fi].knotty |= w->g->plans[i->a].knotty;
        l->knotty |= w->g->plans[i->a].knotty;
        return true;
    }
    edge x = {w->fi, i->a, w->levels.at[w->levels.len - 1].loop};
    return ing_vec_push(&w->g->edges, x);
}

/* Are the subscripts the same sums? */
static bool is_same(const ing_ir_func *f, uint32_t elem, uint32_t other) {
    const ing_ir_inst *a = &f->insts.at[elem], *b = &f->insts.at[other];
    bool same = a->c == b->c;
    for (uint32_t k = 0; same && k < a->c; k++) {
        ing_ir_form x, y;
        ing_ir_form_of(f, f->extra.at[a->b + k], &x);
        ing_ir_form_of(f, f->extra.at[b->b + k], &y);
        same = x.known && y.known && ing_ir_form_same(&x, &y);
    }
    return same;
}

/* PLAN9: is that place read or written before, in the loop at hand? */
static bool is_known(const walk *w, const level *l, const touch *x) {
    uint32_t first = w->touched.len > MOST_TOUCHED ? w->touched.len - MOST_TOUCHED : 0;
    for (uint32_t k = w->touched.len; k-- > first;) {
        const touch *t = &w->touched.at[k];
        if (t->loop == l->loop && t->array == x->array && t->stores == x->stores &&
            is_same(w->g->m->funcs.at[w->fi], t->elem, x->elem))
            return true;
    }
    return false;
}

static bool visit_access(walk *w, const ing_ir_inst *i) {
    const ing_ir_func *f = w->g->m->funcs.at[w->fi];
    level *l = &w->levels.at[w->levels.len - 1];
    touch x = {.loop = l->loop,
               .stores = i->op != ING_OP_LOAD,
               .in_branch = f->insts.at[l->inst].op == ING_OP_IF};
    if (!w->final || !l->loop) return true;
    const ing_ir_inst *root = ing_ir_root(f, i->a, &x.elem);
    x.array = root->a;
    l->touches += root->op == ING_OP_ARRAY && !(x.elem && is_known(w, l, &x));
    return root->op != ING_OP_ARRAY || !x.elem || ing_vec_push(&w->touched, x);
}

static bool visit(walk *w, uint32_t id) {
    const ing_ir_inst *i = &w->g->m->funcs.at[w->fi]->insts.at[id];
    level *l = &w->levels.at[w->levels.len - 1];
    l->size = sat_add(l->size, 1);
    l->grown = sat_add(l->grown, 1);
    bool knotty = is_knotty(w->g->m->funcs.at[w->fi], i, l->loop);
    w->g->plans[w->fi].knotty |= knotty;
    l->knotty |= knotty && i->op != ING_OP_WHILE;
    l->heavy |= w->final && is_heavy(w->g->m->funcs.at[w->fi], i);
    l->ops += ing_op_is_arith(i->op) && !(i->flags & ING_IR_NSW);
    l->packed |= w->final && is_packed(w, i);
    w->math |= ing_gen_calls_vector(w->g, w->g->m->funcs.at[w->fi], i);
    switch (i->op) {
    case ING_OP_IF: return open_level(w, id, i->b);
    case ING_OP_LOOP: return open_level(w, id, i->c);
    case ING_OP_WHILE: return open_level(w, id, i->a);
    case ING_OP_CALL: return visit_call(w, i);
    case ING_OP_LOAD:
    case ING_OP_STORE:
    case ING_OP_ATOMIC: return visit_access(w, i);
    case ING_OP_ROOM:
    case ING_OP_CHECK: w->g->plans[w->fi].stops = true; return true;
    case ING_OP_SEED: w->g->uses_random = true; return true;
    case ING_OP_RANDOM:
        w->g->uses_random = w->g->plans[w->fi].random = true;
        l->touches = UINT64_MAX / DENSE / 4; /* PLAN9: draws are faster in 256 bits */
        return true;
    default: return true;
    }
}

static bool walk_function(walk *w, uint32_t fi) {
    const ing_ir_func *f = w->g->m->funcs.at[fi];
    w->fi = fi;
    if (!open_level(w, 0, f->body)) return false;
    while (w->levels.len) {
        level *l = &w->levels.at[w->levels.len - 1];
        bool ok = l->pos == f->extra.at[l->block]
                      ? close_level(w)
                      : visit(w, f->extra.at[l->block + 1 + l->pos++]);
        if (!ok) return false;
    }
    return true;
}

/* ---- PLAN3 ------------------------------------------------------------------------------ */

/* A local that LLVM surely turns into a register: a scalar used only by whole loads,
 * stores and plain updates. Any other mention of a ref spoils the function. */
static bool groupable(const ing_gen *g, uint32_t fi) {
    const ing_ir_func *f = g->m->funcs.at[fi];
    for (uint32_t k = 0; k < f->n_params; k++)
        if (ing_ir_type(g->m, f->params[k])->kind == ING_TYPE_REF) return false;
    for (uint32_t id = 1; id < f->insts.len; id++) {
        const ing_ir_inst *i = &f->insts.at[id];
        if (ing_op_class_of(i->op) == ING_OPC_SERVICE) return false;
        if (i->op != ING_OP_ALLOCA) continue;
        if (ing_ir_type(g->m, i->type)->elem >= ING_DTYPE_N) return false;
    }
    return true;
}

/* ---- the plan ------------------------------------------------------------------------ */

/* Facts flow from callees to callers (and reachability the other way) until nothing
 * changes; the call graph is shallow, so few rounds are made. */
static void spread_first(ing_gen *g, const edge *at, uint32_t n) {
    g->plans[g->m->tasks.at[0].func].reached = true;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < n; k++) {
            ing_gen_fplan *from = &g->plans[at[k].caller],
                          *to = &g->plans[at[k].callee];
            if (from->reached && !to->reached) again = to->reached = true;
            if (to->runs_long && !from->runs_long) again = from->runs_long = true;
        }
    }
}

static void spread_last(ing_gen *g, const edge *at, uint32_t n) {
    for (uint32_t i = 0; i < g->m->funcs.len; i++) {
        ing_gen_fplan *p = &g->plans[i];
        p->stops |= p->polls;
        p->fuel = p->polls;
        p->draws = p->random;
        p->groupable = groupable(g, i);
    }
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < n; k++) {
            ing_gen_fplan *from = &g->plans[at[k].caller],
                          *to = &g->plans[at[k].callee];
            if (to->stops && !from->stops) again = from->stops = true;
            if (to->fuel && !from->fuel) again = from->fuel = true;
            if (to->draws && !from->draws) again = from->draws = true;
            if (!to->groupable && from->groupable) {
                from->groupable = false;
                again = true;
            }
        }
    }
}

/* The second walk goes from callees to callers: their sizes are known. */
static bool decide_loops(ing_gen *g, walk *w, const uint32_t *order) {
    w->final = true;
    for (uint32_t k = 0; k < g->m->funcs.len; k++) {
        uint32_t i = order[k];
        g->plans[i].loops =
            ING_NEW_ARRAY(&g->arena, (size_t)g->m->funcs.at[i]->insts.len + 1, uint8_t);
        if (!g->plans[i].loops || !walk_function(w, i)) return false;
    }
    return true;
}

/* PLAN6: what a function calls that goes into a loop goes there too. */
static void spread_inline(ing_gen *g, const edge *at, uint32_t n) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < n; k++) {
            const ing_gen_fplan *from = &g->plans[at[k].caller];
            ing_gen_fplan *to = &g->plans[at[k].callee];
            bool in = from->inlined || from->loops[at[k].loop] & ING_GEN_INLINE;
            if (in && !to->inlined) again = to->inlined = true;
        }
    }
}

/* PLAN11 */
static void spread_exposed(ing_gen *g, const edge *at, uint32_t n) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < n; k++) {
            const ing_gen_fplan *from = &g->plans[at[k].caller];
            ing_gen_fplan *to = &g->plans[at[k].callee];
            bool in = at[k].loop ? !(from->loops[at[k].loop] & ING_GEN_KNOTTY)
                                 : from->exposed;
            if (in && !to->exposed) again = to->exposed = true;
        }
    }
}

/* PLAN10. A task has one parallel loop, and what it calls is called there. */
static void keep_full(ing_gen *g) {
    const ing_gen_fplan *task = &g->plans[g->m->tasks.at[0].func];
    const ing_ir_func *f = g->m->funcs.at[g->m->tasks.at[0].func];
    bool any = false;
    for (uint32_t id = 1; id < f->insts.len; id++)
        any |= f->insts.at[id].op == ING_OP_LOOP &&
               f->insts.at[id].flags & ING_IR_PARALLEL &&
               !(task->loops[id] & ING_GEN_SCALAR);
    if (any && !task->knotty && task->grown <= FULL_SIZE) return;
    for (uint32_t fi = 0; fi < g->m->funcs.len; fi++)
        for (uint32_t id = 1; id < g->m->funcs.at[fi]->insts.len; id++)
            g->plans[fi].loops[id] &= (uint8_t)~ING_GEN_FULL;
}

static bool make_plan(ing_gen *g, walk *w, const uint32_t *order) {
    for (uint32_t i = 0; i < g->m->funcs.len; i++)
        if (!walk_function(w, i)) return false;
    spread_first(g, g->edges.at, g->edges.len);
    if (!decide_loops(g, w, order)) return false;
    spread_last(g, g->edges.at, g->edges.len);
    spread_inline(g, g->edges.at, g->edges.len);
    spread_exposed(g, g->edges.at, g->edges.len);
    keep_full(g);
    g->wide = w->wide && !w->math;
    return true;
}

ing_status ing_gen_plan(ing_gen *g) {
    walk w = {.g = g};
    uint32_t *order = NULL;
    ING_TRY(ing_ir_call_order(g->m, &order, g->e));
    g->plans = ING_NEW_ARRAY(&g->arena, (size_t)g->m->funcs.len + 1, ing_gen_fplan);
    bool ok = g->plans && make_plan(g, &w, order);
    ing_status s =
        ok ? ing_gen_parts(g, order)
           : ing_fail(g->e, ING_MEMORY, "out of memory while generating code");
    ing_vec_fini(&w.levels);
    ing_vec_fini(&w.touched);
    ing_free(order);
    return s;
}
