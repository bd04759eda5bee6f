/* Values of FileCache and CachedStep: streamed, of any size, and never above the bound.
 * Called by src/py/value/filecache.c; the other kinds of entries are in store.c and evict.c.
 *
 * 1. Every change (an entry that comes, goes or is replaced; a temporary file that grows or
 *    goes) is made under the lock on the numbers of <dir>/d/total (total.c). Who changes
 *    spoils the file first and writes the new numbers last; so who finds it spoilt, with the
 *    lock, follows a crash, and counts. The numbers are exact whenever they can be read.
 * 2. Room is made before it is used: a writer reserves the bytes of its temporary file, by
 *    extending it under the lock, and what is least recently used goes first. Entries and
 *    temporary files together never exceed the bound.
 * 3. A writer holds a flock on its temporary file while it lives. One that is free was left
 *    by a writer that died, and whoever counts removes it.
 * 4. Readers take no lock and write nothing.
 *
 * A lock that a stopped process holds is waited for, up to PATIENCE; then the value is not
 * stored, and the next ones wait for STUCK only, until the lock is had again. On a mount without locks the bound is kept as well as one writer can. */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* WHOLE is the size up to which an entry is written and read in one go: room is then made
 * once, for the exact size. */
enum { WHOLE = 8 << 20, SMALL = 256 << 10, BLOCK = 1 << 20 };
static const uint64_t PATIENCE = 10 * 1000000000ull, STUCK = 100000000;
static const uint64_t TEMP_AGE = 3600u * 1000000000ull;
static const uint64_t SWEEP_EVERY = 24u * 3600u * 1000000000ull;
static const uint64_t PULSE_EVERY =
    20000000; /* a signal has to be seen within 200 ms */
static const ing_entry_kind KIND = ING_ENTRY_VALUE;

/* ---- the pulse -------------------------------------------------------------------------- */

typedef struct beat {
    ing_pulse pulse;
    uint64_t next;
} beat;

static beat beat_of(ing_pulse pulse) {
    return (beat){pulse, ing_os_now_ns() + PULSE_EVERY};
}

static bool go_on(beat *b) {
    uint64_t now = ing_os_now_ns();
    if (!b->pulse.go_on || now < b->next) return true;
    b->next = now + PULSE_EVERY;
    return b->pulse.go_on(b->pulse.self);
}

/* ---- the numbers and their lock --------------------------------------------------------- */

typedef struct ledger {
    const ing_store *s;
    int fd;
    ing_total t;
    beat beat;
    bool known;   /* t is what there is */
    bool stopped; /* by the pulse */
    bool lost;    /* no memory to count */
} ledger;

/* 1: ours, 0: there are no locks here, -1: not in time. */
static int take_lock(ledger *l) {
    struct flock lock = {.l_type = F_WRLCK, .l_start = ING_TOTAL_NUMBERS, .l_len = 1};
    bool *stuck = &l->s->fds->stuck, was = __atomic_load_n(stuck, __ATOMIC_RELAXED);
    uint64_t end = ing_os_now_ns() + (was ? STUCK : PATIENCE);
    long pause = 20000;
    while (fcntl(l->fd, F_OFD_SETLK, &lock) != 0) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) return 0;
        l->stopped = !go_on(&l->beat);
        if (l->stopped) return -1;
        if (ing_os_now_ns() > end) {
            __atomic_store_n(stuck, true, __ATOMIC_RELAXED);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        if (pause < 2000000) pause *= 2;
    }
    if (was) __atomic_store_n(stuck, false, __ATOMIC_RELAXED);
    return 1;
}

/* Before a change: from here to `settle` a crash is seen by the next one. */
static void spoil(const ledger *l) {
    static const uint8_t nothing[8];
    (void)!pwrite(l->fd, nothing, sizeof nothing, 0);
}

static void settle(const ledger *l) {
    ing_total_write(l->fd, KIND, &l->t);
}

static void leave(ledger *l) {
    if (l->fd >= 0) ing_total_close(l->fd);
    l->fd = -1;
}

/* ---- the walk ----------------------------------------------------------------------------- */

typedef struct walk {
    ledger *l;
    ing_vec(ing_store_item) items;
    ing_total found;
    uint64_t now;
    bool heal; /* leases too */
    bool lost; /* no memory for an item */
} walk;

/* A file of a lease that is being made tells by its age alone; it is no part of the size. */
static bool is_dead(int dir, const char *name, const struct stat *st, uint64_t now) {
    uint64_t made = (uint64_t)st->st_mtim.tv_sec * 1000000000u;
    bool old = now > made && now - made > TEMP_AGE;
    if (ing_store_ends_with(name, ING_STORE_CLAIM)) return old;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool dead = flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && old);
    close(fd);
    return dead;
}

static bool see(void *ctx, int dir, const char *name, ing_found what,
                const struct stat *st, ing_hash128 key) {
    walk *w = ctx;
    ing_store_item item = ing_store_item_of(st, key);
    switch (what) {
    case ING_FOUND_ENTRY:
        w->found.now.entries++;
        w->found.now.bytes += item.bytes;
        if (!ing_vec_push(&w->items, item)) w->lost = true;
        break;
    case ING_FOUND_TEMP:
        if (is_dead(dir, name, st, w->now) && unlinkat(dir, name, 0) == 0) break;
        if (!ing_store_ends_with(name, ING_STORE_CLAIM)) w->found.pending += item.bytes;
        break;
    case ING_FOUND_LEASE:
        if (w->heal) ing_lease_heal(w->l->s, dir, name);
        break;
    }
    w->l->stopped = w->l->stopped || !go_on(&w->l->beat);
    return !w->l->stopped && !w->lost;
}

/* All of it, with the lock: the numbers are those of the walk then. False: it was stopped,
 * or the disk or the memory failed; what was known before still holds. */
static bool walk_all(walk *w, ledger *l, bool heal) {
    *w = (walk){.l = l, .now = ing_store_wall_ns(), .heal = heal};
    w->found.swept = heal ? w->now : l->t.swept;
    spoil(l);
    bool ok = ing_store_scan(l->s, KIND, see, w) == ING_OK && !l->stopped && !w->lost;
    if (ok) l->t = w->found;
    l->known = l->known || ok;
    l->lost = w->lost;
    if (l->known) settle(l);
    return ok;
}

static bool stat_total(const ing_store *s, int *dir, struct stat *st) {
    *dir = -1;
    return ing_store_open_kind(s, ing_store_letter(KIND), false, dir) == ING_REACH_OK &&
           fstatat(*dir, "total", st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What is in its place and cannot be ours is in the way of every writer. */
static bool forget_odd(const ing_store *s) {
    struct stat st;
    int dir;
    bool odd = stat_total(s, &dir, &st) && !S_ISREG(st.st_mode);
    bool gone = odd && !s->read_only && unlinkat(dir, "total", 0) == 0;
    if (dir >= 0) close(dir);
    return gone;
}

/* A lock on a file that somebody has removed locks nobody out. */
static bool is_named(const ledger *l) {
    struct stat a, b;
    int dir;
    bool same = stat_total(l->s, &dir, &a) && fstat(l->fd, &b) == 0 &&
                a.st_ino == b.st_ino && a.st_dev == b.st_dev;
    if (dir >= 0) close(dir);
    return same;
}

static bool lock_total(ledger *l, bool create) {
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES; i++) {
        l->fd = ing_total_open(l->s, KIND, create);
        if (l->fd < 0 && !(create && forget_odd(l->s))) return false;
        if (l->fd >= 0 && take_lock(l) < 0) return false;
        if (l->fd >= 0 && is_named(l)) return true;
        leave(l);
    }
    return false;
}

/* True: the lock is held, the numbers are exact; `leave` gives it back. */
static bool enter(const ing_store *s, ing_pulse pulse, bool create, ledger *l) {
    *l = (ledger){.s = s, .fd = -1, .beat = beat_of(pulse)};
    bool ok = lock_total(l, create);
    l->known = ok && ing_total_read(l->fd, KIND, &l->t);
    if (ok && !l->known) {
        walk w;
        l->t = (ing_total){.swept = ing_store_wall_ns()};
        ok = walk_all(&w, l, false);
        ing_vec_fini(&w.items);
    }
    if (!ok) leave(l);
    return ok;
}

/* ---- eviction ------------------------------------------------------------------------------- */

static int by_use(const void *a, const void *b) {
    const ing_store_item *x = a, *y = b;
    if (x->used != y->used) return x->used < y->used ? -1 : 1;
    if (x->key.hi != y->key.hi) return x->key.hi < y->key.hi ? -1 : 1;
    return x->key.lo < y->key.lo ? -1 : x->key.lo > y->key.lo;
}

static bool unlink_entry(const ing_store *s, ing_hash128 key) {
    char hex[33];
    int dir = -1;
    ing_hash_hex(key, hex);
    ing_reach r = ing_store_open_fan(s, ing_store_letter(KIND), hex, false, &dir);
    bool gone = r == ING_REACH_OK && unlinkat(dir, hex, 0) == 0;
    if (dir >= 0) close(dir);
    return gone;
}

/* Whether so much more is within the bounds. */
static bool fits(const ing_total *t, ing_store_totals bounds, ing_store_totals more) {
    uint64_t used = t->now.bytes + t->pending;
    bool bytes = !bounds.bytes ||
                 (more.bytes <= bounds.bytes && used <= bounds.bytes - more.bytes);
    return bytes &&
           (!bounds.entries || t->now.entries + more.entries <= bounds.entries);
}

/* One walk over n entries is to serve the next n/10 puts. */
static ing_store_totals nine_tenths(ing_store_totals t) {
    return (ing_store_totals){.entries = t.entries - t.entries / 10,
                              .bytes = t.bytes - t.bytes / 10};
}

static bool fits_well(const ing_total *t, ing_store_totals bounds,
                      ing_store_totals more) {
    static const ing_store_totals none;
    return fits(t, nine_tenths(bounds), none) && fits(t, bounds, more);
}

/* Walks, and removes what is least recently used, until `more` fits; nothing where what is
 * being written leaves no room. */
static ing_status sweep(ledger *l, ing_store_totals bounds, ing_store_totals more) {
    walk w;
    bool ok = walk_all(&w, l, true);
    bool of_use = !bounds.bytes || (more.bytes <= bounds.bytes &&
                                    l->t.pending <= bounds.bytes - more.bytes);
    if (ok && of_use && !fits(&l->t, bounds, more)) {
        spoil(l);
        qsort(w.items.at, w.items.len, sizeof *w.items.at, by_use);
        for (uint32_t i = 0; i < w.items.len && !fits_well(&l->t, bounds, more); i++) {
            if (!unlink_entry(l->s, w.items.at[i].key)) continue;
            ing_store_count(l->s, ING_COUNT_STORE_EVICTED);
            l->t.now.entries--;
            l->t.now.bytes -= w.items.at[i].bytes;
        }
        settle(l);
    }
    ing_vec_fini(&w.items);
    return ok           ? ING_OK
           : l->stopped ? ING_CANCELLED
           : w.lost     ? ING_MEMORY
                        : ING_DECLINED;
}

static bool is_due(uint64_t swept) {
    uint64_t now = ing_store_wall_ns();
    return (now > swept ? now - swept : swept - now) > SWEEP_EVERY;
}

ing_status ing_value_sweep(ing_store *s, ing_store_totals bounds, ing_pulse pulse,
                           ing_store_totals *removed) {
    static const ing_store_totals none;
    ledger l;
    if (removed) *removed = none;
    if (s->read_only) return ING_DECLINED;
    if (!enter(s, pulse, true, &l)) return l.lost ? ING_MEMORY : ING_DECLINED;
    ing_store_totals before = l.t.now;
    ing_status status = sweep(&l, bounds, none);
    if (status == ING_OK && removed)
        *removed = (ing_store_totals){.entries = before.entries - l.t.now.entries,
                                      .bytes = before.bytes - l.t.now.bytes};
    leave(&l);
    return status;
}

/* ---- totals, removal ------------------------------------------------------------------------ */

static bool count_one(void *ctx, const ing_store_item *item) {
    ing_store_totals *t = ctx;
    t->entries++;
    t->bytes += item->bytes;
    return true;
}

ing_status ing_value_totals(ing_store *s, ing_pulse pulse, ing_store_totals *out) {
    ing_total t = {0};
    ledger l;
    int fd = ing_total_open(s, KIND, false);
    bool ok = fd >= 0 && ing_total_read(fd, KIND, &t);
    if (fd >= 0) close(fd);
    if (fd >= 0 && !ok) { /* somebody is at it, or has died at it */
        ok = enter(s, pulse, false, &l);
        if (ok) t = l.t;
        if (ok) leave(&l);
    }
    if (!ok) ok = ing_store_each(s, KIND, count_one, &t.now) == ING_OK;
    *out = t.now;
    return ok ? ING_OK : ING_DECLINED;
}

/* The entry's size; false: none of ours is there, or not the one that was `seen`. */
static bool stat_in(int dir, const char *hex, const ing_value_reader *seen,
                    uint64_t *size) {
    struct stat st;
    if (fstatat(dir, hex, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    *size = (uint64_t)st.st_size;
    return !seen || (st.st_dev == seen->device && st.st_ino == seen->inode);
}

bool ing_value_remove(ing_store *s, ing_hash128 key, const ing_value_reader *seen,
                      ing_pulse pulse) {
    char hex[33];
    uint64_t size = 0;
    int dir = -1;
    ledger l;
    if (s->read_only) return false;
    ing_hash_hex(key, hex);
    bool gone =
        ing_store_open_fan(s, ing_store_letter(KIND), hex, false, &dir) == ING_REACH_OK;
    gone =
        gone && stat_in(dir, hex, seen, &size); /* without the lock: mostly it is not */
    if (gone && (gone = enter(s, pulse, true, &l))) {
        spoil(&l);
        gone = stat_in(dir, hex, seen, &size) && unlinkat(dir, hex, 0) == 0;
        if (gone) {
            l.t.now.entries--;
            l.t.now.bytes -= size;
        }
        settle(&l);
        leave(&l);
    }
    if (dir >= 0) close(dir);
    return gone;
}

/* Temporary files of living writers stay. */
ing_status ing_value_clear(ing_store *s, ing_pulse pulse, ing_store_totals *removed) {
    walk w;
    ledger l;
    *removed = (ing_store_totals){0, 0};
    if (s->read_only || !enter(s, pulse, true, &l)) return ING_DECLINED;
    bool ok = walk_all(&w, &l, true);
    spoil(&l);
    for (uint32_t i = 0; ok && i < w.items.len; i++) {
        if (!unlink_entry(s, w.items.at[i].key)) continue;
        removed->entries++;
        removed->bytes += w.items.at[i].bytes;
    }
    l.t.now.entries -= removed->entries;
    l.t.now.bytes -= removed->bytes;
    settle(&l);
    leave(&l);
    ing_vec_fini(&w.items);
    return ok ? ING_OK : ING_DECLINED;
}

/* ---- writing ---------------------------------------------------------------------------------- */

struct ing_value_writer {
    ing_store *s;
    ing_hash128 key;
    char hex[33], temp[ING_STORE_TEMP];
    int dir, fd;
    ing_store_totals bounds;
    ing_pulse pulse;
    ing_hasher hasher;
    ing_bytes held;    /* not written yet */
    uint64_t length;   /* of the payload so far */
    uint64_t written;  /* to the temporary file */
    uint64_t reserved; /* its size */
    ing_status status; /* the first that went wrong */
};

ing_status ing_value_begin(ing_store *s, ing_hash128 key, ing_store_totals bounds,
                           ing_pulse pulse, ing_value_writer **out) {
    ing_value_writer *w = s->read_only ? NULL : ing_calloc(1, sizeof *w);
    *out = w;
    if (s->read_only) return ing_store_declined(s, ING_REACH_FAILED);
    if (!w) return ING_MEMORY;
    w->s = s;
    w->key = key;
    ing_hash_hex(key, w->hex);
    w->dir = w->fd = -1;
    w->bounds = bounds;
    w->pulse = pulse;
    ing_hasher_init(&w->hasher);
    ing_bytes_init(&w->held);
    return ING_OK;
}

static ing_status fail(ing_value_writer *w, ing_status status) {
    if (w->status == ING_OK) w->status = status;
    return w->status;
}

static ing_status too_large(ing_value_writer *w) {
    ing_store_count(w->s, ING_COUNT_STORE_TOO_LARGE);
    return fail(w, ING_VALUE);
}

static ing_status disk_failed(ing_value_writer *w) {
    return fail(w, ing_store_declined(w->s, ING_REACH_FAILED));
}

/* With the lock, so that nobody finds it before it is locked (rule 3). */
static bool open_temp(ing_value_writer *w) {
    ing_reach r =
        ing_store_open_fan(w->s, ing_store_letter(KIND), w->hex, true, &w->dir);
    if (r != ING_REACH_OK) return false;
    w->fd = ing_store_open_temp(w->dir, w->hex, w->temp);
    if (w->fd >= 0) (void)flock(w->fd, LOCK_EX | LOCK_NB);
    return w->fd >= 0;
}

typedef enum room { ROOM, ROOM_LATER, NO_ROOM } room;

/* With the lock: `more` bytes of room, by evicting if need be. Others that are writing may
 * give back theirs soon. */
static room make_room(ing_value_writer *w, ledger *l, uint64_t more) {
    ing_store_totals need = {.entries = 1, .bytes = more};
    bool fine = fits(&l->t, w->bounds, need);
    if (fine && !is_due(l->t.swept)) return ROOM;
    ing_status swept = sweep(l, w->bounds, need);
    if (swept != ING_CANCELLED && fits(&l->t, w->bounds, need)) return ROOM;
    if (swept == ING_OK && l->t.pending > w->reserved) return ROOM_LATER;
    if (swept == ING_OK)
        too_large(w);
    else
        fail(w, swept);
    return NO_ROOM;
}

/* Waits for room; true: the lock is held. */
static bool enter_with_room(ing_value_writer *w, ledger *l, uint64_t more) {
    uint64_t end = ing_os_now_ns() + PATIENCE;
    beat b = beat_of(w->pulse);
    for (;;) {
        if (!enter(w->s, w->pulse, true, l)) {
            if (l->stopped || l->lost)
                fail(w, l->stopped ? ING_CANCELLED : ING_MEMORY);
            else
                disk_failed(w);
            return false;
        }
        room r = make_room(w, l, more);
        if (r == ROOM) return true;
        leave(l);
        if (r == NO_ROOM) return false;
        if (ing_os_now_ns() > end) return too_large(w), false;
        if (!go_on(&b)) return fail(w, ING_CANCELLED), false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

/* With the lock: the temporary file is `more` bytes larger. */
static bool extend(ing_value_writer *w, ledger *l, uint64_t more) {
    spoil(l);
    bool ok = (w->fd >= 0 || open_temp(w)) &&
              ftruncate(w->fd, (off_t)(w->reserved + more)) == 0;
    if (ok) {
        w->reserved += more;
        l->t.pending += more;
    }
    return ok;
}

static ing_status reserve(ing_value_writer *w, uint64_t bytes) {
    ledger l;
    if (w->status != ING_OK) return w->status;
    if (w->written + bytes <= w->reserved) return ING_OK;
    uint64_t more = w->written + bytes - w->reserved;
    if (!enter_with_room(w, &l, more)) return w->status;
    bool ok = extend(w, &l, more);
    settle(&l);
    leave(&l);
    return ok ? ING_OK : disk_failed(w);
}

static bool put_out(ing_value_writer *w, const void *p, size_t n) {
    if (!ing_os_write_all(w->fd, p, n)) return false;
    w->written += n;
    return true;
}

/* What is held, and these: to the file. */
static ing_status spill(ing_value_writer *w, const void *p, size_t n) {
    ING_TRY(reserve(w, w->held.len + n));
    if (!put_out(w, w->held.at, w->held.len) || !put_out(w, p, n))
        return disk_failed(w);
    ing_bytes_clear(&w->held);
    return ING_OK;
}

ing_status ing_value_announce(ing_value_writer *w, uint64_t n) {
    uint64_t whole = w->length + ING_STORE_TRAILER;
    if (w->status != ING_OK) return w->status;
    if (w->bounds.bytes && (n > w->bounds.bytes || whole > w->bounds.bytes - n))
        return too_large(w);
    return n < WHOLE ? ING_OK : reserve(w, w->held.len + n);
}

ing_status ing_value_write(ing_value_writer *w, const void *p, size_t n) {
    ING_TRY(ing_value_announce(w, n));
    ing_hasher_raw(&w->hasher, p, n);
    w->length += n;
    if (w->held.len + n > WHOLE || w->written + w->held.len + n <= w->reserved)
        return spill(w, p, n);
    ing_bytes_put(&w->held, p, n);
    return ing_bytes_ok(&w->held) ? ING_OK : fail(w, ING_MEMORY);
}

/* With the lock and the whole entry in the temporary file. */
static bool publish(ing_value_writer *w, ledger *l) {
    uint64_t old = 0;
    int fd = w->fd;
    bool replaced = stat_in(w->dir, w->hex, NULL, &old);
    w->fd = -1;
    if (close(fd) != 0 || renameat(w->dir, w->temp, w->dir, w->hex) != 0) return false;
    l->t.pending -= w->reserved < l->t.pending ? w->reserved : l->t.pending;
    l->t.now.bytes += w->written - (replaced ? old : 0);
    l->t.now.entries += !replaced;
    w->reserved = 0;
    w->temp[0] = 0;
    ing_store_count(w->s, ING_COUNT_STORE_PUBLISHED);
    return true;
}

ing_status ing_value_publish(ing_value_writer *w) {
    uint8_t trailer[ING_STORE_TRAILER];
    ledger l;
    ING_TRY(ing_value_announce(w, 0));
    ing_store_trailer_of(trailer, KIND, w->key, &w->hasher, w->length);
    uint64_t size = w->written + w->held.len + sizeof trailer;
    uint64_t more = size > w->reserved ? size - w->reserved : 0;
    if (!enter_with_room(w, &l, more)) return w->status;
    bool ok = extend(w, &l, more) && put_out(w, w->held.at, w->held.len) &&
              put_out(w, trailer, sizeof trailer) &&
              ftruncate(w->fd, (off_t)w->written) == 0 && publish(w, &l);
    settle(&l);
    leave(&l);
    return ok ? ING_OK : disk_failed(w);
}

ing_status ing_value_status(const ing_value_writer *w) {
    return w->status;
}

void ing_value_end(ing_value_writer *w) {
    static const ing_pulse none;
    ledger l;
    if (!w) return;
    if (w->temp[0] && enter(w->s, none, false, &l)) {
        spoil(&l);
        if (unlinkat(w->dir, w->temp, 0) == 0)
            l.t.pending -= w->reserved < l.t.pending ? w->reserved : l.t.pending;
        settle(&l);
        leave(&l);
    } else if (w->temp[0]) {
        (void)unlinkat(w->dir, w->temp, 0);
    }
    if (w->fd >= 0) close(w->fd);
    if (w->dir >= 0) close(w->dir);
    ing_bytes_fini(&w->held);
    ing_free(w);
}

ing_status ing_value_put(ing_store *s, ing_hash128 key, const void *p, size_t n,
                         ing_store_totals bounds) {
    static const ing_pulse none;
    ing_value_writer *w;
    ing_status status = ing_value_begin(s, key, bounds, none, &w);
    if (status == ING_OK) status = ing_value_write(w, p, n);
    if (status == ING_OK) status = ing_value_publish(w);
    ing_value_end(w);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static bool read_at(int fd, void *p, size_t n, uint64_t at, size_t *got) {
    for (*got = 0; *got < n;) {
        ssize_t k = pread(fd, (uint8_t *)p + *got, n - *got, (off_t)(at + *got));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return k == 0;
        *got += (size_t)k;
    }
    return true;
}

static ing_status bad(const ing_store *s) {
    ing_store_count(s, ING_COUNT_STORE_BAD_ENTRY);
    return ING_DECLINED;
}

/* Small enough to be kept as a whole: one call reads it. */
static ing_status read_whole(const ing_store *s, ing_hash128 key, size_t size,
                             ing_value_reader *r) {
    size_t got = 0;
    r->whole = ing_malloc(size);
    if (!r->whole) return ING_MEMORY;
    while (got < size) {
        ssize_t n = read(r->fd, r->whole + got, size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ing_store_declined(s, ING_REACH_FAILED);
        if (n == 0) break;
        got += (size_t)n;
    }
    return ing_store_check(r->whole, got, KIND, key) && got == size ? ING_OK : bad(s);
}

/* What is no entry of this length has no trailer: nobody reads a file that was made huge. */
static ing_status check_end(const ing_store *s, ing_hash128 key, ing_value_reader *r,
                            uint8_t trailer[ING_STORE_TRAILER]) {
    size_t got = 0;
    if (!read_at(r->fd, trailer, ING_STORE_TRAILER, r->length, &got))
        return ing_store_declined(s, ING_REACH_FAILED);
    bool fits = got == ING_STORE_TRAILER &&
                ing_store_begins_trailer(trailer, KIND, key, (size_t)r->length);
    return fits ? ING_OK : bad(s);
}

/* Read once for its checksum, and again by who wants it. */
static ing_status check_blocks(const ing_store *s, ing_hash128 key, ing_pulse pulse,
                               ing_value_reader *r) {
    uint8_t trailer[ING_STORE_TRAILER], *block = ing_malloc(BLOCK);
    ing_hasher h;
    size_t got = 1;
    beat b = beat_of(pulse);
    ing_status status = block ? check_end(s, key, r, trailer) : ING_MEMORY;
    ing_hasher_init(&h);
    for (uint64_t at = 0; status == ING_OK && at < r->length; at += got) {
        uint64_t left = r->length - at;
        if (!read_at(r->fd, block, left < BLOCK ? (size_t)left : BLOCK, at, &got))
            status = ing_store_declined(s, ING_REACH_FAILED);
        else if (got == 0)
            status = bad(s);
        else if (!go_on(&b))
            status = ING_CANCELLED;
        if (status == ING_OK) ing_hasher_raw(&h, block, got);
    }
    if (status == ING_OK) {
        uint8_t want[ING_STORE_TRAILER];
        ing_store_trailer_of(want, KIND, key, &h, (size_t)r->length);
        if (memcmp(want, trailer, sizeof want) != 0) status = bad(s);
    }
    ing_free(block);
    return status;
}

ing_status ing_value_open(ing_store *s, ing_hash128 key, ing_value_reader *r) {
    char hex[33];
    struct stat st;
    size_t size = 0;
    *r = (ing_value_reader){.fd = -1};
    if (s->sealed) return ING_DECLINED;
    ing_hash_hex(key, hex);
    ing_reach reach = ing_store_open_entry(s, KIND, hex, &r->fd, &size);
    ing_status status = ING_OK;
    if (reach != ING_REACH_OK)
        status = ing_store_declined(s, reach);
    else if (fstat(r->fd, &st) != 0)
        status = ing_store_declined(s, ING_REACH_FAILED);
    else if (size < ING_STORE_TRAILER)
        status = bad(s);
    if (status == ING_OK) {
        r->device = st.st_dev;
        r->inode = st.st_ino;
        r->length = size - ING_STORE_TRAILER;
    } else {
        ing_value_close(r);
    }
    return status;
}

ing_status ing_value_find(ing_store *s, ing_hash128 key, ing_pulse pulse,
                          ing_value_reader *r) {
    ING_TRY(ing_value_open(s, key, r));
    size_t size = (size_t)r->length + ING_STORE_TRAILER;
    ing_status status =
        size <= SMALL ? read_whole(s, key, size, r) : check_blocks(s, key, pulse, r);
    if (status != ING_OK) ing_value_close(r);
    return status;
}

bool ing_value_read(const ing_value_reader *r, uint64_t at, void *p, size_t n) {
    size_t got = 0;
    if (at > r->length || n > r->length - at) return false;
    if (r->whole) {
        memcpy(p, r->whole + at, n);
        return true;
    }
    return read_at(r->fd, p, n, at, &got) && got == n;
}

ing_store_health ing_value_verify(ing_store *s, ing_hash128 key, bool heal,
                                  ing_pulse pulse) {
    ing_counters n = {{0}};
    ing_store probe = *s; /* why it was a miss */
    ing_value_reader seen, r = {.fd = -1};
    probe.counters = &n;
    ing_status got = ing_value_open(&probe, key, &seen); /* also one that is no entry */
    if (got == ING_OK) got = ing_value_find(&probe, key, pulse, &r);
    bool bad_entry = n.at[ING_COUNT_STORE_BAD_ENTRY] > 0;
    if (got != ING_OK && bad_entry && heal)
        ing_value_remove(s, key, seen.fd >= 0 ? &seen : NULL, pulse);
    ing_value_close(&seen);
    ing_value_close(&r);
    if (got == ING_OK) return ING_STORE_GOOD;
    if (bad_entry) return ING_STORE_DAMAGED;
    return got != ING_DECLINED || n.at[ING_COUNT_STORE_IO_ERRORS] ||
                   n.at[ING_COUNT_STORE_FOREIGN]
               ? ING_STORE_UNREADABLE
               : ING_STORE_MISSING;
}

void ing_value_close(ing_value_reader *r) {
    if (r->fd >= 0) close(r->fd);
    ing_free(r->whole);
    *r = (ing_value_reader){.fd = -1};
}
