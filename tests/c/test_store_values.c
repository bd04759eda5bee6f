/* store: values. Streamed of any size, found again whole; above the bound at no time, counted
 * exactly also after a crash; a disk or a memory that fails costs that value alone. */
#include "store/store_int.h"
#include "check.h"
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/ingot_test_values_XXXXXX";
static const ing_store_totals NO_BOUNDS = {0, 0};
static const ing_pulse NO_PULSE;
enum { MB = 1 << 20 };

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

static ing_hash128 key_of(uint32_t k) {
    return (ing_hash128){k, (uint64_t)k << 56};
}

static uint8_t byte_at(uint32_t k, uint64_t i) {
    return (uint8_t)(k * 31 + i * 7 + (i >> 12));
}

/* Payload k of n bytes, in writes of `piece`. */
static ing_status stream(fixture *f, uint32_t k, uint64_t n, size_t piece,
                         ing_store_totals bounds) {
    ing_value_writer *w;
    uint8_t *p = malloc(piece);
    ing_status s = ing_value_begin(f->s, key_of(k), bounds, NO_PULSE, &w);
    if (!p) abort();
    for (uint64_t at = 0; s == ING_OK && at < n; at += piece) {
        size_t m = n - at < piece ? (size_t)(n - at) : piece;
        for (size_t i = 0; i < m; i++) p[i] = byte_at(k, at + i);
        s = ing_value_write(w, p, m);
        CHECK(s == ing_value_status(w));
    }
    if (s == ING_OK) s = ing_value_publish(w);
    ing_value_end(w);
    free(p);
    return s;
}

static bool is_there(fixture *f, uint32_t k, uint64_t n) {
    ing_value_reader r;
    uint8_t block[4096];
    if (ing_value_find(f->s, key_of(k), NO_PULSE, &r) != ING_OK) return false;
    bool ok = r.length == n;
    for (uint64_t at = 0; ok && at < n; at += sizeof block) {
        size_t m = n - at < sizeof block ? (size_t)(n - at) : sizeof block;
        ok = ing_value_read(&r, at, block, m);
        for (size_t i = 0; ok && i < m; i++) ok = block[i] == byte_at(k, at + i);
    }
    ok = ok && !ing_value_read(&r, n, block, 1) &&
         !ing_value_read(&r, UINT64_MAX, block, 2);
    ing_value_close(&r);
    return ok;
}

typedef struct real {
    uint64_t entries, bytes, temps;
} real;

static bool look(void *ctx, int dir, const char *name, ing_found what,
                 const struct stat *st, ing_hash128 key) {
    (void)dir, (void)name, (void)key;
    real *r = ctx;
    if (what == ING_FOUND_ENTRY) {
        r->entries++;
        r->bytes += (uint64_t)st->st_size;
    } else if (what == ING_FOUND_TEMP) {
        r->temps += (uint64_t)st->st_size;
    }
    return true;
}

static real real_of(fixture *f) {
    real r = {0, 0, 0};
    CHECK(ing_store_scan(f->s, ING_ENTRY_VALUE, look, &r) == ING_OK);
    return r;
}

/* The numbers are those of the directory. */
static bool exact(fixture *f) {
    ing_store_totals t;
    real r = real_of(f);
    CHECK(ing_value_totals(f->s, NO_PULSE, &t) == ING_OK);
    return t.entries == r.entries && t.bytes == r.bytes;
}

static void test_sizes(void) {
    static const uint64_t sizes[] = {
        0, 1, 63, 64, 4096, 262080, 262081, 300000, 8 * MB, 8 * MB + 1, 20 * MB + 77};
    static const size_t pieces[] = {1000, 4096, 3 * MB, 30 * MB};
    fixture f;
    begin(&f, "sizes");
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t j = 0; j < 4; j++) {
            CHECK(stream(&f, i, sizes[i], pieces[j], NO_BOUNDS) == ING_OK);
            CHECK(is_there(&f, i, sizes[i]));
        }
    CHECK(exact(&f) && real_of(&f).temps == 0);
    ing_store_close(f.s);
}

/* Bounds are asked for as the value comes, and it costs nothing when it cannot fit. */
static void test_bounds(void) {
    fixture f;
    ing_store_totals bounds = {.bytes = 30 * MB};
    begin(&f, "bounds");
    for (uint32_t k = 0; k < 60; k++) {
        uint64_t n = k % 3 ? 1000000 : 9 * MB;
        CHECK(stream(&f, k, n, MB, bounds) == ING_OK && is_there(&f, k, n));
        CHECK(exact(&f) && real_of(&f).bytes <= bounds.bytes);
    }
    real before = real_of(&f);
    ing_value_writer *w;
    CHECK(ing_value_begin(f.s, key_of(99), bounds, NO_PULSE, &w) == ING_OK);
    CHECK(ing_value_announce(w, 31 * MB) == ING_VALUE);
    CHECK(ing_value_write(w, "x", 1) == ING_VALUE && ing_value_publish(w) == ING_VALUE);
    ing_value_end(w);
    CHECK(real_of(&f).entries == before.entries);
    CHECK(f.n.at[ING_COUNT_STORE_TOO_LARGE] == 1);
    CHECK(stream(&f, 99, 31 * MB, MB, bounds) == ING_VALUE && real_of(&f).temps == 0);
    CHECK(stream(&f, 98, 30 * MB - 64, MB, bounds) == ING_OK &&
          real_of(&f).entries == 1);
    CHECK(exact(&f));
    ing_store_close(f.s);
}

/* A writer that stops half way: its room counts, and comes back. */
static void test_given_up(void) {
    static uint8_t block[9 * MB];
    fixture f;
    ing_store_totals bounds = {.bytes = 20 * MB};
    ing_value_writer *w;
    begin(&f, "given");
    CHECK(ing_value_begin(f.s, key_of(1), bounds, NO_PULSE, &w) == ING_OK);
    CHECK(ing_value_write(w, block, sizeof block) == ING_OK);
    CHECK(real_of(&f).temps == sizeof block && exact(&f));
    CHECK(stream(&f, 2, 9 * MB, MB, bounds) == ING_OK &&
          real_of(&f).temps == sizeof block);
    CHECK(stream(&f, 3, 9 * MB, MB, bounds) == ING_OK); /* in the place of 2 */
    CHECK(real_of(&f).entries == 1 && real_of(&f).bytes + real_of(&f).temps <= 20 * MB);
    ing_value_end(w);
    CHECK(real_of(&f).temps == 0 && exact(&f));
    CHECK(stream(&f, 4, 10 * MB, MB, bounds) == ING_OK && real_of(&f).entries == 2);
    ing_store_close(f.s);
}

/* Killed between any two changes: the next one counts what there is. */
static void test_killed(void) {
    fixture f;
    begin(&f, "killed");
    CHECK(stream(&f, 0, 10, 10, NO_BOUNDS) == ING_OK);
    fflush(NULL);
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0)
            for (uint32_t k = 0;; k++)
                (void)stream(&f, k % 7, k % 2 ? 9 * MB : 5000, MB,
                             (ing_store_totals){.bytes = 30 * MB});
        usleep(500 * (useconds_t)i);
        CHECK(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        CHECK(exact(&f) && real_of(&f).bytes + real_of(&f).temps <= 30 * MB);
    }
    CHECK(ing_value_sweep(f.s, NO_BOUNDS, NO_PULSE, NULL) == ING_OK);
    CHECK(real_of(&f).temps == 0 && exact(&f) &&
          f.n.at[ING_COUNT_STORE_BAD_ENTRY] == 0);
    ing_store_close(f.s);
}

static void test_damage(void) {
    fixture f;
    char path[256], hex[33];
    struct stat st;
    begin(&f, "damage");
    CHECK(stream(&f, 5, 300000, MB, NO_BOUNDS) == ING_OK); /* read in blocks */
    ing_hash_hex(key_of(5), hex);
    snprintf(path, sizeof path, "%s/d/%.2s/%s", f.dir, hex, hex);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 300064);
    for (off_t at = 0; at < st.st_size; at += at < 299990 ? 9973 : 1) {
        uint8_t b;
        CHECK(pread(fd, &b, 1, at) == 1);
        b ^= 16;
        CHECK(pwrite(fd, &b, 1, at) == 1 && !is_there(&f, 5, 300000));
        b ^= 16;
        CHECK(pwrite(fd, &b, 1, at) == 1);
    }
    CHECK(is_there(&f, 5, 300000));
    CHECK(ftruncate(fd, 300063) == 0 && !is_there(&f, 5, 300000));
    CHECK(ing_value_verify(f.s, key_of(5), false, NO_PULSE) == ING_STORE_DAMAGED);
    CHECK(ing_value_verify(f.s, key_of(5), true, NO_PULSE) == ING_STORE_DAMAGED);
    CHECK(ing_value_verify(f.s, key_of(5), true, NO_PULSE) == ING_STORE_MISSING);
    if (fd >= 0) close(fd);
    CHECK(real_of(&f).entries == 0);
    CHECK(ing_value_sweep(f.s, NO_BOUNDS, NO_PULSE, NULL) == ING_OK && exact(&f));
    ing_store_close(f.s);
}

static void test_full_disk(void) {
    fixture f;
    struct rlimit old, small;
    begin(&f, "full");
    CHECK(stream(&f, 1, 1000, MB, NO_BOUNDS) == ING_OK);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small = (struct rlimit){10 * MB, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK(stream(&f, 1, 12 * MB, MB, NO_BOUNDS) == ING_DECLINED);
    CHECK(stream(&f, 2, 9 * MB, MB, NO_BOUNDS) == ING_OK);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK(is_there(&f, 1, 1000) && is_there(&f, 2, 9 * MB));
    CHECK(real_of(&f).temps == 0 && exact(&f));
    ing_store_close(f.s);
}

static void test_no_memory(void) {
    fixture f;
    begin(&f, "memory");
    CHECK(stream(&f, 1, 300000, MB, NO_BOUNDS) == ING_OK);
    for (uint64_t n = 1;; n++) {
        ing_alloc_fail_at(n);
        ing_status s = stream(&f, 2, 300000, 50000, NO_BOUNDS);
        bool found = is_there(&f, 1, 300000);
        bool all = ing_alloc_fail_left() != 0;
        ing_alloc_fail_at(0);
        if (all) CHECK(s == ING_OK && found);
        CHECK(s == ING_OK || s == ING_MEMORY);
        CHECK(real_of(&f).temps == 0 && exact(&f));
        if (all) break;
    }
    ing_store_close(f.s);
}

static bool stop_at_once(void *self) {
    (*(int *)self)++;
    return false;
}

/* Somebody has the lock: the pulse ends the wait, and nothing has changed. */
static void test_pulse(void) {
    fixture f;
    ing_value_writer *w;
    ing_store_totals t;
    int asked = 0;
    ing_pulse pulse = {stop_at_once, &asked};
    begin(&f, "pulse");
    CHECK(stream(&f, 1, 100, MB, NO_BOUNDS) == ING_OK);
    int fd = ing_total_open(f.s, ING_ENTRY_VALUE, false);
    CHECK(fd >= 0 && ing_total_take(fd, ING_TOTAL_NUMBERS, 0));
    CHECK(ing_value_begin(f.s, key_of(2), NO_BOUNDS, pulse, &w) == ING_OK);
    CHECK(ing_value_write(w, "x", 1) == ING_OK &&
          ing_value_publish(w) == ING_CANCELLED);
    ing_value_end(w);
    CHECK(!ing_value_remove(f.s, key_of(1), NULL, pulse) && asked == 2);
    CHECK(ing_value_sweep(f.s, NO_BOUNDS, pulse, &t) == ING_DECLINED && asked == 3);
    ing_total_close(fd);
    CHECK(is_there(&f, 1, 100) && exact(&f) && real_of(&f).entries == 1);
    ing_store_close(f.s);
}

/* A lock that was not to be had is waited for but shortly, until it is. */
static void test_stuck(void) {
    fixture f;
    begin(&f, "stuck");
    CHECK(stream(&f, 1, 100, MB, NO_BOUNDS) == ING_OK && !f.s->fds->stuck);
    int fd = ing_total_open(f.s, ING_ENTRY_VALUE, false);
    CHECK(fd >= 0 && ing_total_take(fd, ING_TOTAL_NUMBERS, 0));
    f.s->fds->stuck = true; /* as after 10 s */
    CHECK(stream(&f, 2, 100, MB, NO_BOUNDS) == ING_DECLINED && f.s->fds->stuck);
    ing_total_close(fd);
    CHECK(stream(&f, 2, 100, MB, NO_BOUNDS) == ING_OK && !f.s->fds->stuck && exact(&f));
    ing_store_close(f.s);
}

static void test_replaced_is_not_removed(void) {
    fixture f;
    ing_value_reader r;
    begin(&f, "replaced");
    CHECK(stream(&f, 1, 100, MB, NO_BOUNDS) == ING_OK);
    CHECK(ing_value_find(f.s, key_of(1), NO_PULSE, &r) == ING_OK);
    CHECK(stream(&f, 1, 100, MB, NO_BOUNDS) == ING_OK);
    CHECK(!ing_value_remove(f.s, key_of(1), &r, NO_PULSE) && is_there(&f, 1, 100));
    ing_value_close(&r);
    CHECK(ing_value_remove(f.s, key_of(1), NULL, NO_PULSE) && !is_there(&f, 1, 100));
    ing_store_totals t;
    CHECK(stream(&f, 1, 10, MB, NO_BOUNDS) == ING_OK);
    CHECK(ing_value_clear(f.s, NO_PULSE, &t) == ING_OK && t.entries == 1 && exact(&f));
    ing_store_close(f.s);
}

static void test_heads(void) {
    uint8_t room[ING_VALUE_HEAD];
    static const uint8_t label[5000] = "label";
    ing_hash128 key = key_of(3), other = key_of(4);
    static const uint32_t sizes[] = {0, 1, 5, 4095, 4096, 4097, 5000};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ing_value_head got, head = {.version = 2,
                                    .codec = 'V',
                                    .label_kind = 1,
                                    .label = label,
                                    .label_size = sizes[i]};
        uint32_t want = sizes[i] < 4096 ? sizes[i] : 4096;
        size_t n = ing_value_head_write(room, key, &head);
        CHECK(n == 20 + want && ing_value_head_read(room, n, key, &got));
        CHECK(got.version == 2 && got.codec == 'V' && got.label_kind == 1);
        CHECK(got.label_size == want && got.size == n);
        CHECK(!want || memcmp(got.label, label, want) == 0);
        CHECK(!ing_value_head_read(room, n, other, &got));
        for (size_t m = 0; m < n && n < 100; m++)
            CHECK(!ing_value_head_read(room, m, key, &got));
        for (size_t bit = 0; bit < 8 * n && n < 100; bit++) {
            room[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK(!ing_value_head_read(room, n, key, &got));
            room[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

int main(void) {
    folder_make(root);
    test_sizes();
    test_bounds();
    test_given_up();
    test_killed();
    test_damage();
    test_full_disk();
    test_no_memory();
    test_pulse();
    test_stuck();
    test_replaced_is_not_removed();
    test_heads();
    folder_remove(root);
    return CHECK_DONE();
}
