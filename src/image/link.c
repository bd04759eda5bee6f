/* Links relocatable objects from LLVM into an image (format: image_int.h): one, or the parts
 * of a long module. Called by src/compile after helpers answered, with no lock held.
 *
 *   resolve   symbols that another object defines                     (resolve.c)
 *   collect   each section of an object gets a place in an output section
 *   scan      each relocation is checked; imports, stubs and GOT slots are counted
 *   layout    every output section gets its address and file offset   (emit.c)
 *   emit      one allocation; headers, tables and contents            (emit.c)
 *   apply     relocations are computed and written
 *
 * Same objects, same bytes: order is their own, nothing else is read. Must never
 * read outside an object, whatever it says: elf.c has checked its headers and symbols,
 * scan checks each relocation before apply looks at it. */
#include "image/link_int.h"

#include <string.h>

enum { MAX_COMMENT = 1024 };

/* ---- collect ------------------------------------------------------------------------ */

static bool starts_with(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The output section for an allocated section of the object. */
static ing_status classify(ing_link *l, const ing_elf *elf, const Elf64_Shdr *s,
                           uint8_t *out) {
    const char *name = ing_elf_section_name(elf, s);
    *out = ING_OUT_NULL;
    if (s->sh_type == SHT_NOTE)
        return ING_OK; /* .note.gnu.property: not ours to keep */
    if (s->sh_flags & (SHF_TLS | SHF_COMPRESSED))
        return ing_fail(l->e, ING_FORMAT, "section %s: thread-local or compressed",
                        name);
    if (s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY ||
        starts_with(name, ".ctors") || starts_with(name, ".dtors"))
        return ing_fail(l->e, ING_FORMAT, "section %s: nothing would run it", name);
    bool write = s->sh_flags & SHF_WRITE, exec = s->sh_flags & SHF_EXECINSTR;
    bool unwind = s->sh_type == SHT_X86_64_UNWIND && elf->machine == EM_X86_64;
    if (s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOBITS && !unwind)
        return ing_fail(l->e, ING_FORMAT, "section %s: type %#x is not supported", name,
                        s->sh_type);
    if (exec && (write || s->sh_type == SHT_NOBITS))
        return ing_fail(l->e, ING_FORMAT, "section %s: writable or empty code", name);
    if (exec)
        *out = ING_OUT_TEXT;
    else if (write && s->sh_type == SHT_NOBITS)
        *out = ING_OUT_BSS;
    else if (s->sh_type == SHT_NOBITS)
        return ing_fail(l->e, ING_FORMAT, "section %s: constant without bytes", name);
    else if (write)
        *out = starts_with(name, ".data.rel.ro") ? ING_OUT_RELRO : ING_OUT_DATA;
    else
        *out = strcmp(name, ".eh_frame") == 0 ? ING_OUT_EH : ING_OUT_RODATA;
    return ING_OK;
}

/* Appends `size` bytes to an output section; *at is where they go. */
static ing_status append(ing_link *l, uint8_t out, uint64_t size, uint64_t align,
                         uint64_t *at) {
    ing_out_section *o = &l->out[out];
    if (align > o->align) o->align = align;
    *at = ing_align_up(o->size, align ? align : 1);
    if (size > ING_IMAGE_MAX || *at > ING_IMAGE_MAX - size)
        return ing_fail(l->e, ING_FORMAT, "object is too large to link");
    o->size = *at + size;
    return ING_OK;
}

/* Who made the object, and for which machine: recorded, not keyed (R18). Copied, but no
 * section of the image: nothing may refer to it. */
static bool is_comment(const ing_elf *elf, const Elf64_Shdr *s) {
    return s->sh_type == SHT_PROGBITS && !(s->sh_flags & SHF_ALLOC) &&
           s->sh_size <= MAX_COMMENT &&
           strcmp(ing_elf_section_name(elf, s), ".comment") == 0;
}

static ing_status collect(ing_link *l, const ing_link_object *o) {
    for (uint32_t i = 1; i < o->elf.n_sections; i++) {
        Elf64_Shdr s = ing_elf_section(&o->elf, i);
        ing_in_section *in = &l->sec[o->section + i];
        if (o == l->obj && is_comment(&o->elf, &s)) {
            l->comment = o->section + i;
            l->out[ING_OUT_COMMENT].size = s.sh_size;
        }
        if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NULL) continue;
        ING_TRY(classify(l, &o->elf, &s, &in->out));
        if (in->out == ING_OUT_NULL) continue;
        uint64_t end = l->out[in->out].size;
        ING_TRY(append(l, in->out, s.sh_size, s.sh_addralign, &in->at));
        /* It would read as the end of the list. */
        if (in->out == ING_OUT_EH && in->at != end)
            return ing_fail(l->e, ING_FORMAT, "padding between two .eh_frame sections");
    }
    return ING_OK;
}

static ing_status collect_all(ing_link *l) {
    uint64_t end;
    for (uint32_t k = 0; k < l->n_obj; k++) ING_TRY(collect(l, &l->obj[k]));
    return l->out[ING_OUT_EH].size ? append(l, ING_OUT_EH, 4, 4, &end) : ING_OK;
}

/* The one global symbol that the object of every task defines. */
static ing_status find_entry(ing_link *l) {
    for (uint32_t i = 1; i < l->n_syms; i++) {
        Elf64_Sym s = ing_link_symbol(l, i);
        uint32_t at = ing_link_symbol_section(l, i);
        if (!at || ELF64_ST_BIND(s.st_info) == STB_LOCAL ||
            strcmp(ing_link_symbol_name(l, i), ING_ABI_ENTRY) != 0)
            continue;
        const ing_link_object *o = &l->obj[l->sym[i].object];
        if (l->sec[at].out != ING_OUT_TEXT ||
            s.st_value >= ing_elf_section(&o->elf, s.st_shndx).sh_size)
            return ing_fail(l->e, ING_FORMAT, "'" ING_ABI_ENTRY "' is not code");
        l->entry = i;
        return ING_OK;
    }
    return ing_fail(l->e, ING_FORMAT, "object does not define '" ING_ABI_ENTRY "'");
}

/* ---- scan ----------------------------------------------------------------------------- */

static ing_status no_memory(ing_link *l) {
    return ing_fail(l->e, ING_MEMORY, "out of memory while linking");
}

static ing_status need_import(ing_link *l, uint32_t sym) {
    if (l->sym[sym].import) return ING_OK;
    const char *name = ing_link_symbol_name(l, sym);
    if (!*name || !ing_image_import(name))
        return ing_fail(l->e, ING_COMPILE,
                        "the compiled code needs '%s', which is not a function that "
                        "images may import",
                        *name ? name : "a symbol without a name");
    if (!ing_vec_push(&l->imports, sym)) return no_memory(l);
    l->sym[sym].import = l->imports.len;
    return ING_OK;
}

static ing_status need_stub(ing_link *l, uint32_t sym) {
    ING_TRY(need_import(l, sym));
    if (l->sym[sym].stub) return ING_OK;
    if (!ing_vec_push(&l->stubs, sym)) return no_memory(l);
    l->sym[sym].stub = l->stubs.len;
    return ING_OK;
}

static ing_status need_local_slot(ing_link *l, uint32_t sym) {
    if (l->sym[sym].slot) return ING_OK;
    if (!ing_vec_push(&l->locals, sym)) return no_memory(l);
    l->sym[sym].slot = l->locals.len;
    return ING_OK;
}

/* A symbol that a relocation may name: imported or in a section that we keep. */
static ing_status check_target(ing_link *l, const ing_reloc *r, uint32_t sym,
                               bool *undefined) {
    *undefined = ing_link_symbol(l, sym).st_shndx == SHN_UNDEF;
    if (*undefined ? sym == l->obj[l->sym[sym].object].symbol
                   : l->sec[ing_link_symbol_section(l, sym)].out == ING_OUT_NULL)
        return ing_fail(l->e, ING_FORMAT,
                        "relocation %s names symbol %u '%s', which "
                        "has no place in an image",
                        r->name, sym, ing_link_symbol_name(l, sym));
    bool direct = r->what == ING_RELOC_PC || r->what == ING_RELOC_PAGE ||
                  r->what == ING_RELOC_LO12 || r->what == ING_RELOC_ABS;
    if (*undefined && direct)
        return ing_fail(l->e, ING_FORMAT,
                        "relocation %s takes the address of '%s' directly; imports are "
                        "reached through the GOT only (compile as PIC)",
                        r->name, ing_link_symbol_name(l, sym));
    return ING_OK;
}

static ing_status scan_one(ing_link *l, const ing_site *at) {
    bool undefined;
    if (at->reloc->what == ING_RELOC_NONE) return ING_OK;
    if (at->reloc->what == ING_RELOC_REFUSE)
        return ing_fail(l->e, ING_FORMAT,
                        "relocation %s needs a 32-bit address; compile as "
                        "position-independent code",
                        at->reloc->name);
    ING_TRY(check_target(l, at->reloc, at->sym, &undefined));
    switch ((ing_reloc_what)at->reloc->what) {
    case ING_RELOC_CALL: return undefined ? need_stub(l, at->sym) : ING_OK;
    case ING_RELOC_GOT_PAGE:
    case ING_RELOC_GOT_LO12:
        if (at->addend)
            return ing_fail(l->e, ING_FORMAT, "relocation %s has an addend",
                            at->reloc->name);
        /* fallthrough */
    case ING_RELOC_GOT:
        return undefined ? need_import(l, at->sym) : need_local_slot(l, at->sym);
    case ING_RELOC_ABS:
        if (at->out != ING_OUT_RELRO && at->out != ING_OUT_DATA)
            return ing_fail(l->e, ING_FORMAT,
                            "relocation %s needs an absolute address in read-only %s",
                            at->reloc->name, at->out == ING_OUT_TEXT ? "code" : "data");
        l->n_abs++;
        return ING_OK;
    default: return ING_OK;
    }
}

/* Decodes and bounds-checks entry k of a relocation section. */
static ing_status site(ing_link *l, const ing_link_object *o, const Elf64_Shdr *rs,
                       uint64_t k, ing_site *out) {
    Elf64_Shdr target = ing_elf_section(&o->elf, rs->sh_info);
    Elf64_Rela r = ing_elf_rela(&o->elf, rs, k);
    out->reloc = ing_reloc_find(l->arch, ELF64_R_TYPE(r.r_info));
    if (!out->reloc)
        return ing_fail(l->e, ING_FORMAT, "relocation type %u is not supported",
                        (unsigned)ELF64_R_TYPE(r.r_info));
    const ing_in_section *in = &l->sec[o->section + rs->sh_info];
    uint32_t sym = ELF64_R_SYM(r.r_info);
    out->addend = r.r_addend;
    out->out = in->out;
    uint32_t width = ing_reloc_width(out->reloc);
    if (sym >= o->elf.n_syms || r.r_offset > target.sh_size ||
        width > target.sh_size - r.r_offset || target.sh_type == SHT_NOBITS)
        return ing_fail(l->e, ING_FORMAT, "relocation %s is outside its section",
                        out->reloc->name);
    out->sym = l->sym[o->symbol + sym].is;
    out->at = in->at + r.r_offset;
    return ING_OK;
}

typedef ing_status site_fn(ing_link *, const ing_site *);

static ing_status each_site_of(ing_link *l, const ing_link_object *o, site_fn *visit) {
    for (uint32_t i = 1; i < o->elf.n_sections; i++) {
        Elf64_Shdr rs = ing_elf_section(&o->elf, i);
        if (rs.sh_type == SHT_REL && rs.sh_info < o->elf.n_sections &&
            l->sec[o->section + rs.sh_info].out != ING_OUT_NULL)
            return ing_fail(l->e, ING_FORMAT, "relocations without addends");
        if (rs.sh_type != SHT_RELA ||
            l->sec[o->section + rs.sh_info].out == ING_OUT_NULL)
            continue;
        if (rs.sh_link != o->elf.symtab)
            return ing_fail(l->e, ING_FORMAT,
                            "relocations name an unknown symbol table");
        for (uint64_t k = 0; k < rs.sh_size / sizeof(Elf64_Rela); k++) {
            ing_site s;
            ING_TRY(site(l, o, &rs, k, &s));
            ING_TRY(visit(l, &s));
        }
    }
    return ING_OK;
}

/* Every relocation of the sections that we keep, in the objects' order. */
static ing_status each_site(ing_link *l, site_fn *visit) {
    for (uint32_t k = 0; k < l->n_obj; k++) ING_TRY(each_site_of(l, &l->obj[k], visit));
    return ING_OK;
}

/* ---- apply -------------------------------------------------------------------------- */

uint64_t ing_link_address(const ing_link *l, uint32_t sym) {
    const ing_in_section *in = &l->sec[ing_link_symbol_section(l, sym)];
    return l->out[in->out].vaddr + in->at + ing_link_symbol(l, sym).st_value;
}

/* Imported slots come first, then those of symbols of our own. */
static uint64_t slot_address(const ing_link *l, uint32_t sym) {
    uint32_t k = l->sym[sym].import ? l->sym[sym].import - 1
                                    : l->imports.len + l->sym[sym].slot - 1;
    return l->out[ING_OUT_GOT].vaddr + 8ull * k;
}

static uint64_t call_address(const ing_link *l, uint32_t sym) {
    return l->sym[sym].stub ? l->out[ING_OUT_STUBS].vaddr +
                                  (uint64_t)l->arch->stub_size * (l->sym[sym].stub - 1)
                            : ing_link_address(l, sym);
}

static uint64_t page_of(uint64_t a) {
    return a & ~0xfffull;
}

static ing_status apply_one(ing_link *l, const ing_site *at) {
    const ing_out_section *o = &l->out[at->out];
    uint64_t p = o->vaddr + at->at, a = (uint64_t)at->addend, v = 0;
    switch ((ing_reloc_what)at->reloc->what) {
    case ING_RELOC_NONE:
    case ING_RELOC_REFUSE: return ING_OK;
    case ING_RELOC_PC: v = ing_link_address(l, at->sym) + a - p; break;
    case ING_RELOC_CALL: v = call_address(l, at->sym) + a - p; break;
    case ING_RELOC_GOT: v = slot_address(l, at->sym) + a - p; break;
    case ING_RELOC_ABS:
        v = ing_link_address(l, at->sym) + a;
        ing_link_relative(l, p, v);
        break;
    case ING_RELOC_PAGE:
        v = page_of(ing_link_address(l, at->sym) + a) - page_of(p);
        break;
    case ING_RELOC_LO12: v = (ing_link_address(l, at->sym) + a) & 0xfff; break;
    case ING_RELOC_GOT_PAGE: v = page_of(slot_address(l, at->sym)) - page_of(p); break;
    case ING_RELOC_GOT_LO12: v = slot_address(l, at->sym) & 0xfff; break;
    }
    if (!ing_reloc_place(at->reloc, l->image + o->off + at->at, (int64_t)v))
        return ing_fail(l->e, ING_FORMAT, "relocation %s: %lld does not fit",
                        at->reloc->name, (long long)v);
    return ING_OK;
}

static ing_status write_stubs_and_slots(ing_link *l) {
    const ing_out_section *o = &l->out[ING_OUT_STUBS];
    for (uint32_t k = 0; k < l->stubs.len; k++) {
        uint64_t at = (uint64_t)k * l->arch->stub_size;
        if (!ing_stub_write(l->arch, l->image + o->off + at, o->vaddr + at,
                            slot_address(l, l->stubs.at[k])))
            return ing_fail(l->e, ING_FORMAT, "the GOT is out of reach");
    }
    for (uint32_t k = 0; k < l->locals.len; k++)
        ing_link_relative(l, slot_address(l, l->locals.at[k]),
                          ing_link_address(l, l->locals.at[k]));
    return ING_OK;
}

/* ---- the conductor ------------------------------------------------------------------ */

static ing_status link_steps(ing_link *l, ing_bytes *out) {
    ING_TRY(collect_all(l));
    ING_TRY(find_entry(l));
    ING_TRY(each_site(l, scan_one));
    ING_TRY(ing_link_layout(l));
    if (!ing_bytes_reserve(out, l->size)) return no_memory(l);
    l->image = out->at + out->len;
    memset(l->image, 0, l->size + 1);
    ING_TRY(ing_link_emit(l));
    ING_TRY(each_site(l, apply_one));
    ING_TRY(write_stubs_and_slots(l));
    if (l->n_relative != l->n_abs + l->locals.len)
        return ing_fail(l->e, ING_INTERNAL, "linker: %u relative slots, %u planned",
                        l->n_relative, l->n_abs + l->locals.len);
    out->len += l->size;
    return ING_OK;
}

ing_status ing_image_link(const ing_object *objects, uint32_t n,
                          const char *symbol_label, ing_bytes *out, ing_err *e) {
    ing_link l = {.e = e, .label = symbol_label};
    if (l.label && (strcmp(l.label, ING_ABI_ENTRY) == 0 ||
                    strnlen(l.label, ING_IMAGE_MAX_NAME + 1) > ING_IMAGE_MAX_NAME))
        l.label = NULL;
    ing_arena_init(&l.arena);
    ing_status s = ing_link_open(&l, objects, n);
    if (s == ING_OK) s = link_steps(&l, out);
    if (s != ING_OK && out->at)
        out->at[out->len] = 0; /* as if nothing had been written */
    ing_vec_fini(&l.imports);
    ing_vec_fini(&l.stubs);
    ing_vec_fini(&l.locals);
    ing_arena_fini(&l.arena);
    return s;
}
