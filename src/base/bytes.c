/* Growable arrays and byte buffers. Called by every folder that writes text, formats or
 * lists. A lost append is sticky: the buffer takes nothing more, so that a result with
 * a hole in it cannot be mistaken for a whole one. Must never reallocate while
 * formatting. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

bool ing_vec_grow_(void **at, uint32_t *cap, uint32_t need, size_t size) {
    if (need <= *cap) return true;
    uint64_t n = *cap ? (uint64_t)*cap * 2 : 8;
    if (n < need) n = need;
    if (n > UINT32_MAX) n = UINT32_MAX;
    size_t bytes;
    if (!ing_mul_size((size_t)n, size, &bytes)) return false;
    /* `at` really is a T **: it is read and written as bytes, whatever T is. */
    void *p;
    memcpy(&p, at, sizeof p);
    p = ing_realloc(p, bytes);
    if (!p) return false;
    memcpy(at, &p, sizeof p);
    *cap = (uint32_t)n;
    return true;
}

void ing_bytes_init(ing_bytes *b) {
    *b = (ing_bytes){0};
}

void ing_bytes_fini(ing_bytes *b) {
    ing_free(b->at);
    ing_bytes_init(b);
}

void ing_bytes_clear(ing_bytes *b) {
    b->len = 0;
    b->failed = false;
    if (b->at) b->at[0] = 0;
}

bool ing_bytes_reserve(ing_bytes *b, size_t more) {
    size_t need;
    if (b->failed) return false;
    if (!ing_add_size(b->len, more, &need) || !ing_add_size(need, 1, &need)) goto lost;
    if (need <= b->cap) return true;
    size_t cap = b->cap < SIZE_MAX / 2 ? b->cap * 2 : SIZE_MAX;
    if (cap < need) cap = need;
    if (cap < 64) cap = 64;
    uint8_t *p = ing_realloc(b->at, cap);
    if (!p) goto lost;
    b->at = p;
    b->cap = cap;
    b->at[b->len] = 0;
    return true;
lost:
    b->failed = true;
    return false;
}

void ing_bytes_put(ing_bytes *b, const void *p, size_t n) {
    if (!ing_bytes_reserve(b, n)) return;
    if (n) memcpy(b->at + b->len, p, n);
    b->len += n;
    b->at[b->len] = 0;
}

void ing_bytes_puts(ing_bytes *b, const char *s) {
    ing_bytes_put(b, s, strlen(s));
}

void ing_bytes_printf(ing_bytes *b, const char *fmt, ...) {
    if (!ing_bytes_reserve(b, 0)) return;
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t room = b->cap - b->len;
    int n = vsnprintf((char *)b->at + b->len, room, fmt, ap);
    if (n < 0) {
        b->failed = true;
    } else if ((size_t)n < room) {
        b->len += (size_t)n;
    } else if (ing_bytes_reserve(b, (size_t)n)) {
        vsnprintf((char *)b->at + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    b->at[b->len] = 0; /* a half-written tail is no part of the text */
    va_end(again);
    va_end(ap);
}

void ing_bytes_u8(ing_bytes *b, uint8_t v) {
    ing_bytes_put(b, &v, 1);
}

void ing_bytes_u32(ing_bytes *b, uint32_t v) {
    uint8_t le[4];
    for (int i = 0; i < 4; i++) le[i] = (uint8_t)(v >> 8 * i);
    ing_bytes_put(b, le, sizeof le);
}

void ing_bytes_u64(ing_bytes *b, uint64_t v) {
    uint8_t le[8];
    for (int i = 0; i < 8; i++) le[i] = (uint8_t)(v >> 8 * i);
    ing_bytes_put(b, le, sizeof le);
}

char *ing_bytes_take(ing_bytes *b) {
    char *p = NULL;
    if (ing_bytes_reserve(b, 0)) {
        p = (char *)b->at;
        b->at = NULL;
    }
    ing_bytes_fini(b);
    return p;
}
