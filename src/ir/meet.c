/* Whether two accesses of an array can meet in different iterations of a loop (ACCESS5 in access.h).
 * Called by passes that reorder iterations or make updates plain. Answers err towards "they do". */
#include "ir/access.h"

typedef enum kind { FIXED, INDEX, INNER, OTHER } kind;

typedef struct side { /* a subscript: times * one index + rest */
    ing_ir_form rest; /* what no iteration of the loop changes */
    uint64_t times;   /* of `of` */
    uint32_t of;      /* the loop, or one inside of it; 0: FIXED or OTHER */
    kind kind;
} side;

typedef struct pair {
    const ing_ir_scan *s;
    uint32_t loop, n;
    uint64_t mask; /* bits of the loop and of those inside of it */
    side a[ING_MAX_NDIM], b[ING_MAX_NDIM];
} pair;

/* Bits of loops at its depth and below. What varies with the piece of a task alone is fixed. */
static uint64_t mask_of(const ing_ir_scan *s, uint32_t loop) {
    return ~(ing_ir_loop_bit(s, loop) - 1) & ~((uint64_t)1 << ING_IR_PIECE_BIT);
}

static void take_side(const pair *p, uint32_t id, side *out) {
    ing_ir_form form;
    ing_ir_form_of(p->s->f, id, &form);
    *out = (side){.rest = form, .kind = form.known ? FIXED : OTHER};
    out->rest.n = 0;
    for (uint32_t k = 0; k < form.n; k++) {
        uint32_t of = form.of[k];
        if (!(p->s->varies[of] & p->mask)) {
            out->rest.of[out->rest.n] = of;
            out->rest.times[out->rest.n++] = form.times[k];
            continue;
        }
        bool index = ing_ir_at(p->s->f, of)->op == ING_OP_LOOP && !out->of;
        if (out->kind != OTHER)
            out->kind = !index ? OTHER : of == p->loop ? INDEX : INNER;
        out->of = of;
        out->times = form.times[k];
    }
}

/* a - b, if that is a number. */
static bool distance(const ing_ir_form *a, const ing_ir_form *b, int64_t *by) {
    ing_ir_form d = *a;
    ing_ir_form_add(&d, b, UINT64_MAX);
    uint32_t unused = 64u - d.bits;
    *by = (int64_t)(d.constant << unused) >> unused;
    return d.known && !d.n;
}

static bool is_wide(const pair *p, const side *a, const side *b) {
    uint32_t bits = ing_dtype_bits((ing_dtype)ing_ir_at(p->s->f, p->loop)->type);
    return a->rest.bits >= bits && b->rest.bits >= bits;
}

/* One axis alone tells: the places differ, or the iterations are the same. */
static bool axis_tells(const pair *p, uint32_t k) {
    const side *a = &p->a[k], *b = &p->b[k];
    int64_t by;
    if (a->kind != b->kind || !distance(&a->rest, &b->rest, &by)) return false;
    if (a->kind == FIXED) return by != 0;
    return a->kind == INDEX && a->times == b->times && a->times % 2 && by == 0 &&
           is_wide(p, a, b);
}

static bool is_once(const side *x, kind k) {
    return x->kind == k && x->times == 1;
}

/* [i, f] and [g, i]: they meet where i is f - .. here and g - .. there, which is one value. */
static bool fixed_tell(const pair *p, uint32_t k, uint32_t j) {
    if (!is_once(&p->a[k], INDEX) || p->b[k].kind != FIXED || p->a[j].kind != FIXED ||
        !is_once(&p->b[j], INDEX))
        return false;
    ing_ir_form here = p->b[k].rest, there = p->a[j].rest;
    int64_t by;
    ing_ir_form_add(&here, &p->a[k].rest, UINT64_MAX);
    ing_ir_form_add(&there, &p->b[j].rest, UINT64_MAX);
    return distance(&here, &there, &by) && by == 0 && is_wide(p, &p->a[k], &p->b[k]) &&
           is_wide(p, &p->a[j], &p->b[j]);
}

/* One more than the index of a loop: at most its end, so it does not wrap where it is computed in a
 * signed type. Casts of that to wider ones change nothing. */
static bool is_next(const pair *p, uint32_t id, const ing_ir_form *form) {
    const ing_ir_func *f = p->s->f;
    ing_dtype index = (ing_dtype)ing_ir_at(f, p->loop)->type;
    ing_dtype t = (ing_dtype)ing_ir_at(f, id)->type;
    while (ing_ir_at(f, id)->op == ING_OP_CAST) {
        id = ing_ir_at(f, id)->a;
        ing_dtype from = (ing_dtype)ing_ir_at(f, id)->type;
        if (!ing_dtype_is_signed(from) || ing_dtype_bits(from) > ing_dtype_bits(t))
            break;
        t = from;
    }
    return form->constant == 1 && form->bits >= ing_dtype_bits(t) &&
           ing_dtype_is_signed(t) && ing_dtype_is_signed(index) &&
           ing_dtype_bits(t) >= ing_dtype_bits(index);
}

/* Whether the index of a loop inside is at least (or, `below`, at most) that of the loop, plus `by`. */
static bool bounded(const pair *p, uint32_t inner, bool below, int64_t *by) {
    const ing_ir_inst *l = ing_ir_at(p->s->f, inner);
    uint32_t bound = below ? l->b : l->a;
    ing_ir_form form;
    ing_ir_form_of(p->s->f, bound, &form);
    *by = (int64_t)form.constant - below;
    return form.known && (form.exact || is_next(p, bound, &form)) && form.n == 1 &&
           form.of[0] == p->loop && form.times[0] == 1 &&
           (int64_t)form.constant > INT32_MIN && (int64_t)form.constant < INT32_MAX;
}

/* [i, j] and [j, i] of a triangle, j never below i (or never above): with one place in two
 * iterations, each would be at least the other. */
static bool triangle_tells(const pair *p, uint32_t k, uint32_t m, bool below) {
    const side *a = &p->a[k], *b = &p->b[k], *c = &p->a[m], *d = &p->b[m];
    int64_t here, there, first, second;
    if (!is_once(a, INDEX) || !is_once(b, INNER) || !is_once(c, INNER) ||
        !is_once(d, INDEX))
        return false;
    bool exact = a->rest.exact && b->rest.exact && c->rest.exact && d->rest.exact;
    if (!exact || !distance(&b->rest, &a->rest, &here) ||
        !distance(&c->rest, &d->rest, &there) || !bounded(p, b->of, below, &first) ||
        !bounded(p, c->of, below, &second))
        return false;
    __int128 one = (__int128)first + here, two = (__int128)second + there;
    return below ? one <= 0 && two <= 0 : one >= 0 && two >= 0;
}

bool ing_ir_may_meet_within(const ing_ir_scan *s, uint32_t loop, uint32_t outer,
                            uint32_t elem, uint32_t other) {
    const ing_ir_inst *a = ing_ir_at(s->f, elem), *b = ing_ir_at(s->f, other);
    pair p = {.s = s, .loop = loop, .n = a->c, .mask = mask_of(s, outer)};
    if (a->c != b->c) return true;
    for (uint32_t k = 0; k < p.n; k++) {
        take_side(&p, s->f->extra.at[a->b + k], &p.a[k]);
        take_side(&p, s->f->extra.at[b->b + k], &p.b[k]);
    }
    for (uint32_t k = 0; k < p.n; k++) {
        if (axis_tells(&p, k)) return false;
        for (uint32_t m = 0; m < p.n; m++)
            if (m != k && (fixed_tell(&p, k, m) || triangle_tells(&p, k, m, false) ||
                           triangle_tells(&p, k, m, true)))
                return false;
    }
    return true;
}

bool ing_ir_may_meet(const ing_ir_scan *s, uint32_t loop, uint32_t elem,
                     uint32_t other) {
    return ing_ir_may_meet_within(s, loop, loop, elem, other);
}

/* ---- ACCESS6 ------------------------------------------------------------------------------------ */

/* Whether constants of three such cannot add up to more than 32 bits have. */
static bool is_small(const ing_ir_form *form) {
    uint32_t unused = 64u - form->bits;
    int64_t c = (int64_t)(form->constant << unused) >> unused;
    return c > -(1 << 28) && c < 1 << 28;
}

/* A bound of a loop as it is, if nothing in it wraps: one more than an index of a loop does not. */
static bool exact_bound(const ing_ir_func *f, uint32_t id, ing_ir_form *form) {
    ing_ir_form_of(f, id, form);
    const ing_ir_inst *of = form->n == 1 ? ing_ir_at(f, form->of[0]) : NULL;
    ing_dtype t = (ing_dtype)ing_ir_at(f, id)->type;
    bool next = of && of->op == ING_OP_LOOP && form->times[0] == 1 &&
                form->constant == 1 && ing_dtype_is_signed(t) &&
                ing_dtype_is_signed((ing_dtype)of->type) &&
                ing_dtype_bits(t) >= ing_dtype_bits((ing_dtype)of->type) &&
                form->bits >= ing_dtype_bits((ing_dtype)of->type);
    return form->known && is_small(form) && (form->exact || next);
}

/* Is a - b + more a number above 0? */
static bool is_above(const ing_ir_form *a, const ing_ir_form *b, int64_t more) {
    int64_t by;
    return distance(a, b, &by) && by + more > 0;
}

static bool axis_never_meets(const ing_ir_scan *s, uint32_t loop, uint32_t index,
                             uint32_t fixed) {
    ing_ir_form here, there, bound;
    const ing_ir_inst *l = ing_ir_at(s->f, loop);
    int64_t by;
    ing_ir_form_of(s->f, index, &here);
    ing_ir_form_of(s->f, fixed, &there);
    if (ing_ir_varies(s, fixed, loop)) return false;
    if (!ing_ir_varies(s, index, loop)) return distance(&here, &there, &by) && by != 0;
    if (!here.known || !there.known || !here.exact || !there.exact ||
        !is_small(&here) || !is_small(&there))
        return false;
    ing_ir_form self = {
        .of = {loop}, .times = {1}, .n = 1, .bits = 64, .known = true, .exact = true};
    ing_ir_form_add(&here, &self, UINT64_MAX); /* what comes to the index */
    for (uint32_t k = 0; k < here.n; k++)
        if (ing_ir_varies(s, here.of[k], loop)) return false;
    if (exact_bound(s->f, l->b, &bound)) { /* the last is bound - 1 + here */
        ing_ir_form_add(&bound, &here, 1);
        if (is_above(&there, &bound, 1)) return true;
    }
    if (!exact_bound(s->f, l->a, &bound)) return false;
    ing_ir_form_add(&bound, &here, 1);
    return is_above(&bound, &there, 0);
}

bool ing_ir_never_there(const ing_ir_scan *s, uint32_t loop, uint32_t elem,
                        uint32_t fixed) {
    const ing_ir_inst *a = ing_ir_at(s->f, elem), *b = ing_ir_at(s->f, fixed);
    for (uint32_t k = 0; a->c == b->c && k < a->c; k++)
        if (axis_never_meets(s, loop, s->f->extra.at[a->b + k],
                             s->f->extra.at[b->b + k]))
            return true;
    return false;
}
