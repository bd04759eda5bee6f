/* Staging: arrays whose memory the target cannot address are copied there before a launch
 * and, where the kernel writes them, back after it. Called by src/py/call: bind.c finds such
 * arrays, call.c copies around the launch; a launch whose arrays are all at home never comes
 * here. A stage belongs to one thread.
 *
 * Ranges that overlap share one copy, so that arrays which share memory do so in the launch
 * as well; each written range is copied back by itself. Copies keep the place of a range
 * within 64 bytes, so that elements stay aligned. */
#include "rt/stage.h"

#include <stdlib.h>

typedef struct range {
    ing_mem *mem; /* referenced */
    size_t offset, bytes;
    uint32_t word;
    bool written;
    uint32_t block; /* the copy that it is in */
} range;

typedef struct block {
    uint64_t from, to; /* addresses in the home of its ranges */
    ing_mem *copy;
} block;

struct ing_stage {
    const ing_home *home; /* of the target */
    ing_vec(range) ranges;
    ing_vec(block) blocks;
};

enum { LINE = 64 };

/* ---- collecting -------------------------------------------------------------------------- */

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory for copies of arrays");
}

ing_status ing_stage_add(ing_stage **stage, const ing_home *home, const ing_staged *s,
                         ing_err *e) {
    if (!s->bytes) return ING_OK; /* nobody looks at the address */
    if (!*stage) *stage = ing_calloc(1, sizeof **stage);
    if (!*stage) return no_memory(e);
    (*stage)->home = home;
    range r = {.mem = s->mem,
               .offset = s->offset,
               .bytes = s->bytes,
               .word = s->word,
               .written = s->written};
    if (!ing_vec_push(&(*stage)->ranges, r)) return no_memory(e);
    ing_mem_ref(s->mem);
    return ING_OK;
}

static void not_ours(void *owner) {
    (void)owner;
}

ing_status ing_stage_add_host(ing_stage **stage, const ing_home *home, void *data,
                              const ing_staged *s, ing_err *e) {
    ing_staged with = *s;
    if (!s->bytes) return ING_OK;
    if (ing_mem_wrap(data, s->bytes, not_ours, NULL, &with.mem) != ING_OK)
        return no_memory(e);
    ing_status status = ing_stage_add(stage, home, &with, e);
    ing_mem_unref(with.mem);
    return status;
}

/* ---- in ------------------------------------------------------------------------------------ */

static uint64_t start_of(const range *r) {
    return r->mem->address + r->offset;
}

static int by_place(const void *a, const void *b) {
    const range *x = a, *y = b;
    uint64_t p = (uint64_t)(uintptr_t)x->mem->home,
             q = (uint64_t)(uintptr_t)y->mem->home;
    if (p == q) p = start_of(x), q = start_of(y);
    return p < q ? -1 : p > q;
}

/* Which ranges share a copy. */
static bool make_blocks(ing_stage *s) {
    const ing_home *home = NULL;
    qsort(s->ranges.at, s->ranges.len, sizeof *s->ranges.at, by_place);
    for (uint32_t i = 0; i < s->ranges.len; i++) {
        range *r = &s->ranges.at[i];
        uint64_t from = start_of(r), to = from + r->bytes;
        block *last = s->blocks.len ? &s->blocks.at[s->blocks.len - 1] : NULL;
        if (last && home == r->mem->home && from < last->to) {
            if (to > last->to) last->to = to;
        } else if (!ing_vec_push(&s->blocks,
                                 ((block){from & ~(uint64_t)(LINE - 1), to, NULL}))) {
            return false;
        }
        home = r->mem->home;
        r->block = s->blocks.len - 1;
    }
    return true;
}

ing_status ing_stage_in(ing_stage *s, uint64_t *words, ing_counters *n, ing_err *e) {
    if (!make_blocks(s)) return no_memory(e);
    for (uint32_t i = 0; i < s->blocks.len; i++) {
        block *b = &s->blocks.at[i];
        if (ing_mem_new(s->home, (size_t)(b->to - b->from), &b->copy) != ING_OK)
            return ing_fail(e, ING_MEMORY,
                            "no memory of %s for a copy of an array with %llu bytes",
                            s->home->name, (unsigned long long)(b->to - b->from));
    }
    for (uint32_t i = 0; i < s->ranges.len; i++) {
        range *r = &s->ranges.at[i];
        const block *b = &s->blocks.at[r->block];
        size_t at = (size_t)(start_of(r) - b->from);
        if (ing_mem_copy(b->copy, at, r->mem, r->offset, r->bytes) != ING_OK)
            return ing_fail(e, ING_OS, "an array could not be copied to %s",
                            s->home->name);
        words[r->word] = b->copy->address + at;
        ing_count(n, ING_COUNT_COPIES_IN);
    }
    return ING_OK;
}

/* ---- out ----------------------------------------------------------------------------------- */

bool ing_stage_out(const ing_stage *s, ing_counters *n) {
    bool ok = true;
    for (uint32_t i = 0; i < s->ranges.len; i++) {
        const range *r = &s->ranges.at[i];
        const block *b = &s->blocks.at[r->block];
        if (!r->written) continue;
        ok &= ing_mem_copy(r->mem, r->offset, b->copy, (size_t)(start_of(r) - b->from),
                           r->bytes) == ING_OK;
        ing_count(n, ING_COUNT_COPIES_OUT);
    }
    return ok;
}

void ing_stage_free(ing_stage *s) {
    if (!s) return;
    for (uint32_t i = 0; i < s->ranges.len; i++) ing_mem_unref(s->ranges.at[i].mem);
    for (uint32_t i = 0; i < s->blocks.len; i++) ing_mem_unref(s->blocks.at[i].copy);
    ing_vec_fini(&s->ranges);
    ing_vec_fini(&s->blocks);
    ing_free(s);
}
