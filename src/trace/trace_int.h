/* What the files of src/trace share. */
#ifndef ING_TRACE_INT_H
#define ING_TRACE_INT_H

#include "trace/trace.h"

typedef struct ing_tree_node {
    ing_path path; /* 0: a leaf */
    uint32_t ask;
    uint32_t variant;
} ing_tree_node;

typedef struct ing_tree_edge {
    ing_hash128 answer;
    uint32_t from, to;
} ing_tree_edge;

struct ing_tree {
    ing_vec(ing_tree_node) nodes; /* [0] unused, [1] the root once there is one */
    ing_vec(ing_tree_edge) edges; /* sorted by from, then answer */
};

ing_path ing_path_add_atom(ing_paths *p, ing_path parent, ing_step step, uint32_t atom,
                           int64_t i);
int ing_tree_edge_order(const ing_tree_edge *a, uint32_t from, ing_hash128 answer);

#endif
