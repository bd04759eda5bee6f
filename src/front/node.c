/* The syntax tables of node.def and of the operators: shapes by kind, kinds and operators
 * by the class names of Python's ast. Used by the reader (src/py/see/read_ast.c), by the
 * digest and by messages. Constant data; nothing here may depend on a Python version. */
#include "front/front.h"

#include <string.h>

/* The list ends in an empty entry only so that a class without fields is no empty
 * initialiser. */
#define F(field, field_kind) {#field, ING_FIELD_##field_kind},
#define COUNT(...) \
    (sizeof((ing_front_field[]){__VA_ARGS__{0}}) / sizeof(ing_front_field) - 1)
static const ing_front_shape shapes[ING_NODE_N] = {
#define NODE(kind, class_, fields) \
    [ING_NODE_##kind] = {class_, COUNT(fields), {fields}},
#include "front/node.def"
#undef NODE
};
#undef COUNT
#undef F

static const struct {
    const char *cls, *text;
} ops[ING_AST_N] = {{"", ""},
#define X(name, text) {#name, text},
                    ING_FRONT_OP_LIST(X)
#undef X
};

const ing_front_shape *ing_front_shape_get(ing_front_kind k) {
    return &shapes[(unsigned)k < ING_NODE_N ? k : ING_NODE_NONE];
}

ing_front_kind ing_front_kind_find(const char *ast_class) {
    for (unsigned k = ING_NODE_OTHER + 1; k < ING_NODE_N; k++)
        if (strcmp(shapes[k].text, ast_class) == 0) return (ing_front_kind)k;
    return ING_NODE_OTHER;
}

ing_front_op ing_front_op_find(const char *ast_class) {
    for (unsigned k = 1; k < ING_AST_N; k++)
        if (strcmp(ops[k].cls, ast_class) == 0) return (ing_front_op)k;
    return ING_AST_NONE;
}

const char *ing_front_op_text(ing_front_op op) {
    return ops[(unsigned)op < ING_AST_N ? op : ING_AST_NONE].text;
}
