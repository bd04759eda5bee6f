/* The settings table: names, types, defaults, and which of them are part of a key.
 * Called by qd.init (src/py) and by whoever hashes settings. Must never read the
 * environment: what a setting is comes from its caller. */
#include "base/base.h"

static const struct {
    const char *name;
    int64_t value;
    char type;
    ing_setting_use use;
} table[] = {
#define X(name, type, def, use, help) {#name, def, #type[0], ING_USE_##use},
    ING_SETTING_LIST(X)
#undef X
};

static bool known(ing_setting k) {
    return (uint32_t)k < ING_SETTING_N;
}

void ing_settings_init(ing_settings *s) {
    for (uint32_t i = 0; i < ING_SETTING_N; i++) s->at[i] = table[i].value;
}

const char *ing_setting_name(ing_setting k) {
    return known(k) ? table[k].name : "?";
}

char ing_setting_type(ing_setting k) {
    return known(k) ? table[k].type : '?';
}

ing_setting_use ing_setting_used(ing_setting k) {
    return known(k) ? table[k].use : ING_USE_NOT;
}

void ing_settings_answered(const ing_settings *now, ing_settings *out) {
    for (uint32_t i = 0; i < ING_SETTING_N; i++) {
        bool read = table[i].use == ING_USE_ALWAYS || table[i].use == ING_USE_CODE;
        out->at[i] = read ? now->at[i] : ING_UNANSWERED;
    }
}
