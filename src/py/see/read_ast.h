/* From Python text to plain C nodes; the rest of the engine never sees Python's ast. */
#ifndef ING_PY_READ_AST_H
#define ING_PY_READ_AST_H

#include "front/front.h"

/* Parses the raw lines of one def (decorators and indentation included, UTF-8) and reads
 * it into a new tree. `first_line` is the 1-based line of the file where the text starts.
 * ING_PYTHON: Python refused the text and its exception is set. */
ing_status ing_py_read_tree(const char *text, size_t n, const char *file,
                            uint32_t first_line, const char *name, ing_front_tree **out,
                            ing_err *e);

#endif
