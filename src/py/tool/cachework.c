/* What `ingot cache` does to a directory: verify, trim, clear, export, import. Beside
 * cachetool.c, which only looks. The directory is opened with the checks that programs make
 * (R20); one that is only read is never changed. An archive is code (src/store/archive.c):
 * who calls import has asked its user. */
#include "py/call/kernel.h"
#include "py/tool/tool.h"
#include "store/pack.h"

#include <string.h>
#include <time.h>

/* The store, or NULL with an exception set. */
static ing_store *open_store(PyObject *module, PyObject *dir, bool to_write) {
    ing_py_state *st = ing_py_state_in(module);
    PyObject *path = NULL;
    ing_store *store = NULL;
    if (!PyUnicode_FSConverter(dir, (void *)&path)) return NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s =
        ing_store_open_there(PyBytes_AS_STRING(path), &st->counters, &store, &e);
    if (s == ING_OK && to_write && !ing_store_writable(store)) {
        ing_store_close(store);
        store = NULL;
        s = ing_fail(&e, ING_DECLINED, "%s: this directory may only be read",
                     PyBytes_AS_STRING(path));
    }
    Py_DECREF(path);
    if (s == ING_OK) return store;
    if (s != ING_DECLINED) {
        ing_py_raise(st, &e);
        return NULL;
    }
    PyErr_SetString(PyExc_OSError, e.text ? e.text : "it cannot be used");
    ing_err_fini(&e);
    return NULL;
}

/* ---- verify ------------------------------------------------------------------------------ */

typedef struct verifying {
    ing_store *store;
    ing_entry_kind kind;
    bool heal, failed;
    unsigned long long good;
    PyObject *bad; /* [(kind, key, what)] */
} verifying;

static bool verify_one(void *self, const ing_store_item *item) {
    verifying *v = self;
    const char letter[2] = {ing_store_letter(v->kind), 0};
    const char *what = NULL;
    char hex[33];
    switch (ing_store_verify(v->store, v->kind, item->key, v->heal)) {
    case ING_STORE_GOOD: v->good++; break;
    case ING_STORE_MISSING: break; /* went meanwhile */
    case ING_STORE_DAMAGED: what = "damaged"; break;
    case ING_STORE_UNREADABLE: what = "unreadable"; break;
    }
    ing_hash_hex(item->key, hex);
    PyObject *row = what ? Py_BuildValue("(sss)", letter, hex, what) : NULL;
    if ((what && (!row || PyList_Append(v->bad, row) < 0)) || PyErr_CheckSignals() < 0)
        v->failed = true;
    Py_XDECREF(row);
    return !v->failed;
}

static PyObject *verify(PyObject *module, PyObject *args) {
    PyObject *dir;
    int heal;
    if (!PyArg_ParseTuple(args, "Op", &dir, &heal)) return NULL;
    verifying v = {.heal = heal != 0, .store = open_store(module, dir, heal != 0)};
    if (!v.store) return NULL;
    v.bad = PyList_New(0);
    v.failed = !v.bad;
    for (v.kind = ING_ENTRY_IMAGE; v.kind < ING_ENTRY_KINDS && !v.failed; v.kind++)
        (void)ing_store_each(v.store, v.kind, verify_one, &v);
    ing_store_close(v.store);
    if (!v.failed) return Py_BuildValue("(KN)", v.good, v.bad);
    Py_XDECREF(v.bad);
    return NULL;
}

/* ---- trim, clear ----------------------------------------------------------------------------- */

typedef struct aging {
    ing_store *store;
    ing_entry_kind kind;
    uint64_t before; /* used earlier: to be removed */
    ing_store_totals removed;
} aging;

static bool age_one(void *self, const ing_store_item *item) {
    aging *a = self;
    if (item->used < a->before &&
        !ing_packed_since(a->store, a->kind, item->key, a->before) &&
        ing_store_remove(a->store, a->kind, item->key)) {
        a->removed.entries++;
        a->removed.bytes += item->bytes;
    }
    return true;
}

/* trim(dir, entries, bytes, seconds): 0 = no bound; (entries, bytes) that went. */
static PyObject *trim(PyObject *module, PyObject *args) {
    PyObject *dir;
    uint64_t most_entries, most_bytes;
    double seconds;
    if (!PyArg_ParseTuple(args, "OO&O&d", &dir, ing_py_as_u64, &most_entries,
                          ing_py_as_u64, &most_bytes, &seconds))
        return NULL;
    aging a = {.store = open_store(module, dir, true)};
    if (!a.store) return NULL;
    uint64_t now = ing_py_wall_ns();
    if (seconds > 0 && seconds * 1e9 < (double)now)
        a.before = now - (uint64_t)(seconds * 1e9);
    for (a.kind = ING_ENTRY_IMAGE; a.kind < ING_ENTRY_KINDS; a.kind++)
        if (a.before && a.kind != ING_ENTRY_VALUE)
            (void)ing_store_each(a.store, a.kind, age_one, &a);
    ing_store_totals more = {0, 0};
    if (a.removed.entries) a.removed.bytes += ing_packed_drop(a.store);
    ing_status s = ing_store_sweep(
        a.store, ING_ENTRY_IMAGE,
        (ing_store_totals){.entries = most_entries, .bytes = most_bytes}, &more);
    ing_store_close(a.store);
    if (s == ING_MEMORY) return PyErr_NoMemory();
    if (s != ING_OK) {
        PyErr_SetString(PyExc_OSError, "another process is trimming it right now");
        return NULL;
    }
    return Py_BuildValue("(KK)", (unsigned long long)(a.removed.entries + more.entries),
                         (unsigned long long)(a.removed.bytes + more.bytes));
}

/* clear(dir, values): what kernels keep, or the values instead. */
static PyObject *clear(PyObject *module, PyObject *args) {
    PyObject *dir;
    int values;
    ing_store_totals removed = {0, 0};
    if (!PyArg_ParseTuple(args, "Op", &dir, &values)) return NULL;
    ing_store *store = open_store(module, dir, true);
    if (!store) return NULL;
    (void)ing_store_clear(store, values ? ING_ENTRY_VALUE : ING_ENTRY_IMAGE, &removed);
    ing_store_close(store);
    return Py_BuildValue("(KK)", (unsigned long long)removed.entries,
                         (unsigned long long)removed.bytes);
}

/* totals(dir): entries and bytes of what kernels keep, those of values, and whether the
 * directory may be written. */
static PyObject *totals(PyObject *module, PyObject *dir) {
    ing_store_totals kernels = {0, 0}, values = {0, 0};
    ing_store *store = open_store(module, dir, false);
    if (!store) return NULL;
    (void)ing_store_totals_get(store, ING_ENTRY_IMAGE, &kernels);
    (void)ing_store_totals_get(store, ING_ENTRY_VALUE, &values);
    bool writable = ing_store_writable(store);
    ing_store_close(store);
    return Py_BuildValue(
        "(KKKKO)", (unsigned long long)kernels.entries,
        (unsigned long long)kernels.bytes, (unsigned long long)values.entries,
        (unsigned long long)values.bytes, writable ? Py_True : Py_False);
}

/* ---- export, import ----------------------------------------------------------------------------- */

/* Does a payload mean anything to this version? One of another version does no harm, but
 * nobody would ever find it. */
static ing_status look_at(void *self, ing_entry_kind kind, const uint8_t *p, size_t n) {
    (void)self;
    ing_index_keys keys = {0};
    ing_paths paths;
    ing_record r;
    ing_status s = ING_OK;
    switch (kind) {
    case ING_ENTRY_IMAGE: {
        ing_image_about about = {.see = NULL};
        s = ing_image_describe(p, n, &about, NULL);
        break;
    }
    case ING_ENTRY_VARIANT:
        ing_paths_init(&paths);
        s = ing_record_read(p, n, &paths, &r);
        if (s == ING_OK) ing_record_fini(&r);
        ing_paths_fini(&paths);
        break;
    case ING_ENTRY_INDEX:
        s = ing_cache_index_keys(p, n, &keys);
        ing_vec_fini(&keys);
        break;
    default:
        s = ing_cache_alias_keys(p, n, &keys);
        ing_vec_fini(&keys);
        break;
    }
    return s;
}

static ing_status take_in(void *self, ing_store *store, ing_entry_kind kind,
                          ing_hash128 key, const uint8_t *p, size_t n) {
    uint64_t *fresh = self;
    if (kind == ING_ENTRY_INDEX) return ing_cache_index_merge(store, key, p, n);
    if (ing_store_verify(store, kind, key, false) == ING_STORE_GOOD) return ING_OK;
    ++*fresh;
    return ing_store_put(store, kind, key, p, n);
}

static PyObject *report_of(ing_py_state *st, ing_status s, ing_err *e,
                           const ing_archive_report *r, uint64_t fresh) {
    if (s == ING_OK)
        return Py_BuildValue(
            "{s:K,s:K,s:K,s:K}", "entries", (unsigned long long)r->entries, "bytes",
            (unsigned long long)r->bytes, "left_out", (unsigned long long)r->left_out,
            "new", (unsigned long long)fresh);
    if (s == ING_FORMAT || s == ING_OS) { /* the user's file, not a fault of ours */
        PyErr_SetString(PyExc_OSError, e->text ? e->text : "it cannot be used");
        ing_err_fini(e);
        return NULL;
    }
    return ing_py_raise(st, e);
}

static PyObject *export_to(PyObject *module, PyObject *args) {
    PyObject *dir;
    int fd;
    if (!PyArg_ParseTuple(args, "Oi", &dir, &fd)) return NULL;
    ing_store *store = open_store(module, dir, false);
    if (!store) return NULL;
    ing_archive_report r;
    ing_status s;
    ing_err e;
    ing_err_init(&e);
    Py_BEGIN_ALLOW_THREADS s = ing_store_export(store, fd, &r, &e);
    ing_store_close(store);
    Py_END_ALLOW_THREADS return report_of(ing_py_state_in(module), s, &e, &r, 0);
}

/* import(dir, fd, entries, bytes): within these bounds. */
static PyObject *import_from(PyObject *module, PyObject *args) {
    PyObject *dir;
    int fd;
    uint64_t most_entries, most_bytes;
    if (!PyArg_ParseTuple(args, "OiO&O&", &dir, &fd, ing_py_as_u64, &most_entries,
                          ing_py_as_u64, &most_bytes))
        return NULL;
    ing_store *store = open_store(module, dir, true);
    if (!store) return NULL;
    ing_store_set_bounds(
        store, (ing_store_totals){.entries = most_entries, .bytes = most_bytes});
    ing_archive_report r;
    ing_status s;
    ing_err e;
    ing_err_init(&e);
    uint64_t fresh = 0;
    const ing_archive_taker taker = {&fresh, look_at, take_in};
    Py_BEGIN_ALLOW_THREADS s = ing_store_import(store, fd, &taker, &r, &e);
    ing_store_close(store);
    Py_END_ALLOW_THREADS return report_of(ing_py_state_in(module), s, &e, &r, fresh);
}

static const PyMethodDef functions[] = {
    {"_cache_verify", verify, METH_VARARGS,
     "_cache_verify(dir, heal) -> (good, [(kind, key, 'damaged' or 'unreadable')])"},
    {"_cache_trim", trim, METH_VARARGS,
     "_cache_trim(dir, entries, bytes, seconds) -> (entries, bytes) removed"},
    {"_cache_clear", clear, METH_VARARGS,
     "_cache_clear(dir, values) -> (entries, bytes) removed"},
    {"_cache_totals", totals, METH_O,
     "_cache_totals(dir) -> (entries, bytes, values, their bytes, writable)"},
    {"_cache_export", export_to, METH_VARARGS, "_cache_export(dir, fd) -> dict"},
    {"_cache_import", import_from, METH_VARARGS,
     "_cache_import(dir, fd, entries, bytes) -> dict"},
    {NULL, NULL, 0, NULL},
};

int ing_py_cachework_add(PyObject *module) {
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
