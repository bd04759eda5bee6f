/* target: what kernels are compiled for and run on, one table each. The engine, the launch
 * and the arrays go through it and name no target themselves; the rows stand in
 * src/launch/targets.c. */
#ifndef ING_TARGET_H
#define ING_TARGET_H

#include "gen/gen.h"
#include "image/image.h"
#include "pass/pass.h"

struct ing_home;
struct ing_rt;
struct ing_rt_launch;

typedef struct ing_machine { /* what a target runs on */
    const char *level;       /* of its instructions */
    uint8_t vector_math;     /* as ing_gen_options has it */
} ing_machine;

typedef struct ing_target {
    const char *name; /* as qd.init(arch=...) has it */

    /* ---- code; without `gen` the IR itself is run ---- */
    const ing_gen_target *gen;
    ing_status (*text)(const ing_ir_mod *task, const ing_gen_options *o,
                       ing_gen_texts *out, ing_err *e); /* what a helper compiles */
    ing_machine (*machine)(void);
    const char *(*level)(uint32_t n); /* the n-th that there is; NULL: no more */
    /* Can the library that vector_math promises be loaded? Asked before something is compiled. */
    bool (*has_library)(void);
    /* The passes that make tasks of a kernel; NULL: it is one serial task, as lowered. */
    ing_status (*shape)(ing_ir_mod *m, const ing_pass_options *o, ing_err *e);
    /* What of the options belongs in the key of an image. */
    void (*key)(const ing_gen_options *o, ing_hasher *h);
    ing_status (*link)(const ing_object *objects, uint32_t n, const char *label,
                       ing_bytes *image, ing_err *e);
    ing_status (*load)(const uint8_t *image, size_t n, ing_image **out, ing_err *e);
    ing_status (*load_entry)(ing_entry *entry, ing_image **out, ing_err *e);

    /* ---- memory and launches ---- */
    const struct ing_home *home; /* alloc, free, read, write, fill: src/rt/mem.h */
    /* As ing_rt_run: what it reports may come later where there is a wait. */
    int32_t (*run)(struct ing_rt *rt, struct ing_rt_launch *l);
    /* Waits for all launches (qd.sync); the first code that they left, as run returns it.
     * NULL: a launch is done when run returns. */
    int32_t (*wait)(struct ing_rt *rt);
} ing_target;

#endif
