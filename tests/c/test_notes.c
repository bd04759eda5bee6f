/* trace: notes. What is written is read again; every cut and every bit flip is refused or
 * harmless; the last 8 are kept within 256 KiB; and the reason for a compile is told from the
 * nearest one before it, in words. */
#include "trace/notes.h"
#include "check.h"

typedef struct fixture {
    ing_paths paths;
    ing_answers answers;
    ing_trace trace;
    ing_path kernel, n, f;
} fixture;

static ing_hash128 answer_of(const char *words) {
    return ing_hash(words, strlen(words));
}

static void ask(fixture *f, ing_path path, ing_ask what, const char *words) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_puts(&b, words);
    uint32_t of = what == ING_ASK_CONFIG ? (uint32_t)f->paths.nodes.at[path].i + 1 : 0;
    ing_answers_add(&f->answers, answer_of(words), of, &b);
    CHECK(ing_trace_add(&f->trace, path, what, answer_of(words)));
    ing_bytes_fini(&b);
}

/* A kernel that reads a global, the source of a func and a setting. */
static void begin(fixture *f, const char *source, const char *n, const char *setting) {
    memset(f, 0, sizeof *f);
    ing_paths_init(&f->paths);
    ing_answers_init(&f->answers);
    ing_trace_init(&f->trace);
    f->kernel = ing_path_add(&f->paths, 0, ING_STEP_KERNEL, NULL, 0);
    f->n = ing_path_add(&f->paths, f->kernel, ING_STEP_GLOBAL, "N", 0);
    f->f = ing_path_add(&f->paths, f->kernel, ING_STEP_GLOBAL, "f", 0);
    ing_path set = ing_path_add(&f->paths, 0, ING_STEP_CONFIG, "fast_math", 2);
    CHECK(ing_trace_add(&f->trace, f->kernel, ING_ASK_SOURCE, answer_of(source)));
    ask(f, f->n, ING_ASK_LOOK, n);
    ask(f, set, ING_ASK_CONFIG, setting);
}

static void end(fixture *f) {
    ing_trace_fini(&f->trace);
    ing_answers_fini(&f->answers);
    ing_paths_fini(&f->paths);
}

static ing_notes_compile compile_of(const fixture *f) {
    return (ing_notes_compile){.label = "m.k",
                               .trace = &f->trace,
                               .paths = &f->paths,
                               .answers = &f->answers,
                               .revision = "r1",
                               .machine = "x86-64-v3",
                               .when = 1000,
                               .since = 900,
                               .pid = 7,
                               .address = {11, 22}};
}

static void note(ing_notes *n, const char *source, const char *value, const char *set,
                 const char *why) {
    fixture f;
    begin(&f, source, value, set);
    ing_notes_compile c = compile_of(&f);
    CHECK(ing_notes_add(n, &c, why) == ING_OK);
    end(&f);
}

static bool why_is(const ing_notes *n, const ing_notes_compile *c, const char *want) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_notes_why(n, c, &b);
    bool ok = b.at && strcmp((const char *)b.at, want) == 0;
    if (!ok) fprintf(stderr, "said: %s\n", b.at ? (const char *)b.at : "");
    ing_bytes_fini(&b);
    return ok;
}

/* ---- bytes ------------------------------------------------------------------------------ */

static void test_roundtrip(void) {
    ing_notes n, back;
    ing_bytes b, again;
    ing_notes_init(&n);
    ing_bytes_init(&b);
    ing_bytes_init(&again);
    for (uint32_t i = 0; i < 11; i++)
        note(&n, "text", i % 2 ? "1" : "2", "True", "because");
    CHECK(ing_notes_write(&n, &b) == ING_OK);
    CHECK(ing_notes_read(b.at, b.len, &back) == ING_OK && back.at.len == ING_NOTES_MAX);
    CHECK_STR(ing_atoms_text(&back.words, back.label), "m.k");
    const ing_note *last = &back.at.at[7];
    CHECK(last->when == 1000 && last->pid == 7 && last->address.hi == 22 && !last->cut);
    CHECK_STR(ing_atoms_text(&back.words, last->why), "because");
    CHECK_STR(ing_atoms_text(&back.words, last->machine), "x86-64-v3");
    CHECK(last->trace.list.len == 3 && last->words.len == 3);
    CHECK_STR(ing_atoms_text(&back.words, last->words.at[1]), "2");
    CHECK(ing_notes_write(&back, &again) == ING_OK && again.len == b.len &&
          memcmp(again.at, b.at, b.len) == 0);
    ing_notes_fini(&back);
    for (size_t k = 0; k < b.len; k++) {
        CHECK(ing_notes_read(b.at, k, &back) == ING_DECLINED && back.at.len == 0);
        ing_notes_fini(&back);
    }
    for (size_t bit = 0; bit < 8 * b.len; bit++) { /* no crash, whatever it says then */
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)ing_notes_read(b.at, b.len, &back);
        ing_notes_fini(&back);
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ing_bytes_fini(&again);
    ing_bytes_fini(&b);
    ing_notes_fini(&n);
}

/* A kernel that read very much: the older notes go, then the last one is cut. */
static void test_bound(void) {
    ing_notes n, back;
    ing_bytes b;
    fixture f;
    begin(&f, "text", "1", "True");
    for (int i = 0; i < 20000; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        ask(&f, ing_path_add(&f.paths, f.kernel, ING_STEP_GLOBAL, name, 0),
            ING_ASK_LOOK, name);
    }
    ing_notes_init(&n);
    ing_bytes_init(&b);
    ing_notes_compile c = compile_of(&f);
    for (int i = 0; i < 2; i++) CHECK(ing_notes_add(&n, &c, "first compile") == ING_OK);
    CHECK(ing_notes_write(&n, &b) == ING_OK && b.len <= ING_NOTES_MAX_BYTES);
    CHECK(ing_notes_read(b.at, b.len, &back) == ING_OK && back.at.len == 1);
    CHECK(back.at.at[0].cut && back.at.at[0].trace.list.len >= 1000);
    CHECK(why_is(&back, &c, "one of the later answers changed"));
    ing_notes_fini(&back);
    ing_bytes_fini(&b);
    ing_notes_fini(&n);
    end(&f);
}

/* ---- reasons -------------------------------------------------------------------------------- */

static void test_why(void) {
    ing_notes n;
    fixture f;
    ing_notes_init(&n);
    begin(&f, "text", "3", "True");
    ing_notes_compile c = compile_of(&f);
    CHECK(why_is(&n, &c, "first compile"));
    note(&n, "text", "1", "True", "");
    CHECK(why_is(&n, &c, "N: 1 -> 3"));
    note(&n, "text", "3", "False", ""); /* nearer: it differs later */
    CHECK(why_is(&n, &c, "setting fast_math: False -> True"));
    note(&n, "text", "3", "True", "");
    CHECK(why_is(&n, &c, "its entry is damaged or missing"));
    c.pid = 8;
    CHECK(why_is(&n, &c, "another process compiled it at the same time"));
    c.since = 2000;
    CHECK(why_is(&n, &c, "its entry is damaged or missing"));
    c.missing = "there is no cache on disk";
    CHECK(why_is(&n, &c, "there is no cache on disk"));
    c.machine = "x86-64-v4";
    CHECK(why_is(&n, &c, "no entry for x86-64-v4, compiled before for x86-64-v3"));
    c.revision = "r2";
    CHECK(why_is(&n, &c, "compiled before by another version of Ingot"));
    end(&f);
    begin(&f, "other text", "3", "True");
    c = compile_of(&f);
    CHECK(why_is(&n, &c, "source of the kernel changed"));
    end(&f);
    ing_notes_fini(&n);
}

/* Words by answers: what notes teach is what was said. */
static void test_learn(void) {
    ing_notes n;
    fixture f;
    ing_answers learned;
    ing_notes_init(&n);
    ing_answers_init(&learned);
    note(&n, "text", "41", "False", "");
    begin(&f, "text", "41", "False");
    ing_answers_learn(&learned, &n);
    CHECK_STR(ing_answers_get(&learned, &f.paths, &f.trace.list.at[1]), "41");
    CHECK_STR(ing_answers_get(&learned, &f.paths, &f.trace.list.at[2]), "False");
    CHECK_STR(ing_answers_get(&learned, &f.paths, &f.trace.list.at[0]), "");
    ing_answers_fini(&learned);
    end(&f);
    ing_notes_fini(&n);
}

static void test_words(void) {
    static const struct {
        double value;
        const char *text;
    } floats[] = {
        {0.1, "0.1"}, {-0.0, "-0.0"}, {3, "3.0"}, {1e300, "1e+300"}, {1e-5, "1e-05"}};
    ing_bytes b;
    ing_bytes_init(&b);
    for (uint32_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        ing_gate_fact fact = {.kind = ING_GATE_FLOAT, .f = floats[i].value};
        ing_bytes_clear(&b);
        ing_words_fact(&fact, &b);
        CHECK_STR((const char *)b.at, floats[i].text);
    }
    ing_gate_struct inner = {0};
    ing_gate_member members[] = {
        {.name = "x", .dtype = ING_F32},
        {.name = "v", .dtype = ING_F64, .tensor = {.rank = 1, .shape = {3, 0}}},
        {.name = "s", .inner = &inner}};
    ing_gate_struct layout = {.n = 3, .members = members};
    ing_gate_fact fact = {.kind = ING_GATE_STRUCT_TYPE, .structure = &layout};
    ing_bytes_clear(&b);
    ing_words_fact(&fact, &b);
    CHECK_STR((const char *)b.at, "struct {x: f32, v: vec3 f64, s: struct}");
    ing_gate_param param = {.passing = ING_PASS_VALUE, .layout = &layout};
    ing_bytes_clear(&b);
    ing_words_param(&param, &b);
    CHECK_STR((const char *)b.at, "struct {x: f32, v: vec3 f64, s: struct}");
    ing_bytes_fini(&b);
}

int main(void) {
    test_roundtrip();
    test_bound();
    test_why();
    test_learn();
    test_words();
    return CHECK_DONE();
}
