/* Staging: what a launch needs at the target is copied there and back, what overlaps shares a
 * copy, and when memory or the device fails nothing is leaked and no host byte is changed. */
#include "check.h"
#include "rt/stage.h"

#include <stdlib.h>

/* A device that fails when told: the n-th of these calls, 0 = never. */
static struct {
    uint32_t alloc, read, write;
} failing;

static bool fails(uint32_t *n) {
    return *n && --*n == 0;
}

static ing_status far_alloc(ing_mem *m) {
    void *p = fails(&failing.alloc) ? NULL : calloc(1, m->bytes);
    m->address = (uint64_t)(uintptr_t)p;
    return p ? ING_OK : ING_MEMORY;
}

static void far_free(ing_mem *m) {
    free((void *)(uintptr_t)m->address);
}

static ing_status far_read(const ing_mem *m, size_t offset, void *to, size_t bytes) {
    if (fails(&failing.read)) return ING_OS;
    memcpy(to, (uint8_t *)(uintptr_t)m->address + offset, bytes);
    return ING_OK;
}

static ing_status far_write(ing_mem *m, size_t offset, const void *from, size_t bytes) {
    if (fails(&failing.write)) return ING_OS;
    memcpy((uint8_t *)(uintptr_t)m->address + offset, from, bytes);
    return ING_OK;
}

static const ing_home far_away = {.name = "afar",
                                  .alloc = far_alloc,
                                  .free = far_free,
                                  .read = far_read,
                                  .write = far_write};

enum { BYTES = 512 };

typedef struct job {
    _Alignas(64) uint8_t host[BYTES];
    ing_mem *mem; /* an array of ours, at home here */
    ing_stage *stage;
    uint64_t words[4];
    ing_counters n;
    ing_err e;
} job;

static void job_init(job *j) {
    memset(j, 0, sizeof *j);
    ing_err_init(&j->e);
    CHECK(ing_mem_new(&ing_home_cpu, 64, &j->mem) == ING_OK);
    for (int i = 0; i < BYTES; i++) j->host[i] = (uint8_t)i;
}

static void job_fini(job *j) {
    ing_stage_free(j->stage);
    ing_mem_unref(j->mem);
    ing_err_fini(&j->e);
}

/* Two ranges that overlap, of which one is written; one apart; an array of ours. */
static ing_status collect(job *j) {
    const ing_staged first = {.bytes = 100, .word = 0, .written = true},
                     second = {.bytes = 100, .word = 1},
                     third = {.bytes = 30, .word = 2, .written = true},
                     own = {j->mem, 16, 32, 3, true};
    ING_TRY(ing_stage_add_host(&j->stage, &far_away, j->host + 70, &first, &j->e));
    ING_TRY(ing_stage_add_host(&j->stage, &far_away, j->host + 130, &second, &j->e));
    ING_TRY(ing_stage_add_host(&j->stage, &far_away, j->host + 300, &third, &j->e));
    return ing_stage_add(&j->stage, &far_away, &own, &j->e);
}

/* What a kernel would do at the addresses that it is given. */
static void launch(const job *j) {
    static const uint32_t bytes[4] = {100, 100, 30, 32};
    for (int w = 0; w < 4; w++)
        for (uint32_t i = 0; i < bytes[w]; i++)
            ((uint8_t *)(uintptr_t)j->words[w])[i] += 10;
}

static bool is_untouched(const job *j) {
    bool same = true;
    for (int i = 0; i < BYTES; i++) same &= j->host[i] == (uint8_t)i;
    for (int i = 0; i < 64; i++) same &= j->mem->host[i] == 0;
    return same;
}

/* The second range is not written, but where it lies under the first it is seen there. */
static bool is_right(const job *j) {
    bool right = true;
    for (int i = 0; i < BYTES; i++) {
        int more = (i >= 70 && i < 170) * 10 + (i >= 130 && i < 170) * 10 +
                   (i >= 300 && i < 330) * 10;
        right &= j->host[i] == (uint8_t)(i + more);
    }
    for (int i = 0; i < 64; i++) right &= j->mem->host[i] == 10 * (i >= 16 && i < 48);
    return right;
}

static void test_there_and_back(void) {
    job j;
    job_init(&j);
    CHECK(collect(&j) == ING_OK);
    CHECK(ing_stage_in(j.stage, j.words, &j.n, &j.e) == ING_OK);
    CHECK(j.words[1] == j.words[0] + 60); /* one copy for both */
    CHECK(j.words[0] % 64 == 70 % 64 && j.words[2] % 64 == 300 % 64);
    CHECK(is_untouched(&j));
    launch(&j);
    CHECK(is_untouched(&j));
    CHECK(ing_stage_out(j.stage, &j.n) && is_right(&j));
    CHECK(j.n.at[ING_COUNT_COPIES_IN] == 4);
    CHECK(j.n.at[ING_COUNT_COPIES_OUT] == 3);
    job_fini(&j);
}

static void test_nothing(void) {
    job j;
    job_init(&j);
    const ing_staged empty = {0}, own = {.mem = j.mem};
    CHECK(ing_stage_add_host(&j.stage, &far_away, NULL, &empty, &j.e) == ING_OK);
    CHECK(ing_stage_add(&j.stage, &far_away, &own, &j.e) == ING_OK);
    CHECK(!j.stage);
    job_fini(&j);
}

/* Whatever the device refuses. */
static void test_device(void) {
    for (int k = 0; k < 3; k++) {
        uint32_t *of[] = {&failing.alloc, &failing.write, &failing.read};
        uint32_t calls = k == 0 ? 3 : k == 1 ? 4 : 3; /* blocks, ranges, written ones */
        for (uint32_t n = 1; n <= calls + 1; n++) {
            job j;
            job_init(&j);
            CHECK(collect(&j) == ING_OK);
            *of[k] = n;
            ing_status s = ing_stage_in(j.stage, j.words, &j.n, &j.e);
            bool fine = k == 2 || n > calls;
            CHECK(s == (fine ? ING_OK : k == 0 ? ING_MEMORY : ING_OS));
            CHECK(fine || strstr(j.e.text, "afar"));
            CHECK(is_untouched(&j));
            if (s == ING_OK) launch(&j);
            if (s == ING_OK) CHECK(ing_stage_out(j.stage, &j.n) == (n > calls));
            CHECK(is_right(&j) == (n > calls));
            memset(&failing, 0, sizeof failing);
            job_fini(&j);
        }
    }
}

/* What cannot be copied back is lost; the rest is not. */
static void test_partly_lost(void) {
    job j;
    job_init(&j);
    CHECK(collect(&j) == ING_OK);
    CHECK(ing_stage_in(j.stage, j.words, &j.n, &j.e) == ING_OK);
    launch(&j);
    failing.read = 1;
    CHECK(!ing_stage_out(j.stage, &j.n));
    bool own = j.mem->host[16] == 10;
    CHECK((j.host[70] == 80) + (j.host[300] == (uint8_t)(300 + 10)) + own == 2);
    job_fini(&j);
}

static void test_no_memory(void) {
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        job j;
        job_init(&j);
        ing_alloc_fail_at(n);
        ing_status s = collect(&j);
        if (s == ING_OK) s = ing_stage_in(j.stage, j.words, &j.n, &j.e);
        done = ing_alloc_fail_left() != 0;
        ing_alloc_fail_at(0);
        CHECK(s == (done ? ING_OK : ING_MEMORY));
        CHECK(is_untouched(&j));
        if (s == ING_OK) launch(&j);
        if (s == ING_OK) CHECK(ing_stage_out(j.stage, &j.n) && is_right(&j));
        CHECK(n < 100);
        job_fini(&j);
    }
}

int main(void) {
    test_there_and_back();
    test_nothing();
    test_device();
    test_partly_lost();
    test_no_memory();
    return CHECK_DONE();
}
