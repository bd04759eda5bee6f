/* The type table of a module and the tables of operations. A type is interned by the
 * digest of its structure, so equal types have equal ids within a module. Called by every
 * user of the IR. A type that cannot exist (too deep, too large, of the wrong parts) is
 * refused like lost memory: id 0, sticky; the parser checks first and says why. */
#include "ir/ir_int.h"

#include <string.h>

enum {
    P = ING_OPF_P,
    R = ING_OPF_R,
    W = ING_OPF_W,
    T = ING_OPF_T,
    C = ING_OPF_C,
    K = ING_OPF_K,
};

static const ing_op_info ops[ING_OP_N] = {
    [ING_OP_NONE] = {"none", "---", '0', 0, ING_OPC_NONE},
#define OP(name, text, operands, result, flags, class, derivative) \
    [ING_OP_##name] = {text, operands, result, flags, ING_OPC_##class},
#include "ir/op.def"
#undef OP
};

static const char *const atomics[ING_IR_ATOMIC_N] = {
#define X(name, text) text,
    ING_IR_ATOMIC_LIST(X)
#undef X
};

const ing_ir_flag_name ing_ir_flag_names[ING_IR_N_FLAGS] = {
    {ING_IR_PARALLEL, "parallel"}, {ING_IR_SERIAL, "serial"},
    {ING_IR_NSW, "nsw"},           {ING_IR_PRIVATE, "private"},
    {ING_IR_VOLATILE, "volatile"}, {ING_IR_ORDERED, "ordered"},
    {ING_IR_TALLY, "tally"},       {ING_IR_AXIS, "axis"},
    {ING_IR_WOVEN, "woven"},       {ING_IR_STRIDED, "strided"},
    {ING_IR_TURNED, "turned"},     {ING_IR_NUMBERS, "numbers"},
    {ING_IR_RARE, "rare"},         {ING_IR_WIDE, "wide"},
    {ING_IR_FEW, "few"},
};

const char *const ing_ir_func_kind_names[3] = {"kernel", "func", "task"};

const ing_op_info *ing_op_get(ing_op op) {
    return &ops[(unsigned)op < ING_OP_N ? op : ING_OP_NONE];
}

ing_op ing_ir_op_find(const char *s, size_t n) {
    for (int i = 1; i < ING_OP_N; i++) {
        if (strlen(ops[i].text) == n && memcmp(ops[i].text, s, n) == 0) return i;
    }
    return ING_OP_NONE;
}

ing_ir_atomic ing_ir_atomic_find(const char *s, size_t n) {
    for (int i = 0; i < ING_IR_ATOMIC_N; i++) {
        if (strlen(atomics[i]) == n && memcmp(atomics[i], s, n) == 0) return i;
    }
    return ING_IR_ATOMIC_N;
}

const char *ing_ir_atomic_text(ing_ir_atomic a) {
    return (unsigned)a < ING_IR_ATOMIC_N ? atomics[a] : "?";
}

/* ---- module ---------------------------------------------------------------------- */

ing_ir_mod *ing_ir_mod_new(void) {
    ing_ir_mod *m = ing_calloc(1, sizeof *m);
    if (!m) return NULL;
    ing_arena_init(&m->arena);
    ing_atoms_init(&m->atoms);
    ing_map_init(&m->type_map);
    for (uint32_t t = 0; t < ING_DTYPE_N; t++) {
        ing_type_info info = {.kind = ING_TYPE_SCALAR, .dtype = (uint8_t)t};
        info.size = ing_dtype_bytes(t);
        info.align = info.size ? info.size : 1;
        if (!ing_vec_push(&m->types, info)) {
            ing_ir_mod_free(m);
            return NULL;
        }
    }
    return m;
}

void ing_ir_mod_free(ing_ir_mod *m) {
    if (!m) return;
    for (uint32_t i = 0; i < m->funcs.len; i++) {
        ing_vec_fini(&m->funcs.at[i]->insts);
        ing_vec_fini(&m->funcs.at[i]->extra);
    }
    ing_vec_fini(&m->types);
    ing_vec_fini(&m->remarks);
    ing_vec_fini(&m->funcs);
    ing_vec_fini(&m->args);
    ing_vec_fini(&m->rets);
    ing_vec_fini(&m->tasks);
    ing_vec_fini(&m->steps);
    ing_vec_fini(&m->apart);
    ing_vec_fini(&m->rule);
    ing_vec_fini(&m->views);
    ing_map_fini(&m->type_map);
    ing_atoms_fini(&m->atoms);
    ing_arena_fini(&m->arena);
    ing_free(m);
}

bool ing_ir_ok(const ing_ir_mod *m) {
    return !m->arena.failed;
}

uint32_t ing_ir_atom(ing_ir_mod *m, const char *s, size_t n) {
    uint32_t a = ing_atoms_add(&m->atoms, s, n);
    if (a != UINT32_MAX) return a;
    m->arena.failed = true;
    return 0;
}

/* ---- types ----------------------------------------------------------------------- */

const ing_type_info *ing_ir_type(const ing_ir_mod *m, ing_type t) {
    return &m->types.at[t < m->types.len ? t : 0];
}

uint32_t ing_ir_type_size(const ing_ir_mod *m, ing_type t) {
    return ing_ir_type(m, t)->size;
}

uint32_t ing_ir_type_align(const ing_ir_mod *m, ing_type t) {
    return ing_ir_type(m, t)->align;
}

static ing_type lost(ing_ir_mod *m) {
    m->arena.failed = true;
    return 0;
}

static ing_type refuse(ing_ir_mod *m) {
    m->bad_type = true;
    return lost(m);
}

static ing_hash128 digest(const ing_type_info *i) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 'k', i->kind);
    ing_hasher_u64(&h, 't', i->dtype);
    ing_hasher_u64(&h, 'r', i->rank);
    ing_hasher_u64(&h, 'g', i->grad);
    ing_hasher_u64(&h, 'e', i->elem);
    ing_hasher_u64(&h, 'm', i->rows);
    ing_hasher_u64(&h, 'n', i->cols);
    ing_hasher_item(&h, 'l', i->layout, i->kind == ING_TYPE_ARRAY ? i->rank : 0);
    if (i->place) ing_hasher_digest(&h, 'p', ing_place_digest(i->place));
    ing_hasher_item(&h, 's', i->members, (size_t)i->n_members * sizeof *i->members);
    ing_hasher_item(&h, 'a', i->names, (size_t)i->n_members * sizeof *i->names);
    return ing_hasher_done(&h);
}

/* The id of `i`; members and names are copied when it is new. */
static ing_type intern(ing_ir_mod *m, ing_type_info i) {
    ing_hash128 key = digest(&i);
    uint32_t found = ing_map_get(&m->type_map, key);
    if (found) return found - 1;
    if (i.n_members) {
        ing_type *members = ING_NEW_ARRAY(&m->arena, i.n_members, ing_type);
        uint32_t *names = ING_NEW_ARRAY(&m->arena, i.n_members, uint32_t);
        uint32_t *offsets = ING_NEW_ARRAY(&m->arena, i.n_members, uint32_t), at = 0;
        if (!members || !names || !offsets) return lost(m);
        memcpy(members, i.members, i.n_members * sizeof *members);
        memcpy(names, i.names, i.n_members * sizeof *names);
        for (uint32_t k = 0; k < i.n_members; k++) {
            const ing_type_info *mi = &m->types.at[members[k]];
            offsets[k] = (uint32_t)ing_ir_round_up(at, mi->align);
            at = offsets[k] + mi->size;
        }
        i.members = members;
        i.names = names;
        i.offsets = offsets;
    }
    if (i.place) {
        ing_place *place = ING_NEW(&m->arena, ing_place);
        if (!place) return lost(m);
        *place = *i.place;
        i.place = place;
    }
    uint32_t id = m->types.len;
    if (!ing_vec_push(&m->types, i)) return lost(m);
    if (!ing_map_put(&m->type_map, key, id + 1)) return lost(m);
    return id;
}

ing_type ing_ir_type_ref(ing_ir_mod *m, ing_type elem) {
    if (!ing_ir_is_data(m, elem)) return refuse(m);
    ing_type_info i = {.kind = ING_TYPE_REF, .elem = elem, .size = 8, .align = 8};
    i.depth = (uint8_t)(m->types.at[elem].depth + 1);
    return intern(m, i);
}

ing_type ing_ir_type_array(ing_ir_mod *m, ing_type elem, uint32_t ndim, bool grad,
                           const uint8_t *layout) {
    if (!ing_ir_is_data(m, elem) || ndim > ING_MAX_NDIM) return refuse(m);
    ing_type_info i = {.kind = ING_TYPE_ARRAY, .elem = elem, .size = 8, .align = 8};
    i.rank = (uint8_t)ndim;
    i.grad = grad;
    i.depth = (uint8_t)(m->types.at[elem].depth + 1);
    uint32_t seen = 0;
    for (uint32_t k = 0; k < ndim; k++) {
        i.layout[k] = layout ? layout[k] : (uint8_t)k;
        if (i.layout[k] >= ndim || (seen >> i.layout[k] & 1)) return refuse(m);
        seen |= 1u << i.layout[k];
    }
    return intern(m, i);
}

/* The axes in the order of their outermost levels, those of extent 1 before them. */
static void layout_of(const ing_place *p, uint8_t *layout) {
    uint32_t seen = 0, n = 0;
    for (uint32_t a = 0; a < p->ndim; a++)
        if (ing_place_extent(p, a) == 1) layout[n++] = (uint8_t)a;
    for (uint32_t k = 0; k < p->n_levels; k++) {
        uint32_t axis = p->level[k].axis;
        if (!(seen >> axis & 1)) layout[n++] = (uint8_t)axis;
        seen |= 1u << axis;
    }
}

ing_type ing_ir_type_field(ing_ir_mod *m, const ing_place *given) {
    if (!ing_place_ok(given)) return refuse(m);
    ing_place p = *given;
    ing_place_simplify(&p);
    ing_type elem = p.dtype;
    if (p.elem_rank)
        elem = ing_ir_type_tensor(m, (ing_dtype)p.dtype, p.elem_shape[0],
                                  p.elem_rank == 2 ? p.elem_shape[1] : 1, p.elem_rank);
    if (!elem) return 0;
    ing_type_info i = {.kind = ING_TYPE_ARRAY, .elem = elem, .size = 8, .align = 8};
    i.rank = p.ndim;
    i.depth = (uint8_t)(m->types.at[elem].depth + 1);
    i.place = &p;
    layout_of(&p, i.layout);
    return intern(m, i);
}

uint32_t ing_ir_type_words(const ing_ir_mod *m, ing_type t) {
    const ing_type_info *i = ing_ir_type(m, t);
    return i->kind != ING_TYPE_ARRAY || i->place ? 1u : 1u + i->rank + i->grad;
}

ing_type ing_ir_type_tensor(ing_ir_mod *m, ing_dtype t, uint32_t rows, uint32_t cols,
                            uint32_t rank) {
    if (!ing_ir_is_scalar(t) || rank < 1 || rank > 2) return refuse(m);
    if (!rows || !cols || (rank == 1 && cols != 1)) return refuse(m);
    uint64_t n = (uint64_t)rows * cols;
    if (n > ING_IR_MAX_TYPE_SIZE / 8) return refuse(m);
    ing_type_info i = {.kind = ING_TYPE_TENSOR, .dtype = (uint8_t)t, .depth = 1};
    i.rank = (uint8_t)rank;
    i.rows = rows;
    i.cols = cols;
    i.align = ing_dtype_bytes(t);
    i.size = (uint32_t)n * i.align;
    return intern(m, i);
}

ing_type ing_ir_type_struct(ing_ir_mod *m, const ing_type *members,
                            const uint32_t *names, uint32_t n) {
    if (!n || n > ING_IR_MAX_TYPE_SIZE / 8) return refuse(m);
    ing_type_info i = {.kind = ING_TYPE_STRUCT, .n_members = n, .align = 1};
    uint64_t size = 0;
    uint32_t depth = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (!ing_ir_is_data(m, members[k])) return refuse(m);
        const ing_type_info *mi = &m->types.at[members[k]];
        size = ing_ir_round_up(size, mi->align) + mi->size;
        if (size > ING_IR_MAX_TYPE_SIZE) return refuse(m);
        if (mi->align > i.align) i.align = mi->align;
        if (mi->depth > depth) depth = mi->depth;
    }
    if (depth + 1 > ING_IR_MAX_TYPE_DEPTH) return refuse(m);
    i.depth = (uint8_t)(depth + 1);
    i.size = (uint32_t)ing_ir_round_up(size, i.align);
    i.members = members;
    uint32_t *zero = NULL;
    if (!names) names = zero = ing_calloc(n, sizeof *zero);
    if (!names) return lost(m);
    i.names = names;
    ing_type t = intern(m, i);
    ing_free(zero);
    return t;
}

uint32_t ing_ir_member_count(const ing_ir_mod *m, ing_type t) {
    const ing_type_info *i = ing_ir_type(m, t);
    if (i->kind == ING_TYPE_TENSOR) return i->rows * i->cols;
    return i->kind == ING_TYPE_STRUCT ? i->n_members : 0;
}

ing_type ing_ir_member_type(const ing_ir_mod *m, ing_type t, uint32_t k) {
    const ing_type_info *i = ing_ir_type(m, t);
    if (k >= ing_ir_member_count(m, t)) return 0;
    return i->kind == ING_TYPE_TENSOR ? i->dtype : i->members[k];
}

uint32_t ing_ir_member_offset(const ing_ir_mod *m, ing_type t, uint32_t k) {
    const ing_type_info *i = ing_ir_type(m, t);
    if (k >= ing_ir_member_count(m, t)) return 0;
    return i->kind == ING_TYPE_TENSOR ? k * i->align : i->offsets[k];
}
