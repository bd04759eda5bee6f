/* store: leases. One of many holds a lease, the others see it; the dead lose theirs by
 * themselves; nobody removes another's; what cannot be leased is worked on without. */
#include "store/store.h"
#include "check.h"
#include "folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[] = "/tmp/ingot_test_lease_XXXXXX";
static const ing_hash128 KEY = {0x0123456789abcdefu, 0xfedcba9876543210u};
#define LEASE_PATH "d/fe/fedcba98765432100123456789abcdef.lease"
static const uint64_t MINUTE = 60000000000u;

typedef struct fixture {
    char dir[128], lease[256];
    ing_counters n;
    ing_store *s;
} fixture;

static void begin(fixture *f, const char *name) {
    memset(f, 0, sizeof *f);
    snprintf(f->dir, sizeof f->dir, "%s/%s", root, name);
    snprintf(f->lease, sizeof f->lease, "%s/%s", f->dir, LEASE_PATH);
    CHECK(ing_store_open(f->dir, &f->n, &f->s, NULL) == ING_OK);
    if (!f->s) abort();
}

static void end(fixture *f) {
    ing_store_close(f->s);
}

static ing_lease_state take(fixture *f, uint64_t ns, ing_lease *l) {
    return ing_lease_take(f->s, ING_ENTRY_VALUE, KEY, ns, l);
}

static bool wait_ns(fixture *f, uint64_t ns) {
    return ing_lease_wait(f->s, ING_ENTRY_VALUE, KEY, ns);
}

static bool exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Takes and gives back at once: whether it was to be had. */
static bool can_take(fixture *f) {
    ing_lease l;
    ing_lease_state state = take(f, MINUTE, &l);
    if (state == ING_LEASE_HELD) ing_lease_release(&l);
    return state == ING_LEASE_HELD;
}

static void test_one_holds(void) {
    fixture f;
    ing_lease a, b;
    begin(&f, "one");
    CHECK(wait_ns(&f, 0)); /* nothing to wait for, and nothing is made */
    CHECK(!exists(f.lease));
    CHECK(!ing_lease_expect(f.s, ING_ENTRY_VALUE, KEY, 2000000) && !exists(f.lease));
    CHECK(take(&f, MINUTE, &a) == ING_LEASE_HELD && exists(f.lease));
    CHECK(take(&f, MINUTE, &b) == ING_LEASE_BUSY);
    CHECK(b.fd == -1 && b.dir == -1);
    CHECK(!wait_ns(&f, 3000000));
    CHECK(ing_lease_expect(f.s, ING_ENTRY_VALUE, KEY, MINUTE));
    ing_hash128 other = {KEY.lo + 1, KEY.hi};
    CHECK(ing_lease_take(f.s, ING_ENTRY_VALUE, other, MINUTE, &b) == ING_LEASE_HELD);
    ing_lease_release(&b);
    CHECK(exists(f.lease));
    ing_lease_release(&a);
    ing_lease_release(&a); /* twice is harmless */
    CHECK(!exists(f.lease) && wait_ns(&f, 0) && can_take(&f));
    CHECK(f.n.at[ING_COUNT_LEASES_TAKEN] == 3 && f.n.at[ING_COUNT_LEASES_HEALED] == 0);
    end(&f);
}

/* ---- the dead ------------------------------------------------------------------------ */

static void test_process_gone(void) {
    fixture f;
    begin(&f, "gone");
    for (int i = 0; i < 3; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            ing_lease l;
            bool held = take(&f, MINUTE, &l) == ING_LEASE_HELD;
            if (!held) _exit(1);
            if (i == 0) _exit(0);
            for (;;) pause();
        }
        while (i && !exists(f.lease)) usleep(1000);
        usleep(20000);
        if (i) CHECK(!can_take(&f) && !wait_ns(&f, 1000000) && kill(pid, SIGKILL) == 0);
        if (i == 2) { /* a zombie holds nothing either */
            siginfo_t info;
            CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
            CHECK(wait_ns(&f, MINUTE) && can_take(&f));
        }
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && (i || status == 0));
        CHECK(wait_ns(&f, MINUTE) && can_take(&f) && !exists(f.lease));
    }
    CHECK(f.n.at[ING_COUNT_LEASES_HEALED] == 3);
    end(&f);
}

static void read_lease(const fixture *f, uint8_t out[128]) {
    int fd = open(f->lease, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, out, 128) == 128);
    if (fd >= 0) close(fd);
}

static void write_lease(const fixture *f, const uint8_t *p, size_t n) {
    int fd = open(f->lease, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ing_os_write_all(fd, p, n));
    if (fd >= 0) close(fd);
}

static void sum(uint8_t p[128]) {
    ing_hash128 h = ing_hash(p, 112);
    for (int i = 0; i < 8; i++) {
        p[112 + i] = (uint8_t)(h.lo >> 8 * i);
        p[120 + i] = (uint8_t)(h.hi >> 8 * i);
    }
}

/* A lease of our own with some bytes changed, well summed. */
static void forge(const fixture *f, const uint8_t good[128], int at, int n, int fill) {
    uint8_t bytes[128];
    memcpy(bytes, good, 128);
    for (int i = 0; i < n; i++)
        bytes[at + i] = fill < 0 ? (uint8_t)~bytes[at + i] : (uint8_t)fill;
    sum(bytes);
    write_lease(f, bytes, 128);
}

static void test_forged(void) {
    fixture f;
    ing_lease l;
    uint8_t good[128];
    begin(&f, "forged");
    CHECK(take(&f, MINUTE, &l) == ING_LEASE_HELD);
    read_lease(&f, good);
    ing_lease_release(&l);
    write_lease(&f, good, 128);
    CHECK(!can_take(&f)); /* this process lives */
    forge(&f, good, 16, 8, 0);
    CHECK(can_take(&f)); /* no such pid */
    forge(&f, good, 24, 1, -1);
    CHECK(can_take(&f)); /* the pid was given to another process */
    forge(&f, good, 40, 16, -1);
    CHECK(can_take(&f)); /* this host before it was restarted */
    forge(&f, good, 72, 8, 0);
    CHECK(can_take(&f)); /* its time is over */
    forge(&f, good, 32, 8, -1);
    CHECK(!can_take(&f)); /* another pid namespace: only time tells */
    uint8_t far[128];
    memcpy(far, good, 128);
    for (int i = 40; i < 72; i++) far[i] ^= 0xff; /* another host */
    sum(far);
    write_lease(&f, far, 128);
    CHECK(!can_take(&f));
    memset(far + 80, 0, 8);
    sum(far);
    write_lease(&f, far, 128);
    CHECK(can_take(&f));
    end(&f);
}

static void make_old(const fixture *f) {
    struct timespec t[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    CHECK(utimensat(AT_FDCWD, f->lease, t, 0) == 0);
}

/* Every length and every bit: whoever writes one now is given time, an old one is dead. */
static void test_damaged(void) {
    fixture f;
    ing_lease l;
    uint8_t good[128];
    begin(&f, "damaged");
    CHECK(take(&f, MINUTE, &l) == ING_LEASE_HELD);
    read_lease(&f, good);
    ing_lease_release(&l);
    for (size_t n = 0; n < 128; n++) {
        write_lease(&f, good, n);
        CHECK(!can_take(&f));
        make_old(&f);
        CHECK(can_take(&f));
    }
    for (int bit = 0; bit < 128 * 8; bit++) {
        uint8_t bytes[128];
        memcpy(bytes, good, 128);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_lease(&f, bytes, 128);
        make_old(&f);
        CHECK(can_take(&f));
    }
    end(&f);
}

static void test_expired(void) {
    fixture f;
    ing_lease a, b;
    begin(&f, "expired");
    CHECK(take(&f, 1000000, &a) == ING_LEASE_HELD);
    CHECK(wait_ns(&f, MINUTE)); /* 1 ms later */
    CHECK(take(&f, MINUTE, &b) == ING_LEASE_HELD);
    ing_lease_release(&a); /* late, and must not take the successor's away */
    CHECK(exists(f.lease) && !can_take(&f));
    ing_lease_release(&b);
    CHECK(!exists(f.lease));
    end(&f);
}

static void test_fork(void) {
    fixture f;
    ing_lease l;
    begin(&f, "fork");
    CHECK(take(&f, MINUTE, &l) == ING_LEASE_HELD);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        ing_lease_release(&l); /* the parent's: nothing happens */
        _exit(0);
    }
    CHECK(waitpid(pid, NULL, 0) == pid && exists(f.lease));
    ing_lease_release(&l);
    CHECK(!exists(f.lease));
    end(&f);
}

static void test_impossible(void) {
    fixture f;
    ing_lease l;
    begin(&f, "impossible");
    CHECK(can_take(&f));
    CHECK(symlink("/dev/null", f.lease) == 0);
    CHECK(take(&f, MINUTE, &l) == ING_LEASE_IMPOSSIBLE && l.fd == -1 && l.dir == -1);
    CHECK(wait_ns(&f, MINUTE)); /* no reason to wait */
    CHECK(unlink(f.lease) == 0 && mkfifo(f.lease, 0600) == 0);
    CHECK(take(&f, MINUTE, &l) == ING_LEASE_IMPOSSIBLE);
    CHECK(unlink(f.lease) == 0 && mkdir(f.lease, 0700) == 0);
    CHECK(take(&f, MINUTE, &l) == ING_LEASE_IMPOSSIBLE);
    CHECK(rmdir(f.lease) == 0 && can_take(&f));
    if (geteuid() != 0) {
        char fan[256];
        snprintf(fan, sizeof fan, "%s/d/fe", f.dir);
        CHECK(chmod(fan, 0500) == 0);
        CHECK(take(&f, MINUTE, &l) == ING_LEASE_IMPOSSIBLE);
        CHECK(chmod(fan, 0700) == 0);
    }
    CHECK(ing_lease_take(f.s, (ing_entry_kind)99, KEY, MINUTE, &l) ==
          ING_LEASE_IMPOSSIBLE);
    end(&f);
}

/* ---- many at once ------------------------------------------------------------------------ */

enum { PROCESSES = 6, KEYS = 60 };

typedef struct tally { /* shared by the processes */
    uint32_t runs[KEYS], inside[KEYS], overlaps;
} tally;

/* get, lease, get again, compute, publish, give back. No CHECK: it runs in threads too. */
static bool compute(ing_store *s, uint32_t k, tally *t) {
    ing_hash128 key = {k, (uint64_t)k << 57};
    ing_bytes got;
    ing_lease l;
    bool ok = true;
    ing_bytes_init(&got);
    while (ok && ing_store_read(s, ING_ENTRY_VALUE, key, &got) != ING_OK) {
        ing_lease_state state = ing_lease_take(s, ING_ENTRY_VALUE, key, MINUTE, &l);
        ok = state != ING_LEASE_IMPOSSIBLE;
        if (state != ING_LEASE_HELD) {
            ok = ok && ing_lease_wait(s, ING_ENTRY_VALUE, key, MINUTE);
            continue;
        }
        if (__atomic_fetch_add(&t->inside[k], 1, __ATOMIC_SEQ_CST))
            __atomic_fetch_add(&t->overlaps, 1, __ATOMIC_SEQ_CST);
        if (ing_store_read(s, ING_ENTRY_VALUE, key, &got) != ING_OK) {
            __atomic_fetch_add(&t->runs[k], 1, __ATOMIC_SEQ_CST);
            usleep(500);
            ok = ing_store_put(s, ING_ENTRY_VALUE, key, &k, sizeof k) == ING_OK;
        }
        __atomic_fetch_sub(&t->inside[k], 1, __ATOMIC_SEQ_CST);
        ing_lease_release(&l);
    }
    ok = ok && got.len == sizeof k && memcmp(got.at, &k, sizeof k) == 0;
    ing_bytes_fini(&got);
    return ok;
}

/* Runs `part` in PROCESSES processes; `t` is shared. */
static void in_processes(void (*part)(int, tally *), tally *t) {
    pid_t child[PROCESSES];
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            check_failed = 0;
            part(i, t);
            fflush(NULL);
            _exit(check_failed ? 1 : 0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        CHECK(child[i] > 0 && waitpid(child[i], &status, 0) == child[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void single_flight_part(int i, tally *t) {
    fixture f;
    begin(&f, "flight");
    for (uint32_t k = 0; k < KEYS; k++)
        CHECK(compute(f.s, (k + (uint32_t)i * 7) % KEYS, t));
    end(&f);
}

/* All heal the same dead leases at once: still one holder at a time. */
static void heal_part(int i, tally *t) {
    (void)i;
    fixture f;
    begin(&f, "heal");
    for (uint32_t k = 0; k < KEYS; k++) CHECK(compute(f.s, k, t));
    end(&f);
}

static void leave_dead_leases(const char *name) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        fixture f;
        ing_lease l;
        begin(&f, name);
        for (uint32_t k = 0; k < KEYS; k++) {
            ing_hash128 key = {k, (uint64_t)k << 57};
            ing_lease_take(f.s, ING_ENTRY_VALUE, key, MINUTE, &l);
        }
        _exit(0);
    }
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void test_processes(void) {
    void *map = mmap(NULL, sizeof(tally), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) abort();
    tally *t = map;
    for (int round = 0; round < 2; round++) {
        memset(t, 0, sizeof *t);
        if (round) leave_dead_leases("heal");
        in_processes(round ? heal_part : single_flight_part, t);
        for (int k = 0; k < KEYS; k++) CHECK(t->runs[k] == 1);
        CHECK(t->overlaps == 0);
    }
    munmap(map, sizeof *t);
}

typedef struct shared {
    ing_store *s;
    tally t;
} shared;

static void *thread_part(void *arg) {
    shared *sh = arg;
    bool ok = true;
    for (uint32_t k = 0; k < KEYS; k++) ok = compute(sh->s, k, &sh->t) && ok;
    return ok ? arg : NULL;
}

static void test_threads(void) {
    fixture f;
    begin(&f, "threads");
    shared sh = {.s = f.s};
    pthread_t id[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&id[i], NULL, thread_part, &sh) == 0);
    for (int i = 0; i < 4; i++) {
        void *ok = NULL;
        CHECK(pthread_join(id[i], &ok) == 0 && ok);
    }
    for (int k = 0; k < KEYS; k++) CHECK(sh.t.runs[k] == 1);
    CHECK(sh.t.overlaps == 0);
    end(&f);
}

int main(void) {
    folder_make(root);
    int descriptors = open_descriptors();
    test_one_holds();
    test_process_gone();
    test_forged();
    test_damaged();
    test_expired();
    test_fork();
    test_impossible();
    test_processes();
    test_threads();
    CHECK(open_descriptors() == descriptors);
    folder_remove(root);
    return CHECK_DONE();
}
