/* Maps from a 128-bit key to a 32-bit value, and interned strings on top of them.
 * Called by the front end, the IR and the trace. Iteration does not exist on purpose:
 * nothing may come to depend on the order of slots (R6). */
#include "base/base.h"

#include <string.h>

struct ing_map_slot {
    ing_hash128 key;
    uint32_t value; /* 0 = free */
};

enum { MIN_CAP = 16 };

void ing_map_init(ing_map *m) {
    *m = (ing_map){0};
}

void ing_map_fini(ing_map *m) {
    ing_free(m->slots);
    ing_map_init(m);
}

/* Keys need not be digests (small integers are used too), so the bits are mixed here.
 */
static uint32_t slot_of(ing_hash128 key, uint32_t cap) {
    uint64_t x = (key.lo ^ (key.hi << 32 | key.hi >> 32)) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(x >> 32) & (cap - 1);
}

/* The slot that holds key, or the free one where it belongs; cap is a power of two and
 * at least a quarter of the slots is free, so this ends. */
static struct ing_map_slot *find(struct ing_map_slot *slots, uint32_t cap,
                                 ing_hash128 key) {
    uint32_t i = slot_of(key, cap);
    while (slots[i].value && !ing_hash_eq(slots[i].key, key)) i = (i + 1) & (cap - 1);
    return &slots[i];
}

uint32_t ing_map_get(const ing_map *m, ing_hash128 key) {
    return m->cap ? find(m->slots, m->cap, key)->value : 0;
}

static bool grow(ing_map *m) {
    if (m->cap > UINT32_MAX / 2) return false;
    uint32_t cap = m->cap ? m->cap * 2 : MIN_CAP;
    struct ing_map_slot *slots = ing_calloc(cap, sizeof *slots);
    if (!slots) return false;
    for (uint32_t i = 0; i < m->cap; i++) {
        if (m->slots[i].value) *find(slots, cap, m->slots[i].key) = m->slots[i];
    }
    ing_free(m->slots);
    m->slots = slots;
    m->cap = cap;
    return true;
}

bool ing_map_put(ing_map *m, ing_hash128 key, uint32_t value) {
    if (!value) return false; /* 0 says absent; a stored 0 would cut a probe chain */
    if (m->len >= m->cap / 4 * 3 && !grow(m)) return false;
    struct ing_map_slot *slot = find(m->slots, m->cap, key);
    if (!slot->value) m->len++;
    *slot = (struct ing_map_slot){key, value};
    return true;
}

void ing_atoms_init(ing_atoms *a) {
    memset(a, 0, sizeof *a);
}

void ing_atoms_fini(ing_atoms *a) {
    ing_arena_fini(&a->arena);
    ing_map_fini(&a->map);
    ing_vec_fini(&a->text);
    ing_vec_fini(&a->size);
}

/* The two vectors stay of equal length. */
uint32_t ing_atoms_append(ing_atoms *a, const char *s, size_t n) {
    uint32_t id = a->text.len;
    if (n >= UINT32_MAX) return UINT32_MAX;
    char *copy = ing_arena_strdup(&a->arena, s, n);
    if (!copy || !ing_vec_push(&a->text, copy)) return UINT32_MAX;
    if (!ing_vec_push(&a->size, (uint32_t)n)) {
        a->text.len--;
        return UINT32_MAX;
    }
    return id;
}

/* The atom with this text, or 0 and the key that the map has free for it. The hash is fast,
 * not cryptographic: a collision must not merge two names. */
static uint32_t find_text(const ing_atoms *a, const char *s, size_t n,
                          ing_hash128 *key) {
    *key = ing_hash(s, n);
    for (uint32_t id; (id = ing_map_get(&a->map, *key)) != 0; key->lo++) {
        if (a->size.at[id] == n && memcmp(a->text.at[id], s, n) == 0) return id;
    }
    return 0;
}

/* Of equal ones that were appended, the first is found. */
static bool map_appended(ing_atoms *a) {
    for (; a->mapped < a->text.len; a->mapped++) {
        uint32_t id = a->mapped;
        ing_hash128 key;
        if (id && !find_text(a, a->text.at[id], a->size.at[id], &key) &&
            !ing_map_put(&a->map, key, id))
            return false;
    }
    return true;
}

uint32_t ing_atoms_add(ing_atoms *a, const char *s, size_t n) {
    if (n == 0) return 0;
    if (!a->text.len && ing_atoms_append(a, "", 0) == UINT32_MAX) return UINT32_MAX;
    if (!map_appended(a)) return UINT32_MAX;
    ing_hash128 key;
    uint32_t id = find_text(a, s, n, &key);
    if (id) return id;
    id = ing_atoms_append(a, s, n);
    if (id == UINT32_MAX) return id;
    if (!ing_map_put(&a->map, key, id)) {
        a->text.len--;
        a->size.len--;
        return UINT32_MAX;
    }
    a->mapped++;
    return id;
}
