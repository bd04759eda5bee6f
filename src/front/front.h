/* front: from syntax to typed IR. A function's text arrives as plain C nodes (made by
 * src/py/see/read_ast.c from Python's own parser), is digested without positions (R9) and
 * lowered to IR, asking the gate about everything outside the function. No Python here.
 *
 * Depth: the reader refuses trees deeper than ING_FRONT_MAX_DEPTH, and lowering counts
 * its own depth across nested funcs, up to ING_FRONT_MAX_LOWERING (about 700 funcs that
 * call each other) or what the thread's stack allows, so recursion over nodes is bounded. An `elif` is no
 * deeper than its `if`: chains of them are walked by loops. */
#ifndef ING_FRONT_H
#define ING_FRONT_H

#include "base/base.h"
#include "gate/gate.h"
#include "ir/ir.h"

enum { ING_FRONT_MAX_DEPTH = 1000, ING_FRONT_MAX_LOWERING = 2800 };

/* The loc of an instruction is a node of the function's tree. Code of a func that was opened
 * in the kernel (func.c) has the number of its tree above this bit, counted from the end of
 * ing_front_result.trees: k means trees.at[trees.len - k]. */
enum { ING_FRONT_TREE_SHIFT = 20 };

typedef enum ing_front_kind {
    ING_NODE_NONE,
#define NODE(name, text, fields) ING_NODE_##name,
#include "front/node.def"
#undef NODE
    ING_NODE_N
} ing_front_kind;

typedef enum ing_front_field_kind {
    ING_FIELD_NODE,
    ING_FIELD_LIST,
    ING_FIELD_ATOM,
    ING_FIELD_ATOMS,
    ING_FIELD_OP,
    ING_FIELD_OPS,
    ING_FIELD_INT,
    ING_FIELD_CONST,
} ing_front_field_kind;

typedef struct ing_front_field {
    const char *name;
    ing_front_field_kind kind;
} ing_front_field;

typedef struct ing_front_shape { /* one row of node.def */
    const char *text;
    uint32_t n_fields;
    ing_front_field fields[7];
} ing_front_shape;
const ing_front_shape *ing_front_shape_get(ing_front_kind k);
ing_front_kind ing_front_kind_find(const char *ast_class); /* OTHER when unknown */

/* Operators by ast class name: Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitOr
 * BitXor BitAnd MatMult / And Or / Not Invert UAdd USub / Eq NotEq Lt LtE Gt GtE Is IsNot
 * In NotIn. */
/* clang-format off */
#define ING_FRONT_OP_LIST(X) \
    X(Add, "+") X(Sub, "-") X(Mult, "*") X(Div, "/") X(FloorDiv, "//") X(Mod, "%") \
    X(Pow, "**") X(LShift, "<<") X(RShift, ">>") X(BitOr, "|") X(BitXor, "^") \
    X(BitAnd, "&") X(MatMult, "@") X(And, "and") X(Or, "or") X(Not, "not") \
    X(Invert, "~") X(UAdd, "+") X(USub, "-") X(Eq, "==") X(NotEq, "!=") X(Lt, "<") \
    X(LtE, "<=") X(Gt, ">") X(GtE, ">=") X(Is, "is") X(IsNot, "is not") X(In, "in") \
    X(NotIn, "not in")
/* clang-format on */
typedef enum ing_front_op {
    ING_AST_NONE,
#define X(name, text) ING_AST_##name,
    ING_FRONT_OP_LIST(X)
#undef X
        ING_AST_N
} ing_front_op;
ing_front_op ing_front_op_find(const char *ast_class);
const char *ing_front_op_text(ing_front_op op);

typedef uint32_t
    ing_node; /* index in tree->nodes = node ordinal in tree order; 0 = none */

typedef enum ing_const_kind {
    ING_CONST_NONE,
    ING_CONST_FALSE,
    ING_CONST_TRUE,
    ING_CONST_INT /* i */,
    ING_CONST_UINT /* (uint64_t)i */,
    ING_CONST_BIGINT /* text */,
    ING_CONST_FLOAT /* f */,
    ING_CONST_STR /* atom */,
    ING_CONST_BYTES /* atom */,
    ING_CONST_ELLIPSIS,
    ING_CONST_COMPLEX,
} ing_const_kind;

typedef struct ing_front_const {
    ing_const_kind kind;
    int64_t i;
    double f;
    uint32_t atom;
} ing_front_const;

typedef struct ing_front_node {
    uint8_t kind;       /* ing_front_kind */
    uint32_t slots;     /* first of its fields in tree->slots, in the order of node.def:
                          NODE -> ing_node; LIST, ATOMS, OPS -> offset in tree->slots of
                          count then items (0 = empty); ATOM -> atom + 1 (0 = None);
                          OP -> ing_front_op; INT -> the value; CONST -> index in consts */
    uint32_t line, col; /* line: 0-based from the def's first line; col: 0-based
                                   UTF-8 byte offset */
    uint32_t end_line, end_col;
} ing_front_node;

typedef struct ing_front_tree {
    ing_atoms atoms;
    ing_vec(
        ing_front_node) nodes; /* [0] unused; parents before children (tree order) */
    ing_vec(uint32_t) slots;   /* [0] unused */
    ing_vec(ing_front_const) consts;
    ing_node root; /* a FUNCTION node */
    char *name;    /* label: qualified name */
    char *file;    /* label */
    /* 1-based line of the def's first line (decorators included) */
    uint32_t first_line;
    char *text; /* the raw lines, for carets */
    size_t text_len;
    ing_hash128 digest; /* of the tree without positions, docstring, decorators (R9) */
} ing_front_tree;

ing_front_tree *ing_front_tree_new(void); /* NULL: no memory */
void ing_front_tree_free(ing_front_tree *t);
/* Computes t->digest; called once by the reader when the tree is complete. */
void ing_front_tree_digest(ing_front_tree *t);
/* Can evaluating this expression change a variable or an element: does it call or assign? */
bool ing_front_may_change(const ing_front_tree *t, ing_node n, uint32_t depth);
/* S-expression text of the tree, for tests. */
void ing_front_tree_print(const ing_front_tree *t, ing_bytes *out);

/* What lowering a kernel yields, besides the module. */
typedef struct ing_front_arg { /* IR argument k: what to bind there */
    ing_gref ref;    /* a kernel parameter or something reached from outside */
    ing_dtype dtype; /* scalar: converted to this; array: VOID */
    uint32_t lanes;  /* element 0 of a vector or matrix parameter: how many follow it,
                        itself included, with words of their own in a row; else 0 */
    bool constant;   /* an array whose derivatives are of no interest */
    bool lane;       /* one of those that follow: bound by element 0 */
} ing_front_arg;

typedef struct ing_front_stage { /* a checkpoint of a graph kernel */
    int64_t label;
    ing_gref ref; /* the user's own object, 0 = a literal */
} ing_front_stage;

typedef struct ing_front_result {
    ing_ir_mod *mod;             /* owned by the caller; kernel is func 0 */
    ing_vec(ing_front_arg) args; /* parallel to mod->args */
    /* func ordinal -> tree, for run-time errors; then the trees of opened funcs, the
     * first one last */
    ing_vec(const ing_front_tree *) trees;
    ing_vec(char *) messages;        /* of CHECKs with code >= ING_ABI_USER */
    ing_vec(ing_front_stage) stages; /* checkpoints, in the order of the text */
    /* Parallel to args, where the gate has a `companion`: number + 1 of the argument that is
     * the companion of the argument, 0 = it has none. Else empty. */
    ing_vec(uint32_t) companions;
    bool returns_tuple; /* several results, or an explicit 1-tuple */
} ing_front_result;

void ing_front_result_init(ing_front_result *r);
void ing_front_result_fini(ing_front_result *r); /* mod included */

/* A Python function in a kernel: what it is called there, what describes it, whether it is of the
 * standard library or of an installed package, whether it was given values of the run time, and
 * the first of those that it cannot take. */
typedef enum ing_front_given {
    ING_FRONT_NUMBER,
    ING_FRONT_TENSOR,
    ING_FRONT_ARRAY,
    ING_FRONT_OTHER
} ing_front_given;
typedef struct ing_front_outside {
    const char *name, *what;
    bool library, runtime;
    ing_front_given given;
} ing_front_outside;

/* What to do instead of calling it. */
void ing_front_function_remedy(const ing_front_outside *f, char *buf, size_t size);
/* What vectors have for a method that others call so, or NULL. */
const char *ing_front_vector_remedy(const char *name);

/* Lowers the kernel whose frame 0 the gate has open. */
ing_status ing_front_lower(const ing_front_tree *tree, const ing_gate *gate,
                           ing_front_result *out, ing_err *e);

/* A message (format.c) with its numbers filled in: words as in CONST. */
void ing_front_message_fill(const char *message, const uint64_t *words, uint32_t n,
                            ing_bytes *out);
/* As Python's repr of a number of type t. */
void ing_front_put_float(double d, ing_dtype t, ing_bytes *out);

/* Is `other` closer to a misspelled name than *best (letters), and close enough? */
bool ing_front_is_near(const char *name, const char *other, uint32_t *best);

/* Writes "file:line:col: text", the source line and a caret into the error, with an
 * optional remedy ("help: ..."). Used by lowering and by run-time errors. */
ing_status ing_front_diag(const ing_front_tree *t, ing_node at, ing_status s,
                          const char *remedy, ing_err *e, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

#endif
