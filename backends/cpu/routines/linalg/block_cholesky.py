"""Cholesky factors of matrices that fit a core's caches, in one sweep on one thread.

In: a `lapack_code` writer at one matrix of real numbers. Out: code that replaces LAPACK, whose threads take
longer to wake than such matrices to factorize, and whose kernels may not know the widest vectors.

The upper factor U, U^T U = A, is made from the top in groups of rows. A tile of a group is what all rows
above leave of it, summed in registers, then divided by the group's own triangle before it is stored: each
element is written once. Rows are padded: no tile has an edge, and what lies behind the last column never
reaches a column before it.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.routines.linalg.block_tile import (BlockShape, Tile, align, clear_vectors,
                                                             find_pitch, round_up)
from jitcore.backends.llvm.registers import I64

_I32 = ir.IntType(32)


def write_block_cholesky(w) -> None:
    b, n = w.b, w.numbers["n"]
    shape = BlockShape(w)
    pitch, size = find_pitch(w, n), w.square(n)
    upper = align(w, w.room("work", w.real))
    integers = ir.IntType(8 * w.real_size).as_pointer()
    w.transpose(b.bitcast(upper, integers), pitch, w.at("x", size), n, n, n)
    padded = round_up(w, n, shape.rows)
    _pad(w, shape, upper, pitch, n, padded)
    failed = w.slot(ir.IntType(1))
    b.store(ir.Constant(ir.IntType(1), 0), failed)
    with w.loop(I64(0), padded, shape.rows) as first:
        group = _Group(w, shape, upper, pitch, first)
        group.write_corner(failed)
        with w.loop(b.add(first, I64(shape.width)), padded, shape.width) as column:
            group.write_tile(column)
    out = w.at("out", size)
    w.transpose(out, n, b.bitcast(upper, integers), pitch, n, n)
    with w.loop(I64(0), n) as i:
        start = b.add(b.mul(i, n), b.add(i, I64(1)))
        w.clear(b.gep(out, [start]), b.sub(b.sub(n, i), I64(1)))
    with b.if_then(b.load(failed), likely=False), w.loop(I64(0), n) as i:
        w.poison(b.gep(out, [b.mul(i, n)]), b.add(i, I64(1)))


def _pad(w, shape: BlockShape, upper: ir.Value, pitch: ir.Value, n: ir.Value, padded: ir.Value) -> None:
    """Rows and columns of a unit matrix behind the last ones, up to a whole group, and zeros behind these, as
    far as tiles go."""
    b = w.b
    zero, one = (ir.Constant(w.real, value) for value in (0.0, 1.0))
    with w.loop(I64(0), padded) as i:
        behind = b.gep(upper, [b.add(b.mul(i, pitch), n)])
        clear_vectors(w, shape, behind, shape.rows + shape.width)
        start = b.select(b.icmp_signed("<", i, n), n, I64(0))
        with w.loop(start, padded) as j:
            value = b.select(b.icmp_signed("==", i, j), one, zero)
            b.store(value, b.gep(upper, [b.add(b.mul(i, pitch), j)]))


class _Group:
    """Rows from `first` on: their tiles from left to right, the one on the diagonal before the others."""

    def __init__(self, w, shape: BlockShape, upper: ir.Value, pitch: ir.Value, first: ir.Value):
        self.w, self.shape, self.upper, self.pitch, self.first = w, shape, upper, pitch, first
        self.tile = Tile(w, shape, shape.rows)
        self.inverses = w.slot(w.real, shape.rows)

    def write_corner(self, failed: ir.Value) -> None:
        """The tile on the diagonal, whose own elements divide it. failed: set where one is not positive."""
        w, b, shape = self.w, self.w.b, self.shape
        self._subtract_above(self.first)
        square_root = w.module.declare_intrinsic("llvm.sqrt", [w.real])
        for row in range(shape.rows):
            self._subtract_own(row)
            vector = b.load(self.tile.sums[row][row // shape.lanes])
            pivot = b.extract_element(vector, _I32(row % shape.lanes))
            is_positive = b.fcmp_ordered(">", pivot, ir.Constant(w.real, 0.0))
            b.store(b.or_(b.load(failed), b.not_(is_positive)), failed)
            inverse = b.fdiv(ir.Constant(w.real, 1.0), b.call(square_root, [pivot]))
            b.store(inverse, b.gep(self.inverses, [I64(row)]))
            self._finish_row(row, self.first, inverse)

    def write_tile(self, column: ir.Value) -> None:
        self._subtract_above(column)
        for row in range(self.shape.rows):
            self._subtract_own(row)
            self._finish_row(row, column, self.w.b.load(self.w.b.gep(self.inverses, [I64(row)])))

    def _place(self, row: ir.Value, column: ir.Value) -> ir.Value:
        b = self.w.b
        return b.gep(self.upper, [b.add(b.mul(row, self.pitch), column)])

    def _own_row(self, row: int) -> ir.Value:
        return self.w.b.add(self.first, I64(row))

    def _subtract_above(self, column: ir.Value) -> None:
        """What the rows above leave of a tile. The products are summed by themselves: their sum is smaller
        than what it is subtracted from, and so are its rounding errors."""
        left, right = self._place(I64(0), self.first), self._place(I64(0), column)
        self.tile.clear()
        self.tile.subtract_products(left, self.pitch, right, self.pitch, self.first)
        self.tile.add(self._place(self.first, column), self.pitch)

    def _subtract_own(self, row: int) -> None:
        """Less the products of the group's rows before this one."""
        for other in range(row):
            factor = self.w.b.load(self._place(self._own_row(other), self._own_row(row)))
            self.tile.subtract_row(row, factor, other)

    def _finish_row(self, row: int, column: ir.Value, inverse: ir.Value) -> None:
        self.tile.scale(row, inverse)
        self.tile.store_row(row, self._place(self.first, column), self.pitch)
