"""Random graph kernels with a plain Python model of what they do.

A program is a tree of tuples; `text` writes it as a kernel and `Model` runs it. Tasks change
numbers in a way that depends on order and on how often they run: x -> 3 x + k. The kernel sees
    x    i32 array of N        changed by loops, element by element
    y    i32 array of 4        changed by bare statements
    c    one flag for each do-while loop, counted down by its body
    f    one flag for each checkpoint, set by its body while `left` lasts
    left how often checkpoints may still set their flags
"""

import copy

N = 5
MASK = 0xFFFFFFFF
LOOPS, STAGES = 4, 3


class Maker:
    def __init__(self, rng, checkpoints):
        self.rng, self.checkpoints = rng, checkpoints
        self.loops = self.stages = 0

    def block(self, depth):
        return [self.statement(depth) for _ in range(self.rng.randint(1, 3))]

    def statement(self, depth):
        rng = self.rng
        roll = rng.random()
        if roll < 0.3 and depth < 3 and self.loops < LOOPS:
            number, self.loops = self.loops, self.loops + 1
            trips = rng.randint(0, 3)
            return ("do_while", number, trips, self.block(depth + 1))
        if roll < 0.6 and self.checkpoints and self.stages < STAGES:
            number, self.stages = self.stages, self.stages + 1
            return ("stage", number, rng.random() < 0.6, [self.loop() for _ in range(rng.randint(1, 2))])
        if roll < 0.6 and not self.checkpoints:
            return ("fork", [[self.own_loop(k) for _ in range(rng.randint(1, 2))]
                             for k in range(rng.randint(1, 2))])
        return self.loop() if roll < 0.8 else ("bare", rng.randrange(4), rng.randint(1, 9))

    def loop(self):
        return ("loop", self.rng.randint(1, 99), self.rng.random() < 0.3)

    def own_loop(self, section):
        """Sections may not touch the same numbers: one has the even, one the odd elements."""
        return ("half", section, self.rng.randint(1, 99))


def make(rng, checkpoints):
    maker = Maker(rng, checkpoints)
    return maker.block(0) + [maker.loop()]


# ---- as a kernel ---------------------------------------------------------------------------

PARAMETERS = ["x", "y", *(f"c{i}" for i in range(LOOPS)), *(f"f{i}" for i in range(STAGES)), "left"]


def text(program, name, checkpoints):
    kinds = {"x": 1, "y": 1}
    signature = ", ".join(f"{p}: qd.types.ndarray(qd.i32, ndim={kinds.get(p, 0)})" for p in PARAMETERS)
    options = "graph=True, checkpoints=True" if checkpoints else "graph=True"
    lines = [f"@qd.kernel({options})", f"def {name}({signature}):"]
    _write(program, "    ", lines)
    return "\n".join(lines) + "\n"


def _write(block, pad, out):
    for s in block:
        if s[0] == "loop":
            if s[2]:
                out.append(f"{pad}qd.loop_config(serialize=True)")
            out += [f"{pad}for i in range(x.shape[0]):", f"{pad}    x[i] = x[i] * 3 + {s[1]}"]
        elif s[0] == "half":
            out += [f"{pad}for i in range(x.shape[0]):", f"{pad}    if i % 2 == {s[1]}:",
                    f"{pad}        x[i] = x[i] * 3 + {s[2]}"]
        elif s[0] == "bare":
            out.append(f"{pad}y[{s[1]}] = y[{s[1]}] * 5 + {s[2]}")
        elif s[0] == "do_while":
            out += [f"{pad}c{s[1]}[()] = {s[2]}", f"{pad}while qd.graph.do_while(c{s[1]}):",
                    f"{pad}    if c{s[1]}[()] > 0:", f"{pad}        c{s[1]}[()] -= 1"]
            _write(s[3], pad + "    ", out)
        elif s[0] == "fork":
            out.append(f"{pad}with qd.graph.parallel_context():")
            for section in s[1]:
                out.append(f"{pad}    with qd.graph.parallel():")
                _write(section, pad + "        ", out)
        else:
            out.append(f"{pad}with qd.checkpoint({s[1] * 10}, yield_on=f{s[1]}):")
            if s[2]:
                out += [f"{pad}    for _ in range(1):", f"{pad}        if left[()] > 0:",
                        f"{pad}            left[()] -= 1", f"{pad}            f{s[1]}[()] = 1"]
            _write(s[3], pad + "    ", out)


# ---- as plain Python --------------------------------------------------------------------------


class Yielded(Exception):
    pass


def _wrap(v):
    v &= MASK
    return v - (1 << 32) if v >> 31 else v


class Model:
    def __init__(self, budget):
        self.x, self.y = [0] * N, [0] * 4
        self.c, self.f, self.left = [0] * LOOPS, [0] * STAGES, budget

    def launch(self, program, resume=None):
        """The number of the checkpoint that ended it, or None."""
        self.resume = resume
        try:
            self.run(program)
        except Yielded as y:
            return y.args[0]
        return None

    def run(self, block):
        for s in block:
            if s[0] == "do_while":
                self.loop(s)
            elif s[0] == "stage":
                self.stage(s)
            elif self.resume is None:
                self.work(s)

    def loop(self, s):
        _, number, trips, body = s
        if self.resume is None:
            self.c[number] = trips
        while True:
            if self.resume is None and self.c[number] > 0:
                self.c[number] -= 1
            self.run(body)
            if self.resume is not None or self.c[number] == 0:
                return

    def stage(self, s):
        _, number, sets, body = s
        if self.resume == number:
            self.resume = None
        if self.resume is not None:
            return
        if sets and self.left > 0:
            self.left -= 1
            self.f[number] = 1
        for inner in body:
            self.work(inner)
        if self.f[number]:
            raise Yielded(number)

    def work(self, s):
        if s[0] == "loop":
            self.x = [_wrap(v * 3 + s[1]) for v in self.x]
        elif s[0] == "bare":
            self.y[s[1]] = _wrap(self.y[s[1]] * 5 + s[2])
        elif s[0] == "half":
            for i in range(s[1], N, 2):
                self.x[i] = _wrap(self.x[i] * 3 + s[2])
        else:
            for section in s[1]:
                for inner in section:
                    self.work(inner)

    def state(self):
        return [self.x, self.y, self.c, self.f, self.left]


def stages_of(block):
    """The numbers of the checkpoints in a program, in the order of its text."""
    out = []
    for s in block:
        if s[0] == "stage":
            out.append(s[1])
        elif s[0] == "do_while":
            out += stages_of(s[3])
    return out


MOST_LAUNCHES = 6


def play(program, budget, choices, launch, state, clear):
    """Launches, and resumes as long as it yields: from the same checkpoint, or from another that
    `choices` picks. What happened, as a list."""
    stages, log, resume = stages_of(program), [], None
    for turn in range(MOST_LAUNCHES):
        yielded = launch(resume)
        log.append([yielded, state()])
        if yielded is None:
            break
        clear(yielded)
        pick = choices[turn % len(choices)]
        resume = yielded if pick < 0 else stages[pick % len(stages)]
    return log


def play_model(program, budget, choices):
    m = Model(budget)

    def clear(number):
        m.f[number] = 0

    return play(program, budget, choices, lambda r: m.launch(program, r),
                lambda: copy.deepcopy(m.state()), clear)
