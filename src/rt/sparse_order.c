/* An order in which to eliminate the unknowns of a sparse matrix, so that few new entries
 * arise: approximate minimum degree. Called by sparse.c. Reads the pattern only.
 *
 * The graph of what is left is kept as a quotient graph. A variable i lists the elements
 * (eliminated variables) and the variables that it touches; an element lists the variables that
 * its elimination connected. Eliminating p makes one element of everything p touches:
 *  1. its list L is the union of the variables of p and of the lists of p's elements,
 *     which are absorbed: nobody needs them any more;
 *  2. each i in L drops p, what L covers, and absorbed elements, and gains the element p. So the
 *     list of i never grows and stays in its place;
 *  3. the degree of i is bounded by its variables, plus |L|, plus for each other element e the
 *     part of e outside of L, which is counted once per element and not once per pair. */
#include "rt/sparse.h"

#include <string.h>

typedef struct graph {
    int32_t n;
    int64_t *begin;  /* of the list of i, in `list` */
    int32_t *n_elem; /* elements come first in the list of i, */
    int32_t *n_var;  /* then variables */
    int32_t *list;
    int32_t **elem; /* the list of element e; NULL: absorbed, or no element */
    int32_t *elem_len;
    int32_t *degree;                  /* of a variable; -1: eliminated */
    int32_t *head, *next, *prev;      /* variables by degree */
    int32_t *mark, stamp;             /* mark[i] == stamp: i is in L */
    int32_t *outside, *outside_stamp; /* of an element: entries that are not in L */
    int32_t lowest;
} graph;

static void graph_free(graph *g) {
    for (int32_t e = 0; g->elem && e < g->n; e++) ing_free(g->elem[e]);
    void *all[] = {g->begin,    g->n_elem,  g->n_var,        g->list, g->elem,
                   g->elem_len, g->degree,  g->head,         g->next, g->prev,
                   g->mark,     g->outside, g->outside_stamp};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) ing_free(all[k]);
}

static bool graph_alloc(graph *g, int32_t n) {
    size_t m = (size_t)n + 1;
    g->n = n;
    g->begin = ing_calloc(m + 1, sizeof *g->begin);
    g->n_elem = ing_calloc(m, sizeof *g->n_elem);
    g->n_var = ing_calloc(m, sizeof *g->n_var);
    g->elem = ing_calloc(m, sizeof *g->elem);
    g->elem_len = ing_calloc(m, sizeof *g->elem_len);
    g->degree = ing_calloc(m, sizeof *g->degree);
    g->head = ing_calloc(m, sizeof *g->head);
    g->next = ing_calloc(m, sizeof *g->next);
    g->prev = ing_calloc(m, sizeof *g->prev);
    g->mark = ing_calloc(m, sizeof *g->mark);
    g->outside = ing_calloc(m, sizeof *g->outside);
    g->outside_stamp = ing_calloc(m, sizeof *g->outside_stamp);
    return g->begin && g->n_elem && g->n_var && g->elem && g->elem_len && g->degree &&
           g->head && g->next && g->prev && g->mark && g->outside && g->outside_stamp;
}

static void list_put(graph *g, int32_t i, int32_t degree) {
    g->degree[i] = degree;
    int32_t first = g->head[degree];
    g->next[i] = first;
    g->prev[i] = -1;
    if (first >= 0) g->prev[first] = i;
    g->head[degree] = i;
    if (degree < g->lowest) g->lowest = degree;
}

static void list_take(graph *g, int32_t i) {
    if (g->prev[i] >= 0)
        g->next[g->prev[i]] = g->next[i];
    else
        g->head[g->degree[i]] = g->next[i];
    if (g->next[i] >= 0) g->prev[g->next[i]] = g->prev[i];
}

/* The pattern of A + A^T without its diagonal, each neighbour once. */
static bool graph_fill(graph *g, const ing_sparse *a) {
    int32_t n = g->n;
    for (int32_t i = 0; i < n; i++)
        for (int64_t k = a->start[i]; k < a->start[i + 1]; k++)
            if (a->col[k] != i) g->begin[i + 1]++, g->begin[a->col[k] + 1]++;
    for (int32_t i = 0; i < n; i++) g->begin[i + 1] += g->begin[i];
    g->list = ing_calloc((size_t)g->begin[n] + 1, sizeof *g->list);
    if (!g->list) return false;
    for (int32_t i = 0; i < n; i++)
        for (int64_t k = a->start[i]; k < a->start[i + 1]; k++) {
            int32_t j = a->col[k];
            if (j == i) continue;
            g->list[g->begin[i] + g->n_var[i]++] = j;
            g->list[g->begin[j] + g->n_var[j]++] = i;
        }
    for (int32_t i = 0; i <= n; i++) g->head[i] = -1;
    g->lowest = n;
    for (int32_t i = 0; i < n; i++) {
        int32_t *at = g->list + g->begin[i], kept = 0;
        g->stamp++;
        for (int32_t k = 0; k < g->n_var[i]; k++)
            if (g->mark[at[k]] != g->stamp) {
                g->mark[at[k]] = g->stamp;
                at[kept++] = at[k];
            }
        g->n_var[i] = kept;
        list_put(g, i, kept);
    }
    return true;
}

/* Rule 1: everything that p touches, marked. */
static int32_t *element_make(graph *g, int32_t p, int32_t *len) {
    const int32_t *at = g->list + g->begin[p];
    int64_t most = g->n_var[p];
    for (int32_t k = 0; k < g->n_elem[p]; k++) most += g->elem_len[at[k]];
    if (most > g->n) most = g->n;
    int32_t *made = ing_calloc((size_t)most + 1, sizeof *made);
    if (!made) return NULL;
    g->mark[p] = ++g->stamp;
    *len = 0;
    for (int32_t k = 0; k < g->n_elem[p] + g->n_var[p]; k++) {
        bool is_elem = k < g->n_elem[p];
        const int32_t *from = is_elem ? g->elem[at[k]] : &at[k];
        for (int32_t m = 0; m < (is_elem ? g->elem_len[at[k]] : 1); m++) {
            int32_t i = from[m];
            if (g->degree[i] < 0 || g->mark[i] == g->stamp) continue;
            g->mark[i] = g->stamp;
            made[(*len)++] = i;
        }
    }
    for (int32_t k = 0; k < g->n_elem[p]; k++) {
        ing_free(g->elem[at[k]]);
        g->elem[at[k]] = NULL;
    }
    return made;
}

/* For every other element that L meets: how much of it is outside of L. */
static void count_outside(graph *g, const int32_t *list, int32_t len) {
    for (int32_t k = 0; k < len; k++) {
        const int32_t *at = g->list + g->begin[list[k]];
        for (int32_t m = 0; m < g->n_elem[list[k]]; m++) {
            int32_t e = at[m];
            if (!g->elem[e]) continue;
            if (g->outside_stamp[e] != g->stamp) {
                g->outside_stamp[e] = g->stamp;
                g->outside[e] = g->elem_len[e];
            }
            g->outside[e]--;
        }
    }
}

/* Rules 2 and 3 for one variable of L. */
static void update(graph *g, int32_t i, int32_t p, int32_t len, int32_t left) {
    int32_t *at = g->list + g->begin[i], kept = 0;
    int32_t n_elem = g->n_elem[i], n_var = g->n_var[i];
    int64_t bound = len - 1;
    list_take(g, i);
    for (int32_t k = 0; k < n_elem; k++) {
        int32_t e = at[k];
        if (!g->elem[e] || g->outside[e] == 0) continue; /* absorbed, or covered by L */
        at[kept++] = e;
        bound += g->outside[e];
    }
    /* One place is free by now: p itself, or an element of p, was in the list. */
    int32_t first_var = kept, vars = 0;
    for (int32_t k = n_elem; k < n_elem + n_var; k++) {
        int32_t j = at[k];
        if (g->degree[j] < 0 || g->mark[j] == g->stamp) continue;
        at[first_var + vars++] = j;
    }
    if (vars) at[first_var + vars] = at[first_var];
    at[first_var] = p;
    g->n_elem[i] = kept + 1;
    g->n_var[i] = vars;
    bound += vars;
    list_put(g, i, (int32_t)(bound < left ? bound : left));
}

static bool eliminate(graph *g, int32_t p, int32_t left) {
    int32_t len = 0;
    list_take(g, p);
    g->degree[p] = -1;
    int32_t *made = element_make(g, p, &len);
    if (!made) return false;
    count_outside(g, made, len);
    g->elem[p] = made;
    g->elem_len[p] = len;
    g->outside_stamp[p] = g->stamp;
    for (int32_t k = 0; k < len; k++) update(g, made[k], p, len, left);
    return true;
}

ing_status ing_sparse_order(const ing_sparse *a, int32_t *order, ing_err *e) {
    graph g = {0};
    bool ok = graph_alloc(&g, a->n) && graph_fill(&g, a);
    for (int32_t k = 0; ok && k < a->n; k++) {
        while (g.head[g.lowest] < 0) g.lowest++;
        order[k] = g.head[g.lowest];
        ok = eliminate(&g, order[k], a->n - k - 1);
    }
    graph_free(&g);
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory to order a sparse matrix");
}
