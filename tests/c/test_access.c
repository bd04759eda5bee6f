/* What is known of memory accesses and loops (src/ir/access.h): roots, variance, forms, ranges,
 * trip counts, which indices are told apart. The passes that ask are tested by tests/ir. */
#include "check.h"
#include "ir/access.h"

typedef struct sample {
    ing_ir_mod *m;
    const ing_ir_func *f;
    ing_ir_scan s;
} sample;

static const char head[] = "arg 0 array<f32, 2>\n"
                           "arg 1 array<struct<i32, tensor<f32, 2>>, 1>\n"
                           "arg 2 i32\n"
                           "arg 3 array<i32, 1>\n"
                           "buffer 16\n";

static sample scan(const char *body) {
    char text[4096];
    sample x = {0};
    ing_err e;
    ing_err_init(&e);
    snprintf(text, sizeof text, "%stask @0 {\n%s}\n%s", head, body,
             strstr(body, "parallel") ? "run @0 range begin 0 end 9 cost 1\n" : "");
    ing_status s = ing_ir_parse(text, strlen(text), &x.m, &e);
    if (s == ING_OK) s = ing_ir_verify(x.m, &e);
    CHECK(s == ING_OK);
    if (s != ING_OK) fprintf(stderr, "%s\n", e.text);
    ing_err_fini(&e);
    x.f = x.m->funcs.at[0];
    CHECK(ing_ir_scan_init(&x.s, x.f));
    return x;
}

static void close_sample(sample *x) {
    ing_ir_scan_fini(&x->s);
    ing_ir_mod_free(x->m);
}

/* Instruction number n with that operation, from 0, in the order of the text. */
static uint32_t nth(const sample *x, ing_op op, uint32_t n) {
    for (uint32_t id = 1; id < x->f->insts.len; id++)
        if (ing_ir_at(x->f, id)->op == op && n-- == 0) return id;
    CHECK(false);
    return 0;
}

static void test_roots(void) {
    sample x = scan("  %a = array array<struct<i32, tensor<f32, 2>>, 1> 1\n"
                    "  %i = arg i32 2\n"
                    "  %e = elem ref<struct<i32, tensor<f32, 2>>> %a, [%i]\n"
                    "  %m = member ref<tensor<f32, 2>> %e, 1\n"
                    "  %d = member_dyn ref<f32> %m, %i\n"
                    "  %v = load f32 %d\n"
                    "  %l = alloca ref<f32>\n"
                    "  store %l, %v\n"
                    "  %b = buffer ref<f32> 8\n"
                    "  %o = atomic f32 %b, %v, add\n"
                    "  %x = array array<f32, 2> 0\n"
                    "  call void @1, [%l, %x]\n"
                    "}\n"
                    "func @1 (ref<f32>, array<f32, 2>) void {\n"
                    "  %p = param ref<f32> 0\n"
                    "  %w = load f32 %p\n");
    static const struct {
        uint16_t op, root;
        uint32_t of;
        bool elem;
    } want[] = {{ING_OP_LOAD, ING_OP_ARRAY, 1, true},
                {ING_OP_STORE, ING_OP_ALLOCA, 0, false},
                {ING_OP_ATOMIC, ING_OP_BUFFER, 8, false},
                {ING_OP_CALL, ING_OP_ALLOCA, 0, false},
                {ING_OP_CALL, ING_OP_ARRAY, 0, false}};
    CHECK(x.s.accesses.len == 5);
    for (uint32_t k = 0; k < 5 && k < x.s.accesses.len; k++) {
        const ing_ir_access *a = &x.s.accesses.at[k];
        uint32_t own = want[k].root == ING_OP_ALLOCA ? nth(&x, ING_OP_ALLOCA, 0) : 0;
        CHECK(ing_ir_at(x.f, a->id)->op == want[k].op && a->root == want[k].root);
        CHECK(a->of == (own ? own : want[k].of));
        CHECK(a->elem == (want[k].elem ? nth(&x, ING_OP_ELEM, 0) : 0));
        CHECK(a->sure);
    }
    CHECK(x.s.has[0] == ING_IR_HAS_CALL);
    close_sample(&x);
}

static const char nest[] = "  %b = task.begin i32\n"
                           "  %e = task.end i32\n"
                           "  %n = arg i32 2\n"
                           "  %x = array array<f32, 2> 0\n"
                           "  %i = loop parallel i32 %b, %e {\n"
                           "    %two = const i32 2\n"
                           "    %p = elem ref<f32> %x, [%i, %two]\n"
                           "    %v = load f32 %p\n"
                           "    %j = loop i32 %two, %n {\n"
                           "      %q = elem ref<f32> %x, [%n, %j]\n"
                           "      %w = load f32 %q\n"
                           "      %s = add %j, %n\n"
                           "      %c = lt %w, %v\n"
                           "      if %c {\n"
                           "        store %q, %v\n"
                           "        continue\n"
                           "      }\n"
                           "      store %p, %w\n"
                           "    }\n"
                           "    store %p, %v\n"
                           "  }\n";

static void test_variance(void) {
    sample x = scan(nest);
    uint32_t outer = nth(&x, ING_OP_LOOP, 0), inner = nth(&x, ING_OP_LOOP, 1);
    uint32_t sum = nth(&x, ING_OP_ADD, 0), p = nth(&x, ING_OP_ELEM, 0);
    uint32_t q = nth(&x, ING_OP_ELEM, 1), w = nth(&x, ING_OP_LOAD, 1);
    CHECK(x.s.parallel == outer && x.s.loops.len == 2);
    CHECK(x.s.loops.at[0] == inner && x.s.loops.at[1] == outer);
    CHECK(ing_ir_varies(&x.s, p, outer) && !ing_ir_varies(&x.s, p, inner));
    CHECK(ing_ir_varies(&x.s, q, inner) && !ing_ir_varies(&x.s, q, outer));
    CHECK(ing_ir_varies(&x.s, sum, inner) && !ing_ir_varies(&x.s, sum, outer));
    CHECK(ing_ir_varies(&x.s, w, inner) && ing_ir_varies(&x.s, w, outer)); /* a load */
    CHECK(x.s.varies[nth(&x, ING_OP_ARG, 0)] == 0);
    CHECK(x.s.varies[nth(&x, ING_OP_TASK_BEGIN, 0)] >> ING_IR_PIECE_BIT == 1);
    CHECK(x.s.varies[nth(&x, ING_OP_CONST, 0)] == 0); /* though it stands in the loop */
    CHECK(ing_ir_inside(&x.s, w, outer) && ing_ir_inside(&x.s, w, inner));
    CHECK(!ing_ir_inside(&x.s, p, inner) && !ing_ir_inside(&x.s, inner, inner));
    CHECK(!ing_ir_inside(&x.s, p, 0));
    CHECK(x.s.used[sum] == 0 && x.s.used[w] == 1);
    close_sample(&x);
}

/* What a loop holds, and which accesses are made in each of its iterations. */
static void test_loops(void) {
    sample x = scan(nest);
    uint32_t outer = nth(&x, ING_OP_LOOP, 0), inner = nth(&x, ING_OP_LOOP, 1);
    static const bool sure[] = {true, true, false, false, true};
    CHECK(x.s.first[outer] == 0 && x.s.end[outer] == 5);
    CHECK(x.s.first[inner] == 1 && x.s.end[inner] == 4);
    for (uint32_t k = 0; k < 5; k++) CHECK(x.s.accesses.at[k].sure == sure[k]);
    CHECK(x.s.has[inner] == ING_IR_HAS_EXIT && x.s.has[outer] == ING_IR_HAS_LOOP);
    close_sample(&x);
    x = scan("  %x = array array<f32, 2> 0\n"
             "  %z = const i32 0\n"
             "  %n = const i32 5\n"
             "  %i = loop i32 %z, %n {\n"
             "    while {\n"
             "      %p = elem ref<f32> %x, [%z, %z]\n"
             "      %v = load volatile f32 %p\n"
             "      %r = random f32\n"
             "      %c = lt %v, %r\n"
             "      check %c, 5 !1\n"
             "      break\n"
             "    }\n"
             "  }\n");
    CHECK(x.s.has[nth(&x, ING_OP_LOOP, 0)] ==
          (ING_IR_HAS_VOLATILE | ING_IR_HAS_RANDOM | ING_IR_HAS_STOP));
    CHECK(x.s.has[nth(&x, ING_OP_WHILE, 0)] & ING_IR_HAS_EXIT);
    CHECK(x.s.home[nth(&x, ING_OP_LOAD, 0)] == nth(&x, ING_OP_WHILE, 0));
    close_sample(&x);
}

static void test_trips(void) {
    sample x = scan("  %z = const i64 0\n"
                    "  %a = const i64 -3\n"
                    "  %b = const i64 4\n"
                    "  %n = task.begin i64\n"
                    "  %s = axes i64 [%a, %b, %z, %b]\n"
                    "  %u = axes i64 [%a, %b, %z, %n]\n"
                    "  %w = axes i64 [%b, %a, %z, %b]\n");
    uint32_t z = nth(&x, ING_OP_CONST, 0), a = nth(&x, ING_OP_CONST, 1);
    uint32_t b = nth(&x, ING_OP_CONST, 2), n = nth(&x, ING_OP_TASK_BEGIN, 0);
    uint32_t s = nth(&x, ING_OP_AXES, 0), u = nth(&x, ING_OP_AXES, 1);
    uint64_t k = 99;
    CHECK(ing_ir_trips(x.f, a, b, &k) && k == 7);
    CHECK(ing_ir_trips(x.f, b, a, &k) && k == 0);
    CHECK(!ing_ir_trips(x.f, a, n, &k) && !ing_ir_trips(x.f, n, b, &k));
    CHECK(ing_ir_trips(x.f, z, s, &k) && k == 28);
    CHECK(!ing_ir_trips(x.f, z, u, &k) && !ing_ir_trips(x.f, a, s, &k));
    CHECK(ing_ir_trips(x.f, z, nth(&x, ING_OP_AXES, 2), &k) && k == 0);
    CHECK(!ing_ir_axis_is_one(x.f, ing_ir_at(x.f, s), 0));
    close_sample(&x);
}

/* %v of a body in a loop over [0, 100) x [0, 4), whose indices are %r and %c; %k: a loop over one
 * axis, i64. */
static sample scan_value(const char *value) {
    char text[2048];
    snprintf(text, sizeof text,
             "  %%b = task.begin i64\n"
             "  %%e = task.end i64\n"
             "  %%n = arg i32 2\n"
             "  %%z = const i64 0\n"
             "  %%four = const i64 4\n"
             "  %%h = const i64 100\n"
             "  %%s = axes i64 [%%z, %%h, %%z, %%four]\n"
             "  %%u = axes i64 [%%z, %%b, %%z, %%b]\n"
             "  %%i = loop parallel i64 %%b, %%e {\n"
             "    %%c = axis i32 %%s, %%i, 1\n"
             "    %%r = axis i32 %%s, %%i, 0\n"
             "    %%f = const f32 1.0\n"
             "    %%1 = const i32 1\n    %%2 = const i32 2\n    %%4 = const i32 4\n"
             "    %%5 = const i32 5\n    %%9 = const i32 -1\n"
             "%s"
             "    %%x = array array<f32, 2> 0\n"
             "    %%p = elem ref<f32> %%x, [%%v, %%v]\n"
             "    store %%p, %%f\n"
             "  }\n",
             value);
    return scan(text);
}

static uint32_t value_of(const sample *x) {
    return x->f->extra.at[ing_ir_at(x->f, nth(x, ING_OP_ELEM, 0))->b];
}

static void test_forms(void) {
    static const struct {
        const char *value;
        uint64_t constant, c, r;
        uint32_t n, bits;
    } cases[] = {
        {"%a = mul %r, %4\n%v = add %a, %c\n", 0, 1, 4, 2, 64}, /* their ranges fit */
        {"%a = mul nsw %r, %4\n%v = add nsw %a, %c\n", 0, 1, 4, 2, 64},
        {"%l = cast i64 %r\n%v = add nsw %l, %four\n", 4, 0, 1, 1, 64},
        {"%s2 = add %r, %4\n%v = cast i64 %s2\n", 4, 0, 1, 1, 64},
        {"%a = shl %c, %2\n%m = sub %r, %a\n%v = sub %5, %m\n", 5, 4, (uint64_t)-1, 2,
         32},
        {"%a = cast u8 %c\n%v = cast i32 %a\n", 0, 1, 0, 1, 64},
        {"%a = add %r, %c\n%v = sub %a, %r\n", 0, 1, 0, 1, 64},
        {"%a = mul %9, %c\n%v = add %a, %r\n", 0, (uint64_t)-1, 1, 2, 64},
        {"%a = mul %r, %c\n%v = add %a, %5\n", 5, 0, 0, 1, 64}, /* no sum of indices */
        {"%v = add %r, %n\n", 0, 0, 1, 2, 32},                  /* n may be anything */
        {"%v = add nsw %r, %n\n", 0, 0, 1, 2, 64},
        {"%a = cast u8 %n\n%m = cast i32 %a\n%v = add nsw %m, %r\n", 0, 0, 1, 2, 8},
        {"%a = cast i64 %n\n%v = add nsw %a, %four\n", 4, 0, 0, 1, 64},
    };
    for (uint32_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        sample x = scan_value(cases[k].value);
        ing_ir_form form;
        ing_ir_form_of(x.f, value_of(&x), &form);
        uint64_t c = 0, r = 0;
        for (uint32_t j = 0; j < form.n; j++) {
            if (form.of[j] == nth(&x, ING_OP_AXIS, 0)) c = form.times[j];
            if (form.of[j] == nth(&x, ING_OP_AXIS, 1)) r = form.times[j];
        }
        CHECK(form.known && form.constant == cases[k].constant);
        CHECK(c == cases[k].c && r == cases[k].r);
        CHECK(form.n == cases[k].n && form.bits == cases[k].bits);
        CHECK(form.exact == (form.bits == 64));
        close_sample(&x);
    }
}

/* Two ways to write one sum are one form; those that differ by 2**32 are in 32 bits only. */
static void test_same(void) {
    ing_ir_form a = {.known = true, .bits = 32, .n = 1, .of = {7}, .times = {1}};
    ing_ir_form b = a, c;
    b.constant = (uint64_t)1 << 32;
    CHECK(ing_ir_form_same(&a, &b));
    b.bits = 64;
    CHECK(ing_ir_form_same(&a, &b));
    a.bits = 64;
    CHECK(!ing_ir_form_same(&a, &b));
    c = a;
    c.of[0] = 8;
    CHECK(!ing_ir_form_same(&a, &c));
    c = a;
    c.times[0] = 2;
    CHECK(!ing_ir_form_same(&a, &c));
    c = a;
    c.known = false;
    CHECK(!ing_ir_form_same(&a, &c));
    CHECK(ing_ir_form_same(&a, &a));
}

static void test_ranges(void) {
    static const struct {
        const char *value;
        int64_t low, high;
    } cases[] = {
        {"%a = mul %r, %4\n%v = add %a, %c\n", 0, 399},
        {"%a = mul %r, %9\n%v = sub %a, %c\n", -102, 0},
        {"%v = cast i64 %c\n", 0, 3},
        {"%v = add %r, %n\n", 1, 0}, /* not known */
        {"%v = min %r, %c\n", 0, 3},
        {"%v = max %r, %c\n", 0, 99},
        {"%v = min %n, %4\n", INT32_MIN, 4},
        {"%m = max %n, %c\n%v = min %m, %5\n", 0, 5},
        {"%m = min %n, %4\n%v = sub %c, %m\n", 1, 0},             /* wraps */
        {"%big = const i32 30000000\n%v = mul %r, %big\n", 1, 0}, /* wraps */
    };
    for (uint32_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        sample x = scan_value(cases[k].value);
        int64_t low = 1, high = 0;
        bool known = ing_ir_range(x.f, value_of(&x), &low, &high);
        CHECK(known == (cases[k].low <= cases[k].high));
        CHECK(!known || (low == cases[k].low && high == cases[k].high));
        close_sample(&x);
    }
}

/* Which of the indices (1: r, 2: c) a subscript tells apart. */
static void test_told(void) {
    static const struct {
        const char *value;
        uint64_t told;
    } cases[] = {
        {"%v = add %r, %n\n", 1},
        {"%v = sub %n, %c\n", 2},
        {"%a = mul %r, %4\n%v = add %a, %c\n", 3},
        {"%a = mul %r, %4\n%m = sub %a, %c\n%v = add %m, %n\n", 3},
        {"%a = mul %c, %5\n%v = add %a, %r\n", 0}, /* r reaches beyond 5 */
        {"%a = mul %r, %2\n%v = add %a, %c\n", 0}, /* c reaches beyond 2 */
        {"%v = add %r, %c\n", 0},
        {"%v = mul %r, %4\n", 1},
        {"%a = cast i8 %r\n%v = cast i32 %a\n", 1}, /* 100 fit in 8 bits */
        {"%a = mul %r, %4\n%m = cast i8 %a\n%v = cast i32 %m\n", 0},
        {"%t = cast f32 %r\n%m = cast i32 %t\n%v = add %c, %m\n", 0},
        {"%v = cast i32 %i\n", 0},                         /* the number is no axis */
        {"%a = axis i32 %u, %i, 1\n%v = add %r, %a\n", 0}, /* of others */
        {"%v = add %n, %n\n", 0},
    };
    for (uint32_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        sample x = scan_value(cases[k].value);
        ing_ir_family family = {0};
        ing_ir_told told;
        ing_ir_told_init(&told, &x.s);
        CHECK(told.needed == 3 && told.axes == nth(&x, ING_OP_AXES, 0));
        ing_ir_family_add(&family, &told, &x.s, value_of(&x));
        ing_ir_told_add(&told, &x.s, &family);
        CHECK(told.told == cases[k].told);
        CHECK(ing_ir_told_all(&told) == (cases[k].told == 3));
        close_sample(&x);
    }
}

static void test_told_one_axis(void) {
    static const struct {
        const char *type, *value;
        bool told;
    } cases[] = {
        {"i32", "%v = mul %i, %3\n", true},
        {"i32", "%v = mul %i, %6\n", false}, /* 2**31 later it is there again */
        {"i32", "%v = mul nsw %i, %6\n", true},
        {"i64", "%v = mul nsw %i, %6\n", true},
        {"i64", "%v = mul %i, %6\n", false},
        {"i32", "%w = cast i64 %i\n%v = sub %l, %w\n", true},
        {"i64", "%v = add %i, %l\n", true},
        {"i64", "%v = cast i32 %i\n", false}};
    for (uint32_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char text[1024];
        const char *t = cases[k].type;
        snprintf(text, sizeof text,
                 "  %%b = task.begin %s\n  %%e = task.end %s\n  %%3 = const %s 3\n"
                 "  %%6 = const %s 6\n  %%l = const i64 5\n  %%f = const f32 0.0\n"
                 "  %%x = array array<f32, 2> 0\n"
                 "  %%i = loop parallel %s %%b, %%e {\n%s"
                 "    %%p = elem ref<f32> %%x, [%%v, %%v]\n    store %%p, %%f\n  }\n",
                 t, t, t, t, t, cases[k].value);
        sample x = scan(text);
        ing_ir_family family = {0};
        ing_ir_told told;
        ing_ir_told_init(&told, &x.s);
        ing_ir_family_add(&family, &told, &x.s, value_of(&x));
        ing_ir_told_add(&told, &x.s, &family);
        CHECK(ing_ir_told_all(&told) == cases[k].told);
        close_sample(&x);
    }
}

/* Several subscripts of one axis: r from 0 to 99, c from 0 to 3. */
static void test_told_families(void) {
    static const struct {
        const char *value; /* %v and %w */
        uint64_t told;
    } cases[] = {
        {"%v = mul %r, %2\n%w = add %v, %one\n", 1},
        {"%v = mul %r, %2\n%w = add %v, %2\n", 0},
        {"%v = mul %r, %2\n%w = sub %v, %one\n", 1},
        {"%v = add %r, %n\n%w = add %n, %r\n", 1},
        {"%v = add %r, %n\n%w = add %r, %one\n", 0},
        {"%a = mul %r, %8\n%d = mul %c, %2\n%v = add %a, %d\n%w = add %v, %one\n", 3},
        {"%a = mul %r, %8\n%d = mul %c, %2\n%v = add %a, %d\n%w = add %v, %2\n", 0},
        {"%v = mul %r, %4\n%w = mul %r, %2\n", 0},
    };
    for (uint32_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char text[512];
        snprintf(
            text, sizeof text,
            "%%one = const i32 1\n%%8 = const i32 8\n%s%%y = array array<f32, 2> 0\n"
            "%%q = elem ref<f32> %%y, [%%w, %%w]\nstore %%q, %%f\n",
            cases[k].value);
        sample x = scan_value(text);
        ing_ir_family family = {0};
        ing_ir_told told;
        ing_ir_told_init(&told, &x.s);
        for (uint32_t n = 0; n < 2; n++) {
            uint32_t elem = ing_ir_at(x.f, nth(&x, ING_OP_ELEM, n))->b;
            ing_ir_family_add(&family, &told, &x.s, x.f->extra.at[elem]);
        }
        ing_ir_told_add(&told, &x.s, &family);
        CHECK(told.told == cases[k].told);
        close_sample(&x);
    }
}

/* Bounds of AXES that the loop makes tell nothing. */
static void test_told_varying(void) {
    sample x = scan("  %b = task.begin i64\n"
                    "  %e = task.end i64\n"
                    "  %z = const i64 0\n"
                    "  %i = loop parallel i64 %b, %e {\n"
                    "    %s = axes i64 [%z, %i, %z, %i]\n"
                    "    %v = axis i32 %s, %i, 0\n"
                    "    %w = axis i32 %s, %i, 1\n"
                    "  }\n");
    ing_ir_told told;
    ing_ir_told_init(&told, &x.s);
    told.told = 3;
    CHECK(!ing_ir_told_all(&told));
    close_sample(&x);
}

static void test_same_place(void) {
    sample x = scan("  %x = array array<f32, 2> 0\n"
                    "  %n = arg i32 2\n"
                    "  %a = const i32 3\n"
                    "  %b = const i64 3\n"
                    "  %c = const i32 4\n"
                    "  %p = elem ref<f32> %x, [%n, %a]\n"
                    "  %q = elem ref<f32> %x, [%n, %b]\n"
                    "  %r = elem ref<f32> %x, [%n, %c]\n"
                    "  %s = elem ref<f32> %x, [%a, %n]\n");
    uint32_t p = nth(&x, ING_OP_ELEM, 0);
    CHECK(ing_ir_same_place(x.f, p, nth(&x, ING_OP_ELEM, 1)));
    CHECK(!ing_ir_same_place(x.f, p, nth(&x, ING_OP_ELEM, 2)));
    CHECK(!ing_ir_same_place(x.f, p, nth(&x, ING_OP_ELEM, 3)));
    close_sample(&x);
}

/* Row major, from 0; an axis that ends before it begins has no places. */
static void test_numbers(void) {
    uint64_t bounds[6] = {(uint64_t)-2, 1, 5, 9, 0, 3};
    CHECK(ing_ir_axes_count(bounds, 3) == 36);
    for (uint64_t n = 0; n < 36; n++) {
        CHECK(ing_ir_axes_index(bounds, 3, n, 0) == (uint64_t)-2 + n / 12);
        CHECK(ing_ir_axes_index(bounds, 3, n, 1) == 5 + n / 3 % 4);
        CHECK(ing_ir_axes_index(bounds, 3, n, 2) == n % 3);
    }
    bounds[3] = 5;
    CHECK(ing_ir_axes_count(bounds, 3) == 0);
    CHECK(ing_ir_axes_index(bounds, 3, 7, 1) == 5); /* no trap */
}

int main(void) {
    test_roots();
    test_variance();
    test_loops();
    test_trips();
    test_forms();
    test_same();
    test_ranges();
    test_told();
    test_told_one_axis();
    test_told_families();
    test_told_varying();
    test_same_place();
    test_numbers();
    return CHECK_DONE();
}
