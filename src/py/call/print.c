/* What kernels print, on its way to sys.stdout: records of the runtime become text by the
 * messages of the variant. Called on the launching thread, with the GIL, while
 * a launch runs and when it ends. An exception of sys.stdout cancels the launch and is
 * raised by it; one that is already on its way stays. */
#include "py/call/kernel.h"

/* Faults of debug mode that stop nothing, in the words of an error at that place. */
static void put_fault(const ing_py_sink *s, const ing_rt_printed *r,
                      const uint64_t *words, ing_bytes *out) {
    ing_error_slot slot = {.code = (int32_t)r->p.code,
                           .func = r->p.func,
                           .node = r->p.node,
                           .task = (uint32_t)r->task};
    for (uint32_t i = 0; i < r->p.n && i < ING_ABI_MAX_DETAIL; i++)
        slot.detail[i] = words[i];
    ing_err e;
    ing_err_init(&e);
    ing_py_launch_error(s->kernel, s->variant, s->args, &slot, &e);
    if (e.text) ing_bytes_printf(out, "%s\n", e.text);
    ing_err_fini(&e);
}

static void put_records(const ing_py_sink *s, const uint8_t *at, size_t n,
                        ing_bytes *out) {
    const uint8_t *end = at + n;
    while (at < end) {
        const ing_rt_printed *r = (const void *)at;
        const uint64_t *words = (const void *)(at + sizeof *r);
        uint32_t message = r->p.code - ING_ABI_USER;
        if (r->p.code >= ING_ABI_READS)
            ing_py_reads_note(s->kernel->reads, r, words);
        else if (r->p.code < ING_ABI_USER)
            put_fault(s, r, words, out);
        else if (message < s->variant->record.messages.len)
            ing_front_message_fill(s->variant->record.messages.at[message], words,
                                   r->p.n, out);
        at += sizeof *r + 8 * (size_t)r->p.n;
    }
}

/* To a file object; -1 = raised. */
static int say_to(PyObject *to, const char *text, size_t n) {
    PyObject *str = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    int rc = str ? PyFile_WriteObject(str, to, Py_PRINT_RAW) : -1;
    Py_XDECREF(str);
    PyObject *done = rc == 0 ? PyObject_CallMethod(to, "flush", NULL) : NULL;
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int ing_py_say(const char *file, const char *text, size_t n) {
    PyObject *sys, *to = NULL;
    int rc = ing_py_loaded("sys", &sys);
    if (rc == 1) rc = ing_py_attr_maybe(sys, file, &to);
    if (rc == 1) rc = to == Py_None || !n ? 0 : say_to(to, text, n);
    Py_XDECREF(sys);
    Py_XDECREF(to);
    return rc;
}

int ing_py_print(void *self, const uint8_t *records, size_t n) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    ing_bytes text;
    ing_bytes_init(&text);
    put_records(self, records, n, &text);
    int rc = 0;
    if (text.failed) {
        PyErr_NoMemory();
        rc = -1;
    } else if (text.at) {
        rc = ing_py_say("stdout", (const char *)text.at, text.len);
    }
    ing_bytes_fini(&text);
    if (type) PyErr_Restore(type, value, trace); /* the older one is kept */
    return rc;
}
