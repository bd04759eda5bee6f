"""Programs that mean harm: Python that runs inside a launch, threads, sizes, sources. Each
test is the smallest program that once broke something, or a border that must hold."""

import linecache
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import ingot as qd

COUNT = 0


def make(text, name="k", **scope):
    """The object `name` of a text that is compiled as a file of its own."""
    global COUNT
    COUNT += 1
    file = f"<hostile {COUNT}>"
    text = textwrap.dedent(text)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope["qd"] = qd
    exec(compile(text, file, "exec"), scope)
    return scope[name]


@pytest.fixture(autouse=True)
def fresh():
    qd.init()
    yield
    qd.init()


# ---- Python that runs inside a launch ---------------------------------------------------


class Prop:
    """A member whose reading runs `action` once it is set."""

    def __init__(self):
        self.action = None

    @property
    def value(self):
        if self.action:
            action, self.action = self.action, None
            action()
        return 7


READS = """
    @qd.kernel
    def k(x: qd.types.ndarray(), t: qd.template()):
        for i in range(x.shape[0]):
            x[i] = prop.value + t
    """


def test_init_while_the_variant_is_looked_up():
    prop = Prop()
    k = make(READS, prop=prop)
    x, y = qd.ndarray(qd.i32, 3), qd.ndarray(qd.f32, 3)
    for t in range(6):
        k(x, t)
        assert x[2] == 7 + t

    def again():
        qd.init()
        k(y, 50)

    for t in (3, 5, 0, 4, 60):
        prop.action = again
        k(x, t)
        assert x[2] == 7 + t and y[2] == 57


@pytest.mark.parametrize("error", [ValueError, KeyError, KeyboardInterrupt, MemoryError])
def test_an_exception_of_a_property_arrives(error):
    def fail():
        prop.action = fail  # guards that fail to ask make it compile, which asks again
        raise error("mine")

    prop = Prop()
    k = make(READS, prop=prop)
    x = qd.ndarray(qd.i32, 3)
    prop.action = fail
    with pytest.raises(error, match="mine"):
        k(x, 1)  # while lowering
    prop.action = None
    k(x, 1)
    prop.action = fail
    with pytest.raises(error, match="mine"):
        k(x, 1)  # while guards are checked
    prop.action = None
    k(x, 1)
    assert x[0] == 8


def test_annotations_that_fail():
    k = make("""
        @qd.kernel
        def k(x: 'nonsense.foo'):
            x[0] = 1
        """)
    for _ in range(2):
        with pytest.raises(NameError, match="nonsense"):
            k(1)


def test_too_many_results_are_named():
    types = ", ".join(["qd.i32"] * 17)
    k = make(f"""
        @qd.kernel
        def k() -> ({types}):
            return {", ".join(["1"] * 17)}
        """)
    with pytest.raises(qd.IngotSyntaxError, match="at most 16") as error:
        k()
    assert "<hostile" in str(error.value)


THREADS = """
import random, sys, threading, time
import ingot as qd

qd.init()
N = 5

class Thing:
    n = 3
    @property
    def p(self):
        time.sleep(0)
        return self.n

o = Thing()

@qd.func
def g(a):
    return a + N + o.p

@qd.kernel
def a(x: qd.types.ndarray(), t: qd.template()):
    for i in range(x.shape[0]):
        x[i] = g(i) + t

@qd.kernel
def b(x: qd.types.ndarray(), t: qd.template()):
    for i in range(x.shape[0]):
        x[i] = g(i * 2) + t

end = time.time() + 2
errors = []
sys.setswitchinterval(1e-5)

def work(seed):
    r = random.Random(seed)
    x = qd.ndarray(qd.i32, r.choice([1, 100, 50000]))
    while time.time() < end and len(errors) < 9:
        try:
            t = r.randrange(3)
            r.choice([a, b])(x, t)
            assert x[0] == N + 3 + t, (x[0], t)
        except BaseException as e:
            errors.append(repr(e))

def settings():
    while time.time() < end:
        qd.init(fast_math=random.random() < 0.5)
        time.sleep(0.01)

threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
threads.append(threading.Thread(target=settings))
[t.start() for t in threads]
[t.join() for t in threads]
print(errors[:3])
"""


def test_launches_and_init_from_many_threads(tmp_path, cache_dir):
    path = tmp_path / "threads.py"
    path.write_text(THREADS)
    for _ in range(2):  # the second time the variants come from disk
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True,
                              timeout=120, env=dict(os.environ))
        assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr[-2000:]


# ---- borders ------------------------------------------------------------------------------


def test_the_most_parameters():
    names = [f"p{i}" for i in range(254)]
    k = make(f"""
        @qd.kernel
        def k(x: qd.types.ndarray(), {", ".join(n + ": qd.i32" for n in names)}):
            x[0] = {" + ".join(names)}
        """)
    x = qd.ndarray(qd.i32, 1)
    k(x, *range(254))
    assert x[0] == sum(range(254))
    arrays = make(f"""
        @qd.kernel
        def k(x: qd.types.ndarray(), {", ".join(n + ": qd.types.ndarray()" for n in names)}):
            x[0] = {" + ".join(n + "[0]" for n in names)}
        """)
    arrays(x, *[np.full(1, i, np.int32) for i in range(254)])
    assert x[0] == sum(range(254))


def test_many_tasks_and_long_bodies():
    loops = "\n".join(f"    for i in range(x.shape[0]):\n        x[i] = x[i] * 3 + {j}"
                      for j in range(100))
    k = make(f"@qd.kernel\ndef k(x: qd.types.ndarray()):\n{loops}\n")
    x = qd.ndarray(qd.i32, 5)
    k(x)
    want = np.zeros(5, np.int32)
    for j in range(100):
        want = want * np.int32(3) + np.int32(j)
    assert (x.to_numpy() == want).all()
    lines = "\n".join(f"        v = v * 3 + {j}" for j in range(5000))
    k = make("@qd.kernel\ndef k(x: qd.types.ndarray()):\n    for i in range(x.shape[0]):\n"
             f"        v = i\n{lines}\n        x[i] = v\n")
    k(x)
    v = np.arange(5, dtype=np.int32)
    for j in range(5000):
        v = v * np.int32(3) + np.int32(j)
    assert (x.to_numpy() == v).all()


def test_names_that_hide_others():
    k = make("""
        @qd.kernel
        def k(x: qd.types.ndarray(), range: qd.i32, qd: qd.i32):
            größe = range + qd
            G = größe
            x[0] = G
        """, G=99)
    x = qd.ndarray(qd.i32, 1)
    k(x, 3, 4)
    assert x[0] == 7


@pytest.mark.parametrize("change", [
    lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, lambda t: "\f" + t,
    lambda t: t.replace("    ", "\t"), lambda t: "# -*- coding: latin-1 -*-\ns = 'é'\n" + t,
], ids=["crlf", "bom", "formfeed", "tabs", "latin-1"])
def test_forms_of_source(tmp_path, change, cache_dir):
    text = change("import ingot as qd\nqd.init()\n\n@qd.kernel\ndef k(x: qd.types.ndarray()):\n"
                  "    for i in range(x.shape[0]):\n        if i > 1:\n            x[i] = i\n\n"
                  "x = qd.ndarray(qd.i32, 4)\nk(x)\nprint(x[3])\n")
    path = tmp_path / "prog.py"
    path.write_bytes(text.encode("latin-1" if "latin-1" in text else "utf-8"))
    for flags in ([], ["-OO"], ["-X", "dev"]):
        done = subprocess.run([sys.executable, *flags, str(path)], capture_output=True,
                              text=True, env=dict(os.environ), timeout=120)
        assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_source_in_a_zip(tmp_path, cache_dir):
    import zipfile

    with zipfile.ZipFile(tmp_path / "m.zip", "w") as z:
        z.writestr("inzip.py", "import ingot as qd\n@qd.kernel\ndef k(x: qd.types.ndarray()):\n"
                               "    x[0] = 5\n")
    prog = (f"import sys; sys.path.insert(0, {str(tmp_path / 'm.zip')!r})\nimport ingot as qd\n"
            "import inzip\nx = qd.ndarray(qd.i32, 1)\ninzip.k(x)\nprint(x[0])")
    done = subprocess.run([sys.executable, "-c", prog], capture_output=True, text=True,
                          env=dict(os.environ), timeout=120)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
