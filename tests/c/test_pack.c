/* Packs: what is written is found again and runs where it lies; whatever is wrong with the
 * bytes (every truncation, thousands of flipped bits, numbers that lie with right checksums)
 * is a miss or the right entry; mounts without execution; indexes that went stale.
 * INGOT_STRESS=1 flips five times as many bits. */
#include "image/image_int.h"
#include "folder.h"
#include "image_make.h"
#include "store/pack.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const char plain_source[] =
    "typedef long long i64;\n"
    "static const int table[] = {3, 1, 4, 1, 5, 9, 2, 6};\n"
    "int ing_task(void *p, i64 begin, i64 end, i64 chunk) {\n"
    "    (void)p; return table[begin & 7] * 100 + (int)(end - chunk);\n"
    "}\n";
static const char import_source[] =
    "#include <string.h>\ntypedef long long i64;\n"
    "int ing_task(char *p, i64 begin, i64 end, i64 chunk) {\n"
    "    memset(p, (int)begin, (size_t)end); return (int)chunk;\n"
    "}\n";

typedef struct fixture {
    char dir[160];
    ing_counters n;
    ing_store *s;
} fixture;

static const ing_hash128 PLAIN = {1, 0x10ull << 56}, IMPORTS = {2, 0x80ull << 56};

static void begin(fixture *f, const char *name) {
    ing_err e;
    ing_err_init(&e);
    memset(f, 0, sizeof *f);
    snprintf(f->dir, sizeof f->dir, "%s/%s", make_dir, name);
    if (ing_store_open(f->dir, &f->n, &f->s, &e) != ING_OK) abort();
    ing_err_fini(&e);
}

static void reopen(fixture *f) {
    ing_err e;
    ing_bytes skipped;
    ing_err_init(&e);
    ing_bytes_init(&skipped);
    ing_store_close(f->s);
    memset(&f->n, 0, sizeof f->n);
    if (ing_store_open_path(f->dir, "", &f->n, &f->s, &skipped, &e) != ING_OK) abort();
    CHECK(skipped.len == 0);
    ing_bytes_fini(&skipped);
    ing_err_fini(&e);
}

static void end(fixture *f) {
    ing_store_close(f->s);
}

/* The payload of the i-th small entry: its length and bytes follow from i. */
static size_t small(uint32_t i, uint8_t out[64]) {
    size_t n = i * 7 % 61;
    for (size_t k = 0; k < n; k++) out[k] = (uint8_t)(i * 31 + k);
    return n;
}

enum { SMALL = 40 };

static ing_entry_kind small_kind(uint32_t i) {
    static const ing_entry_kind kinds[] = {ING_ENTRY_VARIANT, ING_ENTRY_INDEX,
                                           ING_ENTRY_ALIAS};
    return kinds[i % 3];
}

static ing_hash128 small_key(uint32_t i) {
    return (ing_hash128){i, (uint64_t)(i * 37 % 256) << 56 | i};
}

static void fill(fixture *f) {
    ing_bytes plain = make_image("plain", plain_source);
    ing_bytes imports = make_image("imports", import_source);
    CHECK(ing_store_put(f->s, ING_ENTRY_IMAGE, PLAIN, plain.at, plain.len) == ING_OK);
    CHECK(ing_store_put(f->s, ING_ENTRY_IMAGE, IMPORTS, imports.at, imports.len) ==
          ING_OK);
    for (uint32_t i = 0; i < SMALL; i++) {
        uint8_t p[64];
        size_t n = small(i, p);
        CHECK(ing_store_put(f->s, small_kind(i), small_key(i), p, n) == ING_OK);
    }
    CHECK(ing_store_put(f->s, ING_ENTRY_VALUE, PLAIN, "mine", 4) == ING_OK);
    CHECK(ing_store_put(f->s, ING_ENTRY_NOTES, PLAIN, "mine", 4) == ING_OK);
    ing_bytes_fini(&plain);
    ing_bytes_fini(&imports);
}

static ing_pack_report write_pack(fixture *f, const char *path,
                                  const ing_pack_order *fans) {
    ing_pack_report report;
    ing_err e;
    ing_err_init(&e);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (ing_pack_write(f->s, fd, fans, &report, &e) != ING_OK)
        fprintf(stderr, "%s\n", e.text ? e.text : "?");
    CHECK(e.status == ING_OK);
    ing_err_fini(&e);
    close(fd);
    return report;
}

static ing_bytes pack_bytes(fixture *f) {
    char path[256];
    snprintf(path, sizeof path, "%s/pack", make_dir);
    ing_pack_report r = write_pack(f, path, NULL);
    ing_bytes b = make_read("pack");
    CHECK(r.bytes == b.len && r.left_out == 0);
    return b;
}

/* ---- what is written is found -------------------------------------------------------------- */

/* Every entry reads as it was, or not at all; how many did. */
static uint32_t readable(const ing_pack *p, const ing_pack *original) {
    uint32_t good = 0;
    ing_bytes a, b;
    ing_bytes_init(&a);
    ing_bytes_init(&b);
    for (uint32_t i = 0; i < ing_pack_head_of(original)->n; i++) {
        ing_pack_item want = ing_pack_item_at(original, i), item;
        CHECK(ing_pack_read(original, &want, &a) == ING_OK);
        if (!ing_pack_find(p, want.kind, want.key, &item)) continue;
        ing_status s = ing_pack_read(p, &item, &b);
        CHECK(s == ING_OK || s == ING_FORMAT);
        if (s != ING_OK) continue;
        CHECK(a.len == b.len && memcmp(a.at, b.at, a.len) == 0);
        good++;
    }
    ing_bytes_fini(&a);
    ing_bytes_fini(&b);
    return good;
}

static void test_roundtrip(fixture *f) {
    ing_bytes b = pack_bytes(f), again = pack_bytes(f), got;
    ing_pack *p = NULL;
    ing_pack_item item;
    CHECK(b.len == again.len && memcmp(b.at, again.at, b.len) == 0);
    CHECK(ing_pack_open(b.at, b.len, &p, NULL) == ING_OK);
    CHECK(ing_pack_head_of(p)->n == SMALL + 2 && !ing_pack_fans(p));
    CHECK(ing_pack_verify(p, NULL) == ING_OK);
    CHECK(readable(p, p) == SMALL + 2);
    ing_bytes_init(&got);
    for (uint32_t i = 0; i < SMALL; i++) {
        uint8_t want[64];
        size_t n = small(i, want);
        CHECK(ing_pack_find(p, small_kind(i), small_key(i), &item));
        CHECK(ing_pack_read(p, &item, &got) == ING_OK && got.len == n &&
              memcmp(got.at, want, n) == 0);
    }
    CHECK(!ing_pack_find(p, ING_ENTRY_VALUE, PLAIN, &item));
    CHECK(!ing_pack_find(p, ING_ENTRY_NOTES, PLAIN, &item));
    CHECK(!ing_pack_find(p, ING_ENTRY_VARIANT, PLAIN, &item));
    CHECK(ing_pack_find(p, ING_ENTRY_IMAGE, PLAIN, &item) && item.at % 4096 == 0);
    ing_bytes_fini(&got);
    ing_pack_unref(p);
    ing_bytes_fini(&b);
    ing_bytes_fini(&again);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void test_truncation(const ing_bytes *b) {
    for (size_t n = 0; n < b->len; n++) {
        ing_pack *p = NULL;
        uint8_t *cut = malloc(n + 1); /* its own, so that a read past it is seen */
        if (!cut) abort();
        memcpy(cut, b->at, n);
        if (ing_pack_open(cut, n, &p, NULL) != ING_FORMAT || p) {
            CHECK(!"a pack cut short is refused");
            ing_pack_unref(p);
        }
        free(cut);
    }
}

static void test_flips(const ing_bytes *b) {
    bool stress = strcmp(make_env("INGOT_STRESS", "0"), "0") != 0;
    uint64_t rounds = stress ? 10000 : 2000, state = 42;
    uint32_t refused = 0, lost = 0;
    ing_pack *original = NULL, *p = NULL;
    uint8_t *copy = malloc(b->len);
    if (!copy) abort();
    CHECK(ing_pack_open(b->at, b->len, &original, NULL) == ING_OK);
    for (uint64_t i = 0; i < rounds; i++) {
        memcpy(copy, b->at, b->len);
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t span =
            i % 4 ? b->len : 4096; /* each fourth near the end: index and tail */
        size_t at = b->len - span + (state >> 33) % span;
        copy[at] ^= (uint8_t)(1u << (state >> 30 & 7));
        if (ing_pack_open(copy, b->len, &p, NULL) != ING_OK) {
            refused++;
            continue;
        }
        CHECK(ing_pack_verify(p, NULL) == ING_FORMAT); /* every byte counts there */
        lost += readable(p, original) < SMALL + 2;
        ing_pack_unref(p);
    }
    CHECK(refused > 0 && lost > 0);
    ing_pack_unref(original);
    free(copy);
}

/* A pack whose index is replaced and whose checksums are right. */
static ing_status open_forged(const ing_bytes *b, const ing_pack_head *head,
                              const ing_pack_item *items, uint32_t n) {
    ing_pack *p = NULL;
    ing_pack_head h = *head;
    uint8_t *copy = malloc(b->len);
    if (!copy) abort();
    memcpy(copy, b->at, b->len);
    for (uint32_t i = 0; i < n; i++)
        ing_pack_put_record(copy + h.index + i * ING_PACK_RECORD, &items[i]);
    uint64_t size = (uint64_t)h.n * ING_PACK_RECORD + h.n_fans * 8ull;
    if (h.index <= b->len && size <= b->len - h.index)
        h.index_sum = ing_hash(copy + h.index, size);
    ing_pack_put_tail(copy + b->len - ING_PACK_TAIL, &h);
    ing_status s = ing_pack_open(copy, b->len, &p, NULL);
    if (s == ING_OK) (void)ing_pack_verify(p, NULL);
    ing_pack_unref(p);
    free(copy);
    return s;
}

static void test_lies(const ing_bytes *b) {
    ing_pack *p = NULL;
    ing_pack_item items[SMALL + 2];
    CHECK(ing_pack_open(b->at, b->len, &p, NULL) == ING_OK);
    ing_pack_head h = *ing_pack_head_of(p), lie;
    for (uint32_t i = 0; i < h.n; i++) items[i] = ing_pack_item_at(p, i);
    CHECK(open_forged(b, &h, items, h.n) == ING_OK);
    const uint64_t bad[] = {1,      4095,       b->len - 64,
                            b->len, UINT64_MAX, UINT64_MAX - 4095};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        lie = h, lie.code = bad[k];
        CHECK(open_forged(b, &lie, items, 0) == ING_FORMAT);
        lie = h, lie.code_size = bad[k];
        CHECK(open_forged(b, &lie, items, 0) == ING_FORMAT);
        lie = h, lie.index = bad[k];
        CHECK(open_forged(b, &lie, items, 0) == ING_FORMAT);
        lie = h, lie.size = bad[k];
        CHECK(b->len == bad[k] || open_forged(b, &lie, items, 0) == ING_FORMAT);
        for (uint32_t i = 0; i < h.n; i += 11) {
            ing_pack_item was = items[i];
            items[i].at = bad[k];
            CHECK(open_forged(b, &h, items, h.n) == ING_FORMAT);
            items[i] = was;
            items[i].len = bad[k] < 4096 ? UINT32_MAX : bad[k];
            CHECK(open_forged(b, &h, items, h.n) == ING_FORMAT);
            items[i] = was;
        }
    }
    lie = h, lie.n = UINT32_MAX;
    CHECK(open_forged(b, &lie, items, 0) == ING_FORMAT);
    lie = h, lie.n_fans = 255;
    CHECK(open_forged(b, &lie, items, 0) == ING_FORMAT);
    ing_pack_item was = items[5];
    items[5] = items[4]; /* twice */
    CHECK(open_forged(b, &h, items, h.n) == ING_FORMAT);
    items[5] = was;
    items[h.n - 1].kind = ING_ENTRY_NOTES;
    CHECK(open_forged(b, &h, items, h.n) == ING_FORMAT);
    ing_pack_unref(p);
}

static void test_no_memory(const ing_bytes *b) {
    for (uint64_t n = 1; n < 10; n++) {
        ing_pack *p = NULL;
        ing_alloc_fail_at(n);
        ing_status s = ing_pack_open(b->at, b->len, &p, NULL);
        CHECK(s == ING_OK || s == ING_MEMORY);
        ing_alloc_fail_at(0);
        ing_pack_unref(p);
    }
}

/* ---- as a layer ------------------------------------------------------------------------------ */

/* "r-xp" and the file of the page, "" for none. */
static void mapping_of(const void *p, char prot[8], char file[512]) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024];
    prot[0] = file[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long lo, hi;
        char name[512] = "", flags[8];
        if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %511s", &lo, &hi, flags, name) >=
                3 &&
            lo <= (uintptr_t)p && (uintptr_t)p < hi) {
            strcpy(prot, flags);
            strcpy(file, name);
        }
    }
    if (f) fclose(f);
}

static ing_image *image_from(fixture *f, ing_hash128 key) {
    ing_entry entry;
    ing_image *i = NULL;
    if (ing_store_get(f->s, ING_ENTRY_IMAGE, key, &entry) != ING_OK) return NULL;
    CHECK(ing_image_of_entry(&entry, &i, NULL) == ING_OK);
    CHECK(!entry.pack && !entry.data && entry.fd == -1);
    return i;
}

static void check_runs(const ing_image *plain, const ing_image *imports, bool in_file) {
    char buf[8] = "", prot[8], file[512];
    const ing_image *both[] = {plain, imports};
    if (!plain || !imports) {
        CHECK(!"both are found");
        return;
    }
    CHECK(ing_image_entry(plain)(NULL, 5, 30, 9) == 921);
    CHECK(ing_image_entry(imports)((ing_ctx *)buf, 'q', 3, 77) == 77);
    CHECK_STR(buf, "qqq");
    for (int k = 0; k < 2; k++) {
        ing_task_fn fn = ing_image_entry(both[k]);
        const void *code;
        memcpy(&code, &fn, sizeof code);
        mapping_of(code, prot, file);
        CHECK_STR(prot, "r-xp");
        CHECK((strstr(file, ING_PACK_NAME) != NULL) == in_file);
    }
}

static void seal(fixture *from, fixture *to, const char *name) {
    char path[256];
    memset(to, 0, sizeof *to);
    snprintf(to->dir, sizeof to->dir, "%s/%s", make_dir, name);
    CHECK(mkdir(to->dir, 0755) == 0 || access(to->dir, F_OK) == 0);
    snprintf(path, sizeof path, "%s/%s", to->dir, ING_PACK_NAME);
    write_pack(from, path, NULL);
    snprintf(path, sizeof path, "%s/%s", to->dir, ING_PACK_MANIFEST);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    reopen(to);
}

static void test_sealed(fixture *from) {
    fixture f;
    ing_bytes b;
    seal(from, &f, "sealed");
    CHECK(!ing_store_writable(f.s)); /* though it is ours, and its mode would let us */
    CHECK(ing_store_put(f.s, ING_ENTRY_ALIAS, PLAIN, "x", 1) == ING_DECLINED);
    ing_bytes_init(&b);
    for (uint32_t i = 0; i < SMALL; i++) {
        uint8_t want[64];
        size_t n = small(i, want);
        CHECK(ing_store_read_layer(f.s, 0, small_kind(i), small_key(i), &b) == ING_OK);
        CHECK(b.len == n && memcmp(b.at, want, n) == 0);
    }
    CHECK(ing_store_read(f.s, ING_ENTRY_VALUE, PLAIN, &b) == ING_DECLINED);
    ing_bytes_fini(&b);
    ing_image *plain = image_from(&f, PLAIN), *imports = image_from(&f, IMPORTS);
    ing_image *twice =
        image_from(&f, IMPORTS); /* what was filled is not what is in the pack */
    CHECK(f.n.at[ING_COUNT_PACK_HITS] == SMALL + 3);
    CHECK(f.n.at[ING_COUNT_STORE_BAD_ENTRY] == 0 &&
          f.n.at[ING_COUNT_STORE_IO_ERRORS] == 0);
    end(&f); /* images keep the pack */
    check_runs(plain, imports, true);
    ing_image_unref(imports);
    check_runs(plain, twice, true);
    ing_image_unref(twice);
    ing_image_unref(plain);
}

static void test_noexec(fixture *from) {
    char path[256];
    fixture f;
    snprintf(path, sizeof path, "%s/noexec", make_dir);
    CHECK(mkdir(path, 0700) == 0);
    if (mount("none", path, "tmpfs", MS_NOEXEC, "size=4m,mode=0700") != 0) {
        make_not_run(
            "packs on a mount without execution (no tmpfs may be mounted here)");
        return;
    }
    seal(from, &f, "noexec");
    ing_image *plain = image_from(&f, PLAIN), *imports = image_from(&f, IMPORTS);
    end(&f);
    check_runs(plain, imports, false);
    ing_image_unref(plain);
    ing_image_unref(imports);
    umount2(path, MNT_DETACH);
}

/* An entry of the pack that is damaged is asked of the files below; a pack that is no pack
 * is as none. */
static void test_damaged_layer(fixture *from) {
    fixture f;
    char path[256];
    ing_pack_item item;
    ing_pack *p = NULL;
    ing_bytes b = pack_bytes(from);
    CHECK(ing_pack_open(b.at, b.len, &p, NULL) == ING_OK);
    CHECK(ing_pack_find(p, ING_ENTRY_IMAGE, PLAIN, &item));
    b.at[item.at + 100] ^= 1;
    ing_pack_unref(p);
    seal(from, &f, "damaged");
    snprintf(path, sizeof path, "%s/%s", f.dir, ING_PACK_NAME);
    for (int cut = 0; cut < 2; cut++) {
        int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        CHECK(fd >= 0 && ing_os_write_all(fd, b.at, b.len - (cut ? 1 : 0)));
        close(fd);
        reopen(&f);
        ing_image *i = image_from(&f, PLAIN), *other = image_from(&f, IMPORTS);
        CHECK(!i && (other != NULL) == !cut);
        CHECK(f.n.at[ING_COUNT_STORE_BAD_ENTRY] == 1);
        ing_image_unref(other);
    }
    end(&f);
    ing_bytes_fini(&b);
}

static void test_root_rule(fixture *from) {
    fixture f;
    char path[256];
    seal(from, &f, "open");
    snprintf(path, sizeof path, "%s/%s", f.dir, ING_PACK_NAME);
    chmod(path, 0666); /* others may write to it */
    reopen(&f);
    ing_image *i = image_from(&f, PLAIN);
    CHECK(!i && f.n.at[ING_COUNT_STORE_FOREIGN] == 1);
    ing_image_unref(i);
    end(&f);
}

/* ---- packing what is written ----------------------------------------------------------------- */

static ing_status write_ordered(ing_store *from, int fd, const ing_pack_order *order,
                                ing_err *e) {
    ing_pack_report report;
    return ing_pack_write(from, fd, order, &report, e);
}

static ing_status write_nothing(ing_store *from, int fd, const ing_pack_order *order,
                                ing_err *e) {
    (void)from, (void)order;
    CHECK(ing_os_write_all(fd, "half", 4)); /* the disk is full */
    return ing_fail(e, ING_OS, "no space");
}

static ing_hash128 many_key(uint32_t i) {
    return (ing_hash128){i, (uint64_t)i << 56 | 7};
}

/* As if nothing had been written for an hour. */
static void settle(const fixture *f) {
    for (unsigned i = 0; i < 256; i++) {
        char path[256];
        struct timespec t[2] = {{.tv_sec = 1600000000, .tv_nsec = 5},
                                {.tv_sec = 1600000000, .tv_nsec = 5}};
        snprintf(path, sizeof path, "%s/x/%02x", f->dir, i);
        (void)utimensat(AT_FDCWD, path, t, 0);
    }
}

static void put_many(fixture *f, uint32_t from, uint32_t n) {
    for (uint32_t i = from; i < from + n; i++)
        CHECK(ing_store_put(f->s, i % 2 ? ING_ENTRY_INDEX : ING_ENTRY_VARIANT,
                            many_key(i), &i, sizeof i) == ING_OK);
}

/* The entry's number, and whether a pack had it. */
static uint32_t number(fixture *f, uint32_t i, bool *packed) {
    uint32_t v = UINT32_MAX;
    ing_bytes b;
    ing_bytes_init(&b);
    uint64_t before = f->n.at[ING_COUNT_PACK_HITS];
    if (ing_store_read_layer(f->s, 0, i % 2 ? ING_ENTRY_INDEX : ING_ENTRY_VARIANT,
                             many_key(i), &b) == ING_OK &&
        b.len == sizeof v)
        memcpy(&v, b.at, sizeof v);
    ing_bytes_fini(&b);
    *packed = f->n.at[ING_COUNT_PACK_HITS] > before;
    return v;
}

static void path_in(const fixture *f, const char *name, char out[256]) {
    snprintf(out, 256, "%s/%s", f->dir, name);
}

static void test_repack(void) {
    fixture f;
    bool packed;
    char path[256];
    uint32_t fresh = 77777;
    begin(&f, "repack");
    path_in(&f, ING_PACK_NAME, path);
    put_many(&f, 0, 127);
    CHECK(!ing_store_wants_pack(f.s)); /* too few */
    CHECK(ing_store_repack(f.s, write_ordered) == ING_DECLINED &&
          access(path, F_OK) != 0);
    put_many(&f, 127, 73);
    settle(&f);
    CHECK(ing_store_wants_pack(f.s));
    CHECK(ing_store_repack(f.s, write_nothing) == ING_DECLINED &&
          access(path, F_OK) != 0);
    CHECK(!ing_store_wants_pack(f.s)); /* not tried again at once */
    reopen(&f);
    put_many(&f, 200, 1); /* its directory has just changed */
    CHECK(ing_store_wants_pack(f.s) && ing_store_repack(f.s, write_ordered) == ING_OK);
    CHECK(f.n.at[ING_COUNT_PACKS_MADE] == 1 && !ing_store_wants_pack(f.s));
    CHECK(ing_store_repack(f.s, write_ordered) == ING_DECLINED); /* it has not grown */
    ing_store_totals t;
    struct stat st;
    CHECK(stat(path, &st) == 0 &&
          ing_store_totals_get(f.s, ING_ENTRY_IMAGE, &t) == ING_OK);
    CHECK(t.entries == 201 && t.bytes == 201 * 68 + (uint64_t)st.st_size);
    reopen(&f);
    for (uint32_t i = 0; i <= 200; i++) CHECK(number(&f, i, &packed) == i && packed);
    /* Of indexes that changed the file counts, of those that went nothing is left. */
    CHECK(ing_store_put(f.s, ING_ENTRY_INDEX, many_key(51), &fresh, 4) == ING_OK);
    CHECK(number(&f, 51, &packed) == fresh && !packed);
    CHECK(ing_store_remove(f.s, ING_ENTRY_INDEX, many_key(53)));
    CHECK(number(&f, 53, &packed) == UINT32_MAX);
    CHECK(number(&f, 55, &packed) == 55 && packed);
    /* An entry that is gone is in the next pack no more. */
    CHECK(ing_store_remove(f.s, ING_ENTRY_VARIANT, many_key(2)));
    CHECK(number(&f, 2, &packed) == 2 && packed);
    put_many(&f, 201, 50);
    put_many(&f, 1000, 80);
    CHECK(ing_store_wants_pack(f.s) && ing_store_repack(f.s, write_ordered) == ING_OK);
    reopen(&f);
    CHECK(number(&f, 2, &packed) == UINT32_MAX);
    CHECK(number(&f, 51, &packed) == fresh && !packed); /* too young to be believed */
    CHECK(number(&f, 4, &packed) == 4 && packed);
    /* The sweep gives the pack up first. */
    ing_store_totals removed;
    CHECK(ing_store_sweep(f.s, ING_ENTRY_IMAGE, (ing_store_totals){0, 330 * 68},
                          &removed) == ING_OK);
    CHECK(removed.entries == 0 && removed.bytes > 0 && access(path, F_OK) != 0);
    end(&f);
}

static void test_repack_bounds(void) {
    fixture f;
    char path[256];
    begin(&f, "bounds");
    path_in(&f, ING_PACK_NAME, path);
    ing_store_set_bounds(f.s, (ing_store_totals){1000, 300 * 68});
    put_many(&f, 0, 200);
    CHECK(ing_store_wants_pack(f.s)); /* there is no room for both */
    CHECK(ing_store_repack(f.s, write_ordered) == ING_DECLINED &&
          access(path, F_OK) != 0);
    CHECK(!ing_store_wants_pack(f.s));
    end(&f);
    /* A pack that was made when there was room goes when there is none, and with all else. */
    begin(&f, "bounds");
    put_many(&f, 200, 1);
    CHECK(ing_store_repack(f.s, write_ordered) == ING_OK && access(path, F_OK) == 0);
    ing_store_set_bounds(f.s, (ing_store_totals){1000, 300 * 68});
    CHECK(ing_store_repack(f.s, write_ordered) == ING_DECLINED &&
          access(path, F_OK) != 0);
    ing_store_totals t;
    CHECK(ing_store_totals_get(f.s, ING_ENTRY_IMAGE, &t) == ING_OK &&
          t.bytes == 201 * 68);
    ing_store_set_bounds(f.s, (ing_store_totals){0, 0});
    CHECK(ing_store_repack(f.s, write_ordered) == ING_OK && access(path, F_OK) == 0);
    CHECK(ing_store_clear(f.s, ING_ENTRY_IMAGE, &t) == ING_OK &&
          access(path, F_OK) != 0);
    end(&f);
}

int main(void) {
    fixture f;
    umask(022);
    make_begin();
    begin(&f, "cache");
    fill(&f);
    test_roundtrip(&f);
    ing_bytes b = pack_bytes(&f);
    test_truncation(&b);
    test_flips(&b);
    test_lies(&b);
    test_no_memory(&b);
    ing_bytes_fini(&b);
    test_sealed(&f);
    test_noexec(&f);
    test_damaged_layer(&f);
    test_root_rule(&f);
    test_repack();
    test_repack_bounds();
    end(&f);
    folder_remove(make_dir);
    return CHECK_DONE();
}
