"""Checks that the engine has no mutable globals but those that tools/globals.allow lists
with a reason, each commented `registry:` where it is defined.

Reads the symbol tables of the built objects, so that no way of writing a definition in C
escapes it. Constant data that only needs relocation (.data.rel.ro) is not mutable.

    check_globals.py <library.a or object or extension .so> ... [--root R] [--allow FILE]
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUTABLE = re.compile(r"^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)(?!\.rel\.ro)")
ROW = re.compile(r"^[0-9a-f]+ (.{7}) (\S+)\t([0-9a-f]+)\s+(?:\.hidden |\.internal )?(\S+)$")
MEMBER = re.compile(r"^(\S+?):\s+file format")
# What the toolchain adds to each object or shared library.
TOOLCHAIN = re.compile(
    r"^(completed\.\d+|__dso_handle|__TMC_END__|_edata|_end|__bss_start|data_start|"
    r"__data_start|__asan_.*|__odr_asan.*|__ubsan.*|\.L.*|__func__\..*)$"
)


def mutable_symbols(path):
    """(member, symbol, section) of each object symbol in a writable section."""
    out = subprocess.run(
        ["objdump", "-t", str(path)], check=True, capture_output=True, text=True
    ).stdout
    member = path.name
    for line in out.splitlines():
        head = MEMBER.match(line)
        if head:
            member = head[1]
            continue
        row = ROW.match(line)
        if not row or int(row[3], 16) == 0:
            continue
        flags, section, name = row[1], row[2], row[4]
        # O = data object; thread-local ones carry no O, a common symbol has only its section.
        is_data = "O" in flags or section == "*COM*" or section.startswith(".t")
        if is_data and MUTABLE.match(section) and not TOOLCHAIN.match(name):
            yield member, name, section


def plain(name):
    """A static inside a function is `name.123` in the object."""
    return re.sub(r"\.\d+$", "", name)


def read_allow(path):
    """symbol -> (source file, reason)."""
    allowed = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) < 3:
            raise SystemExit(f"{path}:{number}: expected: source symbol reason")
        allowed[parts[1]] = (parts[0], parts[2])
    return allowed


def check_allow(root, allowed):
    """Each allowed symbol is defined in its file below a comment with `registry:`."""
    for name, (source, _) in sorted(allowed.items()):
        path = root / source
        if not path.exists():
            yield f"tools/globals.allow: {source} does not exist"
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        at = [i for i, s in enumerate(lines) if re.search(rf"\b{re.escape(name)}\b", s)]
        if not any("registry:" in s for i in at for s in lines[max(0, i - 6) : i + 1]):
            yield f"{source}: {name} is allowed but its definition has no `registry:` comment"


def check(objects, root, allow_file):
    allowed = read_allow(allow_file)
    found = list(check_allow(root, allowed))
    for path in objects:
        for member, name, section in mutable_symbols(path):
            if plain(name) not in allowed:
                found.append(f"{path.name}({member}): {name} is mutable ({section})")
    return found


def main(argv):
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("objects", nargs="+", type=pathlib.Path)
    ap.add_argument("--root", type=pathlib.Path, default=ROOT)
    ap.add_argument("--allow", type=pathlib.Path)
    args = ap.parse_args(argv[1:])
    allow = args.allow or args.root / "tools/globals.allow"
    found = check(args.objects, args.root, allow)
    print("\n".join(found) if found else "globals: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
