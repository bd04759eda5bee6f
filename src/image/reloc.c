/* Relocation types of the two architectures as tables: what each computes, and where in
 * the instruction or word the value goes; and the stubs that calls of imports pass
 * through. Called by link.c. Must never write outside ing_reloc_width bytes. */
#include "image/image_int.h"

#include <string.h>

#define R(type, what, form, shift) \
    {R_##type, #type, ING_RELOC_##what, ING_FORM_##form, shift}

/* The 32-bit absolute ones mean that the object was not compiled as position-independent
 * code; they are listed so that the message can say so by name. */
static const ing_reloc x86_64_relocs[] = {
    R(X86_64_NONE, NONE, NONE, 0),        R(X86_64_64, ABS, 64, 0),
    R(X86_64_PC32, PC, S32, 0),           R(X86_64_PLT32, CALL, S32, 0),
    R(X86_64_GOTPCREL, GOT, S32, 0),      R(X86_64_GOTPCRELX, GOT, S32, 0),
    R(X86_64_REX_GOTPCRELX, GOT, S32, 0), R(X86_64_PC64, PC, 64, 0),
    R(X86_64_32, REFUSE, NONE, 0),        R(X86_64_32S, REFUSE, NONE, 0),
};

static const ing_reloc aarch64_relocs[] = {
    R(AARCH64_NONE, NONE, NONE, 0),
    R(AARCH64_ABS64, ABS, 64, 0),
    R(AARCH64_PREL64, PC, 64, 0),
    R(AARCH64_PREL32, PC, S32, 0),
    R(AARCH64_ADR_PREL_PG_HI21, PAGE, ADR21, 0),
    R(AARCH64_ADD_ABS_LO12_NC, LO12, IMM12, 0),
    R(AARCH64_LDST8_ABS_LO12_NC, LO12, IMM12, 0),
    R(AARCH64_LDST16_ABS_LO12_NC, LO12, IMM12, 1),
    R(AARCH64_LDST32_ABS_LO12_NC, LO12, IMM12, 2),
    R(AARCH64_LDST64_ABS_LO12_NC, LO12, IMM12, 3),
    R(AARCH64_LDST128_ABS_LO12_NC, LO12, IMM12, 4),
    R(AARCH64_JUMP26, CALL, B26, 0),
    R(AARCH64_CALL26, CALL, B26, 0),
    R(AARCH64_ADR_GOT_PAGE, GOT_PAGE, ADR21, 0),
    R(AARCH64_LD64_GOT_LO12_NC, GOT_LO12, IMM12, 3),
    R(AARCH64_ABS32, REFUSE, NONE, 0),
};
#undef R

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof *(a))

static const ing_arch archs[] = {
    {EM_X86_64, 4096, 8, R_X86_64_RELATIVE, R_X86_64_GLOB_DAT, x86_64_relocs,
     COUNT(x86_64_relocs)},
    {EM_AARCH64, 65536, 16, R_AARCH64_RELATIVE, R_AARCH64_GLOB_DAT, aarch64_relocs,
     COUNT(aarch64_relocs)},
};

const ing_arch *ing_arch_find(uint16_t machine) {
    for (uint32_t i = 0; i < COUNT(archs); i++)
        if (archs[i].machine == machine) return &archs[i];
    return NULL;
}

const ing_reloc *ing_reloc_find(const ing_arch *a, uint32_t type) {
    for (uint32_t i = 0; i < a->n_relocs; i++)
        if (a->relocs[i].type == type) return &a->relocs[i];
    return NULL;
}

uint32_t ing_reloc_width(const ing_reloc *r) {
    switch ((ing_reloc_form)r->form) {
    case ING_FORM_NONE: return 0;
    case ING_FORM_64: return 8;
    case ING_FORM_S32:
    case ING_FORM_B26:
    case ING_FORM_ADR21:
    case ING_FORM_IMM12: return 4;
    }
    return 0;
}

/* Does v fit a signed field of `bits` bits? */
static bool fits(int64_t v, uint32_t bits) {
    int64_t half = (int64_t)1 << (bits - 1);
    return v >= -half && v < half;
}

/* Replaces the bits of `mask` in the 32-bit word. */
static void patch(uint8_t *at, uint32_t mask, uint32_t bits) {
    uint32_t w;
    memcpy(&w, at, 4);
    w = (w & ~mask) | (bits & mask);
    memcpy(at, &w, 4);
}

bool ing_reloc_place(const ing_reloc *r, uint8_t *at, int64_t value) {
    switch ((ing_reloc_form)r->form) {
    case ING_FORM_NONE: return true;
    case ING_FORM_S32:
        if (!fits(value, 32)) return false;
        patch(at, UINT32_MAX, (uint32_t)value);
        return true;
    case ING_FORM_64: memcpy(at, &value, 8); return true;
    case ING_FORM_B26:
        if (!fits(value, 28) || (value & 3)) return false;
        patch(at, 0x03ffffff, (uint32_t)((uint64_t)value >> 2));
        return true;
    case ING_FORM_ADR21: {
        if (!fits(value, 33) || (value & 0xfff)) return false;
        uint32_t pages = (uint32_t)((uint64_t)value >> 12);
        patch(at, 0x60ffffe0, (pages & 3) << 29 | ((pages >> 2) & 0x7ffff) << 5);
        return true;
    }
    case ING_FORM_IMM12:
        if (value & (((int64_t)1 << r->shift) - 1)) return false;
        patch(at, 0x003ffc00, ((uint32_t)value & 0xfff) >> r->shift << 10);
        return true;
    }
    return false;
}

static bool stub_x86_64(uint8_t *at, uint64_t stub, uint64_t slot) {
    int64_t distance = (int64_t)(slot - (stub + 6));
    if (!fits(distance, 32)) return false;
    memcpy(at, (const uint8_t[8]){0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc}, 8);
    patch(at + 2, UINT32_MAX, (uint32_t)distance); /* jmp *slot(%rip); int3; int3 */
    return true;
}

static bool stub_aarch64(const ing_arch *a, uint8_t *at, uint64_t stub, uint64_t slot) {
    static const uint32_t code[4] = {
        0x90000010, /* adrp x16, page of slot */
        0xf9400211, /* ldr  x17, [x16, slot in page] */
        0xd61f0220, /* br   x17 */
        0xd4200000, /* brk  #0 */
    };
    memcpy(at, code, sizeof code);
    int64_t pages = (int64_t)((slot & ~0xfffull) - (stub & ~0xfffull));
    return ing_reloc_place(ing_reloc_find(a, R_AARCH64_ADR_GOT_PAGE), at, pages) &&
           ing_reloc_place(ing_reloc_find(a, R_AARCH64_LD64_GOT_LO12_NC), at + 4,
                           (int64_t)(slot & 0xfff));
}

bool ing_stub_write(const ing_arch *a, uint8_t *at, uint64_t stub, uint64_t slot) {
    return a->machine == EM_X86_64 ? stub_x86_64(at, stub, slot)
                                   : stub_aarch64(a, at, stub, slot);
}
