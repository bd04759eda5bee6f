/* The names of the ladder of instruction set levels (R18), and which of them this machine
 * can climb. Called by src/compile when an engine is made, and before an image of a named
 * level is run. */
#include "image/image_int.h"

#include <stdlib.h>
#include <string.h>

/* Lowest first; rung 0 is what every machine of the architecture runs, and the answer
 * only where the ladder proper starts too high. */
#if defined(__x86_64__)
static const char *const ladder[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
#elif defined(__aarch64__)
static const char *const ladder[] = {"armv8.0", "armv8.2"};
#else
static const char *const ladder[] = {"none"};
#endif

enum { RUNGS = sizeof ladder / sizeof *ladder };

/* RUNGS when the name is unknown. */
static uint32_t rung_of(const char *level) {
    uint32_t k = 0;
    while (k < RUNGS && strcmp(level, ladder[k]) != 0) k++;
    return k;
}

const char *ing_image_isa_level(void) {
    uint32_t have = ing_cpu_rung();
    const char *asked = getenv("INGOT_CPU_LEVEL");
    uint32_t lower = asked ? rung_of(asked) : RUNGS;
    return ladder[lower < have ? lower : have];
}

const char *ing_image_isa_rung(uint32_t i) {
    return i < RUNGS ? ladder[i] : NULL;
}

bool ing_image_isa_runs(const char *level) {
    return rung_of(level) <= ing_cpu_rung();
}
