/* base: events. The file is a whole JSON array after each write, whoever wrote before; names
 * are escaped; past the bound events are dropped and counted; what is no trace stays. */
#include "base/base.h"
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/ingot_test_events_XXXXXX";

static void read_file(ing_bytes *b) {
    ing_bytes_init(b);
    CHECK(ing_os_read(path, 1 << 26, b, NULL) == ING_OK);
}

static void write_file(const void *p, size_t n) {
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(fd >= 0 && ing_os_write_all(fd, p, n));
    if (fd >= 0) close(fd);
}

static uint32_t count(const ing_bytes *b, const char *what) {
    uint32_t n = 0;
    for (const char *at = (const char *)b->at; at && (at = strstr(at, what)); at++) n++;
    return n;
}

/* An array with one event per line, by its brackets and commas. */
static bool is_whole(const ing_bytes *b) {
    uint32_t lines = count(b, "\n{"), ends = count(b, "}},\n") + count(b, "}}\n]\n");
    return b->len > 4 && memcmp(b->at, "[\n{", 3) == 0 && lines == ends &&
           memcmp(b->at + b->len - 5, "}}\n]\n", 5) == 0;
}

static void span(ing_events *t, const char *what, const char *label) {
    ing_span s = {.what = what, .label = label, .from = ing_os_now_ns()};
    ing_events_span(t, &s);
}

static void test_escapes(void) {
    ing_bytes b;
    ing_events *t = ing_events_new(path, 1 << 20);
    ing_events_process(t, 0, "a \"name\"");
    span(t, "one", "back\\slash\n");
    ing_events_free(t);
    read_file(&b);
    CHECK(is_whole(&b) && count(&b, "a \\\"name\\\"") == 1);
    CHECK(count(&b, "back\\\\slash\\u000a") == 1);
    ing_bytes_fini(&b);
    ing_events_span(NULL, &(ing_span){.what = "nobody listens"});
    CHECK(ing_events_now(NULL) == 0 && ing_events_flush(NULL) == 0);
}

static void *many(void *t) {
    for (int i = 0; i < 2000; i++) span(t, "work", "k");
    return NULL;
}

static void test_threads_and_fork(void) {
    write_file("", 0);
    ing_bytes b;
    pthread_t id[4];
    ing_events *t = ing_events_new(path, 1 << 24);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&id[i], NULL, many, t) == 0);
    for (int i = 0; i < 4; i++) pthread_join(id[i], NULL);
    span(t, "held by the parent", NULL);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        ing_events_after_fork(t);
        many(t);
        span(t, "of the child", NULL);
        ing_events_flush(t);
        _exit(0);
    }
    many(t);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    ing_events_free(t);
    read_file(&b);
    CHECK(is_whole(&b) && count(&b, "\"work\"") == 12000);
    CHECK(count(&b, "held by the parent") == 1 && count(&b, "of the child") == 1);
    ing_bytes_fini(&b);
}

static void test_bound(void) {
    write_file("", 0);
    ing_bytes b;
    ing_events *t = ing_events_new(path, 2000);
    for (int i = 0; i < 100; i++) span(t, "work", "k");
    uint64_t dropped = ing_events_flush(t);
    read_file(&b);
    CHECK(is_whole(&b) && b.len < 2100 && dropped > 50);
    CHECK(count(&b, "\"work\"") == 100 - dropped);
    ing_bytes_fini(&b);
    ing_events_free(t);
}

/* Cut anywhere, the next writer makes it whole again or leaves it alone. */
static void test_cut(void) {
    write_file("", 0);
    ing_bytes all, b;
    ing_events *t = ing_events_new(path, 1 << 20);
    for (int i = 0; i < 2; i++) span(t, "first", "k");
    ing_events_free(t);
    read_file(&all);
    for (size_t n = 0; n < all.len; n++) {
        write_file(all.at, n);
        t = ing_events_new(path, 1 << 20);
        span(t, "second", "k");
        ing_events_free(t);
        read_file(&b);
        bool any = n == 0 || (n >= 3 && count(&all, "}}") && b.len != n);
        CHECK(!any || is_whole(&b));
        CHECK(any || (b.len == n && memcmp(b.at, all.at, n) == 0));
        ing_bytes_fini(&b);
    }
    ing_bytes_fini(&all);
    write_file("dear diary}}", 12);
    t = ing_events_new(path, 1 << 20);
    span(t, "second", "k");
    ing_events_free(t);
    read_file(&b);
    CHECK(b.len == 12);
    ing_bytes_fini(&b);
}

int main(void) {
    int fd = mkstemp(path);
    if (fd < 0) abort();
    close(fd);
    test_escapes();
    test_threads_and_fork();
    test_bound();
    test_cut();
    unlink(path);
    return CHECK_DONE();
}
