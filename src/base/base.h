/* base: what every other folder stands on. Errors, arena, growable arrays, byte
 * buffers, maps, hashing, files, counters and settings. No Python, no user code.
 *
 * Memory: compile-time data lives in an ing_arena and is freed at once. Running out
 * of memory is sticky: the arena (or buffer) remembers it, returns a usable dummy or
 * NULL as stated, and ing_arena_ok / ing_bytes_ok is asked before a result is used. */
#ifndef ING_BASE_H
#define ING_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- status and errors ------------------------------------------------------- */

/* The classes of failure. The second column is the Python exception that src/py
 * raises for it (raise.c); ING_OK and ING_DECLINED are not errors. */
#define ING_STATUS_LIST(X)                                                             \
    X(OK, "")                                                                          \
    X(DECLINED, "") /* does not apply; a miss */                                       \
    X(MEMORY, "MemoryError")                                                           \
    X(OS, "OSError")                                                                   \
    X(FORMAT, "IngotRuntimeError")    /* a damaged or foreign file */                  \
    X(INTERNAL, "IngotRuntimeError")  /* a bug in Ingot */                             \
    X(SYNTAX, "IngotSyntaxError")     /* not in the kernel language */                 \
    X(CALL, "IngotCallError")         /* arguments that do not match the parameters */ \
    X(TYPE, "IngotTypeError")         /* wrong type */                                 \
    X(ARGUMENT, "IngotArgumentError") /* an argument that its parameter cannot take */ \
    X(NAME, "IngotNameError")         /* undefined name */                             \
    X(ATTRIBUTE, "IngotAttributeError") /* undefined attribute */                      \
    X(ZERO, "IngotZeroDivisionError")   /* an integer divided by 0, in debug mode */   \
    X(VALUE, "IngotValueError")         /* right type, impossible value */             \
    X(COMPILE, "IngotCompilationError") /* any other refusal to compile */             \
    X(RUNTIME, "IngotRuntimeError")     /* the kernel ran and failed */                \
    X(ASSERT, "IngotAssertionError")    /* an assert in a kernel */                    \
    X(INDEX, "IngotIndexError")         /* out of bounds, in debug mode */             \
    X(CANCELLED, "KeyboardInterrupt")                                                  \
    X(PYTHON, "") /* a Python exception is already set */

typedef enum ing_status {
#define X(name, exc) ING_##name,
    ING_STATUS_LIST(X)
#undef X
} ing_status;

/* One error, complete: `text` is what the user reads (message, source line, caret,
 * remedy). Owned by whoever holds the ing_err; ing_err_fini frees it. */
typedef struct ing_err {
    ing_status status;
    char *text;    /* malloc'ed, NULL when memory ran out while writing it */
    uint32_t line; /* 1-based line in the user's file, 0 = none */
    uint32_t col;  /* 1-based column in characters, 0 = none */
    char *file;    /* malloc'ed or NULL */
} ing_err;

static inline void ing_err_init(ing_err *e) {
    *e = (ing_err){.status = ING_OK};
}
void ing_err_fini(ing_err *e);
/* Originates an error; returns `s`. The one place where errors begin. `e` may be NULL. */
ing_status ing_fail(ing_err *e, ing_status s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
ing_status ing_vfail(ing_err *e, ing_status s, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
const char *ing_status_name(ing_status s);
const char *ing_status_exception(ing_status s);

#define ING_TRY(call)                                \
    do {                                             \
        ing_status ing_try_s_ = (call);              \
        if (ing_try_s_ != ING_OK) return ing_try_s_; \
    } while (0)

/* ---- sizes -------------------------------------------------------------------- */

/* a * b, false on overflow. */
static inline bool ing_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool ing_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/* Fault injection for tests: the n-th allocation from now fails (0 = never). */
void ing_alloc_fail_at(uint64_t n);
uint64_t ing_alloc_fail_left(void); /* 0: it has failed, or nothing was asked for */
void *ing_malloc(size_t n);         /* NULL on failure */
void *ing_calloc(size_t n, size_t size); /* NULL on failure, overflow included */
void *ing_realloc(void *p, size_t n);    /* NULL on failure, p stays valid */
void ing_free(void *p);

/* ---- arena -------------------------------------------------------------------- */

typedef struct ing_arena {
    struct ing_arena_block *head;
    size_t used;  /* in head */
    size_t total; /* bytes taken from malloc */
    bool failed;  /* sticky: an allocation failed */
} ing_arena;

void ing_arena_init(ing_arena *a);
void ing_arena_fini(ing_arena *a);
/* Zeroed, 16-byte aligned; NULL (and a->failed) when memory ran out. */
void *ing_arena_alloc(ing_arena *a, size_t n);
void *ing_arena_array(ing_arena *a, size_t n, size_t size);
char *ing_arena_strdup(ing_arena *a, const char *s, size_t n);
char *ing_arena_printf(ing_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline bool ing_arena_ok(const ing_arena *a) {
    return !a->failed;
}
#define ING_NEW(arena, type) ((type *)ing_arena_alloc((arena), sizeof(type)))
#define ING_NEW_ARRAY(arena, n, type) \
    ((type *)ing_arena_array((arena), (n), sizeof(type)))

/* ---- growable arrays (malloc'ed) ------------------------------------------------
 * ing_vec(T) v = {0}; if (!ing_vec_push(&v, x)) -> out of memory; v.len, v.at[i]. */
#define ing_vec(T)         \
    struct {               \
        T *at;             \
        uint32_t len, cap; \
    }
bool ing_vec_grow_(void **at, uint32_t *cap, uint32_t need, size_t size);
#define ing_vec_reserve(v, n) \
    ((n) <= (v)->cap ||       \
     ing_vec_grow_((void **)&(v)->at, &(v)->cap, (uint32_t)(n), sizeof *(v)->at))
#define ing_vec_push(v, x)                                             \
    (((v)->len < UINT32_MAX - 1) && ing_vec_reserve((v), (v)->len + 1) \
         ? ((v)->at[(v)->len++] = (x), true)                           \
         : false)
#define ing_vec_fini(v)          \
    do {                         \
        ing_free((v)->at);       \
        (v)->at = NULL;          \
        (v)->len = (v)->cap = 0; \
    } while (0)

/* ---- members as tables ------------------------------------------------------------
 * A struct that is written to disk is described once, as a table of its members: the struct
 * is made from it here, its writer and reader elsewhere (src/record). A table is a macro of
 * four macros:
 *   ONE(type, name)          a member
 *   FIXED(type, name, n)     name[n]
 *   UP_TO(type, name, max)   n_name, and name[max]
 *   LIST(type, name)         an ing_vec(type)
 * Types are single words, so that names of functions can be made of them. */
#define ING_MEMBER_ONE_(type, name)      type name;
#define ING_MEMBER_FIXED_(type, name, n) type name[n];
#define ING_MEMBER_UP_TO_(type, name, max) \
    uint32_t n_##name;                     \
    type name[max];
#define ING_MEMBER_LIST_(type, name) ing_vec(type) name;
#define ING_MEMBERS(table) \
    table(ING_MEMBER_ONE_, ING_MEMBER_FIXED_, ING_MEMBER_UP_TO_, ING_MEMBER_LIST_)

/* ---- byte buffers --------------------------------------------------------------- */

typedef struct ing_bytes {
    uint8_t *at; /* always NUL-terminated once non-NULL, the NUL not counted in len */
    size_t len, cap;
    bool failed; /* sticky: an append was lost */
} ing_bytes;

void ing_bytes_init(ing_bytes *b);
void ing_bytes_fini(ing_bytes *b);
void ing_bytes_clear(ing_bytes *b);
static inline bool ing_bytes_ok(const ing_bytes *b) {
    return !b->failed;
}
bool ing_bytes_reserve(ing_bytes *b, size_t more);
void ing_bytes_put(ing_bytes *b, const void *p, size_t n);
void ing_bytes_puts(ing_bytes *b, const char *s);
void ing_bytes_printf(ing_bytes *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void ing_bytes_u8(ing_bytes *b, uint8_t v);
void ing_bytes_u32(ing_bytes *b, uint32_t v); /* little-endian */
void ing_bytes_u64(ing_bytes *b, uint64_t v);
/* Takes the buffer (malloc'ed, NUL-terminated; free with ing_free); b is empty after. */
char *ing_bytes_take(ing_bytes *b);

/* Reading what such a buffer holds: past the end everything reads as 0 and `failed` stays
 * set, so a decoder checks once, and before it trusts a count. */
typedef struct ing_reader {
    const uint8_t *at, *end;
    bool failed;
} ing_reader;

static inline ing_reader ing_reader_of(const void *p, size_t n) {
    return (ing_reader){(const uint8_t *)p, (const uint8_t *)p + n, false};
}
/* n bytes, borrowed; NULL when there are fewer. */
const uint8_t *ing_reader_take(ing_reader *r, size_t n);
uint8_t ing_reader_u8(ing_reader *r);
uint32_t ing_reader_u32(ing_reader *r);
uint64_t ing_reader_u64(ing_reader *r);
/* A count of things of at least `size` bytes each; fails when they cannot all be there. */
uint32_t ing_reader_count(ing_reader *r, size_t size);

/* ---- hash: XXH3-128, seed 0 -------------------------------------------------------- */

typedef struct ing_hash128 {
    uint64_t lo, hi;
} ing_hash128;

ing_hash128 ing_hash(const void *p, size_t n);
static inline bool ing_hash_eq(ing_hash128 a, ing_hash128 b) {
    return a.lo == b.lo && a.hi == b.hi;
}
void ing_hash_hex(ing_hash128 h, char out[33]); /* hi then lo, lower-case, NUL */
bool ing_hash_unhex(const char *s, ing_hash128 *out);

/* The one hash writer: every item goes in as tag, length, bytes, so that no two
 * sequences of items can run together. Streaming; no allocation. */
typedef struct ing_hasher {
    uint64_t acc[8];
    uint8_t buf[1024];
    uint64_t total;
    uint32_t fill;
} ing_hasher;

void ing_hasher_init(ing_hasher *h);
void ing_hasher_raw(ing_hasher *h, const void *p, size_t n);    /* untagged stream */
void ing_hasher_blocks(ing_hasher *h, const void *p, size_t n); /* not the last ones */
ing_hash128 ing_hasher_done(const ing_hasher *h);
void ing_hasher_item(ing_hasher *h, uint8_t tag, const void *p, size_t n);
void ing_hasher_u64(ing_hasher *h, uint8_t tag, uint64_t v);
void ing_hasher_str(ing_hasher *h, uint8_t tag, const char *s);
void ing_hasher_digest(ing_hasher *h, uint8_t tag, ing_hash128 d);

/* ---- maps: 128-bit key -> 32-bit value, and string interning ------------------------ */

typedef struct ing_map { /* open addressing; value 0 is "absent", so store id + 1 */
    struct ing_map_slot *slots;
    uint32_t cap, len;
} ing_map;

void ing_map_init(ing_map *m);
void ing_map_fini(ing_map *m);
uint32_t ing_map_get(const ing_map *m, ing_hash128 key);
bool ing_map_put(ing_map *m, ing_hash128 key, uint32_t value); /* false: no memory */

/* Interned strings: equal text, equal id; id 0 is the empty string. */
typedef struct ing_atoms {
    ing_arena arena;
    ing_map map;
    ing_vec(const char *) text; /* NUL-terminated */
    ing_vec(uint32_t) size;
    uint32_t mapped; /* ids below are in the map */
} ing_atoms;

void ing_atoms_init(ing_atoms *a);
void ing_atoms_fini(ing_atoms *a);
uint32_t ing_atoms_add(ing_atoms *a, const char *s,
                       size_t n); /* UINT32_MAX: no memory */
/* Without looking for an equal one: for lists that were written from atoms. The map is made
 * when something is added, which most readers never do. */
uint32_t ing_atoms_append(ing_atoms *a, const char *s, size_t n);
static inline const char *ing_atoms_text(const ing_atoms *a, uint32_t id) {
    return id < a->text.len ? a->text.at[id] : "";
}

/* ---- processor ----------------------------------------------------------------------- */

/* Of the ladder of src/image/isa.c: on x86-64, 2 and more have AVX2, 3 has AVX-512. */
uint32_t ing_cpu_rung(void);

/* ---- operating system ---------------------------------------------------------------- */

/* Reads a whole regular file of at most `max` bytes, appending to out. */
ing_status ing_os_read(const char *path, size_t max, ing_bytes *out, ing_err *e);
ing_status ing_os_read_fd(int fd, size_t max, ing_bytes *out, ing_err *e);
bool ing_os_write_all(int fd, const void *p,
                      size_t n); /* retries EINTR; errno on false */
uint64_t ing_os_now_ns(void);    /* monotonic */
uint32_t ing_os_cpus(void);      /* usable by this process (affinity) */
size_t ing_os_page(void);
size_t ing_os_stack_left(void); /* of this thread; much if unknown */
bool ing_os_on_network(int fd); /* not of this machine's own disks, or unknown */

/* ---- events: what happened when, as a Chrome trace (events.c) ---------------------------- */

typedef struct ing_events ing_events;

/* At most max_bytes are written by this process; what comes then is dropped and counted. */
ing_events *ing_events_new(const char *path, uint64_t max_bytes); /* NULL: no memory */
void ing_events_free(ing_events *t);      /* writes what is held */
uint64_t ing_events_flush(ing_events *t); /* how many were dropped so far */
void ing_events_after_fork(ing_events *t);

typedef struct ing_span {
    const char *what;   /* "lower" */
    const char *label;  /* the kernel; NULL: none */
    uint64_t from, end; /* ing_os_now_ns; end 0 = now */
    const char *args;   /* members of a JSON object, as text; NULL: none */
    int64_t pid;        /* of another process; 0 = this thread of this one */
} ing_span;
/* Of no effect when t is NULL, as all of these. Spans of a thread nest by their times. */
void ing_events_span(ing_events *t, const ing_span *s);
void ing_events_process(ing_events *t, int64_t pid,
                        const char *name); /* 0 = this one */
/* The beginning of a span; 0 where nobody listens, so that nothing is asked. */
static inline uint64_t ing_events_now(const ing_events *t) {
    return t ? ing_os_now_ns() : 0;
}

/* ---- counters: what happened, for tests and for `stat` ---------------------------------- */

#define ING_COUNTER_LIST(X)                                                           \
    X(PARSES, "parses")             /* function texts parsed */                       \
    X(LOWERINGS, "lowerings")       /* kernels lowered to IR */                       \
    X(FUNC_LOWERED, "func_lowered") /* func specialisations lowered */                \
    X(FUNC_SHARED, "func_shared")   /* uses of an existing specialisation */          \
    X(VARIANTS, "variants")         /* variants made */                               \
    X(VARIANT_HITS, "variant_hits") /* launches served by the tree, not the plan */   \
    X(KERNEL_DISK_HITS, "kernel_disk_hits") /* variants restored from the store */    \
    X(KERNEL_STORED, "kernel_stored")       /* variants published */                  \
    X(TRACE_CONFLICTS,                                                                \
      "trace_conflicts") /* a tree that lowering contradicts: dropped */              \
    X(SOURCE_ALIAS_HITS, "source_alias_hits") /* texts known without parsing */       \
    X(IMAGE_COMPILES, "image_compiles")       /* tasks compiled by a helper */        \
    X(IMAGE_WAITS, "image_waits")             /* for another process that compiles */ \
    X(IMAGE_DISK_HITS, "image_disk_hits")     /* images mapped from the store */      \
    X(IMAGE_MEMORY_HITS, "image_memory_hits")                                         \
    X(HELPERS_STARTED, "helpers_started")                                             \
    X(IMAGE_PARTS, "image_parts")       /* texts that were compiled for them */       \
    X(HELPERS_SERVED, "helpers_served") /* connections to a server */                 \
    X(HELPER_RETRIES, "helper_retries")                                               \
    X(STORE_PUBLISHED, "store_published")                                             \
    X(PACK_HITS, "pack_hits")             /* entries that a pack had */               \
    X(PACKS_MADE, "packs_made")           /* of the layer that is written */          \
    X(STORE_BAD_ENTRY, "store_bad_entry") /* damaged: checksum, size, magic */        \
    X(STORE_FOREIGN, "store_foreign")     /* wrong owner or mode */                   \
    X(STORE_IO_ERRORS, "store_io_errors")                                             \
    X(STORE_LAYERS_SKIPPED, "store_layers_skipped") /* not to be trusted or read */   \
    X(STORE_HITS, "store_hits")                     /* values found and decoded */    \
    X(STORE_MISSES, "store_misses")                                                   \
    X(STORE_EVICTED, "store_evicted")                                                 \
    X(STORE_TOO_LARGE, "store_too_large") /* beyond a bound: not stored */            \
    X(STORE_WALKS, "store_walks")         /* over all entries of a kind */            \
    X(REMOTE_HITS, "remote_hits")         /* entries that the remote layer had */     \
    X(REMOTE_MISSES, "remote_misses")                                                 \
    X(REMOTE_PUSHES, "remote_pushes") /* handed over */                               \
    X(LEASES_TAKEN, "leases_taken")                                                   \
    X(LEASE_WAITS, "lease_waits")     /* waited for another's work */                 \
    X(LEASES_HEALED, "leases_healed") /* left by the dead, taken away */              \
    X(LAUNCHES, "launches")                                                           \
    X(LAUNCH_INLINE, "launch_inline") /* ran whole on the calling thread */           \
    X(LAUNCH_SIZED, "launch_sized")   /* the room of a gradient's stacks was found */ \
    X(STACK_BYTES,                                                                    \
      "stack_bytes") /* that launches gave to stacks of gradients, in all */          \
    X(LAUNCH_OVERLAP, "launch_overlap") /* arrays shared memory: by code for that */  \
    X(COPIES_IN, "copies_in")           /* arrays that a target could not address */  \
    X(COPIES_OUT, "copies_out")         /* and those of them that were written */

typedef enum ing_counter {
#define X(name, text) ING_COUNT_##name,
    ING_COUNTER_LIST(X)
#undef X
        ING_COUNTER_N
} ing_counter;

typedef struct ing_counters {
    uint64_t at[ING_COUNTER_N]; /* changed with __atomic builtins only */
} ing_counters;
const char *ing_counter_name(ing_counter c);
static inline void ing_count_by(ing_counters *c, ing_counter which, uint64_t n) {
    __atomic_fetch_add(&c->at[which], n, __ATOMIC_RELAXED);
}
static inline void ing_count(ing_counters *c, ing_counter which) {
    ing_count_by(c, which, 1);
}

/* ---- scalar types: the one list -------------------------------------------------------------
 * name, bits, class (V void, B bool, I signed, U unsigned, F float). Values are part of
 * file formats: append only. */
#define ING_DTYPE_LIST(X) \
    X(VOID, void, 0, V)   \
    X(U1, u1, 1, B)       \
    X(I8, i8, 8, I)       \
    X(I16, i16, 16, I)    \
    X(I32, i32, 32, I)    \
    X(I64, i64, 64, I)    \
    X(U8, u8, 8, U)       \
    X(U16, u16, 16, U)    \
    X(U32, u32, 32, U)    \
    X(U64, u64, 64, U)    \
    X(F16, f16, 16, F)    \
    X(F32, f32, 32, F)    \
    X(F64, f64, 64, F)

typedef enum ing_dtype {
#define X(name, text, bits, cls) ING_##name,
    ING_DTYPE_LIST(X)
#undef X
        ING_DTYPE_N
} ing_dtype;
const char *ing_dtype_name(ing_dtype t);
uint32_t ing_dtype_bits(ing_dtype t);  /* u1 is 1 */
uint32_t ing_dtype_bytes(ing_dtype t); /* in memory; u1 is 1 byte */
char ing_dtype_class(ing_dtype t);     /* 'V' 'B' 'I' 'U' 'F' */
/* Sets of them, a bit for each, from the column of classes: 1 integer, 2 signed, 4 float. */
#define ING_DTYPE_IS_V 0u
#define ING_DTYPE_IS_B 1u
#define ING_DTYPE_IS_I 3u
#define ING_DTYPE_IS_U 1u
#define ING_DTYPE_IS_F 4u
enum {
#define X(name, text, bits, cls) | (ING_DTYPE_IS_##cls & 1u) << ING_##name
    ING_DTYPE_INTS = 0 ING_DTYPE_LIST(X),
#undef X
#define X(name, text, bits, cls) | (ING_DTYPE_IS_##cls >> 1 & 1u) << ING_##name
    ING_DTYPE_SIGNED = 0 ING_DTYPE_LIST(X),
#undef X
#define X(name, text, bits, cls) | (ING_DTYPE_IS_##cls >> 2) << ING_##name
    ING_DTYPE_FLOATS = 0 ING_DTYPE_LIST(X),
#undef X
};
/* Also of types that are none, which are larger (ing_type). */
static inline bool ing_dtype_in(ing_dtype t, uint32_t set) {
    return (uint32_t)t < ING_DTYPE_N && (set >> t & 1);
}
static inline bool ing_dtype_is_float(ing_dtype t) {
    return ing_dtype_in(t, ING_DTYPE_FLOATS);
}
static inline bool ing_dtype_is_signed(ing_dtype t) {
    return ing_dtype_in(t, ING_DTYPE_SIGNED);
}
static inline bool ing_dtype_is_int(ing_dtype t) { /* u1 included */
    return ing_dtype_in(t, ING_DTYPE_INTS);
}

/* IEEE binary16, round to nearest even; images import these too. */
float ing_f16_to_f32(uint16_t h);
uint16_t ing_f32_to_f16(float f);
uint16_t ing_f64_to_f16(double d);

/* ---- settings: the one table ------------------------------------------------------------- */

/* What a setting has to do with code, which decides who may read it:
 *   NOT     nothing; neither lowering nor the engine gets to see it
 *   ASKED   lowering asks for it where it matters: then it is a question of the trace
 *   ALWAYS  passes or launches read it: a question of every trace
 *   CODE    it changes the code of an image alone: part of the image's key */
typedef enum ing_setting_use {
    ING_USE_NOT,
    ING_USE_ASKED,
    ING_USE_ALWAYS,
    ING_USE_CODE,
} ing_setting_use;

/* name, type (B bool, I int, S dtype), default, use, help */
#define ING_SETTING_LIST(X)                                                            \
    X(debug, B, 0, ALWAYS, "bounds checks, asserts and overflow checks")               \
    X(check_out_of_bound, B, 0, ASKED, "bounds checks on array subscripts")            \
    X(fast_math, B, 1, ALWAYS, "reassociation, contraction, flush denormals")          \
    X(default_ip, S, 4, ASKED, "dtype of integer literals")                            \
    X(default_fp, S, 11, ASKED, "dtype of float literals")                             \
    X(target, I, 0, ALWAYS, "what kernels run on (src/launch/target.h)")               \
    X(interp_passes, B, 1, ALWAYS,                                                     \
      "passes run before the interpreter; off: IR as lowered")                         \
    X(python, B, 0, NOT, "run kernels as the Python functions they are")               \
    X(cpu_max_num_threads, I, 0, NOT, "threads a launch may use; 0 = all cores")       \
    X(kernel_profiler, B, 0, NOT, "measure each task of each launch (qd.profiler)")    \
    X(num_compile_threads, I, 0, NOT, "helper processes; 0 = one per core")            \
    X(compile_timeout, I, 600, NOT, "seconds one compile may take; 0 = no limit")      \
    X(offline_cache, B, 1, NOT, "keep compiled code on disk")                          \
    X(src_ll_cache, B, 1, NOT, "keep whole kernels on disk, not only their code")      \
    X(print_non_pure, B, 0, NOT,                                                       \
      "print the kernels that are not marked fastcache=True")                          \
    X(raise_on_templated_floats, B, 0, ASKED, "refuse to compile a captured float in") \
    X(random_seed, I, 0, NOT, "seed of qd.random")                                     \
    X(ad_stack_experimental_enabled, B, 1, ASKED,                                      \
      "gradients of loops in loops; off: refused")                                     \
    X(reference, B, 0, ASKED, "refuse what Quadrants refuses, in its words")           \
    X(ad_stack_size, I, 0, ASKED,                                                      \
      "iterations that the stack of a loop's gradient has room for; 0 = as many as "   \
      "there are")                                                                     \
    X(opt_level, I, 2, CODE, "LLVM optimisation level, 0 to 3")                        \
    X(frozen, B, 0, NOT, "raise where a kernel would have to be compiled")             \
    X(paranoid, B, 0, NOT, "lower each kernel again at every launch and compare")      \
    X(dumps, I, 0, NOT,                                                                \
      "what is printed of each kernel; print_ir and its like set it")                  \
    X(verbosity, I, 0, NOT, "what is told of compiles; log_level sets it")             \
    X(gdb, B, 0, NOT, "tell gdb the names and lines of kernels")                       \
    X(progress, B, 1, NOT,                                                             \
      "a line on the terminal about compiles of more than two seconds")                \
    X(offline_cache_max_size_of_files, I, INT64_C(2) << 30, NOT,                       \
      "bytes that the cache on disk may take; 0 = no bound")                           \
    X(offline_cache_max_entries, I, 100000, NOT,                                       \
      "files that the cache on disk may have; 0 = no bound")

typedef enum ing_setting {
#define X(name, type, def, use, help) ING_SET_##name,
    ING_SETTING_LIST(X)
#undef X
        ING_SETTING_N
} ing_setting;

typedef struct ing_settings {
    int64_t at[ING_SETTING_N];
} ing_settings;
void ing_settings_init(ing_settings *s);
const char *ing_setting_name(ing_setting k);
char ing_setting_type(ing_setting k);
ing_setting_use ing_setting_used(ing_setting k);
/* What the engine gets: the values that belong to a question or to an image's key. All others
 * are ING_UNANSWERED, so that an option which the table does not name so cannot matter. */
#define ING_UNANSWERED INT64_MIN
void ing_settings_answered(const ing_settings *now, ing_settings *out);

#endif
