/* Guards: what a launch asks again (R11). Making them (guard_make.c), checking them
 * (guard.c), reading members (member.c), and knowing without a look that nothing has changed
 * (watch.c). Rules:
 *  GUARD1 Nothing is compared with a pointer that is not owned here, or read through one that
 *     neither is owned nor stands in something watched that is unchanged.
 *  GUARD2 What a fetch reads is watched, or it is made at each launch. Whenever a check finds
 *     that it now reads something else, the checks of the variant are made anew.
 *  GUARD3 Checks are shared by launches: they are replaced, never changed in length. */
#ifndef ING_PY_GUARD_H
#define ING_PY_GUARD_H

#include "py/call/kernel.h"

/* On the way of every launch, and called from two places. */
#define ING_PY_HOT inline __attribute__((always_inline))

/* ---- what is watched (watch.c) ----------------------------------------------------------- */

typedef struct ing_py_dict_mark { /* a dictionary as it was when guards last held */
    PyObject *dict;               /* owned */
    uint64_t version;             /* before 3.12 */
} ing_py_dict_mark;

typedef struct ing_py_pin { /* a place in an object that hardly ever changes */
    PyObject *const *at;
    PyObject *want; /* owned */
} ing_py_pin;

typedef struct ing_py_class_mark {
    PyTypeObject *type; /* owned */
    uint32_t version;   /* its tag: taken away by any change of it or its bases */
} ing_py_class_mark;

typedef struct ing_py_watch {
    ing_vec(ing_py_dict_mark) dicts;
    ing_vec(ing_py_pin) pins;
    ing_vec(PyObject *) owners; /* of the pins' places: owned */
    ing_vec(ing_py_class_mark) classes;
    bool never;       /* something cannot be watched: look each time */
    uint64_t changes; /* 3.12+: how many there were when guards last held */
} ing_py_watch;

void ing_py_watch_fini(ing_py_watch *w);
int ing_py_watch_traverse(const ing_py_watch *w, visitproc visit, void *arg);
void ing_py_watch_note(const ing_py_state *st, ing_py_watch *w); /* as it is now */
ing_status ing_py_watch_dict(ing_py_host *h, ing_py_watch *w, PyObject *dict,
                             ing_err *e);
bool ing_py_watch_has(const ing_py_watch *w, const PyObject *dict);
bool ing_py_watch_has_class(const ing_py_watch *w, const PyTypeObject *type);
ing_status ing_py_watch_pin(ing_py_watch *w, PyObject *owner, PyObject *const *at,
                            ing_err *e);

static inline uintptr_t ing_py_pin_differs(const ing_py_pin *p) {
    return (uintptr_t)*p->at ^ (uintptr_t)p->want;
}

/* Are all pins as they were? Here, because each launch asks. */
static inline bool ing_py_watch_pinned(const ing_py_watch *w) {
    uintptr_t differ = 0;
    const ing_py_pin *p = w->pins.at, *end = p + w->pins.len;
    for (; end - p >= 4;
         p += 4) /* no branch, few steps: dataclasses have many fields */
        differ |= ing_py_pin_differs(p) | ing_py_pin_differs(p + 1) |
                  ing_py_pin_differs(p + 2) | ing_py_pin_differs(p + 3);
    for (; p < end; p++) differ |= ing_py_pin_differs(p);
    return differ == 0;
}

#if PY_VERSION_HEX >= 0x030C0000
uint64_t ing_py_watch_changes(void); /* of watched dictionaries, in the process */
#endif

static inline bool ing_py_watch_unchanged(const ing_py_watch *w) {
    if (w->never) return false;
#if PY_VERSION_HEX >= 0x030C0000
    if (w->changes != ing_py_watch_changes()) return false;
#else
    for (uint32_t i = 0; i < w->dicts.len; i++)
        if (((PyDictObject *)w->dicts.at[i].dict)->ma_version_tag !=
            w->dicts.at[i].version)
            return false;
#endif
    for (uint32_t i = 0; i < w->classes.len; i++) {
        const ing_py_class_mark *m = &w->classes.at[i];
        if (!m->version || m->type->tp_version_tag != m->version) return false;
    }
    return ing_py_watch_pinned(w);
}
ing_status ing_py_watch_class(const ing_py_state *st, ing_py_watch *w,
                              PyTypeObject *type, ing_err *e);

/* Types of fields that are text (field_text.c). Is everything watched that says what the text
 * means now? 1, 0 or -1 = raised. */
int ing_py_field_is_watched(const ing_py_watch *w, PyObject *cls, PyObject *declared);
/* Watches that; *watched false: it cannot be said what it is. */
ing_status ing_py_watch_field(ing_py_host *h, ing_py_watch *w, PyObject *cls,
                              PyObject *declared, bool *watched, ing_err *e);

/* ---- the checks of a variant -------------------------------------------------------------- */

/* A place that a launch looks at: one step from another one, or from a root. */
typedef struct ing_py_fetch {
    ing_path path;
    uint32_t parent;  /* fetch from 1; 0 = a root */
    uint32_t atom;    /* ATTR: its name */
    uint8_t step;     /* ing_step */
    uint8_t place;    /* members: ing_py_place */
    bool whole;       /* a call, or a comparison: the whole path is followed */
    bool module_only; /* reads nothing but what is watched */
    bool live;        /* wanted even while those are unchanged */
    uint32_t at;      /* members: see ing_py_place; ARG: which */
    union {
        PyObject *name; /* members: the atom as a str; the kernel owns it */
        PyObject *dict; /* module_only: the one that it reads, watched; NULL: none */
    };
    PyObject
        *cached; /* module_only: what is there, while they are unchanged; borrowed */
} ing_py_fetch;

typedef enum ing_py_place { /* where instances of a class have an attribute (member.c) */
                            ING_MEMBER_UNKNOWN,
                            ING_MEMBER_ANY, /* Python is to find it */
                            ING_MEMBER_TABLE, /* at: index in the instance's table of names */
                            ING_MEMBER_SLOT, /* at: bytes from the start of the instance */
} ing_py_place;

/* Fetches that follow one another and start from the same thing. */
typedef struct ing_py_members {
    uint32_t parent;    /* fetch from 1; 0 = roots */
    uint32_t first, n;  /* of the variant's fetches */
    bool plain;         /* attributes, read together: member.c; else one by one */
    bool checked;       /* guards of numbers held for an object of that class */
    uint32_t version;   /* of the class that the places are for; 0: none */
    PyTypeObject *type; /* compared, never used */
} ing_py_members;

/* One question of a variant's trace that a launch must check again (R11). */
typedef struct ing_py_guard {
    ing_path path;
    uint8_t ask;
    uint32_t fetch; /* from 1 */
    bool always;    /* checked even while what is watched is unchanged */
    bool plain;     /* holds at a glance for `expect` alone */
    ing_hash128 answer;
    PyObject
        *expect; /* owned: an immutable atom, type or function; NULL: by digest (R13) */
    bool bound;  /* a method: `expect` is its func */
    PyTypeObject *number; /* a number read at launch: its type, one of Python's own */
    bool is_object;       /* the answer: an object that counts by what is read of it */
    bool is_member;       /* of an enum: `expect` as long as its class is as it was */
    /* of these: of the class of which the last one was; 0: none yet */
    uint32_t version;
    PyTypeObject *type; /* that class; compared, never used */
    PyObject *code, *defaults,
        *kwdefaults; /* owned: of a Python function that was called; else NULL */
    PyObject *field, *declared; /* owned: of a dataclass, with its type as written */
    uint64_t classes;           /* WHOLE: as ing_py_whole has it */
} ing_py_guard;

/* Two places in what is watched that have the very same thing. While that is unchanged, what
 * is asked of one, or of what follows from it in the same steps, need not be asked of the other.
 * Funcs that several others call come with all that they read once for each. */
typedef struct ing_py_twins {
    uint32_t first, second; /* fetches from 1 */
} ing_py_twins;

typedef struct ing_py_checks {
    uint32_t refs;
    ing_vec(ing_py_fetch) fetches;
    ing_vec(ing_py_members) members; /* all of the fetches, in order */
    ing_vec(ing_py_guard) guards;
    ing_vec(ing_py_bind) binds; /* those of the variant, with their fetches */
    ing_vec(ing_py_twins) twins;
    /* Questions of the trace that follow from the guards as long as these hold for the very
     * same functions, classes and members of enums. */
    ing_vec(uint32_t) relations;
    ing_py_watch watch;
    bool marked; /* what is watched was noted when all guards held */
    uint32_t n_cached,
        n_cached_members; /* the first ones: what stands in what is watched */
    uint32_t n_live, n_live_members; /* and after them what every launch fetches */
    uint32_t n_always; /* guards that every launch checks: the first ones */
} ing_py_checks;

void ing_py_checks_free(ing_py_checks *c);
static inline void ing_py_checks_unref(ing_py_checks *c) {
    if (c && --c->refs == 0) ing_py_checks_free(c);
}
int ing_py_checks_traverse(const ing_py_checks *c, visitproc visit, void *arg);
/* The checks of a variant that was made or loaded, in place of those it has. */
ing_status ing_py_guards_make(ing_py_kernel *k, ing_py_variant *v,
                              PyObject *const *args, ing_err *e);
/* Are all guards of the variant still true for these arguments? ING_DECLINED: no. `held`
 * has a slot per fetch; *n_held of them take a new reference to what was fetched, or NULL,
 * also on failure: while a launch runs without the GIL, others may drop it. */
ing_status ing_py_guards_hold(ing_py_kernel *k, ing_py_variant *v, ing_py_checks *c,
                              PyObject *const *args, PyObject **held, uint32_t *n_held,
                              ing_err *e);

/* For the making and the checking alike. Does this step from `from` read nothing but what can
 * be watched? *dict: a dictionary that it reads, borrowed, or NULL. 1, 0 or -1 = raised. */
int ing_py_step_is_watched(ing_py_kernel *k, PyObject *from, const ing_path_node *node,
                           PyObject **dict);
/* Does it belong to an object whose numbers are read at launch? */
bool ing_py_fetch_at_launch(const ing_py_state *st, const ing_py_checks *c,
                            PyObject *const *held, uint32_t fetch);
bool ing_py_is_number(PyObject *obj);
/* The func of a bound method, which is made anew each time it is asked for; else itself. */
PyObject *ing_py_unbound(const ing_py_state *st, PyObject *obj);
void ing_py_guard_note_function(ing_py_guard *g, PyObject *fn);

/* The m->n attributes `f` of one object, as new references; NULL = absent (member.c). */
ing_status ing_py_members_get(ing_py_members *m, ing_py_fetch *f, PyObject *of,
                              PyObject **out);
/* All guards held for what was read of this object. */
void ing_py_members_held(ing_py_members *m, PyObject *of);

#endif
