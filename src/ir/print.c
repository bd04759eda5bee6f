/* The text of a module. Values are numbered in order of appearance, so text does not
 * depend on ids, and equal text means equal code (the digest is made of it). Numbers are
 * written without the C library's locale. Called for digests, tests and diagnostics; must
 * survive modules that would not verify. docs/internals/ir.md describes the form. */
#include "gen/abi.h"
#include "ir/ir_int.h"

#include <math.h>
#include <string.h>

typedef struct printer {
    const ing_ir_mod *m;
    const ing_ir_func *f;
    uint32_t flags;
    ing_bytes *out;
    uint32_t *number; /* of each value of f, 0 = not printed yet */
    uint32_t next;
    uint32_t depth;
} printer;

/* ---- small pieces ---------------------------------------------------------------- */

static void put_name(ing_bytes *out, const char *s) {
    ing_bytes_puts(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\' || c < 32 || c == 127) {
            ing_bytes_printf(out, "\\%02x", c);
        } else {
            ing_bytes_u8(out, c);
        }
    }
    ing_bytes_puts(out, "\"");
}

/* Members carry names only on request; a name that is not an identifier is dropped, as
 * names are for people (I6). */
static bool is_ident(const char *s) {
    if (!*s) return false;
    for (const char *p = s; *p; p++) {
        bool alpha = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
        if (!alpha && !(p > s && *p >= '0' && *p <= '9')) return false;
    }
    return true;
}

static void put_struct(const ing_ir_mod *m, const ing_type_info *i, uint32_t flags,
                       ing_bytes *out) {
    ing_bytes_puts(out, "struct<");
    for (uint32_t k = 0; k < i->n_members; k++) {
        if (k) ing_bytes_puts(out, ", ");
        const char *name = ing_atoms_text(&m->atoms, i->names[k]);
        if ((flags & ING_IR_PRINT_NAMES) && is_ident(name)) {
            ing_bytes_printf(out, "%s: ", name);
        }
        ing_ir_print_type(m, i->members[k], flags, out);
    }
    ing_bytes_puts(out, ">");
}

static void put_array(const ing_ir_mod *m, const ing_type_info *i, uint32_t flags,
                      ing_bytes *out) {
    bool plain = true;
    ing_bytes_puts(out, "array<");
    ing_ir_print_type(m, i->elem, flags, out);
    ing_bytes_printf(out, ", %u", i->rank);
    for (uint32_t k = 0; k < i->rank; k++) plain = plain && i->layout[k] == k;
    if (!plain) {
        ing_bytes_puts(out, ", layout");
        for (uint32_t k = 0; k < i->rank; k++) {
            ing_bytes_printf(out, " %u", i->layout[k]);
        }
    }
    ing_bytes_puts(out, i->grad ? ", grad>" : ">");
}

static void put_field(const ing_ir_mod *m, const ing_type_info *i, uint32_t flags,
                      ing_bytes *out) {
    const ing_place *p = i->place;
    bool moved = false;
    ing_bytes_puts(out, "field<");
    ing_ir_print_type(m, i->elem, flags, out);
    ing_bytes_printf(out, ", %u, at %lld", i->rank, (long long)p->at);
    for (uint32_t k = 0; k < p->ndim; k++) moved |= p->from[k] != 0;
    if (moved) ing_bytes_puts(out, ", from");
    for (uint32_t k = 0; k < p->ndim && moved; k++)
        ing_bytes_printf(out, " %lld", (long long)p->from[k]);
    for (uint32_t k = 0; k < p->n_levels; k++)
        ing_bytes_printf(out, ", level %u %lld %lld", p->level[k].axis,
                         (long long)p->level[k].extent, (long long)p->level[k].stride);
    ing_bytes_puts(out, ">");
}

void ing_ir_print_type(const ing_ir_mod *m, ing_type t, uint32_t flags,
                       ing_bytes *out) {
    const ing_type_info *i = ing_ir_type(m, t);
    switch (i->kind) {
    case ING_TYPE_SCALAR: ing_bytes_puts(out, ing_dtype_name(i->dtype)); break;
    case ING_TYPE_REF:
        ing_bytes_puts(out, "ref<");
        ing_ir_print_type(m, i->elem, flags, out);
        ing_bytes_puts(out, ">");
        break;
    case ING_TYPE_ARRAY: (i->place ? put_field : put_array)(m, i, flags, out); break;
    case ING_TYPE_TENSOR:
        ing_bytes_printf(out, "tensor<%s, %u", ing_dtype_name(i->dtype), i->rows);
        if (i->rank == 2) ing_bytes_printf(out, " %u", i->cols);
        ing_bytes_puts(out, ">");
        break;
    case ING_TYPE_STRUCT: put_struct(m, i, flags, out); break;
    }
}

/* ---- constants ------------------------------------------------------------------- */

/* Integral values as 12.0, others as hexadecimal floats (exact), NaNs by their bits. */
static void put_float(ing_bytes *out, ing_dtype t, uint64_t bits) {
    double d;
    uint64_t wide = ing_ir_eval_cast(t, ING_F64, bits);
    memcpy(&d, &wide, sizeof d);
    if (d != d) {
        ing_bytes_printf(out, "nan.0x%llx", (unsigned long long)bits);
        return;
    }
    if (wide >> 63) ing_bytes_puts(out, "-");
    d = fabs(d);
    if (isinf(d)) {
        ing_bytes_puts(out, "inf");
    } else if (d < 1e15 && d == floor(d)) {
        ing_bytes_printf(out, "%llu.0", (unsigned long long)d);
    } else {
        int exp;
        double frac = frexp(d, &exp); /* in [0.5, 1) */
        uint64_t mant = (uint64_t)ldexp(frac, 53);
        while (!(mant & 1)) mant >>= 1, exp++;
        ing_bytes_printf(out, "0x%llxp%d", (unsigned long long)mant, exp - 53);
    }
}

static void put_const(printer *p, const ing_ir_inst *i) {
    uint64_t bits = ing_ir_const_bits(i);
    ing_dtype t = i->type < ING_DTYPE_N ? (ing_dtype)i->type : ING_U64;
    if (ing_dtype_is_float(t)) {
        put_float(p->out, t, bits);
    } else if (ing_dtype_is_signed(t)) {
        ing_bytes_printf(p->out, "%lld", (long long)bits);
    } else {
        ing_bytes_printf(p->out, "%llu", (unsigned long long)bits);
    }
}

/* ---- instructions ---------------------------------------------------------------- */

static void put_value(printer *p, uint32_t id) {
    uint32_t n = id < p->f->insts.len ? p->number[id] : 0;
    if (n) {
        ing_bytes_printf(p->out, "%%%u", n);
    } else {
        ing_bytes_puts(p->out, "%?");
    }
}

static void put_list(printer *p, uint32_t at, uint32_t n) {
    ing_bytes_puts(p->out, "[");
    for (uint32_t k = 0; k < n && at + k < p->f->extra.len; k++) {
        if (k) ing_bytes_puts(p->out, ", ");
        put_value(p, p->f->extra.at[at + k]);
    }
    ing_bytes_puts(p->out, "]");
}

/* Operands but blocks, separated by commas. */
static void put_operands(printer *p, const ing_ir_inst *i) {
    const char *o = ing_op_get(i->op)->operands;
    const uint32_t field[3] = {i->a, i->b, i->c};
    const char *sep = " ";
    for (uint32_t k = 0; k < 3 && o[k]; k++) {
        if (o[k] == '-' || o[k] == 'b') continue;
        if (i->op == ING_OP_RETURN && !field[k]) continue;
        ing_bytes_puts(p->out, sep);
        sep = ", ";
        if (o[k] == 'v') put_value(p, field[k]);
        if (o[k] == 'x') put_list(p, i->b, i->c);
        if (o[k] != 'i') continue;
        if (i->op == ING_OP_ATOMIC) {
            ing_bytes_puts(p->out, ing_ir_atomic_text(field[k]));
        } else if (i->op == ING_OP_CALL) {
            ing_bytes_printf(p->out, "@%u", field[k]);
        } else {
            ing_bytes_printf(p->out, "%u", field[k]);
        }
    }
}

static void indent(printer *p) {
    for (uint32_t k = 0; k < p->depth; k++) ing_bytes_puts(p->out, "  ");
}

static void put_block(printer *p, uint32_t block);

static void put_blocks(printer *p, const ing_ir_inst *i) {
    uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
    for (uint32_t k = 0; k < n; k++) {
        ing_bytes_puts(p->out, k ? " else {\n" : " {\n");
        put_block(p, blocks[k]);
        indent(p);
        ing_bytes_puts(p->out, "}");
    }
}

static void put_inst(printer *p, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(p->f, id);
    const ing_op_info *op = ing_op_get(i->op);
    indent(p);
    if (i->type) {
        p->number[id] = ++p->next;
        ing_bytes_printf(p->out, "%%%u = ", p->next);
    }
    ing_bytes_puts(p->out, op->text);
    for (uint32_t k = 0; k < ING_IR_N_FLAGS; k++) {
        if (!(i->flags & ing_ir_flag_names[k].flag)) continue;
        ing_bytes_printf(p->out, " %s", ing_ir_flag_names[k].text);
    }
    if (op->result == 't') {
        ing_bytes_puts(p->out, " ");
        ing_ir_print_type(p->m, i->type, p->flags, p->out);
    }
    if (i->op == ING_OP_CONST) {
        ing_bytes_puts(p->out, " ");
        put_const(p, i);
    } else {
        put_operands(p, i);
    }
    /* the location stands before the blocks, on the line of its instruction */
    bool fault = i->op == ING_OP_PRINT && i->a < ING_ABI_USER;
    bool loc = (p->flags & ING_IR_PRINT_LOCS) || i->op == ING_OP_CHECK ||
               i->op == ING_OP_ROOM || fault;
    if (loc && i->loc) ing_bytes_printf(p->out, " !%u", i->loc);
    put_blocks(p, i);
    ing_bytes_puts(p->out, "\n");
}

static void put_block(printer *p, uint32_t block) {
    if (p->depth > ING_IR_MAX_NESTING) {
        indent(p);
        ing_bytes_puts(p->out, "...\n");
        return;
    }
    p->depth++;
    uint32_t room = block < p->f->extra.len ? p->f->extra.len - block - 1 : 0;
    uint32_t n = room ? ing_ir_block_len(p->f, block) : 0;
    for (uint32_t k = 0; k < n && k < room; k++) {
        uint32_t id = ing_ir_block_ids(p->f, block)[k];
        if (id && id < p->f->insts.len) put_inst(p, id);
    }
    p->depth--;
}

/* ---- module ---------------------------------------------------------------------- */

static void put_func(printer *p, uint32_t n) {
    const ing_ir_func *f = p->f = p->m->funcs.at[n];
    const char *name = ing_atoms_text(&p->m->atoms, f->name);
    p->next = 0;
    p->number = ing_calloc(f->insts.len, sizeof *p->number);
    if (!p->number) {
        p->out->failed = true;
        return;
    }
    ing_bytes_printf(p->out, "%s @%u", ing_ir_func_kind_names[f->kind % 3], n);
    if ((p->flags & ING_IR_PRINT_NAMES) && *name) {
        ing_bytes_puts(p->out, " ");
        put_name(p->out, name);
    }
    if (f->kind == ING_IR_FUNC) {
        ing_bytes_puts(p->out, " (");
        for (uint32_t k = 0; k < f->n_params; k++) {
            if (k) ing_bytes_puts(p->out, ", ");
            ing_ir_print_type(p->m, f->params[k], p->flags, p->out);
        }
        ing_bytes_puts(p->out, ") ");
        ing_ir_print_type(p->m, f->ret, p->flags, p->out);
    }
    ing_bytes_puts(p->out, " {\n");
    put_block(p, f->body);
    ing_bytes_puts(p->out, "}\n");
    ing_free(p->number);
}

static void put_bound(ing_bytes *out, const char *name, const ing_ir_bound *b) {
    if (b->at == ING_IR_BOUND_BUFFER) {
        ing_bytes_printf(out, " %s buffer %u", name, b->offset);
    } else if (b->at == ING_IR_BOUND_WORD) {
        ing_bytes_printf(out, " %s word %u", name, b->offset);
    } else {
        ing_bytes_printf(out, " %s %lld", name, (long long)b->value);
    }
}

static void put_tally(ing_bytes *out, const ing_ir_tally *t) {
    ing_bytes_printf(out, " tally %u %u %s %u %s", t->word, t->ndim,
                     ing_dtype_name((ing_dtype)t->dtype), t->width,
                     ing_ir_atomic_text((ing_ir_atomic)t->kind));
    if (t->at) ing_bytes_printf(out, " at %llu", (unsigned long long)t->at);
    if (t->times) ing_bytes_printf(out, " times %u %u %u", t->times, t->over, t->over2);
}

static void put_task_line(ing_bytes *out, const ing_ir_task *t) {
    bool range = t->kind == ING_IR_TASK_RANGE;
    ing_bytes_printf(out, "run @%u %s", t->func, range ? "range" : "serial");
    if (range) {
        put_bound(out, "begin", &t->begin);
        put_bound(out, "end", &t->end);
    }
    if (t->partials)
        ing_bytes_printf(out, " partials %u %u", t->partials, t->chunk_shift);
    if (t->row) ing_bytes_printf(out, " row %u", t->row);
    if (t->block) ing_bytes_printf(out, " block %u", t->block);
    for (uint32_t k = 0; k < t->n_tallies; k++) put_tally(out, &t->tallies[k]);
    ing_bytes_printf(out, " cost %u%s\n", t->cost, t->may_run_long ? " long" : "");
}

static void put_step(ing_bytes *out, const ing_ir_step *s) {
    ing_bytes_printf(out, "step %s %u", ing_ir_step_names[s->kind], s->at);
    if (s->kind == ING_IR_STEP_LOOP_END || s->kind == ING_IR_STEP_STAGE_END)
        ing_bytes_printf(out, " word %u", s->word);
    ing_bytes_puts(out, "\n");
}

void ing_ir_print(const ing_ir_mod *m, uint32_t flags, ing_bytes *out) {
    printer p = {.m = m, .flags = flags, .out = out};
    for (uint32_t k = 0; k < m->args.len; k++) {
        ing_bytes_printf(out, "arg %u ", k);
        ing_ir_print_type(m, m->args.at[k].type, flags, out);
        uint32_t with = ing_ir_arg_first(m, k);
        if (with != k) ing_bytes_printf(out, " with %u", with);
        if (m->args.at[k].last) ing_bytes_printf(out, " last %u", m->args.at[k].last);
        ing_bytes_puts(out, "\n");
    }
    for (uint32_t k = 0; k < m->rets.len; k++) {
        ing_bytes_printf(out, "ret %u ", k);
        ing_ir_print_type(m, m->rets.at[k], flags, out);
        ing_bytes_puts(out, "\n");
    }
    if (m->n_stages) ing_bytes_printf(out, "stages %u\n", m->n_stages);
    for (uint32_t k = 0; k < m->apart.len; k++)
        ing_bytes_printf(out, "apart %u %u\n", m->apart.at[k].a, m->apart.at[k].b);
    if (m->buffer_bytes) ing_bytes_printf(out, "buffer %u\n", m->buffer_bytes);
    for (uint32_t k = 0; k < m->funcs.len; k++) put_func(&p, k);
    for (uint32_t k = 0; k < m->tasks.len; k++) put_task_line(out, &m->tasks.at[k]);
    for (uint32_t k = 0; k < m->steps.len; k++) put_step(out, &m->steps.at[k]);
}
