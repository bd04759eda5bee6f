/* image, for itself: the format, and what its files share.
 *
 * The image, in file order (all little-endian; every segment starts at a multiple of
 * 4096 in the file, so that it can be mapped):
 *
 *   segment R    ELF header, program headers, .hash .dynsym .dynstr .rela.dyn
 *                .ingot.imports .dynamic .rodata .eh_frame
 *   segment RX   .text, .plt (one stub per imported function that is called)
 *   segment W1   .data.rel.ro, .got           made read-only once filled (GNU_RELRO)
 *   segment W2   .data, .bss                  LLVM makes none for our kernels
 *   not mapped   .comment (who made it, for which level: recorded, not keyed) .symtab
 *                .strtab .shstrtab, section headers
 *
 * An empty segment has no program header; .bss takes no bytes in the file. On x86-64
 * address and file offset are the same up to .bss, so that one mapping of the file and a
 * change of protection per segment load it; on AArch64 segments lie 64 KiB apart, for
 * kernels with large pages, and are mapped one by one.
 *
 * .ingot.imports, found by the program header ING_PT_IMPORTS, is what the loader reads:
 *    0  8  magic "INGIMAGE"       8  4  format version     12  4  n = number of imports
 *   16  8  address of the GOT    24  4  r = relative slots 28  4  bytes of names
 *   32  8  address of .eh_frame  40  8  its size (0 = none)
 *   48 16r (address of the slot, value), each slot := base + value
 *   .. names, NUL-terminated: the address of the i-th fills GOT slot i
 * .rela.dyn and .dynsym say the same to ld.so, which makes an image something that
 * dlopen takes too; both are written from the same arrays, the loader reads neither. */
#ifndef ING_IMAGE_INT_H
#define ING_IMAGE_INT_H

#include <elf.h>

#include "image/image.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "images are little-endian");

enum {
    ING_IMAGE_VERSION = 1,
    ING_IMAGE_ALIGN = 4096,      /* of segments in the file; no section asks for more */
    ING_IMAGE_MAX = 128 << 20,   /* bytes, in file and in memory: keeps all branches in
                                     reach and bounds what a damaged header can ask for */
    ING_IMAGE_MAX_NAME = 1024,   /* of a symbol */
    ING_IMAGE_HEAD = 48,         /* of .ingot.imports, before its tables */
    ING_PT_IMPORTS = 0x6e676f74, /* program header type, in the range left to systems */
};
#define ING_IMAGE_MAGIC "INGIMAGE"

#if defined(__x86_64__)
#define ING_IMAGE_HOST EM_X86_64
#elif defined(__aarch64__)
#define ING_IMAGE_HOST EM_AARCH64
#else
#define ING_IMAGE_HOST EM_NONE
#endif

static inline uint64_t ing_align_up(uint64_t v, uint64_t a) {
    return (v + a - 1) & ~(a - 1);
}

/* ---- elf.c: reading a relocatable object ---------------------------------------- */

typedef struct ing_elf {
    const uint8_t *at;
    size_t len;
    uint16_t machine;
    uint32_t n_sections, n_syms;
    uint32_t symtab; /* section number, 0 = none */
    uint64_t shoff;
    Elf64_Shdr syms, sym_names, section_names;
} ing_elf;

/* Checks the header, every section header and every symbol: what the functions below
 * return lies inside the object. */
ing_status ing_elf_open(ing_elf *o, const uint8_t *p, size_t n, ing_err *e);
Elf64_Shdr ing_elf_section(const ing_elf *o, uint32_t i);
Elf64_Sym ing_elf_sym(const ing_elf *o, uint32_t i);
Elf64_Rela ing_elf_rela(const ing_elf *o, const Elf64_Shdr *s, uint64_t i);
/* NUL-terminated; "" when the name is longer than ING_IMAGE_MAX_NAME or not a string. */
const char *ing_elf_section_name(const ing_elf *o, const Elf64_Shdr *s);
const char *ing_elf_sym_name(const ing_elf *o, const Elf64_Sym *s);

/* ---- reloc.c: relocation types and stubs ------------------------------------------ */

typedef enum ing_reloc_what { /* S symbol, A addend, P place, G its GOT slot */
                              ING_RELOC_NONE,
                              ING_RELOC_REFUSE,
                              ING_RELOC_PC, /* S + A - P */
                              ING_RELOC_CALL, /* the same, through a stub when S is imported */
                              ING_RELOC_GOT, /* G + A - P */
                              ING_RELOC_ABS, /* S + A, known when loaded: only in writable data */
                              ING_RELOC_PAGE,     /* Page(S + A) - Page(P) */
                              ING_RELOC_LO12,     /* (S + A) & 0xfff */
                              ING_RELOC_GOT_PAGE, /* Page(G) - Page(P) */
                              ING_RELOC_GOT_LO12, /* G & 0xfff */
} ing_reloc_what;

typedef enum ing_reloc_form { /* where the value goes */
                              ING_FORM_NONE,
                              ING_FORM_S32,   /* signed 32-bit word */
                              ING_FORM_64,    /* 64-bit word */
                              ING_FORM_B26,   /* AArch64 b, bl */
                              ING_FORM_ADR21, /* AArch64 adrp */
                              ING_FORM_IMM12, /* AArch64 add, ldr, str: imm12, scaled by ing_reloc.shift */
} ing_reloc_form;

typedef struct ing_reloc {
    uint32_t type;
    const char *name;
    uint8_t what, form, shift;
} ing_reloc;

typedef struct ing_arch {
    uint16_t machine;
    uint32_t page; /* largest page size of the architecture */
    uint32_t stub_size;
    uint32_t r_relative, r_glob_dat;
    const ing_reloc *relocs; /* sorted by nothing: a dozen entries */
    uint32_t n_relocs;
} ing_arch;

const ing_arch *ing_arch_find(uint16_t machine); /* NULL: not supported */
const ing_reloc *ing_reloc_find(const ing_arch *a, uint32_t type); /* NULL: unknown */
uint32_t ing_reloc_width(const ing_reloc *r); /* bytes that it changes */
/* Writes the value into the bytes at `at`; false: it does not fit. */
bool ing_reloc_place(const ing_reloc *r, uint8_t *at, int64_t value);
/* A jump through the GOT slot; false: out of reach. */
bool ing_stub_write(const ing_arch *a, uint8_t *at, uint64_t stub, uint64_t slot);

/* ---- load.c: what an image asks for, checked ------------------------------------- */

typedef struct ing_image_seg {
    uint64_t vaddr, off, filesz, memsz;
    bool write, exec, relro;
} ing_image_seg;

typedef struct ing_image_plan {
    ing_image_seg seg[4];
    uint32_t n_segs;
    uint64_t span; /* of addresses, a multiple of the page size */
    uint64_t entry, got, eh, eh_size;
    uint32_t n_imports, n_relative;
    const uint8_t *relative; /* in the image's bytes */
    const char *names;
} ing_image_plan;

/* Reads and checks everything that loading needs. Pure: runs for any machine. */
ing_status ing_image_check(const uint8_t *p, size_t len, uint16_t machine, size_t page,
                           ing_image_plan *out, ing_err *e);

/* ---- gdb.c: what a debugger is told -------------------------------------------------- */

typedef struct ing_gdb_code { /* as mapped */
    const uint8_t *code, *entry, *eh;
    uint64_t code_size, eh_size;
    const ing_image_origin *from;
} ing_gdb_code;

typedef struct ing_gdb_object ing_gdb_object;
ing_gdb_object *ing_gdb_add(const ing_gdb_code *c); /* NULL: not told */
void ing_gdb_remove(ing_gdb_object *o);

/* ---- import.c ----------------------------------------------------------------------- */

/* The k-th name of the table, NULL past its end: so that a test can ask for each. */
const char *ing_image_import_name(size_t k);

/* ---- exec.c: the one owner of executable memory ----------------------------------- */

typedef struct ing_exec {
    uint8_t *base; /* NULL: nothing reserved */
    size_t len;
} ing_exec;

typedef enum ing_exec_prot { ING_EXEC_R, ING_EXEC_RW, ING_EXEC_RX } ing_exec_prot;

/* Reserves `len` bytes of addresses, showing the file from `at` on read-only; fd = -1:
 * zeroed anonymous memory, writable. False: errno. */
bool ing_exec_reserve(ing_exec *x, size_t len, int fd, uint64_t at);
/* Commits [at, at + len) to the file from `off` (fd = -1: to zeros). All page-aligned. */
bool ing_exec_commit(ing_exec *x, size_t at, size_t len, int fd, uint64_t off,
                     ing_exec_prot prot);
bool ing_exec_protect(ing_exec *x, size_t at, size_t len, ing_exec_prot prot);
void ing_exec_free(ing_exec *x);

#endif
