/* Answers and paths in words, for people who ask why a kernel was compiled. Called while
 * lowering (src/py/see/gate.c) and when a compile is explained (notes.c). What is printed here is
 * never compared and never part of a key. */
#include "front/front.h"
#include "trace/notes.h"

#include <string.h>

/* ---- answers ---------------------------------------------------------------------------- */

/* Text of others: short, and without what a terminal would obey. */
static void put_text(const char *s, size_t n, ing_bytes *out) {
    enum { SHOWN = 40 };
    size_t shown = n > SHOWN ? SHOWN : n;
    while (shown < n && shown && ((uint8_t)s[shown] & 0xC0) == 0x80) shown--;
    ing_bytes_puts(out, "'");
    for (size_t i = 0; i < shown; i++) {
        if ((uint8_t)s[i] < 32 || s[i] == 127)
            ing_bytes_printf(out, "\\x%02x", (unsigned)(uint8_t)s[i]);
        else
            ing_bytes_u8(out, (uint8_t)s[i]);
    }
    ing_bytes_puts(out, shown < n ? "'..." : "'");
}

static void put_elements(uint32_t rank, const uint32_t shape[2], ing_bytes *out) {
    if (rank == 1) ing_bytes_printf(out, "vec%u ", shape[0]);
    if (rank == 2) ing_bytes_printf(out, "mat%ux%u ", shape[0], shape[1]);
}

/* Members of members are not told: words are short. */
static void put_struct(const ing_gate_struct *s, ing_bytes *out) {
    ing_bytes_puts(out, "struct {");
    for (uint32_t i = 0; s && i < s->n && out->len < ING_NOTES_MAX_WORDS; i++) {
        const ing_gate_member *m = &s->members[i];
        ing_bytes_printf(out, "%s%.30s: ", i ? ", " : "", m->name);
        if (!m->inner) put_elements(m->tensor.rank, m->tensor.shape, out);
        ing_bytes_puts(out, m->inner ? "struct" : ing_dtype_name(m->dtype));
    }
    ing_bytes_puts(out, "}");
}

static void put_array(const ing_gate_fact *f, ing_bytes *out) {
    put_elements(f->elem_rank, f->elem_shape, out);
    ing_bytes_printf(out, "%s %u-d", ing_dtype_name(f->dtype), f->ndim);
    if (f->grad) ing_bytes_puts(out, " with gradient");
    bool plain = true;
    for (uint32_t i = 0; i < f->ndim; i++) plain = plain && f->layout[i] == i;
    if (plain) return;
    ing_bytes_puts(out, " axes in order");
    for (uint32_t i = 0; i < f->ndim; i++) ing_bytes_printf(out, " %u", f->layout[i]);
}

/* A number that came with a type of its own, such as one of NumPy. */
static void put_typed(const ing_gate_fact *f, ing_bytes *out) {
    if (f->dtype) ing_bytes_printf(out, "%s ", ing_dtype_name(f->dtype));
    if (f->kind == ING_GATE_BOOL)
        ing_bytes_puts(out, f->i ? "True" : "False");
    else if (f->kind == ING_GATE_FLOAT)
        ing_front_put_float(f->f, ING_F64, out);
    else if (f->wide)
        ing_bytes_printf(out, "%llu", (unsigned long long)f->i);
    else
        ing_bytes_printf(out, "%lld", (long long)f->i);
}

static void put_enum(const ing_gate_fact *f, ing_bytes *out) {
    ing_bytes_printf(out, "%.30s.%.30s", f->of ? f->of : "?", f->s ? f->s : "?");
    if (f->len == ING_ENUM_INT) ing_bytes_printf(out, " (%lld)", (long long)f->i);
}

/* Alone in its block, row major, without gaps, from 0 on? */
static bool is_plain(const ing_place *p) {
    int64_t stride = (int64_t)ing_place_elem_bytes(p);
    uint32_t axis = p->ndim;
    for (uint32_t a = 0; a < p->ndim; a++)
        if (p->from[a]) return false;
    for (uint32_t k = p->n_levels; k-- > 0;) {
        const ing_level *l = &p->level[k];
        if (l->axis >= axis || l->stride != stride) return false;
        axis = l->axis;
        stride *= l->extent;
    }
    return p->at == 0;
}

/* "a field of f32 8 x 6", and where it lies if that is not what one would think. */
static void put_field(const ing_place *p, ing_bytes *out) {
    ing_bytes_puts(out, "a field of ");
    put_elements(p->elem_rank, p->elem_shape, out);
    ing_bytes_puts(out, ing_dtype_name((ing_dtype)p->dtype));
    for (uint32_t a = 0; a < p->ndim; a++)
        ing_bytes_printf(out, a ? " x %lld" : " %lld",
                         (long long)ing_place_extent(p, a));
    if (is_plain(p)) return;
    for (uint32_t a = 0; a < p->ndim; a++)
        if (p->from[a])
            ing_bytes_printf(out, ", axis %u from %lld", a, (long long)p->from[a]);
    ing_bytes_printf(out, ", at byte %lld of its block", (long long)p->at);
    for (uint32_t k = 0; k < p->n_levels; k++)
        ing_bytes_printf(out, "%s %u: %lld by %lld bytes", k ? "," : ", axes",
                         p->level[k].axis, (long long)p->level[k].extent,
                         (long long)p->level[k].stride);
}

void ing_words_fact(const ing_gate_fact *f, ing_bytes *out) {
    switch (f->kind) {
    case ING_GATE_ABSENT: ing_bytes_puts(out, "nothing"); break;
    case ING_GATE_NONE: ing_bytes_puts(out, "None"); break;
    case ING_GATE_BOOL:
    case ING_GATE_INT:
    case ING_GATE_FLOAT: put_typed(f, out); break;
    case ING_GATE_STR: put_text(f->s, f->n, out); break;
    case ING_GATE_DTYPE: ing_bytes_puts(out, ing_dtype_name(f->dtype)); break;
    case ING_GATE_ENUM: put_enum(f, out); break;
    case ING_GATE_TUPLE: ing_bytes_puts(out, "a tuple"); break;
    case ING_GATE_LIST: ing_bytes_puts(out, "a list"); break;
    case ING_GATE_DICT: ing_bytes_puts(out, "a dict"); break;
    case ING_GATE_FUNC: ing_bytes_puts(out, f->bound ? "a method" : "a func"); break;
    case ING_GATE_KERNEL: ing_bytes_puts(out, "a kernel"); break;
    case ING_GATE_INTRINSIC: ing_bytes_printf(out, "%.40s of Ingot", f->s); break;
    case ING_GATE_ARRAY: put_array(f, out); break;
    case ING_GATE_SCALAR:
        ing_bytes_printf(out, "%s at run time", ing_dtype_name(f->dtype));
        break;
    case ING_GATE_MODULE: ing_bytes_puts(out, "a module"); break;
    case ING_GATE_CLASS: ing_bytes_puts(out, "a class"); break;
    case ING_GATE_OBJECT: ing_bytes_puts(out, "an object"); break;
    case ING_GATE_STRUCT: ing_bytes_puts(out, "a struct"); break;
    case ING_GATE_STRUCT_TYPE: put_struct(f->structure, out); break;
    case ING_GATE_TENSOR:
    case ING_GATE_TENSOR_TYPE:
        put_elements(f->elem_rank, f->elem_shape, out);
        ing_bytes_puts(out, f->dtype ? ing_dtype_name(f->dtype) : "of any dtype");
        if (f->kind == ING_GATE_TENSOR_TYPE) ing_bytes_puts(out, " (type)");
        break;
    case ING_GATE_VIEW: ing_bytes_puts(out, "a view"); break;
    case ING_GATE_FIELD: put_field(f->place, out); break;
    case ING_GATE_BUNDLE:
        if (f->structure) {
            ing_bytes_printf(out, "a %u-d array of ", f->ndim);
            put_struct(f->structure, out);
            break;
        }
        ing_bytes_puts(out, f->elem_rank ? "a field of " : "a field of structs");
        put_elements(f->elem_rank, f->elem_shape, out);
        break;
    }
}

static void put_dtype(ing_dtype t, ing_bytes *out) {
    ing_bytes_puts(out, t ? ing_dtype_name(t) : "any dtype");
}

void ing_words_param(const ing_gate_param *p, ing_bytes *out) {
    switch (p->passing) {
    case ING_PASS_ANY: ing_bytes_puts(out, "none"); break;
    case ING_PASS_VALUE:
        put_elements(p->tensor.rank, p->tensor.shape, out);
        if (p->layout)
            put_struct(p->layout, out);
        else
            put_dtype(p->dtype, out);
        break;
    case ING_PASS_TEMPLATE:
        ing_bytes_puts(out, p->by_ref ? "a reference to " : "template");
        if (p->by_ref) put_dtype(p->dtype, out);
        break;
    case ING_PASS_ARRAY:
        ing_bytes_puts(out, "array of ");
        put_elements(p->tensor.rank, p->tensor.shape, out);
        if (p->layout)
            put_struct(p->layout, out);
        else
            put_dtype(p->dtype, out);
        if (p->ndim >= 0) ing_bytes_printf(out, " %d-d", p->ndim);
        break;
    case ING_PASS_VIEW:
        ing_bytes_puts(out, "view of ");
        put_dtype(p->dtype, out);
        break;
    }
    if (p->needs_grad) ing_bytes_puts(out, ", with gradient");
    if (p->no_grad) ing_bytes_puts(out, ", its gradient left alone");
    if (p->optional) ing_bytes_puts(out, ", or None");
    if (p->clamp) ing_bytes_puts(out, ", clamped");
    if (p->has_default) ing_bytes_puts(out, ", with a default");
}

void ing_words_returns(const ing_gate_returns *r, ing_bytes *out) {
    if (r->n == 0) ing_bytes_puts(out, r->given ? "None" : "none");
    for (uint32_t i = 0; i < r->n; i++) {
        if (i) ing_bytes_puts(out, ", ");
        put_elements(r->tensors[i].rank, r->tensors[i].shape, out);
        if (r->layouts[i])
            put_struct(r->layouts[i], out);
        else if (r->items[i])
            ing_bytes_printf(out, "a tuple of %d", r->items[i] - 1);
        else
            ing_bytes_puts(out, r->dtypes[i]         ? ing_dtype_name(r->dtypes[i])
                                : r->tensors[i].rank ? "any dtype"
                                                     : "anything");
    }
    if (r->tuple) ing_bytes_puts(out, " as a tuple");
}

void ing_words_setting(ing_setting k, int64_t value, ing_bytes *out) {
    char type = ing_setting_type(k);
    if (type == 'B')
        ing_bytes_puts(out, value ? "True" : "False");
    else if (type == 'S')
        ing_bytes_puts(out, ing_dtype_name((ing_dtype)value));
    else
        ing_bytes_printf(out, "%lld", (long long)value);
}

void ing_answers_init(ing_answers *a) {
    ing_atoms_init(&a->words);
    ing_map_init(&a->map);
}

void ing_answers_fini(ing_answers *a) {
    ing_atoms_fini(&a->words);
    ing_map_fini(&a->map);
}

static ing_hash128 answer_key(ing_hash128 answer, uint32_t of) {
    return (ing_hash128){answer.lo ^ of, answer.hi};
}

bool ing_answers_known(const ing_answers *a, ing_hash128 answer, uint32_t of) {
    return ing_map_get(&a->map, answer_key(answer, of)) != 0;
}

void ing_answers_add(ing_answers *a, ing_hash128 answer, uint32_t of,
                     const ing_bytes *words) {
    size_t n = words->len > ING_NOTES_MAX_WORDS ? ING_NOTES_MAX_WORDS : words->len;
    if (words->failed || !n) return;
    uint32_t atom = ing_atoms_add(&a->words, (const char *)words->at, n);
    if (atom != UINT32_MAX)
        (void)ing_map_put(&a->map, answer_key(answer, of), atom + 1);
}

static uint32_t asked_of(const ing_paths *p, const ing_question *q) {
    return q->ask == ING_ASK_CONFIG    ? (uint32_t)p->nodes.at[q->path].i + 1
           : q->ask == ING_ASK_MEANING ? ING_OF_MEANING
                                       : 0;
}

void ing_answers_learn(ing_answers *a, const ing_notes *n) {
    for (uint32_t i = 0; i < n->at.len; i++) {
        const ing_note *note = &n->at.at[i];
        for (uint32_t k = 0; k < note->trace.list.len; k++) {
            const ing_question *q = &note->trace.list.at[k];
            const char *words = ing_atoms_text(&n->words, note->words.at[k]);
            ing_bytes b = {.at = (uint8_t *)(uintptr_t)words, .len = strlen(words)};
            ing_answers_add(a, q->answer, asked_of(&n->paths, q), &b);
        }
    }
}

const char *ing_answers_get(const ing_answers *a, const ing_paths *p,
                            const ing_question *q) {
    uint32_t id = ing_map_get(&a->map, answer_key(q->answer, asked_of(p, q)));
    return id ? ing_atoms_text(&a->words, id - 1) : "";
}

/* ---- paths --------------------------------------------------------------------------------- */

enum { MAX_CHAIN = ING_PATH_MAX_STEPS };

/* The dict in which fields of structs have their members: people write x.member. */
static bool is_members(const ing_paths *p, const ing_path_node *n) {
    return n->step == ING_STEP_ATTR &&
           strcmp(ing_atoms_text(&p->atoms, n->atom), "field_dict") == 0;
}

static void put_item(const ing_paths *p, const ing_path_node *n, const char *name,
                     ing_bytes *out) {
    bool member = is_members(p, &p->nodes.at[n->parent]);
    ing_bytes_printf(out, member ? ".%s" : "['%s']", name);
}

static void put_step(const ing_paths *p, const ing_path_node *n, ing_bytes *out) {
    const char *name = ing_atoms_text(&p->atoms, n->atom);
    long long i = (long long)n->i;
    switch ((ing_step)n->step) {
    case ING_STEP_ARG:
    case ING_STEP_GLOBAL:
    case ING_STEP_CLOSURE:
    case ING_STEP_BUILTIN:
    case ING_STEP_CONFIG: ing_bytes_puts(out, name); break;
    case ING_STEP_PARAM: ing_bytes_printf(out, "annotation of %s", name); break;
    case ING_STEP_DEFAULT: ing_bytes_printf(out, "default of %s", name); break;
    case ING_STEP_RETURNS: ing_bytes_puts(out, "return annotation"); break;
    case ING_STEP_ATTR:
        if (!is_members(p, n)) ing_bytes_printf(out, ".%s", name);
        break;
    case ING_STEP_FIELD_TYPE: ing_bytes_printf(out, ".%s", name); break;
    case ING_STEP_ITEM_INT: ing_bytes_printf(out, "[%lld]", i); break;
    case ING_STEP_ITEM_STR: put_item(p, n, name, out); break;
    case ING_STEP_FRAME_PARAM: ing_bytes_printf(out, "parameter %lld", i); break;
    case ING_STEP_LEN:
    case ING_STEP_TRUTH:
    case ING_STEP_ITEMS: ing_bytes_puts(out, ")"); break;
    case ING_STEP_SMALL: ing_bytes_printf(out, ".shape[%lld], 0 if large", i); break;
    case ING_STEP_SAME: ing_bytes_puts(out, i ? " is another" : " is None"); break;
    case ING_STEP_BESIDE: /* its own path holds no such step */
        ing_bytes_puts(out, n->parent ? ", " : "blocks of ");
        ing_words_path(p, (ing_path)i, out);
        break;
    default: break;
    }
}

static void put_call_arg(const ing_path_node *n, const char *name, ing_bytes *out) {
    double d;
    switch ((ing_step)n->step) {
    case ING_STEP_CALL_INT: ing_bytes_printf(out, "%lld", (long long)n->i); break;
    case ING_STEP_CALL_BOOL: ing_bytes_puts(out, n->i ? "True" : "False"); break;
    case ING_STEP_CALL_FLOAT:
        memcpy(&d, &n->i, sizeof d);
        ing_front_put_float(d, ING_F64, out);
        break;
    case ING_STEP_CALL_STR: put_text(name, strlen(name), out); break;
    case ING_STEP_CALL_NONE: ing_bytes_puts(out, "None"); break;
    case ING_STEP_CALL_NAME: ing_bytes_printf(out, "%s=", name); break;
    case ING_STEP_CALL_OPEN:
        ing_bytes_puts(out, n->i == ING_STEP_BOX_DICT   ? "dict("
                            : n->i == ING_STEP_BOX_LIST ? "["
                                                        : "(");
        break;
    case ING_STEP_CALL_CLOSE:
        ing_bytes_puts(out, n->i == ING_STEP_BOX_LIST ? "]" : ")");
        break;
    default: ing_bytes_puts(out, "..."); break; /* another path: its own question */
    }
}

/* What stands between one argument and the next. */
static const char *separator(uint8_t before, uint8_t step) {
    bool first = !ing_step_is_call_arg(before);
    if (first) return "(";
    return before == ING_STEP_CALL_OPEN || before == ING_STEP_CALL_NAME ||
                   step == ING_STEP_CALL_CLOSE
               ? ""
               : ", ";
}

/* A name in a function's scopes: what stands before it is who reads it. */
static bool is_scope(uint8_t step) {
    return step >= ING_STEP_GLOBAL && step <= ING_STEP_RETURNS;
}

/* What opens a step that put_step closes. */
static const char *opening(uint8_t step) {
    return step == ING_STEP_LEN     ? "len("
           : step == ING_STEP_TRUTH ? "bool("
           : step == ING_STEP_ITEMS ? "tuple("
                                    : "";
}

/* Prints the path from its last scope on; returns who reads it, 0 = the kernel or nobody. */
static ing_path put_from_scope(const ing_paths *p, ing_path of, ing_bytes *out) {
    ing_path chain[MAX_CHAIN], reader = 0;
    uint32_t n = 0;
    for (ing_path at = of; at && n < MAX_CHAIN; at = p->nodes.at[at].parent) {
        chain[n++] = at;
        ing_bytes_puts(out, opening(p->nodes.at[at].step));
        if (!is_scope(p->nodes.at[at].step)) continue;
        reader = p->nodes.at[at].parent;
        break;
    }
    uint8_t before = ING_STEP_NONE;
    while (n-- > 0) {
        const ing_path_node *s = &p->nodes.at[chain[n]];
        if (ing_step_is_call_arg(s->step)) {
            ing_bytes_puts(out, separator(before, s->step));
            put_call_arg(s, ing_atoms_text(&p->atoms, s->atom), out);
        } else if (s->step == ING_STEP_CALL) {
            ing_bytes_puts(out, ing_step_is_call_arg(before) ? ")" : "()");
        } else {
            put_step(p, s, out);
        }
        before = s->step;
    }
    return p->nodes.at[reader].step == ING_STEP_KERNEL ? 0 : reader;
}

void ing_words_path(const ing_paths *p, ing_path of, ing_bytes *out) {
    if (p->nodes.at[of].step == ING_STEP_KERNEL) {
        ing_bytes_puts(out, "the kernel");
        return;
    }
    ing_path reader = put_from_scope(p, of, out);
    if (!reader) return;
    uint8_t step = p->nodes.at[of].step;
    bool of_def = step >= ING_STEP_PARAM && step <= ING_STEP_RETURNS;
    ing_bytes_puts(out, of_def ? " of " : ", read by ");
    (void)put_from_scope(p, reader, out);
}

void ing_words_change(const ing_paths *p, const ing_question *q, const char *old,
                      const char *now, ing_bytes *out) {
    const ing_path_node *n = &p->nodes.at[q->path];
    bool known = *old && *now, differ = known && strcmp(old, now) != 0;
    if (q->ask == ING_ASK_SOURCE && !differ) {
        ing_bytes_puts(out, "source of ");
        if (known)
            ing_bytes_puts(out, now);
        else
            ing_words_path(p, q->path, out);
        ing_bytes_puts(out, " changed");
        return;
    }
    if (q->ask == ING_ASK_CONFIG) ing_bytes_puts(out, "setting ");
    if (n->step == ING_STEP_ARG) ing_bytes_puts(out, "argument ");
    if (n->step == ING_STEP_FIELD_TYPE) ing_bytes_puts(out, "declared type of ");
    ing_words_path(p, q->path, out);
    if (differ)
        ing_bytes_printf(out, ": %s -> %s", old, now);
    else
        ing_bytes_puts(out, " changed");
}
