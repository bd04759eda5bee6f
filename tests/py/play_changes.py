"""Plays the programs of changes_*.txt: small programs as people write them, which change something
that a kernel reads between launches. Each program launches with out(k, ...); what the launches
leave in the first argument is printed as JSON. The same text runs as plain Python, with decorators
that do nothing, which is what a kernel must equal.

    play_changes.py python|ingot FILE.txt FOLDER [which] [names...]

`which` launches only the launch of that number of each program (-1: all), so that each process of
a row finds on disk what others compiled for another state. Used by test_changes.py."""

import importlib
import json
import math
import pathlib
import sys
import types
import warnings

SEPARATOR, LIBRARY = "#### ", "#### library\n"


def programs(path):
    """name -> text, and the text of its library or None."""
    out, name = {}, None
    for line in pathlib.Path(path).read_text().splitlines(keepends=True):
        if line == LIBRARY:
            out[name][1] = ""
        elif line.startswith(SEPARATOR):
            name = line[len(SEPARATOR):].strip()
            out[name] = ["", None]
        elif name:
            out[name][out[name][1] is not None] += line
    return out


def any_call(*args, **named):
    return any_call


def same(f=None, **options):
    return same if f is None else f


class Python(types.ModuleType):
    """Takes the place of the package."""

    kernel = func = static = data_oriented = staticmethod(same)
    i32 = i64 = int
    f32 = f64 = float
    floor, sqrt = math.floor, math.sqrt
    cast = staticmethod(lambda x, dtype: dtype(x))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return any_call


class Player:
    def __init__(self, mode, which):
        self.mode, self.which, self.results = mode, which, []
        if mode == "python":
            self.qd, self.annotation = Python("qd"), None
        else:
            import ingot

            self.qd, self.annotation = ingot, ingot.types.ndarray()

    def out(self, kernel, *args, **named):
        if self.which not in (-1, len(self.results)):
            self.results.append(None)
            return
        a = [0.0] * 8 if self.mode == "python" else self.qd.ndarray(self.qd.f64, 8)
        try:
            kernel(a, *args, **named)
            self.results.append([str(float(a[i])) for i in range(8)])
        except Exception as e:
            self.results.append(f"{type(e).__name__}: {e}")

    def play(self, name, text, library, folder):
        module = f"{name}_{self.mode}"
        head = "from played import qd, A, out, MODE\n"
        if library is not None:
            (folder / f"{module}_lib.py").write_text(library)
        (folder / f"{module}.py").write_text(head + text.replace("LIB", f"{module}_lib"))
        self.results = []
        if self.mode != "python":
            self.qd.init()
        importlib.import_module(module)
        return self.results


def main(mode, path, folder, which="-1", *names):
    player, folder = Player(mode, int(which)), pathlib.Path(folder)
    played = types.ModuleType("played")
    played.qd, played.A, played.out, played.MODE = player.qd, player.annotation, player.out, mode
    sys.modules["played"] = played
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    if mode != "python":  # of paranoid mode
        warnings.simplefilter("error", player.qd.IngotStaticCallWarning)
    chosen = {n: p for n, p in programs(path).items() if not names or n in names}
    print(json.dumps({n: player.play(n, *p, folder) for n, p in chosen.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
