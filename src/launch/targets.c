/* The table of targets: which functions compile, load and run code on each. Read by src/py
 * when settings change. A target is added by a row here, its ing_gen_target in src/gen and
 * its ing_home in src/rt. */
#include "launch/target.h"

#include "rt/mock.h"
#include "rt/rt.h"

static ing_status load_bytes(const uint8_t *image, size_t n, ing_image **out,
                             ing_err *e) {
    return ing_image_load(-1, image, n, out, e);
}

static ing_machine machine(void) {
    return (ing_machine){ing_image_isa_level(), ing_image_vector_math()};
}

/* clang-format off */
#define CPU_CODE                                                      \
    .gen = &ing_gen_cpu, .text = ing_gen_llvm, .machine = machine,    \
    .level = ing_image_isa_rung,                                      \
    .has_library = ing_image_vector_math_present,                     \
    .shape = ing_pass_run, .key = ing_gen_key,                        \
    .link = ing_image_link, .load = load_bytes,                       \
    .load_entry = ing_image_of_entry
/* clang-format on */

static const ing_target targets[ING_TARGET_N] = {
    [ING_TARGET_CPU] = {.name = "cpu",
                        CPU_CODE,
                        .home = &ing_home_cpu,
                        .run = ing_rt_run},
    [ING_TARGET_INTERP] = {.name = "interp",
                           .shape = ing_pass_run,
                           .home = &ing_home_cpu,
                           .run = ing_rt_run},
    /* The same images as the CPU's, so that none is compiled twice. */
    [ING_TARGET_MOCK] = {.name = "mock",
                         CPU_CODE,
                         .home = &ing_home_mock,
                         .run = ing_mock_run},
};

/* The interpreter without passes before it. */
static const ing_target as_lowered = {
    .name = "interp", .home = &ing_home_cpu, .run = ing_rt_run};

const ing_target *ing_target_chosen(const ing_settings *s) {
    int64_t id = s->at[ING_SET_target];
    if (id == ING_TARGET_INTERP && !s->at[ING_SET_interp_passes]) return &as_lowered;
    return &targets[id > 0 && id < ING_TARGET_N ? id : ING_TARGET_CPU];
}
