/* store: bounds. Totals are kept and come back when lost; the least recently used go
 * first, off the way of a hit; what crashed writers left goes; verification removes what
 * is damaged and nothing else. */
#include "store/store_int.h"
#include "check.h"
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[] = "/tmp/ingot_test_evict_XXXXXX";
static const ing_store_totals NO_BOUNDS = {0, 0};

typedef struct fixture {
    char dir[128];
    ing_counters n;
    ing_store *s;
} fixture;

static void begin(fixture *f, const char *name) {
    memset(f, 0, sizeof *f);
    snprintf(f->dir, sizeof f->dir, "%s/%s", root, name);
    CHECK(ing_store_open(f->dir, &f->n, &f->s, NULL) == ING_OK);
    if (!f->s) abort();
}

static void end(fixture *f) {
    ing_store_close(f->s);
}

static ing_hash128 key_of(uint32_t k) {
    return (ing_hash128){k, (uint64_t)k << 56};
}

static void path_of(char out[256], const fixture *f, uint32_t k, const char *tail) {
    char hex[33];
    ing_hash_hex(key_of(k), hex);
    snprintf(out, 256, "%s/d/%.2s/%s%s", f->dir, hex, hex, tail);
}

static bool put(fixture *f, uint32_t k, size_t n, ing_store_totals bounds) {
    static uint8_t payload[8192];
    return ing_store_put_within(f->s, ING_ENTRY_VALUE, key_of(k), payload, n, bounds) ==
           ING_OK;
}

static bool has(fixture *f, uint32_t k) {
    ing_bytes got;
    ing_bytes_init(&got);
    ing_status s = ing_store_read(f->s, ING_ENTRY_VALUE, key_of(k), &got);
    ing_bytes_fini(&got);
    return s == ING_OK;
}

static bool totals_are(fixture *f, uint64_t entries, uint64_t bytes) {
    ing_store_totals t = {99, 99};
    CHECK(ing_store_totals_get(f->s, ING_ENTRY_VALUE, &t) == ING_OK);
    return t.entries == entries && t.bytes == bytes;
}

/* Last use and publishing, in seconds since 1970. */
static void set_times(const char *path, time_t used, time_t published) {
    struct timespec t[2] = {{.tv_sec = used}, {.tv_sec = published}};
    CHECK(utimensat(AT_FDCWD, path, t, 0) == 0);
}

static void write_file(const char *path, const void *p, size_t n) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ing_os_write_all(fd, p, n));
    if (fd >= 0) close(fd);
}

static bool exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- totals ----------------------------------------------------------------------------- */

static void test_totals(void) {
    fixture f;
    begin(&f, "totals");
    CHECK(totals_are(&f, 0, 0));
    CHECK(put(&f, 1, 100, NO_BOUNDS) && totals_are(&f, 1, 164));
    CHECK(put(&f, 2, 36, NO_BOUNDS) && totals_are(&f, 2, 264));
    CHECK(put(&f, 1, 0, NO_BOUNDS) && totals_are(&f, 2, 164)); /* replaced */
    CHECK(ing_store_remove(f.s, ING_ENTRY_VALUE, key_of(1)));
    CHECK(!ing_store_remove(f.s, ING_ENTRY_VALUE, key_of(1)));
    CHECK(totals_are(&f, 1, 100));
    char path[256];
    snprintf(path, sizeof path, "%s/d/total", f.dir);
    CHECK(unlink(path) == 0 && totals_are(&f, 1, 100)); /* counted */
    CHECK(put(&f, 3, 36, NO_BOUNDS) && totals_are(&f, 2, 200) && exists(path));
    uint8_t bytes[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, bytes, 64) == 64);
    if (fd >= 0) close(fd);
    for (size_t n = 0; n < 64; n++) {
        write_file(path, bytes, n);
        CHECK(totals_are(&f, 2, 200));
    }
    for (int bit = 0; bit < 512; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file(path, bytes, 64);
        CHECK(totals_are(&f, 2, 200));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK(put(&f, 4, 36, NO_BOUNDS) && totals_are(&f, 3, 300)); /* written anew */
    CHECK(unlink(path) == 0 && symlink("/dev/null", path) == 0);
    CHECK(put(&f, 5, 36, NO_BOUNDS) && totals_are(&f, 4, 400) && has(&f, 5));
    end(&f);
}

/* ---- eviction ----------------------------------------------------------------------------- */

static void test_order(void) {
    fixture f;
    char path[256];
    begin(&f, "order");
    for (uint32_t k = 0; k < 10; k++)
        CHECK(put(&f, k, 936, NO_BOUNDS)); /* 1,000 each */
    time_t old = 1500000000;
    for (uint32_t k = 0; k < 10; k++) {
        path_of(path, &f, k, "");
        /* 3 was published first and used last; 7 is on a mount without access times. */
        if (k == 3)
            set_times(path, old + 100, old - 100);
        else if (k == 7)
            set_times(path, old - 1000, old + 90);
        else
            set_times(path, old + k, old + k);
    }
    ing_store_totals bounds = {.bytes = 5000}, removed;
    CHECK(ing_store_sweep(f.s, ING_ENTRY_VALUE, bounds, &removed) == ING_OK);
    CHECK(removed.entries == 6 && removed.bytes == 6000 && totals_are(&f, 4, 4000));
    for (uint32_t k = 0; k < 10; k++) CHECK(has(&f, k) == (k == 3 || k >= 7));
    CHECK(f.n.at[ING_COUNT_STORE_EVICTED] == 6);
    CHECK(ing_store_sweep(f.s, ING_ENTRY_VALUE, bounds, &removed) == ING_OK);
    CHECK(removed.entries == 0);
    bounds = (ing_store_totals){.entries = 3};
    CHECK(ing_store_sweep(f.s, ING_ENTRY_VALUE, bounds, &removed) == ING_OK);
    CHECK(removed.entries == 1 && totals_are(&f, 3, 3000));
    end(&f);
}

static void test_bounded_puts(void) {
    fixture f;
    ing_store_totals t, bounds = {.bytes = 20000, .entries = 0};
    begin(&f, "bounded");
    for (uint32_t k = 0; k < 200; k++) {
        CHECK(put(&f, k, 936, bounds) && has(&f, k)); /* the newest stays */
        CHECK(ing_store_totals_get(f.s, ING_ENTRY_VALUE, &t) == ING_OK);
        CHECK(t.bytes <= 20000);
    }
    CHECK(f.n.at[ING_COUNT_STORE_EVICTED] >= 180);
    CHECK(!put(&f, 1000, 20001 - 64, bounds)); /* never fits: not even tried */
    CHECK(f.n.at[ING_COUNT_STORE_TOO_LARGE] == 1 && !has(&f, 1000));
    bounds = (ing_store_totals){.entries = 5};
    CHECK(put(&f, 2000, 8, bounds));
    CHECK(ing_store_totals_get(f.s, ING_ENTRY_VALUE, &t) == ING_OK && t.entries <= 5);
    end(&f);
}

/* A hit neither evicts nor writes, however full the cache is. */
static void test_hits_do_nothing(void) {
    fixture f;
    struct stat before, after;
    char path[256];
    begin(&f, "hits");
    for (uint32_t k = 0; k < 5; k++) CHECK(put(&f, k, 100, NO_BOUNDS));
    snprintf(path, sizeof path, "%s/d/total", f.dir);
    CHECK(stat(path, &before) == 0);
    for (uint32_t k = 0; k < 5; k++) CHECK(has(&f, k));
    CHECK(stat(path, &after) == 0);
    CHECK(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec &&
          before.st_mtim.tv_sec == after.st_mtim.tv_sec);
    end(&f);
}

static void test_left_overs(void) {
    fixture f;
    char young[256], old[256], odd[256], lease[256], claim[256];
    begin(&f, "left");
    CHECK(put(&f, 1, 10, NO_BOUNDS));
    path_of(young, &f, 1, ".0123456789abcdef.tmp");
    path_of(old, &f, 1, ".fedcba9876543210.tmp");
    path_of(odd, &f, 1, ".notes");
    path_of(lease, &f, 1, ".lease");
    path_of(claim, &f, 1, ".0123456789abcdef.lease.tmp");
    write_file(young, "x", 1);
    write_file(old, "x", 1);
    write_file(claim, "x", 1);
    write_file(odd, "x", 1);
    write_file(lease, "x", 1);
    time_t now = time(NULL);
    int writer = open(young, O_RDONLY | O_CLOEXEC); /* one that lives, however slow */
    CHECK(writer >= 0 && flock(writer, LOCK_EX) == 0);
    set_times(young, now - 600, now - 600);
    set_times(old, now - 7200, now - 7200);
    set_times(odd, now - 7200, now - 7200);
    set_times(lease, now - 7200, now - 7200);
    CHECK(ing_store_sweep(f.s, ING_ENTRY_VALUE, NO_BOUNDS, NULL) == ING_OK);
    CHECK(exists(young) && !exists(old) && exists(odd) && !exists(lease) && has(&f, 1));
    CHECK(exists(claim) && f.n.at[ING_COUNT_LEASES_HEALED] == 1);
    set_times(claim, now - 7200, now - 7200);
    close(writer); /* killed */
    CHECK(ing_store_sweep(f.s, ING_ENTRY_VALUE, NO_BOUNDS, NULL) == ING_OK);
    CHECK(!exists(young) && !exists(claim) && totals_are(&f, 1, 74));
    end(&f);
}

static void test_no_memory(void) {
    fixture f;
    begin(&f, "memory");
    for (uint32_t k = 0; k < 10; k++) CHECK(put(&f, k, 100, NO_BOUNDS));
    for (uint64_t n = 1;; n++) {
        ing_alloc_fail_at(n);
        ing_status s = ing_store_sweep(f.s, ING_ENTRY_VALUE, NO_BOUNDS, NULL);
        bool all = ing_alloc_fail_left() != 0;
        ing_alloc_fail_at(0);
        CHECK(s == (all ? ING_OK : ING_MEMORY));
        if (all) break;
    }
    ing_alloc_fail_at(1);
    CHECK(!has(&f, 1)); /* a miss */
    ing_alloc_fail_at(0);
    CHECK(has(&f, 1) && totals_are(&f, 10, 1640));
    end(&f);
}

/* ---- what kernels keep: one group of kinds ------------------------------------------------ */

static const ing_entry_kind KERNEL_KINDS[] = {ING_ENTRY_IMAGE, ING_ENTRY_VARIANT,
                                              ING_ENTRY_INDEX, ING_ENTRY_ALIAS,
                                              ING_ENTRY_NOTES};
enum { N_KERNEL_KINDS = sizeof KERNEL_KINDS / sizeof *KERNEL_KINDS };

static bool put_kind(fixture *f, uint32_t k, size_t n) {
    static uint8_t payload[8192];
    return ing_store_put(f->s, KERNEL_KINDS[k % N_KERNEL_KINDS], key_of(k), payload,
                         n) == ING_OK;
}

static bool has_kind(fixture *f, uint32_t k) {
    ing_entry got;
    ing_status s =
        ing_store_get(f->s, KERNEL_KINDS[k % N_KERNEL_KINDS], key_of(k), &got);
    if (s == ING_OK) ing_entry_fini(&got);
    return s == ING_OK;
}

static uint64_t walks(const fixture *f) {
    return f->n.at[ING_COUNT_STORE_WALKS];
}

/* All kinds share one bound; values are counted for themselves. */
static void test_kernel_bounds(void) {
    fixture f;
    ing_store_totals t = {0, 0};
    begin(&f, "kernels");
    ing_store_set_bounds(f.s, (ing_store_totals){.entries = 50, .bytes = 0});
    for (uint32_t k = 0; k < 40; k++) CHECK(put(&f, k, 100, NO_BOUNDS));
    for (uint32_t k = 0; k < 300; k++) {
        CHECK(put_kind(&f, k, 100) && has_kind(&f, k));
        CHECK(ing_store_totals_get(f.s, ING_ENTRY_INDEX, &t) == ING_OK);
        CHECK(t.entries <= 50 && t.bytes == t.entries * 164);
    }
    CHECK(f.n.at[ING_COUNT_STORE_EVICTED] >= 250);
    CHECK(totals_are(&f, 40, 40 * 164));
    ing_store_set_bounds(f.s, (ing_store_totals){.bytes = 5000});
    CHECK(put_kind(&f, 1000, 100));
    CHECK(ing_store_totals_get(f.s, ING_ENTRY_IMAGE, &t) == ING_OK && t.bytes <= 5000);
    CHECK(!put_kind(&f, 1001, 5000) && f.n.at[ING_COUNT_STORE_TOO_LARGE] == 1);
    CHECK(totals_are(&f, 40, 40 * 164));
    end(&f);
}

/* However many entries there are, a put below the bounds and a get walk nothing; past the
 * bounds one sweep serves a tenth of them. */
static void test_flat(uint32_t n) {
    fixture f;
    char name[32];
    snprintf(name, sizeof name, "flat%u", (unsigned)n);
    begin(&f, name);
    ing_store_set_bounds(f.s, (ing_store_totals){.entries = n, .bytes = 0});
    CHECK(put_kind(&f, 0, 8));
    uint64_t first = walks(&f); /* there was no total yet */
    CHECK(first == N_KERNEL_KINDS);
    for (uint32_t k = 1; k < n; k++) CHECK(put_kind(&f, k, 8));
    for (uint32_t k = 0; k < n; k += n / 10) CHECK(has_kind(&f, k));
    CHECK(walks(&f) == first);
    uint32_t more = n / 5 + 2; /* room for a tenth after each sweep */
    for (uint32_t k = n; k < n + more; k++) CHECK(put_kind(&f, k, 8));
    CHECK(walks(&f) > first && walks(&f) <= first + 3 * N_KERNEL_KINDS);
    end(&f);
}

/* Nothing is above the bounds, and yet what a killed writer left goes within a day. */
static void test_daily(void) {
    fixture f;
    char path[256], temp[256], hex[33];
    begin(&f, "daily");
    CHECK(put_kind(&f, 0, 8));
    ing_hash_hex(key_of(0), hex);
    snprintf(temp, sizeof temp, "%s/i/%.2s/%s.0123456789abcdef.tmp", f.dir, hex, hex);
    write_file(temp, "x", 1);
    time_t now = time(NULL);
    set_times(temp, now - 7200, now - 7200);
    CHECK(put_kind(&f, 5, 8) && exists(temp));
    snprintf(path, sizeof path, "%s/total", f.dir);
    uint8_t bytes[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, bytes, 64) == 64);
    if (fd >= 0) close(fd);
    static const int64_t days[] = {-2, 2}; /* a clock may have been ahead */
    for (int i = 0; i < 2; i++) {
        uint64_t swept = (uint64_t)(now + days[i] * 86400) * 1000000000u;
        for (int b = 0; b < 8; b++) bytes[32 + b] = (uint8_t)(swept >> 8 * b);
        ing_hash128 sum = ing_hash(bytes, 48);
        for (int b = 0; b < 8; b++) {
            bytes[48 + b] = (uint8_t)(sum.lo >> 8 * b);
            bytes[56 + b] = (uint8_t)(sum.hi >> 8 * b);
        }
        write_file(path, bytes, 64);
        write_file(temp, "x", 1);
        set_times(temp, now - 7200, now - 7200);
        CHECK(put_kind(&f, 5, 8) && !exists(temp));
        uint64_t before = walks(&f);
        CHECK(put_kind(&f, 5, 8) && walks(&f) == before);
    }
    end(&f);
}

/* ---- verification -------------------------------------------------------------------------- */

typedef struct seen {
    uint32_t entries;
    uint64_t bytes;
} seen;

static bool see(void *ctx, const ing_store_item *item) {
    seen *s = ctx;
    s->entries++;
    s->bytes += item->bytes;
    CHECK(item->used >= item->published && item->published > 0);
    return s->entries < 7;
}

static ing_store_health health(fixture *f, uint32_t k, bool heal) {
    return ing_store_verify(f->s, ING_ENTRY_VALUE, key_of(k), heal);
}

static void test_verify(void) {
    fixture f;
    char path[256];
    begin(&f, "verify");
    for (uint32_t k = 0; k < 9; k++) CHECK(put(&f, k, 36, NO_BOUNDS));
    seen s = {0, 0};
    CHECK(ing_store_each(f.s, ING_ENTRY_VALUE, see, &s) == ING_OK);
    CHECK(s.entries == 7 && s.bytes == 700); /* it said enough */
    CHECK(health(&f, 1, true) == ING_STORE_GOOD);
    CHECK(health(&f, 77, true) == ING_STORE_MISSING);
    path_of(path, &f, 2, "");
    CHECK(truncate(path, 50) == 0);
    CHECK(health(&f, 2, false) == ING_STORE_DAMAGED && exists(path));
    CHECK(health(&f, 2, true) == ING_STORE_DAMAGED && !exists(path));
    CHECK(health(&f, 2, true) == ING_STORE_MISSING);
    path_of(path, &f, 3, "");
    CHECK(chmod(path, 0666) == 0); /* not to be trusted, and not ours to judge */
    CHECK(health(&f, 3, true) == ING_STORE_UNREADABLE && exists(path));
    CHECK(chmod(path, 0600) == 0 && health(&f, 3, true) == ING_STORE_GOOD);
    CHECK(f.n.at[ING_COUNT_STORE_BAD_ENTRY] == 0); /* looking is not a miss */
    end(&f);
}

/* ---- many at once ---------------------------------------------------------------------------- */

enum { WRITERS = 4, PUTS = 150 };

static void test_processes(void) {
    pid_t child[WRITERS];
    fflush(NULL);
    for (uint32_t i = 0; i < WRITERS; i++) {
        child[i] = fork();
        if (child[i]) continue;
        fixture f;
        check_failed = 0;
        begin(&f, "together");
        for (uint32_t k = 0; k < PUTS; k++)
            CHECK(put(&f, i * PUTS + k, 936, (ing_store_totals){.bytes = 100000}));
        fflush(NULL);
        _exit(check_failed ? 1 : 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        CHECK(child[i] > 0 && waitpid(child[i], &status, 0) == child[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    fixture f;
    seen s = {0, 0};
    ing_store_totals t;
    begin(&f, "together");
    CHECK(put(&f, 9999, 936, (ing_store_totals){.bytes = 100000}));
    CHECK(ing_store_sweep(f.s, ING_ENTRY_VALUE, (ing_store_totals){.bytes = 100000},
                          NULL) == ING_OK);
    CHECK(ing_store_totals_get(f.s, ING_ENTRY_VALUE, &t) == ING_OK);
    CHECK(t.bytes <= 100000 && t.bytes > 50000 && t.bytes == t.entries * 1000);
    CHECK(ing_store_each(f.s, ING_ENTRY_VALUE, see, &s) == ING_OK && s.entries == 7);
    end(&f);
}

/* A child that was forked while its parent counted has the parent's locks no longer than that. */
static void test_fork(void) {
    fixture f;
    begin(&f, "fork");
    CHECK(put(&f, 1, 36, NO_BOUNDS));
    int fd = ing_total_open(f.s, ING_ENTRY_VALUE, false);
    CHECK(fd >= 0 && ing_total_take(fd, ING_TOTAL_NUMBERS, 0) &&
          ing_total_take(fd, ING_TOTAL_SWEEP, 0));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        for (;;) pause();
    ing_total_close(fd);
    fd = ing_total_open(f.s, ING_ENTRY_VALUE, false);
    CHECK(fd >= 0 && ing_total_take(fd, ING_TOTAL_NUMBERS, 0) &&
          ing_total_take(fd, ING_TOTAL_SWEEP, 0));
    ing_total_close(fd);
    CHECK(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    end(&f);
}

int main(void) {
    folder_make(root);
    int descriptors = open_descriptors();
    test_totals();
    test_order();
    test_bounded_puts();
    test_hits_do_nothing();
    test_left_overs();
    test_no_memory();
    test_kernel_bounds();
    test_flat(10);
    test_flat(1000);
    if (getenv("INGOT_STRESS")) test_flat(100000);
    test_daily();
    test_verify();
    test_processes();
    test_fork();
    CHECK(open_descriptors() == descriptors);
    folder_remove(root);
    return CHECK_DONE();
}
