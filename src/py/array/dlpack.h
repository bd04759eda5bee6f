/* The DLPack C ABI, as its specification lays it out in memory (versions 0 and 1), under
 * our own names. Only the CPU is known here. */
#ifndef ING_PY_DLPACK_H
#define ING_PY_DLPACK_H

#include <stdint.h>

enum { ING_DL_CPU = 1 };
enum { ING_DL_INT = 0, ING_DL_UINT = 1, ING_DL_FLOAT = 2, ING_DL_BOOL = 6 };
enum { ING_DL_READ_ONLY = 1, ING_DL_IS_COPIED = 2 };

typedef struct ing_dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL = row major (version 0 only) */
    uint64_t byte_offset;
} ing_dl_tensor;

/* In a capsule called "dltensor". */
typedef struct ing_dl_v0 {
    ing_dl_tensor tensor;
    void *owner;
    void (*deleter)(struct ing_dl_v0 *);
} ing_dl_v0;

/* In a capsule called "dltensor_versioned". Of another major version only the first
 * three members may be used. */
typedef struct ing_dl_v1 {
    struct {
        uint32_t major, minor;
    } version;
    void *owner;
    void (*deleter)(struct ing_dl_v1 *);
    uint64_t flags;
    ing_dl_tensor tensor;
} ing_dl_v1;

/* Describes a tensor without owning it: valid until the caller gives up control of the
 * object. 0, or -1 with a Python exception set. */
typedef int (*ing_dl_view_fn)(void *object, ing_dl_tensor *out);

/* The table of C functions that a type of tensors may carry (version 1.3) in a capsule
 * called "dlpack_exchange_api". Of another major version only the first two members may
 * be used. */
typedef struct ing_dl_exchange {
    struct {
        uint32_t major, minor;
    } version;
    struct ing_dl_exchange *older;
    void (*allocate)(void);
    void (*from_object)(void);
    void (*to_object)(void);
    ing_dl_view_fn view; /* may be NULL */
    void (*stream)(void);
} ing_dl_exchange;

#define ING_DL_NAME_V0       "dltensor"
#define ING_DL_NAME_V1       "dltensor_versioned"
#define ING_DL_NAME_EXCHANGE "dlpack_exchange_api"
#define ING_DL_USED_V0       "used_dltensor"
#define ING_DL_USED_V1       "used_dltensor_versioned"

#endif
