/* Graph programs: which steps form one, how a launch walks them, and what the split makes
 * of regions. The oracle of the walk is a recursive reading of the same steps. */
#include "check.h"

#include "graph/graph.h"
#include "pass/pass.h"

#include <string.h>

/* ---- what is a program ------------------------------------------------------------------- */

static const ing_ir_step nested[] = {
    {ING_IR_STEP_TASK, 0, 0},      {ING_IR_STEP_LOOP, 8, 0},
    {ING_IR_STEP_STAGE, 0, 0},     {ING_IR_STEP_TASK, 1, 0},
    {ING_IR_STEP_STAGE_END, 0, 2}, {ING_IR_STEP_LOOP, 7, 0},
    {ING_IR_STEP_TASK, 2, 0},      {ING_IR_STEP_LOOP_END, 5, 1},
    {ING_IR_STEP_LOOP_END, 1, 0},  {ING_IR_STEP_FORK, 14, 0},
    {ING_IR_STEP_SECTION, 12, 0},  {ING_IR_STEP_TASK, 3, 0},
    {ING_IR_STEP_SECTION, 14, 0},  {ING_IR_STEP_TASK, 4, 0},
    {ING_IR_STEP_JOIN, 9, 0},      {ING_IR_STEP_STAGE, 1, 0},
    {ING_IR_STEP_TASK, 5, 0},      {ING_IR_STEP_STAGE_END, 1, 2},
};
enum { N_NESTED = sizeof nested / sizeof *nested, WORDS = 3, TASKS = 6, STAGES = 2 };

static bool ok(const ing_ir_step *s, uint32_t n) {
    return ing_ir_steps_ok(s, n, TASKS, WORDS, STAGES);
}

static void test_programs(void) {
    ing_ir_step s[N_NESTED];
    CHECK(ok(nested, N_NESTED));
    CHECK(ok(NULL, 0));
    for (uint32_t cut = 0; cut < N_NESTED;
         cut++) { /* a part is one where nothing is open */
        bool whole = cut < 2 || cut == 9 || cut == 15;
        CHECK(ok(nested, cut) == (cut < 2 || whole));
    }
    /* Every step with another kind or another target is none. */
    for (uint32_t i = 0; i < N_NESTED; i++) {
        for (uint8_t kind = 0; kind <= ING_IR_STEP_N; kind++) {
            memcpy(s, nested, sizeof s);
            s[i].kind = kind;
            CHECK(ok(s, N_NESTED) == (kind == nested[i].kind));
        }
        for (uint32_t at = 0; at < N_NESTED + 3; at++) {
            memcpy(s, nested, sizeof s);
            s[i].at = at;
            bool task = s[i].kind == ING_IR_STEP_TASK && at < TASKS;
            CHECK(ok(s, N_NESTED) == (task || at == nested[i].at));
        }
        memcpy(s, nested, sizeof s);
        s[i].word = WORDS;
        bool reads =
            s[i].kind == ING_IR_STEP_LOOP_END || s[i].kind == ING_IR_STEP_STAGE_END;
        CHECK(ok(s, N_NESTED) == !reads);
    }
}

static void test_too_deep(void) {
    static ing_ir_step s[2 * (ING_IR_MAX_NESTING + 1)];
    for (uint32_t depth = ING_IR_MAX_NESTING; depth <= ING_IR_MAX_NESTING + 1;
         depth++) {
        for (uint32_t i = 0; i < depth; i++) {
            uint32_t end = 2 * depth - 1 - i;
            s[i] = (ing_ir_step){ING_IR_STEP_LOOP, end, 0};
            s[end] = (ing_ir_step){ING_IR_STEP_LOOP_END, i, 0};
        }
        CHECK(ok(s, 2 * depth) == (depth == ING_IR_MAX_NESTING));
    }
}

/* ---- walking ---------------------------------------------------------------------------------- */

typedef struct world { /* flags and what ran */
    int32_t flag[WORDS];
    int32_t left[WORDS]; /* a task counts down the flag of its loop */
    char ran[200];
    size_t n;
} world;

/* Tasks 1 and 5 may set the flag of the stages; 1 counts down loop 0, 2 counts down loop 1. */
static void act(world *w, uint32_t task) {
    if (w->n + 1 < sizeof w->ran) w->ran[w->n++] = (char)('0' + task);
    w->ran[w->n] = 0;
    if (task == 1 && --w->left[0] <= 0) w->flag[0] = 0;
    if (task == 2 && --w->left[1] <= 0) w->flag[1] = 0;
}

static uint32_t walk(world *w, uint32_t resume) {
    ing_graph g;
    uint64_t args[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) args[i] = (uint64_t)(uintptr_t)&w->flag[i];
    CHECK(ing_graph_init(&g, nested, N_NESTED, NULL) == ING_OK);
    ing_graph_run r = ing_graph_start(&g, args, resume);
    for (uint32_t steps = 0; steps < 1000; steps++) {
        ing_rt_fork f;
        uint32_t i = ing_graph_next(&r, &f);
        if (i == ING_RT_DONE) break;
        if (i < TASKS) act(w, i);
        if (i != ING_RT_FORKED) continue;
        CHECK(f.n == 2);
        for (uint32_t k = 0; k < f.n; k++)
            for (uint32_t j = f.starts[k]; j < f.starts[k + 1]; j++) act(w, f.tasks[j]);
    }
    CHECK(ing_graph_next(&r, NULL) == ING_RT_DONE);
    ing_graph_fini(&g);
    return r.yielded;
}

static void test_walk(void) {
    world plain = {.flag = {1, 1, 0}, .left = {3, 2, 0}};
    CHECK(walk(&plain, ING_GRAPH_NO_STAGE) == ING_GRAPH_NO_STAGE);
    CHECK_STR(plain.ran, "012212"
                         "12"
                         "345");      /* the inner flag stays 0: once each time */
    world zero = {.flag = {0, 0, 0}}; /* a body runs once before its flag is read */
    CHECK(walk(&zero, ING_GRAPH_NO_STAGE) == ING_GRAPH_NO_STAGE);
    CHECK_STR(zero.ran, "012345");
    world yields = {.flag = {1, 1, 1}, .left = {3, 2, 0}};
    CHECK(walk(&yields, ING_GRAPH_NO_STAGE) == 0);
    CHECK_STR(yields.ran, "01");
    yields.flag[2] = 0;
    yields.n = 0;
    CHECK(walk(&yields, 0) == ING_GRAPH_NO_STAGE);
    CHECK_STR(yields.ran, "122"
                          "12"
                          "345"); /* goes on inside of the loop */
    world last = {.flag = {1, 1, 1}, .left = {3, 2, 0}};
    CHECK(walk(&last, 1) == 1); /* the loop before it is skipped, whatever its flag */
    CHECK_STR(last.ran, "5");
    CHECK(last.flag[2] == 1); /* never written here */
}

static void test_no_memory(void) {
    for (uint32_t k = 1;; k++) {
        ing_graph g;
        ing_alloc_fail_at(k);
        ing_status s = ing_graph_init(&g, nested, N_NESTED, NULL);
        bool over = ing_alloc_fail_left() != 0;
        ing_alloc_fail_at(0);
        CHECK(s == (over ? ING_OK : ING_MEMORY));
        if (s == ING_OK) ing_graph_fini(&g);
        if (over) break;
    }
}

/* ---- from regions to steps ------------------------------------------------------------------------ */

static const char kernel[] = "arg 0 array<i32, 1>\n"
                             "arg 1 array<i32, 0>\n"
                             "stages 1\n"
                             "kernel @0 {\n"
                             "  %1 = array array<i32, 1> 0\n"
                             "  %2 = array array<i32, 0> 1\n"
                             "  %3 = const i32 0\n"
                             "  %4 = const i32 8\n"
                             "  do_while %2 {\n"
                             "    %5 = alloca ref<i32>\n"
                             "    %6 = elem ref<i32> %2, []\n"
                             "    %7 = load i32 %6\n"
                             "    store %5, %7\n"
                             "    %8 = loop parallel i32 %3, %4 {\n"
                             "      %9 = load i32 %5\n"
                             "      %10 = elem ref<i32> %1, [%8]\n"
                             "      store %10, %9\n"
                             "    }\n"
                             "    checkpoint %2, 0 {\n"
                             "      %11 = loop parallel i32 %3, %4 {\n"
                             "        %12 = elem ref<i32> %1, [%11]\n"
                             "        store %12, %11\n"
                             "      }\n"
                             "    }\n"
                             "  }\n"
                             "}\n";

static void test_split(void) {
    ing_ir_mod *m = NULL;
    ing_bytes text, again;
    ing_bytes_init(&text);
    ing_bytes_init(&again);
    CHECK(ing_ir_parse(kernel, sizeof kernel - 1, &m, NULL) == ING_OK);
    CHECK(ing_ir_verify(m, NULL) == ING_OK);
    ing_pass_options o = {0};
    CHECK(ing_pass_run_one(m, "split", &o, NULL) == ING_OK);
    ing_ir_print(m, 0, &text);
    CHECK(strstr((char *)text.at,
                 "step loop 6\nstep task 0\nstep task 1\nstep stage 0\n"
                 "step task 2\nstep yield 0 word 2\n"
                 "step again 0 word 2\n") != NULL);
    ing_ir_mod *copy = NULL; /* steps are part of the text */
    CHECK(ing_ir_parse((char *)text.at, text.len, &copy, NULL) == ING_OK);
    ing_ir_print(copy, 0, &again);
    CHECK(text.len == again.len && memcmp(text.at, again.at, text.len) == 0);
    ing_ir_mod_free(copy);
    ing_ir_mod_free(m);
    ing_bytes_fini(&text);
    ing_bytes_fini(&again);
}

/* SPLIT7: what a resume would not compute again. */
static void test_lost(void) {
    ing_bytes t;
    ing_ir_mod *m = NULL;
    ing_bytes_init(&t);
    const char *cut = strstr(kernel, "        %12 = elem");
    ing_bytes_put(&t, kernel, (size_t)(cut - kernel));
    ing_bytes_puts(&t, "        %99 = load i32 %5\n");
    ing_bytes_puts(&t, cut);
    const char *store = "store %12, %11";
    char *at = strstr((char *)t.at, store);
    CHECK(at != NULL);
    if (at) memcpy(at, "store %12, %99", strlen(store));
    CHECK(ing_ir_parse((char *)t.at, t.len, &m, NULL) == ING_OK);
    ing_pass_options o = {0};
    CHECK(ing_pass_run_one(m, "split", &o, NULL) == ING_SYNTAX);
    ing_ir_mod_free(m);
    ing_bytes_fini(&t);
}

/* I8: a region in a wrong place. */
static void test_places(void) {
    static const char *const bad[] = {
        "  section {\n  }\n",
        "  fork {\n    do_while %2 {\n    }\n  }\n",
        "  checkpoint %2, 0 {\n    do_while %2 {\n    }\n  }\n",
        "  checkpoint %2, 1 {\n  }\n",
        "  do_while %1 {\n  }\n",
        "  fork {\n    section {\n      fork {\n      }\n    }\n  }\n",
        "  while {\n    do_while %2 {\n    }\n    break\n  }\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ing_bytes t;
        ing_ir_mod *m = NULL;
        ing_bytes_init(&t);
        const char *cut = strstr(kernel, "  do_while");
        ing_bytes_put(&t, kernel, (size_t)(cut - kernel));
        ing_bytes_puts(&t, bad[i]);
        ing_bytes_puts(&t, "}\n");
        CHECK(ing_ir_parse((char *)t.at, t.len, &m, NULL) == ING_OK);
        CHECK(m && ing_ir_verify(m, NULL) == ING_INTERNAL);
        ing_ir_mod_free(m);
        ing_bytes_fini(&t);
    }
}

int main(void) {
    test_programs();
    test_too_deep();
    test_walk();
    test_no_memory();
    test_split();
    test_lost();
    test_places();
    return CHECK_DONE();
}
