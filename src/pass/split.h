/* Between split.c (what goes where) and split_emit.c (writing the tasks) only.
 *
 * The kernel's outermost block is cut into segments: one for each parallel loop, and serial
 * ones (maybe empty) before, between and after. The regions of a graph kernel (I8) are
 * walked into as if their blocks stood in the outermost one; where a region begins or
 * ends, a new serial segment does. Rules
 *  SPLIT1 a value that a segment uses and another one defines is made again there when that is
 *     cheap and depends on arguments, extents and constants only; refs, arrays and AXES
 *     are always made again; else it is stored to the launch buffer where it is defined and
 *     loaded by each user.
 *  SPLIT2 an ALLOCA that several segments use lives in the launch buffer, which the runtime
 *     zeroes, as ALLOCA does.
 *  SPLIT3 bounds of parallel loops that are no constants, extents or integer arguments are
 *     stored as i64 by the nearest serial segment before the loop that has an effect or
 *     defines them, else by the first segment since the innermost region's edge.
 *  SPLIT4 a RETURN inside a serial segment sets a flag in the buffer; later serial tasks look
 *     at it first. Bounds of later loops all go through the buffer: a segment that
 *     returned early, or never ran, left them 0 and 0.
 *  SPLIT5 a local that a parallel loop only loads is loaded once, before the loop.
 *  SPLIT6 a local of SPLIT2 that a DO_WHILE makes anew is zeroed where it is made.
 *  SPLIT7 a resume skips what stands before its checkpoint: nothing that is stored to the
 *     buffer may be used after a checkpoint that began since. Refused. */
#ifndef ING_PASS_SPLIT_H
#define ING_PASS_SPLIT_H

#include "pass/pass_int.h"

enum { ING_SPLIT_NOWHERE = UINT32_MAX };

typedef struct ing_split_value { /* per instruction of the kernel */
    uint32_t seg;  /* of an instruction of the outermost block, plus 1; 0 = nested */
    uint32_t pos;  /* in s->ids */
    uint32_t cost; /* of making it again: instructions; 0 = cannot */
    uint32_t slot; /* byte offset in the buffer, ING_SPLIT_NOWHERE = none */
    uint32_t bound_seg; /* segment that stores it as a bound, plus 1 */
    uint32_t bound_slot;
    uint32_t user;    /* segment that was last seen to use it from outside, plus 1 */
    uint32_t entry;   /* its entry among the uses, until they are sorted */
    uint32_t hoisted; /* ALLOCA: the segment that loads it once (SPLIT5), plus 1 */
    uint8_t live;     /* its own segment must compute it */
    uint8_t stored;   /* and store it (SPLIT1) */
    uint8_t crosses;  /* ALLOCA in the buffer (SPLIT2) */
} ing_split_value;

typedef struct ing_split_use { /* a value from outside the segment */
    uint32_t seg, id, pos;
    bool hoist; /* ALLOCA of a scalar, only loaded (SPLIT5) */
} ing_split_use;

typedef struct ing_split_load { /* LOAD of an ALLOCA from outside, in a parallel loop */
    uint32_t seg, load, local;
} ing_split_load;

typedef struct ing_split_bound { /* a serial segment stores `id` as i64 at `slot` */
    uint32_t seg, id, slot;
} ing_split_bound;

typedef struct ing_split_seg {
    bool parallel;         /* one parallel loop */
    bool looped;           /* inside of a DO_WHILE */
    uint32_t stages;       /* CHECKPOINTs that began before it */
    bool effect;           /* it does something on its own */
    bool needed;           /* it becomes a task */
    bool returns;          /* it may return early */
    uint32_t first, count; /* in s->ids */
    uint32_t before; /* the last serial segment before it with an effect, else the first
                        one since an edge */
    uint32_t uses, n_uses; /* after sorting: its part of the lists */
    uint32_t loads, n_loads;
    uint32_t bounds, n_bounds;
    ing_ir_bound begin, end;
} ing_split_seg;

typedef struct ing_split_edge { /* a region begins or ends */
    uint32_t seg, id;           /* just before that segment; the region */
    bool end;
} ing_split_edge;

typedef struct ing_split {
    ing_ir_mod *m;
    const ing_ir_func *f;  /* the kernel */
    ing_vec(uint32_t) ids; /* what stands in its outermost block and in its regions */
    ing_vec(ing_split_edge) edges;
    uint32_t loops, stages; /* around, and so far: while cutting */
    uint32_t lost;          /* a value that breaks SPLIT7 */
    ing_split_value *val;
    ing_vec(ing_split_seg) segs;
    ing_vec(ing_split_use) uses;
    ing_vec(ing_split_load) loads;
    ing_vec(ing_split_bound) bounds;
    uint32_t first_return; /* segment, ING_SPLIT_NOWHERE = none */
    uint32_t done_slot;    /* flag of SPLIT4 */
    uint64_t buffer;       /* bytes so far */
    bool ok;               /* memory */
} ing_split;

/* True for refs, arrays and AXES, which cannot be stored: made again by whoever uses them. */
bool ing_split_is_remade(const ing_split *s, uint32_t id);
/* Makes a task function and a task of each needed segment, in order. */
bool ing_split_emit(ing_split *s);

#endif
