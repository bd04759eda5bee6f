/* Integers as sums of multiples of loop indices, the ranges they lie in, and how often loops run
 * (ACCESS3, ACCESS4 in access.h). Called by the passes. Never claims what wrapping arithmetic could break. */
#include "ir/access.h"

enum {
    MAX_STEPS = 48, /* instructions that one form is made of */
    MAX_RANGE = 8,  /* and that a range is, one below the other */
};

/* ---- bounds ------------------------------------------------------------------------------- */

static bool const_of(const ing_ir_func *f, uint32_t id, int64_t *v) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    *v = (int64_t)ing_ir_const_bits(i);
    return i->op == ING_OP_CONST && ing_dtype_is_int((ing_dtype)i->type);
}

bool ing_ir_axis_bounds(const ing_ir_func *f, const ing_ir_inst *axes, uint32_t k,
                        int64_t *begin, int64_t *end) {
    return const_of(f, f->extra.at[axes->b + 2 * k], begin) &&
           const_of(f, f->extra.at[axes->b + 2 * k + 1], end);
}

bool ing_ir_axis_is_one(const ing_ir_func *f, const ing_ir_inst *axes, uint32_t k) {
    int64_t begin, end;
    return ing_ir_axis_bounds(f, axes, k, &begin, &end) && begin < end &&
           end - begin == 1;
}

bool ing_ir_places(const ing_ir_func *f, const ing_ir_inst *axes, uint64_t *n) {
    uint64_t bounds[2 * ING_MAX_NDIM];
    for (uint32_t k = 0; k < axes->c; k++) {
        int64_t v;
        if (!const_of(f, f->extra.at[axes->b + k], &v)) return false;
        bounds[k] = (uint64_t)v;
    }
    *n = ing_ir_axes_count(bounds, axes->c / 2);
    return true;
}

bool ing_ir_trips(const ing_ir_func *f, uint32_t begin, uint32_t end, uint64_t *n) {
    int64_t from, to;
    const ing_ir_inst *e = ing_ir_at(f, end);
    if (!const_of(f, begin, &from)) return false;
    if (e->op == ING_OP_AXES) return from == 0 && ing_ir_places(f, e, n);
    if (!const_of(f, end, &to)) return false;
    *n = to > from ? (uint64_t)to - (uint64_t)from : 0;
    return true;
}

/* ---- ranges ------------------------------------------------------------------------------- */

typedef struct range {
    __int128 low, high;
} range;

static bool fits(ing_dtype t, const range *r) {
    uint32_t bits = ing_dtype_bits(t);
    bool is_signed = ing_dtype_is_signed(t);
    __int128 top = ((__int128)1 << (is_signed ? bits - 1 : bits)) - 1;
    return ing_dtype_is_int(t) && bits > 1 && r->high <= top &&
           r->low >= (is_signed ? -top - 1 : 0);
}

static bool range_of(const ing_ir_func *f, uint32_t id, uint32_t left, range *r);

static range product(const range *a, const range *b) {
    __int128 p[4] = {a->low * b->low, a->low * b->high, a->high * b->low,
                     a->high * b->high};
    range r = {p[0], p[0]};
    for (int k = 1; k < 4; k++) {
        if (p[k] < r.low) r.low = p[k];
        if (p[k] > r.high) r.high = p[k];
    }
    return r;
}

static bool range_of_sum(const ing_ir_func *f, const ing_ir_inst *i, uint32_t left,
                         range *r) {
    range a, b;
    if (!range_of(f, i->a, left, &a) || !range_of(f, i->b, left, &b)) return false;
    if (i->op == ING_OP_ADD)
        *r = (range){a.low + b.low, a.high + b.high};
    else if (i->op == ING_OP_SUB)
        *r = (range){a.low - b.high, a.high - b.low};
    else
        *r = product(&a, &b);
    return fits((ing_dtype)i->type, r);
}

static bool range_of_axis(const ing_ir_func *f, const ing_ir_inst *i, range *r) {
    int64_t begin, end;
    if (!ing_ir_axis_bounds(f, ing_ir_at(f, i->a), i->c, &begin, &end)) return false;
    *r = (range){begin, (__int128)end - 1};
    return begin < end && fits((ing_dtype)i->type, r);
}

/* Of the index of a LOOP, whose bounds may be indices of loops around it. */
static bool range_of_index(const ing_ir_func *f, const ing_ir_inst *i, uint32_t left,
                           range *r) {
    range begin, end;
    if (!range_of(f, i->a, left, &begin) || !range_of(f, i->b, left, &end))
        return false;
    *r = (range){begin.low, end.high - 1};
    return begin.low < end.high && fits((ing_dtype)i->type, r);
}

/* Of the lesser or the greater of two, of which one may be unknown. */
static bool range_of_bound(const ing_ir_func *f, const ing_ir_inst *i, uint32_t left,
                           range *r) {
    range a, b;
    bool is_a = range_of(f, i->a, left, &a), is_b = range_of(f, i->b, left, &b);
    if (!is_a && !is_b) return false;
    ing_dtype t = (ing_dtype)i->type;
    __int128 half = (__int128)1 << (ing_dtype_bits(t) - 1);
    range all = {ing_dtype_is_signed(t) ? -half : 0,
                 ing_dtype_is_signed(t) ? half - 1 : 2 * half - 1};
    if (!is_a) a = all;
    if (!is_b) b = all;
    bool least = i->op == ING_OP_MIN;
    *r = (range){(a.low < b.low) == least ? a.low : b.low,
                 (a.high < b.high) == least ? a.high : b.high};
    return true;
}

static bool range_of(const ing_ir_func *f, uint32_t id, uint32_t left, range *r) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    int64_t v;
    if (i->type >= ING_DTYPE_N || !ing_dtype_is_int((ing_dtype)i->type)) return false;
    if (const_of(f, id, &v)) {
        *r = (range){v, v};
        return fits((ing_dtype)i->type, r); /* an u64 above 2**63 reads as negative */
    }
    if (!left) return false;
    switch (i->op) {
    case ING_OP_AXIS: return range_of_axis(f, i, r);
    case ING_OP_LOOP: return range_of_index(f, i, left - 1, r);
    case ING_OP_MIN:
    case ING_OP_MAX: return range_of_bound(f, i, left - 1, r);
    case ING_OP_ADD:
    case ING_OP_SUB:
    case ING_OP_MUL: return range_of_sum(f, i, left - 1, r);
    case ING_OP_CAST:
        return range_of(f, i->a, left - 1, r) && fits((ing_dtype)i->type, r);
    default: return false;
    }
}

bool ing_ir_range(const ing_ir_func *f, uint32_t id, int64_t *low, int64_t *high) {
    range r;
    if (!range_of(f, id, MAX_RANGE, &r) || r.low < INT64_MIN || r.high > INT64_MAX)
        return false;
    *low = (int64_t)r.low;
    *high = (int64_t)r.high;
    return true;
}

bool ing_ir_most_trips(const ing_ir_func *f, const ing_ir_inst *loop, uint64_t *n) {
    range begin, end;
    if (ing_ir_trips(f, loop->a, loop->b, n)) return true;
    if (!range_of(f, loop->a, MAX_RANGE, &begin) ||
        !range_of(f, loop->b, MAX_RANGE, &end))
        return false;
    __int128 most = end.high - begin.low;
    *n = most < 0 ? 0 : most > INT64_MAX ? INT64_MAX : (uint64_t)most;
    return true;
}

/* ---- forms --------------------------------------------------------------------------------- */

typedef struct part { /* times * id, still to be taken apart */
    uint32_t id;
    uint64_t times;
} part;

typedef struct taker {
    const ing_ir_func *f;
    ing_ir_form *out;
    uint32_t n, steps;
    part todo[MAX_STEPS];
} taker;

static void add_term(ing_ir_form *form, uint32_t of, uint64_t times) {
    uint32_t k = 0;
    while (k < form->n && form->of[k] < of) k++;
    if (k < form->n && form->of[k] == of) {
        form->times[k] += times;
        return;
    }
    if (form->n == ING_IR_MAX_TERMS) {
        form->known = false;
        return;
    }
    for (uint32_t j = form->n++; j > k; j--) {
        form->of[j] = form->of[j - 1];
        form->times[j] = form->times[j - 1];
    }
    form->of[k] = of;
    form->times[k] = times;
}

static void drop_zeros(ing_ir_form *form) {
    uint32_t n = 0; /* what cancelled out */
    for (uint32_t k = 0; k < form->n; k++) {
        if (!form->times[k]) continue;
        form->of[n] = form->of[k];
        form->times[n++] = form->times[k];
    }
    form->n = (uint8_t)n;
}

static void push(taker *x, uint32_t id, uint64_t times) {
    if (x->n < MAX_STEPS && x->steps < MAX_STEPS)
        x->todo[x->n++] = (part){id, times};
    else
        add_term(x->out, id, times);
}

static void narrow(taker *x, const ing_ir_inst *i) {
    uint32_t bits = ing_dtype_bits((ing_dtype)i->type);
    if (bits < x->out->bits) x->out->bits = (uint8_t)bits;
    x->out->exact = false;
    x->out->wraps |= i->op == ING_OP_CAST || !ing_dtype_is_signed((ing_dtype)i->type);
}

/* Does its value equal what it is made of? */
static bool is_exact(const taker *x, uint32_t id, const ing_ir_inst *i) {
    ing_dtype t = (ing_dtype)i->type;
    range r;
    if (i->op == ING_OP_CAST) {
        ing_dtype from = (ing_dtype)ing_ir_at(x->f, i->a)->type;
        bool s = ing_dtype_is_signed(t), u = !ing_dtype_is_signed(from);
        uint32_t more = ing_dtype_bits(t), less = ing_dtype_bits(from);
        if (s ? more > less || (more == less && !u) : more >= less && u) return true;
    }
    return i->flags & ING_IR_NSW || range_of(x->f, id, MAX_RANGE, &r);
}

/* A product is of a constant: then what the other operand counts for, else 0. */
static uint32_t factor(const taker *x, const ing_ir_inst *i, uint64_t *times) {
    int64_t v;
    if (i->op == ING_OP_SHL) {
        if (!const_of(x->f, i->b, &v)) return 0;
        *times = (uint64_t)1 << ((uint64_t)v % ing_dtype_bits((ing_dtype)i->type));
        return i->a;
    }
    bool left = const_of(x->f, i->a, &v);
    if (!left && !const_of(x->f, i->b, &v)) return 0;
    *times = (uint64_t)v;
    return left ? i->b : i->a;
}

static bool takes_apart(taker *x, const ing_ir_inst *i, uint64_t times) {
    uint64_t more;
    uint32_t of;
    switch (i->op) {
    case ING_OP_ADD:
    case ING_OP_SUB:
        push(x, i->a, times);
        push(x, i->b, i->op == ING_OP_SUB ? 0 - times : times);
        return true;
    case ING_OP_MUL:
    case ING_OP_SHL:
        of = factor(x, i, &more);
        if (of) push(x, of, times * more);
        return of != 0;
    case ING_OP_CAST:
        if (!ing_dtype_is_int((ing_dtype)ing_ir_at(x->f, i->a)->type)) return false;
        push(x, i->a, times);
        return true;
    default: return false;
    }
}

void ing_ir_form_of(const ing_ir_func *f, uint32_t id, ing_ir_form *out) {
    taker x = {.f = f, .out = out};
    *out = (ing_ir_form){.bits = 64, .known = true, .exact = true};
    push(&x, id, 1);
    while (x.n) {
        part p = x.todo[--x.n];
        const ing_ir_inst *i = ing_ir_at(f, p.id);
        ing_dtype t = (ing_dtype)i->type;
        int64_t v;
        x.steps++;
        bool number = t < ING_DTYPE_N && ing_dtype_is_int(t) && t != ING_U1;
        if (number && const_of(f, p.id, &v))
            out->constant += p.times * (uint64_t)v;
        else if (!number || !takes_apart(&x, i, p.times))
            add_term(out, p.id, p.times);
        else if (!is_exact(&x, p.id, i))
            narrow(&x, i); /* it may have wrapped */
    }
    drop_zeros(out);
}

void ing_ir_form_add(ing_ir_form *to, const ing_ir_form *more, uint64_t times) {
    to->known = to->known && more->known;
    to->wraps |= more->wraps;
    to->constant += times * more->constant;
    if (more->bits < to->bits) to->bits = more->bits;
    for (uint32_t k = 0; k < more->n; k++)
        add_term(to, more->of[k], times * more->times[k]);
    drop_zeros(to);
}

bool ing_ir_form_range(const ing_ir_func *f, const ing_ir_form *form, int64_t *low,
                       int64_t *high) {
    __int128 half = (__int128)1 << (form->bits - 1);
    uint32_t unused = 64 - form->bits;
    range all = {(int64_t)(form->constant << unused) >> unused, 0};
    all.high = all.low;
    for (uint32_t k = 0; k < form->n; k++) {
        range one, times = {(int64_t)form->times[k], (int64_t)form->times[k]};
        if (!range_of(f, form->of[k], MAX_RANGE, &one)) return false;
        one = product(&one, &times);
        all = (range){all.low + one.low, all.high + one.high};
    }
    if (!form->known || all.low < -half || all.high >= half)
        return false; /* it may wrap */
    *low = (int64_t)all.low;
    *high = (int64_t)all.high;
    return true;
}

static bool equal_mod(uint64_t a, uint64_t b, uint32_t bits) {
    return (a - b) << (64 - bits) == 0;
}

bool ing_ir_form_same(const ing_ir_form *a, const ing_ir_form *b) {
    uint32_t bits = a->bits < b->bits ? a->bits : b->bits;
    bool same = a->known && b->known && a->n == b->n &&
                equal_mod(a->constant, b->constant, bits);
    for (uint32_t k = 0; same && k < a->n; k++)
        same = a->of[k] == b->of[k] && equal_mod(a->times[k], b->times[k], bits);
    return same;
}

bool ing_ir_same_place(const ing_ir_func *f, uint32_t elem, uint32_t other) {
    const ing_ir_inst *a = ing_ir_at(f, elem), *b = ing_ir_at(f, other);
    for (uint32_t k = 0; k < a->c; k++) {
        uint32_t p = f->extra.at[a->b + k], q = f->extra.at[b->b + k];
        int64_t x, y;
        bool equal = const_of(f, p, &x) && const_of(f, q, &y) && x == y;
        if (p != q && !equal) return false;
    }
    return true;
}

bool ing_ir_is_joined(const ing_ir_func *f, uint32_t id, int64_t n) {
    const ing_ir_inst *sum = ing_ir_at(f, id);
    int64_t by;
    if (sum->op != ING_OP_ADD || !(sum->flags & ING_IR_AXIS)) return false;
    const ing_ir_inst *product = ing_ir_at(f, sum->a);
    return product->op == ING_OP_MUL && const_of(f, product->b, &by) && by == n;
}

/* ---- which indices are told apart (ACCESS4) ------------------------------------------------------ */

/* The axis of the loop that a value is the index of; ING_MAX_NDIM: of none. */
static uint32_t axis_of(const ing_ir_told *t, const ing_ir_func *f, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(f, id);
    if (!t->axes) return id == t->loop ? 0 : ING_MAX_NDIM;
    bool own = i->op == ING_OP_AXIS && i->a == t->axes && i->b == t->loop;
    return own ? i->c : ING_MAX_NDIM;
}

void ing_ir_told_init(ing_ir_told *t, const ing_ir_scan *s) {
    *t = (ing_ir_told){.loop = s->parallel, .needed = 1};
    for (uint32_t id = 1; id < s->f->insts.len && !t->axes; id++) {
        const ing_ir_inst *i = ing_ir_at(s->f, id);
        if (i->op == ING_OP_AXIS && i->b == s->parallel) t->axes = i->a;
    }
    if (!t->axes) return;
    t->needed = 0;
    if (s->varies[t->axes]) return;
    const ing_ir_inst *axes = ing_ir_at(s->f, t->axes);
    for (uint32_t k = 0; k < axes->c / 2; k++)
        if (!ing_ir_axis_is_one(s->f, axes, k)) t->needed |= (uint64_t)1 << k;
}

typedef struct digit { /* one index in a form */
    uint32_t axis;
    uint64_t times; /* without its sign */
    uint64_t most;  /* last value less first; 0 = not known */
} digit;

static uint64_t magnitude(uint64_t times) {
    return (int64_t)times < 0 ? 0 - times : times;
}

/* The indices in the form, by how much each counts for. */
static bool digits_of(const ing_ir_told *t, const ing_ir_scan *s,
                      const ing_ir_form *form, digit *at, uint32_t *n) {
    uint64_t seen = 0;
    *n = 0;
    for (uint32_t k = 0; k < form->n; k++) {
        uint32_t axis = axis_of(t, s->f, form->of[k]);
        int64_t low, high;
        if (axis == ING_MAX_NDIM) continue;
        if (seen >> axis & 1) return false;
        seen |= (uint64_t)1 << axis;
        digit d = {.axis = axis, .times = magnitude(form->times[k])};
        uint32_t bits = ing_dtype_bits((ing_dtype)ing_ir_at(s->f, form->of[k])->type);
        if (ing_ir_range(s->f, form->of[k], &low, &high))
            d.most = (uint64_t)high - (uint64_t)low;
        else if (bits < 64)
            d.most = ((uint64_t)1 << bits) - 1;
        uint32_t p = (*n)++;
        for (; p && at[p - 1].times > d.times; p--) at[p] = at[p - 1];
        at[p] = d;
    }
    return true;
}

/* ---- families ------------------------------------------------------------------------------ */

static bool widen(ing_ir_family *f, int64_t low, int64_t high) {
    return !__builtin_add_overflow(f->low, low, &f->low) &&
           !__builtin_add_overflow(f->high, high, &f->high);
}

/* Something that is no index and varies: its bounds become those of the rest. */
static bool widen_by(ing_ir_family *f, const ing_ir_scan *s, uint32_t of, uint64_t by) {
    int64_t low, high, times = (int64_t)by;
    if (!ing_ir_range(s->f, of, &low, &high) ||
        __builtin_mul_overflow(low, times, &low) ||
        __builtin_mul_overflow(high, times, &high))
        return false;
    return times > 0 ? widen(f, low, high) : widen(f, high, low);
}

/* Takes the form apart: indices and what no iteration changes stay. */
static bool make_family(ing_ir_family *f, const ing_ir_told *t, const ing_ir_scan *s,
                        uint32_t id) {
    ing_ir_form form;
    ing_ir_form_of(s->f, id, &form);
    uint32_t unused = 64u - form.bits; /* a constant, modulo 2**bits, with its sign */
    int64_t constant = (int64_t)(form.constant << unused) >> unused;
    *f = (ing_ir_family){.form = form, .low = constant, .high = constant, .any = true};
    f->form.constant = 0;
    f->form.n = 0;
    for (uint32_t k = 0; k < form.n; k++) {
        uint32_t of = form.of[k];
        if (s->varies[of] && axis_of(t, s->f, of) == ING_MAX_NDIM) {
            if (!widen_by(f, s, of, form.times[k])) return false;
            continue;
        }
        f->form.of[f->form.n] = of;
        f->form.times[f->form.n++] = form.times[k];
    }
    return form.known;
}

void ing_ir_family_add(ing_ir_family *f, const ing_ir_told *t, const ing_ir_scan *s,
                       uint32_t id) {
    ing_ir_family one;
    if (f->any && !f->known) return;
    bool known = make_family(&one, t, s, id);
    one.known = known;
    if (!f->any) {
        *f = one;
        return;
    }
    f->known = known && ing_ir_form_same(&f->form, &one.form);
    f->form.exact &= one.form.exact;
    if (one.form.bits < f->form.bits) f->form.bits = one.form.bits;
    if (one.low < f->low) f->low = one.low;
    if (one.high > f->high) f->high = one.high;
}

/* One index, an odd number of times: modulo 2**bits another index is another value, if there
 * are no more than 2**bits of them. */
static bool tells_one(const ing_ir_form *form, const digit *d) {
    bool fit = form->bits == 64 || (d->most && d->most >> form->bits == 0);
    return fit && d->times % 2;
}

/* Each counts for more than the spread and all before it. */
static bool tells_all(const ing_ir_form *form, uint64_t spread, const digit *at,
                      uint32_t n) {
    unsigned __int128 sum = spread, top = (unsigned __int128)1 << form->bits;
    for (uint32_t k = 0; k < n; k++) {
        bool last = k + 1 == n;
        if (at[k].times <= sum) return false;
        if (last && form->exact) return true;
        if (!at[k].most) return false;
        sum += (unsigned __int128)at[k].times * at[k].most;
        if (sum >= top) return false;
    }
    return true;
}

void ing_ir_told_add(ing_ir_told *t, const ing_ir_scan *s, const ing_ir_family *f) {
    digit at[ING_IR_MAX_TERMS];
    uint32_t n;
    if (!f->any || !f->known || !digits_of(t, s, &f->form, at, &n) || !n) return;
    uint64_t spread = (uint64_t)f->high - (uint64_t)f->low;
    bool one = n == 1 && !spread && tells_one(&f->form, &at[0]);
    if (!one && !tells_all(&f->form, spread, at, n)) return;
    for (uint32_t k = 0; k < n; k++) t->told |= (uint64_t)1 << at[k].axis;
}
