/* store: what is put is found, whatever is wrong is a miss with its counter, and nothing
 * is written that need not be. Damage (every truncation, thousands of bit flips), foreign
 * owners and modes, links, read-only and full disks, and processes that publish at once. */
#include "store/store.h"
#include "check.h"
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/ingot_test_store_XXXXXX";

static const ing_hash128 KEY = {0x0123456789abcdefu, 0xfedcba9876543210u};
#define KEY_PATH "i/fe/fedcba98765432100123456789abcdef"

typedef struct fixture {
    char dir[128];
    ing_counters n;
    ing_err e;
    ing_store *s;
} fixture;

static void path_of(char out[256], const fixture *f, const char *rest) {
    snprintf(out, 256, "%s/%s", f->dir, rest);
}

static void begin(fixture *f, const char *name) {
    memset(f, 0, sizeof *f);
    ing_err_init(&f->e);
    snprintf(f->dir, sizeof f->dir, "%s/%s", root, name);
    CHECK(ing_store_open(f->dir, &f->n, &f->s, &f->e) == ING_OK);
    if (!f->s) abort();
}

static void reopen(fixture *f) {
    ing_store_close(f->s);
    CHECK(ing_store_open(f->dir, &f->n, &f->s, &f->e) == ING_OK);
    if (!f->s) abort();
}

static void end(fixture *f) {
    ing_store_close(f->s);
    ing_err_fini(&f->e);
}

static uint64_t counted(const fixture *f, ing_counter c) {
    return f->n.at[c];
}

static bool put(fixture *f, const void *p, size_t n) {
    return ing_store_put(f->s, ING_ENTRY_IMAGE, KEY, p, n) == ING_OK;
}

/* Whether KEY is a hit with exactly this payload; a hit with another is a failure. */
static bool hits(fixture *f, const void *p, size_t n) {
    ing_entry entry;
    ing_status s = ing_store_get(f->s, ING_ENTRY_IMAGE, KEY, &entry);
    CHECK(s == ING_OK || s == ING_DECLINED);
    if (s == ING_OK) {
        CHECK(entry.len == n && memcmp(entry.data, p, n) == 0 && entry.fd >= 0);
    } else {
        CHECK(!entry.data && !entry.map && entry.fd == -1);
    }
    ing_entry_fini(&entry);
    ing_entry_fini(&entry); /* twice is harmless */
    return s == ING_OK;
}

static void write_file(const char *path, const void *p, size_t n) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ing_os_write_all(fd, p, n));
    if (fd >= 0) close(fd);
}

/* ---- looking at the tree ------------------------------------------------------------- */

static ing_hasher tree_hash; /* nftw hands its callback no context */
static int tree_files, tree_temps;

static int see(const char *path, const struct stat *st, int type, struct FTW *at) {
    if (type == FTW_F && strcmp(path + at->base, "total") != 0) tree_files++;
    if (strstr(path, ".tmp")) tree_temps++;
    ing_hasher_str(&tree_hash, 1, path);
    ing_hasher_u64(&tree_hash, 2, st->st_ino);
    ing_hasher_u64(&tree_hash, 3, (uint64_t)st->st_size);
    ing_hasher_u64(&tree_hash, 4, (uint64_t)st->st_ctim.tv_sec);
    ing_hasher_u64(&tree_hash, 5, (uint64_t)st->st_ctim.tv_nsec);
    return 0;
}

/* Changes when anything below dir is written, made, renamed or removed. */
static ing_hash128 tree_state(const char *dir) {
    ing_hasher_init(&tree_hash);
    tree_files = tree_temps = 0;
    nftw(dir, see, 8, FTW_PHYS);
    return ing_hasher_done(&tree_hash);
}

/* ---- the ordinary way ------------------------------------------------------------------ */

static void test_roundtrip(void) {
    fixture f;
    begin(&f, "made/with/parents");
    struct stat st;
    CHECK(stat(f.dir, &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK_STR(ing_store_dir(f.s), f.dir);
    ing_hash128 before = tree_state(f.dir);
    CHECK(!hits(&f, "", 0));
    CHECK(ing_hash_eq(before, tree_state(f.dir))); /* a miss makes no directories */
    CHECK(put(&f, "payload", 7) && hits(&f, "payload", 7));
    CHECK(put(&f, "", 0) && hits(&f, "", 0)); /* replaced */
    size_t n = 300000;
    char *big = malloc(n);
    if (!big) abort();
    memset(big, 'x', n);
    CHECK(put(&f, big, n) && hits(&f, big, n));
    free(big);
    before = tree_state(f.dir);
    CHECK(tree_files == 1 && tree_temps == 0);
    for (int i = 0; i < 10; i++) {
        ing_entry entry;
        CHECK(ing_store_get(f.s, ING_ENTRY_IMAGE, KEY, &entry) == ING_OK);
        ing_entry_fini(&entry);
    }
    CHECK(ing_hash_eq(before, tree_state(f.dir))); /* a hit writes nothing */
    CHECK(counted(&f, ING_COUNT_STORE_PUBLISHED) == 3);
    CHECK(counted(&f, ING_COUNT_STORE_BAD_ENTRY) == 0);
    CHECK(counted(&f, ING_COUNT_STORE_FOREIGN) == 0);
    CHECK(counted(&f, ING_COUNT_STORE_IO_ERRORS) == 0);
    end(&f);
}

static void test_kinds_and_keys(void) {
    fixture f;
    ing_entry entry;
    ing_hash128 other = {KEY.lo + 1, KEY.hi};
    begin(&f, "kinds");
    CHECK(ing_store_put(f.s, ING_ENTRY_IMAGE, KEY, "image", 5) == ING_OK);
    CHECK(ing_store_put(f.s, ING_ENTRY_VARIANT, KEY, "variant", 7) == ING_OK);
    CHECK(ing_store_put(f.s, ING_ENTRY_INDEX, KEY, "index", 5) == ING_OK);
    CHECK(ing_store_get(f.s, ING_ENTRY_IMAGE, other, &entry) == ING_DECLINED);
    CHECK(ing_store_get(f.s, ING_ENTRY_VARIANT, KEY, &entry) == ING_OK);
    CHECK(entry.len == 7 && !memcmp(entry.data, "variant", 7));
    ing_entry_fini(&entry);
    CHECK(ing_store_get(f.s, (ing_entry_kind)9, KEY, &entry) == ING_DECLINED);
    CHECK(ing_store_put(f.s, (ing_entry_kind)9, KEY, "x", 1) == ING_DECLINED);
    /* A good entry under the name of another kind or key is not taken. */
    char from[256], to[256];
    path_of(from, &f, "v/fe/fedcba98765432100123456789abcdef");
    path_of(to, &f, KEY_PATH);
    CHECK(rename(from, to) == 0 && !hits(&f, "variant", 7));
    CHECK(counted(&f, ING_COUNT_STORE_BAD_ENTRY) == 1);
    CHECK(put(&f, "image", 5));
    path_of(from, &f, "i/fe/fedcba98765432100123456789abcdf0");
    CHECK(rename(to, from) == 0);
    CHECK(ing_store_get(f.s, ING_ENTRY_IMAGE, other, &entry) == ING_DECLINED);
    CHECK(counted(&f, ING_COUNT_STORE_BAD_ENTRY) == 2);
    end(&f);
}

/* Format version 1, byte by byte; the checksum comes from the reference XXH3. */
static void test_golden(void) {
    static const uint8_t payload[] = "\177ELF payload";
    static const uint8_t want[] =
        "\177ELF payload"
        "INGOTENT\1\0\0\0\1\0\0\0"
        "\xef\xcd\xab\x89\x67\x45\x23\x01\x10\x32\x54\x76\x98\xba\xdc\xfe"
        "\x0c\0\0\0\0\0\0\0"
        "\xc4\xa3\xcd\x13\xb0\xca\x56\x7a\xe0\x8c\x06\xdc\x53\xb1\x01\x61"
        "\0\0\0\0\0\0\0\0";
    fixture f;
    char path[256];
    ing_bytes got;
    begin(&f, "golden");
    ing_bytes_init(&got);
    CHECK(put(&f, payload, 12));
    path_of(path, &f, KEY_PATH);
    CHECK(ing_os_read(path, 1000, &got, &f.e) == ING_OK);
    CHECK(got.len == 76 && sizeof want == 77 && !memcmp(got.at, want, 76));
    write_file(path, want, 76);
    CHECK(hits(&f, payload, 12));
    ing_bytes_fini(&got);
    end(&f);
}

/* ---- damage --------------------------------------------------------------------------- */

enum { PAYLOAD = 700 };

static void make_payload(uint8_t p[PAYLOAD]) {
    for (uint32_t i = 0; i < PAYLOAD; i++) p[i] = (uint8_t)(i * 2654435761u >> 24);
}

static void test_truncation(void) {
    fixture f;
    uint8_t payload[PAYLOAD];
    char path[256];
    ing_bytes whole;
    begin(&f, "truncated");
    make_payload(payload);
    CHECK(put(&f, payload, PAYLOAD));
    path_of(path, &f, KEY_PATH);
    ing_bytes_init(&whole);
    CHECK(ing_os_read(path, 10000, &whole, &f.e) == ING_OK);
    for (size_t n = 0; n < whole.len; n++) {
        write_file(path, whole.at, n);
        CHECK(!hits(&f, payload, PAYLOAD));
    }
    CHECK(counted(&f, ING_COUNT_STORE_BAD_ENTRY) == whole.len);
    for (size_t n = 1; n < 200; n++) { /* bytes lost at the front, or one too many */
        write_file(path, whole.at + n, whole.len - n);
        CHECK(!hits(&f, payload, PAYLOAD));
    }
    ing_bytes_u8(&whole, 0);
    write_file(path, whole.at, whole.len);
    CHECK(!hits(&f, payload, PAYLOAD));
    CHECK(put(&f, payload, PAYLOAD)); /* the next put heals it */
    CHECK(hits(&f, payload, PAYLOAD));
    ing_bytes_fini(&whole);
    end(&f);
}

static void test_bit_flips(void) {
    fixture f;
    uint8_t payload[PAYLOAD];
    char path[256];
    ing_bytes whole;
    uint32_t seed = 20240229;
    begin(&f, "flipped");
    make_payload(payload);
    CHECK(put(&f, payload, PAYLOAD));
    path_of(path, &f, KEY_PATH);
    ing_bytes_init(&whole);
    CHECK(ing_os_read(path, 10000, &whole, &f.e) == ING_OK);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    for (size_t bit = 0; bit < whole.len * 8; bit++) { /* each single bit */
        uint8_t bad = whole.at[bit / 8] ^ (uint8_t)(1u << bit % 8);
        CHECK(pwrite(fd, &bad, 1, (off_t)(bit / 8)) == 1);
        CHECK(!hits(&f, payload, PAYLOAD));
        CHECK(pwrite(fd, whole.at + bit / 8, 1, (off_t)(bit / 8)) == 1);
    }
    CHECK(counted(&f, ING_COUNT_STORE_BAD_ENTRY) == whole.len * 8);
    CHECK(hits(&f, payload, PAYLOAD));
    uint8_t *copy = malloc(whole.len);
    if (!copy) abort();
    for (int round = 0; round < 4000; round++) { /* several, some taken back */
        memcpy(copy, whole.at, whole.len);
        for (int i = 0; i < 1 + round % 6; i++) {
            seed = seed * 1664525u + 1013904223u;
            size_t bit = (seed >> 4) % (whole.len * 8);
            copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        CHECK(pwrite(fd, copy, whole.len, 0) == (ssize_t)whole.len);
        bool same = memcmp(copy, whole.at, whole.len) == 0;
        CHECK(hits(&f, payload, PAYLOAD) == same);
    }
    free(copy);
    close(fd);
    ing_bytes_fini(&whole);
    end(&f);
}

static void test_sizes(void) {
    fixture f;
    char path[256];
    begin(&f, "sizes");
    CHECK(put(&f, "x", 1));
    path_of(path, &f, KEY_PATH);
    CHECK(truncate(path, (off_t)ING_STORE_MAX_ENTRY + 65) == 0); /* a hole, no blocks */
    CHECK(!hits(&f, "x", 1) && counted(&f, ING_COUNT_STORE_BAD_ENTRY) == 1);
    CHECK(truncate(path, (off_t)1 << 40) == 0 || errno == EFBIG);
    CHECK(!hits(&f, "x", 1) && counted(&f, ING_COUNT_STORE_BAD_ENTRY) == 2);
    CHECK(!put(&f, "x", (size_t)ING_STORE_MAX_ENTRY + 1)); /* refused unread */
    CHECK(counted(&f, ING_COUNT_STORE_TOO_LARGE) == 1);
    end(&f);
}

/* ---- whose it is ------------------------------------------------------------------------ */

static void test_modes(void) {
    fixture f;
    char file[256], fan[256], kind[256];
    begin(&f, "modes");
    CHECK(put(&f, "x", 1) && hits(&f, "x", 1));
    path_of(file, &f, KEY_PATH);
    path_of(fan, &f, "i/fe");
    path_of(kind, &f, "i");
    struct stat st;
    CHECK(stat(file, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK(stat(fan, &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK(stat(kind, &st) == 0 && (st.st_mode & 07777) == 0700);
    const char *each[] = {file, fan, kind};
    uint64_t foreign = 0;
    for (int i = 0; i < 3; i++) {
        mode_t good = i ? 0700 : 0600;
        CHECK(chmod(each[i], good | 020) == 0);
        if (i == 2) reopen(&f); /* checked when opened, not again for every entry */
        CHECK(!hits(&f, "x", 1));
        CHECK(chmod(each[i], good | 002) == 0 && !hits(&f, "x", 1));
        CHECK(counted(&f, ING_COUNT_STORE_FOREIGN) == (foreign += 2));
        if (i) { /* and no put into such a directory */
            CHECK(!put(&f, "y", 1));
            CHECK(counted(&f, ING_COUNT_STORE_FOREIGN) == ++foreign);
        }
        CHECK(chmod(each[i], good | 0055) == 0 &&
              hits(&f, "x", 1)); /* readable is fine */
        CHECK(chmod(each[i], good) == 0);
    }
    CHECK(chmod(f.dir, 0702) == 0 &&
          !put(&f, "y", 1)); /* the top: as opening it says */
    CHECK(counted(&f, ING_COUNT_STORE_FOREIGN) == ++foreign && chmod(f.dir, 0700) == 0);
    CHECK(chmod(file, 0666) == 0 && put(&f, "z", 1) && hits(&f, "z", 1)); /* replaced */
    end(&f);
}

static void test_links(void) {
    fixture f;
    char file[256], away[256], fan[256];
    begin(&f, "links");
    CHECK(put(&f, "x", 1));
    path_of(file, &f, KEY_PATH);
    path_of(away, &f, "elsewhere");
    path_of(fan, &f, "i/fe");
    CHECK(rename(file, away) == 0 && symlink(away, file) == 0);
    CHECK(!hits(&f, "x", 1) && counted(&f, ING_COUNT_STORE_FOREIGN) == 1);
    CHECK(put(&f, "y", 1) && hits(&f, "y", 1)); /* the link is replaced, not followed */
    struct stat st;
    CHECK(lstat(file, &st) == 0 && S_ISREG(st.st_mode));
    CHECK(stat(away, &st) == 0 && st.st_size == 65); /* its target is untouched */
    unlink(away);
    CHECK(rename(fan, away) == 0 && symlink(away, fan) == 0); /* a linked directory */
    CHECK(!hits(&f, "y", 1) && counted(&f, ING_COUNT_STORE_FOREIGN) == 2);
    CHECK(!put(&f, "y", 1) && counted(&f, ING_COUNT_STORE_FOREIGN) == 3);
    unlink(fan);
    CHECK(rename(away, fan) == 0 && hits(&f, "y", 1));
    unlink(file);
    CHECK(mkfifo(file, 0600) == 0); /* must not wait for a writer */
    CHECK(!hits(&f, "y", 1) && counted(&f, ING_COUNT_STORE_FOREIGN) == 4);
    unlink(file);
    CHECK(mkdir(file, 0700) == 0 && !hits(&f, "y", 1));
    CHECK(!put(&f, "y", 1) && counted(&f, ING_COUNT_STORE_IO_ERRORS) == 1);
    tree_state(f.dir);
    CHECK(tree_temps == 0);
    end(&f);
}

static void test_foreign_owner(void) {
    if (geteuid() != 0) {
        printf("not run: foreign owner (needs root)\n");
        return;
    }
    fixture f;
    begin(&f, "owner");
    CHECK(put(&f, "x", 1));
    char file[256], fan[256];
    path_of(file, &f, KEY_PATH);
    path_of(fan, &f, "i/fe");
    const char *each[] = {file, fan};
    for (int i = 0; i < 2; i++) {
        CHECK(chown(each[i], 65534, (gid_t)-1) == 0 && !hits(&f, "x", 1));
        CHECK(counted(&f, ING_COUNT_STORE_FOREIGN) == (uint64_t)i + 1);
        CHECK(chown(each[i], 0, (gid_t)-1) == 0 && hits(&f, "x", 1));
    }
    CHECK(chown(f.dir, 65534, (gid_t)-1) == 0);
    ing_store *s = NULL;
    CHECK(ing_store_open(f.dir, &f.n, &s, &f.e) == ING_DECLINED && !s);
    CHECK(strstr(f.e.text, "belongs to user 65534") && strstr(f.e.text, f.dir));
    CHECK(chown(f.dir, 0, (gid_t)-1) == 0);
    end(&f);
}

/* ---- directories that cannot be used ------------------------------------------------------ */

static void declines(const char *dir, const char *why) {
    ing_err e;
    ing_store *s = (ing_store *)&e;
    ing_err_init(&e);
    CHECK(ing_store_open(dir, NULL, &s, &e) == ING_DECLINED && !s);
    CHECK(e.text && strstr(e.text, why));
    if (e.text && !strstr(e.text, why)) fprintf(stderr, "said: %s\n", e.text);
    ing_err_fini(&e);
}

static void test_open(void) {
    char path[256], longer[6000];
    declines(NULL, "empty");
    declines("", "empty");
    declines("/dev/null", "not a directory");
    declines("/dev/null/below", "Not a directory");
    declines("/proc/ingot", "No such file");
    memset(longer, 'a', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = 0;
    declines(longer, "name too long");
    snprintf(path, sizeof path, "%s/loop", root);
    CHECK(symlink(path, path) == 0);
    declines(path, "symbolic links");
    unlink(path);
    snprintf(path, sizeof path, "%s/open", root);
    CHECK(mkdir(path, 0700) == 0 && chmod(path, 0777) == 0);
    declines(path, "mode 0777");
    CHECK(chmod(path, 0755) == 0);
    ing_err e;
    ing_store *s = NULL;
    ing_err_init(&e);
    CHECK(chdir(root) == 0); /* a relative name holds when the process moves on */
    CHECK(ing_store_open("open", NULL, &s, &e) == ING_OK);
    CHECK(chdir("/") == 0);
    CHECK(s && ing_store_put(s, ING_ENTRY_IMAGE, KEY, "x", 1) == ING_OK);
    CHECK(s && strcmp(ing_store_dir(s), path) == 0);
    ing_store_close(s);
    ing_store_close(NULL);
    ing_err_fini(&e);
}

static void test_deleted(void) {
    fixture f;
    begin(&f, "deleted");
    CHECK(put(&f, "x", 1));
    folder_remove(f.dir);
    CHECK(!hits(&f, "x", 1));
    CHECK(put(&f, "x", 1) && hits(&f, "x", 1)); /* made again */
    CHECK(counted(&f, ING_COUNT_STORE_IO_ERRORS) == 0);
    end(&f);
}

static void expect_dir(const char *want) {
    ing_bytes b;
    ing_bytes_init(&b);
    CHECK(ing_store_default_dir(&b, NULL) == ING_OK);
    CHECK_STR(b.at ? (char *)b.at : "", want);
    ing_bytes_fini(&b);
}

static void test_default_dir(void) {
    setenv("INGOT_CACHE_DIR", "/own", 1);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    setenv("HOME", "/home/me", 1);
    expect_dir("/own");
    setenv("INGOT_CACHE_DIR", "", 1);
    expect_dir("/xdg/ingot");
    setenv("XDG_CACHE_HOME", "relative", 1);
    expect_dir("/home/me/.cache/ingot");
    unsetenv("XDG_CACHE_HOME");
    expect_dir("/home/me/.cache/ingot");
    unsetenv("HOME");
    ing_bytes b;
    ing_err e;
    ing_bytes_init(&b);
    ing_err_init(&e);
    ing_status s = ing_store_default_dir(&b, &e);
    CHECK(s == ING_OK ? strstr((char *)b.at, "/.cache/ingot") != NULL
                      : s == ING_DECLINED && strstr(e.text, "INGOT_CACHE_DIR"));
    ing_bytes_fini(&b);
    for (uint64_t n = 1; n < 10; n++) {
        ing_alloc_fail_at(n);
        s = ing_store_default_dir(&b, &e);
        bool hit = ing_alloc_fail_left() == 0;
        CHECK(!hit || s == ING_MEMORY || s == ING_DECLINED);
        ing_bytes_fini(&b);
        ing_alloc_fail_at(0);
    }
    ing_err_fini(&e);
}

static void test_no_memory(void) {
    char path[256];
    ing_err e;
    ing_store *s = NULL;
    uint64_t n = 1;
    ing_err_init(&e);
    snprintf(path, sizeof path, "%s/memory", root);
    for (; n < 100; n++) {
        ing_alloc_fail_at(n);
        ing_status status = ing_store_open(path, NULL, &s, &e);
        bool hit = ing_alloc_fail_left() == 0;
        ing_alloc_fail_at(0);
        CHECK(hit ? status != ING_OK && !s : status == ING_OK && s);
        ing_store_close(s);
        folder_remove(path);
        if (!hit) break;
    }
    CHECK(n > 2 && n < 100);
    ing_err_fini(&e);
}

/* ---- a disk that says no ------------------------------------------------------------------- */

/* Runs part in a child, which becomes an ordinary user when we are root (root may write
 * anywhere); the child's failed checks are its exit code. */
static void in_child(void (*part)(void), bool as_user) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        check_failed = 0;
        if (as_user && geteuid() == 0 && setuid(65534) != 0) _exit(99);
        part();
        fflush(NULL);
        _exit(check_failed > 100 ? 100 : check_failed);
    }
    int status = -1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void read_only_part(void) {
    fixture f;
    char kind[256], fan[256], file[256];
    begin(&f, "user/cache");
    path_of(kind, &f, "i");
    path_of(fan, &f, "i/fe");
    path_of(file, &f, KEY_PATH);
    CHECK(put(&f, "x", 1));
    CHECK(!chmod(fan, 0500) && !chmod(kind, 0500) && !chmod(f.dir, 0500));
    ing_hash128 before = tree_state(f.dir);
    CHECK(hits(&f, "x", 1)); /* hits still work */
    CHECK(!put(&f, "y", 1)); /* existing fan-out directory */
    CHECK(counted(&f, ING_COUNT_STORE_IO_ERRORS) == 1);
    ing_hash128 other = {1, 2};
    CHECK(ing_store_put(f.s, ING_ENTRY_IMAGE, other, "y", 1) == ING_DECLINED);
    CHECK(ing_store_put(f.s, ING_ENTRY_VARIANT, KEY, "y", 1) == ING_DECLINED);
    CHECK(counted(&f, ING_COUNT_STORE_IO_ERRORS) == 3);
    CHECK(hits(&f, "x", 1) && ing_hash_eq(before, tree_state(f.dir)));
    ing_store *s = NULL; /* and a later process may open it */
    CHECK(ing_store_open(f.dir, NULL, &s, &f.e) == ING_OK);
    ing_store_close(s);
    CHECK(!chmod(fan, 0700) && !chmod(file, 0)); /* an entry that we may not read */
    CHECK(!hits(&f, "x", 1) && counted(&f, ING_COUNT_STORE_IO_ERRORS) == 4);
    CHECK(!chmod(f.dir, 0)); /* a directory that we may not search */
    CHECK(!hits(&f, "x", 1) && counted(&f, ING_COUNT_STORE_IO_ERRORS) == 5);
    CHECK(!chmod(f.dir, 0700) && !chmod(kind, 0700));
    declines("/ingot_test_no_such_dir", "Permission denied");
    end(&f);
}

static void test_read_only(void) {
    char path[256];
    CHECK(chmod(root, 0755) == 0); /* the ordinary user must reach its own directory */
    snprintf(path, sizeof path, "%s/user", root);
    CHECK(mkdir(path, 0700) == 0);
    if (geteuid() == 0) CHECK(chown(path, 65534, (gid_t)-1) == 0);
    in_child(read_only_part, true);
}

/* A file may not grow past the limit: write fails in the middle, as on a full disk. */
static void file_limit_part(void) {
    fixture f;
    uint8_t payload[PAYLOAD];
    begin(&f, "limit");
    make_payload(payload);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(put(&f, "x", 1));
    for (rlim_t n = 0; n <= PAYLOAD + 64; n += 41) {
        struct rlimit limit = {n, RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        bool done = put(&f, payload, PAYLOAD);
        limit.rlim_cur = RLIM_INFINITY;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(!done && hits(&f, "x", 1)); /* the old entry stands */
    }
    CHECK(counted(&f, ING_COUNT_STORE_IO_ERRORS) == 1 + (PAYLOAD + 64) / 41);
    tree_state(f.dir);
    CHECK(tree_temps == 0 && tree_files == 1);
    CHECK(put(&f, payload, PAYLOAD) && hits(&f, payload, PAYLOAD));
    end(&f);
}

static void no_descriptors_part(void) {
    fixture f;
    begin(&f, "descriptors");
    CHECK(put(&f, "x", 1));
    for (rlim_t n = 3; n < 7; n++) { /* 0 to 3 are taken; two to four more are used */
        struct rlimit limit = {n, 1024};
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        (void)hits(&f, "x", 1);
        (void)put(&f, "x", 1);
        limit.rlim_cur = 1024;
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    CHECK(counted(&f, ING_COUNT_STORE_IO_ERRORS) >= 2);
    tree_state(f.dir);
    CHECK(tree_temps == 0 && tree_files == 1 && hits(&f, "x", 1));
    end(&f);
}

static void full_disk_part(void) {
    char path[256];
    snprintf(path, sizeof path, "%s/full", root);
    fixture f;
    begin(&f, "full/cache");
    size_t n = 40000;
    uint8_t *payload = calloc(1, n);
    if (!payload) abort();
    int published = 0;
    for (uint64_t i = 0; i < 10; i++) {
        ing_hash128 key = {i, i << 56};
        published += ing_store_put(f.s, ING_ENTRY_IMAGE, key, payload, n) == ING_OK;
    }
    CHECK(published > 0 && published < 10);
    CHECK(counted(&f, ING_COUNT_STORE_IO_ERRORS) == (uint64_t)(10 - published));
    tree_state(f.dir);
    CHECK(tree_temps == 0 && tree_files == published);
    ing_entry entry;
    CHECK(ing_store_get(f.s, ING_ENTRY_IMAGE, (ing_hash128){0, 0}, &entry) == ING_OK);
    ing_entry_fini(&entry);
    free(payload);
    end(&f);
}

static void test_full_disk(void) {
    char path[256];
    snprintf(path, sizeof path, "%s/full", root);
    CHECK(mkdir(path, 0700) == 0);
    if (mount("none", path, "tmpfs", 0, "size=256k,mode=0700") != 0) {
        printf("not run: full disk (no tmpfs may be mounted here)\n");
        return;
    }
    full_disk_part();
    if (mount("none", path, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=256k") == 0) {
        fixture f; /* a file system mounted read-only: EROFS */
        begin(&f, "full/cache");
        ing_entry entry;
        CHECK(ing_store_get(f.s, ING_ENTRY_IMAGE, (ing_hash128){0, 0}, &entry) ==
              ING_OK);
        ing_entry_fini(&entry);
        CHECK(!put(&f, "x", 1) && counted(&f, ING_COUNT_STORE_IO_ERRORS) == 1);
        end(&f);
    }
    umount2(path, MNT_DETACH);
}

/* ---- several at once ------------------------------------------------------------------------ */

enum { WRITERS = 4, ROUNDS = 100, SHARED = 200000 };

static void writer_part(void) {
    fixture f;
    begin(&f, "together");
    uint8_t *p = malloc(SHARED);
    if (!p) abort();
    memset(p, 0x5a, SHARED);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(put(&f, p, SHARED));
        CHECK(hits(&f, p, SHARED)); /* somebody's, and always whole */
    }
    CHECK(counted(&f, ING_COUNT_STORE_BAD_ENTRY) == 0);
    free(p);
    end(&f);
}

static void test_processes(void) {
    pid_t child[WRITERS];
    fflush(NULL);
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            check_failed = 0;
            writer_part();
            fflush(NULL);
            _exit(check_failed ? 1 : 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        CHECK(child[i] > 0 && waitpid(child[i], &status, 0) == child[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    char dir[256];
    snprintf(dir, sizeof dir, "%s/together", root);
    tree_state(dir);
    CHECK(tree_temps == 0 && tree_files == 1);
}

/* A writer killed at any time leaves a hit or a miss, and the next put works. */
static void test_killed(void) {
    fixture f;
    begin(&f, "killed");
    uint8_t *p = malloc(SHARED);
    if (!p) abort();
    memset(p, 0xa5, SHARED);
    for (int i = 0; i < 10; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            for (;;) ing_store_put(f.s, ING_ENTRY_IMAGE, KEY, p, SHARED);
        }
        usleep(2000 + 700 * (useconds_t)i);
        CHECK(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        hits(&f, p, SHARED); /* checks the payload of a hit */
    }
    CHECK(put(&f, p, SHARED) && hits(&f, p, SHARED));
    CHECK(counted(&f, ING_COUNT_STORE_BAD_ENTRY) == 0);
    free(p);
    end(&f);
}

int main(void) {
    folder_make(root);
    int descriptors = open_descriptors();
    test_roundtrip();
    test_kinds_and_keys();
    test_golden();
    test_truncation();
    test_bit_flips();
    test_sizes();
    test_modes();
    test_links();
    test_foreign_owner();
    test_open();
    test_deleted();
    test_default_dir();
    test_no_memory();
    test_read_only();
    in_child(file_limit_part, false);
    in_child(no_descriptors_part, false);
    test_full_disk();
    test_processes();
    test_killed();
    CHECK(open_descriptors() == descriptors); /* no way out leaks one */
    folder_remove(root);
    return CHECK_DONE();
}
