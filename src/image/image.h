/* image: from a relocatable object to code that can be called. link.c turns the object
 * that LLVM made into an image; load.c maps an image and resolves its imports; exec.c is
 * the one owner of executable memory (W^X: text is never writable after mapping).
 *
 * An image is an ELF64 ET_DYN (so perf, gdb and objdump read it): page-aligned segments
 * R-X text, R-- rodata and eh_frame, RW data + GOT (made read-only after it is filled if
 * there is no .data/.bss), a dynamic symbol table with ING_ABI_ENTRY, and a section
 * ".ingot.imports": the names whose addresses fill the GOT, in GOT order. No relative
 * relocations other than through that table and RELATIVE entries for data. */
#ifndef ING_IMAGE_H
#define ING_IMAGE_H

#include "base/base.h"
#include "gen/abi.h"
#include "store/pack.h"

typedef struct ing_object { /* ET_REL, x86-64 or AArch64 */
    const uint8_t *at;
    size_t len;
} ing_object;

/* Links `n` objects, at least one: that of a task, or its parts, which call each other by
 * global names. `symbol_label` (may be NULL) names the entry
 * for people in the symbol table beside ING_ABI_ENTRY. ING_COMPILE when an undefined symbol
 * is not importable (the message names it); ING_FORMAT for a damaged or unsupported object. */
ing_status ing_image_link(const ing_object *objects, uint32_t n,
                          const char *symbol_label, ing_bytes *out, ing_err *e);

typedef struct ing_image ing_image; /* reference-counted, loaded */

/* Loads from a file (mapped privately; offset 0; `len` bytes) or from memory (fd = -1: copied
 * to anonymous memory). A noexec mount falls back to the copy by itself. Every offset in the
 * image is checked against len: a bad image is ING_FORMAT, never a crash. */
ing_status ing_image_load(int fd, const uint8_t *data, size_t len, ing_image **out,
                          ing_err *e);
/* As that, from a file that is mapped whole from its start, read-only and private; the
 * mapping is taken over, also on failure: 3 system calls and the page faults of a second
 * mapping less. */
ing_status ing_image_take(int fd, void *map, size_t map_len, size_t len,
                          ing_image **out, ing_err *e);
/* From an entry of the store, which is used up, also on failure. An image that lies in a
 * pack runs where it lies, and keeps the pack; it gets a mapping of its own when it has
 * something to be filled. */
ing_status ing_image_of_entry(ing_entry *entry, ing_image **out, ing_err *e);
ing_image *ing_image_ref(ing_image *i);
void ing_image_unref(ing_image *i);
ing_task_fn ing_image_entry(const ing_image *i);
typedef struct ing_image_origin {
    const char *name, *file;
    uint32_t line; /* from 1 */
} ing_image_origin;
/* Registers the image's unwind table with libgcc, so that backtrace() and exceptions of the
 * host pass through its frames, and tells gdb the name and line of its task (gdb.c); taken
 * back by the last unref. The first to ask says where it is from. Off unless asked for, and
 * only for images that our linker made: libgcc trusts the table. False: the image has none. */
bool ing_image_register_debug(ing_image *i, const ing_image_origin *from);

/* ---- packs (pack.c; format and reader: store/pack.h) -------------------------------- */

enum { ING_PACK_MAKERS = 16 };
typedef struct ing_pack_report {
    uint64_t entries[ING_ENTRY_KINDS]; /* written, by kind */
    uint64_t left_out;                 /* damaged or unreadable */
    uint64_t bytes, symbols;
    ing_hash128 sum;
    struct { /* levels, options and compilers of the images, as far as they are known */
        char text[120];
        uint64_t images;
    } makers[ING_PACK_MAKERS];
    uint32_t n_makers;
} ing_pack_report;
/* Writes the images, variants, indexes and aliases of the first layer to an empty file.
 * `order` may be NULL: a sealed layer. */
ing_status ing_pack_write(ing_store *from, int fd, const ing_pack_order *order,
                          ing_pack_report *report, ing_err *e);

/* Importable symbols: name -> address; NULL when not importable. libc/libm/compiler-runtime
 * functions that LLVM may call, libmvec where present, and the f16 helpers (ours). */
void *ing_image_import(const char *name);
/* What ing_gen_options.vector_math may be here, and whether the library is really there. */
uint8_t ing_image_vector_math(void);
bool ing_image_vector_math_present(void);

/* Which instruction set levels this machine runs: best of x86-64-v2/v3/v4 that CPUID and OS
 * allow, lowered by INGOT_CPU_LEVEL (an unknown or higher value is ignored). */
const char *ing_image_isa_level(void);
/* Can this machine run code of that level (INGOT_CPU_LEVEL aside)? False for unknown names. */
bool ing_image_isa_runs(const char *level);
/* The levels there are on this architecture, the lowest first; NULL past the last. */
const char *ing_image_isa_rung(uint32_t i);

/* ---- for tools (about.c) ------------------------------------------------------------- */

/* Checks an image as loading would, for any machine that images are linked for, and calls
 * `see` for each function in its symbol table. ING_FORMAT: it is no image. */
typedef struct ing_image_about {
    void *self;
    void (*see)(void *self, const char *name, uint64_t at, uint64_t size);
    const char *machine; /* out */
    char made[120];      /* out: by what and for which level, "" = not recorded */
} ing_image_about;
ing_status ing_image_describe(const uint8_t *p, size_t n, ing_image_about *about,
                              ing_err *e);

#endif
