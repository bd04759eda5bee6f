/* The front end without Python: texts read by mini_python.h, a gate over a table, results
 * compared as IR text, as what the interpreter computes, as the questions that were
 * asked, or as the message a user would read. */
#include "front_gate.h"

/* ---- what kernels compute ----------------------------------------------------------------------- */

typedef struct memory {
    double out[8];
    int32_t iout[8];
    float grid[2][3];
    int32_t obj[8];
    uint64_t rets[4];
    int32_t n;
    float x;
} memory;

static void bind_words(const job *j, memory *mem, uint64_t *words) {
    for (uint32_t k = 0; k < j->r.args.len; k++) {
        const char *name = j->m.things[j->r.args.at[k].ref].path;
        uint64_t *w = &words[j->r.mod->args.at[k].word];
        if (strcmp(name, "out") == 0)
            w[0] = (uint64_t)(uintptr_t)mem->out, w[1] = 8;
        else if (strcmp(name, "iout") == 0)
            w[0] = (uint64_t)(uintptr_t)mem->iout, w[1] = 8;
        else if (strcmp(name, "obj.arr") == 0)
            w[0] = (uint64_t)(uintptr_t)mem->obj, w[1] = 8;
        else if (strcmp(name, "grid") == 0)
            w[0] = (uint64_t)(uintptr_t)mem->grid, w[1] = 2, w[2] = 3;
        else if (strcmp(name, "x") == 0)
            memcpy(w, &mem->x, sizeof mem->x);
        else
            w[0] = (uint64_t)(int64_t)mem->n;
    }
}

static int64_t bound_of(const ing_ir_bound *b, const ing_ctx *ctx) {
    int64_t v = b->value;
    if (b->at == ING_IR_BOUND_BUFFER) memcpy(&v, ctx->buffer + b->offset, sizeof v);
    if (b->at == ING_IR_BOUND_WORD) v = (int64_t)ctx->args[b->offset];
    return v;
}

static int32_t no_poll(ing_ctx *c) {
    c->fuel = ING_ABI_FUEL;
    return 0;
}

static int32_t execute(job *j, memory *mem, ing_error_slot *error) {
    uint64_t words[32] = {0};
    ing_pass_options o = {0};
    if (ing_pass_run(j->r.mod, &o, &j->e) != ING_OK) {
        fprintf(stderr, "%s\n", j->e.text ? j->e.text : "?");
        CHECK(!"passes");
        return -1;
    }
    bind_words(j, mem, words);
    uint8_t *buffer = calloc(1, j->r.mod->buffer_bytes + 64);
    ing_ctx ctx = {.args = words, .buffer = buffer, .rets = mem->rets, .error = error};
    ctx.poll = no_poll;
    ctx.fuel = ING_ABI_FUEL;
    int32_t code = 0;
    for (uint32_t k = 0; k < j->r.mod->tasks.len && !code; k++) {
        const ing_ir_task *t = &j->r.mod->tasks.at[k];
        bool range = t->kind == ING_IR_TASK_RANGE;
        int64_t from = range ? bound_of(&t->begin, &ctx) : 0;
        int64_t to = range ? bound_of(&t->end, &ctx) : 1;
        uint64_t partials[ING_IR_MAX_PARTIALS]; /* loops here have one chunk */
        ctx.partials = partials;
        code = ing_ir_interp(j->r.mod, k, &ctx, from, to, 0);
        if (!code && t->partials && from < to)
            code = ing_ir_interp(j->r.mod, k, &ctx, 0, 1, -1);
    }
    free(buffer);
    return code;
}

typedef struct want { /* text, and what it leaves in out and iout */
    const char *text;
    double out[4];
    int32_t iout[4];
} want;

static mock_func funcs_for_runs[] = {
    {0},
    {.name = "twice", .text = "def twice(v):\n    return v * 2\n"},
    {.name = "pair", .text = "def pair(v):\n    return v, v + 0.5\n"},
    {.name = "bump",
     .text = "def bump(v):\n    v += 2\n    return v\n",
     .passing = {ING_PASS_TEMPLATE}},
    {.name = "bump_copy", .text = "def bump_copy(v):\n    v += 2\n    return v\n"},
    {.name = "as_int",
     .text = "def as_int(v):\n    return v\n",
     .passing = {ING_PASS_VALUE},
     .dtype = {ING_I32}},
    {.name = "sign",
     .text = "def sign(v):\n    if v < 0:\n        return -1\n    elif v > 0:\n"
             "        return 1\n    return 0\n"},
    {.name = "three", .text = "def three():\n    return 3\n"},
    {.name = "put", .text = "def put(a, i, v):\n    a[i] = v\n"},
    {.name = "more",
     .text = "def more(v, w=7):\n    return v + w\n",
     .has_default = {false, true}},
    {.name = "count",
     .text = "def count(n):\n    s = 0\n    for i in range(n):\n"
             "        if i == 3:\n            continue\n        s += i\n"
             "    while True:\n        if s > 100:\n            return s\n"
             "        s += 50\n"},
    {.name = "times",
     .text = "def times(k, v):\n    r = 0\n    for i in qd.static(range(k)):\n        "
             "r += v\n"
             "    return r\n",
     .passing = {ING_PASS_TEMPLATE}},
    {.name = "total", .text = "def total(t):\n    return t[0] + t[1] * 10\n"},
    {.name = "scaled", .text = "def scaled(o, v):\n    return o.scale * v\n"},
};

static const want runs[] = {
    {"def k(out):\n    out[0] = 1\n    out[1] = 7 // 2 + 0.5\n", {1, 3.5}, {0}},
    {"def k(out):\n    for i in range(4):\n        out[i] = i * i\n",
     {0, 1, 4, 9},
     {0}},
    {"def k(iout, n):\n    for i in range(1, n):\n        iout[i] = n - i\n",
     {0},
     {0, 4, 3, 2}},
    {"def k(out):\n    x = 1\n    x = 2.5\n    out[0] = x\n    y = 1.5\n    y = 2\n"
     "    out[1] = y\n",
     {2, 2},
     {0}},
    {"def k(out):\n    x = 1\n    x += 2.5\n    out[0] = x\n    out[1] += 3\n    "
     "out[1] *= 2\n",
     {3, 6},
     {0}},
    {"def k(out):\n    a, b = 1, 2\n    a, b = b, a\n    out[0] = a\n    out[1] = b\n",
     {2, 1},
     {0}},
    {"def k(out):\n    a = b = 3\n    a += 1\n    out[0] = a\n    out[1] = b\n",
     {4, 3},
     {0}},
    {"def k(iout, n):\n    iout[0] = -7 // 2 + 0 * n\n    m = n - 12\n    iout[1] = m "
     "// 2\n"
     "    iout[2] = m % 3\n    iout[3] = m >> 1\n",
     {0},
     {-4, -4, 2, -4}},
    {"def k(out, n):\n    out[0] = n / 2\n    out[1] = n ** 2\n    out[2] = 2.0 ** n\n",
     {2.5, 25, 32},
     {0}},
    {"def k(iout, n):\n    iout[0] = n > 3 and n < 9\n    iout[1] = n > 9 or n == 5\n"
     "    iout[2] = not n\n    iout[3] = 1 < n < 5\n",
     {0},
     {1, 1, 0, 0}},
    {"def k(iout, n):\n    iout[0] = 3 if n > 4 else 8\n    iout[1] = iout[0] + 1 if n "
     "> 9 else "
     "n * 2\n",
     {0},
     {3, 10}},
    {"def k(iout, n):\n    if n > 9:\n        iout[0] = 1\n    elif n > 4:\n        "
     "iout[0] = 2\n"
     "    else:\n        iout[0] = 3\n",
     {0},
     {2}},
    {"def k(iout):\n    i = 0\n    while i < 10:\n        i += 1\n        if i == 3:\n"
     "            continue\n        if i == 6:\n            break\n        iout[0] += "
     "i\n",
     {0},
     {12}},
    {"def k(iout):\n    for i in range(3):\n        for j in range(i, 5):\n            "
     "if j == 3:\n"
     "                break\n            iout[i] += 1\n",
     {0},
     {3, 2, 1}},
    {"def k(iout):\n    s = 0\n    for i in range(5):\n        s += i\n    iout[0] = "
     "s\n",
     {0},
     {10}},
    {"def k(iout):\n    for i in qd.static(range(3)):\n        if qd.static(i == 1):\n"
     "            continue\n        iout[i] = i + 5\n",
     {0},
     {5, 0, 7}},
    {"def k(iout):\n    for i, v in qd.static(enumerate(LIST)):\n        iout[i] = v\n",
     {0},
     {10, 20, 30}},
    {"def k(iout):\n    for a, b in qd.static(zip((1, 2), LIST)):\n        iout[a] = "
     "b\n",
     {0},
     {0, 10, 20}},
    {"def k(iout):\n    for i, j in qd.ndrange(2, (1, 3)):\n        iout[i * 2 + j - "
     "1] = i * 10 + "
     "j\n",
     {0},
     {1, 2, 11, 12}},
    {"def k(iout):\n    for I in qd.grouped(qd.ndrange(2, 2, axes=(1, 0))):\n"
     "        iout[I[0] * 2 + I[1]] = I[0] - I[1]\n",
     {0},
     {0, -1, 1, 0}},
    {"def k(out, grid):\n    for i, j in grid:\n        grid[i, j] = i * 10 + j\n"
     "    out[0] = grid[1, 2]\n    out[1] = grid.shape[1]\n    a, b = grid.shape\n"
     "    out[2] = a * b\n",
     {12, 3, 6},
     {0}},
    {"def k(iout):\n    qd.loop_config(serialize=True)\n    for i in range(9):\n"
     "        if i == 2:\n            break\n        iout[i] = 1\n",
     {0},
     {1, 1, 0}},
    {"def k(out):\n    out[0] = twice(3)\n    out[1] = twice(1.25)\n    out[2] = "
     "twice(twice(2))\n",
     {6, 2.5, 8},
     {0}},
    {"def k(out):\n    a, b = pair(2)\n    out[0] = a\n    out[1] = b\n",
     {2, 2.5},
     {0}},
    {"def k(iout):\n    y = 1\n    iout[0] = bump(y)\n    iout[1] = y\n    "
     "bump(iout[2])\n",
     {0},
     {3, 3, 2}},
    {"def k(iout):\n    y = 1\n    iout[0] = bump_copy(y)\n    iout[1] = y\n",
     {0},
     {3, 1}},
    {"def k(out):\n    out[0] = as_int(2.75)\n", {2}, {0}},
    {"def k(iout):\n    for i in range(3):\n        iout[i] = sign(i - 1)\n",
     {0},
     {-1, 0, 1}},
    {"def k(iout):\n    for i in range(3):\n        put(iout, i, 2 * i)\n",
     {0},
     {0, 2, 4}},
    {"def k(iout):\n    iout[0] = more(1)\n    iout[1] = more(w=1, v=2)\n    iout[2] = "
     "more(*(3, 4))\n",
     {0},
     {8, 3, 7}},
    {"def k(iout):\n    iout[0] = count(6)\n", {0}, {112}},
    {"def k(iout):\n    iout[0] = times(3, 5)\n    iout[1] = times(N, 2)\n",
     {0},
     {15, 8}},
    {"def k(iout, n):\n    iout[0] = total((n, 4))\n", {0}, {45}},
    {"def k(out):\n    out[0] = scaled(obj, 2)\n    out[1] = obj.scale + N\n",
     {5, 6.5},
     {0}},
    {"def k(iout):\n    t = (1, 2.5, 3)\n    iout[0] = t[0] + t[2]\n    iout[1] = "
     "len(t)\n"
     "    iout[2] = int(qd.static(2 in (1, 2)))\n    iout[3] = int(qd.static(NOTHING "
     "is "
     "None))\n",
     {0},
     {4, 3, 1, 1}},
    {"def k(iout):\n    s = 0\n    for key in qd.static(TABLE):\n        s = s * 100 + "
     "key\n"
     "    for v in qd.static(TABLE.values()):\n        s += v\n    iout[0] = s\n"
     "    iout[1] = TABLE.get(3, 5) + TABLE.get(4, 5)\n"
     "    iout[2] = LIST.index(20) + (1, 1, 2).count(1)\n",
     {0},
     {803, 35, 3}},
    {"def k(iout):\n    s = 0\n    for i in qd.static(range(three())):\n        s += "
     "i\n"
     "    iout[0] = s\n    iout[1] = isinstance(3, int) + isinstance((1, 2), int)\n",
     {0},
     {3, 1}},
    {"def k(iout, n):\n    iout[0] = min(n, 3, 9)\n    iout[1] = max(2, 7)\n    "
     "iout[2] = abs(-n)\n"
     "    iout[3] = qd.select(n > 1, 4, 6)\n",
     {0},
     {3, 7, 5, 4}},
    {"def k(out, n):\n    out[0] = qd.sqrt(n - 1)\n    out[1] = qd.floor(-1.5)\n"
     "    out[2] = int(2.75) + float(n)\n    out[3] = qd.cast(300 + n, qd.u8)\n",
     {2, -2, 7, 49},
     {0}},
    {"def k(iout):\n    old = qd.atomic_max(iout[0], 5)\n    iout[1] = "
     "qd.atomic_add(iout[0], 2)\n"
     "    iout[2] = old\n",
     {0},
     {7, 5, 0}},
    {"def k(iout):\n    m = qd.static(Mode.B)\n    if qd.static(m == Mode.B):\n        "
     "iout[0] = 1\n"
     "    iout[1] = Mode.A + 4\n",
     {0},
     {1, 5}},
    {"def k(iout):\n    if FLAG:\n        iout[0] = 1\n    else:\n        iout[0] = "
     "undefined\n",
     {0},
     {1}},
    {"def k(iout):\n    v: qd.i64 = 3000000000\n    iout[0] = v // 1000000\n",
     {0},
     {3000}},
    {"def k(iout, n):\n    iout[n - 4] = n & 4 | 1 ^ 3\n    iout[0] = ~n\n",
     {0},
     {-6, 6}},
};

static void test_runs(void) {
    enum { N_FUNCS = sizeof funcs_for_runs / sizeof *funcs_for_runs };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        mock_func funcs[N_FUNCS];
        memcpy(funcs, funcs_for_runs, sizeof funcs);
        funcs[0] = (mock_func){.name = "k", .text = runs[i].text};
        job *j = malloc(sizeof *j);
        job_run(j, funcs, N_FUNCS);
        job_lower(j);
        if (j->s != ING_OK) {
            fprintf(stderr, "%s\n%s\n", runs[i].text, j->e.text ? j->e.text : "?");
            CHECK(!"lowers");
        } else {
            memory mem = {.n = 5, .x = 1.5f};
            ing_error_slot error = {0};
            CHECK(execute(j, &mem, &error) == 0);
            bool same = memcmp(mem.out, runs[i].out, sizeof runs[i].out) == 0 &&
                        memcmp(mem.iout, runs[i].iout, sizeof runs[i].iout) == 0;
            if (!same)
                fprintf(stderr, "%sout %g %g %g %g iout %d %d %d %d\n", runs[i].text,
                        mem.out[0], mem.out[1], mem.out[2], mem.out[3], mem.iout[0],
                        mem.iout[1], mem.iout[2], mem.iout[3]);
            CHECK(same);
        }
        job_fini(j);
        free(j);
    }
}

/* ---- messages -------------------------------------------------------------------------------------- */

static const struct {
    const char *text; /* of the kernel */
    ing_status status;
    const char *message;
} mistakes[] = {
    {"def k(out):\n    out[0] = missing + 1\n", ING_NAME,
     "test.py:2:14: Name \"missing\" is not defined\n    out[0] = missing + 1\n"
     "             ^~~~~~~\nhelp: assign it here or in the module, or make it a "
     "parameter"},
    {"def k(out):\n    counter = 1\n    out[0] = countr\n", ING_NAME,
     "test.py:3:14: Name \"countr\" is not defined\n    out[0] = countr\n"
     "             ^~~~~~\nhelp: did you mean 'counter'?"},
    {"def k(out):\n    if out[0] > 0:\n        y = 1\n    out[0] = y\n", ING_NAME,
     "test.py:4:14: Name \"y\" is not defined\n    out[0] = y\n             ^\n"
     "help: assign it before this line; a name that is first assigned inside an `if` "
     "or a loop "
     "exists only in there"},
    {"def k(out):\n    for i in range(3):\n        if i == 1:\n            break\n",
     ING_SYNTAX,
     "test.py:4:13: Cannot break in the outermost loop\n            break\n            "
     "^~~~~\n"
     "help: its iterations run in parallel; put qd.loop_config(serialize=True) before "
     "the loop, or "
     "use `continue` or a `while`"},
    {"def k(n):\n    n = 3\n", ING_SYNTAX,
     "test.py:2:5: Kernel argument \"n\" is immutable in the kernel. If you want to "
     "change its "
     "value, please create a new variable.\n    n = 3\n    ^\n"
     "help: copy it into a new variable first"},
    {"def k(out):\n    out[0.5] = 1\n", ING_TYPE,
     "test.py:2:9: indices must be integers, however 'f32' is provided as index 0\n"
     "    out[0.5] = 1\n        ^~~\nhelp: convert it: int(x), or use // for the "
     "division"},
    {"def k(out):\n    out[0, 1] = 1\n", ING_INDEX,
     "test.py:2:5: Array with dim 1 accessed with indices of dim 2\n    out[0, 1] = 1\n"
     "    ^~~~~~~~~\nhelp: give one index per axis"},
    {"def k(out, x):\n    if x:\n        out[0] = 1\n", ING_TYPE,
     "test.py:2:8: `if` conditions must be an integer; found f32. Consider using `if x "
     "!= 0` "
     "instead of `if x` for float values.\n    if x:\n       ^\nhelp: compare it: `x "
     "!= 0`"},
    {"def k(out, x):\n    out[0] = x << 1\n", ING_TYPE,
     "test.py:2:14: unsupported operand type(s) for '<<': 'f32' and 'i32'\n"
     "    out[0] = x << 1\n             ^~~~~~\nhelp: cast the float: qd.cast(x, "
     "qd.i32)"},
    {"def k(n):\n    y = qd.static(n)\n", ING_COMPILE,
     "test.py:2:19: the arguments of qd.static must be compile-time constants; this is "
     "a run-time i32\n"
     "    y = qd.static(n)\n                  ^\nhelp: it must not depend on run-time "
     "values: make "
     "the parameter qd.template(), or leave out qd.static"},
    {"def k(out):\n    y = 3000000000\n", ING_TYPE,
     "test.py:2:9: Integer literal 3000000000 exceeded the range of default_ip: i32\n"
     "    y = 3000000000\n        ^~~~~~~~~~\nhelp: write qd.i64(...) or qd.u64(...) "
     "around it, or "
     "set default_ip in qd.init()"},
    {"def k(out):\n    raise 1\n", ING_SYNTAX,
     "test.py:2:5: `raise` is not supported in kernels (Unsupported node \"Raise\")\n  "
     "  raise 1\n"
     "    ^~~~~~~\nhelp: use assert with qd.init(debug=True), or store an error code "
     "in an array"},
    {"def k(out):\n    f = lambda: 3\n", ING_SYNTAX,
     "test.py:2:9: `lambda` is not supported in kernels (Unsupported node \"Lambda\")\n"
     "    f = lambda: 3\n        ^~~~~~~~~\nhelp: define a @qd.func"},
    {"def k(out):\n    print(\"%d\" % out[0])\n", ING_TYPE,
     "test.py:2:11: '%' cannot format values of the run time\n    print(\"%d\" % "
     "out[0])\n          ^~~~~~~~~~~~~\nhelp: write an f-string: f\"x is {x}\""},
    {"def k(out):\n    print(out)\n", ING_TYPE,
     "test.py:2:11: an array cannot be printed\n    print(out)\n          "
     "^~~\nhelp: print its elements, one by one"},
    {"def k(out):\n    print(out[0], file=3)\n", ING_SYNTAX,
     "test.py:2:24: print has no parameter 'file' in kernels\n    print(out[0], "
     "file=3)\n                       ^\nhelp: output goes to sys.stdout; redirect "
     "that "
     "around the kernel call"},
    {"def k(out):\n    for v in LIST:\n        out[0] = v\n", ING_SYNTAX,
     "test.py:2:14: a loop cannot run over a list from outside of the kernel\n    for "
     "v in LIST:\n         "
     "    ^~~~\n"
     "help: wrap it in qd.static(...) to unroll the loop"},
    {"def k(out):\n    out[0] = wrong(1)\n", ING_TYPE,
     "funcs.py:2:12: unsupported operand type(s) for '+': 'i32' and 'None'\n    return "
     "v + None\n"
     "           ^~~~~~~~\nhelp: give it a number; qd.static(x is None) asks before\n"
     "in the call of wrong at test.py:2:14"},
    {"def k(out):\n    out[0] = again(1)\n", ING_COMPILE,
     "funcs.py:2:12: again calls itself; recursion is not supported\n    return "
     "again(v)\n"
     "           ^~~~~~~~\nhelp: write it as a loop\nin the call of again at "
     "test.py:2:14"},
    {"def k(out):\n    out[0] = wrong()\n", ING_CALL,
     "test.py:2:14: Missing argument 'v' of wrong\n    out[0] = wrong()\n"
     "             ^~~~~~~\nhelp: it takes (v)"},
    {"def k(out):\n    return 1\n", ING_SYNTAX,
     "test.py:2:5: A kernel with a return value must be annotated with a return type, "
     "e.g. def "
     "func() -> qd.f32\n    return 1\n    ^~~~~~~~\nhelp: annotate it, e.g. def k() -> "
     "qd.f32"},
    {"def k(out):\n    if out[0] > 0:\n        return\n", ING_SYNTAX,
     "test.py:3:9: Return inside non-static if/for is not supported in kernels\n       "
     " return\n"
     "        ^~~~~~\nhelp: set a variable in the branch or loop and return it at the "
     "end"},
    {"def k(out):\n    y = 1 // 0\n", ING_VALUE,
     "test.py:2:9: division by zero in a compile-time expression\n    y = 1 // 0\n"
     "        ^~~~~~\nhelp: check the divisor with qd.static first"},
    {"def k(out):\n    out.shape = 3\n", ING_SYNTAX,
     "test.py:2:5: attributes cannot be assigned in kernels\n    out.shape = 3\n    "
     "^~~~~~~~~\n"
     "help: keep run-time state in arrays; set Python attributes outside of kernels"},
};

static void test_messages(void) {
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        mock_func funcs[] = {
            {.name = "k", .text = mistakes[i].text},
            {.name = "wrong", .text = "def wrong(v):\n    return v + None\n"},
            {.name = "again", .text = "def again(v):\n    return again(v)\n"},
        };
        job *j = malloc(sizeof *j);
        job_run(j, funcs, 3);
        job_lower(j);
        CHECK(j->s == mistakes[i].status);
        CHECK_STR(j->e.text ? j->e.text : "", mistakes[i].message);
        CHECK(j->e.line > 0 && j->e.col > 0);
        job_fini(j);
        free(j);
    }
}

/* ---- what is asked ------------------------------------------------------------------------------------ */

static void check_log(const char *text, const char *log, const char *ir) {
    mock_func funcs[] = {
        {.name = "k", .text = text},
        {.name = "twice", .text = "def twice(v):\n    return v * N\n"},
    };
    job *j = malloc(sizeof *j);
    job_run(j, funcs, 2);
    job_lower(j);
    CHECK(j->s == ING_OK);
    if (j->e.text) fprintf(stderr, "%s\n", j->e.text);
    if (log) CHECK_STR(j->m.log.at ? (char *)j->m.log.at : "", log);
    if (ir && j->s == ING_OK) {
        ing_bytes b;
        ing_bytes_init(&b);
        ing_ir_print(j->r.mod, 0, &b);
        CHECK_STR((char *)b.at, ir);
        ing_bytes_fini(&b);
    }
    job_fini(j);
    free(j);
}

static void test_questions(void) {
    /* Nothing is asked about parameters and names that are not read (L1). */
    check_log("def k(out, iout, n):\n    pass\n", "", NULL);
    check_log("def k(out, iout):\n    if qd.static(OFF):\n        iout[0] = N\n    "
              "out[0] = 1.5\n",
              "look qd.static\nlook OFF\nparam k 0\nlook out\nconfig debug\n"
              "config check_out_of_bound\n",
              NULL);
    /* The second use of a func with the same signature only splices (R7). */
    check_log(
        "def k(out):\n    a = twice(1)\n    b = twice(2)\n    c = twice(2.5)\n",
        "look twice\nsource twice\nenter twice\nparam twice 0\nleave 0\nconfig "
        "default_ip\n"
        "enter twice\nparam twice 0\nlook N\nconfig default_ip\nconfig debug\nleave "
        "1\nsplice 1\n"
        "look twice\nsource twice\nsplice 1\n"
        "look twice\nsource twice\nconfig default_fp\nenter twice\nparam twice 0\nlook "
        "N\n"
        "config default_ip\nleave 2\nsplice 2\n",
        NULL);
}

/* ---- digests and limits --------------------------------------------------------------------------------- */

static ing_hash128 digest_of(const char *text) {
    ing_front_tree *t = mini_read(text, "x.py");
    ing_hash128 h = t->digest;
    ing_front_tree_free(t);
    return h;
}

static void test_digest(void) {
    ing_hash128 a = digest_of("def k(out):\n    out[0] = 1\n");
    CHECK(ing_hash_eq(a, digest_of("def k(out):\n        out[0]  =  1\n")));
    CHECK(!ing_hash_eq(a, digest_of("def k(out):\n    out[0] = 2\n")));
    CHECK(!ing_hash_eq(a, digest_of("def k(out):\n    out[0] = 1.0\n")));
    CHECK(!ing_hash_eq(a, digest_of("def k(oux):\n    oux[0] = 1\n")));
    CHECK(!ing_hash_eq(a, digest_of("def k(out):\n    out[0] += 1\n")));
    CHECK(!ing_hash_eq(a, digest_of("def k(out):\n    out[0] = 1\n    pass\n")));
    CHECK(!ing_hash_eq(digest_of("def k():\n    x: qd.i32 = 1.5\n"),
                       digest_of("def k():\n    x: qd.f32 = 1.5\n")));
}

/* Nested unary operators, more than the front end goes down. */
static void test_depth(void) {
    char *text = malloc(8000);
    strcpy(text, "def k(out):\n    out[0] = ");
    for (int i = 0; i < 3000; i++) strcat(text, "-");
    strcat(text, "1\n");
    mock_func funcs[] = {{.name = "k", .text = text}};
    job *j = malloc(sizeof *j);
    job_run(j, funcs, 1);
    job_lower(j);
    CHECK(j->s == ING_SYNTAX);
    CHECK(j->e.text && strstr(j->e.text, "code nested more than ") &&
          strstr(j->e.text, " deep, from k down to k"));
    job_fini(j);
    free(j);
    free(text);
}

/* The text that reads the same is lowered to the same IR (R6). */
static void test_twice(void) {
    const char *text = "def k(out, grid, n):\n    for i, j in grid:\n"
                       "        grid[i, j] = n * 2.5 if i > j else twice(i)\n";
    ing_bytes b[2];
    for (int k = 0; k < 2; k++) {
        mock_func funcs[] = {
            {.name = "k", .text = text},
            {.name = "twice", .text = "def twice(v):\n    return v * N\n"}};
        job *j = malloc(sizeof *j);
        job_run(j, funcs, 2);
        job_lower(j);
        ing_bytes_init(&b[k]);
        CHECK(j->s == ING_OK);
        if (j->s == ING_OK)
            ing_ir_print(j->r.mod, ING_IR_PRINT_LOCS | ING_IR_PRINT_NAMES, &b[k]);
        CHECK(j->r.args.len == 2); /* out is never read */
        job_fini(j);
        free(j);
    }
    CHECK(b[0].at && b[1].at && strcmp((char *)b[0].at, (char *)b[1].at) == 0);
    ing_bytes_fini(&b[0]);
    ing_bytes_fini(&b[1]);
}

/* Debug mode: bounds and asserts stop the task. */
static void test_debug(void) {
    static const struct {
        const char *text;
        int32_t code;
    } cases[] = {
        {"def k(iout, n):\n    iout[n + 2] = 1\n", 0},
        {"def k(iout, n):\n    iout[n + 3] = 1\n", ING_ABI_BOUNDS},
        {"def k(iout, n):\n    iout[n - 6] = 1\n", ING_ABI_BOUNDS},
        {"def k(iout, n):\n    assert n == 5\n    assert n == 6\n", ING_ABI_ASSERT},
        {"def k(iout, n):\n    assert n == 6, \"no six\"\n", ING_ABI_USER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mock_func funcs[] = {{.name = "k", .text = cases[i].text}};
        job *j = malloc(sizeof *j);
        job_run(j, funcs, 1);
        j->m.settings.at[ING_SET_debug] = 1;
        job_lower(j);
        memory mem = {.n = 5};
        ing_error_slot error = {0};
        CHECK(j->s == ING_OK);
        int32_t code = execute(j, &mem, &error);
        CHECK((code != 0) == (cases[i].code != 0));
        CHECK(error.code == cases[i].code);
        if (cases[i].code == ING_ABI_USER) CHECK_STR(j->r.messages.at[0], "no six");
        job_fini(j);
        free(j);
    }
}

static void test_returns(void) {
    mock_func funcs[] = {
        {.name = "k",
         .text = "def k(n):\n    return n + 1, n * 0.5\n",
         .returns = {.given = true, .n = 2, .dtypes = {ING_I32, ING_F64}}}};
    job *j = malloc(sizeof *j);
    job_run(j, funcs, 1);
    job_lower(j);
    memory mem = {.n = 5};
    ing_error_slot error = {0};
    CHECK(j->s == ING_OK && j->r.returns_tuple);
    CHECK(execute(j, &mem, &error) == 0);
    int32_t first;
    double second;
    memcpy(&first, &mem.rets[0], sizeof first);
    memcpy(&second, &mem.rets[1], sizeof second);
    CHECK(first == 6);
    CHECK(second == 2.5);
    job_fini(j);
    free(j);
}

static uint32_t count_loops(const job *j, uint16_t flag) {
    const ing_ir_func *f = j->r.mod->funcs.at[0];
    uint32_t n = 0;
    for (uint32_t i = 1; i < f->insts.len; i++)
        n += f->insts.at[i].op == ING_OP_LOOP && f->insts.at[i].flags & flag;
    return n;
}

/* Funcs with loops in the outermost block of the kernel: their loops are parallel. */
static void test_opened(void) {
    static const char fill[] = "def fill(a, v):\n    for i in range(4):\n"
                               "        a[i] += v\n    return v\n";
    static const char both[] = "def both(a):\n    return fill(a, 1) + fill(a, 2)\n";
    static const char early[] = "def early(a, v):\n    if v > 5:\n        return 1\n"
                                "    for i in range(4):\n        a[i] += v\n"
                                "    return 2\n";
    static const struct {
        const char *text;
        uint32_t loops, funcs, trees;
        int32_t want;
    } cases[] = {
        {"def k(iout):\n    both(iout)\n    fill(iout, 4)\n", 3, 1, 5, 7},
        {"def k(iout):\n    for i in range(2):\n        fill(iout, 1)\n", 1, 2, 2, 2},
        {"def k(iout, n):\n    if n > 2:\n        both(iout)\n", 0, 3, 3, 3},
        {"def k(iout, n):\n    for _ in qd.static(range(2)):\n        fill(iout, n)\n",
         2, 1, 3, 6},
        {"def k(iout, n):\n    early(iout, n)\n", 0, 2, 2, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mock_func funcs[] = {{.name = "k", .text = cases[i].text},
                             {.name = "fill", .text = fill},
                             {.name = "both", .text = both},
                             {.name = "early", .text = early}};
        job *j = malloc(sizeof *j);
        job_run(j, funcs, 4);
        job_lower(j);
        CHECK(j->s == ING_OK);
        CHECK(count_loops(j, ING_IR_PARALLEL) == cases[i].loops);
        CHECK(j->r.mod->funcs.len == cases[i].funcs);
        CHECK(j->r.trees.len == cases[i].trees);
        memory *mem = calloc(1, sizeof *mem);
        ing_error_slot error = {0};
        mem->n = 3;
        CHECK(execute(j, mem, &error) == 0);
        CHECK(mem->iout[3] == cases[i].want);
        free(mem);
        job_fini(j);
        free(j);
    }
}

/* Where code of an opened func came from: the first one opened is the last tree. */
static void test_opened_places(void) {
    mock_func funcs[] = {
        {.name = "k", .text = "def k(iout):\n    one(iout)\n    two(iout)\n"},
        {.name = "one",
         .text = "def one(a):\n    for i in range(2):\n        a[i] = 1\n"},
        {.name = "two",
         .text = "def two(a):\n    for i in range(2):\n        a[i] = 2\n"}};
    job *j = malloc(sizeof *j);
    job_run(j, funcs, 3);
    job_lower(j);
    CHECK(j->s == ING_OK && j->r.trees.len == 3);
    CHECK(j->r.trees.at[2] == funcs[1].tree && j->r.trees.at[1] == funcs[2].tree);
    const ing_ir_func *f = j->r.mod->funcs.at[0];
    uint32_t seen[3] = {0};
    for (uint32_t i = 1; i < f->insts.len; i++) {
        uint32_t tree = f->insts.at[i].loc >> ING_FRONT_TREE_SHIFT;
        CHECK(tree < 3);
        if (tree < 3) seen[tree]++;
        uint32_t node = f->insts.at[i].loc & ((1u << ING_FRONT_TREE_SHIFT) - 1);
        if (tree) CHECK(node < j->r.trees.at[3 - tree]->nodes.len);
    }
    CHECK(seen[0] && seen[1] && seen[2]);
    job_fini(j);
    free(j);
}

/* Every allocation of a compile fails once: an error, no leak, no crash. */
static void test_memory(void) {
    const char *text = "def k(out, n):\n    fill(out)\n    for i in range(n):\n        "
                       "out[i] = twice(i) "
                       "+ TABLE.get(3)\n";
    uint64_t at = 1;
    for (; at < 5000; at++) {
        mock_func funcs[] = {
            {.name = "k", .text = text},
            {.name = "twice", .text = "def twice(v):\n    return v * N\n"},
            {.name = "fill",
             .text = "def fill(a):\n    for i in range(2):\n        a[i] = i\n"}};
        job *j = malloc(sizeof *j);
        job_run(j, funcs, 3);
        ing_bytes_reserve(&j->m.log, 4096);
        ing_alloc_fail_at(at);
        j->gate = (ing_gate){.ops = &mock_ops, .self = &j->m};
        j->s = ing_front_lower(funcs[0].tree, &j->gate, &j->r, &j->e);
        ing_alloc_fail_at(0);
        bool ok = j->s == ING_OK;
        if (!ok) CHECK(j->s == ING_MEMORY);
        job_fini(j);
        free(j);
        if (ok) break;
    }
    CHECK(at > 10 && at < 5000);
}

int main(void) {
    test_runs();
    test_messages();
    test_questions();
    test_digest();
    test_depth();
    test_twice();
    test_debug();
    test_opened();
    test_opened_places();
    test_returns();
    test_memory();
    return CHECK_DONE();
}
