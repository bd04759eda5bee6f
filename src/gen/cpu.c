/* Code generation for this processor: the triple, the layout, and the services that code
 * calls by name. Read by llvm.c and by the key of images. Nothing else names the machine. */
#include "gen/gen_int.h"

#include <stddef.h>
#include <string.h>

/* A poll writes the context's fuel, and what only the runtime sees. So what was read before it stays in
 * registers: 4,000 particles with forces from the lists of 27 cells, 32 in each, take 5.4 ms instead of 10.5.
 * Prints and `room` have no such limits: they read and free what code has written. */
#define POLL_TOUCHES " memory(argmem: readwrite, inaccessiblemem: readwrite)"

/* The pointers stand in the context, and these functions vanish by inlining. As imports they
 * would give every image with a poll a table to be filled: 8 us more to load it, and no
 * running where it lies in a pack (docs/internals/images.md). */
static void put_service(ing_bytes *out, const char *type, const char *name,
                        const char *params, const char *args, size_t pointer,
                        const char *touches) {
    ing_bytes_printf(out,
                     "\ndefine internal %s @%s(%s) alwaysinline nounwind {\n"
                     "  %%at = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
                     "  %%fn = load ptr, ptr %%at, align 8, !invariant.load !%d\n",
                     type, name, params, pointer, ING_GEN_MD_EMPTY);
    if (strcmp(type, "void") == 0)
        ing_bytes_printf(out, "  call void %%fn(%s) nounwind%s\n  ret void\n}\n", args,
                         touches);
    else
        ing_bytes_printf(out, "  %%r = call %s %%fn(%s) nounwind%s\n  ret %s %%r\n}\n",
                         type, args, touches, type);
}

static void put_services(ing_bytes *out, bool poll, bool print, bool room) {
    if (poll)
        put_service(out, "i32", ING_ABI_POLL, "ptr %ctx", "ptr %ctx",
                    offsetof(ing_ctx, poll), POLL_TOUCHES);
    if (print)
        put_service(out, "void", ING_ABI_PRINT, "ptr %ctx, ptr %printed",
                    "ptr %ctx, ptr %printed", offsetof(ing_ctx, print), "");
    if (room)
        put_service(out, "i32", ING_ABI_ROOM, "ptr %ctx, i64 %bytes, i32 %grow",
                    "ptr %ctx, i64 %bytes, i32 %grow", offsetof(ing_ctx, room), "");
}

static const ing_gen_level levels[] = {
    {"x86-64-v3", 256, true},
    {"x86-64-v4", 512, true},
    {NULL, 0, false},
};

const ing_gen_target ing_gen_cpu = {
    .triple = "x86_64-unknown-linux-gnu",
    .layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:"
              "64-S128",
    /* LLVM takes scatters for cheaper than they are: `x[i] += 0.001 * v[i]` over 8,192 particles
     * of x and v in the same cells takes 6.5 us without, 17.7 with them (EPYC of AVX-512). */
    .features = "+prefer-no-scatter",
    .level = "x86-64-v2",
    .levels = levels,
    .put_services = put_services,
};
