"""Results of blocks: one for each block, and for each iteration of the loops around a sweep that is done in
blocks.

In: the emitter of a function, a buffer and the number of a block. Out: instructions that write and read what
lies there, in lanes where one of the loops is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from jitcore.loopir.expr import Buffer
from jitcore.loopir.index import Axis, Index, linearize


class Partials(NamedTuple):
    """columns: the axes of the loops around. around: `around(e, emit)` emits these loops, and calls `emit`
    for what is inside; e: the `FunctionEmitter`."""

    columns: Sequence[Axis] = ()
    around: Callable = lambda e, emit: emit()

    def read(self, e, buffer: Buffer, number: ir.Value):
        return e.load(buffer, self._find_place(e, number))

    def write(self, e, buffer: Buffer, number: ir.Value, value) -> None:
        e.store(buffer, self._find_place(e, number), value)

    def _find_place(self, e, number: ir.Value) -> Index:
        extents = tuple(axis.extent for axis in self.columns)
        for extent in extents:
            number = e.b.mul(number, e.size(extent))
        block = Axis(1)
        e.axis_values[block] = number
        return Index.of(block) + linearize(tuple(map(Index.of, self.columns)), extents)
