/* Which functions a task reaches, a module of one task, and its digest (R18). Called by
 * the conductor before it asks the store, and by the interpreter. Order of first use is
 * what makes equal tasks of different kernels equal, so it must never depend on numbers of
 * functions. Works on verified modules; call depth is not bounded, so no recursion here. */
#include "ir/ir_int.h"

#include <string.h>

/* ---- call graph ----------------------------------------------------------------------- */

typedef struct calls { /* of each function, in order of appearance in its text */
    uint32_t *start;   /* funcs.len + 1 */
    ing_vec(uint32_t) callee;
} calls;

/* Appends the callees below `block`; false: no memory. */
static bool scan_block(const ing_ir_func *f, uint32_t block, calls *c) {
    for (uint32_t k = 0; k < ing_ir_block_len(f, block); k++) {
        const ing_ir_inst *i = ing_ir_at(f, ing_ir_block_ids(f, block)[k]);
        uint32_t blocks[2], n = ing_ir_inst_blocks(i, blocks);
        for (uint32_t j = 0; j < n; j++) {
            if (!scan_block(f, blocks[j], c)) return false;
        }
        if (i->op == ING_OP_CALL && !ing_vec_push(&c->callee, i->a)) return false;
    }
    return true;
}

static ing_status calls_init(calls *c, const ing_ir_mod *m, ing_err *e) {
    *c = (calls){.start = ing_calloc((size_t)m->funcs.len + 1, sizeof *c->start)};
    bool ok = c->start != NULL;
    for (uint32_t k = 0; k < m->funcs.len && ok; k++) {
        ok = scan_block(m->funcs.at[k], m->funcs.at[k]->body, c);
        c->start[k + 1] = c->callee.len;
    }
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for the call graph");
}

static void calls_fini(calls *c) {
    ing_free(c->start);
    ing_vec_fini(&c->callee);
}

ing_status ing_ir_func_reaches(const ing_ir_mod *m, uint32_t func, uint32_t **funcs,
                               uint32_t *n, ing_err *e) {
    calls c = {0}; /* of one function at a time: others may have thousands of tasks */
    uint32_t *order = ing_calloc((size_t)m->funcs.len + 1, sizeof *order);
    uint8_t *seen = ing_calloc((size_t)m->funcs.len + 1, 1);
    uint32_t len = 0;
    bool ok = order && seen, known = func < m->funcs.len;
    *funcs = NULL;
    *n = 0;
    if (ok && known) {
        order[len++] = func;
        seen[func] = 1;
    }
    for (uint32_t at = 0; at < len && ok; at++) { /* breadth first: a queue is enough */
        const ing_ir_func *f = m->funcs.at[order[at]];
        c.callee.len = 0;
        ok = scan_block(f, f->body, &c);
        for (uint32_t j = 0; j < c.callee.len && ok; j++) {
            uint32_t callee = c.callee.at[j];
            if (!seen[callee]) order[len++] = callee;
            seen[callee] = 1;
        }
    }
    calls_fini(&c);
    ing_free(seen);
    if (!ok || !known) {
        ing_free(order);
        return ok ? ing_fail(e, ING_INTERNAL, "no function %u", func)
                  : ing_fail(e, ING_MEMORY, "no memory for the call graph");
    }
    *funcs = order;
    *n = len;
    return ING_OK;
}

ing_status ing_ir_task_funcs(const ing_ir_mod *m, uint32_t k, uint32_t **funcs,
                             uint32_t *n, ing_err *e) {
    if (k >= m->tasks.len) return ing_fail(e, ING_INTERNAL, "no task %u", k);
    return ing_ir_func_reaches(m, m->tasks.at[k].func, funcs, n, e);
}

/* Depth-first with an explicit stack: next[f] is where f's callees go on. */
static ing_status visit(const calls *c, uint32_t root, uint32_t *next, uint8_t *state,
                        uint32_t *stack, uint32_t *order, uint32_t *len, ing_err *e) {
    uint32_t depth = 0;
    if (state[root]) return ING_OK;
    stack[depth++] = root;
    state[root] = 1;
    while (depth) {
        uint32_t f = stack[depth - 1];
        if (next[f] == c->start[f + 1]) {
            state[f] = 2;
            order[(*len)++] = f;
            depth--;
            continue;
        }
        uint32_t callee = c->callee.at[next[f]++];
        if (state[callee] == 1) {
            return ing_fail(e, ING_INTERNAL, "bad IR: function @%u calls itself (I7)",
                            callee);
        }
        if (state[callee]) continue;
        state[callee] = 1;
        stack[depth++] = callee;
    }
    return ING_OK;
}

ing_status ing_ir_call_order(const ing_ir_mod *m, uint32_t **funcs, ing_err *e) {
    calls c;
    size_t n = (size_t)m->funcs.len + 1;
    ing_status s = calls_init(&c, m, e);
    uint32_t *order = ing_calloc(n, sizeof *order), *next = ing_calloc(n, sizeof *next);
    uint32_t *stack = ing_calloc(n, sizeof *stack), len = 0;
    uint8_t *state = ing_calloc(n, 1);
    bool ok = order && next && stack && state;
    if (s == ING_OK && !ok) s = ing_fail(e, ING_MEMORY, "no memory for the call graph");
    if (s == ING_OK) memcpy(next, c.start, n * sizeof *next);
    for (uint32_t k = 0; k < m->funcs.len && s == ING_OK; k++) {
        s = visit(&c, k, next, state, stack, order, &len, e);
    }
    calls_fini(&c);
    ing_free(next);
    ing_free(stack);
    ing_free(state);
    *funcs = s == ING_OK ? order : NULL;
    if (s != ING_OK) ing_free(order);
    return s;
}

/* ---- extraction ------------------------------------------------------------------------ */

/* Every type of `from` in `to`; a type's parts come before it in the table. */
static bool map_types(const ing_ir_mod *from, ing_ir_mod *to, ing_type *map) {
    ing_vec(uint32_t) parts = {0};
    ing_vec(uint32_t) names = {0};
    bool ok = true;
    for (uint32_t t = 0; t < from->types.len && ok; t++) {
        const ing_type_info *i = &from->types.at[t];
        switch (i->kind) {
        case ING_TYPE_SCALAR: map[t] = t; break;
        case ING_TYPE_REF: map[t] = ing_ir_type_ref(to, map[i->elem]); break;
        case ING_TYPE_ARRAY:
            map[t] = i->place ? ing_ir_type_field(to, i->place)
                              : ing_ir_type_array(to, map[i->elem], i->rank, i->grad,
                                                  i->layout);
            break;
        case ING_TYPE_TENSOR:
            map[t] = ing_ir_type_tensor(to, i->dtype, i->rows, i->cols, i->rank);
            break;
        default:
            parts.len = names.len = 0;
            for (uint32_t k = 0; k < i->n_members && ok; k++) {
                const char *name = ing_atoms_text(&from->atoms, i->names[k]);
                ok = ing_vec_push(&parts, map[i->members[k]]) &&
                     ing_vec_push(&names, ing_ir_atom(to, name, strlen(name)));
            }
            if (ok) map[t] = ing_ir_type_struct(to, parts.at, names.at, i->n_members);
        }
        ok = ok && ing_ir_ok(to);
    }
    ing_vec_fini(&parts);
    ing_vec_fini(&names);
    return ok;
}

enum { MOST_APART = 64 }; /* pairs that the text of a task has */

typedef struct extractor {
    const ing_ir_mod *from;
    ing_ir_mod *to;
    ing_type *types;    /* of from -> of to */
    uint32_t *funcs, n; /* number in to -> in from */
    uint32_t *func_map; /* number in from -> in to */
} extractor;

static bool declare_funcs(extractor *x) {
    ing_vec(ing_type) params = {0};
    bool ok = true;
    for (uint32_t k = 0; k < x->n && ok; k++) {
        const ing_ir_func *f = x->from->funcs.at[x->funcs[k]];
        params.len = 0;
        for (uint32_t j = 0; j < f->n_params && ok; j++) {
            ok = ing_vec_push(&params, x->types[f->params[j]]);
        }
        if (!ok) break;
        ing_ir_add_func(x->to, f->kind, ing_atoms_text(&x->from->atoms, f->name),
                        params.at, f->n_params, x->types[f->ret]);
        x->func_map[x->funcs[k]] = k;
        ok = ing_ir_ok(x->to);
        if (ok) x->to->funcs.at[k]->tree = f->tree;
    }
    ing_vec_fini(&params);
    return ok;
}

/* The bytes of the launch buffer that the task itself touches: the size of the whole
 * buffer depends on other tasks and must not reach the digest. */
static uint32_t buffer_used(const ing_ir_mod *m) {
    uint32_t used = 0;
    for (uint32_t k = 0; k < m->funcs.len; k++) {
        const ing_ir_func *f = m->funcs.at[k];
        for (uint32_t j = 1; j < f->insts.len; j++) {
            const ing_ir_inst *i = ing_ir_at(f, j);
            if (i->op != ING_OP_BUFFER) continue;
            uint32_t size = ing_ir_type_size(m, ing_ir_type(m, i->type)->elem);
            if (i->a + size > used) used = i->a + size;
        }
    }
    return used;
}

static bool copy_bodies(extractor *x) {
    for (uint32_t k = 0; k < x->n; k++) {
        const ing_ir_func *f = x->from->funcs.at[x->funcs[k]];
        ing_ir_builder b;
        uint32_t *map = ing_calloc(f->insts.len, sizeof *map);
        if (!map) return false;
        ing_ir_builder_init(&b, x->to, k);
        ing_ir_copy c = {.b = &b, .from = f, .map = map};
        c.func_map = x->func_map;
        c.type_map = x->types;
        ing_ir_copy_block(&c, f->body);
        ing_ir_builder_done(&b);
        ing_free(map);
    }
    return ing_ir_ok(x->to);
}

static bool names(const ing_ir_mod *m, uint32_t array) {
    for (uint32_t k = 0; k < m->funcs.len; k++)
        for (uint32_t j = 1; j < m->funcs.at[k]->insts.len; j++) {
            const ing_ir_inst *i = ing_ir_at(m->funcs.at[k], j);
            if (i->op == ING_OP_ARRAY && i->a == array) return true;
        }
    return false;
}

/* Pairs that the code may rely on: of arrays that it names, and few. */
static bool copy_apart(extractor *x) {
    uint8_t *named = ing_calloc((size_t)x->from->args.len + 1, 1);
    bool ok = named != NULL;
    for (uint32_t k = 0; ok && k < x->from->args.len && x->from->apart.len; k++)
        named[k] = names(x->to, k);
    for (uint32_t k = 0; ok && k < x->from->apart.len; k++) {
        ing_ir_apart p = x->from->apart.at[k];
        if (named[p.a] && named[p.b]) ok = ing_vec_push(&x->to->apart, p);
    }
    if (x->to->apart.len > MOST_APART) x->to->apart.len = 0;
    ing_free(named);
    return ok;
}

static bool extract(extractor *x, uint32_t k) {
    if (!map_types(x->from, x->to, x->types)) return false;
    for (uint32_t j = 0; j < x->from->args.len; j++) {
        uint32_t with = ing_ir_arg_first(x->from, j);
        ing_ir_add_arg_with(x->to, x->types[x->from->args.at[j].type],
                            with < j ? with : UINT32_MAX);
        if (!ing_ir_ok(x->to)) return false;
        x->to->args.at[j].last = x->from->args.at[j].last;
    }
    for (uint32_t j = 0; j < x->from->rets.len; j++) {
        if (!ing_vec_push(&x->to->rets, x->from->rets.at[j])) return false;
    }
    if (!declare_funcs(x) || !copy_bodies(x) || !copy_apart(x)) return false;
    x->to->buffer_bytes = buffer_used(x->to);
    /* bounds and cost are the launcher's business, not the code's */
    ing_ir_task t = {.func = 0, .kind = x->from->tasks.at[k].kind};
    return ing_vec_push(&x->to->tasks, t);
}

ing_status ing_ir_extract_task(const ing_ir_mod *m, uint32_t k, ing_ir_mod **out,
                               ing_err *e) {
    extractor x = {.from = m};
    *out = NULL;
    ING_TRY(ing_ir_task_funcs(m, k, &x.funcs, &x.n, e));
    x.to = ing_ir_mod_new();
    x.types = ing_calloc(m->types.len, sizeof *x.types);
    x.func_map = ing_calloc(m->funcs.len, sizeof *x.func_map);
    bool ok = x.to && x.types && x.func_map && extract(&x, k);
    ing_free(x.funcs);
    ing_free(x.types);
    ing_free(x.func_map);
    if (ok) {
        *out = x.to;
        return ING_OK;
    }
    ing_ir_mod_free(x.to);
    return ing_fail(e, ING_MEMORY, "no memory to extract a task");
}

ing_status ing_ir_digest(const ing_ir_mod *m, ing_hash128 *out, ing_err *e) {
    ing_bytes text;
    ing_bytes_init(&text);
    ing_ir_print(m, 0, &text);
    bool ok = !text.failed;
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_item(&h, 'i', text.at, text.len);
    *out = ing_hasher_done(&h);
    ing_bytes_fini(&text);
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for the IR's text");
}
