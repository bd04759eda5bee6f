/* The table of intrinsic names, by id and by text. Used by src/py when the package
 * registers its functions, and by messages. */
#include "gate/gate.h"

#include <string.h>

static const char *const names[ING_IN_N] = {
    "",
#define INTRINSIC(name, text) text,
#include "gate/intrinsic.def"
#undef INTRINSIC
};

const char *ing_intrinsic_name(ing_intrinsic i) {
    return (unsigned)i < ING_IN_N ? names[i] : "";
}

ing_intrinsic ing_intrinsic_find(const char *text) {
    for (unsigned i = 1; i < ING_IN_N; i++)
        if (strcmp(names[i], text) == 0) return (ing_intrinsic)i;
    return ING_IN_NONE;
}
