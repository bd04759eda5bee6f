/* What an image says about itself, for tools that list caches: its functions, its machine
 * and who made it. Called by src/py/tool/cachetool.c; never on the way of a launch. Everything
 * is read through checked offsets: a damaged image is an error, never a crash. */
#include "image/image_int.h"

#include <string.h>

typedef struct table {
    const uint8_t *p;
    size_t n;
    Elf64_Ehdr h;
} table;

static bool inside(const table *t, uint64_t at, uint64_t size) {
    return at <= t->n && size <= t->n - at;
}

static bool section(const table *t, uint32_t i, Elf64_Shdr *out) {
    if (i >= t->h.e_shnum) return false;
    memcpy(out, t->p + t->h.e_shoff + (uint64_t)i * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || inside(t, out->sh_offset, out->sh_size);
}

/* The string at `off` of a section, NULL when it does not end there. */
static const char *string(const table *t, const Elf64_Shdr *s, uint64_t off) {
    if (s->sh_type != SHT_STRTAB || off >= s->sh_size) return NULL;
    const char *at = (const char *)t->p + s->sh_offset + off;
    return memchr(at, 0, s->sh_size - off) ? at : NULL;
}

static void see_symbols(const table *t, const Elf64_Shdr *s, ing_image_about *about) {
    Elf64_Shdr names;
    if (!section(t, s->sh_link, &names)) return;
    for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym sym;
        memcpy(&sym, t->p + s->sh_offset + i * sizeof sym, sizeof sym);
        const char *name = string(t, &names, sym.st_name);
        if (name && *name && ELF64_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx)
            about->see(about->self, name, sym.st_value, sym.st_size);
    }
}

/* Who made the object: the section .comment, whose first byte may be a zero. */
static void see_comment(const table *t, const Elf64_Shdr *s, ing_image_about *about) {
    const uint8_t *at = t->p + s->sh_offset;
    size_t n = s->sh_size;
    while (n && !*at) at++, n--;
    size_t len = n ? strnlen((const char *)at, n) : 0;
    if (len >= sizeof about->made) len = sizeof about->made - 1;
    for (size_t i = 0; i < len; i++)
        about->made[i] = at[i] < 32 || at[i] > 126 ? '?' : (char)at[i];
}

ing_status ing_image_describe(const uint8_t *p, size_t n, ing_image_about *about,
                              ing_err *e) {
    table t = {.p = p, .n = n};
    ing_image_plan plan;
    Elf64_Shdr names, s;
    if (n < sizeof t.h) return ing_fail(e, ING_FORMAT, "an image ends early");
    memcpy(&t.h, p, sizeof t.h);
    const ing_arch *arch = ing_arch_find(t.h.e_machine);
    if (!arch) return ing_fail(e, ING_FORMAT, "an image for an unknown machine");
    ING_TRY(ing_image_check(p, n, arch->machine, arch->page, &plan, e));
    about->machine = arch->machine == EM_X86_64 ? "x86-64" : "aarch64";
    memset(about->made, 0, sizeof about->made);
    if (t.h.e_shentsize != sizeof s ||
        !inside(&t, t.h.e_shoff, (uint64_t)t.h.e_shnum * sizeof s) ||
        !section(&t, t.h.e_shstrndx, &names))
        return ing_fail(e, ING_FORMAT, "an image without sections");
    for (uint32_t i = 1; i < t.h.e_shnum; i++) {
        if (!section(&t, i, &s))
            return ing_fail(e, ING_FORMAT, "a section out of bounds");
        const char *name = string(&t, &names, s.sh_name);
        if (s.sh_type == SHT_SYMTAB && about->see) see_symbols(&t, &s, about);
        if (name && s.sh_type == SHT_PROGBITS && strcmp(name, ".comment") == 0)
            see_comment(&t, &s, about);
    }
    return ING_OK;
}
