/* Makes the kernel, and each version of a func that it calls, anew with duals: every
 * instruction is copied, and what gives its result a dual stands right behind it, in the same
 * block, so that control flow stays as it was. Called by forward.c after forward_flow.c, which
 * said what has a shadow. What has a dual there may turn out to have none here (x**0): then
 * zeros stand in where one is needed. */
#include "ad/forward.h"

typedef struct emitter {
    ing_fwd *w;
    const ing_fwd_version *v;
    ing_ir_builder b;
    ing_ir_copy copy;
    /* of each instruction of the original: in the new function, 0 = none */
    uint32_t *dual;
    uint32_t as_is; /* copied without asking the hook */
} emitter;

/* ---- small ------------------------------------------------------------------------------- */

static const ing_ir_inst *at(const emitter *w, uint32_t id) {
    return ing_ir_at(w->copy.from, id);
}

static uint32_t op2(emitter *w, ing_op op, uint32_t a, uint32_t b) {
    return ing_ir_emit(&w->b, op, 0, a, b, 0);
}

static uint32_t op1(emitter *w, ing_op op, uint32_t a) {
    return op2(w, op, a, 0);
}

static uint32_t load(emitter *w, ing_type t, uint32_t ref) {
    return ing_ir_emit(&w->b, ING_OP_LOAD, t, ref, 0, 0);
}

static uint32_t choose(emitter *w, ing_type t, uint32_t cond, uint32_t a, uint32_t b) {
    return ing_ir_emit(&w->b, ING_OP_SELECT, t, cond, a, b);
}

static uint32_t local(emitter *w, ing_type t) {
    ing_type ref = ing_ir_type_ref(w->w->m, t);
    return ing_ir_emit(&w->b, ING_OP_ALLOCA, ref, 0, 0, 0);
}

static uint32_t zero(emitter *w, ing_type t) {
    if (t < ING_DTYPE_N) return ing_ir_const_int(&w->b, (ing_dtype)t, 0);
    return load(w, t, local(w, t)); /* a new local is zeroed */
}

/* The dual of a value, or zeros. */
static uint32_t dual_of(emitter *w, uint32_t id) {
    return w->dual[id] ? w->dual[id] : zero(w, at(w, id)->type);
}

/* Refused, at the place in the kernel that leads there. */
static void refuse(emitter *w, const ing_ir_inst *i, const char *what) {
    uint32_t loc = i->loc;
    if (w->w->status != ING_OK) return;
    for (const ing_fwd_version *v = w->v; v->caller; v = v->caller) loc = v->loc;
    w->w->m->bad_loc = loc;
    w->w->status = ing_fail(w->w->e, ING_COMPILE, "%s", what);
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

/* sum + factor * d, each of them 0 = none */
static uint32_t plus(emitter *w, uint32_t sum, ing_ad_factor f, uint32_t d) {
    if (f.kind == ING_AD_ZERO) return sum;
    if (f.kind == ING_AD_VALUE) d = op2(w, ING_OP_MUL, f.value, d);
    bool minus = f.kind == ING_AD_MINUS;
    if (!sum) return minus ? op1(w, ING_OP_NEG, d) : d;
    return op2(w, minus ? ING_OP_SUB : ING_OP_ADD, sum, d);
}

/* All of the winner's dual, as ing_ad_partial has it; what the other one's is, be it infinite,
 * does not matter. */
static uint32_t winner(emitter *w, ing_type t, uint32_t result, uint32_t y, uint32_t dx,
                       uint32_t dy) {
    return choose(w, t, op2(w, ING_OP_EQ, result, y), dy, dx);
}

static uint32_t arith(emitter *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    bool binary = ing_op_get(i->op)->operands[1] == 'v';
    uint32_t from[2] = {i->a, binary ? i->b : 0}, sum = 0;
    uint32_t x = w->copy.map[i->a], y = binary ? w->copy.map[i->b] : 0;
    if (i->op == ING_OP_MIN || i->op == ING_OP_MAX) {
        if (!w->dual[i->a] && !w->dual[i->b]) return 0;
        uint32_t dx = dual_of(w, i->a), dy = dual_of(w, i->b);
        return winner(w, i->type, w->copy.map[id], y, dx, dy);
    }
    for (uint32_t k = 0; k < 2; k++) {
        if (!from[k] || !w->dual[from[k]]) continue;
        ing_ad_factor f = ing_ad_partial(&w->b, i->op, k, x, y, w->copy.map[id]);
        sum = plus(w, sum, f, w->dual[from[k]]);
    }
    return sum;
}

/* ---- aggregates and conversions -------------------------------------------------------------- */

static uint32_t make(emitter *w, const ing_ir_inst *i) {
    const uint32_t *items = w->copy.from->extra.at + i->b;
    uint32_t *duals = ING_NEW_ARRAY(&w->w->arena, i->c + 1, uint32_t);
    bool any = false;
    for (uint32_t k = 0; k < i->c; k++) any |= w->dual[items[k]] != 0;
    if (!any || !duals) return 0;
    for (uint32_t k = 0; k < i->c; k++) duals[k] = dual_of(w, items[k]);
    return ing_ir_make(&w->b, i->type, duals, i->c);
}

static uint32_t insert(emitter *w, const ing_ir_inst *i) {
    if (!w->dual[i->a] && !w->dual[i->b]) return 0;
    if (!ing_fwd_floats(w->w->m, at(w, i->b)->type)) return w->dual[i->a];
    uint32_t into = dual_of(w, i->a), d = dual_of(w, i->b);
    return ing_ir_emit(&w->b, ING_OP_INSERT, 0, into, d, i->c);
}

static uint32_t convert(emitter *w, const ing_ir_inst *i) {
    bool floats = ing_fwd_floats(w->w->m, i->type);
    switch (i->op) {
    case ING_OP_CAST:
        if (!w->dual[i->a] || !floats) return 0;
        return ing_ir_emit(&w->b, ING_OP_CAST, i->type, w->dual[i->a], 0, 0);
    case ING_OP_SELECT: {
        if (!w->dual[i->b] && !w->dual[i->c]) return 0;
        uint32_t a = dual_of(w, i->b), b = dual_of(w, i->c);
        return choose(w, i->type, w->copy.map[i->a], a, b);
    }
    case ING_OP_MAKE: return make(w, i);
    case ING_OP_INSERT: return insert(w, i);
    default: /* EXTRACT */
        if (!w->dual[i->a] || !floats) return 0;
        return ing_ir_emit(&w->b, ING_OP_EXTRACT, i->type, w->dual[i->a], i->b, 0);
    }
}

/* ---- memory ------------------------------------------------------------------------------------ */

static uint32_t address(emitter *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    uint32_t from = w->dual[i->a];
    if (!(w->v->state[id] & ING_FWD_DUAL) || !from) return 0;
    if (i->op == ING_OP_MEMBER)
        return ing_ir_emit(&w->b, i->op, i->type, from, i->b, 0);
    if (i->op == ING_OP_MEMBER_DYN)
        return ing_ir_emit(&w->b, i->op, i->type, from, w->copy.map[i->b], 0);
    uint32_t index[ING_MAX_NDIM];
    for (uint32_t k = 0; k < i->c && k < ING_MAX_NDIM; k++)
        index[k] = w->copy.map[w->copy.from->extra.at[i->b + k]];
    return ing_ir_elem(&w->b, from, index, i->c);
}

static uint32_t param(emitter *w, const ing_ir_inst *i) {
    uint32_t n = w->copy.from->n_params;
    if (!w->v->shadow[i->a]) return 0;
    for (uint32_t k = 0; k < i->a; k++) n += w->v->shadow[k] != 0;
    return ing_ir_emit(&w->b, ING_OP_PARAM, ING_FWD_TYPE(w->v->shadow[i->a]), n, 0, 0);
}

/* The dual of the old value; the place gets that of the new one. */
static uint32_t update(emitter *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    uint32_t ref = w->dual[i->a], dv = w->dual[i->b], v = w->copy.map[i->b];
    uint32_t old = w->copy.map[id];
    bool scales = i->c == ING_IR_ATOMIC_MUL && !dv;
    if (i->c == ING_IR_ATOMIC_XCHG || scales || (dv && i->c <= ING_IR_ATOMIC_SUB)) {
        uint32_t by = scales ? v : dual_of(w, i->b);
        uint32_t d = ing_ir_emit(&w->b, ING_OP_ATOMIC, i->type, ref, by, i->c);
        if (d) w->b.func->insts.at[d].flags = i->flags;
        return d;
    }
    uint32_t before = load(w, i->type, ref), after;
    if (i->c == ING_IR_ATOMIC_MIN || i->c == ING_IR_ATOMIC_MAX) {
        ing_op op = i->c == ING_IR_ATOMIC_MIN ? ING_OP_MIN : ING_OP_MAX;
        uint32_t result = op2(w, op, old, v), by = dual_of(w, i->b);
        after = winner(w, i->type, result, v, before, by);
    } else if (i->c == ING_IR_ATOMIC_MUL) {
        uint32_t kept = op2(w, ING_OP_MUL, before, v);
        after = op2(w, ING_OP_ADD, kept, op2(w, ING_OP_MUL, old, dv));
    } else {
        return before; /* added or taken away: something without a dual */
    }
    op2(w, ING_OP_STORE, ref, after);
    return before;
}

/* An element of an array that no field holds, so that nothing of its kind has duals: what is
 * stored there would lose its dual, and who reads it again would find 0. A field without duals
 * was made so. */
static bool without_duals(const emitter *w, uint32_t ref) {
    while (at(w, ref)->op == ING_OP_MEMBER || at(w, ref)->op == ING_OP_MEMBER_DYN)
        ref = at(w, ref)->a;
    if (at(w, ref)->op != ING_OP_ELEM) return false;
    return !ing_ir_type(w->w->m, at(w, at(w, ref)->a)->type)->place;
}

static void refuse_lost(emitter *w, const ing_ir_inst *i, uint32_t ref) {
    if (without_duals(w, ref))
        refuse(w, i,
               "a value with a derivative is written to an array without duals, which "
               "would lose it: in forward mode use a field with needs_dual=True, or "
               "compute it in a kernel outside of FwdMode");
}

static uint32_t memory(emitter *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    bool dual = w->v->state[id] & ING_FWD_DUAL;
    switch (i->op) {
    case ING_OP_ARRAY: {
        uint32_t k = ING_FWD_COMPANION(w->w, i->a);
        if (!k) return 0;
        return ing_ir_emit(&w->b, i->op, w->w->m->args.at[k - 1].type, k - 1, 0, 0);
    }
    case ING_OP_PARAM: return param(w, i);
    case ING_OP_ALLOCA: return dual ? ing_ir_emit(&w->b, i->op, i->type, 0, 0, 0) : 0;
    case ING_OP_STORE:
        if (!w->dual[i->a] && w->dual[i->b]) refuse_lost(w, i, i->a);
        if (!w->dual[i->a]) return 0;
        if (!ing_fwd_floats(w->w->m, at(w, i->b)->type)) return 0;
        op2(w, ING_OP_STORE, w->dual[i->a], dual_of(w, i->b));
        return 0;
    case ING_OP_ATOMIC: {
        if (!w->dual[i->a] && w->dual[i->b]) refuse_lost(w, i, i->a);
        if (!w->dual[i->a] || !ing_fwd_floats(w->w->m, i->type)) return 0;
        uint32_t d = update(w, id);
        return dual ? d : 0;
    }
    case ING_OP_LOAD: {
        if (!dual || !w->dual[i->a]) return 0;
        uint32_t d = load(w, i->type, w->dual[i->a]);
        if (d) w->b.func->insts.at[d].flags = i->flags;
        return d;
    }
    default: return address(w, id);
    }
}

/* ---- calls ---------------------------------------------------------------------------------------- */

static ing_type result_type(emitter *w, const ing_fwd_version *v) {
    ing_type t = v->f->ret;
    const ing_type both[2] = {t, t};
    const uint32_t names[2] = {0, 0};
    return v->result ? ing_ir_type_struct(w->w->m, both, names, 2) : t;
}

/* The function of a version, whose body is made later. */
static uint32_t function_of(emitter *w, ing_fwd_version *v) {
    ing_ir_mod *m = w->w->m;
    const ing_ir_func *f = v->f;
    if (v->out) return v->out;
    ing_type *params =
        ING_NEW_ARRAY(&w->w->arena, 2 * (size_t)f->n_params + 1, ing_type);
    if (!params) return 0;
    uint32_t n = f->n_params;
    for (uint32_t k = 0; k < f->n_params; k++) {
        params[k] = f->params[k];
        if (v->shadow[k]) params[n++] = ING_FWD_TYPE(v->shadow[k]);
    }
    v->out = ing_ir_add_func(m, ING_IR_FUNC, "", params, n, result_type(w, v));
    if (!v->out) return 0;
    m->funcs.at[v->out]->name = f->name;
    m->funcs.at[v->out]->tree = f->tree;
    if (!ing_vec_push(&w->w->made, v)) w->w->arena.failed = true;
    return v->out;
}

static bool call(emitter *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    const uint32_t *from = w->copy.from->extra.at + i->b;
    ing_fwd_version *v = ing_fwd_callee(w->w, w->v, id, false);
    uint32_t *args = ING_NEW_ARRAY(&w->w->arena, 2 * (size_t)i->c + 1, uint32_t);
    if (!v || !args) {
        w->w->arena.failed = true; /* each was found before: memory ran out */
        return true;
    }
    if (!v->touched) return false;
    uint32_t n = i->c, to = function_of(w, v);
    for (uint32_t k = 0; k < i->c; k++) {
        args[k] = w->copy.map[from[k]];
        if (!v->shadow[k]) continue;
        const ing_type_info *t = ing_ir_type(w->w->m, at(w, from[k])->type);
        uint32_t d = w->dual[from[k]];
        if (!d) refuse_lost(w, i, from[k]);
        if (!d) d = t->kind == ING_TYPE_REF ? local(w, t->elem) : dual_of(w, from[k]);
        args[n++] = d;
    }
    uint32_t both = ing_ir_call(&w->b, to, args, n);
    if (both) w->b.func->insts.at[both].flags = i->flags;
    w->copy.map[id] = both;
    if (!v->result) return true;
    w->copy.map[id] = ing_ir_emit(&w->b, ING_OP_EXTRACT, i->type, both, 0, 0);
    w->dual[id] = ing_ir_emit(&w->b, ING_OP_EXTRACT, i->type, both, 1, 0);
    return true;
}

static bool give_back(emitter *w, const ing_ir_inst *i) {
    if (!w->v->result || !i->a) return false;
    uint32_t both[2] = {w->copy.map[i->a], dual_of(w, i->a)};
    uint32_t made = ing_ir_make(&w->b, w->b.func->ret, both, 2);
    op1(w, ING_OP_RETURN, made);
    return true;
}

/* ---- one instruction --------------------------------------------------------------------------------- */

static void as_it_is(emitter *w, uint32_t id) {
    w->as_is = id;
    ing_ir_copy_inst(&w->copy, id);
}

/* Value and dual of what it updates must not be mixed with those of another iteration. */
static bool loop(emitter *w, uint32_t id) {
    if (!(w->v->state[id] & ING_FWD_DUAL)) return false;
    as_it_is(w, id);
    uint32_t made = w->copy.map[id];
    if (made) w->b.func->insts.at[made].flags = ING_IR_SERIAL;
    return true;
}

static bool carry(emitter *w, uint32_t id) {
    const ing_ir_inst *i = at(w, id);
    switch (i->op) {
    case ING_OP_CALL: return call(w, id);
    case ING_OP_RETURN: return give_back(w, i);
    case ING_OP_LOOP: return loop(w, id);
    case ING_OP_CAST:
    case ING_OP_SELECT:
    case ING_OP_MAKE:
    case ING_OP_EXTRACT:
    case ING_OP_INSERT:
        as_it_is(w, id);
        w->dual[id] = convert(w, i);
        return true;
    case ING_OP_ARRAY:
    case ING_OP_PARAM:
    case ING_OP_ALLOCA:
    case ING_OP_ELEM:
    case ING_OP_MEMBER:
    case ING_OP_MEMBER_DYN:
    case ING_OP_LOAD:
    case ING_OP_STORE:
    case ING_OP_ATOMIC:
        as_it_is(w, id);
        w->dual[id] = memory(w, id);
        return true;
    case ING_OP_SET_RET: /* results have no dual: the host has no place for it */
    case ING_OP_IF:
    case ING_OP_WHILE:
    case ING_OP_BREAK:
    case ING_OP_CONTINUE:
    case ING_OP_DO_WHILE:
    case ING_OP_CHECKPOINT:
    case ING_OP_FORK:
    case ING_OP_SECTION: return false;
    default: refuse(w, i, "forward mode does not know this operation"); return false;
    }
}

static bool hook(ing_ir_copy *c, uint32_t id) {
    emitter *w = c->self;
    const ing_ir_inst *i = at(w, id);
    bool done = false;
    if (w->w->status != ING_OK) return true;
    if (w->as_is == id) {
        w->as_is = 0;
        return false;
    }
    uint32_t loc = w->b.loc;
    w->b.loc = i->loc;
    switch (ing_ad_class_of(i->op)) {
    case ING_AD_ARITH:
        as_it_is(w, id);
        w->dual[id] = arith(w, id);
        done = true;
        break;
    case ING_AD_CARRY: done = carry(w, id); break;
    case ING_AD_REFUSE:
        if (w->dual[i->a] && !ing_ad_only_returns(w->copy.from, id))
            refuse(w, i, "the bits of a float have no derivative");
        break;
    case ING_AD_LATE: refuse(w, i, "forward mode comes before the passes"); break;
    default: break;
    }
    w->b.loc = loc;
    return done;
}

/* ---- functions ------------------------------------------------------------------------------------------ */

static ing_status body(emitter *w) {
    const ing_ir_func *from = w->v->f;
    uint32_t n = from->insts.len;
    uint32_t *map = ING_NEW_ARRAY(&w->w->arena, n, uint32_t);
    w->dual = ING_NEW_ARRAY(&w->w->arena, n, uint32_t);
    if (!map || !w->dual) return ING_MEMORY;
    w->copy =
        (ing_ir_copy){.b = &w->b, .from = from, .map = map, .hook = hook, .self = w};
    ing_ir_copy_block(&w->copy, from->body);
    return w->w->status;
}

static ing_status emit_all(ing_fwd *f, ing_ir_func *kernel) {
    emitter w = {.w = f, .v = f->versions.at[0]};
    ing_ir_rebuild_begin(&w.b, f->m, 0, kernel);
    f->versions.at[0]->f = kernel;
    ing_status s = body(&w);
    ing_ir_builder_done(&w.b);
    for (uint32_t k = 0; k < f->made.len && s == ING_OK; k++) {
        emitter of = {.w = f, .v = f->made.at[k]};
        ing_ir_builder_init(&of.b, f->m, of.v->out);
        s = body(&of);
        ing_ir_builder_done(&of.b);
    }
    return s;
}

ing_status ing_fwd_emit(ing_fwd *w) {
    ing_ir_func kernel = {0};
    ing_status s = emit_all(w, &kernel);
    ing_vec_fini(&kernel.insts);
    ing_vec_fini(&kernel.extra);
    if (s == ING_COMPILE) return s;
    if (w->m->bad_type)
        return ing_fail(w->e, ING_COMPILE,
                        "the result of a func is too large to have a dual beside it");
    bool ok = s == ING_OK && ing_ir_ok(w->m) && !w->arena.failed;
    return ok ? ING_OK : ing_fail(w->e, ING_MEMORY, "no memory for derivatives");
}
