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
    # one that no library has to do with meanwhile
    "builtin exception": Row("import builtins\nKEPT = BufferError\ndef read(x):\n    try:\n"
                             "        if len(x) == 3: raise KEPT\n    except BufferError: return x\n"
                             "    except Exception: return -x\n    return x + 1",
                             "builtins.BufferError = KeyError", "builtins.BufferError = KEPT"),
    # what is found on the way
    "state of a bound method": Row(METHODS + "BOUND = BOX.go\ndef read(x): return BOUND(x)", "BOX.v = 9.0",
                                   "BOX.v = 3.0", None),
    "state of a partial method": Row(METHODS + "PART = functools.partial(BOX.go)\ndef read(x): return PART(x)",
                                     "BOX.v = 9.0", "BOX.v = 3.0", None),
    "keywords of a partial": Row("def helper(x, k): return x * k\nPART = functools.partial(helper, k=2.0)\n"
                                 "def read(x): return PART(x)", "PART.keywords['k'] = 5.0",
                                 "PART.keywords['k'] = 2.0", None),
    "function in a dict": Row(CODE + "T = {'a': helper}\ndef read(x): return T['a'](x)", "T['a'] = other",
                              "T['a'] = helper"),
    "code of a function in a list": Row(CODE + "T = [helper]\ndef read(x): return T[0](x)",
                                        "helper.__code__ = other.__code__", "helper.__code__ = KEPT"),
    "object in a class": Row(METHODS + "Box.part = Box(4.0)\ndef read(x): return x * BOX.part.v",
                             "Box.part.v = 9.0", "Box.part.v = 4.0", None),
    "object in a class by name": Row(METHODS + "Box.part = Box(4.0)\ndef read(x): return x * Box.part.v",
                                     "Box.part.v = 9.0", "Box.part.v = 4.0", None),
    "object of a function": Row(METHODS + "def a(x): return x\na.part = Box(4.0)\ndef read(x): return x * a.part.v",
                                "a.part.v = 9.0", "a.part.v = 4.0", None),
    "array scalar of a class": Row(METHODS + "Box.scale = np.float64(2.0)\ndef read(x): return x * Box.scale",
                                   "Box.scale = np.float64(5.0)", "Box.scale = np.float64(2.0)"),
    "class by type": Row(METHODS + "def read(x): return x * type(BOX).rate", "Box.rate = 9.0", "Box.rate = 2.0"),
    "name of an attribute": Row(METHODS + "NAME = 'v'\ndef read(x): return x * getattr(BOX, NAME)",
                                "NAME = 'rate'", "NAME = 'v'"),
    "variables of an object": Row(METHODS + "def read(x): return x * vars(BOX)['v'] + BOX.__dict__['v']",
                                  "BOX.v = 9.0", "BOX.v = 3.0", None),
    "module by its name": Row("def read(x): return x * sys.modules['stale_settings'].rate", "MODULE.rate = 5.0",
                              "MODULE.rate = 2.0", None),
    "name of a function": Row(CODE + "def read(x): return x * len(helper.__name__)", "helper.__name__ = 'h'",
                              "helper.__name__ = 'helper'", None),
    "name of a class": Row(METHODS + "def read(x): return x * len(Box.__name__)", "Box.__name__ = 'B'",
                           "Box.__name__ = 'Box'", None),
    "text of a class": Row(METHODS + "Box.__doc__ = 'abc'\ndef read(x): return x * len(Box.__doc__)",
                           "Box.__doc__ = 'a'", "Box.__doc__ = 'abc'", None),
    "context variable": Row("import contextvars\nVAR = contextvars.ContextVar('v', default=2.0)\n"
                            "def read(x): return x * VAR.get()", "VAR.set(5.0)", "VAR.set(2.0)", None),
    "hash": Row(METHODS + "Box.__hash__ = lambda self: 3\ndef read(x): return x * hash(BOX)",
                "Box.__hash__ = lambda self: 5", "Box.__hash__ = lambda self: 3", None),
    "text of an object": Row(METHODS + "Box.__repr__ = lambda self: 'box'\ndef read(x): return str(BOX), x + 1",
                             "Box.__repr__ = lambda self: 'b'", "Box.__repr__ = lambda self: 'box'", None),
    "global in an operator": Row(METHODS + "K = 2.0\nBox.__add__ = lambda self, x: x * K\n"
                                 "def read(x): return BOX + x", "K = 5.0", "K = 2.0", None),
    "global in a property": Row(METHODS + "K = 2.0\nBox.prop = property(lambda self: K)\n"
                                "def read(x): return BOX.prop * x", "K = 5.0", "K = 2.0", None),
    "code in a property": Row(CODE + METHODS + "Box.prop = property(lambda self: helper(1.0))\n"
                              "def read(x): return BOX.prop * x", "helper.__code__ = other.__code__",
                              "helper.__code__ = KEPT", None),
    "cached property": Row(METHODS + "class Lazy:\n    @functools.cached_property\n    def v(self): return K\nK = 2.0\n"
                           "L = Lazy()\ndef read(x): return L.v * x", "K = 5.0; del L.__dict__['v']",
                           "K = 2.0; del L.__dict__['v']", None),
    "key of a sort": Row("K = 1\ndef key(v): return v * K\ndef read(x): return sorted([3, 1, 2], key=key), x + 1",
                         "K = -1", "K = 1", None),
    "mapped function": Row("K = 2.0\ndef g(v): return v * K\ndef read(x): return x * sum(map(g, [1.0, 2.0]))",
                           "K = 5.0", "K = 2.0", None),
    "dispatch by type": Row("@functools.singledispatch\ndef go(v): return 2.0\nK = go.register(int, lambda v: 3.0)\n"
                            "def read(x): return x * go(3)", "go.register(int, lambda v: 7.0)",
                            "go.register(int, lambda v: 3.0)", None),
    "wrapped function": Row("def deco(f):\n    @functools.wraps(f)\n    def w(*a): return f(*a) + 1\n    return w\n"
                            "@deco\ndef go(x): return x * 2\ndef other(x): return x * 7\n"
                            "KEPT = go.__wrapped__.__code__\ndef read(x): return go(x)",
                            "go.__wrapped__.__code__ = other.__code__", "go.__wrapped__.__code__ = KEPT"),
    "autojitted helper": Row("from jitcore import autojit\n@autojit\ndef go(x, k=2.0): return x * k\n"
                             "def other(x, k=2.0): return x - k\nKEPT = go.__code__\ndef read(x): return go(x)",
                             "go.__code__ = other.__code__", "go.__code__ = KEPT"),
    "original of an autojitted helper": Row(
        "from jitcore import autojit\n@autojit\ndef go(x, k=2.0): return x * k\n"
        "def other(x, k=2.0): return x - k\nKEPT = go.__wrapped__.__code__\ndef read(x): return go(x)",
        "go.__wrapped__.__code__ = other.__code__", "go.__wrapped__.__code__ = KEPT"),
    "defaults of an autojitted helper": Row(
        "from jitcore import autojit\n@autojit\ndef go(x, k=2.0): return x * k\ndef read(x): return go(x)",
        "go.__defaults__ = (5.0,)", "go.__defaults__ = (2.0,)"),
    "protocol": Row(METHODS + "import typing\n@typing.runtime_checkable\nclass Goes(typing.Protocol):\n"
                    "    def swim(self): ...\ndef read(x): return x if isinstance(BOX, Goes) else -x",
                    "Box.swim = lambda self: 1", "del Box.swim", None),
    "comprehension": Row("K = 2.0\ndef go(v): return v * K\ndef read(x): return x * sum([go(v) for v in (1.0, 2.0)])",
                         "K = 5.0", "K = 2.0"),
    "generator expression": Row("K = 2.0\ndef go(v): return v * K\n"
                                "def read(x): return x * sum(go(v) for v in (1.0, 2.0))", "K = 5.0", "K = 2.0", None),
    "generator": Row("K = 2.0\ndef go():\n    yield K\n    yield 1.0\ndef read(x): return x * sum(go())",
                     "K = 5.0", "K = 2.0", None),
    "code of a generator": Row("def go():\n    yield 1.0\ndef other():\n    yield 5.0\nKEPT = go.__code__\n"
                               "def read(x): return x * sum(go())", "go.__code__ = other.__code__",
                               "go.__code__ = KEPT", None),
    "code in a loop": Row(CODE + "def read(x):\n    y = x\n    for i in range(40): y = helper(y)\n    return y",
                          "helper.__code__ = other.__code__", "helper.__code__ = KEPT"),
    "code in a loop by itself": Row(CODE + "import time\ndef read(x):\n    time.time()\n    y = x.copy()\n"
                                    "    for i in range(40): y = helper(y)\n    return y",
                                    "helper.__code__ = other.__code__", "helper.__code__ = KEPT", None),
    "own code with a loop by itself": Row(
        "import time\ndef read(x):\n    time.time()\n    y = x.copy()\n    for i in range(40): y = y * 2\n    return y\n"
        "def other(x):\n    time.time()\n    y = x.copy()\n    for i in range(40): y = y - 2\n    return y\n"
        "KEPT = read.__code__", "read.__code__ = other.__code__", "read.__code__ = KEPT", None),
    "inherited call": change_method("__call__", "lambda self, x: x * 9", "return SUB(x)"),
    "global in a call": Row(METHODS + "K = 2.0\nclass Go:\n    def __call__(self, x): return x * K\nGO = Go()\n"
                            "def read(x): return GO(x)", "K = 5.0", "K = 2.0"),
    "global in an inherited call": Row(METHODS + "K = 2.0\nclass Go:\n    def __call__(self, x): return x * K\n"
                                       "class Low(Go): pass\nGO = Low()\ndef read(x): return GO(x)",
                                       "K = 5.0", "K = 2.0", None),
    "default of a call": Row(METHODS + "class Go:\n    def __call__(self, x, k=2.0): return x * k\nGO = Go()\n"
                             "def read(x): return GO(x)", "Go.__call__.__defaults__ = (5.0,)",
                             "Go.__call__.__defaults__ = (2.0,)", None),
    "cell of a call": Row("def make(k):\n    class Go:\n        def __call__(self, x): return x * k\n    return Go\n"
                          "Go = make(2.0)\nGO = Go()\ndef read(x): return GO(x)",
                          "Go.__call__.__closure__[0].cell_contents = 5.0",
                          "Go.__call__.__closure__[0].cell_contents = 2.0", None),
    "default of a method": Row(METHODS + "Box.go2 = lambda self, x, k=2.0: x * k\ndef read(x): return BOX.go2(x)",
                               "Box.go2.__defaults__ = (5.0,)", "Box.go2.__defaults__ = (2.0,)"),
    "method of a named tuple": Row("class P(collections.namedtuple('P', 'a')):\n    __slots__ = ()\n"
                                   "    def go(self, x): return x * self.a\nVALUE, KEPT = P(2.0), P.go\n"
                                   "def read(x): return VALUE.go(x)", "P.go = lambda self, x: x - 1", "P.go = KEPT"),
    "property of a named tuple": Row("class P(collections.namedtuple('P', 'a')):\n    __slots__ = ()\n"
                                     "    @property\n    def b(self): return self.a * 2\nVALUE, KEPT = P(2.0), P.b\n"
                                     "def read(x): return x * VALUE.b",
                                     "P.b = property(lambda self: 7.0)", "P.b = KEPT", None),
    "metaclass call": Row("class M(type):\n    def __call__(cls, v):\n        one = object.__new__(cls)\n"
                          "        one.v = v\n        return one\nclass C(metaclass=M): pass\nKEPT = M.__call__\n"
                          "def new(cls, v):\n    one = object.__new__(cls)\n    one.v = v * 5\n    return one\n"
                          "def read(x): return x * C(2.0).v", "M.__call__ = new", "M.__call__ = KEPT", None),
    "inner function": Row(CODE + "def read(x):\n    def inner(y): return helper(y)\n    return inner(x)",
                          "helper.__code__ = other.__code__", "helper.__code__ = KEPT"),
    "function as an argument": Row(CODE + "def run(f, x): return f(x)\ndef read(x): return run(helper, x)",
                                   "helper.__code__ = other.__code__", "helper.__code__ = KEPT"),
    "function of a vectorize": Row("def g(v): return v * 2 if v > 1 else v\ndef other(v): return v - 9 if v > 1 else v\n"
                                   "KEPT = g.__code__\nG = np.vectorize(g)\ndef read(x): return G(x)",
                                   "g.__code__ = other.__code__", "g.__code__ = KEPT", None),
    "reduced function": Row(CODE + "def add(a, b): return a + b\ndef sub(a, b): return a - b\nOLD = add.__code__\n"
                            "def read(x): return functools.reduce(add, [x, x, x])",
                            "add.__code__ = sub.__code__", "add.__code__ = OLD", None),
    "function along an axis": Row("def g(v): return v * 2\ndef other(v): return v - 9\nKEPT = g.__code__\n"
                                  "def read(x): return np.apply_along_axis(g, 0, x)",
                                  "g.__code__ = other.__code__", "g.__code__ = KEPT", None),
    "function of scipy": Row("from scipy import special\nKEPT = special.erf\ndef read(x): return special.erf(x)",
                             "special.erf = special.erfc", "special.erf = KEPT"),
    "function by its name": Row("from math import sqrt\nKEPT = sqrt\ndef read(x): return x * sqrt(2.0)",
                                "sqrt = math.exp", "sqrt = KEPT"),
    "method of arrays by name": Row("NAME = 'sum'\ndef read(x): return getattr(x, NAME)()", "NAME = 'max'",
                                    "NAME = 'sum'"),
    "nested data of modules": Row("import stale_settings as m\nm.table = {'a': [1.0, 2.0]}\n"
                                  "def read(x): return x * m.table['a'][1]", "m.table['a'][1] = 5.0",
                                  "m.table['a'][1] = 2.0"),
    "slots": Row("class S:\n    __slots__ = ('v',)\nONE = S(); ONE.v = 2.0\ndef read(x): return x * ONE.v",
                 "ONE.v = 5.0", "ONE.v = 2.0", False),
    "object in a default": Row(METHODS + "def helper(x, b=BOX): return x * b.v\ndef read(x): return helper(x)",
                               "BOX.v = 9.0", "BOX.v = 3.0"),
    "exception class": Row("class E(Exception): pass\nclass F(Exception): pass\nKEPT = E\ndef helper(x): raise KEPT('a')\n"
                           "def read(x):\n    try: helper(x)\n    except E: return x\n    except Exception: return -x",
                           "E = F", "E = KEPT"),
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
}


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
                      for k in range(1, depth + 1))
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
        assert row.compiled is None or (info.traces > 0) == row.compiled, (depth, made.f.report())
        assert info.traces <= 4


def test_programs_are_used_again():
    """What was there before is not traced again, with as many states as are kept."""
    made = make_module(ROWS["code"], 2, "stale_again", lambda f: jitcore.autojit(f, strict=True))
    codes = [made.KEPT, made.other.__code__, (lambda x: x * 3).__code__, (lambda x: x - 7).__code__]
    for _ in range(5):
        for code in codes:
            made.helper.__code__ = code
            assert_same(made.read(np.ones(3)), made.f(np.ones(3)))
    assert made.f.cache_info().traces == len(codes)


def test_changes_without_end():
    """A helper that is another one in each call: a limited number of programs."""
    made = make_module(ROWS["code"], 1, "stale_always", jitcore.autojit)
    for k in range(100):
        made.helper = lambda x, k=k: x * k
        assert_same(made.read(np.ones(3)), made.f(np.ones(3)))
    assert made.f.cache_info().traces <= 34


def test_data_of_classes_cost_no_programs():
    """A class that counts its objects has another version in each call."""
    made = make_module(Row(METHODS + "def read(x): return BOX.go(x) * BOX.rate", "", ""), 1, "stale_data",
                       lambda f: jitcore.autojit(f, strict=True))
    for k in range(20):
        made.Box.count = float(k)
        made.Box.rate = 2.0 * k
        assert_same(made.read(np.ones(3)), made.f(np.ones(3)))
    assert made.f.cache_info().traces == 1


def test_versions_of_classes():
    """The fast check works in this Python; without it, variables are compared."""
    from jitcore.autojitted.inputs import guards
    from jitcore.process import versions

    assert versions.HAS_VERSIONS

    class Base:
        def go(self):
            return 1

    class Derived(Base):
        rate = 1

    guard = guards.ClassGuard(Derived)
    assert guard.known[0] == guard.version.value != 0
    kept = Base.go
    for change, same in [(lambda: setattr(Derived, "rate", 2), True), (lambda: setattr(Base, "go", len), False),
                         (lambda: setattr(Base, "go", kept), True), (lambda: setattr(Derived, "go", 1), False),
                         (lambda: delattr(Derived, "go"), True)]:
        change()
        assert guard.version.value != guard.known[0]
        assert guard.check() is same


def test_numba_code_of_another_state():
    """What Numba's code keeps is compared."""
    from jitcore.autojitted.tiers.native import Frozen

    made = make_module(ROWS["code"], 2, "stale_numba", lambda f: f)
    frozen = Frozen(made.call2)
    assert frozen.holds()
    for change, back in [("helper.__code__ = other.__code__", "helper.__code__ = KEPT"),
                         ("helper.__defaults__ = (1,)", "helper.__defaults__ = None"),
                         ("first, helper = helper, other", "helper = first"), ("call1.__code__ = other.__code__", "")]:
        exec(change, vars(made))
        assert not frozen.holds(), change
        exec(back, vars(made))
        assert frozen.holds() is bool(back)


def test_modules_that_are_loaded_while_tracing(tmp_path, monkeypatch):
    """Those of libraries are; one of the user has effects, which Python has once."""
    (tmp_path / "stale_loaded.py").write_text("print('loaded')\nrate = 3.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    def of_library(x):
        import colorsys

        return x * colorsys.ONE_THIRD

    def of_user(x):
        import stale_loaded

        return x * stale_loaded.rate

    compiled = jitcore.autojit(of_library, strict=True)
    for _ in range(3):
        assert_same(of_library(np.ones(3)), compiled(np.ones(3)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = jitcore.autojit(of_user)
        for rate in (3.0, 4.0, 3.0):
            assert_same(rate * np.ones(3), compiled(np.ones(3)))
            sys.modules["stale_loaded"].rate = 7.0 - rate
    del sys.modules["stale_loaded"]


def test_rewritten_functions_of_other_code():
    """`jit(rewrite=True)` traces the code that a helper has now."""
    made = make_module(Row("def helper(x): return x if x.sum() > 9 else x * 2\n"
                           "def other(x): return x if x.sum() > 9 else x * 5\ndef read(x): return helper(x)",
                           "", ""), 1, "stale_rewritten", lambda f: f)
    x = np.ones(3, np.float32)
    for code, factor in [(made.helper.__code__, 2), (made.other.__code__, 5)]:
        made.helper.__code__ = code
        found = jitcore.jit(lambda x: made.f(x), rewrite=True)(x)
        np.testing.assert_array_equal(found, factor * x)
