/* What happened when, for people: spans in the trace format of Chrome, which Perfetto opens
 * (INGOT_TRACE=file.json). Called by src/py, src/compile and its helpers when a trace was
 * asked for; without one there is no ing_events, and no cost. Never fails a launch: what
 * cannot be written is dropped.
 *
 * The file is one JSON array, an event per line, complete after each write: new events take
 * the place of its last bracket, under a lock, so that several processes share one file and
 * a process that dies leaves it whole. Times are those of the monotonic clock, the same for
 * all processes. An event ends with "}}", its arguments and itself, which is how a file
 * that was cut is mended. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Events wait until there are so many bytes, or for so long; then they are written. */
enum { HELD_BYTES = 64 << 10, MENDED = 16 << 10 };
static const uint64_t HELD_NS = 1000000000;

struct ing_events {
    pthread_mutex_t lock; /* innermost */
    char *path;
    int fd; /* -1: not open yet, or it cannot be */
    ing_bytes held;
    uint64_t since; /* of the oldest that is held */
    uint64_t left;  /* bytes that this process may still write */
    uint64_t dropped;
    int64_t pid;
    bool broken; /* the file is none of ours, or cannot be written */
};

ing_events *ing_events_new(const char *path, uint64_t max_bytes) {
    ing_events *t = ing_calloc(1, sizeof *t);
    size_t n = strlen(path) + 1;
    char *copy = t ? ing_malloc(n) : NULL;
    if (!copy) {
        ing_free(t);
        return NULL;
    }
    memcpy(copy, path, n);
    *t = (ing_events){.path = copy, .fd = -1, .left = max_bytes, .pid = getpid()};
    pthread_mutex_init(&t->lock, NULL);
    ing_bytes_init(&t->held);
    return t;
}

void ing_events_free(ing_events *t) {
    if (!t) return;
    ing_events_flush(t);
    if (t->fd >= 0) close(t->fd);
    ing_bytes_fini(&t->held);
    pthread_mutex_destroy(&t->lock);
    ing_free(t->path);
    ing_free(t);
}

/* A lock goes with the open file, which parent and child would share: the child opens its
 * own. What the parent holds, the parent writes. */
void ing_events_after_fork(ing_events *t) {
    if (!t) return;
    pthread_mutex_init(&t->lock, NULL);
    if (t->fd >= 0) close(t->fd);
    t->fd = -1;
    t->held.len = 0;
    t->dropped = 0;
    t->pid = getpid();
}

/* ---- the file ----------------------------------------------------------------------------- */

/* Where the next event goes: after the last whole one; 0: the file is empty, -1: it is no
 * trace. */
static off_t end_of_events(int fd) {
    char tail[MENDED];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return -1;
    if (st.st_size == 0) return 0;
    off_t from = st.st_size > MENDED ? st.st_size - MENDED : 0;
    ssize_t n = pread(fd, tail, sizeof tail, from);
    for (ssize_t i = n; i >= 2; i--)
        if (tail[i - 1] == '}' && tail[i - 2] == '}') return from + i;
    return -1;
}

static bool is_trace(int fd) {
    char first = 0;
    ssize_t n = pread(fd, &first, 1, 0);
    return n == 0 || (n == 1 && first == '[');
}

/* One write, so that who is killed leaves all of it or nothing. */
static bool append(int fd, ing_bytes *events) {
    off_t at = is_trace(fd) ? end_of_events(fd) : -1;
    if (at < 0) return false;
    ing_bytes out;
    ing_bytes_init(&out);
    ing_bytes_puts(&out, at ? ",\n" : "[\n");
    ing_bytes_put(&out, events->at, events->len);
    ing_bytes_puts(&out, "\n]\n");
    bool ok = !out.failed && pwrite(fd, out.at, out.len, at) == (ssize_t)out.len;
    struct stat st; /* a piece of an event may stand behind it */
    off_t end = at + (off_t)out.len;
    if (ok && fstat(fd, &st) == 0 && st.st_size > end) ok = ftruncate(fd, end) == 0;
    ing_bytes_fini(&out);
    return ok;
}

static void write_held(ing_events *t) {
    if (t->fd < 0 && !t->broken)
        t->fd = open(t->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    t->broken = t->broken || t->fd < 0;
    if (!t->broken && t->held.len && !t->held.failed && flock(t->fd, LOCK_EX) == 0) {
        t->broken = !append(t->fd, &t->held);
        flock(t->fd, LOCK_UN);
    }
    ing_bytes_clear(&t->held);
    t->held.failed = false;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_text(ing_bytes *b, const char *s) {
    ing_bytes_u8(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') ing_bytes_u8(b, '\\');
        if ((uint8_t)*s < 32 || *s == 127)
            ing_bytes_printf(b, "\\u%04x", (unsigned)(uint8_t)*s);
        else
            ing_bytes_u8(b, (uint8_t)*s);
    }
    ing_bytes_u8(b, '"');
}

static void put_head(ing_bytes *b, const char *name, const char *kind, int64_t pid,
                     int64_t tid) {
    ing_bytes_puts(b, b->len ? ",\n{\"name\":" : "{\"name\":");
    put_text(b, name);
    ing_bytes_printf(b, ",\"ph\":\"%s\",\"pid\":%lld,\"tid\":%lld", kind,
                     (long long)pid, (long long)tid);
}

/* The first event of a process says what it is. */
static void put_process(ing_bytes *b, int64_t pid, const char *name) {
    put_head(b, "process_name", "M", pid, pid);
    ing_bytes_puts(b, ",\"args\":{\"name\":");
    put_text(b, name);
    ing_bytes_puts(b, "}}");
}

/* Keeps what was added after `before`, or takes it back where the bound is reached. */
static void keep(ing_events *t, size_t before, uint64_t now) {
    uint64_t n = t->held.len - before;
    if (n > t->left) {
        t->held.len = before;
        t->dropped++;
        return;
    }
    t->left -= n;
    if (before == 0) t->since = now;
    if (t->held.len >= HELD_BYTES || now - t->since >= HELD_NS) write_held(t);
}

void ing_events_process(ing_events *t, int64_t pid, const char *name) {
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    size_t before = t->held.len;
    put_process(&t->held, pid ? pid : t->pid, name);
    keep(t, before, ing_os_now_ns());
    pthread_mutex_unlock(&t->lock);
}

void ing_events_span(ing_events *t, const ing_span *s) {
    if (!t) return;
    uint64_t now = ing_os_now_ns();
    int64_t tid = s->pid ? s->pid : (int64_t)syscall(SYS_gettid);
    pthread_mutex_lock(&t->lock);
    size_t before = t->held.len;
    uint64_t end = s->end ? s->end : now, dur = end > s->from ? end - s->from : 0;
    put_head(&t->held, s->what, "X", s->pid ? s->pid : t->pid, tid);
    ing_bytes_printf(&t->held, ",\"ts\":%llu.%03u,\"dur\":%llu.%03u,\"args\":{",
                     (unsigned long long)(s->from / 1000), (unsigned)(s->from % 1000),
                     (unsigned long long)(dur / 1000), (unsigned)(dur % 1000));
    if (s->label && *s->label) {
        ing_bytes_puts(&t->held, "\"kernel\":");
        put_text(&t->held, s->label);
    }
    if (s->args && *s->args) {
        if (s->label && *s->label) ing_bytes_u8(&t->held, ',');
        ing_bytes_puts(&t->held, s->args);
    }
    ing_bytes_puts(&t->held, "}}");
    keep(t, before, now);
    pthread_mutex_unlock(&t->lock);
}

uint64_t ing_events_flush(ing_events *t) {
    if (!t) return 0;
    pthread_mutex_lock(&t->lock);
    write_held(t);
    uint64_t dropped = t->dropped;
    pthread_mutex_unlock(&t->lock);
    return dropped;
}
