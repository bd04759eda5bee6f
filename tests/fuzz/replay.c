/* All harnesses on fixed mutations of real entries, without libFuzzer: seeds.py writes the
 * seeds with the installed package, each is tried as it is, cut short and changed.
 * INGOT_STRESS=1 tries twenty times as many. Ends at the first finding by the sanitizer's
 * report or by FUZZ_CHECK. */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_SEEDS = 256,
    MAX_BYTES = 1 << 20,
    ROOM = 64,
    ROUNDS = 4000,
    PATH_ROOM = 4096
};

typedef struct seed {
    uint8_t *at;
    size_t n;
} seed;

typedef struct corpus {
    seed seeds[MAX_SEEDS];
    size_t n;
} corpus;

static uint64_t next(uint64_t *state) { /* xorshift64* */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1d;
}

/* In the order of their names, so that a run is like the last one. */
static void read_corpus(const char *folder, corpus *c) {
    struct dirent **names = NULL;
    char path[PATH_ROOM + 256];
    int count = scandir(folder, &names, NULL, alphasort);
    c->n = 0;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        FILE *f = names[i]->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        if (f && c->n < MAX_SEEDS) {
            seed s = {malloc(MAX_BYTES), 0};
            FUZZ_CHECK(s.at);
            s.n = fread(s.at, 1, MAX_BYTES, f);
            c->seeds[c->n++] = s;
        }
        if (f) fclose(f);
        free(names[i]);
    }
    free(names);
}

static void free_corpus(corpus *c) {
    for (size_t i = 0; i < c->n; i++) free(c->seeds[i].at);
}

/* What is being tried: a finding leaves it behind, for fuzz_NAME of `make fuzz` to take. */
static struct {
    const char *name;
    const uint8_t *at;
    size_t n;
} current;

/* Sanitizers and FUZZ_CHECK end by abort. */
static void keep_finding(int sig) {
    static const char path[] = "/tmp/ingot-fuzz-found";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, current.at, current.n) == (ssize_t)current.n)
        dprintf(2, "%s: the input is in %s\n", current.name, path);
    signal(sig, SIG_DFL);
    raise(sig);
}

/* An exact copy on the heap, so that ASan sees the first byte past the end. */
static void try_copy(void (*harness)(const uint8_t *, size_t), const uint8_t *p,
                     size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    if (n) memcpy(copy, p, n);
    current.at = copy;
    current.n = n;
    harness(copy, n);
    free(copy);
}

/* Numbers that break sums and bounds. */
static uint64_t nasty(uint64_t *state) {
    static const uint64_t values[] = {0,           1,         0x7f,       0xff,
                                      0x7fff,      0xffff,    0x7fffffff, 0xffffffff,
                                      0x100000000, INT64_MAX, UINT64_MAX};
    return values[next(state) % (sizeof values / sizeof *values)] + next(state) % 3;
}

static void mutate_once(uint8_t *p, size_t *n, size_t room, uint64_t *state) {
    size_t at = *n ? next(state) % *n : 0, width = (size_t)1 << next(state) % 4;
    uint64_t v = nasty(state);
    bool fits = at + width <= *n;
    switch (next(state) % 8) {
    case 0: *n = at; break;
    case 1: /* a word more */
        if (*n + width > room) break;
        memmove(p + at + width, p + at, *n - at);
        memcpy(p + at, &v, width);
        *n += width;
        break;
    case 2: /* a word less */
        if (!fits) break;
        memmove(p + at, p + at + width, *n - at - width);
        *n -= width;
        break;
    case 3: /* a word from elsewhere */
        if (fits) memmove(p + at, p + next(state) % (*n - width + 1), width);
        break;
    case 4:
    case 5:
        if (fits) memcpy(p + at, &v, width);
        break;
    default:
        if (*n) p[at] ^= (uint8_t)(1u << next(state) % 8);
    }
}

static void replay(const char *name, void (*harness)(const uint8_t *, size_t),
                   const char *folder, size_t rounds) {
    static corpus c;
    static uint8_t work[MAX_BYTES + ROOM];
    char path[PATH_ROOM];
    uint64_t state = 0x9e3779b97f4a7c15;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    current.name = name;
    read_corpus(path, &c);
    FUZZ_CHECK(c.n > 0);
    for (size_t i = 0; i < c.n; i++) try_copy(harness, c.seeds[i].at, c.seeds[i].n);
    for (size_t k = 0; k < rounds; k++) {
        const seed *s = &c.seeds[next(&state) % c.n];
        size_t n = s->n;
        memcpy(work, s->at, n);
        for (uint64_t times = next(&state) % 4 + 1; times; times--)
            mutate_once(work, &n, sizeof work, &state);
        try_copy(harness, work, n);
    }
    printf("%s: %zu seeds, %zu mutations\n", name, c.n, rounds);
    free_corpus(&c);
}

/* Exit status of seeds.py; 77 when the package is not installed. */
static int make_seeds(const char *folder) {
    const char *python = getenv("INGOT_TEST_PYTHON"), *root = getenv("INGOT_TEST_ROOT");
    char script[PATH_ROOM];
    snprintf(script, sizeof script, "%s/tests/fuzz/seeds.py", root ? root : ".");
    pid_t pid = fork();
    if (pid == 0) {
        execlp(python ? python : "python3", "python3", script, folder, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void note_not_run(const char *what) {
    const char *notes = getenv("INGOT_NOT_RUN_FILE");
    FILE *f = notes ? fopen(notes, "a") : NULL;
    fprintf(stderr, "not run: %s\n", what);
    if (f) fprintf(f, "%s\n", what);
    if (f) fclose(f);
}

static void remove_all(const char *folder) {
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(127);
    }
    if (pid > 0) waitpid(pid, NULL, 0);
}

int main(void) {
    char folder[] = "/tmp/ingot_fuzz_XXXXXX";
    const char *stress = getenv("INGOT_STRESS");
    size_t rounds =
        stress && *stress && strcmp(stress, "0") != 0 ? 20 * ROUNDS : ROUNDS;
    FUZZ_CHECK(mkdtemp(folder));
    int status = make_seeds(folder);
    if (status == 77) {
        note_not_run("mutations of real entries: ingot and llvmlite are not installed");
    } else {
        FUZZ_CHECK(status == 0);
        signal(SIGABRT, keep_finding);
#define FUZZ_REPLAY(name) replay(#name, fuzz_##name, folder, rounds);
        FUZZ_ALL(FUZZ_REPLAY)
    }
    remove_all(folder);
    return 0;
}
