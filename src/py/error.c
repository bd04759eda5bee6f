/* Run-time errors of a launch in the user's terms: native code leaves a code, a function
 * ordinal and a node (R19); the variant knows which trees those are. */
#include "py/kernel.h"

static const ing_front_tree *tree_of(const ing_py_variant *v, const ing_error_slot *s) {
    if (s->task >= v->code.n_tasks) return NULL;
    const ing_code_task *t = &v->code.tasks[s->task];
    if (s->func >= t->n_trees) return NULL;
    uint32_t i = t->trees[s->func];
    return i < v->trees.len ? v->trees.at[i] : NULL;
}

static ing_status at_node(const ing_py_variant *v, const ing_error_slot *slot,
                          ing_status s, const char *remedy, ing_err *e,
                          const char *text) {
    const ing_front_tree *t = tree_of(v, slot);
    if (!t || slot->node >= t->nodes.len) return ing_fail(e, s, "%s", text);
    return ing_front_diag(t, slot->node ? slot->node : t->root, s, remedy, e, "%s",
                          text);
}

ing_status ing_py_launch_error(const ing_py_variant *v, const ing_error_slot *slot,
                               ing_err *e) {
    char text[256];
    switch (slot->code) {
    case ING_ABI_CANCELLED:
        return ing_fail(e, ING_CANCELLED, "the launch was interrupted");
    case ING_ABI_ASSERT:
        return at_node(v, slot, ING_ASSERT, NULL, e, "assertion failed");
    case ING_ABI_OVERFLOW:
        return at_node(v, slot, ING_RUNTIME, NULL, e, "integer overflow");
    case ING_ABI_BOUNDS:
        snprintf(text, sizeof text, "index out of bounds");
        return at_node(v, slot, ING_INDEX, NULL, e, text);
    default: break;
    }
    uint32_t message = (uint32_t)slot->code - ING_ABI_USER;
    if (slot->code >= ING_ABI_USER && message < v->messages.len)
        return at_node(v, slot, ING_ASSERT, NULL, e, v->messages.at[message]);
    return ing_fail(e, ING_RUNTIME, "the kernel stopped with code %d", slot->code);
}
