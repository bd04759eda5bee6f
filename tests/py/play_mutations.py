"""Runs the programs of tests/py/random_mutations.py, compares with Python, and shrinks those
that are wrong to a few lines.

    python play_mutations.py SEED[-SEED] [cpu] [paranoid]
"""

import collections
import contextlib
import copy
import enum
import importlib
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import types
import warnings

import numpy as np
from random_mutations import Kernel, Node, Program

import ingot as qd
from ingot import _core

# ---- running --------------------------------------------------------------------------------

class World:
    """A program that was loaded, and what its changes need."""

    count = 0

    def __init__(self, program, folder, prefix=None):
        World.count += 1
        self.program, self.folder = program, folder
        self.prefix = prefix or f"w{program.seed}_{World.count}"
        self.texts = program.files(self.prefix)
        for name, text in self.texts.items():
            self.write(name, text)
        importlib.invalidate_caches()
        self.kern = importlib.import_module(self.prefix + "_kern")
        self.lib2 = importlib.import_module(self.prefix + "_lib2")
        self.first = {m: getattr(self.kern, m) for m in ("cfg", "aux", "lib")}
        self.names = {"kern": self.kern, "lib2": self.lib2, "collections": collections,
                      "copy": copy, "enum": enum, "types": types, "qd": qd, "clone": self.clone,
                      "reload": self.reload, "again": self.again, "rewrite": self.rewrite,
                      "hide": self.hide, "classed": self.classed, "space": self.space,
                      "start": self.first.get, "swap_items": self.swap_items}

    def write(self, name, text):
        with open(os.path.join(self.folder, name + ".py"), "w", encoding="utf-8") as f:
            f.write(text)

    def close(self):
        for name in self.texts:
            sys.modules.pop(name, None)
            os.remove(os.path.join(self.folder, name + ".py"))

    @staticmethod
    def clone(module):
        new = type(module)(module.__name__)
        new.__dict__.update(module.__dict__)
        return new

    def reload(self, m):
        importlib.invalidate_caches()
        importlib.reload(sys.modules[f"{self.prefix}_{m}"])

    def again(self, m):
        name = f"{self.prefix}_{m}"
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        setattr(self.kern, m, importlib.import_module(name))

    def rewrite(self, m, name, text):
        """Another value in the file; what is loaded is as it was."""
        full = f"{self.prefix}_{m}"
        pattern = re.compile(rf"^{name} = .*$", re.M)
        self.texts[full] = pattern.sub(lambda _: f"{name} = {text}", self.texts[full])
        self.write(full, self.texts[full])

    @staticmethod
    def hide(module, name):
        """An attribute moves from the dictionary to `__getattr__`."""
        kept = module.__dict__.pop(name)

        def getter(asked):
            if asked == name:
                return kept
            raise AttributeError(asked)
        module.__getattr__ = getter

    @staticmethod
    def classed(name, v):
        return type("Strange", (types.ModuleType,), {name: property(lambda self: v)})

    @staticmethod
    def space(module):
        return types.SimpleNamespace(**module.__dict__)

    @staticmethod
    def swap_items(d):
        first = next(iter(d))
        d[first] = d.pop(first)

    def apply(self, text):
        self.names["lib"] = getattr(self.kern, "lib", None)
        try:
            exec(text, self.names)
        except Exception:  # such as a member that is not there: nothing is changed then
            pass


class Tally:
    def __init__(self):
        self.launches = self.equal = self.raised = 0
        self.refused = {}

    def refuse(self, error):
        text, *lines = str(error).split("\n")
        text = re.sub(r"^\S+ |\d+", "#", text)
        self.refused.setdefault(text, []).append((lines or [""])[0].strip())


def attempt(call):
    try:
        return call(), None
    except RecursionError:
        raise
    except Exception as e:
        return None, e


def compare(world, kernel, out, tally):
    """None, or what is wrong."""
    kern = world.kern
    run, twin = getattr(kern, kernel), getattr(kern, "twin_" + kernel)
    want, python_error = attempt(lambda: float(twin(kern.ARG)))
    if isinstance(python_error, qd.IngotIndexError):
        return None  # of an array: launches do not look (docs/language/debug.md)
    out[0] = -12345.0
    _, error = attempt(lambda: run(out, kern.ARG))
    tally.launches += 1
    if error is not None:
        if "paranoid" in str(error):
            return f"{kernel}: {error}"
        if python_error is not None:
            tally.raised += 1
        elif isinstance(error, qd.IngotError):
            tally.refuse(error)
        else:
            return f"{kernel} raises {error!r}, Python gives {want}"
        return None
    got = out[0]
    if python_error is not None and "'Color'" in str(python_error):
        return None  # members of enums are their values in arithmetic
    if python_error is not None:
        return f"{kernel} gives {got}, Python raises {python_error!r}"
    if got != want and not (got != got and want != want):
        return f"{kernel} gives {got}, Python {want}"
    tally.equal += 1
    return None


BOXES = {qd.f64: 2.3, qd.f32: float(np.float32(2.3)), qd.i32: 2}


def compare_boxed(world, out):
    """A dataclass whose annotation is text: what that means now. Its module is looked for
    where Python does."""
    boxed = world.first["lib"].Boxed
    scope = vars(sys.modules.get(boxed.__module__, types.SimpleNamespace()))
    _, error = attempt(lambda: world.kern.boxed(out, boxed(2.3)))
    want = BOXES.get(scope.get("T"))
    if error is None and out[0] != want:
        return f"boxed gives {out[0]}, Python {want}"
    return None


def play(program, folder, tally, launches=2, prefix=None, ask=None):
    """Runs a program: None, or (index of the change, what is wrong). `ask`: the indices after
    which kernels are launched; all unless told."""
    world = World(program, folder, prefix)
    out = qd.ndarray(qd.f64, 1)
    rng = random.Random(program.seed)
    try:
        for i, text in enumerate(["", *program.changes]):
            world.apply(text)
            for kernel in program.kernels:
                times = rng.choice(range(1, launches + 1)) if launches > 1 else 1
                if ask is not None and i not in ask:
                    continue
                for _ in range(times):
                    wrong = compare(world, kernel.name, out, tally)
                    if wrong:
                        return i, wrong
            wrong = (ask is None or i in ask) and compare_boxed(world, out)
            if wrong:
                return i, wrong
    finally:
        world.close()
    return None


# ---- shrinking ------------------------------------------------------------------------------

def without(items, i):
    return items[:i] + items[i + 1:]


def shrink(program, fails):
    """Drops kernels, blocks and changes as long as the program still fails."""
    best = copy.copy(program)

    def tried(**other):
        nonlocal best
        new = copy.copy(best)
        new.__dict__.update(other)
        if not fails(new):
            return False
        best = new
        return True

    for kernel in best.kernels:  # one is enough, most often
        if tried(kernels=[kernel]):
            break
    moved = True
    while moved:
        moved = False
        for size in (8, 3, 1):
            i = len(best.changes) - size
            while i >= 0:
                moved |= tried(changes=best.changes[:i] + best.changes[i + size:])
                i -= 1
        for n, kernel in enumerate(best.kernels):
            i = 0
            while i < len(best.kernels[n].blocks):
                k = best.kernels[n]
                less = Kernel(k.name, k.closure, k.node, without(k.blocks, i))
                if not tried(kernels=[*best.kernels[:n], less, *best.kernels[n + 1:]]):
                    i += 1
                else:
                    moved = True
    plain = Node("int", "0")
    for part in ("cfg", "aux", "own"):
        for name in list(getattr(best, part)):
            tried(**{part: {**getattr(best, part), name: plain}})
    tried(arg=plain)
    return best


def settings_of(arch="interp", paranoid=False, threads=1):
    return {"arch": getattr(qd, arch), "paranoid": paranoid, "default_fp": qd.f64,
            "default_ip": qd.i64, "cpu_max_num_threads": threads}


def report(program, wrong, fails, words):
    """What to print of a program that failed: the seed, and a small one that fails as well."""
    small = shrink(program, fails)
    return (f"seed {program.seed}, {words}, after change {wrong[0]}: {wrong[1]}\n"
            f"shrunk: {fails(small) or 'does not fail any more'}\n{small.script()}\n"
            "---- all changes of the seed\n" + "\n".join(program.changes))


@contextlib.contextmanager
def importing(folder):
    """Modules of that folder can be imported, and are always read anew."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A function called while compiling reads nothing here but what it is given.
            warnings.simplefilter("error", qd.IngotStaticCallWarning)
            yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = before


def run_here(programs, folder, tally, **settings):
    """Runs programs in this process: None, or the report of the first that is wrong."""
    with importing(folder):
        for program in programs:
            qd.init(**settings_of(**settings))
            wrong = play(program, folder, tally)
            if wrong:
                return report(program, wrong, lambda p: play(p, folder, Tally()), settings)
    return None


# ---- other processes ------------------------------------------------------------------------

def child(path):
    """The programs of a file, in this process: prints the failures, how the launches ended,
    and what became of the cache."""
    with open(path, "rb") as f:
        job = pickle.load(f)
    tally, wrong = Tally(), None
    qd.init(**settings_of("cpu", threads=job["threads"]))
    with importing(job["folder"]):
        for i, (program, ask) in enumerate(job["programs"]):
            found = play(program, job["folder"], tally, 1, f"w{program.seed}", ask)
            wrong = wrong or (found and [i, *found])
    print(json.dumps({"wrong": wrong, "launches": tally.launches, "equal": tally.equal,
                      **_core.counters()}))


def run_child(programs, folder, cache, threads=1):
    """Runs [(program, indices to launch at)] in a process of its own."""
    path = os.path.join(folder, "job.pickle")
    with open(path, "wb") as f:
        pickle.dump({"programs": programs, "folder": str(folder), "threads": threads}, f)
    done = subprocess.run(
        [sys.executable, "-B", "-c", "import play_mutations, sys; "
         "play_mutations.child(sys.argv[1])", path], capture_output=True, text=True,
        timeout=1200, cwd=os.path.dirname(os.path.abspath(__file__)),
        env={**os.environ, "INGOT_CACHE_DIR": str(cache)})
    if done.returncode:
        return {"wrong": [0, 0, f"exit {done.returncode}: {done.stderr[-3000:]}"]}
    return json.loads(done.stdout)


def some(program):
    """The changes after which another process asks: the last, and some before."""
    rng, n = random.Random(program.seed), len(program.changes)
    return sorted({n, *rng.sample(range(n), n // 3)})


def run_processes(programs, folder):
    """Runs programs natively, each change followed by launches, and then in another process
    with launches after some changes only, on the cache of the first. (report, what the two
    said of it)."""
    def fails(program):
        with tempfile.TemporaryDirectory() as cache:
            job = [(program, None)], [(program, some(program))]
            both = [run_child(job[0], folder, cache), run_child(job[1], folder, cache, 2)]
            return next((b["wrong"] for b in both if b["wrong"]), None)

    cache = os.path.join(folder, "cache")
    cold = run_child([(p, None) for p in programs], folder, cache)
    warm = run_child([(p, some(p)) for p in programs], folder, cache, 2)
    for told in (cold, warm):
        if told["wrong"]:
            i, *wrong = told["wrong"]
            words = "cold" if told is cold else "on the cache of another process"
            return report(programs[i], wrong, fails, words), cold, warm
    return None, cold, warm


def main(args):
    first, _, last = args[0].partition("-")
    arch = "cpu" if "cpu" in args else "interp"
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(int(first), int(last or first) + 1):
            text = run_here([Program(seed)], folder, tally, arch=arch,
                            paranoid="paranoid" in args)
            if text:
                print(text, flush=True)
    print("launches", tally.launches, "equal", tally.equal, "both raise", tally.raised)
    for text, lines in sorted(tally.refused.items(), key=lambda i: -len(i[1])):
        print(f"refused {len(lines):5}: {text[:150]} {lines[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
