/* Reverse mode on IR text (src/ad): for a kernel that makes state S' of state S (all arrays of
 * floats) and adjoints g of S', the backward kernel turns the adjoints into g' with
 *     <g', d>  =  the derivative of <g, kernel(S + t d)> by t
 * for every direction d. The right side comes from central differences. The kernels are the files
 * of tests/ir_ad, as lowered; others can be given as arguments. */
#include "ad/ad.h"
#include "check.h"
#include "gen/abi.h"

#include <dirent.h>
#include <math.h>

enum { LENGTH = 12, MAX_ARGS = 24, MAX_WORDS = 128 };

typedef struct state { /* one set of arguments */
    uint64_t words[MAX_WORDS];
    double *data[MAX_ARGS]; /* memory of arrays */
} state;

static uint64_t seed = 1;

static double uniform(void) { /* in [0, 1) */
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static const ing_type_info *array_info(const ing_ir_mod *m, uint32_t k) {
    const ing_type_info *t = ing_ir_type(m, m->args.at[k].type);
    return t->kind == ING_TYPE_ARRAY ? t : NULL;
}

static ing_dtype scalar_of(const ing_ir_mod *m, ing_type t) {
    return (ing_dtype)ing_ir_type(m, t)->dtype;
}

/* Scalars behind an array: as many of them as LENGTH to the rank elements have. */
static uint32_t count_of(const ing_ir_mod *m, uint32_t k) {
    const ing_type_info *t = array_info(m, k);
    uint32_t n = ing_ir_type_size(m, t->elem) / ing_dtype_bytes(scalar_of(m, t->elem));
    for (uint32_t a = 0; a < t->rank; a++) n *= LENGTH;
    return n;
}

static bool is_real(const ing_ir_mod *m, uint32_t k) {
    const ing_type_info *t = array_info(m, k);
    return t && scalar_of(m, t->elem) == ING_F64;
}

static void state_init(const ing_ir_mod *m, state *s, uint32_t n_args) {
    memset(s, 0, sizeof *s);
    CHECK(m->n_words <= MAX_WORDS && m->args.len <= MAX_ARGS);
    for (uint32_t k = 0; k < n_args; k++) {
        const ing_type_info *t = array_info(m, k);
        uint32_t word = m->args.at[k].word;
        if (!t) {
            s->words[word] =
                scalar_of(m, m->args.at[k].type) == ING_F64 ? 0x3fe0000000000000u : 4;
            continue;
        }
        s->data[k] = calloc(count_of(m, k), 8);
        s->words[word] = (uintptr_t)s->data[k];
        for (uint32_t a = 0; a < t->rank; a++) s->words[word + 1 + a] = LENGTH;
    }
}

static void state_fini(const ing_ir_mod *m, state *s) {
    for (uint32_t k = 0; k < m->args.len; k++) free(s->data[k]);
}

static int32_t room(ing_ctx *ctx, uint64_t bytes, int32_t grow) {
    (void)grow;
    ctx->scratch = realloc(ctx->scratch, bytes);
    ctx->scratch_bytes = bytes;
    return ctx->scratch ? 0 : 1;
}

static int32_t run(const ing_ir_mod *m, state *s) {
    ing_error_slot error = {0};
    uint64_t rets[16];
    ing_ctx ctx = {.args = s->words, .error = &error, .rets = rets, .room = room};
    int32_t rc = ing_ir_interp_lowered(m, &ctx);
    free(ctx.scratch);
    return rc;
}

/* s = from + t * direction; integers are small indices. */
static void fill(const ing_ir_mod *m, state *s, uint32_t n_args, const state *from,
                 const state *direction, double t) {
    for (uint32_t k = 0; k < n_args; k++) {
        if (!array_info(m, k)) continue;
        if (!is_real(m, k)) {
            int32_t *p = (int32_t *)(void *)s->data[k];
            for (uint32_t i = 0; i < count_of(m, k); i++) p[i] = (int32_t)(i * 7 % 5);
            continue;
        }
        for (uint32_t i = 0; i < count_of(m, k); i++)
            s->data[k][i] = from->data[k][i] + t * direction->data[k][i];
    }
}

static void randomise(const ing_ir_mod *m, state *s, uint32_t n_args, double from) {
    for (uint32_t k = 0; k < n_args; k++)
        for (uint32_t i = 0; is_real(m, k) && i < count_of(m, k); i++)
            s->data[k][i] = from + uniform();
}

static double dot(const ing_ir_mod *m, uint32_t n_args, const state *a,
                  const state *b) {
    double sum = 0;
    for (uint32_t k = 0; k < n_args; k++)
        for (uint32_t i = 0; is_real(m, k) && i < count_of(m, k); i++)
            sum += a->data[k][i] * b->data[k][i];
    return sum;
}

static ing_ir_mod *parse(const char *text) {
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s = ing_ir_parse(text, strlen(text), &m, &e);
    if (s == ING_OK) s = ing_ir_verify(m, &e);
    if (s != ING_OK) fprintf(stderr, "%s\n", e.text);
    CHECK(s == ING_OK);
    ing_err_fini(&e);
    return s == ING_OK ? m : NULL;
}

static ing_status differentiate(ing_ir_mod *m, uint32_t n_args, ing_err *e) {
    uint32_t companion[2 * MAX_ARGS] = {0};
    for (uint32_t k = 0; k < n_args; k++) {
        const ing_type_info *t = array_info(m, k);
        if (!is_real(m, k)) continue;
        ing_type of = ing_ir_type_array(m, t->elem, t->rank, false, NULL);
        companion[k] = ing_ir_add_arg(m, of) + 1;
    }
    ing_status s = ing_ad_reverse(m, companion, e);
    return s == ING_OK ? ing_ir_verify(m, e) : s;
}

static void show(const ing_ir_mod *m) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_ir_print(m, ING_IR_PRINT_NAMES, &b);
    fprintf(stderr, "%.*s\n", (int)b.len, (const char *)b.at);
    ing_bytes_fini(&b);
}

/* The difference between both sides, relative to their size. */
static double compare(const char *text, bool loud) {
    ing_ir_mod *m = parse(text), *back = parse(text);
    uint32_t n = m->args.len;
    state at, g, d, low, high, full;
    ing_err e;
    ing_err_init(&e);
    ing_status s = differentiate(back, n, &e);
    if (s != ING_OK) fprintf(stderr, "%s\n", e.text);
    if (loud) show(back);
    CHECK(s == ING_OK);
    ing_err_fini(&e);
    state *all[] = {&at, &g, &d, &low, &high};
    for (uint32_t k = 0; k < 5; k++) state_init(m, all[k], n);
    state_init(back, &full, back->args.len);
    randomise(m, &at, n, 0.5);
    randomise(m, &g, n, -0.5);
    randomise(m, &d, n, -0.5);
    double h = 1e-6;
    fill(m, &low, n, &at, &d, -h);
    fill(m, &high, n, &at, &d, h);
    fill(back, &full, n, &at, &d, 0);
    CHECK(run(m, &low) == 0 && run(m, &high) == 0 && run(m, &full) == 0);
    double numeric = (dot(m, n, &g, &high) - dot(m, n, &g, &low)) / (2 * h);
    uint32_t next = n;
    for (uint32_t k = 0; k < n; k++)
        if (is_real(m, k)) memcpy(full.data[next++], g.data[k], 8 * count_of(m, k));
    if (s == ING_OK) CHECK(run(back, &full) == 0);
    double analytic = 0;
    next = n;
    for (uint32_t k = 0; k < n; k++) {
        if (!is_real(m, k)) continue;
        for (uint32_t i = 0; i < count_of(m, k); i++)
            analytic += full.data[next][i] * d.data[k][i];
        next++;
    }
    for (uint32_t k = 0; k < 5; k++) state_fini(m, all[k]);
    state_fini(back, &full);
    ing_ir_mod_free(m);
    ing_ir_mod_free(back);
    double error = fabs(numeric - analytic) / (1 + fabs(numeric));
    if (loud || !(error < 1e-6))
        fprintf(stderr, "%.12g against %.12g\n", numeric, analytic);
    return error;
}

static void check_file(const char *path, bool loud) {
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    if (!f) return;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    double error = compare(text, loud);
    CHECK(error < 1e-6);
    if (loud || !(error < 1e-6)) fprintf(stderr, "%s: %.2e\n", path, error);
}

/* Every file of tests/ir_ad, below INGOT_TEST_ROOT or here. */
static void check_folder(void) {
    const char *root = getenv("INGOT_TEST_ROOT");
    char folder[512] = "tests/ir_ad", path[1024];
    if (root) snprintf(folder, sizeof folder, "%s/tests/ir_ad", root);
    DIR *d = opendir(folder);
    CHECK(d != NULL);
    uint32_t n = 0;
    for (struct dirent *f; d && (f = readdir(d));) {
        if (!strstr(f->d_name, ".ir")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
        check_file(path, false);
        n++;
    }
    CHECK(n > 10);
    if (d) closedir(d);
}

int main(int argc, char **argv) {
    for (int k = 1; k < argc; k++) check_file(argv[k], getenv("LOUD") != NULL);
    if (argc == 1) check_folder();
    return CHECK_DONE();
}
