"""Runs the programs of ad_programs.py: their gradients by `kernel.grad`, by the dual-number interpreter of
ad_duals.py and by central differences, compared, and a program that fails shrunk to a few lines.

    python ad_play.py FIRST END [key=value ...]     runs seeds natively in a process of its own

prints JSON: gradients by seed, refusals, and how often something was compiled (test_ad_random.py starts
it twice, cold and warm).
"""

import contextlib
import copy
import json
import linecache
import signal
import sys
import warnings
import zlib

import ad_duals
import numpy as np
from ad_programs import Expr, Program

import ingot as qd
from ingot import _core

try:
    import torch
except ImportError:  # its tensors are arrays of ours then
    torch = None

NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
FLOAT_ROLES = ("in", "mid", "out", "sum", "low", "high")
# how far a gradient may be from the dual interpreter's, as a part of its largest terms
EXACT = {"f64": 1e-8, "f32": 2e-4, "f16": 0.1}
ROUNDING = {"f64": 1e-11, "f32": 2e-5, "f16": 2e-2}  # nearer to a kink than this, both sides are right


class Case:
    """A program with its data: `values` (NumPy, by name; of structs name.a and name.v), `adjoints` of
    what it leaves, and the names of its inputs. `dtype` instead of the program's own: f64."""

    def __init__(self, program, dtype=None, key=0):
        self.p, self.machine, self.key = program, None, key  # key: of the random numbers of its launch
        p = program
        self.dtype, self.other = dtype or p.dtype, dtype or p.other
        rng = np.random.default_rng(p.seed)
        self.values, self.adjoints, self.leaves = {}, {}, []
        for d in p.data.values():
            shape = p.shape(d)
            for name, more in self.parts(d):
                self.leaves.append((name, d))
                self.values[name] = self.values[d.twin].copy() if d.twin else self.draw(rng, d, shape + more)
                if d.role in FLOAT_ROLES:
                    seeds = d.role not in ("in", "mid") or rng.random() < 0.3
                    seed = np.asarray(np.float16(rng.uniform(-2, 2, shape + more) * seeds))
                    self.adjoints[name] = seed.astype(self.numpy(d))
        self.scalars = [int(p.bound), float(np.float16(rng.uniform(0.3, 1.4)))]
        self.inputs = [n for n, d in self.leaves if d.role == "in"]

    def numpy(self, d):
        return np.int32 if d.kind == "i" else NUMPY[self.dtype]

    def parts(self, d):
        k = (self.p.k,)
        return {"f": [(d.name, ())], "i": [(d.name, ())], "v": [(d.name, k)], "m": [(d.name, k + k)],
                "s": [(d.name + ".a", ()), (d.name + ".v", k)]}[d.kind]

    def draw(self, rng, d, shape):
        """Numbers that f16 holds exactly, so that the program is the same in every precision."""
        if d.kind == "i":
            v = rng.integers(0, d.top, shape)
            if d.name == "p":
                v[:d.top] = rng.permutation(d.top)
            return v.astype(np.int32)
        v = rng.uniform(-1.5, 1.5, shape)
        if d.role in ("low", "high") and rng.random() < 0.7:
            v = v * 0.1 + (9 if d.role == "low" else -9)
        return np.asarray(np.float16(v)).astype(self.numpy(d))

    # ---- the kernel and its arguments

    def build(self, needs, prologue=False, twin=False):
        """(kernel, arguments, objects by name), on the target that qd.init chose; `needs` of floats:
        needs_grad, needs_dual or nothing. For oracles: with the prologue, with constants where qd.stop_grad is."""
        text = self.p.text(twin or prologue)
        if prologue:
            text = text.replace("fa: F):\n", "fa: F):\n" + self.prologue(), 1)
        name = f"<differentiable {self.p.seed} {zlib.crc32(text.encode())} {self.dtype}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        scope = {"qd": qd, "F": getattr(qd, self.dtype), "G": getattr(qd, self.other)}
        objects = {d.name: self.make(d, needs if d.role in FLOAT_ROLES else None, scope["F"])
                   for d in self.p.data.values()}
        scope.update({d.name: objects[d.name] for d in self.p.data.values() if d.how == "global"})
        exec(compile(text, name, "exec"), scope)
        args = [objects[d.name] for d in self.p.params()] + self.scalars
        return scope["k"], args, objects

    def prologue(self):
        """A branch that is never taken and mentions the data in order: IR arguments are numbered by
        their first use."""
        out = "    if nb < -5:\n        z0 = fa\n"
        for k, (name, d) in enumerate(self.leaves):
            at = ", ".join(["0"] * d.axes) or "None"
            base, _, member = name.partition(".")
            out += f"        z{k + 1} = {base}[{at}]" + (f".{member}\n" if member else "\n")
        return out

    def make(self, d, needs, f):
        p, shape = self.p, self.p.shape(d)
        if d.home == "numpy":
            return self.values[d.name].copy()
        grad = {needs: True} if needs else {}
        if d.home == "torch" and torch:
            t = torch.from_numpy(self.values[d.name].copy())
            if needs:
                t.requires_grad_().grad = torch.zeros_like(t)
            return t
        if d.home in ("nd", "torch"):
            t = {"f": f, "i": qd.i32, "v": qd.types.vector(p.k, f), "m": qd.types.matrix(p.k, p.k, f)}[d.kind]
            return qd.ndarray(t, shape, **grad)
        if d.offset:
            grad["offset"] = (d.offset,) * len(shape)
        if d.kind in "fi":
            return qd.field(f if d.kind == "f" else qd.i32, shape=shape, **grad)
        grad["layout"] = qd.Layout.SOA if d.soa else qd.Layout.AOS
        if d.kind == "v":
            return qd.Vector.field(p.k, f, shape=shape, **grad)
        if d.kind == "m":
            return qd.Matrix.field(p.k, p.k, f, shape=shape, **grad)
        return qd.Struct.field({"a": f, "v": qd.types.vector(p.k, f)}, shape=shape, **grad)

    @staticmethod
    def part(objects, name):
        base, _, member = name.partition(".")
        return getattr(objects[base], member) if member else objects[base]

    def put(self, objects, values, beside=None):
        for name, d in self.leaves:
            if name in values:
                target = self.part(objects, name)
                target = getattr(target, beside) if beside else target
                if isinstance(target, np.ndarray):
                    target[...] = values[name]
                elif torch and isinstance(target, torch.Tensor):
                    target.detach().numpy()[...] = values[name]
                else:
                    target.from_numpy(values[name])

    def take(self, objects, names, beside=None):
        out = {}
        for name in names:
            a = self.part(objects, name)
            a = getattr(a, beside) if beside else a
            a = a.detach().numpy() if torch and isinstance(a, torch.Tensor) else a
            out[name] = a.copy() if isinstance(a, np.ndarray) else a.to_numpy().reshape(self.values[name].shape)
        return out

    def launch(self):
        """What the kernel leaves, by name."""
        k, args, objects = self.build(None)
        self.put(objects, self.values)
        self.launched(k, args)
        return self.take(objects, self.adjoints)

    def launched(self, k, args):
        """A launch, after which `key` is that of its random numbers."""
        k(*args)
        self.key = _core.last_launch(k, tuple(args))[0]

    def gradients(self):
        """(what the kernel leaves, the inputs' gradients)."""
        k, args, objects = self.build("needs_grad")
        self.put(objects, self.values)
        self.launched(k, args)
        after = self.take(objects, self.adjoints)
        self.put(objects, self.adjoints, "grad")
        k.grad(*args)
        return after, self.take(objects, self.inputs, "grad")

    def forward(self, direction):
        """(what the kernel leaves, its duals along a direction), by forward mode: all floats are fields."""
        k, args, objects = self.build("needs_dual")
        self.put(objects, self.values)
        self.put(objects, {n: np.asarray(d).astype(self.values[n].dtype) for n, d in direction.items()}, "dual")
        self.launched(k.dual, args)
        return self.take(objects, self.adjoints), self.take(objects, self.adjoints, "dual")

    # ---- by duals

    def duals(self, exact=False):
        """(what the kernel leaves, gradients, sums of the terms' magnitudes, After)."""
        if self.machine is None:
            k, args, _ = self.build(None, prologue=True)
            self.machine = ad_duals.Duals(k.lower(*args)[1])
        machine = self.machine
        given, pieces, same = self.assign(machine.args)
        active = [j for j, (name, _) in enumerate(pieces) if name in self.inputs]
        after = machine.run(given, active, exact, same, self.key)
        left = {n: np.zeros(self.values[n].shape) for n in self.adjoints}
        adjoints = {}
        for j, (name, c) in enumerate(pieces):
            if name in left:
                left[name][(..., *c)] = after.values(j)
                adjoints[j] = self.adjoints[name][(..., *c)]
        grads, sizes = self.gather(after, after.gradient(adjoints), active, pieces), None
        magnitude = np.zeros(after.width)
        for j, a in adjoints.items():
            for w, d in zip(np.asarray(a, np.float64).reshape(-1), after.memory[j].d):
                if d is not None:
                    magnitude += np.abs(w * d)
        sizes = self.gather(after, magnitude, active, pieces)
        return left, grads, sizes, after

    def assign(self, types):
        """Of each IR argument what it is given, and (name, component) that it stands for."""
        given, pieces = [self.scalars[0], self.scalars[1]], [("nb", ()), ("fa", ())]
        for name, d in self.leaves:
            a = self.values[name]
            inner = a.shape[d.axes:]
            t = types[len(given)]
            indices = [()] if t.n == int(np.prod(inner)) else list(np.ndindex(*inner))
            for c in indices:
                given.append(np.ascontiguousarray(a[(..., *c)] if c else a))
                pieces.append((name, c))
        seen = {n for n, d in self.leaves if d.how == "global" and d.role in ("in", "int")}
        known = {t.text: j for j, t in enumerate(types[:len(given)]) if pieces[j][0] in seen}
        same = {j: known[t.text] for j, t in enumerate(types) if j >= len(given)}  # by funcs, once more
        return given + [given[j] for j in same.values()], pieces, same

    def gather(self, after, vector, active, pieces):
        out, at = {n: np.zeros(self.values[n].shape) for n in self.inputs}, 0
        for j in active:
            name, c = pieces[j]
            part = out[name][(..., *c)]
            out[name][(..., *c)] = vector[at:at + part.size].reshape(part.shape)
            at += part.size
        return out

    # ---- by differences, in f64

    def differences(self, directions, step=1e-5):
        """For each direction ((name, array) pairs): the slope of <adjoints, what the kernel leaves>, and
        how much two step sizes disagree. All launches have the same random numbers."""
        k, args, objects = self.build(None, twin=True)
        self.put(objects, self.values)
        self.launched(k, args)
        launch, out = _core.last_launch(k, tuple(args)), []

        def loss(h, direction):
            moved = dict(self.values)
            for name, way in direction.items():
                moved[name] = np.asarray(self.values[name] + h * way)
            self.put(objects, moved)
            _core.launch(k, tuple(args), launch)
            left = self.take(objects, self.adjoints)
            return sum(float((left[n].astype(np.float64) * self.adjoints[n]).sum()) for n in left)

        for direction in directions:
            slopes = [(loss(h, direction) - loss(-h, direction)) / (2 * h) for h in (step, step / 4)]
            out.append((slopes[1], abs(slopes[0] - slopes[1])))
        return out

    def directions(self, how_many):
        """Random ones over all inputs, and single entries."""
        rng = np.random.default_rng(self.p.seed + 1)
        out = []
        for k in range(how_many):
            if k % 2 == 0:
                out.append({n: rng.uniform(-1, 1, self.values[n].shape) for n in self.inputs})
            else:
                name = self.inputs[rng.integers(len(self.inputs))]
                one = np.zeros(self.values[name].shape)
                one[tuple(rng.integers(n) for n in one.shape)] = 1.0
                out.append({name: one})
        return out


# ---- verdicts ------------------------------------------------------------------------------------------


class Verdict:
    """kind: ok, kink, wild, refused, wrong, error; what: in words."""

    def __init__(self, kind, what=""):
        self.kind, self.what = kind, what

    def __repr__(self):
        return f"{self.kind}: {self.what}" if self.what else self.kind


class Expected:
    """What the oracle says of a program, computed once."""

    def __init__(self, case):
        self.case = case
        self.left, self.grads, self.sizes, self.after = case.duals()
        coarse = [case.dtype] + (["f32"] if "cast_back" in case.p.marks and case.other == "f32" else [])
        self.grain = max(coarse, key=EXACT.get)
        self.exact = case.duals(exact=True) if self.grain != "f64" else None
        top = max([float(s.max()) for s in self.sizes.values() if s.size] or [0.0])
        self.top = top

    def wild(self):
        """Does it overflow, or grow beyond what can be compared?"""
        numbers = [*self.left.values(), *self.sizes.values()]
        numbers += [*self.exact[0].values(), *self.exact[2].values()] if self.exact else []
        limit = 2e4 if self.case.dtype == "f16" else 1e7
        return any(not np.isfinite(a).all() or np.abs(a).max(initial=0) > limit for a in numbers)

    def check(self, grads, left=None):
        """The verdict on gradients that something else computed."""
        grain = self.grain
        near = self.after.kink < ROUNDING[grain] or (self.exact and self.exact[3].kink < ROUNDING[grain])
        for name, want in self.grads.items():
            room = EXACT[grain] * (self.sizes[name] + 0.02 * self.top) + 1e-12
            seed = np.abs(np.asarray(self.case.adjoints[name], np.float64))
            room = room + EXACT[grain] * seed
            if self.exact:
                room = room + 20 * np.abs(want - self.exact[1][name])
            off = np.abs(grads[name].astype(np.float64) - want)
            bad = ~(off <= room)
            if bad.any():
                at = tuple(int(k) for k in np.argwhere(bad)[0])
                what = (f"{name}.grad{list(at)} is {grads[name][at]!r}, the dual interpreter says {want[at]!r} "
                        f"(kink at {self.after.kink:.2g}: {self.after.nearest})")
                return Verdict("kink" if near else "wrong", what)
        if left:
            return self.check_values(left, near)
        return Verdict("ok")

    def along(self, way, after=None):
        """By name: the Jacobian times a direction, and the sum of its terms' magnitudes."""
        case, after = self.case, after or self.after
        given, pieces, _ = case.assign(case.machine.args)
        vector = np.concatenate([way[n][(..., *c)].reshape(-1) for n, c in pieces if n in case.inputs])
        out, size = ({n: np.zeros(case.values[n].shape) for n in case.adjoints} for _ in range(2))
        for j, (name, c) in enumerate(pieces):
            if name in out:
                shape = out[name][(..., *c)].shape
                out[name][(..., *c)] = (after.jacobian(j) @ vector).reshape(shape)
                size[name][(..., *c)] = (np.abs(after.jacobian(j)) @ np.abs(vector)).reshape(shape)
        return out, size

    def check_values(self, left, near):
        for name, want in self.left.items():
            room = EXACT[self.grain] * (np.abs(want) + 1)
            if self.exact:
                room = room + 20 * np.abs(want - self.exact[0][name])
            if not (np.abs(left[name].astype(np.float64) - want) <= room).all():
                return Verdict("kink" if near else "wrong", f"the kernel itself leaves {left[name]} in {name}, "
                               f"the dual interpreter {want}")
        return Verdict("ok")


def by_differences(program, how_many=4):
    """Does the dual interpreter agree with central differences, in f64? On the current target."""
    case = Case(program, "f64")
    ways = case.directions(how_many)
    slopes = case.differences(ways)
    left, grads, _, after = case.duals()
    if any(not np.isfinite(a).all() for a in [*left.values(), *grads.values()]):
        return Verdict("wild"), 0
    judged = 0
    for way, (slope, doubt) in zip(ways, slopes):
        # what the outputs' adjoints say; the inputs' own seeds are not part of what the kernel computes
        want = sum(float((grads[n] * way[n]).sum()) for n in way)
        size = sum(float(np.abs(grads[n] * way[n]).sum()) for n in way) + 1e-3
        if after.kink < 4e-5:
            continue
        judged += 1
        if not abs(slope - want) <= 1e-4 * size + 3 * doubt:
            return Verdict("wrong", f"differences say {slope}, duals {want} (doubt {doubt:.2g}, kink "
                           f"{after.kink:.2g} {after.nearest})"), judged
    return Verdict("ok" if judged else "kink"), judged


def judge_forward(program):
    """The same for forward mode, along one random direction."""
    program = copy.deepcopy(program)
    for d in program.data.values():
        if d.home in ("nd", "torch") and d.kind != "i":
            d.home, d.how = "field", "template"
    case = Case(program)
    way = {n: np.float16(w).astype(float) for n, w in case.directions(1)[0].items()}
    got, verdict = attempt(lambda: case.forward(way))
    expected = Expected(case)
    if verdict or expected.wild():
        return Verdict("wild") if expected.wild() else verdict
    want, size = expected.along(way)
    near = expected.after.kink < ROUNDING[expected.grain]
    for name in want:
        room = EXACT[expected.grain] * (size[name] + 1)
        if expected.exact:
            room = room + 20 * np.abs(want[name] - expected.along(way, expected.exact[3])[0][name])
        if name not in way and not (np.abs(got[1][name].astype(float) - want[name]) <= room).all():
            return Verdict("kink" if near else "wrong", f"{name}.dual is {got[1][name]}, not {want[name]}")
    return Verdict("ok")


REFUSED = "NotImplementedError", "IngotCompilationError", "IngotSyntaxError", "IngotTypeError"


def attempt(run):
    """(result, None) or (None, verdict)."""
    try:
        return run(), None
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as e:
        words = str(e).strip().splitlines() or [""]
        refused = "different" in str(e) or "gradient" in str(e)
        kind = "refused" if type(e).__name__ in REFUSED and refused else "error"
        return None, Verdict(kind, f"{type(e).__name__}: " + " | ".join(words[:8]))


def judge(program):
    """The verdict on one program's gradients, on the current target."""
    case = Case(program)
    got, verdict = attempt(case.gradients)
    expected = Expected(case)
    if expected.wild():
        return Verdict("wild")
    return verdict or expected.check(got[1], got[0])


def settings(program, **more):
    """For qd.init: literals are of the program's type, so that f64 programs are f64 throughout."""
    return {"default_fp": qd.f64 if program.dtype == "f64" else qd.f32, "fast_math": False, **more}


# ---- shrinking -------------------------------------------------------------------------------------------


def bodies(program):
    return [f["body"] for f in program.funcs] + [program.body]


def blocks(body):
    yield body
    for s in body:
        for inner in (s.body, s.other):
            if inner:
                yield from blocks(inner)


def holders(program):
    """Every list of expressions, of statements and of expressions."""
    todo = [s.parts for top in bodies(program) for b in blocks(top) for s in b]
    while todo:
        parts = todo.pop()
        yield parts
        todo += [e.parts for e in parts]


SIMPLE = {"f": ["0.5"], "i": ["0", "1"], "b": ["(nb > 0)", "(nb < 0)"]}


def below(e, kind):
    """Expressions of a kind inside of another."""
    todo = list(e.parts)
    while todo:
        x = todo.pop(0)
        if x.kind == kind:
            yield x
        else:
            todo += x.parts


def block_at(program, t, k):
    return list(blocks(bodies(program)[t]))[k]


def changes(program, kind):
    """Ways to make a program smaller, each a function that changes a copy."""
    flat = [(t, k) for t, top in enumerate(bodies(program)) for k, _ in enumerate(blocks(top))]
    if kind == "drop":
        for t, k in reversed(flat) if flat else ():
            for i in reversed(range(len(block_at(program, t, k)))):
                yield lambda p, t=t, k=k, i=i: block_at(p, t, k).pop(i)
    elif kind == "lift":  # a block in place of the loop or branch around it, but no loop made parallel
        for t, k in flat:
            for i, s in enumerate(block_at(program, t, k)):
                if s.body is not None and (t < len(program.funcs) or k > 0 or s.text.startswith("if")):
                    yield lambda p, t=t, k=k, i=i: block_at(p, t, k).__setitem__(
                        slice(i, i + 1), block_at(p, t, k)[i].body)
                if s.other:
                    yield lambda p, t=t, k=k, i=i: setattr(block_at(p, t, k)[i], "other", None)
    elif kind == "funcs":
        for i in range(len(program.funcs)):
            yield lambda p, i=i: p.funcs.pop(i)
    else:
        for h, parts in enumerate(holders(program)):
            for i, e in enumerate(parts):
                for text in sorted([*SIMPLE.get(e.kind, []), *(x.write() for x in below(e, e.kind))], key=len):
                    if len(text) < len(e.write()):
                        yield lambda p, h=h, i=i, text=text, kind=e.kind: list(holders(p))[h].__setitem__(
                            i, Expr(kind, text.replace("{", "{{").replace("}", "}}")))


@contextlib.contextmanager
def at_most(seconds):
    """TimeoutError in what takes this process longer: a loop that lost what ends it."""

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def shrink(program, fails, tries=1500):
    """The smallest program found in so many tries that still fails: statements are dropped, blocks lifted,
    expressions taken apart."""
    best, size = program, None
    while size != len(best.text()) and tries > 0:
        size = len(best.text())
        for kind in ("drop", "lift", "drop", "funcs", "simplify"):
            at, options = 0, list(changes(best, kind))
            while at < len(options) and tries > 0:
                new, smaller = copy.deepcopy(best), False
                tries -= 1
                try:
                    options[at](new)
                    with at_most(1):
                        smaller = len(new.text()) < len(best.text()) and fails(new)
                except Exception:
                    pass
                if smaller:
                    best, options = new, list(changes(new, kind))
                else:
                    at += 1
    return best


def report(program, fails):
    small = shrink(program, lambda p: fails(p).kind in ("wrong", "error"))
    return f"seed {program.seed} ({program.dtype}): {fails(program)}\nshrunk: {fails(small)}\n{small.text()}"


# ---- in a process of its own ------------------------------------------------------------------------------


def main(first, end, *words):
    options = {k: int(v) for k, v in (w.split("=") for w in words)}
    out, current = {}, None
    warnings.simplefilter("ignore")
    for seed in range(int(first), int(end)):
        p = Program(seed)
        if current != (p.dtype == "f64"):
            current = p.dtype == "f64"
            qd.init(arch=qd.cpu, **settings(p, **options))
        case = Case(p)
        got, verdict = attempt(case.gradients)
        grads = None if verdict else {n: a.astype(float).tolist() for n, a in got[1].items()}
        out[seed] = str(verdict) if verdict else {"key": case.key, "grads": grads}
    json.dump({"gradients": out, **_core.counters()}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
