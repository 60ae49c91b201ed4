"""Convolutions by patches: each place's window as features, filters that differ from place to place; and the
shapes of convolutions and window reductions.

In: images, shapes and dimension numbers as `conv_general_dilated` takes them. Out: arrays, or shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.convolution.general import (ConvDimensionNumbers, conv_dimension_numbers,
                                             conv_general_dilated, transposed_padding)
from jitcore.lax.dot import dot_general
from jitcore.lax.shape import transpose
from jitcore.lax.window import count_windows, dilated_extent, padtype_to_pads

__all__ = ["ConvGeneralDilatedDimensionNumbers", "conv_general_dilated_local", "conv_general_dilated_patches",
           "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
           "conv_transpose_shape_tuple",
           "reduce_window_shape_tuple"]

#: What `dimension_numbers` of convolutions takes.
ConvGeneralDilatedDimensionNumbers: TypeAlias = tuple[str, str, str] | ConvDimensionNumbers | None


# -- patches
# --------------------------------------------------------------------------------------------------
def conv_general_dilated_patches(lhs, filter_shape: Sequence[int], window_strides: Sequence[int], padding,
                                 lhs_dilation: Sequence[int] | None = None,
                                 rhs_dilation: Sequence[int] | None = None,
                                 dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, precision=None,
                                 preferred_element_type=None) -> Array:
    """The window around each place of images, as its features.

    Args:
        lhs: images, axes (batch, feature, spatial...) in the order of dimension_numbers. filter_shape:
            extents of the window, in the order of the spatial axes of filters. Others: as
            `conv_general_dilated` takes them.

    Returns: images whose features are those of lhs, the elements of its window for each. Example: of
    `[[[1, 2, 3]]]` with filter_shape (2,), strides (1,) and "VALID" it is `[[[1, 2], [2, 3]]]`.
    Source: jax.lax.conv_general_dilated_patches."""
    filter_shape = tuple(map(operator.index, filter_shape))
    shape = aval_of(lhs).shape
    spec = conv_dimension_numbers(shape, (1, 1, *filter_shape), dimension_numbers)
    features, size = shape[spec.lhs_spec[1]], int(np.prod(filter_shape))
    one = np.eye(size, dtype=aval_of(lhs).dtype).reshape(*filter_shape, 1, size)
    filters = np.moveaxis(np.tile(one, features), (-2, -1), (spec.rhs_spec[1], spec.rhs_spec[0]))
    return conv_general_dilated(lhs, filters, window_strides, padding, lhs_dilation, rhs_dilation, spec,
                                features,
                                precision=precision, preferred_element_type=preferred_element_type)


def conv_general_dilated_local(lhs, rhs, window_strides: Sequence[int], padding, filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None,
                               rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                               precision=None) -> Array:
    """A convolution with filters of its own at each place.

    Args:
        lhs: images. rhs: filters, whose spatial axes are those of the result and whose input features are
            those of `conv_general_dilated_patches`. Others: as that takes them.

    Returns: images. Example: of `[[[1.0, 2.0]]]` and filters of one element `[[[3.0, 4.0]]]` it is
    `[[[3, 8]]]`.
    Source: jax.lax.conv_general_dilated_local."""
    patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                           rhs_dilation,
                                           dimension_numbers, precision)
    spec = conv_dimension_numbers(aval_of(lhs).shape, (1, 1, *filter_shape), dimension_numbers)
    batch, feature, *places = spec.out_spec
    out = dot_general(patches, rhs, (((feature,), (spec.rhs_spec[1],)), (places, spec.rhs_spec[2:])),
                      precision)
    # axes of the product: places, images, features
    order = [*places, batch, feature]
    return transpose(out, [order.index(i) for i in range(len(order))])


# -- shapes
# ---------------------------------------------------------------------------------------------------
def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The axes (batch, feature, spatial...) of images, filters (out, in, spatial...) and result, of three
    strings.

    Returns: three tuples of axes. Raises: TypeError for strings that do not fit.
    Example: of ("NHWC", "HWIO", "NHWC") they are (0, 3, 1, 2), (3, 2, 0, 1) and (0, 3, 1, 2). Source:
    jax.lax."""
    for text, letters in zip(dimension_numbers, ("NC", "OI", "NC")):
        if len(set(text)) != len(text) or any(text.count(letter) != 1 for letter in letters):
            raise TypeError(f"convolution dimension_numbers must contain each of {', '.join(letters)} "
                            f"and of their spatial characters exactly once, got {text}.")
    rank = len(dimension_numbers[0])
    return tuple(conv_dimension_numbers((1,) * rank, (1,) * rank, tuple(dimension_numbers)))


def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads,
                     batch_group_count: int = 1) -> tuple[int, ...]:
    """The shape of a convolution of images (batch, feature, spatial...) with filters (out, in, spatial...).

    Args: shapes; strides; pads: "SAME", "VALID" or (before, after) for each spatial axis.
    Returns: tuple of ints. Raises: TypeError for another number of pads.
    Example: of (1, 3, 8), (5, 3, 3), (1,) and "VALID" it is (1, 5, 6). Source: jax.lax.conv_shape_tuple."""
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(lhs_shape) - 2}, "
                        f"got {len(pads)}.")
    spatial = [count_windows(extent + low + high, window, stride) for extent, (low, high), window, stride
               in zip(lhs_shape[2:], pads, rhs_shape[2:], strides)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def _in_order(find, lhs_shape, rhs_shape, dimension_numbers) -> tuple[int, ...]:
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    found = find([lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs])
    return tuple(found[out.index(i)] for i in range(len(out)))


def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                             window_strides: Sequence[int],
                             padding, dimension_numbers: Sequence[str]) -> tuple[int, ...]:
    """`conv_shape_tuple` of axes in the order of dimension_numbers.

    Returns: tuple of ints. Example: of (1, 8, 3), (3, 3, 5), (1,), "VALID" and ("NWC", "WIO", "NWC") it is
    (1, 6, 5). Source: jax.lax.conv_general_shape_tuple."""
    return _in_order(lambda lhs, rhs: conv_shape_tuple(lhs, rhs, window_strides, padding), lhs_shape,
                     rhs_shape,
                     dimension_numbers)


def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                               window_strides: Sequence[int],
                               padding, dimension_numbers: Sequence[str]) -> tuple[int, ...]:
    """The shape of `conv_transpose` of axes in the order of dimension_numbers.

    Returns: tuple of ints. Example: of (1, 4, 3), (3, 3, 5), (2,), "SAME" and ("NWC", "WIO", "NWC") it is (1,
    8, 3).
    Source: jax.lax.conv_transpose_shape_tuple."""
    def find(lhs, rhs):
        pads = padding
        if isinstance(pads, str):
            pads = [transposed_padding(window, stride, pads) for window,
                    stride in zip(rhs[2:], window_strides)]
        spatial = [(extent - 1) * stride - window + 2 + sum(pair)
                   for extent, window, stride, pair in zip(lhs[2:], rhs[2:], window_strides, pads)]
        return [lhs[0], rhs[0], *spatial]

    return _in_order(find, lhs_shape, rhs_shape, dimension_numbers)


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """The shape of a reduction of windows.

    Args: numbers for each axis, padding as (before, after).
    Returns: tuple of ints. Example: of (8,), (3,), (2,) and [(0, 1)] it is (4,). Source: jax.lax."""
    ones = (1,) * len(operand_shape)
    return tuple(count_windows(dilated_extent(extent, spread) + low + high, dilated_extent(window, gap),
                               stride)
                 for extent, spread, (low, high), window, gap, stride in zip(
                     operand_shape, base_dilation or ones, padding, window_dimensions,
                     window_dilation or ones,
                     window_strides))
