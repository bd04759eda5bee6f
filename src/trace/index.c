/* Paths, traces and trees as bytes: parts of the entries that src/py publishes (R17).
 * Every count, id and order is checked when read: a damaged or foreign entry declines,
 * whatever it holds. Little-endian:
 *
 *   paths   u32 atoms, each u32 length + bytes; u32 nodes, each u32 parent (below its own
 *           number), u32 step, u32 atom, u64 i. Numbers start at 1 for nodes, 0 for atoms.
 *   trace   u32 questions, each u32 path, u32 ask, u64 lo, u64 hi of the answer
 *   tree    paths; u32 nodes, each u32 path (0: a leaf), u32 ask, u32 variant; u32 edges
 *           sorted by (from, answer), each u32 from, u32 to (above from), u64 lo, u64 hi;
 *           numbers from 1
 *   index   u32 version, u32 variants, each u64 lo, u64 hi of its key; tree; u32 length of
 *           the copy of the only variant's entry and the copy, or 0 */
#include "trace/trace_int.h"

#include <endian.h>
#include <string.h>

enum { MAX_ATOM = 1 << 16, INDEX_VERSION = 3, MAX_VARIANTS = 1 << 20 };
enum {
    MAX_ONLY = 16 << 10
}; /* above that a second file costs little beside the bytes */

/* Whole arrays at once: taking 1,000 variants one number at a time was four fifths of the
 * time of a replay. */
static uint32_t le32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t le64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

enum { PATH_BYTES = 20, QUESTION_BYTES = 24, NODE_BYTES = 12, EDGE_BYTES = 24 };
enum { KEY_BYTES = 16 };

/* ---- paths ------------------------------------------------------------------------------ */

void ing_paths_write(const ing_paths *p, ing_bytes *out) {
    ing_bytes_u32(out, p->atoms.text.len);
    for (uint32_t i = 0; i < p->atoms.text.len; i++) {
        ing_bytes_u32(out, p->atoms.size.at[i]);
        ing_bytes_put(out, p->atoms.text.at[i], p->atoms.size.at[i]);
    }
    ing_bytes_u32(out, p->nodes.len ? p->nodes.len - 1 : 0);
    for (uint32_t i = 1; i < p->nodes.len; i++) {
        const ing_path_node *n = &p->nodes.at[i];
        ing_bytes_u32(out, n->parent);
        ing_bytes_u32(out, n->step);
        ing_bytes_u32(out, n->atom);
        ing_bytes_u64(out, (uint64_t)n->i);
    }
}

typedef ing_vec(uint32_t) atom_map; /* number in an entry -> atom here */

/* Where there are none yet, what is read needs no comparing: it was written from such a
 * list. Numbers 0 are the empty text. */
static ing_status read_atoms(ing_reader *r, ing_atoms *atoms, atom_map *map) {
    uint32_t n = ing_reader_count(r, 4);
    bool first = atoms->text.len == 0;
    if (!ing_vec_reserve(map, n)) return ING_DECLINED;
    if (first && n &&
        (!ing_vec_reserve(&atoms->text, n + 1) ||
         !ing_vec_reserve(&atoms->size, n + 1) || ing_atoms_append(atoms, "", 0) != 0))
        return ING_DECLINED;
    for (uint32_t i = 0; i < n && !r->failed; i++) {
        uint32_t size = ing_reader_u32(r);
        const uint8_t *text = size <= MAX_ATOM ? ing_reader_take(r, size) : NULL;
        if (!text || memchr(text, 0, size)) return ING_DECLINED;
        uint32_t atom = first && size
                            ? ing_atoms_append(atoms, (const char *)text, size)
                            : ing_atoms_add(atoms, (const char *)text, size);
        if (atom == UINT32_MAX) return ING_DECLINED;
        map->at[map->len++] = atom;
    }
    return r->failed ? ING_DECLINED : ING_OK;
}

/* Adds the entry's paths to `p`; map[k] is the path that number k of the entry became. */
static ing_status read_path_nodes(ing_reader *r, ing_paths *p, const atom_map *atoms,
                                  ing_path_map *map) {
    uint32_t n = ing_reader_count(r, PATH_BYTES);
    const uint8_t *from = ing_reader_take(r, (size_t)n * PATH_BYTES);
    if (!from || !ing_vec_reserve(map, n + 1) ||
        !ing_vec_reserve(&p->nodes, p->nodes.len + n))
        return ING_DECLINED;
    bool first = p->nodes.len == 1; /* none is there to be equal */
    map->len = 0;
    map->at[map->len++] = 0;
    for (uint32_t i = 1; i <= n; i++, from += PATH_BYTES) {
        uint32_t parent = le32(from), step = le32(from + 4), atom = le32(from + 8);
        int64_t value = (int64_t)le64(from + 12);
        if (parent >= i || (atom && atom >= atoms->len) || step == ING_STEP_NONE ||
            step >= ING_STEP_N)
            return ING_DECLINED;
        ing_path_node node = {map->at[parent], (uint8_t)step,
                              atom ? atoms->at[atom] : 0, value};
        if (ing_step_names_path(&node)) { /* another path, made before this one */
            if (value <= 0 || value >= (int64_t)i) return ING_DECLINED;
            node.i = map->at[value];
        }
        ing_path made = p->nodes.len;
        if (first)
            p->nodes.at[p->nodes.len++] = node;
        else
            made = ing_path_add_atom(p, node.parent, (ing_step)step, node.atom, node.i);
        if (!made) return ING_DECLINED;
        map->at[map->len++] = made;
    }
    return ING_OK;
}

ing_status ing_paths_read(ing_reader *r, ing_paths *p, ing_path_map *map) {
    atom_map atoms = {0};
    ing_status s = read_atoms(r, &p->atoms, &atoms);
    if (s == ING_OK) s = read_path_nodes(r, p, &atoms, map);
    ing_vec_fini(&atoms);
    return s;
}

static ing_path mapped(const ing_path_map *map, uint32_t id) {
    return id < map->len ? map->at[id] : 0;
}

/* ---- traces -------------------------------------------------------------------------------- */

static ing_path copy_path(const ing_paths *from, ing_path path, ing_paths *to,
                          uint32_t depth) {
    ing_path chain[ING_PATH_MAX_STEPS], made = 0;
    uint32_t n = 0;
    if (depth > ING_PATH_MAX_NESTING) return 0;
    for (ing_path at = path; at; at = from->nodes.at[at].parent) {
        if (n == ING_PATH_MAX_STEPS) return 0;
        chain[n++] = at;
    }
    while (n-- > 0) {
        ing_path_node s = from->nodes.at[chain[n]];
        if (ing_step_names_path(&s)) {
            s.i = copy_path(from, (ing_path)s.i, to, depth + 1);
            if (s.i == 0) return 0;
        }
        const char *name = s.atom ? ing_atoms_text(&from->atoms, s.atom) : NULL;
        made = ing_path_add(to, made, (ing_step)s.step, name, s.i);
        if (!made) return 0;
    }
    return made;
}

ing_path ing_path_copy(const ing_paths *from, ing_path path, ing_paths *to) {
    return copy_path(from, path, to, 0);
}

void ing_trace_write(const ing_trace *t, ing_bytes *out) {
    ing_bytes_u32(out, t->list.len);
    for (uint32_t i = 0; i < t->list.len; i++) {
        const ing_question *q = &t->list.at[i];
        ing_bytes_u32(out, q->path);
        ing_bytes_u32(out, q->ask);
        ing_bytes_u64(out, q->answer.lo);
        ing_bytes_u64(out, q->answer.hi);
    }
}

/* What the gate writes has no question twice, so `seen` stays empty. */
ing_status ing_trace_read(ing_reader *r, const ing_path_map *map, ing_trace *t) {
    uint32_t n = ing_reader_count(r, QUESTION_BYTES);
    const uint8_t *p = ing_reader_take(r, (size_t)n * QUESTION_BYTES);
    if (!p || !ing_vec_reserve(&t->list, t->list.len + n)) return ING_DECLINED;
    for (uint32_t i = 0; i < n; i++, p += QUESTION_BYTES) {
        ing_path path = mapped(map, le32(p));
        uint32_t ask = le32(p + 4);
        if (!path || ask < ING_ASK_LOOK || ask > ING_ASK_BLOCKS) return ING_DECLINED;
        ing_question q = {path, (uint8_t)ask, {le64(p + 8), le64(p + 16)}};
        t->list.at[t->list.len++] = q;
    }
    return ING_OK;
}

ing_status ing_trace_copy(const ing_trace *t, const ing_paths *from, ing_paths *to,
                          ing_trace *out, ing_err *e) {
    for (uint32_t i = 0; i < t->list.len; i++) {
        const ing_question *q = &t->list.at[i];
        ing_path path = ing_path_copy(from, q->path, to);
        if (!path || !ing_trace_add(out, path, (ing_ask)q->ask, q->answer))
            return ing_fail(e, ING_MEMORY, "no memory for a trace");
    }
    return ING_OK;
}

/* ---- trees ------------------------------------------------------------------------------------ */

/* Nodes with their paths, which are copied to `own` as they come up. */
static void write_nodes(const ing_tree *t, const ing_paths *paths, ing_paths *own,
                        ing_bytes *out) {
    ing_bytes_u32(out, t->nodes.len - 1);
    for (uint32_t i = 1; i < t->nodes.len; i++) {
        ing_tree_node n = t->nodes.at[i];
        ing_path path = n.path ? ing_path_copy(paths, n.path, own) : 0;
        if (n.path && !path) out->failed = true;
        ing_bytes_u32(out, path);
        ing_bytes_u32(out, n.ask);
        ing_bytes_u32(out, n.variant);
    }
}

static void write_edges(const ing_tree *t, ing_bytes *out) {
    ing_bytes_u32(out, t->edges.len);
    for (uint32_t i = 0; i < t->edges.len; i++) {
        const ing_tree_edge *d = &t->edges.at[i];
        ing_bytes_u32(out, d->from);
        ing_bytes_u32(out, d->to);
        ing_bytes_u64(out, d->answer.lo);
        ing_bytes_u64(out, d->answer.hi);
    }
}

void ing_tree_write(const ing_tree *t, const ing_paths *paths, ing_bytes *out) {
    ing_paths own;
    ing_bytes nodes;
    ing_paths_init(&own);
    ing_bytes_init(&nodes);
    write_nodes(t, paths, &own, &nodes);
    ing_paths_write(&own, out);
    if (nodes.failed) out->failed = true;
    ing_bytes_put(out, nodes.at, nodes.len);
    write_edges(t, out);
    ing_bytes_fini(&nodes);
    ing_paths_fini(&own);
}

static ing_status read_nodes(ing_reader *r, const ing_path_map *map,
                             uint32_t n_variants, ing_tree *t) {
    uint32_t n = ing_reader_count(r, NODE_BYTES);
    const uint8_t *p = ing_reader_take(r, (size_t)n * NODE_BYTES);
    if (!p || !ing_vec_reserve(&t->nodes, n + 1)) return ING_DECLINED;
    ing_tree_node *out = t->nodes.at + t->nodes.len;
    for (uint32_t i = 0; i < n; i++, p += NODE_BYTES) {
        uint32_t path = le32(p);
        ing_tree_node node = {path ? mapped(map, path) : 0, le32(p + 4), le32(p + 8)};
        if ((path && !node.path) || node.ask > ING_ASK_BLOCKS ||
            (!path && node.variant >= n_variants))
            return ING_DECLINED;
        out[i] = node;
    }
    t->nodes.len += n;
    return ING_OK;
}

static ing_status read_edges(ing_reader *r, ing_tree *t) {
    uint32_t n = ing_reader_count(r, EDGE_BYTES), n_nodes = t->nodes.len;
    const uint8_t *p = ing_reader_take(r, (size_t)n * EDGE_BYTES);
    if (!p || !ing_vec_reserve(&t->edges, n)) return ING_DECLINED;
    ing_tree_edge *out = t->edges.at, before = {0}; /* from 0: there is no such node */
    for (uint32_t i = 0; i < n; i++, p += EDGE_BYTES) {
        ing_tree_edge d = {le32(p), le32(p + 4), {le64(p + 8), le64(p + 16)}};
        if (d.from == 0 || d.to <= d.from || d.to >= n_nodes ||
            ing_tree_edge_order(&before, d.from, d.answer) >= 0)
            return ING_DECLINED;
        out[i] = before = d;
    }
    t->edges.len = n;
    return ING_OK;
}

ing_status ing_tree_read(ing_reader *r, ing_paths *paths, uint32_t n_variants,
                         ing_tree *t) {
    ing_path_map map = {0};
    ing_status s = ing_paths_read(r, paths, &map);
    if (s == ING_OK) s = read_nodes(r, &map, n_variants, t);
    if (s == ING_OK) s = read_edges(r, t);
    ing_vec_fini(&map);
    return s;
}

/* ---- indexes -------------------------------------------------------------------------------- */

void ing_index_write(const ing_tree *t, const ing_paths *paths,
                     const ing_index_keys *keys, const ing_bytes *only,
                     ing_bytes *out) {
    ing_bytes_u32(out, INDEX_VERSION);
    ing_bytes_u32(out, keys->len);
    for (uint32_t i = 0; i < keys->len; i++) {
        ing_bytes_u64(out, keys->at[i].lo);
        ing_bytes_u64(out, keys->at[i].hi);
    }
    ing_tree_write(t, paths, out);
    uint32_t n = keys->len == 1 && only->len <= MAX_ONLY ? (uint32_t)only->len : 0;
    ing_bytes_u32(out, n);
    if (n) ing_bytes_put(out, only->at, n);
}

static ing_status read_keys(ing_reader *r, ing_index_keys *keys) {
    uint32_t n = ing_reader_count(r, KEY_BYTES);
    const uint8_t *p = ing_reader_take(r, (size_t)n * KEY_BYTES);
    if (!p || n > MAX_VARIANTS || !ing_vec_reserve(keys, n)) return ING_DECLINED;
    for (uint32_t i = 0; i < n; i++, p += KEY_BYTES)
        keys->at[i] = (ing_hash128){le64(p), le64(p + 8)};
    keys->len = n;
    return ING_OK;
}

static ing_status read_only(ing_reader *r, const ing_index_keys *keys,
                            ing_bytes *only) {
    uint32_t n = ing_reader_count(r, 1);
    const uint8_t *p = ing_reader_take(r, n);
    if (!p || r->at != r->end || (n && keys->len != 1)) return ING_DECLINED;
    ing_bytes_clear(only);
    if (n) ing_bytes_put(only, p, n);
    return only->failed ? ING_DECLINED : ING_OK;
}

ing_status ing_index_read(const uint8_t *p, size_t n, ing_paths *paths, ing_tree *t,
                          ing_index_keys *keys, ing_bytes *only) {
    ing_reader r = ing_reader_of(p, n);
    if (ing_reader_u32(&r) != INDEX_VERSION) return ING_DECLINED;
    ING_TRY(read_keys(&r, keys));
    ING_TRY(ing_tree_read(&r, paths, keys->len, t));
    return read_only(&r, keys, only);
}
