/* The rule of AD3: what backward code reads again, the launch must not have overwritten. Refuses
 * where subscripts do not show that it did not, and where iterations of a parallel loop wait for
 * each other. Called after need.c, which says what is read again, callees first. Rules
 *  RULE1 what funcs read again and write counts where they are called, with subscripts in the
 *     caller's values; those that the func makes by itself may be any.
 *  RULE2 a write comes later than a read if it does so in the text, in the order of tasks, or in a
 *     later iteration of a loop around both that is run in order. Iterations of a parallel loop
 *     have no order: there only the text counts.
 *  RULE3 subscripts that differ in numbers that the launch was given differ: the backward kernel compares those
 *     numbers before it does anything (told.c), and stops.
 *     Where the program promises it (m->promised), all that may differ are taken to differ.
 *  RULE4 a local that a loop only counts up, or only down, is told from iteration to iteration like
 *     an index: what is read at t and written at t + 1 stays.
 *  RULE5 arrays that are two arguments are apart, which a launch compares (m->rule), where one array for both
 *     would be refused. Where the program promises (RULE3), only where needed elements would be overwritten.
 *     Parts of one memory that are no equal arrays, or have two gradients, are refused: subscripts do not tell
 *     where they meet, and adjoints would stay behind in one of the two (m->views).
 *  RULE6 whose value an atomic minimum or maximum left is told by what is there in the end: between two
 *     of them nobody may look, who would have the value of another.
 *  RULE7 iterations of a parallel loop may not look at what others update, nor at what an update found,
 *     unless the place is their own: there is no order in which adjoints could come.
 *  RULE8 nor may they write one place, but for updates of one kind, which need no order: refused where
 *     it is certain, and where one subscript is made of data and the other is not the same.
 *  RULE9 the index of a loop is not below its begin and below its end: x[j] of `for j in range(i)` is
 *     not x[i], nor what later iterations of a loop over i write. That takes numbers that do not wrap:
 *     subscripts that are signed (R22), and bounds whose range is known, or which are a signed sum of
 *     indices and one number, i + 1 or n - i.
 *  RULE10 what a loop reads of one element gathers its adjoint in a local until the loop ends, if the loop
 *     writes that element nowhere: backward code of a write looks at the adjoint, or clears it.
 *  RULE11 a func that is run again begins with what the places that it is given hold: what it reads there
 *     counts as read before it does anything, unless it stores there first. One whose result is needed
 *     is run again forwards, which reads all that the result is made of.
 *  RULE12 in one iteration, what stands in a branch has its condition: l[j, j] in the `else` of `if i == j` is not
 *     l[i, j]. With `<` that takes numbers that do not wrap, as in RULE9. */
#include "ad/meet.h"

#include "gate/place.h"

enum { MAX_PAIRS = 1 << 24 /* of one function: more are refused */ };

/* ---- what a function touches ---------------------------------------------------------------- */

/* What a function of the module is given to touch: argument or parameter. */
static bool take_root(const ing_ad_fn *n, uint32_t ref, ing_ad_touch *t,
                      uint32_t *elem) {
    const ing_ir_inst *root = ing_ir_root(n->f, ref, elem);
    t->param = root->op == ING_OP_PARAM;
    t->of = root->a;
    return t->param || root->op == ING_OP_ARRAY;
}

static void take_place(const ing_ad_fn *n, uint32_t ref, uint32_t elem,
                       ing_ad_touch *t) {
    const ing_ir_inst *at = ing_ir_at(n->f, ref), *e = ing_ir_at(n->f, elem);
    t->member = at->op == ING_OP_MEMBER ? at->b + 1 : 0;
    t->n = elem ? e->c : ING_AD_ANY;
    t->ref = !elem;
    for (uint32_t k = 0; elem && k < e->c; k++)
        ing_ir_form_of(n->f, n->f->extra.at[e->b + k], &t->at[k]);
}

static bool push(ing_ad_touches *list, const ing_ad_touch *t) {
    for (uint32_t k = 0; t->id == 0 && k < list->len; k++) {
        const ing_ad_touch *o = &list->at[k]; /* of a func: each array and kind once */
        if (o->of == t->of && o->param == t->param && o->kind == t->kind &&
            t->n == ING_AD_ANY && o->n == ING_AD_ANY)
            return true;
    }
    return ing_vec_push(list, *t);
}

/* Places of the func in values of the caller (RULE1). */
static void translate(const ing_ad_fn *n, const ing_ir_inst *call, ing_ad_touch *t) {
    for (uint32_t k = 0; t->n != ING_AD_ANY && k < t->n; k++) {
        ing_ir_form from = t->at[k], *to = &t->at[k];
        *to = (ing_ir_form){
            .constant = from.constant, .bits = from.bits, .known = from.known};
        for (uint32_t j = 0; from.known && j < from.n; j++) {
            if (!(from.of[j] & ING_AD_OF_PARAM)) {
                to->known = false;
                break;
            }
            uint32_t arg = n->f->extra.at[call->b + (from.of[j] & ~ING_AD_OF_PARAM)];
            ing_ir_form part;
            ing_ir_form_of(n->f, arg, &part);
            ing_ir_form_add(to, &part, from.times[j]);
        }
    }
}

static bool take_call(ing_ad_fn *n, uint32_t id, uint64_t rank,
                      const ing_ad_touches *of, ing_ad_touches *list) {
    const ing_ir_inst *call = ing_ir_at(n->f, id);
    for (uint32_t k = 0; k < of->len; k++) {
        ing_ad_touch t = of->at[k];
        uint32_t elem = 0;
        t.id = id;
        t.loc = call->loc; /* in the text of the caller */
        t.rank += rank;
        t.inner = t.of;
        t.inner_param = t.param;
        translate(n, call, &t);
        if (t.param) {
            uint32_t arg = n->f->extra.at[call->b + t.of];
            uint8_t member = t.member;
            if (!take_root(n, arg, &t, &elem)) continue; /* a local */
            if (elem) take_place(n, arg, elem, &t);
            if (elem && member) t.member = member;
        }
        if (!push(list, &t)) return false;
    }
    return true;
}

static uint8_t kind_of(const ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    uint8_t mark = n->mark[id];
    switch (i->op) {
    case ING_OP_STORE: return ING_AD_STORES;
    case ING_OP_CAS: return ING_AD_UPDATES;
    case ING_OP_ATOMIC: return ING_AD_UPDATES | (uint8_t)(i->c << 4);
    case ING_OP_LOAD:
        if (mark & (ING_AD_AGAIN | ING_AD_FIRST)) return ING_AD_READS | ING_AD_FOLLOWS;
        return mark & ING_AD_LIVE ? ING_AD_FOLLOWS : 0;
    default: return 0;
    }
}

bool ing_ad_is_winner(const ing_ad_fn *n, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    return i->op == ING_OP_ATOMIC && n->mark[id] & ING_AD_LIVE &&
           (i->c == ING_IR_ATOMIC_MIN || i->c == ING_IR_ATOMIC_MAX);
}

/* Reads go to n->reads, writes to n->writes. */
static bool take_inst(ing_ad *ad, ing_ad_fn *n, uint32_t id, uint64_t rank) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    if (i->op == ING_OP_CALL) {
        const ing_ad_fn *to = n->callee[id] ? ad->fns.at[n->callee[id] - 1] : NULL;
        bool run = n->mark[id] & (ING_AD_AGAIN | ING_AD_FIRST);
        return (!to || take_call(n, id, rank, &to->reads, &n->reads)) &&
               (!run || take_call(n, id, rank, &ad->loads[i->a], &n->reads)) &&
               take_call(n, id, rank, &ad->writes[i->a], &n->writes);
    }
    ing_ad_touch t = {.id = id, .rank = rank, .loc = i->loc, .kind = kind_of(n, id)};
    uint32_t elem;
    if (!t.kind || !take_root(n, i->a, &t, &elem)) return true;
    if (!elem && !t.param) return true;
    take_place(n, i->a, elem, &t);
    bool reads = i->op == ING_OP_LOAD;
    uint8_t result = ING_AD_VARIED | ING_AD_USEFUL;
    if (i->op == ING_OP_ATOMIC && (n->mark[id] & result) == result) {
        ing_ad_touch look = t;
        look.kind = ING_AD_FOLLOWS | ING_AD_UPDATES;
        if (!push(&n->reads, &look)) return false;
    }
    if (i->op == ING_OP_ATOMIC && t.ref &&
        n->mark[id] &
            (ING_AD_AGAIN | ING_AD_FIRST)) { /* what it finds there (RULE11) */
        ing_ad_touch before = t;
        before.kind = ING_AD_READS;
        if (!push(&n->reads, &before)) return false;
    }
    if (ing_ad_is_winner(n, id)) {
        ing_ad_touch after = t;
        after.kind = ING_AD_READS | (uint8_t)(t.kind & ING_AD_UPDATE_OF);
        if (!push(&n->reads, &after)) return false;
    }
    return push(reads ? &n->reads : &n->writes, &t);
}

/* As callers see it: forms of parameters stay, all else is any. */
static bool give(const ing_ad_fn *n, const ing_ad_touches *from, ing_ad_touches *to) {
    for (uint32_t k = 0; k < from->len; k++) {
        ing_ad_touch t = from->at[k];
        bool any = t.n != ING_AD_ANY && t.n > 0;
        t.id = 0;
        if (t.param && t.ref && t.kind & ING_AD_READS &&
            !ing_ad_stored_first(n->f, t.of))
            t.rank = 0; /* RULE11 */
        for (uint32_t j = 0; t.n != ING_AD_ANY && j < t.n; j++) {
            ing_ir_form *form = &t.at[j];
            for (uint32_t x = 0; x < form->n; x++) {
                const ing_ir_inst *i = ing_ir_at(n->f, form->of[x]);
                if (i->op == ING_OP_PARAM)
                    form->of[x] = i->a | ING_AD_OF_PARAM;
                else
                    form->known = false;
            }
            any = any && !form->known;
        }
        if (any) t.n = ING_AD_ANY;
        if (!push(to, &t)) return false;
    }
    return true;
}

/* ---- iterations that wait for each other ------------------------------------------------------ */

static uint32_t parallel_around(const ing_ad_fn *n, uint32_t id) {
    uint32_t r = n->region[id];
    while (r && !(ing_ir_at(n->f, r)->flags & ING_IR_PARALLEL)) r = n->region[r];
    return r;
}

/* Are the indices the same but for a number that makes them meet in another iteration? */
static bool shifted(const ing_ad_fn *n, const ing_ir_form *x, const ing_ir_form *y,
                    bool *apart) {
    ing_ir_form d;
    if (!ing_ad_difference(n, x, y, &d) || d.n) return false;
    int64_t by = (int64_t)(d.constant << (64 - d.bits)) >> (64 - d.bits);
    if (by == 0) return true;
    *apart = true;
    bool meets = false;
    for (uint32_t k = 0; k < x->n; k++) {
        const ing_ir_inst *i = ing_ir_at(n->f, x->of[k]);
        if ((i->op == ING_OP_LOOP && !(i->flags & ING_IR_PARALLEL)) ||
            ing_ad_local_of(n, x->of[k]))
            return false; /* in order */
        bool index = i->op == ING_OP_LOOP || i->op == ING_OP_AXIS;
        meets |= index && by % (int64_t)x->times[k] == 0;
    }
    return meets;
}

/* Of subscripts with one index of a parallel loop in them: which, and how far away it must be to meet. */
static bool distance(const ing_ad_fn *n, const ing_ir_form *x, const ing_ir_form *y,
                     uint32_t *index, int64_t *by) {
    ing_ir_form d;
    uint32_t found = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        const ing_ir_inst *i = ing_ir_at(n->f, x->of[k]);
        bool is_index = i->op == ING_OP_LOOP || i->op == ING_OP_AXIS;
        if (!is_index && !ing_ad_is_given(n, x->of[k])) return false;
        if (is_index) *index = x->of[k], *by = (int64_t)x->times[k];
        found += is_index;
    }
    if (found != 1 || !ing_ad_difference(n, x, y, &d) || d.n) return false;
    *by = ((int64_t)(d.constant << (64 - d.bits)) >> (64 - d.bits)) / *by;
    return true;
}

/* In a parallel loop one iteration reads what another one stores: adjoints would have to go from
 * iteration to iteration in one order, and there is none. */
static bool crosses(const ing_ad_fn *n, const ing_ad_touch *r, const ing_ad_touch *w) {
    uint32_t loop = parallel_around(n, r->id);
    if (!loop || loop != parallel_around(n, w->id) || r->n == ING_AD_ANY ||
        r->n != w->n || ing_ad_ranges_apart(n, r, w))
        return false;
    bool apart = false, meets = true;
    uint32_t index[ING_MAX_NDIM], known = 0; /* and how many iterations further it is */
    int64_t by[ING_MAX_NDIM];
    for (uint32_t k = 0; meets && k < r->n; k++) {
        meets = shifted(n, &r->at[k], &w->at[k], &apart);
        if (!meets || !distance(n, &r->at[k], &w->at[k], &index[known], &by[known]))
            continue;
        for (uint32_t j = 0; j < known; j++)
            if (ing_ad_same_value(n, index[j], index[known], ING_AD_DEPTH))
                meets &= by[j] == by[known];
        known++;
    }
    return meets && apart;
}

/* RULE7: `w` is what the look itself updates, or another update of the array. */
static bool races(const ing_ad_fn *n, const ing_ad_touch *look, const ing_ad_touch *w,
                  ing_ad_verdict enough) {
    uint32_t loop = parallel_around(n, look->id);
    if (!loop || loop != parallel_around(n, w->id) || ing_ad_ranges_apart(n, look, w))
        return false;
    ing_ir_form index;
    int64_t first, last;
    ing_ir_form_of(n->f, loop, &index);
    if (ing_ir_form_range(n->f, &index, &first, &last) && first == last) return false;
    return ing_ad_meet(n, look, w, loop) >= enough;
}

/* RULE6: does it look between two updates of one kind? */
static bool is_between(const ing_ad_fn *n, const ing_ad_touch *r, const ing_ad_touch *l,
                       const ing_ad_touch *w, ing_ad_verdict enough) {
    return l->kind & ING_AD_FOLLOWS && !ing_ad_other_member(l, r) &&
           ing_ad_overwrites(n, r, l) >= enough && ing_ad_overwrites(n, l, w) >= enough;
}

static bool looked_between(const ing_ad_fn *n, const ing_ad_touch *r,
                           const ing_ad_touch *w, ing_ad_verdict enough) {
    for (uint32_t k = 0; k < n->reads.len; k++) {
        const ing_ad_touch *l = &n->reads.at[k];
        if (ing_ad_same_array(l, r) && is_between(n, r, l, w, enough)) return true;
    }
    return false;
}

/* ---- iterations that write one place (RULE8) ---------------------------------------------------- */

static bool like_updates(const ing_ad_touch *a, const ing_ad_touch *b) {
    uint8_t x = a->kind >> 4, y = b->kind >> 4;
    bool sums = (x == ING_IR_ATOMIC_ADD || x == ING_IR_ATOMIC_SUB) &&
                (y == ING_IR_ATOMIC_ADD || y == ING_IR_ATOMIC_SUB);
    return a->kind & b->kind & ING_AD_UPDATES && (x == y || sums);
}

/* Is the number made of what arrays hold? */
static bool is_data(const ing_ad_fn *n, uint32_t id, uint32_t left) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    uint32_t elem = 0;
    if (i->op == ING_OP_LOAD) ing_ir_root(n->f, i->a, &elem);
    if (i->op == ING_OP_LOAD) return elem != 0;
    bool made = i->op == ING_OP_CAST || ing_op_is_arith(i->op);
    return made && left &&
           (is_data(n, i->a, left - 1) ||
            (i->op != ING_OP_CAST && i->b && is_data(n, i->b, left - 1)));
}

/* The same number in one iteration; what is loaded from one element counts as such. */
static bool same_number(const ing_ad_fn *n, uint32_t a, uint32_t b, uint32_t left) {
    const ing_ir_inst *x = ing_ir_at(n->f, a), *y = ing_ir_at(n->f, b);
    if (ing_ad_same_value(n, a, b, ING_AD_DEPTH)) return true;
    if (x->op != y->op || x->type != y->type || !left) return false;
    if (x->op == ING_OP_LOAD) {
        uint32_t at, other;
        const ing_ir_inst *of = ing_ir_root(n->f, x->a, &at),
                          *to = ing_ir_root(n->f, y->a, &other);
        const ing_ir_inst *e = ing_ir_at(n->f, at), *o = ing_ir_at(n->f, other);
        bool same = at && other && of->op == to->op && of->a == to->a && e->c == o->c;
        for (uint32_t k = 0; same && k < e->c; k++)
            same = same_number(n, n->f->extra.at[e->b + k], n->f->extra.at[o->b + k],
                               left - 1);
        return same;
    }
    bool made = x->op == ING_OP_CAST || ing_op_is_arith(x->op);
    return made && same_number(n, x->a, y->a, left - 1) &&
           (x->op == ING_OP_CAST || !x->b || same_number(n, x->b, y->b, left - 1));
}

static bool same_form(const ing_ad_fn *n, const ing_ir_form *x, const ing_ir_form *y) {
    bool same = x->known && y->known && x->n == y->n && x->constant == y->constant;
    for (uint32_t k = 0; same && k < x->n; k++)
        same = x->times[k] == y->times[k] &&
               same_number(n, x->of[k], y->of[k], ING_AD_DEPTH);
    return same;
}

/* Is one of the subscripts that differ made of data? */
static bool differs_by_data(const ing_ad_fn *n, const ing_ad_touch *a,
                            const ing_ad_touch *b) {
    bool found = false;
    for (uint32_t k = 0; a->n != ING_AD_ANY && a->n == b->n && k < a->n; k++) {
        const ing_ir_form *x = &a->at[k], *y = &b->at[k];
        if (same_form(n, x, y)) continue;
        for (uint32_t j = 0; j < x->n; j++) found |= is_data(n, x->of[j], ING_AD_DEPTH);
        for (uint32_t j = 0; j < y->n; j++) found |= is_data(n, y->of[j], ING_AD_DEPTH);
    }
    return found;
}

/* Does every iteration of the loop do it, at a place that goes with its index? */
static bool is_sure(const ing_ad_fn *n, const ing_ad_touch *t, uint32_t loop) {
    bool goes = false;
    for (uint32_t k = 0; t->n != ING_AD_ANY && k < t->n; k++)
        goes |= ing_ad_times_of(&t->at[k], loop) != 0;
    return goes && n->parent[t->id] == loop;
}

static bool clashes(const ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *a,
                    const ing_ad_touch *b) {
    if (ing_ad_other_member(a, b) || like_updates(a, b) ||
        !(n->mark[a->id] & n->mark[b->id] & ING_AD_LIVE))
        return false;
    ing_ad_verdict enough = ING_AD_MAYBE;
    if (ad->m->promised || !differs_by_data(n, a, b)) {
        uint32_t loop = parallel_around(n, a->id);
        if (!is_sure(n, a, loop) || !is_sure(n, b, loop)) return false;
        enough = ING_AD_YES;
    }
    return races(n, a, b, enough) || races(n, b, a, enough);
}

/* ---- all pairs ---------------------------------------------------------------------------------- */

/* Is the pair among m->rule? Of two arguments, before the kernel of derivatives has more. */
static uint8_t *noted(const ing_ad *ad, const ing_ad_touch *a, const ing_ad_touch *b) {
    return &ad->noted[(size_t)a->of * ad->m->args.len + b->of];
}

/* Two arguments: a launch sees whether they are one array (RULE5). */
static ing_status note_apart(ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                             const ing_ad_touch *w, ing_err *e) {
    if (*noted(ad, r, w)) return ING_OK;
    *noted(ad, r, w) = *noted(ad, w, r) = 1;
    bool ok =
        ing_vec_push(&ad->m->rule, ((ing_ir_rule){r->of, w->of, n->func, w->loc}));
    return ok ? ING_OK : ing_ad_no_memory(e);
}

/* Are two arguments of one array's type? */
static bool may_be_one(const ing_ad *ad, const ing_ad_touch *a, const ing_ad_touch *b) {
    if (a->param || b->param) return false;
    const ing_type_info *x = ing_ir_type(ad->m, ad->m->args.at[a->of].type);
    const ing_type_info *y = ing_ir_type(ad->m, ad->m->args.at[b->of].type);
    return x->elem == y->elem && x->rank == y->rank;
}

static const char OVERWRITTEN[] =
    "an element that was read, and whose value the backward pass needs, is overwritten "
    "here";
static const char OVERWRITTEN_HELP[] =
    "write to another array or to the next step of this one, `x[t + 1, i] = "
    "f(x[t, i])`; or compute the change in one kernel, add it in another, and name the "
    "array for the tape: `qd.ad.Tape(loss, state=[x])`";

/* What is wrong with the pair, if the arrays are one: NULL = nothing. `at` is the place, `remedy` what to do. */
static const char *wrong_with(const ing_ad *ad, const ing_ad_fn *n,
                              const ing_ad_touch *r, const ing_ad_touch *w,
                              uint32_t *at, const char **remedy) {
    ing_ad_verdict enough = ad->m->promised ? ING_AD_YES : ING_AD_MAYBE;
    bool like = r->kind & ING_AD_UPDATE_OF && r->kind >> 4 == w->kind >> 4;
    bool result = r->kind & ING_AD_UPDATES; /* of an update */
    *at = w->loc;
    *remedy =
        "write to another array or to the next step of this one, `x[t + 1, i] = "
        "f(x[t, i])`; or compute the change in one kernel, add it in another, and "
        "name the array for the tape: `qd.ad.Tape(loss, state=[x])`";
    if (r->kind & ING_AD_READS && ing_ad_overwrites(n, r, w) >= enough &&
        (!like || looked_between(n, r, w, enough)))
        return OVERWRITTEN;
    if (!ing_ad_same_array(r, w) && ad->m->promised) return NULL;
    *remedy = "an inner loop runs in order: `for _ in range(1):` around it";
    if (w->kind & ING_AD_STORES && r->kind & ING_AD_FOLLOWS && crosses(n, r, w))
        return "Cross-iteration read-after-write: iterations of a parallel loop read "
               "what others store here";
    *at = r->loc;
    if (w->kind & ING_AD_UPDATES && r->kind & ING_AD_FOLLOWS &&
        races(n, r, w, result ? enough : ING_AD_YES))
        return "iterations of a parallel loop read here what others update, in an "
               "order that nobody knows";
    return NULL;
}

/* Looks between two updates of one kind by way of another argument (RULE6). */
static ing_status note_looks(ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                             const ing_ad_touch *w, ing_err *e) {
    for (uint32_t k = 0; k < n->reads.len; k++) {
        const ing_ad_touch *l = &n->reads.at[k];
        if (!ing_ad_same_array(l, r) && may_be_one(ad, l, r) &&
            is_between(n, r, l, w, ING_AD_MAYBE))
            ING_TRY(note_apart(ad, n, l, w, e));
    }
    return ING_OK;
}

/* One array, and nothing wrong that is seen here. */
static ing_status check_one(ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                            const ing_ad_touch *w, ing_err *e) {
    bool meets = false,
         like = r->kind & ING_AD_UPDATE_OF && r->kind >> 4 == w->kind >> 4;
    if (ad->m->promised) return ING_OK;
    if (like) return note_looks(ad, n, r, w, e);
    if (r->kind & ING_AD_READS) ING_TRY(ing_ad_note_told(ad, n, r, w, &meets, e));
    if (!meets) return ING_OK;
    ad->m->remedy = OVERWRITTEN_HELP;
    return ing_ad_refuse(ad->m, n->func, w->loc, e, OVERWRITTEN);
}

static ing_status check_pair(ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                             const ing_ad_touch *w, ing_err *e) {
    const char *remedy, *why;
    uint32_t at;
    bool same = ing_ad_same_array(r, w);
    if (r->ref && w->ref) return ING_OK; /* a local for the func; its callers look */
    if (ing_ad_other_member(r, w) || (!same && !may_be_one(ad, r, w))) return ING_OK;
    why = wrong_with(ad, n, r, w, &at, &remedy);
    if (!why && same) return check_one(ad, n, r, w, e);
    if (!why) return ING_OK;
    if (!same) return note_apart(ad, n, r, w, e);
    ad->m->remedy = remedy;
    return ing_ad_refuse(ad->m, n->func, at, e, why);
}

static ing_status check_writes(ing_ad *ad, const ing_ad_fn *n, ing_err *e) {
    for (uint32_t k = 0; k < n->writes.len; k++)
        for (uint32_t j = 0; j < k; j++) {
            const ing_ad_touch *a = &n->writes.at[j], *b = &n->writes.at[k];
            bool same = ing_ad_same_array(a, b);
            if (!same && (ad->m->promised || !may_be_one(ad, a, b))) continue;
            if (!clashes(ad, n, a, b)) continue;
            if (!same) {
                ING_TRY(note_apart(ad, n, a, b, e));
                continue;
            }
            ad->m->remedy = "write in a loop of its own, or in order: `for _ in "
                            "range(1):` around it";
            return ing_ad_refuse(ad->m, n->func, b->loc, e,
                                 "iterations of a parallel loop write here what others "
                                 "write, in an order that nobody knows");
        }
    return ING_OK;
}

/* ---- adjoints that wait for the end of a loop (RULE10) -------------------------------------------- */

/* May one iteration of the loop read what the same one or another writes? */
static bool stirs(const ing_ad *ad, const ing_ad_fn *n, const ing_ad_touch *r,
                  const ing_ad_touch *w, uint32_t loop) {
    if (!ing_ad_is_inside(n, w->id, loop) || ing_ad_other_member(r, w) ||
        ing_ad_ranges_apart(n, r, w))
        return false;
    if (ing_ad_meet(n, r, w, 0) == ING_AD_NO &&
        ing_ad_meet(n, r, w, loop) == ING_AD_NO &&
        ing_ad_meet(n, w, r, loop) == ING_AD_NO)
        return false;
    if (ing_ad_same_array(r, w) || r->param || w->param) return true;
    return may_be_one(ad, r, w) && !*noted(ad, r, w);
}

static void find_still(const ing_ad *ad, ing_ad_fn *n) {
    for (uint32_t k = 0; k < n->reads.len; k++) {
        const ing_ad_touch *r = &n->reads.at[k];
        uint32_t loop = n->region[r->id];
        bool still = loop && ing_ir_at(n->f, r->id)->op == ING_OP_LOAD;
        for (uint32_t j = 0; still && j < n->writes.len; j++)
            still = !stirs(ad, n, r, &n->writes.at[j], loop);
        if (still) n->mark[r->id] |= ING_AD_STILL;
    }
}

/* How many instructions a func runs through, in the order of the text, with those of callees. */
static uint64_t next_rank(const ing_ad *ad, const ing_ir_inst *i, uint64_t rank) {
    uint64_t more = i->op == ING_OP_CALL ? ad->span[i->a] : 0;
    return rank + 1 + more < rank ? rank : rank + 1 + more;
}

static bool take_write(ing_ad *ad, ing_ad_fn *n, uint32_t id, uint64_t rank) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    ing_ad_touch t = {.id = id, .rank = rank, .loc = i->loc, .kind = ING_AD_UPDATES};
    uint32_t elem;
    switch (i->op) {
    case ING_OP_CALL: return take_call(n, id, rank, &ad->writes[i->a], &n->writes);
    case ING_OP_STORE: t.kind = ING_AD_STORES; break;
    case ING_OP_ATOMIC: t.kind |= (uint8_t)(i->c << 4); break;
    case ING_OP_CAS: break;
    default: return true;
    }
    if (!take_root(n, i->a, &t, &elem) || (!elem && !t.param)) return true;
    take_place(n, i->a, elem, &t);
    return push(&n->writes, &t);
}

/* Of a func that is run again forwards. */
static bool take_load(ing_ad *ad, ing_ad_fn *n, uint32_t id, uint64_t rank) {
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    if (!(n->mark[id] & ING_AD_RUN)) return true;
    if (i->op == ING_OP_CALL)
        return take_call(n, id, rank, &ad->loads[i->a], &n->reads);
    bool asked = i->op == ING_OP_ATOMIC && n->mark[id] & ING_AD_ASKED;
    if (i->op != ING_OP_LOAD && !asked) return true;
    ing_ad_touch t = {.id = id, .rank = rank, .loc = i->loc, .kind = ING_AD_READS};
    uint32_t elem;
    if (!take_root(n, i->a, &t, &elem) || (!elem && !t.param)) return true;
    take_place(n, i->a, elem, &t);
    return push(&n->reads, &t);
}

ing_status ing_ad_find_writes(ing_ad *ad, ing_err *e) {
    for (uint32_t k = 0; k < ad->n_funcs; k++) {
        uint32_t func = ad->order[k];
        ing_ad_fn n = {.func = func, .f = ad->m->funcs.at[func]};
        uint64_t rank = 0;
        n.mark = ing_calloc(n.f->insts.len, 1);
        bool ok = n.mark && ing_ad_find_rerun(ad, n.f, n.mark);
        for (uint32_t id = 1; ok && func && id < n.f->insts.len; id++) {
            ok = take_write(ad, &n, id, rank) && take_load(ad, &n, id, rank);
            rank = next_rank(ad, ing_ir_at(n.f, id), rank);
        }
        ok = ok && give(&n, &n.writes, &ad->writes[func]) &&
             give(&n, &n.reads, &ad->loads[func]);
        ad->span[func] = rank;
        ing_free(n.mark);
        ing_vec_fini(&n.writes);
        ing_vec_fini(&n.reads);
        if (!ok) return ing_ad_no_memory(e);
    }
    return ING_OK;
}

/* Two arguments, one of them written, that may be parts of one memory (RULE5). */
static bool note_view(ing_ad *ad, uint32_t a, uint32_t b) {
    ing_ir_mod *m = ad->m;
    ing_type x = m->args.at[a].type, y = m->args.at[b].type;
    if (!(ing_ad_is_real(m, x) && ing_ad_is_real(m, y)) &&
        ing_ir_type(m, x)->elem != ing_ir_type(m, y)->elem)
        return true;
    uint32_t p = ing_ad_companion_arg(ad, a), q = ing_ad_companion_arg(ad, b);
    ing_ir_apart pair = {a, b}, both = p < q ? (ing_ir_apart){p - 1, q - 1}
                                             : (ing_ir_apart){q - 1, p - 1};
    return ing_vec_push(&m->views, pair) &&
           ing_vec_push(&m->views, p && q && p != q ? both : pair);
}

static ing_status note_views(ing_ad *ad, const ing_ad_fn *n, ing_err *e) {
    uint32_t len = ad->m->args.len;
    uint8_t *does = ing_calloc((size_t)len + 1, 1);
    bool ok = does && !n->func;
    for (uint32_t k = 0; ok && k < n->reads.len; k++) does[n->reads.at[k].of] |= 1;
    for (uint32_t k = 0; ok && k < n->writes.len; k++) does[n->writes.at[k].of] |= 2;
    for (uint32_t b = 0; ok && b < len; b++)
        for (uint32_t a = 0; ok && a < b; a++)
            if (does[a] && does[b] && (does[a] | does[b]) & 2) ok = note_view(ad, a, b);
    ing_free(does);
    return ok ? ING_OK : ing_ad_no_memory(e);
}

static ing_status check_pairs(ing_ad *ad, const ing_ad_fn *n, ing_err *e) {
    uint64_t pairs = 0;
    for (uint32_t k = 0; k < n->reads.len; k++)
        for (uint32_t j = 0; j < n->writes.len; j++) {
            pairs += ing_ad_same_array(&n->reads.at[k], &n->writes.at[j]);
            ING_TRY(check_pair(ad, n, &n->reads.at[k], &n->writes.at[j], e));
        }
    if (pairs <= MAX_PAIRS) return ING_OK;
    return ing_ad_refuse(ad->m, n->func, 0, e,
                         "a function with too many reads and writes");
}

ing_status ing_ad_check_rule(ing_ad *ad, ing_ad_fn *n, ing_err *e) {
    uint64_t rank = 0;
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        if (n->block[id] && !take_inst(ad, n, id, rank)) return ing_ad_no_memory(e);
        rank = next_rank(ad, ing_ir_at(n->f, id), rank);
    }
    ING_TRY(check_pairs(ad, n, e));
    ING_TRY(check_writes(ad, n, e));
    find_still(ad, n);
    if (!n->func) return ad->m->promised ? ING_OK : note_views(ad, n, e);
    ing_ad_touches own = n->reads; /* for callers */
    n->reads = (ing_ad_touches){0};
    bool ok = give(n, &own, &n->reads);
    ing_vec_fini(&own);
    return ok ? ING_OK : ing_ad_no_memory(e);
}

/* ---- arrays that are two arguments (RULE5) --------------------------------------------------------- */

static bool is_field(const ing_ir_mod *m, uint32_t arg) {
    return ing_ir_type(m, m->args.at[arg].type)->place != NULL;
}

/* Fields are apart, or the rule has looked. */
static ing_status settle_views(ing_ir_mod *m, ing_err *e) {
    for (uint32_t k = 0; k + 1 < m->views.len; k += 2) {
        ing_ir_apart p = m->views.at[k];
        if (is_field(m, p.a) && is_field(m, p.b)) continue;
        bool ok =
            ing_vec_push(&m->apart, p) && ing_vec_push(&m->apart, m->views.at[k + 1]);
        if (!ok) return ing_ad_no_memory(e);
        m->n_views++;
    }
    return ING_OK;
}

ing_status ing_ad_settle(ing_ir_mod *m, ing_err *e) {
    for (uint32_t k = 0; k < m->rule.len; k++) {
        ing_ir_rule r = m->rule.at[k];
        const ing_ir_arg *x = &m->args.at[r.read], *y = &m->args.at[r.written];
        const ing_place *at = ing_ir_type(m, x->type)->place,
                        *to = ing_ir_type(m, y->type)->place;
        bool one = x->word == y->word; /* block; others are apart */
        if (at && to && (!one || ing_place_apart(at, to))) continue;
        if (one)
            return ing_ad_refuse(
                m, r.func, r.loc, e,
                "an element that was read, and whose value the backward pass "
                "needs, is overwritten here: two names are of one array");
        bool first = r.read < r.written;
        ing_ir_apart pair = {first ? r.read : r.written, first ? r.written : r.read};
        if (!ing_vec_push(&m->apart, pair)) return ing_ad_no_memory(e);
    }
    m->n_rule = m->apart.len;
    ING_TRY(settle_views(m, e));
    if (m->apart.len <= ING_IR_MAX_RULE) return ING_OK;
    return ing_ad_refuse(m, 0, 0, e,
                         "more arrays that must be different ones than a launch "
                         "compares");
}

void ing_ad_forget_views(ing_ir_mod *m) {
    m->apart.len = m->n_rule;
    m->n_views = 0;
}
