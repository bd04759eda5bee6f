/* The decision tree of one kernel: after the same first k answers lowering asks the same
 * question k + 1 (R6), so the traces of all variants share prefixes. Walking asks down
 * from the root; the first new answer is the explanation of a miss. The tree in memory
 * and the index on disk (index.c) are the same thing: one array of nodes, one array of
 * edges sorted by (node, answer), so that reading an index is a copy.
 *
 * The tree ends where one variant is left: what that one asked further is in its own trace,
 * which is read with it anyway. So 1,000 variants that differ in one value are one node with
 * 1,000 edges, however long their traces are, and a wrong leaf can never be a wrong hit.
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
    t->edges.at[i] = (ing_tree_edge){from, to, answer};
    t->edges.len++;
}

static bool same_question(const ing_question *a, const ing_question *b) {
    return a->path == b->path && a->ask == b->ask;
}

static bool same_start(const ing_question *a, const ing_question *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!same_question(&a[i], &b[i]) || !ing_hash_eq(a[i].answer, b[i].answer))
            return false;
    return true;
}

static ing_status conflict(ing_err *e, uint32_t i) {
    return ing_fail(e, ING_INTERNAL,
                    "lowering asked question %u differently after equal answers", i);
}

/* Room was made before. */
static uint32_t leaf_add(ing_tree *t, uint32_t variant) {
    t->nodes.at[t->nodes.len] = (ing_tree_node){0, 0, variant};
    return t->nodes.len++;
}

/* The leaf `at`, reached after `depth` questions, must tell two variants apart: what both
 * asked becomes nodes, down to the first answer in which they differ. */
static ing_status leaf_split(ing_tree *t, uint32_t at, uint32_t depth,
                             const ing_trace *old, const ing_trace *tr,
                             uint32_t variant, ing_err *e) {
    for (uint32_t i = depth;; i++) {
        bool old_ends = i == old->list.len, ends = i == tr->list.len;
        if (old_ends && ends) {
            t->nodes.at[at].variant = variant;
            return ING_OK;
        }
        if (old_ends != ends || !same_question(&old->list.at[i], &tr->list.at[i]))
            return conflict(e, i);
        const ing_question *a = &old->list.at[i], *b = &tr->list.at[i];
        uint32_t next = leaf_add(t, t->nodes.at[at].variant);
        t->nodes.at[at] = (ing_tree_node){b->path, b->ask, 0};
        edge_add(t, at, a->answer, next);
        if (!ing_hash_eq(a->answer, b->answer)) {
            edge_add(t, at, b->answer, leaf_add(t, variant));
            return ING_OK;
        }
        at = next;
    }
}

/* A leaf that has lost its variant, or names one that does not belong there, is taken over. */
static ing_status leaf_insert(ing_tree *t, uint32_t at, uint32_t depth,
                              const ing_trace *tr, uint32_t variant, ing_tree_trace of,
                              void *self, ing_err *e) {
    uint32_t there = t->nodes.at[at].variant;
    ing_trace old;
    ing_trace_init(&old);
    ing_status s = ING_OK;
    if (there == variant || of(self, there, &old) != ING_OK || old.list.len < depth ||
        !same_start(old.list.at, tr->list.at, depth))
        t->nodes.at[at].variant = variant;
    else
        s = leaf_split(t, at, depth, &old, tr, variant, e);
    ing_trace_fini(&old);
    return s;
}

ing_status ing_tree_insert(ing_tree *t, const ing_trace *tr, uint32_t variant,
                           ing_tree_trace of, void *self, ing_err *e) {
    uint32_t at = 1, n = tr->list.len;
    /* Room for everything first: a tree is never left with an edge to nowhere. */
    if (!ing_vec_reserve(&t->nodes, t->nodes.len + n + 2) ||
        !ing_vec_reserve(&t->edges, t->edges.len + n + 1))
        return ing_fail(e, ING_MEMORY, "no memory for the kernel's decision tree");
    if (t->nodes.len == 1) leaf_add(t, variant);
    for (uint32_t i = 0;; i++) {
        ing_tree_node node = t->nodes.at[at];
        if (!node.path) return leaf_insert(t, at, i, tr, variant, of, self, e);
        if (i == n || node.path != tr->list.at[i].path ||
            node.ask != tr->list.at[i].ask)
            return conflict(e, i);
        uint32_t next = edge_find(t, at, tr->list.at[i].answer);
        if (!next) {
            edge_add(t, at, tr->list.at[i].answer, leaf_add(t, variant));
            return ING_OK;
        }
        at = next;
    }
}

/* Asks one question and notes it down with its answer. */
static ing_status ask_one(ing_tree_ask ask, void *self, ing_path path, uint32_t what,
                          ing_questions *asked, ing_hash128 *answer, ing_err *e) {
    ING_TRY(ask(self, path, (ing_ask)what, answer, e));
    ing_question q = {path, (uint8_t)what, *answer};
    if (!ing_vec_push(asked, q))
        return ing_fail(e, ING_MEMORY, "no memory for asking a trace again");
    return ING_OK;
}

ing_status ing_tree_walk(const ing_tree *t, ing_tree_ask ask, void *self,
                         uint32_t *variant, ing_questions *asked, ing_err *e) {
    uint32_t at = 1;
    while (at && at < t->nodes.len) {
        ing_tree_node n = t->nodes.at[at];
        if (n.path == 0) {
            *variant = n.variant;
            return ING_OK;
        }
        ing_hash128 answer;
        ING_TRY(ask_one(ask, self, n.path, n.ask, asked, &answer, e));
        at = edge_find(t, at, answer);
    }
    return ING_DECLINED;
}

ing_status ing_trace_holds(const ing_trace *t, ing_tree_ask ask, void *self,
                           ing_questions *asked, ing_err *e) {
    if (t->list.len < asked->len || !same_start(t->list.at, asked->at, asked->len))
        return ING_DECLINED;
    for (uint32_t i = asked->len; i < t->list.len; i++) {
        ing_question q = t->list.at[i];
        ing_hash128 answer;
        ING_TRY(ask_one(ask, self, q.path, q.ask, asked, &answer, e));
        if (!ing_hash_eq(answer, q.answer)) return ING_DECLINED;
    }
    return ING_OK;
}
