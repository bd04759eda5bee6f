/* From text to a module. The inverse of print.c: what print writes, parse reads back to a
 * module that prints the same. Called by tests and tools. Builds by way of the builder and
 * checks form only: types and rules are the verifier's. Any text gives a module or an error
 * with line and column; nesting is bounded (I7). */
#include "ir/lex.h"

#include <string.h>

typedef struct parser {
    ing_ir_lex x;
    ing_ir_mod *m;
    ing_ir_builder b;
    ing_map labels;          /* of the current function: digest of the label -> id */
    ing_vec(uint32_t) list;  /* scratch for operand lists */
    ing_vec(ing_type) types; /* scratch for members and parameters, stacked */
    ing_vec(uint32_t) names; /* parallel to types */
    uint32_t depth;
} parser;

#define LEX(p) ING_TRY(ing_ir_lex_next(&(p)->x))

static ing_status no_memory(parser *p) {
    return ing_fail(p->x.err, ING_MEMORY, "no memory for the IR's text");
}

static ing_status expect(parser *p, char c) {
    if (p->x.tok.kind != (ing_ir_tok_kind)c) {
        return ing_ir_lex_fail(&p->x, "expected '%c'", c);
    }
    return ing_ir_lex_next(&p->x);
}

/* A number of 32 bits, alone or behind @ or !. */
static ing_status parse_u32(parser *p, ing_ir_tok_kind kind, const char *what,
                            uint32_t *out) {
    bool negative;
    uint64_t v;
    const ing_ir_tok *t = &p->x.tok;
    *out = 0;
    if (t->kind != kind) return ing_ir_lex_fail(&p->x, "expected %s", what);
    if (!ing_ir_number_int(t->text, t->len, &negative, &v) || negative ||
        v > UINT32_MAX) {
        return ing_ir_lex_fail(&p->x, "%s must be a number below 2^32", what);
    }
    *out = (uint32_t)v;
    return ing_ir_lex_next(&p->x);
}

static ing_status parse_i64(parser *p, int64_t *out) {
    bool negative;
    uint64_t v;
    const ing_ir_tok *t = &p->x.tok;
    bool ok = t->kind == ING_TOK_NUMBER;
    ok = ok && ing_ir_number_int(t->text, t->len, &negative, &v);
    if (!ok || v > (uint64_t)INT64_MAX + negative) {
        return ing_ir_lex_fail(&p->x, "expected a number of 64 bits");
    }
    *out = (int64_t)(negative ? 0 - v : v);
    return ing_ir_lex_next(&p->x);
}

/* ---- types ----------------------------------------------------------------------- */

static ing_status parse_type(parser *p, uint32_t depth, ing_type *out);

static ing_status parse_array(parser *p, uint32_t depth, ing_type *out) {
    ing_type elem;
    uint32_t ndim;
    uint8_t layout[ING_MAX_NDIM];
    bool has_layout = false, grad = false;
    ING_TRY(parse_type(p, depth, &elem));
    ING_TRY(expect(p, ','));
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "the number of dimensions", &ndim));
    if (ndim > ING_MAX_NDIM) {
        return ing_ir_lex_fail(&p->x, "at most %d dimensions", ING_MAX_NDIM);
    }
    while (p->x.tok.kind == (ing_ir_tok_kind)',') {
        LEX(p);
        if (ing_ir_tok_is(&p->x.tok, "grad")) {
            grad = true;
            LEX(p);
            break;
        }
        if (has_layout || !ing_ir_tok_is(&p->x.tok, "layout")) {
            return ing_ir_lex_fail(&p->x, "expected 'layout' or 'grad'");
        }
        LEX(p);
        has_layout = true;
        for (uint32_t k = 0; k < ndim; k++) {
            uint32_t axis;
            ING_TRY(parse_u32(p, ING_TOK_NUMBER, "an axis", &axis));
            layout[k] = axis < ndim ? (uint8_t)axis : (uint8_t)ING_MAX_NDIM;
        }
    }
    *out = ing_ir_type_array(p->m, elem, ndim, grad, has_layout ? layout : NULL);
    return ING_OK;
}

/* What the place of a field says of its elements. */
static bool elements_from(const ing_ir_mod *m, ing_type elem, ing_place *place) {
    const ing_type_info *i = ing_ir_type(m, elem);
    if (i->kind != ING_TYPE_SCALAR && i->kind != ING_TYPE_TENSOR) return false;
    place->dtype = i->dtype;
    place->elem_rank = i->kind == ING_TYPE_TENSOR ? i->rank : 0;
    place->elem_shape[0] = place->elem_rank ? i->rows : 0;
    place->elem_shape[1] = place->elem_rank == 2 ? i->cols : 0;
    return true;
}

static ing_status parse_level(parser *p, ing_place *place) {
    ing_level *l = &place->level[place->n_levels];
    if (place->n_levels == ING_PLACE_MAX_LEVELS)
        return ing_ir_lex_fail(&p->x, "at most %d levels", ING_PLACE_MAX_LEVELS);
    place->n_levels++;
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "an axis", &l->axis));
    ING_TRY(parse_i64(p, &l->extent));
    return parse_i64(p, &l->stride);
}

static ing_status parse_field(parser *p, uint32_t depth, ing_type *out) {
    ing_place place = {0};
    ing_type elem;
    uint32_t ndim;
    ING_TRY(parse_type(p, depth, &elem));
    if (!elements_from(p->m, elem, &place))
        return ing_ir_lex_fail(&p->x, "a field holds scalars, vectors or matrices");
    ING_TRY(expect(p, ','));
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "the number of dimensions", &ndim));
    if (ndim > ING_MAX_NDIM)
        return ing_ir_lex_fail(&p->x, "at most %d dimensions", ING_MAX_NDIM);
    place.ndim = (uint8_t)ndim;
    while (p->x.tok.kind == (ing_ir_tok_kind)',') {
        LEX(p);
        ing_ir_tok t = p->x.tok;
        LEX(p);
        if (ing_ir_tok_is(&t, "at")) {
            ING_TRY(parse_i64(p, &place.at));
        } else if (ing_ir_tok_is(&t, "from")) {
            for (uint32_t k = 0; k < ndim; k++) ING_TRY(parse_i64(p, &place.from[k]));
        } else if (ing_ir_tok_is(&t, "level")) {
            ING_TRY(parse_level(p, &place));
        } else {
            return ing_ir_lex_fail(&p->x, "expected 'at', 'from' or 'level'");
        }
    }
    *out = ing_ir_type_field(p->m, &place);
    return ING_OK;
}

static ing_status parse_tensor(parser *p, ing_type *out) {
    ing_type elem;
    uint32_t rows, cols = 1, rank = 1;
    ING_TRY(parse_type(p, 0, &elem));
    ING_TRY(expect(p, ','));
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "the number of rows", &rows));
    if (p->x.tok.kind == ING_TOK_NUMBER) {
        rank = 2;
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "the number of columns", &cols));
    }
    *out = elem < ING_DTYPE_N ? ing_ir_type_tensor(p->m, elem, rows, cols, rank) : 0;
    return ING_OK;
}

/* Types up to (not including) the closing character, on the stack from `*start` on. */
static ing_status parse_types(parser *p, uint32_t depth, char close, uint32_t *start) {
    *start = p->types.len;
    while (p->x.tok.kind != (ing_ir_tok_kind)close) {
        uint32_t name = 0;
        ing_type t;
        if (p->types.len > *start) ING_TRY(expect(p, ','));
        if (p->x.at < p->x.end && *p->x.at == ':' && p->x.tok.kind == ING_TOK_WORD) {
            name = ing_ir_atom(p->m, p->x.tok.text, p->x.tok.len);
            LEX(p);
            LEX(p);
        }
        ING_TRY(parse_type(p, depth, &t));
        if (!ing_vec_push(&p->types, t) || !ing_vec_push(&p->names, name)) {
            return no_memory(p);
        }
    }
    return ING_OK;
}

static ing_status parse_struct(parser *p, uint32_t depth, ing_type *out) {
    uint32_t start;
    ING_TRY(parse_types(p, depth, '>', &start));
    *out = ing_ir_type_struct(p->m, p->types.at + start, p->names.at + start,
                              p->types.len - start);
    p->types.len = p->names.len = start;
    return ING_OK;
}

static ing_status parse_type(parser *p, uint32_t depth, ing_type *out) {
    ing_ir_tok t = p->x.tok;
    *out = 0;
    if (depth > ING_IR_MAX_TYPE_DEPTH) {
        return ing_ir_lex_fail(&p->x, "types nest at most %d deep",
                               ING_IR_MAX_TYPE_DEPTH);
    }
    for (uint32_t k = 0; k < ING_DTYPE_N; k++) {
        if (!ing_ir_tok_is(&t, ing_dtype_name(k))) continue;
        *out = k;
        return ing_ir_lex_next(&p->x);
    }
    bool known = ing_ir_tok_is(&t, "ref") || ing_ir_tok_is(&t, "array") ||
                 ing_ir_tok_is(&t, "field") || ing_ir_tok_is(&t, "tensor") ||
                 ing_ir_tok_is(&t, "struct");
    if (!known) return ing_ir_lex_fail(&p->x, "expected a type");
    LEX(p);
    ING_TRY(expect(p, '<'));
    if (t.text[0] == 'r') {
        ing_type elem;
        ING_TRY(parse_type(p, depth + 1, &elem));
        *out = ing_ir_type_ref(p->m, elem);
    } else if (t.text[0] == 'a') {
        ING_TRY(parse_array(p, depth + 1, out));
    } else if (t.text[0] == 'f') {
        ING_TRY(parse_field(p, depth + 1, out));
    } else if (t.text[0] == 't') {
        ING_TRY(parse_tensor(p, out));
    } else {
        ING_TRY(parse_struct(p, depth + 1, out));
    }
    if (!*out && !p->m->bad_type && !ing_ir_ok(p->m)) return no_memory(p);
    if (!*out) return ing_ir_lex_fail(&p->x, "this type cannot exist");
    return expect(p, '>');
}

/* ---- instructions ---------------------------------------------------------------- */

static ing_status parse_value(parser *p, uint32_t *out) {
    const ing_ir_tok *t = &p->x.tok;
    *out = 0;
    if (t->kind != ING_TOK_VALUE) return ing_ir_lex_fail(&p->x, "expected a value");
    uint32_t id = ing_map_get(&p->labels, ing_hash(t->text, t->len));
    if (!id) {
        return ing_ir_lex_fail(&p->x, "%%%.*s is not defined", (int)t->len, t->text);
    }
    *out = id;
    return ing_ir_lex_next(&p->x);
}

static ing_status define(parser *p, const ing_ir_tok *label, uint32_t id) {
    ing_hash128 key = ing_hash(label->text, label->len);
    if (!id) return no_memory(p);
    if (ing_map_get(&p->labels, key)) {
        p->x.tok = *label;
        return ing_ir_lex_fail(&p->x, "%%%.*s is defined twice", (int)label->len,
                               label->text);
    }
    return ing_map_put(&p->labels, key, id) ? ING_OK : no_memory(p);
}

static ing_status parse_list(parser *p, uint32_t *at, uint32_t *n) {
    p->list.len = 0;
    ING_TRY(expect(p, '['));
    while (p->x.tok.kind != (ing_ir_tok_kind)']') {
        uint32_t id;
        if (p->list.len) ING_TRY(expect(p, ','));
        ING_TRY(parse_value(p, &id));
        if (!ing_vec_push(&p->list, id)) return no_memory(p);
    }
    *n = p->list.len;
    *at = ing_ir_put_list(&p->b, p->list.at, *n);
    return expect(p, ']');
}

static ing_status parse_const(parser *p, ing_type t, uint32_t field[3]) {
    const ing_ir_tok *k = &p->x.tok;
    uint64_t bits = 0;
    bool negative = false, ok = k->kind == ING_TOK_NUMBER || k->kind == ING_TOK_WORD;
    if (!ing_ir_is_scalar(t)) return ing_ir_lex_fail(&p->x, "a constant is a scalar");
    if (ing_dtype_is_float(t)) {
        ok = ok && ing_ir_number_float(k->text, k->len, t, &bits);
    } else {
        ok = ok && ing_ir_number_int(k->text, k->len, &negative, &bits);
        uint64_t v = negative ? 0 - bits : bits;
        bool fits = ing_ir_norm(t, v) == v;
        bool sign = ing_dtype_is_signed(t) ? (int64_t)v < 0 : false;
        ok = ok && fits && (bits == 0 || sign == negative);
        bits = v;
    }
    if (!ok) return ing_ir_lex_fail(&p->x, "not a %s", ing_dtype_name(t));
    field[0] = (uint32_t)bits;
    field[1] = (uint32_t)(bits >> 32);
    return ing_ir_lex_next(&p->x);
}

static ing_status parse_immediate(parser *p, ing_op op, uint32_t *out) {
    const ing_ir_tok *t = &p->x.tok;
    if (op == ING_OP_CALL) return parse_u32(p, ING_TOK_FUNC, "a function (@n)", out);
    if (op != ING_OP_ATOMIC) return parse_u32(p, ING_TOK_NUMBER, "a number", out);
    ing_ir_atomic a = ing_ir_atomic_find(t->text, t->kind == ING_TOK_WORD ? t->len : 0);
    if (a == ING_IR_ATOMIC_N) return ing_ir_lex_fail(&p->x, "expected an update");
    *out = a;
    return ing_ir_lex_next(&p->x);
}

/* Operands but blocks, in the order of their letters. */
static ing_status parse_operands(parser *p, ing_op op, ing_type t, uint32_t field[3]) {
    const char *o = ing_op_get(op)->operands;
    bool any = false;
    if (op == ING_OP_CONST) return parse_const(p, t, field);
    for (uint32_t k = 0; k < 3 && o[k]; k++) {
        if (o[k] == '-' || o[k] == 'b') continue;
        bool absent = p->x.tok.kind != ING_TOK_VALUE || p->x.tok.first;
        if (op == ING_OP_RETURN && absent) continue;
        if (any) ING_TRY(expect(p, ','));
        any = true;
        if (o[k] == 'v') ING_TRY(parse_value(p, &field[k]));
        if (o[k] == 'i') ING_TRY(parse_immediate(p, op, &field[k]));
        if (o[k] == 'x') ING_TRY(parse_list(p, &field[1], &field[2]));
    }
    return ING_OK;
}

static ing_status parse_inst(parser *p);

static ing_status parse_block(parser *p, uint32_t *out) {
    if (p->depth >= ING_IR_MAX_NESTING) {
        return ing_ir_lex_fail(&p->x, "blocks nest at most %d deep",
                               ING_IR_MAX_NESTING);
    }
    ING_TRY(expect(p, '{'));
    p->depth++;
    ing_ir_block_begin(&p->b);
    while (p->x.tok.kind != (ing_ir_tok_kind)'}') {
        if (p->x.tok.kind == ING_TOK_END) {
            return ing_ir_lex_fail(&p->x, "the text ends inside a block");
        }
        if (ing_ir_block_ended(&p->b)) {
            return ing_ir_lex_fail(&p->x, "the block has ended before this");
        }
        ING_TRY(parse_inst(p));
    }
    *out = ing_ir_block_end(&p->b);
    p->depth--;
    return ing_ir_lex_next(&p->x);
}

typedef struct head { /* an instruction up to its operands */
    ing_op op;
    bool has_label;
    ing_ir_tok label, at;
    uint16_t flags;
    ing_type type;
} head;

static ing_status parse_head(parser *p, head *h) {
    *h = (head){.label = p->x.tok};
    if (p->x.tok.kind == ING_TOK_VALUE) {
        h->has_label = true;
        LEX(p);
        ING_TRY(expect(p, '='));
    }
    h->at = p->x.tok;
    if (h->at.kind == ING_TOK_WORD) h->op = ing_ir_op_find(h->at.text, h->at.len);
    if (!h->op) return ing_ir_lex_fail(&p->x, "expected an operation");
    LEX(p);
    for (uint32_t k = 0; k < ING_IR_N_FLAGS; k++) {
        if (!ing_ir_tok_is(&p->x.tok, ing_ir_flag_names[k].text)) continue;
        h->flags |= ing_ir_flag_names[k].flag;
        LEX(p);
    }
    if (ing_op_get(h->op)->result == 't') ING_TRY(parse_type(p, 0, &h->type));
    return ING_OK;
}

static ing_status parse_loop(parser *p, const head *h, uint32_t field[3]) {
    uint32_t loop = ing_ir_loop_reserve(&p->b, h->type);
    if (!h->has_label) return ing_ir_lex_fail(&p->x, "a loop needs a name: %%i = loop");
    ING_TRY(define(p, &h->label, loop));
    ING_TRY(parse_block(p, &field[2]));
    ing_ir_loop_finish(&p->b, loop, field[0], field[1], field[2], h->flags);
    return ING_OK;
}

static ing_status parse_blocks(parser *p, ing_op op, uint32_t field[3]) {
    const char *letter = strchr(ing_op_get(op)->operands, 'b');
    if (op != ING_OP_IF)
        return letter ? parse_block(p, &field[letter - ing_op_get(op)->operands])
                      : ING_OK;
    ING_TRY(parse_block(p, &field[1]));
    if (!ing_ir_tok_is(&p->x.tok, "else")) return ING_OK;
    LEX(p);
    return parse_block(p, &field[2]);
}

static ing_status parse_inst(parser *p) {
    head h;
    uint32_t field[3] = {0}, loc = 0;
    ING_TRY(parse_head(p, &h));
    ING_TRY(parse_operands(p, h.op, h.type, field));
    if (p->x.tok.kind == ING_TOK_NOT) {
        ING_TRY(parse_u32(p, ING_TOK_NOT, "a location", &loc));
    }
    p->b.loc = loc;
    if (h.op == ING_OP_LOOP) return parse_loop(p, &h, field);
    ING_TRY(parse_blocks(p, h.op, field));
    p->b.loc = loc; /* blocks changed it */
    uint32_t id = ing_ir_emit(&p->b, h.op, h.type, field[0], field[1], field[2]);
    if (!id) return no_memory(p);
    ing_ir_inst *i = &p->b.func->insts.at[id];
    i->flags = h.flags;
    if ((i->type != 0) != h.has_label) {
        p->x.tok = h.at;
        return ing_ir_lex_fail(&p->x, i->type ? "this yields a value: name it"
                                              : "this yields no value");
    }
    return h.has_label ? define(p, &h.label, id) : ING_OK;
}

/* ---- module ---------------------------------------------------------------------- */

/* The name's bytes, unescaped, in the module's atoms. */
static ing_status parse_name(parser *p, uint32_t *atom) {
    ing_bytes b;
    ing_bytes_init(&b);
    const char *s = p->x.tok.text + 1, *end = p->x.tok.text + p->x.tok.len - 1;
    while (s < end) {
        bool negative;
        uint64_t v = (uint8_t)*s++;
        if (v == '\\') {
            char hex[5] = "0x";
            if (end - s >= 2) memcpy(hex + 2, s, 2);
            if (end - s < 2 || !ing_ir_number_int(hex, 4, &negative, &v) || v == 0) {
                ing_bytes_fini(&b);
                return ing_ir_lex_fail(&p->x, "bad escape in a name");
            }
            s += 2;
        }
        ing_bytes_u8(&b, (uint8_t)v);
    }
    *atom = ing_ir_atom(p->m, b.len ? (const char *)b.at : "", b.len);
    ing_bytes_fini(&b);
    return ing_ir_lex_next(&p->x);
}

static ing_status parse_func(parser *p, ing_ir_func_kind kind) {
    uint32_t number, atom = 0, start = 0, n_params = 0, body;
    ing_type ret = 0;
    LEX(p);
    ing_ir_tok at = p->x.tok;
    ING_TRY(parse_u32(p, ING_TOK_FUNC, "a function (@n)", &number));
    if (number != p->m->funcs.len) {
        p->x.tok = at;
        return ing_ir_lex_fail(&p->x, "the next function is @%u", p->m->funcs.len);
    }
    if (p->x.tok.kind == ING_TOK_STRING) ING_TRY(parse_name(p, &atom));
    if (kind == ING_IR_FUNC) {
        ING_TRY(expect(p, '('));
        ING_TRY(parse_types(p, 0, ')', &start));
        ING_TRY(expect(p, ')'));
        ING_TRY(parse_type(p, 0, &ret));
        n_params = p->types.len - start;
    }
    ing_ir_add_func(p->m, kind, "", p->types.at + start, n_params, ret);
    p->types.len = p->names.len = start;
    if (!ing_ir_ok(p->m)) return no_memory(p);
    ing_ir_func *f = p->m->funcs.at[number];
    f->name = atom;
    ing_map_fini(&p->labels);
    ing_map_init(&p->labels);
    ing_ir_builder_init(&p->b, p->m, number);
    ing_status s = parse_block(p, &body);
    ing_ir_builder_done(&p->b);
    p->b = (ing_ir_builder){0};
    f->body = s == ING_OK ? body : 0;
    return s;
}

static ing_status parse_bound(parser *p, const char *word, ing_ir_bound *b) {
    if (!ing_ir_tok_is(&p->x.tok, word)) {
        return ing_ir_lex_fail(&p->x, "expected '%s'", word);
    }
    LEX(p);
    bool arg = ing_ir_tok_is(&p->x.tok, "word");
    if (!arg && !ing_ir_tok_is(&p->x.tok, "buffer")) return parse_i64(p, &b->value);
    LEX(p);
    b->at = arg ? ING_IR_BOUND_WORD : ING_IR_BOUND_BUFFER;
    return parse_u32(p, ING_TOK_NUMBER, arg ? "a word" : "an offset", &b->offset);
}

/* "tally word ndim dtype width kind", and "at n" of a field, "times n word word" of floats */
static ing_status parse_tally(parser *p, ing_ir_task *t) {
    ing_ir_tally y = {0};
    uint32_t ndim = 0, kind = 0;
    ing_type dtype;
    LEX(p);
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a word", &y.word));
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a number of axes", &ndim));
    ING_TRY(parse_type(p, 0, &dtype));
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a width", &y.width));
    ING_TRY(parse_immediate(p, ING_OP_ATOMIC, &kind));
    if (ndim > ING_MAX_NDIM || !ing_ir_is_scalar(dtype) ||
        t->n_tallies == ING_IR_MAX_TALLIES)
        return ing_ir_lex_fail(&p->x, "no such tally, or too many");
    y.ndim = (uint8_t)ndim;
    y.dtype = (uint8_t)dtype;
    y.kind = (uint8_t)kind;
    if (ing_ir_tok_is(&p->x.tok, "at")) {
        int64_t at = 0;
        LEX(p);
        ING_TRY(parse_i64(p, &at));
        y.at = (uint64_t)at;
    }
    if (ing_ir_tok_is(&p->x.tok, "times")) {
        LEX(p);
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "updates", &y.times));
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a word", &y.over));
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a word", &y.over2));
    }
    t->tallies[t->n_tallies++] = y;
    return ING_OK;
}

static ing_status parse_run(parser *p) {
    ing_ir_task t = {0};
    LEX(p);
    ING_TRY(parse_u32(p, ING_TOK_FUNC, "a function (@n)", &t.func));
    bool range = ing_ir_tok_is(&p->x.tok, "range");
    if (!range && !ing_ir_tok_is(&p->x.tok, "serial")) {
        return ing_ir_lex_fail(&p->x, "expected 'range' or 'serial'");
    }
    LEX(p);
    if (range) {
        t.kind = ING_IR_TASK_RANGE;
        ING_TRY(parse_bound(p, "begin", &t.begin));
        ING_TRY(parse_bound(p, "end", &t.end));
    }
    if (ing_ir_tok_is(&p->x.tok, "partials")) {
        uint32_t shift;
        LEX(p);
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a count", &t.partials));
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a shift", &shift));
        if (shift > ING_IR_MAX_CHUNK_SHIFT)
            return ing_ir_lex_fail(&p->x, "a chunk is not that large");
        t.chunk_shift = (uint8_t)shift;
    } else if (ing_ir_tok_is(&p->x.tok, "row")) {
        LEX(p);
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a count", &t.row));
        if (t.row > ING_IR_MAX_ROW)
            return ing_ir_lex_fail(&p->x, "a row is not that long");
    } else if (ing_ir_tok_is(&p->x.tok, "block")) {
        LEX(p);
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a count", &t.block));
        if (t.block > ING_IR_MAX_ROW)
            return ing_ir_lex_fail(&p->x, "a block is not that large");
    }
    while (ing_ir_tok_is(&p->x.tok, "tally")) ING_TRY(parse_tally(p, &t));
    if (ing_ir_tok_is(&p->x.tok, "cost")) {
        LEX(p);
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a cost", &t.cost));
    }
    if (ing_ir_tok_is(&p->x.tok, "long")) {
        t.may_run_long = 1;
        LEX(p);
    }
    return ing_vec_push(&p->m->tasks, t) ? ING_OK : no_memory(p);
}

/* "step task 0", "step again 0 word 3". */
static ing_status parse_step(parser *p) {
    ing_ir_step s = {.kind = ING_IR_STEP_N};
    LEX(p);
    for (uint8_t k = 0; k < ING_IR_STEP_N; k++)
        if (ing_ir_tok_is(&p->x.tok, ing_ir_step_names[k])) s.kind = k;
    if (s.kind == ING_IR_STEP_N) return ing_ir_lex_fail(&p->x, "expected a step");
    LEX(p);
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a number", &s.at));
    if (ing_ir_tok_is(&p->x.tok, "word")) {
        LEX(p);
        ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a word", &s.word));
    }
    return ing_vec_push(&p->m->steps, s) ? ING_OK : no_memory(p);
}

/* "apart a b" */
static ing_status parse_apart(parser *p) {
    ing_ir_apart pair = {0};
    LEX(p);
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "an argument", &pair.a));
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "an argument", &pair.b));
    return ing_vec_push(&p->m->apart, pair) ? ING_OK : no_memory(p);
}

/* "with k": the block of field k, an argument before this one. */
static ing_status parse_with(parser *p, ing_type t, uint32_t *with) {
    *with = UINT32_MAX;
    if (!ing_ir_tok_is(&p->x.tok, "with")) return ING_OK;
    LEX(p);
    ing_ir_tok at = p->x.tok;
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "an argument", with));
    const ing_ir_mod *m = p->m;
    bool fields = *with < m->args.len && ing_ir_type(m, t)->place &&
                  ing_ir_type(m, m->args.at[*with].type)->place;
    if (fields && ing_ir_arg_first(m, *with) == *with) return ING_OK;
    p->x.tok = at;
    return ing_ir_lex_fail(&p->x, "that is not the first field of a block");
}

/* "last n": the extent of the innermost axis. */
static ing_status parse_last(parser *p) {
    uint32_t n;
    if (!ing_ir_tok_is(&p->x.tok, "last")) return ING_OK;
    LEX(p);
    ing_ir_tok at = p->x.tok;
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "an extent", &n));
    p->m->args.at[p->m->args.len - 1].last = (uint8_t)n;
    if (n && n <= ING_IR_MAX_LAST) return ING_OK;
    p->x.tok = at;
    return ing_ir_lex_fail(&p->x, "such an extent is from 1 to %d", ING_IR_MAX_LAST);
}

/* "arg n type", "arg n field with k", "arg n array last k" and "ret n type". */
static ing_status parse_slot(parser *p, bool is_arg) {
    uint32_t number, next = is_arg ? p->m->args.len : p->m->rets.len;
    ing_type t;
    LEX(p);
    ing_ir_tok at = p->x.tok;
    ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a number", &number));
    if (number != next) {
        p->x.tok = at;
        return ing_ir_lex_fail(&p->x, "the next number is %u", next);
    }
    ING_TRY(parse_type(p, 0, &t));
    if (is_arg) {
        uint32_t with;
        ING_TRY(parse_with(p, t, &with));
        ing_ir_add_arg_with(p->m, t, with);
        return ing_ir_ok(p->m) ? parse_last(p) : no_memory(p);
    }
    return ing_vec_push(&p->m->rets, t) ? ING_OK : no_memory(p);
}

static ing_status parse_module(parser *p) {
    while (p->x.tok.kind != ING_TOK_END) {
        const ing_ir_tok *t = &p->x.tok;
        bool is_arg = ing_ir_tok_is(t, "arg");
        if (is_arg || ing_ir_tok_is(t, "ret")) {
            ING_TRY(parse_slot(p, is_arg));
        } else if (ing_ir_tok_is(t, "buffer")) {
            LEX(p);
            ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a size", &p->m->buffer_bytes));
        } else if (ing_ir_tok_is(t, "kernel")) {
            ING_TRY(parse_func(p, ING_IR_KERNEL));
        } else if (ing_ir_tok_is(t, "func")) {
            ING_TRY(parse_func(p, ING_IR_FUNC));
        } else if (ing_ir_tok_is(t, "task")) {
            ING_TRY(parse_func(p, ING_IR_TASK));
        } else if (ing_ir_tok_is(t, "run")) {
            ING_TRY(parse_run(p));
        } else if (ing_ir_tok_is(t, "step")) {
            ING_TRY(parse_step(p));
        } else if (ing_ir_tok_is(t, "apart")) {
            ING_TRY(parse_apart(p));
        } else if (ing_ir_tok_is(t, "stages")) {
            LEX(p);
            ING_TRY(parse_u32(p, ING_TOK_NUMBER, "a count", &p->m->n_stages));
        } else {
            return ing_ir_lex_fail(&p->x, "expected arg, ret, buffer, stages, apart, "
                                          "kernel, func, task, run or step");
        }
    }
    return ing_ir_ok(p->m) ? ING_OK : no_memory(p);
}

ing_status ing_ir_parse(const char *text, size_t n, ing_ir_mod **out, ing_err *e) {
    parser p = {.m = ing_ir_mod_new()};
    *out = NULL;
    if (!p.m) return ing_fail(e, ING_MEMORY, "no memory for a module");
    ing_map_init(&p.labels);
    ing_status s = ing_ir_lex_init(&p.x, text, n, e);
    if (s == ING_OK) s = parse_module(&p);
    ing_map_fini(&p.labels);
    ing_vec_fini(&p.list);
    ing_vec_fini(&p.types);
    ing_vec_fini(&p.names);
    if (s != ING_OK) {
        ing_ir_mod_free(p.m);
        return s;
    }
    *out = p.m;
    return ING_OK;
}
