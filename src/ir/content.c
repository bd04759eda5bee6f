/* What a module says, whatever its functions are called: a digest in which a function counts
 * by its text and by what it calls, so that one function used twice and two equal ones are
 * the same. For comparing lowerings (paranoid mode), never a key: images are found by
 * ing_ir_digest. */
#include "ir/ir.h"

#include <string.h>

/* Calls deeper than this are told apart by their number only. */
enum { MAX_ROUNDS = 64 };

typedef struct text_of { /* one function in the module's text */
    size_t from, to;
} text_of;

/* The number behind an @, or UINT32_MAX; *end: after it. */
static uint32_t func_at(const char *s, const char *stop, const char **end) {
    uint32_t n = 0;
    *end = s + 1;
    if (s + 1 == stop || s[1] < '0' || s[1] > '9') return UINT32_MAX;
    for (s++; s < stop && *s >= '0' && *s <= '9'; s++)
        n = n * 10 + (uint32_t)(*s - '0');
    *end = s;
    return n;
}

/* Hashes a stretch of text with each function's number replaced by its digest so far. */
static ing_hash128 hash_text(const char *text, text_of part, const ing_hash128 *of,
                             uint32_t n_funcs) {
    ing_hasher h;
    ing_hasher_init(&h);
    const char *at = text + part.from, *stop = text + part.to;
    while (at < stop) {
        const char *mark = memchr(at, '@', (size_t)(stop - at)), *end = stop;
        ing_hasher_item(&h, 't', at, (size_t)((mark ? mark : stop) - at));
        if (!mark) break;
        uint32_t n = func_at(mark, stop, &end);
        ing_hasher_digest(&h, 'f', n < n_funcs ? of[n] : (ing_hash128){n, 0});
        at = end;
    }
    return ing_hasher_done(&h);
}

/* Where each function's text is; functions stand in order, each closed by a line "}". */
static uint32_t find_funcs(const ing_ir_mod *m, const ing_bytes *text, text_of *out) {
    const char *s = (const char *)text->at, *stop = s + text->len;
    uint32_t n = 0;
    for (const char *line = s; line < stop && n < m->funcs.len;) {
        const char *end = memchr(line, '\n', (size_t)(stop - line));
        end = end ? end + 1 : stop;
        bool head = end - line > 2 && end[-2] == '{' && *line != ' ';
        if (head)
            out[n].from =
                (size_t)((const char *)memchr(line, '@', (size_t)(end - line)) - s);
        if (*line == '}') out[n++].to = (size_t)(end - s);
        line = end;
    }
    return n;
}

ing_status ing_ir_content(const ing_ir_mod *m, ing_hash128 *out, ing_err *e) {
    uint32_t n = m->funcs.len;
    ing_bytes text;
    ing_bytes_init(&text);
    ing_ir_print(m, 0, &text);
    text_of *parts = ing_calloc((size_t)n + 1, sizeof *parts);
    ing_hash128 *now = ing_calloc(2 * ((size_t)n + 1), sizeof *now),
                *next = now + n + 1;
    bool ok = parts && now && !text.failed;
    uint32_t found = ok ? find_funcs(m, &text, parts) : 0;
    const char *s = (const char *)text.at;
    uint32_t rounds = found < MAX_ROUNDS ? found : MAX_ROUNDS;
    for (uint32_t round = 0; ok && round <= rounds; round++) {
        for (uint32_t k = 0; k < found; k++) {
            const char *end; /* its own number says nothing */
            (void)func_at(s + parts[k].from, s + parts[k].to, &end);
            text_of body = {(size_t)(end - s), parts[k].to};
            next[k] = hash_text(s, body, now, found);
        }
        memcpy(now, next, found * sizeof *now);
    }
    ing_hasher h;
    ing_hasher_init(&h);
    for (uint32_t k = 0; ok && k < found; k++)
        if (m->funcs.at[k]->kind != ING_IR_FUNC) ing_hasher_digest(&h, 'k', now[k]);
    text_of head = {0, found ? parts[0].from : text.len};
    text_of tail = {found ? parts[found - 1].to : text.len, text.len};
    if (ok) {
        ing_hasher_digest(&h, 'h', hash_text(s, head, now, 0));
        ing_hasher_digest(&h, 'r', hash_text(s, tail, now, found));
        *out = ing_hasher_done(&h);
    }
    ing_bytes_fini(&text);
    ing_free(parts);
    ing_free(now);
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for the IR's text");
}
