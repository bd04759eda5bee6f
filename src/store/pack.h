/* pack: many entries in one file, so that a start reads one file instead of hundreds. A
 * layer that was sealed is a pack and a text about it (docs/internals/store.md); pack.c
 * reads, src/image/pack.c writes. Little-endian, in file order:
 *
 *   0      ELF header and program headers, zeros up to ING_PACK_ALIGN
 *   code   images: each starts at a multiple of ING_PACK_ALIGN, so that it can be mapped
 *          and run where it lies
 *   rest   entries of the other kinds, each at a multiple of 8
 *   index  n records of 48 bytes, strictly ascending by (kind, key hi, key lo):
 *            0  4  kind    4  4  zero    8 16  key (lo, hi)    24  8  offset
 *           32  8  payload length       40  8  zero
 *   fans   none, or 256 x 8: times of the directories of indexes (ing_pack_fans)
 *   elf    .symtab .strtab .shstrtab and section headers: for perf, gdb and objdump
 *   tail   the last 128 bytes:
 *            0  8  magic "INGOTPAK"     8  4  version    12  4  n
 *           16  8  code offset         24  8  code size  32  8  index offset
 *           40  4  number of fans      44  4  zero       48  8  size of the file
 *           56 16  checksum of index and fans
 *           72 16  checksum of [ING_PACK_ALIGN, tail), then [0, ING_PACK_ALIGN)
 *           88  8  entries that the directory had, of all kinds    96 16  zero
 *          112 16  checksum of tail [0, 112)
 *
 * An entry is its payload and its trailer of 64 bytes, as in a file of its own. Opening
 * checks tail and index; each entry is checked when it is taken; the checksum of the
 * whole is for `verify`. Whatever is wrong is a miss. */
#ifndef ING_PACK_H
#define ING_PACK_H

#include "store/store.h"

enum {
    ING_PACK_VERSION = 1,
    ING_PACK_ALIGN = 4096,
    ING_PACK_TAIL = 128,
    ING_PACK_RECORD = 48,
    ING_PACK_FANS = 256,
    ING_PACK_MAX_ENTRIES = 1 << 20,
};
#define ING_PACK_MAGIC "INGOTPAK"
#define ING_PACK_MAX   ((uint64_t)8 << 30) /* bytes: four times what a cache may take */
#define ING_PACK_NAME  "ingot.pack"
#define ING_PACK_MANIFEST "MANIFEST"

/* The first part of a tail. */
typedef struct ing_pack_head {
    uint32_t n, n_fans;
    uint64_t code, code_size, index, size;
    /* entries that the directory had, for who makes the next (repack.c) */
    uint64_t seen;
    ing_hash128 index_sum, whole_sum;
} ing_pack_head;

/* Of bytes that stay where they are as long as the pack is used, or of an open file (taken,
 * also on failure). ING_FORMAT: not a pack. Memory: the index, never more than the file has. */
ing_status ing_pack_open(const uint8_t *bytes, size_t size, ing_pack **out, ing_err *e);
ing_status ing_pack_open_file(int fd, size_t size, ing_pack **out, ing_err *e);
ing_pack *ing_pack_ref(ing_pack *p);
void ing_pack_unref(ing_pack *p);
const ing_pack_head *ing_pack_head_of(const ing_pack *p);

typedef struct ing_pack_item { /* a record of the index, checked */
    ing_entry_kind kind;
    ing_hash128 key;
    uint64_t at, len; /* of the payload */
} ing_pack_item;

ing_pack_item ing_pack_item_at(const ing_pack *p, uint32_t i);
bool ing_pack_find(const ing_pack *p, ing_entry_kind kind, ing_hash128 key,
                   ing_pack_item *out);
/* The payload, read and checked. ING_FORMAT: damaged; ING_OS: the disk failed. */
ing_status ing_pack_read(const ing_pack *p, const ing_pack_item *item, ing_bytes *out);
/* An image's payload, checked, in the one mapping of all images; ING_DECLINED: they cannot
 * be mapped. It stays as long as the pack. */
ing_status ing_pack_image(ing_pack *p, const ing_pack_item *item, const uint8_t **out);
/* The times that the directories of indexes had, NULL for none: an index is believed while
 * its directory is unchanged. */
const uint8_t *ing_pack_fans(const ing_pack *p);
/* Reads all of it. ING_FORMAT says what is wrong first. */
ing_status ing_pack_verify(const ing_pack *p, ing_err *e);

/* Each entry of the pack of the first layer that is believed now, until `see` says false. */
void ing_store_each_packed(const ing_store *s,
                           bool (*see)(void *ctx, const ing_pack_item *item),
                           void *ctx);

/* The mapping of all images, for src/image: `exec` is its own mark. */
typedef struct ing_pack_code {
    uint8_t *base; /* atomic; not NULL once an image was handed out */
    size_t size;
    uint32_t exec; /* atomic; 0 = nobody asked yet */
    int fd;
    uint64_t at; /* in the file */
} ing_pack_code;
ing_pack_code *ing_pack_code_of(ing_pack *p);

/* ---- packing the layer that is written (repack.c) ------------------------------------------- */

typedef struct ing_pack_order { /* what goes into a pack beside the entries */
    uint64_t fans[ING_PACK_FANS];
    bool has_fans; /* not in a sealed layer */
    uint64_t seen;
} ing_pack_order;
typedef ing_status ing_pack_writer(ing_store *from, int fd, const ing_pack_order *order,
                                   ing_err *e);
/* Whether so much was published since the last pack that another pays. Cheap. */
bool ing_store_wants_pack(const ing_store *s);
/* Bytes that removing the pack of such a layer gave back; 0: it has none. */
uint64_t ing_packed_drop(const ing_store *s);
/* Whether its pack has the entry and was read since then: the entry's own times do not tell. */
bool ing_packed_since(const ing_store *s, ing_entry_kind kind, ing_hash128 key,
                      uint64_t since);
/* ING_DECLINED: none was made; it is not wanted again soon. */
ing_status ing_store_repack(ing_store *s, ing_pack_writer *write);

/* ---- for the writer ---------------------------------------------------------------------- */

void ing_pack_put_record(uint8_t out[ING_PACK_RECORD], const ing_pack_item *item);
void ing_pack_put_tail(uint8_t out[ING_PACK_TAIL], const ing_pack_head *head);
/* -1, 0, 1: the order of the index. */
int ing_pack_compare(const ing_pack_item *a, const ing_pack_item *b);
/* Kinds that a pack may hold: what kernels need, and nothing that is private (R20). */
bool ing_pack_holds(ing_entry_kind kind);

#endif
