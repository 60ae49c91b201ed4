"""What a compiled function has read, and what changes then: later calls are those of plain Python.

In each row: a source with `read(x)`; a change; the change back. The function under test calls `read` itself or
through helpers. It is called three times in each of four states: as it was, changed, as it was, changed.
"""

from __future__ import annotations

import sys
import types
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import jitcore
from tests.autojit.checking import assert_same

START = """
import abc, collections, dataclasses, decimal, enum, functools, math, numbers, os, sys
import numpy as np
LOG = []
"""


class Row(NamedTuple):
    """compiled: whether the function is traced before the change."""

    source: str
    change: str
    back: str
    compiled: bool = True


METHODS = """
class Box:
    rate = 2.0
    def __init__(self, v): self.v = v
    def go(self, x): return x * self.v
    @property
    def twice(self): return self.v * 2
    @staticmethod
    def fixed(x): return x + 1
    @classmethod
    def made(cls, x): return x + cls.rate
    def __add__(self, x): return x + self.v
    def __len__(self): return 3
    def __getitem__(self, i): return self.v + i
    def __call__(self, x): return x - self.v
    def __bool__(self): return True
    def __eq__(self, other): return False
    def __lt__(self, other): return True
    def __contains__(self, v): return True
class Sub(Box): pass
class Meta(type):
    @property
    def size(cls): return 4.0
    def __instancecheck__(cls, one): return False
    def __len__(cls): return 2
class Made(metaclass=Meta): pass
class Shape(abc.ABC): pass
class Hooked:
    @classmethod
    def __subclasshook__(cls, other): return NotImplemented
class Other:
    rate = 9.0
    def go(self, x): return x * 100
    def back(self, x): return x
class Nested:
    class Inner:
        def go(x): return x + 1
        rate = 1.5
BOX, SUB, NESTED = Box(3.0), Sub(5.0), Nested()
"""


def change_method(name: str, new: str, use: str, owner: str = "Box", compiled: bool = True) -> Row:
    """A method of a class is replaced."""
    source = METHODS + f"\ndef read(x): {use}\nKEPT = {owner}.__dict__.get({name!r})\n"
    back = f"{owner}.{name} = KEPT" if f"def {name}" in METHODS.replace(" ", " ") else f"del {owner}.{name}"
    return Row(source, f"{owner}.{name} = {new}", back, compiled)


CODE = """
def other(x): return x - 100
def helper(x): return x + 1
KEPT = helper.__code__
"""

ROWS = {
    # methods, properties, operators
    "method": change_method("go", "lambda self, x: x - 1", "return BOX.go(x)"),
    "method of a new object": change_method("go", "lambda self, x: x - 1", "return Box(2.0).go(x)"),
    "initializer": change_method("__init__", "lambda self, v: setattr(self, 'v', v + 1)", "return Box(2.0).go(x)"),
    "inherited method": change_method("go", "lambda self, x: x - 1", "return SUB.go(x)"),
    "method of the class": change_method("go", "lambda self, x: x - 1", "return Box.go(BOX, x)"),
    "super": Row(METHODS + "class Low(Box):\n    def go(self, x): return super().go(x) + 1\nLOW = Low(2.0)\n"
                 "def read(x): return LOW.go(x)\nKEPT = Box.go", "Box.go = lambda self, x: x", "Box.go = KEPT"),
    "property": change_method("twice", "property(lambda self: self.v * 7)", "return x * BOX.twice"),
    "property becomes data": change_method("twice", "11.0", "return x * BOX.twice"),
    "static method": change_method("fixed", "staticmethod(lambda x: x * 8)", "return BOX.fixed(x)"),
    "class method": change_method("made", "classmethod(lambda cls, x: x * 8)", "return BOX.made(x)"),
    "class method of the class": change_method("made", "classmethod(lambda cls, x: x * 8)", "return Box.made(x)"),
    "operator": change_method("__add__", "lambda self, x: x * 50", "return BOX + x"),
    "operator that is added": change_method("__mul__", "lambda self, x: x * 50",
                                            "return BOX * x if hasattr(BOX, '__mul__') else x"),
    "length": change_method("__len__", "lambda self: 9", "return x * len(BOX)"),
    "item": change_method("__getitem__", "lambda self, i: i * 9", "return x * BOX[2]"),
    "call": change_method("__call__", "lambda self, x: x * 9", "return BOX(x)"),
    "bool": change_method("__bool__", "lambda self: False", "return x if BOX else -x"),
    "equality": change_method("__eq__", "lambda self, other: True", "return x if BOX == 3 else -x"),
    "order": change_method("__lt__", "lambda self, other: False", "return x if BOX < 3 else -x"),
    "containment": change_method("__contains__", "lambda self, v: False", "return x if 3 in BOX else -x"),
    "shadowing method": change_method("go", "lambda self, x: x - 1", "return SUB.go(x)", "Sub"),
    "shadowing data": change_method("rate", "77.0", "return x * SUB.rate", "Sub"),
    "shadowing property": change_method("rate", "property(lambda self: 6.0)", "return x * SUB.rate", "Sub"),
    "data shadows method": change_method("go", "np.negative", "return SUB.go(x)", "Sub"),
    "getattr is added": change_method("__getattr__", "lambda self, name: 6.0",
                                      "return x * getattr(BOX, 'missing', 1.0)"),
    "getattribute is added": change_method("__getattribute__", "lambda self, name: 6.0", "return x * BOX.v"),
    "instance data shadow": Row(METHODS + "def read(x): return x * BOX.rate", "BOX.rate = 5.0", "del BOX.rate"),
    "instance method shadows": Row(METHODS + "def read(x): return BOX.go(x)", "BOX.go = np.cos", "del BOX.go"),
    "class of an object": Row(METHODS + "def read(x): return BOX.go(x)", "BOX.__class__ = Other",
                              "BOX.__class__ = Box"),
    "bases": Row(METHODS + "def read(x): return SUB.go(x)", "Sub.__bases__ = (Other,)", "Sub.__bases__ = (Box,)"),
    "data of bases": Row(METHODS + "def read(x): return SUB.rate * x", "Sub.__bases__ = (Other,)",
                         "Sub.__bases__ = (Box,)"),
    "property of a metaclass": Row(METHODS + "def read(x): return x * Made.size\nKEPT = Meta.size",
                                   "Meta.size = property(lambda cls: 5.0)", "Meta.size = KEPT", False),
    "length of a class": Row(METHODS + "def read(x): return x * len(Made)\nKEPT = Meta.__len__",
                             "Meta.__len__ = lambda cls: 5", "Meta.__len__ = KEPT"),
    "instance check": Row(METHODS + "def read(x): return x if isinstance(BOX, Made) else -x\n"
                          "KEPT = Meta.__instancecheck__", "Meta.__instancecheck__ = lambda cls, one: True",
                          "Meta.__instancecheck__ = KEPT", False),
    "registered class": Row(METHODS + "def read(x): return x if isinstance(BOX, Shape) else -x",
                            "Shape.register(Box)", "pass"),
    "registered number": Row(METHODS + "class Own: pass\nOWN = Own()\n"
                             "def read(x): return x if isinstance(OWN, numbers.Complex) else -x",
                             "numbers.Complex.register(Own)", "pass"),
    "method of an inner class": Row(METHODS + "def read(x): return Nested.Inner.go(x)\nKEPT = Nested.Inner.go",
                                    "Nested.Inner.go = lambda x: x * 4", "Nested.Inner.go = KEPT"),
    "data of an inner class": Row(METHODS + "def read(x): return Nested.Inner.rate * x", "Nested.Inner.rate = 4.5",
                                  "Nested.Inner.rate = 1.5"),
    "inner class by an object": Row(METHODS + "def read(x): return NESTED.Inner.rate * x",
                                    "Nested.Inner.rate = 4.5", "Nested.Inner.rate = 1.5"),
    # code
    "code": Row(CODE + "def read(x): return helper(x)", "helper.__code__ = other.__code__",
                "helper.__code__ = KEPT"),
    "own code": Row(CODE + "def read(x): return x * 2\nKEPT = read.__code__", "read.__code__ = other.__code__",
                    "read.__code__ = KEPT"),
    "code of a method": Row(METHODS + "def other(self, x): return x - 100\ndef read(x): return BOX.go(x)\n"
                            "KEPT = Box.go.__code__", "Box.go.__code__ = other.__code__", "Box.go.__code__ = KEPT"),
    "code of a property": Row(METHODS + "def other(self): return 100.0\ndef read(x): return x * BOX.twice\n"
                              "KEPT = Box.twice.fget.__code__", "Box.twice.fget.__code__ = other.__code__",
                              "Box.twice.fget.__code__ = KEPT"),
    "code of an operator": Row(METHODS + "def other(self, y): return y * 9\ndef read(x): return BOX + x\n"
                               "KEPT = Box.__add__.__code__", "Box.__add__.__code__ = other.__code__",
                               "Box.__add__.__code__ = KEPT"),
    "code of a partial": Row(CODE + "part = functools.partial(helper)\ndef read(x): return part(x)",
                             "helper.__code__ = other.__code__", "helper.__code__ = KEPT"),
    "code of a closure": Row(CODE + "def make():\n    h = helper\n    def inner(x): return h(x)\n    return inner\n"
                             "inner = make()\ndef read(x): return inner(x)", "helper.__code__ = other.__code__",
                             "helper.__code__ = KEPT"),
    "code of an attribute": Row(CODE + "def a(x): return x\na.b = helper\ndef read(x): return a.b(x)",
                                "helper.__code__ = other.__code__", "helper.__code__ = KEPT"),
    "attribute of a function": Row(CODE + "def a(x): return x\na.b = helper\ndef read(x): return a.b(x)",
                                   "a.b = other", "a.b = helper"),
    "attribute that is added": Row(CODE + "def read(x): return x * 2 if hasattr(helper, 'mark') else x",
                                   "helper.mark = 1", "del helper.mark"),
    "default": Row("def helper(x, k=2.0): return x * k\ndef read(x): return helper(x)",
                   "helper.__defaults__ = (5.0,)", "helper.__defaults__ = (2.0,)"),
    "more defaults": Row("def helper(x, k, j=2.0): return x * k\ndef read(x):\n    try: return helper(x, 3.0)\n"
                         "    except TypeError: return -x", "helper.__defaults__ = (7.0, 5.0)",
                         "helper.__defaults__ = (2.0,)"),
    "keyword default": Row("def helper(x, *, k=2.0): return x * k\ndef read(x): return helper(x)",
                           "helper.__kwdefaults__ = {'k': 5.0}", "helper.__kwdefaults__ = {'k': 2.0}"),
    "content of a default": Row("def helper(x, k=[2.0]): return x * k[0]\ndef read(x): return helper(x)",
                                "helper.__defaults__[0][0] = 8.0", "helper.__defaults__[0][0] = 2.0"),
    "cell": Row("def make(k):\n    def inner(x): return x * k\n    return inner\ninner = make(2.0)\n"
                "def read(x): return inner(x)", "inner.__closure__[0].cell_contents = 5.0",
                "inner.__closure__[0].cell_contents = 2.0"),
    "function in a cell": Row(CODE + "def make(k):\n    def inner(x): return k(x)\n    return inner\n"
                              "inner = make(helper)\ndef read(x): return inner(x)",
                              "inner.__closure__[0].cell_contents = other",
                              "inner.__closure__[0].cell_contents = helper"),
    "global function": Row(CODE + "first = helper\ndef read(x): return helper(x)",
                           "helper = other", "helper = first"),
    "cached function": Row("K = 2.0\n@functools.lru_cache\ndef cached(n): return n * K\n"
                           "def read(x): return x * cached(3)",
                           "K = 5.0; cached.cache_clear()", "K = 2.0; cached.cache_clear()", False),
    "cached function keeps": Row("K = 2.0\n@functools.lru_cache\ndef cached(n): return n * K\n"
                                 "def read(x): return x * cached(3)", "K = 5.0", "K = 2.0", False),
    # modules and builtins
    "environment": Row("os.environ['STALE'] = '2'\ndef read(x): return x * float(os.environ['STALE'])",
                       "os.environ['STALE'] = '5'", "os.environ['STALE'] = '2'", False),
    "environment by get": Row("def read(x): return x * float(os.environ.get('STALE2', '3'))",
                              "os.environ['STALE2'] = '5'", "del os.environ['STALE2']", False),
    "getenv": Row("def read(x): return x * float(os.getenv('STALE3', '3'))",
                  "os.environ['STALE3'] = '5'", "del os.environ['STALE3']"),
    "arguments of the process": Row("KEPT = sys.argv[:]\ndef read(x): return x * len(sys.argv)",
                                    "sys.argv.append('more')", "sys.argv[:] = KEPT"),
    "function of numpy": Row("KEPT = np.sin\ndef read(x): return np.sin(x)", "np.sin = np.cos", "np.sin = KEPT"),
    "function of a part of numpy": Row("KEPT = np.linalg.norm\ndef read(x): return np.linalg.norm(x) * x",
                                       "np.linalg.norm = lambda x: 3.0", "np.linalg.norm = KEPT"),
    "function of math": Row("KEPT = math.sqrt\ndef read(x): return x * math.sqrt(2.0)",
                            "math.sqrt = lambda v: 100.0", "math.sqrt = KEPT"),
    "number of math": Row("KEPT = math.pi\ndef read(x): return x * math.pi", "math.pi = 3.0", "math.pi = KEPT"),
    "class of a library": Row("KEPT = collections.OrderedDict\n"
                              "def read(x): return x * len(collections.OrderedDict(a=1))",
                              "collections.OrderedDict = lambda a: [1, 2, 3]", "collections.OrderedDict = KEPT"),
    "import in the function": Row("def read(x):\n    import math\n    return x * math.tau\nKEPT = math.tau",
                                  "math.tau = 3.0", "math.tau = KEPT"),
    "import of users in the function": Row("def read(x):\n    import stale_settings\n"
                                           "    return x * stale_settings.rate",
                                           "MODULE.rate = 5.0", "MODULE.rate = 2.0"),
    "import from users in the function": Row("def read(x):\n    from stale_settings import rate, go\n"
                                             "    return go(x) * rate", "MODULE.go = np.cos", "MODULE.go = np.sin"),
    "imported module": Row("def read(x):\n    import stale_settings as m\n    return x * m.rate\n"
                           "import types\nNEW = types.ModuleType('stale_settings'); NEW.rate = 7.0\n"
                           "NEW.__file__ = '/nowhere/s.py'",
                           "sys.modules['stale_settings'] = NEW", "sys.modules['stale_settings'] = MODULE"),
    "module in a module": Row("import stale_settings\ndef read(x): return stale_settings.inner.inner.go(x)\n",
                              "MODULE.inner.inner.go = np.cos", "MODULE.inner.inner.go = np.sin"),
    "module that is replaced": Row("import stale_settings, types\nINNER = MODULE.inner\n"
                                   "NEW = types.ModuleType('n'); NEW.go = np.cos; NEW.__file__ = '/nowhere/n.py'\n"
                                   "def read(x): return stale_settings.inner.go(x)\n",
                                   "MODULE.inner = NEW", "MODULE.inner = INNER"),
    "getattr of a module": Row("import stale_settings as m\ndef read(x): return x * getattr(m, 'missing', 1.0)\n",
                               "MODULE.__getattr__ = lambda name: 6.0", "del MODULE.__getattr__"),
    "builtin": Row("import builtins\nKEPT = ord\ndef read(x): return x * ord('a')",
                   "builtins.ord = lambda s: 9", "builtins.ord = KEPT"),
    "builtin that is shadowed": Row("def read(x): return x * len('abc')", "len = lambda s: 9", "del len"),
    "builtin exception": Row("import builtins\nKEPT = ValueError\ndef read(x):\n    try:\n"
                             "        if len(x) == 3: raise KEPT\n    except ValueError: return x\n"
                             "    except Exception: return -x\n    return x + 1",
                             "builtins.ValueError = KeyError", "builtins.ValueError = KEPT"),
    # values
    "named tuple": Row("P = collections.namedtuple('P', 'a b')\nVALUE = P(1.0, 2.0)\n"
                       "def read(x): return x * VALUE.b", "VALUE = P(1.0, 5.0)", "VALUE = P(1.0, 2.0)"),
    "data class": Row("@dataclasses.dataclass\nclass D:\n    a: float\n    n: int = 2\nVALUE = D(1.0)\n"
                      "def read(x): return x * VALUE.a ** VALUE.n", "VALUE = D(3.0, 1)", "VALUE = D(1.0)"),
    "enumeration": Row("class E(enum.IntEnum):\n    A = 1\n    B = 2\nVALUE = E.A\n"
                       "def read(x): return x if VALUE is E.A else -x", "VALUE = 1", "VALUE = E.A"),
    "member of an enumeration": Row("class E(enum.Enum):\n    A = 1\n    B = 2\ndef read(x): return x * E.A.value",
                                    "class E(enum.Enum): A = 3", "class E(enum.Enum): A = 1"),
    "method of an enumeration": Row("class E(enum.Enum):\n    A = 1\n    def go(self, x): return x * 2\n"
                                    "KEPT = E.go\nVALUE = E.A\ndef read(x): return VALUE.go(x)",
                                    "E.go = lambda self, x: x * 7", "E.go = KEPT"),
    "print options": Row("def read(x): return str(np.get_printoptions()['precision'])",
                         "np.set_printoptions(precision=3)", "np.set_printoptions(precision=8)"),
    "text of an array": Row("T = np.array([1 / 3])\ndef read(x): return str(T), x * 2",
                            "np.set_printoptions(precision=3)", "np.set_printoptions(precision=8)"),
    "text of an array that is made": Row("def read(x): return f'{np.array([1 / 3])} {x}'",
                                         "np.set_printoptions(precision=3)", "np.set_printoptions(precision=8)"),
    "decimal context": Row("def read(x): return x * float(decimal.Decimal(1) / decimal.Decimal(3))",
                           "decimal.getcontext().prec = 3", "decimal.getcontext().prec = 28", False),
    "error state": Row("def read(x):\n    try: return 1 / (x - x)\n    except FloatingPointError: return x",
                       "np.seterr(divide='raise', invalid='raise')", "np.seterr(divide='warn', invalid='warn')"),
}  # fmt: skip


def make_module(row: Row, depth: int, name: str, decorate) -> types.ModuleType:
    settings = types.ModuleType("stale_settings")
    settings.__file__, settings.rate, settings.go = "/nowhere/stale_settings.py", 2.0, np.sin
    inner = settings
    for _ in range(2):
        inner.inner = types.ModuleType("inner")
        inner = inner.inner
        inner.__file__, inner.go = "/nowhere/inner.py", np.sin
    sys.modules["stale_settings"] = settings
    made = types.ModuleType(name)
    made.__file__, made.MODULE = f"/nowhere/{name}.py", settings
    sys.modules[name] = made
    helpers = "".join(f"def call{k}(x): return {'read' if k == 1 else f'call{k - 1}'}(x)\n"
                      for k in range(1, depth + 1))  # fmt: skip
    source = START + row.source + "\n" + helpers
    exec(compile(source, made.__file__, "exec"), vars(made))
    made.f = decorate(getattr(made, f"call{depth}" if depth else "read"))
    return made


def run_row(row: Row, depth: int, name: str, decorate) -> tuple[list, types.ModuleType]:
    found = []
    made = make_module(row, depth, name, decorate)
    try:
        for step in (None, row.change, row.back, row.change):
            if step is not None:
                exec(step, vars(made))
            for _ in range(3):
                try:
                    found.append(made.f(np.arange(1.0, 4.0)))
                except Exception as error:
                    found.append((type(error), str(error)))
    finally:
        exec(row.back, vars(made))
        del sys.modules["stale_settings"], sys.modules[name]
    return found, made


@pytest.mark.parametrize("name", ROWS)
def test_changes_are_seen(name):
    row = ROWS[name]
    for depth in range(4):
        tag = f"stale_{depth}_{list(ROWS).index(name)}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, _ = run_row(row, depth, tag, lambda f: f)
            found, made = run_row(row, depth, tag, jitcore.autojit)
        assert len(found) == len(expected) == 12
        for one, other in zip(expected, found):
            assert_same(one, other)
        info = made.f.cache_info()
        assert (info.traces > 0) == row.compiled, (depth, made.f.report())
        assert info.traces <= 4
