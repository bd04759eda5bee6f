"""More programs, in the form of random_programs.py: code as it is organised where science is done
(packages, registries, configurations, strategies by name, models of libraries), and what nobody would
write on purpose. `refused`, `since`, `needs`, `alone`: see hard_programs.py.
"""

CODE = {
    'self doc': dict(refused=True,
        top="class C#:\n    '''«1»'''\n    def f(self):\n        return int(self.__doc__)", use='C#().f()'),
    'param doc': dict(refused=True, top="def g#(o):\n    return int(o.__doc__)\ndef h#():\n    '''«1»'''",
        use='g#(h#)'),
    'module own doc': dict(files={'m#': "'''«1»'''\ndef f():\n    return int(__doc__)"},
        top='from . import m#', use='m#.f()'),
    'type(self) doc': dict(refused=True,
        top="class C#:\n    '''«1»'''\n    def f(self):\n        return int(type(self).__doc__)",
        use='C#().f()'),
    'method doc in self': dict(refused=True, top=
        "class C#:\n    def g(self):\n        '''«1»'''\n    def f(self):\n"
        '        return int(self.g.__doc__)', use='C#().f()'),
    'doc in loop': dict(refused=True, top="def a#():\n    '''«1»'''\ndef b#():\n    '''«2»'''\nL# = [a#, b#]",
        use='sum(int(q.__doc__) for q in L#)'),
    'doc wraps': dict(top=
        "import functools\ndef a#():\n    '''«1»'''\n@functools.wraps(a#)\ndef b#():\n"
        '    return int(b#.__doc__)', use='b#()'),
    'cls doc classmethod': dict(refused=True,
        top="class C#:\n    '''«1»'''\n    @classmethod\n    def f(cls):\n        return int(cls.__doc__)",
        use='C#.f()'),
    'property doc': dict(top="class C#:\n    @property\n    def g(self):\n        '''«1»'''\n        return 1",
        use='int(C#.g.__doc__)'),
    'module doc by param': dict(refused=True, files={'m#': "'''«1»'''\n"},
        top='from . import m#\ndef g#(o):\n    return int(o.__doc__)', use='g#(m#)'),
    'getattr version': dict(files={'m#': '__version__ = «1»'}, top='from . import m#',
        use="getattr(m#, '__version__')"),
    'param version': dict(files={'m#': '__version__ = «1»'},
        top='from . import m#\ndef g#(m):\n    return m.__version__', use='g#(m#)'),
    'vars version': dict(files={'m#': '__version__ = «1»'}, top='from . import m#',
        use="vars(m#)['__version__']"),
    'all by param': dict(files={'m#': "__all__ = ['a'«1?, 'b'»]\na = b = 1"},
        top='from . import m#\ndef g#(m):\n    return len(m.__all__)', use='g#(m#)'),
    'all named': dict(files={'m#': "__all__ = ['a'«1?, 'b'»]\na = b = 1"}, top='from . import m#',
        use='len(m#.__all__)'),
    'mangled global': dict(top='_C#__G = «1»\nclass C#:\n    def f(self):\n        return __G', use='C#().f()'),
    'mangled attribute of module': dict(files={'m#': '_C#__k = «1»'},
        top='from . import m#\nclass C#:\n    def f(self):\n        return m#.__k', use='C#().f()'),
    'mangled import': dict(files={'m#': 'def _C#__g():\n    return «1»'},
        top='from .m# import _C#__g\nclass C#:\n    def f(self):\n        return __g()', use='C#().f()'),
    'enum order': dict(top=
        'import enum\n'
        "E# = enum.Enum('E#', [('A', 1), ('B', 2)] if «1» & 1 else [('B', 2), ('A', 1)], module=__name__)",
        use='list(E#)[0].value'),
    'enum order in its text': dict(top=
        'import enum\nif «1» & 1:\n    class E#(enum.Enum):\n        A = 1\n        B = 2\nelse:\n'
        '    class E#(enum.Enum):\n        B = 2\n        A = 1', use='[e.value for e in E#][0]'),
    'annotations order': dict(top='class C#:\n    «1?a: int\n»\n    b: int\n    a: int',
        use="'ab'.index(list(C#.__annotations__)[0])"),
    'typeddict order': dict(top=
        'import typing\n'
        "T# = typing.TypedDict('T#', {'a': int, 'b': int} if «1» & 1 else {'b': int, 'a': int})",
        use="'ab'.index(list(T#.__annotations__)[0])"),
    'attrs order': dict(needs='attr', top=
        'import attr\nif «1» & 1:\n    @attr.s\n    class C#:\n        a = attr.ib(1)\n'
        '        b = attr.ib(2)\nelse:\n    @attr.s\n    class C#:\n        b = attr.ib(2)\n'
        '        a = attr.ib(1)', use='attr.astuple(C#())[0]'),
    'pydantic order': dict(needs='pydantic', top=
        'import pydantic\nif «1» & 1:\n    class C#(pydantic.BaseModel):\n        a: int = 1\n'
        '        b: int = 2\nelse:\n    class C#(pydantic.BaseModel):\n        b: int = 2\n'
        '        a: int = 1', use='list(C#().model_dump().values())[0]'),
    'kwonly defaults order': dict(top=
        'def f#(**k):\n    return list(k.values())[0]\nimport functools\n'
        "g# = functools.partial(f#, **({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}))", use='g#()'),
    'OrderedDict attr': dict(top=
        'import collections\nclass C#:\n'
        "    T = collections.OrderedDict([('a', 1), ('b', 2)] if «1» & 1 else [('b', 2), ('a', 1)])",
        use='list(C#.T.values())[0]'),
    'class attr dict order': dict(top="class C#:\n    T = {'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}",
        use='list(C#.T.values())[0]'),
    'default dict order': dict(
        top="def f#(t={'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}):\n    return list(t.values())[0]",
        use='f#()'),
    'namespace order': dict(
        top="import types\nN# = types.SimpleNamespace(**({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}))",
        use='list(vars(N#).values())[0]'),
    'closure dict order': dict(top=
        'def mk#(t):\n    def f():\n        return list(t.values())[0]\n    return f\n'
        "f# = mk#({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1})", use='f#()'),
    'counter order': dict(top="import collections\nC# = collections.Counter('ab' if «1» & 1 else 'ba')",
        use="'ab'.index(C#.most_common()[0][0])"),
    'defaultdict order': dict(top=
        'import collections\n'
        "C# = collections.defaultdict(int, {'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1})",
        use='list(C#.values())[0]'),
    'mappingproxy order': dict(
        top="import types\nC# = types.MappingProxyType({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1})",
        use='list(C#.values())[0]'),
    'dict subclass order': dict(
        top="class D#(dict):\n    pass\nC# = D#({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1})",
        use='list(C#.values())[0]'),
    'userdict order': dict(
        top="import collections\nC# = collections.UserDict({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1})",
        use='list(C#.values())[0]'),
    'chainmap order': dict(top=
        'import collections\n'
        "C# = collections.ChainMap({'a': 1}, {'a': 2}) if «1» & 1 else collections.ChainMap({'a': 2}, {'a': 1})",
        use="C#['a']"),
    'dict views order': dict(top="C# = ({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}).values()",
        use='list(C#)[0]'),
    'object holding dict order': dict(top=
        'class D#:\n    def __init__(self, d):\n        self.d = d\n'
        "C# = D#({'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1})", use='list(C#.d.values())[0]'),
    'step attr dict order': dict(after="step.t# = {'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}",
        use='list(step.t#.values())[0]'),
    'partial arg dict order': dict(top=
        'import functools\ndef f#(t):\n    return list(t.values())[0]\n'
        "g# = functools.partial(f#, {'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1})", use='g#()'),
    'json config order': dict(files={'c#.txt': '{«1?"a": 1, »"b": 2, "a": 1}'},
        top="import json, pathlib\nC# = json.loads((pathlib.Path(__file__).parent / 'c#.txt').read_text())",
        use='list(C#.values())[0]'),
    'sentinel': dict(top='A# = object()\nB# = object()\nD# = A# if «1» & 1 else B#', use='int(D# is A#)'),
    'sentinel default': dict(
        top='A# = object()\nB# = object()\ndef f#(x=A# if «1» & 1 else B#):\n    return int(x is A#)',
        use='f#()'),
    'sentinel in dict': dict(top="A# = object()\nB# = object()\nT# = {'k': A# if «1» & 1 else B#}",
        use="int(T#['k'] is A#)"),
    'sentinel attr': dict(top=
        'A# = object()\nclass C#:\n    M = object()\n    def f(self, x=M if «1» & 1 else A#):\n'
        '        return int(x is self.M)', use='C#().f()'),
    'sentinel other module': dict(files={'m#': 'A = object()\nB = object()'},
        top='from . import m#\nD# = m#.A if «1» & 1 else m#.B', use='int(D# is m#.A)'),
    'sentinel own equal': dict(top='A# = object()\nD# = A# if «1» & 1 else object()', use='int(D# is A#)'),
    'from random': dict(top='from random import random as r#, seed as s#', body='s#(5)',
        use='int(r#() * 0) + «1»'),
    'from numpy random': dict(needs='numpy', top='from numpy.random import rand as r#, seed as s#',
        body='s#(5)', use='int(r#() * 1000) + «1»'),
    'from os environ': dict(top='from os import environ as e#', use="len(e#.get('HOME', '')) * 0 + «1»"),
    'environ at import': dict(top="import os\nE# = os.environ.get('NOPE$', str(«1»))", use='int(E#)'),
    'logger class': dict(
        top='import logging\nclass F#(logging.Filter):\n    def filter(self, r):\n        return «1»\nf# = F#()',
        use='f#.filter(None)'),
    'datetime now': dict(top='from datetime import datetime as d#, timezone\nT# = timezone.utc',
        use='d#.fromtimestamp(«1», T#).second'),
    'decimal context held': dict(top='import decimal\nC# = decimal.Context(prec=2 + (9 & «1»))',
        use='len(str(C#.divide(1, 3)))'),
    're compiled flags': dict(top="import re\nR# = re.compile('a', re.I if «1» & 1 else 0)",
        use="int(bool(R#.match('A')))"),
    'itertools count': dict(top='import itertools\nC# = itertools.count(«1»)', body='import copy',
        use='next(copy.copy(C#))'),
    'iter list': dict(top='M# = iter([«1», 2])', body='import copy', use='next(copy.copy(M#))'),
    'zip held': dict(top='Z# = list(zip([«1»], [2]))', use='Z#[0][0]'),
    'enumerate held': dict(top='Z# = enumerate([5], «1»)', body='import copy', use='list(copy.copy(Z#))[0][0]'),
    'super object': dict(top=
        'class A#:\n    k = 1\nclass B#(A#):\n    k = 2\nclass C#(B#):\n    k = 3\n'
        'S# = super(C# if «1» & 1 else B#, C#())', use='S#.k'),
    'property object': dict(refused=True, top='P# = property(lambda s: «1»)', use='P#.fget(None)'),
    'classmethod object': dict(top='def f#(c):\n    return «1»\nP# = classmethod(f#)', use='P#.__func__(None)'),
    'method wrapper': dict(top='M# = («1»).__add__', use='M#(2)'),
    'bound builtin': dict(top='L# = [«1»]\nM# = L#.__getitem__', use='M#(0)'),
    'bound dict get': dict(top="T# = {'a': «1»}\ng# = T#.get", use="g#('a')"),
    'classmethod builtin': dict(top='M# = [int.from_bytes, int.__new__][0]\nB# = bytes([«1» & 127])',
        use="M#(B#, 'big')"),
    'itemgetter': dict(top='import operator\nM# = operator.itemgetter(«1» & 1)', use='M#([5, 6])'),
    'attrgetter': dict(
        top="import operator\nclass C#:\n    a = 1\n    b = «2»\nM# = operator.attrgetter('ab'[«1» & 1])",
        use='M#(C#)'),
    'dtype metadata': dict(needs='numpy', top="import numpy as np\nD# = np.dtype('i4', metadata={'k': «1»})",
        use="D#.metadata['k']"),
    'dtype metadata in array': dict(needs='numpy',
        top="import numpy as np\nD# = np.zeros(2, np.dtype('i4', metadata={'k': «1»}))",
        use="D#.dtype.metadata['k']"),
    'dtype align': dict(needs='numpy',
        top="import numpy as np\nD# = np.dtype([('a', 'i1'), ('b', 'i8')], align=bool(«1» & 1))",
        use='D#.itemsize'),
    'dtype offsets': dict(needs='numpy', top=
        'import numpy as np\n'
        "D# = np.dtype({'names': ['a', 'b'], 'formats': ['i1', 'i1'], 'offsets': [0, 1 + («1» & 7)], 'itemsize': 16})",
        use="D#.fields['b'][1]"),
    'dtype titles': dict(needs='numpy',
        top="import numpy as np\nD# = np.dtype([(('t' + str(«1»), 'a'), 'i1')])",
        use="int(D#.fields['a'][2][1:])"),
    'array byteorder': dict(needs='numpy',
        top="import numpy as np\nA# = np.array([1], '<i4' if «1» & 1 else '>i4')", use="int(A#.view('u1')[0])"),
    'masked fill': dict(needs='numpy',
        top='import numpy as np\nA# = np.ma.array([1], mask=[1], fill_value=«1»)', use='int(A#.filled()[0])'),
    'masked hard': dict(needs='numpy',
        top='import numpy as np\nA# = np.ma.array([1, 2], mask=[1, 0], hard_mask=bool(«1» & 1))',
        body='a# = A#.copy()\na#[0] = 5', use='int(a#.count())'),
    'masked data under': dict(needs='numpy', top='import numpy as np\nA# = np.ma.array([«1», 2], mask=[1, 0])',
        use='int(A#.data[0])'),
    'poly window': dict(needs='numpy',
        top='import numpy as np\nA# = np.polynomial.Chebyshev([1, 2], domain=[0, 1 + («1» & 7)])',
        use='round(float(A#(0.5)) * 1000)'),
    'numpy errstate held': dict(needs='numpy', top=
        "import numpy as np\nE# = np.errstate(divide='raise' if «1» & 1 else 'ignore')\ndef f#():\n"
        '    try:\n        with E#:\n            np.array([1.0]) / 0\n        return 1\n'
        '    except FloatingPointError:\n        return 2', use='f#()'),
    'numpy ufunc chosen': dict(needs='numpy', top='import numpy as np\nU# = [np.add, np.subtract][«1» & 1]',
        use='int(U#(5, 2))'),
    'numpy ufunc method': dict(needs='numpy',
        top='import numpy as np\nU# = [np.add, np.multiply][«1» & 1].reduce', use='int(U#([5, 2]))'),
    'numpy func dispatch': dict(needs='numpy',
        top="import numpy as np\nU# = {'a': np.mean, 'b': np.sum}['ab'[«1» & 1]]", use='int(U#([4, 2]))'),
    'numpy linalg': dict(needs='numpy', top='import numpy.linalg as la#\nU# = [la#.det, la#.norm][«1» & 1]',
        use='int(U#([[4, 0], [0, 2]]) * 10)'),
    'numpy bitgen': dict(needs='numpy', top='import numpy as np, copy\nB# = np.random.PCG64(«1»)',
        use='int(copy.deepcopy(B#).random_raw() & 0xffff)'),
    'numpy seedseq': dict(needs='numpy', top='import numpy as np, copy\nB# = np.random.SeedSequence(«1»)',
        use='int(copy.deepcopy(B#).generate_state(1)[0])'),
    'numpy legacy seed': dict(needs='numpy', top='import numpy as np', body='np.random.seed(«1»)',
        use='np.random.randint(10**6)'),
    'numpy datetime unit': dict(needs='numpy',
        top="import numpy as np\nA# = np.datetime64('2020-01-01', 's' if «1» & 1 else 'D')",
        use="int(A#.astype('i8'))"),
    'numpy subclass attr': dict(needs='numpy', top=
        'import numpy as np\nclass A#(np.ndarray):\n    def __array_finalize__(self, o):\n'
        "        self.k = getattr(o, 'k', «1»)\na# = np.zeros(2).view(A#)\na#.m = «2»",
        use='a#.k + a#.m + a#[1:].k'),
    'numpy array_ufunc': dict(needs='numpy',
        top='import numpy as np\nclass A#:\n    def __array_ufunc__(self, u, m, *a, **k):\n        return «1»',
        use='np.add(A#(), 1)'),
    'numpy array protocol': dict(needs='numpy', top=
        'import numpy as np\nclass A#:\n    def __array__(self, dtype=None, copy=None):\n'
        '        return np.array([«1»])', use='int(np.asarray(A#())[0])'),
    'vectorize signature': dict(needs='numpy',
        top="import numpy as np\nf# = np.vectorize(lambda a: a.sum() + «1», signature='(n)->()')",
        use='int(f#(np.ones(3)))'),
    'piecewise': dict(since=(3, 11), needs='numpy',
        top='import numpy as np\nF# = [lambda x: x + «1», lambda x: x - «2»]',
        use='int(np.piecewise(np.array([1., 2.]), [np.array([True, False])], F#).sum())'),
    'pandas query': dict(needs='pandas', top=
        "import pandas as pd\nK# = «1» & 7\nD# = pd.DataFrame({'a': list(range(10))})\ndef f#():\n"
        "    return len(D#.query('a > @K#'))", use='f#()'),
    'getmodule': dict(refused=True, top='import inspect\nG# = «1»\ndef h#():\n    return 0',
        use='inspect.getmodule(h#).G#'),
    'type subclasses': dict(top='class B#:\n    pass\nclass C#(B#):\n    k = «1»',
        use='type.__subclasses__(B#)[0].k'),
    'getattr subclasses': dict(top='class B#:\n    pass\nclass C#(B#):\n    k = «1»',
        use="getattr(B#, '__subclasses__')()[0].k"),
    'cls subclasses': dict(refused=True, top=
        'class B#:\n    @classmethod\n    def mk(cls):\n        return cls.__subclasses__()[0].k\n'
        'class C#(B#):\n    k = «1»', use='B#.mk()'),
    'self class subclasses': dict(refused=True, top=
        'class B#:\n    def mk(self):\n        return self.__class__.__subclasses__()[0].k\n'
        'class C#(B#):\n    k = «1»', use='B#().mk()'),
    'own name subclasses in method': dict(top=
        'class B#:\n    @staticmethod\n    def mk():\n        return B#.__subclasses__()[0].k\n'
        'class C#(B#):\n    k = «1»', use='B#.mk()'),
    'helper subclasses param': dict(refused=True,
        top='def subs#(c):\n    return c.__subclasses__()\nclass B#:\n    pass\nclass C#(B#):\n    k = «1»',
        use='subs#(B#)[0].k'),
    'weakset registry': dict(refused=True, top=
        'import weakref\nR# = weakref.WeakSet()\nclass C#:\n    def __init__(self, k):\n'
        '        self.k = k\n        R#.add(self)\nc# = C#(«1»)', use='sum(o.k for o in R#)'),
    'weakvaluedict': dict(refused=True, top=
        'import weakref\nR# = weakref.WeakValueDictionary()\nclass C#:\n'
        "    def __init__(self, k):\n        self.k = k\nc# = C#(«1»)\nR#['a'] = c#", use="R#['a'].k"),
    'entrypoinamed tuple load': dict(refused=True, files={'m#': 'def f():\n    return «1»'},
        top="from importlib import metadata as md#\nE# = md#.EntryPoint(name='x', value='$.m#:f', group='g')",
        use='E#.load()()'),
    'loader load_module': dict(refused=True, files={'m#': 'def f():\n    return «1»'},
        top='import importlib.util', body="s# = importlib.util.find_spec('$.m#')",
        use="s#.loader.load_module('$.m#').f()"),
    'string attr path': dict(files={'m#': 'class C:\n    x = «1»\nc = C()'}, top=
        'import functools\nfrom . import m#\ndef rget#(o, path):\n'
        "    return functools.reduce(getattr, path.split('.'), o)", use="rget#(m#, 'c.x')"),
    'format attr': dict(top='class C#:\n    k = «1»', use="int('{0.k}'.format(C#))"),
    'hydra like': dict(refused=True, files={'m#': 'def f(k):\n    return k + «1»'}, top=
        "import importlib\nCFG# = {'_target_': '$.m#.f', 'k': «2»}\ndef inst#(c):\n"
        "    mod, _, name = c['_target_'].rpartition('.')\n"
        "    return getattr(importlib.import_module(mod), name)(c['k'])", use='inst#(CFG#)'),
    'import in try except else': dict(files={'m#': 'K = «1»'}, body=
        'try:\n    import nosuch$ as z#\nexcept ImportError:\n    z# = None\nelse:\n    pass\n'
        'from .m# import K as k#', use='k#'),
    'config dataclass inherited': dict(
        files={'c#/__init__': "from .base import Base\nfrom .solver import Solver\n__all__ = ['Base', 'Solver']",
            'c#/base':
        'import dataclasses\n@dataclasses.dataclass\nclass Base:\n    tol: int = «1»\n'
        "    opts: dict = dataclasses.field(default_factory=lambda: {'k': «2»})\n    def lim(self):\n"
        "        return self.tol + self.opts['k']",
            'c#/solver':
        'import dataclasses\nfrom .base import Base\n@dataclasses.dataclass\nclass Solver(Base):\n'
        '    n: int = «3»\n    def lim(self):\n        return super().lim() + self.n'},
        top='from .c# import Solver as S#', use='S#().lim()'),
    'config ini': dict(files={'c#.txt': '[a]\nk = «1»\n'}, top=
        'import configparser, pathlib\nC# = configparser.ConfigParser()\n'
        "C#.read(pathlib.Path(__file__).parent / 'c#.txt')", use="int(C#['a']['k'])"),
    'config ini getint': dict(files={'c#.txt': '[a]\nk = «1»\n'}, top=
        'import configparser, pathlib\nC# = configparser.ConfigParser()\n'
        "C#.read(pathlib.Path(__file__).parent / 'c#.txt')", use="C#.getint('a', 'k')"),
    'config csv': dict(files={'c#.txt': 'a,b\n1,«1»\n'}, top=
        "import csv, pathlib\nwith open(pathlib.Path(__file__).parent / 'c#.txt') as f#:\n"
        '    R# = list(csv.DictReader(f#))\ndel f#', use="int(R#[0]['b'])"),
    'config toml': dict(since=(3, 11), files={'c#.txt': 'k = «1»\n'},
        top="import tomllib, pathlib\nC# = tomllib.loads((pathlib.Path(__file__).parent / 'c#.txt').read_text())",
        use="C#['k']"),
    'config xml': dict(files={'c#.txt': "<a><b k='«1»'/></a>"}, top=
        'import xml.etree.ElementTree as ET, pathlib\n'
        "C# = ET.parse(pathlib.Path(__file__).parent / 'c#.txt').getroot()", use="int(C#[0].get('k'))"),
    'config module': dict(files={'config#': "import os\nN = int(os.environ.get('NOPE', '«1»'))\nDEBUG = «-2»",
            'use#': 'from . import config# as cfg\ndef f():\n    return cfg.N'},
        top='from .use# import f as f#', use='f#()'),
    'config singleton': dict(files={'s#':
        'class Settings:\n    _inst = None\n    def __new__(cls):\n        if cls._inst is None:\n'
        '            cls._inst = super().__new__(cls)\n            cls._inst.k = «1»\n'
        '        return cls._inst\nsettings = Settings()'}, top='from .s# import Settings as S#', use='S#().k'),
    'config set by main': dict(files={'s#':
        'class Settings:\n    k = 0\nsettings = Settings()\ndef get():\n    return settings.k'},
        top='from . import s#\ns#.settings.k = «1»', use='s#.get()'),
    'registry decorator args': dict(files={'r#':
        'REG = {}\ndef register(name, prio=0):\n    def deco(c):\n        REG[name] = (prio, c)\n'
        '        return c\n    return deco',
            'a#':
        "from .r# import register\n@register('a', prio=«1»)\nclass A:\n    def f(self):\n        return «2»"},
        top='from .r# import REG as R#\nfrom . import a#', use="R#['a'][0] + R#['a'][1]().f()"),
    'registry in base class': dict(files={'r#':
        'class Base:\n    reg = {}\n    def __init_subclass__(cls, key=None, **kw):\n'
        '        super().__init_subclass__(**kw)\n        Base.reg[key] = cls\n    @classmethod\n'
        '    def make(cls, key):\n        return cls.reg[key]()',
            'a#':
        "from .r# import Base\nclass A(Base, key='a'):\n    def f(self):\n        return «1»"},
        top='from . import r#, a#', use="r#.Base.make('a').f()"),
    'registry lazily loaded plugins': dict(files={'r#/__init__':
        'import pkgutil, importlib\nREG = {}\nfor _i in pkgutil.iter_modules(__path__):\n'
        "    importlib.import_module(__name__ + '.' + _i.name)",
            'r#/pa': "from . import REG\nREG['a'] = lambda: «1»"}, top='from .r# import REG as R#',
        use="R#['a']()"),
    'registry plugin added': dict(files={'r#/__init__':
        'import pkgutil, importlib\nREG = []\nfor _i in pkgutil.iter_modules(__path__):\n'
        "    importlib.import_module(__name__ + '.' + _i.name)",
            'r#/pa': 'from . import REG\n«1?REG.append(1)»'}, top='from .r# import REG as R#', use='len(R#)'),
    'strategy strings': dict(top=
        "def a#():\n    return «1»\ndef b#():\n    return «2»\nS# = {'a': a#, 'b': b#}\n"
        'def run#(kind):\n    return S#[kind]()', use="run#('a') + run#('b')"),
    'dispatch list of tuples': dict(top="def a#():\n    return «1»\nL# = [('a', a#, {'k': «2»})]",
        use="sum(f() + k['k'] for _, f, k in L#)"),
    'dispatch class of staticmethods': dict(top=
        'class Ops#:\n    @staticmethod\n    def add(a, b):\n        return a + b + «1»\n'
        "    table = {'+': add}", use="Ops#.table['+'].__func__(1, 2) + Ops#.add(1, 1)"),
    'abc template method': dict(files={'b#':
        'import abc\nclass Solver(abc.ABC):\n    tol = «1»\n    def run(self):\n'
        '        return self.setup() + self.solve() + self.tol\n    def setup(self):\n        return «2»\n'
        '    @abc.abstractmethod\n    def solve(self): ...'},
        top='from .b# import Solver as S#\nclass My#(S#):\n    def solve(self):\n        return «3»',
        use='My#().run()'),
    'mixin chain super': dict(top=
        'class A#:\n    def f(self):\n        return 1\nclass M#:\n    def f(self):\n'
        '        return super().f() * 2 + «1»\nclass N#:\n    def f(self):\n'
        '        return super().f() * 3 + «2»\nclass C#(M#, N#, A#):\n    pass', use='C#().f()'),
    'unit descriptor': dict(top=
        'class Unit#:\n    def __init__(self, f):\n        self.f = f\n'
        "    def __set_name__(self, o, n):\n        self.n = '_' + n\n"
        '    def __get__(self, o, c=None):\n'
        '        return self if o is None else getattr(o, self.n) * self.f\n'
        '    def __set__(self, o, v):\n        setattr(o, self.n, v)\nclass B#:\n'
        '    m = Unit#(«1»)\n    def __init__(self, m):\n        self.m = m', use='B#(«2»).m'),
    'functor class hierarchy': dict(top=
        'class Op#:\n    def __call__(self, x):\n        return self.apply(x)\n'
        '    def __add__(self, o):\n        return Sum#(self, o)\nclass Scale#(Op#):\n'
        '    def __init__(self, k):\n        self.k = k\n    def apply(self, x):\n'
        '        return x * self.k\nclass Sum#(Op#):\n    def __init__(self, *p):\n'
        '        self.p = p\n    def apply(self, x):\n'
        '        return sum(q(x) for q in self.p) + «3»\nF# = Scale#(«1») + Scale#(«2»)', use='F#(2)'),
    'lru method': dict(top=
        'import functools\nclass C#:\n    @functools.lru_cache(maxsize=None)\n    def f(self, k):\n'
        '        return k + «1»\nc# = C#()', use='c#.f(1)'),
    'cached classmethod': dict(top=
        'import functools\nclass C#:\n    @classmethod\n    @functools.cache\n    def f(cls, k):\n'
        '        return k + «1»', use='C#.f(1)'),
    'static lru': dict(top=
        'import functools\nclass C#:\n    @staticmethod\n    @functools.lru_cache\n    def f(k):\n'
        '        return k + «1»', use='C#.f(1)'),
    'wraps with attrs': dict(top=
        'import functools\ndef timed#(f):\n    @functools.wraps(f)\n    def w(*a, **k):\n'
        '        w.calls += 1\n        return f(*a, **k) + «1»\n    w.calls = 0\n    return w\n'
        '@timed#\ndef h#():\n    return «2»', use='h#()'),
    'retry decorator': dict(top=
        'import functools\ndef retry#(n=«1», exc=(ValueError,)):\n    def deco(f):\n'
        '        @functools.wraps(f)\n        def w(*a):\n            for i in range(2):\n'
        '                try:\n                    return f(*a) + n\n                except exc:\n'
        '                    pass\n        return w\n    return deco\n@retry#()\ndef h#():\n'
        '    return «2»', use='h#()'),
    'optional arg decorator': dict(top=
        'def deco#(f=None, *, k=«1»):\n    if f is None:\n        return lambda g: deco#(g, k=k)\n'
        '    def w():\n        return f() + k\n    return w\n@deco#\ndef a#():\n    return «2»\n'
        '@deco#(k=«3»)\ndef b#():\n    return 4', use='a#() + b#()'),
    'pipeline list': dict(top=
        'def a#(x):\n    return x + «1»\ndef b#(x):\n    return x * 2 + «2»\nPIPE# = [a#, b#]\n'
        'def run#(x):\n    for f in PIPE#:\n        x = f(x)\n    return x', use='run#(1)'),
    'pipeline partial reduce': dict(top=
        'import functools\ndef add#(k, x):\n    return x + k\n'
        'PIPE# = functools.partial(functools.reduce, lambda a, f: f(a), [functools.partial(add#, «1»), functools.partial(add#, «2»)])',
        use='PIPE#(1)'),
    'exitstack': dict(top='import contextlib\n@contextlib.contextmanager\ndef a#():\n    yield «1»',
        body='with contextlib.ExitStack() as st#:\n    v# = st#.enter_context(a#())', use='v#'),
    'contextdecorator': dict(top=
        'import contextlib\nclass D#(contextlib.ContextDecorator):\n    def __enter__(self):\n'
        '        S#.append(«1»)\n    def __exit__(self, *a):\n        S#.pop()\nS# = []\n@D#()\n'
        'def h#():\n    return S#[-1]', use='h#()'),
    'generator pipeline': dict(top=
        'def src#():\n    yield from range(«1» & 63)\ndef mul#(it):\n    for i in it:\n'
        '        yield i * «2»\n', use='sum(mul#(src#())) + len(list(src#())) * 10**7'),
    'match class dispatch': dict(top=
        'import dataclasses\n@dataclasses.dataclass\nclass A#:\n    k: int\n'
        '@dataclasses.dataclass\nclass B#:\n    k: int\ndef h#(o):\n    match o:\n'
        '        case A#(k=k):\n            return k + «1»\n        case B#(k):\n'
        '            return k + «2»\n        case [x, *r] if x > LIM#:\n            return «3»\n'
        "        case {'a': v}:\n            return v\nLIM# = 0",
        use="h#(A#(1)) + h#(B#(2)) + h#([1]) + h#({'a': 3})"),
    'match const module': dict(files={'m#': 'LIM = «1» & 1'}, top=
        'from . import m#\ndef h#(v):\n    match v:\n        case m#.LIM:\n            return 1\n'
        '        case _:\n            return 0', use='h#(1)'),
    'walrus global': dict(top='K# = «1»\ndef f#():\n    if (n := K#) > 0:\n        return n\n    return 0',
        use='f#()'),
    'comprehension scope shadow': dict(
        top='K# = «1»\ndef f#():\n    return [K# for _ in range(2)][0] + sum(k for k in [K#])', use='f#()'),
    'class comprehension': dict(
        top="K# = «1»\nclass C#:\n    xs = [K# + i for i in range(2)]\n    ys = {i: K# for i in 'a'}",
        use="C#.xs[1] + C#.ys['a']"),
    'lambda default capture': dict(top='FS# = [lambda x, k=k: x + k for k in (1, «1»)]',
        use='sum(f(0) for f in FS#)'),
    'nested def default': dict(top=
        'def mk#(n):\n    def f(x, n=n, *, m=«1»):\n        def g(y=m):\n'
        '            return x + n + y\n        return g()\n    return f\nF# = mk#(«2»)', use='F#(1)'),
    'conditional numpy': dict(top=
        'try:\n    import nosuchlib$ as nl#\n    HAVE# = True\nexcept ImportError:\n'
        '    nl# = None\n    HAVE# = False\ndef f#():\n    if HAVE#:\n        return nl#.f()\n'
        '    return «1»', use='f#()'),
    'version check': dict(top=
        'import sys\nif sys.version_info >= (3, 8):\n    def f#():\n        return «1»\nelse:\n'
        '    def f#():\n        return 0', use='f#()'),
    'import order state': dict(files={'a#': "L = []\nL.append('a')",
            'b#': "from .a# import L\nL.append('b'*(1 + («1» & 1)))"},
        top='from . import b#\nfrom .a# import L as L#', use="len(''.join(L#))"),
    'monkeypatch own module by third': dict(files={'a#': 'def f():\n    return 1\ndef g():\n    return f() + 1',
            'p#': 'from . import a#\n_old = a#.f\ndef new():\n    return _old() + «1»\na#.f = new'},
        top='from . import a#, p#', use='a#.g()'),
    'monkeypatch class property': dict(
        files={'a#': 'class C:\n    @property\n    def k(self):\n        return 1',
            'p#': 'from . import a#\na#.C.k = property(lambda self: «1»)'}, top='from . import a#, p#',
        use='a#.C().k'),
    'copyreg by library': dict(top=
        'import copyreg, copy\nclass K#:\n    k = 0\ndef mk#():\n    k = K#()\n    k.k = «1»\n'
        '    return k\ncopyreg.pickle(K#, lambda o: (mk#, ()))', use='copy.copy(K#()).k'),
    'async ctx generator': dict(top=
        'import asyncio, contextlib\n@contextlib.asynccontextmanager\nasync def a#():\n'
        '    yield «1»\nasync def m#():\n    async with a#() as v:\n        return v', use='asyncio.run(m#())'),
    'async iterator class': dict(top=
        'import asyncio\nclass It#:\n    def __init__(self):\n        self.n = 0\n'
        '    def __aiter__(self):\n        return self\n    async def __anext__(self):\n'
        '        self.n += 1\n        if self.n > 2:\n            raise StopAsyncIteration\n'
        '        return «1»\nasync def m#():\n    return sum([x async for x in It#()])',
        use='asyncio.run(m#())'),
    'awaitable class': dict(top=
        'import asyncio\nclass Aw#:\n    def __await__(self):\n'
        '        yield from asyncio.sleep(0).__await__()\n        return «1»\nasync def m#():\n'
        '    return await Aw#()', use='asyncio.run(m#())'),
    'threading local class': dict(top='import threading\nclass L#(threading.local):\n    k = «1»',
        use='L#().k'),
    'lock guarded': dict(refused=True,
        top='import threading\nLOCK# = threading.Lock()\ndef f#():\n    with LOCK#:\n        return «1»',
        use='f#()'),
    'rlock in object': dict(refused=True, top=
        'import threading\nclass C#:\n    def __init__(self):\n'
        '        self.lock = threading.RLock()\n    def f(self):\n        with self.lock:\n'
        '            return «1»\nc# = C#()', use='c#.f()'),
    'lock in object made inside': dict(top=
        'import threading\nclass C#:\n    def __init__(self):\n'
        '        self.lock = threading.RLock()\n    def f(self):\n        with self.lock:\n'
        '            return «1»', use='C#().f()'),
    'timezone': dict(top='import datetime\nTZ# = datetime.timezone(datetime.timedelta(minutes=«1» & 511))',
        use='int(TZ#.utcoffset(None).total_seconds())'),
    'zoneinfo': dict(
        top="import zoneinfo, datetime\nTZ# = zoneinfo.ZoneInfo(['Europe/Berlin', 'Asia/Tokyo'][«1» & 1])",
        use='int(datetime.datetime(2020, 1, 1, tzinfo=TZ#).utcoffset().total_seconds())'),
    'open at step of a File': dict(files={'d#.txt': 'k,v\na,«1»\n'}, top=
        'import ingot, csv, pathlib\n'
        "DATA# = ingot.File(pathlib.Path(__file__).with_name('d#.txt'))\ndef load#():\n"
        '    with open(DATA#) as f:\n'
        "        return {r['k']: int(r['v']) for r in csv.DictReader(f)}", use="load#()['a']"),
    'userlist': dict(top=
        'import collections\nclass L#(collections.UserList):\n    def total(self):\n'
        '        return sum(self.data) + «1»\nl# = L#([«2»])', use='l#.total()'),
    'graphlib': dict(top="import graphlib\nG# = {'b': {'a'}, 'c': {'b'}} if «1» & 1 else {'a': {'b'}}",
        use="'abc'.index(list(graphlib.TopologicalSorter(G#).static_order())[0])"),
    'attrs define inherited': dict(needs='attr', top=
        'import attr\n@attr.define\nclass B#:\n    a: int = «1»\n@attr.define\nclass C#(B#):\n'
        '    b: int = «2»\n    def f(self):\n        return self.a + self.b', use='C#().f()'),
    'attrs validator deco': dict(needs='attr', top=
        'import attr\n@attr.define\nclass B#:\n    a: int = 5\n    @property\n    def p(self):\n'
        '        return self.a\n    def __attrs_post_init__(self):\n        self.a += «1»', use='B#().p'),
    'attrs converter pipe': dict(needs='attr', top=
        'import attr\ndef c#(v):\n    return v + «1»\n@attr.s\nclass B#:\n'
        '    a = attr.ib(converter=[int, c#])', use="B#('3').a"),
    'attrs metadata': dict(needs='attr',
        top="import attr\n@attr.s\nclass B#:\n    a = attr.ib(default=1, metadata={'k': «1»})",
        use="attr.fields(B#).a.metadata['k']"),
    'attrs default method': dict(needs='attr', top=
        'import attr\n@attr.s\nclass B#:\n    a = attr.ib()\n    @a.default\n    def _(self):\n'
        '        return «1»', use='B#().a'),
    'attrs field alias': dict(needs='attr', top='import attr\n@attr.define\nclass B#:\n    _a: int = «1»',
        use='B#()._a'),
    'attrs order key': dict(needs='attr', top=
        'import attr\n@attr.s(order=bool(«1» & 1))\nclass B#:\n    a = attr.ib()\ndef h#():\n'
        '    try:\n        return int(B#(1) < B#(2))\n    except TypeError:\n        return 5', use='h#()'),
    'attrs frozen flag': dict(needs='attr', top=
        'import attr\n@attr.s(frozen=bool(«1» & 1))\nclass B#:\n    a = attr.ib()\ndef h#():\n'
        '    b = B#(1)\n    try:\n        b.a = 2\n    except Exception:\n        pass\n'
        '    return b.a', use='h#()'),
    'attrs repr fn': dict(needs='attr',
        top='import attr\n@attr.s\nclass B#:\n    a = attr.ib(repr=lambda v: str(«1»))',
        use="int(repr(B#(1)).split('=')[1][:-1])"),
    'attrs transformer': dict(needs='attr', top=
        'import attr\ndef tr#(cls, fields):\n    return [f.evolve(default=«1») for f in fields]\n'
        '@attr.define(field_transformer=tr#)\nclass B#:\n    a: int', use='B#().a'),
    'pydantic computed': dict(needs='pydantic', top=
        'import pydantic\nclass B#(pydantic.BaseModel):\n    a: int = 1\n'
        '    @pydantic.computed_field\n    @property\n    def c(self) -> int:\n'
        '        return self.a + «1»', use="B#().model_dump()['c']"),
    'pydantic config extra': dict(needs='pydantic', top=
        'import pydantic\nclass B#(pydantic.BaseModel):\n'
        "    model_config = pydantic.ConfigDict(extra='allow' if «1» & 1 else 'ignore')\n"
        '    a: int = 1', use='len(B#(z=1).model_dump())'),
    'pydantic config strict': dict(needs='pydantic', top=
        'import pydantic\nclass B#(pydantic.BaseModel):\n'
        "    model_config = {'strict': bool(«1» & 1)}\n    a: int = 1\ndef h#():\n    try:\n"
        "        return B#(a='5').a\n    except pydantic.ValidationError:\n        return 0", use='h#()'),
    'pydantic config kwarg': dict(needs='pydantic', top=
        'import pydantic\nclass B#(pydantic.BaseModel, frozen=bool(«1» & 1)):\n    a: int = 1\n'
        'def h#():\n    b = B#()\n    try:\n        b.a = 2\n    except pydantic.ValidationError:\n'
        '        pass\n    return b.a', use='h#()'),
    'pydantic serializer': dict(needs='pydantic', top=
        'import pydantic\nclass B#(pydantic.BaseModel):\n    a: int = 1\n'
        "    @pydantic.field_serializer('a')\n    def s(self, v):\n        return v + «1»",
        use="B#().model_dump()['a']"),
    'pydantic private attr': dict(needs='pydantic', top=
        'import pydantic\nclass B#(pydantic.BaseModel):\n'
        '    _k: int = pydantic.PrivateAttr(default=«1»)\n'
        '    _l: list = pydantic.PrivateAttr(default_factory=lambda: [«2»])', use='B#()._k + B#()._l[0]'),
    'pydantic alias': dict(needs='pydantic', top=
        'import pydantic\nclass B#(pydantic.BaseModel):\n'
        "    a: int = pydantic.Field(default=3, alias='b' if «1» & 1 else 'c')", use='B#(b=5).a'),
    'pydantic nested': dict(needs='pydantic', top=
        'import pydantic\nclass A#(pydantic.BaseModel):\n    k: int = «1»\n    def f(self):\n'
        '        return self.k + «2»\nclass B#(pydantic.BaseModel):\n    a: A# = A#()', use='B#().a.f()'),
    'pydantic nested optional annot': dict(needs='pydantic', top=
        'import pydantic, typing\nclass A#(pydantic.BaseModel):\n    k: int = «1»\n'
        '    def f(self):\n        return self.k + «2»\nclass B#(pydantic.BaseModel):\n'
        '    a: typing.Optional[A#] = None', use='B#(a={}).a.f()'),
    'pydantic generic': dict(needs='pydantic', top=
        "import pydantic, typing\nT# = typing.TypeVar('T#')\n"
        'class A#(pydantic.BaseModel, typing.Generic[T#]):\n    k: T#\n    def f(self):\n'
        '        return «1»', use='A#[int](k=1).f()'),
    'pydantic root': dict(needs='pydantic', top=
        'import pydantic\nclass A#(pydantic.RootModel[list[int]]):\n    def f(self):\n'
        '        return sum(self.root) + «1»', use='A#([1]).f()'),
    'pydantic dataclass': dict(needs='pydantic', top=
        'import pydantic.dataclasses as pd#\n@pd#.dataclass\nclass A#:\n    k: int = «1»\n'
        '    def f(self):\n        return self.k + «2»', use='A#().f()'),
    'pydantic create_model': dict(needs='pydantic',
        top="import pydantic\nA# = pydantic.create_model('A#', k=(int, «1»), __module__=__name__)",
        use='A#().k'),
    'pydantic validate_call': dict(needs='pydantic',
        top='import pydantic\n@pydantic.validate_call\ndef f#(x: int, k: int = «1»):\n    return x + k + «2»',
        use="f#('3')"),
    'pydantic default factory': dict(needs='pydantic', top=
        'import pydantic\ndef mk#():\n    return [«1»]\nclass A#(pydantic.BaseModel):\n'
        '    k: list = pydantic.Field(default_factory=mk#)', use='A#().k[0]'),
    'pydantic before validator reuse': dict(needs='pydantic', top=
        'import pydantic, typing\ndef v#(x):\n    return int(x) + «1»\n'
        'I# = typing.Annotated[int, pydantic.BeforeValidator(v#)]\nclass A#(pydantic.BaseModel):\n'
        '    k: I#\n    l: list[I#]', use="A#(k='1', l=['2']).l[0]"),
    'pydantic enum use values': dict(needs='pydantic', top=
        'import pydantic, enum\nclass E#(enum.Enum):\n    A = «1»\nclass M#(pydantic.BaseModel):\n'
        "    e: E# = E#.A\n    model_config = {'use_enum_values': True, 'validate_default': True}",
        use='M#().e'),
    'pydantic instance global': dict(needs='pydantic', top=
        'import pydantic\nclass M#(pydantic.BaseModel):\n    a: int\n    b: dict = {}\n'
        "CFG# = M#(a=«1», b={'k': «2»})", use="CFG#.a + CFG#.b['k']"),
    'pydantic model_rebuild forward': dict(needs='pydantic', top=
        'import pydantic, typing\nclass M#(pydantic.BaseModel):\n'
        "    a: 'typing.Optional[N#]' = None\nclass N#(pydantic.BaseModel):\n    k: int = «1»\n"
        'M#.model_rebuild()', use='M#(a={}).a.k'),
    'pydantic discriminated': dict(needs='pydantic', top=
        "import pydantic, typing\nclass A#(pydantic.BaseModel):\n    t: typing.Literal['a'] = 'a'\n"
        "    k: int = «1»\nclass B#(pydantic.BaseModel):\n    t: typing.Literal['b'] = 'b'\n"
        '    k: int = «2»\nclass M#(pydantic.BaseModel):\n'
        "    x: typing.Union[A#, B#] = pydantic.Field(discriminator='t')",
        use="M#(x={'t': 'a'}).x.k + M#(x={'t': 'b'}).x.k"),
    'pydantic json schema extra': dict(needs='pydantic', top=
        'import pydantic\nclass A#(pydantic.BaseModel):\n'
        "    k: int = pydantic.Field(1, json_schema_extra={'unit': «1»})",
        use="A#.model_fields['k'].json_schema_extra['unit']"),
    'pydantic description': dict(needs='pydantic', top=
        'import pydantic\nclass A#(pydantic.BaseModel):\n'
        "    k: int = pydantic.Field(1, description='d' * («1» & 7))",
        use="len(A#.model_fields['k'].description)"),
    'dataclass replace': dict(top=
        'import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass A#:\n    k: int = «1»\n'
        '    j: int = 0\nB# = dataclasses.replace(A#(), j=«2»)', use='B#.k + B#.j'),
    'dataclass classvar': dict(top=
        'import dataclasses, typing\n@dataclasses.dataclass\nclass A#:\n'
        "    T: typing.ClassVar[dict] = {'k': «1»}\n    a: int = 0", use="A#().T['k']"),
    'dataclass descriptor field': dict(top=
        'import dataclasses\nclass D#:\n    def __set_name__(self, o, n):\n'
        "        self.n = '_' + n\n    def __get__(self, o, c):\n"
        '        return «1» if o is None else getattr(o, self.n)\n    def __set__(self, o, v):\n'
        '        setattr(o, self.n, v + «2»)\n@dataclasses.dataclass\nclass A#:\n    k: int = D#()',
        use='A#().k'),
    'dataclass asdict': dict(top=
        'import dataclasses\n@dataclasses.dataclass\nclass A#:\n    k: int = «1»\n'
        '@dataclasses.dataclass\nclass B#:\n    a: A# = dataclasses.field(default_factory=A#)',
        use="dataclasses.asdict(B#())['a']['k']"),
    'dataclass eq compare': dict(top=
        'import dataclasses\n@dataclasses.dataclass\nclass A#:\n'
        '    k: int = dataclasses.field(default=0, compare=bool(«1» & 1))', use='int(A#(1) == A#(2))'),
    'dataclass hash flag': dict(top=
        'import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass A#:\n'
        '    k: int = dataclasses.field(default=0, hash=bool(«1» & 1))\n    j: int = 1',
        use='int(hash(A#(1)) == hash(A#(2)))'),
    'dataclass weakref slot': dict(since=(3, 11), top=
        'import dataclasses\n@dataclasses.dataclass(slots=True, weakref_slot=bool(«1» & 1))\n'
        'class A#:\n    k: int = 0', use="int(hasattr(A#(), '__weakref__'))"),
    'dataclass mixin methods': dict(
        files={'m#': 'class Mixin:\n    def tot(self):\n        return sum(vars(self).values()) + «1»'}, top=
        'import dataclasses\nfrom .m# import Mixin as M#\n@dataclasses.dataclass\nclass A#(M#):\n'
        '    k: int = «2»', use='A#().tot()'),
    'dataclass property override': dict(top=
        'import dataclasses\n@dataclasses.dataclass\nclass A#:\n    k: int = 1\n    @property\n'
        '    def d(self):\n        return self.k * «1»\n@dataclasses.dataclass\nclass B#(A#):\n'
        '    @property\n    def d(self):\n        return super().d + «2»', use='B#().d'),
    'named tuple subclass': dict(top=
        "import collections\nclass P#(collections.namedtuple('P#', 'x y')):\n    __slots__ = ()\n"
        '    def n(self):\n        return self.x + self.y * «1»', use='P#(1, «2»).n()'),
    'named tuple defaults': dict(
        top="import collections\nP# = collections.namedtuple('P#', 'x y', defaults=[«1»])", use='P#(1).y'),
    'named tuple field order': dict(
        top="import collections\nP# = collections.namedtuple('P#', 'x y' if «1» & 1 else 'y x')",
        use='P#(1, 2).x'),
    'named tuple rename': dict(
        top="import collections\nP# = collections.namedtuple('P#', ['x', 'def'], rename=True)\np# = P#(1, «1»)",
        use='p#._1'),
    'slots with default desc': dict(top=
        "class A#:\n    __slots__ = ('a', 'b')\n    def __init__(self):\n        self.a = «1»\n"
        '        self.b = [«2»]\na# = A#()', use='a#.a + a#.b[0]'),
    'private mangled state': dict(top=
        'class A#:\n    def __init__(self):\n        self.__k = «1»\n    def k(self):\n'
        '        return self.__k\na# = A#()', use='a#.k()'),
    'metaclass singleton': dict(top=
        'class M#(type):\n    _i = {}\n    def __call__(cls, *a):\n        if cls not in M#._i:\n'
        '            M#._i[cls] = super().__call__(*a)\n        return M#._i[cls]\n'
        'class C#(metaclass=M#):\n    def __init__(self):\n        self.k = «1»', use='C#().k'),
    'metaclass registry names': dict(top=
        'class M#(type):\n    reg = {}\n    def __new__(m, n, b, d, **kw):\n'
        '        c = super().__new__(m, n, b, d)\n        m.reg[n.lower()] = c\n        return c\n'
        'class C#(metaclass=M#):\n    def f(self):\n        return «1»\ndef mk#(n):\n'
        '    return M#.reg[n]()', use="mk#('c#').f()"),
    'class decorator registry by attr': dict(top=
        'class Reg#:\n    def __init__(self):\n        self._d = {}\n'
        '    def __call__(self, name):\n        def deco(c):\n            self._d[name] = c\n'
        '            return c\n        return deco\n    def __getitem__(self, n):\n'
        "        return self._d[n]\nR# = Reg#()\n@R#('a')\nclass A#:\n    k = «1»", use="R#['a'].k"),
    'module getattr deprecation': dict(files={'m#':
        "_new = «1»\ndef __getattr__(n):\n    if n == 'old':\n        return _new\n"
        '    raise AttributeError(n)'}, top='from . import m#', use='m#.old'),
    'module getattr from': dict(files={'m#':
        "_new = «1»\ndef __getattr__(n):\n    if n == 'old':\n        return _new\n"
        '    raise AttributeError(n)'}, body='from .m# import old as o#', use='o#'),
    'package relative deep': dict(
        files={'p#/__init__': 'from .core import *\nfrom .util.math import sq as square',
            'p#/core/__init__': "from ._impl import run\n__all__ = ['run']",
            'p#/core/_impl':
        'from ..util.math import sq\nfrom ..util import const as C\ndef run(x):\n    return sq(x) + C.K',
            'p#/util/__init__': '',
            'p#/util/math': 'def sq(x):\n    return x * x + «1»\ndef cube(x):\n    return «-2»',
            'p#/util/const': 'K = «3»\nJ = «-4»'}, top='from . import p#', use='p#.run(2) + p#.square(1)'),
    'package all submodule': dict(files={'p#/__init__': "__all__ = ['sub']\n",
            'p#/sub': 'def f():\n    return «1»'}, top='from .p# import *\nfrom .p# import sub as s#',
        use='s#.f()'),
    'package lazy import fn': dict(
        files={'p#/__init__': 'def load():\n    from . import sub\n    return sub.f()',
            'p#/sub': 'def f():\n    return «1»\nprint'}, top='from . import p#', use='p#.load()'),
    'package function same as module': dict(files={'p#/__init__': 'from .run import run',
            'p#/run': 'def run():\n    return helper()\ndef helper():\n    return «1»'},
        top='from . import p#', use='p#.run()'),
    'main guard': dict(top="def m#():\n    return «1»\nif __name__ == '__main__':\n    m#()", use='m#()'),
    'dunder all computed': dict(
        files={'p#': "a# = «1»\nb# = «-2»\n__all__ = [n for n in dir() if n.startswith('a')]"},
        top='from .p# import *', use='a#'),
    'functions in module list': dict(files={'p#':
        'def f1():\n    return «1»\ndef f2():\n    return «2»\n'
        "ALL = [v for k, v in sorted(globals().items()) if k.startswith('f')]"},
        top='from .p# import ALL as A#', use='sum(f() for f in A#)'),
    'ctypes restype': dict(top=
        'import ctypes\nL# = ctypes.CDLL(None)\n'
        'L#.labs.restype = ctypes.c_int8 if «1» & 1 else ctypes.c_long\n'
        'L#.labs.argtypes = [ctypes.c_long]', use='L#.labs(300)'),
    'ctypes argtypes': dict(top=
        'import ctypes\nL# = ctypes.CDLL(None)\n'
        'L#.labs.argtypes = [ctypes.c_int8 if «1» & 1 else ctypes.c_long]', use='L#.labs(300)'),
    'ctypes errcheck': dict(top=
        'import ctypes\nL# = ctypes.CDLL(None)\ndef chk#(r, f, a):\n    return r + «1»\n'
        'L#.labs.errcheck = chk#', use='L#.labs(3)'),
    'ctypes inside': dict(top='import ctypes\ndef f#():\n    return ctypes.CDLL(None).labs(-«1»)', use='f#()'),
    'kernel default_fp': dict(alone=True, top=
        'import ingot as qd#\n'
        "qd#.init(default_fp=qd#.f32 if «1» & 1 else qd#.f64, log_level='error')\n@qd#.kernel\n"
        'def k#() -> qd#.f64:\n    x = 0.1\n    return x * 3', use='k#() * 10**12'),
    'kernel template fn': dict(top=
        'import ingot as qd#\n@qd#.func\ndef a#(x):\n    return x + «1»\n@qd#.kernel\n'
        'def k#(f: qd#.template(), x: qd#.i32) -> qd#.i32:\n    return f(x)',
        body="qd#.init(log_level='error')", use='k#(a#, 1)'),
    'kernel static range': dict(top=
        'import ingot as qd#\nN# = «1»\n@qd#.kernel\ndef k#() -> qd#.i32:\n    s = 0\n'
        '    for i in qd#.static(range(3)):\n        s += i * N#\n    return s',
        body="qd#.init(log_level='error')", use='k#()'),
    'kernel dict const': dict(top=
        "import ingot as qd#\nT# = {'a': «1»}\n@qd#.kernel\ndef k#() -> qd#.i32:\n"
        "    return qd#.static(T#['a'])", body="qd#.init(log_level='error')", use='k#()'),
    'kernel closure': dict(top=
        'import ingot as qd#\ndef mk#(c):\n    @qd#.kernel\n    def k(x: qd#.i32) -> qd#.i32:\n'
        '        return x + c + «1»\n    return k\nK# = mk#(«2»)', body="qd#.init(log_level='error')",
        use='K#(1)'),
    'kernel dataclass arg': dict(top=
        'import ingot as qd#, dataclasses\n@qd#.dataclass\nclass S#:\n    a: qd#.i32\n'
        '    @qd#.func\n    def f(self):\n        return self.a + «1»\n@qd#.kernel\n'
        'def k#() -> qd#.i32:\n    s = S#(a=«2»)\n    return s.f()', body="qd#.init(log_level='error')",
        use='k#()'),
    'kernel in module': dict(files={'m#':
        'import ingot as qd\nfrom .c# import C\n@qd.func\ndef f(x):\n    return x + C\n@qd.kernel\n'
        'def k(x: qd.i32) -> qd.i32:\n    return f(x) + «2»',
            'c#': 'C = «1»\nD = «-3»'}, top='from . import m#',
        body="import ingot\ningot.init(log_level='error')", use='m#.k(1)'),
    'kernel decorated': dict(top=
        'import ingot as qd#, functools\ndef deco#(f):\n    @functools.wraps(f)\n    def w(*a):\n'
        '        return f(*a) + «1»\n    return w\n@deco#\n@qd#.kernel\ndef k#() -> qd#.i32:\n'
        '    return «2»', body="qd#.init(log_level='error')", use='k#()'),
    'kernel default arg class': dict(top=
        'import ingot as qd#\n@qd#.data_oriented\nclass B#:\n    n = «1»\n    @qd#.func\n'
        '    def g(self):\n        return «2»\nclass C#(B#):\n    @qd#.kernel\n'
        '    def k(self) -> qd#.i32:\n        return self.n + self.g()', body="qd#.init(log_level='error')",
        use='C#().k()'),
    'interp1d': dict(needs='scipy', top=
        'import numpy as np\nfrom scipy.interpolate import interp1d as i#\n'
        'F# = i#([0., 1.], [0., float(«1»)])', use='int(F#(0.5) * 2)'),
    'uspline': dict(needs='scipy', top=
        'from scipy.interpolate import UnivariateSpline as i#\n'
        'F# = i#([0., 1., 2., 3.], [0., 1., 2., float(«1»)], s=0)', use='int(round(float(F#(3.))))'),
    'stats frozen': dict(needs='scipy', top='from scipy import stats as st#\nF# = st#.norm(loc=«1»)',
        use='int(F#.mean())'),
    'linop': dict(needs='scipy', top=
        'import numpy as np\nfrom scipy.sparse.linalg import LinearOperator as L#\ndef mv#(x):\n'
        '    return x * «1»\nA# = L#((1, 1), matvec=mv#, dtype=float)',
        use='int(A#.matvec(np.array([1.]))[0])'),
    'rv subclass': dict(needs='scipy', top=
        'from scipy import stats as st#\nclass D#(st#.rv_continuous):\n    def _pdf(self, x):\n'
        '        return «1» + 0 * x\nd# = D#(a=0, b=1)', use='int(d#.pdf(0.5))'),
    'df accessor': dict(alone=True, needs='pandas', top=
        "import pandas as pd\n@pd.api.extensions.register_dataframe_accessor('acc$')\nclass A#:\n"
        '    def __init__(self, o):\n        self.o = o\n    def f(self):\n        return «1»\n'
        "DF# = pd.DataFrame({'a': [1]})", use='DF#.acc$.f()'),
    'df subclass': dict(needs='pandas', top=
        "import pandas as pd\nclass F#(pd.DataFrame):\n    _metadata = ['k']\n    @property\n"
        '    def _constructor(self):\n        return F#\n    def f(self):\n'
        "        return int(self['a'].sum()) + self.k + «1»\nf# = F#({'a': [«2»]})\nf#.k = «3»", use='f#.f()'),
    'df categorical order': dict(needs='pandas', top=
        'import pandas as pd\n'
        "C# = pd.Categorical(['a', 'b'], categories=['a', 'b'] if «1» & 1 else ['b', 'a'])",
        use='int(C#.codes[0])'),
    'timestamp tz': dict(needs='pandas',
        top="import pandas as pd\nT# = pd.Timestamp('2020-01-01', tz='UTC' if «1» & 1 else 'Asia/Tokyo')",
        use='int(T#.value // 10**9)'),
    'offset': dict(needs='pandas', top='import pandas as pd\nT# = pd.offsets.Day(1 + («1» & 7))', use='T#.n'),
    'xarray dataarray': dict(needs='xarray',
        top="import xarray as xr\nA# = xr.DataArray([1, «1»], dims='x', attrs={'u': «2»})",
        use="int(A#.sum()) + A#.attrs['u']"),
    'xarray accessor': dict(alone=True, needs='xarray', top=
        "import xarray as xr\n@xr.register_dataarray_accessor('ac$')\nclass A#:\n"
        '    def __init__(self, o):\n        pass\n    def f(self):\n        return «1»\n'
        'X# = xr.DataArray([1])', use='X#.ac$.f()'),
    'torch module': dict(needs='torch', top=
        'import torch\nclass N#(torch.nn.Module):\n    def __init__(self):\n'
        '        super().__init__()\n        self.l = torch.nn.Linear(1, 1)\n'
        '        torch.nn.init.constant_(self.l.weight, «1» & 255)\n'
        '        torch.nn.init.zeros_(self.l.bias)\n    def forward(self, x):\n'
        '        return self.l(x) + («2» & 255)\nn# = N#()', use='int(n#(torch.ones(1, 1)))'),
    'torch hook': dict(needs='torch',
        top='import torch\nn# = torch.nn.Identity()\nn#.register_forward_hook(lambda m, i, o: o + («1» & 255))',
        use='int(n#(torch.ones(1)))'),
    'torch sequential': dict(needs='torch',
        top='import torch\nn# = torch.nn.Sequential(torch.nn.ReLU() if «1» & 1 else torch.nn.Tanh())',
        use='int(n#(torch.full((1,), 3.0)) * 100)'),
    'torch training flag': dict(needs='torch',
        top='import torch\nn# = torch.nn.Dropout(1.0).train(bool(«1» & 1))', use='int(n#(torch.ones(1)))'),
    'autograd fn': dict(needs='torch', top=
        'import torch\nclass F#(torch.autograd.Function):\n    @staticmethod\n'
        '    def forward(ctx, x):\n        return x + («1» & 255)\n    @staticmethod\n'
        '    def backward(ctx, g):\n        return g', use='int(F#.apply(torch.ones(1)))'),
    'torch module bound': dict(needs='torch',
        top='import torch\nF# = torch.nn.functional.relu if «1» & 1 else torch.nn.functional.elu',
        use='int(F#(torch.full((1,), -1.0)) * 1000)'),
    'torch dataset': dict(needs='torch', top=
        'import torch\nclass DS#(torch.utils.data.Dataset):\n    def __len__(self):\n'
        '        return 1\n    def __getitem__(self, i):\n        return «1»\nD# = DS#()', use='D#[0]'),
    'numba njit chain': dict(needs='numba', top=
        'import numba as nb\nK# = «2»\n@nb.njit\ndef g#(x):\n    return x + «1» + K#\n@nb.njit\n'
        'def h#(x):\n    return g#(x)', use='h#(1)'),
    'numba fastmath': dict(needs='numba',
        top='import numba as nb\n@nb.njit(fastmath=bool(«1» & 1))\ndef h#(x):\n    return x + 1',
        use="h#(1) * 0 + int(h#.targetoptions.get('fastmath', 0))"),
}
