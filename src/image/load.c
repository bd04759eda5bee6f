/* Loads an image: checks it whole, maps it (or copies it where a mapping may not be
 * executable), fills its GOT and makes what was filled read-only. Called by src/compile
 * with bytes that the store has verified, and robust without that: whatever the bytes
 * are, the answer is an image or ING_FORMAT. Must never read an offset, count or name
 * that ing_image_check has not bounded, and never makes a writable page executable that
 * came from a file.
 *
 * A file is checked through the mapping that becomes the image, so that what was checked
 * is what runs; map and fill then use every number of the plan as it stands. */
#include "image/image_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct ing_image {
    uint32_t refs;  /* changed with __atomic builtins only */
    bool frames;    /* .eh_frame is registered */
    ing_exec mem;   /* owned, or none: then the code is in the pack */
    ing_pack *pack; /* referenced; NULL: none */
    ing_task_fn entry;
    const uint8_t *eh; /* NULL: none */
    const uint8_t *code;
    uint64_t code_size, eh_size;
    ing_gdb_object *gdb; /* NULL: not told */
};

/* ---- check -------------------------------------------------------------------------- */

static ing_status bad(ing_err *e, const char *what) {
    return ing_fail(e, ING_FORMAT, "not a usable image: %s", what);
}

static bool within(uint64_t at, uint64_t size, uint64_t from, uint64_t len) {
    return at >= from && at - from <= len && size <= len - (at - from);
}

static ing_status check_header(const uint8_t *p, size_t len, uint16_t machine,
                               Elf64_Ehdr *h, ing_err *e) {
    if (len < sizeof *h) return bad(e, "too short");
    if (len > ING_IMAGE_MAX) return bad(e, "too large");
    memcpy(h, p, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_type != ET_DYN)
        return bad(e, "not an ELF64 shared object");
    if (h->e_machine != machine) return bad(e, "made for another machine");
    if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum == 0 || h->e_phnum > 16 ||
        !within(h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), 0, len))
        return bad(e, "program headers");
    return ING_OK;
}

/* Segments ascend, share no page, and lie in the file. */
static ing_status add_segment(ing_image_plan *plan, const Elf64_Phdr *ph, size_t len,
                              size_t page, ing_err *e) {
    if (plan->n_segs == sizeof plan->seg / sizeof *plan->seg)
        return bad(e, "too many segments");
    ing_image_seg s = {.vaddr = ph->p_vaddr,
                       .off = ph->p_offset,
                       .filesz = ph->p_filesz,
                       .memsz = ph->p_memsz,
                       .write = ph->p_flags & PF_W,
                       .exec = ph->p_flags & PF_X};
    if (!(ph->p_flags & PF_R) || (s.write && s.exec)) return bad(e, "protections");
    if (!within(s.off, s.filesz, 0, len) || s.memsz == 0 || s.filesz > s.memsz ||
        !within(s.vaddr, s.memsz, 0, ING_IMAGE_MAX))
        return bad(e, "a segment is out of bounds");
    if (!s.write && s.filesz != s.memsz) return bad(e, "a constant segment has a tail");
    if (s.vaddr % page != s.off % page) return bad(e, "a segment is misaligned");
    if (plan->n_segs == 0 && (s.vaddr || s.off || s.write || s.exec))
        return bad(e, "the first segment does not start the file");
    if (s.vaddr - s.vaddr % page < plan->span) return bad(e, "segments overlap");
    plan->span = ing_align_up(s.vaddr + s.memsz, page);
    plan->seg[plan->n_segs++] = s;
    return ING_OK;
}

static const ing_image_seg *segment_of(const ing_image_plan *plan, uint64_t at,
                                       uint64_t size) {
    for (uint32_t k = 0; k < plan->n_segs; k++)
        if (within(at, size, plan->seg[k].vaddr, plan->seg[k].memsz))
            return &plan->seg[k];
    return NULL;
}

static bool writable(const ing_image_plan *plan, uint64_t at, uint64_t size) {
    const ing_image_seg *s = segment_of(plan, at, size);
    return s && s->write;
}

static ing_status check_names(const ing_image_plan *plan, size_t len, ing_err *e) {
    size_t at = 0;
    for (uint32_t k = 0; k < plan->n_imports; k++) {
        size_t n = strnlen(plan->names + at, len - at);
        if (n == 0 || n == len - at || n > ING_IMAGE_MAX_NAME)
            return bad(e, "the name of an import");
        at += n + 1;
    }
    return at == len ? ING_OK : bad(e, "the names of the imports");
}

static ing_status check_imports(ing_image_plan *plan, const uint8_t *p, uint64_t size,
                                ing_err *e) {
    uint32_t version, n_names;
    if (size < ING_IMAGE_HEAD || memcmp(p, ING_IMAGE_MAGIC, 8) != 0)
        return bad(e, "no import table");
    memcpy(&version, p + 8, 4);
    memcpy(&plan->n_imports, p + 12, 4);
    memcpy(&plan->got, p + 16, 8);
    memcpy(&plan->n_relative, p + 24, 4);
    memcpy(&n_names, p + 28, 4);
    memcpy(&plan->eh, p + 32, 8);
    memcpy(&plan->eh_size, p + 40, 8);
    if (version != ING_IMAGE_VERSION) return bad(e, "format version");
    if (size != ING_IMAGE_HEAD + 16ull * plan->n_relative + n_names)
        return bad(e, "the size of the import table");
    plan->relative = p + ING_IMAGE_HEAD;
    plan->names = (const char *)plan->relative + 16ull * plan->n_relative;
    if (plan->n_imports &&
        (plan->got % 8 || !writable(plan, plan->got, 8ull * plan->n_imports)))
        return bad(e, "the GOT");
    for (uint32_t k = 0; k < plan->n_relative; k++) {
        uint64_t slot;
        memcpy(&slot, plan->relative + 16ull * k, 8);
        if (!writable(plan, slot, 8)) return bad(e, "a relative slot");
    }
    if (plan->eh_size &&
        (plan->eh_size < 4 || !within(plan->eh, plan->eh_size, 0, plan->seg[0].filesz)))
        return bad(e, ".eh_frame");
    return check_names(plan, n_names, e);
}

ing_status ing_image_check(const uint8_t *p, size_t len, uint16_t machine, size_t page,
                           ing_image_plan *out, ing_err *e) {
    Elf64_Ehdr h;
    Elf64_Phdr imports = {0};
    uint64_t relro = 0;
    memset(out, 0, sizeof *out);
    ING_TRY(check_header(p, len, machine, &h, e));
    for (uint32_t k = 0; k < h.e_phnum; k++) {
        Elf64_Phdr ph;
        memcpy(&ph, p + h.e_phoff + k * sizeof ph, sizeof ph);
        if (ph.p_type == PT_LOAD) ING_TRY(add_segment(out, &ph, len, page, e));
        if (ph.p_type == ING_PT_IMPORTS) imports = ph;
        if (ph.p_type == PT_GNU_RELRO) relro = ph.p_vaddr;
    }
    if (out->n_segs == 0) return bad(e, "no segments");
    for (uint32_t k = 0; k < out->n_segs; k++)
        out->seg[k].relro = out->seg[k].write && out->seg[k].vaddr == relro;
    const ing_image_seg *text = segment_of(out, h.e_entry, 1);
    if (!text || !text->exec) return bad(e, "the entry is not code");
    out->entry = h.e_entry;
    if (!within(imports.p_offset, imports.p_filesz, 0, out->seg[0].filesz))
        return bad(e, "the import table is out of bounds");
    return check_imports(out, p + imports.p_offset, imports.p_filesz, e);
}

/* ---- map ---------------------------------------------------------------------------- */

static uint64_t page_down(uint64_t v, size_t page) {
    return v - v % page;
}

typedef struct source { /* where the image's bytes are in a file */
    int fd;
    uint64_t at; /* a multiple of the page size */
} source;

/* Shows the file's bytes of a segment at its address. They are there already when
 * address and offset agree: changing the protection then takes 4 us, where mapping over
 * what is mapped takes 6 (Linux 6.18, Zen 3; docs/internals/images.md). */
static bool map_part(ing_exec *x, const ing_image_seg *s, uint64_t start, uint64_t end,
                     const source *f, size_t page, ing_exec_prot prot) {
    if (s->off == s->vaddr) return ing_exec_protect(x, start, end - start, prot);
    return ing_exec_commit(x, start, end - start, f->fd,
                           f->at + page_down(s->off, page), prot);
}

/* A writable segment: file bytes first, then zeros. The file goes on after the segment
 * (symbols, the store's trailer), so the rest of its last page is cleared. */
static bool map_writable(ing_exec *x, const ing_image_seg *s, const source *f,
                         size_t page) {
    uint64_t start = page_down(s->vaddr, page);
    uint64_t end = ing_align_up(s->vaddr + s->memsz, page);
    uint64_t split = s->filesz ? ing_align_up(s->vaddr + s->filesz, page) : start;
    if (split > start) {
        if (!map_part(x, s, start, split, f, page, ING_EXEC_RW)) return false;
        uint64_t tail = s->vaddr + s->filesz;
        memset(x->base + tail, 0, split - tail);
    }
    return end == split || ing_exec_commit(x, split, end - split, -1, 0, ING_EXEC_RW);
}

/* `x` shows the image from its start, read-only: the first segment is in place. */
static bool map_file(ing_exec *x, const ing_image_plan *plan, const source *f,
                     size_t page) {
    for (uint32_t k = 1; k < plan->n_segs; k++) {
        const ing_image_seg *s = &plan->seg[k];
        uint64_t start = page_down(s->vaddr, page);
        uint64_t end = ing_align_up(s->vaddr + s->memsz, page);
        if (!(s->write ? map_writable(x, s, f, page)
                       : map_part(x, s, start, end, f, page,
                                  s->exec ? ING_EXEC_RX : ING_EXEC_R)))
            return false;
    }
    return true;
}

/* Into anonymous memory: for images that are in no file, and for noexec mounts. */
static bool map_copy(ing_exec *x, const ing_image_plan *plan, const uint8_t *p,
                     size_t page) {
    if (!ing_exec_reserve(x, plan->span, -1, 0)) return false;
    for (uint32_t k = 0; k < plan->n_segs; k++) {
        const ing_image_seg *s = &plan->seg[k];
        if (s->filesz) memcpy(x->base + s->vaddr, p + s->off, s->filesz);
        if (s->write) continue;
        char *code = (char *)x->base + s->vaddr;
        if (s->exec) __builtin___clear_cache(code, code + s->memsz);
        uint64_t start = page_down(s->vaddr, page);
        uint64_t end = ing_align_up(s->vaddr + s->memsz, page);
        if (!ing_exec_protect(x, start, end - start,
                              s->exec ? ING_EXEC_RX : ING_EXEC_R))
            return false;
    }
    return true;
}

static ing_status os_error(ing_err *e, int why, const char *what) {
    return ing_fail(e, why == ENOMEM ? ING_MEMORY : ING_OS, "cannot %s an image: %s",
                    what, strerror(why));
}

/* ---- fill --------------------------------------------------------------------------- */

static ing_status fill(ing_exec *x, const ing_image_plan *plan, size_t page,
                       ing_err *e) {
    for (uint32_t k = 0; k < plan->n_relative; k++) {
        uint64_t slot, value;
        memcpy(&slot, plan->relative + 16ull * k, 8);
        memcpy(&value, plan->relative + 16ull * k + 8, 8);
        value += (uint64_t)(uintptr_t)x->base;
        memcpy(x->base + slot, &value, 8);
    }
    const char *name = plan->names;
    for (uint32_t k = 0; k < plan->n_imports; k++, name += strlen(name) + 1) {
        void *f = ing_image_import(name);
        if (!f)
            return ing_fail(e, ING_FORMAT,
                            "an image imports '%s', which this machine does not have",
                            name);
        memcpy(x->base + plan->got + 8ull * k, &f, 8);
    }
    for (uint32_t k = 0; k < plan->n_segs; k++) {
        const ing_image_seg *s = &plan->seg[k];
        if (!s->relro) continue;
        uint64_t start = page_down(s->vaddr, page);
        uint64_t end = ing_align_up(s->vaddr + s->memsz, page);
        if (!ing_exec_protect(x, start, end - start, ING_EXEC_R))
            return os_error(e, errno, "protect");
    }
    return ING_OK;
}

/* ---- one image -------------------------------------------------------------------------- */

static void finish(ing_image *i, const ing_image_plan *plan, const uint8_t *base) {
    const uint8_t *entry = base + plan->entry;
    memcpy(&i->entry, &entry, sizeof entry); /* data pointer to function pointer */
    if (plan->eh_size) i->eh = base + plan->eh;
    i->eh_size = plan->eh_size;
    for (uint32_t k = 0; k < plan->n_segs; k++) {
        if (!plan->seg[k].exec) continue;
        i->code = base + plan->seg[k].vaddr;
        i->code_size = plan->seg[k].memsz;
    }
}

/* From bytes that are not, or may not be, mapped as code. */
static ing_status load_copy(ing_image *i, const uint8_t *p, size_t len, ing_err *e) {
    ing_image_plan plan;
    size_t page = ing_os_page();
    ING_TRY(ing_image_check(p, len, ING_IMAGE_HOST, page, &plan, e));
    if (!map_copy(&i->mem, &plan, p, page)) return os_error(e, errno, "copy");
    ING_TRY(fill(&i->mem, &plan, page, e));
    finish(i, &plan, i->mem.base);
    return ING_OK;
}

/* Bytes past the end of a file are a signal, not an error: look before reading. */
static ing_status check_file(int fd, size_t len, ing_err *e) {
    struct stat st;
    if (fstat(fd, &st) != 0) return os_error(e, errno, "stat");
    if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size < len)
        return bad(e, "the file is shorter than the image");
    return ING_OK;
}

/* The file is mapped read-only and checked through that very mapping, which becomes the
 * image: `x` may show it from its start already. A .bss may need more addresses than the
 * file has bytes: then once again. */
static ing_status reserve_file(ing_exec *x, const source *f, size_t len, size_t page,
                               ing_image_plan *plan, ing_err *e) {
    uint64_t want = ing_align_up(len, page);
    bool there = x->base && x->len >= want;
    for (int round = 0; round < 2; round++) {
        if (!there) {
            ing_exec_free(x);
            if (!ing_exec_reserve(x, want, f->fd, f->at)) return ING_DECLINED;
        }
        there = false;
        ING_TRY(ing_image_check(x->base, len, ING_IMAGE_HOST, page, plan, e));
        if (plan->span <= want) return ING_OK;
        want = plan->span;
    }
    return bad(e, "it changes while it is loaded");
}

/* May the same bytes work in anonymous memory? EPERM: a noexec mount. EACCES: the same,
 * or a security policy. ENODEV: a file system that cannot map. */
static bool only_here(int why) {
    return why == EPERM || why == EACCES || why == ENODEV;
}

static ing_status load_file(ing_image *i, const source *f, const uint8_t *data,
                            size_t len, ing_err *e) {
    ing_image_plan plan;
    size_t page = ing_os_page();
    if (len > ING_IMAGE_MAX) return bad(e, "too large");
    ing_status s = reserve_file(&i->mem, f, len, page, &plan, e);
    if (s == ING_DECLINED) /* not mappable at all */
        return data && only_here(errno) ? load_copy(i, data, len, e)
                                        : os_error(e, errno, "map");
    if (s != ING_OK) return s;
    if (!map_file(&i->mem, &plan, f, page)) {
        int why = errno;
        if (!only_here(why)) return os_error(e, why, "map");
        ing_exec view = {0}; /* afresh: the first may have parts of the image over it */
        ing_exec_free(&i->mem);
        if (!ing_exec_reserve(&view, len, f->fd, f->at))
            return os_error(e, errno, "map");
        s = load_copy(i, view.base, len, e);
        ing_exec_free(&view);
        return s;
    }
    ING_TRY(fill(&i->mem, &plan, page, e));
    finish(i, &plan, i->mem.base);
    return ING_OK;
}

/* ---- from a pack ------------------------------------------------------------------------- */

enum { EXEC_UNKNOWN, EXEC_ALLOWED, EXEC_REFUSED };

/* The first image of a pack makes all of them executable, and whoever comes second does the
 * same again at worst. */
static bool may_run(ing_pack_code *code) {
    uint32_t state = __atomic_load_n(&code->exec, __ATOMIC_ACQUIRE);
    if (state == EXEC_UNKNOWN) {
        ing_exec all = {code->base, code->size};
        bool ok = ing_exec_protect(&all, 0, all.len, ING_EXEC_RX);
        state = ok ? EXEC_ALLOWED : EXEC_REFUSED;
        __atomic_store_n(&code->exec, state, __ATOMIC_RELEASE);
    }
    return state == EXEC_ALLOWED;
}

/* Nothing to fill, and every byte at the distance that the code expects. */
static bool runs_in_place(const ing_image_plan *plan, const uint8_t *p, size_t len,
                          size_t page) {
    for (uint32_t k = 0; k < plan->n_segs; k++)
        if (plan->seg[k].write || plan->seg[k].off != plan->seg[k].vaddr) return false;
    return (uintptr_t)p % page == 0 && plan->span <= ing_align_up(len, page) &&
           plan->n_imports == 0 && plan->n_relative == 0;
}

static ing_status load_packed(ing_image *i, ing_pack *pack, const uint8_t *p,
                              size_t len, ing_err *e) {
    ing_pack_code *code = ing_pack_code_of(pack);
    ing_image_plan plan;
    size_t page = ing_os_page();
    ING_TRY(ing_image_check(p, len, ING_IMAGE_HOST, page, &plan, e));
    if (!may_run(code)) return load_copy(i, p, len, e);
    if (runs_in_place(&plan, p, len, page)) {
        finish(i, &plan, p);
        i->pack = ing_pack_ref(pack);
        return ING_OK;
    }
    source f = {code->fd, code->at + (uint64_t)(p - code->base)};
    return f.at % page ? load_copy(i, p, len, e) : load_file(i, &f, p, len, e);
}

/* ---- the interface ----------------------------------------------------------------------- */

static ing_image *image_new(ing_err *e) {
    ing_image *i = ing_calloc(1, sizeof *i);
    if (!i)
        ing_fail(e, ING_MEMORY, "out of memory while loading an image");
    else
        i->refs = 1;
    return i;
}

/* Hands out what was loaded, or frees it. */
static ing_status ended(ing_image *i, ing_status s, ing_image **out) {
    if (s == ING_OK)
        *out = i;
    else
        ing_image_unref(i);
    return s;
}

ing_status ing_image_load(int fd, const uint8_t *data, size_t len, ing_image **out,
                          ing_err *e) {
    *out = NULL;
    if (len == 0 || (fd < 0 && !data)) return bad(e, "empty");
    if (fd >= 0) ING_TRY(check_file(fd, len, e));
    ing_image *i = image_new(e);
    if (!i) return ING_MEMORY;
    return ended(i,
                 fd < 0 ? load_copy(i, data, len, e)
                        : load_file(i, &(source){fd, 0}, data, len, e),
                 out);
}

ing_status ing_image_take(int fd, void *map, size_t map_len, size_t len,
                          ing_image **out, ing_err *e) {
    ing_exec mem = {map, ing_align_up(map_len, ing_os_page())};
    *out = NULL;
    ing_image *i = image_new(e);
    if (!i) {
        ing_exec_free(&mem);
        return ING_MEMORY;
    }
    i->mem = mem;
    return ended(i, load_file(i, &(source){fd, 0}, NULL, len, e), out);
}

static ing_status take_packed(ing_entry *entry, ing_image **out, ing_err *e) {
    *out = NULL;
    ing_image *i = image_new(e);
    if (!i) return ING_MEMORY;
    return ended(i, load_packed(i, entry->pack, entry->data, entry->len, e), out);
}

ing_status ing_image_of_entry(ing_entry *entry, ing_image **out, ing_err *e) {
    ing_status s;
    if (entry->pack) {
        s = take_packed(entry, out, e);
    } else if (entry->map) {
        s = ing_image_take(entry->fd, entry->map, entry->map_len, entry->len, out, e);
        entry->map = NULL;
    } else {
        s = ing_image_load(-1, entry->data, entry->len, out, e);
    }
    ing_entry_fini(entry);
    return s;
}

/* libgcc's registry of unwind tables, which backtrace() and C++ exceptions consult. */
void __register_frame(void *begin);
void __deregister_frame(void *begin);

bool ing_image_register_debug(ing_image *i, const ing_image_origin *from) {
    if (!i->eh) return false;
    if (__atomic_exchange_n(&i->frames, true, __ATOMIC_ACQ_REL)) return true;
    __register_frame((void *)i->eh);
    ing_gdb_code code = {.code = i->code,
                         .eh = i->eh,
                         .code_size = i->code_size,
                         .eh_size = i->eh_size,
                         .from = from};
    memcpy(&code.entry, &i->entry, sizeof i->entry);
    i->gdb = ing_gdb_add(&code);
    return true;
}

ing_image *ing_image_ref(ing_image *i) {
    __atomic_fetch_add(&i->refs, 1, __ATOMIC_RELAXED);
    return i;
}

void ing_image_unref(ing_image *i) {
    if (!i || __atomic_fetch_sub(&i->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
    if (i->frames) __deregister_frame((void *)i->eh);
    ing_gdb_remove(i->gdb);
    ing_exec_free(&i->mem);
    ing_pack_unref(i->pack);
    ing_free(i);
}

ing_task_fn ing_image_entry(const ing_image *i) {
    return i->entry;
}
