"""Kernels and funcs on their way to other processes: by name where a module has them, by text under
cloudpickle; through every start method of multiprocessing and joblib."""

import pickle
import sys
import textwrap

import ingot as qd
import pytest

from conftest import needs, output_of

MODULE = """
    import ingot as qd

    SCALE = 3

    @qd.func
    def scaled(x):
        return x * SCALE

    @qd.kernel
    def k(a: qd.types.ndarray(qd.i32, 1)):
        for i in range(a.shape[0]):
            x: qd.i32 = scaled(i)
            a[i] = x

    @qd.data_oriented
    class Sim:
        def __init__(self):
            self.a = qd.ndarray(qd.i32, 4)

        @qd.kernel
        def step(self):
            for i in range(4):
                self.a[i] = scaled(i) + 1

    def nested(n):
        @qd.kernel
        def inner(a: qd.types.ndarray(qd.i32, 1)):
            for i in range(4):
                a[i] = i + n
        return inner

    def work(k):
        import ingot as qd
        qd.init()
        a = qd.ndarray(qd.i32, 4)
        k(a)
        return a.to_numpy().tolist()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "shipped.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(str(tmp_path))
    import shipped

    yield shipped
    del sys.modules["shipped"]


def test_by_name(module):
    for obj in (module.k, module.scaled, module.Sim.step):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            data = pickle.dumps(obj, protocol)
            assert pickle.loads(data) is obj and b"range" not in data
    sim = pickle.loads(pickle.dumps(module.Sim()))
    sim.step()
    assert sim.a.to_numpy().tolist() == [1, 4, 7, 10]


def test_what_no_name_finds(module):
    with pytest.raises(pickle.PicklingError, match="not this kernel; define it at the top level"):
        pickle.dumps(module.nested(1))
    old = module.k
    module.k = module.nested(2)
    with pytest.raises(pickle.PicklingError, match="shipped.k is not this kernel"):
        pickle.dumps(old)


@needs("cloudpickle")
def test_by_text(module):
    import cloudpickle

    assert pickle.loads(cloudpickle.dumps(module.k)) is module.k  # others can import it
    inner = pickle.loads(cloudpickle.dumps(module.nested(7)))
    assert module.work(inner) == [7, 8, 9, 10]
    inner.note = "kept"
    assert pickle.loads(cloudpickle.dumps(inner)).note == "kept"
    cloudpickle.register_pickle_by_value(module)
    try:
        copy, func, work = pickle.loads(cloudpickle.dumps((module.k, module.scaled, module.work)))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert copy is not module.k and func is not module.scaled
    assert work(copy) == [0, 3, 6, 9] and func(2) == 6


@needs("cloudpickle")
def test_without_text(module):
    import cloudpickle

    scope = {"qd": qd, "__name__": "nowhere"}
    exec("@qd.kernel\ndef k(a: qd.types.ndarray()):\n    a[0] = 1\n", scope)
    with pytest.raises(pickle.PicklingError, match="no source text"):
        cloudpickle.dumps(scope["k"])


def run(path, text, *args):
    (path / "program.py").write_text(textwrap.dedent(text))
    return output_of(sys.executable, "program.py", *args, cwd=path)


OF_MAIN = textwrap.dedent(MODULE) + """
if __name__ == "__main__":
    import multiprocessing, sys
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(work, [k]))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method, tmp_path, cache_dir):
    assert run(tmp_path, "from __future__ import annotations\n" + OF_MAIN, method) == "[[0, 3, 6, 9]]\n"


@needs("cloudpickle")
def test_from_main_into_a_process_without_it(tmp_path, cache_dir):
    text = textwrap.dedent(MODULE) + textwrap.dedent("""
        import cloudpickle
        sim = Sim()
        with open("data", "wb") as f:
            cloudpickle.dump((work, k, nested(5), sim), f)
    """)
    for future in ("", "from __future__ import annotations\n"):
        run(tmp_path, future + text)
        assert run(tmp_path, """
            import pickle
            work, k, inner, sim = pickle.load(open("data", "rb"))
            sim.step()
            print(work(k), work(inner), sim.a.to_numpy().tolist())
        """) == "[0, 3, 6, 9] [5, 6, 7, 8] [1, 4, 7, 10]\n"


@needs("joblib")
def test_joblib(tmp_path, cache_dir):
    text = textwrap.dedent(MODULE) + textwrap.dedent("""
        import joblib
        print(joblib.Parallel(n_jobs=2)(joblib.delayed(work)(k) for _ in range(3)))
    """)
    assert run(tmp_path, text) == "[[0, 3, 6, 9], [0, 3, 6, 9], [0, 3, 6, 9]]\n"


@needs("cloudpickle")
@pytest.mark.counts("compiles")
def test_a_worker_hits_the_cache(tmp_path, cache_dir):
    run(tmp_path, textwrap.dedent(MODULE) + textwrap.dedent("""
        import cloudpickle
        with open("data", "wb") as f:
            cloudpickle.dump((work, k), f)
        work(k)
    """))
    assert run(tmp_path, """
        import pickle
        from ingot import _core
        work, k = pickle.load(open("data", "rb"))
        print(work(k), _core.counters()["helpers_started"])
    """) == "[0, 3, 6, 9] 0\n"
