"""Windows: the part of an array that a slice takes, an update replaces, or a pad surrounds.

In: an equation. Out: where its window lies, and how it lies to another one. Passes and the scheduler ask
here, so that positions are compared in one way: clamped into the array where they are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jitcore.core.jaxpr import Atom, Equation, Literal, Var

# Ranges of a dimension that are short have at most so many elements, where it has at least so many.
MAX_EDGE, MIN_EXTENT = 8, 16


class Window(NamedTuple):
    """Equal windows are known to be at the same place of arrays of one shape.

    starts: numbers, or variables that say where it begins as far as it then fits. extents: of the array."""

    starts: tuple[int | Var, ...]
    sizes: tuple
    extents: tuple

    @property
    def is_known(self) -> bool:
        """Whether all of it are numbers."""
        return is_known((*self.starts, *self.sizes, *self.extents))

    @property
    def limits(self) -> tuple[int, ...]:
        """The ends of a known window."""
        return tuple(start + size for start, size in zip(self.starts, self.sizes))

    @property
    def slice_params(self) -> dict:
        """Those of the `slice` that takes a known window."""
        return {"start_indices": self.starts, "limit_indices": self.limits, "strides": None}

    def is_beside(self, other: Window) -> bool:
        """Whether two windows are known to share no element."""
        pairs = zip(self.starts, self.limits, other.starts, other.limits) if (
            self.is_known and other.is_known) else ()
        return any(limit <= start or end <= first for first, limit, start, end in pairs)

    def find_axis_apart(self, other: Window) -> int | None:
        """The axis along which two windows of one element may lie at different places, while they agree along
        all others; None where they differ in other ways."""
        apart = [axis for axis, pair in enumerate(zip(self.starts, other.starts)) if pair[0] != pair[1]]
        if self.sizes != other.sizes or len(apart) != 1 or self.sizes[apart[0]] != 1:
            return None
        return apart[0] if isinstance(self.extents[apart[0]], int) else None

    @property
    def leaves_edges(self) -> bool:
        """Whether it has all of each dimension, or begins or ends near an end of it."""
        return self.is_known and all(
            has_short_edges([(start, size)], extent) for start, size, extent in zip(*self))

    @property
    def covers_most(self) -> bool:
        """Whether it is at least half of the array; taken for granted where sizes are not known."""
        total, part = math.prod(self.extents), math.prod(self.sizes)
        return not is_known((total, part)) or 2 * part >= total


def find_window(eqn: Equation) -> Window | None:
    """That of a slice, a dynamic slice or its update, or a pad; None where elements are not side by side."""
    name, params, (x, *others) = eqn.primitive.name, eqn.params, eqn.invars or (None,)
    if name == "slice" and params["strides"] is None:
        return Window(params["start_indices"], eqn.outvars[0].aval.shape, x.aval.shape)
    if name == "pad":
        lows, highs, gaps = zip(*params["padding_config"]) if params["padding_config"] else ((), (), ())
        is_around = is_known((*lows, *highs)) and min((*lows, *highs), default=0) >= 0 and not any(gaps)
        return Window(lows, x.aval.shape, eqn.outvars[0].aval.shape) if is_around else None
    if name == "dynamic_slice":
        return _clamp(others, tuple(params["slice_sizes"]), x.aval.shape)
    if name == "dynamic_update_slice":
        return _clamp(others[1:], others[0].aval.shape, x.aval.shape)
    return None


def _clamp(starts: Sequence[Atom], sizes: tuple, extents: tuple) -> Window:
    return Window(tuple(map(_clamp_start, starts, sizes, extents)), sizes, extents)


def _clamp_start(start: Atom, size, extent) -> int | Var:
    if not isinstance(start, Literal):
        return start
    place = int(start.value)
    return min(max(place, 0), extent - size) if is_known((size, extent)) else place


def is_known(sizes: Sequence) -> bool:
    return all(isinstance(size, int) for size in sizes)


def is_part(sizes: tuple, extents: tuple, times: int) -> bool:
    """Whether an array is known to have at least so many times the elements of a part of it."""
    return is_known((*sizes, *extents)) and times * math.prod(sizes) <= math.prod(extents)


def has_short_edges(windows: list[tuple[int, int]], extent: int) -> bool:
    """Whether windows cut a dimension into ranges that are short but for one. windows: (start, size) each."""
    places = sorted({0, extent, *(start for start, _ in windows), *(start + size for start, size in windows)})
    sizes = sorted(end - start for start, end in pairwise(places))
    return len(sizes) == 1 or extent >= MIN_EXTENT and sizes[-2] <= MAX_EDGE
