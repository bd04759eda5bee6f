/* The IR's types, builder, text form, verifier, digest and extraction. Text cases that are
 * refused carry the words that the message must contain. */
#include "check.h"
#include "ir/ir.h"

static char *print_text(const ing_ir_mod *m, uint32_t flags) {
    ing_bytes b;
    ing_bytes_init(&b);
    ing_ir_print(m, flags, &b);
    return ing_bytes_take(&b);
}

static ing_ir_mod *parse(const char *text) {
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    ing_status s = ing_ir_parse(text, strlen(text), &m, &e);
    CHECK(s == ING_OK);
    if (s != ING_OK) fprintf(stderr, "%s\n%s\n", e.text ? e.text : "?", text);
    ing_err_fini(&e);
    return m;
}

static ing_status verify(const ing_ir_mod *m, bool quiet) {
    ing_err e;
    ing_err_init(&e);
    ing_status s = ing_ir_verify(m, &e);
    if (s != ING_OK && !quiet) fprintf(stderr, "%s\n", e.text ? e.text : "?");
    ing_err_fini(&e);
    return s;
}

/* ---- every operation, once --------------------------------------------------------------- */

static const char all_ops[] =
    "arg 0 i32\n"
    "arg 1 array<f32, 2>\n"
    "arg 2 array<tensor<f64, 3>, 3, layout 2 0 1, grad>\n"
    "arg 3 f32\n"
    "ret 0 i64\n"
    "ret 1 u1\n"
    "buffer 64\n"
    "task @0 {\n"
    "  %1 = task.begin i32\n"
    "  %2 = task.end i32\n"
    "  %3 = arg i32 0\n"
    "  %4 = array array<f32, 2> 1\n"
    "  %5 = array array<tensor<f64, 3>, 3, layout 2 0 1, grad> 2\n"
    "  %6 = dim i32 %4, 1\n"
    "  %7 = alloca ref<f32>\n"
    "  %8 = buffer ref<i64> 8\n"
    "  %9 = loop parallel i32 %1, %2 {\n"
    "    %10 = elem ref<f32> %4, [%9, %3]\n"
    "    %11 = load f32 %10\n"
    "    store %10, %11\n"
    "    %12 = atomic f32 %10, %11, add\n"
    "    %13 = atomic private f32 %7, %11, max\n"
    "    %14 = elem ref<tensor<f64, 3>> %5, [%9, %9, %9]\n"
    "    %15 = member ref<f64> %14, 2\n"
    "    %16 = member_dyn ref<f64> %14, %9\n"
    "    %17 = load tensor<f64, 3> %14\n"
    "    %18 = extract f64 %17, 1\n"
    "    %19 = insert %17, %18, 0\n"
    "    store %14, %19\n"
    "    %20 = make tensor<f64, 3> [%18, %18, %18]\n"
    "    %21 = make struct<f64, i32> [%18, %9]\n"
    "    %22 = lt %18, %18\n"
    "    if %22 {\n"
    "      %23 = call struct<f32, i32> @1, [%11, %10, %4]\n"
    "      continue\n"
    "    } else {\n"
    "      check %22, 7 !3\n"
    "    }\n"
    "    while {\n"
    "      if %22 {\n"
    "        break\n"
    "      }\n"
    "      call void @2, []\n"
    "    }\n"
    "    %24 = cast i64 %9\n"
    "    set_ret 0, %24\n"
    "    %25 = bitcast i32 %11\n"
    "    %26 = select i32 %22, %9, %25\n"
    "    %27 = add nsw %26, %25\n"
    "  }\n"
    "}\n"
    "func @1 (f32, ref<f32>, array<f32, 2>) struct<f32, i32> {\n"
    "  %1 = param f32 0\n"
    "  %2 = param array<f32, 2> 2\n"
    "  %3 = const i32 -5\n"
    "  %4 = make struct<f32, i32> [%1, %3]\n"
    "  return %4\n"
    "}\n"
    "func @2 () void {\n"
    "  return\n"
    "}\n"
    "run @0 range begin -3 end buffer 16 cost 12 long\n";

static void test_round_trip(void) {
    ing_ir_mod *m = parse(all_ops);
    if (!m) return;
    CHECK(verify(m, false) == ING_OK);
    char *text = print_text(m, 0);
    CHECK_STR(text, all_ops);
    ing_free(text);
    ing_ir_mod_free(m);
}

/* Each arithmetic operation on each type: verified exactly where eval defines it. */
static void test_arithmetic_text(void) {
    for (int op = ING_OP_ADD; op <= ING_OP_CLZ; op++) {
        for (int t = ING_U1; t < ING_DTYPE_N; t++) {
            char text[200];
            uint64_t out;
            bool two = ing_op_get(op)->operands[1] == 'v';
            snprintf(text, sizeof text,
                     "kernel @0 {\n  %%1 = const %s 1%s\n  %%2 = %s %%1%s\n}\n",
                     ing_dtype_name(t), ing_dtype_is_float(t) ? ".0" : "",
                     ing_op_get(op)->text, two ? ", %1" : "");
            ing_ir_mod *m = parse(text);
            if (!m) continue;
            CHECK((verify(m, true) == ING_OK) == ing_ir_eval(op, t, 0, 0, &out));
            char *again = print_text(m, 0);
            CHECK_STR(again, text);
            ing_free(again);
            ing_ir_mod_free(m);
        }
    }
}

static void test_constants(void) {
    static const char *const exact[] = {
        "f32 0.0",
        "f32 -0.0",
        "f32 inf",
        "f32 -inf",
        "f32 nan.0x7fc00000",
        "f32 0x3p-1",
        "f32 -0x3p-1",
        "f32 16777216.0",
        "f32 0x1p-149",
        "f64 0x1p-1074",
        "f64 0x1fffffffffffffp971",
        "f64 nan.0xfff8000000000001",
        "f16 65504.0",
        "f16 0x1p-24",
        "i8 -128",
        "i8 127",
        "u8 255",
        "i64 -9223372036854775808",
        "u64 18446744073709551615",
        "u1 1",
        "f64 0xccccccccccccdp-55",
    };
    for (size_t k = 0; k < sizeof exact / sizeof exact[0]; k++) {
        char text[120];
        snprintf(text, sizeof text, "kernel @0 {\n  %%1 = const %s\n}\n", exact[k]);
        ing_ir_mod *m = parse(text);
        if (!m) continue;
        CHECK(verify(m, false) == ING_OK);
        char *again = print_text(m, 0);
        CHECK_STR(again, text);
        ing_free(again);
        ing_ir_mod_free(m);
    }
    ing_ir_mod *m = parse("kernel @0 { %x = const f64 0.1 %y = const f32 1.25 }");
    if (!m) return;
    double d;
    uint64_t bits = ing_ir_const_bits(ing_ir_at(m->funcs.at[0], 1));
    memcpy(&d, &bits, sizeof d);
    CHECK(d == 0.1);
    CHECK(ing_ir_const_bits(ing_ir_at(m->funcs.at[0], 2)) == 0x3fa00000);
    ing_ir_mod_free(m);
}

/* ---- names and locations ------------------------------------------------------------------- */

static void test_names(void) {
    static const char with[] = "arg 0 array<struct<x: f32, nan: i32>, 1>\n"
                               "kernel @0 \"step \\22a\\5cb\\22\" {\n"
                               "  %1 = arg i32 1 !7\n"
                               "}\n";
    static const char without[] = "arg 0 array<struct<f32, i32>, 1>\n"
                                  "kernel @0 {\n"
                                  "  %1 = arg i32 1\n"
                                  "}\n";
    ing_ir_mod *m = parse(with);
    if (!m) return;
    char *a = print_text(m, ING_IR_PRINT_LOCS | ING_IR_PRINT_NAMES),
         *b = print_text(m, 0);
    CHECK_STR(a, with);
    CHECK_STR(b, without);
    CHECK_STR(ing_atoms_text(&m->atoms, m->funcs.at[0]->name), "step \"a\\b\"");
    ing_free(a);
    ing_free(b);
    ing_ir_mod_free(m);
}

/* ---- types ---------------------------------------------------------------------------------- */

static void test_types(void) {
    ing_ir_mod *m = ing_ir_mod_new();
    uint8_t swap[2] = {1, 0}, twice[2] = {0, 0};
    ing_type members[3] = {ING_U1, ING_F64, ING_I16};
    ing_type s = ing_ir_type_struct(m, members, NULL, 3);
    CHECK(s == ing_ir_type_struct(m, members, NULL, 3));
    CHECK(ing_ir_type_size(m, s) == 24 && ing_ir_type_align(m, s) == 8);
    CHECK(ing_ir_type(m, s)->offsets[1] == 8 && ing_ir_type(m, s)->offsets[2] == 16);
    ing_type v = ing_ir_type_tensor(m, ING_F32, 3, 1, 1);
    CHECK(ing_ir_type_size(m, v) == 12 && ing_ir_type_align(m, v) == 4);
    CHECK(v != ing_ir_type_tensor(m, ING_F32, 3, 1, 2));
    ing_type a = ing_ir_type_array(m, v, 2, false, NULL);
    CHECK(a == ing_ir_type_array(m, v, 2, false, (uint8_t[]){0, 1}));
    CHECK(a != ing_ir_type_array(m, v, 2, false, swap));
    CHECK(a != ing_ir_type_array(m, v, 2, true, NULL));
    CHECK(ing_ir_type_ref(m, v) == ing_ir_type_ref(m, v));
    CHECK(ing_ir_ok(m));
    CHECK(ing_ir_add_arg(m, ING_F32) == 0 && ing_ir_add_arg(m, a) == 1);
    CHECK(ing_ir_add_arg(m, ing_ir_type_array(m, v, 1, true, NULL)) == 2);
    CHECK(ing_ir_add_arg(m, ING_F64) == 3);
    CHECK(m->args.at[1].word == 1 && m->args.at[2].word == 4);
    CHECK(m->args.at[3].word == 7 && m->n_words == 8);
    CHECK(ing_ir_type_array(m, v, 2, false, twice) == 0 && !ing_ir_ok(m));
    m->arena.failed = false;
    CHECK(ing_ir_type_ref(m, a) == 0 && !ing_ir_ok(m));
    m->arena.failed = false;
    CHECK(ing_ir_type_tensor(m, ING_F32, 1u << 20, 1u << 20, 2) == 0 && !ing_ir_ok(m));
    m->arena.failed = false;
    for (int k = 0; k < 40 && s; k++) s = ing_ir_type_struct(m, &s, NULL, 1);
    CHECK(s == 0);
    ing_ir_mod_free(m);
}

/* ---- builder ---------------------------------------------------------------------------------- */

static void test_builder(void) {
    ing_ir_mod *m = ing_ir_mod_new();
    ing_ir_builder b;
    uint32_t f = ing_ir_add_func(m, ING_IR_KERNEL, "k", NULL, 0, 0);
    ing_ir_builder_init(&b, m, f);
    uint32_t zero = ing_ir_const_int(&b, ING_I32, 0),
             ten = ing_ir_const_int(&b, ING_I32, 10);
    uint32_t loop = ing_ir_loop_reserve(&b, ING_I32);
    ing_ir_block_begin(&b);
    uint32_t c = ing_ir_emit(&b, ING_OP_LT, 0, loop, ten, 0);
    ing_ir_block_begin(&b);
    ing_ir_emit(&b, ING_OP_CONTINUE, 0, 0, 0, 0);
    CHECK(ing_ir_block_ended(&b));
    CHECK(ing_ir_emit(&b, ING_OP_ADD, 0, ten, ten, 0) != 0); /* unreachable: dropped */
    uint32_t then = ing_ir_block_end(&b);
    CHECK(!ing_ir_block_ended(&b));
    ing_ir_emit(&b, ING_OP_IF, 0, c, then, 0);
    ing_ir_loop_finish(&b, loop, zero, ten, ing_ir_block_end(&b), ING_IR_SERIAL);
    ing_ir_builder_done(&b);
    CHECK(ing_ir_ok(m) && verify(m, false) == ING_OK);
    char *text = print_text(m, 0);
    CHECK_STR(text, "kernel @0 {\n"
                    "  %1 = const i32 0\n"
                    "  %2 = const i32 10\n"
                    "  %3 = loop serial i32 %1, %2 {\n"
                    "    %4 = lt %3, %2\n"
                    "    if %4 {\n"
                    "      continue\n"
                    "    }\n"
                    "  }\n"
                    "}\n");
    ing_free(text);
    ing_ir_mod_free(m);
}

static void test_builder_above(void) {
    ing_ir_mod *m = ing_ir_mod_new();
    ing_ir_builder b;
    uint32_t f = ing_ir_add_func(m, ING_IR_FUNC, "f", NULL, 0, 0);
    ing_ir_builder_init(&b, m, f);
    ing_type ref = ing_ir_type_ref(m, ING_I32);
    uint32_t yes = ing_ir_const_int(&b, ING_U1, 1);
    ing_ir_block_begin(&b);
    uint32_t one = ing_ir_const_int(&b, ING_I32, 1);
    uint32_t slot = ing_ir_emit_above(&b, ING_OP_ALLOCA, ref, 0, 0, 0);
    ing_ir_emit(&b, ING_OP_STORE, 0, slot, one, 0);
    uint32_t then = ing_ir_block_end(&b);
    ing_ir_emit(&b, ING_OP_IF, 0, yes, then, 0);
    ing_ir_emit(&b, ING_OP_LOAD, ING_I32, slot, 0, 0);
    ing_ir_emit(&b, ING_OP_RETURN, 0, 0, 0, 0);
    ing_ir_block_begin(&b); /* after the end: in no block */
    CHECK(ing_ir_emit_above(&b, ING_OP_ALLOCA, ref, 0, 0, 0) != 0);
    ing_ir_block_end(&b);
    ing_ir_builder_done(&b);
    CHECK(ing_ir_ok(m) && verify(m, false) == ING_OK);
    char *text = print_text(m, 0);
    CHECK_STR(text, "func @0 () void {\n"
                    "  %1 = const u1 1\n"
                    "  %2 = alloca ref<i32>\n"
                    "  if %1 {\n"
                    "    %3 = const i32 1\n"
                    "    store %2, %3\n"
                    "  }\n"
                    "  %4 = load i32 %2\n"
                    "  return\n"
                    "}\n");
    ing_free(text);
    ing_ir_mod_free(m);
}

/* ---- text that is refused --------------------------------------------------------------------- */

typedef struct refused {
    const char *text, *words;
} refused;

static const refused bad_text[] = {
    {"what", "1:1: expected arg"},
    {"arg 1 i32", "1:5: the next number is 0"},
    {"arg 0 i33", "1:7: expected a type"},
    {"arg 0 array<f32, 13>", "at most 12"},
    {"arg 0 array<f32, 2, layout 0 0>", "cannot exist"},
    {"arg 0 array<f32, 2> last 17", "from 1 to 16"},
    {"arg 0 array<f32, 2> last 0", "from 1 to 16"},
    {"arg 0 tensor<f32, 0>", "cannot exist"},
    {"arg 0 tensor<f32, 99999999999>", "below 2^32"},
    {"kernel @1 {}", "1:8: the next function is @0"},
    {"kernel @0 {", "1:12: the text ends inside"},
    {"kernel @0 {\n  %1 = const i8 128\n}", "2:17: not a i8"},
    {"kernel @0 {\n  %1 = const u8 -1\n}", "2:17: not a u8"},
    {"kernel @0 { %1 = const f32 1e5 }", "not a f32"},
    {"kernel @0 { %1 = const f32 nan.0x7f800000 }", "not a f32"},
    {"kernel @0 { %1 = frob %1 }", "expected an operation"},
    {"kernel @0 {\n  %1 = neg %2\n}", "2:12: %2 is not defined"},
    {"kernel @0 {\n%1 = const i32 1\n%1 = const i32 1\n}", "3:1: %1 is defined twice"},
    {"kernel @0 {\nconst i32 1\n}", "2:1: this yields a value"},
    {"kernel @0 {\n%1 = const i32 1\n%2 = return\n}", "this yields no value"},
    {"kernel @0 { return return }", "ended before this"},
    {"kernel @0 \"x", "no closing quote"},
    {"kernel @0 \"\\zz\" {}", "bad escape"},
    {"kernel @0 { % }", "nothing follows"},
    {"run @0 often", "expected 'range' or 'serial'"},
    {"run @0 range end 3", "expected 'begin'"},
    {"run @0 range begin 99999999999999999999 end 1", "64 bits"},
    {"func @0 (f32 f32) void {}", "expected ','"},
};

static void check_refused(const refused *r, ing_status s, const ing_err *e) {
    bool ok = s != ING_OK && e->text && strstr(e->text, r->words);
    CHECK(ok);
    if (!ok) fprintf(stderr, "%s\n-> %s\n", r->text, e->text ? e->text : "accepted");
}

static void test_bad_text(void) {
    for (size_t k = 0; k < sizeof bad_text / sizeof bad_text[0]; k++) {
        ing_ir_mod *m = NULL;
        ing_err e;
        ing_err_init(&e);
        ing_status s = ing_ir_parse(bad_text[k].text, strlen(bad_text[k].text), &m, &e);
        check_refused(&bad_text[k], s, &e);
        CHECK(m == NULL);
        ing_err_fini(&e);
        ing_ir_mod_free(m);
    }
}

/* The prologue that cases share: values of several types, %t a range task's function. */
#define HEAD                                                                        \
    "arg 0 array<f32, 2>\narg 1 i32\nret 0 i32\nbuffer 16\n"                        \
    "task @0 {\n%a = array array<f32, 2> 0\n%i = const i32 1\n%f = const f32 1.0\n" \
    "%c = const u1 1\n%v = alloca ref<f32>\n%l = const i64 3\n"
#define FUNC(body) "}\nfunc @1 (i32) f32 {\n%p = param i32 0\n" body "}\n"

static const refused bad_ir[] = {
    {HEAD "%1 = arg i32 2\n}", "no such argument"},
    {HEAD "%1 = arg f32 1\n}", "another type"},
    {HEAD "%1 = array array<f32, 1> 0\n}", "another type"},
    {HEAD "%1 = param i32 0\n}", "no such parameter"},
    {HEAD "%1 = dim i32 %a, 2\n}", "no such axis"},
    {HEAD "%1 = dim i32 %i, 0\n}", "needs an array"},
    {HEAD "%1 = dim f32 %a, 0\n}", "i32 or i64"},
    {HEAD "%1 = alloca f32\n}", "yields a ref"},
    {HEAD "%1 = elem ref<f32> %a, [%i]\n}", "one index"},
    {HEAD "%1 = elem ref<f32> %a, [%i, %f]\n}", "indices are"},
    {HEAD "%1 = elem ref<f64> %a, [%i, %i]\n}", "ref to the element"},
    {HEAD "%1 = buffer ref<i64> 16\n}", "outside the launch buffer"},
    {HEAD "%1 = buffer ref<i64> 4\n}", "not aligned"},
    {HEAD "%1 = load i32 %v\n}", "another type"},
    {HEAD "%1 = load f32 %f\n}", "needs a ref"},
    {HEAD "store %v, %i\n}", "another type"},
    {HEAD "%1 = atomic f32 %v, %f, xor\n}", "bits of floats"},
    {HEAD "%1 = atomic i32 %v, %i, add\n}", "another type"},
    {HEAD "set_ret 1, %i\n}", "no such result"},
    {HEAD "set_ret 0, %f\n}", "another type"},
    {HEAD "%1 = add %i, %f\n}", "operand types differ"},
    {HEAD "%1 = add %v, %v\n}", "operands are scalars"},
    {HEAD "%1 = sin %i\n}", "not defined for this type"},
    {HEAD "%1 = and %f, %f\n}", "not defined for this type"},
    {HEAD "%1 = cast ref<f32> %i\n}", "converts scalars"},
    {HEAD "%1 = bitcast i64 %i\n}", "sizes differ"},
    {HEAD "%1 = select f32 %i, %f, %f\n}", "condition is u1"},
    {HEAD "%1 = select f32 %c, %f, %i\n}", "another type"},
    {HEAD "%1 = make tensor<f32, 2> [%f]\n}", "every member"},
    {HEAD "%1 = make struct<f32, i32> [%f, %f]\n}", "another type"},
    {HEAD "%1 = make f32 [%f]\n}", "makes an aggregate"},
    {HEAD "%1 = make struct<f32, i32> [%f, %i]\n%2 = extract f32 %1, 1\n}",
     "another type"},
    {HEAD "%1 = make struct<f32, i32> [%f, %i]\n%2 = extract f32 %1, 2\n}", "no such"},
    {HEAD "%1 = make tensor<f32, 2> [%f, %f]\n%2 = insert %1, %i, 0\n}",
     "another type"},
    {HEAD "%1 = member ref<f32> %v, 0\n}", "no such member"},
    {HEAD "%1 = alloca ref<struct<f32>>\n%2 = member_dyn ref<f32> %1, %i\n}",
     "a tensor"},
    {HEAD "if %i {\n}\n}", "condition is u1"},
    {HEAD "%1 = loop f32 %f, %f {\n}\n}", "index is i32 or i64"},
    {HEAD "%1 = loop i64 %i, %l {\n}\n}", "bounds are of another type"},
    {HEAD "while {\n%1 = loop parallel i32 %i, %i {\n}\n}\n}", "outermost block (I5)"},
    {HEAD "%1 = loop parallel i32 %i, %i {\nbreak\n}\n}", "cannot be left"},
    {HEAD "%1 = loop parallel i32 %i, %i {\nif %c {\nreturn\n}\n}\n}",
     "cannot be left"},
    {HEAD "break\n}", "no loop around it"},
    {HEAD "continue\n}", "no loop around it"},
    {HEAD "return %i\n}", "where there is none"},
    {HEAD "check %i, 1\n}", "condition is u1"},
    {HEAD "check %c, 0\n}", "1 or more"},
    {HEAD "if %c {\n%1 = neg %i\n}\n%2 = neg %1\n}", "outside its block (I3)"},
    {HEAD "%1 = loop i32 %i, %i {\n}\n%2 = neg %1\n}", "outside its block (I3)"},
    {HEAD "call void @1, []\n}", "no such function"},
    {HEAD "call void @0, []\n}", "calls a func"},
    {HEAD "call void @1, [%i]\n" FUNC("return %p\n"), "the result is of another type"},
    {HEAD "%1 = call f32 @1, []\n" FUNC(""), "wrong number"},
    {HEAD "%1 = call f32 @1, [%f]\n" FUNC(""), "an argument is of another"},
    {HEAD FUNC("return %p\n"), "returns another type"},
    {HEAD FUNC("return\n"), "returns another type"},
    {HEAD FUNC("%1 = loop parallel i32 %p, %p {\n}\n"), "(I5)"},
    {HEAD FUNC("%1 = task.begin i32\n"), "only in tasks"},
    {HEAD FUNC("%1 = buffer ref<i32> 0\n"), "only in tasks"},
    {HEAD FUNC("set_ret 0, %p\n"), "only in kernels"},
    {HEAD FUNC("%1 = call f32 @1, [%p]\n"), "calls itself (I7)"},
    {HEAD "}\nfunc @1 () void {\ncall void @2, []\n}\nfunc @2 () void {\ncall void @1, "
          "[]\n}",
     "calls itself (I7)"},
    {HEAD "}\nrun @1 serial", "no function"},
    {HEAD "}\nrun @0 range begin 0 end 1", "one parallel loop (I5)"},
    {HEAD "%1 = loop parallel i32 %i, %i {\n}\n}\nrun @0 serial", "one parallel loop"},
    {HEAD "%1 = loop parallel i32 %i, %i {\n}\n}\nrun @0 range begin 0 end buffer 16",
     "outside the buffer"},
    {HEAD "%1 = loop parallel i32 %i, %i {\n}\n}\nrun @0 range begin 0 end buffer 4",
     "not aligned"},
    {"arg 0 tensor<f32, 3>", "argument 0 has no type"},
    {"arg 0 i32 last 3", "argument 0 has no last extent"},
    {"arg 0 array<f32, 0> last 3", "argument 0 has no last extent"},
    {"ret 0 ref<f32>", "result 0 is not a scalar"},
    {"func @0 () ref<f32> {}", "returns data"},
    {"func @0 (void) f32 {}", "a parameter has no type"},
};

static void test_bad_ir(void) {
    for (size_t k = 0; k < sizeof bad_ir / sizeof bad_ir[0]; k++) {
        ing_err e;
        ing_err_init(&e);
        ing_ir_mod *m = parse(bad_ir[k].text);
        if (m) check_refused(&bad_ir[k], ing_ir_verify(m, &e), &e);
        ing_err_fini(&e);
        ing_ir_mod_free(m);
    }
}

/* Arrays that only a bug could make: the verifier must say so and not read outside. */
static void test_damaged(void) {
    for (uint32_t k = 0; k < 3000; k++) {
        ing_ir_mod *m = parse(all_ops);
        if (!m) return;
        uint32_t r = k * 2654435761u;
        ing_ir_func *f = m->funcs.at[r % 3];
        uint32_t value = (r >> 8) % 5 ? (r >> 8) % 60 : r;
        if (k % 2) {
            f->extra.at[(r >> 4) % f->extra.len] = value;
        } else {
            ing_ir_inst *i = &f->insts.at[(r >> 4) % f->insts.len];
            uint32_t *field[] = {&i->a, &i->b, &i->c, &i->type};
            if (k % 10 == 0) {
                i->op = (uint16_t)value;
            } else {
                *field[k / 2 % 4] = value;
            }
        }
        if (verify(m, true) == ING_OK) ing_free(print_text(m, 0));
        ing_ir_mod_free(m);
    }
    CHECK(true);
}

static void test_nesting(void) {
    for (int depth = ING_IR_MAX_NESTING - 3; depth < ING_IR_MAX_NESTING + 3; depth++) {
        ing_bytes b;
        ing_err e;
        ing_ir_mod *m = NULL;
        ing_bytes_init(&b);
        ing_err_init(&e);
        ing_bytes_puts(&b, "kernel @0 {\n");
        for (int k = 1; k < depth; k++) ing_bytes_puts(&b, "while {\n");
        for (int k = 1; k < depth; k++) ing_bytes_puts(&b, "}\n");
        ing_bytes_puts(&b, "}\n");
        ing_status s = ing_ir_parse((char *)b.at, b.len, &m, &e);
        CHECK((s == ING_OK) == (depth <= ING_IR_MAX_NESTING));
        if (m) CHECK(verify(m, false) == ING_OK);
        ing_ir_mod_free(m);
        ing_err_fini(&e);
        ing_bytes_clear(&b);
        ing_bytes_puts(&b, "arg 0 ");
        for (int k = 0; k < depth * 1000; k++) ing_bytes_puts(&b, "struct<");
        CHECK(ing_ir_parse((char *)b.at, b.len, &m, NULL) != ING_OK);
        ing_bytes_fini(&b);
    }
}

/* ---- fuzz --------------------------------------------------------------------------------------- */

static uint64_t rng_state = 0x9E3779B97F4A7C15u;

static uint32_t rng(uint32_t n) {
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng_state >> 33) % n;
}

static void mutate(char *text, size_t *n) {
    static const char alphabet[] = "%@!,<>[]{}()=0123456789abcdefrtx.:\n \"\\-;";
    for (uint32_t k = rng(4) + 1; k-- > 0;) {
        uint32_t at = rng((uint32_t)*n), len = rng(12) + 1, to = rng((uint32_t)*n);
        if (at + len > *n) len = (uint32_t)*n - at;
        switch (rng(4)) {
        case 0: text[at] = alphabet[rng(sizeof alphabet - 1)]; break;
        case 1: /* remove */
            memmove(text + at, text + at + len, *n - at - len);
            *n -= len;
            break;
        case 2: /* copy over */
            if (to + len <= *n) memmove(text + to, text + at, len);
            break;
        default: text[at] = (char)rng(256); break;
        }
        if (*n < 40) return;
    }
}

/* Any text gives a module or an error; what verifies prints, parses and prints the same. */
static void test_fuzz(void) {
    uint32_t rounds = getenv("INGOT_STRESS") ? 200000 : 10000, parsed = 0, good = 0;
    for (uint32_t k = 0; k < rounds; k++) {
        size_t n = sizeof all_ops - 1;
        char *text = malloc(n);
        ing_ir_mod *m = NULL, *again = NULL;
        memcpy(text, all_ops, n);
        mutate(text, &n);
        char *exact = malloc(n ? n : 1); /* so that ASan sees the end */
        memcpy(exact, text, n);
        if (ing_ir_parse(exact, n, &m, NULL) == ING_OK) {
            parsed++;
            good += verify(m, true) == ING_OK;
            char *one = print_text(m, 3), *two = NULL;
            if (ing_ir_parse(one, strlen(one), &again, NULL) == ING_OK) {
                two = print_text(again, 3);
            }
            CHECK(two && strcmp(one, two) == 0);
            ing_free(one);
            ing_free(two);
        }
        ing_ir_mod_free(m);
        ing_ir_mod_free(again);
        free(text);
        free(exact);
    }
    CHECK(parsed > rounds / 100 && good > rounds / 200);
}

/* ---- extraction and digest ---------------------------------------------------------------------- */

/* The same task in two kernels: other functions around it, other numbers, names, bounds. */
static const char kernel_a[] = "arg 0 array<f32, 1>\n"
                               "buffer 24\n"
                               "task @0 \"a\" {\n"
                               "  %1 = const i32 3\n"
                               "}\n"
                               "func @1 \"unused\" () void {\n"
                               "}\n"
                               "func @2 \"second\" (f32) f32 {\n"
                               "  %1 = param f32 0 !9\n"
                               "  return %1\n"
                               "}\n"
                               "func @3 \"first\" (f32) f32 {\n"
                               "  %1 = param f32 0\n"
                               "  %2 = call f32 @2, [%1]\n"
                               "  return %2\n"
                               "}\n"
                               "task @4 \"a\" {\n"
                               "  %1 = task.begin i32\n"
                               "  %2 = task.end i32\n"
                               "  %3 = buffer ref<f32> 4\n"
                               "  %4 = load f32 %3 !5\n"
                               "  %5 = loop parallel i32 %1, %2 {\n"
                               "    %6 = call f32 @3, [%4]\n"
                               "    %7 = call f32 @2, [%6]\n"
                               "  }\n"
                               "}\n"
                               "run @0 serial cost 1\n"
                               "run @4 range begin 0 end buffer 16 cost 9 long\n";
static const char extracted[] = "arg 0 array<f32, 1>\n"
                                "buffer 8\n"
                                "task @0 {\n"
                                "  %1 = task.begin i32\n"
                                "  %2 = task.end i32\n"
                                "  %3 = buffer ref<f32> 4\n"
                                "  %4 = load f32 %3\n"
                                "  %5 = loop parallel i32 %1, %2 {\n"
                                "    %6 = call f32 @1, [%4]\n"
                                "    %7 = call f32 @2, [%6]\n"
                                "  }\n"
                                "}\n"
                                "func @1 (f32) f32 {\n"
                                "  %1 = param f32 0\n"
                                "  %2 = call f32 @2, [%1]\n"
                                "  return %2\n"
                                "}\n"
                                "func @2 (f32) f32 {\n"
                                "  %1 = param f32 0\n"
                                "  return %1\n"
                                "}\n"
                                "run @0 range begin 0 end 0 cost 0\n";

static void test_extract(void) {
    ing_ir_mod *m = parse(kernel_a), *x = NULL, *y = NULL;
    ing_err e;
    ing_hash128 h1, h2;
    uint32_t *funcs = NULL, n = 0;
    ing_err_init(&e);
    CHECK(verify(m, false) == ING_OK);
    for (uint32_t k = 0; k < m->funcs.len; k++) m->funcs.at[k]->tree = 10 + k;
    CHECK(ing_ir_extract_task(m, 1, &x, &e) == ING_OK);
    CHECK(x->funcs.at[0]->tree == 14 && x->funcs.at[1]->tree == 13);
    CHECK(verify(x, false) == ING_OK);
    char *text = print_text(x, 0);
    CHECK_STR(text, extracted);
    ing_free(text);
    CHECK(ing_ir_task_funcs(m, 1, &funcs, &n, &e) == ING_OK && n == 3);
    CHECK(funcs && funcs[0] == 4 && funcs[1] == 3 && funcs[2] == 2);
    ing_free(funcs);
    CHECK(ing_ir_digest(x, &h1, &e) == ING_OK);
    CHECK(ing_ir_extract_task(x, 0, &y, &e) == ING_OK);
    CHECK(ing_ir_digest(y, &h2, &e) == ING_OK);
    CHECK(ing_hash_eq(h1, h2));
    ing_ir_mod_free(y);
    CHECK(ing_ir_extract_task(m, 0, &y, &e) == ING_OK);
    CHECK(ing_ir_digest(y, &h2, &e) == ING_OK);
    CHECK(!ing_hash_eq(h1, h2));
    ing_ir_mod_free(y);
    CHECK(ing_ir_extract_task(m, 2, &y, &e) == ING_INTERNAL && !y);
    ing_err_fini(&e);
    ing_ir_mod_free(x);
    ing_ir_mod_free(m);
}

/* The location of a CHECK is in the code, so in the digest; other locations are not. */
static void test_digest_locations(void) {
    static const char *const texts[3] = {
        "kernel @0 {\n  %1 = const u1 1 !4\n  check %1, 2 !8\n}\n",
        "kernel @0 {\n  %1 = const u1 1 !5\n  check %1, 2 !8\n}\n",
        "kernel @0 {\n  %1 = const u1 1 !5\n  check %1, 2 !9\n}\n",
    };
    ing_hash128 h[3];
    for (int k = 0; k < 3; k++) {
        ing_ir_mod *m = parse(texts[k]);
        CHECK(ing_ir_digest(m, &h[k], NULL) == ING_OK);
        ing_ir_mod_free(m);
    }
    CHECK(ing_hash_eq(h[0], h[1]) && !ing_hash_eq(h[1], h[2]));
}

/* ---- lost memory --------------------------------------------------------------------------------- */

/* The n-th allocation fails, for every n until all is well: no crash, no leak, no lie. */
static void test_memory(void) {
    uint64_t n = 0, left = 0;
    ing_status s = ING_MEMORY;
    while (!left && n < 100000) {
        ing_ir_mod *m = NULL, *x = NULL;
        ing_hash128 h;
        ing_err e;
        ing_err_init(&e);
        ing_alloc_fail_at(++n);
        s = ing_ir_parse(kernel_a, sizeof kernel_a - 1, &m, &e);
        if (s == ING_OK) s = ing_ir_verify(m, &e);
        if (s == ING_OK) s = ing_ir_extract_task(m, 1, &x, &e);
        if (s == ING_OK) s = ing_ir_digest(x, &h, &e);
        left = ing_alloc_fail_left();
        ing_alloc_fail_at(0);
        if (s != ING_OK && s != ING_MEMORY) {
            CHECK(false);
            fprintf(stderr, "allocation %llu: %s\n", (unsigned long long)n, e.text);
        }
        ing_err_fini(&e);
        ing_ir_mod_free(m);
        ing_ir_mod_free(x);
    }
    CHECK(s == ING_OK && n > 50);
}

/* Arithmetic is what has a meaning in eval.c; the sets of dtypes are their column. */
static void test_classes(void) {
    for (uint32_t op = 1; op < ING_OP_N; op++) {
        uint64_t out;
        bool means = ing_ir_eval((ing_op)op, ING_I32, 0, 0, &out) ||
                     ing_ir_eval((ing_op)op, ING_F32, 0, 0, &out);
        CHECK(ing_op_class_of(op) != ING_OPC_NONE);
        CHECK(ing_op_is_arith(op) == means);
        CHECK((ing_op_class_of(op) == ING_OPC_COMPARE) ==
              (means && ing_op_get((ing_op)op)->result == '1'));
    }
    CHECK(ing_op_class_of(ING_OP_N + 1) == ING_OPC_NONE);
    for (uint32_t t = 0; t < 64; t++) {
        char c = t < ING_DTYPE_N ? ing_dtype_class((ing_dtype)t) : 'V';
        CHECK(ing_dtype_is_float((ing_dtype)t) == (c == 'F'));
        CHECK(ing_dtype_is_signed((ing_dtype)t) == (c == 'I'));
        CHECK(ing_dtype_is_int((ing_dtype)t) == (c == 'I' || c == 'U' || c == 'B'));
    }
}

int main(void) {
    test_classes();
    test_round_trip();
    test_arithmetic_text();
    test_constants();
    test_names();
    test_types();
    test_builder();
    test_builder_above();
    test_bad_text();
    test_bad_ir();
    test_damaged();
    test_nesting();
    test_fuzz();
    test_extract();
    test_digest_locations();
    test_memory();
    return CHECK_DONE();
}
