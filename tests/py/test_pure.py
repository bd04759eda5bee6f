"""`fastcache=True` (the purity check of the reference), `print_non_pure`, the switches of the
cache, and the warning about too many variants (R12)."""

import enum
import json
import math
import os
import re
import subprocess
import sys
import warnings

import pytest

import ingot as qd
from ingot import _core

A = qd.types.ndarray()
n = 3
LIMIT = 4
text = "x"
table = qd.ndarray(qd.f32, 2)


class Mode(enum.IntEnum):
    FAST = 2


class Kind(enum.Enum):
    SLOW = 5


class Holder:
    value = 1
    UPPER = 2


@qd.func
def reads_n(v):
    return v + n


@qd.kernel(fastcache=True)
def number(a: A):
    for i in range(1):
        a[0] = n


@qd.kernel(fastcache=True)
def by_a_func(a: A):
    for i in range(1):
        a[0] = reads_n(i)


@qd.kernel(fastcache=True)
def attribute(a: A):
    for i in range(1):
        a[0] = Holder.value


@qd.kernel(fastcache=True)
def captured_array(a: A):
    for i in range(1):
        a[0] = table[0]


@pytest.mark.parametrize("kernel", [number, by_a_func, attribute, captured_array],
                         ids=lambda k: k.__name__)
def test_captures_are_refused(kernel):
    qd.init()
    with pytest.raises(qd.IngotCompilationError, match="PURE.VIOLATION") as e:
        kernel(qd.ndarray(qd.f64, 1))
    assert "test_pure.py:" in str(e.value)  # it shows the place


@qd.kernel(fastcache=True)
def capitals(a: A):
    for i in range(1):
        a[0] = LIMIT


@qd.kernel(fastcache=True)
def capital_attribute(a: A):
    for i in range(1):
        a[0] = Holder.UPPER


@qd.kernel(fastcache=True)
def in_static(a: A):
    for i in range(1):
        if qd.static(n == 3 and text == "x"):
            a[0] = 7


@pytest.mark.parametrize("kernel", [capitals, capital_attribute, in_static],
                         ids=lambda k: k.__name__)
def test_capitals_and_static_warn(kernel, cache_dir):
    a = qd.ndarray(qd.f64, 1)
    for _ in range(2):  # compiled, then loaded: the warning belongs to the variant (R16)
        qd.init(offline_cache_file_path=str(cache_dir))
        with pytest.warns(UserWarning, match="PURE.VIOLATION") as seen:
            kernel(a)
        assert not re.search(r"\.py|\d", str(seen[0].message))  # no file, no line in entries (R19)
    assert kernel._cache_observed["cache_loaded"]


@qd.kernel(fastcache=True)
def allowed(a: A, t: qd.template()):
    for i in range(1):
        a[0] = math.pi + Mode.FAST + Kind.SLOW.value + t + qd.math.pi


def test_enums_and_modules_pass():
    qd.init()
    a = qd.ndarray(qd.f64, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        allowed(a, 1)
    assert a[0] == pytest.approx(2 * math.pi + 8, rel=1e-6)


def make_both():
    def body(a: A):
        for i in range(1):
            a[0] = n

    return qd.kernel(body), qd.kernel(fastcache=True)(body)


def test_an_unmarked_kernel_of_the_same_text_does_not_help(cache_dir):
    qd.init(offline_cache_file_path=str(cache_dir))
    plain, marked = make_both()
    plain(qd.ndarray(qd.f64, 1))
    with pytest.raises(qd.IngotCompilationError, match="PURE.VIOLATION"):
        marked(qd.ndarray(qd.f64, 1))


def test_old_names():
    with pytest.warns(DeprecationWarning):
        @qd.kernel(pure=True)
        def old(a: A):
            for i in range(1):
                a[0] = n
    qd.init()
    with pytest.raises(qd.IngotCompilationError, match="PURE.VIOLATION"):
        old(qd.ndarray(qd.f64, 1))


def test_pure_above_kernel(cache_dir):
    with pytest.warns(DeprecationWarning, match="fastcache"):
        @qd.pure
        @qd.kernel
        def old(a: A):
            for i in range(1):
                a[0] = n

        @qd.pure
        @qd.kernel
        def clean(a: A):
            for i in range(1):
                a[0] = 3
    a = qd.ndarray(qd.f64, 1)
    for _ in range(2):
        qd.init(offline_cache_file_path=str(cache_dir))
        with pytest.raises(qd.IngotCompilationError, match="PURE.VIOLATION"):
            old(a)
        clean(a)
    assert clean._fastcache and clean._cache_observed["cache_loaded"]
    with pytest.warns(DeprecationWarning), pytest.raises(qd.IngotSyntaxError, match="above"):
        qd.pure(make_both)


def test_marked_after_a_launch(cache_dir):
    """The mark is part of what a kernel is: what ran without it does not count."""
    qd.init(offline_cache_file_path=str(cache_dir))
    plain, _ = make_both()
    a = qd.ndarray(qd.f64, 1)
    plain(a)
    with pytest.warns(DeprecationWarning):
        qd.pure(plain)
    with pytest.raises(qd.IngotCompilationError, match="PURE.VIOLATION"):
        plain(a)


# ---- what cannot be replayed ---------------------------------------------------------------


def total(text):
    return 7919 + len(text)  # like no other test


def only_here(fastcache):
    @qd.kernel(fastcache=fastcache)
    def kernel(a: A):
        for i in range(1):
            x = qd.static(total("a\0b"))
            a[0] = x

    return kernel


def test_what_cannot_be_replayed_stays_in_memory(cache_dir):
    """The argument is a value that no path can name: another process cannot make the call."""
    a = qd.ndarray(qd.f64, 1)
    for n in range(2):
        qd.init(offline_cache_file_path=str(cache_dir))
        marked = only_here(True)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            marked(a)
            marked(a)
        assert a[0] == 7922 and marked._variants == 1
        said = [str(w.message) for w in seen]
        assert len([m for m in said if "[FASTCACHE][UNKNOWN_TYPE]" in m]) == (n == 0), said
        assert len([m for m in said if "[FASTCACHE][INVALID_FUNC]" in m and "kernel" in m]) == 1, said
        assert not marked._cache_observed["cache_stored"]
        if n == 0:
            assert any("type str goes to a call of kernel:global(total)" in m for m in said)
    unmarked = only_here(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unmarked(a)
    assert not unmarked._cache_observed["cache_stored"]
    assert not list((cache_dir / "v").rglob("*/*")) and list((cache_dir / "i").rglob("*/*"))


def test_what_stays_in_memory_is_not_stale(monkeypatch, cache_dir):
    qd.init(offline_cache_file_path=str(cache_dir))
    a = qd.ndarray(qd.f64, 1)
    k = only_here(False)
    k(a)
    assert a[0] == 7922
    monkeypatch.setitem(globals(), "total", lambda text: 7)
    k(a)
    assert a[0] == 7


def test_print_non_pure(capsys):
    @qd.kernel
    def unmarked(a: A):
        for i in range(1):
            a[0] = 1

    @qd.kernel(fastcache=True)
    def marked(a: A):
        for i in range(1):
            a[0] = 1

    a = qd.ndarray(qd.f64, 1)
    qd.init(print_non_pure=True)
    for _ in range(3):
        unmarked(a)
        marked(a)
    out = capsys.readouterr().out
    assert out.count("[NOT_PURE]") == 1 and "unmarked" in out
    qd.init()
    unmarked(a)
    assert "[NOT_PURE]" not in capsys.readouterr().out


# ---- switches ---------------------------------------------------------------------------------

PROGRAM = """
import json, sys
import ingot as qd
from ingot import _core
qd.init(**json.loads(sys.argv[1]))
@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(a.shape[0]):
        a[i] = i + 2
a = qd.ndarray(qd.f32, 4)
k(a)
assert a[3] == 5
c = _core.counters()
print(json.dumps([c["kernel_disk_hits"], c["image_disk_hits"], c["lowerings"], c["store_published"]]))
"""


def run(tmp_path, options, **env):
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    out = subprocess.run([sys.executable, str(path), json.dumps(options)], check=True, text=True,
                         capture_output=True, env={**os.environ, **env}).stdout
    return json.loads(out)


@pytest.mark.counts("lowerings")
def test_switches(tmp_path, cache_dir):
    kernels, images, lowered, published = run(tmp_path, {})
    assert (kernels, images, lowered) == (0, 0, 1) and published >= 3
    assert run(tmp_path, {}) == [1, 1, 0, 0]
    assert run(tmp_path, {"src_ll_cache": False}) == [0, 1, 1, 0]  # images alone
    assert run(tmp_path, {"offline_cache": False}) == [0, 0, 1, 0]  # no disk at all
    for prefix in ("INGOT_", "QD_"):
        assert run(tmp_path, {}, **{prefix + "OFFLINE_CACHE": "0"}) == [0, 0, 1, 0]
        assert run(tmp_path, {}, **{prefix + "SRC_LL_CACHE": "0"}) == [0, 1, 1, 0]


@pytest.mark.counts("lowerings")
def test_where_the_cache_is(tmp_path, cache_dir):
    other = str(tmp_path / "other")
    assert run(tmp_path, {"offline_cache_file_path": other})[2] == 1
    assert not cache_dir.exists() and os.path.isdir(other)
    assert run(tmp_path, {"offline_cache_file_path": other}) == [1, 1, 0, 0]
    for prefix in ("INGOT_", "QD_"):
        assert run(tmp_path, {}, **{prefix + "OFFLINE_CACHE_FILE_PATH": other}) == [1, 1, 0, 0]
    assert run(tmp_path, {}, INGOT_CACHE_DIR=other) == [1, 1, 0, 0]


# ---- too many variants ----------------------------------------------------------------------------


def make_templated():
    @qd.kernel
    def templated(a: A, t: qd.template()):
        for i in range(1):
            a[0] = t

    return templated


def test_storm():
    qd.init()
    k = make_templated()
    a = qd.ndarray(qd.f64, 1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for i in range(7):
            k(a, i)
        assert not seen
        for i in range(7, 20):
            k(a, i)
    assert len(seen) == 1  # once
    message = str(seen[0].message)
    assert "templated" in message and "arg(t)" in message and "0, 1, 2" in message
    assert "argument" in message and "template_primitives=False" in message


def test_no_storm_when_types_differ():
    qd.init()
    k = make_templated()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in (qd.i8, qd.i16, qd.i32, qd.i64, qd.u8, qd.u16, qd.u32, qd.u64, qd.f32, qd.f64):
            k(qd.ndarray(t, 1), 1)


@pytest.mark.parametrize("disk", [True, False])
def test_variants_in_memory_are_bounded(cache_dir, disk):
    qd.init(offline_cache=disk, offline_cache_file_path=str(cache_dir), opt_level=0)
    k = make_templated()
    a = qd.ndarray(qd.f64, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(262):
            k(a, i)
            assert a[0] == i
    assert k._variants == 256
    made = _core.counters()["variants"]
    k(a, 0)  # the oldest was dropped: from disk, or made again
    assert a[0] == 0 and k._variants == 256
    assert _core.counters()["variants"] - made == (0 if disk else 1)
    k(a, 261)  # among the youngest
    assert a[0] == 261 and _core.counters()["variants"] - made == (0 if disk else 1)
