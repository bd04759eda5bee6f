/* FileCacheCore: values on disk by digest, over src/store and codec.c; and the key of a
 * cached step. Called by ingot/_filecache.py and ingot/_steps.py. The disk is used with
 * the GIL released. A hit writes nothing; whatever is wrong with an entry is a miss and
 * a counter, never an exception (R21); pickle is called only through a function that the
 * caller hands in, for entries that say so.
 *
 * A payload is a head (store/valuehead.c) of version ING_CODEC_VERSION, whose codec is 'V'
 * (codec.h) or 'P' (pickle), and what that codec wrote. Other versions are a miss. */
#include "py/value/filecache.h"
#include "py/value/filecache_int.h"
#include "py/value/fingerprint_int.h"

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

/* The head of an open entry, in `room`; false: not ours, or unreadable. */
static bool read_head(const ing_value_reader *r, ing_hash128 key,
                      uint8_t room[ING_VALUE_HEAD], ing_value_head *head) {
    size_t n = r->length < ING_VALUE_HEAD ? (size_t)r->length : ING_VALUE_HEAD;
    return ing_value_read(r, 0, room, n) && ing_value_head_read(room, n, key, head) &&
           head->version == ING_CODEC_VERSION;
}

static PyObject *decode_plain(ing_py_entry_in *in) {
    ing_codec_in from = {.rest = in->end - in->at, .self = in, .get = ing_py_entry_get};
    if (in->r.whole)
        from = (ing_codec_in){.p = in->r.whole + in->at, .n = (size_t)from.rest};
    return ing_py_decode(&from);
}

/* What the entry means, or NULL with an exception set. */
static PyObject *decode(ing_py_entry_in *in, ing_hash128 key, PyObject *load) {
    uint8_t room[ING_VALUE_HEAD];
    ing_value_head head;
    if (read_head(&in->r, key, room, &head)) {
        in->at = head.size;
        in->end = in->r.length;
        if (head.codec == 'V') return decode_plain(in);
        if (head.codec == 'P' && load != Py_None) return ing_py_entry_load(in, load);
    }
    PyErr_SetString(PyExc_ValueError, "stored by a codec that is not asked for");
    return NULL;
}

/* 1 = found, 0 = a miss, -1 = raised: by a signal's handler, or out of memory. */
static int look_up(core *c, ing_hash128 key, PyObject *load, ing_py_entry_in *in,
                   PyObject **value) {
    ing_py_pause pause;
    ing_py_pause_begin(&pause);
    ing_status s = ing_value_find(c->store, key, ing_py_pulse(&pause), &in->r);
    ing_py_pause_end(&pause);
    if (s != ING_OK) return PyErr_Occurred() ? -1 : 0;
    *value = decode(in, key, load);
    if (!*value && !in->stopped && ing_py_took_any())
        ing_count(&c->counters, ING_COUNT_STORE_BAD_ENTRY);
    return *value ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* get(digest, default, load, counted): the value, or default. Who looks a second time
 * for the same call does not count it. */
static PyObject *core_get(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    core *c = as_core(self);
    ing_hash128 key;
    ing_py_entry_in in = {.r = {.fd = -1}};
    PyObject *v = NULL;
    if (check_args("get", n, 4) < 0 || get_digest(args[0], &key) < 0) return NULL;
    int found = look_up(c, key, args[2], &in, &v);
    ing_value_close(&in.r);
    if (found < 0) return NULL;
    if (args[3] == Py_True)
        ing_count(&c->counters, v ? ING_COUNT_STORE_HITS : ING_COUNT_STORE_MISSES);
    return v ? v : Py_NewRef(args[1]);
}

static bool remove_seen(core *c, ing_hash128 key, const ing_value_reader *seen) {
    ing_py_pause pause;
    ing_py_pause_begin(&pause);
    bool gone = ing_value_remove(c->store, key, seen, ing_py_pulse(&pause));
    ing_py_pause_end(&pause);
    return gone;
}

/* pop(digest, default, load): the value, which one caller gets and nobody after that. */
static PyObject *core_pop(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    enum { TRIES = 100 }; /* each is lost to somebody who has replaced or taken it */
    core *c = as_core(self);
    ing_hash128 key;
    if (check_args("pop", n, 3) < 0 || get_digest(args[0], &key) < 0) return NULL;
    for (int i = 0; i < TRIES; i++) {
        ing_py_entry_in in = {.r = {.fd = -1}};
        PyObject *v = NULL;
        int found = look_up(c, key, args[2], &in, &v);
        bool gone = found > 0 && remove_seen(c, key, &in.r);
        ing_value_close(&in.r);
        if (gone && !PyErr_Occurred()) return v;
        Py_XDECREF(v);
        if (found < 0 || PyErr_Occurred()) return NULL;
        if (found == 0) break;
    }
    return Py_NewRef(args[1]);
}

/* ---- put ----------------------------------------------------------------------------------- */

static int write_head(ing_py_entry_out *out, ing_hash128 key, bool plain,
                      PyObject *kind, PyObject *label) {
    uint8_t room[ING_VALUE_HEAD];
    long what = PyLong_AsLong(kind);
    if (what == -1 && PyErr_Occurred()) return -1;
    if (!PyBytes_Check(label) || what < 0 || what > 255) {
        PyErr_SetString(PyExc_TypeError, "a label is a small number and bytes");
        return -1;
    }
    ing_value_head head = {.version = ING_CODEC_VERSION,
                           .codec = plain ? 'V' : 'P',
                           .label_kind = (uint8_t)what,
                           .label = (const uint8_t *)PyBytes_AS_STRING(label),
                           .label_size = (uint32_t)PyBytes_GET_SIZE(label)};
    return ing_py_entry_put(out, room, ing_value_head_write(room, key, &head));
}

static int write_value(ing_py_entry_out *out, PyObject *value, PyObject *dump) {
    if (dump != Py_None) return ing_py_entry_dump(out, dump, value);
    ing_codec_out to = {.self = out, .put = ing_py_entry_put};
    ing_bytes_init(&to.buf);
    int rc = ing_py_encode(value, &to);
    ing_bytes_fini(&to.buf);
    return rc;
}

static ing_status publish(ing_py_entry_out *out) {
    ing_py_pause_begin(&out->pause);
    ing_status s = ing_value_publish(out->w);
    ing_py_pause_end(&out->pause);
    return s;
}

/* None: it is stored; else why not, or NULL: raised. */
static PyObject *outcome(ing_status s) {
    if (s == ING_OK) Py_RETURN_NONE;
    if (s == ING_MEMORY) return PyErr_NoMemory();
    return PyUnicode_FromString(s == ING_VALUE ? "it is above the bounds of the cache"
                                               : "the disk says no");
}

/* put(digest, value, dump, kind of label, label): None, or why it is not stored. */
static PyObject *core_put(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    core *c = as_core(self);
    ing_hash128 key;
    ing_py_entry_out out = {0};
    if (check_args("put", n, 5) < 0 || get_digest(args[0], &key) < 0) return NULL;
    ing_status s =
        ing_value_begin(c->store, key, c->bounds, ing_py_pulse(&out.pause), &out.w);
    if (s != ING_OK) return outcome(s);
    int rc = write_head(&out, key, args[2] == Py_None, args[3], args[4]);
    if (rc == 0) rc = write_value(&out, args[1], args[2]);
    if (rc == 0) s = publish(&out);
    if (rc < 0) s = ing_value_status(out.w); /* ING_OK: the value's own fault */
    ing_py_pause_begin(&out.pause);
    ing_value_end(out.w);
    ing_py_pause_end(&out.pause);
    if (s == ING_CANCELLED || (rc < 0 && s == ING_OK)) return NULL;
    if (PyErr_Occurred() && !ing_py_took_any()) return NULL;
    return outcome(s);
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
    static const uint64_t SLICE = 50000000;
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
    ing_py_pause pause;
    bool lost, stopped;
} listing;

static bool collect(void *ctx, const ing_store_item *item) {
    listing *l = ctx;
    ing_pulse pulse = ing_py_pulse(&l->pause);
    l->lost = !ing_vec_push(&l->items, *item);
    if (l->items.len % 4096 == 0) l->stopped = !pulse.go_on(pulse.self);
    return !l->lost && !l->stopped;
}

/* All of them; -1 = raised. `l` is to be freed either way. */
static int list_all(core *c, listing *l) {
    *l = (listing){.lost = false};
    ing_py_pause_begin(&l->pause);
    ing_store_each(c->store, ING_ENTRY_VALUE, collect, l);
    ing_py_pause_end(&l->pause);
    if (l->lost) PyErr_NoMemory();
    return l->lost || l->stopped ? -1 : 0;
}

/* entries(): a list of (digest, bytes of the file, published, used), times in seconds. */
static PyObject *core_entries(PyObject *self, PyObject *unused) {
    (void)unused;
    listing l;
    PyObject *list = list_all(as_core(self), &l) < 0 ? NULL : PyList_New(l.items.len);
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

/* (published, digest, kind, label) of an entry; None: it has no head that can be used. */
static PyObject *label_of(core *c, const ing_store_item *item, bool pickled) {
    uint8_t room[ING_VALUE_HEAD];
    ing_value_reader r;
    ing_value_head head = {0};
    PyThreadState *gil = PyEval_SaveThread();
    bool ok = ing_value_open(c->store, item->key, &r) == ING_OK &&
              read_head(&r, item->key, room, &head);
    ing_value_close(&r);
    PyEval_RestoreThread(gil);
    if (!ok || !(head.codec == 'V' || (pickled && head.codec == 'P'))) Py_RETURN_NONE;
    return Py_BuildValue("(KNiy#)", (unsigned long long)item->published,
                         digest_text(item->key), head.label_kind,
                         (const char *)head.label, (Py_ssize_t)head.label_size);
}

/* labels(pickled): of all entries that say what they are called, the oldest first. */
static PyObject *core_labels(PyObject *self, PyObject *pickled) {
    core *c = as_core(self);
    listing l;
    PyObject *list = list_all(c, &l) < 0 ? NULL : PyList_New(0);
    for (uint32_t i = 0; list && i < l.items.len; i++) {
        PyObject *row = label_of(c, &l.items.at[i], pickled == Py_True);
        if (!row || (row != Py_None && PyList_Append(list, row) < 0) ||
            PyErr_CheckSignals() < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    ing_vec_fini(&l.items);
    if (list && PyList_Sort(list) < 0) Py_CLEAR(list);
    return list;
}

static PyObject *pair(ing_store_totals t) {
    return Py_BuildValue("(KK)", (unsigned long long)t.entries,
                         (unsigned long long)t.bytes);
}

/* totals(): (entries, bytes). */
static PyObject *core_totals(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_store_totals t = {0, 0};
    ing_py_pause pause;
    ing_py_pause_begin(&pause);
    ing_value_totals(as_core(self)->store, ing_py_pulse(&pause), &t);
    ing_py_pause_end(&pause);
    return PyErr_Occurred() ? NULL : pair(t);
}

/* sweep(): (entries, bytes) removed, or None: another process is at it. */
static PyObject *core_sweep(PyObject *self, PyObject *unused) {
    (void)unused;
    core *c = as_core(self);
    ing_store_totals t = {0, 0};
    ing_py_pause pause;
    ing_py_pause_begin(&pause);
    ing_status s = ing_value_sweep(c->store, c->bounds, ing_py_pulse(&pause), &t);
    ing_py_pause_end(&pause);
    if (PyErr_Occurred()) return NULL;
    if (s == ING_MEMORY) return PyErr_NoMemory();
    if (s != ING_OK) Py_RETURN_NONE;
    return pair(t);
}

/* clear(): (entries, bytes) removed. */
static PyObject *core_clear(PyObject *self, PyObject *unused) {
    (void)unused;
    ing_store_totals t = {0, 0};
    ing_py_pause pause;
    ing_py_pause_begin(&pause);
    ing_value_clear(as_core(self)->store, ing_py_pulse(&pause), &t);
    ing_py_pause_end(&pause);
    return PyErr_Occurred() ? NULL : pair(t);
}

static PyObject *core_remove(PyObject *self, PyObject *hex) {
    ing_hash128 key;
    if (get_digest(hex, &key) < 0) return NULL;
    bool gone = remove_seen(as_core(self), key, NULL);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(gone);
}

/* verify(digest, heal): "good", "missing", "damaged" or "unreadable". */
static PyObject *core_verify(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    static const char *const name[] = {"good", "missing", "damaged", "unreadable"};
    core *c = as_core(self);
    ing_hash128 key;
    ing_py_pause pause;
    if (check_args("verify", n, 2) < 0 || get_digest(args[0], &key) < 0) return NULL;
    int heal = PyObject_IsTrue(args[1]);
    if (heal < 0) return NULL;
    ing_py_pause_begin(&pause);
    ing_store_health h = ing_value_verify(c->store, key, heal, ing_py_pulse(&pause));
    ing_py_pause_end(&pause);
    return PyErr_Occurred() ? NULL : PyUnicode_FromString(name[h]);
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
    {"get", FAST(core_get), "get(digest, default, load, counted)"},
    {"pop", FAST(core_pop), "pop(digest, default, load)"},
    {"put", FAST(core_put), "put(digest, value, dump, kind, label): why not, or None."},
    {"take", FAST(core_take), "take(digest, seconds): a lease, None (busy), False."},
    {"release", core_release, METH_O, "release(lease)"},
    {"wait", FAST(core_wait), "wait(digest, seconds): whether the lease is gone."},
    {"entries", core_entries, METH_NOARGS, "[(digest, bytes, published, used)]"},
    {"labels", core_labels, METH_O, "[(published, digest, kind, label)], oldest first"},
    {"clear", core_clear, METH_NOARGS, "(entries, bytes) removed."},
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

static PyObject *encoded(PyObject *value, size_t max) {
    ing_codec_out out = {.max = max};
    ing_bytes_init(&out.buf);
    PyObject *bytes = NULL;
    if (ing_py_encode(value, &out) == 0)
        bytes = PyBytes_FromStringAndSize((char *)out.buf.at, (Py_ssize_t)out.buf.len);
    ing_bytes_fini(&out.buf);
    return bytes;
}

static PyObject *encode_value(PyObject *module, PyObject *value) {
    (void)module;
    return encoded(value, 0);
}

static PyObject *encode_label(PyObject *module, PyObject *value) {
    (void)module;
    return encoded(value, ING_VALUE_LABEL);
}

static PyObject *decode_value(PyObject *module, PyObject *bytes) {
    (void)module;
    if (!PyBytes_Check(bytes))
        return PyErr_Format(PyExc_TypeError, "decode_value takes bytes");
    ing_codec_in in = {.p = (const uint8_t *)PyBytes_AS_STRING(bytes),
                       .n = (size_t)PyBytes_GET_SIZE(bytes)};
    return ing_py_decode(&in);
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
    {"encode_label", encode_label, METH_O,
     "The same, if it is short; else ValueError."},
    {"decode_value", decode_value, METH_O, "Those bytes as a value; else ValueError."},
    {"step_key", FAST(step_key), "step_key(half, input): 32 hex digits."},
    {0},
};

int ing_py_filecache_add(PyObject *module, ing_py_state *st) {
    if (ing_py_entry_file_add(module, st) < 0) return -1;
    PyTypeObject *type = ing_py_add_type(module, &spec);
    if (!type) return -1;
    Py_DECREF(type); /* the module keeps it */
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}
