"""Rendering of sweeps along short rows, one row in each lane.

In: a kernel whose rows are transposed, and a range of these. Out: instructions. Memory is read as it
lies, a register for each row, and transposed by shuffles once for all sweeps; what these store is kept as
they see it and transposed back behind the last one.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.mapping.memory_order import Access, list_accesses, list_statements
from jitcore.backends.cpu.render.tiles import transpose
from jitcore.backends.cpu.render.vector_loops import vector_loop
from jitcore.backends.llvm.registers import I32, I64, mask_first, memory_type
from jitcore.loopir.expr import Axis
from jitcore.loopir.program import Loop, Reduce


def emit_rows_in_lanes(kernel, e, loop: Loop, start: ir.Value, stop: ir.Value) -> None:
    """The rows [start, stop). kernel: the `KernelRenderer`. e: the `FunctionEmitter`."""
    along = next(s.axes[-1] for s in loop.body if isinstance(s, Reduce))
    accesses, statements = list_accesses(loop, along), list_statements(loop)
    widest = max(access.buffer.dtype.itemsize for access in accesses)
    lanes = max(2, min(e.tuning.max_tile_lanes, kernel.vector_bytes // widest))
    read = {access for s in statements for access in s.loads}
    written = {access for s in statements for access in s.targets}
    squares = [_Squares(e, access, along, lanes) for access in accesses]

    def run():
        if e.mask is not None:  # the rest of the rows reads and writes elements by themselves
            kernel.emit_statements(e, loop.body)
            return
        for access, square in zip(accesses, squares):
            if access in read:
                square.read()
        e.kept = {access: (square.registers, along) for access, square in zip(accesses, squares)}
        kernel.emit_statements(e, loop.body)
        e.kept = {}
        for access, square in zip(accesses, squares):
            if access in written:
                square.write()

    vector_loop(e, loop.axis, start, stop, [lanes], run)


class _Squares:
    """The rows of one array on their way from memory to registers on the stack, one for each place of a row,
    or back: as many places at a time as there are rows."""

    def __init__(self, e, access: Access, along: Axis, lanes: int):
        self.e, self.along, self.lanes, (self.buffer, self.index) = e, along, lanes, access
        self.itemsize = self.buffer.dtype.itemsize
        self.kind = ir.VectorType(memory_type(self.buffer.dtype), lanes)
        most = e.tuning.longest_row * e.vector_bytes // self.itemsize
        self.registers = e.prologue.alloca(self.kind, size=I32(most))

    def read(self) -> None:
        align, zeros = I32(self.itemsize), ir.Constant(self.kind, None)

        def move(spots, pointers, held):
            rows = [self.e.call_masked("load", [pointer, align, held, zeros]) for pointer in pointers]
            for register, spot in zip(transpose(self.e.b, rows, 1, self.itemsize), spots):
                self.e.b.store(register, spot)

        self._for_each(move)

    def write(self) -> None:
        def move(spots, pointers, held):
            rows = transpose(self.e.b, [self.e.b.load(spot) for spot in spots], 1, self.itemsize)
            for row, pointer in zip(rows, pointers):
                self.e.call_masked("store", [row, pointer, I32(self.itemsize), held])

        self._for_each(move)

    def _for_each(self, move) -> None:
        """`move(spots, pointers, held)`: where a square's columns stand on the stack and its rows in memory,
        and which of its places belong to the rows."""
        e, b, numbers = self.e, self.e.b, list(map(I64, range(self.lanes)))
        extent, step = e.size(self.along.extent), e.size(self.index.coefficient(e.vector_axis))
        first = self._find_first()

        def run(place):
            spots = [b.gep(self.registers, [b.add(place, number)]) for number in numbers]
            pointers = [b.gep(first, [b.add(place, b.mul(step, number))]) for number in numbers]
            move(spots, pointers, mask_first(b, b.sub(extent, place), self.lanes))

        e.loop(I64(0), extent, I64(self.lanes), run)

    def _find_first(self) -> ir.Value:
        """The address of the first place of the first row."""
        self.e.axis_values[self.along] = I64(0)
        return self.e.b.gep(self.e.element_pointer(self.buffer), [self.e.scalar_index(self.index)])
