/* Whether arrays of a launch share memory (launch/overlap.c), against every pair compared. */
#include "check.h"

#include "launch/launch.h"

#include <string.h>

enum { ARRAYS = 24, NDIM = 2, WORDS = ARRAYS * (NDIM + 1), ROUNDS = 4000 };

static uint64_t state = 17;

static uint64_t below(uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Arrays of two axes, the last a field in a block; pairs of every second one with those after it. */
static void describe(ing_record *r) {
    ing_record_init(r);
    r->n_words = WORDS;
    for (uint32_t i = 0; i < ARRAYS; i++) {
        ing_record_array a = {.word = i * (NDIM + 1), .ndim = NDIM, .size = 4};
        if (i == ARRAYS - 1)
            a = (ing_record_array){.word = a.word, .size = 4, .at = 64, .span = 256};
        CHECK(ing_vec_push(&r->arrays, a));
    }
    for (uint32_t a = 0; a < ARRAYS; a += 2)
        for (uint32_t b = a + 1; b < ARRAYS; b++) {
            ing_record_apart pair = {a, b};
            CHECK(ing_vec_push(&r->apart, pair));
        }
}

static void place(uint64_t *words, uint32_t i, uint64_t space) {
    words[i * (NDIM + 1)] = 0x10000 + 16 * below(space);
    words[i * (NDIM + 1) + 1] = below(9);
    words[i * (NDIM + 1) + 2] = 1 + below(8);
}

/* One array moves, or changes an extent, or nothing does; seldom and often two share memory. */
static void test_moves(void) {
    ing_record r;
    ing_launch_apart last = {0};
    uint64_t words[WORDS] = {0};
    int shared = 0;
    describe(&r);
    for (uint32_t i = 0; i < ARRAYS; i++) place(words, i, 2000);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t i = (uint32_t)below(ARRAYS);
        if (below(4)) place(words, i, round < ROUNDS / 2 ? 100000 : 2000);
        if (!below(4)) words[i * (NDIM + 1) + 1 + below(2)] = below(40);
        bool want = ing_launch_shares(&r, words, r.apart.len);
        CHECK(ing_launch_overlaps(&r, &last, words) == want);
        CHECK(ing_launch_overlaps(&r, &last, words) == want);
        shared += want;
    }
    CHECK(shared > ROUNDS / 20 && shared < ROUNDS - ROUNDS / 20);
    ing_free(last.words);
    ing_record_fini(&r);
}

/* Two that share memory, and are no pair, do not count. */
static void test_no_pair(void) {
    ing_record r;
    ing_launch_apart last = {0};
    uint64_t words[WORDS] = {0};
    describe(&r);
    for (uint32_t i = 0; i < ARRAYS; i++) {
        words[i * (NDIM + 1)] = 0x10000 + 0x1000 * (uint64_t)i;
        words[i * (NDIM + 1) + 1] = words[i * (NDIM + 1) + 2] = 8;
    }
    words[3 * (NDIM + 1)] = words[1 * (NDIM + 1)];
    CHECK(!ing_launch_overlaps(&r, &last, words));
    words[3 * (NDIM + 1)] = words[2 * (NDIM + 1)];
    CHECK(ing_launch_overlaps(&r, &last, words));
    ing_free(last.words);
    ing_record_fini(&r);
}

int main(void) {
    test_moves();
    test_no_pair();
    return CHECK_DONE();
}
