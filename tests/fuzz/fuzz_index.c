/* Indexes: keys and a decision tree. What is accepted can be walked with any answers, ends
 * at a key that there is, and is written and read again. */
#include "fuzz.h"
#include "trace/trace.h"

typedef struct walker {
    const ing_paths *paths;
    uint64_t state, asked;
} walker;

static ing_status answer(void *self, ing_path path, ing_ask ask, ing_hash128 *out,
                         ing_err *e) {
    (void)ask, (void)e;
    walker *w = self;
    FUZZ_CHECK(path && path < w->paths->nodes.len);
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    *out = (ing_hash128){w->state >> 60, w->state >> 62};
    return ++w->asked > 1 << 20 ? ING_INTERNAL : ING_OK; /* edges lead downwards */
}

static void walk(const ing_tree *tree, const ing_paths *paths, uint32_t n_keys) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        walker w = {paths, seed, 0};
        uint32_t variant = 0;
        ing_questions asked = {0};
        ing_status s = ing_tree_walk(tree, answer, &w, &variant, &asked, NULL);
        FUZZ_CHECK(s == ING_OK || s == ING_DECLINED);
        FUZZ_CHECK(s != ING_OK || variant < n_keys);
        ing_vec_fini(&asked);
    }
}

static bool read_index(const uint8_t *p, size_t n, ing_bytes *again) {
    ing_paths paths;
    ing_index_keys keys = {0};
    ing_bytes only;
    ing_bytes_init(&only);
    ing_paths_init(&paths);
    ing_tree *tree = ing_tree_new();
    FUZZ_CHECK(tree);
    bool ok = ing_index_read(p, n, &paths, tree, &keys, &only) == ING_OK;
    if (ok) walk(tree, &paths, keys.len);
    if (ok && again) ing_index_write(tree, &paths, &keys, &only, again);
    ing_vec_fini(&keys);
    ing_bytes_fini(&only);
    ing_tree_free(tree);
    ing_paths_fini(&paths);
    return ok;
}

void fuzz_index(const uint8_t *p, size_t n) {
    ing_bytes again;
    ing_bytes_init(&again);
    if (read_index(p, n, &again) && !again.failed)
        FUZZ_CHECK(read_index(again.at, again.len, NULL));
    ing_bytes_fini(&again);
}
