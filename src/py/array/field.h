/* Dense fields: what the files of the field type (field*.c) offer each other and
 * those who use fields.
 *
 * A field is a place in a block. The block is the memory of one child of a tree's root; the
 * layout says where in it the elements are. Code depends on the layout alone, and a launch
 * binds the address of the block.
 *
 * 1. Elements of vector and matrix fields lie together (AOS), unless `parts` has a field of
 *    its own for each scalar (SOA, or placed one by one): then there is no layout.
 * 2. A part of a vector field whose elements lie together, made by get_scalar_field, is a
 *    field with the levels of the whole and a place inside it: `whole` is not NULL. Those two
 *    overlap; any other two places of one block are apart.
 * 3. A field that was placed in a tree gets its layout when somebody first needs it
 *    (ing_py_field_ready). It never changes afterwards. */
#ifndef ING_PY_FIELD_H
#define ING_PY_FIELD_H

#include "py/py.h"

/* One loop over memory: `extent` steps of `stride` bytes along an axis. The index of a level
 * is (i / product of the extents of the levels below it on this axis) % extent. */
typedef struct ing_py_level {
    int64_t extent, stride;
    uint32_t axis;
} ing_py_level;

/* Interned per module: equal layouts, equal pointer. Lives as long as the module. Levels with
 * one step are left out, and neighbours that one stride covers are one. */
typedef struct ing_py_layout {
    uint8_t dtype, elem_rank, ndim;
    uint32_t elem_shape[2]; /* 0 where unused */
    uint32_t n_levels;
    int64_t place;              /* bytes from the beginning of the block */
    const int64_t *shape;       /* ndim logical extents, each from 1 to 2^31 - 1 */
    const int64_t *offset;      /* ndim: index of the first element */
    const ing_py_level *levels; /* outermost first */
    ing_hash128 digest;         /* of the above */
    uint32_t id;                /* from 1, in order of first use */
    ing_place *seen; /* the same for the gate, made when first asked for; owned */
} ing_py_layout;

/* The memory of one child of a root. A Python object, so that trees can hold it. Views hold
 * the memory itself, and may outlive the block. */
typedef struct ing_py_block {
    PyObject_HEAD ing_mem *mem; /* NULL: destroyed */
    ing_py_link link;           /* all that are not destroyed, from st->blocks on */
    uint64_t bound;             /* number of the binding that it was last bound in */
    PyObject *weakrefs;
} ing_py_block;

typedef struct ing_py_field {
    PyObject_HEAD const ing_py_layout *layout; /* NULL: not ready, or parts */
    ing_py_block *block;                       /* NULL exactly with the layout */
    PyObject *parts;                           /* tuple of fields, row major, or NULL */
    PyObject *whole;       /* the field that this is a part of (rule 2), or NULL */
    PyObject *node;        /* the SNode that it was placed by, or NULL */
    PyObject *grad, *dual; /* fields, or NULL */
    PyObject *name;        /* str, or NULL: it has none */
    PyObject *dict, *weakrefs;
    /* of what `whole` is, if there is one; ing_py_field_generation */
    uint64_t generation;
    uint64_t born;    /* the last generation when it was made; see st->lazy */
    uint32_t exports; /* the same; live buffers and DLPack tensors (R25) */
    uint32_t elem_shape[2];
    uint8_t dtype, elem_rank;
    bool companion; /* the gradient or dual of another one: it has none itself */
} ing_py_field;

static inline bool ing_py_is_field(const ing_py_state *st, PyObject *o) {
    return Py_TYPE(o) == st->scalar_field || Py_TYPE(o) == st->matrix_field;
}
/* Makes sure that there is a layout, or parts that each have one, and that the memory exists.
 * -1 = raised: it was never placed, or was destroyed. */
int ing_py_field_ready(ing_py_state *st, ing_py_field *f);
/* Raises what is wrong with a field whose block is gone; -1. */
int ing_py_field_gone(ing_py_state *st, const ing_py_field *f);

/* Tells whoever asked for it (_on_fields) that new fields are about to be used; -1 = raised. */
int ing_py_fields_announce(ing_py_state *st);
/* As in the reference, no kernel is looked up while a field has no place; -1 = raised. */
int ing_py_fields_settle(ing_py_state *st);

/* 0 = unknown, which never matches (R25). Unique in the process, as those of arrays. */
uint64_t ing_py_field_generation(const ing_py_state *st, const ing_py_field *f);
/* To be called after every write that Ingot makes. */
void ing_py_field_touch(ing_py_state *st, ing_py_field *f);

/* ---- field_layout.c ------------------------------------------------------------------ */

/* The interned layout equal to `l`, whose pointers may be the caller's (digest and id are
 * ignored). NULL with MemoryError set. */
const ing_py_layout *ing_py_layout_intern(ing_py_state *st, const ing_py_layout *l);
void ing_py_layout_fini(ing_py_state *st);
/* Bytes of one element, and from its place to the end of the last one: they fit, since the
 * layout exists. */
size_t ing_py_layout_element(const ing_py_layout *l);
size_t ing_py_layout_span(const ing_py_layout *l);
ing_py_block *ing_py_block_new(ing_py_state *st, size_t bytes); /* NULL = raised */
int ing_py_block_add(PyObject *module, ing_py_state *st);
/* What was destroyed while launches were under way; the last of them calls this. */
void ing_py_block_release(ing_py_state *st);
/* All fields that exist are gone (qd.init, qd.reset). */
void ing_py_block_destroy_all(ing_py_state *st);

/* ---- field_item.c -------------------------------------------------------------------- */

PyObject *ing_py_field_item(PyObject *self, PyObject *key);
int ing_py_field_assign(PyObject *self, PyObject *key, PyObject *value);

/* ---- field_copy.c -------------------------------------------------------------------- */

PyObject *ing_py_field_fill(PyObject *self, PyObject *value);
/* _load(buffer), _store(buffer): all elements from or to row-major memory of this dtype. */
PyObject *ing_py_field_load(PyObject *self, PyObject *buffer);
PyObject *ing_py_field_store(PyObject *self, PyObject *buffer);

/* ---- field_buffer.c ------------------------------------------------------------------ */

int ing_py_field_getbuffer(PyObject *self, Py_buffer *view, int flags);
void ing_py_field_releasebuffer(PyObject *self, Py_buffer *view);

/* ---- field_new.c --------------------------------------------------------------------- */

/* _new_field(element type, name, companion): one that is not placed. */
PyObject *ing_py_field_new(PyObject *module, PyObject *args);
/* _dense_field(element type, shape, order, offset, name, companion): one in a block of its
 * own. */
PyObject *ing_py_field_dense(PyObject *module, PyObject *args);
/* _place(block, place, shape, offset, levels) */
PyObject *ing_py_field_place(PyObject *self, PyObject *args);
/* Scalar k of an element that lies together with the others: rule 2. */
PyObject *ing_py_field_part(PyObject *self, PyObject *k);

#endif
