/* rt/sparse: factors of sparse matrices, in f64, for solving equations. Plain C on arrays of
 * the caller; used by src/py/sparse.c. */
#ifndef ING_RT_SPARSE_H
#define ING_RT_SPARSE_H

#include "base/base.h"

/* Compressed rows: row i is entries start[i] .. start[i + 1]; columns ascend within a row. */
typedef struct ing_sparse {
    int32_t n; /* rows and columns */
    const int64_t *start;
    const int32_t *col;
    const double *value;
} ing_sparse;

typedef enum ing_sparse_kind {
    ING_SPARSE_LLT,  /* symmetric, positive definite */
    ING_SPARSE_LDLT, /* symmetric, needs no pivoting */
    ING_SPARSE_LU,   /* any */
} ing_sparse_kind;

typedef struct ing_sparse_factor ing_sparse_factor;

/* Whether indices are in range and ascend. */
bool ing_sparse_valid(const ing_sparse *a, int64_t n_entries);

/* DECLINED: the matrix is singular, or not positive definite for LLT. */
ing_status ing_sparse_factorize(const ing_sparse *a, ing_sparse_kind kind,
                                ing_sparse_factor **out, ing_err *e);
/* x = A^-1 b, both of n numbers; x and b may be the same. */
ing_status ing_sparse_solve(const ing_sparse_factor *f, const double *b, double *x,
                            ing_err *e);
int32_t ing_sparse_size(const ing_sparse_factor *f); /* n */
void ing_sparse_free(ing_sparse_factor *f);

/* An order of elimination with little fill, by approximate minimum degree on the pattern of
 * A + A^T: order[k] is eliminated as k-th. (sparse_order.c) */
ing_status ing_sparse_order(const ing_sparse *a, int32_t *order, ing_err *e);

#endif
