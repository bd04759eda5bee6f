/* Too many variants (R12): a warning when eight of them differ in nothing but one value that
 * was compiled in, and a bound on how many a kernel keeps in memory. Called when a variant
 * was added to a kernel; what is dropped here comes back from disk, or is made again. */
#include "py/call/guard.h"

enum { STORM = 8, MAX_IN_MEMORY = 256, MAX_SHOWN = 40 };

void ing_py_variant_used(ing_py_kernel *k, ing_py_variant *v) {
    v->used = ++k->uses;
}

/* ---- the bound ------------------------------------------------------------------------------ */

/* How many there were. */
static uint32_t drop_oldest(ing_py_kernel *k, const ing_py_variant *keep) {
    uint32_t n = 0, oldest = UINT32_MAX;
    for (uint32_t i = 0; i < k->cache.leaves.len; i++) {
        const ing_py_variant *v = ing_py_variant_at(k, i);
        n += v != NULL;
        if (!v || v == keep || v == k->last) continue;
        if (oldest == UINT32_MAX || v->used < ing_py_variant_at(k, oldest)->used)
            oldest = i;
    }
    if (n <= MAX_IN_MEMORY || oldest == UINT32_MAX) return n;
    ing_py_variant *gone = ing_py_variant_at(k, oldest);
    k->cache.leaves.at[oldest].variant = NULL;
    ing_py_variant_unref(gone);
    return n;
}

/* ---- the warning ----------------------------------------------------------------------------- */

/* The one question that two traces answer differently; UINT32_MAX: not exactly one. */
static uint32_t only_difference(const ing_trace *a, const ing_trace *b) {
    uint32_t found = UINT32_MAX;
    if (a->list.len != b->list.len) return UINT32_MAX;
    for (uint32_t i = 0; i < a->list.len; i++) {
        const ing_question *x = &a->list.at[i], *y = &b->list.at[i];
        if (x->path != y->path || x->ask != y->ask) return UINT32_MAX;
        if (ing_hash_eq(x->answer, y->answer)) continue;
        if (found != UINT32_MAX) return UINT32_MAX;
        found = i;
    }
    return found;
}

/* The value that the variant was made for; borrowed, NULL: not one that is compiled in. */
static PyObject *value_at(const ing_py_variant *v, ing_path path) {
    const ing_py_checks *c = v->checks;
    for (uint32_t i = 0; i < c->guards.len; i++) {
        PyObject *o = c->guards.at[i].expect;
        if (c->guards.at[i].path == path && c->guards.at[i].ask == ING_ASK_LOOK && o &&
            (PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o)))
            return o;
    }
    return NULL;
}

static int show(ing_bytes *out, PyObject *value) {
    bool plain = PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
                 PyUnicode_CheckExact(value); /* else repr would be the user's */
    char buf[MAX_SHOWN + 1];
    snprintf(buf, sizeof buf, "%s", Py_TYPE(value)->tp_name);
    PyObject *text = plain ? PyObject_Repr(value) : NULL;
    int rc = text ? ing_py_show(text, buf, sizeof buf) : plain ? -1 : 0;
    if (rc < 0 && ing_py_took(PyExc_ValueError)) rc = 0; /* an int of too many digits */
    ing_bytes_printf(out, "%s%s", out->len ? ", " : "", buf);
    Py_XDECREF(text);
    return rc;
}

static ing_status warn(ing_py_kernel *k, ing_path path, const ing_bytes *values) {
    ing_bytes name;
    ing_bytes_init(&name);
    ing_path_print(&k->paths, path, &name);
    int r = PyErr_WarnFormat(
        k->st->exc[ING_PY_EXC_WARNING], 1,
        "%s was compiled for %d values of %s: %s. A value that is compiled in makes "
        "new "
        "code each time it changes; make it an argument of the kernel, or declare its "
        "class with @qd.data_oriented(template_primitives=False)",
        ing_py_def_name(&k->def), STORM, name.at ? (const char *)name.at : "?",
        values->at ? (const char *)values->at : "?");
    ing_bytes_fini(&name);
    return r < 0 ? ING_PYTHON : ING_OK;
}

/* Looks for the values of one question among the variants that differ from v in it alone.
 * Runs once per variant made, beside a compile or a read from disk. */
static ing_status look_for_storm(ing_py_kernel *k, const ing_py_variant *v) {
    for (uint32_t q = 0; q < v->record.trace.list.len; q++) {
        ing_path path = v->record.trace.list.at[q].path;
        PyObject *mine = value_at(v, path);
        if (!mine || k->paths.nodes.at[path].step == ING_STEP_SMALL)
            continue; /* an extent: few values, and nothing that could be done about it */
        uint32_t n = 1;
        int shown = 0;
        ing_bytes values;
        ing_bytes_init(&values);
        for (uint32_t i = 0; i < k->cache.leaves.len && n < STORM && shown == 0; i++) {
            const ing_py_variant *other = ing_py_variant_at(k, i);
            if (!other || other == v ||
                only_difference(&v->record.trace, &other->record.trace) != q)
                continue;
            PyObject *theirs = value_at(other, path);
            if (!theirs) continue;
            shown = show(&values, theirs);
            n++;
        }
        ing_status s = shown < 0 ? ING_PYTHON : ING_OK;
        if (s == ING_OK && n == STORM) {
            k->storm_told = true;
            s = show(&values, mine) < 0 ? ING_PYTHON : warn(k, path, &values);
        }
        ing_bytes_fini(&values);
        if (n == STORM || s != ING_OK) return s;
    }
    return ING_OK;
}

ing_status ing_py_variant_added(ing_py_kernel *k, ing_py_variant *v) {
    ing_py_variant_used(k, v);
    uint32_t n = drop_oldest(k, v);
    return n < STORM || k->storm_told ? ING_OK : look_for_storm(k, v);
}
