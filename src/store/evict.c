/* Keeps a kind within bounds. Called by the writer that went past them, so that a hit
 * never pays. The order is that of last use as far as the mount tells it: the later of
 * st_atime and st_mtime, which on a mount without access times is the time of publishing
 * and under relatime is a day's coarse. We never write a time ourselves (R21).
 *
 * One process sweeps at a time; the others go on, above the bounds for a moment. It goes
 * down to nine tenths, so that one walk over n entries serves the next n/10 puts. */
#include "store/store_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longer than any writer holds a temporary file: the largest entry at 100 kB/s. */
static const uint64_t TEMP_AGE = 3600u * 1000000000ull;

typedef struct sweep {
    const ing_store *s;
    ing_vec(ing_store_item) items;
    ing_store_totals found;
    uint64_t now;
    bool lost; /* no memory for an item */
} sweep;

static void collect(sweep *w, const ing_store_item *item) {
    w->found.entries++;
    w->found.bytes += item->bytes;
    if (!ing_vec_push(&w->items, *item)) w->lost = true;
}

static bool is_old(const sweep *w, const ing_store_item *item) {
    return w->now > item->published && w->now - item->published > TEMP_AGE;
}

static bool sweep_one(void *ctx, int dir, const char *name, ing_found what,
                      const struct stat *st, ing_hash128 key) {
    sweep *w = ctx;
    ing_store_item item = ing_store_item_of(st, key);
    switch (what) {
    case ING_FOUND_ENTRY: collect(w, &item); break;
    case ING_FOUND_TEMP:
        if (is_old(w, &item)) unlinkat(dir, name, 0);
        break;
    case ING_FOUND_LEASE: ing_lease_heal(w->s, dir, name); break;
    }
    return true;
}

/* Least recently used first; the key decides among equals, for the same result on every
 * machine. */
static int by_use(const void *a, const void *b) {
    const ing_store_item *x = a, *y = b;
    if (x->used != y->used) return x->used < y->used ? -1 : 1;
    if (x->key.hi != y->key.hi) return x->key.hi < y->key.hi ? -1 : 1;
    return x->key.lo < y->key.lo ? -1 : x->key.lo > y->key.lo;
}

static bool above(ing_store_totals t, ing_store_totals bounds) {
    return (bounds.bytes && t.bytes > bounds.bytes) ||
           (bounds.entries && t.entries > bounds.entries);
}

static ing_store_totals nine_tenths(ing_store_totals t) {
    return (ing_store_totals){.entries = t.entries - t.entries / 10,
                              .bytes = t.bytes - t.bytes / 10};
}

static bool drop(const ing_store *s, ing_entry_kind kind, ing_hash128 key) {
    char hex[33];
    int dir = -1;
    ing_hash_hex(key, hex);
    ing_reach r = ing_store_open_fan(s, ing_store_letter(kind), hex, false, &dir);
    bool gone = r == ING_REACH_OK && unlinkat(dir, hex, 0) == 0;
    if (dir >= 0) close(dir);
    if (gone) ing_store_count(s, ING_COUNT_STORE_EVICTED);
    return gone;
}

static ing_store_totals evict(sweep *w, ing_entry_kind kind, ing_store_totals bounds) {
    ing_store_totals left = w->found, goal = nine_tenths(bounds);
    if (!above(left, bounds)) return left;
    qsort(w->items.at, w->items.len, sizeof *w->items.at, by_use);
    for (uint32_t i = 0; i < w->items.len && above(left, goal); i++) {
        if (!drop(w->s, kind, w->items.at[i].key)) continue;
        left.entries--;
        left.bytes -= w->items.at[i].bytes;
    }
    return left;
}

/* What others added while we counted is in the file's numbers and not in ours. */
static uint64_t with_news(uint64_t left, uint64_t before, uint64_t after) {
    return after > before ? left + (after - before) : left;
}

static void write_back(int fd, ing_entry_kind kind, ing_store_totals left, bool known,
                       ing_store_totals before) {
    ing_store_totals after = {0, 0};
    if (!ing_total_take(fd, ING_TOTAL_NUMBERS, 100)) return;
    if (known && ing_total_read(fd, kind, &after)) {
        left.entries = with_news(left.entries, before.entries, after.entries);
        left.bytes = with_news(left.bytes, before.bytes, after.bytes);
    }
    ing_total_write(fd, kind, &left);
}

ing_status ing_store_sweep(ing_store *s, ing_entry_kind kind, ing_store_totals bounds,
                           ing_store_totals *removed) {
    sweep w = {.s = s, .now = ing_store_wall_ns()};
    ing_store_totals before = {0, 0};
    if (removed) *removed = before;
    int fd = ing_total_open(s, kind, true);
    if (fd < 0) return ING_DECLINED;
    if (!ing_total_take(fd, ING_TOTAL_SWEEP, 0)) {
        close(fd);
        return ING_DECLINED;
    }
    bool known = ing_total_read(fd, kind, &before);
    ing_store_scan(s, kind, sweep_one, &w);
    ing_store_totals left = evict(&w, kind, bounds);
    write_back(fd, kind, left, known, before);
    close(fd); /* and with it both locks */
    if (removed)
        *removed = (ing_store_totals){.entries = w.found.entries - left.entries,
                                      .bytes = w.found.bytes - left.bytes};
    ing_vec_fini(&w.items);
    return w.lost ? ING_MEMORY : ING_OK;
}

ing_status ing_store_put_within(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                                const void *p, size_t n, ing_store_totals bounds) {
    uint64_t old = 0, size = (uint64_t)n + ING_STORE_TRAILER;
    ing_store_totals now = {0, 0};
    if (n > ING_STORE_MAX_ENTRY || (bounds.bytes && size > bounds.bytes)) {
        ing_store_count(s, ING_COUNT_STORE_TOO_LARGE);
        return ING_DECLINED;
    }
    int total = ing_total_begin(s, kind);
    bool replaced = ing_store_size(s, kind, key, &old);
    ing_status put = ing_store_put(s, kind, key, p, n);
    if (put != ING_OK) {
        if (total >= 0) close(total);
        return put;
    }
    int64_t more = (int64_t)size - (int64_t)(old < INT64_MAX ? old : 0);
    if (ing_total_end(s, kind, total, replaced ? 0 : 1, more, &now) &&
        above(now, bounds))
        ing_store_sweep(s, kind, bounds, NULL);
    return ING_OK;
}
