/* Statements: the table from node kinds to functions, blocks, branches, while, return,
 * assert, and the refusal of everything that is not in the language. Called for function
 * bodies by lower.c and func.c. */
#include "front/front_int.h"

#include "gen/abi.h"

#include <string.h>

typedef ing_status (*stmt_fn)(frame *fr, ing_node n, flow *out);

/* ---- what is not in the language ----------------------------------------------------------- */

static const struct {
    const char *cls, *text, *remedy;
} refusals[] = {
    {"FunctionDef", "Function definition is not allowed in 'qd.kernel'.",
     "define it outside, with @qd.func"},
    {"Lambda", "`lambda` is not supported in kernels", "define a @qd.func"},
    {"With",
     "`with` only supports qd.stream_parallel(), qd.checkpoint() and those of qd.graph "
     "in kernels",
     "put the code around the call of the kernel"},
    {"Set", "sets are not supported in kernels", "use a tuple"},
    {"SetComp", "set comprehensions are not supported in kernels",
     "use a list comprehension"},
    {"FormattedValue", "f-strings are not supported here", "print the value"},
    {"JoinedStr", "f-strings are not supported in kernels yet",
     "return or store the values and format them in Python"},
    {"Starred", "`*` is only supported for the arguments of a call",
     "write the items out"},
    {"AsyncFunctionDef", "Function definition is not allowed in 'qd.kernel'.",
     "define it outside, with @qd.func"},
    {"ClassDef", "classes cannot be defined in kernels", "define the class outside"},
    {"Delete", "`del` is not supported in kernels", "leave it out"},
    {"TypeAlias", "type aliases are not supported in kernels", "define it outside"},
    {"AsyncFor", "`async for` is not supported in kernels", "use a plain for"},
    {"AsyncWith", "`async with` is not supported in kernels",
     "put the code around the call of the kernel"},
    {"Match", "`match` is not supported in kernels", "use if / elif"},
    {"Raise", "`raise` is not supported in kernels",
     "use assert with qd.init(debug=True), or store an error code in an array"},
    {"Try", "`try` is not supported in kernels", "check the condition with if"},
    {"TryStar", "`try` is not supported in kernels", "check the condition with if"},
    {"Import", "`import` is not supported in kernels", "import at the top of the file"},
    {"ImportFrom", "`import` is not supported in kernels",
     "import at the top of the file"},
    {"Global", "`global` is not supported in kernels",
     "globals are read without it; write results to arrays"},
    {"Nonlocal", "`nonlocal` is not supported in kernels", "write results to arrays"},
    {"Await", "`await` is not supported in kernels",
     "wait before the kernel is called"},
    {"Yield", "`yield` is not supported in kernels", "write results to an array"},
    {"YieldFrom", "`yield` is not supported in kernels", "write results to an array"},
    {"TemplateStr", "t-strings are not supported in kernels", "use an f-string"},
};

ing_status ing_front_unsupported(frame *fr, ing_node n) {
    uint8_t kind = fr->t->nodes.at[n].kind;
    const char *cls = kind == ING_NODE_OTHER
                          ? ing_front_atom_text(fr, NF(fr->t, n, OTHER)->cls)
                          : ing_front_shape_get(kind)->text;
    if (!fr->kernel && strcmp(cls, "FunctionDef") == 0)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "define it outside, with @qd.func",
                                 "Function definition is not allowed in 'qd.func'.");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strcmp(refusals[i].cls, cls) == 0)
            return ing_front_fail_at(fr, n, ING_SYNTAX, refusals[i].remedy,
                                     "%s (Unsupported node \"%s\")", refusals[i].text,
                                     cls);
    return ing_front_fail_at(fr, n, ING_SYNTAX, "write it outside of the kernel",
                             "Unsupported node \"%s\"", cls);
}

/* ---- branches ---------------------------------------------------------------------------------- */

static ing_status branch(frame *fr, uint32_t list, uint32_t *block_id, flow *out) {
    ing_ir_block_begin(&fr->b);
    ing_status s = ing_front_nest(fr, list_at(fr->t, list, 0));
    if (s == ING_OK) s = ing_front_block(fr, list, out);
    fr->control--;
    *block_id = ing_ir_block_end(&fr->b);
    return s;
}

/* A chain of if, elif and else. Each run-time condition opens an else part that holds the
 * rest, so a chain would nest as deep as it is long. After ARMS of them the innermost else
 * part only says that nothing was taken yet, and the rest follows under a test of that. */
enum { ARMS = 32 };

typedef struct chain {
    struct {
        ing_node node;
        uint32_t cond, yes;
    } open[ARMS]; /* conditions whose else part is being lowered */
    uint32_t n;
    uint32_t untaken;   /* u1 local for the innermost else part; 0 = a short chain */
    uint32_t under;     /* condition of the block around the open ones; 0 = none */
    ing_node under_at;  /* its node */
    uint32_t pruned;    /* levels of conditions that were known */
    bool branches, all; /* run-time conditions were met; each of their arms has ended */
    flow last;          /* of the last arm, or of the one that is always taken */
} chain;

static bool is_long(const ing_front_tree *t, ing_node n) {
    uint32_t arms = 0;
    for (; n && arms <= ARMS; n = ing_front_elif(t, n)) arms++;
    return arms > ARMS;
}

static uint32_t flag_new(frame *fr) {
    ing_type ref = ing_ir_type_ref(fr->lo->mod, ING_U1);
    uint32_t flag = ing_ir_emit(&fr->b, ING_OP_ALLOCA, ref, 0, 0, 0);
    uint32_t no = ing_ir_const_int(&fr->b, ING_U1, 0);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, flag, no, 0);
    return flag;
}

static void chain_close(frame *fr, chain *c) {
    while (c->n) {
        uint32_t no = ing_ir_block_end(&fr->b);
        fr->control--;
        fr->b.loc = c->open[--c->n].node;
        ing_ir_emit(&fr->b, ING_OP_IF, 0, c->open[c->n].cond, c->open[c->n].yes, no);
    }
    if (!c->under) return;
    uint32_t block = ing_ir_block_end(&fr->b);
    fr->control--;
    fr->b.loc = c->under_at;
    ing_ir_emit(&fr->b, ING_OP_IF, 0, c->under, block, 0);
    c->under = 0;
}

/* The else part of arm n begins; `rest` is the arm that comes first in it. */
static ing_status chain_open(frame *fr, chain *c, ing_node n, uint32_t cond,
                             uint32_t yes, ing_node rest) {
    c->open[c->n].node = n;
    c->open[c->n].cond = cond;
    c->open[c->n++].yes = yes;
    ing_ir_block_begin(&fr->b);
    ING_TRY(ing_front_nest(fr, n));
    if (c->n < ARMS) return ING_OK;
    uint32_t flag = c->untaken, one = ing_ir_const_int(&fr->b, ING_U1, 1);
    ing_ir_emit(&fr->b, ING_OP_STORE, 0, flag, one, 0);
    chain_close(fr, c);
    c->untaken = is_long(fr->t, rest) ? flag_new(fr) : 0;
    c->under = ing_ir_emit(&fr->b, ING_OP_LOAD, ING_U1, flag, 0, 0);
    c->under_at = rest;
    ing_ir_block_begin(&fr->b);
    return ing_front_nest(fr, rest);
}

/* A condition known while compiling prunes, under qd.static or not; only the former leaves
 * the branch at the level of the code around it. */
static ing_status pruned_arm(frame *fr, chain *c, const struct nf_IF *f,
                             const value *test, ing_node *next) {
    bool truth = false;
    ING_TRY(ing_front_truth(fr, f->test, test, &truth));
    ing_front_stops_end(fr);
    fr->control += !test->from_static;
    c->pruned += !test->from_static;
    if (truth) *next = 0;
    if (*next) return ING_OK;
    return ing_front_block(fr, truth ? f->body : f->orelse, &c->last);
}

/* One arm; `next` becomes the one to go on with, 0 when the chain is done. */
static ing_status chain_arm(frame *fr, chain *c, ing_node n, ing_node *next) {
    const struct nf_IF *f = NF(fr->t, n, IF);
    value test;
    flow arm = FLOW_NEXT;
    uint32_t cond = 0, yes = 0, no = 0;
    *next = ing_front_elif(fr->t, n);
    ING_TRY(ing_front_expr_forced(fr, f->test, &test));
    if (fr->lo->region == ING_OP_FORK && !test.from_static)
        return ing_front_fork_only(fr, n);
    if (ing_front_is_static(&test)) return pruned_arm(fr, c, f, &test, next);
    if (!c->branches && is_long(fr->t, n)) c->untaken = flag_new(fr);
    c->branches = true;
    ING_TRY(ing_front_condition(fr, f->test, &test, "if", &cond));
    ING_TRY(branch(fr, f->body, &yes, &arm));
    c->all &= arm == FLOW_ENDED;
    if (*next) return chain_open(fr, c, n, cond, yes, *next);
    if (list_len(fr->t, f->orelse)) ING_TRY(branch(fr, f->orelse, &no, &c->last));
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_IF, 0, cond, yes, no);
    return ING_OK;
}

static ing_status stmt_if(frame *fr, ing_node n, flow *out) {
    chain c = {.all = true, .last = FLOW_NEXT};
    ing_status s = ING_OK;
    while (n && s == ING_OK) s = chain_arm(fr, &c, n, &n);
    chain_close(fr, &c);
    fr->control -= c.pruned;
    *out = c.last;
    if (c.branches) *out = c.all && c.last == FLOW_ENDED ? FLOW_ENDED : FLOW_NEXT;
    return s;
}

/* ---- loops -------------------------------------------------------------------------------------- */

/* A name that was given a number once, other than 0: it stays so. */
static bool stays_true(const frame *fr, const value *v) {
    if (v->kind != V_RT || !v->inst || v->inst >= fr->b.func->insts.len) return false;
    const ing_ir_inst *i = &fr->b.func->insts.at[v->inst];
    return i->op == ING_OP_CONST && i->type < ING_DTYPE_N &&
           !ing_dtype_is_float((ing_dtype)i->type) && (i->a || i->b);
}

static ing_status while_test(frame *fr, ing_node n, ing_node test, loop *l) {
    value v;
    ING_TRY(ing_front_expr_forced(fr, test, &v));
    bool truth = false;
    if (ing_front_is_static(&v)) {
        ING_TRY(ing_front_truth(fr, test, &v, &truth));
        if (!truth) ing_ir_emit(&fr->b, ING_OP_BREAK, 0, 0, 0, 0);
        l->broke = !truth;
        return ING_OK;
    }
    if (stays_true(fr, &v)) return ING_OK;
    uint32_t cond = 0;
    l->broke = true;
    ING_TRY(ing_front_condition(fr, test, &v, "while", &cond));
    uint32_t stop = ing_ir_emit(&fr->b, ING_OP_NOT, ING_U1, cond, 0, 0);
    ing_ir_block_begin(&fr->b);
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_BREAK, 0, 0, 0, 0);
    uint32_t leave = ing_ir_block_end(&fr->b);
    ing_ir_emit(&fr->b, ING_OP_IF, 0, stop, leave, 0);
    return ING_OK;
}

static ing_status stmt_while(frame *fr, ing_node n, flow *out) {
    const struct nf_WHILE *f = NF(fr->t, n, WHILE);
    ING_TRY(ing_front_ask_entries(fr, n));
    if (list_len(fr->t, f->orelse))
        return ing_front_fail_at(fr, n, ING_SYNTAX, "use a flag variable",
                                 "'else' clause for 'while' not supported in %s",
                                 ing_front_kernels(fr));
    bool done = false;
    ING_TRY(ing_front_do_while(fr, n, &done));
    if (done) return ING_OK;
    loop l = {.outer = fr->loops};
    ing_ir_block_begin(&fr->b);
    ing_status s = ing_front_nest(fr, n);
    l.control = fr->control;
    fr->loops = &l;
    uint32_t mark = ing_front_scope_open(fr);
    flow inner = FLOW_NEXT;
    if (s == ING_OK) s = while_test(fr, n, f->test, &l);
    if (s == ING_OK && !ing_ir_block_ended(&fr->b))
        s = ing_front_block(fr, f->body, &inner);
    ing_front_scope_close(fr, mark);
    fr->loops = l.outer;
    fr->control--;
    uint32_t body = ing_ir_block_end(&fr->b);
    ING_TRY(s);
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_WHILE, 0, body, 0, 0);
    *out = l.broke ? FLOW_NEXT : FLOW_ENDED;
    return ING_OK;
}

static ing_status leave_loop(frame *fr, ing_node n, bool is_break, flow *out) {
    loop *l = fr->loops;
    const char *word = is_break ? "break" : "continue";
    if (!l)
        return ing_front_fail_at(fr, n, ING_SYNTAX,
                                 "use it inside of a `for` or `while`",
                                 "`%s` outside of a loop", word);
    if (l->region)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX,
            "set the flag of the qd.graph.do_while() to 0: its body runs to the end",
            "`%s` cannot leave the body of a graph construct", word);
    if (l->unrolled) {
        if (fr->control != l->control)
            return ing_front_fail_at(
                fr, n, ING_SYNTAX, "make the `if` static, or the loop a run-time one",
                "You are trying to `%s` a static `for` loop, but the `%s` statement "
                "is inside a non-static `if`.",
                word, word);
        *out = is_break ? FLOW_BREAK : FLOW_CONTINUE;
        return ING_OK;
    }
    if (is_break && l->parallel)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX,
            "its iterations run in parallel; put qd.loop_config(serialize=True) "
            "before the loop, or use `continue` or a `while`",
            "Cannot break in the outermost loop");
    l->broke |= is_break;
    l->continued |= !is_break;
    ing_ir_emit(&fr->b, is_break ? ING_OP_BREAK : ING_OP_CONTINUE, 0, 0, 0, 0);
    *out = FLOW_ENDED;
    return ING_OK;
}

static ing_status stmt_break(frame *fr, ing_node n, flow *out) {
    return leave_loop(fr, n, true, out);
}

static ing_status stmt_continue(frame *fr, ing_node n, flow *out) {
    return leave_loop(fr, n, false, out);
}

/* ---- return, assert, the rest --------------------------------------------------------------------- */

static ing_status struct_result(frame *fr, ing_node n, ing_node at, const value *v,
                                const ing_gate_struct *layout, uint32_t *slot) {
    value *numbers =
        ING_NEW_ARRAY(&fr->lo->arena, (size_t)layout->n_numbers + 1, value);
    if (!numbers)
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    ING_TRY(ing_front_struct_numbers(fr, at, v, layout, numbers));
    fr->b.loc = n;
    for (uint32_t k = 0; k < layout->n_numbers; k++)
        ing_ir_emit(&fr->b, ING_OP_SET_RET, 0, (*slot)++, numbers[k].inst, 0);
    return ING_OK;
}

ing_node ing_front_result_node(const frame *fr, ing_node n, uint32_t i,
                               uint32_t count) {
    ing_node v = NF(fr->t, n, RETURN)->value;
    if (!v || fr->t->nodes.at[v].kind != ING_NODE_TUPLE) return v ? v : n;
    uint32_t elts = NF(fr->t, v, TUPLE)->elts;
    bool apart = list_len(fr->t, elts) == count && i < count;
    for (uint32_t k = 0; apart && k < count; k++)
        apart = fr->t->nodes.at[list_at(fr->t, elts, k)].kind != ING_NODE_STARRED;
    return apart ? list_at(fr->t, elts, i) : v;
}

static ing_status kernel_return(frame *fr, ing_node n, const value *v) {
    const ing_gate_returns *r = &fr->returns;
    if (!r->given || r->n == 0)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "annotate it, e.g. def k() -> qd.f32",
            "A kernel with a return value must be annotated with a return type, "
            "e.g. def func() -> qd.f32");
    value one = *v, *items = &one;
    uint32_t count = 1;
    bool ok = true,
         whole = r->n == 1 && !r->tuple && (r->tensors[0].rank || r->layouts[0]);
    if (!ing_front_is_scalar(v) && !whole)
        ING_TRY(ing_front_items(fr, n, v, &items, &count, &ok));
    if (!ok) items = &one, count = 1;
    if (count != r->n)
        return ing_front_fail_at(
            fr, n, ING_TYPE,
            "return as many values as the annotation names, or annotate each: "
            "-> (qd.i32, qd.f32)",
            "the kernel is annotated to return %u value%s, this returns %u", r->n,
            r->n == 1 ? "" : "s", count);
    for (uint32_t i = 0, slot = 0; i < count; i++) {
        value *part = &items[i];
        ing_node at = ing_front_result_node(fr, n, i, count);
        uint32_t inst = 0, m = 1;
        if (r->layouts[i]) {
            ING_TRY(struct_result(fr, n, at, &items[i], r->layouts[i], &slot));
            continue;
        }
        if (r->tensors[i].rank)
            ING_TRY(ing_front_tensor_results(fr, at, &items[i], &r->tensors[i],
                                             r->dtypes[i], &part, &m));
        for (uint32_t k = 0; k < m; k++) {
            ING_TRY(ing_front_convert(fr, at, &part[k], r->dtypes[i], &inst));
            fr->b.loc = n;
            ing_ir_emit(&fr->b, ING_OP_SET_RET, 0, slot++, inst, 0);
        }
    }
    return ING_OK;
}

static ing_status stmt_return(frame *fr, ing_node n, flow *out) {
    const struct nf_RETURN *f = NF(fr->t, n, RETURN);
    value v = ing_front_none();
    *out = FLOW_ENDED;
    if (fr->top && fr->control)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX,
            "set a variable in the branch or loop and return it at the end",
            "Return inside non-static if/for is not supported in %s",
            fr->kernel ? "kernels" : "funcs that require the top level");
    if (fr->regions)
        return ing_front_fail_at(fr, n, ING_SYNTAX,
                                 "set its flag to 0: the body runs to the end",
                                 "`return` cannot leave the body of a graph construct");
    if (f->value) ING_TRY(ing_front_expr_forced(fr, f->value, &v));
    fr->b.loc = n;
    if (!fr->kernel) return ing_front_func_return(fr, n, &v);
    if (v.kind == V_NONE) return ING_OK;
    fr->returned = true;
    return kernel_return(fr, n, &v);
}

static ing_status stmt_expr(frame *fr, ing_node n, flow *out) {
    (void)out;
    ing_node v = NF(fr->t, n, EXPR)->value;
    if (fr->t->nodes.at[v].kind == ING_NODE_CONSTANT)
        return ING_OK; /* docstring, `...` */
    value ignored;
    return ing_front_expr(fr, v, &ignored);
}

static ing_status stmt_pass(frame *fr, ing_node n, flow *out) {
    (void)fr, (void)n, (void)out;
    return ING_OK;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static const stmt_fn table[ING_NODE_N] = {
    [ING_NODE_RETURN] = stmt_return,
    [ING_NODE_ASSIGN] = ing_front_stmt_assign,
    [ING_NODE_AUGASSIGN] = ing_front_stmt_augassign,
    [ING_NODE_ANNASSIGN] = ing_front_stmt_annassign,
    [ING_NODE_FOR] = ing_front_stmt_for,
    [ING_NODE_WHILE] = stmt_while,
    [ING_NODE_WITH] = ing_front_stmt_with,
    [ING_NODE_IF] = stmt_if,
    [ING_NODE_ASSERT] = ing_front_stmt_assert,
    [ING_NODE_EXPR] = stmt_expr,
    [ING_NODE_PASS] = stmt_pass,
    [ING_NODE_BREAK] = stmt_break,
    [ING_NODE_CONTINUE] = stmt_continue,
};

ing_status ing_front_statements(frame *fr, uint32_t list, flow *out) {
    *out = FLOW_NEXT;
    for (uint32_t i = 0; i < list_len(fr->t, list) && *out == FLOW_NEXT; i++) {
        ing_node n = list_at(fr->t, list, i);
        uint8_t kind = fr->t->nodes.at[n].kind;
        stmt_fn f = table[kind];
        if (!f) return ing_front_unsupported(fr, n);
        if (fr->lo->region == ING_OP_FORK && kind != ING_NODE_WITH &&
            kind != ING_NODE_IF && kind != ING_NODE_FOR && kind != ING_NODE_PASS)
            return ing_front_fork_only(fr, n);
        ing_status s = ing_front_deeper(fr, n);
        fr->b.loc = n;
        if (s == ING_OK) s = f(fr, n, out);
        fr->lo->depth--;
        ING_TRY(s);
    }
    return ING_OK;
}

ing_status ing_front_block(frame *fr, uint32_t list, flow *out) {
    uint32_t mark = ing_front_scope_open(fr), outer = fr->block;
    fr->block = mark;
    ing_status s = ing_front_statements(fr, list, out);
    fr->block = outer;
    ing_front_scope_close(fr, mark);
    return s;
}
