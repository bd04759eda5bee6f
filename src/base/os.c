/* Files, clock and machine facts. Called by the store, the compiler's pipes and the
 * thread pool. Must never block on a FIFO or read without a bound, and never trusts a
 * size that stat gave: a file may grow while it is read. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Reads until the end into out, in growing steps; false with errno, EFBIG past max. */
static bool read_to_end(int fd, size_t max, size_t hint, ing_bytes *out) {
    size_t done = 0, step = hint < max ? hint + 1 : 4096;
    for (;;) {
        if (!ing_bytes_reserve(out, step)) {
            errno = ENOMEM;
            return false;
        }
        ssize_t n = read(fd, out->at + out->len, step);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) return true;
        if ((size_t)n > max - done) {
            errno = EFBIG;
            return false;
        }
        done += (size_t)n;
        out->len += (size_t)n;
        out->at[out->len] = 0;
        step = 65536;
    }
}

ing_status ing_os_read_fd(int fd, size_t max, ing_bytes *out, ing_err *e) {
    struct stat st;
    size_t start = out->len, hint = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uintmax_t)st.st_size > max)
            return ing_fail(e, ING_FORMAT, "file of %jd bytes is larger than %zu",
                            (intmax_t)st.st_size, max);
        hint = (size_t)st.st_size;
    }
    if (read_to_end(fd, max, hint, out)) return ING_OK;
    int err = errno;
    out->len = start;
    if (out->at) out->at[start] = 0;
    if (err == ENOMEM) return ing_fail(e, ING_MEMORY, "out of memory reading a file");
    if (err == EFBIG) return ing_fail(e, ING_FORMAT, "file is larger than %zu", max);
    errno = err;
    return ing_fail(e, ING_OS, "cannot read: %m");
}

ing_status ing_os_read(const char *path, size_t max, ing_bytes *out, ing_err *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return ing_fail(e, ING_OS, "cannot open %s: %m", path);
    struct stat st;
    ing_status s;
    if (fstat(fd, &st) != 0) {
        s = ing_fail(e, ING_OS, "cannot stat %s: %m", path);
    } else if (!S_ISREG(st.st_mode)) {
        s = ing_fail(e, ING_OS, "%s is not a regular file", path);
    } else {
        s = ing_os_read_fd(fd, max, out, e);
        if (s != ING_OK && e && e->text) ing_fail(e, s, "%s: %s", path, e->text);
    }
    close(fd);
    return s;
}

bool ing_os_write_all(int fd, const void *p, size_t n) {
    const uint8_t *at = p;
    while (n) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        if (done == 0) { /* not for regular files, but an endless loop must not be */
            errno = EIO;
            return false;
        }
        at += done;
        n -= (size_t)done;
    }
    return true;
}

uint64_t ing_os_now_ns(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A fixed cpu_set_t ends at 1,024 CPUs; bigger machines answer EINVAL to it. */
uint32_t ing_os_cpus(void) {
    for (int cpus = 1024; cpus <= 1 << 18; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        int rc = sched_getaffinity(0, size, set), err = errno;
        int n = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0) return (uint32_t)n;
        if (err != EINVAL) break;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

size_t ing_os_page(void) {
    long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

/* registry: where this thread's stack is, asked once: of the main thread the C library reads all of
 * /proc/self/maps. That took most of the time of a kernel of 29,000 nodes in a program with thousands of mappings. */
static _Thread_local struct stack {
    uintptr_t first;
    size_t size; /* 0: not asked yet */
} stack;

size_t ing_os_stack_left(void) {
    pthread_attr_t about;
    void *low = NULL;
    size_t size = 0;
    if (!stack.size && pthread_getattr_np(pthread_self(), &about) == 0) {
        if (pthread_attr_getstack(&about, &low, &size) == 0)
            stack = (struct stack){(uintptr_t)low, size};
        pthread_attr_destroy(&about);
    }
    uintptr_t at = (uintptr_t)__builtin_frame_address(0);
    return !stack.size || at < stack.first || at - stack.first > stack.size
               ? SIZE_MAX
               : at - stack.first;
}

/* Where a page that was mapped may fail to arrive, and another host may change the file:
 * file systems on a server, and those of FUSE, whose server may be anywhere. */
bool ing_os_on_network(int fd) {
    static const uint32_t types[] = {
        0x00006969,                         /* NFS */
        0x0000517b, 0xff534d42, 0xfe534d42, /* SMB: smbfs, CIFS, SMB2 and later */
        0x01021997,                         /* 9P */
        0x65735546,                         /* FUSE: sshfs, gcsfuse, GlusterFS */
        0x00c36400,                         /* Ceph */
        0x0bd00bd0,                         /* Lustre */
        0x47504653,                         /* GPFS */
        0x19830326,                         /* BeeGFS */
        0x20030528,                         /* OrangeFS */
        0x5346414f, 0x6b414653,             /* AFS: OpenAFS, the kernel's */
        0x73757245,                         /* Coda */
        0x7461636f,                         /* OCFS2 */
        0xaad7aaea,                         /* PanFS */
        0x786f4256,                         /* folders of a virtual machine's host */
    };
    struct statfs st;
    if (fstatfs(fd, &st) != 0) return true; /* unknown: as careful as can be */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((uint32_t)st.f_type == types[i]) return true;
    return false;
}
