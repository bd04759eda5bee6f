/* compile: the conductor. front -> pass -> gen -> link -> publish, with helper processes
 * for LLVM and single flight per image. Called from src/py with the GIL held only for
 * lowering (R15). */
#ifndef ING_COMPILE_H
#define ING_COMPILE_H

#include "base/base.h"
#include "compile/target.h"
#include "front/front.h"
#include "gate/gate.h"
#include "image/image.h"
#include "ir/ir.h"
#include "record/record.h"
#include "store/store.h"

/* ---- helper processes (helper.c): LLVM IR text in, object bytes out -------------------- */

typedef struct ing_helpers ing_helpers;

typedef struct ing_helpers_config { /* strings are copied */
    const char *const
        *argv;          /* program to start, NULL-terminated; see ingot/_helper.py */
    uint32_t max;       /* processes at most */
    uint32_t seconds;   /* that one compile may take, 0 = no limit */
    ing_events *events; /* NULL: nobody listens; outlives the helpers */
    /* One try, and the process ends by itself some time after its socket is closed; else a
     * helper that dies is replaced once, and killed with the pool. */
    bool lingers;
    /* The server to ask before a process is started (server.c); NULL: none. */
    const char *server_folder, *server_name;
} ing_helpers_config;

ing_helpers *ing_helpers_new(const ing_helpers_config *c, ing_counters *counters);
void ing_helpers_free(ing_helpers *h); /* ends the processes */
void ing_helpers_after_fork(ing_helpers *h);
/* Compiles on a free helper, starting one if needed, waiting if all are busy. Safe from many
 * threads. A helper that dies: one retry in a fresh one, then ING_COMPILE; one that
 * is late is killed: ING_COMPILE. `options` is a
 * short text line (level=2 cpu=x86-64-v3 fast=1 ...) that the helper understands. */
ing_status ing_helpers_compile(ing_helpers *h, const char *options, const uint8_t *ir,
                               size_t n, ing_bytes *object, ing_err *e);
/* Starts a helper if there is none, without waiting for it: a compile is about to come. */
void ing_helpers_prepare(ing_helpers *h);
/* Whether there is one. */
bool ing_helpers_any(ing_helpers *h);
/* Pids of live helpers, those of a server left out, for tests; returns how many. */
uint32_t ing_helpers_pids(ing_helpers *h, int32_t *pids, uint32_t max);

/* ---- the remote layer (remote.c) --------------------------------------------------------- */

typedef struct ing_remote ing_remote;
enum { ING_REMOTE_TROUBLE = 400 };

typedef struct ing_remote_config { /* see setup() in ingot/_remote.py */
    const char *const *argv;
    uint32_t patience_ms; /* of one request */
    bool writes;
} ing_remote_config;

ing_remote *ing_remote_new(const ing_remote_config *c, ing_counters *counters);
void ing_remote_free(ing_remote *r);
void ing_remote_after_fork(ing_remote *r);
/* For ing_store_set_remote; valid as long as the remote is. */
ing_store_remote ing_remote_face(ing_remote *r);
/* Whether it was turned off since the last call, and why. */
bool ing_remote_trouble(ing_remote *r, char out[ING_REMOTE_TROUBLE]);

/* ---- the engine: what one process shares ---------------------------------------------- */

typedef struct ing_engine ing_engine;

/* What a process has of a record's tasks: the code. The record must outlive it, in its
 * place. */
typedef struct ing_code {
    const ing_record *record;
    ing_image **images; /* of each task, referenced; NULL when interpreted */
    ing_ir_mod
        *mod; /* kept when interpreted, else NULL; as lowered it has no tasks, and
                           the record has one that stands for the whole kernel */
} ing_code;

/* `revision`: the back-end revision (R10), copied. */
ing_engine *ing_engine_new(const char *revision, ing_counters *counters);
void ing_engine_free(ing_engine *g);
/* That it compiles for; the target has code. */
const char *ing_engine_isa_level(ing_engine *g, const ing_target *t);
/* Both take what they are given (`store` NULL = no disk) and wait until nobody uses the
 * previous one. */
void ing_engine_set_helpers(ing_engine *g, ing_helpers *helpers);
void ing_engine_set_store(ing_engine *g, ing_store *store);
/* Before anything is built; NULL = nobody listens. Outlives the engine. */
void ing_engine_set_events(ing_engine *g, ing_events *events);
void ing_engine_before_fork(ing_engine *g);
void ing_engine_parent_after_fork(ing_engine *g);
void ing_engine_after_fork(ing_engine *g); /* in the child */

/* Kernels will be compiled for it: starts a helper while the front end works, unless other
 * processes compile what this one needs. */
void ing_engine_prepare(ing_engine *g, const ing_target *t);

/* The images of a record's tasks on a target, for these settings, this back end and this
 * machine, from memory or the store; ING_DECLINED: one must be compiled. */
ing_status ing_engine_load(ing_engine *g, const ing_target *t, const ing_record *record,
                           const ing_settings *settings, ing_code *out, ing_err *e);
/* The n-th name that the image of a task may have been given by this back end, whatever the
 * options and the machine were; false: there are no more. For tools, which look for files. */
typedef struct ing_image_name {
    ing_hash128 key;
    const char *isa_level;
    uint32_t opt_level;
    bool fast_math;
} ing_image_name;
bool ing_engine_image_name(const ing_engine *g, const ing_target *t, ing_hash128 ir,
                           uint32_t n, ing_image_name *out);
/* The store in use, borrowed for as long as the caller is between begin and end; NULL: no
 * disk. While somebody is, ing_engine_set_store waits. */
ing_store *ing_engine_begin(ing_engine *g);
void ing_engine_end(ing_engine *g);

/* Packs the layer that is written if that pays (store/pack.h); without the GIL, between begin
 * and end. */
void ing_engine_pack(ing_engine *g);

/* Passes over `mod` (taken, also on failure), whose tasks, steps and words become those of
 * `record`, then an image per task: memory, store, or
 * helper + link + publish; tasks compile in parallel. Needs no GIL and holds no lock while
 * it waits for a helper. `label` names the kernel in
 * symbol tables. */
typedef struct
    ing_engine_report {       /* what a build did; times are sums over its threads */
    uint32_t tasks, compiled; /* in all, and those that no cache had */
    uint64_t llvm_lines;
    uint64_t pass_ns, gen_ns, llvm_ns, link_ns; /* link: with publishing and loading */
} ing_engine_report;

/* What is wanted as text, for people (dump.c). */
enum {
    ING_DUMP_LOWERED = 1, /* IR as lowered */
    ING_DUMP_IR = 2,      /* after the passes */
    ING_DUMP_LLVM = 4,
    ING_DUMP_OPTIMISED = 8, /* LLVM IR after LLVM's passes */
    ING_DUMP_ASM = 16,
};

typedef struct ing_engine_job {
    const ing_target *target;
    ing_ir_mod *mod;
    const ing_settings *settings; /* ing_settings_answered */
    const char *label;
    uint32_t threads;          /* that compile at once; 0: one per core */
    ing_engine_report *report; /* out, NULL = not wanted */
    uint32_t *bad_loc;       /* out: where a pass found what it refuses, 0 = unknown */
    ing_ir_remarks *remarks; /* out: what passes decided; NULL = not wanted */
    bool overlap;            /* for arrays that share memory */
    bool progress;           /* tell of it on a terminal if it takes long */
    uint32_t dump;           /* ING_DUMP_ bits */
    ing_bytes *dumped;       /* where that goes */
} ing_engine_job;
ing_status ing_engine_build(ing_engine *g, const ing_engine_job *job,
                            ing_record *record, ing_code *out, ing_err *e);
void ing_code_fini(ing_code *c);

#endif
