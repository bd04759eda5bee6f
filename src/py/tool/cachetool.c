/* What `ingot cache` sees and does: entries, kernels, one variant or image in full, and
 * verification, trimming, clearing, export and import of a directory. ingot/_cachetool.py
 * formats it. Each call opens the directory with the checks that programs make (R20), works
 * on that one layer and closes it. Nothing of a program that runs is touched, and nothing
 * found in an entry is run, imported or followed. */
#include "py/call/kernel.h"
#include "py/tool/tool.h"
#include "store/pack.h"
#include "trace/notes.h"

#include "ing_revision.h"

#include <string.h>

typedef struct look {
    ing_py_state *st;
    ing_store *store;
    ing_entry_kind kind; /* that is being walked */
    PyObject *list;      /* owned */
    bool failed;         /* with an exception set */
} look;

/* ---- opening ------------------------------------------------------------------------------- */

/* False with an exception set. */
static bool look_open(look *l, PyObject *module, PyObject *dir) {
    *l = (look){.st = ing_py_state_in(module)};
    PyObject *path = NULL;
    if (!PyUnicode_FSConverter(dir, (void *)&path)) return false;
    ing_err e;
    ing_err_init(&e);
    ing_status s =
        ing_store_open_there(PyBytes_AS_STRING(path), &l->st->counters, &l->store, &e);
    Py_DECREF(path);
    if (s == ING_DECLINED) {
        PyErr_SetString(PyExc_OSError, e.text ? e.text : "it cannot be used");
        ing_err_fini(&e);
        return false;
    }
    if (s != ING_OK) {
        ing_py_raise(l->st, &e);
        return false;
    }
    l->list = PyList_New(0);
    return l->list != NULL;
}

/* The list, or NULL with an exception set. */
static PyObject *look_close(look *l) {
    ing_store_close(l->store);
    if (l->failed) Py_CLEAR(l->list);
    return l->list;
}

/* Appends and takes `row`; false when that failed or somebody wants to stop. */
static bool look_add(look *l, PyObject *row) {
    if (!row || PyList_Append(l->list, row) < 0 || PyErr_CheckSignals() < 0)
        l->failed = true;
    Py_XDECREF(row);
    return !l->failed;
}

/* The entries of a kind: files, or in a sealed layer what its pack has, whose times are not
 * known. */
typedef struct walk {
    ing_entry_kind kind;
    bool (*see)(void *self, const ing_store_item *item);
    void *self;
    uint32_t n;
} walk;

static bool walk_file(void *self, const ing_store_item *item) {
    walk *w = self;
    w->n++;
    return w->see(w->self, item);
}

static bool walk_packed(void *self, const ing_pack_item *item) {
    walk *w = self;
    ing_store_item found = {.key = item->key, .bytes = item->len + ING_STORE_TRAILER};
    return item->kind != w->kind || w->see(w->self, &found);
}

static void each_entry(ing_store *s, ing_entry_kind kind,
                       bool (*see)(void *self, const ing_store_item *item),
                       void *self) {
    walk w = {.kind = kind, .see = see, .self = self};
    (void)ing_store_each(s, kind, walk_file, &w);
    if (w.n == 0) ing_store_each_packed(s, walk_packed, &w);
}

static PyObject *hex_of(ing_hash128 key) {
    char hex[33];
    ing_hash_hex(key, hex);
    return PyUnicode_FromStringAndSize(hex, 32);
}

static bool key_of(PyObject *text, ing_hash128 *out) {
    const char *s = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (s && strlen(s) == 32 && ing_hash_unhex(s, out)) return true;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a key has 32 hex digits");
    return false;
}

/* Text of an entry for a terminal: what is no UTF-8 is replaced. */
static PyObject *text_of(const char *s, size_t n) {
    return PyUnicode_DecodeUTF8(s ? s : "", (Py_ssize_t)n, "replace");
}

/* ---- all entries ----------------------------------------------------------------------------- */

static bool list_entry(void *self, const ing_store_item *item) {
    look *l = self;
    const char letter[2] = {ing_store_letter(l->kind), 0};
    return look_add(l, Py_BuildValue("(sNKdd)", letter, hex_of(item->key),
                                     (unsigned long long)item->bytes,
                                     (double)item->published / 1e9,
                                     (double)item->used / 1e9));
}

/* Calls `see` for the entries of all kinds. */
static void each_kind(look *l, bool (*see)(void *, const ing_store_item *)) {
    for (l->kind = ING_ENTRY_IMAGE; l->kind < ING_ENTRY_KINDS && !l->failed; l->kind++)
        each_entry(l->store, l->kind, see, l);
}

static PyObject *entries(PyObject *module, PyObject *dir) {
    look l;
    if (!look_open(&l, module, dir)) return NULL;
    each_kind(&l, list_entry);
    return look_close(&l);
}

/* ---- kernels: indexes, their variants and the images of those --------------------------------- */

typedef struct images {
    ing_map map; /* key -> place + 1 */
    ing_vec(ing_store_item) items;
} images;

static bool see_image(void *self, const ing_store_item *item) {
    images *all = self;
    return ing_vec_push(&all->items, *item) &&
           ing_map_put(&all->map, item->key, all->items.len);
}

static void images_fini(images *all) {
    ing_vec_fini(&all->items);
    ing_map_fini(&all->map);
}

/* The target that has images. */
static const ing_target *coded(void) {
    ing_settings defaults;
    ing_settings_init(&defaults);
    return ing_target_chosen(&defaults);
}

/* The images of a task that are here: [(key, level, opt_level, fast_math)]. */
static PyObject *images_of(const look *l, const images *all, ing_hash128 ir) {
    PyObject *list = PyList_New(0);
    ing_image_name name;
    ing_hash128 last = {0, 0};
    const ing_target *t = coded();
    for (uint32_t n = 0;
         list && ing_engine_image_name(l->st->host->engine, t, ir, n, &name); n++) {
        if (ing_hash_eq(name.key, last) || !ing_map_get(&all->map, name.key)) continue;
        last = name.key;
        PyObject *row = Py_BuildValue("(NsIO)", hex_of(name.key), name.isa_level,
                                      (unsigned)name.opt_level,
                                      name.fast_math ? Py_True : Py_False);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* The images of all tasks of a variant, or None when it cannot be read. */
static PyObject *variant_images(look *l, const images *all, ing_hash128 key) {
    ing_bytes b;
    ing_record r;
    ing_paths paths;
    ing_bytes_init(&b);
    ing_paths_init(&paths);
    PyObject *list = NULL;
    if (ing_store_read(l->store, ING_ENTRY_VARIANT, key, &b) != ING_OK ||
        ing_record_read(b.at, b.len, &paths, &r) != ING_OK) {
        list = Py_NewRef(Py_None);
    } else {
        list = PyList_New(0);
        for (uint32_t i = 0; list && i < r.tasks.len; i++) {
            PyObject *one = images_of(l, all, r.tasks.at[i].ir);
            if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
            Py_XDECREF(one);
        }
        ing_record_fini(&r);
    }
    ing_paths_fini(&paths);
    ing_bytes_fini(&b);
    return list;
}

typedef struct kernels {
    look *l;
    images all;
} kernels;

static PyObject *variants_of(kernels *k, const ing_index_keys *keys) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < keys->len; i++) {
        PyObject *found = variant_images(k->l, &k->all, keys->at[i]);
        PyObject *row =
            found ? Py_BuildValue("(NN)", hex_of(keys->at[i]), found) : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* (address, [(variant, [[image] of each task] or None)]); an index that cannot be read has
 * no variants. */
static bool see_index(void *self, const ing_store_item *item) {
    kernels *k = self;
    ing_bytes b;
    ing_index_keys keys = {0};
    ing_bytes_init(&b);
    if (ing_store_read(k->l->store, ING_ENTRY_INDEX, item->key, &b) == ING_OK &&
        ing_cache_index_keys(b.at, b.len, &keys) != ING_OK)
        keys.len = 0;
    PyObject *list = variants_of(k, &keys);
    ing_vec_fini(&keys);
    ing_bytes_fini(&b);
    return look_add(k->l, list ? Py_BuildValue("(NN)", hex_of(item->key), list) : NULL);
}

static PyObject *list_kernels(PyObject *module, PyObject *dir) {
    look l;
    if (!look_open(&l, module, dir)) return NULL;
    kernels k = {.l = &l};
    ing_map_init(&k.all.map);
    each_entry(l.store, ING_ENTRY_IMAGE, see_image, &k.all);
    each_entry(l.store, ING_ENTRY_INDEX, see_index, &k);
    images_fini(&k.all);
    return look_close(&l);
}

/* ---- labels: what notes call a kernel ------------------------------------------------------------ */

/* "k() in util.py": the words of the kernel's own source. */
static const char *source_words(const ing_notes *n, const ing_note *note) {
    for (uint32_t i = 0; i < note->trace.list.len; i++) {
        const ing_question *q = &note->trace.list.at[i];
        if (q->ask == ING_ASK_SOURCE &&
            n->paths.nodes.at[q->path].step == ING_STEP_KERNEL)
            return ing_atoms_text(&n->words, note->words.at[i]);
    }
    return "";
}

/* Reads the notes of one name; they are empty when that fails. */
static void read_notes(look *l, ing_hash128 key, ing_notes *out) {
    ing_bytes b;
    ing_bytes_init(&b);
    if (ing_store_read(l->store, ING_ENTRY_NOTES, key, &b) == ING_OK)
        (void)ing_notes_read(b.at, b.len, out);
    else
        ing_notes_init(out);
    ing_bytes_fini(&b);
}

static bool see_label(void *self, const ing_store_item *item) {
    look *l = self;
    ing_notes n;
    read_notes(l, item->key, &n);
    for (uint32_t i = 0; i < n.at.len && !l->failed; i++) {
        const ing_note *note = &n.at.at[i];
        const char *label = ing_atoms_text(&n.words, n.label);
        const char *source = source_words(&n, note);
        const char *machine = ing_atoms_text(&n.words, note->machine);
        (void)look_add(l, Py_BuildValue("(NNNdN)", hex_of(note->address),
                                        text_of(label, strlen(label)),
                                        text_of(source, strlen(source)),
                                        (double)note->when / 1e9,
                                        text_of(machine, strlen(machine))));
    }
    ing_notes_fini(&n);
    return !l->failed;
}

static PyObject *list_labels(PyObject *module, PyObject *dir) {
    look l;
    if (!look_open(&l, module, dir)) return NULL;
    (void)ing_store_each(l.store, ING_ENTRY_NOTES, see_label, &l);
    return look_close(&l);
}

/* ---- one variant in full --------------------------------------------------------------------------- */

typedef struct learning {
    look *l;
    ing_answers *answers;
    ing_hash128 address;
} learning;

static bool learn_from(void *self, const ing_store_item *item) {
    learning *w = self;
    ing_notes n;
    bool ours = false;
    read_notes(w->l, item->key, &n);
    for (uint32_t i = 0; i < n.at.len; i++)
        ours = ours || ing_hash_eq(n.at.at[i].address, w->address);
    if (ours) ing_answers_learn(w->answers, &n);
    ing_notes_fini(&n);
    return true;
}

static const char *ask_name(uint8_t ask) {
    switch ((ing_ask)ask) {
    case ING_ASK_LOOK: return "value";
    case ING_ASK_SOURCE: return "source";
    case ING_ASK_CONFIG: return "setting";
    case ING_ASK_MEANING: return "annotation";
    case ING_ASK_WHOLE: return "whole";
    case ING_ASK_BLOCKS: return "blocks";
    }
    return "?";
}

/* (what is asked, of what, answer in words or "", its digest) */
static PyObject *question_row(const ing_paths *paths, const ing_question *q,
                              const ing_answers *answers) {
    ing_bytes where;
    ing_bytes_init(&where);
    ing_words_path(paths, q->path, &where);
    const char *words = ing_answers_get(answers, paths, q);
    PyObject *row = Py_BuildValue("(sNNN)", ask_name(q->ask),
                                  text_of((const char *)where.at, where.len),
                                  text_of(words, strlen(words)), hex_of(q->answer));
    ing_bytes_fini(&where);
    return row;
}

static PyObject *questions_of(const ing_record *r, const ing_paths *paths,
                              const ing_answers *answers) {
    PyObject *list = PyList_New((Py_ssize_t)r->trace.list.len);
    for (uint32_t i = 0; list && i < r->trace.list.len; i++) {
        PyObject *row = question_row(paths, &r->trace.list.at[i], answers);
        if (!row) Py_CLEAR(list);
        if (row) PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

static PyObject *tasks_of(look *l, const images *all, const ing_record *r) {
    PyObject *list = PyList_New((Py_ssize_t)r->tasks.len);
    for (uint32_t i = 0; list && i < r->tasks.len; i++) {
        const ing_record_task *t = &r->tasks.at[i];
        PyObject *found = images_of(l, all, t->ir);
        PyObject *row =
            found
                ? Py_BuildValue("(sNN)",
                                t->info.kind == ING_IR_TASK_SERIAL ? "serial" : "loop",
                                hex_of(t->ir), found)
                : NULL;
        if (!row) Py_CLEAR(list);
        if (row) PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

static PyObject *variant_dict(look *l, const ing_record *r, const ing_paths *paths,
                              const ing_answers *answers) {
    images all = {0};
    ing_map_init(&all.map);
    each_entry(l->store, ING_ENTRY_IMAGE, see_image, &all);
    PyObject *questions = questions_of(r, paths, answers);
    PyObject *tasks = questions ? tasks_of(l, &all, r) : NULL;
    images_fini(&all);
    if (!tasks) {
        Py_XDECREF(questions);
        return NULL;
    }
    return Py_BuildValue("{s:N,s:N,s:I,s:I,s:I,s:I}", "questions", questions, "tasks",
                         tasks, "arguments", (unsigned)r->binds.len, "results",
                         (unsigned)r->n_rets, "messages", (unsigned)r->messages.len,
                         "warnings", (unsigned)r->warnings.len);
}

/* variant(dir, key, address): a dict, or None when it is missing or cannot be read. */
static PyObject *show_variant(PyObject *module, PyObject *args) {
    look l;
    PyObject *dir, *key_text, *address_text, *out = NULL;
    ing_hash128 key;
    ing_answers answers;
    learning w = {.l = &l, .answers = &answers};
    if (!PyArg_ParseTuple(args, "OOO", &dir, &key_text, &address_text) ||
        !key_of(key_text, &key) || !key_of(address_text, &w.address) ||
        !look_open(&l, module, dir))
        return NULL;
    ing_bytes b;
    ing_record r;
    ing_paths paths;
    ing_bytes_init(&b);
    ing_paths_init(&paths);
    ing_answers_init(&answers);
    if (ing_store_read(l.store, ING_ENTRY_VARIANT, key, &b) == ING_OK &&
        ing_record_read(b.at, b.len, &paths, &r) == ING_OK) {
        (void)ing_store_each(l.store, ING_ENTRY_NOTES, learn_from, &w);
        out = variant_dict(&l, &r, &paths, &answers);
        ing_record_fini(&r);
    } else {
        out = Py_NewRef(Py_None);
    }
    ing_answers_fini(&answers);
    ing_paths_fini(&paths);
    ing_bytes_fini(&b);
    Py_XDECREF(look_close(&l));
    return out;
}

/* ---- one image ------------------------------------------------------------------------------------------ */

static void see_symbol(void *self, const char *name, uint64_t at, uint64_t size) {
    look *l = self;
    if (!l->failed)
        (void)look_add(l,
                       Py_BuildValue("(NKK)", text_of(name, strlen(name)),
                                     (unsigned long long)at, (unsigned long long)size));
}

/* image(dir, key): {symbols, bytes, machine, made}, or None. */
static PyObject *show_image(PyObject *module, PyObject *args) {
    look l;
    PyObject *dir, *key_text;
    ing_hash128 key;
    if (!PyArg_ParseTuple(args, "OO", &dir, &key_text) || !key_of(key_text, &key) ||
        !look_open(&l, module, dir))
        return NULL;
    ing_bytes b;
    ing_bytes_init(&b);
    ing_image_about about = {.self = &l, .see = see_symbol};
    bool ok = ing_store_read(l.store, ING_ENTRY_IMAGE, key, &b) == ING_OK &&
              ing_image_describe(b.at, b.len, &about, NULL) == ING_OK;
    unsigned long long size = b.len;
    ing_bytes_fini(&b);
    PyObject *symbols = look_close(&l);
    if (!symbols) return NULL;
    if (!ok) {
        Py_DECREF(symbols);
        Py_RETURN_NONE;
    }
    return Py_BuildValue("{s:N,s:K,s:s,s:s}", "symbols", symbols, "bytes", size,
                         "machine", about.machine, "made", about.made);
}

/* ---- this machine ----------------------------------------------------------------------------------------- */

static PyObject *machine(PyObject *module, PyObject *unused) {
    (void)unused;
    const ing_py_state *st = ing_py_state_in(module);
    PyObject *levels = PyList_New(0);
    const ing_target *t = coded();
    for (uint32_t i = 0; levels && t->level(i); i++) {
        PyObject *name = PyUnicode_FromString(t->level(i));
        if (!name || PyList_Append(levels, name) < 0) Py_CLEAR(levels);
        Py_XDECREF(name);
    }
    if (!levels) return NULL;
    return Py_BuildValue("{s:s,s:N,s:s,s:s}", "level",
                         ing_engine_isa_level(st->host->engine, t), "levels", levels,
                         "front", ING_FRONT_REVISION, "back", ING_BACK_REVISION);
}

static const PyMethodDef functions[] = {
    {"_machine", machine, METH_NOARGS,
     "_machine() -> the level of its instructions, all levels, revisions of Ingot"},
    {"_cache_entries", entries, METH_O,
     "_cache_entries(dir) -> [(kind, key, bytes, published, used)]"},
    {"_cache_kernels", list_kernels, METH_O,
     "_cache_kernels(dir) -> [(address, [(variant, images of each task or None)])]"},
    {"_cache_labels", list_labels, METH_O,
     "_cache_labels(dir) -> [(address, name, source, when, machine)] of all compiles"},
    {"_cache_variant", show_variant, METH_VARARGS,
     "_cache_variant(dir, key, address) -> dict or None"},
    {"_cache_image", show_image, METH_VARARGS,
     "_cache_image(dir, key) -> dict or None"},
    {NULL, NULL, 0, NULL},
};

int ing_py_cachetool_add(PyObject *module, ing_py_state *st) {
    (void)st;
    if (PyModule_AddFunctions(module, (PyMethodDef *)functions) < 0) return -1;
    return ing_py_cachework_add(module);
}
