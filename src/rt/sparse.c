/* Factors of sparse matrices: L D L^T of symmetric ones, row by row along the elimination
 * tree; L U with row pivoting of any, column by column. Called by src/py/sparse.c. Both are
 * sparse throughout: the work is in proportion to the arithmetic, not to n squared.
 *
 * Numbers of the permuted matrix are called positions here: unknown order[k] has position k. */
#include "rt/sparse.h"

#include <math.h>
#include <string.h>

struct ing_sparse_factor {
    int32_t n;
    ing_sparse_kind kind;
    int32_t *order; /* position -> unknown */
    double *diag;   /* D, or the diagonal of U */
    int64_t *start; /* columns of L below the diagonal, which is one */
    ing_vec(int32_t) row;
    ing_vec(double) value;
    /* LU only; rows of L are rows of A there: */
    int32_t *pivot;   /* position -> row */
    int64_t *u_start; /* columns of U above the diagonal, rows as positions */
    ing_vec(int32_t) u_row;
    ing_vec(double) u_value;
};

static ing_status no_memory(ing_err *e) {
    return ing_fail(e, ING_MEMORY, "no memory for the factors of a sparse matrix");
}

static ing_status singular(ing_err *e) {
    return ing_fail(e, ING_DECLINED, "the sparse matrix is singular");
}

bool ing_sparse_valid(const ing_sparse *a, int64_t n_entries) {
    if (a->n < 0 || a->start[0] != 0 || a->start[a->n] != n_entries) return false;
    for (int32_t i = 0; i < a->n; i++) {
        if (a->start[i] > a->start[i + 1] || a->start[i + 1] > n_entries) return false;
        for (int64_t k = a->start[i]; k < a->start[i + 1]; k++)
            if (a->col[k] < 0 || a->col[k] >= a->n ||
                (k > a->start[i] && a->col[k] <= a->col[k - 1]))
                return false;
    }
    return true;
}

void ing_sparse_free(ing_sparse_factor *f) {
    if (!f) return;
    ing_free(f->order);
    ing_free(f->diag);
    ing_free(f->start);
    ing_free(f->pivot);
    ing_free(f->u_start);
    ing_vec_fini(&f->row);
    ing_vec_fini(&f->value);
    ing_vec_fini(&f->u_row);
    ing_vec_fini(&f->u_value);
    ing_free(f);
}

/* ---- L D L^T ------------------------------------------------------------------------------ */

typedef struct tree {  /* the elimination tree, and room to work */
    int32_t *position; /* unknown -> position */
    int32_t *parent, *seen, *path;
    int64_t *filled; /* entries of each column of L so far */
    double *x;
} tree;

static void tree_fini(tree *t) {
    ing_free(t->position);
    ing_free(t->parent);
    ing_free(t->seen);
    ing_free(t->path);
    ing_free(t->filled);
    ing_free(t->x);
}

static bool tree_init(tree *t, const ing_sparse_factor *f) {
    size_t n = (size_t)f->n + 1;
    t->position = ing_calloc(n, sizeof *t->position);
    t->parent = ing_calloc(n, sizeof *t->parent);
    t->seen = ing_calloc(n, sizeof *t->seen);
    t->path = ing_calloc(n, sizeof *t->path);
    t->filled = ing_calloc(n, sizeof *t->filled);
    t->x = ing_calloc(n, sizeof *t->x);
    if (!t->position || !t->parent || !t->seen || !t->path || !t->filled || !t->x)
        return false;
    for (int32_t k = 0; k < f->n; k++) {
        t->position[f->order[k]] = k;
        t->parent[k] = t->seen[k] = -1;
    }
    return true;
}

/* Finds the tree, and how many entries each column of L gets: row k of L is what lies on the
 * ways up the tree from the entries of row k. */
static bool ldlt_shape(ing_sparse_factor *f, tree *t, const ing_sparse *a) {
    for (int32_t k = 0; k < f->n; k++) {
        t->seen[k] = k;
        int32_t i = f->order[k];
        for (int64_t p = a->start[i]; p < a->start[i + 1]; p++)
            for (int32_t j = t->position[a->col[p]]; j < k && t->seen[j] != k;
                 j = t->parent[j]) {
                if (t->parent[j] < 0) t->parent[j] = k;
                t->seen[j] = k;
                t->filled[j]++;
            }
    }
    int64_t total = 0;
    for (int32_t k = 0; k < f->n; k++) {
        f->start[k] = total;
        total += t->filled[k];
        t->filled[k] = 0;
        t->seen[k] = -1;
    }
    f->start[f->n] = total;
    return total < UINT32_MAX && ing_vec_reserve(&f->row, total) &&
           ing_vec_reserve(&f->value, total);
}

/* The columns that row k of L has entries in, so that each comes before those that depend on it:
 * they end at path[n]. Their numbers from A are scattered to x. */
static int32_t ldlt_row(ing_sparse_factor *f, tree *t, const ing_sparse *a, int32_t k) {
    int32_t top = f->n, i = f->order[k];
    t->seen[k] = k;
    for (int64_t p = a->start[i]; p < a->start[i + 1]; p++) {
        int32_t j = t->position[a->col[p]], len = 0;
        if (j > k) continue;
        t->x[j] += a->value[p];
        for (; t->seen[j] != k; j = t->parent[j]) {
            t->path[len++] = j;
            t->seen[j] = k;
        }
        while (len > 0) t->path[--top] = t->path[--len];
    }
    return top;
}

static ing_status ldlt(ing_sparse_factor *f, tree *t, const ing_sparse *a, ing_err *e) {
    if (!ldlt_shape(f, t, a)) return no_memory(e);
    int32_t *row = f->row.at;
    double *value = f->value.at;
    for (int32_t k = 0; k < f->n; k++) {
        int32_t top = ldlt_row(f, t, a, k);
        double d = t->x[k];
        t->x[k] = 0;
        for (; top < f->n; top++) {
            int32_t j = t->path[top];
            double y = t->x[j];
            t->x[j] = 0;
            int64_t end = f->start[j] + t->filled[j]++;
            for (int64_t p = f->start[j]; p < end; p++) t->x[row[p]] -= value[p] * y;
            row[end] = k;
            value[end] = y / f->diag[j];
            d -= value[end] * y;
        }
        if (d == 0 || !isfinite(d)) return singular(e);
        if (d < 0 && f->kind == ING_SPARSE_LLT)
            return ing_fail(e, ING_DECLINED,
                            "the sparse matrix is not positive definite");
        f->diag[k] = d;
    }
    return ING_OK;
}

/* ---- L U ------------------------------------------------------------------------------------- */

typedef struct columns { /* A by columns, and room to work */
    int64_t *start;
    int32_t *row;
    double *value;
    int32_t *position; /* row -> position, -1: no pivot yet */
    int32_t *seen, *stack, *reach;
    int64_t *at;
    double *x;
} columns;

static void columns_fini(columns *c) {
    ing_free(c->start);
    ing_free(c->row);
    ing_free(c->value);
    ing_free(c->position);
    ing_free(c->seen);
    ing_free(c->stack);
    ing_free(c->reach);
    ing_free(c->at);
    ing_free(c->x);
}

static bool columns_init(columns *c, const ing_sparse *a) {
    size_t n = (size_t)a->n + 1, m = (size_t)a->start[a->n] + 1;
    c->start = ing_calloc(n + 1, sizeof *c->start);
    c->row = ing_calloc(m, sizeof *c->row);
    c->value = ing_calloc(m, sizeof *c->value);
    c->position = ing_calloc(n, sizeof *c->position);
    c->seen = ing_calloc(n, sizeof *c->seen);
    c->stack = ing_calloc(n, sizeof *c->stack);
    c->reach = ing_calloc(n, sizeof *c->reach);
    c->at = ing_calloc(n, sizeof *c->at);
    c->x = ing_calloc(n, sizeof *c->x);
    if (!c->start || !c->row || !c->value || !c->position || !c->seen || !c->stack ||
        !c->reach || !c->at || !c->x)
        return false;
    for (int64_t p = 0; p < a->start[a->n]; p++) c->start[a->col[p] + 2]++;
    for (int32_t j = 0; j < a->n; j++) c->start[j + 2] += c->start[j + 1];
    for (int32_t i = 0; i < a->n; i++) {
        c->position[i] = c->seen[i] = -1;
        for (int64_t p = a->start[i]; p < a->start[i + 1]; p++) {
            int64_t to = c->start[a->col[p] + 1]++;
            c->row[to] = i;
            c->value[to] = a->value[p];
        }
    }
    return true;
}

/* Depth first from row i through the columns of L; rows are put before `top` of reach as they
 * are left, so each stands before those that it changes. */
static int32_t visit(const ing_sparse_factor *f, columns *c, int32_t i, int32_t k,
                     int32_t top) {
    int32_t depth = 0;
    c->stack[0] = i;
    c->seen[i] = k;
    c->at[0] = c->position[i] < 0 ? 0 : f->start[c->position[i]];
    while (depth >= 0) {
        int32_t r = c->stack[depth], pos = c->position[r];
        int64_t end = pos < 0 ? 0 : f->start[pos + 1];
        bool deeper = false;
        while (c->at[depth] < end && !deeper) {
            int32_t to = f->row.at[c->at[depth]++];
            if (c->seen[to] == k) continue;
            c->seen[to] = k;
            c->stack[++depth] = to;
            c->at[depth] = c->position[to] < 0 ? 0 : f->start[c->position[to]];
            deeper = true;
        }
        if (deeper) continue;
        c->reach[--top] = r;
        depth--;
    }
    return top;
}

/* x = L^-1 A[:, column], with the rows that it has in reach[top ..]. */
static int32_t lu_column(const ing_sparse_factor *f, columns *c, int32_t column,
                         int32_t k) {
    int32_t top = f->n;
    for (int64_t p = c->start[column]; p < c->start[column + 1]; p++)
        if (c->seen[c->row[p]] != k) top = visit(f, c, c->row[p], k, top);
    for (int32_t m = top; m < f->n; m++) c->x[c->reach[m]] = 0;
    for (int64_t p = c->start[column]; p < c->start[column + 1]; p++)
        c->x[c->row[p]] = c->value[p];
    for (int32_t m = top; m < f->n; m++) {
        int32_t r = c->reach[m], pos = c->position[r];
        if (pos < 0) continue;
        for (int64_t p = f->start[pos]; p < f->start[pos + 1]; p++)
            c->x[f->row.at[p]] -= f->value.at[p] * c->x[r];
    }
    return top;
}

static ing_status lu(ing_sparse_factor *f, columns *c, ing_err *e) {
    for (int32_t k = 0; k < f->n; k++) {
        int32_t top = lu_column(f, c, f->order[k], k), best = -1;
        double size = 0;
        f->u_start[k] = f->u_row.len;
        for (int32_t m = top; m < f->n; m++) {
            int32_t r = c->reach[m];
            if (c->position[r] >= 0) {
                if (!ing_vec_push(&f->u_row, c->position[r]) ||
                    !ing_vec_push(&f->u_value, c->x[r]))
                    return no_memory(e);
            } else if (fabs(c->x[r]) > size ||
                       (fabs(c->x[r]) == size && r == f->order[k])) {
                size = fabs(c->x[r]);
                best = r;
            }
        }
        if (best < 0 || size == 0 || !isfinite(size)) return singular(e);
        double pivot = c->x[best];
        f->start[k] = f->row.len;
        for (int32_t m = top; m < f->n; m++) {
            int32_t r = c->reach[m];
            if (c->position[r] >= 0 || r == best || c->x[r] == 0) continue;
            if (!ing_vec_push(&f->row, r) || !ing_vec_push(&f->value, c->x[r] / pivot))
                return no_memory(e);
        }
        f->start[k + 1] = f->row.len;
        f->u_start[k + 1] = f->u_row.len;
        f->diag[k] = pivot;
        f->pivot[k] = best;
        c->position[best] = k;
    }
    return ING_OK;
}

/* ---- both -------------------------------------------------------------------------------------- */

static ing_status fill(ing_sparse_factor *f, const ing_sparse *a, ing_err *e) {
    ing_status s;
    if (f->kind == ING_SPARSE_LU) {
        columns c = {0};
        s = columns_init(&c, a) ? lu(f, &c, e) : no_memory(e);
        columns_fini(&c);
    } else {
        tree t = {0};
        s = tree_init(&t, f) ? ldlt(f, &t, a, e) : no_memory(e);
        tree_fini(&t);
    }
    return s;
}

ing_status ing_sparse_factorize(const ing_sparse *a, ing_sparse_kind kind,
                                ing_sparse_factor **out, ing_err *e) {
    size_t n = (size_t)a->n + 1;
    ing_sparse_factor *f = ing_calloc(1, sizeof *f);
    *out = NULL;
    if (!f) return no_memory(e);
    f->n = a->n;
    f->kind = kind;
    f->order = ing_calloc(n, sizeof *f->order);
    f->diag = ing_calloc(n, sizeof *f->diag);
    f->start = ing_calloc(n, sizeof *f->start);
    f->pivot = ing_calloc(n, sizeof *f->pivot);
    f->u_start = ing_calloc(n, sizeof *f->u_start);
    ing_status s = f->order && f->diag && f->start && f->pivot && f->u_start
                       ? ING_OK
                       : no_memory(e);
    if (s == ING_OK) s = ing_sparse_order(a, f->order, e);
    if (s == ING_OK) s = fill(f, a, e);
    if (s == ING_OK)
        *out = f;
    else
        ing_sparse_free(f);
    return s;
}

int32_t ing_sparse_size(const ing_sparse_factor *f) {
    return f->n;
}

static void solve_ldlt(const ing_sparse_factor *f, double *w) {
    const int32_t *row = f->row.at;
    const double *value = f->value.at;
    for (int32_t k = 0; k < f->n; k++)
        for (int64_t p = f->start[k]; p < f->start[k + 1]; p++)
            w[row[p]] -= value[p] * w[k];
    for (int32_t k = f->n - 1; k >= 0; k--) {
        w[k] /= f->diag[k];
        for (int64_t p = f->start[k]; p < f->start[k + 1]; p++)
            w[k] -= value[p] * w[row[p]];
    }
}

/* w is by rows of A, z by position. */
static void solve_lu(const ing_sparse_factor *f, double *w, double *z) {
    for (int32_t k = 0; k < f->n; k++) {
        z[k] = w[f->pivot[k]];
        for (int64_t p = f->start[k]; p < f->start[k + 1]; p++)
            w[f->row.at[p]] -= f->value.at[p] * z[k];
    }
    for (int32_t k = f->n - 1; k >= 0; k--) {
        z[k] /= f->diag[k];
        for (int64_t p = f->u_start[k]; p < f->u_start[k + 1]; p++)
            z[f->u_row.at[p]] -= f->u_value.at[p] * z[k];
    }
}

ing_status ing_sparse_solve(const ing_sparse_factor *f, const double *b, double *x,
                            ing_err *e) {
    double *w = ing_calloc(2 * (size_t)f->n + 1, sizeof *w), *z = w;
    if (!w) return no_memory(e);
    if (f->kind == ING_SPARSE_LU) {
        z = w + f->n;
        memcpy(w, b, (size_t)f->n * sizeof *w);
        solve_lu(f, w, z);
    } else {
        for (int32_t k = 0; k < f->n; k++) w[k] = b[f->order[k]];
        solve_ldlt(f, w);
    }
    for (int32_t k = 0; k < f->n; k++) x[f->order[k]] = z[k];
    ing_free(w);
    return ING_OK;
}
