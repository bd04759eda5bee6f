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

/* Characters that take two columns in a terminal (East Asian scripts, emoji), by ranges of
 * their code points; those from UTF-8 text that Python has checked. */
static bool is_wide(const char *s, const char *end) {
    static const uint32_t ranges[][2] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF}, {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},
        {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
        {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
    };
    unsigned char c = (unsigned char)*s;
    int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 0;
    if (!more || end - s <= more) return false;
    uint32_t x = more == 3 ? c & 7u : c & 15u;
    for (int i = 1; i <= more; i++) x = x << 6 | ((unsigned char)s[i] & 63u);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (x >= ranges[i][0] && x <= ranges[i][1]) return true;
    return false;
}

/* Columns of a terminal. */
static uint32_t count_columns(const char *p, size_t n) {
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (starts_char(p[i])) count += 1 + is_wide(p + i, p + n);
    return count;
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
    for (size_t i = 0; i < from; i++) {
        if (!starts_char(line[i])) continue;
        ing_bytes_puts(out, line[i] == '\t'                 ? "\t"
                            : is_wide(line + i, line + len) ? "  "
                                                            : " ");
    }
    ing_bytes_puts(out, "^");
    uint32_t width = to > from ? count_columns(line + from, to - from) : 1;
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
    bool lost = text->failed || !text->at;
    if (lost) s = ING_MEMORY; /* a message that nobody can read tells less */
    ing_fail(e, s, "%s", lost ? "no memory for a message" : (char *)text->at);
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
