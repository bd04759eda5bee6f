/* What the harnesses of tests/fuzz share. Each is one function over one reader of foreign
 * bytes: any input has an answer, never a crash, a leak or a read outside. `make fuzz` runs
 * each under libFuzzer (alone.c), `make test` all of them on fixed mutations (replay.c). */
#ifndef ING_FUZZ_H
#define ING_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The folder of a harness's seeds has its name (seeds.py). */
#define FUZZ_ALL(X) \
    X(entry) X(head) X(image) X(index) X(link) X(notes) X(pack) X(record) X(reply)
#define FUZZ_DECLARE(name) void fuzz_##name(const uint8_t *p, size_t n);
FUZZ_ALL(FUZZ_DECLARE)

/* A promise that a reader made and broke. */
#define FUZZ_CHECK(cond)                                                               \
    do {                                                                               \
        if (!(cond)) {                                                                 \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                                   \
        }                                                                              \
    } while (0)

#endif
