/* The targets there are (targets.c). */
#ifndef ING_LAUNCH_TARGET_H
#define ING_LAUNCH_TARGET_H

#include "compile/target.h"
#include "rt/mem.h"

/* Numbers of the setting `target`; they stand in traces. */
typedef enum ing_target_id {
    ING_TARGET_CPU,
    ING_TARGET_INTERP, /* the IR interpreter */
    ING_TARGET_MOCK,   /* the CPU's code on memory that the host cannot address */
    ING_TARGET_N
} ing_target_id;

/* The one that the settings choose; never NULL. */
const ing_target *ing_target_chosen(const ing_settings *s);

#endif
