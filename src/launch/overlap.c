/* Whether arrays that code takes to lie apart share memory in a launch (R22), where there are more
 * than a few pairs of them. The answer is kept with the addresses and extents that it was found
 * for: while no array moves, a launch compares these alone. Else the arrays are put in order of
 * their addresses; where neighbours share nothing, nobody does. Called by launches with the
 * arguments as words, under the interpreter's lock; knows no Python. */
#include <stdlib.h>
#include <string.h>

#include "launch/launch.h"

typedef struct range {
    uint64_t from, to;
} range;

static int by_address(const void *a, const void *b) {
    uint64_t p = ((const range *)a)->from, q = ((const range *)b)->from;
    return (p > q) - (p < q);
}

/* Do any two of the arrays, of whichever pairs? */
static bool any_share(const ing_record *r, const uint64_t *words, range *all) {
    uint64_t end = 0;
    bool share = false;
    for (uint32_t i = 0; i < r->arrays.len; i++) {
        const ing_record_array *a = &r->arrays.at[i];
        uint64_t from = words[a->word] + a->at;
        all[i] = (range){from, from + ing_launch_bytes(a, words)};
    }
    qsort(all, r->arrays.len, sizeof *all, by_address);
    for (uint32_t i = 0; i < r->arrays.len && !share; i++) {
        share = all[i].from < end;
        if (all[i].to > end) end = all[i].to;
    }
    return share;
}

static bool find(const ing_record *r, const uint64_t *words) {
    range *all = ing_calloc(r->arrays.len, sizeof *all);
    bool maybe = !all || any_share(r, words, all);
    ing_free(all);
    return maybe && ing_launch_shares(r, words, r->apart.len);
}

/* Are the arrays of pair i the same? */
static bool are_one(const ing_record *r, const uint64_t *words, uint32_t i) {
    const ing_record_array *a = &r->arrays.at[r->apart.at[i].a];
    const ing_record_array *b = &r->arrays.at[r->apart.at[i].b];
    bool one = a->ndim == b->ndim && a->size == b->size && a->span == b->span &&
               words[a->word] + a->at == words[b->word] + b->at;
    for (uint32_t k = 1; one && k <= a->ndim; k++)
        one = words[a->word + k] == words[b->word + k];
    return one;
}

bool ing_launch_has_parts(const ing_record *r, const uint64_t *words) {
    for (uint32_t k = 0; k < r->n_views; k++) {
        uint32_t i = r->n_rule + 2 * k;
        const ing_record_array *a = &r->arrays.at[r->apart.at[i].a];
        const ing_record_array *b = &r->arrays.at[r->apart.at[i].b];
        uint64_t p = words[a->word] + a->at, q = words[b->word] + b->at;
        bool share =
            p < q + ing_launch_bytes(b, words) && q < p + ing_launch_bytes(a, words);
        if (share && !(are_one(r, words, i) && are_one(r, words, i + 1))) return true;
    }
    return false;
}

static bool same(const ing_record *r, const uint64_t *then, const uint64_t *words) {
    for (uint32_t i = 0; i < r->arrays.len; i++) {
        const ing_record_array *a = &r->arrays.at[i];
        for (uint32_t k = 0; k <= a->ndim; k++)
            if (*then++ != words[a->word + k]) return false;
    }
    return true;
}

/* Without memory the next launch looks again. */
static void note(const ing_record *r, ing_launch_apart *last, const uint64_t *words) {
    size_t n = 0;
    for (uint32_t i = 0; i < r->arrays.len; i++) n += r->arrays.at[i].ndim + 1u;
    if (!last->words) last->words = ing_calloc(n, sizeof *last->words);
    if (!last->words) return;
    uint64_t *to = last->words;
    for (uint32_t i = 0; i < r->arrays.len; i++) {
        const ing_record_array *a = &r->arrays.at[i];
        memcpy(to, words + a->word, (a->ndim + 1u) * sizeof *to);
        to += a->ndim + 1u;
    }
}

bool ing_launch_overlaps_of_many(const ing_record *r, ing_launch_apart *last,
                                 const uint64_t *words) {
    if (last->words && same(r, last->words, words)) return last->overlaps;
    last->overlaps = find(r, words);
    note(r, last, words);
    return last->overlaps;
}
