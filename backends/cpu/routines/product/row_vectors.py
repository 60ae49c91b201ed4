"""Rows of numbers in vectors: what the sweeps over the rows of a matrix are written with.

In: the shape of vectors. Out: LLVM text of loads, stores and sums of a row's columns, the last of which go
under a mask.
"""

from __future__ import annotations

from collections.abc import Callable

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.product.parts import TileShape


class RowWriter:
    """Who inherits sets, in each function: whole (columns in whole vectors), has_rest, the rest's mask."""

    whole: str
    has_rest: str
    mask: str

    def __init__(self, w: TextWriter, shape: TileShape):
        self.w, self.shape = w, shape

    def _for_vectors(self, write: Callable[[str, str | None], None]) -> None:
        """Writes code for whole vectors of a row, and again for the rest; write: gets offset and mask."""
        w, shape = self.w, self.shape
        with w.loop(0, self.whole, shape.lanes) as column:
            write(w.mul(column, shape.itemsize), None)
        with w.when(self.has_rest):
            write(w.mul(self.whole, shape.itemsize), self.mask)

    def _get(self, pointer: str, offset: str, mask: str | None) -> str:
        address = self.w.at(pointer, offset)
        if mask is None:
            return self.w.load(address, self.shape.vector, self.shape.itemsize)
        return self.w.load_masked(address, self.shape.vector, mask)

    def _put(self, value: str, pointer: str, offset: str, mask: str | None) -> None:
        address = self.w.at(pointer, offset)
        if mask is None:
            self.w.store(value, address, self.shape.vector, self.shape.itemsize)
        else:
            self.w.store_masked(value, address, self.shape.vector, mask)

    def _add_stretches(self, total: str, source: str, pitch: str, count: str, target: str, offset: str,
                       mask: str | None) -> None:
        """Stores the sum of the vectors of several stretches. total: a place for it, on the stack."""
        w, vector = self.w, self.shape.vector
        w.store(self._get(source, offset, mask), total, vector, 64)
        with w.loop(1, count) as stretch:
            term = self._get(w.at(source, w.mul(stretch, pitch)), offset, mask)
            w.store(w.let(f"fadd {vector} {w.load(total, vector, 64)}, {term}"), total, vector, 64)
        self._put(w.load(total, vector, 64), target, offset, mask)

    def _multiply_add(self, x: str, y: str, z: str) -> str:
        return self.w.intrinsic("fmuladd", self.shape.vector, x, y, z)
