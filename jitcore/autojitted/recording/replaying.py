"""Views of the caller's arrays, made anew in each call.

In: the steps of a view. Out: what applies them to an ndarray.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from jitcore.numpy_semantics.functions.memory import Bits, Sliding
from jitcore.numpy_semantics.values.views import Axis, Broadcast, Diagonal, Part, Reshape, Window

__all__ = ["Replay"]


class Replay:
    """Applies the steps of a view to an ndarray."""

    def __init__(self, steps: tuple, shape: tuple):
        self.steps, self.shape = steps, shape

    def __call__(self, array: np.ndarray) -> np.ndarray:
        if not self.steps:
            return array.view()
        for step in self.steps:
            array = _REPLAYS[type(step)](step, array)
        return array


def _replay_window(step: Window, array: np.ndarray) -> np.ndarray:
    index = tuple([_slice_of(axis) for axis in step.axes])
    kept = [dim for dim in step.dims if dim is not None]
    dropped = tuple([axis for axis in range(array.ndim) if axis not in kept])
    array = array[(*index, ...)]  # a view of an array without axes too
    array = array.transpose([*kept, *dropped])[(..., *[0] * len(dropped))]
    return array[(*(None if dim is None else slice(None) for dim in step.dims), ...)]


def _replay_broadcast(step: Broadcast, array: np.ndarray) -> np.ndarray:
    if step.is_read_only:
        return np.broadcast_to(array, step.shape)
    return np.broadcast_arrays(array, np.broadcast_to(0, step.shape))[0]


def _slice_of(axis: Axis) -> slice:
    if not axis.size:
        return slice(0, 0)
    stop = axis.start + axis.size * axis.step
    return slice(axis.start, stop if stop >= 0 else None, axis.step)


_REPLAYS = {
    Window: _replay_window,
    Reshape: lambda step, array: array.reshape(step.shape),
    Broadcast: lambda step, array: _replay_broadcast(step, array),
    Diagonal: lambda step, array: (array.diagonal(step.offset, -2, -1) if step.is_read_only
                                   else np.einsum("...ii->...i", array)),
    Part: lambda step, array: array.real if step.is_real else array.imag,
    Bits: lambda step, array: array.view(step.dtype),
    Sliding: lambda step, array: sliding_window_view(array, step.extents, step.axes)}
