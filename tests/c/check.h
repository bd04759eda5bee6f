/* The C tests' harness: one program per file, CHECK counts and goes on, the summary line
 * "N passed, M failed" is what runners read. */
#ifndef ING_CHECK_H
#define ING_CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_passed, check_failed;

#define CHECK(cond)                                                                  \
    do {                                                                             \
        if (cond) {                                                                  \
            check_passed++;                                                          \
        } else {                                                                     \
            check_failed++;                                                          \
            fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #cond); \
        }                                                                            \
    } while (0)
#define CHECK_STR(got, want)                                                    \
    do {                                                                        \
        const char *check_g_ = (got), *check_w_ = (want);                       \
        if (strcmp(check_g_, check_w_) == 0) {                                  \
            check_passed++;                                                     \
        } else {                                                                \
            check_failed++;                                                     \
            fprintf(stderr, "%s:%d: got\n%s\nwanted\n%s\n", __FILE__, __LINE__, \
                    check_g_, check_w_);                                        \
        }                                                                       \
    } while (0)
#define CHECK_DONE() \
    (printf("%d passed, %d failed\n", check_passed, check_failed), check_failed != 0)
#endif
