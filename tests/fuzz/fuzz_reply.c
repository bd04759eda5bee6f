/* What a helper or the remote's process answers: any bytes on the socket, then its end. */
#include "fuzz.h"
#include "compile/compile_int.h"

#include <sys/socket.h>
#include <unistd.h>

void fuzz_reply(const uint8_t *p, size_t n) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return;
    /* What the socket does not hold is cut off, as by a process that dies. */
    (void)!send(pair[1], p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(pair[1]);
    ing_wire wire = {.fd = pair[0]};
    ing_bytes object;
    ing_err e;
    ing_bytes_init(&object);
    ing_err_init(&e);
    for (;;) { /* answers one after the other, until there is no more */
        ing_status s = ing_wire_answer(&wire, &object, &e);
        FUZZ_CHECK(s == ING_OK || s == ING_COMPILE || s == ING_DECLINED);
        FUZZ_CHECK(object.len <= n);
        if (s == ING_DECLINED) break;
        if (s == ING_COMPILE) {
            ing_err_fini(&e);
            ing_err_init(&e);
        }
    }
    ing_err_fini(&e);
    ing_bytes_fini(&object);
    close(pair[0]);
}
