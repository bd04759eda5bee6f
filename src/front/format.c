/* Formatted text: f-strings, "..".format(..), "..%.." % (..). While lowering, a formatted
 * string is a value of kind V_FORMAT: pieces that are text (V_STR) or a number to come
 * (V_RT with its format in `s`). What is known while compiling is text at once, so an
 * f-string of static values is a plain string. Called by expr.c, call.c and service.c.
 *
 * A message is what code refers to by number and the host fills in at run time:
 *   text with `{{` and `}}` for braces, and {dtype:format} for the next number,
 *   format = [-+ #0]* [width] [.precision] conversion, as in C; `r` as Python's repr. */
#include "front/front_int.h"

#include "gen/abi.h"

#include <stdio.h>
#include <string.h>

typedef ing_front_pieces pieces;

static ing_status no_memory(frame *fr) {
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

static ing_status add(frame *fr, pieces *p, value v) {
    return ing_vec_push(p, v) ? ING_OK : no_memory(fr);
}

ing_status ing_front_format_text(frame *fr, pieces *p, const char *s, size_t n) {
    if (!n) return ING_OK;
    char *copy = ing_arena_strdup(&fr->lo->arena, s, n);
    if (!copy || n > UINT32_MAX) return no_memory(fr);
    return add(fr, p, (value){.kind = V_STR, .s = copy, .n = (uint32_t)n});
}

/* Takes the buffer. */
static ing_status add_bytes(frame *fr, pieces *p, ing_bytes *b) {
    ing_status s =
        b->failed ? no_memory(fr) : ing_front_format_text(fr, p, (char *)b->at, b->len);
    ing_bytes_fini(b);
    return s;
}

/* ---- formats of numbers ----------------------------------------------------------------- */

typedef struct spec_parts {
    char flags[6];
    int width, precision; /* -1: not given */
    char conversion;      /* 0: not given */
} spec_parts;

static bool take_number(const char **p, int *out) {
    int digits = 0;
    *out = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++, digits++) *out = *out * 10 + **p - '0';
    return digits > 0 && digits <= 3;
}

static bool parse_spec(const char *s, spec_parts *out) {
    *out = (spec_parts){.width = -1, .precision = -1};
    uint32_t n = 0;
    for (; *s && strchr("-+ #0", *s); s++)
        if (!strchr(out->flags, *s) && n < 5) out->flags[n++] = *s;
    if (*s >= '1' && *s <= '9' && !take_number(&s, &out->width)) return false;
    if (*s == '.' && (s++, !take_number(&s, &out->precision))) return false;
    while (*s && strchr("hljztL", *s)) s++; /* sizes follow from the dtype */
    if (*s) out->conversion = *s++;
    return !*s && (!out->conversion || strchr("csdioxXufFeEaAgGnp", out->conversion));
}

static bool conversion_fits(char c, ing_dtype t) {
    const char *group = ing_dtype_is_float(t)    ? "fFeEaAgG"
                        : ing_dtype_is_signed(t) ? "di"
                                                 : "oxXu";
    return strchr(group, c) != NULL;
}

/* The format of a number in full, for a message. `repr`: where none is given, as Python
 * shows it, else as the reference prints it: six digits, twelve for f64. */
static const char *full_spec(frame *fr, const spec_parts *p, ing_dtype t, bool repr) {
    bool real = ing_dtype_is_float(t);
    bool given = p->width >= 0 || p->precision >= 0 || p->conversion || p->flags[0];
    if (repr && !given) return "r";
    char c = p->conversion ? p->conversion
             : real        ? 'f'
                           : (ing_dtype_is_signed(t) ? 'd' : 'u');
    if (c == 'i') c = 'd';
    int precision = p->precision < 0 && t == ING_F64 && real ? 12 : p->precision;
    char width[16] = "", digits[16] = "";
    if (p->width >= 0) snprintf(width, sizeof width, "%d", p->width);
    if (precision >= 0) snprintf(digits, sizeof digits, ".%d", precision);
    return ing_arena_printf(&fr->lo->arena, "%s%s%s%c", p->flags, width, digits, c);
}

static ing_status check_spec(frame *fr, ing_node at, const char *how, ing_dtype t) {
    spec_parts p;
    if (!parse_spec(how, &p))
        return ing_front_fail_at(
            fr, at, ING_SYNTAX,
            "formats are those of C: [-+ #0][width][.precision][d i u x X o f e g a]",
            "'%s' is not a format that kernels know", how);
    if (p.conversion && strchr("csnp", p.conversion))
        return ing_front_fail_at(fr, at, ING_TYPE, "leave the conversion out",
                                 "conversion '%c' is not supported.", p.conversion);
    if (p.conversion && !conversion_fits(p.conversion, t))
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            ing_dtype_is_float(t)
                ? "floats take f e g a: {x:.3f}; or convert it, int(x)"
                : "integers take d, unsigned ones u x X o: {n:5d}; or convert it, "
                  "float(n)",
            "'%s' doesn't match '%s'.", how, ing_dtype_name(t));
    return ING_OK;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* As Python's str(). False: not a value that is known while compiling. */
static bool put_static(frame *fr, const value *v, bool nested, ing_bytes *out) {
    if (v->dtype && v->kind != V_DTYPE) return false;
    switch ((value_kind)v->kind) {
    case V_NONE: ing_bytes_puts(out, "None"); return true;
    case V_BOOL: ing_bytes_puts(out, v->i ? "True" : "False"); return true;
    case V_INT:
        if (v->wide)
            ing_bytes_printf(out, "%llu", (unsigned long long)v->i);
        else
            ing_bytes_printf(out, "%lld", (long long)v->i);
        return true;
    case V_FLOAT: ing_front_put_float(v->f, ING_F64, out); return true;
    case V_STR:
        if (nested) ing_bytes_puts(out, "'");
        ing_bytes_put(out, v->s, v->n);
        if (nested) ing_bytes_puts(out, "'");
        return true;
    case V_DTYPE: ing_bytes_puts(out, ing_dtype_name((ing_dtype)v->dtype)); return true;
    case V_THING:
    case V_SEEN:
    case V_FUNC: ing_bytes_puts(out, ing_front_describe(fr, v)); return true;
    default: return false;
    }
}

/* For static_print: what is not known while compiling is named for what it is. */
static ing_status put_any(frame *fr, const value *v, bool nested, ing_bytes *out) {
    bool list = v->kind == V_LIST, tuple = v->kind == V_TUPLE;
    if (!list && !tuple) {
        if (!put_static(fr, v, nested, out))
            ing_bytes_puts(out, ing_front_describe(fr, v));
        return ING_OK;
    }
    ing_bytes_puts(out, list ? "[" : "(");
    for (uint32_t i = 0; i < v->n; i++) {
        value item = v->items[i];
        if (i) ing_bytes_puts(out, ", ");
        ING_TRY(ing_front_deeper(fr, fr->b.loc));
        ing_status s = ing_front_force(fr, fr->b.loc, &item);
        if (s == ING_OK) s = put_any(fr, &item, true, out);
        fr->lo->depth--;
        ING_TRY(s);
    }
    ing_bytes_puts(out, list ? "]" : v->n == 1 ? ",)" : ")");
    return ING_OK;
}

ing_status ing_front_format_static(frame *fr, pieces *p, const value *v) {
    ing_bytes text;
    ing_bytes_init(&text);
    ing_status s = put_any(fr, v, false, &text);
    if (s == ING_OK) return add_bytes(fr, p, &text);
    ing_bytes_fini(&text);
    return s;
}

static ing_status add_number(frame *fr, ing_node at, pieces *p, const value *v,
                             const char *how) {
    value x;
    ING_TRY(ing_front_load(fr, at, v, &x));
    if (*how) ING_TRY(check_spec(fr, at, how, v_type(&x)));
    x.s = how;
    return add(fr, p, x);
}

static ing_status add_sequence(frame *fr, ing_node at, pieces *p, value *items,
                               uint32_t n, const char *how, bool in_text) {
    ING_TRY(ing_front_format_text(fr, p, "[", 1));
    for (uint32_t i = 0; i < n; i++) {
        if (i) ING_TRY(ing_front_format_text(fr, p, ", ", 2));
        ING_TRY(ing_front_force(fr, at, &items[i]));
        ING_TRY(ing_front_format_value(fr, at, p, &items[i], how, in_text));
    }
    return ing_front_format_text(fr, p, "]", 1);
}

static bool is_constant(const value *v) {
    return v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT;
}

static ing_status format_any(frame *fr, ing_node at, pieces *p, const value *v,
                             const char *how, bool in_text) {
    bool number = is_constant(v);
    ing_bytes text;
    ing_bytes_init(&text);
    if (!*how && (in_text || !number) && put_static(fr, v, false, &text))
        return add_bytes(fr, p, &text);
    ing_bytes_fini(&text);
    if (ing_front_is_scalar(v)) return add_number(fr, at, p, v, how);
    value *items;
    uint32_t n = 0;
    bool ok = false;
    ING_TRY(ing_front_deeper(fr, at));
    ing_status s = ING_OK;
    if (v->kind == V_TUPLE || v->kind == V_LIST || v->kind == V_SHAPE ||
        ing_front_is_tensor(fr, v))
        s = ing_front_items(fr, at, v, &items, &n, &ok);
    if (s == ING_OK && ok) s = add_sequence(fr, at, p, items, n, how, in_text);
    fr->lo->depth--;
    if (s != ING_OK || ok) return s;
    return ing_front_fail_at(
        fr, at, ING_TYPE,
        v->kind == V_ARRAY ? "print its elements, one by one"
                           : "print it outside of the kernel, or with qd.static_print",
        "%s cannot be printed", ing_front_describe(fr, v));
}

/* One value; `in_text`: inside of a formatted string, where literals are text. How other
 * things are shown is not Python's text of them: it is printed, and nothing else. */
ing_status ing_front_format_value(frame *fr, ing_node at, pieces *p, const value *v,
                                  const char *how, bool in_text) {
    if (v->kind == V_FORMAT) {
        for (uint32_t i = 0; i < v->n; i++) ING_TRY(add(fr, p, v->items[i]));
        return ING_OK;
    }
    bool python = is_constant(v) || v->kind == V_STR || v->kind == V_NONE;
    if (fr->in_static && !python)
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            "format a number or a string of it, or ask Python: str(x)",
            "%s has no text of its own in qd.static", ing_front_describe(fr, v));
    uint32_t first = p->len;
    ING_TRY(format_any(fr, at, p, v, how, in_text));
    for (uint32_t i = first; !python && i < p->len; i++) p->at[i].closed = true;
    return ING_OK;
}

/* The pieces as a value: a plain string when nothing is left to come. */
static ing_status finish(frame *fr, pieces *p, value *out) {
    bool plain = true;
    size_t n = 0;
    for (uint32_t i = 0; i < p->len; i++) {
        plain = plain && p->at[i].kind == V_STR && !p->at[i].closed;
        if (plain) n += p->at[i].n;
    }
    if (!plain) {
        value *items = ING_NEW_ARRAY(&fr->lo->arena, p->len, value);
        if (!items) return no_memory(fr);
        memcpy(items, p->at, p->len * sizeof *items);
        *out = (value){.kind = V_FORMAT, .items = items, .n = p->len};
        return ING_OK;
    }
    char *s = ing_arena_alloc(&fr->lo->arena, n + 1);
    if (!s || n > UINT32_MAX) return no_memory(fr);
    *out = (value){.kind = V_STR, .s = s, .n = (uint32_t)n};
    for (uint32_t i = 0; i < p->len; i++) {
        memcpy(s, p->at[i].s, p->at[i].n);
        s += p->at[i].n;
    }
    return ING_OK;
}

/* ---- f-strings ---------------------------------------------------------------------------- */

static ing_status add_formatted(frame *fr, ing_node n, pieces *p) {
    const struct nf_FORMATTED *f = NF(fr->t, n, FORMATTED);
    value v, how = {.kind = V_STR, .s = ""};
    ING_TRY(ing_front_expr_forced(fr, f->value, &v));
    if (f->format_spec) ING_TRY(ing_front_expr_forced(fr, f->format_spec, &how));
    if (how.kind != V_STR)
        return ing_front_fail_at(fr, f->format_spec, ING_SYNTAX,
                                 "write the width and precision as constants",
                                 "a format must be known while compiling");
    int32_t conversion = (int32_t)f->conversion;           /* -1: none */
    bool same = !fr->in_static && ing_front_is_scalar(&v); /* repr of a number is str */
    if (conversion >= 0 && conversion != 's' && !same)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "ask Python: qd.static(repr(x))",
                                 "f-strings in kernels have no conversions");
    if (v.kind == V_REF && ing_front_is_scalar(&v))
        ING_TRY(ing_front_load(fr, f->value, &v, &v));
    return ing_front_format_value(fr, f->value, p, &v, how.s, true);
}

ing_status ing_front_expr_joined(frame *fr, ing_node n, value *out) {
    uint32_t values = NF(fr->t, n, JOINEDSTR)->values;
    pieces p = {0};
    ing_status s = ING_OK;
    for (uint32_t i = 0; s == ING_OK && i < list_len(fr->t, values); i++) {
        ing_node part = list_at(fr->t, values, i);
        value text;
        if (fr->t->nodes.at[part].kind == ING_NODE_FORMATTED) {
            s = add_formatted(fr, part, &p);
        } else {
            s = ing_front_expr_forced(fr, part, &text);
            if (s == ING_OK) s = ing_front_format_value(fr, part, &p, &text, "", true);
        }
    }
    if (s == ING_OK) s = finish(fr, &p, out);
    ing_vec_fini(&p);
    return s;
}

/* ---- "..".format(..) ------------------------------------------------------------------------ */

bool ing_front_is_format_call(const frame *fr, ing_node func) {
    if (fr->t->nodes.at[func].kind != ING_NODE_ATTRIBUTE) return false;
    const struct nf_ATTRIBUTE *f = NF(fr->t, func, ATTRIBUTE);
    if (strcmp(ing_front_atom_text(fr, f->attr), "format") != 0) return false;
    const ing_front_node *base = &fr->t->nodes.at[f->value];
    if (base->kind != ING_NODE_CONSTANT) return false;
    return fr->t->consts.at[NF(fr->t, f->value, CONSTANT)->value].kind == ING_CONST_STR;
}

typedef struct formatting {
    frame *fr;
    ing_node at;
    const call_args *a;
    uint64_t used_kw; /* bit per keyword */
    uint32_t next, most;
    pieces p;
} formatting;

/* The argument that a field names: nothing, a number or a keyword. */
static ing_status field_value(formatting *f, const char *name, size_t n, value *out,
                              bool *found) {
    uint32_t i = f->next;
    *found = true;
    if (n && (name[0] < '0' || name[0] > '9')) {
        for (uint32_t k = 0; k < f->a->n_kw; k++) {
            const char *kw = ing_front_atom_text(f->fr, f->a->kw_name[k]);
            if (strlen(kw) != n || memcmp(kw, name, n) != 0) continue;
            if (k < 64) f->used_kw |= UINT64_C(1) << k;
            *out = f->a->kw[k];
            return ing_front_force(f->fr, f->a->kw_node[k], out);
        }
        return ing_front_fail_at(f->fr, f->at, ING_SYNTAX, "pass it to format()",
                                 "Keyword '%.*s' not found.", (int)n, name);
    }
    if (n) {
        i = 0;
        for (size_t k = 0; k < n && k < 6; k++) i = i * 10 + (uint32_t)(name[k] - '0');
    } else {
        f->next++;
    }
    if (i + 1 > f->most) f->most = i + 1;
    *found = i < f->a->n;
    if (!*found) return ING_OK;
    *out = f->a->at[i];
    return ing_front_force(f->fr, f->a->node[i], out);
}

static ing_status format_field(formatting *f, const char *s, size_t n) {
    const char *colon = memchr(s, ':', n);
    size_t name = colon ? (size_t)(colon - s) : n;
    value v;
    bool found = false;
    const char *how =
        colon ? ing_arena_strdup(&f->fr->lo->arena, colon + 1, n - name - 1) : "";
    if (!how) return no_memory(f->fr);
    ING_TRY(field_value(f, s, name, &v, &found));
    if (!found) return ING_OK; /* counted; the message comes at the end */
    if (v.kind == V_REF && ing_front_is_scalar(&v))
        ING_TRY(ing_front_load(f->fr, f->at, &v, &v));
    return ing_front_format_value(f->fr, f->at, &f->p, &v, how, true);
}

static ing_status format_all(formatting *f, const char *s, size_t n) {
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '{' && s[i] != '}') continue;
        bool doubled = i + 1 < n && s[i + 1] == s[i];
        ING_TRY(ing_front_format_text(f->fr, &f->p, s + from, i + doubled - from));
        from = i + 1;
        if (doubled) {
            from = ++i + 1;
            continue;
        }
        const char *close = s[i] == '{' ? memchr(s + i, '}', n - i) : NULL;
        if (!close)
            return ing_front_fail_at(f->fr, f->at, ING_SYNTAX,
                                     "write {{ and }} for braces",
                                     "a brace of the format has no partner");
        ING_TRY(format_field(f, s + i + 1, (size_t)(close - s) - i - 1));
        i = (size_t)(close - s);
        from = i + 1;
    }
    return ing_front_format_text(f->fr, &f->p, s + from, n - from);
}

static ing_status format_counts(formatting *f) {
    for (uint32_t k = 0; k < f->a->n_kw && k < 64; k++)
        if (!(f->used_kw >> k & 1))
            return ing_front_fail_at(f->fr, f->a->kw_node[k], ING_SYNTAX,
                                     "leave it out, or name it in the string",
                                     "Keyword '%s' not used.",
                                     ing_front_atom_text(f->fr, f->a->kw_name[k]));
    if (f->most == f->a->n) return ING_OK;
    return ing_front_fail_at(
        f->fr, f->at, ING_SYNTAX, "give one argument for each field",
        "Expected %u positional argument(s), but received %u instead.", f->most,
        f->a->n);
}

ing_status ing_front_call_format(frame *fr, ing_node n, const call_args *a,
                                 value *out) {
    value text;
    formatting f = {.fr = fr, .at = n, .a = a};
    ing_node func = NF(fr->t, n, CALL)->func;
    ING_TRY(ing_front_expr_forced(fr, NF(fr->t, func, ATTRIBUTE)->value, &text));
    ing_status s = format_all(&f, text.s, text.n);
    if (s == ING_OK) s = format_counts(&f);
    if (s == ING_OK) s = finish(fr, &f.p, out);
    ing_vec_fini(&f.p);
    return s;
}

/* ---- "..%.." % (..) ------------------------------------------------------------------------- */

bool ing_front_is_percent(const frame *fr, ing_node n) {
    if (fr->t->nodes.at[n].kind != ING_NODE_BINOP) return false;
    const struct nf_BINOP *f = NF(fr->t, n, BINOP);
    if (f->op != ING_AST_Mod || fr->t->nodes.at[f->left].kind != ING_NODE_CONSTANT)
        return false;
    return fr->t->consts.at[NF(fr->t, f->left, CONSTANT)->value].kind == ING_CONST_STR;
}

/* Length of the conversion that starts after a `%`. */
static size_t percent_length(const char *s, size_t n) {
    size_t k = 0;
    while (k < n && strchr("-+ #0123456789.", s[k])) k++;
    return k < n ? k + 1 : n;
}

static ing_status percent_value(frame *fr, ing_node at, pieces *p, const value *v,
                                const char *s, size_t n) {
    char how[16] = "";
    spec_parts parts;
    value x = *v;
    bool literal = (v->kind == V_INT || v->kind == V_BOOL) && !v->dtype;
    if (literal && n == 1 && strchr("dis", s[0]))
        return ing_front_format_value(fr, at, p, v, "", true);
    if (ing_front_is_scalar(v)) ING_TRY(ing_front_load(fr, at, v, &x));
    if (n < sizeof how) memcpy(how, s, n);
    bool fits = x.kind == V_RT && parse_spec(how, &parts) &&
                conversion_fits(parts.conversion, v_type(&x));
    const char *kept = fits ? ing_arena_strdup(&fr->lo->arena, how, n) : "";
    if (!kept) return no_memory(fr);
    return ing_front_format_value(fr, at, p, &x, kept, true);
}

ing_status ing_front_percent(frame *fr, ing_node n, value *out) {
    const struct nf_BINOP *f = NF(fr->t, n, BINOP);
    value text, args, *items = &args;
    uint32_t count = 1, used = 0;
    bool ok = true;
    ING_TRY(ing_front_expr_forced(fr, f->left, &text));
    ING_TRY(ing_front_expr_forced(fr, f->right, &args));
    if (args.kind == V_TUPLE)
        ING_TRY(ing_front_items(fr, f->right, &args, &items, &count, &ok));
    pieces p = {0};
    ing_status s = ING_OK;
    size_t from = 0;
    for (size_t i = 0; s == ING_OK && i < text.n; i++) {
        if (text.s[i] != '%') continue;
        bool doubled = i + 1 < text.n && text.s[i + 1] == '%';
        if (i + 1 < text.n && text.s[i + 1] == '(')
            s = ing_front_fail_at(fr, n, ING_SYNTAX, "write an f-string: f\"x is {x}\"",
                                  "names in '%%' formats are not supported in kernels");
        if (s == ING_OK)
            s = ing_front_format_text(fr, &p, text.s + from, i + doubled - from);
        size_t len = doubled ? 1 : percent_length(text.s + i + 1, text.n - i - 1);
        if (s == ING_OK && !doubled && used < count)
            s = ing_front_force(fr, f->right, &items[used]);
        if (s == ING_OK && !doubled && used < count)
            s = percent_value(fr, f->right, &p, &items[used], text.s + i + 1, len);
        used += !doubled;
        i += len;
        from = i + 1;
    }
    if (s == ING_OK && from < text.n)
        s = ing_front_format_text(fr, &p, text.s + from, text.n - from);
    if (s == ING_OK && used != count)
        s = ing_front_fail_at(fr, n, ING_SYNTAX, "give one value for each conversion",
                              "the string has %u conversions, %u values are given",
                              used, count);
    if (s == ING_OK) s = finish(fr, &p, out);
    ing_vec_fini(&p);
    return s;
}

ing_status ing_front_percent_static(frame *fr, ing_node n, value *out) {
    ING_TRY(ing_front_percent(fr, n, out));
    if (out->kind == V_STR) return ING_OK;
    return ing_front_fail_at(fr, n, ING_TYPE, "write an f-string: f\"x is {x}\"",
                             "'%%' cannot format values of the run time");
}

/* ---- messages -------------------------------------------------------------------------------- */

static void put_escaped(ing_bytes *out, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '{' || s[i] == '}') ing_bytes_u8(out, (uint8_t)s[i]);
        if (s[i]) ing_bytes_u8(out, (uint8_t)s[i]);
    }
}

/* The number of a message with this text; an equal one is used again. */
static ing_status message_number(frame *fr, ing_bytes *text, uint32_t *code) {
    ing_front_result *r = fr->lo->out;
    char *s = text->failed ? NULL : ing_bytes_take(text);
    if (!s) return no_memory(fr);
    /* Unrolled loops repeat themselves; further back is not worth the search. */
    uint32_t first = r->messages.len > 64 ? r->messages.len - 64 : 0;
    for (uint32_t i = first; i < r->messages.len; i++) {
        if (strcmp(r->messages.at[i], s) != 0) continue;
        *code = ING_ABI_USER + i;
        ing_free(s);
        return ING_OK;
    }
    if (!ing_vec_push(&r->messages, s)) {
        ing_free(s);
        return no_memory(fr);
    }
    *code = ING_ABI_USER + r->messages.len - 1;
    return ING_OK;
}

ing_status ing_front_message(frame *fr, const pieces *p, bool repr, uint32_t *code,
                             uint32_t *ids, uint32_t most, uint32_t *n) {
    ing_bytes text;
    ing_bytes_init(&text);
    ing_bytes_puts(&text, "");
    *n = 0;
    for (uint32_t i = 0; i < p->len; i++) {
        const value *v = &p->at[i];
        if (v->kind == V_STR) {
            put_escaped(&text, v->s, v->n);
            continue;
        }
        spec_parts parts;
        parse_spec(v->s, &parts);
        const char *how = full_spec(fr, &parts, v_type(v), repr);
        if (*n < most) ids[*n] = v->inst;
        ++*n;
        ing_bytes_printf(&text, "{%s:%s}", ing_dtype_name(v_type(v)), how ? how : "");
    }
    if (!text.at) ing_bytes_reserve(&text, 1);
    if (text.at) text.at[text.len] = 0;
    ing_status s = message_number(fr, &text, code);
    ing_bytes_fini(&text);
    return s;
}
