/* The layers of a store: which directories a path names, which of them is written, and
 * which are only read. Called when the store is opened. A layer that may not be trusted
 * (R20) is left out with its reason, and never stands in the way of the others.
 *
 * Entries are immutable and named by what they are made from, so it does not matter which
 * layer answers: the one that is written is asked first, the others in their order. Only
 * indexes differ between layers; their reader asks each (ing_store_read_layer). */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LAYERS = 16 }; /* each costs a miss some system calls */

typedef struct opening {
    ing_counters *counters;
    ing_store *written, *first, **last; /* the rest as a list */
    ing_bytes *skipped;
    uint32_t n;
    bool quiet; /* for a tool: also the time of a pack stays */
} opening;

/* A seal, a mount or a mode may forbid what the owner could do. */
static bool can_be_written(const ing_store *s) {
    return !s->read_only && faccessat(s->fds->top, ".", W_OK, AT_EACCESS) == 0;
}

static void append(opening *o, ing_store *s) {
    *o->last = s;
    o->last = &s->below;
}

static void skip(opening *o, const ing_err *why) {
    if (o->counters) ing_count(o->counters, ING_COUNT_STORE_LAYERS_SKIPPED);
    if (o->skipped->len) ing_bytes_puts(o->skipped, "; ");
    ing_bytes_puts(o->skipped, why->text ? why->text : "no memory");
}

/* Whether it is ours to write, with no layer before it that is. */
static bool open_written(opening *o, const char *dir, ing_err *why) {
    ing_layer_want want = {.dir = dir, .create = o->n == 0};
    if (o->written ||
        ing_store_open_layer(&want, o->counters, &o->written, why) != ING_OK)
        return false;
    if (can_be_written(o->written)) {
        o->written->quiet = o->quiet;
        ing_packed_open(o->written);
        return true;
    }
    ing_store_close(o->written);
    o->written = NULL;
    return false;
}

static bool is_missing(const char *dir) {
    return access(dir, F_OK) != 0 && errno == ENOENT;
}

static ing_status open_read(opening *o, const char *dir, ing_err *why, ing_err *e) {
    ing_store *s = NULL;
    ing_err also;
    ing_err_init(&also);
    ing_layer_want want = {.dir = dir, .read_only = true};
    ing_status status = ing_store_open_layer(&want, o->counters, &s, &also);
    if (status == ING_OK) {
        s->quiet = o->quiet;
        ing_packed_open(s);
        append(o, s);
    }
    if (status == ING_DECLINED && !(o->n > 0 && is_missing(dir)))
        skip(o, why->text ? why : &also);
    ing_err_fini(&also);
    return status == ING_MEMORY ? ing_fail(e, ING_MEMORY, "no memory for a cache layer")
                                : ING_OK;
}

static ing_status open_one(opening *o, const char *dir, ing_err *e) {
    ing_err why; /* it cannot be written, which says more than that it cannot be read */
    ing_err_init(&why);
    ing_status s = open_written(o, dir, &why) ? ING_OK : open_read(o, dir, &why, e);
    ing_err_fini(&why);
    return s;
}

/* The next directory of the path, copied; *at moves past it. NULL: no memory. */
static char *next_name(const char **at, const char *dir) {
    ing_bytes b;
    const char *end = strchr(*at, ':');
    size_t n = end ? (size_t)(end - *at) : strlen(*at);
    ing_bytes_init(&b);
    if (n)
        ing_bytes_put(&b, *at, n);
    else
        ing_bytes_puts(&b, dir);
    *at = end ? end + 1 : NULL;
    return ing_bytes_take(&b);
}

static ing_status open_all(opening *o, const char *path, const char *dir, ing_err *e) {
    for (const char *at = path; at && o->n < MAX_LAYERS; o->n++) {
        char *name = next_name(&at, dir);
        if (!name) return ing_fail(e, ING_MEMORY, "no memory for a cache layer");
        ing_status s = name[0] ? open_one(o, name, e) : ING_OK;
        ing_free(name);
        ING_TRY(s);
    }
    return ING_OK;
}

ing_status ing_store_open_path(const char *path, const char *dir,
                               ing_counters *counters, ing_store **out,
                               ing_bytes *skipped, ing_err *e) {
    opening o = {.counters = counters, .skipped = skipped};
    o.last = &o.first;
    *out = NULL;
    ing_status s = open_all(&o, path, dir, e);
    if (o.written) o.written->below = o.first;
    ing_store *all = o.written ? o.written : o.first;
    if (s == ING_OK && !all)
        s = ing_fail(e, ING_DECLINED, "%s",
                     skipped->len ? (const char *)skipped->at : "no cache directory");
    if (s == ING_OK)
        *out = all;
    else
        ing_store_close(all);
    return s;
}

ing_status ing_store_open_there(const char *dir, ing_counters *counters,
                                ing_store **out, ing_err *e) {
    ing_bytes skipped;
    ing_bytes_init(&skipped);
    opening o = {.counters = counters,
                 .skipped = &skipped,
                 .n = 1, /* makes nothing */
                 .quiet = true};
    o.last = &o.first;
    ing_status s = open_one(&o, dir, e);
    *out = o.written ? o.written : o.first;
    if (s == ING_OK && !*out)
        s = ing_fail(e, ING_DECLINED, "%s",
                     skipped.len ? (const char *)skipped.at : "no such directory");
    ing_bytes_fini(&skipped);
    return s;
}

bool ing_store_writable(const ing_store *s) {
    return !s->read_only;
}

uint32_t ing_store_layers(const ing_store *s) {
    uint32_t n = 0;
    for (; s; s = s->below) n++;
    return n;
}
