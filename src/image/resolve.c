/* The objects of a link, numbered through: opens each, and says which symbol of which object a
 * name without a definition means. Called by link.c first. What is local to an object is
 * nobody else's; a name that none defines is an import, one for all. Must never take two
 * definitions of one name. */
#include "image/link_int.h"

#include <string.h>

Elf64_Sym ing_link_symbol(const ing_link *l, uint32_t sym) {
    const ing_link_object *o = &l->obj[l->sym[sym].object];
    return ing_elf_sym(&o->elf, sym - o->symbol);
}

const char *ing_link_symbol_name(const ing_link *l, uint32_t sym) {
    Elf64_Sym s = ing_link_symbol(l, sym);
    return ing_elf_sym_name(&l->obj[l->sym[sym].object].elf, &s);
}

uint32_t ing_link_symbol_section(const ing_link *l, uint32_t sym) {
    const ing_link_object *o = &l->obj[l->sym[sym].object];
    uint32_t at = ing_link_symbol(l, sym).st_shndx;
    return at == SHN_UNDEF || at >= o->elf.n_sections ? 0 : o->section + at;
}

static bool is_shared(const ing_link *l, uint32_t sym, bool defined) {
    Elf64_Sym s = ing_link_symbol(l, sym);
    return ELF64_ST_BIND(s.st_info) != STB_LOCAL &&
           (s.st_shndx != SHN_UNDEF) == defined && *ing_link_symbol_name(l, sym);
}

/* Definitions first, so that the order of the objects does not matter. */
static ing_status resolve(ing_link *l, ing_map *names, bool defined) {
    for (uint32_t i = 1; i < l->n_syms; i++) {
        if (!is_shared(l, i, defined)) continue;
        const char *name = ing_link_symbol_name(l, i);
        ing_hash128 key = ing_hash(name, strlen(name));
        uint32_t at = ing_map_get(names, key);
        if (!at && !ing_map_put(names, key, i))
            return ing_fail(l->e, ING_MEMORY, "out of memory while linking");
        if (!at) continue;
        if (defined || strcmp(name, ing_link_symbol_name(l, at)) != 0)
            return ing_fail(l->e, ING_FORMAT, "'%s' is defined twice", name);
        l->sym[i].is = at;
    }
    return ING_OK;
}

static ing_status open_objects(ing_link *l, const ing_object *objects) {
    uint64_t sections = 0, syms = 0;
    for (uint32_t k = 0; k < l->n_obj; k++) {
        ing_link_object *o = &l->obj[k];
        ING_TRY(ing_elf_open(&o->elf, objects[k].at, objects[k].len, l->e));
        if (o->elf.machine != l->obj[0].elf.machine)
            return ing_fail(l->e, ING_FORMAT, "objects are for different machines");
        o->section = (uint32_t)sections;
        o->symbol = (uint32_t)syms;
        sections += o->elf.n_sections;
        syms += o->elf.n_syms;
        if (sections > UINT32_MAX || syms > UINT32_MAX)
            return ing_fail(l->e, ING_FORMAT, "objects are too large to link");
    }
    l->n_syms = (uint32_t)syms;
    l->sec = ING_NEW_ARRAY(&l->arena, sections, ing_in_section);
    l->sym = ING_NEW_ARRAY(&l->arena, syms, ing_in_symbol);
    return l->arena.failed ? ing_fail(l->e, ING_MEMORY, "out of memory while linking")
                           : ING_OK;
}

ing_status ing_link_open(ing_link *l, const ing_object *objects, uint32_t n) {
    l->n_obj = n;
    l->obj = ING_NEW_ARRAY(&l->arena, n, ing_link_object);
    if (!l->obj) return ing_fail(l->e, ING_MEMORY, "out of memory while linking");
    ING_TRY(open_objects(l, objects));
    l->arch = ing_arch_find(l->obj[0].elf.machine);
    if (!l->arch)
        return ing_fail(l->e, ING_FORMAT,
                        "object is for machine %u, not x86-64 or "
                        "AArch64",
                        l->obj[0].elf.machine);
    for (uint32_t k = 0, i = 0; k < n; k++)
        for (uint32_t end = i + l->obj[k].elf.n_syms; i < end; i++)
            l->sym[i] = (ing_in_symbol){.object = k, .is = i};
    if (n == 1) return ING_OK;
    ing_map names;
    ing_map_init(&names);
    ing_status s = resolve(l, &names, true);
    if (s == ING_OK) s = resolve(l, &names, false);
    ing_map_fini(&names);
    return s;
}
