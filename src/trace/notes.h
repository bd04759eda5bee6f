/* notes: why kernels were compiled, in words (R10, R20). One file of notes per kernel name
 * holds its last compiles: what each asked, with answers that people can read, and why it
 * was needed. Nothing is ever reused because of a note. Notes stay on this machine: they
 * are entries of a kind of their own, which is never exported, sealed or sent. */
#ifndef ING_NOTES_H
#define ING_NOTES_H

#include "gate/gate.h"
#include "trace/trace.h"

enum {
    ING_NOTES_MAX = 8,               /* compiles that are kept per name */
    ING_NOTES_MAX_BYTES = 256 << 10, /* of the file; older ones go first */
    ING_NOTES_MAX_WORDS = 64,        /* bytes of one answer */
};

/* ---- answers in words (words.c) -------------------------------------------------------- */

void ing_words_fact(const ing_gate_fact *f, ing_bytes *out);   /* "3", "f32 1-d" */
void ing_words_param(const ing_gate_param *p, ing_bytes *out); /* "i32" */
void ing_words_returns(const ing_gate_returns *r, ing_bytes *out);
void ing_words_setting(ing_setting k, int64_t value, ing_bytes *out);
/* A path as the user wrote it: "self.cfg.n", "N, read by f". */
void ing_words_path(const ing_paths *p, ing_path of, ing_bytes *out);
/* "self.cfg.n: 100 -> 200", "source of f() in m.py changed"; texts may be "". */
void ing_words_change(const ing_paths *p, const ing_question *q, const char *old,
                      const char *now, ing_bytes *out);

/* Words by answer, while a kernel is lowered. An answer means the same wherever the same is
 * asked, a setting's for that setting. `of`: its number + 1, ING_OF_MEANING, else 0. */
#define ING_OF_MEANING UINT32_MAX
typedef struct ing_answers {
    ing_atoms words;
    ing_map map;
} ing_answers;

void ing_answers_init(ing_answers *a);
void ing_answers_fini(ing_answers *a);
bool ing_answers_known(const ing_answers *a, ing_hash128 answer, uint32_t of);
/* Without memory it is forgotten. */
void ing_answers_add(ing_answers *a, ing_hash128 answer, uint32_t of,
                     const ing_bytes *words);
/* All that the notes of one compile say. */
typedef struct ing_notes ing_notes;
void ing_answers_learn(ing_answers *a, const ing_notes *n);
const char *ing_answers_get(const ing_answers *a, const ing_paths *p,
                            const ing_question *q); /* "": unknown */

/* ---- notes (notes.c) ---------------------------------------------------------------------- */

typedef struct ing_note { /* one compile */
    uint64_t when;        /* nanoseconds since 1970 */
    uint32_t pid;
    ing_hash128 address;             /* of the kernel, where its index is; 0: unknown */
    uint32_t why, revision, machine; /* atoms of the notes' words */
    uint32_t code;                   /* what passes decided, a line each; an atom */
    bool cut;                        /* its questions are not all here */
    ing_trace trace;
    ing_vec(uint32_t) words; /* of each answer */
} ing_note;

struct ing_notes {
    uint32_t label; /* the kernel's name: an atom of words */
    ing_atoms words;
    ing_paths paths;
    ing_vec(ing_note) at; /* the oldest first */
};

void ing_notes_init(ing_notes *n);
void ing_notes_fini(ing_notes *n);
ing_status ing_notes_read(const uint8_t *p, size_t n, ing_notes *out); /* as new */
/* As bytes, without the oldest where there are too many. */
ing_status ing_notes_write(const ing_notes *n, ing_bytes *out);

typedef struct ing_notes_compile { /* what is to be noted, or to be explained */
    const char *label;
    const ing_trace *trace;
    const ing_paths *paths;
    const ing_answers *answers;
    const char *revision, *machine;
    const char *code;     /* NULL: nothing is known */
    uint64_t when, since; /* now; when the cache was looked at */
    uint32_t pid;
    ing_hash128 address;
    /* why equal answers were not enough; NULL: the entry is lost */
    const char *missing;
} ing_notes_compile;

/* The nearest compile before, and the first question that was answered otherwise. */
void ing_notes_why(const ing_notes *n, const ing_notes_compile *c, ing_bytes *out);
ing_status ing_notes_add(ing_notes *n, const ing_notes_compile *c, const char *why);

#endif
