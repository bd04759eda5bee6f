/* Between the files of src/ad only. Reverse mode in steps:
 *
 *   draws.c     random numbers are arithmetic on a counter
 *   exits.c     loops and funcs are left at their end only; updates of locals are spelled out
 *   shared.c    locals that iterations of a parallel loop share
 *   lost.c      where derivatives get lost
 *   active.c    which values have derivatives, which the backward code must know
 *   wild.c      which values may be infinite or NaN
 *   rule.c      what is overwritten and needed; meet.c, told.c whether places are one
 *   size.c      the room of the stacks
 *   segment.c   long loops on short stacks
 *   trace.c     the kernel itself, telling what it reads and writes
 *   reverse.c   the conductor; sweep.c the forward code, adjoint.c the backward code of values,
 *               backward.c of loops, branches and calls
 *
 * The backward kernel runs the kernel again, without its effects, and then backwards. Rules
 *  AD1 a region is the body of a loop or of a function. Its backward code follows its forward
 *     code in the same block, so that values of the region itself are at hand; values of
 *     branches in it are kept in locals of the region.
 *  AD2 a loop is run twice: first from begin to end, keeping on a stack what each iteration
 *     found in the locals that it reads and the loop writes; then from the last iteration to
 *     the first, each made again from what was kept, forwards, then backwards. So a stack has
 *     one entry for each iteration of one loop (long ones: SEGMENT1), and loops inside of it use the
 *     room above.
 *  AD3 arrays are read again, never kept: what a launch reads it must not overwrite later.
 *  AD4 a func has a backward version for each set of parameters with derivatives; it runs the
 *     func again by itself. Forward code calls it without its effects.
 *  AD5 the adjoint of a value is a sum that is complete when the backward code reaches the
 *     value's definition; of a local a second local, of an array its companion.
 *  AD6 what the iterations of a loop add to the adjoint of one and the same element is gathered in
 *     a local, and added to the companion after the loop.
 *  AD7 an adjoint that is 0 because nothing reads the value (another operand was taken, a branch was
 *     not) adds nothing, whatever the factor: 0 times an infinite factor is no NaN. Beside an adjoint
 *     stands when it counts: where it was read from memory, that it is not 0; of an operand of SELECT,
 *     MIN and MAX, that it was taken; of a sum, that one of its terms counts. Where a factor may be
 *     infinite or NaN (wild.c) the product is chosen by that. A product that is 0 by itself counts:
 *     sqrt(x) * sqrt(x) at 0 has no derivative here. */
#ifndef ING_AD_INT_H
#define ING_AD_INT_H

#include "ad/ad.h"
#include "ir/access.h"

/* At an instruction's place in function `func` of the module. */
ing_status ing_ad_refuse(ing_ir_mod *m, uint32_t func, uint32_t loc, ing_err *e,
                         const char *why);
ing_status ing_ad_no_memory(ing_err *e);

/* draws.c: random numbers as arithmetic. */
ing_status ing_ad_draws(ing_ir_mod *m, ing_err *e);

/* trim.c: loads and stores of locals that nobody needs go. */
ing_status ing_ad_trim(ing_ir_mod *m, ing_err *e);

/* order.c: loops go forwards where the order of iterations does not matter. */
ing_status ing_ad_order(ing_ir_mod *m, const uint32_t *companion, uint32_t n_args,
                        ing_err *e);

/* exits.c: every function of the module in the form that the others want:
 *  EXITS1 no CONTINUE; a BREAK only as the end of a WHILE: its block ends with a LOAD of a
 *     local and an IF on that with nothing but the BREAK in it; loops with other ways out are
 *     such WHILEs.
 *  EXITS2 a RETURN only as the last instruction of a func; none in the kernel.
 *  EXITS3 ATOMIC of a local, other than one of the kernel in a parallel loop, is LOAD,
 *     arithmetic, STORE.
 *  EXITS4 no parallel loop with one iteration: it runs in order. */
ing_status ing_ad_exits(ing_ir_mod *m, ing_err *e);
bool ing_ad_runs_once(const ing_ir_func *f, const ing_ir_inst *loop);

/* shared.c: parallel loops that look for a least or greatest value do so in
 * locals of their own (SHARED1), sums are updates (SHARED2). */
ing_status ing_ad_own_locals(ing_ir_mod *m, ing_err *e);

/* Does it hold floats? */
bool ing_ad_is_real(const ing_ir_mod *m, ing_type t);

/* ---- what is known of a function (active.c, need.c) ---------------------------------------- */

enum { /* per instruction */
       ING_AD_VARIED =
           1, /* depends on an array with a companion; ALLOCA: what it holds does */
       ING_AD_USEFUL = 2, /* such an array depends on it */
       ING_AD_LIVE = 4,   /* there is backward code for it, or in its blocks */
       ING_AD_AGAIN =
           8, /* made where its region is run before backward code (NEED1); of a
                             loop: it is run there; of a local: what it holds at first */
       ING_AD_FIRST = 16, /* made where its region is only run forwards (NEED2) */
       ING_AD_KEPT = 32,  /* backward code of its own block reads it */
       ING_AD_APART = 64, /* backward code of another block adds to its adjoint */
       ING_AD_SNAP = 128, /* CALL: what its refs point to is kept before it */
       ING_AD_STILL =
           128, /* LOAD: the loop around it writes no such element (RULE10) */
};

/* A parameter of a func, as a call gives it. */
typedef struct ing_ad_param {
    bool active;        /* a value or ref with an adjoint */
    bool shared;        /* of a ref: other threads may add to the adjoint */
    bool stopped;       /* what is read there is a constant */
    ing_type companion; /* of an array: the type of its companion, 0 = it has none */
} ing_ad_param;

/* A local that a loop reads and that was made outside of it: what backward code needs of it. */
typedef struct ing_ad_state {
    uint32_t loop;   /* LOOP or WHILE */
    uint32_t local;  /* ALLOCA or PARAM */
    bool carried;    /* the loop writes it: kept for each iteration, else once */
    uint32_t offset; /* of a carried one: bytes in an entry of the loop's stack */
    uint32_t slot;   /* of the others: the emitted local that keeps it */
} ing_ad_state;

enum {                     /* what is done to an element */
       ING_AD_READS = 1,   /* backward code needs its value */
       ING_AD_FOLLOWS = 2, /* its adjoint goes through a read */
       ING_AD_STORES = 4,
       ING_AD_UPDATES = 8,
       ING_AD_UPDATE_OF =
           0xf0, /* which update; of a read: those leave the value right */
};
#define ING_AD_OF_PARAM \
    0x80000000u /* in a form that callers see: a parameter's number */

typedef struct
    ing_ad_touch { /* of an element of an array, by a function or its callees */
    uint32_t id;   /* the instruction, or the CALL */
    uint32_t loc;
    uint64_t rank; /* order of the text, through calls */
    uint32_t of,
        inner; /* which array: argument or parameter; inner: as the callee sees it */
    bool param, inner_param;
    bool ref; /* through a parameter that points to something */
    uint8_t kind;
    uint8_t n;       /* subscripts; more than ING_MAX_NDIM: it may be any element */
    uint32_t member; /* of the element that is named, plus 1; 0 = none */
    ing_ir_form at[ING_MAX_NDIM];
} ing_ad_touch;

typedef struct ing_ad_touches {
    ing_ad_touch *at;
    uint32_t len, cap;
} ing_ad_touches;

/* One axis on which it depends on the launch that a read and a write after it are apart. */
typedef struct ing_ad_told {
    ing_ir_form by; /* written - read, of numbers that the launch is given */
    /* the write comes in a later iteration of this one; 0: in the same */
    uint32_t loop;
    int64_t step;  /* by which the subscript grows from iteration to iteration */
    int32_t local; /* 1, -1: it grows or shrinks by who knows what; 0: it does not */
    bool strict;   /* or stays */
} ing_ad_told;

typedef struct
    ing_ad_pair { /* a read and a write after it, apart by any of these axes */
    uint32_t first, n;
    uint32_t read, write, loc; /* loc: of the write */
} ing_ad_pair;

typedef struct ing_ad_fn { /* one function in one context */
    uint32_t func;         /* its number; 0 is the kernel */
    const ing_ir_func *f;
    ing_ad_param *params;
    uint32_t *param_at; /* the PARAM instruction of each, 0 = unused */
    uint8_t *mark;
    uint32_t *parent; /* IF, LOOP or WHILE around it, 0 = none */
    uint32_t *region; /* LOOP or WHILE around it, 0 = none */
    uint32_t *block;  /* that it stands in; 0 = in none */
    uint32_t *callee; /* of a LIVE CALL: the context of its func, plus 1 */
    ing_vec(ing_ad_state) states;
    ing_ad_touches reads, writes; /* rule.c; reads of a func: as callers see them */
    uint32_t made;                /* number of the backward func */
    /* its backward code, or that of a callee, keeps something on a stack */
    bool stacks;
} ing_ad_fn;

typedef struct ing_ad {
    ing_ir_mod *m;
    const uint32_t *companion;
    uint32_t n_funcs; /* before any was added */
    uint32_t *order;  /* callees before callers */
    uint8_t *touches; /* per func: it reaches arrays with companions by itself */
    uint8_t *acts;    /* per func: it writes arrays or prints */
    /* per func: the version without effects; UINT32_MAX: there is none */
    uint32_t *quiet;
    ing_ad_touches *writes; /* per func, as callers see them */
    ing_ad_touches *loads;  /* per func: what it reads where it is run again forwards */
    uint64_t *span;         /* per func: its instructions, with those of callees */
    uint8_t *noted;         /* per two arguments: they are in m->rule (RULE5) */
    ing_vec(ing_ad_pair) told; /* compared by the launch (RULE3) */
    ing_vec(ing_ad_told) axes;
    ing_vec(ing_ad_fn *) fns; /* [0] is the kernel */
    bool all_bounds;          /* SIZE3 */
    bool sized; /* the room of the stacks is known before the launch (SIZE1) */
    uint32_t bad_loc;
    const char *bad; /* why it is refused */
} ing_ad;

/* Number + 1 of the companion of argument k, 0 = none. */
static inline uint32_t ing_ad_companion_arg(const ing_ad *ad, uint32_t k) {
    return ad->companion[k] & ~ING_AD_STOPPED;
}
static inline bool ing_ad_active(const ing_ad_fn *n, uint32_t id) {
    return (n->mark[id] & (ING_AD_VARIED | ING_AD_USEFUL)) ==
           (ING_AD_VARIED | ING_AD_USEFUL);
}
/* What an address points into: an ALLOCA, PARAM (the func's one instruction for it) or ARRAY. */
uint32_t ing_ad_root(const ing_ad_fn *n, uint32_t ref);
/* The type of the companion of an array (ARRAY or PARAM), 0 = none. */
ing_type ing_ad_companion(const ing_ad *ad, const ing_ad_fn *n, uint32_t array);
/* Has what the address points into an adjoint? */
bool ing_ad_has_shadow(const ing_ad *ad, const ing_ad_fn *n, uint32_t ref);
bool ing_ad_is_ref(const ing_ir_mod *m, ing_type t);
bool ing_ad_is_array(const ing_ir_mod *m, ing_type t);
/* Made again wherever it is read: inputs, addresses. */
bool ing_ad_is_remade(const ing_ir_inst *i);
/* The exit of a WHILE: the LOAD of its flag; the IF is what follows. */
uint32_t ing_ad_exit(const ing_ir_func *f, const ing_ir_inst *loop);

/* Finds the contexts of all functions, from the kernel on. */
ing_status ing_ad_find_active(ing_ad *ad, ing_err *e);
/* What backward code needs, in one context; those of its callees are done. */
ing_status ing_ad_find_need(ing_ad *ad, ing_ad_fn *n, ing_err *e);
/* A minimum or maximum whose backward code looks whose value is there (adjoint.c). */
bool ing_ad_is_winner(const ing_ad_fn *n, uint32_t id);
/* again.c: what a func does where it is run again forwards, for what it gives. */
enum { ING_AD_RUN = 1, ING_AD_ASKED = 2 /* somebody uses the value */ };
/* Per instruction, all 0 before; false: no memory. */
bool ing_ad_find_rerun(const ing_ad *ad, const ing_ir_func *f, uint8_t *marks);
/* Does a func store to all of what a parameter points to before it looks there? */
bool ing_ad_stored_first(const ing_ir_func *f, uint32_t param);
/* Refuses calls that give one local twice, of which backward code would keep two. */
ing_status ing_ad_check_refs(const ing_ad *ad, const ing_ad_fn *n, ing_err *e);
/* rule.c: refuses what may break AD3. */
ing_status ing_ad_find_writes(ing_ad *ad, ing_err *e);
ing_status ing_ad_check_rule(ing_ad *ad, ing_ad_fn *n, ing_err *e);

/* ---- writing a backward function ----------------------------------------------------------- */

typedef struct ing_ad_snap { /* what a ref of a CALL pointed to before it */
    uint32_t call, param, slot;
} ing_ad_snap;

typedef struct ing_ad_code {
    ing_ad *ad;
    ing_ad_fn *n;
    ing_ir_mod *m;
    const ing_ir_func *f; /* the function that is differentiated */
    ing_ir_builder b;
    ing_ir_copy copy; /* its map: the value of each instruction, as made last */
    /* Per instruction of f: */
    /* adjoint: a value, or a local if ing_ad_has_slot; 0 = zero so far */
    uint32_t *adj;
    /* of an adjoint that is a value: the u1 of AD7, 0 = always; of one in a local: the local with that u1, 0
     * = if it is not 0 */
    uint32_t *counts;
    uint8_t *picked; /* of those: it depends on what an operation took */
    uint8_t *wild;   /* its value may be infinite or NaN */
    bool any_wild;
    /* ALLOCA and PARAM: the local that is its adjoint; array PARAM: its companion */
    uint32_t *shadow;
    uint32_t *slot; /* the local that keeps it for backward code (AD1) */
    /* LOOP, WHILE: the place of its stack, an i64; a local if in a branch */
    uint32_t *base;
    uint32_t *count; /* WHILE: the i64 local with its iterations */
    /* LOAD: the local that gathers what a loop adds to one element; 0 = none */
    uint32_t *held;
    uint32_t *fresh;  /* ALLOCA: its adjoint is 0, in the stretch with this number */
    uint32_t stretch; /* number of what is written, without blocks in it */
    ing_vec(ing_ad_snap) snaps;
    uint32_t top; /* the end of all stacks, an i64; a local with it if in_local */
    /* branches of the region have stacks, so that no value is the end of all */
    bool in_local;
    uint32_t result; /* of a func: the local with the adjoint of its result, 0 = none */
    uint32_t parallel; /* the parallel loop whose backward code is written, 0 = none */
    uint32_t lost;     /* where slots go when memory ran out */
} ing_ad_code;

/* sweep.c: forward code. */
/* The locals that a region needs for its backward code; before its forward code. */
void ing_ad_open_region(ing_ad_code *c, uint32_t block);
/* The end of all stacks from here on, and now. */
void ing_ad_set_top(ing_ad_code *c, uint32_t top);
uint32_t ing_ad_get_top(ing_ad_code *c);
/* A region keeps its own end; what was around it is given back when it is done. */
typedef struct ing_ad_top {
    uint32_t top;
    bool in_local;
} ing_ad_top;
ing_ad_top ing_ad_open_top(ing_ad_code *c, uint32_t region);
void ing_ad_close_top(ing_ad_code *c, ing_ad_top outer);
bool ing_ad_in_branch(const ing_ad_fn *n, uint32_t id);
/* `record`: backward code follows. Without the exit of a WHILE if `record`. */
void ing_ad_put_forward(ing_ad_code *c, uint32_t block, bool record);
uint32_t ing_ad_local(ing_ad_code *c, ing_type elem);
uint32_t ing_ad_load(ing_ad_code *c, uint32_t ref);
void ing_ad_store(ing_ad_code *c, uint32_t ref, uint32_t value);
/* Iterations of a LOOP, an i64. */
uint32_t ing_ad_trips(ing_ad_code *c, const ing_ir_inst *loop);
/* Bytes of an entry of the loop's stack; 0 = it has none. */
uint32_t ing_ad_stride(const ing_ad_code *c, uint32_t loop);
/* Bytes of a stack with that many entries (i64), an i64. */
uint32_t ing_ad_stack_bytes(ing_ad_code *c, uint32_t entries, uint32_t stride);
/* The place of a carried local in entry `number` (i64) of the stack at `base`. */
uint32_t ing_ad_entry(ing_ad_code *c, const ing_ad_state *s, uint32_t base,
                      uint32_t number);
uint32_t *ing_ad_snap_slot(ing_ad_code *c, uint32_t call, uint32_t param);
/* Makes the versions of funcs without effects. */
ing_status ing_ad_find_quiet(ing_ad *ad, ing_err *e);

/* shared.c: refuses locals of the kernel on whose iterations' order the result depends (SHARED3). */
ing_status ing_ad_check_shared(ing_ad *ad, const ing_ad_fn *n, ing_err *e);

/* lost.c: refuses floats that are made of the bits of those with derivatives, finds m->lost. */
ing_status ing_ad_find_lost(const ing_ad *ad, ing_err *e);

/* segment.c: loops whose stack has entries for a part of their iterations. */
bool ing_ad_is_cut(const ing_ad *ad, const ing_ad_fn *n, uint32_t loop);
/* Entries of a loop's stack for that many iterations (i64). */
uint32_t ing_ad_entries(ing_ad_code *c, uint32_t loop, uint32_t trips);
uint32_t ing_ad_segments(ing_ad_code *c, uint32_t trips);
typedef struct ing_ad_segment { /* i64 each */
    uint32_t first, trips;      /* its iterations */
    uint32_t entry;             /* what it found */
} ing_ad_segment;
ing_ad_segment ing_ad_segment_at(ing_ad_code *c, uint32_t loop, uint32_t trips,
                                 uint32_t segment);
typedef struct ing_ad_place { /* of an iteration of a WHILE; i64 each */
    uint32_t entry, segment;
} ing_ad_place;
ing_ad_place ing_ad_place_of(ing_ad_code *c, uint32_t iteration);
/* Runs iterations of one forwards, `trips` (i64) of them, and keeps what each found; `flags` of that loop. */
void ing_ad_put_segment(ing_ad_code *c, uint32_t loop, uint32_t base,
                        const ing_ad_segment *s, uint32_t trips, uint16_t flags);
/* The index of iteration number `at` (i64) of a LOOP. */
uint32_t ing_ad_index(ing_ad_code *c, const ing_ir_inst *loop, uint32_t at);

/* wild.c: marks values that may be infinite or NaN. */
void ing_ad_find_wild(const ing_ad *ad, const ing_ad_fn *n, uint8_t *wild);

/* adjoint.c: backward code of values. */
bool ing_ad_has_slot(const ing_ad_code *c, uint32_t id);
/* Adds what a ref points to to the adjoint of a value. */
void ing_ad_add_from(ing_ad_code *c, uint32_t id, uint32_t ref);
void ing_ad_add_leaves(ing_ad_code *c, uint32_t to, uint32_t from, bool shared);
/* The adjoint of what an address points into; 0 = it has none. */
uint32_t ing_ad_shadow(ing_ad_code *c, uint32_t ref);
bool ing_ad_is_shared(const ing_ad_code *c, uint32_t id);
void ing_ad_put_adjoint(ing_ad_code *c, uint32_t id);

/* told.c: what the launch compares before it does anything (RULE3). */
void ing_ad_put_told(ing_ad_code *c);

/* size.c: how much room the stacks need. */
bool ing_ad_has_stacks(const ing_ad *ad, const ing_ad_fn *n);
ing_status ing_ad_can_size(ing_ad *ad, bool *yes, ing_err *e);
ing_status ing_ad_write_size(ing_ad_code *c, ing_err *e); /* the kernel that tells it */

/* trace.c: the kernel with what it tells. */
ing_status ing_ad_write_trace(ing_ad *ad, ing_err *e);

/* backward.c: backward code of blocks, loops, branches, calls. */
void ing_ad_put_backward(ing_ad_code *c, uint32_t block);

#endif
