/* The decision tree of one kernel: after the same first k answers lowering asks the same
 * question k + 1 (R6), so the traces of all variants share prefixes. Walking asks down
 * from the root; the first new answer is the explanation of a miss. The tree in memory
 * and the index on disk (index.c) are the same thing: one array of nodes, one array of
 * edges sorted by (node, answer), so that reading an index is a copy.
 *
 * Nodes are indices, never pointers: asking runs Python, which may launch this very
 * kernel and grow the tree under a walk. */
#include "trace/trace_int.h"

#include <string.h>

ing_tree *ing_tree_new(void) {
    ing_tree *t = ing_calloc(1, sizeof *t);
    if (!t) return NULL;
    if (!ing_vec_push(&t->nodes, (ing_tree_node){0})) {
        ing_tree_free(t);
        return NULL;
    }
    return t;
}

void ing_tree_free(ing_tree *t) {
    if (!t) return;
    ing_vec_fini(&t->nodes);
    ing_vec_fini(&t->edges);
    ing_free(t);
}

void ing_tree_clear(ing_tree *t) {
    t->nodes.len = 1;
    t->edges.len = 0;
}

void ing_tree_swap(ing_tree *a, ing_tree *b) {
    ing_tree t = *a;
    *a = *b;
    *b = t;
}

int ing_tree_edge_order(const ing_tree_edge *a, uint32_t from, ing_hash128 answer) {
    if (a->from != from) return a->from < from ? -1 : 1;
    if (a->answer.hi != answer.hi) return a->answer.hi < answer.hi ? -1 : 1;
    if (a->answer.lo != answer.lo) return a->answer.lo < answer.lo ? -1 : 1;
    return 0;
}

/* Where the edge is, or would be inserted. */
static uint32_t edge_place(const ing_tree *t, uint32_t from, ing_hash128 answer) {
    uint32_t low = 0, high = t->edges.len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (ing_tree_edge_order(&t->edges.at[mid], from, answer) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint32_t edge_find(const ing_tree *t, uint32_t from, ing_hash128 answer) {
    uint32_t i = edge_place(t, from, answer);
    if (i == t->edges.len || ing_tree_edge_order(&t->edges.at[i], from, answer) != 0)
        return 0;
    return t->edges.at[i].to;
}

/* Room was made before. */
static void edge_add(ing_tree *t, uint32_t from, ing_hash128 answer, uint32_t to) {
    uint32_t i = edge_place(t, from, answer);
    memmove(&t->edges.at[i + 1], &t->edges.at[i],
            (t->edges.len - i) * sizeof *t->edges.at);
    t->edges.at[i] = (ing_tree_edge){answer, from, to};
    t->edges.len++;
}

ing_status ing_tree_insert(ing_tree *t, const ing_trace *tr, uint32_t variant,
                           ing_err *e) {
    uint32_t at = 1, n = tr->list.len;
    /* Room for everything first: a tree is never left with an edge to nowhere. */
    if (!ing_vec_reserve(&t->nodes, t->nodes.len + n + 1) ||
        !ing_vec_reserve(&t->edges, t->edges.len + n))
        return ing_fail(e, ING_MEMORY, "no memory for the kernel's decision tree");
    for (uint32_t i = 0; i <= n; i++) {
        ing_tree_node want = {0, 0, variant};
        if (i < n) want = (ing_tree_node){tr->list.at[i].path, tr->list.at[i].ask, 0};
        if (at == t->nodes.len) {
            t->nodes.at[t->nodes.len++] = want;
        } else if (t->nodes.at[at].path != want.path ||
                   t->nodes.at[at].ask != want.ask) {
            return ing_fail(
                e, ING_INTERNAL,
                "lowering asked question %u differently after equal answers", i);
        }
        if (i == n) break;
        uint32_t next = edge_find(t, at, tr->list.at[i].answer);
        if (!next) {
            next = t->nodes.len;
            edge_add(t, at, tr->list.at[i].answer, next);
        }
        at = next;
    }
    t->nodes.at[at].variant = variant;
    return ING_OK;
}

ing_status ing_tree_walk(const ing_tree *t, ing_tree_ask ask, void *self,
                         uint32_t *variant, ing_question *question, ing_err *e) {
    memset(question, 0, sizeof *question);
    uint32_t at = 1;
    while (at && at < t->nodes.len) {
        ing_tree_node n = t->nodes.at[at];
        if (n.path == 0) {
            *variant = n.variant;
            return ING_OK;
        }
        question->path = n.path;
        question->ask = (uint8_t)n.ask;
        ING_TRY(ask(self, n.path, (ing_ask)n.ask, &question->answer, e));
        at = edge_find(t, at, question->answer);
    }
    return ING_DECLINED;
}
