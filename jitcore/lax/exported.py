"""Programs that were exported, called from a program.

In: a program that a backend has loaded (`jitcore.export` makes one), flat operands. Out: flat results. XLA's
backends compile it with the rest; elsewhere XLA runs it on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from jitcore.core.jaxpr import ShapedArray
from jitcore.lax.control_flow.callback import call_for_each
from jitcore.lax.define import define


class LoadedProgram(Protocol):
    def infer(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        """The types of the results. Raises: TypeError or ValueError for operands that it is not for."""

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, on the host."""

    def call_flat(self, *values: Any) -> list:
        """The results within a program of the backend that loaded it."""


def _run(*values: np.ndarray, exported: LoadedProgram) -> list[np.ndarray]:
    return exported.run(values)


@define("call_exported", impl=_run, aval=lambda *avals, exported: exported.infer(avals), batch=call_for_each,
        multiple_results=True)
def call_exported(exported: LoadedProgram, *operands: Any) -> list:
    """The results of a loaded program for these operands."""
    return call_exported.primitive.bind(*operands, exported=exported)
