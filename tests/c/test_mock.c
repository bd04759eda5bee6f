/* The mock device: its memory is zeroed, can be read and written by its home and by tasks,
 * and by nobody else. */
#include "check.h"
#include "rt/mock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static ing_mem *block(size_t bytes) {
    ing_mem *m = NULL;
    CHECK(ing_mem_new(&ing_home_mock, bytes, &m) == ING_OK);
    return m;
}

static volatile uint8_t *device(const ing_mem *m) {
    return (volatile uint8_t *)(uintptr_t)m->address;
}

/* Does touching it end a process? ASan would call it an error of its own. */
static bool faults(const ing_mem *m) {
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        ing_mock_after_fork();
        _exit(*device(m) == 255);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void test_access(void) {
    ing_mem *m = block(100);
    ing_mem_span s;
    CHECK(!m->host && m->address % 64 == 0);
    CHECK(faults(m));
    CHECK(ing_mem_host(m, 10, 4, ING_MEM_BOTH, &s) == ING_OK);
    CHECK(memcmp(s.at, "\0\0\0\0", 4) == 0);
    memcpy(s.at, "abcd", 4);
    CHECK(ing_mem_done(&s) == ING_OK);
    CHECK(faults(m)); /* closed again */
    CHECK(ing_mem_host(m, 11, 2, ING_MEM_READ, &s) == ING_OK);
    CHECK(memcmp(s.at, "bc", 2) == 0);
    CHECK(ing_mem_done(&s) == ING_OK);
    ing_mem_unref(m);
}

static void test_copies(void) {
    ing_mem *a = block(64), *b = block(64), *host = NULL;
    CHECK(ing_mem_new(&ing_home_cpu, 64, &host) == ING_OK);
    uint32_t item = 0x01020304;
    CHECK(ing_mem_fill(a, 4, 60, &item, sizeof item) == ING_OK);
    CHECK(ing_mem_copy(b, 0, a, 0, 64) == ING_OK);
    CHECK(ing_mem_copy(host, 8, b, 0, 12) == ING_OK);
    CHECK(memcmp(host->host + 8, "\0\0\0\0\4\3\2\1\4\3\2\1", 12) == 0);
    CHECK(ing_mem_copy(a, 60, host, 8, 4) == ING_OK);
    CHECK(ing_mem_copy(host, 0, a, 56, 8) == ING_OK);
    CHECK(memcmp(host->host, "\4\3\2\1\0\0\0\0", 8) == 0);
    CHECK(ing_mem_copy(host, 64, a, 64, 0) == ING_OK);
    for (size_t size = 1; size <= 8; size *= 2) {
        uint64_t v = 0x1122334455667788;
        CHECK(ing_mem_fill(a, 0, 64, &v, size) == ING_OK);
        CHECK(ing_mem_fill(host, 0, 64, &v, size) == ING_OK);
        CHECK(ing_mem_copy(b, 0, host, 0, 64) == ING_OK);
        ing_mem_span x, y;
        CHECK(ing_mem_host(a, 0, 64, ING_MEM_READ, &x) == ING_OK);
        CHECK(ing_mem_host(b, 0, 64, ING_MEM_READ, &y) == ING_OK);
        CHECK(memcmp(x.at, y.at, 64) == 0 && memcmp(x.at + 64 - size, &v, size) == 0);
        CHECK(ing_mem_done(&x) == ING_OK && ing_mem_done(&y) == ING_OK);
    }
    ing_mem_unref(a);
    ing_mem_unref(b);
    ing_mem_unref(host);
}

/* A block that was used reads as zeros; neighbours that are free become one. */
static void test_reuse(void) {
    size_t page = ing_os_page();
    ing_mem *m[4], *all;
    for (int i = 0; i < 4; i++) {
        m[i] = block(page);
        CHECK(ing_mem_fill(m[i], 0, page, "\xff", 1) == ING_OK);
    }
    uint64_t first = m[0]->address;
    CHECK(m[3]->address == first + 3 * page);
    ing_mem_unref(m[1]); /* alone, before another, between two, after one */
    ing_mem_unref(m[0]);
    ing_mem_unref(m[3]);
    ing_mem_unref(m[2]);
    all = block(3 * page + 1);
    CHECK(all->address == first);
    ing_mem_span s;
    CHECK(ing_mem_host(all, 0, all->bytes, ING_MEM_READ, &s) == ING_OK);
    size_t dirty = 0;
    for (size_t i = 0; i < all->bytes; i++) dirty += s.at[i] != 0;
    CHECK(dirty == 0 && ing_mem_done(&s) == ING_OK);
    ing_mem_unref(all);
    CHECK(ing_mem_new(&ing_home_mock, (size_t)1 << 40, &all) == ING_MEMORY && !all);
    CHECK(ing_mem_new(&ing_home_mock, SIZE_MAX, &all) == ING_MEMORY && !all);
    all = block(0);
    ing_mem_unref(all);
}

static int32_t count_up(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)chunk;
    for (int64_t i = begin; i < end; i++)
        ((volatile uint8_t *)(uintptr_t)ctx->args[0])[i]++;
    return 0;
}

static void test_launch(void) {
    ing_mem *m = block(1000);
    ing_rt *rt = ing_rt_new(2);
    uint64_t args[1] = {m->address};
    ing_rt_task t = {.fn = count_up,
                     .info.kind = ING_IR_TASK_RANGE,
                     .info.cost = 10000,
                     .info.end.value = 1000};
    ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args};
    CHECK(ing_mock_run(rt, &l) == 0 && ing_mock_run(rt, &l) == 0);
    CHECK(faults(m));
    ing_mem_span s;
    CHECK(ing_mem_host(m, 0, 1000, ING_MEM_READ, &s) == ING_OK);
    size_t wrong = 0;
    for (size_t i = 0; i < 1000; i++) wrong += s.at[i] != 2;
    CHECK(wrong == 0 && ing_mem_done(&s) == ING_OK);
    ing_rt_free(rt);
    ing_mem_unref(m);
}

int main(void) {
    test_access();
    test_copies();
    test_reuse();
    test_launch();
    return CHECK_DONE();
}
