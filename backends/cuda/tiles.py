"""Products of matrices: blocks of threads make tiles of the result from tiles of both factors.

In: a nest of loops around one sum of products, of which one factor does not depend on the loop over columns
and the other one not on that over rows. Out: one `__global__` function. The factors may be computed, not only
read, and what follows the sum is done with each element of a tile: nothing is in memory in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.emitter import KernelEmitter
from jitcore.backends.cuda.mapping import peel_loops
from jitcore.backends.cuda.tiling import Tiling
from jitcore.backends.llvm.lanes import I32, I64, call_intrinsic, element_constant, element_type
from jitcore.loopir.expr import Expr, walk
from jitcore.loopir.index import Axis
from jitcore.loopir.program import Kernel, Loop, Reduce, Store

#: Threads along each side of a tile, and how far the tiles of factors go along the sum.
SIDE, DEPTH = 16, 16
#: Extents from which on tiles pay.
LEAST = 8
#: Tiles that keep a GPU busy: where there are fewer of the large ones, they are smaller.
MANY_TILES = 132


class Product(NamedTuple):
    """A sum of products. left, right: the factors. each: how many rows, and columns, of a tile one thread
    has."""

    tiling: Tiling
    reduce: Reduce
    left: Expr
    right: Expr
    stores: list[Store]
    each: int


def find_product(kernel: Kernel) -> Product | None:
    """The product that a kernel is, if tiles pay for it."""
    loops, body = peel_loops(kernel.body)
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
    extents = [int(axis.extent) for axis in (rows.axis, columns.axis, reduce.axes[0])]
    if min(extents) < LEAST:
        return None
    for left, right in (expr.args, expr.args[::-1]):
        is_left = columns.axis not in left.axes and rows.axis in left.axes
        if is_left and rows.axis not in right.axes and columns.axis in right.axes:
            each = _choose_size(outer, rows.axis, columns.axis)
            tiling = Tiling(outer, rows.axis, columns.axis, SIDE * each)
            return Product(tiling, reduce, left, right, stores, each)
    return None


def _choose_size(outer: list[Loop], rows: Axis, columns: Axis) -> int:
    for each in (4, 2):
        if Tiling(outer, rows, columns, SIDE * each).grid >= MANY_TILES:
            return each
    return 1 if min(int(rows.extent), int(columns.extent)) <= SIDE else 2


class TileRenderer:
    """Emits the body of the function. emit_statements: for what follows the sum."""

    def __init__(self, e: KernelEmitter, product: Product, emit_statements: Callable):
        self.e, self.product, self.emit_statements = e, product, emit_statements
        self.dtype = product.left.dtype
        self.kind = element_type(self.dtype)
        self.tiling, tile = product.tiling, product.tiling.side
        # rows of the left tile are padded, so that writing along the sum meets other banks
        self.pitch = tile + 4
        self.shared = e.share(self.kind, max(DEPTH * (self.pitch + tile), tile * tile))

    def emit(self) -> None:
        e, b, p, t = self.e, self.e.b, self.product, self.tiling
        thread = e.read_register("tid.x")
        across, down = b.urem(thread, I64(SIDE)), b.udiv(thread, I64(SIDE))
        first_row, first_column = t.place(e)
        sums = [[e.stack_slot(element_constant(self.dtype, 0)) for _ in range(p.each)] for _ in range(p.each)]
        axis = p.reduce.axes[0]
        depth = e.size(axis.extent)

        def run(start):
            self._fill(thread, p.left, t.rows, first_row, start, I64(0), self.pitch)
            self._fill(thread, p.right, t.columns, first_column, start, I64(DEPTH * self.pitch), t.side)
            e.synchronize_block()
            e.loop(I64(0), I64(DEPTH), I64(1), lambda k: self._multiply(k, down, across, sums))
            e.synchronize_block()

        e.loop(I64(0), depth, I64(DEPTH), run)
        self._finish(thread, down, across, sums, first_row, first_column)

    def _fill(self, thread: ir.Value, factor: Expr, side: Axis, first: ir.Value, start: ir.Value,
              offset: ir.Value, pitch: int) -> None:  # fmt: skip
        """A tile of a factor: so many elements along the sum from `start`, and along a side from `first`."""
        e, b = self.e, self.e.b
        axis, tile = self.product.reduce.axes[0], self.tiling.side
        runs_along = _runs_along(factor, axis)

        def move(number):
            fast, slow = (DEPTH, axis) if runs_along else (tile, side)
            low, high = b.urem(number, I64(fast)), b.udiv(number, I64(fast))
            k, place = (low, high) if slow is axis else (high, low)
            e.axis_values[axis], e.axis_values[side] = b.add(start, k), b.add(first, place)
            held = e.stack_slot(element_constant(self.dtype, 0))
            e.when(e.is_inside(axis, side), lambda: e.write_slot(held, e.expr(factor)))
            at = b.add(offset, b.add(b.mul(k, I64(pitch)), place))
            b.store(e.read_slot(held), self._at(at))

        e.loop(thread, I64(DEPTH * tile), I64(SIDE * SIDE), move)

    def _multiply(self, k: ir.Value, down: ir.Value, across: ir.Value, sums: list[list[ir.Value]]) -> None:
        e, b, p = self.e, self.e.b, self.product
        left = self._read(b.add(b.mul(k, I64(self.pitch)), b.mul(down, I64(p.each))))
        base = b.add(I64(DEPTH * self.pitch), b.mul(k, I64(self.tiling.side)))
        right = self._read(b.add(base, b.mul(across, I64(p.each))))
        for row, x in zip(sums, left):
            for slot, y in zip(row, right):
                e.write_slot(slot, self._add_product(x, y, e.read_slot(slot)))

    def _add_product(self, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
        b = self.e.b
        if self.dtype.kind == "f":
            return call_intrinsic(b, "fma", [x, y, total])
        return b.add(b.mul(x, y), total)

    def _read(self, place: ir.Value) -> list[ir.Value]:
        """Elements side by side, in one access."""
        b, each = self.e.b, self.product.each
        if each == 1:
            return [b.load(self._at(place))]
        whole = ir.VectorType(self.kind, each)
        pointer = b.bitcast(self._at(place), whole.as_pointer(addrspace=3))
        value = b.load(pointer, align=min(16, each * self.dtype.itemsize))
        return [b.extract_element(value, I32(number)) for number in range(each)]

    def _at(self, place: ir.Value) -> ir.Value:
        return self.e.b.gep(self.shared, [I64(0), place])

    def _finish(self, thread, down, across, sums, first_row, first_column) -> None:
        """The sums go through shared memory, so that neighbouring threads store neighbouring elements."""
        e, b, p, t = self.e, self.e.b, self.product, self.tiling
        for number, row in enumerate(sums):
            for other, slot in enumerate(row):
                place = b.add(b.mul(b.add(b.mul(down, I64(p.each)), I64(number)), I64(t.side)),
                              b.add(b.mul(across, I64(p.each)), I64(other)))  # fmt: skip
                b.store(e.read_slot(slot), self._at(place))
        e.synchronize_block()
        result = p.reduce.parts[0][0]

        def store(number):
            row, column = b.udiv(number, I64(t.side)), b.urem(number, I64(t.side))
            row, column = b.add(first_row, row), b.add(first_column, column)
            e.axis_values[t.rows], e.axis_values[t.columns] = row, column
            e.results[result] = b.load(self._at(number))
            e.when(e.is_inside(t.rows, t.columns), lambda: self.emit_statements(e, p.stores))

        e.loop(thread, I64(t.side * t.side), I64(SIDE * SIDE), store)


def _runs_along(factor: Expr, axis: Axis) -> bool:
    """Whether neighbours in memory lie along the axis of the sum."""
    indexes = [node.attr[1] for node in walk([factor]) if node.op == "load"]
    return any(index.coefficient(axis) == 1 for index in indexes)
