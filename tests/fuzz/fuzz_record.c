/* Variants: what is accepted keeps to its own bounds, and is written and read again. */
#include "fuzz.h"
#include "record/record.h"

static void check_bounds(const ing_record *r, uint32_t n_paths) {
    for (uint32_t i = 0; i < r->binds.len; i++) {
        const ing_record_bind *b = &r->binds.at[i];
        FUZZ_CHECK(b->word < r->n_words && b->array.ndim <= r->n_words - b->word);
        FUZZ_CHECK(b->path < n_paths);
    }
    for (uint32_t i = 0; i < r->tasks.len; i++) {
        const ing_record_task *t = &r->tasks.at[i];
        for (uint32_t j = 0; j < t->trees.len; j++)
            FUZZ_CHECK(t->trees.at[j] < r->trees.len);
        if (t->info.end.at == ING_IR_BOUND_BUFFER)
            FUZZ_CHECK((uint64_t)t->info.end.offset + 8 <= r->buffer_bytes);
        for (uint32_t j = 0; j < t->info.n_tallies; j++) {
            const ing_ir_tally *y = &t->info.tallies[j];
            FUZZ_CHECK(y->word < r->n_words && y->ndim < r->n_words - y->word);
        }
    }
    for (uint32_t i = 0; i < r->trees.len; i++)
        FUZZ_CHECK(r->trees.at[i] && r->trees.at[i] < n_paths);
    for (uint32_t i = 0; i < r->trace.list.len; i++)
        FUZZ_CHECK(r->trace.list.at[i].path < n_paths);
}

static bool read_record(const uint8_t *p, size_t n, ing_bytes *again) {
    ing_paths paths;
    ing_record r;
    ing_paths_init(&paths);
    bool ok = ing_record_read(p, n, &paths, &r) == ING_OK;
    if (ok) {
        check_bounds(&r, paths.nodes.len);
        if (again) (void)ing_record_write(&r, &paths, again, NULL);
        ing_record_fini(&r);
    }
    ing_paths_fini(&paths);
    return ok;
}

void fuzz_record(const uint8_t *p, size_t n) {
    ing_bytes again;
    ing_bytes_init(&again);
    if (read_record(p, n, &again) && !again.failed)
        FUZZ_CHECK(read_record(again.at, again.len, NULL));
    ing_bytes_fini(&again);
}
