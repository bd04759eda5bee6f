/* Messages about a place in a function's text: "file:line:col: what", the source line, a
 * caret line, the remedy, and the chain of calls that led there. Used by lowering and by
 * run-time errors of kernels. Reads the tree only; never asks the gate. */
#include "front/front_int.h"

#include <stdio.h>
#include <string.h>

/* Line `line` (0-based) of the text, without its end. */
static const char *find_line(const ing_front_tree *t, uint32_t line, size_t *n) {
    const char *p = t->text, *end = t->text ? t->text + t->text_len : NULL;
    while (p && line > 0) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (p) p++;
        line--;
    }
    if (!p || p >= end) return NULL;
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    *n = (size_t)((stop ? stop : end) - p);
    if (*n && p[*n - 1] == '\r') (*n)--;
    return p;
}

static bool starts_char(char c) {
    return ((unsigned char)c & 0xC0) != 0x80;
}

static uint32_t count_chars(const char *p, size_t n) {
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) count += starts_char(p[i]);
    return count;
}

/* Under the node's first line; tabs are kept so that columns stay under each other. */
static void put_caret(const ing_front_node *n, const char *line, size_t len,
                      ing_bytes *out) {
    size_t from = n->col < len ? n->col : len;
    size_t to = n->end_line == n->line && n->end_col > n->col ? n->end_col : len;
    if (to > len) to = len;
    for (size_t i = 0; i < from; i++)
        if (starts_char(line[i])) ing_bytes_puts(out, line[i] == '\t' ? "\t" : " ");
    ing_bytes_puts(out, "^");
    uint32_t width = to > from ? count_chars(line + from, to - from) : 1;
    for (uint32_t i = 1; i < width; i++) ing_bytes_puts(out, "~");
    ing_bytes_puts(out, "\n");
}

typedef struct place {
    const char *file;
    uint32_t line, col; /* 1-based; col in characters */
} place;

static place find_place(const ing_front_tree *t, ing_node at) {
    place p = {t->file ? t->file : "<unknown>", t->first_line, 1};
    if (at == 0 || at >= t->nodes.len) return p;
    const ing_front_node *n = &t->nodes.at[at];
    size_t len = 0;
    const char *line = find_line(t, n->line, &len);
    p.line = t->first_line + n->line;
    p.col = 1 + (line ? count_chars(line, n->col < len ? n->col : len) : n->col);
    return p;
}

void ing_front_diag_put(const ing_front_tree *t, ing_node at, const char *text,
                        const char *remedy, ing_bytes *out) {
    place p = find_place(t, at);
    ing_bytes_printf(out, "%s:%u:%u: %s\n", p.file, p.line, p.col, text);
    const ing_front_node *n = &t->nodes.at[at < t->nodes.len ? at : 0];
    size_t len = 0;
    const char *line = at ? find_line(t, n->line, &len) : NULL;
    if (line) {
        ing_bytes_put(out, line, len);
        ing_bytes_puts(out, "\n");
        put_caret(n, line, len, out);
    }
    if (remedy) ing_bytes_printf(out, "help: %s\n", remedy);
}

void ing_front_diag_chain(const ing_front_tree *t, ing_node at, const char *callee,
                          ing_bytes *out) {
    place p = find_place(t, at);
    ing_bytes_printf(out, "in the call of %s at %s:%u:%u\n", callee, p.file, p.line,
                     p.col);
}

ing_status ing_front_diag_done(const ing_front_tree *t, ing_node at, ing_status s,
                               ing_bytes *text, ing_err *e) {
    place p = find_place(t, at);
    while (text->len && text->at[text->len - 1] == '\n') text->at[--text->len] = 0;
    ing_fail(e, s, "%s", text->failed || !text->at ? "no memory" : (char *)text->at);
    if (e) {
        e->line = p.line;
        e->col = p.col;
        size_t n = strlen(p.file) + 1;
        char *file = ing_malloc(n);
        if (file) {
            memcpy(file, p.file, n);
            ing_free(e->file);
            e->file = file;
        }
    }
    ing_bytes_fini(text);
    return s;
}

ing_status ing_front_diag(const ing_front_tree *t, ing_node at, ing_status s,
                          const char *remedy, ing_err *e, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ing_bytes out;
    ing_bytes_init(&out);
    ing_front_diag_put(t, at, text, remedy, &out);
    return ing_front_diag_done(t, at, s, &out, e);
}
