"""Padded arrays as a program returns them.

In: a padded array. Out: an array of the largest extents that are possible, in which the elements come
first along each axis, and the extents, by which the caller slices it.
"""

from __future__ import annotations

from typing import Any

from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents.align import adapt
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray
from jitcore.numpy_semantics.dynamic_extents.spans import Item


def pack(array: PaddedArray) -> tuple[Array, tuple]:
    """(values, extents), ints or Numbers: `values[tuple(slice(n) for n in extents)]` are the elements."""
    items: list[Item] = [item if item.is_whole else item.front() for item in array.items]
    return adapt(array, items).read(), array.shape


def unpack(values: Any, extents: tuple) -> Any:
    """The elements, given NumPy's array and ints."""
    return values[tuple(slice(int(extent)) for extent in extents)].copy()
