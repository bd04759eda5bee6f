/* The interpreter on a kernel as lowered: regions in place, and the places of random numbers.
 * Random kernels are run that way by test_ir_interp.c and by tests/py/test_four_ways.py. */
#include "check.h"
#include "gen/abi.h"
#include "ir/ir.h"

static ing_ir_mod *parse(const char *text) {
    ing_ir_mod *m = NULL;
    CHECK(ing_ir_parse(text, strlen(text), &m, NULL) == ING_OK);
    CHECK(m && ing_ir_verify(m, NULL) == ING_OK);
    return m;
}

typedef struct launch {
    uint64_t args[4], rets[1];
    ing_ctx ctx;
} launch;

static void launch_init(launch *l) {
    memset(l, 0, sizeof *l);
    l->ctx = (ing_ctx){.args = l->args, .rets = l->rets, .fuel = ING_ABI_FUEL};
}

/* Regions in place, sections one after the other; a flag that the body counts down. */
static void test_lowered_regions(void) {
    ing_ir_mod *m = parse("arg 0 array<i32, 0>\n"
                          "arg 1 array<i32, 1>\n"
                          "ret 0 i32\n"
                          "kernel @0 {\n"
                          "  %1 = array array<i32, 0> 0\n"
                          "  %2 = array array<i32, 1> 1\n"
                          "  %3 = const i32 0\n"
                          "  %4 = const i32 4\n"
                          "  %5 = const i32 3\n"
                          "  %6 = const i32 -1\n"
                          "  do_while %1 {\n"
                          "    %7 = alloca ref<i32>\n"
                          "    %8 = load i32 %7\n"
                          "    store %7, %4\n"
                          "    %9 = loop parallel i32 %3, %4 {\n"
                          "      %10 = elem ref<i32> %2, [%9]\n"
                          "      %11 = load i32 %10\n"
                          "      %12 = mul %11, %5\n"
                          "      %13 = add %12, %9\n"
                          "      %14 = add %13, %8\n"
                          "      store %10, %14\n"
                          "    }\n"
                          "    %15 = elem ref<i32> %1, []\n"
                          "    %16 = atomic i32 %15, %6, add\n"
                          "  }\n"
                          "  fork {\n"
                          "    section {\n"
                          "      %17 = loop parallel i32 %3, %4 {\n"
                          "        %18 = elem ref<i32> %2, [%17]\n"
                          "        %19 = atomic i32 %18, %5, mul\n"
                          "      }\n"
                          "    }\n"
                          "    section {\n"
                          "      %20 = elem ref<i32> %2, [%3]\n"
                          "      store %20, %6\n"
                          "    }\n"
                          "  }\n"
                          "  %21 = elem ref<i32> %2, [%5]\n"
                          "  %22 = load i32 %21\n"
                          "  set_ret 0, %22\n"
                          "}\n");
    int32_t flag = 3, x[4] = {1, 1, 1, 1};
    launch l;
    if (!m) return;
    launch_init(&l);
    l.args[0] = (uintptr_t)&flag;
    l.args[1] = (uintptr_t)x;
    l.args[2] = 4;
    CHECK(ing_ir_interp_lowered(m, &l.ctx) == 0);
    CHECK(flag == 0 && x[0] == -1 && x[1] == 3 * (27 + 13) && x[3] == 3 * (27 + 39));
    CHECK((int32_t)l.rets[0] == x[3]);
    ing_ir_mod_free(m);
}

/* Draws: a serial stretch, a loop that draws in a func, one that draws nothing, another. The
 * places are 0, 1, none, 2; the end of the kernel is 3. */
static const char drawing[] = "arg 0 array<i64, 1>\n"
                              "kernel @0 {\n"
                              "  %1 = array array<i64, 1> 0\n"
                              "  %2 = const i32 0\n"
                              "  %3 = const i32 2\n"
                              "  %4 = const i32 4\n"
                              "  %5 = random i64\n"
                              "  %6 = elem ref<i64> %1, [%2]\n"
                              "  store %6, %5\n"
                              "  %7 = loop parallel i32 %2, %3 {\n"
                              "    %8 = call i64 @1, []\n"
                              "    %9 = const i32 1\n"
                              "    %10 = add %7, %9\n"
                              "    %11 = elem ref<i64> %1, [%10]\n"
                              "    store %11, %8\n"
                              "  }\n"
                              "  %12 = loop parallel i32 %2, %3 {\n"
                              "    %13 = elem ref<i64> %1, [%12]\n"
                              "    %14 = load i64 %13\n"
                              "    store %13, %14\n"
                              "  }\n"
                              "  %15 = loop parallel i32 %3, %4 {\n"
                              "    %16 = random i64\n"
                              "    %17 = const i32 1\n"
                              "    %18 = add %15, %17\n"
                              "    %19 = elem ref<i64> %1, [%18]\n"
                              "    store %19, %16\n"
                              "  }\n"
                              "  %20 = random i64\n"
                              "  %21 = const i32 5\n"
                              "  %22 = elem ref<i64> %1, [%21]\n"
                              "  store %22, %20\n"
                              "}\n"
                              "func @1 () i64 {\n"
                              "  %1 = random i64\n"
                              "  return %1\n"
                              "}\n";

static uint64_t drawn_at(uint64_t place, uint64_t stream) {
    ing_ctx c = {.key = 77, .place = place};
    ing_ir_random_begin(&c, stream);
    return ing_ir_random(&c, ING_I64);
}

static void test_lowered_places(void) {
    ing_ir_mod *m = parse(drawing);
    uint64_t x[6] = {0};
    uint8_t draws[2] = {0, 0};
    launch l;
    if (!m) return;
    launch_init(&l);
    l.ctx.key = 77;
    l.args[0] = (uintptr_t)x;
    l.args[1] = 6;
    CHECK(ing_ir_interp_lowered(m, &l.ctx) == 0);
    CHECK(x[0] == drawn_at(0, 0) && x[1] == drawn_at(1, 0) && x[2] == drawn_at(1, 1));
    CHECK(x[3] == drawn_at(2, 2) && x[4] == drawn_at(2, 3) && x[5] == drawn_at(3, 0));
    CHECK(ing_ir_draws(m, draws, NULL) == ING_OK && draws[0] && draws[1]);
    ing_ir_mod_free(m);
}

int main(void) {
    test_lowered_regions();
    test_lowered_places();
    return CHECK_DONE();
}
