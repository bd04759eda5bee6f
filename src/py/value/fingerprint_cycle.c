/* Digests of cyclic values. Two of them are equal when their infinite unfoldings are, so
 * a digest may depend on nothing but the unfolding. Called by the walk when all templates
 * are there (graph mode). Iterative throughout.
 *
 * 1. Strongly connected components are found (Tarjan) and handled children first. A node
 *    that is on no cycle gets the digest of its encoding, as in the fast mode.
 * 2. In a component, colours are refined: round k gives each node the digest of its
 *    encoding, the component's own nodes standing for their colours of round k - 1. Equal
 *    colours after round k mean equal unfoldings to depth k. When a round finds no new
 *    classes the partition is final: at most as many rounds as there are nodes.
 * 3. The digest of a node is that of its colour together with all colours of the component
 *    one round later, sorted: they describe the whole quotient, so two components agree
 *    exactly when they unfold alike, however many nodes either has.
 * 4. A node may unfold like one further down: x = [c] where c = [c]. Every node on a cycle
 *    leaves its signature, the digest of its encoding with final digests in it; a node
 *    above with the same signature is that value and takes its digest. For a component
 *    above another, step 2 is done over both together to see whether they are alike.
 * 5. That costs as much as all below, so it is done only when it can succeed: a node that
 *    unfolds like one below has the same shape and, child for child, the same digests. All
 *    pairs of a shape and the digest of a child are kept; one that is missing says no. */
#include "py/value/fingerprint_int.h"

#include <stdlib.h>

typedef struct tarjan {
    uint32_t order, low; /* 0 = not seen */
    bool open;
} tarjan;

typedef struct visit { /* a reader of a node's template, child by child */
    uint32_t node;
    size_t at, left; /* next byte; bytes left of the open group */
} visit;

typedef ing_vec(uint32_t) node_list;

typedef struct graph {
    fp_walk *w;
    tarjan *t;
    uint32_t *component; /* of each node, from 1 in order of completion */
    uint32_t *stamp;     /* last component that looked at the node */
    bool *tainted;       /* on a cycle, or above one */
    ing_hash128 *colour, *next;
    uint32_t clock, components;
    ing_vec(visit) calls;
    node_list open;
    ing_bytes scratch;
    bool failed; /* interrupted, or no memory for scratch: digests since are none */
    ing_map signatures; /* -> index in `digests` + 1 */
    ing_vec(ing_hash128) digests;
    ing_map edges; /* rule 5: the pairs */
} graph;

static const uint8_t *text_of(const graph *g, uint32_t node) {
    return g->w->text.at + g->w->nodes.at[node].at;
}

static uint32_t get32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t child_of(const uint8_t *p) {
    return get32(p + 1);
}

/* The size of what stands at byte `at` of a template: its head, a group's length, or one
 * encoding. `left`: bytes until the next group begins. */
static size_t item_size(const fp_node *n, const uint8_t *text, size_t at,
                        size_t *left) {
    if (at == 0) return FP_HEAD;
    if (at >= n->ordered && *left == 0) {
        *left = get32(text + at);
        return 4;
    }
    size_t size = ing_fp_skip(text + at);
    if (at >= n->ordered) *left -= size;
    return size;
}

/* Moves to the next child; false when there is none. */
static bool next_child(const graph *g, visit *v, uint32_t *out) {
    const fp_node *n = &g->w->nodes.at[v->node];
    const uint8_t *text = text_of(g, v->node);
    while (v->at < n->size) {
        bool head = v->at == 0 || (v->at >= n->ordered && v->left == 0);
        const uint8_t *p = text + v->at;
        v->at += item_size(n, text, v->at, &v->left);
        if (!head && p[0] == FP_CHILD) {
            *out = child_of(p);
            return true;
        }
    }
    return false;
}

/* Lets signal handlers run; true when one raised, or something failed before. */
static bool stopped(graph *g) {
    return g->failed || (g->failed = ing_fp_tick(g->w) < 0);
}

/* ---- one node, given what its children are ------------------------------------------------- */

typedef struct resolver {
    const ing_hash128
        *colour;   /* for nodes of component `from` and above; NULL: blank */
    uint32_t from; /* 0: all children have final digests */
    uint32_t to;   /* last component that counts as coloured */
} resolver;

static const ing_hash128 blank = {0, 0};

static void put_resolved(graph *g, const uint8_t *p, size_t size, const resolver *r) {
    if (p[0] != FP_CHILD) {
        ing_bytes_put(&g->scratch, p, size);
        return;
    }
    uint32_t c = child_of(p);
    bool coloured = r->from && g->component[c] >= r->from && g->component[c] <= r->to &&
                    g->tainted[c];
    ing_hash128 d = !coloured   ? g->w->nodes.at[c].digest
                    : r->colour ? r->colour[c]
                                : blank;
    ing_bytes_u8(&g->scratch, coloured ? FP_CHILD : FP_REF);
    ing_bytes_u64(&g->scratch, d.lo);
    ing_bytes_u64(&g->scratch, d.hi);
}

/* The digest of a node's encoding, its groups hashed and sorted as the walk does it. */
static ing_hash128 encode(graph *g, uint32_t node, const resolver *r) {
    const fp_node *n = &g->w->nodes.at[node];
    const uint8_t *text = text_of(g, node);
    size_t at = 0, left = 0, items = 0, group = 0;
    uint32_t groups = 0;
    ing_bytes_clear(&g->scratch);
    if (stopped(g)) return (ing_hash128){0, 0};
    while (at < n->size) {
        bool head = at >= n->ordered && left == 0 && at;
        size_t size = item_size(n, text, at, &left);
        if (head) {
            if (!groups) items = g->scratch.len;
            group = g->scratch.len;
        } else if (at == 0) {
            ing_bytes_put(&g->scratch, text, size);
        } else {
            put_resolved(g, text + at, size, r);
        }
        at += size;
        if (at > n->ordered && left == 0) { /* the group is complete */
            ing_hash128 d = ing_hash(g->scratch.at + group, g->scratch.len - group);
            g->scratch.len = group;
            ing_bytes_u64(&g->scratch, d.lo);
            ing_bytes_u64(&g->scratch, d.hi);
            groups++;
        }
    }
    if (!ing_bytes_ok(&g->scratch)) {
        g->failed = true;
        return (ing_hash128){0, 0};
    }
    if (groups) ing_fp_sort(g->scratch.at + items, groups);
    return ing_hash(g->scratch.at, g->scratch.len);
}

/* ---- a component ------------------------------------------------------------------------------- */

static int by_digest(const void *a, const void *b) {
    return memcmp(a, b, sizeof(ing_hash128));
}

/* Leaves the colours that there are in `sorted`, each once, and returns how many. */
static uint32_t distinct(const uint32_t *nodes, uint32_t n, const ing_hash128 *colour,
                         ing_hash128 *sorted) {
    for (uint32_t i = 0; i < n; i++) sorted[i] = colour[nodes[i]];
    qsort(sorted, n, sizeof *sorted, by_digest);
    uint32_t count = n ? 1 : 0;
    for (uint32_t i = 1; i < n; i++)
        if (!ing_hash_eq(sorted[i], sorted[count - 1])) sorted[count++] = sorted[i];
    return count;
}

/* Refines the colours of `nodes` until the partition is final: g->colour holds the last
 * round that found new classes, g->next the one after it, and `sorted` its classes, so many
 * as it returns. */
static uint32_t refine(graph *g, const uint32_t *nodes, uint32_t n, uint32_t from,
                       uint32_t to, ing_hash128 *sorted) {
    for (uint32_t i = 0; i < n; i++) g->colour[nodes[i]] = blank;
    uint32_t classes = 0;
    for (uint32_t round = 0; round <= n && !g->failed; round++) {
        resolver r = {g->colour, from, to};
        for (uint32_t i = 0; i < n; i++) g->next[nodes[i]] = encode(g, nodes[i], &r);
        uint32_t now = distinct(nodes, n, g->next, sorted);
        if (now == classes) break;
        classes = now;
        for (uint32_t i = 0; i < n; i++) g->colour[nodes[i]] = g->next[nodes[i]];
    }
    return classes;
}

static ing_hash128 component_digest(graph *g, uint32_t node, const ing_hash128 *sorted,
                                    uint32_t classes) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, FP_CHILD, g->next[node]);
    for (uint32_t i = 0; i < classes && !stopped(g); i++)
        ing_hasher_digest(&h, FP_REF, sorted[i]);
    return ing_hasher_done(&h);
}

static int leave_signature(graph *g, uint32_t node) {
    resolver r = {NULL, 0, 0};
    ing_hash128 s = encode(g, node, &r);
    if (ing_map_get(&g->signatures, s)) return 0;
    if (!ing_vec_push(&g->digests, g->w->nodes.at[node].digest) ||
        !ing_map_put(&g->signatures, s, g->digests.len))
        return ing_fp_no_memory();
    return 0;
}

/* Appends the tainted nodes that can be reached from those in `all`. */
static int add_reachable(graph *g, node_list *all, uint32_t here) {
    for (uint32_t i = 0; i < all->len; i++) g->stamp[all->at[i]] = here;
    for (uint32_t i = 0; i < all->len; i++) {
        visit v = {all->at[i], 0, 0};
        for (uint32_t c; next_child(g, &v, &c);) {
            if (!g->tainted[c] || g->stamp[c] == here) continue;
            g->stamp[c] = here;
            if (!ing_vec_push(all, c)) return ing_fp_no_memory();
        }
    }
    return 0;
}

/* Takes the digest of a node below that has the same final colour. */
static bool adopt(graph *g, uint32_t node, const node_list *all, uint32_t from) {
    for (uint32_t i = from; i < all->len && !stopped(g); i++) {
        if (!ing_hash_eq(g->next[all->at[i]], g->next[node])) continue;
        g->w->nodes.at[node].digest = g->w->nodes.at[all->at[i]].digest;
        return true;
    }
    return false;
}

/* Does a component unfold like nodes below it? All of it does, or nothing. */
static int alike_below(graph *g, const uint32_t *nodes, uint32_t n, bool *alike) {
    node_list all = {0};
    uint32_t here = g->component[nodes[0]];
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        if (!ing_vec_push(&all, nodes[i])) rc = ing_fp_no_memory();
    if (rc == 0) rc = add_reachable(g, &all, here);
    ing_hash128 *sorted = rc == 0 ? ing_calloc(all.len, sizeof *sorted) : NULL;
    if (rc == 0 && !sorted) rc = ing_fp_no_memory();
    if (rc == 0) {
        refine(g, all.at, all.len, 1, here, sorted);
        *alike = true;
        for (uint32_t k = 0; *alike && k < n; k++) *alike = adopt(g, nodes[k], &all, n);
    }
    ing_free(sorted);
    ing_vec_fini(&all);
    return rc;
}

/* The pairs of rule 5 for the children of a node outside component `own` (0: all) that
 * are on or above a cycle. Keeps them, or says in *missing whether one is not kept. */
static int pairs_of(graph *g, uint32_t node, uint32_t own, bool *missing) {
    const resolver shape = {NULL, 1, UINT32_MAX};
    ing_hash128 d = encode(g, node, &shape);
    visit v = {node, 0, 0};
    for (uint32_t c; next_child(g, &v, &c);) {
        if (!g->tainted[c] || (own && g->component[c] == own)) continue;
        ing_hasher h;
        ing_hasher_init(&h);
        ing_hasher_digest(&h, FP_CHILD, d);
        ing_hasher_digest(&h, FP_REF, g->w->nodes.at[c].digest);
        ing_hash128 pair = ing_hasher_done(&h);
        if (missing)
            *missing |= !ing_map_get(&g->edges, pair);
        else if (!ing_map_put(&g->edges, pair, 1))
            return ing_fp_no_memory();
    }
    return 0;
}

static bool reads_tainted(const graph *g, uint32_t node, uint32_t own) {
    visit v = {node, 0, 0};
    for (uint32_t c; next_child(g, &v, &c);)
        if (g->tainted[c] && g->component[c] != own) return true;
    return false;
}

static int cyclic_component(graph *g, const uint32_t *nodes, uint32_t n) {
    uint32_t here = g->component[nodes[0]];
    bool above = false, alike = false;
    for (uint32_t i = 0; i < n; i++) above |= reads_tainted(g, nodes[i], here);
    for (uint32_t i = 0; i < n; i++) g->tainted[nodes[i]] = true;
    bool unlike = false;
    for (uint32_t i = 0; above && !unlike && i < n; i++)
        if (pairs_of(g, nodes[i], here, &unlike) < 0) return -1;
    if (above && !unlike && alike_below(g, nodes, n, &alike) < 0) return -1;
    if (alike) return 0;
    ing_hash128 *sorted = ing_calloc(n, sizeof *sorted);
    if (!sorted) return ing_fp_no_memory();
    uint32_t classes = refine(g, nodes, n, here, here, sorted);
    for (uint32_t i = 0; i < n && !g->failed; i++)
        g->w->nodes.at[nodes[i]].digest =
            component_digest(g, nodes[i], sorted, classes);
    ing_free(sorted);
    for (uint32_t i = 0; i < n; i++)
        if (leave_signature(g, nodes[i]) < 0 || pairs_of(g, nodes[i], 0, NULL) < 0)
            return -1;
    return 0;
}

static int plain_node(graph *g, uint32_t node) {
    resolver r = {NULL, 0, 0};
    ing_hash128 d = encode(g, node, &r);
    g->tainted[node] = reads_tainted(g, node, 0);
    uint32_t known = g->tainted[node] ? ing_map_get(&g->signatures, d) : 0;
    g->w->nodes.at[node].digest = known ? g->digests.at[known - 1] : d;
    return g->tainted[node] ? pairs_of(g, node, 0, NULL) : 0;
}

/* ---- Tarjan ----------------------------------------------------------------------------------------- */

static int enter(graph *g, uint32_t node) {
    visit v = {node, 0, 0};
    g->t[node].order = g->t[node].low = ++g->clock;
    g->t[node].open = true;
    if (!ing_vec_push(&g->calls, v) || !ing_vec_push(&g->open, node))
        return ing_fp_no_memory();
    return 0;
}

static int leave(graph *g, uint32_t node) {
    if (g->t[node].low != g->t[node].order) return 0;
    uint32_t from = g->open.len, id = ++g->components;
    do {
        uint32_t v = g->open.at[--from];
        g->t[v].open = false;
        g->component[v] = id;
    } while (g->open.at[from] != node);
    uint32_t n = g->open.len - from;
    bool cyclic = n > 1;
    visit v = {node, 0, 0};
    for (uint32_t c; !cyclic && next_child(g, &v, &c);) cyclic = c == node;
    int rc = cyclic ? cyclic_component(g, g->open.at + from, n) : plain_node(g, node);
    g->open.len = from;
    return rc;
}

static int run(graph *g) {
    if (enter(g, 0) < 0) return -1;
    while (g->calls.len && !g->failed) {
        visit *v = &g->calls.at[g->calls.len - 1];
        uint32_t node = v->node, c;
        if (next_child(g, v, &c)) {
            if (!g->t[c].order) {
                if (enter(g, c) < 0) return -1;
            } else if (g->t[c].open && g->t[c].order < g->t[node].low) {
                g->t[node].low = g->t[c].order;
            }
            continue;
        }
        if (leave(g, node) < 0) return -1;
        g->calls.len--;
        if (g->calls.len) {
            uint32_t up = g->calls.at[g->calls.len - 1].node;
            if (g->t[node].low < g->t[up].low) g->t[up].low = g->t[node].low;
        }
    }
    if (!g->failed) return 0;
    return g->w->interrupted ? -1 : ing_fp_no_memory();
}

int ing_fp_resolve_graph(fp_walk *w, ing_hash128 *out) {
    graph g = {.w = w};
    uint32_t n = w->nodes.len;
    g.t = ing_calloc(n, sizeof *g.t);
    g.component = ing_calloc(n, sizeof *g.component);
    g.stamp = ing_calloc(n, sizeof *g.stamp);
    g.tainted = ing_calloc(n, sizeof *g.tainted);
    g.colour = ing_calloc(n, sizeof *g.colour);
    g.next = ing_calloc(n, sizeof *g.next);
    ing_bytes_init(&g.scratch);
    ing_map_init(&g.signatures);
    ing_map_init(&g.edges);
    bool ok = g.t && g.component && g.stamp && g.tainted && g.colour && g.next;
    int rc = ok ? run(&g) : ing_fp_no_memory();
    if (rc == 0) *out = w->nodes.at[0].digest;
    ing_free(g.t);
    ing_free(g.component);
    ing_free(g.stamp);
    ing_free(g.tainted);
    ing_free(g.colour);
    ing_free(g.next);
    ing_bytes_fini(&g.scratch);
    ing_map_fini(&g.signatures);
    ing_map_fini(&g.edges);
    ing_vec_fini(&g.digests);
    ing_vec_fini(&g.calls);
    ing_vec_fini(&g.open);
    return rc;
}
