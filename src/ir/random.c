/* Random numbers: the definition that the interpreter runs and that native code repeats
 * (src/gen/llvm_random.c). A number is a function of where it is drawn (launch, place, iteration,
 * draw), never of threads, chunks or the instruction set. No state but the context's own.
 *
 *  RAND1 Two words per task: Philox4x32-10 of Salmon and others (2011), of key and place.
 *  RAND2 An iteration starts at s, the finaliser of SplitMix64 (Steele and others, 2014) of the first
 *     word and the index, a bijection: no two iterations have the same s.
 *  RAND3 Draw d of it is that finaliser of s + d steps, with s and the second word added between its
 *     two halves: where the rows of two iterations cross, their numbers differ. */
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

uint64_t ing_ir_mix(uint64_t x, uint64_t mask) {
    x = (x ^ x >> 30) * ING_MIX_A ^ mask;
    x = (x ^ x >> 27) * ING_MIX_B;
    return x ^ x >> 31;
}

/* What a task starts from, of the key (seed and launch) and its place. */
static void seeds(const struct ing_ctx *ctx, uint64_t place, uint64_t out[2]) {
    uint32_t counter[4] = {(uint32_t)place, (uint32_t)(place >> 32), 0, 0};
    uint32_t key[2] = {(uint32_t)ctx->key, (uint32_t)(ctx->key >> 32)}, w[4];
    ing_ir_philox(counter, key, w);
    out[0] = (uint64_t)w[0] | (uint64_t)w[1] << 32;
    out[1] = (uint64_t)w[2] | (uint64_t)w[3] << 32;
}

uint64_t ing_ir_seed(const struct ing_ctx *ctx, uint64_t place, uint32_t which) {
    uint64_t seed[2];
    seeds(ctx, place, seed);
    return seed[which];
}

void ing_ir_random_begin(struct ing_ctx *ctx, uint64_t index) {
    uint64_t seed[2];
    seeds(ctx, ctx->place, seed);
    ctx->draw = ing_ir_mix(seed[0] + index * ING_MIX_STEP, 0);
    ctx->stream = ctx->draw ^ seed[1];
}

uint64_t ing_ir_random(struct ing_ctx *ctx, ing_dtype t) {
    ctx->draw += ING_MIX_STEP;
    uint64_t bits = ing_ir_mix(ctx->draw, ctx->stream);
    if (!ing_dtype_is_float(t)) return ing_ir_norm(t, bits >> (64 - ing_dtype_bits(t)));
    /* As many bits as the type has: exact, and 1 is never reached. */
    uint32_t keep = t == ING_F64 ? 53 : t == ING_F32 ? 24 : 11;
    double d = (double)(bits >> (64 - keep)) / (double)(UINT64_C(1) << keep);
    uint64_t word;
    memcpy(&word, &d, sizeof word);
    return ing_ir_eval_cast(ING_F64, t, word);
}
