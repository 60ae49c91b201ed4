"""Runs the cells of a published notebook with `jax` replaced by `jitcore` and keeps what they show.

In: a list of `Cell`s as the notebook has them. Out: for each cell its printed text, the value of its last
expression and the error that ended it. The cells of a notebook share one namespace and run in order, each
once, no matter which test asks first.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
from dataclasses import dataclass, field
from typing import Any

_TIMEIT = re.compile(r"^%timeit (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """One code cell.

    Attributes:
        source: as published, `%timeit` lines included.
        shows: printed text, followed by the repr of the last expression; None where the published output is
            a time or there is none.
        raises: class name and first line of the error that the cell ends in.
        blames: text of the message that names the traced function and the argument.
    """

    source: str
    shows: str | None = None
    raises: tuple[str, str] | None = None
    blames: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What a cell did. `timed`: how many `%timeit` lines it ran."""

    printed: str = ""
    value: Any = None
    error: Exception | None = None
    timed: int = 0

    @property
    def shown(self) -> str:
        """What a notebook displays below the cell."""
        last = "" if self.value is None else repr(self.value)
        return (self.printed + last).strip()


@dataclass
class Notebook:
    """Cells in order, and the namespace they share. `name` stands in the file names of messages."""

    name: str
    cells: list[Cell]
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self, index: int) -> Outcome:
        """The outcome of a cell; the cells before it run first if they have not yet."""
        while len(self.outcomes) <= index:
            self.outcomes.append(self._run_next())
        return self.outcomes[index]

    def find(self, text: str) -> int:
        """The index of the first cell whose source contains `text`."""
        return next(index for index, cell in enumerate(self.cells) if text in cell.source)

    def _run_next(self) -> Outcome:
        index = len(self.outcomes)
        outcome, printed = Outcome(), io.StringIO()

        def time_once(call):
            call()
            outcome.timed += 1

        self.namespace["time_once"] = time_once
        body, last = self._compile(index)
        with contextlib.redirect_stdout(printed):
            try:
                exec(body, self.namespace)
                outcome.value = eval(last, self.namespace) if last else None
            except Exception as error:  # what the notebook would show in red
                outcome.error = error
        outcome.printed = printed.getvalue()
        return outcome

    def _compile(self, index: int):
        """(code of the statements, code of the last expression or None). Messages can quote the source."""
        source, file = translate(self.cells[index].source), f"<{self.name} cell {index}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        module = ast.parse(source, file)
        last = None
        if isinstance(module.body[-1], ast.Expr):
            last = compile(ast.Expression(module.body.pop().value), file, "eval")
        return compile(module, file, "exec"), last


def translate(source: str) -> str:
    """A cell as Python: `jax` becomes `jitcore`, a `%timeit` line one plain call."""
    return re.sub(r"\bjax\b", "jitcore", _TIMEIT.sub(r"time_once(lambda: \1)", source.strip("\n")))


def check_cell(notebook: Notebook, index: int) -> None:
    """Asserts that a cell shows, raises and times what it says."""
    cell, outcome = notebook.cells[index], notebook.run(index)
    assert outcome.timed == cell.source.count("%timeit")
    if cell.raises is not None:
        _check_error(cell, outcome.error, f"<{notebook.name} cell {index}>")
        return
    if outcome.error is not None:
        raise outcome.error
    if cell.shows is not None:
        assert strip_line_ends(outcome.shown) == strip_line_ends(cell.shows.strip())


def _check_error(cell: Cell, error: Exception | None, file: str) -> None:
    assert error is not None, "the cell ended without an error"
    class_name, first_line = cell.raises
    assert class_name in [base.__name__ for base in type(error).__mro__]
    lines = str(error).splitlines()
    assert lines[0] == first_line
    for text in cell.blames:
        assert text.format(file=file) in lines[1]


def strip_line_ends(text: str) -> str:
    """The text without blanks at the ends of lines, which published pages keep or lose at will."""
    return "\n".join(line.rstrip() for line in text.splitlines())
