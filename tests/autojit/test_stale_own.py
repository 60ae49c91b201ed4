"""What a compiled function is itself, and what changes then: defaults, code, cells, objects that are called.

In each row: a source that defines `read`, in which BODY reads `x` and `k`; a call of `F`, which `read` became
when it was compiled; changes, one after the other. Each row is run with a body that is traced, with one that
plain Python runs, and with one whose loop alone is compiled, against the uncompiled function.
"""

from __future__ import annotations

import math
import pickle
import sys
import types
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import jitcore
from tests.autojit.checking import assert_same

START = "import collections, enum, functools, math, time\nimport numpy as np\n"
BODIES = {
    "traced": "return x * k + 1",
    "plain": "time.time()\n    return x * k + 1",
    "loop": "time.time()\n    y = x.copy()\n    for i in range(30): y = y * 0.5 + k\n    return y",
}


class Row(NamedTuple):
    source: str
    changes: tuple[str, ...]
    call: str = "F(X)"


def of_code(parameters: str, other: str, now: str, call: str = "F(X)", defaults: str = "(2.0,)") -> Row:
    """The function gets other code, and its own again."""
    source = f"def read({parameters}):\n    BODY\n{other}\nKEPT = read.__code__"
    return Row(source, (f"read.__code__, read.__defaults__ = other.__code__, {now}",
                        f"read.__code__, read.__defaults__ = KEPT, {defaults}"), call)


HOLDER = "class C:\n  k = 2.0\n  def {name}(self, x{more}):\n    {read}\n    BODY\n"
OBJECT = HOLDER.format(name="__call__", more="", read="k = self.k") + "read = C()"
METHOD = HOLDER.format(name="go", more="", read="k = self.k") + "O = C()\nread = O.go"
ROWS = {
    "defaults": Row("def read(x, k=2.0):\n    BODY", ("read.__defaults__ = (5.0,)", "read.__defaults__ = (2.0,)")),
    "defaults of another type": Row("def read(x, k=2.0):\n    BODY",
                                    ("read.__defaults__ = (5,)", "read.__defaults__ = (np.ones(3),)")),
    "defaults beside an argument": Row("def read(x, k=2.0, j=1.0):\n    BODY", ("read.__defaults__ = (5.0, 3.0)",),
                                       "F(X, 2.5)"),
    "defaults beside a keyword": Row("def read(x, j=1.0, k=2.0):\n    k = k + j\n    BODY",
                                     ("read.__defaults__ = (5.0, 3.0)",), "F(X, k=2.5)"),
    "defaults that are taken away": Row("def read(x, k=2.0):\n    BODY", ("read.__defaults__ = None",)),
    "defaults of some by position": Row("def read(x, k=2.0, /):\n    BODY", ("read.__defaults__ = (4.0,)",)),
    "keyword defaults": Row("def read(x, *, k=2.0):\n    BODY",
                            ("read.__kwdefaults__ = {'k': 5.0}", "read.__kwdefaults__ = {'k': 2.0}")),
    "keyword defaults in place": Row("def read(x, *, k=2.0):\n    BODY",
                                     ("read.__kwdefaults__['k'] = 5.0", "read.__kwdefaults__['k'] = 2.0")),
    "defaults beside all others": Row("def read(x, *a, k=2.0, **o):\n    BODY",
                                      ("read.__kwdefaults__ = {'k': 4.0}", "read.__kwdefaults__ = None"),
                                      "F(X, 1, 2, z=3)"),
    "code": of_code("x, k=2.0", "def other(x, k=2.0): return x - k", "(2.0,)"),
    "code with other names": of_code("x, k=2.0", "def other(y, k=2.0): return y - k", "(2.0,)"),
    "code with more parameters": of_code("x, k=2.0", "def other(x, k=2.0, z=7.0): return x - k * z", "(2.0, 7.0)"),
    "code with fewer parameters": of_code("x, k=2.0", "def other(x): return x - 8", "None"),
    "cell": Row("def make(k):\n  def read(x):\n    BODY\n  return read\nread = make(2.0)",
                ("read.__closure__[0].cell_contents = 5.0", "read.__closure__[0].cell_contents = 2.0",
                 "del read.__closure__[0].cell_contents")),
    "list in a default": Row("def read(x, k=[2.0]):\n    k = k[0]\n    BODY",
                             ("read.__defaults__[0][0] = 5.0", "read.__defaults__[0][0] = 2",
                              "read.__defaults__[0].insert(0, 3.5)")),
    "list that grows": Row("def read(x, l=[2.0]):\n    l.append(1.0)\n    k = len(l)\n    BODY",
                           ("read.__defaults__[0].clear()",)),
    "dict in a default": Row("def read(x, k={'a': 2.0}):\n    k = k['a']\n    BODY",
                             ("read.__defaults__[0]['a'] = 5.0", "del read.__defaults__[0]['a']",
                              "read.__defaults__[0]['a'] = 2")),
    "dict that grows": Row("def read(x, d={}):\n    k = d['n'] = d.get('n', 0) + 1\n    BODY",
                           ("read.__defaults__[0].clear()",)),
    "set in a default": Row("def read(x, k={1}):\n    k = len(k)\n    BODY",
                            ("read.__defaults__[0].add(2)", "read.__defaults__[0].clear()")),
    "array in a default": Row("def read(x, k=np.ones(3)):\n    BODY",
                              ("read.__defaults__[0][:] = 5.0", "read.__defaults__[0][1] = 2",
                               "read.__defaults__[0].resize(1, refcheck=False)")),
    "array that is written": Row("def read(x, k=np.ones(3)):\n    k[0] += 1\n    BODY",
                                 ("read.__defaults__[0][:] = 5.0",)),
    "object in a default": Row("class B: pass\nB.v = 2.0\ndef read(x, k=B()):\n    k = k.v\n    BODY",
                               ("read.__defaults__[0].v = 4.0", "B.v = 1.0", "del read.__defaults__[0].v", "del B.v")),
    "attribute": Row("def read(x):\n    k = read.rate\n    BODY\nread.rate = 2.0", ("read.rate = 5.0", "del read.rate")),
    "global": Row("k = 2.0\ndef read(x):\n    BODY", ("k = 5", "del k", "k = np.ones(3)", "k = 1j")),
    "global of other kinds": Row("k = 2.0\ndef read(x):\n    BODY", ("k = None", "k = 'a'", "k = [1, 2]", "k = True")),
    "global of a helper": Row("k = 2.0\ndef h(x):\n    BODY\ndef read(x): return h(x)",
                              ("k = 5", "del k", "k = 3.0", "del h")),
    "module attribute": Row("KEPT = math.tau\ndef read(x):\n    k = math.tau\n    BODY",
                            ("math.tau = 3.0", "del math.tau", "math.tau = KEPT")),
    "enumeration": Row("class E(enum.IntEnum):\n    A = 2\ndef read(x):\n    k = E.A\n    BODY",
                       ("class E(enum.IntEnum): A = 5",)),
    "attribute of a member": Row("class E(enum.Enum):\n    A = 2\nE.rate = 3.0\n"
                                 "def read(x):\n    k = E.A.rate\n    BODY",
                                 ("E.rate = 4.0", "E.A.rate = 5.0", "E.A.rate = 6.0", "del E.A.rate")),
    "own attribute of a member": Row("class E(enum.Enum):\n    A = 2\n    def __init__(self, n): self.rate = 3.0\n"
                                     "def read(x):\n    k = E.A.rate\n    BODY", ("E.A.rate = 5.0",)),
    "attribute of a named tuple": Row("P = collections.namedtuple('P', 'a b')\nP.rate = 3.0\nV = P(1, 2)\n"
                                      "def read(x):\n    k = V.rate\n    BODY",
                                      ("P.rate = 4.0", "V = P(1.0, 2)", "del P.rate")),
    "defaults of a named tuple": Row("P = collections.namedtuple('P', 'a b', defaults=(2.0,))\n"
                                     "def read(x):\n    k = P(1).b\n    BODY", ("P.__new__.__defaults__ = (4.0,)",)),
    "defaults of an initializer": Row("class P:\n    def __init__(s, a=2.0): s.a = a\n"
                                      "def read(x):\n    k = P().a\n    BODY", ("P.__init__.__defaults__ = (4.0,)",)),
    "defaults of a helper": Row("def h(k=2.0): return k\ndef read(x):\n    k = h()\n    BODY",
                                ("h.__defaults__ = (4.0,)", "h.__defaults__ = None", "h = lambda: 3")),
    "defaults of a compiled helper": Row(
        "import jitcore\ndef plain(k=2.0): return k\nh = jitcore.autojit(plain)\ndef read(x):\n    k = h()\n    BODY",
        ("h.__defaults__ = (4.0,)", "h.__defaults__ = (2.0,)")),
    "keywords of a partial": Row("def g(x, k):\n    BODY\nread = functools.partial(g, k=2.0)",
                                 ("read.keywords['k'] = 5.0", "g.__defaults__ = (1.0,)")),
    "defaults below a partial": Row("def g(x, k=2.0):\n    BODY\nread = functools.partial(g)",
                                    ("g.__defaults__ = (1.0,)",)),
    "object of a method": Row(METHOD, ("O.k = 5.0", "C.k = 3.0", "del O.k", "del C.k")),
    "method": Row(METHOD, ("C.go = lambda self, x: x", "C.k = 3.0")),
    "defaults of a method": Row(HOLDER.format(name="go", more=", k=2.0", read="pass") + "read = C().go",
                                ("C.go.__defaults__ = (4.0,)",)),
    "defaults of a static method": Row("class C:\n  @staticmethod\n  def go(x, k=2.0):\n    BODY\n"
                                       "read = C.__dict__['go']", ("read.__func__.__defaults__ = (4.0,)",)),
    "object that is called": Row(OBJECT, ("read.k = 5.0", "C.k = 3.0", "del read.k")),
    "call of its class": Row(OBJECT, ("C.__call__ = lambda self, x: x - 7", "C.k = 3.0")),
    "defaults of its call": Row(HOLDER.format(name="__call__", more=", k=2.0", read="pass") + "read = C()",
                                ("C.__call__.__defaults__ = (4.0,)",)),
    "its class": Row(OBJECT + "\nclass D:\n  def __call__(self, x): return x - 9",
                     ("read.__class__ = D", "read.__class__ = C")),
    "property": Row("class C:\n  @property\n  def k(self): return 2.0\nO = C()\ndef read(x):\n    k = O.k\n    BODY",
                    ("C.k = property(lambda s: 5.0)", "C.k = 6.0", "del C.k")),
    "property of a default": Row("class C:\n  j = 2.0\n  @property\n  def k(self): return self.j\n"
                                 "def read(x, o=C()):\n    k = o.k\n    BODY",
                                 ("C.j = 6.0", "C.k = property(lambda s: 5.0)", "del C.k")),
    "function of a vectorize": Row("def g(v, k=2.0): return v * k + 1 if v > 0 else v\nread = np.vectorize(g)",
                                   ("g.__defaults__ = (4.0,)", "read.pyfunc = lambda v: v - 1")),
    "wrapped": Row("def d(f):\n    @functools.wraps(f)\n    def w(*a, **k): return f(*a, **k)\n    return w\n"
                   "@d\ndef read(x, k=2.0):\n    BODY",
                   ("read.__wrapped__.__defaults__ = (4.0,)", "read.__closure__[0].cell_contents = lambda x: x")),
}


def run_row(row: Row, body: str, compile_function) -> list:
    made, found, tau = types.ModuleType("stale_own"), [], math.tau
    made.__file__, sys.modules["stale_own"] = "/nowhere/stale_own.py", made
    try:
        exec(compile(START + row.source.replace("BODY", BODIES[body]), made.__file__, "exec"), vars(made))
        made.F, made.X = compile_function(made.read), np.arange(1.0, 4.0)
        for change in ("", *row.changes):
            exec(change, vars(made))
            for _ in range(3):
                try:
                    found.append(eval(row.call, vars(made)))
                except Exception as error:
                    found.append((type(error), str(error)))
    finally:
        math.tau = tau
        del sys.modules["stale_own"]
    return found


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", ROWS)
def test_changes_are_seen(name, body):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = run_row(ROWS[name], body, lambda f: f)
        found = run_row(ROWS[name], body, jitcore.autojit)
    assert len(found) == len(expected)
    for one, other in zip(expected, found):
        assert_same(one, other)


def test_defaults_of_the_wrapper_count_too():
    def read(x, k=2.0):
        return x * k

    compiled = jitcore.autojit(read, strict=True)
    for holder, k in [(compiled, 3.0), (read, 4.0), (compiled, 5.0), (read, 6.0), (read, 2.0)]:
        holder.__defaults__ = (k,)
        for _ in range(3):
            assert_same(k * np.ones(3), compiled(np.ones(3)))


def test_defaults_of_the_original_of_a_helper():
    def plain(k=2.0):
        return k

    helper = jitcore.autojit(plain)
    compiled = jitcore.autojit(lambda x: x * helper(), strict=True)
    for k in (2.0, 4.0, 2.0, 7.0):
        plain.__defaults__ = (k,)
        for _ in range(3):
            assert_same(k * np.ones(3), compiled(np.ones(3)))


def test_copies_by_value():
    """Their own defaults count, also such as have no hash."""
    cloudpickle = pytest.importorskip("cloudpickle")

    def read(x, k=np.ones(3), *, j=2.0):  # noqa: B008
        return x * k + j

    compiled = jitcore.autojit(read)
    hash(compiled.__code__)
    for copied in (pickle.loads(cloudpickle.dumps(compiled)), compiled):
        for _ in range(2):
            assert_same(read(np.ones(3)), copied(np.ones(3)))
        copied.__wrapped__.__defaults__, copied.__wrapped__.__kwdefaults__ = (5.0,), {"j": 0.0}
        for _ in range(3):
            assert_same(5 * np.ones(3), copied(np.ones(3)))


def test_jit_keeps_what_it_traced():
    """As in JAX: defaults and variables are those of the first call of a signature."""
    rate = 2.0

    def read(x, k=2.0):
        return x * k * rate

    compiled = jitcore.jit(read)
    assert compiled(1.0) == 4.0
    read.__defaults__, rate = (5.0,), 3.0
    assert compiled(1.0) == 4.0 and compiled(1.0, 5.0) == 15.0
