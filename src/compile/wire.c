/* The wire between this process and a helper: one request, one answer, in bounded time.
 * Called by helper.c with no lock held. The other end is a process of its own, so whatever
 * comes is foreign: a header that is not as below ends the conversation, and nothing is
 * reserved that the header does not allow. Must never raise SIGPIPE.
 *
 * Format, version 1. One socket per helper, its descriptor 3. Each message is a header
 * of 16 bytes, little-endian, then `options` and `body`:
 *
 *   0  4  magic "INGH"
 *   4  2  version, 1
 *   6  2  kind: 1 compile (parent), 2 object, 3 error, 4 ready (helper)
 *   8  4  bytes of options: a text line for kind 1, else 0
 *  12  4  bytes of body: IR text, object, or the text of the error
 *
 * One answer per request, in order; both parts together are at most 64 MiB. A server's
 * first message is 4, without body: it has a process for this connection. */
#include "compile/compile_int.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum {
    HEADER_BYTES = 16,
    VERSION = 1,
    KIND_COMPILE = 1,
    KIND_OBJECT = 2,
    KIND_ERROR = 3,
    KIND_READY = 4,
};

/* Waits until the other end can be read from or written to; false when its time is over. */
static bool ready(ing_wire *w, short events) {
    struct pollfd p = {.fd = w->fd, .events = events};
    for (;;) {
        uint64_t now = w->end ? ing_os_now_ns() : 0;
        w->late = w->end && now >= w->end;
        if (w->late) return false;
        uint64_t left = w->end ? (w->end - now) / 1000000 + 1 : 0;
        int ms = !w->end ? -1 : left > INT_MAX ? INT_MAX : (int)left;
        int n = poll(&p, 1, ms);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return false;
    }
}

static bool send_all(ing_wire *w, const void *p, size_t n) {
    const uint8_t *at = p;
    while (n > 0) {
        if (!ready(w, POLLOUT)) return false;
        ssize_t k = send(w->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (k <= 0) return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static bool recv_all(ing_wire *w, void *p, size_t n) {
    uint8_t *at = p;
    while (n > 0) {
        if (!ready(w, POLLIN)) return false;
        ssize_t k = recv(w->fd, at, n, MSG_DONTWAIT);
        if (k < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (k <= 0) return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static void put_le(uint8_t *p, uint32_t v, int bytes) {
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get_le(const uint8_t *p, int bytes) {
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint32_t)p[i] << 8 * i;
    return v;
}

bool ing_wire_ask(ing_wire *w, const char *options, const uint8_t *body, size_t n) {
    uint8_t head[HEADER_BYTES] = "INGH";
    size_t n_options = strlen(options);
    put_le(head + 4, VERSION, 2);
    put_le(head + 6, KIND_COMPILE, 2);
    put_le(head + 8, (uint32_t)n_options, 4);
    put_le(head + 12, (uint32_t)n, 4);
    return send_all(w, head, sizeof head) && send_all(w, options, n_options) &&
           send_all(w, body, n);
}

/* Kind and size of the answer that begins here; 0: not one. */
static uint32_t read_head(ing_wire *w, uint32_t *size) {
    uint8_t head[HEADER_BYTES];
    if (!recv_all(w, head, sizeof head)) return 0;
    uint32_t kind = get_le(head + 6, 2);
    *size = get_le(head + 12, 4);
    bool known = kind >= KIND_OBJECT && kind <= KIND_READY;
    return memcmp(head, "INGH", 4) == 0 && get_le(head + 4, 2) == VERSION && known &&
                   get_le(head + 8, 4) == 0 && *size <= ING_WIRE_MAX
               ? kind
               : 0;
}

bool ing_wire_greeted(ing_wire *w) {
    uint32_t size = 0;
    return read_head(w, &size) == KIND_READY && size == 0;
}

ing_status ing_wire_answer(ing_wire *w, ing_bytes *object, ing_err *e) {
    uint32_t size = 0, kind = read_head(w, &size);
    if (kind != KIND_OBJECT && kind != KIND_ERROR) return ING_DECLINED;
    ing_bytes answer;
    ing_bytes_init(&answer);
    ing_bytes *to = kind == KIND_OBJECT ? object : &answer;
    ing_status r = ING_OK;
    if (!ing_bytes_reserve(to, size + (size_t)1)) {
        to->failed = true;
        r = ING_DECLINED; /* the answer stays unread: this helper is of no more use */
    } else if (!recv_all(w, to->at + to->len, size)) {
        r = ING_DECLINED;
    } else {
        to->len += size;
        to->at[to->len] = 0;
        if (kind == KIND_ERROR)
            r = ing_fail(e, ING_COMPILE, "%s", (const char *)answer.at);
    }
    ing_bytes_fini(&answer);
    return r;
}
