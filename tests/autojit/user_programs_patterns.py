# ruff: noqa: E701, E702, E731, E741
"""`match` on values that are traced, on what is captured, and on stand-ins of Python's types.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""

from dataclasses import dataclass

import numpy as np

from tests.autojit.programs import R, program


@dataclass
class Place:
    x: float
    y: float


class Twice:
    __match_args__ = ("twice", "v")

    def __init__(self, v):
        self.v = v

    @property
    def twice(self):
        return self.v * HELD[0]


HELD = [2.0]
PLACE = Place(0, 1.5)

@program(*(lambda v=v: (v,) for v in (1.5, 2.0, np.float64(0.5), np.float32(2), 1, 2, 3, 4, 5, 2j, True, np.int64(3), np.bool_(True), None, "text", range(1, 4), range(3))))
def numbers(v):
    match v:
        case bool(): return "bool"
        case np.floating() if v > 1: return "floating"
        case float(w): return "float", w
        case int(w) if w > 2: return w + 1
        case int(): return "int"
        case complex(real=a, imag=b): return a, b
        case np.integer() | np.bool_(): return v + v
        case range(start=1): return "range"
        case None: return "none"
        case str(t): return t

@program(lambda: (R(5),), lambda: (R(2, 3),), lambda: (1.5,), lambda: (R(5).astype(np.float32),), lambda: (R(5)[::2],))
def arrays(a):
    match a:
        case np.ndarray(shape=(n,)) if a[0] > 0.5: return n, a * 2
        case np.ndarray(ndim=2, T=t): return t + 1
        case np.ndarray(dtype=d): return d
        case _: return a

@program(lambda: (R(5),), lambda: (R(5, seed=1),), lambda: (R(5).astype(np.float32),), lambda: (np.arange(5),))
def elements(a):
    match a[0], float(a[1]):
        case float(x), y if x < 0: return x - y
        case np.floating() as x, float(y): return x, y
        case (np.integer(), y): return y
    return None

@program(lambda: ([1.5, 2, 3],), lambda: ([],), lambda: ((1, 2.5),), lambda: ([1.5],), lambda: ({"k": 2.0, "j": 1},), lambda: ({"k": 3.0},), lambda: ({},), lambda: ({"j": [1.5, 2.0]},))
def containers(v):
    match v:
        case []: return "empty"
        case [a]: return a + 1
        case [a, *rest, b]: return a - b, rest
        case {"k": float(k), **rest} if rest: return k * 2, rest
        case {"k": k}: return k
        case {"j": [a, b]}: return a + b
        case dict(): return "other"

@program(lambda: (Place(0, 1.5),), lambda: (Place(3.5, 1),), lambda: (Place(0.5, 1),), lambda: (Twice(1.5),), lambda: (Twice(2.5),))
def objects(v):
    match v:
        case Place(x=0, y=y): return y + 1
        case Place(x, y) if x > y: return x - y
        case Place(x): return x
        case Twice(t, w) if t > w + 2: return t
        case Twice(v=w): return w

@program(lambda: (1.5,), lambda: (2.5,), lambda: (0.5,))
def captured(v):
    match PLACE:
        case Place(0, y): found = y * v
        case Place(x, y): found = x + y
    PLACE.x = 0 if v > 2 else v
    HELD[0] += 1
    match Twice(v):
        case Twice(t): return found, t

@program(lambda: (R(6), 3), lambda: (R(6, seed=1), 5), lambda: (R(6).astype(np.float32), 2))
def in_a_loop(a, n):
    total, kinds = 0.0, []
    for v in a[:n]:
        match v:
            case float(x) if x > 0.5: total += x
            case np.floating() as x: total -= 2 * x
        kinds.append(total)
    return total, kinds
