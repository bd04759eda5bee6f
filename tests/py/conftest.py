"""What all Python tests share: a cache directory of their own, sample sizes, and a way to
say that a test needs something optional.

    from conftest import needs, samples     (or the fixtures of the same names)

    @needs("torch")                 not run, and said so at the end, when torch is missing
    def test_torch(): ...

    for seed in range(samples(2000)):   2000 under `make stress`, else a twentieth

    @pytest.mark.counts("lowerings")    not run, and said so, under INGOT_PARANOID=1, where each
    def test_once(): ...                launch lowers again; pytestmark = ... for a whole file

Kernels run as native code, on the interpreter and on the mock device: test files take the fixture
`target`, and
programs in processes of their own run by `run_program`, which runs them on both.
"""

import atexit
import gc
import importlib.util
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

SHARE = min(float(os.environ.get("INGOT_STRESS") or 0), 1.0) or 1 / 20  # of the cases of randomised tests
STRESS = SHARE == 1.0
PARANOID = os.environ.get("INGOT_PARANOID", "0") not in ("", "0")  # processes of tests inherit it
CLAIMS = os.environ.pop("INGOT_TEST_CLAIMS", None)  # a directory, from tools/run_tests.py
SEED = 20240229  # of every randomised test, so that `make test` is the same each time

# Before anything imports ingot: the user's cache is never touched. Mode 0700.
_scratch = tempfile.mkdtemp(prefix="ingot-pytest-")
atexit.register(shutil.rmtree, _scratch, ignore_errors=True)
os.environ["INGOT_CACHE_DIR"] = os.path.join(_scratch, "cache")
os.environ["INGOT_SERVER"] = "0"  # nothing is left behind; test_server.py turns it on
for _name in [n for n in os.environ if n.startswith("QD_")]:
    del os.environ[_name]  # settings of the person who runs the tests

# A background job of a shell, as CI may be, starts with SIGINT ignored, and so would the
# processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_not_run = {}  # reason -> how many tests


PROGRAMS = {"graphviz": "dot"}
PROGRAMS |= {n: n for n in ("valgrind", "gdb", "perf", "gcc", "objdump", "nm", "clang-format", "strace")}
PROGRAMS |= {"redis-server": "redis-server", "mpirun": "mpirun"}


def _missing(what):
    """Why `what` cannot be used, or None. A name is a program's or else a module's."""
    if what in PROGRAMS:
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
        there = shutil.which(PROGRAMS[what], path=path)
    else:
        there = importlib.util.find_spec(what)
    return None if there else f"{what} (not installed)"


def needs(*things):
    """Marks a test as needing optional modules or programs, by name."""
    reasons = [r for r in map(_missing, things) if r]
    if not reasons:
        return lambda test: test
    return pytest.mark.not_run(reason=reasons[0])


def as_root(why):
    """Marks a test as one for root alone."""
    return (lambda test: test) if os.geteuid() == 0 else pytest.mark.not_run(reason=f"root ({why})")


def samples(full):
    """How many cases a randomised test runs: all under `make stress`, INGOT_STRESS=0.1 a tenth, else a twentieth."""
    return max(1, int(full * SHARE + 1e-9))


@pytest.fixture(name="samples")
def samples_fixture():
    return samples


@pytest.fixture
def cache_dir(tmp_path, monkeypatch):
    """An empty cache directory for this test and the processes that it starts."""
    path = tmp_path / "cache"
    monkeypatch.setenv("INGOT_CACHE_DIR", str(path))
    return path


ARCHS = {"native": "cpu", "interp": "interp", "mock": "mock"}


@pytest.fixture(params=ARCHS)
def target(request, monkeypatch):
    """Each test on each target: the environment decides over what `qd.init` is told, also in
    the processes that a test starts. Tests that share memory with other libraries, or look at
    what only the CPU does, carry the mark `host_memory`: the mock device has its own."""
    monkeypatch.setenv("INGOT_ARCH", ARCHS[request.param])
    return request.param


@pytest.fixture
def each_target(target, monkeypatch):
    """As that, initialised; what comes after the test finds what it would without it."""
    import ingot as qd

    qd.init()
    yield
    monkeypatch.setenv("INGOT_ARCH", "cpu")
    qd.init()


@pytest.fixture(autouse=True, scope="module")
def leave_no_target():
    """A file that ends on another target does not hand it to the next one."""
    yield
    qd = sys.modules.get("ingot")
    if qd is not None and qd.cfg.arch is not qd.cpu:
        qd.init(arch=qd.cpu)


def output_of(*command, code=0, timeout=300, cwd=None, **env):
    """What a command prints, which must end with this code; `env` comes on top of the environment."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=timeout, cwd=cwd, env={**os.environ, **env})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def filled(value, n=4, dtype=None):
    """A new ndarray of n equal numbers, of f32 unless told."""
    import ingot as qd

    a = qd.ndarray(dtype or qd.f32, n)
    a.fill(value)
    return a


def counted(name, call):
    """By how much a call raises a counter of the engine."""
    import ingot as qd

    before = qd._core.counters()[name]
    call()
    return qd._core.counters()[name] - before


def _run_python(path, args, timeout, code, env):
    return output_of(sys.executable, "-B", path, *args, code=code, timeout=timeout, **env)


def _values(out):
    return [line for line in out.splitlines() if not line.startswith("#")]


_agreed = set()  # programs, with the modules next to them, that both targets agree about


def run_program(path, *args, code=0, timeout=240, agree=True, **env):
    """What a program prints. Lines with a # are about images and the cache, and returned
    without it; all others must be the same on the interpreter, which has no cache. Each
    program is tried there once; agree=False: it is about compiling native code."""
    out = _run_python(path, args, timeout, code, {"INGOT_ARCH": "cpu", **env})
    texts = tuple(sorted((p.name, p.read_text()) for p in path.parent.glob("*.py")))
    if agree and (texts, args) not in _agreed:
        alone = {**env, "INGOT_ARCH": "interp", "INGOT_CACHE_DIR": str(path.parent / "none")}
        assert _values(out) == _values(_run_python(path, args, timeout, code, alone))
        assert not [p for p in (path.parent / "none").rglob("*") if p.is_file()]
        _agreed.add((texts, args))
    return "".join(line.removeprefix("#").lstrip() + "\n" for line in out.splitlines())


def pytest_configure(config):
    config.addinivalue_line("markers", "not_run(reason): needs something that is missing")
    config.addinivalue_line("markers", "counts(what): counts what paranoid mode does more often (calls, parses, "
                            "lowerings, time), or tests what it forestalls; not run under INGOT_PARANOID=1")
    config.addinivalue_line("markers", "host_memory: shares memory with other libraries, which the mock "
                            "device cannot; not run there")
    config.addinivalue_line("markers", "after_passes: about tasks, sums, overlaps or checkpoints; not for "
                            "the run of `make stress` on the IR as lowered")
    try:
        import hypothesis
    except ImportError:
        return
    hypothesis.settings.register_profile(
        "ingot", derandomize=not STRESS, deadline=None, database=None,
        max_examples=samples(2000), suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("ingot")


@pytest.fixture(autouse=True, scope="module")
def old_objects_are_left_alone():
    """What was there before a file of tests is alive until the end: collections of garbage, of which
    many tests make many, need not look at it again. PyTorch alone has 160,000 objects."""
    gc.collect()
    gc.freeze()


def _claim(name):
    """Takes a file of tests for this process; False when another has taken it."""
    try:
        os.close(os.open(os.path.join(CLAIMS, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def pytest_runtestloop(session):
    """Of several processes that share the tests, each takes the next file that is left;
    pytest's own loop runs when this is the only one."""
    if not CLAIMS or session.testsfailed or session.config.option.collectonly:
        return None
    for path, items in itertools.groupby(session.items, lambda item: item.path):
        if not _claim(path.stem):
            continue
        items = list(items)
        for item, following in zip(items, [*items[1:], None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail or session.shouldstop:
                raise session.Interrupted(session.shouldfail or session.shouldstop)
    return True


def _why_not(item):
    mark = item.get_closest_marker("not_run")
    if mark:
        return mark.kwargs["reason"]
    if item.get_closest_marker("host_memory") and "mock" in item.name:
        return "about memory that is shared with the host (not for the mock device)"
    mark = item.get_closest_marker("counts") if PARANOID else None
    return f"about {mark.args[0]} (not for INGOT_PARANOID=1)" if mark else None


def pytest_runtest_setup(item):
    reason = _why_not(item)
    if reason:
        _not_run[reason] = _not_run.get(reason, 0) + 1
        pytest.skip(f"not run: {reason}")


def pytest_terminal_summary(terminalreporter):
    for reason, count in sorted(_not_run.items()):
        terminalreporter.write_line(f"not run: {reason}: {count} test(s)")
    path = os.environ.get("INGOT_NOT_RUN_FILE")
    if path and _not_run:
        with open(path, "a", encoding="utf-8") as out:
            for reason, count in sorted(_not_run.items()):
                out.write(f"{reason}: {count} test(s)\n")
