/* Leases: of many threads and processes that miss the same key, one computes and the
 * others wait for it. Called by whoever computes values. A lease is advice: losing one
 * costs a computation done twice, never a wrong value, so every doubt ends in working.
 *
 * File <hex of key>.lease beside the entry, 128 bytes, little-endian, written under another
 * name and linked, so that it is whole from the start:
 *   0  8  magic "INGLEASE"     8  8  version 1     16  8  pid      24  8  its start time
 *  32  8  pid namespace       40 16  digest of the boot id        56 16  of the host name
 *  72  8  end, CLOCK_BOOTTIME 80  8  end, CLOCK_REALTIME  88 24  zero
 * 112 16  XXH3-128 of [0, 112)
 *
 * 1. Dead: its time is over; or it is from this host before a restart; or its process is
 *    gone (same boot, same pid namespace: a pid means the same process only with its
 *    start time). One that says nothing (a file system without links, a disk that failed)
 *    is dead after GRACE.
 * 2. A dead lease is removed by one: flock on its open inode, then the name must still
 *    lead to that inode. Our open descriptor keeps the inode number from being reused,
 *    so nobody removes a successor for its predecessor.
 * 3. The holder gives it back the same way, and only in the process that took it. */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 128, SUMMED = 112, TRIES = 4 };
static const uint64_t GRACE = 5 * 1000000000ull; /* a write of 128 bytes; clock skew */

typedef struct place {
    ing_hash128 boot, host;
    uint64_t space; /* of pids */
} place;

typedef struct claim {
    uint64_t pid, start;
    place at;
    uint64_t end_boot, end_real;
} claim;

static uint64_t clock_ns(clockid_t which) {
    struct timespec t = {0};
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t later(uint64_t now, uint64_t ns) {
    return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

/* ---- who we are ---------------------------------------------------------------------- */

/* A small text of the kernel; its length, 0 when there is none. */
static size_t read_text(const char *path, char *out, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, cap - 1) : -1;
    if (fd >= 0) close(fd);
    out[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

/* State letter and start time of a process; false when /proc does not tell. */
static bool proc_stat(uint64_t pid, char *state, uint64_t *start) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    if (!read_text(path, text, sizeof text)) return false;
    char *at = strrchr(text, ')'); /* the name before it may hold anything */
    unsigned long long value = 0;
    if (!at || sscanf(at + 1,
                      " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                      "%*d %*d %*d %*d %llu",
                      state, &value) != 2)
        return false;
    *start = value;
    return true;
}

/* Asked once per call of this file's functions, not per look: it takes longer than all
 * the rest of one. */
static place where_we_are(void) {
    char text[256] = {0};
    struct stat st = {0};
    place here = {.space = 0};
    if (stat("/proc/self/ns/pid", &st) == 0) here.space = st.st_ino;
    here.boot =
        ing_hash(text, read_text("/proc/sys/kernel/random/boot_id", text, sizeof text));
    memset(text, 0, sizeof text);
    gethostname(text, sizeof text - 1);
    here.host = ing_hash(text, strlen(text));
    return here;
}

/* ---- the file ------------------------------------------------------------------------- */

static void put128(uint8_t *p, ing_hash128 v) {
    ing_store_put64(p, v.lo);
    ing_store_put64(p + 8, v.hi);
}

static ing_hash128 get128(const uint8_t *p) {
    return (ing_hash128){ing_store_get64(p), ing_store_get64(p + 8)};
}

static void fill(uint8_t out[SIZE], const claim *c) {
    memset(out, 0, SIZE);
    memcpy(out, "INGLEASE", 8);
    ing_store_put64(out + 8, 1);
    ing_store_put64(out + 16, c->pid);
    ing_store_put64(out + 24, c->start);
    ing_store_put64(out + 32, c->at.space);
    put128(out + 40, c->at.boot);
    put128(out + 56, c->at.host);
    ing_store_put64(out + 72, c->end_boot);
    ing_store_put64(out + 80, c->end_real);
    put128(out + SUMMED, ing_hash(out, SUMMED));
}

static bool parse(const uint8_t in[SIZE], claim *c) {
    uint8_t again[SIZE];
    *c = (claim){.pid = ing_store_get64(in + 16),
                 .start = ing_store_get64(in + 24),
                 .at = {.space = ing_store_get64(in + 32),
                        .boot = get128(in + 40),
                        .host = get128(in + 56)},
                 .end_boot = ing_store_get64(in + 72),
                 .end_real = ing_store_get64(in + 80)};
    fill(again, c);
    return memcmp(in, again, SIZE) == 0;
}

/* ---- rule 1 ----------------------------------------------------------------------------- */

static bool process_gone(const claim *c) {
    char state = 0;
    uint64_t start = 0;
    if (c->pid == 0 || c->pid > INT32_MAX) return true;
    if (kill((pid_t)c->pid, 0) != 0 && errno == ESRCH) return true;
    if (!proc_stat(c->pid, &state, &start)) return false;
    return state == 'Z' || state == 'X' || (c->start && start != c->start);
}

static bool is_dead(int fd, const struct stat *st, const place *here) {
    uint8_t bytes[SIZE];
    claim c;
    uint64_t real = clock_ns(CLOCK_REALTIME);
    if (pread(fd, bytes, SIZE, 0) != SIZE || !parse(bytes, &c)) {
        uint64_t made = (uint64_t)st->st_mtim.tv_sec * 1000000000u;
        return real > made ? real - made > GRACE : made - real > GRACE;
    }
    if (ing_hash_eq(c.at.boot, here->boot)) {
        if (clock_ns(CLOCK_BOOTTIME) > c.end_boot) return true;
        return c.at.space == here->space && process_gone(&c);
    }
    return ing_hash_eq(c.at.host, here->host) || real > later(c.end_real, GRACE);
}

/* ---- rule 2 ----------------------------------------------------------------------------- */

/* Still the file behind the name? */
static bool is_named(int dir, const char *name, int fd) {
    struct stat a, b;
    return fstat(fd, &a) == 0 && fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

typedef enum look { GONE, ALIVE, DEAD, FOREIGN } look;

/* The descriptor is open after ALIVE and DEAD. */
static look look_at(const ing_store *s, int dir, const char *name, const place *here,
                    int *fd) {
    struct stat st;
    *fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) return errno == ENOENT ? GONE : FOREIGN;
    if (!ing_store_trusts(s, *fd, false, NULL) || fstat(*fd, &st) != 0) {
        close(*fd);
        *fd = -1;
        return FOREIGN;
    }
    return is_dead(*fd, &st, here) ? DEAD : ALIVE;
}

/* Removes a lease that is dead; whether there is none now. *was: what it looked like. */
static bool heal(const ing_store *s, int dir, const char *name, const place *here,
                 look *was) {
    int fd = -1;
    look l = *was = look_at(s, dir, name, here, &fd);
    bool gone = l == GONE;
    /* A file system without flock: two may heal at once, and two may compute. */
    if (l == DEAD && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)) {
        gone = !is_named(dir, name, fd);
        if (!gone && unlinkat(dir, name, 0) == 0) {
            ing_store_count(s, ING_COUNT_LEASES_HEALED);
            gone = true;
        }
    }
    if (fd >= 0) close(fd);
    return gone;
}

bool ing_lease_heal(const ing_store *s, int dir, const char *name) {
    place here = where_we_are();
    look was;
    return heal(s, dir, name, &here, &was);
}

/* ---- take, wait, release ------------------------------------------------------------------ */

static ing_reach open_place(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                            bool create, char name[40], int *dir) {
    char hex[33], letter = ing_store_letter(kind);
    if (!letter) return ING_REACH_FAILED;
    ing_hash_hex(key, hex);
    snprintf(name, 40, "%s.lease", hex);
    return ing_store_open_fan(s, letter, hex, create, dir);
}

/* Whether the mount has no links, or no more. */
static bool cannot_link(void) {
    return errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
}

static bool write_claim(int fd, const place *here, uint64_t ns) {
    uint8_t bytes[SIZE];
    char state;
    claim self = {.pid = (uint64_t)getpid(),
                  .at = *here,
                  .end_boot = later(clock_ns(CLOCK_BOOTTIME), ns),
                  .end_real = later(clock_ns(CLOCK_REALTIME), ns)};
    proc_stat(self.pid, &state, &self.start);
    fill(bytes, &self);
    return ing_os_write_all(fd, bytes, SIZE);
}

static ing_lease_state impossible(const ing_store *s) {
    ing_store_declined(s, ING_REACH_FAILED);
    return ING_LEASE_IMPOSSIBLE;
}

/* A server may answer twice: then the link is there, and the second answer says EEXIST. */
static bool link_claim(const ing_lease *l, const char *temp) {
    struct stat st;
    if (linkat(l->dir, temp, l->dir, l->name, 0) == 0) return true;
    if (errno != EEXIST) return false;
    bool linked = fstat(l->fd, &st) == 0 && st.st_nlink == 2;
    errno = EEXIST;
    return linked;
}

/* Where there are no links: for a moment it says nothing. */
static bool create_claim(ing_lease *l, const place *here, uint64_t ns) {
    if (l->fd >= 0) close(l->fd);
    l->fd = openat(l->dir, l->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   0600);
    if (l->fd < 0 || write_claim(l->fd, here, ns)) return l->fd >= 0;
    int why = errno;
    unlinkat(l->dir, l->name, 0);
    errno = why;
    return false;
}

/* False with errno; EEXIST: there is one. */
static bool claim_name(ing_lease *l, const place *here, uint64_t ns) {
    char temp[ING_STORE_TEMP], hex[33] = {0};
    memcpy(hex, l->name, 32);
    l->fd = ing_store_open_claim(l->dir, hex, temp);
    if (l->fd < 0) return false;
    bool ok = write_claim(l->fd, here, ns) && link_claim(l, temp);
    int why = errno;
    unlinkat(l->dir, temp, 0);
    errno = why;
    return ok || (cannot_link() && create_claim(l, here, ns));
}

/* Open and ours, or why not. */
static ing_lease_state make_file(const ing_store *s, ing_lease *l, uint64_t ns) {
    place here = where_we_are();
    for (int i = 0; i < TRIES; i++) {
        look was;
        if (claim_name(l, &here, ns)) return ING_LEASE_HELD;
        if (errno != EEXIST) return impossible(s);
        if (l->fd >= 0) close(l->fd);
        l->fd = -1;
        if (heal(s, l->dir, l->name, &here, &was)) continue;
        if (was == FOREIGN) return impossible(s);
        if (was == ALIVE) return ING_LEASE_BUSY;
    }
    return ING_LEASE_BUSY; /* others come and go faster than we look */
}

ing_lease_state ing_lease_take(ing_store *s, ing_entry_kind kind, ing_hash128 key,
                               uint64_t ns, ing_lease *out) {
    *out = (ing_lease){.dir = -1, .fd = -1, .owner = getpid()};
    if (s->read_only) return ING_LEASE_IMPOSSIBLE;
    ing_reach r = open_place(s, kind, key, true, out->name, &out->dir);
    if (r == ING_REACH_MISSING) r = ING_REACH_FAILED;
    if (r != ING_REACH_OK) {
        ing_store_declined(s, r);
        return ING_LEASE_IMPOSSIBLE;
    }
    ing_lease_state state = make_file(s, out, ns);
    if (state == ING_LEASE_HELD) {
        ing_store_count(s, ING_COUNT_LEASES_TAKEN);
        return state;
    }
    if (out->fd >= 0) close(out->fd);
    close(out->dir);
    out->fd = out->dir = -1;
    return state;
}

static void nap(uint64_t ns) {
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                         .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

/* Rule 3. Who heals holds the lock for two calls only. If it was stopped between them we
 * go on after 50 ms: at worst it later removes a successor, and a step runs twice. */
void ing_lease_release(ing_lease *l) {
    if (l->fd >= 0 && l->owner == getpid()) {
        for (int i = 0; i < 50; i++) {
            if (flock(l->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
            nap(1000000);
        }
        if (is_named(l->dir, l->name, l->fd)) unlinkat(l->dir, l->name, 0);
    }
    if (l->fd >= 0) close(l->fd);
    if (l->dir >= 0) close(l->dir);
    l->fd = l->dir = -1;
}

/* Whether there is nothing to wait for. Without `here` only whether it is there: to ask
 * for a process takes ten times as long. */
static bool is_free(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                    const place *here) {
    char name[40];
    int dir = -1, fd = -1;
    look l = GONE;
    if (open_place(s, kind, key, false, name, &dir) == ING_REACH_OK) {
        if (here)
            l = look_at(s, dir, name, here, &fd);
        else if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            l = ALIVE;
    }
    if (fd >= 0) close(fd);
    if (dir >= 0) close(dir);
    return l != ALIVE;
}

/* By polling, because nobody tells that a process died: from 0.2 ms to 10 ms, so that a
 * short step is noticed soon; whether the holder lives is asked at first and every 100 ms.
 * Two seconds of waiting took 10 ms of CPU on a machine with a load of 10. */
bool ing_lease_wait(ing_store *s, ing_entry_kind kind, ing_hash128 key, uint64_t ns) {
    uint64_t begin = ing_os_now_ns(), end = later(begin, ns), asked = 0, step = 200000;
    place here = where_we_are();
    for (uint64_t now = begin;; now = ing_os_now_ns()) {
        bool ask = asked == 0 || now - asked > 100000000 || now >= end;
        if (is_free(s, kind, key, ask ? &here : NULL)) return true;
        if (now >= end) return false;
        if (ask) asked = now;
        nap(end - now < step ? end - now : step);
        if (step < 10000000) step *= 2;
    }
}

bool ing_lease_expect(ing_store *s, ing_entry_kind kind, ing_hash128 key, uint64_t ns) {
    uint64_t end = later(ing_os_now_ns(), ns);
    while (is_free(s, kind, key, NULL)) {
        uint64_t now = ing_os_now_ns();
        if (now >= end) return false;
        nap(end - now < 1000000 ? end - now : 1000000);
    }
    return true;
}
