/* Errors: the one place where they begin. Called by every folder; src/py turns the
 * result into a Python exception. Must never exit, print or lose the status when
 * memory is short: then the text is NULL and the status alone tells. */
#include "base/base.h"

#include <stdio.h>

void ing_err_fini(ing_err *e) {
    ing_free(e->text);
    ing_free(e->file);
    ing_err_init(e);
}

/* malloc'ed text, NULL when memory ran out or the format failed. */
static char *format_text(const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = n < 0 ? NULL : ing_malloc((size_t)n + 1);
    if (text) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

ing_status ing_vfail(ing_err *e, ing_status s, const char *fmt, va_list ap) {
    if (!e) return s;
    /* The new text may quote the old one, so the old one is freed after. */
    char *text = format_text(fmt, ap);
    ing_err_fini(e);
    e->status = s;
    e->text = text;
    return s;
}

ing_status ing_fail(ing_err *e, ing_status s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    ing_vfail(e, s, fmt, ap);
    va_end(ap);
    return s;
}

const char *ing_status_name(ing_status s) {
    static const char *const name[] = {
#define X(name, exc) #name,
        ING_STATUS_LIST(X)
#undef X
    };
    return (size_t)s < sizeof name / sizeof *name ? name[s] : "?";
}

const char *ing_status_exception(ing_status s) {
    static const char *const exc[] = {
#define X(name, exc) exc,
        ING_STATUS_LIST(X)
#undef X
    };
    return (size_t)s < sizeof exc / sizeof *exc ? exc[s] : "";
}
