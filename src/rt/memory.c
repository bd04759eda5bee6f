/* Memory of arrays: zeroed and aligned to a cache line. Large blocks are mappings of
 * their own, so that zeroing costs nothing until a page is touched and freeing gives
 * the pages back. The home of the CPU's memory (mem.h); blocks of the pool and of tallies are
 * made here too. Keeps no state: the size given at freeing says how a block was made. */
#include "rt/mem.h"
#include "rt/rt_int.h"

#include <sys/mman.h>

#define LINE      ((size_t)64)
/* From here on a block is a mapping of huge pages: touching 128 MiB for the first time
 * takes 16 ms instead of 82 ms with small ones (bench/pool.c), and random access needs
 * 512 times fewer translations. Below, the heap wins: a block that was used before and is
 * zeroed again costs 1/12 of fresh pages at 4 MiB and 1/40 at 64 KiB. */
#define MAP_MIN   ((size_t)4 << 20)
#define HUGE_SIZE ((size_t)2 << 20)

/* The byte before a small block says how far it is from what ing_calloc gave. */
static void *small_alloc(size_t bytes) {
    uint8_t *raw = ing_calloc(1, bytes + LINE);
    if (!raw) return NULL;
    size_t skip = LINE - ((uintptr_t)raw & (LINE - 1));
    raw[skip - 1] = (uint8_t)skip;
    return raw + skip;
}

static void small_free(void *p) {
    uint8_t *at = p;
    ing_free(at - at[-1]);
}

/* The mapping starts on a huge page: maps one more and trims both ends. */
static void *map_alloc(size_t size) {
    uint8_t *raw = mmap(NULL, size + HUGE_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    size_t head = -(uintptr_t)raw & (HUGE_SIZE - 1);
    if (head) munmap(raw, head);
    if (head < HUGE_SIZE) munmap(raw + head + size, HUGE_SIZE - head);
    madvise(raw + head, size, MADV_HUGEPAGE); /* advice: may be refused */
    return raw + head;
}

/* What a block of `bytes` takes when mapped; false when no system could have it. */
static bool map_size(size_t bytes, size_t *out) {
    size_t page = ing_os_page();
    if (bytes > PTRDIFF_MAX - HUGE_SIZE - page) return false;
    *out = (bytes + page - 1) & ~(page - 1);
    return true;
}

ing_status ing_rt_alloc_array(size_t bytes, void **out) {
    size_t size;
    *out = NULL;
    if (bytes < MAP_MIN)
        *out = small_alloc(bytes);
    else if (map_size(bytes, &size))
        *out = map_alloc(size);
    return *out ? ING_OK : ING_MEMORY;
}

void ing_rt_free_array(void *p, size_t bytes) {
    size_t size;
    if (!p) return;
    if (bytes < MAP_MIN)
        small_free(p);
    else if (map_size(bytes, &size))
        munmap(p, size);
}

/* ---- the home ------------------------------------------------------------------------------ */

/* Vector code of `if (m[i] > 0) v[i] = ..` stores under a mask. On a page that nothing was written
 * to, a store whose mask is empty brings no page but traps into microcode, each time: 27 ns instead
 * of 0.09 per f32, and MPM steps of Genesis four times as long. So pages are there from the start: 0.13 ms per MiB,
 * 0.6 below MAP_MIN. Larger blocks stay lazy: who makes them may use a part only. */
#define TOUCH_MAX ((size_t)256 << 20)

static void touch(uint8_t *at, size_t bytes) {
    size_t page = ing_os_page();
    if (!at || bytes > TOUCH_MAX) return;
    for (size_t k = 0; k < bytes; k += page) *(volatile uint8_t *)(at + k) = 0;
    if (bytes) *(volatile uint8_t *)(at + bytes - 1) = 0;
}

static ing_status cpu_alloc(ing_mem *m) {
    void *p;
    ing_status s = ing_rt_alloc_array(m->bytes, &p);
    touch(p, m->bytes);
    m->host = p;
    m->address = (uint64_t)(uintptr_t)p;
    return s;
}

static void cpu_free(ing_mem *m) {
    ing_rt_free_array(m->host, m->bytes);
}

const ing_home ing_home_cpu = {.name = "cpu", .alloc = cpu_alloc, .free = cpu_free};
