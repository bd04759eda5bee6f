/* FileCacheCore: values on disk by digest, over src/store and codec.c; and the key of a
 * cached step. Called by ingot/_filecache.py and ingot/_steps.py. The disk is used with
 * the GIL released. A hit writes nothing; whatever is wrong with an entry is a miss and
 * a counter, never an exception (R21); pickle is called only through a function that the
 * caller hands in, for entries that say so.
 *
 * A payload is one byte, 'V' (codec.h) or 'P' (pickle), and what that codec wrote. */
#include "py/filecache.h"
#include "py/codec.h"
#include "py/fingerprint_int.h"
#include "store/store.h"

static const char LEASE[] = "ingot._core.lease"; /* name of the capsules */

typedef struct core {
    PyObject_HEAD ing_store *store;
    ing_counters counters;
    ing_store_totals bounds;
} core;

static core *as_core(PyObject *self) {
    return (core *)self;
}

static int get_digest(PyObject *hex, ing_hash128 *out) {
    Py_ssize_t n = 0;
    const char *text = PyUnicode_Check(hex) ? PyUnicode_AsUTF8AndSize(hex, &n) : NULL;
    if (text && n == 32 && ing_hash_unhex(text, out) && PyUnicode_CheckExact(hex))
        return 0;
    if (text && PyUnicode_Check(hex) && !PyUnicode_CheckExact(hex))
        PyErr_SetString(PyExc_TypeError,
                        "a key that knows objects by identity is good in "
                        "this process only: it cannot be used on disk");
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%.100R is not a digest of 32 hex digits", hex);
    return -1;
}

static PyObject *digest_text(ing_hash128 h) {
    char hex[33];
    ing_hash_hex(h, hex);
    return PyUnicode_FromStringAndSize(hex, 32);
}

static int check_args(const char *name, Py_ssize_t got, Py_ssize_t want) {
    if (got == want) return 0;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, got %zd", name, want, got);
    return -1;
}

/* Seconds from Python to nanoseconds, within what a clock can hold. */
static int get_ns(PyObject *value, uint64_t *out) {
    double s = PyFloat_AsDouble(value);
    if (s == -1.0 && PyErr_Occurred()) return -1;
    *out = !(s > 0) ? 0 : s > 1e9 ? (uint64_t)1e18 : (uint64_t)(s * 1e9);
    return 0;
}

/* ---- get ----------------------------------------------------------------------------------- */

/* What the payload means, or NULL with an exception set. */
static PyObject *decode(const ing_bytes *b, PyObject *loads) {
    if (b->len && b->at[0] == 'V') return ing_py_decode(b->at + 1, b->len - 1);
    if (b->len && b->at[0] == 'P' && loads != Py_None) {
        PyObject *data =
            PyBytes_FromStringAndSize((char *)b->at + 1, (Py_ssize_t)b->len - 1);
        PyObject *v = data ? PyObject_CallOneArg(loads, data) : NULL;
        Py_XDECREF(data);
        return v;
    }
    PyErr_SetString(PyExc_ValueError, "stored by a codec that is not asked for");
    return NULL;
}

/* get(digest, default, loads, counted): the value, or default. Who looks a second time
 * for the same call does not count it. */
static PyObject *core_get(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    core *c = as_core(self);
    ing_hash128 key;
    ing_bytes b;
    ing_status s;
    PyObject *v = NULL;
    if (check_args("get", n, 4) < 0 || get_digest(args[0], &key) < 0) return NULL;
    ing_bytes_init(&b);
    PyThreadState *gil = PyEval_SaveThread();
    s = ing_store_read(c->store, ING_ENTRY_VALUE, key, &b);
    PyEval_RestoreThread(gil);
    if (s == ING_OK) {
        v = decode(&b, args[2]);
        bool bad = !v && ing_py_took_any();
        if (bad) ing_count(&c->counters, ING_COUNT_STORE_BAD_ENTRY);
    }
    ing_bytes_fini(&b);
    if (!v && PyErr_Occurred()) return NULL;
    if (args[3] == Py_True)
        ing_count(&c->counters, v ? ING_COUNT_STORE_HITS : ING_COUNT_STORE_MISSES);
    return v ? v : Py_NewRef(args[1]);
}

/* ---- put ----------------------------------------------------------------------------------- */

static int encode(PyObject *value, PyObject *dumps, ing_bytes *b) {
    if (dumps == Py_None) {
        ing_bytes_u8(b, 'V');
        return ing_py_encode(value, ING_STORE_MAX_ENTRY - 1, b);
    }
    PyObject *data = PyObject_CallOneArg(dumps, value);
    if (!data) return -1;
    int rc = 0;
    if (!PyBytes_Check(data)) {
        PyErr_SetString(PyExc_TypeError, "dumps must return bytes");
        rc = -1;
    } else {
        ing_bytes_u8(b, 'P');
        ing_bytes_put(b, PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data));
        if (b->failed) {
            PyErr_NoMemory();
            rc = -1;
        }
    }
    Py_DECREF(data);
    return rc;
}

/* put(digest, value, dumps): whether it is stored now. */
static PyObject *core_put(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    core *c = as_core(self);
    ing_hash128 key;
    ing_bytes b;
    ing_status s;
    if (check_args("put", n, 3) < 0 || get_digest(args[0], &key) < 0) return NULL;
    ing_bytes_init(&b);
    if (encode(args[1], args[2], &b) < 0) {
        ing_bytes_fini(&b);
        return NULL;
    }
    PyThreadState *gil = PyEval_SaveThread();
    s = ing_store_put_within(c->store, ING_ENTRY_VALUE, key, b.at, b.len, c->bounds);
    PyEval_RestoreThread(gil);
    ing_bytes_fini(&b);
    return PyBool_FromLong(s == ING_OK);
}

/* ---- leases -------------------------------------------------------------------------------- */

static void lease_free(PyObject *capsule) {
    ing_lease *l = PyCapsule_GetPointer(capsule, LEASE);
    if (!l) return;
    ing_lease_release(l);
    ing_free(l);
}

/* take(digest, seconds): a lease; None when another has it; False when there can be
 * none. */
static PyObject *core_take(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    core *c = as_core(self);
    ing_hash128 key;
    uint64_t ns;
    if (check_args("take", n, 2) < 0 || get_digest(args[0], &key) < 0 ||
        get_ns(args[1], &ns) < 0)
        return NULL;
    ing_lease *l = ing_calloc(1, sizeof *l);
    if (!l) return PyErr_NoMemory();
    ing_lease_state state;
    PyThreadState *gil = PyEval_SaveThread();
    state = ing_lease_take(c->store, ING_ENTRY_VALUE, key, ns, l);
    PyEval_RestoreThread(gil);
    PyObject *capsule = NULL;
    if (state == ING_LEASE_HELD) {
        capsule = PyCapsule_New(l, LEASE, lease_free);
        if (capsule) return capsule;
        ing_lease_release(l);
        ing_free(l);
        return NULL;
    }
    ing_free(l);
    return Py_NewRef(state == ING_LEASE_BUSY ? Py_None : Py_False);
}

static PyObject *core_release(PyObject *self, PyObject *capsule) {
    (void)self;
    ing_lease *l = PyCapsule_GetPointer(capsule, LEASE);
    if (!l) return NULL;
    ing_lease_release(l);
    Py_RETURN_NONE;
}

/* wait(digest, seconds): whether the lease is gone. In slices, so that Ctrl-C works. */
static PyObject *core_wait(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    static const uint64_t SLICE = 200000000;
    core *c = as_core(self);
    ing_hash128 key;
    uint64_t ns;
    if (check_args("wait", n, 2) < 0 || get_digest(args[0], &key) < 0 ||
        get_ns(args[1], &ns) < 0)
        return NULL;
    uint64_t end = ing_os_now_ns() + ns;
    ing_count(&c->counters, ING_COUNT_LEASE_WAITS);
    for (;;) {
        uint64_t now = ing_os_now_ns(), left = now < end ? end - now : 0;
        bool gone;
        PyThreadState *gil = PyEval_SaveThread();
        gone =
            ing_lease_wait(c->store, ING_ENTRY_VALUE, key, left < SLICE ? left : SLICE);
        PyEval_RestoreThread(gil);
        if (PyErr_CheckSignals() < 0) return NULL;
        if (gone || left <= SLICE) return PyBool_FromLong(gone);
    }
}

/* ---- all entries --------------------------------------------------------------------------- */

typedef ing_vec(ing_store_item) item_list;

typedef struct listing {
    item_list items;
    bool lost;
} listing;

static bool collect(void *ctx, const ing_store_item *item) {
    listing *l = ctx;
    l->lost = !ing_vec_push(&l->items, *item);
    return !l->lost;
}

/* entries(): a list of (digest, bytes of the file, published, used), times in seconds. */
static PyObject *core_entries(PyObject *self, PyObject *unused) {
    (void)unused;
    core *c = as_core(self);
    listing l = {.lost = false};
    PyThreadState *gil = PyEval_SaveThread();
    ing_store_each(c->store, ING_ENTRY_VALUE, collect, &l);
    PyEval_RestoreThread(gil);
    PyObject *list = l.lost ? PyErr_NoMemory() : PyList_New(l.items.len);
    for (uint32_t i = 0; list && i < l.items.len; i++) {
        const ing_store_item *item = &l.items.at[i];
        PyObject *row = Py_BuildValue(
            "(NKdd)", digest_text(item->key), (unsigned long long)item->bytes,
            (double)item->published / 1e9, (double)item->used / 1e9);
        if (!row)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, row);
    }
    ing_vec_fini(&l.items);
    return list;
}

/* totals(): (entries, bytes). */
static PyObject *core_totals(PyObject *self, PyObject *unused) {
    (void)unused;
    core *c = as_core(self);
    ing_store_totals t = {0, 0};
    PyThreadState *gil = PyEval_SaveThread();
    ing_store_totals_get(c->store, ING_ENTRY_VALUE, &t);
    PyEval_RestoreThread(gil);
    return Py_BuildValue("(KK)", (unsigned long long)t.entries,
                         (unsigned long long)t.bytes);
}

/* sweep(): (entries, bytes) removed, or None: another process is at it. */
static PyObject *core_sweep(PyObject *self, PyObject *unused) {
    (void)unused;
    core *c = as_core(self);
    ing_store_totals t = {0, 0};
    ing_status s;
    PyThreadState *gil = PyEval_SaveThread();
    s = ing_store_sweep(c->store, ING_ENTRY_VALUE, c->bounds, &t);
    PyEval_RestoreThread(gil);
    if (s == ING_MEMORY) return PyErr_NoMemory();
    if (s != ING_OK) Py_RETURN_NONE;
    return Py_BuildValue("(KK)", (unsigned long long)t.entries,
                         (unsigned long long)t.bytes);
}

static PyObject *core_remove(PyObject *self, PyObject *hex) {
    core *c = as_core(self);
    ing_hash128 key;
    bool gone;
    if (get_digest(hex, &key) < 0) return NULL;
    PyThreadState *gil = PyEval_SaveThread();
    gone = ing_store_remove(c->store, ING_ENTRY_VALUE, key);
    PyEval_RestoreThread(gil);
    return PyBool_FromLong(gone);
}

/* verify(digest, heal): "good", "missing", "damaged" or "unreadable". */
static PyObject *core_verify(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    static const char *const name[] = {"good", "missing", "damaged", "unreadable"};
    core *c = as_core(self);
    ing_hash128 key;
    ing_store_health h;
    if (check_args("verify", n, 2) < 0 || get_digest(args[0], &key) < 0) return NULL;
    int heal = PyObject_IsTrue(args[1]);
    if (heal < 0) return NULL;
    PyThreadState *gil = PyEval_SaveThread();
    h = ing_store_verify(c->store, ING_ENTRY_VALUE, key, heal);
    PyEval_RestoreThread(gil);
    return PyUnicode_FromString(name[h]);
}

static PyObject *core_counters(PyObject *self, PyObject *unused) {
    (void)unused;
    core *c = as_core(self);
    PyObject *all = PyDict_New();
    for (unsigned i = ING_COUNT_STORE_PUBLISHED; all && i <= ING_COUNT_LEASES_HEALED;
         i++) {
        uint64_t n = __atomic_load_n(&c->counters.at[i], __ATOMIC_RELAXED);
        PyObject *value = PyLong_FromUnsignedLongLong(n);
        if (!value ||
            PyDict_SetItemString(all, ing_counter_name((ing_counter)i), value) < 0)
            Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

/* ---- the type ------------------------------------------------------------------------------ */

/* FileCacheCore(path, max_bytes, max_entries); 0 = no bound. */
static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *path = NULL;
    uint64_t bytes = 0, entries = 0;
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "FileCacheCore takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O&O&O&", PyUnicode_FSConverter, &path, ing_py_as_u64,
                          &bytes, ing_py_as_u64, &entries)) {
        Py_XDECREF(path);
        return NULL;
    }
    core *c = (core *)type->tp_alloc(type, 0);
    ing_err e;
    ing_err_init(&e);
    if (c) {
        c->bounds = (ing_store_totals){.entries = entries, .bytes = bytes};
        ing_status s =
            ing_store_open(PyBytes_AS_STRING(path), &c->counters, &c->store, &e);
        if (s == ING_MEMORY)
            PyErr_NoMemory();
        else if (s != ING_OK)
            PyErr_SetString(PyExc_OSError, e.text ? e.text : "no cache directory");
        if (s != ING_OK) Py_CLEAR(c);
    }
    ing_err_fini(&e);
    Py_DECREF(path);
    return (PyObject *)c;
}

static void core_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ing_store_close(as_core(self)->store);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *core_path(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_DecodeFSDefault(ing_store_dir(as_core(self)->store));
}

#define FAST(f) (PyCFunction)(void (*)(void)) f, METH_FASTCALL
static const PyMethodDef methods[] = {
    {"get", FAST(core_get), "get(digest, default, loads, counted)"},
    {"put", FAST(core_put), "put(digest, value, dumps): whether it is stored."},
    {"take", FAST(core_take), "take(digest, seconds): a lease, None (busy), False."},
    {"release", core_release, METH_O, "release(lease)"},
    {"wait", FAST(core_wait), "wait(digest, seconds): whether the lease is gone."},
    {"entries", core_entries, METH_NOARGS, "[(digest, bytes, published, used)]"},
    {"totals", core_totals, METH_NOARGS, "(entries, bytes)"},
    {"sweep", core_sweep, METH_NOARGS, "(entries, bytes) removed, or None."},
    {"remove", core_remove, METH_O, "remove(digest): whether it was there."},
    {"verify", FAST(core_verify), "verify(digest, heal): the entry's health."},
    {"counters", core_counters, METH_NOARGS, "What happened, as a dict of counts."},
    {0},
};

static const PyGetSetDef getset[] = {
    {"path", core_path, NULL, "The directory, absolute.", NULL},
    {0},
};

static const PyType_Slot slots[] = {
    {Py_tp_new, core_new},
    {Py_tp_dealloc, core_dealloc},
    {Py_tp_methods, (void *)methods},
    {Py_tp_getset, (void *)getset},
    {0, NULL},
};

static const PyType_Spec spec = {
    .name = "ingot._core.FileCacheCore",
    .basicsize = sizeof(core),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = (PyType_Slot *)slots,
};

/* ---- functions of the module --------------------------------------------------------------- */

static PyObject *encode_value(PyObject *module, PyObject *value) {
    (void)module;
    ing_bytes b;
    ing_bytes_init(&b);
    PyObject *bytes = NULL;
    if (ing_py_encode(value, ING_STORE_MAX_ENTRY - 1, &b) == 0)
        bytes = PyBytes_FromStringAndSize((char *)b.at, (Py_ssize_t)b.len);
    ing_bytes_fini(&b);
    return bytes;
}

static PyObject *decode_value(PyObject *module, PyObject *bytes) {
    (void)module;
    if (!PyBytes_Check(bytes))
        return PyErr_Format(PyExc_TypeError, "decode_value takes bytes");
    return ing_py_decode((const uint8_t *)PyBytes_AS_STRING(bytes),
                         (size_t)PyBytes_GET_SIZE(bytes));
}

static PyObject *join_halves(ing_hash128 half, ing_hash128 input) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_digest(&h, 'S', half); /* tagged: nothing can move between them */
    ing_hasher_digest(&h, 'I', input);
    return digest_text(ing_hasher_done(&h));
}

/* A Key keeps alive what it knows by identity; it is no exact str, so that get_digest
 * refuses it for the disk. Steals text. */
static PyObject *holding_key(PyObject *text, PyObject *held) {
    PyObject *type = text ? ing_py_import("ingot.fingerprint", "Key") : NULL;
    PyObject *key = type ? PyObject_CallOneArg(type, text) : NULL;
    if (key && PyObject_SetAttrString(key, "_held", held) < 0) Py_CLEAR(key);
    Py_XDECREF(type);
    Py_XDECREF(text);
    return key;
}

/* step_key(half, input): the digest of a step's half of the key and of its input. */
static PyObject *step_key(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    ing_hash128 half, input;
    fp_walk w;
    if (check_args("step_key", n, 2) < 0 || get_digest(args[0], &half) < 0) return NULL;
    ing_fp_walk_init(&w, ing_py_state_in(module));
    PyObject *key = NULL;
    if (ing_fp_configure(&w, Py_None) == 0 && ing_fp_run(&w, args[1], &input) == 0) {
        key = join_halves(half, input);
        if (w.held) key = holding_key(key, w.held);
    }
    ing_fp_walk_fini(&w);
    return key;
}

static const PyMethodDef functions[] = {
    {"encode_value", encode_value, METH_O, "A value as bytes, by the codec of values."},
    {"decode_value", decode_value, METH_O, "Those bytes as a value; else ValueError."},
    {"step_key", FAST(step_key), "step_key(half, input): 32 hex digits."},
    {0},
};

int ing_py_filecache_add(PyObject *module, ing_py_state *st) {
    (void)st;
    PyTypeObject *type = ing_py_add_type(module, &spec);
    if (!type) return -1;
    Py_DECREF(type); /* the module keeps it */
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
