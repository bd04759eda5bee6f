"""Kernels across processes and threads: the image cache, fork, first launches from many
threads, Ctrl-C, helpers that die. Each program runs in a process of its own."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from conftest import run_program as run, samples

HEAD = """
import sys, os, time, threading
import ingot as qd
from ingot import _core
qd.init(arch=qd.cpu)
"""


def write(tmp_path, body, name="prog.py"):
    path = tmp_path / name
    path.write_text(HEAD + textwrap.dedent(body))
    return path


SAXPY = """
@qd.kernel
def saxpy(a: qd.f32, x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]

x = qd.ndarray(qd.f32, 1000)
y = qd.ndarray(qd.f32, 1000)
for i in range(1000):
    x[i] = i
y.fill(1)
saxpy(2.0, x, y)
assert [y[i] for i in (0, 1, 999)] == [1.0, 3.0, 1999.0]
c = _core.counters()
print("#", c["image_compiles"], c["image_disk_hits"], c["helpers_started"])
"""


WARNS = """
import warnings

@qd.func
def rounded(x):
    y = 1
    y = x  # narrows
    return y

@qd.kernel
def fill(a: qd.types.ndarray(qd.i32, 1), n: qd.f32, x: qd.f32):
    for i in range(n):  # casts
        a[i] = rounded(x)

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    fill(qd.ndarray(qd.i32, 3), 3, 2.5)
for w in seen:
    print(w.message)
print("#", _core.counters()["image_compiles"] > 0)
"""


def test_warnings_know_their_place(tmp_path, cache_dir):
    """Given again from the cache (R16) with the place in today's text (R19), however long its
    path is; no entry names a file of the program."""
    folders = [tmp_path / "a", tmp_path / "b", tmp_path.joinpath(*["deep" * 10] * 6)]
    for k, folder in enumerate(folders):
        folder.mkdir(parents=True)
        head, body = WARNS.split("    for", 1)  # comments above the kernel, and in it
        path = write(folder, "# a comment\n" * k + head + "    # one more\n" * k + "    for" + body)
        lines = path.read_text().splitlines()
        casts, narrows = (next(i for i, line in enumerate(lines, 1) if line.endswith(end))
                          for end in ("# casts", "# narrows"))
        assert run(path).splitlines() == [
            f"{path}:{casts}: Casting range_for boundary values from f32 to i32, which may cause "
            "numerical issues (write n // 2 for n / 2, or int(x))",
            f"{path}:{narrows}: Assign may lose precision: i32 <- f32 (fractions are dropped: a variable that "
            "begins as 0.0 keeps them, int(x) says that they may go)",
            str(k == 0)]
    entries = [p.read_bytes() for p in cache_dir.rglob("*") if p.is_file()]
    assert entries and not any(bytes(tmp_path) in e for e in entries)


def test_second_process_needs_no_llvm(tmp_path, cache_dir):
    prog = write(tmp_path, SAXPY)
    assert run(prog).split() == ["1", "0", "1"]
    assert run(prog).split() == ["0", "1", "0"]
    # Hide llvmlite: a helper would say that it is missing.
    block = tmp_path / "block"
    block.mkdir()
    (block / "llvmlite.py").write_text("raise ImportError('hidden by the test')")
    path = os.pathsep.join(filter(None, [str(block), os.environ.get("PYTHONPATH")]))
    assert run(prog, PYTHONPATH=path).split() == ["0", "1", "0"]


def test_without_llvmlite_the_error_names_it(tmp_path, cache_dir):
    prog = write(tmp_path, """
        from ingot import _helper
        _helper.llvmlite_dirs = lambda: []

        @qd.kernel
        def k(x: qd.types.ndarray()):
            for i in range(x.shape[0]):
                x[i] = 1

        x = qd.ndarray(qd.f32, 4)
        try:
            k(x)
        except qd.IngotCompilationError as e:
            print("llvmlite" in str(e))
        """)
    # The helper is isolated (-I) and gets llvmlite's folder only from its parent; a venv's
    # own site-packages may still hold it, so its interpreter runs without site as well.
    python = nosite_python(tmp_path)
    assert run(prog, INGOT_HELPER_PYTHON=python, agree=False).split() == ["True"]


def test_a_compile_that_hangs_is_given_up(tmp_path, cache_dir):
    prog = write(tmp_path, """
        @qd.kernel
        def k(x: qd.types.ndarray()):
            for i in range(x.shape[0]):
                x[i] = 1

        x = qd.ndarray(qd.f32, 4)
        try:
            k(x)
        except qd.IngotCompilationError as e:
            print("more than 1 seconds" in str(e), "INGOT_COMPILE_TIMEOUT" in str(e))
        """)
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 100\n")
    sleeper.chmod(0o755)
    out = run(prog, INGOT_HELPER_PYTHON=str(sleeper), INGOT_COMPILE_TIMEOUT="1", agree=False)
    assert out.split() == ["True", "True"]
    assert run(prog).split() == []  # no trace of the failure


def nosite_python(tmp_path):
    """A launcher that starts this Python without site-packages."""
    path = tmp_path / "python-nosite"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_compile_that_takes_far_too_long_ends_its_helper():
    """The time of a text is bounded while it is compiled; plain code may take any."""
    program = """
import resource, sys
from ingot import _helper
_helper.MOST_SECONDS = 0

class Slow(_helper.Compiler):
    def __init__(self):
        self.seen = []
    def make(self, options, text):
        self.seen.append(resource.getrlimit(resource.RLIMIT_CPU)[0])
        while text == "endless":
            pass

slow = Slow()
slow.compile({"plain": "1"}, "")
slow.compile({}, " " * 50_000)
slow.compile({"level": "3"}, " " * 50_000)
free, bound, longer = slow.seen
after = resource.getrlimit(resource.RLIMIT_CPU)
print(free == after[0] == after[1], bound < longer, 10 <= bound <= 30, flush=True)
slow.compile({}, "endless")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True"] * 3, done.stderr
    assert done.returncode == -signal.SIGXCPU


def test_a_changed_image_is_compiled_again(tmp_path, cache_dir):
    prog = write(tmp_path, SAXPY)
    run(prog)
    images = [p for p in pathlib.Path(cache_dir).rglob("*") if p.is_file()]
    assert images
    for p in images:
        data = bytearray(p.read_bytes())
        data[len(data) // 2] ^= 1
        p.write_bytes(data)
    assert run(prog).split()[:2] == ["1", "0"]
    assert run(prog).split()[:2] == ["0", "1"]


@pytest.mark.counts("lowerings")
def test_first_launch_from_64_threads(tmp_path, cache_dir):
    prog = write(tmp_path, """
        import linecache
        kernels = []
        for n in range(8):
            text = (f"def k{n}(x: qd.types.ndarray()):\\n    for i in range(x.shape[0]):\\n"
                    f"        x[i] = i * {n} + 1\\n")
            name = f"<k{n}>"
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
            scope = {"qd": qd}
            exec(compile(text, name, "exec"), scope)
            kernels.append(qd.kernel(scope[f"k{n}"]))
        go = threading.Barrier(64)
        errors = []
        def work(t):
            try:
                x = qd.ndarray(qd.i32, 100)
                go.wait()
                kernels[t % 8](x)
                assert x[99] == 99 * (t % 8) + 1, x[99]
            except BaseException as e:
                errors.append(repr(e))
        threads = [threading.Thread(target=work, args=(t,)) for t in range(64)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        c = _core.counters()
        print(len(errors), errors[:1], c["variants"])
        print("#", c["lowerings"], c["image_compiles"])
        """)
    assert run(prog).split() == ["0", "[]", "8", "8", "8"]


def test_fork_after_launch(tmp_path, cache_dir):
    n = max(20, samples(100))
    prog = write(tmp_path, f"""
        @qd.kernel
        def fill(x: qd.types.ndarray(), v: qd.i32):
            for i in range(x.shape[0]):
                x[i] = v

        @qd.kernel
        def late(x: qd.types.ndarray(), v: qd.i32):
            for i in range(x.shape[0]):
                x[i] = v * 2

        x = qd.ndarray(qd.i32, 200000)
        fill(x, 1)
        bad = 0
        for r in range({n}):
            pid = os.fork()
            if pid == 0:
                fill(x, r)
                ok = x[199999] == r
                if r % 10 == 0:
                    late(x, r)
                    ok = ok and x[199999] == 2 * r
                os._exit(0 if ok else 1)
            bad += os.waitpid(pid, 0)[1] != 0
            fill(x, -r)
            bad += x[5] != -r
        print(bad)
        """)
    assert run(prog).split() == ["0"]


ENDLESS = """
@qd.kernel
def spin(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        while x[0] < 1:
            x[i] = x[i] + 0

@qd.kernel
def one(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        x[i] = 7

x = qd.ndarray(qd.i32, int(sys.argv[1]))
one(x)
assert x[0] == 7
x.fill(0)
print("ready", flush=True)
try:
    spin(x)
    print("came back")
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
one(x)
print(x[0])
"""


@pytest.mark.parametrize("size", ["1", "300000"])
def test_ctrl_c(tmp_path, cache_dir, target, size):
    prog = write(tmp_path, ENDLESS)
    p = subprocess.Popen([sys.executable, str(prog), size], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline().strip() == "ready"
        time.sleep(0.5)
        sent = time.time()
        p.send_signal(signal.SIGINT)
        late = threading.Timer(60, p.kill)  # a kernel that goes on is a failure, not a hang
        late.start()
        word, when = p.stdout.readline().split()
        late.cancel()
        assert word == "stopped"
        print(f"stopped after {(float(when) - sent) * 1000:.0f} ms")
        assert p.stdout.readline().strip() == "7"
        assert p.wait(30) == 0
    finally:
        p.kill()
        p.wait()


def test_a_helper_that_is_killed(tmp_path, cache_dir):
    """Killed in the middle of a compile: retried once; killed always: an error, and the next
    kernel compiles."""
    prog = write(tmp_path, """
        import signal
        body = "\\n".join(f"        x[i] = x[i] * {k}.5 + x[i] // {k + 1}" for k in range(400))
        def make(name):
            import linecache
            text = f"def {name}(x: qd.types.ndarray()):\\n    for i in range(x.shape[0]):\\n{body}\\n"
            text = text.replace("7.5", name[-1] + ".25")
            file = f"<{name}>"
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
            scope = {"qd": qd}
            exec(compile(text, file, "exec"), scope)
            return qd.kernel(scope[name])

        def kill_children(times):
            killed = 0
            end = time.time() + 60
            while killed < times and time.time() < end:
                for pid in children():
                    try:
                        os.kill(pid, signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        pass
                time.sleep(0.02)

        def children():
            out = []
            for t in os.listdir("/proc/self/task"):
                try:
                    out += [int(p) for p in open(f"/proc/self/task/{t}/children").read().split()]
                except OSError:
                    pass
            return out

        x = qd.ndarray(qd.f32, 4)
        t = threading.Thread(target=kill_children, args=(1,))
        t.start()
        make("k1")(x)
        t.join()
        c = _core.counters()
        print(c["helpers_started"] >= 2)

        stop = threading.Event()
        def always():
            while not stop.is_set():
                kill_children(1) if children() else time.sleep(0.005)
        t = threading.Thread(target=always)
        t.start()
        @qd.kernel
        def k2(x: qd.types.ndarray()):
            for i in range(x.shape[0]):
                x[i] = 2
        try:
            k2(x)
            print("compiled")
        except qd.IngotCompilationError as e:
            print("refused")
        stop.set()
        t.join()
        k2(x)
        print(x[3])
        """)
    assert run(prog, agree=False).split() == ["True", "refused", "2.0"]


def test_nothing_is_written_on_a_hit(tmp_path, cache_dir):
    prog = write(tmp_path, SAXPY)
    run(prog)
    before = {p: p.stat().st_mtime_ns for p in pathlib.Path(cache_dir).rglob("*")}
    run(prog)
    after = {p: p.stat().st_mtime_ns for p in pathlib.Path(cache_dir).rglob("*")}
    assert before == after


def test_read_only_cache(tmp_path, cache_dir):
    prog = write(tmp_path, SAXPY)
    run(prog)
    for p in sorted(pathlib.Path(cache_dir).rglob("*"), reverse=True):
        p.chmod(0o500 if p.is_dir() else 0o400)
    pathlib.Path(cache_dir).chmod(0o500)
    try:
        assert run(prog).split() == ["0", "1", "0"]
    finally:
        for p in [pathlib.Path(cache_dir), *pathlib.Path(cache_dir).rglob("*")]:
            p.chmod(0o700)


def test_offline_cache_off(tmp_path, cache_dir):
    prog = write(tmp_path, SAXPY.replace("@qd.kernel", "qd.init(offline_cache=False)\n@qd.kernel"))
    assert run(prog).split()[:2] == ["1", "0"]
    assert run(prog).split()[:2] == ["1", "0"]
    assert not any(pathlib.Path(cache_dir).rglob("*"))


def test_ctrl_c_while_another_thread_compiles(tmp_path, cache_dir):
    prog = write(tmp_path, """
        import signal
        compiling, go = threading.Event(), threading.Event()
        class Slow:
            @property
            def n(self):
                compiling.set()
                go.wait()
                return 3
        slow = Slow()
        @qd.kernel
        def k(x: qd.types.ndarray()):
            for i in range(x.shape[0]):
                x[i] = slow.n
        x, y = qd.ndarray(qd.i32, 4), qd.ndarray(qd.i32, 4)
        t = threading.Thread(target=k, args=(x,))
        t.start()
        compiling.wait()
        alarm = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        late = threading.Timer(60, go.set)  # a wait that goes on is a failure, not a hang
        late.daemon = True
        [a.start() for a in (alarm, late)]
        try:
            k(y)
            print("came back")
        except KeyboardInterrupt:
            print("stopped")
        late.cancel()
        go.set()
        t.join()
        k(y)
        print(x[3], y[3])
        """)
    assert run(prog).split() == ["stopped", "3", "3"]


def test_kernels_that_need_each_other_in_two_threads(tmp_path, cache_dir):
    """Each thread compiles its kernel, whose property launches that of the other."""
    prog = write(tmp_path, """
        both = threading.Barrier(2)
        first = threading.local()
        class Needs:
            def __init__(self, other):
                self.other = other
            @property
            def n(self):
                if not hasattr(first, "done"):
                    first.done = True
                    both.wait()
                kernels[self.other](qd.ndarray(qd.i32, 4))
                return 1
        def make(needs):
            @qd.kernel
            def k(x: qd.types.ndarray()):
                for i in range(x.shape[0]):
                    x[i] = needs.n
            return k
        kernels = [make(Needs(1)), make(Needs(0))]
        told = []
        def work(k):
            try:
                k(qd.ndarray(qd.i32, 4))
            except qd.IngotError as e:
                told.append("k itself: a property" in str(e))
        threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in kernels]
        [t.start() for t in threads]
        [t.join(60) for t in threads]
        print([t.is_alive() for t in threads], told)

        @qd.kernel
        def good(x: qd.types.ndarray()):
            for i in range(x.shape[0]):
                x[i] = 7
        x = qd.ndarray(qd.i32, 4)
        good(x)
        print(x[3])
        """)
    out = run(prog).splitlines()
    assert out == ["[False, False] [True, True]", "7"]
