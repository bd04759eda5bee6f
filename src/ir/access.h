/* access: what a function does to memory, and how that depends on the loops around it. One walk
 * over the function answers for every pass: what an address points into, which instructions touch
 * it, which values change from one iteration of a loop to the next, how often a loop runs, and
 * subscripts as sums of multiples of loop indices. Answers err towards "unknown" and "varies".
 * Rules
 *  ACCESS1 an address has one root: an array argument, a local, the launch's own memory, or a
 *     parameter of a func, which may be anything.
 *  ACCESS2 a value varies with a loop when it is its index or made of one that does; what is no pure
 *     function of its operands varies with every loop around it.
 *  ACCESS3 a form equals its value modulo 2**bits: arithmetic that may wrap limits it to the width it
 *     is done in, a cast to its own. Two forms are compared modulo the lesser of both.
 *  ACCESS4 forms that differ in a bounded rest alone, their spread, tell indices apart when different
 *     ones give different values modulo 2**bits: they have one of them, an odd number of times, no
 *     spread, and all its values differ there; or each index counts for more than the spread and
 *     all smaller ones together, and the sum stays below 2**bits, or nothing wraps. So 2 * i and
 *     2 * i + 1 tell i, 3 * i + k with k from 0 to 2 does, i and i + 1 do not.
 *  ACCESS5 two accesses never meet in different iterations of a loop when one axis tells these apart; or when
 *     they are each other's transpose, [i, j] and [j, i], with a j that no iteration changes, or that
 *     is never below i, or never above it.
 *  ACCESS6 a place that a loop does not change is never met by one whose subscript on some axis counts with the
 *     index of the loop and stays below it, or above it, by the bounds of the loop: [i, k] with k up to j
 *     is never [i, j]. */
#ifndef ING_IR_ACCESS_H
#define ING_IR_ACCESS_H

#include "ir/ir.h"

enum { ING_IR_MAX_TERMS = 6 };

typedef struct ing_ir_form { /* constant + the sum of times * of (ACCESS3) */
    uint64_t constant;
    uint32_t of[ING_IR_MAX_TERMS]; /* values that are no sums, by rising id */
    uint64_t times[ING_IR_MAX_TERMS];
    uint8_t n, bits;
    bool known; /* false: it has more terms than there is room for */
    bool exact; /* nothing in it wraps: it equals its value */
    bool wraps; /* what may wrap is unsigned, or a cast: no slip of the program */
} ing_ir_form;

typedef struct ing_ir_access { /* of one instruction to one place */
    /* LOAD, STORE, ATOMIC, CAS or ADDRESS; a CALL that is given the address */
    uint32_t id;
    uint32_t ref;  /* the address; of a CALL also an array */
    uint32_t elem; /* the ELEM that it goes through, 0 = none */
    uint16_t root; /* op at its root (ACCESS1): ARRAY, ALLOCA, BUFFER, PARTIAL, PARAM */
    bool sure;     /* made in each iteration of the innermost loop around it */
    uint32_t of;   /* which: operand a of the root; of an ALLOCA or PARTIAL its id */
} ing_ir_access;

enum { /* what stands in a loop, at any depth */
       ING_IR_HAS_LOOP = 1,
       ING_IR_HAS_CALL = 2,
       ING_IR_HAS_RANDOM = 4,
       ING_IR_HAS_STOP = 8,      /* CHECK or RETURN: something that leaves the task */
       ING_IR_HAS_VOLATILE = 16, /* a LOAD that is made each time */
       ING_IR_HAS_EXIT = 32,     /* BREAK or CONTINUE of this very loop */
};

typedef struct ing_ir_scan {
    const ing_ir_func *f;
    uint32_t parallel;       /* the parallel loop of a task; 0 = none */
    ing_vec(uint32_t) loops; /* LOOPs, a loop after those inside of it */
    /* Per instruction: */
    /* a bit for each loop around it (ing_ir_loop_bit), with which its value varies (ACCESS2) */
    uint64_t *varies;
    uint32_t *home;        /* innermost LOOP or WHILE around it, 0 = none */
    uint32_t *first, *end; /* of a LOOP: what of `accesses` stands in it */
    uint8_t *has;          /* of a LOOP or WHILE: ING_IR_HAS_; at 0, of the function */
    uint8_t *depth;        /* loops around it */
    uint8_t *used;         /* its value is an operand of another */
    ing_vec(ing_ir_access) accesses; /* in the order of the text */
    bool failed;
} ing_ir_scan;

enum {
    ING_IR_PIECE_BIT = 63
}; /* varies with the piece of the loop that a task is given */

/* False: no memory. Free it in any case. */
bool ing_ir_scan_init(ing_ir_scan *s, const ing_ir_func *f);
void ing_ir_scan_fini(ing_ir_scan *s);

static inline uint64_t ing_ir_loop_bit(const ing_ir_scan *s, uint32_t loop) {
    uint8_t d = s->depth[loop]; /* loops that deep share a bit */
    return (uint64_t)1 << (d < ING_IR_PIECE_BIT - 1 ? d : ING_IR_PIECE_BIT - 1);
}
static inline bool ing_ir_varies(const ing_ir_scan *s, uint32_t id, uint32_t loop) {
    return s->varies[id] & ing_ir_loop_bit(s, loop);
}
bool ing_ir_inside(const ing_ir_scan *s, uint32_t id, uint32_t loop);

/* What a function has at all, at the cost of a look at its instructions: most have no updates and
 * no loops in loops, and need no scan. */
bool ing_ir_has_updates(const ing_ir_func *f); /* ATOMIC or CAS that is not PRIVATE */
/* LOOPs other than the parallel one and those around it */
bool ing_ir_has_serial_loops(const ing_ir_func *f);

/* The root of an address (ACCESS1); `elem`, unless NULL, is the ELEM that it goes through or 0. */
const ing_ir_inst *ing_ir_root(const ing_ir_func *f, uint32_t ref, uint32_t *elem);

/* Does this address lie in what another one (`a`) points to? */
static inline bool ing_ir_is_within(const ing_ir_inst *i) {
    return i->op == ING_OP_ELEM || i->op == ING_OP_MEMBER || i->op == ING_OP_MEMBER_DYN;
}

/* How often a loop from `begin` to `end` runs; false: that is not known. */
bool ing_ir_trips(const ing_ir_func *f, uint32_t begin, uint32_t end, uint64_t *n);
/* How often a LOOP runs at most, where indices of other loops bound it; false: not known. */
bool ing_ir_most_trips(const ing_ir_func *f, const ing_ir_inst *loop, uint64_t *n);
/* Does a WHILE surely end after at most as many iterations as its numbers have bits (src/ir/brief.c)? */
bool ing_ir_is_brief(const ing_ir_func *f, uint32_t loop);
/* How many places AXES have; false: not known. */
bool ing_ir_places(const ing_ir_func *f, const ing_ir_inst *axes, uint64_t *n);
/* The bounds of axis k of AXES, if they are known. */
bool ing_ir_axis_bounds(const ing_ir_func *f, const ing_ir_inst *axes, uint32_t k,
                        int64_t *begin, int64_t *end);
bool ing_ir_axis_is_one(const ing_ir_func *f, const ing_ir_inst *axes, uint32_t k);
/* The integers between which a value lies, both included; false: not known. */
bool ing_ir_range(const ing_ir_func *f, uint32_t id, int64_t *low, int64_t *high);

void ing_ir_form_of(const ing_ir_func *f, uint32_t id, ing_ir_form *out);
/* to += times * more */
void ing_ir_form_add(ing_ir_form *to, const ing_ir_form *more, uint64_t times);
/* As ing_ir_range. */
bool ing_ir_form_range(const ing_ir_func *f, const ing_ir_form *form, int64_t *low,
                       int64_t *high);
bool ing_ir_form_same(const ing_ir_form *a, const ing_ir_form *b);
/* Are the subscripts the same values, axis by axis? */
bool ing_ir_same_place(const ing_ir_func *f, uint32_t elem, uint32_t other);
/* Was the index put together as outer * n + inner, inner below n, by a loop over a field? */
bool ing_ir_is_joined(const ing_ir_func *f, uint32_t id, int64_t n);

typedef struct
    ing_ir_family {    /* subscripts of several accesses on one axis (ACCESS4) */
    ing_ir_form form;  /* indices and what no iteration changes; no constant */
    int64_t low, high; /* what comes to that */
    bool any, known;   /* known: all are of that form */
} ing_ir_family;

/* May the ELEMs of one array be one place in two iterations of a loop (ACCESS5)? Iterations of the
 * loops around it are not compared. */
bool ing_ir_may_meet(const ing_ir_scan *s, uint32_t loop, uint32_t elem,
                     uint32_t other);
/* The same with iterations of the loops around it up to `outer` compared too: in different
 * iterations of the loop, and whatever ones of those. */
bool ing_ir_may_meet_within(const ing_ir_scan *s, uint32_t loop, uint32_t outer,
                            uint32_t elem, uint32_t other);

/* Is the ELEM, in no iteration of the loop, the place `fixed`, which all of them have (ACCESS6)? */
bool ing_ir_never_there(const ing_ir_scan *s, uint32_t loop, uint32_t elem,
                        uint32_t fixed);

/* Which indices of a loop families tell apart (ACCESS4), gathered over several of them. */
typedef struct ing_ir_told {
    uint32_t loop;   /* the parallel loop */
    uint32_t axes;   /* its AXES; 0: it is over one axis */
    uint64_t needed; /* a bit for each axis that has more than one place */
    uint64_t told;
} ing_ir_told;
void ing_ir_told_init(ing_ir_told *t, const ing_ir_scan *s);
/* One more access has subscript `id` on this axis. */
void ing_ir_family_add(ing_ir_family *f, const ing_ir_told *t, const ing_ir_scan *s,
                       uint32_t id);
void ing_ir_told_add(ing_ir_told *t, const ing_ir_scan *s, const ing_ir_family *f);
static inline bool ing_ir_told_all(const ing_ir_told *t) {
    return t->needed && (t->told & t->needed) == t->needed;
}

#endif
