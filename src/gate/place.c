/* Arithmetic on places of fields (place.h). Called by the IR, the front end, the record of a
 * variant and src/py. Reads nothing but the place it is given. */
#include "gate/place.h"

#include <string.h>

uint64_t ing_place_elem_bytes(const ing_place *p) {
    uint64_t n = ing_dtype_bytes((ing_dtype)p->dtype);
    for (uint32_t k = 0; k < p->elem_rank; k++) n *= p->elem_shape[k];
    return n;
}

static bool elements_ok(const ing_place *p) {
    if (!p->dtype || p->dtype >= ING_DTYPE_N || p->elem_rank > 2) return false;
    for (uint32_t k = 0; k < 2; k++) {
        bool used = k < p->elem_rank;
        if (used != (p->elem_shape[k] != 0) || p->elem_shape[k] > 1u << 20)
            return false;
    }
    return true;
}

bool ing_place_ok(const ing_place *p) {
    if (!elements_ok(p)) return false;
    if (p->ndim > ING_PLACE_MAX_AXES || p->n_levels > ING_PLACE_MAX_LEVELS)
        return false;
    int64_t size = (int64_t)ing_dtype_bytes((ing_dtype)p->dtype);
    __int128 end = (__int128)p->at + (__int128)ing_place_elem_bytes(p);
    __int128 count[ING_PLACE_MAX_AXES] = {0};
    if (p->at < 0 || p->at % size) return false;
    for (uint32_t k = 0; k < p->n_levels; k++) {
        const ing_level *l = &p->level[k];
        if (l->axis >= p->ndim || l->extent < 1 || l->stride < 0 || l->stride % size)
            return false;
        __int128 *n = &count[l->axis];
        *n = (*n ? *n : 1) * l->extent;
        end += (__int128)(l->extent - 1) * l->stride;
        if (*n > INT64_MAX || end > INT64_MAX) return false;
    }
    for (uint32_t a = 0; a < p->ndim; a++)
        if (p->from[a] + (count[a] ? count[a] : 1) > INT64_MAX) return false;
    return true;
}

int64_t ing_place_extent(const ing_place *p, uint32_t axis) {
    int64_t n = 1;
    for (uint32_t k = 0; k < p->n_levels; k++)
        if (p->level[k].axis == axis) n *= p->level[k].extent;
    return n;
}

uint64_t ing_place_span(const ing_place *p) {
    uint64_t n = ing_place_elem_bytes(p);
    for (uint32_t k = 0; k < p->n_levels; k++)
        n += (uint64_t)(p->level[k].extent - 1) * (uint64_t)p->level[k].stride;
    return n;
}

/* Bytes that a walk over the levels from the k-th on covers. */
static int64_t span_from(const ing_place *p, uint32_t k) {
    int64_t n = (int64_t)ing_place_elem_bytes(p);
    for (; k < p->n_levels; k++) n += (p->level[k].extent - 1) * p->level[k].stride;
    return n;
}

/* Both walk the first k levels together: does each step of those lead past everything that
 * both have further in, and is that apart? */
static bool apart_below(const ing_place *a, const ing_place *b, uint32_t k) {
    int64_t a_end = a->at + span_from(a, k), b_end = b->at + span_from(b, k);
    int64_t low = a->at < b->at ? a->at : b->at;
    int64_t cell = (a_end > b_end ? a_end : b_end) - low;
    if (a->at < b_end && b->at < a_end) return false;
    while (k-- > 0) {
        if (a->level[k].stride < cell) return false;
        cell += (a->level[k].extent - 1) * a->level[k].stride;
    }
    return true;
}

/* Places of one node of a tree have the levels above it in common. */
bool ing_place_apart(const ing_place *a, const ing_place *b) {
    uint32_t k = 0;
    while (k < a->n_levels && k < b->n_levels &&
           a->level[k].extent == b->level[k].extent &&
           a->level[k].stride == b->level[k].stride)
        k++;
    do {
        if (apart_below(a, b, k)) return true;
    } while (k-- > 0);
    return false;
}

static void drop_level(ing_place *p, uint32_t k) {
    p->n_levels--;
    memmove(&p->level[k], &p->level[k + 1], (p->n_levels - k) * sizeof *p->level);
    memset(&p->level[p->n_levels], 0, sizeof *p->level);
}

void ing_place_simplify(ing_place *p) {
    for (uint32_t k = p->n_levels; k-- > 0;)
        if (p->level[k].extent == 1) drop_level(p, k);
    for (uint32_t k = p->n_levels; k-- > 1;) {
        ing_level *outer = &p->level[k - 1], *inner = &p->level[k];
        if (outer->axis != inner->axis ||
            outer->stride / inner->extent != inner->stride ||
            outer->stride % inner->extent)
            continue;
        outer->extent *= inner->extent;
        outer->stride = inner->stride;
        drop_level(p, k);
    }
}

uint32_t ing_place_put(const ing_place *p, int64_t *out) {
    uint32_t n = 0;
    out[n++] = p->dtype;
    out[n++] = p->elem_rank;
    out[n++] = p->elem_shape[0];
    out[n++] = p->elem_shape[1];
    out[n++] = p->at;
    out[n++] = p->ndim;
    out[n++] = p->n_levels;
    for (uint32_t a = 0; a < p->ndim; a++) out[n++] = p->from[a];
    for (uint32_t k = 0; k < p->n_levels; k++) {
        out[n++] = p->level[k].axis;
        out[n++] = p->level[k].extent;
        out[n++] = p->level[k].stride;
    }
    return n;
}

bool ing_place_get(const int64_t *at, uint32_t n, ing_place *p) {
    enum { HEAD = 7 };
    memset(p, 0, sizeof *p);
    for (uint32_t k = 0; k < HEAD; k++)
        if (n < HEAD ||
            (k != 4 && (at[k] < 0 || at[k] > (k == 2 || k == 3 ? 1 << 20 : 99))))
            return false;
    if (at[5] > ING_PLACE_MAX_AXES || at[6] > ING_PLACE_MAX_LEVELS ||
        n != HEAD + (uint64_t)at[5] + 3 * (uint64_t)at[6])
        return false;
    p->dtype = (uint8_t)at[0];
    p->elem_rank = (uint8_t)at[1];
    p->elem_shape[0] = (uint32_t)at[2];
    p->elem_shape[1] = (uint32_t)at[3];
    p->at = at[4];
    p->ndim = (uint8_t)at[5];
    p->n_levels = (uint8_t)at[6];
    at += HEAD;
    for (uint32_t a = 0; a < p->ndim; a++) p->from[a] = *at++;
    for (uint32_t k = 0; k < p->n_levels; k++, at += 3) {
        if (at[0] < 0 || at[0] >= ING_PLACE_MAX_AXES) return false;
        p->level[k] = (ing_level){(uint32_t)at[0], at[1], at[2]};
    }
    return ing_place_ok(p);
}

ing_hash128 ing_place_digest(const ing_place *p) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 't',
                   (uint64_t)p->dtype | (uint64_t)p->elem_rank << 8 |
                       (uint64_t)p->ndim << 16);
    ing_hasher_u64(&h, 'e',
                   (uint64_t)p->elem_shape[0] | (uint64_t)p->elem_shape[1] << 32);
    ing_hasher_u64(&h, 'a', (uint64_t)p->at);
    for (uint32_t k = 0; k < p->ndim; k++)
        ing_hasher_u64(&h, 'f', (uint64_t)p->from[k]);
    for (uint32_t k = 0; k < p->n_levels; k++) {
        ing_hasher_u64(&h, 'x', p->level[k].axis);
        ing_hasher_u64(&h, 'n', (uint64_t)p->level[k].extent);
        ing_hasher_u64(&h, 's', (uint64_t)p->level[k].stride);
    }
    return ing_hasher_done(&h);
}

bool ing_place_same(const ing_place *a, const ing_place *b) {
    return ing_hash_eq(ing_place_digest(a), ing_place_digest(b));
}
