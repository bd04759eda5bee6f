/* The mock device: the CPU's code on memory that nobody may touch outside of a launch. Its
 * memory is a range of addresses without access, opened while launches run and while the
 * home itself copies. So host code that reads or writes an array without asking
 * ing_mem_host dies where it stands. For tests; reached by qd.init(arch="mock").
 *
 * Blocks are whole pages, taken from the front of the range; free ones are kept in order of
 * address and joined. What is given back to the system reads as zeros when it is taken
 * again. All state is under one lock, held for a system call at most. */
#include "rt/mock.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE ((size_t)1 << 36) /* addresses, not memory */

typedef struct hole {
    size_t at, bytes;
} hole;

static struct { /* registry: the mock device's memory */
    pthread_mutex_t lock;
    uint8_t *base; /* NULL: not reserved yet */
    size_t used;   /* bytes from base on that were ever given out */
    uint32_t open; /* launches and copies under way */
    ing_vec(hole) holes;
} mock = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- access ---------------------------------------------------------------------------- */

static bool allow(int prot) {
    return !mock.used || mprotect(mock.base, mock.used, prot) == 0;
}

static bool enter(void) {
    pthread_mutex_lock(&mock.lock);
    bool ok = mock.open || allow(PROT_READ | PROT_WRITE);
    if (ok) mock.open++;
    pthread_mutex_unlock(&mock.lock);
    return ok;
}

static void leave(void) {
    pthread_mutex_lock(&mock.lock);
    if (--mock.open == 0) allow(PROT_NONE);
    pthread_mutex_unlock(&mock.lock);
}

/* In the child after fork; a launch that forked goes on there, so what is open stays so. */
void ing_mock_after_fork(void) {
    pthread_mutex_init(&mock.lock, NULL);
}

/* ---- blocks ------------------------------------------------------------------------------ */

static size_t whole_pages(size_t bytes) {
    size_t page = ing_os_page();
    return bytes ? (bytes + page - 1) & ~(page - 1) : page;
}

static bool reserve(void) {
    if (mock.base) return true;
    void *p = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p != MAP_FAILED) mock.base = p;
    return mock.base != NULL;
}

static bool take_hole(size_t bytes, size_t *at) {
    for (uint32_t i = 0; i < mock.holes.len; i++) {
        hole *h = &mock.holes.at[i];
        if (h->bytes < bytes) continue;
        *at = h->at;
        h->at += bytes;
        h->bytes -= bytes;
        if (!h->bytes) memmove(h, h + 1, (--mock.holes.len - i) * sizeof *h);
        return true;
    }
    return false;
}

/* From the end of what is used; it gets the access that the rest has. */
static bool take_new(size_t bytes, size_t *at) {
    if (bytes > RANGE - mock.used) return false;
    *at = mock.used;
    int prot = mock.open ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (mprotect(mock.base + *at, bytes, prot) != 0) return false;
    mock.used += bytes;
    return true;
}

static ing_status mock_alloc(ing_mem *m) {
    size_t at = 0;
    if (m->bytes > RANGE) return ING_MEMORY;
    pthread_mutex_lock(&mock.lock);
    size_t bytes = whole_pages(m->bytes);
    bool ok = reserve() && (take_hole(bytes, &at) || take_new(bytes, &at));
    if (ok) m->address = (uint64_t)(uintptr_t)(mock.base + at);
    pthread_mutex_unlock(&mock.lock);
    return ok ? ING_OK : ING_MEMORY;
}

/* Joins a hole with its neighbours. Where the list cannot grow the addresses are lost, of
 * which there are many. */
static void add_hole(hole h) {
    uint32_t i = 0;
    while (i < mock.holes.len && mock.holes.at[i].at < h.at) i++;
    bool before = i && mock.holes.at[i - 1].at + mock.holes.at[i - 1].bytes == h.at;
    bool after = i < mock.holes.len && h.at + h.bytes == mock.holes.at[i].at;
    if (before && after) {
        mock.holes.at[i - 1].bytes += h.bytes + mock.holes.at[i].bytes;
        memmove(&mock.holes.at[i], &mock.holes.at[i + 1],
                (--mock.holes.len - i) * sizeof h);
    } else if (before) {
        mock.holes.at[i - 1].bytes += h.bytes;
    } else if (after) {
        mock.holes.at[i].at = h.at;
        mock.holes.at[i].bytes += h.bytes;
    } else if (ing_vec_push(&mock.holes, h)) {
        memmove(&mock.holes.at[i + 1], &mock.holes.at[i],
                (mock.holes.len - 1 - i) * sizeof h);
        mock.holes.at[i] = h;
    }
}

static void mock_free(ing_mem *m) {
    size_t bytes = whole_pages(m->bytes);
    uint8_t *p = (uint8_t *)(uintptr_t)m->address;
    pthread_mutex_lock(&mock.lock);
    if (madvise(p, bytes, MADV_DONTNEED) == 0)
        add_hole((hole){(size_t)(p - mock.base), bytes});
    pthread_mutex_unlock(&mock.lock);
}

/* ---- the home ---------------------------------------------------------------------------- */

static uint8_t *at_of(const ing_mem *m, size_t offset) {
    return (uint8_t *)(uintptr_t)m->address + offset;
}

static ing_status mock_read(const ing_mem *m, size_t offset, void *to, size_t bytes) {
    if (!enter()) return ING_OS;
    memcpy(to, at_of(m, offset), bytes);
    leave();
    return ING_OK;
}

static ing_status mock_write(ing_mem *m, size_t offset, const void *from,
                             size_t bytes) {
    if (!enter()) return ING_OS;
    memcpy(at_of(m, offset), from, bytes);
    leave();
    return ING_OK;
}

static ing_status mock_fill(ing_mem *m, size_t offset, size_t bytes, const void *item,
                            size_t size) {
    if (!enter()) return ING_OS;
    ing_mem_repeat(at_of(m, offset), bytes, item, size);
    leave();
    return ING_OK;
}

const ing_home ing_home_mock = {.name = "the mock device",
                                .alloc = mock_alloc,
                                .free = mock_free,
                                .read = mock_read,
                                .write = mock_write,
                                .fill = mock_fill};

int32_t ing_mock_run(ing_rt *rt, ing_rt_launch *l) {
    if (!enter()) return l->error.code = ING_ABI_MEMORY;
    int32_t failed = ing_rt_run(rt, l);
    leave();
    return failed;
}
