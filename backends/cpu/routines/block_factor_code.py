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

from jitcore.backends.cpu import cpuinfo
from jitcore.backends.cpu.lanes import I64, splat
from jitcore.backends.cpu.routines.lapack import PADDED_UNIT, PADDING

_CONTRACT = ["contract"]
# Registers of a tile's row, and rows of a tile: `lapack.PADDING` holds a tile's width and its rows.
_VECTORS, _MOST_ROWS = 2, 12
_I32 = ir.IntType(32)


class _Shape:
    """Rows and vectors of the tile that fills the registers, beside what it reads."""

    def __init__(self, w):
        vector_bytes = cpuinfo.native_vector_bytes()
        registers = 32 if vector_bytes == 64 else 16
        self.rows = min(_MOST_ROWS, (registers - 4) // _VECTORS)
        self.lanes = vector_bytes // w.real_size
        self.vector = ir.VectorType(w.real, self.lanes)
        self.width = _VECTORS * self.lanes


def write_block_cholesky(w) -> None:
    b, n = w.b, w.numbers["n"]
    shape = _Shape(w)
    pitch, size = _find_pitch(w, n), w.square(n)
    upper = _align(w, w.room("work", w.real))
    integers = ir.IntType(8 * w.real_size).as_pointer()
    w.transpose(b.bitcast(upper, integers), pitch, w.at("x", size), n, n, n)
    padded = b.mul(b.sdiv(b.add(n, I64(shape.rows - 1)), I64(shape.rows)), I64(shape.rows))
    _pad(w, upper, pitch, n, padded)
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


def _find_pitch(w, n: ir.Value) -> ir.Value:
    """Elements from row to row, as `lapack.pad_rows` has it: an odd number of cache lines."""
    b, unit = w.b, I64(PADDED_UNIT)
    lines = b.or_(b.sdiv(b.add(n, I64(PADDING + PADDED_UNIT - 1)), unit), I64(1))
    return b.mul(lines, unit)


def _align(w, pointer: ir.Value) -> ir.Value:
    """The first multiple of 64 bytes."""
    b = w.b
    address = b.and_(b.add(b.ptrtoint(pointer, I64), I64(63)), I64(-64))
    return b.inttoptr(address, pointer.type)


def _pad(w, upper: ir.Value, pitch: ir.Value, n: ir.Value, padded: ir.Value) -> None:
    """Rows and columns of a unit matrix behind the last ones, up to a whole group."""
    b = w.b
    zero, one = (ir.Constant(w.real, value) for value in (0.0, 1.0))
    with w.loop(I64(0), padded) as i:
        start = b.select(b.icmp_signed("<", i, n), n, I64(0))
        with w.loop(start, padded) as j:
            value = b.select(b.icmp_signed("==", i, j), one, zero)
            b.store(value, b.gep(upper, [b.add(b.mul(i, pitch), j)]))


class _Group:
    """Rows from `first` on: their tiles from left to right, the one on the diagonal before the others."""

    def __init__(self, w, shape: _Shape, upper: ir.Value, pitch: ir.Value, first: ir.Value):
        self.w, self.shape, self.upper, self.pitch, self.first = w, shape, upper, pitch, first
        self.sums = [[w.slot(shape.vector) for _ in range(_VECTORS)] for _ in range(shape.rows)]
        self.inverses = w.slot(w.real, shape.rows)

    def write_corner(self, failed: ir.Value) -> None:
        """The tile on the diagonal, whose own elements divide it. failed: set where one is not positive."""
        w, b, shape = self.w, self.w.b, self.shape
        self._subtract_above(self.first)
        square_root = w.module.declare_intrinsic("llvm.sqrt", [w.real])
        for row in range(shape.rows):
            self._subtract_own(row)
            vector = b.load(self.sums[row][row // shape.lanes])
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

    def _vectors_at(self, row: ir.Value, column: ir.Value) -> list[ir.Value]:
        b = self.w.b
        start = self._place(row, column)
        return [b.bitcast(b.gep(start, [I64(part * self.shape.lanes)]), self.shape.vector.as_pointer())
                for part in range(_VECTORS)]  # fmt: skip

    def _subtract_above(self, column: ir.Value) -> None:
        """What the rows above leave of a tile, into `sums`. The products are summed by themselves: their sum
        is smaller than what it is subtracted from, and so are its rounding errors."""
        w, b, align = self.w, self.w.b, self.w.real_size
        for total in (total for sums in self.sums for total in sums):
            b.store(ir.Constant(self.shape.vector, None), total)
        with w.loop(I64(0), self.first) as k:
            right = [b.load(place, align=align) for place in self._vectors_at(k, column)]
            left = self._place(k, self.first)
            for row, sums in enumerate(self.sums):
                self._subtract(sums, b.load(b.gep(left, [I64(row)])), right)
        for row, sums in enumerate(self.sums):
            for place, total in zip(self._vectors_at(self._own_row(row), column), sums):
                b.store(b.fadd(b.load(place, align=align), b.load(total)), total)

    def _subtract_own(self, row: int) -> None:
        """Less the products of the group's rows before this one."""
        b = self.w.b
        for other in range(row):
            factor = b.load(self._place(self._own_row(other), self._own_row(row)))
            self._subtract(self.sums[row], factor, [b.load(total) for total in self.sums[other]])

    def _subtract(self, sums: list[ir.Value], factor: ir.Value, right: list[ir.Value]) -> None:
        b = self.w.b
        factor = splat(b, factor, self.shape.lanes)
        for total, vector in zip(sums, right):
            product = b.fmul(factor, vector, flags=_CONTRACT)
            b.store(b.fsub(b.load(total), product, flags=_CONTRACT), total)

    def _finish_row(self, row: int, column: ir.Value, inverse: ir.Value) -> None:
        b = self.w.b
        inverse = splat(b, inverse, self.shape.lanes)
        for place, total in zip(self._vectors_at(self._own_row(row), column), self.sums[row]):
            value = b.fmul(b.load(total), inverse)
            b.store(value, total)
            b.store(value, place, align=self.w.real_size)
