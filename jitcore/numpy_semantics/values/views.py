"""Views: how an array lies in its storage.

In: the value of a storage. Out: the value of the array, by a chain of steps; a store goes back through them.
`Window` is what basic indexing and transposing make, and windows of windows are one window. Positions may be
traced; extents are known.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.numbers import Number, form_of


class Step:
    """One step of a view. shape: of what it gives."""

    shape: tuple
    is_read_only = False

    def read(self, raw: Array) -> Array:
        raise NotImplementedError

    def write(self, raw: Array, value: Array) -> Array:
        """raw with what this step gives replaced by a value of its shape."""
        raise NotImplementedError

    def list_values(self) -> list:
        """The traced numbers that the step depends on."""
        return []

    def dtype_of(self, dtype: np.dtype) -> np.dtype:
        """The dtype of what it gives."""
        return dtype

    def find_strides(self, strides: tuple) -> tuple | None:
        """Strides of what it gives, in elements of that; None where they are not known."""
        raise NotImplementedError


class Axis(NamedTuple):
    """Elements start, start + step ... of an axis. start: an int or a traced one; step: not 0."""

    start: Any
    size: int
    step: int = 1

    @property
    def span(self) -> int:
        """Extent between the first and the last element, both included."""
        return (self.size - 1) * abs(self.step) + 1 if self.size else 0

    @property
    def low(self):
        return self.start if self.step > 0 or not self.size else self.start + (self.size - 1) * self.step


class Window(Step):
    """Elements at regular places of each axis, their axes in any order.

    Args:
        base: shape of what is looked at; axes: an `Axis` for each of its axes.
        dims: for each axis of the result the axis of base, or None for a new one of extent 1. Axes of base
            that are not among them have one element and are dropped.
    """

    def __init__(self, base: tuple, axes: Sequence[Axis], dims: Sequence[int | None]):
        self.base, self.axes, self.dims = base, tuple(axes), tuple(dims)
        self.shape = tuple([1 if dim is None else self.axes[dim].size for dim in self.dims])

    def list_values(self) -> list:
        return [axis.start for axis in self.axes if isinstance(axis.start, Number)]

    def find_strides(self, strides):
        scaled = [stride * axis.step for stride, axis in zip(strides, self.axes)]
        return tuple([0 if dim is None else scaled[dim] for dim in self.dims])

    def is_same(self, other: Step) -> bool:
        if not isinstance(other, Window) or (self.base, self.dims) != (other.base, other.dims):
            return False
        return all(one[1:] == two[1:] and is_same_place(one.start, two.start)
                   for one, two in zip(self.axes, other.axes))

    @property
    def is_whole(self) -> bool:
        """Whether it gives what it is given."""
        return self.dims == tuple(range(len(self.base))) and all(
            is_same_place(axis.start, 0) and axis.step == 1 and axis.size == extent
            for axis, extent in zip(self.axes, self.base))

    @property
    def _is_dynamic(self) -> bool:
        return any(isinstance(axis.start, Number) for axis in self.axes)

    def _read_spans(self, raw: Array) -> Array:
        """The smallest box that has all elements."""
        spans, lows = [axis.span for axis in self.axes], [axis.low for axis in self.axes]
        if spans == list(self.base):
            return raw
        if self._is_dynamic:
            return lax.dynamic_slice(raw, _to_starts(lows), spans, allow_negative_indices=False)
        return lax.slice(raw, lows, [low + span for low, span in zip(lows, spans)])

    def read(self, raw: Array) -> Array:
        if 0 in self.shape or 0 in self.base:  # of an empty axis no element is ever read
            return lax.full(self.shape, 0, raw.dtype)
        steps = [abs(axis.step) for axis in self.axes]
        if any(step != 1 for step in steps) and not self._is_dynamic:
            limits = [axis.low + axis.span for axis in self.axes]
            raw = lax.slice(raw, [axis.low for axis in self.axes], limits, steps)
        else:
            raw = self._read_spans(raw)
            if any(step != 1 for step in steps):
                raw = lax.slice(raw, [0] * raw.ndim, raw.shape, steps)
        raw = self._reverse(raw)
        kept = [dim for dim in self.dims if dim is not None]
        dropped = [axis for axis in range(len(self.base)) if axis not in kept]
        if dropped:
            raw = lax.squeeze(raw, dropped)
            order = sorted(kept)
            kept = [order.index(dim) for dim in kept]
        if kept != sorted(kept):
            raw = lax.transpose(raw, kept)
        new = [place for place, dim in enumerate(self.dims) if dim is None]
        return lax.expand_dims(raw, new) if new else raw

    def _reverse(self, raw: Array) -> Array:
        reversed_axes = [i for i, axis in enumerate(self.axes) if axis.step < 0 and axis.size > 1]
        return lax.rev(raw, reversed_axes) if reversed_axes else raw

    def _to_base_order(self, value: Array) -> Array:
        """A value of the window's shape with an axis for each axis of base, in their order and direction."""
        new = [place for place, dim in enumerate(self.dims) if dim is None]
        if new:
            value = lax.squeeze(value, new)
        kept = [dim for dim in self.dims if dim is not None]
        if kept != sorted(kept):
            value = lax.transpose(value, [int(i) for i in np.argsort(kept)])
        dropped = [axis for axis in range(len(self.base)) if axis not in kept]
        return self._reverse(lax.expand_dims(value, dropped) if dropped else value)

    def write(self, raw: Array, value: Array) -> Array:
        if 0 in self.shape or 0 in self.base:
            return raw
        value = self._to_base_order(value)
        if any(axis.size > 1 and abs(axis.step) != 1 for axis in self.axes):
            value = self._spread(raw, value)
        if value.shape == tuple(self.base):
            return value
        starts = _to_starts([axis.low for axis in self.axes])
        return lax.dynamic_update_slice(raw, value, starts, allow_negative_indices=False)

    def _spread(self, raw: Array, value: Array) -> Array:
        """The box of all elements, with the value's at their places and what lies between as it is."""
        gaps = [abs(axis.step) - 1 if axis.size > 1 else 0 for axis in self.axes]
        padded = lax.pad(value, value.dtype.type(0), [(0, 0, gap) for gap in gaps])
        is_hit = None
        for i, gap in enumerate(gaps):
            if gap:
                place = lax.rem(lax.iota(dtypes.int64, padded.shape[i]), np.int64(gap + 1))
                hit = lax.broadcast_in_dim(lax.eq(place, np.int64(0)), padded.shape, (i,))
                is_hit = hit if is_hit is None else lax.bitwise_and(is_hit, hit)
        return lax.select(is_hit, padded, self._read_spans(raw))

    # -- windows of windows ----------------------------------------------------------------------------------
    def takes(self, other: Window) -> bool:
        """Whether a window of this window is one; an empty part of a new axis is not."""
        return all(dim is not None or axis.size == 1 for axis, dim in zip(other.axes, self.dims))

    def select(self, axes: Sequence[Axis], dims: Sequence[int | None]) -> Window:
        """The window of this window: axes and dims in terms of its own shape."""
        own, places = list(self.axes), []
        for axis, dim in zip(axes, self.dims):
            if dim is None:
                places.append(None)
                continue
            outer = own[dim]
            own[dim] = Axis(outer.start + axis.start * outer.step if axis.size else 0, axis.size,
                            axis.step * outer.step)
            places.append(dim)
        found = []
        for dim in dims:
            place = None if dim is None else places[dim]
            found.append(place)
        return Window(self.base, own, found)


def is_same_place(one: Any, other: Any) -> bool:
    """Whether two positions are known to be equal."""
    if not isinstance(one, Number) and not isinstance(other, Number):
        return one == other
    difference = form_of(one) - form_of(other)
    return not difference.terms and not difference.const


def _to_starts(starts: Sequence) -> list:
    return [start.read() if isinstance(start, Number) else np.int64(start) for start in starts]


def whole_window(shape: tuple) -> Window:
    return Window(shape, [Axis(0, extent) for extent in shape], range(len(shape)))


class Reshape(Step):
    """All elements in row-major order, in another shape."""

    def __init__(self, base: tuple, shape: tuple):
        self.base, self.shape = base, shape

    def read(self, raw):
        return lax.reshape(raw, self.shape)

    def write(self, raw, value):
        return lax.reshape(value, self.base)

    def find_strides(self, strides):
        return reshape_strides(self.base, strides, self.shape)

    def is_same(self, other):
        return isinstance(other, Reshape) and (self.base, self.shape) == (other.base, other.shape)


class Broadcast(Step):
    """Axes repeated; read-only, unless NumPy only warns of stores."""

    def __init__(self, base: tuple, shape: tuple, *, is_read_only: bool = True):
        self.base, self.shape, self.is_read_only = base, shape, is_read_only

    def read(self, raw):
        return broadcast_raw(raw, self.shape)

    def write(self, raw, value):
        raise not_traceable("a store into an array whose elements share memory")

    def find_strides(self, strides):
        missing = len(self.shape) - len(self.base)
        own, base = (0,) * missing + strides, (1,) * missing + self.base
        return tuple([0 if old != new else s for s, old, new in zip(own, base, self.shape)])

    def is_same(self, other):
        return isinstance(other, Broadcast) and (self.base, self.shape) == (other.base, other.shape)


class Diagonal(Step):
    """The elements [k + max(-offset, 0), k + max(offset, 0)] of the last two axes, as the last axis."""

    def __init__(self, base: tuple, offset: int = 0, *, is_read_only: bool = True):
        self.base, self.offset, self.is_read_only = base, offset, is_read_only
        rows, columns = base[-2:]
        self.first = max(-offset, 0), max(offset, 0)
        self.shape = (*base[:-2], max(min(rows - self.first[0], columns - self.first[1]), 0))

    def is_same(self, other):
        return isinstance(other, Diagonal) and (self.base, self.offset) == (other.base, other.offset)

    def find_strides(self, strides):
        return (*strides[:-2], strides[-2] + strides[-1])

    def read(self, raw):
        return jnp.diagonal(raw, self.offset, -2, -1)

    def write(self, raw, value):
        rows, columns = (lax.broadcasted_iota(dtypes.int64, self.base[-2:], axis) for axis in (0, 1))
        is_hit = lax.eq(lax.sub(columns, rows), np.int64(self.offset))
        place = len(self.base) - (2 if self.offset < 0 else 1)
        gaps = [(0, 0, 0)] * value.ndim
        gaps[-1] = (self.first[1] if place == len(self.base) - 1 else self.first[0], 0, 0)
        gaps[-1] = (gaps[-1][0], self.base[place] - gaps[-1][0] - self.shape[-1], 0)
        value = lax.pad(value, value.dtype.type(0), gaps)
        dims = (*range(len(self.base) - 2), place)
        is_hit = lax.broadcast_in_dim(is_hit, self.base, range(len(self.base) - 2, len(self.base)))
        return lax.select(is_hit, lax.broadcast_in_dim(value, self.base, dims), raw)


class Part(Step):
    """The real or imaginary part of complex elements."""

    def __init__(self, shape: tuple, *, is_real: bool):
        self.shape, self.is_real = shape, is_real

    def is_same(self, other):
        return isinstance(other, Part) and self.is_real == other.is_real

    def dtype_of(self, dtype):
        return np.empty(0, dtype).real.dtype

    def find_strides(self, strides):
        return tuple([2 * s for s in strides])

    def read(self, raw):
        return lax.real(raw) if self.is_real else lax.imag(raw)

    def write(self, raw, value):
        return lax.complex(value, lax.imag(raw)) if self.is_real else lax.complex(lax.real(raw), value)


# -- chains of steps ----------------------------------------------------------------------------------------
Steps = tuple[Step, ...]


def read_steps(steps: Steps, raw: Array) -> Array:
    return functools.reduce(lambda value, step: step.read(value), steps, raw)


def write_steps(steps: Steps, raw: Array, value: Array) -> Array:
    """raw with what the steps give replaced by a value of its shape."""
    if not steps:
        return value
    if len(steps) > 1:
        value = write_steps(steps[1:], steps[0].read(raw), value)
    return steps[0].write(raw, value)


def add_step(steps: Steps, step: Step) -> Steps:
    """The chain with one step more; steps that do nothing are left out."""
    if isinstance(step, Window) and steps and isinstance(steps[-1], Window) and steps[-1].takes(step):
        step = steps[-1].select(step.axes, step.dims)
        steps = steps[:-1]
    if isinstance(step, Window) and step.is_whole:
        return steps
    return (*steps, step)


def is_same_view(one: Steps, other: Steps) -> bool:
    return len(one) == len(other) and all(type(a) is type(b) and a.is_same(b) for a, b in zip(one, other))


def find_strides(shape: tuple, steps: Steps) -> tuple | None:
    """Strides in elements of a view of C-contiguous memory; None where they are not known."""
    strides: tuple | None = c_strides(shape)
    for step in steps:
        strides = step.find_strides(strides)
        if strides is None:
            return None
    return strides


def c_strides(shape: tuple) -> tuple:
    return tuple([math.prod(shape[i + 1 :]) for i in range(len(shape))])


def reshape_strides(shape: tuple, strides: tuple, new_shape: tuple) -> tuple | None:
    """Strides after a reshape without a copy; None where NumPy would copy."""
    if 0 in shape:
        return c_strides(new_shape)
    memory = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), shape, strides, writeable=False)
    try:
        return np.reshape(memory, new_shape, copy=False).strides
    except ValueError:
        return None


# -- shapes -------------------------------------------------------------------------------------------------
def broadcast_raw(raw: Array, shape: tuple) -> Array:
    """Raises: ValueError where it does not fit."""
    if raw.shape == tuple(shape):
        return raw
    if isinstance(raw, ConcreteArray) and not raw.shape:
        return lax.full(shape, raw.data[()], raw.dtype)
    first = len(shape) - raw.ndim
    if first < 0 or any(own not in (1, extent) for own, extent in zip(raw.shape, shape[first:])):
        raise ValueError(
            f"could not broadcast input array from shape {_text(raw.shape)} into shape {_text(shape)}")
    dims = [first + i for i, own in enumerate(raw.shape) if own == shape[first + i]]
    return lax.broadcast_in_dim(_squeeze_ones(raw, shape[first:]), shape, dims)


def _squeeze_ones(raw: Array, shape: tuple) -> Array:
    ones = [i for i, (own, extent) in enumerate(zip(raw.shape, shape)) if own != extent]
    return lax.squeeze(raw, ones) if ones else raw


def _text(shape: tuple) -> str:
    """A shape as NumPy's messages show it."""
    return f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
