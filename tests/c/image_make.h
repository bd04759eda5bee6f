/* Objects and files for the tests of src/image: a temporary directory, the C compiler
 * (CC, else cc), the generator tests/py/image_objects.py under INGOT_TEST_PYTHON (else
 * python3). A missing llvmlite is reported as "not run", never passed over. */
#ifndef ING_IMAGE_MAKE_H
#define ING_IMAGE_MAKE_H

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "check.h"
#include "image/image.h"

static char make_dir[64];

static inline const char *make_env(const char *name, const char *otherwise) {
    const char *v = getenv(name);
    return v && *v ? v : otherwise;
}

static inline void make_begin(void) {
    strcpy(make_dir, "/tmp/ingot_image_XXXXXX");
    if (!mkdtemp(make_dir)) {
        perror("mkdtemp");
        exit(1);
    }
}

static inline void make_path(char *out, size_t n, const char *name) {
    snprintf(out, n, "%s/%s", make_dir, name);
}

static inline void make_end(void) {
    DIR *d = opendir(make_dir);
    char path[512];
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", make_dir, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    if (d) closedir(d);
    rmdir(make_dir);
}

static inline void make_write(const char *name, const void *p, size_t n) {
    char path[512];
    make_path(path, sizeof path, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(p, 1, n, f) == n);
    if (f) fclose(f);
}

static inline ing_bytes make_read(const char *name) {
    char path[512];
    ing_bytes b;
    ing_bytes_init(&b);
    make_path(path, sizeof path, name);
    CHECK(ing_os_read(path, 64 << 20, &b, NULL) == ING_OK);
    return b;
}

/* Exit status of a shell command. */
static inline int make_run(const char *command) {
    int s = system(command);
    return WIFEXITED(s) ? WEXITSTATUS(s) : -1;
}

static inline void make_not_run(const char *what) {
    fprintf(stderr, "not run: %s\n", what);
    const char *notes = getenv("INGOT_NOT_RUN_FILE");
    FILE *f = notes ? fopen(notes, "a") : NULL;
    if (f) {
        fprintf(f, "%s\n", what);
        fclose(f);
    }
}

static inline bool make_llvm_objects(void) {
    char root[512], command[2048];
    snprintf(root, sizeof root, "%s", __FILE__);
    char *slash = strrchr(root, '/');
    if (slash)
        strcpy(slash, "/../..");
    else
        strcpy(root, "../..");
    snprintf(command, sizeof command, "'%s' '%s/tests/py/image_objects.py' '%s'",
             make_env("INGOT_TEST_PYTHON", "python3"),
             make_env("INGOT_TEST_ROOT", root), make_dir);
    int status = make_run(command);
    if (status == 77)
        make_not_run("images from LLVM objects: llvmlite is not installed");
    CHECK(status == 0 || status == 77);
    return status == 0;
}

static inline bool make_c_object(const char *name, const char *source,
                                 const char *flags) {
    char command[2048], file[128];
    snprintf(file, sizeof file, "%s.c", name);
    make_write(file, source, strlen(source));
    snprintf(command, sizeof command,
             "%s -c -std=c11 -O2 -fno-stack-protector %s -o '%s/%s.o' '%s/%s.c'",
             make_env("CC", "cc"), flags, make_dir, name, make_dir, name);
    bool ok = make_run(command) == 0;
    CHECK(ok);
    return ok;
}

/* An image of C text. */
static inline ing_bytes make_image(const char *name, const char *source) {
    ing_bytes image, obj;
    char file[64];
    ing_bytes_init(&image);
    snprintf(file, sizeof file, "%s.o", name);
    make_c_object(name, source, "-fPIC");
    obj = make_read(file);
    CHECK(ing_image_link(&(ing_object){obj.at, obj.len}, 1, name, &image, NULL) ==
          ING_OK);
    ing_bytes_fini(&obj);
    return image;
}

#endif
