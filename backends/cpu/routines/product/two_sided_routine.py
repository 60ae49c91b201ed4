"""The routine for products of a matrix with vectors on its two sides: one sweep over the matrix.

In: a `two_sided_dot`. Out: the routine. The machine code is in `two_sided`.
"""

from __future__ import annotations

import numpy as np

from jitcore.core.jaxpr import Equation
from jitcore.schedule.nest import RunTimeSize

__all__ = ["GROUP_ROWS", "SweepRoutine", "find_routine"]

#: Rows that machine code reads side by side.
GROUP_ROWS = 4

# Stretches of rows, at most, and their rows at least: each has sums of columns of its own.
_MOST_STRETCHES, _LEAST_ROWS = 32, 32


class SweepRoutine:
    """kind: "pair" (a @ x, y @ a) or "chain" (a @ x, (a @ x) @ a)."""

    def __init__(self, kind: str, dtype: np.dtype, rows: int, columns: int):
        self.kind, self.dtype = kind, dtype
        groups = -(-max(-(-rows // _MOST_STRETCHES), _LEAST_ROWS) // GROUP_ROWS)
        self.length = groups * GROUP_ROWS
        self.stretches = -(-rows // self.length)
        self.columns = columns
        self.sizes = tuple(map(RunTimeSize, (rows, columns, self.length)))

    def __str__(self) -> str:
        return f"{self.kind}_sweep_f{8 * self.dtype.itemsize}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        return [((RunTimeSize(self.stretches * self.columns),), self.dtype)]

    def emit(self, renderer, call) -> None:
        matrix, right, *left = map(renderer.address_of, call.inputs)
        row_sums, column_sums, work = map(renderer.address_of, [*call.outputs, *call.scratch])
        operands = [matrix, right, *(left or [row_sums]), row_sums, column_sums, work]
        symbol = f"jitcore_product_{self.kind}_f{8 * self.dtype.itemsize}"
        renderer.run_told(symbol, *operands, sizes=self.sizes)


def find_routine(eqn: Equation) -> SweepRoutine | None:
    aval = eqn.invars[0].aval
    if 0 in aval.shape or not all(isinstance(extent, int) for extent in aval.shape):
        return None
    return SweepRoutine("pair" if len(eqn.invars) == 3 else "chain", aval.dtype, *aval.shape)
