/* gen, for itself: what the files that write LLVM IR text share. llvm.c conducts,
 * llvm_plan.c decides beforehand which loops poll and which funcs can stop, llvm_parts.c which
 * functions are compiled together; the others write text, each what its name says
 * (docs/internals/codegen.md has the list). cpu.c is the target. */
#ifndef ING_GEN_INT_H
#define ING_GEN_INT_H

#include "gen/abi.h"
#include "gen/gen.h"

/* Operand and type texts are short by construction (%t4294967295, 0x and 16 digits,
 * [4294967295 x double]) and so are passed by value. */
typedef struct ing_gen_txt {
    char s[36];
} ing_gen_txt;

/* Metadata has fixed numbers, so that the text depends on nothing but the module. */
enum {
    ING_GEN_MD_ROOT, /* type-based alias analysis: the root, then two leaves */
    ING_GEN_MD_T_ARRAY,
    ING_GEN_MD_T_LAUNCH,
    ING_GEN_MD_ARRAY,  /* tag of accesses to arrays */
    ING_GEN_MD_LAUNCH, /* tag of accesses to context, launch buffer, results */
    ING_GEN_MD_EMPTY,  /* operand of !invariant.load */
    ING_GEN_MD_GROUP,  /* access group of the parallel loop */
    ING_GEN_MD_PARALLEL,
    ING_GEN_MD_LOOP,
    ING_GEN_MD_UNLIKELY,  /* first successor of a branch is rare */
    ING_GEN_MD_ARGS_SIZE, /* bytes behind ing_ctx.args */
    ING_GEN_MD_SCALAR,
    ING_GEN_MD_SCALAR_LOOP, /* of a loop that is not to be vectorised */
    ING_GEN_MD_LIKELY,      /* second successor of a branch is rare */
    ING_GEN_MD_T_SCRATCH,
    ING_GEN_MD_SCRATCH, /* tag of accesses to a slot's scratch */
    ING_GEN_MD_ROLLED,
    ING_GEN_MD_RARE_LOOP,  /* of a loop that is to stay as it is */
    ING_GEN_MD_ARGS_ALIGN, /* of ing_ctx.args */
    ING_GEN_MD_UNROLL,
    ING_GEN_MD_FULL_LOOP, /* of a loop that is to be unrolled */
};

/* Attribute groups, likewise. */
enum {
    ING_GEN_ATTR_MATH = 4,    /* functions of llvm_math.c */
    ING_GEN_ATTR_VECTOR = 16, /* calls of them: 2 * op, plus 1 for f32, from here on */
};

/* What a ref points into: decides the metadata of accesses through it. */
typedef enum ing_gen_root {
    ING_GEN_UNKNOWN, /* a parameter: whatever the caller passed */
    ING_GEN_LOCAL,
    ING_GEN_LANES, /* a local from outside the parallel loop: the lanes of a reduction, one
                      for each iteration (src/pass/reduce.h) */
    ING_GEN_ARRAY,
    ING_GEN_TALLY, /* a thread's copy of an array, where iterations may meet */
    ING_GEN_BUFFER,
    ING_GEN_SCRATCH, /* iterations meet there */
    ING_GEN_CONTEXT, /* argument words and pointers: never change while a task runs */
} ing_gen_root;

enum { /* of a loop */
       ING_GEN_POLLS = 1,
       ING_GEN_SCALAR = 2, /* too long or too short to be vectorised */
       ING_GEN_INLINE = 4, /* calls in it are inlined */
       ING_GEN_WIDE =
           8, /* parallel, with no loops in it that stay: vectors are likely */
       ING_GEN_SPREAD = 16,  /* vectors whose elements are stored one by one */
       ING_GEN_RARE = 32,    /* neither vectorised nor unrolled */
       ING_GEN_FULL = 64,    /* unrolled (PLAN10) */
       ING_GEN_KNOTTY = 128, /* never vectorised, for what stands in it (PLAN11) */
};

typedef struct ing_gen_fplan { /* of one function; see llvm_plan.c */
    bool reached;
    bool runs_long; /* may execute many back edges: a loop around a call of it polls */
    bool polls;     /* has back edges of its own that poll */
    bool fuel;      /* polls, or calls something that does */
    bool stops;     /* can end the task: returns a status beside its value */
    bool groupable; /* its accesses may join the caller's access group */
    bool random, draws; /* has a RANDOM; has one or calls something that does */
    bool heavy; /* PLAN9: has divisions, roots or reads of places that are computed */
    /* PLAN10: has what keeps a loop around it from being vectorised; likewise */
    bool knotty;
    bool exposed;  /* PLAN11: a call of it may stand in a loop that is vectorised */
    bool inlined;  /* called where calls are inlined: so are those in it */
    bool copied;   /* defined in each part that calls it (llvm_parts.c) */
    bool shared;   /* called from a part that does not define it */
    bool counted;  /* its locals are: another part has a copy */
    uint32_t part; /* that defines it, unless it is copied */
    /* PLAN9: arithmetic, accesses to arrays */
    uint64_t ops, touches;
    uint64_t size;  /* instructions, those of its callees at each call included */
    uint64_t grown; /* those, when loops of constant length are written out */
    /* by instruction id: ING_GEN_POLLS, ING_GEN_SCALAR, ING_GEN_INLINE */
    uint8_t *loops;
} ing_gen_fplan;

typedef struct ing_gen_edge { /* a call */
    uint32_t caller, callee;
    uint32_t loop; /* the innermost one around it, 0 = none */
} ing_gen_edge;

typedef struct ing_gen_frame { /* an open block */
    uint32_t inst;             /* IF, LOOP or WHILE; 0 = the body */
    uint32_t block, pos;
    bool in_else;
    uint32_t loop;   /* LOOP, WHILE: the one around it */
    ing_gen_txt end; /* LOOP: bound in the index type */
    uint32_t steps;  /* LOOP: the value that counts in steps, 0 = none */
} ing_gen_frame;

enum {                       /* has the thread copies of what the task tallies? */
       ING_GEN_COPIES_ASKED, /* at each update */
       ING_GEN_COPIES_MINE,  /* this function is for those that have */
       ING_GEN_COPIES_NONE,  /* and this one for others */
};

typedef struct ing_gen {
    const ing_ir_mod *m;
    const ing_gen_options *o;
    /* Fast-math flags of the open block with a trailing blank, or ""; and those of fused
     * operations (FLOW5 in llvm_flow.c). */
    const char *fmf, *fmf_fused;
    ing_bytes *out;
    ing_bytes entry; /* of the current function: allocas and what is loaded once */
    ing_bytes body;
    ing_arena arena; /* lives as long as the emission */
    ing_atoms decls; /* declarations, in order of first use */
    ing_gen_fplan *plans;
    ing_vec(ing_gen_edge) edges;
    uint32_t part, n_parts;
    uint64_t local_bytes; /* of the locals of all functions so far */
    uint32_t pow_types;   /* bit per dtype: integer power wanted */
    uint64_t vector_calls[(2 * ING_OP_N + 63) / 64]; /* 2 * op, + 1 for f32 */
    ing_bytes kept; /* functions that stay until the vectoriser ran (VEC4), as a list */
    uint32_t n_kept;
    bool stop_fn;                    /* the error function is wanted */
    bool poll_fn, print_fn, room_fn; /* those services are */
    bool uses_random; /* a function that the task reaches draws numbers */
    bool spreads;     /* has a loop with ING_GEN_SPREAD */
    bool wide;        /* has vectors of 512 bits (PLAN9) */
    ing_err *e;
    ing_status status; /* sticky */

    /* the current function */
    const ing_ir_func *f;
    uint32_t fi;
    const ing_gen_fplan *plan;
    ing_gen_txt *vals; /* by instruction id */
    uint8_t *roots;    /* by instruction id: ing_gen_root */
    uint32_t *uses;    /* by instruction id: how often it is an operand */
    uint32_t *homes;   /* by instruction id: the innermost loop around it, 0 = none */
    uint32_t *rivals;  /* of an ALLOCA: the float that is compared with it, 0 = none */
    uint32_t loop;     /* the innermost open loop */
    uint32_t paired;   /* the ATOMIC that was written with the one before it */
    uint32_t n_tmp, n_label;
    uint32_t printed_words; /* size of the record that PRINTs fill, 0 = none */
    uint8_t *words;         /* by argument word: as what it was loaded (llvm_mem.c) */
    bool has_buffer;
    uint8_t copies; /* of tallied arrays: ING_GEN_COPIES_ */
    bool has_args, has_tallies, has_rets, has_status, stop_label, ended;
    uint32_t parallel; /* id of the open parallel loop, 0 = none */
    uint32_t array; /* whose scope the access has that is written (llvm_alias.c), + 1 */
    char scoped[128]; /* its text */
    bool woven;       /* its accesses are in no group (ING_IR_WOVEN) */
    ing_vec(ing_gen_frame) frames;
} ing_gen;

/* ---- llvm_alias.c ------------------------------------------------------------------ */
/* The array at the root of an address + 1, if some other lies apart from it; 0: none does. */
uint32_t ing_gen_array_of(const ing_gen *g, uint32_t ref);
const char *ing_gen_with_scope(ing_gen *g, const char *access);
void ing_gen_scopes(ing_gen *g); /* the metadata, to the end of the module */

/* ---- llvm.c --------------------------------------------------------------------- */
void ing_gen_put(ing_gen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* to the body */
/* Writes "%tN = ..." to the body and returns %tN. */
ing_gen_txt ing_gen_def(ing_gen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
ing_gen_txt ing_gen_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ing_gen_fail(ing_gen *g, const char *what);
/* Names a declaration; the text appears once in the module. */
void ing_gen_declare(ing_gen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
ing_gen_txt ing_gen_type(const ing_gen *g, ing_type t); /* in registers */
ing_gen_txt ing_gen_type_mem(const ing_gen *g, ing_type t);
const char *ing_gen_args(ing_gen *g); /* %args, loaded once per function */
/* Names a function that nobody may remove or change before loops are vectorised. */
void ing_gen_keep(ing_gen *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline const ing_ir_inst *ing_gen_inst(const ing_gen *g, uint32_t id) {
    return &g->f->insts.at[id];
}
static inline ing_type ing_gen_type_of(const ing_gen *g, uint32_t id) {
    return g->f->insts.at[id].type;
}
/* The function's return type in LLVM: value, status, or both. */
void ing_gen_put_ret_type(ing_gen *g, ing_bytes *out, uint32_t func);

/* What the level of instructions offers. */
ing_gen_level ing_gen_level_of(const ing_gen *g);

/* ---- llvm_plan.c ------------------------------------------------------------------ */
ing_status ing_gen_plan(ing_gen *g);

/* ---- llvm_parts.c ----------------------------------------------------------------- */
ing_status ing_gen_parts(ing_gen *g, const uint32_t *order);
/* Which functions the open part defines and declares: ING_GEN_DEFINED, ING_GEN_DECLARED. */
enum { ING_GEN_DEFINED = 1, ING_GEN_DECLARED = 2 };
uint8_t *ing_gen_part(ing_gen *g);

/* ---- llvm_flow.c ------------------------------------------------------------------ */
void ing_gen_body(ing_gen *g); /* the whole body of the current function */

/* ---- llvm_mem.c ------------------------------------------------------------------- */
bool ing_gen_memory_op(ing_gen *g, uint32_t id); /* false: not one of these */
/* The metadata of an access, with its leading comma; "" when there is none. */
const char *ing_gen_access(ing_gen *g, ing_gen_root root); /* until the next call */

/* The address of an array's first element. */
ing_gen_txt ing_gen_array_data(ing_gen *g, uint32_t id);

/* ---- llvm_field.c ----------------------------------------------------------------- */
/* The address of an element of a field. */
ing_gen_txt ing_gen_field_element(ing_gen *g, const ing_ir_inst *i,
                                  const ing_place *place);

/* ---- llvm_turn.c ------------------------------------------------------------------ */
/* Writes a LOOP with ING_IR_TURNED. */
void ing_gen_turned(ing_gen *g, uint32_t id);

/* ---- llvm_wide.c ------------------------------------------------------------------ */
/* Writes a LOOP with ING_IR_WIDE. */
void ing_gen_wide(ing_gen *g, uint32_t id);

/* ---- llvm_pair.c ------------------------------------------------------------------ */
/* Writes an ATOMIC together with the one that follows it (paired), else false. */
bool ing_gen_pair(ing_gen *g, uint32_t id);

/* ---- llvm_service.c -------------------------------------------------------------- */
bool ing_gen_service_op(ing_gen *g, uint32_t id);
/* A scalar as a whole word, extended as a CONST is. */
ing_gen_txt ing_gen_word(ing_gen *g, ing_dtype t, ing_gen_txt v);

/* ---- llvm_random.c ---------------------------------------------------------------- */
void ing_gen_stream_entry(ing_gen *g); /* before the body of the current function */
void ing_gen_stream(ing_gen *g, ing_gen_txt index); /* an iteration begins */
/* Before and after a call. */
void ing_gen_stream_call(ing_gen *g, uint32_t callee, bool before);
void ing_gen_stream_return(ing_gen *g);
ing_gen_txt ing_gen_random(ing_gen *g, ing_dtype t); /* the next draw */
ing_gen_txt ing_gen_seed(ing_gen *g, uint32_t which, uint32_t place);
void ing_gen_random_functions(ing_gen *g); /* if they are wanted, to out */

/* ---- llvm_math.c ------------------------------------------------------------------ */
/* Whether the vector library has it and may be used. */
bool ing_gen_has_vector(const ing_gen *g, uint32_t op);
/* Does it become a call of the vector library? Powers with some constant exponents are products and roots. */
bool ing_gen_calls_vector(const ing_gen *g, const ing_ir_func *f, const ing_ir_inst *i);
/* Does the instruction at hand call the vector library (VEC7)? */
bool ing_gen_takes_vector(const ing_gen *g, uint32_t op, ing_dtype t);
ing_gen_txt ing_gen_vector_call(ing_gen *g, uint32_t op, ing_dtype t, ing_gen_txt a,
                                ing_gen_txt b);
/* Bits of vectors, if a function was called; 0: none was (VEC5). */
uint32_t ing_gen_vector_width(const ing_gen *g);
void ing_gen_vector_functions(ing_gen *g); /* those that were wanted, to out */

/* ---- llvm_divmod.c ---------------------------------------------------------------- */
/* `//` or `%` of f32 or f64. */
ing_gen_txt ing_gen_divmod_call(ing_gen *g, ing_op op, ing_dtype t, ing_gen_txt a,
                                ing_gen_txt b);
void ing_gen_divmod_functions(ing_gen *g); /* those that were wanted, to out */

/* ---- llvm_fuse.c ------------------------------------------------------------------ */
/* Writes a sum as fused operations if it is one of products; else false. */
bool ing_gen_fused(ing_gen *g, uint32_t id, ing_gen_txt *out);

/* ---- llvm_op.c --------------------------------------------------------------------- */
bool ing_gen_value_op(ing_gen *g, uint32_t id);
/* Result of `op` on operands of scalar type t, `b` unused by unary ones; b_const is the
 * instruction of b when that is a CONST, else NULL. */
ing_gen_txt ing_gen_arith(ing_gen *g, ing_op op, ing_dtype t, ing_gen_txt a,
                          ing_gen_txt b, const ing_ir_inst *b_const);
ing_gen_txt ing_gen_cast(ing_gen *g, ing_dtype from, ing_dtype to, ing_gen_txt a);
void ing_gen_pow_functions(ing_gen *g); /* those that were wanted, to out */

#endif
