"""Values: what lowering rules pass around. A value is a shape, a dtype and a way to get one element.

`Computed` values are inlined where they are read. `Stored` ones are read from memory. The roots (`Reduction`,
`Running`, `Regions`) are loops of their own that the scheduler turns into statements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from jitcore.lax.indexing.windows import MAX_EDGE
from jitcore.loopir.expr import ZERO, Axis, Buffer, Expr, Graph, Index

# Inline cost above which a value that several loops read is stored instead of recomputed.
MAX_WORK = 1_000_000


class Value:
    """shape: tuple of extents. dtype: NumPy dtype. work: scalar operations to get one element. buffers: what
    getting one reads. choices: by index, that getting one makes between arrays joined where they are read."""

    __slots__ = ("shape", "dtype", "work", "buffers")
    choices = 0

    def at(self, index: tuple[Index, ...]) -> Expr:
        raise NotImplementedError

    @property
    def is_joined(self) -> bool:
        """Whether elements come from arrays that are joined where they are read."""
        return self.choices > 0

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Scalar(Value):
    """A literal."""

    __slots__ = ("graph", "value")

    def __init__(self, graph: Graph, value, dtype):
        self.shape, self.dtype, self.work, self.graph, self.value = (), np.dtype(dtype), 0, graph, value
        self.buffers = frozenset()

    def at(self, index) -> Expr:
        return self.graph.const(self.value, self.dtype)


class Stored(Value):
    """Elements in a buffer. read(buffer, index) is the scheduler's: it may forward a value not yet stored."""

    __slots__ = ("buffer", "read")

    def __init__(self, buffer: Buffer, read: Callable[[Buffer, tuple], Expr]):
        self.shape, self.dtype, self.work = buffer.shape, buffer.dtype, 0
        self.buffer, self.read, self.buffers = buffer, read, frozenset((buffer,))

    def at(self, index) -> Expr:
        return self.read(self.buffer, index)


class Computed(Value):
    """Elements from elements of other values.

    reads: index -> list of (value, index) that the element needs. combine: (index, *exprs) -> expression."""

    __slots__ = ("graph", "reads", "combine", "choices", "_memo", "_epoch")

    def __init__(self, graph: Graph, shape, dtype, work, buffers: frozenset, reads, combine):
        self.shape, self.dtype, self.work = shape, np.dtype(dtype), min(work, MAX_WORK)
        self.buffers = buffers
        self.graph, self.reads, self.combine, self.choices = graph, reads, combine, 0
        self._memo, self._epoch = {}, graph.epoch

    @property
    def memo(self) -> dict:
        """Elements already evaluated in the current epoch: what is forwarded differs from group to group."""
        if self._epoch != self.graph.epoch:
            self._memo, self._epoch = {}, self.graph.epoch
        return self._memo

    def at(self, index) -> Expr:
        """Evaluates without recursion, so that programs may be deep; each (value, index) once."""
        stack = [(self, index, None)]
        while stack:
            value, position, operands = stack.pop()
            if position in value.memo:
                continue
            if operands is None:
                operands = value.reads(position)
                stack.append((value, position, operands))
                stack.extend((v, p, None) for v, p in operands if v.__class__ is Computed and p not in v.memo)
            else:
                value.memo[position] = value.combine(position, *[v.at(p) for v, p in operands])
        return self.memo[index]


class Reduction(Value):
    """`op` over some axes of a value. op: monoid name, or "argmax"/"argmin" (then dtype is the index
    dtype)."""

    __slots__ = ("op", "operand", "reduced")

    def __init__(self, op: str, operand: Value, reduced: Sequence[int], dtype):
        self.op, self.operand, self.reduced, self.dtype = op, operand, tuple(reduced), np.dtype(dtype)
        self.shape = tuple(n for d, n in enumerate(operand.shape) if d not in self.reduced)
        self.work = MAX_WORK


class Running(Value):
    """Running `op` along one axis (cumsum and its kin)."""

    __slots__ = ("op", "operand", "axis", "reverse")

    def __init__(self, op: str, operand: Value, axis: int, reverse: bool):
        self.op, self.operand, self.axis, self.reverse = op, operand, axis, reverse
        self.shape, self.dtype, self.work = operand.shape, operand.dtype, MAX_WORK


class Packed(Value):
    """The elements of a value where a mask holds, first in each row of the last axis; any others behind."""

    __slots__ = ("operand", "mask", "reduced")

    def __init__(self, operand: Value, mask: Value):
        self.operand, self.mask, self.reduced = operand, mask, (operand.ndim - 1,)
        self.shape, self.dtype, self.work = operand.shape, operand.dtype, MAX_WORK


class Region:
    """`out[place(index)] (combine)= value[index]` for every index of value's shape, where mask(index) holds.

    serial: several indices may hit one element, so iterations keep their order."""

    __slots__ = ("value", "place", "mask", "combine", "serial")

    def __init__(self, value: Value, place, mask=None, combine: str | None = None, serial: bool = False):
        self.value, self.place, self.mask, self.combine, self.serial = value, place, mask, combine, serial

    def find_start(self) -> tuple[Index, ...] | None:
        """Where the region begins, if it is a window: whole, and each element beside the next; else None."""
        sizes = self.value.shape
        start = self.place(tuple(ZERO for _ in sizes))
        if self.mask is not None or self.combine is not None or self.serial or len(start) != len(sizes):
            return None
        index = tuple(map(Index.of, map(Axis, sizes)))
        return start if self.place(index) == tuple(map(operator.add, index, start)) else None

    def find_known_start(self) -> tuple[int, ...] | None:
        """The same as numbers; None also where the place is not known."""
        start = self.find_start()
        if start is None or any(index.terms or not isinstance(index.const, int) for index in start):
            return None
        return tuple(index.const for index in start)

    def replace_value(self, value: Value) -> Region:
        return Region(value, self.place, self.mask, self.combine, self.serial)


class Regions(Value):
    """A base value (or nothing) overwritten by regions in order: concatenation, padding, updates, scatter."""

    __slots__ = ("base", "regions")

    def __init__(self, shape, dtype, base: Value | None, regions: list[Region]):
        self.shape, self.dtype, self.base, self.regions = shape, np.dtype(dtype), base, regions
        self.work = MAX_WORK

    @property
    def pieces(self) -> list[Value]:
        """The values of which it is made."""
        return [self.base] * (self.base is not None) + [region.value for region in self.regions]

    def list_columns(self) -> list[Value] | None:
        """The regions' values where these lie side by side along the last axis, one place each; else None."""
        columns = [region.value for region in self.regions]
        starts = [region.find_known_start() for region in self.regions]
        places = [(0,) * (len(self.shape) - 1) + (number,) for number in range(len(columns))]
        if self.base is not None or starts != places or len(columns) > MAX_EDGE or any(
                column.shape[-1] != 1 or column.is_joined for column in columns):
            return None
        return columns


ROOTS = (Reduction, Running, Packed, Regions)


def is_scalar(shape: tuple) -> bool:
    return all(isinstance(extent, int) and extent == 1 for extent in shape)


def is_in(value: Value | None, buffer: Buffer | None) -> bool:
    return isinstance(value, Stored) and value.buffer is buffer


def any_index(shape: tuple) -> tuple[Index, ...]:
    """The index of any element."""
    return tuple(ZERO if is_scalar((extent,)) else Index.of(Axis(extent)) for extent in shape)
