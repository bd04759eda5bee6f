/* Which values of a function may be infinite or NaN although the arrays that it reads are finite:
 * roots, logarithms, quotients, powers, exponentials and what is made of them (AD7). Called by
 * reverse.c before backward code is written; adjoint.c asks about the factors of adjoints. What
 * a func is given, and what it gives back, may be. */
#include "ad/ad_int.h"

typedef struct finder {
    const ing_ad *ad;
    const ing_ad_fn *n;
    uint8_t *wild; /* by instruction; of an ALLOCA or ARRAY: what it holds */
    bool changed;
} finder;

static void set(finder *x, uint32_t id) {
    if (x->wild[id]) return;
    x->wild[id] = 1;
    x->changed = true;
}

/* What is stored through an address may be found there, under every name of the array. */
static void set_root(finder *x, uint32_t ref) {
    uint32_t root = ing_ad_root(x->n, ref);
    const ing_ir_inst *of = ing_ir_at(x->n->f, root);
    set(x, root);
    for (uint32_t id = 1; of->op == ING_OP_ARRAY && id < x->n->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(x->n->f, id);
        if (i->op == ING_OP_ARRAY && i->a == of->a) set(x, id);
    }
}

static void look_at_call(finder *x, uint32_t id, const ing_ir_inst *i) {
    set(x, id);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = x->n->f->extra.at[i->b + k];
        if (ing_ad_is_ref(x->ad->m, ing_ir_at(x->n->f, arg)->type)) set_root(x, arg);
    }
}

static void look_at(finder *x, uint32_t id) {
    const ing_ir_func *f = x->n->f;
    const ing_ir_inst *i = ing_ir_at(f, id);
    const uint8_t *w = x->wild;
    bool any = false;
    switch (i->op) {
    case ING_OP_PARAM: any = !ing_ad_is_array(x->ad->m, i->type); break;
    case ING_OP_LOAD: any = w[ing_ad_root(x->n, i->a)]; break;
    case ING_OP_STORE:
        if (w[i->b]) set_root(x, i->a);
        return;
    case ING_OP_ATOMIC:
        if (w[i->b]) set_root(x, i->a);
        any = w[ing_ad_root(x->n, i->a)];
        break;
    case ING_OP_CALL: look_at_call(x, id, i); return;
    case ING_OP_CAST:
    case ING_OP_EXTRACT: any = w[i->a]; break;
    case ING_OP_SELECT: any = w[i->b] || w[i->c]; break;
    case ING_OP_INSERT: any = w[i->a] || w[i->b]; break;
    case ING_OP_MAKE:
        for (uint32_t k = 0; k < i->c; k++) any |= w[f->extra.at[i->b + k]];
        break;
    default:
        if (!ing_op_is_arith(i->op)) return;
        any = ing_ad_is_wild(f, id) || w[i->a] || (i->b && w[i->b]);
    }
    if (any && (i->op == ING_OP_PARAM || ing_ad_is_real(x->ad->m, i->type))) set(x, id);
}

void ing_ad_find_wild(const ing_ad *ad, const ing_ad_fn *n, uint8_t *wild) {
    finder x = {.ad = ad, .n = n, .wild = wild};
    do {
        x.changed = false;
        for (uint32_t id = 1; id < n->f->insts.len; id++)
            if (n->block[id]) look_at(&x, id);
    } while (x.changed);
}
