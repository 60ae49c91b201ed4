"""Triangular systems with right-hand sides in rows, on one thread.

In: a `lapack_code` writer at one pair of matrices of real numbers. Out: code that replaces BLAS's `trsm`.

Unknowns are found in groups of rows, each group for a tile's width of right-hand sides at a time: what the
rows known before leave of them is summed in registers, then divided by the group's own triangle.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.routines.linalg.block_tile import (BlockShape, BlockWriter, Tile, align,
                                                             clear_vectors, fill, find_pitch)
from jitcore.backends.cpu.routines.linalg.routine import PADDED_UNIT
from jitcore.backends.llvm.registers import I64


def write_block_solve(w, side: str, triangle: str, form: str, diagonal: str) -> None:
    """T Y = C by substitution, where T is op(A) and Y is X, or both are transposed for X op(A) = B."""
    b, rows, columns, n = w.b, w.numbers["rows"], w.numbers["columns"], w.numbers["n"]
    is_left, is_transposed = side == "l", form != "n"
    size, others = b.mul(rows, columns), columns if is_left else rows
    is_forward = (triangle == "l") ^ is_transposed ^ (not is_left)
    shape, pitch = BlockShape(w), find_pitch(w, others)
    x = align(w, w.room("work", w.real))
    with w.loop(I64(0), n) as i:
        clear_vectors(w, shape, b.gep(x, [b.add(b.mul(i, pitch), others)]))
    w.clear(b.gep(x, [b.mul(n, pitch)]), b.mul(I64(PADDED_UNIT), pitch))
    _copy_sides(w, w.at("b", size, w.real), x, pitch, is_left)
    triangle = _Triangle(w, shape, w.at("a", b.mul(n, n), w.real), is_left != is_transposed, diagonal == "n")
    triangle.packed = b.gep(x, [b.mul(b.add(n, I64(PADDED_UNIT)), pitch)])
    solve = define_solve(w, shape, is_forward)
    last = b.mul(b.sdiv(b.sub(n, I64(1)), I64(shape.rows)), I64(shape.rows))
    with w.loop(I64(0), n, shape.rows) as distance:
        first = distance if is_forward else b.sub(last, distance)
        start = I64(0) if is_forward else w.smaller(b.add(first, I64(shape.rows)), n)
        steps = b.sub(first if is_forward else n, start)
        triangle.pack(first, start, steps)
        target, known = (b.gep(x, [b.mul(row, pitch)]) for row in (first, start))
        b.call(solve, [target, pitch, triangle.packed, I64(PADDED_UNIT), known, steps, triangle.own,
                       I64(shape.rows), triangle.inverses, others])
    _copy_sides(w, w.at("out", size, w.real), x, pitch, is_left, is_back=True)


def _copy_sides(w, sides: ir.Value, x: ir.Value, pitch: ir.Value, is_left: bool, is_back: bool = False):
    """Copies right-hand sides, or solutions, between the matrix of the caller and the rows of work memory."""
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    if is_left:
        with w.loop(I64(0), rows) as i:
            pair = b.gep(x, [b.mul(i, pitch)]), b.gep(sides, [b.mul(i, columns)])
            w.copy(*(pair[::-1] if is_back else pair), columns)
        return
    kind = ir.IntType(8 * w.real_size).as_pointer()
    sides, x = b.bitcast(sides, kind), b.bitcast(x, kind)
    if is_back:
        w.transpose(sides, columns, x, pitch, columns, rows)
    else:
        w.transpose(x, pitch, sides, columns, rows, columns)


class _Triangle:
    """T, of which a group of rows is copied at a time: what multiplies known rows, by steps, into `packed`;
    its own triangle, by steps, into `own`; and the inverses of its diagonal."""

    def __init__(self, w, shape: BlockShape, a: ir.Value, is_by_rows: bool, divides: bool):
        self.w, self.shape, self.a, self.n = w, shape, a, w.numbers["n"]
        self.is_by_rows, self.divides = is_by_rows, divides
        self.packed = None
        self.own = w.slot(w.real, shape.rows * shape.rows)
        self.inverses = w.slot(w.real, shape.rows)

    def pack(self, first: ir.Value, start: ir.Value, steps: ir.Value) -> None:
        """The group of rows from `first` on, and its steps from `start` on."""
        w, b, group = self.w, self.w.b, I64(self.shape.rows)
        count = w.smaller(b.sub(self.n, first), group)
        source = b.gep(self.a, [self._offset(first, start)])
        if self.is_by_rows:
            kind = ir.IntType(8 * w.real_size).as_pointer()
            turned = w.smaller(b.sub(self.n, first), I64(PADDED_UNIT))  # rows of the next group fill vectors
            w.transpose(b.bitcast(self.packed, kind), I64(PADDED_UNIT), b.bitcast(source, kind), self.n,
                        turned, steps)
        else:
            self._copy_steps(source, count, steps)
        fill(w, self.own, I64(self.shape.rows**2))
        fill(w, self.inverses, group, 1.0)
        with w.loop(I64(0), count) as i:
            with w.loop(I64(0), count) as k:
                place = self._offset(b.add(first, i), b.add(first, k))
                b.store(b.load(b.gep(self.a, [place])), b.gep(self.own, [b.add(b.mul(k, group), i)]))
            if self.divides:
                own = b.load(b.gep(self.own, [b.mul(i, b.add(group, I64(1)))]))
                b.store(b.fdiv(ir.Constant(w.real, 1.0), own), b.gep(self.inverses, [i]))

    def _offset(self, row: ir.Value, column: ir.Value) -> ir.Value:
        b = self.w.b
        across, along = (row, column) if self.is_by_rows else (column, row)
        return b.add(b.mul(across, self.n), along)

    def _copy_steps(self, source: ir.Value, count: ir.Value, steps: ir.Value) -> None:
        w, b, size = self.w, self.w.b, self.w.real_size
        group = ir.VectorType(w.real, self.shape.rows).as_pointer()
        with b.if_else(b.icmp_signed("==", count, I64(self.shape.rows))) as (is_whole, is_part):
            with is_whole, w.loop(I64(0), steps) as k:
                vector = b.load(b.bitcast(b.gep(source, [b.mul(k, self.n)]), group), align=size)
                target = b.gep(self.packed, [b.mul(k, I64(PADDED_UNIT))])
                b.store(vector, b.bitcast(target, group), align=size)
            with is_part, w.loop(I64(0), steps) as k, w.loop(I64(0), count) as i:
                value = b.load(b.gep(source, [b.add(b.mul(k, self.n), i)]))
                b.store(value, b.gep(self.packed, [b.add(b.mul(k, I64(PADDED_UNIT)), i)]))


def define_solve(w, shape: BlockShape, is_forward: bool) -> ir.Function:
    """The function `solve(x, pitch, left, left_pitch, known, steps, own, own_pitch, inverses, columns)`.

    x: a group of rows, from which left @ known is subtracted; then the group's triangle divides them, from
    the first row on or from the last one. own: that triangle, by steps; inverses: of its diagonal."""
    name = "solve_forward" if is_forward else "solve_backward"
    pointer = w.real.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, I64, pointer, I64, pointer, I64, pointer, I64, pointer,
                                           I64])
    function = ir.Function(w.module, kind, name)
    inner = BlockWriter(w, function)
    b = inner.b
    x, pitch, left, left_pitch, known, steps, own, own_pitch, inverses, columns = function.args
    tile = Tile(inner, shape, shape.rows)
    order = range(shape.rows) if is_forward else range(shape.rows - 1, -1, -1)
    with inner.loop(I64(0), columns, shape.width) as j:
        tile.clear()
        tile.subtract_products(left, left_pitch, b.gep(known, [j]), pitch, steps)
        target = b.gep(x, [j])
        tile.add(target, pitch)
        for number, row in enumerate(order):
            for other in order[:number]:
                factor = b.load(b.gep(own, [b.add(b.mul(own_pitch, I64(other)), I64(row))]))
                tile.subtract_row(row, factor, other)
            tile.scale(row, b.load(b.gep(inverses, [I64(row)])))
            tile.store_row(row, target, pitch)
    b.ret_void()
    return function
