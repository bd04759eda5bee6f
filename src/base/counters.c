/* Names of the counters. Called by `stat` and by tests; counting itself is inline in
 * base.h. Counters live in their owner's ing_counters, never in a global. */
#include "base/base.h"

const char *ing_counter_name(ing_counter c) {
    static const char *const name[] = {
#define X(name, text) text,
        ING_COUNTER_LIST(X)
#undef X
    };
    return (uint32_t)c < ING_COUNTER_N ? name[c] : "?";
}
