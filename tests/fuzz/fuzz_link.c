/* Objects under the linker, as a helper sends them. What it accepts, the loader's check
 * must accept too. */
#include "fuzz.h"
#include "image/image_int.h"

#include <string.h>

void fuzz_link(const uint8_t *p, size_t n) {
    ing_bytes image;
    ing_image_plan plan;
    ing_bytes_init(&image);
    ing_status s = ing_image_link(&(ing_object){p, n}, 1, "label", &image, NULL);
    FUZZ_CHECK(s == ING_OK || s == ING_FORMAT || s == ING_COMPILE);
    if (s == ING_OK) {
        uint16_t machine;
        memcpy(&machine, p + 18, 2);
        s = ing_image_check(image.at, image.len, machine, 4096, &plan, NULL);
        FUZZ_CHECK(s == ING_OK);
    }
    ing_bytes_fini(&image);
}
