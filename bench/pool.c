/* What the constants of src/rt/rt_int.h rest on: the cost of an inline launch, of handing
 * work to the pool, of taking a piece, of a cost unit, and the size from which sharing
 * pays. Prints a table; with an argument, writes the same numbers there as JSON.
 *
 *   gcc -O2 -std=c11 -D_GNU_SOURCE -pthread -Isrc -o /tmp/pool bench/pool.c \
 *       src/rt/[a-z]*.c src/base/[a-z]*.c -lm && /tmp/pool [out.json]
 */
#include "rt/rt_int.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *json;
static int rows;

static void row(const char *name, double value, const char *unit) {
    printf("%-44s %12.2f %s\n", name, value, unit);
    if (json)
        fprintf(json, "%s  \"%s [%s]\": %.4g", rows++ ? ",\n" : "", name, unit, value);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The tenth percentile: other load on the machine only ever adds. */
static double low(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 10];
}

/* ---- bodies ---------------------------------------------------------------------------- */

static int32_t empty(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)ctx, (void)begin, (void)end, (void)chunk;
    return 0;
}

/* A chain of dependent multiply-adds: an iteration takes half a microsecond or more. */
static int32_t scalar_us(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    double x = 1.0;
    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        for (int k = 0; k < 300; k++) x = x * 1.0000001 + 1e-9;
    }
    if (x < 0) ctx->rets[0] = 1;
    return 0;
}

static int32_t scalar_ints(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    uint32_t *a = (uint32_t *)(uintptr_t)ctx->args[0];
    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        uint32_t x = a[i];
        a[i] = x % 7 ? x * 3 + 1 : x >> 1; /* load, mod, compare, select, store */
        __asm__ volatile("" ::: "memory");
    }
    return 0;
}

__attribute__((target("avx2,fma"), optimize("O3"))) static int32_t saxpy(
    ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    const float *restrict x = (const float *)(uintptr_t)ctx->args[0];
    float *restrict y = (float *)(uintptr_t)ctx->args[1];
    (void)chunk;
    for (int64_t i = begin; i < end; i++) y[i] = 2.5f * x[i] + y[i];
    return 0;
}

/* Both threads must have come before either goes: pure hand-off. */
static int32_t meet(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    atomic_int *here = (atomic_int *)(uintptr_t)ctx->args[0];
    (void)begin, (void)end, (void)chunk;
    atomic_fetch_add(here, 1);
    while (atomic_load_explicit(here, memory_order_relaxed) < 2) cpu_relax();
    return 0;
}

static ing_rt_task range_of(ing_task_fn fn, int64_t n, uint32_t cost) {
    return (ing_rt_task){.fn = fn, .range = true, .cost = cost, .end = n};
}

/* ---- inline launches ----------------------------------------------------------------------- */

static int open_counter(void) {
    struct perf_event_attr a = {.type = PERF_TYPE_HARDWARE,
                                .size = sizeof a,
                                .config = PERF_COUNT_HW_INSTRUCTIONS,
                                .exclude_kernel = 1,
                                .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
}

static void bench_inline(ing_rt *rt, const char *name, ing_rt_launch *l) {
    enum { N = 200000, ROUNDS = 15 };
    double v[ROUNDS];
    uint64_t before = 0, after = 0;
    int fd = open_counter();
    if (fd >= 0 && read(fd, &before, sizeof before) != sizeof before) before = 0;
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t t = ing_os_now_ns();
        for (int i = 0; i < N; i++) ing_rt_run(rt, l);
        v[r] = (double)(ing_os_now_ns() - t) / N;
    }
    if (fd >= 0 && read(fd, &after, sizeof after) != sizeof after) after = 0;
    row(name, low(v, ROUNDS), "ns");
    if (after) row("  instructions", (double)(after - before) / N / ROUNDS, "");
    if (fd >= 0) close(fd);
}

static void bench_launches(ing_rt *rt) {
    ing_rt_task t = range_of(empty, 10, 10), serial = {.fn = empty, .cost = 10};
    ing_rt_launch l = {.tasks = &t, .n_tasks = 1};
    bench_inline(rt, "inline launch, range task", &l);
    l.tasks = &serial;
    bench_inline(rt, "inline launch, serial task", &l);
    l.tasks = &t;
    l.flush_denormals = true;
    bench_inline(rt, "inline launch, FTZ set and restored", &l);
    t.may_run_long = true;
    bench_inline(rt, "inline launch, unknown cost (probed)", &l);
}

/* ---- the pool ----------------------------------------------------------------------------------- */

static double launch_us(ing_rt *rt, ing_rt_launch *l) {
    uint64_t t = ing_os_now_ns();
    ing_rt_run(rt, l);
    return (double)(ing_os_now_ns() - t) / 1000;
}

static void bench_handoff(ing_rt *rt) {
    enum { N = 400 };
    static const unsigned gaps[] = {0, 5, 10, 15, 25, 50, 200, 1000, 10000};
    double v[N];
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        int n = gaps[g] > 500 ? N / 4 : N;
        for (int i = 0; i < n; i++) {
            atomic_int here = 0;
            uint64_t args[1] = {(uint64_t)(uintptr_t)&here};
            ing_rt_task t = range_of(meet, 2, 1000000);
            ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args};
            uint64_t until = ing_os_now_ns() + gaps[g] * 1000ull;
            while (ing_os_now_ns() < until) cpu_relax();
            v[i] = launch_us(rt, &l);
        }
        char name[64];
        snprintf(name, sizeof name, "hand-off, %u us after the last launch", gaps[g]);
        row(name, low(v, n), "us");
    }
}

/* The same work inline and shared, with a worker that spins and with one that sleeps. */
static void bench_threshold(ing_rt *rt) {
    enum { N = 200 };
    static const int64_t us[] = {2, 5, 10, 20, 30, 50, 75, 100, 200, 500};
    for (size_t w = 0; w < sizeof us / sizeof *us; w++) {
        double v[3][N];
        for (int i = 0; i < N; i++) {
            for (int mode = 0; mode < 3; mode++) {
                ing_rt_task t = range_of(scalar_us, us[w], 1);
                t.cost = mode ? INLINE_UNITS / (uint32_t)us[w] + 1 : 1;
                ing_rt_launch l = {.tasks = &t, .n_tasks = 1};
                if (mode == 1) ing_rt_run(rt, &l); /* hot: just worked */
                if (mode == 2) usleep(1000);
                v[mode][i] = launch_us(rt, &l);
            }
        }
        char name[64];
        double base = low(v[0], N);
        snprintf(name, sizeof name, "work of %.0f us: shared hot / inline", base);
        row(name, low(v[1], N) / base, "x");
        snprintf(name, sizeof name, "work of %.0f us: shared cold / inline", base);
        row(name, low(v[2], N) / base, "x");
    }
}

static void bench_pieces(ing_rt *rt) {
    enum { N = 20 };
    double v[N];
    for (uint32_t threads = 1; threads <= 2; threads++) {
        for (int i = 0; i < N; i++) {
            ing_rt_task t = range_of(empty, 100000, PIECE_UNITS);
            ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .max_threads = threads};
            v[i] = launch_us(rt, &l) * 1000 / 100000 * threads;
        }
        row(threads == 1 ? "taking a piece, 1 thread" : "taking a piece, 2 threads",
            low(v, N), "ns");
    }
}

/* ---- cost units, memory ---------------------------------------------------------------------------- */

static void bench_units(ing_rt *rt) {
    enum { N = 21, ITERS = 8192 };
    double v[N];
    void *x, *y;
    if (ing_rt_alloc_array(ITERS * 4, &x) != ING_OK ||
        ing_rt_alloc_array(ITERS * 4, &y) != ING_OK) {
        return;
    }
    uint64_t args[2] = {(uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y};
    for (int vec = 0; vec < 2; vec++) {
        ing_rt_task t = range_of(vec ? saxpy : scalar_ints, ITERS, 1);
        ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args};
        for (int i = 0; i < N; i++)
            v[i] = launch_us(rt, &l) * 1000 / ITERS / (vec ? 6 : 10);
        row(vec ? "a unit of vectorised code" : "a unit of scalar code", low(v, N),
            "ns");
    }
    ing_rt_free_array(x, ITERS * 4);
    ing_rt_free_array(y, ITERS * 4);
}

static void bench_saxpy(ing_rt *rt, size_t n, bool huge) {
    enum { N = 9 };
    size_t bytes = n * 4;
    double v[N];
    float *a[2];
    uint64_t t0 = ing_os_now_ns();
    for (int i = 0; i < 2; i++) {
        if (huge) {
            if (ing_rt_alloc_array(bytes, (void **)&a[i]) != ING_OK) return;
        } else {
            a[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (a[i] == MAP_FAILED) return;
        }
        memset(a[i], 0, bytes);
    }
    double touch = (double)(ing_os_now_ns() - t0) / 1e6;
    uint64_t args[2] = {(uint64_t)(uintptr_t)a[0], (uint64_t)(uintptr_t)a[1]};
    ing_rt_task t = range_of(saxpy, (int64_t)n, 6);
    ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args};
    for (int i = 0; i < N; i++) v[i] = launch_us(rt, &l);
    char name[64];
    snprintf(name, sizeof name, "saxpy %zuM, %s pages", n >> 20,
             huge ? "huge" : "small");
    row(name, (double)bytes * 3 / low(v, N) / 1000, "GB/s");
    snprintf(name, sizeof name, "  first touch, %s pages", huge ? "huge" : "small");
    row(name, touch, "ms");
    for (int i = 0; i < 2; i++) {
        if (huge)
            ing_rt_free_array(a[i], bytes);
        else
            munmap(a[i], bytes);
    }
}

/* Zeroed memory of `bytes`, touched once in each page, by both ways of getting it. */
static void bench_alloc(size_t bytes) {
    enum { N = 200 };
    double v[2][N];
    for (int i = 0; i < N; i++) {
        for (int way = 0; way < 2; way++) {
            uint64_t t = ing_os_now_ns();
            uint8_t *p = way ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                             : malloc(bytes);
            if (!way) memset(p, 0, bytes);
            for (size_t k = 0; k < bytes; k += 4096) ((volatile uint8_t *)p)[k] = 1;
            if (way)
                munmap(p, bytes);
            else
                free(p);
            v[way][i] = (double)(ing_os_now_ns() - t) / 1000;
        }
    }
    char name[64];
    snprintf(name, sizeof name, "%zu KiB: mapping / heap, all touched", bytes >> 10);
    row(name, low(v[1], N) / low(v[0], N), "x");
}

int main(int argc, char **argv) {
    ing_rt *rt = ing_rt_new(2);
    if (!rt) return 1;
    json = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (json) fputs("{\n", json);
    bench_launches(rt);
    bench_units(rt);
    bench_handoff(rt);
    bench_threshold(rt);
    bench_pieces(rt);
    for (int i = 0; i < 6; i++) bench_saxpy(rt, (size_t)16 << 20, i & 1);
    for (int i = 0; i < 6; i++) bench_saxpy(rt, (size_t)2 << 20, i & 1);
    for (size_t kib = 64; kib <= 4096; kib *= 4) bench_alloc(kib << 10);
    if (json) {
        fputs("\n}\n", json);
        fclose(json);
    }
    ing_rt_free(rt);
    return 0;
}
