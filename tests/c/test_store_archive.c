/* store: archives. What is exported is imported elsewhere, entry for entry; every truncation
 * and bit flip is refused with nothing published; sizes that lie cost no memory; notes and
 * values are not carried. */
#include "store/store.h"
#include "check.h"
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/ingot_test_archive_XXXXXX";

static ing_store *store_new(const char *name) {
    char dir[128];
    ing_store *s = NULL;
    snprintf(dir, sizeof dir, "%s/%s", root, name);
    CHECK(ing_store_open(dir, NULL, &s, NULL) == ING_OK);
    if (!s) abort();
    return s;
}

static int file_new(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    return fd;
}

static ing_hash128 key_of(uint32_t k) {
    return (ing_hash128){k, (uint64_t)k << 56 | 7};
}

static bool has(ing_store *s, ing_entry_kind kind, uint32_t k, const char *want) {
    ing_bytes b;
    ing_bytes_init(&b);
    bool ok = ing_store_read(s, kind, key_of(k), &b) == ING_OK &&
              b.len == strlen(want) && memcmp(b.at, want, b.len) == 0;
    ing_bytes_fini(&b);
    return ok;
}

static bool put(ing_store *s, ing_entry_kind kind, uint32_t k, const char *text) {
    return ing_store_put(s, kind, key_of(k), text, strlen(text)) == ING_OK;
}

/* ---- a taker that takes all but what begins with a dash -------------------------------- */

typedef struct taken {
    uint32_t n, first_index, last_other;
} taken;

static ing_status look(void *self, ing_entry_kind kind, const uint8_t *p, size_t n) {
    (void)self, (void)kind;
    return n && p[0] == '-' ? ING_DECLINED : ING_OK;
}

static ing_status take(void *self, ing_store *s, ing_entry_kind kind, ing_hash128 key,
                       const uint8_t *p, size_t n) {
    taken *t = self;
    t->n++;
    if (kind != ING_ENTRY_INDEX) t->last_other = t->n;
    if (kind == ING_ENTRY_INDEX && !t->first_index) t->first_index = t->n;
    return ing_store_put(s, kind, key, p, n);
}

static ing_status import(ing_store *s, int fd, taken *t, ing_archive_report *r) {
    const ing_archive_taker taker = {t, look, take};
    ing_err e;
    ing_err_init(&e);
    ing_status status = ing_store_import(s, fd, &taker, r, &e);
    CHECK((status == ING_OK) == (e.text == NULL));
    ing_err_fini(&e);
    return status;
}

static ing_store *filled(void) {
    ing_store *s = store_new("from");
    CHECK(put(s, ING_ENTRY_INDEX, 1, "index") &&
          put(s, ING_ENTRY_VARIANT, 2, "variant"));
    CHECK(put(s, ING_ENTRY_IMAGE, 3, "image") && put(s, ING_ENTRY_ALIAS, 4, ""));
    CHECK(put(s, ING_ENTRY_NOTES, 5, "notes") && put(s, ING_ENTRY_VALUE, 6, "value"));
    CHECK(put(s, ING_ENTRY_VARIANT, 7, "-other version"));
    return s;
}

static void test_there_and_back(ing_store *from, int fd) {
    ing_archive_report r;
    taken t = {0};
    CHECK(ing_store_export(from, fd, &r, NULL) == ING_OK);
    CHECK(r.entries == 5 && r.left_out == 0 && r.bytes == 5 + 7 + 5 + 0 + 14);
    ing_store *to = store_new("to");
    CHECK(import(to, fd, &t, &r) == ING_OK && r.entries == 5 && r.left_out == 1);
    CHECK(t.n == 4 && t.first_index == 4 && t.last_other == 3);
    CHECK(has(to, ING_ENTRY_INDEX, 1, "index") &&
          has(to, ING_ENTRY_VARIANT, 2, "variant"));
    CHECK(has(to, ING_ENTRY_IMAGE, 3, "image") && has(to, ING_ENTRY_ALIAS, 4, ""));
    CHECK(!has(to, ING_ENTRY_NOTES, 5, "notes") &&
          !has(to, ING_ENTRY_VALUE, 6, "value"));
    CHECK(!has(to, ING_ENTRY_VARIANT, 7, "-other version"));
    ing_store_close(to);
}

static void refuses(ing_store *to, const uint8_t *p, size_t n) {
    ing_archive_report r;
    taken t = {0};
    int fd = file_new("bad");
    CHECK(ing_os_write_all(fd, p, n));
    CHECK(import(to, fd, &t, &r) == ING_FORMAT && t.n == 0);
    close(fd);
}

static void test_damage(int fd) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_store *to = store_new("none");
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(ing_os_read_fd(fd, 1 << 20, &b, NULL) == ING_OK && b.len > 400);
    for (size_t n = 0; n < b.len; n++) refuses(to, b.at, n);
    for (size_t bit = 0; bit < 8 * b.len; bit++) {
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        refuses(to, b.at, b.len);
        b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ing_bytes_u8(&b, 0);
    refuses(to, b.at, b.len); /* something after its end */
    ing_store_totals t;
    CHECK(ing_store_totals_get(to, ING_ENTRY_IMAGE, &t) == ING_OK && t.entries == 0);
    ing_store_close(to);
    ing_bytes_fini(&b);
}

/* The largest size that an entry may have, and nothing behind it: no memory is taken. */
static void test_lies(void) {
    uint8_t head[24] = "INGOTARC\1";
    ing_store *to = store_new("lies");
    uint64_t sizes[] = {(uint64_t)ING_STORE_MAX_ENTRY + 64, UINT64_MAX, 63, 1};
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 8; k++) head[16 + k] = (uint8_t)(sizes[i] >> 8 * k);
        refuses(to, head, sizeof head);
    }
    ing_store_close(to);
}

static void test_clear(ing_store *s) {
    char path[160];
    ing_store_totals removed = {0, 0};
    snprintf(path, sizeof path, "%s/i/mine", ing_store_dir(s));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    CHECK(ing_store_clear(s, ING_ENTRY_IMAGE, &removed) == ING_OK &&
          removed.entries == 6);
    CHECK(!has(s, ING_ENTRY_IMAGE, 3, "image") && has(s, ING_ENTRY_VALUE, 6, "value"));
    CHECK(access(path, F_OK) == 0); /* nothing of ours: stays */
    CHECK(unlink(path) == 0);
    CHECK(ing_store_clear(s, ING_ENTRY_VALUE, &removed) == ING_OK &&
          removed.entries == 1);
    CHECK(rmdir(ing_store_dir(s)) !=
          0); /* the directory of images, until it is asked */
    CHECK(ing_store_clear(s, ING_ENTRY_IMAGE, &removed) == ING_OK &&
          removed.entries == 0);
    CHECK(rmdir(ing_store_dir(s)) == 0);
}

int main(void) {
    folder_make(root);
    ing_store *from = filled();
    int fd = file_new("archive");
    test_there_and_back(from, fd);
    test_damage(fd);
    test_lies();
    test_clear(from);
    close(fd);
    ing_store_close(from);
    folder_remove(root);
    return CHECK_DONE();
}
