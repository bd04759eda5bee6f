/* LLVM IR text of one task and the funcs it reaches. Called by src/compile with a module
 * from ing_ir_extract_task. The order is: plan, then each function (entry and body are
 * written to buffers, so that an alloca can be added late), then helper functions,
 * declarations and metadata. Must never let anything but the module and the options into
 * the text: equal input gives equal bytes (R6, R18). docs/internals/codegen.md tells the
 * rules that the text follows. */
#include "gen/gen_int.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 512 };

/* ---- writing ----------------------------------------------------------------------- */

void ing_gen_fail(ing_gen *g, const char *what) {
    if (g->status == ING_OK) g->status = ing_fail(g->e, ING_INTERNAL, "gen: %s", what);
}

static void put_v(ing_gen *g, ing_bytes *out, const char *fmt, va_list ap) {
    char line[LINE_MAX_BYTES];
    int n = vsnprintf(line, sizeof line, fmt, ap);
    if (n < 0 || n >= (int)sizeof line) {
        ing_gen_fail(g, "line too long");
        return;
    }
    ing_bytes_put(out, line, (size_t)n);
}

void ing_gen_put(ing_gen *g, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    put_v(g, &g->body, fmt, ap);
    va_end(ap);
}

ing_gen_txt ing_gen_def(ing_gen *g, const char *fmt, ...) {
    ing_gen_txt t = ing_gen_text("%%t%u", g->n_tmp++);
    ing_bytes_printf(&g->body, "  %s = ", t.s);
    va_list ap;
    va_start(ap, fmt);
    put_v(g, &g->body, fmt, ap);
    va_end(ap);
    ing_bytes_puts(&g->body, "\n");
    return t;
}

ing_gen_txt ing_gen_text(const char *fmt, ...) {
    ing_gen_txt t;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t.s, sizeof t.s, fmt, ap);
    va_end(ap);
    return t;
}

void ing_gen_declare(ing_gen *g, const char *fmt, ...) {
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof line)
        ing_gen_fail(g, "declaration too long");
    else if (ing_atoms_add(&g->decls, line, (size_t)n) == UINT32_MAX)
        g->arena.failed = true;
}

void ing_gen_keep(ing_gen *g, const char *fmt, ...) {
    char name[64];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof name) ing_gen_fail(g, "name too long");
    ing_bytes_printf(&g->kept, "%sptr @%s", g->n_kept++ ? ", " : "", name);
}

/* ---- types -------------------------------------------------------------------------- */

static const char *scalar_name(ing_dtype t) {
    switch (t) {
    case ING_U1: return "i1";
    case ING_I8:
    case ING_U8: return "i8";
    case ING_I16:
    case ING_U16: return "i16";
    case ING_I32:
    case ING_U32: return "i32";
    case ING_I64:
    case ING_U64: return "i64";
    case ING_F16: return "half";
    case ING_F32: return "float";
    case ING_F64: return "double";
    default: return "void";
    }
}

ing_gen_txt ing_gen_type_mem(const ing_gen *g, ing_type t) {
    if (t == ING_U1) return ing_gen_text("i8");
    if (t < ING_DTYPE_N) return ing_gen_text("%s", scalar_name((ing_dtype)t));
    const ing_type_info *i = ing_ir_type(g->m, t);
    switch (i->kind) {
    case ING_TYPE_TENSOR:
        return ing_gen_text("[%llu x %s]", (unsigned long long)i->rows * i->cols,
                            i->dtype == ING_U1 ? "i8"
                                               : scalar_name((ing_dtype)i->dtype));
    case ING_TYPE_STRUCT: return ing_gen_text("%%s%u", t);
    default: return ing_gen_text("ptr");
    }
}

ing_gen_txt ing_gen_type(const ing_gen *g, ing_type t) {
    return t == ING_U1 ? ing_gen_text("i1") : ing_gen_type_mem(g, t);
}

/* A struct names its member structs, so nesting needs no recursion here. */
static void put_struct_types(ing_gen *g) {
    for (uint32_t t = ING_DTYPE_N; t < g->m->types.len; t++) {
        const ing_type_info *i = ing_ir_type(g->m, t);
        if (i->kind != ING_TYPE_STRUCT) continue;
        ing_bytes_printf(g->out, "%%s%u = type {", t);
        for (uint32_t k = 0; k < i->n_members; k++)
            ing_bytes_printf(g->out, "%s %s", k ? "," : "",
                             ing_gen_type_mem(g, i->members[k]).s);
        ing_bytes_puts(g->out, " }\n");
    }
}

void ing_gen_put_ret_type(ing_gen *g, ing_bytes *out, uint32_t func) {
    const ing_ir_func *f = g->m->funcs.at[func];
    bool stops = g->plans[func].stops;
    if (f->kind == ING_IR_TASK || (stops && f->ret == ING_VOID))
        ing_bytes_puts(out, "i32");
    else if (stops)
        ing_bytes_printf(out, "{ %s, i32 }", ing_gen_type(g, f->ret).s);
    else
        ing_bytes_puts(out, ing_gen_type(g, f->ret).s);
}

/* ---- functions ---------------------------------------------------------------------- */

#define CTX_PARAM "ptr noalias noundef nonnull align 8 dereferenceable(%zu) %%ctx"

enum { MOST_TWICE = 400 }; /* instructions of a task that is written twice */

/* Between parts LLVM sees a declaration: that pointers go no further is said there. */
static void put_params(ing_gen *g, uint32_t fi, bool names) {
    const ing_ir_func *f = g->m->funcs.at[fi];
    ing_bytes_printf(g->out, " @f%u(" CTX_PARAM, fi, sizeof(ing_ctx));
    for (uint32_t k = 0; k < f->n_params; k++) {
        const ing_type_info *t = ing_ir_type(g->m, f->params[k]);
        ing_bytes_printf(g->out, ", %s", ing_gen_type(g, f->params[k]).s);
        if (t->kind == ING_TYPE_ARRAY)
            ing_bytes_printf(g->out, " noundef nonnull align 8 dereferenceable(%u)",
                             8 * ing_ir_type_words(g->m, f->params[k]));
        if (g->plans[fi].shared &&
            (t->kind == ING_TYPE_ARRAY || t->kind == ING_TYPE_REF))
            ing_bytes_puts(g->out, " nocapture");
        if (names) ing_bytes_printf(g->out, " %%p%u", k);
    }
    ing_bytes_puts(g->out, ")");
}

static void put_header(ing_gen *g) {
    ing_bytes *out = g->out;
    if (g->f->kind == ING_IR_TASK) {
        static const char *const names[] = {"i32 @" ING_ABI_ENTRY, "internal i32 @mine",
                                            "internal i32 @ours"};
        ing_bytes_printf(
            out, "\ndefine %s(" CTX_PARAM ", i64 %%begin, i64 %%end, i64 %%chunk)",
            names[g->copies], sizeof(ing_ctx));
    } else {
        ing_bytes_printf(out, "\ndefine %s ", g->plan->shared ? "hidden" : "internal");
        ing_gen_put_ret_type(g, out, g->fi);
        put_params(g, g->fi, true);
    }
    ing_bytes_puts(out, " #0 {\nentry:\n");
}

static void put_declared(ing_gen *g, uint32_t fi) {
    ing_bytes_puts(g->out, "\ndeclare hidden ");
    ing_gen_put_ret_type(g, g->out, fi);
    put_params(g, fi, false);
    ing_bytes_puts(g->out, " #0\n");
}

const char *ing_gen_args(ing_gen *g) {
    if (!g->has_args) {
        g->has_args = true;
        ing_bytes_printf(&g->entry,
                         "  %%args.p = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
                         "  %%args = load ptr, ptr %%args.p, !invariant.load !%d, "
                         "!dereferenceable !%d, !align !%d\n",
                         offsetof(ing_ctx, args), ING_GEN_MD_EMPTY,
                         ING_GEN_MD_ARGS_SIZE, ING_GEN_MD_ARGS_ALIGN);
    }
    return "%args";
}

static void count_uses(ing_gen *g) {
    for (uint32_t id = 1; id < g->f->insts.len; id++) {
        ing_ir_uses u;
        ing_ir_inst_uses(g->f, ing_gen_inst(g, id), &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) g->uses[u.fixed[k]]++;
        for (uint32_t k = 0; k < u.n_list; k++) g->uses[u.list[k]]++;
    }
}

/* FLOW6 in llvm_flow.c. */
static void find_rivals(ing_gen *g) {
    for (uint32_t id = 1; id < g->f->insts.len; id++) {
        const ing_ir_inst *c = ing_gen_inst(g, id);
        if (c->op != ING_OP_LT && c->op != ING_OP_LE && c->op != ING_OP_GT &&
            c->op != ING_OP_GE)
            continue;
        const ing_ir_inst *a = ing_gen_inst(g, c->a), *b = ing_gen_inst(g, c->b);
        if (a->type >= ING_DTYPE_N || !ing_dtype_is_float((ing_dtype)a->type)) continue;
        if (a->op == ING_OP_LOAD) g->rivals[a->a] = c->b;
        if (b->op == ING_OP_LOAD) g->rivals[b->a] = c->a;
    }
}

static void open_function(ing_gen *g, uint32_t fi) {
    g->fi = fi;
    g->f = g->m->funcs.at[fi];
    g->plan = &g->plans[fi];
    g->n_tmp = g->n_label = g->printed_words = 0;
    g->has_args = g->has_buffer = g->has_tallies = g->has_rets = g->has_status =
        g->stop_label = g->ended = false;
    g->parallel = g->loop = g->paired = 0;
    ing_bytes_clear(&g->entry);
    ing_bytes_clear(&g->body);
    g->vals = ING_NEW_ARRAY(&g->arena, (size_t)g->f->insts.len + 1, ing_gen_txt);
    g->roots = ING_NEW_ARRAY(&g->arena, (size_t)g->f->insts.len + 1, uint8_t);
    g->uses = ING_NEW_ARRAY(&g->arena, (size_t)g->f->insts.len + 1, uint32_t);
    g->homes = ING_NEW_ARRAY(&g->arena, (size_t)g->f->insts.len + 1, uint32_t);
    g->words = ING_NEW_ARRAY(&g->arena, (size_t)g->m->n_words + 1, uint8_t);
    g->rivals = ING_NEW_ARRAY(&g->arena, (size_t)g->f->insts.len + 1, uint32_t);
    if (!g->vals || !g->roots || !g->uses || !g->homes || !g->words || !g->rivals) {
        g->status = ing_fail(g->e, ING_MEMORY, "out of memory while generating code");
        return;
    }
    count_uses(g);
    find_rivals(g);
}

/* Fuel lives in a register while a function runs: a counter in memory would put a
 * store-to-load round trip on every back edge. */
static void put_fuel_entry(ing_gen *g) {
    if (!g->plan->polls) return;
    ing_bytes_printf(g->out,
                     "  %%fuel = alloca i64, align 8\n"
                     "  %%fuel.p = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
                     "  %%fuel.0 = load i64, ptr %%fuel.p, align 8, !tbaa !%d\n"
                     "  store i64 %%fuel.0, ptr %%fuel, align 8\n",
                     offsetof(ing_ctx, fuel), ING_GEN_MD_LAUNCH);
}

/* Extents that are known (ing_ir_arg.last), for the funcs that LLVM inlines: they take them from
 * the arguments' words. */
static void put_known_extents(ing_gen *g) {
    if (g->f->kind != ING_IR_TASK || g->m->funcs.len < 2) return;
    for (uint32_t k = 0; k < g->m->args.len; k++) {
        const ing_ir_arg *a = &g->m->args.at[k];
        const ing_type_info *t = ing_ir_type(g->m, a->type);
        if (!a->last) continue;
        ing_gen_declare(g, "void @llvm.assume(i1)");
        ing_gen_args(g);
        ing_bytes_printf(
            &g->entry,
            "  %%last%u.p = getelementptr inbounds i8, ptr %%args, i64 %u\n"
            "  %%last%u = load i64, ptr %%last%u.p, align 8, "
            "!invariant.load !%d\n"
            "  %%last%u.is = icmp eq i64 %%last%u, %u\n"
            "  call void @llvm.assume(i1 %%last%u.is)\n",
            k, 8 * (a->word + 1 + t->layout[t->rank - 1]), k, k, ING_GEN_MD_EMPTY, k, k,
            a->last, k);
    }
}

static void put_function(ing_gen *g, uint32_t fi) {
    open_function(g, fi);
    if (g->status != ING_OK) return;
    put_known_extents(g);
    ing_gen_body(g);
    put_header(g);
    ing_bytes_put(g->out, g->entry.at, g->entry.len);
    if (g->printed_words)
        ing_bytes_printf(g->out, "  %%printed = alloca [%u x i64], align 8\n",
                         g->printed_words);
    put_fuel_entry(g);
    ing_bytes_puts(g->out, "  br label %body\nbody:\n");
    ing_bytes_put(g->out, g->body.at, g->body.len);
    ing_bytes_puts(g->out, "}\n");
    if (g->entry.failed || g->body.failed) g->out->failed = true;
}

/* A task that tallies floats in an inner loop is written twice, so that no loop has the choice in it. */
static bool is_twice(const ing_gen *g, uint32_t fi) {
    const ing_ir_func *f = g->m->funcs.at[fi];
    bool sums = false;
    for (uint32_t k = 1; k < f->insts.len && f->insts.len <= MOST_TWICE; k++) {
        const ing_ir_inst *i = &f->insts.at[k];
        sums |= i->op == ING_OP_ATOMIC && i->flags & ING_IR_TALLY &&
                ing_dtype_is_float((ing_dtype)i->type);
    }
    return sums;
}

static void put_task(ing_gen *g, uint32_t fi) {
    bool twice = is_twice(g, fi);
    g->copies = twice ? ING_GEN_COPIES_MINE : ING_GEN_COPIES_ASKED;
    put_function(g, fi);
    if (!twice || g->status != ING_OK) return;
    g->copies = ING_GEN_COPIES_NONE;
    put_function(g, fi);
    g->copies = ING_GEN_COPIES_ASKED;
    ing_bytes_printf(
        g->out,
        "\ndefine i32 @" ING_ABI_ENTRY
        "(ptr %%ctx, i64 %%begin, i64 %%end, i64 %%chunk) #0 {\n"
        "  %%p = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
        "  %%t = load i64, ptr %%p, align 8\n"
        "  %%no = icmp eq i64 %%t, 0\n"
        "  br i1 %%no, label %%o, label %%m\n"
        "m:\n"
        "  %%x = tail call i32 @mine(ptr %%ctx, i64 %%begin, i64 %%end, i64 %%chunk)\n"
        "  ret i32 %%x\n"
        "o:\n"
        "  %%y = tail call i32 @ours(ptr %%ctx, i64 %%begin, i64 %%end, i64 %%chunk)\n"
        "  ret i32 %%y\n"
        "}\n",
        offsetof(ing_ctx, tallies));
}

/* ---- module ------------------------------------------------------------------------- */

/* Fills the error slot unless another error came first (R24); returns the code. */
static void put_stop_function(ing_gen *g) {
    if (!g->stop_fn) return;
    ing_bytes_printf(
        g->out,
        "\ndefine internal i32 @ing_stop(ptr %%ctx, i32 %%code, i32 %%func, i32 "
        "%%node) #1 {\n"
        "  %%ep = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
        "  %%e = load ptr, ptr %%ep, align 8\n"
        "  %%x = cmpxchg ptr %%e, i32 0, i32 %%code acq_rel monotonic, align 4\n"
        "  %%first = extractvalue { i32, i1 } %%x, 1\n"
        "  br i1 %%first, label %%fill, label %%done\n"
        "fill:\n"
        "  %%fp = getelementptr inbounds i8, ptr %%e, i64 %zu\n"
        "  store i32 %%func, ptr %%fp, align 4\n"
        "  %%np = getelementptr inbounds i8, ptr %%e, i64 %zu\n"
        "  store i32 %%node, ptr %%np, align 4\n"
        "  br label %%done\n"
        "done:\n"
        "  ret i32 %%code\n"
        "}\n",
        offsetof(ing_ctx, error), offsetof(ing_error_slot, func),
        offsetof(ing_error_slot, node));
}

static void put_kept(ing_gen *g) {
    if (!g->n_kept) return;
    ing_bytes_printf(g->out, "\n@llvm.compiler.used = appending global [%u x ptr] [",
                     g->n_kept);
    ing_bytes_put(g->out, g->kept.at, g->kept.len);
    ing_bytes_puts(g->out, "], section \"llvm.metadata\"\n");
    if (g->kept.failed) g->out->failed = true;
}

static void put_declarations(ing_gen *g) {
    ing_bytes_puts(g->out, "\n");
    for (uint32_t i = 1; i < g->decls.text.len; i++)
        ing_bytes_printf(g->out, "declare %s\n", ing_atoms_text(&g->decls, i));
}

/* What branches, loops and pointers are marked with. */
static void put_hints(ing_gen *g) {
    ing_bytes_printf(
        g->out,
        "!%d = !{!\"branch_weights\", i32 1, i32 4000}\n"
        "!%d = !{!\"branch_weights\", i32 4000, i32 1}\n!%d = !{i64 %llu}\n",
        ING_GEN_MD_UNLIKELY, ING_GEN_MD_LIKELY, ING_GEN_MD_ARGS_SIZE,
        8ull * (g->m->n_words ? g->m->n_words : 1));
    ing_bytes_printf(g->out,
                     "!%d = !{i64 8}\n!%d = !{!\"llvm.loop.unroll.full\"}\n"
                     "!%d = distinct !{!%d, !%d}\n",
                     ING_GEN_MD_ARGS_ALIGN, ING_GEN_MD_UNROLL, ING_GEN_MD_FULL_LOOP,
                     ING_GEN_MD_FULL_LOOP, ING_GEN_MD_UNROLL);
    ing_bytes_printf(g->out,
                     "!%d = !{!\"llvm.loop.vectorize.enable\", i1 false}\n"
                     "!%d = distinct !{!%d, !%d}\n",
                     ING_GEN_MD_SCALAR, ING_GEN_MD_SCALAR_LOOP, ING_GEN_MD_SCALAR_LOOP,
                     ING_GEN_MD_SCALAR);
    ing_bytes_printf(g->out,
                     "!%d = !{!\"llvm.loop.unroll.disable\"}\n"
                     "!%d = distinct !{!%d, !%d, !%d}\n",
                     ING_GEN_MD_ROLLED, ING_GEN_MD_RARE_LOOP, ING_GEN_MD_RARE_LOOP,
                     ING_GEN_MD_SCALAR, ING_GEN_MD_ROLLED);
    ing_bytes_printf(g->out,
                     "!%d = !{!\"scratch\", !%d, i64 0}\n!%d = !{!%d, !%d, i64 0}\n",
                     ING_GEN_MD_T_SCRATCH, ING_GEN_MD_ROOT, ING_GEN_MD_SCRATCH,
                     ING_GEN_MD_T_SCRATCH, ING_GEN_MD_T_SCRATCH);
}

static void put_tail(ing_gen *g) {
    uint32_t called = ing_gen_vector_width(g);
    uint32_t width = g->wide || called > 256 ? 512 : 256;
    /* ingot/_helper.py looks for these: options of LLVM, not of a function */
    const char *more = g->spreads ? " \"ingot-stores\"=\"single\"" : "";
    const char *pairs = g->n_parts > 1 ? " \"ingot-pairs\"=\"few\"" : "";
    const char *aligned = called ? " \"stackrealign\"" : "";
    for (int cold = 0; cold < 2; cold++)
        ing_bytes_printf(
            g->out,
            "\nattributes #%d = { %snounwind uwtable \"no-trapping-math\"=\"true\" "
            "\"prefer-vector-width\"=\"%u\"%s%s%s }",
            cold, cold ? "cold noinline " : "", width, aligned, more, pairs);
    ing_bytes_puts(g->out, "\n");
    ing_bytes_puts(g->out, "attributes #2 = { nounwind willreturn memory(none) }\n");
    ing_bytes_puts(g->out,
                   "attributes #3 = { nobuiltin nounwind willreturn memory(none) }\n");
    ing_bytes_printf(g->out,
                     "attributes #%d = { noinline nounwind willreturn speculatable "
                     "memory(none) }\n",
                     ING_GEN_ATTR_MATH);
    ing_bytes_printf(g->out,
                     "\n!%d = !{!\"ingot\"}\n!%d = !{!\"array\", !%d, i64 0}\n"
                     "!%d = !{!\"launch\", !%d, i64 0}\n",
                     ING_GEN_MD_ROOT, ING_GEN_MD_T_ARRAY, ING_GEN_MD_ROOT,
                     ING_GEN_MD_T_LAUNCH, ING_GEN_MD_ROOT);
    ing_bytes_printf(g->out, "!%d = !{!%d, !%d, i64 0}\n!%d = !{!%d, !%d, i64 0}\n",
                     ING_GEN_MD_ARRAY, ING_GEN_MD_T_ARRAY, ING_GEN_MD_T_ARRAY,
                     ING_GEN_MD_LAUNCH, ING_GEN_MD_T_LAUNCH, ING_GEN_MD_T_LAUNCH);
    ing_bytes_printf(g->out,
                     "!%d = !{}\n!%d = distinct !{}\n"
                     "!%d = !{!\"llvm.loop.parallel_accesses\", !%d}\n"
                     "!%d = distinct !{!%d, !%d}\n",
                     ING_GEN_MD_EMPTY, ING_GEN_MD_GROUP, ING_GEN_MD_PARALLEL,
                     ING_GEN_MD_GROUP, ING_GEN_MD_LOOP, ING_GEN_MD_LOOP,
                     ING_GEN_MD_PARALLEL);
    put_hints(g);
    ing_gen_scopes(g);
}

static void put_functions(ing_gen *g) {
    uint8_t *which = ing_gen_part(g);
    if (!which) {
        g->status = ing_fail(g->e, ING_MEMORY, "out of memory while generating code");
        return;
    }
    for (uint32_t i = 0; i < g->m->funcs.len && g->status == ING_OK; i++) {
        if (which[i] == ING_GEN_DEFINED) put_task(g, i);
        if (which[i] == ING_GEN_DEFINED) g->plans[i].counted = true;
        if (which[i] == ING_GEN_DECLARED) put_declared(g, i);
    }
}

static void put_module(ing_gen *g) {
    const ing_gen_target *t = g->o->target;
    ing_bytes_printf(g->out, "target datalayout = \"%s\"\ntarget triple = \"%s\"\n\n",
                     t->layout, t->triple);
    put_struct_types(g);
    put_functions(g);
    ing_gen_pow_functions(g);
    ing_gen_random_functions(g);
    ing_gen_vector_functions(g);
    ing_gen_divmod_functions(g);
    put_kept(g);
    put_stop_function(g);
    t->put_services(g->out, g->poll_fn, g->print_fn, g->room_fn);
    put_declarations(g);
    put_tail(g);
}

/* What the text of a part names, for the next one to begin with nothing. */
static void open_part(ing_gen *g) {
    ing_bytes_clear(&g->kept);
    ing_atoms_fini(&g->decls);
    ing_atoms_init(&g->decls);
    memset(g->vector_calls, 0, sizeof g->vector_calls);
    g->pow_types = g->n_kept = 0;
    g->stop_fn = g->poll_fn = g->print_fn = g->room_fn = false;
}

static void put_parts(ing_gen *g, ing_gen_texts *out) {
    for (g->part = 0; g->part < g->n_parts && g->status == ING_OK; g->part++) {
        ing_bytes text;
        ing_bytes_init(&text);
        g->out = &text;
        open_part(g);
        put_module(g);
        bool ok = !text.failed && !g->arena.failed && ing_vec_push(out, text);
        if (!ok) ing_bytes_fini(&text);
        if (!ok && g->status == ING_OK)
            g->status =
                ing_fail(g->e, ING_MEMORY, "out of memory while generating code");
    }
}

ing_status ing_gen_llvm(const ing_ir_mod *m, const ing_gen_options *o,
                        ing_gen_texts *out, ing_err *e) {
    if (m->tasks.len != 1)
        return ing_fail(e, ING_INTERNAL, "gen: %u tasks in the module, not one",
                        m->tasks.len);
    ing_gen g = {.m = m, .o = o, .e = e, .fmf = "", .fmf_fused = ""};
    ing_bytes_init(&g.entry);
    ing_bytes_init(&g.body);
    ing_bytes_init(&g.kept);
    ing_arena_init(&g.arena);
    ing_atoms_init(&g.decls);
    g.status = ing_gen_plan(&g);
    if (g.status == ING_OK) put_parts(&g, out);
    ing_vec_fini(&g.frames);
    ing_vec_fini(&g.edges);
    ing_atoms_fini(&g.decls);
    ing_arena_fini(&g.arena);
    ing_bytes_fini(&g.kept);
    ing_bytes_fini(&g.body);
    ing_bytes_fini(&g.entry);
    return g.status;
}

void ing_gen_texts_fini(ing_gen_texts *t) {
    for (uint32_t i = 0; i < t->len; i++) ing_bytes_fini(&t->at[i]);
    ing_vec_fini(t);
}

/* ---- options ------------------------------------------------------------------------ */

static const char *level_of(const ing_gen_options *o) {
    return o->isa_level ? o->isa_level : o->target->level;
}

ing_gen_level ing_gen_level_of(const ing_gen *g) {
    const char *name = level_of(g->o);
    const ing_gen_level *l = g->o->target->levels;
    while (l->name && strcmp(l->name, name) != 0) l++;
    return *l;
}

void ing_gen_helper_options(const ing_gen_options *o, ing_bytes *out) {
    ing_bytes_printf(out, "triple=%s features=%s level=%u cpu=%s fast=%d",
                     o->target->triple, o->target->features, o->opt_level, level_of(o),
                     o->fast_math);
}

void ing_gen_key(const ing_gen_options *o, ing_hasher *h) {
    ing_hasher_u64(h, 'f', o->fast_math);
    ing_hasher_u64(h, 'v', o->fast_math ? o->vector_math : 0);
    ing_hasher_u64(h, 'o', o->opt_level);
    ing_hasher_str(h, 'i', level_of(o));
    ing_hasher_str(h, 't', o->target->triple);
    if (o->part_size) ing_hasher_u64(h, 'p', o->part_size);
}
