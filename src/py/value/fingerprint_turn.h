/* Items that change places: see fingerprint_turn.c and fingerprint_runs.c. */
#ifndef ING_PY_FINGERPRINT_TURN_H
#define ING_PY_FINGERPRINT_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ING_FP_TURN_BYTES = 256
}; /* that are read along the source's own axis at a time */

/* The same in items; half of it for single bytes, whose rows in the copy are too many. */
#define ING_FP_TURN_ITEMS(size) \
    ((size) == 1 ? ING_FP_TURN_BYTES / 2 : ING_FP_TURN_BYTES / (size))

typedef struct ing_fp_axis {
    size_t n;
    ptrdiff_t from, to; /* strides of the source and of the copy, in bytes */
} ing_fp_axis;

/* Items of `size` bytes. pad: x87 long doubles, one or more of 16 bytes; what is behind the
 * value becomes 0. */
typedef struct ing_fp_item {
    size_t size;
    bool pad;
} ing_fp_item;

/* n items at a stride, put side by side. */
void ing_fp_gather(ing_fp_item item, uint8_t *to, const uint8_t *from, ptrdiff_t stride,
                   size_t n);
/* The same with a stride of the copy's own. */
void ing_fp_rows(ing_fp_item item, const ing_fp_axis *rows, uint8_t *to,
                 const uint8_t *from);
/* Two axes, where the copy is side by side along both and b is short; false: not done. */
bool ing_fp_weave(size_t size, const ing_fp_axis *a, const ing_fp_axis *b, uint8_t *to,
                  const uint8_t *from);

/* Two axes: a is the source's smallest stride, along b the copy is side by side. */
void ing_fp_turn(ing_fp_item item, const ing_fp_axis *a, const ing_fp_axis *b,
                 uint8_t *to, const uint8_t *from);

#endif
