/* The interpreter: runs a task as native code would, against the same context (abi.h), and
 * is the oracle that native code is compared with. Called by the runtime and by tests, from
 * several threads at once on one module. Scalar meaning is eval.c's alone. The module must
 * have been verified: nothing is checked here but calls that would not end. */
#include "gen/abi.h"
#include "ir/interp.h"

#include <string.h>

typedef struct segment { /* frames live in segments that never move: refs point in */
    struct segment *prev, *next;
    size_t size, used;
    uint64_t bytes[];
} segment;

typedef struct call { /* where a caller goes on */
    const ing_flat *flat;
    uint32_t at, d; /* d: place of the result */
    uint8_t *fp;
    segment *seg; /* of its frame, and how much of it was used */
    size_t used;
} call;

typedef struct vm {
    const ing_ir_mod *m;
    ing_ctx *ctx;
    int64_t begin, end, chunk;
    ing_flat *flats;
    uint32_t n_flats;
    ing_vec(call) calls;
    segment *seg;
    int32_t stopped;
} vm;

enum { SEGMENT_BYTES = 64 * 1024 - 64 };

/* ---- frames -------------------------------------------------------------------------- */

static segment *segment_new(vm *v, size_t need) {
    size_t size = need > SEGMENT_BYTES ? need : SEGMENT_BYTES;
    segment *s = ing_malloc(sizeof *s + size);
    if (!s) return NULL;
    *s = (segment){.prev = v->seg, .size = size};
    if (v->seg) v->seg->next = s;
    return s;
}

static void free_segments(segment *s) {
    while (s && s->prev) s = s->prev;
    while (s) {
        segment *next = s->next;
        ing_free(s);
        s = next;
    }
}

/* `n` bytes (a multiple of 8); segments of deeper calls are kept for the next one. */
static uint8_t *frame_push(vm *v, size_t n) {
    while (!v->seg || v->seg->size - v->seg->used < n) {
        segment *next = v->seg ? v->seg->next : NULL;
        if (!next && !(next = segment_new(v, n))) return NULL;
        next->used = 0;
        v->seg = next;
    }
    uint8_t *p = (uint8_t *)v->seg->bytes + v->seg->used;
    v->seg->used += n;
    return p;
}

/* ---- errors -------------------------------------------------------------------------- */

/* The first error of a launch wins; only its writer touches the rest of the slot. */
static void stop(vm *v, int32_t code, const ing_flat *f, uint32_t id) {
    ing_error_slot *e = v->ctx->error;
    int32_t none = 0;
    v->stopped = code;
    if (!e) return;
    if (__atomic_compare_exchange_n(&e->code, &none, code, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        e->func = (uint32_t)(f - v->flats);
        e->node = id ? ing_ir_at(f->func, id)->loc : 0;
    }
}

/* At a back edge: true when the task must stop. */
static bool poll(vm *v) {
    if (--v->ctx->fuel > 0) return false;
    if (!v->ctx->poll) {
        v->ctx->fuel = ING_ABI_FUEL;
        return false;
    }
    if (v->ctx->poll(v->ctx) == 0) return false;
    v->stopped = ING_ABI_CANCELLED; /* whoever cancels fills the error slot */
    return true;
}

/* ---- memory --------------------------------------------------------------------------- */

#define WORD(off) (*(uint64_t *)(void *)(fp + (off)))

static uint64_t load(ing_dtype t, const uint8_t *p) {
    uint64_t w = 0;
    switch (ing_dtype_bytes(t)) {
    case 1: w = *p; break;
    case 2: memcpy(&w, p, 2); break;
    case 4: memcpy(&w, p, 4); break;
    default: memcpy(&w, p, 8); break;
    }
    return t == ING_U1 ? w != 0 : ing_ir_norm(t, w);
}

static void store(ing_dtype t, uint8_t *p, uint64_t w) {
    switch (ing_dtype_bytes(t)) {
    case 1: *p = (uint8_t)w; break;
    case 2: memcpy(p, &w, 2); break;
    case 4: memcpy(p, &w, 4); break;
    default: memcpy(p, &w, 8); break;
    }
}

static uint64_t updated(ing_ir_atomic how, ing_dtype t, uint64_t old, uint64_t w) {
    static const uint16_t ops[ING_IR_ATOMIC_N] = {ING_OP_ADD, ING_OP_SUB, ING_OP_MUL,
                                                  ING_OP_MIN, ING_OP_MAX, ING_OP_AND,
                                                  ING_OP_OR,  ING_OP_XOR, ING_OP_NONE};
    uint64_t r = w;
    if (how != ING_IR_ATOMIC_XCHG) ing_ir_eval(ops[how], t, old, w, &r);
    return r;
}

/* One compare-and-swap loop for every update: the oracle needs to be right, not quick. */
#define CAS_LOOP(T)                                                                 \
    do {                                                                            \
        T raw = __atomic_load_n((T *)(void *)p, __ATOMIC_RELAXED), want;            \
        do {                                                                        \
            old = t == ING_U1 ? raw != 0 : ing_ir_norm(t, (uint64_t)raw);           \
            want = (T)updated(how, t, old, w);                                      \
        } while (!__atomic_compare_exchange_n((T *)(void *)p, &raw, want, true,     \
                                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)); \
    } while (0)

static uint64_t atomic(ing_ir_atomic how, ing_dtype t, uint8_t *p, uint64_t w,
                       bool plain) {
    uint64_t old;
    if (plain) {
        old = load(t, p);
        store(t, p, updated(how, t, old, w));
        return old;
    }
    switch (ing_dtype_bytes(t)) {
    case 1: CAS_LOOP(uint8_t); break;
    case 2: CAS_LOOP(uint16_t); break;
    case 4: CAS_LOOP(uint32_t); break;
    default: CAS_LOOP(uint64_t); break;
    }
    return old;
}

static bool is_plain(const vm *v, const ing_ir_inst *i) {
    return i->flags & ING_IR_PRIVATE || (i->flags & ING_IR_TALLY && v->ctx->tallies);
}

#define CAS_ONCE(T)                                                          \
    do {                                                                     \
        T raw = (T)expected;                                                 \
        __atomic_compare_exchange_n((T *)(void *)p, &raw, (T)desired, false, \
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);     \
        old = (uint64_t)raw;                                                 \
    } while (0)

static uint64_t compare_and_swap(ing_dtype t, uint8_t *p, uint64_t expected,
                                 uint64_t desired) {
    uint64_t old;
    switch (ing_dtype_bytes(t)) {
    case 1: CAS_ONCE(uint8_t); break;
    case 2: CAS_ONCE(uint16_t); break;
    case 4: CAS_ONCE(uint32_t); break;
    default: CAS_ONCE(uint64_t); break;
    }
    return t == ING_U1 ? old != 0 : ing_ir_norm(t, old);
}

/* Extent of an axis. */
static uint64_t extent(const vm *v, const ing_flat *f, const ing_step *s,
                       const uint8_t *fp) {
    const ing_ir_inst *i = ing_ir_at(f->func, s->id);
    const ing_place *place = ing_ir_type(v->m, ing_ir_at(f->func, i->a)->type)->place;
    if (place) return (uint64_t)ing_place_extent(place, s->b);
    return ((const uint64_t *)(uintptr_t)WORD(s->a))[1 + s->b];
}

/* Address of an element of a field: each level takes its part of the index along its axis,
 * the outermost what is left. Computed as unsigned, as below. */
static uint64_t field_element(const ing_flat *f, const ing_step *s,
                              const ing_place *place, const uint32_t *idx,
                              const uint8_t *fp) {
    uint64_t rest[ING_MAX_NDIM];
    uint64_t at = *(const uint64_t *)(uintptr_t)WORD(s->a) + (uint64_t)place->at;
    for (uint32_t k = 0; k < place->ndim; k++) rest[k] = WORD(f->off[idx[k]]);
    uint32_t inner_of[ING_MAX_NDIM] = {0}; /* levels of each axis still to come */
    for (uint32_t k = 0; k < place->n_levels; k++) inner_of[place->level[k].axis]++;
    for (uint32_t k = place->n_levels; k-- > 0;) {
        const ing_level *l = &place->level[k];
        uint64_t n = (uint64_t)l->extent, x = rest[l->axis];
        if (--inner_of[l->axis]) {
            rest[l->axis] = x / n;
            x %= n;
        }
        at += x * (uint64_t)l->stride;
    }
    return at;
}

/* Address of an element: indices by logical axis, extents in the argument words, taken in
 * the order of the layout. Computed as unsigned: an index out of range must not trap here. */
static uint64_t element(const vm *v, const ing_flat *f, const ing_step *s,
                        uint8_t *fp) {
    const ing_ir_inst *i = ing_ir_at(f->func, s->id);
    const uint32_t *idx = f->func->extra.at + i->b;
    const ing_type_info *a = ing_ir_type(v->m, ing_ir_at(f->func, i->a)->type);
    const uint64_t *words = (const uint64_t *)(uintptr_t)WORD(s->a);
    uint64_t linear = 0;
    if (a->place) return field_element(f, s, a->place, idx, fp);
    for (uint32_t k = 0; k < a->rank; k++) {
        uint32_t axis = a->layout[k];
        linear = linear * words[1 + axis] + WORD(f->off[idx[axis]]);
    }
    return words[0] + linear * s->size;
}

/* How many places AXES have, or the index of one of them on an axis. */
static uint64_t places(const ing_flat *f, const ing_step *s, const uint8_t *fp) {
    const ing_ir_inst *i = ing_ir_at(f->func, s->id), *axes = i;
    uint64_t bounds[2 * ING_MAX_NDIM];
    if (i->op == ING_OP_AXIS) axes = ing_ir_at(f->func, i->a);
    for (uint32_t k = 0; k < axes->c; k++)
        bounds[k] =
            *(const uint64_t *)(const void *)(fp +
                                              f->off[f->func->extra.at[axes->b + k]]);
    if (i == axes) return ing_ir_axes_count(bounds, axes->c / 2);
    const uint64_t *number = (const uint64_t *)(const void *)(fp + s->b);
    return ing_ir_norm(s->dtype, ing_ir_axes_index(bounds, axes->c / 2, *number, i->c));
}

/* ---- services -------------------------------------------------------------------------- */

static void run_print(vm *v, const ing_flat *f, const ing_step *s, uint8_t *fp) {
    const ing_ir_inst *i = ing_ir_at(f->func, s->id);
    union {
        ing_printed p;
        uint64_t room[ING_ABI_MAX_PRINT + 2];
    } u;
    if (!v->ctx->print) return;
    u.p = (ing_printed){i->a, (uint32_t)(f - v->flats), i->loc, i->c};
    for (uint32_t k = 0; k < i->c; k++)
        u.p.words[k] = WORD(f->off[f->func->extra.at[i->b + k]]);
    v->ctx->print(v->ctx, &u.p);
}

static void run_detail(vm *v, const ing_flat *f, const ing_step *s, uint8_t *fp) {
    const ing_ir_inst *i = ing_ir_at(f->func, s->id);
    for (uint32_t k = 0; v->ctx->error && k < i->c; k++)
        v->ctx->error->detail[k] = WORD(f->off[f->func->extra.at[i->b + k]]);
}

static void begin_place(vm *v, uint32_t number) {
    v->ctx->place = number;
    ing_ir_random_begin(v->ctx, 0);
}

/* The flag of a DO_WHILE, as ing_graph_next reads it. */
static bool flag_is_set(const ing_step *s, const uint8_t *fp) {
    const uint64_t *words = *(uint64_t *const *)(const void *)(fp + s->a);
    const int32_t *flag = (const int32_t *)(uintptr_t)words[0];
    return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

/* An iteration of a parallel loop begins: random numbers depend on its index alone. */
static void begin_iteration(vm *v, const ing_step *s, uint8_t *fp) {
    if (!s->from) return;
    ing_ir_random_begin(v->ctx, WORD(s->d));
}

/* ---- calls ---------------------------------------------------------------------------- */

typedef struct cursor { /* what runs now */
    const ing_flat *f;
    const ing_step *s;
    uint8_t *fp;
} cursor;

static bool enter(vm *v, cursor *c) {
    const ing_flat *to = &v->flats[c->s->a];
    const ing_ir_inst *i = ing_ir_at(c->f->func, c->s->id);
    call back = {.flat = c->f, .at = (uint32_t)(c->s - c->f->steps.at) + 1};
    back.d = c->s->d;
    back.fp = c->fp;
    back.seg = v->seg;
    back.used = v->seg->used;
    /* calls form no cycle (I7), so a chain never exceeds the number of functions */
    uint8_t *fp = v->calls.len < v->n_flats ? frame_push(v, to->frame) : NULL;
    if (!fp || !ing_vec_push(&v->calls, back)) {
        stop(v, ING_ABI_MEMORY, c->f, c->s->id);
        return false;
    }
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = c->f->func->extra.at[i->b + k];
        ing_type t = to->func->params[k];
        uint32_t n = ing_ir_is_scalar(t) ? 8 : ing_ir_type_size(v->m, t);
        memcpy(fp + to->params[k], c->fp + c->f->off[arg], n);
    }
    *c = (cursor){.f = to, .s = to->steps.at, .fp = fp};
    return true;
}

/* False when the task itself returned. A func that ran off its end returns zero. */
static bool leave(vm *v, cursor *c) {
    if (!v->calls.len) return false;
    call back = v->calls.at[--v->calls.len];
    uint8_t *to = back.fp + back.d;
    if (c->f->func->ret) {
        uint32_t n = c->f->ret_size ? c->f->ret_size : 8;
        bool value = c->s->id && ing_ir_at(c->f->func, c->s->id)->a;
        if (value) {
            memcpy(to, c->fp + c->s->a, n);
        } else {
            memset(to, 0, n);
        }
    }
    v->seg = back.seg;
    v->seg->used = back.used;
    *c = (cursor){.f = back.flat, .s = back.flat->steps.at + back.at, .fp = back.fp};
    return true;
}

/* ---- execution ------------------------------------------------------------------------- */

/* Inputs, memory and aggregates. */
static void run_data(vm *v, const ing_flat *f, const ing_step *s, uint8_t *fp) {
    switch (s->op) {
    case ING_OP_CONST: WORD(s->d) = (uint64_t)s->a | (uint64_t)s->b << 32; break;
    case ING_OP_ARG: WORD(s->d) = load(s->dtype, (uint8_t *)&v->ctx->args[s->a]); break;
    case ING_OP_ARRAY: WORD(s->d) = (uintptr_t)&v->ctx->args[s->a]; break;
    case ING_OP_SEED: WORD(s->d) = ing_ir_seed(v->ctx, s->b, s->a); break;
    case ING_OP_DIM: WORD(s->d) = ing_ir_norm(s->dtype, extent(v, f, s, fp)); break;
    case ING_OP_AXES:
    case ING_OP_AXIS: WORD(s->d) = places(f, s, fp); break;
    case ING_OP_TASK_BEGIN:
        WORD(s->d) = ing_ir_norm(s->dtype, (uint64_t)v->begin);
        break;
    case ING_OP_TASK_END: WORD(s->d) = ing_ir_norm(s->dtype, (uint64_t)v->end); break;
    case ING_OP_TASK_CHUNK: WORD(s->d) = (uint64_t)v->chunk; break;
    case ING_OP_ALLOCA:
        WORD(s->d) = (uintptr_t)(fp + s->d + 8);
        memset(fp + s->d + 8, 0, s->size);
        break;
    case ING_OP_ELEM: WORD(s->d) = element(v, f, s, fp); break;
    case ING_OP_BUFFER: WORD(s->d) = (uintptr_t)(v->ctx->buffer + s->a); break;
    case ING_OP_ADDRESS: WORD(s->d) = WORD(s->a); break;
    case ING_OP_PARTIAL:
        WORD(s->d) = (uintptr_t)v->ctx->partials + 8 * WORD(s->a);
        break;
    case ING_OP_SCRATCH: WORD(s->d) = (uintptr_t)(v->ctx->scratch + WORD(s->a)); break;
    case ING_OP_SET_RET: v->ctx->rets[s->a] = WORD(s->b); break;
    case ING_OP_ATOMIC:
        WORD(s->d) = atomic(s->c, s->dtype, (uint8_t *)(uintptr_t)WORD(s->a),
                            WORD(s->b), is_plain(v, ing_ir_at(f->func, s->id)));
        break;
    case ING_OP_CAS:
        WORD(s->d) = compare_and_swap(s->dtype, (uint8_t *)(uintptr_t)WORD(s->a),
                                      WORD(s->b), WORD(s->c));
        break;
    case ING_OP_RANDOM: WORD(s->d) = ing_ir_random(v->ctx, s->dtype); break;
    case ING_OP_PRINT: run_print(v, f, s, fp); break;
    case ING_OP_DETAIL: run_detail(v, f, s, fp); break;
    case ING_OP_MAKE: memset(fp + s->d, 0, s->size); break;
    case ING_STEP_COPY: memcpy(fp + s->d, fp + s->a, s->size); break;
    case ING_STEP_PLACE: begin_place(v, s->a); break;
    case ING_OP_EXTRACT:
        if (s->dtype) {
            WORD(s->d) = load(s->dtype, fp + s->a + s->b);
        } else {
            memcpy(fp + s->d, fp + s->a + s->b, s->size);
        }
        break;
    case ING_OP_INSERT: {
        uint32_t all = ing_ir_type_size(v->m, ing_ir_at(f->func, s->id)->type);
        memcpy(fp + s->d, fp + s->a, all);
        memcpy(fp + s->d + s->c, fp + s->b, s->size);
        break;
    }
    case ING_OP_MEMBER: WORD(s->d) = WORD(s->a) + s->b; break;
    case ING_OP_MEMBER_DYN: WORD(s->d) = WORD(s->a) + WORD(s->b) * s->size; break;
    default: break;
    }
}

static void run_scalar(const ing_step *s, uint8_t *fp) {
    switch (s->op) {
    case ING_OP_CAST:
        WORD(s->d) = ing_ir_eval_cast(s->from, s->dtype, WORD(s->a));
        break;
    case ING_OP_BITCAST: WORD(s->d) = ing_ir_norm(s->dtype, WORD(s->a)); break;
    case ING_OP_SELECT: {
        uint32_t from = WORD(s->a) ? s->b : s->c;
        memcpy(fp + s->d, fp + from, s->dtype ? 8 : s->size);
        break;
    }
    default: ing_ir_eval(s->op, s->dtype, WORD(s->a), WORD(s->b), &WORD(s->d)); break;
    }
}

static void run_load(const ing_step *s, uint8_t *fp) {
    const uint8_t *p = (const uint8_t *)(uintptr_t)WORD(s->a);
    if (s->dtype) {
        WORD(s->d) = load(s->dtype, p);
    } else {
        memcpy(fp + s->d, p, s->size);
    }
}

static void run_store(const ing_step *s, uint8_t *fp) {
    uint8_t *p = (uint8_t *)(uintptr_t)WORD(s->a);
    if (s->dtype) {
        store(s->dtype, p, WORD(s->b));
    } else {
        memmove(p, fp + s->b, s->size);
    }
}

/* One comparison where speed counts: op.def keeps them together. (Not below a label: a
 * declaration there is C23.) */
_Static_assert(ING_OP_ADD == ING_OP_SET_RET + 1, "after memory");
_Static_assert(ING_OP_SELECT == ING_OP_MAKE - 1, "before aggregates");

static void run(vm *v, cursor c) {
    for (;;) {
        const ing_step *s = c.s++;
        uint8_t *fp = c.fp;
        switch (s->op) {
        case ING_OP_LOAD: run_load(s, fp); break;
        case ING_OP_STORE: run_store(s, fp); break;
        case ING_STEP_JUMP: c.s = c.f->steps.at + s->c; break;
        case ING_STEP_IF_NOT:
            if (!WORD(s->a)) c.s = c.f->steps.at + s->c;
            break;
        case ING_STEP_LOOP:
            WORD(s->d) = WORD(s->a);
            begin_iteration(v, s, fp);
            if ((int64_t)WORD(s->a) >= (int64_t)WORD(s->b)) c.s = c.f->steps.at + s->c;
            break;
        case ING_STEP_NEXT:
            if (poll(v)) return;
            if ((int64_t)++WORD(s->d) >= (int64_t)WORD(s->b)) break;
            begin_iteration(v, s, fp);
            c.s = c.f->steps.at + s->c;
            break;
        case ING_STEP_BACK:
            if (poll(v)) return;
            c.s = c.f->steps.at + s->c;
            break;
        case ING_STEP_AGAIN:
            if (poll(v)) return;
            if (flag_is_set(s, fp)) c.s = c.f->steps.at + s->c;
            break;
        case ING_OP_CALL:
            c.s = s;
            if (!enter(v, &c)) return;
            break;
        case ING_OP_RETURN:
            c.s = s;
            if (!leave(v, &c)) return;
            break;
        case ING_OP_ROOM:
            if (WORD(s->a) <= v->ctx->scratch_bytes) break;
            if (v->ctx->room && !v->ctx->room(v->ctx, WORD(s->a), (int32_t)s->b)) break;
            stop(v, ING_ABI_SCRATCH, c.f, s->id);
            return;
        case ING_OP_CHECK:
            if (WORD(s->a)) break;
            stop(v, (int32_t)s->b, c.f, s->id);
            return;
        default:
            if (s->op >= ING_OP_ADD && s->op <= ING_OP_SELECT) {
                run_scalar(s, fp);
            } else {
                run_data(v, c.f, s, fp);
            }
        }
    }
}

/* Flattens the function and all it reaches; ordinals as in ing_ir_task_funcs. */
static bool prepare(vm *v, uint32_t func) {
    uint32_t *funcs = NULL, n = 0;
    if (ing_ir_func_reaches(v->m, func, &funcs, &n, NULL) != ING_OK) return false;
    uint32_t *ordinal = ing_calloc(v->m->funcs.len, sizeof *ordinal);
    uint8_t *draws = ing_calloc(v->m->funcs.len, 1);
    v->flats = ing_calloc(n, sizeof *v->flats);
    bool ok = ordinal && draws && v->flats;
    if (ok && v->m->funcs.at[func]->kind == ING_IR_KERNEL)
        ok = ing_ir_draws(v->m, draws, NULL) == ING_OK;
    for (uint32_t j = 0; j < n && ok; j++) ordinal[funcs[j]] = j;
    for (uint32_t j = 0; j < n && ok; j++) {
        v->n_flats = j + 1;
        ok = ing_ir_flatten(&v->flats[j], v->m, funcs[j], ordinal, draws);
    }
    ing_free(funcs);
    ing_free(ordinal);
    ing_free(draws);
    return ok;
}

static int32_t run_func(vm v, uint32_t func) {
    struct ing_ctx *ctx = v.ctx;
    uint8_t *fp = NULL;
    ing_ir_random_begin(ctx, 0);
    if (prepare(&v, func)) fp = frame_push(&v, v.flats[0].frame);
    if (fp) {
        run(&v, (cursor){.f = &v.flats[0], .s = v.flats[0].steps.at, .fp = fp});
    } else {
        v.stopped = ING_ABI_MEMORY;
        int32_t none = 0;
        if (ctx->error) {
            __atomic_compare_exchange_n(&ctx->error->code, &none, ING_ABI_MEMORY, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        }
    }
    for (uint32_t j = 0; j < v.n_flats; j++) ing_ir_flat_fini(&v.flats[j]);
    ing_free(v.flats);
    ing_vec_fini(&v.calls);
    free_segments(v.seg);
    return v.stopped;
}

int32_t ing_ir_interp(const ing_ir_mod *m, uint32_t k, struct ing_ctx *ctx,
                      int64_t begin, int64_t end, int64_t chunk) {
    vm v = {.m = m, .ctx = ctx, .begin = begin, .end = end, .chunk = chunk};
    return run_func(v, m->tasks.at[k].func);
}

int32_t ing_ir_interp_lowered(const ing_ir_mod *m, struct ing_ctx *ctx) {
    return run_func((vm){.m = m, .ctx = ctx}, 0);
}
