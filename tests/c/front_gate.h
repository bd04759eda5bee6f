/* A gate over plain tables, and one compile through it: what the tests of src/front stand on
 * in place of Python. Included by test_front.c. */
#ifndef ING_FRONT_GATE_H
#define ING_FRONT_GATE_H

#include "check.h"
#include "mini_python.h"
#include "front/front.h"
#include "gen/abi.h"
#include "pass/pass.h"

/* ---- the gate ------------------------------------------------------------------------------ */

enum { MAX_THINGS = 400, MAX_PARAMS = 6, MAX_FRAMES = 40 };

typedef struct mock_func {
    const char *name, *text;
    ing_gate_passing passing[MAX_PARAMS];
    ing_dtype dtype[MAX_PARAMS];
    bool has_default[MAX_PARAMS];
    ing_gate_returns returns;
    ing_front_tree *tree;
} mock_func;

typedef struct mock_thing {
    char path[64];
    ing_gate_fact fact;
    mock_func *func;
} mock_thing;

typedef struct mock {
    mock_thing things[MAX_THINGS];
    uint32_t n;
    mock_func *funcs; /* [0] is the kernel */
    uint32_t n_funcs;
    struct {
        mock_func *f;
        ing_gref params[MAX_PARAMS];
    } frames[MAX_FRAMES];
    uint32_t n_frames, n_subs;
    ing_settings settings;
    ing_bytes log, warnings;
} mock;

static const struct {
    const char *path;
    ing_gate_fact fact;
} globals[] = {
    {"qd", {.kind = ING_GATE_MODULE}},
    {"qd.f32", {.kind = ING_GATE_DTYPE, .dtype = ING_F32}},
    {"qd.f64", {.kind = ING_GATE_DTYPE, .dtype = ING_F64}},
    {"qd.i32", {.kind = ING_GATE_DTYPE, .dtype = ING_I32}},
    {"qd.i64", {.kind = ING_GATE_DTYPE, .dtype = ING_I64}},
    {"qd.u8", {.kind = ING_GATE_DTYPE, .dtype = ING_U8}},
    {"N", {.kind = ING_GATE_INT, .i = 4}},
    {"FLAG", {.kind = ING_GATE_BOOL, .i = 1}},
    {"OFF", {.kind = ING_GATE_BOOL}},
    {"NOTHING", {.kind = ING_GATE_NONE}},
    {"LIST", {.kind = ING_GATE_LIST, .len = 3}},
    {"LIST[0]", {.kind = ING_GATE_INT, .i = 10}},
    {"LIST[1]", {.kind = ING_GATE_INT, .i = 20}},
    {"LIST[2]", {.kind = ING_GATE_INT, .i = 30}},
    {"TABLE", {.kind = ING_GATE_DICT, .len = 2}},
    {"TABLE{}[0]", {.kind = ING_GATE_INT, .i = 7}},
    {"TABLE{}[1]", {.kind = ING_GATE_INT, .i = 3}},
    {"TABLE[7]", {.kind = ING_GATE_INT, .i = 70}},
    {"TABLE[3]", {.kind = ING_GATE_INT, .i = 30}},
    {"obj", {.kind = ING_GATE_OBJECT}},
    {"obj.scale", {.kind = ING_GATE_FLOAT, .f = 2.5}},
    {"obj.arr", {.kind = ING_GATE_ARRAY, .dtype = ING_I32, .ndim = 1}},
    {"Mode", {.kind = ING_GATE_CLASS}},
    {"Mode.A", {.kind = ING_GATE_ENUM, .i = 1, .len = ING_ENUM_INT}},
    {"Mode.A.value", {.kind = ING_GATE_INT, .i = 1}},
    {"Mode.B", {.kind = ING_GATE_ENUM, .i = 2, .len = ING_ENUM_INT}},
    {"Mode.B.value", {.kind = ING_GATE_INT, .i = 2}},
};

static ing_gref mock_add(mock *m, const char *path, const ing_gate_fact *f,
                         mock_func *fn) {
    if (m->n + 1 >= MAX_THINGS) abort();
    mock_thing *t = &m->things[++m->n];
    snprintf(t->path, sizeof t->path, "%s", path);
    t->fact = *f;
    t->fact.s = "";
    t->func = fn;
    return m->n;
}

/* Every walk makes a new thing, as the real gate does. */
static ing_gref mock_find(mock *m, const char *path) {
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (strcmp(globals[i].path, path) == 0)
            return mock_add(m, path, &globals[i].fact, NULL);
    for (uint32_t i = 1; i < m->n_funcs; i++)
        if (strcmp(m->funcs[i].name, path) == 0)
            return mock_add(m, path, &(ing_gate_fact){.kind = ING_GATE_FUNC},
                            &m->funcs[i]);
    const char *text = strncmp(path, "qd.", 3) == 0 ? path + 3 : NULL;
    char builtin[80];
    snprintf(builtin, sizeof builtin, "builtins.%s", path);
    ing_intrinsic id = ing_intrinsic_find(text ? text : builtin);
    if (!id) return 0;
    return mock_add(m, path, &(ing_gate_fact){.kind = ING_GATE_INTRINSIC, .id = id},
                    NULL);
}

static ing_status mock_name(void *self, const char *name, ing_gref *out, ing_err *e) {
    (void)e;
    *out = mock_find(self, name);
    return ING_OK;
}

static ing_status mock_attr(void *self, ing_gref of, const char *name, ing_gref *out,
                            ing_err *e) {
    mock *m = self;
    char path[160];
    (void)e;
    snprintf(path, sizeof path, "%s.%s", m->things[of].path, name);
    *out = mock_find(m, path);
    return ING_OK;
}

static ing_status mock_item(void *self, ing_gref of, const ing_gate_key *k,
                            ing_gref *out, ing_err *e) {
    mock *m = self;
    char path[160];
    (void)e;
    snprintf(path, sizeof path, "%s[%d]", m->things[of].path, (int)k->i);
    *out = mock_find(m, path);
    return ING_OK;
}

static ing_status mock_has(void *self, ing_gref of, const char *attr,
                           const ing_gate_key *k, bool *out, ing_err *e) {
    ing_gref found = 0;
    ING_TRY(k ? mock_item(self, of, k, &found, e)
              : mock_attr(self, of, attr, &found, e));
    *out = found != 0;
    return ING_OK;
}

static ing_status mock_derive(void *self, ing_gref of, ing_gate_derived what,
                              ing_gref other, ing_gref *out, ing_err *e) {
    mock *m = self;
    const ing_gate_fact *f = &m->things[of].fact;
    char path[64];
    (void)e;
    bool empty = f->kind >= ING_GATE_TUPLE && f->kind <= ING_GATE_DICT && !f->len;
    ing_gate_fact answer = {.kind = ING_GATE_BOOL};
    if (what == ING_DERIVE_LEN)
        answer = (ing_gate_fact){.kind = ING_GATE_INT, .i = f->len};
    else if (what == ING_DERIVE_ITEMS)
        answer = (ing_gate_fact){.kind = ING_GATE_TUPLE, .len = f->len};
    else if (what == ING_DERIVE_TRUTH)
        answer.i = !empty;
    else
        answer.i = other ? strcmp(m->things[of].path, m->things[other].path) == 0
                         : f->kind == ING_GATE_NONE;
    snprintf(path, sizeof path, "%.50s{%s}", m->things[of].path,
             what == ING_DERIVE_ITEMS ? ""
             : what == ING_DERIVE_LEN ? "len"
                                      : "?");
    *out = mock_add(m, path, &answer, NULL);
    return ING_OK;
}

static ing_status mock_look(void *self, ing_gref of, ing_gate_fact *out, ing_err *e) {
    mock *m = self;
    (void)e;
    *out = m->things[of].fact;
    ing_bytes_printf(&m->log, "look %s\n", m->things[of].path);
    return ING_OK;
}

static ing_status mock_call(void *self, const ing_gate_call *call, ing_gref *out,
                            ing_err *e) {
    (void)self, (void)call, (void)out;
    return ing_fail(e, ING_DECLINED, "Python functions cannot be called in kernels");
}

static ing_status mock_make(void *self, const ing_gate_fact *v, ing_gref *out,
                            ing_err *e) {
    (void)e;
    *out = mock_add(self, "made", v, NULL);
    return ING_OK;
}

static ing_status mock_param(void *self, uint32_t i, ing_gref *out, ing_err *e) {
    mock *m = self;
    (void)e;
    *out = m->frames[m->n_frames - 1].params[i];
    return ING_OK;
}

static ing_status mock_param_info(void *self, uint32_t i, ing_gate_param *out,
                                  ing_err *e) {
    mock *m = self;
    mock_func *f = m->frames[m->n_frames - 1].f;
    (void)e;
    *out = (ing_gate_param){.passing = f->passing[i],
                            .dtype = f->dtype[i],
                            .ndim = -1,
                            .has_default = f->has_default[i]};
    ing_bytes_printf(&m->log, "param %s %u\n", f->name, i);
    return ING_OK;
}

static ing_status mock_default(void *self, uint32_t i, ing_gref *out, ing_err *e) {
    (void)e, (void)i;
    *out =
        mock_add(self, "default", &(ing_gate_fact){.kind = ING_GATE_INT, .i = 7}, NULL);
    return ING_OK;
}

static ing_status mock_returns(void *self, ing_gate_returns *out, ing_err *e) {
    mock *m = self;
    (void)e;
    *out = m->frames[m->n_frames - 1].f->returns;
    return ING_OK;
}

static ing_status mock_def(void *self, ing_gref fn, const ing_front_tree **out,
                           ing_err *e) {
    mock *m = self;
    (void)e;
    *out = m->things[fn].func->tree;
    ing_bytes_printf(&m->log, "source %s\n", m->things[fn].path);
    return ING_OK;
}

static ing_status mock_config(void *self, ing_setting k, int64_t *out, ing_err *e) {
    mock *m = self;
    (void)e;
    *out = m->settings.at[k];
    ing_bytes_printf(&m->log, "config %s\n", ing_setting_name(k));
    return ING_OK;
}

static ing_status mock_enter(void *self, ing_gref fn, const ing_gref *params,
                             uint32_t n, ing_err *e) {
    mock *m = self;
    if (m->n_frames == MAX_FRAMES) return ing_fail(e, ING_SYNTAX, "too many frames");
    m->frames[m->n_frames].f = m->things[fn].func;
    for (uint32_t i = 0; i < n; i++) {
        mock_thing t = m->things[params[i]];
        m->frames[m->n_frames].params[i] =
            params[i] ? mock_add(m, t.path, &t.fact, t.func) : 0;
    }
    m->n_frames++;
    ing_bytes_printf(&m->log, "enter %s\n", m->things[fn].path);
    return ING_OK;
}

static ing_status mock_leave(void *self, uint32_t *subtrace, ing_err *e) {
    mock *m = self;
    (void)e;
    m->n_frames--;
    *subtrace = m->n_subs++;
    ing_bytes_printf(&m->log, "leave %u\n", *subtrace);
    return ING_OK;
}

static ing_status mock_splice(void *self, uint32_t subtrace, ing_gref fn,
                              const ing_gref *params, uint32_t n, ing_err *e) {
    mock *m = self;
    (void)fn, (void)params, (void)n, (void)e;
    ing_bytes_printf(&m->log, "splice %u\n", subtrace);
    return ING_OK;
}

static ing_status mock_memo_key(void *self, ing_gref of, ing_hash128 *out, ing_err *e) {
    mock *m = self;
    (void)e;
    *out = ing_hash(m->things[of].path, strlen(m->things[of].path));
    return ING_OK;
}

static void mock_describe(void *self, ing_gref of, char *buf, size_t size) {
    mock *m = self;
    snprintf(buf, size, "%s", m->things[of].path);
}

static ing_status mock_warn(void *self, const char *category, const char *text,
                            const ing_front_tree *tree, uint32_t node, ing_err *e) {
    mock *m = self;
    (void)e;
    ing_bytes_printf(&m->warnings, "%s: %u: %s\n", category,
                     tree->first_line + tree->nodes.at[node].line, text);
    return ING_OK;
}

static const ing_gate_ops mock_ops = {
    .name = mock_name,
    .attr = mock_attr,
    .item = mock_item,
    .has = mock_has,
    .derive = mock_derive,
    .look = mock_look,
    .call = mock_call,
    .make = mock_make,
    .param = mock_param,
    .param_info = mock_param_info,
    .param_default = mock_default,
    .returns = mock_returns,
    .def = mock_def,
    .config = mock_config,
    .enter = mock_enter,
    .leave = mock_leave,
    .splice = mock_splice,
    .memo_key = mock_memo_key,
    .describe = mock_describe,
    .warn = mock_warn,
};

/* ---- one compile ------------------------------------------------------------------------------ */

/* Kernels have up to four parameters: out (f64, 1 axis), iout (i32, 1 axis), grid (f32, 2
 * axes) and n (i32), by name. */
typedef struct job {
    mock m;
    ing_gate gate;
    ing_front_result r;
    ing_err e;
    ing_status s;
} job;

static void job_param(mock *m, mock_func *k, uint32_t i, const char *name) {
    ing_gate_fact f = {.kind = ING_GATE_ARRAY, .ndim = 1};
    k->passing[i] = ING_PASS_ARRAY;
    if (strcmp(name, "out") == 0)
        f.dtype = ING_F64;
    else if (strcmp(name, "iout") == 0)
        f.dtype = ING_I32;
    else if (strcmp(name, "grid") == 0) {
        f.dtype = ING_F32;
        f.ndim = 2;
        f.layout[1] = 1;
    } else {
        k->passing[i] = ING_PASS_VALUE;
        k->dtype[i] = strcmp(name, "x") == 0 ? ING_F32 : ING_I32;
    }
    m->frames[0].params[i] = mock_add(m, name, &f, NULL);
}

static void job_run(job *j, mock_func *funcs, uint32_t n) {
    mock *m = &j->m;
    memset(j, 0, sizeof *j);
    ing_settings_init(&m->settings);
    ing_bytes_init(&m->log);
    ing_bytes_init(&m->warnings);
    ing_err_init(&j->e);
    ing_front_result_init(&j->r);
    m->funcs = funcs;
    m->n_funcs = n;
    for (uint32_t i = 0; i < n; i++)
        funcs[i].tree = mini_read(funcs[i].text, i ? "funcs.py" : "test.py");
    m->frames[0].f = &funcs[0];
    m->n_frames = 1;
    const ing_front_tree *t = funcs[0].tree;
    ing_node args = t->slots.at[t->nodes.at[t->root].slots + 1];
    uint32_t list = t->slots.at[t->nodes.at[args].slots + 1];
    for (uint32_t i = 0; list && i < t->slots.at[list]; i++) {
        ing_node a = t->slots.at[list + 1 + i];
        job_param(m, &funcs[0], i,
                  ing_atoms_text(&t->atoms, t->slots.at[t->nodes.at[a].slots] - 1));
    }
}

static void job_lower(job *j) {
    j->gate = (ing_gate){.ops = &mock_ops, .self = &j->m};
    j->s = ing_front_lower(j->m.funcs[0].tree, &j->gate, &j->r, &j->e);
    if (j->s == ING_OK) {
        ing_err e;
        ing_err_init(&e);
        if (ing_ir_verify(j->r.mod, &e) != ING_OK) {
            ing_bytes b;
            ing_bytes_init(&b);
            ing_ir_print(j->r.mod, 0, &b);
            fprintf(stderr, "%s\n%s\nfor\n%s\n", e.text, (char *)b.at,
                    j->m.funcs[0].text);
            ing_bytes_fini(&b);
            CHECK(!"the IR is right");
        }
        ing_err_fini(&e);
    }
}

static void job_fini(job *j) {
    for (uint32_t i = 0; i < j->m.n_funcs; i++) ing_front_tree_free(j->m.funcs[i].tree);
    ing_bytes_fini(&j->m.log);
    ing_bytes_fini(&j->m.warnings);
    ing_front_result_fini(&j->r);
    ing_err_fini(&j->e);
}

#endif
