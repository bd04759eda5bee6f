/* The one owner of executable memory: reserve addresses, commit parts of them to a file
 * or to zeros, protect, free. Called by load.c. No page is ever writable and executable
 * at once, and code that comes from a file is never writable at all (W^X). */
#include "image/image_int.h"

#include <sys/mman.h>

static int prot_bits(ing_exec_prot p) {
    switch (p) {
    case ING_EXEC_R: return PROT_READ;
    case ING_EXEC_RW: return PROT_READ | PROT_WRITE;
    case ING_EXEC_RX: return PROT_READ | PROT_EXEC;
    }
    return PROT_NONE;
}

bool ing_exec_reserve(ing_exec *x, size_t len, int fd, uint64_t at) {
    int prot = fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ;
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE;
    void *p = mmap(NULL, len, prot, flags, fd, (off_t)at);
    if (p == MAP_FAILED) return false;
    x->base = p;
    x->len = len;
    return true;
}

static bool reserved(const ing_exec *x, size_t at, size_t len) {
    return at <= x->len && len <= x->len - at;
}

bool ing_exec_commit(ing_exec *x, size_t at, size_t len, int fd, uint64_t off,
                     ing_exec_prot prot) {
    if (!reserved(x, at, len)) return false;
    int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
    return mmap(x->base + at, len, prot_bits(prot), flags, fd, (off_t)off) !=
           MAP_FAILED;
}

bool ing_exec_protect(ing_exec *x, size_t at, size_t len, ing_exec_prot prot) {
    return reserved(x, at, len) && mprotect(x->base + at, len, prot_bits(prot)) == 0;
}

void ing_exec_free(ing_exec *x) {
    if (x->base) munmap(x->base, x->len);
    *x = (ing_exec){0};
}
