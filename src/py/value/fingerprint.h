/* Fingerprints of Python values, for the other files of src/py. What is hashed for each
 * kind of object is written in docs/fingerprint.md; how, in docs/internals/fingerprint.md. */
#ifndef ING_PY_FINGERPRINT_H
#define ING_PY_FINGERPRINT_H

#include "py/py.h"

int ing_py_fingerprint_add(PyObject *module, ing_py_state *st);
int ing_py_fingerprint_traverse(ing_py_state *st, visitproc visit, void *arg);
void ing_py_fingerprint_clear(ing_py_state *st);
void ing_py_fingerprint_fini(ing_py_state *st);

/* The digest of `obj`: a function of its value alone. `fingerprinter` is an instance of
 * ingot.Fingerprinter, or NULL for the strict rules without overrides. May run Python
 * code (reducers, overrides); never a user's __eq__ or __hash__. 0, or -1 = raised: a
 * FingerprintError names the path of what cannot be hashed. A digest of something that
 * holds an Identity is valid only while the caller keeps that Identity alive. */
int ing_py_fingerprint(ing_py_state *st, PyObject *obj, PyObject *fingerprinter,
                       ing_hash128 *out);

#endif
