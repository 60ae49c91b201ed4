"""Which elements along an axis of a frame belong to a padded array.

In: bounds that are Numbers, or a traced mask. Out: an *item* for each axis of a padded array: `Whole`
(all elements, an axis as of any array), `Span` (those from a place on, in steps), `Pick` (those where a
mask over one or more axes of the frame holds). Items say how many elements they have, and where in the
frame these are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from jitcore import dtypes, lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.values.equality import find_first, is_equal
from jitcore.numpy_semantics.values.numbers import bound_int
from jitcore.numpy_semantics.values.storage import is_visible


class Item:
    """Elements along `len(shape)` neighbouring axes of a frame, as one axis of an array.

    Attributes:
        shape: extents of those axes, static; size: number of elements: an int or a Number."""

    shape: tuple[int, ...]
    size: Any
    is_whole = False
    step = 1

    @property
    def capacity(self) -> int:
        """How many elements the axes of the frame have."""
        return math.prod(self.shape)

    def as_span(self) -> Span:
        """The same elements in one axis: if not by themselves, as its first ones."""
        return self.front()

    def front(self) -> Span:
        """As many elements, as the first ones of an axis."""
        return Span(self.capacity, 0, self.size)

    def make_mask(self) -> Array | None:
        """Where the elements are, a bool array of `shape`; None for everywhere."""
        raise NotImplementedError

    def is_same(self, other: Item) -> bool:
        """Whether both are known to name the same elements in the same order."""
        raise NotImplementedError

    def children(self) -> list:
        """The traced values that the item is made of."""
        return []

    def structure(self) -> Any:
        raise NotImplementedError

    def rebuild(self, children: Iterator) -> Item:
        """The item with the next children, in their order."""
        return self


class Whole(Item):
    """All elements along one axis."""

    is_whole = True

    def __init__(self, size: int):
        self.size, self.shape = size, (size,)

    def make_mask(self) -> None:
        return None

    def is_same(self, other: Item) -> bool:
        return other.is_whole and other.shape == self.shape

    def structure(self):
        return "whole", self.size


class Span(Item):
    """Element k lies at low + k * step, for 0 <= k < size. All of these places are inside of the capacity.

    Args:
        capacity: extent of the frame's axis, static; low, size: ints or Numbers; step: an int."""

    def __init__(self, capacity: int, low, size, step: int = 1):
        self.shape, self.low, self.size, self.step = (capacity,), low, size, step

    def as_span(self) -> Span:
        return self

    def make_mask(self) -> Array | None:
        low, stop = self.low, self.low + self.size * self.step
        if self.step < 0:
            low, stop = stop - self.step, low + 1  # from the last element to the first
        elif self.step != 1:
            stop = stop - self.step + 1
        places = lax.iota(dtypes.int64, self.capacity)
        tests = []
        if not extents.is_known(low, 0):
            tests.append(lax.ge(places, extents.to_raw(low)))
        if not extents.is_known(stop, self.capacity):
            tests.append(lax.lt(places, extents.to_raw(stop)))
        if abs(self.step) != 1:
            distance = lax.sub(places, extents.to_raw(self.low))
            tests.append(lax.eq(lax.rem(distance, dtypes.int64.type(abs(self.step))), dtypes.int64.type(0)))
        return functools.reduce(lax.bitwise_and, tests) if tests else None

    def is_same(self, other: Item) -> bool:
        is_aligned = self.is_aligned(other)
        return is_aligned and self.shape == other.shape and extents.is_equal(self.size, other.size)

    def is_aligned(self, other: Item) -> bool:
        """Whether element k lies at the same place in both."""
        return isinstance(other, Span) and self.step == other.step and extents.is_equal(self.low, other.low)

    def place_of(self, number) -> Any:
        """Where an element lies, as an int or a Number."""
        return self.low + number * self.step

    def number_places(self) -> Array:
        """The number k of each place of the frame's axis, int64[capacity]; anything outside of the span."""
        places = lax.iota(dtypes.int64, self.capacity)
        low = extents.to_array(self.low)
        distance = lax.sub(low, places) if self.step < 0 else lax.sub(places, low)
        if abs(self.step) == 1:
            return distance
        return lax.div(distance, dtypes.int64.type(abs(self.step)))

    def place_operand(self):
        """The first place, as an operand of lax."""
        return extents.to_raw(self.low)

    def slice(self, start, size, step: int) -> Span:
        """Elements start, start + step ... of this span."""
        return Span(self.capacity, self.place_of(start), size, self.step * step)

    def children(self) -> list:
        return [number for number in (self.low, self.size) if extents.is_traced(number)]

    def structure(self):
        known = tuple(None if extents.is_traced(number) else number for number in (self.low, self.size))
        return "span", self.capacity, known, self.step

    def rebuild(self, children: Iterator) -> Span:
        low, size = (bound_int(next(children), least, self.capacity) if extents.is_traced(number) else number
                     for number, least in ((self.low, 0 if self.step > 0 else -1), (self.size, 0)))
        return Span(self.capacity, low, size, self.step)


class Pick(Item):
    """Elements where a mask holds, in row-major order.

    Args:
        mask: bool array over axes of the frame; size: their number, counted where it is asked for."""

    def __init__(self, mask: Array, size=None):
        self.mask, self._size = find_first(mask), size
        self.shape = mask.shape

    @property
    def size(self):
        if self._size is None or not is_visible(self._size.read()):
            self._size = extents.count_true(self.mask)
        return self._size

    def make_mask(self) -> Array:
        return self.mask

    def is_same(self, other: Item) -> bool:
        return isinstance(other, Pick) and self.shape == other.shape and is_equal(self.mask, other.mask)

    def children(self) -> list:
        return [self.mask]

    def structure(self):
        return "pick", self.shape

    def rebuild(self, children: Iterator) -> Pick:
        return Pick(next(children))


def find_axes(items: Sequence[Item]) -> list[int]:
    """The first axis of the frame of each item."""
    axes, axis = [], 0
    for item in items:
        axes.append(axis)
        axis += len(item.shape)
    return axes


def join_masks(items: Sequence[Item], axes: Sequence[int], shape: tuple[int, ...]) -> Array | None:
    """Where the elements of several items lie in an array of this shape; None for everywhere.

    Args:
        axes: the first axis of each item."""
    joint = None
    for item, axis in zip(items, axes):
        mask = item.make_mask()
        if mask is None:
            continue
        mask = lax.broadcast_in_dim(mask, shape, range(axis, axis + len(item.shape)))
        joint = mask if joint is None else lax.bitwise_and(joint, mask)
    return joint
