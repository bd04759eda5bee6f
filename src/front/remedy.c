/* What to do instead of what other libraries have: words for messages about Python's functions
 * in kernels, and about methods that vectors have elsewhere. Asked when something was refused;
 * knows names alone and never looks at a value. */
#include "front/front_int.h"

#include <stdio.h>
#include <string.h>

typedef struct words {
    const char *name, *text;
} words;

static const char *find(const words *list, const char *name) {
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0) return list->text;
    return NULL;
}

/* Other libraries' names for functions of qd. */
static const words other_names[] = {
    {"absolute", "abs"},     {"arccos", "acos"},
    {"arccosh", "acosh"},    {"arcsin", "asin"},
    {"arcsinh", "asinh"},    {"arctan", "atan"},
    {"arctan2", "atan2"},    {"arctanh", "atanh"},
    {"clip", "math.clamp"},  {"degrees", "math.degrees"},
    {"fabs", "abs"},         {"fmax", "max"},
    {"fmin", "min"},         {"fmod", "raw_mod"},
    {"isinf", "math.isinf"}, {"isnan", "math.isnan"},
    {"maximum", "max"},      {"minimum", "min"},
    {"power", "pow"},        {"radians", "math.radians"},
    {"rint", "round"},       {"sign", "math.sign"},
    {"where", "select"},     {NULL, NULL},
};

/* Functions that are operators in a kernel. */
static const words operators[] = {
    {"add", "x + y"},
    {"subtract", "x - y"},
    {"multiply", "x * y"},
    {"divide", "x / y"},
    {"true_divide", "x / y"},
    {"floor_divide", "x // y"},
    {"mod", "x % y"},
    {"remainder", "x % y"},
    {"square", "x * x"},
    {"negative", "-x"},
    {"reciprocal", "1.0 / x"},
    {"equal", "x == y"},
    {"not_equal", "x != y"},
    {"less", "x < y"},
    {"less_equal", "x <= y"},
    {"greater", "x > y"},
    {"greater_equal", "x >= y"},
    {"logical_and", "x and y"},
    {"logical_or", "x or y"},
    {"logical_not", "not x"},
    {"bitwise_and", "x & y"},
    {"bitwise_or", "x | y"},
    {"bitwise_xor", "x ^ y"},
    {"left_shift", "x << y"},
    {"right_shift", "x >> y"},
    {NULL, NULL},
};

/* Functions that vectors and matrices have as methods. */
static const words of_tensors[] = {
    {"dot", "v.dot(w), or a @ b for matrices"},
    {"vdot", "v.dot(w)"},
    {"inner", "v.dot(w)"},
    {"matmul", "a @ b"},
    {"cross", "v.cross(w)"},
    {"outer", "v.outer_product(w)"},
    {"norm", "v.norm()"},
    {"linalg.norm", "v.norm()"},
    {"inv", "m.inverse()"},
    {"det", "m.determinant()"},
    {"trace", "m.trace()"},
    {"transpose", "m.transpose()"},
    {"sum", "v.sum()"},
    {"amax", "v.max()"},
    {"amin", "v.min()"},
    {"max", "v.max()"},
    {"min", "v.min()"},
    {"any", "v.any()"},
    {"all", "v.all()"},
    {"array", "the vector itself"},
    {NULL, NULL},
};

/* What methods of vectors are called elsewhere. */
static const words vector_names[] = {
    {"normalize", "v.normalized()"},
    {"unit", "v.normalized()"},
    {"length", "v.norm(); its number of elements is v.n"},
    {"magnitude", "v.norm()"},
    {"mag", "v.norm()"},
    {"norm2", "v.norm_sqr()"},
    {"length_squared", "v.norm_sqr()"},
    {"T", "m.transpose()"},
    {"inv", "m.inverse()"},
    {"det", "m.determinant()"},
    {"outer", "v.outer_product(w)"},
    {"mean", "v.sum() / v.n"},
    {"size", "v.n, or v.n * v.m of a matrix"},
    {"copy", "the vector itself: it is a value, not a reference"},
    {"astype", "v.cast(qd.i32)"},
    {"append", "qd.Vector([...]) with all elements at once: a vector keeps its size"},
    {"reshape", "m[i, j] of its elements: qd.Matrix([[v[0], v[1]], [v[2], v[3]]])"},
    {"tolist", "v.to_list()"},
    {"flatten", "m[i, j], in a loop over qd.static(qd.ndrange(m.n, m.m))"},
    {"argmax", "a loop over qd.static(range(v.n)) that keeps the index of the largest"},
    {"argmin", "a loop over qd.static(range(v.n)) that keeps the index of the least"},
    {"prod", "a loop over qd.static(range(v.n)) that multiplies"},
    {"abs", "abs(v)"},
    {"sqrt", "qd.sqrt(v)"},
    {"clip", "qd.math.clamp(v, low, high)"},
    {"round", "round(v)"},
    {NULL, NULL},
};

/* Functions by what becomes of them. */
static const words alone[] = {
    {"Quitter", "leave it out: a kernel ends at its end, the program outside of it"},
    {"seed", "the seed is an option: qd.init(random_seed=...)"},
    {"shape", "use a.shape"},
    {"size", "multiply the extents: a.shape[0] * a.shape[1]"},
    {"product", "loop over all pairs with qd.ndrange(n, m)"},
    {"map", "write a comprehension: [f(x) for x in t]"},
    {"filter", "write a comprehension: [x for x in t if x > 0]"},
    {"super", "name the class: Base.method(self, x), of a Base with @qd.data_oriented"},
    {"complex", "keep real and imaginary parts in two variables, or in a qd.Vector"},
    {"id", "leave it out: arrays have no identity in kernels"},
    {"hash", "write it with the operators of integers: a @qd.func can do that"},
    {"Fraction", "use floats, or numerator and denominator in two variables"},
    {"Decimal", "use floats: qd.f64 has 15 digits"},
    {"gcd", "write it as a @qd.func: while b != 0: a, b = b, a % b"},
    {"isclose", "write abs(x - y) <= 1e-6 * qd.max(abs(x), abs(y))"},
    {"allclose", "compare the elements in a loop: abs(a[i] - b[i]) <= 1e-6"},
    {"fsum", "add them with +"},
    {"prod", "multiply them with *"},
    {"dist", "take (v - w).norm() of two qd.Vector"},
    {"sleep", "leave it out: a kernel cannot wait"},
    {"join", "text is made while compiling; print(x, y, sep=', ') shows numbers of the "
             "run time"},
    {NULL, NULL},
};

/* The dtype that a scalar type of NumPy is called like. */
static const words numpy_types[] = {
    {"bool_", "u1"},   {"int8", "i8"},     {"int16", "i16"},   {"int32", "i32"},
    {"int64", "i64"},  {"uint8", "u8"},    {"uint16", "u16"},  {"uint32", "u32"},
    {"uint64", "u64"}, {"float16", "f16"}, {"float32", "f32"}, {"float64", "f64"},
    {"double", "f64"}, {NULL, NULL},
};

static const char *ours(const char *name) {
    return ing_intrinsic_find(name) != ING_IN_NONE ? name : find(other_names, name);
}

static bool is_among(const char *name, const char *const *names) {
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

static bool is_builtin(const char *what) {
    return strstr(what, "builtin_function") || strstr(what, "type ") ||
           strstr(what, "ufunc") || strstr(what, "ArrayFunction");
}

/* Functions of a kind, and what to do about all of it. */
static const char *of_kind(const char *name) {
    static const char *const arrays[] = {"zeros",  "ones",       "empty",    "full",
                                         "arange", "zeros_like", "linspace", "eye",
                                         "tensor", "array",      NULL};
    static const char *const texts[] = {"str", "repr", "format", "chr",
                                        "hex", "bin",  NULL};
    static const char *const counts[] = {"randint", "randrange", "integers",
                                         "choice",  "randbelow", NULL};
    static const char *const draws[] = {"rand",  "randn",   "random",          "normal",
                                        "gauss", "uniform", "standard_normal", NULL};
    static const char *const logs[] = {"info",  "debug", "warning",  "warn",
                                       "error", "log",   "critical", NULL};
    if (is_among(name, counts))
        return "an integer from 0 to n - 1 is qd.cast(qd.random(qd.f32) * n, qd.i32)";
    if (is_among(name, draws))
        return "use qd.random(qd.f32), which is uniform in [0, 1), or qd.randn()";
    if (is_among(name, arrays))
        return "make arrays outside of the kernel and pass them; a few numbers are a "
               "qd.Vector([...])";
    if (is_among(name, texts))
        return "text is made while compiling; print(x) and f-strings in print show "
               "numbers of the run time";
    return is_among(name, logs)
               ? "use print in kernels, or call it outside of the kernel"
               : NULL;
}

static void of_any_function(const ing_front_outside *f, char *buf, size_t size) {
    const char *function = ours(f->name), *kind = of_kind(f->name);
    bool foreign = is_builtin(f->what) || f->library;
    bool number = f->runtime && f->given == ING_FRONT_NUMBER;
    if (kind && (foreign || !f->runtime))
        snprintf(buf, size, "%s", kind);
    else if (foreign)
        snprintf(buf, size, "call it outside of the kernel and pass the result%s",
                 number ? ", or write it as a @qd.func" : "");
    else if (f->runtime && function)
        snprintf(buf, size, "decorate the function with @qd.func, or use qd.%s",
                 function);
    else if (f->runtime)
        snprintf(buf, size, "decorate the function with @qd.func");
    else if (strncmp(f->what, "function ", 9) == 0 ||
             strncmp(f->what, "method ", 7) == 0)
        snprintf(buf, size, "call it outside of the kernel and pass the result");
    else
        snprintf(buf, size,
                 "decorate the function with @qd.func, or call it outside and pass "
                 "the result");
}

void ing_front_function_remedy(const ing_front_outside *f, char *buf, size_t size) {
    const char *function = ours(f->name);
    bool foreign = is_builtin(f->what) || f->library;
    const char *dtype = strstr(f->what, "type ") ? find(numpy_types, f->name) : NULL;
    const char *operator= foreign ? find(operators, f->name) : NULL;
    const char *method =
        f->given == ING_FRONT_TENSOR ? find(of_tensors, f->name) : NULL;
    const char *rest = foreign ? find(alone, f->name) : NULL;
    if (f->runtime && dtype)
        snprintf(buf, size,
                 f->given == ING_FRONT_ARRAY
                     ? "convert its elements: qd.cast(a[i], qd.%s)"
                     : "convert it with qd.cast(x, qd.%s)",
                 dtype);
    else if (foreign && method)
        snprintf(buf, size, "use %s", method);
    else if (f->runtime && function && is_builtin(f->what))
        snprintf(buf, size, "use qd.%s", function);
    else if (operator)
        snprintf(buf, size, "write %s", operator);
    else if (rest)
        snprintf(buf, size, "%s", rest);
    else
        of_any_function(f, buf, size);
}

const char *ing_front_vector_remedy(const char *name) {
    return find(vector_names, name);
}
