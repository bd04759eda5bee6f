/* Forward mode. Not there yet: it refuses. */
#include "ad/ad.h"

ing_status ing_ad_forward(ing_ir_mod *m, const uint32_t *companion, ing_err *e) {
    (void)m, (void)companion;
    return ing_fail(e, ING_COMPILE, "kernels are not differentiated yet");
}
