"""Words of the programs with captured state: what they begin with, what stops an attempt, what is around them, arguments.

Data only. In a template `V` stands for a number, which may be traced.
"""

from __future__ import annotations

PRELUDE = '''\
import array, copy, decimal, enum, functools, io, itertools, json, logging, math, os, random, re, sys, time, types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np
import scipy.integrate
import scipy.optimize


class Box:
    def __init__(self, m):
        self.m = m
        self.items = []

    def __repr__(self):
        return f"Box({self.m})"


@dataclass
class Record:
    m: float
    items: list


class Slots:
    __slots__ = ("m", "items", "new")

    def __init__(self, m):
        self.m, self.items = m, []


class Hidden:
    """A callable of which nothing is known."""

    __slots__ = ()

    def __call__(self, *values):
        return 1


hidden = Hidden()
os.environ.pop("STATE_KEY", None)
np.set_printoptions(precision=8)
decimal.getcontext().prec = 28
np.cbrt = np.state_cbrt = getattr(np, "state_cbrt", np.cbrt)
'''

#: What cannot be traced, or could not for a long time.
REFUSED = (
    "logging.debug('v')", "time.time()", "open(os.devnull).close()", "np.random.random()", "hidden(V)", "os.getpid()", "time.sleep(0)",
    "hash(str(V))", "t = t + len(str(V))", "eval('1 + 1')", "json.dumps([1])", "np.save(io.BytesIO(), np.arange(2.0))", "random.random()",
    "print(V, file=sys.stderr)", "sys.stdout.write('w')", "t = t + float(f'{V}')", "np.arange(2.0).tobytes()", "float(V).hex()", "decimal.Decimal(1)",
    "sorted({str(V): 1})", "id(V)", "globals()", "sys.getsizeof(V)", "assert isinstance(float(V), float)", "io.StringIO().write(str(V))",
)
#: What ends an attempt while it is traced or when it runs, for some arguments.
RAISING = (
    "t = t + x[n]", "t = t + 1 // n", "if V > 1: raise ValueError(V)", "assert V < 2", "t = t + [1, 2][n]", "t = t + {0: 1}[n]", "raise KeyError('k')",
    "t = n * 2**62 * 2", "t = t + 1 / (n - 1)", "x[n] = V", "t = t + undefined", "if n == 1: raise ZeroDivisionError", "t = t + int(s) // (n - 2)", "t = t + (n << 62)",
    "t = n ** 40", "t = t + len(V)", "if n > 2: raise RuntimeError(f'at {V}')", "assert n != 1, 'one'", "t = t + math.sqrt(n - 1)", "int('x')",
)
#: Surroundings: how they are read, and what changes them between calls.
AMBIENT = (
    ("len(os.environ.get('STATE_KEY', ''))", "os.environ['STATE_KEY'] = 'abc'"), ("('STATE_KEY' in os.environ)", "os.environ['STATE_KEY'] = ''"),
    ("np.get_printoptions()['precision']", "np.set_printoptions(precision=3)"), ("decimal.getcontext().prec", "decimal.getcontext().prec = 5"),
    ("len(str(np.array([1 / 3])))", "np.set_printoptions(precision=4)"), ("ambient.K", "ambient.K = 7"), ("ambient.K", "ambient.K = 2.5"),
    ("ambient.get()", "ambient.get = lambda: 9"), ("ambient.get()", "ambient.K = ambient.K + 1"),
)
AMBIENT_MODULE = "ambient = sys.modules['state_ambient'] = types.ModuleType('state_ambient')\nexec('K = 1\\ndef get():\\n    return K\\n', ambient.__dict__)\n"

#: Arguments: arrays whose conditions go both ways, others; ints that become inputs.
ARRAYS = ("np.array([0.5, -1.0, 2.0, 0.25])", "np.array([-0.5, 1.0, -2.0, 0.75])", "np.array([3.0, 1.5, 0.0, 2.0])", "np.array([0.25, 0.25, 4.0, 1.0])",
           "np.array([-3.0, -1.0, 0.5, 2.0])")
OTHER_ARRAYS = ("np.array([1, 2, 3, 4])", "np.array([2.0, 0.5])", "np.array([0.5, 1.5, 2.5, 3.5, 4.5])", "np.zeros(0)", "np.array([1.5, -2.0, 0.5], np.float32)",
                 "np.arange(8.0)[::2]", "np.array([True, False])", "np.ones((2, 2))")
COUNTS = ((2, 3, 1, 4, 0, 2, 5), (1, 2, 3, 4, 0, 1), (2, 2, 3, 3, 0, 0, 1), (3, 3, 3, 0, 3, 3), (1, 2, 3, 5, 0, 2**62, 1), (0, 1, 2, 3, 4, 0), (2, 1, 3, 0, 2, -1, 2),
           (1, 1, 1, 2, 2, 0), (4, 3, 2, 1, 0, 2, 3))
