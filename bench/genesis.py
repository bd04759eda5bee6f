"""Genesis on Ingot and on Quadrants: how long it takes to start, to step and to differentiate.

    genesis.py [--python P] [--only ROW,...] [--rounds N] [--stretches N] [--keep FOLDER] [--json FILE] [--plot FILE]

P has genesis-world, torch, quadrants and ingot; started from a folder without `ingot/`. Each row is
a scene: a franka arm on a plane, one or 512 environments, its tensors as ndarrays or as fields; and
a free box with gradients, 100 substeps and one backward pass. For each row both engines start with
an empty cache of kernels (cold), then N times with what they kept (warm), one after the other; the
last of these processes stay and step in turns, N stretches of some steps each. Times of a step are
CPU time, of starting wall time; of N the best. A cold start also has its CPU time after the imports, with
that of the processes it started: what others do on the machine changes it little. Memory is the largest resident size. What Ingot did is
told by its counters: tasks compiled, images mapped, helpers (LLVM is in those alone); Genesis' own
libraries map LLVM by themselves on both engines. What Genesis keeps of meshes is there from the
first process on. With --keep a row may be measured piece by piece: caches and numbers stay in FOLDER, an
engine whose cold start is among them is not started cold again, and `--rounds 0` leaves out the rest.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import _peers

ENGINES = ("ingot", "quadrants")
ROWS = {  # name: (environments, fields, gradients)
    "one environment": (0, False, False),
    "512 environments": (512, False, False),
    "one environment, fields": (0, True, False),
    "512 environments, fields": (512, True, False),
    "gradient of 100 substeps": (0, False, True),
}
SUBSTEPS = 100


# --- in a process of an engine ----------------------------------------------------------------


def arm(gs, envs):
    """A franka arm on a plane that moves to where it is told; what steps it."""
    import numpy as np

    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01), show_viewer=False)
    scene.add_entity(gs.morphs.Plane())
    robot = scene.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))
    begin = time.perf_counter()
    scene.build(n_envs=envs)
    built = time.perf_counter() - begin
    goal = 0.3 * np.sin(np.arange(robot.n_dofs)).astype(np.float32)
    robot.control_dofs_position(np.broadcast_to(goal, (*((envs,) if envs else ()), robot.n_dofs)).copy())
    return scene.step, built, lambda: robot.get_qpos().reshape(-1)[:9].tolist()


def box(gs):
    """A free box; a step is 100 substeps and the gradient of where it ends."""
    import torch

    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=1e-2, substeps=1, requires_grad=True, gravity=(0, 0, -1)),
        rigid_options=gs.options.RigidOptions(
            enable_collision=False, enable_self_collision=False, enable_joint_limit=False, disable_constraint=True
        ),
        show_viewer=False,
    )
    body = scene.add_entity(gs.morphs.Box(pos=(0, 0, 0), size=(0.1, 0.1, 0.2)))
    begin = time.perf_counter()
    scene.build()
    built = time.perf_counter() - begin
    start = torch.tensor([0.3, 0.1, 0.28], dtype=gs.tc_float, requires_grad=True)
    goal = torch.tensor([0.7, 1.0, 0.05], dtype=gs.tc_float)

    def run():
        start.grad = None
        scene.reset()
        body.set_pos(start)
        for _ in range(SUBSTEPS):
            scene.step()
        ((body.get_state().pos - goal) ** 2).sum().backward()

    return run, built, lambda: start.grad.tolist()


def counters():
    if "ingot" not in sys.modules:
        return {}
    import ingot

    found = ingot._core.counters()
    return {k: found[k] for k in ("image_compiles", "image_disk_hits", "kernel_disk_hits", "helpers_started")}


def serve(name):
    """Builds the scene, steps once and says how long that took; then N steps for each line with a number."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # others' words

    def answer(**line):
        print(json.dumps(line), file=answers, flush=True)

    _peers.leave_path()
    import genesis as gs

    envs, fields, gradients = ROWS[name]
    imported = time.process_time()
    gs.init(backend=gs.cpu, logging_level="error", seed=1, performance_mode=fields)
    step, built, state = box(gs) if gradients else arm(gs, envs)
    begin = time.perf_counter()
    step()
    first = time.perf_counter() - begin
    answer(build_s=built, first_step_s=first, imports_cpu_s=imported)
    for line in sys.stdin:
        n = int(line)
        begin = time.process_time()
        for _ in range(n):
            step()
        spent = (time.process_time() - begin) / max(n, 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        answer(step_s=spent, peak_mb=peak, state=state(), counters=counters())


# --- asking them ---------------------------------------------------------------------------------


class Engine(_peers.Peer):
    """A process with the scene; `started` is what it says of its start, None if it is gone."""

    def __init__(self, engine, python, name, caches):
        kept = str(caches / engine)  # programs of Quadrants name its folder, and Ingot goes by that
        env = dict(os.environ, XDG_CACHE_HOME=str(caches / "xdg"), INGOT_CACHE_DIR=kept, QD_OFFLINE_CACHE_FILE_PATH=kept)
        (caches / engine).mkdir(parents=True, exist_ok=True)
        run = [python, *(["-m", "ingot.compat"] if engine == "ingot" else []), __file__, "--serve", name]
        super().__init__(engine, run, env)
        try:
            self.started = json.loads(self.process.stdout.readline())
        except ValueError:
            self.started = None
            self.lost(name)
            self.close()

    def close(self):
        """Lets the process end by itself: Quadrants keeps what it compiled at its exit."""
        if self.process is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self.process.stdin.close()
                self.process.wait(60)
        super().close()


def cpu_of_tree(root):
    """Seconds of CPU that a living process and those that it started had."""
    tick = os.sysconf("SC_CLK_TCK")
    spent, parent = {}, {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            parent[int(stat.parent.name)] = int(words[1])
            spent[int(stat.parent.name)] = sum(map(int, words[11:15])) / tick  # with children that it waited for
    tree = {root}
    while more := {pid for pid, up in parent.items() if up in tree} - tree:
        tree |= more
    return sum(spent.get(pid, 0.0) for pid in tree)


def least(row, key, value):
    if value is not None:
        row[key] = min(value, row.get(key, float("inf")))


def note_start(row, engine, peer, when):
    if peer.started:
        least(row, f"{engine}_{when}_s", peer.started["build_s"])
        least(row, f"{engine}_{when}_first_s", peer.started["first_step_s"])


def note_steps(row, peers, stretches, n):
    """Stretches in turns; what the processes say of themselves at the end."""
    for engine, peer in peers.items():
        peer.ask(str(n))  # caches of the machine, contests of implementations
    for _ in range(stretches):
        for engine, peer in peers.items():
            said = peer.ask(str(n))
            if said is None:
                continue
            least(row, f"{engine}_step_ms", said["step_s"] * 1e3)
            row[f"{engine}_mb"] = said["peak_mb"]
            row[f"{engine}_state"] = said["state"]
            row[f"{engine}_warm_counters"] = said["counters"]


@contextlib.contextmanager
def folder_of(name, keep):
    """Where the caches of a row are: in `keep`, which stays, or in a folder that goes."""
    if keep:
        path = keep.resolve() / name.replace(",", "").replace(" ", "_")
        path.mkdir(parents=True, exist_ok=True)
        yield path
    else:
        with tempfile.TemporaryDirectory(prefix="ingot-genesis-") as path:
            yield pathlib.Path(path)


def note_cold(row, engine, given, name, caches):
    peer = Engine(engine, given.python, name, caches)
    note_start(row, engine, peer, "cold")
    said = peer.ask("0") if peer.started else None
    row[f"{engine}_cold_counters"] = said and said["counters"]
    if said:
        row[f"{engine}_cold_mb"] = said["peak_mb"]
        row[f"{engine}_cold_cpu_s"] = cpu_of_tree(peer.process.pid) - peer.started["imports_cpu_s"]
    peer.close()


def note_warm(row, given, name, caches):
    steps = 1 if ROWS[name][2] else 20 if ROWS[name][0] else 300
    peers = {}
    for _ in range(given.rounds):
        for engine in given.engines:
            if engine in peers:
                peers[engine].close()
            peers[engine] = Engine(engine, given.python, name, caches)
            note_start(row, engine, peers[engine], "warm")
    note_steps(row, peers, given.stretches, steps)
    for peer in peers.values():
        peer.close()


def measure(name, given, xdg):
    row = {"row": name}
    with folder_of(name, given.keep) as caches:
        (caches / "xdg").is_symlink() and (caches / "xdg").unlink()
        (caches / "xdg").symlink_to(xdg)
        known = caches / "row.json"
        if known.exists():
            row = json.loads(known.read_text())
        for engine in given.engines:
            if f"{engine}_cold_s" not in row:
                shutil.rmtree(caches / engine, ignore_errors=True)
                note_cold(row, engine, given, name, caches)
        note_warm(row, given, name, caches)
        compare(row)
        known.write_text(json.dumps(row, indent=1))
    return row


def compare(row):
    """How many times as much Quadrants takes."""
    for key in ("cold_s", "cold_cpu_s", "warm_s", "cold_first_s", "warm_first_s", "step_ms", "mb"):
        ours, theirs = row.get(f"ingot_{key}"), row.get(f"quadrants_{key}")
        row[f"vs_{key}"] = theirs / ours if ours and theirs else None
    ours, theirs = row.get("ingot_state"), row.get("quadrants_state")
    if ours and theirs:
        row["difference"] = max(abs(a - b) for a, b in zip(ours, theirs))
    for when in ("cold", "warm"):
        found = row.get(f"ingot_{when}_counters") or {}
        row[f"{when}_compiles"] = found.get("image_compiles")
        row[f"{when}_helpers"] = found.get("helpers_started")
        row[f"{when}_images"] = found.get("image_disk_hits")


COLUMNS = [
    ("row", "row", ""),
    ("ingot_cold_s", "cold s", ".1f"), ("vs_cold_s", "x", ".1f"),
    ("ingot_cold_cpu_s", "cold CPU s", ".1f"), ("vs_cold_cpu_s", "x", ".1f"),
    ("ingot_warm_s", "warm s", ".2f"), ("vs_warm_s", "x", ".1f"),
    ("ingot_warm_first_s", "first step s", ".3f"), ("vs_warm_first_s", "x", ".1f"),
    ("ingot_step_ms", "step ms", ".3f"), ("vs_step_ms", "x", ".2f"),
    ("ingot_mb", "MB", ".0f"), ("vs_mb", "x", ".2f"),
    ("difference", "difference", ".1e"),
    ("cold_compiles", "cold compiles", ""), ("warm_compiles", "warm compiles", ""),
    ("warm_images", "warm images", ""), ("warm_helpers", "warm LLVM processes", ""),
]


def plot(path, rows):
    """Bars: how many times as long Quadrants takes, logarithmic."""
    plt = _peers.pyplot()
    if plt is None:
        return

    shown = {"cold_s": "cold build", "warm_s": "warm build", "step_ms": "step", "mb": "memory"}
    figure, axes = plt.subplots(figsize=(11, 4.5))
    for k, (key, label) in enumerate(shown.items()):
        xs = [i + (k - 1.5) * 0.19 for i in range(len(rows))]
        axes.bar(xs, [r.get(f"vs_{key}") or 0 for r in rows], 0.18, label=label)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), [r["row"] for r in rows], rotation=10)
    axes.set_ylabel("Quadrants / Ingot")
    axes.legend(ncols=4, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default=",".join(ROWS).replace(", fields", " fields"), help="rows, without commas")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stretches", type=int, default=15)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    given.engines = given.engines.split(",")
    by_name = {name.replace(",", ""): name for name in ROWS}
    rows = []
    with folder_of("xdg", given.keep) as xdg:
        for name in given.only.split(","):
            rows.append(measure(by_name[name.strip()], given, xdg))
            _peers.show("Genesis: Ingot, and how many times as much Quadrants takes", COLUMNS, rows[-1:])
    _peers.show("Genesis: Ingot, and how many times as much Quadrants takes", COLUMNS, rows)
    _peers.write(given.json, "genesis", rows)
    if given.plot:
        plot(given.plot, rows)


if __name__ == "__main__":
    main()
