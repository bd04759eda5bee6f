/* The room of a gradient's stacks. A kernel of mode ING_AD_SIZE (src/ad/size.c) finds it before
 * the gradient is launched; its answer holds as long as the words and generations (R25) that
 * it read are the same, and is remembered for the last few of these. Called by call.c; arrays of
 * other libraries, and those that others may write, count as changed at every launch. */
#include "py/array/field.h"
#include "py/call/guard.h"

#include <string.h>

static void drop(ing_py_size *s) {
    ing_free(s->key);
    *s = (ing_py_size){0};
}

void ing_py_sizes_drop(ing_py_kernel *k) {
    for (uint32_t i = 0; i < ING_PY_SIZES; i++) drop(&k->sizes[i]);
}

/* Words of a bind, from b->word on. */
static uint32_t words_of(const ing_py_kernel *k, const ing_py_bind *b) {
    if (b->kind == ING_BIND_ARRAY || b->kind == ING_BIND_CAPTURED)
        return b->field ? 1 : 1u + b->array.ndim + b->array.grad;
    if (b->kind == ING_BIND_NUMBER) return 1;
    const ing_gate_param *p = &k->def.params[b->arg];
    return p->layout ? p->layout->n_numbers : (uint32_t)ing_gate_count(&p->tensor);
}

static uint64_t generation_of(const ing_py_kernel *k, PyObject *obj) {
    if (ing_py_is_array(k->st, obj))
        return ing_py_array_generation(k->st, (const ing_py_array *)obj);
    if (ing_py_is_field(k->st, obj))
        return ing_py_field_generation(k->st, (const ing_py_field *)obj);
    return 0;
}

/* What the kernel read: of an array its extents, of its elements the generation. False: they
 * are not known to be the same ever again. */
static bool make_key(const ing_py_kernel *k, const ing_py_checks *c,
                     PyObject *const *args, PyObject *const *held,
                     const uint64_t *words, uint32_t n_words, uint64_t *key) {
    for (uint32_t i = 0; i < c->binds.len; i++) {
        const ing_py_bind *b = &c->binds.at[i];
        bool array = b->kind == ING_BIND_ARRAY || b->kind == ING_BIND_CAPTURED;
        uint32_t n = words_of(k, b), from = b->word + array;
        if (b->reads == ING_IR_READS_NOTHING || b->word + n > n_words) continue;
        memcpy(key + from, words + from, (n - array) * sizeof *key);
        if (!array || b->reads != ING_IR_READS_ELEMENTS) continue;
        PyObject *obj = b->kind == ING_BIND_ARRAY ? args[b->arg] : held[b->fetch - 1];
        key[n_words + i] = generation_of(k, obj);
        if (!key[n_words + i]) return false;
    }
    return true;
}

bool ing_py_size_known(ing_py_kernel *k, const ing_py_variant *v,
                       const ing_py_checks *c, PyObject *const *args,
                       PyObject *const *held, const uint64_t *words, ing_py_size *now) {
    uint32_t n_words = v->record.n_words;
    *now = (ing_py_size){.variant = v, .n = n_words + c->binds.len};
    now->key = ing_calloc(now->n + 1, sizeof *now->key);
    if (!now->key) return false; /* it is found again next time */
    if (v->record.draws || !make_key(k, c, args, held, words, n_words, now->key)) {
        drop(now);
        return false;
    }
    for (uint32_t i = 0; i < ING_PY_SIZES; i++) {
        ing_py_size s = k->sizes[i];
        if (s.variant != v || s.n != now->n || !s.key ||
            memcmp(s.key, now->key, s.n * sizeof *s.key) != 0)
            continue;
        memmove(k->sizes + 1, k->sizes, i * sizeof s);
        k->sizes[0] = s;
        k->size = s.bytes;
        drop(now);
        return true;
    }
    return false;
}

static bool reads_elements(const ing_py_variant *v) {
    for (uint32_t i = 0; i < v->record.binds.len; i++)
        if (v->record.binds.at[i].reads == ING_IR_READS_ELEMENTS) return true;
    return false;
}

void ing_py_size_note(ing_py_kernel *k, const ing_py_variant *v, ing_py_size *now,
                      uint64_t bytes) {
    k->size = bytes;
    if (k->mode == ING_AD_SIZE || reads_elements(v))
        ing_count(&k->st->counters, ING_COUNT_LAUNCH_SIZED);
    if (!now->key) return;
    now->bytes = bytes;
    drop(&k->sizes[ING_PY_SIZES - 1]);
    memmove(k->sizes + 1, k->sizes, (ING_PY_SIZES - 1) * sizeof *now);
    k->sizes[0] = *now;
}

int ing_py_bounds_count(ing_py_kernel *k, PyObject *const *args) {
    if (!k->last || k->last->record.sized) return 0; /* counted */
    PyObject *of = ing_py_companion(k->primal, ING_AD_BOUNDS);
    if (!of) return -1;
    ((ing_py_kernel *)of)->forward_key = k->forward_key;
    PyObject *r = ing_py_launch((ing_py_kernel *)of, args, NULL);
    Py_XDECREF(r);
    Py_DECREF(of);
    return r ? 0 : -1;
}

ing_status ing_py_size_find(ing_py_kernel *k, PyObject *const *args, uint64_t *bytes,
                            ing_err *e) {
    PyObject *of = ing_py_companion(k->primal, ING_AD_SIZE);
    if (!of) return ING_PYTHON;
    ing_py_kernel *sizer = (ing_py_kernel *)of;
    sizer->forward_key =
        k->forward_key; /* loops may be as long as random numbers say */
    PyObject *r = ing_py_launch(sizer, args, NULL);
    *bytes = sizer->size;
    Py_XDECREF(r);
    Py_DECREF(of);
    if (!r) return ING_PYTHON;
    if (*bytes > (uint64_t)1 << 46)
        return ing_fail(e, ING_MEMORY, "%s: the stacks of the gradient need %llu bytes",
                        ing_py_def_name(&k->def), (unsigned long long)*bytes);
    return ING_OK;
}
