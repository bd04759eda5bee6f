/* A folder of its own for a test, and that nothing is left of it: no file, no descriptor. */
#ifndef ING_TEST_FOLDER_H
#define ING_TEST_FOLDER_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static inline void folder_make(char *root) {
    umask(022);
    if (!mkdtemp(root)) abort();
}

static inline int folder_remove_one(const char *path, const struct stat *st, int type,
                                    struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline void folder_remove(const char *root) {
    nftw(root, folder_remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

static inline int open_descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

#endif
