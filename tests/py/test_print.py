"""print in kernels: what the lines look like, where they go, and that none is lost."""

import contextlib
import io
import subprocess
import sys

import pytest

import ingot as qd

N = 5


@pytest.fixture(params=["native", "interp"], autouse=True)
def arch(request):
    qd.init(arch=qd.interp if request.param == "interp" else qd.cpu)
    yield
    qd.init(arch=qd.cpu)


def output(kernel, *args):
    to = io.StringIO()
    with contextlib.redirect_stdout(to):
        kernel(*args)
    return to.getvalue()


@qd.kernel
def every_dtype(
    a: qd.i8, b: qd.u8, c: qd.i16, d: qd.u16, e: qd.i32, f: qd.u32, g: qd.i64, h: qd.u64,
    i: qd.f16, j: qd.f32, k: qd.f64, m: qd.u1,
):
    print(a, b, c, d, e, f, g, h, i, j, k, m)


def test_every_dtype():
    text = output(every_dtype, -3, 200, -4, 60000, -5, 2**32 - 1, -(2**63), 2**64 - 1, 1.5, 2.25,
                  1 / 3, True)
    assert text == (
        "-3 200 -4 60000 -5 4294967295 -9223372036854775808 18446744073709551615 "
        "1.500000 2.250000 0.333333333333 1\n"
    )


@qd.kernel
def constants():
    print(1234.5, 3, True, "s", None)
    print("100%", "%d {} {x}")
    print()
    print([1, 2.5], (3,), [], N)


def test_constants():
    assert output(constants) == (
        "1234.500000 3 1 s None\n100% %d {} {x}\n\n[1, 2.500000] [3] [] 5\n"
    )


@qd.kernel
def f_strings(x: qd.i32, f: qd.f32, u: qd.u32):
    print(f"{1234.5} {3} {True} {N} {x} {f} {u} {{}}")
    print(f"{x:5d}|{x:-5d}|{x:05d}|{x:+d}|{x:.3}")
    print(f"{u:x}|{u:#X}|{u:o}|{f:8.3f}|{f:e}|{f:.3g}|{f:.1}")
    print(f"{x = } {x + 1 = :d}")
    print(f"[{f:{'.2'}f}]")


def test_f_strings():
    assert output(f_strings, 3, 2.5, 255) == (
        "1234.5 3 True 5 3 2.500000 255 {}\n"
        "    3|3    |00003|+3|003\n"
        "ff|0XFF|377|   2.500|2.500000e+00|2.5|2.5\n"
        "x = 3 x + 1 = 4\n"
        "[2.50]\n"
    )


@qd.kernel
def str_format(x: qd.i32, f: qd.f32):
    print("{} {:.2f} {name:i}".format(x, f, name=7))
    print("{1} {0} {{x}} {0:3d}".format(x, f))
    print("{2} {1} {}".format(3, 2, 1))


def test_str_format():
    assert output(str_format, 3, 2.5) == "3 2.50 7\n2.500000 3 {x}   3\n1 2 3\n"


@qd.kernel
def sep_end(x: qd.i32):
    print("a", x, "b", sep="")
    print(1, 2, sep=", ", end=";")
    print("ä€", end="\n", flush=True)


def test_sep_and_end():
    assert output(sep_end, 3) == "a3b\n1, 2;ä€\n"


@qd.func
def said(x):
    print("func", x)
    return x + 1


@qd.kernel
def in_a_func(x: qd.i32):
    said(said(x))


def test_in_a_func():
    assert output(in_a_func, 1) == "func 1\nfunc 2\n"


@qd.kernel
def many(n: qd.i32):
    for i in range(n):
        print("line", i, i * 0.5)


@pytest.mark.parametrize("threads", [1, 0])
def test_nothing_is_lost(threads):
    count = 20000
    qd.init(arch=qd.cpu, cpu_max_num_threads=threads)
    lines = output(many, count).splitlines()
    assert len(lines) == count
    assert set(lines) == {f"line {i} {i * 0.5:.6f}" for i in range(count)}
    if threads == 1:
        assert lines[-1] == f"line {count - 1} {(count - 1) * 0.5:.6f}"


def test_in_order_with_python():
    to = io.StringIO()
    with contextlib.redirect_stdout(to):
        print("before")
        in_a_func(1)
        print("after")
    assert to.getvalue() == "before\nfunc 1\nfunc 2\nafter\n"


def test_a_stdout_that_raises():
    class Broken:
        def write(self, text):
            raise OSError("full")

    with contextlib.redirect_stdout(Broken()), pytest.raises(OSError, match="full"):
        many(100000)
    assert output(in_a_func, 1) == "func 1\nfunc 2\n"


def test_no_stdout():
    with contextlib.redirect_stdout(None):
        many(10)


@qd.kernel
def at_compile_time(x: qd.i32):
    qd.static_print("compiling", N, (1, "a"), [2.5, None], x, sep="-")
    print("running")


def test_static_print():
    assert output(at_compile_time, 1) == "compiling-5-(1, 'a')-[2.5, None]-a run-time i32\nrunning\n"
    assert output(at_compile_time, 1) == "running\n"


# ---- mistakes ------------------------------------------------------------------------------------


@qd.kernel
def wrong_signed(x: qd.i32):
    print(f"{x:u}")


@qd.kernel
def wrong_float(f: qd.f32):
    print("{:.2d}".format(f))


@qd.kernel
def unsupported_conversion(x: qd.i32):
    print(f"{x:c}")


@qd.kernel
def no_such_format(x: qd.i32):
    print(f"{x:<5}")


@qd.kernel
def percent(x: qd.i32):
    print("%d" % x)


@qd.kernel
def too_many():
    print("{0}".format(1, 2))


@qd.kernel
def unused(x: qd.i32):
    print("".format(k=x))


@qd.kernel
def missing():
    print("{k}".format())


@qd.kernel
def to_file(x: qd.i32):
    print(x, file=None)


@pytest.mark.parametrize(
    "kernel, args, error, text",
    [
        (wrong_signed, [1], qd.IngotTypeError, "'u' doesn't match 'i32'."),
        (wrong_float, [1.0], qd.IngotTypeError, "'.2d' doesn't match 'f32'."),
        (unsupported_conversion, [1], qd.IngotTypeError, "conversion 'c' is not supported."),
        (no_such_format, [1], qd.IngotSyntaxError, "'<5' is not a format"),
        (percent, [1], qd.IngotTypeError, "'%' cannot format"),
        (too_many, [], qd.IngotSyntaxError, "Expected 1 positional argument(s), but received 2"),
        (unused, [1], qd.IngotSyntaxError, "Keyword 'k' not used."),
        (missing, [], qd.IngotSyntaxError, "Keyword 'k' not found."),
        (to_file, [1], qd.IngotSyntaxError, "print has no parameter 'file'"),
    ],
)
def test_mistakes(kernel, args, error, text):
    with pytest.raises(error) as caught:
        kernel(*args)
    assert text in str(caught.value) and "help: " in str(caught.value)


def test_locale_does_not_matter(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import locale\n"
        "for name in ('de_DE.UTF-8', 'fr_FR.UTF-8'):\n"
        "    try:\n"
        "        locale.setlocale(locale.LC_ALL, name)\n"
        "    except locale.Error:\n"
        "        pass\n"
        "import ingot as qd\n"
        "@qd.kernel\n"
        "def k(x: qd.f32):\n"
        "    print(x)\n"
        "k(1.5)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "1.500000\n", done.stderr
