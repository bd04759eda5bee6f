/* Syntax trees: life, digest (R9) and text form. Filled by src/py/see/read_ast.c and by
 * tests; read by lowering. The digest must never depend on positions, comments, the
 * docstring or decorators, nor on the Python version that parsed. */
#include "front/front_int.h"

#include <string.h>

ing_front_tree *ing_front_tree_new(void) {
    ing_front_tree *t = ing_calloc(1, sizeof *t);
    if (!t) return NULL;
    ing_atoms_init(&t->atoms);
    if (!ing_vec_push(&t->nodes, (ing_front_node){0}) || !ing_vec_push(&t->slots, 0)) {
        ing_front_tree_free(t);
        return NULL;
    }
    return t;
}

void ing_front_tree_free(ing_front_tree *t) {
    if (!t) return;
    ing_atoms_fini(&t->atoms);
    ing_vec_fini(&t->nodes);
    ing_vec_fini(&t->slots);
    ing_vec_fini(&t->consts);
    ing_free(t->name);
    ing_free(t->file);
    ing_free(t->text);
    ing_free(t);
}

/* ---- digest -------------------------------------------------------------------------
 * Nodes are in tree order, so a subtree is a run of nodes, and kinds, counts and leaves in
 * that order determine the tree: one loop, no stack. What is left out is left out as
 * such a run, and of the count of the list that held it. */

enum {
    TAG_NODE = 1,
    TAG_CHILD,
    TAG_COUNT,
    TAG_ATOM,
    TAG_OP,
    TAG_INT,
    TAG_CONST,
    TAG_TEXT
};

typedef struct digester {
    const ing_front_tree *t;
    ing_hasher h;
    ing_node decorators, after; /* [decorators, after): left out */
    ing_node doc; /* docstring statement, its constant follows it; 0 = none */
} digester;

/* The first statement, if it is a docstring. */
static ing_node find_doc(const ing_front_tree *t, const struct nf_FUNCTION *f) {
    if (!list_len(t, f->body)) return 0;
    ing_node first = list_at(t, f->body, 0);
    if (t->nodes.at[first].kind != ING_NODE_EXPR) return 0;
    ing_node v = NF(t, first, EXPR)->value;
    if (t->nodes.at[v].kind != ING_NODE_CONSTANT) return 0;
    return t->consts.at[NF(t, v, CONSTANT)->value].kind == ING_CONST_STR ? first : 0;
}

static void digest_atom(digester *d, uint8_t tag, uint32_t atom) {
    const ing_atoms *a = &d->t->atoms;
    if (atom < a->text.len)
        ing_hasher_item(&d->h, tag, a->text.at[atom], a->size.at[atom]);
}

static void digest_const(digester *d, const ing_front_const *c) {
    ing_hasher_u64(&d->h, TAG_CONST, (uint64_t)c->kind);
    if (c->kind == ING_CONST_INT || c->kind == ING_CONST_UINT)
        ing_hasher_u64(&d->h, TAG_INT, (uint64_t)c->i);
    if (c->kind == ING_CONST_FLOAT) ing_hasher_item(&d->h, TAG_INT, &c->f, sizeof c->f);
    if (c->kind == ING_CONST_STR || c->kind == ING_CONST_BYTES ||
        c->kind == ING_CONST_BIGINT || c->kind == ING_CONST_COMPLEX)
        digest_atom(d, TAG_TEXT, c->atom);
}

static bool left_out(const digester *d, ing_node n) {
    return (n >= d->decorators && n < d->after) || (d->doc && n == d->doc);
}

static void digest_list(digester *d, uint32_t list, ing_front_field_kind kind) {
    const ing_front_tree *t = d->t;
    uint32_t n = list_len(t, list), count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += kind != ING_FIELD_LIST || !left_out(d, list_at(t, list, i));
    ing_hasher_u64(&d->h, TAG_COUNT, count);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = list_at(t, list, i);
        if (kind == ING_FIELD_ATOMS)
            digest_atom(d, TAG_ATOM, v - 1);
        else if (kind == ING_FIELD_OPS)
            ing_hasher_u64(&d->h, TAG_OP, v);
        else if (!left_out(d, v))
            ing_hasher_u64(&d->h, TAG_CHILD, v != 0);
    }
}

static void digest_node(digester *d, const ing_front_node *n) {
    const ing_front_shape *s = ing_front_shape_get(n->kind);
    ing_hasher_u64(&d->h, TAG_NODE, n->kind);
    for (uint32_t k = 0; k < s->n_fields; k++) {
        uint32_t v = d->t->slots.at[n->slots + k];
        switch (s->fields[k].kind) {
        case ING_FIELD_NODE: ing_hasher_u64(&d->h, TAG_CHILD, v != 0); break;
        case ING_FIELD_LIST:
        case ING_FIELD_ATOMS:
        case ING_FIELD_OPS: digest_list(d, v, s->fields[k].kind); break;
        case ING_FIELD_ATOM:
            if (v)
                digest_atom(d, TAG_ATOM, v - 1);
            else
                ing_hasher_u64(&d->h, TAG_CHILD, 0);
            break;
        case ING_FIELD_OP: ing_hasher_u64(&d->h, TAG_OP, v); break;
        case ING_FIELD_INT: ing_hasher_u64(&d->h, TAG_INT, v); break;
        case ING_FIELD_CONST: digest_const(d, &d->t->consts.at[v]); break;
        }
    }
}

bool ing_front_may_change(const ing_front_tree *t, ing_node n, uint32_t depth) {
    const ing_front_node *node = &t->nodes.at[n];
    if (node->kind == ING_NODE_CALL || node->kind == ING_NODE_NAMEDEXPR || depth == 64)
        return true;
    const ing_front_shape *s = ing_front_shape_get(node->kind);
    for (uint32_t k = 0; k < s->n_fields; k++) {
        uint32_t slot = t->slots.at[node->slots + k], one[2] = {1, slot};
        const uint32_t *list = one;
        if (s->fields[k].kind == ING_FIELD_LIST)
            list = &t->slots.at[slot];
        else if (s->fields[k].kind != ING_FIELD_NODE)
            continue;
        for (uint32_t i = 1; slot && i <= list[0]; i++)
            if (list[i] && ing_front_may_change(t, list[i], depth + 1)) return true;
    }
    return false;
}

void ing_front_tree_digest(ing_front_tree *t) {
    digester d = {.t = t};
    ing_hasher_init(&d.h);
    const struct nf_FUNCTION *f = NF(t, t->root, FUNCTION);
    d.doc = find_doc(t, f);
    if (list_len(t, f->decorator_list)) {
        d.decorators = list_at(t, f->decorator_list, 0);
        d.after = f->returns > d.decorators ? f->returns : t->nodes.len;
    }
    for (ing_node n = 1; n < t->nodes.len; n++) {
        if (n >= d.decorators && n < d.after) continue;
        if (d.doc && (n == d.doc || n == d.doc + 1)) continue;
        digest_node(&d, &t->nodes.at[n]);
    }
    t->digest = ing_hasher_done(&d.h);
}

/* ---- text ----------------------------------------------------------------------------- */

static void print_const(const ing_front_tree *t, const ing_front_const *c,
                        ing_bytes *out) {
    switch (c->kind) {
    case ING_CONST_NONE: ing_bytes_puts(out, " None"); break;
    case ING_CONST_FALSE: ing_bytes_puts(out, " False"); break;
    case ING_CONST_TRUE: ing_bytes_puts(out, " True"); break;
    case ING_CONST_INT: ing_bytes_printf(out, " %lld", (long long)c->i); break;
    case ING_CONST_UINT:
        ing_bytes_printf(out, " %llu", (unsigned long long)c->i);
        break;
    case ING_CONST_FLOAT: ing_bytes_printf(out, " %.17gf", c->f); break;
    case ING_CONST_ELLIPSIS: ing_bytes_puts(out, " ..."); break;
    default:
        ing_bytes_printf(out, " \"%s\"", ing_atoms_text(&t->atoms, c->atom));
        break;
    }
}

static void print_node(const ing_front_tree *t, ing_node n, ing_bytes *out);

static void print_list(const ing_front_tree *t, uint32_t list,
                       ing_front_field_kind kind, ing_bytes *out) {
    ing_bytes_puts(out, " [");
    for (uint32_t i = 0; i < list_len(t, list); i++) {
        uint32_t v = list_at(t, list, i);
        if (kind == ING_FIELD_LIST)
            print_node(t, v, out);
        else if (kind == ING_FIELD_OPS)
            ing_bytes_printf(out, " %s", ing_front_op_text((ing_front_op)v));
        else
            ing_bytes_printf(out, " %s", ing_atoms_text(&t->atoms, v - 1));
    }
    ing_bytes_puts(out, "]");
}

static void print_field(const ing_front_tree *t, ing_front_field_kind kind, uint32_t v,
                        ing_bytes *out) {
    switch (kind) {
    case ING_FIELD_NODE: print_node(t, v, out); break;
    case ING_FIELD_LIST:
    case ING_FIELD_ATOMS:
    case ING_FIELD_OPS: print_list(t, v, kind, out); break;
    case ING_FIELD_ATOM:
        ing_bytes_printf(out, " %s", v ? ing_atoms_text(&t->atoms, v - 1) : "-");
        break;
    case ING_FIELD_OP:
        ing_bytes_printf(out, " %s", ing_front_op_text((ing_front_op)v));
        break;
    case ING_FIELD_INT: ing_bytes_printf(out, " %u", v); break;
    case ING_FIELD_CONST: print_const(t, &t->consts.at[v], out); break;
    }
}

/* Recursive: the reader has bounded the depth of the tree, where an `elif` does not count. */
static void print_node(const ing_front_tree *t, ing_node n, ing_bytes *out) {
    uint32_t arms = 0;
    if (!n) ing_bytes_puts(out, " -");
    for (ing_node rest; n; n = rest) {
        const ing_front_node *node = &t->nodes.at[n];
        const ing_front_shape *s = ing_front_shape_get(node->kind);
        rest = ing_front_elif(t, n);
        ing_bytes_printf(out, " (%s", node->kind == ING_NODE_OTHER ? "?" : s->text);
        for (uint32_t k = 0; k < s->n_fields - (rest != 0); k++)
            print_field(t, s->fields[k].kind, t->slots.at[node->slots + k], out);
        ing_bytes_puts(out, rest ? " [" : ")");
        arms += rest != 0;
    }
    while (arms--) ing_bytes_puts(out, "])");
}

void ing_front_tree_print(const ing_front_tree *t, ing_bytes *out) {
    print_node(t, t->root, out);
    ing_bytes_puts(out, "\n");
}
