/* Helper processes: that they compile, are shared and waited for, and that every way of
 * dying gives a clear error and leaves the pool usable. */
#include "check.h"
#include "compile/compile.h"
#include "helper_argv.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char options[] =
    "triple=x86_64-unknown-linux-gnu level=2 cpu=x86-64-v2 fast=1";
static const char small_ir[] =
    "define i32 @ing_task(ptr %c, i64 %b, i64 %e, i64 %k) {\n"
    "  ret i32 0\n}\n";

static void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static ing_status compile_text(ing_helpers *h, const char *ir, char *message,
                               size_t size) {
    ing_bytes out;
    ing_err e;
    ing_bytes_init(&out);
    ing_err_init(&e);
    ing_status s =
        ing_helpers_compile(h, options, (const uint8_t *)ir, strlen(ir), &out, &e);
    /* no CHECK here: this runs in several threads */
    if (s == ING_OK && (out.len <= 64 || memcmp(out.at, "\177ELF", 4) != 0))
        s = ING_FORMAT;
    if (message) snprintf(message, size, "%s", e.text ? e.text : "");
    ing_err_fini(&e);
    ing_bytes_fini(&out);
    return s;
}

/* Several seconds of work for LLVM: functions that cannot be thrown away. */
static char *large_ir(void) {
    ing_bytes b;
    ing_bytes_init(&b);
    for (int f = 0; f < 400; f++) {
        ing_bytes_printf(
            &b,
            "define void @f%d(ptr %%p, i64 %%n) {\nentry:\n  br label %%l\nl:\n"
            "  %%i = phi i64 [ 0, %%entry ], [ %%j, %%l ]\n"
            "  %%q = getelementptr float, ptr %%p, i64 %%i\n"
            "  %%x0 = load float, ptr %%q\n",
            f);
        for (int k = 1; k < 40; k++)
            ing_bytes_printf(&b, "  %%x%d = fmul float %%x%d, %d.0\n", k, k - 1, k + f);
        ing_bytes_puts(
            &b, "  store float %x39, ptr %q\n  %j = add i64 %i, 1\n"
                "  %c = icmp slt i64 %j, %n\n  br i1 %c, label %l, label %x\nx:\n"
                "  ret void\n}\n");
    }
    return ing_bytes_take(&b);
}

static ing_helpers *pool(const char *const *argv, uint32_t max, ing_counters *c) {
    ing_helpers_config config = {.argv = argv, .max = max};
    memset(c, 0, sizeof *c);
    ing_helpers *h = ing_helpers_new(&config, c);
    CHECK(h != NULL);
    return h;
}

/* ---- programs that are no helpers --------------------------------------------------------- */

static void dies_once(const char *script, char *message, size_t n) {
    const char *argv[] = {"sh", "-c", script, NULL};
    ing_counters c;
    ing_helpers *h = pool(argv, 1, &c);
    CHECK(compile_text(h, small_ir, message, n) == ING_COMPILE);
    CHECK(c.at[ING_COUNT_HELPERS_STARTED] == 2 && c.at[ING_COUNT_HELPER_RETRIES] == 1);
    ing_helpers_free(h);
}

static void dies(const char *script, const char *want) {
    const char *argv[] = {"sh", "-c", script, NULL};
    ing_counters c;
    char message[1024];
    ing_helpers *h = pool(argv, 2, &c);
    for (int round = 0; round < 2; round++) {
        CHECK(compile_text(h, small_ir, message, sizeof message) == ING_COMPILE);
        if (!strstr(message, want)) fprintf(stderr, "message: %s\n", message);
        CHECK(strstr(message, want) != NULL);
        CHECK(c.at[ING_COUNT_HELPERS_STARTED] == (uint64_t)(2 * round + 2));
        CHECK(c.at[ING_COUNT_HELPER_RETRIES] == (uint64_t)(round + 1));
        int32_t pids[2];
        CHECK(ing_helpers_pids(h, pids, 2) == 0);
    }
    ing_helpers_free(h);
}

static void test_deaths(void) {
    dies("exit 7", "exited with status 7");
    dies("kill -KILL $$", "killed by signal 9");
    dies("echo out of luck >&2; exit 1", "it printed:\nout of luck");
    dies("echo 0123456789abcdefXXXX >&3; exit 0", "exited with status 0");
    /* a proper header, then a size of 4 GiB */
    dies("printf 'INGH\\001\\000\\002\\000\\000\\000\\000\\000\\377\\377\\377\\377' "
         ">&3; sleep 5",
         "killed by signal");
    dies("printf 'INGH\\001\\000\\002\\000\\000\\000\\000\\000\\020\\000\\000\\000abc' "
         ">&3",
         "exited with status 0");
}

/* HELPER6: one that aborted or took too long is asked again in other words, one that was killed in the same. */
static void test_plain_after_abort(void) {
    static const char *const signs[] = {"KILL", "ABRT", "XCPU"};
    for (int aborts = 0; aborts < 3; aborts++) {
        char folder[] = "/tmp/ingot-plain-XXXXXX", script[512], asked[96], message[256];
        CHECK(mkdtemp(folder) != NULL);
        snprintf(script, sizeof script,
                 "cd %s; if [ -e once ]; then head -c 90 <&3 >asked; exit 7; fi; "
                 ": >once; head -c 90 <&3 >first; kill -%s $$",
                 folder, signs[aborts]);
        dies_once(script, message, sizeof message);
        CHECK(strstr(message, "exited with status 7") != NULL);
        snprintf(script, sizeof script, "%s/asked", folder);
        FILE *f = fopen(script, "rb");
        size_t n = f ? fread(asked, 1, sizeof asked, f) : 0;
        CHECK(n == 90 && (memmem(asked, n, "plain=1", 7) != NULL) == (aborts > 0));
        if (f) fclose(f);
        static const char *const files[] = {"once", "asked", "first"};
        for (size_t i = 0; i < 3; i++) {
            snprintf(script, sizeof script, "%s/%s", folder, files[i]);
            unlink(script);
        }
        CHECK(rmdir(folder) == 0);
    }
}

static void test_no_program(void) {
    const char *missing[] = {"/nonexistent/python", "-I", NULL}, *none[] = {NULL};
    ing_counters c;
    char message[512];
    ing_helpers *h = pool(missing, 1, &c);
    CHECK(compile_text(h, small_ir, message, sizeof message) == ING_COMPILE);
    CHECK(strstr(message, "cannot start the compiler (/nonexistent/python)") != NULL);
    ing_helpers_free(h);
    h = pool(none, 1, &c);
    CHECK(compile_text(h, small_ir, message, sizeof message) == ING_COMPILE);
    CHECK(strstr(message, "INGOT_HELPER_PYTHON") != NULL);
    ing_helpers_free(h);
}

static void test_error_answer(void) {
    const char *argv[] = {
        "sh", "-c",
        "printf 'INGH\\001\\000\\003\\000\\000\\000\\000\\000\\003\\000\\000\\000"
        "no!' >&3; sleep 60",
        NULL};
    ing_counters c;
    char message[64];
    ing_helpers *h = pool(argv, 1, &c);
    CHECK(compile_text(h, small_ir, message, sizeof message) == ING_COMPILE);
    CHECK_STR(message, "no!");
    CHECK(c.at[ING_COUNT_HELPERS_STARTED] == 1);
    ing_helpers_free(h); /* ends it although it sleeps */
}

/* A compile that never ends: given up after the time limit, without a second try; the next
 * request gets a helper of its own. Once the answer never comes, once half of it does, once
 * the request is never read. */
static void hangs(const char *script, size_t n) {
    const char *argv[] = {"sh", "-c", script, NULL};
    ing_helpers_config config = {.argv = argv, .max = 1, .seconds = 1};
    ing_counters c = {0};
    ing_helpers *h = ing_helpers_new(&config, &c);
    char *ir = ing_calloc(n + 1, 1), message[256];
    CHECK(h != NULL && ir != NULL);
    memset(ir, ';', n);
    for (uint64_t round = 1; round <= 2; round++) {
        CHECK(compile_text(h, ir, message, sizeof message) == ING_COMPILE);
        CHECK(strstr(message, "took more than 1 seconds") != NULL);
        CHECK(strstr(message, "INGOT_COMPILE_TIMEOUT") != NULL);
        CHECK(c.at[ING_COUNT_HELPERS_STARTED] == round);
        CHECK(c.at[ING_COUNT_HELPER_RETRIES] == 0);
        int32_t pid;
        CHECK(ing_helpers_pids(h, &pid, 1) == 0);
    }
    ing_free(ir);
    ing_helpers_free(h);
}

static void test_hangs(void) {
    hangs("exec sleep 60", 100);
    hangs("printf 'INGH\\001\\000\\002' >&3; exec sleep 60", 100);
    hangs("exec sleep 60", 8 << 20);
}

/* ---- the real one -------------------------------------------------------------------------- */

typedef struct job {
    pthread_t thread;
    ing_helpers *h;
    const char *ir;
    ing_status status;
    char message[1024];
    int done;
} job;

static void *run_job(void *p) {
    job *j = p;
    j->status = compile_text(j->h, j->ir, j->message, sizeof j->message);
    __atomic_store_n(&j->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void test_compiles(const char *const *argv) {
    ing_counters c;
    char message[1024];
    ing_helpers *h = pool(argv, 2, &c);
    CHECK(compile_text(h, small_ir, message, sizeof message) == ING_OK);
    int32_t pids[4], again[4];
    CHECK(ing_helpers_pids(h, pids, 4) == 1);
    CHECK(kill(pids[0], SIGINT) == 0); /* Ctrl-C is not for helpers */
    CHECK(compile_text(h, "define i32 @x( {", message, sizeof message) == ING_COMPILE);
    CHECK(strstr(message, "LLVM refused the code") != NULL);
    CHECK(compile_text(h, small_ir, message, sizeof message) == ING_OK);
    CHECK(ing_helpers_pids(h, again, 4) == 1 && again[0] == pids[0]);
    CHECK(c.at[ING_COUNT_HELPERS_STARTED] == 1 && c.at[ING_COUNT_HELPER_RETRIES] == 0);
    /* killed while idle: nobody notices */
    CHECK(kill(pids[0], SIGKILL) == 0);
    sleep_ms(50);
    CHECK(compile_text(h, small_ir, message, sizeof message) == ING_OK);
    CHECK(c.at[ING_COUNT_HELPERS_STARTED] == 2 && c.at[ING_COUNT_HELPER_RETRIES] == 0);
    ing_helpers_free(h);
}

static void test_waiting(const char *const *argv) {
    enum { N = 6 };
    ing_counters c;
    job jobs[N] = {0};
    ing_helpers *h = pool(argv, 1, &c);
    for (int i = 0; i < N; i++) {
        jobs[i].h = h;
        jobs[i].ir = small_ir;
        CHECK(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]) == 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(jobs[i].thread, NULL);
        CHECK(jobs[i].status == ING_OK);
    }
    CHECK(c.at[ING_COUNT_HELPERS_STARTED] == 1);
    ing_helpers_free(h);
}

/* Kills up to `times` helpers that `j` uses, each once it has had `ms` to begin. */
static int kill_helpers(job *j, int times, long ms) {
    int32_t pid = 0, last = 0;
    int killed = 0;
    while (killed < times && !__atomic_load_n(&j->done, __ATOMIC_ACQUIRE)) {
        if (ing_helpers_pids(j->h, &pid, 1) == 1 && pid != last) {
            sleep_ms(ms);
            kill(pid, SIGKILL);
            last = pid;
            killed++;
        }
        sleep_ms(2);
    }
    return killed;
}

static void test_killed(const char *const *argv, const char *large) {
    ing_counters c;
    job j = {.h = pool(argv, 1, &c), .ir = large};
    CHECK(pthread_create(&j.thread, NULL, run_job, &j) == 0);
    CHECK(kill_helpers(&j, 1, 400) == 1);
    pthread_join(j.thread, NULL);
    CHECK(j.status == ING_OK); /* by the second helper */
    CHECK(c.at[ING_COUNT_HELPER_RETRIES] == 1 && c.at[ING_COUNT_HELPERS_STARTED] == 2);
    ing_helpers_free(j.h);

    job k = {.h = pool(argv, 1, &c), .ir = large};
    CHECK(pthread_create(&k.thread, NULL, run_job, &k) == 0);
    CHECK(kill_helpers(&k, 2, 200) == 2);
    pthread_join(k.thread, NULL);
    CHECK(k.status == ING_COMPILE);
    CHECK(strstr(k.message, "killed by signal 9") != NULL);
    CHECK(compile_text(k.h, small_ir, NULL, 0) == ING_OK); /* the next one works */
    ing_helpers_free(k.h);
}

static void test_fork(const char *const *argv) {
    ing_counters c;
    ing_helpers *h = pool(argv, 1, &c);
    CHECK(compile_text(h, small_ir, NULL, 0) == ING_OK);
    int32_t mine, childs;
    CHECK(ing_helpers_pids(h, &mine, 1) == 1);
    pid_t pid = fork();
    if (pid == 0) {
        ing_helpers_after_fork(h);
        bool ok = ing_helpers_pids(h, &childs, 1) == 0 &&
                  compile_text(h, small_ir, NULL, 0) == ING_OK &&
                  ing_helpers_pids(h, &childs, 1) == 1 && childs != mine;
        ing_helpers_free(h);
        _exit(ok && check_failed == 0 ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(compile_text(h, small_ir, NULL, 0) == ING_OK);
    CHECK(ing_helpers_pids(h, &childs, 1) == 1 && childs == mine);
    ing_helpers_free(h);
}

static bool is_running(int32_t pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    char *state = got ? strrchr(line, ')') : NULL;
    return state && state[2] != 'Z';
}

/* A helper whose parent is gone must end, in the middle of a compile too. */
static void test_orphan(const char *const *argv, const char *large) {
    int fds[2];
    CHECK(pipe(fds) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        ing_counters c;
        int32_t helper = 0;
        job j = {.h = pool(argv, 1, &c), .ir = large};
        if (pthread_create(&j.thread, NULL, run_job, &j)) _exit(1);
        while (ing_helpers_pids(j.h, &helper, 1) == 0) sleep_ms(5);
        sleep_ms(500);
        if (write(fds[1], &helper, sizeof helper) != sizeof helper) _exit(1);
        _exit(__atomic_load_n(&j.done, __ATOMIC_ACQUIRE));
    }
    int32_t helper = 0;
    int status = -1;
    CHECK(read(fds[0], &helper, sizeof helper) == sizeof helper);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    for (int i = 0; i < 1000 && is_running(helper); i++) sleep_ms(5);
    CHECK(!is_running(helper));
    close(fds[0]);
    close(fds[1]);
}

static void test_no_llvmlite(const helper_command *cmd) {
    const char *argv[] = {cmd->argv[0], "-I",         "-S", "-c",
                          cmd->argv[3], cmd->argv[4], NULL};
    ing_counters c;
    char message[256];
    ing_helpers *h = pool(argv, 1, &c);
    CHECK(compile_text(h, small_ir, message, sizeof message) == ING_COMPILE);
    CHECK_STR(message, "compiling needs llvmlite: pip install llvmlite");
    CHECK(c.at[ING_COUNT_HELPERS_STARTED] == 1);
    ing_helpers_free(h);
}

/* ---- a server ------------------------------------------------------------------------------ */

typedef struct fake { /* accepts connections and says one thing */
    int listener;
    const char *says;
    size_t n;
} fake;

static void *fake_server(void *p) {
    fake *f = p;
    char request[4096];
    for (int c; (c = accept(f->listener, NULL, NULL)) >= 0; close(c)) {
        if (f->n) (void)!write(c, f->says, f->n);
        if (f->n > 16) (void)!read(c, request, sizeof request);
        if (f->n > 16) sleep_ms(50);
    }
    return NULL;
}

/* Compiles with a server in the folder and a program that only dies. */
static ing_status served(const char *folder, ing_counters *c, char *message, size_t n) {
    const char *argv[] = {"sh", "-c", "exit 7", NULL};
    ing_helpers_config config = {
        .argv = argv, .max = 1, .server_folder = folder, .server_name = "s"};
    memset(c, 0, sizeof *c);
    ing_helpers *h = ing_helpers_new(&config, c);
    CHECK(h != NULL && !ing_helpers_any(h));
    ing_helpers_prepare(h);
    CHECK(ing_helpers_any(h));
    ing_status s = compile_text(h, small_ir, message, n);
    ing_helpers_free(h);
    return s;
}

static void expect_served(const char *folder, const char *want, uint64_t connections,
                          uint64_t started) {
    ing_counters c;
    char message[512];
    CHECK(served(folder, &c, message, sizeof message) == ING_COMPILE);
    if (!strstr(message, want)) fprintf(stderr, "message: %s\n", message);
    CHECK(strstr(message, want) != NULL);
    CHECK(c.at[ING_COUNT_HELPERS_SERVED] == connections);
    /* one that died before it was asked is replaced without a word */
    CHECK(c.at[ING_COUNT_HELPERS_STARTED] >= started);
    CHECK(started || c.at[ING_COUNT_HELPERS_STARTED] == 0);
}

#define READY   "INGH\1\0\4\0\0\0\0\0\0\0\0\0"
#define REFUSES "INGH\1\0\3\0\0\0\0\0\3\0\0\0no!"

static void test_server(void) {
    char folder[] = "/tmp/ingot-test-XXXXXX", name[64];
    CHECK(mkdtemp(folder) != NULL && chmod(folder, 0700) == 0);
    snprintf(name, sizeof name, "%s/s", folder);
    expect_served(folder, "exited with status 7", 0, 2); /* nobody there */
    expect_served("/nonexistent", "exited with status 7", 0, 2);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", name);
    fake f = {.listener = socket(AF_UNIX, SOCK_STREAM, 0)};
    CHECK(bind(f.listener, (const struct sockaddr *)&at, sizeof at) == 0);
    CHECK(listen(f.listener, 8) == 0);
    pthread_t id;
    CHECK(pthread_create(&id, NULL, fake_server, &f) == 0);
    expect_served(folder, "exited with status 7", 1, 2); /* hangs up */
    f = (fake){f.listener, REFUSES, 19};                 /* no greeting */
    expect_served(folder, "exited with status 7", 1, 2);
    f = (fake){f.listener, READY, 16}; /* greets, then hangs up */
    expect_served(folder, "exited with status 7", 1, 2);
    f = (fake){f.listener, READY REFUSES, 35};
    expect_served(folder, "no!", 1, 0);
    CHECK(chmod(folder, 0750) == 0);
    expect_served(folder, "exited with status 7", 0, 2);
    shutdown(f.listener, SHUT_RDWR);
    pthread_join(id, NULL);
    close(f.listener);
    unlink(name);
    rmdir(folder);
}

int main(void) {
    test_server();
    test_deaths();
    test_plain_after_abort();
    test_no_program();
    test_error_answer();
    test_hangs();
    static helper_command cmd;
    if (helper_command_get(&cmd)) {
        char *large = large_ir();
        test_compiles(cmd.argv);
        test_waiting(cmd.argv);
        test_killed(cmd.argv, large);
        test_fork(cmd.argv);
        test_orphan(cmd.argv, large);
        test_no_llvmlite(&cmd);
        ing_free(large);
    }
    return CHECK_DONE();
}
