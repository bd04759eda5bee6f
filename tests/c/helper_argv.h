/* The command line of a real helper, as ingot/_helper.py gives it for the interpreter in
 * INGOT_TEST_PYTHON; for the C tests that compile. */
#ifndef ING_TEST_HELPER_ARGV_H
#define ING_TEST_HELPER_ARGV_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct helper_command {
    char text[16384];
    const char *argv[32];
    int n;
} helper_command;

/* False (and a line that says so) when there is no interpreter or it lacks llvmlite. */
static bool helper_command_get(helper_command *c) {
    const char *python = getenv("INGOT_TEST_PYTHON"), *root = getenv("INGOT_TEST_ROOT");
    char cmd[4096];
    memset(c, 0, sizeof *c);
    if (!python || !root) {
        printf("not run: INGOT_TEST_PYTHON or INGOT_TEST_ROOT is not set\n");
        return false;
    }
    snprintf(cmd, sizeof cmd,
             "'%s' -I -c 'import runpy, sys; h = runpy.run_path(sys.argv[1])\n"
             "a = h[\"argv\"]() if h[\"llvmlite_dirs\"]() else []\n"
             "sys.stdout.write(\"\\1\".join(a))' '%s/ingot/_helper.py'",
             python, root);
    FILE *f = popen(cmd, "r");
    size_t n = f ? fread(c->text, 1, sizeof c->text - 1, f) : 0;
    if (f) pclose(f);
    if (n == 0) {
        printf("not run: no llvmlite in %s\n", python);
        return false;
    }
    for (char *p = c->text; p && c->n < 31;) {
        c->argv[c->n++] = p;
        p = strchr(p, 1);
        if (p) *p++ = 0;
    }
    return true;
}

#endif
