/* One harness under libFuzzer; the build names it in FUZZ_ALONE. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    FUZZ_ALONE(p, n);
    return 0;
}
