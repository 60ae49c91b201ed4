"""A whole program as one written function.

In: a jaxpr and the target that scheduling asks. Out: an `Executable` that runs the loop program as Python, or
compiled by Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jitcore.backends.python.running import load_numba, load_python, write_numba
from jitcore.backends.python.writer import write_function
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.dispatch.backend import CompileOptions
from jitcore.dispatch.tracing import has_symbolic_shapes, specialize_jaxpr
from jitcore.loopir.program import Program
from jitcore.loopir.text import show_program
from jitcore.schedule import lower_program
from jitcore.schedule.target import Target

_LOADERS = {"python": load_python, "numba": load_numba}


class SourceExecutable:
    """`compiles` counts the functions that were made."""

    def __init__(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions, target: type[Target]):
        self.closed_jaxpr, self.options, self.target = closed_jaxpr, options, target
        self.compiles = 0
        self._latest: Program | None = None
        self._fixed = None if has_symbolic_shapes(closed_jaxpr.jaxpr) else self._make(closed_jaxpr)

    def _make(self, closed: ClosedJaxpr) -> Callable[..., list[np.ndarray]]:
        self._latest = program = lower_program(closed, self.target, self.options.donated)
        self.compiles += 1
        return _LOADERS[self.options.codegen](write_function(program), program)

    def bind(self, in_avals: Sequence[ShapedArray]) -> Callable[..., list[np.ndarray]]:
        return self._fixed or self._make(specialize_jaxpr(self.closed_jaxpr, in_avals))

    def texts(self, arguments: Sequence[str] = ()) -> dict[str, Callable[[], str]]:
        """Of the latest signature where shapes are symbolic."""
        program = self._latest
        if program is None:
            return {}
        return {"loop program": lambda: show_program(program),
                "numba": lambda: write_numba(program, arguments)}

    def cost(self) -> dict[str, float]:
        return {}
