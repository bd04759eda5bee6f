/* Keeps what kernels keep within bounds; values are kept by values.c. Called by the writer
 * that went past them, so that a hit never pays. The order is that of last use as far as the mount tells it: the later of
 * st_atime and st_mtime, which on a mount without access times is the time of publishing
 * and under relatime may be a day old. We never write a time ourselves (R21).
 *
 * One process sweeps at a time; the others go on, above the bounds for a moment. It goes
 * down to nine tenths, so that one walk over n entries serves the next n/10 puts. Below the
 * bounds one writer a day walks all the same, for what killed ones left behind. */
#include "store/pack.h"
#include "store/store_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longer than any writer holds a temporary file: the largest entry at 100 kB/s. */
static const uint64_t TEMP_AGE = 3600u * 1000000000ull;
static const uint64_t SWEEP_EVERY = 24u * 3600u * 1000000000ull;

typedef struct swept_item {
    ing_store_item item;
    ing_entry_kind kind;
} swept_item;

typedef struct sweep {
    const ing_store *s;
    ing_entry_kind kind; /* that is being walked */
    ing_vec(swept_item) items;
    ing_store_totals found;
    uint64_t now;
    bool lost; /* no memory for an item */
} sweep;

static void collect(sweep *w, const ing_store_item *item) {
    w->found.entries++;
    w->found.bytes += item->bytes;
    if (!ing_vec_push(&w->items, ((swept_item){*item, w->kind}))) w->lost = true;
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
    const ing_store_item *x = &((const swept_item *)a)->item,
                         *y = &((const swept_item *)b)->item;
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

static ing_store_totals evict(sweep *w, ing_store_totals bounds) {
    ing_store_totals left = w->found, goal = nine_tenths(bounds);
    if (!above(left, bounds)) return left;
    if (w->kind == ING_ENTRY_IMAGE) left.bytes -= ing_packed_drop(w->s);
    if (!above(left, bounds)) return left;
    qsort(w->items.at, w->items.len, sizeof *w->items.at, by_use);
    for (uint32_t i = 0; i < w->items.len && above(left, goal); i++) {
        const swept_item *x = &w->items.at[i];
        if (!drop(w->s, x->kind, x->item.key)) continue;
        left.entries--;
        left.bytes -= x->item.bytes;
    }
    return left;
}

/* What others added while we counted is in the file's numbers and not in ours. */
static uint64_t with_news(uint64_t left, uint64_t before, uint64_t after) {
    return after > before ? left + (after - before) : left;
}

static void write_back(int fd, const sweep *w, ing_store_totals left, bool known,
                       ing_store_totals before) {
    ing_total after = {0}, fresh = {.now = left, .swept = w->now};
    if (!ing_total_take(fd, ING_TOTAL_NUMBERS, 100)) return;
    if (known && ing_total_read(fd, w->kind, &after)) {
        fresh.now.entries = with_news(left.entries, before.entries, after.now.entries);
        fresh.now.bytes = with_news(left.bytes, before.bytes, after.now.bytes);
    }
    ing_total_write(fd, w->kind, &fresh);
}

static void walk(sweep *w, ing_entry_kind group) {
    for (ing_entry_kind k = ING_ENTRY_IMAGE; k < ING_ENTRY_KINDS; k++) {
        if (ing_store_group(k) != group) continue;
        w->kind = k;
        ing_store_scan(w->s, k, sweep_one, w);
    }
    w->kind = group;
    if (group == ING_ENTRY_IMAGE) w->found.bytes += ing_packed_bytes(w->s);
}

ing_status ing_store_sweep(ing_store *s, ing_entry_kind kind, ing_store_totals bounds,
                           ing_store_totals *removed) {
    static const ing_pulse none;
    sweep w = {.s = s, .now = ing_store_wall_ns()};
    ing_total before = {0};
    if (kind == ING_ENTRY_VALUE) return ing_value_sweep(s, bounds, none, removed);
    if (removed) *removed = before.now;
    int fd = ing_total_open(s, kind, true);
    if (fd < 0) return ING_DECLINED;
    if (!ing_total_take(fd, ING_TOTAL_SWEEP, 0)) {
        close(fd);
        return ING_DECLINED;
    }
    bool known = ing_total_read(fd, kind, &before);
    ing_packed_tidy(s);
    walk(&w, ing_store_group(kind));
    ing_store_totals left = evict(&w, bounds);
    write_back(fd, &w, left, known, before.now);
    ing_total_close(fd);
    if (removed)
        *removed = (ing_store_totals){.entries = w.found.entries - left.entries,
                                      .bytes = w.found.bytes - left.bytes};
    ing_vec_fini(&w.items);
    return w.lost ? ING_MEMORY : ING_OK;
}

/* ---- all of it -------------------------------------------------------------------------- */

static bool clear_one(void *ctx, int dir, const char *name, ing_found what,
                      const struct stat *st, ing_hash128 key) {
    sweep *w = ctx;
    ing_store_item item = ing_store_item_of(st, key);
    if (unlinkat(dir, name, 0) == 0 && what == ING_FOUND_ENTRY) collect(w, &item);
    return true;
}

/* Directories go only when they are empty. */
static void clear_dirs(const ing_store *s, ing_entry_kind kind) {
    static const char digit[] = "0123456789abcdef";
    int dir = -1, top = -1;
    const char letter[2] = {ing_store_letter(kind), 0};
    if (ing_store_open_kind(s, letter[0], false, &dir) != ING_REACH_OK) return;
    for (int i = 0; i < 256; i++) {
        const char fan[3] = {digit[i >> 4], digit[i & 15], 0};
        (void)unlinkat(dir, fan, AT_REMOVEDIR);
    }
    if (kind == ING_ENTRY_VALUE) (void)unlinkat(dir, "total", 0);
    close(dir);
    if (ing_store_open_kind(s, 0, false, &top) != ING_REACH_OK) return;
    if (kind != ING_ENTRY_VALUE) {
        (void)unlinkat(top, "total", 0);
        (void)unlinkat(top, ING_PACK_NAME, 0);
    }
    (void)unlinkat(top, letter, AT_REMOVEDIR);
    close(top);
}

ing_status ing_store_clear(ing_store *s, ing_entry_kind kind,
                           ing_store_totals *removed) {
    static const ing_pulse none;
    sweep w = {.s = s};
    if (s->read_only) return ING_DECLINED;
    if (kind == ING_ENTRY_VALUE) {
        ING_TRY(ing_value_clear(s, none, removed));
        clear_dirs(s, kind);
        return ING_OK;
    }
    for (ing_entry_kind k = ING_ENTRY_IMAGE; k < ING_ENTRY_KINDS; k++) {
        if (ing_store_group(k) != ing_store_group(kind)) continue;
        ing_store_scan(s, k, clear_one, &w);
        clear_dirs(s, k);
    }
    if (ing_store_group(kind) == ING_ENTRY_IMAGE) w.found.bytes += ing_packed_drop(s);
    ing_vec_fini(&w.items);
    *removed = w.found;
    return ING_OK;
}

/* ---- putting ------------------------------------------------------------------------------ */

/* A clock that was wrong by more than a day may not put it off for ever. */
static bool is_due(uint64_t swept) {
    uint64_t now = ing_store_wall_ns();
    return (now > swept ? now - swept : swept - now) > SWEEP_EVERY;
}

void ing_store_set_bounds(ing_store *s, ing_store_totals bounds) {
    s->bounds = bounds;
}

ing_status ing_store_put_within(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                                const void *p, size_t n, ing_store_totals bounds) {
    uint64_t old = 0, size = (uint64_t)n + ING_STORE_TRAILER;
    ing_total now = {0};
    if (kind == ING_ENTRY_VALUE)
        return ing_value_put(s, key, p, n, bounds) == ING_OK ? ING_OK : ING_DECLINED;
    if (n > ING_STORE_MAX_ENTRY || (bounds.bytes && size > bounds.bytes)) {
        ing_store_count(s, ING_COUNT_STORE_TOO_LARGE);
        return ING_DECLINED;
    }
    int total = ing_total_begin(s, kind);
    bool replaced = ing_store_size(s, kind, key, &old);
    ing_status put = ing_store_publish(s, kind, key, p, n);
    if (put != ING_OK) {
        if (total >= 0) close(total);
        return put;
    }
    int64_t more = (int64_t)size - (int64_t)(old < INT64_MAX ? old : 0);
    bool known = ing_total_end(s, kind, total, replaced ? 0 : 1, more, &now);
    if (known && kind != ING_ENTRY_VALUE)
        __atomic_store_n(&s->entries, now.now.entries, __ATOMIC_RELAXED);
    if (known && (above(now.now, bounds) || is_due(now.swept)))
        ing_store_sweep(s, kind, bounds, NULL);
    return ING_OK;
}
