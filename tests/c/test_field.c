/* Fields in the IR: places and their arithmetic, the text of field types, and random layouts
 * on native code and on the interpreter against a model that follows the levels. */
#include "native.h"

static uint64_t state = 88172645463325252u;
static uint32_t below(uint32_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16) % n;
}

/* ---- places --------------------------------------------------------------------------- */

static void test_place(void) {
    /* dense(i, 4).dense(ij, (2, 3)).place(x), x an f32 */
    ing_place p = {.dtype = ING_F32,
                   .ndim = 2,
                   .n_levels = 3,
                   .level = {{0, 4, 24}, {0, 2, 12}, {1, 3, 4}}};
    CHECK(ing_place_ok(&p));
    CHECK(ing_place_extent(&p, 0) == 8 && ing_place_extent(&p, 1) == 3);
    CHECK(ing_place_span(&p) == 96);
    ing_place q = p;
    ing_place_simplify(&q);
    CHECK(q.n_levels == 2 && q.level[0].extent == 8 && q.level[0].stride == 12);
    CHECK(ing_place_span(&q) == 96 && !ing_place_same(&p, &q));
    p.level[0].stride = 32; /* a gap: not one */
    q = p;
    ing_place_simplify(&q);
    CHECK(q.n_levels == 3 && ing_place_same(&p, &q));
    ing_place one = {
        .dtype = ING_F64, .ndim = 2, .n_levels = 2, .level = {{1, 1, 8}, {0, 1, 8}}};
    ing_place_simplify(&one);
    CHECK(one.n_levels == 0 && ing_place_extent(&one, 1) == 1);
    CHECK(ing_place_span(&one) == 8);
}

static void test_place_numbers(void) {
    ing_place p = {.dtype = ING_F32,
                   .elem_rank = 1,
                   .elem_shape = {3},
                   .ndim = 2,
                   .n_levels = 2,
                   .at = 8,
                   .from = {-1, 5},
                   .level = {{1, 4, 48}, {0, 4, 12}}},
              q;
    int64_t at[ING_PLACE_MAX_NUMBERS];
    uint32_t n = ing_place_put(&p, at);
    CHECK(ing_place_get(at, n, &q) && ing_place_same(&p, &q));
    CHECK(!ing_place_get(at, n - 1, &q) && !ing_place_get(at, 0, &q));
    for (uint32_t k = 0; k < n; k++) { /* anything at all in the place of each */
        static const int64_t odd[] = {-1, 0, 255, 1 << 20, INT64_MAX, INT64_MIN};
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            int64_t was = at[k];
            at[k] = odd[i];
            if (ing_place_get(at, n, &q)) CHECK(ing_place_ok(&q));
            at[k] = was;
        }
    }
}

static void test_place_refused(void) {
    ing_place good = {.dtype = ING_F32, .ndim = 1, .n_levels = 1, .level = {{0, 4, 4}}};
    CHECK(ing_place_ok(&good));
#define REFUSED(change)           \
    do {                          \
        ing_place p = good;       \
        change;                   \
        CHECK(!ing_place_ok(&p)); \
    } while (0)
    REFUSED(p.dtype = ING_VOID);
    REFUSED(p.dtype = ING_DTYPE_N);
    REFUSED(p.elem_rank = 3);
    REFUSED(p.elem_rank = 1);
    REFUSED(p.elem_shape[0] = 2);
    REFUSED(p.ndim = 13);
    REFUSED(p.n_levels = 33);
    REFUSED(p.at = -4);
    REFUSED(p.at = 2);
    REFUSED(p.level[0].axis = 1);
    REFUSED(p.level[0].extent = 0);
    REFUSED(p.level[0].stride = -4);
    REFUSED(p.level[0].stride = 6);
    REFUSED(p.level[0].stride = INT64_MAX - 3);
    REFUSED(p.level[0].extent = INT64_MAX);
    REFUSED(p.from[0] = INT64_MAX);
#undef REFUSED
}

/* ---- text ----------------------------------------------------------------------------- */

static void test_text(void) {
    static const char text[] =
        "arg 0 field<f32, 2, at 4, from 1 -2, level 1 8 64, level 0 4 16>\n"
        "arg 1 field<tensor<f64, 2 2>, 0, at 0>\n"
        "arg 2 i32\n"
        "arg 3 field<i32, 1, at 8, level 0 4 16> with 0\n"
        "arg 4 i64\n"
        "task @0 {\n"
        "  %1 = array field<f32, 2, at 4, from 1 -2, level 1 8 64, level 0 4 16> 0\n"
        "  %2 = dim i64 %1, 1\n"
        "  %3 = array field<tensor<f64, 2 2>, 0, at 0> 1\n"
        "  %4 = elem ref<tensor<f64, 2 2>> %3, []\n"
        "}\n"
        "run @0 serial cost 1\n";
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_bytes out;
    ing_err_init(&e);
    ing_bytes_init(&out);
    CHECK(ing_ir_parse(text, strlen(text), &m, &e) == ING_OK);
    if (!m) return;
    CHECK(ing_ir_verify(m, &e) == ING_OK);
    CHECK(m->n_words == 4 && m->args.at[2].word == 2 && m->args.at[4].word == 3);
    CHECK(m->args.at[3].word == 0 && ing_ir_arg_first(m, 3) == 0);
    const ing_type_info *t = ing_ir_type(m, m->args.at[0].type);
    CHECK(t->layout[0] == 1 && t->layout[1] == 0 && t->place->from[1] == -2);
    ing_ir_print(m, 0, &out);
    CHECK_STR((const char *)out.at, text);
    ing_bytes_fini(&out);
    ing_ir_mod_free(m);
    static const char *const bad[] = {
        "arg 0 field<f32, 1, at 0, level 1 4 4>\n",
        "arg 0 field<f32, 1, at 0, level 0 0 4>\n",
        "arg 0 field<f32, 1, at 1, level 0 4 4>\n",
        "arg 0 field<f32, 13, at 0>\n",
        "arg 0 field<f32, 1, stride 4>\n",
        "arg 0 field<struct<f32, f32>, 1, at 0, level 0 4 8>\n",
        "arg 0 field<f32, 1, at 99999999999999999999, level 0 4 4>\n",
        "arg 0 f32\narg 1 field<f32, 0, at 0> with 0\n",
        "arg 0 field<f32, 0, at 0>\narg 1 f32 with 0\n",
        "arg 0 field<f32, 0, at 0> with 0\n",
        "arg 0 field<f32, 0, at 0>\narg 1 field<f32, 0, at 4> with 0\n"
        "arg 2 field<f32, 0, at 8> with 1\n",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ing_ir_mod *none = NULL;
        CHECK(ing_ir_parse(bad[k], strlen(bad[k]), &none, &e) == ING_FORMAT);
        ing_ir_mod_free(none);
        ing_err_fini(&e);
    }
}

/* ---- random layouts --------------------------------------------------------------------- */

typedef struct layout {
    ing_place p;
    uint64_t bytes; /* of the block */
} layout;

/* Up to 3 axes and 6 levels of up to 4 cells each, with gaps. */
static layout random_layout(void) {
    layout l = {.p = {.dtype = ING_I32, .ndim = (uint8_t)below(4)}};
    l.p.n_levels = l.p.ndim ? (uint8_t)(l.p.ndim + below(4)) : 0;
    uint64_t cell = 4 * (1 + below(3));
    l.p.at = 4 * (int64_t)below((uint32_t)cell / 4);
    for (uint32_t k = l.p.n_levels; k-- > 0;) {
        ing_level *v = &l.p.level[k];
        v->axis = below(l.p.ndim);
        v->extent = 1 + below(4);
        v->stride = (int64_t)cell;
        cell = cell * (uint64_t)v->extent + 4 * below(2);
    }
    l.bytes = cell;
    return l;
}

/* As its definition says. */
static uint64_t address(const ing_place *p, const int64_t *index) {
    uint64_t at = (uint64_t)p->at;
    for (uint32_t k = 0; k < p->n_levels; k++) {
        int64_t inner = 1;
        for (uint32_t j = k + 1; j < p->n_levels; j++)
            if (p->level[j].axis == p->level[k].axis) inner *= p->level[j].extent;
        int64_t x = index[p->level[k].axis] / inner % p->level[k].extent;
        at += (uint64_t)(x * p->level[k].stride);
    }
    return at;
}

static void put_type(ing_bytes *out, const ing_place *p) {
    ing_bytes_printf(out, "field<i32, %u, at %lld", p->ndim, (long long)p->at);
    for (uint32_t k = 0; k < p->n_levels; k++)
        ing_bytes_printf(out, ", level %u %lld %lld", p->level[k].axis,
                         (long long)p->level[k].extent, (long long)p->level[k].stride);
    ing_bytes_puts(out, ">");
}

/* Loops over the axes, or (by_level) over the levels with indices put together. */
static void put_loops(ing_bytes *out, const ing_place *p, bool by_level) {
    uint32_t n = by_level ? p->n_levels : p->ndim;
    for (uint32_t k = 0; k < n; k++) {
        int64_t extent = by_level ? p->level[k].extent : ing_place_extent(p, k);
        ing_bytes_printf(out, "%%n%u = const i32 %lld\n%%l%u = loop i32 %%z, %%n%u {\n",
                         k, (long long)extent, k, k);
    }
    for (uint32_t a = 0; a < p->ndim; a++) {
        bool any = false;
        for (uint32_t k = 0; k < p->n_levels && by_level; k++) {
            if (p->level[k].axis != a) continue;
            if (any)
                ing_bytes_printf(
                    out,
                    "%%c%u = const i32 %lld\n%%m%u = mul nsw %%i%u_%u, %%c%u\n"
                    "%%i%u_%u = add nsw axis %%m%u, %%l%u\n",
                    k, (long long)p->level[k].extent, k, a, k - 1, k, a, k, k, k);
            else
                ing_bytes_printf(out, "%%i%u_%u = add %%l%u, %%z\n", a, k, k);
            for (uint32_t j = k + 1; j < p->n_levels;
                 j++) /* so that k - 1 is the last */
                if (p->level[j].axis != a)
                    ing_bytes_printf(out, "%%i%u_%u = add %%i%u_%u, %%z\n", a, j, a,
                                     j - 1);
                else
                    break;
            any = true;
        }
        if (!any && by_level) ing_bytes_printf(out, "%%x%u = add %%z, %%z\n", a);
        if (any)
            ing_bytes_printf(out, "%%x%u = add %%i%u_%u, %%z\n", a, a,
                             p->n_levels - 1u);
        if (!by_level) ing_bytes_printf(out, "%%x%u = add %%l%u, %%z\n", a, a);
    }
}

static void put_list(ing_bytes *out, const char *name, uint32_t n) {
    ing_bytes_puts(out, "[");
    for (uint32_t k = 0; k < n; k++)
        ing_bytes_printf(out, "%s%%%s%u", k ? ", " : "", name, k);
    ing_bytes_puts(out, "]");
}

/* Every element becomes 1 + its index in row-major order. */
static void put_program(ing_bytes *out, const ing_place *p, bool by_level) {
    ing_bytes_puts(out, "arg 0 ");
    put_type(out, p);
    ing_bytes_puts(out,
                   "\ntask @0 {\n%z = const i32 0\n%one = const i32 1\n%f = array ");
    put_type(out, p);
    ing_bytes_puts(out, " 0\n");
    put_loops(out, p, by_level);
    ing_bytes_puts(out, "%v = add %z, %z\n");
    const char *v = "v";
    char names[ING_MAX_NDIM][16];
    for (uint32_t a = 0; a < p->ndim; a++) {
        ing_bytes_printf(out, "%%d%u = dim i32 %%f, %u\n%%s%u = mul %%%s, %%d%u\n", a,
                         a, a, v, a);
        ing_bytes_printf(out, "%%v%u = add %%s%u, %%x%u\n", a, a, a);
        snprintf(names[a], sizeof names[a], "v%u", a);
        v = names[a];
    }
    ing_bytes_printf(out, "%%w = add %%%s, %%one\n%%e = elem ref<i32> %%f, ", v);
    put_list(out, "x", p->ndim);
    ing_bytes_puts(out, "\nstore %e, %w\n");
    for (uint32_t k = 0; k < (by_level ? p->n_levels : p->ndim); k++)
        ing_bytes_puts(out, "}\n");
    ing_bytes_puts(out, "}\nrun @0 serial cost 1\n");
}

static void fill_model(const ing_place *p, uint8_t *block) {
    int64_t index[3] = {0}, n = 1;
    for (uint32_t a = 0; a < p->ndim; a++) n *= ing_place_extent(p, a);
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = k;
        for (uint32_t a = p->ndim; a-- > 0;) {
            index[a] = rest % ing_place_extent(p, a);
            rest /= ing_place_extent(p, a);
        }
        int32_t value = (int32_t)(k + 1);
        memcpy(block + address(p, index), &value, sizeof value);
    }
}

static void test_layouts(bool native) {
    for (uint32_t round = 0; round < (native ? 12u : 300u); round++) {
        layout l = random_layout();
        uint8_t *zero = calloc(1, l.bytes), *want = calloc(1, l.bytes);
        ing_bytes ir;
        ing_bytes_init(&ir);
        put_program(&ir, &l.p, round % 2);
        targ arg = {.data = zero, .bytes = l.bytes};
        setup t = {
            .name = "layout", .ir = (const char *)ir.at, .args = &arg, .n_args = 1};
        if (native) both(&t, NULL);
        ing_ir_mod *m = NULL;
        ing_err e;
        ing_err_init(&e);
        CHECK(ing_ir_parse(t.ir, strlen(t.ir), &m, &e) == ING_OK);
        if (!m || ing_ir_verify(m, &e) != ING_OK) {
            report(&t, "verify", &e);
        } else {
            side s;
            side_init(&s, m, &t);
            run_interp(m, &s);
            fill_model(&l.p, want);
            CHECK(memcmp(s.memory[0], want, l.bytes) == 0);
            side_fini(&s);
        }
        ing_ir_mod_free(m);
        ing_bytes_fini(&ir);
        free(zero);
        free(want);
    }
}

/* ---- two places of one block --------------------------------------------------------------- */

/* Cells of `inner` with each other's, made as a tree makes them: two members below some
 * common levels, each with levels of its own. */
static void random_pair(ing_place *a, ing_place *b) {
    ing_place *both[2] = {a, b};
    uint32_t common = below(3);
    int64_t cell = 0;
    for (int i = 0; i < 2; i++) {
        *both[i] = (ing_place){.dtype = ING_I32, .ndim = 2, .at = cell};
        both[i]->n_levels = (uint8_t)(common + below(3));
        int64_t size = 4;
        for (uint32_t k = both[i]->n_levels; k-- > common;) {
            both[i]->level[k] = (ing_level){below(2), 1 + below(4), size};
            size = size * both[i]->level[k].extent + 4 * below(2);
        }
        cell += size;
    }
    for (uint32_t k = common; k-- > 0;) {
        ing_level l = {below(2), 1 + below(4), cell};
        a->level[k] = b->level[k] = l;
        cell = cell * l.extent + 4 * below(2);
    }
}

static void mark(const ing_place *p, uint32_t k, int64_t at, uint8_t *block) {
    if (k == p->n_levels) {
        block[at / 4]++;
        return;
    }
    for (int64_t i = 0; i < p->level[k].extent; i++)
        mark(p, k + 1, at + i * p->level[k].stride, block);
}

/* Members of a tree are told apart, also when their levels are simplified; whatever is said to
 * lie apart does. */
static void test_apart(void) {
    static uint8_t block[1 << 16];
    uint32_t shared = 0;
    for (uint32_t round = 0; round < 2000; round++) {
        ing_place a, b;
        random_pair(&a, &b);
        CHECK(ing_place_apart(&a, &b) && ing_place_apart(&b, &a));
        CHECK(!ing_place_apart(&a, &a));
        ing_place_simplify(&a);
        ing_place_simplify(&b);
        CHECK(ing_place_apart(&a, &b));
        b.at += 4 * (int64_t)below(8); /* now they may lie in one another */
        memset(block, 0, sizeof block);
        mark(&a, 0, a.at, block);
        mark(&b, 0, b.at, block);
        bool overlap = false;
        for (size_t k = 0; k < sizeof block; k++) overlap |= block[k] > 1;
        shared += overlap;
        CHECK(!overlap || !ing_place_apart(&a, &b));
    }
    CHECK(shared > 100);
}

int main(void) {
    test_place();
    test_apart();
    test_place_refused();
    test_place_numbers();
    test_text();
    test_layouts(false);
    if (!native_open()) return CHECK_DONE();
    test_layouts(true);
    ing_helpers_free(helpers);
    return CHECK_DONE();
}
