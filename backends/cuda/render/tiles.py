"""Products of matrices, by tiles in shared memory.

In: a nest over rows and columns. Out: one `__global__` function, in which a block of threads has a tile.

What it takes: a sum of products, of which one factor does not depend on the loop over columns and the other
one not on that over rows. Blocks make tiles of the result from tiles of both factors. The factors may be
computed, not only read, and what follows the sum is done with each element of a tile: nothing is in memory in
between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.gpu.mapping import is_aligned
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I32, I64, call_intrinsic, element_constant, element_type
from jitcore.loopir.expr import Axis, Expr, walk
from jitcore.loopir.program import Kernel, Loop, Reduce, Store
from jitcore.loopir.traversal import peel

#: Threads along each side of a tile, and how far the tiles of factors go along the sum.
SIDE, DEPTH = 16, 16


class Tiling(NamedTuple):
    """outer: the loops around those over rows and columns. side: elements along each side of a tile."""

    outer: list[Loop]
    rows: Axis
    columns: Axis
    side: int

    @property
    def around(self) -> int:
        """The iterations of the outer loops."""
        return math.prod(int(loop.axis.extent) for loop in self.outer)

    @property
    def grid(self) -> int:
        counts = [-(-int(axis.extent) // self.side) for axis in (self.rows, self.columns)]
        return self.around * math.prod(counts)

    def place(self, e: KernelEmitter) -> tuple[ir.Value, ir.Value]:
        """The first row and column of this block's tile; sets the outer axes."""
        b, rest, places = e.b, e.read_register("ctaid.x"), []
        for axis in (self.columns, self.rows):
            count = e.divide_up(e.size(axis.extent), self.side)
            places.append(b.mul(b.urem(rest, count), I64(self.side)))
            rest = b.udiv(rest, count)
        e.place_axes([loop.axis for loop in self.outer], rest, self.around)
        return places[1], places[0]

    def go_to(self, e: KernelEmitter, row: ir.Value, column: ir.Value) -> ir.Value:
        """Sets the axes of rows and columns. Returns: whether that is inside."""
        e.axis_values[self.rows], e.axis_values[self.columns] = row, column
        return e.is_inside(self.rows, self.columns)


# -- products -----------------------------------------------------------------------------------------------
class Product(NamedTuple):
    """A sum of products. left, right: the factors. each: how many rows, and columns, of a tile one thread
    has."""

    tiling: Tiling
    reduce: Reduce
    left: Expr
    right: Expr
    stores: list[Store]
    each: int


def find_product(kernel: Kernel, tuning: Tuning) -> Product | None:
    """The product that a kernel is, if tiles pay for it."""
    loops, body = peel(kernel.body)
    reduce, *stores = body
    if len(loops) < 2 or not kernel.parallel or any(loop.bounds for loop in loops):
        return None
    if not isinstance(reduce, Reduce) or len(reduce.axes) > 1 or len(reduce.parts) > 1:
        return None
    if reduce.bounds or reduce.stores:
        return None
    _, op, expr = reduce.parts[0]
    if op != "add" or expr.op != "mul" or expr.dtype.kind not in "fiu" or expr.dtype.itemsize < 4:
        return None
    if not all(isinstance(s, Store) and not s.is_update for s in stores):
        return None
    *outer, rows, columns = loops
    if min(int(axis.extent) for axis in (rows.axis, columns.axis, reduce.axes[0])) < tuning.least_product:
        return None
    for left, right in (expr.args, expr.args[::-1]):
        is_left = columns.axis not in left.axes and rows.axis in left.axes
        if is_left and rows.axis not in right.axes and columns.axis in right.axes:
            each = _choose_size(outer, rows.axis, columns.axis, tuning)
            tiling = Tiling(outer, rows.axis, columns.axis, SIDE * each)
            return Product(tiling, reduce, left, right, stores, each)
    return None


def _choose_size(outer: list[Loop], rows: Axis, columns: Axis, tuning: Tuning) -> int:
    for each in (4, 2):
        if Tiling(outer, rows, columns, SIDE * each).grid >= tuning.many_tiles:
            return each
    return 1 if min(int(rows.extent), int(columns.extent)) <= SIDE else 2


class Factor(NamedTuple):
    """A factor, and its tile in shared memory: where it starts, and how far apart neighbours along the sum
    and along the side are."""

    value: Expr
    side: Axis
    start: int
    along: int
    across: int


class TileRenderer:
    """Emits the body of the function. Each thread multiplies and adds for a small square of the tile.
    emit_statements: for what follows the sum."""

    #: What multiplies, where that is not the usual arithmetic.
    units = ""
    #: How far the tiles of factors go along the sum. Bytes that a thread moves there at once; 0: one element.
    depth, access_bytes = DEPTH, 0

    def __init__(self, e: KernelEmitter, product: Product, emit_statements: Callable):
        self.e, self.product, self.emit_statements = e, product, emit_statements
        self.tiling, self.axis = product.tiling, product.reduce.axes[0]
        self.dtype, self.thread = product.left.dtype, e.read_register("tid.x")
        self.kind = element_type(self.dtype)
        self.factors, size = self.place_factors()
        self.shared = e.share(self.kind, max(size, self.tiling.side**2))

    def emit(self) -> None:
        e, places = self.e, self.tiling.place(self.e)
        self.begin()
        with e.for_range(I64(0), e.size(self.axis.extent), I64(self.depth)) as start:
            for factor, first in zip(self.factors, places):
                self._fill(factor, first, start)
            e.synchronize_block()
            self.multiply()
            e.synchronize_block()
        self.write_sums()
        e.synchronize_block()
        self._finish(*places)

    # -- arithmetic ---------------------------------------------------------------------------------------
    def place_factors(self) -> tuple[list[Factor], int]:
        """The tiles of both factors, and how many elements like a sum have room for them."""
        p, t = self.product, self.tiling
        # rows of the left tile are padded, so that writing along the sum meets other banks
        pitch = t.side + 4
        factors = [Factor(p.left, t.rows, 0, pitch, 1), Factor(p.right, t.columns, DEPTH * pitch, t.side, 1)]
        return factors, DEPTH * (pitch + t.side)

    def begin(self) -> None:
        """Sums that are zero."""
        b, each = self.e.b, self.product.each
        self.places = b.udiv(self.thread, I64(SIDE)), b.urem(self.thread, I64(SIDE))
        self.sums = [[self.start_sum() for _ in range(each)] for _ in range(each)]

    def start_sum(self) -> ir.Value:
        return self.e.stack_slot(element_constant(self.dtype, 0))

    def multiply(self) -> None:
        """Adds the product of both tiles to the sums."""
        with self.e.for_range(I64(0), I64(DEPTH)) as k:
            left, right = (self._read(self.find(factor, k, place))
                           for factor, place in zip(self.factors, self._find_square()))
            for row, x in zip(self.sums, left):
                for slot, y in zip(row, right):
                    self.e.write_slot(slot, self._add_product(x, y, self.e.read_slot(slot)))

    def write_sums(self) -> None:
        b, (down, across) = self.e.b, self._find_square()
        for number, row in enumerate(self.sums):
            for other, slot in enumerate(row):
                self.write_sum(slot, b.add(down, I64(number)), b.add(across, I64(other)))

    def write_sum(self, slot: ir.Value, row: ir.Value, column: ir.Value) -> None:
        """The sums go through shared memory, so that neighbouring threads store neighbouring elements."""
        b = self.e.b
        b.store(self.e.read_slot(slot), self.at(b.add(b.mul(row, I64(self.tiling.side)), column)))

    def _find_square(self) -> list[ir.Value]:
        """The first row and column of this thread's part of the tile."""
        return [self.e.b.mul(place, I64(self.product.each)) for place in self.places]

    def _add_product(self, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
        b = self.e.b
        if self.dtype.kind == "f":
            return call_intrinsic(b, "fma", [x, y, total])
        return b.add(b.mul(x, y), total)

    def _read(self, place: ir.Value) -> list[ir.Value]:
        """Elements side by side, in one access."""
        b, each = self.e.b, self.product.each
        if each == 1:
            return [b.load(self.at(place))]
        pointer = self.at(place, ir.VectorType(self.kind, each))
        value = b.load(pointer, align=min(16, each * self.dtype.itemsize))
        return [b.extract_element(value, I32(number)) for number in range(each)]

    # -- memory -------------------------------------------------------------------------------------------
    def find(self, factor: Factor, k: ir.Value, place: ir.Value) -> ir.Value:
        """Where an element of a factor is in shared memory."""
        b = self.e.b
        inside = b.add(b.mul(k, I64(factor.along)), b.mul(place, I64(factor.across)))
        return b.add(I64(factor.start), inside)

    def at(self, place: ir.Value, kind: ir.Type | None = None) -> ir.Value:
        """A pointer into shared memory. kind: what lies there, if not a sum; the place is counted in elements
        of it."""
        b, kind = self.e.b, kind or self.kind
        element = kind.element if isinstance(kind, ir.VectorType) else kind
        pointer = b.gep(b.bitcast(self.shared, element.as_pointer(addrspace=3)), [place])
        return b.bitcast(pointer, kind.as_pointer(addrspace=3))

    def _fill(self, factor: Factor, first: ir.Value, start: ir.Value) -> None:
        """A tile of a factor: so many elements along the sum from `start`, and along a side from `first`."""
        e, b, axis, value = self.e, self.e.b, self.axis, factor.value
        is_along = runs_along(value, axis)
        fast, extent = (axis, self.depth) if is_along else (factor.side, self.tiling.side)
        lanes = self._find_lanes(value, fast)
        with e.for_range(self.thread, I64(self.depth * self.tiling.side // lanes), I64(SIDE**2)) as number:
            low, high = (split(number, I64(extent // lanes)) for split in (b.urem, b.udiv))
            low = b.mul(low, I64(lanes))
            k, place = (low, high) if is_along else (high, low)
            e.axis_values[axis], e.axis_values[factor.side] = b.add(start, k), b.add(first, place)
            held = e.stack_slot(element_constant(value.dtype, 0, lanes))
            with e.if_then(e.is_inside(axis, factor.side)), e.in_lanes(fast, lanes):
                e.write_slot(held, e.expr_in_lanes(value))
            filled = e.read_slot(held)
            b.store(filled, self.at(self.find(factor, k, place), filled.type))

    def _find_lanes(self, factor: Expr, axis: Axis) -> int:
        """How many neighbours along an axis one access reads."""
        lanes = max(1, self.access_bytes // factor.dtype.itemsize)
        is_fine = all(is_aligned(index, axis, lanes) for index in _indexes(factor) if axis in index.axes())
        return lanes if is_fine and int(axis.extent) % lanes == 0 else 1

    def _finish(self, first_row: ir.Value, first_column: ir.Value) -> None:
        """What follows the sums, an element of a thread at a time."""
        e, b, p, t = self.e, self.e.b, self.product, self.tiling
        with e.for_range(self.thread, I64(t.side**2), I64(SIDE**2)) as number:
            row, column = b.udiv(number, I64(t.side)), b.urem(number, I64(t.side))
            row, column = b.add(first_row, row), b.add(first_column, column)
            e.results[p.reduce.parts[0][0]] = b.load(self.at(number))
            with e.if_then(t.go_to(e, row, column)):
                self.emit_statements(e, p.stores)


def _indexes(factor: Expr) -> list:
    return [node.attr[1] for node in walk([factor]) if node.op == "load"]


def runs_along(factor: Expr, axis: Axis) -> bool:
    """Whether neighbours in memory lie along the axis of the sum."""
    return any(index.coefficient(axis) == 1 for index in _indexes(factor))
