/* Factors of sparse matrices: random systems are solved to the last digits whatever the kind,
 * singular ones are declined, orders are permutations, broken input is told, and memory that
 * runs out at any point leaks nothing. */
#include "check.h"
#include "rt/sparse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 60 };

typedef struct system_ {
    int64_t start[MOST + 1];
    int32_t col[MOST * MOST];
    double value[MOST * MOST], full[MOST][MOST];
    ing_sparse a;
} system_;

static uint64_t state = 20240229;

static double unit(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static void compress(system_ *s, int32_t n) {
    int64_t k = 0;
    for (int32_t i = 0; i < n; i++) {
        s->start[i] = k;
        for (int32_t j = 0; j < n; j++)
            if (s->full[i][j] != 0) s->col[k] = j, s->value[k++] = s->full[i][j];
    }
    s->start[n] = k;
    s->a = (ing_sparse){n, s->start, s->col, s->value};
}

/* Symmetric with a heavy diagonal, or any with a heavy one in permuted places. */
static void make(system_ *s, int32_t n, ing_sparse_kind kind, double density) {
    memset(s->full, 0, sizeof s->full);
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j <= i; j++)
            if (unit() < density) {
                s->full[i][j] = unit() - 0.5;
                s->full[j][i] = kind == ING_SPARSE_LU ? 0 : s->full[i][j];
            }
    int32_t shift = kind == ING_SPARSE_LU ? n / 3 : 0;
    for (int32_t i = 0; i < n; i++) {
        double sign = kind == ING_SPARSE_LLT || i % 2 ? 1 : -1;
        s->full[i][(i + shift) % n] = sign * (n + 1);
    }
    compress(s, n);
}

static double residual(const system_ *s, const double *x, const double *b) {
    double worst = 0;
    for (int32_t i = 0; i < s->a.n; i++) {
        double sum = -b[i];
        for (int32_t j = 0; j < s->a.n; j++) sum += s->full[i][j] * x[j];
        if (!(fabs(sum) <= worst)) worst = fabs(sum);
    }
    return worst;
}

static void test_solve(system_ *s) {
    ing_err e;
    ing_err_init(&e);
    for (int round = 0; round < 300; round++) {
        int32_t n = 1 + round % MOST;
        ing_sparse_kind kind = (ing_sparse_kind)(round % 3);
        double b[MOST], x[MOST];
        ing_sparse_factor *f = NULL;
        make(s, n, kind, round % 7 / 7.0);
        CHECK(ing_sparse_valid(&s->a, s->start[n]));
        for (int32_t i = 0; i < n; i++) b[i] = unit() - 0.5;
        CHECK(ing_sparse_factorize(&s->a, kind, &f, &e) == ING_OK);
        CHECK(f && ing_sparse_size(f) == n);
        if (!f) break;
        CHECK(ing_sparse_solve(f, b, x, &e) == ING_OK);
        CHECK(residual(s, x, b) < 1e-13);
        CHECK(ing_sparse_solve(f, b, b, &e) == ING_OK); /* in place */
        CHECK(memcmp(x, b, (size_t)n * sizeof *x) == 0);
        ing_sparse_free(f);
    }
    ing_err_fini(&e);
}

static void test_declined(system_ *s) {
    ing_sparse_factor *f = NULL;
    for (int kind = 0; kind < 3; kind++) {
        ing_err e;
        ing_err_init(&e);
        memset(s->full, 0, sizeof s->full);
        s->full[0][0] = s->full[1][1] = 1; /* row 2 is zero */
        compress(s, 3);
        CHECK(ing_sparse_factorize(&s->a, (ing_sparse_kind)kind, &f, &e) ==
              ING_DECLINED);
        CHECK(!f && e.text);
        ing_err_fini(&e);
    }
    memset(s->full, 0, sizeof s->full);
    s->full[0][0] = 1, s->full[1][1] = -1;
    compress(s, 2);
    CHECK(ing_sparse_factorize(&s->a, ING_SPARSE_LLT, &f, NULL) == ING_DECLINED);
    CHECK(ing_sparse_factorize(&s->a, ING_SPARSE_LDLT, &f, NULL) == ING_OK);
    ing_sparse_free(f);
    compress(s, 0);
    CHECK(ing_sparse_factorize(&s->a, ING_SPARSE_LU, &f, NULL) == ING_OK);
    ing_sparse_free(f);
}

static void test_order(system_ *s) {
    for (int round = 0; round < 200; round++) {
        int32_t n = 1 + round % MOST, order[MOST];
        bool seen[MOST] = {0}, all = true;
        make(s, n, round % 2 ? ING_SPARSE_LU : ING_SPARSE_LLT, round % 5 / 5.0);
        CHECK(ing_sparse_order(&s->a, order, NULL) == ING_OK);
        for (int32_t k = 0; k < n; k++)
            if (order[k] >= 0 && order[k] < n) seen[order[k]] = true;
        for (int32_t k = 0; k < n; k++) all = all && seen[k];
        CHECK(all);
    }
    /* A star is eliminated from its tips: the middle comes last but for one. */
    memset(s->full, 0, sizeof s->full);
    for (int32_t i = 0; i < 9; i++) s->full[i][i] = s->full[i][4] = s->full[4][i] = 1;
    compress(s, 9);
    int32_t order[9];
    CHECK(ing_sparse_order(&s->a, order, NULL) == ING_OK);
    CHECK(order[7] == 4 || order[8] == 4);
}

static void test_broken(system_ *s) {
    make(s, 6, ING_SPARSE_LLT, 0.5);
    int64_t total = s->start[6];
    CHECK(!ing_sparse_valid(&s->a, total + 1));
    s->col[1] = 6;
    CHECK(!ing_sparse_valid(&s->a, total));
    s->col[1] = -1;
    CHECK(!ing_sparse_valid(&s->a, total));
    make(s, 6, ING_SPARSE_LLT, 1);
    s->col[1] = s->col[0];
    CHECK(!ing_sparse_valid(&s->a, s->start[6]));
    make(s, 6, ING_SPARSE_LLT, 1);
    s->start[2] = s->start[3] + 1;
    CHECK(!ing_sparse_valid(&s->a, 36));
}

static void test_no_memory(system_ *s) {
    for (int kind = 0; kind < 3; kind++) {
        make(s, 20, (ing_sparse_kind)kind, 0.3);
        ing_status status = ING_MEMORY;
        for (uint64_t n = 1; status == ING_MEMORY && n < 10000; n++) {
            ing_sparse_factor *f = NULL;
            ing_alloc_fail_at(n);
            status = ing_sparse_factorize(&s->a, (ing_sparse_kind)kind, &f, NULL);
            ing_alloc_fail_at(0);
            CHECK((status == ING_OK) == (f != NULL));
            ing_sparse_free(f);
        }
        CHECK(status == ING_OK);
    }
}

int main(void) {
    system_ *s = calloc(1, sizeof *s);
    if (!s) return 1;
    test_solve(s);
    test_declined(s);
    test_order(s);
    test_broken(s);
    test_no_memory(s);
    free(s);
    return CHECK_DONE();
}
