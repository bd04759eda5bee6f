/* The cache directory: where it is, opening it, and the rule of R20 that makes it safe to
 * run code found in it. Called by get, put and at start-up. Trust is decided on open
 * descriptors only, so that nothing can be exchanged between check and use. Nothing here
 * is fatal: a directory that cannot be used means running on memory. */
#include "store/pack.h"
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The rule itself: ours, or in a read-only layer root's, and nobody else may write. */
static bool is_safe(const ing_store *s, const struct stat *st, mode_t type) {
    return (st->st_mode & S_IFMT) == type && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           (st->st_uid == geteuid() || (s->read_only && st->st_uid == 0));
}

bool ing_store_trusts(const ing_store *s, int fd, bool directory, size_t *size) {
    struct stat st;
    if (fstat(fd, &st) != 0) return false;
    if (size) *size = st.st_size > 0 ? (size_t)st.st_size : 0;
    return is_safe(s, &st, directory ? S_IFDIR : S_IFREG);
}

static ing_reach reach_of_errno(void) {
    if (errno == ENOENT) return ING_REACH_MISSING;
    /* A link or a file stands where a directory of ours belongs. */
    return errno == ELOOP || errno == ENOTDIR ? ING_REACH_FOREIGN : ING_REACH_FAILED;
}

/* The top directory may be reached through links (a home on another disk): it is named by
 * the user, and what is checked is where the name leads. Below it no link is followed. */
static ing_reach open_dir(const ing_store *s, int at, const char *name, int *out) {
    int nofollow = at == AT_FDCWD ? 0 : O_NOFOLLOW;
    int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC | nofollow);
    if (fd < 0) return reach_of_errno();
    if (!ing_store_trusts(s, fd, true, NULL)) {
        close(fd);
        return ING_REACH_FOREIGN;
    }
    *out = fd;
    return ING_REACH_OK;
}

/* mkdir of path and of each missing parent, as XDG asks with mode 0700. errno is that of
 * the first real failure: the one after it would only say that a parent is missing. */
static bool make_dirs(const char *path) {
    size_t n = strlen(path);
    char *part = ing_malloc(n + 1);
    int first = 0;
    bool ok = false;
    if (!part) {
        errno = ENOMEM;
        return false;
    }
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0) continue;
        part[i] = 0;
        ok = mkdir(part, 0700) == 0 || errno == EEXIST;
        if (!ok && !first) first = errno;
        part[i] = path[i];
    }
    ing_free(part);
    errno = first;
    return ok;
}

static ing_reach open_top(const ing_store *s, bool create, int *fd) {
    ing_reach r = open_dir(s, AT_FDCWD, s->dir, fd);
    if (r != ING_REACH_MISSING || !create) return r;
    return make_dirs(s->dir) ? open_dir(s, AT_FDCWD, s->dir, fd) : ING_REACH_FAILED;
}

static ing_reach open_below(const ing_store *s, int at, const char *name, bool create,
                            int *fd) {
    ing_reach r = open_dir(s, at, name, fd);
    if (r != ING_REACH_MISSING || !create) return r;
    if (mkdirat(at, name, 0700) != 0 && errno != EEXIST) return ING_REACH_FAILED;
    return open_dir(s, at, name, fd);
}

/* Opened anew each time (openat of each level, about 1 us each): a cache that is deleted
 * while the program runs is simply made again. */
static ing_reach open_levels(const ing_store *s, const char (*part)[3], int levels,
                             bool create, int *fd) {
    int at = -1;
    ing_reach r = open_top(s, create, &at);
    for (int i = 0; i < levels && r == ING_REACH_OK; i++) {
        int next = -1;
        r = open_below(s, at, part[i], create, &next);
        int saved = errno;
        close(at);
        errno = saved;
        at = next;
    }
    *fd = at;
    return r;
}

ing_reach ing_store_open_fan(const ing_store *s, char letter, const char hex[33],
                             bool create, int *fd) {
    const char part[2][3] = {{letter, 0, 0}, {hex[0], hex[1], 0}};
    return open_levels(s, part, 2, create, fd);
}

ing_reach ing_store_open_kind(const ing_store *s, char letter, bool create, int *fd) {
    const char part[1][3] = {{letter, 0, 0}};
    return open_levels(s, part, letter ? 1 : 0, create, fd);
}

ing_reach ing_store_open_below(const ing_store *s, int at, const char *name, int *fd) {
    return open_below(s, at, name, false, fd);
}

/* ---- reading: the levels above an entry stay open --------------------------------------- */

/* The directories above were checked when they were opened, and nobody else can write below
 * them: a fan-out directory is only what their owner made it, and is checked by name. MISSING:
 * not there, or these directories are not the cache any more. */
static ing_reach open_through(const ing_store *s, int kind, const char hex[33], int *fd,
                              size_t *size) {
    struct stat fan;
    const char part[3] = {hex[0], hex[1], 0};
    char name[40];
    if (fstatat(kind, part, &fan, AT_SYMLINK_NOFOLLOW) != 0) return reach_of_errno();
    if (!is_safe(s, &fan, S_IFDIR)) return ING_REACH_FOREIGN;
    memcpy(name, part, 2);
    name[2] = '/';
    memcpy(name + 3, hex, 33);
    return ing_store_open_file(s, kind, name, fd, size);
}

/* Remembers a kind's directory for the next reader. */
static void keep_kind(const ing_store *s, ing_entry_kind kind, int dir) {
    int none = -1, *place = &s->fds->kind[kind];
    int fresh = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (fresh < 0) return;
    if (__atomic_compare_exchange_n(place, &none, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return;
    (void)dup3(fresh, none, O_CLOEXEC); /* others may be using the number */
    close(fresh);
}

/* Every level opened anew; the top is remembered with the kind, for it may have been made
 * again meanwhile. */
static ing_reach open_afresh(const ing_store *s, ing_entry_kind kind,
                             const char hex[33], int *fd, size_t *size) {
    const char part[3] = {hex[0], hex[1], 0}, letter[2] = {ing_store_letter(kind), 0};
    int top = -1, dir = -1, fan = -1;
    ing_reach r = open_top(s, false, &top);
    if (r == ING_REACH_OK) r = open_below(s, top, letter, false, &dir);
    if (r == ING_REACH_OK) r = open_below(s, dir, part, false, &fan);
    if (r == ING_REACH_OK) r = ing_store_open_file(s, fan, hex, fd, size);
    int saved = errno;
    if (r == ING_REACH_OK) {
        (void)dup3(top, s->fds->top, O_CLOEXEC);
        keep_kind(s, kind, dir);
    }
    if (top >= 0) close(top);
    if (dir >= 0) close(dir);
    if (fan >= 0) close(fan);
    errno = saved;
    return r;
}

/* 7 system calls for an entry instead of 21: with 300 kernels of four entries each that is
 * what a warm start consists of. A miss looks again from the top, because a cache that is
 * deleted while the program runs is simply made again. */
ing_reach ing_store_open_entry(const ing_store *s, ing_entry_kind kind,
                               const char hex[33], int *fd, size_t *size) {
    int dir = __atomic_load_n(&s->fds->kind[kind], __ATOMIC_ACQUIRE);
    if (dir >= 0) {
        ing_reach r = open_through(s, dir, hex, fd, size);
        if (r != ING_REACH_MISSING) return r;
    }
    return open_afresh(s, kind, hex, fd, size);
}

/* Says which rule of R20 the directory breaks. Looks again, for the text only. */
static ing_status refuse(const ing_store *s, ing_err *e) {
    const char *dir = s->dir;
    struct stat st;
    if (stat(dir, &st) != 0)
        return ing_fail(e, ING_DECLINED, "cache directory %s: %m", dir);
    if (!S_ISDIR(st.st_mode))
        return ing_fail(e, ING_DECLINED, "cache directory %s: not a directory", dir);
    if (st.st_uid != geteuid() && !(s->read_only && st.st_uid == 0))
        return ing_fail(
            e, ING_DECLINED,
            "cache directory %s: it belongs to user %u and this process "
            "runs as user %u; set INGOT_CACHE_DIR to a directory of its own",
            dir, (unsigned)st.st_uid, (unsigned)geteuid());
    return ing_fail(e, ING_DECLINED,
                    "cache directory %s: others may write to it (mode %04o); "
                    "run chmod go-w on it",
                    dir, (unsigned)st.st_mode & 07777u);
}

/* The working directory may change later, so a relative name is made absolute now. */
static char *absolute(const char *dir) {
    ing_bytes b;
    ing_bytes_init(&b);
    char *cwd = dir[0] == '/' ? NULL : getcwd(NULL, 0);
    if (cwd) {
        ing_bytes_puts(&b, cwd);
        ing_bytes_puts(&b, "/");
        free(cwd);
    }
    ing_bytes_puts(&b, dir);
    return ing_bytes_take(&b);
}

static void free_layer(ing_store *s) {
    for (int i = 0; s->fds && i < ING_ENTRY_KINDS; i++)
        if (s->fds->kind[i] >= 0) close(s->fds->kind[i]);
    if (s->fds && s->fds->top >= 0) close(s->fds->top);
    ing_pack_unref(s->pack);
    ing_free(s->fds);
    ing_free(s->dir);
    ing_free(s);
}

/* Before anything can fail: freeing a layer closes what these are. */
static ing_store_fds *new_fds(void) {
    ing_store_fds *f = ing_malloc(sizeof *f);
    if (!f) return NULL;
    f->top = -1;
    f->stuck = false;
    for (int i = 0; i < ING_ENTRY_KINDS; i++) f->kind[i] = -1;
    return f;
}

static ing_status open_layer(ing_store *s, bool create, ing_err *e) {
    if (!s->fds || !s->dir)
        return ing_fail(e, ING_MEMORY, "out of memory opening the cache directory");
    ing_reach r = open_top(s, create, &s->fds->top);
    if (r == ING_REACH_OK) {
        s->sealed = faccessat(s->fds->top, ING_PACK_MANIFEST, F_OK, 0) == 0;
        if (s->sealed) s->read_only = true;
        s->copies = ing_os_on_network(s->fds->top);
        return ING_OK;
    }
    if (r == ING_REACH_FOREIGN) return refuse(s, e);
    return ing_fail(e, ING_DECLINED, "cache directory %s: %m", s->dir);
}

ing_status ing_store_open_layer(const ing_layer_want *want, ing_counters *counters,
                                ing_store **out, ing_err *e) {
    *out = NULL;
    if (!want->dir || !want->dir[0])
        return ing_fail(e, ING_DECLINED, "cache directory: the name is empty");
    ing_store *s = ing_calloc(1, sizeof *s);
    if (!s) return ing_fail(e, ING_MEMORY, "out of memory opening the cache directory");
    s->counters = counters;
    s->read_only = want->read_only;
    s->dir = absolute(want->dir);
    s->fds = new_fds();
    ing_status status = open_layer(s, want->create, e);
    if (status == ING_OK)
        *out = s;
    else
        free_layer(s);
    return status;
}

ing_status ing_store_open(const char *dir, ing_counters *counters, ing_store **out,
                          ing_err *e) {
    ing_layer_want want = {.dir = dir, .create = true};
    ING_TRY(ing_store_open_layer(&want, counters, out, e));
    ing_packed_open(*out);
    return ING_OK;
}

ing_status ing_store_open_to_read(const char *dir, ing_counters *counters,
                                  ing_store **out, ing_err *e) {
    ing_layer_want want = {.dir = dir, .read_only = true};
    ING_TRY(ing_store_open_layer(&want, counters, out, e));
    ing_packed_open(*out);
    return ING_OK;
}

void ing_store_close(ing_store *s) {
    while (s) {
        ing_store *below = s->below;
        free_layer(s);
        s = below;
    }
}

const char *ing_store_dir(const ing_store *s) {
    return s->dir;
}

/* Appends the home of the effective user as the password file has it; false: none. Out of
 * memory is left in the buffer, for the caller to see. */
static bool put_password_home(ing_bytes *out) {
    size_t cap = 16384; /* far above what entries take; ERANGE then means "none" */
    struct passwd pw, *found = NULL;
    char *buf = ing_malloc(cap);
    if (!buf) {
        out->failed = true;
        return true;
    }
    bool ok = getpwuid_r(geteuid(), &pw, buf, cap, &found) == 0 && found &&
              found->pw_dir && found->pw_dir[0] == '/';
    if (ok) ing_bytes_puts(out, found->pw_dir);
    ing_free(buf);
    return ok;
}

/* secure_getenv: a set-user-id program must not run code from a place that its caller
 * names. A relative XDG_CACHE_HOME is invalid by the XDG rules, and so ignored. */
ing_status ing_store_default_dir(ing_bytes *out, ing_err *e) {
    const char *own = secure_getenv("INGOT_CACHE_DIR");
    const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    if (own && own[0]) {
        ing_bytes_puts(out, own);
    } else if (xdg && xdg[0] == '/') {
        ing_bytes_puts(out, xdg);
        ing_bytes_puts(out, "/ingot");
    } else if (home && home[0] == '/') {
        ing_bytes_puts(out, home);
        ing_bytes_puts(out, "/.cache/ingot");
    } else if (put_password_home(out)) {
        ing_bytes_puts(out, "/.cache/ingot");
    } else {
        return ing_fail(
            e, ING_DECLINED,
            "no cache directory: this user has no home; set INGOT_CACHE_DIR");
    }
    if (!ing_bytes_ok(out))
        return ing_fail(e, ING_MEMORY, "out of memory naming the cache directory");
    return ING_OK;
}
