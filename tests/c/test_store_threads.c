/* Store and loader under many threads: one store with a pack, and everything that may be done
 * to it at once. Whatever is found is right, also while entries are replaced, swept and
 * removed, and while the whole directory is deleted. For TSan and ASan above all; INGOT_STRESS=1
 * takes twenty times as many steps. */
#include "image/image_int.h"
#include "folder.h"
#include "image_make.h"
#include "store/pack.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

enum { THREADS = 8, STEPS = 400, SMALL = 24, IMAGES = 2 };

static const char *const source[IMAGES] = {
    "typedef long long i64;\n" /* runs where it lies in a pack */
    "int ing_task(void *p, i64 begin, i64 end, i64 chunk) {\n"
    "    (void)p; return (int)(begin * 100 + end - chunk);\n"
    "}\n",
    "#include <string.h>\ntypedef long long i64;\n" /* has something to be filled */
    "int ing_task(char *p, i64 begin, i64 end, i64 chunk) {\n"
    "    memset(p, (int)begin, (size_t)end); return (int)(begin * 100 + end - chunk);\n"
    "}\n"};

typedef struct world {
    char dir[160];
    ing_counters n;
    ing_store *s;
    ing_bytes image[IMAGES];
    uint32_t steps;
    uint32_t wrong, found; /* atomic */
} world;

typedef struct worker {
    pthread_t id;
    world *w;
    uint64_t random;
} worker;

static uint32_t next(worker *k, uint32_t bound) { /* xorshift64* */
    k->random ^= k->random >> 12;
    k->random ^= k->random << 25;
    k->random ^= k->random >> 27;
    return (uint32_t)(k->random * 0x2545f4914f6cdd1d >> 33) % bound;
}

static void found(world *w, bool right) {
    __atomic_fetch_add(right ? &w->found : &w->wrong, 1, __ATOMIC_RELAXED);
}

static ing_hash128 key_of(uint32_t i) {
    return (ing_hash128){i, (uint64_t)(i * 37 % 256) << 56 | i};
}

static size_t payload(uint32_t i, uint8_t out[600]) {
    size_t n = i * 53 % 600;
    for (size_t k = 0; k < n; k++) out[k] = (uint8_t)(i * 31 + k);
    return n;
}

/* ---- what a thread may do ------------------------------------------------------------------ */

static void run_image(worker *k, uint32_t i) {
    ing_entry entry;
    ing_image *image = NULL;
    char buf[16] = {0};
    if (ing_store_get(k->w->s, ING_ENTRY_IMAGE, key_of(i), &entry) != ING_OK) return;
    if (ing_image_of_entry(&entry, &image, NULL) != ING_OK) {
        found(k->w, false); /* it was checked */
        return;
    }
    found(k->w, ing_image_entry(image)((ing_ctx *)buf, 7, 9, 2) == 707 &&
                    (i == 0 || memcmp(buf, "\7\7\7\7\7\7\7\7\7\0", 10) == 0));
    ing_image_unref(image);
}

static void put_image(worker *k, uint32_t i) {
    const ing_bytes *b = &k->w->image[i];
    (void)ing_store_put(k->w->s, ING_ENTRY_IMAGE, key_of(i), b->at, b->len);
}

static void read_small(worker *k, uint32_t i) {
    uint8_t want[600];
    size_t n = payload(i, want);
    ing_bytes b;
    ing_bytes_init(&b);
    if (ing_store_read(k->w->s, ING_ENTRY_VARIANT, key_of(i), &b) == ING_OK)
        found(k->w, b.len == n && (!n || memcmp(b.at, want, n) == 0));
    ing_bytes_fini(&b);
}

static void put_small(worker *k, uint32_t i) {
    uint8_t p[600];
    size_t n = payload(i, p);
    (void)ing_store_put(k->w->s, ING_ENTRY_VARIANT, key_of(i), p, n);
}

static void hold_lease(worker *k, uint32_t i) {
    ing_lease l;
    ing_lease_state s =
        ing_lease_take(k->w->s, ING_ENTRY_IMAGE, key_of(i), 1000000000, &l);
    if (s == ING_LEASE_HELD) ing_lease_release(&l);
    if (s == ING_LEASE_BUSY)
        ing_lease_wait(k->w->s, ING_ENTRY_IMAGE, key_of(i), 2000000);
}

static bool see(void *ctx, const ing_store_item *item) {
    *(uint64_t *)ctx += item->bytes;
    return true;
}

static void look_around(worker *k) {
    ing_store_totals t;
    uint64_t bytes = 0;
    (void)ing_store_each(k->w->s, ING_ENTRY_VARIANT, see, &bytes);
    (void)ing_store_totals_get(k->w->s, ING_ENTRY_IMAGE, &t);
    (void)ing_store_verify(k->w->s, ING_ENTRY_VARIANT, key_of(3), true);
}

static void step(worker *k) {
    uint32_t i = next(k, SMALL), image = next(k, IMAGES), what = next(k, 64);
    if (what < 24) {
        run_image(k, image);
    } else if (what < 40) {
        read_small(k, i);
    } else if (what < 48) {
        put_small(k, i);
    } else if (what < 53) {
        put_image(k, image);
    } else if (what < 57) {
        hold_lease(k, image);
    } else if (what < 60) {
        (void)ing_store_remove(k->w->s, ING_ENTRY_VARIANT, key_of(i));
    } else if (what < 61) {
        (void)ing_store_remove(k->w->s, ING_ENTRY_IMAGE, key_of(image));
    } else if (what < 62) {
        look_around(k);
    } else if (what < 63) {
        ing_store_totals bounds = {.entries = SMALL / 2};
        (void)ing_store_sweep(k->w->s, ING_ENTRY_IMAGE, bounds, NULL);
    } else if (next(k, 8) == 0) { /* somebody deletes the cache under us */
        folder_remove(k->w->dir);
    }
}

static void *work(void *arg) {
    worker *k = arg;
    for (uint32_t n = 0; n < k->w->steps; n++) step(k);
    return NULL;
}

/* ---- the test ---------------------------------------------------------------------------------- */

static void open_store(world *w) {
    ing_err e;
    ing_err_init(&e);
    if (ing_store_open(w->dir, &w->n, &w->s, &e) != ING_OK) abort();
    ing_err_fini(&e);
}

/* Everything is there, in files and in a pack. */
static void fill(world *w) {
    worker k = {.w = w};
    ing_pack_report report;
    char path[256];
    open_store(w);
    for (uint32_t i = 0; i < IMAGES; i++) put_image(&k, i);
    for (uint32_t i = 0; i < SMALL; i++) put_small(&k, i);
    snprintf(path, sizeof path, "%s/%s", w->dir, ING_PACK_NAME);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(ing_pack_write(w->s, fd, NULL, &report, NULL) == ING_OK);
    close(fd);
    ing_store_close(w->s);
}

static void test_together(world *w) {
    worker k[THREADS];
    fill(w);
    open_store(w);
    for (uint32_t i = 0; i < THREADS; i++) {
        k[i] = (worker){.w = w, .random = 0x9e3779b97f4a7c15 * (i + 1)};
        CHECK(pthread_create(&k[i].id, NULL, work, &k[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) CHECK(pthread_join(k[i].id, NULL) == 0);
    CHECK(w->wrong == 0 && w->found > w->steps);
    CHECK(w->n.at[ING_COUNT_STORE_BAD_ENTRY] == 0);
    CHECK(w->n.at[ING_COUNT_PACK_HITS] > 0 && w->n.at[ING_COUNT_STORE_EVICTED] > 0);
    uint32_t before = w->found; /* and it still works */
    put_image(&k[0], 1);
    run_image(&k[0], 1);
    CHECK(w->found == before + 1 && w->wrong == 0);
    ing_store_close(w->s);
}

int main(void) {
    const char *stress = getenv("INGOT_STRESS");
    world w = {.steps = stress && *stress && strcmp(stress, "0") ? 20 * STEPS : STEPS};
    umask(022);
    make_begin();
    snprintf(w.dir, sizeof w.dir, "%s/cache", make_dir);
    for (uint32_t i = 0; i < IMAGES; i++)
        w.image[i] = make_image(i ? "imports" : "plain", source[i]);
    test_together(&w);
    for (uint32_t i = 0; i < IMAGES; i++) ing_bytes_fini(&w.image[i]);
    folder_remove(w.dir);
    make_end();
    return CHECK_DONE();
}
