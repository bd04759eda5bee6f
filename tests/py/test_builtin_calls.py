"""Calls of Python's functions with every count and kind of arguments, against Python itself: a kernel
gives the same value of the same type, raises where Python raises, or refuses. Inside qd.static and
in the body, where numbers may also be those of the run time."""

import itertools
import math
import random

import numpy as np
import pytest

import ingot as qd
from conftest import SEED, samples


class Thing:
    pass


SCOPE = {"G": 5, "GL": [4, 2, 9], "GD": {"x": 1, "y": 2}, "GS": "word", "GN": np.float32(1.5), "GO": Thing(),
         "GE": [], "GT": (2, 1), "np": np, "qd": qd}
NUMBERS = ["3", "-2", "0", "True", "2.5", "-0.0", "1e400", "70", "G"]
OTHERS = ["'ab'", "''", "'7'", "None", "()", "(1, 2)", "[3, 1]", "(1, 'a')", "((2, 1), (0, 5))", "range(3)",
          "{'a': 1}", "GL", "GD", "GS", "GN", "int", "GO", "GE", "GT"]
FUNCTIONS = """max min abs pow round sum len sorted divmod int float bool any all tuple list reversed range
               zip enumerate isinstance type str repr chr ord hasattr getattr""".split()
LAZY = (range, zip, enumerate, reversed, type(iter(range(0))), type(reversed([])), type(reversed(range(0))))

BY_NAME = """
max(1, 2, key=None)  max([1], default=3)  max((), default=3)  max(1, 2, default=3)  min((), default=3)  max(key=1)
max(3, default=1)  sum((1,), start=2)  sum(start=1)  sum((1, 2), 3, 4)  sum((1,2), foo=1)  sorted((2, 1), reverse=1)
sorted((2,1), reverse='')  sorted((2,1), None)  sorted((2,1), foo=1)  sorted(iterable=(1,))  int(x=3)
int('7', base=8)  int(3, base=8)  int(3.5, 8)  int(base=3)  round(2.5, ndigits=1)  round(number=2.5)
round(2.5, 1.0)  pow(base=2, exp=3)  pow(2, exp=3)  pow(2, 3, mod=5)  float(x=1)  bool(x=1)  len(obj=(1,))
abs(x=1)  divmod(x=1, y=2)  enumerate((1, 2), start=1)  enumerate(iterable=(1, 2))  enumerate((1, 2), 1, 2)
enumerate((1, 2), foo=3)  zip((1, 2), (3,), strict=True)  zip((1, 2), (3, 4), strict=True)
zip((1, 2), (3,), foo=True)  range(start=3)  range(stop=3)  tuple((1,), (2,))  tuple(iterable=(1,))
list(iterable=(1,))  any(x=(1,))  reversed(sequence=(1,))  isinstance(3, cls=int)  isinstance(3, (int, str))
isinstance(3, (int, (str,)))  isinstance(3, 3)  isinstance(3, ())  str(object=3)  str(3, 4)  getattr(3, 'real')
getattr(3, 'nope')  getattr(3, 'nope', 7)  getattr(3, 'nope', 7, 8)  hasattr(3, 'real')  hasattr(3, 'nope')
getattr(GO, 'zz', None)  getattr(GO, 'zz')  max(*(1, 2))  max(*[])  max(*(3,))  sum(*((1, 2),))  max(**{})
max(1, 2, **{'key': None})
""".replace("\n", "  ").split("  ")

EDGES = """
abs(-2**40)  max(2**40, 3)  divmod(2**40, 7)  sum((2**40, 1))  int(2**40)  float(2**40)  round(2**40)
pow(0, -1)  pow(0.0, -1)  pow(-8, 1/3)  divmod(1, 0)  divmod(1.0, 0)  1 // 0  1 % 0  1.0 % 0  1 / 0  1.0 / 0.0  0.0 ** -1  0 ** -1  2.0 ** 2000  (-8) ** (1 / 3)  round(float('nan'))
round(float('inf'))  int(float('inf'))  int(float('nan'))  abs(-2**63)  pow(2, 63)  pow(2, 64)  pow(2, 200)
(2**62 + 1) / 3  (2**63 - 25) / 7  -(2**60 + 129) / 11  (2**63 + 3) / -5  1 / (2**61 + 1)  (2**54 + 3) / 1
enumerate((1, 2), 2**63 - 1)  enumerate((1,), 2**63)  pow(2.0, 2000)  pow(10, -2)  pow(-1, 0.5)  max(1, 1.0)  max(1.0, 1)  min(1, True)  max(True, 1)  max(0.0, -0.0)
min(0.0, -0.0)  max(-0.0, 0)  max(float('nan'), 1)  max(1, float('nan'))  min(float('nan'), 1)
min(1, float('nan'), 0)  max((1, float('nan'), 2))  round(-0.5)  round(0.5)  round(1.5)  round(-2.5)
round(2.675, 2)  round(True)  round(True, 1)  round(25, -1)  round(35, -1)  round(-0.4)  round(1e300)  round(5.5, 0)
round(5.5, -1)  abs(True)  abs(False)  pow(True, True)  divmod(True, True)  sum((True, True))  sum((True,))
sum((False,))  sum(())  sum((), 0.0)  sum((), None)  sum((), ())  sum(((1,), (2,)), ())  sum(([1], [2]), [])
sum((-0.0,))  sum((-0.0, -0.0), -0.0)  sum((0.5, 0.25))  len(zip((1,), (2,)))
len(enumerate((1,)))  len(reversed((1, 2)))  len(range(10, 0, -3))  int('0x10', 16)  int('1_000')  int('1__0')
int(' 7 ')  int('7.5')  int('7', 37)  int('7', -1)  int('7', 1)  int('7', 2.0)  int('7', True)  int(-2.9)
int(2**70)  float(2**70)  float('1e5')  range(0, 3, 0)  range(5, 0, -2)  range(0, 5, 2)  range(1, 2, 3, 4)  zip()
zip((1, 2))  zip((1,2),(3,4),(5,6))  zip((1,2,3),(3,4))  enumerate('ab')  enumerate((1,), True)  chr(97) == 'a'
chr(0) == '\\0'  ord('é')  chr(1114112)  isinstance(True, int)  isinstance(2.0, (int, float))  isinstance(GN, float)
isinstance(None, type(None))  sorted(GD)  min(GD)  max(GD.values())  sum(GD.values())  abs(GN)  round(GN)
divmod(GN, 1)  max(GN, 3)  pow(GN, 2)  type(abs(True)) == int  type(round(2.5)) == int  type(round(2.5, 1)) == float
type(max(1, 2.0)) == float  type(max(3, 2.0)) == int  type(sum((1, 2.0))) == float  type(pow(2, -1)) == float
type(divmod(5, 2.0)[0]) == float  any((0, 'a'))  all((1, ''))  any(('', None, 0.0))  any(('',)) + 1  max((1,), (1, 0))
max([1], (2,))  max('b', 'abc')  sorted((True, 0, 2.5, -1))  sorted(('b', 'a', ''))  sorted(((2,), (1, 9)))
sorted(([2], [1]))  sorted((1, 'a'))  sorted(((1, 'a'), (1, 2)))  min((1, 'a'), (1, 2))  bool(range(0))  bool(GO)
-True  +True  ~True  not 'a'  -'a'  ~2.5  +None  1 + 'a'  'a' + 1  'a' * 3  (1,) * 2  (1,) + [2]  [1] + (2,)  2 ** -1
0 ** 0  0.0 ** 0  (-8) ** 2  7 // -2  -7 % 3  7.5 // -2  -7.5 % 2  1 << 3  1 << -1  1 << 70  1.0 << 2  5 & 3.0
True & True  True | 2  True ^ True  1 < 'a'  1 == 'a'  (1,) == [1]  None == 0  None < 1  'a' < 'b'  (1, 2) < (1, 'a')
[1] == [1.0]  1 is 1  'a' in 'abc'  1 in (1, 2)  '' in 'a'  1 in 'abc'  None in (None,)  1 in 3  not None
1 if '' else 2  1 if (0,) else 2  '%d' % 3  (1, 2)[2]  (1, 2)[-3]  (1, 2)['a']  (1, 2)[1.0]  'abc'[5]  [1, 2, 3][::2]
[1, 2, 3][::0]  GD['zz']  GL[10]  GL[-1]  GL['a']  GT[True]  GD.get('x')  GD.get('q')  GD.get('q', 4)  GD.get()
GD.get('x', 1, 2)  GL.index(9)  GL.count(2)  GS.upper()  len(GS, GS)
""".replace("\n", "  ").split("  ")


def all_calls():
    rng = random.Random(SEED)
    pool = NUMBERS + OTHERS
    pairs = [f"{f}({a}, {b})" for f in FUNCTIONS for a, b in itertools.product(pool, pool)]
    rng.shuffle(pairs)
    triples = [f"{f}({', '.join(rng.choice(pool) for _ in range(3))})" for f in FUNCTIONS for _ in range(40)]
    rng.shuffle(triples)
    return {
        "none": [f"{f}()" for f in FUNCTIONS],
        "one": [f"{f}({a})" for f in FUNCTIONS for a in pool],
        "two": pairs[:samples(len(pairs))],
        "three": triples[:samples(len(triples))],
        "by name": [t.strip() for t in BY_NAME if t.strip()],
        "edges": [t.strip() for t in EDGES if t.strip()],
    }


def parts(expression, value, out):
    """Kernel expressions that tell the value, with what Python says. False: a kernel cannot hold it."""
    if isinstance(value, (tuple, list)):
        out.append((f"len({expression})", len(value)))
        out.append((f"1 if type({expression}) == {type(value).__name__} else 0", 1))
        return all([parts(f"{expression}[{i}]", v, out) for i, v in enumerate(value)])
    if isinstance(value, str):
        out.append((f"1 if {expression} == {value!r} else 0", 1))
    elif value is None:
        out.append((f"1 if {expression} is None else 0", 1))
    elif isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        out.append((expression, value))
        out.append((f"1 if type({expression}) == {type(value).__name__} else 0", 1))
    else:  # NumPy's numbers are computed by rules of their own (test_numbers.py)
        return False
    return True


def same(a, b):
    a, b = float(a), float(b)
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


def verdict(text, use):
    """None, or how the kernel differs from Python. `use` makes the kernel's expression of the text.
    What is lazy in Python is asked for its items: until then a kernel has not looked at it either."""
    want = raised = None
    if text.split("(")[0] in ("range", "zip", "enumerate", "reversed"):
        return verdict(f"tuple({text})", use) or loop_verdict(text)
    try:
        want = eval(text, dict(SCOPE))
    except Exception as e:  # noqa: BLE001 - whatever Python says
        raised = e
    if raised is None and isinstance(want, LAZY):
        return None
    told = []
    if raised is None and not parts("x", want, told):
        return None
    lines = [f"x = {use(text)}"] + [f"o[{j}] = {e}" for j, (e, _) in enumerate(told)]
    source = "def k(o: qd.types.ndarray()):\n" + "".join(f"    {line}\n" for line in lines)
    space = dict(SCOPE)
    exec(source, space)
    o = np.zeros(len(told) + 1)
    try:
        qd.kernel(source=source)(space["k"])(o)
    except qd.IngotError:
        return None
    except Exception as e:  # noqa: BLE001
        return None if type(e) is type(raised) else f"{text}: raised {e!r}, Python {raised!r}"
    if raised is not None:
        return f"{text}: accepted, Python raises {raised!r}"
    bad = [f"{e} is {o[j]}, not {v}" for j, (e, v) in enumerate(told) if not same(v, o[j])]
    return f"{text}: {bad[0]}" if bad else None


def loop_verdict(text):
    """The same of a loop that is unrolled: how often it runs."""
    try:
        want = len(tuple(eval(text, dict(SCOPE))))
    except Exception:  # noqa: BLE001
        want = None
    source = f"def k(o: qd.types.ndarray()):\n    for x in qd.static({text}):\n        o[0] += 1\n"
    space = dict(SCOPE)
    exec(source, space)
    o = np.zeros(1)
    try:
        qd.kernel(source=source)(space["k"])(o)
    except (qd.IngotError, TypeError, ValueError, OverflowError):
        return None
    return None if o[0] == want else f"for x in {text}: {o[0]} times, Python {want}"


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("kind", ["none", "one", "two", "three", "by name", "edges"])
def test_static(kind):
    qd.init(arch=qd.interp, offline_cache=False)
    found = [verdict(t, lambda t: f"qd.static({t})") for t in all_calls()[kind]]
    assert not [f for f in found if f]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("kind", ["none", "one", "two", "three", "by name", "edges"])
def test_body(kind):
    qd.init(arch=qd.interp, offline_cache=False, default_fp=qd.f64, default_ip=qd.i64)
    found = [verdict(t, lambda t: t) for t in all_calls()[kind]]
    assert not [f for f in found if f]


def test_sums_of_floats_are_added_from_the_left():
    """On every Python: from 3.12 on, its own sum carries what additions lose."""

    @qd.kernel
    def k(o: qd.types.ndarray(qd.f64, 1)):
        o[0] = sum((0.1,) * 10)
        o[1] = sum((1e16, 1.0, -1e16))

    o = np.ones(2)
    k(o)
    assert o.tolist() == [0.9999999999999999, 0.0]
