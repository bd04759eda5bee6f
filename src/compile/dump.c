/* What kernels look like on the way, as text for people: print_ir and its like (ingot/_init.py). Called by
 * engine.c for a build that asks for it; helpers make what LLVM makes. Nothing of it is kept. */
#include "compile/compile_int.h"

static void head(const ing_dump *d, const char *what) {
    ing_bytes_printf(d->out, "; ==== %s: %s", d->label ? d->label : "?", what);
    if (d->task != UINT32_MAX)
        ing_bytes_printf(d->out, ", task %u of %u", d->task + 1, d->tasks);
    ing_bytes_puts(d->out, "\n");
}

void ing_dump_ir(const ing_dump *d, const ing_ir_mod *m, const char *what) {
    head(d, what);
    ing_ir_print(m, 0, d->out);
    ing_bytes_puts(d->out, "\n");
}

/* The text that a helper makes of LLVM IR: `emit` says which. */
static ing_status made(ing_helpers *h, const ing_dump *d, const ing_gen_options *gen,
                       const char *emit, const ing_bytes *text, ing_err *e) {
    ing_bytes options, reply;
    ing_bytes_init(&options);
    ing_bytes_init(&reply);
    ing_gen_helper_options(gen, &options);
    ing_bytes_printf(&options, " emit=%s", emit);
    ing_bytes_u8(&options, 0);
    ing_status s = options.failed ? ing_fail(e, ING_MEMORY, "no memory")
                                  : ing_helpers_compile(h, (const char *)options.at,
                                                        text->at, text->len, &reply, e);
    if (s == ING_OK) ing_bytes_put(d->out, reply.at, reply.len);
    ing_bytes_puts(d->out, "\n");
    ing_bytes_fini(&options);
    ing_bytes_fini(&reply);
    return s;
}

static ing_status dump_text(ing_helpers *h, const ing_dump *d, const ing_bytes *text,
                            const ing_gen_options *gen, ing_err *e) {
    ing_status s = ING_OK;
    if (d->what & ING_DUMP_LLVM) {
        head(d, "LLVM IR");
        ing_bytes_put(d->out, text->at, text->len);
        ing_bytes_puts(d->out, "\n");
    }
    if (h && d->what & ING_DUMP_OPTIMISED) {
        head(d, "LLVM IR, optimised");
        s = made(h, d, gen, "llvm", text, e);
    }
    if (s == ING_OK && h && d->what & ING_DUMP_ASM) {
        head(d, "machine code");
        s = made(h, d, gen, "asm", text, e);
    }
    return s;
}

/* Part by part. */
ing_status ing_dump_task(ing_helpers *h, const ing_dump *d, const ing_gen_texts *texts,
                         const ing_gen_options *gen, ing_err *e) {
    for (uint32_t i = 0; i < texts->len; i++)
        ING_TRY(dump_text(h, d, &texts->at[i], gen, e));
    return ING_OK;
}
