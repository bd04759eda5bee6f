/* Random numbers: the definition that the interpreter runs and that native code repeats
 * (src/gen/llvm_service.c). Philox4x32-10 of Salmon and others (2011): a keyed function of
 * a counter, so a number depends on where it is drawn (launch, place, iteration, draw) and
 * never on threads, chunks or the instruction set. No state but the context's own. */
#include "gen/abi.h"
#include "ir/ir.h"

#include <string.h>

void ing_ir_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c[4], k0 = key[0], k1 = key[1];
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)ING_PHILOX_M0 * c[0], b = (uint64_t)ING_PHILOX_M1 * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        memcpy(c, next, sizeof c);
        k0 += ING_PHILOX_W0;
        k1 += ING_PHILOX_W1;
    }
    memcpy(out, c, sizeof c);
}

/* The counter is the draw, the stream and the place. The upper half of the draw shares a
 * word with the place: more than 2^32 draws in one iteration still differ. */
static uint64_t draw_bits(struct ing_ctx *ctx) {
    uint64_t draw = ctx->draw++, top = ctx->place + ((draw >> 32) << 16);
    uint32_t counter[4] = {(uint32_t)draw, (uint32_t)ctx->stream,
                           (uint32_t)(ctx->stream >> 32), (uint32_t)top};
    uint32_t key[2] = {(uint32_t)ctx->key, (uint32_t)(ctx->key >> 32)}, out[4];
    ing_ir_philox(counter, key, out);
    return (uint64_t)out[0] | (uint64_t)out[1] << 32;
}

uint64_t ing_ir_random(struct ing_ctx *ctx, ing_dtype t) {
    uint64_t bits = draw_bits(ctx);
    if (!ing_dtype_is_float(t)) return ing_ir_norm(t, bits >> (64 - ing_dtype_bits(t)));
    /* As many bits as the type has: exact, and 1 is never reached. */
    uint32_t keep = t == ING_F64 ? 53 : t == ING_F32 ? 24 : 11;
    double d = (double)(bits >> (64 - keep)) / (double)(UINT64_C(1) << keep);
    uint64_t word;
    memcpy(&word, &d, sizeof word);
    return ing_ir_eval_cast(ING_F64, t, word);
}
