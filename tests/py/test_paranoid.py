"""Paranoid mode: each launch is compared with what the kernel lowers to now. Every other test
can run in it too (INGOT_PARANOID=1, `make stress`)."""

import pytest

import ingot as qd
from ingot import _core

A = qd.types.ndarray()


@pytest.fixture(autouse=True)
def fresh(target):
    yield
    qd.init()


def launch(kernel):
    a = qd.ndarray(qd.f64, 1)
    kernel(a)
    return a[0]


SEEN = 3


def reads_by_itself():
    return SEEN


@qd.kernel
def limited(a: A):
    n = qd.static(reads_by_itself())
    a[0] = n


def test_paranoid_warns_of_what_functions_read(monkeypatch):
    qd.init(paranoid=True)
    assert launch(limited) == 3
    monkeypatch.setitem(globals(), "SEEN", 4)
    with pytest.warns(qd.IngotStaticCallWarning, match=r"reads_by_itself\(\)"):
        assert launch(limited) == 3


@qd.kernel
def plain(a: A):
    a[0] = 2


def test_paranoid_lowers_at_each_launch():
    qd.init(paranoid=True)
    before = _core.counters()["lowerings"]
    assert launch(plain) == launch(plain) == 2
    assert _core.counters()["lowerings"] - before == 3  # once to compile, then once a launch


@qd.kernel
def speaks(a: A):
    qd.static_print("compiling")
    a[0] = 1


def test_paranoid_repeats_no_output(capsys):
    qd.init(paranoid=True)
    assert launch(speaks) == launch(speaks) == 1
    assert capsys.readouterr().out == "compiling\n"


class Turns:
    """A member that runs qd.init with another setting when it has been read `left` times."""

    left = -1

    @property
    def value(self):
        Turns.left -= 1
        if Turns.left == 0:
            qd.init(paranoid=True, fast_math=False)
        return 1


turns = Turns()


@qd.kernel
def asks(a: A):
    a[0] = turns.value


def test_paranoid_while_init_runs():
    """The launch goes on with the settings that it began with."""
    for n in range(1, 7):
        qd.init(paranoid=True, fast_math=True)
        assert launch(asks) == 1
        Turns.left = n
        assert launch(asks) == launch(asks) == 1


@qd.data_oriented
class CompiledIn:
    n = 3


@qd.data_oriented(template_primitives=False)
class ReadAtLaunch:
    n = 3


@qd.kernel
def reads_n(s: qd.template()) -> qd.i32:
    return s.n


def test_classes_that_say_otherwise_of_their_numbers():
    """Whether a number is compiled in is its owner's class's to say, though it is the same one."""
    qd.init(paranoid=True)
    one, two = CompiledIn(), ReadAtLaunch()
    one.n = two.n = 3
    for s in (one, one, two, two, one):
        assert reads_n(s) == 3
