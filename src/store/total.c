/* How much a group of kinds takes on disk, kept in one small file so that a put need not
 * walk the directories. Called by put, remove and sweep. Of what kernels keep the numbers are
 * a help, never the truth: a crash between a rename and its addition makes them drift, every
 * sweep counts anew, and when the file is lost or damaged the next one who asks counts. Those
 * of values are exact (values.c).
 *
 * File <dir>/total for what kernels keep, <dir>/d/total for values; 64 bytes, little-endian:
 *   0  8  magic "INGOTTOT"     8  8  kind, the first of its group
 *  16  8  entries             24  8  bytes
 *  32  8  time of the last sweep, nanoseconds since 1970
 *  40  8  bytes of temporary files (values)    48 16  XXH3-128 of [0, 48)
 * Byte 0 is locked to change the numbers, byte 1 by the one process that sweeps. */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 64, SUMMED = 48 };

int ing_total_open(const ing_store *s, ing_entry_kind kind, bool create) {
    int dir = -1, flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    bool values = kind == ING_ENTRY_VALUE;
    if (!ing_store_letter(kind) || s->read_only ||
        ing_store_open_kind(s, values ? ing_store_letter(kind) : 0, create, &dir) !=
            ING_REACH_OK)
        return -1;
    int fd = openat(dir, "total", create ? flags | O_CREAT : flags, 0600);
    close(dir);
    if (fd >= 0 && !ing_store_trusts(s, fd, false, NULL)) {
        ing_store_declined(s, ING_REACH_FOREIGN);
        close(fd);
        fd = -1;
    }
    return fd;
}

bool ing_total_take(int fd, ing_total_lock which, int ms) {
    struct flock lock = {.l_type = F_WRLCK, .l_start = (off_t)which, .l_len = 1};
    for (int i = 0;; i++) {
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) return false;
        if (i >= ms) return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void give_back(int fd, ing_total_lock which) {
    struct flock lock = {.l_type = F_UNLCK, .l_start = (off_t)which, .l_len = 1};
    fcntl(fd, F_OFD_SETLK, &lock);
}

/* Closing alone would leave the locks with a child that was forked meanwhile. */
void ing_total_close(int fd) {
    give_back(fd, ING_TOTAL_NUMBERS);
    give_back(fd, ING_TOTAL_SWEEP);
    close(fd);
}

static void fill(uint8_t out[SIZE], ing_entry_kind kind, const ing_total *t) {
    memset(out, 0, SIZE);
    memcpy(out, "INGOTTOT", 8);
    ing_store_put64(out + 8, (uint64_t)ing_store_group(kind));
    ing_store_put64(out + 16, t->now.entries);
    ing_store_put64(out + 24, t->now.bytes);
    ing_store_put64(out + 32, t->swept);
    ing_store_put64(out + 40, t->pending);
    ing_hash128 sum = ing_hash(out, SUMMED);
    ing_store_put64(out + SUMMED, sum.lo);
    ing_store_put64(out + SUMMED + 8, sum.hi);
}

bool ing_total_read(int fd, ing_entry_kind kind, ing_total *out) {
    uint8_t got[SIZE], want[SIZE];
    if (pread(fd, got, SIZE, 0) != SIZE) return false;
    ing_total t = {.now = {.entries = ing_store_get64(got + 16),
                           .bytes = ing_store_get64(got + 24)},
                   .swept = ing_store_get64(got + 32),
                   .pending = ing_store_get64(got + 40)};
    fill(want, kind, &t);
    if (memcmp(got, want, SIZE) != 0) return false;
    *out = t;
    return true;
}

bool ing_total_write(int fd, ing_entry_kind kind, const ing_total *t) {
    uint8_t bytes[SIZE];
    fill(bytes, kind, t);
    return pwrite(fd, bytes, SIZE, 0) == SIZE;
}

/* ---- counting ---------------------------------------------------------------------------- */

static bool count_one(void *ctx, const ing_store_item *item) {
    ing_store_totals *t = ctx;
    t->entries++;
    t->bytes += item->bytes;
    return true;
}

bool ing_total_count(const ing_store *s, ing_entry_kind kind, ing_total *out) {
    bool ok = true;
    *out = (ing_total){.swept = ing_store_wall_ns()};
    for (ing_entry_kind k = ING_ENTRY_IMAGE; k < ING_ENTRY_KINDS; k++)
        if (ing_store_group(k) == ing_store_group(kind))
            ok = ing_store_each(s, k, count_one, &out->now) == ING_OK && ok;
    if (kind != ING_ENTRY_VALUE) out->now.bytes += ing_packed_bytes(s);
    return ok;
}

static uint64_t moved(uint64_t v, int64_t by) {
    if (by >= 0) return v + (uint64_t)by;
    return v > (uint64_t)-by ? v - (uint64_t)-by : 0;
}

/* With the lock on the numbers: what the file says, or what there is. */
static bool read_or_count(const ing_store *s, ing_entry_kind kind, int fd, ing_total *t,
                          bool *counted) {
    *counted = !ing_total_read(fd, kind, t);
    return !*counted || ing_total_count(s, kind, t);
}

int ing_total_begin(const ing_store *s, ing_entry_kind kind) {
    ing_total t;
    bool counted;
    int fd = ing_total_open(s, kind, true);
    if (fd < 0 || ing_total_read(fd, kind, &t)) return fd;
    if (ing_total_take(fd, ING_TOTAL_NUMBERS, 100)) {
        if (read_or_count(s, kind, fd, &t, &counted) && counted)
            ing_total_write(fd, kind, &t);
        give_back(fd, ING_TOTAL_NUMBERS);
    }
    return fd;
}

bool ing_total_end(const ing_store *s, ing_entry_kind kind, int fd, int64_t entries,
                   int64_t bytes, ing_total *now) {
    ing_total t = {0};
    bool counted = false;
    bool ok = fd >= 0 && ing_total_take(fd, ING_TOTAL_NUMBERS, 100);
    ok = ok && read_or_count(s, kind, fd, &t, &counted);
    if (ok && !counted) /* else it is there to be seen */
        t.now = (ing_store_totals){moved(t.now.entries, entries),
                                   moved(t.now.bytes, bytes)};
    ok = ok && ing_total_write(fd, kind, &t);
    if (fd >= 0) ing_total_close(fd);
    if (ok && now) *now = t;
    return ok;
}

ing_status ing_store_totals_get(ing_store *s, ing_entry_kind kind,
                                ing_store_totals *out) {
    static const ing_pulse none;
    ing_total t = {0};
    if (kind == ING_ENTRY_VALUE) return ing_value_totals(s, none, out);
    int fd = ing_total_open(s, kind, false);
    bool ok = fd >= 0 && ing_total_read(fd, kind, &t);
    if (fd >= 0) close(fd);
    if (!ok) ok = ing_total_count(s, kind, &t);
    *out = t.now;
    return ok ? ING_OK : ING_DECLINED;
}
