/* Arena: many small zeroed objects, freed at once. Owns the memory of one compile
 * (nodes, types, IR) and of interned strings. Must never move an object, and never
 * returns memory that is not zero; a failed allocation is remembered in a->failed. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

/* The first block is small: each kernel that comes from disk keeps one for a few names. */
enum { ALIGN = 16, MIN_BLOCK = 512, MAX_BLOCK = 1 << 20 };

struct ing_arena_block {
    struct ing_arena_block *prev;
    size_t cap; /* bytes after this header */
};
_Static_assert(sizeof(struct ing_arena_block) % ALIGN == 0, "data must stay aligned");

static uint8_t *block_data(struct ing_arena_block *b) {
    return (uint8_t *)(b + 1);
}

void ing_arena_init(ing_arena *a) {
    *a = (ing_arena){0};
}

void ing_arena_fini(ing_arena *a) {
    struct ing_arena_block *b = a->head;
    while (b) {
        struct ing_arena_block *prev = b->prev;
        ing_free(b);
        b = prev;
    }
    ing_arena_init(a);
}

/* Blocks double with the arena, so n objects cost O(log n) calls of malloc. */
static size_t next_block_size(const ing_arena *a) {
    size_t size = a->total;
    if (size < MIN_BLOCK) return MIN_BLOCK;
    return size > MAX_BLOCK ? MAX_BLOCK : size;
}

/* A block of its own for a big object goes below the head, whose free rest stays in
 * use. */
static void *add_block(ing_arena *a, size_t n) {
    size_t common = next_block_size(a) - sizeof(struct ing_arena_block);
    bool own = n > common / 4;
    size_t cap = own ? n : common;
    struct ing_arena_block *b = ing_calloc(1, sizeof *b + cap);
    if (!b) {
        a->failed = true;
        return NULL;
    }
    b->cap = cap;
    a->total += sizeof *b + cap;
    if (own && a->head) {
        b->prev = a->head->prev;
        a->head->prev = b;
    } else {
        b->prev = a->head;
        a->head = b;
        a->used = n;
    }
    return block_data(b);
}

void *ing_arena_alloc(ing_arena *a, size_t n) {
    if (n > PTRDIFF_MAX - MAX_BLOCK) {
        a->failed = true;
        return NULL;
    }
    n = n ? (n + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (!a->head || n > a->head->cap - a->used) return add_block(a, n);
    void *p = block_data(a->head) + a->used;
    a->used += n;
    return p;
}

void *ing_arena_array(ing_arena *a, size_t n, size_t size) {
    size_t total;
    if (!ing_mul_size(n, size, &total)) {
        a->failed = true;
        return NULL;
    }
    return ing_arena_alloc(a, total);
}

char *ing_arena_strdup(ing_arena *a, const char *s, size_t n) {
    char *p = n < SIZE_MAX ? ing_arena_alloc(a, n + 1) : NULL;
    if (!p) {
        a->failed = true;
        return NULL;
    }
    if (n) memcpy(p, s, n);
    return p;
}

char *ing_arena_printf(ing_arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = n < 0 ? NULL : ing_arena_alloc(a, (size_t)n + 1);
    if (p) {
        vsnprintf(p, (size_t)n + 1, fmt, again);
    } else {
        a->failed = true;
    }
    va_end(again);
    va_end(ap);
    return p;
}
