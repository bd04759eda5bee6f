/* Stored values: the core of ingot.FileCache and the keys of ingot.CachedStep. */
#ifndef ING_PY_FILECACHE_H
#define ING_PY_FILECACHE_H

#include "py/py.h"

int ing_py_filecache_add(PyObject *module, ing_py_state *st);

#endif
