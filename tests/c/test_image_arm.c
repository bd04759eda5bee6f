/* AArch64 objects are linked here, not run: a decoder of its own, written from the
 * instruction set alone, follows each relocated instruction to the address that it names
 * and compares that with where the symbol tables say the target is. */
#include "image/image_int.h"
#include "image_make.h"

typedef struct
    file { /* an ELF file whose tables are trusted: the fuzz test is elsewhere */
    ing_bytes bytes;
    Elf64_Ehdr h;
    Elf64_Shdr symtab;
} file;

static Elf64_Shdr section(const file *f, uint32_t i) {
    Elf64_Shdr s;
    memcpy(&s, f->bytes.at + f->h.e_shoff + i * sizeof s, sizeof s);
    return s;
}

static const char *section_name(const file *f, const Elf64_Shdr *s) {
    return (const char *)f->bytes.at + section(f, f->h.e_shstrndx).sh_offset +
           s->sh_name;
}

static file file_open(ing_bytes bytes) {
    file f = {.bytes = bytes};
    memcpy(&f.h, bytes.at, sizeof f.h);
    for (uint32_t i = 0; i < f.h.e_shnum; i++)
        if (section(&f, i).sh_type == SHT_SYMTAB) f.symtab = section(&f, i);
    return f;
}

static Elf64_Shdr section_by_name(const file *f, const char *name) {
    for (uint32_t i = 0; i < f->h.e_shnum; i++) {
        Elf64_Shdr s = section(f, i);
        if (strcmp(section_name(f, &s), name) == 0) return s;
    }
    return (Elf64_Shdr){0};
}

static Elf64_Sym symbol(const file *f, uint64_t i) {
    Elf64_Sym s;
    memcpy(&s, f->bytes.at + f->symtab.sh_offset + i * sizeof s, sizeof s);
    return s;
}

static const char *symbol_name(const file *f, const Elf64_Sym *s) {
    return (const char *)f->bytes.at + section(f, f->symtab.sh_link).sh_offset +
           s->st_name;
}

static uint64_t n_symbols(const file *f) {
    return f->symtab.sh_size / sizeof(Elf64_Sym);
}

/* A section of constants without names: where its bytes are in the image's .rodata. */
static uint64_t by_contents(const file *obj, const file *image, uint32_t shndx,
                            uint64_t off) {
    Elf64_Shdr s = section(obj, shndx), ro = section_by_name(image, ".rodata");
    const uint8_t *from = image->bytes.at + ro.sh_offset;
    const uint8_t *p =
        s.sh_size ? memmem(from, ro.sh_size, obj->bytes.at + s.sh_offset, s.sh_size)
                  : NULL;
    return p ? ro.sh_addr + (uint64_t)(p - from) + off : UINT64_MAX;
}

/* Where byte `off` of section `shndx` of the object is in the image: through the nearest
 * named symbol at or below it, else by contents. UINT64_MAX: nothing says. */
static uint64_t in_image(const file *obj, const file *image, uint32_t shndx,
                         uint64_t off) {
    const char *best = NULL;
    uint64_t best_value = 0;
    for (uint64_t i = 1; i < n_symbols(obj); i++) {
        Elf64_Sym s = symbol(obj, i);
        const char *name = symbol_name(obj, &s);
        if (s.st_shndx != shndx || !*name || *name == '$' || *name == '.') continue;
        if (s.st_value <= off && (!best || s.st_value >= best_value)) {
            best = name;
            best_value = s.st_value;
        }
    }
    if (!best) return by_contents(obj, image, shndx, off);
    for (uint64_t i = 1; i < n_symbols(image); i++) {
        Elf64_Sym s = symbol(image, i);
        if (strcmp(symbol_name(image, &s), best) == 0)
            return s.st_value + off - best_value;
    }
    return UINT64_MAX;
}

/* Bytes of the image at an address, through its program headers; NULL: not in the file. */
static const uint8_t *at_address(const file *f, uint64_t a) {
    for (uint32_t i = 0; i < f->h.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, f->bytes.at + f->h.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_LOAD && a >= p.p_vaddr && a - p.p_vaddr < p.p_filesz)
            return f->bytes.at + p.p_offset + (a - p.p_vaddr);
    }
    return NULL;
}

static uint32_t word_at(const file *f, uint64_t a) {
    const uint8_t *p = at_address(f, a);
    uint32_t w = 0;
    if (p) memcpy(&w, p, 4);
    CHECK(p != NULL);
    return w;
}

/* ---- the decoder ---------------------------------------------------------------------------- */

static int64_t sign_extend(uint64_t v, int bits) {
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static uint64_t branch_target(uint32_t w, uint64_t pc) {
    CHECK((w & 0x7c000000) == 0x14000000); /* b or bl */
    return pc + (uint64_t)(sign_extend(w & 0x3ffffff, 26) * 4);
}

static uint64_t adrp_page(uint32_t w, uint64_t pc) {
    CHECK((w & 0x9f000000) == 0x90000000);
    uint64_t imm = ((w >> 5) & 0x7ffff) << 2 | ((w >> 29) & 3);
    return (pc & ~0xfffull) + (uint64_t)(sign_extend(imm, 21) * 4096);
}

/* The byte offset that add, ldr or str (unsigned immediate) adds. */
static uint64_t low12(uint32_t w) {
    uint64_t imm = (w >> 10) & 0xfff;
    if ((w & 0x7fc00000) == 0x11000000) return imm; /* add, no shift */
    CHECK((w & 0x3b000000) == 0x39000000);          /* ldr/str, unsigned offset */
    uint32_t scale = w >> 30;
    if ((w & 0x04800000) == 0x04800000) scale = 4; /* 128-bit vector register */
    return imm << scale;
}

/* The GOT slot that a stub jumps through. */
static uint64_t stub_slot(const file *image, uint64_t stub) {
    uint32_t adrp = word_at(image, stub), ldr = word_at(image, stub + 4);
    CHECK((adrp & 0x1f) == 16 && ((ldr >> 5) & 0x1f) == 16 && (ldr & 0x1f) == 17);
    CHECK((ldr & 0xffc00000) == 0xf9400000);       /* ldr x17, [x16, #] */
    CHECK(word_at(image, stub + 8) == 0xd61f0220); /* br x17 */
    return adrp_page(adrp, stub) + low12(ldr);
}

/* Does the slot hold what the symbol means: the import of that name, or its address? */
static bool slot_means(const file *obj, const file *image, uint64_t slot, uint32_t sym,
                       const ing_image_plan *plan) {
    Elf64_Sym s = symbol(obj, sym);
    uint64_t k = (slot - plan->got) / 8;
    CHECK(slot % 8 == 0);
    if (s.st_shndx == SHN_UNDEF) {
        const char *name = plan->names;
        if (k >= plan->n_imports) return false;
        while (k--) name += strlen(name) + 1;
        return strcmp(name, symbol_name(obj, &s)) == 0;
    }
    uint64_t want = in_image(obj, image, s.st_shndx, s.st_value), at, value;
    for (uint32_t r = 0; r < plan->n_relative; r++) {
        memcpy(&at, plan->relative + 16 * r, 8);
        memcpy(&value, plan->relative + 16 * r + 8, 8);
        if (at == slot) return value == want;
    }
    return false;
}

static void check_abs(const ing_image_plan *plan, uint64_t place, uint64_t want) {
    uint32_t found = 0;
    for (uint32_t r = 0; r < plan->n_relative; r++) {
        uint64_t at, value;
        memcpy(&at, plan->relative + 16 * r, 8);
        memcpy(&value, plan->relative + 16 * r + 8, 8);
        if (at == place) {
            CHECK(value == want);
            found++;
        }
    }
    CHECK(found == 1);
}

/* Follows one relocation to what it names. */
static void check_one(const file *obj, const file *image, const ing_image_plan *plan,
                      const Elf64_Rela *r, uint64_t place) {
    uint32_t type = ELF64_R_TYPE(r->r_info), sym = ELF64_R_SYM(r->r_info);
    Elf64_Sym s = symbol(obj, sym);
    uint64_t a = (uint64_t)r->r_addend, want = 0;
    if (s.st_shndx != SHN_UNDEF)
        want = in_image(obj, image, s.st_shndx, s.st_value + a);
    CHECK(want != UINT64_MAX);
    uint32_t w = type == R_AARCH64_ABS64 ? 0 : word_at(image, place);
    switch (type) {
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
        if (s.st_shndx == SHN_UNDEF)
            CHECK(slot_means(obj, image, stub_slot(image, branch_target(w, place)), sym,
                             plan));
        else
            CHECK(branch_target(w, place) == want);
        break;
    case R_AARCH64_ADR_PREL_PG_HI21:
        CHECK(adrp_page(w, place) == (want & ~0xfffull));
        break;
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
    case R_AARCH64_LDST16_ABS_LO12_NC:
    case R_AARCH64_LDST32_ABS_LO12_NC:
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LDST128_ABS_LO12_NC: CHECK(low12(w) == (want & 0xfff)); break;
    case R_AARCH64_ADR_GOT_PAGE:
    case R_AARCH64_LD64_GOT_LO12_NC: {
        /* either half names the page or the offset of a slot that must mean sym */
        bool found = false;
        uint64_t n = plan->n_imports + plan->n_relative;
        for (uint64_t k = 0; k < n; k++) {
            uint64_t slot = plan->got + 8 * k;
            bool half = type == R_AARCH64_ADR_GOT_PAGE
                            ? adrp_page(w, place) == (slot & ~0xfffull)
                            : low12(w) == (slot & 0xfff);
            if (half && slot_means(obj, image, slot, sym, plan)) found = true;
        }
        CHECK(found);
        break;
    }
    case R_AARCH64_ABS64: check_abs(plan, place, want); break;
    case R_AARCH64_PREL32: CHECK(place + (uint64_t)(int64_t)(int32_t)w == want); break;
    default: CHECK(!"a relocation type that the test does not know");
    }
}

static void test_object(const char *name, uint32_t *types) {
    file obj = file_open(make_read(name));
    ing_bytes bytes;
    ing_err e;
    ing_image_plan plan;
    ing_err_init(&e);
    ing_bytes_init(&bytes);
    CHECK(ing_image_link(&(ing_object){obj.bytes.at, obj.bytes.len}, 1, NULL, &bytes,
                         &e) == ING_OK);
    if (e.text) fprintf(stderr, "%s: %s\n", name, e.text);
    ing_err_fini(&e);
    file image = file_open(bytes);
    CHECK(image.h.e_machine == EM_AARCH64);
    CHECK(ing_image_check(bytes.at, bytes.len, EM_AARCH64, 4096, &plan, NULL) ==
          ING_OK);
    CHECK(ing_image_check(bytes.at, bytes.len, EM_AARCH64, 65536, &plan, NULL) ==
          ING_OK);
    for (uint32_t i = 0; i < obj.h.e_shnum; i++) {
        Elf64_Shdr rs = section(&obj, i);
        if (rs.sh_type != SHT_RELA) continue;
        Elf64_Shdr target = section(&obj, rs.sh_info);
        bool eh = strcmp(section_name(&obj, &target), ".eh_frame") == 0;
        for (uint64_t k = 0; k < rs.sh_size / sizeof(Elf64_Rela); k++) {
            Elf64_Rela r;
            memcpy(&r, obj.bytes.at + rs.sh_offset + k * sizeof r, sizeof r);
            uint64_t place =
                eh ? section_by_name(&image, ".eh_frame").sh_addr + r.r_offset
                   : in_image(&obj, &image, rs.sh_info, r.r_offset);
            check_one(&obj, &image, &plan, &r, place);
            if (ELF64_R_TYPE(r.r_info) < 512) types[ELF64_R_TYPE(r.r_info)]++;
        }
    }
    ing_bytes_fini(&obj.bytes);
    ing_bytes_fini(&bytes);
}

int main(void) {
    static const uint32_t wanted[] = {
        R_AARCH64_CALL26,
        R_AARCH64_JUMP26,
        R_AARCH64_ADR_PREL_PG_HI21,
        R_AARCH64_ADD_ABS_LO12_NC,
        R_AARCH64_LDST8_ABS_LO12_NC,
        R_AARCH64_LDST16_ABS_LO12_NC,
        R_AARCH64_LDST32_ABS_LO12_NC,
        R_AARCH64_LDST64_ABS_LO12_NC,
        R_AARCH64_LDST128_ABS_LO12_NC,
        R_AARCH64_ADR_GOT_PAGE,
        R_AARCH64_LD64_GOT_LO12_NC,
        R_AARCH64_ABS64,
        R_AARCH64_PREL32,
    };
    uint32_t types[512] = {0};
    make_begin();
    if (make_llvm_objects()) {
        test_object("arm_kernel.o", types);
        test_object("arm_widths.o", types);
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            CHECK(types[wanted[k]] > 0); /* each was really met */
    }
    make_end();
    return CHECK_DONE();
}
