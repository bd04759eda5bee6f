/* The task ABI (R24): what native code, the interpreter and the runtime agree on. A
 * change here changes the back-end revision and so every image key. Plain C, no other
 * header of ours, so that src/ir may include it too (the layer checker allows this one).
 *
 * A task is `int32_t task(ing_ctx *, int64_t begin, int64_t end, int64_t chunk)`;
 * non-zero = stopped (error or cancel). Serial tasks are called with begin = 0, end = 1.
 * `chunk` numbers the chunk that begins at `begin`; a task with partial results is called
 * once more at the end, with begin = 0, end = chunks, chunk = -1, to combine them.
 *
 * Each thread of a launch has its own ing_ctx (copied from the launch's), sharing what
 * the pointers point to; `fuel` is therefore never shared. Native code decrements fuel on
 * every `while` back edge and on the back edges of loops that contain loops, and calls
 * ING_ABI_POLL when it reaches zero; a non-zero answer stops the task. The runtime refills
 * fuel. Poll and print are functions that code calls by name; a target says what they are
 * (ing_gen_target in src/gen/gen.h). On the CPU they go through two pointers of the context.
 *
 * A slot is one of the tasks that run at a time: a thread of the CPU, an item of a device's
 * grid. Memory that a task needs for itself is the slot's scratch, never its stack. */
#ifndef ING_ABI_H
#define ING_ABI_H

#include <stdint.h>

enum { ING_ABI_MAX_DETAIL = 16, ING_ABI_MAX_PRINT = 256 };

typedef struct ing_error_slot {
    int32_t code;  /* 0 = none; ing_abi_error; the first one to be set wins (atomic) */
    uint32_t func; /* function ordinal within the task */
    uint32_t node; /* node ordinal in that function's tree */
    uint32_t task; /* filled in by the runtime */
    /* words as in CONST: axis, index, extent; what a message shows. Undefined beyond what was set */
    uint64_t detail[ING_ABI_MAX_DETAIL];
} ing_error_slot;

typedef enum ing_abi_error {
    ING_ABI_OK,
    ING_ABI_ASSERT,
    ING_ABI_BOUNDS,
    ING_ABI_OVERFLOW, /* reported, not an error: detail 0 says which operation (below) */
    ING_ABI_CANCELLED,
    ING_ABI_MEMORY, /* the interpreter ran out of it */
    ING_ABI_VIEW,   /* beyond a view: what (below), and its numbers */
    ING_ABI_LOOP,   /* a loop that cannot run: what (below), and a number */
    ING_ABI_FIELD, /* an index beyond a field: axis, index, end, first index, and the code
                      of the message that names it */
    ING_ABI_ZERO,    /* an integer divided by 0 (debug mode) */
    ING_ABI_SCRATCH, /* a loop's stack of a gradient needs more room than there is */
    ING_ABI_RULE, /* numbers of a launch make its gradient overwrite what it reads again */
    ING_ABI_USER, /* codes from here on index the kernel's message table */
    /* PRINTs that no person reads (src/ad/trace.c): address and bytes of a number */
    ING_ABI_READS = 0x7ffffffb,
    ING_ABI_LOOKS, /* a read that backward code does not repeat */
    ING_ABI_WRITES,
    ING_ABI_MINIMUM, /* a write: backward code looks whose value it left */
    ING_ABI_MAXIMUM,
} ing_abi_error;

/* Operations whose overflow is reported. */
enum {
    ING_ABI_OVERFLOW_ADD,
    ING_ABI_OVERFLOW_SUB,
    ING_ABI_OVERFLOW_MUL,
    ING_ABI_OVERFLOW_SHL
};

/* What is out of bounds, and the details that follow it. */
enum {
    ING_ABI_VIEW_INDEX,   /* index, offset, size */
    ING_ABI_VIEW_SUBVIEW, /* size of the outer one, offset, size */
    ING_ABI_VIEW_MAKE     /* extent of the array, offset, size */
};

/* Why a loop cannot run, and the detail that follows it. */
enum {
    ING_ABI_LOOP_BOUND,  /* a bound of 2**63 or more: u64 */
    ING_ABI_LOOP_FLOAT,  /* a bound that no i32 holds: f64 */
    ING_ABI_LOOP_LENGTH, /* 2**63 iterations or more */
    ING_ABI_LOOP_STEP    /* a step of 0 */
};

/* A PRINT: `code` is its message, or a fault at (func, node); words as in CONST. */
typedef struct ing_printed {
    uint32_t code, func, node, n;
    uint64_t words[];
} ing_printed;

typedef struct ing_ctx {
    uint64_t *args;        /* argument words: see ing_ir_arg in src/ir/ir.h */
    uint8_t *buffer;       /* launch buffer: values that cross tasks, loop bounds */
    uint64_t *rets;        /* one word per kernel result, value in the low bytes */
    ing_error_slot *error; /* shared by the launch */
    int32_t (*poll)(struct ing_ctx *); /* ING_ABI_POLL; non-zero = stop; refills fuel */
    int64_t fuel;
    void *owner; /* the runtime's */
    /* ING_ABI_PRINT; takes a copy; called only by code with a PRINT, and then never NULL. */
    void (*print)(struct ing_ctx *, const ing_printed *);
    /* The numbers of RANDOM are a function of these (src/ir/random.c). The runtime sets key
     * (seed and launch) and place (of the task among those that draw); each iteration of a
     * parallel loop sets the other two; each RANDOM makes one step of `draw`. Code keeps these
     * in registers, and here around calls of funcs that draw. */
    uint64_t key;
    uint64_t place;
    uint64_t stream;
    uint64_t draw;
    /* What the chunks of a reduction left (src/pass/reduce.h); only while its task runs. */
    uint64_t *partials;
    /* Not 0: where the arguments name arrays that the task tallies (src/pass/tally.c), they
     * name copies that only this thread updates. */
    uint64_t tallies;
    /* Memory of this slot, as much as the launch says, undefined at first; NULL: none. */
    uint8_t *scratch;
    uint64_t slot; /* number of the slot, below those of the launch */
    uint64_t scratch_bytes;
    /* ING_ABI_ROOM: scratch for that many bytes, what it holds is kept; `grow` 0: it was sized
     * before, and is not made larger than that. Non-zero: there is none. */
    int32_t (*room)(struct ing_ctx *, uint64_t bytes, int32_t grow);
} ing_ctx;

typedef int32_t (*ing_task_fn)(ing_ctx *, int64_t begin, int64_t end, int64_t chunk);

#define ING_ABI_FUEL  100000      /* back edges between polls: 0.1 to 1 ms of work */
#define ING_ABI_ENTRY "ing_task"  /* the symbol every task image defines */
#define ING_ABI_POLL  "ing_poll"  /* int32_t (ing_ctx *) */
#define ING_ABI_ROOM  "ing_room"  /* int32_t (ing_ctx *, uint64_t, int32_t) */
#define ING_ABI_PRINT "ing_print" /* void (ing_ctx *, const ing_printed *) */

#endif
