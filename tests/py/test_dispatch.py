"""`qd.perf_dispatch`: contests, what a later process knows of them, and forced choices."""

import subprocess
import sys
import textwrap

import pytest

import ingot as qd

PROGRAM = '''
import time
import ingot as qd

qd.init()

@qd.perf_dispatch(get_geometry_hash=lambda n: n % 2, repeat_after_count=0)
def work(n): ...

@work.register
def slow(n):
    time.sleep({slow})
    return "slow"

@work.register
def quick(n):
    return "quick"

print(*[work(2) for _ in range(6)])
'''


@pytest.fixture
def program(tmp_path, cache_dir):
    def run(slow=0.02, **environment):
        import os

        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(PROGRAM.format(slow=slow)))
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, **environment))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


CONTEST = "slow quick slow quick quick quick"


def test_winner_is_remembered(program):
    assert program() == CONTEST
    assert program() == "quick quick quick quick quick quick"
    assert program(slow=0.03) == CONTEST  # another text: another contest


def test_no_cache_no_memory(program):
    assert program(INGOT_OFFLINE_CACHE="0") == CONTEST
    assert program(INGOT_OFFLINE_CACHE="0") == CONTEST


def test_forced(program):
    out = program(QD_PERFDISPATCH_FORCE="work:slow,other:x").splitlines()
    assert out[-1] == "slow " * 5 + "slow" and "perf_dispatch 'work': registered 'quick'" in out
    out = program(QD_PERFDISPATCH_FORCE="work:none").splitlines()
    assert out[-1] == CONTEST and any("'none' is none of ['slow', 'quick']" in line for line in out)
    assert program(QD_PERFDISPATCH_FORCE="?").splitlines()[-1] == "quick " * 5 + "quick"


def test_forced_malformed():
    from ingot._dispatch import parse_forced

    assert parse_forced("a:b, c:d") == {"a": "b", "c": "d"} and parse_forced(None) == {}
    with pytest.raises(ValueError, match="Malformed"):
        parse_forced("no_colon")


def test_kernels_and_compatibility():
    qd.init(arch=qd.cpu)

    @qd.perf_dispatch(get_geometry_hash=lambda x: x.shape, repeat_after_count=4, remember=False)
    def fill(x): ...

    calls = []

    @fill.register
    @qd.kernel
    def by_kernel(x: qd.types.ndarray()):
        for i in x:
            x[i] = 7

    @fill.register(is_compatible=lambda x: x.shape[0] > 4)
    def by_python(x):
        calls.append(1)
        x.fill(7)

    small, large = qd.ndarray(qd.i32, 3), qd.ndarray(qd.i32, 8)
    for x in (small, large):
        for _ in range(4):
            x.fill(0)
            fill(x)
            assert (x.to_numpy() == 7).all()
    assert len(calls) == 2  # one untimed and one timed call, and never for the small array
    with pytest.raises(qd.IngotSyntaxError, match="parameters"):
        fill.register(lambda y: None)
