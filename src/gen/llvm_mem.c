/* Inputs, memory and aggregates as LLVM IR: arguments, array elements, loads, stores,
 * atomics, and access to members. Called by llvm_flow.c for each instruction.
 *
 * An array value is the address of its words in ing_ctx.args: data pointer, extents,
 * gradient (src/ir/ir.h). Those words never change while a task runs, so loads of them
 * are invariant and LLVM hoists them. Addresses come from getelementptr only; integers
 * are never turned into pointers. */
#include "gen/gen_int.h"

#include <stddef.h>

typedef ing_gen_txt txt;

enum {
    MAX_PIECES = 16,
    /* Locals live on the stack of a thread, all functions of a task at once at worst. */
    MAX_LOCAL_BYTES = 1 << 20,
};

#define GROUP   ", !llvm.access.group !6"
#define ARRAY   ", !tbaa !3"
#define LAUNCH  ", !tbaa !4"
#define NOWRITE ", !invariant.load !5"
#define SCRATCH ", !tbaa !15"
_Static_assert(ING_GEN_MD_SCRATCH == 15, "the literal above");
_Static_assert(ING_GEN_MD_ARRAY == 3 && ING_GEN_MD_LAUNCH == 4 &&
                   ING_GEN_MD_EMPTY == 5 && ING_GEN_MD_GROUP == 6,
               "the literals above");

const char *ing_gen_access(ing_gen *g, ing_gen_root root) {
    bool group = g->parallel && !g->woven;
    switch (root) {
    case ING_GEN_ARRAY: return ing_gen_with_scope(g, group ? ARRAY GROUP : ARRAY);
    case ING_GEN_TALLY: return ing_gen_with_scope(g, ARRAY);
    case ING_GEN_BUFFER: return group ? LAUNCH GROUP : LAUNCH;
    case ING_GEN_SCRATCH: return SCRATCH;
    case ING_GEN_CONTEXT: return group ? NOWRITE GROUP : NOWRITE;
    case ING_GEN_LANES: return group ? GROUP : "";
    default:
        return ""; /* locals: all iterations share the alloca, so never in a group */
    }
}

/* ---- inputs ------------------------------------------------------------------------ */

/* An argument's word, as one of three kinds: p a pointer, x an extent, s a scalar. Loaded once, at the
 * entry: where only a branch needs it LLVM would leave it in the loop, and take vectors as short
 * as of its 64 bits. */
static txt arg_word(ing_gen *g, uint64_t word, char kind, const char *type) {
    txt name = ing_gen_text("%%w%llu%c", (unsigned long long)word, kind);
    uint8_t bit = kind == 'p' ? 1 : kind == 'x' ? 2 : 4;
    if (g->words[word] & bit) return name;
    g->words[word] |= bit;
    ing_bytes_printf(&g->entry,
                     "  %s.a = getelementptr inbounds i8, ptr %s, i64 %llu\n"
                     "  %s = load %s, ptr %s.a, align 8" NOWRITE "\n",
                     name.s, ing_gen_args(g), 8ull * word, name.s, type, name.s);
    return name;
}

/* Word k of an array value. */
static txt array_word(ing_gen *g, uint32_t id, uint32_t k) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    const char *type = k ? "i64" : "ptr";
    if (i->op == ING_OP_ARRAY)
        return arg_word(g, g->m->args.at[i->a].word + (uint64_t)k, k ? 'x' : 'p', type);
    txt p = g->vals[id];
    if (k) p = ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %u", p.s, 8 * k);
    return ing_gen_def(g, "load %s, ptr %s, align 8%s", type, p.s,
                       ing_gen_access(g, ING_GEN_CONTEXT));
}

txt ing_gen_array_data(ing_gen *g, uint32_t id) {
    return array_word(g, id, 0);
}

static txt load_arg(ing_gen *g, const ing_ir_inst *i) {
    txt v = arg_word(g, g->m->args.at[i->a].word, 's', ing_gen_type_mem(g, i->type).s);
    return i->type == ING_U1 ? ing_gen_def(g, "icmp ne i8 %s, 0", v.s) : v;
}

/* Extent of a logical axis of an array that is no field, as i64. */
static txt load_extent(ing_gen *g, uint32_t id, uint32_t axis) {
    uint32_t known = ing_ir_known_extent(g->m, g->f, id, axis);
    if (known) return ing_gen_text("%u", known);
    return array_word(g, id, 1 + axis);
}

static txt extent(ing_gen *g, const ing_ir_inst *i) {
    const ing_place *field = ing_ir_type(g->m, ing_gen_type_of(g, i->a))->place;
    if (field) return ing_gen_text("%lld", (long long)ing_place_extent(field, i->b));
    return load_extent(g, i->a, i->b);
}

static txt task_bound(ing_gen *g, const ing_ir_inst *i) {
    const char *name = i->op == ING_OP_TASK_BEGIN ? "%begin" : "%end";
    txt v = ing_gen_text("%s", i->op == ING_OP_TASK_CHUNK ? "%chunk" : name);
    return ing_gen_cast(g, ING_I64, (ing_dtype)i->type, v);
}

static bool input_op(ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    txt *v = g->vals;
    switch (i->op) {
    case ING_OP_ARG: v[id] = load_arg(g, i); return true;
    case ING_OP_ARRAY:
        v[id] = ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %llu",
                            ing_gen_args(g), 8ull * g->m->args.at[i->a].word);
        return true;
    case ING_OP_PARAM: v[id] = ing_gen_text("%%p%u", i->a); return true;
    case ING_OP_SEED: v[id] = ing_gen_seed(g, i->a, i->b); return true;
    case ING_OP_DIM:
        v[id] = ing_gen_cast(g, ING_I64, (ing_dtype)i->type, extent(g, i));
        return true;
    case ING_OP_TASK_BEGIN:
    case ING_OP_TASK_CHUNK:
    case ING_OP_TASK_END: v[id] = task_bound(g, i); return true;
    default: return false;
    }
}

/* ---- addresses ----------------------------------------------------------------------- */

static txt index_i64(ing_gen *g, uint32_t id) {
    ing_type t = ing_gen_type_of(g, id);
    return ing_gen_cast(g, t < ING_DTYPE_N ? (ing_dtype)t : ING_I64, ING_I64,
                        g->vals[id]);
}

/* Offsets are computed in 64 bits without signed wrap: an offset that wraps is outside
 * of any array (R22). */
static txt element(ing_gen *g, const ing_ir_inst *i) {
    const ing_type_info *at = ing_ir_type(g->m, ing_gen_type_of(g, i->a));
    const uint32_t *idx = &g->f->extra.at[i->b];
    txt off = ing_gen_text("0");
    if (at->kind != ING_TYPE_ARRAY || i->c != at->rank) {
        ing_gen_fail(g, "subscript of something else than an array, or of other rank");
        return off;
    }
    if (at->place) return ing_gen_field_element(g, i, at->place);
    for (uint32_t k = 0; k < at->rank; k++) {
        uint32_t axis = at->layout[k];
        txt x = index_i64(g, idx[axis]);
        if (k > 0) {
            txt n = load_extent(g, i->a, axis);
            off = ing_gen_def(g, "mul nsw i64 %s, %s", off.s, n.s);
            x = ing_gen_def(g, "add nsw i64 %s, %s", off.s, x.s);
        }
        off = x;
    }
    txt data = ing_gen_array_data(g, i->a);
    return ing_gen_def(g, "getelementptr inbounds %s, ptr %s, i64 %s",
                       ing_gen_type_mem(g, at->elem).s, data.s, off.s);
}

static txt buffer_slot(ing_gen *g, const ing_ir_inst *i) {
    if (!g->has_buffer) {
        g->has_buffer = true;
        ing_bytes_printf(
            &g->entry,
            "  %%buffer.a = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
            "  %%buffer = load ptr, ptr %%buffer.a, align 8" NOWRITE "\n",
            offsetof(ing_ctx, buffer));
    }
    return ing_gen_def(g, "getelementptr inbounds i8, ptr %%buffer, i64 %u", i->a);
}

static txt partial(ing_gen *g, const ing_ir_inst *i) {
    txt p = ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu",
                        offsetof(ing_ctx, partials));
    txt b = ing_gen_def(g, "load ptr, ptr %s, align 8%s", p.s,
                        ing_gen_access(g, ING_GEN_CONTEXT));
    return ing_gen_def(g, "getelementptr inbounds i64, ptr %s, i64 %s", b.s,
                       g->vals[i->a].s);
}

static txt scratch(ing_gen *g, const ing_ir_inst *i) {
    txt p = ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu",
                        offsetof(ing_ctx, scratch));
    txt b = ing_gen_def(g, "load ptr, ptr %s, align 8" LAUNCH, p.s);
    return ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %s", b.s,
                       g->vals[i->a].s);
}

static txt member(ing_gen *g, const ing_ir_inst *i) {
    ing_type agg = ing_ir_type(g->m, ing_gen_type_of(g, i->a))->elem;
    txt ty = ing_gen_type_mem(g, agg);
    if (i->op == ING_OP_MEMBER)
        return ing_gen_def(g, "getelementptr inbounds %s, ptr %s, i32 0, i32 %u", ty.s,
                           g->vals[i->a].s, i->b);
    txt k = index_i64(g, i->b);
    return ing_gen_def(g, "getelementptr inbounds %s, ptr %s, i64 0, i64 %s", ty.s,
                       g->vals[i->a].s, k.s);
}

/* A zeroed local: the space is taken once, in the entry block, and cleared each time. */
static txt local(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    ing_type t = ing_ir_type(g->m, i->type)->elem;
    txt ty = ing_gen_type_mem(g, t), p = ing_gen_text("%%a%u", id);
    ing_bytes_printf(&g->entry, "  %s = alloca %s, align %u\n", p.s, ty.s,
                     ing_ir_type_align(g->m, t));
    if (!g->plan->counted) g->local_bytes += ing_ir_type_size(g->m, t);
    if (g->local_bytes > MAX_LOCAL_BYTES && g->status == ING_OK)
        g->status =
            ing_fail(g->e, ING_COMPILE,
                     "the local vectors and matrices of this kernel take more than "
                     "%d KiB: keep them in an array",
                     MAX_LOCAL_BYTES >> 10);
    if (t < ING_DTYPE_N) {
        ing_gen_put(g, "  store %s zeroinitializer, ptr %s\n", ty.s, p.s);
    } else {
        ing_gen_declare(g, "void @llvm.memset.p0.i64(ptr, i8, i64, i1)");
        ing_gen_put(g,
                    "  call void @llvm.memset.p0.i64(ptr align %u %s, i8 0, i64 %u, i1 "
                    "false)\n",
                    ing_ir_type_align(g->m, t), p.s, ing_ir_type_size(g->m, t));
    }
    return p;
}

static bool address_op(ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    switch (i->op) {
    case ING_OP_ALLOCA:
        g->vals[id] = local(g, id, i);
        g->roots[id] =
            g->parallel || g->f->kind != ING_IR_TASK ? ING_GEN_LOCAL : ING_GEN_LANES;
        return true;
    case ING_OP_ELEM:
        g->vals[id] = element(g, i);
        g->roots[id] = ING_GEN_ARRAY;
        return true;
    case ING_OP_BUFFER:
        g->vals[id] = buffer_slot(g, i);
        g->roots[id] = ING_GEN_BUFFER;
        return true;
    case ING_OP_ADDRESS:
        g->vals[id] = ing_gen_def(g, "ptrtoint ptr %s to i64", g->vals[i->a].s);
        return true;
    case ING_OP_PARTIAL:
        g->vals[id] = partial(g, i);
        g->roots[id] = ING_GEN_BUFFER;
        return true;
    case ING_OP_SCRATCH:
        g->vals[id] = scratch(g, i);
        g->roots[id] = ING_GEN_SCRATCH;
        return true;
    case ING_OP_MEMBER:
    case ING_OP_MEMBER_DYN:
        g->vals[id] = member(g, i);
        g->roots[id] = g->roots[i->a];
        return true;
    default: return false;
    }
}

/* ---- loads and stores ------------------------------------------------------------------- */

static txt to_memory(ing_gen *g, ing_type t, txt v) {
    return t == ING_U1 ? ing_gen_def(g, "zext i1 %s to i8", v.s) : v;
}

/* Elements of a tensor that is moved one by one: LLVM splits whole moves itself, but
 * forgets the access group then. 0 = as a whole. */
static uint32_t pieces(const ing_gen *g, ing_type t) {
    const ing_type_info *i = ing_ir_type(g->m, t);
    uint64_t n = i->kind == ING_TYPE_TENSOR ? (uint64_t)i->rows * i->cols : 0;
    return n <= MAX_PIECES ? (uint32_t)n : 0;
}

/* Address of element k of a tensor in memory. */
static txt piece(ing_gen *g, txt ty, txt p, uint32_t k) {
    return ing_gen_def(g, "getelementptr inbounds %s, ptr %s, i32 0, i32 %u", ty.s, p.s,
                       k);
}

static txt load(ing_gen *g, ing_type t, txt p, ing_gen_root root) {
    txt ty = ing_gen_type_mem(g, t);
    uint32_t align = ing_ir_type_align(g->m, t), n = pieces(g, t);
    const char *md = ing_gen_access(g, root);
    if (!n) {
        txt v = ing_gen_def(g, "load %s, ptr %s, align %u%s", ty.s, p.s, align, md);
        return t == ING_U1 ? ing_gen_def(g, "icmp ne i8 %s, 0", v.s) : v;
    }
    txt all = ing_gen_text("poison"),
        et = ing_gen_type_mem(g, ing_ir_type(g->m, t)->dtype);
    for (uint32_t k = 0; k < n; k++) {
        txt v = ing_gen_def(g, "load %s, ptr %s, align %u%s", et.s,
                            piece(g, ty, p, k).s, align, md);
        all = ing_gen_def(g, "insertvalue %s %s, %s %s, %u", ty.s, all.s, et.s, v.s, k);
    }
    return all;
}

/* Of a scalar, from memory that other threads write; no metadata that would allow to move
 * it. */
static txt load_volatile(ing_gen *g, ing_type t, txt p) {
    txt v = ing_gen_def(g, "load volatile %s, ptr %s, align %u",
                        ing_gen_type_mem(g, t).s, p.s, ing_ir_type_align(g->m, t));
    return t == ING_U1 ? ing_gen_def(g, "icmp ne i8 %s, 0", v.s) : v;
}

static void store(ing_gen *g, ing_type t, txt v, txt p, ing_gen_root root) {
    txt ty = ing_gen_type_mem(g, t);
    uint32_t align = ing_ir_type_align(g->m, t), n = pieces(g, t);
    const char *md = ing_gen_access(g, root);
    if (!n) {
        txt m = to_memory(g, t, v);
        ing_gen_put(g, "  store %s %s, ptr %s, align %u%s\n", ty.s, m.s, p.s, align,
                    md);
    }
    txt et = ing_gen_type_mem(g, ing_ir_type(g->m, t)->dtype);
    for (uint32_t k = 0; k < n; k++) {
        txt e = ing_gen_def(g, "extractvalue %s %s, %u", ty.s, v.s, k);
        txt at = piece(g, ty, p, k);
        ing_gen_put(g, "  store %s %s, ptr %s, align %u%s\n", et.s, e.s, at.s, align,
                    md);
    }
}

static void set_result(ing_gen *g, const ing_ir_inst *i) {
    txt v = ing_gen_word(g, (ing_dtype)ing_gen_type_of(g, i->b), g->vals[i->b]);
    txt pp = ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu",
                         offsetof(ing_ctx, rets));
    txt r = ing_gen_def(g, "load ptr, ptr %s, align 8%s", pp.s,
                        ing_gen_access(g, ING_GEN_CONTEXT));
    txt p =
        ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %llu", r.s, 8ull * i->a);
    store(g, ING_I64, v, p, ING_GEN_BUFFER);
}

/* ---- atomics ----------------------------------------------------------------------------- */

static const ing_op update_op[ING_IR_ATOMIC_N] = {
    [ING_IR_ATOMIC_ADD] = ING_OP_ADD, [ING_IR_ATOMIC_SUB] = ING_OP_SUB,
    [ING_IR_ATOMIC_MUL] = ING_OP_MUL, [ING_IR_ATOMIC_MIN] = ING_OP_MIN,
    [ING_IR_ATOMIC_MAX] = ING_OP_MAX, [ING_IR_ATOMIC_AND] = ING_OP_AND,
    [ING_IR_ATOMIC_OR] = ING_OP_OR,   [ING_IR_ATOMIC_XOR] = ING_OP_XOR,
};

static txt update(ing_gen *g, uint32_t kind, ing_dtype t, txt old, txt v) {
    return kind == ING_IR_ATOMIC_XCHG
               ? v
               : ing_gen_arith(g, update_op[kind], t, old, v, NULL);
}

/* The name that atomicrmw has for it, or NULL: then a compare-and-swap loop. */
static const char *rmw_name(uint32_t kind, ing_dtype t) {
    static const char *const names[4][ING_IR_ATOMIC_N] = {
        {"add", "sub", NULL, "min", "max", "and", "or", "xor", "xchg"},
        {"add", "sub", NULL, "umin", "umax", "and", "or", "xor", "xchg"},
        {"fadd", "fsub", NULL, "fmin", "fmax", NULL, NULL, NULL, "xchg"},
        /* u1: bytes 0 and 1, where arithmetic modulo 2 is bitwise */
        {"xor", "xor", "and", "and", "or", "and", "or", "xor", "xchg"},
    };
    int row = t == ING_U1 ? 3 : ing_dtype_is_float(t) ? 2 : !ing_dtype_is_signed(t);
    return names[row][kind];
}

static txt atomic_loop(ing_gen *g, uint32_t kind, ing_dtype t, txt p, txt v,
                       const char *md) {
    uint32_t bits = 8 * ing_dtype_bytes(t), n = g->n_label++;
    txt ty = ing_gen_type(g, t);
    txt first = ing_gen_def(g, "load atomic i%u, ptr %s monotonic, align %u%s", bits,
                            p.s, bits / 8, md);
    ing_gen_put(g, "  br label %%cas%u.pre\ncas%u.pre:\n  br label %%cas%u\ncas%u:\n",
                n, n, n, n);
    ing_gen_put(
        g, "  %%cas%u.old = phi i%u [ %s, %%cas%u.pre ], [ %%cas%u.seen, %%cas%u ]\n",
        n, bits, first.s, n, n, n);
    txt raw = ing_gen_text("%%cas%u.old", n), old = raw;
    if (ing_dtype_is_float(t))
        old = ing_gen_def(g, "bitcast i%u %s to %s", bits, raw.s, ty.s);
    txt new = update(g, kind, t, old, v);
    if (ing_dtype_is_float(t))
        new = ing_gen_def(g, "bitcast %s %s to i%u", ty.s, new.s, bits);
    txt x = ing_gen_def(
        g, "cmpxchg weak ptr %s, i%u %s, i%u %s monotonic monotonic, align %u%s", p.s,
        bits, raw.s, bits, new.s, bits / 8, md);
    ing_gen_put(g, "  %%cas%u.seen = extractvalue { i%u, i1 } %s, 0\n", n, bits, x.s);
    txt ok = ing_gen_def(g, "extractvalue { i%u, i1 } %s, 1", bits, x.s);
    ing_gen_put(g, "  br i1 %s, label %%cas%u.done, label %%cas%u\ncas%u.done:\n", ok.s,
                n, n, n);
    return old;
}

static bool is_local(ing_gen_root root) {
    return root == ING_GEN_LOCAL || root == ING_GEN_LANES;
}

static txt plain_update(ing_gen *g, const ing_ir_inst *i, ing_gen_root root) {
    ing_dtype t = (ing_dtype)i->type;
    txt old = load(g, t, g->vals[i->a], root);
    store(g, t, update(g, i->c, t, old, g->vals[i->b]), g->vals[i->a], root);
    return old;
}

/* A minimum or maximum that changes nothing, as most do, is only read: the locked instruction costs 20
 * times as much. A number that is compared with NaN goes the long way. */
static txt extreme_update(ing_gen *g, uint32_t kind, ing_dtype t, txt p, txt v,
                          const char *md) {
    uint32_t n = g->n_label++;
    txt ty = ing_gen_type(g, t);
    const char *order = kind == ING_IR_ATOMIC_MIN ? "lt" : "gt";
    const char *kinds = ing_dtype_is_float(t)    ? "fcmp u"
                        : ing_dtype_is_signed(t) ? "icmp s"
                                                 : "icmp u";
    ing_gen_put(g, "  br label %%ext%u\next%u:\n", n, n);
    txt seen = ing_gen_def(g, "load atomic %s, ptr %s monotonic, align %u%s", ty.s, p.s,
                           ing_dtype_bytes(t), md);
    txt more = ing_gen_def(g, "%s%s %s %s, %s", kinds, order, ty.s, v.s, seen.s);
    ing_gen_put(g, "  br i1 %s, label %%ext%u.new, label %%ext%u.done\next%u.new:\n",
                more.s, n, n, n);
    txt old = ing_gen_def(g, "atomicrmw %s ptr %s, %s %s monotonic, align %u%s",
                          rmw_name(kind, t), p.s, ty.s, v.s, ing_dtype_bytes(t), md);
    ing_gen_put(g, "  br label %%ext%u.done\next%u.done:\n", n, n);
    return ing_gen_def(g, "phi %s [ %s, %%ext%u ], [ %s, %%ext%u.new ]", ty.s, seen.s,
                       n, old.s, n);
}

static txt shared_update(ing_gen *g, const ing_ir_inst *i, ing_gen_root root) {
    txt p = g->vals[i->a], v = g->vals[i->b];
    ing_dtype t = (ing_dtype)i->type;
    const char *name = rmw_name(i->c, t), *md = ing_gen_access(g, root);
    if (!name) return atomic_loop(g, i->c, t, p, v, md);
    bool extreme = i->c == ING_IR_ATOMIC_MIN || i->c == ING_IR_ATOMIC_MAX;
    if (extreme && t != ING_U1 && t != ING_F16)
        return extreme_update(g, i->c, t, p, v, md);
    txt m = to_memory(g, t, v);
    txt old = ing_gen_def(g, "atomicrmw %s ptr %s, %s %s monotonic, align %u%s", name,
                          p.s, ing_gen_type_mem(g, t).s, m.s, ing_dtype_bytes(t), md);
    return t == ING_U1 ? ing_gen_def(g, "icmp ne i8 %s, 0", old.s) : old;
}

/* Does this thread lack copies of the arrays that the task tallies? Asked once per function. */
static const char *lacks_copies(ing_gen *g) {
    if (!g->has_tallies) {
        g->has_tallies = true;
        ing_bytes_printf(
            &g->entry,
            "  %%tallies.p = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
            "  %%tallies = load i64, ptr %%tallies.p, !invariant.load !%d\n"
            "  %%tallies.no = icmp eq i64 %%tallies, 0\n",
            offsetof(ing_ctx, tallies), ING_GEN_MD_EMPTY);
    }
    return "%tallies.no";
}

/* An update of the thread's copy, or of the array itself (src/pass/tally.c). Iterations may
 * meet in one place of the copy, so accesses to it never join the parallel loop's group. The
 * branch is the same in every iteration; a locked instruction hides it, so that way is the one
 * to be out of line. The old value is not used. */
static txt tally_update(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    ing_gen_put(g, "  br i1 %s, label %%ours%u, label %%mine%u, !prof !%d\nmine%u:\n",
                lacks_copies(g), id, id, ING_GEN_MD_UNLIKELY, id);
    txt old = plain_update(g, i, ING_GEN_TALLY);
    ing_gen_put(g, "  br label %%told%u\nours%u:\n", id, id);
    shared_update(g, i, (ing_gen_root)g->roots[i->a]);
    ing_gen_put(g, "  br label %%told%u\ntold%u:\n", id, id);
    return old;
}

static txt atomic(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    ing_gen_root root = (ing_gen_root)g->roots[i->a];
    if (i->type >= ING_DTYPE_N || i->c >= ING_IR_ATOMIC_N) {
        ing_gen_fail(g, "atomic on an aggregate");
        return g->vals[i->b];
    }
    if (i->flags & ING_IR_PRIVATE || is_local(root)) return plain_update(g, i, root);
    if (i->flags & ING_IR_TALLY && g->copies == ING_GEN_COPIES_MINE)
        return plain_update(g, i, ING_GEN_TALLY);
    if (i->flags & ING_IR_TALLY && g->copies == ING_GEN_COPIES_ASKED)
        return tally_update(g, id, i);
    return shared_update(g, i, root);
}

static txt compare_and_swap(ing_gen *g, const ing_ir_inst *i) {
    txt p = g->vals[i->a], want = g->vals[i->b], put = g->vals[i->c];
    ing_gen_root root = (ing_gen_root)g->roots[i->a];
    ing_dtype t = (ing_dtype)i->type;
    txt ty = ing_gen_type_mem(g, t), old;
    if (i->flags & ING_IR_PRIVATE || is_local(root)) {
        old = load(g, t, p, root);
        txt same =
            ing_gen_def(g, "icmp eq %s %s, %s", ing_gen_type(g, t).s, old.s, want.s);
        store(g, t,
              ing_gen_def(g, "select i1 %s, %s %s, %s %s", same.s, ing_gen_type(g, t).s,
                          put.s, ing_gen_type(g, t).s, old.s),
              p, root);
        return old;
    }
    want = to_memory(g, t, want);
    put = to_memory(g, t, put);
    txt x = ing_gen_def(
        g, "cmpxchg ptr %s, %s %s, %s %s monotonic monotonic, align %u%s", p.s, ty.s,
        want.s, ty.s, put.s, ing_dtype_bytes(t), ing_gen_access(g, root));
    old = ing_gen_def(g, "extractvalue { %s, i1 } %s, 0", ty.s, x.s);
    return t == ING_U1 ? ing_gen_def(g, "icmp ne i8 %s, 0", old.s) : old;
}

/* ---- aggregates ---------------------------------------------------------------------------- */

/* Type of member k of an aggregate. */
static ing_type member_type(const ing_gen *g, ing_type agg, uint32_t k) {
    const ing_type_info *i = ing_ir_type(g->m, agg);
    return i->kind == ING_TYPE_STRUCT ? i->members[k] : (ing_type)i->dtype;
}

static txt insert(ing_gen *g, ing_type agg, txt into, txt v, uint32_t k) {
    ing_type t = member_type(g, agg, k);
    txt m = to_memory(g, t, v);
    return ing_gen_def(g, "insertvalue %s %s, %s %s, %u", ing_gen_type(g, agg).s,
                       into.s, ing_gen_type_mem(g, t).s, m.s, k);
}

static txt extract(ing_gen *g, const ing_ir_inst *i) {
    ing_type agg = ing_gen_type_of(g, i->a);
    txt v = ing_gen_def(g, "extractvalue %s %s, %u", ing_gen_type(g, agg).s,
                        g->vals[i->a].s, i->b);
    return member_type(g, agg, i->b) == ING_U1 ? ing_gen_def(g, "icmp ne i8 %s, 0", v.s)
                                               : v;
}

static txt make(ing_gen *g, const ing_ir_inst *i) {
    txt v = ing_gen_text("zeroinitializer");
    for (uint32_t k = 0; k < i->c; k++)
        v = insert(g, i->type, v, g->vals[g->f->extra.at[i->b + k]], k);
    return v;
}

bool ing_gen_memory_op(ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    txt *v = g->vals;
    bool access = i->op == ING_OP_LOAD || i->op == ING_OP_STORE ||
                  i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
    g->array = access ? ing_gen_array_of(g, i->a) : 0;
    switch (i->op) {
    case ING_OP_LOAD:
        if (i->flags & ING_IR_VOLATILE)
            v[id] = load_volatile(g, i->type, v[i->a]);
        else
            v[id] = load(g, i->type, v[i->a], (ing_gen_root)g->roots[i->a]);
        break;
    case ING_OP_STORE:
        store(g, ing_gen_type_of(g, i->b), v[i->b], v[i->a],
              (ing_gen_root)g->roots[i->a]);
        break;
    case ING_OP_ATOMIC:
        if (id != g->paired && !ing_gen_pair(g, id)) v[id] = atomic(g, id, i);
        break;
    case ING_OP_CAS: v[id] = compare_and_swap(g, i); break;
    case ING_OP_SET_RET: set_result(g, i); break;
    case ING_OP_MAKE: v[id] = make(g, i); break;
    case ING_OP_EXTRACT: v[id] = extract(g, i); break;
    case ING_OP_INSERT: v[id] = insert(g, i->type, v[i->a], v[i->b], i->c); break;
    default: return input_op(g, id) || address_op(g, id);
    }
    return true;
}
