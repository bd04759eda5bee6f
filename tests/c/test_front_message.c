/* Messages with numbers filled in: every dtype and conversion, repr, broken messages, and
 * the C library's locale. */
#include "check.h"
#include "front/front.h"

#include <locale.h>
#include <math.h>

static void fills(const char *message, const uint64_t *words, uint32_t n,
                  const char *want) {
    ing_bytes out;
    ing_bytes_init(&out);
    ing_front_message_fill(message, words, n, &out);
    CHECK_STR(out.at ? (char *)out.at : "", want);
    ing_bytes_fini(&out);
}

static uint64_t f64(double d) {
    uint64_t w;
    memcpy(&w, &d, sizeof w);
    return w;
}

static uint64_t word(ing_dtype t, double d) {
    return ing_ir_eval_cast(ING_F64, t, f64(d));
}

static void test_numbers(void) {
    uint64_t minus = (uint64_t)-5;
    fills("{i8:d} {i32:5d}|{i64:-5d}|{i16:+d}|{i32:.3d}",
          (uint64_t[]){minus, minus, minus, 7, 7}, 5, "-5    -5|-5   |+7|007");
    fills("{u8:u} {u32:x} {u32:#X} {u64:o} {u1:u} {u64:u}",
          (uint64_t[]){200, 255, 255, 8, 1, UINT64_MAX}, 6,
          "200 ff 0XFF 10 1 18446744073709551615");
    fills("{f32:f} {f64:.12f} {f16:.1f} {f32:e} {f32:8.3f}|{f64:g} {f32:a}",
          (uint64_t[]){word(ING_F32, 2.5), f64(1.0 / 3), word(ING_F16, 1.5),
                       word(ING_F32, 2.5), word(ING_F32, 2.5), f64(0.1),
                       word(ING_F32, 2.5)},
          7, "2.500000 0.333333333333 1.5 2.500000e+00    2.500|0.1 0x1.4p+1");
}

static void test_repr(void) {
    fills("{f64:r} {f32:r} {f16:r} {f64:r} {f64:r} {f64:r} {f64:r} {f64:r}",
          (uint64_t[]){f64(0.1), word(ING_F32, 0.1), word(ING_F16, 0.1), f64(3),
                       f64(1e22), f64(1e-7), f64(123456.75), f64(-0.0)},
          8, "0.1 0.1 0.1 3.0 1e+22 1e-07 123456.75 -0.0");
    fills("{f64:r} {f64:r} {f64:r} {u1:r} {u1:r} {i64:r} {u64:r}",
          (uint64_t[]){f64(INFINITY), f64(-INFINITY), f64(NAN), 0, 1, (uint64_t)-1,
                       UINT64_MAX},
          7, "inf -inf nan False True -1 18446744073709551615");
}

static void test_text(void) {
    fills("", NULL, 0, "");
    fills("plain 100% %d %s", NULL, 0, "plain 100% %d %s");
    fills("{{}} {{x}}", NULL, 0, "{} {x}");
    fills("{{{i32:d}}}", (uint64_t[]){3}, 1, "{3}");
}

/* Whatever a damaged cache might hold. */
static void test_broken(void) {
    fills("{i32:d} {i32:d}", (uint64_t[]){1}, 1, "1 ?");
    fills("{i32:n} {i32:s} {i32:} {i32} {zzz:d} {f32:d} {i32:f}",
          (uint64_t[]){1, 1, 1, 1, 1, 1, 1}, 7, "? ? ? ? ? ? ?");
    fills("{i32:*d} {i32:99999999999999999999d}", (uint64_t[]){1, 1}, 2, "? ?");
    fills("{i32:d", (uint64_t[]){1}, 1, "{i32:d");
    fills("}{", NULL, 0, "}{");
}

int main(void) {
    test_numbers();
    test_repr();
    test_text();
    test_broken();
    if (setlocale(LC_ALL, "de_DE.UTF-8")) test_numbers();
    return CHECK_DONE();
}
