"""Random functions with nested control flow, as source text.

`write_function` makes functions of two integers; `write_program` functions of integers, a float, a number that
stays concrete and an array, with more kinds of loops and stores. Floats are multiples of 1/4 and stay small, so
that float32 holds them exactly and decides as float64 does.
"""

from __future__ import annotations

import random

_VARIABLES = ("a", "b", "c")

HELPERS = """
def helper(v, w=2):
    if v > w:
        return v - w
    elif v < 0:
        v = -v
    return v + 1

def count_down(v):
    k = 0
    while v > 0:
        if v % 7 == 3:
            break
        v -= 2
        k += 1
    else:
        k = k + 100
    return k
"""


class _Writer:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters = 0

    def write(self) -> str:
        self.lines = ["def f(x, y):", "    a, b, c = x, y, 1", "    values = [x, 2, y]", "    total = 0",
                      "    def bump(v):", "        nonlocal total", "        if v > 2:", "            total += v % 5",
                      "        return total"]
        self.block(1, 4, loops=0)
        self.lines.append("    return a + 3 * b + 5 * c + 7 * values[0] + 11 * values[1] + 13 * total")
        return HELPERS + "\n".join(self.lines) + "\n"

    def line(self, level: int, text: str) -> None:
        self.lines.append("    " * level + text)

    # -- expressions ----------------------------------------------------------------------------------------
    def variable(self) -> str:
        return self.random.choice(_VARIABLES)

    def value(self) -> str:
        one, other = self.variable(), self.variable()
        return self.random.choice([
            one, f"{one} + {other}", f"{one} - {other}", f"({one} * {other}) % 50 - 20", f"{one} // 3", f"{one} % 4",
            f"-{one}", f"abs({one})", f"max({one}, {other})", f"min({one}, {other}, 3)", f"helper({one})",
            f"count_down({one} % 30)", f"({one} if {self.condition()} else {other})", f"bump({one})",
            f"values[{self.random.randrange(3)}]", str(self.random.randrange(-5, 6)), "len(values)",
            f"sum([{one}, {other}])", f"helper({one}, w={other})"])

    def condition(self, depth: int = 0) -> str:
        one, other = self.variable(), self.variable()
        compare = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        plain = f"{one} {compare} {self.random.choice([other, str(self.random.randrange(-4, 8))])}"
        if depth > 1:
            return plain
        inner = self.condition(depth + 1)
        return self.random.choice([
            plain, plain, plain, f"{one} % 3 == {self.random.randrange(3)}", f"not ({inner})", f"{plain} and {inner}",
            f"{plain} or {inner}", f"{self.random.randrange(-3, 1)} < {one} <= {self.random.randrange(1, 9)}",
            one, f"x {compare} y", f"{one} in (1, 2, {other})"])

    # -- statements -----------------------------------------------------------------------------------------
    def block(self, level: int, size: int, loops: int) -> None:
        for _ in range(self.random.randint(1, size)):
            self.statement(level, loops)

    def statement(self, level: int, loops: int) -> None:
        choices = [self.assign] * 5 + [self.swap, self.store]
        if level < 5:
            choices += [self.branch] * 5 + [self.protect]
            if loops < 2:
                choices += [self.count, self.repeat, self.forever, self.each]
        if loops:
            choices += [self.leave] * 2
        choices += [self.return_early]
        self.random.choice(choices)(level, loops)

    def assign(self, level, loops):
        target = self.variable()
        self.line(level, self.random.choice([f"{target} = ({self.value()}) % 100 - 30",
                                             f"{target} += {self.random.randrange(-3, 4)}"]))

    def swap(self, level, loops):
        self.line(level, f"{self.variable()}, {self.variable()} = {self.variable()}, ({self.value()}) % 60 - 10")

    def store(self, level, loops):
        self.line(level, f"values[{self.random.randrange(3)}] = ({self.value()}) % 40")

    def branch(self, level, loops):
        self.line(level, f"if {self.condition()}:")
        self.block(level + 1, 3, loops)
        if self.random.random() < 0.3:
            self.line(level, f"elif {self.condition()}:")
            self.block(level + 1, 2, loops)
        if self.random.random() < 0.5:
            self.line(level, "else:")
            self.block(level + 1, 2, loops)

    def protect(self, level, loops):
        self.line(level, "try:")
        self.block(level + 1, 2, loops)
        self.line(level, "finally:")
        self.line(level + 1, f"{self.variable()} = 1")

    def finish_loop(self, level, loops):
        if self.random.random() < 0.3:
            self.line(level, "else:")
            self.block(level + 1, 2, loops)

    def new_counter(self) -> str:
        self.counters += 1
        return f"k{self.counters}"

    def repeat(self, level, loops):
        counter = self.new_counter()
        more = f" and ({self.condition(1)})" if self.random.random() < 0.4 else ""
        self.line(level, f"{counter} = 0")
        self.line(level, f"while {counter} < {self.variable()} % 5{more}:")
        self.line(level + 1, f"{counter} += 1")
        self.block(level + 1, 3, loops + 1)
        self.finish_loop(level, loops)

    def forever(self, level, loops):
        counter = self.new_counter()
        self.line(level, f"{counter} = 0")
        self.line(level, "while True:")
        self.line(level + 1, f"{counter} += 1")
        self.line(level + 1, f"if {counter} > 3 or {self.condition(1)}:")
        self.line(level + 2, "break")
        self.block(level + 1, 2, loops + 1)

    def count(self, level, loops):
        bound = self.random.choice([f"{self.variable()} % 5", "3", f"1, {self.variable()} % 6", f"{self.variable()} % 4, -1, -1"])
        self.line(level, f"for {self.new_counter()} in range({bound}):")
        self.block(level + 1, 3, loops + 1)
        self.finish_loop(level, loops)

    def each(self, level, loops):
        index, item = self.new_counter(), self.variable()
        self.line(level, f"for {index}, {item} in enumerate(values):")
        self.block(level + 1, 2, loops + 1)

    def leave(self, level, loops):
        self.line(level, f"if {self.condition(1)}:")
        self.line(level + 1, self.random.choice(["break", "continue"]))

    def return_early(self, level, loops):
        if self.random.random() < 0.4:
            self.line(level, f"if {self.condition(1)}:")
            self.line(level + 1, f"return {self.variable()} + 1000")
        else:
            self.assign(level, loops)


def write_function(seed: int) -> str:
    """The source of helpers and a function f(x, y) of two integers; the same for the same seed."""
    return _Writer(seed).write()


# -- programs -----------------------------------------------------------------------------------------------
PROGRAM_HELPERS = HELPERS + """
class Box:
    def __init__(self, value):
        self.value = value
        self.count = 0

    def grow(self, v):
        if v > 1:
            self.value = (self.value + v) % 50
            self.count += 1
        return self.value

def scale(p, v):
    for k in range(3):
        if p > 4:
            return p - k
        p += 1.5 if v > k else -0.25
    return p
"""

_PROGRAM_START = """
def f(x, y, u=0.5, n=2, w=(3, -1, 4)):
    a, b, c = x, y, 1
    p, q = u, 1.25
    values = [x, 2, y]
    table = {"r": x, "s": 3}
    box = Box(y)
    total = 0
    last = 0.5

    def bump(v):
        nonlocal total, last
        if v > 2:
            total += v % 5
        elif total < 20:
            last = last + 0.25
        return total
"""

_PROGRAM_RESULT = ("(a + 3 * b + 5 * c + 7 * values[0] + 11 * values[1] + 13 * total + 17 * table['r'] + 19 * box.value "
                   "+ 23 * box.count, p + 2 * q + 4 * last)")


class _ProgramWriter(_Writer):
    """Statements are counted, so that no program gets long."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.left = self.random.choice([8, 12, 16])

    def write(self) -> str:
        self.lines = []
        while self.left > 0:
            self.block(1, 4, loops=0)
        return f"{PROGRAM_HELPERS}{_PROGRAM_START}" + "\n".join(self.lines) + f"\n    return {_PROGRAM_RESULT}\n"

    # -- expressions ----------------------------------------------------------------------------------------
    def float_variable(self) -> str:
        return self.random.choice(["p", "q", "u"])

    def value(self) -> str:
        one = self.variable()
        more = [f"table[{self.key()}]", "box.value", f"box.grow({one})", f"int({self.float_variable()})", "n", f"{one} * n",
                f"w[{self.random.randrange(3)}]", f"sum([{one} for _ in range(2)])", "values[n % 3]"]
        return self.random.choice(more) if self.random.random() < 0.4 else super().value()

    def float_value(self) -> str:
        one, other, v = self.float_variable(), self.float_variable(), self.variable()
        return self.random.choice([
            f"{one} + {other}", f"{one} - {other}", f"{one} * {self.random.randrange(-3, 4)}", f"{one} % 2.5", f"{one} // 0.5 / 4",
            f"abs({one})", f"max({one}, {other})", f"min({one}, {other}, 1.5)", f"{one} + {v}", f"float({v}) / 4",
            f"scale({one}, {v})", f"({one} if {self.condition(1)} else {other})", f"({one} and {other})", "last",
            str(self.random.randrange(-20, 20) / 4)])

    def condition(self, depth: int = 0) -> str:
        if self.random.random() < 0.25:
            compare = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
            one, other = self.float_variable(), self.float_variable()
            return self.random.choice([
                f"{one} {compare} {other}", f"{one} {compare} {self.variable()}", f"{one} {compare} {self.random.randrange(-8, 8) / 4}",
                f"0.25 <= {one} < {other} + 1", f"n {compare} {self.random.randrange(4)}", f"not {one}", "box.count > 1",
                f"{self.variable()} not in values", f"{self.variable()} in w"])
        return super().condition(depth)

    def key(self) -> str:
        return self.random.choice(["'r'", "'s'"])

    # -- statements -----------------------------------------------------------------------------------------
    def statement(self, level: int, loops: int) -> None:
        self.left -= 1
        if self.left < 0 or level > 4:
            self.assign(level, loops)
            return
        more = [self.assign_float, self.assign_float, self.store_elsewhere, self.store_elsewhere, self.attempt]
        if loops < 2:
            more += [self.walk, self.walk]
        if self.random.random() < 0.4:
            self.random.choice(more)(level, loops)
        else:
            super().statement(level, loops)

    def assign_float(self, level, loops):
        target = self.random.choice("pq")
        self.line(level, self.random.choice([f"{target} = ({self.float_value()}) % 32 - 8", f"{target} += 0.25",
                                             f"p, q = q, ({self.float_value()}) % 16"]))

    def store_elsewhere(self, level, loops):
        self.line(level, self.random.choice([
            f"table[{self.key()}] = ({self.value()}) % 40", f"box.value = ({self.value()}) % 30", "box.count += 1",
            f"values[n % 3] = ({self.value()}) % 20", f"table['r'] += {self.random.randrange(1, 4)}",
            f"values[1], {self.variable()} = {self.variable()} % 9, values[2]"]))

    def return_early(self, level, loops):
        if self.random.random() < 0.4:
            self.line(level, f"if {self.condition(1)}:")
            self.line(level + 1, f"return {self.variable()} + 1000, {self.float_variable()}")
        else:
            self.assign_float(level, loops)

    def attempt(self, level, loops):
        self.line(level, "try:")
        self.block(level + 1, 2, loops)
        self.line(level, self.random.choice(["except ValueError:", "except (KeyError, TypeError) as error:", "except ZeroDivisionError:"]))
        self.line(level + 1, f"{self.variable()} = 77")
        if self.random.random() < 0.3:
            self.line(level, "else:")
            self.block(level + 1, 1, loops)

    def walk(self, level, loops):
        """A loop over something other than a range."""
        item, other = self.new_counter(), self.new_counter()
        bound = f"{self.variable()} % 4"
        self.line(level, self.random.choice([
            f"for {item} in values:", f"for {item} in w:", f"for {item} in [n, {self.variable()}, 5]:",
            f"for {other}, {item} in enumerate(w):", f"for {other}, {item} in zip(values, w):",
            f"for {other}, {item} in zip(range({bound}), range(1, 9, 2)):", f"for {other}, {item} in enumerate(range({bound})):",
            f"for {item} in range(n):", f"for {item} in range({bound}, -2, -1):", f"for {item} in reversed(values):"]))
        self.line(level + 1, f"{self.variable()} += {item}")
        self.block(level + 1, 2, loops + 1)
        self.finish_loop(level, loops)


def write_program(seed: int) -> str:
    """The source of helpers and a function f(x, y, u, n, w) that returns an integer and a float; the same for the
    same seed. x, y: integers; u: a multiple of 1/4; n: an integer from 0 to 3; w: three integers."""
    return _ProgramWriter(seed).write()
