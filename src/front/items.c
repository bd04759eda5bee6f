/* Tuples, lists and dicts as variables. They are known while compiling: how many items, and
 * which of them are numbers. A variable whose items are assigned, or that is assigned as a
 * whole once more, has a place in memory for each number, vector and struct that it holds;
 * in any other the items are values. Called by assignments, by calls of methods that change
 * a list, and by comparisons.
 *
 * Rules
 *  ITEMS1 Assigning copies, as for vectors: `m = l` makes a list of its own. Targets of static
 *     loops and names given by qd.static() are other names for what is there: through them
 *     places can be assigned, and nothing else.
 *  ITEMS2 In the block in which a variable was made it may become another list, of other length
 *     and types: nothing that runs later sees the old one. Below that, inside a run-time
 *     branch or loop, only what is in the places can change.
 *  ITEMS3 A list from the caller (a qd.template() parameter) is `fixed`: its places are the
 *     caller's and may be assigned, the list itself stays. */
#include "front/tensor.h"

#include <string.h>

enum { MAX_ITEMS = 1 << 16 };

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

bool ing_front_is_box(const value *v) {
    return (v->kind == V_TUPLE && !v->tensor) || v->kind == V_LIST || v->kind == V_DICT;
}

static bool is_seen(const value *v, ing_gate_kind kind) {
    return v->kind == V_SEEN && v->seen == kind;
}

ing_status ing_front_box_open(frame *fr, ing_node at, value *v) {
    value *keys, *items;
    uint32_t n = 0;
    bool ok = false, list = is_seen(v, ING_GATE_LIST);
    if (is_seen(v, ING_GATE_DICT)) {
        ING_TRY(ing_front_count(fr, at, v));
        n = v->n;
        ING_TRY(ing_front_dict_part(fr, at, v, DICT_KEYS, &keys));
        ING_TRY(ing_front_dict_part(fr, at, v, DICT_VALUES, &items));
        value *pairs = ING_NEW_ARRAY(&fr->lo->arena, 2 * (size_t)n + 1, value);
        if (!pairs) return no_memory(fr);
        for (uint32_t i = 0; i < n; i++)
            pairs[2 * i] = keys[i], pairs[2 * i + 1] = items[i];
        *v = ing_front_seq(V_DICT, pairs, n);
    } else if (list || is_seen(v, ING_GATE_TUPLE) || v->kind == V_SHAPE) {
        ING_TRY(ing_front_items(fr, at, v, &items, &n, &ok));
        *v = ing_front_seq(list ? V_LIST : V_TUPLE, items, n);
    }
    return ING_OK;
}

/* ---- values and places ---------------------------------------------------------------------- */

/* Items are copied: they must not follow the variables they came from. */
ing_status ing_front_freeze(frame *fr, ing_node at, const value *given, value *out) {
    value v = *given; /* may be `out` */
    *out = v;
    if (v.kind == V_STRUCT) return ing_front_struct_load(fr, at, &v, out);
    if (ing_front_is_runtime(&v)) {
        ING_TRY(ing_front_load(fr, at, &v, out));
        out->fixed = false;
        out->alt = 0; /* a variable has a type */
        return ING_OK;
    }
    if (v.kind == V_INT || v.kind == V_FLOAT) { /* known, but typed from here on */
        ing_dtype t = ING_VOID;
        ING_TRY(ing_front_literal_dtype(fr, at, &v, &t));
        out->dtype = (uint8_t)t;
        if (v.kind == V_FLOAT && t == ING_F32) out->f = (float)v.f;
        if (v.kind == V_FLOAT && t == ING_F16) return ing_front_load(fr, at, &v, out);
        return ING_OK;
    }
    if (!v_holds(&v)) return ING_OK;
    uint32_t n = v_children(&v);
    out->items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n + 1, value);
    if (!out->items) return no_memory(fr);
    for (uint32_t i = 0; i < n; i++) {
        out->items[i] = v.items[i];
        ING_TRY(ing_front_force(fr, at, &out->items[i]));
        if (v.kind == V_DICT && i % 2 == 0) continue; /* keys stay what they are */
        ING_TRY(ing_front_freeze(fr, at, &out->items[i], &out->items[i]));
    }
    out->shared = out->fixed = false;
    return ING_OK;
}

/* The number that a member of an IntEnum is; *ok false: it is no such member. (A member of
 * another enum with a number for its value equals no number.) */
ing_status ing_front_enum_number(frame *fr, ing_node at, value *v, bool *ok) {
    *ok = is_seen(v, ING_GATE_ENUM) && v->n == ING_ENUM_INT;
    return *ok ? ing_front_enum_value(fr, at, v) : ING_OK;
}

/* Every number, vector and struct of a frozen value gets memory of its own. The depth of the
 * text bounds the recursion. */
static ing_status settle(frame *fr, ing_node at, value *v) {
    bool ok = false;
    ING_TRY(ing_front_box_open(fr, at, v));
    if (ing_front_is_box(v)) {
        for (uint32_t i = v->kind == V_DICT; i < v_children(v);
             i += 1 + (v->kind == V_DICT)) {
            ING_TRY(ing_front_force(fr, at, &v->items[i]));
            ING_TRY(settle(fr, at, &v->items[i]));
        }
        return ING_OK;
    }
    if (v->kind == V_STRUCT) return ing_front_struct_settle(fr, at, v);
    if (ing_front_is_tensor(fr, v)) {
        ING_TRY(ing_front_tensor_spill(fr, at, v, ING_VOID, v));
        v->temp = false;
        return ING_OK;
    }
    ING_TRY(ing_front_enum_number(fr, at, v, &ok));
    if (!ing_front_is_scalar(v) || v->kind == V_SEEN) return ING_OK;
    ING_TRY(ing_front_load(fr, at, v, v));
    ing_type ref = ing_ir_type_ref(fr->lo->mod, v->type);
    uint32_t inst = ing_ir_emit(&fr->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, inst, v->inst, 0);
    *v = (value){.kind = V_REF, .inst = inst, .type = v->type};
    return ING_OK;
}

static bool is_number_place(const value *v) {
    return v->kind == V_REF && v->type < ING_DTYPE_N;
}

ing_status ing_front_numbers_read(frame *fr, ing_node at, value *v) {
    bool places = false;
    if (is_number_place(v)) return ing_front_load(fr, at, v, v);
    if (v->kind != V_TUPLE || v->tensor) return ING_OK;
    for (uint32_t i = 0; i < v->n && !places; i++)
        places = is_number_place(&v->items[i]);
    if (!places) return ING_OK;
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v->n + 1, value);
    if (!items) return no_memory(fr);
    for (uint32_t i = 0; i < v->n; i++) {
        items[i] = v->items[i];
        if (is_number_place(&items[i]))
            ING_TRY(ing_front_load(fr, at, &items[i], &items[i]));
    }
    v->items = items;
    return ING_OK;
}

/* ---- declaring and assigning ------------------------------------------------------------------ */

static bool has_places(const frame *fr, uint32_t atom) {
    return fr->uses[atom] & (NAME_AGAIN | NAME_ITEM);
}

/* What the name stands for from here on. */
static ing_status make_box(frame *fr, ing_node at, uint32_t atom, const value *given,
                           value *out) {
    value v = *given;
    bool changes = fr->uses[atom] & (NAME_AGAIN | NAME_ITEM | NAME_GROWS);
    if (changes || v.kind == V_SHAPE) ING_TRY(ing_front_box_open(fr, at, &v));
    ING_TRY(ing_front_freeze(fr, at, &v, out));
    return has_places(fr, atom) && ing_front_is_box(out) ? settle(fr, at, out) : ING_OK;
}

ing_status ing_front_box_declare(frame *fr, ing_node at, uint32_t atom,
                                 const value *v) {
    value made;
    ING_TRY(make_box(fr, at, atom, v, &made));
    ING_TRY(ing_front_scope_add(fr, atom, &made));
    ing_front_binding(fr, atom)->own = true;
    return ING_OK;
}

/* A parameter that holds values: those of a func's own, if it changes them. */
ing_status ing_front_box_param(frame *fr, ing_node at, uint32_t atom, value *v,
                               bool of_caller) {
    v->fixed = of_caller;
    bool changes = fr->uses[atom] & (NAME_ONCE | NAME_MANY | NAME_ITEM);
    if (!of_caller && changes) ING_TRY(settle(fr, at, v));
    ING_TRY(ing_front_scope_add(fr, atom, v));
    ing_front_binding(fr, atom)->own = !of_caller;
    return ING_OK;
}

static ing_status fail_shape(frame *fr, ing_node at, const value *to, const value *v) {
    return ing_front_fail_at(
        fr, at, ING_TYPE,
        "assign one of the same shape; or make the variable in this block",
        "inside a run-time branch or loop %s cannot become %s: the items can change, "
        "not "
        "their number and kinds",
        ing_front_describe(fr, to), ing_front_describe(fr, v));
}

static ing_status same_key(frame *fr, ing_node at, const value *a, const value *b,
                           bool *out) {
    bool done = false;
    *out = false;
    if (!ing_front_is_static(a) || !ing_front_is_static(b)) return ING_OK;
    return ing_front_fold_compare(fr, at, ING_AST_Eq, a, b, out, &done);
}

/* Values that were frozen, into the places of a variable. */
static ing_status store_items(frame *fr, ing_node at, ing_node from, const value *to,
                              const value *v) {
    bool same = true, done = false;
    if (ing_front_is_box(to)) {
        if (to->kind != v->kind || to->n != v->n) return fail_shape(fr, at, to, v);
        for (uint32_t i = 0; i < v_children(to); i++) {
            value place = to->items[i];
            place.shared |= to->shared;
            if (to->kind == V_DICT && i % 2 == 0) {
                ING_TRY(same_key(fr, at, &place, &v->items[i], &same));
                if (!same) return fail_shape(fr, at, to, v);
                continue;
            }
            ING_TRY(store_items(fr, at, from, &place, &v->items[i]));
        }
        return ING_OK;
    }
    if (to->kind == V_REF || to->kind == V_STRUCT)
        return ing_front_store(fr, at, from, to, v);
    same = to->kind == v->kind && ing_front_is_static(v);
    if (same) ING_TRY(ing_front_fold_compare(fr, at, ING_AST_Is, to, v, &same, &done));
    return same ? ING_OK : fail_shape(fr, at, to, v);
}

static ing_status fail_fixed(frame *fr, ing_node at, uint32_t atom) {
    return ing_front_fail_at(
        fr, at, ING_SYNTAX, "assign its items, or use another name for the new list",
        "'%s' belongs to the caller: it cannot become another list",
        ing_atoms_text(&fr->t->atoms, atom));
}

/* Whether the code stands in the block in which the variable was made (ITEMS2). */
static bool in_own_block(const frame *fr, const binding *b) {
    return fr->b.starts.len == b->depth;
}

ing_status ing_front_box_assign(frame *fr, ing_node at, ing_node from, uint32_t atom,
                                const value *given) {
    value v = *given, old;
    if (ing_front_binding(fr, atom)->v.fixed) return fail_fixed(fr, at, atom);
    ING_TRY(ing_front_name_read(fr, at, atom, &old));
    if (in_own_block(fr, ing_front_binding(fr, atom))) {
        ING_TRY(make_box(fr, from, atom, given, &v));
        if (!ing_front_is_box(&v)) return fail_shape(fr, at, &old, given);
        binding *b = ing_front_binding(fr, atom);
        b->v = v;
        b->v.from_static = b->roomy = false;
        b->own = true;
        return ING_OK;
    }
    ING_TRY(ing_front_box_open(fr, from, &v));
    if (!ing_front_is_box(&v) || !ing_front_binding(fr, atom)->own)
        return fail_shape(fr, at, &old, given);
    ING_TRY(ing_front_freeze(fr, from, &v, &v));
    return store_items(fr, at, from, &old, &v);
}

/* ---- items -------------------------------------------------------------------------------------- */

static ing_status fail_item(frame *fr, ing_node at, const binding *b,
                            const value *item) {
    const char *what = ing_front_describe(fr, item);
    if (b->v.fixed)
        return ing_front_fail_at(
            fr, at, ING_SYNTAX, "return the new list: l = f(l); or pass a vector",
            "this item of the caller's list is %s: a func can store into items that "
            "the caller assigns, too",
            what);
    if (!b->own)
        return ing_front_fail_at(
            fr, at, ING_SYNTAX,
            "assign an item of the list by its own name as well, l[0] = x, or copy it",
            "this item is %s of a list that has another name", what);
    return ing_front_fail_at(
        fr, at, ING_SYNTAX,
        "assign it in the block in which the list was made, or keep it in a variable "
        "of "
        "its own",
        "this item is %s, which nothing can be stored in at run time", what);
}

/* Position of an item that is assigned: v_children for a new key of a dict. */
static ing_status find_item(frame *fr, ing_node at, const value *box,
                            const value *index, uint32_t *out) {
    *out = v_children(box);
    if (!ing_front_is_static(index))
        return ing_front_fail_at(
            fr, at, ING_COMPILE,
            box->kind == V_DICT
                ? "keep numbers under keys of the run time in an array"
                : "make the index a compile-time value (for i in qd.static(range(n))), "
                  "or use qd.Vector([...])",
            "%s can only be indexed with a compile-time %s",
            ing_front_describe(fr, box), box->kind == V_DICT ? "key" : "integer");
    for (uint32_t i = 0; box->kind == V_DICT && i < box->n; i++) {
        bool same = false;
        ING_TRY(same_key(fr, at, &box->items[2 * i], index, &same));
        if (same) *out = 2 * i + 1;
    }
    if (box->kind == V_DICT) return ING_OK;
    int64_t k = index->kind == V_INT && index->i < 0 ? index->i + box->n : index->i;
    if (index->kind != V_INT && index->kind != V_BOOL)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "assign the items one by one",
            "items of a list are assigned by an integer, not by %s",
            ing_front_describe(fr, index));
    if (k < 0 || k >= box->n)
        return ing_front_fail_at(fr, at, ING_INDEX, "items are counted from 0",
                                 "index %lld of %s", (long long)index->i,
                                 ing_front_describe(fr, box));
    *out = (uint32_t)k;
    return ING_OK;
}

/* Another value at this position, with the key before it when it is new. The list is a new
 * one: values that were read before keep theirs. */
static ing_status put_item(frame *fr, ing_node at, uint32_t atom, uint32_t k,
                           const value *key, const value *given) {
    binding *b = ing_front_binding(fr, atom);
    value v = *given;
    uint32_t n = v_children(&b->v);
    ING_TRY(ing_front_freeze(fr, at, given, &v));
    if (has_places(fr, atom)) ING_TRY(settle(fr, at, &v));
    b = ing_front_binding(fr, atom);
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)n + 3, value);
    if (!items) return no_memory(fr);
    if (n) memcpy(items, b->v.items, n * sizeof *items);
    if (k == n) {
        items[n] = *key;
        b->v.n++;
        k++;
    }
    items[k] = v;
    b->v.items = items;
    b->roomy = false;
    return ING_OK;
}

ing_status ing_front_box_item_assign(frame *fr, ing_node target, ing_node from,
                                     const value *v, bool *done) {
    const struct nf_SUBSCRIPT *f = NF(fr->t, target, SUBSCRIPT);
    uint32_t atom, k = 0;
    value box, index;
    *done = false;
    if (fr->t->nodes.at[f->value].kind != ING_NODE_NAME) return ING_OK;
    atom = NF(fr->t, f->value, NAME)->id - 1;
    const binding *b = ing_front_binding(fr, atom);
    if (!b || (b->v.kind != V_LIST && b->v.kind != V_DICT)) return ING_OK;
    *done = true;
    ING_TRY(ing_front_name_read(fr, f->value, atom, &box));
    ING_TRY(ing_front_expr_forced(fr, f->slice, &index));
    ING_TRY(find_item(fr, target, &box, &index, &k));
    b = ing_front_binding(fr, atom);
    bool own = in_own_block(fr, b) && b->own;
    bool known = k < v_children(&box);
    value item = known ? box.items[k] : (value){.kind = V_NONE};
    item.shared |= box.shared;
    if (known && (item.kind == V_REF || item.kind == V_STRUCT))
        return ing_front_store(fr, target, from, &item, v);
    if (own) return put_item(fr, from, atom, k, &index, v);
    if (!known)
        return ing_front_fail_at(fr, target, ING_COMPILE,
                                 "put the key in where the dict is made",
                                 "inside a run-time branch or loop a dict cannot get "
                                 "new keys");
    if (!ing_front_is_box(&item) || !b->own) return fail_item(fr, target, b, &item);
    value frozen;
    ING_TRY(ing_front_freeze(fr, from, v, &frozen));
    return store_items(fr, target, from, &item, &frozen);
}

/* ---- methods that change a list --------------------------------------------------------------- */

typedef enum change { APPEND, EXTEND, INSERT, POP, CLEAR, REVERSE, N_CHANGES } change;

static const struct {
    const char *name;
    uint8_t min, max;
} changes[N_CHANGES] = {
    [APPEND] = {"append", 1, 1}, [EXTEND] = {"extend", 1, 1},
    [INSERT] = {"insert", 2, 2}, [POP] = {"pop", 0, 1},
    [CLEAR] = {"clear", 0, 0},   [REVERSE] = {"reverse", 0, 0},
};

static change change_find(const char *name) {
    uint32_t i = 0;
    while (i < N_CHANGES && strcmp(changes[i].name, name) != 0) i++;
    return (change)i;
}

bool ing_front_is_change(const char *name) {
    return change_find(name) < N_CHANGES;
}

/* Room for `more` items at the end of the list; lists that grow one by one are copied when
 * they have doubled. */
static ing_status make_room(frame *fr, ing_node at, binding *b, uint32_t more) {
    uint32_t n = b->v.n, room = 1;
    if (n + more > MAX_ITEMS)
        return ing_front_fail_at(fr, at, ING_VALUE, "use an array",
                                 "a list of more than %d items", MAX_ITEMS);
    while (room < n) room *= 2;
    if (b->roomy && n + more <= room) return ING_OK;
    for (room = 1; room < n + more;) room *= 2;
    value *items = ING_NEW_ARRAY(&fr->lo->arena, room, value);
    if (!items) return no_memory(fr);
    if (n) memcpy(items, b->v.items, n * sizeof *items);
    b->v.items = items;
    b->roomy = true;
    return ING_OK;
}

/* New items before position k. */
static ing_status insert_items(frame *fr, ing_node at, uint32_t atom, uint32_t k,
                               const value *items, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        value v = items[i];
        ING_TRY(ing_front_force(fr, at, &v));
        ING_TRY(ing_front_freeze(fr, at, &v, &v));
        if (has_places(fr, atom)) ING_TRY(settle(fr, at, &v));
        binding *b = ing_front_binding(fr, atom);
        if (k < b->v.n) b->roomy = false; /* values that were read keep their order */
        ING_TRY(make_room(fr, at, b, 1));
        memmove(b->v.items + k + 1, b->v.items + k, (b->v.n - k) * sizeof v);
        b->v.items[k++] = v;
        b->v.n++;
    }
    return ING_OK;
}

static ing_status list_pop(frame *fr, ing_node n, uint32_t atom, const call_args *a,
                           value *out) {
    binding *b = ing_front_binding(fr, atom);
    value index = ing_front_int(-1);
    uint32_t k = 0;
    if (a->n) {
        index = a->at[0];
        ING_TRY(ing_front_force(fr, a->node[0], &index));
    }
    ING_TRY(find_item(fr, n, &b->v, &index, &k));
    ING_TRY(ing_front_freeze(fr, n, &b->v.items[k], out));
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)b->v.n + 1, value);
    if (!items) return no_memory(fr);
    if (k) memcpy(items, b->v.items, k * sizeof *items);
    memcpy(items + k, b->v.items + k + 1, (b->v.n - k - 1) * sizeof *items);
    b->v.items = items;
    b->v.n--;
    b->roomy = false;
    return ING_OK;
}

static ing_status list_insert(frame *fr, ing_node n, uint32_t atom,
                              const call_args *a) {
    value index = a->at[0];
    uint32_t len = ing_front_binding(fr, atom)->v.n;
    ING_TRY(ing_front_force(fr, a->node[0], &index));
    if (index.kind != V_INT)
        return ing_front_fail_at(
            fr, a->node[0], ING_COMPILE, "use a compile-time integer",
            "the position of insert is %s", ing_front_describe(fr, &index));
    int64_t k = index.i < 0 ? index.i + len : index.i;
    k = k < 0 ? 0 : k > len ? len : k;
    return insert_items(fr, n, atom, (uint32_t)k, &a->at[1], 1);
}

static ing_status list_reverse(frame *fr, uint32_t atom) {
    binding *b = ing_front_binding(fr, atom);
    value *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)b->v.n + 1, value);
    if (!items) return no_memory(fr);
    for (uint32_t i = 0; i < b->v.n; i++) items[i] = b->v.items[b->v.n - 1 - i];
    b->v.items = items;
    b->roomy = false;
    return ING_OK;
}

/* The list that a method changes; *atom is its name. */
static ing_status changed_list(frame *fr, ing_node n, const char *name,
                               const call_args *a, uint32_t *atom) {
    const struct nf_ATTRIBUTE *f = NF(fr->t, NF(fr->t, n, CALL)->func, ATTRIBUTE);
    const binding *b = NULL;
    change c = change_find(name);
    if (fr->t->nodes.at[f->value].kind == ING_NODE_NAME) {
        *atom = NF(fr->t, f->value, NAME)->id - 1;
        b = ing_front_binding(fr, *atom);
    }
    if (!b || b->v.kind != V_LIST || !b->own)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX,
            "make a list of your own: l = list(x); keep what changes at run time in an "
            "array",
            "only a list that is a variable of this %s can be changed by %s",
            fr->kernel ? "kernel" : "func", name);
    if (a->n_kw || a->n < changes[c].min || a->n > changes[c].max)
        return ing_front_fail_at(fr, n, ING_TYPE, "as in Python, without keywords",
                                 "%s takes %u to %u arguments by position", name,
                                 changes[c].min, changes[c].max);
    if (in_own_block(fr, b)) return ING_OK;
    return ing_front_fail_at(
        fr, n, ING_SYNTAX,
        "call it in the block in which the list is made (qd.static loops and branches "
        "count as part of it), or keep the values in an array",
        "%s inside a run-time branch or loop: how many items a list has must be known "
        "while compiling",
        name);
}

ing_status ing_front_list_change(frame *fr, ing_node n, const char *name,
                                 const call_args *a, value *out) {
    uint32_t atom = 0, count = 1;
    bool ok = true;
    value v, *items = a->at;
    ING_TRY(changed_list(fr, n, name, a, &atom));
    *out = ing_front_none();
    uint32_t end = ing_front_binding(fr, atom)->v.n;
    switch (change_find(name)) {
    case EXTEND:
        v = a->at[0];
        ING_TRY(ing_front_force(fr, a->node[0], &v));
        ING_TRY(ing_front_items(fr, a->node[0], &v, &items, &count, &ok));
        if (!ok)
            return ing_front_fail_at(fr, a->node[0], ING_TYPE, "use a tuple or a list",
                                     "this cannot be unpacked: %s",
                                     ing_front_describe(fr, &v));
        return insert_items(fr, n, atom, end, items, count);
    case APPEND: return insert_items(fr, n, atom, end, items, 1);
    case INSERT: return list_insert(fr, n, atom, a);
    case POP: return list_pop(fr, n, atom, a, out);
    case REVERSE: return list_reverse(fr, atom);
    default: ing_front_binding(fr, atom)->v.n = 0; return ING_OK;
    }
}

/* ---- comparing ------------------------------------------------------------------------------------ */

/* `==` and `!=` of sequences some items of which exist only at run time. */
ing_status ing_front_compare_items(frame *fr, ing_node at, ing_front_op op,
                                   const value *l, const value *r, value *out,
                                   bool *done) {
    value a = *l, b = *r;
    *done = false;
    ING_TRY(ing_front_box_open(fr, at, &a));
    ING_TRY(ing_front_box_open(fr, at, &b));
    if (!ing_front_is_box(&a) || !ing_front_is_box(&b) || a.kind == V_DICT ||
        b.kind == V_DICT || (op != ING_AST_Eq && op != ING_AST_NotEq))
        return ING_OK;
    *done = true;
    bool equal = op == ING_AST_Eq;
    *out = ing_front_bool(equal);
    if (a.kind != b.kind || a.n != b.n) {
        *out = ing_front_bool(!equal);
        return ING_OK;
    }
    for (uint32_t i = 0; i < a.n; i++) {
        value x = a.items[i], y = b.items[i], one;
        ING_TRY(ing_front_force(fr, at, &x));
        ING_TRY(ing_front_force(fr, at, &y));
        ING_TRY(ing_front_compare(fr, at, op, &x, &y, &one));
        if (ing_front_is_tensor(fr, &one))
            return ing_front_fail_at(fr, at, ING_TYPE,
                                     "compare their items: (v == w).all()",
                                     "tuples of vectors cannot be compared");
        bool known = one.kind == V_BOOL;
        if (known && (one.i != 0) != equal) { /* decides it */
            *out = one;
            return ING_OK;
        }
        if (known) continue;
        if (out->kind == V_BOOL)
            *out = one;
        else
            ING_TRY(ing_front_binary(fr, at, equal ? ING_AST_BitAnd : ING_AST_BitOr,
                                     out, &one, out));
    }
    return ING_OK;
}
