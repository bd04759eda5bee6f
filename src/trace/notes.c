/* Notes as bytes, and what they tell: which compile before was the nearest, and where the
 * new one first got another answer. Called on a compile and by `ingot explain`. A file that
 * is not as written is no notes at all. Little-endian, version 3:
 *
 *   u32 version
 *   u32 words, each u32 length + bytes; number 0 is the empty one
 *   u32 label
 *   paths                                     as in src/trace/index.c
 *   u32 notes, the oldest first, each u64 when, u32 pid, u64 lo, u64 hi of the kernel's
 *       address, u32 why, revision, machine, code, u8 cut, trace as in src/trace/index.c, u32
 *       words of each of its questions */
#include "trace/notes.h"

#include <string.h>

enum { VERSION = 3, MAX_WORD = 1 << 15 };

/* ---- life --------------------------------------------------------------------------------- */

void ing_notes_init(ing_notes *n) {
    memset(n, 0, sizeof *n);
    ing_atoms_init(&n->words);
    ing_paths_init(&n->paths);
}

static void note_fini(ing_note *n) {
    ing_trace_fini(&n->trace);
    ing_vec_fini(&n->words);
}

void ing_notes_fini(ing_notes *n) {
    for (uint32_t i = 0; i < n->at.len; i++) note_fini(&n->at.at[i]);
    ing_vec_fini(&n->at);
    ing_paths_fini(&n->paths);
    ing_atoms_fini(&n->words);
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Copies the first `limit` questions of a trace with their words. */
static ing_status copy_questions(ing_notes *to, ing_note *note, const ing_paths *paths,
                                 const ing_trace *trace, const char *const *words,
                                 uint32_t limit) {
    uint32_t n = trace->list.len < limit ? trace->list.len : limit;
    for (uint32_t i = 0; i < n; i++) {
        const ing_question *q = &trace->list.at[i];
        ing_path path = ing_path_copy(paths, q->path, &to->paths);
        uint32_t atom = ing_atoms_add(&to->words, words[i], strlen(words[i]));
        if (!path || atom == UINT32_MAX ||
            !ing_trace_add(&note->trace, path, (ing_ask)q->ask, q->answer))
            return ING_MEMORY;
        /* A file may ask the same twice; a trace does not. */
        if (note->trace.list.len > note->words.len && !ing_vec_push(&note->words, atom))
            return ING_MEMORY;
    }
    if (n < trace->list.len) note->cut = true;
    return ING_OK;
}

static bool atom_of(ing_notes *n, const char *s, uint32_t *out) {
    *out = ing_atoms_add(&n->words, s, strnlen(s, MAX_WORD));
    return *out != UINT32_MAX;
}

static ing_status add_note(ing_notes *n, ing_note head, const char *const texts[4],
                           const ing_paths *paths, const ing_trace *trace,
                           const char *const *words, uint32_t limit) {
    ing_note note = {
        .when = head.when, .pid = head.pid, .address = head.address, .cut = head.cut};
    ing_trace_init(&note.trace);
    ing_status s =
        atom_of(n, texts[0], &note.why) && atom_of(n, texts[1], &note.revision) &&
                atom_of(n, texts[2], &note.machine) && atom_of(n, texts[3], &note.code)
            ? ING_OK
            : ING_MEMORY;
    if (s == ING_OK) s = copy_questions(n, &note, paths, trace, words, limit);
    if (s == ING_OK && !ing_vec_push(&n->at, note)) s = ING_MEMORY;
    if (s != ING_OK) note_fini(&note);
    return s;
}

ing_status ing_notes_add(ing_notes *n, const ing_notes_compile *c, const char *why) {
    uint32_t count = c->trace->list.len;
    const char **words = ing_calloc((size_t)count + 1, sizeof *words);
    if (!words) return ING_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        words[i] = ing_answers_get(c->answers, c->paths, &c->trace->list.at[i]);
    const char *texts[4] = {why, c->revision, c->machine, c->code ? c->code : ""};
    ing_status s = atom_of(n, c->label, &n->label) ? ING_OK : ING_MEMORY;
    if (s == ING_OK)
        s = add_note(n,
                     (ing_note){.when = c->when, .pid = c->pid, .address = c->address},
                     texts, c->paths, c->trace, words, UINT32_MAX);
    ing_free(words);
    return s;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_note(const ing_note *n, ing_bytes *out) {
    ing_bytes_u64(out, n->when);
    ing_bytes_u32(out, n->pid);
    ing_bytes_u64(out, n->address.lo);
    ing_bytes_u64(out, n->address.hi);
    ing_bytes_u32(out, n->why);
    ing_bytes_u32(out, n->revision);
    ing_bytes_u32(out, n->machine);
    ing_bytes_u32(out, n->code);
    ing_bytes_u8(out, n->cut);
    ing_trace_write(&n->trace, out);
    for (uint32_t i = 0; i < n->words.len; i++) ing_bytes_u32(out, n->words.at[i]);
}

static void put_all(const ing_notes *n, ing_bytes *out) {
    ing_bytes_u32(out, VERSION);
    ing_bytes_u32(out, n->words.text.len);
    for (uint32_t i = 0; i < n->words.text.len; i++) {
        ing_bytes_u32(out, n->words.size.at[i]);
        ing_bytes_put(out, n->words.text.at[i], n->words.size.at[i]);
    }
    ing_bytes_u32(out, n->label);
    ing_paths_write(&n->paths, out);
    ing_bytes_u32(out, n->at.len);
    for (uint32_t i = 0; i < n->at.len; i++) put_note(&n->at.at[i], out);
}

/* A copy of note i that has no more than `limit` questions. */
static ing_status copy_note(const ing_notes *from, uint32_t i, uint32_t limit,
                            ing_notes *to) {
    const ing_note *n = &from->at.at[i];
    const char **words = ing_calloc((size_t)n->words.len + 1, sizeof *words);
    if (!words) return ING_MEMORY;
    for (uint32_t k = 0; k < n->words.len; k++)
        words[k] = ing_atoms_text(&from->words, n->words.at[k]);
    const char *texts[4] = {ing_atoms_text(&from->words, n->why),
                            ing_atoms_text(&from->words, n->revision),
                            ing_atoms_text(&from->words, n->machine),
                            ing_atoms_text(&from->words, n->code)};
    ing_status s = add_note(to, *n, texts, &from->paths, &n->trace, words, limit);
    ing_free(words);
    return s;
}

/* The notes from number `first` on, with the words and paths that those need. */
static ing_status put_from(const ing_notes *n, uint32_t first, uint32_t limit,
                           ing_bytes *out) {
    ing_notes kept;
    ing_notes_init(&kept);
    ing_status s = atom_of(&kept, ing_atoms_text(&n->words, n->label), &kept.label)
                       ? ING_OK
                       : ING_MEMORY;
    for (uint32_t i = first; s == ING_OK && i < n->at.len; i++)
        s = copy_note(n, i, limit, &kept);
    ing_bytes_clear(out);
    if (s == ING_OK) put_all(&kept, out);
    if (out->failed) s = ING_MEMORY;
    ing_notes_fini(&kept);
    return s;
}

ing_status ing_notes_write(const ing_notes *n, ing_bytes *out) {
    uint32_t first = n->at.len > ING_NOTES_MAX ? n->at.len - ING_NOTES_MAX : 0;
    uint32_t limit = UINT32_MAX;
    for (;;) {
        ING_TRY(put_from(n, first, limit, out));
        if (out->len <= ING_NOTES_MAX_BYTES) return ING_OK;
        /* Older ones go first; then the last one is cut. */
        if (first + 1 < n->at.len)
            first++;
        else if (limit == UINT32_MAX)
            limit = 4096;
        else if (limit > 1)
            limit /= 2;
        else
            return ING_DECLINED;
    }
}

/* ---- reading ----------------------------------------------------------------------------------- */

static ing_status get_words(ing_reader *r, ing_notes *n) {
    uint32_t count = ing_reader_count(r, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = ing_reader_u32(r);
        const uint8_t *p = size <= MAX_WORD ? ing_reader_take(r, size) : NULL;
        if (!p || memchr(p, 0, size)) return ING_DECLINED;
        /* Numbers stay what they are only if no word comes twice. */
        if (ing_atoms_add(&n->words, (const char *)p, size) != i) return ING_DECLINED;
    }
    n->label = ing_reader_u32(r);
    /* Of a kernel without a name nothing is noted; then there is a word beside the empty one. */
    bool named = n->label && n->label < n->words.text.len;
    return !r->failed && named ? ING_OK : ING_DECLINED;
}

static bool word(const ing_notes *n, ing_reader *r, uint32_t *out) {
    *out = ing_reader_u32(r);
    return !r->failed && *out < n->words.text.len;
}

static ing_status get_note(ing_reader *r, ing_notes *n, const ing_path_map *map,
                           ing_note *out) {
    out->when = ing_reader_u64(r);
    out->pid = ing_reader_u32(r);
    out->address.lo = ing_reader_u64(r);
    out->address.hi = ing_reader_u64(r);
    if (!word(n, r, &out->why) || !word(n, r, &out->revision) ||
        !word(n, r, &out->machine) || !word(n, r, &out->code))
        return ING_DECLINED;
    out->cut = ing_reader_u8(r) != 0;
    ING_TRY(ing_trace_read(r, map, &out->trace));
    for (uint32_t i = 0; i < out->trace.list.len; i++) {
        uint32_t w;
        if (!word(n, r, &w) || !ing_vec_push(&out->words, w)) return ING_DECLINED;
    }
    return ING_OK;
}

static ing_status get_notes(ing_reader *r, ing_notes *n, const ing_path_map *map) {
    uint32_t count = ing_reader_count(r, 49);
    for (uint32_t i = 0; i < count; i++) {
        ing_note note = {0};
        ing_trace_init(&note.trace);
        if (get_note(r, n, map, &note) != ING_OK || !ing_vec_push(&n->at, note)) {
            note_fini(&note);
            return ING_DECLINED;
        }
    }
    return !r->failed && r->at == r->end ? ING_OK : ING_DECLINED;
}

ing_status ing_notes_read(const uint8_t *p, size_t size, ing_notes *out) {
    ing_reader r = ing_reader_of(p, size);
    ing_path_map map = {0};
    ing_notes_init(out);
    ing_status s = ing_reader_u32(&r) == VERSION ? ING_OK : ING_DECLINED;
    if (s == ING_OK) s = get_words(&r, out);
    if (s == ING_OK) s = ing_paths_read(&r, &out->paths, &map);
    if (s == ING_OK) s = get_notes(&r, out, &map);
    ing_vec_fini(&map);
    if (s == ING_OK) return ING_OK;
    ing_notes_fini(out);
    ing_notes_init(out);
    return ING_DECLINED;
}

/* ---- why ------------------------------------------------------------------------------------------ */

static bool same_question(const ing_question *a, const ing_question *b) {
    return a->path == b->path && a->ask == b->ask;
}

/* How many questions have equal answers, from the start. */
static uint32_t common(const ing_trace *a, const ing_trace *b) {
    uint32_t i = 0;
    while (i < a->list.len && i < b->list.len &&
           same_question(&a->list.at[i], &b->list.at[i]) &&
           ing_hash_eq(a->list.at[i].answer, b->list.at[i].answer))
        i++;
    return i;
}

/* All that was asked got the same answers: then it is not the program that changed. */
static void why_equal(const ing_notes *n, const ing_note *old,
                      const ing_notes_compile *c, ing_bytes *out) {
    const char *machine = ing_atoms_text(&n->words, old->machine);
    if (old->cut)
        ing_bytes_puts(out, "one of the later answers changed");
    else if (strcmp(ing_atoms_text(&n->words, old->revision), c->revision) != 0)
        ing_bytes_puts(out, "compiled before by another version of Ingot");
    else if (strcmp(machine, c->machine) != 0)
        ing_bytes_printf(out, "no entry for %s, compiled before for %s", c->machine,
                         machine);
    else if (c->missing)
        ing_bytes_puts(out, c->missing);
    else if (old->pid != c->pid && old->when >= c->since)
        ing_bytes_puts(out, "another process compiled it at the same time");
    else
        ing_bytes_puts(out, "its entry is damaged or missing");
}

static void why_of(const ing_notes *n, const ing_note *old, const ing_paths *paths,
                   const ing_trace *now, const ing_notes_compile *c, ing_bytes *out) {
    uint32_t i = common(&old->trace, now);
    bool ends = i == old->trace.list.len;
    if (ends && (old->cut || i == now->list.len)) {
        why_equal(n, old, c, out);
        return;
    }
    if (ends || i == now->list.len ||
        !same_question(&old->trace.list.at[i], &now->list.at[i])) {
        ing_bytes_puts(out, "compiled before by another version of Ingot");
        return;
    }
    ing_words_change(paths, &now->list.at[i],
                     ing_atoms_text(&n->words, old->words.at[i]),
                     ing_answers_get(c->answers, c->paths, &c->trace->list.at[i]), out);
}

void ing_notes_why(const ing_notes *n, const ing_notes_compile *c, ing_bytes *out) {
    if (n->at.len == 0) {
        ing_bytes_puts(out, "first compile");
        return;
    }
    /* Both in terms of the same paths. */
    ing_paths paths;
    ing_paths_init(&paths);
    ing_trace now, best, one;
    ing_trace_init(&now);
    ing_trace_init(&best);
    bool ok = ing_trace_copy(c->trace, c->paths, &paths, &now, NULL) == ING_OK;
    uint32_t nearest = 0, most = 0;
    for (uint32_t i = 0; ok && i < n->at.len; i++) {
        ing_trace_init(&one);
        ok =
            ing_trace_copy(&n->at.at[i].trace, &n->paths, &paths, &one, NULL) == ING_OK;
        uint32_t same = ok ? common(&one, &now) : 0;
        if (i == 0 || same >= most) nearest = i, most = same;
        ing_trace_fini(&one);
    }
    ing_note old = n->at.at[nearest];
    ok = ok && ing_trace_copy(&old.trace, &n->paths, &paths, &best, NULL) == ING_OK;
    old.trace = best;
    if (ok)
        why_of(n, &old, &paths, &now, c, out);
    else
        ing_bytes_puts(out, "there is no memory to tell");
    ing_trace_fini(&best);
    ing_trace_fini(&now);
    ing_paths_fini(&paths);
}
