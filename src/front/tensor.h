/* What the files of tensors (tensor*.c) share with each other; the rest of src/front uses
 * what front_int.h lists.
 *
 * A tensor is a vector or a matrix. Three forms of value stand for one:
 *   V_RT     up to TENSOR_REG elements: one instruction of tensor type
 *   V_REF    in memory: a variable, an array element, or a temporary of its own (`temp`)
 *   V_TUPLE  with `tensor` set: elements that are values of their own, static ones
 *            included: loop indices, captured vectors, slices and swizzles (then the
 *            elements are places). A matrix is a tuple of such tuples.
 * Rules
 *  TENSOR1 Small tensors are taken apart, computed by element and put together again; what is
 *     larger than TENSOR_REG stays in memory, and beyond TENSOR_UNROLL work is a loop, so
 *     that code does not grow with the size.
 *  TENSOR2 Elements are computed by the functions for scalars: type rules exist once. */
#ifndef ING_FRONT_TENSOR_H
#define ING_FRONT_TENSOR_H

#include "front/front_int.h"

/* Registers hold 16 elements (a 4x4 matrix), as code generation moves them; 64 is where
 * a loop beats straight code in compile time (8x8: 64 operations). */
enum { TENSOR_REG = 16, TENSOR_UNROLL = 64, TENSOR_MAX = 1 << 16 };

typedef struct tensor_shape {
    uint32_t rank, rows, cols; /* vector: rank 1, cols 1 */
    uint32_t n;                /* elements */
    ing_dtype dtype;           /* VOID: of a tuple */
} tensor_shape;

static inline tensor_shape ing_front_shape_of(uint32_t rank, uint32_t rows,
                                              uint32_t cols, ing_dtype t) {
    return (tensor_shape){rank, rows, cols, rows * cols, t};
}

/* ---- tensor.c: elements and memory ------------------------------------------------------ */

/* The shape of a tensor in any of its forms; false: it is none. */
bool ing_front_tensor_shape(const frame *fr, const value *v, tensor_shape *out);
ing_type ing_front_tensor_type(frame *fr, const tensor_shape *s);
const char *ing_front_shape_text(frame *fr, const tensor_shape *s);
/* Element k in row-major order: a scalar value, or a place when the tensor is one. */
value ing_front_tensor_place(frame *fr, const value *v, const tensor_shape *s,
                             uint32_t k);
value ing_front_tensor_place_dyn(frame *fr, const value *v, const tensor_shape *s,
                                 uint32_t inst);
ing_status ing_front_tensor_elem(frame *fr, ing_node at, const value *v,
                                 const tensor_shape *s, uint32_t k, value *out);
/* A tensor of these scalars, converted to s->dtype, or to their common type when VOID. */
ing_status ing_front_tensor_make(frame *fr, ing_node at, tensor_shape s,
                                 const value *elems, value *out);
/* The same, but numbers without a type (meet.c) stay so: a tuple of them. */
ing_status ing_front_tensor_gather(frame *fr, ing_node at, tensor_shape s,
                                   const value *elems, value *out);
/* The type that what meets v gets to see: VOID, or F64 where it decides (NUMBER1). */
ing_dtype ing_front_tensor_meets(const frame *fr, const value *v);
/* A tuple with `tensor` set of these elements. */
value ing_front_tensor_tuple(frame *fr, const tensor_shape *s, const value *elems);
/* Lists, tuples and host vectors as tensors; *ok false: it cannot be one. */
ing_status ing_front_tensor_from(frame *fr, ing_node at, const value *v, ing_dtype t,
                                 value *out, bool *ok);
/* The same, but a sequence of numbers without a type stays one. */
ing_status ing_front_tensor_read(frame *fr, ing_node at, const value *v, value *out,
                                 bool *ok);
value ing_front_tensor_temp(frame *fr, const tensor_shape *s);
/* In memory: V_REF; what is in registers is put into a temporary. A tuple becomes one of
 * that type (VOID: its own). */
ing_status ing_front_tensor_spill(frame *fr, ing_node at, const value *v, ing_dtype t,
                                  value *out);

typedef ing_status (*tensor_fn)(frame *fr, ing_node at, void *self, const value *in,
                                value *out);
enum { TENSOR_MAX_IN = 8 };
/* out[k] = fn(in[0][k], in[1][k], ...); scalars are the same for every k (TENSOR1). */
ing_status ing_front_tensor_map(frame *fr, ing_node at, const value *in, uint32_t n_in,
                                tensor_fn fn, void *self, value *out);
/* A loop over [0, n): begin gives the index, end closes it. */
typedef struct tensor_loop {
    uint32_t id, n;
} tensor_loop;
ing_status ing_front_tensor_loop(frame *fr, ing_node at, uint32_t n, tensor_loop *l);
void ing_front_tensor_loop_end(frame *fr, tensor_loop *l);

/* ---- tensor_linear.c ---------------------------------------------------------------------- */

ing_status ing_front_matmul(frame *fr, ing_node at, const value *l, const value *r,
                            value *out);

#endif
