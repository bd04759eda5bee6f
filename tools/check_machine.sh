#!/bin/sh
# Says in one message everything that a build needs and this machine lacks, by the name of
# the Debian package. Called by the Makefile before anything else: $1 is the Python to use.
python=${1:-python3}
missing=
lack() { # lack <package> <what>
    missing="$missing $1"
    echo "missing: $2 (Debian package: $1)" >&2
}

if ! command -v "$python" >/dev/null 2>&1; then
    lack python3 "$python, Python 3.10 or later"
    lack python3-dev "Python's C headers"
    lack python3-venv "Python's venv module"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "missing: Python 3.10 or later; $python is $("$python" --version 2>&1)" >&2
    echo "         name another one with: make PYTHON=/path/to/python3 ..." >&2
    exit 1
else
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' \
        || lack python3-dev "Python's C headers (Python.h)"
    "$python" -c 'import venv, ensurepip' 2>/dev/null \
        || lack python3-venv "Python's venv module with pip"
fi

compiler=${CC:-}
if [ -z "$compiler" ]; then
    for compiler in cc gcc clang; do
        command -v "$compiler" >/dev/null 2>&1 && break
    done
fi
if ! command -v "${compiler%% *}" >/dev/null 2>&1; then
    lack gcc "a C compiler"
    lack libc6-dev "the C library's headers"
else
    # A compiler without the C library's headers is a common half-installation.
    work=$(mktemp -d) || exit 1
    printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' >"$work/a.c"
    $compiler -o "$work/a" "$work/a.c" >/dev/null 2>&1 \
        || lack libc6-dev "the C library's headers ($compiler cannot build a program)"
    rm -rf "$work"
fi

if [ -n "$missing" ]; then
    echo "try: sudo apt-get install$missing" >&2
    exit 1
fi
