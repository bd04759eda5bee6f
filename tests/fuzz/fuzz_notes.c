/* Notes on compiles: what is accepted can be asked for a reason, and is written and read
 * again. */
#include "fuzz.h"
#include "trace/notes.h"

static void ask(const ing_notes *n) {
    ing_bytes why;
    ing_answers answers;
    ing_trace none;
    ing_bytes_init(&why);
    ing_answers_init(&answers);
    ing_trace_init(&none);
    for (uint32_t i = 0; i <= n->at.len; i++) {
        const ing_trace *trace = i < n->at.len ? &n->at.at[i].trace : &none;
        ing_notes_compile c = {.label = "k",
                               .trace = trace,
                               .paths = &n->paths,
                               .answers = &answers,
                               .revision = "r",
                               .machine = "m"};
        ing_notes_why(n, &c, &why);
        FUZZ_CHECK(why.failed || why.len > 0);
        ing_bytes_clear(&why);
    }
    ing_trace_fini(&none);
    ing_answers_fini(&answers);
    ing_bytes_fini(&why);
}

static bool read_notes(const uint8_t *p, size_t n, ing_bytes *again) {
    ing_notes notes;
    bool ok = ing_notes_read(p, n, &notes) == ING_OK;
    if (ok && again) {
        ask(&notes);
        ing_status s = ing_notes_write(&notes, again);
        FUZZ_CHECK(s == ING_OK || s == ING_DECLINED || s == ING_MEMORY);
        if (s != ING_OK) ing_bytes_clear(again);
    }
    ing_notes_fini(&notes);
    return ok;
}

void fuzz_notes(const uint8_t *p, size_t n) {
    ing_bytes again;
    ing_bytes_init(&again);
    if (read_notes(p, n, &again) && again.len)
        FUZZ_CHECK(read_notes(again.at, again.len, NULL));
    ing_bytes_fini(&again);
}
