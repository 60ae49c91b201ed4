"""Tiles of matrices in registers: what the blocked factorisations and solvers on one thread are made of.

In: a `CodeWriter` with `module`, `real` and `real_size`. Out: LLVM instructions that load, change and store
tiles, and the function `update` that subtracts a product of matrices tile by tile.

A left operand of a product lies *by steps*: the elements that a step multiplies are neighbours. Tiles have no
edges: rows and columns of work memory are padded, and what lies behind the last one never reaches what is
before it.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.routines.code_writer import CodeWriter
from jitcore.backends.cpu.routines.linalg.routine import PADDED_UNIT, PADDING
from jitcore.backends.llvm.registers import I64, splat

CONTRACT = ["contract"]
# Registers of a tile's row, and rows of a tile: `routine.PADDING` holds a tile's width and its rows.
_VECTORS, _MOST_ROWS = 2, 12


class BlockShape:
    """Rows and lanes of the tile that fills the registers, beside what it reads; `few`: rows of a tile for
    what is left below the last whole one."""

    def __init__(self, w):
        vector_bytes = host.native_vector_bytes()
        registers = 32 if vector_bytes == 64 else 16
        self.lanes = vector_bytes // w.real_size
        self.vector = ir.VectorType(w.real, self.lanes)
        self.width = _VECTORS * self.lanes
        self.rows = min(_MOST_ROWS, (registers - 4) // _VECTORS, self.width)  # a tile holds its diagonal
        self.few = self.rows // 3


def find_pitch(w, n: ir.Value) -> ir.Value:
    """Elements from row to row, as `routine.pad_rows` has it: an odd number of cache lines."""
    b, unit = w.b, I64(PADDED_UNIT)
    lines = b.or_(b.sdiv(b.add(n, I64(PADDING + PADDED_UNIT - 1)), unit), I64(1))
    return b.mul(lines, unit)


def align(w, pointer: ir.Value) -> ir.Value:
    """The first multiple of 64 bytes."""
    b = w.b
    address = b.and_(b.add(b.ptrtoint(pointer, I64), I64(63)), I64(-64))
    return b.inttoptr(address, pointer.type)


def round_up(w, count: ir.Value, unit: int) -> ir.Value:
    return w.b.mul(w.b.sdiv(w.b.add(count, I64(unit - 1)), I64(unit)), I64(unit))


def fill(w, start: ir.Value, count: ir.Value, value: float = 0.0) -> None:
    """Stores a number into elements from start on."""
    with w.loop(I64(0), count) as k:
        w.b.store(ir.Constant(w.real, value), w.b.gep(start, [k]))


def clear_vectors(w, shape: BlockShape, start: ir.Value, count: int | None = None) -> None:
    """Stores zeros into at least `count` elements from start on, by default a tile's width: what lies there
    may be numbers that are slow."""
    b = w.b
    for part in range(-(-(count or shape.width) // shape.lanes)):
        place = b.bitcast(b.gep(start, [I64(part * shape.lanes)]), shape.vector.as_pointer())
        b.store(ir.Constant(shape.vector, None), place, align=w.real_size)


class BlockWriter(CodeWriter):
    """The writer of a function that others of the module call."""

    def __init__(self, w, function: ir.Function):
        super().__init__(function)
        function.linkage = "internal"
        self.module, self.real, self.real_size = w.module, w.real, w.real_size


class Tile:
    """rows x width sums; `sums` are slots of the stack, which become registers."""

    def __init__(self, w, shape: BlockShape, rows: int):
        self.w, self.shape, self.rows = w, shape, rows
        self.sums = [[w.slot(shape.vector) for _ in range(_VECTORS)] for _ in range(rows)]

    def clear(self) -> None:
        for total in (total for sums in self.sums for total in sums):
            self.w.b.store(ir.Constant(self.shape.vector, None), total)

    def load(self, start: ir.Value, pitch: ir.Value) -> None:
        for row in range(self.rows):
            for total, vector in zip(self.sums[row], self._load_row(start, pitch, row)):
                self.w.b.store(vector, total)

    def add(self, start: ir.Value, pitch: ir.Value) -> None:
        """Adds what is in memory."""
        b = self.w.b
        for row in range(self.rows):
            for total, vector in zip(self.sums[row], self._load_row(start, pitch, row)):
                b.store(b.fadd(vector, b.load(total)), total)

    def store(self, start: ir.Value, pitch: ir.Value) -> None:
        for row in range(self.rows):
            self.store_row(row, start, pitch)

    def store_row(self, row: int, start: ir.Value, pitch: ir.Value) -> None:
        b = self.w.b
        for place, total in zip(self._places(start, pitch, row), self.sums[row]):
            b.store(b.load(total), place, align=self.w.real_size)

    def subtract_products(self, left: ir.Value, left_pitch: ir.Value, right: ir.Value, right_pitch: ir.Value,
                          steps: ir.Value) -> None:
        """Subtracts, for each step, the products of `rows` elements of left with a row of right."""
        w, b = self.w, self.w.b
        with w.loop(I64(0), steps) as k:
            vectors = self._load_row(b.gep(right, [b.mul(k, right_pitch)]), I64(0), 0)
            factors = b.gep(left, [b.mul(k, left_pitch)])
            for row in range(self.rows):
                self.subtract(row, b.load(b.gep(factors, [I64(row)])), vectors)

    def subtract(self, row: int, factor: ir.Value, vectors: list[ir.Value]) -> None:
        """Subtracts the product of a number and vectors from a row."""
        b = self.w.b
        factor = splat(b, factor, self.shape.lanes)
        for total, vector in zip(self.sums[row], vectors):
            product = b.fmul(factor, vector, flags=CONTRACT)
            b.store(b.fsub(b.load(total), product, flags=CONTRACT), total)

    def subtract_row(self, row: int, factor: ir.Value, other: int) -> None:
        """Subtracts the product of a number and another row of the tile."""
        self.subtract(row, factor, [self.w.b.load(total) for total in self.sums[other]])

    def scale(self, row: int, factor: ir.Value) -> None:
        b = self.w.b
        factor = splat(b, factor, self.shape.lanes)
        for total in self.sums[row]:
            b.store(b.fmul(b.load(total), factor), total)

    def _load_row(self, start: ir.Value, pitch: ir.Value, row: int) -> list[ir.Value]:
        return [self.w.b.load(place, align=self.w.real_size) for place in self._places(start, pitch, row)]

    def _places(self, start: ir.Value, pitch: ir.Value, row: int) -> list[ir.Value]:
        b, shape = self.w.b, self.shape
        line = b.gep(start, [b.mul(pitch, I64(row))])
        return [b.bitcast(b.gep(line, [I64(part * shape.lanes)]), shape.vector.as_pointer())
                for part in range(_VECTORS)]


def define_update(w, shape: BlockShape) -> ir.Function:
    """The function `update(c, pitch, left, left_pitch, right, right_pitch, rows, columns, steps)`:
    c -= left @ right, on rows x columns elements of c, rounded up to `few` rows and a tile's width."""
    found = w.module.globals.get("update")
    if found is not None:
        return found
    pointer = w.real.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, I64, pointer, I64, pointer, I64, I64, I64, I64])
    function = ir.Function(w.module, kind, "update")
    inner = BlockWriter(w, function)
    b = inner.b
    c, pitch, left, left_pitch, right, right_pitch, rows, columns, steps = function.args
    whole = b.mul(b.sdiv(rows, I64(shape.rows)), I64(shape.rows))
    for start, stop, count in ((I64(0), whole, shape.rows), (whole, rows, shape.few)):
        tile = Tile(inner, shape, count)
        with inner.loop(start, stop, count) as i, inner.loop(I64(0), columns, shape.width) as j:
            target = b.gep(c, [b.add(b.mul(i, pitch), j)])
            tile.load(target, pitch)
            tile.subtract_products(b.gep(left, [i]), left_pitch, b.gep(right, [j]), right_pitch, steps)
            tile.store(target, pitch)
    b.ret_void()
    return function
