/* Places that one iteration of a parallel loop has for itself: value and dual may change there
 * one after the other. Asked by forward_flow.c of updates in the kernel's own loops; "no" costs
 * time only, the loop becomes serial then. An update's place is its iteration's own when all that
 * the loop writes to the array has the same subscripts and these tell the iteration (ACCESS4);
 * nobody else updates atomically there, since two arrays may be one memory. */
#include "ad/forward.h"
#include "ir/access.h"

static bool named_in_funcs(const ing_ir_mod *m, uint32_t array) {
    for (uint32_t k = 1; k < m->funcs.len; k++) {
        const ing_ir_func *f = m->funcs.at[k];
        for (uint32_t id = 1; id < f->insts.len; id++) {
            const ing_ir_inst *i = ing_ir_at(f, id);
            bool atomic = i->op == ING_OP_ATOMIC && ing_fwd_floats(m, i->type);
            if (atomic || (i->op == ING_OP_ARRAY && i->a == array)) return true;
        }
    }
    return false;
}

/* Is all that the loop writes there written at that subscript? */
static bool only_there(const ing_ir_scan *s, const ing_ir_mod *m, uint32_t array,
                       uint32_t elem) {
    for (uint32_t k = s->first[s->parallel]; k < s->end[s->parallel]; k++) {
        const ing_ir_access *a = &s->accesses.at[k];
        const ing_ir_inst *i = ing_ir_at(s->f, a->id);
        bool there = a->root == ING_OP_ARRAY && a->of == array;
        bool other = i->op == ING_OP_ATOMIC && a->root != ING_OP_ALLOCA && !there;
        if (other && ing_fwd_floats(m, i->type)) return false;
        if (!there || i->op == ING_OP_LOAD) continue;
        if (!a->elem || i->op == ING_OP_CALL) return false;
        if (!ing_ir_same_place(s->f, elem, a->elem)) return false;
    }
    return true;
}

static bool tells_iteration(const ing_ir_scan *s, uint32_t elem) {
    const ing_ir_inst *i = ing_ir_at(s->f, elem);
    ing_ir_told told;
    ing_ir_told_init(&told, s);
    for (uint32_t k = 0; k < i->c; k++) {
        ing_ir_family family = {0};
        ing_ir_family_add(&family, &told, s, s->f->extra.at[i->b + k]);
        ing_ir_told_add(&told, s, &family);
    }
    return ing_ir_told_all(&told);
}

bool ing_fwd_own(ing_fwd *w, uint32_t loop, uint32_t update) {
    const ing_ir_func *f = w->versions.at[0]->f;
    uint32_t elem = 0;
    const ing_ir_inst *root = ing_ir_root(f, ing_ir_at(f, update)->a, &elem);
    ing_ir_scan s;
    if (root->op != ING_OP_ARRAY || !elem) return false;
    if (!ing_ir_scan_init(&s, f)) w->arena.failed = true;
    s.parallel = loop;
    bool own = !w->arena.failed && only_there(&s, w->m, root->a, elem) &&
               tells_iteration(&s, elem);
    if (own && s.has[loop] & ING_IR_HAS_CALL) own = !named_in_funcs(w->m, root->a);
    ing_ir_scan_fini(&s);
    return own;
}
