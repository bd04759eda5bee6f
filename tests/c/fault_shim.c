/* A library for LD_PRELOAD: the k-th system call that touches files below a directory
 * fails, or that one and all after it; clocks are moved, sleep is cut short; a mount of the
 * network or without execution and a user without a home are played. Built by
 * tests/py/fault_tools.py, armed through ctypes by tests/py/fault_server.py.
 * What a call touches is asked of the kernel (/proc/self/fd), so nothing is tracked. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static struct {
    char dir[4096];
    long fail_at; /* 0: only counted */
    int error;
    bool sticky;    /* and all that follow */
    char only[128]; /* names of the calls that count, " " around each; "": all */
    bool no_exec, no_home, hurry, link_twice;
    long mount; /* f_type of the directory; 0: as it is */
    long seen;
    char what[64];       /* the call that failed first */
    char calls[512];     /* the names of all that were seen */
    int64_t clock_moved; /* seconds; all but the clock of timeouts */
    int64_t hurried;     /* nanoseconds that were not slept */
} fault;

void fault_arm(const char *dir, long k, int error, int sticky);
long fault_seen(void);
const char *fault_what(void);
const char *fault_calls(void);
void fault_no_exec(const char *dir);
void fault_move_clock(long seconds);
void fault_only(const char *names);
void fault_no_home(void);
void fault_mount(long type);
void fault_link_twice(void);
void fault_hurry(void);

void fault_arm(const char *dir, long k, int error, int sticky) {
    snprintf(fault.dir, sizeof fault.dir, "%s", dir);
    __atomic_store_n(&fault.seen, 0, __ATOMIC_RELAXED);
    fault.what[0] = fault.calls[0] = 0;
    fault.error = error;
    fault.sticky = sticky != 0;
    fault.fail_at = k;
}

long fault_seen(void) {
    return __atomic_load_n(&fault.seen, __ATOMIC_RELAXED);
}

const char *fault_what(void) {
    return fault.what;
}

const char *fault_calls(void) {
    return fault.calls;
}

void fault_no_exec(const char *dir) {
    snprintf(fault.dir, sizeof fault.dir, "%s", dir);
    fault.no_exec = true;
}

void fault_move_clock(long seconds) {
    fault.clock_moved = seconds;
}

void fault_only(const char *names) {
    snprintf(fault.only, sizeof fault.only, "%s", names);
}

/* The password file knows nobody. */
void fault_no_home(void) {
    fault.no_home = true;
}

/* What fstatfs says of the directory. */
void fault_mount(long type) {
    fault.mount = type;
}

/* A link is made, and the answer is that of a second try: as of a server. */
void fault_link_twice(void) {
    fault.link_twice = true;
}

/* Who sleeps wakes up at once, later. */
void fault_hurry(void) {
    fault.hurry = true;
}

/* ---- what is touched ---------------------------------------------------------------- */

static bool is_below(const char *path) {
    size_t n = strlen(fault.dir);
    return n && strncmp(path, fault.dir, n) == 0 && (path[n] == '/' || !path[n]);
}

static bool fd_below(int fd) {
    char link[40], path[4096];
    if (!fault.dir[0] || fd < 0) return false;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    errno = saved;
    path[n > 0 ? n : 0] = 0;
    return is_below(path);
}

static bool name_below(int at, const char *name) {
    if (name[0] == '/') return is_below(name);
    return at != AT_FDCWD && fd_below(at);
}

/* For people and one test; two threads may lose a name. */
static void note_call(const char *word) {
    size_t n = strlen(fault.calls);
    if (!strstr(fault.calls, word))
        snprintf(fault.calls + n, sizeof fault.calls - n, "%s", word);
}

/* Whether this one fails; errno is set then. */
static bool fails(bool touches, const char *call) {
    char word[40];
    snprintf(word, sizeof word, " %s ", call);
    if (!touches || (fault.only[0] && !strstr(fault.only, word))) return false;
    note_call(word);
    long k = __atomic_add_fetch(&fault.seen, 1, __ATOMIC_RELAXED);
    if (!fault.fail_at || (fault.sticky ? k < fault.fail_at : k != fault.fail_at))
        return false;
    if (!fault.what[0]) snprintf(fault.what, sizeof fault.what, "%s", call);
    errno = fault.error;
    return true;
}

/* ---- calls that take a descriptor ------------------------------------------------------ */

ssize_t read(int fd, void *p, size_t n) {
    return fails(fd_below(fd), "read") ? -1 : syscall(SYS_read, fd, p, n);
}

ssize_t write(int fd, const void *p, size_t n) {
    return fails(fd_below(fd), "write") ? -1 : syscall(SYS_write, fd, p, n);
}

ssize_t pread64(int fd, void *p, size_t n, off_t at) {
    return fails(fd_below(fd), "pread") ? -1 : syscall(SYS_pread64, fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at) {
    return fails(fd_below(fd), "pwrite") ? -1 : syscall(SYS_pwrite64, fd, p, n, at);
}

int fsync(int fd) {
    return fails(fd_below(fd), "fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate64(int fd, off_t n) {
    return fails(fd_below(fd), "ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

int flock(int fd, int how) {
    return fails(fd_below(fd), "flock") ? -1 : (int)syscall(SYS_flock, fd, how);
}

/* Closed all the same, as Linux does. */
int close(int fd) {
    bool bad = fails(fd_below(fd), "close");
    int r = (int)syscall(SYS_close, fd);
    if (bad) errno = fault.error;
    return bad ? -1 : r;
}

int dup3(int fd, int to, int flags) {
    return fails(fd_below(fd), "dup3") ? -1 : (int)syscall(SYS_dup3, fd, to, flags);
}

int fcntl64(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *arg = va_arg(list, void *);
    va_end(list);
    return fails(fd_below(fd), "fcntl") ? -1
                                        : (int)syscall(SYS_fcntl, fd, command, arg);
}

int fstat64(int fd, struct stat64 *st) {
    return fails(fd_below(fd), "fstat")
               ? -1
               : (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

int fstatfs64(int fd, struct statfs64 *st) {
    bool below = fd_below(fd);
    if (fails(below, "fstatfs")) return -1;
    int r = (int)syscall(SYS_fstatfs, fd, st);
    if (below && fault.mount) st->f_type = fault.mount;
    return r;
}

off_t lseek64(int fd, off_t at, int whence) {
    return fails(fd_below(fd), "lseek") ? -1 : syscall(SYS_lseek, fd, at, whence);
}

/* The descriptor stays the caller's after a failure. */
DIR *fdopendir(int fd) {
    DIR *(*real)(int);
    if (fails(fd_below(fd), "fdopendir")) return NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "fdopendir");
    return real(fd);
}

struct dirent64 *readdir64(DIR *dir) {
    struct dirent64 *(*real)(DIR *);
    if (fails(fd_below(dirfd(dir)), "readdir")) return NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "readdir64");
    return real(dir);
}

/* Closed all the same. */
int closedir(DIR *dir) {
    int (*real)(DIR *);
    bool bad = fails(fd_below(dirfd(dir)), "closedir");
    *(void **)&real = dlsym(RTLD_NEXT, "closedir");
    int r = real(dir);
    if (bad) errno = fault.error;
    return bad ? -1 : r;
}

/* ---- calls that take a name ------------------------------------------------------------- */

static int open_file(int at, const char *name, int flags, mode_t mode) {
    if (fails(name_below(at, name), flags & O_CREAT ? "create" : "open")) return -1;
    return (int)syscall(SYS_openat, at, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = va_arg(list, mode_t);
    va_end(list);
    return open_file(AT_FDCWD, name, flags, mode);
}

int openat64(int at, const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = va_arg(list, mode_t);
    va_end(list);
    return open_file(at, name, flags, mode);
}

int stat64(const char *name, struct stat64 *st) {
    return fails(name_below(AT_FDCWD, name), "stat")
               ? -1
               : (int)syscall(SYS_newfstatat, AT_FDCWD, name, st, 0);
}

int fstatat64(int at, const char *name, struct stat64 *st, int flags) {
    return fails(name_below(at, name), "fstatat")
               ? -1
               : (int)syscall(SYS_newfstatat, at, name, st, flags);
}

int access(const char *name, int how) {
    return fails(name_below(AT_FDCWD, name), "access")
               ? -1
               : (int)syscall(SYS_faccessat, AT_FDCWD, name, how);
}

int faccessat(int at, const char *name, int how, int flags) {
    return fails(name_below(at, name), "faccessat")
               ? -1
               : (int)syscall(SYS_faccessat2, at, name, how, flags);
}

int mkdir(const char *name, mode_t mode) {
    return fails(name_below(AT_FDCWD, name), "mkdir")
               ? -1
               : (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);
}

int mkdirat(int at, const char *name, mode_t mode) {
    return fails(name_below(at, name), "mkdirat")
               ? -1
               : (int)syscall(SYS_mkdirat, at, name, mode);
}

int unlinkat(int at, const char *name, int flags) {
    return fails(name_below(at, name), "unlinkat")
               ? -1
               : (int)syscall(SYS_unlinkat, at, name, flags);
}

int linkat(int from, const char *old, int to, const char *name, int flags) {
    if (fails(name_below(to, name), "linkat")) return -1;
    int r = (int)syscall(SYS_linkat, from, old, to, name, flags);
    if (r != 0 || !fault.link_twice) return r;
    errno = EEXIST;
    return -1;
}

int renameat(int from, const char *old, int to, const char *name) {
    return fails(name_below(to, name), "renameat")
               ? -1
               : (int)syscall(SYS_renameat2, from, old, to, name, 0);
}

int renameat2(int from, const char *old, int to, const char *name, unsigned flags) {
    return fails(name_below(to, name), "renameat2")
               ? -1
               : (int)syscall(SYS_renameat2, from, old, to, name, flags);
}

/* ---- memory and clocks ---------------------------------------------------------------------- */

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off_t off) {
    bool below = fd_below(fd);
    if (fails(below, "mmap")) return MAP_FAILED;
    if (below && fault.no_exec && prot & PROT_EXEC) {
        errno = EPERM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, off);
}

/* Whether a file below the directory is mapped there. */
static bool shows_file(uintptr_t at) {
    char line[4600], path[4096];
    unsigned long from, to;
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !found && fgets(line, sizeof line, f))
        found =
            sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &from, &to, path) == 3 &&
            at >= from && at < to && is_below(path);
    if (f) fclose(f);
    return found;
}

int mprotect(void *at, size_t n, int prot) {
    bool file = fault.dir[0] && shows_file((uintptr_t)at);
    if (fails(file, "mprotect")) return -1;
    if (file && fault.no_exec && prot & PROT_EXEC) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_mprotect, at, n, prot);
}

int clock_gettime(clockid_t which, struct timespec *t) {
    int r = (int)syscall(SYS_clock_gettime, which, t);
    if (r != 0) return r;
    int64_t ns = t->tv_nsec + __atomic_load_n(&fault.hurried, __ATOMIC_RELAXED);
    t->tv_sec += ns / 1000000000;
    t->tv_nsec = ns % 1000000000;
    if (which != CLOCK_MONOTONIC) t->tv_sec += fault.clock_moved;
    return 0;
}

int nanosleep(const struct timespec *want, struct timespec *left) {
    if (!fault.hurry) return (int)syscall(SYS_nanosleep, want, left);
    int64_t ns = (int64_t)want->tv_sec * 1000000000 + want->tv_nsec;
    __atomic_fetch_add(&fault.hurried, 200 * ns, __ATOMIC_RELAXED);
    struct timespec little = {.tv_nsec = 1000000};
    return (int)syscall(SYS_nanosleep, &little, NULL);
}

int getpwuid_r(uid_t id, struct passwd *pw, char *buf, size_t n, struct passwd **out) {
    if (fault.no_home) {
        *out = NULL;
        return 0;
    }
    int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **);
    *(void **)&real = dlsym(RTLD_NEXT, "getpwuid_r");
    return real(id, pw, buf, n, out);
}
