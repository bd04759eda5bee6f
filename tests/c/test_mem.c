/* Memory with an owner: references, who frees, and host access with and without a host
 * pointer. The device is a home made here, whose address is no pointer. */
#include "check.h"
#include "rt/mem.h"

#include <sys/mman.h>
#include <unistd.h>

static uint8_t device[64];
static int allocs, frees, reads, writes, drops;
static bool broken;

static ing_status dev_alloc(ing_mem *m) {
    if (m->bytes > sizeof device) return ING_MEMORY;
    allocs++;
    memset(device, 0, sizeof device);
    m->address = 0x1000;
    return ING_OK;
}

static void dev_free(ing_mem *m) {
    CHECK(m->address == 0x1000);
    frees++;
}

static ing_status dev_read(const ing_mem *m, size_t offset, void *to, size_t bytes) {
    CHECK(offset + bytes <= m->bytes);
    reads++;
    if (broken) return ING_OS;
    memcpy(to, device + offset, bytes);
    return ING_OK;
}

static ing_status dev_write(ing_mem *m, size_t offset, const void *from, size_t bytes) {
    CHECK(offset + bytes <= m->bytes);
    writes++;
    if (broken) return ING_OS;
    memcpy(device + offset, from, bytes);
    return ING_OK;
}

static const ing_home dev = {.name = "device",
                             .alloc = dev_alloc,
                             .free = dev_free,
                             .read = dev_read,
                             .write = dev_write};

static void drop(void *owner) {
    CHECK(owner == &drops);
    drops++;
}

static void test_cpu(void) {
    ing_mem *m;
    ing_mem_span s;
    static const size_t sizes[] = {0, 5, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(ing_mem_new(&ing_home_cpu, sizes[i], &m) == ING_OK);
        CHECK(m->host && m->address == (uint64_t)(uintptr_t)m->host);
        CHECK(m->address % 64 == 0 && m->bytes == sizes[i] && m->last == 0);
        CHECK(ing_mem_host(m, sizes[i] / 2, 1, ING_MEM_BOTH, &s) == ING_OK);
        CHECK(s.at == m->host + sizes[i] / 2); /* the memory itself, no copy */
        CHECK(ing_mem_done(&s) == ING_OK);
        ing_mem_unref(m);
    }
    CHECK(ing_mem_new(&ing_home_cpu, SIZE_MAX, &m) == ING_MEMORY && !m);
    for (uint64_t n = 1; n <= 2; n++) { /* the description, then the block */
        ing_alloc_fail_at(n);
        CHECK(ing_mem_new(&ing_home_cpu, 100, &m) == ING_MEMORY && !m);
    }
    ing_alloc_fail_at(0);
    ing_mem_unref(NULL);
}

/* Blocks that tasks write to under a mask have their pages before the first of them. */
static void test_pages_are_there(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t sizes[] = {3 << 20, 9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ing_mem *m;
        unsigned char there[4096];
        CHECK(ing_mem_new(&ing_home_cpu, sizes[i], &m) == ING_OK);
        size_t skip = -(uintptr_t)m->host & (page - 1);
        size_t n = (sizes[i] - skip) / page;
        CHECK(n <= sizeof there && !mincore(m->host + skip, n * page, there));
        for (size_t k = 0; k < n; k++) CHECK(there[k] & 1);
        ing_mem_unref(m);
    }
}

static void test_foreign(void) {
    int theirs[4] = {1, 2, 3, 4};
    ing_mem *m;
    CHECK(ing_mem_wrap(theirs, sizeof theirs, drop, &drops, &m) == ING_OK);
    CHECK(m->host == (uint8_t *)theirs && m->home == &ing_home_cpu);
    CHECK(ing_mem_ref(m) == m);
    ing_mem_unref(m);
    CHECK(drops == 0);
    ing_mem_unref(m);
    CHECK(drops == 1 && theirs[3] == 4);
    ing_alloc_fail_at(1);
    CHECK(ing_mem_wrap(theirs, sizeof theirs, drop, &drops, &m) == ING_MEMORY && !m);
    ing_alloc_fail_at(0);
    CHECK(drops == 1);
}

static void test_device(void) {
    ing_mem *m;
    ing_mem_span s;
    CHECK(ing_mem_new(&dev, 65, &m) == ING_MEMORY && !m && frees == 0);
    CHECK(ing_mem_new(&dev, 64, &m) == ING_OK && !m->host);
    CHECK(ing_mem_host(m, 8, 4, ING_MEM_WRITE, &s) == ING_OK);
    CHECK(reads == 0);
    memcpy(s.at, "abcd", 4);
    CHECK(device[8] == 0);
    CHECK(ing_mem_done(&s) == ING_OK && writes == 1);
    CHECK(memcmp(device + 8, "abcd", 4) == 0 && device[7] == 0 && device[12] == 0);
    CHECK(ing_mem_host(m, 9, 2, ING_MEM_READ, &s) == ING_OK);
    CHECK(reads == 1 && memcmp(s.at, "bc", 2) == 0);
    s.at[0] = 'x'; /* of a copy that nobody puts back */
    CHECK(ing_mem_done(&s) == ING_OK && writes == 1 && device[9] == 'b');
    CHECK(ing_mem_host(m, 9, 2, ING_MEM_BOTH, &s) == ING_OK);
    s.at[0] = 'y';
    CHECK(ing_mem_done(&s) == ING_OK && memcmp(device + 9, "yc", 2) == 0);
    CHECK(ing_mem_host(m, 64, 0, ING_MEM_BOTH, &s) == ING_OK); /* empty */
    CHECK(ing_mem_done(&s) == ING_OK);
    ing_mem_unref(m);
    CHECK(allocs == 1 && frees == 1);
}

static void test_failing_device(void) {
    ing_mem *m;
    ing_mem_span s;
    CHECK(ing_mem_new(&dev, 8, &m) == ING_OK);
    ing_alloc_fail_at(1);
    CHECK(ing_mem_host(m, 0, 8, ING_MEM_READ, &s) == ING_MEMORY);
    ing_alloc_fail_at(0);
    broken = true;
    CHECK(ing_mem_host(m, 0, 8, ING_MEM_READ, &s) == ING_OS);
    CHECK(ing_mem_host(m, 0, 8, ING_MEM_WRITE, &s) == ING_OK);
    CHECK(ing_mem_done(&s) == ING_OS); /* and its copy is freed: no leak */
    broken = false;
    ing_mem_unref(m);
}

int main(void) {
    test_cpu();
    test_pages_are_there();
    test_foreign();
    test_device();
    test_failing_device();
    return CHECK_DONE();
}
