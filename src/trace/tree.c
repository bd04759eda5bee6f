/* The decision tree of one kernel: after the same first k answers lowering asks the same
 * question k + 1 (R6), so the traces of all variants share prefixes. Walking asks down
 * from the root; the first new answer is the explanation of a miss.
 *
 * Nodes are indices, never pointers: asking runs Python, which may launch this very
 * kernel and grow the tree under a walk. */
#include "trace/trace.h"

#include <string.h>

typedef struct tree_node {
    ing_path path; /* 0: a leaf */
    uint8_t ask;
    uint32_t variant;
} tree_node;

struct ing_tree {
    ing_vec(tree_node) nodes; /* [0] unused, [1] the root once there is one */
    ing_map edges;            /* digest of (node, answer) -> node */
};

ing_tree *ing_tree_new(void) {
    ing_tree *t = ing_calloc(1, sizeof *t);
    if (!t) return NULL;
    ing_map_init(&t->edges);
    if (!ing_vec_push(&t->nodes, (tree_node){0})) {
        ing_tree_free(t);
        return NULL;
    }
    return t;
}

void ing_tree_free(ing_tree *t) {
    if (!t) return;
    ing_vec_fini(&t->nodes);
    ing_map_fini(&t->edges);
    ing_free(t);
}

static ing_hash128 edge_key(uint32_t node, ing_hash128 answer) {
    uint64_t key[3] = {node, answer.lo, answer.hi};
    return ing_hash(key, sizeof key);
}

ing_status ing_tree_insert(ing_tree *t, const ing_trace *tr, uint32_t variant,
                           ing_err *e) {
    uint32_t at = 1;
    /* Room for every node first, so that no edge can point at a node that was not made. */
    if (!ing_vec_reserve(&t->nodes, t->nodes.len + tr->list.len + 1))
        return ing_fail(e, ING_MEMORY, "no memory for the kernel's decision tree");
    for (uint32_t i = 0; i <= tr->list.len; i++) {
        bool leaf = i == tr->list.len;
        tree_node want = {leaf ? 0 : tr->list.at[i].path,
                          leaf ? (uint8_t)0 : tr->list.at[i].ask, variant};
        if (at == t->nodes.len) {
            t->nodes.at[t->nodes.len++] = want;
        } else if (t->nodes.at[at].path != want.path ||
                   t->nodes.at[at].ask != want.ask) {
            return ing_fail(
                e, ING_INTERNAL,
                "lowering asked question %u differently after equal answers", i);
        }
        if (leaf) break;
        ing_hash128 key = edge_key(at, tr->list.at[i].answer);
        uint32_t next = ing_map_get(&t->edges, key);
        if (!next) {
            next = t->nodes.len;
            if (!ing_map_put(&t->edges, key, next))
                return ing_fail(e, ING_MEMORY,
                                "no memory for the kernel's decision tree");
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
        tree_node n = t->nodes.at[at];
        if (n.path == 0) {
            *variant = n.variant;
            return ING_OK;
        }
        question->path = n.path;
        question->ask = n.ask;
        ING_TRY(ask(self, n.path, (ing_ask)n.ask, &question->answer, e));
        at = ing_map_get(&t->edges, edge_key(at, question->answer));
    }
    return ING_DECLINED;
}
