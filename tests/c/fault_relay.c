/* In the place of a helper's interpreter (INGOT_HELPER_PYTHON): carries bytes between the
 * channel of the process that asks and tests/py/fault_helper.py, whose socket FAULT_HELPER
 * names. A cold start then takes milliseconds, and tests can make thousands. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CHANNEL = 3 };

/* False at the end of either side. */
static int carry(int from, int to) {
    static char room[1 << 16];
    ssize_t n = read(from, room, sizeof room);
    if (n < 0 && errno == EINTR) return 1;
    for (ssize_t done = 0; n > 0 && done < n;) {
        ssize_t more = send(to, room + done, (size_t)(n - done), MSG_NOSIGNAL);
        if (more < 0) return 0;
        done += more;
    }
    return n > 0;
}

int main(void) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *name = getenv("FAULT_HELPER");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || !name ||
        snprintf(at.sun_path, sizeof at.sun_path, "%s", name) >=
            (int)sizeof at.sun_path ||
        connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror("fault_relay");
        return 1;
    }
    struct pollfd both[2] = {{.fd = CHANNEL, .events = POLLIN},
                             {.fd = fd, .events = POLLIN}};
    for (;;) {
        if (poll(both, 2, -1) < 0 && errno != EINTR) return 1;
        if (both[0].revents && !carry(CHANNEL, fd)) return 0;
        if (both[1].revents && !carry(fd, CHANNEL)) return 0;
    }
}
