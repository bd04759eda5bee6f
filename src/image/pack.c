/* Writes a pack (format: store/pack.h): the entries of a cache directory in one file that is
 * an ELF ET_DYN as well, with a symbol table for the functions of all its images, so that
 * perf, gdb and objdump name code that runs from it. Called by `ingot cache seal` and by the
 * process that packs a cache in the background; never on the way of a hit.
 *
 *   collect   which entries there are: files, then what an older pack has
 *   entries   images first, then the rest; what is damaged is left out
 *   tables    index, fans, symbols, section headers
 *   end       the tail; the header last, when all sizes are known
 *
 * One entry is in memory at a time. Same entries, same bytes. */
#include "image/image_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SEC_NULL, SEC_TEXT, SEC_ENTRIES, SEC_SYMTAB, SEC_STRTAB, SEC_SHSTRTAB, SEC_N };
enum { MAX_SYMBOLS_BYTES = 256 << 20, N_PHDRS = 3 };

typedef struct writing {
    ing_store *from;
    int fd;
    ing_err *e;
    ing_pack_report *report;
    ing_vec(ing_pack_item) items; /* found; then those written, with their places */
    ing_bytes symtab, strtab;
    uint64_t at; /* bytes written */
    ing_hasher sum;
    ing_pack_head head;
    Elf64_Shdr sec[SEC_N];
} writing;

/* ---- collect ------------------------------------------------------------------------------ */

typedef struct collecting {
    writing *w;
    ing_entry_kind kind;
    bool lost;
} collecting;

static bool found(collecting *c, ing_hash128 key) {
    ing_pack_item item = {.kind = c->kind, .key = key};
    c->lost =
        c->w->items.len >= ING_PACK_MAX_ENTRIES || !ing_vec_push(&c->w->items, item);
    return !c->lost;
}

static bool see_entry(void *ctx, const ing_store_item *item) {
    return found(ctx, item->key);
}

static bool see_packed(void *ctx, const ing_pack_item *item) {
    collecting *c = ctx;
    return item->kind != c->kind || found(c, item->key);
}

static int by_key(const void *a, const void *b) {
    return ing_pack_compare(a, b);
}

static ing_status collect(writing *w) {
    for (int k = 1; k < ING_ENTRY_KINDS; k++) {
        collecting c = {w, (ing_entry_kind)k, false};
        if (!ing_pack_holds(c.kind)) continue;
        (void)ing_store_each(w->from, c.kind, see_entry, &c);
        if (!c.lost) ing_store_each_packed(w->from, see_packed, &c);
        if (c.lost)
            return ing_fail(w->e, ING_MEMORY,
                            "too many entries for a pack (at most %d)",
                            ING_PACK_MAX_ENTRIES);
    }
    if (w->items.len) qsort(w->items.at, w->items.len, sizeof *w->items.at, by_key);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->items.len; i++)
        if (!n || ing_pack_compare(&w->items.at[n - 1], &w->items.at[i]) != 0)
            w->items.at[n++] = w->items.at[i];
    w->items.len = n;
    return ING_OK;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static ing_status put(writing *w, const void *p, size_t n) {
    if (w->at + n > ING_PACK_MAX)
        return ing_fail(w->e, ING_FORMAT, "the entries are too large for one pack");
    if (!ing_os_write_all(w->fd, p, n))
        return ing_fail(w->e, ING_OS, "cannot write a pack: %m");
    ing_hasher_raw(&w->sum, p, n);
    w->at += n;
    return ING_OK;
}

static ing_status pad(writing *w, uint64_t align) {
    static const uint8_t zeros[ING_PACK_ALIGN];
    return put(w, zeros, (size_t)(ing_align_up(w->at, align) - w->at));
}

/* ---- symbols ------------------------------------------------------------------------------- */

typedef struct image_view { /* the sections of an image, which may lie */
    const uint8_t *at;
    size_t len;
    uint64_t shoff;
    uint32_t n;
} image_view;

static bool inside(const image_view *v, uint64_t off, uint64_t size) {
    return off <= v->len && size <= v->len - off;
}

static bool view_image(image_view *v, const uint8_t *p, size_t n) {
    Elf64_Ehdr h;
    if (n < sizeof h) return false;
    memcpy(&h, p, sizeof h);
    *v = (image_view){.at = p, .len = n, .shoff = h.e_shoff, .n = h.e_shnum};
    return memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 && h.e_machine == ING_IMAGE_HOST &&
           h.e_shentsize == sizeof(Elf64_Shdr) &&
           inside(v, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr));
}

/* All zero when there is no such section, or it is not in the image. */
static Elf64_Shdr section(const image_view *v, uint32_t i) {
    Elf64_Shdr s = {0};
    if (i < v->n) memcpy(&s, v->at + v->shoff + (uint64_t)i * sizeof s, sizeof s);
    if (s.sh_type == SHT_NOBITS || !inside(v, s.sh_offset, s.sh_size))
        memset(&s, 0, sizeof s);
    return s;
}

static Elf64_Shdr section_of_type(const image_view *v, uint32_t type) {
    for (uint32_t i = 0; i < v->n; i++) {
        Elf64_Shdr s = section(v, i);
        if (s.sh_type == type) return s;
    }
    return (Elf64_Shdr){0};
}

static const char *name_in(const image_view *v, const Elf64_Shdr *names, uint32_t at) {
    if (at >= names->sh_size) return "";
    const char *s = (const char *)v->at + names->sh_offset + at;
    size_t most = (size_t)(names->sh_size - at);
    size_t n = strnlen(s, most);
    return n < most && n <= ING_IMAGE_MAX_NAME ? s : "";
}

static void put_symbol(writing *w, const char *name, uint64_t value, uint64_t size) {
    Elf64_Sym s = {.st_name = (uint32_t)w->strtab.len,
                   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                   .st_shndx = SEC_TEXT,
                   .st_value = value,
                   .st_size = size};
    if (w->symtab.len + w->strtab.len > MAX_SYMBOLS_BYTES)
        return; /* only people miss it */
    ing_bytes_put(&w->symtab, &s, sizeof s);
    ing_bytes_put(&w->strtab, name, strlen(name) + 1);
    w->report->symbols++;
}

/* The functions of the image at `at`. Its entry has two names: the label is for people. */
static void add_symbols(writing *w, const image_view *v, uint64_t at) {
    Elf64_Shdr table = section_of_type(v, SHT_SYMTAB),
               names = section(v, table.sh_link);
    for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, v->at + table.sh_offset + i * sizeof s, sizeof s);
        Elf64_Shdr in = section(v, s.st_shndx);
        const char *name = name_in(v, &names, s.st_name);
        uint32_t type = ELF64_ST_TYPE(s.st_info);
        if (!*name || s.st_shndx == SHN_UNDEF || !(in.sh_flags & SHF_EXECINSTR) ||
            (type != STT_FUNC && type != STT_NOTYPE) || s.st_value < in.sh_addr ||
            s.st_value - in.sh_addr >= in.sh_size ||
            ELF64_ST_BIND(s.st_info) == STB_WEAK)
            continue;
        uint64_t off = in.sh_offset + (s.st_value - in.sh_addr);
        put_symbol(w, name, at + off, s.st_size);
    }
}

/* ---- who made it ---------------------------------------------------------------------------- */

static void count_maker(ing_pack_report *r, const char *text, size_t n) {
    uint32_t i = 0;
    if (n >= sizeof r->makers[0].text) n = sizeof r->makers[0].text - 1;
    while (i < r->n_makers &&
           (strncmp(r->makers[i].text, text, n) || r->makers[i].text[n]))
        i++;
    if (i == ING_PACK_MAKERS) return;
    if (i == r->n_makers) {
        memcpy(r->makers[i].text, text, n);
        r->makers[i].text[n] = 0;
        r->n_makers++;
    }
    r->makers[i].images++;
}

/* The first text of .comment, of printable characters. */
static void add_maker(writing *w, const image_view *v) {
    Elf64_Ehdr h;
    memcpy(&h, v->at, sizeof h);
    Elf64_Shdr names = section(v, h.e_shstrndx);
    for (uint32_t i = 1; i < v->n; i++) {
        Elf64_Shdr s = section(v, i);
        if (strcmp(name_in(v, &names, s.sh_name), ".comment") != 0) continue;
        const char *text = (const char *)v->at + s.sh_offset, *end = text + s.sh_size;
        while (text < end && !*text) text++;
        size_t n = 0;
        while (text + n < end && text[n] >= ' ' && text[n] <= '~') n++;
        count_maker(w->report, text, n);
        return;
    }
    count_maker(w->report, "unknown", 7);
}

/* ---- entries -------------------------------------------------------------------------------- */

static ing_status put_entry(writing *w, ing_pack_item *item, const ing_bytes *b) {
    uint8_t trailer[ING_STORE_TRAILER];
    bool image = item->kind == ING_ENTRY_IMAGE;
    ING_TRY(pad(w, image ? ING_PACK_ALIGN : 8));
    item->at = w->at;
    item->len = b->len;
    ing_store_trailer(trailer, item->kind, item->key, b->at, b->len);
    ING_TRY(put(w, b->at, b->len));
    ING_TRY(put(w, trailer, sizeof trailer));
    w->report->entries[item->kind]++;
    image_view v;
    if (image && view_image(&v, b->at, b->len)) {
        add_symbols(w, &v, item->at);
        add_maker(w, &v);
    }
    return ING_OK;
}

/* Of one sort, in the order of the index; those written move to the front from *n on. */
static ing_status put_entries(writing *w, bool images, uint32_t *n) {
    ing_bytes b;
    ing_status s = ING_OK;
    ing_bytes_init(&b);
    for (uint32_t i = *n; i < w->items.len && s == ING_OK; i++) {
        ing_pack_item item = w->items.at[i];
        if ((item.kind == ING_ENTRY_IMAGE) != images) break; /* images come first */
        if (ing_store_read_layer(w->from, 0, item.kind, item.key, &b) != ING_OK) {
            w->report->left_out++;
            w->items.at[i].len = UINT64_MAX;
            continue;
        }
        s = put_entry(w, &w->items.at[i], &b);
    }
    while (*n < w->items.len && (w->items.at[*n].kind == ING_ENTRY_IMAGE) == images)
        ++*n;
    ing_bytes_fini(&b);
    return s;
}

static void drop_lost(writing *w) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->items.len; i++)
        if (w->items.at[i].len != UINT64_MAX) w->items.at[n++] = w->items.at[i];
    w->items.len = n;
}

/* ---- tables --------------------------------------------------------------------------------- */

static ing_status put_index(writing *w, const ing_pack_order *order) {
    bool fans = order && order->has_fans;
    ing_bytes b;
    ing_bytes_init(&b);
    for (uint32_t i = 0; i < w->items.len; i++) {
        uint8_t record[ING_PACK_RECORD];
        ing_pack_put_record(record, &w->items.at[i]);
        ing_bytes_put(&b, record, sizeof record);
    }
    for (uint32_t i = 0; fans && i < ING_PACK_FANS; i++)
        ing_bytes_u64(&b, order->fans[i]);
    ing_status s =
        b.failed ? ing_fail(w->e, ING_MEMORY, "no memory for a pack") : ING_OK;
    if (s == ING_OK) s = pad(w, 8);
    w->head.n = w->items.len;
    w->head.n_fans = fans ? ING_PACK_FANS : 0;
    w->head.seen = order ? order->seen : 0;
    w->head.index = w->at;
    w->head.index_sum = ing_hash(b.at ? b.at : (const uint8_t *)"", b.len);
    if (s == ING_OK && b.len) s = put(w, b.at, b.len);
    ing_bytes_fini(&b);
    return s;
}

static const char section_names[] =
    "\0.text\0.ingot.entries\0.symtab\0.strtab\0.shstrtab";

static Elf64_Shdr section_here(const writing *w, uint32_t name, uint32_t type,
                               uint64_t size, uint64_t align) {
    return (Elf64_Shdr){.sh_name = name,
                        .sh_type = type,
                        .sh_offset = w->at,
                        .sh_size = size,
                        .sh_addralign = align};
}

static ing_status put_sections(writing *w) {
    if (w->symtab.failed || w->strtab.failed)
        return ing_fail(w->e, ING_MEMORY, "no memory for the symbols of a pack");
    ING_TRY(pad(w, 8));
    w->sec[SEC_SYMTAB] = section_here(w, 22, SHT_SYMTAB, w->symtab.len, 8);
    w->sec[SEC_SYMTAB].sh_link = SEC_STRTAB;
    w->sec[SEC_SYMTAB].sh_info = 1; /* the first symbol that is not local */
    w->sec[SEC_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    ING_TRY(put(w, w->symtab.at, w->symtab.len));
    w->sec[SEC_STRTAB] = section_here(w, 30, SHT_STRTAB, w->strtab.len, 1);
    ING_TRY(put(w, w->strtab.at, w->strtab.len));
    w->sec[SEC_SHSTRTAB] = section_here(w, 38, SHT_STRTAB, sizeof section_names, 1);
    ING_TRY(put(w, section_names, sizeof section_names));
    return pad(w, 8);
}

/* ---- header and tail -------------------------------------------------------------------------- */

static void fill_header(const writing *w, uint64_t shoff,
                        uint8_t page[ING_PACK_ALIGN]) {
    Elf64_Ehdr h = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = ING_IMAGE_HOST,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof h,
        .e_shoff = shoff,
        .e_ehsize = sizeof h,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = w->head.code_size ? N_PHDRS : N_PHDRS - 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SEC_N,
        .e_shstrndx = SEC_SHSTRTAB,
    };
    const Elf64_Phdr ph[N_PHDRS] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_R,
         .p_filesz = ING_PACK_ALIGN,
         .p_memsz = ING_PACK_ALIGN,
         .p_align = ING_PACK_ALIGN},
        {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_offset = w->head.code,
         .p_vaddr = w->head.code,
         .p_paddr = w->head.code,
         .p_filesz = w->head.code_size,
         .p_memsz = w->head.code_size,
         .p_align = ING_PACK_ALIGN},
    };
    memset(page, 0, ING_PACK_ALIGN);
    memcpy(page, &h, sizeof h);
    memcpy(page + sizeof h, ph, sizeof ph);
}

static ing_status finish(writing *w) {
    uint8_t page[ING_PACK_ALIGN], tail[ING_PACK_TAIL];
    uint64_t shoff = w->at;
    ING_TRY(put(w, w->sec, sizeof w->sec));
    fill_header(w, shoff, page);
    ing_hasher_raw(&w->sum, page, sizeof page);
    w->head.whole_sum = ing_hasher_done(&w->sum);
    w->head.size = w->at + ING_PACK_TAIL;
    ing_pack_put_tail(tail, &w->head);
    if (!ing_os_write_all(w->fd, tail, sizeof tail) || lseek(w->fd, 0, SEEK_SET) != 0 ||
        !ing_os_write_all(w->fd, page, sizeof page))
        return ing_fail(w->e, ING_OS, "cannot write a pack: %m");
    w->report->bytes = w->head.size;
    w->report->sum = w->head.whole_sum;
    return ING_OK;
}

static ing_status write_all(writing *w, const ing_pack_order *order) {
    static const uint8_t zeros[ING_PACK_ALIGN];
    uint32_t n = 0;
    ING_TRY(collect(w));
    /* The place of the header, whose bytes are summed up last. */
    if (!ing_os_write_all(w->fd, zeros, sizeof zeros))
        return ing_fail(w->e, ING_OS, "cannot write a pack: %m");
    w->at = w->head.code = ING_PACK_ALIGN;
    ING_TRY(put_entries(w, true, &n));
    ING_TRY(pad(w, ING_PACK_ALIGN));
    w->head.code_size = w->at - w->head.code;
    w->sec[SEC_TEXT] = (Elf64_Shdr){.sh_name = 1,
                                    .sh_type = SHT_PROGBITS,
                                    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                    .sh_addr = w->head.code,
                                    .sh_offset = w->head.code,
                                    .sh_size = w->head.code_size,
                                    .sh_addralign = ING_PACK_ALIGN};
    uint64_t rest = w->at;
    ING_TRY(put_entries(w, false, &n));
    drop_lost(w);
    ING_TRY(put_index(w, order));
    w->sec[SEC_ENTRIES] = section_here(w, 7, SHT_PROGBITS, w->at - rest, 8);
    w->sec[SEC_ENTRIES].sh_offset = rest;
    ING_TRY(put_sections(w));
    return finish(w);
}

ing_status ing_pack_write(ing_store *from, int fd, const ing_pack_order *order,
                          ing_pack_report *report, ing_err *e) {
    writing w = {.from = from, .fd = fd, .e = e, .report = report};
    const Elf64_Sym none = {0};
    memset(report, 0, sizeof *report);
    ing_hasher_init(&w.sum);
    ing_bytes_init(&w.symtab);
    ing_bytes_init(&w.strtab);
    ing_bytes_put(&w.symtab, &none, sizeof none);
    ing_bytes_put(&w.strtab, "", 1);
    ing_status s = write_all(&w, order);
    ing_bytes_fini(&w.symtab);
    ing_bytes_fini(&w.strtab);
    ing_vec_fini(&w.items);
    return s;
}
