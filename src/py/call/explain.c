/* Why a kernel is compiled: at each compile its trace is compared with those of the compiles
 * that were noted before (src/trace/notes.c), the first other answer is the explanation, and
 * the new one is noted in turn. A hit comes nowhere near here. Nothing here fails a launch,
 * except that the setting `frozen` asks for exactly that. */
#include "py/call/guard.h"
#include "trace/notes.h"

#include "ing_revision.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t ing_py_wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char *text_of(const ing_bytes *b) {
    return b->at && !b->failed ? (const char *)b->at : "?";
}

/* ---- words that need Python -------------------------------------------------------------- */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The text of a str attribute, added to `out`; 0: there is none, -1 = raised. */
static int put_attr(PyObject *of, const char *name, bool base, ing_bytes *out) {
    PyObject *v = NULL, *text = NULL;
    int rc = of ? ing_py_attr_maybe(of, name, &v) : 0;
    if (rc < 0) return ing_py_took_any() ? 0 : -1;
    if (v && PyUnicode_Check(v)) {
        text = ing_py_shown(v);
        rc = text ? 1 : -1;
        const char *s = text ? PyBytes_AS_STRING(text) : "";
        ing_bytes_puts(out, base ? base_name(s) : s);
    } else {
        rc = 0;
    }
    Py_XDECREF(v);
    Py_XDECREF(text);
    return rc;
}

int ing_py_source_words(ing_py_state *st, PyObject *fn, ing_bytes *out) {
    const ing_py_def *d = ing_py_def_of(st, fn);
    PyObject *f = d ? d->fn : fn;
    if (put_attr(f, "__name__", false, out) < 0) return -1;
    if (!f || !PyFunction_Check(f)) return 0;
    ing_bytes_puts(out, "() in ");
    return put_attr(PyFunction_GET_CODE(f), "co_filename", true, out) < 0 ? -1 : 0;
}

void ing_py_field_words(const ing_py_declared *f, ing_bytes *out) {
    switch (f->kind) {
    case ING_FIELD_OPEN: ing_bytes_puts(out, "open"); break;
    case ING_FIELD_NUMBER: ing_bytes_puts(out, ing_dtype_name(f->dtype)); break;
    case ING_FIELD_VALUE: ing_bytes_puts(out, "a constant"); break;
    case ING_FIELD_TENSOR: ing_bytes_puts(out, "a vector or matrix"); break;
    case ING_FIELD_STRUCT: ing_bytes_puts(out, "a dataclass"); break;
    case ING_FIELD_ARRAY: ing_words_param(&f->array, out); break;
    case ING_FIELD_REFUSED: break;
    }
}

/* How people call the kernel: module and name. A script is its file's name: all of them are
 * __main__. */
static int label_of(const ing_py_kernel *k, ing_bytes *out) {
    ing_bytes module;
    ing_bytes_init(&module);
    int rc = put_attr(k->def.fn, "__module__", false, &module);
    if (rc == 1 && strcmp(text_of(&module), "__main__") == 0)
        rc = put_attr(PyFunction_GET_CODE(k->def.fn), "co_filename", true, out);
    else
        ing_bytes_put(out, module.at, module.len);
    ing_bytes_puts(out, ".");
    if (rc >= 0) rc = put_attr(k->def.fn, "__qualname__", false, out);
    if (k->mode) ing_bytes_printf(out, ".%s", ing_py_companion_name(k->mode));
    if (k->mode == ING_AD_SIZE) ing_bytes_puts(out, ".room");
    if (k->mode == ING_AD_BOUNDS) ing_bytes_puts(out, ".bounds");
    if (k->mode == ING_AD_TRACE) ing_bytes_puts(out, ".check");
    ing_bytes_fini(&module);
    return rc < 0 ? -1 : 0;
}

/* ---- notes on disk, or in the kernel -------------------------------------------------------- */

enum { TAG_LABEL = 1 };

static ing_hash128 notes_key(const ing_bytes *label) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_item(&h, TAG_LABEL, label->at, label->len);
    return ing_hasher_done(&h);
}

/* Notes are of the kernel level: without it they live in memory. */
static bool on_disk(const ing_py_kernel *k, const ing_store *store) {
    return store && k->st->settings.at[ING_SET_src_ll_cache];
}

static ing_status notes_get(const ing_py_kernel *k, const ing_bytes *label,
                            ing_notes *out) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_store *store = ing_engine_begin(k->host->engine);
    ing_status s = on_disk(k, store)
                       ? ing_store_read(store, ING_ENTRY_NOTES, notes_key(label), &b)
                       : ING_DECLINED;
    ing_engine_end(k->host->engine);
    s = s == ING_OK ? ing_notes_read(b.at, b.len, out)
                    : ing_notes_read(k->notes.at, k->notes.len, out);
    ing_bytes_fini(&b);
    return s;
}

static void notes_put(ing_py_kernel *k, const ing_bytes *label,
                      const ing_notes *notes) {
    ing_bytes b;
    ing_bytes_init(&b);
    if (ing_notes_write(notes, &b) == ING_OK) {
        ing_store *store = ing_engine_begin(k->host->engine);
        if (on_disk(k, store))
            (void)ing_store_put(store, ING_ENTRY_NOTES, notes_key(label), b.at, b.len);
        ing_engine_end(k->host->engine);
        ing_bytes_fini(&k->notes);
        k->notes = b;
        ing_bytes_init(&b);
    }
    ing_bytes_fini(&b);
}

/* ---- the story of one compile ------------------------------------------------------------------ */

struct ing_py_story {
    ing_bytes label, why, code;
    ing_hash128 address;
    ing_notes notes;
};

void ing_py_story_free(ing_py_story *story) {
    if (!story) return;
    ing_bytes_fini(&story->label);
    ing_bytes_fini(&story->why);
    ing_bytes_fini(&story->code);
    ing_notes_fini(&story->notes);
    ing_free(story);
}

/* Why a compile with nothing but equal answers was needed all the same. */
static const char *missing(const ing_py_kernel *k, const ing_py_variant *v) {
    const int64_t *set = k->st->settings.at;
    if (v->record.overlap)
        return "arrays of this launch share memory, and its code takes them to lie "
               "apart";
    if (!set[ING_SET_offline_cache]) return "there is no cache on disk";
    if (!set[ING_SET_src_ll_cache])
        return "kernels are not kept on disk (src_ll_cache=False)";
    if (v->only_here)
        return "it is kept in memory only: it calls a Python function with an argument "
               "that no other process can make";
    return NULL;
}

static ing_notes_compile compile_of(const ing_py_kernel *k, const ing_py_gate *g,
                                    const ing_py_variant *v,
                                    const ing_py_story *story) {
    return (ing_notes_compile){
        .label = text_of(&story->label),
        .trace = &v->record.trace,
        .paths = &k->paths,
        .answers = ing_py_gate_answers(g),
        .revision = ING_FRONT_REVISION,
        .machine = ing_engine_isa_level(k->host->engine, v->target),
        .code = story->code.failed ? NULL : (const char *)story->code.at,
        .when = ing_py_wall_ns(),
        .since = k->cache.looked,
        .pid = (uint32_t)getpid(),
        .address = story->address,
        .missing = missing(k, v)};
}

static ing_status refuse(const ing_py_story *story, ing_err *e) {
    return ing_fail(e, ING_COMPILE,
                    "%s would have to be compiled, and qd.init was told frozen=True: "
                    "%s\nhelp: run the program once with frozen=False, so that the "
                    "cache has it",
                    text_of(&story->label), text_of(&story->why));
}

ing_status ing_py_story_begin(ing_py_kernel *k, const ing_py_gate *g,
                              const ing_py_variant *v, ing_py_story **out, ing_err *e) {
    *out = NULL;
    if (!v->target->gen) return ING_OK;
    ing_py_story *story = ing_calloc(1, sizeof *story);
    if (!story) return ING_OK;
    ing_bytes_init(&story->label);
    ing_bytes_init(&story->why);
    ing_bytes_init(&story->code);
    if (label_of(k, &story->label) < 0 ||
        ing_py_cache_address(k, &story->address) < 0) {
        ing_py_story_free(story);
        return ING_PYTHON;
    }
    (void)notes_get(k, &story->label, &story->notes);
    ing_notes_compile c = compile_of(k, g, v, story);
    ing_notes_why(&story->notes, &c, &story->why);
    *out = story;
    return k->st->settings.at[ING_SET_frozen] ? refuse(story, e) : ING_OK;
}

ing_bytes *ing_py_story_code(ing_py_story *story) {
    return story ? &story->code : NULL;
}

ing_status ing_py_story_end(ing_py_kernel *k, const ing_py_gate *g,
                            const ing_py_variant *v, ing_py_story *story) {
    if (!story) return ING_OK;
    if (ing_py_log_wants(k->st, ING_PY_LOG_CACHE))
        ING_TRY(ing_py_log(k->st, ING_PY_LOG_CACHE, "compiled %s: %s",
                           text_of(&story->label), text_of(&story->why)));
    ing_notes_compile c = compile_of(k, g, v, story);
    if (ing_notes_add(&story->notes, &c, text_of(&story->why)) == ING_OK)
        notes_put(k, &story->label, &story->notes);
    return ING_OK;
}

/* ---- for people: _core._explain ------------------------------------------------------------------ */

/* Appends (label, seconds since 1970, pid, why, code) of each note. */
static int list_notes(const ing_notes *n, PyObject *list) {
    for (uint32_t i = 0; i < n->at.len; i++) {
        const ing_note *note = &n->at.at[i];
        PyObject *row = Py_BuildValue(
            "(NdkNN)", ing_py_lenient(ing_atoms_text(&n->words, n->label)),
            (double)note->when / 1e9, (unsigned long)note->pid,
            ing_py_lenient(ing_atoms_text(&n->words, note->why)),
            ing_py_lenient(ing_atoms_text(&n->words, note->code)));
        int bad = row ? PyList_Append(list, row) : -1;
        Py_XDECREF(row);
        if (bad) return -1;
    }
    return 0;
}

/* The kernel, or that of a bound method; NULL = raised. */
static ing_py_kernel *kernel_of(PyObject *module, PyObject *of) {
    const ing_py_state *st = ing_py_state_in(module);
    PyObject *obj = ing_py_unbind(st, of, NULL);
    if (Py_TYPE(obj) == st->host->kernel_type) return (ing_py_kernel *)obj;
    PyErr_Format(PyExc_TypeError, "explain: expected a kernel, got %.100s",
                 Py_TYPE(of)->tp_name);
    return NULL;
}

static PyObject *explain_kernel(PyObject *module, PyObject *of) {
    const ing_py_kernel *k = kernel_of(module, of);
    ing_err e;
    ing_err_init(&e);
    if (!k) return NULL;
    if (ing_py_host_store(k->host, &e) != ING_OK) return ing_py_raise(k->st, &e);
    ing_bytes label;
    ing_bytes_init(&label);
    if (label_of(k, &label) < 0) {
        ing_bytes_fini(&label);
        return NULL;
    }
    ing_notes notes;
    (void)notes_get(k, &label, &notes);
    PyObject *list = PyList_New(0);
    if (list && list_notes(&notes, list) < 0) Py_CLEAR(list);
    ing_notes_fini(&notes);
    ing_bytes_fini(&label);
    return list;
}

typedef struct all_notes {
    ing_store *store;
    PyObject *list;
    bool failed;
} all_notes;

static bool see_notes(void *self, const ing_store_item *item) {
    all_notes *all = self;
    ing_bytes b;
    ing_bytes_init(&b);
    ing_notes notes;
    if (ing_store_read(all->store, ING_ENTRY_NOTES, item->key, &b) == ING_OK) {
        (void)ing_notes_read(b.at, b.len, &notes);
        all->failed = list_notes(&notes, all->list) < 0;
        ing_notes_fini(&notes);
    }
    ing_bytes_fini(&b);
    return !all->failed;
}

/* Calls that the variant of the last launch makes again at each launch, in words. */
static PyObject *explain_launch(PyObject *module, PyObject *of) {
    const ing_py_kernel *k = kernel_of(module, of);
    PyObject *list = k ? PyList_New(0) : NULL;
    if (!list) return NULL;
    const ing_py_checks *c = k->last ? k->last->checks : NULL;
    for (uint32_t i = 0; list && c && i < c->fetches.len; i++) {
        if (c->fetches.at[i].step != ING_STEP_CALL) continue;
        ing_bytes words;
        ing_bytes_init(&words);
        ing_words_path(&k->paths, c->fetches.at[i].path, &words);
        PyObject *text = PyUnicode_FromFormat(
            "%s is called: an argument or its result can change. Pass numbers, text, "
            "tuples of these or a frozen dataclass, and return such",
            words.at ? (const char *)words.at : "?");
        ing_bytes_fini(&words);
        if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *explain_all(PyObject *module, PyObject *dir) {
    ing_py_state *st = ing_py_state_in(module);
    if (!PyUnicode_Check(dir))
        return PyErr_Format(PyExc_TypeError, "a directory is a str");
    PyObject *path = ing_py_path(dir);
    if (!path) return NULL;
    ing_err e;
    ing_err_init(&e);
    all_notes all = {.list = PyList_New(0)};
    ing_status s = all.list ? ing_store_open(PyBytes_AS_STRING(path), &st->counters,
                                             &all.store, &e)
                            : ING_PYTHON;
    Py_DECREF(path);
    if (s == ING_OK) (void)ing_store_each(all.store, ING_ENTRY_NOTES, see_notes, &all);
    if (s == ING_OK) ing_store_close(all.store);
    if (s == ING_OK && !all.failed) return all.list;
    Py_XDECREF(all.list);
    if (s == ING_DECLINED) {
        PyErr_Format(PyExc_OSError, "%s", e.text ? e.text : "cannot be used");
        ing_err_fini(&e);
        return NULL;
    }
    return all.failed ? NULL : ing_py_raise(st, &e);
}

static const PyMethodDef functions[] = {
    {"_explain", explain_kernel, METH_O,
     "_explain(kernel) -> [(label, time, pid, why, code)], the oldest compile first"},
    {"_explain_launch", explain_launch, METH_O,
     "_explain_launch(kernel) -> [str], what its last launch called to compare"},
    {"_explain_all", explain_all, METH_O,
     "_explain_all(directory) -> the same of all kernels, in no order"},
    {NULL, NULL, 0, NULL},
};

int ing_py_explain_add(PyObject *module, ing_py_state *st) {
    (void)st;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
