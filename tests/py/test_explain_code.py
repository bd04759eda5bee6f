"""`qd.explain(kernel, code=True)` and `ingot explain --code`: what the passes decided, at the lines where it is."""

import subprocess
import sys

import pytest

import ingot as qd

F1 = qd.types.ndarray(qd.f32, 1)
F2 = qd.types.ndarray(qd.f32, 2)
I1 = qd.types.ndarray(qd.i32, 1)


def floats(*shape):
    return qd.ndarray(qd.f32, shape)


def ints(n):
    return qd.ndarray(qd.i32, (n,))


@pytest.fixture(autouse=True)
def engine():
    qd.init()


def told(kernel, *args):
    """Words by line, counted from the kernel's `def`; the file is this one."""
    kernel(*args)
    out = {}
    for text in qd.explain(kernel, code=True):
        place, _, words = text.partition(": ")
        file, _, line = place.rpartition(":")
        assert file.endswith("test_explain_code.py")
        out.setdefault(int(line), []).append(words)
    first = min(out) if out else 0
    return {line - first: words for line, words in out.items()}


def has(words, part):
    return any(part in w for w in words)


def test_parallel_vectors_and_plain_updates():
    @qd.kernel
    def add(x: F1, y: F1):
        for i in range(x.shape[0]):
            y[i] += x[i]

    got = told(add, floats(9), floats(9))
    assert has(got[0], "runs in parallel") and has(got[0], "iterations are independent")
    assert got[1] == ["y: plain updates: no other iteration writes there"]


def test_atomics_stay_where_data_choose_the_place():
    @qd.kernel
    def scatter(k: I1, y: F1):
        for i in range(k.shape[0]):
            y[k[i]] += 1.0

    got = told(scatter, ints(9), floats(9))
    assert has(got[0], "one by one: there are atomic updates")
    assert got[1] == ["y: updates stay atomic: the subscripts do not tell iterations apart"]


def test_neighbouring_places_are_no_private_ones():
    """A near miss of the plain updates: two iterations meet at one place."""

    @qd.kernel
    def spread(x: F1, y: F1):
        for i in range(x.shape[0] - 1):
            y[i] += x[i]
            y[i + 1] += x[i]

    got = told(spread, floats(9), floats(9))
    assert has(got[1], "stay atomic") and has(got[2], "stay atomic") and not has(got[1], "plain")


def test_sums_and_counts():
    @qd.kernel
    def gather(x: F1, s: F1, k: I1, h: I1):
        for i in range(x.shape[0]):
            s[0] += x[i]
        for i in range(k.shape[0]):
            h[k[i]] += 1

    got = told(gather, floats(9), floats(1), ints(9), ints(9))
    assert len(got[1]) == 1 and has(got[1], "s: all iterations update one place")
    assert len(got[3]) == 1 and has(got[3], "h: integers at places that the data choose")


def test_loops_that_run_on_one_thread():
    @qd.kernel
    def slow(x: F1):
        qd.loop_config(serialize=True)
        for i in range(1, x.shape[0]):
            x[i] += x[i - 1]
        if x[0] > 0.0:
            for i in range(x.shape[0]):
                x[i] = 0.0

    got = told(slow, floats(9))
    assert got[0] == ["runs on one thread: qd.loop_config(serialize=True)"]
    assert got[3] == ["runs on one thread: only loops at the top level of a kernel are parallel"]


def test_what_keeps_iterations_apart():
    @qd.kernel
    def odd(x: F1):
        for i in range(x.shape[0]):
            while x[i] > 2.0:
                x[i] = x[i] - 1.0
        for i in range(x.shape[0]):
            x[i] = qd.random()
        for i in range(x.shape[0]):
            if i == 1000:
                print(i)

    got = told(odd, floats(9))
    assert has(got[0], "a while loop inside")
    assert has(got[3], "random numbers are drawn")
    assert has(got[5], "it prints")


def test_held_in_a_register():
    @qd.kernel
    def dot(a: F2, x: F1, y: F1):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                y[i] += a[i, j] * x[j]

    words = [w for ws in told(dot, floats(40, 50), floats(50), floats(40)).values() for w in ws]
    assert has(words, "y: ") and (has(words, "register") or has(words, "side by side"))


def test_funcs_of_other_lines_and_captured_arrays():
    total = qd.field(qd.f32, shape=())

    @qd.func
    def note(v):
        total[None] += v

    @qd.kernel
    def through(x: F1):
        for i in range(x.shape[0]):
            note(x[i])

    words = [w for ws in told(through, floats(9)).values() for w in ws]
    assert has(words, "runs in parallel")
    assert has(words, "total, read by note: all iterations update one place") or has(words, "stay atomic")


def test_unrolled_updates_are_told_once():
    @qd.kernel
    def unrolled(k: I1, y: F1):
        for i in range(k.shape[0]):
            for a in qd.static(range(300)):
                y[k[i] + a] += 1.0

    got = told(unrolled, ints(9), floats(400))
    assert has(got[0], "runs in parallel") and len(got[2]) == 1


def test_a_kernel_without_loops_says_nothing():
    @qd.kernel
    def plain(x: F1):
        x[0] = 1.0

    plain(floats(3))
    assert qd.explain(plain, code=True) == []
    with pytest.raises(TypeError, match="launch= and code="):
        qd.explain(plain, colour=True)


def test_command(tmp_path):
    script = tmp_path / "sums.py"
    script.write_text(
        "import ingot as qd\nqd.init()\nF = qd.types.ndarray(qd.f32, 1)\n@qd.kernel\ndef adds(x: F, y: F):\n"
        "    for i in range(x.shape[0]):\n        y[i] += x[i]\n@qd.kernel\ndef other(x: F):\n    x[0] = 1.0\n"
        "a, b = qd.ndarray(qd.f32, (5,)), qd.ndarray(qd.f32, (5,))\nadds(a, b)\nother(a)\n")

    import os

    env = dict(os.environ, INGOT_CACHE_DIR=str(tmp_path / "cache"))
    subprocess.run([sys.executable, str(script)], check=True, env=env)
    subprocess.run([sys.executable, str(script)], check=True, env=env)  # from disk: nothing is noted anew
    command = [sys.executable, "-m", "ingot", "explain", "--code"]
    done = subprocess.run([*command, "adds"], check=True, env=env, capture_output=True, text=True).stdout
    assert done.splitlines() == [
        "sums.py.adds:", "  sums.py:6: runs in parallel",
        "  sums.py:6: iterations are independent: vectorised where LLVM finds that it pays",
        "  sums.py:7: y: plain updates: no other iteration writes there"]
    done = subprocess.run([*command, "other"], check=True, env=env, capture_output=True, text=True).stdout
    assert "nothing is on record" in done
    assert subprocess.run([*command, "none"], env=env, capture_output=True).returncode == 1
