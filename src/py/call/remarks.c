/* What the passes decided about a kernel's loops and updates (src/pass/remark.def), as lines for people:
 * "file:line: words", in the order of the text, each once. Made when a kernel is compiled, kept in its
 * notes; `ingot explain --code` and qd.explain(kernel, code=True) show them. */
#include "py/call/kernel.h"
#include "trace/notes.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 24 << 10 }; /* of the lines of one kernel */

typedef struct line {
    const char *file;
    uint32_t line, order, word, what;
} line;

static int by_place(const void *a, const void *b) {
    const line *p = a, *q = b;
    int c = strcmp(p->file, q->file);
    if (c) return c;
    if (p->line != q->line) return p->line < q->line ? -1 : 1;
    return p->order < q->order ? -1 : p->order > q->order;
}

static bool place_of(const ing_front_result *front, const ing_ir_remark *r, line *out) {
    uint32_t opened = r->loc >> ING_FRONT_TREE_SHIFT, n = front->trees.len;
    ing_node node = r->loc & ((1u << ING_FRONT_TREE_SHIFT) - 1);
    uint32_t tree = opened ? n - opened : r->tree;
    if (opened > n || tree >= n) return false;
    const ing_front_tree *t = front->trees.at[tree];
    if (!node || node >= t->nodes.len) return false;
    out->file = t->file ? t->file : "?";
    out->line = t->first_line + t->nodes.at[node].line;
    return true;
}

/* How the kernel calls the array whose words begin there. */
static void put_array(const ing_py_kernel *k, const ing_record *r, uint32_t word,
                      ing_bytes *out) {
    for (uint32_t i = 0; i < r->binds.len; i++) {
        if (r->binds.at[i].word != word) continue;
        ing_words_path(&k->paths, r->binds.at[i].path, out);
        ing_bytes_puts(out, ": ");
        return;
    }
}

/* Without its folder: nothing that is kept names a folder of the program (R19). */
static void put_line(const ing_py_kernel *k, const ing_record *r, const line *l,
                     ing_bytes *out) {
    const char *slash = strrchr(l->file, '/');
    ing_bytes_printf(out, "%s%s:%u: ", out->len ? "\n" : "",
                     slash ? slash + 1 : l->file, l->line);
    if (l->word) put_array(k, r, l->word - 1, out);
    ing_bytes_puts(out, ing_remark_words(l->what));
}

static bool is_again(const line *lines, uint32_t k) {
    for (uint32_t j = k; j-- > 0 && lines[j].line == lines[k].line &&
                         strcmp(lines[j].file, lines[k].file) == 0;)
        if (lines[j].what == lines[k].what && lines[j].word == lines[k].word)
            return true;
    return false;
}

void ing_py_remarks(const ing_py_kernel *k, const ing_front_result *front,
                    const ing_record *r, const ing_ir_remarks *remarks,
                    ing_bytes *out) {
    line *lines = out ? ing_calloc((size_t)remarks->len + 1, sizeof *lines) : NULL;
    uint32_t n = 0;
    if (!lines) return;
    for (uint32_t i = 0; i < remarks->len; i++) {
        const ing_ir_remark *m = &remarks->at[i];
        lines[n] = (line){.order = m->what, .word = m->word, .what = m->what};
        n += place_of(front, m, &lines[n]);
    }
    qsort(lines, n, sizeof *lines, by_place);
    for (uint32_t i = 0; i < n && out->len < MAX_BYTES; i++)
        if (!is_again(lines, i)) put_line(k, r, &lines[i], out);
    ing_free(lines);
}
