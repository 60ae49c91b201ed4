"""Random programs about memory: names, views, containers, writes, under conditions and in loops.

In: a seed. Out: the source of a function `f` of arrays, a box, a list, a dict and numbers, with the variables of
its module, and the arguments of its calls, which may be one array or overlap.

All numbers are multiples of a power of two, and stay small: sums are the same in any order, so that decisions
and values can be compared exactly.
"""

from __future__ import annotations

import random
import re
import sys
import types
from collections.abc import Callable

import numpy as np

#: Elements of a vector; a grid is LENGTH x LENGTH; a piece has one element less than a vector.
LENGTH = 4

HEADER = '''\
import numpy as np

BUFFER = np.arange(4.0) / 4
LAST = None


class Box:
    def __init__(self, x):
        self.x = x

    def grow(self, v):
        self.x += v
        return self.x

    def set(self, v):
        old, self.x = self.x, v
        return old


def write(u, v):
    u[0] = v
    return u


def renew(u, v):
    u = u + v
    u[1] = v
    return u


def pick(u, v):
    if u[0] > v[1]:
        return u
    return v


def turn(u):
    return u[::-1]


def late(u, v, n):
    for k in range(n):
        if u[0] > v[0] + k:
            return u
        u[0] += 0.5
    return v
'''

_VECTORS = ("a", "b", "c")


class _Writer:
    """Writes one function."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0  # around what is being written
        self.counters = 0
        self.budget = self.random.randint(5, 11)  # statements
        self.is_nested = self.random.random() < 0.5
        self.results = self.random.sample([*_VECTORS, "p", "grid", "s", "a[::2]", "b[1:]", "box.x", "items", "held[0]", "held"],
                                          self.random.randint(1, 5))

    def choose(self, *options):
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # -- expressions ----------------------------------------------------------------------------------------
    def vector(self) -> str:
        return self.choose(*_VECTORS)

    def place(self) -> str:
        """A vector as a variable, or where a container holds one."""
        if self.chance(0.75):
            return self.vector()
        return self.choose("box.x", "items[0]", "items[1]", "table['k']", "BUFFER", "held[0]")

    def view(self, name: str) -> str:
        """A vector that is, or shares memory with, another one."""
        return self.choose(name, f"{name}[::-1]", f"{name}[:]", f"{name}.reshape(2, 2).reshape(-1)", f"turn({name})",
                           f"{name}.T", f"{name}.ravel()", f"np.asarray({name})", "grid[1]", "grid[:, 2]", "grid.T[0]",
                           f"grid[{self.index()}]", "grid.reshape(-1)[2:6]", "np.diagonal(grid)[:]")

    def fresh(self, name: str) -> str:
        """A vector in memory of its own."""
        return self.choose(f"{name} + {self.number()}", f"{name}.copy()", f"{name} * 0.5", f"{name} - {self.place()}",
                           f"np.maximum({name}, {self.place()})", f"renew({name}, {self.number()})", f"{name}[[0, 2, 1, 3]]",
                           f"np.where({name} > 0, {name}, {self.place()})", "np.zeros(4)", f"np.sort({name})")

    def value(self) -> str:
        """Any vector."""
        kind, name = self.random.random(), self.place()
        if kind < 0.3:
            return name
        if kind < 0.5:
            return self.view(name)
        if kind < 0.75:
            return self.fresh(name)
        if kind < 0.9:
            return f"{self.choose(name, self.fresh(name))} if {self.condition()} else {self.choose(self.place(), self.fresh(name))}"
        return self.choose(f"pick({name}, {self.vector()})", f"write({name}, {self.number()})", f"box.grow({self.number()})",
                           f"late({name}, {self.vector()}, {self.choose('2', 'n', 't')})")

    def number(self) -> str:
        return self.choose("0.5", "1.0", "-0.25", "2", "s", f"{self.vector()}[{self.index()}]")

    def index(self) -> str:
        return self.choose("0", "1", "-1", "2", "t % 4", *(["i % 4"] if self.loops else []))

    def condition(self) -> str:
        name = self.place()
        return self.choose("s > 0", "s < 1", "n > 2", "t > 1", f"{name}[0] > s", f"{name}.sum() > {self.vector()}[1]",
                           f"{name}[{self.index()}] < {self.vector()}[{self.index()}]", "flag", "t == 2",
                           f"s > 0 and {name}[1] < 1", f"not {name}[0] > 0", f"{name}.max() > s or flag",
                           *([f"i > {self.choose('0', '1', 't')}"] if self.loops else []),
                           *([f"{name} is {self.vector()}"] if self.chance(0.1) else []))

    # -- statements -----------------------------------------------------------------------------------------
    def rebind(self) -> str:
        kind = self.random.random()
        if kind < 0.12:
            one, other, third = self.random.sample(_VECTORS, 3)
            return self.choose(f"{one}, {other} = {other}, {one}", f"{one}, {other}, {third} = {other}, {third}, {one}",
                               f"{one}, box.x = box.x, {one}", f"{one}, items[0] = items[0], {one}",
                               "items[0], items[1] = items[1], items[0]",
                               f"{one}, {other} = {self.value()}, {self.value()}")
        if kind < 0.2:
            return f"grid = {self.choose('grid.T', 'grid.copy()', 'grid[::-1]', 'grid + 0.5', 'grid[:, ::-1]', 'grid.reshape(4, 4)')}"
        if kind < 0.28:
            name = self.place()
            return f"p = {self.choose(f'{name}[1:]', f'{name}[:-1]', f'{name}[1:] + {name}[:-1]', 'p + 1', 'p[::-1]')}"
        if kind < 0.38:
            return f"{self.choose('box.x', 'items[0]', 'items[1]', 'table[%r]' % 'k')} = {self.value()}"
        if kind < 0.42:
            return f"held = {self.choose('items', f'[{self.place()}, {self.value()}]', '[held[1], held[0]]', 'list(held)', 'held[:]')}"
        if kind < 0.44:
            return f"held[{self.choose('0', '1')}] = {self.value()}"
        if kind < 0.45:
            return f"LAST = {self.place()}"
        if kind < 0.48:
            return f"{self.vector()} = box.set({self.place()})"
        return f"{self.vector()} = {self.value()}"

    def write(self) -> str:
        name, other, number = self.place(), self.place(), self.number()
        return self.choose(f"{name}[{self.index()}] = {number}", f"{name}[{self.index()}] += {number}",
                           f"{name}[1:] += {other}[:-1]", f"{name}[:] = {other}", f"{name}[:] = {other} + {number}",
                           f"{name}[{name} > {number}] = {self.choose('0.5', 's')}", f"{name} += {number}", f"{name} *= 0.5",
                           f"{name} -= {other}", f"np.add({name}, {number}, out={other})", f"{name}.fill({number})",
                           f"{name}.sort()", "p += 0.5", f"p[:] = {name}[1:]", f"{name}[:-1] = p", f"p[{self.choose('0', '-1')}] = {number}",
                           f"grid[{self.index()}] = {name}", "grid += 1", f"grid[:, 1] += {number}", "grid *= 0.5",
                           f"grid[{self.index()}, {self.index()}] = {number}", f"write({name}, {number})",
                           f"write({name}[::-1], {number})", f"np.copyto({name}, {other})", f"{name}[::2] = {other}[1::2]",
                           f"np.maximum({name}, {other}, out={name})", f"s = {name}[{self.index()}]",
                           f"s = {name}.sum() * 0.125")

    def block(self, depth: int, indent: str) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, indent)

    def statement(self, depth: int, indent: str) -> None:
        self.budget -= 1
        kind = self.random.random()
        if depth and self.budget > 0 and kind < 0.3:
            self.decide(depth, indent)
        elif depth and self.budget > 0 and kind < 0.42 and self.loops < 2:
            self.loop(depth, indent)
        elif kind < 0.46 and self.loops:
            self.lines.append(f"{indent}if {self.condition()}: {self.choose('break', 'continue')}")
        elif kind < 0.47:
            results = [self.place() if name in _VECTORS else name for name in self.results]
            self.lines.append(f"{indent}if {self.condition()}: return {', '.join(results)}")
        else:
            self.lines.append(indent + (self.rebind() if self.chance(0.55) else self.write()))

    def decide(self, depth: int, indent: str) -> None:
        self.lines.append(f"{indent}if {self.condition()}:")
        self.block(depth - 1, indent + "    ")
        if self.chance(0.2):
            self.lines.append(f"{indent}elif {self.condition()}:")
            self.block(depth - 1, indent + "    ")
        if self.chance(0.5):
            self.lines.append(f"{indent}else:")
            self.block(depth - 1, indent + "    ")

    def loop(self, depth: int, indent: str) -> None:
        kind = self.choose("known", "argument", "traced", "while", "rows")
        inner = indent + "    "
        self.counters += 1
        counter = f"k{self.counters}"
        if kind == "while":
            self.lines += [f"{indent}{counter} = 0", f"{indent}while {counter} < 4 and {self.condition()}:",
                           f"{inner}{counter} += 1", f"{inner}i = {counter}"]
        elif kind == "rows":
            self.lines += [f"{indent}i = -1", f"{indent}for {self.vector()} in grid:", f"{inner}i += 1"]
        else:
            self.lines.append(f"{indent}for i in range({ {'known': self.choose('2', '3'), 'argument': 'n', 'traced': 't'}[kind]}):")
        self.loops += 1
        self.block(depth - 1, inner)
        self.loops -= 1

    def function(self) -> str:
        self.lines = ["", "", "def f(a, b, grid, box, items, table, s, n, t, flag):", "    global LAST, BUFFER",
                      f"    c = {self.choose('a', 'b', 'a + 1', 'b[::-1]', 'BUFFER', 'grid[0]')}",
                      f"    p = {self.choose('a[1:]', 'b[:-1]', 'a[1:] + 1')}", "    i = 0",
                      f"    held = {self.choose('items', '[a, b]', '[c, c]', 'list(items)')}"]
        while self.budget > 0:
            self.statement(3 if self.is_nested else 2, "    ")
        self.lines.append(f"    return {', '.join(self.results)}")
        return "\n".join(self.lines) + "\n"


def write_program(seed: int) -> str:
    return HEADER + _Writer(seed).function()


# -- programs of the JAX style: arrays do not change, lists, dicts and objects do -----------------------------------
PURE_HEADER = '''\
class Box:
    def __init__(self, x):
        self.x = x

    def grow(self, v):
        self.x = self.x + v
        return self.x

    def set(self, v):
        old, self.x = self.x, v
        return old


def write(u, v):
    return put(u, 0, v)


def renew(u, v):
    return put(u + v, 1, v)


def pick(u, v):
    if u[0] > v[1]:
        return u
    return v


def turn(u):
    return u[::-1]


def late(u, v, n):
    for k in range(n):
        if u[0] > v[0] + k:
            return u
        u = put(u, 0, u[0] + 0.5)
    return v
'''


class _PureWriter(_Writer):
    """Writes a function of `a, b, grid, x, k, s, n, t, flag` in which no array is written."""

    def place(self) -> str:
        return super().place().replace("BUFFER", "box.x")

    def fresh(self, name: str) -> str:
        return super().fresh(name).replace("[[0, 2, 1, 3]]", "[np.array([0, 2, 1, 3])]")

    def condition(self) -> str:
        while " is " in (found := super().condition()):
            pass
        return found

    def rebind(self) -> str:
        while "LAST" in (found := super().rebind()):
            pass
        return found

    def write(self) -> str:
        name, other, number, index = self.place(), self.place(), self.number(), self.index()
        return self.choose(f"{name} = put({name}, {index}, {number})", f"{name} = put({name}, {index}, {name}[{index}] + {number})",
                           f"{name} = np.where({name} > {number}, {self.choose('0.5', 's')}, {name})", f"{name} = {name} + {number}",
                           f"{name} += {number}", f"{name} -= {other}", f"{name} *= 0.5", f"{name} = np.sort({name})",
                           f"{name} = np.concatenate([{other}[1:], {name}[:1]])", "p = p + 0.5", "p += 0.5",
                           f"p = {name}[1:] - {other}[:-1]", f"p = put(p, {self.choose('0', '-1')}, {number})",
                           f"grid = put(grid, {index}, {name})", "grid = grid * 0.5", "grid -= 1",
                           f"grid = put(grid, ({index}, {self.index()}), {number})", f"{name} = write({other}[::-1], {number})",
                           f"table['k'] = {name} + {number}", f"items[1] = {name}", f"s = {name}[{index}]",
                           f"s = {name}.sum() * 0.125", "s += 0.25")

    def function(self) -> str:
        lines = super().function().splitlines()
        lines[2:4] = ["def f(a, b, grid, x, k, s, n, t, flag):", "    box, items, table = Box(x), [a, b], {'k': k}"]
        return "\n".join(line.replace("BUFFER", "box.x") for line in lines) + "\n"


def write_pure_program(seed: int) -> str:
    return PURE_HEADER + _PureWriter(seed).function()


def without_in_place(source: str) -> str:
    """The program with operators that would change NumPy's arrays written out."""
    return re.sub(r"^( +)(\S+) ([-+*])= (.*)$", r"\1\2 = \2 \3 (\4)", source, flags=re.MULTILINE)


def make_pure_arguments(numbers: tuple) -> tuple:
    """Arguments of `f` of a pure program, float32."""
    arrays = [_fresh(seed, *shape).astype(np.float32) for seed, shape in ((1, (4,)), (2, (4,)), (3, (4, 4)), (4, (4,)), (7, (4,)))]
    return *arrays, *numbers


def put(u: np.ndarray, place, value) -> np.ndarray:
    """u with another element."""
    found = u.copy()
    found[place] = value
    return found


# -- arguments --------------------------------------------------------------------------------------------------
def _fresh(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, shape) / 4


def _distinct(space) -> tuple:
    return _fresh(1, 4), _fresh(2, 4), _fresh(3, 4, 4), _fresh(4, 4), [_fresh(5, 4), _fresh(6, 4)], _fresh(7, 4)


def _same(space) -> tuple:
    a, b, grid, x, items, k = _distinct(space)
    return a, a, grid, x, items, x


def _held(space) -> tuple:
    a, b, grid, x, items, k = _distinct(space)
    return a, b, grid, a, [b, a], b


def _overlapping(space) -> tuple:
    a, b, grid, x, items, k = _distinct(space)
    wide = _fresh(8, 7)
    return wide[:4], wide[2:6], grid, x, items, wide[3:]


def _of_grid(space) -> tuple:
    a, b, grid, x, items, k = _distinct(space)
    return grid[1], grid[:, 2], grid, x, [grid[0], x], k


def _global(space) -> tuple:
    a, b, grid, x, items, k = _distinct(space)
    return space["BUFFER"], b, grid.T, x, [a, a], space["BUFFER"][::-1]


#: How arrays among the arguments hang together, by name.
LAYOUTS: dict[str, Callable[[dict], tuple]] = {
    "distinct": _distinct, "same": _same, "held": _held, "overlapping": _overlapping, "of_grid": _of_grid,
    "global": _global}
#: s, n, t, flag: calls behind each other; t is an element of an integer array.
NUMBERS = ((0.5, 2, 3, False), (-1.0, 3, 1, False), (1.5, 2, 0, False), (0.25, 4, 2, False))


def make_arguments(layout: str, numbers: tuple, space: dict) -> tuple:
    """Arguments of `f`. space: the variables of its module."""
    a, b, grid, x, items, k = LAYOUTS[layout](space)
    s, n, t, flag = numbers
    return a, b, grid, space["Box"](x), items, {"k": k}, s, n, np.int64(t), flag


def load(source: str, name: str) -> dict:
    """The variables of a new module of a program's."""
    module = sys.modules["user_programs_memory"] = types.ModuleType("user_programs_memory")
    module.__dict__["__file__"] = name
    exec(compile(source, name, "exec"), module.__dict__)
    return module.__dict__
