/* Function bodies being lowered: names and scopes, the settings read, steps behind the
 * gate, and errors with their chain of calls. Used by every other file of lowering. */
#include "front/front_int.h"

#include <stdio.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------------- */

/* The name that an expression such as p.w[i] starts with; 0 = another kind. */
static ing_node root_name(const ing_front_tree *t, ing_node n) {
    for (;;) {
        uint8_t kind = n && n < t->nodes.len ? t->nodes.at[n].kind : 0;
        if (kind == ING_NODE_NAME) return n;
        if (kind == ING_NODE_SUBSCRIPT)
            n = NF(t, n, SUBSCRIPT)->value;
        else if (kind == ING_NODE_ATTRIBUTE)
            n = NF(t, n, ATTRIBUTE)->value;
        else
            return 0;
    }
}

/* Inside a func a parameter hides where the caller found it: "where p is s.part". */
static void put_where(frame *fr, ing_node at, ing_bytes *out) {
    const ing_gate *gate = fr->lo->gate;
    ing_node n = root_name(fr->t, at);
    const value *v =
        n && fr->slot_of ? ing_front_scope_find(fr, NF(fr->t, n, NAME)->id - 1) : NULL;
    ing_gref of = !v ? 0 : v->gref ? v->gref : v->origin;
    if (!of || !gate->ops->where) return;
    char where[200];
    const char *name = ing_front_atom_text(fr, NF(fr->t, n, NAME)->id);
    gate->ops->where(gate->self, of, where, sizeof where);
    if (*where && strcmp(where, name) != 0)
        ing_bytes_printf(out, "where %s is %s\n", name, where);
}

static ing_status fail_text(frame *fr, ing_node at, ing_status s, const char *remedy,
                            const char *text) {
    ing_bytes out;
    ing_bytes_init(&out);
    ing_front_diag_put(fr->t, at, text, remedy, &out);
    put_where(fr, at, &out);
    for (frame *f = fr; f->caller; f = f->caller)
        ing_front_diag_chain(f->caller->t, f->call_node, f->name, &out);
    return ing_front_diag_done(fr->t, at, s, &out, fr->lo->e);
}

ing_status ing_front_fail_at(frame *fr, ing_node at, ing_status s, const char *remedy,
                             const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return fail_text(fr, at, s, remedy, text);
}

ing_status ing_front_warn_at(frame *fr, ing_node at, const char *category,
                             const char *fmt, ...) {
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    GATE(fr, at, warn, category, text, fr->t, at, fr->lo->e);
    return ING_OK;
}

ing_status ing_front_fail_gate(frame *fr, ing_node at, ing_status s) {
    ing_err *e = fr->lo->e;
    if (s == ING_PYTHON || s == ING_MEMORY || !e || e->line || !e->text) return s;
    static const char mark[] = "\nhelp: "; /* the remedy of a message without a place */
    char text[1024], *remedy;
    snprintf(text, sizeof text, "%s", e->text);
    if ((remedy = strstr(text, mark)) != NULL) {
        *remedy = 0;
        remedy += sizeof mark - 1;
    }
    return fail_text(fr, at, s == ING_DECLINED ? ING_COMPILE : s, remedy, text);
}

static const frame *outermost(const frame *fr) {
    while (fr->caller) fr = fr->caller;
    return fr;
}

/* A step takes 0.8 KB of stack, measured. Asking for what is left costs system calls, so it is
 * done now and then; what remains is for passes and the interpreter. */
static bool has_stack(uint32_t depth) {
    enum { SOMETIMES = 32, ENOUGH = 128 << 10 };
    return depth % SOMETIMES != 0 || ing_os_stack_left() >= ENOUGH;
}

ing_status ing_front_deeper(frame *fr, ing_node at) {
    uint32_t depth = ++fr->lo->depth;
    if (depth <= ING_FRONT_MAX_LOWERING && has_stack(depth)) return ING_OK;
    /* The whole chain would be hundreds of lines: the ends tell the story. */
    const frame *top = outermost(fr);
    return ing_front_diag(fr->t, at, ING_SYNTAX,
                          "make the funcs call each other less deeply, and write long "
                          "expressions as several statements",
                          fr->lo->e,
                          "code nested more than %u deep, from %s down to %s",
                          depth - 1, top->name, fr->name);
}

ing_status ing_front_nest(frame *fr, ing_node at) {
    ing_front_stops_end(fr);
    if (++fr->control <= MAX_NESTING) return ING_OK;
    return ing_front_fail_at(fr, at, ING_SYNTAX, "move the inner part into a @qd.func",
                             "loops and branches nested more than %d deep",
                             MAX_NESTING);
}

/* ---- frames ------------------------------------------------------------------------------ */

static void count_target(frame *fr, ing_node n) {
    const ing_front_tree *t = fr->t;
    uint8_t kind = t->nodes.at[n].kind;
    bool part = false; /* v[0] = ..., v.x = ...: v must be in memory */
    uint8_t first = 0; /* the step that starts from the name */
    while (kind == ING_NODE_SUBSCRIPT || kind == ING_NODE_ATTRIBUTE) {
        n = kind == ING_NODE_SUBSCRIPT ? NF(t, n, SUBSCRIPT)->value
                                       : NF(t, n, ATTRIBUTE)->value;
        first = kind;
        kind = t->nodes.at[n].kind;
        part = true;
    }
    if (kind != ING_NODE_NAME) return;
    uint8_t flags = NAME_ADDRESS;
    flags |= first == ING_NODE_ATTRIBUTE ? NAME_PART : NAME_ITEM;
    if (part) fr->uses[NF(t, n, NAME)->id - 1] |= flags;
    if (part) return;
    uint8_t *u = &fr->uses[NF(fr->t, n, NAME)->id - 1];
    *u |= *u & NAME_ONCE ? NAME_MANY : NAME_ONCE;
}

/* The tree's depth bounds the recursion. */
static void count_targets(frame *fr, ing_node n) {
    const ing_front_tree *t = fr->t;
    uint8_t kind = t->nodes.at[n].kind;
    if (kind != ING_NODE_TUPLE && kind != ING_NODE_LIST) {
        count_target(fr, n);
        return;
    }
    uint32_t elts = NF(t, n, TUPLE)->elts;
    for (uint32_t i = 0; i < list_len(t, elts); i++)
        count_targets(fr, list_at(t, elts, i));
}

/* Is the callee called like a function of the language that only computes? */
static bool computes(const ing_front_tree *t, ing_node callee) {
    static const char *const names[] = {
        "abs",   "acos",   "acosh", "asin", "asinh", "atan",    "atan2",   "atanh",
        "bool",  "cast",   "cbrt",  "ceil", "cos",   "cosh",    "erf",     "erfc",
        "exp",   "exp2",   "expm1", "f16",  "f32",   "f64",     "float",   "floor",
        "hypot", "i16",    "i32",   "i64",  "i8",    "int",     "log",     "log10",
        "log1p", "log2",   "max",   "min",  "pow",   "raw_div", "raw_mod", "round",
        "rsqrt", "select", "sin",   "sinh", "sqrt",  "tan",     "tanh",    "trunc",
        "u1",    "u16",    "u32",   "u64",  "u8"};
    uint8_t kind = t->nodes.at[callee].kind;
    uint32_t slot = kind == ING_NODE_ATTRIBUTE ? NF(t, callee, ATTRIBUTE)->attr
                    : kind == ING_NODE_NAME    ? NF(t, callee, NAME)->id
                                               : 0;
    const char *name = slot ? ing_atoms_text(&t->atoms, slot - 1) : "";
    if (*name == '_') name++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* The callee may change it, or the part of it that it is given: f(v), f(v.m), f(v[i]). */
static void mark_address(frame *fr, ing_node n, uint8_t flags) {
    const ing_front_tree *t = fr->t;
    if (t->nodes.at[n].kind == ING_NODE_STARRED) n = NF(t, n, STARRED)->value;
    if (t->nodes.at[n].kind == ING_NODE_KEYWORD) n = NF(t, n, KEYWORD)->value;
    for (;;) {
        uint8_t kind = t->nodes.at[n].kind;
        if (kind == ING_NODE_SUBSCRIPT)
            n = NF(t, n, SUBSCRIPT)->value;
        else if (kind == ING_NODE_ATTRIBUTE)
            n = NF(t, n, ATTRIBUTE)->value;
        else
            break;
    }
    if (t->nodes.at[n].kind == ING_NODE_NAME) fr->uses[NF(t, n, NAME)->id - 1] |= flags;
}

/* l.append(x) */
static void mark_change(frame *fr, ing_node func) {
    const ing_front_tree *t = fr->t;
    if (t->nodes.at[func].kind != ING_NODE_ATTRIBUTE) return;
    const struct nf_ATTRIBUTE *f = NF(t, func, ATTRIBUTE);
    if (t->nodes.at[f->value].kind == ING_NODE_NAME &&
        ing_front_is_change(ing_front_atom_text(fr, f->attr)))
        fr->uses[NF(t, f->value, NAME)->id - 1] |= NAME_GROWS;
}

/* One pass over all nodes: how often each name is assigned, and whether a call sees it
 * (LOWER3). */
static void count_names(frame *fr) {
    const ing_front_tree *t = fr->t;
    for (ing_node n = 1; n < t->nodes.len; n++) {
        switch (t->nodes.at[n].kind) {
        case ING_NODE_ASSIGN: {
            uint32_t targets = NF(t, n, ASSIGN)->targets;
            for (uint32_t i = 0; i < list_len(t, targets); i++)
                count_targets(fr, list_at(t, targets, i));
            break;
        }
        case ING_NODE_AUGASSIGN: {
            ing_node target = NF(t, n, AUGASSIGN)->target;
            count_target(fr, target);
            mark_address(fr, target, NAME_ADDRESS); /* needs the old value in place */
            break;
        }
        case ING_NODE_ANNASSIGN: count_target(fr, NF(t, n, ANNASSIGN)->target); break;
        case ING_NODE_NAMEDEXPR: {
            ing_node target = NF(t, n, NAMEDEXPR)->target;
            count_target(fr, target);
            if (t->nodes.at[target].kind == ING_NODE_NAME) /* wherever that stands */
                fr->uses[NF(t, target, NAME)->id - 1] |= NAME_AGAIN;
            break;
        }
        case ING_NODE_CALL: {
            const struct nf_CALL *c = NF(t, n, CALL);
            uint8_t flags = NAME_ADDRESS | (computes(t, c->func) ? 0 : NAME_HANDED);
            if (t->nodes.at[c->func].kind == ING_NODE_ATTRIBUTE) /* v.fill(x) */
                mark_address(fr, NF(t, c->func, ATTRIBUTE)->value, flags);
            mark_change(fr, c->func);
            for (uint32_t i = 0; i < list_len(t, c->args); i++)
                mark_address(fr, list_at(t, c->args, i), flags);
            for (uint32_t i = 0; i < list_len(t, c->keywords); i++)
                mark_address(fr, list_at(t, c->keywords, i), flags);
            break;
        }
        default: break;
        }
    }
}

/* ---- names that are assigned where they exist ---- */

typedef struct walk {
    frame *fr;
    bool *exists;           /* by atom */
    ing_vec(uint32_t) made; /* atoms, in order */
    bool failed;
} walk;

/* The tree's depth bounds the recursion here and below. */
static void walk_target(walk *w, ing_node n) {
    const ing_front_tree *t = w->fr->t;
    uint8_t kind = t->nodes.at[n].kind;
    if (kind == ING_NODE_TUPLE || kind == ING_NODE_LIST) {
        uint32_t elts = NF(t, n, TUPLE)->elts;
        for (uint32_t i = 0; i < list_len(t, elts); i++)
            walk_target(w, list_at(t, elts, i));
    }
    if (kind != ING_NODE_NAME) return;
    uint32_t atom = NF(t, n, NAME)->id - 1;
    if (w->exists[atom])
        w->fr->uses[atom] |= NAME_AGAIN;
    else if (!ing_vec_push(&w->made, atom))
        w->failed = true;
    w->exists[atom] = true;
}

static void walk_block(walk *w, uint32_t list);

static void walk_statement(walk *w, ing_node n) {
    const ing_front_tree *t = w->fr->t;
    uint32_t targets = 0;
    switch (t->nodes.at[n].kind) {
    case ING_NODE_ASSIGN: targets = NF(t, n, ASSIGN)->targets; break;
    case ING_NODE_AUGASSIGN: walk_target(w, NF(t, n, AUGASSIGN)->target); break;
    case ING_NODE_ANNASSIGN: walk_target(w, NF(t, n, ANNASSIGN)->target); break;
    case ING_NODE_FOR: walk_block(w, NF(t, n, FOR)->body); break;
    case ING_NODE_WHILE: walk_block(w, NF(t, n, WHILE)->body); break;
    case ING_NODE_WITH: walk_block(w, NF(t, n, WITH)->body); break;
    case ING_NODE_IF:
        for (ing_node rest; (rest = ing_front_elif(t, n)); n = rest)
            walk_block(w, NF(t, n, IF)->body);
        walk_block(w, NF(t, n, IF)->body);
        walk_block(w, NF(t, n, IF)->orelse);
        break;
    default: break;
    }
    for (uint32_t i = 0; i < list_len(t, targets); i++)
        walk_target(w, list_at(t, targets, i));
}

/* A name lives in the block in which it is first assigned. */
static void walk_block(walk *w, uint32_t list) {
    uint32_t mark = w->made.len;
    for (uint32_t i = 0; i < list_len(w->fr->t, list); i++)
        walk_statement(w, list_at(w->fr->t, list, i));
    while (w->made.len > mark) w->exists[w->made.at[--w->made.len]] = false;
}

static bool find_again(frame *fr) {
    walk w = {.fr = fr};
    const struct nf_FUNCTION *f = NF(fr->t, fr->t->root, FUNCTION);
    w.exists = ING_NEW_ARRAY(&fr->lo->arena, (size_t)fr->t->atoms.text.len + 1, bool);
    if (w.exists) walk_block(&w, f->body);
    ing_vec_fini(&w.made);
    return w.exists && !w.failed;
}

ing_status ing_front_frame_init(frame *fr, lowering *lo, frame *caller,
                                const ing_front_tree *t) {
    *fr = (frame){.lo = lo, .caller = caller, .t = t};
    fr->name = t->name ? t->name : "?";
    fr->id = ++lo->n_frames;
    uint32_t atoms = t->atoms.text.len + 1;
    fr->slot_of = ING_NEW_ARRAY(&lo->arena, atoms, uint32_t);
    fr->uses = ING_NEW_ARRAY(&lo->arena, atoms, uint8_t);
    if (!fr->slot_of || !fr->uses)
        return ing_fail(lo->e, ING_MEMORY, "no memory while compiling a kernel");
    count_names(fr);
    if (!find_again(fr))
        return ing_fail(lo->e, ING_MEMORY, "no memory while compiling a kernel");
    return ING_OK;
}

void ing_front_frame_fini(frame *fr) {
    ing_vec_fini(&fr->names);
    ing_vec_fini(&fr->stopped);
}

ing_status ing_front_config_get(frame *fr, ing_node at, ing_setting k, int64_t *out) {
    if (!(fr->config_known >> k & 1)) {
        GATE(fr, at, config, k, &fr->config[k], fr->lo->e);
        fr->config_known |= 1u << k;
    }
    *out = fr->config[k];
    return ING_OK;
}

static bool speaks_reference(frame *fr) {
    int64_t reference = 0;
    ing_status s = ing_front_config_get(fr, 0, ING_SET_reference, &reference);
    return s == ING_OK && reference;
}

const char *ing_front_kernels(frame *fr) {
    return speaks_reference(fr) ? "Quadrants kernels" : "kernels";
}

const char *ing_front_scope(frame *fr) {
    return speaks_reference(fr) ? "Quadrants scope" : "kernels";
}

const char *ing_front_does(frame *fr) {
    return speaks_reference(fr) ? "Quadrants does" : "kernels do";
}

const char *ing_front_atom_text(const frame *fr, uint32_t slot) {
    return slot ? ing_atoms_text(&fr->t->atoms, slot - 1) : "";
}

static void params_add(const ing_front_tree *t, uint32_t list, param_list *p) {
    for (uint32_t i = 0; i < list_len(t, list); i++)
        p->node[p->n++] = list_at(t, list, i);
}

ing_status ing_front_params_read(frame *fr, param_list *out) {
    const ing_front_tree *t = fr->t;
    ing_node args = NF(t, t->root, FUNCTION)->args;
    *out = (param_list){0};
    if (!args) return ING_OK;
    const struct nf_ARGUMENTS *f = NF(t, args, ARGUMENTS);
    ing_node extra = f->vararg ? f->vararg : f->kwarg;
    if (extra)
        return ing_front_fail_at(
            fr, extra, ING_SYNTAX, "name every parameter; a tuple can be one of them",
            "%s parameters are not supported", f->vararg ? "`*args`" : "`**kwargs`");
    uint32_t n =
        list_len(t, f->posonlyargs) + list_len(t, f->args) + list_len(t, f->kwonlyargs);
    out->node = ING_NEW_ARRAY(&fr->lo->arena, n + 1, ing_node);
    if (!out->node)
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    params_add(t, f->posonlyargs, out);
    params_add(t, f->args, out);
    out->n_positional = out->n;
    params_add(t, f->kwonlyargs, out);
    return ING_OK;
}

/* ---- names ---------------------------------------------------------------------------------- */

uint32_t ing_front_scope_open(frame *fr) {
    return fr->names.len;
}

void ing_front_scope_close(frame *fr, uint32_t mark) {
    while (fr->names.len > mark) {
        binding *b = &fr->names.at[--fr->names.len];
        fr->slot_of[b->atom] = b->shadows;
    }
}

binding *ing_front_binding(frame *fr, uint32_t atom) {
    uint32_t slot = fr->slot_of[atom];
    return slot ? &fr->names.at[slot - 1] : NULL;
}

value *ing_front_scope_find(frame *fr, uint32_t atom) {
    binding *b = ing_front_binding(fr, atom);
    return b ? &b->v : NULL;
}

ing_status ing_front_scope_add(frame *fr, uint32_t atom, const value *v) {
    binding b = {.atom = atom, .shadows = fr->slot_of[atom], .v = *v};
    b.in_parallel = fr->in_parallel;
    b.depth = fr->b.starts.len;
    b.v.from_static = false;
    if (!ing_vec_push(&fr->names, b))
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    fr->slot_of[atom] = fr->names.len;
    return ING_OK;
}

/* Letters to add, drop or change to get from a to b, at most 3 (more counts as 3). */
static uint32_t edit_distance(const char *a, const char *b) {
    enum { MAX = 40 };
    size_t la = strlen(a), lb = strlen(b);
    if (la > MAX || lb > MAX) return 3;
    uint32_t row[MAX + 1];
    for (size_t j = 0; j <= lb; j++) row[j] = (uint32_t)j;
    for (size_t i = 1; i <= la; i++) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= lb; j++) {
            uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[lb] < 3 ? row[lb] : 3;
}

/* How many letters may differ for a name to be meant. */
static uint32_t edits_allowed(const char *name) {
    size_t n = strlen(name);
    return n > 5 ? 2 : n > 2 ? 1 : 0;
}

bool ing_front_is_near(const char *name, const char *other, uint32_t *best) {
    uint32_t d = edit_distance(name, other);
    if (d > edits_allowed(name) || d == 0 || d >= *best) return false;
    *best = d;
    return true;
}

/* Is it the variable of some loop of this function? */
static bool is_loop_name(const frame *fr, uint32_t atom) {
    const ing_front_tree *t = fr->t;
    for (ing_node n = 1; n < t->nodes.len; n++) {
        if (t->nodes.at[n].kind != ING_NODE_FOR) continue;
        ing_node target = NF(t, n, FOR)->target;
        uint8_t kind = t->nodes.at[target].kind;
        bool several = kind == ING_NODE_TUPLE || kind == ING_NODE_LIST;
        uint32_t elts = several ? NF(t, target, TUPLE)->elts : 0;
        uint32_t count = several ? list_len(t, elts) : 1;
        for (uint32_t i = 0; i < count; i++) {
            ing_node name = several ? list_at(t, elts, i) : target;
            if (t->nodes.at[name].kind == ING_NODE_NAME &&
                NF(t, name, NAME)->id == atom + 1)
                return true;
        }
    }
    return false;
}

const char *ing_front_suggest(frame *fr, ing_gref of, const char *name) {
    const ing_gate *g = fr->lo->gate;
    char near[160] = "";
    bool whole = g->ops->near && g->ops->near(g->self, of, name, near, sizeof near);
    if (!*near) return NULL;
    return ing_arena_printf(&fr->lo->arena, whole ? "%s" : "did you mean '%s'?", near);
}

/* Names that modules usually have: the line that makes one. */
static const char *import_of(const char *name) {
    static const char *const known[][2] = {
        {"np", "import numpy as np"},
        {"numpy", "import numpy"},
        {"math", "import math"},
        {"qd", "import ingot as qd"},
        {"ingot", "import ingot"},
        {"ti", "import ingot as ti"},
        {"tm", "from ingot import math as tm"},
        {"random", "import random"},
        {"time", "import time"},
        {"torch", "import torch"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i][0]) == 0) return known[i][1];
    return NULL;
}

static ing_status fail_name(frame *fr, ing_node at, uint32_t atom) {
    const char *name = ing_atoms_text(&fr->t->atoms, atom), *remedy = NULL;
    const char *import = import_of(name);
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < fr->names.len; i++) {
        const char *other = ing_atoms_text(&fr->t->atoms, fr->names.at[i].atom);
        if (ing_front_is_near(name, other, &best))
            remedy = ing_arena_printf(&fr->lo->arena, "did you mean '%s'?", other);
    }
    if (!remedy && (fr->uses[atom] & (NAME_ONCE | NAME_MANY) || is_loop_name(fr, atom)))
        remedy = "assign it before this line; a name that is first assigned inside an "
                 "`if` or a loop exists only in there";
    if (!remedy && import)
        remedy = ing_arena_printf(&fr->lo->arena, "write `%s` at the top of the file",
                                  import);
    if (!remedy && strcmp(name, "self") == 0)
        remedy = "make it the first parameter, before the others";
    if (!remedy) remedy = ing_front_suggest(fr, 0, name);
    if (!remedy) remedy = "assign it here or in the module, or make it a parameter";
    return ing_front_fail_at(fr, at, ING_NAME, remedy, "Name \"%s\" is not defined",
                             name);
}

static ing_hash128 outside_key(const frame *fr, uint32_t atom) {
    return (ing_hash128){fr->id, (uint64_t)1 << 62 | atom};
}

/* A name that the function assigns somewhere is its own everywhere, as in Python; the reference
 * takes that of the module where its own is out of scope. */
static bool is_own_name(frame *fr, uint32_t atom) {
    bool assigned = fr->uses[atom] & (NAME_ONCE | NAME_MANY) || is_loop_name(fr, atom);
    return assigned && !speaks_reference(fr);
}

ing_status ing_front_name_read(frame *fr, ing_node at, uint32_t atom, value *out) {
    uint32_t slot = fr->slot_of[atom];
    if (slot) {
        const binding *b = &fr->names.at[slot - 1];
        *out = b->v;
        if (out->kind == V_PARAM) return ing_front_param(fr, at, (uint32_t)out->i, out);
        if (out->kind == V_VOID) /* loop.c */
            return ing_front_fail_at(
                fr, at, ING_COMPILE, "use another name for the variable of that loop",
                "'%s' was the variable of a qd.static loop that runs only sometimes",
                ing_atoms_text(&fr->t->atoms, atom));
        /* A local from outside of the parallel loop is seen by all its threads. */
        if ((out->kind == V_REF || out->kind == V_STRUCT || ing_front_is_box(out)) &&
            fr->in_parallel && !b->in_parallel)
            out->shared = true;
        return ING_OK;
    }
    if (!ing_map_get(&fr->lo->steps, outside_key(fr, atom)) && is_own_name(fr, atom))
        return fail_name(fr, at, atom);
    return ing_front_name_outside(fr, at, atom, out);
}

ing_status ing_front_name_outside(frame *fr, ing_node at, uint32_t atom, value *out) {
    ing_hash128 key = outside_key(fr, atom);
    uint32_t known = ing_map_get(&fr->lo->steps, key);
    ing_gref ref = known ? known - 1 : 0;
    if (!known) {
        GATE(fr, at, name, ing_atoms_text(&fr->t->atoms, atom), &ref, fr->lo->e);
        if (!ing_map_put(&fr->lo->steps, key, ref + 1)) fr->lo->arena.failed = true;
    }
    if (!ref) return fail_name(fr, at, atom);
    *out = (value){.kind = V_THING, .gref = ref};
    return ING_OK;
}

/* ---- steps ------------------------------------------------------------------------------------ */

static void step_done(frame *fr, ing_hash128 key, ing_gref ref, value *out) {
    if (!ing_map_put(&fr->lo->steps, key, ref + 1)) fr->lo->arena.failed = true;
    *out = (value){.kind = ref ? V_THING : V_VOID, .gref = ref};
}

ing_status ing_front_thing_attr(frame *fr, ing_node at, ing_gref of, const char *name,
                                value *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 1, of);
    ing_hasher_str(&h, 2, name);
    ing_hash128 key = ing_hasher_done(&h);
    uint32_t known = ing_map_get(&fr->lo->steps, key);
    ing_gref ref = known ? known - 1 : 0;
    if (!known) GATE(fr, at, attr, of, name, &ref, fr->lo->e);
    step_done(fr, key, ref, out);
    return ING_OK;
}

ing_status ing_front_derive(frame *fr, ing_node at, ing_gref of, ing_gate_derived what,
                            ing_gref other, value *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 6, of);
    ing_hasher_u64(&h, 7, (uint64_t)what | (uint64_t)other << 8);
    ing_hash128 key = ing_hasher_done(&h);
    uint32_t known = ing_map_get(&fr->lo->steps, key);
    ing_gref ref = known ? known - 1 : 0;
    if (!known) GATE(fr, at, derive, of, what, other, &ref, fr->lo->e);
    step_done(fr, key, ref, out);
    return ref ? ing_front_force(fr, at, out) : ING_OK;
}

ing_status ing_front_count(frame *fr, ing_node at, value *v) {
    bool container =
        v->kind == V_SEEN && (v->seen == ING_GATE_TUPLE || v->seen == ING_GATE_LIST ||
                              v->seen == ING_GATE_DICT);
    value n;
    if (!container) return ING_OK;
    ING_TRY(ing_front_derive(fr, at, v->gref, ING_DERIVE_LEN, 0, &n));
    if (n.kind != V_INT || n.i < 0 || n.i > UINT32_MAX)
        return ing_front_fail_at(fr, at, ING_VALUE, "pass the numbers as an array",
                                 "%s is too long", ing_front_describe(fr, v));
    v->n = (uint32_t)n.i;
    return ING_OK;
}

ing_status ing_front_thing_item(frame *fr, ing_node at, ing_gref of,
                                const ing_gate_key *k, value *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 3, of);
    if (k->is_str)
        ing_hasher_str(&h, 4, k->s);
    else
        ing_hasher_u64(&h, 5, (uint64_t)k->i);
    ing_hash128 key = ing_hasher_done(&h);
    uint32_t known = ing_map_get(&fr->lo->steps, key);
    ing_gref ref = known ? known - 1 : 0;
    if (!known) GATE(fr, at, item, of, k, &ref, fr->lo->e);
    step_done(fr, key, ref, out);
    return ING_OK;
}
