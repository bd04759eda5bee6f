/* Damaged objects under the linker and damaged images under the loader: every truncation
 * and thousands of changed bits, fixed seed. The answer is ING_OK or ING_FORMAT (for an
 * object also ING_COMPILE: a changed name), never a crash; nothing damaged is run.
 * INGOT_STRESS=1 runs twenty times as many. */
#include "image/image_int.h"
#include "image_make.h"

#include <fcntl.h>

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t next(void) { /* xorshift64* */
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * 0x2545f4914f6cdd1d;
}

static const uint64_t nasty[] = {0,
                                 1,
                                 7,
                                 8,
                                 0xff,
                                 0xfff,
                                 0x1000,
                                 0x7fffffff,
                                 0xffffffff,
                                 0x100000000,
                                 INT64_MAX,
                                 UINT64_MAX,
                                 UINT64_MAX - 7,
                                 (uint64_t)1 << 63,
                                 0xfff1,
                                 0xfff2};

/* A few changed bits, or a word replaced by a number that breaks sums; mostly near the
 * headers and tables, where a change means something. */
static void damage(uint8_t *p, size_t n, const size_t *spot, size_t n_spots) {
    uint32_t count = 1 + (uint32_t)(next() % 3);
    for (uint32_t k = 0; k < count; k++) {
        size_t at = next() % n;
        if (next() % 4) {
            at = spot[next() % n_spots] + next() % 320;
            if (at >= n) at = n - 1;
        }
        size_t width = (size_t)1 << (next() % 4);
        if (next() % 2 || at + width > n) {
            p[at] ^= (uint8_t)(1u << (next() % 8));
        } else {
            at -= at % width;
            uint64_t v = nasty[next() % (sizeof nasty / sizeof *nasty)] + next() % 2;
            memcpy(p + at, &v, width);
        }
    }
}

/* An exact copy on the heap, so that ASan sees the first byte past the end. */
static uint8_t *exact(const uint8_t *p, size_t n) {
    uint8_t *c = malloc(n ? n : 1);
    if (n) memcpy(c, p, n);
    return c;
}

static uint32_t seen[ING_PYTHON + 1];

/* What the linker accepts, the loader's check must accept too. */
static void try_link(const uint8_t *p, size_t n, uint16_t machine) {
    ing_bytes image;
    ing_image_plan plan;
    ing_bytes_init(&image);
    ing_status s = ing_image_link(&(ing_object){p, n}, 1, "label", &image, NULL);
    CHECK(s == ING_OK || s == ING_FORMAT || s == ING_COMPILE);
    if (s == ING_OK) {
        uint16_t m = machine;
        memcpy(&m, p + 18, 2); /* e_machine may be what was changed */
        CHECK(ing_image_check(image.at, image.len, m, 4096, &plan, NULL) == ING_OK);
    }
    seen[s]++;
    ing_bytes_fini(&image);
}

static void fuzz_object(const char *name, uint16_t machine, uint32_t rounds) {
    ing_bytes obj = make_read(name);
    Elf64_Ehdr h;
    memcpy(&h, obj.at, sizeof h);
    for (size_t n = 0; n < obj.len; n++) {
        uint8_t *cut = exact(obj.at, n);
        try_link(cut, n, machine);
        free(cut);
    }
    size_t spot[64] = {0}, n_spots = 1;
    for (uint32_t k = 0; k < h.e_shnum && n_spots + 2 < 64; k++) {
        Elf64_Shdr s;
        memcpy(&s, obj.at + h.e_shoff + k * sizeof s, sizeof s);
        spot[n_spots++] = h.e_shoff + k * sizeof s;
        if (s.sh_type == SHT_RELA || s.sh_type == SHT_SYMTAB)
            spot[n_spots++] = s.sh_offset;
    }
    for (uint32_t k = 0; k < rounds; k++) {
        uint8_t *copy = exact(obj.at, obj.len);
        damage(copy, obj.len, spot, n_spots);
        try_link(copy, obj.len, machine);
        free(copy);
    }
    ing_bytes_fini(&obj);
}

static ing_bytes image_of(const char *name) {
    ing_bytes obj = make_read(name), image;
    ing_bytes_init(&image);
    CHECK(ing_image_link(&(ing_object){obj.at, obj.len}, 1, "label", &image, NULL) ==
          ING_OK);
    ing_bytes_fini(&obj);
    return image;
}

static void try_load(int fd, const uint8_t *p, size_t n) {
    ing_image *i = NULL;
    ing_status s = ing_image_load(fd, p, n, &i, NULL);
    CHECK(s == ING_OK || s == ING_FORMAT);
    CHECK((s == ING_OK) == (i != NULL));
    seen[s]++;
    ing_image_unref(i);
}

/* Through a file whose length is the damaged one's too. */
static void try_load_file(const uint8_t *p, size_t n) {
    char path[512];
    make_write("fuzz.so", p, n);
    make_path(path, sizeof path, "fuzz.so");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    try_load(fd, NULL, n);
    close(fd);
}

static void fuzz_image(const char *name, uint32_t rounds) {
    ing_bytes image = image_of(name);
    size_t needed = 0; /* bytes that the segments take: shorter must be refused */
    ing_image_plan plan;
    CHECK(ing_image_check(image.at, image.len, EM_X86_64, 4096, &plan, NULL) == ING_OK);
    for (uint32_t k = 0; k < plan.n_segs; k++)
        if (plan.seg[k].off + plan.seg[k].filesz > needed)
            needed = plan.seg[k].off + plan.seg[k].filesz;
    for (size_t n = 0; n < image.len; n++) {
        uint8_t *cut = exact(image.at, n);
        uint32_t before = seen[ING_OK];
        try_load(-1, cut, n);
        CHECK((seen[ING_OK] > before) == (n >= needed));
        free(cut);
        if (n % 97 == 0) try_load_file(image.at, n);
    }
    size_t imports = (size_t)(plan.relative - image.at) - ING_IMAGE_HEAD;
    size_t spot[] = {0, 64, imports};
    for (uint32_t k = 0; k < rounds; k++) {
        uint8_t *copy = exact(image.at, image.len);
        damage(copy, image.len, spot, 3);
        try_load(-1, copy, image.len);
        if (k % 50 == 0) try_load_file(copy, image.len);
        free(copy);
    }
    ing_bytes_fini(&image);
}

int main(void) {
    uint32_t rounds = strcmp(make_env("INGOT_STRESS", "0"), "0") == 0 ? 4000 : 80000;
    make_begin();
    if (make_llvm_objects()) {
        fuzz_object("kernel.o", EM_X86_64, rounds);
        fuzz_object("own_got.o", EM_X86_64, rounds);
        fuzz_object("arm_widths.o", EM_AARCH64, rounds);
        printf("objects: %u linked, %u refused\n", seen[ING_OK],
               seen[ING_FORMAT] + seen[ING_COMPILE]);
        CHECK(seen[ING_OK] > rounds / 100 && seen[ING_FORMAT] > rounds / 2);
#if defined(__x86_64__)
        memset(seen, 0, sizeof seen);
        fuzz_image("kernel.o", rounds);
        fuzz_image("own_got.o", rounds);
        printf("images: %u loaded, %u refused\n", seen[ING_OK], seen[ING_FORMAT]);
        CHECK(seen[ING_OK] > rounds / 100 && seen[ING_FORMAT] > rounds / 2);
#endif
    }
    make_end();
    return CHECK_DONE();
}
