/* The structure of graph kernels: `while qd.graph.do_while(flag)`, `with qd.checkpoint(..)`,
 * `with qd.graph.parallel_context()` and `with qd.graph.parallel()`, as regions of the IR
 * (I8). Called by stmt.c for every `while` and `with`. What stands in a region is lowered as
 * in the outermost block: its loops are tasks. */
#include "front/front_int.h"

#include <string.h>

/* ---- recognising them ------------------------------------------------------------------- */

static const struct {
    ing_intrinsic id;
    const char *text, *flat; /* as it is written, and as it was written before */
} names[] = {
    {ING_IN_GRAPH_DO_WHILE, "qd.graph.do_while()", "graph_do_while"},
    {ING_IN_GRAPH_PARALLEL_CONTEXT, "qd.graph.parallel_context()",
     "graph_parallel_context"},
    {ING_IN_GRAPH_PARALLEL, "qd.graph.parallel()", "graph_parallel"},
    {ING_IN_CHECKPOINT, "qd.checkpoint()", NULL},
    {ING_IN_STREAM_PARALLEL, "qd.stream_parallel()", NULL},
};

/* A name outside of the function, or attributes of one: looking it up does nothing else. */
static bool is_outside_name(frame *fr, ing_node n) {
    while (fr->t->nodes.at[n].kind == ING_NODE_ATTRIBUTE)
        n = NF(fr->t, n, ATTRIBUTE)->value;
    return fr->t->nodes.at[n].kind == ING_NODE_NAME &&
           !ing_front_scope_find(fr, NF(fr->t, n, NAME)->id - 1);
}

static const char *last_name(const frame *fr, ing_node n) {
    bool attr = fr->t->nodes.at[n].kind == ING_NODE_ATTRIBUTE;
    return ing_front_atom_text(fr, attr ? NF(fr->t, n, ATTRIBUTE)->attr
                                        : NF(fr->t, n, NAME)->id);
}

/* Which construct a call is, ING_IN_NONE: none of these. */
static ing_status construct(frame *fr, ing_node n, ing_intrinsic *out) {
    value v;
    *out = ING_IN_NONE;
    if (fr->t->nodes.at[n].kind != ING_NODE_CALL) return ING_OK;
    ing_node callee = NF(fr->t, n, CALL)->func;
    if (!is_outside_name(fr, callee)) return ING_OK;
    ING_TRY(ing_front_expr_forced(fr, callee, &v));
    if (v.kind != V_INTRINSIC) return ING_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (v.tag != names[i].id) continue;
        *out = names[i].id;
        if (!names[i].flat || strcmp(last_name(fr, callee), names[i].flat) != 0) break;
        ING_TRY(ing_front_warn_at(fr, n, "DeprecationWarning",
                                  "qd.%s is deprecated: write %s", names[i].flat,
                                  names[i].text));
    }
    return ING_OK;
}

/* ---- where they may stand ------------------------------------------------------------------- */

static ing_status need_graph(frame *fr, ing_node n, const char *what) {
    if (fr->lo->gate->graph) return ING_OK;
    return ing_front_fail_at(fr, n, ING_SYNTAX, "decorate the kernel with graph=True",
                             "%s requires @qd.kernel(graph=True)", what);
}

static ing_status refuse_in_section(frame *fr, ing_node n, const char *what) {
    if (fr->lo->region != ING_OP_SECTION) return ING_OK;
    return ing_front_fail_at(
        fr, n, ING_SYNTAX,
        "put it around the qd.graph.parallel_context(), not into a section",
        "%s cannot appear inside a qd.graph.parallel() section", what);
}

static ing_status need_top(frame *fr, ing_node n, const char *what) {
    if (fr->top && fr->control == 0 &&
        (!fr->lo->region || fr->lo->region == ING_OP_DO_WHILE))
        return ING_OK;
    return ing_front_fail_at(
        fr, n, ING_SYNTAX,
        "move it out of the loop, branch or block; a func that contains it must be "
        "called there too",
        "%s can only be used at the kernel top level, or directly inside the body of a "
        "qd.graph.do_while()",
        what);
}

ing_status ing_front_fork_only(frame *fr, ing_node n) {
    return ing_front_fail_at(
        fr, n, ING_SYNTAX,
        "put the work into a section; only `if qd.static(...)` and `for ... in "
        "qd.static(...)` may stand around sections",
        "a qd.graph.parallel_context() may contain only `with qd.graph.parallel():` "
        "blocks");
}

/* ---- flags --------------------------------------------------------------------------------- */

static bool is_path(const frame *fr, ing_node n) {
    while (fr->t->nodes.at[n].kind == ING_NODE_ATTRIBUTE)
        n = NF(fr->t, n, ATTRIBUTE)->value;
    return fr->t->nodes.at[n].kind == ING_NODE_NAME;
}

static ing_status fail_flag(frame *fr, ing_node n, const char *what,
                            const char *found) {
    return ing_front_fail_at(
        fr, n, ING_SYNTAX,
        "pass an array of i32 without axes: "
        "qd.types.ndarray(qd.i32, ndim=0), qd.ndarray(qd.i32, ())",
        "the flag of %s does not resolve to an ndarray kernel parameter or member of "
        "type i32 without axes; this is %s",
        what, found);
}

/* The ARRAY instruction of the flag. */
static ing_status flag_of(frame *fr, ing_node n, const char *what, uint32_t *inst) {
    value v;
    if (!is_path(fr, n))
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "give it a name first, or pass it as a parameter",
            "the flag of %s must reference a kernel ndarray argument: a name, or "
            "attributes of one",
            what);
    ing_status s = ing_front_expr_forced(fr, n, &v);
    if (s != ING_OK && s != ING_MEMORY && s != ING_PYTHON && s != ING_INTERNAL) {
        ing_err_fini(fr->lo->e);
        ing_err_init(fr->lo->e);
        return fail_flag(fr, n, what, "nothing that a kernel can read");
    }
    ING_TRY(s);
    const ing_type_info *t =
        v.kind == V_ARRAY ? ing_ir_type(fr->lo->mod, v.type) : NULL;
    if (!t || t->rank != 0 || t->elem != ING_I32)
        return fail_flag(fr, n, what, ing_front_describe(fr, &v));
    if (t->place && t->place->at) /* a step knows the address of a block, and no more */
        return fail_flag(fr, n, what, "a field that is not the first one in its block");
    *inst = v.inst;
    return ING_OK;
}

/* ---- regions -------------------------------------------------------------------------------- */

/* Lowers a body as the block of a region; its names end with it. */
static ing_status region(frame *fr, ing_op op, uint32_t list, uint32_t *block) {
    lowering *lo = fr->lo;
    ing_op around = lo->region;
    loop l = {.outer = fr->loops, .region = true, .control = fr->control};
    flow inner = FLOW_NEXT;
    ing_ir_block_begin(&fr->b);
    lo->region = op;
    fr->regions++;
    fr->loops = &l;
    ing_status s = ing_front_block(fr, list, &inner);
    fr->loops = l.outer;
    fr->regions--;
    lo->region = around;
    *block = ing_ir_block_end(&fr->b);
    return s;
}

ing_status ing_front_do_while(frame *fr, ing_node n, bool *done) {
    const struct nf_WHILE *f = NF(fr->t, n, WHILE);
    const char *what = "qd.graph.do_while()";
    ing_intrinsic id;
    ING_TRY(construct(fr, f->test, &id));
    *done = id == ING_IN_GRAPH_DO_WHILE;
    if (!*done) return ING_OK;
    ING_TRY(need_graph(fr, n, what));
    ING_TRY(refuse_in_section(fr, n, what));
    if (fr->lo->region == ING_OP_FORK) return ing_front_fork_only(fr, n);
    ING_TRY(need_top(fr, n, what));
    const struct nf_CALL *c = NF(fr->t, f->test, CALL);
    if (list_len(fr->t, c->args) != 1 || list_len(fr->t, c->keywords))
        return ing_front_fail_at(fr, f->test, ING_SYNTAX,
                                 "write while qd.graph.do_while(flag)",
                                 "%s takes one argument, the flag", what);
    uint32_t flag = 0, block = 0;
    ING_TRY(flag_of(fr, list_at(fr->t, c->args, 0), what, &flag));
    ING_TRY(region(fr, ING_OP_DO_WHILE, f->body, &block));
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_DO_WHILE, 0, flag, block, 0);
    return ING_OK;
}

/* ---- checkpoints ------------------------------------------------------------------------------ */

typedef struct checkpoint_args {
    ing_node label, flag;
} checkpoint_args;

static ing_status read_checkpoint(frame *fr, ing_node call, checkpoint_args *out) {
    const struct nf_CALL *c = NF(fr->t, call, CALL);
    const char *remedy = "write with qd.checkpoint(cp_id, yield_on=flag)";
    uint32_t n = list_len(fr->t, c->args);
    ing_node *place[2] = {&out->label, &out->flag};
    *out = (checkpoint_args){0};
    for (uint32_t i = 0; i < n && i < 2; i++) *place[i] = list_at(fr->t, c->args, i);
    for (uint32_t i = 0; i < list_len(fr->t, c->keywords); i++) {
        ing_node kw = list_at(fr->t, c->keywords, i);
        const char *name = ing_front_atom_text(fr, NF(fr->t, kw, KEYWORD)->arg);
        bool label = strcmp(name, "cp_id") == 0, flag = strcmp(name, "yield_on") == 0;
        if (!label && !flag)
            return ing_front_fail_at(
                fr, kw, ING_SYNTAX, remedy,
                "qd.checkpoint() got an unexpected keyword argument '%s'", name);
        *place[flag] = NF(fr->t, kw, KEYWORD)->value;
    }
    if (n > 2 || !out->label)
        return ing_front_fail_at(
            fr, call, ING_SYNTAX, remedy,
            "a checkpoint takes a label and a flag: qd.checkpoint(cp_id, "
            "yield_on=flag)");
    if (!out->flag)
        return ing_front_fail_at(
            fr, call, ING_SYNTAX, remedy,
            "qd.checkpoint() is missing required argument `yield_on`");
    return ING_OK;
}

/* Notes the label: its number, and where the object itself is found (0: a literal). */
static ing_status take_label(frame *fr, ing_node n, uint32_t *stage) {
    value v;
    ING_TRY(ing_front_expr_forced(fr, n, &v));
    ing_front_stage s = {.ref = v.gref};
    ING_TRY(ing_front_enum_value(fr, n, &v));
    if (v.kind != V_INT || v.wide)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "use a number, or a member of an enum.IntEnum",
            "the label of a checkpoint must be an int literal or an IntEnum value; "
            "this is %s",
            ing_front_describe(fr, &v));
    s.label = v.i;
    ing_front_result *out = fr->lo->out;
    for (uint32_t i = 0; i < out->stages.len; i++)
        if (out->stages.at[i].label == s.label)
            return ing_front_fail_at(
                fr, n, ING_SYNTAX, "give each checkpoint a label of its own",
                "the label %lld is already used by another checkpoint of this kernel",
                (long long)s.label);
    *stage = out->stages.len;
    fr->lo->mod->n_stages++;
    return ing_vec_push(&out->stages, s)
               ? ING_OK
               : ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

/* A directive for the loop that follows: no task. */
static ing_status is_directive(frame *fr, ing_node n, bool *out) {
    value v;
    *out = fr->t->nodes.at[n].kind == ING_NODE_CONSTANT; /* docstring */
    if (fr->t->nodes.at[n].kind != ING_NODE_CALL ||
        !is_outside_name(fr, NF(fr->t, n, CALL)->func))
        return ING_OK;
    ING_TRY(ing_front_expr_forced(fr, NF(fr->t, n, CALL)->func, &v));
    *out = v.kind == V_INTRINSIC && v.tag == ING_IN_LOOP_CONFIG;
    return ING_OK;
}

/* Every statement of the body becomes tasks of its own; none may hide that. */
static ing_status check_body(frame *fr, uint32_t list) {
    for (uint32_t i = 0; i < list_len(fr->t, list); i++) {
        ing_node n = list_at(fr->t, list, i);
        uint8_t kind = fr->t->nodes.at[n].kind;
        bool expr = kind == ING_NODE_EXPR;
        if (!expr && kind != ING_NODE_ASSIGN && kind != ING_NODE_AUGASSIGN &&
            kind != ING_NODE_ANNASSIGN)
            continue;
        bool directive = false;
        if (expr) ING_TRY(is_directive(fr, NF(fr->t, n, EXPR)->value, &directive));
        if (directive) continue;
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "wrap it in a loop: for _ in range(1):",
            "bare top-level %s statement in a checkpoint: each statement there is a "
            "task of its own, so it is written as one, `for _ in range(1):`",
            ing_front_shape_get(kind)->text);
    }
    return ING_OK;
}

static ing_status checkpoint(frame *fr, ing_node n, ing_node call, uint32_t body) {
    const char *what = "qd.checkpoint()";
    checkpoint_args a;
    ING_TRY(refuse_in_section(fr, n, what));
    ING_TRY(need_graph(fr, n, what));
    if (fr->lo->region == ING_OP_FORK) return ing_front_fork_only(fr, n);
    if (!fr->lo->gate->checkpoints)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "add checkpoints=True to its decorator",
            "%s needs a kernel with @qd.kernel(graph=True, checkpoints=True)", what);
    if (fr->lo->region == ING_OP_CHECKPOINT)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "put them one after the other",
                                 "checkpoints cannot be nested");
    ING_TRY(need_top(fr, n, what));
    ING_TRY(read_checkpoint(fr, call, &a));
    uint32_t stage = 0, flag = 0, block = 0;
    ING_TRY(take_label(fr, a.label, &stage));
    ING_TRY(flag_of(fr, a.flag, what, &flag));
    ING_TRY(check_body(fr, body));
    ING_TRY(region(fr, ING_OP_CHECKPOINT, body, &block));
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_CHECKPOINT, 0, flag, stage, block);
    return ING_OK;
}

/* ---- sections ------------------------------------------------------------------------------------ */

static ing_status no_arguments(frame *fr, ing_node call, const char *what) {
    const struct nf_CALL *c = NF(fr->t, call, CALL);
    if (!list_len(fr->t, c->args) && !list_len(fr->t, c->keywords)) return ING_OK;
    return ing_front_fail_at(fr, call, ING_SYNTAX, "leave them out",
                             "%s takes no arguments", what);
}

static ing_status parallel_context(frame *fr, ing_node n, ing_node call,
                                   uint32_t body) {
    const char *what = "qd.graph.parallel_context()";
    ING_TRY(need_graph(fr, n, what));
    ING_TRY(refuse_in_section(fr, n, what));
    if (fr->lo->region == ING_OP_FORK) return ing_front_fork_only(fr, n);
    if (fr->lo->gate->checkpoints)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "use two kernels, or leave out checkpoints=True",
            "%s cannot be used in a kernel with checkpoints=True: a resume could not "
            "tell which of its sections to skip",
            what);
    ING_TRY(need_top(fr, n, what));
    ING_TRY(no_arguments(fr, call, what));
    uint32_t block = 0;
    ING_TRY(region(fr, ING_OP_FORK, body, &block));
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_FORK, 0, block, 0, 0);
    return ING_OK;
}

static ing_status section(frame *fr, ing_node n, ing_node call, uint32_t body) {
    const char *what = "qd.graph.parallel()";
    ING_TRY(need_graph(fr, n, what));
    if (fr->lo->region == ING_OP_SECTION)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "put them side by side",
                                 "qd.graph.parallel() sections cannot be nested");
    if (fr->lo->region != ING_OP_FORK || !fr->top || fr->control)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "put `with qd.graph.parallel_context():` around it",
            "%s can only be used directly inside a qd.graph.parallel_context()", what);
    ING_TRY(no_arguments(fr, call, what));
    uint32_t block = 0;
    ING_TRY(region(fr, ING_OP_SECTION, body, &block));
    fr->b.loc = n;
    ing_ir_emit(&fr->b, ING_OP_SECTION, 0, block, 0, 0);
    return ING_OK;
}

/* ---- streams ------------------------------------------------------------------------------------- */

/* On devices the blocks of a kernel run side by side: nothing else may stand beside them. */
static ing_status blocks_only(frame *fr, uint32_t list) {
    for (uint32_t i = 0; i < list_len(fr->t, list); i++) {
        ing_node n = list_at(fr->t, list, i);
        uint8_t kind = fr->t->nodes.at[n].kind;
        if (kind == ING_NODE_WITH || kind == ING_NODE_PASS) continue;
        if (kind == ING_NODE_EXPR && /* docstring */
            fr->t->nodes.at[NF(fr->t, n, EXPR)->value].kind == ING_NODE_CONSTANT)
            continue;
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "put it into a block of its own, or into another kernel",
            "all top-level statements of a kernel with qd.stream_parallel() blocks "
            "must "
            "be such blocks");
    }
    return ING_OK;
}

/* The blocks run one after the other, as if their statements stood in the kernel's body. */
static ing_status stream_block(frame *fr, ing_node n, ing_node call, uint32_t body,
                               flow *out) {
    const char *what = "qd.stream_parallel()";
    if (fr->lo->gate->graph)
        return ing_front_fail_at(fr, n, ING_SYNTAX,
                                 "use qd.graph.parallel_context(), or leave out "
                                 "graph=True",
                                 "%s is not compatible with graph=True kernels", what);
    if (fr->lo->stream)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "put them one after the other",
                                 "%s blocks cannot be nested", what);
    if (!fr->kernel || !fr->top || fr->control || fr->loops)
        return ing_front_fail_at(
            fr, n, ING_SYNTAX, "move it out of the func, loop or branch",
            "%s can only be used inside @qd.kernel, at its top level", what);
    ING_TRY(no_arguments(fr, call, what));
    ING_TRY(blocks_only(fr, NF(fr->t, fr->t->root, FUNCTION)->body));
    fr->lo->stream = true;
    ing_status s = ing_front_block(fr, body, out);
    fr->lo->stream = false;
    return s;
}

ing_status ing_front_stmt_with(frame *fr, ing_node n, flow *out) {
    const struct nf_WITH *f = NF(fr->t, n, WITH);
    ing_node item = list_at(fr->t, f->items, 0);
    ing_node call = NF(fr->t, item, WITHITEM)->context_expr;
    ing_intrinsic id = ING_IN_NONE;
    if (list_len(fr->t, f->items) > 1)
        return ing_front_fail_at(fr, n, ING_SYNTAX, "write a `with` for each",
                                 "`with` takes a single context manager in kernels");
    if (fr->t->nodes.at[call].kind != ING_NODE_CALL)
        return ing_front_fail_at(fr, call, ING_SYNTAX, "write qd.stream_parallel()",
                                 "`with` requires a call expression in kernels");
    ING_TRY(construct(fr, call, &id));
    if (id == ING_IN_NONE || id == ING_IN_GRAPH_DO_WHILE)
        return ing_front_unsupported(fr, n);
    if (NF(fr->t, item, WITHITEM)->optional_vars)
        return ing_front_fail_at(
            fr, call, ING_SYNTAX, "leave out `as`",
            "`with ... as` is not supported in kernels: this gives "
            "nothing that could be named");
    if (id == ING_IN_STREAM_PARALLEL) return stream_block(fr, n, call, f->body, out);
    if (id == ING_IN_CHECKPOINT) return checkpoint(fr, n, call, f->body);
    if (id == ING_IN_GRAPH_PARALLEL) return section(fr, n, call, f->body);
    return parallel_context(fr, n, call, f->body);
}
