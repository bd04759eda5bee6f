/* Items that change places: see fingerprint_turn.c. */
#ifndef ING_PY_FINGERPRINT_TURN_H
#define ING_PY_FINGERPRINT_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ING_FP_TURN_RUN = 64 }; /* items that are read along the source's own axis */

typedef struct ing_fp_axis {
    size_t n;
    ptrdiff_t from, to; /* strides of the source and of the copy, in bytes */
} ing_fp_axis;

/* n items at a stride, put side by side. */
void ing_fp_gather(size_t item, uint8_t *to, const uint8_t *from, ptrdiff_t stride,
                   size_t n);
/* The same for x87 long doubles of 16 bytes: what is behind the value becomes 0. */
void ing_fp_gather_padded(uint8_t *to, const uint8_t *from, ptrdiff_t stride, size_t n);

/* a: the axis along which the source is contiguous; b: the one along which the copy is. */
bool ing_fp_can_turn(size_t item, const ing_fp_axis *a, const ing_fp_axis *b);
void ing_fp_turn(size_t item, const ing_fp_axis *a, const ing_fp_axis *b, uint8_t *to,
                 const uint8_t *from);

#endif
