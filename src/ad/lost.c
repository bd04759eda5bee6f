/* Where derivatives get lost. Floats that are made of the bits of others are refused here; arrays without
 * a companion that take values with a derivative are left in m->lost, for launches. Called by reverse.c
 * before anything else is found out. A value may be a number with a derivative and may hold bits of one;
 * both are followed through locals, integer arrays and funcs, for all calls of a func at once. What is
 * counted, compared or converted is no bits any more. */
#include "ad/ad_int.h"

#include <string.h>

enum {
    VARIES = 1, /* a float that depends on an array with a companion */
    BITS = 2,   /* an integer made of the bits of one */
    TAKEN = 4   /* of an array: VARIES is stored there */
};

typedef struct finder {
    const ing_ad *ad;
    const ing_ir_mod *m;
    uint8_t **has;    /* per func and instruction; of an ALLOCA: what it holds */
    uint8_t **params; /* per func and parameter; of places: what they hold */
    uint8_t *rets;    /* per func */
    uint8_t *args;    /* per argument: what is stored there */
    bool changed;
} finder;

static void add(finder *x, uint8_t *to, uint8_t bits) {
    x->changed |= (bits & ~*to) != 0;
    *to |= bits;
}

static bool holds_integers(const ing_ir_mod *m, ing_type t) {
    if (t < ING_DTYPE_N)
        return t != ING_VOID && t != ING_U1 && !ing_dtype_is_float((ing_dtype)t);
    const ing_type_info *i = ing_ir_type(m, t);
    switch (i->kind) {
    case ING_TYPE_REF:
    case ING_TYPE_ARRAY: return holds_integers(m, i->elem);
    case ING_TYPE_STRUCT:
        for (uint32_t k = 0; k < i->n_members; k++)
            if (holds_integers(m, i->members[k])) return true;
        return false;
    default: return holds_integers(m, i->dtype);
    }
}

/* Those that a value of the type can be. */
static uint8_t fits(const finder *x, ing_type t, uint8_t bits) {
    if (!t || !ing_ad_is_real(x->m, t)) bits &= (uint8_t)~(VARIES | TAKEN);
    if (!t || !holds_integers(x->m, t)) bits &= (uint8_t)~BITS;
    return bits;
}

/* ---- places ----------------------------------------------------------------------------------- */

/* What is found where an address or array points to. */
static uint8_t held(const finder *x, uint32_t func, uint32_t ref) {
    const ing_ir_func *f = x->m->funcs.at[func];
    const ing_ir_inst *root = ing_ir_root(f, ref, NULL);
    if (root->op == ING_OP_PARAM) return x->params[func][root->a] & (VARIES | BITS);
    if (root->op != ING_OP_ARRAY) return x->has[func][ing_ir_id_of(f, root)];
    uint32_t c = x->ad->companion[root->a];
    return (x->args[root->a] & BITS) | (c && !(c & ING_AD_STOPPED) ? VARIES : 0);
}

/* Whether what is found in an array has a derivative depends on its companion alone. */
static void put(finder *x, uint32_t func, uint32_t ref, uint8_t bits) {
    const ing_ir_func *f = x->m->funcs.at[func];
    const ing_ir_inst *root = ing_ir_root(f, ref, NULL);
    bits = fits(x, ing_ir_at(f, ref)->type, bits);
    if (ing_ad_is_array(x->m, root->type) && bits & VARIES) bits ^= VARIES | TAKEN;
    if (root->op == ING_OP_PARAM)
        add(x, &x->params[func][root->a], bits);
    else if (root->op == ING_OP_ARRAY)
        add(x, &x->args[root->a], bits);
    else
        add(x, &x->has[func][ing_ir_id_of(f, root)], bits);
}

/* ---- instructions ----------------------------------------------------------------------------- */

static void look_at_call(finder *x, uint32_t func, uint32_t id) {
    const ing_ir_func *f = x->m->funcs.at[func];
    const ing_ir_inst *i = ing_ir_at(f, id);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = f->extra.at[i->b + k];
        ing_type t = ing_ir_at(f, arg)->type;
        bool array = ing_ad_is_array(x->m, t), place = array || ing_ad_is_ref(x->m, t);
        uint8_t *param = &x->params[i->a][k];
        add(x, param, place ? held(x, func, arg) : x->has[func][arg]);
        if (place) put(x, func, arg, array ? *param & (BITS | TAKEN) : *param);
    }
    add(x, &x->has[func][id], fits(x, i->type, x->rets[i->a]));
}

static uint8_t of_operands(const finder *x, uint32_t func, const ing_ir_inst *i) {
    const ing_ir_func *f = x->m->funcs.at[func];
    uint8_t any = 0;
    ing_ir_uses u;
    ing_ir_inst_uses(f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed; k++) any |= x->has[func][u.fixed[k]];
    for (uint32_t k = 0; k < u.n_list; k++) any |= x->has[func][u.list[k]];
    return any;
}

static uint8_t of_bits(const finder *x, uint32_t func, uint32_t id) {
    const ing_ir_func *f = x->m->funcs.at[func];
    const ing_ir_inst *i = ing_ir_at(f, id);
    uint8_t of = x->has[func][i->a];
    if (of & VARIES && !ing_ad_only_returns(f, id)) of |= BITS;
    return of & BITS;
}

static void look_at(finder *x, uint32_t func, uint32_t id) {
    const ing_ir_func *f = x->m->funcs.at[func];
    const ing_ir_inst *i = ing_ir_at(f, id);
    uint8_t *has = x->has[func], got = 0;
    switch (i->op) {
    case ING_OP_ALLOCA:
    case ING_OP_ELEM:
    case ING_OP_MEMBER:
    case ING_OP_MEMBER_DYN: return;
    case ING_OP_CALL: look_at_call(x, func, id); return;
    case ING_OP_RETURN:
        if (i->a) add(x, &x->rets[func], has[i->a]);
        return;
    case ING_OP_PARAM: got = x->params[func][i->a]; break;
    case ING_OP_LOAD:
        got = held(x, func, i->a);
        if (i->flags & ING_IR_CONSTANT) got &= BITS;
        break;
    case ING_OP_STORE: put(x, func, i->a, has[i->b]); return;
    case ING_OP_ATOMIC:
    case ING_OP_CAS:
        put(x, func, i->a, has[i->op == ING_OP_CAS ? i->c : i->b]);
        got = held(x, func, i->a);
        break;
    case ING_OP_BITCAST: got = of_bits(x, func, id); break;
    case ING_OP_CAST:
        got = has[i->a];
        if (ing_dtype_is_float((ing_dtype)i->type)) got &= VARIES;
        break;
    default: {
        uint32_t class = ing_op_class_of(i->op);
        if (ing_op_is_arith(i->op) || class == ING_OPC_AGGREGATE ||
            i->op == ING_OP_SELECT)
            got = of_operands(x, func, i);
    }
    }
    add(x, &has[id], fits(x, i->type, got));
}

/* ---- the module --------------------------------------------------------------------------------- */

static bool make_room(finder *x) {
    ing_ir_mod *m = x->ad->m;
    ing_arena *a = &m->arena;
    uint32_t n = m->funcs.len;
    x->has = ING_NEW_ARRAY(a, n, uint8_t *);
    x->params = ING_NEW_ARRAY(a, n, uint8_t *);
    x->rets = ING_NEW_ARRAY(a, n, uint8_t);
    x->args = ING_NEW_ARRAY(a, m->args.len + 1, uint8_t);
    m->lost = ING_NEW_ARRAY(a, m->args.len + 1, uint8_t);
    if (!x->has || !x->params || !x->rets || !x->args || !m->lost) return false;
    memset(x->rets, 0, n);
    memset(x->args, 0, m->args.len + 1);
    for (uint32_t k = 0; k < n; k++) {
        const ing_ir_func *f = m->funcs.at[k];
        x->has[k] = ING_NEW_ARRAY(a, f->insts.len, uint8_t);
        x->params[k] = ING_NEW_ARRAY(a, f->n_params + 1, uint8_t);
        if (!x->has[k] || !x->params[k]) return false;
        memset(x->has[k], 0, f->insts.len);
        memset(x->params[k], 0, f->n_params + 1);
    }
    return true;
}

static ing_status check_bits(const finder *x, ing_err *e) {
    for (uint32_t k = 0; k < x->m->funcs.len; k++)
        for (uint32_t id = 1; id < x->m->funcs.at[k]->insts.len; id++) {
            const ing_ir_inst *i = ing_ir_at(x->m->funcs.at[k], id);
            if (i->op == ING_OP_BITCAST && x->has[k][i->a] & BITS &&
                ing_dtype_is_float((ing_dtype)i->type))
                return ing_ad_refuse(x->ad->m, k, i->loc, e,
                                     "a float that is made of the bits of one");
        }
    return ING_OK;
}

ing_status ing_ad_find_lost(const ing_ad *ad, ing_err *e) {
    ing_ir_mod *m = ad->m;
    finder x = {.ad = ad, .m = m};
    if (!make_room(&x)) return ing_ad_no_memory(e);
    do {
        x.changed = false;
        for (uint32_t k = 0; k < m->funcs.len; k++)
            for (uint32_t id = 1; id < m->funcs.at[k]->insts.len; id++)
                look_at(&x, k, id);
    } while (x.changed);
    for (uint32_t k = 0; k < m->args.len; k++)
        m->lost[k] = x.args[k] & TAKEN && !ad->companion[k];
    return check_bits(&x, e);
}
