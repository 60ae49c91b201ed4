# ruff: noqa: E701, E702, E731, E741
"""Programs that use much of Python: classes, closures, generators, exceptions, containers.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""

import functools
import itertools
import math
import operator
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from enum import Enum
from functools import partial, reduce

import numpy as np

from tests.autojit.programs import R, program

counter = 0

@program(lambda: (R(4),), lambda: (R(5),))
def global_counter(x):
    global counter
    counter += 1
    return x * counter

log = []

@program(lambda: (R(4),), lambda: (R(5),))
def global_list(x):
    log.append(x.sum())
    return len(log), log[-1]

table = {"scale": 2.0, "shift": np.arange(3.0)}

@program(lambda: (R(3), 1.0), lambda: (R(3, seed=1), 3.0))
def global_dict(x, s):
    table["scale"] = table["scale"] + s
    table["shift"] += 1
    return x * table["scale"] + table["shift"]

@dataclass
class Particle:
    x: np.ndarray
    v: np.ndarray
    m: float = 1.0
    hist: list = field(default_factory=list)
    def step(self, dt):
        a = -self.x / self.m
        self.v = self.v + a * dt
        self.x += self.v * dt
        self.hist.append(float((self.v ** 2).sum()))

@program(lambda: (Particle(R(3), R(3, seed=1)), .1, 3), lambda: (Particle(R(3, seed=3), R(3, seed=1), 2.0), .2, 3), lambda: (Particle(R(5, seed=3), R(5, seed=1), 2.0), .2, 2))
def dataclass_particle(p, dt, n):
    for _ in range(n):
        p.step(dt)
    return p.x, p.hist[-1], p

class Stack:
    __slots__ = ("data", "top")
    def __init__(self, n):
        self.data = np.zeros(n)
        self.top = 0
    def push(self, v):
        self.data[self.top] = v
        self.top += 1
    def pop(self):
        self.top -= 1
        return self.data[self.top]
    def __len__(self):
        return self.top

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(3),))
def stack_class(x):
    s = Stack(10)
    total = 0.0
    for v in x:
        s.push(v)
        if len(s) > 2:
            total += s.pop() * s.pop()
    return total, len(s), s.data

class Vec:
    def __init__(self, x, y): self.x, self.y = x, y
    def __add__(self, o): return Vec(self.x + o.x, self.y + o.y)
    def __mul__(self, k): return Vec(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __abs__(self): return math.hypot(self.x, self.y)
    def __lt__(self, o): return abs(self) < abs(o)
    def __eq__(self, o): return self.x == o.x and self.y == o.y
    def __hash__(self): return 1
    def __repr__(self): return f"Vec({self.x:.3f}, {self.y:.3f})"
    @property
    def angle(self): return math.atan2(self.y, self.x)
    @classmethod
    def unit(cls, t): return cls(math.cos(t), math.sin(t))
    @staticmethod
    def dot(a, b): return a.x * b.x + a.y * b.y

@program(lambda: (1.0, 2.0, .5), lambda: (-3.0, 2.0, 1.5), lambda: (1, 2, 3))
def vec_class(x, y, t):
    a, b = Vec(x, y), Vec.unit(t)
    c = 2 * a + b * t
    if a < b:
        c = c + a
    return abs(c), c.angle, Vec.dot(a, c), c

Point = namedtuple("Point", "x y")

@program(lambda: (Point(1.0, 2.0), 3), lambda: (Point(R(3), R(3)), 3), lambda: (Point(1, 2), 2))
def namedtuple_args(p, k):
    q = p._replace(x=p.x * k)
    return q, p.x + q.y, Point(*[v + 1 for v in p])

class Mode(Enum):
    LINEAR = 1
    CUBIC = 2

@program(lambda: (R(4), Mode.LINEAR), lambda: (R(4), Mode.CUBIC), lambda: (R(3), Mode.CUBIC))
def enum_arg(x, mode):
    if mode is Mode.LINEAR:
        return x
    return x ** 3 * mode.value

@program(lambda: (R(4), 2.0), lambda: (R(4), 3.0), lambda: (R(3), 4.0))
def lambdas_in_loop(x, a):
    fs = [lambda v, i=i: v * i + a for i in range(3)]
    late = [lambda v: v * j for j in range(3)]
    return [f(x) for f in fs], [f(x) for f in late]

def poly(c0, c1=1.0, *rest, x, **kw):
    s = c0 + c1 * x
    for i, c in enumerate(rest):
        s += c * x ** (i + 2)
    for k, v in kw.items():
        s = s + v * len(k)
    return s

@program(lambda: (R(4), 2.0), lambda: (R(4), 3.0), lambda: (R(3), 4.0))
def args_kwargs(x, a):
    args = (a, 2, 3.0, a)
    kw = {"scale": a, "zz": 1}
    return poly(*args, x=x, **kw), poly(a, x=x), partial(poly, 1.0, x=x)(a, 2)

@program(lambda: (R(5), 1.0), lambda: (R(5, seed=3), 3.0), lambda: (R(3), 4.0))
def closure_nonlocal(x, a):
    count = 0
    best = -np.inf
    def visit(v):
        nonlocal count, best
        count += 1
        if v > best:
            best = v
        return v * a
    y = [visit(v) for v in x]
    return y, count, best

def countdown(n):
    while n > 0:
        yield n
        n -= 1

@program(lambda: (R(5), 3), lambda: (R(5, seed=3), 4), lambda: (R(5, seed=3), 5))
def uses_generator(x, n):
    return sum(x[k - 1] for k in countdown(n)), list(countdown(n))

@program(lambda: (R(5),), lambda: (np.zeros(3),), lambda: (np.array([]),))
def try_except(x):
    try:
        if x.size == 0:
            raise ValueError("empty")
        m = x.mean()
        if m == 0:
            raise ZeroDivisionError
        r = 1 / m
    except ValueError as e:
        return str(e)
    except ZeroDivisionError:
        r = 0.0
    else:
        r += 1
    finally:
        x += 1
    return r

@program(lambda: (R(5), None), lambda: (R(5), 2.0), lambda: (R(5), None), lambda: (R(4), np.ones(4)))
def optional_arg(x, w=None):
    if w is None:
        w = np.ones_like(x)
    return np.average(x, weights=w * np.ones(len(x)))

@program(lambda: (R(5), "mean"), lambda: (R(5), "max"), lambda: (R(5), "bad"))
def string_arg(x, how):
    table = {"mean": np.mean, "max": np.max, "sum": lambda v: v.sum()}
    if how not in table:
        raise KeyError(f"unknown {how!r}")
    return table[how](x), getattr(np, "abs")(x)

@program(lambda: (R(5),), lambda: (np.zeros(5),), lambda: (R(5, seed=5) * 1000,))
def formats_result(x):
    return f"{x.mean():.3f}", "%d items" % len(x), str(x.shape)

@program(lambda: (R(5),), lambda: (R(5, seed=2),), lambda: (-np.ones(3),))
def early_returns(x):
    for i, v in enumerate(x):
        if v > 1:
            return i, v
        if v < -1:
            return -1, None
    return None

@program(lambda: ([1.0, 2.0, 3.0],), lambda: ([4.0, 2.0, 3.0],), lambda: ([1, 2.5, 3],), lambda: ([],))
def list_of_numbers(xs):
    xs.sort()
    xs.append(sum(xs))
    return max(xs), min(xs), sorted(xs, reverse=True), xs[::-1], xs.index(max(xs)), len(xs)

@program(lambda: ({"a": 1.0, "b": R(3)}, 2), lambda: ({"a": 3.0, "b": R(3)}, 2), lambda: ({"a": 1, "b": R(4)}, 3))
def dict_state(d, k):
    d["a"] += k
    d["c"] = d["b"] * d["a"]
    d.setdefault("e", 0)
    d.update(f=d["a"] > 2)
    del d["e"]
    return sorted(d), {n: v for n, v in d.items() if n != "b"}, d.pop("f"), d.get("nothing")

@program(lambda: (R(5), R(5)), lambda: (R(5), R(5, seed=1)), lambda: (R(3), R(4)))
def zip_enumerate(a, b):
    s = 0
    for i, (u, v) in enumerate(zip(a, b), start=1):
        s += i * u * v
    return s, [u - v for u, v in zip(a, b)], list(map(lambda t: t * 2, a)), [v for v in a if v > 0], any(v > 1 for v in a), all(v > -1 for v in b)

@program(lambda: (R(3, 4),), lambda: (R(3, 4, seed=5),), lambda: (R(2, 2),))
def unpacking(x):
    first, *rest = x
    a, b = rest[0][:2]
    (c, _), *_ = [(v.sum(), i) for i, v in enumerate(x)]
    x[0], x[1] = x[1], x[0]
    x[0, 0], x[1, 1] = x[1, 1], x[0, 0]
    return first, a, b, c, x

@program(lambda: (5,), lambda: (7,), lambda: (9,), lambda: (11,), lambda: (1,))
def pascal(n):
    rows = [[1]]
    for i in range(1, n):
        p = rows[-1]
        rows.append([1] + [p[k] + p[k + 1] for k in range(len(p) - 1)] + [1])
    return rows[-1], sum(rows[-1]) == 2 ** (n - 1)

@program(lambda: (3,), lambda: (4,), lambda: (5,), lambda: (2,))
def hanoi(n):
    moves = []
    def rec(k, a, b, c):
        if k == 0:
            return
        rec(k - 1, a, c, b)
        moves.append((a, c))
        rec(k - 1, b, a, c)
    rec(n, 0, 1, 2)
    return moves

@functools.lru_cache(None)
def _part(n, k):
    return 1 if n == 0 else sum(_part(n - i, i) for i in range(1, min(n, k) + 1))

@program(lambda: (5,), lambda: (9,), lambda: (10,), lambda: (12,))
def partitions(n):
    return _part(n, n)

@program(lambda: (4,), lambda: (5,))
def queens(n):
    cols, d1, d2 = np.zeros(n, bool), np.zeros(2 * n, bool), np.zeros(2 * n, bool)
    def place(r):
        if r == n:
            return 1
        total = 0
        for c in range(n):
            if cols[c] or d1[r + c] or d2[r - c + n]:
                continue
            cols[c] = d1[r + c] = d2[r - c + n] = True
            total += place(r + 1)
            cols[c] = d1[r + c] = d2[r - c + n] = False
        return total
    return place(0)

@program(lambda: (R(8),), lambda: (R(8, seed=2),), lambda: (R(5),))
def quicksort_inplace(a):
    def sort(lo, hi):
        if lo >= hi:
            return
        p, i = a[hi], lo
        for j in range(lo, hi):
            if a[j] < p:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[hi] = a[hi], a[i]
        sort(lo, i - 1)
        sort(i + 1, hi)
    sort(0, len(a) - 1)

@program(lambda: (R(8),), lambda: (R(8, seed=2),), lambda: (R(5),))
def bubble_insertion(a):
    b = a.copy()
    n = len(a)
    swaps = 0
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swaps += 1
    for i in range(1, n):
        k = b[i]
        j = i - 1
        while j >= 0 and b[j] > k:
            b[j + 1] = b[j]
            j -= 1
        b[j + 1] = k
    return swaps, b

@program(lambda: (np.sort(R(10)), 0.1), lambda: (np.sort(R(10)), 5.0), lambda: (np.sort(R(10)), -5.0), lambda: (np.sort(R(3)), .2))
def bisect_loop(a, x):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo

@program(lambda: (R(6), 2), lambda: (R(6, seed=1), 9), lambda: (R(6), -7), lambda: (R(3), 1))
def index_error(x, i):
    x[0] = 5
    return x[i]

@program(lambda: (R(6), R(6)), lambda: (R(6), R(5)), lambda: (R(3), R(3, 1)), lambda: (R(3), R(4, 2)))
def shape_error(x, y):
    x += 1
    return x @ y

@program(lambda: (R(6),), lambda: (R(6),))
def attribute_error(x):
    return x.foo

@program(lambda: (R(6), 3.0), lambda: (R(6), 1.0), lambda: (R(2), 3.0))
def assert_msg(x, a):
    assert a < 2, f"a is {a}"
    assert (x < 10).all(), "too big"
    return x / a

@program(lambda: (R(6), 1), lambda: (R(6), 2), lambda: (R(6), 3), lambda: (R(6), 4), lambda: (R(6), 5))
def match_stmt(x, k):
    match k:
        case 1: return x
        case 2 | 3: return x * k
        case n if n > 4: return -x
        case _: return None

@program(lambda: (R(6),), lambda: (R(6),), lambda: (R(2),))
def walrus_chain(x):
    if (n := len(x)) > 3 and 0 < (m := x.max()) < 100:
        return n, m
    a = b = x[0]
    return a, b, n if n else 0, not n, x is not None, n in (2, 3), "x" if n > 1 else "y"

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(2),))
def reduce_itertools(x):
    s = reduce(lambda a, b: a * b, x)
    acc = list(itertools.accumulate(x))
    pairs = [a * b for a, b in itertools.combinations(x, 2)]
    return s, acc, sum(pairs), list(itertools.product(range(2), x))[1], operator.itemgetter(1)(x)

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(2),))
def uses_deque(x):
    d = deque(maxlen=3)
    out = []
    for v in x:
        d.append(v)
        out.append(sum(d) / len(d))
    dd = defaultdict(float)
    for i, v in enumerate(x):
        dd[i % 2] += v
    return out, dict(dd)

@program(lambda: (True, 2), lambda: (False, 2), lambda: (True, 2.0))
def bools(a, b):
    return a + b, a & True, a and b, a or b, not a, a == 1, -a, a * 2.5, b > 1, (b > 1) + 1, sum([a, a, b > 1]), True if b else False, int(a), a ^ a

@program(lambda: (1.5, 2), lambda: (2.5, 3), lambda: (1.5, 4))
def complex_py(a, k):
    z = complex(a, k)
    return z, z.conjugate(), abs(z), z ** 2, z.real, (z * 1j).imag, z == z, z / (1 + 1j), 2 ** z, -z
