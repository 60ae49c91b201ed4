"""Iterators over all places of a grid: `np.ndindex`, `np.ndenumerate`, `itertools.product` of ranges; and
over floats at equal distances, the number of which is traced: `np.arange`.

In: extents that are known; bounds that are not. Out: traced iterators of one position, so that a `for` loop
over them is one loop.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.tables import creates
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.sequences import has_handle
from jitcore.rewriter.control_flow.iterators import CountIterator, TracedIterable, TracedIterator
from jitcore.rewriter.handles import Handle, current

#: Elements of an `np.arange`.
_MOST = 1 << 40
_REMEDY = "make it in the head of its loop: for i, j in np.ndindex(x.shape)"


class GridIterator(TracedIterator):
    """Tuples of one number of each range, the last one changing fastest; with an array, (place, element)."""

    def __init__(self, ranges: Sequence[range], array: NDArray | None = None, position: Any = 0):
        self.ranges, self.array, self.position = tuple(ranges), array, position
        self.count = math.prod(map(len, self.ranges))

    @property
    def is_known(self) -> bool:
        return not isinstance(self.position, Handle)

    def read(self) -> Iterator:
        """The ordinary iterator over the rest."""
        places = itertools.islice(itertools.product(*self.ranges), self.position, None)
        return places if self.array is None else ((place, self.array[place]) for place in places)

    def structure(self) -> Any:
        return "grid", self.ranges, id(self.array)

    def rebuild(self, children: Sequence) -> GridIterator:
        return GridIterator(self.ranges, self.array, children[0])

    def has_next(self):
        return self.position < self.count

    def count_left(self) -> int | None:
        return max(self.count - self.position, 0) if self.is_known else None

    def advance(self) -> tuple[Any, GridIterator]:
        rest, found = current.mode.bound_index(self.position, 0, self.count - 1), []
        for own in self.ranges[:0:-1]:
            rest, place = divmod(rest, len(own))
            found.append(own.start + place * own.step)
        first = self.ranges[0]
        element = first.start + rest * first.step, *found[::-1]
        behind = self.rebuild([self.position + 1])
        return (element if self.array is None else (element, self.array[element])), behind


class Grid:
    """What `np.ndindex` and its likes return. They are iterators: one loop goes through them, once."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: GridIterator):
        self._iterator = iterator

    def __iter__(self) -> GridIterator:
        if self._iterator is None:
            raise not_traceable("an iterator over a grid that several loops go through", _REMEDY)
        found, self._iterator = self._iterator, None
        return found

    def __next__(self):
        raise not_traceable("next() of an iterator over a grid", _REMEDY)


class SpacedIterator(CountIterator):
    """NumPy's floats of `np.arange(first, stop, second - first)`, `count` of them."""

    def __init__(self, first: Array, second: Array, count: Number, position: Any = 0):
        super().__init__(0, 1, count, position)
        self.first, self.second = first, second

    def structure(self) -> Any:
        return "arange", id(self.first), id(self.second), id(self.count)

    def rebuild(self, children: Sequence) -> SpacedIterator:
        return SpacedIterator(self.first, self.second, self.count, children[0])

    def advance(self) -> tuple[Any, SpacedIterator]:
        place, behind = super().advance()
        raw = to_raw(place, np.float64)
        distant = lax.add(self.first, lax.mul(raw, lax.sub(self.second, self.first)))
        return Scalar(lax.select(lax.eq(raw, np.float64(1)), self.second, distant)), behind


class Spaced(TracedIterable):
    """What `np.arange` gives where the number of elements is traced: what a loop goes through, no more."""

    def refuse(self, *_: Any) -> Any:
        """Raises: NotTraceable."""
        raise not_traceable("np.arange() whose length is traced")

    for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
        locals()[f"__{_name}__"] = locals()[f"__r{_name}__"] = refuse
    __getattr__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = refuse


def make_spaced(start: Any, stop: Any, step: Any) -> Spaced:
    """np.arange of floats, of which some are traced; Python tells what cannot be counted."""
    first, behind, step = (to_raw(one, np.float64) for one in (start, stop, step))
    distance = lax.sub(behind, first)
    length = lax.div(distance, step)
    is_none = lax.bitwise_and(lax.eq(length, np.float64(0)), lax.ne(distance, np.float64(0)))
    is_large = lax.bitwise_not(lax.lt(lax.abs(length), np.float64(_MOST)))
    is_unknown = lax.bitwise_or(is_none, is_large)
    fail(is_unknown, ValueError("arange: cannot compute length"))
    rounded = lax.max(lax.select(is_unknown, np.float64(0), lax.ceil(length)), np.float64(0))
    count = Number(int, lax.convert_element_type(rounded, np.int64), interval=(0, _MOST))
    second = lax.add(first, step)
    return Spaced(np.ndarray, lambda: SpacedIterator(first, second, count))


def _make_grid(ranges: Sequence[range], array: NDArray | None = None) -> Grid | None:
    """None for a grid of so few places that Python goes through it."""
    mode = current.mode
    found = GridIterator(ranges, array)
    return Grid(found) if mode is not None and ranges and found.count > mode.unrolled else None


@creates(np.ndindex)
def ndindex(*shape):
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if any(not isinstance(extent, (int, np.integer)) or extent < 0 for extent in extents):
        return np.ndindex(*shape)
    return _make_grid([range(operator.index(extent)) for extent in extents]) or np.ndindex(*shape)


@creates(np.ndenumerate)
def ndenumerate(arr):
    if not isinstance(arr, NDArray) or arr.is_padded:
        return np.ndenumerate(arr)
    ranges = list(map(range, arr.shape))
    return _make_grid(ranges, arr) or iter([(place, arr[place]) for place in itertools.product(*ranges)])


@creates(itertools.product)
def product(*iterables, repeat=1):
    if isinstance(repeat, int) and iterables and all(type(values) is range for values in iterables):
        found = _make_grid(iterables * repeat)
        if found is not None:
            return found
    if any(isinstance(values, Handle) or has_handle(values) for values in iterables):
        iterables = tuple(map(list, iterables))
    return itertools.product(*iterables, repeat=operator.index(repeat))
