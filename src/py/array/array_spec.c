/* Array specs, interned: equal specs have one address, which is what a launch compares.
 * Called when arrays are made and by the gate for arrays of others. A spec is never
 * changed nor freed before the module goes. */
#include "py/py.h"

#include <string.h>

/* For this process alone: a home is an address. */
static ing_hash128 digest_of(const ing_py_spec *s) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, 'd', s->dtype);
    ing_hasher_u64(&h, 'n', s->ndim);
    ing_hasher_u64(&h, 'g', s->grad);
    ing_hasher_u64(&h, 'r', s->elem_rank);
    for (unsigned k = 0; k < s->elem_rank; k++)
        ing_hasher_u64(&h, 'e', s->elem_shape[k]);
    ing_hasher_item(&h, 'l', s->layout, s->ndim);
    ing_hasher_u64(&h, 'h', (uint64_t)(uintptr_t)s->home);
    return ing_hasher_done(&h);
}

const ing_py_spec *ing_py_spec_intern(ing_py_state *st, const ing_py_spec *from) {
    ing_py_spec with = *from;
    const ing_py_spec *s = &with;
    if (!with.home) with.home = st->home;
    ing_hash128 digest = digest_of(s);
    uint32_t id = ing_map_get(&st->spec_map, digest);
    if (id) return st->specs.at[id - 1];
    ing_py_spec *made = ing_malloc(sizeof *made);
    if (made) {
        *made = *s;
        made->digest = digest;
        if (ING_PY_INTERN(&st->specs, &st->spec_map, made)) return made;
    }
    ing_free(made);
    PyErr_NoMemory();
    return NULL;
}

const ing_py_spec *ing_py_spec_get(ing_py_state *st, const ing_spec *s,
                                   const ing_home *home) {
    ing_py_spec wanted = {0};
    _Static_assert(offsetof(ing_py_spec, home) >= sizeof *s, "the same members");
    memcpy(&wanted, s, sizeof *s);
    wanted.home = home;
    return ing_py_spec_intern(st, &wanted);
}
