"""The routines for products of a matrix and a vector.

In: sizes and strides that `matrices_routine` found in an equation. Out: routines. The machine code is in
`short_rows` and `columns`.
"""

from __future__ import annotations

import numpy as np

from jitcore.loopir.expr import RunTimeSize

__all__ = ["ColumnsRoutine", "RowsRoutine"]

# Bytes of the sums that stay in the first-level cache while rows are read, at most; blocks of them begin at
# multiples of so many. Of rows from so many bytes on, two threads read halves.
_BLOCK_BYTES, _BLOCK_UNIT = 16 << 10, 128
_WIDE_ROW = 4 << 10
# Rows of a stretch, at most: sums of sums are more accurate than long sums.
_MOST_ROWS = 512
# Multiply-adds from which on threads share a product, pieces that they share, and rows of a piece at least.
_SHARED_WORK, _PIECES, _LEAST_ROWS = 1 << 19, 32, 64


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
                 matrix: tuple[int, int], is_swapped: bool):
        self.dtype, self.is_swapped, self.result_columns = dtype, is_swapped, columns
        width = choose_width(columns, dtype.itemsize)
        length = choose_length(batch * -(-columns // width), min(columns, width), steps)
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


def choose_width(columns: int, itemsize: int) -> int:
    """Columns of a block: about equal ones, and an even number of them."""
    nbytes = columns * itemsize
    blocks = 1 if nbytes <= _WIDE_ROW else 2 * -(-nbytes // (2 * _BLOCK_BYTES))
    unit = _BLOCK_UNIT // itemsize
    return -(-columns // (blocks * unit)) * unit


def choose_length(blocks: int, columns: int, steps: int) -> int:
    """Rows of a stretch, from sizes alone, so that results do not depend on the number of threads."""
    pieces = -(-steps // _MOST_ROWS)
    if blocks * columns * steps >= _SHARED_WORK:
        pieces = max(pieces, min(-(-_PIECES // blocks), steps // _LEAST_ROWS))
    return -(-steps // pieces)
