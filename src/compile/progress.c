/* A line about a compile that takes long: which kernel, how many of its tasks are done. It is written
 * to the standard error stream if that is a terminal, after two seconds and then each second, over
 * itself; the last one says what it took. Called by engine.c, without the GIL; a thread of its own
 * waits, for compiles that end soon it writes nothing. A compile never fails by it. */
#include "compile/compile_int.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_S = 2, EVERY_S = 1, SECOND_NS = 1000000000 };

/* The line is short of a terminal's 80 columns, so that it can be written over. */
static void tell(const ing_progress *p, bool over) {
    char line[160];
    double s = (double)(ing_os_now_ns() - p->from) / SECOND_NS;
    int n;
    if (over)
        n = snprintf(line, sizeof line, "\r\033[Kingot: %s %.40s %s %.1f s\n",
                     p->failed ? "gave up on" : "compiled", p->label,
                     p->failed ? "after" : "in", s);
    else if (p->total)
        n = snprintf(line, sizeof line,
                     "\r\033[Kingot: compiling %.40s: %u of %u tasks done, %.0f s",
                     p->label, p->done, p->total, s);
    else
        n = snprintf(line, sizeof line, "\r\033[Kingot: compiling %.40s: %.0f s",
                     p->label, s);
    while (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0 && errno == EINTR) {}
}

static void *watch(void *arg) {
    ing_progress *p = arg;
    struct timespec at;
    bool told = false;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += FIRST_S;
    pthread_mutex_lock(&p->lock);
    while (!p->over) {
        if (pthread_cond_timedwait(&p->ended, &p->lock, &at) != ETIMEDOUT) continue;
        tell(p, false);
        told = true;
        at.tv_sec += EVERY_S;
    }
    if (told) tell(p, true);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void ing_progress_begin(ing_progress *p, const char *label) {
    pthread_condattr_t attr;
    if (!isatty(STDERR_FILENO)) return;
    *p = (ing_progress){.label = label, .from = ing_os_now_ns()};
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->ended, &attr);
    pthread_condattr_destroy(&attr);
    p->on = pthread_create(&p->thread, NULL, watch, p) == 0;
    if (p->on) return;
    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
}

void ing_progress_add(ing_progress *p, uint32_t done, uint32_t total) {
    if (!p->on) return;
    pthread_mutex_lock(&p->lock);
    p->done += done;
    p->total += total;
    pthread_mutex_unlock(&p->lock);
}

void ing_progress_end(ing_progress *p, bool failed) {
    if (!p->on) return;
    pthread_mutex_lock(&p->lock);
    p->over = true;
    p->failed = failed;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    p->on = false;
}
