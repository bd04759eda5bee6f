/* Control as LLVM IR: blocks, branches, loops, calls, checks, and the polls that let a
 * long task be cancelled. Called by llvm.c once per function. Works on an explicit stack
 * of open blocks, never on the C stack.
 *
 *  FLOW1 A loop is written bottom-tested behind a guard, in its index type, and its counter
 *     cannot overflow: it stays at or below the end. So it is nsw (nuw if unsigned).
 *  FLOW2 `stop` is one block per function; %status carries the code there, LLVM makes it a
 *     register. Functions that cannot stop have neither.
 *  FLOW3 A function with polls keeps fuel in a register: it takes it from the context at
 *     entry and gives it back at each return and around each call that burns fuel.
 *  FLOW4 Sums in a block of more than LONG_BLOCK instructions are not reordered below
 *     opt_level 3: LLVM gathers a chain of them at its end, which keeps all terms alive
 *     and takes time with the square of their number.
 *  FLOW6 A float that is compared with a local of a loop and then stored there is a new extreme: rare.
 *     As a select, each iteration waits for the comparison of the one before.
 *  FLOW8 A branch that takes a root stays one, by the word that it is mostly taken: else LLVM takes the root in
 *     any case and selects, and what follows waits for it. Vectors are made of such loops all the same.
 *     A path tracer: 3.8 -> 3.3 ms.
 *  FLOW5 A fused multiply-add cares for the sign of zero (no nsz): else LLVM looks through the
 *     whole chain before it for a sign to move, with the square of its length.
 *  FLOW7 The index of a loop that writes every m-th place, first + m * counter, is a counter of its own:
 *     LLVM would compute it in vectors and take each address out of one. Sums in it keep their order, so
 *     that vectors and what is left of a row add up alike, wherever a thread's share begins. */
#include "gen/gen_int.h"

typedef ing_gen_txt txt;

/* ---- stopping ------------------------------------------------------------------------ */

/* Ends the task with the status in `code`; terminates the current block. */
static void put_stop(ing_gen *g, txt code) {
    if (!g->has_status) {
        g->has_status = true;
        ing_bytes_puts(&g->entry, "  %status = alloca i32, align 4\n");
    }
    g->stop_label = true;
    ing_gen_put(g, "  store i32 %s, ptr %%status, align 4\n  br label %%stop\n",
                code.s);
}

static void put_room(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    g->stop_fn = g->room_fn = true;
    txt p = ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu",
                        offsetof(ing_ctx, scratch_bytes));
    txt have =
        ing_gen_def(g, "load i64, ptr %s, align 8, !tbaa !%d", p.s, ING_GEN_MD_LAUNCH);
    txt less = ing_gen_def(g, "icmp ult i64 %s, %s", have.s, g->vals[i->a].s);
    ing_gen_put(g, "  br i1 %s, label %%less%u, label %%room%u, !prof !%d\nless%u:\n",
                less.s, id, id, ING_GEN_MD_UNLIKELY, id);
    txt r =
        ing_gen_def(g, "call i32 @" ING_ABI_ROOM "(ptr %%ctx, i64 %s, i32 %u) nounwind",
                    g->vals[i->a].s, i->b);
    txt no = ing_gen_def(g, "icmp ne i32 %s, 0", r.s);
    ing_gen_put(g, "  br i1 %s, label %%full%u, label %%room%u, !prof !%d\nfull%u:\n",
                no.s, id, id, ING_GEN_MD_UNLIKELY, id);
    put_stop(g, ing_gen_def(g, "call i32 @ing_stop(ptr %%ctx, i32 %d, i32 %u, i32 %u)",
                            ING_ABI_SCRATCH, g->fi, i->loc));
    ing_gen_put(g, "room%u:\n", id);
}

static void put_check(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    g->stop_fn = true;
    txt bad = ing_gen_def(g, "xor i1 %s, true", g->vals[i->a].s);
    ing_gen_put(g, "  br i1 %s, label %%bad%u, label %%good%u, !prof !%d\nbad%u:\n",
                bad.s, id, id, ING_GEN_MD_UNLIKELY, id);
    put_stop(g, ing_gen_def(g, "call i32 @ing_stop(ptr %%ctx, i32 %d, i32 %u, i32 %u)",
                            (int32_t)i->b, g->fi, i->loc));
    ing_gen_put(g, "good%u:\n", id);
}

static void fuel_to_context(ing_gen *g) {
    if (!g->plan->polls) return;
    txt n = ing_gen_def(g, "load i64, ptr %%fuel, align 8");
    ing_gen_put(g, "  store i64 %s, ptr %%fuel.p, align 8, !tbaa !%d\n", n.s,
                ING_GEN_MD_LAUNCH);
}

static void fuel_from_context(ing_gen *g) {
    if (!g->plan->polls) return;
    txt n =
        ing_gen_def(g, "load i64, ptr %%fuel.p, align 8, !tbaa !%d", ING_GEN_MD_LAUNCH);
    ing_gen_put(g, "  store i64 %s, ptr %%fuel, align 8\n", n.s);
}

/* Burns one unit of fuel and goes on at %next<id>, by way of the runtime at zero. */
static void put_poll(ing_gen *g, uint32_t id) {
    txt n = ing_gen_def(g, "load i64, ptr %%fuel, align 8");
    txt left = ing_gen_def(g, "add i64 %s, -1", n.s);
    ing_gen_put(g, "  store i64 %s, ptr %%fuel, align 8\n", left.s);
    txt out = ing_gen_def(g, "icmp slt i64 %s, 1", left.s);
    ing_gen_put(g, "  br i1 %s, label %%poll%u, label %%next%u, !prof !%d\npoll%u:\n",
                out.s, id, id, ING_GEN_MD_UNLIKELY, id);
    fuel_to_context(g);
    g->poll_fn = true;
    txt r = ing_gen_def(g, "call i32 @" ING_ABI_POLL "(ptr %%ctx) nounwind");
    fuel_from_context(g);
    txt no = ing_gen_def(g, "icmp ne i32 %s, 0", r.s);
    ing_gen_put(g, "  br i1 %s, label %%quit%u, label %%next%u, !prof !%d\nquit%u:\n",
                no.s, id, id, ING_GEN_MD_UNLIKELY, id);
    put_stop(g, ing_gen_text("%d", ING_ABI_CANCELLED));
}

/* ---- return and call -------------------------------------------------------------------- */

/* value may be "" (none). */
static void put_return(ing_gen *g, txt value) {
    fuel_to_context(g);
    ing_gen_stream_return(g);
    if (g->f->kind == ING_IR_TASK) {
        ing_gen_put(g, "  ret i32 0\n");
        return;
    }
    txt ty = ing_gen_type(g, g->f->ret);
    if (g->f->ret == ING_VOID)
        ing_gen_put(g, g->plan->stops ? "  ret i32 0\n" : "  ret void\n");
    else if (!g->plan->stops)
        ing_gen_put(g, "  ret %s %s\n", ty.s, value.s);
    else {
        txt both = ing_gen_def(g, "insertvalue { %s, i32 } zeroinitializer, %s %s, 0",
                               ty.s, ty.s, value.s);
        ing_gen_put(g, "  ret { %s, i32 } %s\n", ty.s, both.s);
    }
}

static void put_stop_block(ing_gen *g) {
    if (!g->stop_label) return;
    ing_gen_put(g, "stop:\n");
    txt code = ing_gen_def(g, "load i32, ptr %%status, align 4");
    if (g->f->kind == ING_IR_TASK || g->f->ret == ING_VOID) {
        ing_gen_put(g, "  ret i32 %s\n", code.s);
        return;
    }
    txt ty = ing_gen_type(g, g->f->ret);
    txt both =
        ing_gen_def(g, "insertvalue { %s, i32 } poison, i32 %s, 1", ty.s, code.s);
    ing_gen_put(g, "  ret { %s, i32 } %s\n", ty.s, both.s);
}

static void put_call_text(ing_gen *g, const ing_ir_inst *i) {
    ing_bytes_puts(&g->body, "call ");
    ing_gen_put_ret_type(g, &g->body, i->a);
    ing_gen_put(g, " @f%u(ptr %%ctx", i->a);
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = g->f->extra.at[i->b + k];
        ing_gen_put(g, ", %s %s", ing_gen_type(g, ing_gen_type_of(g, arg)).s,
                    g->vals[arg].s);
    }
    bool inlined = g->plan->inlined || g->plan->loops[g->loop] & ING_GEN_INLINE;
    ing_gen_put(g, inlined ? ") alwaysinline" : ")");
    /* Inlining hands the group on to the accesses of the callee. */
    if (g->parallel && !g->woven && g->plans[i->a].groupable)
        ing_gen_put(g, ", !llvm.access.group !%d", ING_GEN_MD_GROUP);
    ing_gen_put(g, "\n");
}

static void put_call(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    const ing_gen_fplan *to = &g->plans[i->a];
    ing_type ret = g->m->funcs.at[i->a]->ret;
    if (to->fuel) fuel_to_context(g);
    ing_gen_stream_call(g, i->a, true);
    txt r = {{0}};
    if (ret == ING_VOID && !to->stops) {
        ing_gen_put(g, "  ");
    } else {
        r = ing_gen_text("%%t%u", g->n_tmp++);
        ing_gen_put(g, "  %s = ", r.s);
    }
    put_call_text(g, i);
    if (to->fuel) fuel_from_context(g);
    ing_gen_stream_call(g, i->a, false);
    g->vals[id] = r;
    if (!to->stops) return;
    txt code = r;
    if (ret != ING_VOID) {
        txt ty = ing_gen_type(g, ret);
        g->vals[id] = ing_gen_def(g, "extractvalue { %s, i32 } %s, 0", ty.s, r.s);
        code = ing_gen_def(g, "extractvalue { %s, i32 } %s, 1", ty.s, r.s);
    }
    txt bad = ing_gen_def(g, "icmp ne i32 %s, 0", code.s);
    ing_gen_put(g, "  br i1 %s, label %%bad%u, label %%good%u, !prof !%d\nbad%u:\n",
                bad.s, id, id, ING_GEN_MD_UNLIKELY, id);
    put_stop(g, code);
    ing_gen_put(g, "good%u:\n", id);
}

/* ---- blocks ---------------------------------------------------------------------------- */

static bool is_loop(const ing_gen *g, uint32_t inst) {
    ing_op op = (ing_op)ing_gen_inst(g, inst)->op;
    return op == ING_OP_LOOP || op == ING_OP_WHILE;
}

static void push(ing_gen *g, uint32_t inst, uint32_t block) {
    ing_gen_frame f = {.inst = inst, .block = block, .loop = g->loop};
    if (is_loop(g, inst)) g->loop = inst;
    if (!ing_vec_push(&g->frames, f)) g->arena.failed = true;
    g->ended = false;
}

/* FLOW6: whether a branch keeps a new extreme of floats, `if t < near: near = t`. */
static bool keeps_extreme(const ing_gen *g, const ing_ir_inst *i) {
    const uint32_t *ids = &g->f->extra.at[i->b + 1];
    if (i->c || !g->loop) return false;
    for (uint32_t k = 0; k < g->f->extra.at[i->b]; k++) {
        const ing_ir_inst *s = ing_gen_inst(g, ids[k]);
        if (s->op == ING_OP_STORE && g->rivals[s->a] == s->b) return true;
    }
    return false;
}

/* FLOW8: whether a branch takes roots. */
static bool takes_roots(const ing_gen *g, const ing_ir_inst *i) {
    const uint32_t *ids = &g->f->extra.at[i->b + 1];
    for (uint32_t k = 0; k < ids[-1]; k++)
        if (ing_op_class_of(ing_gen_inst(g, ids[k])->op) == ING_OPC_ROOT) return true;
    return false;
}

static void open_if(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    ing_gen_put(g, "  br i1 %s, label %%then%u, label %%%s%u", g->vals[i->a].s, id,
                i->c ? "else" : "end", id);
    if (keeps_extreme(g, i))
        ing_gen_put(g, ", !prof !%d", ING_GEN_MD_UNLIKELY);
    else if (takes_roots(g, i))
        ing_gen_put(g, ", !prof !%d", ING_GEN_MD_LIKELY);
    ing_gen_put(g, "\nthen%u:\n", id);
    push(g, id, i->b);
}

/* A loop bound in the index type. Bounds of a narrower loop always fit. */
static txt bound(ing_gen *g, uint32_t value, ing_dtype index) {
    return ing_gen_cast(g, (ing_dtype)ing_gen_type_of(g, value), index, g->vals[value]);
}

/* FLOW7: first + m * counter, where `first` is from before the loop; 0: there is none. */
static uint32_t steps_of(const ing_gen *g, uint32_t id, const ing_ir_inst *l) {
    const uint32_t *ids = &g->f->extra.at[l->c + 1];
    for (uint32_t k = 0; g->plan->loops[id] & ING_GEN_SPREAD && k < ids[-1]; k++) {
        const ing_ir_inst *i = ing_gen_inst(g, ids[k]);
        const ing_ir_inst *by = i->op == ING_OP_ADD ? ing_gen_inst(g, i->b) : NULL;
        if (by && by->op == ING_OP_MUL && by->a == id &&
            i->flags & by->flags & ING_IR_NSW && i->type == l->type &&
            ing_gen_inst(g, by->b)->op == ING_OP_CONST && g->vals[i->a].s[0])
            return ids[k];
    }
    return 0;
}

static void put_steps(ing_gen *g, uint32_t id, uint32_t steps) {
    txt ty = ing_gen_type(g, ing_gen_type_of(g, id));
    uint32_t by = ing_gen_inst(g, ing_gen_inst(g, steps)->b)->b;
    int64_t m = (int64_t)ing_ir_const_bits(ing_gen_inst(g, by));
    ing_gen_put(g, "  %%m%u = add nsw %s %%j%u, %lld\n", id, ty.s, id, (long long)m);
}

static void open_loop(ing_gen *g, uint32_t id, const ing_ir_inst *i) {
    ing_dtype t = (ing_dtype)i->type;
    txt ty = ing_gen_type(g, t);
    const char *lt = ing_dtype_is_signed(t) ? "slt" : "ult";
    txt from = bound(g, i->a, t), to = bound(g, i->b, t);
    ing_gen_put(g, "  br label %%pre%u\npre%u:\n", id, id);
    txt any = ing_gen_def(g, "icmp %s %s %s, %s", lt, ty.s, from.s, to.s);
    ing_gen_put(g, "  br i1 %s, label %%loop%u, label %%end%u\nloop%u:\n", any.s, id,
                id, id);
    ing_gen_put(g, "  %%i%u = phi %s [ %s, %%pre%u ], [ %%n%u, %%next%u ]\n", id, ty.s,
                from.s, id, id, id);
    g->vals[id] = ing_gen_text("%%i%u", id);
    uint32_t steps = steps_of(g, id, i);
    if (steps) {
        txt first = g->vals[ing_gen_inst(g, steps)->a];
        g->vals[steps] = ing_gen_text("%%j%u", id);
        ing_gen_put(g, "  %%j%u = phi %s [ %s, %%pre%u ], [ %%m%u, %%next%u ]\n", id,
                    ty.s, first.s, id, id, id);
    }
    if (i->flags & ING_IR_PARALLEL && !g->parallel) {
        g->parallel = id;
        g->woven = i->flags & ING_IR_WOVEN;
    }
    if (g->parallel == id && g->plan->draws)
        ing_gen_stream(g, ing_gen_cast(g, t, ING_I64, g->vals[id]));
    push(g, id, i->c);
    if (!g->frames.len) return;
    g->frames.at[g->frames.len - 1].end = to;
    g->frames.at[g->frames.len - 1].steps = steps;
}

static void close_loop(ing_gen *g, const ing_gen_frame *f, const ing_ir_inst *i) {
    uint32_t id = f->inst;
    ing_dtype t = (ing_dtype)i->type;
    txt ty = ing_gen_type(g, t);
    bool s = ing_dtype_is_signed(t);
    ing_gen_put(g, "  br label %%cont%u\ncont%u:\n", id, id);
    if (g->plan->loops[id] & ING_GEN_POLLS)
        put_poll(g, id);
    else
        ing_gen_put(g, "  br label %%next%u\n", id);
    ing_gen_put(g, "next%u:\n  %%n%u = add %s %s %%i%u, 1\n", id, id, s ? "nsw" : "nuw",
                ty.s, id);
    if (f->steps) put_steps(g, id, f->steps);
    txt more =
        ing_gen_def(g, "icmp %s %s %%n%u, %s", s ? "slt" : "ult", ty.s, id, f->end.s);
    ing_gen_put(g, "  br i1 %s, label %%loop%u, label %%end%u", more.s, id, id);
    uint8_t plan = g->plan->loops[id];
    if (plan & (ING_GEN_SCALAR | ING_GEN_RARE | ING_GEN_FULL) ||
        (g->parallel == id && !g->woven))
        ing_gen_put(g, ", !llvm.loop !%d",
                    plan & ING_GEN_FULL     ? ING_GEN_MD_FULL_LOOP
                    : plan & ING_GEN_RARE   ? ING_GEN_MD_RARE_LOOP
                    : plan & ING_GEN_SCALAR ? ING_GEN_MD_SCALAR_LOOP
                                            : ING_GEN_MD_LOOP);
    if (g->parallel == id) g->parallel = 0;
    ing_gen_put(g, "\nend%u:\n", id);
}

static void close_while(ing_gen *g, uint32_t id) {
    ing_gen_put(g, "  br label %%cont%u\ncont%u:\n", id, id);
    if (g->plan->loops[id] & ING_GEN_POLLS)
        put_poll(g, id);
    else
        ing_gen_put(g, "  br label %%next%u\n", id);
    ing_gen_put(g, "next%u:\n  br label %%loop%u\nend%u:\n", id, id, id);
}

/* Ends the innermost open block; a new one may open (else). */
static void close_block(ing_gen *g) {
    ing_gen_frame f = g->frames.at[--g->frames.len];
    const ing_ir_inst *i = ing_gen_inst(g, f.inst);
    /* Code always follows a label; after BREAK, CONTINUE or RETURN it is dead. */
    if (g->ended && f.inst) ing_gen_put(g, "dead%u.%d:\n", f.inst, f.in_else);
    bool ended = g->ended;
    g->ended = false;
    if (is_loop(g, f.inst)) g->loop = f.loop;
    if (f.inst == 0) {
        if (!ended) put_return(g, ing_gen_text("zeroinitializer"));
    } else if (i->op == ING_OP_LOOP) {
        close_loop(g, &f, i);
    } else if (i->op == ING_OP_WHILE) {
        close_while(g, f.inst);
    } else {
        ing_gen_put(g, "  br label %%end%u\n", f.inst);
        if (i->c && !f.in_else) {
            ing_gen_put(g, "else%u:\n", f.inst);
            push(g, f.inst, i->c);
            if (g->frames.len) g->frames.at[g->frames.len - 1].in_else = true;
        } else {
            ing_gen_put(g, "end%u:\n", f.inst);
        }
    }
}

/* BREAK and CONTINUE belong to the innermost loop around them. */
static void put_jump(ing_gen *g, const char *label) {
    for (uint32_t k = g->frames.len; k-- > 0;) {
        uint32_t id = g->frames.at[k].inst;
        if (id == 0 || ing_gen_inst(g, id)->op == ING_OP_IF) continue;
        ing_gen_put(g, "  br label %%%s%u\n", label, id);
        return;
    }
    ing_gen_fail(g, "break or continue outside of a loop");
}

static void put_inst(ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    g->homes[id] = g->loop;
    if (id == g->frames.at[g->frames.len - 1].steps) return;
    switch (i->op) {
    case ING_OP_IF: open_if(g, id, i); return;
    case ING_OP_LOOP:
        if (i->flags & ING_IR_TURNED)
            ing_gen_turned(g, id);
        else if (i->flags & ING_IR_WIDE)
            ing_gen_wide(g, id);
        else
            open_loop(g, id, i);
        return;
    case ING_OP_WHILE:
        ing_gen_put(g, "  br label %%loop%u\nloop%u:\n", id, id);
        push(g, id, i->a);
        return;
    case ING_OP_CALL: put_call(g, id, i); return;
    case ING_OP_CHECK: put_check(g, id, i); return;
    case ING_OP_ROOM: put_room(g, id, i); return;
    case ING_OP_BREAK: put_jump(g, "end"); break;
    case ING_OP_CONTINUE: put_jump(g, "cont"); break;
    case ING_OP_RETURN:
        put_return(g, i->a ? g->vals[i->a] : ing_gen_text("zeroinitializer"));
        break;
    default:
        if (!ing_gen_value_op(g, id) && !ing_gen_memory_op(g, id) &&
            !ing_gen_service_op(g, id))
            ing_gen_fail(g, "operation without code");
        return;
    }
    g->ended = true;
}

/* FLOW4. Seconds of LLVM for 100 and 200 calls of svd whose products are added up, in one block of
 * 280 instructions per call: 3.5 and 13 with sums that may be reordered, 1.2 and 2.4 without. */
enum { LONG_BLOCK = 4096 };

static void set_float_flags(ing_gen *g, const ing_gen_frame *f) {
    bool chains = g->f->extra.at[f->block] > LONG_BLOCK && g->o->opt_level < 3;
    chains |= (ing_gen_inst(g, f->inst)->flags & ING_IR_ORDERED) != 0;
    chains |= (g->plan->loops[f->inst] & ING_GEN_SPREAD) != 0;
    if (!g->o->fast_math) return;
    g->fmf = chains ? "nsz contract " : "reassoc nsz contract ";
    g->fmf_fused = chains ? "contract " : "reassoc contract ";
}

void ing_gen_body(ing_gen *g) {
    ing_gen_stream_entry(g);
    push(g, 0, g->f->body);
    while (g->frames.len && g->status == ING_OK && !g->arena.failed) {
        ing_gen_frame *f = &g->frames.at[g->frames.len - 1];
        if (g->ended || f->pos == g->f->extra.at[f->block])
            close_block(g);
        else {
            set_float_flags(g, f);
            put_inst(g, g->f->extra.at[f->block + 1 + f->pos++]);
        }
    }
    g->frames.len = 0;
    put_stop_block(g);
}
