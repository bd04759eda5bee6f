/* What backward code needs of the forward run, in one function and context: values that its
 * derivatives read, indices, conditions and bounds of what it goes through, and all that makes
 * these. Called after active.c, callees first; changes no code. A region is run in two ways:
 *  NEED1 again, right before its backward code: AGAIN is what that code reads (KEPT) and what
 *     makes it. A local from outside of the loop holds what was kept of it, so that nothing of
 *     earlier iterations is needed there.
 *  NEED2 first, from a region around it, for what it leaves in locals that are read later or
 *     kept for the iterations: FIRST.
 *  NEED3 a loop that is cut (SEGMENT1) is run forwards from the middle, too, between backward code: what that
 *     reads of outside is kept, and what it reads of locals that the loop changes is in its entries.
 * Both grow until no rule adds anything. */
#include "ad/ad_int.h"

typedef struct ing_ad_write { /* of a local */
    uint32_t id, next;        /* next: entry plus 1, 0 = the last */
} ing_ad_write;

typedef struct needs {
    ing_ad *ad;
    ing_ad_fn *n;
    uint32_t *first_write; /* per local: its entry in `writes`, plus 1; 0 = none */
    ing_vec(ing_ad_write) writes;
    bool changed, failed;
} needs;

bool ing_ad_is_remade(const ing_ir_inst *i) {
    switch (i->op) {
    case ING_OP_CONST:
    case ING_OP_ARG:
    case ING_OP_ARRAY:
    case ING_OP_PARAM:
    case ING_OP_DIM:
    case ING_OP_SEED:
    case ING_OP_AXES:
    case ING_OP_ALLOCA:
    case ING_OP_ELEM:
    case ING_OP_MEMBER:
    case ING_OP_MEMBER_DYN: return true;
    default: return false;
    }
}

uint32_t ing_ad_exit(const ing_ir_func *f, const ing_ir_inst *loop) {
    uint32_t len = loop->op == ING_OP_WHILE ? ing_ir_block_len(f, loop->a) : 0;
    return len < 2 ? 0 : ing_ir_block_ids(f, loop->a)[len - 2];
}

static void mark(needs *x, uint32_t id, uint8_t bits) {
    if (!id || (x->n->mark[id] & bits) == bits) return;
    x->n->mark[id] |= bits;
    x->changed = true;
}

static void refuse(needs *x, uint32_t id, const char *why, const char *remedy) {
    if (x->ad->bad) return;
    x->ad->bad = why;
    x->ad->m->remedy = remedy;
    x->ad->bad_loc = ing_ir_at(x->n->f, id)->loc;
}

/* The index of a loop is at hand wherever the loop is run; using it runs nothing. */
static bool is_index(const needs *x, uint32_t id) {
    return ing_ir_at(x->n->f, id)->op == ING_OP_LOOP;
}

/* What an update found in memory is not there any more. */
static void check_value(needs *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    bool update = i->op == ING_OP_ATOMIC || i->op == ING_OP_CAS;
    if (update && ing_ir_at(x->n->f, ing_ad_root(x->n, i->a))->op != ING_OP_PARAM)
        refuse(
            x, id, "the value that an atomic update found there",
            "keep it in an array, in a kernel of its own: `at[i] = "
            "qd.atomic_add(n[0], 1)`, and read at[i] where the gradient is asked for");
}

static void keep(needs *x, uint32_t id) {
    if (!id || is_index(x, id)) return;
    check_value(x, id);
    mark(x, id, ING_AD_KEPT | ING_AD_AGAIN);
}

static bool is_local(const needs *x, uint32_t root) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, root);
    return i->op == ING_OP_ALLOCA ||
           (i->op == ING_OP_PARAM && ing_ad_is_ref(x->ad->m, i->type));
}

/* Does the loop stand around it? 0, the function, does. */
static bool inside(const ing_ad_fn *n, uint32_t id, uint32_t loop) {
    uint32_t r = n->region[id];
    while (r && r != loop) r = n->region[r];
    return r == loop;
}

/* ---- what writes locals ----------------------------------------------------------------------------- */

static void add_write(needs *x, uint32_t id, uint32_t ref) {
    uint32_t root = ing_ad_root(x->n, ref);
    if (!is_local(x, root)) return;
    ing_ad_write w = {.id = id, .next = x->first_write[root]};
    if (!ing_vec_push(&x->writes, w)) x->failed = true;
    x->first_write[root] = x->writes.len;
}

static void find_writes(needs *x) {
    const ing_ad_fn *n = x->n;
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(n->f, id);
        if (!n->block[id]) continue;
        if (i->op == ING_OP_STORE || i->op == ING_OP_ATOMIC) add_write(x, id, i->a);
        for (uint32_t k = 0; i->op == ING_OP_CALL && k < i->c; k++) {
            uint32_t arg = n->f->extra.at[i->b + k];
            if (ing_ad_is_ref(x->ad->m, ing_ir_at(n->f, arg)->type))
                add_write(x, id, arg);
        }
    }
}

#define EACH_WRITE(x, local, w)                               \
    for (uint32_t w##_at = (x)->first_write[local], w = 0;    \
         w##_at && (w = (x)->writes.at[w##_at - 1].id, true); \
         w##_at = (x)->writes.at[w##_at - 1].next)

/* ---- contents of locals ------------------------------------------------------------------------------ */

/* Something inside of region `in`, at any depth, is run: first, and so are loops around it. */
static void run_first(needs *x, uint32_t id, uint32_t in) {
    mark(x, id, ING_AD_FIRST);
    for (uint32_t r = x->n->region[id]; r != in && x->n->region[r] != in;
         r = x->n->region[r])
        mark(x, r, ING_AD_FIRST);
}

static uint32_t child_of(const ing_ad_fn *n, uint32_t id, uint32_t region) {
    uint32_t r = n->region[id];
    while (n->region[r] != region) r = n->region[r];
    return r;
}

static bool add_state(needs *x, uint32_t loop, uint32_t local, bool carried) {
    ing_ad_fn *n = x->n;
    for (uint32_t k = 0; k < n->states.len; k++)
        if (n->states.at[k].loop == loop && n->states.at[k].local == local)
            return false;
    ing_ad_state s = {.loop = loop, .local = local, .carried = carried};
    keep(x, local);
    x->changed = true;
    if (!ing_vec_push(&n->states, s)) x->failed = true;
    return true;
}

/* What `local` holds in a region that is run again. */
static void content_again(needs *x, uint32_t local, uint32_t region) {
    const ing_ad_fn *n = x->n;
    for (;; region = n->region[region]) {
        bool outer = !inside(n, local, region), carried = false, later = false;
        EACH_WRITE(x, local, w) {
            if (n->region[w] == region) {
                mark(x, w, ING_AD_AGAIN);
                carried = true;
            } else if (inside(n, w, region)) {
                run_first(x, w, region);
                mark(x, child_of(n, w, region), ING_AD_AGAIN);
                carried = true;
            } else {
                later |= w > region;
            }
        }
        if (!outer) break;
        if (carried) {
            EACH_WRITE(x, local, w)
            if (inside(n, w, region)) run_first(x, w, n->region[region]);
            mark(x, region, ING_AD_AGAIN);
            if (ing_ir_at(n->f, region)->flags & ING_IR_PARALLEL)
                refuse(x, region,
                       "a local that iterations of a parallel loop change and read",
                       "an inner loop runs in order: `for _ in range(1):` around it");
        }
        /* backward code of a branch has a local of its own for each of the branch's */
        bool anew = n->parent[local] != n->region[local];
        if (carried || later || anew) add_state(x, region, local, carried);
    }
    mark(x, local, ING_AD_AGAIN);
}

/* The same where it is only run forwards, in whatever way the loop is run. */
static void content_first(needs *x, uint32_t local, uint32_t region) {
    const ing_ad_fn *n = x->n;
    for (;; region = n->region[region]) {
        EACH_WRITE(x, local, w) {
            if (!inside(n, w, region)) continue;
            run_first(x, w, region);
            if (n->region[w] != region) mark(x, child_of(n, w, region), ING_AD_FIRST);
        }
        if (inside(n, local, region)) break;
        if (n->mark[region] & ING_AD_AGAIN) content_again(x, local, n->region[region]);
        if (!(n->mark[region] & ING_AD_FIRST)) return;
    }
    mark(x, local, ING_AD_FIRST);
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

/* An operand from outside of the loop is there in whatever way the loop, and those around it, are
 * run: from where one is run again, what is outside is kept. */
static void operand_first(needs *x, uint32_t id, uint32_t of) {
    const ing_ad_fn *n = x->n;
    uint32_t r = n->region[id];
    if (is_index(x, of)) return;
    for (; r != n->region[of]; r = n->region[r]) {
        bool next = n->region[r] == n->region[of];
        if (n->mark[r] & ING_AD_AGAIN && next) mark(x, of, ING_AD_AGAIN);
        if (n->mark[r] & ING_AD_AGAIN && !next) keep(x, of);
        if (!(n->mark[r] & ING_AD_FIRST)) return;
    }
    mark(x, of, ING_AD_FIRST);
}

static void operand_again(needs *x, uint32_t id, uint32_t of) {
    if (x->n->region[of] != x->n->region[id])
        keep(x, of);
    else if (!is_index(x, of))
        mark(x, of, ING_AD_AGAIN);
}

static void operands(needs *x, uint32_t id, bool again) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    ing_ir_uses u;
    ing_ir_inst_uses(x->n->f, i, &u);
    for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
        uint32_t of = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
        check_value(x, of);
        if (again)
            operand_again(x, id, of);
        else
            operand_first(x, id, of);
    }
}

/* The branches around it, up to its region. */
static void branches(needs *x, uint32_t id, uint8_t bit) {
    const ing_ad_fn *n = x->n;
    for (uint32_t p = n->parent[id]; p && p != n->region[id]; p = n->parent[p])
        mark(x, p, bit);
}

/* What it reads of locals. */
static void contents(needs *x, uint32_t id, bool again) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    uint32_t refs = i->op == ING_OP_CALL ? i->c : 1;
    if (i->op != ING_OP_CALL && i->op != ING_OP_LOAD && i->op != ING_OP_ATOMIC) return;
    for (uint32_t k = 0; k < refs; k++) {
        uint32_t ref = i->op == ING_OP_CALL ? x->n->f->extra.at[i->b + k] : i->a;
        if (!ing_ad_is_ref(x->ad->m, ing_ir_at(x->n->f, ref)->type)) continue;
        uint32_t root = ing_ad_root(x->n, ref);
        /* an update of a local that iterations share reads nothing of theirs */
        bool shared =
            i->op == ING_OP_ATOMIC && ing_ir_at(x->n->f, root)->op == ING_OP_ALLOCA;
        if (!is_local(x, root) || shared) continue;
        if (again)
            content_again(x, root, x->n->region[id]);
        else
            content_first(x, root, x->n->region[id]);
    }
}

/* NEED3, of a local that an instruction of the cut loop reads. */
static void content_of_segments(needs *x, uint32_t local, uint32_t loop) {
    const ing_ad_fn *n = x->n;
    bool carried = false, later = false;
    EACH_WRITE(x, local, w) {
        bool in = inside(n, w, loop);
        carried |= in;
        later |= !in && w > loop;
    }
    bool anew = n->parent[local] != n->region[local];
    if (carried || later || anew) add_state(x, loop, local, carried);
    content_again(x, local, n->region[loop]);
}

static bool has_stack(const ing_ad_fn *n, uint32_t loop) {
    for (uint32_t k = 0; k < n->states.len; k++)
        if (n->states.at[k].loop == loop && n->states.at[k].carried) return true;
    return false;
}

/* NEED3, of an instruction that is run first. Segments end where they are told to, not by the exit. */
static void segments(needs *x, uint32_t id) {
    const ing_ad_fn *n = x->n;
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    bool reads = i->op == ING_OP_CALL || i->op == ING_OP_LOAD || i->op == ING_OP_ATOMIC;
    ing_ir_uses u;
    ing_ir_inst_uses(n->f, i, &u);
    for (uint32_t r = n->region[id]; r; r = n->region[r]) {
        if (!ing_ad_is_cut(x->ad, n, r) || !has_stack(n, r) ||
            id == ing_ad_exit(n->f, ing_ir_at(n->f, r)))
            continue;
        for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
            uint32_t of = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
            uint32_t root = ing_ad_is_ref(x->ad->m, ing_ir_at(n->f, of)->type)
                                ? ing_ad_root(n, of)
                                : 0;
            if (!inside(n, of, r)) keep(x, of);
            if (reads && root && is_local(x, root) && !inside(n, root, r))
                content_of_segments(x, root, r);
        }
    }
}

/* The exit of a WHILE is looked at where it is only run forwards. */
static void exit_of(needs *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    uint32_t exit = ing_ad_exit(x->n->f, i);
    if (i->op != ING_OP_WHILE || !exit) return;
    const uint32_t *ids = ing_ir_block_ids(x->n->f, i->a);
    mark(x, exit, ING_AD_FIRST);
    mark(x, ids[ing_ir_block_len(x->n->f, i->a) - 1], ING_AD_FIRST);
}

static void apply(needs *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    for (uint32_t k = 0; k < 2; k++) {
        uint8_t bit = k ? ING_AD_FIRST : ING_AD_AGAIN;
        if (!(x->n->mark[id] & bit)) continue;
        operands(x, id, k == 0);
        branches(x, id, bit);
        contents(x, id, k == 0);
        exit_of(x, id);
        if (bit == ING_AD_FIRST) segments(x, id);
    }
    if (x->n->mark[id] & ING_AD_KEPT && ing_ad_is_remade(i)) {
        ing_ir_uses u;
        ing_ir_inst_uses(x->n->f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed; k++) keep(x, u.fixed[k]);
        for (uint32_t k = 0; k < u.n_list; k++) keep(x, u.list[k]);
    }
    if (x->n->mark[id] & ING_AD_SNAP) {
        branches(x, id, ING_AD_AGAIN);
        contents(x, id, true);
    }
}

/* ---- what backward code reads ------------------------------------------------------------------------ */

/* The indices of an address. */
static void keep_indices(needs *x, uint32_t ref) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, ref);
    for (; ing_ir_is_within(i); i = ing_ir_at(x->n->f, i->a)) {
        if (i->op == ING_OP_MEMBER_DYN) keep(x, i->b);
        for (uint32_t k = 0; i->op == ING_OP_ELEM && k < i->c; k++)
            keep(x, x->n->f->extra.at[i->b + k]);
    }
}

static void keep_arith(needs *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    uint32_t reads = 0, operand[2] = {i->a, i->b};
    for (uint32_t k = 0; k < 2 && operand[k]; k++)
        if (ing_ad_active(x->n, operand[k])) reads |= ing_ad_partial_reads(i->op, k);
    if (reads & 1) keep(x, i->a);
    if (reads & 2) keep(x, i->b);
    if (reads & 4) keep(x, id);
}

static void keep_call(needs *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    const ing_ad_fn *to = x->ad->fns.at[x->n->callee[id] - 1];
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t arg = x->n->f->extra.at[i->b + k], at = to->param_at[k];
        ing_type t = ing_ir_at(x->n->f, arg)->type;
        bool needed = at && to->mark[at] & ING_AD_AGAIN;
        if (ing_ad_is_ref(x->ad->m, t)) {
            keep_indices(x, arg);
            if (!needed) continue;
            mark(x, id, ING_AD_SNAP);
            mark(x, arg, ING_AD_AGAIN);
        } else if (needed) {
            keep(x, arg);
        }
    }
}

static void keep_for(needs *x, uint32_t id) {
    const ing_ir_inst *i = ing_ir_at(x->n->f, id);
    switch (i->op) {
    case ING_OP_IF: keep(x, i->a); break;
    case ING_OP_LOOP:
        keep(x, i->a);
        keep(x, i->b);
        break;
    case ING_OP_WHILE: mark(x, id, ING_AD_AGAIN); break; /* it counts its iterations */
    case ING_OP_LOAD:
    case ING_OP_STORE: keep_indices(x, i->a); break;
    case ING_OP_ATOMIC:
        keep_indices(x, i->a);
        if (i->c == ING_IR_ATOMIC_MIN || i->c == ING_IR_ATOMIC_MAX) {
            uint32_t root = ing_ad_root(x->n, i->a); /* what the loop left (SHARED1) */
            if (ing_ir_at(x->n->f, root)->op == ING_OP_ALLOCA)
                content_again(x, root, x->n->region[root]);
            keep(x, i->a);
            keep(x, i->b);
        } else if (i->c != ING_IR_ATOMIC_ADD && i->c != ING_IR_ATOMIC_SUB)
            refuse(x, id, "an atomic update other than add, sub, min and max",
                   "work on a variable, in order: `p = p * x[i]` in a loop in "
                   "`for _ in range(1):`, and store it after the loop");
        break;
    case ING_OP_CALL: keep_call(x, id); break;
    case ING_OP_SELECT: keep(x, i->a); break;
    default:
        if (ing_op_is_arith(i->op)) keep_arith(x, id);
        break;
    }
}

/* ---- adjoints across blocks ------------------------------------------------------------------------------- */

static void find_apart(ing_ad_fn *n) {
    for (uint32_t id = 1; id < n->f->insts.len; id++) {
        const ing_ir_inst *i = ing_ir_at(n->f, id);
        ing_ir_uses u;
        if (!n->block[id]) continue;
        ing_ir_inst_uses(n->f, i, &u);
        for (uint32_t k = 0; k < u.n_fixed + u.n_list; k++) {
            uint32_t of = k < u.n_fixed ? u.fixed[k] : u.list[k - u.n_fixed];
            if (n->block[of] != n->block[id]) n->mark[of] |= ING_AD_APART;
        }
    }
}

static bool is_companion(const ing_ad *ad, const ing_ir_inst *i) {
    for (uint32_t k = 0; i->op == ING_OP_ARRAY && k < ad->m->args.len; k++)
        if (ing_ad_companion_arg(ad, k) == i->a + 1) return true;
    return false;
}

/* Refuses what has no derivative, and keeps what backward code reads by itself. */
static void begin(needs *x, uint32_t id) {
    const ing_ad_fn *n = x->n;
    const ing_ir_inst *i = ing_ir_at(n->f, id);
    uint32_t region = n->region[id];
    bool run = !region || n->mark[region] & ING_AD_LIVE;
    if (n->mark[id] & ING_AD_LIVE) keep_for(x, id);
    if ((i->op == ING_OP_CHECK || i->op == ING_OP_DETAIL) && run)
        mark(x, id, ING_AD_AGAIN);
    if (i->op == ING_OP_SET_RET && n->mark[i->b] & ING_AD_VARIED)
        refuse(x, id, "a returned value that depends on an array with a gradient",
               "add it to an array of one element that has a gradient: `loss[None] += "
               "s`");
    if (ing_op_class_of(i->op) == ING_OPC_REGION) refuse(x, id, "a graph kernel", NULL);
    if (i->op == ING_OP_ELEM && is_companion(x->ad, ing_ir_at(n->f, i->a)))
        refuse(x, id, "a gradient that the kernel itself reads or writes",
               "compute it in a kernel of its own");
}

ing_status ing_ad_find_need(ing_ad *ad, ing_ad_fn *n, ing_err *e) {
    uint32_t len = n->f->insts.len;
    needs x = {.ad = ad, .n = n};
    x.first_write = ing_calloc(len, sizeof *x.first_write);
    if (!x.first_write) return ing_ad_no_memory(e);
    find_writes(&x);
    for (uint32_t id = 1; id < len; id++)
        if (n->block[id]) begin(&x, id);
    do {
        x.changed = false;
        for (uint32_t id = len; id-- > 1 && !x.failed;)
            if (n->block[id]) apply(&x, id);
    } while (x.changed && !x.failed && !ad->bad);
    find_apart(n);
    ing_free(x.first_write);
    ing_vec_fini(&x.writes);
    if (x.failed) return ing_ad_no_memory(e);
    return ad->bad ? ing_ad_refuse(ad->m, n->func, ad->bad_loc, e, ad->bad) : ING_OK;
}
