/* Layouts of fields, interned, and the blocks of memory that they describe. Called where
 * fields are made (field_new.c) and dropped. A layout is never changed nor freed before the
 * module goes; memory goes with the last of its block and of the views of it. */
#include "py/array/field.h"
#include "rt/rt.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* ---- layouts ------------------------------------------------------------------------- */

/* Tags and order are part of file formats. */
static ing_hash128 digest_of(const ing_py_layout *l) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 'd', l->dtype);
    ing_hasher_u64(&h, 'r', l->elem_rank);
    for (unsigned k = 0; k < l->elem_rank; k++)
        ing_hasher_u64(&h, 'e', l->elem_shape[k]);
    ing_hasher_u64(&h, 'n', l->ndim);
    for (unsigned k = 0; k < l->ndim; k++) {
        ing_hasher_u64(&h, 's', (uint64_t)l->shape[k]);
        ing_hasher_u64(&h, 'o', (uint64_t)l->offset[k]);
    }
    for (uint32_t k = 0; k < l->n_levels; k++) {
        ing_hasher_u64(&h, 'a', l->levels[k].axis);
        ing_hasher_u64(&h, 'x', (uint64_t)l->levels[k].extent);
        ing_hasher_u64(&h, 't', (uint64_t)l->levels[k].stride);
    }
    ing_hasher_u64(&h, 'p', (uint64_t)l->place);
    return ing_hasher_done(&h);
}

/* A copy in one piece: the struct, then levels, shape and offset. */
static ing_py_layout *copy_of(const ing_py_layout *l) {
    size_t levels = l->n_levels * sizeof *l->levels, axes = l->ndim * sizeof *l->shape;
    char *at = ing_malloc(sizeof *l + levels + 2 * axes);
    if (!at) return NULL;
    ing_py_layout *made = (ing_py_layout *)(void *)at;
    *made = *l;
    at += sizeof *l;
    if (levels) memcpy(at, l->levels, levels);
    made->levels = (const ing_py_level *)(void *)at;
    at += levels;
    if (axes) memcpy(at, l->shape, axes);
    made->shape = (const int64_t *)(void *)at;
    at += axes;
    if (axes) memcpy(at, l->offset, axes);
    made->offset = (const int64_t *)(void *)at;
    return made;
}

const ing_py_layout *ing_py_layout_intern(ing_py_state *st, const ing_py_layout *l) {
    ing_hash128 digest = digest_of(l);
    uint32_t id = ing_map_get(&st->layout_map, digest);
    if (id) return st->layouts.at[id - 1];
    ing_py_layout *made = copy_of(l);
    if (made) {
        made->digest = digest;
        made->seen = NULL;
        if (ING_PY_INTERN(&st->layouts, &st->layout_map, made)) return made;
    }
    ing_free(made);
    PyErr_NoMemory();
    return NULL;
}

void ing_py_layout_fini(ing_py_state *st) {
    for (uint32_t i = 0; i < st->layouts.len; i++) {
        ing_free(st->layouts.at[i]->seen);
        ing_free(st->layouts.at[i]);
    }
    ing_vec_fini(&st->layouts);
    ing_py_block_release(st);
    ing_vec_fini(&st->doomed);
    ing_map_fini(&st->layout_map);
}

size_t ing_py_layout_element(const ing_py_layout *l) {
    size_t n = ing_dtype_bytes((ing_dtype)l->dtype);
    for (unsigned k = 0; k < l->elem_rank; k++) n *= l->elem_shape[k];
    return n;
}

size_t ing_py_layout_span(const ing_py_layout *l) {
    size_t n = ing_py_layout_element(l);
    for (uint32_t k = 0; k < l->n_levels; k++)
        n += (size_t)(l->levels[k].extent - 1) * (size_t)l->levels[k].stride;
    return n;
}

/* ---- blocks -------------------------------------------------------------------------- */

/* A launch under way may have bound its address: then the memory goes after it. While the
 * whole module is being collected, there may be no state any more. */
static void give_back(ing_py_state *st, ing_mem *m) {
    if (!st || !st->launching)
        ing_mem_unref(m);
    else
        (void)ing_vec_push(&st->doomed, m); /* no memory: it is never given back */
}

void ing_py_block_release(ing_py_state *st) {
    while (st->doomed.len) ing_mem_unref(st->doomed.at[--st->doomed.len]);
}

static void destroy(ing_py_state *st, ing_py_block *b) {
    if (!b->mem) return;
    b->link.prev->next = b->link.next;
    b->link.next->prev = b->link.prev;
    ing_mem *m = b->mem;
    b->mem = NULL;
    give_back(st, m);
}

static void block_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject *kind, *value, *trace; /* what is on its way is no business of ours */
    if (((ing_py_block *)self)->weakrefs) PyObject_ClearWeakRefs(self);
    PyErr_Fetch(&kind, &value, &trace);
    ing_py_state *st = ing_py_state_of(self);
    PyErr_Restore(kind, value, trace);
    destroy(st, (ing_py_block *)self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *block_destroy(PyObject *self, PyObject *unused) {
    (void)unused;
    destroy(ing_py_state_of(self), (ing_py_block *)self);
    Py_RETURN_NONE;
}

static PyObject *get_bytes(PyObject *self, void *unused) {
    (void)unused;
    const ing_mem *m = ((ing_py_block *)self)->mem;
    return PyLong_FromSize_t(m ? m->bytes : 0);
}

static PyObject *get_destroyed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(!((ing_py_block *)self)->mem);
}

static const PyMethodDef block_methods[] = {
    {"destroy", block_destroy, METH_NOARGS,
     "Gives the memory back; fields in it can be used no more."},
    {0},
};

static const PyGetSetDef block_getset[] = {
    {"bytes", get_bytes, NULL, "Its size; 0 when it is destroyed.", NULL},
    {"destroyed", get_destroyed, NULL, "Whether its memory was given back.", NULL},
    {0},
};

static const PyMemberDef block_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ing_py_block, weakrefs), READONLY,
     NULL},
    {0},
};

static const PyType_Slot block_slots[] = {
    {Py_tp_doc, "The memory of one child of a tree of fields."},
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_methods, (void *)block_methods},
    {Py_tp_members, (void *)block_members},
    {Py_tp_getset, (void *)block_getset},
    {0, NULL},
};

static const PyType_Spec block_spec = {
    .name = "ingot._core.FieldBlock",
    .basicsize = sizeof(ing_py_block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = (PyType_Slot *)block_slots,
};

ing_py_block *ing_py_block_new(ing_py_state *st, size_t bytes) {
    ing_mem *m;
    size_t room = bytes;
    /* Small ones take the next power of two: where an axis is padded to one, as it is in the
     * reference, programs index past its end, and would write to a neighbour. */
    if (bytes && bytes < 1 << 16)
        room = (size_t)1 << (64 - __builtin_clzl((bytes - 1) | 1));
    if (ing_mem_new(st->home, room, &m) != ING_OK) {
        PyErr_Format(PyExc_MemoryError, "no memory for a field of %zu bytes", bytes);
        return NULL;
    }
    ing_py_block *b = PyObject_New(ing_py_block, st->block_type);
    if (!b) {
        ing_mem_unref(m);
        return NULL;
    }
    b->mem = m;
    b->bound = 0;
    b->weakrefs = NULL;
    b->link = (ing_py_link){st->blocks.prev, &st->blocks};
    b->link.prev->next = b->link.next->prev = &b->link;
    return b;
}

void ing_py_block_destroy_all(ing_py_state *st) {
    while (st->blocks.next != &st->blocks) {
        char *link = (char *)st->blocks.next;
        destroy(st, (ing_py_block *)(void *)(link - offsetof(ing_py_block, link)));
    }
}

/* ---- in the module ------------------------------------------------------------------- */

static PyObject *new_block(PyObject *module, PyObject *bytes) {
    size_t n = PyLong_AsSize_t(bytes);
    if (n == (size_t)-1 && PyErr_Occurred()) return NULL;
    return (PyObject *)ing_py_block_new(ing_py_state_in(module), n);
}

static PyObject *drop_fields(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state *st = ing_py_state_in(module);
    ing_py_block_destroy_all(st);
    st->lazy[0] = st->lazy[1] = 0;
    Py_RETURN_NONE;
}

static PyObject *lazy_companions(PyObject *module, PyObject *dual) {
    ing_py_state *st = ing_py_state_in(module);
    st->lazy[dual == Py_True] = st->generations;
    Py_RETURN_NONE;
}

static const PyMethodDef functions[] = {
    {"_new_block", new_block, METH_O, "_new_block(bytes): zeroed memory for fields."},
    {"_lazy_companions", lazy_companions, METH_O,
     "_lazy_companions(dual): fields of now that are in no tree have gradients, or "
     "duals."},
    {"_drop_fields", drop_fields, METH_NOARGS, "Destroys all blocks there are."},
    {0},
};

int ing_py_block_add(PyObject *module, ing_py_state *st) {
    ing_map_init(&st->layout_map);
    st->blocks = (ing_py_link){&st->blocks, &st->blocks};
    st->block_type = ing_py_add_type(module, &block_spec);
    if (!st->block_type) return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
