/* Places in the user's terms: code has a function ordinal and a node (R19); the variant
 * knows which trees those are. For run-time errors of a launch, for warnings that a variant
 * carries, and for gdb. */
#include "py/call/kernel.h"
#include "trace/notes.h"

#include <string.h>

typedef struct at { /* where an error happened */
    ing_py_kernel *kernel;
    const ing_py_variant *variant;
    PyObject *const *args;
    const ing_error_slot *slot;
} at;

/* No place can be told where looking for it fails: true. False: by what says nothing about
 * places (an interrupt, no memory), which is raised. */
static bool no_place(void) {
    return !PyErr_Occurred() || ing_py_took_any();
}

/* The definition that lies at a path now; NULL: none, or raised. */
static ing_py_def *def_at(ing_py_kernel *k, PyObject *const *args, ing_path path,
                          PyObject **owner) {
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = ing_py_resolve(k, args, path, owner, &ignored);
    ing_err_fini(&ignored);
    if (s != ING_OK) (void)no_place();
    return s == ING_OK ? ing_py_def_of(k->st, *owner) : NULL;
}

/* Its tree, parsed now if the variant came from the cache; positions are those of today's
 * text (R19). */
static const ing_front_tree *tree_in(ing_py_kernel *k, ing_py_def *d) {
    ing_err ignored;
    ing_err_init(&ignored);
    const ing_front_tree *tree = NULL;
    if (PyErr_Occurred()) return NULL;
    ing_status s = d ? ing_py_def_tree(k->st, d, &tree, &ignored) : ING_OK;
    ing_err_fini(&ignored);
    if (s != ING_OK) (void)no_place();
    return s == ING_OK ? tree : NULL;
}

static const ing_front_tree *tree_at(ing_py_kernel *k, PyObject *const *args,
                                     ing_path path, PyObject **owner) {
    return tree_in(k, def_at(k, args, path, owner));
}

/* That of the function where it happened. */
static const ing_front_tree *tree_of(const at *a, PyObject **owner) {
    const ing_py_variant *v = a->variant;
    if (a->slot->task >= v->record.tasks.len) return NULL;
    const ing_record_task *t = &v->record.tasks.at[a->slot->task];
    if (a->slot->func >= t->trees.len) return NULL;
    /* A func that was opened in the kernel: its tree, counted from the end. */
    uint32_t opened = a->slot->node >> ING_FRONT_TREE_SHIFT;
    uint32_t i = opened ? v->record.trees.len - opened : t->trees.at[a->slot->func];
    if (i >= v->record.trees.len) return NULL;
    return tree_at(a->kernel, a->args, v->record.trees.at[i], owner);
}

static ing_status at_node(const at *a, ing_status s, const char *remedy, ing_err *e,
                          const char *text) {
    PyObject *owner = NULL; /* of the tree */
    const ing_front_tree *t = tree_of(a, &owner);
    uint32_t node = a->slot->node & ((1u << ING_FRONT_TREE_SHIFT) - 1);
    if (PyErr_Occurred())
        s = ING_PYTHON;
    else if (!t || node >= t->nodes.len)
        s = ing_fail(e, s, "%s", text);
    else
        s = ing_front_diag(t, node ? node : t->root, s, remedy, e, "%s", text);
    Py_XDECREF(owner);
    return s;
}

static const char *overflow_name(const ing_error_slot *slot) {
    switch (slot->detail[0]) {
    case ING_ABI_OVERFLOW_ADD: return "Addition";
    case ING_ABI_OVERFLOW_SUB: return "Subtraction";
    case ING_ABI_OVERFLOW_MUL: return "Multiplication";
    default: return "Shift left";
    }
}

/* An assert with a message, its numbers filled in. */
static ing_status assertion(const at *a, const char *message, ing_err *e) {
    ing_bytes text;
    ing_bytes_init(&text);
    ing_front_message_fill(message, a->slot->detail, ING_ABI_MAX_DETAIL, &text);
    bool ok = !text.failed && text.at;
    ing_status s = at_node(a, ING_ASSERT, NULL, e, ok ? (char *)text.at : message);
    ing_bytes_fini(&text);
    return s;
}

/* An access beyond a view, with the numbers of the view and the functions that are known:
 * the kernel, and the one where it happened. A shared func has many callers. */
static ing_status beyond_view(const at *a, ing_err *e) {
    static const struct {
        const char *what, *found, *then; /* around the name, the number, the rest */
    } texts[] = {
        [ING_ABI_VIEW_INDEX] = {"BufferView Out Of Range", "got index ", ""},
        [ING_ABI_VIEW_SUBVIEW] = {"BufferView subview Out Of Range", "a view of size ",
                                  " has no part"},
        [ING_ABI_VIEW_MAKE] = {"BufferView construction out of range", "an array of ",
                               " elements has no part"},
    };
    const uint64_t *d = a->slot->detail;
    const char *kernel = ing_py_def_name(&a->kernel->def);
    PyObject *owner = NULL;
    const ing_front_tree *t = tree_of(a, &owner);
    const char *inner = t && t->name ? t->name : kernel;
    char text[400], stack[200] = "";
    if (PyErr_Occurred()) {
        Py_XDECREF(owner);
        return ING_PYTHON;
    }
    if (strcmp(inner, kernel) != 0) snprintf(stack, sizeof stack, "\n  %.150s", inner);
    uint64_t k = d[0] <= ING_ABI_VIEW_MAKE ? d[0] : 0;
    int n = snprintf(text, sizeof text,
                     "%s: kernel[%s] tid=?, %s%lld%s (offset=%lld, size=%lld).",
                     texts[k].what, kernel, texts[k].found, (long long)d[1],
                     texts[k].then, (long long)d[2], (long long)d[3]);
    if (n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "\nCallstack:\n%.100s%s", kernel,
                 stack);
    Py_XDECREF(owner);
    return at_node(a, ING_INDEX, NULL, e, text);
}

/* What to do about an index that is none of those from `first` to `last`. */
static void bounds_remedy(int64_t index, int64_t axis, int64_t first, int64_t last,
                          char *buf, size_t size) {
    if (last < first)
        snprintf(buf, size, "there is no element: test a.shape[%lld] > 0 first",
                 (long long)axis);
    else if (first)
        snprintf(buf, size, "indices go from %lld to %lld here: test the index first",
                 (long long)first, (long long)last);
    else if (index < 0)
        snprintf(buf, size,
                 "negative indices do not count from the end: the last one is "
                 "a.shape[%lld] - 1",
                 (long long)axis);
    else
        snprintf(buf, size,
                 "the last one is %lld: end the loop at a.shape[%lld], or test the "
                 "index first",
                 (long long)last, (long long)axis);
}

/* An access beyond a field: axis, index, end, first index, and the message that names it. */
static ing_status beyond_field(const at *a, ing_err *e) {
    const uint64_t *d = a->slot->detail;
    uint64_t message = d[4] - ING_ABI_USER;
    const char *field = message < a->variant->record.messages.len
                            ? a->variant->record.messages.at[message]
                            : "the field";
    char text[500];
    snprintf(
        text, sizeof text,
        "(kernel=%.100s) Accessing %.200s: index %lld is out of bounds for axis %lld, "
        "which goes from %lld to %lld",
        ing_py_def_name(&a->kernel->def), field, (long long)d[1], (long long)d[0],
        (long long)d[3], (long long)d[2] - 1);
    char remedy[160];
    bounds_remedy((int64_t)d[1], (int64_t)d[0], (int64_t)d[3], (int64_t)d[2] - 1,
                  remedy, sizeof remedy);
    return at_node(a, ING_INDEX, remedy, e, text);
}

/* A loop whose bounds no index holds. */
static ing_status endless(const at *a, ing_err *e) {
    const uint64_t *d = a->slot->detail;
    char text[160] = "a loop of 2**63 iterations or more";
    const char *remedy = "loop over fewer";
    double x;
    memcpy(&x, &d[1], sizeof x);
    if (d[0] == ING_ABI_LOOP_BOUND) {
        snprintf(text, sizeof text,
                 "the bound %llu of a loop: an index counts up to 2**63 - 1",
                 (unsigned long long)d[1]);
        remedy = "loop from a smaller number and add in the loop";
    } else if (d[0] == ING_ABI_LOOP_FLOAT) {
        snprintf(text, sizeof text,
                 "the bound %.17g of a loop is a float that no i32 holds", x);
        remedy = "convert it: qd.cast(x, qd.i64)";
    } else if (d[0] == ING_ABI_LOOP_STEP) {
        snprintf(text, sizeof text, "the step of a range is 0");
        remedy = "pass a step that is not 0";
    }
    return at_node(a, ING_VALUE, remedy, e, text);
}

/* The gradients that the launch added to: `x.grad, y.grad`. */
static void put_gradients(const at *a, ing_bytes *out) {
    const ing_record *r = &a->variant->record;
    const char *between = "";
    for (uint32_t i = 0; i < r->binds.len; i++) {
        const ing_record_bind *b = &r->binds.at[i];
        bool array = b->kind == ING_BIND_ARRAY || b->kind == ING_BIND_CAPTURED;
        if (!array || !b->written || !b->path) continue;
        ing_bytes_puts(out, between);
        ing_words_path(&a->kernel->paths, b->path, out);
        between = ", ";
    }
}

/* A loop ran more often than was found before the launch, or memory ran out. */
static ing_status no_room(const at *a, ing_err *e) {
    ing_bytes names, text;
    int64_t forced = a->kernel->st->settings.at[ING_SET_ad_stack_size];
    if (!a->variant->record.sized && forced > 0)
        return at_node(
            a, ING_ASSERT, "leave out ad_stack_size: stacks are as long as needed", e,
            "Adstack overflow: this loop runs more often than ad_stack_size of "
            "qd.init allows");
    if (!a->variant->record.sized)
        return at_node(a, ING_MEMORY, "differentiate fewer iterations at a time", e,
                       "no memory for what the backward pass of this loop keeps");
    ing_bytes_init(&names);
    ing_bytes_init(&text);
    put_gradients(a, &names);
    ing_bytes_printf(
        &text,
        "(kernel=%s, task %u) Adstack overflow: the backward pass of this loop needs "
        "more room than was "
        "found before the launch: what bounds the loop was changed behind Ingot's "
        "back, "
        "or this is a bug of Ingot. These gradients hold partial sums: %s",
        ing_py_def_name(&a->kernel->def), a->slot->task,
        names.at ? (const char *)names.at : "none");
    ing_status s = at_node(
        a, ING_ASSERT,
        "clear these gradients and launch all of them again: room is found anew; write "
        "such arrays by kernels or methods of the array",
        e, text.at ? (const char *)text.at : "no room for a loop's stack");
    ing_bytes_fini(&names);
    ing_bytes_fini(&text);
    return s;
}

ing_status ing_py_error_at(ing_py_kernel *k, const ing_py_variant *v,
                           PyObject *const *args, const ing_error_slot *slot,
                           ing_status s, const char *remedy, ing_err *e,
                           const char *text) {
    at a = {k, v, args, slot};
    return at_node(&a, s, remedy, e, text);
}

ing_status ing_py_launch_error(ing_py_kernel *k, const ing_py_variant *v,
                               PyObject *const *args, const ing_error_slot *slot,
                               ing_err *e) {
    at a = {k, v, args, slot};
    char text[128], remedy[160];
    switch (slot->code) {
    case ING_ABI_CANCELLED:
        return ing_fail(e, ING_CANCELLED, "the launch was interrupted");
    case ING_ABI_ASSERT: return at_node(&a, ING_ASSERT, NULL, e, "assertion failed");
    case ING_ABI_MEMORY:
        return ing_fail(e, ING_MEMORY, "no memory for the interpreter");
    case ING_ABI_OVERFLOW:
        snprintf(text, sizeof text, "%s overflow detected", overflow_name(slot));
        return at_node(&a, ING_RUNTIME, NULL, e, text);
    case ING_ABI_BOUNDS:
        snprintf(text, sizeof text,
                 "Out of bound access: index %lld is out of bounds for axis %lld with "
                 "size %lld",
                 (long long)slot->detail[1], (long long)slot->detail[0],
                 (long long)slot->detail[2]);
        bounds_remedy((int64_t)slot->detail[1], (int64_t)slot->detail[0], 0,
                      (int64_t)slot->detail[2] - 1, remedy, sizeof remedy);
        return at_node(&a, ING_INDEX, remedy, e, text);
    case ING_ABI_FIELD: return beyond_field(&a, e);
    case ING_ABI_VIEW: return beyond_view(&a, e);
    case ING_ABI_LOOP: return endless(&a, e);
    case ING_ABI_ZERO:
        return at_node(&a, ING_ZERO,
                       "test the divisor first: `x // y if y != 0 else 0`", e,
                       "integer division by zero");
    case ING_ABI_SCRATCH: return no_room(&a, e);
    case ING_ABI_RULE:
        return at_node(
            &a, ING_COMPILE,
            "give other numbers, or another array: subscripts that differ in "
            "arguments must differ where one reads and the other writes later",
            e,
            "cannot be differentiated: with the numbers of this launch an "
            "element that was read, and whose value the backward pass needs, "
            "is overwritten here");
    default: break;
    }
    uint32_t message = (uint32_t)slot->code - ING_ABI_USER;
    if (slot->code >= ING_ABI_USER && message < v->record.messages.len)
        return assertion(&a, v->record.messages.at[message], e);
    return ing_fail(e, ING_RUNTIME, "the kernel stopped with code %d", slot->code);
}

/* The line of a task is that of its loop; the text is parsed for it. */
int ing_py_tell_gdb(ing_py_kernel *k, const ing_py_variant *v, PyObject *const *args) {
    if (!k->st->settings.at[ING_SET_gdb]) return 0;
    for (uint32_t i = 0; i < v->record.tasks.len; i++) {
        ing_error_slot slot = {.node = v->record.tasks.at[i].info.loc, .task = i};
        at a = {k, v, args, &slot};
        PyObject *owner = NULL;
        const ing_front_tree *t = v->code.images ? tree_of(&a, &owner) : NULL;
        uint32_t node = slot.node & ((1u << ING_FRONT_TREE_SHIFT) - 1);
        if (t && node < t->nodes.len) {
            ing_image_origin from = {.name = ing_py_def_name(&k->def),
                                     .file = t->file ? t->file : "<unknown>",
                                     .line = t->first_line +
                                             t->nodes.at[node ? node : t->root].line};
            ing_image_register_debug(v->code.images[i], &from);
        }
        Py_XDECREF(owner);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

/* ---- warnings ------------------------------------------------------------------------------- */

/* Is the definition's text the one of that stamp? Then places in it are known without
 * parsing. */
static bool has_text(ing_py_kernel *k, ing_py_def *d, uint64_t stamp) {
    if (ing_py_def_text(k->st, d) < 0 || !d->text) return false;
    size_t n = (size_t)PyBytes_GET_SIZE(d->text);
    return ing_hash(PyBytes_AS_STRING(d->text), n).lo == stamp;
}

/* "file:line: text", or the text alone if it is about no place. NULL: raised. */
static PyObject *placed(ing_py_kernel *k, PyObject *const *args, const ing_record *r,
                        const ing_record_warning *w) {
    PyObject *text = ing_py_lenient(w->text), *owner = NULL, *out;
    if (!text) return NULL;
    uint32_t line = w->line;
    ing_py_def *d = w->tree ? def_at(k, args, r->trees.at[w->tree - 1], &owner) : NULL;
    bool known = d && has_text(k, d, w->stamp);
    const ing_front_tree *t = known ? NULL : tree_in(k, d);
    if (t && w->node < t->nodes.len) {
        line = t->nodes.at[w->node].line;
        known = true;
    }
    if (PyErr_Occurred()) {
        out = NULL;
    } else if (known) {
        PyObject *file = ((PyCodeObject *)PyFunction_GET_CODE(d->fn))->co_filename;
        out = PyUnicode_FromFormat("%U:%u: %U", file, d->first_line + line, text);
    } else {
        out = Py_NewRef(text);
    }
    Py_XDECREF(owner);
    Py_DECREF(text);
    return out;
}

static PyObject *class_of(const ing_py_state *st, const char *category) {
    static const char *const names[] = {"DeprecationWarning", "SyntaxWarning"};
    PyObject *const classes[] = {PyExc_DeprecationWarning, PyExc_SyntaxWarning};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(category, names[i]) == 0) return classes[i];
    return st->exc[ING_PY_EXC_WARNING];
}

ing_status ing_py_give_warnings(ing_py_kernel *k, const ing_py_variant *v,
                                PyObject *const *args) {
    if (ing_py_host_warn(k->host) < 0) return ING_PYTHON;
    for (uint32_t i = 0; i < v->record.warnings.len; i++) {
        const ing_record_warning *w = &v->record.warnings.at[i];
        PyObject *text = placed(k, args, &v->record, w);
        PyObject *category = class_of(k->st, w->category);
        int r = text ? PyErr_WarnFormat(category, 1, "%U", text) : -1;
        Py_XDECREF(text);
        if (r < 0) return ING_PYTHON;
    }
    return ING_OK;
}
