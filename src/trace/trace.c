/* Traces: the questions of one compile, in the order they were asked, each once. The
 * gate adds to the trace of the open frame; a frame's trace is spliced into its caller's
 * when it is left, and again at each further use of the same specialisation (R7). */
#include "trace/trace.h"

#include <string.h>

void ing_trace_init(ing_trace *t) {
    memset(t, 0, sizeof *t);
    ing_map_init(&t->seen);
}

void ing_trace_fini(ing_trace *t) {
    ing_vec_fini(&t->list);
    ing_map_fini(&t->seen);
}

bool ing_trace_add(ing_trace *t, ing_path path, ing_ask ask, ing_hash128 answer) {
    if (path == 0) return false;
    ing_hash128 h = {path, ask};
    if (ing_map_get(&t->seen, h)) return true;
    ing_question q = {path, (uint8_t)ask, answer};
    return ing_vec_push(&t->list, q) && ing_map_put(&t->seen, h, t->list.len);
}

bool ing_trace_splice(ing_trace *into, ing_paths *p, const ing_trace *sub,
                      ing_path func, const ing_path *params, uint32_t n) {
    for (uint32_t i = 0; i < sub->list.len; i++) {
        ing_question q = sub->list.at[i];
        ing_path at;
        if (!ing_path_reroot(p, q.path, func, params, n, &at)) return false;
        /* A template parameter that was passed a value with no path (made in the
         * caller's body) is covered by the caller's own source: nothing to ask. */
        if (at == 0) continue;
        if (!ing_trace_add(into, at, (ing_ask)q.ask, q.answer)) return false;
    }
    return true;
}

static const char *ask_name(ing_ask a) {
    switch (a) {
    case ING_ASK_LOOK: return "look";
    case ING_ASK_SOURCE: return "source";
    case ING_ASK_CONFIG: return "config";
    case ING_ASK_MEANING: return "meaning";
    case ING_ASK_WHOLE: return "whole";
    case ING_ASK_BLOCKS: return "blocks";
    }
    return "?";
}

void ing_trace_print(const ing_trace *t, const ing_paths *p, ing_bytes *out) {
    for (uint32_t i = 0; i < t->list.len; i++) {
        char hex[33];
        ing_hash_hex(t->list.at[i].answer, hex);
        ing_path_print(p, t->list.at[i].path, out);
        ing_bytes_printf(out, " %s %s\n", ask_name((ing_ask)t->list.at[i].ask), hex);
    }
}
