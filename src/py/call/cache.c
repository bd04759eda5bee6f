/* The cache of a kernel (src/cache), seen from Python: what it asks of the process and of the
 * kernel, and a variant made of what it found. Called by call.c when no variant in memory
 * fits. */
#include "py/call/guard.h"

/* ---- what the cache asks ------------------------------------------------------------------------ */

static bool is_on(void *self) {
    const ing_py_host *h = self;
    return h->st->settings.at[ING_SET_src_ll_cache] && h->target->gen;
}

static ing_status open_store(void *self) {
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = ing_py_host_store(self, &ignored);
    ing_err_fini(&ignored);
    return s;
}

void ing_py_cache_host(ing_py_host *h) {
    h->cache = (ing_cache_host){.engine = h->engine,
                                .counters = &h->st->counters,
                                .is_on = is_on,
                                .open = open_store,
                                .release = h->callbacks.release,
                                .acquire = h->callbacks.acquire,
                                .self = h};
}

static const char *param_name(const void *self, uint32_t i) {
    const ing_py_def *d = self;
    return ing_py_utf8(PyTuple_GET_ITEM(d->names, i));
}

static ing_status address_of(void *self, ing_hash128 *out, ing_err *e) {
    ing_py_kernel *k = self;
    ing_cache_source s = {.n_params = k->def.n_params,
                          .param = param_name,
                          .self = &k->def,
                          .pure = k->pure,
                          .graph = k->graph ? 1u + k->checkpoints : 0,
                          .derivative = k->mode};
    ING_TRY(ing_py_def_digest(k->st, &k->def, &s.source, e));
    *out = ing_cache_address(&s);
    return ING_OK;
}

static const ing_record *record_of(const void *variant) {
    return &((const ing_py_variant *)variant)->record;
}

static void drop(void *self, void *variant) {
    ing_py_kernel *k = self;
    if (k->last == variant) k->last = NULL;
    ing_py_variant_unref(variant);
}

bool ing_py_cache_init(ing_py_kernel *k) {
    ing_cache_kernel calls = {address_of, record_of, drop, k};
    return ing_cache_init(&k->cache, &k->host->cache, &calls, &k->paths);
}

int ing_py_cache_address(ing_py_kernel *k, ing_hash128 *out) {
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = address_of(k, out, &ignored);
    if (s != ING_OK) *out = (ing_hash128){0, 0};
    ing_err_fini(&ignored);
    return s == ING_PYTHON ? -1 : 0;
}

/* ---- a variant of a leaf -------------------------------------------------------------------------- */

/* Binds name parameters of this kernel. */
static bool binds_fit(const ing_py_kernel *k, const ing_record *r) {
    for (uint32_t i = 0; i < r->binds.len; i++) {
        const ing_record_bind *b = &r->binds.at[i];
        bool direct = b->kind == ING_BIND_SCALAR || b->kind == ING_BIND_ARRAY;
        if (direct && b->arg >= k->def.n_params) return false;
    }
    return true;
}

/* Results are read as the annotation says (call.c), so a record must say the same. A gradient
 * returns nothing. */
static bool returns_fit(const ing_py_kernel *k, const ing_record *r) {
    const ing_gate_returns *a = &k->def.returns;
    uint64_t n = 0;
    if (k->mode == ING_AD_REVERSE) return r->n_rets == 0;
    if (k->mode == ING_AD_SIZE || k->mode == ING_AD_BOUNDS) return r->n_rets == 1;
    for (uint32_t i = 0; i < a->n; i++)
        n += a->layouts[i] ? a->layouts[i]->n_numbers : ing_gate_count(&a->tensors[i]);
    return n == r->n_rets && r->returns_tuple == (a->n > 1 || a->tuple);
}

static ing_status load(const ing_py_asker *a, uint32_t leaf, ing_questions *asked,
                       ing_py_variant *v, ing_err *e) {
    ing_py_kernel *k = a->kernel;
    ING_TRY(ing_cache_record(&k->cache, leaf, ing_py_ask_again, (void *)a, asked,
                             &v->record, e));
    if (!returns_fit(k, &v->record) || !binds_fit(k, &v->record)) return ING_DECLINED;
    ING_TRY(ing_cache_code(&k->cache, v->target, &v->record, &k->st->settings, &v->code,
                           e));
    ING_TRY(ing_launch_tasks_init(&v->tasks, &v->code, e));
    ING_TRY(ing_py_graph_make(v, e));
    ING_TRY(ing_py_guards_make(k, v, a->args, e));
    k->cache.seen.loaded = true;
    ing_count(&k->st->counters, ING_COUNT_KERNEL_DISK_HITS);
    return ing_py_tell_gdb(k, v, a->args) < 0 ? ING_PYTHON : ING_OK;
}

ing_status ing_py_cache_load(const ing_py_asker *a, uint32_t leaf, ing_questions *asked,
                             ing_py_variant **out, ing_err *e) {
    ing_py_variant *v = ing_py_variant_new(a->kernel->host);
    ing_status s = v ? load(a, leaf, asked, v, e) : ING_DECLINED;
    if (s == ING_OK)
        *out = v;
    else
        ing_py_variant_unref(v);
    return s;
}
