/* A reader of just enough Python for the front end's tests: text in, the nodes that
 * src/py/see/read_ast.c would make out, with the same positions. Grammar mistakes abort. */
#ifndef ING_MINI_PYTHON_H
#define ING_MINI_PYTHON_H

#include "front/front.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mini {
    ing_front_tree *t;
    const char *text, *p;
} mini;

static ing_node mini_expr(mini *m);
static uint32_t mini_block(mini *m, int indent);

static void mini_die(mini *m, const char *what) {
    fprintf(stderr, "mini_python: %s at: %.40s\n", what, m->p);
    abort();
}

/* ---- nodes ------------------------------------------------------------------------------- */

static void mini_place(mini *m, const char *at, uint32_t *line, uint32_t *col) {
    const char *start = at;
    while (start > m->text && start[-1] != '\n') start--;
    *col = (uint32_t)(at - start);
    *line = 0;
    for (const char *c = m->text; c < start; c++) *line += *c == '\n';
}

static ing_node mini_node(mini *m, ing_front_kind kind, const char *from,
                          const uint32_t *slots) {
    ing_front_node n = {.kind = (uint8_t)kind, .slots = m->t->slots.len};
    const char *to = m->p;
    while (to > from && (to[-1] == ' ' || to[-1] == '\n')) to--;
    mini_place(m, from, &n.line, &n.col);
    mini_place(m, to, &n.end_line, &n.end_col);
    for (uint32_t i = 0; i < ing_front_shape_get(kind)->n_fields; i++)
        if (!ing_vec_push(&m->t->slots, slots[i])) abort();
    if (!ing_vec_push(&m->t->nodes, n)) abort();
    return m->t->nodes.len - 1;
}
#define MINI_NODE(m, kind, from, ...) \
    mini_node(m, ING_NODE_##kind, from, (uint32_t[]){__VA_ARGS__})

static uint32_t mini_atom(mini *m, const char *s, size_t n) {
    return ing_atoms_add(&m->t->atoms, s, n) + 1;
}

static uint32_t mini_list(mini *m, const uint32_t *items, uint32_t n) {
    if (n == 0) return 0;
    uint32_t at = m->t->slots.len;
    if (!ing_vec_push(&m->t->slots, n)) abort();
    for (uint32_t i = 0; i < n; i++)
        if (!ing_vec_push(&m->t->slots, items[i])) abort();
    return at;
}

static ing_node mini_const(mini *m, const char *from, ing_front_const c) {
    if (!ing_vec_push(&m->t->consts, c)) abort();
    return MINI_NODE(m, CONSTANT, from, m->t->consts.len - 1);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static void mini_space(mini *m) {
    while (*m->p == ' ') m->p++;
}

static bool mini_is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool mini_eat(mini *m, const char *s) {
    size_t n = strlen(s);
    mini_space(m);
    if (strncmp(m->p, s, n) != 0) return false;
    if (mini_is_word(s[n - 1]) && mini_is_word(m->p[n])) return false;
    m->p += n;
    return true;
}

static void mini_need(mini *m, const char *s) {
    if (!mini_eat(m, s)) mini_die(m, s);
}

static size_t mini_word(mini *m, const char **at) {
    mini_space(m);
    *at = m->p;
    while (mini_is_word(*m->p)) m->p++;
    if (m->p == *at) mini_die(m, "a name is missing");
    return (size_t)(m->p - *at);
}

/* ---- expressions --------------------------------------------------------------------------------- */

static ing_node mini_number(mini *m) {
    const char *from = m->p;
    ing_front_const c = {.kind = ING_CONST_INT};
    char *end, *fend;
    c.i = strtoll(from, &end, 0);
    double f = strtod(from, &fend);
    if (fend > end) c = (ing_front_const){.kind = ING_CONST_FLOAT, .f = f}, end = fend;
    m->p = end;
    return mini_const(m, from, c);
}

/* Comma-separated up to `close`; *commas counts them. */
static uint32_t mini_items(mini *m, char close, uint32_t *n, uint32_t *commas) {
    uint32_t items[32];
    *n = *commas = 0;
    char end[2] = {close, 0};
    while (!mini_eat(m, end)) {
        const char *from = (mini_space(m), m->p);
        if (mini_eat(m, "*")) {
            ing_node v = mini_expr(m);
            items[(*n)++] = MINI_NODE(m, STARRED, from, v);
        } else
            items[(*n)++] = mini_expr(m);
        if (mini_eat(m, ",")) (*commas)++;
    }
    return mini_list(m, items, *n);
}

static ing_node mini_atom_expr(mini *m) {
    mini_space(m);
    const char *from = m->p;
    uint32_t n, commas;
    if (isdigit((unsigned char)*from)) return mini_number(m);
    if (*from == '"') {
        const char *end = strchr(from + 1, '"');
        m->p = end + 1;
        ing_front_const c = {.kind = ING_CONST_STR};
        c.atom = mini_atom(m, from + 1, (size_t)(end - from - 1)) - 1;
        return mini_const(m, from, c);
    }
    if (mini_eat(m, "(")) {
        const char *inner = m->p;
        uint32_t list = mini_items(m, ')', &n, &commas);
        (void)inner;
        if (n == 1 && !commas) return m->t->slots.at[list + 1];
        return MINI_NODE(m, TUPLE, from, list);
    }
    if (mini_eat(m, "[")) {
        uint32_t list = mini_items(m, ']', &n, &commas);
        return MINI_NODE(m, LIST, from, list);
    }
    if (mini_eat(m, "None"))
        return mini_const(m, from, (ing_front_const){ING_CONST_NONE, 0, 0, 0});
    if (mini_eat(m, "True"))
        return mini_const(m, from, (ing_front_const){ING_CONST_TRUE, 0, 0, 0});
    if (mini_eat(m, "False"))
        return mini_const(m, from, (ing_front_const){ING_CONST_FALSE, 0, 0, 0});
    if (mini_eat(m, "lambda:")) {
        ing_node v = mini_expr(m);
        return MINI_NODE(m, LAMBDA, from, 0, v);
    }
    const char *w;
    size_t len = mini_word(m, &w);
    return MINI_NODE(m, NAME, from, mini_atom(m, w, len));
}

static ing_node mini_call(mini *m, ing_node fn, const char *from) {
    uint32_t args[32], kws[32], n = 0, k = 0;
    while (!mini_eat(m, ")")) {
        const char *start = (mini_space(m), m->p), *w = start;
        while (mini_is_word(*w)) w++;
        if (w > start && *w == '=' && w[1] != '=') {
            uint32_t name = mini_atom(m, start, (size_t)(w - start));
            m->p = w + 1;
            ing_node v = mini_expr(m);
            kws[k++] = MINI_NODE(m, KEYWORD, start, name, v);
        } else if (mini_eat(m, "*")) {
            ing_node v = mini_expr(m);
            args[n++] = MINI_NODE(m, STARRED, start, v);
        } else
            args[n++] = mini_expr(m);
        mini_eat(m, ",");
    }
    uint32_t a = mini_list(m, args, n), b = mini_list(m, kws, k);
    return MINI_NODE(m, CALL, from, fn, a, b);
}

static ing_node mini_postfix(mini *m) {
    mini_space(m);
    const char *from = m->p;
    ing_node v = mini_atom_expr(m);
    for (;;) {
        if (*m->p == '(') {
            m->p++;
            v = mini_call(m, v, from);
        } else if (*m->p == '[') {
            const char *inside = ++m->p;
            uint32_t n, commas, list = mini_items(m, ']', &n, &commas);
            m->p--; /* positions without the bracket */
            ing_node i = n == 1 && !commas ? m->t->slots.at[list + 1]
                                           : MINI_NODE(m, TUPLE, inside, list);
            m->p++;
            v = MINI_NODE(m, SUBSCRIPT, from, v, i);
        } else if (*m->p == '.') {
            m->p++;
            const char *w;
            size_t len = mini_word(m, &w);
            v = MINI_NODE(m, ATTRIBUTE, from, v, mini_atom(m, w, len));
        } else
            return v;
    }
}

static const struct {
    const char *text;
    uint8_t op, level;
} mini_ops[] = {
    {"|", ING_AST_BitOr, 1},   {"^", ING_AST_BitXor, 2},    {"&", ING_AST_BitAnd, 3},
    {"<<", ING_AST_LShift, 4}, {">>", ING_AST_RShift, 4},   {"+", ING_AST_Add, 5},
    {"-", ING_AST_Sub, 5},     {"//", ING_AST_FloorDiv, 6}, {"/", ING_AST_Div, 6},
    {"%", ING_AST_Mod, 6},     {"*", ING_AST_Mult, 6},
};

static ing_node mini_unary(mini *m) {
    mini_space(m);
    const char *from = m->p;
    uint32_t op = mini_eat(m, "-")   ? ING_AST_USub
                  : mini_eat(m, "~") ? ING_AST_Invert
                  : mini_eat(m, "+") ? ING_AST_UAdd
                                     : 0;
    if (op) {
        ing_node v = mini_unary(m);
        return MINI_NODE(m, UNARYOP, from, op, v);
    }
    ing_node l = mini_postfix(m);
    if (!mini_eat(m, "**")) return l;
    ing_node r = mini_unary(m);
    return MINI_NODE(m, BINOP, from, l, ING_AST_Pow, r);
}

static ing_node mini_binary(mini *m, int level) {
    if (level > 6) return mini_unary(m);
    mini_space(m);
    const char *from = m->p;
    ing_node l = mini_binary(m, level + 1);
    for (;;) {
        uint32_t op = 0;
        mini_space(m);
        for (size_t i = 0; i < sizeof mini_ops / sizeof *mini_ops && !op; i++) {
            size_t n = strlen(mini_ops[i].text);
            if (mini_ops[i].level != level || strncmp(m->p, mini_ops[i].text, n))
                continue;
            if (m->p[n] == '=' || (n == 1 && *m->p == '*' && m->p[1] == '*')) continue;
            if (n == 1 && *m->p == '/' && m->p[1] == '/') continue;
            op = mini_ops[i].op;
            m->p += n;
        }
        if (!op) return l;
        ing_node r = mini_binary(m, level + 1);
        l = MINI_NODE(m, BINOP, from, l, op, r);
    }
}

static uint32_t mini_compare_op(mini *m) {
    static const struct {
        const char *text;
        uint8_t op;
    } ops[] = {{"==", ING_AST_Eq},        {"!=", ING_AST_NotEq},
               {"<=", ING_AST_LtE},       {">=", ING_AST_GtE},
               {"is not", ING_AST_IsNot}, {"is", ING_AST_Is},
               {"not in", ING_AST_NotIn}, {"in", ING_AST_In}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (mini_eat(m, ops[i].text)) return ops[i].op;
    mini_space(m);
    if (m->p[0] == '<' && m->p[1] != '<') return m->p++, ING_AST_Lt;
    if (m->p[0] == '>' && m->p[1] != '>') return m->p++, ING_AST_Gt;
    return 0;
}

static ing_node mini_compare(mini *m) {
    mini_space(m);
    const char *from = m->p;
    if (mini_eat(m, "not")) {
        ing_node v = mini_compare(m);
        return MINI_NODE(m, UNARYOP, from, ING_AST_Not, v);
    }
    ing_node l = mini_binary(m, 1);
    uint32_t ops[8], right[8], n = 0;
    while ((ops[n] = mini_compare_op(m)) != 0) right[n++] = mini_binary(m, 1);
    if (!n) return l;
    uint32_t a = mini_list(m, ops, n), b = mini_list(m, right, n);
    return MINI_NODE(m, COMPARE, from, l, a, b);
}

static ing_node mini_bool(mini *m, const char *word) {
    mini_space(m);
    const char *from = m->p;
    bool is_or = word[0] == 'o';
    uint32_t v[16], n = 0;
    do v[n++] = is_or ? mini_bool(m, "and") : mini_compare(m);
    while (mini_eat(m, word));
    if (n == 1) return v[0];
    uint32_t list = mini_list(m, v, n);
    return MINI_NODE(m, BOOLOP, from, is_or ? ING_AST_Or : ING_AST_And, list);
}

static ing_node mini_expr(mini *m) {
    mini_space(m);
    const char *from = m->p;
    ing_node v = mini_bool(m, "or");
    if (!mini_eat(m, "if")) return v;
    ing_node test = mini_bool(m, "or");
    mini_need(m, "else");
    ing_node other = mini_expr(m);
    return MINI_NODE(m, IFEXP, from, test, v, other);
}

/* a, b without brackets */
static ing_node mini_exprs(mini *m) {
    mini_space(m);
    const char *from = m->p;
    uint32_t items[16], n = 0;
    items[n++] = mini_expr(m);
    if (!mini_eat(m, ",")) return items[0];
    do {
        if (*m->p == '\n' || (mini_space(m), *m->p == '=')) break;
        items[n++] = mini_expr(m);
    } while (mini_eat(m, ","));
    uint32_t list = mini_list(m, items, n);
    return MINI_NODE(m, TUPLE, from, list);
}

/* ---- statements ------------------------------------------------------------------------------------ */

static ing_node mini_if(mini *m, const char *from, int indent) {
    ing_node test = mini_expr(m);
    mini_need(m, ":");
    uint32_t body = mini_block(m, indent), orelse = 0;
    const char *back = m->p;
    int here = 0;
    while (*m->p == ' ') m->p++, here++;
    const char *at = m->p;
    if (here == indent && mini_eat(m, "elif")) {
        ing_node inner = mini_if(m, at, indent);
        orelse = mini_list(m, &inner, 1);
    } else if (here == indent && mini_eat(m, "else")) {
        mini_need(m, ":");
        orelse = mini_block(m, indent);
    } else
        m->p = back;
    return MINI_NODE(m, IF, from, test, body, orelse);
}

static ing_node mini_assign(mini *m, const char *from, ing_node first) {
    static const struct {
        const char *text;
        uint8_t op;
    } augs[] = {
        {"+=", ING_AST_Add},       {"-=", ING_AST_Sub},    {"*=", ING_AST_Mult},
        {"//=", ING_AST_FloorDiv}, {"/=", ING_AST_Div},    {"|=", ING_AST_BitOr},
        {"&=", ING_AST_BitAnd},    {"^=", ING_AST_BitXor}, {"<<=", ING_AST_LShift}};
    for (size_t i = 0; i < sizeof augs / sizeof *augs; i++)
        if (mini_eat(m, augs[i].text)) {
            ing_node v = mini_exprs(m);
            return MINI_NODE(m, AUGASSIGN, from, first, augs[i].op, v);
        }
    if (mini_eat(m, ":")) {
        ing_node anno = mini_expr(m), v = mini_eat(m, "=") ? mini_exprs(m) : 0;
        return MINI_NODE(m, ANNASSIGN, from, first, anno, v, 1);
    }
    uint32_t targets[8], n = 0;
    ing_node v = first;
    while (mini_eat(m, "=")) {
        targets[n++] = v;
        v = mini_exprs(m);
    }
    if (!n) return MINI_NODE(m, EXPR, from, v);
    uint32_t list = mini_list(m, targets, n);
    return MINI_NODE(m, ASSIGN, from, list, v);
}

static ing_node mini_other(mini *m, const char *from, const char *cls) {
    m->p = strchr(m->p, '\n');
    return MINI_NODE(m, OTHER, from, mini_atom(m, cls, strlen(cls)));
}

static ing_node mini_stmt(mini *m, int indent) {
    const char *from = m->p;
    if (mini_eat(m, "if")) return mini_if(m, from, indent);
    if (mini_eat(m, "for")) {
        uint32_t names[8], n = 0;
        const char *at = (mini_space(m), m->p);
        do names[n++] = mini_atom_expr(m);
        while (mini_eat(m, ","));
        ing_node target = names[0];
        if (n > 1) {
            uint32_t list = mini_list(m, names, n);
            target = MINI_NODE(m, TUPLE, at, list);
        }
        mini_need(m, "in");
        ing_node it = mini_expr(m);
        mini_need(m, ":");
        uint32_t body = mini_block(m, indent);
        return MINI_NODE(m, FOR, from, target, it, body, 0);
    }
    if (mini_eat(m, "while")) {
        ing_node test = mini_expr(m);
        mini_need(m, ":");
        uint32_t body = mini_block(m, indent);
        return MINI_NODE(m, WHILE, from, test, body, 0);
    }
    if (mini_eat(m, "return")) {
        ing_node v = *m->p == '\n' ? 0 : mini_exprs(m);
        return MINI_NODE(m, RETURN, from, v);
    }
    if (mini_eat(m, "assert")) {
        ing_node test = mini_expr(m), msg = mini_eat(m, ",") ? mini_expr(m) : 0;
        return MINI_NODE(m, ASSERT, from, test, msg);
    }
    if (mini_eat(m, "pass")) return mini_node(m, ING_NODE_PASS, from, NULL);
    if (mini_eat(m, "break")) return mini_node(m, ING_NODE_BREAK, from, NULL);
    if (mini_eat(m, "continue")) return mini_node(m, ING_NODE_CONTINUE, from, NULL);
    if (mini_eat(m, "raise")) return mini_other(m, from, "Raise");
    if (mini_eat(m, "import")) return mini_other(m, from, "Import");
    return mini_assign(m, from, mini_exprs(m));
}

/* The indented lines after a colon. */
static uint32_t mini_block(mini *m, int outer) {
    uint32_t items[64], n = 0;
    int indent = -1;
    if (*m->p == '\n') m->p++;
    for (;;) {
        int here = 0;
        const char *line = m->p;
        while (line[here] == ' ') here++;
        if (!line[here] || here <= outer) break;
        if (indent < 0) indent = here;
        m->p = line + here;
        items[n++] = mini_stmt(m, here);
        if (m->p[-1] == '\n') continue; /* it ended in a block */
        mini_space(m);
        if (*m->p == '\n') m->p++;
    }
    return mini_list(m, items, n);
}

static char *mini_copy(const char *s) {
    char *p = ing_malloc(strlen(s) + 1);
    if (!p) abort();
    return strcpy(p, s);
}

/* "def f(a, b=1):\n    ..." */
static ing_front_tree *mini_read(const char *text, const char *file) {
    mini m = {ing_front_tree_new(), text, text};
    uint32_t params[16], defaults[16], n = 0, d = 0;
    if (!m.t) abort();
    m.t->text = mini_copy(text);
    m.t->text_len = strlen(text);
    m.t->file = mini_copy(file);
    m.t->first_line = 1;
    mini_need(&m, "def");
    const char *w;
    size_t len = mini_word(&m, &w);
    uint32_t name = mini_atom(&m, w, len);
    m.t->name = mini_copy(ing_atoms_text(&m.t->atoms, name - 1));
    mini_need(&m, "(");
    while (!mini_eat(&m, ")")) {
        const char *at = (mini_space(&m), m.p);
        len = mini_word(&m, &w);
        params[n++] = MINI_NODE(&m, ARGUMENT, at, mini_atom(&m, w, len), 0);
        if (mini_eat(&m, "=")) defaults[d++] = mini_expr(&m);
        mini_eat(&m, ",");
    }
    uint32_t pl = mini_list(&m, params, n), dl = mini_list(&m, defaults, d);
    ing_node args = MINI_NODE(&m, ARGUMENTS, text, 0, pl, 0, 0, 0, 0, dl);
    mini_need(&m, ":");
    uint32_t body = mini_block(&m, 0);
    m.t->root = MINI_NODE(&m, FUNCTION, text, name, args, body, 0, 0);
    ing_front_tree_digest(m.t);
    return m.t;
}

#endif
