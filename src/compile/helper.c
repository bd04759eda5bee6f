/* Helper processes: LLVM IR text in, object code out. Called by the conductor from many
 * threads without the GIL. The program is ingot/_helper.py in a Python of its own, because
 * LLVM can end the process it runs in; here nothing of LLVM is loaded. Must never block
 * while the lock is held, raise SIGPIPE, or wait for a process that is not its child.
 *
 * Closing the socket is the only way in which the parent says that it has finished: the
 * helper ends even in the middle of a compile. A helper without work ends by itself after a
 * minute; one that has not answered within the time limit is killed.
 *
 *  HELPER1 A slot is touched without the lock only by the thread that made it BUSY.
 *  HELPER2 A child is waited for by its pid only, and killed only while waitpid says that it is
 *     still ours: the host program may have reaped it, and the number be reused.
 *  HELPER4 Another process is started only when there is much to compile at once or none became free
 *     for a while: most kernels have one long task and a short one. A server's is asked for as soon as
 *     a text is long enough to be worth a fork.
 *  HELPER3 Every descriptor is close-on-exec; a helper gets its own socket and output file.
 *  HELPER6 A helper that ended itself (SIGABRT: an assertion of LLVM, most often of its vectorisers; SIGXCPU: these took far
 *     longer than the text is worth, bound_time in ingot/_helper.py) would end again: the second one is asked
 *     for plain code.
 *  HELPER5 A helper may be a server's (server.c): it is no child of ours, and ends when its socket
 *     is closed. If it dies or says nothing, a process of our own is started, as if there had been none. */
#include "compile/compile_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    CHANNEL_FD = 3, /* in the helper */
    MAX_HELPERS = 256,
    OUTPUT_SHOWN = 600, /* bytes of what a dead helper printed that reach the user */
    /* HELPER4: to start a process takes 65 ms of processor time, to compile a task of 10 KB
     * 20 to 40 ms. */
    PATIENCE_MS = 100,
    MUCH_TEXT = 200000,
    /* HELPER4: a server's fork is there after 5 ms; a text of this length takes LLVM 15. */
    FORK_TEXT = 6000,
    GREETING_MS = 1000, /* that a server has to answer a connection: it forks, 5 ms */
};

typedef enum slot_state { EMPTY, IDLE, BUSY } slot_state;

typedef struct slot {
    slot_state state;
    pid_t pid;     /* 0 = no process, or a server's */
    ing_wire wire; /* our end of the socket; no descriptor: there is no helper */
    int output;    /* file that its stdout and stderr go to, -1 = none */
    bool served;   /* by a server */
    bool silent;   /* which has not greeted yet */
} slot;

struct ing_helpers {
    pthread_mutex_t lock; /* innermost; guards state and pid of all slots */
    pthread_cond_t freed;
    char **argv;
    slot *slots;
    size_t text; /* bytes that are compiled or wait for it */
    uint32_t n, seconds;
    bool lingers;
    char *server_folder, *server_name; /* NULL: no server */
    ing_events *events;
    ing_counters *counters;
};

/* ---- life of the pool ------------------------------------------------------------------ */

static void free_argv(char **argv) {
    for (char **p = argv; p && *p; p++) ing_free(*p);
    ing_free(argv);
}

static char *copy_text(const char *text) {
    size_t size = strlen(text) + 1;
    char *out = ing_malloc(size);
    if (out) memcpy(out, text, size);
    return out;
}

static char **copy_argv(const char *const *argv) {
    size_t n = 0;
    while (argv && argv[n]) n++;
    char **out = ing_calloc(n + 1, sizeof *out);
    for (size_t i = 0; out && i < n; i++) {
        if (!(out[i] = copy_text(argv[i]))) {
            free_argv(out);
            return NULL;
        }
    }
    return out;
}

static void init_slots(ing_helpers *h) {
    pthread_condattr_t at;
    pthread_condattr_init(&at);
    pthread_condattr_setclock(&at, CLOCK_MONOTONIC);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->freed, &at);
    pthread_condattr_destroy(&at);
    h->text = 0;
    for (uint32_t i = 0; i < h->n; i++)
        h->slots[i] = (slot){.state = EMPTY, .wire = {.fd = -1}, .output = -1};
}

static void free_all(ing_helpers *h) {
    free_argv(h->argv);
    ing_free(h->slots);
    ing_free(h->server_folder);
    ing_free(h->server_name);
    ing_free(h);
}

ing_helpers *ing_helpers_new(const ing_helpers_config *c, ing_counters *counters) {
    ing_helpers *h = ing_calloc(1, sizeof *h);
    if (!h) return NULL;
    h->n = c->max ? c->max : ing_os_cpus();
    if (h->n > MAX_HELPERS) h->n = MAX_HELPERS;
    h->seconds = c->seconds;
    h->lingers = c->lingers;
    h->events = c->events;
    h->counters = counters;
    h->argv = copy_argv(c->argv);
    h->slots = ing_calloc(h->n, sizeof *h->slots);
    if (c->server_folder && c->server_name) {
        h->server_folder = copy_text(c->server_folder);
        h->server_name = copy_text(c->server_name);
    }
    if (!h->argv || !h->slots) {
        free_all(h);
        return NULL;
    }
    init_slots(h);
    return h;
}

static void close_fds(slot *s) {
    if (s->wire.fd >= 0) close(s->wire.fd);
    if (s->output >= 0) close(s->output);
    s->wire.fd = s->output = -1;
    s->served = s->silent = false;
}

/* Ends the process and collects it (HELPER2). Returns the wait status, or -1 when somebody
 * else has collected it. */
static int end_process(slot *s) {
    int status = -1;
    pid_t r = s->pid > 0 ? waitpid(s->pid, &status, WNOHANG) : -1;
    if (r == 0) {
        kill(s->pid, SIGKILL);
        do {
            r = waitpid(s->pid, &status, 0);
        } while (r < 0 && errno == EINTR);
    }
    return r > 0 ? status : -1;
}

void ing_helpers_free(ing_helpers *h) {
    if (!h) return;
    for (uint32_t i = 0; i < h->n; i++) {
        close_fds(&h->slots[i]);
        if (!h->lingers) end_process(&h->slots[i]);
    }
    pthread_cond_destroy(&h->freed);
    pthread_mutex_destroy(&h->lock);
    free_all(h);
}

/* In the child: the processes are the parent's. Its threads are gone too, and with them
 * whoever held the lock. */
void ing_helpers_after_fork(ing_helpers *h) {
    for (uint32_t i = 0; i < h->n; i++) close_fds(&h->slots[i]);
    init_slots(h);
}

static slot *find(ing_helpers *h, slot_state state) {
    for (uint32_t i = 0; i < h->n; i++)
        if (h->slots[i].state == state) return &h->slots[i];
    return NULL;
}

uint32_t ing_helpers_pids(ing_helpers *h, int32_t *pids, uint32_t max) {
    uint32_t n = 0;
    pthread_mutex_lock(&h->lock);
    for (uint32_t i = 0; i < h->n && n < max; i++)
        if (h->slots[i].pid > 0) pids[n++] = h->slots[i].pid;
    pthread_mutex_unlock(&h->lock);
    return n;
}

bool ing_helpers_any(ing_helpers *h) {
    pthread_mutex_lock(&h->lock);
    bool any = find(h, IDLE) || find(h, BUSY);
    pthread_mutex_unlock(&h->lock);
    return any;
}

/* ---- starting a process ------------------------------------------------------------------ */

/* Descriptors that must reach the helper under small numbers are first moved above
 * them, so that no dup2 overwrites the source of another. */
static int move_up(int fd) {
    int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CHANNEL_FD + 1);
    if (fd >= 0) close(fd);
    return up;
}

static int spawn(ing_helpers *h, int channel, int output, pid_t *pid) {
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t mask, defaults;
    /* Blocked from the first moment on, ignored once the helper runs: Ctrl-C in the
     * terminal is meant for the program. */
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGTERM);
    if (posix_spawn_file_actions_init(&fa)) return ENOMEM;
    if (posix_spawnattr_init(&at)) {
        posix_spawn_file_actions_destroy(&fa);
        return ENOMEM;
    }
    int rc = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 1; !rc && fd <= 2; fd++)
        rc = output >= 0
                 ? posix_spawn_file_actions_adddup2(&fa, output, fd)
                 : posix_spawn_file_actions_addopen(&fa, fd, "/dev/null", O_WRONLY, 0);
    if (!rc) rc = posix_spawn_file_actions_adddup2(&fa, channel, CHANNEL_FD);
    if (!rc) rc = posix_spawnattr_setsigmask(&at, &mask);
    if (!rc) rc = posix_spawnattr_setsigdefault(&at, &defaults);
    if (!rc)
        rc = posix_spawnattr_setflags(&at,
                                      POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!rc) rc = posix_spawnp(pid, h->argv[0], &fa, &at, h->argv, environ);
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    return rc;
}

/* Puts a new process into a BUSY slot. */
static ing_status start(ing_helpers *h, slot *s, ing_err *e) {
    int pair[2] = {-1, -1};
    pid_t pid = 0;
    if (!h->argv[0])
        return ing_fail(
            e, ING_COMPILE,
            "no Python interpreter to run the compiler in: set INGOT_HELPER_PYTHON to "
            "the path of one that has llvmlite");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return ing_fail(e, ING_COMPILE, "cannot start the compiler: %s",
                        strerror(errno));
    int output = memfd_create("ingot-helper", MFD_CLOEXEC);
    if (output >= 0) output = move_up(output);
    if (output >= 0) fcntl(output, F_SETFL, O_APPEND);
    pair[1] = move_up(pair[1]);
    int rc = pair[1] < 0 ? errno : spawn(h, pair[1], output, &pid);
    if (pair[1] >= 0) close(pair[1]);
    if (rc) {
        close(pair[0]);
        if (output >= 0) close(output);
        return ing_fail(e, ING_COMPILE, "cannot start the compiler (%s): %s",
                        h->argv[0], strerror(rc));
    }
    s->wire.fd = pair[0];
    s->output = output;
    pthread_mutex_lock(&h->lock);
    s->pid = pid;
    pthread_mutex_unlock(&h->lock);
    if (h->counters) ing_count(h->counters, ING_COUNT_HELPERS_STARTED);
    ing_events_process(h->events, pid, "ingot helper");
    return ING_OK;
}

/* HELPER5 */
static bool connect_served(ing_helpers *h, slot *s) {
    if (!h->server_folder || !h->server_name) return false;
    int fd = ing_server_connect(h->server_folder, h->server_name);
    if (fd < 0) return false;
    s->wire.fd = fd;
    s->served = s->silent = true;
    if (h->counters) ing_count(h->counters, ING_COUNT_HELPERS_SERVED);
    return true;
}

/* ---- taking a slot ------------------------------------------------------------------------- */

/* An idle helper says nothing once it has greeted; anything readable is the end of it. */
static bool still_there(const slot *s) {
    if (s->silent) return true;
    struct pollfd p = {.fd = s->wire.fd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* Ends what is in a BUSY slot and leaves it without a process; returns the wait status. */
static int drop(ing_helpers *h, slot *s) {
    close_fds(s);
    pthread_mutex_lock(&h->lock);
    slot gone = *s;
    s->pid = 0;
    pthread_mutex_unlock(&h->lock);
    return end_process(&gone);
}

static struct timespec soon(void) {
    uint64_t at = ing_os_now_ns() + (uint64_t)PATIENCE_MS * 1000000;
    return (struct timespec){.tv_sec = (time_t)(at / 1000000000),
                             .tv_nsec = (long)(at % 1000000000)};
}

/* Makes an EMPTY slot a BUSY one with a server's helper; false leaves it EMPTY. The lock is held,
 * but not while the server is asked. */
static bool fill_from_server(ing_helpers *h, slot *s) {
    s->state = BUSY;
    pthread_mutex_unlock(&h->lock);
    bool served = connect_served(h, s);
    pthread_mutex_lock(&h->lock);
    if (!served) s->state = EMPTY;
    return served;
}

/* A BUSY slot, with a live process or none, for `n` bytes; waits while all are busy (HELPER4). */
static slot *take(ing_helpers *h, size_t n) {
    slot *s;
    struct timespec end = soon();
    pthread_mutex_lock(&h->lock);
    h->text += n;
    bool now = h->lingers, fork = n >= FORK_TEXT;
    while (!(s = find(h, IDLE))) {
        s = find(h, EMPTY);
        if (s && (now || h->text > MUCH_TEXT || !find(h, BUSY))) break;
        if (s && fork) {
            if (fill_from_server(h, s)) break;
            fork = false;
        } else if (s)
            now = pthread_cond_timedwait(&h->freed, &h->lock, &end) == ETIMEDOUT;
        else
            pthread_cond_wait(&h->freed, &h->lock);
    }
    s->state = BUSY;
    pthread_mutex_unlock(&h->lock);
    if (s->wire.fd >= 0 && !still_there(s)) drop(h, s); /* it ended for lack of work */
    return s;
}

static void give_back(ing_helpers *h, slot *s, size_t n) {
    pthread_mutex_lock(&h->lock);
    h->text -= n;
    s->state = s->wire.fd >= 0 ? IDLE : EMPTY;
    pthread_cond_signal(&h->freed);
    pthread_mutex_unlock(&h->lock);
}

/* ---- what the user reads about a helper that died ----------------------------------------------- */

/* The end of what it printed, as one piece of text; "" when there is nothing. */
static void read_output(int fd, char out[OUTPUT_SHOWN + 1]) {
    out[0] = 0;
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    if (size <= 0) return;
    off_t from = size > OUTPUT_SHOWN ? size - OUTPUT_SHOWN : 0;
    ssize_t n = pread(fd, out, OUTPUT_SHOWN, from);
    if (n < 0) n = 0;
    while (n > 0 && (unsigned char)out[n - 1] <= ' ') n--;
    out[n] = 0;
    for (ssize_t i = 0; i < n; i++)
        if ((unsigned char)out[i] < ' ' && out[i] != '\n') out[i] = ' ';
}

static void describe(int status, char *out, size_t n) {
    if (status == -1)
        snprintf(out, n, "ended");
    else if (WIFSIGNALED(status))
        snprintf(out, n, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, n, "exited with status %d", WEXITSTATUS(status));
}

/* Waits a moment for a process that has closed its socket, so that its own status is
 * reported and not our SIGKILL. */
static void let_it_end(const slot *s) {
    siginfo_t info;
    for (int ms = 0; ms < 2000; ms += 5) {
        info.si_pid = 0;
        int r = waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if (r < 0 || info.si_pid != 0) return;
        poll(NULL, 0, 5);
    }
}

static ing_status report_late(ing_helpers *h, slot *s, ing_err *e) {
    drop(h, s);
    return ing_fail(
        e, ING_COMPILE,
        "compiling this kernel took more than %u seconds and was given up"
        "\nhelp: make the kernel smaller (fewer unrolled qd.static loops), or "
        "set INGOT_COMPILE_TIMEOUT to more seconds (0 = no limit)",
        h->seconds);
}

static ing_status report_death(ing_helpers *h, slot *s, ing_err *e) {
    char how[96], printed[OUTPUT_SHOWN + 1];
    if (s->wire.late) return report_late(h, s, e);
    let_it_end(s);
    read_output(s->output, printed);
    describe(drop(h, s), how, sizeof how);
    return ing_fail(e, ING_COMPILE,
                    "the compiler process %s while compiling this kernel%s%s", how,
                    printed[0] ? "; it printed:\n" : "", printed);
}

/* ---- compile ------------------------------------------------------------------------------------- */

void ing_helpers_prepare(ing_helpers *h) {
    ing_err ignored; /* whoever compiles meets it again */
    pthread_mutex_lock(&h->lock);
    slot *s = find(h, IDLE) || find(h, BUSY) ? NULL : &h->slots[0];
    if (s) s->state = BUSY;
    pthread_mutex_unlock(&h->lock);
    if (!s) return;
    ing_err_init(&ignored);
    if (!connect_served(h, s)) (void)start(h, s, &ignored);
    ing_err_fini(&ignored);
    give_back(h, s, 0);
}

/* False: the server's time to greet is over, or it hung up. */
static bool greeted(slot *s) {
    if (!s->silent) return true;
    uint64_t end = s->wire.end,
             soonest = ing_os_now_ns() + GREETING_MS * (uint64_t)1000000;
    if (!end || soonest < end) s->wire.end = soonest;
    s->silent = !ing_wire_greeted(&s->wire);
    s->wire.end = end;
    s->wire.late = false;
    return !s->silent;
}

typedef struct request {
    const char *options;
    const uint8_t *ir;
    size_t n;
    bool alone; /* no server is asked */
} request;

static ing_status attempt(ing_helpers *h, slot *s, const request *q, ing_bytes *object,
                          ing_err *e) {
    if (s->wire.fd < 0 && (q->alone || !connect_served(h, s))) ING_TRY(start(h, s, e));
    s->wire.late = false;
    s->wire.end = h->seconds ? ing_os_now_ns() + h->seconds * (uint64_t)1000000000 : 0;
    ing_span span = {.what = "llvm", .from = ing_events_now(h->events), .pid = s->pid};
    if (!greeted(s) || !ing_wire_ask(&s->wire, q->options, q->ir, q->n))
        return ING_DECLINED;
    ing_status r = ing_wire_answer(&s->wire, object, e);
    ing_events_span(h->events, &span);
    return r;
}

/* HELPER6 */
static bool ended_itself(int how) {
    int sign = how != -1 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    return sign == SIGABRT || sign == SIGXCPU;
}

/* If a helper dies, once more in a fresh one; a server's does not count (HELPER5). `plain`: the
 * options then, if it was LLVM that ended it (HELPER6). */
static ing_status attempts(ing_helpers *h, slot *s, request *q, const char *plain,
                           ing_bytes *object, ing_err *e) {
    size_t keep = object->len;
    for (bool died = false;;) {
        ing_status r = attempt(h, s, q, object, e);
        if (r != ING_DECLINED) return r;
        object->len = keep;
        if (object->failed || s->wire.late || h->lingers || died) return r;
        died = !s->served;
        if (died && h->counters) ing_count(h->counters, ING_COUNT_HELPER_RETRIES);
        q->alone = true;
        if (died) let_it_end(s);
        int how = drop(h, s);
        if (died && ended_itself(how)) q->options = plain;
    }
}

ing_status ing_helpers_compile(ing_helpers *h, const char *options, const uint8_t *ir,
                               size_t n, ing_bytes *object, ing_err *e) {
    if (n > ING_WIRE_MAX || strlen(options) + sizeof " plain=1" > ING_WIRE_MAX - n)
        return ing_fail(e, ING_COMPILE,
                        "kernel too large: %zu bytes of code to compile", n);
    ing_bytes plain;
    ing_bytes_init(&plain);
    ing_bytes_printf(&plain, "%s plain=1", options);
    slot *s = take(h, n);
    request q = {.options = options, .ir = ir, .n = n};
    ing_status r =
        attempts(h, s, &q, plain.failed ? options : (const char *)plain.at, object, e);
    if (r == ING_DECLINED) {
        r = object->failed ? ing_fail(e, ING_MEMORY, "no memory for the compiled code")
                           : report_death(h, s, e);
        if (s->wire.fd >= 0) drop(h, s);
    }
    give_back(h, s, n);
    ing_bytes_fini(&plain);
    return r;
}
