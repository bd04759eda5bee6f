/* Messages with their numbers filled in (format.c says what a message is). Called by the
 * host for prints and for assertions that failed; numbers are words as in CONST. Never
 * depends on the C library's locale, and survives any message. */
#include "front/front.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double as_double(ing_dtype t, uint64_t word) {
    uint64_t wide = ing_ir_eval_cast(t, ING_F64, word);
    double d;
    memcpy(&d, &wide, sizeof d);
    return d;
}

static bool same_at(const char *text, double d, ing_dtype t) {
    double back = strtod(text, NULL);
    if (t == ING_F64) return back == d;
    if (t == ING_F32) return (float)back == (float)d;
    return ing_f64_to_f16(back) == ing_f64_to_f16(d);
}

/* The shortest digits that give the number back, as Python's repr. */
static void put_float(double d, ing_dtype t, ing_bytes *out) {
    char text[40];
    if (isnan(d) || isinf(d)) {
        ing_bytes_puts(out, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    int digits = 1;
    do {
        snprintf(text, sizeof text, "%.*e", digits - 1, d);
    } while (!same_at(text, d, t) && ++digits <= 17);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16) {
        ing_bytes_puts(out, text);
        return;
    }
    int decimals = digits - 1 - exponent;
    snprintf(text, sizeof text, "%.*f", decimals > 1 ? decimals : 1, d);
    ing_bytes_puts(out, text);
}

void ing_front_put_float(double d, ing_dtype t, ing_bytes *out) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = uselocale(c);
    put_float(d, t, out);
    uselocale(old);
    if (c) freelocale(c);
}

/* A format that was checked when the message was made, but came by way of a file. */
static bool split_spec(const char *s, size_t n, char head[16], char *conversion) {
    if (n == 0 || n > 14) return false;
    for (size_t i = 0; i + 1 < n; i++)
        if (!strchr("-+ #0123456789.", s[i])) return false;
    memcpy(head, s, n - 1);
    head[n - 1] = 0;
    *conversion = s[n - 1];
    return strchr("duxXofFeEaAgGr", *conversion) != NULL;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* checked by split_spec */
static void put_number(ing_dtype t, const char *spec, size_t n, uint64_t word,
                       ing_bytes *out) {
    char head[16], format[32], text[1400], c = 0;
    bool real = ing_dtype_is_float(t);
    if (!split_spec(spec, n, head, &c) ||
        (c != 'r' && real != (strchr("duxXo", c) == NULL))) {
        ing_bytes_puts(out, "?");
    } else if (c == 'r' && real) {
        put_float(as_double(t, word), t, out);
    } else if (c == 'r' && t == ING_U1) {
        ing_bytes_puts(out, word ? "True" : "False");
    } else if (real) {
        snprintf(format, sizeof format, "%%%s%c", head, c);
        snprintf(text, sizeof text, format, as_double(t, word));
        ing_bytes_puts(out, text);
    } else {
        if (c == 'r') c = ing_dtype_is_signed(t) ? 'd' : 'u';
        snprintf(format, sizeof format, "%%%sll%c", head, c);
        snprintf(text, sizeof text, format, (unsigned long long)word);
        ing_bytes_puts(out, text);
    }
}
#pragma GCC diagnostic pop

static ing_dtype dtype_named(const char *s, size_t n) {
    for (uint32_t t = ING_U1; t < ING_DTYPE_N; t++) {
        const char *name = ing_dtype_name((ing_dtype)t);
        if (strlen(name) == n && memcmp(name, s, n) == 0) return (ing_dtype)t;
    }
    return ING_VOID;
}

static void fill(const char *s, const uint64_t *words, uint32_t n, ing_bytes *out) {
    uint32_t next = 0;
    for (; *s; s++) {
        const char *close = *s == '{' && s[1] != '{' ? strchr(s, '}') : NULL;
        if (!close) {
            ing_bytes_u8(out, (uint8_t)*s);
            if ((*s == '{' || *s == '}') && s[1] == *s) s++;
            continue;
        }
        const char *colon = memchr(s, ':', (size_t)(close - s));
        ing_dtype t = colon ? dtype_named(s + 1, (size_t)(colon - s) - 1) : ING_VOID;
        if (!t || next >= n)
            ing_bytes_puts(out, "?");
        else
            put_number(t, colon + 1, (size_t)(close - colon) - 1, words[next++], out);
        s = close;
    }
}

void ing_front_message_fill(const char *message, const uint64_t *words, uint32_t n,
                            ing_bytes *out) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = uselocale(c);
    fill(message, words, n, out);
    uselocale(old);
    if (c) freelocale(c);
}
