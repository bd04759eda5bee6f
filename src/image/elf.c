/* Reads an ELF64 relocatable object. Called by link.c only. ing_elf_open checks every
 * header and symbol once; the readers after it copy fields out (an object in a buffer
 * has no alignment) and need no checks of their own. Must never trust an offset, a
 * count or a string of the object before that check. */
#include "image/image_int.h"

#include <string.h>

static bool inside(const ing_elf *o, uint64_t off, uint64_t size) {
    return off <= o->len && size <= o->len - off;
}

static ing_status open_header(ing_elf *o, ing_err *e) {
    Elf64_Ehdr h;
    if (o->len < sizeof h) return ing_fail(e, ING_FORMAT, "object is too short");
    memcpy(&h, o->at, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_type != ET_REL)
        return ing_fail(e, ING_FORMAT, "not a little-endian ELF64 relocatable object");
    if (h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shnum == 0 ||
        h.e_shnum >= SHN_LORESERVE || h.e_shstrndx >= h.e_shnum)
        return ing_fail(e, ING_FORMAT, "object has no usable section table");
    if (!inside(o, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr)))
        return ing_fail(e, ING_FORMAT, "object's section table is outside the object");
    o->machine = h.e_machine;
    o->n_sections = h.e_shnum;
    o->shoff = h.e_shoff;
    o->section_names = ing_elf_section(o, h.e_shstrndx);
    return ING_OK;
}

static ing_status check_section(ing_elf *o, uint32_t i, ing_err *e) {
    Elf64_Shdr s = ing_elf_section(o, i);
    if (s.sh_type == SHT_NULL) return ING_OK;
    if (s.sh_type != SHT_NOBITS && !inside(o, s.sh_offset, s.sh_size))
        return ing_fail(e, ING_FORMAT, "section %u is outside the object", i);
    if (s.sh_type == SHT_NOBITS && s.sh_size > ING_IMAGE_MAX)
        return ing_fail(e, ING_FORMAT, "section %u is too large", i);
    if ((s.sh_flags & SHF_ALLOC) &&
        (s.sh_addralign > ING_IMAGE_ALIGN || (s.sh_addralign & (s.sh_addralign - 1))))
        return ing_fail(e, ING_FORMAT, "section %u has alignment %llu", i,
                        (unsigned long long)s.sh_addralign);
    if (s.sh_type == SHT_RELA &&
        (s.sh_entsize != sizeof(Elf64_Rela) || s.sh_size % sizeof(Elf64_Rela) ||
         s.sh_info >= o->n_sections))
        return ing_fail(e, ING_FORMAT, "relocation section %u is malformed", i);
    if (s.sh_type != SHT_SYMTAB) return ING_OK;
    if (o->symtab) return ing_fail(e, ING_FORMAT, "object has two symbol tables");
    if (s.sh_entsize != sizeof(Elf64_Sym) || s.sh_size % sizeof(Elf64_Sym) ||
        s.sh_link >= o->n_sections)
        return ing_fail(e, ING_FORMAT, "symbol table is malformed");
    o->symtab = i;
    o->syms = s;
    o->sym_names = ing_elf_section(o, s.sh_link);
    o->n_syms = (uint32_t)(s.sh_size / sizeof(Elf64_Sym));
    return ING_OK;
}

static ing_status check_strings(const ing_elf *o, const Elf64_Shdr *s, ing_err *e) {
    if (s->sh_type != SHT_STRTAB || s->sh_size == 0 ||
        o->at[s->sh_offset + s->sh_size - 1] != 0)
        return ing_fail(e, ING_FORMAT, "object has a malformed string table");
    return ING_OK;
}

static ing_status check_symbol(const ing_elf *o, uint32_t i, ing_err *e) {
    Elf64_Sym s = ing_elf_sym(o, i);
    if (s.st_name >= o->sym_names.sh_size)
        return ing_fail(e, ING_FORMAT, "symbol %u has no name in the string table", i);
    if (s.st_shndx == SHN_COMMON)
        return ing_fail(e, ING_FORMAT,
                        "'%s' is a common symbol, which is not supported",
                        ing_elf_sym_name(o, &s));
    if (s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS) return ING_OK;
    if (s.st_shndx >= o->n_sections)
        return ing_fail(e, ING_FORMAT, "symbol %u is in no section", i);
    if (s.st_value > ing_elf_section(o, s.st_shndx).sh_size)
        return ing_fail(e, ING_FORMAT, "symbol %u is outside its section", i);
    return ING_OK;
}

ing_status ing_elf_open(ing_elf *o, const uint8_t *p, size_t n, ing_err *e) {
    memset(o, 0, sizeof *o);
    o->at = p;
    o->len = n;
    if (n > ING_IMAGE_MAX) return ing_fail(e, ING_FORMAT, "object is too large");
    ING_TRY(open_header(o, e));
    for (uint32_t i = 0; i < o->n_sections; i++) ING_TRY(check_section(o, i, e));
    ING_TRY(check_strings(o, &o->section_names, e));
    if (!o->symtab) return ing_fail(e, ING_FORMAT, "object has no symbol table");
    ING_TRY(check_strings(o, &o->sym_names, e));
    for (uint32_t i = 0; i < o->n_syms; i++) ING_TRY(check_symbol(o, i, e));
    return ING_OK;
}

Elf64_Shdr ing_elf_section(const ing_elf *o, uint32_t i) {
    Elf64_Shdr s;
    memcpy(&s, o->at + o->shoff + (uint64_t)i * sizeof s, sizeof s);
    return s;
}

Elf64_Sym ing_elf_sym(const ing_elf *o, uint32_t i) {
    Elf64_Sym s;
    memcpy(&s, o->at + o->syms.sh_offset + (uint64_t)i * sizeof s, sizeof s);
    return s;
}

Elf64_Rela ing_elf_rela(const ing_elf *o, const Elf64_Shdr *s, uint64_t i) {
    Elf64_Rela r;
    memcpy(&r, o->at + s->sh_offset + i * sizeof r, sizeof r);
    return r;
}

/* The table ends with a NUL (check_strings), so a name cannot run out of it. */
static const char *string_at(const ing_elf *o, const Elf64_Shdr *table, uint64_t off) {
    if (off >= table->sh_size) return "";
    const char *s = (const char *)o->at + table->sh_offset + off;
    return strnlen(s, ING_IMAGE_MAX_NAME + 1) <= ING_IMAGE_MAX_NAME ? s : "";
}

const char *ing_elf_section_name(const ing_elf *o, const Elf64_Shdr *s) {
    return string_at(o, &o->section_names, s->sh_name);
}

const char *ing_elf_sym_name(const ing_elf *o, const Elf64_Sym *s) {
    return string_at(o, &o->sym_names, s->st_name);
}
