"""What a routine of this room is: a function of machine code, and the numbers that it is told.

In: sizes and strides that were found in an equation. Out: a `schedule.target.Routine`. The machine code is in
`modules`; one function serves all products of a kind and dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitcore.loopir.expr import Buffer, RunTimeSize

#: Kinds whose machine code takes epilogues.
_WITH_EPILOGUE = ("matrices", "columns", "windows")


class ProductRoutine:
    """One product or convolution, by `jitcore_product_<kind>_<dtype>`.

    name: as programs print it. numbers: what machine code is told, in its order. work: how many elements it
    works with beside operands and results, and their dtype. is_swapped: whether it takes the second operand
    first. result_columns: it takes epilogues on rows of so many elements. parts: see `parts`."""

    def __init__(self, kind: str, name: str, dtype: np.dtype, numbers: Sequence[int],
                 work: tuple[int, np.dtype] | None = None, *, is_swapped: bool = False,
                 result_columns: int | None = None, parts: tuple[str, ...] = ()):
        self.kind, self.name = kind, f"{name}_f{8 * dtype.itemsize}"
        self.symbol = f"jitcore_product_{kind}_f{8 * dtype.itemsize}"
        self.sizes = tuple(map(RunTimeSize, numbers))
        self.work, self.is_swapped, self.result_columns, self.parts = work, is_swapped, result_columns, parts

    def __str__(self) -> str:
        return self.name

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        return [] if self.work is None else [((RunTimeSize(self.work[0]),), self.work[1])]

    def list_operands(self, call) -> Sequence[Buffer]:
        """Operands of the equation as machine code takes them."""
        return call.inputs[::-1] if self.is_swapped else call.inputs

    def emit(self, renderer, call) -> None:
        buffers = map(renderer.address_of, [*self.list_operands(call), *call.outputs, *call.scratch])
        epilogue = renderer.epilogue_of(call) if self.kind in _WITH_EPILOGUE else ()
        renderer.run_told(self.symbol, *buffers, *epilogue, sizes=self.sizes)
