/* Paths: how lowering reached a thing, as interned nodes (R1). Equal paths have equal
 * ids within one kernel. Called by the gate while compiling and by the tree while
 * replaying; never looks at what a path leads to. */
#include "trace/trace_int.h"

#include <string.h>

/* Steps of one path, and calls within arguments of calls. The gate makes none beyond:
 * following a path again may recurse once per nesting. */
enum { MAX_CHAIN = ING_PATH_MAX_STEPS, MAX_NESTING = ING_PATH_MAX_NESTING };

void ing_paths_init(ing_paths *p) {
    memset(p, 0, sizeof *p);
    ing_atoms_init(&p->atoms);
    ing_map_init(&p->map);
    (void)ing_vec_push(&p->nodes, (ing_path_node){0});
    p->mapped = 1;
}

void ing_paths_fini(ing_paths *p) {
    ing_atoms_fini(&p->atoms);
    ing_map_fini(&p->map);
    ing_vec_fini(&p->nodes);
}

ing_path ing_path_add(ing_paths *p, ing_path parent, ing_step step, const char *name,
                      int64_t i) {
    uint32_t atom = name ? ing_atoms_add(&p->atoms, name, strlen(name)) : 0;
    return ing_path_add_atom(p, parent, step, atom, i);
}

static ing_hash128 key_of(const ing_path_node *n) {
    const uint64_t key[4] = {n->parent, n->step, n->atom, (uint64_t)n->i};
    return ing_hash(key, sizeof key);
}

/* Nodes that were only pushed (ing_paths_read); of equal ones the first is found. */
static bool map_pushed(ing_paths *p) {
    for (; p->mapped < p->nodes.len; p->mapped++) {
        ing_hash128 h = key_of(&p->nodes.at[p->mapped]);
        if (!ing_map_get(&p->map, h) && !ing_map_put(&p->map, h, p->mapped))
            return false;
    }
    return true;
}

ing_path ing_path_add_atom(ing_paths *p, ing_path parent, ing_step step, uint32_t atom,
                           int64_t i) {
    if (atom == UINT32_MAX || p->nodes.len == 0 || !map_pushed(p)) return 0;
    ing_path_node n = {parent, (uint8_t)step, atom, i};
    ing_hash128 h = key_of(&n);
    uint32_t found = ing_map_get(&p->map, h);
    if (found) return found;
    if (!ing_vec_push(&p->nodes, n)) return 0;
    if (!ing_map_put(&p->map, h, p->nodes.len - 1)) return 0;
    return p->mapped++;
}

/* Chain of ids from `of` up to its root, root last; returns the length, 0 if too long. */
static uint32_t chain_of(const ing_paths *p, ing_path of, ing_path chain[MAX_CHAIN]) {
    uint32_t n = 0;
    for (; of; of = p->nodes.at[of].parent) {
        if (n == MAX_CHAIN) return 0;
        chain[n++] = of;
    }
    return n;
}

typedef struct new_roots {
    ing_path func;
    const ing_path *params;
    uint32_t n;
} new_roots;

/* False: no memory, or deeper than the gate makes paths. *out 0: a parameter without path. */
static bool reroot(ing_paths *p, ing_path of, const new_roots *to, uint32_t depth,
                   ing_path *out) {
    ing_path chain[MAX_CHAIN];
    uint32_t steps = chain_of(p, of, chain);
    *out = 0;
    if (steps == 0 || depth > MAX_NESTING) return false;
    ing_path_node root = p->nodes.at[chain[steps - 1]];
    ing_path at = chain[steps - 1];
    if (root.step == ING_STEP_FRAME_FUNC) at = to->func;
    if (root.step == ING_STEP_FRAME_PARAM)
        at = (uint64_t)root.i < to->n ? to->params[root.i] : 0;
    if (at == 0) return true;
    for (uint32_t k = steps - 1; k-- > 0;) {
        ing_path_node s = p->nodes.at[chain[k]];
        if (ing_step_names_path(&s)) {
            ing_path arg = 0;
            if (!reroot(p, (ing_path)s.i, to, depth + 1, &arg)) return false;
            if (arg == 0) return true; /* the argument is the caller's own value */
            s.i = arg;
        }
        const char *name = s.atom ? ing_atoms_text(&p->atoms, s.atom) : NULL;
        at = ing_path_add(p, at, (ing_step)s.step, name, s.i);
        if (at == 0) return false;
    }
    *out = at;
    return true;
}

bool ing_path_reroot(ing_paths *p, ing_path of, ing_path func, const ing_path *params,
                     uint32_t n, ing_path *out) {
    return reroot(p, of, &(new_roots){func, params, n}, 0, out);
}

static void print_step(const ing_paths *p, const ing_path_node *n, ing_bytes *out) {
    const char *name = ing_atoms_text(&p->atoms, n->atom);
    long long i = (long long)n->i;
    switch ((ing_step)n->step) {
    case ING_STEP_NONE: break;
    case ING_STEP_KERNEL: ing_bytes_puts(out, "kernel"); break;
    case ING_STEP_ARG: ing_bytes_printf(out, "arg(%s)", name); break;
    case ING_STEP_FRAME_FUNC: ing_bytes_puts(out, "func"); break;
    case ING_STEP_FRAME_PARAM: ing_bytes_printf(out, "param(%lld)", i); break;
    case ING_STEP_GLOBAL: ing_bytes_printf(out, ":global(%s)", name); break;
    case ING_STEP_CLOSURE: ing_bytes_printf(out, ":closure(%s)", name); break;
    case ING_STEP_BUILTIN: ing_bytes_printf(out, ":builtin(%s)", name); break;
    case ING_STEP_PARAM: ing_bytes_printf(out, ":annotation(%lld)", i); break;
    case ING_STEP_DEFAULT: ing_bytes_printf(out, ":default(%lld)", i); break;
    case ING_STEP_RETURNS: ing_bytes_puts(out, ":returns"); break;
    case ING_STEP_ATTR: ing_bytes_printf(out, ".%s", name); break;
    case ING_STEP_ITEM_INT: ing_bytes_printf(out, "[%lld]", i); break;
    case ING_STEP_ITEM_STR: ing_bytes_printf(out, "['%s']", name); break;
    case ING_STEP_CALL: ing_bytes_puts(out, "()"); break;
    case ING_STEP_CALL_PATH: break; /* printed by the caller: it leads elsewhere */
    case ING_STEP_CALL_INT: ing_bytes_printf(out, "<%lld>", i); break;
    case ING_STEP_CALL_BOOL: ing_bytes_puts(out, i ? "<True>" : "<False>"); break;
    case ING_STEP_CALL_FLOAT: {
        double d;
        memcpy(&d, &n->i, sizeof d);
        ing_bytes_printf(out, "<%.17g>", d);
        break;
    }
    case ING_STEP_CALL_STR: ing_bytes_printf(out, "<'%s'>", name); break;
    case ING_STEP_CALL_NAME: ing_bytes_printf(out, "<%s=>", name); break;
    case ING_STEP_CALL_OPEN: ing_bytes_printf(out, "<box(%lld)>", i); break;
    case ING_STEP_CALL_CLOSE: ing_bytes_puts(out, "<end>"); break;
    case ING_STEP_CALL_NONE: ing_bytes_puts(out, "<None>"); break;
    case ING_STEP_FIELD_TYPE: ing_bytes_printf(out, ".%s:type", name); break;
    case ING_STEP_N: break;
    case ING_STEP_CONFIG: ing_bytes_printf(out, "config(%s)", name); break;
    case ING_STEP_LEN: ing_bytes_puts(out, ":len"); break;
    case ING_STEP_TRUTH: ing_bytes_puts(out, ":bool"); break;
    case ING_STEP_ITEMS: ing_bytes_puts(out, ":items"); break;
    case ING_STEP_SAME: ing_bytes_puts(out, ":is"); break; /* then what, if not None */
    case ING_STEP_SMALL: ing_bytes_printf(out, ":extent(%lld)", (long long)n->i); break;
    case ING_STEP_BESIDE: break; /* likewise */
    }
}

static void print_path(const ing_paths *p, ing_path of, uint32_t depth,
                       ing_bytes *out) {
    ing_path chain[MAX_CHAIN];
    uint32_t n = chain_of(p, of, chain);
    if (n == 0 || depth > MAX_NESTING) ing_bytes_puts(out, "...");
    while (n-- > 0 && depth <= MAX_NESTING) {
        const ing_path_node *s = &p->nodes.at[chain[n]];
        if (s->step != ING_STEP_CALL_PATH) print_step(p, s, out);
        if (!ing_step_names_path(s)) continue;
        ing_bytes_puts(out, "<");
        print_path(p, (ing_path)s->i, depth + 1, out);
        ing_bytes_puts(out, ">");
    }
}

void ing_path_print(const ing_paths *p, ing_path of, ing_bytes *out) {
    print_path(p, of, 0, out);
}
