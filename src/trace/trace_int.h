/* What the files of src/trace share. */
#ifndef ING_TRACE_INT_H
#define ING_TRACE_INT_H

#include "trace/trace.h"

typedef struct ing_tree_node {
    ing_path path; /* 0: a leaf */
    uint32_t ask;
    uint32_t variant;
} ing_tree_node;

typedef struct ing_tree_edge { /* in the order of its bytes in an index */
    uint32_t from, to;
    ing_hash128 answer;
} ing_tree_edge;

struct ing_tree {
    ing_vec(ing_tree_node) nodes; /* [0] unused, [1] the root once there is one */
    ing_vec(ing_tree_edge) edges; /* sorted by from, then answer */
};

ing_path ing_path_add_atom(ing_paths *p, ing_path parent, ing_step step, uint32_t atom,
                           int64_t i);

/* Here, because reading an index compares each edge with the one before. */
static inline int ing_tree_edge_order(const ing_tree_edge *a, uint32_t from,
                                      ing_hash128 answer) {
    if (a->from != from) return a->from < from ? -1 : 1;
    if (a->answer.hi != answer.hi) return a->answer.hi < answer.hi ? -1 : 1;
    if (a->answer.lo != answer.lo) return a->answer.lo < answer.lo ? -1 : 1;
    return 0;
}

#endif
