/* What stands beside launches: the command line's view of caches, packs, the profiler, INGOT_TRACE. */
#ifndef ING_PY_TOOL_H
#define ING_PY_TOOL_H

#include "py/host.h"

/* qd.profiler (profile.c). The target whose launches are measured in place of `t`, which it is but
 * for that; `t` itself where it cannot be measured or there is no memory. */
const ing_target *ing_py_profiled(ing_py_host *h, const ing_target *t);
void ing_py_profile_free(struct ing_py_profile *p);
int ing_py_profile_add(PyObject *module, ing_py_state *st);
/* Sums of what compiles took. */
void ing_py_profile_compile(ing_py_host *h, const ing_engine_report *g,
                            uint64_t front_ns);
/* INGOT_TRACE (tracing.c). A launch that is told: in place of ing_py_kernel_call. */
int ing_py_tracing_add(PyObject *module, ing_py_state *st);
PyObject *ing_py_kernel_call_told(PyObject *self, PyObject *const *args, size_t nargsf,
                                  PyObject *kwnames);
int ing_py_packs_add(PyObject *module, ing_py_state *st);     /* packs.c */
int ing_py_cachetool_add(PyObject *module, ing_py_state *st); /* cachetool.c */
int ing_py_cachework_add(PyObject *module);                   /* cachework.c */

#endif
