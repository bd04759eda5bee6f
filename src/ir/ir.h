/* ir: the intermediate representation. Structured (regions for branches and loops),
 * typed, in flat arrays with integer ids: trivially hashed, printed, parsed, verified
 * and interpreted. The text form round-trips; the interpreter is the oracle.
 *
 * A module holds types, a table of kernel arguments, functions, and (after the split
 * pass) tasks. An instruction's id is the value it yields: usable after it in its
 * block and in blocks nested below. Locals are ALLOCAs; LLVM makes SSA of them.
 *
 * Rules
 *  I1 ids start at 1; 0 is "none". Builder calls accept and return 0 after a failure;
 *     the failure is sticky in mod->arena.failed and reported once by ing_ir_ok.
 *  I2 a block is extra[off] = count, then that many instruction ids, in order.
 *  I3 an instruction belongs to at most one block and is used only where it dominates.
 *     (What the builder is given after a block ended belongs to none and means nothing.)
 *  I4 only the last instruction of a block may have flag T.
 *  I5 in a kernel function, LOOPs with ING_IR_PARALLEL stand only in the outermost block;
 *     after the split pass each is the only one of a task of its own, and may stand in
 *     loops over rows, chunks and blocks there (src/pass/shape.c, src/pass/reduce.h). Over
 *     several axes it counts the places of AXES: each iteration has one number, row major,
 *     which no target changes; R23's chunks and the streams of RANDOM are made of it.
 *  I6 names and locations never change meaning: text and digests can drop them. The
 *     location of a CHECK, and of a PRINT that reports a fault, is data (the code carries
 *     it, R19): text always keeps it.
 *  I8 DO_WHILE, CHECKPOINT, FORK and SECTION stand only in a kernel, in its outermost block
 *     or directly inside of each other: a DO_WHILE in a DO_WHILE, a CHECKPOINT or a FORK in
 *     a DO_WHILE, SECTIONs and nothing with an effect in a FORK. For I5 their blocks count
 *     as outermost. The flag of one is an ARRAY instruction.
 *  I7 blocks nest at most ING_IR_MAX_NESTING deep and calls form no cycle, so that passes
 *     may recurse over blocks (not over calls). */
#ifndef ING_IR_H
#define ING_IR_H

#include "gate/place.h"

enum { ING_IR_MAX_NESTING = 250, ING_IR_MAX_TYPE_DEPTH = 16 };
enum { ING_IR_MAX_TYPE_SIZE = 1 << 26, ING_IR_MAX_BUFFER = 1 << 30 };

enum { ING_IR_MAX_CHUNK_SHIFT = 12, ING_IR_MAX_PARTIALS = 16 }; /* R23 */
enum { ING_IR_MAX_ROW = 1 << ING_IR_MAX_CHUNK_SHIFT };
enum {                            /* pairs that a launch may have to compare */
       ING_IR_MAX_APART = 4096,   /* of the passes: some us */
       ING_IR_MAX_RULE = 1 << 16, /* of a gradient, where arrays have moved */
};
enum { ING_IR_MAX_TALLIES = 4 }; /* arrays of one task, src/pass/tally.c */

typedef enum ing_op {
    ING_OP_NONE,
#define OP(name, text, operands, result, flags, class, derivative) ING_OP_##name,
#include "ir/op.def"
#undef OP
    ING_OP_N
} ing_op;

enum {
    ING_OPF_P = 1,
    ING_OPF_R = 2,
    ING_OPF_W = 4,
    ING_OPF_T = 8,
    ING_OPF_C = 16,
    ING_OPF_K = 32
};

typedef enum ing_op_class { /* see op.def */
                            ING_OPC_NONE,
                            ING_OPC_INPUT,
                            ING_OPC_PIECE,
                            ING_OPC_MEMORY,
                            ING_OPC_CHEAP, /* from here ... */
                            ING_OPC_COMPARE,
                            ING_OPC_DIVIDE,
                            ING_OPC_ROOT,
                            ING_OPC_MATH, /* ... to here: arithmetic, of one or two operands of one type */
                            ING_OPC_CONVERT,
                            ING_OPC_AGGREGATE,
                            ING_OPC_SERVICE,
                            ING_OPC_CONTROL,
                            ING_OPC_REGION
} ing_op_class;

typedef struct ing_op_info {
    const char *text;
    const char *operands;
    char result;
    uint8_t flags;
    uint8_t class; /* ing_op_class */
} ing_op_info;
const ing_op_info *ing_op_get(ing_op op);
static inline ing_op_class ing_op_class_of(uint32_t op) {
    return (ing_op_class)ing_op_get((ing_op)op)->class;
}
static inline bool ing_op_is_arith(uint32_t op) {
    ing_op_class c = ing_op_class_of(op);
    return c >= ING_OPC_CHEAP && c <= ING_OPC_MATH;
}
static inline bool ing_op_is_pure(uint32_t op) {
    return ing_op_get((ing_op)op)->flags & ING_OPF_P;
}

#define ING_IR_ATOMIC_LIST(X) \
    X(ADD, "add")             \
    X(SUB, "sub")             \
    X(MUL, "mul")             \
    X(MIN, "min")             \
    X(MAX, "max")             \
    X(AND, "and")             \
    X(OR, "or")               \
    X(XOR, "xor")             \
    X(XCHG, "xchg")
typedef enum ing_ir_atomic {
#define X(name, text) ING_IR_ATOMIC_##name,
    ING_IR_ATOMIC_LIST(X)
#undef X
        ING_IR_ATOMIC_N
} ing_ir_atomic;

/* ---- types ------------------------------------------------------------------------- */

/* Below ING_DTYPE_N: that scalar (0 = void); else an index in the module's table. */
typedef uint32_t ing_type;

typedef enum ing_type_kind {
    ING_TYPE_SCALAR,
    ING_TYPE_REF,    /* address of elem */
    ING_TYPE_ARRAY,  /* an array argument: elem, ndim, layout, grad; a field: place */
    ING_TYPE_TENSOR, /* vector (cols = 1, rank 1) or matrix of dtype */
    ING_TYPE_STRUCT, /* members; also the type of multi-value returns */
} ing_type_kind;

enum { ING_MAX_NDIM = 12 };
_Static_assert(ING_PLACE_MAX_AXES == (int)ING_MAX_NDIM, "fields have as many axes");

typedef struct ing_type_info {
    uint8_t kind;            /* ing_type_kind */
    uint8_t dtype;           /* scalar, tensor */
    uint8_t rank;            /* array: ndim; tensor: 1 or 2 */
    uint8_t grad;            /* array: carries a gradient array */
    ing_type elem;           /* ref, array */
    uint32_t rows, cols;     /* tensor */
    uint32_t n_members;      /* struct */
    const ing_type *members; /* struct, in the arena */
    const uint32_t *names;   /* struct: atom ids, 0 for tuples */
    const uint32_t *offsets; /* struct: of the members in memory */
    /* array: layout[k] = logical axis at memory position k, outermost first; identity =
     * row major */
    uint8_t layout[ING_MAX_NDIM];
    const ing_place *place; /* array: a dense field, in the arena; NULL = it is none */
    uint32_t size, align;   /* in memory; a ref is 8 bytes, an array value also */
    uint8_t depth;          /* nesting of the type, bounds recursion over it */
} ing_type_info;

/* ---- module ------------------------------------------------------------------------- */

/* inst.flags */
enum {
    ING_IR_PARALLEL = 1, /* LOOP: iterations may run in any order and at once */
    ING_IR_SERIAL = 2,   /* LOOP at top level that the user serialised */
    ING_IR_NSW = 4,      /* ADD/SUB/MUL: a counter, or used only by a subscript (R22) */
    ING_IR_PRIVATE = 8,  /* ATOMIC: private target or serial code: a plain update */
    ING_IR_VOLATILE = 16, /* LOAD: made each time, whatever was read before */
    ING_IR_ORDERED = 32,  /* LOOP: floats in it are added up in the order of the text */
    ING_IR_TALLY = 64,    /* ATOMIC: plain while the thread has a copy of the array
                             (ing_ctx.tallies) */
    ING_IR_AXIS =
        128, /* ADD: of a MUL by a constant n and an index below n, which a loop over
                          the levels of a field took apart */
    ING_IR_CONSTANT = 256, /* LOAD: of no derivative (qd.stop_grad) */
    ING_IR_WOVEN = 512,    /* LOOP that is parallel: within an iteration the order of
                              accesses matters (src/pass/weave.c) */
    ING_IR_STRIDED =
        1024, /* LOOP that writes every m-th place (src/pass/stride.c): first + m * its index */
    ING_IR_TURNED = 2048, /* LOOP that turns a tile (src/pass/turn.c) */
    ING_IR_NUMBERS =
        4096,           /* MIN, MAX of floats that are no NaN, where any zero will do */
    ING_IR_RARE = 8192, /* LOOP over what is left of others: not worth much code */
    ING_IR_WIDE = 16384, /* LOOP over lanes that is written as vectors
                             (src/gen/llvm_wide.c says of which form it is) */
    ING_IR_FEW = 32768,  /* LOOP that most often runs once or not at all: so estimates
                             have it */
};

typedef struct ing_ir_inst {
    uint16_t op; /* ing_op */
    uint16_t flags;
    ing_type type; /* of the result */
    uint32_t a, b, c;
    uint32_t loc; /* node ordinal in the function's tree, 0 = none (R19) */
} ing_ir_inst;

typedef enum ing_ir_func_kind {
    ING_IR_KERNEL,
    ING_IR_FUNC,
    ING_IR_TASK
} ing_ir_func_kind;

typedef struct ing_ir_func {
    uint32_t name; /* atom, for people */
    uint32_t tree; /* number of its syntax tree in the front end's table, for messages;
                      kept by split and extract, in no text and no digest */
    uint8_t kind;  /* ing_ir_func_kind */
    ing_type ret;  /* FUNC: value type or void */
    uint32_t n_params;
    const ing_type *params;     /* FUNC */
    ing_vec(ing_ir_inst) insts; /* [0] unused */
    ing_vec(uint32_t) extra;    /* [0] unused */
    uint32_t body;              /* block */
} ing_ir_func;

/* A kernel argument as code sees it: words in ing_ctx.args (src/gen/abi.h). A scalar
 * takes one word; an array takes 1 (data) + ndim (extents) + grad (1 if it has one); a field
 * one, the address of its block: all else is in its type. Fields of one block share it. */
typedef struct ing_ir_arg {
    ing_type type; /* scalar or array */
    uint32_t word; /* first word */
    /* array that is no field: extent of the axis that is innermost in memory, up to ING_IR_MAX_LAST, if code
     * may rely on it; 0: known at run time alone */
    uint8_t last;
} ing_ir_arg;

enum { ING_IR_MAX_LAST = 16 };

typedef enum ing_ir_task_kind {
    ING_IR_TASK_SERIAL,
    ING_IR_TASK_RANGE
} ing_ir_task_kind;

typedef enum ing_ir_bound_at {
    ING_IR_BOUND_CONST,  /* value */
    ING_IR_BOUND_BUFFER, /* an i64 at byte `offset` of the launch buffer */
    ING_IR_BOUND_WORD,   /* argument word number `offset`: an extent or an integer */
} ing_ir_bound_at;

/* Tasks, bounds, tallies and steps are part of a variant's record: tables of members. */
#define ING_IR_BOUND_MEMBERS(ONE, FIXED, UP_TO, LIST) \
    ONE(uint8_t, at) /* ing_ir_bound_at */            \
    ONE(int64_t, value)                               \
    ONE(uint32_t, offset)
typedef struct ing_ir_bound { /* of a range task */
    ING_MEMBERS(ING_IR_BOUND_MEMBERS)
} ing_ir_bound;

/* An array that the loop of a range task updates at many places, in one way: of integers, exact in any
 * order, so that threads may keep copies of it and put them together at the end; of floats a sum, for
 * which stretches of the loop have copies, added in their order (src/pass/tally.c). */
#define ING_IR_TALLY_MEMBERS(ONE, FIXED, UP_TO, LIST)                                \
    ONE(uint32_t, word)  /* of the array's argument */                               \
    ONE(uint32_t, width) /* scalars per element; of a field, in all that it spans */ \
    ONE(uint64_t, at)    /* of a field: from the address in its word */              \
    ONE(uint8_t, ndim)   /* 0 of a field */                                          \
    ONE(uint8_t, dtype)  /* an integer, not u1; f32 or f64 */                        \
    ONE(uint8_t, kind)   /* ing_ir_atomic: ADD, MUL, MIN, MAX, AND, OR or XOR */     \
    ONE(uint32_t, times) /* floats: updates of an iteration, times those below */    \
    ONE(uint32_t, over)  /* an extent or integer: argument word + 1; 0 = none */     \
    ONE(uint32_t, over2) /* as that */
typedef struct ing_ir_tally {
    ING_MEMBERS(ING_IR_TALLY_MEMBERS)
} ing_ir_tally;

/* may_run_long: WHILEs or trip counts that nobody knows: release the GIL.
 * chunk_shift: of a task with partial results: iterations per chunk, as a shift; row: of other range
 * tasks: iterations of a row, 0: any. A task is called for whole chunks or rows.
 * block: iterations that go side by side, all at once (src/pass/lanes.h), 0: any. A task is called for whole
 * blocks where there are enough for the threads.
 * place: its number among the tasks that draw random numbers; in no text and no digest: the
 * conductor counts them. */
#define ING_IR_TASK_MEMBERS(ONE, FIXED, UP_TO, LIST)                                  \
    ONE(uint8_t, kind) /* ing_ir_task_kind */                                         \
    ONE(uint8_t, may_run_long)                                                        \
    ONE(uint8_t, chunk_shift)                                                         \
    ONE(uint32_t, row)                                                                \
    ONE(uint32_t, block)                                                              \
    ONE(uint32_t, partials) /* words that each chunk leaves; 0 = none */              \
    ONE(uint32_t, cost)     /* rough instructions per iteration (range) or in all */  \
    ONE(ing_ir_bound, begin)                                                          \
    ONE(ing_ir_bound, end)                                                            \
    ONE(uint32_t, loc) /* of its loop or first statement, for people; in no digest */ \
    ONE(uint32_t, place)                                                              \
    UP_TO(ing_ir_tally, tallies, ING_IR_MAX_TALLIES)
typedef struct ing_ir_task {
    /* index in funcs, kind ING_IR_TASK: of the module, not of the record */
    uint32_t func;
    ING_MEMBERS(ING_IR_TASK_MEMBERS)
} ing_ir_task;

/* What a graph kernel does, in order; a kernel without steps runs its tasks one by one. */
#define ING_IR_STEP_LIST(X) \
    X(TASK, "task")         \
    X(LOOP, "loop")         \
    X(LOOP_END, "again")    \
    X(STAGE, "stage")       \
    X(STAGE_END, "yield")   \
    X(FORK, "fork")         \
    X(SECTION, "section")   \
    X(JOIN, "join")
typedef enum ing_ir_step_kind {
#define X(name, text) ING_IR_STEP_##name,
    ING_IR_STEP_LIST(X)
#undef X
        ING_IR_STEP_N
} ing_ir_step_kind;

/* at: of a TASK its number; of a LOOP its LOOP_END, and back; of STAGE and STAGE_END the
 * checkpoint's number; of a FORK its JOIN; of a SECTION the next one or JOIN.
 * word: of LOOP_END and STAGE_END the argument word that is the flag's address. */
#define ING_IR_STEP_MEMBERS(ONE, FIXED, UP_TO, LIST) \
    ONE(uint8_t, kind) /* ing_ir_step_kind */        \
    ONE(uint32_t, at)                                \
    ONE(uint32_t, word)
typedef struct ing_ir_step {
    ING_MEMBERS(ING_IR_STEP_MEMBERS)
} ing_ir_step;

/* Do the steps form a program over that many tasks, words and checkpoints? (steps.c) */
bool ing_ir_steps_ok(const ing_ir_step *s, uint32_t n, uint32_t n_tasks,
                     uint32_t n_words, uint32_t n_stages);

typedef struct ing_ir_apart { /* array arguments that share no memory, says the code */
    uint32_t a, b;            /* a < b */
} ing_ir_apart;

typedef struct
    ing_ir_rule { /* of a gradient: arguments that must share no memory (src/ad/rule.c) */
    uint32_t read, written, func, loc;
} ing_ir_rule;

/* What a pass decided, for people (src/pass/remark.def); in no text and no digest. */
typedef struct ing_ir_remark {
    uint32_t tree, loc; /* of the function, and of the instruction in it */
    uint32_t word;      /* + 1, of the array that it is about; 0: none */
    uint32_t what;
} ing_ir_remark;
typedef ing_vec(ing_ir_remark) ing_ir_remarks;

typedef struct ing_ir_mod {
    ing_arena arena;
    ing_atoms atoms;
    ing_vec(ing_type_info) types; /* the first ING_DTYPE_N are the scalars */
    ing_map type_map;             /* structural digest -> id + 1 */
    bool bad_type;      /* what failed was a type that cannot exist, not memory */
    uint32_t bad_loc;   /* where a pass found what it refuses, 0 = unknown */
    uint32_t bad_tree;  /* of the function that this is in */
    const char *remedy; /* what to do about it, NULL = nothing to say */
    /* Scratch is sized before a launch (ROOM with b = 0; src/ad/size.c): how many times what is
     * found that a slot needs; 0: it is not. */
    uint8_t sized;
    int64_t
        stack_entries; /* that each stack of a gradient has room for, 0 = as many as needed */
    uint8_t *lost; /* per argument: ING_IR_READS_LOST, in the arena; NULL: none */
    ing_vec(ing_ir_func *) funcs; /* [0] is the kernel before the split */
    ing_vec(ing_ir_arg) args;     /* scalars and arrays, in order of first use */
    uint32_t n_words;             /* args in all */
    ing_vec(ing_type) rets;       /* kernel results: scalars */
    ing_vec(ing_ir_task) tasks;   /* after the split */
    ing_vec(ing_ir_step) steps;   /* after the split of a graph kernel */
    uint32_t n_stages;            /* CHECKPOINTs */
    ing_vec(ing_ir_apart) apart;  /* what passes assumed; a launch must compare (R22) */
    ing_vec(ing_ir_rule) rule;
    /* of a gradient: two arguments, then what holds their gradients; both are one or apart */
    ing_vec(ing_ir_apart) views;
    /* the program sees to it that subscripts made of data do not meet (AD3) */
    bool promised;
    /* of `apart`, at its start: a launch where they share memory is refused */
    uint32_t n_rule;
    uint32_t n_views;      /* then so many of `views`, two pairs each */
    uint32_t buffer_bytes; /* launch buffer, after the split */
    ing_ir_remarks remarks;
} ing_ir_mod;

ing_ir_mod *ing_ir_mod_new(void); /* NULL: no memory */
void ing_ir_mod_free(ing_ir_mod *m);
bool ing_ir_ok(const ing_ir_mod *m); /* false: memory ran out while building */

const ing_type_info *ing_ir_type(const ing_ir_mod *m, ing_type t);
ing_type ing_ir_type_ref(ing_ir_mod *m, ing_type elem);
ing_type ing_ir_type_array(ing_ir_mod *m, ing_type elem, uint32_t ndim, bool grad,
                           const uint8_t *layout); /* layout NULL = row major */
/* A dense field; its levels are simplified, its layout is the order of its outermost levels. */
ing_type ing_ir_type_field(ing_ir_mod *m, const ing_place *place);
/* Words of an argument of type t. */
uint32_t ing_ir_type_words(const ing_ir_mod *m, ing_type t);
ing_type ing_ir_type_tensor(ing_ir_mod *m, ing_dtype t, uint32_t rows, uint32_t cols,
                            uint32_t rank);
ing_type ing_ir_type_struct(ing_ir_mod *m, const ing_type *members,
                            const uint32_t *names, uint32_t n);
/* Size and alignment in memory, as C lays it out. */
uint32_t ing_ir_type_size(const ing_ir_mod *m, ing_type t);
uint32_t ing_ir_type_align(const ing_ir_mod *m, ing_type t);

/* Adds a kernel argument and gives it its words; returns its number. */
uint32_t ing_ir_add_arg(ing_ir_mod *m, ing_type t);
/* The same for a field that lies in the block of field `with`, an argument before it, and has
 * the word of that one; `with` not below the number of arguments: as ing_ir_add_arg. */
uint32_t ing_ir_add_arg_with(ing_ir_mod *m, ing_type t, uint32_t with);
/* The first argument that has the word of argument k. */
uint32_t ing_ir_arg_first(const ing_ir_mod *m, uint32_t k);
/* block[k]: the first field among the arguments that lies in the block of argument k; its own
 * number for all others. Gives fields of one block one word, and makes names for one field one
 * argument: the others stay in the table, unread. Before the split. */
void ing_ir_share_words(ing_ir_mod *m, const uint32_t *block);
uint32_t ing_ir_add_func(ing_ir_mod *m, ing_ir_func_kind kind, const char *name,
                         const ing_type *params, uint32_t n_params, ing_type ret);

/* ---- building ------------------------------------------------------------------------ */

typedef struct ing_ir_builder {
    ing_ir_mod *mod;
    ing_ir_func *func;
    uint32_t loc;             /* put on each new instruction */
    ing_vec(uint32_t) open;   /* instruction ids of all open blocks, stacked */
    ing_vec(uint32_t) starts; /* where each open block starts in `open` */
} ing_ir_builder;

/* Opens the function's body. */
void ing_ir_builder_init(ing_ir_builder *b, ing_ir_mod *m, uint32_t func);
void ing_ir_builder_done(ing_ir_builder *b); /* closes the body, frees the builder */
uint32_t ing_ir_emit(ing_ir_builder *b, ing_op op, ing_type t, uint32_t a, uint32_t b_,
                     uint32_t c);
/* The same of counters, whose sums and products never wrap (R22). */
uint32_t ing_ir_emit_count(ing_ir_builder *b, ing_op op, ing_type t, uint32_t a,
                           uint32_t b_);
/* The same at the end of the block around the innermost open one: a local that outlives it. */
uint32_t ing_ir_emit_above(ing_ir_builder *b, ing_op op, ing_type t, uint32_t a,
                           uint32_t b_, uint32_t c);
uint32_t ing_ir_const_int(ing_ir_builder *b, ing_dtype t, int64_t v); /* wraps to t */
uint32_t ing_ir_const_float(ing_ir_builder *b, ing_dtype t, double v);
uint32_t ing_ir_elem(ing_ir_builder *b, uint32_t array, const uint32_t *idx,
                     uint32_t n);
uint32_t ing_ir_call(ing_ir_builder *b, uint32_t func, const uint32_t *args,
                     uint32_t n);
uint32_t ing_ir_make(ing_ir_builder *b, ing_type t, const uint32_t *items, uint32_t n);
/* AXES: begin and end of each of n axes. */
uint32_t ing_ir_axes(ing_ir_builder *b, const uint32_t *bounds, uint32_t n);
/* PRINT and DETAIL: `a` as given, the values as the list. */
void ing_ir_emit_list(ing_ir_builder *b, ing_op op, uint32_t a, const uint32_t *ids,
                      uint32_t n);
/* Instructions emitted between begin and end form the block; its offset is returned. */
void ing_ir_block_begin(ing_ir_builder *b);
uint32_t ing_ir_block_end(ing_ir_builder *b);
/* The index of a loop is used inside its body before the LOOP is complete: reserve the
 * id first, emit the body, then finish it (which also appends it to the outer block). */
uint32_t ing_ir_loop_reserve(ing_ir_builder *b, ing_type index);
void ing_ir_loop_finish(ing_ir_builder *b, uint32_t loop, uint32_t begin, uint32_t end,
                        uint32_t body, uint16_t flags);
/* Rebuilding a function in place, for passes: `old` takes what it held, the function is
 * empty and open; end closes it and frees `old`. */
void ing_ir_rebuild_begin(ing_ir_builder *b, ing_ir_mod *m, uint32_t func,
                          ing_ir_func *old);
void ing_ir_rebuild_end(ing_ir_builder *b, ing_ir_func *old);
/* True when the innermost open block already ended (I4): what follows is unreachable. */
bool ing_ir_block_ended(const ing_ir_builder *b);

static inline uint64_t ing_ir_const_bits(const ing_ir_inst *i) {
    return (uint64_t)i->a | (uint64_t)i->b << 32;
}

/* ---- reading ------------------------------------------------------------------------- */

static inline const ing_ir_inst *ing_ir_at(const ing_ir_func *f, uint32_t id) {
    return &f->insts.at[id];
}
static inline uint32_t ing_ir_id_of(const ing_ir_func *f, const ing_ir_inst *i) {
    return (uint32_t)(i - f->insts.at);
}
static inline uint32_t ing_ir_block_len(const ing_ir_func *f, uint32_t block) {
    return f->extra.at[block];
}
static inline const uint32_t *ing_ir_block_ids(const ing_ir_func *f, uint32_t block) {
    return f->extra.at + block + 1;
}

typedef struct ing_ir_uses { /* the value operands of one instruction */
    uint32_t fixed[3], n_fixed;
    const uint32_t *list; /* then these */
    uint32_t n_list;
} ing_ir_uses;
void ing_ir_inst_uses(const ing_ir_func *f, const ing_ir_inst *i, ing_ir_uses *u);
/* The blocks of one instruction, in order; returns how many. */
uint32_t ing_ir_inst_blocks(const ing_ir_inst *i, uint32_t out[2]);

/* Copying instructions between functions, for passes: map[id in `from`] = id in the
 * builder's function, 0 = not copied yet. Types must mean the same in both modules. */
typedef struct ing_ir_copy {
    ing_ir_builder *b;
    const ing_ir_func *from;
    uint32_t *map;            /* from->insts.len entries */
    const uint32_t *func_map; /* new number of each function, or NULL = unchanged */
    const ing_type *type_map; /* new id of each type, or NULL = unchanged */
    const uint8_t *live; /* skip instructions whose entry is 0, or NULL = copy all */
    /* Asked before each instruction; true = it was dealt with (map[id] set if it has a
     * value). NULL = copy all. */
    bool (*hook)(struct ing_ir_copy *c, uint32_t id);
    void *self; /* the hook's */
} ing_ir_copy;
void ing_ir_copy_inst(ing_ir_copy *c, uint32_t id);     /* with its blocks */
void ing_ir_copy_block(ing_ir_copy *c, uint32_t block); /* into the open block */

/* Functions that task k reaches, itself first, in the order of first use: entry j is the
 * module's number of the function that errors and extracted modules call j. Malloc'ed
 * (ing_free). */
ing_status ing_ir_task_funcs(const ing_ir_mod *m, uint32_t k, uint32_t **funcs,
                             uint32_t *n, ing_err *e);
/* The same from any function on: before the split, from the kernel. */
ing_status ing_ir_func_reaches(const ing_ir_mod *m, uint32_t func, uint32_t **funcs,
                               uint32_t *n, ing_err *e);
/* Arrays whose `last` is worth knowing: some subscript of that axis is a constant or the index of
 * a short loop, here or in a func that is given them. One byte for each argument. False: no
 * memory. */
bool ing_ir_last_wanted(const ing_ir_mod *m, uint8_t *wanted);
/* The extent of that axis of an array value, if it is known; 0: it is not. */
uint32_t ing_ir_known_extent(const ing_ir_mod *m, const ing_ir_func *f, uint32_t array,
                             uint32_t axis);
/* All functions, callees before callers; ING_INTERNAL on a cycle. Malloc'ed. */
ing_status ing_ir_call_order(const ing_ir_mod *m, uint32_t **funcs, ing_err *e);

/* ---- evaluation: the one definition of scalar operations ------------------------------- */

/* Values are as in CONST: integers extended to 64 bits, floats as their own bits. */
uint64_t ing_ir_norm(ing_dtype t, uint64_t bits); /* wraps to t, extends again */
/* Binary and unary arithmetic and comparisons on operands of type t (b is ignored by unary
 * operations). False: the operation is not defined for t. */
bool ing_ir_eval(ing_op op, ing_dtype t, uint64_t a, uint64_t b, uint64_t *out);
uint64_t ing_ir_eval_cast(ing_dtype from, ing_dtype to, uint64_t v);
/* AXES and AXIS: bounds are begin and end of each of n axes; places there are in all, and the
 * index of one of them on an axis. */
uint64_t ing_ir_axes_count(const uint64_t *bounds, uint32_t n);
uint64_t ing_ir_axes_index(const uint64_t *bounds, uint32_t n, uint64_t number,
                           uint32_t axis);
/* The integer with which an update of this kind changes nothing. */
uint64_t ing_ir_neutral(ing_ir_atomic kind, ing_dtype t);
/* The tally of an array or field of that type, but for its word and kind; false: there is none,
 * its scalars are no such integers, or it is too large. */
bool ing_ir_tally_of(const ing_ir_mod *m, ing_type array, ing_ir_tally *out);
enum { ING_IR_TALLY_TRIPS = -1 }; /* over: half of the iterations that the loop has */
/* Is there a tally of such numbers, updated in that way? */
bool ing_ir_tally_ok(ing_ir_atomic kind, ing_dtype t);
static inline bool ing_ir_tally_over_ok(uint32_t over, uint32_t n_words) {
    return over <= n_words || over == (uint32_t)ING_IR_TALLY_TRIPS;
}

/* ---- text, checks, digest, execution ---------------------------------------------------- */

enum { ING_IR_PRINT_LOCS = 1, ING_IR_PRINT_NAMES = 2 };
void ing_ir_print(const ing_ir_mod *m, uint32_t flags, ing_bytes *out);
void ing_ir_print_type(const ing_ir_mod *m, ing_type t, uint32_t flags, ing_bytes *out);
ing_status ing_ir_parse(const char *text, size_t n, ing_ir_mod **out, ing_err *e);
/* Checks every rule above and every operand's type; ING_INTERNAL with the reason. */
ing_status ing_ir_verify(const ing_ir_mod *m, ing_err *e);

/* A module with only task `k`, the functions it reaches (renumbered in first-use order),
 * and the whole argument table. Its text without names and locations is what R18 hashes. */
ing_status ing_ir_extract_task(const ing_ir_mod *m, uint32_t k, ing_ir_mod **out,
                               ing_err *e);
/* Digest of a module as extracted: its text without names and locations. */
ing_status ing_ir_digest(const ing_ir_mod *m, ing_hash128 *out, ing_err *e);
/* Of what it says, however functions are numbered and shared (content.c). */
ing_status ing_ir_content(const ing_ir_mod *m, ing_hash128 *out, ing_err *e);

/* written[k] = 1 for every argument k that the module may write; one byte per argument. */
void ing_ir_written_args(const ing_ir_mod *m, uint8_t *written);
typedef enum ing_ir_reads {
    ING_IR_READS_NOTHING,
    ING_IR_READS_WORDS,
    ING_IR_READS_ELEMENTS,
    ING_IR_READS_LOST /* of a gradient: the kernel gives it values whose derivatives are lost */
} ing_ir_reads;
/* reads[k]: what the module reads of argument k. */
void ing_ir_read_args(const ing_ir_mod *m, uint8_t *reads);
/* draws[k] = 1 for every function k that may draw random numbers, itself or in a call. */
ing_status ing_ir_draws(const ing_ir_mod *m, uint8_t *draws, ing_err *e);
/* The same of one instruction, with its blocks. */
bool ing_ir_inst_draws(const ing_ir_func *f, const ing_ir_inst *i,
                       const uint8_t *draws);

/* ---- random numbers: the one definition of RANDOM (random.c) ------------------------------ */

#define ING_PHILOX_M0 0xD2511F53u
#define ING_PHILOX_M1 0xCD9E8D57u
#define ING_PHILOX_W0 0x9E3779B9u
#define ING_PHILOX_W1 0xBB67AE85u
void ing_ir_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
#define ING_MIX_STEP UINT64_C(0x9E3779B97F4A7C15)
#define ING_MIX_A    UINT64_C(0xBF58476D1CE4E5B9)
#define ING_MIX_B    UINT64_C(0x94D049BB133111EB)
uint64_t ing_ir_mix(uint64_t x, uint64_t mask); /* RAND3; with mask 0 RAND2 */
struct ing_ctx;
/* The iteration `index` of a task begins. */
void ing_ir_random_begin(struct ing_ctx *ctx, uint64_t index);
/* One of the two words that the numbers of a place start from. */
uint64_t ing_ir_seed(const struct ing_ctx *ctx, uint64_t place, uint32_t which);
/* The next draw of the context's stream as a word of type t. */
uint64_t ing_ir_random(struct ing_ctx *ctx, ing_dtype t);

/* Runs task `k` on the calling thread over [begin, end) as native code would (R24). */
int32_t ing_ir_interp(const ing_ir_mod *m, uint32_t k, struct ing_ctx *ctx,
                      int64_t begin, int64_t end, int64_t chunk);
/* Runs the kernel of a module as lowered, which no pass has seen: its parallel loops one after
 * the other, each in the order of its index, the regions of I8 in place. There must be no
 * CHECKPOINT. Needs no launch buffer. */
int32_t ing_ir_interp_lowered(const ing_ir_mod *m, struct ing_ctx *ctx);

#endif
