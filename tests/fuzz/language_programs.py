"""Random programs about the languages of Python and NumPy: types that meet, statements of all kinds, errors in between.

In: a seed. Out: the source of a module with a function `f`, decorated with `compiled`, and `CALLS` with arguments of
many types (see `state_runs.py`). What expressions and statements there are is in `language_vocabulary.py`.

`tests/fuzz/test_random_language.py` compares programs with plain Python.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import random
import re
import textwrap

from tests.fuzz.language_statements import DEFINITIONS, RARE
from tests.fuzz.language_vocabulary import ARGUMENTS, AROUND, EXPRESSIONS, STATEMENTS, VARIABLES

_LETTER = re.compile(r"(?<![.\w])[AMISXCLTZDK]\b(?!')")
_STARTS = {"n": "n", "k": "k = 2", "j": "j = 0", "x": "x", "y": "y = 1.5", "w": "w = u[::-1]", "g": "g = m", "q": "q = p", "c": "c = flag",
           "other": "other = [2, 1]", "t": "t = word", "z": "z = None", "box": "box = Boxed(u)"}


class _Writer:
    """Writes one program."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.budget = self.random.randint(1, 8)
        self.results: list[str] = []  # a variable for each statement's z

    def fill(self, template: str, depth: int) -> str:
        """The template with expressions for its letters."""
        return _LETTER.sub(lambda found: self.expression(found[0], depth), template)

    def expression(self, letter: str, depth: int) -> str:
        variables = VARIABLES[letter]
        if variables and (depth <= 0 or self.random.random() < 0.6):
            return self.random.choice(variables)
        found = self.fill(self.random.choice(EXPRESSIONS[letter]), depth - 1)
        is_atom = re.fullmatch(r"[\w.]+|\[[^\[\]]*\]|[\w.]+\([^()]*\)|'[^']*'", found)
        return found if is_atom or depth == 3 else f"({found})"

    def statement(self, depth: int) -> str:
        self.budget -= 1
        table = self.random.choice((STATEMENTS, RARE))
        template = self.random.choice(table)
        while "BODY" in template and depth == 0:
            template = self.random.choice(table)
        lines = []
        for line in template.split("\n"):
            if line.strip() == "BODY":
                lines.append(textwrap.indent(self.block(depth - 1), line[: -len("BODY")]))
            else:
                lines.append(self.fill(line, self.random.choice((1, 1, 2))))
        self.results.append(f"z{len(self.results)}")
        return re.sub(r"\bz\b", self.results[-1], "\n".join(lines)) if "BODY" not in template else "\n".join(lines)

    def block(self, depth: int) -> str:
        count = self.random.choice((1, 1, 2)) if self.budget > 0 else 1
        return "\n".join(self.statement(max(depth, 0)) for _ in range(count))

    def function(self) -> str:
        lines = [line for line in _STARTS.values() if "=" in line]
        while self.budget > 0:
            lines.append(self.statement(2))
        names = self.random.sample(["u", "v", "w", "m", "g", "n", "k", "x", "y", "p", "q", "items", "other", "t", "z", "table", "box", "Z", "A"], 6)
        results = [name for name in self.results if re.search(rf"\b{name}\b", "\n".join(lines))]
        lines = [" = ".join([*results, "None"])] + lines if results else lines
        body = "\n".join(lines) + f"\nreturn {', '.join([self.fill(name, 2) for name in names] + results)}"
        declared = "global COUNT\n" if "global COUNT\n" in body else ""
        body = declared + re.sub(r" *global COUNT\n", lambda found: found[0].replace("global COUNT", "pass"), body)
        return "def f(u, v, m, n, x, p, items, table, word='ab', flag=False):\n" + textwrap.indent(body, "    ") + "\n"

    def argument(self, name: str) -> str:
        return self.random.choice(ARGUMENTS[name])

    def calls(self) -> list[tuple[str, str]]:
        """Six calls, most of them with the types of the first one's arguments."""
        kinds = ["u, v", "u, v", "m", "n", "x", "p", "items", "table", "word", "flag"]
        usual = [self.argument(kind) if self.random.random() < 0.5 else ARGUMENTS[kind][0] for kind in kinds]
        found = [("", self.join(usual))]
        for _ in range(5):
            values = list(usual)
            for place in self.random.sample(range(len(kinds)), self.random.choice((0, 1, 2, 4))):
                values[place] = self.argument(kinds[place])
            if self.random.random() < 0.1:
                values[1] = "SHARED"
            found.append(("", self.join(values)))
        return found

    @staticmethod
    def join(values: list[str]) -> str:
        *values, flag = values
        return ", ".join([*values, flag] if flag != "False" else values)


def write_program(seed: int) -> str:
    """Few are no programs, such as `-x += 1`, and are written anew."""
    for part in itertools.count():
        writer = _Writer(1000 * seed + part)
        source = f"{AROUND}{DEFINITIONS}\n\n@compiled\n{writer.function()}\n\nCALLS = {writer.calls()!r}\n"
        with contextlib.suppress(SyntaxError):
            ast.parse(source)
            return source
