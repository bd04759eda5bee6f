/* The extension module ingot._core: its state, its parts in order, its settings. Multi-
 * phase initialisation, so each interpreter that imports it has a state of its own. What
 * a part does is in its file; this one must know nothing but the table. */
#include "py/value/filecache.h"
#include "py/value/fingerprint.h"
#include "py/array/foreign.h"
#include "py/array/struct.h"
#include "py/array/tensor.h"
#include "py/call/kernel.h"
#include "py/tool/tool.h"
#include "store/store.h"

#include <string.h>

static int module_add(PyObject *module, ing_py_state *st);
static int module_traverse(ing_py_state *st, visitproc visit, void *arg);
static void module_clear(ing_py_state *st);

/* In the order of `add`: a part may use what those above it made. */
static const ing_py_part parts[] = {
    {module_add, module_traverse, module_clear, NULL},
    {ing_py_raise_add, ing_py_raise_traverse, ing_py_raise_clear, NULL},
    {ing_py_dtype_add, ing_py_dtype_traverse, ing_py_dtype_clear, NULL},
    {ing_py_intrinsic_add, ing_py_intrinsic_traverse, ing_py_intrinsic_clear,
     ing_py_intrinsic_fini},
    {ing_py_tensor_add, ing_py_tensor_traverse, ing_py_tensor_clear, NULL},
    {ing_py_struct_add, ing_py_struct_traverse, ing_py_struct_clear, NULL},
    {ing_py_array_add, ing_py_array_traverse, ing_py_array_clear, ing_py_array_fini},
    {ing_py_field_add, ing_py_field_traverse, ing_py_field_clear, ing_py_field_fini},
    {ing_py_foreign_add, ing_py_foreign_traverse, ing_py_foreign_clear,
     ing_py_foreign_fini},
    {ing_py_host_add, ing_py_host_traverse, ing_py_host_clear, ing_py_host_fini},
    {ing_py_tracing_add, NULL, NULL, NULL},
    {ing_py_profile_add, NULL, NULL, NULL},
    {ing_py_kernel_add, NULL, NULL, NULL},
    {ing_py_explain_add, NULL, NULL, NULL},
    {ing_py_packs_add, NULL, NULL, NULL},
    {ing_py_cachetool_add, NULL, NULL, NULL},
    {ing_py_fingerprint_add, ing_py_fingerprint_traverse, ing_py_fingerprint_clear,
     ing_py_fingerprint_fini},
    {ing_py_filecache_add, NULL, NULL, NULL},
    {ing_py_sparse_add, NULL, NULL, NULL},
};
enum { N_PARTS = sizeof parts / sizeof *parts };

PyTypeObject *ing_py_add_type(PyObject *module, const PyType_Spec *spec) {
    PyTypeObject *type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, (PyType_Spec *)spec, NULL);
    if (type && PyModule_AddType(module, type) < 0) Py_CLEAR(type);
    return type;
}

PyObject *ing_py_attr(PyObject *of, const char *name) {
    PyObject *text = PyUnicode_InternFromString(name);
    PyObject *found = text ? PyObject_GetAttr(of, text) : NULL;
    Py_XDECREF(text);
    return found;
}

int ing_py_attr_maybe(PyObject *of, const char *name, PyObject **out) {
    PyObject *text = PyUnicode_InternFromString(name);
    *out = NULL;
    int rc = text ? PyObject_GetOptionalAttr(of, text, out) : -1;
    Py_XDECREF(text);
    return rc;
}

PyObject *ing_py_attr_of(const ing_py_state *st, PyObject *of, ing_py_name name) {
    return PyObject_GetAttr(of, st->names[name]);
}

int ing_py_attr_of_maybe(const ing_py_state *st, PyObject *of, ing_py_name name,
                         PyObject **out) {
    return PyObject_GetOptionalAttr(of, st->names[name], out);
}

int ing_py_as_u64(PyObject *value, void *out) {
    PyObject *number = PyNumber_Index(value);
    unsigned long long v = number ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    *(uint64_t *)out = v;
    return !PyErr_Occurred();
}

int ing_py_as_u32(PyObject *value, void *out) {
    uint64_t v;
    if (!ing_py_as_u64(value, &v)) return 0;
    if (v > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%R is more than %lu", value,
                     (unsigned long)UINT32_MAX);
        return 0;
    }
    *(uint32_t *)out = (uint32_t)v;
    return 1;
}

int ing_py_loaded(const char *module, PyObject **out) {
    PyObject *name = PyUnicode_FromString(module);
    *out = name ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    return *out ? 1 : PyErr_Occurred() ? -1 : 0;
}

static int names_add(ing_py_state *st) {
    static const char *const text[ING_PY_NAME_N] = {
#define X(name) #name,
        ING_PY_NAME_LIST(X)
#undef X
    };
    for (int i = 0; i < ING_PY_NAME_N; i++) {
        st->names[i] = PyUnicode_InternFromString(text[i]);
        if (!st->names[i]) return -1;
    }
    return 0;
}

/* What is imported already is taken from there: importing it again costs more, and without
 * memory CPython gets lost on the way. */
PyObject *ing_py_import(const char *from, const char *name) {
    PyObject *module, *found = NULL;
    int rc = ing_py_loaded(from, &module);
    if (rc == 1) rc = ing_py_attr_maybe(module, name, &found);
    Py_XDECREF(module);
    if (rc != 0) return found;
    module = PyImport_ImportModule(from);
    found = module ? ing_py_attr(module, name) : NULL;
    Py_XDECREF(module);
    return found;
}

PyObject *ing_py_call_in(const char *from, const char *name, PyObject *self,
                         PyObject *args, PyObject *kwargs) {
    PyObject *function = ing_py_import(from, name);
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *all = function ? PyTuple_New(n + 1) : NULL, *result = NULL;
    if (all) {
        PyTuple_SET_ITEM(all, 0, Py_NewRef(self));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
        result = PyObject_Call(function, all, kwargs);
    }
    Py_XDECREF(all);
    Py_XDECREF(function);
    return result;
}

/* ---- settings ------------------------------------------------------------------------ */

static int find_setting(PyObject *name) {
    for (int k = 0; k < ING_SETTING_N; k++)
        if (PyUnicode_CompareWithASCIIString(name, ing_setting_name((ing_setting)k)) ==
            0)
            return k;
    return -1;
}

static int bad_setting(ing_setting k, const char *wanted, PyObject *got) {
    PyErr_Format(PyExc_TypeError, "setting '%s': expected %s, got %R",
                 ing_setting_name(k), wanted, got);
    return -1;
}

static int dtype_setting(ing_py_state *st, ing_setting k, PyObject *value,
                         int64_t *out) {
    ing_dtype t = ing_py_dtype_from(st, value);
    bool real = k == ING_SET_default_fp;
    if (real ? t != ING_F16 && t != ING_F32 && t != ING_F64
             : t != ING_I32 && t != ING_I64)
        return bad_setting(k,
                           real ? "the dtype qd.f16, qd.f32 or qd.f64"
                                : "the dtype qd.i32 or qd.i64",
                           value);
    *out = t;
    return 0;
}

static int one_setting(ing_py_state *st, ing_setting k, PyObject *value, int64_t *out) {
    char type = ing_setting_type(k);
    if (type == 'S') return dtype_setting(st, k, value, out);
    if (!PyLong_Check(value)) /* bool included */
        return bad_setting(k, type == 'B' ? "True or False" : "an integer", value);
    bool large = k == ING_SET_offline_cache_max_size_of_files;
    bool any = k == ING_SET_random_seed;
    long long v = PyLong_AsLongLong(value);
    bool fits = v != -1 || !PyErr_Occurred();
    if (!fits && !ing_py_took(PyExc_OverflowError)) return -1;
    if (!fits || (!any && (v < 0 || (!large && v > INT32_MAX))))
        return bad_setting(k,
                           any     ? "an integer of 64 bits"
                           : large ? "a number of bytes below 2**63"
                                   : "an integer from 0 to 2147483647",
                           value);
    *out = type == 'B' ? v != 0 : v;
    return 0;
}

static int set_cache_dir(PyObject *value, PyObject **out) {
    if (value != Py_None && !PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError,
                     "setting 'offline_cache_file_path': expected a str, got %R",
                     value);
        return -1;
    }
    if (value != Py_None) {
        PyObject *bytes = ing_py_path(value);
        bool whole = bytes && !memchr(PyBytes_AS_STRING(bytes), 0,
                                      (size_t)PyBytes_GET_SIZE(bytes));
        Py_XDECREF(bytes);
        if (!bytes) return -1;
        if (!whole) {
            PyErr_Format(PyExc_ValueError,
                         "setting 'offline_cache_file_path': %R has a NUL in it",
                         value);
            return -1;
        }
    }
    Py_XSETREF(*out, value == Py_None ? NULL : Py_NewRef(value));
    return 0;
}

static int read_settings(ing_py_state *st, PyObject *given, ing_settings *set,
                         PyObject **cache_dir) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(given, &at, &name, &value)) {
        if (!PyUnicode_Check(name)) {
            PyErr_SetString(PyExc_TypeError, "names of settings are strings");
            return -1;
        }
        if (PyUnicode_CompareWithASCIIString(name, "offline_cache_file_path") == 0) {
            if (set_cache_dir(value, cache_dir) < 0) return -1;
            continue;
        }
        int k = find_setting(name);
        if (k < 0) {
            PyErr_Format(PyExc_KeyError, "there is no setting called '%U'", name);
            return -1;
        }
        if (one_setting(st, (ing_setting)k, value, &set->at[k]) < 0) return -1;
    }
    if (set->at[ING_SET_debug]) set->at[ING_SET_check_out_of_bound] = 1;
    return 0;
}

static PyObject *check_setting(PyObject *module, PyObject *args) {
    PyObject *name, *value;
    int64_t unused;
    if (!PyArg_ParseTuple(args, "UO:check_setting", &name, &value)) return NULL;
    int k = find_setting(name);
    if (k < 0)
        return PyErr_Format(PyExc_KeyError, "there is no setting called '%U'", name);
    if (one_setting(ing_py_state_in(module), (ing_setting)k, value, &unused) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* All or nothing: a bad setting leaves the ones in force as they were. */
static PyObject *configure(PyObject *module, PyObject *given) {
    ing_py_state *st = ing_py_state_in(module);
    ing_settings set;
    PyObject *cache_dir = NULL;
    if (!PyDict_CheckExact(given))
        return PyErr_Format(PyExc_TypeError, "configure takes a dict");
    ing_settings_init(&set);
    if (read_settings(st, given, &set, &cache_dir) < 0) {
        Py_XDECREF(cache_dir);
        return NULL;
    }
    st->settings = set;
    ing_py_tensor_types_follow(st);
    ing_py_struct_types_follow(st);
    Py_XSETREF(st->cache_dir, cache_dir);
    if (st->configured && st->configured(st) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *setting_value(const ing_py_state *st, ing_setting k) {
    int64_t v = st->settings.at[k];
    switch (ing_setting_type(k)) {
    case 'B': return PyBool_FromLong(v != 0);
    case 'S': return Py_XNewRef(ing_py_dtype_get(st, (ing_dtype)v));
    default: return PyLong_FromLongLong(v);
    }
}

static PyObject *settings(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state *st = ing_py_state_in(module);
    PyObject *all = PyDict_New();
    for (unsigned k = 0; all && k < ING_SETTING_N; k++) {
        PyObject *value = setting_value(st, (ing_setting)k);
        if (!value ||
            PyDict_SetItemString(all, ing_setting_name((ing_setting)k), value) < 0)
            Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

/* Where compiled code is kept; None: nowhere. */
static PyObject *cache_dir(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state *st = ing_py_state_in(module);
    if (!st->settings.at[ING_SET_offline_cache]) Py_RETURN_NONE;
    if (st->cache_dir) return Py_NewRef(st->cache_dir);
    ing_bytes dir;
    ing_bytes_init(&dir);
    bool known = ing_store_default_dir(&dir, NULL) == ING_OK && !dir.failed;
    PyObject *text =
        known ? PyUnicode_DecodeFSDefault((const char *)dir.at) : Py_NewRef(Py_None);
    ing_bytes_fini(&dir);
    return text;
}

static PyObject *counters(PyObject *module, PyObject *unused) {
    (void)unused;
    ing_py_state *st = ing_py_state_in(module);
    PyObject *all = PyDict_New();
    for (unsigned c = 0; all && c < ING_COUNTER_N; c++) {
        uint64_t n = __atomic_load_n(&st->counters.at[c], __ATOMIC_RELAXED);
        PyObject *value = PyLong_FromUnsignedLongLong(n);
        if (!value ||
            PyDict_SetItemString(all, ing_counter_name((ing_counter)c), value) < 0)
            Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

static PyObject *fail_allocation(PyObject *module, PyObject *n) {
    (void)module;
    uint64_t left = ing_alloc_fail_left();
    unsigned long long at = PyLong_AsUnsignedLongLong(n);
    if (PyErr_Occurred()) return NULL;
    ing_alloc_fail_at(at);
    return PyLong_FromUnsignedLongLong(left);
}

/* Our types are immutable, and what makes signatures is Python: it is put in once, while the
 * package is imported, before there is an instance. */
static PyObject *describe_type(PyObject *module, PyObject *args) {
    (void)module;
    PyTypeObject *type;
    PyObject *name, *descriptor;
    if (!PyArg_ParseTuple(args, "O!UO:_describe", &PyType_Type, &type, &name,
                          &descriptor))
        return NULL;
    if (PyDict_SetItem(type->tp_dict, name, descriptor) < 0) return NULL;
    PyType_Modified(type);
    Py_RETURN_NONE;
}

static const PyMethodDef functions[] = {
    {"_describe", describe_type, METH_VARARGS,
     "_describe(type, name, descriptor): what help() and inspect see of a type."},
    {"configure", configure, METH_O,
     "configure(dict): puts settings in force; those not named get their defaults."},
    {"check_setting", check_setting, METH_VARARGS,
     "check_setting(name, value): raises what configure would."},
    {"settings", settings, METH_NOARGS, "The settings in force, as a dict."},
    {"cache_dir", cache_dir, METH_NOARGS, "Where compiled code is kept, or None."},
    {"counters", counters, METH_NOARGS,
     "counters()\n--\n\nWhat happened in this process so far, as a dict of counts."},
    {"fail_allocation", fail_allocation, METH_O,
     "For tests: the n-th allocation of the engine fails (0: none). How many were "
     "left."},
    {0},
};

static int module_add(PyObject *module, ing_py_state *st) {
    ing_settings_init(&st->settings);
    if (names_add(st) < 0) return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}

static int module_traverse(ing_py_state *st, visitproc visit, void *arg) {
    Py_VISIT(st->cache_dir);
    return 0;
}

static void module_clear(ing_py_state *st) {
    for (int i = 0; i < ING_PY_NAME_N; i++) Py_CLEAR(st->names[i]);
    Py_CLEAR(st->cache_dir);
}

/* ---- the module ---------------------------------------------------------------------- */

/* The engine counts on the GIL: guards read dictionaries that others write. */
static int refuse_free_threading(void) {
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError,
                    "Ingot needs an interpreter with the GIL, and this is a "
                    "free-threaded build of Python\n"
                    "help: use the build without the `t` in its name");
    return -1;
#else
    return 0;
#endif
}

static int module_exec(PyObject *module) {
    if (refuse_free_threading() < 0) return -1;
    ing_py_state *st = ing_py_state_in(module);
    for (int i = 0; i < N_PARTS; i++)
        if (parts[i].add(module, st) < 0) return -1;
    return 0;
}

/* The state is zeroed when it exists at all, so parts that never ran have nothing. */
static int traverse_all(PyObject *module, visitproc visit, void *arg) {
    ing_py_state *st = ing_py_state_in(module);
    for (int i = 0; st && i < N_PARTS; i++) {
        int rc = parts[i].traverse ? parts[i].traverse(st, visit, arg) : 0;
        if (rc) return rc;
    }
    return 0;
}

static int clear_all(PyObject *module) {
    ing_py_state *st = ing_py_state_in(module);
    for (int i = N_PARTS - 1; st && i >= 0; i--)
        if (parts[i].clear) parts[i].clear(st);
    return 0;
}

static void free_all(void *module) {
    ing_py_state *st = ing_py_state_in((PyObject *)module);
    clear_all((PyObject *)module);
    for (int i = N_PARTS - 1; st && i >= 0; i--)
        if (parts[i].fini) parts[i].fini(st);
}

static const PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    /* That share the GIL. CPython refuses the import where an interpreter has its own, and
     * ingot/__init__.py says what that means. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {Py_mod_exec, module_exec},
    {0, NULL},
};

/* registry: CPython counts references in a module's definition. */
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ingot._core",
    .m_doc = "The C engine of Ingot. Use it through the package `ingot`.",
    .m_size = sizeof(ing_py_state),
    .m_slots = (PyModuleDef_Slot *)slots,
    .m_traverse = traverse_all,
    .m_clear = clear_all,
    .m_free = free_all,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&definition);
}
