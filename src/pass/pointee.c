/* What the updates of a parallel loop meet: see pointee.h. One walk over the function and one
 * look at each instruction, so linear. Errs towards "touched": a place whose root is unknown is
 * no pointee, and a call touches whatever it is given and whatever funcs name. */
#include "pass/pointee.h"

static const ing_ir_inst *at(const ing_pointees *x, uint32_t id) {
    return ing_ir_at(x->f, id);
}

ing_pointee ing_pointee_of(const ing_pointees *x, uint32_t ref) {
    const ing_ir_inst *i = ing_ir_root(x->f, ref, NULL);
    bool known = i->op == ING_OP_ARRAY || i->op == ING_OP_BUFFER;
    return known ? (ing_pointee){i->op, i->a} : (ing_pointee){0, 0};
}

static bool calls(const ing_pointees *x) {
    return x->scan.has[x->scan.parallel] & ING_IR_HAS_CALL;
}

/* ---- fates ---------------------------------------------------------------------------------- */

static ing_fate *fate_of(ing_pointees *x, ing_pointee t) {
    ing_hash128 key = {t.op, t.a};
    uint32_t number = ing_map_get(&x->numbers, key);
    if (!number) {
        ing_fate fresh = {.of = t};
        number = x->fates.len + 1;
        bool ok = ing_vec_push(&x->fates, fresh);
        x->failed |= !ok || !ing_map_put(&x->numbers, key, number);
        if (!ok) return NULL;
    }
    return &x->fates.at[number - 1];
}

static void spoil(ing_pointees *x, uint32_t ref) {
    ing_pointee t = ing_pointee_of(x, ref);
    ing_fate *f = t.op ? fate_of(x, t) : NULL;
    if (f) f->spoiled = true;
}

/* A key of the place, if its subscripts and members are constants. Two places with one key
 * would be taken for one, which is safe. */
static bool place_key(const ing_pointees *x, uint32_t ref, ing_hash128 *key) {
    const ing_ir_inst *i = at(x, ref);
    *key = (ing_hash128){1469598103934665603u, 0};
    for (; i->op == ING_OP_MEMBER || i->op == ING_OP_ELEM; i = at(x, i->a)) {
        uint32_t n = i->op == ING_OP_ELEM ? i->c : 1;
        for (uint32_t k = 0; k < n; k++) {
            uint64_t index = i->b;
            if (i->op == ING_OP_ELEM) {
                const ing_ir_inst *c = at(x, x->f->extra.at[i->b + k]);
                if (c->op != ING_OP_CONST) return false;
                index = ing_ir_const_bits(c);
            }
            key->lo = (key->lo ^ index) * 1099511628211u;
        }
    }
    key->hi = (uint64_t)i->op << 32 | i->a;
    return i->op == ING_OP_ARRAY || i->op == ING_OP_BUFFER;
}

static void note_kind(ing_pointees *x, ing_fate *f, uint32_t ref, uint8_t kind) {
    ing_hash128 key;
    f->mixed |= f->kind && f->kind != kind + 1;
    if (!f->kind) f->kind = (uint8_t)(kind + 1);
    if (!place_key(x, ref, &key)) {
        f->loose = true;
        return;
    }
    uint32_t there = ing_map_get(&x->places, key);
    f->spoiled |= there && there != kind + 1u;
    if (!there) x->failed |= !ing_map_put(&x->places, key, kind + 1u);
}

static void note_update(ing_pointees *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    ing_pointee t = ing_pointee_of(x, i->a);
    bool inside = ing_ir_inside(&x->scan, id, x->scan.parallel);
    bool fine = inside && !x->scan.used[id] && t.op && x->qualifies(x, id);
    ing_fate *f = fine ? fate_of(x, t) : NULL;
    if (f)
        note_kind(x, f, i->a, ing_pass_sum_kind(i->c));
    else
        spoil(x, i->a);
}

/* Calls may reach arrays that the loop does not name. */
static void note_named(ing_pointees *x) {
    for (uint32_t k = 0; k < x->m->args.len && calls(x); k++) {
        ing_pointee t = {ING_OP_ARRAY, k};
        ing_fate *f = x->funcs->named[k] ? fate_of(x, t) : NULL;
        if (f) f->spoiled = true;
    }
}

/* All other arrays of the loop lie apart from this one. */
static bool apart(ing_pointees *x, const ing_fate *f) {
    uint32_t n = 0, array = f->of.a;
    if (f->of.op != ING_OP_ARRAY) return true;
    for (uint32_t k = 0; k < x->fates.len; k++)
        n += x->fates.at[k].of.op == ING_OP_ARRAY && x->fates.at[k].of.a != array;
    if (!ing_pass_may_assume(x->m, x->o, n)) return false;
    for (uint32_t k = 0; k < x->fates.len; k++) {
        ing_pointee t = x->fates.at[k].of;
        if (t.op == ING_OP_ARRAY && t.a != array)
            ing_pass_assume_apart(x->m, array, t.a);
    }
    return true;
}

bool ing_pointee_alone(ing_pointees *x, uint32_t id) {
    const ing_ir_inst *i = at(x, id);
    bool inside = ing_ir_inside(&x->scan, id, x->scan.parallel);
    if (i->op != ING_OP_ATOMIC || !inside || x->scan.used[id]) return false;
    ing_pointee t = ing_pointee_of(x, i->a);
    ing_fate *f = t.op ? fate_of(x, t) : NULL;
    if (!f || f->spoiled || (f->mixed && (f->loose || x->one_kind))) return false;
    if (!f->judged) f->granted = apart(x, f);
    f->judged = true;
    return f->granted;
}

/* ---- all ------------------------------------------------------------------------------------ */

bool ing_pointees_init(ing_pointees *x, bool whole) {
    ing_ir_scan *s = &x->scan;
    ing_map_init(&x->numbers);
    ing_map_init(&x->places);
    if (!ing_ir_scan_init(s, x->f)) return false;
    uint32_t first = whole ? 0 : s->first[s->parallel];
    uint32_t end = whole ? s->accesses.len : s->end[s->parallel];
    for (uint32_t k = first; k < end; k++) {
        const ing_ir_access *a = &s->accesses.at[k];
        if (at(x, a->id)->op == ING_OP_ATOMIC)
            note_update(x, a->id);
        else
            spoil(x, a->ref);
    }
    note_named(x);
    return !x->failed;
}

void ing_pointees_fini(ing_pointees *x) {
    ing_map_fini(&x->numbers);
    ing_map_fini(&x->places);
    ing_vec_fini(&x->fates);
    ing_ir_scan_fini(&x->scan);
}
