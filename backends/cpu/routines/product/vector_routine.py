"""The routines for products of a matrix and a vector.

In: sizes and strides that `matrices_routine` found in an equation. Out: routines. The machine code is in
`short_rows` and `columns`.
"""

from __future__ import annotations

import numpy as np

from jitcore.backends.cpu.machine.tuning import Product
from jitcore.backends.cpu.routines.product.routine import ProductRoutine

# Blocks of columns begin at multiples of so many bytes: two cache lines.
_BLOCK_UNIT = 128


def multiply_rows(dtype: np.dtype, rows: int, steps: int, pitch: int, is_swapped: bool) -> ProductRoutine:
    """A matrix of many short rows times a vector, both along memory. is_swapped: the vector comes first."""
    name = f"{'swapped_' * is_swapped}rows_product"
    return ProductRoutine("rows", name, dtype, (rows, steps, pitch), is_swapped=is_swapped)


def multiply_columns(dtype: np.dtype, batch: int, columns: int, steps: int, vector: tuple[int, int],
                     matrix: tuple[int, int], tuning: Product, is_swapped: bool) -> ProductRoutine:
    """Vectors times matrices whose columns are neighbours in memory. is_swapped: the matrix comes first.

    vector, matrix: strides from item to item and along the contracted axis, in elements."""
    width = choose_width(columns, dtype.itemsize, tuning)
    length = choose_length(batch * -(-columns // width), min(columns, width), steps, tuning)
    stretches = -(-steps // length)
    work = batch * stretches * columns if stretches > 1 else 1, dtype
    numbers = (batch, columns, steps, *vector, *matrix, length, width)
    return ProductRoutine("columns", f"{'swapped_' * is_swapped}columns_product", dtype, numbers, work,
                          is_swapped=is_swapped, result_columns=columns)


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
