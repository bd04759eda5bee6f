/* Whether two places that a function touches may be one: subscripts as sums of multiples of values, compared axis
 * by axis, in one iteration or in a later one. Called by rule.c, whose rules it keeps (RULE2 to RULE4, RULE9). */
#include "ad/meet.h"

/* ---- do they meet? ---------------------------------------------------------------------------- */

/* Is it made of numbers that the launch was given, or the func? */
static bool is_given(const ing_ad_fn *n, uint32_t id, uint32_t left) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    switch (i->op) {
    case ING_OP_CONST:
    case ING_OP_ARG:
    case ING_OP_DIM:
    case ING_OP_PARAM: return true;
    case ING_OP_CAST: return left && is_given(n, i->a, left - 1);
    default:
        return left && ing_op_is_arith(i->op) && is_given(n, i->a, left - 1) &&
               (!i->b || is_given(n, i->b, left - 1));
    }
}

bool ing_ad_is_inside(const ing_ad_fn *n, uint32_t id, uint32_t loop) {
    uint32_t r = id == loop ? loop : n->region[id];
    while (r && r != loop) r = n->region[r];
    return r == loop;
}

/* May the value change from one iteration of the loop to the next? */
static bool varies(const ing_ad_fn *n, uint32_t id, uint32_t loop, uint32_t left) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    if (id == loop) return true;
    if (!ing_ad_is_inside(n, id, loop)) return false;
    switch (i->op) {
    case ING_OP_CONST:
    case ING_OP_ARG:
    case ING_OP_DIM:
    case ING_OP_PARAM: return false;
    case ING_OP_CAST: return !left || varies(n, i->a, loop, left - 1);
    default:
        return !left || !ing_op_is_arith(i->op) || varies(n, i->a, loop, left - 1) ||
               (i->b && varies(n, i->b, loop, left - 1));
    }
}

/* ---- locals that count (RULE4) ------------------------------------------------------------------ */

/* The local that a value is loaded from; 0 = none. */
uint32_t ing_ad_local_of(const ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    bool load = i->op == ING_OP_LOAD && ing_ir_at(n->f, i->a)->op == ING_OP_ALLOCA;
    return load ? i->a : 0;
}

static bool writes_local(const ing_ad_fn *n, uint32_t id, uint32_t local) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    if (!n->block[id]) return false;
    if (i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS)
        return ing_ad_root(n, i->a) == local;
    for (uint32_t k = 0; i->op == ING_OP_CALL && k < i->c; k++)
        if (ing_ad_root(n, n->f->extra.at[i->b + k]) == local) return true;
    return false;
}

/* Two loads of a local in one iteration of all loops around them, with no write between. */
static bool same_load(const ing_ad_fn *n, uint32_t a, uint32_t b) {
    uint32_t local = ing_ad_local_of(n, a);
    if (!local || local != ing_ad_local_of(n, b) || n->region[a] != n->region[b])
        return false;
    for (uint32_t id = a < b ? a : b; id < (a < b ? b : a); id++)
        if (writes_local(n, id, local)) return false;
    return true;
}

/* The same number, in one iteration of all loops around both. */
bool ing_ad_same_value(const ing_ad_fn *n, uint32_t a, uint32_t b, uint32_t left) {
    const ing_ir_inst *x = ing_ir_at(n->f, a), *y = ing_ir_at(n->f, b);
    if (a == b || same_load(n, a, b)) return true;
    if (x->op != y->op || x->type != y->type || !left) return false;
    switch (x->op) {
    case ING_OP_CONST:
    case ING_OP_ARG:
    case ING_OP_PARAM: return x->a == y->a && x->b == y->b;
    case ING_OP_DIM: return x->b == y->b && ing_ad_same_value(n, x->a, y->a, left - 1);
    case ING_OP_ARRAY: return x->a == y->a;
    case ING_OP_CAST: return ing_ad_same_value(n, x->a, y->a, left - 1);
    default:
        return ing_op_is_arith(x->op) && ing_ad_same_value(n, x->a, y->a, left - 1) &&
               (!x->b || ing_ad_same_value(n, x->b, y->b, left - 1));
    }
}

/* What one write adds to the local: a number, or 0. */
static int64_t step_of(const ing_ad_fn *n, uint32_t id, uint32_t local) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    ing_ir_form form;
    if (i->op != ING_OP_STORE || i->a != local) return 0;
    ing_ir_form_of(n->f, i->b, &form);
    bool adds = form.known && form.n == 1 && form.times[0] == 1 &&
                ing_ad_local_of(n, form.of[0]) == local && form.bits >= 32;
    return adds ? (int64_t)(form.constant << (64 - form.bits)) >> (64 - form.bits) : 0;
}

/* From an iteration that runs `id` to a later one the local grows (1), shrinks (-1), stays or grows (2),
 * stays or shrinks (-2); 0: nobody knows. */
static int32_t counts(const ing_ad_fn *n, uint32_t local, uint32_t loop, uint32_t id) {
    int32_t sign = 0;
    bool sure = false;
    for (uint32_t w = 1; w < n->f->insts.len; w++) {
        if (!writes_local(n, w, local) || !ing_ad_is_inside(n, w, loop)) continue;
        int64_t step = step_of(n, w, local);
        int32_t now = step > 0 ? 1 : -1;
        if (step == 0 || (sign && sign != now)) return 0;
        sign = now;
        /* a block that runs does so whole (EXITS1) */
        uint32_t at = id;
        while (at && n->block[at] != n->block[w]) at = n->parent[at];
        sure |= at != 0 && n->region[w] == loop;
    }
    return sure ? sign : 2 * sign;
}

/* Takes out terms that are one number and come to nothing. */
static void cancel(const ing_ad_fn *n, ing_ir_form *d) {
    for (uint32_t k = 0; d->known && k < d->n; k++)
        for (uint32_t j = k + 1; j < d->n; j++) {
            if (d->times[k] != 0 - d->times[j] ||
                !ing_ad_same_value(n, d->of[k], d->of[j], ING_AD_DEPTH))
                continue;
            ing_ir_form both = {.bits = 64, .known = true, .n = 2};
            both.of[0] = d->of[k];
            both.of[1] = d->of[j];
            both.times[0] = d->times[k];
            both.times[1] = d->times[j];
            ing_ir_form_add(d, &both, (uint64_t)-1);
            k = UINT32_MAX; /* from the start: terms have moved */
            break;
        }
}

/* y - x, of forms that are known. */
bool ing_ad_difference(const ing_ad_fn *n, const ing_ir_form *x, const ing_ir_form *y,
                       ing_ir_form *d) {
    if (!x->known || !y->known) return false;
    *d = *y;
    ing_ir_form_add(d, x, (uint64_t)-1);
    cancel(n, d);
    return d->known;
}

static bool all_given(const ing_ad_fn *n, const ing_ir_form *d) {
    for (uint32_t k = 0; k < d->n; k++)
        if (!is_given(n, d->of[k], ING_AD_DEPTH)) return false;
    return true;
}

/* ---- indices and their bounds (RULE9) ------------------------------------------------------------- */

/* The bound of a loop, if nothing in it wraps: known by ranges, or a signed sum of indices and of one
 * number at most. */
static bool bound_of(const ing_ad_fn *n, uint32_t id, ing_ir_form *bound) {
    ing_ir_form_of(n->f, id, bound);
    int64_t by = (int64_t)(bound->constant << (64 - bound->bits)) >> (64 - bound->bits);
    uint32_t numbers = 0;
    bool sum = !bound->wraps && bound->bits >= 32 && by > -(1 << 28) && by < 1 << 28;
    for (uint32_t k = 0; k < bound->n; k++) {
        numbers += ing_ir_at(n->f, bound->of[k])->op != ING_OP_LOOP;
        sum = sum && (bound->times[k] == 1 || bound->times[k] == UINT64_MAX);
    }
    return bound->known && (bound->exact || (sum && numbers <= 1));
}

/* Puts the least (or, for sign -1, the largest) value of a loop's index into sign * d, for term k. */
static bool put_bound(const ing_ad_fn *n, ing_ir_form *d, uint32_t k, int64_t sign) {
    const ing_ir_inst *loop = ing_ir_at(n->f, d->of[k]);
    ing_ir_form index = {.bits = 64, .known = true, .n = 1}, bound;
    if (loop->op != ING_OP_LOOP) return false;
    bool low = ((int64_t)d->times[k] > 0) == (sign > 0);
    uint64_t times = d->times[k];
    index.of[0] = d->of[k];
    index.times[0] = 1;
    if (d->wraps || !bound_of(n, low ? loop->a : loop->b, &bound)) return false;
    if (!low) bound.constant--;
    ing_ir_form_add(d, &index, 0 - times);
    ing_ir_form_add(d, &bound, times);
    cancel(n, d);
    return d->known;
}

/* Is sign * d above 0, whatever the indices of loops are? */
static bool is_above(const ing_ad_fn *n, const ing_ir_form *d, int64_t sign,
                     uint32_t left) {
    if (!d->known || d->bits < 32) return false;
    int64_t by = (int64_t)(d->constant << (64 - d->bits)) >> (64 - d->bits);
    if (!d->n) return sign * by > 0;
    for (uint32_t k = 0; left && k < d->n; k++) {
        ing_ir_form next = *d;
        if (put_bound(n, &next, k, sign) && is_above(n, &next, sign, left - 1))
            return true;
    }
    return false;
}

/* The form at its bound over all that differs between iterations of the loop, but for its own index. */
static bool settle(const ing_ad_fn *n, ing_ir_form *form, uint32_t loop, bool whole,
                   int64_t sign) {
    for (uint32_t k = 0, steps = 0; k < form->n && steps < ING_IR_MAX_TERMS; k++) {
        bool own = form->of[k] == loop;
        if (own ? !whole : !varies(n, form->of[k], loop, ING_AD_DEPTH)) continue;
        if (!put_bound(n, form, k, sign)) return false;
        k = UINT32_MAX; /* from the start: terms have moved */
        steps++;
    }
    for (uint32_t k = 0; k < form->n; k++)
        if (form->of[k] == loop ? whole : varies(n, form->of[k], loop, ING_AD_DEPTH))
            return false;
    return form->known;
}

uint64_t ing_ad_times_of(const ing_ir_form *form, uint32_t id) {
    for (uint32_t k = 0; k < form->n; k++)
        if (form->of[k] == id) return form->times[k];
    return 0;
}

/* Is what later iterations of the loop write always above (sign 1) or below what this one reads? */
static bool stays_above(const ing_ad_fn *n, const ing_ir_form *read,
                        const ing_ir_form *write, uint32_t loop, int64_t sign) {
    ing_ir_form r = *read, w = *write, d;
    if (!settle(n, &r, loop, false, -sign) || !settle(n, &w, loop, false, sign))
        return false;
    int64_t times = (int64_t)ing_ad_times_of(&r, loop);
    if (ing_ad_times_of(&w, loop) != (uint64_t)times || times * sign < 0) {
        times = 0;
        if (!settle(n, &r, loop, true, -sign) || !settle(n, &w, loop, true, sign))
            return false;
    }
    if (!ing_ad_difference(n, &r, &w, &d)) return false;
    d.constant += (uint64_t)times; /* one iteration later at least */
    return is_above(n, &d, sign, 3);
}

static bool stays_apart(const ing_ad_fn *n, const ing_ir_form *read,
                        const ing_ir_form *write, uint32_t loop) {
    if (!read->known || !write->known || ing_ir_at(n->f, loop)->op != ING_OP_LOOP)
        return false;
    return stays_above(n, read, write, loop, 1) ||
           stays_above(n, read, write, loop, -1);
}

/* ---- branches around a read or a write (RULE12) ------------------------------------------------------ */

/* Does `a op b` (or its opposite) see to it that d is not 0? */
static bool tells_apart(const ing_ad_fn *n, const ing_ir_inst *c, bool holds,
                        const ing_ir_form *d) {
    static const ing_op opposite[][2] = {
        {ING_OP_EQ, ING_OP_NE}, {ING_OP_NE, ING_OP_EQ}, {ING_OP_LT, ING_OP_GE},
        {ING_OP_GE, ING_OP_LT}, {ING_OP_GT, ING_OP_LE}, {ING_OP_LE, ING_OP_GT}};
    ing_op op = (ing_op)c->op;
    for (uint32_t k = 0; !holds && k < 6; k++)
        if (opposite[k][0] == c->op) op = opposite[k][1];
    bool less = op == ING_OP_LT || op == ING_OP_LE;
    ing_ir_form a, b, by, rest;
    ing_ir_form_of(n->f, less ? c->b : c->a, &a);
    ing_ir_form_of(n->f, less ? c->a : c->b, &b);
    if (!ing_ad_difference(n, &b, &a, &by) || by.bits < 32) return false;
    for (int64_t sign = 1; sign >= -1; sign -= 2) { /* d = sign * by + k */
        rest = *d;
        ing_ir_form_add(&rest, &by, (uint64_t)-sign);
        cancel(n, &rest);
        if (!rest.known || rest.n) continue;
        int64_t k = (int64_t)(rest.constant << (64 - rest.bits)) >> (64 - rest.bits);
        if (op == ING_OP_NE || op == ING_OP_EQ) return (k == 0) == (op == ING_OP_NE);
        if (d->wraps || by.wraps) return false;
        bool more =
            op == ING_OP_GT || op == ING_OP_LT; /* by is above 0, not only not below */
        return sign * k >= (more ? 0 : 1);
    }
    return false;
}

/* What was stored to the local that the value is loaded from, if one instruction does, in the same iteration. */
static uint32_t stored_once(const ing_ad_fn *n, uint32_t id) {
    uint32_t local = ing_ad_local_of(n, id), found = 0;
    for (uint32_t w = 1; local && w < n->f->insts.len; w++) {
        if (!writes_local(n, w, local)) continue;
        bool here = n->region[w] == n->region[local] && n->region[w] == n->region[id];
        if (found || !here || ing_ir_at(n->f, w)->op != ING_OP_STORE) return 0;
        found = ing_ir_at(n->f, w)->b;
    }
    return found;
}

static bool condition_tells(const ing_ad_fn *n, uint32_t id, bool holds,
                            const ing_ir_form *d, uint32_t left) {
    const ing_ir_inst *c = ing_ir_at(n->f, id);
    uint32_t other;
    switch (c->op) {
    case ING_OP_SELECT: /* `a and b` is b if a, else a; `a or b` is a if a, else b */
        other = holds ? c->c : c->b;
        return left && other == c->a &&
               (condition_tells(n, c->a, holds, d, left - 1) ||
                condition_tells(n, holds ? c->b : c->c, holds, d, left - 1));
    case ING_OP_LOAD: /* a local is false before it is stored to */
        other = left && holds ? stored_once(n, id) : 0;
        return other && condition_tells(n, other, holds, d, left - 1);
    case ING_OP_EQ:
    case ING_OP_NE:
    case ING_OP_LT:
    case ING_OP_LE:
    case ING_OP_GT:
    case ING_OP_GE: return tells_apart(n, c, holds, d);
    case ING_OP_NOT: return left && condition_tells(n, c->a, !holds, d, left - 1);
    case ING_OP_AND:
    case ING_OP_OR:
        return left && holds == (c->op == ING_OP_AND) &&
               (condition_tells(n, c->a, holds, d, left - 1) ||
                condition_tells(n, c->b, holds, d, left - 1));
    default: return false;
    }
}

/* In an iteration that makes it, and so takes the branches around it. */
static bool branch_tells(const ing_ad_fn *n, uint32_t id, const ing_ir_form *d) {
    for (uint32_t p = n->parent[id]; p; id = p, p = n->parent[p]) {
        const ing_ir_inst *i = ing_ir_at(n->f, p);
        if (i->op == ING_OP_IF &&
            condition_tells(n, i->a, n->block[id] == i->b, d, ING_AD_DEPTH))
            return true;
    }
    return false;
}

/* ---- axis by axis ------------------------------------------------------------------------------------ */

/* One and the same iteration of all loops around both. */
static ing_ad_verdict axis_now(const ing_ad_fn *n, const ing_ad_touch *r,
                               const ing_ad_touch *w, uint32_t axis) {
    ing_ir_form d;
    if (!ing_ad_difference(n, &r->at[axis], &w->at[axis], &d)) return ING_AD_MAYBE;
    if (d.n) {
        if (branch_tells(n, r->id, &d) || branch_tells(n, w->id, &d)) return ING_AD_NO;
        bool apart = is_above(n, &d, 1, 3) || is_above(n, &d, -1, 3);
        return apart ? ING_AD_NO : all_given(n, &d) ? ING_AD_SAID : ING_AD_MAYBE;
    }
    return d.constant << (64 - d.bits) ? ING_AD_NO : ING_AD_YES;
}

/* Where the only thing that varies counts in one way: by = written - read. */
static ing_ad_verdict counted(int32_t way, int64_t times, int64_t by) {
    bool up = (way > 0) == (times > 0);
    if (way == 0) return ING_AD_MAYBE;
    if (by == 0) return way == 1 || way == -1 ? ING_AD_NO : ING_AD_MAYBE;
    return up == (by > 0) ? ING_AD_NO : ING_AD_MAYBE;
}

/* The write in a later iteration of `loop` than the read, which instruction `id` makes. */
static ing_ad_verdict axis_later(const ing_ad_fn *n, const ing_ir_form *read,
                                 const ing_ir_form *write, uint32_t loop, uint32_t id) {
    ing_ir_form d;
    if (!ing_ad_difference(n, read, write, &d)) return ING_AD_MAYBE;
    int64_t step = 0, times = 0;
    uint32_t local = 0;
    for (uint32_t k = 0; k < read->n; k++) {
        if (read->of[k] == loop) {
            step = (int64_t)read->times[k];
        } else if (varies(n, read->of[k], loop, ING_AD_DEPTH)) {
            if (local || !ing_ad_local_of(n, read->of[k])) return ING_AD_MAYBE;
            local = ing_ad_local_of(n, read->of[k]);
            times = (int64_t)read->times[k];
        }
    }
    if (d.n) {
        for (uint32_t k = 0; k < d.n; k++)
            if (varies(n, d.of[k], loop, ING_AD_DEPTH)) return ING_AD_MAYBE;
        return all_given(n, &d) ? ING_AD_SAID : ING_AD_MAYBE;
    }
    int64_t by = (int64_t)(d.constant << (64 - d.bits)) >> (64 - d.bits);
    if (d.wraps && step != 0 && step != 1) return ING_AD_MAYBE;
    if (local)
        return step ? ING_AD_MAYBE : counted(counts(n, local, loop, id), times, by);
    if (step == 0) return by ? ING_AD_NO : ING_AD_YES;
    /* iterations from the read to the write: -by / step */
    return by % step == 0 && -(by / step) > 0 ? ING_AD_YES : ING_AD_NO;
}

/* Are the subscripts all axes of the places that the loop goes through? Then no two of its iterations
 * have the same. */
static bool tells_places(const ing_ad_fn *n, const ing_ad_touch *r,
                         const ing_ad_touch *w, uint32_t loop) {
    uint64_t told = 0;
    uint32_t axes = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        const ing_ir_form *form = &r->at[k];
        if (!form->known || form->n != 1 || form->times[0] != 1) continue;
        const ing_ir_inst *i = ing_ir_at(n->f, form->of[0]);
        bool place = i->op == ING_OP_AXIS &&
                     (i->b == loop || ing_ad_same_value(n, i->b, loop, ING_AD_DEPTH));
        ing_ir_form d;
        if (!place || !ing_ad_difference(n, form, &w->at[k], &d) || d.n || d.constant)
            continue;
        axes = i->a;
        told |= (uint64_t)1 << i->c;
    }
    uint32_t count = axes ? ing_ir_at(n->f, axes)->c / 2 : 64;
    return count < 64 && told == ((uint64_t)1 << count) - 1;
}

ing_ad_verdict ing_ad_meet(const ing_ad_fn *n, const ing_ad_touch *r,
                           const ing_ad_touch *w, uint32_t loop) {
    ing_ad_verdict all = ING_AD_YES;
    bool said = false;
    if (r->n == ING_AD_ANY || w->n == ING_AD_ANY || r->n != w->n) return ING_AD_MAYBE;
    if (loop && tells_places(n, r, w, loop)) return ING_AD_NO;
    for (uint32_t k = 0; k < r->n; k++) {
        ing_ad_verdict one = loop ? axis_later(n, &r->at[k], &w->at[k], loop, r->id)
                                  : axis_now(n, r, w, k);
        bool maybe = loop && one == ING_AD_MAYBE;
        if (one == ING_AD_NO || (maybe && stays_apart(n, &r->at[k], &w->at[k], loop)))
            return ING_AD_NO;
        if (one == ING_AD_MAYBE) all = ING_AD_MAYBE;
        said |= one == ING_AD_SAID;
    }
    return said ? ING_AD_SAID : all;
}

/* Places that lie in ranges which are known not to meet; of loops of several tasks. */
bool ing_ad_ranges_apart(const ing_ad_fn *n, const ing_ad_touch *r,
                         const ing_ad_touch *w) {
    for (uint32_t k = 0; r->n != ING_AD_ANY && r->n == w->n && k < r->n; k++) {
        int64_t a, b, c, d;
        if (ing_ir_form_range(n->f, &r->at[k], &a, &b) &&
            ing_ir_form_range(n->f, &w->at[k], &c, &d) && (b < c || d < a))
            return true;
    }
    return false;
}

/* In one call of a func, which has judged it already, as far as it could (RULE3). */
static bool is_judged(const ing_ad_touch *r, const ing_ad_touch *w) {
    if (r->id != w->id || r->inner != w->inner || r->inner_param != w->inner_param)
        return false;
    if (r->n == ING_AD_ANY || w->n == ING_AD_ANY || r->n != w->n) return true;
    for (uint32_t k = 0; k < r->n; k++)
        if (!r->at[k].known || !w->at[k].known) return true;
    return false;
}

bool ing_ad_comes_later(const ing_ad_fn *n, const ing_ad_touch *r,
                        const ing_ad_touch *w, uint32_t loop) {
    if (!loop) return w->rank > r->rank && !is_judged(r, w);
    const ing_ir_inst *l = ing_ir_at(n->f, loop);
    return ing_ad_is_inside(n, w->id, loop) && !(l->flags & ING_IR_PARALLEL) &&
           !ing_ad_runs_once(n->f, l);
}

ing_ad_verdict ing_ad_overwrites(const ing_ad_fn *n, const ing_ad_touch *r,
                                 const ing_ad_touch *w) {
    ing_ad_verdict found = ING_AD_NO;
    if (ing_ad_ranges_apart(n, r, w)) return ING_AD_NO;
    if (ing_ad_comes_later(n, r, w, 0)) found = ing_ad_meet(n, r, w, 0);
    for (uint32_t l = n->region[r->id]; l && found != ING_AD_YES; l = n->region[l]) {
        if (!ing_ad_comes_later(n, r, w, l)) continue;
        ing_ad_verdict one = ing_ad_meet(n, r, w, l);
        if (one > found) found = one;
    }
    return found;
}

bool ing_ad_same_array(const ing_ad_touch *a, const ing_ad_touch *b) {
    return a->of == b->of && a->param == b->param;
}

/* Members that both name, and that differ, are different places. */
bool ing_ad_other_member(const ing_ad_touch *a, const ing_ad_touch *b) {
    return a->member && b->member && a->member != b->member;
}

/* ---- numbers that only the launch knows (RULE3) ---------------------------------------------------- */

/* How the subscript goes from one iteration of the loop to the next; false: nobody knows. */
static bool find_way(const ing_ad_fn *n, const ing_ad_touch *r, const ing_ir_form *read,
                     ing_ad_told *t) {
    uint32_t local = 0;
    int64_t times = 0;
    for (uint32_t k = 0; k < read->n; k++) {
        if (read->of[k] == t->loop) {
            t->step = (int64_t)read->times[k];
        } else if (varies(n, read->of[k], t->loop, ING_AD_DEPTH)) {
            if (local || !ing_ad_local_of(n, read->of[k])) return false;
            local = ing_ad_local_of(n, read->of[k]);
            times = (int64_t)read->times[k];
        }
    }
    if (!local) return !t->by.wraps || t->step == 0 || t->step == 1;
    int32_t way = counts(n, local, t->loop, r->id);
    t->strict = way == 2 || way == -2;
    t->local = (way > 0) == (times > 0) ? 1 : -1;
    return way && !t->step;
}

uint32_t ing_ad_tell(const ing_ad_fn *n, const ing_ad_touch *r, const ing_ad_touch *w,
                     uint32_t loop, ing_ad_told *out) {
    uint32_t len = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        ing_ad_told t = {.loop = loop};
        bool told = ing_ad_difference(n, &r->at[k], &w->at[k], &t.by) && t.by.n &&
                    all_given(n, &t.by);
        for (uint32_t j = 0; told && loop && j < t.by.n; j++)
            told = !varies(n, t.by.of[j], loop, ING_AD_DEPTH);
        if (told && (!loop || find_way(n, r, &r->at[k], &t))) out[len++] = t;
    }
    return len;
}

bool ing_ad_is_given(const ing_ad_fn *n, uint32_t id) {
    return is_given(n, id, ING_AD_DEPTH);
}
