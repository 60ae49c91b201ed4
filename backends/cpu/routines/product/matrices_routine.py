"""The routine for `dot_general`: products of matrices of float32 and float64.

In: an equation in the normal form of `jitcore.passes.contractions`. Out: the routine, or None where loops are
faster: they fuse with their surroundings. The machine code is in `modules`; sizes, strides and blocks
are numbers that it is told, so one module serves all products of a dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Product
from jitcore.backends.cpu.routines.product.parts import choose_tile_shape, list_parts
from jitcore.backends.cpu.routines.product.routine import ProductRoutine
from jitcore.backends.cpu.routines.product.vector_routine import multiply_columns, multiply_rows
from jitcore.core.jaxpr import Equation
from jitcore.lax.define import product
from jitcore.lax.dot import (free_dims, order_contraction, prefers_loops as prefers_complex_loops,
                             runs_together)
from jitcore.loopir.values import Value

#: Bytes of a table entry of machine code: where an item's operands and result are, and its length.
ITEM_BYTES = 32
#: Bytes of an entry that says where a segment of an item starts in its left and in its right operand.
SEGMENT_BYTES = 16
#: Packed columns are padded to a multiple of this: the width of the widest tile.
PANEL_BYTES = 128

# Rows so many bytes apart compete for the same lines of the first-level cache.
_CACHE_PAGE = 4096


class Operand(NamedTuple):
    """Strides, in elements, of a stack of matrices: from item to item, along free and contracted axes."""

    item: int
    free: int
    contracted: int


class Plan(NamedTuple):
    """How a product is cut. left_tiles: tiles of rows that a thread packs at a time, 0 where they are read as
    they lie; batch_block, n_block, k_block: matrices, columns and steps packed at a time; inner_block: steps
    per visit of a tile; splits: stretches that a sum is cut into."""

    left_tiles: int
    packs_right: int
    batch_block: int
    n_block: int
    k_block: int
    inner_block: int
    splits: int


class Sizes(NamedTuple):
    """batch x (m x k) @ (k x n)."""

    batch: int
    m: int
    n: int
    k: int


def multiply(dtype: np.dtype, sizes: Sizes, left: Operand, right: Operand, tuning: Product,
             name: str = "product", make: type[ProductRoutine] = ProductRoutine, **facts) -> ProductRoutine:
    """facts: of the routine."""
    plan = plan_product(sizes, left, right, dtype.itemsize, tuning)
    strides = (left.item, left.free, left.contracted, right.item, right.contracted, right.free)
    work = count_work_bytes(sizes, plan, dtype.itemsize), dtypes.uint8
    return make("matrices", name, dtype, (*sizes, *strides, *plan), work,
                parts=_list_parts(sizes, plan, dtype.itemsize), **facts)


class ComplexProductRoutine(ProductRoutine):
    """A product of complex matrices as one of real numbers: (m x 2k) @ (2k x 2n), whose left operand and
    result are the complex ones as they lie in memory. Each row of the right one is followed by i times it.

    dimensions: the equation's dimension numbers. extents: its `Sizes`."""

    def __init__(self, *arguments, dimensions: tuple, extents: Sizes, **facts):
        super().__init__(*arguments, **facts)
        self.dimensions, self.extents = dimensions, extents

    def prepare(self, builder, lhs: Value, rhs: Value) -> tuple[Value, Value]:
        contract, batch = self.dimensions
        left_free, right_free = (
            free_dims(value.ndim, *dims) for value, *dims in zip((lhs, rhs), contract, batch))
        left = _reorder(builder, lhs, [*batch[0], *left_free, *contract[0]])
        right = _reorder(builder, rhs, [*batch[1], *contract[1], *right_free])
        return left, _follow_by_turned(builder, right, len(batch[1]) + len(contract[1]))

    def reference(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The product, of what `prepare` gives."""
        axis = len(self.dimensions[1][1]) + len(self.dimensions[0][1])
        batch, m, n, k = self.extents
        numbers = np.take(right, 0, axis).reshape(batch, k, n)
        return left.reshape(batch, m, k) @ numbers


def _reorder(builder, value: Value, order: Sequence[int]) -> Value:
    """The operand with its axes in another order."""
    if list(order) == sorted(order):
        return value
    place = {dim: position for position, dim in enumerate(order)}
    shape = [value.shape[dim] for dim in order]
    return builder.view(value, shape, lambda index: tuple(index[place[d]] for d in range(value.ndim)))


def _follow_by_turned(builder, value: Value, axis: int) -> Value:
    """The numbers and i times them, side by side along a new axis."""
    shape, graph = (*value.shape[:axis], 2, *value.shape[axis:]), builder.graph

    def combine(index, number):
        part = dtypes.real_dtype(value.dtype)
        re, im = (graph.op(name, number, dtype=part) for name in ("real", "imag"))
        turned = graph.op("complex", graph.op("neg", im), re, dtype=value.dtype)
        is_first = graph.op("eq", graph.index(index[axis]), graph.const(0, dtypes.int64), dtype=dtypes.bool_)
        return graph.op("select", is_first, number, turned)

    def reads(index):
        return [(value, (*index[:axis], *index[axis + 1 :]))]

    return builder.compute(shape, value.dtype, reads, combine, 4, [value])


def find_complex_routine(eqn: Equation, tuning: Product) -> ProductRoutine | None:
    lhs, rhs = (atom.aval for atom in eqn.invars)
    numbers = (contract, batch) = eqn.params["dimension_numbers"]
    extents = (*lhs.shape, *rhs.shape)
    if 0 in extents or not all(isinstance(extent, int) for extent in extents):
        return None
    if not lhs.dtype == rhs.dtype == eqn.outvars[0].aval.dtype:
        return None
    if prefers_complex_loops(lhs.shape, rhs.shape, numbers):
        return None
    rows, columns = (free_dims(aval.ndim, *dims) for aval, *dims in zip((lhs, rhs), contract, batch))
    sizes = Sizes(*(product(aval.shape[dim] for dim in dims) for aval, dims in (
        (lhs, batch[0]), (lhs, rows), (rhs, columns), (rhs, contract[1]))))
    batch, m, n, k = sizes
    left, right = Operand(2 * m * k, 2 * k, 1), Operand(4 * k * n, 1, 2 * n)
    return multiply(dtypes.real_dtype(lhs.dtype), Sizes(batch, m, 2 * n, 2 * k), left, right, tuning,
                    "complex_product", ComplexProductRoutine, dimensions=numbers, extents=sizes)


def find_routine(eqn: Equation, tuning: Product) -> ProductRoutine | None:
    """The routine for a `dot_general`; None for other dtypes and where loops are better."""
    lhs, rhs = (atom.aval for atom in eqn.invars)
    out = eqn.outvars[0].aval
    if dtypes.is_complex(lhs.dtype):
        return find_complex_routine(eqn, tuning)
    if lhs.dtype not in (dtypes.float32, dtypes.float64) or not lhs.dtype == rhs.dtype == out.dtype:
        return None
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    lhs_contract, rhs_contract = order_contraction(lhs.shape, rhs.shape, lhs_contract, rhs_contract)
    sides = [
        (aval.shape, (batch, free_dims(aval.ndim, contract, batch), contract))
        for aval, contract, batch in ((lhs, lhs_contract, lhs_batch), (rhs, rhs_contract, rhs_batch))]
    if not all(runs_together(shape, dims) for shape, groups in sides for dims in groups):
        return None
    left, right = (Operand(*(_find_stride(shape, dims) for dims in groups)) for shape, groups in sides)
    (shape, (batch, rows, steps)), (right_shape, (_, columns, _)) = sides
    sizes = Sizes(*(int(product(extents[dim] for dim in dims)) for extents, dims in (
        (shape, batch), (shape, rows), (right_shape, columns), (shape, steps))))
    if prefers_loops(sizes, left, right, lhs.dtype.itemsize, tuning):
        return None
    rows, pitch = (sizes.m, left.free) if sizes.n == 1 else (sizes.n, right.free)
    along_rows = sizes.batch == min(sizes.m, sizes.n) == left.contracted == right.contracted == 1
    if along_rows and rows >= tuning.many_rows:
        return multiply_rows(lhs.dtype, rows, sizes.k, pitch, is_swapped=sizes.n != 1)
    matrix, vector = (left, right) if sizes.n == 1 else (right, left)
    if min(sizes.m, sizes.n) == 1 == matrix.free:
        strides = ((operand.item, operand.contracted) for operand in (vector, matrix))
        return multiply_columns(lhs.dtype, sizes.batch, max(sizes.m, sizes.n), sizes.k, *strides, tuning,
                                is_swapped=sizes.n == 1)
    if sizes.n > 1:
        return multiply(lhs.dtype, sizes, left, right, tuning, result_columns=sizes.n)
    # The transposed operands in opposite order: a column's elements then lie side by side.
    return multiply(lhs.dtype, sizes._replace(m=sizes.n, n=sizes.m), right, left, tuning, "swapped_product",
                    is_swapped=True, result_columns=sizes.n)


def _find_stride(shape: Sequence, dims: Sequence[int]) -> int:
    """Elements from one index of merged axes to the next; 1 where there is only one index."""
    wide = [dim for dim in dims if shape[dim] != 1]
    return int(product(shape[wide[-1] + 1 :])) if wide else 1


def prefers_loops(sizes: Sizes, left: Operand, right: Operand, itemsize: int, tuning: Product) -> bool:
    """Whether loops, vectorised by the scheduler and fused with what surrounds them, are faster.

    They are for small products, for sums of a few terms, and where a vector, or a few, multiply long rows:
    sums of products along memory. Short rows leave lanes empty, and are summed side by side."""
    batch, m, n, k = sizes
    if min(sizes) == 0 or k <= tuning.loop_steps or m * n * k < tuning.loop_work:
        return True
    is_thin = (1 < m <= tuning.few_left or 1 < n <= tuning.few_right) and k >= tuning.steps_of_few * min(m, n)
    if is_thin and left.contracted == right.contracted == 1:
        return True
    along_rows = (n == 1 and left.contracted == 1) or (m == 1 and right.contracted == 1)
    are_short = k > tuning.unrolled_steps and k * itemsize <= tuning.short_row_bytes
    return along_rows and not (are_short and m * n >= tuning.many_rows)


def plan_product(sizes: Sizes, left: Operand, right: Operand, itemsize: int, tuning: Product) -> Plan:
    """Blocks and ways of a product, from its sizes and the processor, so that results do not depend on the
    number of threads."""
    batch, m, n, k = sizes
    unpacked = tuning.unpacked_bytes_on_zen if host.is_zen() else tuning.unpacked_bytes
    block_steps = divide_evenly(k, tuning.block_steps)
    left_competes = any(stride * itemsize % _CACHE_PAGE == 0 for stride in (left.free, left.contracted))
    is_across = left.free == 1 and k * m * itemsize > unpacked
    packs_left = (left_competes or is_across) and n >= tuning.competing_columns
    left_tiles = _count_left_tiles(block_steps, itemsize, tuning) if packs_left else 0
    right_competes = right.contracted * itemsize % _CACHE_PAGE == 0 and m >= tuning.competing_rows
    is_far = k * n * itemsize > unpacked and m >= tuning.packed_rows
    packs_right = right.free != 1 or right_competes or is_far
    tiles = batch * -(-m // 8) * -(-n // 32)
    if tiles < tuning.few_tiles and k >= 2 * tuning.stretch_steps:
        splits = min(k // tuning.stretch_steps, tuning.most_stretches)
        return Plan(0, int(packs_right), batch, n, k, block_steps, splits)
    k_block = block_steps if packs_left or packs_right else k
    if not packs_right:
        return Plan(left_tiles, 0, batch, n, k_block, block_steps, 1)
    n_block = min(n, tuning.chunk_bytes // (k_block * itemsize))
    batch_block = min(batch, max(1, tuning.chunk_bytes // (n_block * k_block * itemsize)))
    return Plan(left_tiles, 1, batch_block, n_block, k_block, block_steps, 1)


def _count_left_tiles(steps: int, itemsize: int, tuning: Product) -> int:
    tile_bytes = choose_tile_shape(itemsize).rows * steps * itemsize
    return max(1, min(host.cache_sizes().l2 // tuning.left_share // tile_bytes, tuning.most_tiles))


def _list_parts(sizes: Sizes, plan: Plan, itemsize: int) -> tuple[str, ...]:
    widths = {min(plan.n_block, sizes.n), sizes.n % plan.n_block or plan.n_block}
    return list_parts(itemsize, sizes.m, widths, packs=bool(plan.left_tiles or plan.packs_right))


def divide_evenly(count: int, most: int) -> int:
    """The size of equal blocks of at most so many, the last of which may be smaller."""
    return -(-count // -(-count // most))


def count_work_bytes(sizes: Sizes, plan: Plan, itemsize: int) -> int:
    """Memory that machine code uses beside operands and result: tables, partial sums, packed panels."""
    count = 64 + _round_up(plan.batch_block * plan.splits * ITEM_BYTES, 64)
    if plan.splits > 1:
        count += _round_up(sizes.batch * plan.splits * sizes.m * sizes.n * itemsize, 64)
    if plan.packs_right:
        count += plan.batch_block * plan.k_block * _round_up(plan.n_block * itemsize, PANEL_BYTES)
    return count


def _round_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit
