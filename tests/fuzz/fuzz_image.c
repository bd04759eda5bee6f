/* Images under the loader, from memory and as a mapped file; nothing in them is run. */
#include "fuzz.h"
#include "image/image.h"

#include <sys/mman.h>
#include <unistd.h>

static void load(int fd, const uint8_t *p, size_t n) {
    ing_image *image = NULL;
    ing_status s = ing_image_load(fd, p, n, &image, NULL);
    FUZZ_CHECK((s == ING_OK) == (image != NULL));
    FUZZ_CHECK(s == ING_OK || s == ING_FORMAT);
    if (image) FUZZ_CHECK(ing_image_entry(image));
    ing_image_unref(image);
}

void fuzz_image(const uint8_t *p, size_t n) {
    load(-1, p, n);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, p, n) == (ssize_t)n) {
        load(fd, NULL, n);
        load(fd, NULL, n + 1); /* the file is shorter than it is said to be */
    }
    close(fd);
}
