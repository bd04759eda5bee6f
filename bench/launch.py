"""Host time of one launch of a kernel that does next to nothing, and of whole small kernels.

    launch.py [--json FILE] [--repeat N] [--quadrants-python PATH] [--peers-python PATH]
    launch.py --count            instructions per call against launch_counts.json
    launch.py --count --record   writes that file

The same launches (_launch_cases.py) run on Quadrants and, where the peer has the notion, on
Numba and Warp (_launch_peers.py), each in a process of its own right after ours. Times are the
best of many rounds. Instructions are counted by callgrind: the same on a busy machine, so a
regression of a few percent shows. Needs valgrind with its headers, and a C compiler.
"""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

import _peers

COUNTS = _peers.HERE / "launch_counts.json"
TOLERANCE = 0.03  # of hash order and alignment; a real change is more
LEVEL = "x86-64-v3"  # what valgrind can run

MARKS = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""


def run(command, **extra):
    env = dict(os.environ, PYTHONHASHSEED="0", **extra)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    raise SystemExit(f"no result from {command}\n{done.stdout}{done.stderr}")


def measure(python, module, rounds, repeat):
    return run([python, _peers.HERE / "_launch_cases.py", "time", module, rounds, repeat])


def measure_peer(python, module, rounds, repeat):
    try:
        return run([python, _peers.HERE / "_launch_peers.py", module, rounds, repeat])
    except SystemExit as e:
        print(f"not run: {module} ({str(e).strip().splitlines()[-1]})")
        return {}


def times(args):
    ours = measure(sys.executable, "ingot", 2_000, args.repeat)
    peers = dict.fromkeys(("quadrants", "numba", "warp"), {})
    if args.quadrants_python:
        peers["quadrants"] = measure(args.quadrants_python, "quadrants", 200, args.repeat)
    else:
        print("not run: Quadrants (--quadrants-python PATH names one)")
    if args.peers_python:
        for module in ("numba", "warp"):
            peers[module] = measure_peer(args.peers_python, module, 500, args.repeat)
    else:
        print("not run: Numba, Warp (--peers-python PATH names one)")
    rows = []
    for name, ns in ours.items():
        row = {"case": name, "ingot_ns": ns}
        for peer, measured in peers.items():
            row[peer + "_ns"] = measured.get(name)
            row[peer] = measured[name] / ns if name in measured else None
        rows.append(row)
    columns = [("case", "launch with", ""), ("ingot_ns", "Ingot ns", ".0f")]
    for peer in peers:
        columns += [(peer + "_ns", peer.title() + " ns", ".0f"), (peer, "ratio", ".1f")]
    _peers.show("launch: host time of one call", columns, rows)
    _peers.write(args.json, "launch", rows)


def counted(folder):
    """{case: instructions per call}, of a warm process."""
    source, library = folder / "marks.c", folder / "marks.so"
    source.write_text(MARKS)
    compiler = os.environ.get("CC", "gcc").split()
    subprocess.run([*compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    cases = _peers.HERE / "_launch_cases.py"
    extra = {"INGOT_CACHE_DIR": str(folder / "cache"), "INGOT_CPU_LEVEL": LEVEL}
    run([sys.executable, cases, "time", "ingot", 1, 1], **extra)  # compiles
    out = folder / "counts"
    rounds = run(
        ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable,
         cases, "count", "ingot", library], **extra,
    )["rounds"]
    found = {}
    for path in folder.glob("counts.*"):
        text = path.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: ?(.*)$", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if name and total:
            found[name[1].strip()] = int(total[1]) / rounds
    empty = found.pop("empty")
    found.pop("start")
    return {name: round(total - empty) for name, total in found.items()}


def counts(args):
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as name:
        now = counted(pathlib.Path(name))
    python = platform.python_version()
    known = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    old = known.get("instructions", {})
    rows = [
        {"case": case, "now": n, "recorded": old.get(case),
         "change": 100 * (n / old[case] - 1) if case in old else None}
        for case, n in sorted(now.items(), key=lambda item: item[1])
    ]
    columns = [("case", "launch with", ""), ("now", "instructions", ",d"),
               ("recorded", "recorded", ",d"), ("change", "change %", "+.1f")]
    _peers.show(f"launch: instructions of one call, Python {python}", columns, rows)
    if args.record:
        ordered = {row["case"]: row["now"] for row in rows}
        text = {"python": python, "level": LEVEL, "instructions": ordered}
        COUNTS.write_text(json.dumps(text, indent=1) + "\n")
        return
    if known.get("python", python).rsplit(".", 1)[0] != python.rsplit(".", 1)[0]:
        print(f"recorded with Python {known['python']}: not compared")
        return
    worse = [r["case"] for r in rows if r["change"] is not None and r["change"] > 100 * TOLERANCE]
    if worse:
        raise SystemExit("more instructions than recorded: " + ", ".join(worse))


def main():
    args = _peers.arguments(
        __doc__, quadrants_python={"help": "an interpreter with Quadrants"},
        peers_python={"help": "an interpreter with Numba and Warp"},
        count={"action": "store_true", "help": "instructions instead of times"},
        record={"action": "store_true", "help": "with --count: write what was counted"},
    )
    counts(args) if args.count else times(args)


if __name__ == "__main__":
    main()
