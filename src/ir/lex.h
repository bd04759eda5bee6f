/* Tokens of the IR's text form: between lex.c and parse.c only. */
#ifndef ING_IR_LEX_H
#define ING_IR_LEX_H

#include "ir/ir_int.h"

typedef enum ing_ir_tok_kind { /* other kinds are the character itself */
                               ING_TOK_END = 0,
                               ING_TOK_NOT = '!',   /* !12: a location */
                               ING_TOK_VALUE = '%', /* %12 or %name */
                               ING_TOK_FUNC = '@',  /* @3 */
                               ING_TOK_WORD = 256,
                               ING_TOK_NUMBER,
                               ING_TOK_STRING,
} ing_ir_tok_kind;

typedef struct ing_ir_tok {
    ing_ir_tok_kind kind;
    const char *text; /* without % @ !, with quotes */
    uint32_t len;
    bool first; /* on its line */
    uint32_t line, col;
} ing_ir_tok;

typedef struct ing_ir_lex {
    const char *start, *at, *end, *line_start;
    uint32_t line;
    ing_ir_tok tok; /* the current one */
    ing_err *err;
} ing_ir_lex;

ing_status ing_ir_lex_init(ing_ir_lex *x, const char *text, size_t n, ing_err *e);
ing_status ing_ir_lex_next(ing_ir_lex *x);
/* An error at the current token, "line:col: text". */
ing_status ing_ir_lex_fail(ing_ir_lex *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool ing_ir_tok_is(const ing_ir_tok *t, const char *word);

bool ing_ir_number_int(const char *s, uint32_t n, bool *negative, uint64_t *out);
bool ing_ir_number_float(const char *s, uint32_t n, ing_dtype t, uint64_t *bits);

#endif
