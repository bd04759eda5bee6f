/* Between the files of forward mode only.
 *
 * Values have a dual beside them, or none: 0. A local that a dual may be written to has a
 * shadow, a local of the same type; the shadow of an array is its companion, that of an address
 * the same place in the shadow. What of a type is no float is 0 in duals and never looked at.
 *
 * A func has a version for each set of parameters that come with a shadow (forward_flow.c
 * finds them all, forward_emit.c makes those that are called): the shadows follow the parameters, and a result
 * with a dual is a struct of both. A version that has nothing to do with duals is the func
 * itself. Calls are followed through the table of versions, never by recursion. */
#ifndef ING_AD_FORWARD_H
#define ING_AD_FORWARD_H

#include "ad/ad.h"

enum { /* of an instruction */
       ING_FWD_DUAL =
           1, /* it may have a dual, or a shadow; of a LOOP: it must be serial */
       ING_FWD_OWN = 2,  /* ALLOCA: of one iteration of a parallel loop, or of a func */
       ING_FWD_USED = 4, /* another reads its value */
       ING_FWD_STOP = 8, /* an array or address: what is read there is constant */
};

/* The companion of argument k: its number + 1, 0 = none. */
#define ING_FWD_COMPANION(w, k) ((w)->companion[k] & ~ING_AD_STOPPED)
/* In a key: of a type, its values are ING_FWD_STOP. */
#define ING_FWD_TYPE(t)         ((t) & ~ING_AD_STOPPED)

typedef struct ing_fwd_version {
    uint32_t func;        /* as lowered */
    const ing_ir_func *f; /* its text */
    uint32_t out;         /* the function made of it, 0 = not yet */
    const ing_type
        *key;         /* of each parameter: type of its shadow at the call, 0 = none */
    ing_type *shadow; /* key, and addresses that duals are written to */
    uint8_t *state;   /* of each instruction */
    bool result;      /* has a dual */
    bool touched;     /* it has to do with duals at all */
    bool pairs; /* value and dual of a place that others see change in two steps */
    const struct ing_fwd_version *caller; /* who asked for it first, NULL = kernel */
    uint32_t loc;                         /* and where */
    struct ing_fwd_version *next;         /* of the same func */
} ing_fwd_version;

typedef struct ing_fwd {
    ing_ir_mod *m;
    const uint32_t *companion;
    ing_err *e;
    ing_arena arena;                     /* all of the tables */
    ing_vec(ing_fwd_version *) versions; /* [0] is the kernel */
    ing_vec(ing_fwd_version *) made;     /* that have a function */
    ing_fwd_version **first;             /* of each function as lowered */
    ing_status status;                   /* ING_COMPILE: refused */
} ing_fwd;

/* Does a value of type t hold a float? */
bool ing_fwd_floats(const ing_ir_mod *m, ing_type t);
/* The version of the func that this CALL asks for; NULL: no memory, or not known yet unless
 * `make`. */
ing_fwd_version *ing_fwd_callee(ing_fwd *w, const ing_fwd_version *from, uint32_t id,
                                bool make);
/* Has an iteration of the kernel's parallel loop the place of this ATOMIC for itself? */
bool ing_fwd_own(ing_fwd *w, uint32_t loop, uint32_t update);
/* Finds every version and what in it has a dual. */
ing_status ing_fwd_flow(ing_fwd *w);
/* Rebuilds the kernel, and makes the versions that it calls. */
ing_status ing_fwd_emit(ing_fwd *w);

#endif
