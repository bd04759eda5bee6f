/* Reads packs (format: pack.h). Called by get and read of a layer, by the tools, and by
 * tests with bytes that are not from a file. Every number is checked against the size
 * before it is used, in open; what open lets pass needs no second look but the checksum of
 * the entry itself. Small entries are read, not mapped: a failing disk is a miss. Images
 * are mapped, all at once, for the first. A pack never changes once it is open, but for its
 * reference count, the mapping and the mark on it. */
#include "store/pack.h"
#include "store/store_int.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ing_pack {
    uint32_t refs;        /* atomic */
    const uint8_t *bytes; /* memory; NULL: a file */
    int fd;
    ing_pack_head head;
    uint8_t *index; /* a copy: records, then fans */
    uint8_t *kept;  /* a copy of [kept_at, where the index begins); NULL: none */
    uint64_t kept_at;
    ing_pack_code code;
};

/* ---- records and tail ---------------------------------------------------------------------- */

static void put32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static void put128(uint8_t *p, ing_hash128 v) {
    ing_store_put64(p, v.lo);
    ing_store_put64(p + 8, v.hi);
}

static ing_hash128 get128(const uint8_t *p) {
    return (ing_hash128){ing_store_get64(p), ing_store_get64(p + 8)};
}

void ing_pack_put_record(uint8_t out[ING_PACK_RECORD], const ing_pack_item *item) {
    memset(out, 0, ING_PACK_RECORD);
    put32(out, (uint32_t)item->kind);
    put128(out + 8, item->key);
    ing_store_put64(out + 24, item->at);
    ing_store_put64(out + 32, item->len);
}

static ing_pack_item get_record(const uint8_t *p) {
    return (ing_pack_item){.kind = (ing_entry_kind)get32(p),
                           .key = get128(p + 8),
                           .at = ing_store_get64(p + 24),
                           .len = ing_store_get64(p + 32)};
}

enum { TAIL_SUMMED = 112 };

void ing_pack_put_tail(uint8_t out[ING_PACK_TAIL], const ing_pack_head *head) {
    memset(out, 0, ING_PACK_TAIL);
    memcpy(out, ING_PACK_MAGIC, 8);
    put32(out + 8, ING_PACK_VERSION);
    put32(out + 12, head->n);
    ing_store_put64(out + 16, head->code);
    ing_store_put64(out + 24, head->code_size);
    ing_store_put64(out + 32, head->index);
    put32(out + 40, head->n_fans);
    ing_store_put64(out + 48, head->size);
    put128(out + 56, head->index_sum);
    put128(out + 72, head->whole_sum);
    ing_store_put64(out + 88, head->seen);
    put128(out + TAIL_SUMMED, ing_hash(out, TAIL_SUMMED));
}

/* True when the bytes are a tail: they are what its own numbers would be written as. */
static bool get_tail(const uint8_t *p, ing_pack_head *head) {
    uint8_t same[ING_PACK_TAIL];
    *head = (ing_pack_head){.n = get32(p + 12),
                            .n_fans = get32(p + 40),
                            .code = ing_store_get64(p + 16),
                            .code_size = ing_store_get64(p + 24),
                            .index = ing_store_get64(p + 32),
                            .size = ing_store_get64(p + 48),
                            .seen = ing_store_get64(p + 88),
                            .index_sum = get128(p + 56),
                            .whole_sum = get128(p + 72)};
    ing_pack_put_tail(same, head);
    return memcmp(p, same, ING_PACK_TAIL) == 0;
}

int ing_pack_compare(const ing_pack_item *a, const ing_pack_item *b) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->key.hi != b->key.hi) return a->key.hi < b->key.hi ? -1 : 1;
    return a->key.lo < b->key.lo ? -1 : a->key.lo > b->key.lo;
}

bool ing_pack_holds(ing_entry_kind kind) {
    return kind == ING_ENTRY_IMAGE || kind == ING_ENTRY_VARIANT ||
           kind == ING_ENTRY_INDEX || kind == ING_ENTRY_ALIAS;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* [at, at + n) lies inside: open or the caller has seen to that. */
static bool fetch(const ing_pack *p, uint64_t at, size_t n, uint8_t *out) {
    if (p->kept && at >= p->kept_at && at + n <= p->head.index) {
        memcpy(out, p->kept + (at - p->kept_at), n);
        return true;
    }
    if (p->bytes) {
        memcpy(out, p->bytes + at, n);
        return true;
    }
    while (n) {
        ssize_t got = pread(p->fd, out, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += (uint64_t)got;
        out += got;
        n -= (size_t)got;
    }
    return true;
}

static bool within(uint64_t at, uint64_t size, uint64_t from, uint64_t end) {
    return at >= from && at <= end && size <= end - at;
}

enum { KEPT = 512 << 10 };

/* ---- open ----------------------------------------------------------------------------------- */

static ing_status bad(ing_err *e, const char *what) {
    return ing_fail(e, ING_FORMAT, "not a usable pack: %s", what);
}

static size_t index_bytes(const ing_pack_head *h) {
    return (size_t)h->n * ING_PACK_RECORD + (size_t)h->n_fans * 8;
}

static ing_status check_head(const ing_pack_head *h, uint64_t size, ing_err *e) {
    uint64_t end = size - ING_PACK_TAIL;
    if (h->size != size) return bad(e, "its length is not what it says");
    if (h->n > ING_PACK_MAX_ENTRIES || (h->n_fans && h->n_fans != ING_PACK_FANS))
        return bad(e, "too many entries");
    if (h->code != ING_PACK_ALIGN || h->code_size % ING_PACK_ALIGN ||
        !within(h->code, h->code_size, ING_PACK_ALIGN, end))
        return bad(e, "the place of images");
    if (!within(h->index, index_bytes(h), h->code + h->code_size, end))
        return bad(e, "the place of the index");
    return ING_OK;
}

/* Records ascend, are of known kinds, and lie where entries of their kind may. *start: where
 * the first alias lies, or the index. With 1,000 records this is a good part of open, so
 * ranges are made once per kind. */
static bool check_records(const ing_pack *p, uint64_t *start) {
    const ing_pack_head *h = &p->head;
    uint64_t code_end = h->code + h->code_size, from = 0, end = 0, odd = 0;
    uint32_t kind = 0; /* and key: of the record before */
    ing_hash128 key = {0, 0};
    *start = h->index;
    for (uint32_t i = 0; i < h->n; i++) {
        ing_pack_item x = ing_pack_item_at(p, i);
        if (x.kind != kind) {
            if (x.kind < kind || !ing_pack_holds(x.kind)) return false;
            kind = x.kind;
            bool image = kind == ING_ENTRY_IMAGE;
            from = image ? h->code : code_end;
            end = image ? code_end : h->index;
            odd = (image ? ING_PACK_ALIGN : 8) - 1;
            if (kind == ING_ENTRY_ALIAS) *start = x.at;
        } else if (x.key.hi < key.hi || (x.key.hi == key.hi && x.key.lo <= key.lo)) {
            return false;
        }
        if (x.at & odd || x.len > ING_STORE_MAX_ENTRY ||
            !within(x.at, x.len + ING_STORE_TRAILER, from, end))
            return false;
        key = x.key;
    }
    return true;
}

static ing_status read_index(ing_pack *p, uint64_t *start, ing_err *e) {
    size_t n = index_bytes(&p->head);
    p->index = ing_malloc(n + 1);
    if (!p->index) return ing_fail(e, ING_MEMORY, "no memory for the index of a pack");
    if (!fetch(p, p->head.index, n, p->index))
        return ing_fail(e, ING_OS, "cannot read a pack: %m");
    if (!ing_hash_eq(ing_hash(p->index, n), p->head.index_sum))
        return bad(e, "the index is damaged");
    return check_records(p, start) ? ING_OK : bad(e, "an entry's place");
}

/* Aliases, which every start needs, come along: with 300 kernels one call instead of 300.
 * They bring the index and the variant of a kernel that has one; of a kernel that has
 * 1,000, a start needs one of them. Without memory or a disk that answers, each is read when
 * it is asked for. */
static void keep(ing_pack *p, uint64_t start) {
    uint64_t size = p->head.index - start;
    size_t n = size < KEPT ? (size_t)size : KEPT;
    uint8_t *kept = n ? ing_malloc(n) : NULL;
    p->kept_at = p->head.index - n;
    if (kept && fetch(p, p->kept_at, n, kept))
        p->kept = kept;
    else
        ing_free(kept);
}

static ing_status open_pack(ing_pack *p, uint64_t size, ing_err *e) {
    uint8_t tail[ING_PACK_TAIL];
    uint64_t start = 0; /* set by read_index */
    if (size < ING_PACK_ALIGN + ING_PACK_TAIL || size > ING_PACK_MAX)
        return bad(e, "its length");
    if (!fetch(p, size - ING_PACK_TAIL, ING_PACK_TAIL, tail))
        return ing_fail(e, ING_OS, "cannot read a pack: %m");
    if (!get_tail(tail, &p->head))
        return bad(e, "its end is damaged or of another version");
    ING_TRY(check_head(&p->head, size, e));
    ING_TRY(read_index(p, &start, e));
    keep(p, start);
    p->code.fd = p->fd;
    p->code.at = p->head.code;
    p->code.size = (size_t)p->head.code_size;
    return ING_OK;
}

static ing_status open_source(const uint8_t *bytes, int fd, size_t size, ing_pack **out,
                              ing_err *e) {
    *out = NULL;
    ing_pack *p = ing_calloc(1, sizeof *p);
    if (!p) {
        if (fd >= 0) close(fd);
        return ing_fail(e, ING_MEMORY, "no memory for a pack");
    }
    p->refs = 1;
    p->bytes = bytes;
    p->fd = fd;
    ing_status s = open_pack(p, size, e);
    if (s == ING_OK)
        *out = p;
    else
        ing_pack_unref(p);
    return s;
}

ing_status ing_pack_open(const uint8_t *bytes, size_t size, ing_pack **out,
                         ing_err *e) {
    return open_source(bytes, -1, size, out, e);
}

ing_status ing_pack_open_file(int fd, size_t size, ing_pack **out, ing_err *e) {
    return open_source(NULL, fd, size, out, e);
}

ing_pack *ing_pack_ref(ing_pack *p) {
    __atomic_fetch_add(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

void ing_pack_unref(ing_pack *p) {
    if (!p || __atomic_fetch_sub(&p->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
    if (p->code.base) munmap(p->code.base, p->code.size);
    if (p->fd >= 0) close(p->fd);
    ing_free(p->index);
    ing_free(p->kept);
    ing_free(p);
}

const ing_pack_head *ing_pack_head_of(const ing_pack *p) {
    return &p->head;
}

ing_pack_code *ing_pack_code_of(ing_pack *p) {
    return &p->code;
}

const uint8_t *ing_pack_fans(const ing_pack *p) {
    return p->head.n_fans ? p->index + (size_t)p->head.n * ING_PACK_RECORD : NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

ing_pack_item ing_pack_item_at(const ing_pack *p, uint32_t i) {
    return get_record(p->index + (size_t)i * ING_PACK_RECORD);
}

bool ing_pack_find(const ing_pack *p, ing_entry_kind kind, ing_hash128 key,
                   ing_pack_item *out) {
    ing_pack_item want = {.kind = kind, .key = key};
    uint32_t low = 0, high = p->head.n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        *out = ing_pack_item_at(p, mid);
        int c = ing_pack_compare(out, &want);
        if (c == 0) return true;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

ing_status ing_pack_read(const ing_pack *p, const ing_pack_item *item, ing_bytes *out) {
    size_t size = (size_t)item->len + ING_STORE_TRAILER;
    ing_bytes_clear(out);
    if (!ing_bytes_reserve(out, size)) return ING_MEMORY;
    if (!fetch(p, item->at, size, out->at)) return ING_OS;
    if (!ing_store_check(out->at, size, item->kind, item->key)) return ING_FORMAT;
    out->len = (size_t)item->len;
    out->at[out->len] = 0;
    return ING_OK;
}

/* The mapping of all images, made for the first that is asked for; NULL: cannot be made. Of
 * two who make it at once, the second takes what the first has. */
static uint8_t *map_code(ing_pack *p) {
    uint8_t *base = __atomic_load_n(&p->code.base, __ATOMIC_ACQUIRE);
    if (base || p->bytes || !p->code.size || p->code.at % ing_os_page()) return base;
    void *map =
        mmap(NULL, p->code.size, PROT_READ, MAP_PRIVATE, p->fd, (off_t)p->code.at);
    if (map == MAP_FAILED) return NULL;
    if (__atomic_compare_exchange_n(&p->code.base, &base, (uint8_t *)map, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return map;
    munmap(map, p->code.size);
    return base;
}

ing_status ing_pack_image(ing_pack *p, const ing_pack_item *item, const uint8_t **out) {
    uint8_t *base = item->kind == ING_ENTRY_IMAGE ? map_code(p) : NULL;
    if (!base) return ING_DECLINED;
    *out = base + (item->at - p->head.code);
    size_t size = (size_t)item->len + ING_STORE_TRAILER;
    return ing_store_check(*out, size, item->kind, item->key) ? ING_OK : ING_FORMAT;
}

/* ---- verify ------------------------------------------------------------------------------------ */

static bool hash_part(const ing_pack *p, ing_hasher *h, uint64_t from, uint64_t end) {
    uint8_t part[4096];
    while (from < end) {
        size_t n = end - from < sizeof part ? (size_t)(end - from) : sizeof part;
        if (!fetch(p, from, n, part)) return false;
        ing_hasher_raw(h, part, n);
        from += n;
    }
    return true;
}

static ing_status verify_entry(const ing_pack *p, uint32_t i, ing_bytes *b,
                               ing_err *e) {
    ing_pack_item item = ing_pack_item_at(p, i);
    char hex[33];
    ing_status s = ing_pack_read(p, &item, b);
    if (s != ING_FORMAT) return s;
    ing_hash_hex(item.key, hex);
    return ing_fail(e, ING_FORMAT, "entry %c/%s of the pack is damaged",
                    ing_store_letter(item.kind), hex);
}

ing_status ing_pack_verify(const ing_pack *p, ing_err *e) {
    ing_hasher h;
    ing_bytes b;
    ing_status s = ING_OK;
    ing_bytes_init(&b);
    for (uint32_t i = 0; i < p->head.n && s == ING_OK; i++)
        s = verify_entry(p, i, &b, e);
    ing_bytes_fini(&b);
    if (s == ING_MEMORY) return ing_fail(e, s, "no memory to verify a pack");
    ing_hasher_init(&h);
    if (s == ING_OS || (s == ING_OK && (!hash_part(p, &h, ING_PACK_ALIGN,
                                                   p->head.size - ING_PACK_TAIL) ||
                                        !hash_part(p, &h, 0, ING_PACK_ALIGN))))
        return ing_fail(e, ING_OS, "cannot read a pack: %m");
    if (s == ING_OK && !ing_hash_eq(ing_hasher_done(&h), p->head.whole_sum))
        return bad(e, "its bytes are not those that were written");
    return s;
}
