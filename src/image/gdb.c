/* Tells gdb about code that is mapped, by its JIT interface: for each image an object file in
 * memory with the names of its functions, the line that its task begins at, and its unwind
 * table. Called by load.c when debug registration is asked for, never on the way of a
 * launch. The unwind table is read through checked offsets: a strange one costs names.
 *
 *  GDB1 gdb finds the two symbols below by name, stops at each call of the function, and
 *     reads the list from the stopped process: it is changed under the lock only.
 *  GDB2 The object is relocatable ELF whose sections have the addresses of what is mapped;
 *     .text has no bytes, .eh_frame is a copy, because it counts from its own address.
 *  GDB3 DWARF 4. One row of lines: the code of a task has no finer places (R19). */
#include "image/image_int.h"

#include <pthread.h>
#include <string.h>

/* ---- gdb's side (fixed by gdb) ------------------------------------------------------------ */

typedef struct jit_entry {
    struct jit_entry *next, *prev;
    const uint8_t *object;
    uint64_t size;
} jit_entry;

enum { JIT_VERSION = 1, JIT_REGISTER = 1, JIT_UNREGISTER = 2 };

struct jit_descriptor {
    uint32_t version, action;
    jit_entry *relevant, *first;
};

__attribute__((
    visibility("default"))) extern struct jit_descriptor __jit_debug_descriptor;
__attribute__((visibility("default"))) void __jit_debug_register_code(void);

/* registry: gdb looks for these by name, one list for the whole process. */
struct jit_descriptor __jit_debug_descriptor = {JIT_VERSION, 0, NULL, NULL};
/* registry: guards the list above. */
static pthread_mutex_t jit_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void __jit_debug_register_code(void) {
    __asm__ volatile("" ::: "memory");
}

static void tell(jit_entry *entry, uint32_t action) {
    __jit_debug_descriptor.relevant = entry;
    __jit_debug_descriptor.action = action;
    __jit_debug_register_code();
}

/* ---- functions of an image, by its unwind table --------------------------------------------- */

typedef struct range {
    uint64_t at, size;
} range;

typedef ing_vec(range) ranges;

static uint32_t word_at(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Whether the CIE at `at` says that addresses are signed words from where they stand, which
 * is what LLVM writes for our targets. */
static bool counts_from_here(const ing_gdb_code *c, uint64_t at) {
    static const uint8_t want[] = {1, 'z', 'R', 0};
    enum { PC_RELATIVE_WORD = 0x1b };
    const uint8_t *p = c->eh + at + 8, *end = c->eh + c->eh_size;
    if (at + 24 > c->eh_size || word_at(c->eh + at + 4) != 0) return false;
    if (memcmp(p, want, sizeof want) != 0) return false;
    p += sizeof want;
    for (int skip = 0; skip < 4; skip++) /* two factors, register, length; all LEB128 */
        while (p < end && *p++ & 0x80) continue;
    return p < end && *p == PC_RELATIVE_WORD;
}

/* The functions that the table describes; what it says strangely is left out. */
static void find_functions(const ing_gdb_code *c, ranges *out) {
    for (uint64_t at = 0; at + 16 <= c->eh_size;) {
        uint32_t len = word_at(c->eh + at);
        if (len < 4 || len > c->eh_size - at - 4) return;
        uint32_t back = word_at(c->eh + at + 4);
        if (back && len >= 12 && back <= at + 4 && counts_from_here(c, at + 4 - back)) {
            int32_t to = (int32_t)word_at(c->eh + at + 8);
            uint64_t begin =
                (uint64_t)(uintptr_t)(c->eh + at + 8) + (uint64_t)(int64_t)to;
            range r = {begin - (uint64_t)(uintptr_t)c->code, word_at(c->eh + at + 12)};
            if (r.at <= c->code_size && r.size <= c->code_size - r.at)
                (void)ing_vec_push(out, r);
        }
        at += 4 + (uint64_t)len;
    }
}

/* ---- DWARF ------------------------------------------------------------------------------------ */

static void put_uleb(ing_bytes *out, uint64_t v) {
    do {
        ing_bytes_u8(out, (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
    } while (v >>= 7);
}

/* As the signed form, of a number that is not negative. */
static void put_sleb(ing_bytes *out, uint64_t v) {
    for (; v > 0x3f; v >>= 7) ing_bytes_u8(out, (uint8_t)((v & 0x7f) | 0x80));
    ing_bytes_u8(out, (uint8_t)v);
}

static void put_text(ing_bytes *out, const char *s) {
    ing_bytes_put(out, s, strlen(s) + 1);
}

/* Appends `body` with its length before it. */
static void put_unit(ing_bytes *out, ing_bytes *body) {
    ing_bytes_u32(out, (uint32_t)body->len);
    ing_bytes_put(out, body->at, body->len);
    if (body->failed) out->failed = true;
    ing_bytes_fini(body);
}

enum { /* numbers of the DWARF standard */
       TAG_UNIT = 0x11,
       TAG_FUNCTION = 0x2e,
       AT_NAME = 0x03,
       AT_STMT_LIST = 0x10,
       AT_LOW_PC = 0x11,
       AT_HIGH_PC = 0x12,
       AT_LANGUAGE = 0x13,
       AT_DECL_LINE = 0x3b,
       FORM_ADDR = 0x01,
       FORM_DATA2 = 0x05,
       FORM_DATA4 = 0x06,
       FORM_DATA8 = 0x07,
       FORM_STRING = 0x08,
       FORM_SEC_OFFSET = 0x17,
       LANG_C99 = 0x0c, /* gdb knows no Python */
};

static void put_abbrev(ing_bytes *out) {
    static const uint8_t bytes[] = {
        1,
        TAG_UNIT,
        1,
        AT_NAME,
        FORM_STRING,
        AT_LANGUAGE,
        FORM_DATA2,
        AT_LOW_PC,
        FORM_ADDR,
        AT_HIGH_PC,
        FORM_DATA8,
        AT_STMT_LIST,
        FORM_SEC_OFFSET,
        0,
        0,
        2,
        TAG_FUNCTION,
        0,
        AT_NAME,
        FORM_STRING,
        AT_DECL_LINE,
        FORM_DATA4,
        AT_LOW_PC,
        FORM_ADDR,
        AT_HIGH_PC,
        FORM_DATA8,
        0,
        0,
        0,
    };
    ing_bytes_put(out, bytes, sizeof bytes);
}

static void put_info(ing_bytes *out, const ing_gdb_code *c, range task) {
    uint64_t at = (uint64_t)(uintptr_t)c->code + task.at;
    ing_bytes b;
    ing_bytes_init(&b);
    ing_bytes_u8(&b, 4), ing_bytes_u8(&b, 0); /* version */
    ing_bytes_u32(&b, 0);                     /* .debug_abbrev from its start */
    ing_bytes_u8(&b, 8);                      /* bytes of an address */
    put_uleb(&b, 1);
    put_text(&b, c->from->file);
    ing_bytes_u8(&b, LANG_C99), ing_bytes_u8(&b, 0);
    ing_bytes_u64(&b, at);
    ing_bytes_u64(&b, task.size);
    ing_bytes_u32(&b, 0); /* .debug_line from its start */
    put_uleb(&b, 2);
    put_text(&b, c->from->name);
    ing_bytes_u32(&b, c->from->line);
    ing_bytes_u64(&b, at);
    ing_bytes_u64(&b, task.size);
    ing_bytes_u8(&b, 0); /* no more in the unit */
    put_unit(out, &b);
}

/* One row: from the first byte of the task to its last it is `line`. */
static void put_lines(ing_bytes *out, const ing_gdb_code *c, range task) {
    enum {
        COPY = 1,
        ADVANCE_PC = 2,
        ADVANCE_LINE = 3,
        END_SEQUENCE = 1,
        SET_ADDRESS = 2
    };
    static const uint8_t params[] = {
        1, 1, 1, 0xfb, 14, 13, /* one byte at a time, -5, 14 */
        0, 1, 1, 1,    1,  0,  0, 0, 1, 0, 0, 1};
    ing_bytes head, b;
    ing_bytes_init(&head);
    ing_bytes_init(&b);
    ing_bytes_put(&head, params, sizeof params);
    ing_bytes_u8(&head, 0); /* no directories */
    put_text(&head, c->from->file);
    ing_bytes_put(&head, "\0\0\0",
                  4); /* directory, time, length; the end of the files */
    ing_bytes_u8(&b, 4), ing_bytes_u8(&b, 0); /* version */
    put_unit(&b, &head);
    ing_bytes_u8(&b, 0), put_uleb(&b, 9), ing_bytes_u8(&b, SET_ADDRESS);
    ing_bytes_u64(&b, (uint64_t)(uintptr_t)c->code + task.at);
    ing_bytes_u8(&b, ADVANCE_LINE), put_sleb(&b, c->from->line - 1); /* from 1 */
    ing_bytes_u8(&b, COPY);
    ing_bytes_u8(&b, ADVANCE_PC), put_uleb(&b, task.size);
    ing_bytes_u8(&b, 0), put_uleb(&b, 1), ing_bytes_u8(&b, END_SEQUENCE);
    put_unit(out, &b);
}

/* ---- the object ---------------------------------------------------------------------------------- */

enum { TEXT = 1, EH_FRAME, ABBREV, INFO, LINE, SYMTAB, STRTAB, SHSTRTAB, N_SECTIONS };

static const char section_names[] = "\0.text\0.eh_frame\0.debug_abbrev\0.debug_info\0"
                                    ".debug_line\0.symtab\0.strtab\0.shstrtab";

static uint32_t name_of_section(uint32_t i) {
    const char *p = section_names;
    while (i--) p += strlen(p) + 1;
    return (uint32_t)(p - section_names);
}

/* Symbols of all functions: the task by its name, what it calls as parts of it. */
static void put_symbols(ing_bytes *syms, ing_bytes *names, const ing_gdb_code *c,
                        const ranges *all, range task) {
    Elf64_Sym none = {0};
    ing_bytes_put(syms, &none, sizeof none);
    ing_bytes_u8(names, 0);
    uint32_t own = (uint32_t)names->len;
    put_text(names, c->from->name);
    uint32_t part = (uint32_t)names->len;
    ing_bytes_printf(names, "%s.func", c->from->name);
    ing_bytes_u8(names, 0);
    for (uint32_t i = 0; i < all->len; i++) {
        bool is_task = all->at[i].at == task.at;
        Elf64_Sym s = {.st_name = is_task ? own : part,
                       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                       .st_shndx = TEXT,
                       .st_value = all->at[i].at,
                       .st_size = all->at[i].size};
        ing_bytes_put(syms, &s, sizeof s);
    }
}

static void put_object(ing_bytes *out, const ing_gdb_code *c, const ranges *all,
                       range task) {
    ing_bytes part[N_SECTIONS];
    for (int i = 0; i < N_SECTIONS; i++) ing_bytes_init(&part[i]);
    ing_bytes_put(&part[EH_FRAME], c->eh, c->eh_size);
    put_abbrev(&part[ABBREV]);
    put_info(&part[INFO], c, task);
    put_lines(&part[LINE], c, task);
    put_symbols(&part[SYMTAB], &part[STRTAB], c, all, task);
    ing_bytes_put(&part[SHSTRTAB], section_names, sizeof section_names);
    Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                                ELFDATA2LSB, EV_CURRENT},
                    .e_type = ET_REL,
                    .e_machine = ING_IMAGE_HOST,
                    .e_version = EV_CURRENT,
                    .e_shoff = sizeof h,
                    .e_ehsize = sizeof h,
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_shnum = N_SECTIONS,
                    .e_shstrndx = SHSTRTAB};
    Elf64_Shdr s[N_SECTIONS] = {0};
    uint64_t at = sizeof h + sizeof s;
    for (uint32_t i = TEXT; i < N_SECTIONS; i++) {
        s[i] = (Elf64_Shdr){.sh_name = name_of_section(i),
                            .sh_type = SHT_PROGBITS,
                            .sh_offset = at,
                            .sh_size = part[i].len,
                            .sh_addralign = 1};
        at += part[i].len;
        if (part[i].failed) out->failed = true;
    }
    s[TEXT].sh_type = SHT_NOBITS;
    s[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    s[TEXT].sh_addr = (uint64_t)(uintptr_t)c->code;
    s[TEXT].sh_size = c->code_size;
    s[EH_FRAME].sh_flags = SHF_ALLOC;
    s[EH_FRAME].sh_addr = (uint64_t)(uintptr_t)c->eh;
    s[SYMTAB].sh_type = SHT_SYMTAB;
    s[SYMTAB].sh_link = STRTAB;
    s[SYMTAB].sh_info = 1; /* the first that is not local */
    s[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    s[STRTAB].sh_type = s[SHSTRTAB].sh_type = SHT_STRTAB;
    ing_bytes_put(out, &h, sizeof h);
    ing_bytes_put(out, s, sizeof s);
    for (int i = 0; i < N_SECTIONS; i++) {
        ing_bytes_put(out, part[i].at, part[i].len);
        ing_bytes_fini(&part[i]);
    }
}

/* ---- the interface ------------------------------------------------------------------------------- */

struct ing_gdb_object {
    jit_entry entry;
    ing_bytes bytes;
};

ing_gdb_object *ing_gdb_add(const ing_gdb_code *c) {
    ing_gdb_object *o = ing_calloc(1, sizeof *o);
    if (!o) return NULL;
    ranges all = {0};
    ing_bytes_init(&o->bytes);
    find_functions(c, &all);
    range task = {(uint64_t)(c->entry - c->code), 0};
    for (uint32_t i = 0; i < all.len; i++)
        if (all.at[i].at == task.at) task.size = all.at[i].size;
    if (task.size) put_object(&o->bytes, c, &all, task);
    ing_vec_fini(&all);
    if (!task.size || o->bytes.failed) {
        ing_bytes_fini(&o->bytes);
        ing_free(o);
        return NULL;
    }
    pthread_mutex_lock(&jit_lock);
    o->entry =
        (jit_entry){__jit_debug_descriptor.first, NULL, o->bytes.at, o->bytes.len};
    if (o->entry.next) o->entry.next->prev = &o->entry;
    __jit_debug_descriptor.first = &o->entry;
    tell(&o->entry, JIT_REGISTER);
    pthread_mutex_unlock(&jit_lock);
    return o;
}

void ing_gdb_remove(ing_gdb_object *o) {
    if (!o) return;
    pthread_mutex_lock(&jit_lock);
    if (o->entry.prev)
        o->entry.prev->next = o->entry.next;
    else
        __jit_debug_descriptor.first = o->entry.next;
    if (o->entry.next) o->entry.next->prev = o->entry.prev;
    tell(&o->entry, JIT_UNREGISTER);
    pthread_mutex_unlock(&jit_lock);
    ing_bytes_fini(&o->bytes);
    ing_free(o);
}
