/* place: where the elements of a dense field lie in the memory that it shares with others.
 * Plain numbers, no addresses: what the gate says of a field, what the IR's field types hold,
 * what a launch compares by pointer and an entry on disk keeps.
 *
 * A block of memory is laid out in levels, outermost first. A level divides one axis: of the
 * index along that axis it takes (i / inner) % extent, where `inner` is the product of the
 * extents of the levels of that axis further in, and moves by `stride` bytes for each. So
 *
 *     dense(i, 4).dense(ij, (2, 3)).place(x)     x: f32      levels (axis extent stride)
 *                                                            0 4 24,  0 2 12,  1 3 4
 */
#ifndef ING_PLACE_H
#define ING_PLACE_H

#include "base/base.h"

enum { ING_PLACE_MAX_AXES = 12, ING_PLACE_MAX_LEVELS = 32 };

typedef struct ing_level {
    uint32_t axis;
    int64_t extent; /* 1 or more */
    int64_t stride; /* bytes */
} ing_level;

typedef struct ing_place {
    uint8_t dtype;     /* ing_dtype of its scalars */
    uint8_t elem_rank; /* 0 scalar, 1 vector, 2 matrix: row major, without gaps */
    uint8_t ndim;
    uint8_t n_levels;
    uint32_t elem_shape[2];           /* 0 where unused */
    int64_t at;                       /* of the first element in its block, bytes */
    int64_t from[ING_PLACE_MAX_AXES]; /* the first index along each axis; the IR counts
                                         from 0, the front end subtracts */
    ing_level level[ING_PLACE_MAX_LEVELS];
} ing_place;

uint64_t ing_place_elem_bytes(const ing_place *p);
/* Does it describe elements that memory can hold? An axis without levels has extent 1. */
bool ing_place_ok(const ing_place *p);
/* Of a place that is ok. Elements along an axis: */
int64_t ing_place_extent(const ing_place *p, uint32_t axis);
/* Bytes from its first element to the end of its last. */
uint64_t ing_place_span(const ing_place *p);
/* Do two places of one block share no byte? False: they may. */
bool ing_place_apart(const ing_place *a, const ing_place *b);
/* The same elements by as few levels as can be: those of extent 1 are left out, neighbours of
 * one axis that follow each other without a gap are one. */
void ing_place_simplify(ing_place *p);
/* As numbers, for entries on disk; how many there are, at most ING_PLACE_MAX_NUMBERS. */
enum { ING_PLACE_MAX_NUMBERS = 8 + ING_PLACE_MAX_AXES + 3 * ING_PLACE_MAX_LEVELS };
uint32_t ing_place_put(const ing_place *p, int64_t *out);
/* False: not a place that is ok. */
bool ing_place_get(const int64_t *at, uint32_t n, ing_place *p);
ing_hash128 ing_place_digest(const ing_place *p);
bool ing_place_same(const ing_place *a, const ing_place *b);

#endif
