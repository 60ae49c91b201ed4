"""Windows that slide over an array: their padding, their strided views, and `reduce_window`.

In: an operand and window extents, strides, padding and dilations, one per axis. Out: one value per window.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.aval import ShapedArray, aval_of
from jitcore.lax.define import define
from jitcore.lax.pad import pad_ndarray
from jitcore.lax.reduce import MONOIDS, combine_with_initial, is_half, recognize_monoid
from jitcore.transforms.batch_rules import rebind


# -- geometry -------------------------------------------------------------------------------------------
def dilated_extent(extent, dilation):
    """Extent after `dilation - 1` gaps between neighbours; an empty axis stays empty."""
    return 0 if extent == 0 else (extent - 1) * dilation + 1


def padtype_to_pads(in_shape, window_shape, window_strides, padding) -> list[tuple[int, int]]:
    """Explicit (before, after) padding for each axis.

    Args:
        in_shape, window_shape: extents, dilation included.
        padding: "VALID" (none), "SAME" (as many outputs as ceil(extent / stride), the odd one after),
            "SAME_LOWER" (the odd one before), or the pairs themselves.
    Raises: RuntimeError for another string."""
    if not isinstance(padding, str):
        return [(operator.index(low), operator.index(high)) for low, high in padding]
    kind = padding.upper()
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}."
        )
    if kind == "VALID":
        return [(0, 0)] * len(window_shape)
    pads = []
    for extent, window, stride in zip(in_shape, window_shape, window_strides):
        count = (extent + stride - 1) // stride
        total = max((count - 1) * stride + window - extent, 0)
        small = total // 2
        pads.append((small, total - small) if kind == "SAME" else (total - small, small))
    return pads


def count_windows(extent, window, stride):
    """Number of positions of a window, dilation and padding included in the extents; 0 where none fits."""
    return 0 if extent < window else (extent - window) // stride + 1


def window_view(x: np.ndarray, axes, sizes, strides, dilations) -> np.ndarray:
    """A view whose `axes` number window positions, with one axis per window appended at the end."""
    shape, steps, inner = list(x.shape), list(x.strides), []
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations):
        shape[axis] = count_windows(x.shape[axis], dilated_extent(size, dilation), stride)
        steps[axis] = x.strides[axis] * stride
        inner.append(x.strides[axis] * dilation)
    return np.lib.stride_tricks.as_strided(x, (*shape, *sizes), (*steps, *inner), writeable=False)


# -- reduce_window --------------------------------------------------------------------------------------
def _check_per_axis(name: str, values, ndim: int) -> None:
    if len(values) != ndim:
        raise TypeError(f"reduce_window got inconsistent {name} and operand: got {name} {tuple(values)} "
                        f"for an operand of rank {ndim}.")  # fmt: skip
    if name != "padding" and any(value <= 0 for value in values):
        raise TypeError(
            f"reduce_window {name} must have every element be strictly positive, got {tuple(values)}."
        )


def _reduce_window_aval(
    name: str,
    accepts: str,
    x: ShapedArray,
    *,
    window_dimensions,
    window_strides,
    padding,
    base_dilation,
    window_dilation,
) -> ShapedArray:
    if dtypes.kind_of(x.dtype) not in accepts:
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name}. Accepted dtypes are subtypes of number."
        )
    facts = {"window_dimensions": window_dimensions, "window_strides": window_strides, "padding": padding,
             "base_dilation": base_dilation, "window_dilation": window_dilation}  # fmt: skip
    for fact, values in facts.items():
        _check_per_axis(fact, values, x.ndim)
    shape = []
    for axis, (low, high) in enumerate(padding):
        extent = dilated_extent(x.shape[axis], base_dilation[axis]) + low + high
        window = dilated_extent(window_dimensions[axis], window_dilation[axis])
        shape.append(count_windows(extent, window, window_strides[axis]))
    return x.update(shape=tuple(shape))


def _reduce_window(
    combine: str, x, *, window_dimensions, window_strides, padding, base_dilation, window_dilation
):
    monoid = MONOIDS[combine]
    config = [(low, high, dilation - 1) for (low, high), dilation in zip(padding, base_dilation)]
    padded = pad_ndarray(x, monoid.identity(x.dtype), config)
    if monoid.accumulates and is_half(x.dtype):
        padded = padded.astype(np.float32)
    axes = range(x.ndim)
    view = window_view(padded, axes, window_dimensions, window_strides, window_dilation)
    inner = tuple(range(x.ndim, 2 * x.ndim))
    return monoid.ufunc.reduce(view, inner, dtype=padded.dtype).astype(x.dtype, copy=False)


def _add_single_window(size, *, padding, **geometry) -> dict:
    return {"padding": ((0, 0), *padding)} | {name: (1, *values) for name, values in geometry.items()}


def _window_reduction(name: str, combine: str, accepts: str):
    """The family: each window is folded with the monoid `combine`. accepts: dtype kinds."""

    def attach(function):
        define(name, impl=functools.partial(_reduce_window, combine), hlo="reduce_window", monoid=combine,
               family="window reduction", aval=functools.partial(_reduce_window_aval, name, accepts),
               accepts=accepts, batch=rebind(_add_single_window))(function)  # fmt: skip

        @functools.wraps(function)
        def public(operand, window_dimensions, window_strides=None, padding="VALID", base_dilation=None,
                   window_dilation=None):  # fmt: skip
            geometry = _window_geometry(aval_of(operand).shape, window_dimensions, window_strides, padding,
                                        base_dilation, window_dilation)  # fmt: skip
            return function.primitive.bind(operand, **geometry)

        return public

    return attach


def _window_geometry(shape, dimensions, strides, padding, base_dilation, window_dilation) -> dict:
    """The parameters of a window reduction, with strings and defaults replaced."""
    ones = (1,) * len(shape)
    dimensions, strides, base_dilation, window_dilation = (
        tuple(map(operator.index, ones if values is None else values))
        for values in (dimensions, strides, base_dilation, window_dilation)
    )
    if not len(dimensions) == len(strides) == len(shape):
        raise TypeError("reduce_window got inconsistent window_strides and window_dimensions: "
                        f"got window_strides {strides} and window_dimensions {dimensions}.")  # fmt: skip
    windows = list(map(dilated_extent, dimensions, window_dilation))
    return {"window_dimensions": dimensions, "window_strides": strides, "base_dilation": base_dilation,
            "window_dilation": window_dilation,
            "padding": tuple(padtype_to_pads(shape, windows, strides, padding))}  # fmt: skip


@_window_reduction("reduce_window_sum", "add", "iufc")
def reduce_window_sum(operand, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                      padding="VALID", base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:  # fmt: skip
    """Sum of each window. Arguments as in `reduce_window`. Cost: proportional to the window's size."""


@_window_reduction("reduce_window_max", "max", "biuf")
def reduce_window_max(operand, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                      padding="VALID", base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:  # fmt: skip
    """Largest element of each window. Arguments as in `reduce_window`."""


@_window_reduction("reduce_window_min", "min", "biuf")
def reduce_window_min(operand, window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                      padding="VALID", base_dilation: Sequence[int] | None = None,
                      window_dilation: Sequence[int] | None = None) -> Array:  # fmt: skip
    """Smallest element of each window. Arguments as in `reduce_window`."""


_WINDOW_REDUCTIONS = {"add": reduce_window_sum, "max": reduce_window_max, "min": reduce_window_min}


def reduce_window(operand, init_value, computation: Callable, window_dimensions: Sequence[int],
                  window_strides: Sequence[int] | None = None, padding="VALID",
                  base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> Array:  # fmt: skip
    """Folds every window of operand with a two-argument function on scalars, beginning with init_value.

    Args:
        init_value: scalar; also what the padding consists of.
        computation: add, max or min of its two arguments, in any spelling.
        window_dimensions, window_strides: one per axis of operand.
        padding: "VALID", "SAME", "SAME_LOWER" or (before, after) for each axis; a string counts operand's own
            extents, without base_dilation.
        base_dilation, window_dilation: distance of neighbours in operand and in the window.
    Raises: NotImplementedError for another computation; TypeError when the numbers of axes disagree.
    Source: StableHLO specification, reduce_window."""
    dtype = aval_of(operand).dtype
    key = recognize_monoid("lax.reduce_window", computation, dtype)
    if key not in _WINDOW_REDUCTIONS:
        raise NotImplementedError(
            f"lax.reduce_window folds with {', '.join(_WINDOW_REDUCTIONS)}, not with {key}"
        )
    result = _WINDOW_REDUCTIONS[key](
        operand, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return combine_with_initial(key, result, init_value, dtype)
