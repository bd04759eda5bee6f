/* The image's shape: sizes of all tables, addresses and file offsets of the output
 * sections, then the headers, symbol tables and contents. Called by link.c between scan
 * and apply. Every size is known before the one allocation; each table checks that it
 * ended where it was planned to end. Must never write without such a bound. */
#include "image/link_int.h"

#include <string.h>

static const struct out_info {
    const char *name;
    uint32_t type;
    uint32_t flags;
    uint8_t seg, align, entsize, link;
} out_info[ING_OUT_N] = {
#define X(name, text, type, flags, seg, align, entsize, link) \
    {text, type, flags, ING_SEG_##seg, align, entsize, ING_OUT_##link},
    ING_OUT_LIST(X)
#undef X
};

enum { N_DYNAMIC = 10 };

static uint32_t n_dynsyms(const ing_link *l) {
    return 2 + (l->label != NULL) + l->imports.len;
}

static uint32_t n_relative(const ing_link *l) {
    return l->n_abs + l->locals.len;
}

static const char *import_name(const ing_link *l, uint32_t k) {
    return ing_link_symbol_name(l, l->imports.at[k]);
}

/* Is symbol i worth a line in .symtab? Compiler temporaries are not, and the entry is
 * written apart. */
static bool keep_symbol(const ing_link *l, uint32_t i, Elf64_Sym *s,
                        const char **name) {
    *s = ing_link_symbol(l, i);
    uint32_t type = ELF64_ST_TYPE(s->st_info);
    if (i == l->entry || l->sec[ing_link_symbol_section(l, i)].out == ING_OUT_NULL ||
        (type != STT_NOTYPE && type != STT_OBJECT && type != STT_FUNC))
        return false;
    *name = ing_link_symbol_name(l, i);
    return **name && strncmp(*name, ".L", 2) != 0;
}

/* What objects share among them is nobody else's. */
static uint32_t kept_bind(const Elf64_Sym *s) {
    return ELF64_ST_VISIBILITY(s->st_other) == STV_HIDDEN ? STB_LOCAL
                                                          : ELF64_ST_BIND(s->st_info);
}

/* ---- layout --------------------------------------------------------------------------- */

static void size_dynamic(ing_link *l) {
    ing_out_section *o = l->out;
    uint64_t names = 0;
    for (uint32_t k = 0; k < l->imports.len; k++)
        names += strlen(import_name(l, k)) + 1;
    o[ING_OUT_HASH].size = 4ull * (3 + n_dynsyms(l));
    o[ING_OUT_DYNSYM].size = 24ull * n_dynsyms(l);
    o[ING_OUT_DYNSTR].size =
        1 + sizeof ING_ABI_ENTRY + (l->label ? strlen(l->label) + 1 : 0) + names;
    o[ING_OUT_RELA].size = 24ull * (n_relative(l) + l->imports.len);
    o[ING_OUT_IMPORTS].size = ING_IMAGE_HEAD + 16ull * n_relative(l) + names;
    o[ING_OUT_DYNAMIC].size = 16 * N_DYNAMIC;
    o[ING_OUT_STUBS].size = (uint64_t)l->arch->stub_size * l->stubs.len;
    o[ING_OUT_GOT].size = 8ull * (l->imports.len + l->locals.len);
}

static void size_symtab(ing_link *l) {
    uint64_t names = 1 + sizeof ING_ABI_ENTRY + (l->label ? strlen(l->label) + 1 : 0);
    for (uint32_t i = 1; i < l->n_syms; i++) {
        Elf64_Sym s;
        const char *name;
        if (!keep_symbol(l, i, &s, &name)) continue;
        l->n_kept_syms++;
        l->n_kept_locals += kept_bind(&s) == STB_LOCAL;
        names += strlen(name) + 1;
    }
    l->out[ING_OUT_SYMTAB].size = 24ull * (2 + (l->label != NULL) + l->n_kept_syms);
    l->out[ING_OUT_STRTAB].size = names;
    for (uint32_t k = 0; k < ING_OUT_N; k++)
        l->out[ING_OUT_SHSTRTAB].size += strlen(out_info[k].name) + 1;
}

static uint32_t count_phdrs(const ing_link *l) {
    uint32_t n = 3; /* DYNAMIC, imports, GNU_STACK */
    bool used[ING_SEG_N + 2] = {[ING_SEG_R] = true};
    for (uint32_t k = 1; k < ING_OUT_N; k++)
        if (l->out[k].size) used[out_info[k].seg] = true;
    for (uint32_t k = 0; k < ING_SEG_N; k++) n += used[k];
    return n + used[ING_SEG_W1]; /* GNU_RELRO */
}

/* Address and offset agree modulo the page size, so that the file can be mapped. A
 * segment of zeros alone takes no room in the file. */
static void start_segment(ing_image_seg *seg, bool zeros, uint64_t page, uint64_t *off,
                          uint64_t *vaddr) {
    *vaddr = ing_align_up(*vaddr, page);
    if (!zeros) {
        *off = ing_align_up(*off, ING_IMAGE_ALIGN);
        *vaddr += *off % page;
        seg->off = *off;
    }
    seg->vaddr = *vaddr;
}

ing_status ing_link_layout(ing_link *l) {
    size_dynamic(l);
    size_symtab(l);
    l->n_phdrs = count_phdrs(l);
    uint64_t off = sizeof(Elf64_Ehdr) + l->n_phdrs * sizeof(Elf64_Phdr), vaddr = off;
    l->seg[ING_SEG_R] = (ing_image_seg){.filesz = off, .memsz = off};
    for (uint32_t k = 1; k < ING_OUT_N; k++) {
        const struct out_info *info = &out_info[k];
        ing_out_section *o = &l->out[k];
        bool nobits = info->type == SHT_NOBITS;
        if (info->align > o->align) o->align = info->align;
        ing_image_seg *seg = info->seg < ING_SEG_N ? &l->seg[info->seg] : NULL;
        if (seg && o->size && !seg->memsz) {
            start_segment(seg, nobits, l->arch->page, &off, &vaddr);
        }
        if (!nobits && o->size) off = ing_align_up(off, o->align);
        if (seg && o->size) vaddr = ing_align_up(vaddr, o->align);
        o->off = off;
        o->vaddr = seg ? vaddr : 0;
        if (!nobits) off += o->size;
        if (seg && o->size) {
            vaddr += o->size;
            seg->memsz = vaddr - seg->vaddr;
            if (!nobits) seg->filesz = off - seg->off;
        }
        if (off > ING_IMAGE_MAX || vaddr > ING_IMAGE_MAX)
            return ing_fail(l->e, ING_FORMAT, "object is too large to link");
    }
    l->shoff = ing_align_up(off, 8);
    l->size = l->shoff + ING_OUT_N * sizeof(Elf64_Shdr);
    return ING_OK;
}

/* ---- emit ----------------------------------------------------------------------------- */

typedef struct cursor { /* fills one output section */
    uint8_t *at;
    uint64_t len, cap;
    bool overrun; /* sticky: the plan was wrong */
} cursor;

static cursor cursor_at(const ing_link *l, uint32_t out) {
    return (cursor){.at = l->image + l->out[out].off, .cap = l->out[out].size};
}

/* Returns where the bytes went, as an offset. */
static uint32_t put(cursor *c, const void *p, size_t n) {
    uint64_t at = c->len;
    if (c->overrun || n > c->cap - c->len) {
        c->overrun = true;
        return 0;
    }
    memcpy(c->at + at, p, n);
    c->len += n;
    return (uint32_t)at;
}

static uint32_t put_string(cursor *c, const char *s) {
    return put(c, s, strlen(s) + 1);
}

static void put_u32(cursor *c, uint32_t v) {
    put(c, &v, sizeof v);
}

static void put_u64(cursor *c, uint64_t v) {
    put(c, &v, sizeof v);
}

static ing_status ended(ing_link *l, const cursor *c, uint32_t out) {
    if (c->overrun || c->len != c->cap)
        return ing_fail(l->e, ING_INTERNAL, "linker: %s has %llu bytes, %llu planned",
                        out_info[out].name, (unsigned long long)c->len,
                        (unsigned long long)c->cap);
    return ING_OK;
}

static void emit_ehdr(ing_link *l) {
    Elf64_Ehdr h = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = l->obj[0].elf.machine,
        .e_version = EV_CURRENT,
        .e_entry = ing_link_address(l, l->entry),
        .e_phoff = sizeof h,
        .e_shoff = l->shoff,
        .e_ehsize = sizeof h,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = (uint16_t)l->n_phdrs,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = ING_OUT_N,
        .e_shstrndx = ING_OUT_SHSTRTAB,
    };
    memcpy(l->image, &h, sizeof h);
}

static void put_phdr(cursor *c, uint32_t type, uint32_t flags, const ing_image_seg *s,
                     uint64_t align) {
    Elf64_Phdr p = {
        .p_type = type,
        .p_flags = flags,
        .p_offset = s->off,
        .p_vaddr = s->vaddr,
        .p_paddr = s->vaddr,
        .p_filesz = s->filesz,
        .p_memsz = s->memsz,
        .p_align = align,
    };
    put(c, &p, sizeof p);
}

static void put_section_phdr(const ing_link *l, cursor *c, uint32_t type,
                             uint32_t out) {
    const ing_out_section *o = &l->out[out];
    ing_image_seg s = {
        .off = o->off, .vaddr = o->vaddr, .filesz = o->size, .memsz = o->size};
    put_phdr(c, type, PF_R, &s, o->align);
}

static ing_status emit_phdrs(ing_link *l) {
    static const uint32_t flags[ING_SEG_N] = {PF_R, PF_R | PF_X, PF_R | PF_W,
                                              PF_R | PF_W};
    cursor c = {.at = l->image + sizeof(Elf64_Ehdr),
                .cap = l->n_phdrs * sizeof(Elf64_Phdr)};
    for (uint32_t k = 0; k < ING_SEG_N; k++)
        if (l->seg[k].memsz) put_phdr(&c, PT_LOAD, flags[k], &l->seg[k], l->arch->page);
    put_section_phdr(l, &c, PT_DYNAMIC, ING_OUT_DYNAMIC);
    put_section_phdr(l, &c, ING_PT_IMPORTS, ING_OUT_IMPORTS);
    put_phdr(&c, PT_GNU_STACK, PF_R | PF_W, &(ing_image_seg){0}, 16);
    if (l->seg[ING_SEG_W1].memsz)
        put_phdr(&c, PT_GNU_RELRO, PF_R, &l->seg[ING_SEG_W1], 1);
    return ended(l, &c, ING_OUT_NULL);
}

static void put_symbol(cursor *c, uint32_t name, uint32_t bind, uint32_t type,
                       uint32_t section, uint64_t value, uint64_t size) {
    Elf64_Sym s = {
        .st_name = name,
        .st_info = (uint8_t)ELF64_ST_INFO(bind, type),
        .st_shndx = (uint16_t)section,
        .st_value = value,
        .st_size = size,
    };
    put(c, &s, sizeof s);
}

/* The entry under both its names. Profilers that find two symbols at one address, in either
 * table, keep the strong one (of two strong ones the longer): the label is for people. */
static void put_entry(ing_link *l, cursor *c, cursor *names) {
    uint64_t at = ing_link_address(l, l->entry);
    uint64_t size = ing_link_symbol(l, l->entry).st_size;
    put_symbol(c, put_string(names, ING_ABI_ENTRY), l->label ? STB_WEAK : STB_GLOBAL,
               STT_FUNC, ING_OUT_TEXT, at, size);
    if (l->label)
        put_symbol(c, put_string(names, l->label), STB_GLOBAL, STT_FUNC, ING_OUT_TEXT,
                   at, size);
}

static ing_status emit_dynsym(ing_link *l) {
    cursor c = cursor_at(l, ING_OUT_DYNSYM), names = cursor_at(l, ING_OUT_DYNSTR);
    put_string(&names, "");
    put_symbol(&c, 0, 0, 0, SHN_UNDEF, 0, 0);
    put_entry(l, &c, &names);
    for (uint32_t k = 0; k < l->imports.len; k++)
        put_symbol(&c, put_string(&names, import_name(l, k)), STB_GLOBAL, STT_NOTYPE,
                   SHN_UNDEF, 0, 0);
    ING_TRY(ended(l, &names, ING_OUT_DYNSTR));
    return ended(l, &c, ING_OUT_DYNSYM);
}

/* One bucket whose chain runs over all symbols: there are two to find. */
static ing_status emit_hash(ing_link *l) {
    cursor c = cursor_at(l, ING_OUT_HASH);
    uint32_t n = n_dynsyms(l);
    put_u32(&c, 1);
    put_u32(&c, n);
    put_u32(&c, 1);
    put_u32(&c, 0);
    for (uint32_t k = 1; k < n; k++) put_u32(&c, k + 1 < n ? k + 1 : 0);
    return ended(l, &c, ING_OUT_HASH);
}

static ing_status emit_dynamic(ing_link *l) {
    const ing_out_section *o = l->out;
    const uint64_t d[N_DYNAMIC][2] = {
        {DT_HASH, o[ING_OUT_HASH].vaddr},     {DT_STRTAB, o[ING_OUT_DYNSTR].vaddr},
        {DT_SYMTAB, o[ING_OUT_DYNSYM].vaddr}, {DT_STRSZ, o[ING_OUT_DYNSTR].size},
        {DT_SYMENT, sizeof(Elf64_Sym)},       {DT_RELA, o[ING_OUT_RELA].vaddr},
        {DT_RELASZ, o[ING_OUT_RELA].size},    {DT_RELAENT, sizeof(Elf64_Rela)},
        {DT_RELACOUNT, n_relative(l)},        {DT_NULL, 0},
    };
    cursor c = cursor_at(l, ING_OUT_DYNAMIC);
    put(&c, d, sizeof d);
    return ended(l, &c, ING_OUT_DYNAMIC);
}

/* Our own table and ld.so's, but for the relative slots: ing_link_relative. */
static ing_status emit_imports(ing_link *l) {
    const ing_out_section *eh = &l->out[ING_OUT_EH], *got = &l->out[ING_OUT_GOT];
    cursor c = cursor_at(l, ING_OUT_IMPORTS);
    uint64_t tables = ING_IMAGE_HEAD + 16ull * n_relative(l);
    put(&c, ING_IMAGE_MAGIC, 8);
    put_u32(&c, ING_IMAGE_VERSION);
    put_u32(&c, l->imports.len);
    put_u64(&c, got->vaddr);
    put_u32(&c, n_relative(l));
    put_u32(&c, (uint32_t)(c.cap - tables));
    put_u64(&c, eh->size ? eh->vaddr : 0);
    put_u64(&c, eh->size);
    c.len = tables;
    for (uint32_t k = 0; k < l->imports.len; k++) put_string(&c, import_name(l, k));
    ING_TRY(ended(l, &c, ING_OUT_IMPORTS));

    cursor r = cursor_at(l, ING_OUT_RELA);
    uint32_t first = n_dynsyms(l) - l->imports.len;
    r.len = 24ull * n_relative(l);
    for (uint32_t k = 0; k < l->imports.len; k++) {
        Elf64_Rela e = {.r_offset = got->vaddr + 8ull * k,
                        .r_info =
                            ELF64_R_INFO((uint64_t)first + k, l->arch->r_glob_dat)};
        put(&r, &e, sizeof e);
    }
    return ended(l, &r, ING_OUT_RELA);
}

void ing_link_relative(ing_link *l, uint64_t slot, uint64_t value) {
    uint32_t k = l->n_relative++;
    if (k >= n_relative(l)) return; /* the conductor compares the counts */
    uint8_t *ours = l->image + l->out[ING_OUT_IMPORTS].off + ING_IMAGE_HEAD + 16ull * k;
    memcpy(ours, &slot, 8);
    memcpy(ours + 8, &value, 8);
    Elf64_Rela r = {.r_offset = slot,
                    .r_info = ELF64_R_INFO(0, l->arch->r_relative),
                    .r_addend = (int64_t)value};
    memcpy(l->image + l->out[ING_OUT_RELA].off + 24ull * k, &r, sizeof r);
}

static void put_kept(ing_link *l, cursor *c, cursor *names, bool local) {
    for (uint32_t i = 1; i < l->n_syms; i++) {
        Elf64_Sym s;
        const char *name;
        if (!keep_symbol(l, i, &s, &name)) continue;
        uint32_t bind = kept_bind(&s);
        if ((bind == STB_LOCAL) != local) continue;
        put_symbol(c, put_string(names, name), bind, ELF64_ST_TYPE(s.st_info),
                   l->sec[ing_link_symbol_section(l, i)].out, ing_link_address(l, i),
                   s.st_size);
    }
}

static ing_status emit_symtab(ing_link *l) {
    cursor c = cursor_at(l, ING_OUT_SYMTAB), names = cursor_at(l, ING_OUT_STRTAB);
    put_string(&names, "");
    put_symbol(&c, 0, 0, 0, SHN_UNDEF, 0, 0);
    put_kept(l, &c, &names, true);
    put_entry(l, &c, &names);
    put_kept(l, &c, &names, false);
    ING_TRY(ended(l, &names, ING_OUT_STRTAB));
    return ended(l, &c, ING_OUT_SYMTAB);
}

static ing_status emit_shdrs(ing_link *l) {
    cursor c = {.at = l->image + l->shoff, .cap = ING_OUT_N * sizeof(Elf64_Shdr)};
    cursor names = cursor_at(l, ING_OUT_SHSTRTAB);
    for (uint32_t k = 0; k < ING_OUT_N; k++) {
        Elf64_Shdr s = {
            .sh_name = put_string(&names, out_info[k].name),
            .sh_type = out_info[k].type,
            .sh_flags = out_info[k].flags,
            .sh_addr = l->out[k].vaddr,
            .sh_offset = l->out[k].off,
            .sh_size = l->out[k].size,
            .sh_link = out_info[k].link,
            .sh_addralign = l->out[k].align,
            .sh_entsize = out_info[k].entsize,
        };
        if (k == ING_OUT_DYNSYM) s.sh_info = 1; /* the first symbol that is not local */
        if (k == ING_OUT_SYMTAB) s.sh_info = 1 + l->n_kept_locals;
        put(&c, &s, sizeof s);
    }
    ING_TRY(ended(l, &names, ING_OUT_SHSTRTAB));
    return ended(l, &c, ING_OUT_NULL);
}

static void emit_contents(ing_link *l, const ing_link_object *o) {
    for (uint32_t i = 1; i < o->elf.n_sections; i++) {
        const ing_in_section *in = &l->sec[o->section + i];
        Elf64_Shdr s = ing_elf_section(&o->elf, i);
        uint8_t out = o->section + i == l->comment ? ING_OUT_COMMENT : in->out;
        if (out == ING_OUT_NULL || s.sh_type == SHT_NOBITS || !s.sh_size) continue;
        memcpy(l->image + l->out[out].off + in->at, o->elf.at + s.sh_offset, s.sh_size);
    }
}

ing_status ing_link_emit(ing_link *l) {
    emit_ehdr(l);
    ING_TRY(emit_phdrs(l));
    ING_TRY(emit_hash(l));
    ING_TRY(emit_dynsym(l));
    ING_TRY(emit_imports(l));
    ING_TRY(emit_dynamic(l));
    for (uint32_t k = 0; k < l->n_obj; k++) emit_contents(l, &l->obj[k]);
    ING_TRY(emit_symtab(l));
    return emit_shdrs(l);
}
