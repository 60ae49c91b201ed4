"""The routines for products of a matrix and a vector.

In: sizes and strides that `matrices_routine` found in an equation. Out: routines. The machine code is in
`short_rows` and `columns`.
"""

from __future__ import annotations

import numpy as np

from jitcore.backends.cpu.machine.tuning import Product
from jitcore.loopir.expr import RunTimeSize

__all__ = ["ColumnsRoutine", "RowsRoutine"]

# Blocks of columns begin at multiples of so many bytes: two cache lines.
_BLOCK_UNIT = 128


class RowsRoutine:
    """A matrix of many short rows times a vector, both along memory. is_swapped: the vector comes first."""

    def __init__(self, dtype: np.dtype, rows: int, steps: int, pitch: int, is_swapped: bool):
        self.dtype, self.is_swapped = dtype, is_swapped
        self.sizes = tuple(map(RunTimeSize, (rows, steps, pitch)))

    def __str__(self) -> str:
        return f"{'swapped_' if self.is_swapped else ''}rows_product_f{8 * self.dtype.itemsize}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        return []

    def emit(self, renderer, call) -> None:
        operands = call.inputs[::-1] if self.is_swapped else call.inputs
        buffers = map(renderer.address_of, [*operands, *call.outputs])
        symbol = f"jitcore_product_rows_f{8 * self.dtype.itemsize}"
        renderer.run_told(symbol, *buffers, sizes=self.sizes)


class ColumnsRoutine:
    """Vectors times matrices whose columns are neighbours in memory. is_swapped: the matrix comes first.

    vector, matrix: strides from item to item and along the contracted axis, in elements. result_columns: it
    takes epilogues on rows of so many elements."""

    def __init__(self, dtype: np.dtype, batch: int, columns: int, steps: int, vector: tuple[int, int],
                 matrix: tuple[int, int], tuning: Product, is_swapped: bool):
        self.dtype, self.is_swapped, self.result_columns = dtype, is_swapped, columns
        width = choose_width(columns, dtype.itemsize, tuning)
        length = choose_length(batch * -(-columns // width), min(columns, width), steps, tuning)
        stretches = -(-steps // length)
        self.partials = batch * stretches * columns if stretches > 1 else 1
        numbers = (batch, columns, steps, *vector, *matrix, length, width)
        self.sizes = tuple(map(RunTimeSize, numbers))

    def __str__(self) -> str:
        return f"{'swapped_' if self.is_swapped else ''}columns_product_f{8 * self.dtype.itemsize}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        return [((RunTimeSize(self.partials),), self.dtype)]

    def emit(self, renderer, call) -> None:
        operands = call.inputs[::-1] if self.is_swapped else call.inputs
        buffers = map(renderer.address_of, [*operands, *call.outputs, *call.scratch])
        symbol = f"jitcore_product_columns_f{8 * self.dtype.itemsize}"
        epilogue = renderer.epilogue_of(call)
        renderer.run_told(symbol, *buffers, *epilogue, sizes=self.sizes)


def choose_width(columns: int, itemsize: int, tuning: Product) -> int:
    """Columns of a block: about equal ones, and an even number of them."""
    nbytes = columns * itemsize
    blocks = 1 if nbytes <= tuning.wide_row else 2 * -(-nbytes // (2 * tuning.sums_bytes))
    unit = _BLOCK_UNIT // itemsize
    return -(-columns // (blocks * unit)) * unit


def choose_length(blocks: int, columns: int, steps: int, tuning: Product) -> int:
    """Rows of a stretch, from sizes alone, so that results do not depend on the number of threads."""
    pieces = -(-steps // tuning.most_rows)
    if blocks * columns * steps >= tuning.shared_work:
        pieces = max(pieces, min(-(-tuning.pieces // blocks), steps // tuning.least_rows))
    return -(-steps // pieces)
