"""Padding: `pad`, with space before, after and between the elements of each axis.

In: an array, the scalar to fill with, three numbers per axis. Out: an array, cropped where a number is
negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.lax.define import define, to_extent, to_operands
from jitcore.lax.elementwise import select_n
from jitcore.lax.shape import broadcast_in_dim, full
from jitcore.transforms.batching import batch_values
from jitcore.transforms.derivative_rules import jvp_linear
from jitcore.transforms.tangents import fill
from jitcore.transforms.transpose import is_linear


def _padded_shape(shape, padding_config) -> tuple:
    # an empty axis has no gaps, and n elements have n - 1 of them
    return tuple(low + high + extent + (0 if extent == 0 else (extent - 1) * interior)
                 for extent, (low, high, interior) in zip(shape, padding_config))


def _pad_aval(x: ShapedArray, padding_value: ShapedArray, *, padding_config) -> ShapedArray:
    if x.dtype != padding_value.dtype:
        raise TypeError("pad operand and padding_value must be same dtype: "
                        f"got {x.dtype.name} and {padding_value.dtype.name}.")
    if padding_value.shape:
        raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)={padding_value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError("length of padding_config must equal the number of axes of operand, "
                         f"got padding_config {padding_config} for operand shape {x.shape}")
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            f"interior padding in padding_config must be nonnegative, got padding_config {padding_config}")
    shape = _padded_shape(x.shape, padding_config)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"Dimension size after padding is not at least 0, got result shape {shape}, for "
                         f"padding_config {padding_config} and operand shape {x.shape}")
    return ShapedArray(shape, x.dtype, x.weak_type and padding_value.weak_type)


def pad_ndarray(x: np.ndarray, value, padding_config) -> np.ndarray:
    """The implementation of `pad`: negative `low` and `high` crop what the interior padding has spread."""
    shape = _padded_shape(x.shape, padding_config)
    out = np.full(shape, value, x.dtype)
    source, target = [], []
    for extent, size, (low, _, interior) in zip(x.shape, shape, padding_config):
        step = interior + 1
        first = -(min(low, 0) // step)  # the first element that the crop leaves
        last = min(extent, (size - low - 1) // step + 1)  # one behind the last that fits
        count = max(last - first, 0)
        start = low + first * step
        source.append(slice(first, first + count))
        target.append(slice(start, start + count * step, step) if count else slice(0, 0))
    out[tuple(target)] = x[tuple(source)]
    return out


def _lower_pad(builder, x, value, *, padding_config):
    shape = _padded_shape(x.shape, padding_config)

    def place(index):
        return tuple(i * (interior + 1) + low for i, (low, _, interior) in zip(index, padding_config))

    def mask(index):
        return builder.all_of([builder.in_range(i, extent) for i, extent in zip(place(index), shape)])

    trims = any(low < 0 or high < 0 for low, high, _ in padding_config)
    return builder.regions(shape, x.dtype, builder.fill(shape, value),
                           [builder.region(x, place, mask if trims else None)])


def _hlo_pad(b, x, value, *, padding_config):
    shape = _padded_shape(x.shape, padding_config)
    low, high, interior = zip(*padding_config) if padding_config else ((), (), ())
    return b.op("pad", x, value, shape=shape, edge_padding_low=low, edge_padding_high=high,
                interior_padding=interior)


def _batch_pad(primitive, axis, values, batched, *, padding_config):
    (x, padding), (x_batched, padding_batched) = values, batched
    config = ((0, 0, 0), *padding_config)
    if not padding_batched:
        return primitive.bind(x, padding, padding_config=config)
    (x,) = batch_values(axis, [x], [x_batched])
    shape, dtype = aval_of(x).shape, aval_of(x).dtype
    outside = primitive.bind(full(shape, False), np.True_, padding_config=config)
    padded = primitive.bind(x, np.zeros((), dtype)[()], padding_config=config)
    return select_n(outside, padded, broadcast_in_dim(padding, aval_of(padded).shape, (0,)))


def _transpose_pad(primitive, ct, operands, *, padding_config):
    x, padding = operands
    return [_unpad(ct, x.aval.shape, padding_config) if is_linear(x) else None,
            _sum_padding(ct, aval_of(x.aval if is_linear(x) else x).shape, padding_config)
            if is_linear(padding) else None]


def _unpad(ct, shape, padding_config):
    """The elements that were those of the operand; zero where it was cropped."""
    crops = tuple((max(-low, 0), max(-high, 0), 0) for low, high, _ in padding_config)
    if any(map(any, crops)):
        ct = pad.primitive.bind(ct, np.zeros((), aval_of(ct).dtype)[()], padding_config=crops)
    starts = tuple(max(low, 0) for low, _, _ in padding_config)
    ends = tuple(extent - max(high, 0) for extent, (_, high, _) in zip(aval_of(ct).shape, padding_config))
    steps = tuple(interior + 1 for _, _, interior in padding_config)
    steps = None if all(step == 1 for step in steps) else steps
    return registry["slice"].bind(ct, start_indices=starts, limit_indices=ends, strides=steps)


def _sum_padding(ct, shape, padding_config):
    """The sum of what was put between and around the elements."""
    within = pad.primitive.bind(full(shape, True), np.False_, padding_config=padding_config)
    around = select_n(within, ct, fill(aval_of(ct), 0))
    return registry["reduce_sum"].bind(around, axes=tuple(range(len(shape))))


@define("pad", impl=lambda x, value, *, padding_config: pad_ndarray(x, value, padding_config), aval=_pad_aval,
        jvp=jvp_linear(), transpose=_transpose_pad, batch=_batch_pad, lower=_lower_pad, hlo=_hlo_pad,
        walks=True, zeros="kept")
def pad(operand, padding_value, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Puts padding_value around and between the elements of operand.

    Args:
        padding_value: scalar of operand's dtype.
        padding_config: per axis (before, after, between neighbours); negative before/after crop.
    Raises: ValueError when the configuration does not fit the shape."""
    config = tuple(tuple(map(to_extent, entry)) for entry in padding_config)
    operand, padding_value = to_operands("pad", (operand, padding_value))
    return pad.primitive.bind(operand, padding_value, padding_config=config)
