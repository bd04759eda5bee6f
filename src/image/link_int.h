/* link, for itself: what link.c (relocations) and emit.c (layout and tables) share. */
#ifndef ING_IMAGE_LINK_INT_H
#define ING_IMAGE_LINK_INT_H

#include "image/image_int.h"

/* Output sections, in address order; the list is the section header table too.
 * name, text, type, flags, segment, alignment, entry size, linked section */
#define ING_OUT_LIST(X)                                                           \
    X(NULL, "", SHT_NULL, 0, NONE, 0, 0, NULL)                                    \
    X(HASH, ".hash", SHT_HASH, SHF_ALLOC, R, 8, 4, DYNSYM)                        \
    X(DYNSYM, ".dynsym", SHT_DYNSYM, SHF_ALLOC, R, 8, 24, DYNSTR)                 \
    X(DYNSTR, ".dynstr", SHT_STRTAB, SHF_ALLOC, R, 1, 0, NULL)                    \
    X(RELA, ".rela.dyn", SHT_RELA, SHF_ALLOC, R, 8, 24, DYNSYM)                   \
    X(IMPORTS, ".ingot.imports", SHT_PROGBITS, SHF_ALLOC, R, 8, 0, NULL)          \
    X(DYNAMIC, ".dynamic", SHT_DYNAMIC, SHF_ALLOC, R, 8, 16, DYNSTR)              \
    X(RODATA, ".rodata", SHT_PROGBITS, SHF_ALLOC, R, 1, 0, NULL)                  \
    X(EH, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, R, 8, 0, NULL)                    \
    X(TEXT, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, RX, 16, 0, NULL)    \
    X(STUBS, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, RX, 16, 0, NULL)    \
    X(RELRO, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, W1, 8, 0, NULL) \
    X(GOT, ".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, W1, 8, 8, NULL)           \
    X(DATA, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, W2, 8, 0, NULL)         \
    X(BSS, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, W2, 8, 0, NULL)             \
    X(COMMENT, ".comment", SHT_PROGBITS, 0, NONE, 1, 0, NULL)                     \
    X(SYMTAB, ".symtab", SHT_SYMTAB, 0, NONE, 8, 24, STRTAB)                      \
    X(STRTAB, ".strtab", SHT_STRTAB, 0, NONE, 1, 0, NULL)                         \
    X(SHSTRTAB, ".shstrtab", SHT_STRTAB, 0, NONE, 1, 0, NULL)

enum {
#define X(name, text, type, flags, seg, align, entsize, link) ING_OUT_##name,
    ING_OUT_LIST(X)
#undef X
        ING_OUT_N
};

enum { ING_SEG_R, ING_SEG_RX, ING_SEG_W1, ING_SEG_W2, ING_SEG_N, ING_SEG_NONE };

typedef struct ing_out_section {
    uint64_t size, align, vaddr, off;
} ing_out_section;

typedef struct ing_in_section { /* a section of the object */
    uint64_t at;                /* in its output section */
    uint8_t out;                /* ING_OUT_NULL: dropped */
} ing_in_section;

typedef struct ing_in_symbol {
    uint32_t import, stub, slot; /* what it needs; 0 = none */
    uint32_t object;
    uint32_t is; /* the symbol that it names: another one's, or itself */
} ing_in_symbol;

/* Sections and symbols of all objects are numbered through. */
typedef struct ing_link_object {
    ing_elf elf;
    uint32_t section, symbol; /* its first */
} ing_link_object;

typedef struct ing_site { /* one relocation, checked */
    const ing_reloc *reloc;
    uint64_t at; /* in its output section */
    int64_t addend;
    uint32_t sym;
    uint8_t out;
} ing_site;

typedef struct ing_link {
    ing_link_object *obj;
    uint32_t n_obj, n_syms;
    const ing_arch *arch;
    const char *label; /* NULL: none */
    ing_err *e;
    ing_arena arena;
    ing_in_section *sec;
    ing_in_symbol *sym;
    ing_vec(uint32_t) imports, stubs, locals; /* symbols, in order of first use */
    uint32_t entry;                           /* symbol */
    uint32_t comment;                    /* section, 0 = none; the first object's */
    uint32_t n_abs;                      /* absolute addresses in data */
    uint32_t n_relative;                 /* written so far */
    uint32_t n_kept_syms, n_kept_locals; /* of the objects, in .symtab */
    ing_out_section out[ING_OUT_N];
    ing_image_seg seg[ING_SEG_N]; /* memsz 0: absent */
    uint32_t n_phdrs;
    uint64_t shoff, size;
    uint8_t *image;
} ing_link;

/* resolve.c: opens all objects, and finds what each symbol names. */
ing_status ing_link_open(ing_link *l, const ing_object *objects, uint32_t n);
Elf64_Sym ing_link_symbol(const ing_link *l, uint32_t sym);
const char *ing_link_symbol_name(const ing_link *l, uint32_t sym);
/* The section that defines it; 0: none does. */
uint32_t ing_link_symbol_section(const ing_link *l, uint32_t sym);
/* Address of a defined symbol in the image. */
uint64_t ing_link_address(const ing_link *l, uint32_t sym);
/* Sizes every table, then gives each output section its place. */
ing_status ing_link_layout(ing_link *l);
/* Writes everything but relocations, stubs and relative slots. */
ing_status ing_link_emit(ing_link *l);
/* Writes the next relative slot: *(slot) := base + value when loaded. */
void ing_link_relative(ing_link *l, uint64_t slot, uint64_t value);

#endif
