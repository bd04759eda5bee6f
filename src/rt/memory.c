/* Memory of arrays: zeroed and aligned to a cache line. Large blocks are mappings of
 * their own, so that zeroing costs nothing until a page is touched and freeing gives
 * the pages back. Called by src/py for ndarrays and by the pool for itself. Keeps no
 * state: the size given at freeing says how a block was made. */
#include "rt/rt_int.h"

#include <sys/mman.h>

#define LINE      ((size_t)64)
/* From here on a mapping (two system calls, 1 us, plus page faults) beats zeroing. */
#define MAP_MIN   ((size_t)256 << 10)
/* From here on the mapping is aligned to huge pages and asks for them. */
#define HUGE_SIZE ((size_t)2 << 20)
#define HUGE_MIN  (2 * HUGE_SIZE)

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

static size_t map_align(size_t bytes) {
    return bytes >= HUGE_MIN ? HUGE_SIZE : ing_os_page();
}

static void *map_block(size_t size) {
    void *p =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* A mapping that starts and ends on a huge page: maps one more and trims both ends. */
static void *huge_alloc(size_t size) {
    uint8_t *raw = map_block(size + HUGE_SIZE);
    if (!raw) return NULL;
    size_t head = -(uintptr_t)raw & (HUGE_SIZE - 1);
    if (head) munmap(raw, head);
    munmap(raw + head + size, HUGE_SIZE - head);
    madvise(raw + head, size, MADV_HUGEPAGE); /* advice: may be refused */
    return raw + head;
}

static bool round_up(size_t bytes, size_t align, size_t *out) {
    if (!ing_add_size(bytes, align - 1, out)) return false;
    *out &= ~(align - 1);
    return *out <= PTRDIFF_MAX - 2 * HUGE_SIZE;
}

ing_status ing_rt_alloc_array(size_t bytes, void **out) {
    size_t size;
    *out = NULL;
    if (bytes < MAP_MIN) {
        *out = small_alloc(bytes ? bytes : 1);
    } else if (round_up(bytes, map_align(bytes), &size)) {
        *out = bytes >= HUGE_MIN ? huge_alloc(size) : map_block(size);
    }
    return *out ? ING_OK : ING_MEMORY;
}

void ing_rt_free_array(void *p, size_t bytes) {
    size_t size;
    if (!p) return;
    if (bytes < MAP_MIN)
        small_free(p);
    else if (round_up(bytes, map_align(bytes), &size))
        munmap(p, size);
}
