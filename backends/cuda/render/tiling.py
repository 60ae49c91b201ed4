"""Tiles of a nest over rows and columns: a block of threads has one of them.

In: the axes, and how long the sides of a tile are. Out: how many blocks there are, and where the tile of each
begins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.llvm.registers import I64
from jitcore.loopir.index import Axis
from jitcore.loopir.program import Loop


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
        axes = [loop.axis for loop in self.outer]
        e.place_axes(axes, [e.size(axis.extent) for axis in axes], rest, self.around)
        return places[1], places[0]
