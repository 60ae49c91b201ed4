"""What `%load_ext jitcore` adds to a shell: `%autojit`, `%%autojit`, `%jit_timeit`, `%jit_report`.

In: the shell of IPython. Out: its magics, which give objects that it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitcore.notebooks.cells import Cells
from jitcore.process.lazy import LazyModule

summary = LazyModule("jitcore.notebooks.summary")
timing = LazyModule("jitcore.notebooks.timing")

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


class Magics:
    """Args: the shell."""

    def __init__(self, shell: Any):
        self.shell, self.cells = shell, Cells(shell)
        self.table: list[tuple[str, str, Callable]] = [
            ("autojit", "line", self.cells.autojit), ("jit_report", "line", self.jit_report),
            ("jit_timeit", "line", self.jit_timeit), ("jit_timeit", "cell", self.jit_timeit)]

    def install(self) -> None:
        self.cells.install()
        for name, kind, magic in self.table:
            self.shell.register_magic_function(magic, kind, name)

    def remove(self) -> None:
        self.cells.remove()
        for name, kind, _ in self.table:
            self.shell.magics_manager.magics[kind].pop(name, None)

    def jit_timeit(self, line: str, cell: str | None = None) -> Any:
        """%jit_timeit f(x): the first call, the fastest later one and the quartiles, beside the function without
        jitcore: in NumPy, under Numba and JAX where these are installed; the results are compared.
        %%jit_timeit SETUP: the same of a cell that ends with an expression; SETUP runs once."""
        text, setup = (line, "") if cell is None else (cell, line)
        return timing.time_expression(text, self.shell.user_ns, setup)

    def jit_report(self, line: str) -> Any:
        """%jit_report: how the decorated functions of the session and its autojitted cells run, and why no better.
        %jit_report f g: these functions."""
        session = self.cells.session
        return summary.summarize(self.shell.user_ns, None if session is None else session.sampler, line.split())


_magics: Magics | None = None


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext jitcore`."""
    global _magics
    if _magics is None:
        _magics = Magics(shell)
        _magics.install()


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext jitcore`."""
    global _magics
    if _magics is not None:
        _magics.remove()
        _magics = None
