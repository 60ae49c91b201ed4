"""Random programs whose variables are numbers on some ways and None on others.

In: a seed. Out: the source of a module with a function `f(x, n, k)`, which calls `find`, which returns a number or
None. Numbers are multiples of 1/8 and stay small, so that no order of additions rounds. What raises is of it: a sum
with None is a TypeError at the call that Python raises it at.
"""

from __future__ import annotations

import random
from collections.abc import Callable

VARIABLES = ("a", "b", "c")


class _Writer:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.choose, self.n_loops = self.random.choice, 0

    # -- expressions ----------------------------------------------------------------------------------------
    def number(self) -> str:
        if self.random.random() < 0.05:
            return self.folded(self.choose(["v", "i", "k", "0.5"]))
        return self.choose(["v", "v * 2", "v - 1", "i", "n", "0", "0.5", "k", "x[i]", "x[0]", "int(v)", "True"])

    def folded(self, name: str) -> str:
        """What a builtin makes of a generator."""
        condition = self.choose(["", f" if w > {name}", f" if {name} and w != {name}", " if j % 3"])
        element = self.choose(["w", "w * 2", f"w - {name}", "j", f"(w if w > {name} else j)"])
        function = self.choose(["sum", "sum", "any", "all", "min", "max", "len", "key", "pairs", "map", "filter", "list"])
        values = self.choose(["x", "x[:7]", "x[:n]"])
        if function == "key":
            return f"{self.choose(['min', 'max'])}({values}, key=lambda w: abs(w - {name}), default=1)"
        if function == "pairs":
            return f"{self.choose(['min', 'max'])}(((w, j) for j, w in enumerate({values})), default=(1, 1))[{self.choose('01')}]"
        if function == "list":
            items = f"[{self.choose(['w', '(w, j)'])} for j, w in enumerate({values}) if w > {name}]"
            items = self.choose([items, f"sorted({items}, reverse={self.choose(['True', 'False'])})", f"({items} + {items})"])
            part = self.choose(["[1:]", "[:i]", "[-3:]", "[::-1]", "[i::2]", "[4:i:-1]", "[:-2]", ""])
            return f"{items}{part}"
        if function in ("map", "filter"):
            body = "w * 2" if function == "map" else f"w > {name}"
            return f"sum({function}(lambda w: {body}, {values}))"
        loops = f"({element} for j, w in enumerate(x[:{self.choose(['i', 'n', '7'])}]){condition})"
        if function == "len":
            return f"len(list{loops})"
        return f"{function}({loops}, default=1)" if function in ("min", "max") else f"{function}{loops}"

    def maybe(self) -> str:
        """A number or None."""
        name, other = self.choose(VARIABLES), self.choose(VARIABLES)
        return self.choose([name, name, "None", self.number(), self.number(), f"find({self.number()}, i)",
                            f"{name} if {self.test()} else None", f"{name} or {self.number()}",
                            f"{name} and {other}", f"({name}, {other})[i % 2]"])

    def test(self) -> str:
        name, other, number = self.choose(VARIABLES), self.choose(VARIABLES), self.number()
        order = self.choose(["<", "<=", ">", ">="])
        return self.choose([
            f"{name} is None", f"{name} is not None", f"{name} is None or {number} {order} {name}",
            f"{name} is not None and {name} {order} {number}", name, f"not {name}", f"{name} == {number}",
            f"{name} != {other}", f"{name} == None", f"{number} {order} 1", f"i % {self.random.randint(2, 4)} == 1",
            f"{name} is not None and {other} is not None and {name} {order} {other}"])

    def known(self, name: str) -> str:
        """An expression of a variable that is no None here."""
        return self.choose([f"{name}", f"abs({name})", f"-{name}", f"{name} * 2", f"min({name}, v)", f"max(1, {name})",
                            f"float({name})", f"int({name})", f"v - {name}", f"{name} + {self.number()}", f"x[0] + {name}",
                            f"np.abs({name})", f"np.maximum({name}, v)", f"round({name})",
                            f"len(x[:{name}])", f"len(x[{name}:])", self.folded(name)])

    # -- statements -----------------------------------------------------------------------------------------
    def block(self, indent: str, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent: str, depth: int, in_loop: bool) -> None:
        name, kinds = self.choose(VARIABLES), ["assign", "assign", "use", "use"]
        kinds += ["if", "if", "if"] * (depth > 0) + ["loop"] * (depth > 1) + ["leave"] * in_loop
        kind = self.choose(kinds)
        if kind == "assign":
            self.lines.append(f"{indent}{name} = {self.maybe()}")
        elif kind == "use":
            if self.random.random() < 0.06:  # where it is None, Python raises
                self.lines.append(f"{indent}s += {self.known(name)}")
            else:
                self.lines.append(f"{indent}if {name} is not None:")
                self.lines.append(f"{indent}    {self.choose(['s', 's', name])} += {self.known(name)}")
                self.lines.append(f"{indent}    s = max(min(s, 64), -64)")
                self.lines.append(f"{indent}    {name} = max(min({name}, 64), -64)")
        elif kind == "if":
            self.lines.append(f"{indent}if {self.test()}:")
            self.block(indent + "    ", depth - 1, in_loop)
            if self.random.random() < 0.5:
                self.lines.append(f"{indent}else:")
                self.block(indent + "    ", depth - 1, in_loop)
        elif kind == "loop":
            self.loop(indent, depth - 1)
        else:
            self.lines.append(f"{indent}if {self.test()}:")
            self.lines.append(f"{indent}    {self.choose(['break', 'continue', 'return a, b, c, s'])}")

    def loop(self, indent: str, depth: int) -> None:
        self.n_loops += 1
        heads: list[Callable[[], str]] = [lambda: "for i in range(n):", lambda: "for i, v in enumerate(x):"]
        head = self.choose(heads)()
        self.lines.append(indent + head)
        if "v" not in head:
            self.lines.append(f"{indent}    v = x[i]")
        self.block(indent + "    ", depth, True)

    def write(self) -> str:
        for name in VARIABLES:
            self.lines.append(f"    {name} = {self.choose(['None', 'None', '0.5', '2'])}")
        self.lines.append("    s, i, v = 0.0, 0, 1.0")
        self.loop("    ", 3)
        if self.random.random() < 0.5:
            self.block("    ", 1, False)
        self.lines.append("    return a, b, c, s")
        kept = self.random.randint(0, 3)
        finder = ["def find(v, i):", f"    if v < {self.choose(['0', '1', 'i'])}:", "        return None"]
        finder += [f"    if i == {kept}:", "        return None", "    return v * 2"][: self.choose([0, 2])]
        finder += [f"    return {self.choose(['v', 'v + 1', 'i'])}"]
        return "\n".join(["import numpy as np", "", "", *finder, "", "", "def f(x, n, k):", *self.lines, ""])


def write_program(seed: int) -> str:
    return _Writer(seed).write()


def write_folds(seed: int) -> str:
    """A function of what builtins make of generators, iterables and keys."""
    writer = _Writer(seed)
    folds = ", ".join(writer.folded(writer.choose(["v", "i", "k", "0.5"])) for _ in range(3))
    return f"def f(x, n, k):\n    i, v = n // 2, x[n // 3] if n else 0\n    return {folds}\n"
