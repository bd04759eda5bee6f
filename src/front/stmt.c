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
    {"With", "`with` is not supported in kernels, but for qd.checkpoint and qd.graph",
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

/* A condition known while compiling prunes, under qd.static or not; only the former leaves
 * the branch at the level of the code around it. */
static ing_status stmt_if(frame *fr, ing_node n, flow *out) {
    const struct nf_IF *f = NF(fr->t, n, IF);
    value test;
    ING_TRY(ing_front_expr_forced(fr, f->test, &test));
    if (fr->lo->region == ING_OP_FORK && !test.from_static)
        return ing_front_fork_only(fr, n);
    if (ing_front_is_static(&test)) {
        bool truth = false;
        ING_TRY(ing_front_truth(fr, f->test, &test, &truth));
        uint32_t nested = !test.from_static;
        fr->control += nested;
        ing_status s = ing_front_block(fr, truth ? f->body : f->orelse, out);
        fr->control -= nested;
        return s;
    }
    uint32_t cond = 0, yes = 0, no = 0;
    flow a = FLOW_NEXT, b = FLOW_NEXT;
    ING_TRY(ing_front_condition(fr, f->test, &test, "if", &cond));
    ING_TRY(branch(fr, f->body, &yes, &a));
    if (list_len(fr->t, f->orelse)) ING_TRY(branch(fr, f->orelse, &no, &b));
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_IF, 0, cond, yes, no);
    *out = a == FLOW_ENDED && b == FLOW_ENDED ? FLOW_ENDED : FLOW_NEXT;
    return ING_OK;
}

/* ---- loops -------------------------------------------------------------------------------------- */

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
    if (list_len(fr->t, f->orelse))
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "use a flag variable",
            "'else' clause for 'while' not supported in Quadrants kernels");
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

static ing_status kernel_return(frame *fr, ing_node n, const value *v) {
    const ing_gate_returns *r = &fr->returns;
    if (!r->given || r->n == 0)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "annotate it, e.g. def k() -> qd.f32",
            "A kernel with a return value must be annotated with a return type, "
            "e.g. def func() -> qd.f32");
    value one = *v, *items = &one;
    uint32_t count = 1;
    bool ok = true, whole = r->n == 1 && !r->tuple && r->tensors[0].rank;
    if (!ing_front_is_scalar(v) && !whole)
        ING_TRY(ing_front_items(fr, n, v, &items, &count, &ok));
    if (!ok) items = &one, count = 1;
    if (count != r->n)
        return ing_front_fail_at(
            fr, n, ING_TYPE, "return as many values as the annotation names",
            "the kernel is annotated to return %u value%s, this returns %u", r->n,
            r->n == 1 ? "" : "s", count);
    for (uint32_t i = 0, slot = 0; i < count; i++) {
        value *part = &items[i];
        ing_node at = ing_front_result_node(fr, n, i, count);
        uint32_t inst = 0, m = 1;
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
