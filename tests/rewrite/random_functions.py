"""Random functions with nested control flow on integers, as source text."""

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
                      "        return total"]  # fmt: skip
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
            f"sum([{one}, {other}])", f"helper({one}, w={other})"])  # fmt: skip

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
            one, f"x {compare} y", f"{one} in (1, 2, {other})"])  # fmt: skip

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
                                             f"{target} += {self.random.randrange(-3, 4)}"]))  # fmt: skip

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
        more = f" and {self.condition(1)}" if self.random.random() < 0.4 else ""
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
