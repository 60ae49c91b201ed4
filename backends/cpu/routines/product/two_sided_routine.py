"""The routine for products of a matrix with vectors on its two sides: one sweep over the matrix.

In: a `two_sided_dot`. Out: the routine. The machine code is in `two_sided`.
"""

from __future__ import annotations

import numpy as np

from jitcore.backends.cpu.machine.tuning import Product
from jitcore.core.jaxpr import Equation
from jitcore.schedule.nest import RunTimeSize

__all__ = ["SweepRoutine", "find_routine"]


class SweepRoutine:
    """kind: "pair" (a @ x, y @ a) or "chain" (a @ x, (a @ x) @ a)."""

    def __init__(self, kind: str, dtype: np.dtype, rows: int, columns: int, tuning: Product):
        self.kind, self.dtype = kind, dtype
        groups = -(-max(-(-rows // tuning.most_pair_stretches), tuning.least_pair_rows) // tuning.pair_rows)
        self.length = groups * tuning.pair_rows
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


def find_routine(eqn: Equation, tuning: Product) -> SweepRoutine | None:
    aval = eqn.invars[0].aval
    if 0 in aval.shape or not all(isinstance(extent, int) for extent in aval.shape):
        return None
    return SweepRoutine("pair" if len(eqn.invars) == 3 else "chain", aval.dtype, *aval.shape, tuning)
