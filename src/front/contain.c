/* Compile-time containers: dicts, comprehensions, the methods of tuples, lists and dicts,
 * and isinstance. Reached from the tables of expr.c and call.c. Containers hold values of
 * any kind, run-time ones too, but are themselves known while compiling: nothing here emits
 * an instruction of its own. */
#include "front/front_int.h"

#include <string.h>

typedef ing_vec(value) value_vec;

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* The collected items as one value; `per` of them make one entry. */
static void take_items(frame *fr, uint8_t kind, const value_vec *items, uint32_t per,
                       value *out) {
    value *at = ING_NEW_ARRAY(&fr->lo->arena, (size_t)items->len + 1, value);
    if (at && items->len) memcpy(at, items->at, items->len * sizeof *at);
    *out = ing_front_seq(kind, at, at ? items->len / per : 0);
}

/* ---- dicts ------------------------------------------------------------------------------ */

enum { MAX_ENTRIES = 4096 };

/* Position of a key among n pairs, or n. A key that exists only at run time equals none. */
static ing_status dict_find(frame *fr, ing_node at, const value *pairs, uint32_t n,
                            const value *key, uint32_t *out) {
    for (*out = 0; *out < n; (*out)++) {
        bool same = false, done = false;
        const value *have = &pairs[2 * *out];
        if (!ing_front_is_static(have) || !ing_front_is_static(key)) continue;
        ING_TRY(ing_front_same_item(fr, at, have, key, &same, &done));
        if (done && same) return ING_OK;
    }
    return ING_OK;
}

static ing_status dict_put(frame *fr, ing_node at, value_vec *pairs, const value *key,
                           const value *v) {
    uint32_t k = 0, n = pairs->len / 2;
    ING_TRY(dict_find(fr, at, pairs->at, n, key, &k));
    if (k < n) {
        pairs->at[2 * k + 1] = *v;
        return ING_OK;
    }
    if (n == MAX_ENTRIES)
        return ing_front_fail_at(fr, at, ING_VALUE, "pass the numbers as an array",
                                 "a dict of more than %d entries", MAX_ENTRIES);
    return ing_vec_push(pairs, *key) && ing_vec_push(pairs, *v) ? ING_OK
                                                                : no_memory(fr);
}

static ing_status read_now(frame *fr, ing_node n, value *out) {
    ING_TRY(ing_front_expr_forced(fr, n, out));
    return out->kind == V_REF ? ing_front_load(fr, n, out, out) : ING_OK;
}

/* The pairs of a dict, ours or from outside. */
static ing_status dict_pairs(frame *fr, ing_node at, const value *d, value **pairs) {
    *pairs = d->items;
    if (d->kind == V_DICT) return ING_OK;
    *pairs = ING_NEW_ARRAY(&fr->lo->arena, 2 * (size_t)d->n + 1, value);
    if (!*pairs) return no_memory(fr);
    value keys;
    ING_TRY(ing_front_derive(fr, at, d->gref, ING_DERIVE_ITEMS, 0, &keys));
    for (uint32_t i = 0; i < d->n; i++) {
        value *key = &(*pairs)[2 * i];
        ing_gate_key number = {.i = i};
        ING_TRY(ing_front_thing_item(fr, at, keys.gref, &number, key));
        ING_TRY(ing_front_force(fr, at, key));
        if (key->kind != V_STR && key->kind != V_INT)
            return ing_front_fail_at(
                fr, at, ING_TYPE, "use strings or integers as keys",
                "dicts with other keys than strings and integers cannot be used in "
                "kernels; this has %s",
                ing_front_describe(fr, key));
        ing_gate_key k;
        ING_TRY(ing_front_key(fr, at, key, &k));
        ING_TRY(ing_front_thing_item(fr, at, d->gref, &k, &(*pairs)[2 * i + 1]));
    }
    return ING_OK;
}

ing_status ing_front_key(frame *fr, ing_node at, const value *v, ing_gate_key *out) {
    *out = (ing_gate_key){.is_str = v->kind == V_STR};
    if (!out->is_str)
        out->i = v->i;
    else if (!memchr(v->s, 0, v->n))
        out->s = v->s;
    else
        return ing_front_fail_at(fr, at, ING_VALUE, "use another key",
                                 "a key with a null character cannot be used in "
                                 "kernels");
    return ING_OK;
}

static bool is_dict(const value *v) {
    return v->kind == V_DICT || (v->kind == V_SEEN && v->seen == ING_GATE_DICT);
}

static ing_status dict_spread(frame *fr, ing_node n, value_vec *out) {
    value d, *pairs;
    ING_TRY(ing_front_expr_forced(fr, n, &d));
    if (!is_dict(&d))
        return ing_front_fail_at(fr, n, ING_TYPE, "write out the keys",
                                 "`**` needs a dict; this is %s",
                                 ing_front_describe(fr, &d));
    ING_TRY(ing_front_count(fr, n, &d));
    ING_TRY(dict_pairs(fr, n, &d, &pairs));
    for (uint32_t i = 0; i < d.n; i++)
        ING_TRY(dict_put(fr, n, out, &pairs[2 * i], &pairs[2 * i + 1]));
    return ING_OK;
}

static ing_status dict_entries(frame *fr, const struct nf_DICT *f, value_vec *out) {
    for (uint32_t i = 0; i < list_len(fr->t, f->keys); i++) {
        ing_node k = list_at(fr->t, f->keys, i), v = list_at(fr->t, f->values, i);
        value key, item;
        if (!k) {
            ING_TRY(dict_spread(fr, v, out));
            continue;
        }
        ING_TRY(read_now(fr, k, &key));
        ING_TRY(read_now(fr, v, &item));
        ING_TRY(dict_put(fr, k, out, &key, &item));
    }
    return ING_OK;
}

ing_status ing_front_expr_dict(frame *fr, ing_node n, value *out) {
    value_vec pairs = {0};
    ing_status s = dict_entries(fr, NF(fr->t, n, DICT), &pairs);
    if (s == ING_OK) take_items(fr, V_DICT, &pairs, 2, out);
    ing_vec_fini(&pairs);
    return s;
}

ing_status ing_front_dict_get(frame *fr, ing_node at, const value *d, const value *key,
                              value *out, bool *found) {
    uint32_t k = 0;
    ING_TRY(dict_find(fr, at, d->items, d->n, key, &k));
    *found = k < d->n;
    if (*found) *out = d->items[2 * k + 1];
    return ING_OK;
}

ing_status ing_front_dict_part(frame *fr, ing_node at, const value *d, dict_part part,
                               value **items) {
    value *pairs;
    ING_TRY(dict_pairs(fr, at, d, &pairs));
    *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)d->n + 1, value);
    if (!*items) return no_memory(fr);
    for (uint32_t i = 0; i < d->n; i++)
        (*items)[i] = part == DICT_ITEMS ? ing_front_seq(V_TUPLE, &pairs[2 * i], 2)
                                         : pairs[2 * i + (part == DICT_VALUES)];
    return ING_OK;
}

/* ---- comprehensions ------------------------------------------------------------------------ */

typedef struct comprehension {
    uint32_t generators;
    ing_node key; /* of a dict, else 0 */
    ing_node elt;
    value_vec items;
} comprehension;

const char *ing_front_sequence_remedy(const value *v) {
    if (v->kind == V_ITER && v->tag == ING_IN_PY_RANGE)
        return "its bounds must be known while compiling: make them qd.template() "
               "parameters or globals; or store into an array, in a loop";
    if (v->kind == V_ARRAY || v->kind == V_BUNDLE)
        return "loop over its indices, `for i in range(a.shape[0])`, and store into "
               "an array";
    return "iterate over a range, tuple or list known while compiling";
}

static ing_status comprehend(frame *fr, comprehension *c, uint32_t g);

static ing_status comprehend_one(frame *fr, comprehension *c, uint32_t g,
                                 const struct nf_COMPREHENSION *f, const value *item) {
    value one = *item;
    one.from_static = false; /* a new name, whatever is outside */
    ING_TRY(ing_front_assign_to(fr, f->target, f->iter, &one, true));
    for (uint32_t i = 0; i < list_len(fr->t, f->ifs); i++) {
        ing_node test = list_at(fr->t, f->ifs, i);
        value v;
        bool truth = false;
        ING_TRY(ing_front_expr_static(fr, test, &v));
        ING_TRY(ing_front_truth(fr, test, &v, &truth));
        if (!truth) return ING_OK;
    }
    if (g + 1 < list_len(fr->t, c->generators)) return comprehend(fr, c, g + 1);
    value key, v;
    if (c->key) ING_TRY(read_now(fr, c->key, &key));
    ING_TRY(read_now(fr, c->elt, &v));
    if (c->key) return dict_put(fr, c->key, &c->items, &key, &v);
    return ing_vec_push(&c->items, v) ? ING_OK : no_memory(fr);
}

static ing_status comprehend(frame *fr, comprehension *c, uint32_t g) {
    const struct nf_COMPREHENSION *f =
        NF(fr->t, list_at(fr->t, c->generators, g), COMPREHENSION);
    value it, *items;
    uint32_t n = 0;
    bool ok = false;
    ING_TRY(ing_front_expr_static(fr, f->iter, &it));
    ING_TRY(ing_front_sequence(fr, f->iter, &it, &items, &n, &ok));
    if (!ok)
        return ing_front_fail_at(
            fr, f->iter, ING_COMPILE, ing_front_sequence_remedy(&it),
            "a comprehension needs a compile-time sequence; this is %s",
            ing_front_describe(fr, &it));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t mark = ing_front_scope_open(fr);
        ing_status s = ing_front_force(fr, f->iter, &items[i]);
        if (s == ING_OK) s = comprehend_one(fr, c, g, f, &items[i]);
        ing_front_scope_close(fr, mark);
        ING_TRY(s);
    }
    return ING_OK;
}

static ing_status comprehension_value(frame *fr, comprehension *c, value *out) {
    ing_status s = comprehend(fr, c, 0);
    if (s == ING_OK)
        take_items(fr, c->key ? V_DICT : V_LIST, &c->items, c->key ? 2 : 1, out);
    ing_vec_fini(&c->items);
    return s;
}

ing_status ing_front_expr_listcomp(frame *fr, ing_node n, value *out) {
    const struct nf_LISTCOMP *f = NF(fr->t, n, LISTCOMP);
    comprehension c = {.generators = f->generators, .elt = f->elt};
    return comprehension_value(fr, &c, out);
}

ing_status ing_front_expr_dictcomp(frame *fr, ing_node n, value *out) {
    const struct nf_DICTCOMP *f = NF(fr->t, n, DICTCOMP);
    comprehension c = {.generators = f->generators, .key = f->key, .elt = f->value};
    return comprehension_value(fr, &c, out);
}

/* ---- methods ----------------------------------------------------------------------------------- */

typedef enum method {
    METHOD_NONE,
    METHOD_KEYS,
    METHOD_VALUES,
    METHOD_ITEMS,
    METHOD_GET,
    METHOD_INDEX,
    METHOD_COUNT,
    METHOD_COPY,
    METHOD_CHANGES, /* of lists and dicts */
} method;

static const struct {
    const char *name;
    uint8_t id, min, max;
} methods[] = {
    {"keys", METHOD_KEYS, 0, 0},      {"values", METHOD_VALUES, 0, 0},
    {"items", METHOD_ITEMS, 0, 0},    {"get", METHOD_GET, 1, 2},
    {"index", METHOD_INDEX, 1, 1},    {"count", METHOD_COUNT, 1, 1},
    {"append", METHOD_CHANGES, 0, 9}, {"extend", METHOD_CHANGES, 0, 9},
    {"insert", METHOD_CHANGES, 0, 9}, {"pop", METHOD_CHANGES, 0, 9},
    {"remove", METHOD_CHANGES, 0, 9}, {"clear", METHOD_CHANGES, 0, 9},
    {"update", METHOD_CHANGES, 0, 9}, {"setdefault", METHOD_CHANGES, 0, 9},
    {"sort", METHOD_CHANGES, 0, 9},   {"reverse", METHOD_CHANGES, 0, 9},
    {"copy", METHOD_COPY, 0, 0},
};

static uint32_t method_find(const char *name) {
    uint32_t n = sizeof methods / sizeof *methods, i = 0;
    while (i < n && strcmp(methods[i].name, name) != 0) i++;
    return i;
}

bool ing_front_is_method(const char *name) {
    return method_find(name) < sizeof methods / sizeof *methods;
}

bool ing_front_has_methods(const value *v) {
    return is_dict(v) || v->kind == V_TUPLE || v->kind == V_LIST ||
           (v->kind == V_SEEN &&
            (v->seen == ING_GATE_TUPLE || v->seen == ING_GATE_LIST));
}

static ing_status fail_method(frame *fr, ing_node n, const value *of,
                              const char *name) {
    return ing_front_fail_at(fr, n, ING_ATTRIBUTE,
                             is_dict(of) ? "dicts have keys, values, items and get"
                                         : "tuples and lists have index and count",
                             "%s has no attribute '%s' in kernels",
                             ing_front_describe(fr, of), name);
}

/* Of one from outside only this key is asked for. */
static ing_status dict_get(frame *fr, ing_node at, const value *d, const value *key,
                           value *out, bool *found) {
    ing_gate_key k;
    if (d->kind == V_DICT) return ing_front_dict_get(fr, at, d, key, out, found);
    *found = key->kind == V_STR || key->kind == V_INT;
    if (!*found) return ING_OK; /* no dict that kernels take has such a key */
    ING_TRY(ing_front_key(fr, at, key, &k));
    GATE(fr, at, has, d->gref, NULL, &k, found, fr->lo->e);
    return *found ? ing_front_thing_item(fr, at, d->gref, &k, out) : ING_OK;
}

static ing_status dict_method(frame *fr, ing_node n, const value *d, method id,
                              const call_args *a, value *out) {
    if (id == METHOD_GET) {
        value key = a->at[0];
        bool found = false;
        ING_TRY(ing_front_force(fr, a->node[0], &key));
        ING_TRY(dict_get(fr, n, d, &key, out, &found));
        if (!found) *out = a->n > 1 ? a->at[1] : ing_front_none();
        return ING_OK;
    }
    value *items;
    dict_part part = id == METHOD_KEYS     ? DICT_KEYS
                     : id == METHOD_VALUES ? DICT_VALUES
                                           : DICT_ITEMS;
    ING_TRY(ing_front_dict_part(fr, n, d, part, &items));
    *out = ing_front_seq(V_TUPLE, items, d->n);
    return ING_OK;
}

static ing_status list_method(frame *fr, ing_node n, const value *of, method id,
                              const call_args *a, value *out) {
    value *items, want = a->at[0];
    uint32_t len = 0, hits = 0, first = 0;
    bool ok = false;
    ING_TRY(ing_front_items(fr, n, of, &items, &len, &ok));
    ING_TRY(ing_front_force(fr, a->node[0], &want));
    for (uint32_t i = 0; i < len; i++) {
        bool same = false, done = false;
        ING_TRY(ing_front_force(fr, n, &items[i]));
        if (!ing_front_is_static(&items[i]) || !ing_front_is_static(&want))
            return ing_front_fail_at(
                fr, n, ING_COMPILE, "compare the items one by one",
                "this needs compile-time items; one is %s",
                ing_front_describe(fr, ing_front_is_static(&want) ? &items[i] : &want));
        ING_TRY(ing_front_same_item(fr, n, &items[i], &want, &same, &done));
        if (!done || !same) continue;
        if (hits++ == 0) first = i;
    }
    if (id == METHOD_INDEX && !hits)
        return ing_front_fail_at(fr, n, ING_VALUE, "ask with qd.static(x in items)",
                                 "%s is not in %s", ing_front_describe(fr, &want),
                                 ing_front_describe(fr, of));
    *out = ing_front_int(id == METHOD_INDEX ? first : hits);
    return ING_OK;
}

ing_status ing_front_call_method(frame *fr, ing_node n, const value *of,
                                 const char *name, const call_args *a, value *out) {
    uint32_t k = method_find(name);
    method id = (method)methods[k].id;
    bool list = of->kind == V_LIST || (of->kind == V_SEEN && of->seen == ING_GATE_LIST);
    if (id == METHOD_CHANGES && list && ing_front_is_change(name))
        return ing_front_list_change(fr, n, name, a, out);
    if (id == METHOD_CHANGES)
        return ing_front_fail_at(fr, n, ING_SYNTAX,
                                 "build it in one expression, with a comprehension, "
                                 "sorted() or +; keep what "
                                 "changes at run time in an array",
                                 "%s cannot be changed by %s in kernels",
                                 ing_front_describe(fr, of), name);
    if (a->n_kw || a->n < methods[k].min || a->n > methods[k].max)
        return ing_front_fail_at(fr, n, ING_TYPE, "as in Python, without keywords",
                                 "%s takes %u to %u arguments by position", name,
                                 methods[k].min, methods[k].max);
    if (id == METHOD_COPY && (list || is_dict(of))) {
        *out = *of;
        return ING_OK;
    }
    if (id == METHOD_COPY) return fail_method(fr, n, of, name);
    bool for_dict = id <= METHOD_GET;
    value counted = *of;
    if (for_dict != is_dict(of)) return fail_method(fr, n, of, name);
    if (for_dict && id != METHOD_GET) ING_TRY(ing_front_count(fr, n, &counted));
    return for_dict ? dict_method(fr, n, &counted, id, a, out)
                    : list_method(fr, n, of, id, a, out);
}

/* ---- isinstance ------------------------------------------------------------------------------------ */

typedef struct class_name {
    value module, name; /* strings */
} class_name;

static ing_status read_attr(frame *fr, ing_node at, ing_gref of, const char *name,
                            value *out) {
    ING_TRY(ing_front_thing_attr(fr, at, of, name, out));
    return ing_front_force(fr, at, out);
}

static ing_status class_read(frame *fr, ing_node at, ing_gref cls, class_name *out) {
    ING_TRY(read_attr(fr, at, cls, "__module__", &out->module));
    return read_attr(fr, at, cls, "__qualname__", &out->name);
}

static bool same_text(const value *v, const char *s) {
    return v->kind == V_STR && v->n == strlen(s) && memcmp(v->s, s, v->n) == 0;
}

/* The builtin class of a value that the front end knows by content; NULL: it is a thing. */
static const char *builtin_class(const value *v) {
    switch ((value_kind)v->kind) {
    case V_NONE: return "NoneType";
    case V_BOOL: return v->bound ? NULL : "bool"; /* NumPy's */
    case V_INT: return v->dtype ? NULL : "int";
    case V_FLOAT: return v->dtype ? NULL : "float";
    case V_STR: return "str";
    case V_TUPLE: return "tuple";
    case V_LIST: return "list";
    case V_DICT: return "dict";
    default: return NULL;
    }
}

/* Of a value that kernels made themselves. */
static ing_status is_of_class(frame *fr, ing_node at, const value *v,
                              const class_name *cls, bool *out) {
    const char *known = builtin_class(v);
    bool builtin = same_text(&cls->module, "builtins");
    *out = builtin && same_text(&cls->name, "object");
    if (*out) return ING_OK;
    if (!known)
        return ing_front_fail_at(fr, at, ING_COMPILE,
                                 "a number has the type of its annotation or of its "
                                 "first value; a qd.template() argument can be asked",
                                 "isinstance needs a compile-time value; this is %s",
                                 ing_front_describe(fr, v));
    *out = builtin && (same_text(&cls->name, known) ||
                       (v->kind == V_BOOL && same_text(&cls->name, "int")));
    return ING_OK;
}

/* int, float, ...: classes that kernels also call. */
static bool builtin_name(const value *v, class_name *out) {
    if (v->kind != V_INTRINSIC) return false;
    const char *text = ing_intrinsic_name((ing_intrinsic)v->tag);
    if (v->tag != ING_IN_PY_INT && v->tag != ING_IN_PY_FLOAT &&
        v->tag != ING_IN_PY_BOOL && v->tag != ING_IN_PY_TUPLE &&
        v->tag != ING_IN_PY_LIST && v->tag != ING_IN_PY_TYPE)
        return false;
    out->module = (value){.kind = V_STR, .s = "builtins", .n = 8};
    out->name = (value){.kind = V_STR, .s = text + 9}; /* after "builtins." */
    out->name.n = (uint32_t)strlen(out->name.s);
    return true;
}

static bool is_plain_meta(const value *name) {
    return same_text(name, "type") || same_text(name, "EnumMeta") ||
           same_text(name, "EnumType");
}

/* The name of a class's class; another kind than V_STR: it is no class. */
static ing_status meta_name(frame *fr, ing_node at, const value *v, value *name) {
    value meta;
    *name = ing_front_none();
    if (!v->gref || v->kind != V_SEEN) return ING_OK;
    ING_TRY(read_attr(fr, at, v->gref, "__class__", &meta));
    return meta.gref ? read_attr(fr, at, meta.gref, "__qualname__", name) : ING_OK;
}

ing_status ing_front_plain_class(frame *fr, ing_node at, const value *cls, bool *out) {
    value name;
    ING_TRY(meta_name(fr, at, cls, &name));
    *out = is_plain_meta(&name) || same_text(&name, "ABCMeta");
    return ING_OK;
}

static ing_status class_of_arg(frame *fr, ing_node at, value *v, class_name *out) {
    value name;
    ING_TRY(ing_front_force(fr, at, v));
    if (builtin_name(v, out)) return ING_OK;
    ING_TRY(meta_name(fr, at, v, &name));
    if (name.kind != V_STR)
        return ing_front_fail_at(fr, at, ING_TYPE, "pass a class or a tuple of classes",
                                 "isinstance needs a class; this is %s",
                                 ing_front_describe(fr, v));
    if (!is_plain_meta(&name))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "compare with a plain class",
            "isinstance with a class that has a metaclass (%s) is not supported in "
            "kernels",
            name.s);
    return class_read(fr, at, v->gref, out);
}

/* Of a thing from outside: Python is asked, and asked again at each launch. */
static ing_status ask_isinstance(frame *fr, ing_node n, const value *fn, const value *v,
                                 const value *cls, bool *out) {
    ing_gref args[2] = {v->gref, cls->gref};
    value is = {.kind = V_THING};
    ing_gate_call call = {.fn = fn->gref, .args = args, .n = 2};
    GATE(fr, n, call, &call, &is.gref, fr->lo->e);
    ING_TRY(ing_front_force(fr, n, &is));
    *out = is.kind == V_BOOL && is.i;
    return ING_OK;
}

static bool is_class(const value *v) {
    class_name name;
    return v->gref && ((v->kind == V_SEEN &&
                        (v->seen == ING_GATE_CLASS || v->seen == ING_GATE_TUPLE)) ||
                       v->kind == V_STRUCT_TYPE || builtin_name(v, &name));
}

ing_status ing_front_isinstance(frame *fr, ing_node n, const value *fn,
                                const call_args *a, value *out) {
    if (a->n != 2 || a->n_kw)
        return ing_front_fail_at(
            fr, n, ING_TYPE, "isinstance(x, (A, B)) asks for several",
            "isinstance takes 2 arguments, found %u", a->n + a->n_kw);
    value v = a->at[0], cls = a->at[1], *classes = &cls;
    uint32_t count = 1;
    bool ok = true, is = false;
    ING_TRY(ing_front_force(fr, a->node[1], &cls));
    if (cls.kind == V_TUPLE)
        ING_TRY(ing_front_items(fr, a->node[1], &cls, &classes, &count, &ok));
    if (!v.gref) ING_TRY(ing_front_force(fr, a->node[0], &v));
    if (v.kind == V_STRUCT)
        return ing_front_fail_at(fr, n, ING_TYPE,
                                 "decide it by a qd.template() argument",
                                 "isinstance does not know structs in kernels");
    for (uint32_t i = 0; i < count && !is; i++) {
        class_name name;
        ING_TRY(ing_front_force(fr, a->node[1], &classes[i]));
        if (v.gref && is_class(&classes[i])) {
            ING_TRY(ask_isinstance(fr, n, fn, &v, &classes[i], &is));
            continue;
        }
        ING_TRY(class_of_arg(fr, a->node[1], &classes[i], &name));
        ING_TRY(is_of_class(fr, a->node[0], &v, &name, &is));
    }
    *out = ing_front_bool(is);
    return ING_OK;
}
