/* Tokens of the IR's text form and its numbers, for parse.c. Reads nothing past the end
 * of the text, whatever the text; independent of the locale. */
#include "ir/lex.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

ing_status ing_ir_lex_fail(ing_ir_lex *x, const char *fmt, ...) {
    va_list ap;
    char text[200];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ing_status s =
        ing_fail(x->err, ING_FORMAT, "%u:%u: %s", x->tok.line, x->tok.col, text);
    if (x->err) {
        x->err->line = x->tok.line;
        x->err->col = x->tok.col;
    }
    return s;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Blanks and comments (from ; to the end of the line); true when a line ended. */
static bool skip_blanks(ing_ir_lex *x) {
    bool ended = x->at == x->start;
    while (x->at < x->end) {
        char c = *x->at;
        if (c == ';') {
            while (x->at < x->end && *x->at != '\n') x->at++;
        } else if (c == '\n') {
            ended = true;
            x->at++;
            x->line++;
            x->line_start = x->at;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            x->at++;
        } else {
            break;
        }
    }
    return ended;
}

/* A quoted name; \xx is a byte in hexadecimal. It ends on its line. */
static ing_status lex_string(ing_ir_lex *x) {
    x->at++;
    while (x->at < x->end && *x->at != '"' && *x->at != '\n') x->at++;
    if (x->at == x->end || *x->at != '"') {
        return ing_ir_lex_fail(x, "this name has no closing quote");
    }
    x->at++;
    x->tok.kind = ING_TOK_STRING;
    return ING_OK;
}

ing_status ing_ir_lex_next(ing_ir_lex *x) {
    bool first = skip_blanks(x);
    const char *s = x->at;
    x->tok = (ing_ir_tok){.text = s, .first = first, .line = x->line};
    x->tok.col = (uint32_t)(s - x->line_start) + 1;
    if (s == x->end) return ING_OK; /* ING_TOK_END */
    if (*s == '"') {
        ING_TRY(lex_string(x));
    } else if (*s == '%' || *s == '@' || *s == '!') {
        x->tok.kind = (ing_ir_tok_kind)*s;
        x->tok.text = ++x->at;
        while (x->at < x->end && is_word(*x->at)) x->at++;
        if (x->at == x->tok.text) return ing_ir_lex_fail(x, "nothing follows '%c'", *s);
    } else if (is_digit(*s) || (*s == '-' && s + 1 < x->end && is_word(s[1]))) {
        /* one word holds all forms of numbers, -0x1p-3 and nan.0x7fc0 included */
        x->tok.kind = ING_TOK_NUMBER;
        while (++x->at < x->end &&
               (is_word(*x->at) || (*x->at == '-' && x->at[-1] == 'p'))) {}
    } else if (is_word(*s)) {
        x->tok.kind = ING_TOK_WORD;
        while (x->at < x->end && is_word(*x->at)) x->at++;
    } else {
        x->tok.kind = (ing_ir_tok_kind)(unsigned char)*x->at++;
    }
    x->tok.len = (uint32_t)(x->at - x->tok.text);
    return ING_OK;
}

ing_status ing_ir_lex_init(ing_ir_lex *x, const char *text, size_t n, ing_err *e) {
    *x = (ing_ir_lex){.start = text, .at = text, .end = text + n, .line_start = text};
    x->line = 1;
    x->err = e;
    x->tok.line = x->tok.col = 1;
    if (n > UINT32_MAX / 2) return ing_ir_lex_fail(x, "text of more than 2 GB");
    return ing_ir_lex_next(x);
}

bool ing_ir_tok_is(const ing_ir_tok *t, const char *word) {
    return t->kind == ING_TOK_WORD && strlen(word) == t->len &&
           memcmp(word, t->text, t->len) == 0;
}

/* ---- numbers ------------------------------------------------------------------------- */

static int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Digits of `base` from *s on; false when there is none or they overflow 64 bits. */
static bool digits(const char **s, const char *end, int base, uint64_t *out) {
    const char *p = *s;
    uint64_t v = 0;
    for (; p < end; p++) {
        int d = hex_digit(*p);
        if (d < 0 || d >= base) break;
        if (__builtin_mul_overflow(v, (uint64_t)base, &v)) return false;
        if (__builtin_add_overflow(v, (uint64_t)d, &v)) return false;
    }
    bool any = p > *s;
    *s = p;
    *out = v;
    return any;
}

bool ing_ir_number_int(const char *s, uint32_t n, bool *negative, uint64_t *out) {
    const char *end = s + n;
    *negative = n && *s == '-';
    if (*negative) s++;
    bool hex = end - s > 2 && s[0] == '0' && s[1] == 'x';
    if (hex) s += 2;
    return digits(&s, end, hex ? 16 : 10, out) && s == end;
}

static double power_of_ten(uint32_t n) { /* exact up to 10^22 */
    double p = 1;
    while (n--) p *= 10;
    return p;
}

/* 0x<mantissa>p<exponent>, what print.c writes: exact. */
static bool hex_float(const char *s, const char *end, double *out) {
    uint64_t mant, exp;
    if (!digits(&s, end, 16, &mant) || mant >> 53) return false;
    if (s == end || *s++ != 'p') return false;
    bool minus = s < end && *s == '-';
    if (minus) s++;
    if (!digits(&s, end, 10, &exp) || s != end || exp > 2000) return false;
    *out = ldexp((double)mant, minus ? -(int)exp : (int)exp);
    return true;
}

/* 12, 12.5: at most 15 digits, for which the quotient is correctly rounded. */
static bool decimal_float(const char *s, const char *end, double *out) {
    uint64_t whole, frac = 0;
    uint32_t places = 0;
    if (end - s > 17 || !digits(&s, end, 10, &whole)) return false;
    if (s < end && *s == '.') {
        const char *from = ++s;
        if (s < end && !digits(&s, end, 10, &frac)) return false;
        places = (uint32_t)(s - from);
    }
    double scale = power_of_ten(places);
    double all = (double)whole * scale + (double)frac;
    if (s != end || all >= 1e15) return false;
    *out = all / scale;
    return true;
}

bool ing_ir_number_float(const char *s, uint32_t n, ing_dtype t, uint64_t *bits) {
    const char *end = s + n;
    double d;
    if (n > 6 && memcmp(s, "nan.0x", 6) == 0) {
        s += 6;
        if (!digits(&s, end, 16, bits) || s != end) return false;
        uint64_t same;
        bool ok = ing_ir_norm(t, *bits) == *bits;
        return ok && ing_ir_eval(ING_OP_NE, t, *bits, *bits, &same) && same;
    }
    bool minus = n && *s == '-';
    if (minus) s++;
    if (end - s == 3 && memcmp(s, "inf", 3) == 0) {
        d = INFINITY;
    } else if (end - s > 2 && s[0] == '0' && s[1] == 'x') {
        if (!hex_float(s + 2, end, &d)) return false;
    } else if (!decimal_float(s, end, &d)) {
        return false;
    }
    if (minus) d = -d;
    uint64_t wide;
    memcpy(&wide, &d, sizeof wide);
    *bits = ing_ir_eval_cast(ING_F64, t, wide);
    return true;
}
