/* Which functions of a task are compiled together. LLVM works on one text at a time, and long
 * ones take it seconds: those become parts, which helpers compile side by side and src/image
 * links. Called by llvm_plan.c at its end; changes nothing in the IR. Must never look at the
 * machine: the parts follow from module and options alone, and so do the bytes of an image.
 *
 *  PART1 A module of up to WHOLE_SIZE instructions is one part.
 *  PART2 A function is copied into each part that calls it if LLVM would inline it there: it is
 *     small, or PLAN6 says so. What a copied function calls is copied.
 *  PART3 Others form groups, from callees to callers: a function takes in those that only its
 *     group calls, the smallest first, as long as the group is no larger than a part. So most
 *     functions with one caller stay beside it, and the cuts are at large ones.
 *  PART4 Groups fill parts, the largest first, each into the first that has room.
 *  PART5 In parts LLVM makes vectors of a few scalars only where that saves much: such code is long and
 *     full of branches, and what was stored member by member and is read as a vector waits until it is in
 *     the cache. A step of 512 environments of Genesis takes 0.96 of the time. */
#include "gen/gen_int.h"

/* Instructions, callees that are inlined included; a part of that size takes LLVM 0.1 to 0.5 s.
 * Processor seconds of LLVM for the 27 tasks of a scene of Genesis, and for the longest text:
 * 14.3 and 4.6 whole, 11.3 and 0.8 with parts of 2,000, 10.7 and 0.7 with 1,000. Steps take the
 * same time. */
enum { PART_SIZE = 1500, WHOLE_SIZE = 2250 };

/* PART2, as a share of a part. LLVM inlines functions of which 45 instructions are left. */
enum { SMALL = 10 };

typedef struct parts {
    ing_gen *g;
    uint32_t n; /* functions */
    uint64_t size;
    uint64_t *weight; /* by root of a group */
    uint32_t *group;  /* by function: the root of its group */
    uint32_t *next,
        *last; /* of a group: the function after this one; of a root, the last */
    uint32_t *calls, *inside; /* of a root: edges to it; those from the group in hand */
    uint32_t *met, *own;      /* by that group: what it calls; what only it calls */
    uint32_t n_met, n_own;
    uint32_t *roots;           /* sorted */
    ing_vec(ing_gen_edge) cut; /* calls of functions that are not copied */
    uint32_t *first, *callees; /* the same by caller: where those of each begin */
} parts;

static bool grouped(const ing_gen *g, uint32_t f) {
    return g->plans[f].reached && !g->plans[f].copied;
}

/* PART2 */
static void choose_copies(ing_gen *g, uint64_t small) {
    for (uint32_t i = 0; i < g->m->funcs.len; i++) {
        ing_gen_fplan *p = &g->plans[i];
        p->copied =
            g->m->funcs.at[i]->kind != ING_IR_TASK && (p->inlined || p->size <= small);
    }
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < g->edges.len; k++) {
            const ing_gen_edge *x = &g->edges.at[k];
            if (g->plans[x->caller].copied && !g->plans[x->callee].copied)
                again = g->plans[x->callee].copied = true;
        }
    }
}

/* What LLVM sees of each function, and the calls between those that are not copied. */
static bool weigh(parts *p) {
    ing_gen *g = p->g;
    for (uint32_t i = 0; i < p->n; i++) {
        p->group[i] = p->last[i] = i;
        p->next[i] = UINT32_MAX;
        p->weight[i] = g->m->funcs.at[i]->insts.len;
    }
    for (uint32_t k = 0; k < g->edges.len; k++) {
        ing_gen_edge x = g->edges.at[k];
        if (!grouped(g, x.caller)) continue;
        uint64_t size = g->plans[x.callee].size;
        if (g->plans[x.callee].copied) {
            p->weight[x.caller] += size < p->size ? size : p->size;
        } else {
            if (!ing_vec_push(&p->cut, x)) return false;
            p->calls[x.callee]++;
            p->first[x.caller + 1]++;
        }
    }
    p->callees = ING_NEW_ARRAY(&g->arena, (size_t)p->cut.len + 1, uint32_t);
    if (!p->callees) return false;
    for (uint32_t i = 0; i < p->n; i++) p->first[i + 1] += p->first[i];
    for (uint32_t k = p->cut.len; k-- > 0;) /* `inside` counts those that are placed */
        p->callees[p->first[p->cut.at[k].caller] + p->inside[p->cut.at[k].caller]++] =
            p->cut.at[k].callee;
    for (uint32_t i = 0; i < p->n; i++) p->inside[i] = 0;
    return true;
}

/* A function joins the group of f: what it calls may be called by that group alone from now on. */
static void join(parts *p, uint32_t f, uint32_t member) {
    for (uint32_t k = p->first[member]; k < p->first[member + 1]; k++) {
        uint32_t c = p->callees[k];
        if (p->group[c] == f) continue;
        /* a root: what was taken in is called by its group alone */
        if (!p->inside[c]++) p->met[p->n_met++] = c;
        if (p->inside[c] == p->calls[c]) p->own[p->n_own++] = c;
    }
}

/* PART3: takes the lightest group that only this one calls; UINT32_MAX: there is none. */
static uint32_t take_lightest(parts *p) {
    uint32_t best = 0;
    if (!p->n_own) return UINT32_MAX;
    for (uint32_t k = 1; k < p->n_own; k++) {
        uint64_t w = p->weight[p->own[k]], least = p->weight[p->own[best]];
        if (w < least || (w == least && p->own[k] < p->own[best])) best = k;
    }
    uint32_t c = p->own[best];
    p->own[best] = p->own[--p->n_own];
    return c;
}

/* Each group is no heavier than a part, so that the time grows with the number of calls. */
static void form_groups(parts *p, const uint32_t *order) {
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t f = order[k], c;
        if (!grouped(p->g, f)) continue;
        p->n_met = p->n_own = 0;
        join(p, f, f);
        while ((c = take_lightest(p)) != UINT32_MAX &&
               p->weight[f] + p->weight[c] <= p->size) {
            p->weight[f] += p->weight[c];
            for (uint32_t i = c; i != UINT32_MAX; i = p->next[i]) p->group[i] = f;
            for (uint32_t i = c; i != UINT32_MAX; i = p->next[i]) join(p, f, i);
            p->next[p->last[f]] = c;
            p->last[f] = p->last[c];
        }
        for (uint32_t i = 0; i < p->n_met; i++) p->inside[p->met[i]] = 0;
    }
}

/* By weight, the heaviest first, then by number. */
static bool before(const parts *p, uint32_t a, uint32_t b) {
    return p->weight[a] != p->weight[b] ? p->weight[a] > p->weight[b] : a < b;
}

/* PART4. The numbers of parts go to the functions. */
static bool fill_parts(parts *p) {
    ing_gen *g = p->g;
    uint64_t *filled = ING_NEW_ARRAY(&g->arena, (size_t)p->n + 1, uint64_t);
    uint32_t n = 0;
    if (!filled) return false;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!grouped(g, i) || p->group[i] != i) continue;
        uint32_t at = n++;
        for (; at && before(p, i, p->roots[at - 1]); at--)
            p->roots[at] = p->roots[at - 1];
        p->roots[at] = i;
    }
    g->n_parts = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = 0, root = p->roots[k];
        while (at < g->n_parts && filled[at] + p->weight[root] > p->size) at++;
        if (at == g->n_parts) g->n_parts++;
        filled[at] += p->weight[root];
        g->plans[root].part = at;
    }
    for (uint32_t i = 0; i < p->n; i++)
        if (grouped(g, i)) g->plans[i].part = g->plans[p->group[i]].part;
    for (uint32_t k = 0; k < p->cut.len; k++) {
        const ing_gen_edge *x = &p->cut.at[k];
        if (g->plans[x->caller].part != g->plans[x->callee].part)
            g->plans[x->callee].shared = true;
    }
    return true;
}

static bool split(parts *p, const uint32_t *order) {
    ing_arena *a = &p->g->arena;
    choose_copies(p->g, p->size / SMALL);
    p->weight = ING_NEW_ARRAY(a, (size_t)p->n + 1, uint64_t);
    uint32_t **lists[] = {&p->group, &p->next, &p->last,  &p->calls, &p->inside,
                          &p->met,   &p->own,  &p->first, &p->roots};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        *lists[k] = ING_NEW_ARRAY(a, (size_t)p->n + 1, uint32_t);
    if (a->failed || !weigh(p)) return false;
    form_groups(p, order);
    return fill_parts(p);
}

ing_status ing_gen_parts(ing_gen *g, const uint32_t *order) {
    parts p = {.g = g,
               .n = g->m->funcs.len,
               .size = g->o->part_size ? g->o->part_size : PART_SIZE};
    uint64_t all = 0;
    for (uint32_t i = 0; i < p.n; i++)
        if (g->plans[i].reached) all += g->m->funcs.at[i]->insts.len;
    g->n_parts = 1;
    uint64_t whole = g->o->part_size ? g->o->part_size : WHOLE_SIZE;
    bool ok = all <= whole || split(&p, order); /* PART1 */
    ing_vec_fini(&p.cut);
    return ok ? ING_OK
              : ing_fail(g->e, ING_MEMORY, "out of memory while generating code");
}

uint8_t *ing_gen_part(ing_gen *g) {
    uint8_t *which = ING_NEW_ARRAY(&g->arena, (size_t)g->m->funcs.len + 1, uint8_t);
    if (!which) return NULL;
    for (uint32_t i = 0; i < g->m->funcs.len; i++)
        if (grouped(g, i) && g->plans[i].part == g->part) which[i] = ING_GEN_DEFINED;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < g->edges.len; k++) {
            const ing_gen_edge *x = &g->edges.at[k];
            if (which[x->caller] != ING_GEN_DEFINED || which[x->callee]) continue;
            which[x->callee] =
                g->plans[x->callee].copied ? ING_GEN_DEFINED : ING_GEN_DECLARED;
            again = true;
        }
    }
    return which;
}
