/* A connection to the server of this user and build (ingot/_server.py), which answers as a helper
 * does and has LLVM loaded. Called by helper.c with no lock held. Whatever is wrong, with the
 * folder, its owner, the socket or who listens, means no connection, and a helper of our own is
 * started. Must never wait: the server's greeting is read when it is needed. */
#include "compile/compile_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The folder is this user's alone: nobody else can have put the socket there. */
static int open_folder(const char *path) {
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0) return -1;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 0777) == 0700)
        return fd;
    close(fd);
    return -1;
}

static bool is_ours(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
           n == sizeof peer && peer.uid == geteuid();
}

int ing_server_connect(const char *folder, const char *name) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int dir = open_folder(folder);
    if (dir < 0) return -1;
    /* A socket's address is short; that of the folder may not be. */
    int n = snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
    int fd = n < 0 || (size_t)n >= sizeof at.sun_path
                 ? -1
                 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0 || !is_ours(fd))) {
        close(fd);
        fd = -1;
    }
    close(dir);
    return fd;
}
