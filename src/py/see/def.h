/* Definitions: what a kernel and a func have in common, where their text comes from, and the
 * digests of it. Of the room that sees Python; used by those that call and fingerprint too. */
#ifndef ING_PY_DEF_H
#define ING_PY_DEF_H

#include "py/host.h"

#include "front/front.h"
#include "gate/gate.h"

/* ---- definitions: what Kernel and Func share (def.c, source.c) ------------------------------- */

enum { ING_PY_MAX_PARAMS = 512 };

typedef struct ing_py_def {
    PyObject *fn;   /* the Python function */
    PyObject *code; /* its code when it was decorated: the text is of that */
    PyObject *name; /* bytes: how messages call it */
    PyObject
        *text; /* bytes: raw lines of the def; NULL: `why` says why there are none */
    PyObject *why;
    PyObject *held;  /* set until parsed: what to compare with (source.c) */
    bool text_later; /* not taken yet: ing_py_def_text */
    uint32_t suffix; /* bytes at the end of `name` that are not the function's */
    bool ours;       /* of this package: the revision answers for its text (R10) */
    uint32_t first_line;
    ing_front_tree *tree;  /* NULL until parsed */
    ing_cache_alias alias; /* digest of the tree, once known: parsed, or told (R9) */
    uint32_t n_params;     /* positional ones and keyword-only ones */
    uint32_t n_posonly, n_kwonly;
    Py_ssize_t n_as_given;  /* arguments of a call that need no arranging; -1: all do */
    PyObject *names;        /* tuple of parameter names */
    PyObject *free_names;   /* tuple parallel to the cells of the closure */
    ing_gate_param *params; /* meanings of the annotations; NULL until asked */
    PyObject *types; /* with params: tuple of annotations, None where there is none */
    ing_gate_returns returns; /* valid when params is set */
    PyObject *result_types;   /* with params: tuple of the types that `returns` names */
    uint32_t defaults;        /* with params: what `float` and `int` meant (def.c) */
    PyObject *before;         /* what the annotations named under other settings */
} ing_py_def;

int ing_py_def_init(ing_py_state *st, ing_py_def *d, PyObject *fn, PyObject *source);
/* The same function and text again, called by its name and the suffix. */
int ing_py_def_copy(ing_py_state *st, ing_py_def *d, ing_py_def *from,
                    const char *suffix);
void ing_py_def_fini(ing_py_def *d);
int ing_py_def_traverse(ing_py_def *d, visitproc visit, void *arg);
/* The default of parameter i as it is now: 1 = *out is a new reference, 0 = none, -1. */
int ing_py_def_default(const ing_py_def *d, uint32_t i, PyObject **out);
/* Takes the text if that was put off; without one, `why` says why. -1 = raised. */
int ing_py_def_text(ing_py_state *st, ing_py_def *d);
/* Is its code still what was decorated? Else an error. */
ing_status ing_py_def_check(const ing_py_def *d, ing_err *e);
/* Parses on first use. */
ing_status ing_py_def_tree(ing_py_state *st, ing_py_def *d, const ing_front_tree **out,
                           ing_err *e);
/* What the function's text means (R9): the digest of its tree and which of its names are
 * free, which the text alone does not tell. No parsing when the store knows this text. */
ing_status ing_py_def_digest(ing_py_state *st, ing_py_def *d, ing_hash128 *out,
                             ing_err *e);
/* Where the function finds builtins; borrowed. */
PyObject *ing_py_def_builtins(const ing_py_def *d);
/* What was probably meant, for messages; "" when nothing is near (near.c). -1 = raised. */
int ing_py_near_name(const ing_py_def *d, const char *name, char *buf, size_t size);
int ing_py_near_attr(PyObject *of, const char *name, char *buf,
                     size_t size); /* 1: a remedy */
int ing_py_is_library(
    PyObject *fn); /* of the standard library or an installed package */
/* Is the name a free variable of the function? */
bool ing_py_def_is_free(const ing_py_def *d, const char *name);
/* Resolves the annotations on first use; errors carry the place of the parameter. */
ing_status ing_py_def_meanings(ing_py_state *st, ing_py_def *d, bool kernel,
                               ing_err *e);
const char *ing_py_def_name(const ing_py_def *d); /* for messages */
/* A name of a parameter or a free variable, whose UTF-8 was made when it was decorated. */
static inline const char *ing_py_utf8(PyObject *name) {
    return PyUnicode_AsUTF8(name);
}
/* An error at parameter i of the definition, at its return annotation, or (UINT32_MAX) at the
 * whole; with a caret when there is text. */
#define ING_PY_AT_RETURNS (UINT32_MAX - 1)
ing_status ing_py_def_fail(ing_py_state *st, ing_py_def *d, uint32_t i, ing_status s,
                           const char *remedy, ing_err *e, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

/* Takes the def's raw lines out of a file's text: *start, *len. False: not found. */
bool ing_py_source_block(const char *text, size_t n, uint32_t first_line, size_t *start,
                         size_t *len);
/* The same in the text of a file. Decorators run from top to bottom, so the search goes on
 * where the last one ended: from the top each time was a fifth of a warm start's time. */
bool ing_py_source_def(ing_py_host *h, PyObject *whole, uint32_t first_line,
                       size_t *start, size_t *len);
/* Whether a text belongs to a running function (belongs.c). */
struct stat;
/* All code that a text compiles to, under the `from __future__` of `fn`, which those of a prompt have
 * from earlier texts: a dict from first line to a list. NULL = raised. */
PyObject *ing_py_text_codes(PyObject *text, PyObject *file, PyObject *fn);
int ing_py_codes_hold(PyObject *codes, PyObject *fn); /* 1, 0, -1 = raised */
typedef enum ing_py_trust {
    ING_PY_TRUSTED, /* the file is what was imported; or a hook gave the code, and who knows */
    ING_PY_UNKNOWN, /* nothing tells: compare when the text is parsed */
    ING_PY_SUSPECT, /* the file changed: compare now */
} ing_py_trust;
int ing_py_source_trust(PyObject *fn, const char *file, const struct stat *now,
                        ing_py_trust *out); /* -1 = raised */
/* What is held of a file whose text is to be compared when it is parsed: 1 and a new
 * reference, 0, or -1 = raised. */
int ing_py_source_unknown(ing_py_state *st, PyObject *file, PyObject **out);
int ing_py_source_belongs(PyObject *held, PyObject *fn, PyObject *file); /* 1, 0, -1 */
/* The whole text of a file: 1 = *out is new bytes, 0 = *why is a new str, -1 = raised. */
int ing_py_source_file(ing_py_state *st, PyObject *fn, PyObject *file, PyObject **out,
                       PyObject **why);

/* Digest of a code object without positions (codehash.c); 0: it holds a constant that has
 * no stable digest, -1 = raised. */
int ing_py_code_digest(PyObject *code, ing_hash128 *out);
/* Digest of a def's raw lines, decorators cut, dedented (source.c). */
ing_hash128 ing_py_source_digest(const char *text, size_t n);

typedef struct ing_py_func {
    PyObject_HEAD ing_py_def def;
    PyObject *options; /* dict or NULL */
    bool requires_top_level, is_real_function;
    PyObject *dict, *weakrefs;
} ing_py_func;

#endif
