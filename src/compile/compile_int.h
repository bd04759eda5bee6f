/* compile, for itself: the wire between this process and its helpers (wire.c), and what its
 * files share. */
#ifndef ING_COMPILE_INT_H
#define ING_COMPILE_INT_H

#include "compile/compile.h"

#include <pthread.h>

enum { ING_WIRE_MAX = 64 << 20 }; /* bytes of a message */

typedef struct ing_wire {
    int fd;       /* a socket; -1 = none */
    uint64_t end; /* when the request under way must be answered, 0 = whenever */
    bool late;    /* it was not */
} ing_wire;

/* False: the other end is gone, or late. */
bool ing_wire_ask(ing_wire *w, const char *options, const uint8_t *body, size_t n);
/* Appends what was answered. ING_COMPILE: the other end's error. ING_DECLINED: it is gone, or
 * late, or answers with what is no reply; or there is no memory (`object` has failed). */
ing_status ing_wire_answer(ing_wire *w, ing_bytes *object, ing_err *e);
/* Reads what a server says first; false: it says nothing, or something else. */
bool ing_wire_greeted(ing_wire *w);

/* A socket to the server `name` in `folder`; -1: there is none that is to be trusted (server.c). */
int ing_server_connect(const char *folder, const char *name);

/* ---- parts.c ------------------------------------------------------------------------------- */

/* Appends one object per text, also on failure. */
ing_status ing_parts_compile(ing_helpers *h, const char *options,
                             const ing_gen_texts *texts, uint32_t threads,
                             ing_gen_texts *objects, ing_err *e);

/* ---- a line about long compiles (progress.c) ---------------------------------------------- */

typedef struct ing_progress { /* zero: nobody looks */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    const char *label; /* the kernel */
    uint64_t from;
    uint32_t done, total; /* tasks */
    bool on, over, failed;
} ing_progress;

void ing_progress_begin(ing_progress *p, const char *label);
void ing_progress_add(ing_progress *p, uint32_t done, uint32_t total);
void ing_progress_end(ing_progress *p, bool failed);

/* ---- texts for people (dump.c) ------------------------------------------------------------ */

typedef struct ing_dump {
    uint32_t what;        /* ING_DUMP_ bits */
    const char *label;    /* the kernel */
    uint32_t task, tasks; /* UINT32_MAX: it is about all of them */
    ing_bytes *out;
} ing_dump;

void ing_dump_ir(const ing_dump *d, const ing_ir_mod *m, const char *what);
ing_status ing_dump_task(ing_helpers *h, const ing_dump *d, const ing_gen_texts *texts,
                         const ing_gen_options *gen, ing_err *e);

#endif
